"""Effects: what a run changed, twice or not at all, and what was told of it."""

import json
import random
import unittest
import unittest.mock

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import DATA, StrictTestCase

import kaizen

TOOLS = {
    "pay*": {"failure_when": {"result": {"ok": False}}},
    "set_status": {"idempotent": True},
    "get_*": {"side_effecting": False},
}


def call(name, status="ok", result="done", **args):
    """A tool call."""
    return {"kind": "tool", "name": name, "args": args, "status": status, "result": result}


def agent(text):
    """A message of the agent."""
    return {"kind": "message", "role": "assistant", "text": text}


def effects(steps, output=None, tools=TOOLS, **settings):
    """The outcome of `effects`."""
    return outcome_of(entry_of("effects", tools=tools, **settings), output, steps=steps)


PAID, OTHER = call("pay", n=1), call("pay", n=2)
FAILED, REFUSED, LATE = call("pay", "error", n=1), call("pay", result={"ok": False}, n=1), call("pay", "timeout", n=1)
UNTOLD = {"kind": "tool", "name": "pay", "args": {"n": 1}}


class Changes(StrictTestCase):
    """What changed, and how often."""

    def test_runs_labelled_by_hand(self):
        # (steps, duplicates, with must_resolve, with none)
        table = [
            ([], "pass", "pass", "pass"),
            ([PAID], "pass", "pass", "fail"),
            ([PAID, PAID], "fail", "fail", "fail"),
            ([PAID, OTHER], "pass", "pass", "fail"),
            ([FAILED, PAID], "pass", "pass", "fail"),
            ([REFUSED, PAID], "pass", "pass", "fail"),
            ([PAID, FAILED], "pass", "pass", "fail"),  # the second changed nothing
            ([FAILED], "pass", "pass", "pass"),
            ([REFUSED], "pass", "pass", "pass"),
            ([LATE], "pass", "fail", "pass"),
            ([LATE, PAID], "pass", "pass", "fail"),
            ([LATE, OTHER], "pass", "fail", "fail"),
            ([PAID, call("get_x"), PAID], "fail", "fail", "fail"),
            ([call("set_status", s=1)] * 3, "pass", "pass", "fail"),
            ([call("get_x")] * 3, "pass", "pass", "pass"),
            ([call("list")] * 3, "pass", "pass", "pass"),
            ([PAID, UNTOLD], "fail", "fail", "fail"),  # not known to have failed
            ([{**call("x"), "name": None}], "pass", "pass", "pass"),
            ([{"kind": "approval", "name": "pay", "status": "ok"}] * 2, "pass", "pass", "pass"),
        ]
        for steps, duplicates, resolved, nothing in table:
            with self.subTest(steps):
                found = [effects(steps, **settings).status for settings in ({}, {"must_resolve": True}, {"none": True})]
                self.assertEqual(found, [duplicates, resolved, nothing])

    def test_calls_without_any_status_count_as_done(self):
        self.assertEqual(outcome_of(entry_of("effects", tools=TOOLS), tool_calls=[{"name": "pay", "args": {"n": 1}}] * 2).status, "fail")

    def test_arguments_as_text_and_in_another_order_are_the_same(self):
        text = {**call("pay"), "args": '{"b": 2.0, "a": 1}'}
        self.assertEqual(effects([call("pay", a=1, b=2), text]).status, "fail")

    def test_a_bound_lets_some_duplicates_pass_and_a_greater_one_never_fails_more(self):
        source = random.Random(10)
        for _ in range(40):
            steps = [source.choice([PAID, OTHER, FAILED]) for _ in range(7)]
            scores = [effects(steps, max_duplicates=bound).score for bound in range(8)]
            self.assertEqual(scores, sorted(scores))
        self.assertEqual(effects([PAID] * 3, max_duplicates=2).status, "pass")

    def test_the_longest_name_decides(self):
        for tools in ({"pay*": {}, "pay_test": {"side_effecting": False}}, {"pay_test": {"side_effecting": False}, "pay*": {}}):
            self.assertEqual(effects([call("pay_test")], tools=tools, none=True).status, "pass")
            self.assertEqual(effects([call("pay_all")], tools=tools, none=True).status, "fail")

    def test_equal_calls_are_counted_one_by_one(self):
        for line in (DATA / "field_cases" / "24-repeated-tool-calls" / "calls.jsonl").read_text(encoding="utf-8").splitlines():
            actual = [{"name": each["name"], "args": each["arguments"]} for each in json.loads(line)["actual"]]
            repeated = len(actual) - len({json.dumps(each) for each in actual})
            outcome = outcome_of(entry_of("effects", tools={"*": {}}), tool_calls=actual)
            self.assertEqual((outcome.value, outcome.status), ({"changes": len(actual), "duplicates": repeated}, "fail" if repeated else "pass"))

    def test_the_reason_and_the_evidence_name_the_step(self):
        outcome = effects([PAID, call("get_x"), PAID])
        self.assertEqual(outcome.reason, 'step 2 pay {"n":1} repeats what had succeeded (at most 0)')
        self.assertEqual(outcome.evidence, ({"step": 2},))
        self.assertEqual(effects([LATE], must_resolve=True).reason, 'step 0 pay {"n":1} has no known outcome')


