"""`kaizen init NAME`: what it makes, what it refuses, and that what it makes is valid."""

import json
import os
import unittest

from support import TemporaryFolder, read_json, read_lines, run_cli, write, write_lines

import kaizen


class Init(TemporaryFolder):
    """Run in an empty folder."""

    def tree(self):
        """Every file below the folder with its bytes."""
        return {
            os.path.relpath(os.path.join(path, name), self.folder): (self.folder / path / name).read_bytes()
            for path, _, names in os.walk(self.folder)
            for name in names
        }

    def test_it_makes_three_files_that_are_valid_as_written(self):
        done = run_cli("init", "refund")
        self.assertEqual((done.status, done.stderr), (0, ""))
        self.assertEqual(sorted(self.tree()), [f"improvements/refund/{name}" for name in ("evaluation.json", "issue.md", "test_cases.jsonl")])
        checked = run_cli("validate", "refund")
        self.assertEqual((checked.status, checked.stderr), (0, ""))
        self.assertNotIn("warning", checked.stdout)
        self.assertIn("2 cases", checked.stdout)

    def test_the_templates_hold_what_is_needed_and_no_more(self):
        run_cli("init", "refund")
        evaluation = read_json("improvements/refund/evaluation.json")
        self.assertEqual(set(evaluation), {"version", "evaluators"})
        cases = read_lines("improvements/refund/test_cases.jsonl")
        self.assertEqual(len(cases), 2)
        self.assertTrue(all(case["expected"]["says"] and case["source"] for case in cases))
        self.assertTrue((self.folder / "improvements/refund/issue.md").read_text().startswith("# refund\n"))

    def test_it_says_what_to_do_next(self):
        done = run_cli("init", "refund")
        for word in ("issue.md", "test_cases.jsonl", "evaluation.json", "kaizen validate refund", "kaizen run refund --stage baseline -- COMMAND"):
            self.assertIn(word, done.stdout)

    def test_json_names_the_files(self):
        document = json.loads(run_cli("init", "refund", "--json").stdout)
        self.assertTrue(document["ok"])
        self.assertEqual(document["improvement"], "improvements/refund")
        self.assertEqual(sorted(document["files"]), sorted(self.tree()))

    def test_accepted_regressions_come_back(self):
        write_lines("datasets/regression.jsonl", [{"id": "old", "input": 1, "split": "regression", "source": {"kind": "regression"}}])
        done = run_cli("init", "refund")
        self.assertIn("datasets/regression.jsonl is included", done.stdout)
        self.assertEqual(read_json("improvements/refund/evaluation.json")["include"], ["../../datasets/regression.jsonl"])
        self.assertIn("3 cases", run_cli("validate", "refund").stdout)

    def test_nothing_is_overwritten(self):
        run_cli("init", "refund")
        write("improvements/refund/issue.md", "mine")
        before = self.tree()
        done = run_cli("init", "refund")
        self.assertEqual((done.status, done.stdout), (5, ""))
        self.assertIn("improvements/refund: is there already", done.stderr)
        self.assertEqual(self.tree(), before)

    def test_a_file_or_link_of_that_name_is_left_alone(self):
        write("improvements/file", "x")
        os.symlink("nowhere", "improvements/link")
        for name in ("file", "link"):
            self.assertEqual(run_cli("init", name).status, 5)
        self.assertEqual(os.readlink("improvements/link"), "nowhere")

    def test_an_empty_folder_is_filled(self):
        os.makedirs("improvements/refund")
        self.assertEqual(run_cli("init", "refund").status, 0)

    def test_names_that_are_paths_or_hostile_are_refused(self):
        names = ["../escaped", "a/b", "/tmp/x", ".", "..", ".hidden", "", " ", "a b", "a\nb", "a\x00b", "x" * 65, "é", "C:\\x", "a\\b", "$(id)", "a;b", "~", "\u202e", "a.", "-", "--x"]
        for name in names:
            with self.subTest(name=name):
                done = run_cli("init", "--", name) if name.startswith("-") else run_cli("init", name)
                self.assertEqual(done.status, 2)
                self.assertEqual(done.stdout, "")
                self.assertNotIn("Traceback", done.stderr)
                self.assertEqual(self.tree(), {})

    def test_a_path_gets_the_name_as_a_hint(self):
        self.assertIn("kaizen init refund", run_cli("init", "improvements/refund").stderr)

    def test_plain_names_are_fine(self):
        for name in ["a", "Refund-2", "v1.2", "a_b", "0", "x" * 64]:
            self.assertEqual(run_cli("init", name).status, 0, name)


class Templates(TemporaryFolder):
    """The embedded texts."""

    def test_an_agent_that_says_nothing_does_not_pass_by_the_template(self):
        evaluation = json.loads(kaizen.INIT_EVALUATION)
        self.assertEqual([entry["type"] for entry in evaluation["evaluators"]], ["contains"])
        for line in kaizen.INIT_CASES.splitlines():
            self.assertTrue(all(json.loads(line)["expected"]["says"]))


if __name__ == "__main__":
    unittest.main()
