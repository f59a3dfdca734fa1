"""Strict JSON, JSON Lines, canonical JSON and fingerprints, pointers and their lines."""

import hashlib
import json
import unittest

from support import DATA, StrictTestCase, TemporaryFolder, write

import kaizen

FIELD_CASES = DATA / "field_cases"
STANDARD_DOCUMENT = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, 'k"l': 6, " ": 7}  # RFC 6901, section 5


class StrictJson(StrictTestCase):
    """What parse_json accepts and refuses, and that each refusal says what to do."""

    def test_what_is_not_strict_json_is_refused_with_what_to_do(self):
        for text, message, hint in [
            ("NaN", "NaN is not a JSON number", "write null"),
            ('{"a": Infinity}', "Infinity is not a JSON number", "write null"),
            ('{"a": [-Infinity]}', "-Infinity is not a JSON number", "write null"),
            ("1e999", "number 1e999 is too large", "string"),
            ("9" * 309, "number " + "9" * 40, "string"),
            ("-1e999", "number -1e999 is too large", "string"),
            ("9" * 5000, "an integer with too many digits", "string"),
            ('{"a": 1, "a": 1}', "key 'a' occurs twice in one object", "one of the two"),
            ('[{"x": {"a": 1, "b": 2, "a": 3}}]', "key 'a' occurs twice", "one of the two"),
            ('"\\ud83d"', "half of a surrogate pair", "U+FFFD"),
            ('{"\\udc00": 1}', "half of a surrogate pair", "U+FFFD"),
            ("[" * 201 + "]" * 201, "nested more than 200 levels deep", ""),
            ('{"a":' * 201 + "1" + "}" * 201, "nested more than 200 levels deep", ""),
            ("[" * 100_000 + "]" * 100_000, "nested more than 200 levels deep", ""),
        ]:
            with self.subTest(text=text[:40]):
                with self.assertRaises(kaizen.JsonError) as caught:
                    kaizen.parse_json(text)
                self.assertIn(message, caught.exception.message)
                self.assertIn(hint, caught.exception.hint)

    def test_what_is_not_json_names_the_column(self):
        for text in ["", "{", "{'a': 1}", '{"a": 1,}', '{"a": 1} x', "[1 2]", "\x00", "tru", "01", "+1", ".5", '"a\nb"']:
            with self.subTest(text=text), self.assertRaises(kaizen.JsonError) as caught:
                kaizen.parse_json(text)
            self.assertIn("(column ", caught.exception.message)

    def test_values_at_the_limits_are_accepted(self):
        for text, value in [
            ("[" * 200 + "]" * 200, None),
            (json.dumps(["[{" * 500, {"a": "]}" * 500}]), ["[{" * 500, {"a": "]}" * 500}]),  # brackets inside strings do not nest
            ("[" + ",".join(["[]"] * 1000) + "]", [[]] * 1000),
            ("[" + ",".join(['{"a": [{}]}'] * 300) + "]", [{"a": [{}]}] * 300),
            ("1e308", 1e308),
            ("5e-324", 5e-324),
            ("1e-999", 0.0),
            ("-0.0", -0.0),
            ("9007199254740993", 9007199254740993),
            ('"\\ud83d\\ude00"', "\U0001f600"),
            ('"\\u0000\\u2028"', "\x00\u2028"),
            ('"\u2028\u0085"', "\u2028\x85"),
        ]:
            with self.subTest(text=text[:40]):
                found = kaizen.parse_json(text)
                if value is not None:
                    self.assertEqual(found, value)

    def test_what_was_parsed_can_be_made_canonical_at_any_depth(self):
        for text in ("[" * 199 + "[1.0]" + "]" * 199, '{"a":' * 199 + '{"b": 1.0}' + "}" * 199):
            self.assertEqual(kaizen.canonical_json(kaizen.parse_json(text)), text.replace(" ", "").replace("1.0", "1"))


