"""docs/adapters.md: its adapter runs in both ways, and what it says of fields and errors is so."""

import re
import sys
import unittest

from support import ROOT, TemporaryFolder, read_lines, run_cli, write

TEXT = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
(ADAPTER,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
CASES = '{"id": "one", "input": {"order": "A-7"}, "split": "development"}\n{"id": "two", "input": {"order": "B-9"}, "split": "development"}\n'
EVALUATION = """{"version": 1, "evaluators": [
    {"id": "refunds", "type": "sequence", "steps": [{"name": "issue_refund", "agent": "billing", "status": "ok"}]},
    {"id": "nothing_else", "type": "steps", "match": {"name": "delete_*"}, "max": 0}]}"""


class Adapter(TemporaryFolder):
    """The adapter of the page, and answers made from it."""

    def setUp(self):
        super().setUp()
        write("improvements/desk/test_cases.jsonl", CASES)
        write("improvements/desk/evaluation.json", EVALUATION)

    def observed(self, text, *options, status=0):
        write("adapter.py", text)
        done = run_cli("run", "desk", "--stage", "baseline", "--overwrite", "--progress", "none", *options, "--", sys.executable, "-I", "-S", "adapter.py")
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return read_lines("improvements/desk/baseline.jsonl")

    def outcomes(self):
        run_cli("evaluate", "desk")
        return [line["outcome"] for line in read_lines("improvements/desk/baseline.evaluated.jsonl")]

    def test_it_serves_both_ways_alike(self):
        ways = [[{**line, "execution": None} for line in self.observed(ADAPTER, *options)] for options in ((), ("--persistent",))]
        self.assertEqual(ways[0], ways[1])
        self.assertEqual([line["steps"][0]["args"] for line in ways[0]], [{"order": "A-7"}, {"order": "B-9"}])
        self.assertEqual(self.outcomes(), ["pass", "pass"])
        self.assertNotIn("notes", ways[0][0])

    def test_it_is_found_right_by_check(self):
        write("adapter.py", ADAPTER)
        self.assertEqual(run_cli("run", "desk", "--check", "--", sys.executable, "adapter.py").status, 0)

    def test_a_service_that_fails_is_the_environment_s_doing(self):
        text = ADAPTER.replace("    trace = ", "    raise ConnectionError('no route')\n    trace = ")
        self.assertEqual([(line["status"], line["error"]["class"]) for line in self.observed(text, status=4)], [("error", "environment")] * 2)
        self.assertEqual(self.outcomes(), ["error", "error"])

    def test_an_adapter_that_is_wrong_is_an_error_of_the_runner(self):
        text = ADAPTER.replace('event["failed"]', 'event["fail"]')
        self.assertEqual([(line["status"], line["error"]["class"]) for line in self.observed(text, status=4)], [("error", "runner")] * 2)

    def test_no_steps_is_a_claim_and_absent_steps_are_not_measurable(self):
        told = 'print(\'{"output": "done", STEPS "passed": true, "score": 1}\')\n'
        write("improvements/desk/evaluation.json", EVALUATION.replace('{"id": "refunds"', '{"id": "refunds", "severity": "info"'))
        (line, _) = self.observed(told.replace("STEPS", '"steps": [],'))
        self.assertEqual(line["metadata"]["claimed"], {"passed": True, "score": 1})
        self.assertEqual(self.outcomes(), ["pass", "pass"])
        self.observed(told.replace("STEPS", ""))
        self.assertEqual(self.outcomes(), ["error", "error"])

    def test_every_row_of_the_table_names_a_field_that_is_recorded(self):
        answer = """{"output": "x", "finish_reason": "max_steps", "agents": ["a"], "usage": {"total_tokens": 1}, "cost": {"total_usd": 0},
            "state": {"before": {}, "after": {}}, "files": {"f": {"change": "added"}}, "evidence": {"tools": []}, "metadata": {"trace": "t"}, "steps": [
            {"kind": "message", "role": "user", "text": "hi"}, {"kind": "handoff", "name": "b", "agent": "a", "id": "1"},
            {"kind": "approval", "name": "t", "args": {}, "status": "denied"}, {"kind": "span", "parent": "1", "turn": 1}, {"kind": "retrieval"},
            {"kind": "model"}, {"kind": "skill", "name": "s"}, {"kind": "command", "name": "sh"}, {"kind": "tool", "name": "t", "batch": "m", "truncated": ["result"]}]}"""
        (line, _) = self.observed(f"print({' '.join(answer.split())!r})\n")
        self.assertNotIn("notes", line)
        self.assertEqual(len(line["steps"]), 9)
        table = TEXT[TEXT.index("## What goes where") : TEXT.index("## What must not")]
        for name in set(line) & {"output", "finish_reason", "agents", "usage", "cost", "state", "files", "evidence", "metadata"}:
            self.assertRegex(table, rf"`{name}[`.]")
        for step in line["steps"]:
            self.assertIn(step["kind"], table)


if __name__ == "__main__":
    unittest.main()
