"""The suite: breaches with their place, entries of cases, outcome and score of a trial, fingerprints, the same bytes everywhere."""

import itertools
import json
import unittest

from evaluating import CASE, entry_of, observation, result_of, suite_of
from support import TemporaryFolder, golden, write

import kaizen

SAYING = {
    "pass": {"type": "contains", "values": "x"},
    "fail": {"type": "contains", "values": "y"},
    "error": {"type": "equals", "select": "state", "value": 1},
    "not_applicable": {"type": "equals", "select": "state", "value": 1, "on_missing": "not_applicable"},
}


def told(breaches):
    """(place, message) of each error."""
    return [(breach.place(), breach.message) for breach in breaches.errors]


class Building(TemporaryFolder):
    """What is wrong is found before a run, with file, line and pointer."""

    def test_breaches_of_evaluation_json(self):
        entries = [
            {"id": "a", "type": "contains", "values": ""},
            {"id": "b", "type": "matches", "pattern": "("},
            {"id": "ok", "type": "contains", "values": "x"},
            {"id": "ok", "type": "contains", "values": "y"},
        ]
        _, _, breaches = suite_of([CASE], entries)
        self.assertEqual(
            told(breaches),
            [
                ("improvements/refund/evaluation.json:6#/evaluators/0/values", "evaluator 'a': holds an empty text, which every text contains"),
                (
                    "improvements/refund/evaluation.json:11#/evaluators/1/pattern",
                    "evaluator 'b': is not a regular expression: missing ), unterminated subpattern at character 1",
                ),
                ("improvements/refund/evaluation.json:19#/evaluators/3/id", "duplicate id 'ok' (first at /evaluators/2)"),
            ],
        )

    def test_what_a_case_brings_and_cannot_be_used_is_a_breach_of_the_case(self):
        cases = [
            {"id": "c1", "input": 1, "expected": "word"},
            {"id": "c2", "input": 1, "expected": {"no": "text"}},
            {"id": "c3", "input": 1, "expected": ""},
            {"id": "c4", "input": 1, "tags": ["other"], "expected": 7},
        ]
        _, _, breaches = suite_of(cases, [entry_of("contains", values={"$case": "/expected"}, when={"case": {"/tags": {"$exists": False}}})])
        self.assertEqual(
            told(breaches),
            [
                (
                    "improvements/refund/test_cases.jsonl:2#/expected",
                    "evaluator 'e' cannot use it: values is an object, not a text or a list of texts",
                ),
                ("improvements/refund/test_cases.jsonl:3#/expected", "evaluator 'e' cannot use it: holds an empty text, which every text contains"),
            ],
        )

    def test_cases_that_lack_what_is_asked_are_a_warning_once(self):
        cases = [{"id": f"c{index}", "input": 1, **({"expected": {"word": "x"}} if index else {})} for index in range(3)]
        entry = entry_of("contains", values={"$case": "/expected/word"})
        _, _, breaches = suite_of([{**case, "source": {"kind": "expert"}} for case in cases], [entry])
        self.assertEqual(told(breaches), [])
        self.assertEqual(
            [warning.message for warning in breaches.warnings],
            ["evaluator 'e': the case has nothing at /expected/word in 1 case, which is an error there"],
        )
        _, _, breaches = suite_of(cases, [{**entry, "on_missing": "not_applicable"}])
        self.assertEqual(breaches.warnings, [])

    def test_a_suite_in_which_nothing_decides_is_a_warning(self):
        _, _, breaches = suite_of([CASE], [entry_of("contains", values="x", severity="info")])
        self.assertEqual([warning.message for warning in breaches.warnings], ["no evaluator decides (severity hard or gate), so no trial can pass"])