class CanonicalJson(StrictTestCase):
    """Equal values give equal text; the strings are written by hand from formats.md 1.1."""

    def test_it_is_the_text_written_by_hand(self):
        for value, text in [
            ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
            ({"a": {"d": [1, 2], "c": {}}}, '{"a":{"c":{},"d":[1,2]}}'),
            ([True, False, None], "[true,false,null]"),
            (1.0, "1"),
            (-0.0, "0"),
            (2.0**53, "9007199254740992.0"),
            (2.0**53 - 1, "9007199254740991"),
            (9007199254740993, "9007199254740993"),
            (0.1, "0.1"),
            (1e-7, "1e-07"),
            ("é\u2028\U0001f600", '"é\u2028\U0001f600"'),
            ('"\\\n\x01', '"\\"\\\\\\n\\u0001"'),
            ("1.0", '"1.0"'),
            ([1.0, "1.0", {"x": 3.0}], '[1,"1.0",{"x":3}]'),
            ({"B": 1, "a": 1, "é": 1, "": 1}, '{"":1,"B":1,"a":1,"é":1}'),
        ]:
            with self.subTest(text=text):
                self.assertEqual(kaizen.canonical_json(value), text)

    def test_a_fingerprint_is_the_sha256_of_it(self):
        self.assertEqual(
            kaizen.fingerprint({"b": 1.0, "a": "é"}), "sha256:" + hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()
        )


