"""The suite: all evaluators of an improvement, ready to look at its observations.

`build_suite` checks and compiles every entry, also against every case that brings values or
entries of its own; `Suite.evaluate` gives the result line of one observation:

    {"case_id", "trial", "status", "outcome", "score", "coverage", "evaluations": [{"id", "type", "severity",
     "status", "score", "value", "reason", "evidence"}], "duration_ms", "cost_usd", "usage"}

The outcome is the three-valued AND of hard and gate entries: a fail, else an error, else a pass.
If none of them passed or failed it is an error, and "reason": "nothing_checked" stands behind it.
"""

from typing import Any

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.cases.evaluation_file import Evaluation, case_entries, metrics_of_entries
from kaizen.cases.expressions import ExpressionError, check_metric_names
from kaizen.cases.judge_block import check_judge_names
from kaizen.evaluators.decimals import exact_mean
from kaizen.evaluators.envelope import PreparedEntry, prepare_entry
from kaizen.evaluators.limits import trial_cost_usd, trial_duration_ms
from kaizen.evaluators.outcomes import ERROR, FAIL, NOT_APPLICABLE, PASS, ConfigurationError, Outcome, errored
from kaizen.evaluators.regex_timer import PatternTimeout
from kaizen.evaluators.standing import AT_HUMAN_LEVEL, CASE_BROUGHT, holds_judge, standings
from kaizen.foundation.errors import Breaches
from kaizen.foundation.jsonio import JsonObject, fingerprint, pointer_token
from kaizen.foundation.text import counted, quoted, visible

DECIDING = ("hard", "gate")
PROGRAM_TYPES = ("command", "program")  # formats.md 1.3: never from a case's own evaluators
NOTHING_CHECKED = "nothing_checked"
CASES_KEPT = 1000  # whose own evaluators stay prepared; beyond, memory would grow with the number of cases


class Suite:
    """The prepared evaluators. `entry_fingerprints`: id to fingerprint of those in evaluation.json; `fingerprint` covers all of
    them, in any order, the semantics version of every type that they or the cases' own evaluators use, and what the references
    in these lead to (`referring`; what they say themselves is in the dataset fingerprint). `not_gating`: id to standing of judges
    that inform and do not gate; `hides_judges` when a holdout case brings one more."""

    def __init__(self, entries: list[PreparedEntry], evaluation: Evaluation) -> None:
        self.entries = entries
        self.evaluation = evaluation
        self.versions: dict[str, int] = {}
        self.referring: dict[str, list[JsonObject]] = {}
        self.of_cases: dict[str, list[PreparedEntry]] = {}
        for entry in entries:
            self.versions.update(entry.versions)
        self.entry_fingerprints = {entry.id: fingerprint({"entry": entry.document, "versions": entry.versions}) for entry in entries}
        self.not_gating: dict[str, str] = {}
        self.hides_judges = False

    def silence_judges(self) -> None:
        """From now on judges that are not at human level inform only, where evaluation.json requires agreement."""
        if self.evaluation.agreement["required"]:
            known = standings(self.evaluation, self.entries, self.entry_fingerprints)
            for entry in self.entries:
                if known.get(entry.id, AT_HUMAN_LEVEL) != AT_HUMAN_LEVEL and silenced(entry):
                    self.not_gating[entry.id] = known[entry.id]

    @property
    def fingerprint(self) -> str:
        """'sha256:…' of the entries, the versions of their types, and the cases' entries that take something from elsewhere."""
        referring = {"cases": self.referring} if self.referring else {}
        informing = {"not_gating": [sorted(self.not_gating), self.hides_judges]} if self.not_gating or self.hides_judges else {}
        return fingerprint({"entries": self.entry_fingerprints, "versions": self.versions, **referring, **informing})

    @property
    def types_used(self) -> set[str]:
        """Names of the types of all entries, also inside combinators and in the cases' own evaluators."""
        return set(self.versions)

    def names_outside(self, dataset: Dataset) -> set[str]:
        """Ids of the entries that are not only in holdout cases."""
        names = {entry.id for entry in self.entries}
        for case in dataset.cases.values():
            if case.id not in dataset.holdout and case.document.get("evaluators"):
                names.update(entry.id for entry in self.entries_for(case))
        return names

    def entries_for(self, case: Case) -> list[PreparedEntry]:
        """The entries with those that *case* brings itself, which replace the ones of the same id."""
        if not case.document.get("evaluators"):
            return self.entries
        known = self.of_cases.get(case.id)
        if known is None:
            own = [prepare_entry(entry) for entry in case_entries(case, self.evaluation, Breaches())]
            if self.evaluation.agreement["required"]:
                for entry in filter(holds_judge, own):
                    silenced(entry)
            known = merged_entries(self.entries, own)
            if len(self.of_cases) < CASES_KEPT:
                self.of_cases[case.id] = known
        return known

    def evaluate(self, observation: JsonObject, case: Case, memo: JsonObject | None = None) -> JsonObject:
        """The result line of *observation*, which is one of *case*; *memo* holds what its evaluators need from outside."""
        entries = self.entries_for(case)
        if observation["status"] == "completed":
            shared = {} if memo is None else memo
            outcomes = [entry.evaluate(observation, case.document, shared) for entry in entries]
        else:
            outcomes = [errored(runner_failure(observation))] * len(entries)
        outcome, reason = trial_outcome(entries, outcomes)
        score, coverage = trial_score(entries, outcomes)
        return {
            "case_id": observation["case_id"],
            "trial": observation["trial"],
            "status": observation["status"],
            "outcome": outcome,
            **({"reason": reason} if reason else {}),
            "score": score,
            "coverage": coverage,
            "evaluations": [evaluation_record(entry, found) for entry, found in zip(entries, outcomes, strict=True)],
            "duration_ms": trial_duration_ms(observation),
            "cost_usd": trial_cost_usd(observation),
            "usage": observation.get("usage"),
        }


