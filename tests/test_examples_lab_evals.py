"""The evals of examples/lab-evals: each scores a system as its page says."""

import shutil
import unittest

from lab_fixture import Lab
from support import ROOT, write, write_lines

EXAMPLE = ROOT / "examples/lab-evals"


class Evals(Lab):
    """A copy of the example as the system demo."""

    def use(self, program, name, items):
        folder = self.repo / "kaizen/systems/demo"
        shutil.copy(EXAMPLE / name, folder)
        write_lines(folder / "items.jsonl", items)
        lines = ["---", "dataset: kaizen/systems/demo/items.jsonl", "eval:", f"  - {program}", f"  - kaizen/systems/demo/{name}", "---", ""]
        write(folder / "system.md", "\n".join(lines))
        self.commit()

    def test_shell(self):
        for name, status in (("one", 0), ("two", 1), ("three", 0)):
            write(self.repo / f"checks/{name}.sh", f"exit {status}\n")
        self.use("sh", "eval.sh", [{"id": name, "input": name} for name in ("one", "two", "three")])
        found = self.run_demo()
        self.assertEqual([line["score"] for line in self.lines()], [1, 0, 1])
        self.assertEqual(found["separation"], "not_stated")

    @unittest.skipUnless(shutil.which("node"), "there is no node here")
    def test_node(self):
        shutil.copy(EXAMPLE / "agent.mjs", self.repo)
        items = [{"id": "a", "input": "größe", "expected": "GRÖSSE"}, {"id": "b", "input": "x", "expected": "y"}, {"id": "c", "input": 5}]
        self.use("node", "eval.mjs", items)
        found = self.run_demo()
        self.assertEqual([(line["status"], line["score"]) for line in self.lines()], [("ok", 1), ("ok", 0), ("fail_error", 0)])
        self.assertEqual(found["separation"], "own_process")


if __name__ == "__main__":
    unittest.main()
