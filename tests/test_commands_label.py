"""`kaizen label`: what the rater sees, what the keys do, what is on disk afterwards."""

import json
import os
import select
import signal
import subprocess
import sys
import time
import unittest

import support
from support import INSTALLED, clean_environment, kaizen, make_improvement, read_lines, run_cli, write, write_lines

FILE = "improvements/change/labels.jsonl"
BLOCK = {"name": "dossiers", "criteria": [{"id": "a", "evaluators": ["e"]}], "verdicts": [{"verdict": "approve", "minimum_score": 0.8}, {"verdict": "escalate", "minimum_score": 0.5}, {"verdict": "reject"}]}


class Labelling(support.TemporaryFolder):
    """An improvement whose candidate has answered."""

    def make(self, count=3, block=BLOCK, cases=None, answers=None, **parts):
        cases = cases or [{"id": f"c{number}", "input": f"input {number}", "expected": "canary-expected"} for number in range(count)]
        answers = answers or [{"case_id": case["id"], "output": f"answer {number}"} for number, case in enumerate(cases)]
        evaluation = {"evaluators": [{"id": "e", "type": "contains", "values": ["canary-value"]}], **({"judge": block} if block else {})}
        make_improvement("change", cases, evaluation, candidate=answers, **parts)

    def label(self, typed, *argv, status=0, rater="ada"):
        done = run_cli("label", "change", "--rater", rater, *argv, stdin=typed)
        self.assertEqual(done.status, status, done.stderr)
        return done

    def said(self):
        return [(each["case_id"], each.get("label")) for each in read_lines(FILE)]


class Lines(Labelling):
    """Standard input is no terminal."""

    def test_keys_and_words_label_in_the_order_of_the_cases(self):
        self.make()
        done = self.label("1\nescalate\n3\n")
        self.assertEqual(self.said(), [("c0", "approve"), ("c1", "escalate"), ("c2", "reject")])
        self.assertIn("ada has labelled 3 of 3 cases", done.stdout)
        self.assertIn("next: kaizen agreement improvements/change", done.stdout)

    def test_a_label_says_who_of_what_and_of_which_output(self):
        self.make(1)
        self.label("n two claims in one\n1\n")
        fingerprint = kaizen.fingerprint("answer 0")
        self.assertEqual(read_lines(FILE), [{"case_id": "c0", "rater": "ada", "label": "approve", "output": fingerprint, "note": "two claims in one"}])

    def test_leaving_early_is_incomplete_and_goes_on_where_it_ended(self):
        self.make()
        done = self.label("1\nq\n", status=4)
        self.assertIn("next: kaizen label improvements/change --rater ada --stage candidate", done.stdout)
        self.assertNotIn("input 0", self.label("1\n1\n").stderr)
        self.assertEqual(len(self.said()), 3)

    def test_the_end_of_the_input_is_leaving(self):
        self.make()
        self.label("", status=4)
        self.label("1", status=4)
        self.assertEqual(self.said(), [("c0", "approve")])

    def test_undo_takes_labels_back_out_of_the_file(self):
        self.make()
        self.label("u\n1\n2\nu\nu\n3\n3\n3\n")
        self.assertEqual(self.said(), [("c0", "reject"), ("c1", "reject"), ("c2", "reject")])

    def test_skipped_cases_come_last_and_stay_open(self):
        self.make()
        self.label("s\n1\n1\ns\n", status=4)
        self.assertEqual([case_id for case_id, _ in self.said()], ["c1", "c2"])

    def test_an_abstention_is_recorded(self):
        self.make(1)
        self.label("-\n")
        self.assertEqual(read_lines(FILE)[0]["abstain"], True)
        self.assertEqual(run_cli("validate", "change").status, 0)

    def test_a_key_that_means_nothing_is_said_and_asked_again(self):
        self.make(1)
        self.assertIn("\\x1b[A is no key here; 1 approve", self.label("\x1b[A\n\n?\n1\n").stderr)

    def test_input_that_is_no_utf8_is_no_defect(self):
        self.make(1)
        done = run_cli("label", "change", "--rater", "ada", stdin=b"\xff\xfe\n1\n")
        self.assertEqual(done.status, 0, done.stderr)

    def test_json_is_the_only_thing_on_standard_output(self):
        self.make()
        document = json.loads(self.label("1\nq\n", "--json", status=4).stdout)
        self.assertEqual({key: document[key] for key in ("labelled", "remaining", "reason", "rater")}, {"labelled": 1, "remaining": 2, "reason": "cases_left", "rater": "ada"})


