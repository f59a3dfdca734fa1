"""Loading all cases of an improvement: own file, includes, duplicates, both fingerprints."""

import hashlib
import json
import os
import shutil
import unittest

from support import DATA, TemporaryFolder, write, write_lines

import kaizen

FIELD_CASES = DATA / "field_cases"


def independent_canonical(value):
    """Canonical JSON in a few lines of its own: formats.md 1.1."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{independent_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(independent_canonical, value)) + "]"
    if isinstance(value, float) and value == int(value) and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def sha(text):
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


class DatasetCase(TemporaryFolder):
    """A test in a folder with improvements/x, its dataset loaded by `load`."""

    def setUp(self):
        super().setUp()
        self.breaches = kaizen.Breaches()
        os.makedirs("improvements/x")

    def load(self, *include):
        self.breaches = kaizen.Breaches()
        return kaizen.load_dataset(kaizen.Improvement("improvements/x"), list(include), self.breaches)

    def cases(self, *records, name="improvements/x/test_cases.jsonl"):
        return write_lines(name, records)

    def errors(self):
        return [breach.text() for breach in self.breaches.errors]

    def field_case(self, name):
        shutil.copy(FIELD_CASES / name / "test_cases.jsonl", "improvements/x/test_cases.jsonl")
        return self.load()


class OwnFile(DatasetCase):
    """test_cases.jsonl itself."""

    def test_a_mark_and_carriage_returns_change_nothing(self):
        dataset = self.field_case("01-bom-crlf")
        self.assertEqual(self.errors(), [])
        self.assertEqual(next(iter(dataset.cases)), "first")
        self.assertEqual(len(dataset.cases), 3)
        self.assertEqual(len(self.breaches.warnings), 2)
        plain = (FIELD_CASES / "01-bom-crlf" / "test_cases.jsonl").read_bytes().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
        write("improvements/x/test_cases.jsonl", plain)
        again = self.load()
        self.assertEqual(again.fingerprint, dataset.fingerprint)
        self.assertEqual([case.document for case in again.cases.values()], [case.document for case in dataset.cases.values()])
        self.assertEqual(self.breaches.warnings, [])
        for case in dataset.cases.values():
            self.assertFalse(any(isinstance(value, str) and value.endswith("\r") for value in case.document.values()))

    def test_texts_that_look_like_templates_stay_as_they_are(self):
        dataset = self.field_case("12-verbatim-input")
        self.assertEqual(len(dataset.cases), 10)
        for case in dataset.cases.values():
            self.assertEqual(case.document["input"], case.document["expected"])
        self.assertEqual(dataset.cases["v9"].document["input"], "  leading and trailing  ")
        self.assertEqual(dataset.cases["v10"].document["input"], "")
        self.assertEqual(dataset.cases["v8"].document["input"], "`id` $(id)")

    def test_ids_that_are_paths_are_kept(self):
        dataset = self.field_case("40-ids-that-are-paths")
        self.assertEqual(list(dataset.cases), ["../escaped", "a/../../b", "nested/case", "..", ".", "ok-1"])
        self.assertEqual(sorted(os.listdir(".")), ["improvements"])

    def test_two_cases_with_one_id_name_it_and_both_lines(self):
        self.field_case("32-duplicate-ids")
        (text,) = self.errors()
        self.assertTrue(text.startswith("improvements/x/test_cases.jsonl:4#/id: id 'dup' comes twice (first at improvements/x/test_cases.jsonl:2)"))

    def test_an_id_that_comes_twice_is_refused_also_with_the_same_input(self):
        self.cases({"id": "a", "input": 1}, {"id": "a", "input": 1}, {"id": "a", "input": 2})
        self.load()
        self.assertEqual([breach.line for breach in self.breaches.errors], [2, 3])

    def test_the_id_of_a_holdout_case_is_not_told(self):
        self.cases({"id": "secret", "input": 1, "split": "holdout"}, {"id": "secret", "input": 1})
        self.load()
        (text,) = self.errors()
        self.assertNotIn("secret", text)
        self.assertIn("test_cases.jsonl:2#/id: the id of a holdout case comes twice (first at improvements/x/test_cases.jsonl:1)", text)

    def test_every_bad_line_is_told_in_one_pass(self):
        bad = ['{"id": "n", "input": NaN}', '{"id": "o", "input": 1e999}', '{"id": "d", "input": 1, "input": 2}', '{"id": "s", "input": "\\ud83d"}', "[]", "7", "{", "x"]
        self.cases({"id": "a", "input": 1}, *bad, {"id": 5, "input": 1}, {"id": "b", "input": 2})
        dataset = self.load()
        self.assertEqual([breach.line for breach in self.breaches.errors], [2, 3, 4, 5, 6, 7, 8, 9, 10])
        self.assertTrue(all(breach.hint for breach in self.breaches.errors if breach.line < 10))
        self.assertEqual(list(dataset.cases), ["a", "b"])

    def test_a_hundred_bad_lines_are_all_told(self):
        self.cases(*["{"] * 100)
        self.load()
        self.assertEqual(len(self.breaches.errors), 100)

    def test_no_case_is_an_error(self):
        for content in ["", "\n \n\t\n", "\ufeff"]:
            write("improvements/x/test_cases.jsonl", content)
            self.load()
            self.assertIn("improvements/x/test_cases.jsonl: holds no case", self.errors()[0])

    def test_a_file_that_is_not_there_is_an_error_with_a_hint(self):
        self.load()
        (breach,) = self.breaches.errors
        self.assertEqual(breach.message, "does not exist")
        self.assertIn("kaizen init", breach.hint)

    def test_an_unknown_field_is_one_warning_that_names_the_nearest(self):
        self.cases({"id": "a", "input": 1, "expcted": 2}, {"id": "b", "input": 1, "expcted": 2, "zzz": 1}, {"id": "c", "input": 1, "expcted": 2})
        self.load()
        self.assertEqual(self.errors(), [])
        first, second = self.breaches.warnings
        self.assertEqual((first.line, first.message, first.hint), (1, "unknown field 'expcted', also on 2 further lines", "did you mean 'expected'?"))
        self.assertEqual((second.line, second.message), (2, "unknown field 'zzz'"))

    def test_legacy_means_that_no_own_case_has_a_split(self):
        self.cases({"id": "a", "input": 1}, {"id": "b", "input": 1})
        self.assertTrue(self.load().is_legacy)
        self.cases({"id": "a", "input": 1}, {"id": "b", "input": 1, "split": "challenge"})
        self.assertFalse(self.load().is_legacy)

    def test_the_holdout_is_known_by_its_ids(self):
        self.cases({"id": "a", "input": 1, "split": "holdout"}, {"id": "b", "input": 1, "split": "development"})
        self.assertEqual(self.load().holdout, {"a"})


class Includes(DatasetCase):
    """Further files: where they may lie, and what happens when a case comes again."""

    REGRESSION = "../../datasets/regression.jsonl"

    def test_cases_of_included_files_follow_the_own_ones(self):
        self.cases({"id": "z", "input": 1}, {"id": "a", "input": 2})
        self.cases({"id": "m", "input": 3}, name="datasets/regression.jsonl")
        dataset = self.load(self.REGRESSION)
        self.assertEqual(self.errors(), [])
        self.assertEqual(list(dataset.cases), ["z", "a", "m"])
        self.assertEqual((dataset.cases["m"].path, dataset.cases["m"].line), ("datasets/regression.jsonl", 1))

    def test_a_case_that_comes_again_with_the_same_input_is_one_case_and_the_own_wins(self):
        self.cases({"id": "a", "input": {"x": 1, "y": 2.0}, "expected": "own"})
        self.cases({"id": "a", "input": {"y": 2, "x": 1}, "context": None, "expected": "other"}, name="datasets/regression.jsonl")
        self.cases({"id": "a", "input": {"y": 2, "x": 1}}, {"id": "b", "input": 1}, name="datasets/more.jsonl")
        dataset = self.load(self.REGRESSION, "../../datasets/more.jsonl", self.REGRESSION)
        self.assertEqual(self.errors(), [])
        self.assertEqual(list(dataset.cases), ["a", "b"])
        self.assertEqual(dataset.cases["a"].document["expected"], "own")

    def test_one_id_with_two_inputs_names_both_places(self):
        for other in ({"id": "a", "input": 2}, {"id": "a", "input": 1, "context": "more"}):
            self.cases({"id": "b", "input": 0}, {"id": "a", "input": 1})
            self.cases(other, name="datasets/regression.jsonl")
            self.load(self.REGRESSION)
            (text,) = self.errors()
            self.assertTrue(text.startswith("datasets/regression.jsonl:1#/id: id 'a' has another input (first at improvements/x/test_cases.jsonl:2)"), text)

    def test_a_file_twice_in_the_list_is_one_file(self):
        self.cases({"id": "a", "input": 1})
        self.cases({"id": "b", "input": 1}, name="datasets/regression.jsonl")
        self.assertEqual(list(self.load(self.REGRESSION, "../../datasets/./regression.jsonl").cases), ["a", "b"])
        self.assertEqual(self.errors(), [])

    def test_what_is_absent_absolute_or_outside_is_refused(self):
        self.cases({"id": "a", "input": 1})
        outside = self.cases({"id": "b", "input": 1}, name=self.folder.parent / f"{self.folder.name}-outside.jsonl")
        self.addCleanup(outside.unlink)
        os.symlink(outside, "link.jsonl")
        os.makedirs("datasets")
        os.symlink(outside.parent, "datasets/up")
        for name, message in [
            ("../../datasets/no.jsonl", "does not exist"),
            ("../../datasets", "does not exist"),
            ("", "does not exist"),
            (str(outside), "is not relative"),
            (f"../../../{outside.name}", "leads out of the repository"),
            ("../../link.jsonl", "leads out of the repository"),
            (f"../../datasets/up/{outside.name}", "leads out of the repository"),
            ("../../../../../../../../etc/passwd", "leads out of the repository"),
            ("a\x00b", "leads out of the repository"),
        ]:
            with self.subTest(name=name):
                dataset = self.load(name)
                (breach,) = self.breaches.errors
                self.assertEqual(breach.place(), "improvements/x/evaluation.json#/include/0")
                self.assertIn(message, breach.message)
                self.assertTrue(breach.hint)
                self.assertEqual(list(dataset.cases), ["a"])

    def test_the_repository_is_the_nearest_folder_above_with_git(self):
        self.cases({"id": "a", "input": 1})
        self.cases({"id": "b", "input": 1}, name="shared.jsonl")
        self.load("../../shared.jsonl")
        self.assertEqual(self.errors(), [])  # no .git anywhere: two levels up
        os.makedirs("improvements/.git")
        self.load("../../shared.jsonl")
        self.assertIn("leads out of the repository", self.errors()[0])
        os.rmdir("improvements/.git")
        write("improvements/x/.git", "gitdir: elsewhere")  # a worktree has a file
        self.load("../../shared.jsonl")
        self.assertIn("leads out of the repository", self.errors()[0])

    def test_a_repository_further_up_lets_more_in(self):
        os.makedirs("deep/improvements/y")
        os.makedirs(".git")
        self.cases({"id": "a", "input": 1}, name="deep/improvements/y/test_cases.jsonl")
        self.cases({"id": "b", "input": 1}, name="shared.jsonl")
        breaches = kaizen.Breaches()
        dataset = kaizen.load_dataset(kaizen.Improvement("deep/improvements/y"), ["../../../shared.jsonl"], breaches)
        self.assertEqual((list(dataset.cases), breaches.errors), (["a", "b"], []))

    def test_an_empty_included_file_is_fine(self):
        self.cases({"id": "a", "input": 1})
        self.cases(name="datasets/regression.jsonl")
        self.assertEqual(list(self.load(self.REGRESSION).cases), ["a"])
        self.assertEqual(self.errors(), [])

    def test_a_bad_line_of_an_included_file_names_that_file(self):
        self.cases({"id": "a", "input": 1})
        self.cases({"id": "b", "input": 1}, "{", name="datasets/regression.jsonl")
        self.load(self.REGRESSION)
        self.assertTrue(self.errors()[0].startswith("datasets/regression.jsonl:2: "))


class Fingerprint(DatasetCase):
    """The dataset fingerprint, against a few lines of its own and texts written by hand."""

    def test_it_is_that_of_the_text_written_by_hand(self):
        self.cases(
            {"id": "b", "input": 2.0, "notes": "x", "tags": ["t"]},
            {"id": "a", "input": {"z": "é", "y": None}, "owner": "me", "source": {"kind": "expert"}, "expected": 0.5},
        )
        text = '[{"expected":0.5,"id":"a","input":{"y":null,"z":"é"}},{"id":"b","input":2,"tags":["t"]}]'
        dataset = self.load()
        self.assertEqual(dataset.fingerprint, sha(text))
        self.assertEqual(dataset.cases["b"].input_fingerprint, sha('{"context":null,"id":"b","input":2}'))

    def test_it_agrees_with_an_independent_computation(self):
        records = [
            {"id": f"case-{number % 7}-{number}", "input": {"n": number / 2, "t": "\u2028" * (number % 3), "big": 10**20 + number}, "critical": bool(number % 2)}
            for number in range(50)
        ]
        self.cases(*records)
        ordered = sorted(records, key=lambda record: record["id"])
        self.assertEqual(self.load().fingerprint, sha(independent_canonical(ordered)))

    def test_what_is_not_measured_does_not_change_it_and_what_is_does(self):
        base = {"id": "a", "input": 1, "expected": 2}
        self.cases(base)
        before = self.load().fingerprint
        for extra, same in [
            ({"notes": "n"}, True), ({"owner": "o"}, True), ({"source": {"kind": "expert"}}, True),
            ({"expected": 3}, False), ({"tags": ["t"]}, False), ({"split": "development"}, False), ({"critical": True}, False), ({"metadata": {}}, False),
        ]:
            with self.subTest(extra=extra):
                self.cases({**base, **extra})
                self.assertEqual(self.load().fingerprint == before, same)

    def test_order_of_lines_and_keys_and_the_file_do_not_change_it(self):
        self.cases({"id": "a", "input": 1}, {"id": "b", "input": 2})
        before = self.load().fingerprint
        self.cases('{"input":2,"id":"b"}')
        self.cases('{"input": 1.0, "id": "\\u0061"}', name="datasets/regression.jsonl")
        self.assertEqual(self.load("../../datasets/regression.jsonl").fingerprint, before)


if __name__ == "__main__":
    unittest.main()
