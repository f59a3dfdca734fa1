"""The envelope: what every entry may say beside its type's parameters; making it ready.

What does not depend on the case is compiled once. A parameter that holds `$case` is read from
each case, checked like one written in the file, and prepared anew. The order in which an entry
is worked through: when, $case, select, transform, the type's check, threshold, negate.
"""

import re
from collections.abc import Callable
from typing import Any

from kaizen.evaluators.decimals import exact_complement
from kaizen.evaluators.outcomes import (
    ERROR,
    FAIL,
    NOT_APPLICABLE,
    PASS,
    ConfigurationError,
    EmptyFromCase,
    NothingAsked,
    NotMeasurable,
    Outcome,
    errored,
    not_applicable,
)
from kaizen.evaluators.paths import PathExpression, parse_path, select_path, values_at
from kaizen.evaluators.predicates import MISSING, compile_predicate
from kaizen.evaluators.regex_timer import PatternTimeout
from kaizen.evaluators.registry import (
    REQUIRED,
    Check,
    EvaluatorType,
    Parameter,
    View,
    check_parameter,
    evaluator_named,
    evaluator_names,
    json_type_phrase,
)
from kaizen.evaluators.transforms import Transform, compile_transforms
from kaizen.foundation.jsonio import JsonObject, json_equal, pointer_token, pointer_tokens
from kaizen.foundation.text import UNSAFE, did_you_mean, listed, quoted

ON_MISSING = (ERROR, FAIL, NOT_APPLICABLE)
SEVERITIES = ("hard", "gate", "score", "info")
MAX_ENTRY_ID = 200

ENVELOPE = (
    Parameter("id", "text", "", "stable name in results and history; unique in the file; required but inside `of`"),
    Parameter("type", "text", REQUIRED, "one of the types below"),
    Parameter("select", "text", None, "what is looked at: a root, then an optional JSON Pointer; most types: output.text"),
    Parameter("transform", "list", [], "steps between what is selected and what is checked: names or {name: [arguments]}"),
    Parameter("negate", "boolean", False, "pass and fail change places, score becomes 1 − score; error and not_applicable stay"),
    Parameter("threshold", "number", None, "pass when the score is at least this; without it the type's own bar, which is 1 for rules"),
    Parameter("weight", "number", 1, "share in the score of the trial; 0 counts nothing there and changes no status"),
    Parameter("severity", "choice", "gate", "hard: a failure rejects; gate: decides; score: counts only; info: shown only", SEVERITIES),
    Parameter("metric", "text", None, "name under which results are summed up over cases; default: the id"),
    Parameter("when", "object", {}, '{"tags": [any of], "split": [any of], "case": {pointer: predicate}}; else not_applicable'),
    Parameter("on_missing", "choice", None, "when there is nothing to look at; default error, fail for what an output lacks", ON_MISSING),
    Parameter("version", "text", None, "free text that enters the fingerprint"),
)
ENVELOPE_NAMES = tuple(parameter.name for parameter in ENVELOPE)
OUTER_ONLY = ("severity", "weight", "metric")
WHEN_NAMES = ("tags", "split", "case")

EMPTY_VALUES: tuple[Any, ...] = ("", [])

Resolver = Callable[[JsonObject], Any]


