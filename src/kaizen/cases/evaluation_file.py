"""evaluation.json: evaluators, policy, optional blocks; defaults and references filled in.

    {"version": 1, "seed": 20260101, "include": ["../../datasets/regression.jsonl"],
     "define": {"writes": {"kind": "tool", "name": "charge_*"}},
     "evaluators": [{"id": "paid", "type": "steps", "match": {"$use": "writes"}},
                    {"id": "tone", "type": "judge", "rubric": {"$file": "rubrics/tone.md"}, "threshold": 0.7}],
     "acceptance": {"minimum_pass_rate": 0.9}}

Only `evaluators` is required. `{"$use": NAME}` is a copy of that entry of `define`, to which the
keys beside it are added; `{"$file": PATH}` is a file of the improvement folder, JSON parsed, else
text. Both are read as if written there, at any depth; `$case` is left for the evaluators, and
what stands in `$literal` is left alone.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.components import check_optimization
from kaizen.cases.dataset import CASES_FILE, EVALUATION_FILE, checked_includes, is_inside, note_unreadable
from kaizen.cases.expressions import Expression, ExpressionError, parse_expression
from kaizen.cases.improvement import Improvement
from kaizen.cases.judge_block import AGREEMENT_DEFAULTS, checked_agreement, checked_judge
from kaizen.foundation.errors import Breach, Breaches, InputError
from kaizen.foundation.files import read_text, shown_path
from kaizen.foundation.jsonio import (
    LARGEST_EXACT_INTEGER,
    MAX_DEPTH,
    JsonError,
    JsonObject,
    checked_object,
    integral_as_int,
    parse_json,
    pointer_line,
    pointer_token,
    refused_line,
    sha256_hex,
)
from kaizen.foundation.shapes import (
    COUNT,
    DIFFERENCE,
    OBJECT,
    OPEN_RATE,
    POSITIVE_COUNT,
    RATE,
    RATIO,
    TEXT,
    Kind,
    Report,
    check_fields,
    check_no_others,
    is_number,
    is_whole,
    list_of,
    or_null,
)
from kaizen.foundation.text import did_you_mean, listed, quoted, visible

if TYPE_CHECKING:
    from fractions import Fraction

DEFAULT_SEED = 20260101
EVALUATION_FIELDS = {
    "version": Kind(lambda value: is_whole(value) and value == 1, "1, the version this program reads", shows_value=True),
    "seed": Kind(lambda value: is_whole(value) and 0 <= value < LARGEST_EXACT_INTEGER, "a whole number from 0 to 2^53", shows_value=True),
    "include": list_of(TEXT, "paths"),
    "define": OBJECT,
    "evaluators": list_of(OBJECT, "objects"),
    **dict.fromkeys(("metrics", "acceptance", "reliability", "judge", "objectives", "optimization", "agreement"), OBJECT),
}
PASS_K_FIELDS = {"k": POSITIVE_COUNT, "rate": RATE}
METRIC_BOUND = or_null(Kind(is_number, "a number", shows_value=True))
METRIC_BOUND_FIELDS = dict.fromkeys(("minimum", "maximum", "maximum_rise", "maximum_fall"), METRIC_BOUND)
MAX_METRIC_NAME = 200

# key: (what it may hold, default). null is "no bound", so a key whose default is a number cannot be null.
Block = dict[str, tuple[Kind, Any]]
ACCEPTANCE: Block = {
    "maximum_regressions": (COUNT, 0),
    "maximum_weakened": (or_null(COUNT), None),
    "minimum_improvements": (COUNT, 1),
    "minimum_pass_rate": (or_null(RATE), None),
    "minimum_delta": (DIFFERENCE, 0),
    "maximum_not_comparable": (COUNT, 0),
    "maximum_cost_ratio": (or_null(RATIO), None),
    "maximum_latency_ratio": (or_null(RATIO), None),
    "minimum_pass_k": (or_null(OBJECT), None),
    "metrics": (OBJECT, {}),
}
RELIABILITY: Block = {
    "minimum_cases": (POSITIVE_COUNT, 20),
    "minimum_trials": (POSITIVE_COUNT, 3),
    "confidence": (OPEN_RATE, 0.95),
    "minimum_probability": (OPEN_RATE, 0.95),
}
OBJECTIVES: Block = {
    "minimum_pass_rate": (or_null(RATE), None),
    "maximum_cost_per_case_usd": (or_null(RATIO), None),
    "maximum_latency_p95_ms": (or_null(RATIO), None),
}

ReadFile = Callable[[str], Any]


class Evaluation(NamedTuple):
    """evaluation.json as checked: defaults filled in, `$use` and `$file` expanded in `evaluators` and `define`.

    `path` is as shown, `text` and `document` are as read; `reliability` and `judge` are None when the block is absent; `objectives`
    bound variants that are weighed against each other, all None when nothing is asked; `metrics` are those that can be read;
    `file_hashes` has the SHA-256 of each `$file` (line ends do not count); `read_file` reads one more.
    """

    path: str
    text: str
    seed: int
    include: list[str]
    evaluators: list[JsonObject]
    define: JsonObject
    acceptance: JsonObject
    reliability: JsonObject | None
    objectives: JsonObject
    document: JsonObject
    metrics: dict[str, Expression]
    file_hashes: dict[str, str]
    read_file: ReadFile
    judge: JsonObject | None = None
    agreement: JsonObject = AGREEMENT_DEFAULTS
    improvement: Improvement | None = None

    def line(self, pointer: str) -> int | None:
        """The line of *pointer*, or of the nearest place above it that stands in the file."""
        return nearest_line(self.text, pointer)


def load_evaluation(improvement: Improvement, breaches: Breaches, path: str = "") -> Evaluation | None:
    """The evaluation of *improvement*, or the one in the file *path* in its place; None when the file holds no JSON object.

    What is wrong goes to *breaches*; the parts that are right are then filled in, and the caller raises.
    """
    shown = shown_path(path) if path else improvement.shown(EVALUATION_FILE)
    try:
        hint = "" if path else "start an improvement with: kaizen init NAME"
        found = checked_object(path or improvement.path(EVALUATION_FILE), breaches, hint)
    except InputError as error:
        note_unreadable(shown, error, breaches)
        return None
    if found is None:
        return None
    text, document = found

    def report(pointer: str, message: str, hint: str) -> None:
        breach = Breach(shown, nearest_line(text, pointer), pointer, message, hint)
        if breach not in breaches.errors:  # an entry of `define` is met again wherever it is used
            breaches.errors.append(breach)

    check_no_others(document, EVALUATION_FIELDS, "", report)
    check_fields(document, EVALUATION_FIELDS, "", report, ("evaluators",))
    if object_field(document, "optimization"):
        check_optimization(improvement, document["optimization"], report)
    hashes: dict[str, str] = {}
    read_file = file_reader(improvement, hashes)
    raw, entries = object_field(document, "define"), list_field(document, "evaluators")
    seed = document.get("seed", DEFAULT_SEED)
    return Evaluation(
        path=shown,
        text=text,
        seed=int(seed) if is_whole(seed) else DEFAULT_SEED,
        include=checked_includes(improvement, list_field(document, "include"), report),
        evaluators=[expanded_value(entry, raw, read_file, f"/evaluators/{index}", report) for index, entry in enumerate(entries)],
        define={name: expanded_value(item, raw, read_file, f"/define{pointer_token(name)}", report) for name, item in raw.items()},
        acceptance=checked_acceptance(document, report),
        reliability=checked_block(document, "reliability", RELIABILITY, report) if "reliability" in document else None,
        objectives=checked_block(document, "objectives", OBJECTIVES, report),
        document=document,
        metrics=checked_metrics(document, report),
        file_hashes=hashes,
        read_file=read_file,
        judge=checked_judge(document, report),
        agreement=checked_agreement(document, report),
        improvement=improvement,
    )


def object_field(document: JsonObject, name: str) -> JsonObject:
    """The object *name* of *document*; {} when it is absent or something else."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def list_field(document: JsonObject, name: str) -> list[Any]:
    """The list *name* of *document*; [] when it is absent or something else."""
    value = document.get(name)
    return value if isinstance(value, list) else []


