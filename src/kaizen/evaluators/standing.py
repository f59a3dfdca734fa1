"""What keeps a judge from gating: its standing among experts, as `agreement` recorded it.

With `"agreement": {"required": true}` an entry of type `judge`, or one that holds a judge, gates only
while agreement.json says `at_human_level` of this very entry and of the labels that are there now.
Otherwise it informs: its severity becomes `info`, and what it says decides nothing.
"""

import os
from collections.abc import Sequence

from kaizen.cases.evaluation_file import Evaluation
from kaizen.cases.judge_block import verdict_names
from kaizen.cases.labels import AGREEMENT_FILE, read_labels
from kaizen.evaluators.envelope import PreparedEntry
from kaizen.evaluators.judge import JUDGE
from kaizen.evaluators.outcomes import FAIL, PASS
from kaizen.foundation.errors import Breaches, InputError
from kaizen.foundation.jsonio import JsonObject, fingerprint, read_json_object

VERDICT = ""
AT_HUMAN_LEVEL, BELOW_HUMAN_LEVEL, LEVEL_UNDECIDED, UNLABELLED = "at_human_level", "below_human_level", "undecided", "unlabelled"
OUTDATED, CASE_BROUGHT = "outdated", "brought_by_a_case"
STANDING_WORDS = {
    AT_HUMAN_LEVEL: "agrees with the experts as well as they agree with each other",
    BELOW_HUMAN_LEVEL: "agrees less with the experts than they agree with each other",
    LEVEL_UNDECIDED: "the labels do not decide if it agrees as well as the experts do",
    UNLABELLED: "no expert has labelled what it judges",
    OUTDATED: "the judge or the labels have changed since its agreement was measured",
    CASE_BROUGHT: "a case brings it itself, so its agreement cannot be measured",
}


def holds_judge(entry: PreparedEntry) -> bool:
    """True when *entry* is a judge or holds one."""
    return JUDGE in entry.versions


def default_subject(evaluation: Evaluation, entries: Sequence[PreparedEntry]) -> str | None:
    """What agreement is about unless it is said: the verdict ('') when there is a `judge` block, else the only judge; None for neither."""
    if evaluation.judge is not None:
        return VERDICT
    judges = [entry.id for entry in entries if entry.type.name == JUDGE]
    return judges[0] if len(judges) == 1 else None


def subject_labels(evaluation: Evaluation, subject: str) -> list[str]:
    """What an expert can say of *subject*, the best first: verdicts of the `judge` block, or pass and fail."""
    return verdict_names(evaluation.judge) if subject == VERDICT and evaluation.judge is not None else [PASS, FAIL]


def standings(evaluation: Evaluation, entries: Sequence[PreparedEntry], prints: dict[str, str]) -> dict[str, str]:
    """The standing of each judge among *entries* by its id; *prints* are the fingerprints of the entries now."""
    records = {str(record.get("of")): record for record in agreement_records(evaluation)}
    found = {}
    for entry in filter(holds_judge, entries):
        record = records.get(entry.id)
        found[entry.id] = UNLABELLED if record is None else standing_now(evaluation, entries, prints, record)
    return found


def agreement_records(evaluation: Evaluation) -> list[JsonObject]:
    """What `kaizen agreement` measured, an object a subject; [] when there is nothing."""
    improvement = evaluation.improvement
    if improvement is None or not os.path.exists(improvement.path(AGREEMENT_FILE)):
        return []
    measured = read_json_object(improvement.path(AGREEMENT_FILE)).get("measured")
    return [item for item in measured if isinstance(item, dict)] if isinstance(measured, list) else []


def standing_now(evaluation: Evaluation, entries: Sequence[PreparedEntry], prints: dict[str, str], record: JsonObject) -> str:
    """The standing in *record*, or `outdated` when what it is about, the labels, or how they are weighed has changed since."""
    subject = str(record.get("of") or VERDICT)
    now = fingerprint(evaluation.judge) if subject == VERDICT else prints.get(subject)
    labels = record.get("labels")
    same = record.get("entry") == now and record.get("weights") == evaluation.agreement["weights"] and isinstance(labels, dict)
    same = same and labels_unchanged(evaluation, entries, subject, labels or {}) and judges_unchanged(evaluation, record)
    return str(record.get("standing")) if same else OUTDATED


def judge_makers(meta: JsonObject) -> dict[str, list[JsonObject]]:
    """Who answered under each rubric, by the results meta file *meta*; without how many answers each gave."""
    rubrics = meta.get("judges")
    found = {}
    for name, rubric in rubrics.items() if isinstance(rubrics, dict) else ():
        makers = rubric.get("judges") if isinstance(rubric, dict) else None
        known = [{key: value for key, value in who.items() if key != "answers"} for who in makers or () if isinstance(who, dict)]
        if known:
            found[str(name)] = known
    return found


def judges_unchanged(evaluation: Evaluation, record: JsonObject) -> bool:
    """True when no stage was judged by somebody else than those that *record* is about."""
    improvement, makers = evaluation.improvement, record.get("judges")
    if improvement is None or not isinstance(makers, dict) or not makers:
        return True
    for stage in improvement.stages():
        path = improvement.stage_file(stage, ".evaluated.meta.json")
        now = judge_makers(read_json_object(path)) if os.path.exists(path) else {}
        if any(now.get(name, known) != known for name, known in makers.items()):
            return False
    return True


def labels_unchanged(evaluation: Evaluation, entries: Sequence[PreparedEntry], subject: str, labels: JsonObject) -> bool:
    """True when the labels about *subject* are those that *labels* names by file and fingerprint."""
    if evaluation.improvement is None:
        return False
    path = evaluation.improvement.path(str(labels.get("file")))
    if not os.path.exists(path):
        return labels.get("fingerprint") is None
    try:
        names = subject_labels(evaluation, subject)
        now = read_labels(path, subject, default_subject(evaluation, entries), names, EveryCase(), Breaches())
    except InputError:
        return False
    return now.fingerprint == labels.get("fingerprint")


class EveryCase(frozenset[str]):
    """Holds every id: whether a case is there is asked where labels are read to be counted."""

    def __contains__(self, case_id: object) -> bool:
        return True


def not_gating_notes(meta: JsonObject) -> list[str]:
    """A sentence for each judge that, by the results meta file *meta*, informed and did not gate."""
    return [
        f"The judge '{name}' informs but does not gate: {STANDING_WORDS.get(standing, standing)} ({standing})."
        for name, standing in sorted(dict(meta.get("not_gating", {})).items())
    ]