class JsonLines(TemporaryFolder):
    """Lines end at LF alone; blank lines are skipped and counted."""

    def values(self, path):
        return [line.value for line in kaizen.read_json_lines(str(path))]

    def test_unicode_line_separators_stay_inside_their_string(self):
        lines = self.values(FIELD_CASES / "02-line-separators-in-strings" / "baseline.jsonl")
        self.assertEqual([line["id"] for line in lines], ["ls", "ps", "nel"])
        for line, separator in zip(lines, "\u2028\u2029\x85", strict=True):
            self.assertEqual(line["output"].count(separator), 1)

    def test_blank_lines_are_skipped_and_a_missing_newline_at_the_end_is_fine(self):
        path = FIELD_CASES / "06-blank-lines" / "good.jsonl"
        self.assertEqual([(line.number, line.value["id"]) for line in kaizen.read_json_lines(str(path))], [(2, "a"), (4, "b"), (6, "c")])

    def test_the_number_in_an_error_is_the_line_of_the_file(self):
        path = FIELD_CASES / "06-blank-lines" / "bad.jsonl"
        with self.assertRaises(kaizen.InputError) as caught:
            self.values(path)
        self.assertIn("bad.jsonl:5: not JSON", caught.exception.message)

    def test_a_mark_and_carriage_returns_do_not_reach_the_values(self):
        lines = self.values(FIELD_CASES / "01-bom-crlf" / "test_cases.jsonl")
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[0]["id"], "first")
        self.assertNotIn("\r", json.dumps(lines).replace("\\r", "\r"))

    def test_every_bad_line_is_noted_and_every_good_one_is_read(self):
        path = write("some.jsonl", b'{"a": 1}\n{"a": NaN}\n\xff\n\n[1]\n{"a": 2}\n{"a"')
        breaches = kaizen.Breaches()
        self.assertEqual([line.value for line in kaizen.checked_lines(str(path), breaches)], [{"a": 1}, {"a": 2}])
        self.assertEqual([breach.line for breach in breaches.errors], [2, 3, 5, 7])
        self.assertIn("is not UTF-8 (byte 0 of the line)", breaches.errors[1].message)
        self.assertTrue(all(breach.hint and breach.path == "some.jsonl" for breach in breaches.errors))

    def test_a_mark_and_carriage_returns_are_told_once(self):
        path = write("some.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}\r\n')
        breaches = kaizen.Breaches()
        self.assertEqual(len(list(kaizen.checked_lines(str(path), breaches))), 2)
        self.assertEqual([(each.line, each.is_warning) for each in breaches.warnings], [(1, True), (1, True)])
        self.assertEqual(breaches.errors, [])

    def test_scores_that_are_no_numbers_are_told_with_their_lines(self):
        breaches = kaizen.Breaches()
        good = list(kaizen.checked_lines(str(FIELD_CASES / "03-nan-literal" / "candidate.jsonl"), breaches))
        self.assertEqual(len(good), 1)
        self.assertEqual([breach.line for breach in breaches.errors], [2, 3, 4])
        self.assertTrue(all(breach.path.endswith("candidate.jsonl") for breach in breaches.errors))


class JsonFiles(TemporaryFolder):
    """A whole file: one object, and the line of what is wrong."""

    def refusal(self, content):
        with self.assertRaises(kaizen.InputError) as caught:
            kaizen.read_json_object(str(write("some.json", content)))
        return caught.exception.message

    def test_the_line_of_what_is_refused_is_named(self):
        for content, message in [
            ('{\n "a": 1,\n "b": {"a": 2},\n "a": 3}', "some.json:4: key 'a' occurs twice"),
            ('{\n "a": "NaN",\n "b": NaN}', "some.json:3: NaN is not"),
            ('{\n "a": [1,\n 1e999]}', "some.json:3: number 1e999"),
            ('{\n "a": 1\n "b": 2}', "some.json:3: not JSON"),
            (b'{\n "a": "\xff"}', "some.json:2: is not UTF-8 (byte 9)"),
            ("[1]", "some.json: is a JSON array, not an object"),
            ("", "some.json:1: not JSON"),
            ('{"a": 1, "a": 2} x', "some.json:1: key 'a' occurs twice"),
            ('{"a": 1, "a": 2}{x', "some.json:1: key 'a' occurs twice"),
        ]:
            with self.subTest(content=content):
                self.assertIn(message, self.refusal(content))

    def test_a_mark_is_skipped(self):
        self.assertEqual(kaizen.read_json_object(str(write("some.json", b'\xef\xbb\xbf{"a": 1}'))), {"a": 1})

    def test_a_file_that_is_not_there_is_told_with_a_hint(self):
        with self.assertRaises(kaizen.InputError) as caught:
            kaizen.read_json_object("nothere.json", "make it")
        self.assertEqual((caught.exception.message, caught.exception.hint), ("nothere.json: does not exist", "make it"))


class Pointers(StrictTestCase):
    """RFC 6901, and the line at which a pointer's key or element begins."""

    def test_the_examples_of_the_standard(self):
        for pointer, value in [
            ("", STANDARD_DOCUMENT), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/m~0n", 8), ('/k"l', 6), ("/ ", 7),
        ]:
            with self.subTest(pointer=pointer):
                self.assertEqual(kaizen.follow_pointer(STANDARD_DOCUMENT, kaizen.pointer_tokens(pointer)), (True, value))

    def test_a_pointer_that_leads_nowhere_is_not_found(self):
        for pointer in ["/x", "/foo/2", "/foo/-1", "/foo/01", "/foo/x", "/foo/0/0", "/foo/-", "//"]:
            with self.subTest(pointer=pointer):
                self.assertEqual(kaizen.follow_pointer(STANDARD_DOCUMENT, kaizen.pointer_tokens(pointer)), (False, None))

    def test_a_key_as_a_token_leads_back_to_it(self):
        for key in STANDARD_DOCUMENT:
            self.assertEqual(kaizen.pointer_tokens(kaizen.pointer_token(key)), [key])

    def test_lines_are_those_where_the_key_or_element_begins(self):
        text = '{\n "a": [\n  {"x": 1},\n  {"x": "{[,:",\n   "y": [1,\n\n  2]}\n ],\n "": {"": 3}, "b":\n true,\n "a/b~c": [[],\n  [0]]\n}\n'
        for pointer, line in [
            ("", 1), ("/a", 2), ("/a/0", 3), ("/a/0/x", 3), ("/a/1", 4), ("/a/1/x", 4), ("/a/1/y", 5), ("/a/1/y/0", 5), ("/a/1/y/1", 7),
            ("/", 9), ("//", 9), ("/b", 9), ("/a~1b~0c", 11), ("/a~1b~0c/1", 12), ("/a~1b~0c/1/0", 12), ("/c", None), ("/a/2", None),
        ]:
            with self.subTest(pointer=pointer):
                self.assertEqual(kaizen.pointer_line(text, pointer), line)


if __name__ == "__main__":
    unittest.main()