class PreparedEntry:
    """An entry that is ready to look at observations; `prepare_entry` makes it.

    `document` is the entry without keys that only repeat a default. `versions` holds the semantics version of its type and of
    those inside it. `takes_from_case`: what it does depends on the case, beyond `when`.
    """

    def __init__(self, entry: JsonObject, kind: EvaluatorType, is_nested: bool) -> None:
        self.type = kind
        self.id = str(entry.get("id", ""))
        self.severity = str(entry.get("severity", "gate"))
        self.weight = entry.get("weight", 1)
        self.metric = str(entry.get("metric", self.id))
        self.threshold: float | None = entry.get("threshold")
        self.negate = bool(entry.get("negate", False))
        self.on_missing: str | None = entry.get("on_missing")
        self.is_nested = is_nested
        self.when = compile_when(entry.get("when", {}))
        self.path: PathExpression | None = None
        self.reads_output = False  # the output itself is looked at
        self.is_plain = False  # the outcome of the check is the outcome of the entry
        self.transforms: list[Transform] = []
        self.children: list[PreparedEntry] = []
        self.settings: JsonObject = {"id": self.id}
        self.from_case: list[tuple[Parameter, Resolver, str]] = []  # and the first pointer into the case
        self.check: Check | None = None
        self.document: JsonObject = {}
        self.versions: dict[str, int] = {kind.name: kind.version}

    @property
    def takes_from_case(self) -> bool:
        """True when a parameter of it, or of an entry inside it, is read from the case."""
        return bool(self.from_case) or any(child.takes_from_case for child in self.children)

    def check_for(self, case: JsonObject) -> Check:
        """The check with the parameters that *case* brings. Raises ConfigurationError, NotMeasurable, NothingAsked."""
        settings = dict(self.settings)
        for parameter, resolve, _ in self.from_case:
            value = resolve(case)
            check_parameter(parameter, value)
            settings[parameter.name] = value
        return self.type.prepare(settings)

    def place_in_case(self, pointer: str) -> str:
        """Where in the case the value comes from that is wrong at *pointer* in the entry; '' when that is not known."""
        name = pointer.split("/")[1] if pointer else ""
        places = [place for parameter, _, place in self.from_case if name in ("", parameter.name)]
        return places[0] if places else next(filter(None, (child.place_in_case("") for child in self.children)), "")

    def missing_in(self, case: JsonObject) -> str:
        """What the entry asks of *case* and does not find there; '' when nothing. Raises ConfigurationError for what cannot be used."""
        if self.when is not None and self.when(case):
            return ""
        try:
            if self.from_case:
                self.check_for(case)
        except NothingAsked:
            return ""
        except NotMeasurable as absent:
            return absent.reason
        return next(filter(None, (child.missing_in(case) for child in self.children)), "")

    def evaluate(self, observation: JsonObject, case: JsonObject, memo: JsonObject) -> Outcome:
        """The outcome for a completed *observation* of *case*; *memo* is shared by all entries that look at it."""
        check: Check | None = None
        try:
            reason = "" if self.when is None else self.when(case)
            if reason:
                return not_applicable(reason)
            check = self.check or self.check_for(case)
            value = None
            if self.path is not None:
                selected = select_path(self.path, observation, case, memo)
                if not selected.found:
                    return self.missing(selected.reason, selected.agent_fault, check)
                value = selected.value
                for transform in self.transforms:
                    value = transform(value)
            outcome = check(View(value, observation, case, memo))
        except NotMeasurable as absent:
            return self.missing(absent.reason, absent.agent_fault, check)
        except NothingAsked as nothing:
            return not_applicable(nothing.reason)
        except PatternTimeout as timeout:
            return errored(timeout.reason)
        except ConfigurationError as error:
            return errored(f"cannot be applied to this case: {error.message}")
        except RecursionError:
            return errored("what is looked at is nested too deeply")
        return outcome if self.is_plain and value not in EMPTY_VALUES else self.finished(outcome, value)

    @property
    def is_elsewhere(self) -> bool:
        """True when evidence does not point into the output as it is."""
        return bool(self.transforms) or (self.path is not None and self.path.text not in ("output.text", "output"))

    def missing(self, reason: str, agent_fault: bool, check: Check | None) -> Outcome:
        """What follows from absent evidence. It is never negated: what is not there proves nothing.

        A failure has the `value_missing` of *check* for its value, where there is one: it counts like an answer that is wrong.
        """
        status = self.on_missing or (FAIL if agent_fault and self.reads_output else ERROR)
        if status != FAIL:
            return Outcome(status, None, reason)
        return Outcome(FAIL, 0.0, reason, getattr(check, "value_missing", None))

    def finished(self, outcome: Outcome, value_seen: Any) -> Outcome:
        """*outcome* about *value_seen* after threshold and negation, with what a reader must know in its reason."""
        status, score, reason, value, evidence = outcome
        if status in (PASS, FAIL):
            if self.threshold is not None and score is not None:
                status = PASS if score >= self.threshold else FAIL
                reason = f"{reason}; score {score!r} is {'at least' if status == PASS else 'below'} {self.threshold!r}"
            if self.negate:
                status = FAIL if status == PASS else PASS
                score = None if score is None else exact_complement(score)
                reason = f"negated: {reason}"
        if self.path is not None and value_seen in EMPTY_VALUES:
            reason = f"{reason} (what was looked at is an empty {'text' if value_seen == '' else 'list'})"
        if evidence and self.path is not None and self.is_elsewhere:
            looked_at = f"{self.path.text}{' transformed' if self.transforms else ''}"
            evidence = tuple({**each, "in": looked_at} if "start" in each or "pointer" in each else each for each in evidence)
        return Outcome(status, score, reason, value, evidence)


