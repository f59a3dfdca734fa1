"""The evaluator label, and its counts over cases: matrix, precision, recall, F, MCC."""

import json
import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase, TemporaryFolder, make_improvement, read_json, run_cli

import kaizen

QUEUES = entry_of("label", allowed=["billing", "delivery", "other"], expected="billing")


class OneAnswer(StrictTestCase):
    """One entry on one output."""

    def test_the_expected_label_passes_another_fails_and_the_value_has_both(self):
        right, wrong = outcome_of(QUEUES, "billing"), outcome_of(QUEUES, "delivery")
        self.assertEqual((right.status, right.value), ("pass", {"predicted": "billing", "expected": "billing"}))
        self.assertEqual((wrong.status, wrong.reason), ("fail", "is labelled 'delivery', not 'billing'"))

    def test_what_is_no_label_fails_and_is_none(self):
        found = outcome_of(QUEUES, "Billing, I think")
        self.assertEqual((found.status, found.value["predicted"]), ("fail", None))
        self.assertEqual(found.reason, "'Billing, I think' is none of the labels 'billing', 'delivery' and 'other'")

    def test_nothing_is_folded_unasked(self):
        self.assertEqual(status_of(QUEUES, "Billing\n"), "fail")
        self.assertEqual(status_of({**QUEUES, "normalize": ["strip", "lower"]}, "Billing\n"), "pass")

    def test_without_expected_any_label_passes(self):
        entry = entry_of("label", allowed=["yes", "no"])
        self.assertEqual([status_of(entry, text) for text in ("yes", "no", "maybe", "")], ["pass", "pass", "fail", "fail"])

    def test_the_four_counts(self):
        for expected, answer, count in (
            ("spam", "spam", "TP"), ("spam", "ham", "FN"), ("spam", "?", "FN"), ("ham", "spam", "FP"), ("ham", "ham", "TN"), ("ham", "?", None),
        ):  # fmt: skip
            entry = entry_of("label", allowed=["spam", "ham"], expected=expected, positive="spam")
            self.assertEqual(outcome_of(entry, answer).value["count"], count)

    def test_refusals(self):
        def refused(**settings):
            return refusal_of(entry_of("label", **{"allowed": ["a", "b"], **settings}))[:2]

        self.assertEqual(refused(expected="c"), ("/expected", "'c' is none of the allowed labels"))
        self.assertEqual(refused(expected="a", positive="c"), ("/positive", "'c' is none of the allowed labels"))
        self.assertEqual(refused(positive="a"), ("/positive", "positive without expected tells nothing"))
        self.assertEqual(refused(allowed=["a", "A"], normalize="lower"), ("/allowed", "names 'a' twice"))
        self.assertEqual(refused(allowed=["a", ""]), ("/allowed", "holds an empty label"))


class Together(StrictTestCase):
    """The measures, against values worked out by hand or with scikit-learn 1.9."""

    def document(self, pairs, positive=None):
        return kaizen.label_document(kaizen.Counter(pairs), 0, positive)

    def test_two_labels(self):
        # sklearn: precision 0.75, recall 0.6, f0.5 0.714286, f1 0.666667, f2 0.625; MCC 0.408248
        found = self.document({("spam", "spam"): 3, ("spam", "ham"): 2, ("ham", "spam"): 1, ("ham", "ham"): 4}, "spam")
        spam = {key: round(value, 6) for key, value in found["by_label"]["spam"].items()}
        self.assertEqual(spam, {"precision": 0.75, "recall": 0.6, "f0_5": 0.714286, "f1": 0.666667, "f2": 0.625})
        self.assertEqual(round(found["mcc"], 6), 0.408248)
        self.assertEqual(found["positive"], {"label": "spam", "TP": 3, "FP": 1, "FN": 2, "TN": 4, "outside": 0})
        self.assertEqual((found["trials"], found["accuracy"], found["undefined"]), (10, 0.7, {}))
        self.assertEqual(found["matrix"], {"ham": {"ham": 4, "spam": 1}, "spam": {"ham": 2, "spam": 3}})

    def test_an_answer_that_is_no_label_is_a_miss_and_no_alarm(self):
        found = self.document({("a", "a"): 1, ("a", None): 1, ("b", None): 1, ("b", "b"): 1}, "a")
        self.assertEqual(found["positive"], {"label": "a", "TP": 1, "FP": 0, "FN": 1, "TN": 1, "outside": 1})
        self.assertEqual(found["by_label"]["a"]["precision"], 1)
        self.assertEqual(found["by_label"]["a"]["recall"], 0.5)
        self.assertEqual(found["matrix"]["a"], {"a": 1, "": 1})

    def test_what_is_undefined_is_null_with_a_reason(self):
        found = self.document({("a", "a"): 2}, "b")
        self.assertEqual(found["mcc"], None)
        self.assertEqual(found["by_label"]["b"], {"precision": None, "recall": None, "f0_5": None, "f1": None, "f2": None})
        self.assertEqual(
            found["undefined"],
            {"/by_label/b/precision": "it was never given", "/by_label/b/recall": "it was never expected", "/mcc": "all trials were expected to be one label"},
        )

    def test_order_does_not_matter(self):
        pairs = {("a", "b"): 2, ("b", None): 1, ("c", "c"): 3}
        self.assertEqual(json.dumps(self.document(pairs)), json.dumps(self.document(dict(reversed(pairs.items())))))


