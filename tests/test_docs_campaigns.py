"""docs/campaigns.md: the opening it shows is what the example gives, and every reason code is explained."""

import re
import shutil
import unittest

import repositories
from sessions import matches
from support import ROOT, run_cli

import kaizen

TEXT = (ROOT / "docs/campaigns.md").read_text(encoding="utf-8")
OPENING = [ROOT / f"src/kaizen/campaigns/{name}.py" for name in ("admission", "contract", "splitting")]


class Page(repositories.Repository):
    """The page against the program."""

    def test_the_example_opens_as_shown(self):
        command, shown = re.findall(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[:2]
        example = ROOT / "examples/system-demo/system"
        kaizen.init_workspace(str(self.repo))
        shutil.copytree(example / "minutes", self.repo / "kaizen/systems/minutes")
        shutil.copy(example / "eval.py", self.repo / "kaizen/systems/minutes/eval.py")
        shutil.copy(example / "variants/0-minutes.py", self.repo / "agent.py")
        self.commit("minutes")
        done = run_cli(*command.split()[1:], cwd=self.repo)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertTrue(matches(shown.splitlines(), done.stdout.splitlines()[:-1]), done.stdout)

    def test_every_reason_option_and_level_is_on_the_page(self):
        reasons = {reason for path in OPENING for reason in re.findall(r'(?:message|error),? [^\n]*"([a-z]+(?:_[a-z]+)+)"\)$', path.read_text(), re.MULTILINE)}
        self.assertGreater(len(reasons), 15)
        for word in sorted(reasons | {"honour", "guarded", "other_user"}):
            self.assertIn(f"`{word}`", TEXT)
        for argument in kaizen.COMMANDS["campaign open"].arguments:
            name = argument.name.removeprefix("--budget") if argument.name.startswith("--budget") else argument.name
            self.assertIn(name, TEXT)


if __name__ == "__main__":
    unittest.main()
