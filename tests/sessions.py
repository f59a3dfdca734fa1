"""Console sessions kept as text: read, run again, compared. Used for transcripts and for the README.

    Prose that says what the session shows, up to the first command.

    $ kaizen gate improvements/refund
    rejected: 1 regression (at most 0), 1 improvement
    [exit 1]

    # Prose between commands stands in lines that begin with a number sign.
    $ cat > agent.sh <<'EOF'
    > #!/bin/sh
    > cat
    > EOF
    $ kaizen --version
    kaizen 0.1.0 (sha256 […], Python […])

`[…]` stands for any text within a line, and alone on a line for any number of lines.
`[exit N]` ends the output of a command that does not exit 0. Standard output and
standard error come together, as on a terminal; blank lines at the end and blanks at the
end of lines do not count. Each command is run by `sh` on its own, one of `kaizen` with plain
words in this process; only the folder (`cd`) lasts. `kaizen` and `python` are this checkout's
program and the running interpreter.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

from support import clean_environment, exit_status, kaizen, surroundings, text_stream, written

ANYTHING = "[…]"
COMMAND_SECONDS = 120
NEEDS_A_SHELL = r"[|&;<>$`*?~(){}\[\]\\\n#!]"


class Step(NamedTuple):
    """One command of a session.

    command   what the shell gets
    typed     the lines it was read from, with their prompts
    expected  lines of output
    status    expected exit status
    tail      blank lines and prose up to the next command
    """

    command: str
    typed: list[str]
    expected: list[str]
    status: int
    tail: list[str]


def read_session(text: str) -> tuple[list[str], list[Step]]:
    """(prose before the first command, steps) of a session."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    ends = [*starts[1:], len(lines)]
    steps = [read_step(lines[start:end]) for start, end in zip(starts, ends, strict=True)]
    return lines[: starts[0] if starts else len(lines)], steps


def read_step(lines: list[str]) -> Step:
    """The step that a command line and what follows it up to the next one describe."""
    typed = [lines.pop(0)]
    while lines and (lines[0].startswith("> ") or lines[0] == ">"):
        typed.append(lines.pop(0))
    tail: list[str] = []
    while lines and (not lines[-1].strip() or lines[-1].startswith("# ")):
        tail.insert(0, lines.pop())
    ending = re.fullmatch(r"\[exit (\d+)\]", lines[-1].strip()) if lines else None
    if ending:
        lines.pop()
    return Step("\n".join(line[2:] for line in typed), typed, lines, int(ending[1]) if ending else 0, tail)


def replay(text: str, folder: Path, env: "dict[str, str] | None" = None) -> str:
    """The session as it goes now in *folder*: *text* itself where the output is as expected."""
    lead, steps = read_session(text)
    lines = list(lead)
    for step in steps:
        if step.command.startswith("cd "):
            folder = folder.joinpath(*shlex.split(step.command)[1:]).resolve(strict=True)
            found, status = [], 0
        else:
            found, status = run_command(step.command, folder, env)
        same = status == step.status and matches(step.expected, found)
        lines += [*step.typed, *(step.expected if same else found)]
        if status:
            lines.append(f"[exit {status}]")
        lines += step.tail
    return "\n".join(lines)


def run_command(command: str, folder: Path, env: "dict[str, str] | None" = None) -> tuple[list[str], int]:
    """(lines of output, exit status) of a shell command."""
    environment = clean_environment({"PYTHONUNBUFFERED": "1", **(env or {})})
    if command.startswith("kaizen ") and not re.search(NEEDS_A_SHELL, command):
        return printed_lines(*run_here(shlex.split(command)[1:], folder, environment))
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=COMMAND_SECONDS, check=False,
    )
    return printed_lines(done.stdout.decode("utf-8", "backslashreplace"), done.returncode)


def run_here(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[str, int]:
    """(output, exit status) of `kaizen` with these *words*, in this process: starting one takes longer than most commands."""
    stream = text_stream()
    with surroundings(folder, {**dict.fromkeys(os.environ), **environment}, {"stdin": text_stream(), "stdout": stream, "stderr": stream}):
        try:
            status = exit_status(kaizen.main(words))
        except SystemExit as error:
            status = exit_status(error.code)
    return written(stream), status


def printed_lines(text: str, status: int) -> tuple[list[str], int]:
    """(the lines of *text* without blanks at their end and at the end of all, *status*)."""
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines, status


def matches(expected: list[str], found: list[str]) -> bool:
    """True if the lines are equal but for what `[…]` stands for."""
    pattern = ""
    for line in expected:
        if line.strip() == ANYTHING:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split(ANYTHING))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None
