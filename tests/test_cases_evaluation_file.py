"""evaluation.json: defaults, every key's type, references, and the line of each breach."""

import hashlib
import json
import os
import shutil
import unittest
from fractions import Fraction

from support import DATA, StrictTestCase, TemporaryFolder, write, write_lines

import kaizen

# formats.md 1.3
ACCEPTANCE_DEFAULTS = {
    "maximum_regressions": 0, "maximum_weakened": None, "minimum_improvements": 1, "minimum_pass_rate": None, "minimum_delta": 0,
    "maximum_not_comparable": 0, "maximum_cost_ratio": None, "maximum_latency_ratio": None, "minimum_pass_k": None, "metrics": {},
}  # fmt: skip
RELIABILITY_DEFAULTS = {"minimum_cases": 20, "minimum_trials": 3, "confidence": 0.95, "minimum_probability": 0.95}


class EvaluationCase(TemporaryFolder):
    """A test in a folder with improvements/x; `load` writes and reads its evaluation.json."""

    def setUp(self):
        super().setUp()
        os.makedirs("improvements/x")
        self.breaches = kaizen.Breaches()

    def load(self, document):
        self.breaches = kaizen.Breaches()
        if document is not None:
            text = document if isinstance(document, (str, bytes)) else json.dumps(document, indent=1)
            write("improvements/x/evaluation.json", text)
        return kaizen.load_evaluation(kaizen.Improvement("improvements/x"), self.breaches)

    def places(self, document):
        """['pointer: message'] of each breach."""
        self.load(document)
        return [f"{breach.pointer}: {breach.message}" for breach in self.breaches.errors]


