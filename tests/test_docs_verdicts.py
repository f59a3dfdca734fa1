"""The examples of docs/verdicts.md and docs/agreement.md do what the pages say."""

import json
import re
import unittest

from support import ROOT, TemporaryFolder, kaizen, run_cli, write


def blocks(page, mark):
    """The fenced blocks of a page of docs/ with this mark."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [block for kind, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if kind == mark]


class Pages(TemporaryFolder):
    """Both pages, one improvement."""

    def setUp(self):
        super().setUp()
        (cases, answers), (evaluation,) = blocks("verdicts.md", "jsonl"), blocks("verdicts.md", "json")
        write("improvements/refund/test_cases.jsonl", cases)
        write("improvements/refund/evaluation.json", evaluation)
        write("improvements/refund/candidate.jsonl", answers)

    def test_the_printed_verdicts_are_those_of_the_program(self):
        run_cli("evaluate", "refund", "--progress", "none")
        (shown,) = (block for block in blocks("verdicts.md", "") if block.startswith("$ "))
        for part in shown.strip().split("\n\n"):
            command, _, expected = part.partition("\n")
            self.assertEqual(run_cli(*command.removeprefix("$ kaizen ").split()).stdout.rstrip("\n"), expected)

    def test_every_key_of_the_block_is_in_its_table(self):
        text = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8").split("\n## The block\n")[1]
        table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE).group()
        names = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
        self.assertEqual(names, list(kaizen.JUDGE_FIELDS))

    def test_the_labels_are_valid_and_read(self):
        with open("improvements/refund/test_cases.jsonl", "a", encoding="utf-8") as file:
            file.write('{"id": "refund-003", "input": "?"}\n')
        with open("improvements/refund/candidate.jsonl", "a", encoding="utf-8") as file:
            file.write('{"case_id": "refund-003", "trial": 1, "status": "completed", "output": "no order 1"}\n')
        write("improvements/refund/labels.jsonl", blocks("agreement.md", "jsonl")[0])
        self.assertEqual(run_cli("validate", "refund").status, 0)
        run_cli("evaluate", "refund", "--progress", "none")
        found = json.loads(run_cli("agreement", "refund", "--json").stdout)
        self.assertEqual([entry["case_id"] for entry in found["contested"]], ["refund-002"])
        self.assertEqual(found["abstained"], [{"case_id": "refund-003", "judge": None, "raters": ["ada"]}])

    def test_the_agreement_block_is_accepted(self):
        document = json.loads(blocks("verdicts.md", "json")[0])
        document |= json.loads("{" + blocks("agreement.md", "json")[0] + "}")
        write("improvements/refund/evaluation.json", json.dumps(document))
        self.assertEqual(run_cli("validate", "refund").status, 0)

    def test_the_keys_are_those_of_the_program(self):
        text = (ROOT / "docs" / "agreement.md").read_text(encoding="utf-8").split("\n## Labelling\n")[1]
        named = set(re.findall(r"^\| `(.)`", text, re.MULTILINE))
        self.assertEqual(named - {"1"}, set(kaizen.COMMAND_KEYS) - {"?"})


if __name__ == "__main__":
    unittest.main()
