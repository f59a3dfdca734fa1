"""`kaizen validate`: every file, every breach, its place and what to do; nothing of the holdout."""

import json
import os
import shutil
import sys
import unittest

from support import DATA, TemporaryFolder, make_improvement, run_cli, write, write_lines

CASE = {"id": "a", "input": 1, "split": "development", "source": {"kind": "expert"}}
ENTRY = {"id": "x", "type": "contains", "values": ["y"]}
DONE = {"case_id": "a", "trial": 1, "status": "completed"}


class ValidateCase(TemporaryFolder):
    """A test with an improvement x in the folder."""

    def setUp(self):
        super().setUp()
        make_improvement("x", [CASE], [ENTRY])

    def validate(self):
        done = run_cli("validate", "x")
        self.assertEqual(done.stderr, "")
        return done

    def breaches(self):
        """['file:line#/pointer: message'] without the folder."""
        done = run_cli("validate", "x", "--json")
        document = json.loads(done.stdout)
        self.assertEqual(done.status, 0 if document["valid"] else 1)
        self.assertEqual(len(document["breaches"]), min(document["breach_count"], 50))
        return [told(breach) for breach in document["breaches"]]

    def warnings(self):
        return [told(breach) for breach in json.loads(run_cli("validate", "x", "--json").stdout)["warnings"]]


def told(breach):
    """'file:line#/pointer: message'."""
    line = f":{breach['line']}" if breach["line"] else ""
    pointer = f"#{breach['pointer']}" if breach["pointer"] else ""
    return f"{breach['path'].removeprefix('improvements/x/')}{line}{pointer}: {breach['message']}"


class Valid(ValidateCase):
    """What a good improvement gives."""

    def test_it_counts_cases_and_names_both_fingerprints(self):
        cases = [
            {**CASE, "id": "a", "tags": ["t", "u"]},
            {**CASE, "id": "b", "split": "regression", "tags": ["t"], "critical": True},
            {**CASE, "id": "c", "split": "holdout", "tags": ["only-there"]},
        ]
        make_improvement("x", cases, [ENTRY])
        done = self.validate()
        self.assertEqual(done.status, 0)
        self.assertIn("improvements/x is valid: 3 cases, 1 evaluator", done.stdout)
        self.assertIn("3: 1 development, 1 regression and 1 holdout; 1 critical", done.stdout)
        self.assertIn("t 2 and u 1", done.stdout)
        self.assertNotIn("only-there", done.stdout)
        document = json.loads(run_cli("validate", "x", "--json").stdout)
        self.assertEqual(document["cases"]["splits"], {"development": 1, "regression": 1, "holdout": 1})
        self.assertEqual(document["cases"]["critical"], 1)
        for key in ("dataset_fingerprint", "evaluator_fingerprint"):
            self.assertRegex(document[key], r"^sha256:[0-9a-f]{64}$")
            self.assertIn(document[key], done.stdout)
        self.assertTrue(document["ok"])

    def test_windows_line_ends_are_a_warning(self):
        shutil.copy(DATA / "field_cases" / "01-bom-crlf" / "test_cases.jsonl", "improvements/x/test_cases.jsonl")
        done = self.validate()
        self.assertEqual(done.status, 0)
        self.assertIn("test_cases.jsonl:1: begins with a byte-order mark", done.stdout)
        self.assertIn("test_cases.jsonl:1: lines end in CRLF", done.stdout)

    def test_cases_without_a_source_are_listed_and_those_of_the_holdout_counted(self):
        make_improvement("x", [{"id": f"c{index}", "input": 1, "split": "challenge"} for index in range(12)] + [{"id": "s", "input": 1, "split": "holdout"}], [ENTRY])
        (warning,) = self.warnings()
        self.assertEqual(
            warning, "test_cases.jsonl: 13 cases without a source: " + ", ".join(f"c{index}" for index in range(10)) + ", 2 more and 1 holdout case"
        )

    def test_other_warnings(self):
        make_improvement("x", [CASE, {**CASE, "id": "b", "expcted": 1}, {"id": "c", "input": 1, "source": {}}], [])
        self.assertEqual(
            self.warnings(),
            [
                "test_cases.jsonl: 1 case without a split, while others have one",
                "test_cases.jsonl:2: unknown field 'expcted'",
                "evaluation.json:3#/evaluators: is empty: nothing is checked but by evaluators of a case's own",
            ],
        )

    def test_unknown_files_are_left_alone(self):
        write("improvements/x/notes.txt", b"\xff")
        write("improvements/x/rubrics/a.jsonl", "{")
        write("improvements/x/a.b.c.jsonl", "{")
        self.assertEqual(self.breaches(), [])


