"""Steps, sequence and order: counts, pairs one to one, what came before what, and what is open."""

import itertools
import json
import random
import unittest
import unittest.mock

import support
from support import kaizen

SEQUENCE_MODES = ("any_order", "exact", "in_order", "contiguous", "subset", "superset")


def evaluate(entry, steps, case=None):
    """The outcome of *entry* on an observation of *steps*; *case* brings what `$case` names."""
    observation = steps if isinstance(steps, dict) else {"steps": steps}
    return kaizen.prepare_entry({"id": "x", **entry}).evaluate(observation, {"id": "c", "input": "", **(case or {})}, {})


def refusal(entry):
    """(pointer, message and hint) of what is wrong with *entry*; None when nothing is."""
    try:
        kaizen.prepare_entry({"id": "x", **entry})
    except kaizen.ConfigurationError as error:
        return error.pointer, f"{error.message} {error.hint}"
    return None


def call(name, status="ok", **args):
    """A tool call with *args*."""
    return {"kind": "tool", "name": name, "args": args, "status": status}


def say(role, text):
    """A message."""
    return {"kind": "message", "role": role, "text": text}


def calls(names):
    """One tool call for each letter of *names*."""
    return [call(name) for name in names]


def places(outcome):
    """The steps that the evidence names."""
    return [each["step"] for each in outcome.evidence]


class Steps(support.StrictTestCase):
    """Leaf 12: how many steps are meant, and what `must` hold of which of them."""

    def test_bounds_count_the_steps_meant(self):
        # (bounds, status for 0, 1, 2 and 3 calls)
        table = [
            ({}, ["fail", "pass", "pass", "pass"]),  # min 1
            ({"min": 2}, ["fail", "fail", "pass", "pass"]),
            ({"max": 1}, ["pass", "pass", "fail", "fail"]),  # min 0 when only max is given
            ({"max": 0}, ["pass", "fail", "fail", "fail"]),
            ({"min": 1, "max": 2}, ["fail", "pass", "pass", "fail"]),
            ({"min": 0}, ["pass", "pass", "pass", "pass"]),
        ]
        for bounds, expected in table:
            for number, status in enumerate(expected):
                with self.subTest(bounds=bounds, number=number):
                    outcome = evaluate({"type": "steps", "match": {"name": "a"}, **bounds}, calls("b" + "a" * number + "b"))
                    self.assertEqual((outcome.status, outcome.value, outcome.score), (status, number, 1.0 if status == "pass" else 0.0))

    def test_steps_that_were_not_recorded_are_missing_and_steps_that_do_not_match_are_none(self):
        never = {"type": "steps", "match": {"name": "a"}, "max": 0}
        self.assertEqual(evaluate(never, []).status, "pass")
        self.assertEqual(evaluate(never, calls("b")).status, "pass")
        missing = evaluate(never, {"output": "x"})
        self.assertEqual((missing.status, missing.reason), ("error", "no steps were recorded"))
        self.assertEqual(evaluate({**never, "negate": True}, {"output": "x"}).status, "error")
        self.assertEqual(evaluate({**never, "on_missing": "not_applicable"}, {"output": "x"}).status, "not_applicable")

    def test_the_reason_names_the_steps_and_the_bound(self):
        outcome = evaluate({"type": "steps", "match": {"name": "pay"}, "max": 1}, [call("pay", n=1), call("get"), call("pay", n=2)])
        self.assertEqual(outcome.reason, '2 steps matching pay (at most 1): step 0 pay {"n":1} and step 2 pay {"n":2}')
        self.assertEqual(places(outcome), [0, 2])
        self.assertEqual(evaluate({"type": "steps", "match": {"name": "pay"}}, calls("gg")).reason, "0 steps matching pay (at least 1) of 2 recorded steps")

    def test_must_is_asked_of_which_of_the_steps_meant(self):
        # (which, amounts of the calls, status); must: the amount is at most 10
        table = [
            ("all", [5, 7], "pass"),
            ("all", [5, 70], "fail"),
            ("any", [50, 7], "pass"),
            ("any", [50, 70], "fail"),
            ("none", [50, 70], "pass"),
            ("none", [50, 7], "fail"),
            ("first", [5, 70], "pass"),
            ("first", [50, 7], "fail"),
            ("last", [50, 7], "pass"),
            ("last", [5, 70], "fail"),
            (2, [50, 7, 70], "pass"),
            (2, [5, 70, 7], "fail"),
            (3, [5, 7], "fail"),  # there is no third
        ]
        for which, amounts, status in table:
            with self.subTest(which=which, amounts=amounts):
                entry = {"type": "steps", "match": {"name": "pay"}, "must": {"args": {"amount": {"$le": 10}}}, "which": which}
                steps = [call("get"), *[call("pay", amount=amount) for amount in amounts], call("get")]
                self.assertEqual(evaluate(entry, steps).status, status)

    def test_must_without_a_step_meant_is_not_applicable_or_a_failed_minimum(self):
        must = {"type": "steps", "match": {"name": "pay"}, "must": {"status": "ok"}}
        self.assertEqual(evaluate({**must, "min": 0}, calls("g")).status, "not_applicable")
        self.assertEqual(evaluate({**must, "max": 2}, calls("g")).status, "not_applicable")
        self.assertEqual(evaluate(must, calls("g")).status, "fail")
        self.assertEqual(evaluate({**must, "min": 0}, {"output": "x"}).status, "error")

    def test_a_failed_must_names_the_steps(self):
        entry = {"type": "steps", "match": {"name": "pay"}, "must": {"args": {"amount": {"$le": 10}}}}
        outcome = evaluate(entry, [call("pay", amount=5), call("pay", amount=70)])
        self.assertEqual(outcome.reason, 'step 1 pay {"amount":70} does not satisfy must, asked of all of 2 steps meant')
        self.assertEqual(places(outcome), [1])
        outcome = evaluate({**entry, "which": "none"}, [call("pay", amount=5), call("pay", amount=70)])
        self.assertEqual(outcome.reason, 'step 0 pay {"amount":5} satisfies must, asked of none of 2 steps meant')
        self.assertEqual(evaluate({**entry, "which": 3}, [call("pay", amount=5)]).reason, "there is no number 3 of 1 step meant")

    def test_the_last_step_of_all_can_be_asked_for(self):
        answered = {"type": "steps", "match": {}, "which": "last", "must": {"kind": "message", "role": "assistant"}}
        self.assertEqual(evaluate(answered, [say("user", "Hi"), say("assistant", "Hello")]).status, "pass")
        self.assertEqual(evaluate(answered, [say("assistant", "Hello"), call("a")]).status, "fail")
        self.assertEqual(evaluate(answered, []).status, "fail")

    def test_what_the_recording_leaves_open_is_an_error_only_where_it_decides(self):
        cut = {"kind": "tool", "name": "read", "args": {"path": "x"}, "status": "ok", "truncated": ["args"]}
        sure = call("read", path="secret")
        # (entry beside type and match, steps, status)
        table = [
            ({"max": 0}, [cut], "error"),
            ({"max": 0}, [cut, sure], "fail"),
            ({"min": 1}, [cut], "error"),
            ({"min": 1}, [cut, sure], "pass"),
            ({"min": 2}, [cut], "fail"),
            ({"min": 2}, [cut, sure], "error"),
            ({"max": 2}, [cut, sure], "pass"),
            ({"min": 1, "must": {"status": "ok"}}, [cut, sure], "pass"),
            ({"min": 1, "must": {"status": "error"}}, [cut, sure], "fail"),
            ({"min": 0, "must": {"status": "ok"}}, [cut], "pass"),  # whether meant or not, nothing is wrong
            ({"min": 0, "must": {"status": "error"}}, [cut], "error"),
            ({"min": 1, "must": {"status": "ok"}, "which": "first"}, [cut, sure], "pass"),
            ({"min": 1, "must": {"args": {"path": "secret"}}, "which": "last"}, [cut, sure], "pass"),
            ({"min": 1, "must": {"args": {"path": "secret"}}, "which": "first"}, [cut, sure], "error"),
            ({"min": 1, "must": {"status": "ok"}, "which": 1}, [cut, sure], "error"),
            ({"min": 1, "must": {"result": {"$exists": True}}, "which": "any"}, [{**cut, "result": 1}, sure], "error"),
            ({"min": 1, "must": {"result": {"$exists": True}}, "which": "none"}, [cut, sure], "pass"),
        ]
        for entry, steps, status in table:
            with self.subTest(entry=entry, steps=len(steps)):
                outcome = evaluate({"type": "steps", "match": {"name": "read", "args": {"path": "secret"}}, **entry}, steps)
                self.assertEqual((outcome.status, bool(outcome.reason)), (status, True))

    def test_a_status_that_nobody_recorded_is_no_success_and_no_failure(self):
        opened = {"type": "steps", "match": {"name": "open", "status": "ok"}}
        outcome = evaluate(opened, [{"kind": "tool", "name": "open"}])
        self.assertEqual(outcome.status, "error")
        self.assertIn("no status", outcome.reason)
        self.assertEqual(evaluate(opened, [{"kind": "tool", "name": "close"}]).status, "fail")

    def test_refusals(self):
        # (entry beside type, pointer, words)
        table = [
            ({}, "", "match"),
            ({"match": {"nam": "a"}}, "/match/nam", "did you mean 'name'?"),
            ({"match": {}, "must": {"args": {"a": {"$x": 1}}}}, "/must/args/a/$x", "unknown"),
            ({"match": {}, "min": -1}, "/min", "less than 0"),
            ({"match": {}, "max": -1}, "/max", "less than 0"),
            ({"match": {}, "min": 3, "max": 2}, "/min", "greater than max"),
            ({"match": {}, "which": "some"}, "/which", "one of"),
            ({"match": {}, "which": 0}, "/which", "from 1"),
            ({"match": {}, "which": True}, "/which", "from 1"),
            ({"match": {}, "which": ["first"]}, "/which", "one of"),
            ({"match": {}, "select": "output.text"}, "/select", "whole observation"),
        ]
        for entry, pointer, words in table:
            with self.subTest(entry=entry):
                found = refusal({"type": "steps", **entry})
                self.assertEqual(found[0], pointer)
                self.assertIn(words, found[1])


