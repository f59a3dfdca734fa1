"""Running a stage: kills, interrupts, order, resuming, hostile runners."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import support
from support import INSTALLED, clean_environment, kaizen, read_json, read_lines, run_cli, write, write_lines
from test_foundation_process import dies_within

PYTHON = [sys.executable, "-I", "-S"]
# Answers with what depends on the trial alone, and notes each call.
ECHO = """#!/bin/sh
read -r request
echo "log of $KAIZEN_CASE_ID" >&2
echo "$KAIZEN_CASE_ID $KAIZEN_TRIAL" >> calls.txt
echo "{\\"output\\": \\"$KAIZEN_CASE_ID $KAIZEN_TRIAL $KAIZEN_SEED $KAIZEN_STAGE\\"}"
"""


def without_execution(path):
    """The observations of a stage file but for `execution`, as text, in their order."""
    return [json.dumps({key: value for key, value in record.items() if key != "execution"}) for record in read_lines(path)]


@unittest.skipIf(os.name == "nt", "programs are started on Linux and macOS only")
class StageRun(support.TemporaryFolder):
    """An improvement of some cases and a runner in the current folder."""

    def setUp(self):
        super().setUp()
        self.make_cases(4)
        self.runner(ECHO)

    def make_cases(self, number):
        write_lines("imp/test_cases.jsonl", [{"id": f"c{index}", "input": index} for index in range(1, number + 1)])
        write("imp/evaluation.json", json.dumps({"seed": 7, "evaluators": [{"id": "a", "type": "contains", "values": ["x"]}]}))

    def runner(self, text):
        write("agent", text).chmod(0o755)

    def run_stage(self, *options, stage="s", status=0, command=("./agent",)):
        argv = ["run", "imp", "--stage", stage, "--progress", "none", *options]
        done = run_cli(*argv, *(["--", *command] if command else []))
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done

    def start(self, *options, stage="s", command=("./agent",)):
        """A real `kaizen run`, going on in the background."""
        argv = [sys.executable, str(INSTALLED), "run", "imp", "--stage", stage, "--progress", "none", *options, "--", *command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        tool = subprocess.Popen(argv, env={**clean_environment(), "TMPDIR": str(self.temporary())}, start_new_session=True, **pipes)
        self.addCleanup(tool.wait)
        self.addCleanup(tool.kill)
        for stream in (tool.stdout, tool.stderr):
            self.addCleanup(stream.close)
        return tool

    def temporary(self):
        folder = self.folder / "temporary"
        folder.mkdir(exist_ok=True)
        return folder

    def await_file(self, name, text="", seconds=60):
        deadline = time.monotonic() + seconds
        while not (Path(name).exists() and text in Path(name).read_text()):
            self.assertLess(time.monotonic(), deadline, f"{name} never came")
            time.sleep(0.01)

    def calls(self):
        return Path("calls.txt").read_text().splitlines() if Path("calls.txt").exists() else []

    def statuses(self, stage="s"):
        return {f"{record['case_id']} {record['trial']}": record["status"] for record in read_lines(f"imp/{stage}.jsonl")}


class Order(StageRun):
    """Trial 1 of every case, then trial 2; the file has them so whoever finished first."""

    def test_repetitions_are_interleaved(self):
        self.run_stage("--repetitions", "3")
        wanted = [f"c{case} {trial}" for trial in (1, 2, 3) for case in (1, 2, 3, 4)]
        self.assertEqual(self.calls(), wanted)
        self.assertEqual(list(self.statuses()), wanted)

    def test_300_cases_with_four_jobs_are_in_order(self):
        self.make_cases(300)
        self.runner('#!/bin/sh\ncase $KAIZEN_CASE_ID in *7) sleep 0.02;; esac\necho "{\\"output\\": \\"$KAIZEN_CASE_ID\\"}"\n')
        self.run_stage("--jobs", "4")
        records = read_lines("imp/s.jsonl")
        self.assertEqual([record["case_id"] for record in records], [f"c{index}" for index in range(1, 301)])
        self.assertTrue(all(record["output"] == record["case_id"] for record in records))
        self.assertEqual({record["execution"]["worker"] for record in records}, {1, 2, 3, 4})
        digest = kaizen.lines_digest("imp/s.jsonl")
        self.assertEqual(read_json("imp/s.meta.json")["observations"], {"lines": 300, "sha256": digest.hexdigest()})

    def test_both_stages_get_the_same_seeds_and_each_trial_its_own(self):
        seeds = []
        for stage in ("baseline", "candidate"):
            self.run_stage("--repetitions", "2", stage=stage)
            seeds.append([record["output"].split()[2] for record in read_lines(f"imp/{stage}.jsonl")])
        self.assertEqual(seeds[0], seeds[1])
        self.assertEqual(len(set(seeds[0])), 8)
        self.assertEqual(int(seeds[0][0]), kaizen.trial_seed(7, "c1", 1))

    def test_an_observation_has_its_keys_in_their_order(self):
        self.run_stage("--id", "c1")
        record = read_lines("imp/s.jsonl")[0]
        self.assertEqual(list(record), ["case_id", "trial", "input_fingerprint", "status", "output", "execution"])
        self.assertEqual(list(record["execution"]), ["duration_ms", "exit_code", "attempts", "started_at", "worker", "stderr_tail"])
        self.assertEqual(record["execution"]["stderr_tail"], "log of c1\n")
        self.run_stage("--id", "c1", stage="t", status=4, command=["sh", "-c", "echo problem >&2; exit 3"])
        record = read_lines("imp/t.jsonl")[0]
        self.assertEqual(list(record), ["case_id", "trial", "input_fingerprint", "status", "execution", "error"])
        self.assertEqual(
            record["error"],
            {"class": "runner", "type": "exit", "message": "the runner ended with exit code 3", "stderr_tail": "problem\n"},
        )


class Killed(StageRun):
    """kill -9 at any moment loses at most the trials in flight, and resuming makes up for it."""

    def test_a_killed_run_goes_on_to_the_file_of_an_uninterrupted_one(self):
        self.make_cases(25)
        self.run_stage("--repetitions", "2", "--jobs", "2", stage="whole")
        wanted = [line.replace(" whole", " s") for line in without_execution("imp/whole.jsonl")]
        for seed in range(3):
            with self.subTest(seed=seed):
                chance = random.Random(seed)
                for path in Path("imp").glob("s.*"):
                    path.unlink()
                Path("calls.txt").unlink()
                for kill in range(2):
                    tool = self.start("--repetitions", "2", "--jobs", "2", *(["--resume"] if kill else []))
                    already = len(self.calls())
                    while len(self.calls()) < already + chance.randrange(1, 12) and tool.poll() is None:
                        time.sleep(0.001)
                    time.sleep(chance.random() * 0.02)
                    tool.kill()
                    tool.wait()
                    time.sleep(0.05)  # for the runners in flight, which nobody ends
                    lines = Path("imp/s.jsonl").read_bytes().split(b"\n") if Path("imp/s.jsonl").exists() else [b""]
                    self.assertGreaterEqual(len(lines) - 1, len(self.calls()) - 2 * (kill + 1))
                    for line in lines[:-1]:
                        json.loads(line)
                done = self.run_stage("--resume", "--repetitions", "2", "--jobs", "2")
                self.assertIn("50 of 50 trials completed", done.stdout)
                self.assertEqual(without_execution("imp/s.jsonl"), wanted)
                left = sorted(path.name for path in Path("imp").iterdir() if path.name.startswith((".", "s.")))
                self.assertEqual(left, ["s.jsonl", "s.meta.json"])

    def test_a_killed_overwrite_leaves_the_old_stage_and_can_go_on(self):
        self.run_stage()
        before = Path("imp/s.jsonl").read_bytes()
        self.runner(ECHO.replace("read -r", "[ $KAIZEN_CASE_ID != c3 ] || [ -e go ] || sleep 60\nread -r"))
        Path("calls.txt").unlink()
        tool = self.start("--overwrite")
        self.await_file("imp/s.jsonl.unfinished", '"c2"')
        tool.kill()
        tool.wait()
        self.assertEqual(Path("imp/s.jsonl").read_bytes(), before)
        write("go", "")
        self.run_stage("--overwrite", "--resume")
        self.assertEqual([call for call in self.calls() if call != "c3 1"], ["c1 1", "c2 1", "c4 1"])
        self.assertNotEqual(Path("imp/s.jsonl").read_bytes(), before)
        self.assertEqual(list(self.statuses()), ["c1 1", "c2 1", "c3 1", "c4 1"])
        self.assertEqual([path.name for path in Path("imp").iterdir() if "unfinished" in path.name], [])

    def test_an_overwrite_killed_between_its_last_two_steps_is_completed(self):
        self.run_stage()
        with mock.patch.object(kaizen, "move_file", lambda path, target: path.endswith("jsonl.unfinished") and os.replace(path, target)):
            self.run_stage("--overwrite", command=["./agent", "--other"])
        self.assertEqual(read_json("imp/s.meta.json")["command"], ["./agent"])
        self.run_stage("--resume", command=["./agent", "--other"])
        self.assertEqual(read_json("imp/s.meta.json")["command"], ["./agent", "--other"])
        self.assertEqual(len(self.calls()), 8)

    def test_the_work_folders_of_a_killed_run_are_swept_by_the_next(self):
        self.runner(ECHO.replace("read -r", "[ -e go ] || { touch $KAIZEN_WORKDIR/mine; touch started; sleep 1; }\nread -r"))
        tool = self.start()
        self.await_file("started")
        tool.kill()
        tool.wait()
        left = [path.name for path in self.temporary().iterdir()]
        self.assertEqual(len(left), 2, left)
        write(self.temporary() / "kaizen-work-of-somebody/keep", "no lock, but old enough to have none")
        write("go", "")
        second = self.start("--resume")
        self.assertEqual(second.wait(20), 0, second.stderr.read())
        self.assertEqual([path.name for path in self.temporary().iterdir()], [])

    def test_a_run_that_goes_on_keeps_its_work_folders(self):
        with kaizen.WorkFolders() as folders:
            mine = folders.make()
            self.run_stage()
            self.assertTrue(os.path.isdir(mine))
        self.assertFalse(os.path.exists(folders.path))


class Interrupted(StageRun):
    """The first signal ends the runners, the second kills them."""

    SLOW = "#!/bin/sh\necho $$ >> pids.txt\necho '{\"output\": 1}'\n[ $KAIZEN_CASE_ID = c1 ] || exec sleep 60\n"
    STUBBORN = "#!/bin/sh\ntrap '' TERM\necho $$ >> pids.txt\nwhile :; do sleep 0.05; done\n"

    def pids(self):
        return [int(line) for line in Path("pids.txt").read_text().split()]

    def await_runners(self, number):
        self.await_file("pids.txt")
        while len(self.pids()) < number:
            time.sleep(0.01)
        time.sleep(0.1)

    def test_the_termination_signal_is_like_an_interrupt(self):
        self.runner(self.SLOW)
        tool = self.start("--jobs", "2")
        self.await_runners(3)
        tool.send_signal(signal.SIGTERM)
        out, err = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 130, err)
        self.assertIn("interrupted; 1 trial of 4 saved", out)
        self.assertEqual(list(self.statuses()), ["c1 1"])
        self.assertTrue(all(dies_within(pid, 20) for pid in self.pids()))
        self.assertFalse(any(self.temporary().iterdir()))
        self.assertFalse(Path("imp/s.lock").exists())

    def test_the_second_signal_does_not_wait(self):
        self.runner(self.STUBBORN)
        tool = self.start()
        self.await_runners(1)
        started = time.monotonic()
        tool.send_signal(signal.SIGINT)
        time.sleep(0.3)
        tool.send_signal(signal.SIGINT)
        tool.communicate(timeout=60)
        self.assertLess(time.monotonic() - started, 1.9)
        self.assertEqual(tool.returncode, 130)
        self.assertTrue(dies_within(self.pids()[0], 20))
        self.assertFalse(Path("imp/s.jsonl").exists())

    def test_with_json_there_is_one_document(self):
        self.runner(self.SLOW)
        tool = self.start("--json")
        self.await_runners(2)
        tool.send_signal(signal.SIGINT)
        answer = json.loads(tool.communicate(timeout=60)[0])
        self.assertEqual((answer["ok"], answer["code"], answer["reason"], answer["ran"]), (False, 130, "interrupted", 1))


class Resumed(StageRun):
    """What is missing is run, what is there stays, and only evidence of one origin is added to."""

    def test_a_stage_that_is_there_is_refused(self):
        self.run_stage()
        before = Path("imp/s.jsonl").read_bytes()
        done = self.run_stage(status=5)
        self.assertIn("imp/s.jsonl: is there already; nothing was run", done.stderr)
        self.assertIn("--resume", done.stderr)
        self.assertEqual(len(self.calls()), 4)
        self.assertEqual(Path("imp/s.jsonl").read_bytes(), before)

    def test_a_second_run_on_one_stage_is_refused(self):
        self.runner(ECHO.replace("read -r", "touch started; while [ ! -e go ]; do sleep 0.02; done\nread -r"))
        tool = self.start()
        self.await_file("started")
        for options in ((), ("--resume",), ("--overwrite",)):
            done = self.run_stage(*options, status=5)
            self.assertIn(f"stage 's' is being written by another process (pid {tool.pid}", done.stderr)
        write("go", "")
        self.assertEqual(tool.wait(20), 0)
        self.assertEqual(len(self.calls()), 4)

    def test_with_nothing_missing_nothing_is_run_and_nothing_changes(self):
        self.run_stage()
        before = Path("imp/s.jsonl").read_bytes()
        self.run_stage("--resume")
        self.assertEqual((Path("imp/s.jsonl").read_bytes(), len(self.calls())), (before, 4))

    def test_another_command_seed_or_folder_is_refused_and_named(self):
        self.run_stage()
        done = self.run_stage("--resume", status=5, command=["./agent", "-v"])
        self.assertIn('command (["./agent"] then, ["./agent","-v"] now)', done.stderr)
        done = self.run_stage("--resume", "--cwd", "imp", status=5, command=["../agent"])
        self.assertIn("working directory (.. then, . now)", done.stderr)
        write("imp/evaluation.json", json.dumps({"seed": 8, "evaluators": [{"id": "a", "type": "contains", "values": ["x"]}]}))
        self.assertIn("seed (7 then, 8 now)", self.run_stage("--resume", status=5).stderr)
        self.assertEqual(len(self.calls()), 4)

    def test_another_commit_is_refused(self):
        self.run_stage("--id", "c1")
        meta = read_json("imp/s.meta.json")
        write("imp/s.meta.json", json.dumps({**meta, "commit": {"hash": "a" * 40, "branch": "main", "dirty": False, "reason": None}}))
        self.assertIn(f"commit ({'a' * 40} then, none now)", self.run_stage("--resume", status=5).stderr)

    def test_repetitions_may_grow_but_not_shrink(self):
        self.run_stage("--repetitions", "2")
        self.assertIn("has 2 repetitions", self.run_stage("--resume", "--repetitions", "1", status=5).stderr)
        self.run_stage("--resume")
        self.assertEqual(len(self.calls()), 8)
        self.run_stage("--resume", "--repetitions", "3")
        self.assertEqual(self.calls()[8:], [f"c{case} 3" for case in (1, 2, 3, 4)])
        self.assertEqual(read_json("imp/s.meta.json")["planned"], 12)

    def test_a_selection_is_partial_until_the_rest_is_run(self):
        done = self.run_stage("--id", "c3", "--id", "c1")
        self.assertIn("a selection of 4 planned", done.stdout)
        meta = read_json("imp/s.meta.json")
        self.assertEqual((meta["selection"], meta["selected"], meta["planned"]), ({"ids": ["c3", "c1"], "tags": [], "splits": []}, 2, 4))
        self.assertEqual(list(self.statuses()), ["c1 1", "c3 1"])
        done = self.run_stage("--resume")
        self.assertNotIn("a selection", done.stdout)
        meta = read_json("imp/s.meta.json")
        self.assertEqual((meta["selection"], meta["selected"], meta["complete"]), (None, 4, True))
        self.assertEqual(list(self.statuses()), ["c1 1", "c2 1", "c3 1", "c4 1"])

    def test_a_case_with_another_input_is_run_again_and_a_new_one_added(self):
        self.run_stage()
        old = read_lines("imp/s.jsonl")
        inputs = {"c0": 0, "c1": 1, "c2": "changed", "c4": 4}
        write_lines("imp/test_cases.jsonl", [{"id": name, "input": value, "expected": 9} for name, value in inputs.items()])
        done = self.run_stage("--resume")
        self.assertEqual(self.calls()[4:], ["c0 1", "c2 1"])
        self.assertIn("2 lines moved to imp/s.superseded.jsonl: 1 made from another input and 1 of cases that are gone", done.stderr)
        self.assertEqual(list(self.statuses()), ["c0 1", "c1 1", "c2 1", "c4 1"])
        self.assertEqual(read_lines("imp/s.superseded.jsonl"), [old[1], old[2]])

    def test_windows_line_ends_and_blank_lines_are_no_obstacle(self):
        self.run_stage("--id", "c1", "--id", "c2")
        text = Path("imp/s.jsonl").read_bytes().replace(b"\n", b"\r\n\r\n")
        Path("imp/s.jsonl").write_bytes(b"\xef\xbb\xbf" + text)
        self.run_stage("--resume")
        self.assertEqual(self.calls(), ["c1 1", "c2 1", "c3 1", "c4 1"])
        self.assertEqual([line.value["case_id"] for line in kaizen.iter_observations("imp/s.jsonl")], ["c1", "c2", "c3", "c4"])

    def test_a_last_line_that_lacks_only_its_line_end_counts(self):
        self.run_stage("--id", "c1", "--id", "c2")
        Path("imp/s.jsonl").write_bytes(Path("imp/s.jsonl").read_bytes()[:-1])
        done = self.run_stage("--resume")
        self.assertEqual(self.calls()[2:], ["c3 1", "c4 1"])
        self.assertEqual(done.stderr, "")

    def test_a_broken_line_in_the_middle_is_an_error_with_its_place(self):
        self.run_stage()
        lines = Path("imp/s.jsonl").read_text().splitlines(keepends=True)
        write("imp/s.jsonl", lines[0] + "{oops\n" + lines[1])
        self.assertIn("imp/s.jsonl:2: ", self.run_stage("--resume", status=2).stderr)
        write("imp/s.jsonl", lines[0] + '{"case_id": "c2", "trial": 1}\n' + lines[1])
        self.assertIn("imp/s.jsonl:2: has the status 'None'", self.run_stage("--resume", status=2).stderr)


class OnlyErrors(StageRun):
    """Trials without usable evidence are run again; those that failed or passed never."""

    FLAKY = ECHO.replace("read -r", "[ $KAIZEN_CASE_ID != c2 ] || [ -e go ] || exit 9\nread -r")

    def test_the_count_and_the_command_that_runs_them_again_are_told(self):
        self.runner(self.FLAKY)
        done = self.run_stage("--repetitions", "2", "--jobs", "2", status=4)
        self.assertIn("6 of 8 trials completed, 2 without usable evidence (2 error)", done.stdout)
        self.assertIn("case 'c2', trial 1: runner: the runner ended with exit code 9", done.stdout)
        following = done.stdout.splitlines()[-1].removeprefix("next: ")
        self.assertEqual(following, "kaizen run imp --stage s --repetitions 2 --jobs 2 --progress none --only errors -- ./agent")
        write("go", "")
        again = run_cli(*following.split()[1:])
        self.assertEqual(again.status, 0, again.stderr)
        self.assertEqual(sorted(self.calls()[6:]), ["c2 1", "c2 2"])
        self.assertEqual(set(self.statuses().values()), {"completed"})
        self.assertEqual(list(self.statuses())[1], "c2 1")
        self.assertEqual([record["status"] for record in read_lines("imp/s.superseded.jsonl")], ["error", "error"])

    def test_a_selection_leaves_the_other_errors_alone(self):
        self.run_stage(status=4, command=["false"])
        self.run_stage("--only", "errors", "--id", "c2", status=4, command=["false"])
        self.assertEqual(len(read_lines("imp/s.superseded.jsonl")), 1)
        self.assertEqual(len(self.statuses()), 4)

    def test_without_a_stage_it_is_refused(self):
        self.assertIn("is not there", self.run_stage("--only", "errors", status=5).stderr)

    def test_it_goes_with_no_other_choice(self):
        self.assertIn("--only errors goes with neither", self.run_stage("--only", "errors", "--resume", status=2).stderr)

    def test_errors_of_holdout_cases_are_counted_but_not_shown(self):
        write_lines("imp/test_cases.jsonl", [{"id": "secret-id", "input": 1, "split": "holdout"}])
        self.runner('#!/bin/sh\necho "{\\"error\\": {\\"message\\": \\"secret text\\"}}"\n')
        done = self.run_stage(status=4)
        self.assertIn("a holdout case: agent", done.stdout)
        self.assertNotIn("secret", done.stdout + done.stderr)


class Overwritten(StageRun):
    """The old stage stays until the last trial has ended."""

    def test_everything_is_run_anew_beside_the_old_file(self):
        self.run_stage()
        old = Path("imp/s.jsonl").read_bytes()
        self.runner(ECHO.replace("read -r", "cmp -s imp/s.jsonl old || exit 1\nread -r").replace("$KAIZEN_STAGE", "anew"))
        write("old", old)
        self.run_stage("--overwrite", "--jobs", "2")
        self.assertEqual(len(self.calls()), 8)
        self.assertTrue(all(record["output"].endswith("anew") for record in read_lines("imp/s.jsonl")))
        self.assertEqual(sorted(path.name for path in Path("imp").glob("s.*")), ["s.jsonl", "s.meta.json"])

    def test_another_command_may_be_given(self):
        self.run_stage()
        self.run_stage("--overwrite", command=["./agent", "--other"])
        self.assertEqual(read_json("imp/s.meta.json")["command"], ["./agent", "--other"])

    def test_without_a_stage_it_is_a_new_one(self):
        self.run_stage("--overwrite")
        self.assertEqual(len(self.statuses()), 4)

    def test_an_interrupted_one_says_how_to_go_on(self):
        self.run_stage()
        old = Path("imp/s.jsonl").read_bytes()
        self.runner(ECHO.replace("read -r", "[ $KAIZEN_CASE_ID != c2 ] || { touch started; exec sleep 60; }\nread -r"))
        tool = self.start("--overwrite")
        self.await_file("started")
        tool.send_signal(signal.SIGINT)
        out, _ = tool.communicate(timeout=60)
        self.assertIn("--overwrite --resume -- ./agent", out)
        self.assertEqual(Path("imp/s.jsonl").read_bytes(), old)
        self.assertEqual(len(read_lines("imp/s.jsonl.unfinished")), 1)


class HostileRunners(StageRun):
    """Whatever a runner does, its trial ends in a documented state and the others go on."""

    def one(self, *command, options=(), status=4):
        self.run_stage("--id", "c1", "--overwrite", *options, status=status, command=command)
        return read_lines("imp/s.jsonl")[0]

    def test_one_that_ignores_the_termination_signal_is_killed(self):
        self.runner(Interrupted.STUBBORN)
        with mock.patch.object(kaizen, "TERM_SECONDS", 0.3):
            record = self.one("./agent", options=("--timeout", "0.3"))
        self.assertEqual((record["status"], record["error"]["message"]), ("timeout", "no end within 0.3 s; the runner was ended"))
        self.assertIsNone(record["execution"]["exit_code"])
        self.assertLess(record["execution"]["duration_ms"], 600)
        self.assertTrue(dies_within(int(Path("pids.txt").read_text()), 20))

    def test_a_good_answer_counts_although_a_helper_keeps_the_pipe(self):
        with mock.patch.object(kaizen, "GRACE_SECONDS", 0.1):
            record = self.one("sh", "-c", 'sleep 60 & echo $! > helper; echo \'{"output": 1}\'', status=0)
        self.assertEqual((record["status"], record["output"]), ("completed", 1))
        self.assertLess(record["execution"]["duration_ms"], 1000)
        self.assertTrue(dies_within(int(Path("helper").read_text()), 20))

    def test_an_answer_of_nine_mib_names_the_limit(self):
        record = self.one(*PYTHON, "-c", "print('{\"output\": \"' + 'x' * (9 << 20) + '\"}')")
        self.assertEqual((record["status"], record["error"]["type"]), ("protocol_error", "too_much_output"))
        self.assertIn("8 MiB", record["error"]["message"])
        self.assertIn("left out", record["error"]["stdout_excerpt"])
        self.assertLess(len(record["error"]["stdout_excerpt"]), 1000)

    def test_an_answer_just_below_the_limit_is_kept(self):
        size = (8 << 20) - 100
        record = self.one(*PYTHON, "-c", f"print('{{\"output\": \"' + 'x' * {size} + '\"}}')", status=0)
        self.assertEqual(len(record["output"]), size)

    def test_50_mb_on_standard_error_are_cut(self):
        code = "import os\nfor i in range(50): os.write(2, b'x' * 1_000_000)\nraise SystemExit(5)"
        record = self.one(*PYTHON, "-c", code)
        self.assertEqual(record["error"]["message"], "the runner ended with exit code 5")
        told = f"[{50_000_000 - (64 << 10):,} bytes of standard error before this were cut]"
        self.assertTrue(record["error"]["stderr_tail"].startswith(told))

    def test_one_that_prints_nothing_gives_no_answer(self):
        record = self.one("true")
        self.assertEqual((record["status"], record["error"]["type"]), ("protocol_error", "no_answer"))

    def test_an_empty_object_is_no_answer_and_null_is_one(self):
        self.assertEqual(self.one("echo", "{}")["error"]["type"], "no_output")
        self.assertIsNone(self.one("echo", '{"output": null}', status=0)["output"])

    def test_the_work_folder_is_private_and_gone_afterwards(self):
        self.runner('#!/bin/sh\ncd "$KAIZEN_WORKDIR"\nmkdir a\ntouch a/b\nchmod 500 a\necho "{\\"output\\": \\"$PWD\\"}"\n')
        record = self.one("./agent", status=0)
        self.assertFalse(os.path.exists(record["output"]))
        self.assertFalse(os.path.exists(os.path.dirname(record["output"])))
        self.assertIn("kaizen-work-", record["output"])

    def test_the_environment_names_the_trial(self):
        self.runner('#!/bin/sh\necho "{\\"output\\": \\"$KAIZEN_CASE_ID $KAIZEN_STAGE $KAIZEN_TRIAL $KAIZEN_SEED $KEPT\\"}"\n')
        with mock.patch.dict(os.environ, {"KEPT": "inherited"}):
            record = self.one("./agent", status=0)
        self.assertEqual(record["output"], f"c1 s 1 {kaizen.trial_seed(7, 'c1', 1)} inherited")

    def test_a_program_that_cannot_be_executed_ends_the_run_before_it_begins(self):
        self.runner("neither a script nor a binary\n")
        done = self.run_stage(status=2)
        self.assertIn("'./agent' cannot be started: Exec format error; nothing was run", done.stderr)
        self.assertEqual(sorted(path.name for path in Path("imp").iterdir()), ["evaluation.json", "test_cases.jsonl"])

    def test_one_that_meddles_with_the_stage_file_is_noticed(self):
        for meddling in ("rm -f imp/s.jsonl", "echo '{}' >> imp/s.jsonl"):
            self.runner(f"#!/bin/sh\n[ $KAIZEN_CASE_ID != c3 ] || {{ {meddling}; }}\necho '{{\"output\": 1}}'\n")
            with self.subTest(meddling):
                self.assertIn("imp/s.jsonl: was changed by another program", self.run_stage(status=2).stderr)
            for path in Path("imp").glob("s.*"):
                path.unlink()

    def test_a_program_that_vanishes_midway_is_an_error_of_the_environment(self):
        self.runner("#!/bin/sh\nrm -f agent\necho '{\"output\": 1}'\n")
        self.run_stage(status=4)
        self.assertEqual(list(self.statuses().values()), ["completed", "error", "error", "error"])
        self.assertEqual(read_lines("imp/s.jsonl")[1]["error"]["class"], "environment")


class InProcess(StageRun):
    """`run_stage` as other commands call it."""

    def test_it_says_what_came_of_the_run(self):
        project = kaizen.load_project("imp")
        request = kaizen.RunRequest(project.improvement, "s", project.dataset, 7, ["./agent"], repetitions=2, jobs=2, progress="none")
        summary = kaizen.run_stage(request)
        self.assertEqual((summary.planned, summary.selected, summary.ran, summary.unusable), (8, 8, 8, 0))
        self.assertEqual((summary.counts, summary.is_interrupted, summary.notes), ({"completed": 8}, False, []))
        with self.assertRaises(kaizen.RefusedError):
            kaizen.run_stage(request)
        self.assertEqual(kaizen.run_stage(request._replace(existing=kaizen.RESUME)).ran, 0)

    def test_a_failing_disk_ends_the_run_with_its_reason_and_the_runners(self):
        self.runner(ECHO + "[ $KAIZEN_CASE_ID = c1 ] || exec sleep 60\n")
        project = kaizen.load_project("imp")
        error = kaizen.InputError("imp/s.jsonl: cannot be written: No space left on device", "", "cannot_write")
        with mock.patch.object(kaizen.AppendLog, "append_bytes", side_effect=error), self.assertRaises(kaizen.InputError) as caught:
            kaizen.run_stage(kaizen.RunRequest(project.improvement, "s", project.dataset, 7, ["./agent"], jobs=2, progress="none"))
        self.assertIs(caught.exception, error)


if __name__ == "__main__":
    unittest.main()
