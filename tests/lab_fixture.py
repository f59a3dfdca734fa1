"""What tests of the lab share: a repository with a workspace and the system `demo`, whose eval each test writes."""

import json
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import repositories
import support
from support import read_json, read_lines, write, write_lines

import kaizen

ITEMS = [{"id": f"i{number}", "input": number, "expected": number} for number in range(1, 5)]
# Before the text of a test: `request`, `items` (the list asked for), and `say` for an event.
PRELUDE = """\
import json, os, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
request = json.load(open(words["--request"]))
items, out = request["items"], int(words["--out-fd"])
def raw(text):
    os.write(out, text.encode() + b"\\n")
def say(event, **fields):
    raw(json.dumps({"event": event, **fields}))
def ok(item, score=1, **fields):
    say("item", id=item["id"], trial=item["trial"], status="ok", score=score, **fields)
"""
GOOD = "for item in items:\n    ok(item)\nsay('end')\n"
SYSTEM = """\
---
metric: accuracy
dataset: kaizen/systems/demo/items.jsonl
eval:
  - {python}
  - -I
  - -S
  - kaizen/systems/demo/eval.py
{further}---
# demo
"""


class Lab(repositories.Repository):
    """A test inside a repository with a committed workspace; the eval answers every item with 1 until a test says otherwise."""

    made_lab: "Path | None" = None

    def setUp(self):
        super().setUp()
        os.chdir(self.repo)
        patch = mock.patch.object(os, "fsync")  # what these tests are about is not the disk's speed
        patch.start()
        self.addCleanup(patch.stop)

    @staticmethod
    def forget_lab():
        if Lab.made_lab is not None:
            shutil.rmtree(Lab.made_lab)
            Lab.made_lab = None

    def make_repository(self):
        """A copy of the one repository that is made for all tests."""
        if Lab.made_lab is None:
            super().make_repository()
            self.make_workspace(GOOD)
            Lab.made_lab = Path(tempfile.mkdtemp(prefix="kaizen-lab-"))
            unittest.addModuleCleanup(Lab.forget_lab)
            shutil.copytree(self.repo, Lab.made_lab / "repo", symlinks=True)
        else:
            self.copy_repository(Lab.made_lab / "repo")

    # --- Making --------------------------------------------------------------------------

    def make_workspace(self, eval_text):
        kaizen.init_workspace(str(self.repo))
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", ITEMS)
        self.write_system()
        write(self.repo / "kaizen/systems/demo/eval.py", PRELUDE + eval_text)
        self.commit("workspace")

    def write_system(self, further=""):
        """system.md with *further* lines of front matter."""
        write(self.repo / "kaizen/systems/demo/system.md", SYSTEM.format(python=json.dumps(sys.executable), further=further))

    def eval(self, text, further=None, items=None, **config):
        """Commits *text* as the eval, *further* front matter, other *items*, and settings of config.json."""
        write(self.repo / "kaizen/systems/demo/eval.py", PRELUDE + text)
        if further is not None:
            self.write_system(further)
        if items is not None:
            write_lines(self.repo / "kaizen/systems/demo/items.jsonl", items)
        if config:
            write(self.repo / "kaizen/config.json", json.dumps({"version": 1, **config}))
        return self.commit("eval")

    # --- Running -------------------------------------------------------------------------

    def run_demo(self, *options, status=0):
        """`kaizen run --system demo --variant v`, which must end with *status*; the document of --json."""
        done = support.run_cli("run", "--system", "demo", "--variant", "v", "--json", *options)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return self.told(done)

    def resume(self, run="r0001", *options, status=0):
        """`kaizen resume`, which must end with *status*; the document of --json."""
        done = support.run_cli("resume", run, "--json", *options)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return self.told(done)

    def told(self, done):
        """run.json as --json tells it, with the next step."""
        document = json.loads(done.stdout)
        self.assertEqual((document["ok"], document["code"]), (done.status == 0, done.status))
        return {**document["run"], "next": document["next"]}

    def refused(self, reason, *argv):
        """The document of a command that must be refused (exit 5) for *reason*, with something to do."""
        done = support.run_cli(*(argv or ("run", "--system", "demo", "--variant", "v")), "--json")
        document = json.loads(done.stdout)
        self.assertEqual((done.status, document["reason"]), (5, reason), done.stderr)
        self.assertTrue(document["message"] and document["next"], document)
        return document

    # --- Looking -------------------------------------------------------------------------

    @property
    def store(self):
        return kaizen.FolderStore(kaizen.find_workspace(str(self.repo)))

    def run_folder(self, run="r0001"):
        return self.repo / "kaizen/.kaizen/runs" / run

    def lines(self, run="r0001"):
        return read_lines(self.run_folder(run) / "items.jsonl")

    def document(self, run="r0001"):
        return read_json(self.run_folder(run) / "run.json")