def nearest_line(text: str, pointer: str) -> int | None:
    """The line of *pointer* in the JSON *text*, or of the nearest place above it that stands there."""
    while pointer and pointer_line(text, pointer) is None:
        pointer = pointer[: pointer.rindex("/")]
    return pointer_line(text, pointer) if pointer else None


# --- Policy ----------------------------------------------------------------------------


def checked_block(document: JsonObject, name: str, block: Block, report: Report) -> JsonObject:
    """The object *name* of *document* with the defaults of *block* filled in; what is not of its kind is reported."""
    given = object_field(document, name)
    check_no_others(given, block, f"/{name}", report)
    check_fields(given, {key: kind for key, (kind, _) in block.items()}, f"/{name}", report)
    return {key: integral_as_int(given.get(key, default)) for key, (_, default) in block.items()}


def checked_acceptance(document: JsonObject, report: Report) -> JsonObject:
    """The acceptance policy of *document*."""
    acceptance = checked_block(document, "acceptance", ACCEPTANCE, report)
    wanted = acceptance["minimum_pass_k"]
    if isinstance(wanted, dict):
        check_no_others(wanted, PASS_K_FIELDS, "/acceptance/minimum_pass_k", report)
        check_fields(wanted, PASS_K_FIELDS, "/acceptance/minimum_pass_k", report, PASS_K_FIELDS)
    names = object_field(document, "metrics")
    bounds = object_field(acceptance, "metrics")
    check_no_others(bounds, names, "/acceptance/metrics", report, "metric")
    for name, wanted in bounds.items():
        pointer = f"/acceptance/metrics{pointer_token(name)}"
        if not isinstance(wanted, dict) or not wanted:
            report(pointer, "must be an object with a bound", f"one of {listed(METRIC_BOUND_FIELDS, last='or')}")
            continue
        check_no_others(wanted, METRIC_BOUND_FIELDS, pointer, report)
        check_fields(wanted, METRIC_BOUND_FIELDS, pointer, report)
    return acceptance


