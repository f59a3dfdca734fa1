"""Errors: how many steps fail, and what the agent makes of them."""

import json
import random
import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import DATA, StrictTestCase

import kaizen


def call(name, status="ok", result=None, **args):
    """A tool call."""
    return {"kind": "tool", "name": name, "args": args, "status": status, **({} if result is None else {"result": result})}


def agent(text):
    """A message of the agent."""
    return {"kind": "message", "role": "assistant", "text": text}


def user(text):
    """A message of the user."""
    return {"kind": "message", "role": "user", "text": text}


def marked(marks):
    """A call for each mark: + went well, - failed, ? is not known."""
    return [{"+": call("a"), "-": call("a", "error"), "?": {"kind": "tool", "name": "a"}}[mark] for mark in marks]


def errors(steps, output=None, case=None, **settings):
    """The outcome of `errors`."""
    return outcome_of(entry_of("errors", **settings), output, case, steps=steps)


class Bounds(StrictTestCase):
    """Number, share and row of errors."""

    def test_bounds_labelled_by_hand(self):
        # (steps, settings, status)
        table = [
            ("", {}, "pass"),
            ("++", {}, "pass"),
            ("+-", {}, "fail"),
            ("+-", {"max_errors": 1}, "pass"),
            ("--", {"max_errors": 1}, "fail"),
            ("+-", {"max_rate": 0.5}, "pass"),
            ("+--", {"max_rate": 0.5}, "fail"),
            ("-" + "+" * 9, {"max_rate": 0.1}, "pass"),  # exactly a tenth
            ("", {"max_rate": 0}, "pass"),
            ("-+-+-", {"max_consecutive": 1}, "pass"),
            ("-+--", {"max_consecutive": 1}, "fail"),
            ("?", {}, "error"),
            ("?-", {}, "fail"),
            ("?-", {"max_errors": 2}, "pass"),
            ("?-", {"max_errors": 1}, "error"),
            ("-?-", {"max_consecutive": 2}, "error"),
            ("-?+", {"max_consecutive": 2}, "pass"),
            ("?+++", {"max_rate": 0.25}, "pass"),
            ("?+++", {"max_rate": 0.2}, "error"),
        ]
        for marks, settings, status in table:
            with self.subTest(marks=marks, settings=settings):
                self.assertEqual(errors(marked(marks), **settings).status, status)

    def test_denials_time_outs_and_steps_of_kind_error_are_errors(self):
        for step in (call("a", "denied"), call("a", "timeout"), {"kind": "error", "text": "rate limit"}, {"kind": "span", "status": "error"}):
            self.assertEqual(errors([step]).status, "fail")

    def test_what_cannot_fail_is_not_counted(self):
        steps = [user("Hi"), {"kind": "model"}, call("a", "error"), agent("Hm."), call("a", "error"), {"kind": "handoff", "name": "b"}]
        self.assertEqual(errors(steps).value, {"errors": 2, "steps": 2, "consecutive": 2})

    def test_a_result_without_status_is_no_error(self):
        self.assertEqual(errors([{"kind": "tool", "name": "a", "result": "x"}]).status, "pass")

    def test_a_match_narrows_what_is_looked_at(self):
        steps = [call("pay"), call("search", "error")]
        self.assertEqual(errors(steps, match={"name": "pay"}).status, "pass")
        self.assertEqual(errors(steps, match={"name": "search"}).status, "fail")
        self.assertEqual(errors(steps, match={"name": "other"}).status, "not_applicable")
        self.assertEqual(errors([{**call("search", "error", q="x"), "truncated": ["args"]}], match={"args": {"q": "y"}}).status, "error")

    def test_a_greater_bound_never_turns_a_pass_into_a_fail(self):
        source = random.Random(6)
        for _ in range(50):
            steps = marked("".join(source.choice("+-") for _ in range(8)))
            for name, bounds in (("max_errors", range(9)), ("max_consecutive", range(9)), ("max_rate", [part / 8 for part in range(9)])):
                scores = [errors(steps, **{name: bound}).score for bound in bounds]
                self.assertEqual(scores, sorted(scores))

    def test_the_reason_names_the_steps(self):
        outcome = errors([call("get"), call("pay", "timeout", order="A-7")])
        self.assertEqual(outcome.reason, '1 error (at most 0): step 1 pay {"order":"A-7"}')
        self.assertEqual(outcome.evidence, ({"step": 1},))

    def test_no_steps_are_missing(self):
        self.assertEqual(status_of(entry_of("errors")), "error")
        self.assertEqual(status_of(entry_of("errors", negate=True)), "error")


