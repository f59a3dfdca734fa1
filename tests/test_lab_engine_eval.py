"""A system that names an improvement: the engine is its eval, and everything of the engine works on its runs."""

import json
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import repositories
from support import read_json, read_lines, run_cli, write, write_lines

import kaizen

AGENT = """\
import json, sys
case = json.load(sys.stdin)["case"]
print(json.dumps({{"output": {answer}, "cost": {{"total_usd": 0.01}}}}))
"""
CANARY = "holdout-canary-7351"
CASES = [
    *({"id": f"c{n}", "input": n, "expected": str(n), "split": "development"} for n in range(1, 5)),
    {"id": CANARY, "input": CANARY, "expected": CANARY, "split": "holdout"},
]
EVALUATION = {
    "version": 1,
    "include": ["../../datasets/regression.jsonl"],
    "evaluators": [{"id": "answer", "type": "equals", "value": {"$case": "/expected"}}],
}
SYSTEM_MD = """\
---
improvement: improvements/refund
runner:
  - {python}
  - -S
  - agent.py
mutable:
  - agent.py
{further}---
# refunds
"""


class EngineSystem(repositories.Repository):
    made: "Path | None" = None

    def setUp(self):
        if EngineSystem.made is None:
            super().setUp()
            self.make()
            EngineSystem.made = Path(tempfile.mkdtemp(prefix="kaizen-engine-"))
            unittest.addModuleCleanup(EngineSystem.forget)
            shutil.copytree(self.repo, EngineSystem.made / "repo", symlinks=True)
        else:
            with mock.patch.object(EngineSystem, "git"):
                super().setUp()
            shutil.rmtree(self.repo)
            shutil.copytree(EngineSystem.made / "repo", self.repo, symlinks=True)
        self.improvement = self.repo / "improvements/refund"
        os.chdir(self.repo)

    @staticmethod
    def forget():
        shutil.rmtree(EngineSystem.made)
        EngineSystem.made = None

    def make(self):
        kaizen.init_workspace(str(self.repo))
        write(self.repo / "kaizen/config.json", json.dumps({"version": 1, "item_timeout_seconds": 10}))
        write_lines(self.repo / "improvements/refund/test_cases.jsonl", CASES)
        write_lines(self.repo / "datasets/regression.jsonl", [{"id": "old", "input": 9, "expected": "9", "split": "regression"}])
        write(self.repo / "improvements/refund/evaluation.json", json.dumps(EVALUATION))
        self.write_system()
        self.agent_says("'1'")

    def write_system(self, further=""):
        write(self.repo / "kaizen/systems/refunds/system.md", SYSTEM_MD.format(python=json.dumps(sys.executable), further=further))

    def agent_says(self, answer):
        """Commits an agent whose output is the Python expression *answer* over `case`."""
        write(self.repo / "agent.py", AGENT.format(answer=answer))
        self.commit("variant")

    def run_refunds(self, *options, status=0):
        done = run_cli("run", "--system", "refunds", "--variant", "v", "--json", *options)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        self.assertNotIn(CANARY, done.stdout + done.stderr)
        return self.document()

    def runs(self):
        return sorted((self.repo / "kaizen/.kaizen/runs").iterdir())

    def document(self):
        return read_json(self.runs()[-1] / "run.json")

    def lines(self):
        return read_lines(self.runs()[-1] / "items.jsonl")


