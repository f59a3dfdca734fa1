"""The rules of a campaign at their borders, on differences whose numbers are written down."""

import unittest
from types import SimpleNamespace

from support import StrictTestCase, kaizen


def measured(z, gain=None, se=0.1, n=30):
    """A difference of 30 items with this z; the gain follows from it unless it is given."""
    return kaizen.Difference(n, n, z * se if gain is None else gain, se, se, z, n - 1.0, 0.1, 0.9, -1.0, 1.0)


NOTHING = kaizen.Difference(0, 0, reason="no_comparable_cases")


class Screen(StrictTestCase):
    """One pass against the leader's stored trials."""

    def test_promising_from_a_half_worse_from_minus_one(self):
        for z, verdict, reason in (
            (0.5, "promising", "overall"),
            (0.499, "no_signal", "near_miss"),
            (0.001, "no_signal", "near_miss"),
            (0.0, "no_signal", "no_gain"),
            (-0.999, "no_signal", "no_gain"),
            (-1.0, "worse", "harm"),
        ):
            with self.subTest(z=z):
                self.assertEqual(kaizen.screen_verdict(measured(z)), (verdict, (reason,)))

    def test_a_label_needs_one_and_a_half_and_no_visible_harm(self):
        for overall, label, verdict in (
            (-0.999, 1.5, "promising"),
            (-1.0, 9.0, "worse"),  # gain = -SE is harm
            (0.2, 1.499, "no_signal"),
            (0.2, -3.0, "no_signal"),
        ):
            with self.subTest(overall=overall, label=label):
                self.assertEqual(kaizen.screen_verdict(measured(overall), measured(label)).verdict, verdict)
        self.assertEqual(kaizen.screen_verdict(measured(0.1), measured(2)).reasons, ("label",))
        self.assertEqual(kaizen.screen_verdict(measured(0.1), NOTHING).verdict, "no_signal")

    def test_what_was_not_measured_promises_nothing(self):
        self.assertEqual(kaizen.screen_verdict(NOTHING, measured(9)), ("no_signal", ("not_measured",)))

    def test_a_deterministic_system_that_did_not_move_gives_no_signal(self):
        same = {str(number): [1.0] for number in range(20)}
        self.assertEqual(kaizen.screen_verdict(kaizen.paired_difference(same, same, {})).verdict, "no_signal")


class Replicate(StrictTestCase):
    """Fresh passes of both sides."""

    def test_the_first_pass_gives_up_below_zero_or_with_a_label_below_minus_a_half(self):
        for z, has_label, gives_up in ((0.0, False, False), (-0.01, False, True), (-0.5, True, False), (-0.51, True, True)):
            with self.subTest(z=z, has_label=has_label):
                self.assertEqual(kaizen.first_pass_gives_up(measured(z), has_label), gives_up)
        self.assertTrue(kaizen.first_pass_gives_up(NOTHING, True))

    def test_keepable_from_one_extended_from_a_half(self):
        for z, verdict, reason in ((1.0, "keepable", "overall"), (0.999, "extend", "close"), (0.5, "extend", "close"), (0.499, "not_replicated", "too_little")):
            with self.subTest(z=z):
                self.assertEqual(kaizen.replicate_verdict(measured(z)), (verdict, (reason,)))

    def test_extended_once_and_up_to_six(self):
        self.assertEqual(kaizen.replicate_verdict(measured(0.7), is_extended=True, passes=3).verdict, "not_replicated")
        self.assertEqual(kaizen.replicate_verdict(measured(0.7), passes=6).verdict, "not_replicated")
        self.assertEqual(kaizen.replicate_verdict(measured(1.0), passes=6, is_extended=True).verdict, "keepable")

    def test_a_gain_below_the_smallest_effect_is_not_kept(self):
        self.assertEqual(kaizen.replicate_verdict(measured(1.5, 0.029, 0.02), min_effect=0.03), ("not_replicated", ("below_min_effect",)))
        self.assertEqual(kaizen.replicate_verdict(measured(1.5, 0.03, 0.02), min_effect=0.03).verdict, "keepable")

    def test_the_label_rule(self):
        label, rest = measured(2.0), measured(-0.99)
        self.assertEqual(kaizen.replicate_verdict(measured(0.1), label, rest), ("keepable", ("label",)))
        self.assertEqual(kaizen.replicate_verdict(measured(0.1), label, rest, min_effect=0.5).verdict, "keepable")
        for overall, other_label, other_rest in (
            (measured(0.0), label, rest),  # no gain overall
            (measured(0.1), measured(1.99), rest),
            (measured(0.1), label, measured(-1.0)),
            (measured(0.1), label, None),  # the rest is not known to be unharmed
            (measured(0.1), NOTHING, rest),
        ):
            self.assertEqual(kaizen.replicate_verdict(overall, other_label, other_rest).verdict, "not_replicated")

    def test_a_label_of_all_items_has_no_rest_to_harm(self):
        self.assertTrue(kaizen.is_unharmed(NOTHING))
        one = kaizen.Difference(1, 1, -0.1, reason="fewer_than_two_comparable_cases")
        self.assertFalse(kaizen.is_unharmed(one))
        self.assertTrue(kaizen.is_unharmed(one._replace(gain=0.0)))

    def test_what_was_not_measured_is_not_kept(self):
        self.assertEqual(kaizen.replicate_verdict(NOTHING, measured(9), measured(9)), ("not_replicated", ("not_measured",)))