class OwnEvaluators(TemporaryFolder):
    """Entries of a case add to the suite, or replace by id."""

    def test_they_are_merged_by_id_in_place(self):
        cases = [
            CASE,
            {"id": "c2", "input": 1, "evaluators": [entry_of("contains", values="own") | {"id": "b"}, entry_of("length", max=9) | {"id": "d"}]},
        ]
        suite, dataset, breaches = suite_of(cases, [entry_of("contains", values=name) | {"id": name} for name in "abc"])
        self.assertEqual(told(breaches), [])
        for name, expected in (("c1", [("a", "fail"), ("b", "fail"), ("c", "fail")]), ("c2", [("a", "fail"), ("b", "pass"), ("c", "fail"), ("d", "pass")])):
            result = suite.evaluate({**observation("own"), "case_id": name}, dataset.cases[name])
            self.assertEqual([(entry["id"], entry["status"]) for entry in result["evaluations"]], expected)
        self.assertEqual(suite.types_used, {"contains", "length"})

    def test_they_may_use_define_and_the_case_itself(self):
        cases = [{"id": "c1", "input": 1, "expected": "x", "evaluators": [{"$use": "says", "id": "own"}]}]
        suite, dataset, breaches = suite_of(cases, [], define={"says": {"type": "contains", "values": {"$case": "/expected"}}})
        self.assertEqual(told(breaches), [])
        self.assertEqual(suite.evaluate(observation("x"), dataset.cases["c1"])["outcome"], "pass")

    def test_breaches_name_the_case(self):
        entries = [entry_of("contains", values=""), entry_of("contains", values="x"), entry_of("contains", values={"$case": "/gone"}), {"id": "f"}]
        _, _, breaches = suite_of([CASE, {"id": "c2", "input": 1, "evaluators": entries}], [])
        self.assertEqual(
            [place for place, _ in told(breaches)],
            [f"improvements/refund/test_cases.jsonl:2#/evaluators/{place}" for place in ("0/values", "2/id", "3")],
        )

    def test_programs_cannot_come_from_a_case(self):
        kind = kaizen.EVALUATORS["contains"]
        for name in ("command", "program"):
            known = kaizen.EVALUATORS.get(name)
            kaizen.EVALUATORS[name] = kind._replace(name=name)
            try:
                for entry in (entry_of(name, values="x"), entry_of("all", of=[{"type": name, "values": "x"}])):
                    _, _, breaches = suite_of([{"id": "c1", "input": 1, "evaluators": [entry]}], [])
                    self.assertEqual([message for _, message in told(breaches)], [f"type {name} cannot stand in a case"])
            finally:
                kaizen.EVALUATORS.pop(name)
                if known is not None:
                    kaizen.EVALUATORS[name] = known


class TrialOutcome(TemporaryFolder):
    """The three-valued AND over hard and gate entries."""

    def test_every_combination(self):
        for statuses in itertools.product(SAYING, repeat=2):
            for severities in itertools.product(("hard", "gate", "score", "info"), repeat=2):
                entries = [{"id": f"e{index}", "severity": severity, **SAYING[status]} for index, (severity, status) in enumerate(zip(severities, statuses, strict=True))]
                deciding = {status for severity, status in zip(severities, statuses, strict=True) if severity in ("hard", "gate")}
                expected = "fail" if "fail" in deciding else "error" if "error" in deciding else "pass" if "pass" in deciding else "error"
                with self.subTest(statuses=statuses, severities=severities):
                    suite = kaizen.Suite([kaizen.prepare_entry(entry) for entry in entries], None)
                    result = suite.evaluate(observation("x"), kaizen.Case("c1", CASE, "", 1, ""))
                    self.assertEqual(result["outcome"], expected)
                    self.assertEqual(result.get("reason"), None if deciding & {"pass", "fail", "error"} else "nothing_checked")

    def test_a_runner_error_makes_every_entry_an_error_with_its_reason(self):
        entries = [entry_of(kind.name, **{key: value for key, value in kind.example["entry"].items() if key not in ("id", "type")}) | {"id": kind.name} for kind in kaizen.EVALUATORS.values()]
        entries += [{**entry, "id": f"not_{entry['id']}", "negate": True} for entry in entries]
        entries.append({**SAYING["not_applicable"], "id": "when", "when": {"tags": ["none"]}})
        for status in ("error", "timeout", "protocol_error", "cancelled", "not_run"):
            error = {"class": "runner", "type": "signal", "message": "killed by signal 9 (SIGKILL)\n\x1b[31m"}
            result = result_of(entries, "fine", status=status, error=error)
            with self.subTest(status=status):
                self.assertEqual({entry["status"] for entry in result["evaluations"]}, {"error"})
                self.assertEqual((result["outcome"], result["score"], result["coverage"]), ("error", None, 0.0))
                reason = f"the trial ended with status {status}: killed by signal 9 (SIGKILL)\\n\\x1b[31m"
                self.assertEqual({entry["reason"] for entry in result["evaluations"]}, {reason})


