"""docs/structured-answers.md says what the program does."""

import json
import re

from support import ROOT, StrictTestCase

import kaizen

TEXT = (ROOT / "docs" / "structured-answers.md").read_text(encoding="utf-8")


def words_in(row):
    """The words in backticks of the table row that begins with *row*, but for the first cell."""
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {row} |")]
    return re.findall(r"`([^`]+)`", line.split("|", 2)[2])


class Page(StrictTestCase):
    """Its tables and examples."""

    def test_every_keyword_and_format_is_in_its_table_and_no_other(self):
        keywords = [word for row in ("any value", "numbers", "text", "lists", "objects", "annotations") for word in words_in(row)]
        known = ["type", *kaizen.SCHEMA_KEYWORDS, *kaizen.SCHEMA_COMPANIONS, *kaizen.SCHEMA_ANNOTATIONS]
        self.assertEqual(sorted(keywords), sorted(known))
        self.assertEqual(sorted(words_in("formats")), sorted([*kaizen.SCHEMA_FORMATS, "regex"]))

    def test_every_op_and_extract_is_in_its_table(self):
        named = set(re.findall(r"^\| (?:`(\w+)`(?: \(default\))?(?:, `(\w+)`)?) \|", TEXT, re.MULTILINE))
        self.assertEqual({word for pair in named for word in pair if word}, {*kaizen.FIELD_OPS, *kaizen.JSON_EXTRACTS})

    def test_the_examples_can_be_prepared(self):
        examples = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
        self.assertEqual([kaizen.prepare_entry(json.loads(example)).id for example in examples], ["order", "reading"])

    def test_the_order_of_the_first_example_is_checked_as_it_says(self):
        entry = kaizen.prepare_entry(json.loads(re.search(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[1]))
        answer = '{"id": "ORD-7", "lines": [{"sku": "b", "price": 19.99}]}'
        self.assertEqual(entry.evaluate({"output": f"```json\n{answer}\n```"}, {}, {}).status, "pass")
        found = entry.evaluate({"output": answer.replace("19.99", "19.999")}, {}, {})
        self.assertEqual((found.status, found.evidence), ("fail", ({"pointer": "/lines/0/price"},)))

    def test_the_differences_are_those_that_it_lists(self):
        rows = re.findall(r"^\| `(\{.*?\})` \| `(.+?)` \| (valid|invalid) \|", TEXT, re.MULTILINE)
        self.assertEqual(len(rows), 5)
        for schema, value, verdict in rows:
            found = kaizen.compile_schema(json.loads(schema))(json.loads(value))
            self.assertEqual("invalid" if found else "valid", verdict, (schema, value))
