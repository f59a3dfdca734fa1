"""`kaizen reliability`: how sure the change is, and what it would take to be surer."""

from argparse import Namespace

from kaizen.commands.context import Assessment, Project, assess, compared_project
from kaizen.commands.reporting import BASELINE, assessed_entry
from kaizen.commands.table import OR_RUNS, Answer, Argument, command
from kaizen.evaluators.standing import not_gating_notes
from kaizen.foundation.files import write_file
from kaizen.foundation.jsonio import JsonObject, encode_readable, rounded_floats
from kaizen.foundation.text import counted, visible
from kaizen.policy.derived import derived_lines
from kaizen.policy.reliability import ROLES_COMPARED, cost_document, default_reliability, judge_family
from kaizen.policy.reliability_words import (
    chance_text,
    change_text_of,
    cost_text,
    excluded_text_of,
    fraction_percent,
    ids_text,
    limits_text,
    noise_text,
    points_text,
    probability_text,
    settle_text,
    side_text_of,
    smallest_effect_text,
    verdict_text,
)
from kaizen.stats.intervals import REASONS

RELIABILITY_FILE = "reliability.json"


@command(
    "reliability",
    "Says how sure a change is: intervals, exact tests, noise, and what it would take to be surer.",
    [
        OR_RUNS,
        BASELINE,
        Argument("--candidate", "S", "stage or run:ID to compare (candidate); repeated: one family", {"action": "append", "default": []}),
    ],
    "kaizen reliability refund\nkaizen reliability refund --candidate prompt-a --candidate prompt-b --json",
    group="surer",
)
def command_reliability(args: Namespace) -> Answer:
    """Writes reliability.json; exits 0 whatever the evidence says."""
    asked = list(dict.fromkeys(args.candidate)) or ["candidate"]
    project, baseline, candidates = compared_project(args.improvement, args.baseline, asked)
    settings = project.evaluation.reliability or default_reliability()
    assessments = {stage: assess(project, baseline, stage) for stage in candidates}
    entries = [assessed_entry(project, assessment) for assessment in assessments.values()]
    judge_family(entries, settings)
    document = reliability_document(project, baseline, assessments, entries, settings)
    path = project.improvement.path(RELIABILITY_FILE)
    write_file(path, encode_readable(document) + "\n")
    lines = document_lines(document, project.evaluation.reliability is not None)
    message = "; ".join(verdict_text(entry, settings) for entry in entries)
    shown = project.improvement.shown(RELIABILITY_FILE)
    reason = entries[0]["verdict"] if len(entries) == 1 else "measured"
    following = project.improvement.review_command(baseline)
    return Answer(0, reason, message, [*lines, f"written to {shown}"], {**document, "files": {"reliability": shown}}, following)


def reliability_document(
    project: Project, baseline: str, assessments: dict[str, Assessment], entries: list[JsonObject], settings: JsonObject
) -> JsonObject:
    """The document of reliability.json; it names no case of the holdout."""
    first = next(iter(assessments.values()))
    judges = [note for each in assessments.values() for state in each.states.values() for note in not_gating_notes(state.meta)]
    entries = [rounded_floats(entry) for entry in entries]
    for entry, assessment in zip(entries, assessments.values(), strict=True):
        costs = {role: cost_document(tally, float(settings["confidence"])) for role, tally in assessment.tallies.items()}
        entry["costs"] = rounded_floats(costs)
        entry["metrics"] = rounded_floats(assessment.comparison["metrics"])
        entry["evidence"] = assessment.comparison["evidence"]
        entry["problems"] = [{"code": code, "text": text} for code, text in assessment.problems]
        entry["evaluators_changed"] = changed_between(assessment)
    return {
        "version": 1,
        "baseline": first.comparison["baseline"],
        "dataset_fingerprint": first.comparison["dataset_fingerprint"],
        "evaluator_fingerprint": first.comparison["evaluator_fingerprint"],
        "settings": settings,
        "gates": project.evaluation.reliability is not None,
        "family": len(entries),
        "candidates": entries,
        "notes": [*family_notes(entries), *dict.fromkeys(judges)],
    }