# --- Making an entry ready ---------------------------------------------------------------


def prepare_entry(entry: Any, is_nested: bool = False) -> PreparedEntry:
    """*entry* ready to be evaluated. Raises ConfigurationError whose pointer is inside the entry."""
    if not isinstance(entry, dict):
        raise ConfigurationError("", f"is {json_type_phrase(entry)}, not an object")
    kind = entry_type(entry)
    check_entry_keys(entry, kind, is_nested)
    for parameter in ENVELOPE:
        if parameter.name in entry:
            refuse_case_value(entry[parameter.name], f"/{parameter.name}")
            if parameter.name not in ("transform", "when") or entry[parameter.name]:
                check_parameter(parameter, entry[parameter.name])
    check_entry_numbers(entry, kind)
    check_entry_id(entry, is_nested)
    prepared = PreparedEntry(entry, kind, is_nested)
    if kind.selects:
        prepared.path = compile_select(entry.get("select", kind.default_select))
        prepared.transforms = compile_transforms(entry.get("transform", []), "/transform")
        prepared.reads_output = prepared.path.root.startswith("output")
    prepared.is_plain = not (prepared.negate or prepared.is_elsewhere) and prepared.threshold is None
    prepare_parameters(prepared, entry)
    prepared.document = entry_document(entry, prepared)
    if not prepared.from_case:
        prepared.check = kind.prepare(prepared.settings)
    return prepared


def entry_type(entry: JsonObject) -> EvaluatorType:
    """The registered type that *entry* names. Raises ConfigurationError with the nearest name."""
    name = entry.get("type")
    if not isinstance(name, str):
        raise ConfigurationError("/type" if "type" in entry else "", "has no type", f"types: {listed(evaluator_names(), 40)}")
    try:
        return evaluator_named(name)
    except KeyError:
        raise ConfigurationError("/type", f"type {quoted(name)} is unknown", did_you_mean(name, evaluator_names())) from None


def check_entry_keys(entry: JsonObject, kind: EvaluatorType, is_nested: bool) -> None:
    """Raises ConfigurationError for a key that the entry cannot have, or a required one that it has not."""
    own = [parameter.name for parameter in kind.parameters]
    for key in entry:
        if key in OUTER_ONLY and is_nested:
            raise ConfigurationError(f"/{key}", f"{key} belongs to the entry that holds `of`")
        if key in ("select", "transform") and not kind.selects:
            raise ConfigurationError(f"/{key}", f"type {kind.name} has no {key}: it looks at the whole observation")
        if key not in own and key not in ENVELOPE_NAMES:
            hint = did_you_mean(key, [*own, *ENVELOPE_NAMES])
            raise ConfigurationError(pointer_token(key), f"key {quoted(key)} is unknown for type {kind.name}", hint)
    for parameter in kind.parameters:
        if parameter.default is REQUIRED and parameter.name not in entry:
            raise ConfigurationError("", f"type {kind.name} needs {parameter.name}", parameter.text)


