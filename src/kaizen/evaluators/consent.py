"""Whether a user's message says yes.

It does if a sentence of it that is not a question begins with a word of consent (yes, yeah, yep, correct,
exactly, confirmed, agreed, approved, absolutely; also after "great," or "I see,"), or has a phrase
of going ahead ("go ahead", "please proceed", "I confirm", "that / everything looks, sounds, is right, good,
correct, fine"), or one of the phrases given. "Sure", "ok", "okay" and "fine" only as the whole message:
"Sure! My number is 4711" consents to nothing. A message that begins with no, nope, wait or not yet does
not. Choosing among options, asking for a thing, and "and yes, I also want …" have none of these forms.

A word of consent that is taken back at once ("absolutely not", "yeah, no") or is no answer ("correct my
address", "exactly which one") is none, nor is a phrase after a denial or a condition in its clause
("don't go ahead", "before you go ahead, …", "make sure everything is correct"). Every pattern runs in linear time.
"""

import re

CONSENT_WORD = re.compile(
    r"""(?:(?:great|i\ see)\b,?\ )?
    (?:(?:yes|yeah|yep|confirmed|agreed|approved|absolutely)\b
     | correct\b(?!\ (?:me|my|the|this|that|it|your|our|his|her|their|any|all)\b)
     | exactly\b(?!\ (?:what|which|who|where|when|why|how)\b))
    (?!\ (?:not|no(?!\ (?:problem|worries|issues?)\b))\b | ,?\ (?:no|nah|nope)\W*$ | \ and\ no\b)""",
    re.VERBOSE,
)
GO_AHEAD = r"go ahead|please proceed|i confirm|(?:that|everything)(?:'?s| is| looks| sounds) (?:right|good|correct|fine)"
CONSENT_WHOLE = re.compile(r"\W*(?:sure|ok|okay|fine)[^\w?]*")
CONSENT_REFUSED = re.compile(r"\W*(?:no|nope|wait|not yet)\b")
CONSENT_SENTENCE_END = re.compile(r"[.!?…\n]+")
CONSENT_LEADING_MARKS = re.compile(r"[\W_]+")
CONSENT_CLAUSE_END = re.compile(r"[,;:—–]| but ")
# A question that may lack its mark: "could you go ahead and …".
CONSENT_QUESTION = re.compile(
    r"(?:can|could|would|will|shall|should|may|do|does|did|is|are|am|was|were|have|has)(?:n't)? (?:i|you|we|they|he|she|it)\b"
)
CONSENT_TAKEN_BACK = re.compile(
    r"n't\b|\b(?:not|never|cannot|dont|cant|wont|no need|no longer|without|if|unless|until|before|whether|once"
    r"|make sure|be sure|ensure|check|verify|hope)\b"
)


def consent_phrases(further: list[str]) -> "re.Pattern[str]":
    """The pattern of the phrases that go ahead anywhere in a sentence, with those of *further*."""
    own = [re.escape(plain_sentence(phrase)) for phrase in further]
    return re.compile(rf"(?<!\w)(?:{'|'.join([GO_AHEAD, *own])})(?!\w)")


def plain_sentence(text: str) -> str:
    """*text* in lower case, with straight apostrophes and single spaces."""
    return " ".join(text.casefold().replace("’", "'").replace("ʼ", "'").split())


def says_yes(message: str, phrases: "re.Pattern[str]") -> bool:
    """Whether *message* consents; *phrases* is a pattern of `consent_phrases`."""
    text = message.casefold()
    if CONSENT_REFUSED.match(text):
        return False
    if CONSENT_WHOLE.fullmatch(text):
        return True
    start = 0
    for end in CONSENT_SENTENCE_END.finditer(text):
        if end.group() == "." and end.end() < len(text) and not text[end.end()].isspace():
            continue  # inside 12.50 or kaizen.py
        if "?" not in end.group() and sentence_consents(text[start : end.start()], phrases):
            return True
        start = end.end()
    return sentence_consents(text[start:], phrases)


def sentence_consents(text: str, phrases: "re.Pattern[str]") -> bool:
    """Whether one sentence, which has no question mark, consents."""
    sentence = plain_sentence(text)
    marks = CONSENT_LEADING_MARKS.match(sentence)
    sentence = sentence[marks.end() :] if marks else sentence
    if CONSENT_QUESTION.match(sentence):
        return False
    return CONSENT_WORD.match(sentence) is not None or has_consent_phrase(sentence, phrases)


def has_consent_phrase(sentence: str, phrases: "re.Pattern[str]") -> bool:
    """Whether a phrase stands in *sentence* and nothing before it in its clause takes it back."""
    place = 0  # where the clause begins that is read
    while True:
        phrase = phrases.search(sentence, place)
        if phrase is None:
            return False
        for end in CONSENT_CLAUSE_END.finditer(sentence, place, phrase.start()):
            place = end.end()
        if CONSENT_TAKEN_BACK.search(sentence, place, phrase.start()) is None:
            return True
        # What takes this phrase back takes back the others of its clause.
        following = CONSENT_CLAUSE_END.search(sentence, phrase.end())
        if following is None:
            return False
        place = following.end()
