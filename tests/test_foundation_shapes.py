"""Kinds of fields, and the check of a document against a table of them."""

import unittest

from support import StrictTestCase

import kaizen


def told(document, kinds, required=()):
    """[(pointer, message, hint)] of a check."""
    found = []
    kaizen.check_fields(document, kinds, "", lambda *breach: found.append(breach), required)
    return found


class Kinds(StrictTestCase):
    """What each kind accepts; 0, false and empty are values, true is no number, 1.0 is whole."""

    def test_each_kind_accepts_and_refuses(self):
        for name, good, bad in [
            ("TEXT", ["a", " "], ["", 1, None, [], True]),
            ("ANY_TEXT", ["a", ""], [1, None]),
            ("BOOLEAN", [True, False], [0, 1, "true", None]),
            ("OBJECT", [{}, {"a": 1}], [[], "", None]),
            ("COUNT", [0, 1, 3.0, 10**30], [-1, 0.5, True, "1", None]),
            ("POSITIVE_COUNT", [1, 2.0], [0, -1, False, 1.5]),
            ("RATE", [0, 1, 0.0, 0.5, 1.0], [-0.1, 1.1, True, "0.5", None]),
            ("OPEN_RATE", [0.5, 0.95], [0, 1, 95, True]),
            ("RATIO", [0.001, 1, 2.5], [0, -1, 0.0, False]),
            ("DIFFERENCE", [-1, 0, 1, -0.05], [-1.1, 2, True]),
        ]:
            kind = getattr(kaizen, name)
            for value in good:
                with self.subTest(kind=name, value=value):
                    self.assertEqual(told({"a": value}, {"a": kind}), [])
            for value in bad:
                with self.subTest(kind=name, value=value):
                    self.assertEqual([pointer for pointer, _, _ in told({"a": value}, {"a": kind})], ["/a"])

    def test_null_only_where_it_is_said(self):
        self.assertEqual(told({"a": None}, {"a": kaizen.or_null(kaizen.RATE)}), [])
        self.assertEqual(told({"a": 2}, {"a": kaizen.or_null(kaizen.RATE)}), [("/a", "must be a number from 0 to 1, or null, not 2", "")])

    def test_an_element_of_a_list_is_named_by_its_place(self):
        kinds = {"a/b": kaizen.list_of(kaizen.TEXT, "texts")}
        self.assertEqual([pointer for pointer, _, _ in told({"a/b": ["x", "", 3]}, kinds)], ["/a~1b/1", "/a~1b/2"])
        self.assertEqual(told({"a/b": "x"}, kinds), [("/a~1b", "must be a list of texts, […], not a text", "")])

    def test_a_misspelt_word_names_the_nearest(self):
        kinds = {"a": kaizen.one_of("development", "holdout")}
        self.assertEqual(
            told({"a": "develpment"}, kinds), [("/a", "must be one of development or holdout, not 'develpment'", "did you mean 'development'?")]
        )

    def test_a_text_of_the_user_is_never_shown(self):
        for kind in (kaizen.COUNT, kaizen.OBJECT, kaizen.BOOLEAN, kaizen.CASE_FIELDS["id"]):
            self.assertNotIn("secret", str(told({"a": "secret\n"}, {"a": kind})))

    def test_what_is_required_and_absent_is_named(self):
        self.assertEqual(told({}, {"a": kaizen.TEXT}, ["a"]), [("", "has no 'a'", 'write "a": a text that is not empty')])

    def test_an_unknown_key_names_the_nearest_known_one(self):
        found = []
        kaizen.check_no_others({"sed": 1, "seed": 2}, ["seed", "include"], "/x", lambda *breach: found.append(breach))
        self.assertEqual(found, [("/x/sed", "unknown key 'sed'", "did you mean 'seed'?")])


if __name__ == "__main__":
    unittest.main()
