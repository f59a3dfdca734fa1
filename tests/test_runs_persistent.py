"""Persistent runners: windows, blame, restarts, hostile processes, interrupts."""

import json
import os
import signal
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

from support import kaizen, read_json, read_lines, run_cli, write, write_lines
from test_foundation_process import dies_within
from test_runs_bridge import StageRun, without_execution

# What every runner here begins with: it notes its start and each request; `answer` repeats the number.
HEAD = """
import json, os, sys, time
open("starts.txt", "a").write(f"{os.getpid()}\\n")
def requests():
    for line in sys.stdin:
        request = json.loads(line)
        open("seen.txt", "a").write(request["case"]["id"] + "\\n")
        yield request
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
def answer(request, **fields):
    say(json.dumps({"request": request["request"], **(fields or {"output": request["case"]["id"]})}))
"""
ECHO = "for request in requests(): answer(request)"


class PersistentRun(StageRun):
    """An improvement of four cases and a persistent runner in Python."""

    def setUp(self):
        super().setUp()
        self.runner(ECHO)

    def runner(self, text):
        write("agent.py", HEAD + text)

    def run_stage(self, *options, status=0, stage="s", command=(sys.executable, "-I", "-S", "agent.py")):
        if status is None:
            done = run_cli("run", "imp", "--stage", stage, "--progress", "none", "--persistent", *options, "--", *command)
            self.assertIn(done.status, (0, 4), done.stderr)
            return done
        return super().run_stage("--persistent", *options, stage=stage, status=status, command=command)

    def start(self, *options, stage="s", command=(sys.executable, "-I", "-S", "agent.py")):
        return super().start("--persistent", *options, stage=stage, command=command)

    def records(self, stage="s"):
        return {record["case_id"]: record for record in read_lines(f"imp/{stage}.jsonl")}

    def starts(self):
        return [int(pid) for pid in Path("starts.txt").read_text().split()]

    def errors(self):
        return {name: (record["error"]["class"], record["error"]["type"]) for name, record in self.records().items() if "error" in record}


