"""The eighteen steps to a measurement that can be trusted, and which are done.

Each step looks at files alone and says: done, not done, or unknown (None) where no file can show
it. Unknown is never done. What only a person can say counts when a person has said it,
with name and time (`kaizen guide confirm`). The list: docs/skills.md.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kaizen.campaigns.standing import is_unresolved
from kaizen.campaigns.state import campaign_state
from kaizen.cases.case import SOURCE_KINDS
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.files import read_bytes
from kaizen.foundation.globs import glob_test
from kaizen.foundation.jsonio import JsonObject, canonical_json, float_or_none, sha256_hex
from kaizen.foundation.redact import redact_evidence
from kaizen.foundation.shapes import is_number, is_whole
from kaizen.foundation.text import counted, listed, percent, visible
from kaizen.lab.reading import OWN_METRIC, answered_lines, measured
from kaizen.lab.runstore import DONE
from kaizen.lab.system import EVAL_KIND, files_below
from kaizen.skills.guide_files import GuideView
from kaizen.stats.agreement import kappa_of
from kaizen.stats.intervals import wilson_interval

MINIMUM_TRACES, MINIMUM_NOTES, QUIET_NOTES = 50, 30, 20
MAXIMUM_LABELS, MINIMUM_CASES_DONE, CASES_A_LABEL = 8, 30, 5
MINIMUM_RATED, MINIMUM_KAPPA = 20, 0.6
MINIMUM_GRADED, MINIMUM_RATE = 50, 0.8
MINIMUM_READ = 10
TOO_EASY = 0.9
LABEL_DECISIONS = ("eval", "fixed", "later")
StepFinding = tuple["bool | None", str]  # done, evidence


class GuideStep(NamedTuple):
    """A step: id, title, what looks for it, what to do next; `is_stated`: a person's statement is enough for it."""

    id: str
    title: str
    look: Callable[[GuideView], StepFinding]
    command: str
    is_stated: bool = False


def tally(values: Iterable[object]) -> str:
    """'40 production, 23 synthetic'."""
    return listed(f"{number} {visible(str(value), 40)}" for value, number in Counter(values).most_common())


def look_goal(view: GuideView) -> StepFinding:
    sections = view.sections()
    missing = [name for name in ("goal", "non-goals", "owner") if not sections.get(name)]
    return not missing, f"system.md lacks {listed(missing)}" if missing else f"owner: {visible(sections['owner'], 60)}"


def real_runs(view: GuideView) -> list[JsonObject]:
    """The runs of the system itself, without those of stubs."""
    return [run for run in view.runs() if not str(run["variant"]).startswith("stub-")]


def look_boundary(view: GuideView) -> StepFinding:
    is_mutable = glob_test(view.system.mutable)
    files = sum(map(is_mutable, files_below(view.workspace.root, ""))) if view.system.mutable else 0
    smoke = [run["id"] for run in real_runs(view) if (run.get("counts") or {}).get("ok")]
    found = f"{counted(files, 'mutable file')}; " + (f"{smoke[0]} answered" if smoke else "no run has answered yet")
    return bool(files and smoke), found


def look_traces(view: GuideView) -> StepFinding:
    sources = {str(line["id"]): line.get("source") for line in view.lines("traces.jsonl") if line.get("id")}
    known = [source for source in sources.values() if source in SOURCE_KINDS]
    told = f"{counted(len(known), 'trace')} with a source{': ' + tally(known) if known else ''}"
    return len(known) >= MINIMUM_TRACES, f"{told}; {len(sources) - len(known)} without" if len(known) < len(sources) else told


