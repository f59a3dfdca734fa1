"""Inspect's logs in JSON: samples as cases, scorers as entries, recorded answers."""

from typing import Any

from kaizen.foundation.errors import InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, json_equal, parse_json
from kaizen.importers.gathered import APPROXIMATED, DROPPED, MAPPED, Gathered, import_json, import_text
from kaizen.importers.tables import add_entries

INSPECT_TARGET = {"$case": "/expected"}
INSPECT_JUDGE = "asks a judge command with a rubric of ours; severity info until one is there"
# scorer: (the entry, what differs)
INSPECT_SCORERS: dict[str, tuple[JsonObject, str]] = {
    "includes": ({"type": "contains", "values": INSPECT_TARGET, "mode": "any", "ignore_case": True}, "options of the scorer are not read"),
    "match": (
        {"type": "contains", "values": INSPECT_TARGET, "mode": "any", "ignore_case": True, "at": "end", "transform": ["strip"]},
        "the answer ends with the target as it is written: punctuation and the form of numbers count; options are not read",
    ),
    "exact": (
        {"type": "equals", "select": "output.text", "any_of": INSPECT_TARGET, "normalize": ["strip", "lower", "collapse_space"]},
        "articles and punctuation count",
    ),
    "choice": (
        {"type": "equals", "select": "output.text", "transform": [{"regex_capture": [r"(?i)ANSWER\s*:\s*([A-Z])\b", 1]}],
         "any_of": INSPECT_TARGET},
        "the letter behind 'ANSWER:' is compared; choices are not shuffled",
    ),
    "answer": (
        {"type": "equals", "select": "output.text", "transform": [{"regex_capture": [r"(?i)ANSWER\s*:\s*(.+)", 1]}, "strip"],
         "any_of": INSPECT_TARGET},
        "what stands behind 'ANSWER:' on its line is compared",
    ),
    "f1": (
        {"type": "similarity", "measure": "token_f1", "references": INSPECT_TARGET, "threshold": 0.5},
        "a threshold of 0.5 is written, since the scorer has none",
    ),
    "model_graded_qa": (
        {"type": "judge", "rubric": "The answer is right by the criterion that is given as expected.",
         "see": ["input", "output", "expected"], "threshold": 0.5, "severity": "info"},
        INSPECT_JUDGE,
    ),
    "model_graded_fact": (
        {"type": "judge", "rubric": "The answer holds the fact that is given as expected.",
         "see": ["input", "output", "expected"], "threshold": 0.5, "severity": "info"},
        INSPECT_JUDGE,
    ),
}  # fmt: skip


def import_inspect_log(path: str, gathered: Gathered) -> None:
    """A case for each sample, an answer for each epoch of it. Raises InputError."""
    shown = shown_path(path)
    if path.lower().endswith(".eval"):
        raise InputError(f"{shown}: is a packed log", "write it as JSON first: inspect log convert --to json", "invalid_file")
    log = import_json(import_text(path), shown)
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(samples, list):
        raise InputError(f"{shown}: holds no list of samples", "a log has 'samples', unless it was written without")
    scorers = scorer_names(log)
    seen: dict[str, Any] = {}
    for index, sample in enumerate(samples):
        place = f"samples[{index}]"
        if not isinstance(sample, dict) or "input" not in sample or "id" not in sample:
            raise InputError(f"{shown}: {place} has no id or no input", "", "invalid_file")
        name = str(sample["id"])
        given = [sample["input"], sample.get("choices"), sample.get("target")]
        if name in seen and not json_equal(seen[name], given):
            raise InputError(f"{shown}: {place}: id is that of another sample with another input", "a sample's epochs share their input")
        if name not in seen:
            seen[name] = given
            gathered.add(sample_case(sample, name, scorers, place, gathered))
        gathered.answers.append({"case_id": name, "trial": sample.get("epoch", 1), **logged_answer(sample)})


