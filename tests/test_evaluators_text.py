"""equals, contains, matches, length: what they say, and the field cases 20, 21, 22, 23 and 25."""

import json
import sys
import time
import unittest
from unittest import mock

from evaluating import entry_of, outcome_of, refusal_of, result_of, status_of
from support import DATA, StrictTestCase, TemporaryFolder, read_json, read_lines

import kaizen

FIELD_CASES = DATA / "field_cases"


class Equals(StrictTestCase):
    """The same JSON value, or one of several, and a reason that shows the difference."""

    def test_a_text_is_compared_exactly(self):
        for actual, expected in (("yes", "pass"), ("yes ", "fail"), ("Yes", "fail"), ("", "fail")):
            with self.subTest(actual=actual):
                self.assertEqual(status_of(entry_of("equals", value="yes"), actual), expected)

    def test_json_types_stay_apart(self):
        right = read_json(FIELD_CASES / "25-true-is-not-one" / "right.json")["equal"]
        for line in read_lines(FIELD_CASES / "25-true-is-not-one" / "equal.jsonl"):
            with self.subTest(case=line["id"]):
                found = status_of(entry_of("equals", value=line["expected"]), line["output"])
                self.assertEqual(found, "pass" if right[line["id"]] else "fail")

    def test_a_number_in_a_text_is_no_number(self):
        self.assertEqual(status_of(entry_of("equals", value=7), "7"), "fail")
        self.assertEqual(status_of(entry_of("equals", value="7"), 7), "fail")
        self.assertEqual(status_of(entry_of("equals", value=7, select="output.json"), "7"), "pass")

    def test_null_is_a_value_below_the_output_and_no_output_at_its_root(self):
        self.assertEqual(status_of(entry_of("equals", value=None, select="output.json/a"), '{"a": null}'), "pass")
        self.assertEqual(status_of(entry_of("equals", value=None), None), "error")

    def test_any_of_several_values_is_enough(self):
        entry = entry_of("equals", any_of=["yes", "yep", 1])
        self.assertEqual([status_of(entry, output) for output in ("yep", 1, 1.0, True, "no")], ["pass", "pass", "pass", "fail", "fail"])
        self.assertEqual(outcome_of(entry, "no").reason, "is 'no', not 'yes' (nor one of 2 others)")

    def test_the_first_difference_in_depth_is_named_with_its_pointer(self):
        entry = entry_of("equals", value={"items": [{"price": 5, "a/b": "x"}]}, select="output.json")
        outcome = outcome_of(entry, '{"items": [{"a/b": "x", "price": 6}]}')
        self.assertEqual(outcome.reason, "/items/0/price is 6, not 5")
        self.assertEqual(outcome.evidence, ({"pointer": "/items/0/price", "in": "output.json"},))
        self.assertEqual(outcome_of(entry, '{"items": [{"price": 5}]}').reason, "/items/0/a~1b is missing")
        self.assertEqual(outcome_of(entry, '{"items": [{"price": 5, "a/b": "x", "c": 1}]}').reason, "/items/0/c is not expected")
        self.assertEqual(outcome_of(entry, '{"items": []}').reason, "/items has 0 elements, not 1")
        self.assertEqual(outcome_of(entry, '{"items": [{"price": "5", "a/b": "x"}]}').reason, "/items/0/price is the string '5', not the number 5")

    def test_tolerances_are_exact_in_decimal_terms_and_hold_in_depth(self):
        # 4.2 - 4.1 is 0.10000000000000053 in binary.
        self.assertEqual(status_of(entry_of("equals", value=4.2, abs_tol=0.1), 4.1), "pass")
        self.assertEqual(status_of(entry_of("equals", value=4.2, abs_tol=0.1), 4.0999), "fail")
        self.assertEqual(status_of(entry_of("equals", value={"a": [100]}, rel_tol=0.01), {"a": [101]}), "pass")
        self.assertEqual(status_of(entry_of("equals", value={"a": [100]}, rel_tol=0.01), {"a": [101.01]}), "fail")
        self.assertEqual(status_of(entry_of("equals", value=1, abs_tol=1), True), "fail")

    def test_code_points_are_compared_as_the_form_says(self):
        folder = FIELD_CASES / "23-same-text-other-code-points"
        right = read_json(folder / "right.json")
        forms = {"exact": [], "nfc_casefold_spaces": ["nfc", "casefold", "collapse_space"], "nfkc_casefold_spaces": ["nfkc", "casefold", "collapse_space"]}
        for line in read_lines(folder / "pairs.jsonl"):
            for column, normalize in forms.items():
                with self.subTest(pair=line["id"], column=column):
                    found = status_of(entry_of("equals", value=line["expected"], normalize=normalize), line["output"])
                    self.assertEqual(found == "pass", right[line["id"]][column])

    def test_texts_that_print_alike_are_told_apart_by_code_points(self):
        pairs = {line["id"]: line for line in read_lines(FIELD_CASES / "23-same-text-other-code-points" / "pairs.jsonl")}
        expected = {"accent-composed": ("U+00E9", "U+0065"), "no-break-space": ("U+00A0", "U+0020"), "full-width": ("U+FF46", "U+0066")}
        for name, points in expected.items():
            with self.subTest(pair=name):
                reason = outcome_of(entry_of("equals", value=pairs[name]["expected"]), pairs[name]["output"]).reason
                for point in points:
                    self.assertIn(point, reason)
        self.assertIn("character 3 is U+000A, not the end of the text", outcome_of(entry_of("equals", value="ok"), "ok\n").reason)
        self.assertNotIn("U+", outcome_of(entry_of("equals", value="yes"), "no").reason)

    def test_what_cannot_be_meant_is_refused(self):
        for settings, pointer in (
            ({}, ""),
            ({"value": 1, "any_of": [1]}, ""),
            ({"any_of": []}, "/any_of"),
            ({"value": "a", "normalize": ["last_line"]}, "/normalize/0"),
            ({"value": "a", "normalize": ["casefol"]}, "/normalize/0"),
            ({"value": 1, "abs_tol": -1}, "/abs_tol"),
            ({"value": 1, "abs_tol": True}, "/abs_tol"),
        ):
            with self.subTest(settings=settings):
                self.assertEqual(refusal_of(entry_of("equals", **settings))[0], pointer)
        self.assertEqual(refusal_of(entry_of("equals", value="a", normalize=["casefol"]))[2], "did you mean 'casefold'?")


