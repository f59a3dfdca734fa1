"""JSON Schema against the official test suite, and against the `jsonschema` package on made-up schemas.

The suite is the folder json/ in the source archive of `jsonschema`, which pip fetches; a folder that holds it
may be named in KAIZEN_JSON_SCHEMA_SUITE. Without both, those tests are skipped. What is decided otherwise than
by the suite or the package is listed here and explained in docs/structured-answers.md.
"""

import importlib.metadata
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import kaizen

# Groups of tests whose schema is refused, by the reason in the SchemaError; anything else is a failure.
REFUSED_FOR = (
    "is not supported", "is of an older draft", "checks nothing", "leads out of this schema", "only JSON Schema 2020-12 is known", "unknown format", "unknown keyword",
    "bad escape \\p",
)  # fmt: skip
# (file, group, test) that are decided otherwise.
DECIDED_OTHERWISE = {("optional/format/ecmascript-regex.json", "\\a is not an ECMA 262 control escape", "when used as a pattern")}
# Without the format-assertion vocabulary a format is an annotation; here it is always checked.
FORMAT_IS_CHECKED = "is only an annotation by default"


def find_suite():
    """The folder of the tests for 2020-12, or None with the reason."""
    named = os.environ.get("KAIZEN_JSON_SCHEMA_SUITE")
    if named:
        return Path(named) / "tests" / "draft2020-12", ""
    version = importlib.metadata.version("jsonschema")
    cache = Path(sys.prefix) / "share" / f"jsonschema-{version}"
    if not cache.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, f"jsonschema=={version}"]
            env = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}  # pip and what it builds with may warn
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
            archives = list(Path(folder).glob("*.tar.gz"))
            if done.returncode or not archives:
                return None, f"pip could not fetch the source of jsonschema {version}"
            unpack(archives[0], cache)
    return cache / "tests" / "draft2020-12", ""


def unpack(archive, cache):
    """Writes what the archive holds below json/ into the folder *cache*."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            parts = Path(member.name).parts
            if member.isfile() and parts[1:2] == ("json",) and ".." not in parts:
                target = cache.joinpath(*parts[2:])
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())


class OfficialSuite(unittest.TestCase):
    """Every test of the official suite for 2020-12, the optional ones as well."""

    def test_each_test_is_decided_as_the_suite_says_or_refused_for_a_known_reason(self):
        folder, reason = find_suite()
        if folder is None:
            self.skipTest(reason)
        decided = refused = otherwise = 0
        for path in sorted(folder.rglob("*.json")):
            name = path.relative_to(folder).as_posix()
            for group in json.loads(path.read_text(encoding="utf-8")):
                try:
                    validate = kaizen.compile_schema(group["schema"])
                except kaizen.SchemaError as error:
                    self.assertTrue(any(known in error.message for known in REFUSED_FOR), (name, group["description"], str(error)))
                    refused += len(group["tests"])
                    continue
                for test in group["tests"]:
                    is_valid = validate(test["data"]) == []
                    is_known = (name, group["description"], test["description"]) in DECIDED_OTHERWISE or FORMAT_IS_CHECKED in test["description"]
                    with self.subTest(file=name, group=group["description"], test=test["description"]):
                        self.assertEqual(is_valid, test["valid"] is not is_known)
                    decided += not is_known
                    otherwise += is_known
        print(f"official suite: {decided} tests decided alike, {otherwise} otherwise, {refused} of refused schemas")
        self.assertGreater(decided, 1200)


# --- Made-up schemas and values ------------------------------------------------------------------

NAMES = ("a", "b", "ab", "x-1", "id")
TEXTS = ("", "a", "ab", "abc", "x-1", "id", "\u00e9", "\U0001f600", "2024-02-29", "a\nb", "127.0.0.1", "1")
NUMBERS = (0, 1, -1, 2, 3, 1.0, 2.5, -0.5, 1e15, 2**53 - 1, 7, 10)
PATTERNS = ("^a", "b", "^[a-c]+$", "[0-9]", "^x-", "a|b", "^.{2}")


class Maker:
    """Makes schemas of the supported keywords, and values that they are about."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.booleans = [True, False]

    def schema(self, depth):
        """A schema of 1 to 4 keywords."""
        pick = self.random
        if depth == 0 or pick.random() < 0.08:
            return pick.choice([*self.booleans, {}, {"type": pick.choice(list(kaizen.SCHEMA_TYPES))}, {"const": pick.choice(TEXTS)}])
        made = {}
        for _ in range(pick.randrange(1, 5)):
            keyword = pick.choice(list(MAKERS))
            made.update(MAKERS[keyword](self, keyword, depth - 1))
        return made

    def several(self, make, least=1, most=3):
        """*least* to *most* of what *make* gives."""
        return [make() for _ in range(self.random.randrange(least, most + 1))]

    def named(self, names, make):
        """An object of some of *names*."""
        return {name: make() for name in self.random.sample(names, self.random.randrange(1, 4))}

    def value(self, depth):
        """A JSON value."""
        pick = self.random
        kind = pick.randrange(8 if depth else 5)
        if kind < 5:
            return pick.choice([pick.choice(TEXTS), pick.choice(NUMBERS), None, *self.booleans])
        if kind == 5:
            return [self.value(depth - 1) for _ in range(pick.randrange(5))]
        return {name: self.value(depth - 1) for name in pick.sample(NAMES, pick.randrange(5))}

    def near(self, schema, depth):
        """A value that has a chance to fit *schema*."""
        pick = self.random
        if not isinstance(schema, dict) or depth == 0 or pick.random() < 0.2:
            return self.value(depth)
        if "const" in schema and pick.random() < 0.5:
            return schema["const"]
        if "enum" in schema and pick.random() < 0.5:
            return pick.choice(schema["enum"])
        for keyword in ("properties", "required", "dependentRequired", "patternProperties"):
            if keyword in schema and pick.random() < 0.8:
                inner = schema.get("properties", {})
                names = [name for name in sorted({*inner, *NAMES[: pick.randrange(4)]}) if pick.random() < 0.9]
                return {name: self.near(inner.get(name), depth - 1) for name in names}
        for keyword in ("prefixItems", "items", "contains", "uniqueItems"):
            if keyword in schema and pick.random() < 0.8:
                prefix = schema.get("prefixItems", [])
                inner = [*prefix, *[schema.get("items", schema.get("contains"))] * pick.randrange(3)]
                return [self.near(each, depth - 1) for each in inner]
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                return self.near(pick.choice(schema[keyword]), depth - 1)
        return self.value(depth)


