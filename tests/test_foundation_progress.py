"""Progress: a changing line on a terminal, a line per 10 % elsewhere, ASCII only."""

import io
import unittest
from unittest import mock

import support
from support import kaizen


class Screen(io.StringIO):
    """A stream that takes itself for a terminal, or does not."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


class Shown(support.StrictTestCase):
    """What is written, and when."""

    def setUp(self):
        super().setUp()
        self.now = 100.0
        patch = mock.patch.object(kaizen, "monotonic_seconds", lambda: self.now)
        patch.start()
        self.addCleanup(patch.stop)

    def progress(self, total, mode="auto", is_terminal=False):
        self.screen = Screen(is_terminal)
        return kaizen.Progress("run s", total, mode, self.screen)

    def test_elsewhere_than_on_a_terminal_there_is_a_line_per_tenth(self):
        with self.progress(1000) as progress:
            for done in range(1, 1001):
                self.now += 0.125
                progress.report(done, done // 500)
        lines = self.screen.getvalue().splitlines()
        self.assertEqual(len(lines), 10)
        self.assertEqual(lines[0], "run s: 100 of 1,000, 8.0/s, 1 min 52 s left")
        self.assertEqual(lines[6], "run s: 700 of 1,000, 8.0/s, 37.5 s left, 1 error")
        self.assertEqual(lines[9], "run s: 1,000 of 1,000, 8.0/s, 2 errors")

    def test_a_terminal_gets_one_line_that_changes_ten_times_a_second_and_goes_away(self):
        with self.progress(100, is_terminal=True) as progress:
            for done in range(1, 101):
                self.now += 0.01
                progress.report(done)
        drawn = self.screen.getvalue()
        self.assertNotIn("\n", drawn)
        self.assertLessEqual(drawn.count("\r"), 12)
        self.assertTrue(drawn.endswith("\r\x1b[K"))

    def test_plain_is_plain_on_a_terminal_too_and_none_is_silent(self):
        with self.progress(2, "plain", is_terminal=True) as progress:
            progress.report(1)
        self.assertTrue(self.screen.getvalue().endswith("run s: 1 of 2\n"))
        with self.progress(2, "none") as progress:
            progress.report(2)
        self.assertEqual(self.screen.getvalue(), "")

    def test_nothing_to_do_shows_nothing(self):
        with self.progress(0, is_terminal=True) as progress:
            progress.report(0)
        self.assertEqual(self.screen.getvalue(), "")

    def test_it_is_ascii(self):
        with self.progress(3) as progress:
            self.now += 3700
            progress.report(1, 1)
        self.assertTrue(self.screen.getvalue().isascii())

    def test_a_closed_terminal_ends_the_showing_and_nothing_else(self):
        with self.progress(2) as progress:
            self.screen.close()
            progress.report(1)
            progress.report(2)


class MoreThanPlanned(unittest.TestCase):
    def test_more_than_was_planned_is_never_said(self):
        stream = io.StringIO()
        with kaizen.Progress("evaluate x", 2, "plain", stream) as progress:
            for done in range(1, 8):
                progress.report(done)
        self.assertEqual([line.split(",")[0] for line in stream.getvalue().splitlines()], ["evaluate x: 1 of 2", "evaluate x: 2 of 2"])


if __name__ == "__main__":
    unittest.main()
