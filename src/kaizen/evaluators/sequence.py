"""Which listed steps happened, and what else did: the evaluator `sequence`.

Listed and recorded steps are paired one to one, as many as possible. What `mode` asks:

    any_order    the same steps, nothing extra, in any order
    exact        the same steps in the same order, nothing extra
    in_order     all listed in order; others may stand between
    contiguous   all listed in order, without gaps; others may stand before and after
    superset     all listed; others may come as well
    subset       nothing but listed ones; some may lack

What `score` gives: bool 1 or 0; f1 the share of paired steps, 2 x pairs / (listed + recorded), where a
side that the mode lets go beyond the pairs is left out; lcs the same with pairs in order, whatever
the mode. The pairs of an ordered mode are always in order, so a score is 1 exactly when nothing is wrong.
An empty list means that none of these happened, in every mode.
"""

from typing import NamedTuple

from kaizen.evaluators.matcher import STEP_KINDS, Matcher, compile_matcher, compile_matchers
from kaizen.evaluators.outcomes import PASS, ConfigurationError, EmptyFromCase, NotMeasurable, Outcome, decided
from kaizen.evaluators.pairing import PairingTable, PairList, best_block, largest_pairing, longest_in_order
from kaizen.evaluators.predicates import holds_predicate
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.evaluators.trail import Trail, call_text, step_evidence, step_text, view_trail
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed


class SequenceMode(NamedTuple):
    """Whether the order counts, whether recorded steps may be left over, whether listed ones may lack."""

    is_ordered: bool
    lets_extra: bool
    lets_lack: bool


SEQUENCE_MODES = {
    "any_order": SequenceMode(False, False, False),
    "exact": SequenceMode(True, False, False),
    "in_order": SequenceMode(True, True, False),
    "contiguous": SequenceMode(True, True, False),
    "subset": SequenceMode(False, False, True),
    "superset": SequenceMode(False, True, False),
}

SEQUENCE_PARAMETERS = [
    Parameter(
        "steps",
        "list",
        REQUIRED,
        'Matchers, of which an expected call {"name", "args"} is one. An empty list out of a case: none of these happened.',
        may_be_empty=True,
    ),
    Parameter("mode", "choice", "any_order", "What may differ from the list.", tuple(SEQUENCE_MODES)),
    Parameter(
        "within",
        "matcher",
        None,
        "Looks only at these steps, recorded and listed alike. Without it: at recorded steps that a listed one means, or of a kind that is "
        "listed (tool where a listed step names none).",
    ),
    Parameter("attempts", "choice", "ok", "ok: leaves out what ended in error, denial or time-out; all: counts it.", ("ok", "all")),
    Parameter("score", "choice", "bool", "How a partial agreement is scored.", ("bool", "f1", "lcs")),
]
SEQUENCE_EXAMPLE = {
    "entry": {"id": "calls", "type": "sequence", "steps": {"$case": "/expected/calls"}, "within": {"kind": "tool", "name": "issue_*"}},
    "observation": {
        "steps": [
            {"kind": "tool", "name": "get_order", "args": {"order": "A-7"}, "status": "ok"},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7", "amount": 12.5}, "status": "ok"},
        ]
    },
    "case": {"id": "refund", "input": "Refund A-7.", "expected": {"calls": [{"name": "issue_refund", "args": {"order": "A-7"}}]}},
    "outcome": PASS,
}


class ListedSteps(NamedTuple):
    """The listed steps that count: as written, and compiled."""

    documents: list[JsonObject]
    matchers: list[Matcher]


@evaluator("sequence", 1, "The listed steps happened, and nothing that may not.", SEQUENCE_PARAMETERS, SEQUENCE_EXAMPLE, selects=False)
def evaluate_sequence(settings: JsonObject) -> Check:
    """Pairs the listed with the recorded steps, one to one, as many as possible."""
    documents = settings["steps"]
    if not documents and not isinstance(documents, EmptyFromCase):
        raise ConfigurationError("/steps", "is an empty list", 'to forbid steps: {"type": "steps", "match": {…}, "max": 0}')
    matchers = compile_matchers(documents, "/steps") if documents else []
    within = None if settings["within"] is None else compile_matcher(settings["within"], "/within")
    kept = [index for index, document in enumerate(documents) if within is None or may_lie_within(document, within)]
    expected = ListedSteps([documents[index] for index in kept], [matchers[index] for index in kept])
    kinds = None if within is not None else listed_kinds(documents)
    mode, score = settings["mode"], settings["score"]
    keeps_failed = settings["attempts"] == "all"

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        rows = [matcher.decisions(trail) for matcher in expected.matchers]
        places = [index for index in recorded_places(trail, within, kinds, rows) if keeps_failed or not trail.has_failed(index)]
        outcomes = []
        for unknown in (False, True):
            table = [[row[place] is True or (unknown and row[place] is None) for place in places] for row in rows]
            outcomes.append(sequence_outcome(trail, expected, places, table, mode, score))
            if not any(None in row for row in rows):
                break
        if outcomes[0].score != outcomes[-1].score:
            line, place = next((line, row.index(None)) for line, row in enumerate(rows) if None in row)
            raise NotMeasurable(expected.matchers[line].unknown(trail, place))
        return outcomes[0]

    return check


