"""The evaluator parses: what each form accepts, what it refuses and where, hostile texts."""

import sys
import unittest

from evaluating import entry_of, outcome_of, refusal_of
from support import StrictTestCase

import kaizen

ACCEPTED = {
    "json": ["{}", ' [1, "é"]\n', "null", "1.5"],
    "jsonl": ["{}", "{}\n[1]\n", '1\r\n"x"\r\n'],
    "csv": ["a,b\n1,2", "a,b\r\n1,2\r\n", '"a""b",c', '"two\nlines",x\n1,2', "a,\n,b", "one cell"],
    "xml": ["<a/>", "<a><b c='1'/>é</a>\n", "<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>", "<!-- x --><a><![CDATA[<]]></a>"],
    "html": [
        "<p>one<p>two", "<ul><li>a<li>b</ul>", "<!doctype html><html><body>x", "<a href=x title='y > z' hidden>w</a>", "a < b <b>c</b>", "<br><BR/>",
        "<svg><path d='M0'/></svg>", "<script>if (a<b) '</div>'</script>", "<!-- <div> --><i></I>", "<table><tr><td>1<td>2<tr><td>3</table>",
    ],
    "python": ["x = 1\n", "def f(a, /, *, b): return a", "print('\\d')", "x: int"],
    "url": ["https://a.example/x?y=1#z", "ftp://h", "http://[::1]:80/", "http://user:pass@h.example/"],
    "email": ["a.b+c@d.example", '"odd one"@x.example'],
    "date": ["2026-03-05", "5 March 2026", "05.03.2026", "3/25/2026", "2026-03-05T10:00:00+01:00"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"],
}  # fmt: skip
REFUSED = {
    "json": ["", "{'a': 1}", "{} {}", "NaN", '{"a":1,"a":2}', "```json\n{}\n```"],
    "jsonl": ["{}\n\n{}", "{}\n{a}", "[\n]", "\n", " "],
    "csv": ["a,b\n1", "a,b\n1,2,3", 'a"b,c', '"open,b', '"a"b,c', "a\rb", "a,b\n\n1,2"],
    "xml": ["x", "<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a>\x00</a>", "<a>\ud800</a>", "<a>&b;</a>", " <?xml version='1.0'?><a/>"],
    "html": [
        "plain", "<div><span></div></span>", "<div>", "<div/>", "</p>", "<br></br>", "<a b=1 b=2></a>", '<a b="1"c="2"></a>', "<a", "<a href='x>y</a>",
        "<!-- x", "<!x>", "<script>x", "<b>x</b", "<![CDATA[x]]>",
    ],
    "python": ["def f(:", "x = = 1", "\0", "\ud800", "print 'x'", "1" * 5000],
    "url": ["www.a.example", "http://", "mailto:a@b.example", "https://a.example/a b", "https://exämple.example", " https://a.example", "http://user@/x", "//a.example"],
    "email": ["a", "a@b@c", "a b@c.example", "a@-b.example", "a@b.example\n"],
    "date": ["3/4/2026", "31.02.2026", "on 2026-03-05", "2026", "2026-13-01", "tomorrow"],
    "uuid": ["123e4567", "{123e4567-e89b-12d3-a456-426614174000}", "123e4567-e89b-12d3-a456-42661417400g"],
}  # fmt: skip


def read(form, text, **settings):
    """The outcome of a text in a form."""
    return outcome_of(entry_of("parses", **{"as": form, **settings}), text)


class Forms(StrictTestCase):
    """What is in a form and what is not."""

    def test_what_each_form_accepts(self):
        for form, texts in ACCEPTED.items():
            for text in texts:
                with self.subTest(form=form, text=text):
                    self.assertEqual((read(form, text).status, read(form, text).score), ("pass", 1.0))

    def test_what_each_form_refuses(self):
        for form, texts in REFUSED.items():
            for text in texts:
                with self.subTest(form=form, text=ascii(text)[:60]):
                    found = read(form, text)
                    self.assertEqual((found.status, found.score), ("fail", 0.0))
                    for place in found.evidence:
                        self.assertTrue(0 <= place["start"] <= place["end"] <= len(text))

    def test_every_form_but_toml_is_in_the_tables(self):
        self.assertEqual({*ACCEPTED, "toml"}, set(kaizen.TEXT_FORMS))
        self.assertEqual(set(ACCEPTED), set(REFUSED))

    def test_reasons_say_what_and_where(self):
        for form, text, reason in (
            ("csv", "a,b\n1", "is not CSV: row 2 has 1 cell, the first has 2"),
            ("csv", 'x,a"b', "is not CSV: row 1, cell 2: a quote or carriage return stands where none can"),
            ("jsonl", "{}\n\n", "is not JSON Lines: line 2 is blank"),
            ("html", "<div><b></div>", "is not well-formed HTML: </div> comes while <b> is open"),
            ("date", "3/4/2026", "is not a date: it can be read two ways, or the calendar does not have it"),
            ("xml", "<a", "is not well-formed XML: unclosed token: line 1, column 0"),
        ):
            self.assertEqual(read(form, text).reason, reason)
        self.assertEqual(read("html", "ab<div><b></div>").evidence, ({"start": 10, "end": 11},))
        self.assertEqual(read("xml", "<é/><b/>").evidence, ({"start": 4, "end": 5},))

    def test_values(self):
        self.assertEqual(read("csv", "a,b\n1,2\n").value, {"rows": 2, "columns": 2})
        self.assertEqual(read("jsonl", "1\n2").value, {"lines": 2})
        self.assertEqual(read("html", "<p>a<p>b").value, {"elements": 2})
        self.assertEqual(read("date", "5 March 2026").value, "2026-03-05")

    def test_a_transform_takes_it_out_of_its_fence(self):
        self.assertEqual(read("python", "Here:\n```python\nx = 1\n```", transform=[{"fenced": ["python"]}]).status, "pass")

    def test_toml_is_read_or_refused_before_the_run(self):
        if sys.version_info < (3, 11):
            self.assertEqual(refusal_of(entry_of("parses", **{"as": "toml"}))[:2], ("/as", "toml needs Python 3.11 or newer"))
            return
        self.assertEqual([read("toml", text).status for text in ("a = 1", "[t]\nb = 'x'", "a = 1\na = 2", "a", "a = 1 b")], ["pass", "pass", "fail", "fail", "fail"])
        self.assertEqual(read("toml", "a." * 101 + "a=1").status, "error")
        self.assertEqual(read("toml", "a=" + "[" * 50_000).status, "error")

    def test_an_unknown_form_is_refused_with_the_nearest(self):
        self.assertEqual(refusal_of(entry_of("parses", **{"as": "jsnol"})), ("/as", "as 'jsnol' is unknown", "did you mean 'jsonl'?"))


class Hostile(StrictTestCase):
    """Nothing expands, runs, or takes the program down."""

    def test_entities_are_never_expanded(self):
        bomb = '<!DOCTYPE a [<!ENTITY a "' + "x" * 1000 + '">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1 or str()};" * 10}">' for n in range(1, 9)) + "]><a>&a8;</a>"
        for text in (bomb, "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "<!DOCTYPE a><a/>"):
            found = read("xml", text)
            self.assertEqual(found.status, "fail")
            self.assertIn("it has a document type (DTD), which is refused", found.reason)

    def test_python_is_not_run_and_warns_of_nothing(self):
        self.assertEqual(read("python", "raise SystemExit(3)\nimport os; os._exit(3)\nassert (1, '\\d')").status, "pass")

    def test_what_python_cannot_decide_is_an_error(self):
        deep = {"unary": "-" * 50_000 + "1", "lambda": "lambda:" * 14_000 + "1", "long": "x=1\n" * 25_001}
        for name, text in deep.items():
            with self.subTest(name):
                self.assertEqual(read("python", text).status, "error")
        for text in ("1" + "+1" * 49_999, "a" + ".a" * 49_999, "f" + "()" * 49_999, "(" * 90_000, "{" * 90_000, "f'" + "{" * 9_000, "*" * 90_000):
            self.assertIn(read("python", text).status, ("pass", "fail", "error"))

    def test_deep_and_long_texts_are_read_in_linear_time(self):
        size = 300_000
        texts = {
            "json": ["[" * size, '"' + "a" * size],
            "jsonl": ["{}\n" * 50_000],
            "csv": ['"' * size, "," * size, '"' + 'a""' * (size // 3), "a" * size + '"'],
            "xml": ["<a>" * (size // 3), "<a " + "b='1' " * (size // 6), "<!--" * size],
            "html": [
                "<a>" * 50_000, "<" * size, "<a" + " " * size, "<!--" * 50_000, "<p>" * 50_000 + "</p>" * 50_000, "<script>" * 30_000, "<a b=" + "=" * size,
                "<a" + "".join(f" b{n}" for n in range(50_000)) + "></a>", "</a" + " " * size, "<svg>" + "<![CDATA[" * 30_000, "<!doctype " + " " * size,
            ],
            "url": ["https://" + "a" * 90_000, "https://" + "%aa" * 30_000 + " ", "a" * size, "https://" + "@" * 90_000, "https://[" + ":" * 90_000],
            "email": ["a" * size + "@b", "a@" + "a." * size, "@" * size, '"' * size + "@b"],
            "date": ["1" * size, "5 March" + " " * size + "2026", "1-" * size],
            "uuid": ["a" * size, "-" * size],
        }  # fmt: skip
        for form, each in texts.items():
            for text in each:
                with self.subTest(form=form, text=text[:20]):
                    began = kaizen.time.process_time()
                    self.assertIn(read(form, text).status, ("pass", "fail", "error"))
                    self.assertLess(kaizen.time.process_time() - began, 2)


if __name__ == "__main__":
    unittest.main()