class Contains(StrictTestCase):
    """Needles in a text."""

    def test_modes(self):
        for mode, expected in (("all", ["pass", "fail", "fail"]), ("any", ["pass", "pass", "fail"]), ("none", ["fail", "fail", "pass"])):
            entry = entry_of("contains", values=["red", "blue"], mode=mode)
            with self.subTest(mode=mode):
                self.assertEqual([status_of(entry, text) for text in ("red blue", "red", "green")], expected)

    def test_the_score_of_all_is_the_share_of_the_values(self):
        self.assertEqual(outcome_of(entry_of("contains", values=["a", "b", "c", "d"]), "abc").score, 0.75)
        self.assertEqual(status_of(entry_of("contains", values=["a", "b", "c", "d"], threshold=0.75), "abc"), "pass")

    def test_evidence_is_the_range_of_what_was_found(self):
        self.assertEqual(outcome_of(entry_of("contains", values="b"), "abcb").evidence, ({"start": 1, "end": 2},))
        folded = outcome_of(entry_of("contains", values="strasse", ignore_case=True), "Die STRAßE")
        self.assertEqual((folded.status, folded.evidence), ("pass", ({"start": 4, "end": 10},)))

    def test_counts(self):
        for settings, expected in (
            ({"min_count": 2}, {"a": "fail", "aa": "pass", "aaa": "pass", "": "fail"}),
            ({"max_count": 1}, {"": "pass", "a": "pass", "aa": "fail"}),
            ({"max_count": 0}, {"": "pass", "a": "fail"}),
            ({"min_count": 1, "max_count": 1}, {"": "fail", "a": "pass", "aa": "fail"}),
        ):
            for text, status in expected.items():
                with self.subTest(settings=settings, text=text):
                    self.assertEqual(status_of(entry_of("contains", values="a", **settings), text), status)

    def test_occurrences_do_not_overlap(self):
        self.assertEqual(status_of(entry_of("contains", values="aa", min_count=2), "aaa"), "fail")

    def test_whole_words(self):
        for needle, text, status in (
            ("art", "the art of", "pass"),
            ("art", "start art2 smart_art", "fail"),
            ("C++", "use C++17", "pass"),
            ("$5", "US$5 only", "pass"),
            ("$5", "$50", "fail"),
            ("é", "caé", "fail"),
            ("art", "artart art", "pass"),
        ):
            with self.subTest(needle=needle, text=text):
                self.assertEqual(status_of(entry_of("contains", values=needle, whole_word=True), text), status)

    def test_places(self):
        for at, text, status in (("start", "ab", "pass"), ("start", " ab", "fail"), ("end", "b ab", "pass"), ("end", "ab.", "fail")):
            with self.subTest(at=at, text=text):
                self.assertEqual(status_of(entry_of("contains", values="ab", at=at), text), status)

    def test_case_folding_is_full_and_only_when_asked_for(self):
        self.assertEqual(status_of(entry_of("contains", values="straße"), "STRASSE"), "fail")
        self.assertEqual(status_of(entry_of("contains", values="straße", ignore_case=True), "STRASSE"), "pass")

    def test_messages_are_looked_at_together(self):
        steps = [
            {"kind": "message", "role": "assistant", "text": "The fee is 5."},
            {"kind": "message", "role": "user", "text": "ok"},
            {"kind": "message", "role": "assistant", "text": "Done."},
        ]
        entry = entry_of("contains", values=["fee", "Done"], select="messages.assistant")
        self.assertEqual(status_of(entry, "Done.", steps=steps), "pass")
        self.assertEqual(status_of(entry_of("contains", values="ok", select="messages.assistant"), "x", steps=steps), "fail")

    def test_an_output_that_is_no_text_is_searched_as_compact_json(self):
        self.assertEqual(status_of(entry_of("contains", values='"a":1'), {"a": 1}), "pass")

    def test_a_needle_of_a_huge_output_is_found_at_its_end(self):
        # Field case 38: the check sees the whole text.
        self.assertEqual(status_of(entry_of("contains", values="NEEDLE"), "x" * 2_000_000 + "NEEDLE"), "pass")

    def test_what_cannot_be_meant_is_refused(self):
        for settings, pointer in (
            ({"values": ["a"], "min_count": 0}, "/min_count"),
            ({"values": ["a"], "min_count": 3, "max_count": 2}, "/max_count"),
            ({"values": ["a"], "max_count": -1}, "/max_count"),
            ({"values": 7}, "/values"),
            ({"values": ["a", 7]}, "/values"),
            ({}, ""),
        ):
            with self.subTest(settings=settings):
                self.assertEqual(refusal_of(entry_of("contains", **settings))[0], pointer)