class Policy(EvaluationCase):
    """Keys, types, defaults."""

    def test_evaluators_are_enough_and_the_rest_has_its_documented_default(self):
        evaluation = self.load({"evaluators": []})
        self.assertEqual(self.breaches.errors, [])
        self.assertEqual((evaluation.seed, evaluation.include, evaluation.define, evaluation.evaluators), (20260101, [], {}, []))
        self.assertEqual(evaluation.acceptance, ACCEPTANCE_DEFAULTS)
        self.assertIsNone(evaluation.reliability)
        self.assertEqual(evaluation.metrics, {})
        self.assertEqual(evaluation.path, "improvements/x/evaluation.json")

    def test_the_document_of_the_reference_page_is_good(self):
        document = {
            "version": 1, "seed": 20260101, "include": [], "define": {}, "evaluators": [], "metrics": {}, "acceptance": ACCEPTANCE_DEFAULTS,
            "reliability": RELIABILITY_DEFAULTS, "judge": {"name": "x", "criteria": [{"id": "a", "evaluators": ["e"]}], "verdicts": [{"verdict": "yes"}]}, "objectives": {}, "optimization": {}, "agreement": {},
        }  # fmt: skip
        evaluation = self.load(document)
        self.assertEqual(self.breaches.errors, [])
        self.assertEqual(evaluation.acceptance, ACCEPTANCE_DEFAULTS)
        self.assertEqual(evaluation.reliability, RELIABILITY_DEFAULTS)
        self.assertEqual(evaluation.document, document)

    def test_what_is_given_stays_and_the_rest_is_filled_in(self):
        evaluation = self.load({"evaluators": [], "acceptance": {"minimum_pass_rate": 0.0, "maximum_weakened": 0}, "reliability": {"minimum_cases": 5}})
        self.assertEqual(evaluation.acceptance, {**ACCEPTANCE_DEFAULTS, "minimum_pass_rate": 0, "maximum_weakened": 0})
        self.assertEqual(evaluation.reliability, {**RELIABILITY_DEFAULTS, "minimum_cases": 5})

    def test_zero_is_a_value(self):
        block = {"maximum_regressions": 0, "maximum_weakened": 0, "minimum_improvements": 0, "minimum_pass_rate": 0, "minimum_delta": 0, "maximum_not_comparable": 0}
        acceptance = self.load({"evaluators": [], "acceptance": block}).acceptance
        self.assertEqual(self.breaches.errors, [])
        self.assertEqual({key: acceptance[key] for key in block}, block)
        self.assertIsNot(acceptance["minimum_pass_rate"], None)

    def test_every_value_of_the_wrong_kind_is_told_at_its_pointer(self):
        for pointer, value in [
            ("/version", 2), ("/version", "1"), ("/version", True), ("/version", None), ("/seed", -1), ("/seed", 1.5), ("/seed", "7"), ("/seed", True), ("/seed", 2**53),
            ("/include", "a"), ("/include/0", [3]), ("/define", []), ("/evaluators", {}), ("/evaluators/1", [{}, 3]), ("/acceptance", []), ("/reliability", None),
            ("/judge", []), ("/objectives", 1), ("/optimization", "x"), ("/agreement", None), ("/metrics", []),
            ("/acceptance/maximum_regressions", -1), ("/acceptance/maximum_regressions", 0.5), ("/acceptance/maximum_regressions", None), ("/acceptance/maximum_regressions", True),
            ("/acceptance/maximum_weakened", "0"), ("/acceptance/minimum_improvements", None), ("/acceptance/minimum_pass_rate", 1.01), ("/acceptance/minimum_pass_rate", 95),
            ("/acceptance/minimum_pass_rate", -0.1), ("/acceptance/minimum_delta", 2), ("/acceptance/minimum_delta", None), ("/acceptance/maximum_not_comparable", 1.5),
            ("/acceptance/maximum_cost_ratio", 0), ("/acceptance/maximum_cost_ratio", -1), ("/acceptance/maximum_latency_ratio", "1.2"), ("/acceptance/minimum_pass_k", 4),
            ("/acceptance/minimum_pass_k/k", {"k": 0, "rate": 0.5}), ("/acceptance/minimum_pass_k/rate", {"k": 1, "rate": 2}), ("/acceptance/minimum_pass_k", {"k": 2}),
            ("/acceptance/metrics", None), ("/reliability/minimum_cases", 0), ("/reliability/minimum_trials", 1.5), ("/reliability/confidence", 95),
            ("/reliability/confidence", 1), ("/reliability/minimum_probability", 0),
        ]:
            with self.subTest(pointer=pointer, value=value):
                document = {"evaluators": []}
                parts = pointer.split("/")[1:3]
                names = parts if parts[0] in ("acceptance", "reliability") and len(parts) > 1 else parts[:1]
                inner = document
                for name in names[:-1]:
                    inner = inner.setdefault(name, {})
                inner[names[-1]] = value
                found = self.places(document)
                self.assertEqual([text.split(":")[0] for text in found], [pointer])

    def test_good_values_at_the_limits(self):
        block = {
            "minimum_pass_rate": 1, "minimum_delta": -1, "maximum_cost_ratio": 0.0001, "maximum_latency_ratio": 1e9, "minimum_pass_k": {"k": 1, "rate": 0},
            "maximum_regressions": 3.0,
        }  # fmt: skip
        acceptance = self.load({"version": 1.0, "seed": 0, "evaluators": [], "acceptance": block}).acceptance
        self.assertEqual(self.breaches.errors, [])
        self.assertEqual(str(acceptance["maximum_regressions"]), "3")

    def test_an_unknown_key_names_the_nearest_and_its_line(self):
        self.load('{\n "evaluators": [],\n "acceptence": {},\n "acceptance": {\n  "maximum_regression": 1\n },\n "reliability": {"min_cases": 1}\n}')
        self.assertEqual(
            [breach.text() for breach in self.breaches.errors],
            [
                "improvements/x/evaluation.json:3#/acceptence: unknown key 'acceptence' [did you mean 'acceptance'?]",
                "improvements/x/evaluation.json:5#/acceptance/maximum_regression: unknown key 'maximum_regression' [did you mean 'maximum_regressions'?]",
                "improvements/x/evaluation.json:7#/reliability/min_cases: unknown key 'min_cases' [did you mean 'minimum_cases'?]",
            ],
        )

    def test_a_file_without_evaluators_is_refused(self):
        self.assertEqual(self.places({"version": 1}), [": has no 'evaluators'"])

    def test_derived_metrics_and_their_bounds_are_checked_with_their_place(self):
        self.assertEqual(
            self.places(
                {
                    "evaluators": [{"id": "a", "type": "contains", "values": ["y"]}],
                    "metrics": {"good": "rate(a)", "bad": "rate(a", "worse": 1, "\u200b": "rate(a)"},
                    "acceptance": {"metrics": {"goood": {"maximum": 0}, "good": {"maximum": "0", "max": 1, "minimum": None}, "bad": {}}},
                }
            ),
            [
                "/acceptance/metrics/goood: unknown metric 'goood'",
                "/acceptance/metrics/good/max: unknown key 'max'",
                "/acceptance/metrics/good/maximum: must be a number, or null, not a text",
                "/acceptance/metrics/bad: must be an object with a bound",
                "/metrics/bad: character 7: has its end where ')' should stand",
                '/metrics/worse: must be a text with an expression',
                "/metrics/\u200b: the name must have 1 to 200 characters, none of them invisible",
            ],
        )

    def test_the_same_gate_twice_is_refused_with_file_and_key(self):
        shutil.copy(DATA / "field_cases" / "05-duplicate-key-in-policy" / "evaluation.json", "improvements/x/evaluation.json")
        self.assertIsNone(self.load(None))
        self.assertEqual(
            [breach.text() for breach in self.breaches.errors],
            ["improvements/x/evaluation.json:12: key 'minimum_pass_rate' occurs twice in one object [keep one of the two]"],
        )

    def test_what_is_no_json_object_is_told(self):
        for text, message in [("", ":1: not JSON"), ("[]", ": is a JSON array"), (b'{"a": "\xff"}', ":1: is not UTF-8"), ('{"evaluators": [NaN]}', ":1: NaN")]:
            self.assertIsNone(self.load(text))
            self.assertIn(f"improvements/x/evaluation.json{message}", self.breaches.errors[0].text())

    def test_a_file_that_is_not_there_is_told_with_a_hint(self):
        self.assertIsNone(self.load(None))
        self.assertEqual(self.breaches.errors[0].text(), "improvements/x/evaluation.json: does not exist [start an improvement with: kaizen init NAME]")

    def test_includes_are_checked_at_their_line_and_the_good_ones_kept(self):
        write_lines("datasets/regression.jsonl", [{"id": "a", "input": 1}])
        evaluation = self.load('{"evaluators": [],\n "include": [\n  "../../no.jsonl",\n  "../../datasets/regression.jsonl"]}')
        self.assertEqual(evaluation.include, ["../../datasets/regression.jsonl"])
        self.assertEqual([breach.place() for breach in self.breaches.errors], ["improvements/x/evaluation.json:3#/include/0"])

    def test_all_breaches_are_told_in_one_pass(self):
        self.assertEqual(len(self.places({"version": 9, "seed": "x", "sed": 1, "acceptance": {"a": 1, "minimum_delta": "x"}, "evaluators": [1, {"$use": "no"}]})), 7)


