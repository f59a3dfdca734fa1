"""Starting programs: both pipes at once, bounds, time-outs, groups, stopping, signals."""

import os
import signal
import sys
import threading
import time
import unittest
from unittest import mock

import support
from support import kaizen, write

PYTHON = [sys.executable, "-I", "-S", "-c"]
IS_LINUX = sys.platform == "linux"


def is_alive(pid):
    """True when a process *pid* runs; one that waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not os.path.isdir("/proc")


def dies_within(pid, seconds):
    """True when process *pid* is gone before *seconds* are over."""
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@unittest.skipIf(os.name == "nt", "programs are started on Linux and macOS only")
class Running(support.TemporaryFolder):
    """What comes of one program; run again below without the kernel's process descriptors."""

    def setUp(self):
        super().setUp()
        self.descriptors = len(os.listdir("/proc/self/fd")) if IS_LINUX else 0

    def tearDown(self):
        if IS_LINUX:
            self.assertEqual(len(os.listdir("/proc/self/fd")), self.descriptors, "a descriptor was left open")
        super().tearDown()

    def run_program(self, *command, **options):
        started = time.monotonic()
        ended = kaizen.run_program(list(command), **{"timeout_seconds": 20, **options})
        self.took = time.monotonic() - started
        return ended

    def test_gives_what_was_printed_and_the_exit_code(self):
        ended = self.run_program("sh", "-c", "cat; echo problem >&2; exit 3", stdin=b"request\n")
        self.assertEqual((ended.end, ended.exit_code, ended.stdout), ("exited", 3, b"request\n"))
        self.assertEqual((ended.stderr, ended.stderr_cut), (b"problem\n", 0))
        self.assertLess(ended.seconds, 5)

    def test_a_signal_is_a_negative_exit_code(self):
        self.assertEqual(self.run_program("sh", "-c", "kill -9 $$").exit_code, -9)
        self.assertEqual(kaizen.signal_name(9), "signal 9 (SIGKILL)")

    def test_a_program_that_does_not_read_its_request_is_fine(self):
        ended = self.run_program("true", stdin=b"x" * 2_000_000)
        self.assertEqual((ended.end, ended.exit_code), ("exited", 0))

    def test_a_program_that_closes_its_input_early_is_fine(self):
        ended = self.run_program("sh", "-c", "head -c 10; exec <&-; sleep 0.05; echo done", stdin=b"y" * 2_000_000)
        self.assertEqual((ended.exit_code, ended.stdout), (0, b"y" * 10 + b"done\n"))

    def test_a_large_request_arrives_whole_while_output_is_read(self):
        request = os.urandom(3_000_000)
        ended = self.run_program("cat", stdin=request, stdout_limit=4_000_000)
        self.assertEqual(ended.stdout, request)

    def test_input_without_request_is_at_its_end(self):
        self.assertEqual(self.run_program("cat").stdout, b"")

    def test_a_flood_on_standard_error_is_cut_to_its_tail(self):
        code = "import os\nfor i in range(50): os.write(2, b'x' * 1_000_000)\nos.write(2, b'the end')\nprint('ok')"
        ended = self.run_program(*PYTHON, code, stderr_limit=1000)
        self.assertEqual((ended.end, ended.stdout, len(ended.stderr)), ("exited", b"ok\n", 1000))
        self.assertTrue(ended.stderr.endswith(b"xthe end"))
        self.assertEqual(ended.stderr_cut, 50_000_000 + 7 - 1000)

    def test_a_program_that_prints_too_much_is_ended(self):
        ended = self.run_program("yes", stdout_limit=100_000)
        self.assertEqual((ended.end, ended.exit_code, len(ended.stdout)), ("overflow", None, 100_000))
        self.assertLess(self.took, 5)

    def test_exactly_the_limit_is_not_too_much(self):
        ended = self.run_program("sh", "-c", "head -c 100000 /dev/zero", stdout_limit=100_000)
        self.assertEqual((ended.end, len(ended.stdout)), ("exited", 100_000))

    def test_a_program_that_takes_too_long_is_ended(self):
        ended = self.run_program("sleep", "60", timeout_seconds=0.2)
        self.assertEqual((ended.end, ended.exit_code), ("timeout", None))
        self.assertLess(abs(ended.seconds - 0.2), 0.2)
        self.assertLess(self.took, 2)

    def test_one_that_closes_its_output_and_goes_on_is_ended_too(self):
        ended = self.run_program("sh", "-c", "exec >&- 2>&-; exec sleep 60", timeout_seconds=0.2)
        self.assertEqual(ended.end, "timeout")
        self.assertLess(self.took, 2)

    def test_one_that_ignores_the_first_signal_is_killed(self):
        code = "import signal, time, os\nsignal.signal(15, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
        with mock.patch.object(kaizen, "TERM_SECONDS", 0.3):
            ended = self.run_program(*PYTHON, code, timeout_seconds=0.5)
        self.assertEqual(ended.end, "timeout")
        self.assertLess(abs(ended.seconds - 0.5), 0.3)
        self.assertGreater(self.took, 0.8)
        self.assertTrue(dies_within(int(ended.stdout), 20))

    def test_a_helper_that_keeps_the_pipe_ends_with_the_time_out(self):
        ended = self.run_program("sh", "-c", "sleep 60 & echo $!; wait", timeout_seconds=0.2)
        self.assertEqual(ended.end, "timeout")
        self.assertLess(self.took, 2)
        self.assertTrue(dies_within(int(ended.stdout), 20))

    def test_a_helper_that_keeps_the_pipe_does_not_spoil_a_good_end(self):
        with mock.patch.object(kaizen, "GRACE_SECONDS", 0.1):
            ended = self.run_program("sh", "-c", "sleep 60 & echo $!")
        self.assertEqual((ended.end, ended.exit_code), ("exited", 0))
        self.assertLess(ended.seconds, 1)
        self.assertLess(self.took, 3)
        self.assertTrue(dies_within(int(ended.stdout), 20))

    def test_output_that_comes_just_after_the_end_is_read(self):
        ended = self.run_program("sh", "-c", "(sleep 0.05; echo late) & exit 0")
        self.assertEqual((ended.end, ended.exit_code, ended.stdout), ("exited", 0, b"late\n"))

    def test_a_helper_without_pipes_is_ended_as_well(self):
        ended = self.run_program("sh", "-c", "sleep 60 >/dev/null 2>&1 </dev/null & echo $!")
        self.assertEqual(ended.end, "exited")
        self.assertTrue(dies_within(int(ended.stdout), 20))

    @unittest.skipUnless(IS_LINUX, "only /proc tells")
    def test_one_that_left_the_group_and_keeps_the_pipe_is_found_after_a_good_end(self):
        code = "import os, time\nos.fork() and os._exit(0)\nos.setsid()\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
        mark = b"KAIZEN_TEST_MARK=%d" % os.getpid()
        with mock.patch.object(kaizen, "GRACE_SECONDS", 0.2):
            ended = self.run_program(*PYTHON, code, environment={**os.environb, b"KAIZEN_TEST_MARK": b"%d" % os.getpid()}, mark=mark)
        self.assertEqual((ended.end, ended.exit_code), ("exited", 0))
        self.assertTrue(dies_within(int(ended.stdout), 20))
        self.assertLess(self.took, 2)

    def test_a_limit_of_weeks_is_no_limit_for_the_system(self):
        self.assertEqual(self.run_program("true", timeout_seconds=9e6).end, "exited")

    @unittest.skipUnless(IS_LINUX, "only /proc tells")
    def test_one_that_left_the_group_is_found_by_its_mark_after_a_time_out(self):
        code = (
            "import os, time\nprint(os.getpid(), flush=True)\n"
            "os.fork() or (os.setsid(), os.fork() and os._exit(0), print(os.getpid(), flush=True))\ntime.sleep(60)"
        )
        environment = {**os.environb, b"KAIZEN_TEST_MARK": b"%d" % os.getpid()}
        mark = b"KAIZEN_TEST_MARK=%d" % os.getpid()
        ended = self.run_program(*PYTHON, code, timeout_seconds=0.5, environment=environment, mark=mark)
        pids = [int(word) for word in ended.stdout.split()]
        self.assertEqual(len(pids), 2, ended)
        self.assertTrue(all(dies_within(pid, 20) for pid in pids))
        self.assertLess(self.took, 4)

    def test_a_program_that_is_not_there_cannot_be_started(self):
        with self.assertRaisesRegex(kaizen.CannotStart, "No such file"):
            self.run_program("./no-such-program")
        write("text", "neither shebang nor binary\n").chmod(0o755)
        with self.assertRaisesRegex(kaizen.CannotStart, "Exec format error"):
            self.run_program("./text")

    def test_a_stopped_run_ends_its_programs(self):
        stop = kaizen.StopSwitch()
        self.addCleanup(stop.close)
        self.descriptors += 2 if IS_LINUX else 0
        self.addCleanup(setattr, self, "descriptors", self.descriptors)
        timer = threading.Timer(0.1, stop.request)
        timer.start()
        ended = self.run_program("sleep", "60", stop=stop)
        timer.join()
        self.assertEqual(ended.end, "stopped")
        self.assertLess(self.took, 2)
        self.assertEqual(self.run_program("sleep", "60", stop=stop).end, "stopped")
        self.assertEqual(stop.running, set())

    def test_killing_ends_even_what_ignores_the_first_signal(self):
        stop = kaizen.StopSwitch()
        self.addCleanup(stop.close)
        self.descriptors += 2 if IS_LINUX else 0
        timers = [threading.Timer(0.3, stop.request), threading.Timer(0.6, stop.kill)]
        for timer in timers:
            timer.start()
        ended = self.run_program(*PYTHON, "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(60)", stop=stop)
        for timer in timers:
            timer.join()
        self.assertEqual(ended.end, "stopped")
        self.assertLess(self.took, 1.5)


