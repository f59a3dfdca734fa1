"""A scripted model follows the skill through a small campaign inside the real clients, within what each allows by itself."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from agent_loop import Hands, Idea, Lab, campaigner, variant
from support import StrictTestCase, read_lines

IDEAS = [
    Idea("hours", variant(1), "if hours count as well, then more messages are right, because many speak of hours", "hours"),
    Idea("any number", variant(2), "if any number is taken for minutes, then it isn't worse, because the unit is often left out", "none"),
]
# What happens with these ideas, by the rules of docs/campaigns.md: one is kept and the holdout, too small for such a gain, says no to it; the
# other shows nothing and is given up.
EVENTS = ["campaign_opened", "baseline", "noise", "screen", "replicate", "keep", "look_begun", "look", "screen", "discard", "closed"]


class Campaign(StrictTestCase):
    """The system of examples/system-demo: 33 cases to search with, 33 sealed, two variants at most."""

    def setUp(self):
        super().setUp()
        self.lab = Lab(self)

    def check(self, client):
        sealed = self.lab.open_campaign("--budget-variants", "2")
        secret = [case["input"] for path in sealed.rglob("*.jsonl") for case in read_lines(path) if "input" in case]
        self.assertEqual(len(secret), 33)
        ended = self.lab.drive(client, campaigner(self.lab.repo, IDEAS))
        self.assertEqual((ended.code, ended.denied), (0, []), ended)
        store = self.lab.repo / "kaizen/.kaizen/campaigns/c1"
        journal = [event for event in read_lines(store / "journal.jsonl") if not event["type"].startswith("run_")]
        self.assertEqual([event["type"] for event in journal], EVENTS)
        bodies = [event["body"] for event in journal]
        # 6 of the 33 cases speak of hours and of nothing else that the first version misses; the standard error of such a share is 0.0682.
        self.assertEqual((round(bodies[4]["gain"], 4), round(bodies[4]["se"], 4), bodies[4]["verdict"]), (0.1818, 0.0682, "keepable"))
        self.assertEqual((bodies[5]["variant"], bodies[7]["answer"], bodies[9]["variant"]), ("v001", "no", "v002"))
        looks = [event["body"] for event in read_lines(store / "holdout.jsonl") if event["type"] == "look"]
        self.assertEqual([(look["look"], look["answer"]) for look in looks], [(1, "no")])
        told = json.dumps([step.get("result") for step in ended.steps], ensure_ascii=False)
        self.assertEqual([text for text in secret if json.dumps(text, ensure_ascii=False)[1:-1] in told], [], "nothing of the holdout is told")
        self.assertEqual((self.lab.git("rev-parse", "HEAD"), self.lab.git("status", "--porcelain")), (self.lab.base, ""), "the repository is as it was")
        limits = {"codex": "codex, limited: git network driver", "claude": "claude-code, limited: driver"}[client]
        self.assertTrue(ended.text.startswith(f"{limits}; close: budget variants: the search ends; Nothing is claimed;"), ended.text)
        self.assertTrue((store / "report.html").is_file())
        return ended

    def test_codex_in_its_sandbox_lands_a_patch(self):
        self.check("codex")
        self.lab.git("apply", str(self.lab.repo / "kaizen/.kaizen/work/c1.patch"))
        self.assertEqual((self.lab.repo / "agent.py").read_bytes(), variant(1).read_bytes())

    def test_claude_code_with_one_rule_lands_a_branch(self):
        branch = self.check("claude").text.rpartition(" ")[2]
        self.assertEqual(self.lab.git("show", f"{branch}:agent.py") + "\n", variant(1).read_text())

    def test_without_a_grant_nothing_happens(self):
        def asks(conversation):
            yield (yield from Hands(conversation).say("lab", "open"))

        refused = self.lab.drive("claude", asks, rule=False)
        self.assertEqual([step["name"] for step in refused.denied], ["Bash"])
        ended = self.lab.drive("codex", asks, sandbox="read-only")
        self.assertIn("cannot be written: Read-only file system", ended.text)
        self.assertFalse((self.lab.repo / "kaizen/.kaizen/work").exists())


if __name__ == "__main__":
    unittest.main()