class Blind(Labelling):
    """What is never shown."""

    def test_no_result_no_expected_value_and_no_label_of_others(self):
        self.make(2)
        run_cli("evaluate", "change", "--progress", "none")
        write_lines(FILE, [{"case_id": "c0", "rater": "canary-rater", "label": "escalate", "note": "canary-note"}])
        done = self.label("?\nm\n1\n2\n")
        self.assertNotIn("canary", done.stdout + done.stderr)
        self.assertNotRegex(done.stderr, r"\bfail\b|does not contain")

    def test_holdout_cases_are_counted_and_left_out_until_opened(self):
        self.make(cases=[{"id": f"c{n}", "input": f"input {n}", "split": "holdout" if n else "development"} for n in range(3)])
        done = self.label("1\n")
        self.assertIn("left out: 2 holdout cases", done.stderr)
        self.assertNotIn("c1", done.stdout + done.stderr)
        self.assertIn("input 1", self.label("1\n1\n", "--open-holdout").stderr)
        self.assertEqual(read_lines("improvements/change/optimizer-log.jsonl")[0]["command"], "label")

    def test_hostile_text_is_made_visible(self):
        self.make(cases=[{"id": "c\u202e0", "input": {"text": "\x1b[2J\u202e"}, "context": "\x07"}], answers=[{"case_id": "c\u202e0", "output": "line\n\x1b]0;title\x07\ttab", "steps": [{"kind": "tool", "name": "\x1bx"}]}])
        done = self.label("m\n1\n")
        for character in ("\x1b", "\x07", "\u202e"):
            self.assertNotIn(character, done.stderr + done.stdout)
        self.assertIn("line\n\\x1b]0;title\\x07\ttab", done.stderr)

    def test_long_texts_are_cut_until_more_is_asked_for(self):
        self.make(answers=[{"case_id": f"c{n}", "output": "x" * 5000 + "end"} for n in range(3)])
        self.assertIn("1,003 more characters; m shows them", self.label("q\n", status=4).stderr)
        self.assertIn("xend", self.label("m\nq\n", status=4).stderr)

    def test_the_evaluator_is_the_question_and_pass_and_fail_are_the_answers(self):
        self.make(1, block=None)
        done = self.label("1\n", "--of", "e")
        self.assertIn("What do you say of 'e'?", done.stderr)
        self.assertEqual(read_lines(FILE)[0]["of"], "e")
        self.assertEqual(read_lines(FILE)[0]["label"], "pass")


