"""The evaluator similarity: published values of each measure, bounds, what it needs to be told."""

import itertools
import math
import random
import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase

import kaizen

MEASURES = sorted(kaizen.SIMILARITY_MEASURES)


def measured(measure, output, *references, **settings):
    """The value that an entry gives."""
    bar = {"max": 1000} if measure == "levenshtein_distance" else {"threshold": 0}
    found = outcome_of(entry_of("similarity", measure=measure, references=list(references), **{**bar, **settings}), output)
    return found.value


class Values(StrictTestCase):
    """Examples of the papers, and values worked out by hand."""

    def test_levenshtein(self):
        for one, other, distance in (("kitten", "sitting", 3), ("Saturday", "Sunday", 3), ("", "abc", 3), ("flaw", "lawn", 2), ("ab", "ba", 2), ("é", "e\u0301", 2)):
            self.assertEqual(measured("levenshtein_distance", one, other), distance)
        self.assertEqual(measured("levenshtein_ratio", "kitten", "sitting"), 4 / 7)

    def test_levenshtein_is_the_table_of_wagner_and_fischer(self):
        rng = random.Random(3)
        for _ in range(60):
            one, other = ("".join(rng.choice("abcé\ud800") for _ in range(rng.randint(0, 90))) for _ in range(2))
            row = list(range(len(other) + 1))
            for place, left in enumerate(one, 1):
                before, row[0] = row[0], place
                for column, right in enumerate(other, 1):
                    before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (left != right))
            self.assertEqual(kaizen.levenshtein(one, other), row[-1])

    def test_jaro_winkler_as_in_winkler_1990(self):
        for one, other, value in (("MARTHA", "MARHTA", 0.9611), ("DWAYNE", "DUANE", 0.84), ("DIXON", "DICKSONX", 0.8133), ("ABC", "XYZ", 0), ("same", "same", 1)):
            self.assertAlmostEqual(measured("jaro_winkler", one, other), value, 4)

    def test_token_f1_as_squad_reads_answers(self):
        self.assertEqual(measured("token_f1", "The Eiffel-Tower!", "eiffel-tower"), 1)
        self.assertEqual(measured("token_f1", "in Paris, France", "Paris"), 0.5)  # 1 of 3 and 1 of 1
        self.assertEqual(measured("token_f1", "to be or not to be", "to be to"), 2 * 3 / 9)

    def test_jaccard(self):
        self.assertEqual(measured("jaccard", "Red, green, green", "green blue red"), 2 / 3)

    def test_bleu_by_hand(self):
        # 5/6, 3/5, 1/4 shared n-grams and no 4-gram of 3, which counts as 1/2; no brevity penalty.
        output, reference = "the cat sat on the mat", "the cat was on the mat"
        self.assertAlmostEqual(measured("bleu", output, reference), (5 / 6 * 3 / 5 * 1 / 4 * 0.5 / 3) ** 0.25, 12)
        self.assertAlmostEqual(measured("bleu", "the cat sat on", "the cat sat on the mat"), math.exp(1 - 6 / 4), 12)
        self.assertEqual(measured("bleu", "a b c", "x y z"), 0)
        self.assertEqual(measured("bleu", "Yes", "Yes"), 1)

    def test_rouge_as_in_lin_2004(self):
        # Lin's example, section 3: both have three of four words in common, but in order only the first.
        reference, first, second = "police killed the gunman", "police kill the gunman", "the gunman kill police"
        self.assertEqual([measured("rouge_l", text, reference) for text in (first, second)], [0.75, 0.5])
        self.assertEqual([measured("rouge_1", text, reference) for text in (first, second)], [0.75, 0.75])
        self.assertEqual([measured("rouge_2", text, reference) for text in (first, second)], [1 / 3, 1 / 3])

    def test_words_of_other_scripts(self):
        self.assertEqual(kaizen.words_of("Straße, «déjà» 3.5 हिन्दी 北京 e-mail_x"), ["straße", "déjà", "3", "5", "हिन्दी", "北", "京", "e", "mail", "x"])
        self.assertEqual(measured("rouge_1", "我在北京", "他在北京"), 0.75)


