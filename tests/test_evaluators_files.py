"""files: what became of the work folder, and what nobody measured."""

import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase

import kaizen

SHA = "a" * 64
FILES = {
    "src/a.py": {"change": "modified", "sha256": SHA, "bytes": 9, "added_lines": 3, "removed_lines": 1, "text": "def a(): pass\n"},
    "src/deep/b.py": {"change": "added", "sha256": "b" * 64, "bytes": 5, "added_lines": 2, "removed_lines": 0, "text": "x = 1\n"},
    "tests/t.py": {"change": "unchanged", "sha256": "c" * 64, "bytes": 5, "added_lines": 0, "removed_lines": 0, "text": "ok\n"},
    "old.txt": {"change": "deleted", "added_lines": 0, "removed_lines": 4},
}
CASES = [  # settings, status, what the reason holds
    ({"exists": "src/*.py"}, "pass", "3 changed files of 4"),
    ({"exists": ["src/*.py", "out/*"]}, "fail", "no file that is there is 'out/*'"),
    ({"exists": "old.txt"}, "fail", "old.txt"),
    ({"exists": "src"}, "pass", ""),
    ({"absent": ["old.txt", "**/*.log"]}, "pass", ""),
    ({"absent": "src"}, "fail", "src/a.py and src/deep/b.py are there"),
    ({"unchanged": "tests/**"}, "pass", ""),
    ({"unchanged": ["tests/", "src/**"]}, "fail", "src/a.py and src/deep/b.py changed, against unchanged 'src/**'"),
    ({"unchanged": "old.txt"}, "fail", "old.txt changed"),
    ({"unchanged": "docs/**"}, "error", "no recorded file is 'docs/**'"),
    ({"changed": ["src/**", "old.txt"]}, "pass", ""),
    ({"changed": "tests/**"}, "fail", "no changed file is 'tests/**'"),
    ({"contains": {"src/a.py": "def a"}}, "pass", ""),
    ({"contains": {"src/**": ["x =", "1"]}}, "fail", "src/a.py does not hold what 'src/**' asks for"),
    ({"contains": {"src/deep/*": {"$regex": "^x = \\d\\n\\Z"}}}, "pass", ""),
    ({"contains": {"src/deep/*": {"$regex": "^y"}}}, "fail", ""),
    ({"contains": {"none": "x"}}, "fail", "no file that is there is 'none'"),
    ({"sha256": {"src/a.py": SHA.upper(), "./tests/t.py": "c" * 64}}, "pass", ""),
    ({"sha256": {"src/a.py": "d" * 64}}, "fail", "has another SHA-256"),
    ({"sha256": {"old.txt": SHA}}, "fail", "no file"),
    ({"only_within": ["src/**", "*.txt"]}, "pass", ""),
    ({"only_within": "src/*"}, "fail", "old.txt and src/deep/b.py changed, outside of 'src/*'"),
    ({"max_changed_files": 3, "max_changed_lines": 10}, "pass", ""),
    ({"max_changed_files": 2}, "fail", "3 where 2 may"),
    ({"max_changed_lines": 9}, "fail", "10 lines, 9 may"),
]


