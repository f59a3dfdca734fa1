"""The evaluator `json`: strict JSON, found where it was asked for, and fitting its schema."""

import time

import support
from support import kaizen

FENCES = support.DATA / "field_cases" / "19-fenced-json"


def outcome(entry, output, case=None):
    """What the entry *entry* of type json says of *output*."""
    prepared = kaizen.prepare_entry({"id": "it", "type": "json", **entry})
    return prepared.evaluate({"output": output, "status": "completed"}, case or {}, {})


def refusal(entry):
    """'pointer: message' of the ConfigurationError for *entry*."""
    try:
        kaizen.prepare_entry({"id": "it", "type": "json", **entry})
    except kaizen.ConfigurationError as error:
        return f"{error.pointer}: {error.message}"
    return ""


class Extraction(support.StrictTestCase):
    """Where JSON is looked for, and that broken JSON is never repaired."""

    def test_json_inside_a_fence_as_in_the_field_case(self):
        right = support.read_json(FENCES / "right.json")
        records = support.read_lines(FENCES / "outputs.jsonl")
        self.assertEqual([record["id"] for record in records], list(right))
        for record in records:
            with self.subTest(record["id"]):
                wanted = right[record["id"]]
                self.assertEqual(outcome({}, record["output"]).status == "pass", wanted["strict"])
                for extract in ("any", "first"):
                    found = outcome({"extract": extract, "schema": {"const": wanted["extracted"]}}, record["output"])
                    self.assertEqual(found.status == "pass", wanted["extracted"] is not None, found.reason)

    def test_whole_accepts_any_json_value_and_nothing_else(self):
        for text in ("{}", "[]", ' {"a": [1, 2.5e3, null, true]} \n', '"text"', "0", "null", "-1.5", '"\\ud83d\\ude00"'):
            with self.subTest(accepted=text):
                self.assertEqual(outcome({}, text).status, "pass")
        broken = {
            "": "there is no text", "  \n": "there is no text", "{": "not JSON", "{'a': 1}": "not JSON", '{"a": 1,}': "a comma before the closing bracket",
            "[1,]": "a comma before the closing bracket", '{"confidence": NaN}': "NaN is not a JSON number", "-Infinity": "not a JSON number",
            '{"a": 1, "a": 1}': "key 'a' occurs twice", "1e999": "too large", '"\\ud83d"': "half of a surrogate pair", "{} {}": "Extra data",
            "01": "not JSON", "// note\n{}": "not JSON", '{"a": True}': "not JSON", "\ufeff{}": "not JSON", "[" * 300 + "]" * 300: "nested more than 200 levels",
        }  # fmt: skip
        for text, reason in broken.items():
            with self.subTest(refused=text):
                found = outcome({}, text)
                self.assertEqual((found.status, found.score), ("fail", 0.0))
                self.assertIn(reason, found.reason)

    def test_an_output_that_is_no_text_is_json_already(self):
        for extract in ("whole", "first", "fenced", "any"):
            self.assertEqual(outcome({"extract": extract, "schema": {"required": ["a"]}}, {"a": 1}).status, "pass" if extract in ("whole", "first", "any") else "fail")
            self.assertEqual(outcome({"extract": extract, "select": "output.json", "schema": {"required": ["a"]}}, {"a": 1}).status, "pass")

    def test_first_takes_what_looks_like_json_and_no_part_of_what_is_broken(self):
        table = [
            ('As [1] says (see {this}): {"a": 1} and {"b": 2}', {"a": 1}),
            ('- [ ] open\n- [x] done {}\n[{"a": 1}]', [{"a": 1}]),
            ("The list: [1, 2, 3].", [1, 2, 3]),
            ("Nothing: {}", {}),
            ('["a", ["b"]] trailing', ["a", ["b"]]),
            ('{\n  "a": {"b": [1, {"c": "}"}]}\n}, more', {"a": {"b": [1, {"c": "}"}]}}),
        ]
        for text, wanted in table:
            with self.subTest(text):
                self.assertEqual(outcome({"extract": "first", "schema": {"const": wanted}}, text).status, "pass")
        for text in ('{"a": {"b": 1},} {"b": 1}', '{"a": 1, {"b": 2}}', '[{"a": 1}, {"b": 2},]', '{"a": NaN} {"a": 1}', "no JSON here", "[see note] {it}"):
            with self.subTest(text):
                self.assertEqual(outcome({"extract": "first"}, text).status, "fail")

    def test_fenced_takes_the_fence_marked_json_else_the_first(self):
        python = "```python\nprint({})\n```\n"
        table = [
            (python + "```json\n[1]\n```", [1]),
            (python + "~~~JSON\n[1]\n~~~", [1]),
            ("```\n[1]\n```\n```\n[2]\n```", [1]),
            ("text\n```json\r\n[1]\r\n```\r\n", [1]),
            ("````json\n[1]\n````", [1]),
            ("```json\n[1]", [1]),
        ]
        for text, wanted in table:
            with self.subTest(text):
                self.assertEqual(outcome({"extract": "fenced", "schema": {"const": wanted}}, text).status, "pass")
        for text in ("[1]", "`[1]`", python, "```json\n```", '```json\n{"a": 1}\nmore\n```'):
            with self.subTest(text):
                self.assertEqual(outcome({"extract": "fenced"}, text).status, "fail")

    def test_any_does_not_look_behind_a_broken_fence(self):
        self.assertEqual(outcome({"extract": "any"}, '```json\n{"a": 1,}\n```\nThis matches {"type": "object"}.').status, "fail")
        self.assertEqual(outcome({"extract": "any", "schema": {"const": [1]}}, "```python\nx = 1\n```\nso [1]").status, "pass")

    def test_the_evidence_says_where_the_value_stands(self):
        text = 'so: {"a": 1} end'
        self.assertEqual(outcome({"extract": "first"}, text).evidence, ({"start": 4, "end": 12},))
        found = outcome({"extract": "first", "schema": {"properties": {"a": {"type": "string"}}}}, text)
        self.assertEqual(found.evidence, ({"start": 4, "end": 12}, {"pointer": "/a"}))

    def test_without_an_output_nothing_is_claimed(self):
        self.assertEqual(outcome({}, None).status, "error")
        self.assertEqual(outcome({"negate": True}, None).status, "error")

    def test_looking_for_json_in_a_hostile_text_takes_linear_time(self):
        started = time.perf_counter()
        for text in ("{ " * 200_000, "[ " * 200_000, "```\n" * 50_000, '{"' * 100_000, "`" * 200_000, ("```json " + "`" * 50 + "\n") * 5_000, "{" + " " * 400_000):
            for extract in ("whole", "first", "fenced", "any"):
                outcome({"extract": extract}, text)
        self.assertLess(time.perf_counter() - started, 3)