class TrialScore(TemporaryFolder):
    """The weighted mean over entries with a score, and how much of the weight that is."""

    def scored(self, *pairs, **settings):
        entries = [{"id": f"e{index}", "weight": weight, **SAYING[status], **settings} for index, (status, weight) in enumerate(pairs)]
        result = result_of(entries, "x")
        return result["score"], result["coverage"]

    def test_weights(self):
        self.assertEqual(self.scored(("pass", 3), ("fail", 1)), (0.75, 1.0))
        self.assertEqual(self.scored(("pass", 3), ("error", 1)), (1.0, 0.75))
        self.assertEqual(self.scored(("pass", 1), ("not_applicable", 9)), (1.0, 1.0))
        self.assertEqual(self.scored(*[("pass", 0.1)] * 10), (1.0, 1.0))  # ten tenths are 0.9999999999999999 in binary
        self.assertEqual(self.scored(("pass", 0.1), ("fail", 0.2)), (1 / 3, 1.0))

    def test_without_weight_there_is_no_score(self):
        self.assertEqual(self.scored(("pass", 0), ("fail", 0)), (None, None))
        self.assertEqual(self.scored(("not_applicable", 1)), (None, None))
        self.assertEqual(self.scored(("error", 1)), (None, 0.0))
        self.assertEqual(self.scored(("pass", 1), severity="info"), (None, None))

    def test_weight_zero_keeps_its_true_status(self):
        result = result_of([{"id": "a", "weight": 0, **SAYING["fail"]}, {"id": "b", **SAYING["pass"]}], "x")
        self.assertEqual((result["outcome"], result["score"]), ("fail", 1.0))

    def test_field_case_30_a_score_of_zero_counts_and_a_missing_one_does_not(self):
        scores = [0.0, 0.2, None]
        self.assertEqual(kaizen.exact_mean([(score, 1) for score in scores if score is not None]), 0.1)