class Answering(PersistentRun):
    """One process, numbered requests, one answer each."""

    def test_one_process_answers_all_trials(self):
        self.make_cases(300)
        done = self.run_stage("--repetitions", "2")
        self.assertIn("600 of 600 trials completed", done.stdout)
        self.assertEqual(len(self.starts()), 1)
        records = read_lines("imp/s.jsonl")
        self.assertTrue(all(record["output"] == record["case_id"] for record in records))
        self.assertEqual([record["trial"] for record in records], [1] * 300 + [2] * 300)
        self.assertEqual(read_json("imp/s.meta.json")["mode"], "persistent")
        self.assertTrue(dies_within(self.starts()[0], 20))

    def test_a_request_has_what_the_protocol_says_and_its_number(self):
        self.runner("for request in requests(): answer(request, output=[request, sorted(n for n in os.environ if n.startswith('KAIZEN'))])")
        with mock.patch.dict(os.environ, {"KAIZEN_CASE_ID": "outer", "KAIZEN_TRIAL": "9", "KAIZEN_SEED": "9"}):
            self.run_stage("--id", "c1", "--id", "c2")
        request, names = self.records()["c2"]["output"]
        self.assertEqual(
            request,
            {
                "protocol": "1.2",
                "case": {"id": "c2", "input": 2, "context": None},
                "run": {"stage": "s", "trial": 1, "repetitions": 1, "attempt": 1, "seed": kaizen.trial_seed(7, "c2", 1)},
                "request": 2,
            },
        )
        self.assertEqual(names, ["KAIZEN_STAGE", "KAIZEN_WORKDIR"])

    def test_the_work_folder_lasts_as_long_as_the_process(self):
        code = "place = os.environ['KAIZEN_WORKDIR']\nfor request in requests():\n"
        self.runner(f"{code}    answer(request, output=[place, len(os.listdir(place))])\n    open(f'{{place}}/{{request[\"request\"]}}', 'w')\n")
        self.run_stage()
        outputs = [record["output"] for record in self.records().values()]
        self.assertEqual([number for _, number in outputs], [0, 1, 2, 3])
        self.assertEqual(len({place for place, _ in outputs}), 1)
        self.assertFalse(os.path.exists(outputs[0][0]))

    def test_each_job_has_its_process(self):
        self.make_cases(40)
        self.runner("for request in requests(): time.sleep(0.005); answer(request, output=os.getpid())")
        self.run_stage("--jobs", "3")
        self.assertEqual({record["output"] for record in self.records().values()}, set(self.starts()))
        self.assertEqual(len(self.starts()), 3)

    def test_all_fields_and_errors_of_the_protocol_come_through(self):
        self.runner("""for request in requests():
    if request["case"]["id"] == "c1":
        answer(request, output=None, tool_calls=[{"name": "f"}], cost={"total_usd": 0.5}, passed=True, surplus=1)
    elif request["case"]["id"] == "c2":
        answer(request, error={"type": "quota", "message": "used up", "class": "environment"})
    else:
        answer(request, output=1, steps=[{"name": "no kind"}])
""")
        self.run_stage(status=4)
        record = self.records()["c1"]
        self.assertEqual((record["output"], record["steps"]), (None, [{"kind": "tool", "name": "f"}]))
        self.assertEqual((record["cost"], record["metadata"]), ({"total_usd": 0.5}, {"claimed": {"passed": True}}))
        self.assertIn("'surplus' is not in the protocol", record["notes"][0])
        wanted = {"c2": ("environment", "quota"), "c3": ("protocol", "wrong_shape"), "c4": ("protocol", "wrong_shape")}
        self.assertEqual(self.errors(), wanted)
        self.assertEqual(len(self.starts()), 1, "an answer of the wrong shape is in step all the same")

    def test_answers_may_come_in_any_order(self):
        self.make_cases(40)
        self.runner("""import select
held = []
while True:
    ready = select.select([0], [], [], 0.02)[0]
    if ready:
        line = sys.stdin.buffer.raw.readline()
        if not line: break
        held.append(json.loads(line))
    if held and (not ready or len(held) == 4):
        for request in reversed(held): answer(request)
        held = []
""")
        self.run_stage()
        self.assertTrue(all(record["output"] == name for name, record in self.records().items()))
        self.assertEqual(list(self.records()), [f"c{number}" for number in range(1, 41)])

    def test_requests_are_sent_ahead_only_while_answers_come_fast(self):
        self.make_cases(30)
        self.runner("""import select
for number, line in enumerate(iter(sys.stdin.buffer.raw.readline, b"")):
    if number > 15: time.sleep(0.03)
    request = json.loads(line)
    answer(request, output=bool(select.select([0], [], [], 0.002)[0]))
""")
        self.run_stage()
        waiting = [record["output"] for record in self.records().values()]
        self.assertTrue(any(waiting[:16]))
        self.assertFalse(any(waiting[25:]), waiting)

    def test_a_request_larger_than_a_pipe_and_an_answer_of_the_largest_size_pass(self):
        write_lines("imp/test_cases.jsonl", [{"id": f"c{number}", "input": "x" * 300_000} for number in range(1, 13)])
        self.runner("for request in requests(): answer(request, output='y' * (8_388_608 - 40 if request['case']['id'] == 'c5' else 9))")
        self.run_stage()
        self.assertEqual(len(self.records()["c5"]["output"]), 8_388_608 - 40)

    def test_an_answer_without_line_end_before_the_end_counts(self):
        self.runner("for request in requests(): sys.stdout.write(json.dumps({'request': request['request'], 'output': 1})); break")
        done = self.run_stage()
        self.assertEqual(len(self.starts()), 4)
        self.assertIn("ended with exit code 0 between two trials", done.stderr)

    def test_it_gives_the_observations_of_a_process_per_trial(self):
        self.make_cases(30)
        self.run_stage()
        single = HEAD + "request = json.load(sys.stdin)\nsay(json.dumps({'output': request['case']['id']}))"
        write("single.py", single)
        StageRun.run_stage(self, stage="t", command=(sys.executable, "-I", "-S", "single.py"))
        self.assertEqual(without_execution("imp/s.jsonl"), without_execution("imp/t.jsonl"))