class Files(Labelling):
    """What is on disk."""

    def test_a_torn_last_line_is_set_aside_and_told(self):
        self.make()
        write(FILE, '{"case_id":"c0","rater":"ada","label":"approve"}\n{"case_id":"c1","rater":"ada","la')
        done = self.label("2\n2\n")
        self.assertIn("ended in the middle", done.stderr)
        self.assertEqual(self.said(), [("c0", "approve"), ("c1", "escalate"), ("c2", "escalate")])

    def test_a_whole_last_line_without_its_end_is_kept(self):
        self.make()
        write(FILE, '{"case_id":"c0","rater":"ada","label":"approve"}')
        self.label("2\n2\n")
        self.assertEqual(len(self.said()), 3)

    def test_undo_leaves_what_others_wrote(self):
        self.make(1)
        write(FILE, '{"case_id":"c0","rater":"bo","label":"approve"}\n')
        self.label("1\nu\n2\n")
        self.label("1\n", rater="cleo")
        self.assertEqual([each["rater"] for each in read_lines(FILE)], ["bo", "ada", "cleo"])

    def test_an_answer_that_changed_is_asked_for_again(self):
        self.make(2)
        self.label("1\n1\n")
        write_lines("improvements/change/candidate.jsonl", [{"case_id": f"c{n}", "trial": 1, "status": "completed", "output": f"answer {9 * n}"} for n in range(2)])
        self.label("3\n")
        self.assertEqual(self.said()[-1], ("c1", "reject"))

    def test_trials_without_an_answer_are_counted(self):
        self.make(answers=[{"case_id": "c0", "output": "x"}, {"case_id": "c1", "status": "timeout", "error": {"class": "timeout", "type": "t", "message": "m"}}])
        self.assertIn("left out: 1 trial without an answer", self.label("1\n").stderr)

    def test_a_file_of_their_own(self):
        self.make(1)
        self.label("1\n", "--labels", "mine.jsonl")
        self.assertEqual(len(read_lines("mine.jsonl")), 1)
        self.assertFalse(os.path.exists(FILE))

    def test_two_at_once_is_refused(self):
        self.make(1)
        with kaizen.FileLock("improvements/change/labels.lock", "the file of labels"):
            self.assertIn("is being written by another process", self.label("1\n", status=5).stderr)

    def test_bad_names_and_bad_files_are_told(self):
        self.make(1)
        for name in ("", " ", "a\nb", "\x1b", "x" * 101):
            self.label("", status=2, rater=name)
        self.label("", "--stage", "other", status=2)
        self.label("", "--of", "nobody", status=2)
        write(FILE, '{"case_id": "c0", "rater": "ada", "label": NaN}\n')
        self.assertIn("labels.jsonl:1", self.label("", status=2).stderr)


@unittest.skipUnless(hasattr(os, "openpty"), "no pseudo-terminals here")
class Terminal(Labelling):
    """A real terminal: single keys, and it is as it was afterwards."""

    def start(self):
        parent, child = os.openpty()
        self.addCleanup(os.close, parent)
        command = [sys.executable, str(INSTALLED), "label", "change", "--rater", "ada"]
        process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=clean_environment(), start_new_session=True)
        os.close(child)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)  # runs first: a test that failed waits for nobody
        return process, parent

    def until(self, parent, wanted):
        """What the terminal shows up to *wanted*."""
        shown, end = b"", time.monotonic() + 60
        while wanted.encode() not in shown and time.monotonic() < end:
            if select.select([parent], [], [], 0.5)[0]:
                try:
                    shown += os.read(parent, 65536)
                except OSError:  # the program has ended
                    break
        self.assertIn(wanted, shown.decode("utf-8", "replace"))
        return shown.decode("utf-8", "replace")

    def test_keys_act_at_once_and_undo_works(self):
        self.make()
        process, parent = self.start()
        for key, wanted in ((b"1", "2 cases to go"), (b"2", "1 case to go"), (b"u", "taken back"), (b"\x1b[A", "is no key here"), (b"3", "1 case to go"), (b"-", "ada has labelled 3 of 3 cases")):
            if key == b"1":
                self.until(parent, "ada> ")
            os.write(parent, key)
            self.until(parent, wanted)
        self.assertEqual(process.wait(20), 0)
        self.assertEqual(self.said(), [("c0", "approve"), ("c1", "reject"), ("c2", None)])

    def test_a_note_is_a_line(self):
        self.make(1)
        process, parent = self.start()
        self.until(parent, "ada> ")
        os.write(parent, b"n")
        self.until(parent, "note: ")
        os.write(parent, "schön\n".encode())
        self.until(parent, "noted for this case: schön")
        os.write(parent, b"1")
        self.until(parent, "labelled 1 of 1")
        self.assertEqual(process.wait(20), 0)
        self.assertEqual(read_lines(FILE)[0]["note"], "schön")

    def test_an_interrupt_keeps_what_was_labelled_and_leaves_the_terminal_as_it_was(self):
        import termios

        self.make()
        process, parent = self.start()
        before = termios.tcgetattr(parent)
        self.until(parent, "ada> ")
        os.write(parent, b"1")
        self.until(parent, "2 cases to go")
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.until(parent, "stopped; ada has labelled 1 of 3 cases")
        self.assertEqual(process.wait(20), 130)
        self.assertEqual(termios.tcgetattr(parent), before)
        self.assertEqual(self.said(), [("c0", "approve")])


if __name__ == "__main__":
    unittest.main()
