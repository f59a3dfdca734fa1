"""The YAML that configurations use: what is read, and what is refused with its line."""

import time
import unittest

from support import StrictTestCase

import kaizen

# Values as YAML 1.2 and js-yaml, which promptfoo reads with, give them.
READ = {
    "a map and lists": ("a: 1\nb:\n- x\n- y: 2\n  z: 3\n-\n  - n\n", {"a": 1, "b": ["x", {"y": 2, "z": 3}, ["n"]]}),
    "a list in its key's column": ("a:\n- b\nc: d\n", {"a": ["b"], "c": "d"}),
    "lists in lists": ("- - a\n  - b\n- c\n", [["a", "b"], "c"]),
    "block text": ("a: |\n  x\n   y\n\n  # z\nb: 1\n", {"a": "x\n y\n\n# z\n", "b": 1}),
    "folded text": ("a: >-\n  a\n  b\n\n  c\n    d\n  e\n", {"a": "a b\nc\n  d\ne"}),
    "signs of block text": ("a: |+\n  x\n\nb: |2\n   y\nc: |-\n  z\n\n", {"a": "x\n\n", "b": " y\n", "c": "z"}),
    "plain text over lines": ("a: one\n  two\n\n  three # no\nb: 2\n", {"a": "one two\nthree", "b": 2}),
    "quotes": ("a: 'it''s'\nb: \"x\\ty \\u00e9\\x41 \\ud83d\\ude00\"\n", {"a": "it's", "b": "x\ty éA 😀"}),
    "quotes over lines": ("a: \"one\n  two\n\n  three\\\n  four\"\nb: 'x\n\n  y'\n", {"a": "one two\nthreefour", "b": "x\ny"}),
    "brackets over lines": ("a: {k: v,\n  l: [x,\n   'y, z'], m}\n", {"a": {"k": "v", "l": ["x", "y, z"], "m": None}}),
    "JSON": ('{"a": [1, 2.5, null, true], "b": {"c": "d"}}', {"a": [1, 2.5, None, True], "b": {"c": "d"}}),
    "comments": ("# c\n---\na: x#y # z\n  # c\nb: 'q # r'\n", {"a": "x#y", "b": "q # r"}),
    "words": ("a: ~\nb:\nc: True\nd: yes\ne: null\nf: off\n", {"a": None, "b": None, "c": True, "d": "yes", "e": None, "f": "off"}),
    "numbers": ("a: -3\nb: 1.5e3\nc: .5\nd: 1.2.3\ne: 2024-01-01\n", {"a": -3, "b": 1500.0, "c": 0.5, "d": "1.2.3", "e": "2024-01-01"}),
    "anchors": ("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n", {"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}, {"k": 1}]}),
    "merge keys": ("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  k: 3\n", {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}}),
    "text with a template in quotes": ("a: '{{name}}, hello'\n", {"a": "{{name}}, hello"}),
    "colons inside words": ("a: http://x.y/z\nb: 12:30\nkey with blank: v\n", {"a": "http://x.y/z", "b": "12:30", "key with blank": "v"}),
    "CRLF": ("a: 1\r\nb: |\r\n  x\r\n", {"a": 1, "b": "x\n"}),
    "nothing": ("# only a comment\n", None),
}
REFUSED = {  # text: (line, a part of the message)
    "two documents": ("a: 1\n---\nb: 2\n", 2, "another document"),
    "a directive": ("%YAML 1.2\n---\na: 1\n", 1, "directive"),
    "a tag": ("a: 1\nb: !!python/object:os.system x\n", 2, "'!!python/object:os.system x'"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", 3, "'a' occurs twice"),
    "a key twice in braces": ("a: {b: 1, b: 2}\n", 1, "'b' occurs twice"),
    "a tab": ("a:\n\tb: 1\n", 2, "tab"),
    "a complex key": ("? a\n: b\n", 1, "complex key"),
    "a bare template": ("a: 1\nb: {{name}}\n", 2, "as a key"),
    "a colon in a value": ("a: b: c\n", 1, "colon"),
    "a quote without end": ("a: 1\nb: 'x\nc: 2\n", 3, "indented no more"),
    "text behind quotes": ("a: 'x' y\n", 1, "stands behind a value"),
    "brackets without end": ("a:\n  - [x,\n     y\n", 2, "does not end"),
    "an alias of nothing": ("a: *b\n", 1, "no alias"),
    "a number readers differ about": ("zip: 01234\n", 1, "'01234'"),
    "a number that is none": ("a: .nan\n", 1, "'.nan'"),
    "a huge number": ("a: " + "9" * 5000 + "\n", 1, "number"),
    "half a pair": ('a: "\\ud800"\n', 1, "surrogate"),
    "an unknown escape": ('a: "\\q"\n', 1, "escape"),
    "a NUL": ("a: x\nb: \0\n", 2, "U+0000"),
    "wrong columns": ("a:\n   b: 1\n  c: 2\n", 3, "indented unlike"),
    "a text alone": ("just text\n", 1, "neither"),
    "an anchor of itself": ("a: &x [*x]\n", 1, "no alias"),
}


class YamlSubset(StrictTestCase):
    def test_what_is_read_means_what_yaml_says(self):
        for name, (text, value) in READ.items():
            with self.subTest(name):
                self.assertEqual(kaizen.read_yaml(text, "f.yaml"), value)

    def test_what_is_refused_is_refused_with_its_line(self):
        for name, (text, line, part) in REFUSED.items():
            with self.subTest(name), self.assertRaises(kaizen.InputError) as caught:
                kaizen.read_yaml(text, "f.yaml")
            self.assertTrue(caught.exception.message.startswith(f"f.yaml:{line}: "), caught.exception.message)
            self.assertIn(part, caught.exception.message)

    def test_aliases_of_aliases_do_not_unfold_without_bound(self):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
        with self.assertRaisesRegex(kaizen.InputError, "unfolds to more than"):
            kaizen.read_yaml("\n".join(lines), "f")
        merged = ["m0: &m0 {k: [x, x, x, x, x, x, x, x, x, x]}"]
        merged += [f"m{n}: &m{n}\n  l: [{', '.join([f'*m{n - 1}'] * 9)}]\n  <<: *m{n - 1}" for n in range(1, 9)]
        with self.assertRaisesRegex(kaizen.InputError, "unfolds to more than"):
            kaizen.read_yaml("\n".join(merged), "f")

    def test_deep_nesting_is_refused_and_not_a_stack_overflow(self):
        deep = ("[" * 5000, "- " * 5000 + "x", "{a: " * 5000, "\n".join(" " * n + "a:" for n in range(500)), "a: " + "&x " * 5000)
        for text in deep:
            with self.subTest(text[:10]), self.assertRaises(kaizen.InputError):
                kaizen.read_yaml(text, "f")

    def test_time_is_linear_in_the_size(self):
        texts = (
            "- {a: 'b', c: [1, 2]}\n" * 2000,
            "a: " + "x " * 60000,
            "a: '" + "x ''" * 60000 + "'",
            'a: "' + "\\n " * 60000 + '"',
            "a: [" + "x, " * 60000 + "]",
            "a: [" + "'x', " * 60000 + "]",
            "a: {" + ", ".join(f"k{n}: v" for n in range(30000)) + "}",
            "a: |\n" + "  x\n" * 60000,
            "a: x" + "\n" * 60000,
            "a: " + " " * 200000 + "#",
            "a" * 200000,
            "a: '" + " \n" * 30000 + "'",
        )
        for text in texts:
            with self.subTest(text[:12]):
                start = time.perf_counter()
                try:
                    kaizen.read_yaml(text, "f")
                except kaizen.InputError:
                    pass
                self.assertLess(time.perf_counter() - start, 3)


if __name__ == "__main__":
    unittest.main()
