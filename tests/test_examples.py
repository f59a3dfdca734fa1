"""The examples, replayed: each gives the figures that its page promises."""

import json
import shutil
import sys
import unittest

import support
from support import ROOT, kaizen, read_json, read_lines, run_cli, write

EXAMPLES = ROOT / "examples"


class Example(support.TemporaryFolder):
    """A copy of examples/ in a folder of its own."""

    def setUp(self):
        super().setUp()
        shutil.copytree(EXAMPLES, self.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))

    def run_stage(self, place, stage, *command, options=(), status=0):
        done = run_cli("run", f"examples/{place}", "--stage", stage, "--progress", "none", *options, "--", sys.executable, *command)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done

    def gate(self, place):
        return json.loads(run_cli("gate", f"examples/{place}", "--json").stdout)


class SupportAgent(Example):
    """Confirmation before action: one improvement, one regression, the same average."""

    PLACE = "support-agent/confirmation-before-action"

    def run_both(self):
        for stage in ("baseline", "candidate"):
            self.run_stage(self.PLACE, stage, "examples/support-agent/agent.py", stage, options=("--jobs", "2"))

    def test_the_average_hides_an_improvement_and_a_regression(self):
        self.run_both()
        answer = self.gate(self.PLACE)
        self.assertEqual((answer["recommendation"], answer["code"]), ("rejected", 1))
        self.assertEqual([answer["rates"][role]["passed"] for role in ("baseline", "candidate")], [7, 7])
        self.assertEqual([reason["code"] for reason in answer["reasons"]], ["hard_failure", "regressions"])
        self.assertEqual(answer["reasons"][1]["cases"], ["urgent-refund-asks-first"])
        self.assertEqual((answer["counts"]["improved"], answer["counts"]["regressed"], answer["counts"]["unchanged"]), (1, 1, 6))

    def test_the_demo_is_this_example(self):
        for name, text in (("agent.py", kaizen.DEMO_AGENT),):
            self.assertEqual((EXAMPLES / "support-agent" / name).read_text(encoding="utf-8"), text)
        for name, text in (("test_cases.jsonl", kaizen.DEMO_CASES), ("evaluation.json", kaizen.DEMO_EVALUATION), ("issue.md", kaizen.DEMO_ISSUE)):
            self.assertEqual((EXAMPLES / self.PLACE / name).read_text(encoding="utf-8"), text)


class ExecutionBridge(Example):
    """Every way an agent can end."""

    def test_endings_without_evidence_are_errors_not_fails(self):
        done = self.run_stage("execution-bridge", "baseline", "examples/runners/fake_agent.py", options=("--timeout", "1", "--jobs", "4"), status=4)
        self.assertIn("--only errors", done.stdout + done.stderr)
        found = {line["case_id"]: line for line in read_lines("examples/execution-bridge/baseline.jsonl")}
        statuses = {name: line["status"] for name, line in found.items()}
        completed = dict.fromkeys(("answers", "calls-a-tool", "logs-first", "private-folder", "seed"), "completed")
        broken = {"says-error": "error", "garbage": "protocol_error", "nothing": "protocol_error", "exits-3": "error", "killed": "error", "hangs": "timeout"}
        self.assertEqual(statuses, {**completed, **broken})
        self.assertIn("SIGKILL", json.dumps(found["killed"]["error"]))
        self.assertEqual(found["says-error"]["error"]["class"], "environment")
        answer = json.loads(run_cli("evaluate", "examples/execution-bridge", "--json").stdout)
        self.assertEqual(answer["stages"]["baseline"]["counts"], {"pass": 5, "fail": 0, "error": 6})


