"""Promotion: what each rule refuses, and how the champion passes from cohort to cohort."""

import json
import re
import shutil
import unittest

import support
from history_fixture import ACCEPT, AFTER, BEFORE, TONE_BEFORE, TONE_GAIN, copy_history, improvement, kaizen_json, must, outcomes
from support import kaizen, read_lines, run_cli, write, write_lines
from test_policy_recommendation import CHECK


class Refusals(support.TemporaryFolder):
    """Each with a reason code of its own, exit 5, something to do, and an unchanged ledger."""

    def setUp(self):
        super().setUp()
        improvement("refund", BEFORE, AFTER)
        must("history", "init", "refund", "--agent-version", "v1")
        must("review", "refund")
        must("history", "record", "refund", "--agent-version", "v2")

    def refused(self, code, *words, run="2"):
        before = (self.folder / "kaizen-history/ledger.jsonl").read_bytes()
        answer = kaizen_json("history", "promote", run)
        self.assertEqual((answer["status"], answer["reason"]), (5, code), answer["message"])
        for word in words:
            self.assertIn(word, answer["message"] + " " + answer["next"])
        self.assertTrue(answer["next"])
        self.assertEqual((self.folder / "kaizen-history/ledger.jsonl").read_bytes(), before)

    def decide(self, status="accepted", **fields):
        must("decide", "refund", "--status", status, "--by", "Ada", "--because", "looked at it")

    def test_a_pending_decision(self):
        self.refused("pending", "kaizen decide refund")

    def test_a_decision_of_nobody(self):
        self.decide()
        path = self.folder / "improvements/refund/decision.yaml"
        path.write_text(re.sub("decided_by: .*", 'decided_by: " "', path.read_text()))
        self.refused("no_decision", "who decided", "kaizen decide refund")

    def test_no_decision(self):
        (self.folder / "improvements/refund/decision.yaml").unlink()
        self.refused("no_decision", "kaizen review refund")

    def test_a_rejecting_decision(self):
        self.decide("rejected")
        self.refused("rejected", "'Ada'")

    def test_a_decision_about_other_evidence(self):
        self.decide()
        path = self.folder / "improvements/refund/decision.yaml"
        write(path, re.sub(r"evidence: .*", "evidence: sha256:" + "0" * 64, path.read_text()))
        self.refused("stale_decision", "kaizen review refund")

    def test_observations_that_have_changed_since(self):
        self.decide()
        place = self.folder / "improvements/refund"
        write_lines(place / "candidate.jsonl", [{"status": "completed", **row} for row in outcomes({**AFTER, "c": "yyy"})])
        self.refused("stale_evidence", "changed since")
        must("evaluate", "refund")
        self.refused("stale_evidence", "'candidate'", "history record")

    def test_cases_and_evaluators_and_policy_that_have_changed_since(self):
        self.decide()
        place = self.folder / "improvements/refund"
        cases, evaluation = (place / "test_cases.jsonl").read_text(), json.loads((place / "evaluation.json").read_text())
        write(place / "test_cases.jsonl", cases.replace('"expected": "yes"', '"expected": "Yes"', 1))
        self.refused("stale_evidence", "cases have changed")
        must("evaluate", "refund")
        self.refused("stale_evidence", "the cases in improvements/refund")
        write(place / "test_cases.jsonl", cases)
        write(place / "evaluation.json", json.dumps({**evaluation, "evaluators": [{**CHECK, "severity": "hard"}]}))
        must("evaluate", "refund")
        self.refused("stale_evidence", "the evaluators in improvements/refund")
        write(place / "evaluation.json", json.dumps({**evaluation, "acceptance": {"minimum_improvements": 2}}))
        must("evaluate", "refund")
        self.refused("stale_evidence", "the policy in improvements/refund/evaluation.json")

    def test_a_file_that_is_not_what_was_recorded(self):
        self.decide()
        manifest = json.loads(next((self.folder / "kaizen-history/runs").glob("0002*/manifest.json")).read_text())
        entry = next(each for each in manifest["files"] if each["name"] == "candidate.jsonl")
        path = self.folder / f"kaizen-history/objects/{entry['sha256'][:2]}/{entry['sha256']}"
        write(path, path.read_bytes().replace(b"no", b"yes", 1))
        self.refused("hash_mismatch", "was changed", entry["sha256"])

    def test_a_manifest_that_is_not_what_was_recorded(self):
        self.decide()
        path = next((self.folder / "kaizen-history/runs").glob("0002*/manifest.json"))
        write(path, path.read_text().replace('"eligible"', '"eligiblf"'))
        self.refused("hash_mismatch", "manifest.json")

    def test_a_cohort_without_an_anchor_and_how_it_differs(self):
        improvement("tone", {**TONE_BEFORE, "secret": "yyy"}, {**TONE_GAIN, "secret": "yyy"}, evaluation=[{**CHECK, "id": "polite"}])
        must("review", "tone")
        must("decide", "tone", *ACCEPT)
        must("history", "record", "tone", "--agent-version", "v9")
        self.refused("other_cohort", "cases added: d and e", "cases removed: c", "evaluators added: polite", "history init tone", run="3")

    def test_a_candidate_that_is_not_eligible(self):
        improvement("worse", {"a": "yyy"}, {"a": "nnn"})
        must("review", "worse")
        must("decide", "worse", *ACCEPT)
        must("history", "init", "worse", "--agent-version", "v1")
        must("history", "record", "worse", "--agent-version", "v3")
        self.refused("not_eligible", "rejected", "1 regression", run="4")

    def test_a_candidate_that_was_compared_with_another_version_than_the_champion(self):
        self.decide()
        must("history", "promote", "2")
        improvement("tone", TONE_BEFORE, TONE_GAIN)
        told = run_cli("history", "init", "tone", "--agent-version", "v1").stdout
        self.assertIn("note: the champion is version 'v2' (0002-", told)
        must("review", "tone")
        must("decide", "tone", *ACCEPT)
        must("history", "record", "tone", "--agent-version", "v3")
        self.refused("not_compared_with_champion", "'v2'", "run version 'v2' as the baseline", run="5")

    def test_an_anchor_and_a_stage_recorded_alone(self):
        self.decide()
        must("history", "record", "refund", "--stage", "baseline", "--agent-version", "v1b")
        self.refused("not_compared", run="1")
        self.refused("not_compared", run="3")

    def test_the_champion_itself(self):
        self.decide()
        must("history", "promote", "2")
        self.refused("already_champion")

    def test_there_is_no_way_around_the_rules(self):
        for name, entry in kaizen.COMMANDS.items():
            if name.startswith("history "):
                for argument in entry.arguments:
                    self.assertNotRegex(argument.name, "force|bypass|skip|override|ignore|no-check|unsafe|yes|allow", name)
        text = "\n".join(path.read_text() for path in sorted((support.ROOT / "src/kaizen/history").glob("*.py")))
        self.assertNotRegex(text, r"environ|--force|bypass|skip_|KAIZEN_")
        self.assertEqual([argument.name for argument in kaizen.COMMANDS["history promote"].arguments], ["run", "--history"])


