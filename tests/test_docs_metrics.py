"""The example of docs/metrics.md is valid, its table has every function and bound, its limits are those of the program."""

import json
import re
import unittest

from support import ROOT, TemporaryFolder, kaizen, make_improvement, run_cli

PAGE = ROOT / "docs" / "metrics.md"


class Page(TemporaryFolder):
    """docs/metrics.md."""

    def test_its_example_is_evaluated(self):
        (block,) = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        evaluation = json.loads(block)
        answers = [{"case_id": "a", "output": "Hello. rm -rf /tmp/x"}]
        make_improvement("x", [{"id": "a", "input": "?", "source": {"kind": "synthetic"}}], evaluation, baseline=answers, candidate=answers)
        self.assertEqual(run_cli("validate", "x").status, 0)
        values = {entry["name"]: entry["candidate"]["exact"] for entry in json.loads(run_cli("gate", "x", "--json").stdout)["metrics"]}
        self.assertEqual(values, {"unsafe_rate": "1", "quality": "5/6", "worst": "1/2"})

    def test_functions_bounds_and_reasons_are_those_of_the_program(self):
        text = PAGE.read_text(encoding="utf-8")
        self.assertEqual({*re.findall(r"`(\w+)\(", text)} - {"min", "max", "mean"} | {"min", "max", "mean"}, {*kaizen.METRIC_FUNCTIONS})
        for key, (_, is_ceiling, _, _) in kaizen.METRIC_BOUNDS.items():
            self.assertIn(f"`{'above' if is_ceiling else 'below'}_metric_{key}`", text)
        self.assertEqual(list(kaizen.METRIC_BOUNDS), list(kaizen.METRIC_BOUND_FIELDS))
        self.assertIn(f"{kaizen.MAX_EXPRESSION:,} characters and {kaizen.MAX_NESTED} levels", text)


if __name__ == "__main__":
    unittest.main()
