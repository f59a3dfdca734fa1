"""The envelope of every entry: select, negate, threshold, when, on_missing, $case, and what is refused."""

import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase

import kaizen

WORDS = {"id": "c1", "input": "?", "expected": {"word": "yes", "none": [], "null": None, "list": ["a", "b"], "deep": [{"n": 1}, {"n": 2}]}}


class OrderOfThings(StrictTestCase):
    """when, $case, select, transform, check, threshold, negate."""

    def test_negation_changes_pass_and_fail_and_nothing_else(self):
        for output, settings, status, opposite in (
            ("x", {}, "pass", "fail"),
            ("y", {}, "fail", "pass"),
            (None, {}, "error", "error"),
            (None, {"on_missing": "fail"}, "fail", "fail"),
            (None, {"on_missing": "not_applicable"}, "not_applicable", "not_applicable"),
            ("x", {"when": {"tags": ["t"]}}, "not_applicable", "not_applicable"),
        ):
            entry = entry_of("contains", values="x", **settings)
            with self.subTest(output=output, settings=settings):
                self.assertEqual(status_of(entry, output), status)
                self.assertEqual(status_of({**entry, "negate": True}, output), opposite)

    def test_a_negated_score_is_one_minus_the_score_exactly(self):
        entry = entry_of("contains", values=[f"w{index}" for index in range(10)], negate=True)
        outcome = outcome_of(entry, " ".join(f"w{index}" for index in range(7)))
        self.assertEqual((outcome.status, outcome.score), ("pass", 0.3))  # 1 - 0.7 is 0.30000000000000004 in binary

    def test_a_threshold_comes_before_negation(self):
        entry = entry_of("contains", values=["a", "b"], threshold=0.5)
        self.assertEqual([status_of(entry, text) for text in ("a", "c")], ["pass", "fail"])
        self.assertEqual([status_of({**entry, "negate": True}, text) for text in ("a", "c")], ["fail", "pass"])

    def test_a_threshold_of_zero_is_a_threshold(self):
        # Field case 30, policy C: a score of 0 meets a minimum of 0, a missing score does not.
        entry = entry_of("contains", values=["a", "b"], threshold=0)
        self.assertEqual([status_of(entry, text) for text in ("ab", "", None)], ["pass", "pass", "error"])

    def test_on_missing_below_output_json_defaults_to_fail(self):
        entry = entry_of("equals", select="output.json/a", value=1)
        for output, status in (('{"a": 1}', "pass"), ('{"b": 1}', "fail"), ("prose", "fail"), ("[]", "fail"), (None, "error")):
            with self.subTest(output=output):
                outcome = outcome_of(entry, output)
                self.assertEqual((outcome.status, outcome.score), (status, {"pass": 1.0, "fail": 0.0}.get(status)))
        self.assertEqual(status_of({**entry, "on_missing": "error"}, "prose"), "error")
        self.assertEqual(status_of(entry_of("equals", select="state/after", value=1), "x", state={}), "error")

    def test_the_reason_says_that_there_was_nothing_to_look_at(self):
        told = "(what was looked at is an empty text)"
        self.assertIn(told, outcome_of(entry_of("contains", values="x", negate=True), "").reason)
        self.assertIn(told, outcome_of(entry_of("length", max=3), "").reason)
        self.assertIn(told, outcome_of(entry_of("length", max=3, transform=["strip"]), " ").reason)
        silent = entry_of("contains", values="x", negate=True, select="messages.assistant")
        self.assertIn("(what was looked at is an empty list)", outcome_of(silent, "y", steps=[]).reason)
        self.assertNotIn("empty", outcome_of(entry_of("equals", select="finish_reason", value="stop"), "", finish_reason="stop").reason)

    def test_what_is_nested_beyond_reach_is_an_error_and_no_crash(self):
        # Files hold at most 200 levels (MAX_DEPTH); a caller could bring more.
        for depth, expected in ((kaizen.MAX_DEPTH, "pass"), (100_000, "error")):
            deep = "x"
            for _ in range(depth):
                deep = [deep]
            with self.subTest(depth=depth):
                self.assertEqual(status_of(entry_of("contains", values="x"), deep), expected)


