"""The command line: one argparse parser, for the command that was named."""

import argparse
from typing import NoReturn

from kaizen.commands.table import Command, command_named
from kaizen.embed import asset_text, places
from kaizen.foundation.errors import UsageError
from kaizen.foundation.text import did_you_mean, quoted

MAIN_HELP = asset_text("help.txt")


class HelpShown(Exception):
    """Raised when help was asked for; holds the text."""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError in place of printing and leaving, and names the nearest option."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see: {self.prog} --help")

    def print_help(self, file: object = None) -> None:
        raise HelpShown(self.format_help())


def split_rest(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """(arguments before the first '--', those behind it or None when there is none)."""
    if "--" not in argv:
        return argv, None
    place = argv.index("--")
    return argv[:place], argv[place + 1 :]


def command_parser(entry: Command) -> CommandParser:
    """The parser of one command."""
    usage_rest = f" -- {entry.rest}" if entry.rest else ""
    parser = CommandParser(
        prog=f"kaizen {entry.name}",
        description=entry.summary,
        epilog="example:\n" + "\n".join(f"  {line}" for line in entry.example.splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for argument in entry.arguments:
        shown: dict[str, object] = {"metavar": argument.value} if argument.value and "choices" not in argument.options else {}
        switch = {} if argument.value or "action" in argument.options else {"action": "store_true"}
        parser.add_argument(argument.name, help=argument.text.replace("%", "%%"), **{**shown, **switch, **argument.options})
    parser.add_argument("--json", action="store_true", help="print one JSON document on standard output, or nothing")
    parser.usage = parser.format_usage().removeprefix("usage: ").rstrip() + usage_rest
    return parser


def parse_command_line(argv: list[str]) -> tuple[Command, argparse.Namespace]:
    """The command that *argv* names and its arguments (`rest`: what follows `--`). Raises UsageError or HelpShown."""
    known = places("COMMANDS")
    if argv[0] in ("-h", "--help", "help"):
        if len(argv) > 1 and (argv[1] in known or subcommands(argv[1])):
            return parse_command_line([*argv[1:], "--help"])
        raise HelpShown(main_help(True))
    name = " ".join(argv[:2]) if argv[0] not in known and subcommands(argv[0]) else argv[0]
    if name.startswith("-"):
        raise UsageError(f"unknown option {quoted(name)}", "usage: kaizen COMMAND …; see: kaizen --help")
    if name not in known and subcommands(argv[0]):
        refuse_incomplete(argv[0], argv[1:])
    if name not in known:
        raise UsageError(f"there is no command {quoted(name)}", did_you_mean(name, known))
    entry = command_named(name)
    before, rest = split_rest(argv[1 + name.count(" ") :])
    if rest is not None and not entry.rest:
        raise UsageError(f"kaizen {name} takes nothing after '--'", f"see: kaizen {name} --help")
    parser = command_parser(entry)
    options = [option for action in parser._actions for option in action.option_strings]
    for word in (each.split("=")[0] for each in before if each.startswith("--")):
        if word not in options:  # said before argparse misses the one that was meant
            raise UsageError(f"unknown option {quoted(word)}", did_you_mean(word, options) or f"see: kaizen {name} --help")
    namespace, unknown = parser.parse_known_args(before)
    if unknown:
        word = unknown[0].split("=")[0]
        what = "unknown option" if word.startswith("-") else "unexpected argument"
        hint = (
            did_you_mean(word, options)
            if word.startswith("-")
            else f"see: kaizen {name} --help" + ("; the command to run goes behind '--'" if entry.rest else "")
        )
        raise UsageError(f"{what} {quoted(word)}", hint)
    namespace.rest = rest
    return entry, namespace


def subcommands(word: str) -> list[str]:
    """The commands of two words whose first is *word*."""
    return [name for name in places("COMMANDS") if name.startswith(f"{word} ")]


def refuse_incomplete(word: str, behind: list[str]) -> NoReturn:
    """Raises UsageError, or HelpShown where help was asked for: behind *word*, which begins commands, stands none of them."""
    known = {name.split(" ")[1]: name for name in subcommands(word)}
    if set(behind) & {"-h", "--help"}:
        rows = [f"  kaizen {name:<20} {places('COMMANDS')[name][2]}" for name in known.values()]
        raise HelpShown("\n".join(["commands:", *rows, "", f"kaizen {word} COMMAND --help explains one."]) + "\n")
    if behind and not behind[0].startswith("-"):
        raise UsageError(f"there is no command {quoted(f'{word} {behind[0]}')}", did_you_mean(behind[0], known))
    raise UsageError(f"kaizen {word} needs a command behind it", f"one of: {', '.join(known)}")


def main_help(is_full: bool) -> str:
    """The main flow, as `kaizen` alone shows it; with *is_full* also every command with its sentence, by group."""
    if not is_full:
        return MAIN_HELP
    lines = [MAIN_HELP.rstrip("\n")]
    known = places("COMMANDS")
    for group in dict.fromkeys(each for _, each, _ in known.values()):
        lines += ["", f"{group}:"]
        names = sorted(name for name in known if known[name][1] == group)
        width = max(15, *map(len, names))
        lines += [f"  {name:<{width}} {known[name][2]}" for name in names]
    return "\n".join(lines) + "\n"
