"""What came before what: the evaluator `order`."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kaizen.evaluators.arguments import Tokens, field_tokens
from kaizen.evaluators.matcher import Matcher, compile_matchers
from kaizen.evaluators.outcomes import FAIL, NOT_APPLICABLE, PASS, ConfigurationError, NotMeasurable, Outcome, decided, refuse_empty
from kaizen.evaluators.paths import values_at
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.evaluators.trail import Trail, call_text, is_cut, settled, step_evidence, step_text, view_trail
from kaizen.foundation.jsonio import JsonObject, canonical_json
from kaizen.foundation.text import counted, listed, visible

ORDER_DIRECTIONS = ("required", "followed_by")

ORDER_PARAMETERS = [
    Parameter("before", "matchers", REQUIRED, "The earlier step: a matcher or a list, any of them."),
    Parameter("after", "matchers", REQUIRED, "The later step: a matcher or a list, any of them."),
    Parameter(
        "direction",
        "choice",
        "required",
        "required: every `after` has an earlier `before`; followed_by: every `before` has a later `after`.",
        ORDER_DIRECTIONS,
    ),
    Parameter(
        "same",
        "any",
        None,
        "Arguments whose values agree: a name or pointer or a list of them, looked up in the earlier step's result as well; "
        '{"before": "/result/id", "after": "/args/ticket"} where names differ.',
    ),
    Parameter(
        "require_success",
        "boolean",
        True,
        "The latest earlier call must have succeeded, its result returned; with followed_by, a call that failed is not asked about.",
    ),
    Parameter("if_absent", "choice", NOT_APPLICABLE, "The outcome when there is nothing to ask about.", (NOT_APPLICABLE, PASS, FAIL)),
]
ORDER_EXAMPLE = {
    "entry": {
        "id": "looked_first",
        "type": "order",
        "before": {"name": "get_order"},
        "after": {"name": "issue_refund"},
        "same": ["/order"],
    },
    "observation": {
        "steps": [
            {"kind": "tool", "name": "get_order", "args": {"order": "A-7"}, "status": "ok", "result": {"total": 12.5}},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7", "amount": 12.5}, "status": "ok"},
        ]
    },
    "case": {"id": "refund", "input": "Refund order A-7."},
    "outcome": PASS,
}


class SamePair(NamedTuple):
    """Where a value stands in the earlier and in the later step, from the step's top; `text` is how a reason calls it.

    With `in_result` the earlier step's result is looked into at the same place as its arguments.
    """

    before: Tokens
    after: Tokens
    in_result: bool
    text: str


class OrderRule(NamedTuple):
    """What `order` asks: of every `before` a later step or of every `after` an earlier one, about what, after a success or any try."""

    is_followed: bool
    same: list[SamePair]
    needs_success: bool


class OrderPartner(NamedTuple):
    """A step on the right side about the same thing: its place, whether it is meant, whether it will do."""

    place: int
    is_meant: bool | None
    will_do: bool


@evaluator("order", 1, "Some steps come before others, about the same thing.", ORDER_PARAMETERS, ORDER_EXAMPLE, selects=False)
def evaluate_order(settings: JsonObject) -> Check:
    """Every step asked about has its partner on the right side."""
    before, after = compile_matchers(settings["before"], "/before"), compile_matchers(settings["after"], "/after")
    rule = OrderRule(settings["direction"] == "followed_by", compile_same(settings["same"]), settings["require_success"])
    wanted = settings["after" if rule.is_followed else "before"]
    partner = listed([call_text(document) for document in (wanted if isinstance(wanted, list) else [wanted])], 5, "or")

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        earlier, later = any_decisions(before, trail), any_decisions(after, trail)
        meant, others = (earlier, later) if rule.is_followed else (later, earlier)
        asked = [index for index, answer in enumerate(meant) if answer is not False and is_asked(trail, rule, index)]
        if not asked:
            return absent_outcome(settings["if_absent"])
        search = PartnerSearch(trail, rule, others)
        answers = {index: settled(((one.is_meant, one.will_do) for one in search.partners(index)), False) for index in asked}
        broken = [index for index in asked if meant[index] and answers[index] is False]
        if broken:
            reasons = [search.reason(index, partner) for index in broken[:3]]
            more = f"; and {len(broken) - 3} more" if len(broken) > 3 else ""
            return decided(False, "; ".join(reasons) + more, len(broken), step_evidence(broken))
        unclear = [index for index in asked if answers[index] is None or not (meant[index] or answers[index])]
        if unclear or not any(meant[index] for index in asked):
            first = (unclear or asked)[0]
            raise NotMeasurable(
                f"whether {step_text(trail, first)} is in order is not known: what was recorded is cut short or lacks a status"
            )
        return decided(True, f"{counted(len(asked), 'step')} in order", 0, step_evidence(asked))

    return check


def compile_same(same: Any) -> list[SamePair]:
    """The pairs of `same`. Raises ConfigurationError."""
    if same is None:
        return []
    items = same if isinstance(same, list) else [same]
    refuse_empty(items, "/same")
    pairs = []
    for index, item in enumerate(items):
        pointer = f"/same/{index}" if isinstance(same, list) else "/same"
        if isinstance(item, dict):
            if item.keys() != {"before", "after"} or not all(isinstance(side, str) and side.startswith("/") for side in item.values()):
                raise ConfigurationError(
                    pointer, 'give both sides as pointers into the step, {"before": "/result/id", "after": "/args/ticket"}'
                )
            pairs.append(SamePair(field_tokens(item["before"]), field_tokens(item["after"]), False, item["after"]))
        else:
            tokens = ("args", *field_tokens(item, pointer))
            pairs.append(SamePair(tokens, tokens, True, item))
    return pairs


def any_decisions(matchers: list[Matcher], trail: Trail) -> list[bool | None]:
    """For each step whether one of *matchers* means it."""
    columns = [matcher.decisions(trail) for matcher in matchers]
    return [True if True in answers else None if None in answers else False for answers in zip(*columns, strict=True)]


def is_asked(trail: Trail, rule: OrderRule, index: int) -> bool:
    """Whether a step that is meant needs a partner: one that failed changed nothing that has to be followed."""
    return not (rule.is_followed and rule.needs_success and trail.has_failed(index))


def absent_outcome(if_absent: str) -> Outcome:
    """The outcome when no step was recorded that is asked about."""
    score = {PASS: 1.0, FAIL: 0.0}.get(if_absent)
    return Outcome(if_absent, score, "no step was recorded that this asks about")


class PartnerSearch:
    """Looks among *others*, what is known of each step, for steps on the right side about the same thing."""

    def __init__(self, trail: Trail, rule: OrderRule, others: list[bool | None]) -> None:
        self.trail = trail
        self.rule = rule
        self.others = others
        self.places = [place for place, answer in enumerate(others) if answer is not False]
        self.values: dict[tuple[int, Tokens], frozenset[str]] = {}
        self.agreeing = [self.sorted_places(pair) for pair in rule.same]

    def sorted_places(self, pair: SamePair) -> tuple[dict[str, list[int]], list[int]]:
        """({value: the places of others that may agree on it}, those that were cut short and may agree on any) for one pair."""
        by_value: dict[str, list[int]] = {}
        cut = []
        for place in self.places:
            if self.is_pair_cut(place, pair, self.rule.is_followed):
                cut.append(place)
            values = self.pair_values(place, pair, self.rule.is_followed)
            # All values of the later step have to be in the earlier one, so one of them will do to look it up.
            for value in sorted(values)[:1] if self.rule.is_followed else values:
                by_value.setdefault(value, []).append(place)
        return by_value, cut

    def candidates(self, index: int) -> list[int]:
        """The places of others, in order, without those that surely differ from the step at *index* in one of the pairs."""
        best = self.places
        for pair, (by_value, cut) in zip(self.rule.same, self.agreeing, strict=True):
            if self.is_pair_cut(index, pair, not self.rule.is_followed):
                continue
            lists = [by_value[value] for value in self.pair_values(index, pair, not self.rule.is_followed) if value in by_value]
            if not self.rule.is_followed:
                wanted = self.pair_values(index, pair, True)
                lists = [min(lists, key=len)] if lists and len(lists) == len(wanted) else []
            lists += [cut] if cut else []
            if sum(map(len, lists)) < len(best):
                best = lists[0] if len(lists) == 1 else sorted({place for places in lists for place in places})
        return best

    def pair_tokens(self, pair: SamePair, is_later: bool) -> list[Tokens]:
        """Where the values of *pair* stand in a step on this side."""
        return [pair.after] if is_later else [pair.before, ("result", *pair.before[1:])] if pair.in_result else [pair.before]

    def pair_values(self, place: int, pair: SamePair, is_later: bool) -> frozenset[str]:
        """The values of *pair* in the step at *place*, which is the later one or the earlier one."""
        return frozenset().union(*(self.values_at(place, tokens) for tokens in self.pair_tokens(pair, is_later)))

    def is_pair_cut(self, place: int, pair: SamePair, is_later: bool) -> bool:
        """Whether values of *pair* may have been cut off the step at *place*."""
        return any(is_cut(self.trail.steps[place], tokens[0]) for tokens in self.pair_tokens(pair, is_later))

    def partners(self, index: int) -> Iterator[OrderPartner]:
        """The steps on the right side of the one at *index* that are or may be about the same thing, the nearest first."""
        from bisect import bisect_left

        is_followed = self.rule.is_followed
        known = self.candidates(index)
        edge = bisect_left(known, index)  # a step is no partner of itself: neither earlier nor later
        for position in range(edge, len(known)) if is_followed else range(edge - 1, -1, -1):
            place = known[position]
            first, second = (index, place) if is_followed else (place, index)
            agrees = first < second and self.is_same(first, second)
            if agrees is False or not self.trail.comes_before(first, second):
                continue
            is_meant = None if agrees is None else self.others[place]
            yield OrderPartner(place, is_meant, is_followed or not self.rule.needs_success or self.trail.has_returned(place))

    def is_same(self, earlier: int, later: int) -> bool | None:
        """Whether every value of the later step stands in the earlier one as well; None when that may have been cut off."""
        answer: bool | None = True
        for pair in self.rule.same:
            wanted = self.pair_values(later, pair, True)
            if not wanted or not wanted <= self.pair_values(earlier, pair, False):
                if not self.is_pair_cut(later, pair, True) and not self.is_pair_cut(earlier, pair, False):
                    return False
                answer = None
        return answer

    def values_at(self, index: int, tokens: Tokens) -> frozenset[str]:
        """The values at *tokens* in a step as canonical JSON, several for a wildcard."""
        key = (index, tokens)
        if key not in self.values:
            field = tokens[0]
            value = self.trail.content(index, field) if field in ("args", "result") else self.trail.steps[index].get(field, MISSING)
            found = [] if value is MISSING else values_at(value, tokens[1:]) or []
            self.values[key] = frozenset(canonical_json(item) for _, item in found)
        return self.values[key]

    def reason(self, index: int, partner: str) -> str:
        """Why the step at *index* is out of order; *partner* is what should stand on the other side."""
        name = step_text(self.trail, index)
        nearest = next((one for one in self.partners(index) if one.is_meant), None)
        if nearest is not None:
            status = self.trail.steps[nearest.place].get("status")
            ended = f"ended in {visible(str(status), 40)}" if status else "had not returned"
            return f"before {name}, the latest {step_text(self.trail, nearest.place)} {ended}"
        about = f" with the same {listed([pair.text for pair in self.rule.same])}" if self.rule.same else ""
        together = [place for place in self.places if place != index and self.others[place] and self.trail.are_together(place, index)]
        issued = f" ({step_text(self.trail, together[0])} was issued together with it)" if together else ""
        return f"{name} has no {'later' if self.rule.is_followed else 'earlier'} {partner}{about}{issued}"
