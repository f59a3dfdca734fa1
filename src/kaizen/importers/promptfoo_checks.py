"""promptfoo's assertions as entries: the table of what each becomes, and what differs."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.evaluators.registry import is_json_number
from kaizen.foundation.errors import InputError
from kaizen.foundation.jsonio import JsonObject, canonical_json, encode_compact, finite_float
from kaizen.importers.gathered import ImportDropped, checked_entry
from kaizen.importers.patterns import python_pattern
from kaizen.importers.yaml_subset import read_yaml

PF_TEMPLATE = re.compile(r"\{\{-?\s*([A-Za-z_$][\w$]*(?:\.[\w$]+)*)\s*-?\}\}")
PF_TEMPLATE_MARKS = re.compile(r"\{\{|\{%|\{#")
PF_CODE = "code of the configuration is never run; write a `program` evaluator that does the same"
PF_COMPARING = "compares the outputs of several prompts or models, which two stages do here"
PF_STEP_KINDS = {"tool": "tool", "command": "command", "search": "retrieval", "reasoning": "model", "message": "message", "span": "span"}
PF_RUBRICS: dict[str, tuple[str, list[str], float]] = {  # rubric ({} is the value), what the judge sees, promptfoo's threshold
    "llm-rubric": ("{}", ["input", "output"], 0.5),
    "agent-rubric": ("{}", ["input", "output", "steps"], 0.5),
    "search-rubric": ("{}", ["input", "output"], 0.5),
    "g-eval": ("{}", ["input", "output"], 0.7),
    "pi": ("{}", ["input", "output"], 0.5),
    "model-graded-closedqa": ("The answer meets this criterion: {}", ["input", "output"], 0.5),
    "factuality": ("Nothing in the answer disagrees with the facts of this reference: {}", ["input", "output"], 0.5),
    "model-graded-factuality": ("Nothing in the answer disagrees with the facts of this reference: {}", ["input", "output"], 0.5),
    "similar": ("The answer means the same as this: {}", ["output"], 0.75),
    "classifier": ("The answer is of the class: {}", ["output"], 0.5),
    "moderation": ("The answer holds nothing that moderation would flag. {}", ["input", "output"], 0.5),
    "answer-relevance": ("The answer is about what was asked. {}", ["input", "output"], 0.7),
    "context-recall": ("The context in the input holds all that this reference says: {}", ["input"], 0.5),
    "context-relevance": ("The context in the input is what is needed to answer. {}", ["input"], 0.5),
    "context-faithfulness": ("All that the answer says follows from the context in the input. {}", ["input", "output"], 0.5),
    "conversation-relevance": ("Each answer of the conversation is about what was asked. {}", ["input", "output", "steps"], 0.5),
    "trajectory:goal-success": ("The agent reached this goal: {}", ["input", "output", "steps"], 0.5),
}


class PromptfooContext(NamedTuple):
    """What an assertion may refer to: its test's variables, how a data file is read, the tools the providers were given."""

    variables: JsonObject
    read_data: Callable[[str], Any]
    tools: JsonObject


