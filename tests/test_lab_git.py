"""Git as the lab asks it: nothing configured is run, nothing is reset, and every refusal has its reason."""

import os
import re
import shutil
import unittest
from unittest import mock

import support
from repositories import Repository
from support import kaizen, write

SOURCES = support.ROOT / "src" / "kaizen"


class Answers(Repository):
    """What `git_answer` gives, and says when there is nothing to give."""

    def reason(self, *words, folder=None):
        with self.assertRaises(kaizen.GitError) as caught:
            kaizen.git_answer(str(folder or self.repo), *words)
        error = caught.exception
        self.assertEqual(error.exit_status, 5)
        self.assertNotIn("\n", error.message)
        return error.reason

    def test_an_answer_is_what_git_printed(self):
        self.assertEqual(kaizen.git_answer(str(self.repo), "rev-parse", "HEAD").strip(), self.git("rev-parse", "HEAD"))

    def test_a_folder_outside_any_repository_is_refused(self):
        self.assertEqual(self.reason("status", folder=self.folder), "not_a_repository")

    def test_a_folder_that_is_not_there_is_not_taken_for_a_missing_git(self):
        self.assertEqual(self.reason("status", folder=self.folder / "nowhere"), "missing_folder")

    def test_a_commit_that_is_not_there_is_named_so(self):
        self.assertEqual(self.reason("rev-parse", "--verify", "nobody^{commit}"), "unknown_commit")
        self.assertEqual(self.reason("diff-tree", "1" * 40, "HEAD"), "unknown_commit")

    def test_a_git_that_is_not_installed_is_said_to_be_missing(self):
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.assertEqual(self.reason("status"), "git_missing")

    def test_a_git_that_is_too_old_is_refused(self):
        self.fake_git('case "$*" in *version) echo git version 2.30.9;; *) exec $real "$@";; esac')
        with self.assertRaisesRegex(kaizen.GitError, "2.30 is too old") as caught:
            kaizen.read_checkout(str(self.repo))
        self.assertEqual(caught.exception.reason, "git_too_old")

    def test_the_version_is_read_however_the_maker_adorns_it(self):
        self.fake_git('echo "git version 2.39.3 (Apple Git-146)"')
        self.assertEqual(kaizen.git_version(), (2, 39))

    def test_a_git_that_never_answers_is_given_up(self):
        self.fake_git("exec sleep 5")
        with self.assertRaises(kaizen.GitError) as caught:
            kaizen.git_answer(str(self.repo), "rev-parse", "HEAD", seconds=0.05)
        self.assertEqual(caught.exception.reason, "git_slow")

    def test_a_repository_of_somebody_else_is_refused_as_git_refuses_it(self):
        if os.geteuid() == 0:
            os.chown(self.repo, 12345, 12345)
            os.chown(self.repo / ".git", 12345, 12345)
        else:
            said = f"fatal: detected dubious ownership in repository at {self.repo}"
            self.fake_git(f'case "$*" in *version) exec $real version;; *) echo "{said}" >&2; exit 128;; esac')
        self.assertEqual(self.reason("status"), "unsafe_repository")
        with self.assertRaisesRegex(kaizen.GitError, "another user"):
            kaizen.read_checkout(str(self.repo))

    def test_a_lock_of_another_git_is_said_to_be_one(self):
        write(self.repo / ".git/index.lock", "")
        self.assertEqual(self.reason("update-index", "--refresh", "--force-remove", "agent.py"), "git_busy")

    def test_what_git_says_is_shown_on_one_line_without_control_characters(self):
        self.fake_git("printf 'fatal: a\\033[31mb\\nfatal: c\\n' >&2; exit 1")
        with self.assertRaisesRegex(kaizen.GitError, r"^git rev-parse: fatal: a\\x1b\[31mb$") as caught:
            kaizen.git_answer(str(self.repo), "rev-parse")
        self.assertEqual(caught.exception.reason, "git_failed")