class Broken(ValidateCase):
    """Breaches of cases and evaluation.json."""

    def test_a_breach_is_one_line_with_place_message_and_hint(self):
        make_improvement("x", [CASE, {**CASE, "id": "b", "split": "developmnt"}], [ENTRY])
        done = self.validate()
        self.assertEqual(done.status, 1)
        self.assertIn(
            "  improvements/x/test_cases.jsonl:2#/split: must be one of development, regression, challenge or holdout, not 'developmnt'"
            " [did you mean 'development'?]\n",
            done.stdout,
        )

    def test_at_most_fifty_are_shown_and_the_rest_counted(self):
        make_improvement("x", [CASE, *["{"] * 60], [ENTRY])
        done = self.validate()
        self.assertIn("improvements/x: 60 breaches\n", done.stdout)
        self.assertEqual(done.stdout.count("test_cases.jsonl:"), 50)
        self.assertIn("  and 10 more\n", done.stdout)
        document = json.loads(run_cli("validate", "x", "--json").stdout)
        self.assertEqual((document["breach_count"], len(document["breaches"]), document["valid"], document["code"]), (60, 50, False, 1))

    def test_everything_is_told_in_one_pass(self):
        make_improvement("x", [CASE, '{"id": "b", "input": NaN}', CASE], {"version": 3, "evaluators": [ENTRY], "acceptence": {}})
        write("improvements/x/decision.yaml", "status: maybe\n")
        write("improvements/x/labels.jsonl", '{"case_id": "a"}\n')
        write("improvements/x/baseline.jsonl", '{"case_id": "a", "trial": 0, "status": "completed"}\n')
        files = [text.split(":")[0].split("#")[0] for text in self.breaches()]
        self.assertEqual(files.count("test_cases.jsonl"), 2)
        self.assertEqual(set(files), {"evaluation.json", "test_cases.jsonl", "decision.yaml", "labels.jsonl", "baseline.jsonl"})

    def test_two_cases_with_one_id_name_both_lines_and_no_other_command_goes_on(self):
        shutil.copy(DATA / "field_cases" / "32-duplicate-ids" / "test_cases.jsonl", "improvements/x/test_cases.jsonl")
        done = self.validate()
        self.assertEqual(done.status, 1)
        self.assertIn("test_cases.jsonl:4#/id: id 'dup' comes twice (first at improvements/x/test_cases.jsonl:2)", done.stdout)

    def test_the_same_gate_twice_names_file_and_key(self):
        shutil.copy(DATA / "field_cases" / "05-duplicate-key-in-policy" / "evaluation.json", "improvements/x/evaluation.json")
        done = self.validate()
        self.assertEqual(done.status, 1)
        self.assertIn("improvements/x/evaluation.json:12: key 'minimum_pass_rate' occurs twice", done.stdout)

    def test_a_broken_line_between_blank_ones_is_named_by_its_number(self):
        shutil.copy(DATA / "field_cases" / "06-blank-lines" / "bad.jsonl", "improvements/x/test_cases.jsonl")
        done = self.validate()
        self.assertEqual(done.status, 1)
        self.assertIn("improvements/x/test_cases.jsonl:5: not JSON", done.stdout)

    def test_ids_that_are_paths_are_valid_and_make_no_file(self):
        shutil.copy(DATA / "field_cases" / "40-ids-that-are-paths" / "test_cases.jsonl", "improvements/x/test_cases.jsonl")
        self.assertEqual(self.validate().status, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["improvements"])

    def test_no_case_is_a_breach(self):
        write("improvements/x/test_cases.jsonl", "")
        self.assertEqual(self.breaches(), ["test_cases.jsonl: holds no case"])

    def test_a_missing_half_is_a_breach(self):
        os.unlink("improvements/x/evaluation.json")
        self.assertEqual(self.breaches(), ["evaluation.json: does not exist"])

    def test_breaches_of_evaluators_are_told(self):
        make_improvement("x", [{**CASE, "evaluators": [{"id": "y", "type": "contians", "values": ["z"]}]}], [{"id": "x", "type": "contians", "values": ["z"]}])
        found = self.breaches()
        self.assertTrue(any(text.startswith("evaluation.json:") and "/evaluators/0" in text for text in found), found)
        self.assertTrue(any(text.startswith("test_cases.jsonl:1#/evaluators/0") for text in found), found)

    def test_a_broken_reference_is_told_once(self):
        make_improvement("x", [CASE], {"define": {"w": 1}, "evaluators": [{**ENTRY, "values": {"$use": "ww"}}]})
        self.assertEqual(self.breaches(), ["evaluation.json:10#/evaluators/0/values/$use: 'define' has no entry 'ww'"])

    def test_a_folder_that_is_no_improvement_is_wrong_usage(self):
        os.makedirs("improvements/empty")
        for name in ("empty", "nothere"):
            done = run_cli("validate", name)
            self.assertEqual((done.status, done.stdout), (2, ""))