class Running(EngineSystem):
    def test_a_run_is_run_and_evaluate_of_all_cases_but_the_holdout(self):
        before = repositories.tree_of(self.improvement)
        document = self.run_refunds()
        self.assertEqual((document["state"], document["separation"]), ("completed", "engine"))
        self.assertEqual(document["result"], {"status": "available", "value": 0.2, "n": 5, "planned": 5})
        self.assertEqual(document["metric"]["name"], "pass_rate")
        self.assertAlmostEqual(document["cost_usd"], 0.05)
        self.assertEqual([(line["item"], line["score"]) for line in self.lines()], [("c1", 1), ("c2", 0), ("c3", 0), ("c4", 0), ("old", 0)])
        self.assertIn("answer: ", self.lines()[1]["feedback"])
        names = {path.name for path in self.runs()[0].iterdir()}
        self.assertLessEqual({f"r0001{end}" for end in (".jsonl", ".meta.json", ".evaluated.jsonl", ".evaluated.meta.json")}, names)
        self.assertEqual(repositories.tree_of(self.improvement), before)
        self.assertNotIn(CANARY, "".join(path.read_text() for path in self.runs()[0].glob("*.*")))

    def test_seeds_are_those_of_the_run_and_git_says_nothing_to_the_runner(self):
        self.agent_says("[__import__('os').environ.get(name) for name in ('KAIZEN_SEED', 'GIT_DIR', 'KAIZEN_SYSTEM')]")
        with mock.patch.dict(os.environ, {"GIT_PREFIX": "x"}):
            document = self.run_refunds()
        observed = read_lines(self.runs()[0] / "r0001.jsonl")[0]
        self.assertEqual(observed["output"], [str(kaizen.item_seed(document["seed"], "c1", 1, 1)), None, "refunds"])

    def test_an_agent_that_crashes_is_missing_and_no_failure(self):
        self.agent_says("'1' if case['input'] != 3 else sys.exit(3)")
        document = self.run_refunds()
        self.assertEqual(document["counts"], {"ok": 4, "fail_error": 0, "infra_error": 1, "timeout": 0, "missing": 0})
        self.assertEqual([line["attempt"] for line in self.lines() if line["item"] == "c3"], [1, 2, 3])
        self.agent_says("'1' if case['input'] in (1, 2) else sys.exit(3)")
        document = self.run_refunds(status=4)
        self.assertEqual((document["state"], document["reason"]), ("incomplete", "too_many_missing"))

    def test_the_score_of_the_trial_can_be_the_metric(self):
        self.write_system("metric: score\naggregation: median\n")
        self.agent_says("str(case['input'])")
        self.assertEqual(self.run_refunds()["result"]["value"], 1)
        for further in ("metric: accuracy\n", "aggregation: f1\n"):
            self.write_system(further)
            self.commit("metric")
            done = run_cli("run", "--system", "refunds", "--variant", "v", "--json")
            self.assertEqual((done.status, json.loads(done.stdout)["reason"]), (2, "unknown_metric"))

    def test_a_runner_that_cannot_be_started_is_a_crash(self):
        text = (self.repo / "kaizen/systems/refunds/system.md").read_text()
        write(self.repo / "kaizen/systems/refunds/system.md", text.replace(json.dumps(sys.executable), "./nobody"))
        self.commit("runner")
        document = self.run_refunds(status=4)
        self.assertEqual((document["state"], document["reason"]), ("crashed", "cannot_start"))

    def test_an_agent_that_changes_the_locked_copy_taints_the_run(self):
        copies = "[p.write_text('{}') for p in __import__('pathlib').Path('kaizen/.kaizen/runs').glob('*/locked/improvements/refund/eval*')]"
        self.agent_says(f"[{copies}, '1'][1]")
        document = self.run_refunds(status=4)
        self.assertEqual((document["state"], document["reason"], self.lines()), ("tainted", "tree_changed", []))

    def test_a_run_that_was_broken_off_goes_on_with_what_is_missing(self):
        """The runner hangs on the third case until the run is stopped; then it no longer does."""
        count = write(self.folder / "count", "")
        hang = f"__import__('time').sleep(60 * (len(open({str(count)!r}).read()) == 3 and 'HANG' in __import__('os').environ))"
        self.agent_says(f"[open({str(count)!r}, 'a').write('x'), {hang}, '1'][2]")
        original = kaizen.run_stage

        def stopped(request):
            return original(request._replace(may_go_on=lambda: request.may_go_on() and len(count.read_text()) < 3))

        with mock.patch.dict(os.environ, {"HANG": "1"}), mock.patch.object(kaizen, "run_stage", stopped):
            done = run_cli("run", "--system", "refunds", "--variant", "v", "--json")
        self.assertEqual((done.status, self.document()["state"]), (130, "interrupted"), done.stderr)
        done = run_cli("resume", "r0001", "--json")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(self.document()["result"]["value"], 0.2)
        self.assertEqual(len(count.read_text()), 6)  # the third case twice, the others once
        self.assertEqual(len(read_lines(self.runs()[0] / "r0001.jsonl")), 5)


