"""docs/lab-git.md names every reason that the program can give, and no other."""

import re
import unittest

import support
from support import kaizen

TEXT = (support.ROOT / "docs/lab-git.md").read_text(encoding="utf-8")
MODULES = ("git", "provenance", "worktrees", "landing")


class Page(unittest.TestCase):
    """The table of reasons, and the numbers."""

    def test_the_table_has_the_reasons_of_the_modules(self):
        table = TEXT.partition("| reason | when |")[2].partition("\n\n")[0]
        named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", re.sub(r"(?m)^(\|[^|]*\|).*$", r"\1", table)))
        given = {f"{name.replace('-', '_')}_in_progress" for _, name in kaizen.UNDER_WAY}
        for module in MODULES:
            source = (support.ROOT / f"src/kaizen/lab/{module}.py").read_text(encoding="utf-8")
            given |= set(re.findall(r'"((?:git|no|not|bare|unsafe|missing|dirty|unknown|variant|branch|place|nothing|unrelated|bad|would)_[a-z_]+)"', source))
        internal = {"missing_folder"}  # of a folder that was named by the program, not by a person
        self.assertEqual(named, given - internal)

    def test_the_numbers_are_those_of_the_program(self):
        self.assertIn(f"Git {kaizen.OLDEST_GIT[0]}.{kaizen.OLDEST_GIT[1]} or later", TEXT)
        self.assertIn(f"an answer over {kaizen.GIT_LIMIT >> 20} MiB", TEXT)
        self.assertIn(f"every {kaizen.WATCH_SECONDS:.0f} seconds, or every {kaizen.WATCH_SHARE} times", TEXT)
        self.assertEqual(kaizen.DEFAULT_SLOTS, 3)


if __name__ == "__main__":
    unittest.main()
