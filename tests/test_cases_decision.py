"""decision.yaml: what is read, what is refused, what a rewrite keeps."""

import unittest

from support import DATA, TemporaryFolder, write

import kaizen


class Decisions(TemporaryFolder):
    """A decision file in the working folder."""

    EMPTY = ("", "", "", "", [], "")

    def read(self, text):
        return kaizen.read_decision(str(write("decision.yaml", text)))

    def test_the_file_of_the_reference_page_is_pending(self):
        text = (
            "status: pending            # pending | accepted | accepted_with_conditions | rejected\nevidence: sha256:ab12     # what\n"
            'decided_by: ""\ndecided_at: ""\nrationale: ""\nconditions: []\n'
        )
        self.assertEqual(self.read(text)[:-1], ("pending", "sha256:ab12", "", "", "", [], ""))

    def test_a_file_without_a_status_is_pending(self):
        for text in ("", "# nothing yet\n", "status:\n", "status: ''\nconditions:\n"):
            self.assertEqual(self.read(text)[:-1], ("pending", *self.EMPTY))

    def test_comments_and_quotes_met_in_the_field(self):
        for name, status in [("comment", "accepted"), ("quoted", "accepted"), ("single", "accepted_with_conditions"), ("pending", "pending"), ("empty", "pending")]:
            with self.subTest(name=name):
                text = (DATA / "field_cases" / "51-comment-behind-the-decision" / f"{name}.yaml").read_text()
                self.assertEqual(self.read(text.replace("decision:", "status:").replace("reviewer:", "decided_by:")).status, status)

    def test_a_status_nobody_knows_is_refused_and_shown(self):
        text = (DATA / "field_cases" / "51-comment-behind-the-decision" / "hash-in-word.yaml").read_text()
        with self.assertRaises(kaizen.InputError) as caught:
            self.read(text.replace("decision:", "status:"))
        self.assertIn("decision.yaml:1#/status", caught.exception.message)
        self.assertIn("'accepted#1'", caught.exception.message)

    def test_all_that_is_wrong_is_told_with_its_line(self):
        with self.assertRaises(kaizen.BreachesError) as caught:
            self.read("status: acepted\nratonale: x\nconditions: maybe\nevidence:\n  - x\n")
        found = {breach.place(): breach.hint for breach in caught.exception.breaches}
        self.assertEqual(
            found,
            {
                "decision.yaml:1#/status": "did you mean 'accepted'?",
                "decision.yaml:2#/ratonale": "did you mean 'rationale'?",
                "decision.yaml:3#/conditions": "",
                "decision.yaml:4#/evidence": "",
            },
        )

    def test_what_was_written_is_read_back(self):
        path = str(self.folder / "decision.yaml")
        for decision in [
            kaizen.Decision("pending", "sha256:ab", "", "", "", [], "", path),
            kaizen.Decision("accepted_with_conditions", "sha256:ab", "Ada # L", "2026-01-02T03:04:05.678Z", "yes: 'so'\n\"x\"", ["a: b", "# c", ""], "claude-code", path),
            kaizen.Decision("rejected", "", "日本", "", "no", [], "", path),
        ]:
            kaizen.write_decision(decision)
            self.assertEqual(kaizen.read_decision(path), decision)

    def test_a_new_file_says_what_may_stand_in_it(self):
        kaizen.write_decision(kaizen.Decision("pending", "sha256:ab", *self.EMPTY[1:], str(self.folder / "decision.yaml")))
        text = (self.folder / "decision.yaml").read_text()
        self.assertIn("# pending | accepted | accepted_with_conditions | rejected", text)
        self.assertIn("\nevidence: sha256:ab  # what this decision is about", text)
        self.assertNotIn("via", text)

    def test_comments_of_people_survive_a_rewrite(self):
        decision = self.read("# ticket ABC-1\nstatus: pending # hm\nrationale: 'draft'   # to be finished\nconditions:\n  - one # why\n")
        kaizen.write_decision(decision._replace(status="accepted", evidence="sha256:cd"))
        self.assertEqual(
            (self.folder / "decision.yaml").read_text(),
            "# ticket ABC-1\nstatus: accepted  # hm\nrationale: 'draft'   # to be finished\nconditions:\n  - one # why\n"
            'evidence: sha256:cd\ndecided_by: ""\ndecided_at: ""\n',
        )

    def test_a_person_who_decides_after_an_agent_leaves_no_trace_of_it(self):
        decision = self.read("status: accepted\nvia: claude-code\n")
        self.assertEqual(decision.via, "claude-code")
        kaizen.write_decision(decision._replace(via=""))
        self.assertEqual(kaizen.read_decision(decision.path).via, "")


if __name__ == "__main__":
    unittest.main()
