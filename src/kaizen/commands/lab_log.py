"""`kaizen log` and `kaizen show`: the recorded runs of the lab, and one of them."""

from argparse import ArgumentTypeError, Namespace

from kaizen.campaigns.marks import campaign_marks, known_campaigns, run_mark
from kaizen.commands.run_system import result_words
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import KaizenError, UsageError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, dollars, duration, listed, quoted, visible
from kaizen.lab.aggregation import LINE_METRICS
from kaizen.lab.reading import (
    UNREADABLE,
    Choice,
    answered_lines,
    log_row,
    open_items,
    rank_rows,
    read_runs,
    shown_answer,
    worst_answers,
)
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import DONE, RunStore
from kaizen.lab.system import AGGREGATIONS, TYPED_KIND, load_system, system_ids
from kaizen.lab.workspace import Workspace, find_workspace
from kaizen.stats.aggregates import percentile

RUNS_SHOWN = 30
FAILURES_SHOWN = 5
TITLE_WIDTH = 40
UNRANKED_WORDS = {
    "other_dataset": "scored on another dataset",
    "other_eval": "scored by another eval",
    "other_metric": "scored by another metric",
    "values_missing": "some items have no value",
    "no_values": "no item has a value",
}


def percentile_argument(text: str) -> float:
    """*text* as a number above 0, at most 100. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 100:
        raise ArgumentTypeError(f"{quoted(text)} is not a number above 0, at most 100")
    return number


def amount_argument(text: str) -> int:
    """*text* as a whole number from 0. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 0")
    return int(text)


LOG_ARGUMENTS = [
    Argument("--system", "ID", "only runs of this system", {"default": ""}),
    Argument("--variant", "NAME", "only runs of this variant", {"default": ""}),
    Argument(
        "--metric", "NAME", f"the score by its name, another metric of the items, {' or '.join(LINE_METRICS)} (default: the run's own)"
    ),
    Argument("--aggregation", "A", f"how items become one number: {', '.join(AGGREGATIONS)}", {"choices": AGGREGATIONS, "metavar": "A"}),
    Argument("--percentile", "P", "which one, with --aggregation percentile", {"type": percentile_argument}),
    Argument(
        "--direction", "D", "higher or lower is better (default: as the system says)", {"choices": ("higher", "lower"), "metavar": "D"}
    ),
    Argument("--rank", "", "best first; what cannot be ranked follows, with the reason"),
    Argument(
        "--limit", "N", f"the newest N, or with --rank the first N; 0: all ({RUNS_SHOWN}; with --json all)", {"type": amount_argument}
    ),
]


@command(
    "log",
    "Lists the recorded runs, newest last, or ranks those that can be compared; what is not known is never shown as 0.",
    LOG_ARGUMENTS,
    "kaizen log --system refunds --rank\n"
    "kaizen log --metric accuracy --aggregation mean --rank\n"
    "kaizen log --metric latency_ms --aggregation percentile --percentile 95",
    group="lab",
)
def command_log(args: Namespace) -> Answer:
    """One row a run."""
    workspace = find_workspace()
    if args.system and args.system not in system_ids(workspace):
        load_system(workspace, args.system)
    store, choice = run_store(workspace), log_choice(args)
    documents = read_runs(store, args.system, args.variant)
    limit = args.limit if args.limit is not None else 0 if args.json else RUNS_SHOWN
    if args.rank:
        names = sorted({document["system"] for document in documents if document["state"] != UNREADABLE})
        if len(names) > 1:
            raise UsageError(
                "runs of several systems have no common order",
                f"name one with --system: {listed([visible(name, 40) for name in names], 20)}",
            )
        rows = rank_rows([log_row(store, document, choice) for document in documents], documents, choice)
        shown = rows[:limit] if limit else rows
    else:
        shown = [log_row(store, document, choice) for document in (documents[-limit:] if limit else documents)]
    best = best_runs(workspace, {row["system"] for row in shown})
    by_id = {document["id"]: document for document in documents}
    campaigns = known_campaigns(workspace, [by_id[row["id"]] for row in shown])
    for row in shown:
        row["is_best"] = row["id"] in best
        row["campaign"] = run_mark(campaigns.states, by_id[row["id"]])
    marks = [campaign_marks(name, state) for name, state in campaigns.states.items()]
    lines = [log_line(row, bool(args.rank)) for row in shown]
    lines += [line for mark in marks for line in mark_lines(mark)] + [f"cannot be trusted: {problem}" for problem in campaigns.problems]
    message = log_message(documents, shown, bool(args.rank))
    data = {"count": len(documents), "campaigns": marks, "runs": []}
    return Answer(0, "listed", message, [*(visible(line, None) for line in lines), message], data, rows=shown)


def log_choice(args: Namespace) -> Choice:
    """The metric that *args* choose. Raises UsageError for a percentile without its aggregation."""
    if args.percentile is not None and args.aggregation != "percentile":
        raise UsageError("--percentile goes with --aggregation percentile")
    if args.aggregation == "percentile" and args.percentile is None:
        raise UsageError("--aggregation percentile needs to know which", "add --percentile 95")
    return Choice(args.metric, args.aggregation, args.percentile, args.direction)