class LogAndTime(PersistentRun):
    """Log lines, standard error and time belong to a trial that is alone in flight."""

    def test_log_lines_are_kept_as_log_of_their_trial(self):
        self.make_cases(20)
        self.runner("""for request in requests():
    name = request["case"]["id"]
    say(f"thinking about {name}"); say('{"level": "info", "case": "%s"}' % name); print("to stderr", name, file=sys.stderr, flush=True)
    answer(request)
""")
        self.run_stage()
        for name, record in self.records().items():
            self.assertEqual(record["log"], f'thinking about {name}\n{{"level": "info", "case": "{name}"}}')
            self.assertEqual(record["execution"]["stderr_tail"], f"to stderr {name}\n")

    def test_log_of_nobody_is_noted_and_not_kept(self):
        self.make_cases(20)
        self.runner("""import select
has_said = False
for line in iter(sys.stdin.buffer.raw.readline, b""):
    if not has_said and select.select([0], [], [], 0)[0]:
        has_said = True
        say("to whom?")
        time.sleep(0.005)
    answer(json.loads(line))
""")
        done = self.run_stage()
        self.assertTrue(all("log" not in record for record in self.records().values()))
        self.assertIn("note: lines on standard output that belong to no single trial were not kept", done.stderr)

    def test_secrets_are_masked_wherever_they_stand(self):
        self.make_cases(3)
        self.runner("""key = os.environ["MY_API_KEY"]
for request in requests():
    print("with", key, file=sys.stderr, flush=True); say("log " + key)
    if request["case"]["id"] == "c3": sys.exit(3)
    answer(request, output={"used": key})
""")
        with mock.patch.dict(os.environ, {"MY_API_KEY": "q7Zx-vb81-Lm"}):
            self.run_stage(status=4)
        text = Path("imp/s.jsonl").read_text()
        self.assertNotIn("q7Zx-vb81-Lm", text)
        pointers = [hit["pointer"] for hit in self.records()["c1"]["redacted"]]
        self.assertEqual(sorted(pointers), ["/execution/stderr_tail", "/log", "/output/used"])
        self.assertIn("REDACTED", self.records()["c3"]["error"]["stdout_excerpt"])

    def test_a_trials_clock_begins_at_the_answer_before_it(self):
        self.make_cases(12)
        self.runner("""for request in requests():
    if request["request"] == 6: time.sleep(0.1)
    answer(request)
""")
        self.run_stage("--timeout", "5")
        times = {name: record["execution"]["duration_ms"] for name, record in self.records().items()}
        self.assertEqual([name for name, took in times.items() if took >= 80], ["c6"], times)
        self.assertLess(times["c6"], 300)
        self.assertTrue(all(took >= 0 for took in times.values()), times)


