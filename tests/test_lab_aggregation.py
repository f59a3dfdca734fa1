"""What items add up to. Expected values: numpy 2.4.6 (mean, median, percentile) and scikit-learn 1.9.1 (precision, recall, F)."""

import unittest

import support

import kaizen

SCORES = [0.25, 1.0, 0.0, 0.75, 0.5, 0.9, 0.1, 0.3333]
NUMPY = {
    ("mean", None): 0.4791625,
    ("median", None): 0.41664999999999996,
    ("percentile", 5.0): 0.035,
    ("percentile", 25.0): 0.2125,
    ("percentile", 95.0): 0.965,
    ("percentile", 99.5): 0.9964999999999999,
    ("percentile", 100.0): 1.0,
}
# tp, fp, fn of twelve items with six labels each; scikit-learn got the 72 labels.
COUNTS = [[1, 0, 3], [1, 2, 1], [1, 1, 0], [3, 1, 0], [1, 2, 1], [3, 1, 0], [2, 1, 3], [2, 1, 0], [1, 3, 1], [2, 1, 2], [4, 0, 0], [0, 1, 2]]
SKLEARN = {"precision": 0.6, "recall": 0.6176470588235294, "f0.5": 0.603448275862069, "f1": 0.6086956521739131, "f2": 0.6140350877192983}


def metric(aggregation, percentile=None, name="m"):
    return kaizen.Metric(name, aggregation, percentile, True, 0.0, 1.0, 0.0)


def line(score=None, **metrics):
    return {"score": score, "metrics": metrics, "cost_usd": None, "latency_ms": 5}


def counts(tp, fp, fn):
    return line(m={"tp": tp, "fp": fp, "fn": fn})


class Numbers(support.StrictTestCase):
    """Mean, median, percentile of scores."""

    def test_they_are_those_of_numpy(self):
        for (aggregation, percent), expected in NUMPY.items():
            found = kaizen.aggregated(map(line, SCORES), metric(aggregation, percent), 9)
            self.assertEqual({**found, "value": 0}, {"status": "available", "value": 0, "n": 8, "planned": 9})
            self.assertAlmostEqual(found["value"], expected, 14, (aggregation, percent))

    def test_the_order_of_the_items_changes_no_bit(self):
        for aggregation, percent in NUMPY:
            each = [kaizen.aggregated(map(line, order), metric(aggregation, percent), 8) for order in (SCORES, SCORES[::-1], sorted(SCORES))]
            self.assertEqual(each[0], each[1])
            self.assertEqual(each[0], each[2])

    def test_a_single_score_is_its_own_mean_median_and_percentile(self):
        for aggregation, percent in NUMPY:
            self.assertEqual(kaizen.aggregated([line(0.25)], metric(aggregation, percent), 1)["value"], 0.25)

    def test_a_true_zero_is_available(self):
        self.assertEqual(kaizen.aggregated([line(0), line(0)], metric("mean"), 2), {"status": "available", "value": 0.0, "n": 2, "planned": 2})


class Counts(support.StrictTestCase):
    """Precision, recall and F of counts that are added up."""

    def test_they_are_those_of_scikit_learn(self):
        for aggregation, expected in SKLEARN.items():
            found = kaizen.aggregated([counts(*each) for each in COUNTS], metric(aggregation), 12)
            self.assertEqual((found["status"], found["n"]), ("available", 12))
            self.assertAlmostEqual(found["value"], expected, 14, aggregation)

    def test_where_there_is_nothing_to_divide_by_it_is_undefined_and_not_zero(self):
        table = [("precision", (0, 0, 3)), ("recall", (0, 3, 0)), ("f1", (0, 0, 0)), ("f0.5", (0, 0, 0)), ("f2", (0, 0, 0))]
        for aggregation, each in table:
            found = kaizen.aggregated([counts(*each)] * 2, metric(aggregation), 2)
            self.assertEqual(found, {"status": "unavailable", "reason": "undefined", "n": 2, "planned": 2}, aggregation)

    def test_f_is_zero_where_everything_is_wrong(self):
        self.assertEqual(kaizen.aggregated([counts(0, 2, 3)], metric("f1"), 1)["value"], 0.0)


class Unavailable(support.StrictTestCase):
    """What is not known is said with its reason."""

    def reason(self, lines, aggregation="mean"):
        found = kaizen.aggregated(lines, metric(aggregation), 5)
        self.assertEqual((found["status"], found["planned"], "value" in found), ("unavailable", 5, False))
        return found["reason"], found["n"]

    def test_no_answer_at_all(self):
        for aggregation in kaizen.AGGREGATIONS:
            self.assertEqual(self.reason([], aggregation), ("no_values", 0))

    def test_one_answer_without_a_value_takes_the_number_away(self):
        self.assertEqual(self.reason([line(1), line(None)]), ("values_missing", 1))
        self.assertEqual(self.reason([counts(1, 0, 0), line(1)], "f1"), ("values_missing", 1))

    def test_numbers_where_counts_are_asked_for_and_the_other_way_round(self):
        self.assertEqual(self.reason([line(m=1)], "recall"), ("not_counts", 1))
        self.assertEqual(self.reason([line({"tp": 1, "fp": 0, "fn": 0})], "median"), ("not_numbers", 1))
        self.assertEqual(self.reason([line(True)]), ("not_numbers", 1))

    def test_incomplete_or_negative_counts_are_none(self):
        for bad in ({"tp": 1, "fp": 0}, {"tp": 1, "fp": 0, "fn": -1}, {"tp": 0.5, "fp": 0, "fn": 0}):
            self.assertEqual(self.reason([line(m=bad)], "f1"), ("not_counts", 1), bad)


if __name__ == "__main__":
    unittest.main()
