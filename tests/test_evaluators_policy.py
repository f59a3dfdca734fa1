"""Policy: which rule decides about a step, and what counts as approval."""

import itertools
import random
import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase

RULES = [
    {"match": {"name": "get_*"}, "effect": "allow"},
    {"match": {"name": "delete_*"}, "effect": "deny", "unless": {"args": {"scope": "test"}}},
    {"match": {"name": "pay"}, "effect": "require_approval", "unless": {"args": {"amount": {"$le": 20}}}},
]


def call(name, status="ok", **args):
    """A tool call."""
    return {"kind": "tool", "name": name, "args": args, "status": status}


def approval(status="ok", **fields):
    """A step that approves, or does not."""
    return {"kind": "approval", "status": status, **fields}


def agent(text):
    """A message of the agent."""
    return {"kind": "message", "role": "assistant", "text": text}


def user(text):
    """A message of the user."""
    return {"kind": "message", "role": "user", "text": text}


def policy(steps, rules=RULES, **settings):
    """The outcome of `policy`."""
    return outcome_of(entry_of("policy", rules=rules, **settings), steps=steps)


class Rules(StrictTestCase):
    """The first rule that means a step decides."""

    def test_rules_labelled_by_hand(self):
        # (step, with default allow, with default deny)
        table = [
            (call("get_order"), "pass", "pass"),
            (call("delete_order"), "fail", "fail"),
            (call("delete_order", scope="test"), "pass", "fail"),
            (call("list"), "pass", "fail"),
            (call("pay", amount=20), "pass", "fail"),
            (call("pay", amount=21), "error", "error"),  # neither messages nor approvals were recorded
            ({"kind": "command", "name": "rm"}, "pass", "fail"),
            ({"kind": "handoff", "name": "billing"}, "pass", "fail"),
            (agent("Hello"), "pass", "pass"),
            ({"kind": "model", "name": "m"}, "pass", "pass"),
            (approval(name="list"), "pass", "pass"),
        ]
        for step, opened, closed in table:
            with self.subTest(step):
                self.assertEqual((policy([step]).status, policy([step], default="deny").status), (opened, closed))

    def test_the_order_of_rules_counts(self):
        allow, deny = {"match": {"name": "a"}, "effect": "allow"}, {"match": {"name": "*"}, "effect": "deny"}
        self.assertEqual(policy([call("a")], [allow, deny]).status, "pass")
        self.assertEqual(policy([call("a")], [deny, allow]).status, "fail")
        self.assertEqual(policy([call("b")], [allow, deny]).status, "fail")

    def test_attempts_count_whatever_came_of_them(self):
        for status in ("ok", "error", "denied", "timeout"):
            self.assertEqual(policy([call("delete_order", status)]).status, "fail")

    def test_the_score_is_the_share_of_steps_in_order(self):
        outcome = policy([call("get_order"), call("delete_order"), call("get_order"), call("list"), agent("Done.")])
        self.assertEqual((outcome.score, outcome.value), (2 / 3, {"governed": 3, "violations": 1}))
        self.assertEqual(outcome.reason, "step 1 delete_order: rule 2 denies it")
        self.assertEqual(outcome.evidence, ({"step": 1},))
        self.assertEqual(policy([call("list")], default="deny").reason, "step 0 list: no rule allows it")

    def test_steps_that_no_rule_is_about_are_in_order_and_no_recording_is_missing(self):
        self.assertEqual((policy([]).status, policy([]).score), ("pass", 1.0))
        self.assertEqual(status_of(entry_of("policy", rules=RULES)), "error")
        self.assertEqual(status_of(entry_of("policy", rules=RULES, negate=True)), "error")

    def test_decisions_do_not_depend_on_the_order_of_steps_without_approval(self):
        source = random.Random(7)
        steps = [call(source.choice(["get_a", "delete_a", "list"])) for _ in range(12)]
        first = policy(steps, default="deny")
        for _ in range(5):
            source.shuffle(steps)
            other = policy(steps, default="deny")
            self.assertEqual((other.status, other.score, other.value), (first.status, first.score, first.value))

    def test_what_the_recording_leaves_open_is_an_error_only_where_it_decides(self):
        cut = {**call("delete_order"), "truncated": ["args"]}  # may have scope test
        self.assertEqual(policy([cut]).status, "error")
        self.assertEqual(policy([cut], default="deny").status, "fail")  # denied either way
        self.assertEqual(policy([cut, call("delete_order")]).status, "fail")
        deny_both = [RULES[1], {"match": {"name": "delete_*"}, "effect": "deny"}]
        self.assertEqual(policy([cut], deny_both).status, "fail")


