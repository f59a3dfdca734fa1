"""How a command line ends: closed and full standard streams, misspelt options, commands to copy."""

import contextlib
import io
import os
import subprocess
import sys
import unittest

import support
from support import INSTALLED, kaizen, make_improvement, run_cli
from test_policy_recommendation import CHECK, answers, cases


class Streams(support.TemporaryFolder):
    """Whatever the caller did to the standard streams: no traceback, and the exit status of the answer."""

    def ended(self, redirection, *words):
        done = subprocess.run(["/bin/sh", "-c", f'"$@" {redirection}', "sh", sys.executable, str(INSTALLED), *words], capture_output=True, text=True, check=False)
        self.assertNotIn("Traceback", done.stdout + done.stderr)
        self.assertNotIn("Exception ignored", done.stdout + done.stderr)
        return done

    def test_closed(self):
        self.assertEqual(self.ended(">&-", "evaluators").returncode, 0)
        self.assertEqual(self.ended("2>&-", "evaluators").returncode, 0)
        self.assertEqual(self.ended("2>&-", "nonsense").returncode, 2)
        self.assertEqual(self.ended(">&- 2>&-", "--version").returncode, 0)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_full(self):
        for words in (["evaluators"], ["evaluators", "--json"]):
            done = self.ended(">/dev/full", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("kaizen: error: standard output: cannot be written", done.stderr)


class CommandLine(support.TemporaryFolder):
    def test_a_misspelt_option_is_named_also_when_it_was_required(self):
        done = run_cli("run", "x", "--stag", "baseline")
        self.assertEqual(done.status, 2)
        self.assertIn("unknown option '--stag'", done.stderr)
        self.assertIn("did you mean '--stage'?", done.stderr)

    def test_a_current_folder_that_is_gone_is_told(self):
        for argv in (("history", "list"), ("dashboard",), ("replay-decision", "--policy", "x"), ("init", "x")):
            gone = self.folder / "gone"
            gone.mkdir()
            os.chdir(gone)
            gone.rmdir()
            stdout, stderr = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                status = kaizen.main(list(argv))
            os.chdir(self.folder)
            self.assertEqual(status, 2, argv)
            self.assertIn("the current folder is gone", stderr.getvalue())

    def test_an_argument_that_is_not_utf_8_is_told_where_it_would_be_written(self):
        make_improvement("x", cases("a"), [CHECK], baseline=answers(a="no"), candidate=answers(a="yes"))
        for argv in (("init", "x", "--agent-version", "v\udcff"), ("record", "x", "--agent-version", "v", "--label", "l\udcff")):
            done = run_cli("history", *argv)
            self.assertEqual((done.status, "is not UTF-8" in done.stderr), (2, True), done.stderr)
        self.assertEqual(run_cli("history", "init", "x", "--agent-version", "v").status, 0)
        self.assertEqual(run_cli("history", "validate").status, 0)

    @unittest.skipUnless(sys.platform == "linux", "needs a limit of memory that holds")
    def test_a_file_that_memory_cannot_hold_is_told(self):
        folder = self.folder / "kaizen-history"
        folder.mkdir()
        with open(folder / "ledger.jsonl", "wb") as stream:
            stream.truncate(3 << 30)
        done = subprocess.run(["/bin/sh", "-c", f"ulimit -v 1000000; exec {sys.executable} {INSTALLED} history list"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "not enough memory" in done.stderr), (2, True), done.stderr)

    def test_commands_to_copy_are_quoted_for_a_shell(self):
        make_improvement("it's $(mine)", cases("a"), [CHECK], baseline=answers(a="no"), candidate=answers(a="yes"))
        quoted = """'improvements/it'"'"'s $(mine)'"""
        for command in (["evaluate"], ["review"], ["decide", "--status", "accepted", "--by", "a\x1b[31m", "--because", "b"]):
            done = run_cli(command[0], "it's $(mine)", *command[1:])
            self.assertEqual(done.status, 0, done.stderr)
            self.assertIn(quoted, done.stdout)
            self.assertNotIn("\x1b", done.stdout)

    def test_a_report_that_cannot_be_made_is_refused_before_anything_runs(self):
        make_improvement("x", cases("a"), [CHECK])
        done = run_cli("test", "x", "--junit", "j.xml", "--", "touch", "called")
        self.assertEqual(done.status, 2)
        self.assertFalse((self.folder / "called").exists())
        self.assertFalse((self.folder / "improvements/x/candidate.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
