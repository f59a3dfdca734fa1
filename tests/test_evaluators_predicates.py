"""Predicates: literals, operators, absent values, what is known about a part, and how they are refused."""

import time
import unittest

import support
from support import kaizen

MISSING = kaizen.MISSING


def holds(document, value, at_least=False):
    """Whether the predicate *document* holds of *value*."""
    return kaizen.compile_predicate(document, "", at_least)(value)


class Literals(support.StrictTestCase):
    """What is not an object of $ keys is compared as JSON, types apart."""

    def test_a_literal_is_the_same_json_value_with_types_apart(self):
        # (literal, value, the same?)
        table = [
            ("ok", "ok", True),
            ("ok", "OK", False),
            ("7", 7, False),
            (7, "7", False),
            (1, True, False),
            (True, 1, False),
            (0, False, False),
            (1, 1.0, True),
            (1.0, 1, True),
            (2**53 + 1, float(2**53), False),  # a float cannot hold 2^53 + 1
            (None, None, True),
            (None, False, False),
            (None, 0, False),
            (None, "", False),
            ([], [], True),
            ([], {}, False),
            ({}, {}, True),
            ([1, 2], [1, 2], True),
            ([1, 2], [2, 1], False),
            ([1, 2], [1, 2, 3], False),
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
            ({"a": 1}, {"a": 1, "b": 2}, False),
            ({"a": [True]}, {"a": [1]}, False),
            ("é", "e\u0301", False),
        ]
        for literal, value, same in table:
            with self.subTest(literal=literal, value=value):
                self.assertIs(holds(literal, value), same)
                self.assertIs(holds({"$eq": literal}, value), same)
                self.assertIs(holds({"$ne": literal}, value), not same)
                self.assertIs(holds({"$in": ["no", literal]}, value), same)
                self.assertIs(holds({"$not_in": ["no", literal]}, value), not same)

    def test_with_at_least_an_object_may_hold_more_at_every_depth_and_lists_go_element_by_element(self):
        # (literal, value, holds as it stands, holds with at_least)
        table = [
            ({"a": 1}, {"a": 1, "b": 2}, False, True),
            ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, False, True),
            ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, False, True),
            ([{"b": 1}, {"b": 2}], [{"b": 1, "c": 0}, {"b": 2}], False, True),
            ([{"b": 1}, {"b": 2}], [{"b": 2}, {"b": 1}], False, False),
            ([{"b": 1}], [{"b": 1}, {"b": 2}], False, False),
            ([], [1], False, False),
            ({}, {"a": 1}, False, True),
            ({}, [], False, False),
            ({"a": None}, {}, False, False),
            ({"a": 1}, {"a": True}, False, False),
        ]
        for literal, value, exact, at_least in table:
            with self.subTest(literal=literal, value=value):
                self.assertIs(holds(literal, value), exact)
                self.assertIs(holds(literal, value, at_least=True), at_least)

    def test_a_literal_may_hold_predicates_at_any_depth(self):
        document = {"phone": {"$regex": "^\\+"}, "parts": [{"kind": {"$in": ["paid", "free"]}}, 2], "note": {"$exists": False}}
        self.assertTrue(holds(document, {"phone": "+49", "parts": [{"kind": "paid"}, 2]}))
        self.assertFalse(holds(document, {"phone": "+49", "parts": [{"kind": "other"}, 2]}))
        self.assertFalse(holds(document, {"phone": "49", "parts": [{"kind": "paid"}, 2]}))
        self.assertFalse(holds(document, {"phone": "+49", "parts": [{"kind": "paid"}, 2], "note": None}))
        self.assertFalse(holds(document, {"phone": "+49", "parts": [{"kind": "paid"}, 2], "more": 1}))
        self.assertTrue(holds(document, {"phone": "+49", "parts": [{"kind": "paid", "n": 1}, 2], "more": 1}, at_least=True))

    def test_an_object_is_a_predicate_only_if_every_key_begins_with_a_dollar(self):
        self.assertTrue(kaizen.is_predicate({"$gt": 1, "$lt": 2}))
        for document in ({}, {"$ref": "#/a", "title": "A"}, {"a": 1}, [], "x", None, 1):
            with self.subTest(document=document):
                self.assertFalse(kaizen.is_predicate(document))
        self.assertTrue(holds({"$ref": "#/a", "title": "A"}, {"title": "A", "$ref": "#/a"}))

    def test_eq_and_literal_quote_what_looks_like_a_predicate(self):
        for key in ("$eq", "$literal"):
            with self.subTest(key=key):
                self.assertTrue(holds({key: {"$gt": 5}}, {"$gt": 5}))
                self.assertFalse(holds({key: {"$gt": 5}}, 6))
                self.assertFalse(holds({key: {"$gt": 5}}, {"$gt": 5, "more": 1}, at_least=True))


