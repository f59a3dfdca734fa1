"""`kaizen run` on the command line: what is told, and what is refused before anything runs."""

import json
import os
import re
import unittest
from pathlib import Path
from unittest import mock

import support
from support import kaizen, run_cli, write, write_lines

ANSWER = "#!/bin/sh\necho '{\"output\": 1}'\n"


@unittest.skipIf(os.name == "nt", "programs are started on Linux and macOS only")
class CommandLine(support.TemporaryFolder):
    """An improvement of two cases and a runner."""

    def setUp(self):
        super().setUp()
        write_lines("improvements/imp/test_cases.jsonl", [{"id": "a", "input": 1, "tags": ["x"], "split": "development"}, {"id": "b", "input": 2}])
        write("improvements/imp/evaluation.json", json.dumps({"evaluators": [{"id": "a", "type": "contains", "values": ["x"]}]}))
        write("agent", ANSWER).chmod(0o755)

    def run_cli(self, *argv, status=0):
        done = run_cli("run", *argv)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done

    def test_the_answer_says_what_happened_and_what_comes_next(self):
        for stage, following in (
            ("baseline", "change the agent, then: kaizen run imp --stage candidate -- COMMAND"),
            ("candidate", "kaizen review imp"),
            ("other", "kaizen evaluate imp --stage other"),
        ):
            done = self.run_cli("imp", "--stage", stage, "--", "./agent")
            lines = done.stdout.splitlines()
            self.assertRegex(lines[0], rf"^{stage}: 2 of 2 trials completed, [\d.]+ m?s$")
            self.assertEqual(lines[1:], [f"  written to improvements/imp/{stage}.jsonl", f"next: {following}"])
            self.assertRegex(done.stderr.splitlines()[-1], rf"^run {stage}: 2 of 2, [\d.]+/s$")

    def test_with_json_there_is_one_document_and_progress_elsewhere(self):
        done = self.run_cli("imp", "--stage", "s", "--json", "--repetitions", "2", "--", "./agent")
        answer = json.loads(done.stdout)
        self.assertEqual((answer["ok"], answer["code"], answer["reason"]), (True, 0, "completed"))
        self.assertEqual(answer["next"], "kaizen evaluate imp --stage s")
        self.assertEqual((answer["planned"], answer["selected"], answer["ran"], answer["counts"]), (4, 4, 4, {"completed": 4}))

    def test_with_json_trials_without_evidence_are_not_ok(self):
        answer = json.loads(self.run_cli("imp", "--stage", "s", "--json", "--", "false", status=4).stdout)
        self.assertEqual((answer["ok"], answer["reason"], answer["unusable"]), (False, "unusable_trials", 2))
        self.assertEqual(answer["errors"], ["case 'a', trial 1: runner: the runner ended with exit code 1"])

    def test_the_command_that_goes_on_is_quoted_for_a_shell(self):
        write("the agent", "#!/bin/sh\nexit 1\n").chmod(0o755)
        done = self.run_cli("imp", "--stage", "s", "--timeout", "7.5", "--tag", "x", "--", "./the agent", "it's", status=4)
        wanted = "next: kaizen run imp --stage s --timeout 7.5 --tag x --only errors -- './the agent' 'it'\"'\"'s'"
        self.assertEqual(done.stdout.splitlines()[-1], wanted)

    def test_wrong_usage_is_told_before_anything_runs(self):
        for argv, told in (
            (("imp", "--stage", "s"), "there is no command to run"),
            (("imp", "--stage", "s", "--"), "there is no command to run"),
            (("imp", "--", "./agent"), "--stage"),
            (("imp", "--stage", "a/b", "--", "./agent"), "'a/b' cannot name a stage"),
            (("imp", "--stage", "test_cases", "--", "./agent"), "'test_cases' cannot name a stage"),
            (("imp", "--stage", "s", "--jobs", "0", "--", "./agent"), "'0' is not a whole number from 1"),
            (("imp", "--stage", "s", "--repetitions", "1.5", "--", "./agent"), "'1.5' is not a whole number from 1"),
            (("imp", "--stage", "s", "--timeout", "nan", "--", "./agent"), "'nan' is not a number of seconds above 0"),
            (("imp", "--stage", "s", "--timeout", "-1", "--", "./agent"), "seconds above 0"),
            (("imp", "--stage", "s", "--split", "dev", "--", "./agent"), "'dev'"),
            (("imp", "--stage", "s", "--split", "holdout", "--", "./agent"), "--split 'holdout' matches no case"),
            (("imp", "--stage", "s", "--cwd", "nowhere", "--", "./agent"), "nowhere' is no folder"),
            (("imp", "--stage", "s", "--resume", "--only", "errors", "--", "./agent"), "--only errors goes with neither"),
            (("nope", "--stage", "s", "--", "./agent"), "there is no such improvement"),
            (("imp", "--stage", "s", "./agent"), "unexpected argument './agent'"),
        ):
            with self.subTest(argv):
                done = self.run_cli(*argv, status=2)
                self.assertIn(told, done.stderr)
                self.assertEqual(done.stdout, "")
        self.assertEqual(len(list(Path("improvements/imp").iterdir())), 2)

    def test_a_broken_case_or_evaluation_stops_the_run(self):
        write_lines("improvements/imp/test_cases.jsonl", [{"id": "a"}])
        self.assertIn("test_cases.jsonl:1", self.run_cli("imp", "--stage", "s", "--", "./agent", status=2).stderr)

    def test_a_program_that_is_not_there_comes_with_a_hint(self):
        write("agent.py", "")
        for word, told, hint in (
            ("nope", "there is no program 'nope' on PATH", "is it installed?"),
            ("agent", "there is no program 'agent' on PATH", "did you mean ./agent?"),
            ("agent.py", "there is no program 'agent.py' on PATH", "name its interpreter: python agent.py"),
            ("./agent.py", "'./agent.py' is not executable", "name its interpreter: python agent.py"),
            ("./nope", "there is no program './nope'", "check the path"),
        ):
            with self.subTest(word):
                done = self.run_cli("imp", "--stage", "s", "--", word, status=2)
                self.assertIn(told, done.stderr)
                self.assertIn(hint, done.stderr)
        (self.folder / "sub").mkdir()
        self.assertIn("--cwd", self.run_cli("imp", "--stage", "s", "--cwd", "sub", "--", "./agent", status=2).stderr)

    def test_a_version_managers_shim_is_noted(self):
        write("shims/thing", ANSWER).chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{self.folder / 'shims'}{os.pathsep}{os.environ['PATH']}"}):
            done = self.run_cli("imp", "--stage", "s", "--progress", "none", "--", "thing")
        self.assertIn("note: 'thing' is the shim of a version manager", done.stderr)

    def test_on_windows_it_says_what_it_needs(self):
        with mock.patch.object(kaizen.os, "name", "nt"), self.assertRaisesRegex(kaizen.UsageError, "needs Linux or macOS"):
            kaizen.check_runner(["./agent"], ".")

    def test_help_shows_the_usual_call(self):
        done = run_cli("run", "--help")
        self.assertEqual(done.status, 0)
        self.assertIn("kaizen run refund --stage baseline -- ./agent", done.stdout)


