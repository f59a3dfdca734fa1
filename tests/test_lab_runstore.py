"""The store of runs: ids that nobody else has, journals that a crash cannot fool, locks of the dead."""

import hashlib
import json
import os
import threading
import unittest

import support
from support import read_json, read_lines, write

import kaizen

PLAN = {
    **dict.fromkeys(("system", "variant", "created_at", "verdict", "separation", "tree", "mark"), "s"),
    **dict.fromkeys(("title", "description", "hypothesis"), ""),
    **dict.fromkeys(("diagnostic", "limited"), False),
    **dict.fromkeys(("passes", "seed"), 1),
    "commit": {"hash": "c", "branch": None},
    "hashes": {"dataset": "d", "eval": "e", "system": "m", "locked": {}},
    "population": {"dataset_size": 3, "selected_item_ids": ["i0", "i1", "i2"]},
    "metric": {"name": "accuracy", "aggregation": "mean", "direction": "higher"},
}
ANSWER = {"item": "i0", "trial": 1, "pass": 1, "attempt": 1, "status": "ok", "score": 1, "metrics": {}, "cost_usd": None, "latency_ms": None}


class Store(support.TemporaryFolder):
    """A store in files, without a repository."""

    def setUp(self):
        super().setUp()
        self.workspace = kaizen.init_workspace(".")[0]
        self.store = kaizen.FolderStore(self.workspace)

    def made(self, lines=3, is_ended=True, state="completed"):
        """A run with *lines* answers and three events (two when it was broken off), written as a run writes them; its folder."""
        run = self.store.create(PLAN)
        with self.store.writing(run) as writer:
            writer.event("planned")
            writer.update(state="running")
            writer.event("started", attempt=1)
            for number in range(lines):
                writer.item({**ANSWER, "item": f"i{number}", "score": number})
            if is_ended:
                counts, result = {"ok": lines}, {"status": "available", "value": 1, "n": lines, "planned": 3}
                writer.finish(state, reason=None, items=writer.sealed_items(), counts=counts, result=result, cost_usd=None, metrics={})
        return self.folder / "kaizen/.kaizen/runs" / run

    def test_ids_count_up_and_no_two_get_the_same(self):
        found = []
        threads = [threading.Thread(target=lambda: found.extend(self.store.create(PLAN) for _ in range(5))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found), [f"r{number:04d}" for number in range(1, 31)])
        self.assertEqual(self.store.ids(), sorted(found))

    def test_a_folder_without_run_json_is_no_run_and_its_number_is_not_given_again(self):
        self.made()
        os.mkdir("kaizen/.kaizen/runs/r0007")
        self.assertEqual(self.store.ids(), ["r0001"])
        self.assertEqual(self.store.create(PLAN), "r0008")

    def test_ids_above_9999_are_in_order(self):
        os.mkdir("kaizen/.kaizen/runs")
        os.mkdir("kaizen/.kaizen/runs/r9998")
        self.assertEqual([self.store.create(PLAN) for _ in range(3)], ["r9999", "r10000", "r10001"])
        self.assertEqual(self.store.ids(), ["r9999", "r10000", "r10001"])

    def test_an_id_of_any_length_made_by_hand_breaks_none_that_follow(self):
        os.mkdir("kaizen/.kaizen/runs")
        os.mkdir("kaizen/.kaizen/runs/r999999999")
        self.assertEqual([self.store.create(PLAN) for _ in range(2)], ["r1000000000", "r1000000001"])
        self.assertEqual(self.store.ids(), ["r1000000000", "r1000000001"])
        self.assertEqual(self.store.read("r1000000001")["id"], "r1000000001")
        os.mkdir("kaizen/.kaizen/runs/r١٢٣٤")  # digits, but none of ours
        self.assertEqual(self.store.create(PLAN), "r1000000002")

    def test_names_that_lead_elsewhere_are_no_runs(self):
        self.made()
        write("kaizen/.kaizen/run.json", "{}")
        for name in ("", ".", "..", "../runs/r0001", "r0001/", "r0001\n", "R0001", "r1", "r0001\0"):
            with self.assertRaises(kaizen.InputError, msg=name) as caught:
                self.store.read(name)
            self.assertEqual(caught.exception.reason, "no_run")

    def test_each_event_carries_the_hash_of_the_one_before(self):
        folder = self.made()
        events = self.store.events("r0001")
        self.assertEqual([(event["seq"], event["type"]) for event in events], [(1, "planned"), (2, "started"), (3, "ended")])
        for before, event in zip([None, *events[:-1]], events, strict=True):
            body = {key: value for key, value in event.items() if key != "sha"}
            text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            self.assertEqual(event["sha"], hashlib.sha256(text.encode()).hexdigest())
            self.assertEqual(event["prev"], before and before["sha"])
        self.assertEqual(read_json(folder / "run.json")["state"], "completed")

    def test_a_torn_last_line_is_left_out_and_then_cut_off_and_reported(self):
        folder = self.made(is_ended=False)
        for name in ("events.jsonl", "items.jsonl"):
            path = folder / name
            path.write_bytes(path.read_bytes()[:-20])
        self.assertEqual([event["type"] for event in self.store.events("r0001")], ["planned"])
        self.assertEqual([line["item"] for line in self.store.items("r0001")], ["i0", "i1"])
        with self.store.writing("r0001") as writer:
            self.assertEqual(len(writer.notes), 2)
            self.assertIn("events.jsonl was cut short by a crash", writer.notes[0])
            writer.event("ended")
        self.assertEqual([event["seq"] for event in self.store.events("r0001")], [1, 2])
        self.assertEqual(len(read_lines(folder / "items.jsonl")), 2)

    def test_a_journal_that_is_one_torn_line_is_empty(self):
        folder = self.made(is_ended=False)
        for name in ("events.jsonl", "items.jsonl"):
            write(folder / name, '{"seq"')
        self.assertEqual((self.store.events("r0001"), list(self.store.items("r0001"))), ([], []))
        with self.store.writing("r0001"):
            self.assertEqual((folder / "events.jsonl").read_bytes(), b"")

    def test_a_broken_chain_is_refused_with_file_and_line(self):
        folder = self.made()
        whole = (folder / "events.jsonl").read_bytes()
        first, second, third = whole.splitlines(keepends=True)
        table = {
            "changed": (first + second.replace(b'"attempt":1', b'"attempt":2') + third, 2),
            "removed": (first + third, 2),
            "moved": (second + first + third, 1),
            "twice": (first + second + second + third, 3),
            "no JSON": (first + b"nothing\n" + third, 2),
            "another key": (first[:-2] + b',"x":1}\n' + second, 1),
            "cut in the middle": (first[:-9] + b"\n" + second + third, 1),
        }
        for what, (data, line) in table.items():
            (folder / "events.jsonl").write_bytes(data)
            for look in (lambda: self.store.events("r0001"), lambda: self.store.writing("r0001").__enter__()):
                with self.assertRaises(kaizen.RefusedError, msg=what) as caught:
                    look()
                self.assertEqual(caught.exception.reason, "broken_chain")
                self.assertIn(f"events.jsonl:{line}:", caught.exception.message, what)
            self.assertEqual((folder / "events.jsonl").read_bytes(), data, "nothing is written on top of it")

    def test_answers_that_are_not_those_of_the_end_of_the_run_are_refused(self):
        path = self.made() / "items.jsonl"
        whole = path.read_bytes()
        first, second, third = whole.splitlines(keepends=True)
        table = {
            "changed": first.replace(b'"score":0', b'"score":9') + second + third,
            "removed": first + second,
            "moved": second + first + third,
            "added": whole + third,
            "emptied": b"",
        }
        for what, data in table.items():
            path.write_bytes(data)
            with self.assertRaises(kaizen.RefusedError, msg=what) as caught:
                list(self.store.items("r0001"))
            self.assertEqual(caught.exception.reason, "journal_changed", what)
        path.unlink()
        with self.assertRaises(kaizen.RefusedError):
            list(self.store.items("r0001"))
        path.write_bytes(whole)
        self.assertEqual([line["score"] for line in self.store.items("r0001")], [0, 1, 2])

    def test_a_writer_notices_that_somebody_else_has_written_answers(self):
        run = self.store.create(PLAN)
        with self.store.writing(run) as writer:
            writer.item(ANSWER)
            seal = writer.sealed_items()
            self.assertEqual(seal["sha256"], hashlib.sha256((self.folder / "kaizen/.kaizen/runs" / run / "items.jsonl").read_bytes()).hexdigest())
            with open(writer.file("items.jsonl"), "ab") as stream:
                stream.write(b"{}\n")
            self.assertIsNone(writer.sealed_items())
            os.unlink(writer.file("items.jsonl"))
            self.assertIsNone(writer.sealed_items())

    def test_a_run_json_that_is_not_what_the_run_ended_with_is_refused_with_its_file_and_what_differs(self):
        folder = self.made()
        path, events = folder / "run.json", folder / "events.jsonl"
        whole, written, chain = read_json(path), path.read_bytes(), events.read_bytes()
        table = {
            "result": {"result": {**whole["result"], "value": 0.9}},
            "state": {"state": "incomplete"},
            "counts": {"counts": {**whole["counts"], "ok": 2}},
            "cost_usd": {"cost_usd": 0.5},
            "metrics": {"metrics": {"other": 1}},
            "what was planned": {"commit": {"hash": "other", "branch": None}},
        }
        for what, change in table.items():
            write(path, json.dumps({**whole, **change}))
            self.refused("record_changed", rf"runs/r0001/run\.json: .*{what}")
        path.write_bytes(written)
        self.assertEqual(self.store.read("r0001")["state"], "completed")
        events.write_bytes(b"".join(chain.splitlines(keepends=True)[:2]))
        self.refused("record_changed", "no event that the run ended")
        events.unlink()
        self.refused("record_changed", "no event that the run ended")
        events.write_bytes(chain.replace(b'"value":1', b'"value":2'))
        self.refused("broken_chain", r"events\.jsonl:3")
        events.write_bytes(chain)
        with self.store.writing("r0001") as writer:
            for _ in range(200):  # as many tries to go on with it, which all failed before they changed anything
                writer.event("resumed", after="completed")
        self.assertEqual(self.store.read("r0001")["state"], "completed")

    def test_a_run_that_ended_as_tainted_is_tainted_also_where_run_json_does_not_say_so(self):
        folder = self.made(state="tainted")
        document = read_json(folder / "run.json")
        write(folder / "run.json", json.dumps({**document, "state": "running"}))
        self.assertEqual(self.store.read("r0001")["state"], "tainted")

    def refused(self, reason, words):
        """The run r0001 is refused for *reason* in a message that fits *words*."""
        with self.assertRaisesRegex(kaizen.RefusedError, words) as caught:
            self.store.read("r0001")
        self.assertEqual(caught.exception.reason, reason)

    def test_a_run_that_nobody_is_at_any_more_reads_as_interrupted(self):
        run = self.store.create(PLAN)
        self.assertEqual(self.store.read(run)["state"], "interrupted")
        with self.store.writing(run) as writer:
            self.assertEqual(self.store.read(run)["state"], "planned")
            writer.update(state="running")
            self.assertEqual(self.store.read(run)["state"], "running")
            with self.assertRaises(kaizen.RefusedError) as caught:
                self.store.writing(run).__enter__()
            self.assertEqual(caught.exception.reason, "lock_held")
        self.assertEqual(self.store.read(run)["state"], "interrupted")
        write(f"kaizen/.kaizen/runs/{run}/lock", '{"pid":1,"started_at":"2026-01-01T00:00:00.000Z"}\n')
        self.assertEqual(self.store.read(run)["state"], "interrupted", "a lock file without its owner is no lock")

    def test_a_restart_moves_the_journals_and_goes_on_where_a_crash_broke_it_off(self):
        folder = self.made()
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        (folder / "attempt-1").mkdir()
        os.rename(folder / "items.jsonl", folder / "attempt-1/items.jsonl")  # as far as a killed restart got
        self.store.restart("r0001")
        after = {path.name: path.read_bytes() for path in (folder / "attempt-1").iterdir()}
        self.assertEqual(after, before)
        document = self.store.read("r0001")
        self.assertEqual((document["state"], document["attempt"]), ("interrupted", 2))
        self.assertNotIn("reason", document)
        with self.store.writing("r0001") as writer:
            writer.event("planned")
        self.store.restart("r0001")
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["attempt-1", "attempt-2", "run.json"])