class When(StrictTestCase):
    """To which cases an entry applies."""

    def test_conditions(self):
        case = {"id": "c1", "input": {"lang": "fr"}, "tags": ["a", "b"], "split": "challenge", "metadata": {"n": 3}}
        for when, applies in (
            ({"tags": ["b", "z"]}, True),
            ({"tags": "b"}, True),
            ({"tags": ["z"]}, False),
            ({"split": ["challenge", "holdout"]}, True),
            ({"split": ["development"]}, False),
            ({"case": {"/input/lang": "fr"}}, True),
            ({"case": {"/input/lang": {"$in": ["en", "de"]}}}, False),
            ({"case": {"/metadata/n": {"$gt": 2}, "/input/lang": "fr"}}, True),
            ({"case": {"/metadata/n": {"$gt": 2}, "/input/lang": "en"}}, False),
            ({"case": {"/metadata/m": {"$exists": False}}}, True),
            ({"case": {"/metadata/m": {"$exists": True}}}, False),
            ({"tags": ["a"], "split": ["development"]}, False),
            ({}, True),
        ):
            with self.subTest(when=when):
                found = outcome_of(entry_of("contains", values="x", when=when), "x", case)
                self.assertEqual(found.status, "pass" if applies else "not_applicable")
                self.assertEqual(found.score, 1.0 if applies else None)
        self.assertEqual(status_of(entry_of("contains", values="x", when={"tags": ["a"]}), "x", {"id": "c", "input": 1}), "not_applicable")

    def test_what_cannot_be_meant_is_refused(self):
        for when, pointer in (
            ({"tag": ["a"]}, "/when/tag"),
            ({"tags": []}, "/when/tags"),
            ({"tags": [7]}, "/when/tags"),
            ({"case": ["a"]}, "/when/case"),
            ({"case": {"input": 1}}, "/when/case"),
            ({"case": {"/input": {"$gte": 1}}}, "/when/case/~1input/$gte"),
            (["a"], "/when"),
        ):
            with self.subTest(when=when):
                self.assertEqual(refusal_of(entry_of("contains", values="x", when=when))[0], pointer)
        self.assertEqual(refusal_of(entry_of("contains", values="x", when={"tag": ["a"]}))[2], "did you mean 'tags'?")


class FromTheCase(StrictTestCase):
    """$case: values, at any depth, that each case brings."""

    def test_values_are_read_as_if_they_stood_in_the_entry(self):
        for settings, output, status in (
            ({"type": "contains", "values": {"$case": "/expected/word"}}, "oh yes", "pass"),
            ({"type": "contains", "values": ["oh", {"$case": "/expected/word"}]}, "oh yes", "pass"),
            ({"type": "contains", "values": {"$case": "/expected/list"}, "mode": "any"}, "b", "pass"),
            ({"type": "equals", "value": {"$case": "/expected/null"}, "select": "output/a"}, {"a": None}, "pass"),
            ({"type": "equals", "value": {"a": [{"$case": "/expected/word"}]}}, {"a": ["yes"]}, "pass"),
            ({"type": "equals", "value": {"$case": "/expected/deep/*/n"}}, [1, 2], "pass"),
            ({"type": "equals", "value": {"$case": ""}}, WORDS, "pass"),
            ({"type": "equals", "value": {"$literal": {"$case": "/a"}}}, {"$literal": {"$case": "/a"}}, "pass"),
        ):
            with self.subTest(settings=settings):
                self.assertEqual(status_of({"id": "e", **settings}, output, WORDS), status)

    def test_a_pointer_that_finds_nothing_follows_on_missing_and_is_no_fault_of_the_agent(self):
        entry = entry_of("equals", value={"$case": "/expected/gone"}, select="output.json/a", negate=True)
        self.assertEqual(outcome_of(entry, '{"a": 1}', WORDS)[:3], ("error", None, "the case has nothing at /expected/gone"))
        self.assertEqual(status_of({**entry, "on_missing": "not_applicable"}, '{"a": 1}', WORDS), "not_applicable")

    def test_an_empty_list_of_the_case_asks_nothing(self):
        outcome = outcome_of(entry_of("contains", values={"$case": "/expected/none"}), "x", WORDS)
        self.assertEqual(outcome[:3], ("not_applicable", None, "the case brings an empty list for values"))
        self.assertEqual(status_of(entry_of("equals", value={"$case": "/expected/none"}), [], WORDS), "pass")

    def test_a_value_that_cannot_be_used_is_an_error_if_it_gets_that_far(self):
        outcome = outcome_of(entry_of("contains", values={"$case": "/expected/null"}), "x", WORDS)
        self.assertEqual((outcome.status, outcome.reason), ("error", "cannot be applied to this case: values is null, not a text or a list of texts"))

    def test_references_that_cannot_be_meant_are_refused(self):
        for value, pointer in (
            ({"$case": "/a", "b": 1}, "/value"),
            ({"$case": 7}, "/value"),
            ({"$case": "a"}, "/value"),
            ({"deep": [{"$case": "a"}]}, "/value/deep/0"),
        ):
            with self.subTest(value=value):
                self.assertEqual(refusal_of(entry_of("equals", value=value))[0], pointer)
        for key in ("threshold", "weight", "select", "when", "transform", "severity"):
            with self.subTest(key=key):
                self.assertEqual(refusal_of(entry_of("contains", values="x", **{key: {"$case": "/a"}}))[0], f"/{key}")


