"""Text of cases in what a variant adds: pasted text is found however it is dressed, ordinary changes are not taken for it."""

import base64
import json
import os
import random
import time
import unittest
from unittest import mock

from opening_fixture import CODE, PROMPT, Opened, holdout_cases, parcel_case

import kaizen

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def sentences(seed, number, least=3, most=40):
    """Made-up texts of *least* to *most* made-up words."""
    rng = random.Random(seed)
    known = ["".join(rng.choices(LETTERS, k=rng.randint(2, 9))) for _ in range(4000)]
    return [" ".join(rng.choices(known, k=rng.randint(least, most))) for _ in range(number)]


def dressed(text):
    """Ways to write *text* that a reader of the source would know again, and the cheapest disguises of it."""
    words = text.split()
    half = len(words) // 2
    return {
        "as it is": f'EXAMPLES = ["{text}"]',
        "shouted": text.upper(),
        "other quotes and dots": text.replace(" ", " -- ").replace(",", "…"),
        "a word a line": "\n".join(words),
        "comment lines": "# " + " ".join(words[:half]) + "\n# " + " ".join(words[half:]),
        "joined strings": '"' + '" + "'.join(f"{word} " for word in words) + '"',
        "joined over lines": '("' + ' "\n    "'.join(words) + '")',
        "escaped line ends": json.dumps("\n".join(words)),
        "escaped letters": "".join(f"\\u{ord(letter):04x}" for letter in text),
        "hex escapes": "".join(f"\\x{ord(letter):02x}" for letter in text),
        "full width": text.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)}),
        "snake case": "_".join(words),
        "reversed": text[::-1],
        "base64": base64.b64encode(text.encode()).decode(),
        "hexadecimal": text.encode().hex(),
    }


def case_of(number, **fields):
    return kaizen.Case(f"i{number}", {"id": f"i{number}", **fields}, "items.jsonl", number + 1, "")