# keyword: (maker, keyword, depth) -> the keyword, and what belongs with it
MAKERS = {
    "type": lambda maker, keyword, depth: {keyword: maker.random.choice([maker.random.choice(list(kaizen.SCHEMA_TYPES)), maker.random.sample(list(kaizen.SCHEMA_TYPES), 2)])},
    "enum": lambda maker, keyword, depth: {keyword: maker.several(lambda: maker.value(1), 1, 4)},
    "const": lambda maker, keyword, depth: {keyword: maker.value(1)},
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), lambda maker, keyword, depth: {keyword: maker.random.choice(NUMBERS)}),
    # Of halves and integers alone: the package divides in binary floating point.
    "multipleOf": lambda maker, keyword, depth: {keyword: maker.random.choice([1, 2, 3, 0.5, 2.0])},
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), lambda maker, keyword, depth: {keyword: maker.random.randrange(4)}
    ),
    "pattern": lambda maker, keyword, depth: {keyword: maker.random.choice(PATTERNS)},
    "items": lambda maker, keyword, depth: {keyword: maker.schema(depth)},
    "prefixItems": lambda maker, keyword, depth: {keyword: maker.several(lambda: maker.schema(depth))},
    "contains": lambda maker, keyword, depth: {
        keyword: maker.schema(depth), **maker.random.choice([{}, {"minContains": maker.random.randrange(3)}, {"maxContains": maker.random.randrange(3)}])
    },
    "uniqueItems": lambda maker, keyword, depth: {keyword: maker.random.choice(maker.booleans)},
    "required": lambda maker, keyword, depth: {keyword: maker.random.sample(NAMES, maker.random.randrange(3))},
    "properties": lambda maker, keyword, depth: {keyword: maker.named(NAMES, lambda: maker.schema(depth))},
    "patternProperties": lambda maker, keyword, depth: {keyword: maker.named(PATTERNS, lambda: maker.schema(depth))},
    "additionalProperties": lambda maker, keyword, depth: {keyword: maker.schema(depth)},
    "propertyNames": lambda maker, keyword, depth: {keyword: maker.schema(depth)},
    "dependentRequired": lambda maker, keyword, depth: {keyword: maker.named(NAMES, lambda: maker.random.sample(NAMES, 1))},
    "dependentSchemas": lambda maker, keyword, depth: {keyword: maker.named(NAMES, lambda: maker.schema(depth))},
    "allOf": lambda maker, keyword, depth: {keyword: maker.several(lambda: maker.schema(depth))},
    "anyOf": lambda maker, keyword, depth: {keyword: maker.several(lambda: maker.schema(depth))},
    "oneOf": lambda maker, keyword, depth: {keyword: maker.several(lambda: maker.schema(depth))},
    "not": lambda maker, keyword, depth: {keyword: maker.schema(depth)},
    "if": lambda maker, keyword, depth: {keyword: maker.schema(depth), "then": maker.schema(depth), "else": maker.schema(depth)},
    "$ref": lambda maker, keyword, depth: {keyword: maker.random.choice(["#/$defs/one", "#/$defs/two"])},
}  # fmt: skip


