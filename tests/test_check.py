"""scripts/check.py: how it counts, which Pythons it takes, and that peer tests stay apart."""

import contextlib
import io
import os
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

from support import ROOT, TESTS, StrictTestCase, TemporaryFolder, write

import check
from check import Ran, Tally


class Counting(StrictTestCase):
    """unittest's last lines, as a tally. The endings are those of CPython 3.10 to 3.13."""

    def test_every_ending_of_a_run(self):
        table = [
            (0, "Ran 12 tests in 0.1s\n\nOK\n", Tally(12, 0, 0)),
            (0, "Ran 1 test in 0.1s\n\nOK (skipped=1)\n", Tally(0, 0, 1)),
            (1, "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n", Tally(5, 3, 1)),
            (1, "Ran 2 tests in 0.1s\n\nFAILED (unexpected successes=1)\n", Tally(1, 1, 0)),
            (0, "Ran 2 tests in 0.1s\n\nOK (expected failures=1)\n", Tally(2, 0, 0)),
            (1, "Ran 1 test in 0.1s\n\nFAILED (failures=5)\n", Tally(0, 5, 0)),
        ]
        for status, output, expected in table:
            with self.subTest(output):
                self.assertEqual(check.count_tests(Ran(status, output, 0.1)), expected)

    def test_a_run_that_did_not_come_to_its_end_is_a_failure(self):
        table = [
            (5, "Ran 0 tests in 0.0s\n\nNO TESTS RAN\n"),
            (0, "Ran 0 tests in 0.0s\n\nOK\n"),
            (1, "kaizen.py is stale: run python scripts/build.py\n"),
            (-11, "......"),
            (None, "Ran 5 tests in 0.1s\n\nOK\nnot done after 1800 s"),
        ]
        for status, output in table:
            with self.subTest(output):
                self.assertEqual(check.count_tests(Ran(status, output, 0.1)), Tally(0, 1, 0))

    def test_success_with_a_bad_exit_status_is_a_failure(self):
        self.assertEqual(check.count_tests(Ran(1, "Ran 2 tests in 0.1s\n\nOK\n", 0.1)), Tally(1, 1, 0))

    def test_a_skipped_peer_test_is_a_failure(self):
        ran = Ran(0, "Ran 3 tests in 0.1s\n\nOK (skipped=2)\n", 0.1)
        with mock.patch.object(check, "run", return_value=ran), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(check.check_peers(True), Tally(1, 2, 0))
            self.assertEqual(check.check_peers(False), Tally(0, 1, 0))

    def test_the_last_line_is_one_that_any_ci_can_read(self):
        self.assertEqual(str(Tally(3, 0, 1).plus(Tally(1, 2, 0))), "4 passed, 2 failed, 1 skipped")


class Pythons(TemporaryFolder):
    """One interpreter a version, each of them tried."""

    def program(self, path, line):
        write(path, f"#!/bin/sh\n{line}\n").chmod(0o755)

    def found(self):
        home = {"PATH": f"{self.folder}/shims:/usr/bin:/bin", "PYENV_ROOT": str(self.folder), "HOME": str(self.folder)}
        with mock.patch.dict(os.environ, home):
            return {python.version: Path(python.path) for python in check.find_pythons()}

    def test_the_running_python_is_among_them(self):
        self.assertEqual(self.found()[sys.version_info[:3]], Path(sys.executable))

    def test_a_shim_that_fails_gives_way_to_the_real_one_and_the_newest_is_taken(self):
        minor = 13 if sys.version_info[1] != 13 else 12
        self.program(f"shims/python3.{minor}", "exit 127")
        for micro in (2, 10):
            self.program(f"versions/3.{minor}.{micro}/bin/python", f"echo 3.{minor}.{micro}")
        self.program("versions/3.9.1/bin/python", "echo 3.9.1")
        found = self.found()
        self.assertEqual(found[3, minor, 10], self.folder / f"versions/3.{minor}.10/bin/python")
        self.assertEqual(len(found), len({version[1] for version in found}))
        self.assertNotIn((3, 9, 1), found)


class Installing(StrictTestCase):
    """What --ci brings to a bare machine."""

    def commands(self, which, statuses):
        """The commands that install_packages ran, given where Chromium is and how each try ends."""
        ran = mock.Mock(side_effect=[Ran(status, "", 0.1) for status in statuses])
        quiet = contextlib.redirect_stdout(io.StringIO())
        with mock.patch.object(check, "run", ran), mock.patch("time.sleep"), mock.patch("shutil.which", return_value=which), quiet:
            check.install_packages()
        return [" ".join(call.args[0]).partition("-qq ")[2].split()[0] for call in ran.call_args_list]

    def test_a_browser_that_is_there_is_left_alone(self):
        self.assertEqual(self.commands("/usr/bin/chromium", []), [])

    def test_a_network_that_fails_twice_is_tried_again(self):
        self.assertEqual(self.commands(None, [100, 100, 0, 0]), ["update", "update", "update", "install"])

    def test_a_failure_that_lasts_does_not_end_the_checks(self):
        self.assertEqual(self.commands(None, [100] * 6), ["update"] * 3 + ["install"] * 3)


class Discovery(StrictTestCase):
    """`discover -s tests` needs nothing but Python, so it must not find tests/peers."""

    def test_no_peer_test_is_found(self):
        self.assertFalse((TESTS / "peers/__init__.py").exists())
        program = "import unittest; print(unittest.TestLoader().discover('tests', 'test_inst*.py').countTestCases())"
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "0\n")


if __name__ == "__main__":
    unittest.main()
