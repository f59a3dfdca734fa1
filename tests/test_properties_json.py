"""JSON that is made at random and then damaged: what is accepted, what is said, what is written."""

import hashlib
import json
import random

import support
from support import kaizen

ALPHABET = '{}[],:"\\ \n\t\r0123456789.eE+-truefalsnNaIiy\u00e9\ud83d\udc00\x00\x1f\u2028\ufeff/'
TEXTS = 'ab"\\\n\t\u20ac\u00e9\U0001f600/\u2028\x7f'


def made_value(pick, depth):
    """A JSON value."""
    kind = pick.randrange(9 if depth else 6)
    if kind < 2:
        return pick.choice([None, True, False])
    if kind == 2:
        return pick.choice([0, 1, -5, 10**20, 2**53, -(2**53) + 1])
    if kind == 3:
        return pick.choice([0.1, 1e300, -2.5e-7, 1.0, -0.0, 5e-324, 2.0**53, 1e16])
    if kind < 6:
        return "".join(pick.choice(TEXTS) for _ in range(pick.randrange(6)))
    if kind == 6:
        return {"".join(pick.choice("ab\u00e9\U0001f600") for _ in range(pick.randrange(3))): made_value(pick, depth - 1) for _ in range(pick.randrange(4))}
    return [made_value(pick, depth - 1) for _ in range(pick.randrange(4))]


def damaged(pick, text):
    """*text* with up to three characters added, taken away or changed."""
    for _ in range(pick.randrange(4)):
        place, kind = pick.randrange(len(text) + 1), pick.randrange(3)
        text = text[:place] + (pick.choice(ALPHABET) if kind else "") + text[place + (kind != 1) :]
    return text


def texts(seed, number):
    """*number* texts that are JSON, nearly JSON, or noise; the same on every Python."""
    pick = random.Random(seed)
    for _ in range(number):
        if pick.random() < 0.1:
            yield "".join(pick.choice(ALPHABET) for _ in range(pick.randrange(30)))
        else:
            yield damaged(pick, json.dumps(made_value(pick, 4), ensure_ascii=pick.random() < 0.5))


def strict_value(text):
    """(True, value) by Python's parser held to what is refused here, else (False, None); written apart from the program."""

    def pairs(found):
        if len({key for key, _ in found}) != len(found):
            raise ValueError
        return dict(found)

    def refuse(constant):
        raise ValueError

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
        json.dumps(value, allow_nan=False)  # an overflow gave an infinity
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair
        text.encode("utf-8")
    except (ValueError, RecursionError):
        return False, None
    return True, value


class Reading(support.StrictTestCase):
    """parse_json on whatever text."""

    def test_it_accepts_what_a_strict_reader_accepts_and_raises_nothing_but_json_error(self):
        accepted = 0
        for text in texts(7, 15_000):
            is_json, value = strict_value(text)
            try:
                found = kaizen.parse_json(text)
            except kaizen.JsonError:
                self.assertFalse(is_json, text)
                continue
            accepted += 1
            self.assertTrue(is_json, text)
            self.assertEqual(repr(found), repr(value), text)
        self.assertGreater(accepted, 4000)

    def test_values_and_the_places_of_mistakes_are_the_same_on_every_python(self):
        said = hashlib.sha256()
        for text in texts(11, 15_000):
            try:
                answer = kaizen.encode_compact(kaizen.parse_json(text))
            except kaizen.JsonError as error:
                answer = f"{error.line} {error.column}"
            said.update(answer.encode("utf-8", "surrogatepass"))
        # Of CPython 3.10.13; 3.11.7, 3.12.1 and 3.13.0 gave the same.
        self.assertEqual(said.hexdigest(), "a3935484a41ecfb075c65d59fc864260544d3d519f8bc2df8be32d186ceceb21")

    def test_bytes_that_are_no_lines_of_json_give_input_error_and_nothing_else(self):
        pick = random.Random(3)
        for _ in range(5000):
            raw = bytes(pick.randrange(256) for _ in range(pick.randrange(20))) if pick.random() < 0.3 else next(texts(pick.random(), 1)).encode("utf-8", "surrogatepass")
            if raw and pick.random() < 0.3:
                raw = raw[: pick.randrange(len(raw))] + bytes([pick.randrange(128, 256)]) + raw[pick.randrange(len(raw)) :]
            try:
                self.assertIsInstance(kaizen.parse_line(raw, "file.jsonl:1"), dict)
            except kaizen.InputError as error:
                self.assertTrue(error.message.startswith("file.jsonl:1: "), error.message)

    def test_a_comma_too_many_is_named_where_it_stands(self):
        for text, line, column in [('{"a": 1,}', 1, 8), ("[1, 2 ,\n ]", 1, 7), ('[\n{"a": [1,]}]', 2, 9), ('{"a": {"b": 1 , } }', 1, 15)]:
            with self.subTest(text), self.assertRaises(kaizen.JsonError) as caught:
                kaizen.parse_json(text)
            error = caught.exception
            self.assertEqual((error.message, error.line, error.column), (f"not JSON: a comma before the closing bracket (column {column})", line, column))
        for text in ("[,]", "[1,}", '{"a":,}', '{"a": 1,]', "{,}"):
            with self.subTest(text), self.assertRaises(kaizen.JsonError) as caught:
                kaizen.parse_json(text)
            self.assertIn("Expecting", caught.exception.message)

    def test_how_deep_json_may_be_does_not_depend_on_the_rest_of_the_text(self):
        for text in ("[" * 1500, '{"a":' * 1500 + "NaN", "[" * 1500 + '{"a": 1, "a": 2}', "[" * 1500 + "1" * 5000 + "]" * 1500, "[" * 100_000 + "x"):
            with self.subTest(text=text[:20]), self.assertRaises(kaizen.JsonError) as caught:
                kaizen.parse_json(text)
            self.assertEqual(caught.exception.message, "nested more than 200 levels deep")

    def test_a_value_is_read_out_of_a_text_with_its_end(self):
        pick = random.Random(5)
        for _ in range(3000):
            value = made_value(pick, 3)
            before, after = "".join(pick.choice(TEXTS) for _ in range(4)), pick.choice(["", " ", "]", "}", ",", " x", "\n"])
            text = json.dumps(value, ensure_ascii=pick.random() < 0.5)
            found, end = kaizen.parse_json_at(before + text + after, len(before))
            self.assertEqual((repr(found), end), (repr(value), len(before + text)))


