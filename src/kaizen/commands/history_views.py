"""`kaizen history list`, `show`, `diff`, `validate`, `anchor`: reading what was recorded."""

from argparse import Namespace

from kaizen.commands.history import HISTORY, RUN, required_history
from kaizen.commands.reporting import rate_text
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import EXIT_NO, MAX_BREACHES_SHOWN, RefusedError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, percent, quoted, visible
from kaizen.history.archive import ArchiveError
from kaizen.history.ledger import RESTORE_HINT, anchor_digest
from kaizen.history.reading import (
    History,
    HistoryRun,
    cohort_difference,
    difference_text,
    find_run,
    load_history,
    run_outcomes,
    run_problems,
    run_row,
)
from kaizen.history.validation import history_problems

MOVED_SHOWN = 10


@command(
    "history list",
    "Lists the recorded runs, oldest first: version, cohort, pass rate, recommendation, decision, champion.",
    [HISTORY],
    "kaizen history list",
    group="history",
)
def command_history_list(args: Namespace) -> Answer:
    """One line a run."""
    history = load_history(required_history(args.history))
    rows = [run_row(history, run) for run in history.runs.values()]
    champion = history.champion()
    version = quoted(champion.manifest.get("agent_version", "?")) if champion else ""
    message = f"{counted(len(rows), 'run')}; " + (f"champion: {champion.id}, agent version {version}" if champion else "no champion yet")
    data = {
        "history": shown_path(history.folder),
        "runs": rows,
        "champion": champion.id if champion else None,
        "entries": len(history.entries),
    }
    return Answer(0, "listed", message, [*map(history_line, rows), message], data)


def history_line(row: JsonObject) -> str:
    """One run for the terminal."""
    if row["problem"]:
        return f"{row['id']}  cannot be trusted: {row['problem']}"
    rate = row["rates"]["candidate"]["rate"]
    parts = [
        row["kind"],
        visible(row["agent_version"], 40),
        row["cohort"],
        percent(rate["numerator"], rate["denominator"]) if rate else "not measured",
    ]
    parts += [row["recommendation"]] if row["recommendation"] else []
    decision = row["decision"]
    parts += [f"decision {decision['status']}"] if decision else []
    parts += ["superseded"] if row["superseded_by"] else []
    parts += ["champion"] if row["is_champion"] else ["promoted"] if row["promoted_at"] else []
    return visible(f"{row['id']}  {', '.join(parts)}", None)


@command(
    "history show",
    "Shows one run: what it is, its rates, the recommendation, who decided, and whether its files are still what was recorded.",
    [RUN, HISTORY],
    "kaizen history show champion",
    group="history",
)
def command_history_show(args: Namespace) -> Answer:
    """Exits 1 when a file of the run is not what was recorded."""
    history = load_history(required_history(args.history))
    run = find_run(history, args.run)
    problems = run_problems(history, run)
    row = run_row(history, run)
    lines = [history_line(row)]
    if run.manifest:
        lines.append(f"  label {quoted(row['label'])}, improvement {quoted(row['improvement'])}, recorded {row['recorded_at']}")
        lines += [f"  {role:<9}  {rate_text(row['rates'][role])}" for role in ("baseline", "candidate") if role in row["rates"]]
        lines += [f"  {visible(str(reason['text']), 300)}" for reason in row["reasons"]]
        lines += [f"  compared with {row['compared_with']}"] if row["compared_with"] else []
        lines += decision_lines(row["decision"])
        lines += [f"  promoted {at}" for at in row["promoted_at"]]
    files = [{key: entry[key] for key in ("name", "sha256", "bytes")} for entry in run.manifest.get("files", [])]
    lines.append(f"  files: {len(files)}, " + ("every hash verifies" if not problems else f"{counted(len(problems), 'problem')}:"))
    lines = [visible(line, None) for line in [*lines, *(f"    {problem}" for problem in problems)]]
    reason = "hash_mismatch" if problems else "shown"
    return Answer(EXIT_NO if problems else 0, reason, lines[0], lines, {"run": row, "files": files, "problems": problems})


def decision_lines(decision: JsonObject | None) -> list[str]:
    """Who decided what, and why."""
    if decision is None or decision["status"] == "pending":
        return [f"  decision: {'pending' if decision else 'none'}"]
    via = f", from inside {visible(decision['via'], 40)}" if decision["via"] else ""
    lines = [f"  decision: {decision['status']} by {quoted(decision['decided_by'])} at {visible(decision['decided_at'], 40)}{via}"]
    lines += [f"    because {quoted(decision['rationale'], 300)}"]
    return lines + [f"    on condition that {quoted(condition, 300)}" for condition in decision["conditions"]]


