"""`kaizen doctor` says what is here, what is blocked, and what to grant; it changes nothing."""

import json
import os
import shutil
import unittest
from pathlib import Path
from unittest import mock

import repositories
from support import kaizen, run_cli, write


class Doctor(repositories.Repository):
    """In a repository with a workspace; of programs there is only git, and a Claude Code that tells its version."""

    def setUp(self):
        super().setUp()
        bin = self.folder / "bin"
        bin.mkdir()
        os.symlink(shutil.which("git"), bin / "git")
        write(bin / "claude", "#!/bin/sh\necho '2.1.332 (Claude Code)'\n").chmod(0o755)
        agents = dict.fromkeys((name for name, _ in kaizen.CODING_AGENTS), "")
        patch = mock.patch.dict(os.environ, {"PATH": str(bin), **agents})
        patch.start()
        self.addCleanup(patch.stop)
        os.chdir(self.repo)
        kaizen.init_workspace(".")
        self.commit("workspace")

    def doctor(self, status=0, **environment):
        """({check: its row}, the whole document) of `kaizen doctor`."""
        done = run_cli("doctor", "--json", env=environment)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        return {row["id"]: row for row in document["checks"]}, document

    def test_where_all_is_well_nothing_is_blocked(self):
        checks, document = self.doctor()
        self.assertEqual(list(checks), ["python", "kaizen", "git", "workspace", "scratch", "network", "driver", "claude", "codex"])
        self.assertEqual((document["driver"], document["blocked"], document["limited"]), (None, [], []))
        self.assertIn("on main, can be committed to", checks["git"]["found"])
        self.assertIn("2.1.332 (Claude Code)", checks["claude"]["found"])
        self.assertEqual((checks["codex"]["state"], checks["network"]["state"]), ("unknown", "unknown"))
        self.assertIn("nothing is blocked\n", run_cli("doctor").stdout)

    def test_it_leaves_nothing_behind(self):
        before = sorted(map(str, Path(self.repo).rglob("*")))
        self.doctor()
        run_cli("doctor", "--guide")
        self.assertEqual(sorted(map(str, Path(self.repo).rglob("*"))), before)
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_a_git_folder_that_cannot_be_written_is_a_limit_with_a_way_out(self):
        obstacle = kaizen.GitError(".git: cannot be written here", "", "git_read_only")
        with mock.patch.object(kaizen, "git_write_obstacle", lambda checkout: obstacle):
            checks, document = self.doctor(CODEX_SANDBOX_NETWORK_DISABLED="1")
        self.assertEqual((document["driver"], document["blocked"], document["limited"]), ("codex", [], ["git", "network", "driver"]))
        self.assertIn("kaizen lab open", document["next"])
        self.assertIn("network_access=true", document["grants"]["codex"][-1])
        self.assertIn(f'"{self.repo}/.git"', document["grants"]["codex"][2])

    def test_what_cannot_be_written_is_blocked(self):
        with mock.patch.object(kaizen, "is_writable", lambda folder: False):
            checks, document = self.doctor(status=1)
        self.assertEqual((document["blocked"], document["reason"]), (["workspace"], "blocked"))
        self.assertIn("kaizen/.kaizen cannot be written", checks["workspace"]["found"])

    def test_a_merge_that_goes_on_and_a_missing_name_are_told(self):
        self.git("config", "user.useConfigOnly", "true")
        nobody = dict.fromkeys(repositories.IDENTITY)
        checks, _ = self.doctor(**nobody)
        self.assertEqual((checks["git"]["state"], checks["git"]["todo"][:20]), ("limited", "git config user.name"))
        write(self.repo / ".git/MERGE_HEAD", self.git("rev-parse", "HEAD") + "\n")
        checks, document = self.doctor(status=1)
        self.assertIn("a merge is in progress", checks["git"]["found"])
        self.assertEqual(document["blocked"], ["git"])

    def test_outside_of_a_repository_it_says_what_to_make(self):
        place = self.folder / "elsewhere"
        place.mkdir()
        os.chdir(place)
        checks, document = self.doctor(status=1)
        self.assertEqual((document["blocked"], document["limited"]), (["git"], ["workspace"]))
        self.assertEqual(checks["workspace"]["todo"], "make one with: kaizen init")

    def test_the_driver_is_named_and_what_that_means(self):
        checks, document = self.doctor(CLAUDECODE="1")
        self.assertEqual(document["driver"], "claude-code")
        self.assertIn("headless, what no rule allows is denied", checks["driver"]["found"])

    def test_a_client_that_does_not_start_is_no_obstacle(self):
        write(self.folder / "bin/codex", "#!/bin/sh\necho broken >&2\nexit 3\n").chmod(0o755)
        checks, _ = self.doctor()
        self.assertEqual(checks["codex"]["state"], "limited")
        self.assertIn("broken", checks["codex"]["found"])

    def test_system_goes_with_guide(self):
        self.assertEqual(run_cli("doctor", "--system", "x").status, 2)


if __name__ == "__main__":
    unittest.main()
