"""One case as the data a page shows: its title, and the detail that opens below it.

All values travel as text, so that the page shows what was recorded and not what JavaScript
makes of it (1.0 and 12345678901234567890 stay themselves). A text is a string, or, when it
is JSON or was cut, [text, characters left out, digest of the whole, kind] with kind 0 text,
1 JSON, 2 the end of a text. Texts and steps that come again within a case (its trials are
much alike) are written once and named by number.
"""

import re
from typing import Any, NamedTuple

from kaizen.cases.case import Case
from kaizen.evaluators.paths import output_text
from kaizen.foundation.jsonio import JsonObject, encode_compact, encode_sorted, sha256_hex
from kaizen.web.evidence import EvaluatorTable, StageEvidence, TrialEvidence, evaluations_of

PageText = str | list[Any]
PooledText = PageText | int

PLAIN_TEXT, JSON_TEXT, END_OF_TEXT = 0, 1, 2
TITLE_LENGTH = 140
TITLE_KEYS = ("message", "question", "prompt", "query", "text", "task", "content", "title", "instruction", "messages", "input", "user")
MAX_EVIDENCE = 20
MAX_VALUE = 200
SHORT_TEXT = 30
STATUS_LETTERS = {"pass": "p", "fail": "f", "error": "e", "not_applicable": "-"}
BIG_PAGE = 20_000_000  # bytes, from which on unchanged cases that passed lose their texts (formats.md 1.5)


class TextLimits(NamedTuple):
    """Characters kept of a long text, of a text in a step, of all steps of a trial; and how many steps."""

    text: int
    step: int
    trial: int
    steps: int


class TextPool:
    """The texts and steps of one case: each is kept once, and named by its number where that is shorter."""

    def __init__(self) -> None:
        self.known_texts: dict[str, int] = {}
        self.known_steps: dict[str, tuple[int, int]] = {}  # a step as recorded -> its number, its size
        self.texts: list[PageText] = []
        self.steps: list[JsonObject] = []

    def text(self, value: PageText) -> PooledText:
        """*value* itself when it is short, else its number."""
        if len(value[0] if isinstance(value, list) else value) <= SHORT_TEXT:
            return value
        key = value if isinstance(value, str) else encode_compact(value)
        number = self.known_texts.setdefault(key, len(self.texts))
        if number == len(self.texts):
            self.texts.append(value)
        return number

    def step(self, step: Any, limits: TextLimits, left: int) -> tuple[int, int]:
        """(number of a step, characters of it); *left* are still to be had for its trial, which may cut it shorter."""
        key = encode_compact(step) if left >= 3 * limits.step else None
        found = None if key is None else self.known_steps.get(key)
        if found is None:
            data, size = step_data(step, limits, left, self)
            self.steps.append(data)
            found = len(self.steps) - 1, size
            if key is not None:
                self.known_steps[key] = found
        return found