def checked_metrics(document: JsonObject, report: Report) -> dict[str, Expression]:
    """The derived metrics of *document* that can be read; what is wrong with the others is reported."""
    found: dict[str, Expression] = {}
    for name, text in object_field(document, "metrics").items():
        pointer = f"/metrics{pointer_token(name)}"
        if not name.strip() or len(name) > MAX_METRIC_NAME or visible(name, None) != name:
            report(pointer, f"the name must have 1 to {MAX_METRIC_NAME} characters, none of them invisible", "")
        elif not isinstance(text, str):
            report(pointer, "must be a text with an expression", 'for example "1 - rate(ID)"')
        else:
            try:
                found[name] = parse_expression(text)
            except ExpressionError as error:
                report(pointer, f"character {error.place}: {error.message}", error.hint)
    return found


def metrics_of_entries(entries: list[Any]) -> dict[str, str]:
    """{id: metric} of evaluator documents as read, for those that have a usable id; the metric is the id unless they say otherwise."""
    found = {}
    for entry in entries:
        identity = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(identity, str):
            metric = entry.get("metric")
            found[identity] = metric if isinstance(metric, str) else identity
    return found


def exact_fraction(value: "int | float") -> "Fraction":
    """*value* as the fraction that its shortest decimal writes: 0.3 is 3/10.

    >>> exact_fraction(0.3)
    Fraction(3, 10)
    """
    from fractions import Fraction

    return Fraction(repr(value))


# --- References ------------------------------------------------------------------------