def look_notes(view: GuideView) -> StepFinding:
    traces = {str(line["id"]) for line in view.lines("traces.jsonl") if line.get("id")}
    noted: list[str] = []
    for line in view.lines("notes.jsonl"):
        if line.get("note") and line.get("by") and str(line.get("trace")) in traces and str(line["trace"]) not in noted:
            noted.append(str(line["trace"]))
    told = f"{counted(len(noted), 'trace')} of {len(traces)} noted by a person"
    kinds = [{str(each["id"]) for each in view.labels() if trace in (each.get("traces") or ())} for trace in noted]
    if len(noted) < MINIMUM_NOTES or not view.labels():
        return len(noted) >= MINIMUM_NOTES, told
    new = [number for number, found in enumerate(kinds) if found - set().union(*kinds[:number])]
    quiet = len(noted) - 1 - new[-1] if new else len(noted)
    return quiet >= QUIET_NOTES or len(noted) == len(traces), f"{told}; no new kind in the last {quiet}"


def look_labels(view: GuideView) -> StepFinding:
    labels = view.labels()
    traces = {str(line["id"]) for line in view.lines("traces.jsonl") if line.get("id")}
    thin = [str(each["id"]) for each in labels if not (each.get("definition") and each.get("example") in traces and each.get("traces"))]
    named = view.document("labels.json").get("named_by")
    told = f"{counted(len(labels), 'label')}"
    told += f"; without definition, example or traces: {listed(map(visible, thin), 3)}" if thin else ""
    told += f", named by {visible(str(named), 60)}" if named else "; no person has named them"
    return 0 < len(labels) <= MAXIMUM_LABELS and not thin and bool(named), told


def look_choice(view: GuideView) -> StepFinding:
    labels = view.labels()
    open_bugs = [each for each in labels if each.get("decision") == "fixed" and not each.get("commit")]
    undecided = [each for each in labels if each.get("decision") not in LABEL_DECISIONS]
    told = tally(each.get("decision") or "undecided" for each in labels) or "no labels"
    told += f"; {len(open_bugs)} to be fixed without a commit" if open_bugs else ""
    return any(each.get("decision") == "eval" for each in labels) and not undecided and not open_bugs, told


def look_metric(view: GuideView) -> StepFinding:
    metric, campaign = view.system.metric, view.campaign()
    draft = campaign.contract if campaign else view.document("metric.json")
    told = f"{visible(metric.name, 60)}, {metric.aggregation}, {'higher' if metric.is_higher_better else 'lower'} is better"
    effect, guards = draft.get("min_effect"), draft.get("guards")
    has_effect, has_guards = is_number(effect) and float(str(effect)) > 0, isinstance(guards, list)
    told += f"; smallest gain worth having {effect}" if has_effect else "; no smallest gain worth having (min_effect)"
    has_reason = bool(guards) or bool(draft.get("no_guards_because")) or campaign is not None
    told += f"; {counted(len(guards or ()), 'guard')}" if has_guards and has_reason else "; no guards, and no word why not"
    return has_effect and has_guards and has_reason, told


def look_cases(view: GuideView) -> StepFinding:
    cases = [case.document for case in view.cases().values()]
    questions = Counter(canonical_json([case["input"], case.get("context")]) for case in cases)
    twice = sum(number - 1 for number in questions.values())
    unsourced = sum(not case.get("source") for case in cases)
    secrets = sum(bool(redact_evidence([case.get(key) for key in ("input", "context", "expected")])[1]) for case in cases)
    tags = Counter(tag for case in cases for tag in set(case.get("tags", ())))
    chosen = [str(each["id"]) for each in view.labels() if each.get("decision") == "eval"]
    thin = [label for label in chosen if tags[label] < CASES_A_LABEL]
    faults = {"repeated": twice, "without a source": unsourced, "with a secret in it": secrets}
    told = [f"{counted(len(cases), 'development case')}", *[f"{number} {what}" for what, number in faults.items() if number]]
    told += [f"fewer than {CASES_A_LABEL} for {listed(map(visible, thin), 3)}"] if thin else []
    told += [] if chosen else ["no label is chosen yet"]
    is_done = len(cases) >= MINIMUM_CASES_DONE and not any(faults.values()) and bool(chosen) and not thin
    return is_done, "; ".join(told) + "; personal data and both sides of each label are for a person to check"