class Gsm8k(Example):
    """Two real models on 200 problems: 45 and 65 correct, 34 improved, 14 regressed, 152 unchanged."""

    def check(self):
        answer = self.gate("gsm8k")
        self.assertEqual([answer["rates"][role]["passed"] for role in ("baseline", "candidate")], [45, 65])
        counts = answer["counts"]
        self.assertEqual([counts[key] for key in ("improved", "regressed", "unchanged", "not_comparable")], [34, 14, 152, 0])
        self.assertEqual((answer["recommendation"], answer["reasons"][0]["code"]), ("rejected", "regressions"))
        for stage, model in (("baseline", "6b_finetuning"), ("candidate", "175b_finetuning")):
            published = {line["case_id"]: line["published_is_correct"] for line in read_lines(f"examples/gsm8k/answers/{model}.jsonl")}
            mine = {line["case_id"]: line["outcome"] == "pass" for line in read_lines(f"examples/gsm8k/{stage}.evaluated.jsonl")}
            self.assertEqual(mine, published)

    def test_through_an_agent_process_and_all_other_ways(self):
        """All ways give the same, but for `execution` in the observations and the duration that results copy from it."""
        agent = (sys.executable, "-I", "-S", "examples/gsm8k/lookup_agent.py")
        for stage, model in (("baseline", "6b_finetuning"), ("candidate", "175b_finetuning")):
            options = ("--jobs", "2", "--persistent")
            self.run_stage("gsm8k", stage, *agent[1:], f"examples/gsm8k/answers/{model}.jsonl", options=options)
        self.check()
        cases = self.folder / "examples/gsm8k/test_cases.jsonl"
        write(cases, "".join(cases.read_text(encoding="utf-8").splitlines(keepends=True)[:40]))  # each a process of its own
        answers = "examples/gsm8k/answers/6b_finetuning.jsonl"
        self.run_stage("gsm8k", "process", *agent[1:], answers, options=("--jobs", "2"))
        self.assertEqual(run_cli("evaluate", "examples/gsm8k", "--stage", "process").status, 0)
        self.assertEqual({line["outcome"] for line in read_lines("examples/gsm8k/process.evaluated.jsonl")}, {"pass", "fail"})
        for way, words in (
            ("plain", ("--plain", "--", *agent, answers, "--plain")),
            ("persistent", ("--persistent", "--", *agent, answers)),
            ("replay", ("--replay", answers)),
        ):
            with self.subTest(way):
                done = run_cli("run", "examples/gsm8k", "--stage", way, "--jobs", "2", "--progress", "none", *words)
                self.assertEqual(done.status, 0, done.stderr)
                self.assertEqual(run_cli("evaluate", "examples/gsm8k", "--stage", way).status, 0)
                self.assertEqual(self.lines_of(way), self.lines_of("process"))

    def lines_of(self, stage):
        """Observations and results of a stage as text, without what differs from run to run."""
        kept = [("jsonl", "execution"), ("evaluated.jsonl", "duration_ms")]
        files = [[{**line, left_out: None} for line in read_lines(f"examples/gsm8k/{stage}.{suffix}")] for suffix, left_out in kept]
        return [json.dumps(line) for lines in files for line in lines]

    def test_replayed(self):
        for stage, model in (("baseline", "6b_finetuning"), ("candidate", "175b_finetuning")):
            done = run_cli("run", "examples/gsm8k", "--stage", stage, "--replay", f"examples/gsm8k/answers/{model}.jsonl", "--progress", "none")
            self.assertEqual(done.status, 0, done.stderr)
        self.check()

    def test_regressions_come_first_on_the_page(self):
        self.test_replayed()
        self.assertEqual(run_cli("review", "examples/gsm8k").status, 0)
        page = (self.folder / "examples/gsm8k/review.md").read_text(encoding="utf-8")
        regressed = [row["id"] for row in read_json("examples/gsm8k/comparison.json")["cases"] if row["change"] == "regressed"]
        improved = [row["id"] for row in read_json("examples/gsm8k/comparison.json")["cases"] if row["change"] == "improved"]
        self.assertLess(page.index(regressed[0]), page.index(improved[0]))


AGENTS = {"silent": 'import json; print(json.dumps({"output": ""}))', "bare": "print('{}')", "gone": "pass"}


class NothingPasses(Example):
    """Field case 56: an agent that does nothing passes no example."""

    def test_an_agent_that_does_nothing_passes_no_example(self):
        for place in ("support-agent/confirmation-before-action", "execution-bridge", "gsm8k"):
            cases = read_lines(f"examples/{place}/test_cases.jsonl")[:12]
            write(f"examples/{place}/test_cases.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
            for name, text in AGENTS.items():
                with self.subTest(example=place, agent=name):
                    write("agent.py", text)
                    self.run_stage(place, name, "agent.py", options=("--jobs", "4"), status=0 if name == "silent" else 4)
                    run_cli("evaluate", f"examples/{place}", "--stage", name)
                    outcomes = {line["outcome"] for line in read_lines(f"examples/{place}/{name}.evaluated.jsonl")}
                    self.assertNotIn("pass", outcomes)
                    if name != "silent":
                        self.assertEqual({line["status"] for line in read_lines(f"examples/{place}/{name}.jsonl")}, {"protocol_error"})


class Demo(support.TemporaryFolder):
    """`kaizen demo`, from the single file copied anywhere."""

    def test_it_shows_one_improvement_and_one_regression(self):
        done = run_cli("demo")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertRegex(done.stdout, r"improved +partial-refund-after-yes")
        self.assertRegex(done.stdout, r"regressed +urgent-refund-asks-first")
        self.assertIn("rejected", done.stdout)
        self.assertLessEqual(len(done.stdout.splitlines()), 10)
        page = self.folder / "kaizen-demo/improvements/confirmation-before-action/review.html"
        self.assertIn("urgent-refund-asks-first", page.read_text(encoding="utf-8"))

    def test_it_is_made_anew_and_never_over_a_folder_of_yours(self):
        self.assertEqual(run_cli("demo").status, 0)
        write("kaizen-demo/improvements/confirmation-before-action/mine.txt", "x")
        self.assertEqual(run_cli("demo").status, 0)
        self.assertFalse((self.folder / "kaizen-demo/improvements/confirmation-before-action/mine.txt").exists())
        (self.folder / "kaizen-demo/.made-by-kaizen-demo").unlink()
        done = run_cli("demo")
        self.assertEqual(done.status, 5)
        self.assertIn("no demo made it", done.stderr)

    def test_the_single_file_copied_anywhere_is_enough(self):
        shutil.copy(support.BUNDLE, self.folder / "kaizen.py")
        done = support.run_process("demo", program=self.folder / "kaizen.py", cwd=self.folder)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertIn("rejected", done.stdout)


if __name__ == "__main__":
    unittest.main()
