"""all, any, none, at_least: three-valued logic over every combination of what their entries say."""

import itertools
import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase

import kaizen

# An entry for each status, on the output "x".
SAYING = {
    "pass": {"type": "contains", "values": "x"},
    "fail": {"type": "contains", "values": "y"},
    "error": {"type": "equals", "select": "state", "value": 1},
    "not_applicable": {"type": "equals", "select": "state", "value": 1, "on_missing": "not_applicable"},
}


def expected_all(statuses):
    """The conjunction, from its truth table."""
    return "fail" if "fail" in statuses else "error" if "error" in statuses else "pass"


def negation(status):
    """pass and fail change places."""
    return {"pass": "fail", "fail": "pass"}.get(status, status)


class ThreeValuedLogic(StrictTestCase):
    """Every combination of up to three entries."""

    def combinations(self):
        for length in (1, 2, 3):
            yield from itertools.product(SAYING, repeat=length)

    def test_every_combination(self):
        for statuses in self.combinations():
            children = [SAYING[status] for status in statuses]
            applying = [status for status in statuses if status != "not_applicable"]
            opposite = negation(expected_all([negation(status) for status in applying]))  # De Morgan
            expected = {"all": expected_all(applying), "any": opposite, "none": negation(opposite)}
            for kind, status in expected.items():
                with self.subTest(kind=kind, statuses=statuses):
                    wanted = status if applying else "not_applicable"
                    self.assertEqual(status_of(entry_of(kind, of=children), "x"), wanted)
                    self.assertEqual(status_of(entry_of(kind, of=children, negate=True), "x"), negation(wanted))

    def test_at_least_is_decided_by_trying_every_answer_an_error_could_have_been(self):
        for statuses in self.combinations():
            applying = [status for status in statuses if status != "not_applicable"]
            for needed in range(1, len(statuses) + 1):
                worlds = itertools.product(*[("pass", "fail") if status == "error" else (status,) for status in applying])
                answers = {"pass" if world.count("pass") >= needed else "fail" for world in worlds}
                expected = "not_applicable" if not applying else answers.pop() if len(answers) == 1 else "error"
                with self.subTest(statuses=statuses, n=needed):
                    outcome = outcome_of(entry_of("at_least", n=needed, of=[SAYING[status] for status in statuses]), "x")
                    self.assertEqual(outcome.status, expected)
                    if expected in ("pass", "fail"):
                        self.assertEqual(outcome.score, applying.count("pass") / max(len(applying), needed))  # a fail never has full score


class Nesting(StrictTestCase):
    """Entries inside entries."""

    def test_they_nest_and_each_may_negate_select_and_take_from_the_case(self):
        case = {"id": "c1", "input": "?", "expected": {"word": "yes"}}
        inner = {"type": "any", "of": [{"type": "contains", "values": {"$case": "/expected/word"}, "negate": True}, {"type": "contains", "values": "sure"}]}
        entry = entry_of("all", of=[inner, {"type": "length", "max": 10}])
        self.assertEqual([status_of(entry, text, case) for text in ("no", "yes", "yes, sure", "a long text")], ["pass", "fail", "pass", "fail"])

    def test_the_reason_names_what_decided(self):
        reason = outcome_of(entry_of("all", of=[SAYING["pass"], {**SAYING["fail"], "id": "polite"}]), "x").reason
        self.assertEqual(reason, "1 of 2 passed; failed: polite (does not contain 'y')")
        reason = outcome_of(entry_of("none", of=[SAYING["pass"], SAYING["fail"]]), "x").reason
        self.assertEqual(reason, "1 of 2 passed; passed: contains (contains 'x')")

    def test_a_threshold_bounds_the_share(self):
        of = [SAYING["pass"], SAYING["pass"], SAYING["fail"]]
        self.assertEqual(status_of(entry_of("at_least", n=1, of=of, threshold=0.67), "x"), "fail")
        self.assertEqual(status_of(entry_of("at_least", n=1, of=of, threshold=0.66), "x"), "pass")

    def test_what_belongs_to_the_outer_entry_is_refused_inside(self):
        for settings, pointer in (
            ({"of": []}, "/of"),
            ({"of": [7]}, "/of"),
            ({"of": {"$case": "/expected"}}, "/of"),
            ({"of": [{**SAYING["pass"], "severity": "hard"}]}, "/of/0/severity"),
            ({"of": [SAYING["pass"], {"type": "contains", "values": ""}]}, "/of/1/values"),
            ({"of": [{"type": "all", "of": [{"type": "contain", "values": "a"}]}]}, "/of/0/of/0/type"),
        ):
            with self.subTest(settings=settings):
                self.assertEqual(refusal_of(entry_of("all", **settings))[0], pointer)
        for needed in (0, 2, -1):
            self.assertEqual(refusal_of(entry_of("at_least", n=needed, of=[SAYING["pass"]]))[0], "/n")
        self.assertEqual(refusal_of(entry_of("at_least", of=[SAYING["pass"]]))[1], "type at_least needs n")

    def test_versions_of_inner_types_are_known(self):
        prepared = kaizen.prepare_entry(entry_of("any", of=[{"type": "all", "of": [SAYING["error"]]}, SAYING["pass"]]))
        self.assertEqual(set(prepared.versions), {"any", "all", "equals", "contains"})


if __name__ == "__main__":
    unittest.main()