class Holdout(ValidateCase):
    """Of a holdout case only file and line are shown."""

    def test_nothing_of_it_is_printed(self):
        secret = {"id": "sec-id", "input": "sec-input", "expected": {"says": "sec-expected"}, "split": "holdout", "tags": ["sec-tag"]}
        for changed in [
            {}, {"critical": "sec-x"}, {"tags": "sec-x"}, {"cluster": ["sec-x"]}, {"source": {"kind": 3}}, {"evaluators": [{"id": "sec-x", "type": "sec-y"}]},
            {"evaluators": [{"id": "x", "type": "matches", "pattern": "(sec-x"}]}, {"evaluators": [{"$use": "sec-x"}]}, {"metadata": "sec-x"},
        ]:
            with self.subTest(changed=changed):
                make_improvement("x", [CASE, {**secret, **changed}], [ENTRY])
                for options in ([], ["--json"]):
                    done = run_cli("validate", "x", *options)
                    self.assertNotIn("sec-", done.stdout + done.stderr)
                    self.assertEqual(done.status, 1 if changed else 0, done.stdout)
                    if changed:
                        self.assertIn("test_cases.jsonl", done.stdout)

    def test_no_command_quotes_a_holdout_case_that_it_refuses(self):
        write("answers.jsonl", json.dumps({"case_id": "sec-id", "output": 1}) + "\n")
        secret = {"id": "sec-id", "input": "sec-input", "expected": {"says": "sec-expected"}, "split": "holdout"}
        broken = [
            {"evaluators": [{"id": "sec-x", "type": "matches", "pattern": "(sec-x"}]}, {"evaluators": [{"id": "x", "type": "sec-y"}]},
            {"evaluators": [{"id": "x", "type": "length", "max": 3, "sec-key": 1}]}, {"evaluators": [{"id": "x", "type": "json", "schema": {"properties": {"sec-p": {"typ": 1}}}}]},
            {"evaluators": [{"id": "x", "type": "contains", "values": {"$use": "sec-x"}}]}, {"evaluators": [{"id": "x", "type": "contains", "values": {"$file": "sec-x"}}]},
            {"evaluators": [{"id": "x", "type": "length", "max": -4711}]}, {"source": {"kind": "sec-kind"}},
        ]  # fmt: skip
        lines = [json.dumps({**secret, **changed}) for changed in broken] + [json.dumps(secret)[:-1] + ', "m": {"sec-k": 1, "sec-k": 4711}}']
        for line in lines:
            folder = make_improvement("x", [CASE], [ENTRY])
            place = folder / "test_cases.jsonl"
            write(place, place.read_text() + line + "\n")
            for command in (["validate"], ["evaluate"], ["review"], ["gate"], ["run", "--stage", "s", "--replay", "answers.jsonl"]):
                for options in ([], ["--json"]):
                    with self.subTest(line=line, command=command):
                        done = run_cli(command[0], "x", *command[1:], *options)
                        self.assertEqual(done.status, 1 if command == ["validate"] else 2)
                        self.assertRegex(done.stdout + done.stderr, r'test_cases\.jsonl(:2|",\s+"line": 2)')
                        for word in ("sec-", "4711"):
                            self.assertNotIn(word, done.stdout + done.stderr)

    def test_no_command_names_what_only_the_holdout_has(self):
        own = [{"id": "sec-own", "type": "length", "min": 1}]
        observed = [{"case_id": name, "trial": 1, "status": "completed", "output": "x"} for name in ("c1", "sec-id")]
        make_improvement("x", [{**CASE, "id": "c1"}, {"id": "sec-id", "input": 1, "split": "holdout", "evaluators": own}], [ENTRY], baseline=observed)
        for options in ([], ["--json"]):
            done = run_cli("evaluate", "x", *options)
            self.assertEqual(done.status, 0, done.stderr)
            self.assertIn(ENTRY["id"], done.stdout)
            self.assertNotIn("sec-", done.stdout + done.stderr)
        write("improvements/x/baseline.jsonl", "".join(json.dumps(observed[1]) + "\n" for _ in range(2)))
        write("twice.jsonl", "".join(json.dumps(observed[1]) + "\n" for _ in range(2)))
        for command in (["evaluate", "x"], ["validate", "x"], ["run", "x", "--stage", "new", "--replay", "twice.jsonl"]):
            with self.subTest(command=command):
                done = run_cli(*command)
                self.assertIn(done.status, (1, 2))
                self.assertNotIn("sec-", done.stdout + done.stderr)

    def test_two_holdout_cases_with_one_id(self):
        make_improvement("x", [CASE, {"id": "sec-id", "input": 1, "split": "holdout"}, {"id": "sec-id", "input": 2, "split": "holdout"}], [ENTRY])
        done = self.validate()
        self.assertEqual(done.status, 1)
        self.assertNotIn("sec-", done.stdout)
        self.assertIn("test_cases.jsonl:3#/id", done.stdout)


