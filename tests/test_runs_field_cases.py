"""Field cases of running: each runner is fed, bounded and recorded as the case says is right."""

import json
import os
import shutil
import subprocess
import sys
import time
import unittest
from unittest import mock

import support
from support import DATA, INSTALLED, clean_environment, end_process, kaizen, read_json, read_lines, run_cli, run_process, write, write_lines
from test_foundation_process import dies_within

CHECK = [{"id": "answer", "type": "contains", "values": ["x"]}]
PYTHON = [sys.executable, "-S"]


def strict(path):
    """The records of a .jsonl file, read by a parser that refuses NaN and the like."""

    def refuse(word):
        raise ValueError(word)

    with open(path, encoding="utf-8") as lines:
        return [json.loads(line, parse_constant=refuse) for line in lines]


@unittest.skipIf(os.name == "nt", "programs are started on Linux and macOS only")
class FieldCase(support.TemporaryFolder):
    """A copy of a field case's folder, made an improvement."""

    def start(self, name, cases=None):
        shutil.copytree(DATA / "field_cases" / name, self.folder / "case")
        write("case/evaluation.json", json.dumps({"evaluators": CHECK}))
        if cases:
            write_lines("case/test_cases.jsonl", cases)

    def run_stage(self, *options, command=(*PYTHON, "case/runner.py"), status=0, stage="baseline"):
        started = time.monotonic()
        done = run_cli("run", "case", "--stage", stage, "--progress", "none", *options, "--", *command)
        self.took = time.monotonic() - started
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done

    def records(self, stage="baseline"):
        return {record["case_id"]: record for record in strict(f"case/{stage}.jsonl")}


class JsonLinesAndEncoding(FieldCase):
    def test_02_separators_inside_a_string_do_not_end_a_line(self):
        self.start("02-line-separators-in-strings")
        records = read_lines("case/baseline.jsonl")
        outputs = {record["id"]: record["output"] for record in records}
        self.assertEqual([sum(output.count(c) for c in "\u2028\u2029\x85") for output in outputs.values()], [1, 1, 1])
        # In the order of the file, which is not that of the cases, and one case more: resuming rewrites it.
        write_lines("case/test_cases.jsonl", [{"id": name, "input": "x"} for name in ("nel", "ls", "more", "ps")])
        known = [{"case_id": name, "trial": 1, "status": "completed", "output": output} for name, output in outputs.items()]
        write_lines("case/baseline.jsonl", known)
        write("case/runner.py", 'print(\'{"output": "x"}\')')
        self.run_stage("--resume")
        found = self.records()
        self.assertEqual(list(found), ["nel", "ls", "more", "ps"])
        self.assertEqual({name: found[name]["output"] for name in outputs}, outputs)
        self.assertEqual((self.folder / "case/baseline.jsonl").read_bytes().count(b"\n"), 4)

    def test_03_a_score_of_nan_is_a_protocol_error(self):
        self.start("03-nan-literal", [{"id": name, "input": "x"} for name in "ab"])
        self.run_stage(status=4)
        for record in self.records().values():
            self.assertEqual((record["status"], record["error"]["class"]), ("protocol_error", "protocol"))
            self.assertIn("NaN is not a JSON number", record["error"]["message"])
            self.assertIn("NaN", record["error"]["stdout_excerpt"])
            self.assertNotIn("output", record)

    def test_04_half_an_emoji_is_marked_and_the_rest_kept(self):
        self.start("04-lone-surrogate")
        self.run_stage()
        found = self.records()
        self.assertEqual({name: record["output"] for name, record in found.items()}, {"half": "done \ufffd", "whole": "done"})
        self.assertIn("U+FFFD", found["half"]["notes"][0])