class RunningWithoutDescriptors(Running):
    """The same where the kernel has no descriptor for a process."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(kaizen, "open_pidfd", lambda pid: -1)
        patch.start()
        self.addCleanup(patch.stop)

    test_one_that_left_the_group_and_keeps_the_pipe_is_found_after_a_good_end = None
    test_one_that_left_the_group_is_found_by_its_mark_after_a_time_out = None
    test_a_flood_on_standard_error_is_cut_to_its_tail = None


class Finding(support.TemporaryFolder):
    """Which file a command's first word starts."""

    def test_a_path_is_meant_from_the_working_folder(self):
        write("sub/agent", "#!/bin/sh\n").chmod(0o755)
        self.assertEqual(os.path.realpath(kaizen.find_program("./agent", str(self.folder / "sub"))), str(self.folder / "sub/agent"))
        self.assertIsNone(kaizen.find_program("./agent", str(self.folder)))

    def test_a_bare_word_is_looked_for_along_the_path(self):
        write("sub/agent", "#!/bin/sh\n").chmod(0o755)
        self.assertIsNone(kaizen.find_program("agent", str(self.folder / "sub")))
        with mock.patch.dict(os.environ, {"PATH": str(self.folder / "sub")}):
            self.assertEqual(kaizen.find_program("agent", "/"), str(self.folder / "sub/agent"))

    def test_folders_and_files_that_cannot_be_executed_are_passed_over(self):
        write("agent.py", "")
        (self.folder / "folder").mkdir()
        self.assertIsNone(kaizen.find_program("./agent.py", str(self.folder)))
        self.assertIsNone(kaizen.find_program("./folder", str(self.folder)))


