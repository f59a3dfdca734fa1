"""kaizen evaluators, and docs/evaluators.md, which says the same."""

import json
import re
import unittest

from support import ROOT, StrictTestCase, run_cli

import kaizen

PAGE = ROOT / "docs" / "evaluators.md"
STEPS_PAGE = ROOT / "docs" / "trajectories.md"


class Catalogue(StrictTestCase):
    """The command."""

    def test_all_types_are_listed_with_a_sentence_each(self):
        done = run_cli("evaluators")
        self.assertEqual((done.status, done.stderr), (0, ""))
        for name, kind in kaizen.EVALUATORS.items():
            self.assertRegex(done.stdout, rf"(?m)^{name} +{re.escape(kind.summary)}$")

    def test_one_type_is_shown_with_parameters_defaults_and_example(self):
        done = run_cli("evaluators", "contains")
        self.assertEqual(done.status, 0)
        for text in ("contains: The text holds", "looks at   output.text", "required", '"all", "any" or "none"; default "all"', "outcome      pass"):
            self.assertIn(text, done.stdout)

    def test_every_type_is_shown_and_its_example_can_be_copied(self):
        for name in kaizen.EVALUATORS:
            with self.subTest(type=name):
                (line,) = re.findall(r"^  entry +(.*)$", run_cli("evaluators", name).stdout, re.MULTILINE)
                self.assertEqual(json.loads(line), kaizen.EVALUATORS[name].example["entry"])

    def test_json(self):
        listed = json.loads(run_cli("evaluators", "--json").stdout)
        self.assertEqual((listed["ok"], [entry["name"] for entry in listed["evaluators"]]), (True, sorted(kaizen.EVALUATORS)))
        shown = json.loads(run_cli("evaluators", "contains", "--json").stdout)["evaluator"]
        self.assertEqual([shown["name"], shown["version"], shown["select"]], ["contains", 1, "output.text"])
        self.assertEqual(shown["parameters"][0]["required"], True)
        self.assertEqual(shown["parameters"][1]["choices"], ["all", "any", "none"])

    def test_a_misspelt_type_names_the_nearest(self):
        done = run_cli("evaluators", "contians")
        self.assertEqual((done.status, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "kaizen: error: there is no evaluator type 'contians'\nhint: did you mean 'contains'?\n")


class Page(StrictTestCase):
    """docs/evaluators.md."""

    def test_its_reference_is_what_the_program_knows(self):
        text = PAGE.read_text(encoding="utf-8")
        begin, end = "<!-- evaluators: begin -->\n\n", "\n\n<!-- evaluators: end -->"
        passage = text[text.index(begin) + len(begin) : text.index(end)]
        self.assertEqual(passage, kaizen.evaluator_reference(), "run: python scripts/docs.py")

    def test_the_example_at_its_head_is_accepted(self):
        document = json.loads(re.search(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1])
        for entry in document["evaluators"]:
            self.assertTrue(kaizen.prepare_entry(entry))

    def test_its_tables_name_what_there_is(self):
        text = PAGE.read_text(encoding="utf-8")

        def first_cells(heading, text=text):
            table = text.split(f"\n{heading}\n", 1)[1].split("\n\n| ", 1)[1].split("\n\n", 1)[0]
            return set(re.findall(r"`\{?\"?([$\w.]+)", " ".join(line.split("|")[1] for line in ("|" + table).splitlines()[2:])))

        self.assertEqual(first_cells("### What is looked at: `select`"), set(kaizen.ROOT_READERS))
        self.assertEqual(first_cells("### Transforms"), {*kaizen.PLAIN_TRANSFORMS, *kaizen.TRANSFORMS_WITH_ARGUMENTS})
        self.assertEqual(first_cells("## Predicates"), set(kaizen.OPERATORS))
        self.assertEqual(first_cells("## The step matcher", STEPS_PAGE.read_text(encoding="utf-8")), set(kaizen.MATCHER_KEYS))


if __name__ == "__main__":
    unittest.main()
