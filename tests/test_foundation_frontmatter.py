"""The documented part of YAML: what is read, what is refused with its line, what is written."""

import unittest

from support import DATA, StrictTestCase

import kaizen


class Reading(StrictTestCase):
    """Keys, texts, lists, quotes and comments."""

    def test_values_are_texts_or_lists_of_texts(self):
        for text, values in [
            ("a: b", {"a": "b"}),
            ("a:", {"a": ""}),
            ("a: ''\nb: \"\"", {"a": "", "b": ""}),
            ("a: two words  here", {"a": "two words  here"}),
            ("a: true\nb: 12\nc: null", {"a": "true", "b": "12", "c": "null"}),
            ("a: []", {"a": []}),
            ("a:\n- x\n- y", {"a": ["x", "y"]}),
            ("a:\n\n  # why\n  - x # c\n\n  - 'y # z'\nb: c", {"a": ["x", "y # z"], "b": "c"}),
            ("a:\n  -\n", {"a": [""]}),
            ("a: 'it''s'\nb: \"say \\\"x\\\" \\n \\u00e9\"", {"a": "it's", "b": 'say "x" \n é'}),
            ("a: sha256:ab12\nb: x:y\nc: http://example.org/#top", {"a": "sha256:ab12", "b": "x:y", "c": "http://example.org/#top"}),
            ("a_b-c: x\n", {"a_b-c": "x"}),
            ("a: it's \"so\"", {"a": "it's \"so\""}),
            ("", {}),
            ("# only\n   # comments\n", {}),
            ("a: é\u2028日本", {"a": "é\u2028日本"}),
        ]:
            with self.subTest(text=text):
                self.assertEqual(kaizen.parse_block_yaml(text, "d.yaml"), values)

    def test_a_comment_needs_a_blank_in_front(self):
        for text, value in [
            ("a: b # c", "b"), ("a: b\t# c", "b"), ("a: b#c", "b#c"), ("a: b #", "b"), ("a: # b", ""), ("a: 'b' # c", "b"), ('a: "b # c" # d', "b # c"),
        ]:
            with self.subTest(text=text):
                self.assertEqual(kaizen.parse_block_yaml(text, "d.yaml"), {"a": value})

    def test_decision_files_met_in_the_field(self):
        for name, value in [
            ("comment", "accepted"), ("quoted", "accepted"), ("single", "accepted_with_conditions"),
            ("hash-in-word", "accepted#1"), ("pending", "pending"), ("empty", ""),
        ]:
            with self.subTest(name=name):
                path = DATA / "field_cases" / "51-comment-behind-the-decision" / f"{name}.yaml"
                self.assertEqual(kaizen.parse_block_yaml(path.read_text(), path.name)["decision"], value)

    def test_what_yaml_would_read_in_another_way_is_refused_with_its_line(self):
        for text, line in [
            ("x: y\na: [b, c]", 2), ("a: {b: c}", 1), ("a: |\n  text", 1), ("a: >-\n  text", 1), ("a: &anchor b", 1), ("a: *anchor", 1),
            ("a: !tag b", 1), ("a: %b", 1), ("a: @b", 1), ("a: `b`", 1), ("a: b: c", 1), ("a: b:", 1), ("a: - b", 1), ("a: ? b", 1), ("a: , b", 1),
            ("---\na: b", 1), ("a: b\n...", 2), ("%YAML 1.2", 1), ("a: b\n  c", 2), ("a:\n  b: c", 2), ("a:\n\tb: c", 2), ("- a", 1),
            ("a: b\n- c", 2), ("a: []\n- c", 2), ("a: ''\n- c", 2), ("a:b", 1), ("just words", 1), ("a: 'b", 1), ('a: "b', 1), ('a: "b" c', 1),
            ("a: 'b'#c", 1), ('a: "\\q"', 1), ('a: "\\ud800"', 1), ("a: b\na: c", 2), ("'a': b", 1), ("a b: c", 1), ("a: b\x00", 1), ("a: b\rc: d", 1),
        ]:
            with self.subTest(text=text):
                with self.assertRaises(kaizen.BreachesError) as caught:
                    kaizen.parse_block_yaml(text, "d.yaml")
                self.assertEqual([breach.line for breach in caught.exception.breaches][:1], [line])
                self.assertTrue(caught.exception.hint)

    def test_all_bad_lines_are_told_at_once(self):
        with self.assertRaises(kaizen.BreachesError) as caught:
            kaizen.parse_block_yaml("a: [x]\nb: ok\nc\n  d: e\n", "d.yaml")
        self.assertEqual([breach.place() for breach in caught.exception.breaches], ["d.yaml:1", "d.yaml:3", "d.yaml:4"])