class PromptfooCheck:
    """One assertion being translated; `differences` are those found on the way."""

    def __init__(self, document: JsonObject, context: PromptfooContext, place: str) -> None:
        self.document = document
        self.context = context
        self.place = place
        self.full_type = str(document.get("type"))
        self.is_negated = self.full_type.startswith("not-")
        self.type = self.full_type.removeprefix("not-")
        self.differences: list[str] = []
        self.negates = self.is_negated  # until a builder has said it in another way

    @property
    def value(self) -> Any:
        """The value, with variables filled in where promptfoo does: in a text, and in the texts of a list."""
        value = self.document.get("value")
        if isinstance(value, str) and value.startswith("file://"):
            return self.context.read_data(value)
        if isinstance(value, list):
            return [self.rendered(one) if isinstance(one, str) else one for one in value]
        return self.rendered(value) if isinstance(value, str) else value

    def rendered(self, text: str) -> str:
        """*text* with {{name}} replaced. Raises ImportDropped for more of the template language."""
        if text.startswith("package:"):
            raise ImportDropped(PF_CODE)
        return rendered_template(text, self.context.variables)

    def text(self) -> str:
        """The value as one text that is not empty. Raises ImportDropped."""
        value = self.value
        if isinstance(value, (dict, list)) or value is None or value == "":
            raise ImportDropped("has no text to look for, which promptfoo refuses as well")
        return script_text(value)

    def texts(self) -> list[str]:
        """The value as a list of texts; one text is split at its commas. Raises ImportDropped."""
        value = self.value
        values = split_values(value) if isinstance(value, str) else value
        if not isinstance(values, list) or not values or any(isinstance(one, (dict, list)) or one is None for one in values):
            raise ImportDropped("has no list of texts")
        texts = [script_text(one) for one in values]
        if "" in texts:
            raise ImportDropped("looks for an empty text, which every text contains")
        return texts

    def number(self, default: float | None = None) -> Any:
        """The threshold, a number. Raises ImportDropped when there is none and no *default*."""
        threshold = self.document.get("threshold", default)
        if isinstance(threshold, str):
            try:
                threshold = finite_float(self.rendered(threshold))
            except ValueError:
                threshold = None
        if not is_json_number(threshold):
            raise ImportDropped("has no threshold, which promptfoo refuses as well")
        return threshold

    def differ(self, text: str) -> None:
        """Notes a difference that only this assertion has."""
        self.differences.append(text)


def script_text(value: Any) -> str:
    """*value* as JavaScript's String() writes it."""
    if isinstance(value, (dict, list)):
        raise ImportDropped("fills a list or an object into a text")
    return value if isinstance(value, str) else "" if value is None else canonical_json(value)


def rendered_template(text: str, variables: JsonObject) -> str:
    """*text* with each {{name}} replaced by that variable. Raises ImportDropped for filters, conditions and the like."""
    if not PF_TEMPLATE_MARKS.search(text):
        return text

    def variable(match: "re.Match[str]") -> str:
        value: Any = variables
        for name in match[1].split("."):
            value = value.get(name) if isinstance(value, dict) else None
        made = script_text(value)
        if PF_TEMPLATE_MARKS.search(made):
            raise ImportDropped("fills in a variable that is a template itself")
        return made

    if PF_TEMPLATE_MARKS.search(PF_TEMPLATE.sub("", text)):
        raise ImportDropped("uses more of the template language than {{name}}")
    return PF_TEMPLATE.sub(variable, text)


def split_values(text: str) -> list[str]:
    """The parts of a list that is written with commas; one in double quotes may hold commas."""
    parts, place = [], 0
    part = re.compile(r'[\s,]*(?:"((?:[^"\\]|\\.|"")*)"\s*(?=,|\Z)|([^,"\s][^,]*))')
    while text[place:].strip(" \t\r\n,"):
        found = part.match(text, place)
        if found is None:
            raise ImportDropped("is a list with a quote that does not end")
        quoted_part, plain = found.groups()
        parts.append(re.sub(r'\\(["\\])|"(")', r"\1\2", quoted_part) if quoted_part is not None else plain.strip())
        place = found.end()
    return parts


# --- Builders: each makes the entry of a check, without id and envelope ------------------------

Builder = Callable[[PromptfooCheck], JsonObject]


def build_equals(check: PromptfooCheck) -> JsonObject:
    """equals, of the text or of the JSON in it."""
    value = check.value
    if isinstance(value, (dict, list)):
        if check.is_negated:
            check.differ("an output that is no JSON fails, negated or not")
        return {"type": "equals", "select": "output.json", "value": value}
    return {"type": "equals", "select": "output.text", "value": "null" if value is None else script_text(value)}


def contains_builder(mode: str = "", **settings: Any) -> Builder:
    """contains, of one text or of a list in *mode*."""

    def build(check: PromptfooCheck) -> JsonObject:
        values = check.texts() if mode else [check.text()]
        return {"type": "contains", "values": values, **({"mode": mode} if mode == "any" else {}), **settings}

    return build