class NothingRuns(Repository):
    """What a repository, or the environment, configures is not started."""

    def setUp(self):
        super().setUp()
        trap = str(self.trap())
        for key in ("core.fsmonitor", "core.pager", "pager.status", "diff.external", "core.editor", "core.sshCommand", "core.askPass",
                    "credential.helper", "filter.a.clean", "filter.a=b.process", "filter.a.smudge", "diff.a.textconv", "diff.a.command",
                    "core.alternateRefsCommand", "gpg.program", "sequence.editor", "merge.a.driver"):  # fmt: skip
            self.git("config", key, trap)
        for key in ("filter.a.required", "commit.gpgSign", "gc.autoDetach"):
            self.git("config", key, "true")
        self.git("config", "gc.auto", "1")
        for name in ("post-index-change", "post-checkout", "reference-transaction", "post-commit", "pre-auto-gc", "post-merge"):
            shutil.copy(trap, self.repo / ".git/hooks" / name)
        write(self.repo / ".git/info/attributes", "*.py filter=a diff=a merge=a\n")
        write(self.repo / "agent.py", "print(3)\n")
        os.utime(self.repo / "agent.py", (1, 1))
        self.base = self.git("rev-parse", "HEAD")

    def test_a_trap_is_one(self):
        self.git("status")
        self.assertTrue(self.is_sprung())

    def test_reading_starts_nothing(self):
        checkout = kaizen.read_checkout(str(self.repo))
        self.assertEqual(kaizen.dirty_paths(checkout), [("agent.py", "unstaged")])
        kaizen.tree_hash(checkout), kaizen.patch_id(checkout, self.base), kaizen.changed_paths(checkout, self.base)
        watch = kaizen.TreeWatch(checkout, {})
        self.assertIsNone(watch.changed())
        self.assertFalse(self.is_sprung())

    def test_variables_of_the_environment_start_nothing(self):
        trap = str(self.folder / "trap")
        named = ("GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EDITOR", "GIT_PROXY_COMMAND")
        traps = {**dict.fromkeys(named, trap), "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={trap}'"}
        with mock.patch.dict(os.environ, traps):
            checkout = kaizen.read_checkout(str(self.repo))
            kaizen.dirty_paths(checkout)
            kaizen.patch_id(checkout, self.base)
        self.assertFalse(self.is_sprung())


class NothingIsLost(unittest.TestCase):
    """The words that throw work away stand nowhere in the program."""

    def test_no_module_resets_cleans_or_overwrites_a_tree(self):
        forbidden = r"""["'](reset|clean|checkout|restore|stash|rm|read-tree|checkout-index|prune|gc|filter-branch)["'], ["']|--hard|--force\b|"-f"|"-ff?d"""
        for path in sorted((SOURCES / "lab").glob("*.py")) + [SOURCES / "foundation/git.py", SOURCES / "runs/commit.py"]:
            found = re.search(forbidden, path.read_text(encoding="utf-8"))
            self.assertIsNone(found, f"{path.name}: {found}")
        words = r"\bgit_(?:answer|ended)\([^\n]*[\"'](reset|clean|checkout|restore|stash|rm|read-tree|checkout-index)[\"']"
        for path in sorted(SOURCES.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            # These work with an index of their own, and arms.py in a folder of its own as well: nothing of the repository's is touched.
            if path.parent.name == "campaigns" and path.name in ("arms.py", "opening.py"):
                self.assertIn('"GIT_INDEX_FILE": ', text)
                self.assertEqual('"GIT_WORK_TREE": self.tree' in text, path.name == "arms.py")
                allowed = {"checkout-index", "read-tree"} if path.name == "arms.py" else {"read-tree"}
                self.assertEqual(set(re.findall(words, text)), allowed)
            else:
                self.assertIsNone(re.search(words, text), path.name)


if __name__ == "__main__":
    unittest.main()
