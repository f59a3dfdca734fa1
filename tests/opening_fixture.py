"""What tests of opened campaigns share: a lab with thirty cases, and `kaizen campaign open` beside it."""

import json
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import lab_fixture
import repositories
import support
from support import read_json, read_lines, write, write_lines

import kaizen

MUTABLE = "mutable:\n  - agent.py\n  - prompts/**\n"
PROMPT = """\
You are a support agent for a parcel service. Be polite, be brief, and never promise what the depot cannot keep.
If the customer names a parcel number, look it up first. If the parcel is late, say which depot has it and on which shelf.
Answer in the language of the customer. Do not invent numbers; when you do not know, say that you do not know.
"""
CODE = """\
import json, sys
def trace(parcel):
    depots = {"north": 1, "south": 2}
    found = [depot for depot in depots if str(parcel).startswith(str(depots[depot]))]
    return {"depot": found[0] if found else None, "shelf": parcel % 97}
print(json.dumps([trace(number) for number in json.load(sys.stdin)]))
"""
PLACES = "Aarhus Bergen Cadiz Dover Essen Faro Ghent Hamar Izmir Jena Kiel Lyon Malmo Nantes Oslo Porto Quimper Riga Sofia Turin".split()
PLACES += "Ulm Vigo Wels Xanten York Zadar Arles Bonn Celje Delft".split()


def parcel_case(number, **more):
    """A case whose texts stand nowhere else."""
    place = PLACES[number % 30] + (PLACES[number * 7 % 30].lower()[::-1] if number >= 30 else "")
    text = f"My parcel number {7000 + number} to {place} went missing after the depot on day {number}, can you trace it for me please?"
    return {"id": f"p{number}", "input": text, "expected": f"Traced: {place} depot shelf {number}", "tags": [("late", "lost")[number % 2]], **more}


def holdout_cases(numbers=range(100, 114), **more):
    """Cases for a file outside the repository."""
    return [parcel_case(number, **more) for number in numbers]


class Openings(lab_fixture.Lab):
    """A repository whose system `demo` may change agent.py and prompts/, with thirty cases."""

    def setUp(self):
        super().setUp()
        self.sealed = self.folder / "sealed"
        self.put([parcel_case(number) for number in range(30)])

    @property
    def items(self):
        return self.repo / "kaizen/systems/demo/items.jsonl"

    @property
    def workspace(self):
        return kaizen.find_workspace(str(self.repo))

    def put(self, cases):
        """Commits *cases* as the dataset."""
        self.write_system(MUTABLE)
        write_lines(self.items, cases)
        return self.commit("cases")

    def outside(self, cases, name="outside.jsonl"):
        """A file of *cases* outside the repository."""
        return write_lines(self.folder / name, cases)

    def options(self, *more, sealed=None):
        return ["campaign", "open", "--system", "demo", "--sealed", str(sealed or self.sealed), *map(str, more)]

    def open(self, *more, sealed=None):
        """The campaign that `kaizen campaign open` has opened; what it said is in `self.said`."""
        done = support.run_cli(*self.options(*more, sealed=sealed), "--json")
        self.assertEqual(done.status, 0, done.stdout + done.stderr)
        self.said = json.loads(done.stdout)
        return kaizen.load_campaign(self.workspace, self.said["campaign"])

    def refuse(self, reason, *more, sealed=None):
        """The document of an opening that must be refused for *reason*, and leave nothing behind."""
        before = self.whole()
        document = self.refused(reason, *self.options(*more, sealed=sealed))
        self.assertEqual(self.whole(), before)
        return document

    def whole(self):
        """All that an opening could change: files with their content, HEAD, and refs."""
        folders = sorted(str(path) for path in self.folder.glob("*") if path.is_dir())
        return {**repositories.tree_of(self.folder), "folders": folders}, self.git("rev-parse", "HEAD"), self.git("for-each-ref")

    def close(self, campaign):
        kaizen.record(campaign, "closed", reason="test")

    def sealed_cases(self, sealed=None):
        return read_lines((sealed or self.sealed) / "holdout.jsonl")

    def contract_file(self, name="c1"):
        return self.repo / f"kaizen/systems/demo/campaigns/{name}.json"

    def variant(self, **files):
        """Commits *files* ({path with '/' as '__': text}); the checkout."""
        for name, text in files.items():
            write(self.repo / name.replace("__", "/").replace("_py", ".py").replace("_txt", ".txt"), text)
        self.commit("variant")
        return kaizen.read_checkout(str(self.repo))


class Opened(Openings):
    """The same with a campaign that has opened on fourteen cases from outside: opened once, then copied; its sealed place is shared."""

    made_opened: "Path | None" = None

    def setUp(self):
        super().setUp()
        made = Opened.made_opened
        if made is None:
            Opened.made_opened = made = Path(tempfile.mkdtemp(prefix="kaizen-opened-"))
            unittest.addModuleCleanup(Opened.forget_opened)
            self.variant(prompts__system_txt=PROMPT + parcel_case(1)["input"], agent_py=CODE)
            self.open("--holdout", self.outside(holdout_cases()), sealed=made / "sealed")
            shutil.copytree(self.repo, made / "repo", symlinks=True)
            shutil.copytree(made / "sealed", made / "as sealed")
        else:
            os.chdir(self.folder)
            shutil.rmtree(self.repo)
            self.copy_repository(made / "repo")
            os.chdir(self.repo)
            shutil.rmtree(made / "sealed", ignore_errors=True)
            shutil.copytree(made / "as sealed", made / "sealed")
        self.sealed = made / "sealed"
        self.campaign = kaizen.load_campaign(self.workspace, "c1")
        self.base = self.campaign.events[0]["body"]["commit"]

    @staticmethod
    def forget_opened():
        if Opened.made_opened is not None:
            shutil.rmtree(Opened.made_opened)
            Opened.made_opened = None


__all__ = ["CODE", "PROMPT", "Opened", "Openings", "holdout_cases", "parcel_case", "read_json", "read_lines", "write", "write_lines"]
