"""Secrets are masked before evidence is written or shown, and before anything is cut short."""

import json
import os
import shutil
import sys
import unittest

import support
from support import DATA, kaizen, make_improvement, read_json, read_lines, run_cli, run_process, write, write_lines
from test_foundation_redact import ISSUED, WORD, mask

PYTHON = [sys.executable, "-S"]
AWS = dict(ISSUED)["aws_key"]
NPM = dict(ISSUED)["npm_token"]


@unittest.skipIf(os.name == "nt", "programs are started on Linux and macOS only")
class FieldCase43(support.TemporaryFolder):
    """Keys in the command, on stderr and in the output."""

    def test_43_no_secret_is_written_or_shown_anywhere(self):
        shutil.copytree(DATA / "field_cases/43-secrets-in-records", self.folder / "case")
        secrets = (self.folder / "case/secrets.txt").read_text().split()
        (self.folder / "case/secrets.txt").unlink()
        (self.folder / "case/runner.py").rename(self.folder / "runner.py")  # it holds two of them, and is not ours
        write("case/evaluation.json", json.dumps({"evaluators": [{"id": "names-key", "type": "contains", "values": ["key-id"]}]}))
        environment = {"DEMO_API_KEY": secrets[1]}
        command = ["--", *PYTHON, "runner.py", "--api-key", secrets[0]]
        shown = ""
        for arguments in (
            ("run", "case", "--stage", "baseline", "--progress", "plain", *command),
            ("test", "case", "--progress", "plain", *command),
            ("evaluate", "case"), ("review", "case"), ("validate", "case"), ("gate", "case", "--json"),
            ("run", "case", "--stage", "candidate", "--progress", "none", "--resume", *command),
        ):
            done = run_process(*arguments, env=environment)
            self.assertIn(done.status, (0, 1, 3), done.stdout + done.stderr)
            shown += done.stdout + done.stderr
        (self.folder / "runner.py").unlink()
        written = [path for path in self.folder.rglob("*") if path.is_file()]
        self.assertGreater(len(written), 8)
        for secret in secrets:
            self.assertNotIn(secret, shown)
            for path in written:
                self.assertNotIn(secret.encode(), path.read_bytes(), path.name)
        meta = read_json("case/baseline.meta.json")
        self.assertEqual(meta["command"], [*PYTHON, "runner.py", "--api-key", mask("named_secret")])
        for record in read_lines("case/baseline.jsonl"):
            self.assertEqual(record["output"], f"config says key-id={mask('aws_key')}")
            self.assertIn(f"Authorization: Bearer {mask('authorization')}", record["execution"]["stderr_tail"])
            self.assertEqual(record["redacted"], [
                {"pointer": "/output", "family": "aws_key", "count": 1},
                {"pointer": "/execution/stderr_tail", "family": "authorization", "count": 1},
            ])
        results = read_lines("case/baseline.evaluated.jsonl")
        self.assertEqual([result["evaluations"][0]["status"] for result in results], ["pass", "pass"])

    def test_43_a_run_that_breaks_shows_the_command_without_the_secret(self):
        shutil.copytree(DATA / "field_cases/43-secrets-in-records", self.folder / "case")
        write("case/evaluation.json", json.dumps({"evaluators": [{"id": "a", "type": "contains", "values": ["x"]}]}))
        command = ["--", *PYTHON, "-c", f"import sys; sys.exit('no access with {AWS}')", "--api-key", WORD]
        done = run_process("run", "case", "--stage", "baseline", *command)
        self.assertEqual(done.status, 4)
        self.assertIn("--only errors", done.stdout + done.stderr)
        self.assertIn(mask("aws_key"), (self.folder / "case/baseline.jsonl").read_text())
        for text in (done.stdout, done.stderr, *[path.read_text() for path in (self.folder / "case").glob("baseline*")]):
            self.assertNotIn(AWS, text)
            self.assertNotIn(WORD, text)
        done = run_process("run", "case", "--stage", "other", "--", f"DEMO_API_KEY={WORD}", "./agent")
        self.assertEqual(done.status, 2)
        self.assertIn(f"DEMO_API_KEY={mask('named_secret')}", done.stderr)


