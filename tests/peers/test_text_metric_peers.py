"""The measures of `similarity` and `label` against the libraries people use, on seeded random texts; docs/text-metrics.md has the differences."""

import random
import sys
import unittest
from pathlib import Path

import jellyfish
import rapidfuzz
import sacrebleu
from rouge_score import rouge_scorer
from sklearn.metrics import confusion_matrix, matthews_corrcoef, precision_recall_fscore_support

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import kaizen

ALPHABETS = ("ab", "abc XY.,'-", "aäßéÅИджλ語🙂\u0301 ", "0123456789.,- ")
WORDS = "the a an order Order was shipped on Monday, 3.50 1,250 e-mail don't cat's 12-3 (late) U.S. 99% it's -7 a.b,c ... v1.2. x=1;y".split()
FOREIGN = "Straße déjà naïve заказ отправлен χρόνος über".split()


def random_texts(seed, count):
    """*count* texts of up to 60 characters over several alphabets."""
    rng = random.Random(seed)
    return ["".join(rng.choice(rng.choice(ALPHABETS)) for _ in range(rng.randint(0, 60))) for _ in range(count)]


def near_pairs(seed, count):
    """Pairs of which the second was made from the first by a few edits, and pairs that have nothing to do with each other."""
    rng = random.Random(seed)
    for text in random_texts(seed, count):
        other = list(text)
        for _ in range(rng.randint(0, 12)):
            place = rng.randint(0, len(other))
            other[place : place + rng.randint(0, 2)] = rng.choice(["", rng.choice("abXÅ語 ")])
        yield text, "".join(other) if rng.random() < 0.8 else "".join(rng.sample(text, len(text)))


def sentence_pairs(seed, count, words=WORDS):
    """Pairs of sentences that share words, some of them none."""
    rng = random.Random(seed)
    for _ in range(count):
        one = [rng.choice(words) for _ in range(rng.randint(1, 25))]
        other = list(one)
        for _ in range(rng.randint(0, 10)):
            other.insert(rng.randint(0, len(other)), rng.choice(words))
            other.pop(rng.randrange(len(other)))
        yield " ".join(one), " ".join(other if rng.random() < 0.8 else rng.choices(words, k=rng.randint(1, 25)))


def measured(metric, one, other):
    """The measure of Kaizen."""
    split, measure = kaizen.SIMILARITY_MEASURES[metric]
    return measure(split(one), split(other))


class EditPeers(unittest.TestCase):
    """rapidfuzz and jellyfish."""

    def test_levenshtein_is_rapidfuzzs(self):
        for one, other in near_pairs(1, 1500):
            self.assertEqual(measured("levenshtein_distance", one, other), rapidfuzz.distance.Levenshtein.distance(one, other), (one, other))
            if one or other:
                expected = rapidfuzz.distance.Levenshtein.normalized_similarity(one, other)
                self.assertAlmostEqual(measured("levenshtein_ratio", one, other), expected, 12)

    def test_levenshtein_of_long_texts_is_rapidfuzzs(self):
        rng = random.Random(2)
        for length in (63, 64, 65, 1000, 5000):
            one, other = ("".join(rng.choice("abcd ") for _ in range(length + rng.randint(0, 9))) for _ in range(2))
            self.assertEqual(measured("levenshtein_distance", one, other), rapidfuzz.distance.Levenshtein.distance(one, other))
            self.assertEqual(kaizen.common_subsequence(one, other), rapidfuzz.distance.LCSseq.similarity(one, other))

    def test_where_a_letter_has_a_combining_mark_jellyfish_takes_both_for_one_character(self):
        pair = ("cafe\u0301", "cafe")
        self.assertAlmostEqual(measured("jaro_winkler", *pair), rapidfuzz.distance.JaroWinkler.similarity(*pair), 12)
        self.assertEqual([round(kaizen.jaro_winkler(*pair), 3), round(jellyfish.jaro_winkler_similarity(*pair), 3)], [0.96, 0.883])

    def test_jaro_winkler_is_that_of_rapidfuzz_and_jellyfish(self):
        for one, other in near_pairs(3, 1500):
            # Of exactly 0.7 nothing is above 0.7; the libraries' sum of rounded parts may be.
            if one and other and abs(rapidfuzz.distance.Jaro.similarity(one, other) - 0.7) > 1e-9:
                found = measured("jaro_winkler", one, other)
                self.assertAlmostEqual(found, rapidfuzz.distance.JaroWinkler.similarity(one, other), 12, (one, other))
                # jellyfish takes a grapheme (a letter with its combining marks) for one character
                if "\u0301" not in one + other:
                    self.assertAlmostEqual(found, jellyfish.jaro_winkler_similarity(one, other), 12, (one, other))


