"""docs/trajectories.md says what the program does."""

import json
import re
import unittest

from support import ROOT, StrictTestCase

import kaizen

TEXT = (ROOT / "docs" / "trajectories.md").read_text(encoding="utf-8")


class Page(StrictTestCase):
    """Its examples and names."""

    def test_every_example_has_the_outcome_that_it_says(self):
        examples = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]
        self.assertEqual([each["entry"]["type"] for each in examples], ["policy", "tool_schema", "loops", "errors", "provenance", "effects"])
        for each in examples:
            with self.subTest(each["entry"]["type"]):
                found = kaizen.prepare_entry(each["entry"]).evaluate(each["observation"], {"id": "c1", "input": "?", **each.get("case", {})}, {})
                self.assertEqual(found.status, each["outcome"], found.reason)

    def test_every_parameter_of_the_six_is_on_the_page(self):
        for name, heading in [("policy", "Policy"), ("tool_schema", "Tool schemas"), ("loops", "Loops"), ("errors", "Errors"),
                              ("provenance", "Provenance"), ("effects", "Effects")]:  # fmt: skip
            section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
            for parameter in kaizen.EVALUATORS[name].parameters:
                self.assertIn(parameter.name, section, name)
        for kind in kaizen.PROVENANCE_KINDS:
            self.assertIn(f"`{kind}`", TEXT)


if __name__ == "__main__":
    unittest.main()
