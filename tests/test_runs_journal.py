"""The files of a stage: which line counts, what is superseded, digests."""

import json
import unittest
from pathlib import Path

import support
from support import kaizen, read_lines, write, write_lines

A_LF_B = "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78"  # printf 'a\nb' | sha256sum


def make_case(name):
    return kaizen.Case(name, {"id": name, "input": name}, "test_cases.jsonl", 1, f"sha256:{name}")


class Writing(support.TemporaryFolder):
    """A stage of three cases and two repetitions."""

    def setUp(self):
        super().setUp()
        (self.folder / "imp").mkdir()
        self.cases = {name: make_case(name) for name in "abc"}
        self.dataset = kaizen.Dataset(self.cases, "sha256:d", True, frozenset())

    def writer(self, existing="refuse", repetitions=2, cases=None):
        meta = {"mode": "process", "command": ["x"], "cwd": ".", "seed": 1, "commit": None, "started_at": "now", "selection": {"ids": ["a"]}}
        improvement = kaizen.Improvement("imp")
        return kaizen.StageWriter(
            improvement, "s", self.dataset, cases or list(self.cases.values()), meta, existing=existing, repetitions=repetitions
        )

    def record(self, writer, name, trial, status="completed"):
        line = json.dumps({"case_id": name, "trial": trial, "status": status, "input_fingerprint": f"sha256:{name}"}) + "\n"
        writer.record(name, trial, status, line.encode())

    def keys(self):
        return [(record["case_id"], record["trial"]) for record in read_lines("imp/s.jsonl")]

    def test_lines_are_on_disk_at_once_and_in_order_at_the_end(self):
        writer = self.writer()
        order = [("b", 2), ("c", 1), ("a", 1), ("b", 1), ("a", 2), ("c", 2)]
        for name, trial in order:
            self.record(writer, name, trial)
        self.assertEqual(self.keys(), order)
        writer.finish(True)
        self.assertEqual(self.keys(), [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("c", 2)])
        self.assertEqual([path.name for path in Path("imp").iterdir() if path.name.startswith(".")], [])

    def test_an_interrupted_stage_stays_as_it_is(self):
        writer = self.writer()
        self.record(writer, "b", 1)
        self.record(writer, "a", 1)
        writer.finish(False)
        self.assertEqual(self.keys(), [("b", 1), ("a", 1)])
        meta = json.loads(Path("imp/s.meta.json").read_text())
        self.assertEqual((meta["complete"], meta["counts"], meta["observations"]["lines"]), (False, {"completed": 2}, 2))
        self.assertEqual((meta["planned"], meta["selected"], meta["selection"]), (6, 6, None))

    def test_a_file_already_in_order_is_not_written_again(self):
        writer = self.writer(repetitions=1)
        for name in "abc":
            self.record(writer, name, 1)
        before = Path("imp/s.jsonl").stat().st_ino
        writer.finish(True)
        self.assertEqual(Path("imp/s.jsonl").stat().st_ino, before)

    def test_a_line_that_no_longer_counts_is_superseded_as_it_stands(self):
        lines = [
            '{"case_id": "a", "trial": 1, "status": "completed", "input_fingerprint": "sha256:a"}',
            '{"case_id": "b", "trial": 1, "status": "completed", "input_fingerprint": "sha256:old"}',
            '{"case_id": "gone", "trial": 1, "status": "completed"}',
            '{"case_id": "c", "trial": 1, "status": "error"}',
            '{"case_id": "a", "trial": 2, "status": "not_run"}',
            '{"case_id": "b", "trial": 2, "status": "cancelled"}',
            '{"case_id": "a", "trial": 1,   "status": "completed"}',
        ]
        write_lines("imp/s.jsonl", lines)
        before = Path("imp/s.jsonl").read_bytes()
        writer = self.writer("resume")
        self.assertEqual(Path("imp/s.jsonl").read_bytes(), before)
        self.assertEqual([writer.is_done(name, trial) for name, trial in (("a", 1), ("b", 1), ("c", 1), ("a", 2))], [True, False, True, False])
        self.record(writer, "b", 1)
        self.assertEqual(self.keys(), [("a", 1), ("c", 1), ("b", 1)])
        self.assertEqual(Path("imp/s.jsonl").read_text().splitlines()[:2], [lines[0], lines[3]])
        self.assertEqual(Path("imp/s.superseded.jsonl").read_text().splitlines(), [lines[index] for index in (1, 2, 4, 5, 6)])
        self.assertIn("5 lines moved to imp/s.superseded.jsonl", writer.notes[-1])
        writer.finish(True)
        self.assertEqual(self.keys(), [("a", 1), ("b", 1), ("c", 1)])

    def test_only_errors_supersedes_those_of_the_selection(self):
        write_lines("imp/s.jsonl", [{"case_id": name, "trial": 1, "status": "error" if name != "a" else "completed"} for name in "abc"])
        writer = self.writer("only_errors", 1, [self.cases["a"], self.cases["b"]])
        self.assertEqual([writer.is_done(name, 1) for name in "abc"], [True, False, True])

    def test_half_written_files_of_a_killed_run_are_swept_and_others_left(self):
        for name in (".s.jsonl.77.tmp", ".s.meta.json.77.tmp", ".s.evaluated.jsonl.77.tmp", ".other.jsonl.77.tmp", "s.jsonl.unfinished"):
            write(f"imp/{name}", "half")
        self.writer("overwrite")
        self.assertEqual(sorted(path.name for path in Path("imp").iterdir()), [".other.jsonl.77.tmp", ".s.evaluated.jsonl.77.tmp"])

    def test_repetitions_without_a_meta_file_are_those_of_the_lines(self):
        write_lines("imp/s.jsonl", [{"case_id": "a", "trial": 3, "status": "completed"}])
        self.assertEqual(self.writer("resume", 0).repetitions, 3)
        self.assertIn("imp/s.meta.json is missing", self.writer("resume", 0).notes[0])


