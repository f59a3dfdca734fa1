"""The evaluator `fields`: a document compared with a reference, and what it reads out of text."""

import itertools
import random

import support
from support import kaizen

READINGS = {
    "id": "reading", "type": "fields", "select": "output.json", "extra": "forbid", "lists": {"key": "/meter"},
    "rules": [{"path": "/readings/*/value", "op": "numeric", "abs_tol": 0.5, "weight": 3}, {"path": "/read_on", "op": "date"}, {"path": "/remark", "op": "ignore"}],
    "aggregate": "weighted", "threshold": 0.9,
}  # fmt: skip


def outcome(entry, output, expected=None, **case):
    """What the entry *entry* of type fields says of *output*, whose case expects *expected*."""
    prepared = kaizen.prepare_entry({"id": "it", "type": "fields", **entry})
    case = {**case, **({} if expected is None else {"expected": expected})}
    return prepared.evaluate({"output": output, "status": "completed"}, case, {})


def score(entry, output, expected=None):
    """Its score."""
    return outcome(entry, output, expected).score


def rule(op, value=None, **more):
    """An entry with one rule, at /x, and nothing else compared."""
    return {"rest": "ignore", "rules": [{"path": "/x", "op": op, **({} if value is None else {"value": value}), **more}]}


def refusal(entry):
    """'pointer: message' of the ConfigurationError for *entry*."""
    try:
        kaizen.prepare_entry({"id": "it", "type": "fields", **entry})
    except kaizen.ConfigurationError as error:
        return f"{error.pointer}: {error.message}"
    return ""