class Restarts(PersistentRun):
    """Whoever the process was on gets the error; the others are sent again."""

    def setUp(self):
        super().setUp()
        self.make_cases(12)

    def others_completed(self, *blamed):
        records = self.records()
        self.assertEqual(list(records), [f"c{number}" for number in range(1, 13)])
        for name, record in records.items():
            if name not in blamed:
                self.assertEqual((record["status"], record.get("output")), ("completed", name))
                self.assertEqual(record["execution"]["attempts"], [])

    def once(self, code, *, other="answer(request)", after=""):
        """A runner that does *code* at case c6, after some fast answers."""
        indented = code.replace("\n", "\n        ")
        self.runner(f"for request in requests():\n    if request['case']['id'] == 'c6':\n        {indented}\n    else: {other}\n{after}")

    def test_a_time_out_ends_the_process_and_costs_one_trial(self):
        self.once("print('hm', file=sys.stderr, flush=True); time.sleep(60)")
        self.run_stage("--timeout", "0.3", status=4)
        self.others_completed("c6")
        record = self.records()["c6"]
        self.assertEqual((record["status"], record["error"]["class"], record["error"]["stderr_tail"]), ("timeout", "timeout", "hm\n"))
        self.assertEqual(record["error"]["message"], "no answer within 0.3 s; the runner was ended")
        self.assertLess(abs(record["execution"]["duration_ms"] - 300), 150)
        self.assertEqual(len(self.starts()), 2)
        self.assertGreater(Path("seen.txt").read_text().split().count("c6"), 0)
        for pid in self.starts():
            self.assertTrue(dies_within(pid, 20))

    def test_a_process_that_dies_costs_the_oldest_unanswered(self):
        for code, wanted, exit_code in (
            ("sys.exit(3)", ("runner", "exit"), 3),
            ("sys.exit(0)", ("runner", "exit"), 0),
            ("os.kill(os.getpid(), 9)", ("runner", "signal"), -9),
            ("sys.stdout.write('{\"request\": 6, \"out'); sys.stdout.flush(); os._exit(4)", ("runner", "exit"), 4),
        ):
            with self.subTest(code):
                self.once(code)
                self.run_stage("--overwrite", status=4)
                self.others_completed("c6")
                self.assertEqual(self.errors(), {"c6": wanted})
                self.assertEqual(self.records()["c6"]["execution"]["exit_code"], exit_code)
                self.assertIn("before it answered", self.records()["c6"]["error"]["message"])

    def test_one_that_closes_its_output_is_ended(self):
        self.once("os.close(1); time.sleep(60)")
        self.run_stage(status=4)
        self.others_completed("c6")
        self.assertEqual(self.errors(), {"c6": ("runner", "closed")})

    def test_one_that_closes_its_input_after_an_answer_is_started_anew(self):
        write_lines("imp/test_cases.jsonl", [{"id": f"c{number}", "input": "x" * 80_000} for number in range(1, 13)])
        self.runner("for request in requests():\n    answer(request)\n    if request['case']['id'] == 'c6': os.close(0); time.sleep(60)\n")
        with mock.patch.object(kaizen, "GRACE_SECONDS", 0.05):
            done = self.run_stage()
        self.others_completed()
        self.assertEqual(len(self.starts()), 2)
        self.assertIn("closed its standard input between two trials", done.stderr)

    def test_a_broken_answer_costs_its_own_trial_and_no_restart(self):
        for code, wanted in (
            ("say('{\"request\": %d, \"output\": NaN}' % request['request'])", "not_json"),
            ("say('{\"request\": %d, \"output\": 1' % request['request'])", "not_json"),
            ("sys.stdout.buffer.write(b'{\"request\": %d, \"output\": \"\\xff\"}\\n' % request['request']); sys.stdout.flush()", "not_utf8"),
            ("answer(request, outptu=1)", "no_output"),
        ):
            with self.subTest(code):
                Path("starts.txt").unlink(missing_ok=True)
                self.once(code)
                self.run_stage("--overwrite", status=4)
                self.others_completed("c6")
                self.assertEqual(self.errors(), {"c6": ("protocol", wanted)})
                self.assertEqual(len(self.starts()), 1)

    def test_an_answer_to_nobody_is_a_protocol_error_of_the_oldest(self):
        for code, wanted in (
            ("say('{\"request\": 999, \"output\": 1}')", "unknown_request"),
            ("say('{\"request\": \"6\", \"output\": 1}')", "unknown_request"),
            ("say('{\"request\": 2, \"output\": 1}')", "duplicate_answer"),
            ("say('{\"output\": 1}')", "no_request"),
        ):
            with self.subTest(code):
                self.once(code)
                self.run_stage("--overwrite", status=4)
                self.others_completed("c6")
                self.assertEqual(self.errors(), {"c6": ("protocol", wanted)})
                self.assertIn("stdout_excerpt", self.records()["c6"]["error"])

    def test_a_repaired_surrogate_is_noted(self):
        self.once("say('{\"request\": %d, \"output\": \"\\\\ud83d\"}' % request['request'])")
        self.run_stage()
        self.assertEqual(self.records()["c6"]["output"], "\ufffd")
        self.assertIn("surrogate", self.records()["c6"]["notes"][0])

    def test_a_bad_end_after_the_last_answer_is_noted(self):
        for code, told in (("sys.exit(3)", "ended with exit code 3 after its last answer"), ("answer(request)", "answered again")):
            with self.subTest(code):
                self.runner(f"for request in requests(): answer(request)\n{code}")
                done = self.run_stage("--overwrite")
                self.assertIn(told, done.stderr)