class Recovery(StrictTestCase):
    """A later step of the same name that goes well."""

    def test_recoveries_labelled_by_hand(self):
        together = [{**call("a", "error"), "batch": 1}, {**call("a"), "batch": 1}]
        table = [
            ([call("a")], "pass"),
            ([call("a", "error"), call("a")], "pass"),
            ([call("a", "error", x=1), call("b"), call("a", x=2)], "pass"),
            ([call("a"), call("a", "error")], "fail"),
            ([call("a", "error"), call("b")], "fail"),
            ([call("a", "error"), call("a", "error")], "fail"),
            (together, "fail"),
            ([call("a", "error"), {"kind": "tool", "name": "a"}], "error"),
            ([{"kind": "error"}, call("a")], "fail"),
        ]
        for steps, status in table:
            with self.subTest(steps):
                self.assertEqual(errors(steps, must_recover=True).status, status)


class Report(StrictTestCase):
    """What the agent told admits an error."""

    def test_what_admits_a_failure_labelled_by_hand(self):
        admitted = [
            "I could not refund your lamp.",
            "I'm sorry, but the payment failed.",
            "Unfortunately I was unable to reach the warehouse.",
            "The booking wasn’t completed; please try tomorrow.",
            "Your card was declined.",
            "No luck: the transfer timed out.",
            "The order has not yet been cancelled.",
            "Something went wrong on our side.",
            "It is not possible to change the date.",
            "There was a problem with the payment.",
            "We can't do that.",
            "I tried twice without success.",
            "I wasn't able to find the order.",
        ]
        silent = [
            "Your refund is on its way!",
            "No problem, the refund has been issued.",
            "There were no errors.",
            "If you have any trouble, call us.",
            "It went through without any problems.",
            "I can't wait to hear from you.",
            "It didn't fail this time.",
            "",
            "Should the payment fail, we will write to you.",
            "I fixed the error in line 3.",
            "You don't need to do anything.",
            "Did the payment fail?",
        ]
        phrases = kaizen.admission_pattern([])
        self.assertEqual([text for text in admitted if not kaizen.admits_failure(text, phrases)], [])
        self.assertEqual([text for text in silent if kaizen.admits_failure(text, phrases)], [])

    def test_reports_labelled_by_hand(self):
        failed, told = call("pay", "error"), agent("I could not pay, sorry.")
        table = [
            ([call("pay")], "Paid.", "pass"),
            ([failed], "I could not pay.", "pass"),
            ([failed], "Paid.", "fail"),
            ([failed, told], "Bye!", "pass"),  # told before the last words
            ([told, failed], "Bye!", "fail"),  # told before it happened
            ([failed, call("pay")], "Paid.", "pass"),  # made good, so nothing has to be admitted
            ([failed], None, "error"),  # nothing was told at all
            ([failed, {**agent("Well"), "truncated": ["text"]}], "Bye!", "error"),
        ]
        for steps, output, status in table:
            with self.subTest(steps=steps, output=output):
                self.assertEqual(errors(steps, output, must_report=True).status, status)

    def test_further_phrases_admit(self):
        self.assertEqual(errors([call("a", "error")], "Das hat leider nicht geklappt.", must_report=True).status, "fail")
        self.assertEqual(errors([call("a", "error")], "Das hat leider nicht geklappt.", must_report=True, admits="nicht geklappt").status, "pass")


