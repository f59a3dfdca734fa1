"""Entry point: every ending becomes output and an exit status."""

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from kaizen.cli.parser import HelpShown, main_help, parse_command_line
from kaizen.commands.table import Answer
from kaizen.foundation.errors import EXIT_DEFECT, EXIT_INTERRUPTED, EXIT_USAGE, BreachesError, KaizenError
from kaizen.foundation.files import open_missing_streams, silence_descriptor
from kaizen.foundation.identity import UPGRADE_NOTE, own_path, version_line
from kaizen.foundation.jsonio import JsonObject, encode_compact, encode_readable, without_surrogates
from kaizen.foundation.redact import environment_secrets, redact_text
from kaizen.foundation.text import visible

ROWS_AT_ONCE = 100_000  # characters


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit status (formats.md section 7)."""
    arguments = sys.argv[1:] if argv is None else argv
    open_missing_streams()
    if arguments[:1] == ["--version"]:
        print(version_line())
        return 0
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that knows only ASCII gets escapes, not a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        status = run_command(arguments)
        sys.stdout.flush()
        if os.path.exists(os.path.join(os.path.dirname(os.path.realpath(own_path())), UPGRADE_NOTE)):
            tell_of_upgrade()
        return status
    except BrokenPipeError:
        silence_descriptor(sys.stdout.fileno())  # the reader has gone; the interpreter's own flush must be silent too
        return EXIT_INTERRUPTED


def tell_of_upgrade() -> None:
    """Lets coding agents take skills of this version, once after an upgrade, and says what became of it."""
    from kaizen.skills.upgrading import refresh_after_upgrade

    told = refresh_after_upgrade()
    if told:
        print_diagnostic(f"kaizen: {told}", sys.stderr)


def run_command(arguments: list[str]) -> int:
    """Runs the command that *arguments* name and prints its answer or its error."""
    wants_json = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    if not arguments:
        print(main_help(False), end="", file=sys.stderr)
        return EXIT_USAGE
    try:
        entry, namespace = parse_command_line(arguments)
        return print_answer(entry.run(namespace), wants_json)
    except HelpShown as shown:
        print(shown, end="")
        return 0
    except KaizenError as error:
        return print_error(error, wants_json)
    except KeyboardInterrupt:
        return print_error(KaizenError("interrupted", reason="interrupted"), wants_json, EXIT_INTERRUPTED)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("KAIZEN_DEBUG"):
            raise
        outer = outer_cause(error, arguments)
        if outer:
            return print_error(outer, wants_json, EXIT_USAGE)
        place = innermost_frame(error)
        defect = KaizenError(
            f"this is a defect of Kaizen: {type(error).__name__}: {error} ({place})",
            f"{version_line()}; please report it, with KAIZEN_DEBUG=1 for the traceback",
            "defect",
        )
        return print_error(defect, wants_json, EXIT_DEFECT)


def outer_cause(error: Exception, arguments: list[str]) -> KaizenError | None:
    """What outside of Kaizen made it fail with *error*; None when it is a defect."""
    if isinstance(error, MemoryError):
        return KaizenError("there is not enough memory for this", "is one of the files far larger than it should be?", "no_memory")
    if isinstance(error, UnicodeEncodeError):
        numbers = [number for number, text in enumerate(arguments, 1) if without_surrogates(text) != text]
        message = f"argument {numbers[0]} is not UTF-8, which what is written from it has to be" if numbers else ""
        return KaizenError(message, "write it in UTF-8", "usage") if numbers else None
    try:
        os.getcwd()
    except OSError:
        return KaizenError("the current folder is gone: it was removed or moved", "change to a folder that is there", "no_folder")
    return None


def print_answer(answer: Answer, wants_json: bool) -> int:
    """Prints *answer* on standard output, as text or as one JSON document; returns its exit code.

    One without a message has put something else there itself.
    """
    if not answer.message:
        return answer.code
    if wants_json:
        document: JsonObject = {"ok": answer.code == 0, "code": answer.code, "reason": answer.reason, "message": answer.message}
        text = encode_readable({**document, "next": answer.next, **answer.data})
        if answer.rows is None:
            write_out(text)
        else:
            write_rows(text, answer.rows)
        return answer.code
    write_out("\n".join([*(answer.lines or [answer.message]), *([f"next: {answer.next}"] if answer.next else [])]))
    return answer.code


def write_out(text: str, end: str = "\n") -> None:
    """Prints *text* on standard output, and out of this process. Raises KaizenError when there is no room for it."""
    try:
        print(text, end=end)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_descriptor(sys.stdout.fileno())  # what did not fit must not be tried again when the interpreter ends
        message = f"standard output: cannot be written: {error.strerror}"
        raise KaizenError(message, "make room, or send it elsewhere", "unwritable") from None


def write_rows(text: str, rows: Iterable[JsonObject]) -> None:
    """Prints the document *text*, which ends in an empty list, with *rows* in that list, one a line."""
    head, comma = text.removesuffix("]\n}"), ""
    for row in rows:
        head, comma = f"{head}{comma}\n    {encode_compact(row)}", ","
        if len(head) > ROWS_AT_ONCE:
            write_out(head, "")
            head = ""
    write_out(f"{head}\n  ]\n}}")


def print_error(error: KaizenError, wants_json: bool, status: int | None = None) -> int:
    """Prints *error*, masked, on standard error, with --json also as a document on standard output; returns the exit code."""
    code = error.exit_status if status is None else status
    secrets = environment_secrets(os.environ)
    lines = [error.message, error.hint, *(error.further_lines() if isinstance(error, BreachesError) else [])]
    message, hint, *further = (redact_text(line, secrets)[0] for line in lines)
    if wants_json:
        document: JsonObject = {"ok": False, "code": code, "reason": error.reason, "message": message, "next": hint}
        print(encode_readable({**document, "further": further}))
    to_do = f" [{hint}]" if further and hint else ""  # beside its own line when there are more
    print_diagnostic(f"kaizen: error: {message}{to_do}", sys.stderr)
    for line in further:
        print_diagnostic(line, sys.stderr)
    if hint and not further:
        print_diagnostic(f"hint: {hint}", sys.stderr)
    return code


def print_diagnostic(line: str, stream: TextIO) -> None:
    """Prints *line* as one line without control characters, whatever it holds."""
    print(visible(line.replace("\n", " "), None), file=stream)


def innermost_frame(error: BaseException) -> str:
    """'kaizen.py:812 in wilson_interval': the deepest frame inside Kaizen's own file."""
    found = "no frame"
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == own_path() or os.sep + "kaizen" + os.sep in code.co_filename:
            found = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return found