class Hostile(PersistentRun):
    """Whatever it does, the run ends, nothing is lost, and the restarts are bounded."""

    def setUp(self):
        super().setUp()
        self.make_cases(12)

    def test_one_that_answers_everything_twice(self):
        self.runner("for request in requests(): answer(request); answer(request)")
        done = self.run_stage(status=None)
        self.assertEqual(len(self.records()), 12)
        self.assertLessEqual(set(self.errors().values()), {("protocol", "duplicate_answer")})
        self.assertGreater(len(self.errors()) + ("twice" in done.stderr), 0)
        self.assertTrue(all(record["output"] == name for name, record in self.records().items() if "output" in record))
        self.assertLessEqual(len(self.starts()), 13)

    def test_one_that_prints_garbage(self):
        self.make_cases(3)
        self.runner("for request in requests(): say('I would rather talk.')")
        self.run_stage("--timeout", "0.2", status=4)
        self.assertEqual(self.errors(), dict.fromkeys(("c1", "c2", "c3"), ("timeout", "timeout")))
        self.assertIn("I would rather talk.", self.records()["c1"]["error"]["stdout_excerpt"])

    def test_one_that_writes_a_gigabyte_on_one_line(self):
        self.runner("for request in requests():\n    if request['case']['id'] != 'c2': answer(request); continue\n"
                    "    for _ in range(1024): os.write(1, b'x' * (1 << 20))\n")
        started = time.monotonic()
        self.run_stage(status=4)
        self.assertEqual(self.errors(), {"c2": ("protocol", "too_much_output")})
        self.assertLess(len(json.dumps(self.records()["c2"])), 2000)
        self.assertLess(time.monotonic() - started, 10)

    def test_one_that_writes_log_without_end(self):
        self.make_cases(2)
        self.runner("for request in requests():\n    while True: os.write(1, b'log\\n' * 10000)\n")
        self.run_stage(status=4)
        self.assertEqual(set(self.errors().values()), {("protocol", "too_much_output")})

    def test_one_that_ignores_the_gentle_signal(self):
        self.make_cases(2)
        self.runner("import signal\nsignal.signal(15, signal.SIG_IGN)\nfor request in requests():\n"
                    "    if request['case']['id'] == 'c1': time.sleep(60)\n    answer(request)")
        with mock.patch.object(kaizen, "TERM_SECONDS", 0.3):
            self.run_stage("--timeout", "0.3", status=4)
        self.assertEqual((self.errors(), self.statuses()["c2 1"]), ({"c1": ("timeout", "timeout")}, "completed"))
        for pid in self.starts():
            self.assertTrue(dies_within(pid, 20))

    def test_one_that_never_ends_by_itself_is_ended(self):
        self.runner("for request in requests(): answer(request)\ntime.sleep(60)")
        with mock.patch.object(kaizen, "TERM_SECONDS", 0.1):
            self.run_stage()
        self.assertTrue(dies_within(self.starts()[0], 20))

    def test_a_child_that_it_leaves_behind_is_ended(self):
        self.runner("import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nopen('child.txt', 'w').write(str(child.pid))\n" + ECHO)
        self.run_stage()
        self.assertTrue(dies_within(int(Path("child.txt").read_text()), 20))

    def test_one_that_closes_its_input_at_once(self):
        write_lines("imp/test_cases.jsonl", [{"id": f"c{number}", "input": "x" * 100_000} for number in range(1, 13)])
        self.runner("os.close(0); time.sleep(60)")
        with mock.patch.object(kaizen, "GRACE_SECONDS", 0.05):
            self.run_stage(status=4)
        self.assertEqual(list(self.statuses().values()), ["error"] * 5 + ["not_run"] * 7)
        self.assertEqual(self.errors()["c1"], ("runner", "closed"))
        self.assertEqual(len(self.starts()), 5)

    def test_one_that_dies_at_each_start_is_given_up_after_five(self):
        self.runner("sys.exit('no key')")
        done = self.run_stage(status=4)
        self.assertEqual(len(self.starts()), 5)
        self.assertEqual(list(self.statuses().values()), ["error"] * 5 + ["not_run"] * 7)
        self.assertEqual((self.errors()["c1"], self.errors()["c12"]), (("runner", "exit"), ("runner", "gave_up")))
        self.assertIn("no key", self.records()["c1"]["error"]["stderr_tail"])
        self.assertIn("7 not_run", done.stdout)
        self.runner(ECHO)
        done = self.run_stage("--only", "errors")
        self.assertIn("12 of 12 trials completed", done.stdout)

    def test_the_other_workers_go_on_when_one_is_given_up(self):
        self.make_cases(40)
        self.runner("""try: os.mkdir('port')
except FileExistsError: sys.exit('port in use')
for request in requests(): time.sleep(0.02); answer(request)
""")
        self.run_stage("--jobs", "2", status=4)
        statuses = list(self.statuses().values())
        self.assertEqual((statuses.count("error"), statuses.count("not_run")), (5, 0), statuses)

    def test_one_that_dies_at_every_case_but_answers_some_is_not_given_up(self):
        self.runner("for request in requests():\n    if request['run']['seed'] % 2: sys.exit(1)\n    answer(request)")
        self.run_stage(status=None)
        self.assertEqual(len(self.records()), 12)
        bad = [name for name in self.records() if kaizen.trial_seed(7, name, 1) % 2]
        self.assertEqual([name for name, record in self.records().items() if record["status"] == "error"], bad)

    def test_a_program_that_cannot_be_started_runs_nothing(self):
        write("agent", "#!/nowhere/at/all\n").chmod(0o755)
        done = self.run_stage(status=2, command=["./agent"])
        self.assertIn("cannot be started", done.stderr)
        self.assertFalse(os.path.exists("imp/s.jsonl"))


