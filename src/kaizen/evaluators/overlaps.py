"""How many words and n-grams two texts share: token F1, Jaccard, BLEU, ROUGE.

A word is a run of characters that are neither white space nor punctuation, in lower case; each
Chinese or Japanese character is one. The sets are fixed here, so that no version of the Unicode
tables changes a score. BLEU has tokens of its own, which keep case and punctuation.
"""

import math
import re
from collections import Counter

PUNCTUATION = (
    r"!-/:-@\[-`{-~\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011"
    r"\u3014-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
WORD = rf"[{IDEOGRAPHS}]|[^\s{IDEOGRAPHS}{PUNCTUATION}]+"
ENGLISH_ARTICLES = frozenset(["a", "an", "the"])
BLEU_ORDER = 4
ROUNDED = 12  # digits of what the exponential function gives, whose last one depends on the C library


def words_of(text: str) -> list[str]:
    """The words of *text* in lower case: "Don't stop, 3.5!" has don, t, stop, 3 and 5."""
    return re.findall(WORD, text.lower())


def answer_words(text: str) -> list[str]:
    """The words of *text* as SQuAD compares answers: lower case, punctuation deleted, English articles left out."""
    return [word for word in re.sub(f"[{PUNCTUATION}]", "", text.lower()).split() if word not in ENGLISH_ARTICLES]


def bleu_tokens(text: str) -> list[str]:
    """The tokens of *text* by the rules of the NIST program mteval-v13a, case kept; its entities (&amp;) are left as they are.

    ASCII punctuation stands alone; a full stop or comma only where one of its neighbours is no digit, a hyphen after a digit.
    """
    text = re.sub(r"([ -&(-+:-@\[-`{-~/])", r" \1 ", f" {text} ")
    text = re.sub(r"([^0-9])([.,])", r"\1 \2 ", text)
    text = re.sub(r"([.,])([^0-9])", r" \1 \2", text)
    return re.sub(r"([0-9])(-)", r"\1 \2 ", text).split()


def shared_count(one: "Counter[object]", other: "Counter[object]") -> int:
    """How many elements two multisets share."""
    return (one & other).total()


def n_grams(tokens: list[str], size: int) -> "Counter[object]":
    """The multiset of runs of *size* tokens."""
    return Counter(zip(*(tokens[start:] for start in range(size)), strict=False)) if size > 1 else Counter(tokens)


def f1_of(shared: int, one: int, other: int) -> float:
    """The harmonic mean of shared/one and shared/other; 0 when nothing is shared."""
    return 2 * shared / (one + other) if shared else 0.0


def token_f1(one: list[str], other: list[str]) -> float:
    """F1 of the tokens that two answers share, as multisets.

    Source: P. Rajpurkar et al. (2016), SQuAD: 100,000+ questions for machine comprehension of text, section 6.1.

    >>> token_f1("the cat sat".split(), "cat sat down".split())
    0.6666666666666666
    """
    return f1_of(shared_count(Counter(one), Counter(other)), len(one), len(other))


def jaccard(one: list[str], other: list[str]) -> float:
    """The share of the different tokens of both that both have; 0 for none. Source: P. Jaccard (1912), The distribution of the flora.

    >>> jaccard(["a", "b", "b"], ["b", "c"])
    0.3333333333333333
    """
    either = len({*one, *other})
    return len(set(one) & set(other)) / either if either else 0.0


def rouge_n(one: list[str], other: list[str], size: int) -> float:
    """F1 of the n-grams of *size* tokens that two texts share, as multisets.

    Source: C.-Y. Lin (2004), ROUGE: a package for automatic evaluation of summaries, section 2, where recall alone is ROUGE-N;
    F1 is what later programs report.
    """
    return f1_of(shared_count(n_grams(one, size), n_grams(other, size)), max(len(one) - size + 1, 0), max(len(other) - size + 1, 0))


def bleu(output: list[str], reference: list[str]) -> float:
    """BLEU of one sentence with up to 4-grams against one reference.

    Source: K. Papineni et al. (2002), BLEU: a method for automatic evaluation of machine translation, section 2.3. The k-th order
    without a match counts as 1/2^k matches (B. Chen, C. Cherry (2014), smoothing 3), orders that the output is too short for
    are left out; no shared token gives 0.

    >>> bleu("the cat sat on the mat".split(), "the cat sat on the mat".split())
    1.0
    """
    logarithms, smoothing = [], 1
    for size in range(1, min(BLEU_ORDER, len(output)) + 1):
        shared = shared_count(n_grams(output, size), n_grams(reference, size))
        if not shared:
            if size == 1:
                return 0.0
            smoothing *= 2
        logarithms.append(math.log((shared or 1 / smoothing) / (len(output) - size + 1)))
    if not logarithms:
        return 0.0
    brevity = min(0.0, 1 - len(reference) / len(output))
    return min(1.0, round(math.exp(math.fsum(logarithms) / len(logarithms) + brevity), ROUNDED))
