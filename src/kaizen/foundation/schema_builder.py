"""The compiler behind JSON Schema: subschemas by pointer, references, patterns, breaches.

What each keyword checks is a table that `foundation.schema` hands in; here is what holds
them together. A subschema becomes a closure once, whatever refers to it. A path is a chain
of (path of the container, key) and becomes a pointer only when there is a breach.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.foundation.jsonio import JsonObject, encode_compact, follow_pointer, json_type, pointer_token, pointer_tokens
from kaizen.foundation.text import counted, did_you_mean, quoted, visible

MAX_SCHEMA_BREACHES = 20

ANY_TYPE: tuple[type, ...] = (type(None), bool, int, float, str, list, dict)
SCHEMA_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "integer": (int, float), "number": (int, float),
    "string": (str,), "array": (list,), "object": (dict,),
}  # fmt: skip

SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ANNOTATIONS = "$schema $id $comment $anchor title description default examples deprecated readOnly writeOnly".split()
# Looked at together with the keyword named here, without which they would check nothing.
SCHEMA_COMPANIONS = {"minContains": "contains", "maxContains": "contains", "then": "if", "else": "if"}
SCHEMA_REFUSED = {
    "unevaluatedProperties": "is not supported; write additionalProperties beside the properties it is about",
    "unevaluatedItems": "is not supported; write items beside the prefixItems it is about",
    "$dynamicRef": "is not supported; use $ref",
    "$dynamicAnchor": "is not supported; use $anchor",
    "$recursiveRef": "is of an older draft; use $ref",
    "$vocabulary": "is not supported",
    "contentEncoding": "checks nothing in JSON Schema 2020-12; remove it, or check with pattern",
    "contentMediaType": "checks nothing in JSON Schema 2020-12; remove it",
    "contentSchema": "checks nothing in JSON Schema 2020-12; remove it",
    "dependencies": "is of an older draft; use dependentRequired or dependentSchemas",
    "additionalItems": "is of an older draft; use prefixItems and items",
    "nullable": 'is of OpenAPI 3.0; write the type as a list with "null" in it',
    "discriminator": "is of OpenAPI; oneOf with a const in each schema says the same",
    "id": "is of an older draft; a property of this name belongs into properties",
}

# White space of ECMA-262, as the inside of a class of Python's re.
ECMA_SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
ECMA_TOKEN = re.compile(r"\\(?:c[A-Za-z]|k<[^>]*>|.)|\(\?<(?![=!])|\[\^?\]?|[\]$.&|~]", re.DOTALL)
ECMA_OUTSIDE = {"$": r"\Z", ".": r"[^\n\r\u2028\u2029]", "(?<": "(?P<", r"\s": f"[{ECMA_SPACES}]", r"\S": f"[^{ECMA_SPACES}]"}
# Escaped, because Python warns that it may give them a meaning inside a class.
ECMA_INSIDE = {"&": r"\&", "|": r"\|", "~": r"\~", r"\s": ECMA_SPACES}

SchemaPath = tuple[Any, Any] | None
SchemaFinding = tuple[SchemaPath, Any, str]  # path, value, what is wrong with it
# (pattern, flags of re, the pattern as written) -> what searches a text; raises ValueError or re.error for a bad pattern.
PatternCompiler = Callable[[str, int, str], Callable[[str], object]]


class SchemaBreach(NamedTuple):
    """One breach: the pointer in the value, and what is wrong there."""

    pointer: str
    message: str


class SchemaError(Exception):
    """A schema that cannot be used: the pointer in the schema, and why."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"#{pointer}: {message}")
        self.pointer = pointer
        self.message = message


class SchemaTooDeep(Exception):
    """A value nested more deeply than the schema can be followed into it."""


class SchemaFindings(list[SchemaFinding]):
    """The breaches found on the way.

    `known` holds what a reference found about a container before: without it, a schema that
    branches and refers to itself takes exponential time on a deep value.
    """

    def __init__(self, known: dict[tuple[int, str], tuple[SchemaFinding, ...]]) -> None:
        super().__init__()
        self.known = known


SchemaCheck = Callable[[Any, SchemaPath, SchemaFindings], None]
KeywordCompiler = Callable[["SchemaBuilder", JsonObject, str, str], SchemaCheck | None]


class SchemaKeyword(NamedTuple):
    """A keyword: the types of value it says something about, and what makes its check.

    `build(builder, schema, pointer, keyword)` gives None when there is nothing to check.
    """

    kinds: tuple[type, ...]
    build: KeywordCompiler


def schema_shown(value: Any) -> str:
    """*value* as a breach shows it: scalars as JSON, cut; containers by kind and size."""
    if isinstance(value, dict):
        return "the object"
    return f"the array of {counted(len(value), 'item')}" if isinstance(value, list) else visible(encode_compact(value), 60)


