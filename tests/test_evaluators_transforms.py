"""Transforms and the paths they start from."""

import sys
import unittest
from unittest import mock

from evaluating import CASE, entry_of, observation, outcome_of, refusal_of, status_of
from support import StrictTestCase

import kaizen


def transformed(steps, value):
    """What the transforms make of a value."""
    for step in kaizen.compile_transforms(steps, "/transform"):
        value = step(value)
    return value


class Transforms(StrictTestCase):
    """What each does."""

    def test_each_transform(self):
        for steps, value, expected in (
            (["strip"], " a \n", "a"),
            (["lower"], "ÀB", "àb"),
            (["casefold"], "Straße", "strasse"),
            (["nfc"], "e\u0301", "é"),
            (["nfkc"], "ｆｕｌｌ", "full"),
            (["collapse_space"], " a\u00a0 b\n\nc ", "a b c"),
            (["first_line"], "\n \n a \nb", "a"),
            (["last_line"], "a\n b \n\n", "b"),
            (["number"], "First 10, finally $1,200.50.", 1200.5),
            (["number"], 7, 7),
            (["json"], '{"a": [1]}', {"a": [1]}),
            (["json", {"pointer": ["/a/0"]}], '{"a": [1]}', 1),
            ([{"pointer": ["/*/n"]}], [{"n": 1}, {"m": 2}, {"n": 3}], [1, 3]),
            ([{"pointer": ["/a/b"]}], {"a": '{"b": 2}'}, 2),
            ([{"regex_capture": ["A: (.*)"]}], "x\nA: yes", "yes"),
            ([{"regex_capture": ["A: .*"]}], "x\nA: yes", "A: yes"),
            ([{"regex_capture": ["(a)(?P<n>b)", "n"]}], "ab", "b"),
            ([{"regex_capture": ["(a)(b)", 2]}], "ab", "b"),
            (["csv"], 'name,n\r\n"Doe, J.",1\n\nx,2\n', [{"name": "Doe, J.", "n": "1"}, {"name": "x", "n": "2"}]),
            (["csv"], 'a\n"two\nlines"\n', [{"a": "two\nlines"}]),
            (["csv"], "a,b\n", []),
            ([{"fenced": []}], "text\n```py\nx = 1\n```\n```json\n{}\n```", "x = 1"),
            ([{"fenced": ["JSON"]}], "text\n```py\nx = 1\n```\n```json\n{}\n```", "{}"),
            (["fenced"], "~~~\n```\n~~~\n", "```"),
            (["fenced"], "````md\n```\nx\n```\n````", "```\nx\n```"),
            (["fenced"], "```\nnever closed", "never closed"),
            (["lower", "strip"], [" A", {"k": "B "}, 1], ["a", {"k": "b"}, 1]),
        ):
            with self.subTest(steps=steps, value=value):
                self.assertEqual(transformed(steps, value), expected)

    def test_markdown_marks_go_and_words_stay(self):
        for text, expected in (
            ("## The *answer* is **42**", "The answer is 42"),
            ("- one\n  * two\n> three", "one\n  two\nthree"),
            ("see [the page](https://x.example/a_b) and ![alt](i.png)", "see the page and alt"),
            ("`code` and ~~old~~ __new__ _soft_", "code and old new soft"),
            ("2 * 3 * 4 and snake_case_name and 5*3", "2 * 3 * 4 and snake_case_name and 5*3"),
            ("```python\nx = 1\n```\nafter", "x = 1\nafter"),
        ):
            with self.subTest(text=text):
                self.assertEqual(transformed(["strip_markdown"], text), expected)

    def test_one_that_finds_nothing_follows_on_missing(self):
        for steps, output, status, reason in (
            (["last_line"], " \n ", "error", "there is no line that is not blank"),
            (["number"], "none", "error", "there is no number"),
            ([{"regex_capture": ["A: (.*)"]}], "B", "error", "pattern 'A: (.*)' finds nothing"),
            ([{"regex_capture": ["a(b)?"]}], "a", "error", "pattern 'a(b)?' finds nothing"),
            ([{"fenced": ["json"]}], "```py\n```", "error", "there is no fenced block of 'json'"),
            (["json"], "{", "fail", "the text is not JSON"),
            (["json", {"pointer": ["/b"]}], "{}", "fail", "there is nothing at /b"),
            (["csv"], "a,b\n1\n", "fail", "CSV row 2 has 1 cell, the header 2"),
            (["csv"], "a,a\n", "fail", "two CSV columns have the same name"),
            (["csv"], "", "error", "there are no CSV rows"),
        ):
            with self.subTest(steps=steps, output=output):
                outcome = outcome_of(entry_of("equals", value=1, transform=steps, negate=True), output)
                self.assertEqual(outcome.status, status)
                self.assertIn(reason, outcome.reason)
                self.assertEqual(status_of(entry_of("equals", value=1, transform=steps, on_missing="not_applicable"), output), "not_applicable")

    def test_evidence_says_that_it_points_into_what_was_transformed(self):
        outcome = outcome_of(entry_of("contains", values="b", transform=["last_line"]), "a\nb")
        self.assertEqual(outcome.evidence, ({"start": 0, "end": 1, "in": "output.text transformed"},))

    def test_what_cannot_be_meant_is_refused(self):
        for steps, pointer, part in (
            (["stirp"], "/transform/0", "'stirp' is unknown"),
            (["strip", 7], "/transform/1", "neither a name"),
            ([{"fenced": "json"}], "/transform/0", "no list"),
            ([{"fenced": ["a", "b"]}], "/transform/0", "takes 0 to 1 arguments, not 2"),
            (["pointer"], "/transform/0", "takes 1 argument, not 0"),
            ([{"strip": ["x"]}], "/transform/0", "takes 0 arguments, not 1"),
            ([{"pointer": ["a"]}], "/transform/0", "begins with '/'"),
            ([{"pointer": [1]}], "/transform/0", "not a string"),
            ([{"regex_capture": ["("]}], "/transform/0", "not a regular expression"),
            ([{"regex_capture": ["(a)", 2]}], "/transform/0", "no group '2'"),
            ("strip", "/transform", "is a string, not a list"),
        ):
            with self.subTest(steps=steps):
                found = refusal_of(entry_of("equals", value=1, transform=steps))
                self.assertEqual(found[0], pointer)
                self.assertIn(part, found[1])
        self.assertEqual(refusal_of(entry_of("equals", value=1, transform=["stirp"]))[2], "did you mean 'strip'?")

    def test_hostile_texts_take_no_longer_than_their_length(self):
        for text in ("[" * 200_000, "*" * 200_000, "_a" * 100_000, "`" * 200_000, "\n#" * 100_000, "(" * 100_000 + ")" * 100_000, "- " * 100_000):
            transformed(["strip_markdown", "collapse_space"], text)
            kaizen.fenced_blocks(text)

    @unittest.skipIf(sys.platform == "win32", "no alarm signal there")
    def test_a_pattern_that_never_ends_is_an_error_that_names_it(self):
        with mock.patch.object(kaizen, "PATTERN_SECONDS", 0.1):
            outcome = outcome_of(entry_of("equals", value="a", transform=[{"regex_capture": ["^((a+)+)$"]}]), "a" * 40 + "!")
        self.assertEqual(outcome.status, "error")
        self.assertIn("'^((a+)+)$' on 41 characters: stopped after 0.1 s", outcome.reason)