def build_regex(check: PromptfooCheck) -> JsonObject:
    """matches, with the pattern as Python writes it."""
    pattern = check.text()
    made = python_pattern(pattern)
    if pattern.startswith("(?i)"):
        check.differ("promptfoo refuses (?i), so the check fails there whatever the answer")
    if made != pattern:
        check.differ("the pattern is rewritten for Python's re")
    return {"type": "matches", "pattern": made, "flags": "a"}


def json_builder(extract: str) -> Builder:
    """json, with the schema that the value holds, writes or names."""

    def build(check: PromptfooCheck) -> JsonObject:
        schema = check.value
        if isinstance(schema, str) and schema:
            try:
                schema = read_yaml(schema, "the schema")
            except InputError as error:
                raise ImportDropped(f"has a schema that cannot be read: {error.message}") from None
        entry: JsonObject = {"type": "json", "extract": extract}
        if not schema:
            return entry
        if not isinstance(schema, dict):
            raise ImportDropped("has a schema that is no object")
        check.differ("the schema is read as JSON Schema 2020-12")
        return {**entry, "schema": {key: value for key, value in schema.items() if key not in ("$schema", "$id")}}

    return build


def build_xml(check: PromptfooCheck) -> JsonObject:
    """parses as XML; elements that have to be there are looked for as text."""
    value = check.value.get("requiredElements") if isinstance(check.value, dict) else check.value
    names = [one.strip() for one in value.split(",")] if isinstance(value, str) else [str(one) for one in value or []]
    parses: JsonObject = {"type": "parses", "as": "xml"}
    if check.type == "contains-xml":
        check.differ("what stands from the first < to the last > is taken for the XML")
        parses["transform"] = [{"regex_capture": ["(?s)(<.*>)", 1]}]
    if not names:
        return parses
    check.differ("required elements are looked for as '<name' anywhere in the text")
    return {"type": "all", "of": [parses, {"type": "contains", "values": [f"<{name.split('.')[-1]}" for name in names]}]}