def schema_pointer(path: SchemaPath) -> str:
    """The JSON Pointer of *path*."""
    tokens: list[str] = []
    while path is not None:
        path, key = path
        tokens.append(pointer_token(key))
    return "".join(reversed(tokens))


def schema_accepts(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of the schema `true`."""


def schema_refuses(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of the schema `false`."""
    found.append((path, value, "is not allowed here"))


def schema_integral(value: float, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of the type integer on a number with a decimal point or an exponent."""
    if not value.is_integer():
        found.append((path, value, "is not an integer"))


def ecma_pattern(pattern: str) -> str:
    """*pattern* of ECMA-262 as one of Python's re under its flag ASCII; what only Python knows stays as it is.

    Differs by: `$` and `.`, white space, named groups, control escapes. Not translated, and so refused by
    re: \\p{…}, \\u{…}, empty classes.

    >>> ecma_pattern(r"^(?<year>[0-9]+)$")
    '^(?P<year>[0-9]+)\\\\Z'
    """
    parts: list[str] = []
    position, is_inside = 0, False
    for match in ECMA_TOKEN.finditer(pattern):
        token = match.group()
        parts.append(pattern[position : match.start()])
        position = match.end()
        if token.startswith("\\c") and len(token) == 3:
            token = f"\\x{ord(token[2]) % 32:02x}"
        elif token.startswith("\\k<"):
            token = f"(?P={token[3:-1]})"
        elif is_inside:
            is_inside = token[0] == "\\" or not token.endswith("]")
            token = token.replace("[", r"\[") if token[0] == "[" else ECMA_INSIDE.get(token, token)
        elif token.startswith("["):
            is_inside = True
        else:
            token = ECMA_OUTSIDE.get(token, token)
        parts.append(token)
    return "".join(parts) + pattern[position:]


class SchemaBuilder:
    """Compiles the subschemas of one schema, and what its references lead to."""

    def __init__(self, root: Any, keywords: dict[str, SchemaKeyword], compile_pattern: PatternCompiler) -> None:
        self.root = root
        self.keywords = keywords
        self.compile_pattern = compile_pattern
        self.base = str(root.get("$id", "")) if isinstance(root, dict) else ""
        self.checks: dict[str, SchemaCheck] = {}  # by pointer
        self.anchors: dict[str, str] = {}  # name -> pointer
        self.applied: dict[str, list[str]] = {}  # pointer -> pointers of the schemas applied to the same value
        self.references: list[tuple[str, str, list[SchemaCheck]]] = []  # (pointer, reference, the check once it is known)

    def build(self) -> SchemaCheck:
        """The check of the whole schema. Raises SchemaError."""
        try:
            check = self.compile(self.root, "")
            while self.references:
                pointer, reference, cell = self.references.pop()
                target = self.resolve(pointer, reference)
                is_there, schema = follow_pointer(self.root, pointer_tokens(target))
                if not is_there:
                    raise SchemaError(pointer + "/$ref", f"there is nothing at {quoted(reference)}")
                cell.append(self.compile(schema, target))
                self.applied.setdefault(pointer, []).append(target)
        except RecursionError:
            raise SchemaError("", "is nested too deeply") from None
        self.refuse_endless_references()
        return check

    def resolve(self, pointer: str, reference: str) -> str:
        """The pointer that *reference*, in the schema at *pointer*, means."""
        is_own = self.base and reference.startswith(self.base)
        local = reference[len(self.base) :] or "#" if is_own else reference
        if not local.startswith("#"):
            raise SchemaError(pointer + "/$ref", f"{quoted(reference)} leads out of this schema; copy what it means into $defs")
        fragment = local[1:]
        if "%" in fragment:
            from urllib.parse import unquote

            fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if fragment not in self.anchors:
                raise SchemaError(pointer + "/$ref", f"there is no $anchor {quoted(fragment)}")
            return self.anchors[fragment]
        return fragment

    def refuse_endless_references(self) -> None:
        """Raises SchemaError when a schema comes back to itself without going deeper into the value."""
        done: set[str] = set()
        for start in self.applied:
            trail: list[str] = []
            stack = [(start, False)]
            while stack:
                pointer, is_left = stack.pop()
                if is_left:
                    done.add(trail.pop())
                elif pointer in trail:
                    raise SchemaError(pointer, "refers to itself without going deeper into the value, so checking would never end")
                elif pointer not in done:
                    trail.append(pointer)
                    stack.append((pointer, True))
                    stack.extend((target, False) for target in self.applied.get(pointer, ()))

    def compile(self, schema: Any, pointer: str) -> SchemaCheck:
        """The check of the subschema *schema*, which stands at *pointer*."""
        if pointer not in self.checks:
            if isinstance(schema, bool):
                check: SchemaCheck = schema_accepts if schema else schema_refuses
            elif isinstance(schema, dict):
                self.check_keywords(schema, pointer)
                check = self.compile_keywords(schema, pointer)
            else:
                raise SchemaError(pointer, f"is a JSON {json_type(schema)}, not a schema (an object, true or false)")
            self.checks[pointer] = check
        return self.checks[pointer]

    def compile_keywords(self, schema: JsonObject, pointer: str) -> SchemaCheck:
        """The check of all keywords of *schema*: by type of the value, those that say something about it."""
        allowed = self.types(schema, pointer)
        by_type: dict[type, list[SchemaCheck]] = {kind: [] for kind in ANY_TYPE}
        if "integer" in allowed and "number" not in allowed:
            by_type[float].append(schema_integral)
        # In the order of the table, so that the order of keys in the file changes nothing.
        for keyword, (kinds, build) in self.keywords.items():
            check = build(self, schema, pointer, keyword) if keyword in schema else None
            if check is not None:
                for kind in kinds:
                    by_type[kind].append(check)
        if allowed:
            refused = set(ANY_TYPE).difference(*(SCHEMA_TYPES[name] for name in allowed))
            by_type.update({kind: [schema_wrong_type(allowed)] for kind in refused})
        checks = {kind: tuple(found) for kind, found in by_type.items()}

        def check_schema(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
            for each in checks[type(value)]:
                each(value, path, found)

        return check_schema

    def types(self, schema: JsonObject, pointer: str) -> list[str]:
        """The names in `type`, none when there is no such keyword."""
        names = schema.get("type", [])
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, list) or "type" in schema and not names:
            raise SchemaError(pointer + "/type", "must be the name of a type or a list of them")
        for name in names:
            if not isinstance(name, str) or name not in SCHEMA_TYPES:
                raise SchemaError(pointer + "/type", f"unknown type {quoted(str(name))}; {did_you_mean(str(name), SCHEMA_TYPES)}")
        return names

    def check_keywords(self, schema: JsonObject, pointer: str) -> None:
        """Raises SchemaError for a keyword that is unknown, refused or would check nothing; notes an anchor."""
        for keyword in schema:
            place = pointer + pointer_token(keyword)
            if keyword in SCHEMA_REFUSED:
                raise SchemaError(place, f"{keyword} {SCHEMA_REFUSED[keyword]}")
            if keyword in SCHEMA_COMPANIONS:
                if SCHEMA_COMPANIONS[keyword] not in schema:
                    raise SchemaError(place, f"{keyword} checks nothing without {SCHEMA_COMPANIONS[keyword]}")
            elif keyword != "type" and keyword not in SCHEMA_ANNOTATIONS and keyword not in self.keywords:
                known = ["type", *self.keywords, *SCHEMA_ANNOTATIONS, *SCHEMA_COMPANIONS]
                raise SchemaError(place, f"unknown keyword {quoted(keyword)}; {did_you_mean(keyword, known)}")
        if "$id" in schema and pointer:
            raise SchemaError(pointer + "/$id", "an $id below the root is not supported")
        if str(schema.get("$schema", SCHEMA_DRAFT)).rstrip("#") != SCHEMA_DRAFT:
            raise SchemaError(pointer + "/$schema", f"only JSON Schema 2020-12 is known; once the schema keeps to it, write {SCHEMA_DRAFT}")
        if "$anchor" in schema:
            anchor = str(schema["$anchor"])
            if self.anchors.setdefault(anchor, pointer) != pointer:
                raise SchemaError(pointer + "/$anchor", f"the anchor {quoted(anchor)} stands twice in the schema")

    def part(self, schema: JsonObject, pointer: str, keyword: str, key: str | int | None = None, is_applied: bool = False) -> SchemaCheck:
        """The check of the subschema at *keyword* (and *key* in it); *is_applied*: to the same value as *schema* itself."""
        place = pointer + pointer_token(keyword)
        inner = schema[keyword]
        if key is not None:
            place, inner = place + pointer_token(key), inner[key]
        if is_applied:
            self.applied.setdefault(pointer, []).append(place)
        return self.compile(inner, place)

    def search(self, pattern: str, pointer: str) -> Callable[[str], object]:
        """The search of *pattern*, which stands at *pointer*."""
        try:
            return self.compile_pattern(ecma_pattern(pattern), re.ASCII, pattern)
        except (ValueError, OverflowError, RecursionError, re.error) as error:
            raise SchemaError(pointer, f"the pattern {quoted(pattern)} cannot be used: {error}") from None


def schema_wrong_type(allowed: list[str]) -> SchemaCheck:
    """The check of a value whose type is none of *allowed*."""
    text = f"is not of type {' or '.join(allowed)}"

    def check_wrong_type(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        found.append((path, value, text))

    return check_wrong_type
