"""Shell command lines read as programs and arguments; nothing is run or expanded.

    cd app && FOO=1 /usr/bin/git push --force "origin main" | tee log

gives

    [{"program": "cd", "arguments": ["app"]},
     {"program": "git", "arguments": ["push", "--force", "origin main"]},
     {"program": "tee", "arguments": ["log"]}]

A command ends at ; & | a line end or a bracket, so that what stands in $( ) and back
quotes outside of quotes is seen as well. The program is the last part of its path;
assignments before it are left out; redirections stay among the arguments. What runs inside
a quoted text, as in bash -c "…", is one argument. A quote that is never closed lasts to the end.
"""

import re

from kaizen.foundation.jsonio import JsonObject

SHELL_TOKEN = re.compile(
    r"""(?P<end>[;|()`\n]+|&(?!>)[&;|]*)"""  # the end of a command
    r"""|(?P<space>[ \t\r]+)"""
    r"""|\\\n"""  # the command goes on in the next line
    r"""|(?P<comment>(?<![^\s;|&()`])\#[^\n]*)"""
    r"""|(?P<redirection>&?[<>]+[&|]?)"""
    r"""|'(?P<single>[^']*)'?"""
    r"""|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"?"""
    r"""|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s;|&()`<>'"\\]+|.)""",
    re.DOTALL,
)
SHELL_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def shell_commands(text: str) -> list[JsonObject]:
    """[{"program", "arguments"}] for each simple command of the command line *text*, in the order written."""
    commands: list[JsonObject] = []
    words: list[str] = []
    pieces: list[str] = []  # of the word that is being read
    for token in SHELL_TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("end", "space", "redirection") and pieces:
            words.append("".join(pieces))
            pieces = []
        if kind == "end":
            add_shell_command(commands, words)
            words = []
        elif kind == "redirection":
            words.append(token.group())
        elif kind == "double":
            pieces.append(re.sub(r"\\([\"\\$`])|\\\n", r"\1", token.group(kind)))
        elif kind in ("single", "escaped", "plain"):
            pieces.append(token.group(kind))
    add_shell_command(commands, [*words, "".join(pieces)] if pieces else words)
    return commands


def add_shell_command(commands: list[JsonObject], words: list[str]) -> None:
    """Adds the command that *words* make to *commands*, unless there is none."""
    start = next((index for index, word in enumerate(words) if not SHELL_ASSIGNMENT.match(word)), len(words))
    if start < len(words):
        commands.append({"program": words[start].rpartition("/")[2] or words[start], "arguments": words[start + 1 :]})