def text_limits(all_lengths: list[int], kept_lengths: list[int]) -> TextLimits:
    """The widest limits with which the texts stay near 20 MB, from the bytes of each observation.

    First for all cases; when that cannot be, for the changed and failed ones, which always keep their texts.
    """
    tries = [(limit, all_lengths) for limit in (20_000, 8_000, 4_000)] + [(limit, kept_lengths) for limit in (4_000, 2_000)]
    fitting = (limit for limit, lengths in tries if sum(min(length, 3 * limit) for length in lengths) <= BIG_PAGE)
    limit = next(fitting, 1_000)
    return TextLimits(limit, limit // 4, limit * 5, max(50, limit // 100))


def cut_point(text: str, limit: int) -> int:
    """The largest index up to *limit* at which *text* can be cut without parting a character from its marks."""
    from unicodedata import combining

    point = min(limit, len(text))
    while 0 < point < len(text) and (combining(text[point]) or text[point] in "\u200d\ufe0e\ufe0f" or text[point - 1] == "\u200d"):
        point -= 1
    return point or min(limit, len(text))


def page_text(value: Any, limit: int, in_key_order: bool = False) -> PageText:
    """*value* as a text of at most *limit* characters; JSON values as compact JSON, with sorted keys if *in_key_order*."""
    is_json = not isinstance(value, str)
    text = (encode_sorted if in_key_order else encode_compact)(value) if is_json else value
    if len(text) <= limit:
        return [text, 0, "", JSON_TEXT] if is_json else text
    point = cut_point(text, limit)
    return [text[:point], len(text) - point, sha256_hex(text.encode("utf-8", "replace"))[:8], int(is_json)]


def page_text_end(text: str, limit: int) -> PageText:
    """The last *limit* characters of *text*, for logs, whose end says what went wrong."""
    return text if len(text) <= limit else [text[-limit:], len(text) - limit, "", END_OF_TEXT]


def case_title(value: Any, depth: int = 0) -> str:
    """A line that tells a reader what the input *value* is about: its first or most telling text, cut to 140 characters."""
    if isinstance(value, str):
        line = next((line for line in value.split("\n") if line.strip()), "")
        return re.sub(r"\s+", " ", line).strip()[:TITLE_LENGTH]
    if isinstance(value, dict) and depth < 4:
        found = (case_title(value[key], depth + 1) for key in TITLE_KEYS if key in value)
        return next((title for title in found if title), "") or (encode_compact(value)[:TITLE_LENGTH] if not depth else "")
    titles = [case_title(item, depth + 1) for item in reversed(value[-20:])] if isinstance(value, list) and depth < 4 else []
    return next((title for title in titles if title), "") or ("" if value is None or depth else encode_compact(value)[:TITLE_LENGTH])


def step_data(step: Any, limits: TextLimits, left: int, pool: TextPool) -> tuple[JsonObject, int]:
    """(a step as page data, characters of its texts); *left* are still to be had for its trial."""
    if not isinstance(step, dict):
        step = {"kind": "unknown", "result": step}
    data: JsonObject = {key: str(step[key])[:MAX_VALUE] for key in ("kind", "name", "status", "role", "agent") if step.get(key) is not None}
    size = 0
    for key in ("args", "text", "result"):
        if step.get(key) is not None:
            text = page_text(step[key], max(120, min(limits.step, left - size)), key == "args")
            size += len(text if isinstance(text, str) else text[0])
            data[key] = pool.text(text)
    if isinstance(step.get("truncated"), list) and step["truncated"]:
        data["truncated"] = [str(name)[:MAX_VALUE] for name in step["truncated"][:5]]
    return data, size


def steps_data(observation: JsonObject, limits: TextLimits, pool: TextPool) -> JsonObject:
    """{"steps", "more"} of a trial: numbers of its steps (or tool calls) and how many further ones there are; {} for none recorded."""
    steps = observation.get("steps")
    if not isinstance(steps, list):
        calls = observation.get("tool_calls")
        if not isinstance(calls, list):
            return {}
        steps = [{"kind": "tool", **call} for call in calls if isinstance(call, dict)]
    shown, left = [], limits.trial
    for step in steps[: limits.steps]:
        number, size = pool.step(step, limits, left)
        shown.append(number)
        left -= size
    return {"steps": shown, "more": len(steps) - len(shown)} if len(steps) > len(shown) else {"steps": shown}


def evidence_data(evidence: Any, output: Any) -> list[Any]:
    """Pointers of an evaluation as page data: {"step"}, {"start", "end", "text"} for characters of the output, else words."""
    items = list(evidence) if isinstance(evidence, (list, tuple)) else [evidence]
    found = [pointer_data(item, output) for item in items[:MAX_EVIDENCE]]
    return found + ([f"and {len(items) - MAX_EVIDENCE} more"] if len(items) > MAX_EVIDENCE else [])


def pointer_data(pointer: Any, output: Any) -> Any:
    """One pointer as page data; `in` names what was looked at when it was not the output as it is."""
    if not isinstance(pointer, dict):
        return encode_compact(pointer)[:MAX_VALUE]
    looked_at = pointer.get("in")
    if isinstance(pointer.get("step"), int):
        return {"step": pointer["step"]}
    if isinstance(pointer.get("start"), int) and isinstance(pointer.get("end"), int):
        place = {"start": pointer["start"], "end": pointer["end"]}
        if looked_at is None and output is not None:
            return {**place, "text": output_text(output)[pointer["start"] : pointer["end"]][:80]}
        return f"characters {pointer['start']} to {pointer['end']} of {looked_at or 'the output'}"[:MAX_VALUE]
    if isinstance(pointer.get("pointer"), str):
        return (pointer["pointer"] or "the whole") + (f" of {looked_at}" if looked_at else "")[:MAX_VALUE]
    return encode_compact(pointer)[:MAX_VALUE]


def evaluation_data(evaluation: JsonObject, output: Any, limits: TextLimits, evaluators: EvaluatorTable, pool: TextPool) -> list[Any]:
    """[number of the evaluator, letter of its status, score, value, reason, evidence] of one evaluation."""
    value, evidence = evaluation.get("value"), evaluation.get("evidence")
    data = [
        evaluators.number(evaluation),
        STATUS_LETTERS.get(str(evaluation.get("status")), "e"),
        evaluation.get("score"),
        None if value is None else encode_compact(value)[:MAX_VALUE],
        pool.text(page_text(str(evaluation.get("reason") or ""), limits.step)),
    ]
    return [*data, evidence_data(evidence, output)] if evidence else data


def error_data(observation: JsonObject, limits: TextLimits) -> JsonObject:
    """{"error", "tries"} of a trial that did not complete or needed several attempts; {} for neither."""
    error, execution = observation.get("error"), observation.get("execution")
    data: JsonObject = {}
    if isinstance(error, dict):
        data["error"] = {key: page_text(error[key], limits.step) for key in ("class", "type", "message") if error.get(key) is not None}
        if isinstance(error.get("stderr_tail"), str) and error["stderr_tail"].strip():
            data["error"]["stderr"] = page_text_end(error["stderr_tail"], limits.step)
        if isinstance(execution, dict) and execution.get("exit_code") not in (None, 0):
            data["error"]["exit_code"] = str(execution["exit_code"])[:MAX_VALUE]
    attempts = execution.get("attempts") if isinstance(execution, dict) else None
    if isinstance(attempts, list) and attempts:
        data["tries"] = [encode_compact(attempt)[:MAX_VALUE] for attempt in attempts[:MAX_EVIDENCE]]
    return data


def trial_data(trial: TrialEvidence, limits: TextLimits, evaluators: EvaluatorTable, pool: TextPool) -> JsonObject:
    """One trial as page data: outcome, measurements, output, steps, checks, error."""
    observation, result = trial.observation, trial.result
    output = observation.get("output")
    data: JsonObject = {"outcome": trial.letter, "line": trial.line, "status": str(observation.get("status", "not run"))[:MAX_VALUE]}
    for key in ("score", "coverage", "duration_ms", "cost_usd"):
        if isinstance(result.get(key), (int, float)):
            data[key] = result[key]
    usage = result.get("usage")
    if isinstance(usage, dict):
        data["usage"] = [[str(key)[:MAX_VALUE], encode_compact(value)[:MAX_VALUE]] for key, value in list(usage.items())[:8]]
    if observation.get("finish_reason") is not None:
        data["finish"] = str(observation["finish_reason"])[:MAX_VALUE]
    if output is not None:
        data["output"] = pool.text(page_text(output, limits.text))
    data["checks"] = [evaluation_data(evaluation, output, limits, evaluators, pool) for evaluation in evaluations_of(result)]
    return {**data, **steps_data(observation, limits, pool), **error_data(observation, limits)}


def case_facts(case: Case, limits: TextLimits) -> JsonObject:
    """Input, context, expected value and further facts of a case as page data."""
    document = case.document
    facts = {key: page_text(document[key], limits.text) for key in ("input", "context", "expected") if document.get(key) is not None}
    source = document.get("source")
    labels = [("cluster", document.get("cluster")), ("source", source.get("kind") if isinstance(source, dict) else None)]
    labels += [("owner", document.get("owner")), ("notes", document.get("notes"))]
    return {**facts, "facts": [[label, page_text(value, limits.step)] for label, value in labels if value is not None]}


def case_detail(case: Case, stages: dict[str, StageEvidence], limits: TextLimits, evaluators: EvaluatorTable) -> JsonObject:
    """All that opens below the row of a case; *stages* by role."""
    pool = TextPool()
    trials = {
        role: {str(trial.trial): trial_data(trial, limits, evaluators, pool) for trial in stage.trials(case.id)}
        for role, stage in stages.items()
    }
    return {**case_facts(case, limits), "trials": trials, "texts": pool.texts, "steps": pool.steps}