class Comparison(support.StrictTestCase):
    """What a field is, and what the score says."""

    def test_leaves_of_the_reference_are_fields_of_weight_one(self):
        expected = {"a": 1, "b": {"c": "x", "d": [True, None]}, "e": [], "f": {}}
        found = outcome({}, {"a": 1.0, "b": {"c": "x", "d": [True, None], "more": 1}, "e": [], "f": {"more": 2}}, expected)
        self.assertEqual((found.status, found.score, found.value), ("pass", 1.0, {"matched": 6, "of": 6}))
        found = outcome({}, {"a": True, "b": {"c": "X", "d": [1, None]}, "e": [1]}, expected)
        self.assertEqual((found.status, found.score, found.value), ("fail", 1 / 6, {"matched": 1, "of": 6}))
        self.assertEqual(found.reason, (
            '5 of 6 fields differ: /a: expected 1, found true; /b/c: expected "x", found "X"; /b/d/0: expected true, found 1; '
            "/e: expected [], found [1]; /f: is missing, expected {}"
        ))  # fmt: skip
        self.assertEqual([each["pointer"] for each in found.evidence], ["/a", "/b/c", "/b/d/0", "/e", "/f"])

    def test_a_missing_field_is_the_agents_fault_and_a_missing_reference_is_not(self):
        self.assertEqual(outcome({}, {}, {"a": 1}).status, "fail")
        self.assertEqual(outcome({}, {}, {"a": None}).status, "fail")
        self.assertEqual(outcome({}, "not JSON", {"a": 1}).status, "fail")
        self.assertEqual(outcome({}, {"a": 1}).status, "error")
        self.assertEqual(outcome({"on_missing": "not_applicable"}, {"a": 1}).status, "not_applicable")
        found = outcome({"rules": [{"path": "/total", "op": "numeric"}]}, {"total": 5, "a": 1}, {"a": 1})
        self.assertEqual((found.status, found.reason), ("error", "the reference has nothing at /total"))
        self.assertEqual(outcome({}, None, {"a": 1}).status, "error")

    def test_the_reference_may_be_given(self):
        self.assertEqual(outcome({"reference": {"a": 1}}, {"a": 1}, {"a": 2}).status, "pass")
        self.assertEqual(outcome({"reference": {"$case": "/context/truth"}}, {"a": 1}, context={"truth": {"a": 1}}).status, "pass")
        self.assertEqual(outcome({}, '{"a": [1]}', '{"a":[1]}').status, "pass")
        self.assertEqual(outcome({}, 7, 7).status, "pass")

    def test_keys_of_objects_beyond_the_reference_count_only_when_forbidden(self):
        expected, answer = {"a": 1}, {"a": 1, "b": 2, "c": {"d": 3}}
        self.assertEqual(score({}, answer, expected), 1.0)
        found = outcome({"extra": "forbid"}, answer, expected)
        self.assertEqual((found.score, found.reason), (1 / 3, "2 of 3 fields differ: /b: is not in the reference; /c: is not in the reference"))
        self.assertEqual(score({"extra": "forbid", "rules": [{"path": "/b", "op": "ignore"}, {"path": "/c/d", "op": "exists"}]}, answer, expected), 1.0)
        self.assertEqual(score({"extra": "forbid", "rules": [{"path": "/c/e", "op": "absent"}]}, answer, expected), 2 / 4)
        self.assertEqual(score({"extra": "forbid"}, {"a": 1}, {}), 0.5)

    def test_elements_beyond_the_reference_always_count(self):
        self.assertEqual(score({}, [1, 2, 3], [1, 2]), 2 / 3)
        self.assertEqual(score({}, [1], [1, 2]), 0.5)
        self.assertEqual(score({}, {"a": [1]}, {"a": []}), 0.0)
        self.assertEqual(score({"rest": "ignore", "rules": [{"path": "/a", "op": "equals"}]}, {"a": 1, "l": [1, 2]}, {"a": 1, "l": [1]}), 1.0)
        rest = {"rest": "ignore", "rules": [{"path": "/l/*/n", "op": "numeric"}]}
        self.assertEqual(score(rest, {"l": [{"n": "1"}, {"n": 2}]}, {"l": [{"n": 1}]}), 0.5)

    def test_weights_are_summed_exactly_and_the_threshold_is_met_on_the_limit(self):
        rules = [{"path": f"/{name}", "weight": weight} for name, weight in (("a", 0.7), ("b", 0.1), ("c", 0.1), ("d", 0.1))]
        answer = {"a": 1, "b": 1, "c": 1, "d": 2}
        expected = {"a": 1, "b": 1, "c": 1, "d": 1}
        self.assertEqual(score({"rules": rules}, answer, expected), 0.9)
        self.assertEqual(outcome({"rules": rules, "threshold": 0.9}, answer, expected).status, "pass")
        self.assertEqual(outcome({"rules": rules, "threshold": 0.91}, answer, expected).status, "fail")
        self.assertEqual(score({"rules": rules, "aggregate": "all"}, answer, expected), 0.0)

    def test_json_held_in_text_is_entered_but_not_compared_as_its_value(self):
        self.assertEqual(score({}, {"args": '{"n": 1}'}, {"args": {"n": 1}}), 1.0)
        self.assertEqual(score({}, {"n": "1"}, {"n": 1}), 0.0)
        self.assertEqual(score(rule("equals", 1) | {"rules": [{"path": "/args/n", "value": 1}]}, {"args": '{"n": 1}'}), 1.0)

    def test_without_any_field_it_is_not_applicable(self):
        self.assertEqual(outcome({"rules": [{"path": "", "op": "ignore"}]}, {"a": 1}, {"a": 1}).status, "not_applicable")

    def test_the_order_of_keys_changes_nothing(self):
        expected = {"b": 1, "a": {"d": 2, "c": 3}}
        answer = {"a": {"c": 0, "d": 0}, "b": 0}
        turned = {"a": {"c": 3, "d": 2}, "b": 1}
        self.assertEqual(outcome({"extra": "forbid"}, answer, expected), outcome({"extra": "forbid"}, dict(reversed(answer.items())), turned))

    def test_long_values_are_cut_and_made_visible_and_many_differences_counted(self):
        found = outcome({}, {"a": "\x1b[31m" + "x" * 100_000}, {"a": "y" * 100_000})
        self.assertLess(len(found.reason), 250)
        self.assertNotIn("\x1b", found.reason)
        found = outcome({}, {}, {str(number): number for number in range(1000)})
        self.assertTrue(found.reason.endswith("; and 995 more"))
        self.assertEqual(len(found.evidence), 20)


