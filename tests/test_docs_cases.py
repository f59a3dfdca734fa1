"""The examples of docs/cases.md are valid, and its tables say what the program does."""

import json
import re
import unittest

from support import ROOT, TemporaryFolder, run_cli, write

import kaizen

PAGE = ROOT / "docs" / "cases.md"


def blocks(mark):
    """The fenced blocks of the page with this mark."""
    return re.findall(rf"^```{mark}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def rows(heading):
    """The rows of the first table below a heading, as lists of cells."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE).group()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


class Page(TemporaryFolder):
    """docs/cases.md."""

    def test_its_examples_are_one_valid_improvement(self):
        (cases,), (evaluation,), (decision,) = blocks("jsonl"), blocks("json"), blocks("yaml")
        write("improvements/refund/test_cases.jsonl", cases)
        write("improvements/refund/evaluation.json", evaluation)
        write("improvements/refund/decision.yaml", decision)
        write("improvements/refund/forbidden_words.json", '["guarantee"]')
        done = run_cli("validate", "refund")
        self.assertEqual((done.status, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("warning", done.stdout)

    def test_every_field_and_key_is_in_its_table(self):
        names = [name for row in rows("## test_cases.jsonl") for name in re.findall(r"`(\w+)`", row[0])]
        self.assertEqual(names, list(kaizen.CASE_FIELDS))
        names = [name for row in rows("## evaluation.json") for name in re.findall(r"`(\w+)`", row[0])]
        self.assertEqual(sorted(names), sorted(kaizen.EVALUATION_FIELDS))

    def test_the_defaults_are_those_of_the_program(self):
        for heading, block in (("### acceptance", kaizen.ACCEPTANCE), ("### reliability", kaizen.RELIABILITY)):
            told = {name: json.loads(row[1]) for row in rows(heading) for name in re.findall(r"`(\w+)`", row[0])}
            self.assertEqual(told, {key: default for key, (_, default) in block.items()})


if __name__ == "__main__":
    unittest.main()
