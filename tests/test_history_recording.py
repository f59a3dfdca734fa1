"""Recording that is killed, runs out of room, or is not alone: the ledger is the old one or the new one."""

import builtins
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

import support
from history_fixture import ACCEPT, AFTER, BEFORE, copy_history, improvement, kaizen_json, must
from support import INSTALLED, clean_environment, end_process, kaizen, run_cli, write

try:
    import resource
except ImportError:
    resource = None

FOLDER = "kaizen-history"
STEPS = ("replace", "unlink", "makedirs", "fsync", "ftruncate", "write", "rmdir")


def killed_at(number, *argv):
    """Runs a command in a child that is killed before its *number*-th step that touches the disk; False when it came to its end."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = [number]

    def counting(function, is_step=lambda *args: True):
        def step(*args, **options):
            if is_step(*args):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **options)

        return step

    try:
        for name in STEPS:
            setattr(os, name, counting(getattr(os, name)))
        os.open = counting(os.open, lambda path, flags, *rest: flags & os.O_CREAT)
        builtins.open = counting(open, lambda path, mode="r", *rest: "w" in mode)
        status = run_cli(*argv).status
        os._exit(0 if status == 0 else 3)
    except BaseException:
        os._exit(4)


class Kills(support.TemporaryFolder):
    """kill -9 before every single step."""

    def ledger(self):
        path = self.folder / FOLDER / "ledger.jsonl"
        return path.read_bytes() if path.exists() else b""

    def at_every_step(self, make, *argv):
        """Runs the command *argv* on what *make* makes, killed at the first step, the second, and so on; then to its end."""
        number, states = 0, set()
        is_killed = True
        while is_killed:
            number += 1
            shutil.rmtree(self.folder / FOLDER, ignore_errors=True)
            make()
            old = self.ledger()
            is_killed = killed_at(number, *argv)
            new = self.ledger()
            is_new = new != old
            if is_new:
                entries, problems = kaizen.parsed_ledger(new, "ledger")
                self.assertTrue(new.startswith(old), f"step {number}")
                self.assertEqual((len(entries), problems), (old.count(b"\n") + 1, []), f"step {number}")
            states.add((is_killed, is_new))
            answer = kaizen_json(*argv)
            if is_new:
                self.assertIn(answer["reason"], ("already_recorded", "already_champion", "cohort_exists"), f"step {number}")
            else:
                self.assertEqual(answer["status"], 0, f"step {number}: {answer}")
            must("history", "validate")
            self.assertEqual([name for name in os.listdir(FOLDER) if name.endswith(".tmp") or name == "unfinished.json"], [])
        self.assertEqual(states, {(True, False), (True, True), (False, True)})
        self.assertGreater(number, 10)

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, os, "fsync", os.fsync)
        os.fsync = lambda descriptor: None  # a killed process loses nothing that the system has; a hundred syncs take seconds
        improvement("refund", {"a": "n"}, {"a": "y"}, big="a")
        must("review", "refund")
        must("decide", "refund", *ACCEPT)
        must("history", "init", "refund", "--agent-version", "v1", "--history", "kept")
        shutil.copytree("kept", "recorded")
        must("history", "record", "refund", "--agent-version", "v2", "--history", "recorded")

    def test_init(self):
        self.at_every_step(lambda: None, "history", "init", "refund", "--agent-version", "v1")

    def test_record(self):
        self.at_every_step(lambda: shutil.copytree("kept", FOLDER), "history", "record", "refund", "--agent-version", "v2")

    def test_promote(self):
        self.at_every_step(lambda: shutil.copytree("recorded", FOLDER), "history", "promote", "2")

    def test_what_a_stopped_recording_left_is_named_until_it_is_cleared(self):
        shutil.copytree("kept", FOLDER)
        self.assertTrue(killed_at(12, "history", "record", "refund", "--agent-version", "v2"))
        answer = kaizen_json("history", "validate")
        self.assertEqual(answer["status"], 1)
        self.assertIn("unfinished", {each["code"] for each in answer["problems"]})
        must("history", "record", "refund", "--agent-version", "v2")
        must("history", "validate")

    def test_an_unfinished_file_that_names_what_is_kept_removes_nothing(self):
        shutil.copytree("recorded", FOLDER)
        run = kaizen.load_history(FOLDER).runs
        objects = sorted(kaizen.kept_objects(kaizen.load_history(FOLDER)))
        write("outside/keep", "x")
        names = [*objects, "../outside/keep", "objects/../../outside/keep", "ledger.jsonl", 7]
        write(f"{FOLDER}/unfinished.json", json.dumps({"version": 1, "entries": 2, "run": list(run)[-1], "objects": names}))
        self.assertEqual(kaizen_json("history", "record", "refund", "--agent-version", "v2")["reason"], "already_recorded")
        must("history", "validate")
        self.assertTrue(os.path.exists("outside/keep"))
        write(f"{FOLDER}/unfinished.json", json.dumps({"version": 1, "entries": 2, "run": "../../outside", "objects": []}))
        kaizen_json("history", "record", "refund", "--agent-version", "v2")
        self.assertTrue(os.path.exists("outside/keep"))
        write(f"{FOLDER}/unfinished.json", "[]")
        self.assertEqual(kaizen_json("history", "record", "refund", "--agent-version", "v2")["status"], 2)


class Room(support.TemporaryFolder):
    """A disk that is full, a folder that cannot be written, a source that changes."""

    def setUp(self):
        super().setUp()
        copy_history(self.folder)
        must("decide", "tone", *ACCEPT)

    def state(self):
        return {str(path): path.read_bytes() for path in (self.folder / FOLDER).rglob("*") if path.is_file()}

    @unittest.skipUnless(resource, "file-size limits are of Unix")
    def test_a_full_disk_leaves_everything_as_it_was(self):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        before = self.state()
        for size in (0, 100, 300, 1000, 2000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
            done = run_cli("history", "record", "tone", "--label", "again", "--agent-version", "v5")
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual(done.status, 2, done.stderr)
            self.assertIn("cannot be written", done.stderr)
            after = {path: data for path, data in self.state().items() if not path.endswith(("unfinished.json", ".tmp"))}
            self.assertEqual(after, before, size)
        must("history", "record", "tone", "--label", "again", "--agent-version", "v5")
        must("history", "validate")

    def test_a_read_only_folder_is_told(self):
        """Every writing is refused by a stand-in for the system, because root may write everywhere."""
        before = self.state()
        real = os.open

        def refusing(path, flags, *rest, **options):
            if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                raise PermissionError(13, "Permission denied")
            return real(path, flags, *rest, **options)

        os.open = refusing
        try:
            done = run_cli("history", "record", "tone", "--agent-version", "v5")
        finally:
            os.open = real
        self.assertEqual(done.status, 2)
        self.assertIn("cannot be written: Permission denied", done.stderr)
        self.assertEqual(self.state(), before)
        must("history", "list")
        must("history", "validate")

    def test_reading_writes_nothing(self):
        before = self.state()
        for command in (("list",), ("show", "champion"), ("diff", "1", "2"), ("validate",), ("anchor",)):
            must("history", *command)
        self.assertEqual(self.state(), before)

    def test_a_source_that_changes_while_it_is_recorded_is_refused(self):
        path = self.folder / "improvements/tone/candidate.jsonl"
        write(path, path.read_text() + "\n")
        item = kaizen.measured_source(kaizen.Source("candidate.jsonl", str(path)))
        write(path, path.read_text() + "\n")
        with self.assertRaisesRegex(kaizen.RefusedError, "changed while it was recorded"):
            kaizen.store_object(FOLDER, item)
        must("history", "validate")

    def test_equal_files_are_kept_once_and_large_ones_compressed_alike(self):
        before = self.state()
        must("history", "record", "tone", "--label", "again", "--agent-version", "v4")
        fresh = set(self.state()) - set(before)
        self.assertEqual(len(fresh), 2, fresh)  # the manifest, and the decision that was made meanwhile
        packed = next(path for path in before if path.endswith(".gz"))
        self.assertEqual(before[packed][:10], b"\x1f\x8b\x08\x00\x00\x00\x00\x00" + before[packed][8:10])  # no name, no time
        sizes = [os.path.getsize(path) for path in before if not path.endswith(".gz")]
        self.assertLess(max(sizes), 64 << 10)


class Together(support.TemporaryFolder):
    """Two processes at once."""

    def test_both_records_are_there_or_one_is_told(self):
        copy_history(self.folder)
        command = [sys.executable, str(INSTALLED), "history", "record", "tone", "--agent-version"]
        started = [
            subprocess.Popen([*command, f"w{number}"], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for number in range(4)
        ]
        for process in started:
            self.addCleanup(end_process, process)
        ended = [(process.communicate()[1].decode(), process.returncode) for process in started]
        self.assertEqual([status for _, status in ended], [0] * 4, ended)
        answer = must("history", "list")
        self.assertEqual({run["agent_version"] for run in answer["runs"]}, {"v1", "v2", "v3", "v4", "w0", "w1", "w2", "w3"})
        must("history", "validate")

    def test_a_recording_that_goes_on_too_long_is_not_waited_for(self):
        improvement("refund", BEFORE, AFTER)
        must("history", "init", "refund", "--agent-version", "v1")
        with kaizen.FileLock(f"{FOLDER}/history.lock", "the history"), self.assertRaisesRegex(kaizen.RefusedError, "is being written by another process"):
            kaizen.record_run(FOLDER, kaizen.RunDraft("record", "x", {}, []), lambda history: None, patience=0.05)


if __name__ == "__main__":
    unittest.main()