class OverCases(TemporaryFolder):
    """kaizen evaluate."""

    def evaluated(self, cases, evaluators, answers):
        make_improvement("imp", cases, {"version": 1, "evaluators": evaluators}, baseline=[{"case_id": key, "output": text} for key, text in answers.items()])
        return run_cli("evaluate", "imp", "--json"), run_cli("evaluate", "imp")

    def test_the_measures_stand_in_the_meta_file_in_json_and_in_what_is_printed(self):
        cases = [{"id": name, "input": "?", "expected": label} for name, label in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))]
        entry = entry_of("label", allowed=["x", "y"], expected={"$case": "/expected"}, positive="x", severity="score")
        other = entry_of("contains", values="x") | {"id": "other"}
        machine, people = self.evaluated(cases, [entry, other], {"a": "x", "b": "y", "c": "y", "d": "?"})
        found = json.loads(machine.stdout)["stages"]["baseline"]["labels"]
        self.assertEqual(read_json("improvements/imp/baseline.evaluated.meta.json")["labels"], found)
        self.assertEqual(list(found), ["e"])
        self.assertEqual(found["e"]["positive"], {"label": "x", "TP": 1, "FP": 0, "FN": 1, "TN": 1, "outside": 1})
        for line in (
            "    accuracy 0.500, MCC 0.224 over 4 trials, 0 not measured",
            "    positive 'x': TP 1, FP 0, FN 1, TN 1, 1 none of the labels",
            "    'x': precision 1.000, recall 0.500, F0.5 0.833, F1 0.667, F2 0.556",
            "    expected 'y': 1 'y' and 1 none of the labels",
        ):
            self.assertIn(line, people.stdout.splitlines())

    def test_a_trial_without_a_usable_answer_is_counted_apart(self):
        cases = [{"id": name, "input": "?", "expected": "x"} for name in "ab"]
        machine, _ = self.evaluated(cases, [entry_of("label", allowed=["x", "y"], expected={"$case": "/expected"})], {"a": "x", "b": None})
        found = json.loads(machine.stdout)["stages"]["baseline"]["labels"]["e"]
        self.assertEqual((found["trials"], found["excluded"]), (1, 1))

    def test_an_answer_that_is_not_there_by_the_agents_doing_is_a_miss(self):
        cases = [{"id": name, "input": "?", "expected": "x", "tags": [name]} for name in "abc"]
        entry = entry_of("label", allowed=["x", "y"], expected={"$case": "/expected"}, positive="x", select="output.json/label")
        machine, _ = self.evaluated(cases, [entry | {"when": {"tags": ["a", "b"]}}], {"a": {"label": "x"}, "b": "no JSON", "c": "?"})
        found = json.loads(machine.stdout)["stages"]["baseline"]
        self.assertEqual(found["by_evaluator"]["e"], {"pass": 1, "fail": 1, "error": 0, "not_applicable": 1})
        labels = found["labels"]["e"]
        self.assertEqual((labels["trials"], labels["excluded"], labels["accuracy"]), (2, 0, 0.5))
        self.assertEqual((labels["matrix"], labels["positive"]["FN"]), ({"x": {"": 1, "x": 1}}, 1))

    def test_a_label_that_only_a_holdout_case_names_is_not_shown(self):
        cases = [
            {"id": "open", "input": "?", "expected": {"all": ["x", "y"], "one": "x"}},
            {"id": "shut", "input": "?", "split": "holdout", "expected": {"all": ["CANARY", "y"], "one": "CANARY"}},
        ]
        entry = entry_of("label", allowed={"$case": "/expected/all"}, expected={"$case": "/expected/one"})
        for done in self.evaluated(cases, [entry], {"open": "x", "shut": "CANARY"}):
            self.assertIn('"excluded": 0,\n          "holdout_kept_back": 1' if done.stdout[0] == "{" else "1 trial, 0 not measured; without 1 trial of", done.stdout)
            self.assertNotIn("CANARY", done.stdout + done.stderr)

    def test_holdout_cases_count_where_evaluation_json_names_the_labels(self):
        cases = [{"id": "open", "input": "?", "expected": "x"}, {"id": "shut", "input": "?", "split": "holdout", "expected": "y"}]
        machine, _ = self.evaluated(cases, [entry_of("label", allowed=["x", "y"], expected={"$case": "/expected"})], {"open": "x", "shut": "y"})
        self.assertEqual(json.loads(machine.stdout)["stages"]["baseline"]["labels"]["e"]["trials"], 2)


if __name__ == "__main__":
    unittest.main()
