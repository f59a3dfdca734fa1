"""Options around a run: retries, environment, budgets, serial groups, events, watchdog, summary, estimate."""

import json
import os
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

from support import INSTALLED, clean_environment, kaizen, read_json, read_lines, run_cli, write, write_lines
from test_runs_bridge import ECHO, StageRun

# Fails the first two attempts at a trial as the words after it say, then answers; each attempt has a price.
FLAKY = """#!/bin/sh
read -r request
n=$(cat "tries-$KAIZEN_CASE_ID" 2>/dev/null || echo 0)
echo $((n + 1)) > "tries-$KAIZEN_CASE_ID"
[ "$n" -ge 2 ] || { %s; }
echo "{\\"output\\": \\"$n\\", \\"cost\\": {\\"total_usd\\": 0.1}}"
"""
ENVIRONMENT_ERROR = 'echo \'{"error": {"message": "down", "class": "environment"}, "cost": {"total_usd": 0.2}}\'; exit 0'
PRICED = '#!/bin/sh\necho "{\\"output\\": \\"$KAIZEN_CASE_ID\\", \\"cost\\": {\\"total_usd\\": 0.1}}"\n'


def observation(name, trial=1, stage="s"):
    """The observation of a trial."""
    return next(each for each in read_lines(f"imp/{stage}.jsonl") if (each["case_id"], each["trial"]) == (name, trial))


class Retries(StageRun):
    """A trial that the infrastructure spoilt is tried again; every attempt is kept, and its cost counts."""

    def setUp(self):
        super().setUp()
        self.make_cases(2)

    def attempts(self, *options, how, status=0):
        self.runner(FLAKY % how)
        self.run_stage(*options, status=status)
        return observation("c1")["execution"]["attempts"]

    def test_every_attempt_is_kept_with_status_error_duration_and_cost(self):
        attempts = self.attempts("--retries", "3", how=ENVIRONMENT_ERROR)
        self.assertEqual(len(attempts), 2)
        for each in attempts:
            self.assertEqual(list(each), ["status", "error", "duration_ms", "cost", "started_at"])
            self.assertEqual((each["status"], each["error"]["class"], each["cost"]), ("error", "environment", {"total_usd": 0.2}))
            self.assertGreater(each["duration_ms"], 0)
        record = observation("c1")
        self.assertEqual((record["status"], record["output"]), ("completed", "2"))

    def test_the_cost_of_every_attempt_counts_in_the_results(self):
        self.attempts("--retries", "2", how=ENVIRONMENT_ERROR)
        self.assertEqual(kaizen.trial_cost_usd(observation("c1")), 0.5)
        run_cli("evaluate", "imp", "--stage", "s")
        self.assertEqual([line["cost_usd"] for line in read_lines("imp/s.evaluated.jsonl")], [0.5, 0.5])

    def test_an_attempt_without_a_price_makes_the_cost_unknown(self):
        self.attempts("--retries", "2", how="exit 75")
        self.assertIsNone(kaizen.trial_cost_usd(observation("c1")))

    def test_when_the_attempts_are_used_up_the_last_one_stands(self):
        attempts = self.attempts("--retries", "1", how="exit 75", status=4)
        self.assertEqual(len(attempts), 1)
        self.assertEqual(observation("c1")["error"]["message"], "the runner ended with exit code 75")

    def test_each_reason_is_retried_and_others_are_not(self):
        for how, reason in (("exit 75", "exit:75"), ("echo no; exit 0", "protocol"), (ENVIRONMENT_ERROR, "environment"), ("exec sleep 9", "timeout")):
            for reasons, tries in ((reason, 3), (",".join(set(kaizen.RETRY_REASONS) - {reason}), 1)):
                with self.subTest(how=how, reasons=reasons):
                    for path in Path().glob("tries-*"):
                        path.unlink()
                    options = ("--retries", "2", "--retry-on", reasons, "--timeout", "0.2" if reason == "timeout" else "9", "--id", "c1")
                    self.attempts(*options, "--overwrite", how=how, status=0 if tries == 3 else 4)
                    self.assertEqual(int(Path("tries-c1").read_text()), tries)

    def test_another_exit_code_is_retried_when_it_is_named(self):
        self.assertEqual(self.attempts("--retries", "1", how="exit 3", status=4), [])
        for path in Path().glob("tries-*"):
            path.unlink()
        self.assertEqual(len(self.attempts("--retries", "2", "--retry-on", "exit:3,timeout", "--overwrite", how="exit 3")), 2)

    def test_an_error_of_the_agent_is_never_retried(self):
        self.assertEqual(self.attempts("--retries", "2", how='echo \'{"error": {"message": "no"}}\'; exit 0', status=4), [])

    def test_the_request_says_which_attempt_it_is(self):
        self.runner(FLAKY.replace("read -r request", "read -r request; echo \"$request\" >> requests.txt") % "exit 75")
        self.run_stage("--retries", "2", "--id", "c1")
        self.assertEqual([each["run"]["attempt"] for each in read_lines("requests.txt")], [1, 2, 3])
        self.assertEqual(len({each["run"]["seed"] for each in read_lines("requests.txt")}), 1)

    def test_a_secret_in_an_earlier_attempt_is_masked_and_listed(self):
        secret = "ghp_" + "a1B2c3D4e5" * 4
        how = f'echo \'{{"error": {{"message": "token {secret[:40]}", "class": "environment"}}}}\'; exit 0'
        attempts = self.attempts("--retries", "2", "--id", "c1", how=how)
        self.assertNotIn(secret[:40], Path("imp/s.jsonl").read_text())
        self.assertIn("***REDACTED:", attempts[0]["error"]["message"])
        pointers = [hit["pointer"] for hit in observation("c1")["redacted"]]
        self.assertEqual(pointers, [f"/execution/attempts/{index}/error/message" for index in (0, 1)])

    def test_a_persistent_runner_is_tried_again_too(self):
        write(
            "agent.py",
            "import json, sys\nseen = {}\nfor line in sys.stdin:\n    r = json.loads(line)\n    n = r['run']['attempt']\n"
            "    answer = {'output': n} if n == 3 else {'error': {'message': 'busy', 'class': 'environment'}}\n"
            "    print(json.dumps({'request': r['request'], **answer}), flush=True)\n",
        )
        self.run_stage("--persistent", "--retries", "2", command=[sys.executable, "-I", "-S", "agent.py"])
        self.assertEqual([(each["output"], len(each["execution"]["attempts"])) for each in read_lines("imp/s.jsonl")], [(3, 2), (3, 2)])