class Page(support.TemporaryFolder):
    """docs/running.md and docs/runner-protocol.md say what is so."""

    TEXT = (support.ROOT / "docs/running.md").read_text(encoding="utf-8")
    PROTOCOL = (support.ROOT / "docs/runner-protocol.md").read_text(encoding="utf-8")

    def test_every_option_is_explained(self):
        for argument in kaizen.COMMANDS["run"].arguments:
            if argument.name.startswith("--"):
                self.assertTrue(f"`{argument.name}" in self.TEXT, argument.name)

    def test_every_field_of_an_answer_and_every_ending_is_named(self):
        for name in (*kaizen.ANSWER_FIELDS, *kaizen.STEP_FIELDS, *kaizen.STATUSES):
            if name != "cancelled":  # a trial that was interrupted leaves no line
                self.assertTrue(f"`{name}`" in self.PROTOCOL, name)

    def test_the_request_shown_is_the_one_that_is_sent(self):
        shown = json.loads(re.search(r"```json\n(\{\"protocol.*?)\n```", self.PROTOCOL, re.DOTALL)[1])
        case = kaizen.Case("refund-001", {"id": "refund-001", **shown["case"]}, "", 1, "")
        seed = kaizen.trial_seed(20260101, "refund-001", 1)
        self.assertEqual(kaizen.request_document(kaizen.TrialRequest(case, "baseline", 1, 1, 1, seed)), shown)

    @unittest.skipIf(os.name == "nt", "programs are started on Linux and macOS only")
    def test_the_runner_in_shell_runs(self):
        write("agent", re.search(r"```sh\n(.*?)```", self.PROTOCOL, re.DOTALL)[1]).chmod(0o755)
        ended = kaizen.run_program(["./agent"], b'{"protocol": "1.2"}\n')
        self.assertEqual(kaizen.read_answer(ended.stdout), ({"output": "I got 19 characters"}, None))


if __name__ == "__main__":
    unittest.main()