class Sequence(support.StrictTestCase):
    """Leaf 13: listed and recorded steps in pairs."""

    def test_modes(self):
        # (listed, recorded, modes that hold)
        table = [
            ("ab", "ab", "any_order exact in_order contiguous subset superset"),
            ("ab", "ba", "any_order subset superset"),
            ("ab", "axb", "in_order superset"),
            ("ab", "xaby", "in_order contiguous superset"),
            ("ab", "aab", "in_order contiguous superset"),
            ("ab", "a", "subset"),
            ("ab", "b", "subset"),
            ("ab", "", "subset"),
            ("aa", "a", "subset"),
            ("a", "aa", "in_order contiguous superset"),
            ("aa", "axa", "in_order superset"),
            ("abc", "acb", "any_order subset superset"),
            ("abc", "xyz", ""),
            ("aba", "aab", "any_order subset superset"),
        ]
        for listed, recorded, holding in table:
            for mode in SEQUENCE_MODES:
                with self.subTest(listed=listed, recorded=recorded, mode=mode):
                    entry = {"type": "sequence", "mode": mode, "steps": [{"name": name} for name in listed], "within": {"kind": "tool"}}
                    outcome = evaluate(entry, calls(recorded))
                    self.assertEqual(outcome.status, "pass" if mode in holding.split() else "fail", outcome.reason)
                    self.assertTrue(outcome.reason)

    def test_any_order_is_the_default(self):
        self.assertEqual(evaluate({"type": "sequence", "steps": [{"name": "a"}, {"name": "b"}]}, calls("ba")).status, "pass")
        self.assertEqual(evaluate({"type": "sequence", "steps": [{"name": "a"}]}, calls("aa")).status, "fail")

    def test_pairs_are_the_most_there_can_be(self):
        # The first listed step could take either call; only one choice leaves a partner for the second.
        listed = [{"name": ["a", "b"]}, {"name": "a"}]
        for recorded in ("ab", "ba"):
            with self.subTest(recorded=recorded):
                self.assertEqual(evaluate({"type": "sequence", "steps": listed}, calls(recorded)).status, "pass")
        self.assertEqual(evaluate({"type": "sequence", "steps": listed}, calls("bb")).status, "fail")

    def test_an_expected_call_is_a_matcher_that_asks_for_at_least_its_arguments(self):
        entry = {"type": "sequence", "steps": {"$case": "/expected/calls"}}
        case = {"expected": {"calls": [{"name": "pay", "args": {"order": "A-7", "lines": [{"sku": 1}]}}]}}
        self.assertEqual(evaluate(entry, [call("pay", order="A-7", lines=[{"sku": 1, "n": 2}], note="x")], case).status, "pass")
        self.assertEqual(evaluate(entry, [call("pay", order="A-8", lines=[{"sku": 1}])], case).status, "fail")
        self.assertEqual(evaluate(entry, {"tool_calls": [{"name": "pay", "args": '{"order": "A-7", "lines": [{"sku": 1}]}'}]}, case).status, "pass")

    def test_an_empty_list_out_of_a_case_means_none_of_these_happened_in_every_mode(self):
        for mode in SEQUENCE_MODES:
            with self.subTest(mode=mode):
                entry = {"type": "sequence", "steps": {"$case": "/expected/calls"}, "mode": mode, "within": {"name": "pay"}}
                case = {"expected": {"calls": []}}
                self.assertEqual(evaluate(entry, calls("g"), case).status, "pass")
                self.assertEqual(evaluate(entry, [], case).status, "pass")
                outcome = evaluate(entry, [call("get"), call("pay", n=1)], case)
                self.assertEqual((outcome.status, outcome.score, outcome.reason), ("fail", 0.0, 'extra: step 1 pay {"n":1}'))
        missing = evaluate({"type": "sequence", "steps": {"$case": "/expected/calls"}}, {"output": "x"}, {"expected": {"calls": []}})
        self.assertEqual(missing.status, "error")

    def test_an_empty_list_in_the_file_is_refused(self):
        pointer, words = refusal({"type": "sequence", "steps": []})
        self.assertEqual(pointer, "/steps")
        self.assertIn('"max": 0', words)

    def test_within_filters_recorded_and_listed_steps_alike(self):
        writes = {"kind": "tool", "name": ["pay_*", "end_*"]}
        # (listed, recorded, status)
        table = [
            ([{"name": "get"}, {"name": "pay_x"}], [call("pay_x")], "pass"),  # the listed lookup does not count
            ([{"name": "pay_x"}], [call("get"), call("pay_x"), say("assistant", "done")], "pass"),
            ([{"name": "get"}], [call("pay_x")], "fail"),  # nothing listed is left: none of these
            ([{"name": "get"}], [call("get"), call("get")], "pass"),
            ([{"name": "pay_*"}], [call("pay_x")], "pass"),
            ([{"name": ["get", "end_x"]}], [call("end_x")], "pass"),
            ([{"kind": "skill", "name": "pay_x"}], [call("pay_x")], "fail"),
            ([{}], [call("pay_x")], "pass"),  # any step could be one
        ]
        for listed, recorded, status in table:
            with self.subTest(listed=listed, recorded=recorded):
                self.assertEqual(evaluate({"type": "sequence", "steps": listed, "within": writes}, recorded).status, status)

    def test_what_a_listed_step_leaves_open_does_not_put_it_outside_of_within(self):
        # (within, listed, does the listed step count?)
        table = [
            ({"name": "pay", "status": "ok"}, {"name": "pay"}, True),
            ({"agent": "billing"}, {"name": "pay"}, True),
            ({"agent": "billing"}, {"name": "pay", "agent": "sales"}, False),
            ({"args": {"scope": "prod"}}, {"name": "pay"}, True),
            ({"args": {"scope": "prod"}}, {"name": "pay", "args": {"scope": "prod", "n": 1}}, True),
            ({"args": {"scope": "prod"}}, {"name": "pay", "args": {"scope": "dev"}}, False),
            ({"args": {"scope": "prod"}}, {"name": "pay", "args": {"scope": {"$regex": "p"}}}, True),
            ({"under": {"name": "deploy"}}, {"name": "pay"}, True),
            ({"turn": 2}, {"name": "pay"}, True),
            ({"kind": "command"}, {"args": {"cmd": "ls"}}, True),
            ({"kind": "command"}, {"kind": "tool", "args": {"cmd": "ls"}}, False),
            ({"$any": [{"name": "pay"}, {"kind": "skill"}]}, {"name": "get"}, True),  # a skill could be called get
        ]
        for within, listed, counts in table:
            with self.subTest(within=within, listed=listed):
                self.assertIs(kaizen.may_lie_within(listed, kaizen.compile_matcher(within)), counts)

    def test_without_within_steps_of_other_kinds_are_not_looked_at(self):
        recorded = [say("user", "Hi"), call("a"), {"kind": "model", "name": "m"}, say("assistant", "Bye")]
        self.assertEqual(evaluate({"type": "sequence", "steps": [{"name": "a"}]}, recorded).status, "pass")
        self.assertEqual(evaluate({"type": "sequence", "steps": [{"name": "a"}, {"kind": "message", "role": "user"}]}, recorded).status, "fail")
        self.assertEqual(evaluate({"type": "sequence", "steps": [{"name": "a"}, {"role": "user"}, {"role": "assistant"}]}, recorded).status, "pass")
        self.assertEqual(evaluate({"type": "sequence", "steps": [{"name": "m"}]}, recorded).status, "fail")  # the call a is extra

    def test_a_failed_try_and_its_repair_are_one_action(self):
        listed = [{"name": "pay", "args": {"n": 1}}]
        for status in ("error", "denied", "timeout"):
            with self.subTest(status=status):
                recorded = [call("pay", status, n=1), call("pay", n=1)]
                self.assertEqual(evaluate({"type": "sequence", "steps": listed}, recorded).status, "pass")
                self.assertEqual(evaluate({"type": "sequence", "steps": listed, "attempts": "all"}, recorded).status, "fail")
                self.assertEqual(evaluate({"type": "sequence", "steps": listed}, recorded[:1]).status, "fail")
        unknown = [{"kind": "tool", "name": "pay", "args": {"n": 1}}]
        self.assertEqual(evaluate({"type": "sequence", "steps": listed}, unknown).status, "pass", "without status not known to have failed")

    def test_every_failure_names_what_is_missing_extra_or_misplaced(self):
        listed = [{"name": "search", "args": {"q": "visa"}}, {"name": "book", "args": {"seat": "4A"}}]
        search, book = call("search", q="visa"), call("book", seat="4A")
        # (mode, recorded, reason)
        table = [
            ("any_order", [search], 'missing: book {"seat":"4A"}'),
            ("any_order", [search, book, book], 'extra: step 2 book {"seat":"4A"}'),
            ("any_order", [search, call("book", seat="4B")], 'missing: book {"seat":"4A"}; extra: step 1 book {"seat":"4B"}'),
            ("exact", [book, search], 'out of order: step 0 book {"seat":"4A"}'),
            ("in_order", [book, search], 'out of order: step 0 book {"seat":"4A"}'),
            ("contiguous", [search, call("x"), book], 'out of order: step 2 book {"seat":"4A"}'),
            ("superset", [book], 'missing: search {"q":"visa"}'),
            ("subset", [search, call("x")], "extra: step 1 x"),
            ("exact", [], 'missing: search {"q":"visa"} and book {"seat":"4A"}'),
        ]
        for mode, recorded, reason in table:
            with self.subTest(mode=mode, reason=reason):
                outcome = evaluate({"type": "sequence", "mode": mode, "steps": listed}, recorded)
                self.assertEqual((outcome.status, outcome.reason), ("fail", reason))

    def test_scores(self):
        # (listed, recorded, mode, score, value)
        table = [
            ("ab", "ab", "any_order", "f1", 1.0),
            ("ab", "ax", "any_order", "f1", 0.5),
            ("ab", "a", "any_order", "f1", 2 / 3),
            ("ab", "aab", "any_order", "f1", 0.8),
            ("ab", "xy", "any_order", "f1", 0.0),
            ("ab", "", "any_order", "f1", 0.0),
            ("ab", "ba", "any_order", "f1", 1.0),
            ("ab", "ba", "any_order", "lcs", 0.5),
            ("ab", "ba", "exact", "f1", 0.5),  # the pairs of an ordered mode are in order
            ("abc", "axbxc", "in_order", "lcs", 1.0),
            ("abc", "axxc", "in_order", "lcs", 2 / 3),
            ("abcd", "abxcd", "contiguous", "lcs", 0.5),
            ("abc", "abcxx", "superset", "f1", 1.0),
            ("abc", "abxx", "superset", "f1", 2 / 3),
            ("abc", "ab", "subset", "f1", 1.0),
            ("abc", "abx", "subset", "f1", 2 / 3),
            ("abc", "ba", "subset", "lcs", 0.5),
            ("ab", "axx", "any_order", "bool", 0.0),
        ]
        for listed, recorded, mode, score, value in table:
            with self.subTest(listed=listed, recorded=recorded, mode=mode, score=score):
                outcome = evaluate({"type": "sequence", "steps": [{"name": name} for name in listed], "mode": mode, "score": score}, calls(recorded))
                self.assertAlmostEqual(outcome.score, value)
                self.assertEqual(outcome.status, "pass" if value == 1 else "fail")

    def test_a_threshold_lets_a_partial_agreement_pass(self):
        entry = {"type": "sequence", "steps": [{"name": "a"}, {"name": "b"}], "score": "f1", "threshold": 0.5}
        self.assertEqual(evaluate(entry, calls("ax")).status, "pass")
        self.assertEqual(evaluate({**entry, "threshold": 0.6}, calls("ax")).status, "fail")

    def test_negation_turns_status_and_score_of_the_whole(self):
        entry = {"type": "sequence", "steps": [{"name": "a"}, {"name": "b"}], "score": "f1"}
        for recorded in ("ab", "ax", "", "xyz"):
            with self.subTest(recorded=recorded):
                plain, negated = evaluate(entry, calls(recorded)), evaluate({**entry, "negate": True}, calls(recorded))
                self.assertEqual({plain.status, negated.status}, {"pass", "fail"})
                self.assertAlmostEqual(plain.score + negated.score, 1)

    def test_what_the_recording_leaves_open_is_an_error_only_where_it_decides(self):
        cut = {"kind": "tool", "name": "pay", "args": '{"order": "A', "status": "ok", "truncated": ["args"]}
        listed = [{"name": "pay", "args": {"order": "A-7"}}]
        self.assertEqual(evaluate({"type": "sequence", "steps": listed}, [cut]).status, "error")
        self.assertEqual(evaluate({"type": "sequence", "steps": listed}, [cut, call("x")]).status, "fail")
        self.assertEqual(evaluate({"type": "sequence", "steps": listed, "mode": "superset"}, [cut, call("pay", order="A-7")]).status, "pass")
        self.assertEqual(evaluate({"type": "sequence", "steps": listed, "within": {"args": {"order": "A-7"}}}, [cut]).status, "error")

    def test_the_same_tool_called_twice_is_paired_one_to_one(self):
        # reference/field_cases 24: calls kept in a set made two equal calls one.
        folder = support.DATA / "field_cases" / "24-repeated-tool-calls"
        right = support.read_json(folder / "right.json")
        for record in support.read_lines(folder / "calls.jsonl"):
            listed = [{"name": each["name"], "args": each["arguments"]} for each in record["expected"]]
            recorded = {"tool_calls": [{"name": each["name"], "args": each["arguments"]} for each in record["actual"]]}
            for mode, column in (("exact", "ordered"), ("any_order", "unordered")):
                with self.subTest(id=record["id"], mode=mode):
                    entry = {"type": "sequence", "steps": {"$case": "/expected"}, "mode": mode}
                    outcome = evaluate(entry, recorded, {"expected": listed})
                    self.assertEqual(outcome.status, "pass" if right[record["id"]][column] else "fail")
                    self.assertTrue(outcome.reason)
                    if outcome.status == "fail":
                        self.assertRegex(outcome.reason, "^(missing|extra|out of order): (step \\d+ )?(search|book) ")

    def test_refusals(self):
        # (entry beside type, pointer, words)
        table = [
            ({}, "", "steps"),
            ({"steps": ["search"]}, "/steps/0", '{"name": …}'),
            ({"steps": [{"name": "a"}, {"arguments": {}}]}, "/steps/1/arguments", "did you mean 'args'?"),
            ({"steps": {"name": "a"}}, "/steps", "not a list"),
            ({"steps": [{}], "mode": "ordered"}, "/mode", "did you mean"),
            ({"steps": [{}], "score": "f2"}, "/score", "f1"),
            ({"steps": [{}], "attempts": "none"}, "/attempts", "ok"),
            ({"steps": [{}], "within": {"tool": "a"}}, "/within/tool", "did you mean 'name'?"),
        ]
        for entry, pointer, words in table:
            with self.subTest(entry=entry):
                found = refusal({"type": "sequence", **entry})
                self.assertEqual(found[0], pointer)
                self.assertIn(words, found[1])


