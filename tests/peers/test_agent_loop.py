"""A scripted model improves a system inside the real clients, within what each allows by itself."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from agent_loop import Hands, Lab, researcher, variant
from support import StrictTestCase

IDEAS = [
    ("hours", variant(1), "if hours count as well, then more messages are right, because many speak of hours"),
    ("any-number", variant(2), "if any number is taken for minutes, then it isn't worse, because the unit is often left out"),
]


class InsideTheClients(StrictTestCase):
    """The variants of examples/system-demo, whose README says what comes of them: kept, then dropped."""

    def setUp(self):
        super().setUp()
        self.lab = Lab(self)

    def check(self, client):
        ended = self.lab.drive(client, researcher(self.lab.repo, IDEAS))
        self.assertEqual((ended.code, ended.denied), (0, []), ended)
        rows = json.loads(self.lab.engine("log", "--system", "minutes", "--json"))["runs"]
        found = [(row["id"], row["variant"], row["state"], round(row["result"]["value"], 3)) for row in rows]
        self.assertEqual(found, [("r0001", "first", "completed", 0.333), ("r0002", "hours", "completed", 0.515), ("r0003", "any-number", "completed", 0.455)])
        status = json.loads(self.lab.engine("status", "--json"))
        self.assertEqual((self.lab.git("rev-parse", "HEAD"), self.lab.git("status", "--porcelain")), (self.lab.base, ""), "the repository is as it was")
        self.assertIn("r0002 leads with 0.515", ended.text)
        return ended, status

    def test_codex_in_its_sandbox_lands_a_patch(self):
        ended, _ = self.check("codex")
        patch = self.lab.repo / "kaizen/.kaizen/work/lab.patch"
        self.lab.git("apply", str(patch))
        self.assertEqual((self.lab.repo / "agent.py").read_bytes(), variant(1).read_bytes())
        self.assertIn("lab.patch", ended.text)

    def test_claude_code_with_one_rule_lands_a_branch(self):
        ended, _ = self.check("claude")
        branch = ended.text.rpartition(" ")[2].rstrip(".")
        self.assertEqual(self.lab.git("show", f"{branch}:agent.py") + "\n", variant(1).read_text())

    def test_without_a_grant_nothing_happens_and_the_engine_says_what_to_grant(self):
        def asks(conversation):
            hands = Hands(conversation)
            yield (yield from conversation.run(f"python3 {hands.engine} lab open"))

        refused = self.lab.drive("claude", asks, rule=False)
        self.assertEqual([step["name"] for step in refused.denied], ["Bash"])
        ended = self.lab.drive("codex", asks, sandbox="read-only")
        self.assertIn("cannot be written: Read-only file system", ended.text)
        self.assertFalse((self.lab.repo / "kaizen/.kaizen/work").exists())


if __name__ == "__main__":
    unittest.main()