class Files(StrictTestCase):
    """Every parameter."""

    def test_each_parameter_answers(self):
        for settings, status, reason in CASES:
            with self.subTest(settings=settings):
                outcome = outcome_of(entry_of("files", **settings), "done", files=FILES)
                self.assertEqual(outcome.status, status, outcome.reason)
                self.assertIn(reason, outcome.reason)
                self.assertEqual(outcome.value, {"files": 4, "changed": 3} if status != "error" else None)

    def test_evidence_points_at_the_files(self):
        outcome = outcome_of(entry_of("files", only_within="src/*"), "done", files=FILES)
        self.assertEqual(outcome.evidence, ({"pointer": "/files/old.txt"}, {"pointer": "/files/src~1deep~1b.py"}))

    def test_a_path_that_leads_out_of_the_folder_is_within_no_glob(self):
        for path in ("../x", "/etc/x", "a/../../x", ".."):
            self.assertEqual(status_of(entry_of("files", only_within="**"), "done", files={path: {"change": "added"}}), "fail", path)
        self.assertEqual(status_of(entry_of("files", only_within="src/**"), "done", files={"./src/a/../b": {"change": "added"}}), "pass")

    def test_what_was_not_measured_is_not_known(self):
        for settings, files in (
            ({"exists": "x"}, None), ({"exists": "x"}, []), ({"exists": "x"}, {"a": 1}),
            ({"unchanged": "a"}, {"a": {}}), ({"changed": "a"}, {"a": {"change": "odd"}}), ({"only_within": "b"}, {"a": {}}),
            ({"contains": {"a": "x"}}, {"a": {"change": "added"}}), ({"sha256": {"a": SHA}}, {"a": {"change": "added"}}),
            ({"max_changed_lines": 1}, {"a": {"change": "added", "added_lines": True, "removed_lines": 0}}), ({"max_changed_files": 1}, {"a": {}}),
        ):  # fmt: skip
            outcome = outcome_of(entry_of("files", **settings), "done", files=files)
            self.assertEqual((outcome.status, outcome.score), ("error", None), (settings, outcome.reason))
            self.assertEqual(status_of(entry_of("files", on_missing="fail", **settings), "done", files=files), "fail")

    def test_what_is_wrong_decides_whatever_else_is_unknown(self):
        files = {"a": {"change": "added", "added_lines": 9, "removed_lines": 0}, "b": {"change": "added"}}
        self.assertEqual(status_of(entry_of("files", max_changed_lines=8), "done", files=files), "fail")
        self.assertEqual(status_of(entry_of("files", max_changed_lines=9), "done", files=files), "error")

    def test_where_files_were_left_out_nothing_is_sure_but_what_is_wrong(self):
        files = {f"f{number}": {"change": "unchanged"} for number in range(kaizen.FILE_COUNT_LIMIT)}
        for settings in ({"absent": "x"}, {"exists": "x"}, {"unchanged": "f*"}, {"changed": "x"}, {"only_within": "x"}, {"max_changed_files": 1}):
            self.assertEqual(status_of(entry_of("files", **settings), "done", files=files), "error", settings)
        self.assertEqual(status_of(entry_of("files", absent="f1"), "done", files=files), "fail")
        self.assertEqual(status_of(entry_of("files", exists="f1"), "done", files=files), "pass")

    def test_bounds_are_monotone(self):
        statuses = [status_of(entry_of("files", max_changed_lines=bound), "done", files=FILES) for bound in range(14)]
        self.assertEqual(statuses, ["fail"] * 10 + ["pass"] * 4)

    def test_mistakes_are_refused_at_their_place(self):
        for settings, pointer in (
            ({}, ""), ({"exists": "/etc/x"}, "/exists"), ({"exists": ["a", "../b"]}, "/exists/1"), ({"exists": ""}, "/exists"),
            ({"contains": {}}, "/contains"), ({"contains": {"a": ""}}, "/contains/a"), ({"contains": {"a/b": 7}}, "/contains/a~1b"),
            ({"contains": {"a": {"$regex": "("}}}, "/contains/a/$regex"), ({"contains": {"/a": "x"}}, "/contains/~1a"),
            ({"sha256": {"a": "abc"}}, "/sha256/a"), ({"max_changed_files": -1}, "/max_changed_files"), ({"max_changed_lines": 1.5}, "/max_changed_lines"),
        ):  # fmt: skip
            self.assertEqual(refusal_of(entry_of("files", **settings))[0], pointer, settings)

    def test_many_files_and_hostile_globs_take_no_time(self):
        files = {"a/" * 40 + f"f{number}": {"change": "added"} for number in range(5000)}
        self.assertEqual(status_of(entry_of("files", only_within=["**a" * 30 + "b", "**/*a*/" * 30 + "b"]), "done", files=files), "fail")


if __name__ == "__main__":
    unittest.main()
