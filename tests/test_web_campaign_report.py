"""The report of a campaign: claims before bets, the lower bound first, and text that stays text."""

import unittest

import support
from support import kaizen

CONTRACT = {
    "metric": {"name": "accuracy", "aggregation": "mean", "direction": "higher", "minimum": 0, "maximum": 1},
    "min_effect": 0.02,
    "guards": [{"metric": "cost_usd", "margin": 0.1}, {"metric": "schema", "hard": True}],
    "looks": {"number": 5, "alpha": 0.05, "trials": 4},
    "budget": {"variants": 40, "usd": 50.0},
    "dataset": {"items": 60},
    "holdout": {"cases": 100, "level_reason": "3 of its cases are in the history of items.jsonl"},
}
CLOSED = {"claim": {"lower": 0.021, "gain": 0.078, "level": 0.005}, "claims": [{"look": 1, "lower": 0.021, "gain": 0.078}]}
LOOK = {"look": 1, "yes_before": 0, "level": 0.005, "answer": "yes", "leader": "v1", "reference": "baseline"}


def variant(name, **fields):
    found = {"variant": name, "commit": "0123456789", "idea": "i1", "title": None, "hypothesis": None, "category": None, "label": None, "runs": ["r0001"]}
    found.update(screen={"gain": 0.03, "se": 0.02, "z": 1.5}, replicate=None, verdict="no_signal", decision="discarded", lesson=None)
    return {**found, "is_parked": False, "is_memorised": False, **fields}


def story(*variants, claims=(), closed=None, **fields):
    found = {"campaign": "c1", "system": "refunds", "contract": CONTRACT, "contract_sha256": "9f" * 32, "seal": {"level": "honour"}}
    found.update(claims=list(claims), closed=closed, looks={"spent": 1, "number": 5}, noise=None, luck_line=None, expected_false_keeps=0.0)
    found.update(spent={"variants": 2, "evaluations": 240, "usd": None, "unknown_costs": 4, "hours": 0.5}, integrity=[], unsettled=[], unknown=[])
    return {**found, "variants": list(variants), **fields}


class Report(support.StrictTestCase):
    def test_the_lower_bound_of_a_confirmed_gain_is_the_headline_and_the_estimate_comes_after(self):
        shown = story(variant("v1", verdict="confirmed"), claims=[LOOK], closed=CLOSED)
        headline = kaizen.story_headline(shown)
        self.assertEqual((headline.tone, headline.sentence), ("good", "v1 is better than the baseline by at least +2.1 points"))
        self.assertTrue(headline.lead.startswith("On the sealed holdout, at level 0.005; the estimate is +7.8 points, corrected for"))
        for text in (kaizen.campaign_page(shown), kaizen.campaign_markdown(shown)):
            self.assertLess(text.index("at least +2.1 points"), text.index("+7.8 points"))

    def test_before_the_close_nobody_is_told_how_much_a_confirmed_gain_is(self):
        shown = story(variant("v1", verdict="confirmed"), claims=[LOOK])
        self.assertEqual(kaizen.story_headline(shown).sentence, "v1 is confirmed as better than the baseline")
        self.assertIn("opened at the close", kaizen.campaign_page(shown))
        self.assertIn("by how much is opened at the close", kaizen.campaign_markdown(shown))

    def test_what_was_kept_and_not_confirmed_is_a_bet_and_nothing_is_claimed(self):
        shown = story(variant("v1", verdict="kept", decision="kept", replicate={"gain": 0.05, "se": 0.02, "z": 2.5}), variant("v2"))
        headline = kaizen.story_headline(shown)
        self.assertEqual((headline.tone, headline.sentence), ("calm", "Nothing is claimed"))
        self.assertIn("1 bet kept on development cases without being confirmed", headline.lead)
        text = kaizen.campaign_markdown(shown)
        self.assertIn("None: nothing is claimed.", text)
        self.assertIn("- v1: +5.0 points ± 2.0 (z\u00a02.5), kept", text)

    def test_a_broken_record_comes_before_any_claim(self):
        broken = [{"kind": "locked_changed", "message": "eval.py changed"}]
        shown = story(variant("v1"), claims=[LOOK], closed=CLOSED, integrity=broken, unsettled=broken)
        self.assertEqual(kaizen.story_headline(shown).sentence, "Void: the record cannot be trusted")
        self.assertIn("Eval.py changed", kaizen.campaign_page(shown))
        settled = {**shown, "unsettled": []}
        self.assertEqual(kaizen.story_headline(settled).tone, "good")
        self.assertIn("Eval.py changed", kaizen.campaign_page(settled))

    def test_what_was_not_measured_is_never_a_number(self):
        shown = story(variant("v1", screen=None, verdict="crashed"))
        text = kaizen.campaign_markdown(shown)
        self.assertIn("| v1 | not measured | not measured | crashed |", text)
        self.assertIn("- Cost: not reported", text)
        self.assertIn("No variant has been measured yet.", kaizen.campaign_page(shown))

    def test_the_picture_has_the_luck_line_and_a_mark_for_each_measurement(self):
        noise = {"flip_rate": 0.25, "se_pass": 0.04, "mde": {"1": 0.14, "3": 0.08}}
        fresh = {"gain": 0.01, "se": 0.02, "z": 0.5}
        shown = story(variant("v1"), variant("v2", replicate=fresh, verdict="not_replicated"), noise=noise, luck_line=0.0472)
        page = kaizen.campaign_page(shown)
        self.assertEqual((page.count('<line class="luck"'), page.count('<line class="range"'), page.count('<line class="fresh"')), (1, 2, 1))
        self.assertIn("the best of 2 useless variants would look +4.7 points better in one pass", page)
        self.assertIn("1: 14.0 points, 3: 8.0 points", page)

    def test_a_metric_without_a_range_is_shown_in_its_own_units(self):
        shown = story(variant("v1", screen={"gain": -1234.5, "se": 100.25, "z": -12.31}))
        shown["contract"] = {**CONTRACT, "metric": {**CONTRACT["metric"], "maximum": None, "direction": "lower"}}
        self.assertIn("−1234 ± 100 (z\u00a0−12.3)", kaizen.campaign_markdown(shown).replace("1,234", "1234"))

    def test_text_of_others_is_escaped_on_the_page_and_in_the_text(self):
        evil = "<script>alert(1)</script> | `x` @all \x1b[31m"
        shown = story(variant(evil, title=evil, lesson=evil, label=evil, category=evil))
        page, text = kaizen.campaign_page(shown), kaizen.campaign_markdown(shown)
        self.assertNotIn("<script>alert", page + text)
        self.assertNotIn("\x1b", page + text)
        row = next(line for line in text.split("\n") if "alert" in line)
        self.assertEqual(len(row.replace("\\|", "").split("|")), 7)
        self.assertNotIn("@all", row)

    def test_the_same_story_gives_the_same_bytes(self):
        shown = story(variant("v1"), variant("v2"))
        self.assertEqual(kaizen.campaign_page(shown), kaizen.campaign_page(shown))


if __name__ == "__main__":
    unittest.main()