class Writing(StrictTestCase):
    """What is written is read back as it was, and means the same to any reader of YAML."""

    TEXTS = (
        "", "plain", "sha256:ab", "two words", "a: b", "a #b", "#a", "- a", "[a]", "{a}", "'", '"', "\\", "\n", "a\nb\n", "\t", "true", "No", "null", "~",
        "12", "1.5", "2026-01-02", "2026-01-02T03:04:05Z", "é", "\u2028", "\u202e", "\x00", "\x1b[31m", " a ", "a:", "&a", "*a", "!a", "|", ">", "%", "@", "`",
        "x" * 3000, "\U0001f600", "y", "on", "=", "<<", "?", "...", "---", "0x1f", "1e3", ".inf", "a\r\nb", "\ufeff",
    )  # fmt: skip

    def test_every_text_comes_back(self):
        values = {f"k{index}": text for index, text in enumerate(self.TEXTS)}
        values["list"] = list(self.TEXTS)
        values["none"] = []
        self.assertEqual(kaizen.parse_block_yaml(kaizen.write_block_yaml(values), "d.yaml"), values)

    def test_texts_that_yaml_takes_for_something_else_are_quoted(self):
        self.assertEqual(
            kaizen.write_block_yaml({"a": "accepted", "b": "yes", "c": "12", "d": "x: y", "e": ["z", "no"], "f": []}),
            'a: accepted\nb: "yes"\nc: "12"\nd: "x: y"\ne:\n  - z\n  - "no"\nf: []\n',
        )

    def test_half_a_surrogate_pair_becomes_the_replacement_character(self):
        self.assertEqual(kaizen.write_block_yaml({"a": "b\udc80"}), 'a: "b\ufffd"\n')

    def test_an_update_keeps_comments_other_keys_and_lines_that_stay(self):
        before = "# kept\nstatus: 'pending'   # pending | accepted\n\nticket: ABC-1 # mine\nlist:\n  - a # why\n  - b\nother: []\n"
        after = kaizen.update_block_yaml(before, {"status": "accepted", "list": ["a", "b"], "other": ["x y"], "new": "z"}, "d.yaml")
        self.assertEqual(
            after,
            '# kept\nstatus: accepted  # pending | accepted\n\nticket: ABC-1 # mine\nlist:\n  - a # why\n  - b\nother:\n  - "x y"\nnew: z\n',
        )

    def test_an_update_shortens_and_empties_lists(self):
        self.assertEqual(kaizen.update_block_yaml("l:\n  - a\n  # c\n  - b\nk: v", {"l": []}, "d.yaml"), "l: []\nk: v\n")
        self.assertEqual(kaizen.update_block_yaml("l:  # c\n  - a\n  - b\n", {"l": ["x"]}, "d.yaml"), "l:  # c\n  - x\n")

    def test_an_update_that_changes_nothing_changes_no_byte(self):
        text = "# c\na: 'b'   # d\nl:\n- x\n"
        self.assertEqual(kaizen.update_block_yaml(text, {"a": "b", "l": ["x"]}, "d.yaml"), text)

    def test_an_empty_file_is_filled(self):
        self.assertEqual(kaizen.update_block_yaml("", {"a": "b"}, "d.yaml"), "a: b\n")


if __name__ == "__main__":
    unittest.main()