@command(
    "history diff",
    "Compares two runs case by case; runs of different cohorts are not subtracted, it is said how the cohorts differ.",
    [RUN._replace(name="run", value="RUN"), Argument("other", "RUN", "the run it is compared with"), HISTORY],
    "kaizen history diff 2 4",
    group="history",
)
def command_history_diff(args: Namespace) -> Answer:
    """Goes from the first run to the second."""
    history = load_history(required_history(args.history))
    before, after = find_run(history, args.run), find_run(history, args.other)
    for run in (before, after):
        problems = run_problems(history, run)
        if problems:
            raise RefusedError(problems[0], "run: kaizen history validate", "hash_mismatch")
    lines = [f"  {run.id}  {rate_text(run.manifest['rates']['candidate'])}" for run in (before, after)]
    data: JsonObject = {"from": run_row(history, before), "to": run_row(history, after)}
    if before.cohort() != after.cohort():
        difference = cohort_difference(history, after, before)
        message = f"not comparable: cohorts {before.cohort()} and {after.cohort()} differ: {difference_text(difference)}"
        return Answer(0, "other_cohort", message, [message, *lines], {**data, "cohorts": difference})
    moved = moved_cases(history, before, after)
    names = {"gained": "passes more often", "lost": "passes less often", "unmeasured": "measured on one side only"}
    counts = {kind: len(moved[kind]["ids"]) + moved[kind]["holdout"] for kind in names}
    message = f"{before.id} to {after.id}: " + ", ".join(f"{counts[kind]} {names[kind]}" for kind in names)
    for kind, words in names.items():
        ids = [visible(name, 60) for name in moved[kind]["ids"]]
        ids += [counted(moved[kind]["holdout"], "holdout case")] if moved[kind]["holdout"] else []
        lines += [f"  {words}: {listed(ids, MOVED_SHOWN)}"] if ids else []
    return Answer(0, "compared", message, [message, *lines], {**data, "cases": moved})


def moved_cases(history: History, before: HistoryRun, after: HistoryRun) -> JsonObject:
    """{"gained", "lost", "unmeasured": {"ids", "holdout": how many that are not named}} of the cases of two runs of one cohort."""
    found: JsonObject = {kind: {"ids": [], "holdout": 0} for kind in ("gained", "lost", "unmeasured")}
    shares = {outcome.id: outcome.candidate for outcome in run_outcomes(history, before)}
    outcomes = list(run_outcomes(history, after))
    if shares.keys() != {outcome.id for outcome in outcomes}:
        message = f"{before.id} and {after.id} are of one cohort, and their outcomes name other cases"
        raise ArchiveError(message, RESTORE_HINT, "invalid_file")
    for outcome in outcomes:
        (passed, valid), (earlier, counted_before) = outcome.candidate, shares[outcome.id]
        if not valid or not counted_before:
            kind = "unmeasured" if valid or counted_before else ""
        else:
            difference = passed * counted_before - earlier * valid
            kind = "gained" if difference > 0 else "lost" if difference < 0 else ""
        if kind and outcome.is_holdout:
            found[kind]["holdout"] += 1
        elif kind:
            found[kind]["ids"].append(outcome.id)
    return found


@command(
    "history validate",
    "Checks every byte of the history and every promotion by the rules; exits 1 and names what was changed, removed or added.",
    [
        Argument("--anchor", "DIGEST", "a digest that `history anchor` printed earlier: the history must still extend it"),
        HISTORY,
    ],
    "kaizen history validate --anchor 4-9f86d081884c7d659a2feaa0",
    group="history",
)
def command_history_validate(args: Namespace) -> Answer:
    """Reads everything, writes nothing."""
    history, problems = history_problems(required_history(args.history), args.anchor)
    shown = [
        {"path": each.path, "line": each.line or None, "code": each.code, "message": each.message, "hint": each.hint} for each in problems
    ]
    data: JsonObject = {
        "history": shown_path(history.folder),
        "entries": len(history.entries),
        "runs": len(history.runs),
        "problems": shown,
    }
    if problems:
        lines = [visible(f"{problem.text()} [{problem.hint}]", None) for problem in problems[:MAX_BREACHES_SHOWN]]
        lines += [f"and {len(problems) - MAX_BREACHES_SHOWN} more"] if len(problems) > MAX_BREACHES_SHOWN else []
        return Answer(EXIT_NO, problems[0].code, problems[0].text(), lines, data)
    extends = f", extends {args.anchor.strip()}" if args.anchor is not None else ""
    sizes = f"{counted(len(history.entries), 'entry', 'entries')}, {counted(len(history.runs), 'run')}"
    message = f"{shown_path(history.folder)}: {sizes}, every hash verifies{extends}"
    return Answer(0, "valid", message, [], {**data, "anchor": anchor_digest(history.entries)})


@command(
    "history anchor",
    "Prints a short digest of the history, to be kept elsewhere; `history validate --anchor` proves that the history still extends it.",
    [HISTORY],
    "kaizen history anchor",
    group="history",
)
def command_history_anchor(args: Namespace) -> Answer:
    """The digest alone, so that a script can use it."""
    history = load_history(required_history(args.history))
    digest = anchor_digest(history.entries)
    return Answer(0, "anchored", digest, [digest], {"anchor": digest, "entries": len(history.entries)})
