"""docs/text-metrics.md: its examples are accepted, its tables name what there is."""

import json
import re
import unittest

from support import ROOT, StrictTestCase

import kaizen

PAGE = (ROOT / "docs" / "text-metrics.md").read_text(encoding="utf-8")


class Page(StrictTestCase):
    """The page."""

    def test_its_examples_are_accepted(self):
        examples = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
        self.assertEqual([kaizen.prepare_entry(entry).type.name for entry in examples], ["similarity", "label", "refusal"])

    def test_its_tables_name_every_measure_and_form(self):
        cells = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))))
        self.assertEqual(cells - {"label"}, {*kaizen.SIMILARITY_MEASURES, *kaizen.TEXT_FORMS})

    def test_its_bounds_are_those_of_the_program(self):
        for bound in (kaizen.SIMILARITY_BOUND, kaizen.PYTHON_BOUND):
            self.assertIn(f"{bound:,} characters", PAGE)


if __name__ == "__main__":
    unittest.main()