class Approval(StrictTestCase):
    """What counts as approval before a step."""

    def test_approvals_labelled_by_hand(self):
        pay = call("pay", amount=80)
        ask, yes = agent("Shall I pay 80?"), user("Yes, please.")
        together = [{**approval(), "batch": 1}, {**pay, "batch": 1}]
        table = [
            ([approval(), pay], "pass"),
            ([pay, approval()], "fail"),
            ([approval("denied"), pay], "fail"),
            ([approval(), approval("denied"), pay], "fail"),
            ([approval("denied"), approval(), pay], "pass"),
            ([{"kind": "approval"}, pay], "error"),
            (together, "fail"),
            ([approval(), *together], "pass"),
            ([approval(name="pay"), pay], "pass"),
            ([approval(name="delete"), pay], "fail"),
            ([approval(name="delete"), approval("denied", name="pay"), pay], "fail"),
            ([approval(name="pay", args={"amount": 80}), pay], "pass"),
            ([approval(name="pay", args={"amount": 70}), pay], "fail"),
            ([approval(args={"amount": 80.0}), pay], "pass"),
            ([approval(), pay, call("pay", amount=90)], "pass"),  # one approval covers all until the user speaks
            ([approval(), user("And now the other one."), pay], "fail"),
            ([ask, yes, pay], "pass"),
            ([ask, user("No."), pay], "fail"),
            ([yes, pay], "fail"),  # an answer to nothing
            ([ask, yes, agent("Right."), user("Which card?"), pay], "fail"),
            ([ask, user("No."), approval(), pay], "pass"),
            ([ask, yes, approval("denied"), pay], "fail"),  # what came last
            ([ask, yes, call("pay", "error", amount=80), call("pay", amount=90)], "fail"),  # another amount after a failed try
            ([ask, yes, {**pay, "truncated": ["args"]}], "pass"),
            ([ask, approval(name="pay", args={"amount": 80}), {**pay, "truncated": ["args"]}], "error"),
        ]
        for steps, status in table:
            with self.subTest(steps):
                rules = [{"match": {"name": "pay"}, "effect": "require_approval"}]
                self.assertEqual(policy(steps, rules).status, status)

    def test_reasons_say_what_is_lacking(self):
        rules = [{"match": {"name": "pay"}, "effect": "require_approval"}]
        self.assertEqual(policy([approval("denied"), call("pay")], rules).reason, "step 1 pay: step 0 approval ended in denied")
        self.assertEqual(policy([user("Pay!"), call("pay")], rules).reason.partition(", and")[0], "step 1 pay: rule 1 asks for approval: no approval stands before it")

    def test_approvals_agree_with_a_search_of_all_steps(self):
        source = random.Random(8)
        rules = [{"match": {"name": ["a", "b"]}, "effect": "require_approval"}]
        kinds = [call("a", n=1), call("b", n=1), call("a", n=2), approval(), approval(name="a"), approval("denied", name="b"),
                 approval(name="a", args={"n": 2}), approval("denied"), user("Go on?")]  # fmt: skip
        for _ in range(200):
            steps = [source.choice(kinds) for _ in range(source.randint(1, 10))]
            broken = 0
            for index, step in enumerate(steps):
                if step["kind"] != "tool":
                    continue
                since = itertools.takewhile(lambda other: other["kind"] != "message", reversed(steps[:index]))
                about = (one for one in since if one["kind"] == "approval" and one.get("name", step["name"]) == step["name"] and one.get("args", step["args"]) == step["args"])
                broken += next(about, {"status": "none"})["status"] != "ok"
            governed = sum(step["kind"] == "tool" for step in steps)
            outcome = policy(steps, rules)
            if any(step["kind"] in ("approval", "message") for step in steps):
                self.assertEqual(outcome.value, {"governed": governed, "violations": broken}, steps)


class Hostile(StrictTestCase):
    """Wrong entries and long runs."""

    def test_refusals(self):
        rule = {"match": {"name": "a"}, "effect": "deny"}
        for settings, pointer in [
            ({"rules": []}, "/rules"),
            ({"rules": ["deny"]}, "/rules/0"),
            ({"rules": [rule, {"match": {}}]}, "/rules/1"),
            ({"rules": [{"effect": "deny"}]}, "/rules/0"),
            ({"rules": [{**rule, "effect": "block"}]}, "/rules/0/effect"),
            ({"rules": [{**rule, "effect": ["deny"]}]}, "/rules/0/effect"),
            ({"rules": [{**rule, "when": {}}]}, "/rules/0/when"),
            ({"rules": [{**rule, "unless": {"nam": "x"}}]}, "/rules/0/unless/nam"),
            ({"rules": [{**rule, "match": "a"}]}, "/rules/0/match"),
            ({"rules": [rule], "default": "ask"}, "/default"),
        ]:
            with self.subTest(settings):
                self.assertEqual(refusal_of(entry_of("policy", **settings))[0], pointer)

    def test_ten_thousand_steps_with_approvals_are_no_trouble(self):
        rules = [{"match": {"name": "pay"}, "effect": "require_approval"}]
        steps = [step for number in range(5_000) for step in (approval(name="pay", args={"n": number}), call("pay", n=number))]
        self.assertEqual(policy(steps, rules).value, {"governed": 5_000, "violations": 0})


if __name__ == "__main__":
    unittest.main()