class Environment(StageRun):
    """`--env` narrows what a runner gets."""

    SHOW = '#!/bin/sh\nread -r request\necho "{\\"output\\": \\"${ONE-} ${TWO-} ${LC_TEST-} ${PATH:+path} $KAIZEN_CASE_ID\\"}"\n'

    def output(self, *options):
        self.runner(self.SHOW)
        with mock.patch.dict(os.environ, {"ONE": "first", "TWO": "second-value", "LC_TEST": "lc"}):
            self.run_stage("--id", "c1", "--overwrite", *options)
        return observation("c1")["output"]

    def test_everything_is_passed_unless_names_are_given(self):
        self.assertEqual(self.output(), "first second-value lc path c1")
        self.assertIsNone(read_json("imp/s.meta.json")["env"])

    def test_only_the_names_and_a_basic_set_are_passed(self):
        self.assertEqual(self.output("--env", "TWO"), " second-value lc path c1")

    def test_names_are_recorded_and_values_never(self):
        self.output("--env", "TWO", "--env", "ONE")
        self.assertEqual(read_json("imp/s.meta.json")["env"], ["ONE", "TWO"])
        self.assertNotIn("second-value", Path("imp/s.meta.json").read_text())

    def test_a_name_that_is_not_set_is_noted(self):
        self.assertIn("note: not set, so not passed on: NEVER_SET", self.run_stage("--env", "NEVER_SET").stderr)

    def test_other_variables_are_another_run(self):
        self.runner(self.SHOW)
        self.run_stage("--id", "c1", "--env", "ONE")
        self.assertIn("variables that are passed on", self.run_stage("--resume", "--env", "TWO", status=5).stderr)

    def test_a_value_is_refused(self):
        self.assertIn("values are never given here", self.run_stage("--env", "A=secret", status=2).stderr)