def look_split(view: GuideView) -> StepFinding:
    campaign, split = view.campaign(), view.document("split.json")
    if campaign:
        holdout = campaign.contract["holdout"]
        return True, f"{counted(holdout['cases'], 'case')} sealed when {campaign.id} opened, level {holdout['level']}"
    path = split.get("holdout_file")
    if not isinstance(path, str) or not path:
        return False, f"{view.shown('split.json')} names no holdout_file, and no campaign has sealed one"
    if os.path.commonpath([os.path.realpath(path), os.path.realpath(view.workspace.root)]) == os.path.realpath(view.workspace.root):
        return False, "the holdout lies inside the repository"
    if not os.path.isfile(path):
        return None, "the holdout cannot be seen from here, as it may be in a sandbox"
    same = sha256_hex(read_bytes(path)) == split.get("sha256")
    return same, "the holdout lies outside the repository, as it was split" if same else "the holdout is not the one that was split"


def look_ratings(view: GuideView) -> StepFinding:
    by_rater: dict[str, dict[str, str]] = {}
    for line in view.lines("ratings.jsonl"):
        if line.get("rater") and line.get("case_id") and isinstance(line.get("label"), str):
            by_rater.setdefault(str(line["rater"]), {})[str(line["case_id"])] = str(line["label"])
    raters = sorted(by_rater)
    pairs = [(len(by_rater[a].keys() & by_rater[b].keys()), a, b) for i, a in enumerate(raters) for b in raters[i + 1 :]]
    if not pairs:
        return False, f"{counted(len(raters), 'rater')}; two are needed, or one person twice under two names"
    both, a, b = max(pairs)
    kappa = kappa_of([(by_rater[a][case], by_rater[b][case]) for case in sorted(by_rater[a].keys() & by_rater[b].keys())])
    told = f"{visible(a, 40)} and {visible(b, 40)} on {counted(both, 'case')}: "
    if kappa.kappa is None:
        return False if both < MINIMUM_RATED else None, f"{told}kappa cannot be computed ({kappa.reason})"
    return both >= MINIMUM_RATED and kappa.kappa >= MINIMUM_KAPPA, f"{told}kappa {kappa.kappa:.2f}"


def look_grader(view: GuideView) -> StepFinding:
    lines = {str(line.get("case_id")): (line.get("human"), line.get("grader")) for line in view.lines("grader.jsonl")}
    seen = Counter(pair for pair in lines.values() if set(pair) <= {"pass", "fail"})
    told, rates = f"{counted(seen.total(), 'graded case')}", []
    for side, name in (("pass", "true passes"), ("fail", "true fails")):
        right, planned = seen[(side, side)], seen[(side, "pass")] + seen[(side, "fail")]
        interval = wilson_interval(right, planned)
        rates.append(right / planned if planned else None)
        told += f"; {name} {right} of {planned}" + (f" ({interval.low:.0%} to {interval.high:.0%})" if interval else "")
    if seen.total() < MINIMUM_GRADED or None in rates:
        return False, told
    return all(rate is not None and rate >= MINIMUM_RATE for rate in rates), told


def stub_run(view: GuideView, name: str) -> JsonObject | None:
    """The newest complete run of the variant stub-*name*; None when there is none."""
    found = [run for run in view.runs() if run["variant"] == f"stub-{name}" and run["state"] in (DONE, "incomplete")]
    return found[-1] if found else None


def run_value(view: GuideView, run: JsonObject) -> float | None:
    """What *run* scored, None when that is not available."""
    value = measured(view.store, run, OWN_METRIC).get("value")
    return None if value is None else float_or_none(value)


def look_contract(view: GuideView) -> StepFinding:
    if view.system.kind != EVAL_KIND:
        return True, "the engine itself is the eval of this kind of system"
    runs = {name: stub_run(view, name) for name in ("crash", "nan", "slow")}
    missing = [f"stub-{name}" for name, run in runs.items() if run is None]
    lucky = [f"stub-{name}" for name, run in runs.items() if run and run.get("counts", {}).get("ok")]
    told = [f"not run: {listed(missing)}"] if missing else []
    told += [f"scored as if nothing had happened: {listed(lucky)}"] if lucky else []
    told += ["wrong and repeated ids crash a run: the engine sees to it"]
    return not missing and not lucky, "; ".join(told)


