"""`kaizen feedback` and `kaizen optimize`: an optimizer learns everything but the exam."""

import json
import sys
import unittest

import support
from support import kaizen, make_improvement, read_json, read_lines, run_cli, run_process, write

CHECK = {"id": "polite", "type": "contains", "values": ["please"]}
LONG = "the blue bicycle with the basket must be back at the depot before nine"
HELD = "customers who lost their key pay a fee of forty euros at the desk"
PROMPT = "You rent out bicycles. Answer briefly."


def bicycle_cases():
    """Two open cases of each split and two of the holdout; the texts of two are long enough to be found again."""
    rows = [("a", "development", LONG), ("b", "regression", "b"), ("c", "challenge", "c"), ("x", "holdout", HELD), ("y", "holdout", "y")]
    return [{"id": name, "input": text, "expected": f"expected {name}", "split": split, "tags": ["t"]} for name, split, text in rows]


def answers(words):
    """An observation of each case; *words* are the outputs by case id."""
    return [{"case_id": name, "output": words.get(name, "no")} for name in "abcxy"]


class FeedbackTestCase(support.TemporaryFolder):
    """An improvement with a component, a candidate stage with results, and optimizers that answer what a test says."""

    def setUp(self):
        super().setUp()
        write("prompts/system.txt", PROMPT)
        block = {"components": [{"name": "system_prompt", "file": "../../prompts/system.txt"}], "maximum_candidates": 2}
        self.place = make_improvement("bikes", bicycle_cases(), {"evaluators": [CHECK], "optimization": block}, candidate=answers({"a": "please"}))
        self.evaluate()

    def evaluate(self):
        self.assertEqual(run_cli("evaluate", "bikes").status, 0)

    def rewrite(self, **changed):
        """Cases with other fields: {id: {field: value}}; None takes the case out."""
        cases = [{**case, **(changed.get(case["id"]) or {})} for case in bicycle_cases() if changed.get(case["id"], {}) is not None]
        write(self.place / "test_cases.jsonl", "".join(json.dumps({k: v for k, v in case.items() if v is not None}) + "\n" for case in cases))

    def ask(self, *argv, status=0):
        done = run_cli(argv[0], "bikes", "--json", *argv[1:])
        self.assertEqual(done.status, status, done.stderr + done.stdout)
        return json.loads(done.stdout)

    def optimizer(self, answer, before=""):
        """The command of an optimizer that keeps what it was asked and prints *answer*."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        body = f"import sys, os, json\nasked = sys.stdin.read()\nopen('asked.json', 'w').write(asked)\n{before}\nsys.stdout.write({text!r})\n"
        return ["--", sys.executable, str(write("optimizer.py", body))]

    def propose(self, *texts, status=0, more=()):
        candidates = [{"components": {"system_prompt": text}, "rationale": "why"} for text in texts]
        return self.ask("optimize", *more, *self.optimizer({"candidates": candidates}), status=status)


class Feedback(FeedbackTestCase):
    """What is exported."""

    def test_it_holds_every_open_trial_and_only_counts_the_holdout(self):
        answer = self.ask("feedback")
        document = read_json(self.place / "feedback.json")
        self.assertEqual(document["holdout"], {"cases": 2})
        self.assertEqual([case["id"] for case in document["cases"]], ["a", "b", "c"])
        self.assertEqual([(trial["case_id"], trial["outcome"]) for trial in document["trials"]], [("a", "pass"), ("b", "fail"), ("c", "fail")])
        self.assertEqual(document["evaluators"]["polite"], {"pass": 1, "fail": 2, "error": 0, "not_applicable": 0})
        self.assertEqual(document["splits"]["regression"], {"pass": 0, "fail": 1, "error": 0})
        self.assertEqual((answer["cases"], answer["holdout_cases"], answer["stage"]), (3, 2, "candidate"))
        self.assertNotIn(HELD, (self.place / "feedback.json").read_text(encoding="utf-8"))

    def test_the_same_evidence_gives_the_same_bytes(self):
        self.ask("feedback")
        first = (self.place / "feedback.json").read_bytes()
        self.ask("feedback")
        self.assertEqual((self.place / "feedback.json").read_bytes(), first)

    def test_each_export_leaves_a_seal_that_tells_nothing_of_a_case(self):
        self.ask("feedback")
        self.ask("feedback")
        first, second = read_lines(self.place / "optimizer-log.jsonl")
        self.assertEqual([line["event"] for line in (first, second)], ["feedback_exported"] * 2)
        self.assertEqual(len(first["seal"]["sha256"]), 2)
        self.assertNotEqual(first["seal"]["salt"], second["seal"]["salt"])
        self.assertFalse(set(first["seal"]["sha256"]) & set(second["seal"]["sha256"]))


class Refusals(FeedbackTestCase):
    """Nothing is exported when the exam is not kept apart."""

    def refused(self, reason, *more):
        self.assertEqual(self.ask("feedback", *more, status=5)["reason"], reason)
        self.assertFalse((self.place / "feedback.json").exists())

    def test_a_legacy_dataset(self):
        self.rewrite(**{name: {"split": None} for name in "abcxy"})
        self.refused("legacy_dataset")

    def test_a_case_without_a_split(self):
        self.rewrite(b={"split": None})
        self.refused("case_without_split")

    def test_no_holdout(self):
        self.rewrite(x={"split": "challenge"}, y={"split": "challenge"})
        self.refused("no_holdout")

    def test_stale_results(self):
        self.rewrite(a={"expected": "other"})
        self.refused("stale_results")

    def test_results_that_somebody_edited(self):
        path = self.place / "candidate.evaluated.jsonl"
        path.write_text(path.read_text().replace('"fail"', '"pass"'))
        self.refused("invalid_evidence")

    def test_a_stage_that_was_not_evaluated(self):
        write(self.place / "other.jsonl", (self.place / "candidate.jsonl").read_bytes())
        self.assertEqual(self.ask("feedback", "--stage", "other", status=2)["reason"], "missing_results")

    def test_no_option_includes_the_holdout(self):
        options = run_cli("feedback", "--help").stdout + run_cli("optimize", "--help").stdout
        self.assertNotIn("open-holdout", options)


class Tampering(FeedbackTestCase):
    """A holdout that changed between two exports."""

    def changed(self, **cases):
        self.ask("feedback")
        (self.place / "feedback.json").unlink()
        self.rewrite(**cases)
        self.evaluate()
        answer = self.ask("feedback", status=5)
        self.assertEqual(answer["reason"], "holdout_changed")
        self.assertFalse((self.place / "feedback.json").exists())
        return answer["message"]

    def test_an_easier_expected_value(self):
        self.assertIn("1 case of it changed or gone, 1 case in it new or changed", self.changed(x={"expected": "no"}))

    def test_a_case_that_is_gone(self):
        self.assertIn("1 case of it changed or gone, 0 cases", self.changed(y=None))

    def test_a_case_moved_out_to_be_learnt_from(self):
        self.assertIn("1 case of it changed or gone, 0 cases", self.changed(y={"split": "development"}))

    def test_an_open_case_moved_in(self):
        self.assertIn("0 cases of it changed or gone, 1 case", self.changed(b={"split": "holdout"}))

    def test_a_note_or_an_owner_is_part_of_the_whole_case(self):
        self.assertIn("1 case of it changed", self.changed(x={"notes": "n"}))

    def test_a_change_on_purpose_is_told_from_then_on(self):
        self.changed(y=None)
        self.ask("feedback", "--reseal", "y was a duplicate")
        self.assertEqual([line["event"] for line in read_lines(self.place / "optimizer-log.jsonl")], ["feedback_exported", "holdout_resealed", "feedback_exported"])
        self.assertIn("changed and sealed anew 1 time", run_cli("feedback", "bikes").stdout)

    def test_an_empty_reason_is_none(self):
        self.changed(y=None)
        self.ask("feedback", "--reseal", " ", status=5)


class Optimize(FeedbackTestCase):
    """The protocol."""

    def test_candidates_are_written_with_a_proposal_and_nothing_else_changes(self):
        before = {path.name: path.read_bytes() for path in self.place.iterdir() if path.is_file()}
        answer = self.propose("Say please.", "Be kind.")
        self.assertEqual([entry["candidate"] for entry in answer["candidates"]], ["candidate-001", "candidate-002"])
        folder = self.place / "optimization"
        self.assertEqual((folder / "candidates/candidate-001/system_prompt.txt").read_text(), "Say please.")
        proposal = read_json(folder / "proposal.json")
        self.assertEqual(proposal["candidates"], answer["candidates"])
        self.assertEqual(write("prompts/system.txt", PROMPT).read_text(), PROMPT)
        after = {path.name: path.read_bytes() for path in self.place.iterdir() if path.is_file()}
        self.assertEqual({name: after[name] for name in before}, before)

    def test_the_request_holds_feedback_components_and_budget_and_no_path(self):
        self.propose("Say please.")
        asked = read_json("asked.json")
        self.assertEqual(asked["protocol"], "1.0")
        self.assertEqual(asked["components"], [{"name": "system_prompt", "text": PROMPT}])
        self.assertEqual(asked["budget"], {"maximum_candidates": 2})
        self.assertEqual(asked["feedback"], read_json(self.place / "feedback.json"))
        self.assertNotIn("improvements", json.dumps(asked))
        self.assertNotIn(HELD, json.dumps(asked))

    def test_the_environment_names_no_path_of_the_case_folder(self):
        command = self.optimizer({"candidates": []}, "open('environment', 'w').write(json.dumps(dict(os.environ)))")
        run_cli("optimize", "bikes", *command, env={"HERE": str(self.place.resolve()), "THERE": f"x:{self.place.resolve()}/y", "KEPT": "1"})
        seen = read_json("environment")
        self.assertEqual([name for name, value in seen.items() if str(self.place.resolve()) in value], [])
        self.assertEqual(seen["KEPT"], "1")

    def test_later_proposals_lose_none_of_the_earlier(self):
        self.propose("one")
        answer = self.propose("two")
        self.assertEqual(answer["candidates"][0]["candidate"], "candidate-002")
        self.assertEqual((self.place / "optimization/candidates/candidate-001/system_prompt.txt").read_text(), "one")

    def test_a_text_as_it_is_now_is_said_to_be_unchanged(self):
        self.assertEqual([entry["unchanged"] for entry in self.propose(PROMPT, "new")["candidates"]], [True, False])

    def test_no_candidate_is_a_no(self):
        self.assertEqual(self.propose(status=1)["reason"], "no_candidate")

    def test_an_answer_out_of_bounds_writes_nothing(self):
        good = {"components": {"system_prompt": "x"}, "rationale": ""}
        for answer, word in (
            ({"candidates": [good] * 3}, "3 candidates came back (at most 2)"),
            ({"candidates": [{"components": {"system_promt": "x"}}]}, "system_prompt"),
            ({"candidates": [{"components": {"system_prompt": " \n"}}]}, "empty"),
            ({"candidates": [{"components": {"system_prompt": 7}}]}, "no text"),
            ({"candidates": [{"components": {}}]}, "no component"),
            ({"candidates": [{"rationale": "x"}]}, "components"),
            ({"candidates": [{**good, "promote": True}]}, "promote"),
            ({"candidates": [7]}, "list of objects"),
            ({}, "candidates"),
            ("log line\n" + json.dumps({"candidates": [good]}), "one JSON object"),
            ('{"candidates": [], "candidates": []}', "candidates"),
            ("", "one JSON object"),
            ('{"candidates": NaN}', "NaN"),
        ):
            with self.subTest(word=word, answer=answer):
                done = run_cli("optimize", "bikes", *self.optimizer(answer))
                self.assertEqual(done.status, 2, done.stdout)
                self.assertIn(word, done.stderr)
                self.assertFalse((self.place / "optimization").exists())

    def test_a_program_that_fails_hangs_or_floods_leaves_nothing_behind(self):
        for before, reason in (("sys.exit('bad luck')", "optimizer_failed"), ("os.kill(os.getpid(), 9)", "optimizer_failed"), ("sys.stdout.write('x' * (9 << 20))", "optimizer_protocol")):
            with self.subTest(before):
                self.assertEqual(self.ask("optimize", *self.optimizer({}, before), status=4)["reason"], reason)
        slow = self.ask("optimize", "--timeout", "0.3", *self.optimizer({}, "import time; time.sleep(30)"), status=4)
        self.assertEqual(slow["reason"], "optimizer_timeout")
        self.assertFalse((self.place / "optimization").exists())

    def test_what_cannot_begin_says_so(self):
        self.assertIn("behind '--'", run_cli("optimize", "bikes").stderr)
        self.assertEqual(run_cli("optimize", "bikes", "--", "./no-such").status, 2)
        done = run_cli("optimize", ".", *self.optimizer({}), cwd=self.place)
        self.assertIn("outside the folder", done.stderr)
        write(self.place / "evaluation.json", json.dumps({"evaluators": [CHECK]}))
        self.assertEqual(self.ask("optimize", *self.optimizer({}), status=5)["reason"], "no_components")

    def test_a_block_with_mistakes_is_told_with_their_places(self):
        for block, word in (
            ({"components": [{"name": "a b", "file": "../../prompts/system.txt"}]}, "other characters"),
            ({"components": [{"name": "a", "file": "../../../../etc/passwd"}]}, "outside the repository"),
            ({"components": [{"name": "a", "file": "no.txt"}]}, "does not exist"),
            ({"components": [{"name": "a", "file": "evaluation.json"}] * 2}, "comes twice"),
            ({"components": [{"name": "a"}]}, "/optimization/components/0"),
            ({"componentz": []}, "components"),
        ):
            with self.subTest(word):
                write(self.place / "evaluation.json", json.dumps({"evaluators": [CHECK], "optimization": block}))
                done = run_cli("validate", "bikes")
                self.assertEqual(done.status, 1)
                self.assertIn(word, done.stdout + done.stderr)

    def test_a_link_out_of_the_improvement_is_refused(self):
        write("elsewhere/keep", "")
        (self.place / "optimization").symlink_to("../../elsewhere")
        self.assertEqual(self.propose("x", status=5)["reason"], "outside_folder")

    def test_keys_on_the_command_line_are_masked_in_the_proposal(self):
        key = "sk-" + "a1B2c3D4" * 6
        self.ask("optimize", *self.optimizer({"candidates": []}), "--api-key", key, status=1)
        self.assertNotIn(key, (self.place / "optimization/proposal.json").read_text())


class Copies(FeedbackTestCase):
    """Eight words in a row that stand in a case."""

    def test_text_of_an_open_case_is_marked(self):
        entry = self.propose(f"Remember: {LONG.upper()}!")["candidates"][0]
        self.assertEqual(entry["memorised"], {"cases": ["a"], "holdout_cases": 0})

    def test_text_of_the_holdout_is_marked_and_the_case_not_named(self):
        answer = self.propose(f"Rule: {HELD}.")
        self.assertEqual(answer["candidates"][0]["memorised"], {"cases": [], "holdout_cases": 1})
        self.assertIn("MEMORISED", run_cli("optimize", "bikes", *self.optimizer({"candidates": [{"components": {"system_prompt": HELD}}]})).stdout)

    def test_seven_words_are_no_copy(self):
        self.assertIsNone(self.propose(" ".join(LONG.split()[:7]))["candidates"][0]["memorised"])

    def test_what_stands_in_the_component_already_is_no_copy(self):
        write("prompts/system.txt", f"{PROMPT} {LONG}")
        self.assertIsNone(self.propose(f"{LONG}. Be kind.")["candidates"][0]["memorised"])


class Killed(FeedbackTestCase):
    """Two at once, and an end in the middle."""

    def test_a_kill_while_the_optimizer_thinks_leaves_feedback_and_no_proposal(self):
        command = self.optimizer({}, "os.kill(os.getppid(), 9)")
        self.assertNotEqual(run_process("optimize", "bikes", *command).status, 0)
        self.assertFalse((self.place / "optimization").exists())
        self.propose("x")

    def test_what_a_killed_writer_left_half_written_is_swept_up(self):
        left = [self.place / name for name in (".feedback.json.99.tmp", ".candidate.evaluated.jsonl.99.tmp", ".candidate.evaluated.meta.json.99.tmp")]
        other = write(self.place / ".candidate.evaluated.jsonl.backup", "mine")
        for path in left:
            write(path, "{")
        self.evaluate()
        self.ask("feedback")
        self.assertEqual([path.name for path in [*left, other] if path.exists()], [".candidate.evaluated.jsonl.backup"])

    def test_a_torn_line_in_the_log_is_told(self):
        self.ask("feedback")
        with open(self.place / "optimizer-log.jsonl", "a", encoding="utf-8") as file:
            file.write('{"event": "feed')
        done = run_cli("feedback", "bikes")
        self.assertEqual(done.status, 2)
        self.assertIn("optimizer-log.jsonl:2", done.stderr)


class Words(support.StrictTestCase):
    """Shingles."""

    def test_case_punctuation_and_width_do_not_hide_a_copy(self):
        plain = kaizen.word_shingles("one two three four five six seven eight")
        self.assertEqual(kaizen.word_shingles("One, TWO; three—four: five… six (seven) \uff45\uff49\uff47\uff48\uff54"), plain)
        self.assertEqual(len(plain), 1)


if __name__ == "__main__":
    unittest.main()
