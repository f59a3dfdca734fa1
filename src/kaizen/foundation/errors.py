"""Errors that know their exit status, and the collector of breaches for validation.

    KaizenError                 2  base: wrong usage or unreadable input
    ├── UsageError              2  the command line is wrong
    ├── InputError              2  a file or value cannot be used
    │   └── BreachesError       2  several breaches found in files (1 in `validate`)
    ├── AnswerNo                1  the answer is no
    ├── HumanMustDecide         3  a person has to decide
    ├── IncompleteError         4  what is there is saved and can be resumed
    ├── RefusedError            5  a precondition does not hold
    └── Interrupted           130  Ctrl-C or SIGTERM
"""

import re
from typing import NamedTuple

EXIT_DONE = 0
EXIT_NO = 1
EXIT_USAGE = 2
EXIT_HUMAN = 3
EXIT_INCOMPLETE = 4
EXIT_REFUSED = 5
EXIT_DEFECT = 70  # EX_SOFTWARE of sysexits.h
EXIT_INTERRUPTED = 130  # 128 + SIGINT, the shell's convention

MAX_BREACHES_SHOWN = 50


class KaizenError(Exception):
    """A failure that is told in one line: message, hint (what to do), and a stable reason code."""

    exit_status = EXIT_USAGE
    default_reason = "error"

    def __init__(self, message: str, hint: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.reason = reason or self.default_reason


class UsageError(KaizenError):
    """The command line is wrong."""

    default_reason = "usage"


class InputError(KaizenError):
    """A file or a value in it cannot be used."""

    default_reason = "unreadable_input"


class AnswerNo(KaizenError):
    """The question was answered, and the answer is no."""

    exit_status = EXIT_NO
    default_reason = "no"


class HumanMustDecide(KaizenError):
    """Only a person can go on from here."""

    exit_status = EXIT_HUMAN
    default_reason = "human_must_decide"


class IncompleteError(KaizenError):
    """Part of the work is done and saved; the rest can be resumed."""

    exit_status = EXIT_INCOMPLETE
    default_reason = "incomplete"


class RefusedError(KaizenError):
    """A precondition does not hold; nothing was changed."""

    exit_status = EXIT_REFUSED
    default_reason = "refused"


class Interrupted(KaizenError):
    """The user or the system asked the command to stop."""

    exit_status = EXIT_INTERRUPTED
    default_reason = "interrupted"


class Breach(NamedTuple):
    """One breach of a format: where it stands, what is wrong, what to do."""

    path: str
    line: int | None
    pointer: str
    message: str
    hint: str = ""
    is_warning: bool = False

    def place(self) -> str:
        """'path:line#/pointer' with the parts that are known."""
        line = f":{self.line}" if self.line else ""
        return f"{self.path}{line}{'#' + self.pointer if self.pointer else ''}"

    def text(self) -> str:
        """'place: message', in one line; a hint follows in brackets."""
        return f"{self.place()}: {self.message}" + (f" [{self.hint}]" if self.hint else "")


    def concealed(self) -> "Breach":
        """The breach without anything that it quotes, and without the names and values inside the field it is about."""
        kept = re.match(r"(/[^/]*(/\d+(?=/|$))?)?", self.pointer)
        message, hint = (re.sub(r"'.*'|\".*\"", "'…'", text) for text in (self.message, self.hint))
        message = re.sub(r"\bnot (-?\d|true\b|false\b|null\b)\S*", "not this one", message)
        return self._replace(pointer=kept.group() if kept else "", message=message, hint=hint)


class Breaches:
    """Collects breaches and warnings while a file is checked, so that all are reported at once.

    Of a line that was named with `conceal` nothing is quoted, whoever reports it.
    """

    def __init__(self) -> None:
        self.errors: list[Breach] = []
        self.warnings: list[Breach] = []
        self.secret: set[tuple[str, int | None]] = set()

    def conceal(self, path: str, line: int) -> None:
        """From now on nothing of this line is shown."""
        self.secret.add((path, line))

    def shown(self, breach: Breach) -> Breach:
        """*breach* as it may be shown."""
        return breach.concealed() if (breach.path, breach.line) in self.secret else breach

    def add(self, path: str, line: int | None, pointer: str, message: str, hint: str = "") -> None:
        """Notes something that makes the file unusable."""
        self.errors.append(self.shown(Breach(path, line, pointer, message, hint)))

    def warn(self, path: str, line: int | None, pointer: str, message: str, hint: str = "") -> None:
        """Notes something that the user should know and that stops nothing."""
        self.warnings.append(self.shown(Breach(path, line, pointer, message, hint, True)))

    def raise_if_any(self) -> None:
        """Raises BreachesError when there is an error among them."""
        if self.errors:
            raise BreachesError(self.errors)


class BreachesError(InputError):
    """One or more breaches; `breaches` holds all of them."""

    default_reason = "invalid_file"

    def __init__(self, breaches: list[Breach]) -> None:
        first = breaches[0]
        super().__init__(f"{first.place()}: {first.message}", first.hint)
        self.breaches = breaches

    def further_lines(self) -> list[str]:
        """The breaches after the first, at most 50 in all, then a count of the rest."""
        lines = [breach.text() for breach in self.breaches[1:MAX_BREACHES_SHOWN]]
        hidden = len(self.breaches) - MAX_BREACHES_SHOWN
        return [*lines, f"and {hidden} more"] if hidden > 0 else lines