class SequenceProperties(support.StrictTestCase):
    """What must hold for every input: compared with an exhaustive search, and under shuffling."""

    def every_pairing(self, table, width):
        """All ways to pair rows with columns, each at most once, as lists of (row, column)."""
        rows = range(len(table))
        for size in range(min(len(table), width) + 1):
            for chosen in itertools.combinations(rows, size):
                for columns in itertools.permutations(range(width), size):
                    if all(table[i][j] for i, j in zip(chosen, columns, strict=True)):
                        yield list(zip(chosen, columns, strict=True))

    def is_right(self, mode, table, width):
        """Whether some pairing is what *mode* asks for, by its definition."""
        height = len(table)
        if height == 0:
            return width == 0
        for pairs in self.every_pairing(table, width):
            columns = [j for _, j in pairs]
            in_order = columns == sorted(columns)
            all_listed, all_recorded = len(pairs) == height, len(pairs) == width
            gapless = columns == list(range(columns[0], columns[0] + len(columns))) if columns else True
            if {
                "any_order": all_listed and all_recorded,
                "exact": all_listed and all_recorded and in_order,
                "in_order": all_listed and in_order,
                "contiguous": all_listed and in_order and gapless,
                "subset": all_recorded,
                "superset": all_listed,
            }[mode]:
                return True
        return False

    def test_every_mode_agrees_with_an_exhaustive_search(self):
        source = random.Random(24)
        letters = "abc"
        for _ in range(150):
            listed = [sorted(source.sample(letters, source.randint(1, 2))) for _ in range(source.randint(1, 4))]
            recorded = [source.choice(letters) for _ in range(source.randint(0, 4))]
            table = [[name in names for name in recorded] for names in listed]
            for mode in SEQUENCE_MODES:
                entry = {"type": "sequence", "steps": [{"name": names} for names in listed], "mode": mode}
                outcome = evaluate(entry, calls(recorded))
                expected = "pass" if self.is_right(mode, table, len(recorded)) else "fail"
                self.assertEqual(outcome.status, expected, (listed, recorded, mode, outcome.reason))

    def test_pairings_are_as_large_as_an_exhaustive_search_finds(self):
        source = random.Random(7)
        for _ in range(150):
            width = source.randint(1, 4)
            table = [[source.random() < 0.4 for _ in range(width)] for _ in range(source.randint(1, 4))]
            pairings = list(self.every_pairing(table, width))
            ordered = [pairs for pairs in pairings if [j for _, j in pairs] == sorted(j for _, j in pairs)]
            for found, best in ((kaizen.largest_pairing(table), pairings), (kaizen.longest_in_order(table), ordered)):
                self.assertIn(found, best)
                self.assertEqual(len(found), max(map(len, best)), table)
            self.assertIn(kaizen.best_block(table), ordered)

    def test_any_order_does_not_depend_on_the_order_of_either_side(self):
        source = random.Random(3)
        for _ in range(40):
            listed = [{"name": source.choice(["a", "b", "*"]), "args": {"n": source.randint(1, 2)}} for _ in range(source.randint(1, 6))]
            recorded = [call(source.choice("ab"), n=source.randint(1, 2)) for _ in range(source.randint(0, 6))]
            entry = {"type": "sequence", "score": "f1", "within": {"kind": "tool"}}
            first = evaluate({**entry, "steps": listed}, recorded)
            for _ in range(5):
                source.shuffle(listed)
                source.shuffle(recorded)
                again = evaluate({**entry, "steps": listed}, recorded)
                self.assertEqual((again.status, again.score), (first.status, first.score))

    def test_scores_lie_between_0_and_1_and_are_1_exactly_when_the_mode_holds(self):
        source = random.Random(11)
        for _ in range(200):
            listed = [{"name": source.choice("abc")} for _ in range(source.randint(1, 5))]
            recorded = calls([source.choice("abcd") for _ in range(source.randint(0, 5))])
            for mode in SEQUENCE_MODES:
                outcome = evaluate({"type": "sequence", "steps": listed, "mode": mode, "score": "f1"}, recorded)
                self.assertTrue(0 <= outcome.score <= 1)
                self.assertEqual(outcome.score == 1, outcome.status == "pass")
                self.assertEqual(evaluate({"type": "sequence", "steps": listed, "mode": mode}, recorded).status, outcome.status)

    def test_a_long_chain_of_changes_does_not_run_out_of_stack(self):
        # Row i may take i or i + 1; the last row wants 0, so every other row has to move.
        size = 3000
        table = [[False] * (size + 1) for _ in range(size + 1)]
        for row in range(size):
            table[row][row] = table[row][row + 1] = True
        table[size][0] = True
        self.assertEqual(len(kaizen.largest_pairing(table)), size + 1)