class Observations(support.TemporaryFolder):
    """What `kaizen run` records of answers that hold secrets."""

    def run_agent(self, body, *options, status=0, env=None):
        """The records of a stage whose runner is *body*, a piece of Python."""
        make_improvement("one", [{"id": f"case {AWS}", "input": AWS}], [{"id": "a", "type": "contains", "values": ["x"]}])
        write("agent.py", f"import json, os, sys\nsys.stdin.read()\n{body}\n")
        self.done = run_cli("run", "one", "--stage", "s", "--progress", "none", *options, "--", *PYTHON, "agent.py", env=env)
        self.assertEqual(self.done.status, status, self.done.stdout + self.done.stderr)
        return read_lines("improvements/one/s.jsonl")

    def test_output_steps_and_error_are_masked_and_what_names_the_trial_is_not(self):
        answer = {"output": {"text": AWS}, "steps": [{"kind": "tool", "name": "get", "args": {"token": "x"}, "result": f"token={WORD}"}], "odd": 1}
        (record,) = self.run_agent(f"print({json.dumps(json.dumps(answer))})")
        self.assertEqual(record["case_id"], f"case {AWS}")
        self.assertEqual(record["output"], {"text": mask("aws_key")})
        self.assertEqual(record["steps"][0]["args"], {"token": "x"})
        self.assertEqual(record["steps"][0]["result"], f"token={mask('named_secret')}")
        self.assertEqual(record["redacted"], [
            {"pointer": "/output/text", "family": "aws_key", "count": 1},
            {"pointer": "/steps/0/result", "family": "named_secret", "count": 1},
        ])
        self.assertEqual(list(record)[-1], "redacted")
        self.assertIn("note: secrets were masked before they were written: aws_key in 1 trial and named_secret in 1 trial", self.done.stderr)

    def test_an_answer_without_a_secret_has_no_such_list(self):
        (record,) = self.run_agent('print(json.dumps({"output": "reset your password with the token, tokens: 3"}))')
        self.assertNotIn("redacted", record)
        self.assertNotIn("masked", self.done.stderr)

    def test_values_of_secret_variables_are_masked_wherever_they_stand(self):
        (record,) = self.run_agent('print(json.dumps({"output": "<" + os.environ["MY_TOKEN"] + ">"}))', env={"MY_TOKEN": WORD})
        self.assertEqual(record["output"], f"<{mask('environment')}>")

    def test_an_error_that_was_reported_is_masked_on_disk_and_on_the_terminal(self):
        (record,) = self.run_agent(f'print(json.dumps({{"error": {{"message": "bad key {AWS}"}}}}))', status=4)
        self.assertEqual(record["error"]["message"], f"bad key {mask('aws_key')}")
        self.assertIn(f"bad key {mask('aws_key')}", self.done.stdout)
        self.assertNotIn(AWS, self.done.stdout.replace(f"case {AWS}", "") + self.done.stderr)

    def test_masked_evidence_that_is_replayed_stays_listed(self):
        key = {"pointer": "/output", "family": "npm_token", "count": 1}
        lines = [{"case_id": f"case {AWS}", "output": f"{mask('npm_token')} {AWS}", "redacted": [key, {"pointer": "/gone", "family": "x", "count": 1}, 7]}]
        write_lines("recorded.jsonl", lines)
        make_improvement("one", [{"id": f"case {AWS}", "input": 1}], [{"id": "a", "type": "contains", "values": ["x"]}])
        done = run_cli("run", "one", "--stage", "s", "--progress", "none", "--replay", "recorded.jsonl")
        self.assertEqual(done.status, 0, done.stderr)
        (record,) = read_lines("improvements/one/s.jsonl")
        self.assertEqual(record["output"], f"{mask('npm_token')} {mask('aws_key')}")
        self.assertEqual(record["redacted"], [key, {"pointer": "/output", "family": "aws_key", "count": 1}])