class Workspaces(support.TemporaryFolder):
    """Making and finding a workspace."""

    def test_init_makes_three_files_and_nothing_else_and_again_nothing(self):
        done = support.run_cli("init", "--json")
        self.assertEqual(json.loads(done.stdout)["files"], ["kaizen/config.json", "kaizen/.kaizen/store.json", "kaizen/.kaizen/.gitignore"])
        self.assertEqual(sorted(path.name for path in self.folder.rglob("*")), [".gitignore", ".kaizen", "config.json", "kaizen", "store.json"])
        self.assertEqual((self.folder / "kaizen/.kaizen/.gitignore").read_text(), "*\n")
        write("kaizen/config.json", '{"version": 1, "seed": 7}')
        done = support.run_cli("init", "--json")
        self.assertEqual((done.status, json.loads(done.stdout)["reason"]), (0, "existing"))
        self.assertEqual(kaizen.find_workspace().config["seed"], 7)

    def test_a_store_of_another_program_is_refused_and_not_written_into(self):
        write("kaizen/.kaizen/state.db", "theirs")
        done = support.run_cli("init", "--json")
        self.assertEqual((done.status, json.loads(done.stdout)["reason"]), (5, "foreign_store"))
        self.assertEqual([str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()], ["kaizen/.kaizen/state.db"])

    def test_it_is_found_from_below_and_not_beyond_the_repository(self):
        kaizen.init_workspace(".")
        os.makedirs("a/b")
        self.assertEqual(kaizen.find_workspace("a/b").root, str(self.folder))
        os.makedirs("a/.git")
        with self.assertRaises(kaizen.InputError) as caught:
            kaizen.find_workspace("a/b")
        self.assertEqual((caught.exception.reason, caught.exception.hint), ("no_workspace", "make one with: kaizen init"))

    def test_a_folder_inside_a_workspace_gets_none_of_its_own(self):
        kaizen.init_workspace(".")
        os.makedirs("sub")
        with self.assertRaises(kaizen.RefusedError) as caught:
            kaizen.init_workspace("sub")
        self.assertEqual(caught.exception.reason, "existing_workspace")

    def test_each_wrong_setting_is_named(self):
        kaizen.init_workspace(".")
        table = {
            '{"version": 2}': "/version",
            "{}": "version",
            '{"version": 1, "slots": 0}': "/slots",
            '{"version": 1, "slot": 1}': "did you mean 'slots'?",
            '{"version": 1, "silence_seconds": "60"}': "/silence_seconds",
            "[]": "not an object",
        }
        for text, words in table.items():
            write("kaizen/config.json", text)
            done = support.run_cli("run", "--system", "s", "--variant", "v")
            self.assertEqual(done.status, 2, text)
            self.assertIn(words, done.stderr, text)

    def test_a_clone_below_work_uses_the_store_around_it(self):
        kaizen.init_workspace(".")
        os.makedirs("kaizen/.kaizen/work/c1/.git")
        write("kaizen/.kaizen/work/c1/kaizen/config.json", '{"version": 1}')
        found = kaizen.find_workspace("kaizen/.kaizen/work/c1/kaizen")
        self.assertEqual((found.root, found.store_folder), (str(self.folder / "kaizen/.kaizen/work/c1"), str(self.folder / "kaizen/.kaizen")))


if __name__ == "__main__":
    unittest.main()
