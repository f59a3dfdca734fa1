"""`kaizen init NAME`: a new improvement to fill in; without a name, a workspace."""

from argparse import Namespace

from kaizen.cases.scaffold import scaffold_improvement
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.files import shown_path
from kaizen.lab.workspace import init_workspace


@command(
    "init",
    "Makes improvements/NAME with an issue to describe, two example cases and one evaluator; never overwrites. "
    "Without NAME: kaizen/, the workspace of the lab.",
    [Argument("name", "NAME", "name of the improvement: letters, digits, '-', '_', '.'", {"nargs": "?"})],
    "kaizen init refund\nkaizen init",
)
def command_init(args: Namespace) -> Answer:
    """Makes the folder and says what to do with it."""
    if args.name is None:
        return workspace_answer()
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


def workspace_answer() -> Answer:
    """Makes the workspace in the current folder, or what is missing of it."""
    workspace, made = init_workspace(".")
    files = [shown_path(path) for path in made]
    folder = shown_path(workspace.path("kaizen"))
    message = f"made the workspace {folder}" if made else f"the workspace {folder} is there already; nothing was changed"
    lines = [message, *(f"  {name}" for name in files)]
    return Answer(0, "created" if made else "existing", message, lines, {"workspace": folder, "files": files}, "kaizen create system ID")