class Budgets(StageRun):
    """A run stops by itself, and the rest is `not_run`."""

    def test_beyond_the_cost_no_trial_begins(self):
        self.runner(PRICED)
        done = self.run_stage("--max-cost", "0.2", status=4)
        self.assertEqual(list(self.statuses().values()), ["completed", "completed", "not_run", "not_run"])
        self.assertIn("stopped: the cost has reached 0.20 of at most 0.20 USD", done.stdout)
        self.assertIn("cost 0.20 USD, 2 of 2 trials priced", done.stdout)
        self.assertIn("--max-cost 0.2 --progress none --resume -- ./agent", done.stdout)
        record = observation("c3")
        self.assertEqual((record["error"]["class"], record["error"]["type"]), ("cancelled", "max_cost"))
        meta = read_json("imp/s.meta.json")
        self.assertEqual((meta["stopped"]["reason"], meta["counts"]), ("max_cost", {"completed": 2, "not_run": 2}))

    def test_beyond_the_cost_no_attempt_begins(self):
        self.runner("#!/bin/sh\necho '{\"error\": {\"type\": \"busy\", \"message\": \"m\", \"class\": \"environment\"}, \"cost\": {\"total_usd\": 0.3}}'\n")
        done = self.run_stage("--max-cost", "0.5", "--retries", "9", status=4)
        self.assertIn("stopped: the cost has reached 0.60 of at most 0.50 USD", done.stdout)
        self.assertIn("cost 0.60 USD", done.stdout)

    def test_ten_dimes_are_a_dollar(self):
        self.make_cases(12)
        self.runner(PRICED)
        self.run_stage("--max-cost", "1", status=4)
        self.assertEqual(list(self.statuses().values()).count("completed"), 10)

    def test_a_trial_without_a_price_stops_it_because_the_bound_cannot_be_kept(self):
        done = self.run_stage("--max-cost", "5", status=4)
        self.assertEqual(len(self.calls()), 1)
        self.assertIn("stopped: 1 trial reported no cost, so --max-cost 5 could not be kept", done.stdout)
        self.assertEqual(read_json("imp/s.meta.json")["stopped"]["reason"], "cost_unknown")
        self.assertNotIn("cost 0", done.stdout)

    def test_after_the_minutes_no_trial_begins(self):
        self.runner(ECHO.replace("read -r", "sleep 0.03\nread -r"))
        done = self.run_stage("--max-minutes", "0.0004", status=4)
        self.assertEqual(list(self.statuses().values()), ["completed", "not_run", "not_run", "not_run"])
        self.assertIn("the 0.0004 minutes of --max-minutes are over", done.stdout)

    def test_fail_fast_stops_at_the_first_trial_without_evidence(self):
        self.runner(ECHO.replace("read -r", "[ $KAIZEN_CASE_ID != c2 ] || exit 9\nread -r"))
        done = self.run_stage("--fail-fast", status=4)
        self.assertEqual(list(self.statuses().values()), ["completed", "error", "not_run", "not_run"])
        self.assertIn("--fail-fast --progress none --only errors", done.stdout)

    def test_resuming_runs_what_was_not_run(self):
        self.runner(PRICED)
        self.run_stage("--max-cost", "0.1", status=4)
        done = self.run_stage("--resume")
        self.assertEqual(set(self.statuses().values()), {"completed"})
        self.assertIn("3 of trials that never ran", done.stderr)
        self.assertIsNone(read_json("imp/s.meta.json")["stopped"])

    def test_a_bound_reached_with_the_last_trial_stops_nothing(self):
        self.runner(PRICED)
        done = self.run_stage("--max-cost", "0.4")
        self.assertNotIn("stopped", done.stdout)
        self.assertIsNone(read_json("imp/s.meta.json")["stopped"])

    def test_an_overwrite_that_stopped_leaves_the_old_stage_and_can_go_on(self):
        self.run_stage()
        before = Path("imp/s.jsonl").read_bytes()
        self.runner(PRICED)
        done = self.run_stage("--overwrite", "--max-cost", "0.1", status=4)
        self.assertEqual(Path("imp/s.jsonl").read_bytes(), before)
        self.assertIn("--overwrite --resume", done.stdout)
        self.run_stage("--overwrite", "--resume")
        self.assertEqual([each["output"] for each in read_lines("imp/s.jsonl")], ["c1", "c2", "c3", "c4"])

    def test_the_daily_call_keeps_the_old_candidate_when_its_run_stops(self):
        self.run_stage(stage="candidate")
        before = Path("imp/candidate.jsonl").read_bytes()
        done = run_cli("test", "imp", "--max-cost", "1", "--progress", "none", "--", "./agent")
        self.assertEqual(done.status, 4, done.stdout + done.stderr)
        self.assertIn("--overwrite --resume -- ./agent", done.stdout)
        self.assertEqual(Path("imp/candidate.jsonl").read_bytes(), before)

    def test_no_further_attempt_begins_either(self):
        self.runner(FLAKY % ENVIRONMENT_ERROR)
        self.run_stage("--retries", "5", "--max-minutes", "0.0000001", status=4)
        self.assertEqual(list(self.statuses().values()), ["not_run"] * 4)

    def test_a_replay_has_no_cost_to_bound(self):
        write_lines("recorded.jsonl", [{"case_id": "c1", "output": 1}])
        done = self.run_stage("--replay", "recorded.jsonl", "--max-cost", "1", "--retries", "1", status=2, command=())
        self.assertIn("--retries and --max-cost cannot go with --replay", done.stderr)


