"""budget: what a trial used, and what nobody measured."""

import unittest

from evaluating import entry_of, observation, outcome_of, refusal_of, result_of, status_of
from support import StrictTestCase, TemporaryFolder

import kaizen

STEPS = [
    {"kind": "message", "role": "user", "text": "Hi", "turn": 1},
    {"kind": "model", "turn": 1},
    {"kind": "tool", "name": "find", "turn": 1},
    {"kind": "message", "role": "user", "text": "And?", "turn": 2},
    {"kind": "tool", "name": "find", "turn": 2},
]
USED = {
    "steps": STEPS,
    "usage": {"input_tokens": 10, "output_tokens": 3},
    "cost": {"total_usd": 0.1},
    "execution": {"duration_ms": 412.5, "attempts": [{"status": "timeout", "cost": {"total_usd": 0.2}}]},
}
AMOUNTS = {
    "latency_ms": 412.5, "cost_usd": 0.3, "tokens_in": 10, "tokens_out": 3, "tokens_total": 13, "steps": 5,
    "tool_calls": 2, "model_calls": 1, "turns": 2, "retries": 1, "output_bytes": 3,
}  # fmt: skip


class Budget(TemporaryFolder):
    """Bounds over quantities."""

    def test_every_quantity_is_measured_and_its_bound_counts_as_met(self):
        self.assertEqual(set(AMOUNTS), set(kaizen.QUANTITIES))
        for name, amount in AMOUNTS.items():
            with self.subTest(quantity=name):
                outcome = outcome_of(entry_of("budget", max={name: amount}, min={name: amount}), "né", **USED)
                self.assertEqual((outcome.status, outcome.value), ("pass", {name: amount}))
                self.assertEqual(status_of(entry_of("budget", max={name: amount - 0.001}), "né", **USED), "fail")
                self.assertEqual(status_of(entry_of("budget", min={name: amount + 0.001}), "né", **USED), "fail")

    def test_nothing_measured_follows_on_missing(self):
        for name in AMOUNTS:
            with self.subTest(quantity=name):
                for on_missing in ("error", "fail", "not_applicable"):
                    entry = entry_of("budget", max={name: 10**9}, on_missing=on_missing, negate=True)
                    self.assertEqual(status_of(entry), on_missing)
        self.assertEqual(outcome_of(entry_of("budget", max={"cost_usd": 1})).reason, "cost_usd was not measured")

    def test_a_broken_bound_decides_whatever_else_is_unmeasured(self):
        entry = entry_of("budget", max={"cost_usd": 1, "output_bytes": 2})
        self.assertEqual([status_of(entry, output) for output in ("abc", "ab")], ["fail", "error"])

    def test_zero_is_a_limit_and_a_measured_value(self):
        # Field case 30, policy A.
        free = entry_of("budget", max={"cost_usd": 0})
        self.assertEqual(status_of(free, "x", cost={"total_usd": 0.0}), "pass")
        self.assertEqual(outcome_of(free, "x", cost={"total_usd": 0.001})[:3], ("fail", 0.0, "cost_usd 0.001 is above 0"))
        self.assertEqual(status_of(entry_of("budget", max={"tool_calls": 0}), "x", steps=[]), "pass")

    def test_an_attempt_without_a_price_makes_the_cost_unknown(self):
        used = {**USED, "execution": {"duration_ms": 1, "attempts": [{"status": "timeout"}]}}
        self.assertEqual(status_of(entry_of("budget", max={"cost_usd": 1}), "x", **used), "error")
        self.assertIsNone(kaizen.trial_cost_usd(observation("x", **used)))
        self.assertEqual(kaizen.trial_cost_usd(observation("x", **USED)), 0.3)

    def test_turns_are_the_users_messages_where_no_step_says_its_turn(self):
        steps = [{key: value for key, value in step.items() if key != "turn"} for step in STEPS]
        self.assertEqual(outcome_of(entry_of("budget", max={"turns": 9}), "x", steps=steps).value, {"turns": 2})

    def test_the_result_line_copies_duration_cost_and_usage(self):
        result = result_of([entry_of("length", min=0)], "x", **USED)
        self.assertEqual((result["duration_ms"], result["cost_usd"], result["usage"]), (412.5, 0.3, USED["usage"]))
        replayed = result_of([entry_of("length", min=0)], "x", execution={"duration_ms": None, "attempts": []})
        self.assertEqual((replayed["duration_ms"], replayed["cost_usd"], replayed["usage"]), (None, None, None))


class Refusals(StrictTestCase):
    """Bounds that cannot be meant."""

    def test_each_names_its_place(self):
        for settings, pointer in (
            ({}, ""),
            ({"max": {}}, ""),
            ({"max": {"cost": 1}}, "/max/cost"),
            ({"max": {"cost_usd": -1}}, "/max/cost_usd"),
            ({"max": {"cost_usd": True}}, "/max/cost_usd"),
            ({"max": {"cost_usd": "1"}}, "/max/cost_usd"),
            ({"max": {"steps": 1}, "min": {"steps": 2}}, "/min/steps"),
            ({"max": {"steps": 1}, "select": "steps"}, "/select"),
        ):
            with self.subTest(settings=settings):
                self.assertEqual(refusal_of(entry_of("budget", **settings))[0], pointer)
        self.assertEqual(refusal_of(entry_of("budget", max={"cost": 1}))[2], "did you mean 'cost_usd'?")


if __name__ == "__main__":
    unittest.main()