class Pieces(unittest.TestCase):
    """The pure functions."""

    def found(self, index, text):
        return index.found(kaizen.file_marks(text, index.sizes))

    def test_a_pasted_text_of_three_words_or_more_is_always_found_however_it_is_dressed(self):
        texts = [text for text in sentences(1, 400) if len(text.replace(" ", "")) >= 12]
        index = kaizen.ItemIndex(case_of(number, input=text, expected="yes") for number, text in enumerate(texts))
        for number, text in enumerate(texts):
            for way, written in dressed(text).items() if number < 24 else [("as it is", f"prompt = '''{PROMPT}{text}'''")]:
                self.assertEqual(self.found(index, written), [f"i{number}"], f"{way}: {text!r}")

    def test_any_eight_words_and_any_forty_letters_in_a_row_are_enough(self):
        rng = random.Random(2)
        texts = sentences(3, 40, 30, 60)
        index = kaizen.ItemIndex(case_of(number, input={"message": text}) for number, text in enumerate(texts))
        for number, text in enumerate(texts):
            words = text.split()
            start = rng.randrange(len(words) - 8)
            self.assertIn(f"i{number}", self.found(index, "be kind, " + " ".join(words[start : start + 8]) + " and go"))
            letters = text.replace(" ", "")
            for place in range(len(letters) - 40):
                self.assertIn(f"i{number}", self.found(index, f"x = '{letters[place:place + 40]}'"))

    def test_fewer_words_a_short_value_and_a_part_of_a_short_one_are_not(self):
        index = kaizen.ItemIndex([case_of(1, input="one two three four five six seven eight nine", expected="no"), case_of(2, input="where is my order", expected="escalated")])
        for text in ("one two three four five six seven", "no", "escalated", "where is my", "is my order"):
            self.assertEqual(self.found(index, text), [], text)
        self.assertEqual(self.found(index, "if text == 'Where is my order?':"), ["i2"])

    def test_expected_metadata_and_structures_count_as_well_as_input(self):
        cases = [
            case_of(1, input=1, expected="the shelf is number 4711 in Oslo"),
            case_of(2, input=2, expected=None, metadata={"note": ["caller is an old acquaintance"]}),
            case_of(3, input={"amount": 48213, "kind": "chargeback", "days": [3, 9, 27]}, expected=True),
        ]
        index = kaizen.ItemIndex(cases)
        for number, text in ((1, "The shelf is: number 4711, in Oslo"), (2, "'caller is an old acquaintance'"), (3, '{"amount":48213,"days":[3,9,27],"kind":"chargeback"}')):
            self.assertEqual(self.found(index, text), [f"i{number}"])

    def test_a_label_or_a_phrase_of_the_task_that_three_questions_hold_is_no_items_text(self):
        phrase = "Answer the following question about our refund rules in one short sentence:"
        texts = sentences(4, 12, 10, 20)
        index = kaizen.ItemIndex(case_of(number, input=f"{phrase} {text}", expected="missing information") for number, text in enumerate(texts))
        self.assertEqual(self.found(index, f'LABELS = ["missing information"]\nPROMPT = "{phrase}"'), [])
        self.assertEqual(self.found(index, f"{phrase} {texts[3]}"), ["i3"])

    def test_a_phrase_of_the_task_counts_as_one_wherever_it_stands(self):
        phrase = "went missing on its way from the depot to the shop, can you trace it for me please"
        openings = sentences(8, 9, 1, 9)
        index = kaizen.ItemIndex(case_of(number, input=f"{text} {phrase}") for number, text in enumerate(openings))
        self.assertEqual(self.found(index, f"Customers say that something {phrase}."), [])
        marks = kaizen.sealed_marks([case_of(10, input=phrase)], [case_of(1, input=f"ab {phrase}")], [], "s")
        self.assertFalse({kaizen.mark_digest(b"s", mark) for mark in kaizen.file_marks(phrase, marks["sizes"])} & {*marks["cases"][0]})

    def test_one_question_asked_of_many_is_still_found(self):
        index = kaizen.ItemIndex(case_of(number, input="when does the shop in Oslo open again", expected="x") for number in range(5))
        self.assertEqual(len(self.found(index, "when does the shop in Oslo open again")), 5)

    def test_ordinary_text_is_never_taken_for_a_case(self):
        index = kaizen.ItemIndex(case_of(number, **{key: parcel_case(number)[key] for key in ("input", "expected")}) for number in range(30))
        ordinary = [PROMPT, CODE, "\n".join(sentences(9, 300)), kaizen.__doc__, *(f"depot {number} shelf {number}" for number in range(40))]
        for text in ordinary:
            self.assertEqual(self.found(index, text), [])

    def test_what_the_holdout_shares_with_development_or_the_files_of_old_is_no_mark_of_it(self):
        shared = "This exact sentence stands in a development case and in one of the holdout."
        known = "This other one was in the prompt before the campaign was opened, all of it."
        secret = sentences(5, 1, 20, 20)[0]
        holdout = [case_of(1, input=f"{shared} {known} {secret}")]
        marks = kaizen.sealed_marks(holdout, [case_of(2, input=shared, context="unrelated")], [known], "salt")
        digests = set(marks["cases"][0])

        def hits(text):
            return {kaizen.mark_digest(b"salt", mark) for mark in kaizen.file_marks(text, marks["sizes"])} & digests

        self.assertFalse(hits(shared) or hits(known))
        self.assertTrue(hits(secret))
        self.assertNotIn(secret.split()[0], kaizen.marks_text(marks))

    def test_five_hundred_cases_and_two_thousand_lines_take_less_than_a_second(self):
        texts = sentences(6, 1000, 40, 60)
        cases = [case_of(number, input=text, expected=text[:30]) for number, text in enumerate(texts)]
        marks = kaizen.sealed_marks(cases[500:], cases[:500], [], "s")
        added = "\n".join(sentences(7, 2000, 10, 12))
        sealed = {digest for case in marks["cases"] for digest in case}
        start = time.process_time()
        index = kaizen.ItemIndex(cases[:500])
        found = kaizen.file_marks(added, sorted({*index.sizes, *marks["sizes"]}))
        hits = sum(kaizen.mark_digest(b"s", mark) in sealed for mark in found)
        spent = time.process_time() - start
        self.assertEqual((hits, index.found(found)), (0, []))
        self.assertLess(spent, 2.0)  # 0.6 s where nothing else runs


