"""`kaizen compare A B`: what the second run gains over the first, item by item."""

from argparse import Namespace

from kaizen.campaigns.marks import guard_states, known_campaigns, luck_note
from kaizen.commands.lab_log import number_words
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import EXIT_REFUSED
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible
from kaizen.lab.pairing import compared_runs, comparison_sentence, obstacles
from kaizen.lab.reading import COMPARABLE_HASHES, Choice, log_row, open_items
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import DONE
from kaizen.lab.workspace import find_workspace

ITEMS_SHOWN = 10


@command(
    "compare",
    "Compares two runs on the items that both measured: gain, standard error, interval, p, what moved, cost and time.",
    [Argument("a", "A", "id of the run that is compared with"), Argument("b", "B", "id of the run that is new")],
    "kaizen compare r0001 r0007",
    group="lab",
)
def command_compare(args: Namespace) -> Answer:
    """Exits 5 when the runs were not scored alike."""
    workspace = find_workspace()
    store = run_store(workspace)
    a, b = store.read_whole(args.a), store.read_whole(args.b)
    hindrances = obstacles(a, b)
    data: JsonObject = {"a": a["id"], "b": b["id"], "comparable": not hindrances, "obstacles": hindrances}
    if hindrances:
        message = f"not comparable: {visible(hindrances[0]['message'], 300)}"
        lines = [f"not comparable: {visible(each['message'], 300)}" for each in hindrances]
        lines += [
            f"  locked files that differ: {listed([visible(path, 80) for path in each['files']])}" for each in hindrances if "files" in each
        ]
        is_repeatable = hindrances[0]["code"] in [code for _, code, _ in COMPARABLE_HASHES]
        advice = "run the older commit anew with the dataset and the eval of now" if is_repeatable else ""
        return Answer(EXIT_REFUSED, hindrances[0]["code"], message, lines, data, advice)
    rows = [log_row(store, each, Choice()) for each in (a, b)]
    found = compared_runs(store, a, b, open_items(workspace, a))
    sides = dict(zip("ab", (row["result"] for row in rows), strict=True))
    states = known_campaigns(workspace, (a, b)).states
    notes, guards = [*comparison_notes(a, b, found), *filter(None, [luck_note(states, (b, a))])], guard_states(states, a, b)
    message = comparison_sentence(a, b, found)
    guarded = [f"  guard {visible(each['metric'], 40)}: {each['outcome'].replace('_', ' ')}" for each in guards]
    lines = [*(side_line(row) for row in rows), *figure_lines(found), *guarded, *(f"  note: {note}" for note in notes), message]
    lines = [visible(line, None) for line in lines]
    return Answer(0, "compared", message, lines, {**data, "results": sides, **found, "guards": guards, "notes": notes})


def side_line(row: JsonObject) -> str:
    """One of the two runs."""
    return f"{row['id']}  {str(row['commit'])[:7]}  {visible(row['title'] or row['variant'], 60)}  {number_words(row['result'])}"


def figure_lines(found: JsonObject) -> list[str]:
    """The figures of a comparison, a line each."""
    if not found["n"]:
        return []
    words = ("passes now", "passes no more") if found["is_pass_fail"] else ("better", "worse")
    up, down = found["better"], found["worse"]
    lines = [f"  {counted(found['n'], found['unit'])}, {up} better, {down} worse, {found['n'] - up - down} equal"]
    if found["interval"]:
        low, high = found["interval"]
        interval = f"95 % interval {low:+.4g} to {high:+.4g} ({found['method'].replace('_', ' ')})"
        lines.append(f"  gain {found['gain']:+.4g}, SE {found['se']:.4g}, {interval}")
        lines.append(f"  p {found['p']['two_sided']:.4g} either way, {found['p']['better']:.4g} for better (sign-flip test)")
        evidence = found["e_value"]["better"]
        lines.append(f"  e-value for better {'beyond measure' if evidence is None else f'{evidence:.4g}'}, valid whenever one stops")
    for name, word in zip(("gained", "lost"), words, strict=True):
        moved = found["moved"][name]
        ids = [visible(item, 40) for item in moved["items"]] + ([f"{moved['unnamed']} not open any more"] if moved["unnamed"] else [])
        lines += [f"  {word}: {listed(ids, ITEMS_SHOWN)}"] if ids else []
    ratios = [(name, found[key]["ratio"]) for name, key in (("cost", "cost_usd"), ("time", "latency_ms"))]
    return lines + [f"  {name} {'not known' if ratio is None else f'{ratio:.3g} times'}" for name, ratio in ratios]


def comparison_notes(a: JsonObject, b: JsonObject, found: JsonObject) -> list[str]:
    """What should be known before the figures are believed."""
    notes = [f"{each['id']} is {each['state']}: what is missing may be what went badly" for each in (a, b) if each["state"] != DONE]
    left = found["unpaired"]["a"] + found["unpaired"]["b"]
    notes += [f"{counted(left, 'item')} measured by one run only, left out"] if left else []
    notes += ["both runs measured the same files: any difference is noise"] if a["tree"] == b["tree"] else []
    if a["metric"]["aggregation"] != "mean":
        paired = f"the mean {found['paired_on']}" if found["paired_on"] == "score" else f"the share of {found['paired_on']}"
        notes.append(f"the figures are about {paired}, not about {a['metric']['aggregation']}")
    notes += ["fewer than 30: the interval is rough"] if 0 < found["n"] < 30 else []
    return notes
