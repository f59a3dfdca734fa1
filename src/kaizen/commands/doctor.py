"""`kaizen doctor`: what is here and what is blocked; `--guide`: which steps are done."""

from argparse import Namespace

from kaizen.commands.decide import calling_agent
from kaizen.commands.guide import SYSTEM_OPTION, guide_system
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import InputError, UsageError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed
from kaizen.lab.system import system_ids
from kaizen.lab.workspace import find_workspace
from kaizen.skills.guide_files import GuideView
from kaizen.skills.guide_steps import GUIDE_STEPS, guide_rows, next_row
from kaizen.skills.surroundings import BLOCKED, LIMITED, grants, surroundings

MARKS = {True: "done", False: "to do", None: "unknown"}


@command(
    "doctor",
    "Looks at Python, git, the workspace, the clients and the sandbox, and says what is blocked and what to grant; changes nothing.",
    [
        Argument("--guide", "", "say instead which of the 18 steps of the guide are done, from the files alone"),
        SYSTEM_OPTION,
    ],
    "kaizen doctor\nkaizen doctor --guide --system refunds",
    group="skills",
)
def command_doctor(args: Namespace) -> Answer:
    """Exit code 1 when something is blocked; the guide's always 0, as it only tells."""
    if args.guide:
        return guide_answer(args.system)
    if args.system:
        raise UsageError("--system goes with --guide")
    checks = surroundings(calling_agent())
    blocked = [check for check in checks if check.state == BLOCKED]
    limited = [check for check in checks if check.state == LIMITED]
    lines = []
    for check in checks:
        lines.append(f"{check.state:<8} {check.id:<10} {check.found}")
        lines += [f"{'':<19} to do: {check.todo}"] if check.todo else []
    allowed = grants(checks)
    for client, told in allowed.items():
        lines += [f"what to grant to {client}:", *[f"  {each}" for each in told]]
    message = f"blocked: {listed(each.id for each in blocked)}" if blocked else "nothing is blocked"
    message += f"; limited: {listed(each.id for each in limited)}" if limited else ""
    data: JsonObject = {
        "driver": calling_agent() or None,
        "blocked": [each.id for each in blocked],
        "limited": [each.id for each in limited],
        "checks": [each._asdict() for each in checks],
        "grants": allowed,
    }
    following = next((each.todo for each in [*blocked, *limited] if each.todo), "")
    return Answer(1 if blocked else 0, "blocked" if blocked else "ready", message, [message, *lines], data, following)


def guide_answer(name: str) -> Answer:
    """The steps with what shows them, and the first that is not done."""
    view = None
    try:
        workspace = find_workspace()
        known = system_ids(workspace)
        following = "kaizen create system ID"
        if known or name:
            view = GuideView(workspace, guide_system(workspace, name))
    except InputError as error:
        if error.reason != "no_workspace":
            raise
        following = "kaizen init"
    if view is None:
        none = "there is no workspace yet" if following == "kaizen init" else "there is no system yet"
        blank = {"done": False, "evidence": none, "command": following, "stated": False}
        rows: list[JsonObject] = [{"id": step.id, "title": step.title, **blank} for step in GUIDE_STEPS]
    else:
        rows = guide_rows(view)
    done = sum(row["done"] is True for row in rows)
    unknown = sum(row["done"] is None for row in rows)
    left = next_row(rows)
    message = f"{done} of {counted(len(rows), 'step')} done" + (f", {unknown} cannot be seen from the files" if unknown else "")
    lines = [message, *[f"{MARKS[row['done']]:<8} {row['id']:<4} {row['title']}: {row['evidence']}" for row in rows]]
    data: JsonObject = {"system": view.name if view else None, "done": done, "of": len(rows)}
    data.update(step=left["id"] if left else None, steps=rows)
    return Answer(0, "complete" if not left else "steps_left", message, lines, data, left["command"] if left else "kaizen next")
