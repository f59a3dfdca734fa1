"""docs/lab.md: its first commands work as they stand, and its tables name what there is."""

import re
import shutil
import subprocess
import unittest

import repositories
from support import ROOT, clean_environment

import kaizen

TEXT = (ROOT / "docs/lab.md").read_text(encoding="utf-8")


def tables():
    """The first column of each table, its words in backticks."""
    return [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in TEXT.splitlines() if row.startswith("| `")]


class Page(repositories.Repository):
    """The page against the program."""

    def test_the_first_commands_give_a_run_and_the_change_makes_it_better(self):
        commands, shown = re.findall(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[:2]
        environment = clean_environment(self.surroundings)
        done = subprocess.run(["sh", "-ec", commands], cwd=self.repo, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = re.sub(r"\d+ ms|[0-9a-f]{12}|\d\.\d s", "…", shown)
        self.assertIn(told, re.sub(r"\d+ ms|[0-9a-f]{12}|\d\.\d s", "…", done.stdout))
        agent = self.repo / "kaizen/systems/refunds/agent.py"
        agent.write_text(agent.read_text().replace(".title()", ".upper()"))
        self.commit()
        again = ["kaizen", "run", "--system", "refunds", "--variant", "upper"]
        found = subprocess.run([shutil.which("kaizen", path=environment["PATH"]), *again[1:]], cwd=self.repo, env=environment, capture_output=True)
        self.assertIn(b"r0002: completed; accuracy 1 ", found.stdout)

    def test_every_field_event_status_and_state_is_in_a_table(self):
        named = {word for row in tables() for word in row}
        known = {*kaizen.SYSTEM_FIELDS, *kaizen.EVENT_FIELDS, *kaizen.ITEM_STATUSES, *kaizen.RUN_STATES}
        self.assertEqual(known - named, {"id", "percentile", "improvement", "runner", "planned", "running"})

    def test_every_setting_is_explained(self):
        for name in set(kaizen.CONFIG_FIELDS) - {"version"}:
            self.assertIn(f"`{name}`", TEXT)


if __name__ == "__main__":
    unittest.main()