def scorer_names(log: JsonObject) -> list[str]:
    """The names of the scorers of *log*, without their package."""
    found: list[str] = []
    parts = [log.get("eval"), log.get("results")]
    for part, key in zip(parts, ("scorers", "scores"), strict=True):
        listed = part.get(key) if isinstance(part, dict) else None
        for one in listed if isinstance(listed, list) else []:
            name = one.get("scorer", one.get("name")) if isinstance(one, dict) else None
            if isinstance(name, str):
                found.append(name.rpartition("/")[2])
    return list(dict.fromkeys(found))


def sample_case(sample: JsonObject, name: str, scorers: list[str], place: str, gathered: Gathered) -> JsonObject:
    """The case of *sample*: its choices stand beside the question, its target is a list of texts."""
    case: JsonObject = {"id": name, "input": sample["input"]}
    if sample.get("choices"):
        case["input"] = {"question": sample["input"], "choices": sample["choices"]}
    target = sample.get("target")
    targets = [one for one in (target if isinstance(target, list) else [target]) if isinstance(one, str) and one]
    if targets:
        case["expected"] = targets
    if isinstance(sample.get("metadata"), dict) and sample["metadata"]:
        case["metadata"] = sample["metadata"]
    gathered.note(MAPPED, "sample -> case", place)
    for key in ("sandbox", "files", "setup", "store"):
        if sample.get(key):
            gathered.note(DROPPED, key, place, "is the agent's surroundings, which the runner makes")
    for scorer in scorers:
        entry, difference = INSPECT_SCORERS.get(scorer, ({}, "is code of the task, or needs what the log does not hold"))
        if not entry or not targets:
            gathered.note(DROPPED, f"scorer {scorer}", place, difference if not entry else "the sample has no target")
        else:
            gathered.note(APPROXIMATED, f"scorer {scorer} -> {entry['type']}", place, difference)
            add_entries(case, [(scorer, entry)])
    return case


def logged_answer(sample: JsonObject) -> JsonObject:
    """What the log has of the answer: output, tool calls with their results, usage; or the error that ended the sample."""
    answer: JsonObject = {"output": completion_of(sample)}
    error = sample.get("error")
    if isinstance(error, dict):
        answer["error"] = {"type": "recorded", "message": str(error.get("message", ""))[:2000]}
    steps = recorded_calls(sample.get("messages"))
    if steps:
        answer["steps"] = steps
    usage = sample.get("model_usage")
    numbers = [one for one in usage.values() if isinstance(one, dict)] if isinstance(usage, dict) else []
    totals = {key: sum(one.get(key) or 0 for one in numbers) for key in ("input_tokens", "output_tokens")}
    return {**answer, "usage": totals} if numbers else answer


def completion_of(sample: JsonObject) -> Any:
    """The text of the last answer; '' when there is none."""
    output = sample.get("output")
    if not isinstance(output, dict):
        return ""
    choices = output.get("choices")
    if isinstance(output.get("completion"), str) or not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return output.get("completion") or ""
    message = choices[0].get("message")
    return message_text(message.get("content")) if isinstance(message, dict) else ""


def message_text(content: Any) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def recorded_calls(messages: Any) -> list[JsonObject]:
    """A step for each tool call in *messages*, with the result that answers it."""
    messages = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    results = {one["tool_call_id"]: one for one in messages if one.get("role") == "tool" and isinstance(one.get("tool_call_id"), str)}
    steps = []
    for message in messages:
        calls = message.get("tool_calls") if message.get("role") == "assistant" else None
        for call in calls if isinstance(calls, list) else []:
            if not isinstance(call, dict) or not isinstance(call.get("function"), str):
                continue
            step: JsonObject = {"kind": "tool", "name": call["function"], "args": call_arguments(call.get("arguments"))}
            result = results.get(call.get("id") or "")
            if result is not None:
                step.update(status="error" if result.get("error") else "ok", result=message_text(result.get("content")))
            steps.append(step)
    return steps


def call_arguments(arguments: Any) -> Any:
    """The arguments of a call; a text that holds JSON is read."""
    try:
        return parse_json(arguments) if isinstance(arguments, str) else arguments
    except JsonError:
        return arguments
