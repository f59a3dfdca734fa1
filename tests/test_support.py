"""The helpers of the other tests: what they put back, and that they fail when they must."""

import os
import signal
import sys
import unittest
import warnings
from pathlib import Path
from unittest import mock

import support
from support import StrictTestCase, TemporaryFolder, make_improvement, read_json, read_lines, run_cli, run_process, write


class RunCli(TemporaryFolder):
    """A command in this process leaves nothing behind."""

    def program(self, function):
        """Puts *function* in the place of kaizen.main for this test."""
        patch = mock.patch.object(support.kaizen, "main", function)
        patch.start()
        self.addCleanup(patch.stop)

    def test_both_streams_and_the_status_come_back(self):
        def main(argv):
            print("out", *argv, flush=True)
            sys.stdout.buffer.write(b"bytes \xff\n")
            print("err", file=sys.stderr)
            return 3

        self.program(main)
        self.assertEqual(run_cli("a", 1), (3, "out a 1\nbytes \udcff\n", "err\n"))

    def test_every_way_to_exit_has_its_status(self):
        for code, expected in ((None, (0, "", "")), (5, (5, "", "")), ("no", (1, "", "no\n"))):
            with self.subTest(code):
                self.program(mock.Mock(side_effect=SystemExit(code)))
                self.assertEqual(run_cli(), expected)

    def test_an_exception_passes_through_and_the_streams_are_back(self):
        before = sys.stdout
        self.program(mock.Mock(side_effect=ZeroDivisionError))
        with self.assertRaises(ZeroDivisionError):
            run_cli()
        self.assertIs(sys.stdout, before)

    def test_folder_environment_input_and_signals_are_given_and_put_back(self):
        def main(argv):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print(os.path.basename(os.getcwd()), os.environ["KAIZEN_TEST_A"], "HOME" in os.environ, sys.stdin.read())
            os.environ["KAIZEN_TEST_B"] = "left"
            return 0

        self.program(main)
        (self.folder / "sub").mkdir()
        handler, environment = signal.getsignal(signal.SIGTERM), dict(os.environ)
        done = run_cli(cwd="sub", stdin="typed", env={"KAIZEN_TEST_A": "1", "HOME": None})
        self.assertEqual(done.stdout, "sub 1 False typed\n")
        self.assertEqual((os.getcwd(), signal.getsignal(signal.SIGTERM)), (str(self.folder), handler))
        self.assertEqual(dict(os.environ), environment)


class RunProcess(TemporaryFolder):
    """A real process sees a clean environment."""

    def test_only_what_is_given_reaches_the_program(self):
        program = write("program.py", "import os, sys\nprint(sorted(os.environ), sys.stdin.read())\nsys.exit(4)\n")
        with mock.patch.dict(os.environ, {"KAIZEN_DEBUG": "1", "PYTHONPATH": "/nowhere", "NO_COLOR": "1"}):
            done = run_process(program=program, stdin="in", env={"MINE": "1"})
        self.assertEqual(done.status, 4)
        self.assertIn("'MINE'", done.stdout)
        for name in ("KAIZEN_DEBUG", "PYTHONPATH", "NO_COLOR"):
            self.assertNotIn(name, done.stdout)

    def test_python_on_the_path_is_the_running_one(self):
        write("which.py", "import subprocess\nsubprocess.run(['python', '-c', 'import sys; print(sys.version)'], check=True)\n")
        self.assertEqual(run_process(program="which.py").stdout, sys.version + "\n")


class Strictness(unittest.TestCase):
    """Warnings end a test, wherever they come from."""

    def outcome(self, body):
        """The failures and errors of one strict test with that body."""

        class Inner(StrictTestCase):
            def test_it(self):
                body()

        result = unittest.TestResult()
        Inner("test_it").run(result)
        return [text for _, text in result.failures + result.errors]

    def test_a_warning_is_an_error(self):
        found = self.outcome(lambda: warnings.warn("old", DeprecationWarning, stacklevel=2))
        self.assertIn("DeprecationWarning: old", "".join(found))

    def test_a_file_left_open_is_an_error(self):
        found = self.outcome(lambda: open(__file__).read(1))  # noqa: SIM115
        self.assertIn("unclosed file", "".join(found))

    def test_a_clean_test_passes(self):
        self.assertEqual(self.outcome(lambda: None), [])


class Files(TemporaryFolder):
    """Small files for tests, and comparison with kept ones."""

    def test_an_improvement_has_the_files_that_were_asked_for(self):
        cases = [{"id": "a", "input": 1}, '{"id": "b",']
        folder = make_improvement("refund", cases, [{"id": "e", "type": "equals"}], baseline=[{"case_id": "a", "output": 2}])
        self.assertEqual(folder, Path("improvements/refund"))
        self.assertEqual((folder / "test_cases.jsonl").read_text(), '{"id": "a", "input": 1}\n{"id": "b",\n')
        self.assertEqual(read_json(folder / "evaluation.json")["evaluators"], [{"id": "e", "type": "equals"}])
        expected = {"trial": 1, "status": "completed", "case_id": "a", "output": 2}
        self.assertEqual(read_lines(folder / "baseline.jsonl"), [expected])
        self.assertFalse((folder / "candidate.jsonl").exists())

    def test_a_path_is_taken_as_it_is(self):
        self.assertEqual(make_improvement("elsewhere/x", [], {}), Path("elsewhere/x"))

    def test_line_ends_are_written_as_given(self):
        self.assertEqual(write("sub/a.txt", "a\r\nb\n").read_bytes(), b"a\r\nb\n")

    def test_a_golden_file_is_compared_line_by_line_and_written_on_request(self):
        path = write("golden.txt", "one\ntwo\n")
        with mock.patch.dict(os.environ, {"KAIZEN_UPDATE_GOLDEN": ""}):
            support.compare_with_file(path, "one\ntwo\n")
            with self.assertRaisesRegex(AssertionError, r"-two\n\+three"):
                support.compare_with_file(path, "one\nthree\n")
            with self.assertRaisesRegex(AssertionError, "only line ends"):
                support.compare_with_file(path, "one\ntwo")
        with mock.patch.dict(os.environ, {"KAIZEN_UPDATE_GOLDEN": "1"}):
            support.compare_with_file(path, "one\nthree\n")
        self.assertEqual(path.read_text(), "one\nthree\n")


if __name__ == "__main__":
    unittest.main()