class Order(support.StrictTestCase):
    """Leaf 14: what came before what."""

    def order(self, steps, **entry):
        """The outcome of `order` with before b and after a, unless *entry* says otherwise."""
        return evaluate({"type": "order", "before": {"name": "b"}, "after": {"name": "a"}, **entry}, steps)

    def test_every_after_needs_an_earlier_before(self):
        for names, status in (("ba", "pass"), ("baa", "pass"), ("ab", "fail"), ("a", "fail"), ("aba", "fail"), ("bxa", "pass"), ("bb", "not_applicable")):
            with self.subTest(names=names):
                self.assertEqual(self.order(calls(names)).status, status)

    def test_followed_by_every_before_needs_a_later_after(self):
        for names, status in (("ba", "pass"), ("bba", "pass"), ("bab", "fail"), ("ab", "fail"), ("b", "fail"), ("aa", "not_applicable")):
            with self.subTest(names=names):
                self.assertEqual(self.order(calls(names), direction="followed_by").status, status)

    def test_before_and_after_may_be_lists_of_which_any_will_do(self):
        lists = {"before": [{"name": "b"}, {"name": "c"}], "after": [{"name": "a"}, {"name": "d"}]}
        for names, status in (("ca", "pass"), ("bd", "pass"), ("cad", "pass"), ("dc", "fail")):
            with self.subTest(names=names):
                self.assertEqual(self.order(calls(names), **lists).status, status)

    def test_nothing_to_ask_about(self):
        for if_absent, score in (("pass", 1.0), ("fail", 0.0), ("not_applicable", None)):
            with self.subTest(if_absent=if_absent):
                outcome = self.order(calls("b"), if_absent=if_absent)
                self.assertEqual((outcome.status, outcome.score), (if_absent, score))
        self.assertEqual(self.order([]).status, "not_applicable")
        self.assertEqual(self.order({"output": "x"}, if_absent="pass").status, "error")

    def test_same_asks_for_the_same_thing_in_arguments_or_in_the_earlier_result(self):
        # (earlier step, later step, status)
        table = [
            (call("b", id=1), call("a", id=1), "pass"),
            (call("b", id=1), call("a", id=2), "fail"),
            (call("b", id="1"), call("a", id=1), "fail"),
            ({**call("b", email="x"), "result": {"id": 1}}, call("a", id=1), "pass"),
            ({**call("b", email="x"), "result": '{"id": 1}'}, call("a", id=1), "pass"),
            ({**call("b", id=2), "result": {"id": 1}}, call("a", id=1), "pass"),
            (call("b", id=1), call("a", other=1), "fail"),  # the later call does not say which
            (call("b", other=1), call("a", other=1), "fail"),
            (call("b", id=1), {**call("a", other=1), "result": {"id": 1}}, "fail"),  # of the later step only the arguments
        ]
        for earlier, later, status in table:
            with self.subTest(earlier=earlier, later=later):
                self.assertEqual(self.order([earlier, later], same=["/id"]).status, status)
                self.assertEqual(self.order([earlier, later], same="id").status, status)

    def test_same_with_a_wildcard_asks_for_each_value_of_the_later_step(self):
        found = {**call("b"), "result": {"orders": [{"id": 1}, {"id": 2}]}}
        pair = {"before": "/result/orders/*/id", "after": "/args/id"}
        self.assertEqual(self.order([found, call("a", id=2)], same=[pair]).status, "pass")
        self.assertEqual(self.order([found, call("a", id=3)], same=[pair]).status, "fail")
        several = {"before": "/result/orders/*/id", "after": "/args/ids/*"}
        self.assertEqual(self.order([found, call("a", ids=[2, 1])], same=[several]).status, "pass")
        self.assertEqual(self.order([found, call("a", ids=[2, 3])], same=[several]).status, "fail")

    def test_same_where_names_differ(self):
        pair = {"before": "/result/id", "after": "/args/ticket"}
        opened = {**call("b"), "result": {"id": "T-1"}}
        self.assertEqual(self.order([opened, call("a", ticket="T-1")], same=pair).status, "pass")
        self.assertEqual(self.order([opened, call("a", ticket="T-2")], same=pair).status, "fail")
        self.assertEqual(self.order([call("b", id="T-1"), call("a", ticket="T-1")], same=pair).status, "fail")

    def test_an_entity_that_an_earlier_step_created_needs_no_lookup_when_the_creating_call_is_listed(self):
        entry = {"before": [{"name": "get"}, {"name": "create"}], "after": {"name": "pay"}, "same": ["/order"]}
        created = {**call("create", item="x"), "result": {"order": "A-9"}}
        self.assertEqual(self.order([created, call("pay", order="A-9")], **entry).status, "pass")
        self.assertEqual(self.order([created, call("pay", order="A-9")], **{**entry, "before": {"name": "get"}}).status, "fail")

    def test_calls_issued_together_do_not_come_before_each_other(self):
        together = [{**call("b"), "batch": 1}, {**call("a"), "batch": 1}]
        outcome = self.order(together)
        self.assertEqual(outcome.status, "fail")
        self.assertIn("step 0 b was issued together with it", outcome.reason)
        self.assertEqual(self.order([{**call("b"), "batch": 1}, {**call("a"), "batch": 2}]).status, "pass")
        self.assertEqual(self.order([{**call("b"), "batch": 1, "turn": 1}, {**call("a"), "batch": 1, "turn": 2}]).status, "pass")
        self.assertEqual(self.order([call("b"), {**call("a"), "batch": 1}]).status, "pass")
        self.assertEqual(self.order(together, direction="followed_by").status, "fail")
        self.assertEqual(self.order([{**call("b"), "batch": 1}, {**call("a"), "batch": True}]).status, "pass")

    def test_the_latest_earlier_call_must_have_succeeded(self):
        # (statuses of the earlier calls, required, not required)
        table = [
            (["ok"], "pass", "pass"),
            (["error"], "fail", "pass"),
            (["denied"], "fail", "pass"),
            (["timeout"], "fail", "pass"),
            (["error", "ok"], "pass", "pass"),
            (["ok", "error"], "fail", "pass"),
        ]
        for statuses, required, not_required in table:
            with self.subTest(statuses=statuses):
                steps = [*[call("b", status) for status in statuses], call("a")]
                self.assertEqual(self.order(steps).status, required)
                self.assertEqual(self.order(steps, require_success=False).status, not_required)
        self.assertIn("step 1 b ended in error", self.order([call("b"), call("b", "error"), call("a")]).reason)

    def test_the_latest_call_about_another_thing_does_not_count(self):
        steps = [call("b", id=1), call("b", "error", id=2), call("a", id=1)]
        self.assertEqual(self.order(steps, same=["/id"]).status, "pass")
        self.assertEqual(self.order(steps).status, "fail")

    def test_a_result_that_never_came_back_is_no_success(self):
        pending = {"kind": "tool", "name": "b", "args": {}}
        told = {"kind": "tool", "name": "x", "args": {}, "result": 1}
        self.assertEqual(self.order([pending, told, call("a")]).status, "fail")
        self.assertEqual(self.order([pending, {"kind": "tool", "name": "a", "args": {}}]).status, "pass", "nobody recorded results")
        self.assertEqual(self.order([{**pending, "result": "x"}, call("a")]).status, "pass", "not known to have failed")

    def test_a_try_that_failed_needs_nothing_after_it(self):
        self.assertEqual(self.order([call("b", "error")], direction="followed_by").status, "not_applicable")
        self.assertEqual(self.order([call("b", "error")], direction="followed_by", require_success=False).status, "fail")
        self.assertEqual(self.order([call("b"), call("a", "error")], direction="followed_by").status, "pass", "the check was made")

    def test_an_attempt_at_the_later_step_is_asked_about_as_well(self):
        self.assertEqual(self.order([call("a", "denied")]).status, "fail")

    def test_a_turn_can_bound_both_sides(self):
        steps = [{**call("b"), "turn": 1}, {**call("a"), "turn": 2}]
        self.assertEqual(self.order(steps, before={"name": "b", "turn": {"min": 2}}).status, "fail")
        self.assertEqual(self.order(steps, before={"name": "b", "turn": {"max": 1}}).status, "pass")

    def test_messages_have_neither_status_nor_result_and_still_come_before(self):
        steps = [say("user", "my id is 7"), call("a")]
        self.assertEqual(self.order(steps, before={"kind": "message", "role": "user"}).status, "pass")

    def test_looking_up_partners_by_their_values_changes_no_answer(self):
        source = random.Random(12)
        entries = [
            {"same": ["/x"]},
            {"same": ["/x", "/y"]},
            {"same": ["/x/*"]},
            {"same": [{"before": "/result/x", "after": "/args/y"}]},
            {"same": [{"before": "/result/x/*", "after": "/args/y/*"}, "/x"]},
        ]
        entries = [{"type": "order", "before": {"name": "a"}, "after": {"name": ["a", "b"]}, "direction": way, **each} for each in entries for way in ("required", "followed_by")]

        def value():
            return source.choice([1, 2, "1", [1], [1, 2], [2, 1, 3], {"k": 1}, None])

        for _ in range(150):
            steps = []
            for _ in range(source.randint(1, 8)):
                step = {"kind": "tool", "name": source.choice("aab"), "args": {name: value() for name in "xy" if source.random() < 0.9}}
                step.update({"result": {"x": value()}} if source.random() < 0.7 else {})
                step.update({"status": source.choice(["ok", "ok", "error"])} if source.random() < 0.8 else {})
                step.update({"truncated": [source.choice(["args", "result"])]} if source.random() < 0.15 else {})
                step.update({"batch": 1} if source.random() < 0.2 else {})
                steps.append(step)
            for entry in entries:
                quick = evaluate(entry, steps)
                with unittest.mock.patch.object(kaizen.PartnerSearch, "candidates", lambda search, index: search.places):
                    self.assertEqual(evaluate(entry, steps), quick, (entry, steps))

    def test_reasons_name_the_step_and_what_it_lacks(self):
        outcome = self.order([call("b", id=1), call("a", id=2)], same=["/id"])
        self.assertEqual(outcome.reason, 'step 1 a {"id":2} has no earlier b with the same /id')
        self.assertEqual((places(outcome), outcome.value), ([1], 1))
        self.assertEqual(self.order(calls("b"), direction="followed_by").reason, "step 0 b has no later a")
        self.assertIn("and 2 more", self.order(calls("aaaaa")).reason)

    def test_what_the_recording_leaves_open_is_an_error_only_where_it_decides(self):
        cut = {"kind": "tool", "name": "b", "args": '{"id": ', "status": "ok", "truncated": ["args"]}
        # (steps, entry, status)
        table = [
            ([cut, call("a", id=1)], {"same": ["/id"]}, "error"),
            ([cut, call("b", id=1), call("a", id=1)], {"same": ["/id"]}, "pass"),
            ([call("b", id=1), cut, call("a", id=1)], {"same": ["/id"]}, "pass"),  # either will do
            ([call("b", "error", id=1), cut, call("a", id=1)], {"same": ["/id"]}, "error"),
            ([call("b", id=1), {**cut, "status": "error"}, call("a", id=1)], {"same": ["/id"]}, "error"),
            ([call("a", id=1), cut], {"same": ["/id"]}, "fail"),
            ([{**cut, "name": "a"}], {"after": {"name": "a", "args": {"id": 1}}}, "error"),
            ([call("b"), {**cut, "name": "a"}], {"after": {"name": "a", "args": {"id": 1}}}, "error"),  # is anything asked at all?
            ([call("b"), {**cut, "name": "a"}, call("a", id=1)], {"after": {"name": "a", "args": {"id": 1}}}, "pass"),
            ([call("a", id=1), {**cut, "name": "a"}], {"after": {"name": "a", "args": {"id": 1}}}, "fail"),
        ]
        for steps, entry, status in table:
            with self.subTest(steps=steps, entry=entry):
                self.assertEqual(self.order(steps, **entry).status, status)

    def test_refusals(self):
        good = {"before": {"name": "b"}, "after": {"name": "a"}}
        # (entry beside type, pointer, words)
        table = [
            ({"before": {}}, "", "after"),
            ({**good, "before": []}, "/before", "empty"),
            ({**good, "before": [{"name": "b"}, {"nam": "c"}]}, "/before/1/nam", "did you mean"),
            ({**good, "direction": "after"}, "/direction", "required"),
            ({**good, "same": []}, "/same", "empty"),
            ({**good, "same": [1]}, "/same/0", "a text"),
            ({**good, "same": {"before": "/result/id"}}, "/same", "both sides"),
            ({**good, "same": [{"before": "id", "after": "/args/id"}]}, "/same/0", "both sides"),
            ({**good, "if_absent": "error"}, "/if_absent", "not_applicable"),
            ({**good, "require_success": 1}, "/require_success", "true or false"),
        ]
        for entry, pointer, words in table:
            with self.subTest(entry=entry):
                found = refusal({"type": "order", **entry})
                self.assertEqual(found[0], pointer)
                self.assertIn(words, found[1])


