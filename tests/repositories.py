"""A throw-away git repository for tests, shut off from the git configuration of whoever runs them."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import support
from support import clean_environment, write

IDENTITY = {"GIT_AUTHOR_NAME": "dev", "GIT_AUTHOR_EMAIL": "dev@example.invalid"}
IDENTITY.update({name.replace("AUTHOR", "COMMITTER"): value for name, value in IDENTITY.items()})


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Repository(support.TemporaryFolder):
    """A test with the repository `self.repo`, which has one commit of agent.py."""

    def setUp(self):
        super().setUp()
        home = self.folder / "home"
        home.mkdir()
        self.surroundings = {**IDENTITY, "GIT_CEILING_DIRECTORIES": str(self.folder), "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
        patch = mock.patch.dict(os.environ, self.surroundings)
        patch.start()
        self.addCleanup(patch.stop)
        self.repo = self.folder / "repo"
        self.make_repository()

    made: "Path | None" = None  # the one repository that the others are copies of

    @staticmethod
    def forget():
        if Repository.made is not None:
            shutil.rmtree(Repository.made)
            Repository.made = None

    def make_repository(self):
        """Makes `self.repo` with its first commit."""
        if Repository.made is None:
            self.repo.mkdir()
            self.git("init", "-q", "-b", "main", "--template=")
            (self.repo / ".git/hooks").mkdir()
            write(self.repo / "agent.py", "print(1)\n")
            self.commit("one")
            Repository.made = Path(tempfile.mkdtemp(prefix="kaizen-repository-"))
            unittest.addModuleCleanup(Repository.forget)
            shutil.copytree(self.repo, Repository.made / "repo", symlinks=True)
        else:
            self.copy_repository(Repository.made / "repo")

    def copy_repository(self, made):
        """Makes `self.repo` a copy of *made*, whose index knows its files."""
        shutil.copytree(made, self.repo, symlinks=True)
        self.git("update-index", "-q", "--refresh")

    def git(self, *words, cwd=None, check=True):
        """What `git words…` printed, without the last line end."""
        command = ["git", "-c", "protocol.file.allow=always", *map(str, words)]
        environment = clean_environment(self.surroundings)
        done = subprocess.run(command, cwd=cwd or self.repo, env=environment, capture_output=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"git {words}: {done.stderr.decode()}")
        return os.fsdecode(done.stdout).removesuffix("\n")

    def commit(self, message="more", cwd=None):
        """Commits all that is there; the hash."""
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-qm", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    def trap(self):
        """A program that leaves `self.folder/sprung` behind when it is run."""
        path = write(self.folder / "trap", f"#!/bin/sh\ntouch '{self.folder}/sprung'\ncat\n")
        path.chmod(0o755)
        return path

    def is_sprung(self):
        return (self.folder / "sprung").exists()

    def fake_git(self, script):
        """Puts a shell *script* in front of git on PATH; `$real` in it is the true git."""
        write(self.folder / "bin/git", f"#!/bin/sh\nreal={shutil.which('git')}\n{script}").chmod(0o755)
        patch = mock.patch.dict(os.environ, {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"})
        patch.start()
        self.addCleanup(patch.stop)


def tree_of(folder):
    """{path: bytes, or the text of a link} of all files below *folder*, .git left out."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = Path(place) / name
            found[str(path.relative_to(folder))] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return found