class SerialGroups(StageRun):
    """Cases of one group never run at the same time, and nobody waits for nothing."""

    # Fails when another of its group is running; says when it began and ended.
    EXCLUSIVE = """#!/bin/sh
case $KAIZEN_CASE_ID in g*) mkdir "busy-$(echo $KAIZEN_CASE_ID | cut -c1-2)" || exit 9;; esac
sleep 0.02
case $KAIZEN_CASE_ID in g*) rmdir "busy-$(echo $KAIZEN_CASE_ID | cut -c1-2)";; esac
echo '{"output": 1}'
"""

    def grouped(self, names):
        write_lines("imp/test_cases.jsonl", [{"id": name, "input": 1, **({"serial_group": name[:2]} if name[0] == "g" else {})} for name in names])
        self.runner(self.EXCLUSIVE)

    def test_no_two_of_a_group_run_at_once(self):
        self.grouped([f"g{group}-{index}" for index in range(4) for group in (1, 2)] + [f"c{index}" for index in range(8)])
        self.run_stage("--jobs", "6", "--repetitions", "2")
        self.assertEqual(set(self.statuses().values()), {"completed"})
        self.assertEqual(len(self.statuses()), 32)

    def test_one_group_alone_does_not_deadlock(self):
        self.grouped([f"g1-{index}" for index in range(5)])
        self.run_stage("--jobs", "4")
        self.assertEqual(list(self.statuses().values()), ["completed"] * 5)

    def test_other_jobs_do_not_idle(self):
        queue = kaizen.TrialQueue(iter([(case_of("a", "g"), 1), (case_of("b", "g"), 1), (case_of("c"), 1), (case_of("d"), 1)]))
        taken = [queue.take()[0].id for _ in range(3)]
        self.assertEqual((taken, queue.take(), queue.held), (["a", "c", "d"], None, 1))
        queue.release(case_of("a", "g"))
        self.assertEqual((queue.take()[0].id, queue.held, queue.take()), ("b", 0, None))

    def test_what_waits_for_its_group_goes_first_when_it_is_free(self):
        queue = kaizen.TrialQueue(iter([(case_of(name, group), 1) for name, group in (("a", "g"), ("b", "g"), ("c", None), ("d", None))]))
        queue.take(), queue.take()
        queue.release(case_of("a", "g"))
        self.assertEqual([queue.take()[0].id, queue.take()[0].id], ["b", "d"])

    def test_a_persistent_worker_does_not_wait_for_itself(self):
        self.grouped([f"g1-{index}" for index in range(6)])
        write("agent.py", "import json, sys\nfor line in sys.stdin: print(json.dumps({'request': json.loads(line)['request'], 'output': 1}), flush=True)\n")
        for jobs in ("1", "3"):
            self.run_stage("--persistent", "--overwrite", "--jobs", jobs, command=[sys.executable, "-I", "-S", "agent.py"])
            self.assertEqual(list(self.statuses().values()), ["completed"] * 6)

    def test_a_retry_keeps_its_group(self):
        self.grouped([f"g1-{index}" for index in range(3)])
        self.runner(self.EXCLUSIVE.replace("echo '{\"output\": 1}'", "[ -e $KAIZEN_CASE_ID ] || { touch $KAIZEN_CASE_ID; exit 75; }\necho '{\"output\": 1}'"))
        self.run_stage("--jobs", "3", "--retries", "1")
        self.assertEqual([len(each["execution"]["attempts"]) for each in read_lines("imp/s.jsonl")], [1, 1, 1])


