"""The sessions of docs/skills.md go as they stand there."""

import re
import unittest

from sessions import replay
from support import ROOT, TemporaryFolder, difference


class Page(TemporaryFolder):
    def test_the_sessions_go_as_shown(self):
        text = (ROOT / "docs/skills.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            again = replay(block, self.folder)
            self.assertTrue(again == block, difference(block, again, "docs/skills.md"))


if __name__ == "__main__":
    unittest.main()
