"""Installed with pip, the one file is a command and a module, and nothing else comes with it."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = ("kaizen.py", "pyproject.toml", "README.md", "LICENSE")


def run(*command, cwd):
    """Standard output of a program that must succeed; no index is asked for anything."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    env.update(PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    """`pip install .` in an empty environment."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="kaizen-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        checkout = cls.folder / "checkout"
        checkout.mkdir()
        for name in FILES:
            shutil.copyfile(ROOT / name, checkout / name)
        run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", cls.folder, checkout, cwd=cls.folder)
        (cls.wheel,) = cls.folder.glob("kaizen-*.whl")
        run(sys.executable, "-m", "venv", "--without-pip", cls.folder / "venv", cwd=cls.folder)
        cls.bin = cls.folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        run(sys.executable, "-m", "pip", "--python", cls.bin / "python", "install", cls.wheel, cwd=cls.folder)

    def test_the_command_and_the_module_are_the_file_of_this_checkout(self):
        digest = hashlib.sha256((ROOT / "kaizen.py").read_bytes()).hexdigest()
        command = run(self.bin / "kaizen", "--version", cwd=self.folder)
        self.assertIn(digest[:12], command)
        self.assertEqual(run(self.bin / "python", "-m", "kaizen", "--version", cwd=self.folder), command)

    def test_the_wheel_holds_one_module_and_its_own_description(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
        self.assertEqual([name for name in names if ".dist-info/" not in name], ["kaizen.py"])

    def test_the_version_is_the_one_that_the_program_prints_and_nothing_is_required(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
            metadata = wheel.read(name).decode("utf-8")
        version = re.search(r"^Version: (.*)$", metadata, re.MULTILINE)[1]
        self.assertTrue(run(self.bin / "kaizen", "--version", cwd=self.folder).startswith(f"kaizen {version} "))
        self.assertNotIn("Requires-Dist", metadata)
        self.assertIn("Requires-Python: >=3.10", metadata)


if __name__ == "__main__":
    unittest.main()
