"""Paired passes: gain, clusters, run variance, noise floor, look, non-inferiority, e-values; values worked out by hand or published."""

import math
import unittest

from support import StrictTestCase, kaizen


def sides(differences):
    """(candidate, reference) of one trial an item with these differences of scores."""
    after = {f"i{number}": [max(d, 0.0)] for number, d in enumerate(differences)}
    return after, {f"i{number}": [max(-d, 0.0)] for number, d in enumerate(differences)}


class Paired(StrictTestCase):
    """`paired_difference`."""

    def test_gain_error_z_and_p_are_those_of_the_paired_t_test(self):
        # d = 1, 1, 0, -1, 1: mean 0.4, variance 0.8, SE 0.4, z 1, df 4; P(T_4 > 1) = 1/2 - 1/2·(1 + 1/5)·... from tables 0.186950
        found = kaizen.paired_difference(*sides([1, 1, 0, -1, 1]), {})
        self.assertEqual((found.n, found.units, found.df, found.reason), (5, 5, 4.0, None))
        for value, expected in ((found.gain, 0.4), (found.se, 0.4), (found.se_items, 0.4), (found.z, 1.0)):
            self.assertAlmostEqual(value, expected, 12)
        self.assertAlmostEqual(found.p_greater, 0.18695048315, 9)  # t distribution, 4 degrees
        self.assertAlmostEqual(found.p_less, 1 - found.p_greater, 12)

    def test_trials_of_an_item_are_averaged_and_unpaired_items_left_out(self):
        found = kaizen.paired_difference({"a": [1, 0], "b": [1], "c": [1]}, {"a": [0, 0, 0, 1], "b": [0], "d": [0], "c": []}, {})
        self.assertEqual(found.n, 2)
        self.assertEqual(found.gain, (0.25 + 1) / 2)

    def test_a_cluster_is_one_unit(self):
        # Two clusters of sums 2 and 0, two items alone with 0 and 0; gain 2/4. Offsets: 1, -1, no: cluster a (2 items) 2 - 2·0.5 = 1, b: 0 - 1 = -1
        found = kaizen.paired_difference(*sides([1, 1, 0, 0]), {"i0": "a", "i1": "a", "i2": "b", "i3": "b"})
        self.assertEqual((found.n, found.units, found.gain, found.df), (4, 2, 0.5, 1.0))
        self.assertAlmostEqual(found.se, math.sqrt(2 / 1 * (1 + 1) / 16), 12)

    def test_a_cluster_has_no_more_weight_than_its_items(self):
        found = kaizen.paired_difference(*sides([1, 1, 1, 0]), {"i0": "a", "i1": "a", "i2": "a"})
        # gain 3/4; offsets: a 3 - 3·0.75 = 0.75, i3 -0.75; SE² = 2/1·(2·0.5625)/16
        self.assertEqual(found.gain, 0.75)
        self.assertAlmostEqual(found.se, math.sqrt(2 * 1.125 / 16), 12)

    def test_an_item_named_like_a_cluster_is_not_of_it(self):
        self.assertEqual(kaizen.paired_difference(*sides([1, 0, 1]), {"i0": "i1"}).units, 3)

    def test_the_variance_of_passes_adds_to_that_of_items(self):
        plain = kaizen.paired_difference(*sides([1, 1, 0, -1, 1]), {})
        found = kaizen.paired_difference(*sides([1, 1, 0, -1, 1]), {}, 0.09, (3, 1), 4)
        # 0.16 + 0.09·(1/3 + 1) = 0.28; Satterthwaite: 0.28² / (0.16²/4 + 0.12²/3)
        self.assertAlmostEqual(found.se, math.sqrt(0.28), 12)
        self.assertAlmostEqual(found.df, 0.28**2 / (0.16**2 / 4 + 0.12**2 / 3), 9)
        self.assertEqual(found.se_items, plain.se_items)
        self.assertGreater(found.p_greater, plain.p_greater)

    def test_items_that_all_moved_alike_are_judged_by_the_sign_flip_test(self):
        found = kaizen.paired_difference(*sides([0.25] * 6), {})
        self.assertEqual((found.gain, found.se, found.p_greater, found.p_less), (0.25, 0.0, 1 / 64, 1.0))
        self.assertAlmostEqual(found.z, 2.153875, 5)  # normal quantile of 63/64
        self.assertLess(found.interval_low, 0)  # six items say little
        worse = kaizen.paired_difference(*sides([-0.25] * 6), {})
        self.assertEqual((worse.z, worse.p_greater, worse.p_less), (-found.z, 1.0, 1 / 64))

    def test_rounding_is_no_scatter(self):
        after = {str(number): [0.1 * number + 0.2] for number in range(9)}
        found = kaizen.paired_difference(after, {str(number): [0.1 * number] for number in range(9)}, {})
        self.assertEqual((found.se, found.p_greater), (0.0, 1 / 512))

    def test_many_items_that_moved_alike_have_a_finite_z(self):
        found = kaizen.paired_difference(*sides([0.5] * 2000), {})
        self.assertTrue(30 < found.z < 40)

    def test_nothing_differs(self):
        found = kaizen.paired_difference(*sides([0] * 40), {})
        self.assertEqual((found.gain, found.z, found.p_greater, found.p_less, found.reason), (0.0, 0.0, 1.0, 1.0, "no_discordant_pairs"))
        self.assertTrue(found.interval_low < 0 < found.interval_high)

    def test_too_little_has_a_reason(self):
        nothing = kaizen.paired_difference({"a": [1]}, {"b": [1]}, {})
        self.assertEqual((nothing.n, nothing.gain, nothing.z, nothing.reason), (0, None, None, "no_comparable_cases"))
        one = kaizen.paired_difference(*sides([1, 1]), {"i0": "x", "i1": "x"})
        self.assertEqual((one.gain, one.units, one.z, one.p_greater, one.reason), (1.0, 1, None, None, "fewer_than_two_comparable_cases"))

    def test_the_interval_is_students_where_enough_items_differ(self):
        d = [1] * 14 + [-1] * 2 + [0] * 4
        found = kaizen.paired_difference(*sides(d), {})
        variance = (16 - 12 * 12 / 20) / 19
        half = 2.093024 * math.sqrt(variance / 20)  # t of 0.975 with 19 degrees, from tables
        self.assertAlmostEqual(found.interval_low, 0.6 - half, 6)
        self.assertAlmostEqual(found.interval_high, 0.6 + half, 6)

    def test_the_interval_of_few_that_differ_is_wider_than_students(self):
        d = [1] * 3 + [0] * 27
        found = kaizen.paired_difference(*sides(d), {})
        self.assertGreater(found.interval_high - found.interval_low, 2 * 2.045 * found.se)


