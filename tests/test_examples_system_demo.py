"""examples/system-demo: a scripted agent improves a system over five variants, as its README says, and the gain is real."""

import shutil
import unittest

import support
from sessions import replay
from support import ROOT, difference, write
from test_docs import blocks

EXAMPLE = ROOT / "examples/system-demo"


def quick_environment(folder):
    """An environment in which each `kaizen` is a process of its own; what Python compiled for the first, in *folder*, is kept for the others."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import kaizen; sys.exit(kaizen.main())"
    write(folder / "bin/kaizen", f'#!/bin/sh\nexec python -c "{program}" "$@"\n').chmod(0o755)
    path = support.clean_environment()["PATH"]
    return {"PATH": f"{folder / 'bin'}:{path}", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


class SystemDemo(support.TemporaryFolder):
    """The page, from a copy of the example's folder."""

    def test_the_agent_improves_the_system_as_the_page_says(self):
        shutil.copytree(EXAMPLE, self.folder / "example")
        environment = quick_environment(self.folder)
        text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
        place, sessions = self.folder / "example", [block for mark, block in blocks(text) if mark == "console"]
        self.assertEqual(len(sessions), 5)
        for number, expected in enumerate(sessions):
            found = replay(expected, place, environment)
            if found != expected:
                self.fail(difference(expected, found, "README.md"))
            place = self.folder / "example/demo" if number else place


if __name__ == "__main__":
    unittest.main()
