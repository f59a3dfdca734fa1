"""Patterns: what is refused on every Python, and the clock that stops them."""

import signal
import sys
import threading
import time
import unittest

from support import StrictTestCase

import kaizen


def refusal(pattern, flags=0):
    """(message, hint) with which a pattern is refused; None when it is accepted."""
    try:
        kaizen.compile_pattern(pattern, flags)
    except kaizen.ConfigurationError as error:
        return error.message, error.hint
    return None


class Compiling(StrictTestCase):
    """One verdict about a pattern, whichever Python reads it."""

    def test_syntax_newer_than_3_10_is_refused_and_named(self):
        for pattern, part in (("a++", "'++'"), ("a*+b", "'*+'"), ("a?+", "'?+'"), ("a{2,3}+", "'{2,3}+'"), ("(?>ab)", "'(?>'"), ("x(?s)y", "'(?s)'")):
            with self.subTest(pattern=pattern):
                self.assertIn(part, "".join(refusal(pattern)))

    def test_what_only_looks_like_it_is_accepted(self):
        for pattern in (r"a\++", "[a+]+", r"[]++]", r"[^]*+]+x", r"\(\?>", "(?#a++)b", "a{,}b", "x{}+y", "(?i)(?s)a", r"\\+", "a+|b+"):
            with self.subTest(pattern=pattern):
                self.assertIsNone(refusal(pattern))
        self.assertIsNone(refusal("(?x) a # b++ (?>\n c"))

    def test_an_invalid_pattern_is_refused_with_its_place(self):
        self.assertEqual(refusal("a(b")[0], "is not a regular expression: missing ), unterminated subpattern at character 2")

    def test_a_set_that_may_mean_something_else_one_day_is_compiled_in_silence(self):
        self.assertIsNone(refusal("[[a]--[b]"))

    def test_nesting_beyond_reason_is_refused(self):
        self.assertIn("too deeply", refusal("(" * 5000 + "a" + ")" * 5000)[0])


@unittest.skipIf(sys.platform == "win32", "no alarm signal there")
class Timer(StrictTestCase):
    """The alarm that interrupts a match."""

    def hang(self):
        return kaizen.compile_pattern("^(a+)+$").search("a" * 40 + "!")

    def test_a_match_is_interrupted(self):
        started = time.monotonic()
        with self.assertRaises(kaizen.PatternTimeout):
            kaizen.timed(self.hang, 0.05)
        self.assertLess(time.monotonic() - started, 1)

    def test_what_returns_in_time_is_returned(self):
        self.assertEqual(kaizen.timed(lambda: 7), 7)
        with self.assertRaises(ZeroDivisionError):
            kaizen.timed(lambda: 1 // 0)

    def test_handler_and_timer_of_others_are_put_back(self):
        def other(number, frame):
            raise AssertionError("the other alarm rang")

        before = signal.signal(signal.SIGALRM, other)
        signal.setitimer(signal.ITIMER_REAL, 100, 7)
        try:
            kaizen.timed(lambda: 7)
            self.assertIs(signal.getsignal(signal.SIGALRM), other)
            remaining, interval = signal.getitimer(signal.ITIMER_REAL)
            self.assertAlmostEqual(remaining, 100, delta=2)
            self.assertEqual(interval, 7)
            with self.assertRaises(kaizen.PatternTimeout):
                kaizen.timed(self.hang, 0.02)
            self.assertIs(signal.getsignal(signal.SIGALRM), other)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_the_outer_limit_counts_for_what_is_timed_inside(self):
        with self.assertRaises(kaizen.PatternTimeout):
            kaizen.timed(lambda: kaizen.timed(self.hang, 60), 0.05)
        self.assertEqual(signal.getitimer(signal.ITIMER_REAL), (0.0, 0.0))

    def test_off_the_main_thread_a_pattern_is_not_run_and_that_is_said(self):
        found = []

        def elsewhere():
            try:
                kaizen.timed(self.hang)
            except kaizen.PatternTimeout as timeout:
                found.append(timeout.reason)

        def run_elsewhere():
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join(5)

        run_elsewhere()
        kaizen.timed(run_elsewhere)  # also while the main thread has a limit running
        self.assertEqual(found, ["a pattern can be time-limited in the main thread only, and not on Windows, so it was not run"] * 2)


if __name__ == "__main__":
    unittest.main()