class EmptyNeedles(TemporaryFolder):
    """Field case 21, in Kaizen's words: what asks nothing is refused before a run."""

    def test_each_is_refused_and_named(self):
        foreign = {entry["id"]: entry for entry in read_json(FIELD_CASES / "21-empty-needle" / "evaluation.json")["evaluators"]}
        entries = [
            {"id": "e1", "type": "contains", "values": foreign["e1"]["value"]},
            {"id": "e2", "type": "contains", "mode": "any", "values": foreign["e2"]["values"]},
            {"id": "e3", "type": "contains", "mode": "all", "values": foreign["e3"]["values"]},
            {"id": "e4", "type": "contains", "at": "start", "values": foreign["e4"]["value"]},
            {"id": "e5", "type": "matches", "pattern": foreign["e5"]["pattern"]},
        ]
        from evaluating import suite_of

        _, _, breaches = suite_of([{"id": "only", "input": "x"}], entries)
        self.assertEqual(
            [(breach.pointer, breach.message.split(":")[0]) for breach in breaches.errors],
            [(f"/evaluators/{index}/{'pattern' if index == 4 else 'values'}", f"evaluator 'e{index + 1}'") for index in range(5)],
        )
        (output,) = [line["output"] for line in read_lines(FIELD_CASES / "21-empty-needle" / "candidate.jsonl")]
        self.assertEqual(status_of(entry_of("contains", values=foreign["e6"]["value"]), output), "fail")

    def test_patterns_that_are_empty_in_other_words_are_refused(self):
        for pattern in ("", "()", "(?:)", "|", "(|)", "(?:|(?:))"):
            with self.subTest(pattern=pattern):
                self.assertEqual(refusal_of(entry_of("matches", pattern=pattern))[0], "/pattern")