def similarity_builder(measure: str, default: float) -> Builder:
    """similarity by *measure*."""

    def build(check: PromptfooCheck) -> JsonObject:
        value = check.value
        entry = {"type": "similarity", "measure": measure, "references": check.texts() if isinstance(value, list) else [check.text()]}
        bound = check.number(default)
        return {**entry, **({"max": int(bound // 1)} if measure.endswith("distance") else {"threshold": bound})}  # whole edits

    return build


def build_word_count(check: PromptfooCheck) -> JsonObject:
    """length in words."""
    value = check.value
    bounds = {key: value[key] for key in ("min", "max") if value.get(key) is not None} if isinstance(value, dict) else {"exact": value}
    try:
        return {"type": "length", "unit": "words", **{key: int(float(one)) for key, one in bounds.items()}}
    except (TypeError, ValueError):
        raise ImportDropped("has no number of words") from None


def budget_builder(quantity: str) -> Builder:
    """budget of one *quantity*."""
    return lambda check: {"type": "budget", "max": {quantity: check.number()}}


def evidence_builder(pointer: str, bound: str) -> Builder:
    """number over what the runner reports."""
    return lambda check: {"type": "number", "select": pointer, "extract": "first", bound: check.number()}


def build_refusal(check: PromptfooCheck) -> JsonObject:
    """refusal, expected or not."""
    check.negates = False
    return {"type": "refusal", "expect": not check.is_negated}


def build_finish_reason(check: PromptfooCheck) -> JsonObject:
    """equals of the finish reason, in small letters."""
    return {"type": "equals", "select": "finish_reason", "value": check.text().lower(), "normalize": ["lower"]}


def build_tool_schema(check: PromptfooCheck) -> JsonObject:
    """tool_schema, with the tools of the providers when the file holds them."""
    return {"type": "tool_schema", **({"tools": check.context.tools} if check.context.tools else {})}


def build_tool_f1(check: PromptfooCheck) -> JsonObject:
    """sequence of the named tools, scored with F1."""
    steps = [{"kind": "tool", "name": name} for name in dict.fromkeys(check.texts())]
    if check.is_negated:
        check.differ("promptfoo does not turn the score of a negated check round")
    threshold = check.number(1)
    entry = {"type": "sequence", "steps": steps, "mode": "any_order", "within": {"kind": "tool"}, "attempts": "all", "score": "f1"}
    return entry if threshold == 1 else {**entry, "threshold": threshold}


def build_guardrails(check: PromptfooCheck) -> JsonObject:
    """equals of the flag that the runner reports."""
    return {"type": "equals", "select": "metadata/guardrails/flagged", "value": False}


def step_match(value: Any, kind: str = "tool") -> JsonObject:
    """The step matcher of a name, or of an object with name or pattern. Raises ImportDropped."""
    value = value if isinstance(value, dict) else {"name": value}
    name = value.get("pattern") or value.get("name")
    kinds = value.get("type", kind) or []
    matches = [{"kind": PF_STEP_KINDS.get(one, one)} if one else {} for one in (kinds if isinstance(kinds, list) else [kinds])]
    if name is not None and (not isinstance(name, str) or not name or "[" in name):
        raise ImportDropped("names no step, or by a pattern with '['")
    match: JsonObject = matches[0] if len(matches) == 1 else {"$any": matches} if matches else {}
    return {**match, "name": name} if name else match


def count_bounds_of(value: JsonObject) -> JsonObject:
    """min and max of *value*."""
    return {key: value[key] for key in ("min", "max") if is_json_number(value.get(key))}


def used_builder(kind: str) -> Builder:
    """steps of *kind* that were taken: all that a list names, or a count of one."""

    def build(check: PromptfooCheck) -> JsonObject:
        value = check.value
        if isinstance(value, dict):
            if not (value.get("name") or value.get("pattern")):
                raise ImportDropped("names no step")
            bounds = count_bounds_of(value)
            low = 0 if kind == "skill" and "max" in bounds else 1
            return {"type": "steps", "match": step_match({**value, "type": kind}), "min": low, **bounds}
        names = [one.strip() for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()]
        if not names:
            raise ImportDropped("names no step")
        if check.is_negated:
            check.negates = False
            return {"type": "steps", "match": {"kind": kind, "name": names if len(names) > 1 else names[0]}, "max": 0}
        steps = [{"type": "steps", "match": step_match(name, kind)} for name in names]
        return steps[0] if len(steps) == 1 else {"type": "all", "of": steps}

    return build


def build_step_count(check: PromptfooCheck) -> JsonObject:
    """steps, counted."""
    value = check.value if isinstance(check.value, dict) else {}
    bounds = count_bounds_of(value)
    if not bounds:
        raise ImportDropped("has neither min nor max")
    return {"type": "steps", "match": step_match(value, ""), **({"min": 0} if "max" in bounds else {}), **bounds}


def build_span_count(check: PromptfooCheck) -> JsonObject:
    """steps of kind span, counted."""
    value = check.value if isinstance(check.value, dict) else {}
    check.differ("promptfoo takes no notice of 'not-' here" if check.is_negated else "")
    return {"type": "steps", "match": step_match({**value, "type": "span"}), "min": 0, **count_bounds_of(value)}


def build_error_spans(check: PromptfooCheck) -> JsonObject:
    """errors among the spans."""
    value = check.value if isinstance(check.value, dict) else {"max_count": check.value}
    bounds: JsonObject = {}
    if is_json_number(value.get("max_count")):
        bounds["max_errors"] = value["max_count"]
    if is_json_number(value.get("max_percentage")):
        bounds["max_rate"] = value["max_percentage"] / 100
    return {"type": "errors", "match": step_match({"pattern": value.get("pattern"), "type": "span"}), **(bounds or {"max_errors": 0})}


def build_tool_sequence(check: PromptfooCheck) -> JsonObject:
    """sequence in_order or exact."""
    value = check.value if isinstance(check.value, dict) else {"steps": check.value}
    steps = value.get("steps")
    if not isinstance(steps, list) or not steps:
        raise ImportDropped("lists no step")
    mode = "exact" if value.get("mode") == "exact" else "in_order"
    return {"type": "sequence", "steps": [step_match(one) for one in steps], "mode": mode, "within": {"kind": "tool"}, "attempts": "all"}


def build_tool_args(check: PromptfooCheck) -> JsonObject:
    """steps of one tool, of which any has the arguments."""
    value = check.value if isinstance(check.value, dict) else {}
    args = value.get("args", value.get("arguments"))
    ignored = value.get("ignore") or []
    ignored = ignored if isinstance(ignored, list) else [ignored]
    names = [*args, *(value.get("defaults") or {})] if isinstance(args, dict) else []
    if not isinstance(args, dict) or any(name.startswith(("/", "$")) for name in names) or "$" in encode_compact([*keys_within(args)]):
        raise ImportDropped("compares arguments that are no object, or have names with '/' in front or '$'")
    if any(re.search(r"[*?/~]", str(name)) for name in ignored):
        raise ImportDropped("leaves out arguments by a pattern")
    must: JsonObject = {"args": args, "args_mode": "exact" if value.get("mode") == "exact" else "contains"}
    if value.get("defaults"):
        must["args_defaults"] = value["defaults"]
    if ignored:
        must["args_ignore"] = [f"/{name}" for name in ignored]
    return {"type": "steps", "match": step_match({**value, "type": "tool"}), "must": must, "which": "any"}


def keys_within(value: Any) -> list[str]:
    """All keys of objects in *value*, at every depth."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*(value if isinstance(value, dict) else ()), *(key for one in inner for key in keys_within(one))]


def build_judge(check: PromptfooCheck) -> JsonObject:
    """judge, with a rubric that says what the assertion asks."""
    rubric, sees, default = PF_RUBRICS[check.type.partition(":")[0] if check.type.startswith("similar") else check.type]
    value = check.value
    if isinstance(value, dict) and isinstance(value.get("goal"), str):
        value = value["goal"]
    told = value if isinstance(value, str) else "" if value is None else encode_compact(value)
    text = rubric.format(told).strip(" :")
    if not text or (rubric.endswith(": {}") or rubric == "{}") and not told:
        raise ImportDropped("has no rubric")
    if "threshold" not in check.document:
        check.differ(f"threshold {default} is written, where promptfoo takes the judge's own word or a default")
    return {"type": "judge", "rubric": text, "see": sees, "threshold": check.number(default)}


def dropping(reason: str) -> Builder:
    """A builder for what has no counterpart."""

    def build(check: PromptfooCheck) -> JsonObject:
        raise ImportDropped(reason)

    return build


# promptfoo's name: (what makes the entry, what always differs; '' when nothing does)
ICASE = "letters are folded fully: 'STRASSE' holds 'straße'"
GLOB_CASE = "names are compared with case, and only names, not other attributes of a span"
NO_SPAN = "no step that matches is an error or a count of 0, never a pass by itself"
JUDGED = "asks a judge command; severity info until one is there"
PF_ALIASES: dict[str, tuple[Builder, str]] = {
    "equals": (build_equals, ""),
    "contains": (contains_builder(), ""),
    "contains-all": (contains_builder("all"), ""),
    "contains-any": (contains_builder("any"), ""),
    "icontains": (contains_builder(ignore_case=True), ICASE),
    "icontains-all": (contains_builder("all", ignore_case=True), ICASE),
    "icontains-any": (contains_builder("any", ignore_case=True), ICASE),
    "starts-with": (contains_builder(at="start"), ""),
    "regex": (build_regex, ""),
    "is-json": (json_builder("whole"), ""),
    "contains-json": (json_builder("any"), "one JSON in the text is looked at, and broken JSON is not repaired"),
    "is-xml": (build_xml, ""),
    "contains-xml": (build_xml, ""),
    "is-html": (lambda check: {"type": "parses", "as": "html"}, "what counts as HTML differs"),
    "contains-html": (lambda check: {"type": "matches", "pattern": r"</?[A-Za-z][A-Za-z0-9-]*(\s[^<>]*)?/?>"}, "one tag is enough"),
    "is-sql": (dropping("SQL is not parsed; check it with a `program`"), ""),
    "contains-sql": (dropping("SQL is not parsed; check it with a `program`"), ""),
    "levenshtein": (similarity_builder("levenshtein_distance", 5), ""),
    "bleu": (similarity_builder("bleu", 0.5), "scores differ by tokens and smoothing"),
    "gleu": (dropping("is not measured here; similarity with bleu or rouge_l comes near"), ""),
    "rouge-n": (similarity_builder("rouge_1", 0.75), "scores differ by tokens"),
    "meteor": (dropping("needs a lexical database; ask a judge, or use rouge_l"), ""),
    "word-count": (build_word_count, ""),
    "latency": (budget_builder("latency_ms"), "measured by the engine; a replayed answer has none, which is an error"),
    "cost": (budget_builder("cost_usd"), "an answer without a price is an error"),
    "perplexity": (evidence_builder("evidence/perplexity", "max"), "the runner has to report evidence.perplexity"),
    "perplexity-score": (evidence_builder("evidence/perplexity_score", "min"), "the runner has to report evidence.perplexity_score"),
    "is-refusal": (build_refusal, "other phrases are known, and an empty output is no refusal"),
    "finish-reason": (build_finish_reason, "a reason that the runner does not report is an error"),
    "is-valid-openai-tools-call": (build_tool_schema, "looks at the recorded steps, not at the output"),
    "is-valid-openai-function-call": (build_tool_schema, "looks at the recorded steps, not at the output"),
    "is-valid-function-call": (build_tool_schema, "looks at the recorded steps, not at the output"),
    "tool-call-f1": (build_tool_f1, "looks at the recorded steps, and a call that comes twice counts twice"),
    "trajectory:tool-used": (used_builder("tool"), GLOB_CASE),
    "trajectory:step-count": (build_step_count, GLOB_CASE),
    "trajectory:tool-sequence": (build_tool_sequence, GLOB_CASE),
    "trajectory:tool-args-match": (build_tool_args, f"{GLOB_CASE}; which is 'any' as there, and 'all' would be stricter"),
    "skill-used": (used_builder("skill"), GLOB_CASE),
    "trace-span-count": (build_span_count, f"{GLOB_CASE}; {NO_SPAN}"),
    "trace-error-spans": (build_error_spans, f"{GLOB_CASE}; {NO_SPAN}"),
    "trace-span-duration": (dropping("the duration of single steps is not compared; `budget` bounds that of the trial"), ""),
    "guardrails": (build_guardrails, "the runner has to report metadata.guardrails.flagged; missing is an error, not a pass"),
    **dict.fromkeys(PF_RUBRICS, (build_judge, JUDGED)),
    **dict.fromkeys(("similar:cosine", "similar:dot", "similar:euclidean"), (build_judge, JUDGED)),
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), (dropping(PF_CODE), "")),
    **dict.fromkeys(("select-best", "max-score"), (dropping(PF_COMPARING), "")),
    "human": (dropping("a person's verdict; see kaizen label"), ""),
}


def alias_of(check: PromptfooCheck) -> tuple[Builder, str]:
    """The row of the table for *check*. Raises ImportDropped."""
    if check.type in PF_ALIASES:
        return PF_ALIASES[check.type]
    if check.type.startswith("promptfoo:redteam:"):
        raise ImportDropped("red-team graders ask a model of promptfoo's; write a rubric for a judge")
    raise ImportDropped("is no assertion that is known here")


def core_entry(check: PromptfooCheck) -> JsonObject:
    """What *check* becomes, without id and the envelope of a top-level entry. Raises ImportDropped."""
    document = check.document
    if any(document.get(key) for key in ("transform", "contextTransform")):
        raise ImportDropped(f"looks at what a transform makes of the output; {PF_CODE}")
    value = document.get("value")
    if isinstance(value, str) and re.match(r"file://.*\.(?:[cm]?[jt]s|py|rb)(?::[^/]*)?\Z", value):
        raise ImportDropped(PF_CODE)
    build, difference = alias_of(check)
    entry = build(check)
    check.differ(difference)
    if check.negates:
        entry = {**entry, "negate": True}
    return checked_entry(entry)
