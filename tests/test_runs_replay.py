"""Replay: recorded answers in place of a runner, labelled, and never taken for measurements."""

import json
import unittest
from unittest import mock

import support
from support import kaizen, read_json, read_lines, run_cli, write, write_lines


class Replays(support.TemporaryFolder):
    """An improvement of three cases, and a file of answers."""

    def setUp(self):
        super().setUp()
        write_lines("imp/test_cases.jsonl", [{"id": name, "input": name} for name in ("a", "b", "c")])
        write("imp/evaluation.json", json.dumps({"seed": 7, "evaluators": [{"id": "a", "type": "contains", "values": ["x"]}]}))

    def replay(self, lines, *options, status=0, stage="s"):
        write_lines("answers.jsonl", lines)
        done = run_cli("run", "imp", "--stage", stage, "--replay", "answers.jsonl", "--progress", "none", *options)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done

    def records(self, stage="s"):
        return {(record["case_id"], record["trial"]): record for record in read_lines(f"imp/{stage}.jsonl")}

    def test_answers_are_recorded_in_the_order_of_the_cases(self):
        self.replay([{"case_id": name, "output": name.upper()} for name in ("c", "a", "b")], "--jobs", "4")
        self.assertEqual([(*key, record["output"]) for key, record in self.records().items()], [("a", 1, "A"), ("b", 1, "B"), ("c", 1, "C")])
        meta = read_json("imp/s.meta.json")
        self.assertEqual((meta["mode"], meta["command"], meta["cwd"], meta["timeout_seconds"]), ("replay", None, None, None))
        self.assertEqual(meta["replayed_from"], {"file": "answers.jsonl", "sha256": kaizen.file_digest("answers.jsonl")})

    def test_latency_and_cost_are_not_measured(self):
        line = {"case_id": "a", "output": 1, "cost": {"total_usd": 0.5}, "usage": {"input_tokens": 3}, "execution": {"duration_ms": 12.5}}
        self.replay([line], "--id", "a")
        record = self.records()["a", 1]
        self.assertEqual((record["execution"]["duration_ms"], record["execution"]["exit_code"]), (None, None))
        self.assertNotIn("cost", record)
        self.assertEqual(record["metadata"], {"recorded": {"cost": {"total_usd": 0.5}, "duration_ms": 12.5}})
        self.assertEqual(record["usage"], {"input_tokens": 3})

    def test_a_trial_without_an_answer_was_not_run(self):
        done = self.replay([{"case_id": "a", "output": 1}, {"case_id": "b", "trial": 2, "output": 2}], "--repetitions", "2", status=4)
        found = {key: record["status"] for key, record in self.records().items()}
        self.assertEqual(
            found,
            {("a", 1): "completed", ("b", 1): "not_run", ("c", 1): "not_run", ("a", 2): "not_run", ("b", 2): "completed", ("c", 2): "not_run"},
        )
        self.assertIn("4 without usable evidence (4 not_run)", done.stdout)
        self.assertIn("--replay answers.jsonl", done.stdout)

    def test_an_observation_can_be_replayed_whatever_its_end(self):
        lines = [
            {"case_id": "a", "trial": 1, "status": "timeout", "error": {"class": "timeout", "type": "timeout", "message": "no end", "stderr_tail": ""}},
            {"case_id": "b", "trial": 1, "status": "error", "output": 1, "error": {"class": "agent", "type": "quota", "message": "used up"}},
            {"case_id": "c", "trial": 1, "status": "completed", "output": 1, "tool_calls": [{"name": "pay"}], "input_fingerprint": "sha256:0"},
        ]
        self.replay(lines, status=4)
        found = self.records()
        self.assertEqual([record["status"] for record in found.values()], ["timeout", "error", "completed"])
        self.assertEqual(found["a", 1]["error"], {"class": "timeout", "type": "timeout", "message": "no end", "stderr_tail": ""})
        self.assertEqual(found["c", 1]["steps"], [{"kind": "tool", "name": "pay"}])
        self.assertNotEqual(found["c", 1]["input_fingerprint"], "sha256:0")

    def test_an_answer_of_a_wrong_shape_is_a_protocol_error(self):
        self.replay([{"case_id": "a", "steps": 1, "output": 1}, {"case_id": "b"}, {"case_id": "c", "output": 1, "status": "timeout"}], status=4)
        self.assertEqual([record["status"] for record in self.records().values()], ["protocol_error", "protocol_error", "timeout"])

    def test_fields_of_the_recording_that_are_no_answer_are_ignored(self):
        self.replay([{"case_id": name, "output": 1, "published_is_correct": False} for name in "abc"])
        self.assertNotIn("notes", self.records()["a", 1])

    def test_every_line_that_is_no_answer_is_named_and_nothing_is_run(self):
        lines = [
            '{"case_id": "a", "output": NaN}', "", "[1]", '{"output": 1}', '{"case_id": "a", "trial": 0}',
            '{"case_id": "b", "output": 1}', '{"case_id": "b", "trial": 1, "output": 2}',
        ]
        done = self.replay(lines, status=2)
        for place in ("answers.jsonl:1: NaN", "answers.jsonl:3", "answers.jsonl:4#/case_id", "answers.jsonl:5#/trial", "answers.jsonl:7: is for the same case and trial"):
            self.assertIn(place, done.stderr)
        self.assertFalse((self.folder / "imp/s.jsonl").exists())

    def test_answers_that_are_not_used_are_counted(self):
        lines = [{"case_id": name, "trial": trial, "output": 1} for name in "abcx" for trial in (1, 2)]
        done = self.replay(lines)
        self.assertIn("note: 2 recorded answers not used: of cases that this improvement does not have", done.stderr)
        self.assertIn("note: 3 recorded answers not used: of trials beyond --repetitions", done.stderr)

    def test_resuming_needs_the_same_file(self):
        self.replay([{"case_id": "a", "output": 1}], status=4)
        self.replay([{"case_id": "a", "output": 1}], "--resume", status=4)
        done = self.replay([{"case_id": "a", "output": 1}, {"case_id": "b", "output": 1}], "--resume", status=5)
        self.assertIn("file (", done.stderr)

    def test_a_command_and_a_replay_are_one_too_many(self):
        done = run_cli("run", "imp", "--stage", "s", "--replay", "answers.jsonl", "--", "true")
        self.assertEqual(done.status, 2)
        self.assertIn("--replay takes the place of a command", done.stderr)

    def test_a_missing_file_is_named(self):
        done = run_cli("run", "imp", "--stage", "s", "--replay", "nope.jsonl")
        self.assertEqual(done.status, 2)
        self.assertIn("nope.jsonl: does not exist", done.stderr)

    def test_no_process_is_started(self):
        with mock.patch.object(kaizen, "Child", side_effect=AssertionError), mock.patch.object(kaizen, "commit_of", lambda *folders: None):
            self.replay([{"case_id": name, "output": 1} for name in "abc"])


if __name__ == "__main__":
    unittest.main()