class WorkedExamples(support.StrictTestCase):
    """The worked examples of the design that look at trajectories, on invented runs."""

    def test_a_payload_only_if_there_is_one_and_a_claim_only_if_it_was_done(self):
        complete = {
            "type": "steps",
            "match": {"name": "open_ticket"},
            "min": 0,
            "must": {
                "args": {
                    "title": {"$regex": "\\S"},
                    "/contact/phone": {"$regex": "^\\+\\d{8,}$"},
                    "/parts": {"$count": {"of": {"kind": "paid"}, "max": 1}},
                }
            },
        }
        claim = {
            "type": "any",
            "of": [
                {"type": "matches", "pattern": "(?i)ticket (was|has been) opened", "negate": True},
                {"type": "steps", "match": {"name": "open_ticket", "status": "ok"}},
            ],
        }
        good = {"title": "Boiler", "contact": {"phone": "+4912345678"}, "parts": [{"kind": "paid", "id": 1}, {"kind": "free", "id": 2}]}
        opened = "Your ticket has been opened."
        # (arguments of open_ticket or None, its status, output, complete, claim)
        table = [
            (good, "ok", opened, "pass", "pass"),
            (None, "ok", "I could not help.", "not_applicable", "pass"),
            (None, "ok", opened, "not_applicable", "fail"),
            (good, "error", opened, "pass", "fail"),
            ({**good, "title": " "}, "ok", opened, "fail", "pass"),
            ({**good, "contact": {}}, "ok", opened, "fail", "pass"),
            ({**good, "contact": '{"phone": "+4912345678"}'}, "ok", opened, "pass", "pass"),
            ({**good, "parts": [{"kind": "paid", "id": 1}, {"kind": "paid", "id": 2}]}, "ok", opened, "fail", "pass"),
            ({**good, "parts": "none"}, "ok", opened, "fail", "pass"),
        ]
        for args, status, output, ticket, told in table:
            with self.subTest(args=args, status=status, output=output):
                steps = [say("user", "My boiler is broken")] + ([] if args is None else [call("open_ticket", status, **args)])
                observation = {"output": output, "steps": steps}
                self.assertEqual(evaluate(complete, observation).status, ticket)
                self.assertEqual(evaluate(claim, observation).status, told)

    def test_tested_after_edit(self):
        entry = {
            "type": "order",
            "direction": "followed_by",
            "before": {"name": ["Edit", "Write"]},
            "after": {"name": "Bash", "args": {"command": {"$regex": "unittest|pytest"}}},
        }
        edit, write, test = call("Edit", file="a.py"), call("Write", file="b.py"), call("Bash", command="python -m unittest -q")
        # (steps, status)
        table = [
            ([edit, test], "pass"),
            ([edit, write, test], "pass"),
            ([edit, test, write], "fail"),
            ([test, edit], "fail"),
            ([edit, call("Bash", command="ls")], "fail"),
            ([edit, call("Bash", "error", command="pytest")], "pass"),  # run, and red
            ([call("Edit", "error", file="a.py")], "not_applicable"),
            ([test], "not_applicable"),
        ]
        for steps, status in table:
            with self.subTest(steps=[step["name"] for step in steps], status=status):
                self.assertEqual(evaluate(entry, steps).status, status)

    def test_the_examples_in_the_catalogue_run(self):
        for name in ("steps", "sequence", "order", "confirmation"):
            with self.subTest(type=name):
                example = kaizen.EVALUATORS[name].example
                outcome = kaizen.prepare_entry(example["entry"]).evaluate(example["observation"], example["case"], {})
                self.assertEqual(outcome.status, example["outcome"], outcome.reason)
                self.assertEqual(json.loads(json.dumps(example)), example)


