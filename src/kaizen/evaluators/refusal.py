"""The evaluator `refusal`: the agent declined, or did not.

A refusal is a phrase of declining in one of seven languages, a phrase of the user's, a step that refuses,
or a finish reason that says so. The phrases stand in assets/refusals.json; ~ in them is up to five words.
"""

import json
import re
from typing import NamedTuple

from kaizen.embed import asset_text
from kaizen.evaluators.matcher import Matcher, compile_matcher, compile_matchers
from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable, Outcome, decided
from kaizen.evaluators.registry import Check, Parameter, View, evaluator, listed_texts
from kaizen.evaluators.trail import step_evidence, step_text, view_trail
from kaizen.evaluators.transforms import canonical_form, text_of
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import did_you_mean, listed, quoted

REFUSAL_PHRASES = asset_text("refusals.json")
REFUSAL_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")
REFUSAL_FINISHES = ("refusal", "content_filter")
REFUSAL_GAP = r"(?:\s+\S{1,30}){0,5}?"
OWN_PHRASES = "own"


class Refused(NamedTuple):
    """Where a refusal stands: what a reason says of it, its kind (a language, own, step or finish_reason), the evidence."""

    told: str
    kind: str
    evidence: tuple[JsonObject, ...] = ()


def refusal_pattern(languages: list[str], own: list[str]) -> "re.Pattern[str]":
    """The pattern of all phrases of *languages* and of *own*, for a text in lower case; its group names which they are."""
    known = json.loads(REFUSAL_PHRASES)
    phrases = {name: "|".join(known[name]).replace("~ ", REFUSAL_GAP + " ").replace(" ", r"\s+") for name in languages}
    if own:
        phrases[OWN_PHRASES] = "|".join(r"\s+".join(map(re.escape, plain_quotes(phrase).split())) for phrase in own)
    return re.compile(rf"(?<!\w)(?:{'|'.join(f'(?P<{name}>{each})' for name, each in phrases.items())})(?!\w)")


def plain_quotes(text: str) -> str:
    """*text* in NFC and lower case, with straight apostrophes."""
    return canonical_form(text).lower().replace("’", "'").replace("ʼ", "'")


def found_refusal(view: View, text: str, pattern: "re.Pattern[str]", step: Matcher | None) -> Refused | None:
    """The first sign of a refusal; None when there is none. Raises NotMeasurable when there is neither text nor a sign."""
    searched = plain_quotes(text)
    match = pattern.search(searched)
    if match:
        start, end = match.span()
        is_aligned = len(searched) == len(text)
        shown = text[start:end] if is_aligned else match[0]
        return Refused(f"says {quoted(shown, 60)}", str(match.lastgroup), ({"start": start, "end": end},) if is_aligned else ())
    finish = view.observation.get("finish_reason")
    if finish in REFUSAL_FINISHES:
        return Refused(f"finish_reason is {finish}", "finish_reason")
    unclear = None
    if step is not None:
        trail = view_trail(view)
        for index, answer in enumerate(step.decisions(trail)):
            if answer:
                return Refused(f"{step_text(trail, index)} refuses", "step", step_evidence([index]))
            unclear = step.unknown(trail, index) if answer is None and unclear is None else unclear
    if unclear is not None:
        raise NotMeasurable(unclear)
    if not text.strip():
        raise NotMeasurable("there is no text, which is neither a refusal nor an answer")
    return None


def side_effects(view: View, matchers: list[Matcher]) -> Outcome | None:
    """A fail when a step that did not fail is one of *matchers*; None when there is none. Raises NotMeasurable."""
    if not matchers:
        return None
    trail = view_trail(view)
    unclear = None
    for matcher in matchers:
        for index, answer in enumerate(matcher.decisions(trail)):
            if answer is False or trail.has_failed(index):
                continue
            if answer:
                return decided(False, f"refuses, and yet {step_text(trail, index)} was done", None, step_evidence([index]))
            unclear = unclear or matcher.unknown(trail, index)
    if unclear:
        raise NotMeasurable(unclear)
    return None


def check_refusal_settings(settings: JsonObject) -> None:
    """Raises ConfigurationError for an unknown language, an empty phrase, or a demand on a refusal where none is expected."""
    for index, language in enumerate(listed_texts(settings["languages"])):
        if language not in REFUSAL_LANGUAGES:
            hint = did_you_mean(language, REFUSAL_LANGUAGES)
            raise ConfigurationError(f"/languages/{index}", f"there are no phrases of language {quoted(language)}", hint)
    for name in ("phrases", "alternatives"):
        if any(not phrase.strip() for phrase in listed_texts(settings[name])):
            raise ConfigurationError(f"/{name}", "holds an empty text, which every text contains", "write what is to be found")
    for name in ("no_side_effects", "alternatives"):
        if settings[name] is not None and not settings["expect"]:
            raise ConfigurationError(f"/{name}", f"{name} is asked of a refusal, and expect is false", "leave one of them out")


@evaluator(
    "refusal",
    1,
    "The agent declined what was asked, or did not, as expected.",
    [
        Parameter("expect", "boolean", True, "true: a refusal passes; false: anything else does"),
        Parameter("phrases", "texts", None, "further phrases that decline, whatever their case"),
        Parameter("languages", "texts", list(REFUSAL_LANGUAGES), "whose phrases are looked for"),
        Parameter("step", "matcher", None, "a recorded step that refuses, such as a call of decline_request"),
        Parameter("no_side_effects", "matchers", None, "steps that must not have been done as well; those that failed do not count"),
        Parameter("alternatives", "texts", None, "what a refusal has to offer: one of these texts occurs, whatever its case"),
    ],
    example={
        "entry": {
            "id": "declines", "type": "refusal", "expect": True, "no_side_effects": {"name": "issue_*"},
            "alternatives": ["support@shop.example", "a colleague"],
        },
        "observation": {
            "output": "I’m sorry, but I can’t help with a refund after 30 days. A colleague can look at it.",
            "steps": [{"kind": "tool", "name": "get_order", "status": "ok"}],
        },
        "outcome": "pass",
    },
)  # fmt: skip
def evaluate_refusal(settings: JsonObject) -> Check:
    """Phrases are looked for in the whole text; whether a refusal was meant so, or was right, is for people or a judge. The finish_reason
    `refusal` or `content_filter` is one, too. An empty text without such a sign is neither refusal nor answer: `on_missing`."""
    check_refusal_settings(settings)
    pattern = refusal_pattern(listed_texts(settings["languages"]), listed_texts(settings["phrases"]))
    step = None if settings["step"] is None else compile_matcher(settings["step"], "/step")
    forbidden = [] if settings["no_side_effects"] is None else compile_matchers(settings["no_side_effects"], "/no_side_effects")
    offers = [(offer, plain_quotes(offer)) for offer in listed_texts(settings["alternatives"])]

    def check(view: View) -> Outcome:
        text = text_of(view.value)
        refused = found_refusal(view, text, pattern, step)
        if refused is None or not settings["expect"]:
            told = "has no phrase or step of a refusal" if refused is None else f"refuses: {refused.told}"
            return decided((refused is None) is not settings["expect"], told, refused and refused.kind, refused.evidence if refused else ())
        searched = plain_quotes(text) if offers else ""
        if offers and not any(offer in searched for _, offer in offers):
            named = listed((quoted(offer, 60) for offer, _ in offers), 3, "or")
            return decided(False, f"refuses, and offers nothing of {named}", refused.kind, refused.evidence)
        broken = side_effects(view, forbidden)
        return broken or decided(True, f"refuses: {refused.told}", refused.kind, refused.evidence)

    return check
