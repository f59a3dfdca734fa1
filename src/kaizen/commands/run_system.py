"""`kaizen run --system ID`: a scored run of the commit at hand; and `kaizen resume`."""

from argparse import ArgumentTypeError, Namespace

from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_INCOMPLETE, EXIT_INTERRUPTED, UsageError
from kaizen.foundation.jsonio import JsonObject, without_surrogates
from kaizen.foundation.text import counted, dollars, duration, listed, quoted, visible
from kaizen.lab.runstore import BROKEN_OFF, DONE, TAINTED
from kaizen.lab.workspace import find_workspace

MOST_ITEMS = 2**31 - 1
LONGEST_VARIANT = 200


def items_argument(text: str) -> int:
    """*text* as a whole number from 1 to 2,147,483,647. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 10 or not 1 <= int(text) <= MOST_ITEMS:
        raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 1 to {MOST_ITEMS:,}")
    return int(text)


SYSTEM_ARGUMENTS = [
    Argument("--system", "ID", "a run of this system of the lab, in place of IMPROVEMENT and all above", {"default": ""}),
    Argument("--variant", "NAME", "with --system: name of the idea that the commit at hand tries", {"default": ""}),
    Argument("--title", "T", "with --system: one line that says what is tried (default: the variant's name)", {"default": ""}),
    Argument("--description", "D", "with --system: more about it", {"default": ""}),
    Argument("--hypothesis", "H", "with --system: if …, then …, because …", {"default": ""}),
    Argument("--diagnostic", "", "with --system: only to look; the run can never be the best one"),
    Argument("--max-items", "N", "with --system: only the first N items; the run can never be the best one", {"type": items_argument}),
]


def run_of_system(args: Namespace, others: list[str]) -> Answer:
    """Starts the run that *args* describe. Raises UsageError when *others*, options for improvements, were given as well."""
    from kaizen.lab.execution import RunOptions, start_run

    if others:
        raise UsageError(f"{listed(others)} cannot go with --system", "the eval of the system says how items are run")
    if not args.variant or len(args.variant) > LONGEST_VARIANT or not args.variant.isprintable():
        message = "--variant NAME is missing" if not args.variant else f"--variant {quoted(args.variant)} is no name"
        raise UsageError(message, f"it names the idea that this commit tries, in up to {LONGEST_VARIANT} printable characters")
    title, description, hypothesis = (without_surrogates(text) for text in (args.title, args.description, args.hypothesis))
    options = RunOptions(args.system, args.variant, title, description, hypothesis, bool(args.diagnostic), args.max_items)
    return outcome_answer(*start_run(find_workspace(), options))


@command(
    "resume",
    "Goes on with a run of the lab that did not complete, or begins it anew from its commit.",
    [
        Argument("run", "RUN", "id of the run, such as r0042"),
        Argument("--restart", "", "begin anew; what was there is moved to attempt-N"),
    ],
    "kaizen resume r0042\nkaizen resume r0042 --restart",
    group="lab",
)
def command_resume(args: Namespace) -> Answer:
    """Goes on with the run; exit codes as for `kaizen run --system`."""
    from kaizen.lab.execution import resume_run

    return outcome_answer(*resume_run(find_workspace(), args.run, bool(args.restart)))


def outcome_answer(document: JsonObject, notes: list[str]) -> Answer:
    """What is said of a run that has ended: exit 0 completed, 130 interrupted, else 4."""
    run, state = document["id"], document["state"]
    message = f"{run}: {state}" + (f", {visible(document['message'])}" if document["message"] else "")
    message += f"; {result_words(document)}"
    following = {DONE: "", TAINTED: f"kaizen resume {run} --restart"}.get(state, f"kaizen resume {run}")
    code = EXIT_DONE if state == DONE else EXIT_INTERRUPTED if state == BROKEN_OFF else EXIT_INCOMPLETE
    lines = [f"{message}, {duration(document['seconds'])}", *(f"  {line}" for line in [*further_words(document), *notes])]
    return Answer(code, document["reason"] or state, message, lines, {"run": document}, following)


def result_words(document: JsonObject) -> str:
    """'accuracy 0.75 (mean of 3 of 4 items)', or why there is no number."""
    metric, result = document["metric"], document["result"]
    name = visible(metric["name"], 40)
    if result["status"] != "available":
        return f"{name} unavailable: {result['reason'].replace('_', ' ')}"
    return f"{name} {result['value']:.6g} ({metric['aggregation']} of {result['n']:,} of {counted(result['planned'], 'item')})"


def further_words(document: JsonObject) -> list[str]:
    """What else is to be known about the run: what kind it is, how items ended, cost, source."""
    counts = listed([f"{number:,} {status}" for status, number in document["counts"].items() if number])
    kind = [word for word in ("diagnostic", "limited") if document[word]]
    cost = [] if document["cost_usd"] is None else [f"cost {dollars(document['cost_usd'])}"]
    return [
        f"{counts}; commit {str(document['commit']['hash'])[:12]}; {listed([*kind, document['verdict']])}",
        *cost,
    ]