class References(EvaluationCase):
    """$use and $file at any depth; $case and $literal are left alone."""

    def evaluators(self, *entries, **define):
        evaluation = self.load({"define": define, "evaluators": list(entries)})
        return evaluation.evaluators

    def problems(self, *entries, **define):
        self.evaluators(*entries, **define)
        return [f"{breach.pointer}: {breach.message}" for breach in self.breaches.errors]

    def test_use_is_a_copy_of_the_entry_and_keys_beside_it_are_added(self):
        writes = {"kind": "tool", "name": ["charge_*"]}
        self.assertEqual(
            self.evaluators({"a": {"$use": "writes"}}, {"a": [[{"$use": "writes", "status": "ok", "kind": "any"}]]}, {"$use": "writes", "id": "x"}, writes=writes),
            [{"a": writes}, {"a": [[{"kind": "any", "name": ["charge_*"], "status": "ok"}]]}, {**writes, "id": "x"}],
        )
        self.assertEqual(self.breaches.errors, [])

    def test_a_definition_may_be_any_value_and_use_others(self):
        self.assertEqual(
            self.evaluators({"a": {"$use": "words"}, "b": {"$use": "both"}}, words=["x", 1], both={"w": {"$use": "words"}, "n": {"$use": "none"}}, none=None),
            [{"a": ["x", 1], "b": {"w": ["x", 1], "n": None}}],
        )
        self.assertEqual(self.load(None).define["both"], {"w": ["x", 1], "n": None})

    def test_case_pointers_and_literals_stay(self):
        entry = {"a": {"$case": "/expected/x"}, "b": {"$literal": {"$use": "no"}}, "c": {"$regex": "x"}}
        self.assertEqual(self.evaluators(entry, words=1), [entry])
        self.assertEqual(self.breaches.errors, [])

    def test_a_reference_that_leads_nowhere_is_told_at_its_place(self):
        for entry, define, message in [
            ({"a": [0, {"$use": "wirtes"}]}, {"writes": 1}, "/evaluators/0/a/1/$use: 'define' has no entry 'wirtes'"),
            ({"a/b": {"$use": 3}}, {}, "/evaluators/0/a~1b/$use: $use must be a text that names something"),
            ({"a": {"$use": "x", "more": 1}}, {"x": [1]}, "/evaluators/0/a: keys can only stand beside $use when 'x' is an object"),
            ({"a": {"$file": "no.md"}}, {}, "/evaluators/0/a/$file: file 'no.md' does not exist"),
            ({"a": {"$file": "no.md", "b": 1}}, {}, "/evaluators/0/a: nothing can stand beside $file"),
            ({"a": {"$file": "../y/z.md"}}, {}, "/evaluators/0/a/$file: file '../y/z.md' lies outside the improvement folder"),
            ({"a": {"$file": "/etc/passwd"}}, {}, "/evaluators/0/a/$file: file '/etc/passwd' lies outside the improvement folder"),
            ({"a": {"$file": "."}}, {}, "/evaluators/0/a/$file: file '.' does not exist"),
            ({"a": {"$file": ["x"]}}, {}, "/evaluators/0/a/$file: $file must be a text that names something"),
        ]:
            with self.subTest(entry=entry):
                self.assertEqual(self.problems(entry, **define), [message])
        self.problems({"a": {"$use": "wirtes"}}, writes=1)
        self.assertEqual(self.breaches.errors[0].hint, "did you mean 'writes'?")

    def test_a_circle_is_refused(self):
        self.assertEqual(self.problems(a={"$use": "a"}), ["/define/a/$use: 'a' is made from itself"])
        found = self.problems({"x": {"$use": "a"}}, a={"k": {"$use": "b"}}, b=[{"$use": "a"}])
        self.assertIn("/define/b/0/$use: 'a' is made from itself", found)
        self.assertIn("/define/a/k/$use: 'b' is made from itself", found)
        self.assertEqual(len(found), len(set(found)))

    def test_a_chain_too_long_to_follow_is_refused(self):
        chain = {f"n{index}": {"x": {"$use": f"n{index + 1}"}} for index in range(203)}
        found = self.problems({"x": {"$use": "n0"}}, **chain, n203=1)
        self.assertTrue(found)
        self.assertIn("references nest more than 200 levels deep", found[0])
        self.assertEqual(self.problems({"x": {"$use": "n0"}}, **{f"n{index}": {"$use": f"n{index + 1}"} for index in range(90)}, n90=1), [])

    def test_a_file_holds_json_or_text(self):
        write("improvements/x/rubrics/tone.md", "\ufeffBe kind.\r\nBe short.\r\n")
        write("improvements/x/words.json", '["a", 1.5]')
        write("improvements/x/list.txt", '["b"]')
        self.assertEqual(
            self.evaluators({"r": {"$file": "rubrics/tone.md"}, "w": {"$file": "words.json"}, "l": {"$file": "./list.txt"}}),
            [{"r": "Be kind.\nBe short.\n", "w": ["a", 1.5], "l": ["b"]}],
        )
        hashes = self.load(None).file_hashes
        self.assertEqual(hashes["rubrics/tone.md"], hashlib.sha256(b"Be kind.\nBe short.\n").hexdigest())
        self.assertEqual(set(hashes), {"rubrics/tone.md", "words.json", "./list.txt"})

    def test_a_json_file_is_read_as_if_it_stood_there(self):
        write("improvements/x/steps.json", '{"match": {"$use": "writes"}, "also": {"$case": "/expected"}}')
        self.assertEqual(self.evaluators({"a": {"$file": "steps.json"}}, writes=[7]), [{"a": {"match": [7], "also": {"$case": "/expected"}}}])
        write("improvements/x/steps.json", '{"match": [{"$use": "wirtes"}]}')
        self.assertEqual(
            self.problems({"a": {"$file": "steps.json"}}, writes=1), ["/evaluators/0/a/$file: in 'steps.json'/match/0/$use: 'define' has no entry 'wirtes'"]
        )
        write("improvements/x/steps.json", '{"$file": "steps.json"}')
        self.assertIn("'steps.json' is made from itself", self.problems({"a": {"$file": "steps.json"}})[0])

    def test_a_json_file_that_is_not_json_is_told_with_its_line(self):
        write("improvements/x/words.json", '["a",\n "b",]')
        self.assertIn("/evaluators/0/a/$file: file 'words.json', line 2: not JSON", self.problems({"a": {"$file": "words.json"}})[0])

    def test_links_may_not_leave_the_folder(self):
        write("improvements/secret.txt", "secret")
        os.symlink("../secret.txt", "improvements/x/link.txt")
        os.symlink("..", "improvements/x/up")
        write("improvements/x/real.txt", "fine")
        os.symlink("real.txt", "improvements/x/inner.txt")
        for name in ("link.txt", "up/secret.txt"):
            self.assertIn("lies outside the improvement folder", self.problems({"a": {"$file": name}})[0])
        self.assertEqual(self.evaluators({"a": {"$file": "inner.txt"}}), [{"a": "fine"}])

    def test_a_file_that_is_no_text_is_told(self):
        write("improvements/x/data.bin", b"\xff\xfe")
        self.assertIn("is not UTF-8", self.problems({"a": {"$file": "data.bin"}})[0])

    def test_a_breach_in_what_was_brought_in_is_told_at_the_reference(self):
        evaluation = self.load('{"define": {"w": {"name": 1}},\n "evaluators": [\n  {"id": "a",\n   "match": {"$use": "w"}}]}')
        self.assertEqual(evaluation.line("/evaluators/0/match/name"), 4)
        self.assertEqual(evaluation.line("/evaluators/0"), 3)
        self.assertIsNone(evaluation.line(""))