def check_entry_numbers(entry: JsonObject, kind: EvaluatorType) -> None:
    """Raises ConfigurationError for a threshold or weight out of range."""
    if not 0 <= entry.get("threshold", 0) <= 1:
        raise ConfigurationError("/threshold", "threshold is not between 0 and 1")
    if not 0 <= entry.get("weight", 0) <= 1e9:
        raise ConfigurationError("/weight", "weight is not between 0 and 1e9")


def check_entry_id(entry: JsonObject, is_nested: bool) -> None:
    """Raises ConfigurationError for an id that is absent, too long or not fit to be shown."""
    identity = entry.get("id", "")
    if not identity and not is_nested:
        raise ConfigurationError("", "has no id", "give each evaluator a short name of its own")
    if len(identity) > MAX_ENTRY_ID or re.search(UNSAFE, identity):
        raise ConfigurationError("/id", f"id is longer than {MAX_ENTRY_ID} characters, or holds control characters")


def compile_select(text: str) -> PathExpression:
    """The path that `select` writes. Raises ConfigurationError."""
    try:
        return parse_path(text)
    except ValueError as error:
        raise ConfigurationError("/select", str(error)) from None


def prepare_parameters(prepared: PreparedEntry, entry: JsonObject) -> None:
    """Fills settings, from_case and children from the type's own parameters in *entry*."""
    prepared.settings["threshold"] = prepared.threshold  # for a type that cannot do without one
    for parameter in prepared.type.parameters:
        name = parameter.name
        if name not in entry:
            prepared.settings[name] = parameter.default
        elif parameter.kind == "entries":
            check_parameter(parameter, entry[name])
            prepared.settings[name] = children = [prepare_child(item, f"/{name}/{index}") for index, item in enumerate(entry[name])]
            prepared.children += children
            for child in children:
                prepared.versions.update(child.versions)
        else:
            resolve = case_resolver(entry[name], f"/{name}")
            if resolve is not None and parameter.kind == "argv":
                raise ConfigurationError(f"/{name}", "cannot be taken from a case", "what is started stands in evaluation.json")
            if resolve is None:
                check_parameter(parameter, entry[name])
                prepared.settings[name] = entry[name]
            else:
                prepared.from_case.append((parameter, resolve, first_case_pointer(entry[name])))


def prepare_child(entry: JsonObject, pointer: str) -> PreparedEntry:
    """An entry inside a combinator. Raises ConfigurationError whose pointer begins with *pointer*."""
    try:
        return prepare_entry(entry, is_nested=True)
    except ConfigurationError as error:
        raise ConfigurationError(pointer + error.pointer, error.message, error.hint) from None


def entry_document(entry: JsonObject, prepared: PreparedEntry) -> JsonObject:
    """*entry* without keys that only repeat a default: what its fingerprint is made of."""
    parameters = {parameter.name: parameter for parameter in (*ENVELOPE, *prepared.type.parameters)}
    document = {key: value for key, value in entry.items() if not json_equal_default(value, parameters[key].default)}
    for parameter in prepared.type.parameters:
        if parameter.kind == "entries" and parameter.name in entry:
            document[parameter.name] = [child.document for child in prepared.settings[parameter.name]]
    return document


def json_equal_default(value: Any, default: Any) -> bool:
    """True when *value* is the *default* of its parameter."""
    return default is not REQUIRED and json_equal(value, default)


# --- $case and when ------------------------------------------------------------------------


def case_resolver(value: Any, pointer: str) -> Resolver | None:
    """What reads *value* for a case when it holds `$case`; None when it is the same for all cases. Raises ConfigurationError."""
    if isinstance(value, dict):
        if "$case" in value:
            return case_reference(value, pointer)
        if "$literal" in value:
            return None
        parts = [(key, item, case_resolver(item, pointer + pointer_token(key))) for key, item in value.items()]
        if all(resolve is None for _, _, resolve in parts):
            return None
        return lambda case: {key: item if resolve is None else resolve(case) for key, item, resolve in parts}
    if isinstance(value, list):
        items = [(item, case_resolver(item, f"{pointer}/{index}")) for index, item in enumerate(value)]
        if all(resolve is None for _, resolve in items):
            return None
        return lambda case: [item if resolve is None else resolve(case) for item, resolve in items]
    return None