class OtherCommands(ValidateCase):
    """What validate refuses with 1, every other command refuses with 2 before it does anything."""

    def test_no_command_goes_on_with_broken_cases_or_policy(self):
        write("agent.py", "open('called', 'w').close()\nprint('{\"output\": 1}')\n")
        for name, content in [
            ("test_cases.jsonl", b""),
            ("test_cases.jsonl", (DATA / "field_cases" / "32-duplicate-ids" / "test_cases.jsonl").read_bytes()),
            ("test_cases.jsonl", (DATA / "field_cases" / "06-blank-lines" / "bad.jsonl").read_bytes()),
            ("evaluation.json", (DATA / "field_cases" / "05-duplicate-key-in-policy" / "evaluation.json").read_bytes()),
        ]:
            make_improvement("x", [CASE], [ENTRY], candidate=[{"case_id": "a", "output": "y"}])
            write(f"improvements/x/{name}", content)
            before = sorted(os.listdir("improvements/x"))
            self.assertEqual(run_cli("validate", "x").status, 1)
            for command in (["run", "x", "--stage", "baseline", "--", sys.executable, "agent.py"], ["evaluate", "x"], ["review", "x"], ["gate", "x"]):
                with self.subTest(name=name, command=command[0]):
                    done = run_cli(*command)
                    self.assertEqual((done.status, done.stdout), (2, ""))
                    self.assertIn(f"improvements/x/{name}:", done.stderr)
                    self.assertEqual(sorted(os.listdir("improvements/x")), before)
        self.assertFalse(os.path.exists("called"))


