"""Globs of paths, against the plainest matcher there is."""

import random
import time
import unittest
from functools import lru_cache

from support import StrictTestCase

import kaizen


def plainly_matches(glob, path):
    """Whether *glob* means *path*, tried in every way."""
    while "***" in glob:
        glob = glob.replace("***", "**")
    glob = glob.removeprefix("./") + ("**" if glob.endswith("/") else "")
    is_name = not set(glob.rpartition("/")[2]) & set("*?")

    @lru_cache(None)
    def match(i, j):
        if i == len(glob):
            return j == len(path) or (is_name and path[j] == "/")
        if glob.startswith("**/", i) and (i == 0 or glob[i - 1] == "/"):
            return match(i + 3, j) or any(path[k] == "/" and match(i + 3, k + 1) for k in range(j, len(path)))
        if glob.startswith("**", i):
            return any(match(i + 2, k) for k in range(j, len(path) + 1))
        if glob[i] == "*":
            end = path.find("/", j)
            return any(match(i + 1, k) for k in range(j, (len(path) if end < 0 else end) + 1))
        if j == len(path):
            return False
        return (path[j] != "/" if glob[i] == "?" else glob[i] == path[j]) and match(i + 1, j + 1)

    return match(0, 0)


class Globs(StrictTestCase):
    """What they mean, and in which time."""

    def test_they_mean_what_the_plainest_matcher_says(self):
        draw = random.Random(20260101)
        met = 0
        for _ in range(10_000):
            glob = "".join(draw.choice(["a", "b", "/", "*", "**", "**/", "?"]) for _ in range(draw.randint(1, 7)))
            path = "".join(draw.choice("aab/b") for _ in range(draw.randint(0, 9)))
            if not glob.startswith("/"):
                expected = plainly_matches(glob, path)
                met += expected
                self.assertEqual(kaizen.glob_pattern(glob).match(path) is not None, expected, (glob, path))
        self.assertGreater(met, 1000)

    def test_no_glob_takes_long(self):
        started = time.monotonic()
        for glob in ("**a" * 50 + "b", "**/a/" * 50 + "b", "*a" * 50 + "b", "a*" * 100, "*/" * 50 + "x", "**/*a*" * 20):
            for path in ("a/" * 20_000, "a" * 40_000, "/" * 40_000):
                kaizen.glob_pattern(glob).match(path)
        self.assertLess(time.monotonic() - started, 5)

    def test_paths_that_lead_out_of_the_folder_are_meant_by_none(self):
        is_meant = kaizen.glob_test(["**"])
        self.assertEqual([is_meant(path) for path in ("a", "a/b", "..a", "/a", "../a", "..")], [True, True, True, False, False, False])


if __name__ == "__main__":
    unittest.main()
