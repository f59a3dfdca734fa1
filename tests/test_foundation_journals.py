"""Append-only logs: whole lines, synced soon, mended after a crash."""

import os
import unittest
from unittest import mock

import support
from support import kaizen, write

try:
    import resource
except ImportError:  # Windows
    resource = None


class Appending(support.TemporaryFolder):
    """Each line is on disk when `append` returns, and synced soon after."""

    def test_a_line_can_be_read_at_once(self):
        log = kaizen.AppendLog("a.jsonl")
        self.addCleanup(log.close)
        self.assertEqual(log.append({"a": "ü"}), '{"a":"ü"}\n'.encode())
        self.assertEqual((self.folder / "a.jsonl").read_text(encoding="utf-8"), '{"a":"ü"}\n')

    def test_lines_are_synced_when_the_oldest_is_200_ms_old(self):
        now = [100.0]
        with mock.patch.object(kaizen, "monotonic_seconds", lambda: now[0]), mock.patch.object(kaizen.os, "fsync") as fsync:
            log = kaizen.AppendLog("a.jsonl")
            self.addCleanup(log.close)
            for moment, synced in ((100.0, 0), (100.1, 0), (100.19, 0), (100.2, 1), (100.3, 1), (100.49, 1), (100.5, 2)):
                now[0] = moment
                log.append({})
                self.assertEqual(fsync.call_count, synced, moment)

    def test_nothing_new_is_not_synced(self):
        log = kaizen.AppendLog("a.jsonl")
        self.addCleanup(log.close)
        with mock.patch.object(kaizen.os, "fsync") as fsync:
            log.sync_if_due()
            self.assertEqual(fsync.call_count, 0)

    @unittest.skipUnless(resource, "file-size limits are of Unix")
    def test_what_got_through_of_a_failed_line_is_cut_off_again(self):
        log = kaizen.AppendLog("a.jsonl")
        self.addCleanup(log.close)
        log.append({"n": 1})
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        with self.assertRaisesRegex(kaizen.InputError, r"a\.jsonl: cannot be written: File too large"):
            log.append({"text": "x" * 5000})
        self.assertEqual((self.folder / "a.jsonl").read_text(), '{"n":1}\n')


class TornTails(support.TemporaryFolder):
    """What stands behind the last line end."""

    def test_the_tail_is_what_follows_the_last_line_end(self):
        for content, expected in ((b"", (0, b"")), (b"a\nb\n", (4, b"")), (b"a\nb", (2, b"b")), (b"ab", (0, b"ab"))):
            with self.subTest(content):
                write("a.jsonl", content)
                self.assertEqual(kaizen.torn_tail("a.jsonl"), expected)

    def test_a_tail_longer_than_a_block_is_found_whole(self):
        tail = b"x" * (3 * kaizen.BLOCK + 7)
        write("a.jsonl", b"line\n" + tail)
        self.assertEqual(kaizen.torn_tail("a.jsonl"), (5, tail))
        kaizen.truncate_file("a.jsonl", 5)
        self.assertEqual(os.path.getsize("a.jsonl"), 5)


if __name__ == "__main__":
    unittest.main()
