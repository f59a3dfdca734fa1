"""A whole campaign, led by `kaizen next` alone; its close, what is claimed then, and that nothing is written afterwards."""

import json
import os
import unittest
from unittest import mock

from measuring_fixture import CANARY, CampaignLab
from support import kaizen, run_cli

RATES = {"v001": 0.2, "v002": 0.8, "v003": 0.97}


class WholeCampaign(CampaignLab):
    """An agent that does what `next` says and nothing else, but for its ideas."""

    def play(self, most=40):
        """Follows `next` until it says stop; the actions, with all that was printed."""
        actions, printed = [], []
        for _ in range(most):
            done = run_cli("next", "--json")
            printed.append(done.stdout)
            told = json.loads(done.stdout)
            actions.append(told["action"])
            self.assertLessEqual(len(done.stdout.encode()), 6000)
            if told["action"] == "stop":
                break
            if told["action"] == "propose":
                self.propose(told)
                continue
            words = told["command"]
            if words[0] == "git":
                self.git(*words[1:])
                continue
            done = run_cli(*words[1:], "--json")
            printed.append(done.stdout + done.stderr)
            self.assertIn(done.status, (0, 1), f"{words}: {done.stdout}{done.stderr}")
            if told["action"] == "close":
                break
        return actions, "\n".join(printed)

    def propose(self, told):
        """Writes an idea down, or makes the one that waits."""
        if told["idea"] is None:
            number = len(kaizen.campaign_state(self.campaign).ideas) + 1
            words = ["--hypothesis", f"if rule {'x' * number} holds then it passes", "--category", f"kind{number % 4}", "--label", "none"]
            self.kaizen("idea", "add", *words, "--anyway")
        else:
            tried = kaizen.campaign_state(self.campaign).screened()
            rate = list(RATES.values())[min(len(tried), len(RATES) - 1)]
            self.variant(f"try {len(tried)}", rate)

    def test_a_session_that_knows_only_next_gets_from_the_opening_to_a_claim(self):
        actions, printed = self.play()
        self.assertEqual(actions[:3], ["diagnostic", "baseline", "noise"])
        self.assertLessEqual({"propose", "run", "discard", "replicate", "keep", "close"}, set(actions))
        # How early a look is due hangs on the noise drawn (test_campaigns_next_step has it fixed); the close takes what is left.
        looks = [event for event in kaizen.load_campaign(kaizen.find_workspace(), "c1").events if event["type"] == "look"]
        self.assertIn(len(looks) - actions.count("look"), (0, 1))
        self.assertTrue(looks)
        self.assertNotIn(CANARY, printed)
        state = kaizen.campaign_state(self.campaign)
        closed = state.closed
        self.assertEqual(state.reference.variant, state.leader.variant)
        # from a rate of 0.5 to 0.97 by the draws of 30 cases
        self.assertRegex(closed["headline"], r"^v\d{3} is at least \+0\.\d+ better in accuracy than the baseline on the holdout \(level 0\.\d+\); estimate \+0\.\d+$")
        claim = closed["claim"]
        seen = sum(each["seen"] for each in closed["claims"])
        self.assertTrue(0 < claim["lower"] < claim["gain"] <= seen + 1e-9)
        self.assertIn("at least", run_cli("campaign", "report", "--campaign", "c1").stdout)
        self.assertTrue(closed["retired"])
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertIn("v001", (self.repo / "kaizen/systems/demo/lessons.md").read_text())
        self.refused("campaign_closed", "note", "x", "--campaign", "c1")
        self.refused("campaign_closed", "campaign", "close", "--campaign", "c1")
        self.refused("campaign_closed", "look", "--campaign", "c1")
        self.refused("campaign_closed", "idea", "add", "--hypothesis", "a b", "--category", "x", "--label", "none", "--campaign", "c1")
        self.assertEqual(self.kaizen("next", "--campaign", "c1", status=1)["action"], "stop")
        self.assertEqual(self.kaizen("campaign", "list")["campaigns"][0]["standing"], "closed")
        self.assertEqual(self.kaizen("campaign", "status", "--campaign", "c1", status=1)["closed"]["headline"], closed["headline"])


class Close(CampaignLab):
    """A campaign with baseline and noise floor."""

    is_begun = True

    def test_a_campaign_that_kept_nothing_claims_nothing_and_takes_no_look(self):
        told = self.kaizen("campaign", "close", "--reason", "no time")
        self.assertEqual((told["closed"]["headline"], told["last_look"], told["closed"]["claim"]), ("nothing is claimed", None, None))
        self.assertEqual(self.bodies("look"), [])

    def test_a_close_that_was_killed_before_its_event_is_done_again_and_asks_nothing_twice(self):
        self.variant("v001", 0.97)
        self.screen("v001")
        self.kaizen("replicate", "v001")
        self.kaizen("keep", "v001", "--lesson", "better draws")
        original = kaizen.record

        def killed(campaign, kind, /, **body):
            if kind == "closed":
                raise KeyboardInterrupt
            return original(campaign, kind, **body)

        with mock.patch.object(kaizen, "record", killed):
            self.kaizen("campaign", "close", status=130)
        self.assertEqual(len(self.bodies("look")), 1)
        told = self.kaizen("campaign", "close")
        self.assertEqual((len(self.bodies("look")), told["last_look"]), (1, None))
        self.assertIn("at least", told["closed"]["headline"])

    def test_where_the_answers_of_a_look_are_gone_the_yes_is_all_that_is_known(self):
        self.variant("v001", 0.97)
        self.screen("v001")
        self.kaizen("replicate", "v001")
        self.kaizen("keep", "v001")
        self.kaizen("look")
        os.rename(self.sealed / "looks", self.sealed / "looks-gone")
        told = self.kaizen("campaign", "close")
        self.assertIn("by how much is not known", told["closed"]["headline"])
        self.assertEqual((told["closed"]["claim"]["lower"], told["closed"]["claims"][0]["reason"]), (None, "not_kept"))

    def test_status_tells_all_that_is_known_and_nothing_of_the_holdout(self):
        done = run_cli("campaign", "status")
        self.assertEqual(done.status, 0)
        for word in ("contract", "reference", "leader", "noise", "looks", "budget", "seal"):
            self.assertIn(f"  {word} ", done.stdout)
        self.assertNotIn(CANARY, done.stdout)
        told = self.kaizen("campaign", "status")
        self.assertEqual((told["looks"]["left"], told["looks"]["next_level"], told["integrity"]["locked_changed"]), (5, 0.005, []))
        self.assertEqual(told["budget"]["used"]["variants"], 0)

    def test_a_record_that_was_changed_needs_a_person(self):
        path = self.repo / "kaizen/.kaizen/campaigns/c1/journal.jsonl"
        path.write_text(path.read_text().replace("honour", "remote"))
        self.assertEqual(self.kaizen("next", status=3)["stop"], ["integrity"])
        self.assertEqual(self.kaizen("campaign", "status", status=3)["reason"], "integrity")
        self.assertIn("journal.jsonl:1", self.kaizen("campaign", "list")["campaigns"][0]["problem"])


if __name__ == "__main__":
    unittest.main()