def case_reference(reference: JsonObject, pointer: str) -> Resolver:
    """What reads one {"$case": POINTER} for a case; it raises NotMeasurable when the case has nothing there."""
    text = reference["$case"]
    if len(reference) > 1:
        raise ConfigurationError(pointer, "has keys beside $case", "a value from the case stands alone")
    if not isinstance(text, str):
        raise ConfigurationError(pointer, f"$case is {json_type_phrase(text)}, not a JSON Pointer")
    try:
        tokens = pointer_tokens(text)
    except ValueError as error:
        raise ConfigurationError(pointer, str(error)) from None
    has_wildcard = "*" in tokens

    def resolve(case: JsonObject) -> Any:
        found = values_at(case, tokens)
        if found is None:
            raise NotMeasurable(f"the case has nothing at {text}")
        value = [each for _, each in found] if has_wildcard else found[0][1]
        return EmptyFromCase() if value == [] else value

    return resolve


def first_case_pointer(value: Any) -> str:
    """The first pointer of a `$case` in *value*; '' when there is none."""
    if isinstance(value, dict) and "$case" in value:
        return str(value["$case"])
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(first_case_pointer, items)), "")


def refuse_case_value(value: Any, pointer: str) -> None:
    """Raises ConfigurationError when *value*, which belongs to the envelope, is taken from the case."""
    if case_resolver(value, pointer) is not None:
        raise ConfigurationError(pointer, "cannot be taken from the case", "$case stands in the parameters of a type")


def compile_when(document: JsonObject) -> Callable[[JsonObject], str] | None:
    """What says why an entry does not apply to a case, '' when it does; None when it applies to all. Raises ConfigurationError."""
    for key in document:
        if key not in WHEN_NAMES:
            raise ConfigurationError("/when" + pointer_token(key), f"key {quoted(key)} is unknown in when", did_you_mean(key, WHEN_NAMES))
    if not document:
        return None
    tags = when_names(document, "tags")
    splits = when_names(document, "split")
    conditions = compile_when_case(document.get("case", {}))

    def reason_not_to(case: JsonObject) -> str:
        if tags is not None and tags.isdisjoint(case.get("tags") or ()):
            return f"only for cases tagged {listed(sorted(tags), last='or')}"
        if splits is not None and case.get("split") not in splits:
            return f"only for cases of {listed(sorted(splits), last='or')}"
        for pointer, tokens, holds in conditions:
            found = values_at(case, tokens)
            values = [MISSING] if not found else [value for _, value in found]
            if not any(holds(value) for value in values):
                return f"only for cases with another {pointer}"
        return ""

    return reason_not_to


def when_names(document: JsonObject, key: str) -> frozenset[str] | None:
    """The set of texts at *key* of `when`; None when it has none. Raises ConfigurationError."""
    if key not in document:
        return None
    names = [document[key]] if isinstance(document[key], str) else document[key]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"/when/{key}", f"{key} is no list of texts")
    return frozenset(names)


def compile_when_case(conditions: Any) -> list[tuple[str, list[str], Callable[[Any], bool]]]:
    """(pointer, its tokens, the predicate on what is there) for each condition of `when.case`. Raises ConfigurationError."""
    if not isinstance(conditions, dict):
        raise ConfigurationError("/when/case", f"case is {json_type_phrase(conditions)}, not an object of pointers")
    compiled: list[tuple[str, list[str], Callable[[Any], bool]]] = []
    for pointer, predicate in conditions.items():
        try:
            compiled.append((pointer, pointer_tokens(pointer), compile_predicate(predicate).holds))
        except ValueError as error:
            raise ConfigurationError("/when/case", str(error)) from None
        except ConfigurationError as error:
            raise ConfigurationError(f"/when/case{pointer_token(pointer)}{error.pointer}", error.message, error.hint) from None
    return compiled