class Rules(StrictTestCase):
    """The best of the references, thresholds, normalisation, bounds."""

    def test_identity_symmetry_and_range(self):
        rng = random.Random(4)
        for measure in MEASURES:
            for _ in range(40):
                one, other = (" ".join(rng.choice("red green blue x1 é 語".split()) for _ in range(rng.randint(2, 12))) for _ in range(2))
                self.assertEqual(measured(measure, one, one), 0 if measure == "levenshtein_distance" else 1)
                found = measured(measure, one, other)
                self.assertTrue(0 <= found <= (200 if measure == "levenshtein_distance" else 1))
                if measure not in ("bleu", "jaro_winkler"):
                    self.assertEqual(found, measured(measure, other, one))

    def test_the_nearest_reference_counts_whatever_their_order(self):
        references = ["nothing alike", "shipped on Monday", "the order was shipped"]
        for measure in MEASURES:
            values = {measured(measure, "order shipped on Monday", *each) for each in itertools.permutations(references)}
            alone = [measured(measure, "order shipped on Monday", each) for each in references]
            self.assertEqual(values, {min(alone) if measure == "levenshtein_distance" else max(alone)})
        found = outcome_of(entry_of("similarity", measure="jaccard", references=["x", "a b"], threshold=0.5), "a b")
        self.assertEqual(found.reason, "jaccard is 1.0 (the nearest of 2 references is number 2); score 1.0 is at least 0.5")

    def test_a_score_on_the_threshold_passes(self):
        entry = entry_of("similarity", measure="levenshtein_ratio", references="abcde", threshold=0.8)
        self.assertEqual([status_of(entry, text) for text in ("abcdX", "abcXX")], ["pass", "fail"])
        self.assertEqual(status_of({**entry, "negate": True}, "abcXX"), "pass")

    def test_a_distance_has_a_bound_and_no_score_between(self):
        entry = entry_of("similarity", measure="levenshtein_distance", references="abcde", max=1)
        self.assertEqual([outcome_of(entry, text)[:4] for text in ("abcd", "abc")], [("pass", 1.0, "levenshtein_distance is 1, at most 1", 1), ("fail", 0.0, "levenshtein_distance is 2, above 1", 2)])

    def test_both_sides_are_normalised(self):
        self.assertEqual(measured("levenshtein_distance", "  Straße ", "STRASSE", normalize=["strip", "casefold"]), 0)

    def test_texts_that_hold_nothing_to_compare(self):
        for measure in MEASURES:
            if measure != "levenshtein_distance":
                self.assertEqual(measured(measure, "", "a word here"), 0)
        self.assertEqual(measured("rouge_1", "…!?", "a word"), 0)

    def test_what_is_above_the_bound_is_an_error_and_no_hang(self):
        bound = kaizen.SIMILARITY_BOUND
        for measure in MEASURES:
            bar = {"max": 5} if measure == "levenshtein_distance" else {"threshold": 0.5}
            found = outcome_of(entry_of("similarity", measure=measure, references="some words", **bar), "x" * 10_000_000)
            self.assertEqual((found.status, found.reason), ("error", f"has 10,000,000 characters, and {measure} looks at {bound:,} at most"))
        refused = refusal_of(entry_of("similarity", measure="bleu", references=["a " * 20_000, "b " * 20_000], threshold=0.5))
        self.assertEqual(refused[:2], ("/references", "has 80,000 characters in all, more than 50,000"))

    def test_up_to_the_bound_it_takes_about_a_second(self):
        rng = random.Random(5)
        one, other = ("".join(rng.choice("abcd ") for _ in range(20_000)) for _ in range(2))
        began = kaizen.time.process_time()
        measured("levenshtein_ratio", one, other)
        self.assertLess(kaizen.time.process_time() - began, 2)

    def test_what_it_needs_to_be_told(self):
        def refused(**settings):
            return refusal_of(entry_of("similarity", **{"measure": "bleu", "references": "a b", **settings}))[:2]

        self.assertEqual(refused(), ("", "bleu needs threshold: the least score that passes"))
        self.assertEqual(refused(max=5, threshold=0.5), ("/max", "max is for levenshtein_distance only"))
        self.assertEqual(refused(measure="levenshtein_distance"), ("", "levenshtein_distance needs max: the most edits that pass"))
        self.assertEqual(refused(measure="levenshtein_distance", max=1, threshold=0.5), ("/threshold", "levenshtein_distance is a number of edits, no score"))
        self.assertEqual(refused(measure="levenshtein_distance", max=-1), ("/max", "max is negative"))
        self.assertEqual(refused(references=["x", ""], threshold=0.5), ("/references/1", "is an empty text"))
        self.assertEqual(refused(measure="token_f1", references="The", threshold=0.5), ("/references", "holds nothing that token_f1 compares"))
        self.assertEqual(refused(measure="rouge_2", references="one", threshold=0.5), ("/references", "holds nothing that rouge_2 compares"))


if __name__ == "__main__":
    unittest.main()
