"""examples/langgraph-multi-agent in mock mode: LangGraph's own graph, a script in the model's place, no network."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import ROOT, read_json, read_lines, run_cli

PLACE = "examples/langgraph-multi-agent"
PAGE = (ROOT / PLACE / "README.md").read_text(encoding="utf-8")


class HelpDesk(unittest.TestCase):
    """The whole flow, played once for all tests."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name).resolve()
        for name in ("langgraph-multi-agent", "judges"):
            shutil.copytree(ROOT / "examples" / name, cls.folder / "examples" / name, ignore=shutil.ignore_patterns("__pycache__"))
        words = [sys.executable, f"{PLACE}/flow.py", "--kaizen", ROOT / "kaizen.py"]
        cls.done = subprocess.run(words, cwd=cls.folder, capture_output=True, text=True, check=False)
        cls.stages = ("baseline", "candidate")

    def results(self, stage):
        return {line["case_id"]: line for line in read_lines(self.folder / PLACE / f"{stage}.evaluated.jsonl")}

    def observations(self, stage):
        return {line["case_id"]: line for line in read_lines(self.folder / PLACE / f"{stage}.jsonl")}

    def test_the_version_is_the_one_that_the_example_asks_for(self):
        self.assertIn(f"langgraph=={version('langgraph')}\n", (ROOT / PLACE / "requirements.txt").read_text(encoding="utf-8"))

    def test_the_flow_ends_as_the_page_says(self):
        self.assertEqual(self.done.returncode, 1, self.done.stdout + self.done.stderr)
        comparison = read_json(self.folder / PLACE / "comparison.json")
        self.assertEqual(comparison["recommendation"], "rejected")
        changes = {case["id"]: case["change"] for case in comparison["cases"] if case["change"] != "unchanged"}
        improved = dict.fromkeys(("offline-and-charged-twice", "refund-and-slow-line"), "improved")
        self.assertEqual(changes, {**improved, **dict.fromkeys(("refund-with-approval", "refund-denied"), "regressed")})
        for stage in self.stages:
            self.assertEqual(sum(line["outcome"] == "pass" for line in self.results(stage).values()), 8)
        self.assertIn("8 of 10 messages go well before and after", PAGE)

    def test_the_table_of_the_page(self):
        rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+) of (\d+) \| (\d+) of (\d+) \|$", PAGE, re.MULTILINE)
        found = []
        for name in (entry["id"] for entry in read_json(self.folder / PLACE / "evaluation.json")["evaluators"]):
            counts = [name]
            for stage in self.stages:
                statuses = [entry["status"] for line in self.results(stage).values() for entry in line["evaluations"] if entry["id"] == name]
                self.assertEqual(set(statuses) - {"pass", "fail", "not_applicable"}, set())
                counts += [str(statuses.count("pass")), str(len(statuses) - statuses.count("not_applicable"))]
            found.append(tuple(counts))
        self.assertEqual(found, rows)

    def test_what_only_the_steps_show(self):
        regressed = self.results("candidate")["refund-with-approval"]
        statuses = {entry["id"]: entry["status"] for entry in regressed["evaluations"]}
        self.assertEqual({name for name, status in statuses.items() if status != "pass"}, {"desk_rules"})
        said = {stage: self.observations(stage)["refund-with-approval"]["output"] for stage in self.stages}
        self.assertEqual(said["baseline"], said["candidate"])
        states = self.observations("candidate")["refund-denied"]["state"]
        self.assertEqual((states["before"]["refunds"], states["after"]["refunds"]), ({}, {"7004": 900.0}))

    def test_steps_name_their_agents_and_hand_overs(self):
        both = self.observations("candidate")["offline-and-charged-twice"]
        self.assertEqual(both["agents"], ["supervisor", "technical", "billing"])
        shown = [(step["kind"], step.get("name"), step.get("agent"), step.get("status")) for step in both["steps"]]
        self.assertEqual(
            shown,
            [
                ("message", None, None, None),
                ("handoff", "technical", "supervisor", "ok"),
                ("tool", "run_diagnostics", "technical", "ok"),
                ("tool", "restart_router", "technical", "ok"),
                ("message", None, "technical", None),
                ("handoff", "billing", "supervisor", "ok"),
                ("tool", "get_invoice", "billing", "ok"),
                ("tool", "issue_refund", "billing", "ok"),
                ("message", None, "billing", None),
                ("message", None, "supervisor", None),
            ],
        )
        self.assertNotIn("usage", both)  # the script has no tokens; 0 would be a claim

    def test_approvals_and_failed_lookups_have_their_status(self):
        found = self.observations("baseline")
        steps = {name: {step["name"]: step for step in found[name]["steps"] if "name" in step} for name in found}
        kinds = [(name, steps[name]["issue_refund"]["kind"], steps[name]["issue_refund"]["status"]) for name in ("refund-denied", "unknown-invoice") if "issue_refund" in steps[name]]
        self.assertEqual(kinds, [("refund-denied", "approval", "denied")])
        approved = [(step["kind"], step["status"]) for step in found["refund-with-approval"]["steps"] if step.get("name") == "issue_refund"]
        self.assertEqual(approved, [("approval", "ok"), ("tool", "ok")])
        self.assertEqual(steps["unknown-invoice"]["get_invoice"]["status"], "error")

    def test_the_schemas_are_those_that_the_model_was_given(self):
        tools = self.observations("baseline")["slow-line"]["evidence"]["tools"]
        self.assertEqual([tool["function"]["name"] for tool in tools], ["get_invoice", "request_approval", "issue_refund", "run_diagnostics", "restart_router", "open_ticket"])
        self.assertEqual(tools[2]["function"]["parameters"]["required"], ["invoice", "amount"])

    def test_the_judge_is_named_as_what_it_is(self):
        answers = read_lines(self.folder / PLACE / "candidate.judgements.jsonl")
        self.assertEqual({json.dumps(line["answer"]["judge"], sort_keys=True) for line in answers}, {'{"name": "keyword_judge", "version": "1"}'})

    def test_a_message_that_breaks_a_tool_is_an_error_not_a_fail(self):
        case = '{"id": "broken", "input": {"message": "My router R-99 is offline."}, "context": {"invoices": {}}, "expected": {}}\n'
        place = self.folder / "broken"
        shutil.copytree(self.folder / PLACE, place, ignore=shutil.ignore_patterns("*.jsonl", "*.meta.json"))
        (place / "test_cases.jsonl").write_text(case, encoding="utf-8")
        done = run_cli("run", place, "--stage", "baseline", "--", sys.executable, place / "agent.py", "--prompts", place / "prompts/baseline", cwd=self.folder)
        (line,) = read_lines(place / "baseline.jsonl")
        self.assertEqual((done.status, line["status"], line["error"]["class"]), (4, "error", "agent"), line)


if __name__ == "__main__":
    unittest.main()
