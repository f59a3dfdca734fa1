"""JSON Schema: what is valid, where each breach is, and which schemas are refused."""

import json
import time

import support
from support import kaizen

FIELD_CASE = support.DATA / "field_cases" / "25-true-is-not-one"


def breaches(schema, value):
    """The breaches of *schema* in *value* as [(pointer, message)]."""
    return [tuple(breach) for breach in kaizen.compile_schema(schema)(value)]


def pointers(schema, value):
    """Where the breaches are."""
    return [pointer for pointer, _ in breaches(schema, value)]


def refusal(schema):
    """'pointer: message' of the SchemaError for *schema*; '' when it is accepted."""
    try:
        kaizen.compile_schema(schema)
    except kaizen.SchemaError as error:
        return f"{error.pointer}: {error.message}"
    return ""


class Validity(support.StrictTestCase):
    """Which values fit: JSON Schema 2020-12, core and validation."""

    def check(self, table):
        for schema, valid, invalid in table:
            validate = kaizen.compile_schema(schema)
            for value in valid:
                with self.subTest(schema=schema, valid=value):
                    self.assertEqual(validate(value), [])
            for value in invalid:
                with self.subTest(schema=schema, invalid=value):
                    self.assertNotEqual(validate(value), [])

    def test_json_types_stay_apart(self):
        right = support.read_json(FIELD_CASE / "right.json")["schema"]
        found = [breaches(case["schema"], case["value"]) == [] for case in support.read_lines(FIELD_CASE / "schema.jsonl")]
        self.assertEqual(found, right)

    def test_types(self):
        self.check([
            ({"type": "integer"}, [1, 1.0, -0.0, 10**30, 1e300], [1.5, True, "1", None, [], {}]),
            ({"type": "number"}, [1, 1.5], [True, False, "1"]),
            ({"type": ["string", "null"]}, ["", None], [0, [], {}, False]),
            ({"type": "object"}, [{}], [[], None]),
            ({"type": "array"}, [[]], [{}, "[]"]),
            (True, [None, 1], []),
            (False, [], [None, 1, {}]),
            ({}, [None, 1, {}], []),
        ])  # fmt: skip

    def test_values(self):
        self.check([
            ({"enum": [1, "a", None, [1, True], {"b": 1.0}]}, [1, 1.0, "a", None, [1.0, True], {"b": 1}], [True, "1", [1, 1], {}, 0]),
            ({"const": {"a": [False]}}, [{"a": [False]}], [{"a": [0]}, {"a": []}, {}]),
            ({"const": None}, [None], [0, False, ""]),
            ({"const": 100000000000000000000}, [1e20], [1e21]),
        ])  # fmt: skip

    def test_numbers(self):
        self.check([
            ({"minimum": 2, "maximum": 3.5}, [2, 3.5, "x", None], [1.9, 4]),
            ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5], [0, 1, -0.0]),
            ({"minimum": 9007199254740993}, [9007199254740993], [9007199254740992, 9007199254740992.0]),
            ({"multipleOf": 0.1}, [0.3, 1, 1.1, 4.7, 0, -0.3, 1e22], [0.35, 0.05, 1e-7]),
            ({"multipleOf": 0.01}, [19.99, 0.07, 1.15, 4.35, 8.325e3], [19.999, 0.001]),
            ({"multipleOf": 3}, [9, 9.0, -3, 3e25], [10, 9.5]),
            ({"multipleOf": 1e-8}, [12391239123, 1e-8], [1e-9]),
            ({"multipleOf": 1.5e300}, [3e300], [1e300]),
        ])  # fmt: skip

    def test_text(self):
        self.check([
            ({"minLength": 2, "maxLength": 3}, ["ab", "a\u0301b", "\U0001f600\U0001f600\U0001f600", 5], ["a", "\U0001f600" * 4]),
            ({"minLength": 2.0}, ["ab"], ["a"]),
            ({"pattern": "b+"}, ["abc", 7], ["ac", ""]),
        ])  # fmt: skip

    def test_patterns_are_those_of_ecma_262(self):
        self.check([
            ({"pattern": "^a$"}, ["a"], ["a\n", "b\na"]),
            ({"pattern": r"^\d$"}, ["7"], ["\u0667"]),
            ({"pattern": r"^\w$"}, ["x"], ["\u00e9"]),
            ({"pattern": r"^\s$"}, [" ", "\u00a0", "\ufeff", "\u2029"], ["\x1c", "x"]),
            ({"pattern": r"^\S$"}, ["x", "\x1c"], ["\u2029", " "]),
            ({"pattern": r"^[\sx]$"}, ["\u3000", "x"], ["s"]),
            ({"pattern": "^.$"}, ["\U0001f432"], ["\u2028", "\r", "\n"]),
            ({"pattern": r"^(?<y>\d{2})-\k<y>$"}, ["24-24"], ["24-25"]),
            ({"pattern": r"^\cA$"}, ["\x01"], ["A"]),
            ({"pattern": r"^[$.]$"}, ["$", "."], ["x"]),
            ({"pattern": r"^[[\]&&|~-]+$"}, ["[]&|~-"], ["\\"]),
            ({"pattern": r"(?<!a)b(?=c)"}, ["xbc"], ["abc"]),
            ({"pattern": r"\$$"}, ["1$"], ["$1"]),
        ])  # fmt: skip

    def test_arrays(self):
        self.check([
            ({"items": {"type": "string"}}, [[], ["a"], "x"], [[1], ["a", None]]),
            ({"prefixItems": [{"type": "string"}, {"type": "number"}]}, [[], ["a"], ["a", 1, None]], [[1], ["a", "b"]]),
            ({"prefixItems": [{"type": "string"}], "items": False}, [[], ["a"]], [["a", 1]]),
            ({"contains": {"const": 1}}, [[0, 1.0]], [[], [True]]),
            ({"contains": {"const": 1}, "minContains": 2, "maxContains": 3}, [[1, 0, 1], [1, 1, 1]], [[1, 0], [1, 1, 1, 1]]),
            ({"contains": False, "minContains": 0}, [[], [1]], []),
            ({"uniqueItems": True}, [[1, True, "1", [1], {}], [], [{"a": 1}, {"a": 2}]], [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
            ({"uniqueItems": False}, [[1, 1]], []),
            ({"minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
        ])  # fmt: skip

    def test_objects(self):
        self.check([
            ({"properties": {"a": {"type": "string"}}}, [{}, {"a": "x", "b": 1}, []], [{"a": 1}]),
            ({"required": ["a", "b"]}, [{"a": None, "b": 0}], [{}, {"a": 1}]),
            ({"additionalProperties": False, "properties": {"a": True}, "patternProperties": {"^x-": {"type": "integer"}}},
             [{"a": 1, "x-b": 2}], [{"b": 1}, {"x-b": "2"}]),
            ({"properties": {"ab": {"minimum": 1}}, "patternProperties": {"a": {"maximum": 2}, "b": {"multipleOf": 2}}}, [{"ab": 2}], [{"ab": 0}, {"ab": 4}, {"ab": 1}]),
            ({"additionalProperties": {"type": "integer"}}, [{"x": 1}], [{"x": "1"}]),
            ({"propertyNames": {"maxLength": 2}}, [{"ab": 1}], [{"abc": 1}]),
            ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 1}]),
            ({"dependentRequired": {"card": ["holder"]}}, [{}, {"holder": 1}, {"card": 1, "holder": 2}], [{"card": 1}]),
            ({"dependentSchemas": {"card": {"required": ["holder"]}}}, [{}, {"card": 1, "holder": 2}], [{"card": 1}]),
        ])  # fmt: skip

    def test_combinations(self):
        self.check([
            ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [2], [0, 4]),
            ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, ["a", 3], [2]),
            ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, [2, 3], [6, 1]),
            ({"not": {"type": "string"}}, [1], ["a"]),
            ({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}, [{"a": 1, "b": 1}, {"c": 1}], [{"a": 1}, {}]),
            ({"if": False, "then": False}, [1], []),
        ])  # fmt: skip

    def test_references(self):
        tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "value": {"$ref": "#/$defs/value"}}, "$defs": {"value": {"type": "integer"}}}
        self.check([
            (tree, [{"next": {"next": {"value": 1}}}], [{"next": {"next": {"value": "x"}}}, {"next": 1}]),
            ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "string"}}}, ["x"], [1]),
            ({"$ref": "#/$defs/a", "maximum": 5, "$defs": {"a": {"minimum": 3}}}, [4], [2, 6]),
            ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}}, ["x"], [1]),
            ({"$id": "https://example.com/s", "$ref": "https://example.com/s#/$defs/a", "$defs": {"a": {"type": "string"}}}, ["x"], [1]),
            ({"definitions": {"a": {"type": "null"}}, "$ref": "#/definitions/a"}, [None], [1]),
            ({"properties": {"$ref": {"type": "string"}}}, [{"$ref": "#/nowhere"}], [{"$ref": 1}]),
            ({"items": {}, "prefixItems": [{"$ref": "#/prefixItems/1"}, {"type": "integer"}]}, [[1, 2]], [["a", 2]]),
        ])  # fmt: skip

    def test_annotations_check_nothing(self):
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/x", "$comment": "c", "title": "t", "description": "d",
            "default": 1, "examples": ["x"], "deprecated": True, "readOnly": True, "writeOnly": False,
        }  # fmt: skip
        self.assertEqual(breaches(schema, 1), [])