class Noise(StrictTestCase):
    """`noise_floor` and what is read from it."""

    def test_the_planning_table_of_heterogeneous_items(self):
        # Items of Beta(1.2, 0.8): mean p(1 - p) = 0.16; the table of the design in points
        table = {25: (28.1, 16.2, 11.5), 50: (19.9, 11.5, 8.1), 100: (14.1, 8.1, 5.7), 200: (9.9, 5.7, 4.1), 400: (7.0, 4.1, 2.9)}
        floor = kaizen.NoiseFloor(100, 3, 0.4, math.sqrt(0.16 / 100), 0.0)
        for items, row in table.items():
            for trials, expected in zip((1, 3, 6), row, strict=True):
                self.assertLessEqual(abs(100 * floor.mde_at(items, trials) - expected), 0.06, (items, trials))

    def test_passes_that_move_as_a_whole(self):
        # Means 1, 0, 1: variance 1/3; the items' own variance 1/3 each, /2 for the mean of two
        floor = kaizen.noise_floor({"a": [1, 0, 1], "b": [1, 0, 1]})
        self.assertEqual((floor.items, floor.passes, floor.flip_rate), (2, 3, 1.0))
        self.assertAlmostEqual(floor.se_pass**2, 1 / 6, 12)
        self.assertAlmostEqual(floor.run_variance, 1 / 3 - 1 / 6, 12)
        self.assertAlmostEqual(floor.mde[3], (1.6448536 + 0.8416212) * math.sqrt(2 * (1 / 6 + 1 / 6) / 3), 6)

    def test_items_that_were_not_measured_in_every_pass_are_left_out(self):
        floor = kaizen.noise_floor({"a": [1, 1, 0], "b": [1, None, 1], "c": [1, 1]})
        self.assertEqual((floor.items, floor.flip_rate), (1, 1.0))

    def test_one_pass_or_no_item_is_no_noise_floor(self):
        self.assertEqual(kaizen.noise_floor({"a": [1]}).reason, "fewer_trials_than_k")
        self.assertEqual(kaizen.noise_floor({}).reason, "no_valid_observations")
        self.assertIsNone(kaizen.noise_floor({}).mde_at(100, 3))
        self.assertIsNone(kaizen.noise_floor({"a": [1]}).power_at(0.1, 100, 3, 0.05))

    def test_a_deterministic_system_sees_everything(self):
        floor = kaizen.noise_floor({str(number): [1.0, 1.0] for number in range(9)})
        self.assertEqual((floor.flip_rate, floor.mde[1], floor.power_at(0.01, 9, 1, 0.05)), (0.0, 0.0, 1.0))

    def test_power_is_the_level_without_an_effect(self):
        self.assertAlmostEqual(kaizen.NoiseFloor(100, 3, 0.4, 0.04, 0.0).power_at(0.0, 100, 3, 0.005), 0.005, 9)

    def test_pooling_counts_degrees_and_cuts_at_zero_once(self):
        groups = [kaizen.noise_floor({"a": [1, 0, 1], "b": [1, 0, 1]}), kaizen.noise_floor({"a": [1, 0], "b": [0, 1]})]
        # excess 1/6 with two degrees; means 1/2, 1/2: 0 - (1/2 + 1/2)/4 with one
        variance, passes = kaizen.pooled_run_variance(groups)
        self.assertAlmostEqual(variance, (2 / 6 - 1 / 4) / 3, 12)
        self.assertEqual(passes, 4)
        self.assertEqual(kaizen.pooled_run_variance(groups[1:]), (0.0, 2))
        self.assertEqual(kaizen.pooled_run_variance([]), (0.0, 1))