def changed_between(assessment: Assessment) -> list[str]:
    """Ids of the evaluators by which the two sides were not graded alike, sorted."""
    before, after = (assessment.states[role].meta.get("evaluators", {}) for role in ROLES_COMPARED)
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def family_notes(entries: list[JsonObject]) -> list[str]:
    """Whole sentences about several candidates in one call."""
    if len(entries) < 2:
        return []
    notes = [
        f"{counted(len(entries), 'candidate')} were compared with one baseline, so their p-values are adjusted by Holm's method.",
        "The best of several looks better than it is: confirm it on cases that did not choose it.",
    ]
    for number, one in enumerate(entries):
        for other in entries[number + 1 :]:
            intervals = one["rates"]["candidate"]["interval"], other["rates"]["candidate"]["interval"]
            if intervals[0] and intervals[1] and intervals[0][0] <= intervals[1][1] and intervals[1][0] <= intervals[0][1]:
                notes.append(f"{one['stage']} and {other['stage']} are not separated: their intervals overlap.")
    return notes


def document_lines(document: JsonObject, has_block: bool) -> list[str]:
    """The whole document for a terminal."""
    lines = []
    for entry in document["candidates"]:
        lines += [*entry_lines(entry, document), ""]
    lines += [f"note: {note}" for note in document["notes"]]
    if not has_block:
        lines.append("note: evaluation.json has no 'reliability' block, so no gate hangs on this")
    return lines


def entry_lines(entry: JsonObject, document: JsonObject) -> list[str]:
    """One candidate: verdict, numbers, what would settle it, groups."""
    tests = entry["sign_flip"]
    adjusted = tests["adjusted"]["better"]
    holm_text = f", {probability_text(adjusted)} adjusted for {document['family']} candidates" if document["family"] > 1 else ""
    equal = f"P(better) {chance_text(entry, 'better')}, P(equal) {chance_text(entry, 'equal')}"
    rows = [
        (document["baseline"]["stage"], side_text_of(entry, "baseline")),
        (entry["stage"], side_text_of(entry, "candidate")),
        ("change", change_text_of(entry)),
        ("better?", f"{equal}; sign-flip p {probability_text(tests['better'])}{holm_text} (worse: {probability_text(tests['worse'])})"),
    ]
    if entry["mcnemar"]:
        exact, mid = (probability_text(entry["mcnemar"][name]) for name in ("exact", "mid"))
        rows.append(("", f"McNemar p {exact}, mid-p {mid} (two-sided)"))
    moved, unmeasured = entry["moved"], entry["cases"] - entry["cases_compared"]
    before, now = (ids_text(entry["flaky"][role]) for role in ROLES_COMPARED)
    rows += [
        ("cases", f"{moved['up']:,} up, {moved['down']:,} down, {moved['equal']:,} equal, {unmeasured:,} not comparable"),
        ("flaky", f"before {before}, now {now}; newly flaky {ids_text(entry['newly_flaky'])}"),
        ("noise", noise_text(entry)),
        *[("excluded", f"{role} {excluded_text_of(entry, role)}") for role in ROLES_COMPARED if excluded_text_of(entry, role)],
        *[("", f"{problem['text']} ({problem['code']})") for problem in entry["problems"]],
    ]
    names = {"baseline": document["baseline"]["stage"], "candidate": entry["stage"]}
    if any(found["n"] for found in entry["costs"].values()):
        rows.append(("cost", ", ".join(f"{names[role]} {cost_text(found)}" for role, found in entry["costs"].items())))
    rows += [("metric", line) for line in derived_lines(entry["metrics"], names)]
    width = max(len(name) for name, _ in rows)
    lines = [verdict_text(entry, document["settings"]), *[f"  {name:<{width}}  {text}" for name, text in rows]]
    lines += [f"  {text}" for text in (smallest_effect_text(entry), settle_text(entry)) if text]
    return [*lines, *reliability_group_lines(entry)]


def reliability_group_lines(entry: JsonObject) -> list[str]:
    """The table of splits and tags; [] when there is none."""
    found = entry["groups"]
    if not found["groups"]:
        return []
    head = f"  exploratory, not for deciding; p-values Holm-adjusted over {counted(found['family'], 'group')}:"
    rows: list[tuple[str, ...]] = [("group", "cases", "before", "now", "change", "adjusted p")]
    for group in found["groups"]:
        delta, name = group["delta"], f"{group['kind']} {visible(group['name'], 40)}"
        change = f"{points_text(delta['value'])} ({limits_text(group['interval'])})" if delta else REASONS[group["reason"]]
        rates = [fraction_percent(group["rates"][role]) for role in ROLES_COMPARED]
        rows.append((name, f"{group['cases']:,}", *rates, change, probability_text(group["p_adjusted"])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    more = [f"    and {counted(found['left_out'], 'smaller group')}"] if found["left_out"] else []
    return [head, *lines, *more]