def silenced(entry: PreparedEntry) -> bool:
    """True when *entry* decided; from now on it informs only."""
    decided = entry.severity in DECIDING
    entry.severity = "info" if decided else entry.severity
    return decided


def evaluation_record(entry: PreparedEntry, outcome: Outcome) -> JsonObject:
    """What a result line says of one entry."""
    return {
        "id": entry.id,
        "type": entry.type.name,
        "severity": entry.severity,
        "status": outcome.status,
        "score": outcome.score,
        "value": outcome.value,
        "reason": outcome.reason,
        "evidence": list(outcome.evidence),
    }


def runner_failure(observation: JsonObject) -> str:
    """One sentence on why a trial has no usable evidence."""
    error = observation.get("error")
    error = error if isinstance(error, dict) else {}
    message = visible(str(error.get("message") or ""))
    return f"the trial ended with status {observation['status']}{f': {message}' if message else ''}"


def trial_outcome(entries: list[PreparedEntry], outcomes: list[Outcome]) -> tuple[str, str]:
    """(pass, fail or error, reason code or '') of a trial: the three-valued AND over hard and gate entries."""
    statuses = {outcome.status for entry, outcome in zip(entries, outcomes, strict=True) if entry.severity in DECIDING}
    if FAIL in statuses:
        return FAIL, ""
    if ERROR in statuses:
        return ERROR, ""
    return (PASS, "") if PASS in statuses else (ERROR, NOTHING_CHECKED)


def trial_score(entries: list[PreparedEntry], outcomes: list[Outcome]) -> tuple[float | None, float | None]:
    """(weighted mean of the scores, measured share of the weight); None when there is no score, no weight.

    Entries of severity info and those that do not apply count in neither.
    """
    measured, weights = [], []
    for entry, outcome in zip(entries, outcomes, strict=True):
        if entry.severity != "info" and outcome.status != NOT_APPLICABLE:
            weights.append((0 if outcome.score is None else 1, entry.weight))
            if outcome.score is not None:
                measured.append((outcome.score, entry.weight))
    return exact_mean(measured), exact_mean(weights)


# --- Building ----------------------------------------------------------------------------


def build_suite(evaluation: Evaluation, dataset: Dataset, breaches: Breaches) -> Suite:
    """The suite of *evaluation* for *dataset*. What is wrong goes to *breaches*, and the caller raises."""
    entries: list[PreparedEntry] = []
    first_place: dict[str, int] = {}
    for index, document in enumerate(evaluation.evaluators):
        pointer = f"/evaluators/{index}"
        entry = note_configuration(document, breaches, evaluation.path, evaluation.line, pointer)
        if entry is None:
            continue
        if entry.id in first_place:
            message = f"duplicate id {quoted(entry.id)} (first at /evaluators/{first_place[entry.id]})"
            breaches.add(evaluation.path, evaluation.line(pointer + "/id"), pointer + "/id", message)
            continue
        first_place[entry.id] = index
        entries.append(entry)
    suite = Suite(entries, evaluation)
    decides = any(entry.severity in DECIDING for entry in entries)  # even if a judge among them informs only, for now
    suite.silence_judges()
    check_cases(suite, dataset, breaches)
    check_metrics(evaluation, dataset, breaches)
    if evaluation.judge is not None and not breaches.errors:
        owned = [str(own["id"]) for case in dataset.cases.values() for own in case.document.get("evaluators") or ()]

        def report(pointer: str, message: str, hint: str) -> None:
            breaches.add(evaluation.path, evaluation.line(pointer), pointer, message, hint)

        check_judge_names(evaluation.judge, [*suite.entry_fingerprints, *owned], report)
    brought = any(case.document.get("evaluators") for case in dataset.cases.values())
    if entries and not brought and not breaches.errors and not decides:
        message = "no evaluator decides (severity hard or gate), so no trial can pass"
        breaches.warn(evaluation.path, evaluation.line("/evaluators"), "/evaluators", message, "leave out severity where a failure matters")
    return suite