class Reuse(StrictTestCase):
    """What only a failed result told feeds a later step."""

    def test_reuse_labelled_by_hand(self):
        failed = call("find", "error", {"message": "no order A-8, did you mean A-9?", "retry_after": 30}, order="A-8")
        table = [
            ([failed, call("refund", order="A-9")], "fail"),
            ([failed, call("refund", order="a-9")], "fail"),
            ([failed, call("refund", order="A-8")], "pass"),  # its own argument
            ([failed, call("refund", order="A-7", days=30)], "pass"),  # 30 is too short to tell
            ([failed, user("It is A-9."), call("refund", order="A-9")], "pass"),
            ([failed, agent("It is A-9."), call("refund", order="A-9")], "fail"),
            ([failed, call("list", result=["A-9"]), call("refund", order="A-9")], "pass"),
            ([call("list", result=["A-9"]), failed, call("refund", order="A-9")], "pass"),
            ([call("refund", order="A-9"), failed], "pass"),
            ([{**failed, "truncated": ["result"]}, call("refund", order="A-7")], "error"),
            ([failed, {**call("list", result="…"), "truncated": ["result"]}, call("refund", order="A-9")], "error"),
        ]
        for steps, status in table:
            with self.subTest(steps):
                self.assertEqual(errors(steps, no_reuse=True).status, status)
        self.assertEqual(errors(table[0][0], case={"id": "c1", "input": "order A-9"}, no_reuse=True).status, "pass")

    def test_the_reason_names_both_steps(self):
        outcome = errors([call("find", "error", "token is xyz98"), call("login", token="xyz98")], no_reuse=True)
        self.assertEqual(outcome.reason, "step 1 login {\"token\":\"xyz98\"} uses 'xyz98', which only the failed step 0 find told")
        self.assertEqual(outcome.evidence, ({"step": 0}, {"step": 1}))


class RealTrace(StrictTestCase):
    """A recorded run with one tool call that went well and one handoff that failed, of which the answer says nothing."""

    def test_the_failed_handoff_is_found_and_was_not_told(self):
        lines = (DATA / "traces" / "openai-agents-traces.jsonl").read_text(encoding="utf-8").splitlines()
        spans = sorted((json.loads(line) for line in lines if '"trace.span"' in line), key=lambda span: span["started_at"])
        steps = []
        for span in spans:
            data, status = span["span_data"], "error" if span["error"] else "ok"
            if data["type"] == "function":
                steps.append({"kind": "tool", "name": data["name"], "args": data["input"], "result": data["output"], "status": status})
            elif data["type"] == "handoff":
                steps.append({"kind": "handoff", "name": data["to_agent"], "status": status, "result": span["error"]["message"]})
        answer = "Order 17 is 12 days late, so I have opened refund R-204."
        outcome = errors(steps, answer)
        self.assertEqual((outcome.status, outcome.value), ("fail", {"errors": 1, "steps": 2, "consecutive": 1}))
        self.assertEqual(outcome.reason, "1 error (at most 0): step 1 notifier")
        self.assertEqual(errors(steps, answer, match={"kind": "tool"}).status, "pass")
        self.assertEqual(errors(steps, answer, must_report=True).status, "fail")
        self.assertEqual(errors(steps, answer + " I could not notify them.", must_report=True).status, "pass")
        self.assertEqual(errors(steps, answer, must_recover=True).status, "fail")


class Hostile(StrictTestCase):
    """Long and odd input."""

    def test_refusals(self):
        for settings, pointer in [
            ({"max_errors": -1}, "/max_errors"),
            ({"max_rate": 1.5}, "/max_rate"),
            ({"max_rate": -0.1}, "/max_rate"),
            ({"max_consecutive": -1}, "/max_consecutive"),
            ({"match": {"nam": "a"}}, "/match/nam"),
            ({"admits": "x"}, "/admits"),
            ({"must_report": True, "admits": ["a", " "]}, "/admits"),
        ]:
            with self.subTest(settings):
                self.assertEqual(refusal_of(entry_of("errors", **settings))[0], pointer)

    def test_hostile_texts_take_linear_time(self):
        phrases = kaizen.admission_pattern([])
        for text in ("was not " * 8_000, "could " * 10_000, "." * 60_000, "has not been really " * 3_000, "fail" * 15_000, "no error " * 6_000):
            kaizen.admits_failure(text, phrases)  # hangs if it is not
            kaizen.told_done(text)

    def test_ten_thousand_errors_are_told_in_a_few_words(self):
        steps = [call("a", "error", f"see K-{number}", n=number) for number in range(10_000)]
        outcome = errors(steps, "Done.", max_errors=0, max_consecutive=3, must_recover=True, must_report=True, no_reuse=True)
        self.assertEqual((outcome.status, outcome.value["errors"]), ("fail", 10_000))
        self.assertLess(len(outcome.reason), 2000)
        self.assertEqual(len(outcome.evidence), 20)


if __name__ == "__main__":
    unittest.main()
