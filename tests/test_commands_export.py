"""`kaizen export`: what each format holds, what it must not hold, and that it reads as it writes."""

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

import support
from support import DATA, kaizen, make_improvement, read_lines, run_cli, write

CHECK = {"id": "yes", "type": "contains", "values": ["y"]}
SHORT = {"id": "short", "type": "length", "max": 10, "severity": "score"}
HOSTILE = [line["output"] for line in read_lines(DATA / "field_cases/37-script-breakout/candidate.jsonl")]
FORMULAS = read_lines(DATA / "field_cases/44-formula-in-csv/candidate.jsonl")


class Export(support.TemporaryFolder):
    """An improvement with stages as texts by case, trials divided by '|'."""

    def make(self, fields=lambda name: {}, evaluators=(CHECK, SHORT), **stages):
        names = dict.fromkeys(name for answers in stages.values() for name in answers)
        rows = {
            stage: [{"case_id": name, "trial": trial, "output": output} for name, outputs in answers.items() for trial, output in enumerate(outputs, 1)]
            for stage, answers in stages.items()
        }
        make_improvement("change", [{"id": name, "input": f"question {name}", "expected": "y", **fields(name)} for name in names], list(evaluators), **rows)

    def export(self, kind, *options, status=0):
        done = run_cli("export", "change", "--format", kind, *options)
        self.assertEqual(done.status, status, done.stderr)
        return done

    def table(self, *options):
        return list(csv.DictReader(io.StringIO(self.export("csv", *options).stdout, newline="")))

    # --- CSV ---

    def test_csv_has_a_row_for_each_case_trial_and_evaluator(self):
        self.make(baseline={"a": ["y", "n"], "b": ["y"]}, candidate={"a": ["y"]})
        rows = self.table()
        self.assertEqual([(row["stage"], row["case_id"], row["trial"], row["evaluator"]) for row in rows], [
            ("baseline", "a", "1", "yes"), ("baseline", "a", "1", "short"), ("baseline", "a", "2", "yes"), ("baseline", "a", "2", "short"),
            ("baseline", "b", "1", "yes"), ("baseline", "b", "1", "short"), ("candidate", "a", "1", "yes"), ("candidate", "a", "1", "short"),
        ])  # fmt: skip
        self.assertEqual((rows[2]["status"], rows[2]["score"], rows[2]["outcome"], rows[2]["cost_usd"], rows[2]["stale"]), ("fail", "0.0", "fail", "", "false"))

    def test_no_cell_is_a_formula_and_harmless_texts_come_back_unchanged(self):
        """Field case 44."""
        texts = {row["id"]: [row["output"]] for row in FORMULAS}
        self.make(candidate=texts, evaluators=[CHECK])
        rows = {row["case_id"]: row["output"] for row in self.table()}
        self.assertEqual(len(rows), 10)
        for name, (text,) in texts.items():
            self.assertEqual(rows[name], text if name in ("f8", "f9") else "'" + text, name)

    def test_what_a_spreadsheet_takes_for_a_formula_is_defused_wherever_it_hides(self):
        writer = kaizen.CsvWriter()
        for start in ("", " ", "\t", "\r", "\n", "\u200b", "\ufeff", "\u00a0", "\u2060\u200e ", "\x01", "\x00"):
            for sign in "=+-@\uff1d\uff0b\uff0d\uff20":
                (cell,) = next(csv.reader(io.StringIO(writer.cells([f"{start}{sign}cmd|' /C calc'!A0"]), newline="")))
                self.assertTrue(cell.startswith("'"), ascii(start + sign))
        for text in ("-0.5", "+1", "-3e5", "1-2", "a=b", "'=1", ""):
            self.assertEqual(next(csv.reader([writer.cell(text) or '""'])), [text])
        self.assertEqual([writer.cell(value) for value in (-0.5, None, True, {"a": "=1"}, "-1+1")], ["-0.5", "", "true", '"{""a"":""=1""}"', "'-1+1"])

    def test_ids_reasons_and_names_of_evaluators_are_defused_too(self):
        self.make(evaluators=[{"id": "=cmd()", "type": "contains", "values": ["y"]}], candidate={"@case": ["n"]})
        (row,) = self.table()
        self.assertEqual((row["case_id"], row["evaluator"]), ("'@case", "'=cmd()"))

    def test_any_text_comes_back_through_a_csv_reader(self):
        texts = [*HOSTILE, 'quote " and, comma; semicolon', "line\r\nend\rand\nmore", " space ", "naïve 日本語 🎉", "x" * 100_000]
        self.make(candidate={f"c{number}": [text] for number, text in enumerate(texts)}, evaluators=[CHECK])
        found = [row["output"].removeprefix("'") for row in self.table()]
        self.assertEqual(found, [text.removeprefix("'") for text in texts])

    # --- JSON Lines ---

    def test_jsonl_keeps_every_text_unchanged(self):
        texts = [*HOSTILE, *[row["output"] for row in FORMULAS], "a\u2028b\x1b[31m"]
        self.make(candidate={f"c{number}": [text] for number, text in enumerate(texts)})
        rows = [json.loads(line) for line in self.export("jsonl").stdout.split("\n")[:-1]]
        self.assertEqual([row["output"] for row in rows], texts)
        self.assertEqual((rows[0]["input"], rows[0]["expected"], rows[0]["stage"], rows[0]["stale"]), ("question c0", "y", "candidate", False))
        self.assertEqual([entry["id"] for entry in rows[0]["evaluations"]], ["yes", "short"])

    # --- Markdown and JUnit ---

    def test_markdown_holds_no_markup_of_others(self):
        self.make(candidate={text[:190].replace("\n", " ") or "x": ["n"] for text in HOSTILE})
        text = self.export("markdown").stdout
        rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| case ")]
        self.assertEqual(len(rows), len(HOSTILE))
        for row in rows:
            self.assertEqual(len(re.findall(r"(?<!\\)\|", row)), 6, row)
        self.assertNotRegex(text, r"<(script|img|svg)|[^&\\]\[x\]\(")
        self.assertIn(f"{len(HOSTILE)} trials shown: 0 passed, {len(HOSTILE)} failed, 0 errors; 0 % of {len(HOSTILE)} measured trials passed.", text)

    def test_junit_has_a_test_case_for_each_trial_and_its_counts(self):
        broken = {"case_id": "b", "trial": 3, "status": "error", "error": {"class": "agent", "type": "boom", "message": "it\x1b broke"}}
        self.make(candidate={"a<&": ["y", "n\x08"], "b": ["y", "y"]})
        path = self.folder / "improvements/change/candidate.jsonl"
        write(path, path.read_text() + json.dumps({**broken, "execution": {"duration_ms": 1500}}) + "\n")
        (suite,) = ElementTree.fromstring(self.export("junit").stdout)
        self.assertEqual([suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")], ["kaizen candidate", "5", "1", "1", "0"])
        self.assertEqual([case.get("name") for case in suite], ["a<& (trial 1)", "a<& (trial 2)", "b (trial 1)", "b (trial 2)", "b (trial 3)"])
        self.assertEqual({case.get("classname") for case in suite}, {"change.candidate"})
        self.assertEqual((suite[1][0].tag, suite[1][0].get("message")), ("failure", "yes: does not contain 'y'"))
        self.assertEqual((suite[4][0].tag, suite[4].get("time")), ("error", "1.500"))
        self.assertIn("it\\x1b broke", suite[4][0].get("message"))

    # --- What is not shown ---

    def test_of_the_holdout_only_counts_are_shown_until_it_is_opened(self):
        fields = lambda name: {"split": "holdout" if name == "secret-id" else "development"}  # noqa: E731
        self.make(fields, candidate={"a": ["y"], "secret-id": ["n secret-output"]}, baseline={"a": ["y"], "secret-id": ["n"]})
        for kind in kaizen.EXPORT_FORMATS:
            done = self.export(kind)
            self.assertNotIn("secret", done.stdout + done.stderr, kind)
            self.assertIn("a", done.stdout)
            self.assertIn("candidate: 1 holdout case with 1 trial is counted and not shown", done.stderr)
        self.assertIn("1 holdout case with 1 trial is counted and not shown", self.export("markdown").stdout)
        self.assertIn('skipped="1"', self.export("junit").stdout)
        opened = self.export("jsonl", "--open-holdout")
        self.assertIn("secret-output", opened.stdout)
        self.assertIn("opened once", opened.stderr)
        self.assertIn("The holdout has been opened once so far.", self.export("markdown").stdout)
        self.assertEqual([row["command"] for row in read_lines("improvements/change/optimizer-log.jsonl")], ["export"])

    def test_a_case_that_is_gone_may_have_been_a_holdout_case_and_is_left_out(self):
        self.make(candidate={"a": ["y"], "gone-id": ["y"]})
        run_cli("evaluate", "change")
        write("improvements/change/test_cases.jsonl", '{"id": "a", "input": "question a", "expected": "y"}\n')
        done = self.export("csv")
        self.assertNotIn("gone-id", done.stdout)
        self.assertIn("candidate: 1 trial of cases that the dataset no longer holds was left out", done.stderr)

    # --- Stale and broken evidence ---

    def test_stale_results_are_exported_and_said_to_be_stale(self):
        self.make(candidate={"a": ["y"]})
        run_cli("evaluate", "change")
        evaluation = {"version": 1, "evaluators": [CHECK, {**SHORT, "max": 11}]}
        write("improvements/change/evaluation.json", json.dumps(evaluation))
        self.assertIn("note: stale: candidate: the evaluators have changed since it was evaluated: short", self.export("csv").stderr)
        self.assertEqual({row["stale"] for row in self.table()}, {"true"})
        self.assertIs(json.loads(self.export("jsonl").stdout)["stale"], True)
        self.assertIn("stale: candidate: the evaluators have changed", self.export("markdown").stdout)
        self.assertEqual(ElementTree.fromstring(self.export("junit").stdout)[0].get("errors"), "1")

    def test_results_of_other_trials_are_refused(self):
        self.make(candidate={"a": ["y"], "b": ["y"]})
        run_cli("evaluate", "change")
        results = self.folder / "improvements/change/candidate.evaluated.jsonl"
        lines = results.read_text().splitlines(keepends=True)
        results.write_text("".join(reversed(lines)))
        self.assertIn("are not the ones that evaluate wrote", self.export("csv", status=2).stderr)
        rows = self.folder / "improvements/change/candidate.jsonl"
        results.write_text("".join(lines))
        rows.write_text(rows.read_text().splitlines(keepends=True)[0])
        self.assertIn("has more results than observations", self.export("csv", status=2).stderr)

    # --- Where it goes ---

    def test_a_file_is_written_whole_and_the_answer_says_what_it_holds(self):
        self.make(candidate={"a": ["y", "n"]}, baseline={"a": ["y"]})
        done = run_cli("export", "change", "--format", "csv", "--output", "out.csv", "--stage", "candidate", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual((answer["files"], answer["stages"]["candidate"]["counts"]), ({"csv": "out.csv"}, {"pass": 1, "fail": 1, "error": 0}))
        with open("out.csv", encoding="utf-8", newline="") as stream:
            self.assertEqual(stream.read(), self.export("csv", "--stage", "candidate").stdout)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk_behind_standard_output_is_no_defect(self):
        self.make(candidate={"a": ["y"]})
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [sys.executable, str(support.INSTALLED), "export", "change", "--format", "csv"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]), (2, "kaizen: error: standard output: cannot be written: No space left on device"))

    def test_a_terminal_gets_no_control_characters(self):
        self.make(candidate={"a": ["y\x1b[31m\x9b2J\r\u202e"]})
        leader, follower = pty.openpty()
        with open(follower, "wb") as terminal:
            subprocess.run([sys.executable, str(support.INSTALLED), "export", "change", "--format", "csv"], stdout=terminal, check=True)
            text = os.read(leader, 65_536).decode()
        os.close(leader)
        self.assertNotRegex(text, "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]")
        self.assertIn("y\\x1b[31m\\x9b2J\\r\\u202e", text)

    def test_json_without_a_file_is_refused(self):
        self.make(candidate={"a": ["y"]})
        self.assertIn("--json needs --output FILE", self.export("csv", "--json", status=2).stderr)

    def test_evidence_is_never_overwritten(self):
        self.make(candidate={"a": ["y"]})
        before = (self.folder / "improvements/change/candidate.jsonl").read_bytes()
        for path in ("improvements/change/candidate.jsonl", "improvements/change/new.jsonl", "improvements/../improvements/change/x.csv"):
            self.assertIn("the files of an improvement are evidence", self.export("jsonl", "--output", path, status=5).stderr)
        self.assertEqual((self.folder / "improvements/change/candidate.jsonl").read_bytes(), before)
        self.assertFalse((self.folder / "improvements/change/new.jsonl").exists())

    def test_a_stage_that_is_not_there_is_an_error_with_the_way_out(self):
        self.make(candidate={"a": ["y"]})
        self.assertIn("there is no stage 'other' yet", self.export("csv", "--stage", "other", status=2).stderr)
        shutil.rmtree("improvements/change")
        self.make(candidate={"a": ["y"]})
        (self.folder / "improvements/change/candidate.jsonl").unlink()
        self.assertIn("no stage has been run yet", self.export("csv", status=2).stderr)


if __name__ == "__main__":
    unittest.main()