class Looks(StrictTestCase):
    """The p of a look, its level, luck."""

    def test_the_larger_p_counts(self):
        d = [1] * 9 + [-1] + [0] * 10
        found = kaizen.look_p_value(*sides(d), {})
        self.assertAlmostEqual(found.p_sign_flip, 11 / 1024, 12)  # P(Bin(10, 1/2) ≥ 9)
        self.assertEqual(found.p, max(found.p_sign_flip, found.p_student))
        self.assertEqual(found.p_student, found.difference.p_greater)
        varied = kaizen.look_p_value(*sides(d), {}, 0.2, (1, 1), 3)
        self.assertEqual((varied.p_sign_flip, varied.p), (found.p_sign_flip, varied.p_student))
        self.assertGreater(varied.p, found.p)

    def test_the_cluster_is_the_unit_of_the_sign_flip_test(self):
        clusters = {f"i{number}": f"c{number // 4}" for number in range(12)}
        self.assertEqual(kaizen.look_p_value(*sides([1] * 12), clusters).p, 1 / 8)
        # Cluster sums 2, 2, -1: T = 3, reached by +2+2-1 and +2+2+1, of eight
        mixed = kaizen.look_p_value(*sides([1, 1, 0, 0, 1, 1, 0, 0, -1, 0, 0, 0]), clusters)
        self.assertEqual(mixed.p_sign_flip, 2 / 8)

    def test_decimals_are_exact(self):
        after = {str(number): [score] for number, score in enumerate((0.3, 0.1, 0.2))}
        before = {str(number): [0.0] for number in range(3)}
        before["0"], after["0"] = after["0"], before["0"]
        # Differences -0.3, 0.1, 0.2: the sum is exactly 0, reached or passed by 5 of 8
        self.assertEqual(kaizen.look_p_value(after, before, {}).p_sign_flip, 5 / 8)

    def test_a_look_that_cannot_be_computed_has_no_p(self):
        found = kaizen.look_p_value({"a": [1]}, {"a": [0]}, {})
        self.assertEqual((found.p, found.difference.reason), (None, "fewer_than_two_comparable_cases"))

    def test_the_levels_of_all_histories_add_up_to_no_more_than_alpha(self):
        for looks in (1, 3, 5, 10):
            total = sum(
                math.comb(t - 1, j) * kaizen.look_level(0.05, looks, t, j) for t in range(1, looks + 1) for j in range(t)
            )
            with self.subTest(looks=looks):
                self.assertLessEqual(total, 0.05)

    def test_the_table_of_levels(self):
        self.assertEqual(kaizen.look_level(0.05, 5, 2, 1), 0.0025)
        self.assertEqual(kaizen.look_level(0.05, 5, 5, 2), 0.01 / 8 / 6)
        for look, yes in ((0, 0), (6, 0), (2, 2), (1, -1)):
            with self.assertRaises(ValueError):
                kaizen.look_level(0.05, 5, look, yes)

    def test_luck(self):
        # The design's multipliers
        for variants, expected in ((5, 1.18), (10, 1.55), (20, 1.87), (50, 2.24), (100, 2.50)):
            self.assertAlmostEqual(kaizen.luck_line(1.0, variants), expected, delta=0.006)
        self.assertIsNone(kaizen.luck_line(0.04, 0))
        self.assertEqual(kaizen.expected_false_keeps(0, 1.0), 0.0)