class Lists(support.StrictTestCase):
    """How elements are paired, one to one."""

    def test_ordered_pairs_by_place(self):
        self.assertEqual(score({}, [2, 1], [1, 2]), 0.0)

    def test_multiset_pairs_each_element_once(self):
        entry = {"lists": "multiset"}
        self.assertEqual(score(entry, [2, 1, 1], [1, 2, 1]), 1.0)
        self.assertEqual(score(entry, [1, 2, 2], [1, 1, 2]), 2 / 3)
        self.assertEqual(score(entry, [1], [1, 1]), 0.5)
        self.assertEqual(score(entry, [1, 1], [1]), 0.5)
        self.assertEqual(score(entry, [True], [1]), 0.0)
        self.assertEqual(score(entry, [{"a": 1, "b": 2}, {"a": 3, "b": 4}], [{"b": 4, "a": 3}, {"a": 1, "b": 0}]), 3 / 4)

    def test_set_counts_each_element_once_whatever_its_number(self):
        self.assertEqual(score({"lists": "set"}, [1, 2, 2, 1.0], [2, 1]), 1.0)
        self.assertEqual(score({"lists": "set"}, [1], [1, 1, 1]), 1.0)
        self.assertEqual(score({"lists": "set"}, [1, 3], [1, 2]), 0.5)

    def test_a_key_pairs_what_belongs_together(self):
        entry = {"lists": {"key": "/id"}}
        expected = [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}]
        self.assertEqual(score(entry, [{"id": 2, "n": "b"}, {"id": 1, "n": "a"}], expected), 1.0)
        found = outcome(entry, [{"id": 2, "n": "x"}, {"id": "1", "n": "a"}], expected)
        self.assertEqual(found.reason, (
            '4 of 5 fields differ: /0/id: is missing, expected 1; /0/n: is missing, expected "a"; /0/n: expected "b", found "x"; '
            "/1: has no partner in the reference"
        ).replace("4 of 5", "4 of 5"))  # fmt: skip
        self.assertEqual(score(entry, {"l": [{"id": 1}], "tags": ["a"]}, {"l": [{"id": 1}], "tags": ["a"]}), 1.0)
        self.assertEqual(score({"lists": {"key": "/a/id"}}, [{"a": {"id": 2}}, {"a": {"id": 1}}], [{"a": {"id": 1}}, {"a": {"id": 2}}]), 1.0)

    def test_a_rule_may_say_how_one_list_is_paired(self):
        expected, answer = {"a": [1, 2], "b": [1, 2]}, {"a": [2, 1], "b": [2, 1]}
        self.assertEqual(score({"rules": [{"path": "/a", "lists": "multiset"}]}, answer, expected), 0.5)
        self.assertEqual(outcome({"rules": [{"path": "/a", "lists": "multiset"}]}, answer, expected).value, {"matched": 2, "of": 4})
        self.assertEqual(outcome({"rules": [{"path": "/a", "op": "equals", "lists": "set"}]}, answer, expected).value, {"matched": 1, "of": 3})
        self.assertEqual(score({"rules": [{"path": "/*", "lists": "multiset"}]}, answer, expected), 1.0)

    def test_pairing_gains_most_and_does_not_depend_on_the_order_of_the_answer(self):
        generator = random.Random(5)
        entry = {"lists": "multiset", "extra": "forbid", "rules": [{"path": "/*/n", "op": "numeric", "abs_tol": 1}]}
        for _ in range(40):
            expected = [{"n": generator.randrange(4), "k": generator.choice("ab")} for _ in range(3)]
            answer = [{"n": generator.randrange(4), "k": generator.choice("ab"), **({"z": 0} if generator.random() < 0.3 else {})} for _ in range(3)]
            scores = {score(entry, list(order), expected) for order in itertools.permutations(answer)}
            self.assertEqual(len(scores), 1, (expected, answer))
            # The best of all ways to pair them by hand: `ordered` scores one of them.
            ordered = {**entry, "lists": "ordered"}
            self.assertEqual(scores, {max(score(ordered, list(order), expected) for order in itertools.permutations(answer))})

    def test_tolerances_need_the_best_pairing_not_the_first(self):
        entry = {"lists": "multiset", "rules": [{"path": "/*", "op": "numeric", "abs_tol": 1}]}
        self.assertEqual(score(entry, [10, 9], [10, 11]), 1.0)
        self.assertEqual(score(entry, [9, 10], [10, 11]), 1.0)

    def test_lists_too_long_to_be_paired_are_not_measurable(self):
        same = [{"n": number} for number in range(3000)]
        self.assertEqual(score({"lists": "multiset"}, list(reversed(same)), same), 1.0)
        found = outcome({"lists": "multiset"}, [{"n": -number} for number in range(1, 400)], same[:400])
        self.assertEqual(found.status, "error")
        self.assertIn("name a key", found.reason)

    def test_the_assignment_is_the_best_of_all_permutations(self):
        generator = random.Random(1)
        for _ in range(300):
            rows, columns = generator.randrange(6), generator.randrange(1, 6)
            gains = [[generator.randrange(-3, 6) for _ in range(columns)] for _ in range(rows)]
            pairs = kaizen.best_assignment(gains)
            used = [column for column in pairs if column is not None]
            self.assertEqual(len(set(used)), min(rows, columns))
            shorter, longer = sorted((rows, columns))
            turned = gains if rows <= columns else [list(row) for row in zip(*gains)]
            best = max(sum(turned[row][order[row]] for row in range(shorter)) for order in itertools.permutations(range(longer), shorter)) if rows else 0
            self.assertEqual(sum(gains[row][column] for row, column in enumerate(pairs) if column is not None), best)