class Ended(PersistentRun):
    """Interrupts and kills of Kaizen itself."""

    SLOW = "for request in requests():\n    time.sleep(0.02 if os.path.exists('go') or request['request'] < 4 else 60)\n    answer(request)"

    def setUp(self):
        super().setUp()
        self.make_cases(12)
        self.run_stage(stage="whole")
        Path("starts.txt").unlink()
        self.wanted = without_execution("imp/whole.jsonl")

    def test_an_interrupt_saves_what_there_is_and_resume_goes_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                for path in [*Path("imp").glob("s.*"), Path("go"), Path("starts.txt")]:
                    path.unlink(missing_ok=True)
                self.runner(self.SLOW)
                tool = self.start()
                self.await_file("imp/s.jsonl", '"c3"')
                tool.send_signal(number)
                out, err = tool.communicate(timeout=60)
                self.assertEqual(tool.returncode, 130, out + err)
                self.assertIn("--persistent", out.splitlines()[-1])
                self.assertIn("--resume", out.splitlines()[-1])
                self.assertEqual(list(self.statuses()), ["c1 1", "c2 1", "c3 1"])
                self.assertTrue(dies_within(self.starts()[0], 20))
                write("go", "")
                self.run_stage("--resume")
                self.assertEqual(without_execution("imp/s.jsonl"), self.wanted)
                self.assertEqual(list(self.temporary().iterdir()), [])

    def test_kill_9_loses_at_most_what_was_in_flight_and_the_runner_ends_by_itself(self):
        self.runner(self.SLOW.replace("60", "0.1"))
        tool = self.start()
        self.await_file("imp/s.jsonl", '"c3"')
        tool.kill()
        tool.wait()
        self.assertTrue(dies_within(self.starts()[0], 20))
        write("go", "")
        self.run_stage("--resume")
        self.assertEqual(without_execution("imp/s.jsonl"), self.wanted)

    def test_a_stage_is_not_gone_on_with_in_another_way(self):
        self.runner(self.SLOW)
        tool = self.start()
        self.await_file("imp/s.jsonl", '"c3"')
        tool.kill()
        tool.wait()
        done = StageRun.run_stage(self, "--resume", status=5, command=(sys.executable, "-I", "-S", "agent.py"))
        self.assertIn("way of running (persistent then, process now)", done.stderr)


    def test_a_second_interrupt_kills_at_once(self):
        self.runner("import signal\nsignal.signal(15, signal.SIG_IGN)\n" + self.SLOW)
        tool = self.start()
        self.await_file("imp/s.jsonl", '"c3"')
        started = time.monotonic()
        tool.send_signal(signal.SIGINT)
        time.sleep(0.05)
        tool.send_signal(signal.SIGINT)
        out, err = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 130, out + err)
        self.assertLess(time.monotonic() - started, 1.9)
        self.assertTrue(dies_within(self.starts()[0], 20))
        self.assertEqual(list(self.statuses()), ["c1 1", "c2 1", "c3 1"])