class OtherFiles(ValidateCase):
    """Observations, results, meta files, decision, labels."""

    def test_observations(self):
        write_lines("improvements/x/baseline.jsonl", [DONE, {**DONE, "trial": 0}, {**DONE, "status": "weird"}, {"trial": 1, "status": "error"}, "{", DONE])
        found = self.breaches()
        self.assertEqual([text.split(": ")[0] for text in found], [f"baseline.jsonl:{line}" for line in range(2, 7)])
        self.assertIn("is the same case and trial as line 1", found[-1])

    def test_the_line_that_a_killed_run_left_is_told_as_such(self):
        write("improvements/x/baseline.jsonl", json.dumps(DONE) + '\n{"case_id": "a", "tri')
        self.assertEqual(self.breaches(), ["baseline.jsonl:2: is cut off: a run was stopped while it wrote it"])

    def test_a_whole_last_line_needs_no_newline(self):
        write("improvements/x/baseline.jsonl", json.dumps(DONE))
        self.assertEqual(self.breaches(), [])

    def test_observations_that_no_longer_fit_are_warnings(self):
        write_lines("improvements/x/baseline.jsonl", [{**DONE, "input_fingerprint": "sha256:0"}, {**DONE, "case_id": "gone"}])
        self.assertEqual(
            self.warnings(), ["baseline.jsonl: 1 observation of cases that are not there (any more)", "baseline.jsonl: 1 observation made from another input than the case has"]
        )

    def test_not_a_number_in_observations(self):
        shutil.copy(DATA / "field_cases" / "03-nan-literal" / "candidate.jsonl", "improvements/x/candidate.jsonl")
        found = self.breaches()
        for line, name in [(2, "NaN"), (3, "Infinity"), (4, "-Infinity")]:
            self.assertIn(f"candidate.jsonl:{line}: {name} is not a JSON number", found)

    def test_results(self):
        good = {"case_id": "a", "trial": 1, "status": "completed", "outcome": "pass", "score": 1, "coverage": 1, "evaluations": [{"id": "x", "status": "pass", "score": None}]}
        write_lines(
            "improvements/x/baseline.evaluated.jsonl",
            [good, {**good, "outcome": "passed"}, {**good, "score": 1.5}, {**good, "evaluations": [{"id": "x", "status": "maybe"}]}, {"case_id": "a"}],
        )
        places = [text.split(": ")[0].removeprefix("baseline.evaluated.jsonl:") for text in self.breaches()]
        self.assertEqual(places, ["2#/outcome", "3#/score", "4#/evaluations/0/status", "5", "5", "5", "5"])

    def test_meta_files(self):
        write("improvements/x/baseline.meta.json", '{"version": 1,\n "stage": "baseline",\n "repetitions": 0}')
        write("improvements/x/candidate.meta.json", '{"version": 1, "stage": "candidate", "repetitions": 1, "command": null, "observations": null}')
        write("improvements/x/baseline.evaluated.meta.json", "[]")
        self.assertEqual(
            self.breaches(),
            ["baseline.evaluated.meta.json: is a JSON array, not an object", "baseline.meta.json:3#/repetitions: must be a whole number from 1 to 1,000, not 0"],
        )

    def test_decision(self):
        write("improvements/x/decision.yaml", "status: accepted#1\nconditions: [a]\n")
        self.assertEqual(len(self.breaches()), 1)
        write("improvements/x/decision.yaml", "status: accepted#1\nfoo: bar\n")
        self.assertEqual([text.split(": ")[0] for text in self.breaches()], ["decision.yaml:1#/status", "decision.yaml:2#/foo"])
        write("improvements/x/decision.yaml", "status: accepted  # by whom?\n")
        self.assertEqual(self.breaches(), [])
        self.assertEqual(self.warnings(), ["decision.yaml: is accepted, but lacks decided_by and rationale"])

    def test_labels(self):
        good = {"case_id": "a", "rater": "r", "label": "pass"}
        records = [good, {"case_id": "a", "rater": "r", "abstain": True, "note": ""}, {"case_id": "zz", "rater": "r", "label": "x"}, {"case_id": "a", "rater": "r"}, {**good, "labl": 1}]
        write_lines("improvements/x/labels.jsonl", records)
        self.assertEqual(
            self.breaches(),
            [
                "labels.jsonl:3#/case_id: names a case that is not there",
                "labels.jsonl:4: has neither a label nor an abstention",
                "labels.jsonl:5#/labl: unknown key 'labl'",
            ],
        )

    def test_what_the_engine_wrote_must_be_strict_json(self):
        for name in ("comparison.json", "reliability.json", "feedback.json"):
            write(f"improvements/x/{name}", '{"a": NaN}')
        write("improvements/x/optimizer-log.jsonl", "{\n")
        write("improvements/x/baseline.judgements.jsonl", "[]\n")
        self.assertEqual(len(self.breaches()), 5)


if __name__ == "__main__":
    unittest.main()
