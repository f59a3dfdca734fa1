"""Loops: the same call again and again, and cycles of calls."""

import itertools
import json
import random
import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import DATA, StrictTestCase


def call(name, result="same", **args):
    """A tool call that went well."""
    return {"kind": "tool", "name": name, "args": args, "status": "ok", "result": result}


def calls(letters):
    """One call for each letter."""
    return [call(letter) for letter in letters]


def loops(steps, **settings):
    """The outcome of `loops`."""
    return outcome_of(entry_of("loops", **settings), steps=steps)


class Rows(StrictTestCase):
    """What is too often."""

    def test_rows_and_cycles_labelled_by_hand(self):
        # (calls, the same call at most in a row, repeats of a cycle at most, status with 3 and 2)
        table = [
            ("", 0, 0, "pass"),
            ("a", 1, 0, "pass"),
            ("aaa", 3, 0, "pass"),
            ("aaaa", 4, 0, "fail"),
            ("abaca", 1, 0, "pass"),
            ("abab", 1, 2, "pass"),
            ("ababab", 1, 3, "fail"),
            ("xbababay", 1, 3, "fail"),
            ("abcabc", 1, 2, "pass"),
            ("abcabcabc", 1, 3, "fail"),
            ("aabaabaab", 2, 3, "fail"),
            ("abcdabcdabcd", 1, 3, "fail"),
            ("abcdeabcdeabcde", 1, 0, "pass"),  # five calls are no cycle
            ("aaaaaaaaa", 9, 0, "fail"),  # a row, not a cycle of aa
            ("abababc" * 2, 1, 3, "fail"),
        ]
        for letters, identical, repeats, status in table:
            with self.subTest(letters):
                outcome = loops(calls(letters))
                self.assertEqual((outcome.status, outcome.value), (status, {"identical": identical, "cycle_repeats": repeats}))

    def test_the_longest_row_and_cycle_agree_with_an_exhaustive_search(self):
        source = random.Random(4)
        for _ in range(300):
            letters = "".join(source.choice("ab" if source.random() < 0.6 else "abc") for _ in range(source.randint(1, 14)))
            repeats = {1: 1, 2: 0}
            for length, start in itertools.product(range(1, 5), range(len(letters))):
                cycle = letters[start : start + length]
                many = 1
                while letters[start : start + length * (many + 1)] == cycle * (many + 1):
                    many += 1
                if len(cycle) == length and (length == 1 or (many > 1 and len(set(cycle)) > 1)):
                    repeats[min(length, 2)] = max(repeats[min(length, 2)], many)
            outcome = loops(calls(letters))
            self.assertEqual(outcome.value, {"identical": repeats[1], "cycle_repeats": repeats[2]}, letters)

    def test_a_greater_bound_never_turns_a_pass_into_a_fail(self):
        source = random.Random(5)
        for _ in range(50):
            steps = calls("".join(source.choice("ab") for _ in range(10)))
            scores = [loops(steps, max_identical=bound, max_cycle_repeats=bound).score for bound in range(1, 9)]
            self.assertEqual(scores, sorted(scores))

    def test_other_arguments_results_or_agents_are_other_calls(self):
        self.assertEqual(loops([call("read", page=page) for page in range(9)]).status, "pass")
        progress = [call("status", result=f"{share} %") for share in range(0, 90, 10)]
        self.assertEqual(loops(progress).status, "pass")
        self.assertEqual(loops(progress, same_result=False).status, "fail")
        shared = [{**call("read"), "agent": agent} for agent in ("one", "two", "three", "four")]
        self.assertEqual(loops(shared).status, "pass")
        self.assertEqual(loops([{**step, "agent": "one"} for step in shared]).status, "fail")

    def test_arguments_as_text_are_the_same_as_arguments(self):
        steps = [call("find", q=1), {**call("find"), "args": '{"q": 1}'}, {**call("find"), "args": '{ "q":1.0 }'}, call("find", q=1)]
        self.assertEqual(loops(steps).status, "fail")

    def test_words_and_model_calls_do_not_end_a_row_and_the_user_does(self):
        again = {"kind": "message", "role": "user", "text": "And again, please."}
        hold = {"kind": "message", "role": "assistant", "text": "One moment."}
        self.assertEqual(loops([step for _ in range(4) for step in (call("a"), hold, {"kind": "model"})]).status, "fail")
        self.assertEqual(loops([step for _ in range(4) for step in (call("a"), again)]).status, "pass")

    def test_polling_is_left_out(self):
        steps = [call("submit"), *[call("wait", seconds=5)] * 20, call("fetch")]
        self.assertEqual(loops(steps).status, "fail")
        self.assertEqual(loops(steps, ignore={"name": "wait"}).status, "pass")
        self.assertEqual(loops(steps, ignore=[{"name": "x"}, {"name": "wa*"}]).status, "pass")

    def test_the_reason_and_the_evidence_name_the_calls(self):
        outcome = loops([call("start"), *[call("find", q="x")] * 5])
        self.assertEqual(outcome.reason, 'step 1 find {"q":"x"} comes 5 times in a row (at most 3)')
        self.assertEqual([each["step"] for each in outcome.evidence], [1, 2, 3, 4, 5])
        outcome = loops(calls("ababab"))
        self.assertEqual(outcome.reason, "step 0 a → step 1 b comes 3 times in a row (at most 2)")