class RunnerSubprocess(FieldCase):
    def test_07_a_helper_of_a_runner_that_timed_out_is_ended_too(self):
        self.start("07-grandchild-timeout")
        self.run_stage("--timeout", "0.5", status=4)
        self.assertLess(self.took, 8)
        for record in self.records().values():
            self.assertEqual((record["status"], record["error"]["class"]), ("timeout", "timeout"))
            self.assertLess(abs(record["execution"]["duration_ms"] - 500), 300)
        helpers = (self.folder / "case/helpers.txt").read_text().split()
        self.assertEqual(len(helpers), 2)
        self.assertTrue(all(dies_within(int(pid), 20) for pid in helpers))

    def test_08_a_flood_on_standard_error_blocks_nobody_and_is_bounded(self):
        self.start("08-stderr-flood")
        self.run_stage()
        for record in self.records().values():
            self.assertEqual((record["status"], record["output"]), ("completed", "ok"))
            tail = record["execution"]["stderr_tail"]
            self.assertLess(len(tail), 5000)
            self.assertTrue(tail.startswith(f"[{2048 * 1024 - 4096:,} bytes of standard error before this were cut]\n"), tail[:80])

    def test_09_an_answer_before_being_killed_is_no_answer(self):
        self.start("09-killed-by-signal")
        self.run_stage(status=4)
        for record in self.records().values():
            self.assertEqual((record["status"], record["error"]["class"]), ("error", "runner"))
            self.assertEqual(record["error"]["message"], "the runner was killed by signal 9 (SIGKILL)")
            self.assertEqual(record["execution"]["exit_code"], -9)
            self.assertNotIn("output", record)

    def test_10_text_around_the_answer_is_never_taken_for_it(self):
        self.start("10-log-lines-around-json")
        self.run_stage(status=4)
        found = self.records()
        self.assertEqual((found["two"]["status"], found["two"]["output"]), ("completed", "ready"))
        self.assertEqual(found["one"]["status"], "protocol_error")
        self.assertIn("closed 1 handle {}", found["one"]["error"]["stdout_excerpt"])
        self.assertNotIn("output", found["one"])

    def test_11_an_answer_in_another_encoding_is_an_error_in_every_locale(self):
        self.start("11-invalid-utf8")
        kept = []
        for stage, locale in (("one", {"LC_ALL": "C.UTF-8"}), ("two", {"LC_ALL": "C"})):
            done = run_process("run", "case", "--stage", stage, "--", *PYTHON, "case/runner.py", cwd=self.folder, env=locale)
            self.assertEqual(done.status, 4, done.stderr)
            found = self.records(stage)
            self.assertEqual(found["two"]["output"], "caf\u00e9")
            self.assertEqual(found["one"]["error"]["message"], "the answer is not UTF-8 (byte 15 of standard output)")
            kept.append([{key: value for key, value in record.items() if key != "execution"} for record in found.values()])
        self.assertEqual(kept[0], kept[1])

    def test_12_input_reaches_the_runner_as_it_stands(self):
        self.start("12-verbatim-input")
        self.run_stage("--jobs", "2")
        wanted = {case["id"]: case["input"] for case in read_lines("case/test_cases.jsonl")}
        self.assertEqual(len(wanted), 10)
        self.assertEqual({name: record["output"] for name, record in self.records().items()}, wanted)

    def test_13_a_runner_that_reads_to_the_end_gets_one(self):
        self.start("13-reads-to-eof")
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        argv = [sys.executable, str(INSTALLED), "run", "case", "--stage", "baseline", "--timeout", "20", "--", *PYTHON, "case/runner.py"]
        with open(reader, "rb") as held:
            subprocess.run(argv, cwd=self.folder, env=clean_environment(), stdin=held, capture_output=True, timeout=15, check=True)
        for record in self.records().values():
            self.assertRegex(record["output"], r"^[1-9]\d* bytes$")

    def test_14_command_and_working_folder(self):
        self.start("14-command-and-cwd")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        common = ["run", self.folder / "case", "--cwd", self.folder / "case/sub", "--progress", "none"]
        done = run_cli(*common, "--stage", "first", "--", *PYTHON, "agent.py", cwd=elsewhere)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual({record["output"] for record in self.records("first").values()}, {"from sub"})
        meta = read_json("case/first.meta.json")
        self.assertEqual((meta["command"], meta["cwd"]), ([*PYTHON, "agent.py"], "sub"))

        done = run_cli(*common, "--stage", "second", "--", *PYTHON, "no_such_file.py", cwd=elsewhere)
        self.assertEqual(done.status, 4)
        for record in self.records("second").values():
            self.assertEqual((record["error"]["class"], record["execution"]["exit_code"]), ("runner", 2))
            self.assertIn("No such file or directory", record["error"]["stderr_tail"])

        done = run_cli(*common, "--stage", "third", "--", "./no-such-program", cwd=elsewhere)
        self.assertEqual(done.status, 2)
        self.assertIn("there is no program './no-such-program'", done.stderr)
        self.assertEqual(done.stderr.count("error:"), 1)
        self.assertEqual([path.name for path in (self.folder / "case").glob("third*")], [])


