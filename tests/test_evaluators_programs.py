"""`command` and `program`: what they start, on what, and when they may."""

import hashlib
import json
import os
import unittest
from pathlib import Path

import support
from evaluating import refusal_of, suite_of
from support import kaizen, make_improvement, read_lines, run_cli, write
from test_foundation_process import dies_within


def entry(kind="command", *argv, **settings):
    """An entry that starts *argv*."""
    return {"id": "e", "type": kind, "argv": list(argv), **settings}


class Programs(support.TemporaryFolder):
    """An improvement whose stage `baseline` has trials with kept files."""

    def prepare(self, entries, *trials):
        """Each of *trials* is {path: text}, or None for a trial that kept nothing."""
        lines = []
        for number, files in enumerate(trials or [{}], 1):
            told = {}
            place = Path("improvements/code/baseline.files", kaizen.slug("c1"), str(number))
            for name, text in (files or {}).items():
                write(place / name, text)
                told[name] = {"change": "added", "sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text)}
            if files is not None:
                place.mkdir(parents=True, exist_ok=True)
            lines.append({"case_id": "c1", "trial": number, "output": "done", "files": told})
        case = {"id": "c1", "input": "?", "expected": {"answer": 7}, "tags": ["t"], "metadata": {"m": 1}}
        self.place = make_improvement("code", [case], entries, baseline=lines)

    def evaluate(self, *options, status=0):
        done = run_cli("evaluate", "code", "--progress", "none", *options)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done

    def found(self, *options, index=0):
        """The evaluation of the entry about one trial."""
        self.evaluate("--allow-programs", *options)
        return read_lines(self.place / "baseline.evaluated.jsonl")[index]["evaluations"][0]


class Leave(Programs):
    """Nothing starts by itself."""

    def test_without_leave_nothing_is_started_and_the_entry_is_an_error(self):
        for kind in ("command", "program"):
            self.prepare([entry(kind, "/bin/sh", "-c", "touch {improvement}/ran")], {"a": "x"})
            done = self.evaluate()
            found = read_lines(self.place / "baseline.evaluated.jsonl")[0]["evaluations"][0]
            self.assertEqual((found["status"], found["reason"].split(":")[0]), ("error", "programs_not_allowed"))
            self.assertIn("next: kaizen evaluate improvements/code --allow-programs", done.stdout)
            self.assertFalse((self.place / "ran").exists())
            self.evaluate("--allow-programs")
            self.assertTrue((self.place / "ran").exists())
            (self.place / "ran").unlink()

    def test_no_other_command_starts_them(self):
        self.prepare([entry("program", "/bin/sh", "-c", "touch {improvement}/ran")])
        write(self.place / "candidate.jsonl", (self.place / "baseline.jsonl").read_bytes())
        for command in ("review", "gate", "reliability"):
            done = run_cli(command, "code")
            self.assertEqual(done.status, 2)
            self.assertIn("run: kaizen evaluate improvements/code --stage baseline --allow-programs", done.stderr)
        self.evaluate()
        self.assertEqual(run_cli("review", "code").status, 0)
        self.assertFalse((self.place / "ran").exists())

    def test_test_starts_them_with_leave_only(self):
        self.prepare([entry("program", "/bin/sh", "-c", """printf '{"status": "pass"}'""")])
        os.remove(self.place / "baseline.jsonl")
        for options, status in (((), 1), (("--allow-programs",), 0)):
            done = run_cli("test", "code", "--plain", "--progress", "none", *options, "--", "cat")
            self.assertEqual(done.status, status, done.stdout + done.stderr)

    def test_a_case_brings_neither_a_program_nor_an_argument(self):
        for kind in ("command", "program"):
            for own in (entry(kind, "true"), {"id": "all", "type": "all", "of": [{"type": kind, "argv": ["true"]}]}):
                _, _, breaches = suite_of([{"id": "c1", "input": "?", "evaluators": [own]}], [])
                self.assertIn("cannot stand in a case", breaches.errors[0].message)
            for argv in ({"$case": "/input"}, ["sh", {"$case": "/input"}], ["sh", {"x": {"$case": "/input"}}]):
                self.assertEqual(refusal_of({"id": "e", "type": kind, "argv": argv})[:2], ("/argv", "cannot be taken from a case"))

    def test_what_cannot_be_started_is_refused_with_its_place(self):
        for change, pointer in (
            ({"argv": []}, "/argv"), ({"argv": "sh"}, "/argv"), ({"argv": [""]}, "/argv"), ({"argv": ["sh", "a\0b"]}, "/argv/1"), ({"argv": ["sh", 1]}, "/argv"),
            ({"timeout": 0}, "/timeout"), ({"timeout": 1e9}, "/timeout"), ({"cwd": "/etc"}, "/cwd"), ({"cwd": "a/../.."}, "/cwd"),
            ({"env": ["A=B"]}, "/env/0"), ({"env": [7]}, "/env/0"), ({"exit": "0"}, "/exit"), ({"stdout": {"$regexp": "x"}}, "/stdout/$regexp"),
        ):  # fmt: skip
            with self.subTest(change):
                self.assertEqual(refusal_of({**entry("command", "sh"), **change})[0], pointer)


class Command(Programs):
    """On a copy of the files that the trial left."""

    def test_exit_and_output_decide(self):
        for settings, script, status in (
            ({}, "exit 0", "pass"), ({}, "exit 3", "fail"), ({"exit": 3}, "exit 3", "pass"), ({}, "kill -9 $$", "fail"), ({"exit": 9}, "kill -9 $$", "fail"),
            ({"stdout": "ok"}, "echo ok", "pass"), ({"stdout": "ok"}, "echo okay", "fail"), ({"stdout": {"$regex": "^2 pas"}}, "echo 2 passed", "pass"),
            ({"stderr": {"$not": {"$regex": "Warning"}}}, "echo Warning >&2", "fail"),
        ):  # fmt: skip
            with self.subTest(script, **settings):
                self.prepare([entry("command", "/bin/sh", "-c", script, **settings)])
                self.assertEqual(self.found()["status"], status)

    def test_it_works_on_a_copy_and_the_kept_files_stay(self):
        self.prepare([entry("command", "/bin/sh", "-c", "cat src/a.txt && pwd && rm -r src && touch new", stdout={"$regex": "^one"})], {"src/a.txt": "one\n"})
        self.assertEqual(self.found()["status"], "pass")
        kept = self.place / "baseline.files" / kaizen.slug("c1") / "1"
        self.assertEqual(sorted(path.name for path in kept.rglob("*")), ["a.txt", "src"])

    def test_it_starts_where_cwd_says_and_finds_the_improvement(self):
        self.prepare([entry("command", "/bin/sh", "-c", 'cat b.txt && test -f "$0/evaluation.json"', "{improvement}", cwd="src")], {"src/b.txt": "x"})
        self.assertEqual(self.found()["status"], "pass")
        self.prepare([entry("command", "true", cwd="lib")], {"src/b.txt": "x"})
        self.assertEqual((self.found()["status"], self.found()["reason"]), ("error", "the trial kept no folder 'lib'"))

    def test_trials_see_their_own_files_whatever_the_number_of_jobs(self):
        self.prepare([entry("command", "/bin/sh", "-c", "grep -q 3 n")], *({"n": str(number)} for number in range(1, 7)))
        bodies = []
        for jobs in ("1", "4"):
            self.evaluate("--allow-programs", "--jobs", jobs)
            bodies.append((self.place / "baseline.evaluated.jsonl").read_bytes())
        self.assertEqual(bodies[0], bodies[1])
        self.assertEqual([line["outcome"] for line in read_lines(self.place / "baseline.evaluated.jsonl")], ["fail", "fail", "pass", "fail", "fail", "fail"])

    def test_without_kept_files_it_follows_on_missing(self):
        self.prepare([entry("command", "true")], None)
        self.assertIn("no files of this trial were kept", self.found()["reason"])
        self.prepare([entry("command", "true", on_missing="not_applicable")], None)
        self.assertEqual(self.found()["status"], "not_applicable")

    def test_files_that_are_not_the_ones_of_the_trial_are_no_evidence(self):
        self.prepare([entry("command", "true")], {"a": "one", "b": "two"})
        kept = self.place / "baseline.files" / kaizen.slug("c1") / "1"
        write(kept / "a", "changed")
        self.assertEqual(self.found()["reason"], "'a' is not the file that was kept of this trial")
        (kept / "a").unlink()
        self.assertEqual(self.found()["reason"], "not kept of this trial: 'a'")
        (kept / "a").symlink_to("/etc/hostname")
        self.assertEqual(self.found()["status"], "error")
        (kept / "a").unlink()
        write(kept / "c", "slipped in")
        self.prepare([entry("command", "test", "!", "-e", "c")], {"a": "one"})
        self.assertEqual(self.found()["status"], "pass")

    def test_what_hangs_or_floods_is_ended_with_all_it_started_and_is_no_verdict(self):
        self.prepare([entry("command", "/bin/sh", "-c", "sleep 30 & echo $! > {improvement}/pid; wait", timeout=0.3)])
        self.assertIn("it took more than 0.3 s", self.found()["reason"])
        self.assertTrue(dies_within(int((self.place / "pid").read_text()), 20))
        self.prepare([entry("command", "/bin/sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", on_missing="fail")])
        found = self.found()
        self.assertEqual(found["status"], "fail")
        self.assertIn("1 MiB", found["reason"])

    def test_it_gets_the_named_variables_and_a_basic_set_only(self):
        self.prepare([entry("command", "/bin/sh", "-c", 'test "$KEPT" = yes && test -z "$LOST" && test -n "$PATH" && test -d "$KAIZEN_WORKDIR"', env=["KEPT"])])
        done = run_cli("evaluate", "code", "--allow-programs", env={"KEPT": "yes", "LOST": "no"})
        self.assertIn("1 passed", done.stdout)

    def test_what_it_printed_is_masked_and_names_no_temporary_folder(self):
        key = "ghp_" + "a1B2" * 9
        self.prepare([entry("command", "/bin/sh", "-c", f"pwd; echo {key} >&2; exit 1")])
        found = self.found()
        self.assertEqual(found["value"]["stdout"], "$KAIZEN_WORKDIR\n")
        self.assertIn("REDACTED:github_token", found["value"]["stderr"])
        self.assertIn("exit code 1, not 0: ***REDACTED", found["reason"])
        self.assertNotIn(key, (self.place / "baseline.evaluated.jsonl").read_text())

    def test_a_program_that_is_not_there_is_an_error(self):
        self.prepare([entry("command", "no-such-program-here")])
        self.assertTrue(self.found()["reason"].startswith("cannot_start: "))


class Program(Programs):
    """JSON in, an outcome out."""

    def outcome(self, raw, **settings):
        self.prepare([entry("program", "/bin/sh", "-c", f"cat > {{improvement}}/got.json; cat <<'END'\n{raw}\nEND", **settings)])
        return self.found()

    def test_it_gets_case_and_observation_and_its_outcome_stands(self):
        answer = {"status": "fail", "score": 0.25, "value": {"n": 1}, "reason": "two\nlines", "evidence": [{"step": 1}, "x"]}
        found = self.outcome(json.dumps(answer))
        self.assertEqual(found, {"id": "e", "type": "program", "severity": "gate", "status": "fail", "score": 0.25, "value": {"n": 1}, "reason": "two\\nlines", "evidence": [{"step": 1}]})
        got = json.loads((self.place / "got.json").read_text())
        self.assertEqual((got["protocol"], got["case"]["expected"], got["observation"]["output"]), ("1.0", {"answer": 7}, "done"))

    def test_threshold_and_negation_apply(self):
        self.assertEqual(self.outcome('{"status": "fail", "score": 0.5}', threshold=0.5)["status"], "pass")
        self.assertEqual(self.outcome('{"status": "pass"}', negate=True)["score"], 0.0)
        self.assertEqual(self.outcome('{"status": "not_applicable", "score": 1}')["score"], None)
        self.assertEqual(self.outcome('{"status": "error"}', negate=True)["status"], "error")

    def test_anything_else_is_an_error(self):
        for raw in ("", "pass", "[]", "{}", '{"status": "ok"}', '{"status": "pass", "score": 2}', '{"status": "pass", "score": NaN}', '{"status": "pass", "score": true}',
                    '{"status": "pass"} {"status": "fail"}', '{"status": "pass", "reason": 1}', '{"status": "pass", "evidence": {}}', json.dumps({"status": "pass", "value": "x" * 20_000})):  # fmt: skip
            with self.subTest(raw[:60]):
                found = self.outcome(raw)
                self.assertEqual((found["status"], found["reason"].split(":")[0]), ("error", "program_protocol"))

    def test_an_exit_code_is_an_error_whatever_was_printed(self):
        self.prepare([entry("program", "/bin/sh", "-c", """printf '{"status": "pass"}'; echo broken >&2; exit 4""")])
        found = self.found()
        self.assertEqual((found["status"], found["reason"]), ("error", "program_failed: exit code 4: broken"))

    def test_it_starts_in_the_improvement_with_a_copy_of_the_kept_files(self):
        write("improvements/code/checks/rule.sh", 'cat "$KAIZEN_WORKDIR/a"\n')
        self.prepare([entry("program", "/bin/sh", "checks/rule.sh")], {"a": '{"status": "pass"}'})
        self.assertEqual(self.found()["status"], "pass")

    def test_one_inside_a_combinator_runs_as_well_and_two_alike_run_once(self):
        script = "echo x >> {improvement}/runs; printf '{\"status\": \"pass\"}'"
        inner = {"type": "program", "argv": ["/bin/sh", "-c", script]}
        self.prepare([{"id": "both", "type": "all", "of": [inner, {**inner, "negate": False}]}])
        self.assertEqual(self.found()["status"], "pass")
        self.assertEqual((self.place / "runs").read_text(), "x\n")


if __name__ == "__main__":
    unittest.main()