class Options(PersistentRun):
    """Retries and serial groups with several requests in flight."""

    def test_a_retry_is_sent_to_the_next_process_and_both_attempts_are_kept(self):
        self.make_cases(12)
        self.runner("""for request in requests():
    if request["case"]["id"] == "c6" and request["run"]["attempt"] == 1: sys.exit(75)
    answer(request, output=request["run"]["attempt"])
""")
        self.run_stage("--retries", "2", "--retry-on", "exit:75")
        outputs = {name: record["output"] for name, record in self.records().items()}
        self.assertEqual(outputs, {**dict.fromkeys(outputs, 1), "c6": 2})
        attempts = {name: len(record["execution"]["attempts"]) for name, record in self.records().items()}
        self.assertEqual(attempts, {**dict.fromkeys(outputs, 0), "c6": 1}, "what was sent again is no attempt")

    def test_no_two_of_a_serial_group_are_in_flight(self):
        for groups in (("g", "g"), ("g", "h", None)):
            with self.subTest(groups):
                cases = [{"id": f"c{number}", "input": 1} for number in range(30)]
                for number, case in enumerate(cases):
                    if groups[number % len(groups)]:
                        case["serial_group"] = groups[number % len(groups)]
                write_lines("imp/test_cases.jsonl", cases)
                self.runner("""import select
held = []
while True:
    ready = select.select([0], [], [], 0.002)[0]
    if ready:
        line = sys.stdin.buffer.raw.readline()
        if not line: break
        held.append(json.loads(line))
    elif held:
        for request in held: answer(request, output=[each["case"]["id"] for each in held])
        held = []
""")
                self.run_stage("--overwrite", "--jobs", "2")
                group_of = {case["id"]: case.get("serial_group") for case in cases}
                self.assertEqual(len(self.records()), 30)
                for record in self.records().values():
                    together = [group_of[name] for name in record["output"] if group_of[name]]
                    self.assertEqual(len(together), len(set(together)), record["output"])


@unittest.skipUnless(sys.platform == "linux", "elsewhere the tests above run like this")
class WithoutProcessDescriptors(PersistentRun):
    """The same where the kernel has no descriptor for the end of a process."""

    def test_answers_ends_and_time_outs(self):
        self.make_cases(12)
        self.runner("""for request in requests():
    if request["case"]["id"] == "c4": sys.exit(3)
    if request["case"]["id"] == "c8": time.sleep(60)
    answer(request)
""")
        with mock.patch.object(kaizen, "open_pidfd", lambda pid: -1):
            self.run_stage("--timeout", "0.3", status=4)
        self.assertEqual(self.errors(), {"c4": ("runner", "exit"), "c8": ("timeout", "timeout")})
        self.assertEqual(self.records()["c4"]["execution"]["exit_code"], 3)
        self.assertEqual(len(self.starts()), 3)


class WrongUsage(PersistentRun):
    """What excludes what."""

    def test_ways_to_run_exclude_each_other(self):
        done = self.run_stage("--plain", status=2)
        self.assertIn("--persistent and --plain exclude each other", done.stderr)
        for option in ("--workspace", "--keep"):
            done = self.run_stage(option, "x", status=2)
            self.assertIn(f"{option} cannot go with --persistent", done.stderr)
        done = run_cli("run", "imp", "--stage", "s", "--plain", "--replay", "x")
        self.assertEqual((done.status, "--plain and --replay exclude each other" in done.stderr), (2, True))


if __name__ == "__main__":
    unittest.main()