class BadReference(InputError):
    """A `$use` or `$file` that leads nowhere; `pointer` is where it stands."""

    def __init__(self, pointer: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.pointer = pointer


def expand_references(
    value: Any, define: JsonObject, read_file: ReadFile, pointer: str = "", *, inside: tuple[str, ...] = (), depth: int = 0
) -> Any:
    """*value*, which stands at *pointer*, with each `$use` and `$file` in it replaced by what it names.

    *define* holds the entries that `$use` names, *read_file* gives what a file holds or raises InputError;
    *inside* are the names being expanded, *depth* the levels so far. Raises BadReference.
    """
    if depth > MAX_DEPTH:
        raise BadReference(pointer[:200], f"references nest more than {MAX_DEPTH} levels deep")

    def below(item: Any, place: str, names: tuple[str, ...] = inside) -> Any:
        return expand_references(item, define, read_file, place, inside=names, depth=depth + 1)

    if isinstance(value, list):
        return [below(item, f"{pointer}/{index}") for index, item in enumerate(value)]
    if not isinstance(value, dict) or "$literal" in value:
        return value
    if "$use" not in value and "$file" not in value:
        return {key: below(item, pointer + pointer_token(key)) for key, item in value.items()}
    reference = "$use" if "$use" in value else "$file"
    name, place = value[reference], f"{pointer}/{reference}"
    if not isinstance(name, str) or not name:
        raise BadReference(place, f"{reference} must be a text that names something", 'write {"$literal": …} around it if it is none')
    if f"{reference} {name}" in inside:
        raise BadReference(place, f"{quoted(name)} is made from itself", "break the circle")
    names = (*inside, f"{reference} {name}")
    others = {key: below(item, pointer + pointer_token(key)) for key, item in value.items() if key != reference}
    if reference == "$file":
        if others:
            raise BadReference(pointer, "nothing can stand beside $file", "put the $file into 'define' and add keys beside its $use")
        try:
            return below(read_file(name), place, names)
        except BadReference as error:  # inside the file; its place there says little without the file's name
            raise BadReference(place, f"in {quoted(name)}{error.pointer.removeprefix(place)}: {error.message}", error.hint) from None
        except InputError as error:
            raise BadReference(place, error.message, error.hint) from None
    if name not in define:
        raise BadReference(place, f"'define' has no entry {quoted(name)}", did_you_mean(name, define) or "write it into 'define'")
    used = below(define[name], f"/define{pointer_token(name)}", names)
    if others and not isinstance(used, dict):
        raise BadReference(pointer, f"keys can only stand beside $use when {quoted(name)} is an object")
    return {**used, **others} if others else used


def expanded_value(value: Any, define: JsonObject, read_file: ReadFile, pointer: str, report: Report) -> Any:
    """*value* with its references replaced; as it is, and the reason reported, when one leads nowhere."""
    try:
        return expand_references(value, define, read_file, pointer)
    except BadReference as error:
        report(error.pointer, error.message, error.hint)
        return value


def case_entries(case: Case, evaluation: Evaluation, breaches: Breaches) -> list[JsonObject]:
    """The evaluators that *case* brings itself, with references replaced; only the improvement's own cases may use `$file`."""
    is_own = case.path == os.path.join(os.path.dirname(evaluation.path), CASES_FILE)

    def report(pointer: str, message: str, hint: str) -> None:
        breaches.add(case.path, case.line, pointer, message, hint)

    entries = list_field(case.document, "evaluators")
    reader = evaluation.read_file if is_own else refuse_file
    return [expanded_value(entry, evaluation.define, reader, f"/evaluators/{index}", report) for index, entry in enumerate(entries)]


def refuse_file(name: str) -> Any:
    """Raises InputError: a case of an included file brings no files of its own."""
    raise InputError(f"a case of an included file cannot use $file {quoted(name)}", "write the text into the case")


def file_reader(improvement: Improvement, hashes: dict[str, str]) -> ReadFile:
    """A function that gives what a file of *improvement* holds, read once; its SHA-256 goes into *hashes*.

    It raises InputError for a path that leaves the folder, a file that is not there, and JSON that is not right.
    """
    contents: JsonObject = {}

    def read(name: str) -> Any:
        if name not in contents:
            path = os.path.normpath(improvement.path(name))
            if os.path.isabs(name) or not is_inside(improvement.folder, path):
                raise InputError(f"file {quoted(name)} lies outside the improvement folder", "put a copy of it into the folder")
            if not os.path.isfile(path):
                raise InputError(f"file {quoted(name)} does not exist", f"put it into {improvement.shown()}")
            text = read_text(path)
            contents[name] = parsed_file(name, text)
            hashes[name] = sha256_hex(text)
        return contents[name]

    return read


def parsed_file(name: str, text: str) -> Any:
    """The value of the JSON *text*, else the text itself; a name that ends in .json must hold JSON."""
    try:
        return parse_json(text)
    except JsonError as error:
        if name.lower().endswith(".json"):
            line = refused_line(text, error)
            raise InputError(f"file {quoted(name)}, line {line or '?'}: {error.message}", error.hint) from None
        return text