class Formats(support.StrictTestCase):
    """`format` is checked, by the documents that JSON Schema names."""

    def test_formats(self):
        table = {
            "date": (["2024-02-29", "2000-02-29"], ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-1-1", "20240101", "2024-01-01 ", "२०२४-01-01"]),
            "time": (["08:30:06Z", "08:30:06.5+02:00", "23:59:60Z", "00:59:60+01:00"], ["08:30:06", "24:00:00Z", "08:60:00Z", "22:59:60Z", "08:30:06+24:00"]),
            "date-time": (["2024-02-29T08:30:06Z", "2024-02-29t08:30:06.123-05:00"], ["2024-02-29 08:30:06Z", "2024-02-30T08:30:06Z", "2024-02-29", "2024-02-29T08:30:06"]),
            "duration": (["P3D", "PT0.5S", "P1Y2M3DT4H5M6S", "P2W", "P1Y2D"], ["P", "PT", "P1", "3D", "P1H", "P1W2D", "P1M1Y", "PT1D"]),
            "email": (["a@b.c", "a.b+c@example.com", '"a b"@c.d', "a@[127.0.0.1]", "a@[IPv6:::1]"], ["a", "@b", "a@", "a..b@c.d", ".a@b.c", "a b@c.d", "a@b_c.d", "a@-b.c", "\u00e9@b.c", "a" * 65 + "@b.c"]),
            "hostname": (["a", "a-b.c1", "xn--4gbwdl", "a." * 126 + "a"], ["", "-a", "a-", "a_b", "a..b", "a.", "a" * 64, "a." * 127 + "a", "\u00e9.com"]),
            "ipv4": (["0.0.0.0", "255.255.255.255"], ["256.1.1.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4 ", "1.2.3.", "1..2.3"]),
            "ipv6": (["::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7::"], ["", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "::1%eth0", "1.2.3.4::", "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4"]),
            "uri": (["https://a.b/c?d=e#f", "mailto:a@b.c", "urn:x:y", "http://[::1]:80/", "http://a:@b:", "file:///x", "a:"], ["", "/a", "a/b:c/d", "//a/b", "http://a b", "http://[::1", "http://[z]/", "http://a/%zz", "http://a/[", "1a:b", "\u00e9:x"]),
            "uuid": (["2eb8aa08-AA98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g"]),
            "regex": (["^a+$", "", r"(?<n>\d)"], ["(", "a{2,1}", "[", r"\1"]),
        }  # fmt: skip
        for name, (right, wrong) in table.items():
            validate = kaizen.compile_schema({"format": name})
            for text, is_right in [*((text, True) for text in right), *((text, False) for text in wrong)]:
                with self.subTest(format=name, text=text):
                    self.assertEqual(validate(text) == [], is_right)
            self.assertEqual(validate(17), [])

    def test_every_format_of_the_table_is_linear_in_the_length_of_a_hostile_text(self):
        hostile = ["a" * 50_000, "a." * 25_000, "1:" * 25_000, "a@" * 25_000, "%41" * 20_000, "http://" + "a:" * 25_000, "P" + "1" * 50_000, '"' + "\\a" * 25_000]
        started = time.perf_counter()
        for name in [*kaizen.SCHEMA_FORMATS]:
            validate = kaizen.compile_schema({"format": name})
            for text in hostile:
                validate(text)
                validate(text + "\u00e9")
        self.assertLess(time.perf_counter() - started, 2)


class Breaches(support.StrictTestCase):
    """Each breach names its place in the value, and says what is wrong in words."""

    def test_the_pointer_of_each_breach_is_exact(self):
        schema = {
            "type": "object",
            "required": ["id", "lines"],
            "additionalProperties": False,
            "properties": {
                "id": {"type": "string", "pattern": "^INV-"},
                "a/b~c": {"type": "integer"},
                "lines": {"items": {"required": ["price"], "properties": {"price": {"minimum": 0}}, "propertyNames": {"maxLength": 5}}},
                "pair": {"prefixItems": [{"type": "string"}, {"type": "number"}], "items": False},
                "set": {"uniqueItems": True},
            },
        }
        value = {
            "id": "X", "a/b~c": 1.5, "lines": [{}, {"price": -1}, {"price": 1, "remark": 2}], "pair": ["x", "y", "z"], "set": [1, 2, 1], "more": [],
        }  # fmt: skip
        self.assertEqual(breaches(schema, value), [
            ("/id", '"X" does not match the pattern \'^INV-\''),
            ("/a~1b~0c", "1.5 is not an integer"),
            ("/lines/0", "the object lacks the required property 'price'"),
            ("/lines/1/price", "-1 is less than the minimum 0"),
            ("/lines/2/remark", '"remark" is no allowed name of a property: it is longer than 5 characters'),
            ("/pair/1", '"y" is not of type number'),
            ("/pair/2", '"z" is not allowed here'),
            ("/set/2", "1 is the same as item 0"),
            ("/more", "the array of 0 items is not allowed: the schema has no property of this name"),
        ])  # fmt: skip

    def test_a_value_of_the_wrong_type_is_one_breach(self):
        self.assertEqual(breaches({"type": "integer", "enum": [1, 2], "minimum": 1}, "x"), [("", '"x" is not of type integer')])

    def test_the_order_of_keys_in_the_schema_changes_nothing(self):
        forward = {"required": ["a"], "maxProperties": 0, "properties": {"b": {"enum": [1]}, "c": {"type": "null"}}}
        backward = json.loads(json.dumps(forward), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
        value = {"b": 2, "c": 3}
        self.assertEqual(breaches(forward, value), breaches(backward, value))
        self.assertEqual(len(breaches(forward, value)), 4)

    def test_the_branch_that_was_meant_is_told(self):
        schema = {
            "anyOf": [
                {"type": "string"},
                {"properties": {"kind": {"const": "card"}, "card": {"properties": {"number": {"type": "string"}}}}},
                {"properties": {"kind": {"const": "cash"}}},
            ]
        }
        message = "the object fits no schema of anyOf; nearest is schema 1, but /card/number: 7 is not of type string"
        self.assertEqual(breaches(schema, {"kind": "card", "card": {"number": 7}}), [("", message)])

    def test_more_than_one_of_one_of_is_told(self):
        self.assertEqual(breaches({"oneOf": [{}, {"type": "null"}, {"minimum": 0}]}, 3), [("", "3 fits the schemas 0 and 2 of oneOf, not exactly one")])

    def test_at_most_twenty_breaches_are_told_and_each_once(self):
        self.assertEqual(len(breaches({"items": {"type": "string"}}, [1] * 1000)), 20)
        self.assertEqual(pointers({"allOf": [{"type": "string"}, {"type": "string"}]}, 1), [""])

    def test_long_and_strange_values_are_cut_and_made_visible(self):
        ((_, message),) = breaches({"maxLength": 1}, "\x1b[31m\u202e" + "x" * 10_000)
        self.assertLess(len(message), 150)
        self.assertNotIn("\x1b", message)
        self.assertNotIn("\u202e", message)

    def test_schemas_that_branch_and_refer_to_themselves_take_no_exponential_time(self):
        branching = {
            "either": {"anyOf": [{"properties": {"a": {"$ref": "#"}, "b": {"const": kind}}, "required": ["b"]} for kind in range(3)]},
            "all": {"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]},
            "negated": {"not": {"properties": {"a": {"$ref": "#"}}, "required": ["a", "b"]}, "if": {"properties": {"a": {"$ref": "#"}}}},
        }
        value = {}
        for _ in range(60):
            value = {"a": value}
        for name, schema in branching.items():
            with self.subTest(name):
                started = time.perf_counter()
                breaches(schema, value)
                self.assertLess(time.perf_counter() - started, 1)

    def test_a_deep_value_is_checked_as_deep_as_json_may_be_and_never_crashes(self):
        schema = {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
        value = {"x": 1}
        for _ in range(kaizen.MAX_DEPTH - 2):
            value = {"a": value}
        self.assertEqual(pointers(schema, value), ["/a" * (kaizen.MAX_DEPTH - 2) + "/x"])
        for _ in range(5000):
            value = {"a": value}
        with self.assertRaises(kaizen.SchemaTooDeep):
            breaches(schema, value)

    def test_what_a_reference_found_under_the_limit_of_breaches_is_not_taken_for_all_there_is(self):
        # In the first branch the items fill the list of breaches before `name` looks at the first of them.
        name = {"prefixItems": [{"$ref": "#/$defs/name"}]}
        schema = {"anyOf": [{"allOf": [{"items": {"type": "string"}}, name]}, name], "$defs": {"name": {"properties": {"n": {"type": "string"}}}}}
        self.assertEqual(pointers(schema, [{"m": 1, "n": 1}, *range(30)]), [""])
        self.assertEqual(pointers(schema, [{"m": 1, "n": "1"}, *range(30)]), [])


class Refusals(support.StrictTestCase):
    """A schema that cannot be used is refused with the pointer of what is wrong in it."""

    def test_unknown_keywords_name_the_nearest(self):
        self.assertEqual(refusal({"properties": {"a": {"minimun": 1}}}), "/properties/a/minimun: unknown keyword 'minimun'; did you mean 'minimum'?")
        self.assertEqual(refusal({"$defs": {"x": {"requird": []}}}), "/$defs/x/requird: unknown keyword 'requird'; did you mean 'required'?")

    def test_what_would_check_nothing_is_refused(self):
        for schema, pointer in [
            ({"then": {}}, "/then"), ({"else": {}}, "/else"), ({"minContains": 1}, "/minContains"), ({"items": {"maxContains": 1}}, "/items/maxContains"),
            ({"contentEncoding": "base64"}, "/contentEncoding"), ({"contentMediaType": "application/json"}, "/contentMediaType"), ({"format": "emial"}, "/format"),
            ({"pattern": "\\p{L}"}, "/pattern"), ({"unevaluatedProperties": False}, "/unevaluatedProperties"), ({"unevaluatedItems": False}, "/unevaluatedItems"),
            ({"$dynamicRef": "#x"}, "/$dynamicRef"), ({"dependencies": {}}, "/dependencies"), ({"additionalItems": False}, "/additionalItems"), ({"nullable": True}, "/nullable"),
            ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"), ({"items": [{}]}, "/items"), ({"id": "x"}, "/id"),
            ({"$defs": {"a": {"$id": "https://example.com/a"}}}, "/$defs/a/$id"),
        ]:  # fmt: skip
            with self.subTest(schema=schema):
                self.assertEqual(refusal(schema).split(": ")[0], pointer)

    def test_keywords_of_a_wrong_shape_are_refused(self):
        for schema, pointer in [
            (1, ""), (None, ""), ("string", ""), ([], ""), ({"properties": {"a": 1}}, "/properties/a"), ({"properties": []}, "/properties"), ({"type": "strin"}, "/type"),
            ({"type": []}, "/type"), ({"type": [1]}, "/type"), ({"type": 1}, "/type"), ({"enum": []}, "/enum"), ({"enum": "a"}, "/enum"), ({"required": "a"}, "/required"),
            ({"required": ["a", "a"]}, "/required"), ({"required": [1]}, "/required"), ({"minLength": -1}, "/minLength"), ({"minLength": 1.5}, "/minLength"),
            ({"minLength": "1"}, "/minLength"), ({"minLength": True}, "/minLength"), ({"minimum": "1"}, "/minimum"), ({"exclusiveMinimum": True}, "/exclusiveMinimum"),
            ({"multipleOf": 0}, "/multipleOf"), ({"multipleOf": -1}, "/multipleOf"), ({"pattern": 1}, "/pattern"), ({"pattern": "("}, "/pattern"),
            ({"patternProperties": {"(": {}}}, "/patternProperties/("), ({"allOf": []}, "/allOf"), ({"anyOf": {}}, "/anyOf"), ({"oneOf": [1]}, "/oneOf/0"),
            ({"uniqueItems": "yes"}, "/uniqueItems"), ({"format": 1}, "/format"), ({"dependentRequired": {"a": "b"}}, "/dependentRequired/a"),
            ({"$ref": 1}, "/$ref"), ({"prefixItems": []}, "/prefixItems"), ({"not": 5}, "/not"),
        ]:  # fmt: skip
            with self.subTest(schema=schema):
                self.assertEqual(refusal(schema).split(": ")[0], pointer)
                self.assertNotEqual(refusal(schema), "")

    def test_references_that_lead_nowhere_or_out_are_refused(self):
        self.assertEqual(refusal({"$ref": "#/$defs/a"}), "/$ref: there is nothing at '#/$defs/a'")
        self.assertEqual(refusal({"items": {"$ref": "#a"}}), "/items/$ref: there is no $anchor 'a'")
        self.assertIn("leads out of this schema", refusal({"$ref": "https://example.com/x.json"}))
        self.assertIn("stands twice", refusal({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}))

    def test_references_without_end_are_refused(self):
        for schema in [
            {"$ref": "#"},
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
            {"not": {"$ref": "#"}},
            {"if": {"$ref": "#"}},
            {"dependentSchemas": {"a": {"$ref": "#"}}},
            {"properties": {"x": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"allOf": [{"$ref": "#/properties/x"}]}}},
        ]:
            with self.subTest(schema=schema):
                self.assertIn("refers to itself without going deeper", refusal(schema))
        self.assertEqual(refusal({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"items": {"$ref": "#"}}}}), "")

    def test_a_schema_without_bottom_is_refused(self):
        schema = {}
        for _ in range(3000):
            schema = {"items": schema}
        self.assertEqual(refusal(schema), ": is nested too deeply")

    def test_patterns_go_through_the_given_compiler(self):
        seen = []

        def compile_pattern(pattern, flags, written):
            seen.append(written)
            return lambda text: text == "yes"

        validate = kaizen.compile_schema({"pattern": "x$", "patternProperties": {"y": False}}, compile_pattern)
        self.assertEqual(seen, ["x$", "y"])
        self.assertEqual(validate("yes"), [])
        self.assertEqual(len(validate("no")), 1)
        self.assertEqual(len(validate({"yes": 1})), 1)