class CaseEntries(EvaluationCase):
    """A case's own evaluators: $use from evaluation.json, $file only in the improvement's own cases."""

    def entries(self, evaluators):
        self.load({"define": {"w": {"name": "x"}}, "evaluators": [], "include": ["../../datasets/regression.jsonl"]})
        write("improvements/x/tone.md", "kind")
        write_lines("improvements/x/test_cases.jsonl", [{"id": "own", "input": 1, "evaluators": evaluators}])
        write_lines("datasets/regression.jsonl", [{"id": "included", "input": 1, "evaluators": evaluators}])
        evaluation = self.load(None)
        dataset = kaizen.load_dataset(kaizen.Improvement("improvements/x"), evaluation.include, self.breaches)
        self.assertEqual(self.breaches.errors, [])
        found = {name: kaizen.case_entries(case, evaluation, self.breaches) for name, case in dataset.cases.items()}
        return found, [breach.text() for breach in self.breaches.errors]

    def test_use_is_expanded_in_both(self):
        found, errors = self.entries([{"id": "a", "match": {"$use": "w"}}])
        self.assertEqual(found, {name: [{"id": "a", "match": {"name": "x"}}] for name in ("own", "included")})
        self.assertEqual(errors, [])

    def test_a_file_is_for_own_cases_only(self):
        found, errors = self.entries([{"id": "a", "r": {"$file": "tone.md"}}])
        self.assertEqual(found["own"], [{"id": "a", "r": "kind"}])
        self.assertEqual(
            errors,
            ["datasets/regression.jsonl:1#/evaluators/0/r/$file: a case of an included file cannot use $file 'tone.md' [write the text into the case]"],
        )


class ExactFractions(StrictTestCase):
    """0.3 is three tenths, and nothing that is binary about it."""

    def test_decimals_are_what_they_write(self):
        for value, fraction in [(0.3, "3/10"), (0.1, "1/10"), (0.95, "19/20"), (1, "1"), (0, "0"), (1.0, "1"), (-0.05, "-1/20"), (1e-7, "1/10000000"), (0.799999, "799999/1000000"), (1e22, "1e22")]:
            with self.subTest(value=value):
                self.assertEqual(kaizen.exact_fraction(value), Fraction(fraction))

    def test_three_of_ten_meets_three_tenths(self):
        self.assertGreaterEqual(Fraction(3, 10), kaizen.exact_fraction(json.loads("0.3")))
        self.assertLess(Fraction(2, 3), kaizen.exact_fraction(json.loads("0.67")))


if __name__ == "__main__":
    unittest.main()
