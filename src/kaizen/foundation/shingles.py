"""Shingles: overlapping runs of words, by which text that was copied is found again.

Source: A. Z. Broder (1997), On the resemblance and containment of documents, Proceedings of
Compression and Complexity of Sequences, 21-29.
"""

import re
from collections.abc import Iterator
from typing import Any

SHINGLE_WORDS = 8
WORD_OF_TEXT = re.compile(r"\w+")


def texts_in(value: Any) -> Iterator[str]:
    """Every string anywhere in the JSON *value*; keys are not texts."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, (dict, list)):
            pending += list(item.values()) if isinstance(item, dict) else item


def word_shingles(text: str, size: int = SHINGLE_WORDS) -> set[str]:
    """Each run of *size* words of *text*, in compatible Unicode form and without case and punctuation; none for fewer words.

    >>> sorted(word_shingles("Is it it? It IS it.", 5))
    ['is it it it is', 'it it it is it']
    """
    import unicodedata

    words = WORD_OF_TEXT.findall(unicodedata.normalize("NFKC", text).casefold())
    return {" ".join(words[place : place + size]) for place in range(len(words) - size + 1)}