class Operators(support.StrictTestCase):
    """What each op of a rule compares."""

    def check(self, entry, met, not_met, expected=None):
        for value in met:
            with self.subTest(met=value):
                self.assertEqual(score(entry, {"x": value}, expected), 1.0)
        for value in not_met:
            with self.subTest(not_met=value):
                self.assertEqual(score(entry, {"x": value}, expected), 0.0)
        if entry["rules"][0]["op"] not in ("absent", "ignore"):
            self.assertEqual(score(entry, {}, expected), 0.0)

    def test_equals(self):
        self.check(rule("equals", {"a": [1]}), [{"a": [1.0]}], [{"a": [1], "b": 2}, {"a": [True]}, {"a": 1}, None])
        self.check(rule("equals", 10, abs_tol=0.1), [10.1, 9.9], [10.11, "10", True])
        self.check(rule("equals", [1, [2, 3]], lists="multiset"), [[[3, 2], 1]], [[1, 2, 3], [[2, 3], 1, 1]])
        self.check(rule("equals", {"a": 100, "b": "x"}, rel_tol=0.01), [{"a": 101, "b": "x"}], [{"a": 102, "b": "x"}, {"a": 100, "b": "y"}])

    def test_numeric_reads_both_sides_alike(self):
        self.check(rule("numeric", "1,250"), [1250, "1,250", "EUR 1250.00", "1.25e3"], ["1.250", 1251, "1250 and 3", "none", None, True, [1250]])
        self.check(rule("numeric", abs_tol=0.1), [4.1, "4.2", 4.3], [4.31, "4.09"], {"x": "4.2 kWh"})
        self.check(rule("numeric", 200, rel_tol=0.05), [190, 210], [189.9, 210.1])

    def test_date_reads_both_sides_alike(self):
        self.check(
            rule("date", "2026-03-05"),
            ["2026-03-05", "5 March 2026", "March 5th, 2026", "05.03.2026", "2026/3/5", "read on 2026-03-05T23:59:00Z", "5-Mar-2026", "Mar. 5, 2026 (2026-03-05)"],
            ["2026-05-03", "03/05/2026", "5 March", "2026-03-05 or 2026-03-06", "2026-02-30", 20260305, None],
        )
        self.check(rule("date", "3/25/2026", abs_tol=1), ["25.03.2026", "24/3/2026"], ["2026-03-27", "4/3/2026"])

    def test_regex(self):
        self.check(rule("regex", "^[A-Z]{2}-[0-9]+"), ["AB-1", "AB-12x"], ["xAB-1", 5, None])

    def test_contains(self):
        self.check(rule("contains", "ann"), ["anna", "ann"], ["Ann", 5, None])
        self.check(rule("contains", ["a", 1]), [[1, "b", "a"]], [["a"], ["a", True], "a1"])
        self.check(rule("contains", "a"), [["b", "a"], "ba"], [["b"]])
        self.check(rule("contains", {"a": 1}), [{"a": 1, "b": 2}], [{"a": 2}, [{"b": 1}]])

    def test_set(self):
        self.check(rule("set", ["a", "b"]), [["b", "a", "a"]], [["a"], ["a", "b", "c"], "ab", {"a": 1}])
        self.assertEqual(outcome(rule("set", ["a", "b"]), {"x": ["b", "c"]}).reason, '1 of 1 field differs: /x: lacks "a" and has "c" beside')

    def test_exists_absent_and_ignore(self):
        self.check(rule("exists"), [1, None, "", []], [])
        self.check(rule("absent"), [], [1, None])
        self.assertEqual(score(rule("absent"), {}), 1.0)
        self.assertEqual(score({"rules": [{"path": "/x", "op": "ignore"}]}, {"a": 1, "x": 2}, {"a": 1, "x": 3}), 1.0)

    def test_wildcards_of_rules_with_a_value_are_every_element_of_the_answer(self):
        entry = {"rest": "ignore", "rules": [{"path": "/l/*/unit", "value": "kWh"}]}
        self.assertEqual(score(entry, {"l": [{"unit": "kWh"}, {"unit": "m3"}, {}]}), 1 / 3)
        self.assertEqual(score(entry, {"l": []}), 0.0)
        self.assertEqual(score(entry, {}), 0.0)
        self.assertEqual(outcome(entry, {"l": []}, {"l": []}).status, "not_applicable")
        self.assertEqual(score({"rest": "ignore", "rules": [{"path": "/l/*/bad", "op": "absent"}]}, {"l": []}), 1.0)

    def test_a_rule_without_a_value_compares_with_its_place_in_the_reference(self):
        entry = {"rules": [{"path": "/l/*/n", "op": "numeric"}]}
        self.assertEqual(score(entry, {"l": [{"n": "1"}, {"n": 2}]}, {"l": [{"n": 1}, {"n": "2"}]}), 1.0)
        found = outcome(entry, {"l": [{"n": 1}]}, {"l": [{"n": "many"}]})
        self.assertEqual((found.status, found.reason), ("error", 'what is expected at /l/*/n holds no single number: "many"'))
        self.assertEqual(score({"rules": [{"path": "/x", "op": "contains"}]}, {"a": 1, "x": "anything"}, {"a": 1, "x": ""}), 1.0)

    def test_a_pattern_that_takes_exponential_time_is_an_error_that_names_it(self):
        found = outcome(rule("regex", "^(a+)+$"), {"x": "a" * 40 + "!"})
        self.assertEqual((found.status, found.score), ("error", None))
        self.assertIn("'^(a+)+$' of /x", found.reason)