class Recording(StrictTestCase):
    """What the recording leaves open is an error only where it decides."""

    def test_without_results_it_is_not_known_whether_calls_are_the_same(self):
        bare = [{"kind": "tool", "name": "a"}] * 4
        self.assertEqual(loops(bare).status, "error")
        self.assertEqual(loops(bare, same_result=False).status, "fail")
        self.assertEqual(loops(bare[:3]).status, "pass")
        self.assertEqual(outcome_of(entry_of("loops", same_result=False), tool_calls=[{"name": "a"}] * 4).status, "fail")

    def test_where_others_have_a_result_none_is_the_same_as_none(self):
        self.assertEqual(loops([call("x"), *[{"kind": "tool", "name": "a", "status": "ok"}] * 4]).status, "fail")
        self.assertEqual(loops([{"kind": "tool", "name": "a", "status": "error"}] * 4).status, "fail")

    def test_what_was_cut_short_may_differ(self):
        cut = [{**call("a", result="page of "), "truncated": ["result"]}] * 4
        self.assertEqual(loops(cut).status, "error")
        self.assertEqual(loops(cut, same_result=False).status, "fail")
        self.assertEqual(loops([*cut[:3], *calls("bbbb")]).status, "fail")
        self.assertEqual(loops([{**call("a", q="x"), "truncated": ["args"]}] * 4).status, "error")

    def test_no_steps_are_missing_and_steps_that_do_nothing_are_no_loop(self):
        self.assertEqual(status_of(entry_of("loops")), "error")
        self.assertEqual(loops([]).status, "pass")
        self.assertEqual(loops([{"kind": "model"}] * 9).status, "pass")

    def test_equal_calls_are_counted_one_by_one(self):
        for line in (DATA / "field_cases" / "24-repeated-tool-calls" / "calls.jsonl").read_text(encoding="utf-8").splitlines():
            actual = [{"name": each["name"], "args": each["arguments"]} for each in json.loads(line)["actual"]]
            rows = [len(list(row)) for _, row in itertools.groupby(json.dumps(each) for each in actual)]
            outcome = outcome_of(entry_of("loops", same_result=False, max_identical=1), tool_calls=actual)
            self.assertEqual((outcome.value["identical"], outcome.status), (max(rows, default=0), "fail" if max(rows, default=0) > 1 else "pass"))


class Refusals(StrictTestCase):
    """What is wrong with an entry."""

    def test_refusals(self):
        for settings, pointer in [
            ({"max_identical": 0}, "/max_identical"),
            ({"max_cycle_repeats": -1}, "/max_cycle_repeats"),
            ({"ignore": [{"nam": "x"}]}, "/ignore/0/nam"),
            ({"ignore": {"args": {"a": {"$regex": "("}}}}, "/ignore/args/a/$regex"),
        ]:
            with self.subTest(settings):
                self.assertEqual(refusal_of(entry_of("loops", **settings))[0], pointer)


if __name__ == "__main__":
    unittest.main()
