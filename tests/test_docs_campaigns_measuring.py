"""docs/campaigns.md, measuring: every reason, verdict and option is on the page, and a look answers in the form that it shows."""

import re
import unittest

from support import ROOT

import kaizen

CHAPTER = (ROOT / "docs/campaigns.md").read_text(encoding="utf-8").split("## Measuring\n")[1].split("\n## ")[0]
SOURCES = [ROOT / f"src/kaizen/campaigns/{name}.py" for name in ("screening", "looking", "arms")]
SAID_WITH_A_HINT = {"missing_link", "not_scanned", "no_idea", "label_too_small", "other_commit", "part_of_measurement"}


class Page(unittest.TestCase):
    """The chapter against the program."""

    def test_every_reason_for_a_refusal_is_on_the_page(self):
        reasons = {reason for path in SOURCES for reason in re.findall(r'raise \w+Error\(.*"([a-z]+(?:_[a-z]+)*)"\)$', path.read_text(), re.MULTILINE)}
        self.assertGreater(len(reasons), 12)
        for reason in sorted(reasons - SAID_WITH_A_HINT):
            self.assertRegex(CHAPTER, rf"\b{reason}\b")

    def test_every_verdict_and_option_is_on_the_page(self):
        for word in ("promising", "worse", "no_signal", "keepable", "extend", "not_replicated", "guard_failed", "void", "tainted", "drift"):
            self.assertIn(word, CHAPTER)
        for name in ("--idea", "--label", "--predict", "--accept", "--passes", "--diagnostic", "--max-items"):
            self.assertIn(name, CHAPTER)
        for name in ("noise", "plan", "replicate", "look"):
            self.assertIn(f"kaizen {name}", CHAPTER)

    def test_the_answer_has_the_form_that_is_shown(self):
        self.assertIn(f"```\n{kaizen.encode_compact({'answer': 'yes'})}\n```", CHAPTER)


if __name__ == "__main__":
    unittest.main()
