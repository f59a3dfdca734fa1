"""Shards: a stage run in parts, and the parts merged into what one run would have written."""

import json
import os
import shutil
import unittest
from pathlib import Path
from unittest import mock

from support import ROOT, StrictTestCase, TemporaryFolder, kaizen, read_json, read_lines, run_cli, write, write_lines
from test_runs_bridge import StageRun, without_execution


class Naming(StrictTestCase):
    """Which shard this is."""

    def test_a_shard_is_named_by_number_and_total(self):
        self.assertEqual(kaizen.parse_shard("2/4", {}), (2, 4))
        for text, told in (("0/4", "there is no shard 0 of 4"), ("5/4", "no shard 5 of 4"), ("1/401", "no shard 1 of 401"), ("2", "neither"), ("a/b", "neither"),
                           ("1/0", "no shard"), ("-1/4", "neither"), ("auto/x", "neither")):  # fmt: skip
            with self.assertRaisesRegex(kaizen.UsageError, told):
                kaizen.parse_shard(text, {})

    def test_the_usual_systems_say_it(self):
        for environment, shard in (
            ({"GITLAB_CI": "true", "CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "5"}, (2, 5)),
            ({"CIRCLECI": "true", "CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "3"}, (1, 3)),
            ({"BUILDKITE": "true", "BUILDKITE_PARALLEL_JOB": "2", "BUILDKITE_PARALLEL_JOB_COUNT": "3"}, (3, 3)),
            ({"TF_BUILD": "True", "SYSTEM_JOBPOSITIONINPHASE": "1", "SYSTEM_TOTALJOBSINPHASE": "4"}, (1, 4)),
            ({"SEMAPHORE": "true", "SEMAPHORE_JOB_INDEX": "4", "SEMAPHORE_JOB_COUNT": "4"}, (4, 4)),
            ({"BITBUCKET_BUILD_NUMBER": "7", "BITBUCKET_PARALLEL_STEP": "1", "BITBUCKET_PARALLEL_STEP_COUNT": "2"}, (2, 2)),
            ({"HEROKU_TEST_RUN_ID": "x", "CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "2"}, (1, 2)),
            ({"CLOUD_RUN_JOB": "x", "CLOUD_RUN_TASK_INDEX": "3", "CLOUD_RUN_TASK_COUNT": "4"}, (4, 4)),
        ):
            with self.subTest(environment):
                self.assertEqual(kaizen.parse_shard("auto", environment), shard)

    def test_slurm_arrays_may_begin_anywhere_and_go_in_steps(self):
        def array(task, low, high, count):
            names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT")
            return dict(zip(names, map(str, (task, low, high, count)), strict=True))

        self.assertEqual(kaizen.parse_shard("auto", array(0, 0, 9, 10)), (1, 10))
        self.assertEqual(kaizen.parse_shard("auto", array(8, 5, 8, 4)), (4, 4))
        self.assertEqual(kaizen.parse_shard("auto", array(20, 10, 30, 3)), (2, 3))  # --array=10-30:10
        self.assertEqual(kaizen.parse_shard("auto", array(7, 7, 7, 1)), (1, 1))
        for settings in ((1, 1, 8, 3), (8, 1, 8, 3), (2, 1, 9, 3)):  # --array=1,2,8 and 1,2,9
            with self.assertRaisesRegex(kaizen.UsageError, "gaps"):
                kaizen.parse_shard("auto", array(*settings))

    def test_indexed_jobs_of_kubernetes_say_the_number_only(self):
        self.assertEqual(kaizen.parse_shard("auto/8", {"JOB_COMPLETION_INDEX": "7"}), (8, 8))
        with self.assertRaisesRegex(kaizen.UsageError, "nobody how many"):
            kaizen.parse_shard("auto", {"JOB_COMPLETION_INDEX": "7"})

    def test_elsewhere_it_has_to_be_said(self):
        with self.assertRaisesRegex(kaizen.UsageError, "does not say which part") as caught:
            kaizen.parse_shard("auto", {"GITHUB_ACTIONS": "true", "CI": "true"})
        self.assertIn("--shard I/N", caught.exception.hint)

    def test_an_environment_with_no_numbers_is_an_error(self):
        for index, total in (("2", "two"), ("x", "4"), ("²", "4"), ("1.5", "4")):
            with self.subTest(index=index, total=total), self.assertRaisesRegex(kaizen.UsageError, "not a whole number"):
                kaizen.parse_shard("auto", {"GITLAB_CI": "true", "CI_NODE_INDEX": index, "CI_NODE_TOTAL": total})
        with self.assertRaisesRegex(kaizen.UsageError, "nobody how many"):
            kaizen.parse_shard("auto", {"GITLAB_CI": "true", "CI_NODE_INDEX": "1", "CI_NODE_TOTAL": ""})
        with self.assertRaisesRegex(kaizen.UsageError, "not a whole number"):
            kaizen.parse_shard("auto", {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "many"})

    def test_a_case_is_in_one_shard_whatever_other_cases_there_are(self):
        for total in (1, 2, 7):
            for name in ("a", "refund-001", "日本"):
                self.assertEqual(sum(kaizen.is_in_shard(name, kaizen.Shard(number, total)) for number in range(1, total + 1)), 1)
        # printf c1 | sha256sum begins with d0f631ca1ddba8db, an odd number
        self.assertTrue(kaizen.is_in_shard("c1", kaizen.Shard(2, 2)))


class Sharding(StageRun):
    """Parts of a stage."""

    def shards(self, *options, total=3, stage="s", numbers=None, **keywords):
        for number in numbers or range(1, total + 1):
            self.run_stage("--shard", f"{number}/{total}", *options, stage=stage, **keywords)

    def merge(self, *options, status=0, stage="s"):
        done = run_cli("merge", "imp", "--stage", stage, *options)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done


class Sharded(Sharding):
    """The merge gives what one run would have written."""

    def test_the_merged_stage_is_that_of_a_run_without_shards(self):
        self.make_cases(20)
        self.run_stage("--repetitions", "2", stage="whole")
        self.shards("--repetitions", "2", "--jobs", "2")
        self.merge()
        wanted = [line.replace(" whole", " s") for line in without_execution("imp/whole.jsonl")]
        self.assertEqual(without_execution("imp/s.jsonl"), wanted)
        whole, merged = read_json("imp/whole.meta.json"), read_json("imp/s.meta.json")
        self.assertEqual([part["shard"] for part in merged.pop("merged_from")], [1, 2, 3])
        differing = {key for key in {*whole, *merged} if whole.get(key) != merged.get(key)}
        self.assertEqual(differing, {"stage", "started_at", "finished_at", "observations", "jobs"})
        self.assertEqual(merged["observations"]["sha256"], kaizen.file_digest("imp/s.jsonl"))

    def test_merging_again_gives_the_same_bytes(self):
        self.shards()
        self.merge()
        before = Path("imp/s.jsonl").read_bytes()
        self.assertIn("is there already", self.merge(status=5).stderr)
        self.merge("--overwrite")
        self.assertEqual(Path("imp/s.jsonl").read_bytes(), before)

    def test_a_shard_without_cases_counts(self):
        self.make_cases(1)
        self.shards(total=3)
        self.assertEqual(sorted(len(read_lines(f"imp/s.shard-{number}-of-3.jsonl")) for number in (1, 2, 3)), [0, 0, 1])
        self.merge()
        self.assertEqual(self.statuses(), {"c1 1": "completed"})

    def test_shards_are_no_stages_and_validate_knows_them(self):
        self.shards(total=2)
        self.assertEqual(kaizen.Improvement("imp").stages(), [])
        answer = json.loads(run_cli("validate", "imp", "--json").stdout)
        self.assertTrue(answer["valid"])
        self.assertEqual([name for name in answer["files"] if "shard" in name],
                         ["s.shard-1-of-2.jsonl", "s.shard-1-of-2.meta.json", "s.shard-2-of-2.jsonl", "s.shard-2-of-2.meta.json"])  # fmt: skip
        write("imp/s.shard-1-of-2.jsonl", "oops\n")
        self.assertIn("imp/s.shard-1-of-2.jsonl:1: ", run_cli("validate", "imp").stdout)

    def test_the_runner_knows_the_stage_and_nothing_of_shards(self):
        self.shards(total=2)
        self.merge()
        self.assertEqual({each["output"].split()[3] for each in read_lines("imp/s.jsonl")}, {"s"})

    def test_the_next_step_is_the_merge(self):
        with mock.patch.dict(os.environ, {"CIRCLECI": "true", "CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "2"}):
            done = self.run_stage("--shard", "auto")
        self.assertIn("next: kaizen merge imp --stage s, when all 2 shards are there", done.stdout)
        self.assertIn("written to imp/s.shard-2-of-2.jsonl", done.stdout)

    def test_a_shard_can_be_resumed_and_its_errors_run_again(self):
        self.make_cases(8)
        self.runner('#!/bin/sh\n[ -e go ] || exit 3\necho "{\\"output\\": 1}"\n')
        done = self.run_stage("--shard", "1/2", status=4)
        self.assertIn("--shard 1/2 --only errors", done.stdout)
        write("go", "")
        self.run_stage("--shard", "1/2", "--only", "errors")
        self.shards(total=2, numbers=[2])
        self.merge()
        self.assertEqual(set(self.statuses().values()), {"completed"})

    def test_kept_files_are_merged_too(self):
        self.runner('#!/bin/sh\necho $KAIZEN_CASE_ID > "$KAIZEN_WORKDIR/out.txt"\necho \'{"output": 1}\'\n')
        self.shards("--keep", "*.txt", total=2)
        self.merge()
        found = {path.parent.parent.name: path.read_text() for path in Path("imp/s.files").rglob("out.txt")}
        self.assertEqual(found, {kaizen.slug(f"c{index}"): f"c{index}\n" for index in (1, 2, 3, 4)})

    def test_kept_files_that_did_not_come_along_are_missed(self):
        self.runner('#!/bin/sh\necho 1 > "$KAIZEN_WORKDIR/out.txt"\necho \'{"output": 1}\'\n')
        self.shards("--keep", "*.txt", total=2)
        shutil.rmtree("imp/s.shard-1-of-2.files")
        self.assertIn("s.shard-1-of-2.files: lacks kept files of its trials", self.merge(status=5).stderr)
        self.assertFalse(Path("imp/s.jsonl").exists())

    def test_a_selection_is_kept(self):
        self.shards("--id", "c1", "--id", "c2", total=2)
        self.merge()
        self.assertEqual(list(self.statuses()), ["c1 1", "c2 1"])
        self.assertEqual(read_json("imp/s.meta.json")["selection"], {"ids": ["c1", "c2"], "tags": [], "splits": []})

    def test_trials_without_evidence_are_counted(self):
        self.shards(total=2, status=4, command=["false"])
        done = self.merge(status=4)
        self.assertIn("s: 4 trials of 2 shards, 4 without usable evidence", done.stdout)

    def test_memory_does_not_hold_the_lines(self):
        self.shards(total=2)
        with mock.patch.object(kaizen, "MERGE_BLOCK", 16):
            self.merge()
        self.assertEqual(len(self.statuses()), 4)


class Refused(Sharding):
    """What does not belong together is named, and nothing is written."""

    def refused(self, *told):
        done = self.merge(status=5)
        for each in told:
            self.assertIn(each, done.stderr)
        self.assertFalse(Path("imp/s.jsonl").exists())
        return done

    def test_no_shards_at_all(self):
        self.refused("imp/s: has no shards to merge")

    def test_missing_shards(self):
        self.shards(total=4, numbers=[1, 3])
        self.refused("imp/s: shards 2 and 4 of 4 are not there")

    def test_shards_of_two_counts(self):
        self.shards(total=2)
        self.shards(total=3, numbers=[1])
        self.refused("has shards of 2 and 3")

    def test_another_command(self):
        self.shards(total=2, numbers=[1])
        self.shards(total=2, numbers=[2], command=["./agent", "--other"])
        self.refused("shards of different runs", 'command (["./agent"] in shard 1, ["./agent","--other"] in shard 2)')

    def test_another_seed_and_other_repetitions(self):
        self.shards(total=2, numbers=[1])
        write("imp/evaluation.json", Path("imp/evaluation.json").read_text().replace('"seed": 7', '"seed": 8'))
        self.shards("--repetitions", "2", total=2, numbers=[2])
        self.refused("seed (7 in shard 1, 8 in shard 2)", "repetitions (1, 2 in shard 2)")

    def test_another_commit(self):
        self.shards(total=2)
        meta = read_json("imp/s.shard-2-of-2.meta.json")
        meta["commit"] = {**meta["commit"], "hash": "a" * 40}
        write("imp/s.shard-2-of-2.meta.json", json.dumps(meta))
        self.refused(f"commit (none in shard 1, {'a' * 40} in shard 2)")

    def test_other_cases(self):
        self.shards(total=2)
        write_lines("imp/test_cases.jsonl", [{"id": f"c{index}", "input": index, "expected": 1} for index in range(1, 5)])
        self.refused("was made from other cases than there are now")

    def test_a_shard_that_was_cut_short_or_changed(self):
        self.shards(total=2)
        path = Path("imp/s.shard-2-of-2.jsonl")
        path.write_bytes(path.read_bytes().replace(b" s\"", b" t\""))
        self.refused("imp/s.shard-2-of-2.jsonl: was cut short, or changed after its run")

    def test_missing_trials_are_named_but_not_those_of_the_holdout(self):
        cases = [{"id": f"c{index}", "input": index, "split": "holdout" if index == 3 else "development"} for index in range(1, 9)]
        write_lines("imp/test_cases.jsonl", cases)
        self.shards(total=2)
        for number in (1, 2):
            path, meta_path = Path(f"imp/s.shard-{number}-of-2.jsonl"), f"imp/s.shard-{number}-of-2.meta.json"
            write_lines(path, [line for line in read_lines(path) if line["case_id"] not in ("c3", "c4")])
            meta = read_json(meta_path)
            meta["observations"]["sha256"] = kaizen.file_digest(str(path))
            write(meta_path, json.dumps(meta))
        number = next(number for number in (1, 2) if kaizen.is_in_shard("c4", kaizen.Shard(number, 2)))
        done = self.refused(f"imp/s: 2 trials are missing: case 'c4' trial 1 (shard {number}) and 1 of holdout cases")
        self.assertNotIn("c3", done.stderr)

    def test_a_line_of_another_shard(self):
        self.shards(total=2)
        for number, other in ((1, 2), (2, 1)):
            meta_path = f"imp/s.shard-{number}-of-2.meta.json"
            meta, digest = read_json(meta_path), read_json(f"imp/s.shard-{other}-of-2.meta.json")["observations"]
            write(f"{meta_path}.new", json.dumps({**meta, "observations": digest}))
        one, two = Path("imp/s.shard-1-of-2.jsonl"), Path("imp/s.shard-2-of-2.jsonl")
        first, second = one.read_bytes(), two.read_bytes()
        one.write_bytes(second), two.write_bytes(first)
        for number in (1, 2):
            os.replace(f"imp/s.shard-{number}-of-2.meta.json.new", f"imp/s.shard-{number}-of-2.meta.json")
        self.refused("holds a line that is not of its cases and trials")

    def test_one_that_is_still_being_written(self):
        self.shards(total=2)
        with kaizen.FileLock("imp/s.shard-2-of-2.lock", "the shard"):
            self.refused("shard 's.shard-2-of-2' is being written by another process")


class Gsm8k(TemporaryFolder):
    """200 cases in one run and in four shards: the same results, byte for byte."""

    def test_four_shards_merged_give_the_same_results_to_the_byte(self):
        shutil.copytree(ROOT / "examples", "examples", ignore=shutil.ignore_patterns("__pycache__"))
        place, answers = "examples/gsm8k", "examples/gsm8k/answers/175b_finetuning.jsonl"
        replay = ("run", place, "--stage", "candidate", "--progress", "none", "--replay", answers)
        self.run_cli(*replay)
        self.run_cli("evaluate", place, "--stage", "candidate")
        wanted, lines = Path(f"{place}/candidate.evaluated.jsonl").read_bytes(), without_execution(f"{place}/candidate.jsonl")
        for number in (1, 2, 3, 4):
            self.run_cli(*replay, "--shard", f"{number}/4")
            self.assertGreater(len(read_lines(f"{place}/candidate.shard-{number}-of-4.jsonl")), 30)
        self.run_cli("merge", place, "--stage", "candidate", "--overwrite")
        self.assertEqual(without_execution(f"{place}/candidate.jsonl"), lines)
        self.run_cli("evaluate", place, "--stage", "candidate")
        self.assertEqual(Path(f"{place}/candidate.evaluated.jsonl").read_bytes(), wanted)

    def run_cli(self, *argv):
        done = run_cli(*argv)
        self.assertEqual(done.status, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