class Guards(StrictTestCase):
    """Non-inferiority, gates, critical items."""

    def test_states(self):
        # t of 0.9 with 29 degrees is 1.3114: margin 0.05 and SE 0.02 pass above a gain of -0.02377, harm below -0.07623
        for gain, state in ((-0.0237, "passed"), (-0.0239, "undecided"), (-0.0762, "undecided"), (-0.0763, "harm")):
            with self.subTest(gain=gain):
                self.assertEqual(kaizen.guard_state(kaizen.Guard("safety", measured(0, gain, 0.02), 0.05)), state)
        self.assertEqual(kaizen.guard_state(kaizen.Guard("safety", NOTHING, 0.05)), "not_measured")
        self.assertEqual(kaizen.guard_state(kaizen.Guard("safety", None, 0.05)), "not_measured")
        for failed, state in ((0, "passed"), (1, "gate_failed"), (None, "not_measured")):
            self.assertEqual(kaizen.guard_state(kaizen.Guard("schema", is_hard=True, failed=failed)), state)

    def test_undecided_asks_for_more_and_then_fails(self):
        guards = [kaizen.Guard("ok", measured(1), 0.05), kaizen.Guard("safety", measured(0, -0.03, 0.02), 0.05)]
        self.assertEqual(kaizen.guard_verdict(guards, can_extend=True), ("undecided", ("undecided",), {"ok": "passed", "safety": "undecided"}))
        self.assertEqual(kaizen.guard_verdict(guards).verdict, "guard_failed")

    def test_more_trials_save_no_failed_gate(self):
        guards = [kaizen.Guard("safety", measured(0, -0.03, 0.02), 0.05), kaizen.Guard("schema", is_hard=True, failed=2)]
        found = kaizen.guard_verdict(guards, can_extend=True)
        self.assertEqual((found.verdict, found.reasons), ("guard_failed", ("gate_failed", "undecided")))
        self.assertEqual(kaizen.guard_verdict([kaizen.Guard("cost", None, 0.1)], can_extend=True).verdict, "guard_failed")

    def test_a_critical_item_that_was_lost_rejects(self):
        self.assertEqual(kaizen.guard_verdict([], ["i7"], True), ("guard_failed", ("critical_item_lost",), {}))
        self.assertEqual(kaizen.guard_verdict([]).verdict, "passed")

    def test_consistent_losses(self):
        before = {"a": [1, 1, 1], "b": [1, 1, 0], "c": [1], "d": [0.9, 0.8], "e": [1, 1]}
        after = {"a": [0, 0, 0], "b": [0, 0, 0], "c": [0], "d": [0.7, 0.79], "e": [1, 0]}
        self.assertEqual(kaizen.consistent_losses(after, before), ["a", "d"])

    def test_critical_losses(self):
        before = {"a": [1, 1, 1], "b": [1, 0, 1], "c": [1, 1], "d": [0.9, 0.8], "e": [1, 1]}
        after = {"a": [1, 0, 1], "b": [0, 0, 1], "d": [0.7, 0.7], "e": [0, 0]}
        critical = ["a", "b", "c", "d", "never"]
        self.assertEqual(kaizen.critical_losses(after, before, critical), ["a", "c", "d"])  # b was flaky before, e is not critical

    def test_simplify(self):
        safe, unsafe = measured(0, 0.0, 0.007), measured(0, 0.0, 0.0077)  # 1.3114 SE against the margin of 0.01
        self.assertEqual(kaizen.simplify_verdict(safe, net_lines=-1), ("simplified", ("smaller",)))
        self.assertEqual(kaizen.simplify_verdict(unsafe, net_lines=-1), ("not_simplified", ("may_be_worse",)))
        self.assertEqual(kaizen.simplify_verdict(unsafe, 0.02, net_lines=-1).verdict, "simplified")
        self.assertEqual(kaizen.simplify_verdict(safe, net_lines=0, cost_ratio=0.91), ("not_simplified", ("not_smaller",)))
        self.assertEqual(kaizen.simplify_verdict(safe, net_lines=5, cost_ratio=0.9).verdict, "simplified")
        self.assertEqual(kaizen.simplify_verdict(safe, token_ratio=0.5).verdict, "simplified")
        self.assertEqual(kaizen.simplify_verdict(NOTHING), ("not_simplified", ("not_smaller", "not_measured")))

    def test_drift(self):
        for zs, expected in (
            ([], False),
            ([3.0, -3.0], False),
            ([3.01], True),
            ([0, -3.01], True),
            ([2.1, 2.1], True),
            ([2.1, -2.1], False),
            ([-2.1, -2.1], True),
            ([2.1, 0, 2.1], False),
            ([2.0, 2.5], False),
        ):
            with self.subTest(zs=zs):
                self.assertEqual(kaizen.drift(zs), expected)