def case_of(name, group=None):
    """A case with or without a serial group."""
    return kaizen.Case(name, {"id": name, "input": 1, **({"serial_group": group} if group else {})}, "", 1, "")


class Events(StageRun):
    """JSON events for programs."""

    def run_with_events(self, *options, command=("./agent",), status=0):
        reader, writer = os.pipe()
        found = []
        with os.fdopen(reader, "rb") as stream:
            thread = threading.Thread(target=lambda: found.extend(json.loads(line) for line in stream))
            thread.start()
            self.run_stage("--events", str(writer), *options, command=command, status=status)
            os.close(writer)
            thread.join()
        return found

    def test_start_each_trial_and_end_are_told(self):
        events = self.run_with_events()
        self.assertEqual([each["event"] for each in events], ["start", *["trial"] * 4, "end"])
        self.assertEqual([events[0][key] for key in ("stage", "planned", "selected", "pending")], ["s", 4, 4, 4])
        self.assertEqual([(each["case_id"], each["status"], each["done"]) for each in events[1:-1]], [(f"c{n}", "completed", n) for n in (1, 2, 3, 4)])
        self.assertEqual((events[-1]["reason"], events[-1]["counts"]), ("completed", {"completed": 4}))

    def test_errors_attempts_and_cost_are_told(self):
        self.runner(FLAKY % ENVIRONMENT_ERROR)
        event = self.run_with_events("--retries", "1", "--id", "c1", status=4)[1]
        self.assertEqual((event["error_class"], event["attempts"], event["cost_usd"]), ("environment", 2, 0.4))

    def test_a_holdout_case_is_not_named(self):
        write_lines("imp/test_cases.jsonl", [{"id": "secret-id", "input": 1, "split": "holdout"}])
        events = self.run_with_events()
        self.assertIsNone(events[1]["case_id"])
        self.assertNotIn("secret", json.dumps(events))

    def test_a_reader_that_has_gone_does_not_break_the_run(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        self.run_stage("--events", str(writer))
        self.assertEqual(len(self.statuses()), 4)

    def test_a_reader_that_does_not_read_does_not_block_the_run(self):
        reader, writer = os.pipe()
        for each in (reader, writer):
            self.addCleanup(os.close, each)
        os.set_blocking(writer, False)
        size = 0
        while True:
            try:
                size += os.write(writer, b"x" * 4096)
            except BlockingIOError:
                break
        os.set_blocking(writer, True)
        with mock.patch.object(kaizen, "PATIENCE_SECONDS", 0.05):
            started = time.monotonic()
            stream = kaizen.EventStream(writer)
            stream.send("start")
            stream.send("trial")
            self.assertLess(time.monotonic() - started, 1)
            os.read(reader, size)
            stream.send("end")
        self.assertEqual(json.loads(os.read(reader, 4096))["lost"], 2)

    def test_a_descriptor_that_is_not_open_is_told_before_anything_runs(self):
        self.assertIn("--events 987: no file is open there for writing", self.run_stage("--events", "987", status=2).stderr)
        self.assertEqual(self.calls(), [])
        self.assertIn("from 2", self.run_stage("--events", "1", status=2).stderr)

    def test_the_runner_does_not_get_the_descriptor(self):
        self.runner("#!/bin/sh\nls /proc/self/fd > fds.txt\necho '{\"output\": 1}'\n")
        with open("events.jsonl", "wb") as stream:
            self.run_stage("--events", str(stream.fileno()), "--id", "c1")
            self.assertNotIn(str(stream.fileno()), Path("fds.txt").read_text().split()[4:])


class Watching(StageRun):
    """A run that seems to stand still says what it is waiting for."""

    def test_the_outstanding_trial_is_named(self):
        self.runner(ECHO.replace("read -r", "[ $KAIZEN_CASE_ID != c3 ] || sleep 0.5\nread -r"))
        with mock.patch.object(kaizen, "QUIET_SECONDS", 0.15):
            done = run_cli("run", "imp", "--stage", "s", "--progress", "plain", "--", "./agent")
        self.assertRegex(done.stderr, r"note: nothing has finished for \d+ ms; waiting for case 'c3', trial 1 \(for \d+ ms\)\n")
        self.assertLessEqual(done.stderr.count("nothing has finished"), 2)  # after twice as long

    def test_a_holdout_case_is_not(self):
        dog = kaizen.Watchdog(frozenset(["secret"]))
        dog.begins(case_of("secret"), 1)
        dog.begins(case_of("other"), 1)
        dog.patience = 0
        self.assertRegex(dog.complaint(), r"waiting for a holdout case \(for \d+ ms\) and 1 more$")

    def test_without_anything_outstanding_there_is_nothing_to_say(self):
        dog = kaizen.Watchdog(frozenset())
        dog.patience = 0
        self.assertEqual(dog.complaint(), "")


class Summary(StageRun):
    """What the end of a run tells."""

    def test_errors_by_class_and_cost_with_its_coverage(self):
        self.runner(
            '#!/bin/sh\ncase $KAIZEN_CASE_ID in c1) exit 3;; c2) exit 0;; c3) echo \'{"output": 1, "cost": {"total_usd": 0.0123}}\';; '
            "*) echo '{\"output\": 1}';; esac\n"
        )
        done = self.run_stage(status=4)
        self.assertIn("2 of 4 trials completed, 2 without usable evidence (1 error, 1 protocol_error)", done.stdout)
        self.assertIn("errors by class: 1 protocol and 1 runner", done.stdout)
        self.assertIn("cost 0.0123 USD, 1 of 4 trials priced", done.stdout)

    def test_the_slowest_cases_are_named_but_no_holdout_case(self):
        cases = [{"id": f"c{index}", "input": 1, "split": "holdout" if index == 4 else "development"} for index in range(1, 6)]
        write_lines("imp/test_cases.jsonl", cases)
        self.runner("#!/bin/sh\ncase $KAIZEN_CASE_ID in c2) sleep 0.05;; c4) sleep 0.1;; esac\necho '{\"output\": 1}'\n")
        with mock.patch.object(kaizen, "NOTABLE_MS", 30):
            done = self.run_stage()
        self.assertIn("slowest: 'c2' ", done.stdout)
        self.assertNotIn("c4", done.stdout)
        data = json.loads(run_cli("run", "imp", "--stage", "t", "--progress", "none", "--json", "--", "./agent").stdout)
        self.assertEqual(data["slowest"][0]["case_id"], "c2")
        self.assertEqual((data["cost_usd"], data["priced"], data["error_classes"]), (None, 0, {}))


class Estimates(StageRun):
    """`--estimate` runs nothing and says what its figures rest on."""

    def observed(self, stage, records):
        write_lines(
            f"imp/{stage}.jsonl",
            [
                {"case_id": name, "trial": trial, "status": "completed", "output": 1, "execution": {"duration_ms": ms, "attempts": []},
                 **({} if cost is None else {"cost": {"total_usd": cost}})}
                for name, trial, ms, cost in records
            ],
        )  # fmt: skip

    def test_time_and_cost_come_from_earlier_trials_of_the_same_cases(self):
        self.observed("baseline", [("c1", 1, 1000, 0.1), ("c1", 2, 3000, 0.3), ("c2", 1, 4000, None)])
        done = self.run_stage("--estimate", "--repetitions", "2", "--jobs", "2", stage="candidate")
        self.assertIn("candidate: 8 trials would be run", done.stdout)
        self.assertIn("time about 6.0 s with --jobs 2, 4 of 8 measured", done.stdout)  # (2 s + 4 s) twice, by two
        self.assertIn("cost about 0.40 USD, 2 of 8 priced", done.stdout)
        self.assertEqual((self.calls(), Path("imp/candidate.jsonl").exists()), ([], False))

    def test_evidence_of_the_stage_itself_comes_first(self):
        self.observed("baseline", [("c1", 1, 1000, 1), ("c2", 1, 1000, 1)])
        self.observed("s", [("c1", 1, 5000, 2)])
        data = json.loads(self.run_stage("--estimate", "--json", command=()).stdout)
        self.assertEqual((data["seconds"], data["cost_usd"], data["timed"], data["priced"], data["trials"]), (6.0, 3.0, 2, 2, 4))
        self.assertEqual(data["stages"], ["s", "baseline"])

    def test_what_a_resume_leaves_as_it_is_is_not_estimated(self):
        self.observed("s", [("c1", 1, 1000, 1), ("c1", 2, 1000, 1), ("c2", 1, 3000, 1), ("c3", 1, 2000, 1)])
        lines = read_lines("imp/s.jsonl")
        lines[2] |= {"status": "error", "error": {"class": "agent", "type": "x", "message": "x"}}
        lines[3] |= {"input_fingerprint": "sha256:" + "0" * 64}
        write_lines("imp/s.jsonl", lines)
        # Four cases twice; of c1 both are there, of c2 one, that of c3 was made from another input.
        for options, trials, done, seconds in (((), 4, 0, 6.0), (("--repetitions", "2"), 8, 0, 12.0), (("--resume",), 5, 3, 7.0), (("--only", "errors"), 6, 2, 10.0), (("--overwrite",), 4, 0, 6.0)):
            with self.subTest(options):
                data = json.loads(self.run_stage("--estimate", "--json", *options, command=()).stdout)
                self.assertEqual((data["trials"], data["done"], data["seconds"]), (trials, done, seconds))
        self.assertIn("s: 5 trials would be run, 3 are there", self.run_stage("--estimate", "--resume", command=()).stdout)
        ran = self.run_stage("--resume", "--json", status=4)
        self.assertEqual(json.loads(ran.stdout)["ran"], 5)

    def test_a_resume_is_estimated_with_the_repetitions_that_the_stage_has(self):
        self.run_stage("--repetitions", "3")
        lines = read_lines("imp/s.jsonl")
        write_lines("imp/s.jsonl", lines[:5])
        data = json.loads(self.run_stage("--estimate", "--resume", "--json").stdout)
        self.assertEqual((data["trials"], data["done"]), (7, 5))

    def test_figures_beyond_all_numbers_are_told_as_that(self):
        self.observed("s", [(f"c{number}", 1, 1e300, 1e308) for number in (1, 2, 3, 4)])
        done = self.run_stage("--estimate", command=())
        self.assertIn("time about 1.1e+294 h", done.stdout)
        self.assertIn("cost too large to add up", done.stdout)
        self.assertIsNone(json.loads(self.run_stage("--estimate", "--json", command=()).stdout)["cost_usd"])

    def test_without_evidence_nothing_is_known(self):
        done = self.run_stage("--estimate", command=())
        self.assertIn("time and cost are not known", done.stdout)
        data = json.loads(self.run_stage("--estimate", "--json", command=()).stdout)
        self.assertEqual((data["seconds"], data["cost_usd"]), (None, None))


class Json(StageRun):
    """With --json the answer is one document whatever happens."""

    def test_a_run_that_stopped_says_why(self):
        argv = [sys.executable, str(INSTALLED), "run", "imp", "--stage", "s", "--progress", "none", "--max-cost", "1", "--json", "--", "./agent"]
        done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        self.assertEqual((done.returncode, answer["code"], answer["reason"]), (4, 4, "cost_unknown"))


if __name__ == "__main__":
    unittest.main()
