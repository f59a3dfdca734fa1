"""Locks: one writer at a time, released when its owner dies."""

import os
import subprocess
import sys
import unittest

import support
from support import ROOT, kaizen, write

HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
import kaizen
with kaizen.FileLock("stage.lock", "stage x"):
    print("held", flush=True)
    sys.stdin.read()
"""


class Locks(support.TemporaryFolder):
    """The second is refused, and told who holds the lock."""

    def hold(self):
        holder = subprocess.Popen([sys.executable, "-c", HOLD, str(ROOT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.stdin.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), b"held\n")
        return holder

    def take(self):
        with kaizen.FileLock("stage.lock", "stage x"):
            return True

    def test_the_second_owner_is_refused_and_told_of_the_first(self):
        holder = self.hold()
        told = rf"stage\.lock: stage x is being written by another process \(pid {holder.pid}, since 2"
        with self.assertRaisesRegex(kaizen.RefusedError, told):
            self.take()
        self.assertTrue(os.path.exists("stage.lock"))

    def test_a_killed_owner_leaves_no_lock_behind(self):
        holder = self.hold()
        holder.kill()
        holder.wait()
        self.assertTrue(os.path.exists("stage.lock"))
        self.assertTrue(self.take())
        self.assertFalse(os.path.exists("stage.lock"))

    def test_two_owners_in_one_process_are_two(self):
        with kaizen.FileLock("stage.lock", "stage x"), self.assertRaises(kaizen.RefusedError):
            self.take()
        self.assertTrue(self.take())

    def test_it_is_released_after_an_error(self):
        with self.assertRaises(KeyError), kaizen.FileLock("stage.lock", "stage x"):
            raise KeyError
        self.assertTrue(self.take())

    def test_a_lock_file_that_says_nonsense_is_no_obstacle(self):
        write("stage.lock", b"\xff{")
        self.assertTrue(self.take())


if __name__ == "__main__":
    unittest.main()