class Paths(StrictTestCase):
    """What `select` leads to."""

    def selected(self, path, output=None, case=CASE, **fields):
        return kaizen.select_path(kaizen.parse_path(path), observation(output, **fields), case)

    def test_roots(self):
        steps = [{"kind": "message", "role": "user", "text": "a"}, {"kind": "message", "role": "assistant", "text": "b"}, {"kind": "tool", "text": "c"}]
        case = {"id": "c1", "input": {"q": 1}, "context": None, "expected": 7}
        for path, value in (
            ("output.text", '{"a":[1,{"b":2}]}'),
            ("output.json/a/1/b", 2),
            ("output/a/0", 1),
            ("output.json/a/*/b", [2]),
            ("messages.user", ["a"]),
            ("messages.assistant/0", "b"),
            ("steps/2/kind", "tool"),
            ("status", "completed"),
            ("input/q", 1),
            ("context", None),
        ):
            with self.subTest(path=path):
                found = self.selected(path, {"a": [1, {"b": 2}]}, case, steps=steps)
                self.assertEqual((found.found, found.value), (True, value))

    def test_json_in_a_text_is_parsed_when_a_pointer_goes_into_it(self):
        self.assertEqual(self.selected("output.text/a", '{"a": 1}').value, 1)
        self.assertEqual(self.selected("steps/0/args/id", steps=[{"args": '{"id": 7}'}]).value, 7)

    def test_escapes_and_empty_names(self):
        self.assertEqual(self.selected("output.json/a~1b/~0/", {"a/b": {"~": {"": 5}}}).value, 5)

    def test_what_is_absent_says_what_is_missing_and_whose_doing_it_is(self):
        for path, output, reason, agent_fault in (
            ("output.text", None, "there is no output", False),
            ("output.json", "{", "the output is not JSON", True),
            ("output.json/b", '{"a": 1}', "there is nothing at output.json/b", True),
            ("output.json/a/0", '{"a": 1}', "there is nothing at output.json/a/0", True),
            ("output.json/a/01", {"a": [1, 2]}, "there is nothing at output.json/a/01", True),
            ("steps/0", "x", "the observation has no steps", False),
            ("messages.user", "x", "no steps were recorded", False),
            ("context", "x", "the case has no context", False),
        ):
            with self.subTest(path=path, output=output):
                found = self.selected(path, output)
                self.assertEqual((found.found, found.agent_fault), (False, agent_fault))
                self.assertIn(reason, found.reason)

    def test_the_answer_key_is_out_of_reach(self):
        for path in ("expected", "tags", "metadata_of_case", "case", ""):
            with self.subTest(path=path):
                self.assertEqual(refusal_of(entry_of("equals", value=1, select=path))[0], "/select")
        self.assertIn("did you mean 'output.text'?", refusal_of(entry_of("equals", value=1, select="ouput.text"))[1])


if __name__ == "__main__":
    unittest.main()