class Writing(support.StrictTestCase):
    """canonical_json, fingerprints and hashable stand-ins of values."""

    def test_canonical_json_is_idempotent_and_loses_nothing(self):
        pick = random.Random(13)
        for _ in range(5000):
            value = made_value(pick, 4)
            text = kaizen.canonical_json(value)
            again = kaizen.parse_json(text)
            self.assertEqual(kaizen.canonical_json(again), text)
            self.assertTrue(kaizen.json_equal(again, value), text)
            text.encode("utf-8")

    def test_canonical_json_does_not_depend_on_the_order_of_keys(self):
        pick = random.Random(17)
        for _ in range(2000):
            value = made_value(pick, 4)
            turned = json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
            self.assertEqual(kaizen.canonical_json(turned), kaizen.canonical_json(value))

    def test_fingerprints_are_the_same_on_every_python(self):
        pick = random.Random(19)
        found = hashlib.sha256()
        for _ in range(5000):
            found.update(kaizen.fingerprint(made_value(pick, 4)).encode())
        # Of CPython 3.10.13; 3.11.7, 3.12.1 and 3.13.0 gave the same.
        self.assertEqual(found.hexdigest(), "80b9494d91131498b321d5ce95bb4b83c55f1979725f4ea90fe793d93010d3d0")

    def test_stand_ins_are_equal_exactly_when_the_values_are(self):
        pick = random.Random(23)
        values = [made_value(pick, 2) for _ in range(250)] + [0, 0.0, -0.0, False, "", [], {}, None, [0], [False], {"a": 1}, {"a": True}, 1, 1.0, True, "1", 10**20, 1e20]
        for left in values:
            for right in values:
                self.assertEqual(kaizen.json_key(left) == kaizen.json_key(right), kaizen.json_equal(left, right), (left, right))
                if kaizen.json_key(left) == kaizen.json_key(right):
                    self.assertEqual(hash(kaizen.json_key(left)), hash(kaizen.json_key(right)))

    def test_pointers_lead_to_what_they_name(self):
        pick = random.Random(29)

        def places(value, pointer):
            yield pointer, value
            pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            for key, item in pairs:
                yield from places(item, pointer + kaizen.pointer_token(key))

        for _ in range(1000):
            value = made_value(pick, 4)
            for pointer, item in places(value, ""):
                self.assertEqual(kaizen.follow_pointer(value, kaizen.pointer_tokens(pointer)), (True, item))


class Schemas(support.StrictTestCase):
    """compile_schema on whatever stands where a schema should."""

    def test_it_raises_nothing_but_schema_error_and_its_checks_raise_nothing(self):
        pick = random.Random(31)
        words = [*kaizen.SCHEMA_KEYWORDS, "type", "then", "else", "minContains", "$anchor", "$id", "x"]
        operands = ["#", "#/$defs/a", "string", "(", "^a", "date", "integer", 0, -1, 1.5, 1e300, True, False, None]

        def schema(depth):
            if depth == 0 or pick.random() < 0.2:
                return pick.choice([*operands, {}, [], {"a": {}}])
            made = {pick.choice(words): schema(depth - 1) for _ in range(pick.randrange(4))}
            return pick.choice([made, made, [made], {"a": made}])

        usable = 0
        for _ in range(12_000):
            written = schema(3)
            try:
                validate = kaizen.compile_schema(written)
            except kaizen.SchemaError as error:
                self.assertRegex(error.pointer, r"\A(/|\Z)", written)
                continue
            usable += 1
            for _ in range(3):
                self.assertIsInstance(validate(made_value(pick, 3)), list)
        self.assertGreater(usable, 500)