class Robustness(support.StrictTestCase):
    """Every leaf on what no runner should send."""

    ENTRIES = (
        {"type": "steps", "match": {"name": "a", "args": {"x": 1}}, "must": {"result": {"ok": True}}},
        {"type": "sequence", "steps": [{"name": "a", "args": {"x": 1}}], "within": {"kind": "tool"}},
        {"type": "order", "before": {"name": "b"}, "after": {"name": "a"}, "same": ["/x"]},
        {"type": "confirmation", "action": {"name": "a"}, "same": ["/x"], "must_echo": ["/x"]},
    )

    def test_odd_steps_end_in_an_outcome(self):
        odd = [
            {},
            {"kind": "tool"},
            {"kind": "tool", "name": "a", "args": "{"},
            {"kind": "tool", "name": "a", "args": "NaN"},
            {"kind": "tool", "name": "a", "args": '{"x": 1, "x": 2}'},
            {"kind": "tool", "name": "a", "args": [1], "result": "x", "status": 5},
            {"kind": "tool", "name": "a", "args": {"x": {"y": [None]}}, "batch": {}},
            {"kind": "tool", "name": "a\u202e\x1b[31m", "args": {"x": "\ud7ff\x00"}},
            {"kind": "message", "role": "user", "text": None},
            {"kind": "message", "role": "assistant", "text": 5},
            {"kind": "message", "role": "user", "text": ""},
            {"kind": "tool", "name": "a", "args": {"x": 1}, "truncated": ["args", "result", "text"]},
        ]
        source = random.Random(1)
        for _ in range(60):
            steps = [source.choice(odd) for _ in range(source.randint(0, 6))]
            for entry in self.ENTRIES:
                outcome = evaluate(entry, steps)
                self.assertIn(outcome.status, ("pass", "fail", "error", "not_applicable"))
                self.assertTrue(outcome.reason)
                self.assertIn(outcome.score, (0.0, 1.0, None))
                self.assertNotRegex(outcome.reason, "[\x00-\x1f\u202e]")
                json.dumps([outcome.value, list(outcome.evidence)], allow_nan=False)

    def test_no_steps_is_missing_for_every_leaf(self):
        for entry in self.ENTRIES:
            with self.subTest(type=entry["type"]):
                self.assertEqual(evaluate(entry, {"output": "x"}).status, "error")
                self.assertEqual(evaluate({**entry, "negate": True}, {"output": "x"}).status, "error")

    def test_time_is_linear_in_the_number_of_steps_whatever_their_kind(self):
        import time

        def runs(size):
            """Runs of *size* steps: without a message, in one batch with approvals, all failed after one yes, in a long talk."""
            yield [call("ab"[index % 2], x=index, note="y" * 100) for index in range(size)]
            yield [{"kind": ("tool", "approval")[index % 2], "name": "t", "args": {"a": 1}, "batch": "b", "status": "ok"} for index in range(size)]
            yield [say("assistant", "Shall I?"), say("user", "yes"), *({**call("t", a=index % 7), "status": "error"} for index in range(size))]
            yield [(say("assistant", "It is 4."), say("user", "yes"), call("t", a=4))[index % 3] for index in range(size)]

        anything = {"match": {"name": "*"}, "effect": "require_approval"}
        more = [
            {"id": "e", "type": "policy", "rules": [anything]},
            {"id": "e", "type": "confirmation", "action": {"name": "*"}, "same": ["/a"], "must_echo": ["/a"]},
            {"id": "e", "type": "confirmation", "action": {"name": "*"}, "confirm": {"kind": "approval"}},
        ]
        for entry in [*self.ENTRIES, *more]:
            for kind, steps in enumerate(runs(6000)):
                with self.subTest(type=entry["type"], run=kind):
                    started = time.process_time()
                    evaluate(entry, steps)
                    self.assertLess(time.process_time() - started, 2)  # 0.3 s here; quadratic time was 4 to 10 s


if __name__ == "__main__":
    unittest.main()