class Schema(support.StrictTestCase):
    """The schema, its breaches in the outcome, its patterns under a limit."""

    def test_breaches_are_told_with_their_pointers(self):
        schema = {"type": "object", "required": ["id"], "properties": {"age": {"type": "integer"}, "tags": {"items": {"type": "string"}}}}
        found = outcome({"schema": schema}, '{"age": "x", "tags": [1, "a", 2, 3]}')
        self.assertEqual(found.reason, (
            "5 breaches of the schema: the whole: the object lacks the required property 'id'; "
            '/age: "x" is not of type integer; /tags/0: 1 is not of type string; and 2 more'
        ))  # fmt: skip
        self.assertEqual(found.value, {"type": "object", "breaches": 5})
        self.assertEqual(found.evidence, tuple({"pointer": pointer} for pointer in ("", "/age", "/tags/0", "/tags/2", "/tags/3")))

    def test_an_empty_schema_only_asks_for_json(self):
        for schema in ({}, True):
            self.assertEqual([outcome({"schema": schema}, text).status for text in ("[1]", "[1")], ["pass", "fail"])

    def test_a_bad_schema_is_a_configuration_error_with_its_place(self):
        self.assertEqual(refusal({"schema": {"properties": {"a": {"typ": "string"}}}}), "/schema/properties/a/typ: unknown keyword 'typ'; did you mean 'type'?")
        self.assertIn("/schema/pattern: the pattern '(' cannot be used", refusal({"schema": {"pattern": "("}}))
        self.assertIn("/schema/items/pattern: the pattern 'a++' cannot be used", refusal({"schema": {"items": {"pattern": "a++"}}}))
        self.assertIn("/schema/patternProperties", refusal({"schema": {"patternProperties": {"": {}}}}))
        self.assertIn("/schema: is a JSON string", refusal({"schema": "object"}))
        self.assertIn("/extract", refusal({"extract": "last"}))

    def test_a_pattern_that_takes_exponential_time_is_an_error_that_names_it(self):
        started = time.perf_counter()
        found = outcome({"schema": {"items": {"pattern": "^(a+)+$"}}}, [("a" * 40) + "!"] * 1000)
        self.assertLess(time.perf_counter() - started, 5)
        self.assertEqual((found.status, found.score), ("error", None))
        self.assertIn("'^(a+)+$'", found.reason)
        self.assertEqual(outcome({"schema": {"items": {"pattern": "^(a+)+$"}}}, ["aaaa"]).status, "pass")

    def test_the_schema_may_come_from_the_case(self):
        entry = {"schema": {"$case": "/expected/schema"}}
        self.assertEqual(outcome(entry, "[1]", {"expected": {"schema": {"type": "array"}}}).status, "pass")
        self.assertEqual(outcome(entry, "[1]", {"expected": {"schema": {"type": "object"}}}).status, "fail")
        self.assertEqual(outcome(entry, "[1]", {}).status, "error")

    def test_the_example_of_the_catalogue_runs(self):
        for name in ("json", "fields"):
            example = kaizen.EVALUATORS[name].example
            found = kaizen.prepare_entry(example["entry"]).evaluate(example["observation"], example["case"], {})
            self.assertEqual(found.status, example["outcome"])
