"""Provenance: what git says, asked without running anything that a repository configures."""

import os
import shutil
import subprocess
import unittest
from unittest import mock

import support
from support import clean_environment, kaizen, write

GIT = ["git", "-c", "user.name=dev", "-c", "user.email=dev@example.invalid", "-c", "init.defaultBranch=main"]


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Provenance(support.TemporaryFolder):
    """A repository `repo` with one commit, and an improvement in it."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, {"GIT_CEILING_DIRECTORIES": str(self.folder), "HOME": str(self.folder)})
        patch.start()
        self.addCleanup(patch.stop)
        self.repo = self.folder / "repo"
        write(self.repo / "agent.py", "print(1)\n")
        write(self.repo / "improvements/x [1]/test_cases.jsonl", "{}\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")

    def git(self, *arguments):
        done = subprocess.run([*GIT, *arguments], cwd=self.repo, env=clean_environment(), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, folder=""):
        return kaizen.commit_of(str(self.repo / folder), str(self.repo / "improvements/x [1]"))

    def test_a_clean_repository(self):
        expected = {"hash": self.git("rev-parse", "HEAD"), "branch": "main", "dirty": False, "reason": None}
        self.assertEqual(self.commit(), expected)
        self.assertEqual(self.commit("improvements"), expected)

    def test_a_changed_file_makes_it_dirty_also_from_a_folder_beside_it(self):
        write(self.repo / "agent.py", "print(2)\n")
        self.assertTrue(self.commit()["dirty"])
        self.assertTrue(self.commit("improvements")["dirty"])

    def test_a_new_file_makes_it_dirty_unless_it_is_ignored(self):
        write(self.repo / "new/module.py", "")
        self.assertTrue(self.commit()["dirty"])
        write(self.repo / ".gitignore", "new/\n.gitignore\n")
        self.assertFalse(self.commit()["dirty"])

    def test_evidence_of_improvements_does_not_make_it_dirty(self):
        for name in ("x [1]/baseline.jsonl", "x [1]/baseline.meta.json", "x [1]/review.html", "other/candidate.jsonl", "other/decision.yaml"):
            write(self.repo / "improvements" / name, "x")
        self.assertFalse(self.commit()["dirty"])
        write(self.repo / "improvements/x [1]/helper.py", "x")
        self.assertTrue(self.commit()["dirty"])

    def test_an_improvement_outside_the_repository_is_no_obstacle(self):
        self.assertEqual(kaizen.commit_of(str(self.repo), str(self.folder / "elsewhere"))["dirty"], False)

    def test_nothing_that_the_repository_configures_is_run(self):
        hook = write(self.folder / "trap", "#!/bin/sh\ntouch " + str(self.folder / "sprung") + "\ncat\n")
        hook.chmod(0o755)
        self.git("config", "core.fsmonitor", str(hook))
        for key in ("filter.a.clean", "filter.a=b.process", "filter.a.smudge", "core.pager", "diff.external", "core.editor"):
            self.git("config", key, str(hook))
        self.git("config", "filter.a.required", "true")
        for name in ("post-index-change", "post-checkout", "reference-transaction"):
            shutil.copy(hook, self.repo / ".git/hooks" / name)
        write(self.repo / ".gitattributes", "*.py filter=a\n")
        write(self.repo / "agent.py", "print(3)\n")
        os.utime(self.repo / "agent.py", (1, 1))
        commit = self.commit()
        self.assertEqual((commit["dirty"], len(commit["hash"])), (True, 40))
        self.assertFalse((self.folder / "sprung").exists())

    def test_the_environment_of_a_hook_leads_to_no_other_repository(self):
        with mock.patch.dict(os.environ, {"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere"}):
            self.assertEqual(self.commit()["hash"], self.git("rev-parse", "HEAD"))

    def test_inside_the_folder_of_git_itself_there_is_no_work_tree(self):
        self.assertEqual(self.commit(".git")["reason"], "the git repository has no work tree")

    def test_the_index_is_left_alone(self):
        os.utime(self.repo / "agent.py", (1, 1))
        before = (self.repo / ".git/index").read_bytes()
        self.assertFalse(self.commit()["dirty"])
        self.assertEqual((self.repo / ".git/index").read_bytes(), before)


class WithoutAnAnswer(support.TemporaryFolder):
    """What cannot be known is null, with the reason."""

    def reason(self):
        commit = kaizen.commit_of(str(self.folder), str(self.folder))
        self.assertEqual((commit["hash"], commit["branch"], commit["dirty"]), (None, None, None))
        return commit["reason"]

    def fake_git(self, text):
        write("bin/git", text).chmod(0o755)
        patch = mock.patch.dict(os.environ, {"PATH": f"{self.folder / 'bin'}{os.pathsep}/bin{os.pathsep}/usr/bin"})
        patch.start()
        self.addCleanup(patch.stop)

    def test_git_is_missing(self):
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.assertEqual(self.reason(), "git is not installed")

    def test_git_takes_too_long(self):
        self.fake_git("#!/bin/sh\nexec sleep 60\n")
        with mock.patch.object(kaizen, "GIT_SECONDS", 0.2):
            self.assertEqual(self.reason(), "git did not answer within 0.2 s")

    def test_git_refuses(self):
        self.fake_git("#!/bin/sh\necho 'fatal: detected dubious ownership in repository' >&2\nexit 128\n")
        self.assertEqual(self.reason(), "fatal: detected dubious ownership in repository")


if __name__ == "__main__":
    unittest.main()
