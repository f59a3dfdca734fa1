"""The lab in a sandbox like that of a coding agent: `.git` is read-only, there is no network, and no socket can be made.

Needs bubblewrap (Debian's package of that name), unprivileged user namespaces or root.
"""

import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from repositories import Repository
from support import BUNDLE, ROOT, clean_environment, kaizen, run_cli, tools, write

SOCKET_CALL = {"x86_64": 41, "aarch64": 198}  # socket(2) in the kernel's tables
# Classic BPF (linux/filter.h): load the number of the call; if it is socket, answer EPERM; else allow.
ALLOW, REFUSE, LOAD, JUMP_IF_EQUAL, RETURN = 0x7FFF0000, 0x00050001, 0x20, 0x15, 0x06


def socket_filter():
    """A file that holds the program which refuses socket(2)."""
    program = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, SOCKET_CALL[platform.machine()]), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    file = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    file.write(b"".join(struct.pack("=HBBI", *line) for line in program))
    file.seek(0)
    return file


class Sandbox(Repository):
    """A repository with a system, of which only the files can be written."""

    def setUp(self):
        super().setUp()
        self.assertIsNotNone(shutil.which("bwrap"), "install bubblewrap")
        kaizen.init_workspace(str(self.repo))
        self.assertEqual(run_cli("create", "system", "demo", cwd=self.repo).status, 0)
        self.base = self.commit("system")

    def boxed(self, *command, cwd=None, status=0):
        """What *command* printed in the sandbox."""
        place, git = str(self.repo), str(self.repo / ".git")
        words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", tempfile.gettempdir()]
        words += [word for each in (ROOT, tools(), self.folder) for word in ("--ro-bind", str(each), str(each))]
        words += ["--bind", place, place, "--ro-bind", git, git, "--unshare-net", "--unshare-pid", "--die-with-parent"]
        with socket_filter() as rules:
            words += ["--seccomp", str(rules.fileno()), "--chdir", str(cwd or self.repo), "--", *map(str, command)]
            done = subprocess.run(
                words, env=clean_environment(self.surroundings), pass_fds=[rules.fileno()], capture_output=True, text=True, timeout=120, check=False
            )
        self.assertEqual(done.returncode, status, done)
        return done.stdout

    def kaizen(self, *words, cwd=None, status=0):
        return json.loads(self.boxed(sys.executable, BUNDLE, *words, "--json", cwd=cwd, status=status))

    def test_the_sandbox_is_one(self):
        self.boxed(sys.executable, "-c", "import socket; socket.socket()", status=1)
        self.boxed("git", "commit", "--allow-empty", "-qm", "x", status=128)
        self.boxed("sh", "-c", "touch .git/x", status=1)
        self.boxed("touch", "allowed")

    def test_variants_are_made_run_and_landed_in_it(self):
        before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted((self.repo / ".git").rglob("*"))}
        refused = self.kaizen("worktree", "add", status=5)
        self.assertEqual(refused["reason"], "git_read_only")
        self.assertIn("kaizen lab open", refused["next"])
        clone = self.repo / self.kaizen("lab", "open")["path"]
        write(clone / "kaizen/systems/demo/agent.py", (clone / "kaizen/systems/demo/agent.py").read_text() + "# better\n")
        self.boxed("git", "commit", "-qam", "better", cwd=clone)
        run = self.kaizen("run", "--system", "demo", "--variant", "v1", cwd=clone)["run"]
        self.assertEqual((run["state"], run["commit"]["hash"]), ("completed", self.git("rev-parse", "HEAD", cwd=clone)))
        tree = clone / self.kaizen("worktree", "add", cwd=clone)["path"]
        write(tree / "kaizen/systems/demo/agent.py", "print()\n")
        self.boxed("git", "commit", "-qam", "other", cwd=tree)
        self.assertEqual(self.kaizen("run", "--system", "demo", "--variant", "v2", cwd=tree)["run"]["state"], "completed")
        landed = self.kaizen("lab", "land", cwd=clone)
        self.assertEqual((landed["branch"], landed["patch"], landed["applies"]), (None, str(self.repo / "kaizen/.kaizen/work/lab.patch"), True))
        self.boxed("git", "apply", "kaizen/.kaizen/work/lab.patch")
        self.assertTrue((self.repo / "kaizen/systems/demo/agent.py").read_text().endswith("# better\n"))
        self.assertEqual({path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted((self.repo / ".git").rglob("*"))}, before)
        self.assertEqual(sorted(os.listdir(self.repo / "kaizen/.kaizen/runs")), ["r0001", "r0002"])

    def test_outside_again_the_clone_lands_as_a_branch(self):
        clone = self.repo / self.kaizen("lab", "open")["path"]
        write(clone / "new.py", "")
        self.boxed("git", "add", "new.py", cwd=clone)
        self.boxed("git", "commit", "-qm", "new", cwd=clone)
        self.assertEqual(run_cli("lab", "land", "--branch", "landed", cwd=self.repo).status, 0)
        self.assertEqual(self.git("diff", "--name-only", "main", "landed"), "new.py")


if __name__ == "__main__":
    unittest.main()
