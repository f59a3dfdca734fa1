"""`kaizen guide confirm`: what only a person can say about a step of the guide."""

from argparse import Namespace

from kaizen.commands.decide import calling_agent
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import UsageError
from kaizen.foundation.text import visible
from kaizen.lab.system import system_ids
from kaizen.lab.workspace import Workspace, find_workspace
from kaizen.skills.guide_files import STATEMENTS_FILE, GuideView, Statement, add_statement
from kaizen.skills.guide_steps import GUIDE_STEPS

SYSTEM_OPTION = Argument("--system", "ID", "the system (the only one, when there is one)", {"default": ""})


def guide_system(workspace: Workspace, name: str) -> str:
    """*name*, or the only system of *workspace*. Raises UsageError."""
    known = system_ids(workspace)
    if not name and len(known) != 1:
        raise UsageError("which system?", f"--system ID; there are: {', '.join(known)}" if known else "make one: kaizen create system ID")
    return name or known[0]


@command(
    "guide confirm",
    "Records what a person said about a step of the guide that no file can show: who, when, in which words.",
    [
        Argument("step", "STEP", "G1 … G18", {"choices": [step.id for step in GUIDE_STEPS], "metavar": "STEP"}),
        SYSTEM_OPTION,
        Argument("--by", "NAME", "who says it", {"required": True}),
        Argument("--because", "TEXT", "what they said", {"required": True}),
        Argument("--count", "N", "how many transcripts they read (G14)", {"type": int, "default": None}),
    ],
    'kaizen guide confirm G14 --system refunds --by "Ann" --count 12 --because "read all 12; two grades were wrong and are fixed"',
    group="skills",
)
def command_guide_confirm(args: Namespace) -> Answer:
    """Appends the statement."""
    if not args.by.strip() or not args.because.strip():
        raise UsageError("--by and --because must not be empty", "say who says it, and what")
    if args.count is not None and args.count < 0:
        raise UsageError("--count: is at least 0")
    workspace = find_workspace()
    view = GuideView(workspace, guide_system(workspace, args.system))
    line = add_statement(view, Statement(args.step, args.by, args.because, args.count, calling_agent()))
    message = f"{args.step}: recorded what {visible(args.by, 60)} said, in {view.shown(STATEMENTS_FILE)}"
    lines = [message, *([f"  recorded from inside a coding agent: {line['via']}"] if line["via"] else [])]
    return Answer(0, "recorded", message, lines, {"statement": line}, f"kaizen doctor --guide --system {view.name}")