class WordPeers(unittest.TestCase):
    """sacrebleu and rouge-score."""

    def test_bleu_is_sacrebleus_sentence_bleu_with_its_defaults(self):
        for pairs in (sentence_pairs(4, 600), sentence_pairs(5, 300, [*WORDS, *FOREIGN])):
            for one, other in pairs:
                expected = sacrebleu.sentence_bleu(one, [other]).score / 100
                self.assertAlmostEqual(measured("bleu", one, other), expected, 9, (one, other))

    def test_bleu_tokens_are_those_of_13a(self):
        tokenize = sacrebleu.metrics.bleu._get_tokenizer("13a")()
        for text in random_texts(6, 1500):
            self.assertEqual(kaizen.bleu_tokens(text), tokenize(text).split(), text)

    def test_rouge_is_rouge_scores_on_ascii(self):
        scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"])
        for one, other in sentence_pairs(7, 600):
            expected = scorer.score(other, one)
            for metric, name in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL")):
                self.assertAlmostEqual(measured(metric, one, other), expected[name].fmeasure, 12, (metric, one, other))

    def test_rouge_of_another_script_is_rouge_scores_with_a_tokenizer_for_it(self):
        """rouge-score itself keeps a-z and 0-9 alone: of a Russian sentence nothing is left, and its score is 0."""

        class Tokens:
            """Words at spaces."""

            def tokenize(self, text):
                return text.lower().split()

        scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Tokens())
        self.assertEqual(rouge_scorer.RougeScorer(["rouge1"]).score("заказ", "заказ")["rouge1"].fmeasure, 0)
        self.assertEqual(measured("rouge_1", "заказ", "заказ"), 1)
        for one, other in sentence_pairs(8, 300, FOREIGN):
            expected = scorer.score(other, one)
            for metric, name in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL")):
                self.assertAlmostEqual(measured(metric, one, other), expected[name].fmeasure, 12, (metric, one, other))

    def test_jaccard_of_words_is_the_set_arithmetic(self):
        for one, other in sentence_pairs(9, 300):
            sets = [set("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()) for text in (one, other)]
            either = sets[0] | sets[1]
            if either:
                self.assertAlmostEqual(measured("jaccard", one, other), len(sets[0] & sets[1]) / len(either), 12)


class LabelPeers(unittest.TestCase):
    """scikit-learn, to which an answer that is no label is one label more."""

    def test_precision_recall_f_mcc_and_the_matrix_are_scikit_learns(self):
        rng = random.Random(10)
        for _ in range(60):
            labels = "abcde"[: rng.randint(2, 5)]
            expected = rng.choices(labels, k=rng.randint(2, 40))
            given = [label if rng.random() < 0.5 else rng.choice([*labels, ""]) for label in expected]
            pairs = kaizen.Counter((label, answer or None) for label, answer in zip(expected, given, strict=True))
            found = kaizen.label_document(pairs, 0, None)
            known = [*found["by_label"], ""]
            for row, label in zip(confusion_matrix(expected, given, labels=known), known, strict=True):
                self.assertEqual([found["matrix"].get(label, {}).get(answer, 0) for answer in known], list(row))
            for key, beta in (("f0_5", 0.5), ("f1", 1), ("f2", 2)):
                values = precision_recall_fscore_support(expected, given, beta=beta, labels=known[:-1], zero_division=float("nan"))
                for place, label in enumerate(known[:-1]):
                    for name, value in zip(("precision", "recall", key), values, strict=False):
                        mine = found["by_label"][label][name]
                        if mine is None:
                            self.assertTrue(value[place] != value[place] or key == name)
                        else:
                            self.assertAlmostEqual(mine, value[place], 12)
            if found["mcc"] is not None:
                self.assertAlmostEqual(found["mcc"], matthews_corrcoef(expected, given), 12)


if __name__ == "__main__":
    unittest.main()