class Configuration(support.StrictTestCase):
    """Rules that cannot be meant are refused before a run, with their place."""

    def test_rules_that_cannot_be_used(self):
        table = [
            ([], "/rules", "is an empty list"), ([1], "/rules/0", "not a rule"), ([{"op": "exists"}], "/rules/0", "has no path"),
            ([{"path": "/a", "opp": "exists"}], "/rules/0/opp", "unknown key 'opp'"), ([{"path": "/a", "op": "exist"}], "/rules/0/op", "unknown op"),
            ([{"path": "a"}], "/rules/0/path", "begins with '/'"), ([{"path": 1}], "/rules/0/path", "not a JSON Pointer"),
            ([{"path": "/a", "op": "regex"}], "/rules/0/value", "needs a value"), ([{"path": "/a", "op": "regex", "value": "["}], "/rules/0/value", "regular expression"),
            ([{"path": "/a", "op": "regex", "value": ""}], "/rules/0/value", "empty"), ([{"path": "/a", "op": "contains", "value": ""}], "/rules/0/value", "empty"),
            ([{"path": "/a", "op": "contains", "value": []}], "/rules/0/value", "empty"), ([{"path": "/a", "op": "numeric", "value": "x"}], "/rules/0/value", "no single number"),
            ([{"path": "/a", "op": "date", "value": "3/4/2026"}], "/rules/0/value", "two ways"), ([{"path": "/a", "op": "set", "value": 1}], "/rules/0/value", "no list"),
            ([{"path": "/a", "op": "exists", "value": 1}], "/rules/0/value", "no use"), ([{"path": "/a", "op": "set", "abs_tol": 1}], "/rules/0/abs_tol", "no use"),
            ([{"path": "/a", "op": "date", "rel_tol": 1}], "/rules/0/rel_tol", "no use"), ([{"path": "/a", "op": "ignore", "weight": 1}], "/rules/0/weight", "no use"),
            ([{"path": "/a", "weight": 0}], "/rules/0/weight", "asks nothing"), ([{"path": "/a", "weight": -1}], "/rules/0/weight", "from 0"),
            ([{"path": "/a", "abs_tol": True}], "/rules/0/abs_tol", "from 0"), ([{"path": "/a", "lists": "bag"}], "/rules/0/lists", "no way to pair"),
            ([{"path": "/a", "lists": {"key": "/*"}}], "/rules/0/lists/key", "one place"), ([{"path": "/a", "lists": {"key": ""}}], "/rules/0/lists/key", "one place"),
            ([{"path": "/a"}, {"path": "/a/b"}], "/rules/1/path", "never asked"), ([{"path": "/a/*"}, {"path": "/a/0"}], "/rules/1/path", "never asked"),
            ([{"path": "/a/b"}, {"path": "/a"}], "/rules/0/path", "never asked"),
        ]  # fmt: skip
        for rules, pointer, message in table:
            with self.subTest(rules=rules):
                self.assertEqual(refusal({"rules": rules}).split(": ")[0], pointer)
                self.assertIn(message, refusal({"rules": rules}))
        self.assertEqual(refusal({"rules": [{"path": "/a/0"}, {"path": "/a/*"}]}), "")

    def test_what_compares_nothing_is_refused(self):
        self.assertIn("nothing is compared", refusal({"rest": "ignore"}))
        self.assertIn("nothing is compared", refusal({"rest": "ignore", "rules": [{"path": "/a", "op": "ignore"}]}))
        self.assertEqual(refusal({"rest": "ignore", "rules": [{"path": "/a"}]}), "")

    def test_lists_says_a_way_to_pair(self):
        for lists in ("bag", 1, {"key": "id"}, {"key": "/id", "more": 1}, {}):
            self.assertIn("/lists", refusal({"lists": lists}))


