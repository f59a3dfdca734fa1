"""The fields of a case and its two fingerprints."""

import hashlib
import unittest

from support import StrictTestCase

import kaizen


def sha(text):
    """'sha256:' and the digest of a canonical text written by hand."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def places(document):
    """[place] of every breach in *document*."""
    breaches = kaizen.Breaches()
    is_good = kaizen.check_case(document, "test_cases.jsonl", 7, breaches)
    assert is_good == (not breaches.errors)
    return [breach.place() for breach in breaches.errors]


FULL_CASE = {
    "id": "refund-001", "input": {"message": "…"}, "context": [1], "expected": None, "split": "holdout", "tags": ["a", "b"], "critical": False,
    "cluster": "incident-7", "serial_group": "db", "evaluators": [{"id": "x", "type": "contains"}],
    "source": {"kind": "production", "trace_id": "t", "url": "", "captured_at": "2026-01-02", "redacted": True, "more": 1},
    "metadata": {"tier": 1}, "notes": ["anything"], "owner": 3,
}  # fmt: skip


class Fields(StrictTestCase):
    """Every field's type is checked, with file, line and pointer."""

    def test_a_full_case_is_good(self):
        self.assertEqual(places(FULL_CASE), [])

    def test_id_and_input_are_enough_and_null_is_an_input(self):
        for value in [None, "", 0, False, [], {}]:
            self.assertEqual(places({"id": "a", "input": value}), [])

    def test_id_and_input_are_needed(self):
        self.assertEqual(places({"id": "a"}), ["test_cases.jsonl:7"])
        self.assertEqual(places({}), ["test_cases.jsonl:7"] * 2)

    def test_a_field_of_another_type_is_named_by_its_pointer(self):
        for name, value, pointer in [
            ("id", 1, "/id"), ("id", "", "/id"), ("id", "x" * 201, "/id"), ("id", "a\nb", "/id"), ("id", "a\x7f", "/id"), ("id", "a\x85", "/id"), ("id", None, "/id"),
            ("split", "dev", "/split"), ("split", None, "/split"), ("split", "Holdout", "/split"),
            ("tags", "a", "/tags"), ("tags", ["a", 1], "/tags/1"), ("tags", [""], "/tags/0"),
            ("critical", 1, "/critical"), ("critical", "false", "/critical"), ("critical", None, "/critical"),
            ("cluster", "", "/cluster"), ("cluster", 5, "/cluster"), ("serial_group", [], "/serial_group"),
            ("evaluators", {}, "/evaluators"), ("evaluators", ["x"], "/evaluators/0"),
            ("source", "production", "/source"), ("source", {"kind": "prod"}, "/source/kind"), ("source", {"redacted": "no"}, "/source/redacted"),
            ("source", {"trace_id": 5}, "/source/trace_id"), ("metadata", [], "/metadata"),
        ]:
            with self.subTest(name=name, value=value):
                self.assertEqual(places({**FULL_CASE, name: value}), [f"test_cases.jsonl:7#{pointer}"])

    def test_ids_that_look_like_paths_or_are_hard_to_see_are_ids(self):
        for name in ["../escaped", "a/../../b", "..", ".", "x" * 200, " ", "日本", "naïve-✓", "<script>", "\u202e", "a\u2028b", "C:\\x", "\U0001f600" * 200]:
            self.assertEqual(places({"id": name, "input": 1}), [])

    def test_all_breaches_of_a_case_are_told_at_once(self):
        self.assertEqual(len(places({"id": 1, "split": 2, "tags": 3, "critical": 4, "source": 5})), 6)


class Fingerprints(StrictTestCase):
    """Against canonical texts written by hand from formats.md 1.1."""

    def test_the_input_fingerprint_covers_id_input_and_context(self):
        for document, text in [
            ({"id": "a", "input": 1}, '{"context":null,"id":"a","input":1}'),
            ({"input": {"b": 2.0, "a": "é"}, "id": "a", "context": None, "expected": 3, "tags": ["x"]}, '{"context":null,"id":"a","input":{"a":"é","b":2}}'),
            ({"id": "a", "input": None, "context": {"k": [0.5, 10.0]}}, '{"context":{"k":[0.5,10]},"id":"a","input":null}'),
        ]:
            with self.subTest(text=text):
                self.assertEqual(kaizen.case_input_fingerprint(document), sha(text))

    def test_the_dataset_fingerprint_covers_every_field_but_source_notes_and_owner(self):
        document = {**FULL_CASE}
        covered = kaizen.case_fingerprint_document(document)
        self.assertEqual(set(document) - set(covered), {"source", "notes", "owner"})

    def test_a_case_keeps_the_fields_nobody_knows_in_its_fingerprint(self):
        self.assertIn("colour", kaizen.case_fingerprint_document({"id": "a", "input": 1, "colour": "red"}))


if __name__ == "__main__":
    unittest.main()