def names_the_container(schema):
    """True when the package tells a breach of *schema* for the container of what breaks it; the program names the very place."""
    if isinstance(schema, dict):
        return not {"uniqueItems", "propertyNames"}.isdisjoint(schema) or any(map(names_the_container, schema.values()))
    return schema is False or isinstance(schema, list) and any(map(names_the_container, schema))


def pointer_of(error):
    """The place of an error of the package as a JSON Pointer."""
    return "".join(kaizen.pointer_token(key) for key in error.absolute_path)


class AgainstThePackage(unittest.TestCase):
    """Made-up schemas and values, decided by both."""

    def test_the_same_values_are_valid_and_breaches_stand_at_the_same_places(self):
        maker = Maker(20260305)
        pairs = valid = placed = refused = 0
        for number in range(6000):
            maker.booleans = [True, False] if number % 3 else [True]  # so that more places can be compared
            schema = maker.schema(3)
            if isinstance(schema, dict):
                schema["$defs"] = {"one": maker.schema(1), "two": {"properties": {"a": maker.schema(1), "b": {"$ref": "#"}}}}
            try:
                validate = kaizen.compile_schema(schema)
            except kaizen.SchemaError as error:
                self.assertIn("refers to itself", error.message, schema)
                refused += 1
                continue
            peer = jsonschema.Draft202012Validator(schema)
            for value in [maker.near(schema, 3) for _ in range(4)]:
                breaches = validate(value)
                errors = list(peer.iter_errors(value))
                with self.subTest(number=number, schema=schema, value=value):
                    self.assertEqual(breaches == [], errors == [], (breaches, errors[:3]))
                    if errors and len(breaches) < kaizen.MAX_SCHEMA_BREACHES and not names_the_container(schema):
                        ours, theirs = {breach.pointer for breach in breaches}, {pointer_of(error) for error in errors}
                        self.assertLessEqual(ours, theirs)
                        # The package goes on below a value of a wrong type.
                        self.assertTrue(all(any(there == here or there.startswith(here + "/") for here in ours) for there in theirs), (ours, theirs))
                        placed += 1
                pairs += 1
                valid += breaches == []
        print(f"made-up pairs: {pairs} decided alike, {valid} of them valid; places compared in {placed}; {refused} schemas refused")
        self.assertGreater(pairs, 20_000)
        self.assertGreater(min(valid, pairs - valid), 3_000)

    def test_what_is_decided_otherwise_than_by_the_package(self):
        # (schema, value, valid here, valid there), each a line of docs/structured-answers.md
        for schema, value, here, there in [
            ({"multipleOf": 0.1}, 0.3, True, False),
            ({"multipleOf": 0.01}, 19.99, True, False),
            ({"multipleOf": 2.0}, 9007199254740993, False, True),
            ({"multipleOf": 3}, 1e300, False, True),
            ({"pattern": "^a$"}, "a\n", False, True),
            ({"pattern": r"^\d$"}, "\u0667", False, True),
            ({"pattern": r"^\w$"}, "\u00e9", False, True),
            ({"format": "date"}, "2024-02-30", False, True),
        ]:
            with self.subTest(schema=schema, value=value):
                self.assertEqual(kaizen.compile_schema(schema)(value) == [], here)
                self.assertEqual(jsonschema.Draft202012Validator(schema).is_valid(value), there)

    def test_addresses_and_dates_are_those_that_the_standard_library_reads(self):
        import datetime
        import ipaddress

        def reads(function, text):
            try:
                function(text)
            except ValueError:
                return False
            return True

        generator = random.Random(7)
        groups = ["0", "1", "ffff", "abcd", "", ":", "::", "127.0.0.1", "1.2.3", "12345", "g", "01"]
        for _ in range(60_000):
            text = generator.choice(["", ":"]).join(generator.choice(groups) for _ in range(generator.randrange(1, 10)))
            self.assertEqual(kaizen.is_ipv6(text), reads(ipaddress.IPv6Address, text), text)
            text = ".".join(generator.choice(["0", "1", "255", "256", "01", "", "a", "99"]) for _ in range(generator.randrange(3, 6)))
            self.assertEqual(kaizen.is_ipv4(text), reads(ipaddress.IPv4Address, text), text)
            text = f"{generator.choice([1, 1900, 2000, 2023, 2024]):04d}-{generator.randrange(14):02d}-{generator.randrange(33):02d}"
            self.assertEqual(kaizen.is_full_date(text), reads(datetime.date.fromisoformat, text), text)


if __name__ == "__main__":
    unittest.main()