class NegatedWithoutOutput(TemporaryFolder):
    """Field case 22: a breakdown is no success of a negated check."""

    def test_only_the_harmless_answer_passes_unmarked(self):
        folder = FIELD_CASES / "22-negated-check-without-output"
        foreign = read_json(folder / "evaluation.json")["evaluators"][0]
        entry = {"id": foreign["id"], "type": "contains", "values": foreign["value"], "negate": True}
        found = {}
        for line in read_lines(folder / "candidate.jsonl"):
            fields = {key: value for key, value in line.items() if key not in ("id", "output", "error")}
            result = result_of([entry], line.get("output"), **fields)
            found[line["id"]] = (result["outcome"], result["evaluations"][0])
        self.assertEqual(
            {name: outcome for name, (outcome, _) in found.items()},
            {"clean": "pass", "bad": "fail", "crashed": "error", "null": "error", "blank": "pass"},
        )
        self.assertIn("empty", found["blank"][1]["reason"])
        self.assertNotIn("empty", found["clean"][1]["reason"])
        self.assertEqual([found[name][1]["score"] for name in ("clean", "bad", "crashed", "null")], [1.0, 0.0, None, None])

    def test_a_missing_field_is_not_negated_into_a_pass(self):
        entry = entry_of("equals", select="output.json/status", value="refunded", negate=True)
        self.assertEqual(status_of(entry, "no JSON at all"), "fail")
        self.assertEqual(status_of({**entry, "on_missing": "error"}, "no JSON at all"), "error")
        self.assertEqual(status_of({**entry, "on_missing": "not_applicable"}, "{}"), "not_applicable")


class Matches(TemporaryFolder):
    """Regular expressions."""

    def test_modes_and_flags(self):
        for settings, text, status in (
            ({"pattern": "b+"}, "abbc", "pass"),
            ({"pattern": "b+", "mode": "full"}, "abbc", "fail"),
            ({"pattern": "a.*", "mode": "full"}, "abbc", "pass"),
            ({"pattern": "b", "mode": "prefix"}, "abbc", "fail"),
            ({"pattern": "B"}, "abc", "fail"),
            ({"pattern": "B", "flags": "i"}, "abc", "pass"),
            ({"pattern": "^b$"}, "a\nb", "fail"),
            ({"pattern": "^b$", "flags": "m"}, "a\nb", "pass"),
            ({"pattern": "a.b", "flags": "s"}, "a\nb", "pass"),
            ({"pattern": "a  b # a comment", "flags": "x"}, "ab", "pass"),
            ({"pattern": r"^\w$", "flags": "a"}, "é", "fail"),
        ):
            with self.subTest(settings=settings, text=text):
                self.assertEqual(status_of(entry_of("matches", **settings), text), status)

    def test_what_a_group_captures_is_compared(self):
        entry = entry_of("matches", pattern=r"ticket (?P<id>T-\d+)|nothing", capture="id", value="T-204")
        self.assertEqual(outcome_of(entry, "see ticket T-204.").evidence, ({"start": 11, "end": 16},))
        self.assertEqual(outcome_of(entry, "see ticket T-205.").reason, "captures 'T-205', not 'T-204'")
        self.assertEqual(outcome_of(entry, "nothing").reason, "captures nothing, not 'T-204'")

    def test_what_cannot_be_meant_is_refused(self):
        for settings, pointer, part in (
            ({"pattern": "(a"}, "/pattern", "missing ), unterminated subpattern at character 1"),
            ({"pattern": "a**"}, "/pattern", "multiple repeat at character 3"),
            ({"pattern": "a", "flags": "iq"}, "/flags", "flag 'q'"),
            ({"pattern": "a", "capture": 1}, "", "together"),
            ({"pattern": "a", "value": "a"}, "", "together"),
            ({"pattern": "(a)", "capture": 2, "value": "a"}, "/capture", "no group '2'"),
            ({"pattern": "(a)", "capture": True, "value": "a"}, "/capture", "no group"),
            ({"pattern": "(a)", "capture": 1, "value": 7}, "/value", "a number, not a text"),
        ):
            with self.subTest(settings=settings):
                found = refusal_of(entry_of("matches", **settings))
                self.assertEqual(found[0], pointer)
                self.assertIn(part, found[1])

    @unittest.skipIf(sys.platform == "win32", "no alarm signal there")
    def test_a_pattern_that_never_ends_is_an_error_in_bounded_time(self):
        # Field case 20.
        folder = FIELD_CASES / "20-regex-that-never-ends"
        pattern = read_json(folder / "evaluation.json")["evaluators"][0]["pattern"]
        outputs = {line["id"]: line["output"] for line in read_lines(folder / "candidate.jsonl")}
        for negate in (False, True):
            entry = entry_of("matches", pattern=pattern, negate=negate)
            started = time.monotonic()
            with mock.patch.object(kaizen, "PATTERN_SECONDS", 0.1):
                slow = outcome_of(entry, outputs["slow"])
            self.assertLess(time.monotonic() - started, 2)
            self.assertEqual((slow.status, slow.score), ("error", None))
            self.assertIn(pattern, slow.reason)
            self.assertEqual(status_of(entry, outputs["fine"]), "fail" if negate else "pass")


