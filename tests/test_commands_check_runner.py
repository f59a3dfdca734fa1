"""`kaizen run --check`: what a newcomer got wrong, in words; nothing is written."""

import json
import sys
import unittest
from pathlib import Path

import support
from support import run_cli, write, write_lines

PYTHON = (sys.executable, "-I", "-S", "-c")
READS = "import sys, json; request = json.load(sys.stdin)\n"


@unittest.skipIf(sys.platform == "win32", "programs are started on Linux and macOS only")
class Check(support.TemporaryFolder):
    """One case of the improvement, tried."""

    def setUp(self):
        super().setUp()
        cases = [{"id": "secret", "input": "hidden words", "split": "holdout"}, {"id": "a", "input": "hello", "split": "development"}]
        write_lines("imp/test_cases.jsonl", [*cases, {"id": "b", "input": {"k": 1}, "split": "regression"}])
        write("imp/evaluation.json", json.dumps({"version": 1, "evaluators": [{"id": "a", "type": "contains", "values": ["x"]}]}))

    def check(self, *command, options=(), status=1):
        before = sorted(path.name for path in Path("imp").iterdir())
        done = run_cli("run", "imp", "--check", *options, "--", *command)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        self.assertEqual(sorted(path.name for path in Path("imp").iterdir()), before, "a check writes nothing")
        return done.stdout

    def test_options_about_a_stage_cannot_go_with_it(self):
        for options in (("--resume",), ("--overwrite",), ("--only", "errors"), ("--estimate",), ("--shard", "1/2")):
            with self.subTest(options=options):
                done = run_cli("run", "imp", "--check", *options, "--", "true")
                self.assertEqual(done.status, 2)
                self.assertIn(options[0], done.stderr)

    def test_a_good_answer_is_shown_with_what_was_sent(self):
        told = self.check(*PYTHON, READS + "print(json.dumps({'output': request['case']['input']}))", status=0)
        self.assertIn("case 'a': the answer can be used", told)
        self.assertIn('{"protocol":"1.2","case":{"id":"a","input":"hello","context":null},"run":{"stage":"check","trial":1,', told)
        self.assertIn('  recorded:\n    {"output":"hello"}\n', told)
        for word in ("wrong:", "note:", "hint:"):
            self.assertNotIn(word, told)

    def test_each_mistake_is_told_with_what_to_do(self):
        for code, wrong, hint in (
            (READS, "nothing was printed on standard output", "print one JSON object"),
            (READS + "print('I am fine')", "is not one JSON object", "--plain"),
            (READS + "print({'output': 1})", "is not one JSON object", "json.dumps"),
            (READS + "print('[1]')", "is a JSON array, not an object", "wrap it"),
            (READS + "print(json.dumps({'outptu': 1}))", "it has 'outptu'", "key 'outptu': did you mean 'output'?"),
            (READS + "print(json.dumps({'response': 1}))", "it has 'response'", "key 'response': did you mean 'output'?"),
            (READS + "print(json.dumps({'zzz': 1}))", "it has 'zzz'", 'under "output"'),
            (READS + "print(json.dumps({'output': 1, 'steps': 'x'}))", "answer#/steps", "docs/runner-protocol.md"),
            (READS + "print(json.dumps({'output': 1})); sys.exit(3)", "ended with exit code 3", "exit with 0"),
            (READS + "print(json.dumps({'output': 1}), file=sys.stderr)", "nothing was printed", "gone to standard error"),
            (READS + "sys.stdout.buffer.write(b'{\"output\": \"\\xff\"}')", "not UTF-8", "encode"),
            (READS + "raise SystemError('no key')", "exit code 1", "SystemError: no key"),
            ("import time; time.sleep(0.01); print('x')", "of the request were not read", "read standard input to its end"),
        ):
            with self.subTest(code):
                told = self.check(*PYTHON, code)
                self.assertIn("case 'a': the answer cannot be used", told)
                self.assertRegex(told, rf"wrong: .*{wrong}")
                self.assertIn(hint, told)

    def test_one_that_takes_too_long_is_told(self):
        told = self.check("sleep", "9", options=("--timeout", "0.1"))
        self.assertIn("wrong: no end within 0.1 s", told)
        self.assertIn("hint: --timeout S gives it longer", told)

    def test_what_may_not_be_meant_is_a_note(self):
        for code, note in (
            (READS + "print('log'); print('{\"output\": 1}')", "1 line on standard output before the answer, kept as log"),
            (READS + "print('{\"output\": 1, \"tool_cals\": []}')", "'tool_cals' is not in the protocol and was left out (did you mean 'tool_calls'?)"),
            (READS + "print('{\"output\": \"\"}')", "the output is empty"),
            ("import time; time.sleep(0.01); print('{\"output\": 1}')", "nothing or not all of the request was read"),
        ):
            with self.subTest(code):
                self.assertIn(f"note: {note}" if note[0] != "'" else note, self.check(*PYTHON, code, status=0))

    def test_the_other_ways_to_run_are_checked_too(self):
        told = self.check("cat", options=("--plain",), status=0)
        self.assertIn("  sent:\n    hello\n  printed:\n    hello\n  recorded:\n    {\"output\":\"hello\"}\n", told)
        self.assertNotIn("read", self.check("echo", "{input}", options=("--plain",), status=0))
        loop = "import sys, json\nfor line in sys.stdin:\n    print(json.dumps({'request': json.loads(line)['request'], 'output': 1}), flush=True)"
        self.check(*PYTHON, loop, options=("--persistent",), status=0)
        told = self.check(*PYTHON, loop.replace("'request': json.loads(line)['request'], ", ""), options=("--persistent",))
        self.assertIn("answered without the \"request\" number", told)
        self.assertIn('hint: copy "request" of the request into the answer', told)
        told = self.check(*PYTHON, loop + "; sys.stdin.readline(); break", options=("--persistent",))
        self.assertIn("wrong: the runner ended with exit code 0 before it answered", told)
        self.assertIn("hint: a persistent runner reads until its input ends", told)

    def test_secrets_are_masked_on_the_terminal_and_in_json(self):
        code = READS + "import os; print('log', os.environ['MY_API_KEY']); print(json.dumps({'output': os.environ['MY_API_KEY']}))"
        code += "; print(os.environ['MY_API_KEY'], file=sys.stderr)"
        for options in ((), ("--json",)):
            done = run_cli("run", "imp", "--check", *options, "--", *PYTHON, code, env={"MY_API_KEY": "q7Zx-vb81-Lm"})
            self.assertEqual((done.status, "q7Zx-vb81-Lm" in done.stdout + done.stderr, "REDACTED" in done.stdout), (0, False, True))

    def test_holdout_cases_are_not_shown(self):
        done = run_cli("run", "imp", "--check", "--split", "holdout", "--", "cat")
        self.assertEqual((done.status, "holdout" in done.stderr, "hidden words" in done.stdout), (2, True, False))

    def test_a_case_can_be_chosen_and_json_has_it_all(self):
        done = run_cli("run", "imp", "--check", "--json", "--id", "b", "--", *PYTHON, READS + "print('{}')")
        answer = json.loads(done.stdout)
        self.assertEqual((answer["ok"], answer["code"], answer["case_id"], answer["status"]), (False, 1, "b", ["protocol_error"]))
        self.assertTrue(answer["problems"][0].startswith("wrong: the answer has neither 'output' nor 'error'"))

    def test_wrong_usage(self):
        for argv, told in (
            (("imp", "--", "cat"), "--stage S is missing"),
            (("imp", "--check"), "there is no command to run"),
            (("imp", "--check", "--", "nope"), "there is no program 'nope'"),
            (("imp", "--check", "--replay", "x"), "--check tries a command"),
        ):
            with self.subTest(argv):
                done = run_cli("run", *argv)
                self.assertEqual((done.status, told in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
