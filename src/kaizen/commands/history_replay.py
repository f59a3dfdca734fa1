"""`kaizen replay-decision` over a history: what would flip."""

import os

from kaizen.cases.evaluation_file import RELIABILITY, checked_acceptance, checked_block, checked_metrics, load_evaluation, nearest_line
from kaizen.cases.improvement import Improvement
from kaizen.commands.context import assess, load_project
from kaizen.commands.replaying import project_under, replayed_comparison
from kaizen.commands.table import Answer
from kaizen.foundation.errors import EXIT_INCOMPLETE, Breaches, KaizenError
from kaizen.foundation.files import make_folder, remove_folder, shown_path
from kaizen.foundation.jsonio import JsonObject, checked_object
from kaizen.foundation.text import counted, visible
from kaizen.history.reading import COMPARISON_ARCHIVED, History, HistoryRun, archived_document, run_outcomes
from kaizen.history.restoring import restore_run
from kaizen.policy.replay import flips_document


def replay_history(history: History, path: str, has_evaluators: bool) -> Answer:
    """What every comparison in *history* comes to under the evaluation file *path*: its policy, and with *has_evaluators* its evaluators.

    Archived files are put back into a folder that goes away again; no agent runs. Exits 4 when a run could not be replayed.
    """
    import tempfile

    policy = checked_file(path) if has_evaluators else policy_blocks(path)
    folder = tempfile.mkdtemp(prefix="kaizen-replay-")
    replayed, failed = [], []
    try:
        for run in history.runs.values():
            place = os.path.join(folder, run.id)
            if run.problem or "baseline" in run.manifest["stages"]:
                try:
                    replayed.append(replayed_run(history, run, place, policy, path if has_evaluators else ""))
                except KaizenError as error:
                    failed.append({"id": run.id, "reason": error.reason, "message": error.message.replace(folder, "…")})
            if os.path.isdir(place):
                remove_folder(place)
    finally:
        remove_folder(folder)
    return history_flips(history, shown_path(path), replayed, failed)


def checked_file(path: str) -> JsonObject:
    """No blocks: the evaluation file *path* counts as it is. Raises BreachesError when it cannot, before any run is looked at."""
    breaches = Breaches()
    load_evaluation(Improvement(os.path.dirname(path)), breaches, path)
    breaches.raise_if_any()
    return {}


def policy_blocks(path: str) -> JsonObject:
    """The blocks `acceptance`, `metrics` and `reliability` of the evaluation file *path*, checked. Raises BreachesError.

    A block that the file does not have is empty: the defaults count, not what the run was judged by.
    """
    breaches, shown = Breaches(), shown_path(path)
    found = checked_object(path, breaches)
    if found:
        text, document = found

        def report(pointer: str, message: str, hint: str) -> None:
            breaches.add(shown, nearest_line(text, pointer), pointer, message, hint)

        checked_acceptance(document, report)
        checked_metrics(document, report)
        if "reliability" in document:
            checked_block(document, "reliability", RELIABILITY, report)
    breaches.raise_if_any()
    return {key: document.get(key) for key in ("acceptance", "metrics", "reliability")} if found else {}


def replayed_run(history: History, run: HistoryRun, place: str, policy: JsonObject, path: str) -> JsonObject:
    """What `flips_document` says of *run*, restored to *place*, under *policy* or the evaluation file *path*."""
    if run.problem:
        raise KaizenError(run.problem, "", "hash_mismatch")
    make_folder(place)
    improvement = restore_run(history, run, place, policy)
    holdout = frozenset(outcome.id for outcome in run_outcomes(history, run) if outcome.is_holdout)
    before = archived_document(history, run, COMPARISON_ARCHIVED)
    after = replayed_document(improvement, before, path)
    row = {"id": run.id, "label": run.manifest["label"], "agent_version": run.manifest["agent_version"]}
    return {**row, "is_promoted": bool(run.promotions), **flips_document(before, after, holdout)}


def replayed_document(improvement: Improvement, before: JsonObject, path: str) -> JsonObject:
    """The comparison *before* as it comes out now: evaluated again where the evaluators are others than those of the results."""
    if path:
        return replayed_comparison(project_under(improvement, path, False), before)
    project = load_project(improvement.folder)
    now = assess(project, before["baseline"]["stage"], before["candidate"]["stage"])
    return replayed_comparison(project, before) if now.problems else now.comparison


def history_flips(history: History, policy: str, replayed: list[JsonObject], failed: list[JsonObject]) -> Answer:
    """The answer: promotions that flip first, then other runs that do, then what could not be replayed."""
    flipped = [row for row in replayed if row["flips"]]
    promoted = [row for row in flipped if row["is_promoted"]]
    total = sum(row["is_promoted"] for row in replayed)
    counts = f"{len(promoted)} of {counted(total, 'promotion')}", f"{len(flipped)} of {counted(len(replayed), 'run')} in all"
    message = f"{counts[0]} would flip under {policy}; {counts[1]}"
    lines = [message]
    for row in [*promoted, *(row for row in flipped if not row["is_promoted"])]:
        why = [reason["text"] for reason in row["after"]["reasons"][:1]]
        role = "promoted" if row["is_promoted"] else "recorded"
        change = f"{row['before']['recommendation']} becomes {row['after']['recommendation']}"
        lines.append(f"  {row['id']} ({role}): {change}{f': {why[0]}' if why else ''}")
    lines += [f"  not replayed: {row['id']}: {row['message']}" for row in failed]
    data: JsonObject = {"policy": policy, "runs": replayed, "flipped_promotions": [row["id"] for row in promoted], "not_replayed": failed}
    reason = "incomplete" if failed else "flips" if flipped else "stays"
    lines = [visible(line, None) for line in lines]
    return Answer(EXIT_INCOMPLETE if failed else 0, reason, message, lines, data)
