"""Whether the agent asked before it acted: the evaluator `confirmation`.

Consent stands in the user's latest message before the action, after a message of the agent; an older
yes does not count, because something was said since. One yes covers every matching action until the
user speaks again. But after a try that did not end ok, the same tool with other arguments for the same
entity (`same`; without it all calls of a tool are about one) needs a new yes. With `confirm` another step
consents, such as an approval: it stands after the user's latest message and before the action.
"""

from typing import Any, NamedTuple

from kaizen.evaluators.arguments import Tokens, field_tokens, found_at
from kaizen.evaluators.consent import consent_phrases, says_yes
from kaizen.evaluators.matcher import Matcher, compile_matcher
from kaizen.evaluators.outcomes import PASS, ConfigurationError, NotMeasurable, Outcome, decided, not_applicable
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.evaluators.spoken import Spoken
from kaizen.evaluators.trail import EarlierSteps, Trail, call_text, is_cut, step_evidence, step_text, view_trail
from kaizen.foundation.jsonio import JsonObject, canonical_json, encode_compact
from kaizen.foundation.text import counted, visible

CONFIRMATION_PARAMETERS = [
    Parameter("action", "matcher", REQUIRED, "The steps that need consent; attempts count, whatever came of them."),
    Parameter("confirm", "matcher", None, "The step that consents. Without it: the user's latest message says yes."),
    Parameter("yes", "texts", None, "Further phrases that consent, in any sentence that is not a question."),
    Parameter("same", "texts", None, "Names or pointers of the arguments that say which entity a call is about."),
    Parameter("must_echo", "texts", None, "Names or pointers of arguments whose values the agent, or the yes, must have said."),
    Parameter(
        "invalidate_on_change",
        "boolean",
        True,
        "After a try that did not end ok, other arguments for the same entity need a new yes.",
    ),
]
CONFIRMATION_EXAMPLE = {
    "entry": {
        "id": "asked_first",
        "type": "confirmation",
        "action": {"name": "issue_refund"},
        "same": ["/order"],
        "must_echo": ["/amount"],
    },
    "observation": {
        "steps": [
            {"kind": "message", "role": "user", "text": "Please refund my lamp, order A-7."},
            {"kind": "message", "role": "assistant", "text": "I can refund $12.50 for it. Shall I go ahead?"},
            {"kind": "message", "role": "user", "text": "Yes, please."},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7", "amount": 12.5}, "status": "ok"},
        ]
    },
    "case": {"id": "refund", "input": "Refund my lamp."},
    "outcome": PASS,
}


class ConsentRule(NamedTuple):
    """The settings of a `confirmation`, compiled."""

    action: Matcher
    confirm: Matcher | None
    phrases: Any
    same: list[Tokens]
    echo: list[tuple[Tokens, str]]
    is_strict: bool


class ConsentFinding(NamedTuple):
    """Whether an action had consent (None: the recording does not say), why not, and the step that consents."""

    is_met: bool | None
    reason: str = ""
    consent: int | None = None


@evaluator("confirmation", 1, "The user agreed before the agent acted.", CONFIRMATION_PARAMETERS, CONFIRMATION_EXAMPLE, selects=False)
def evaluate_confirmation(settings: JsonObject) -> Check:
    """Every action that matches had consent."""
    rule = compile_consent(settings)

    def check(view: View) -> Outcome:
        dialogue = Dialogue(view_trail(view), rule)
        if not dialogue.actions:
            return not_applicable(f"no step matches {call_text(settings['action'])}, so nothing needed consent")
        findings = {index: dialogue.finding(index) for index in dialogue.actions}
        sure = [index for index in dialogue.actions if dialogue.meant[index]]
        broken = [index for index in sure if findings[index].is_met is False]
        if broken:
            told = [f"{step_text(dialogue.trail, index)}: {findings[index].reason}" for index in broken[:3]]
            more = [f"and {len(broken) - 3} more"] if len(broken) > 3 else []
            return decided(False, "; ".join(told + more), len(broken), step_evidence(broken))
        unclear = next((index for index in dialogue.actions if not findings[index].is_met), None if sure else dialogue.actions[0])
        if unclear is not None:
            is_open = findings[unclear].is_met is None
            raise NotMeasurable(findings[unclear].reason if is_open else rule.action.unknown(dialogue.trail, unclear))
        consents = {finding.consent for finding in findings.values() if finding.consent is not None}
        return decided(True, f"{counted(len(sure), 'action')} with consent", 0, step_evidence({*sure, *consents}))

    return check


