"""When a run may become champion, and what to do when it may not.

Every rule must hold; there is no way around one. Past promotions are judged by the same
rules when a history is validated.
"""

import re
from typing import NamedTuple

from kaizen.cases.decision import Decision
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import quoted, visible
from kaizen.history.ledger import ANCHOR
from kaizen.history.reading import History, HistoryRun, cohort_difference, difference_text, run_problems

ACCEPTED_STATUSES = ("accepted", "accepted_with_conditions")


class Obstacle(NamedTuple):
    """What keeps a run from being promoted: reason code, one sentence, what to do."""

    code: str
    text: str
    hint: str


def promotion_obstacle(history: History, run: HistoryRun, decision: Decision | None, stale: str) -> Obstacle | None:
    """The first thing that keeps *run* from being promoted under *decision*; None when nothing does.

    *stale* says how the improvement's files differ from the recorded ones, '' when they do not.
    """
    return hash_obstacle(history, run) or stale_obstacle(run, stale) or rule_obstacle(history, run) or decision_obstacle(run, decision)


def hash_obstacle(history: History, run: HistoryRun) -> Obstacle | None:
    """A file of *run*, or of the run it must have been compared with, that is not what was recorded."""
    reference = history.champion() or history.anchor(run.cohort())
    for each in (run, reference):
        problems = run_problems(history, each) if each else []
        if problems:
            return Obstacle(
                "hash_mismatch", problems[0], "put the recorded file back (git checkout, or a copy); see: kaizen history validate"
            )
    return None


def stale_obstacle(run: HistoryRun, stale: str) -> Obstacle | None:
    """The improvement has moved on since *run* was recorded."""
    if not stale:
        return None
    hint = "run: kaizen evaluate, kaizen review, kaizen decide, then kaizen history record: what is there now is another run"
    return Obstacle("stale_evidence", f"{run.id}: the evidence is stale: {stale}", hint)


def rule_obstacle(history: History, run: HistoryRun) -> Obstacle | None:
    """What the rules about cohort, comparison and recommendation say of *run*, which its history is loaded with."""
    if run.entry["kind"] == ANCHOR or "baseline" not in run.manifest["stages"]:
        hint = "record the candidate: kaizen history record IMPROVEMENT --agent-version V"
        return Obstacle("not_compared", f"{run.id}: was recorded alone, compared with nothing", hint)
    champion = history.champion()
    if champion and champion.id == run.id:
        return Obstacle("already_champion", f"{run.id}: is the champion already", "there is nothing to do")
    anchor = history.anchor(run.cohort())
    if anchor is None:
        return cohort_obstacle(history, run)
    wanted = champion or anchor
    if not is_compared_with(history, run, wanted):
        version = quoted(wanted.manifest.get("agent_version", "?"))
        role = f"the version promoted last ({version}, {wanted.id})" if champion else f"the anchor of its cohort ({version}, {wanted.id})"
        hint = (
            f"run version {version} as the baseline of this improvement, then evaluate, review, decide and record again; "
            "a stage that runs it anew is made known with: kaizen history record IMPROVEMENT --stage S --agent-version V"
        )
        return Obstacle("not_compared_with_champion", f"{run.id}: its baseline is not {role}", hint)
    if run.manifest["recommendation"] != "eligible":
        reasons = [entry["text"] for entry in run.manifest["reasons"]]
        because = f": {visible(reasons[0])}" if reasons else ""
        hint = "change the agent until it is eligible, or the policy in evaluation.json, which makes other evidence to decide about"
        return Obstacle(
            "not_eligible", f"{run.id}: the recommendation is {visible(str(run.manifest['recommendation']), 40)}{because}", hint
        )
    return None


def improvement_argument(run: HistoryRun) -> str:
    """The improvement of *run* as a command that is printed for a shell names it."""
    from shlex import quote

    name = str(run.manifest["improvement"].get("name") or "IMPROVEMENT")
    return "run:ID" if re.search(r" \(r[0-9]{4,}\)\Z", name) else quote(visible(name, 100))  # the evidence of a run is called so


def cohort_obstacle(history: History, run: HistoryRun) -> Obstacle:
    """The cohort of *run* has no anchor; says how it differs from the cohort that was begun last."""
    name = improvement_argument(run)
    hint = f"begin its cohort with its baseline: kaizen history init {name} --agent-version V"
    others = [each for each in history.runs.values() if each.entry["kind"] == ANCHOR and each.manifest]
    if not others:
        return Obstacle("other_cohort", f"{run.id}: its cohort {run.cohort()} has no anchor, nor has any other", hint)
    how = difference_text(cohort_difference(history, run, others[-1]))
    text = f"{run.id}: its cohort {run.cohort()} has no anchor; it differs from {others[-1].cohort()} ({others[-1].id}): {how}"
    return Obstacle("other_cohort", text, hint)


def is_compared_with(history: History, run: HistoryRun, wanted: HistoryRun) -> bool:
    """True when the baseline of *run* is the version of *wanted*: by its observations, or by a run of the cohort that has them.

    Such a run was recorded under the same agent version.
    """
    digest = run.digest("baseline")
    if digest is None or digest == wanted.digest("candidate"):
        return digest is not None
    version = wanted.manifest.get("agent_version")
    same = [each for each in history.runs.values() if each.cohort() == run.cohort() and each.digest("candidate") == digest]
    return any(each.manifest["agent_version"] == version for each in same)


def decision_obstacle(run: HistoryRun, decision: Decision | None) -> Obstacle | None:
    """What *decision* lacks for a promotion of *run*; None when it accepts exactly its evidence."""
    name = improvement_argument(run)
    decide = f"run: kaizen decide {name} --status accepted --by NAME --because TEXT"
    if decision is None:
        return Obstacle(
            "no_decision", f"{run.id}: nobody has decided about it", f"run: kaizen review {name}, look at the page, then {decide}"
        )
    if decision.status == "pending":
        return Obstacle("pending", f"{run.id}: the decision is pending", f"a person decides; {decide}")
    if not decision.decided_by.strip():
        return Obstacle("no_decision", f"{run.id}: the decision does not say who decided", decide)
    if decision.evidence != run.manifest["evidence"]:
        found, wanted = (visible(text, 19) for text in (decision.evidence, run.manifest["evidence"]))
        text = f"{run.id}: the decision is about other evidence ({found} instead of {wanted})"
        return Obstacle("stale_decision", text, f"run: kaizen review {name}, look at the page, then {decide}")
    if decision.status not in ACCEPTED_STATUSES:
        by = f" by {quoted(decision.decided_by)}" if decision.decided_by else ""
        return Obstacle(
            "rejected",
            f"{run.id}: was {visible(decision.status, 40)}{by}",
            "a rejected version is not promoted; make a better one, and record that",
        )
    return None


def stated_decision(decision: Decision | None) -> JsonObject | None:
    """What a manifest or a promotion says of *decision*; None when there is none."""
    if decision is None:
        return None
    return {key: value for key, value in decision._asdict().items() if key != "path"}