def best_runs(workspace: Workspace, systems: set[str]) -> set[str]:
    """The runs that the *systems* name as their best; none for a system that cannot be read here."""
    found = set()
    for name in systems:
        try:
            found.add(load_system(workspace, name).best_run)
        except KaizenError:
            continue
    return found - {""}


def log_line(row: JsonObject, is_ranked: bool) -> str:
    """One run for the terminal."""
    place = [f"{row['rank'] or '-':>4}"] if is_ranked else []
    title = visible(row["title"] or row["variant"] or "", TITLE_WIDTH)
    if row["result"] is None:
        return "  ".join([*place, f"{row['id']:<6}", f"cannot be read: {visible(row['message'])}"])
    state = [] if row["state"] == DONE else [row["state"].replace("_", " ")]
    kinds = [*state, *(word for word in ("diagnostic", "limited") if row[word])]
    reason = row["unranked"] if is_ranked and not kinds and row["result"]["status"] == "available" else None
    further = [listed(kinds)] if kinds else []
    further += [UNRANKED_WORDS.get(reason, reason.replace("_", " "))] if reason else []
    further += [row["verdict"]] if row["verdict"] not in (None, "unjudged") else []
    further += mark_words(row["campaign"]) if row.get("campaign") else []
    further += ["best run"] if row["is_best"] else []
    further += [dollars(row["cost_usd"])] if row["cost_usd"] is not None else []
    further += [duration(row["seconds"])] if row["seconds"] is not None else []
    return "  ".join(
        [*place, f"{row['id']:<6}", str(row["commit"])[:7], f"{title:<{TITLE_WIDTH}}", number_words(row["result"]), ", ".join(further)]
    )


def mark_words(mark: JsonObject) -> list[str]:
    """What a campaign says of a run: stage, idea, label, z, verdict."""
    z = f"z {mark['z']:+.2f}" if mark["z"] is not None else ""
    verdict = str(mark["verdict"] or "").replace("_", " ")
    named = [visible(str(mark[name]), 40) if mark[name] else "" for name in ("idea", "label")]
    return [word for word in (f"{mark['campaign']} {mark['stage']}", *named, z, verdict) if word]


def mark_lines(mark: JsonObject) -> list[str]:
    """Reference, leader and luck line of a campaign, a row each."""
    leader, reference, name = mark["leader"], mark["reference"], mark["id"]
    gain = leader["gain_over_reference"]
    over = "not known" if gain is None else f"{gain:+.4g} over the reference on fresh trials"
    luck = "not known" if mark["luck_line"] is None else f"{mark['luck_line']:+.4g}, the best of {mark['variants']} useless variants"
    return [
        f"{name + ' reference':<16}  {str(reference['commit'])[:7]}  {visible(reference['variant'], TITLE_WIDTH)}",
        f"{name + ' leader':<16}  {str(leader['commit'])[:7]}  {visible(leader['variant'], TITLE_WIDTH)}, {over}",
        f"{name + ' luck line':<16}  {luck}",
    ]


def number_words(result: JsonObject) -> str:
    """'accuracy 0.75 (30 of 32)' in the width of a column, or why there is no number."""
    name = visible(result["metric"], 24)
    if result["status"] != "available":
        return f"{name} unavailable: {UNRANKED_WORDS.get(result['reason'], result['reason'].replace('_', ' '))}"
    part = "" if result["n"] == result["planned"] else f" ({result['n']:,} of {result['planned']:,})"
    return f"{name} {result['value']:.6g}{part}"


def log_message(documents: list[JsonObject], shown: list[JsonObject], is_ranked: bool) -> str:
    """How many runs, how many of them ranked or not shown."""
    parts = [counted(len(documents), "run")]
    if is_ranked:
        ranked = [row for row in shown if row["rank"]]
        parts.append(f"{len(ranked)} ranked" if len(shown) == len(documents) else f"{len(ranked)} ranked shown")
        parts += ["the best of many looks better than it is: see kaizen compare"] if len(ranked) > 2 else []
    elif len(shown) < len(documents):
        parts.append(f"the newest {len(shown)} shown; --limit 0 shows all")
    return "; ".join(parts)


# --- One run ---------------------------------------------------------------------------


@command(
    "show",
    "Shows one run: what was tried, from which commit, its result, cost and time, and the worst answers.",
    [
        Argument("run", "RUN", "id of the run, such as r0042"),
        Argument(
            "--failures", "N", f"how many of the worst answers ({FAILURES_SHOWN})", {"type": amount_argument, "default": FAILURES_SHOWN}
        ),
    ],
    "kaizen show r0042\nkaizen show r0042 --failures 20",
    group="lab",
)
def command_show(args: Namespace) -> Answer:
    """Reads only."""
    workspace = find_workspace()
    store = run_store(workspace)
    document = store.read_whole(args.run)
    good, items = good_score(workspace, document), open_items(workspace, document)
    worst = worst_answers(store, document, good)
    failures = [shown_answer(line, items.may_name(line["item"])) for line in worst[: args.failures]]
    times = latency_document(store, document)
    row = log_row(store, document, Choice())
    row["is_best"] = row["id"] in best_runs(workspace, {row["system"]})
    lines = [*show_lines(document, row, times), *failure_lines(failures, len(worst))]
    selected = [name for name in document["population"]["selected_item_ids"] if items.may_name(name)]
    told = {**document, "population": {**document["population"], "selected_item_ids": selected}}
    data = {"run": told, "is_best": row["is_best"], "unranked": row["unranked"], "latency_ms": times}
    return Answer(0, "shown", lines[0], lines, {**data, "failures": failures, "failures_in_all": len(worst)})