def listed_kinds(documents: list[JsonObject]) -> set[str]:
    """The kinds of the listed steps; tool for one that names none, and for an empty list."""
    kinds: set[str] = set()
    for document in documents or [{}]:
        kind = document.get("kind", "tool")
        kinds.update(kind if isinstance(kind, list) else [kind])
    return kinds


def may_lie_within(document: JsonObject, within: Matcher) -> bool:
    """Whether the listed step could be one of the steps *within* means: what it leaves open does not rule it out."""
    names, kinds = document.get("name"), document.get("kind", list(STEP_KINDS))
    known = {key: document[key] for key in ("role", "status", "agent", "turn") if isinstance(document.get(key), (str, int))}
    args = document.get("args")
    if isinstance(args, dict):
        known["args"] = {name: value for name, value in args.items() if not name.startswith("/") and not holds_predicate(value)}
    steps = [
        {**known, "kind": kind, "name": name}
        for kind in (kinds if isinstance(kinds, list) else [kinds])
        for name in (names if isinstance(names, list) else [names])
    ]
    trail = Trail(steps, is_partial=True)
    return any(answer is not False for answer in within.decisions(trail))


def recorded_places(trail: Trail, within: Matcher | None, kinds: set[str] | None, rows: list[list[bool | None]]) -> list[int]:
    """The places of the recorded steps that count. Raises NotMeasurable when it is not known of one."""
    if within is not None:
        decisions = within.decisions(trail)
        if None in decisions:
            raise NotMeasurable(within.unknown(trail, decisions.index(None)))
        return [index for index, answer in enumerate(decisions) if answer]
    meant = {index for row in rows for index, answer in enumerate(row) if answer is not False}
    return [index for index, step in enumerate(trail.steps) if index in meant or step.get("kind") in (kinds or ())]


class Agreement(NamedTuple):
    """How far listed and recorded steps agree: the pairs, and what is left over although it may not be."""

    pairs: PairList
    missing: list[int]
    extra: list[int]
    misplaced: PairList


def sequence_outcome(trail: Trail, expected: ListedSteps, places: list[int], table: PairingTable, mode: str, score: str) -> Outcome:
    """The outcome for the recorded steps at *places*; table[i][j] says whether listed step i means the j-th of them."""
    found = agreement(table, len(places), mode, score == "lcs")
    value = {"listed": len(table), "recorded": len(places), "paired": len(found.pairs)}
    if not (found.missing or found.extra or found.misplaced):
        rest = "" if SEQUENCE_MODES[mode].lets_extra else ", and nothing else"
        reason = f"{counted(len(found.pairs), 'step')} of {len(table)} listed happened{rest}"
        return decided(True, reason, value, step_evidence(places[j] for _, j in found.pairs))
    culprits = [places[j] for j in [*found.extra, *(j for _, j in found.misplaced)]]
    outcome = decided(False, agreement_reason(trail, expected, places, found), value, step_evidence(culprits))
    if score == "bool":
        return outcome
    return outcome._replace(score=agreement_share(len(found.pairs), len(table), len(places), SEQUENCE_MODES[mode]))


def agreement(table: PairingTable, width: int, mode: str, in_order: bool) -> Agreement:
    """The pairs that *mode* lets be made, and what it does not let be left over; *width* is the number of recorded steps."""
    if not table:
        return Agreement([], [], list(range(width)), [])
    is_ordered = SEQUENCE_MODES[mode].is_ordered or in_order
    pairs = best_block(table) if mode == "contiguous" else longest_in_order(table) if is_ordered else largest_pairing(table)
    paired, taken = {i for i, _ in pairs}, {j for _, j in pairs}
    lacking = [i for i in range(len(table)) if i not in paired]
    spare = [j for j in range(width) if j not in taken]
    misplaced: PairList = []
    if is_ordered and lacking and spare:
        elsewhere = largest_pairing([[table[i][j] for j in spare] for i in lacking])
        misplaced = [(lacking[i], spare[j]) for i, j in elsewhere]
        moved, moved_to = {i for i, _ in misplaced}, {j for _, j in misplaced}
        lacking, spare = [i for i in lacking if i not in moved], [j for j in spare if j not in moved_to]
    return Agreement(pairs, [] if SEQUENCE_MODES[mode].lets_lack else lacking, [] if SEQUENCE_MODES[mode].lets_extra else spare, misplaced)


def agreement_share(pairs: int, listed_number: int, recorded: int, mode: SequenceMode) -> float:
    """The share of paired steps in [0, 1]; the side that *mode* lets go beyond the pairs does not count."""
    if mode.lets_extra or not recorded:
        return pairs / listed_number if listed_number else 0.0
    return pairs / recorded if mode.lets_lack else 2 * pairs / (listed_number + recorded)


def agreement_reason(trail: Trail, expected: ListedSteps, places: list[int], found: Agreement) -> str:
    """What is missing, extra and out of order, in one sentence."""
    missing = [call_text(expected.documents[i]) for i in found.missing]
    extra = [step_text(trail, places[j]) for j in found.extra]
    misplaced = [step_text(trail, places[j]) for _, j in found.misplaced]
    told = (("missing", missing), ("extra", extra), ("out of order", misplaced))
    return "; ".join(f"{what}: {listed(names, 5)}" for what, names in told if names)