class Digests(support.TemporaryFolder):
    """The digest of a stage counts lines, not line ends."""

    def test_line_ends_blank_lines_and_a_mark_do_not_count(self):
        digests = set()
        for content in (b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\n\nb", b"a\nb"):
            write("f", content)
            digests.add(kaizen.file_digest("f"))
        self.assertEqual(len(digests), 1)
        self.assertEqual(digests.pop(), A_LF_B)

    def test_the_place_of_a_line_end_counts(self):
        write("f", b"a\nb\n")
        write("g", b"ab\n")
        self.assertNotEqual(kaizen.file_digest("f"), kaizen.file_digest("g"))


class Observations(support.TemporaryFolder):
    """Lines are checked as they are read."""

    def test_lines_come_one_at_a_time_with_their_number(self):
        write("s.jsonl", '\n{"case_id": "a", "trial": 1, "status": "completed"}\n\n{"case_id": "b", "trial": 2, "status": "timeout"}\n')
        self.assertEqual([(line.number, line.value["case_id"]) for line in kaizen.iter_observations("s.jsonl")], [(2, "a"), (4, "b")])

    def test_a_line_that_is_no_observation_is_refused_with_its_place(self):
        for line, told in (
            ('{"trial": 1, "status": "completed"}', "has no case_id"),
            ('{"case_id": "a", "status": "completed"}', "has no trial"),
            ('{"case_id": "a", "trial": true, "status": "completed"}', "has no trial"),
            ('{"case_id": "a", "trial": 0, "status": "completed"}', "has no trial"),
            ('{"case_id": "a", "trial": 1, "status": "passed"}', "has the status 'passed'"),
            ('{"case_id": "a", "trial": 1, "stat', "not JSON"),
        ):
            with self.subTest(line):
                write("s.jsonl", "\n" + line)
                with self.assertRaisesRegex(kaizen.InputError, rf"^s\.jsonl:2: .*{told}"):
                    list(kaizen.iter_observations("s.jsonl"))


if __name__ == "__main__":
    unittest.main()
