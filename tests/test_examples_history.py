"""examples/history-demo and docs/history.md go as they are written."""

import shutil
import unittest

import support
from sessions import replay
from support import ROOT, difference
from test_docs import blocks


class HistoryDemo(support.TemporaryFolder):
    """Anchor, a pending decision that blocks, acceptance, promotion, and what is noticed afterwards."""

    def check_page(self, path):
        shutil.copytree(ROOT / "examples/history-demo", self.folder, dirs_exist_ok=True)
        sessions = [text for mark, text in blocks(path.read_text(encoding="utf-8")) if mark == "console"]
        self.assertTrue(sessions)
        for expected in sessions:
            found = replay(expected, self.folder)
            if found != expected:
                self.fail(difference(expected, found, path.name))

    def test_the_example(self):
        self.check_page(ROOT / "examples/history-demo/README.md")

    def test_the_page(self):
        self.check_page(ROOT / "docs/history.md")


if __name__ == "__main__":
    unittest.main()