class Successions(support.TemporaryFolder):
    """The champion passes from cohort to cohort."""

    def promote(self, name, version, run, champion_before):
        must("review", name)
        must("decide", name, *ACCEPT)
        must("history", "record", name, "--agent-version", version)
        answer = must("history", "promote", str(run))
        self.assertEqual(answer["replaces"] and answer["replaces"][:4], champion_before)
        self.assertTrue(answer["run"]["is_champion"])
        self.assertEqual(must("history", "list")["champion"][:4], f"{run:04d}")

    def test_three_improvements_in_a_row(self):
        improvement("first", {"a": "nnn", "b": "yyy"}, {"a": "yyy", "b": "yyy"})
        must("history", "init", "first", "--agent-version", "v1")
        self.promote("first", "v2", 2, None)
        improvement("second", {"a": "yyy", "b": "yyy", "c": "nnn"}, {"a": "yyy", "b": "yyy", "c": "yyy"})
        must("history", "init", "second", "--agent-version", "v2")
        self.promote("second", "v3", 5, "0002")
        improvement("third", {"c": "yyy", "d": "nny"}, {"c": "yyy", "d": "yyy"}, evaluation=[{**CHECK, "id": "exactly"}])
        must("history", "init", "third", "--agent-version", "v3")
        self.promote("third", "v4", 8, "0005")
        self.assertEqual(must("history", "validate")["entries"], 9)
        entries = read_lines("kaizen-history/ledger.jsonl")
        self.assertEqual([entry["kind"] for entry in entries], ["anchor", "record", "promotion"] * 3)
        self.assertEqual(len({run["cohort"] for run in must("history", "list")["runs"]}), 3)

    def test_a_second_candidate_of_one_cohort_is_compared_with_the_first_by_digest(self):
        improvement("first", {"a": "nnn", "b": "nnn"}, {"a": "yyy", "b": "nnn"})
        must("history", "init", "first", "--agent-version", "v1")
        self.promote("first", "v2", 2, None)
        write_lines("improvements/first/better.jsonl", [{"status": "completed", **row} for row in outcomes({"a": "yyy", "b": "yyy"})])
        must("evaluate", "first")
        must("review", "first", "--baseline", "baseline", "--candidate", "better")
        (self.folder / "improvements/first/decision.yaml").unlink()
        must("review", "first", "--baseline", "baseline", "--candidate", "better")
        must("decide", "first", *ACCEPT)
        must("history", "record", "first", "--stage", "better", "--agent-version", "v3")
        self.assertEqual(kaizen_json("history", "promote", "4")["reason"], "not_compared_with_champion")
        (self.folder / "improvements/first/decision.yaml").unlink()
        must("review", "first", "--baseline", "candidate", "--candidate", "better")
        must("decide", "first", *ACCEPT)
        must("history", "record", "first", "--baseline", "candidate", "--stage", "better", "--agent-version", "v3")
        answer = must("history", "promote", "5")
        self.assertEqual(answer["run"]["compared_with"][:4], "0002")
        must("history", "validate")

    def test_a_new_run_of_the_champion_is_known_by_its_version(self):
        improvement("first", {"a": "nnn", "b": "nnn"}, {"a": "yyy", "b": "nnn"})
        must("history", "init", "first", "--agent-version", "v1")
        self.promote("first", "v2", 2, None)
        place = self.folder / "improvements/first"
        for stage, plan in (("again", {"a": "yny", "b": "nnn"}), ("better", {"a": "yyy", "b": "yyy"})):
            write_lines(place / f"{stage}.jsonl", [{"status": "completed", **row} for row in outcomes(plan)])
        must("evaluate", "first")
        (place / "decision.yaml").unlink()
        must("review", "first", "--baseline", "again", "--candidate", "better")
        must("decide", "first", *ACCEPT)
        must("history", "record", "first", "--baseline", "again", "--stage", "better", "--agent-version", "v3")
        self.assertEqual(kaizen_json("history", "promote", "4")["reason"], "not_compared_with_champion")
        must("history", "record", "first", "--stage", "again", "--agent-version", "v2")
        self.assertTrue(must("history", "promote", "4")["run"]["is_champion"])
        must("history", "validate")

    def test_an_improvement_that_is_gone_is_judged_by_the_archive(self):
        copy_history(self.folder)
        shutil.rmtree("improvements")
        self.assertEqual(kaizen_json("history", "promote", "6")["reason"], "pending")
        self.assertEqual(kaizen_json("history", "promote", "5")["reason"], "not_eligible")
        must("history", "validate")

    def test_conditions_are_kept_with_the_promotion(self):
        copy_history(self.folder)
        must("decide", "tone", "--status", "accepted_with_conditions", "--by", "Ada", "--because", "good", "--condition", "watch e")
        must("history", "promote", "friendlier")
        shown = run_cli("history", "show", "champion").stdout
        self.assertIn("on condition that 'watch e'", shown)
        self.assertIn("because 'good'", shown)
        self.assertEqual(must("history", "show", "champion")["run"]["compared_with"][:4], "0004")


if __name__ == "__main__":
    unittest.main()
