"""`kaizen init NAME`: a new improvement folder to fill in."""

from argparse import Namespace

from kaizen.cases.scaffold import scaffold_improvement
from kaizen.commands.table import Answer, Argument, command


@command(
    "init",
    "Makes improvements/NAME with an issue to describe, two example cases and one evaluator; never overwrites.",
    [Argument("name", "NAME", "name of the improvement: letters, digits, '-', '_', '.'")],
    "kaizen init refund",
)
def command_init(args: Namespace) -> Answer:
    """Makes the folder and says what to do with it."""
    improvement, files, includes = scaffold_improvement(args.name)
    folder = improvement.shown()
    message = f"made {folder} with two example cases and one evaluator"
    lines = [
        message,
        f"  1. {folder}/issue.md: what went wrong, and what good looks like",
        f"  2. {folder}/test_cases.jsonl: your cases in place of the two, one JSON object a line",
        f"  3. {folder}/evaluation.json: what a good answer must show (kaizen evaluators lists the types)",
        *[f"  {name} is included: those cases are run as well" for name in includes],
    ]
    data = {"improvement": folder, "files": [improvement.shown(name) for name in files], "include": includes}
    following = f"kaizen validate {args.name}, then kaizen run {args.name} --stage baseline -- COMMAND"
    return Answer(0, "created", message, lines, data, following)