class Operators(support.StrictTestCase):
    """Each operator, on values it is about and on values it is not."""

    def test_order_compares_numbers_with_numbers_and_texts_with_texts_and_is_false_for_unlike_types(self):
        # (operator, operand, values that hold, values that do not)
        table = [
            ("$lt", 3, [2, 2.999, -1], [3, 3.0, 4, "2", True, None, [], {}, MISSING]),
            ("$le", 3, [3, 3.0, 2], [3.0001, "3", False, None]),
            ("$gt", 0, [1, 0.1], [0, -1, True, "1", None, [1], MISSING]),
            ("$ge", 2.5, [2.5, 3], [2, "2.5", None]),
            ("$lt", "2026-02-01", ["2026-01-31"], ["2026-02-01", 20260131, None]),
            ("$ge", "b", ["b", "c"], ["a", "B", 1, MISSING]),
            ("$gt", 2**53, [2**53 + 1], [2**53, float(2**53)]),
            ("$lt", 0.1 + 0.2, [0.3], [0.1 + 0.2]),  # binary values as they are: 0.1 + 0.2 is a little more than 0.3
            ("$gt", 10**400, [10**400 + 1], [1e308]),  # an integer beyond every float
        ]
        for operator, operand, good, bad in table:
            for values, expected in ((good, True), (bad, False)):
                for value in values:
                    with self.subTest(operator=operator, operand=operand, value=value):
                        self.assertIs(holds({operator: operand}, value), expected)

    def test_several_operators_all_hold(self):
        self.assertEqual([holds({"$ge": 1, "$le": 5, "$ne": 3}, value) for value in (0, 1, 3, 5, 6)], [False, True, False, True, False])

    def test_regex_is_found_anywhere_in_a_text_and_in_nothing_else(self):
        self.assertTrue(holds({"$regex": "b+"}, "abbc"))
        self.assertTrue(holds({"$regex": "(?i)^AB"}, "abc"))
        for value in ("ac", 1, None, ["b"], {"b": 1}, MISSING):
            with self.subTest(value=value):
                self.assertFalse(holds({"$regex": "b+"}, value))

    def test_a_pattern_that_never_ends_is_stopped(self):
        started = time.monotonic()
        with self.assertRaises(kaizen.PatternTimeout):
            holds({"$regex": "^(a+)+$"}, "a" * 40 + "!")
        self.assertLess(time.monotonic() - started, 5)

    def test_glob_is_the_whole_text_case_sensitive_and_spans_slashes(self):
        # (glob, texts that match, texts that do not)
        table = [
            ("mcp__*__lookup", ["mcp__shop__lookup", "mcp____lookup"], ["mcp__shop__lookups", "xmcp__shop__lookup", "MCP__shop__lookup"]),
            ("*.py", ["a.py", "src/a.py", ".py"], ["a.pyc", "a.py\n"]),
            ("v?", ["v1", "vé"], ["v", "v12"]),
            ("[ab]*", ["apple", "b"], ["cab", ""]),
            ("[!a]x", ["bx"], ["ax"]),
            ("a.c", ["a.c"], ["abc"]),
            ("(x", ["(x"], ["x"]),
        ]
        for glob, good, bad in table:
            for texts, expected in ((good, True), (bad, False)):
                for text in texts:
                    with self.subTest(glob=glob, text=text):
                        self.assertIs(holds({"$glob": glob}, text), expected)
        self.assertFalse(holds({"$glob": "*"}, 1))

    def test_a_glob_of_many_stars_is_fast(self):
        started = time.monotonic()
        self.assertFalse(holds({"$glob": "*a" * 30 + "*b"}, "a" * 5000))
        self.assertLess(time.monotonic() - started, 1)

    def test_exists_tells_null_from_nothing(self):
        self.assertEqual([holds({"$exists": True}, value) for value in (None, 0, "", MISSING)], [True, True, True, False])
        self.assertEqual([holds({"$exists": False}, value) for value in (None, 0, MISSING)], [False, False, True])

    def test_any_all_none_and_not_combine_predicates_about_one_value(self):
        low_or_high = [{"$lt": 2}, {"$gt": 8}]
        self.assertEqual([holds({"$any": low_or_high}, value) for value in (1, 5, 9)], [True, False, True])
        self.assertEqual([holds({"$none": low_or_high}, value) for value in (1, 5, 9)], [False, True, False])
        self.assertEqual([holds({"$all": [{"$gt": 2}, {"$lt": 8}]}, value) for value in (1, 5, 9)], [False, True, False])
        self.assertEqual([holds({"$not": {"$gt": 2}}, value) for value in (1, 5, "5")], [True, False, True])
        self.assertFalse(holds({"$any": ["a", "b"]}, ["a"]), "elements of a list are not asked by $any")

    def test_count_counts_the_elements_that_hold(self):
        parts = [{"kind": "paid", "n": 1}, {"kind": "paid"}, {"kind": "free"}]
        # (document, holds with at_least, holds as it stands)
        table = [
            ({"of": {"kind": "paid"}, "max": 1}, False, True),  # as it stands, {"kind": "paid", "n": 1} is another object
            ({"of": {"kind": "paid"}, "min": 2, "max": 2}, True, False),
            ({"of": {"kind": "other"}, "max": 0}, True, True),
            ({"of": {"kind": {"$in": ["paid", "free"]}}, "min": 3}, True, False),
            ({"min": 3, "max": 3}, True, True),
            ({"max": 2}, False, False),
        ]
        for document, at_least, exact in table:
            with self.subTest(document=document):
                self.assertIs(holds({"$count": document}, parts, at_least=True), at_least)
                self.assertIs(holds({"$count": document}, parts), exact)
        for value in ("abc", {"a": 1}, 3, None, MISSING):
            with self.subTest(value=value):
                self.assertFalse(holds({"$count": {"max": 5}}, value))

    def test_each_element_is_asked_as_no_element_that_does_not(self):
        each_positive = {"$count": {"of": {"$not": {"$gt": 0}}, "max": 0}}
        self.assertEqual([holds(each_positive, value) for value in ([1, 2], [1, -1], [])], [True, False, True])

    def test_an_absent_value_holds_nothing_but_negations(self):
        for document in ("x", None, {}, [], {"$eq": None}, {"$gt": 0}, {"$regex": "."}, {"$glob": "*"}, {"$in": [None]}, {"$count": {"max": 0}}):
            with self.subTest(document=document):
                self.assertFalse(holds(document, MISSING))
                self.assertTrue(holds({"$not": document}, MISSING))
                self.assertTrue(holds({"$none": [document]}, MISSING))
        self.assertFalse(holds({"$exists": True, "$ne": 3}, MISSING))

    def test_negation_is_an_involution(self):
        for document in ("x", {"$gt": 2}, {"$in": [1, "x"]}, {"$any": [1, {"$regex": "x"}]}, {"a": {"$exists": False}}):
            for value in ("x", 1, 3, None, {}, {"a": 1}, MISSING):
                with self.subTest(document=document, value=value):
                    self.assertIs(holds({"$not": {"$not": document}}, value), holds(document, value))
                    self.assertIs(holds({"$not": document}, value), not holds(document, value))