class ResumeOrderAndCrashes(FieldCase):
    def observation(self, name, text):
        case = kaizen.Case(name, {"id": name, "input": f"question {name}"}, "", 1, "")
        mark = kaizen.case_input_fingerprint(case.document)
        attempt = kaizen.Attempt("completed", {"output": text}, None, "2026-01-02T03:04:05.678Z", 1.5, 0)
        return kaizen.encode_compact(kaizen.observation_document(name, 1, mark, attempt, 1))

    def test_15_a_torn_record_is_set_aside_and_run_again(self):
        self.start("15-torn-last-line")
        torn = read_lines_loosely("case/baseline.jsonl")
        self.assertEqual(torn, ["a", "b", None])
        whole = self.observation("a", "answer a") + "\n" + self.observation("b", "answer b") + "\n"
        write("case/baseline.jsonl", whole + self.observation("c", "answer c")[:40])
        done = self.run_stage("--resume")
        self.assertEqual((self.folder / "case/calls.txt").read_text().split(), ["c", "d"])
        content = (self.folder / "case/baseline.jsonl").read_text(encoding="utf-8")
        self.assertTrue(content.startswith(whole))
        self.assertEqual([record["case_id"] for record in strict("case/baseline.jsonl")], ["a", "b", "c", "d"])
        self.assertIn("1 unfinished record was set aside", done.stderr)

    def test_16_a_full_disk_leaves_the_old_stage_and_nothing_half_written(self):
        self.start("16-no-room-on-disk")
        runner = write("quick.sh", '#!/bin/sh\nprintf \'{"output": "%0450d"}\\n\' 7\n')
        runner.chmod(0o755)
        self.run_stage("--jobs", "2", command=["./quick.sh"])
        self.assertEqual(run_cli("evaluate", "case").status, 0)
        before = {path.name: path.read_bytes() for path in (self.folder / "case").iterdir() if path.is_file()}
        self.assertGreater(len(before["baseline.jsonl"]), 50_000)
        for name, options in (
            ("baseline.jsonl", ("run", "case", "--stage", "baseline", "--overwrite", "--jobs", "2", "--", "./quick.sh")),
            ("baseline.evaluated.jsonl", ("evaluate", "case")),
        ):
            argv = ["bash", "-c", 'ulimit -f 16; exec "$@"', "bash", sys.executable, str(INSTALLED), *options]
            done = subprocess.run(argv, cwd=self.folder, env=clean_environment(), capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"case/{name}", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            after = {path.name: path.read_bytes() for path in (self.folder / "case").iterdir() if path.is_file()}
            self.assertEqual(after, before)

    def test_17_an_interrupt_keeps_what_is_finished_and_leaves_nobody_behind(self):
        self.start("17-interrupt")
        runner = self.folder / "case/runner.py"
        runner.write_text(runner.read_text().replace("time.sleep(1)", "time.sleep(1 if cid == 's3' else 0)"))
        command = [sys.executable, str(INSTALLED), "run", "case", "--stage", "baseline", "--", *PYTHON, "case/runner.py"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        tool = subprocess.Popen(command, cwd=self.folder, env=clean_environment(), text=True, **pipes)
        self.addCleanup(end_process, tool)
        pids = self.folder / "case/pids.txt"
        deadline = time.monotonic() + 60
        while not (pids.exists() and "s3" in pids.read_text()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        tool.send_signal(2)
        out, err = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 130, err)
        self.assertIn("2 trials of 5 saved", out)
        self.assertIn("--resume", out)
        self.assertEqual(list(self.records()), ["s1", "s2"])
        self.assertTrue(all(dies_within(int(line.split()[0]), 20) for line in pids.read_text().splitlines()))
        self.assertEqual(read_json("case/baseline.meta.json")["complete"], False)
        pids.unlink()
        self.run_stage("--resume", command=[*PYTHON, "case/runner.py"])
        self.assertEqual([line.split()[1] for line in pids.read_text().splitlines()], ["s3", "s4", "s5"])
        self.assertEqual([record["case_id"] for record in strict("case/baseline.jsonl")], ["s1", "s2", "s3", "s4", "s5"])


    def test_18_records_belong_to_their_case_whatever_their_order(self):
        self.start("18-records-in-another-order")
        write("case/evaluation.json", json.dumps({"evaluators": [{"id": "answer", "type": "contains", "values": {"$case": "/expected"}}]}))
        stages = {stage: read_lines(f"case/{stage}.jsonl") for stage in ("baseline", "candidate")}
        self.assertEqual([record["id"] for record in stages["candidate"]], ["d", "b", "a", "c"])
        for reverse in (False, True):
            for stage, records in stages.items():
                known = [{"case_id": record["id"], "trial": 1, "status": "completed", "output": record["output"]} for record in records]
                write_lines(f"case/{stage}.jsonl", known[::-1] if reverse else known)
                self.assertEqual(run_cli("evaluate", "case", "--stage", stage).status, 0)
            answer = json.loads(run_cli("review", "case", "--json").stdout)
            self.assertEqual((answer["counts"]["improved"], answer["counts"]["regressed"], answer["counts"]["unchanged"]), (1, 1, 2))
            comparison = read_json("case/comparison.json")
            changes = {row["id"]: row["change"] for row in comparison["cases"]}
            self.assertEqual(changes, {"a": "improved", "b": "unchanged", "c": "regressed", "d": "unchanged"})
            self.assertEqual([comparison["rates"][role]["passed"] for role in ("baseline", "candidate")], [2, 2])
            self.assertEqual(comparison["delta"]["numerator"], 0)


class PathsNamesAndGit(FieldCase):
    def test_38_an_answer_of_two_million_characters_is_kept_whole(self):
        self.start("38-huge-output")
        self.run_stage()
        output = self.records()["long"]["output"]
        self.assertTrue(output == "<&\u00e9> " * 400_000 + "NEEDLE")

    def test_39_a_folder_with_spaces_and_accents(self):
        place = self.folder / "Mes donn\u00e9es (v2) & l'\u00e9t\u00e9 2026"
        write(place / "my runners/agent.py", "import json, sys\nprint(json.dumps({'output': json.load(sys.stdin)['case']['input']}))\n")
        write_lines(place / "case/test_cases.jsonl", [{"id": "\u00e9t\u00e9", "input": "x y"}])
        write(place / "case/evaluation.json", json.dumps({"evaluators": CHECK}))
        for stage, folder, improvement, runner in (
            ("inside", place, "case", "my runners/agent.py"),
            ("outside", self.folder, f"{place.name}/case", f"{place.name}/my runners/agent.py"),
        ):
            done = run_cli("run", improvement, "--stage", stage, "--progress", "none", "--", *PYTHON, runner, cwd=folder)
            self.assertEqual(done.status, 0, done.stderr)
            self.assertEqual([record["output"] for record in strict(place / f"case/{stage}.jsonl")], ["x y"])
            self.assertEqual(read_json(place / f"case/{stage}.meta.json")["command"], [*PYTHON, runner])

    def test_40_an_id_is_never_a_path(self):
        self.start("40-ids-that-are-paths")
        before = sorted(str(path) for path in self.folder.rglob("*"))
        self.run_stage()
        self.assertEqual(list(self.records()), ["../escaped", "a/../../b", "nested/case", "..", ".", "ok-1"])
        after = sorted(str(path) for path in self.folder.rglob("*"))
        self.assertEqual(set(after) - set(before), {str(self.folder / f"case/baseline{end}") for end in (".jsonl", ".meta.json")})

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_41_every_state_of_a_repository_is_told_apart(self):
        self.start("41-no-commit-yet", [{"id": "a", "input": "x"}])
        subprocess.run(["sh", "case/setup.sh", "repos"], cwd=self.folder, env=clean_environment(), check=True, capture_output=True)
        (self.folder / "repos/outside").mkdir()
        write("agent", '#!/bin/sh\necho \'{"output": 1}\'\n').chmod(0o755)
        found = {}
        with mock.patch.dict(os.environ, {"GIT_CEILING_DIRECTORIES": str(self.folder)}):
            for name in ("empty", "detached", "shallow", "outside"):
                self.run_stage("--cwd", f"repos/{name}", command=[str(self.folder / "agent")], stage=name)
                found[name] = read_json(f"case/{name}.meta.json")["commit"]
        for name in ("detached", "shallow"):
            place = self.folder / "repos" / name
            head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=place, capture_output=True, text=True, check=True)
            branch = None if name == "detached" else "main"
            self.assertEqual(found[name], {"hash": head.stdout.strip(), "branch": branch, "dirty": False, "reason": None})
        self.assertEqual(found["empty"], {"hash": None, "branch": "main", "dirty": False, "reason": "there is no commit yet"})
        self.assertEqual(found["outside"], {"hash": None, "branch": None, "dirty": None, "reason": "not in a git repository"})


class CommandLine(FieldCase):
    CASES = ({"id": "a", "input": "x", "tags": ["smoke"]}, {"id": "b", "input": "y"})

    def test_53_a_filter_that_matches_nothing_runs_nothing(self):
        self.start("13-reads-to-eof", self.CASES)
        write("case/runner.py", "open('case/calls.txt', 'a').write('called\\n')\nprint('{\"output\": 1}')\n")
        self.run_stage()
        before = (self.folder / "case/baseline.jsonl").read_bytes()
        (self.folder / "case/calls.txt").unlink()
        for options, told in (
            (("--tag", "smokee"), "--tag 'smokee' matches no case"),
            (("--id", "nope"), "--id 'nope' matches no case"),
            (("--tag", "smokee", "--overwrite"), "--tag 'smokee' matches no case"),
            (("--id", "nope", "--overwrite"), "--id 'nope' matches no case"),
            (("--id", "b", "--tag", "smoke", "--overwrite"), "no case meets --id 'b' and --tag 'smoke'"),
        ):
            with self.subTest(options):
                done = self.run_stage(*options, status=2)
                self.assertIn(told, done.stderr)
                self.assertEqual(done.stdout, "")
        self.assertFalse((self.folder / "case/calls.txt").exists())
        self.assertEqual((self.folder / "case/baseline.jsonl").read_bytes(), before)

    def test_55_a_terminal_that_knows_only_ascii_changes_nothing(self):
        self.start("55-ascii-terminal")
        kept = []
        for stage, environment in (("one", {}), ("two", {"PYTHONIOENCODING": "ascii"})):
            command = [*PYTHON, "-c", "raise SystemExit(3)"]
            done = run_process("run", "case", "--stage", stage, "--jobs", "2", "--", *command, cwd=self.folder, env=environment)
            self.assertEqual(done.status, 4, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            kept.append([{key: value for key, value in record.items() if key != "execution"} for record in strict(f"case/{stage}.jsonl")])
        self.assertEqual(kept[0], kept[1])


def read_lines_loosely(path):
    """The id of each line; None for one that is no JSON."""
    ids = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                ids.append(json.loads(line)["id"])
            except ValueError:
                ids.append(None)
    return ids


if __name__ == "__main__":
    unittest.main()