class Refusals(StrictTestCase):
    """Keys, ids and values of the envelope."""

    def test_each_names_its_place_and_the_nearest_name(self):
        for entry, pointer, hint in (
            (7, "", ""),
            ({"id": "e"}, "", None),
            (entry_of("contians", values="x"), "/type", "did you mean 'contains'?"),
            (entry_of("contains", value="x"), "/value", "did you mean 'values'?"),
            (entry_of("contains", values="x", treshold=1), "/treshold", "did you mean 'threshold'?"),
            (entry_of("contains", values="x", severity="gat"), "/severity", "did you mean 'gate'?"),
            (entry_of("contains", values="x", on_missing="errr"), "/on_missing", "did you mean 'error'?"),
            (entry_of("contains", values="x", on_missing=0), "/on_missing", ""),
            (entry_of("contains", values="x", threshold=1.1), "/threshold", ""),
            (entry_of("contains", values="x", threshold="1"), "/threshold", ""),
            (entry_of("contains", values="x", weight=-1), "/weight", ""),
            (entry_of("contains", values="x", weight=True), "/weight", ""),
            (entry_of("contains", values="x", negate="yes"), "/negate", ""),
            (entry_of("contains", values="x", select="/a"), "/select", ""),
            ({"type": "contains", "values": "x"}, "", None),
            (entry_of("contains", values="x") | {"id": ""}, "", None),
            (entry_of("contains", values="x") | {"id": "a\nb"}, "/id", ""),
            (entry_of("contains", values="x") | {"id": "a" * 201}, "/id", ""),
            (entry_of("contains", values="x") | {"id": 7}, "/id", ""),
        ):
            with self.subTest(entry=entry):
                found = refusal_of(entry)
                self.assertEqual(found[0], pointer)
                if hint is not None:
                    self.assertEqual(found[2], hint)

    def test_kinds_are_told_in_words(self):
        self.assertEqual(refusal_of(entry_of("contains", values={"a": 1}))[1], "values is an object, not a text or a list of texts")
        self.assertEqual(refusal_of(entry_of("length", max=True))[1], "max is a boolean, not an integer")

    def test_every_kind_of_the_tables_is_known(self):
        for kind in kaizen.EVALUATORS.values():
            for parameter in (*kaizen.ENVELOPE, *kind.parameters):
                with self.subTest(type=kind.name, parameter=parameter.name):
                    self.assertIn(parameter.kind, kaizen.KINDS)
                    self.assertEqual(parameter.kind == "choice", bool(parameter.choices))


if __name__ == "__main__":
    unittest.main()
