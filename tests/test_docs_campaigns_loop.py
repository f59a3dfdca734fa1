"""docs/campaigns.md, the loop: the actions of `kaizen next`, the numbers, the states of ideas."""

import re
import unittest

import support
from support import kaizen

LOOP = (support.ROOT / "docs/campaigns.md").read_text(encoding="utf-8").partition("\n## The loop\n")[2].partition("\n## ")[0]
SOURCE = (support.ROOT / "src/kaizen/campaigns/next_step.py").read_text(encoding="utf-8")


class Loop(unittest.TestCase):
    def test_the_table_has_the_actions_of_the_program(self):
        table = LOOP.partition("| action | when | command |")[2].partition("\n\n")[0]
        named = set(re.findall(r"`([a-z]+)`", re.sub(r"(?m)^(\|[^|]*\|).*$", r"\1", table)))
        constants = {name: getattr(kaizen, name) for name in ("STOP_ACTION", "HUMAN_ACTION", "CLOSE_ACTION", "PROPOSE")}
        given = {constants.get(word, word.strip('"')) for word in re.findall(r'Step\(([A-Z_]+|"[a-z]+"),', SOURCE)}
        self.assertEqual(named, given)

    def test_the_numbers_and_states_are_those_of_the_program(self):
        self.assertIn(f"never more than {kaizen.MOST_BYTES:,}", LOOP)
        self.assertIn(f"at most {kaizen.MOST_LESSON_LINES} lines", LOOP)
        self.assertIn(f"{2 * kaizen.PLATEAU_VARIANTS} variants of three categories", LOOP)
        self.assertEqual((kaizen.PLATEAU_CATEGORIES, kaizen.SATURATED, kaizen.LOOK_SHARE, kaizen.SIMILAR_WORDS), (3, 0.95, 0.8, 0.5))
        self.assertEqual((kaizen.EQUAL_CRASHES, kaizen.TAINTS, kaizen.LABEL_ITEMS, kaizen.LABEL_TRIALS), (3, 2, 5, 3))
        for status in kaizen.IDEA_STATUSES:
            self.assertIn(f"`{status}`", LOOP)


if __name__ == "__main__":
    unittest.main()
