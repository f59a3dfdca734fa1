"""docs/judges.md says what the program does: its session is replayed, its entries are prepared."""

import json
import re
import shutil
import unittest

from sessions import replay
from support import ROOT, TemporaryFolder, difference, kaizen

TEXT = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")


def fenced(mark):
    """The blocks of the page with *mark*."""
    return re.findall(rf"^```{mark}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


class Page(TemporaryFolder):
    """docs/judges.md."""

    def test_its_session_goes_as_it_says(self):
        shutil.copytree(ROOT / "examples/judges", self.folder / "examples/judges", ignore=shutil.ignore_patterns("__pycache__"))
        (session,) = fenced("console")
        again = replay(session, self.folder)
        self.assertTrue(again == session, f"\n{difference(session, again, 'docs/judges.md')}")

    def test_its_entries_can_be_prepared(self):
        entries = [json.loads(block) for block in fenced("json")]
        self.assertEqual([entry["type"] for entry in entries], ["judge", "command", "program"])
        for entry in entries:
            kaizen.prepare_entry({**entry, **({"rubric": "x"} if "rubric" in entry else {})})

    def test_what_a_judge_may_see_and_every_code_stand_there(self):
        see = TEXT[TEXT.index("- `see`") : TEXT.index("What is named has to be there")]
        self.assertEqual(set(re.findall(r"`(\w+)`", see)), {"see", *kaizen.MAY_SEE})
        for code in ("judge_protocol", "judge_timeout", "judge_failed", "judge_error", "judge_not_asked", "programs_not_allowed"):
            self.assertIn(f"`{code}`", TEXT)


if __name__ == "__main__":
    unittest.main()
