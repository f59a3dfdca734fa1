"""docs/importing.md: its sessions go as they are written, and its table is the one of the program."""

import re
import unittest

from sessions import replay
from support import ROOT, StrictTestCase, TemporaryFolder, difference

import kaizen

PAGE = ROOT / "docs" / "importing.md"


class Page(TemporaryFolder):
    def test_its_sessions_go_as_they_are_written(self):
        for text in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            found = replay(text, self.folder)
            self.assertEqual(found, text, difference(text, found, "docs/importing.md"))


SAMPLES = {  # a value where a text will not do, and a threshold for all
    "word-count": 5,
    "is-json": {"type": "object"},
    "contains-json": {"type": "object"},
    "is-valid-function-call": None,
    "trajectory:step-count": {"max": 3},
    "trajectory:tool-sequence": ["a", "b"],
    "trajectory:tool-args-match": {"name": "a", "args": {"id": 1}},
    "trace-span-count": {"pattern": "a", "max": 1},
    "is-xml": None,
    "contains-xml": None,
    "trace-error-spans": {"max_count": 1, "max_percentage": 50},
    "trajectory:goal-success": {"goal": "done"},
}


class Aliases(StrictTestCase):
    """The table of promptfoo's assertions."""

    def documented(self):
        """{name: evaluator} of the page."""
        table = PAGE.read_text(encoding="utf-8").split("| promptfoo | evaluator | what differs |\n", 1)[1].split("\n\n", 1)[0]
        rows = [re.split(r"(?<!\\)\|", line)[1:3] for line in table.split("\n")[1:]]
        return {name: kind.strip().strip("`") for names, kind in rows for name in re.findall(r"`([^`]+)`", names)}

    def test_each_assertion_is_documented_with_the_evaluator_that_it_becomes(self):
        documented = self.documented()
        self.assertEqual(documented.keys(), kaizen.PF_ALIASES.keys())
        for name, (build, _) in kaizen.PF_ALIASES.items():
            document = {"type": name, "value": SAMPLES.get(name, "text"), "threshold": 0.5}
            check = kaizen.PromptfooCheck(document, kaizen.PromptfooContext({}, str, {}), "here")
            with self.subTest(name):
                try:
                    entry = build(check)
                except kaizen.ImportDropped:
                    entry = {"type": "dropped"}
                self.assertEqual(entry["type"], documented[name])
                if entry["type"] in kaizen.EVALUATORS:
                    kaizen.prepare_entry({"id": "e", **entry})


if __name__ == "__main__":
    unittest.main()