class Shown(support.TemporaryFolder):
    """What is printed and was not evidence before."""

    def setUp(self):
        super().setUp()
        make_improvement("one", [{"id": "c", "input": 1}], [{"id": "a", "type": "contains", "values": ["x"]}])

    def test_the_check_of_a_runner_shows_no_secret_that_it_prints(self):
        for body in (f'{{"error": {{"message": "bad key {AWS}"}}}}', f'{{"{AWS}": 1}}', f"{AWS} {{", f'{{"output": "{AWS}", "log": "{AWS}"}}'):
            write("agent.py", f"import sys\nsys.stdin.read()\nprint({body!r})\n")
            for form in ((), ("--json",)):
                done = run_cli("run", "one", "--check", *form, "--", *PYTHON, "agent.py")
                self.assertIn("aws_key" if not form else "c", done.stdout)
                self.assertNotIn(AWS, done.stdout + done.stderr, body)

    def test_errors_and_hints_repeat_no_secret_of_the_command_line(self):
        for arguments in (
            ("run", "one", "--stage", "s", AWS), ("run", "one", "--stage", "s", "--cwd", f"/{AWS}", "--", "x"), ("run", "one", "--stage", "s", "--env", f"A={AWS}", "--", "x"),
            ("run", "one", "--check", "--", f"./{AWS}"), ("run", "one", "--stage", "s", "--replay", AWS), ("validate", AWS), ("run", "one", "--stage", "s", "--keep", f"/{AWS}", "--", *PYTHON, "x"),
        ):  # fmt: skip
            for form in ((), ("--json",)):
                done = run_cli(*arguments[:2], *form, *arguments[2:])
                self.assertEqual(done.status, 2, arguments)
                self.assertIn(mask("aws_key"), done.stderr)
                self.assertNotIn(AWS, done.stdout + done.stderr)


class Cuts(support.StrictTestCase):
    """No cut leaves part of a secret."""

    def assert_no_part(self, text, secret):
        for start in range(len(secret) - 7):
            self.assertNotIn(secret[start : start + 8], text)

    def test_a_secret_across_the_end_of_a_message(self):
        for before in range(960, 1001, 4):
            text, hits = kaizen.cut_head("x" * before + " " + NPM + " " + "y" * 30_000, 1000, "/error/message")
            self.assert_no_part(text, NPM)
            self.assertEqual(hits, [{"pointer": "/error/message", "family": "npm_token", "count": 1}])

    def test_a_secret_across_the_beginning_of_a_tail(self):
        for after in range(60, 101, 4):
            data = ("x" * 40_000 + f" password={WORD} " + "y" * after).encode()
            text, hits = kaizen.cut_tail(data, 100, 500, "standard error", "/log")
            self.assert_no_part(text, WORD)
            self.assertEqual(hits, [{"pointer": "/log", "family": "named_secret", "count": 1}])
            self.assertTrue(text.startswith(f"[{len(data) + 400:,} bytes of standard error before this were cut]\n"), text[:80])

    def test_a_secret_in_the_middle_of_an_excerpt(self):
        for before in range(200, 241, 4):
            for far in (1000, 60_000):
                text, hits = kaizen.cut_middle(f"{'x' * before} {NPM} {'y' * far} {NPM} {'z' * before}".encode(), "/p")
                self.assert_no_part(text, NPM)
                self.assertEqual(hits, [{"pointer": "/p", "family": "npm_token", "count": 2}])

    def test_what_is_kept_whole_is_masked_with_its_observation(self):
        self.assertEqual(kaizen.cut_head(NPM, 100, "/p"), (NPM, []))
        self.assertEqual(kaizen.cut_tail(NPM.encode(), 100, 0, "log", "/p"), (NPM, []))
        self.assertEqual(kaizen.cut_middle(NPM.encode(), "/p"), (NPM, []))

    def test_a_secret_across_the_end_of_what_the_pipe_keeps_of_standard_error(self):
        limit = kaizen.STDERR_LIMIT + kaizen.CUT_MARGIN
        program = f"import sys; sys.stderr.write('a ' * 60_000 + 'password={WORD} ' + 'y' * {kaizen.STDERR_LIMIT - 6})"
        ended = kaizen.run_program([sys.executable, "-c", program], environment={}, stderr_limit=limit)
        attempt = kaizen.process_attempt(ended._replace(exit_code=1), "2026-01-01T00:00:00Z", 5)
        self.assert_no_part(attempt.stderr, WORD)
        self.assertEqual(attempt.fields["redacted"], [{"pointer": "/error/stderr_tail", "family": "named_secret", "count": 1}])
        self.assertIn("redacted", kaizen.observation_document("a", 1, "sha256:x", attempt, 1))


if __name__ == "__main__":
    unittest.main()
