"""Whether what is stated stood somewhere before: the evaluator `provenance`.

    {"kinds": ["ids", "urls"], "patterns": ["\\\\[(hb-[0-9]+)\\\\]"], "scope": "output", "sources": ["evidence/passages/*/text"]}

Each occurrence has to stand in an earlier part of a source (occurrences.py says what is found, and what agrees). `input`, `context`
and what is not a step come before everything; `messages.user`, `messages.assistant` and `steps/*/…` before what
follows them, and a result not before calls of its own batch. What a pattern finds is compared as it
stands, after nfkc and with collapsed space.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kaizen.evaluators.arguments import Tokens, field_tokens
from kaizen.evaluators.demands import TOLD_STEPS
from kaizen.evaluators.occurrences import SOURCE_KEYS, Occurrence, PhraseSearch, find_occurrences, id_key, phrase_tokens
from kaizen.evaluators.outcomes import FAIL, PASS, ConfigurationError, NotMeasurable, Outcome
from kaizen.evaluators.paths import CASE_ROOTS, PathExpression, parse_path, select_path, values_at
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.regex_timer import compile_pattern, timed
from kaizen.evaluators.registry import Check, Parameter, View, evaluator
from kaizen.evaluators.trail import EVIDENCE_SHOWN, Trail, is_action, is_cut, view_trail
from kaizen.foundation.jsonio import JsonObject, encode_compact, pointer_token
from kaizen.foundation.text import counted, did_you_mean, quoted

PROVENANCE_KINDS = ("ids", "numbers", "amounts", "dates", "urls", "emails", "quotes")
PROVENANCE_SCOPES = ("output", "messages", "tool_args")
DEFAULT_SOURCES = ["input", "context", "messages.user", "steps/*/result"]
AFTER_ALL = 1 << 60  # the place of the output: every step comes before it
LEAF_BREAK = " \x00 "  # between the texts of one value; nothing that is looked up spans it
ID_ARGUMENT = re.compile(r"(?:\A|[_-])(?i:ids?)\Z|[a-z]I[dD]s?\Z|\A(?i:uuid|reference|ref)\Z")

PROVENANCE_PARAMETERS = [
    Parameter("kinds", "texts", None, f"What is looked up: {', '.join(PROVENANCE_KINDS)}."),
    Parameter("patterns", "texts", None, "Regular expressions of further things to look up: group 1, or the whole match without groups."),
    Parameter(
        "scope", "choice", "output", "Where they are stated: the output, messages of the agent, arguments of its calls.", PROVENANCE_SCOPES
    ),
    Parameter("sources", "texts", DEFAULT_SOURCES, "Paths of what is known; each occurrence stands in one of them, and earlier."),
    Parameter("allow", "list", None, "Values that may be stated although no source has them.", may_be_empty=True),
    Parameter(
        "generated",
        "texts",
        None,
        "With scope tool_args: names or pointers of arguments that the agent makes up, such as a request id.",
        may_be_empty=True,
    ),
]
PROVENANCE_EXAMPLE = {
    "entry": {"id": "nothing_made_up", "type": "provenance", "kinds": ["ids", "amounts", "dates"]},
    "observation": {
        "output": "Order A-7 was sent on 5 March 2026 and costs $1,250.00.",
        "steps": [{"kind": "tool", "name": "get_order", "status": "ok", "result": '{"sent": "2026-03-05", "total": 1250}'}],
    },
    "case": {"id": "refund", "input": "Where is my order A-7?"},
    "outcome": PASS,
}


class Stated(NamedTuple):
    """An occurrence, the place of the step before which it has to stand, its text, and where it is for the evidence."""

    occurrence: Occurrence
    place: int
    shown: str
    evidence: JsonObject
    is_cut_off: bool = False


class KnownPart(NamedTuple):
    """A part of a source: the place of its step, -1 for what comes before everything, and its text."""

    place: int
    text: str


class Provenance(NamedTuple):
    """The settings of a `provenance`, compiled."""

    kinds: frozenset[str]
    patterns: list["re.Pattern[str]"]
    scope: str
    sources: list[PathExpression]
    allow: str
    generated: list[Tokens]


@evaluator("provenance", 1, "What is stated stood in a source before.", PROVENANCE_PARAMETERS, PROVENANCE_EXAMPLE, selects=False)
def evaluate_provenance(settings: JsonObject) -> Check:
    """The score is the share of occurrences that stand in a source; a text without any passes."""
    rule = compile_provenance(settings)

    def check(view: View) -> Outcome:
        stated = list(SCOPES[rule.scope](rule, view))
        known = Known(rule, view)
        known.look_up([hit.occurrence for hit in stated])
        lacking = [hit for hit in stated if not known.has(hit)]
        sure = [hit for hit in lacking if not known.reason_open(hit)]
        value = {"occurrences": len(stated), "unfounded": len(sure)}
        if sure:
            told = ", ".join(f"{KIND_WORDS[hit.occurrence.kind]} {quoted(hit.shown, 80)}" for hit in sure[:TOLD_STEPS])
            more = f", and {len(sure) - TOLD_STEPS} more" if len(sure) > TOLD_STEPS else ""
            verb = "stands" if len(sure) == 1 else "stand"
            evidence = tuple(hit.evidence for hit in sure[:EVIDENCE_SHOWN])
            score = (len(stated) - len(sure)) / len(stated)
            reason = f"{len(sure)} of {counted(len(stated), 'occurrence')} {verb} in no earlier source: {told}{more}"
            return Outcome(FAIL, score, reason, value, evidence)
        if lacking:
            raise NotMeasurable(known.reason_open(lacking[0]))
        return Outcome(PASS, 1.0, f"{counted(len(stated), 'occurrence')}, each in an earlier source", value)

    return check


KIND_WORDS = {
    "ids": "id", "numbers": "number", "amounts": "amount", "dates": "date", "urls": "url", "emails": "e-mail", "quotes": "quote",
    "patterns": "text",
}  # fmt: skip


def compile_provenance(settings: JsonObject) -> Provenance:
    """The rule that *settings* write. Raises ConfigurationError."""
    kinds, patterns = provenance_texts(settings, "kinds"), provenance_texts(settings, "patterns")
    if not kinds and not patterns:
        raise ConfigurationError("", "names neither kinds nor patterns, so nothing is looked up", f"kinds: {', '.join(PROVENANCE_KINDS)}")
    for index, kind in enumerate(kinds):
        if kind not in PROVENANCE_KINDS:
            raise ConfigurationError(f"/kinds/{index}", f"kind {quoted(kind)} is unknown", did_you_mean(kind, PROVENANCE_KINDS))
    compiled = [compile_pattern(pattern, 0, f"/patterns/{index}") for index, pattern in enumerate(patterns)]
    sources = []
    for index, text in enumerate(provenance_texts(settings, "sources")):
        try:
            sources.append(parse_path(text))
        except ValueError as error:
            raise ConfigurationError(f"/sources/{index}", str(error)) from None
    if settings["generated"] is not None and settings["scope"] != "tool_args":
        raise ConfigurationError("/generated", "generated names arguments, which only scope tool_args looks at")
    generated = [field_tokens(name, f"/generated/{index}") for index, name in enumerate(provenance_texts(settings, "generated"))]
    allow = joined_leaves(settings["allow"] or [])
    return Provenance(frozenset(kinds), compiled, settings["scope"], sources, allow, generated)


def provenance_texts(settings: JsonObject, name: str) -> list[str]:
    """The texts at *name* of *settings*, one or a list; [] for none."""
    value = settings[name]
    return [] if value is None else [value] if isinstance(value, str) else value


# --- What is stated ------------------------------------------------------------------------


def value_leaves(value: Any, tokens: Tokens = ()) -> Iterator[tuple[Tokens, str]]:
    """(tokens, text) of each text and number in *value*, in order."""
    stack: list[tuple[Tokens, Any]] = [(tokens, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, str):
            yield at, item
        elif isinstance(item, dict):
            stack += [((*at, key), inner) for key, inner in reversed(item.items())]
        elif isinstance(item, list):
            stack += [((*at, str(index)), inner) for index, inner in reversed(list(enumerate(item)))]
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            yield at, encode_compact(item)


def joined_leaves(value: Any) -> str:
    """The texts, numbers and keys in *value* as one text."""
    parts = [text for _, text in value_leaves(value)]
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            parts += item
        stack += list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
    return LEAF_BREAK.join(parts)


def stated_in(rule: Provenance, text: str) -> list[Occurrence]:
    """What *text* states of the kinds and patterns of *rule*. Raises PatternTimeout."""
    found = find_occurrences(text, rule.kinds)
    for pattern in rule.patterns:
        group = min(pattern.groups, 1)
        for match in timed(lambda pattern=pattern: list(pattern.finditer(text))):  # type: ignore[misc]
            tokens = phrase_tokens(match[group] or "")
            if tokens:
                found.append(Occurrence("patterns", (tokens,), match.start(group), match.end(group)))
    return found


def stated_in_output(rule: Provenance, view: View) -> Iterator[Stated]:
    """What the output states. Raises NotMeasurable when there is none."""
    output = view.observation.get("output")
    if output is None:
        raise NotMeasurable("there is no output")
    for tokens, text in value_leaves(output):
        for hit in stated_in(rule, text):
            where = {"start": hit.start, "end": hit.end} if isinstance(output, str) else {"pointer": "".join(map(pointer_token, tokens))}
            yield Stated(hit, AFTER_ALL, text[hit.start : hit.end], where)


def stated_in_messages(rule: Provenance, view: View) -> Iterator[Stated]:
    """What the messages of the agent state. Raises NotMeasurable when no steps were recorded."""
    for place, step in enumerate(view_trail(view).steps):
        text = step.get("text")
        if step.get("kind") == "message" and step.get("role") == "assistant" and isinstance(text, str):
            for hit in stated_in(rule, text):
                where = {"step": place, "start": hit.start, "end": hit.end}
                is_cut_off = hit.end == len(text) and is_cut(step, "text")
                yield Stated(hit, place, text[hit.start : hit.end], where, is_cut_off)


def stated_in_arguments(rule: Provenance, view: View) -> Iterator[Stated]:
    """What the arguments of calls state; one that is called id holds an id, whatever it looks like. Raises NotMeasurable."""
    trail = view_trail(view)
    for place, step in enumerate(trail.steps):
        if not is_action(step):
            continue
        for tokens, text in value_leaves(trail.content(place, "args")):
            if any(is_part_below(tokens, generated) for generated in rule.generated):
                continue
            names = [token for token in tokens if not token.isdigit()]
            where = {"step": place, "pointer": "/args" + "".join(map(pointer_token, tokens))}
            if "ids" in rule.kinds and names and ID_ARGUMENT.search(names[-1]) and any(map(str.isalnum, text)):
                hits = [Occurrence("ids", (id_key("".join(text.split())),), 0, len(text))]
            else:
                hits = stated_in(rule, text)
            for hit in hits:
                is_cut_off = hit.end == len(text) and is_cut(step, "args")
                yield Stated(hit, place, text[hit.start : hit.end], where, is_cut_off)


def is_part_below(tokens: Tokens, wanted: Tokens) -> bool:
    """Whether *tokens* lead to or below what *wanted*, with * for any token, leads to."""
    return len(tokens) >= len(wanted) and all(one in ("*", other) for one, other in zip(wanted, tokens, strict=False))


SCOPES = {"output": stated_in_output, "messages": stated_in_messages, "tool_args": stated_in_arguments}


# --- What is known -------------------------------------------------------------------------


class Known:
    """The sources of one observation, and where in them what is stated first stands."""

    def __init__(self, rule: Provenance, view: View) -> None:
        self.rule = rule
        self.view = view
        self.trail: Trail | None = None
        self.missing = ""  # why a source is not there
        self.first_cut: int | None = None  # the first part that was cut short
        self.first: dict[tuple[str, Any], int] = {}  # by group and key the place where it first stands
        self.parts = [KnownPart(-1, rule.allow)] if rule.allow else []
        for path in rule.sources:
            self.read(path)
        self.parts.sort(key=lambda part: part.place)

    def read(self, path: PathExpression) -> None:
        """Adds the parts of the source at *path*."""
        role = {"messages.user": "user", "messages.assistant": "assistant"}.get(path.root)
        if role is None and not (path.root == "steps" and path.tokens[:1] == ("*",)):
            selected = select_path(path, self.view.observation, self.view.case, self.view.memo)
            if selected.found:
                self.parts.append(KnownPart(-1, joined_leaves(selected.value)))
            elif path.root not in CASE_ROOTS:
                self.missing = self.missing or selected.reason
            return
        try:
            self.trail = view_trail(self.view)
        except NotMeasurable as absent:
            self.missing = self.missing or absent.reason
            return
        tokens = ("text",) if role else path.tokens[1:]
        for place, step in enumerate(self.trail.steps):
            if role is None or (step.get("kind") == "message" and step.get("role") == role):
                self.read_step(place, step, tokens)

    def read_step(self, place: int, step: JsonObject, tokens: Tokens) -> None:
        """Adds what stands at *tokens* in the step at *place*."""
        if tokens[:1] in (("args",), ("result",)) and self.trail is not None:
            value = self.trail.content(place, tokens[0])
            found = None if value is MISSING else values_at(value, tokens[1:])
        else:
            found = values_at(step, tokens)
        if found:
            self.parts.append(KnownPart(place, joined_leaves([value for _, value in found])))
        if any(is_cut(step, field) for field in (tokens[:1] or ("args", "result", "text"))):
            self.first_cut = place if self.first_cut is None else min(place, self.first_cut)

    def look_up(self, occurrences: list[Occurrence]) -> None:
        """Notes where the keys of *occurrences* first stand."""
        wanted: dict[str, set[Any]] = {}
        for occurrence in occurrences:
            wanted.setdefault(SOURCE_GROUPS[occurrence.kind], set()).update(occurrence.keys)
        search = PhraseSearch(wanted.pop("phrases")) if "phrases" in wanted else None
        for place, text in self.parts:
            for group, keys in wanted.items():
                for key in SOURCE_KEYS[group](text):
                    if key in keys:
                        self.first.setdefault((group, key), place)
            for phrase in search.scan(phrase_tokens(text)) if search else ():
                self.first.setdefault(("phrases", phrase), place)

    def has(self, hit: Stated) -> bool:
        """Whether what is stated stands in an earlier part."""
        group = SOURCE_GROUPS[hit.occurrence.kind]
        places = [self.first[group, key] for key in hit.occurrence.keys if (group, key) in self.first]
        return any(self.is_before(place, hit.place) for place in places)

    def is_before(self, place: int, later: int) -> bool:
        """Whether the part at *place* comes before what stands at *later*."""
        if place < 0 or self.trail is None or later >= len(self.trail.steps):
            return place < later
        return self.trail.comes_before(place, later)

    def reason_open(self, hit: Stated) -> str:
        """Why it is not known whether what is stated stands in an earlier part; '' when it is known."""
        told = f"whether {KIND_WORDS[hit.occurrence.kind]} {quoted(hit.shown, 80)} stands in an earlier source is not known"
        if self.missing:
            return f"{told}: {self.missing}"
        if hit.is_cut_off:
            return f"{told}: it was cut short"
        if self.first_cut is not None and self.first_cut < hit.place:
            return f"{told}: step {self.first_cut} was cut short"
        return ""


SOURCE_GROUPS = {**{kind: kind for kind in SOURCE_KEYS}, "amounts": "numbers", "quotes": "phrases", "patterns": "phrases"}