def good_score(workspace: Workspace, document: JsonObject) -> float | None:
    """The best score there can be, as system.md says; None when it does not: to read, no code of a typed system is run."""
    try:
        system = load_system(workspace, document["system"])
    except KaizenError:
        return None
    metric = system.metric
    if system.kind == TYPED_KIND or metric.name != document["metric"]["name"]:
        return None
    return metric.maximum if metric.is_higher_better else metric.minimum


def latency_document(store: RunStore, document: JsonObject) -> JsonObject:
    """{n, p50, p95} of the milliseconds that answers took; None for none."""
    times = [line["latency_ms"] for line in answered_lines(store, document) if line["latency_ms"] is not None]
    return {"n": len(times), **{f"p{place}": percentile(times, place).value for place in (50, 95)}}


def show_lines(document: JsonObject, row: JsonObject, times: JsonObject) -> list[str]:
    """What is known of a run, a line each."""
    state = document["state"].replace("_", " ") + (f" ({visible(document['message'])})" if document.get("message") else "")
    head = f"{document['id']}: {visible(document['title'] or document['variant'])}, {state}"
    result = result_words({**document, "result": row["result"]})
    counts = listed([f"{number:,} {status}" for status, number in (document.get("counts") or {}).items() if number])
    commit = document["commit"]
    place = f" on {visible(commit['branch'], 60)}" if commit["branch"] else ""
    kinds = [word for word in ("diagnostic", "limited") if document[word]] + ["best run"] * row["is_best"]
    told = [f"{visible(name, 40)} {value:.6g}" for name, value in (document.get("metrics") or {}).items() if value is not None]
    locked, hashes = document["hashes"]["locked"], document["hashes"]
    facts = [
        ("system", f"{document['system']}, variant {visible(document['variant'], 80)}"),
        ("hypothesis", visible(document["hypothesis"], 400)),
        ("description", visible(document["description"], 400)),
        ("result", result + (f"; not ranked: {row['unranked'].replace('_', ' ')}" if row["unranked"] else "")),
        ("answers", counts),
        ("told by eval", listed(told, 20)),
        ("cost", dollars(document["cost_usd"]) if document.get("cost_usd") is not None else "not known"),
        ("time", time_words(document, times)),
        ("commit", f"{str(commit['hash'])[:12]}{place}, tree {str(document['tree'])[:12]}"),
        ("scored by", f"dataset {hashes['dataset'][7:19]}, eval {hashes['eval'][7:19]}, {counted(len(locked), 'locked file')}"),
        (
            "processes",
            {"own_process": "eval and system apart", "in_process": "the eval imports the system, which could patch it"}.get(
                document["separation"], document["separation"].replace("_", " ")
            ),
        ),
        ("verdict", document["verdict"].replace("_", " ")),
        ("kind", listed(kinds)),
        ("attempt", str(document["attempt"]) if document["attempt"] > 1 else ""),
        ("started", f"{visible(document.get('started_at') or document['created_at'], 40)}"),
    ]
    return [visible(line, None) for line in [head, *(f"  {name:<12}  {text}" for name, text in facts if text)]]


def time_words(document: JsonObject, times: JsonObject) -> str:
    """How long the run took, and half and 95 % of the answers at most."""
    parts = [duration(document["seconds"])] if document.get("seconds") is not None else []
    if times["n"]:
        parts.append(f"answers {duration(times['p50'] / 1000)} (half), {duration(times['p95'] / 1000)} (95 %)")
    return ", ".join(parts)


def failure_lines(failures: list[JsonObject], in_all: int) -> list[str]:
    """The worst answers, each on a line with what was said about it below."""
    if not failures:
        return (
            ["  every answer is as good as can be"]
            if not in_all
            else [f"  {counted(in_all, 'answer')} not as good as can be: --failures shows them"]
        )
    lines = [f"  the worst of {counted(in_all, 'answer')} that could be better:"]
    for line in failures:
        if line["item"] is None:
            lines.append(f"    (an item that is not open any more)  {line['status']}")
            continue
        number = f"  score {line['score']:.6g}" if line.get("score") is not None else ""
        nth = f", trial {line['trial']}" if line["trial"] > 1 else ""
        nth += f", pass {line['pass']}" if line["pass"] > 1 else ""
        reason = f" ({visible(line['reason'], 60)})" if line.get("reason") else ""
        lines.append(f"    {visible(line['item'], 60)}{nth}  {line['status'].replace('_', ' ')}{reason}{number}")
        lines += [f"      {key}: {visible(line[key], 200)}" for key in ("feedback", "output") if key in line]
    return lines