class Fingerprints(TemporaryFolder):
    """Equal rules have equal fingerprints, other rules have others."""

    def prints(self, evaluators, cases=(CASE,), **evaluation):
        suite, _, breaches = suite_of(cases, evaluators, **evaluation)
        self.assertEqual(told(breaches), [])
        return suite.fingerprint, suite.entry_fingerprints

    def test_what_changes_nothing(self):
        base = [{"id": "a", "type": "contains", "values": "x", "threshold": 0.5}, {"id": "b", "type": "length", "max": 5}]
        same = [
            list(reversed(base)),
            [dict(reversed(entry.items())) for entry in base],
            [{**base[0], "negate": False, "severity": "gate", "weight": 1.0, "mode": "all", "when": {}}, {**base[1], "transform": []}],
        ]
        for evaluators in same:
            with self.subTest(evaluators=evaluators):
                self.assertEqual(self.prints(evaluators), self.prints(base))
        self.assertEqual(self.prints([{"id": "a", "type": "contains", "values": {"$use": "w"}}], define={"w": "x"}), self.prints([{"id": "a", "type": "contains", "values": "x"}]))

    def test_renaming_a_file_changes_nothing_and_its_content_everything(self):
        for name, text in (("one.txt", "x"), ("two.txt", "x"), ("three.txt", "y")):
            write(f"improvements/refund/{name}", text)
        one, two, three = (self.prints([{"id": "a", "type": "contains", "values": {"$file": name}}]) for name in ("one.txt", "two.txt", "three.txt"))
        self.assertEqual(one, two)
        self.assertNotEqual(one, three)

    def test_what_the_references_of_a_cases_own_evaluators_lead_to_counts(self):
        """The dataset fingerprint sees the reference only, so without this a changed rule would leave results looking fresh."""
        cases = [{"id": "c1", "input": 1, "evaluators": [{"id": "own", "type": "contains", "values": {"$use": "w"}}, {"$use": "whole"}]}]
        cases[0]["evaluators"].append({"id": "filed", "type": "contains", "values": {"$file": "w.txt"}})
        whole = {"id": "whole", "type": "length", "max": 3}
        seen = set()
        for word, entry, text in (("x", whole, "x"), ("y", whole, "x"), ("x", {**whole, "max": 4}, "x"), ("x", whole, "y")):
            write("improvements/refund/w.txt", text)
            seen.add(self.prints([], cases, define={"w": word, "whole": entry})[0])
        self.assertEqual(len(seen), 4)
        literal = [{"id": "c1", "input": 1, "evaluators": [whole]}]
        self.assertEqual(self.prints([], literal), self.prints([], [{**literal[0], "id": "c2"}]))

    def test_every_key_that_means_something_changes_the_fingerprint(self):
        base = {"id": "a", "type": "contains", "values": "x"}
        seen = {self.prints([base])[0]}
        for change in (
            {"values": "y"}, {"mode": "any"}, {"threshold": 0.5}, {"negate": True}, {"weight": 2}, {"severity": "hard"}, {"select": "output.json/a"},
            {"transform": ["lower"]}, {"on_missing": "fail"}, {"when": {"tags": ["t"]}}, {"version": "2"}, {"metric": "m"}, {"id": "b"}, {"type": "any", "of": [{"type": "contains", "values": "x"}]},
        ):  # fmt: skip
            entry = {**base, **change}
            if "of" in entry:
                del entry["values"]
            seen.add(self.prints([entry])[0])
        self.assertEqual(len(seen), 15)

    def test_the_semantics_version_of_every_type_in_use_counts(self):
        entries = [{"id": "a", "type": "any", "of": [{"type": "contains", "values": "x"}]}]
        cases = [{"id": "c1", "input": 1, "evaluators": [{"id": "own", "type": "length", "max": 3}]}]
        before = self.prints(entries, cases)
        for name, changes_entry in (("contains", True), ("length", False), ("equals", None)):
            known = kaizen.EVALUATORS[name]
            kaizen.EVALUATORS[name] = known._replace(version=known.version + 1)
            try:
                after = self.prints(entries, cases)
            finally:
                kaizen.EVALUATORS[name] = known
            with self.subTest(type=name):
                self.assertEqual(after[0] != before[0], changes_entry is not None)
                self.assertEqual(after[1] != before[1], bool(changes_entry))


class SameBytes(TemporaryFolder):
    """A result set is the same text on every Python, and twice in a row."""

    TYPES = ("all", "any", "at_least", "budget", "contains", "equals", "length", "matches", "none", "number")

    def test_the_results_of_their_examples(self):
        lines = []
        for name in self.TYPES:
            example = kaizen.EVALUATORS[name].example
            case = {"id": "c1", "input": "?", **example.get("case", {})}
            entries = [example["entry"], {**example["entry"], "id": "negated", "negate": True, "weight": 0.3}]
            suite = kaizen.Suite([kaizen.prepare_entry(entry) for entry in entries], None)
            found = {"case_id": case["id"], "trial": 1, "status": "completed", **example["observation"]}
            pair = [kaizen.encode_compact(suite.evaluate(found, kaizen.Case(case["id"], case, "", 1, ""))) for _ in range(2)]
            self.assertEqual(*pair)
            lines.append(json.dumps(json.loads(pair[0]), ensure_ascii=False))
        golden("results_of_examples.jsonl", "\n".join(lines) + "\n")

    def test_keys_come_in_the_order_of_the_format(self):
        result = result_of([entry_of("contains", values="x")], "x", usage={"input_tokens": 1})
        self.assertEqual(list(result), ["case_id", "trial", "status", "outcome", "score", "coverage", "evaluations", "duration_ms", "cost_usd", "usage"])
        self.assertEqual(list(result["evaluations"][0]), ["id", "type", "severity", "status", "score", "value", "reason", "evidence"])


if __name__ == "__main__":
    unittest.main()