class Claims(StrictTestCase):
    """What failed is not told as done."""

    def test_what_says_that_a_refund_was_issued_labelled_by_hand(self):
        done = [
            "Your refund has been issued.",
            "I've refunded $12.50 to your card.",
            "Done!",
            "All set, you will get a mail.",
            "I issued it this morning.",
            "The refund was processed successfully.",
            "I was able to issue the refund.",
        ]
        open_ones = [
            "I will issue the refund tomorrow.",
            "Once it has been issued, you get a mail.",
            "The refund could not be issued.",
            "Shall I have it refunded?",
            "I have passed this on to a colleague.",
            "It is being refunded.",
            "I was not able to issue the refund.",
            "I was able to reach the bank.",
            "If it was refunded, you will see it in your account.",
            "",
        ]
        words = kaizen.done_words("issue_refund")
        self.assertEqual([text for text in done if words.isdisjoint(kaizen.told_done(text))], [])
        self.assertEqual([text for text in open_ones if not words.isdisjoint(kaizen.told_done(text))], [])

    def test_words_are_made_of_the_name_of_the_tool(self):
        for name, text in [("cancelOrder", "I cancelled it."), ("cancel_order", "It is canceled."), ("send_mail", "I sent it."), ("apply", "It was applied.")]:
            self.assertFalse(kaizen.done_words(name).isdisjoint(kaizen.told_done(text)), name)

    def test_claims_labelled_by_hand(self):
        table = [
            ([FAILED], "I have paid your bill.", "fail"),
            ([REFUSED], "Your bill has been paid.", "fail"),
            ([FAILED], "I could not pay your bill.", "pass"),
            ([FAILED], "Is there anything else?", "pass"),
            ([FAILED, PAID], "I have paid your bill.", "pass"),
            ([PAID], "I have paid your bill.", "pass"),
            ([PAID, FAILED], "I have paid your bill.", "pass"),  # the same call had gone well
            ([agent("Everything is done."), FAILED], "Bye", "pass"),  # said before
            ([FAILED, agent("Your bill was paid.")], "Bye", "fail"),
            ([FAILED, agent("The payment failed.")], "All done, bye!", "pass"),  # admitted once
            ([call("get_bill", "error")], "Done.", "pass"),  # it changes nothing
        ]
        for steps, output, status in table:
            with self.subTest(steps=steps, output=output):
                self.assertEqual(effects(steps, output).status, status)
                self.assertEqual(effects(steps, output, no_false_claim=False).status, "pass")

    def test_the_reason_says_where_it_was_told(self):
        self.assertEqual(effects([FAILED], "I have paid.").reason, 'step 0 pay {"n":1} failed, and the output tells it as done')
        outcome = effects([FAILED, agent("I have paid.")], "Bye")
        self.assertEqual(outcome.reason, 'step 0 pay {"n":1} failed, and step 1 tells it as done')
        self.assertEqual(outcome.evidence, ({"step": 0}, {"step": 1}))


class Evidence(StrictTestCase):
    """What is missing, cut or wrong."""

    def test_no_steps_are_missing(self):
        self.assertEqual(status_of(entry_of("effects", tools=TOOLS)), "error")
        self.assertEqual(status_of(entry_of("effects", tools=TOOLS, none=True, negate=True)), "error")

    def test_what_was_cut_short_is_an_error_only_where_it_decides(self):
        cut_args, cut_result = {**PAID, "truncated": ["args"]}, {**call("pay", result="{", n=1), "truncated": ["result"]}
        self.assertEqual(effects([PAID, cut_args]).status, "error")
        self.assertEqual(effects([PAID, cut_args], max_duplicates=1).status, "pass")
        self.assertEqual(effects([PAID, PAID, cut_args]).status, "fail")
        self.assertEqual(effects([cut_result], none=True).status, "error")
        self.assertEqual(effects([cut_result, cut_result]).status, "error")

    def test_refusals(self):
        for settings, pointer in [
            ({"tools": {}}, "/tools"),
            ({"tools": {"pay": True}}, "/tools/pay"),
            ({"tools": {"": {}}}, "/tools/"),
            ({"tools": {"pay": {"idempotents": True}}}, "/tools/pay/idempotents"),
            ({"tools": {"pay": {"idempotent": "yes"}}}, "/tools/pay/idempotent"),
            ({"tools": {"pay": {"failure_when": {"results": {}}}}}, "/tools/pay/failure_when/results"),
            ({"tools": {"pay": {}}, "max_duplicates": -1}, "/max_duplicates"),
        ]:
            with self.subTest(settings):
                self.assertEqual(refusal_of(entry_of("effects", **settings))[0], pointer)

    @unittest.mock.patch.object(kaizen, "PATTERN_SECONDS", 0.03)
    def test_a_pattern_that_never_ends_is_an_error(self):
        tools = {"pay": {"failure_when": {"result": {"$regex": "^(a+)+$"}}}}
        outcome = effects([call("pay", result="a" * 40 + "!")], tools=tools)
        self.assertEqual((outcome.status, "stopped after" in outcome.reason), ("error", True))

    def test_ten_thousand_steps_are_no_trouble(self):
        steps = [call(f"pay_{number}", "error" if number % 2 else "ok", n=number % 7) for number in range(10_000)]
        outcome = effects(steps, "Done.", must_resolve=True)
        self.assertEqual((outcome.status, len(outcome.reason) < 2000), ("fail", True))


if __name__ == "__main__":
    unittest.main()
