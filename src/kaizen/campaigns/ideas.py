"""Ideas: hypotheses, written down before they are tried and never changed."""

import re
from collections.abc import Collection
from typing import NamedTuple

from kaizen.campaigns.campaign import IDEAS_FILE, Campaign, read_events, refuse_closed, writing_journal
from kaizen.campaigns.rules import LABEL_ITEMS
from kaizen.foundation.errors import RefusedError, UsageError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.shingles import WORD_OF_TEXT
from kaizen.foundation.text import did_you_mean, listed, quoted

CATEGORIES = ("prompt", "examples", "tools", "retrieval", "structure", "model", "parameters", "robustness", "simplification")
CATEGORY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}\Z")
NO_LABEL = "none"
SIMILAR_WORDS = 0.5  # of the words of two hypotheses together, from which they are called similar
LONGEST_HYPOTHESIS, LONGEST_TITLE = 2000, 120


class NewIdea(NamedTuple):
    """What somebody wants to try; `label` is a tag of development items or `none`, `predict` the gain expected in units of the metric."""

    hypothesis: str
    title: str
    category: str
    component: str
    label: str
    predict: float | None
    source: str


class AddedIdea(NamedTuple):
    """The idea as it is recorded, and what should be known about it."""

    document: JsonObject
    notes: list[str]


def hypothesis_words(text: str) -> list[str]:
    """The words of *text* in compatible Unicode form, without case and punctuation.

    >>> hypothesis_words("If it asks, THEN …")
    ['if', 'it', 'asks', 'then']
    """
    import unicodedata

    return WORD_OF_TEXT.findall(unicodedata.normalize("NFKC", text).casefold())


def word_overlap(left: Collection[str], right: Collection[str]) -> float:
    """The share of the words of two texts together that both have (Jaccard); 0 when neither has one.

    >>> word_overlap(["a", "b"], ["b", "c"]) == 1 / 3
    True
    """
    union = set(left) | set(right)
    return len(set(left) & set(right)) / len(union) if union else 0.0


def read_ideas(campaign: Campaign) -> list[JsonObject]:
    """The ideas of *campaign*, oldest first. Raises RefusedError (`broken_chain`)."""
    return [event["body"] for event in read_events(campaign.file(IDEAS_FILE))]


def add_idea(campaign: Campaign, new: NewIdea, tags: dict[str, int], anyway: bool) -> AddedIdea:
    """Records an idea under the next id (i1, i2, …); *tags* {tag: development items that have it}.

    A label of fewer than five items is written down as `named_label`, and no label test is run. Raises UsageError for what it cannot be;
    RefusedError: `campaign_closed`, `duplicate_idea` for one that was written down already, `similar_idea` unless *anyway*.
    """
    refuse_closed(campaign)
    check_idea(new)
    label, named, notes = tested_label(new.label, tags)
    words = hypothesis_words(new.hypothesis)
    with writing_journal(campaign, IDEAS_FILE) as log:
        known = read_ideas(campaign)
        similar = similar_ideas(words, known)
        if similar and not anyway:
            them = listed([f"{each['id']} ({quoted(each['hypothesis'], 80)})" for each in similar], 3)
            raise RefusedError(f"it is much like {them}", "say what is new about it, or add it with --anyway", "similar_idea")
        document = {
            "id": f"i{log.seq + 1}",
            "title": new.title or new.hypothesis[:LONGEST_TITLE],
            "hypothesis": new.hypothesis,
            "category": new.category, "component": new.component, "label": label,
            **({"named_label": named} if named else {}),
            "predict": new.predict, "source": new.source,
            "similar_to": [each["id"] for each in similar],
            **({"anyway": True} if similar else {}),
        }
        log.append("idea", document)
    notes += [f"much like {listed([each['id'] for each in similar])}, added all the same"] if similar else []
    return AddedIdea(document, notes)


def check_idea(new: NewIdea) -> None:
    """Raises UsageError for an idea without a hypothesis, or with a text or category that cannot be one."""
    if not hypothesis_words(new.hypothesis):
        raise UsageError("the hypothesis is empty", "say: if …, then …, because …")
    for what, text, longest in (("hypothesis", new.hypothesis, LONGEST_HYPOTHESIS), ("title", new.title, LONGEST_TITLE)):
        if len(text) > longest:
            raise UsageError(f"the {what} has {len(text):,} characters", f"{longest:,} have to do")
    if not CATEGORY_NAME.match(new.category):
        raise UsageError(f"category {quoted(new.category)}: is no category", f"such as {listed(CATEGORIES, 20, 'or')}, or another word")


def tested_label(label: str, tags: dict[str, int]) -> tuple[str | None, str, list[str]]:
    """(the label to test or None, what was named and cannot be tested or '', notes). Raises UsageError for a tag that no item has."""
    if label == NO_LABEL:
        return None, "", []
    if label not in tags:
        able = {name: number for name, number in tags.items() if number >= LABEL_ITEMS}
        hint = did_you_mean(label, able) if able else f"no tag has {LABEL_ITEMS} development items: say --label {NO_LABEL}"
        raise UsageError(f"label {quoted(label)}: no development item has such a tag", hint)
    if tags[label] < LABEL_ITEMS:
        return None, label, [f"no label test: {quoted(label)} has {tags[label]} development items, and {LABEL_ITEMS} are needed"]
    return label, "", []


def similar_ideas(words: list[str], known: list[JsonObject]) -> list[JsonObject]:
    """The *known* ideas whose hypothesis shares half of its words with *words*. Raises RefusedError for one with the same words."""
    found = []
    for idea in known:
        others = hypothesis_words(idea["hypothesis"])
        if others == words:
            message = f"{idea['id']} has that hypothesis already"
            raise RefusedError(message, f"try {idea['id']}, or say what is different this time", "duplicate_idea")
        if word_overlap(words, others) >= SIMILAR_WORDS:
            found.append(idea)
    return found