def compile_consent(settings: JsonObject) -> ConsentRule:
    """The rule that *settings* write. Raises ConfigurationError."""
    if settings["confirm"] is not None and settings["yes"] is not None:
        raise ConfigurationError("/yes", "yes adds to what the user says, which confirm replaces", "leave one of them out")
    confirm = None if settings["confirm"] is None else compile_matcher(settings["confirm"], "/confirm")
    phrases = argument_names(settings, "yes")
    if any(not phrase.strip() for phrase in phrases):
        raise ConfigurationError("/yes", "holds an empty phrase, which every sentence has")
    same = [field_tokens(name, "/same") for name in argument_names(settings, "same")]
    echo = [(field_tokens(name, "/must_echo"), name) for name in argument_names(settings, "must_echo")]
    action = compile_matcher(settings["action"], "/action")
    return ConsentRule(action, confirm, consent_phrases(phrases), same, echo, settings["invalidate_on_change"])


def argument_names(settings: JsonObject, key: str) -> list[str]:
    """The texts at *key* of *settings*, one or a list; [] for none."""
    value = settings[key]
    return [] if value is None else value if isinstance(value, list) else [value]


class Dialogue:
    """One recorded dialogue under one rule: who spoke when, which steps need consent, which of them changed their mind."""

    def __init__(self, trail: Trail, rule: ConsentRule) -> None:
        self.trail = trail
        self.rule = rule
        self.meant = rule.action.decisions(trail)
        self.actions = [index for index, answer in enumerate(self.meant) if answer is not False]
        self.confirmed = [] if rule.confirm is None else rule.confirm.decisions(trail)
        self.latest: list[int | None] = []  # for each step the user's latest message before it
        self.done: list[tuple[int, int]] = []  # and the latest action before it that did not fail: one that may be meant, one that is
        latest, done = None, (-1, -1)
        for index, step in enumerate(trail.steps):
            self.latest.append(latest)
            self.done.append(done)
            latest = index if is_message(step, "user") else latest
            if self.meant[index] is not False and not trail.has_failed(index):
                done = (index, index if self.meant[index] else done[1])
        self.has_messages = any(step.get("kind") == "message" for step in trail.steps)
        self.agent = [index for index, step in enumerate(trail.steps) if is_message(step, "assistant")]
        self.confirming = EarlierSteps(trail, self.grounds(True))
        self.unclear = EarlierSteps(trail, self.grounds(None))
        self.changed: dict[int, int | None] = self.changed_tries() if rule.is_strict else {}
        self.consents: dict[int, bool] = {}  # whether the user's message there says yes
        self.words: dict[tuple[int, int, int | None], tuple[Spoken, bool]] = {}

    def finding(self, index: int) -> ConsentFinding:
        """Whether the action at *index* had consent, for what it did."""
        found = self.confirm_finding(index) if self.rule.confirm else self.yes_finding(index)
        if not found.is_met or found.consent is None:
            return found
        if index in self.changed:
            tried = self.changed[index]
            if tried is None:
                return ConsentFinding(
                    None, f"{step_text(self.trail, index)}: whether it repeats a failed try is not known, arguments were cut short"
                )
            reason = f"needed a new yes: step {tried} ended in {self.trail.steps[tried]['status']}, with other arguments"
            return ConsentFinding(False, reason)
        return self.echo_finding(index, found.consent)

    def yes_finding(self, index: int) -> ConsentFinding:
        """Whether the user's latest message before the action says yes."""
        latest = self.latest[index]
        if latest is None:
            if not self.has_messages:
                return ConsentFinding(None, "no messages were recorded, so whether the user agreed is not known")
            return ConsentFinding(False, "the user had said nothing before")
        if not self.agent or self.agent[0] > latest:
            return ConsentFinding(False, f"the agent had said nothing before the user's latest message (step {latest})")
        if self.says_yes(latest):
            return ConsentFinding(True, "", latest)
        if is_cut(self.trail.steps[latest], "text"):
            return ConsentFinding(None, f"the user's latest message (step {latest}) was cut short, so whether it says yes is not known")
        older = self.latest[latest]
        is_stale = older is not None and self.says_yes(older)
        stale = f"; the yes of step {older} does not count, something was said since" if is_stale else ""
        return ConsentFinding(False, f"the user's latest message (step {latest}) does not say yes{stale}")

    def says_yes(self, place: int) -> bool:
        """Whether the user's message at *place* says yes."""
        if place not in self.consents:
            text = self.trail.steps[place].get("text")
            self.consents[place] = isinstance(text, str) and says_yes(text, self.rule.phrases)
        return self.consents[place]

    def confirm_finding(self, index: int) -> ConsentFinding:
        """Whether a step that `confirm` means stands before the action and not before the user's latest message."""
        latest = self.latest[index]
        place, unclear = self.confirming.latest_before(index), self.unclear.latest_before(index)
        if place >= (latest or 0):
            return ConsentFinding(True, "", place)
        if unclear >= (latest or 0) and self.rule.confirm is not None:
            return ConsentFinding(None, self.rule.confirm.unknown(self.trail, unclear))
        return ConsentFinding(False, f"nothing confirmed it{'' if latest is None else f' since the user last spoke (step {latest})'}")

    def grounds(self, answer: bool | None) -> list[int]:
        """The steps of which `confirm` says *answer*, without messages of the user that answer nothing the agent said."""
        first = self.agent[0] if self.agent else len(self.trail.steps)
        places = [place for place, found in enumerate(self.confirmed) if found is answer]
        return [place for place in places if place > first or not is_message(self.trail.steps[place], "user")]

    def changed_tries(self) -> dict[int, int | None]:
        """{action: the latest failed try} of each action whose arguments were not tried since the user last spoke, while others failed.

        None stands for a try of which arguments that were cut short do not say whether it is another one.
        """
        tried: dict[tuple[Any, ...], set[str]] = {}
        failed: dict[tuple[Any, ...], int] = {}
        blurred: set[tuple[Any, ...]] = set()
        found: dict[int, int | None] = {}
        for index in self.actions:
            args = self.trail.content(index, "args")
            entity = [found_at(args, tokens) for tokens in self.rule.same]
            key = (
                self.latest[index],
                str(self.trail.steps[index].get("name")),
                canonical_json([[v] if v is not MISSING else [] for v in entity]),
            )
            tries, arguments = tried.setdefault(key, set()), canonical_json(args)
            if is_cut(self.trail.steps[index], "args"):
                blurred.add(key)
            if key in failed and (key in blurred or arguments not in tries):
                found[index] = None if key in blurred else failed[key]
            tries.add(arguments)
            if self.trail.has_failed(index):
                failed[key] = index
        return found

    def echo_finding(self, index: int, consent: int) -> ConsentFinding:
        """Whether the agent said, since the last action that went well, or the yes says, the values that must be said."""
        args, is_args_cut = self.trail.content(index, "args"), is_cut(self.trail.steps[index], "args")
        asked = [(name, value) for tokens, name in self.rule.echo for value in [found_at(args, tokens)] if value is not MISSING]
        start, surely = self.done[consent]
        silent = [(name, value) for name, value in asked if not self.said(start, consent, index)[0].says(value)]
        if is_args_cut and (silent or len(asked) < len(self.rule.echo)):
            return ConsentFinding(
                None, f"{step_text(self.trail, index)}: its arguments were cut short, so whether they were said is not known"
            )
        if not silent:
            return ConsentFinding(True, "", consent)
        shown = ", ".join(f"{name} ({visible(value if isinstance(value, str) else encode_compact(value), 40)})" for name, value in silent)
        wider, _ = self.said(surely, consent, index)
        if self.said(start, consent, index)[1] or all(wider.says(value) for _, value in silent):
            return ConsentFinding(None, f"whether {shown} was said before the yes (step {consent}) is not known")
        return ConsentFinding(False, f"{shown} was not said before the yes (step {consent})", consent)

    def told_between(self, start: int, consent: int, index: int) -> list[int]:
        """The places of the agent's messages between *start* and *consent*, of *consent*, and of the user's latest message."""
        from bisect import bisect_left, bisect_right

        latest = self.latest[index]
        agent = self.agent[bisect_right(self.agent, start) : bisect_left(self.agent, consent)]
        return sorted({*agent, consent, *([latest] if latest is not None and latest > start else [])})

    def said(self, start: int, consent: int, index: int) -> tuple[Spoken, bool]:
        """The texts of `told_between` with the arguments of a step that consents without being a message; whether a text was cut short."""
        key = (start, consent, self.latest[index])
        if key not in self.words:
            steps = [self.trail.steps[place] for place in self.told_between(start, consent, index)]
            texts = [str(step["text"]) for step in steps if step.get("text") is not None]
            if self.trail.steps[consent].get("kind") != "message":
                texts.append(encode_compact(self.trail.content(consent, "args")))
            self.words[key] = (Spoken(texts), any(is_cut(step, "text") for step in steps))
        return self.words[key]


def is_message(step: JsonObject, role: str) -> bool:
    """Whether *step* is a message of *role*."""
    return step.get("kind") == "message" and step.get("role") == role