class Length(StrictTestCase):
    """What is counted, and the bounds."""

    def test_units(self):
        for unit, text, number in (
            ("chars", "né\U0001f600", 3),
            ("bytes", "né\U0001f600", 7),
            ("words", "  two\u00a0words ", 2),
            ("words", "", 0),
            ("lines", "", 0),
            ("lines", "a", 1),
            ("lines", "a\n", 1),
            ("lines", "a\r\nb\rc", 3),
            ("lines", "\n\n", 2),
            ("sentences", "", 0),
            ("sentences", "One. Two! Three?", 3),
            ("sentences", "It costs 3.50 e.g. for two", 1),
            ("sentences", 'He said "stop." Then he left', 2),
            ("sentences", "Wait... What?", 2),
            ("sentences", "これは。はい。", 2),
            ("paragraphs", "", 0),
            ("paragraphs", "a\nb", 1),
            ("paragraphs", "a\n\nb\n \t\n\nc\n\n", 3),
            ("items", "[1, 2]", 2),
        ):
            with self.subTest(unit=unit, text=text):
                outcome = outcome_of(entry_of("length", unit=unit, exact=number), text)
                self.assertEqual((outcome.status, outcome.value), ("pass", number), outcome.reason)

    def test_items_of_lists_and_objects(self):
        entry = entry_of("length", unit="items", select="output.json/a", min=1, max=2)
        self.assertEqual([status_of(entry, {"a": value}) for value in ([], [1], {"x": 1, "y": 2}, [1, 2, 3])], ["fail", "pass", "pass", "fail"])
        self.assertEqual([status_of(entry, {"a": value}) for value in ("none", 3, None)], ["fail"] * 3)

    def test_what_cannot_be_meant_is_refused(self):
        for settings, pointer in (
            ({}, ""),
            ({"min": 2, "max": 1}, "/min"),
            ({"exact": 1, "max": 1}, "/exact"),
            ({"max": -1}, "/max"),
            ({"max": 1.5}, "/max"),
            ({"max": 1, "unit": "wrods"}, "/unit"),
        ):
            with self.subTest(settings=settings):
                self.assertEqual(refusal_of(entry_of("length", **settings))[0], pointer)
        self.assertEqual(refusal_of(entry_of("length", max=1, unit="wrods"))[2], "did you mean 'words'?")


class Reasons(StrictTestCase):
    """Reasons are one line, however wild the text."""

    def test_control_characters_are_shown_as_escapes_and_long_values_are_cut(self):
        for entry in (entry_of("equals", value="a\x1b[31m\n" + "b" * 500), entry_of("contains", values="a\x1b[31m\n" + "b" * 500)):
            reason = outcome_of(entry, "\u202e" + "c" * 500).reason
            self.assertNotRegex(reason, "[\x00-\x1f\u202e]")
            self.assertLess(len(reason), 400)
            json.dumps(reason).encode("utf-8")

    def test_a_kind_of_text_outside_the_basic_plane_is_compared_by_code_point(self):
        self.assertIn("U+1F600", outcome_of(entry_of("equals", value="a\U0001f601"), "a\U0001f600").reason)
        self.assertTrue(kaizen.EVALUATORS)


if __name__ == "__main__":
    unittest.main()
