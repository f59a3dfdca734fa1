"""Judge protocol 1.1: what a judge is asked, and what counts as its answer.

    request  {"protocol": "1.1", "rubric": {"id", "text", "sha256"}, "data": {"input": …, "output": …}, "scale": [0, 1]}
    answer   {"score": 0.7, "reason": "…"}  or {"passed": true}, {"abstain": true}, {"error": {"message": "…"}}
             with "evidence", "judge": {"name", "version", "model"}, "cost", "usage" as it likes

The answer is standard output as a whole: exactly one JSON object. A judge may repeat what it was
given to judge, and that may look like a verdict, so nothing is ever picked out of other text.
"""

from typing import Any, NamedTuple, NoReturn

from kaizen.foundation.jsonio import JsonError, JsonObject, encode_compact, json_type, parse_json
from kaizen.foundation.shapes import ANY_TEXT, ANYTHING, BOOLEAN, OBJECT, RATE, Kind, check_fields, is_number, list_of
from kaizen.foundation.text import listed, quoted, visible
from kaizen.runs.protocol import INNER_FIELDS, present

JUDGE_PROTOCOL = "1.1"
JUDGE_STDOUT_LIMIT = 1 << 20  # bytes of one answer
JUDGEMENT_FIELDS = {
    "score": RATE,
    **dict.fromkeys(("passed", "abstain"), BOOLEAN),
    "reason": ANY_TEXT,
    "evidence": list_of(ANYTHING, "places"),
    **dict.fromkeys(("judge", "cost", "usage", "error"), OBJECT),
}
IDENTITY_FIELDS = dict.fromkeys(("name", "version", "model"), ANY_TEXT)
JUDGE_AMOUNT = Kind(lambda value: is_number(value) and 0 <= value <= 1e15, "a number from 0 to 1e15", shows_value=True)  # sums stay finite
INNER_JUDGEMENT_FIELDS = {"judge": IDENTITY_FIELDS} | {
    name: dict.fromkeys(kinds, JUDGE_AMOUNT) for name, kinds, _ in INNER_FIELDS if name in ("cost", "usage")
}


class JudgeFailure(Exception):
    """There is no usable answer: a reason code (judge_protocol, judge_timeout, judge_failed, judge_error), and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Rubric(NamedTuple):
    """What a judge judges by: the id of the entry, the text, its SHA-256."""

    id: str
    text: str
    sha256: str


def judge_request(rubric: Rubric, data: JsonObject) -> JsonObject:
    """What a judge gets to see: the *rubric* as it was written, and *data* in fields of its own."""
    return {"protocol": JUDGE_PROTOCOL, "rubric": rubric._asdict(), "data": data, "scale": [0, 1]}


def refuse_judgement(pointer: str, message: str, hint: str = "") -> NoReturn:
    """Raises JudgeFailure for what stands at *pointer* in an answer."""
    raise JudgeFailure("judge_protocol", f"answer#{visible(pointer)} {message}")


def read_judgement(stdout: bytes, request: int = 0) -> JsonObject:
    """The fields of the answer that *stdout* is, null ones left out; unless *request* is 0 it must repeat that number.

    Raises JudgeFailure for anything else than exactly one JSON object with a score in [0, 1], `passed`, or `abstain`.
    """
    answer = judgement_object(stdout)
    if request and (answer.get("request") != request or answer.get("request") is True):
        number = visible(encode_compact(answer.get("request")), 40)
        raise JudgeFailure("judge_protocol", f'the judge answered "request": {number} in place of {request}')
    return judgement_fields(answer)


def judgement_fields(answer: JsonObject) -> JsonObject:
    """The fields of *answer* that the protocol knows, null ones left out. Raises JudgeFailure when they are no usable answer."""
    given = {name: value for name, value in present(answer).items() if name in JUDGEMENT_FIELDS}
    check_fields(given, JUDGEMENT_FIELDS, "", refuse_judgement)
    for name, kinds in INNER_JUDGEMENT_FIELDS.items():
        if name in given:
            check_fields(present(given[name]), kinds, f"/{name}", refuse_judgement)
    if "error" in given:
        raise JudgeFailure("judge_error", f"the judge reports: {visible(str(given['error'].get('message') or 'an error'), 300)}")
    if not given.keys() & {"score", "passed"} and not given.get("abstain"):
        found = f"; it has {listed(map(quoted, answer), 5)}" if answer else ""
        raise JudgeFailure("judge_protocol", f"the answer has neither 'score' nor 'passed', and does not abstain{found}")
    return given


def judgement_object(stdout: bytes) -> JsonObject:
    """The one JSON object that *stdout* is. Raises JudgeFailure."""
    body = stdout.strip()
    if not body:
        raise JudgeFailure("judge_protocol", "the judge printed nothing on standard output; exactly one JSON object is expected there")
    try:
        value: Any = parse_json(body.decode("utf-8"))
    except (UnicodeDecodeError, JsonError) as error:
        why = error.message if isinstance(error, JsonError) else "it is not UTF-8"
        raise JudgeFailure("judge_protocol", f"standard output of the judge is not exactly one JSON object: {why}") from None
    if not isinstance(value, dict):
        raise JudgeFailure("judge_protocol", f"the judge answered with a JSON {json_type(value)}, not an object")
    return value
