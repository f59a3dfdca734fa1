"""docs/lab-reading.md goes as it is written."""

import re
import unittest

import repositories
from sessions import replay
from support import ROOT, difference
from test_docs import blocks
from test_examples_system_demo import quick_environment

import kaizen

TEXT = (ROOT / "docs/lab-reading.md").read_text(encoding="utf-8")


class Page(repositories.Repository):
    """One session from the top of the page to its end."""

    def test_the_commands_print_what_the_page_says(self):
        place = self.folder / "page"
        place.mkdir()
        environment = {**self.surroundings, **quick_environment(self.folder)}
        for expected in [text for mark, text in blocks(TEXT) if mark == "console"]:
            found = replay(expected, place, environment)
            if found != expected:
                self.fail(difference(expected, found, "lab-reading.md"))

    def test_the_page_names_every_reason_and_aggregation(self):
        source = (ROOT / "src/kaizen/lab/aggregation.py").read_text(encoding="utf-8")
        reasons = set(re.findall(r'"((?:no|not|values)_[a-z_]+|undefined)"', source))
        self.assertEqual(reasons, {"no_values", "values_missing", "undefined", "not_counts", "not_numbers", "no_finite_value"})
        for word in reasons | set(kaizen.AGGREGATIONS):
            self.assertIn(f"`{word}`", TEXT)


if __name__ == "__main__":
    unittest.main()