class Signals(support.StrictTestCase):
    """The first signal asks to stop, the second kills; afterwards everything is as before."""

    def setUp(self):
        super().setUp()
        self.stop = kaizen.StopSwitch()
        self.addCleanup(self.stop.close)

    def test_each_of_the_signals_asks_to_stop(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            stop = kaizen.StopSwitch()
            before = signal.getsignal(number)
            with self.subTest(number), kaizen.heeding_signals(stop):
                os.kill(os.getpid(), number)
                self.assertTrue(stop.is_requested)
            self.assertIs(signal.getsignal(number), before)
            stop.close()

    def test_the_second_signal_kills(self):
        with mock.patch.object(self.stop, "kill") as kill, kaizen.heeding_signals(self.stop):
            os.kill(os.getpid(), signal.SIGINT)
            kill.assert_not_called()
            os.kill(os.getpid(), signal.SIGTERM)
            kill.assert_called_once_with()

    def test_an_ignored_signal_stays_ignored(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        with kaizen.heeding_signals(self.stop):
            os.kill(os.getpid(), signal.SIGHUP)
        self.assertFalse(self.stop.is_requested)

    def test_off_the_main_thread_nothing_is_changed(self):
        before = signal.getsignal(signal.SIGINT)
        seen = []

        def look():
            with kaizen.heeding_signals(self.stop):
                seen.append(signal.getsignal(signal.SIGINT))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        self.assertEqual(seen, [before])


if __name__ == "__main__":
    unittest.main()
