"""What tests of opened campaigns share: a lab with thirty cases, and `kaizen campaign open` beside it."""

import json

import lab_fixture
import repositories
import support
from support import read_json, read_lines, write, write_lines

import kaizen

MUTABLE = "mutable:\n  - agent.py\n  - prompts/**\n"
PLACES = "Aarhus Bergen Cadiz Dover Essen Faro Ghent Hamar Izmir Jena Kiel Lyon Malmo Nantes Oslo Porto Quimper Riga Sofia Turin".split()
PLACES += "Ulm Vigo Wels Xanten York Zadar Arles Bonn Celje Delft".split()


def parcel_case(number, **more):
    """A case whose texts stand nowhere else."""
    place = PLACES[number % len(PLACES)]
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


__all__ = ["Openings", "holdout_cases", "parcel_case", "read_json", "read_lines", "write", "write_lines"]
