"""Every hard ending of a run: what is on disk afterwards, and that the run can go on from there.

Interrupts, kills and a full disk in an overwrite are in test_runs_bridge and test_runs_field_cases.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from support import BUNDLE, clean_environment, read_json, read_lines, write, write_lines
from test_foundation_process import dies_within
from test_runs_bridge import ECHO, PYTHON, StageRun


def can_freeze(folder):
    """True when a folder can be made read-only for this user, whom modes may not bind."""
    if os.getuid():
        return True
    if not shutil.which("chattr") or subprocess.run(["chattr", "+i", folder], capture_output=True, check=False).returncode:
        return False
    thaw(folder)
    return True


def thaw(folder):
    """Makes the folder writable again."""
    subprocess.run(["chattr", "-i", folder] if not os.getuid() else ["chmod", "u+w", folder], capture_output=True, check=False)


class Disk(StageRun):
    """The disk says no: what was recorded stays and can be gone on with."""

    FREEZE = "chmod a-w imp; [ $(id -u) != 0 ] || chattr +i imp"

    def freezing_at(self, name):
        if not can_freeze("imp"):
            self.skipTest("no folder can be made read-only here")
        self.addCleanup(thaw, str(self.folder / "imp"))
        self.runner(ECHO.replace("read -r", f"[ $KAIZEN_CASE_ID != {name} ] || [ -e go ] || {{ {self.FREEZE}; }}\nread -r"))

    def thaw(self):
        thaw("imp")
        write("go", "")

    def test_a_folder_that_becomes_read_only_keeps_what_is_recorded(self):
        self.freezing_at("c3")
        write_lines("imp/test_cases.jsonl", [{"id": f"c{index}", "input": index, "serial_group": "g"} for index in (1, 2, 3, 4)])
        done = self.run_stage("--jobs", "2", status=2)
        self.assertIn("cannot be written", done.stderr)
        self.assertIn("imp/s.", done.stderr)
        self.assertEqual(list(self.statuses()), ["c1 1", "c2 1", "c3 1", "c4 1"])  # its lines are appended to a file that is open
        self.thaw()
        self.run_stage("--resume")
        self.assertEqual(len(self.calls()), 4)
        self.assertTrue(read_json("imp/s.meta.json")["complete"])

    def test_one_that_is_read_only_before_the_first_line_ends_the_run(self):
        self.freezing_at("c1")
        done = self.run_stage(status=2)
        self.assertIn("imp/s.meta.json: cannot be written", done.stderr)
        self.assertEqual(len(self.calls()), 1)
        self.thaw()
        self.assertFalse(Path("imp/s.jsonl").exists())
        self.run_stage()
        self.assertEqual(len(self.statuses()), 4)

    def test_one_that_is_read_only_from_the_start_runs_nothing(self):
        self.freezing_at("none")
        subprocess.run(["sh", "-c", self.FREEZE], check=True)
        self.assertIn("imp/s.lock: cannot be written", self.run_stage(status=2).stderr)
        self.assertEqual(self.calls(), [])

    def test_one_that_is_removed_is_told(self):
        self.runner(ECHO.replace("read -r", "[ $KAIZEN_CASE_ID != c3 ] || mv imp elsewhere\nread -r"))
        done = self.run_stage(status=2)
        self.assertIn("imp/s.jsonl: was changed by another program meanwhile", done.stderr)
        self.assertEqual([line["case_id"] for line in read_lines("elsewhere/s.jsonl")], ["c1", "c2", "c3", "c4"])
        os.rename("elsewhere", "imp")
        self.run_stage("--resume")
        self.assertEqual(len(self.calls()), 4)

    def test_a_disk_that_is_full_midway_loses_no_line(self):
        self.make_cases(40)
        self.runner('#!/bin/sh\necho "$KAIZEN_CASE_ID" >> calls.txt\nprintf \'{"output": "%0450d"}\\n\' 7\n')
        argv = [sys.executable, str(BUNDLE), "run", "imp", "--stage", "s", "--progress", "none", "--", "./agent"]
        limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *argv]
        done = subprocess.run(limited, env=clean_environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("imp/s.jsonl: cannot be written", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        saved = [line["case_id"] for line in read_lines("imp/s.jsonl")]
        self.assertEqual(saved, self.calls()[: len(saved)])
        self.assertGreaterEqual(len(saved), len(self.calls()) - 1)
        self.run_stage("--resume")
        self.assertEqual(list(self.statuses()), [f"c{index} 1" for index in range(1, 41)])


class Runners(StageRun):
    """A runner that does what no runner should."""

    def one(self, *command, options=(), status=4):
        self.run_stage("--id", "c1", "--overwrite", *options, status=status, command=command)
        return read_lines("imp/s.jsonl")[0]

    def peak_mib(self, *command):
        """Peak memory of a real `kaizen run` of one case beyond that of `kaizen --version`, in MiB."""
        run = ["run", "imp", "--stage", "s", "--overwrite", "--id", "c1", "--progress", "none", "--", *command]
        return self.process_peak_mib(*run) - self.process_peak_mib("--version")

    def process_peak_mib(self, *words):
        """Peak memory of `kaizen words…`, in MiB."""
        argv = [sys.executable, str(BUNDLE), *words]
        # By a small process of its own: what a process begins with is that of its parent.
        code = "import os, sys\npid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])\nprint(os.wait4(pid, 0)[2].ru_maxrss)"
        done = subprocess.run([*PYTHON, "-c", code, *argv], env=clean_environment(), capture_output=True, text=True, check=True)
        return int(done.stdout.split()[-1]) / (1 << 20 if sys.platform == "darwin" else 1 << 10)

    def test_a_gigabyte_on_standard_output_is_cut_at_the_limit(self):
        self.assertLess(self.peak_mib("head", "-c", "1073741824", "/dev/zero"), 40)
        record = read_lines("imp/s.jsonl")[0]
        self.assertEqual((record["status"], record["error"]["type"]), ("protocol_error", "too_much_output"))
        self.assertLess(os.path.getsize("imp/s.jsonl"), 5000)

    def test_a_gigabyte_on_standard_error_leaves_its_tail(self):
        self.assertLess(self.peak_mib("sh", "-c", "head -c 1073741824 /dev/zero | tr '\\0' x >&2; echo end >&2; echo '{\"output\": 1}'"), 10)
        record = read_lines("imp/s.jsonl")[0]
        self.assertEqual((record["status"], record["output"]), ("completed", 1))
        tail = record["execution"]["stderr_tail"]
        self.assertTrue(tail.startswith("[1,073,737,732 bytes of standard error before this were cut]") and tail.endswith("xend\n"), tail[:80])

    def test_one_that_closes_its_input_early_is_heard(self):
        write_lines("imp/test_cases.jsonl", [{"id": "c1", "input": "x" * 1_000_000}])
        record = self.one("sh", "-c", "exec 0<&-; sleep 0.02; echo '{\"output\": 1}'", status=0)
        self.assertEqual((record["status"], record["output"]), ("completed", 1))

    def test_of_two_answers_the_last_one_counts_and_the_first_is_kept_as_log(self):
        record = self.one("printf", '{"output": "first"}\\n{"output": "second"}\\n', status=0)
        self.assertEqual((record["output"], record["log"]), ("second", '{"output": "first"}'))

    def test_one_that_ignores_term_and_closes_its_output_is_killed(self):
        write("stubborn.py", "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('pid', 'w').write(str(os.getpid()))\n"
                             "os.close(1)\nos.close(2)\nwhile True: time.sleep(1)\n")  # fmt: skip
        record = self.one(*PYTHON, "stubborn.py", options=("--timeout", "0.3"))
        self.assertEqual(record["status"], "timeout")
        self.assertTrue(dies_within(int(Path("pid").read_text()), 20))

    # Leaves the group and its parents, as a daemon does; PIPES says whether it keeps them.
    DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('daemon', 'w').write(str(os.getpid()))
        if not %d:
            for each in (0, 1, 2): os.close(each)
        time.sleep(60)
    os._exit(0)
os.wait()
while not os.path.exists('daemon') or not open('daemon').read(): time.sleep(0.005)
print('{"output": 1}', flush=True)
time.sleep(%d)
"""

    @unittest.skipUnless(os.path.exists("/proc/self/environ"), "only where /proc tells whose a process is")
    def test_one_that_forks_twice_and_keeps_the_pipe_is_ended_and_its_answer_counts(self):
        write("daemon.py", self.DAEMON % (1, 0))
        record = self.one(*PYTHON, "daemon.py", status=0)
        self.assertEqual((record["status"], record["output"]), ("completed", 1))
        self.assertTrue(dies_within(int(Path("daemon").read_text()), 20))

    @unittest.skipUnless(os.path.exists("/proc/self/environ"), "only where /proc tells whose a process is")
    def test_one_that_forks_twice_is_found_after_a_time_out(self):
        write("daemon.py", self.DAEMON % (0, 60))
        record = self.one(*PYTHON, "daemon.py", options=("--timeout", "0.5"))
        self.assertEqual(record["status"], "timeout")
        self.assertTrue(dies_within(int(Path("daemon").read_text()), 20))