class Parts(support.StrictTestCase):
    """What a predicate says of a value found in a field that was cut short."""

    def test_what_is_found_in_a_part_is_known_and_what_is_not_found_is_open(self):
        # (predicate, value found in the part, answer)
        table = [
            ("abc", "abc", True),
            ("abc", "abd", None),
            ("abc", MISSING, None),
            ({"$regex": "b"}, "abc", True),
            ({"$regex": "z"}, "abc", None),
            ({"$not": {"$regex": "z"}}, "abc", None),
            ({"$not": {"$regex": "b"}}, "abc", None),  # its negation is not found, which proves nothing
            ({"$ne": "x"}, "abc", None),
            (7, 7, True),
            (7, 8, False),  # numbers are not cut
            ({"$ne": 7}, 8, True),
            ({"$gt": 5}, 3, False),
            (True, False, False),
            (None, None, True),
            ({"$exists": True}, "x", True),
            ({"$exists": True}, MISSING, None),
            ({"$exists": False}, MISSING, None),
            ({"$count": {"of": 1, "min": 1}}, [1, 2], True),
            ({"$count": {"of": 3, "min": 1}}, [1, 2], None),
            ({"$count": {"of": 3, "max": 0}}, [1, 2], None),
            ({"$any": ["x", {"$regex": "b"}]}, "abc", True),
            ({"$all": [{"$regex": "a"}, {"$not": "x"}]}, "abc", None),
        ]
        for document, value, expected in table:
            with self.subTest(document=document, value=value):
                self.assertIs(kaizen.compile_predicate(document, "", True).about_part(value), expected)