class Scans(Opened):
    """A variant against a campaign with thirty development and fourteen sealed cases."""

    def scan(self, **files):
        """What is found in a variant that adds *files* to the opening commit."""
        self.git("checkout", "-q", self.base)
        return kaizen.scan_diff(self.campaign, self.variant(**files), self.base)

    def test_an_ordinary_change_has_nothing(self):
        found = self.scan(agent_py=CODE.replace("97", "89"), prompts__system_txt=PROMPT.replace("polite", "kind") + parcel_case(1)["input"])
        self.assertEqual(found, kaizen.Contamination(0, [], False, [], []))
        self.assertEqual((found.is_memorised(), found.integrity()), (False, ""))

    def test_text_of_the_holdout_is_counted_and_not_shown(self):
        for way, written in list(dressed(holdout_cases()[3]["input"]).items())[::4]:
            found = self.scan(agent_py=CODE + f"\n{written}\n")
            self.assertEqual((found.holdout_hits, found.development_items), (1, []), way)
            self.assertIn("1 holdout case", found.integrity())
            self.assertNotIn("parcel", found.integrity())
        found = self.scan(agent_py=CODE, notes_txt="\n".join(case["expected"] for case in holdout_cases()[:5]))
        self.assertEqual(found.holdout_hits, 5, "also in a file that no glob names")

    def test_a_copy_that_new_lines_complete_between_old_ones_is_found_and_far_lines_are_not_looked_at_again(self):
        words = parcel_case(5)["input"].split()
        self.git("checkout", "-q", self.base)
        half = "\n".join(word for number, word in enumerate(words) if number % 2)
        base = self.git("rev-parse", "HEAD") and self.variant(prompts__list_txt=half).head
        found = kaizen.scan_diff(self.campaign, self.variant(prompts__list_txt="\n".join(words)), base)
        self.assertEqual(found.development_items, ["p5"])
        lines = [f"line {number}" for number in range(1000)]
        changed = [*lines[:300], "new", *lines[300:600], "newer", *lines[600:]]
        pieces = list(kaizen.added_pieces("\n".join(changed), set(lines)))
        self.assertEqual([(piece.split("\n")[0], len(piece.split("\n"))) for piece in pieces], [("line 260", 81), ("line 560", 81)])
        self.assertEqual(list(kaizen.added_pieces("\n".join(lines), set(lines))), [])

    def test_two_development_items_are_memorised_one_is_told(self):
        found = self.scan(agent_py=CODE + "# " + parcel_case(4)["input"])
        self.assertEqual((found.development_items, found.is_memorised()), (["p4"], False))
        found = self.scan(agent_py=CODE + "# " + parcel_case(4)["input"], prompts__more_txt=parcel_case(9)["expected"])
        self.assertEqual((found.development_items, found.is_memorised()), (["p4", "p9"], True))

    def test_text_that_a_changed_file_held_before_and_text_that_moved_with_its_file_is_not_added(self):
        found = self.scan(prompts__system_txt=parcel_case(1)["input"] + PROMPT)
        self.assertEqual(found.development_items, [])
        self.git("checkout", "-q", self.base)
        self.git("mv", "prompts/system.txt", "prompts/renamed.txt")
        self.commit("moved")
        self.assertEqual(kaizen.scan_diff(self.campaign, kaizen.read_checkout(str(self.repo)), self.base).development_items, [])

    def test_the_canary_is_found_in_files_of_any_kind(self):
        canary = kaizen.sealed_canary(self.campaign)
        found = self.scan(agent_py=CODE + f"# {canary.upper()}")
        self.assertTrue(found.canary)
        self.assertNotIn(canary, found.integrity())
        self.git("checkout", "-q", self.base)
        (self.repo / "data.bin").write_bytes(b"\0\xff" + canary.encode())
        self.commit("binary")
        found = kaizen.scan_diff(self.campaign, kaizen.read_checkout(str(self.repo)), self.base)
        self.assertEqual((found.canary, found.not_read), (True, ["data.bin"]))

    def test_a_locked_file_that_was_changed_added_or_removed_is_named(self):
        found = self.scan(kaizen__systems__demo__more_py="1")
        self.assertEqual(found.locked, ["kaizen/systems/demo/more.py"])
        self.assertIn("1 locked file", found.integrity())
        (self.repo / "kaizen/systems/demo/more.py").unlink(missing_ok=True)
        path = "kaizen/systems/demo/eval.py"
        found = self.scan(kaizen__systems__demo__eval_py="print()")
        self.assertEqual(found.locked, [path])

    def test_where_the_sealed_place_cannot_be_read_it_is_said_and_is_not_zero(self):
        with mock.patch.object(kaizen, "may_be_read", return_value=False):
            found = self.scan(agent_py=CODE + holdout_cases()[0]["input"])
        self.assertIsNone(found.holdout_hits)
        self.assertIn("cannot be read here", found.holdout_gap)
        self.sealed.rename(f"{self.sealed} away")
        self.addCleanup(os.rename, f"{self.sealed} away", self.sealed)
        found = kaizen.scan_diff(self.campaign, kaizen.read_checkout(str(self.repo)), self.base)
        self.assertIsNone(found.holdout_hits)
        self.assertIn("not there", found.holdout_gap)

    def test_marks_that_were_changed_are_refused(self):
        (self.sealed / "marks.json").write_text('{"salt":"","sizes":[],"cases":[]}\n')
        with self.assertRaises(kaizen.RefusedError) as caught:
            self.scan(agent_py=CODE + "1")
        self.assertEqual(caught.exception.reason, "sealed_changed")


if __name__ == "__main__":
    unittest.main()
