"""The table of commands, and how a module adds one to it.

    @command("gate", "Prints the recommendation, for CI.", [IMPROVEMENT, Argument("--junit", "FILE", "…")], "kaizen gate refund")
    def command_gate(args: Namespace) -> Answer: ...

The docs table and completion come from this table; help needs no more of it than what
`places` tells. To add a command: one file in commands/, nothing else. A command
returns an Answer; `cli.main` prints it, as text or as one JSON document.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kaizen.embed import load_section, places
from kaizen.foundation.jsonio import JsonObject


class Answer(NamedTuple):
    """What a command found: exit code, reason code, one sentence, the next step, data for --json, lines for people.

    `rows`, where there are too many to hold, are printed into the empty list that stands last in `data`.
    """

    code: int
    reason: str
    message: str
    lines: list[str] = []  # noqa: RUF012 (never changed)
    data: JsonObject = {}  # noqa: RUF012
    next: str = ""
    rows: Iterable[JsonObject] | None = None


class Argument(NamedTuple):
    """An argument: its name ('improvement' or '--jobs'), how its value is shown ('' for a switch), its help.

    `options` go to argparse (type, default, choices, action, nargs).
    """

    name: str
    value: str
    text: str
    options: dict[str, Any] = {}  # noqa: RUF012


Run = Callable[[Namespace], Answer]


class Command(NamedTuple):
    """A command's function, one-sentence help, arguments, examples, group in the help, whether it takes `-- COMMAND`."""

    name: str
    run: Run
    summary: str
    arguments: tuple[Argument, ...]
    example: str
    group: str
    rest: str


COMMANDS: dict[str, Command] = {}  # those of the modules that have been read; see `command_named`
IMPROVEMENT = Argument("improvement", "IMPROVEMENT", "folder of the improvement, or its name under improvements/")
OR_RUNS = IMPROVEMENT._replace(text=f"{IMPROVEMENT.text}; left out when runs are named", options={"nargs": "?"})


def command(
    name: str, summary: str, arguments: list[Argument], example: str, *, group: str = "main job", rest: str = ""
) -> Callable[[Run], Run]:
    """Registers the decorated function as `kaizen *name*`; *rest* names what may follow `--`, '' for nothing."""

    def register(function: Run) -> Run:
        if name in COMMANDS:
            raise ValueError(f"command {name!r} is registered twice")
        COMMANDS[name] = Command(name, function, summary, tuple(arguments), example, group, rest)
        return function

    return register


def command_named(name: str) -> Command:
    """The command *name*, its module read if need be. Raises KeyError."""
    load_section(places("COMMANDS")[name][0])
    return COMMANDS[name]