class Interrupts(StageRun):
    """An interrupt while options are at work."""

    def test_while_a_trial_is_tried_again_its_attempts_are_run_again(self):
        self.runner("#!/bin/sh\n[ $KAIZEN_CASE_ID != c2 ] || [ -e go ] || { [ -e first ] && touch second && exec sleep 60; touch first; exit 75; }\necho '{\"output\": 1}'\n")
        tool = self.start("--retries", "3")
        self.await_file("second")
        tool.send_signal(2)
        out, err = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 130, err)
        self.assertIn("--retries 3", out)
        self.assertEqual(list(self.statuses()), ["c1 1"])
        write("go", "")
        self.run_stage("--retries", "3", "--resume")
        self.assertEqual(set(self.statuses().values()), {"completed"})

    def test_while_a_bound_is_reached_nothing_is_recorded_as_not_run(self):
        # c1 waits for c2: once it has answered without a price the bound is reached, and nothing more is started.
        wait = "while [ ! -e started ]; do sleep 0.01; done"
        self.runner(f"#!/bin/sh\n[ $KAIZEN_CASE_ID != c2 ] || {{ touch started; exec sleep 60; }}\n{wait}\necho '{{\"output\": 1}}'\n")
        tool = self.start("--max-cost", "1", "--jobs", "2")
        self.await_file("started")
        self.await_file("imp/s.jsonl", '"c1"')
        tool.send_signal(15)
        out, err = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 130, out + err)
        self.assertEqual(list(self.statuses()), ["c1 1"])

    def test_while_others_wait_for_their_group_nobody_hangs(self):
        write_lines("imp/test_cases.jsonl", [{"id": f"c{index}", "input": 1, "serial_group": "g"} for index in range(4)])
        self.runner("#!/bin/sh\ntouch started\nexec sleep 60\n")
        tool = self.start("--jobs", "4", "--json")
        self.await_file("started")
        tool.send_signal(2)
        out, _ = tool.communicate(timeout=60)
        self.assertEqual((tool.returncode, json.loads(out)["ran"]), (130, 0))

    def test_kept_files_of_a_killed_trial_do_not_stay(self):
        self.runner('#!/bin/sh\n[ -e go ] || echo old > "$KAIZEN_WORKDIR/old"\necho x > "$KAIZEN_WORKDIR/new"\necho \'{"output": 1}\'\n')
        self.run_stage("--keep", "*")
        lines = Path("imp/s.jsonl").read_bytes().splitlines(keepends=True)
        Path("imp/s.jsonl").write_bytes(lines[0])  # as after a kill between files and line
        write("go", "")
        self.run_stage("--keep", "*", "--resume")
        found = sorted(path.name for path in Path("imp/s.files").rglob("*") if path.is_file())
        self.assertEqual(found, ["new"] * 4 + ["old"])


if __name__ == "__main__":
    unittest.main()