class MeterReadings(support.StrictTestCase):
    """The worked example: meter readings out of letters."""

    EXPECTED = {"read_on": "2026-03-05", "readings": [{"meter": "A-17", "value": 1250}, {"meter": "B-2", "value": 88.5}], "remark": "by post"}

    def test_readings_in_another_order_and_notation_agree(self):
        answer = {"readings": [{"meter": "B-2", "value": "88.9 kWh"}, {"meter": "A-17", "value": "1,250"}], "read_on": "5 March 2026", "remark": "?"}
        found = outcome(READINGS, answer, self.EXPECTED)
        self.assertEqual((found.status, found.score, found.value), ("pass", 1.0, {"matched": 5, "of": 5}))

    def test_a_wrong_value_weighs_three_times_and_fails_the_threshold(self):
        answer = {"readings": [{"meter": "A-17", "value": 1250.6}, {"meter": "B-2", "value": 88.5}], "read_on": "2026-03-05"}
        found = outcome(READINGS, answer, self.EXPECTED)
        self.assertEqual((found.status, found.score), ("fail", 6 / 9))  # 1 of the date, 2 of the meters, 3 of one value
        self.assertIn("/readings/0/value: expected 1250, found 1250.6", found.reason)

    def test_an_invented_meter_or_key_counts(self):
        answer = {"readings": [*self.EXPECTED["readings"], {"meter": "C-3", "value": 5}], "read_on": "2026-03-05", "signed": True}
        self.assertEqual(score(READINGS, answer, self.EXPECTED), 9 / 11)
