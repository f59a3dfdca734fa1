"""The lab over a store that keeps its runs elsewhere: nothing above the interface knows where they lie."""

import contextlib
import copy
import hashlib
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from lab_fixture import GOOD, Lab
from support import run_cli

import kaizen


class MemorySink(kaizen.LogSink):
    def __init__(self, kept):
        self.kept = kept

    def write(self, data):
        self.kept.extend(data)

    def close(self):
        pass


class MemoryWriter(kaizen.RunWriter):
    def __init__(self, run):
        self.run, self.notes = run, []

    def document(self):
        return self.run["document"]

    def update(self, **fields):
        self.run["document"] = {**self.run["document"], **copy.deepcopy(fields)}

    def event(self, kind, **body):
        self.run["events"].append({"seq": len(self.run["events"]) + 1, "type": kind, "body": copy.deepcopy(body)})

    def item(self, line):
        self.run["items"].append(copy.deepcopy(line))

    def sync_if_due(self):
        pass

    def log(self, name):
        return MemorySink(self.run["logs"].setdefault(name, bytearray()))

    def keep_patch(self, patch):
        self.run["patch"] = patch

    def locked_folder(self):
        return os.path.join(self.run["folder"], "copy of what is locked")

    def material(self, name):
        path = os.path.join(self.run["folder"], "material", name)
        os.makedirs(path, exist_ok=True)
        return path

    def shown(self, name):
        return f"memory:{name}"

    def sealed_items(self):
        return {"lines": len(self.run["items"]), "sha256": hashlib.sha256(json.dumps(self.run["items"]).encode()).hexdigest()}

    def finish(self, state, **fields):
        told = {"state": state, "reason": None, **fields}
        self.event("ended", **told)
        self.update(pid=None, **told)


class MemoryStore(kaizen.RunStore):
    """Runs called r0001, … in a dictionary; only what programs read lies in a folder, which is nowhere near the workspace."""

    def __init__(self, place):
        self.place, self.runs, self.held = place, {}, set()

    def found(self, run):
        if run not in self.runs:
            raise kaizen.InputError(f"no run {run}", "", "no_run")
        return self.runs[run]

    def ids(self):
        return list(self.runs)

    def create(self, document):
        run = f"r{len(self.runs) + 1:04d}"
        planned = {"version": 1, "id": run, **copy.deepcopy(document), "state": "planned", "attempt": 1}
        self.runs[run] = {"document": planned, "events": [], "items": [], "logs": {}, "patch": "", "folder": tempfile.mkdtemp(dir=self.place), "before": []}
        return run

    def read(self, run):
        found = copy.deepcopy(self.found(run)["document"])
        if found["state"] in ("planned", "running") and run not in self.held:
            found["state"] = "interrupted"
        return found

    def items(self, run):
        return iter(copy.deepcopy(self.found(run)["items"]))

    def events(self, run):
        return copy.deepcopy(self.found(run)["events"])

    def locked_folder(self, run):
        return MemoryWriter(self.found(run)).locked_folder()

    def evidence_folder(self, run):
        return MemoryWriter(self.found(run)).material("evidence")

    @contextlib.contextmanager
    def writing(self, run):
        if run in self.held:
            raise kaizen.RefusedError(f"{run} is held", "wait", "lock_held")
        self.held.add(run)
        try:
            yield MemoryWriter(self.found(run))
        finally:
            self.held.discard(run)

    def restart(self, run):
        found = self.found(run)
        found["before"].append((found["document"], found["events"], found["items"]))
        kept = {key: value for key, value in found["document"].items() if key not in kaizen.RUN_RESULT_FIELDS}
        planned = {**kept, "state": "planned", "attempt": kept["attempt"] + 1}
        found.update(document=planned, events=[], items=[], logs={}, folder=tempfile.mkdtemp(dir=self.place))


class AnotherStore(Lab):
    """Every step of the lab, with runs that are not in files."""

    def setUp(self):
        super().setUp()
        (self.folder / "elsewhere").mkdir()
        self.memory = MemoryStore(str(self.folder / "elsewhere"))
        patch = mock.patch.object(kaizen, "run_store", lambda workspace: self.memory)
        patch.start()
        self.addCleanup(patch.stop)

    def said(self, *argv, status=0):
        done = run_cli(*argv)
        self.assertEqual((done.status, done.stderr), (status, ""), done.stdout)
        return done.stdout

    def test_run_resume_restart_log_show_compare_and_status_go_the_same_way(self):
        self.eval("print('to the log')\nok(items[0], 0)\nsys.exit('no')\n")
        crashed = run_cli("run", "--system", "demo", "--variant", "a")
        self.assertEqual(crashed.status, 4)
        self.assertIn("what the eval printed: memory:err.log", crashed.stdout)
        self.assertEqual({name: bytes(text) for name, text in self.memory.runs["r0001"]["logs"].items()}, {"out.log": b"to the log\n", "err.log": b"no\n"})
        again = self.resume(status=4)
        self.assertEqual((again["state"], len(self.memory.runs["r0001"]["items"])), ("crashed", 2), "only the rest was asked for")
        self.eval("ok(items[0])\nopen('agent.py', 'a').write('#')\n" + GOOD.replace("items", "items[1:]"))
        tainted = self.run_demo(status=4)
        self.assertEqual((tainted["id"], tainted["state"]), ("r0002", "tainted"))
        self.git("restore", "agent.py")
        self.refused("tainted", "resume", "r0002")
        self.assertEqual(self.resume("r0002", "--restart", status=4)["attempt"], 2)
        self.assertEqual(len(self.memory.runs["r0002"]["before"]), 1)
        self.git("restore", "agent.py")
        self.eval(GOOD)
        self.assertEqual(self.run_demo()["id"], "r0003")
        (self.repo / "agent.py").write_text("# another\n")
        self.commit("another variant")
        self.assertEqual(self.run_demo()["id"], "r0004")
        ranks = [(row["id"], row["rank"], row["unranked"]) for row in json.loads(self.said("log", "--rank", "--json"))["runs"]]
        self.assertEqual(ranks, [("r0003", 1, None), ("r0004", 1, None), ("r0001", None, "crashed"), ("r0002", None, "tainted")])
        self.assertIn("accuracy 1 ", self.said("log", "--metric", "accuracy", "--aggregation", "median").splitlines()[-2])
        self.assertIn("every answer is as good as can be", self.said("show", "r0004"))
        self.assertIn("4 items, 0 better, 0 worse, 4 equal", self.said("compare", "r0003", "r0004"))
        self.assertEqual(json.loads(self.said("status", "--json"))["systems"][0]["runs"], 4)
        self.assertFalse((self.repo / "kaizen/.kaizen/runs").exists(), "nothing went around the interface")

    def test_the_patch_since_the_best_run_is_given_to_the_store(self):
        self.run_demo()
        self.write_system("best_run: r0001\n")
        self.commit("best")
        (self.repo / "agent.py").write_text("# another\n")
        self.commit("another variant")
        self.run_demo()
        self.assertIn("+# another\n", self.memory.runs["r0002"]["patch"])
        self.assertEqual(self.memory.runs["r0001"]["patch"], "")

    def test_requests_and_the_locked_copy_are_in_the_folders_that_the_store_names(self):
        self.run_demo()
        folder = Path(self.memory.runs["r0001"]["folder"])
        self.assertTrue((folder / "material/requests/1.json").exists())
        self.assertTrue((folder / "copy of what is locked/kaizen/systems/demo/eval.py").exists())


if __name__ == "__main__":
    unittest.main()