class Comparing(EngineSystem):
    def setUp(self):
        super().setUp()
        self.run_refunds()
        self.agent_says("str(case['input'])")
        self.run_refunds()

    def told(self, *argv, status=0):
        done = run_cli(*argv, "--json")
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        self.assertNotIn(CANARY, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_everything_of_the_engine_works_on_two_runs(self):
        pair = ("--baseline", "run:r0001", "--candidate", "run:r0002")
        review = self.told("review", *pair)
        self.assertEqual((review["recommendation"], review["counts"]["improved"]), ("eligible", 4))
        self.assertIn("kaizen decide run:r0002", review["next"])
        folder = self.runs()[1]
        self.assertTrue(all((folder / name).exists() for name in ("review.html", "review.md", "comparison.json", "decision.yaml")))
        self.assertIn("refund (r0002)", (folder / "review.md").read_text())
        self.assertNotIn(CANARY, (folder / "review.html").read_text())
        self.assertEqual(self.told("gate", *pair)["reason"], "eligible")
        self.assertEqual(self.told("reliability", *pair)["candidates"][0]["stage"], "r0002")
        weighed = self.told("pareto", "--variant", "old=run:r0001", "--variant", "new=run:r0002", "--baseline", "run:r0001")
        self.assertEqual(weighed["cheapest_feasible"], "new")
        self.assertTrue((self.runs()[0] / "pareto.json").exists())
        self.told("decide", "run:r0002", "--status", "accepted", "--by", "Ann", "--because", "better")
        anchored = self.told("history", "record", "--run", "r0001", "--agent-version", "v1")
        self.assertEqual(anchored["reason"], "recorded")
        recorded = self.told("history", "record", "--run", "r0002", "--baseline", "run:r0001", "--agent-version", "v2")
        self.assertEqual(recorded["reason"], "recorded")
        self.assertTrue((self.repo / "kaizen-history/ledger.jsonl").exists())
        self.assertEqual(self.told("history", "validate")["ok"], True)

    def test_the_steps_that_commands_name_are_about_runs_and_work(self):
        pair = ("--baseline", "run:r0001", "--candidate", "run:r0002")
        review = "kaizen review --baseline run:r0001 --candidate run:r0002"
        self.assertEqual(self.told("reliability", *pair)["next"], review)
        self.assertEqual(self.told("gate", "--baseline", "run:r0002", "--candidate", "run:r0001", status=1)["next"], review.replace("1", "x").replace("2", "1").replace("x", "2"))
        decided = self.told("decide", "run:r0002", "--status", "accepted", "--by", "Ann", "--because", "x", status=5)
        self.assertEqual(decided["next"], "run: kaizen review --baseline run:ID --candidate run:r0002")
        mixed = self.told("pareto", "--variant", "old=run:r0001", "--variant", "new=candidate", status=2)
        self.assertIn("run:ID", mixed["next"])
        began = self.told("history", "init", "run:r0001", "--agent-version", "v1")
        self.assertEqual((began["reason"], began["next"].split(",")[0]), ("anchored", "kaizen history record --run ID --baseline run:r0001 --agent-version V"))
        self.told("review", *pair)
        self.told("decide", "run:r0002", "--status", "accepted", "--by", "Ann", "--because", "better")
        recorded = self.told("history", "record", "--run", "r0002", "--baseline", "run:r0001", "--agent-version", "v2")
        self.assertTrue(recorded["next"].startswith("kaizen history promote "), recorded["next"])
        self.assertEqual(self.told(*recorded["next"].split()[1:])["reason"], "promoted")

    def test_what_cannot_be_compared_is_refused_with_the_reason(self):
        self.told("review", "improvements/refund", "--baseline", "run:r0001", "--candidate", "run:r0002", status=2)
        self.told("review", "--baseline", "run:r0001", "--candidate", "candidate", status=2)
        self.told("gate", status=2)
        self.assertEqual(self.told("gate", "--baseline", "run:r0001", "--candidate", "run:r0009", status=2)["reason"], "no_run")
        store = kaizen.run_store(kaizen.find_workspace())
        for state, separation, status, reason in (("tainted", "engine", 5, "tainted"), ("crashed", "own_process", 2, "no_observations")):
            with store.writing("r0002") as writer:
                writer.finish(state, separation=separation)
            self.assertEqual(self.told("gate", "--baseline", "run:r0001", "--candidate", "run:r0002", status=status)["reason"], reason)

    def test_runs_by_other_evaluators_are_not_comparable(self):
        entry = {**EVALUATION["evaluators"][0], "type": "contains", "values": {"$case": "/expected"}}
        entry.pop("value")
        write(self.improvement / "evaluation.json", json.dumps({**EVALUATION, "evaluators": [entry]}))
        self.commit("evaluators")
        self.run_refunds()
        gated = self.told("gate", "--baseline", "run:r0001", "--candidate", "run:r0003", status=3)
        self.assertIn("incomparable_evaluators", [reason["code"] for reason in gated["reasons"]])


if __name__ == "__main__":
    unittest.main()