class Looks(StrictTestCase):
    """When to ask, what the answer is, what may be said after it."""

    def test_due_at_four_fifths_of_what_it_sees(self):
        for gain, left, is_closing, expected in (
            (0.4, 2, False, True),
            (0.399, 2, False, False),
            (0.5, 1, False, False),  # the last is kept for closing
            (0.01, 1, True, True),
            (0.0, 1, True, False),
            (0.5, 0, True, False),
            (None, 5, True, False),
        ):
            with self.subTest(gain=gain, left=left, is_closing=is_closing):
                self.assertEqual(kaizen.look_is_due(gain, 0.5, left, is_closing), expected)
        self.assertFalse(kaizen.look_is_due(0.5, None, 5))

    def test_answers(self):
        self.assertEqual([kaizen.look_answer(p, 0.005) for p in (0.005, 0.0051, None)], ["yes", "no", "void"])

    def test_the_bound_is_the_one_sided_limit_at_the_level(self):
        # t of 0.995 with 19 degrees is 2.860935; twenty items that all gained, none like another
        after = {str(number): [0.5 + 0.01 * number] for number in range(20)}
        before = {str(number): [0.0] for number in range(20)}
        found = kaizen.paired_difference(after, before, {}, confidence=kaizen.look_confidence(0.005))
        self.assertAlmostEqual(kaizen.confirmed_bound(found), found.gain - 2.860935 * found.se, 6)
        self.assertIsNone(kaizen.confirmed_bound(NOTHING))
        self.assertEqual(kaizen.confirmed_bound(measured(2.6)), 0.0)

    def test_the_estimate_is_corrected_for_the_look_and_lies_between_bound_and_measure(self):
        barely = measured(2.8)._replace(interval_low=0.004)
        clearly = measured(9.0)._replace(interval_low=0.6)
        self.assertEqual(kaizen.confirmed_gain(barely, 0.005), 0.004)  # 29 degrees need 2.756: next to nothing is left
        self.assertAlmostEqual(kaizen.confirmed_gain(clearly, 0.005), 0.9, 6)
        middle = kaizen.confirmed_gain(measured(3.5)._replace(interval_low=0.0), 0.005)
        self.assertTrue(0.0 < middle < 0.35)
        self.assertIsNone(kaizen.confirmed_gain(NOTHING, 0.005))

    def test_the_estimate_is_as_often_too_high_as_too_low_among_looks_that_said_yes(self):
        from random import Random

        rng, above, yes = Random(3), 0, 0
        for _ in range(4000):
            z = rng.gauss(2.0, 1.0)  # the true gain is two standard errors
            if z > 2.5758293:  # the level 0.005, so many degrees that t is normal
                yes += 1
                found = kaizen.Difference(10**6, 10**6, z, 1.0, 1.0, z, 1e6, None, None, -9.0, 9.0)
                above += kaizen.confirmed_gain(found, 0.005) > 2.0
        self.assertTrue(abs(above / yes - 0.5) < 3 * 0.5 / yes**0.5, (above, yes))

    def test_overfitting_is_suspected_after_two_noes_and_twice_what_a_look_sees(self):
        for noes, gain, expected in ((2, 0.2, True), (1, 0.5, False), (2, 0.199, False), (3, None, False)):
            self.assertEqual(kaizen.overfit_suspected(noes, gain, 0.1), expected)