class NonInferiority(StrictTestCase):
    """`non_inferior` and `amount_difference`."""

    def test_unchanged_is_non_inferior_and_unmeasured_is_nothing(self):
        self.assertTrue(kaizen.non_inferior(kaizen.paired_difference(*sides([0] * 30), {}), 0.01))
        self.assertIsNone(kaizen.non_inferior(kaizen.paired_difference(*sides([0]), {}), 0.01))
        self.assertFalse(kaizen.non_inferior(kaizen.paired_difference(*sides([-0.01] * 30), {}), 0.01))

    def test_a_true_harm_of_the_margin_passes_one_time_in_ten(self):
        from random import Random

        rng, passed, times = Random(5), 0, 600
        for _ in range(times):
            d = [(rng.random() < 0.55) - (rng.random() < 0.6) for _ in range(60)]
            passed += kaizen.non_inferior(kaizen.paired_difference(*sides(d), {}), 0.05)
        self.assertLessEqual(passed / times, 0.1 + 3 * math.sqrt(0.09 / times))
        self.assertGreaterEqual(passed / times, 0.1 - 3 * math.sqrt(0.09 / times))

    def test_amounts_are_compared_by_ratio(self):
        found = kaizen.amount_difference({"a": [1.1], "b": [2.2]}, {"a": [1.0], "b": [2.0]}, {})
        self.assertAlmostEqual(found.gain, -math.log(1.1), 12)
        self.assertFalse(kaizen.non_inferior(found, math.log(1.1)))
        self.assertTrue(kaizen.non_inferior(found, math.log(1.11)))

    def test_amounts_of_nothing_and_missing_ones(self):
        self.assertEqual(kaizen.amount_difference({"a": [0], "b": [1]}, {"a": [0], "b": [1]}, {}).gain, 0.0)
        for after in ([0.0], [None], [1.0, None], [], [math.nan], [-1.0]):
            with self.subTest(after=after):
                found = kaizen.amount_difference({"a": after, "b": [1.0]}, {"a": [1.0], "b": [1.0]}, {})
                self.assertEqual((found.gain, found.reason), (None, "no_valid_observations"))


class Early(StrictTestCase):
    """E-values, the race, the confidence sequence."""

    def test_the_e_value_of_pairs_is_the_integral_of_the_likelihood_ratio(self):
        for gained, lost in ((3, 1), (0, 4), (12, 5)):
            steps = 20_000
            grid = ((number + 0.5) / steps / 2 + 0.5 for number in range(steps))
            integral = sum(q**gained * (1 - q) ** lost for q in grid) / steps * 2 ** (gained + lost)
            self.assertAlmostEqual(kaizen.discordant_e_value(gained, lost) / integral, 1.0, 6)

    def test_the_e_value_of_pairs_is_one_on_average_without_a_gain(self):
        for m in (1, 5, 12):
            mean = sum(math.comb(m, gained) * kaizen.discordant_e_value(gained, m - gained) for gained in range(m + 1)) / 2**m
            self.assertAlmostEqual(mean, 1.0, 9)

    def test_large_counts_stay_finite(self):
        self.assertTrue(math.isfinite(kaizen.discordant_e_value(400, 300)))
        self.assertEqual(kaizen.betting_e_value([1.0] * 2000), math.inf)
        self.assertEqual(kaizen.paired_e_value([]), 1.0)

    def test_betting_on_a_known_row(self):
        expected = sum((1 + bet) * (1 - bet) * (1 + bet / 2) for bet in [n / 10 for n in range(1, 10)]) / 9
        self.assertAlmostEqual(kaizen.betting_e_value([1.0, -1.0, 0.5]), expected, 12)
        self.assertAlmostEqual(kaizen.betting_e_value([0.0], 0.1), 1.05, 12)

    def test_a_race_stops_where_its_evidence_reaches_ten(self):
        # mean of (1 + bet·1.05)^k over bets 0.1 to 0.9 first reaches 10 at k = 5
        means = [sum((1 + n / 10 * 1.05) ** k for n in range(1, 10)) / 9 for k in (4, 5)]
        self.assertTrue(means[0] < 10 <= means[1])
        race = kaizen.FutilityRace(0.05)
        self.assertEqual([race.add(-1.0) for _ in range(6)], [False] * 4 + [True] * 2)
        self.assertTrue(race.add(1.0))  # over is over

    def test_a_race_stops_when_nothing_more_can_be_gained(self):
        race = kaizen.FutilityRace(0.0, headroom=1.0)
        self.assertFalse(race.add(0.0, 0.5))
        self.assertTrue(race.add(0.0, 0.5))
        self.assertFalse(kaizen.FutilityRace(0.0, headroom=2.0).add(1.0, 1.0))

    def test_the_confidence_sequence_is_wider_than_an_interval_for_one_look(self):
        low, high = kaizen.confidence_sequence([0.0, 1.0] * 50, 100)
        self.assertGreater(high - low, 2 * 1.96 * 0.05)
        self.assertIsNone(kaizen.confidence_sequence([1.0], 100))


if __name__ == "__main__":
    unittest.main()
