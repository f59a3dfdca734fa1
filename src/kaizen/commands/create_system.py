"""`kaizen create system ID`: a new system of the lab to fill in."""

from argparse import Namespace

from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.files import shown_path
from kaizen.lab.scaffold import scaffold_system
from kaizen.lab.workspace import find_workspace


@command(
    "create system",
    "Makes kaizen/systems/ID with an eval that runs at once, three items and a stand-in for the system; never overwrites.",
    [Argument("id", "ID", "id of the system: letters, digits, '_', '-'")],
    "kaizen create system refunds",
    group="lab",
)
def command_create_system(args: Namespace) -> Answer:
    """Makes the folder and says what to do with it."""
    files = [shown_path(path) for path in scaffold_system(find_workspace(), args.id)]
    message = f"made system {args.id}"
    following = f"git add -A && git commit -m 'system {args.id}', then kaizen run --system {args.id} --variant first"
    return Answer(0, "created", message, [message, *(f"  {name}" for name in files)], {"system": args.id, "files": files}, following)