class RunTerms(StrictTestCase):
    """The variance of whole passes that a campaign goes by."""

    def terms(self, noise, replicates=(), own=()):
        variants = {str(number): SimpleNamespace(replicate=body) for number, body in enumerate(replicates)}
        return kaizen.run_terms(SimpleNamespace(noise=noise, variants=variants), own)

    def test_every_group_of_passes_counts_with_its_degrees_of_freedom(self):
        noise = {"passes": 3, "excess": -0.001, "run_variance": 0.0}
        given_up = {"passes": 1, "excess": []}
        whole = {"passes": 3, "excess": [0.004, 0.001]}
        # (2·-0.001 + 2·0.004 + 2·0.001) / 6, and with a group of four passes (… + 3·0.008) / 9
        variance, passes = self.terms(noise, [None, given_up, whole])
        self.assertAlmostEqual(variance, 0.008 / 6, 12)
        self.assertEqual(passes, 7)
        variance, passes = self.terms(noise, [whole], [kaizen.NoiseFloor(40, 4, excess=0.008)])
        self.assertAlmostEqual(variance, 0.032 / 9, 12)
        self.assertEqual(passes, 10)

    def test_what_is_below_nothing_is_nothing(self):
        self.assertEqual(self.terms({"passes": 3, "excess": -0.001}), (0.0, 3))
        self.assertEqual(self.terms(None), (0.0, 1))
        self.assertEqual(self.terms({"passes": 3, "run_variance": 0.002}), (0.002, 3))
        self.assertEqual(self.terms({"passes": 3, "excess": 0.002}, [{"passes": 3, "excess": [None, None]}]), (0.002, 3))


class Stopping(StrictTestCase):
    """`stop_reasons`."""

    def reasons(self, **counts):
        return kaizen.stop_reasons(kaizen.CampaignCounts(**counts))

    def test_nothing_stops_a_campaign_that_begins(self):
        self.assertEqual(self.reasons(), [])

    def test_each_reason_at_its_border(self):
        for counts, expected in (
            ({"is_target_confirmed": True}, ["target_confirmed"]),
            ({"variants": 40, "max_variants": 40}, ["budget_variants"]),
            ({"variants": 39, "max_variants": 40}, []),
            ({"item_evals": 5000, "max_item_evals": 5000}, ["budget_item_evals"]),
            ({"usd": 1.0, "max_usd": 1.0, "hours": 2.0, "max_hours": 2.5}, ["budget_usd"]),
            ({"hours": 2.5, "max_hours": 2.5}, ["budget_hours"]),
            ({"dev_score": 0.95}, ["saturation"]),
            ({"dev_score": 0.9}, []),
            ({"dev_score": 0.9, "mde": 0.11}, ["saturation"]),
            ({"mde": 0.06, "min_effect": 0.05, "can_afford_more": False}, ["unresolvable"]),
            ({"mde": 0.06, "min_effect": 0.05}, []),
            ({"mde": 0.06, "can_afford_more": False}, []),
            ({"equal_crashes": 3}, ["broken"]),
            ({"equal_crashes": 2, "taints": 1}, []),
            ({"taints": 2}, ["broken"]),
            ({"integrity": ("locked_changed",)}, ["integrity"]),
            ({"is_stop_file": True}, ["stop_file"]),
        ):
            with self.subTest(counts=counts):
                self.assertEqual(self.reasons(**counts), expected)

    def test_the_first_plateau_asks_for_a_fresh_context_and_the_second_stops(self):
        plateau = {"variants_since_keep": 12, "categories_tried": 3}
        first = kaizen.CampaignCounts(**plateau)
        self.assertTrue(kaizen.wants_fresh_context(first))
        self.assertEqual(kaizen.stop_reasons(first), [])
        second = first._replace(fresh_contexts=1)
        self.assertFalse(kaizen.wants_fresh_context(second))
        self.assertEqual(kaizen.stop_reasons(second), ["plateau"])
        for fewer in ({"variants_since_keep": 11}, {"categories_tried": 2}):
            self.assertFalse(kaizen.is_plateau(first._replace(**fewer)))

    def test_noise_forbids_a_campaign_only_against_what_is_wanted(self):
        for mde, effect, gap, expected in (
            (0.11, 0.05, None, True),
            (0.1, 0.05, None, False),
            (0.11, 0.05, 0.2, False),  # the way to the target is longer than what can be seen
            (0.11, 0.0, 0.1, True),
            (0.11, 0.0, None, False),
            (None, 0.05, None, False),
        ):
            with self.subTest(mde=mde, effect=effect, gap=gap):
                self.assertEqual(kaizen.noise_forbids(mde, effect, gap), expected)


if __name__ == "__main__":
    unittest.main()