def look_stubs(view: GuideView) -> StepFinding:
    metric, chance = view.system.metric, view.document("metric.json").get("chance")
    best, floor = (metric.maximum, metric.minimum) if metric.is_higher_better else (metric.minimum, metric.maximum)
    runs = {name: stub_run(view, name) for name in ("perfect", "empty", "shuffled", "hostile")}
    values = {name: run_value(view, run) if run else None for name, run in runs.items()}
    shown = {name: f"{value:g}" if value is not None else "unknown" if runs[name] else "not run" for name, value in values.items()}
    told = listed(f"{name} {each}" for name, each in shown.items())
    if None in values.values():
        return False, told
    if not is_number(chance) or best is None or floor is None:
        return None, f"{told}; what the floor and chance are is not said (chance in metric.json, minimum and maximum in system.md)"
    run = runs["shuffled"] or {}
    n, width = measured(view.store, run, OWN_METRIC).get("n") or 0, abs(best - floor)
    interval = wilson_interval(abs(float(str(chance)) - floor) / width * n, n)
    reach = {name: abs((value if value is not None else floor) - floor) / width for name, value in values.items()}
    high = interval.high if interval else 1.0
    wrong = [name for name, value in (("perfect", best), ("empty", floor)) if values[name] != value]
    wrong += [name for name in ("shuffled", "hostile") if reach[name] > high]
    return not wrong, f"{told}; not as it should be: {listed(wrong)}" if wrong else f"{told}; chance is {chance}"


def look_transcripts(view: GuideView) -> StepFinding:
    said = view.statement("G14")
    diagnostics = [run for run in real_runs(view) if run["diagnostic"]]
    told = f"{counted(len(diagnostics), 'diagnostic run')}"
    if not diagnostics:
        return False, told
    read = said.get("count") if said else None
    if not is_whole(read):
        return None, f"{told}; only a person can say that the grades are right (with --count)"
    return int(str(read)) >= MINIMUM_READ, f"{told}; {read} transcripts read"


def look_noise(view: GuideView) -> StepFinding:
    campaign = view.campaign()
    if campaign is None:
        return False, "no campaign is open, in which noise is measured: first G16 and G17"
    state = campaign_state(campaign)
    if state.noise is None:
        return False, "the noise has not been measured; then: kaizen plan"
    mde, accepted = state.mde(), state.noise.get("accepted")
    told = f"smallest gain that can be seen: {'unknown' if mde is None else f'{mde:.3g}'}"
    return not is_unresolved(state), f"{told}; accepted: {visible(str(accepted))}" if accepted else told


def look_headroom(view: GuideView) -> StepFinding:
    metric = view.system.metric
    full = [run for run in real_runs(view) if run["state"] == DONE and not (run["diagnostic"] or run["limited"])]
    value = run_value(view, full[0]) if full else None
    best, floor = (metric.maximum, metric.minimum) if metric.is_higher_better else (metric.minimum, metric.maximum)
    if value is None or best is None or floor is None:
        return (False, "no full run yet") if not full else (None, f"{full[0]['id']}: the range of the metric is not known")
    share, lost = abs(value - floor) / abs(best - floor), {line["item"] for line in answered_lines(view.store, full[0])}
    for run in full if lost else ():
        lost -= {line["item"] for line in answered_lines(view.store, run) if line["score"] != metric.worst}
    told = f"{full[0]['id']}: {percent(round(share * 10000), 10000, 1)} of the range; {counted(len(lost), 'case')} at the worst always"
    return share < TOO_EASY and not lost, told


def look_open(view: GuideView) -> StepFinding:
    campaign = view.campaign()
    return campaign is not None, f"{campaign.id} is {'closed' if campaign.is_closed() else 'open'}" if campaign else "no campaign yet"


def look_afterwards(view: GuideView) -> StepFinding:
    text = view.sections().get("afterwards", "")
    return bool(text), f"system.md: {visible(text, 80)}" if text else "system.md lacks a section Afterwards"