class Refusals(support.StrictTestCase):
    """What cannot be a predicate is refused with its place and what to do."""

    def test_each_refusal_names_the_place_and_what_to_do(self):
        # (document, pointer, words in the message or hint)
        table = [
            ({"$regexp": "x"}, "/p/$regexp", "did you mean '$regex'?"),
            ({"$gte": 1}, "/p/$gte", "did you mean '$g"),
            ({"$gt": None}, "/p/$gt", "a number or a text"),
            ({"$gt": True}, "/p/$gt", "a number or a text"),
            ({"$gt": [1]}, "/p/$gt", "an array"),
            ({"$in": "abc"}, "/p/$in", "a list of values"),
            ({"$in": []}, "/p/$in", "empty"),
            ({"$not_in": []}, "/p/$not_in", "empty"),
            ({"$regex": "a("}, "/p/$regex", "regular expression"),
            ({"$regex": ""}, "/p/$regex", "empty"),
            ({"$regex": 1}, "/p/$regex", "regular expression"),
            ({"$glob": ""}, "/p/$glob", "empty"),
            ({"$glob": 1}, "/p/$glob", "glob"),
            ({"$exists": 1}, "/p/$exists", "true or false"),
            ({"$any": {"$gt": 1}}, "/p/$any", "$count"),
            ({"$all": []}, "/p/$all", "empty"),
            ({"$none": [{"$lg": 1}]}, "/p/$none/0/$lg", "$lt"),
            ({"$not": {"$gt": {}}}, "/p/$not/$gt", "a number or a text"),
            ({"$count": 3}, "/p/$count", "an object"),
            ({"$count": {}}, "/p/$count", "neither min nor max"),
            ({"$count": {"of": 1}}, "/p/$count", "neither min nor max"),
            ({"$count": {"min": -1}}, "/p/$count/min", "whole number"),
            ({"$count": {"max": 1.5}}, "/p/$count/max", "whole number"),
            ({"$count": {"min": True}}, "/p/$count/min", "whole number"),
            ({"$count": {"min": 3, "max": 2}}, "/p/$count/min", "greater than max"),
            ({"$count": {"off": 3, "max": 2}}, "/p/$count/off", "did you mean 'of'?"),
            ({"a": [1, {"$foo": 1}]}, "/p/a/1/$foo", "unknown"),
        ]
        for document, pointer, words in table:
            with self.subTest(document=document):
                with self.assertRaises(kaizen.ConfigurationError) as caught:
                    kaizen.compile_predicate(document, "/p")
                self.assertEqual(caught.exception.pointer, pointer)
                self.assertIn(words, f"{caught.exception.message} {caught.exception.hint}")

    def test_an_empty_list_out_of_a_case_asks_nothing(self):
        with self.assertRaises(kaizen.NothingAsked):
            kaizen.compile_predicate({"$in": kaizen.EmptyFromCase()})


if __name__ == "__main__":
    unittest.main()
