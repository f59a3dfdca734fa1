"""`kaizen create view ID`: a page of answers or of items, to be adapted."""

import os
from argparse import Namespace

from kaizen.commands.table import Answer, Argument, command
from kaizen.embed import asset_text
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.files import create_file, shown_path
from kaizen.lab.system import load_system
from kaizen.lab.workspace import find_workspace

TRACE_VIEW = asset_text("lab/view/trace.js")
ITEM_VIEW = asset_text("lab/view/dataset-item.js")
VIEW_TEMPLATES = {"trace": TRACE_VIEW, "dataset-item": ITEM_VIEW}


@command(
    "create view",
    "Makes trace.js or dataset-item.js in the folder of a system: a page of answers or of items, to be adapted; never overwrites.",
    [
        Argument("id", "ID", "id of the system"),
        Argument(
            "--type",
            "T",
            "trace: what a run answered; dataset-item: the items",
            {"choices": tuple(VIEW_TEMPLATES), "metavar": "T", "required": True},
        ),
    ],
    "kaizen create view refunds --type trace",
    group="lab",
)
def command_create_view(args: Namespace) -> Answer:
    """Makes the file and says how it is used."""
    system = load_system(find_workspace(), args.id)
    path = os.path.join(system.folder, f"{args.type}.js")
    shown = shown_path(path)
    if not create_file(path, VIEW_TEMPLATES[args.type].replace("SYSTEM", system.id)):
        raise RefusedError(f"{shown}: is there already; nothing was changed", "remove it first, if it is to be made anew", "existing_file")
    what = "kaizen/.kaizen/runs/RUN/items.jsonl" if args.type == "trace" else system.dataset or "ITEMS.jsonl"
    message = f"made {shown}"
    return Answer(0, "created", message, [message], {"system": system.id, "file": shown}, f"node {shown} {what} > page.html")