GUIDE_STEPS = (
    GuideStep("G1", "State the decision, the users, the cost of each error", look_goal,
              "write ## Goal, ## Non-goals, ## Owner in {system}"),
    GuideStep("G2", "Draw the boundary and try the system once", look_boundary,
              "kaizen run --system {id} --variant smoke --diagnostic --max-items 1"),
    GuideStep("G3", "Gather traces, real ones first", look_traces,
              "list them in {guide}/traces.jsonl, each with its source"),
    GuideStep("G4", "Open coding: a person notes what went wrong first", look_notes,
              "show the next trace, record the note in {guide}/notes.jsonl"),
    GuideStep("G5", "Axial coding: at most 8 failure labels", look_labels,
              "write {guide}/labels.json, let the owner name the labels"),
    GuideStep("G6", "Choose what to measure; fix plain bugs now", look_choice,
              "write the decision of each label into {guide}/labels.json"),
    GuideStep("G7", "Metric, guards, smallest gain worth having", look_metric,
              "write {guide}/metric.json"),
    GuideStep("G8", "Cases: sourced, labelled, once each", look_cases,
              "add cases to the dataset that {system} names"),
    GuideStep("G9", "Split before tuning; the holdout leaves the repository", look_split,
              "write {guide}/split.json", True),
    GuideStep("G10", "Two raters on the same cases", look_ratings,
              "record both in {guide}/ratings.jsonl; below 0.6, rewrite the criterion"),
    GuideStep("G11", "The grader agrees with people", look_grader,
              "record 50 cases in {guide}/grader.jsonl", True),
    GuideStep("G12", "The eval survives crash, NaN and delay", look_contract,
              "kaizen run --system {id} --variant stub-crash --diagnostic"),
    GuideStep("G13", "Known answers: perfect, empty, shuffled, hostile", look_stubs,
              "kaizen run --system {id} --variant stub-perfect --diagnostic"),
    GuideStep("G14", "Read every transcript of a small run", look_transcripts,
              'kaizen guide confirm G14 --system {id} --by NAME --count N --because "…"'),
    GuideStep("G15", "Baseline, noise, plan", look_noise,
              "kaizen noise --system {id}"),
    GuideStep("G16", "Neither too easy nor impossible", look_headroom,
              'kaizen guide confirm G16 --system {id} --by NAME --because "…"', True),
    GuideStep("G17", "Open the campaign", look_open,
              "kaizen campaign open --system {id} --sealed DIR --min-effect X"),
    GuideStep("G18", "Afterwards: failures become cases", look_afterwards,
              "write ## Afterwards in {system}"),
)


def guide_rows(view: GuideView) -> list[JsonObject]:
    """[{id, title, done, evidence, command, stated}] of all steps; `done` is None where files cannot show it."""
    places = {"id": view.name, "system": view.shown("../system.md"), "guide": view.shown("")}
    return [step_row(view, step, step.command.format(**places)) for step in GUIDE_STEPS]


def next_row(rows: list[JsonObject]) -> JsonObject | None:
    """The first of *rows* that is not done, None when all are; noise is measured inside a campaign, so G15 comes after G17."""
    left = [row for row in rows if row["done"] is not True]
    return next((row for row in left if row["id"] != "G15" or all(each["id"] != "G17" for each in left)), None)


def step_row(view: GuideView, step: GuideStep, command: str) -> JsonObject:
    """The row of one step; what cannot be read is not done, and the evidence says why."""
    said = None
    try:
        said = view.statement(step.id)
        done, evidence = step.look(view)
    except KaizenError as error:
        done, evidence = False, error.message
    if said:
        evidence += f"; {visible(str(said['by']), 60)} on {visible(str(said.get('at')), 30)}: {visible(str(said.get('text')))}"
        done = True if step.is_stated else done
    shown = "" if done else command
    return {"id": step.id, "title": step.title, "done": done, "evidence": evidence, "command": shown, "stated": bool(said)}