def note_configuration(document: Any, breaches: Breaches, path: str, line: Any, pointer: str) -> PreparedEntry | None:
    """The prepared entry, or None and a breach at the line that *line* (a number, or a function of the pointer) gives."""
    try:
        return prepare_entry(document)
    except ConfigurationError as error:
        place = pointer + error.pointer
        identity = document.get("id") if isinstance(document, dict) else None
        who = f"evaluator {quoted(identity)}: " if isinstance(identity, str) and identity else ""
        breaches.add(path, line(place) if callable(line) else line, place, who + error.message, error.hint)
        return None


def check_cases(suite: Suite, dataset: Dataset, breaches: Breaches) -> None:
    """Prepares for every case what depends on it, so that no run meets a case whose values or entries cannot be used."""
    varying = [entry for entry in suite.entries if entry.takes_from_case]
    missing: dict[str, list[Case]] = {}
    reasons: dict[str, str] = {}
    for case in dataset.cases.values():
        for entry in varying:
            reason = note_case_value(entry, case, breaches)
            if reason and entry.on_missing is None:
                missing.setdefault(entry.id, []).append(case)
                reasons.setdefault(entry.id, reason)
        if case.document.get("evaluators"):
            check_own_entries(suite, case, dataset, breaches)
    for identity, cases in missing.items():
        message = f"evaluator {quoted(identity)}: {reasons[identity]} in {counted(len(cases), 'case')}, which is an error there"
        breaches.warn(cases[0].path, cases[0].line, "", message, "say with on_missing what follows, or with when which cases are meant")


def note_case_value(entry: PreparedEntry, case: Case, breaches: Breaches) -> str:
    """What *entry* asks of *case* and does not find; '' when nothing. A value that cannot be used is a breach of the case."""
    try:
        return entry.missing_in(case.document)
    except ConfigurationError as error:
        place = entry.place_in_case(error.pointer)
        breaches.add(case.path, case.line, place, f"evaluator {quoted(entry.id)} cannot use it: {error.message}", error.hint)
    except PatternTimeout as timeout:
        breaches.add(case.path, case.line, "", f"evaluator {quoted(entry.id)}: {timeout.reason}")
    return ""


def check_metrics(evaluation: Evaluation, dataset: Dataset, breaches: Breaches) -> None:
    """Reports each derived metric that asks of a metric no entry has; names that only holdout cases bring are not suggested."""
    if not evaluation.metrics:
        return
    known = set(metrics_of_entries(evaluation.evaluators).values())
    shown = set(known)
    for case in dataset.cases.values():
        own = set(metrics_of_entries(case_entries(case, evaluation, Breaches())).values()) if case.document.get("evaluators") else set()
        known |= own
        shown |= own if case.id not in dataset.holdout else set()
    for name, expression in evaluation.metrics.items():
        try:
            check_metric_names(expression, known, shown)
        except ExpressionError as error:
            pointer = f"/metrics{pointer_token(name)}"
            breaches.add(evaluation.path, evaluation.line(pointer), pointer, f"character {error.place}: {error.message}", error.hint)


def check_own_entries(suite: Suite, case: Case, dataset: Dataset, breaches: Breaches) -> None:
    """Prepares the evaluators that *case* brings itself; what is wrong with them is a breach of the case."""
    seen: set[str] = set()
    for index, document in enumerate(case_entries(case, suite.evaluation, breaches)):
        pointer = f"/evaluators/{index}"
        entry = note_configuration(document, breaches, case.path, case.line, pointer)
        if entry is None:
            continue
        if entry.id in seen:
            breaches.add(case.path, case.line, pointer + "/id", f"duplicate id {quoted(entry.id)}")
        seen.add(entry.id)
        for name in PROGRAM_TYPES:
            if name in entry.versions:
                breaches.add(case.path, case.line, pointer, f"type {name} cannot stand in a case", "write it into evaluation.json")
        suite.versions.update(entry.versions)
        if suite.evaluation.agreement["required"] and holds_judge(entry) and silenced(entry):
            if case.id in dataset.holdout:
                suite.hides_judges = True
            else:
                suite.not_gating.setdefault(entry.id, CASE_BROUGHT)
        if document != case.document["evaluators"][index]:  # it had a $use or $file, which the dataset fingerprint cannot see through
            suite.referring.setdefault(case.id, []).append(entry.document)
        note_case_value(entry, case, breaches)


def merged_entries(entries: list[PreparedEntry], own: list[PreparedEntry]) -> list[PreparedEntry]:
    """*entries* with each of *own* in the place of the one with its id, or behind them."""
    replaced = {entry.id: entry for entry in own}
    merged = [replaced.pop(entry.id, entry) for entry in entries]
    return [*merged, *replaced.values()]
