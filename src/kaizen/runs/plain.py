"""Plain runners: the case's input as text in, the output as text out.

A text input is given as it is, any other as compact JSON: on standard input, or in the
arguments in place of `{input}` or, as the path of a file that holds it, `{input_file}`. Where
an argument takes it, standard input is empty. All of standard output, without one line end
at its end, is the output.
"""

import os
import re
from typing import Any

from kaizen.cases.case import Case
from kaizen.foundation.clock import utc_now
from kaizen.foundation.files import discard_unfinished, write_file
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.process import CannotStart
from kaizen.foundation.text import counted
from kaizen.runs.observation import Attempt, error_document
from kaizen.runs.protocol import ProtocolError, TrialRequest
from kaizen.runs.workers import ProcessWorker

INPUT_PLACE = re.compile(rb"\{input(_file)?\}")


class PlainWorker(ProcessWorker):
    """Starts the command once for each trial and takes what it prints as the output."""

    input_path = ""

    def answer(self, request: TrialRequest) -> Attempt:
        try:
            return super().answer(request)
        except CannotStart as error:
            if not any(b"{input}" in os.fsencode(word) for word in self.command[1:]):
                raise
            message = f"the runner could not be started with this input as an argument: {error} ({{input_file}} takes any)"
            return Attempt("error", {}, error_document("environment", "cannot_start", message), utc_now())
        finally:
            if self.input_path:
                discard_unfinished(self.input_path)

    def asked(self, request: TrialRequest, folder: str) -> tuple[list[Any], bytes]:
        """(the command with its places filled in, what goes to standard input)."""
        value = request.case.document["input"]
        text = (value if isinstance(value, str) else encode_compact(value)).encode("utf-8")
        places = [place for word in self.command[1:] for place in INPUT_PLACE.findall(os.fsencode(word))]
        if b"_file" in places:
            self.input_path = folder + ".txt"  # beside the work folder, which stays empty
            write_file(self.input_path, text)
        path = os.fsencode(self.input_path)
        filled = [INPUT_PLACE.sub(lambda match: path if match[1] else text, os.fsencode(word)) for word in self.command[1:]]
        return [os.fsencode(self.command[0]), *filled], b"" if places else text

    def read(self, stdout: bytes) -> tuple[JsonObject, JsonObject | None]:
        return {"output": plain_output(stdout)}, None


def context_notes(cases: list[Case]) -> list[str]:
    """A note about the *cases* whose context is not sent; nothing when there are none."""
    number = sum(case.document.get("context") is not None for case in cases)
    return [f"{counted(number, 'case')} {'has' if number == 1 else 'have'} a context, which --plain does not send"] if number else []


def plain_output(stdout: bytes) -> str:
    """*stdout* as text, without the one line end (LF or CRLF) at its end. Raises ProtocolError unless it is UTF-8."""
    try:
        text = stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolError("not_utf8", f"the output is not UTF-8 (byte {error.start} of standard output)") from None
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
