"""Ideas: written down once, before they are tried; what is like another is told; what a label must be."""

import json
import os
import unittest

from campaign_lab import CampaignLab
from support import kaizen, run_cli, write_lines

FIRST = "If the prompt names the time zone, then dates are right, because traces show UTC"


class Ideas(CampaignLab):
    def add(self, hypothesis=FIRST, *more, label="dates", category="prompt", **how):
        return self.say("idea", "add", "--hypothesis", hypothesis, "--category", category, "--label", label, *more, **how)

    def test_an_idea_gets_the_next_id_and_is_chained(self):
        told = self.add(FIRST, "--title", "zone", "--component", "system prompt", "--predict", "0.04", "--source", "trace 7")
        expected = {
            "id": "i1", "title": "zone", "hypothesis": FIRST, "category": "prompt", "component": "system prompt", "label": "dates",
            "predict": 0.04, "source": "trace 7", "similar_to": [],
        }  # fmt: skip
        self.assertEqual(told["idea"], expected)
        self.assertEqual(self.add("If tools are named better, calls are right", label="none")["idea"]["id"], "i2")
        self.assertEqual([event["body"]["id"] for event in kaizen.read_chain(self.history.campaign.file("ideas.jsonl"))], ["i1", "i2"])

    def test_the_same_words_are_refused_whatever_their_case_and_punctuation(self):
        self.add()
        told = self.add("IF the prompt names the time-zone: then dates are right (because traces show UTC)", "--anyway", status=5, reason="duplicate_idea")
        self.assertIn("i1", told["message"])

    def test_one_that_is_much_like_another_is_added_only_on_purpose_which_is_recorded(self):
        self.add()
        alike = "If the prompt names the time zone twice, then dates are right, because traces show local"
        self.assertIn("i1", self.add(alike, status=5, reason="similar_idea")["message"])
        told = self.add(alike, "--anyway")
        self.assertEqual((told["idea"]["similar_to"], told["idea"]["anyway"]), (["i1"], True))

    def test_a_label_is_a_tag_of_development_items_that_has_five_of_them(self):
        told = self.add(label="money")
        self.assertEqual((told["idea"]["label"], told["idea"]["named_label"]), (None, "money"))
        self.assertIn("no label test", told["notes"][0])
        self.assertIn("dates", self.add("other words here", label="date", status=2)["next"])
        self.assertIsNone(self.add("If none is named no label is tested", label="none")["idea"]["label"])

    def test_tags_of_the_holdout_are_no_labels(self):
        items = [{"id": f"h{number}", "input": 1, "expected": 1, "split": "holdout", "tags": ["sealed"]} for number in range(6)]
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", [{"id": "i1", "input": 1, "expected": 1, "tags": ["dates"]}, *items])
        done = run_cli("idea", "add", "--hypothesis", "a b", "--category", "x", "--label", "sealed", "--json")
        self.assertEqual(done.status, 2)
        self.assertNotIn("known: sealed", done.stdout)

    def test_a_category_is_one_word_and_a_hypothesis_has_some(self):
        self.add(category="two words", status=2)
        self.add("…", status=2)
        self.add("x " * 1500, status=2)
        self.assertEqual(self.add(category="Caching", label="none")["idea"]["category"], "caching")

    def test_the_list_says_what_became_of_each(self):
        self.add()
        self.add("If tools are named better, calls are right", label="none")
        self.history.begin()
        self.history.screen("v001", "no_signal", 0.3, "i1")
        self.history.discard("v001", "dates were never wrong")
        rows = self.say("idea", "list")["ideas"]
        self.assertEqual([(row["id"], row["status"], row["variants"], row["lesson"]) for row in rows],
                         [("i1", "discarded", ["v001"], "dates were never wrong"), ("i2", "open", [], None)])  # fmt: skip
        self.assertEqual([row["id"] for row in self.say("idea", "list", "--status", "open")["ideas"]], ["i2"])
        self.assertIn("discarded", run_cli("idea", "list").stdout)

    def test_an_idea_that_is_chained_rightly_and_holds_something_else_is_refused_with_its_line(self):
        path = self.history.campaign.file("ideas.jsonl")
        for body in ({}, "text", {"id": "i1", "title": None, "hypothesis": "x", "category": "prompt", "label": None}):
            log = kaizen.ChainLog(path)
            log.append("idea", body)
            log.close()
            for words, status, reason in ((["idea", "list"], 5, "broken_chain"), (["next"], 3, "integrity")):
                self.assertIn("ideas.jsonl:1", self.say(*words, status=status, reason=reason)["message"])
            os.remove(path)

    def test_a_refusal_shows_the_control_characters_of_a_name_as_escapes(self):
        told = run_cli("idea", "list", "--system", "\x1b[31mred\u202e")
        self.assertEqual(told.status, 2)
        self.assertIn("no campaign of \\x1b[31mred\\u202e is open", told.stderr)
        self.assertNotIn("\x1b", told.stderr)

    def test_a_number_of_the_journal_that_is_a_list_is_refused_with_its_line(self):
        self.history.say("noise", runs=[], passes=3, flip_rate=[None], se_pass=0.1)
        number = len(self.history.campaign.events)
        for words in (["campaign", "status"], ["next"]):
            message = self.say(*words, status=3, reason="integrity")["message"]
            self.assertIn(f"journal.jsonl:{number}", message)
            self.assertIn("/body/flip_rate", message)

    def test_a_changed_idea_breaks_the_chain(self):
        self.add()
        path = self.repo / "kaizen/.kaizen/campaigns/c1/ideas.jsonl"
        path.write_text(path.read_text().replace("UTC", "GMT"))
        self.say("idea", "list", status=5, reason="broken_chain")
        self.add("other words altogether", status=5, reason="broken_chain")
        self.assertEqual(json.loads(run_cli("next", "--json").stdout)["stop"], ["integrity"])


if __name__ == "__main__":
    unittest.main()
