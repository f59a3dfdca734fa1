"""The watcher: what it notices, and how often it looks."""

import hashlib
import os
import unittest
from unittest import mock

from repositories import Repository
from support import kaizen, write


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Watching(Repository):
    """A tree that is watched, with a locked file in it and one outside."""

    def setUp(self):
        super().setUp()
        write(self.repo / ".gitignore", "*.log\n/locked/\n")
        write(self.repo / "locked/cases.jsonl", "{}\n")
        self.outside = write(self.folder / "eval.py", "print()\n")
        self.commit()

    def watch(self, **locked):
        return kaizen.TreeWatch(kaizen.read_checkout(str(self.repo)), locked)

    def test_nothing_is_said_while_nothing_changes(self):
        watch = self.watch(**{"locked/cases.jsonl": sha256(self.repo / "locked/cases.jsonl")})
        write(self.repo / "a.log", "ignored files are exempt")
        self.assertEqual([watch.changed(), watch.changed(), watch.changed(is_last=True)], [None] * 3)

    def test_an_edit_a_new_file_and_a_deletion_are_named(self):
        watch = self.watch()
        write(self.repo / "agent.py", "print(2)\n")
        self.assertEqual(watch.changed(), "the work tree changed: agent.py (unstaged)")
        (self.repo / "agent.py").unlink()
        write(self.repo / "new\n", "")
        self.assertEqual(watch.changed(), r"the work tree changed: agent.py (unstaged) and 1 more")

    def test_an_edit_that_git_is_told_to_overlook_is_noticed(self):
        watch = self.watch()
        self.git("update-index", "--assume-unchanged", "agent.py")
        write(self.repo / "agent.py", "print(2)\n")
        self.assertEqual(watch.changed(), "the work tree changed: agent.py (hidden)")

    def test_a_commit_is_noticed_although_the_tree_is_clean_again(self):
        watch = self.watch()
        before = self.git("rev-parse", "--short=12", "HEAD")
        write(self.repo / "agent.py", "print(2)\n")
        after = self.commit()[:12]
        self.assertEqual(watch.changed(), f"HEAD moved from {before} to {after}")

    def test_another_branch_on_the_same_commit_is_noticed(self):
        watch = self.watch()
        self.git("switch", "-qc", "other")
        self.assertEqual(watch.changed(), "the branch changed to other")
        self.git("switch", "-q", "--detach")
        self.assertEqual(watch.changed(), "the branch changed to none (detached HEAD)")

    def test_a_locked_file_is_watched_also_where_git_ignores_it_or_does_not_look(self):
        locked = {"locked/cases.jsonl": sha256(self.repo / "locked/cases.jsonl"), str(self.outside): sha256(self.outside)}
        watch = self.watch(**locked)
        self.assertIsNone(watch.changed())
        write(self.repo / "locked/cases.jsonl", "[]\n")
        self.assertEqual(watch.changed(), "the locked file locked/cases.jsonl changed")
        self.outside.unlink()
        write(self.repo / "locked/cases.jsonl", "{}\n")
        self.assertEqual(watch.changed(), "the locked file ../eval.py is gone or cannot be read")

    def test_a_locked_file_that_differs_from_the_start_is_noticed_in_the_first_look(self):
        self.assertEqual(self.watch(**{"locked/cases.jsonl": "0" * 64}).changed(), "the locked file locked/cases.jsonl changed")

    def test_the_last_look_reads_locked_files_whatever_their_time_stamps_say(self):
        path = self.repo / "locked/cases.jsonl"
        watch = self.watch(**{"locked/cases.jsonl": sha256(path)})
        self.assertIsNone(watch.changed())
        facts = os.stat(path)
        write(path, "[]\n")
        with mock.patch.object(os, "stat", lambda each: facts):
            self.assertIsNone(watch.locked_change())
        self.assertIn("changed", watch.changed(is_last=True))

    def test_a_tree_that_can_no_longer_be_looked_at_counts_as_changed(self):
        watch = self.watch()
        os.rename(self.repo / ".git", self.repo / "git")
        self.assertIn("can no longer be looked at", watch.changed())

    def test_what_was_dirty_before_is_no_change_and_cleaning_it_is(self):
        write(self.repo / "agent.py", "print(2)\n")
        watch = self.watch()
        self.assertIsNone(watch.changed())
        write(self.repo / "agent.py", "print(1)\n")
        self.assertEqual(watch.changed(), "the work tree changed: agent.py (back to the commit)")

    def test_it_looks_every_two_seconds_or_at_a_twentieth_of_the_time(self):
        watch = self.watch()
        for cost, interval in ((0.01, 2), (0.1, 2), (0.5, 10)):
            clock = mock.patch.object(kaizen, "monotonic_seconds", side_effect=[100.0, 100.0 + cost])
            with clock, mock.patch.object(kaizen, "look_at_tree"), mock.patch.object(kaizen.TreeWatch, "head_change", return_value="x"):
                self.assertEqual(watch.changed(), "x")
            self.assertAlmostEqual(watch.interval, interval)
            self.assertAlmostEqual(watch.due, 100 + cost + interval)

    def test_a_poll_looks_only_when_a_look_is_due(self):
        watch = self.watch()
        write(self.repo / "agent.py", "print(2)\n")
        watch.due = kaizen.monotonic_seconds() + 60
        self.assertIsNone(watch.poll())
        watch.due = 0.0
        self.assertIn("agent.py", watch.poll())


if __name__ == "__main__":
    unittest.main()
