"""review.html and review.md: what they show, what they never show, and that every text stays data."""

import base64
import hashlib
import html.parser
import itertools
import json
import os
import re
import tempfile
import tracemalloc
import unittest
from unittest import mock

import review_fixture
from support import DATA, ROOT, StrictTestCase, kaizen

ASSETS = ROOT / "src" / "kaizen" / "assets"
# Outputs that try to break out of the page, from reports against other tools.
HOSTILE = [json.loads(line)["output"] for line in (DATA / "hostile_outputs.jsonl").read_text(encoding="utf-8").splitlines()]


class Elements(html.parser.HTMLParser):
    """The elements of a page as a parser sees them: (tag, attributes), and the text of each script and style."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.blocks, self.words, self.open = [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.open = (tag, dict(attrs).get("type", ""), dict(attrs).get("id", ""))
            self.blocks.append([*self.open, ""])

    def handle_endtag(self, tag):
        if self.open and tag == self.open[0]:
            self.open = None

    def handle_data(self, data):
        if self.open:
            self.blocks[-1][3] += data
        else:
            self.words.append(data)

    def text(self):
        """All text outside scripts and styles, blanks collapsed."""
        return re.sub(r"\s+", " ", " ".join(self.words))

    def data(self, identity):
        """The value in the data block *identity*; None when there is no such block."""
        return next((json.loads(text) for tag, _, name, text in self.blocks if tag == "script" and name == identity), None)


class PageTestCase(StrictTestCase):
    """A test with a folder of its own for stage files and pages."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kaizen-page-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def review(self, **arguments):
        """A made-up review in the test's folder."""
        return review_fixture.make_review(self.folder, **arguments)

    def page(self, review):
        """(text of the page, its elements)."""
        text = review_fixture.write_page(self.folder, review)
        return text, Elements(text)

    def rewrite(self, name, change):
        """Replaces each record of a stage file by what *change* makes of it."""
        path = os.path.join(self.folder, name)
        with open(path, encoding="utf-8") as stream:
            records = [json.loads(line) for line in stream]
        with open(path, "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(change(record), ensure_ascii=False) + "\n" for record in records)


class Frame(PageTestCase):
    """What every page has: its policy, and text that stays data."""

    def test_the_policy_allows_exactly_the_inline_style_and_script(self):
        _, page = self.page(self.review(cases=3))
        policy = next(attrs["content"] for tag, attrs in page.found if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy")
        wanted = ["default-src 'none'"]
        for name in ("style", "script"):
            [text] = [text for tag, kind, _, text in page.blocks if tag == name and kind != "application/json"]
            wanted.append(f"{name}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")
        self.assertEqual(policy.split("; "), [*wanted, "base-uri 'none'", "form-action 'none'"])

    def test_a_page_asks_nothing_of_anybody(self):
        text, page = self.page(self.review(cases=3))
        for tag, attrs in page.found:
            self.assertNotIn(tag, ("link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"))
            self.assertFalse({"src", "srcset", "action", "style", "background", "ping"} & set(attrs), (tag, attrs))
            self.assertTrue(attrs.get("href", "#").startswith("#"), attrs)
        self.assertNotRegex(text, r"url\(|@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(")

    def test_the_script_has_no_way_to_make_markup_or_code_out_of_text(self):
        for name in ("page.js", "review.js"):
            with self.subTest(name):
                text = (ASSETS / name).read_text(encoding="utf-8")
                self.assertNotRegex(text, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|createContextualFragment|srcdoc|</script|localStorage|sessionStorage|cookie")

    def test_the_scripts_are_small(self):
        self.assertLess(sum((ASSETS / name).stat().st_size for name in ("page.js", "review.js")), 40_000)

    def test_json_for_a_script_holds_no_character_that_ends_one(self):
        value = {"<!--<script>": ["</script>", "a & b", "\u2028\u2029", "\\u003c", "é 😀"]}
        text = kaizen.text_to_script_json(value)
        self.assertNotRegex(text, "[<>&\u2028\u2029]")
        self.assertEqual(json.loads(text), value)

    def test_what_is_put_into_a_template_is_not_looked_at_again(self):
        self.assertEqual(kaizen.fill_template("$a and $b, $5", {"a": "$b", "b": r"\1 $a"}), r"$b and \1 $a, $5")

    def test_hidden_characters_are_visible_in_html(self):
        self.assertEqual(kaizen.html_text("a\u202e<b>\x1b\"'"), "a\\u202e&lt;b&gt;\\x1b&quot;&#39;")

    def test_every_text_colour_can_be_read_on_every_ground(self):
        """At least 4.5 to 1, the ratio and luminance of WCAG 2.2 (1.4.3)."""
        css = (ASSETS / "page.css").read_text(encoding="utf-8")
        tokens = {name: pair for name, *pair in re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", css)}
        grounds = ["paper", "card", "sunk"]
        pairs = [(ink, ground) for ink in ("ink", "soft", "accent", "good", "bad", "warn", "odd", "calm") for ground in grounds]
        pairs += [(tone, f"{tone}-soft") for tone in ("good", "bad", "warn", "odd", "calm")]
        pairs += [("soft", "warn-soft"), ("ink", "warn-soft"), ("paper", "accent")]
        for ink, ground in pairs:
            for theme in (0, 1):
                with self.subTest(ink=ink, ground=ground, theme=("light", "dark")[theme]):
                    self.assertGreaterEqual(contrast(tokens[ink][theme], tokens[ground][theme]), 4.5)
        for ground in grounds:  # borders of fields and the marks without a colour of their own: 3 to 1 (1.4.11)
            for theme in (0, 1):
                self.assertGreaterEqual(contrast(tokens["edge"][theme], tokens[ground][theme]), 3, (ground, theme))


def luminance(colour):
    """Relative luminance of '#rrggbb'."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Contrast ratio of two colours."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


class WithoutScript(PageTestCase):
    """What the page says as plain HTML: sentence, numbers, reasons, decision, regressions."""

    def test_the_first_heading_is_the_recommendation_with_the_reason_that_decided(self):
        changed = {0: (["good"], ["stingy"]), 1: (["good"], ["stingy"]), 2: (["lost"], ["good"])}
        review = self.review(cases=5, repetitions=1, changed={**changed, 3: (["good"], ["good"]), 4: (["good"], ["good"])})
        text, page = self.page(review)
        headings = re.findall(r"<h1[^>]*>(.*?)</h1>", text)
        self.assertEqual(len(headings), 1)
        self.assertEqual(re.sub(r"<[^>]+>", "", headings[0]), "Rejected: 2 regressions (at most 0).")
        self.assertIn("Of 5 cases 2 regressed, 1 improved and 2 did not change.", page.text())
        self.assertLess(text.index("<h1"), text.index("What is not known"))
        self.assertIn("Each case ran once on each side", page.text())
        self.assertLess(text.index("What is not known"), text.index("Before and after"))

    def test_headings_go_down_one_level_at_a_time(self):
        text, _ = self.page(self.review(cases=5))
        levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
        self.assertEqual(levels[0], 1)
        self.assertTrue(all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels)

    def test_every_table_has_a_caption_and_every_heading_cell_a_scope(self):
        text, page = self.page(self.review(cases=12))
        self.assertEqual(text.count("<table"), text.count("<caption"))
        self.assertTrue(all(attrs.get("scope") for tag, attrs in page.found if tag == "th"))

    def test_the_numbers_of_both_stages_stand_side_by_side_with_what_they_rest_on(self):
        changed = {0: (["good"] * 2, ["stingy"] * 2), 1: (["good"] * 2, ["good", "error"]), 2: (["lost"] * 2, ["good"] * 2), 3: (["good"] * 2, ["good"] * 2)}
        _, page = self.page(self.review(cases=4, repetitions=2, changed=changed))
        words = page.text().replace("\u00a0", " ")
        # Baseline: 3 of 4 cases pass. Candidate: shares 0, 1, 1, 1; one of 8 trials is an error.
        self.assertIn("Pass rate 75 % 95 % interval", words)
        self.assertIn("n = 4 of 4 cases, 8 trials worth", words)
        self.assertRegex(words, r"Passed 6 of 8 planned trials\s+5 of 8 planned trials")
        self.assertRegex(words, r"Errors, no verdict 0 of 8 planned trials\s+1 of 8 planned trials")
        self.assertIn("8 of 8 trials priced", words)
        self.assertIn("7 of 8 trials priced", words)
        self.assertIn("Change of the pass rate: 0 percentage points", words)

    def test_what_was_not_measured_is_not_zero(self):
        review = self.review(cases=3)
        for rates in review.comparison["rates"].values():
            rates.update(mean_cost_usd=None, priced=0, median_duration_ms=None, timed=0, mean_score=None, scored=0)
        _, page = self.page(review)
        self.assertEqual(page.text().count("not measured"), 6)
        self.assertIn("0 of 9 trials priced", page.text())
        self.assertNotIn("$0", page.text())

    def test_a_measured_zero_is_a_zero(self):
        review = self.review(cases=3)
        review.comparison["rates"]["candidate"]["mean_cost_usd"] = 0.0
        _, page = self.page(review)
        self.assertIn("$0.00", page.text())

    def test_a_rate_is_a_hundred_per_cent_only_if_it_is(self):
        review = self.review(cases=3)
        review.comparison["rates"]["candidate"].update(rate={"numerator": 1999, "denominator": 2000, "value": 0.9995}, low=0.9971, high=0.99999999)
        _, page = self.page(review)
        self.assertIn("99.95 %", page.text())
        self.assertIn("99.7 % to 99.9 %", page.text())

    def test_all_reasons_are_listed_with_their_codes_and_links_to_their_cases(self):
        text, _ = self.page(self.review(cases=40))
        for code in ("hard_failure", "regressions", "not_comparable"):
            self.assertIn(f'<code class="code">{code}</code>', text)
        self.assertIn('<a href="#case=refund-007-cancel">refund-007-cancel</a>', text)
        self.assertEqual(text.count('<span class="tag">decided</span>'), 1)

    def test_regressions_are_listed_in_plain_html_with_what_decided_them(self):
        changed = {number: (["good"], ["stingy" if number < 230 else "good"]) for number in range(240)}
        text, _ = self.page(self.review(cases=240, repetitions=1, changed=changed))
        listed = text[text.index('<div id="cases">') : text.index("How this was measured")]
        self.assertEqual(listed.count('<th scope="row"'), 200)
        self.assertIn("and 30 more", listed)
        self.assertIn("right_amount: €", listed)
        self.assertIn("1 of 1 passed", listed)

    def test_a_review_without_regressions_says_so(self):
        changed = {0: (["lost"], ["good"]), 1: (["good"], ["good"])}
        text, page = self.page(self.review(cases=2, repetitions=1, changed=changed))
        self.assertIn("No case regressed or weakened.", page.text())
        self.assertIn("Eligible:", re.sub(r"<[^>]+>", "", text))

    def test_a_page_with_no_case_to_show_is_a_page(self):
        review = self.review(cases=2, holdout=2)
        _, page = self.page(review)
        self.assertEqual(page.data("index")["cases"], [])
        self.assertIn("2 holdout cases are counted", page.text())
        for rates in review.comparison["rates"].values():
            rates.update(rate=None, low=None, high=None, n_eff=None, cases_measured=0)
        _, page = self.page(review)
        self.assertIn("Pass rate not measured n = 0 of 2 cases", page.text().replace("\u00a0", " "))

    def test_one_stage_alone_is_shown_without_a_comparison(self):
        _, page = self.page(self.review(cases=20, has_baseline=False))
        self.assertRegex(page.text(), r"One stage measured: \d+ of 60 planned trials passed. 20 cases, and no baseline to compare with.")
        self.assertNotIn("decision", page.text())
        index = page.data("index")
        self.assertEqual(index["roles"], ["candidate"])
        self.assertLessEqual({row[1] for row in index["cases"]}, {"hard", "failed", "flaky", "no_verdict", "passed"})
        self.assertNotIn("Baseline", page.text())


class Decisions(PageTestCase):
    """The block with the command, and the state of the decision."""

    def said(self, *fields, evidence=None):
        review = self.review(cases=3)
        decision = kaizen.Decision(fields[0], evidence or review.comparison["evidence"], *fields[1:], "decision.yaml")
        return self.page(review._replace(decision=decision))[1].text()

    def test_the_command_can_be_selected_and_copied(self):
        text, _ = self.page(self.review(cases=3, decide_command="kaizen decide 'a <b>' --because TEXT"))
        self.assertIn('<pre id="command" tabindex="0">kaizen decide &#39;a &lt;b&gt;&#39; --because TEXT</pre>', text)
        self.assertIn('data-copy="command"', text)

    def test_an_absent_and_a_pending_decision_are_none(self):
        self.assertIn("No decision is recorded yet.", self.page(self.review(cases=3))[1].text())
        self.assertIn("No decision is recorded yet.", self.said("pending", "", "", "", [], ""))

    def test_who_decided_when_and_why_is_shown(self):
        words = self.said("accepted", "Ada", "2026-03-03T10:00:00Z", "both are wording only", [], "")
        self.assertIn("Accepted by Ada on 2026-03-03T10:00:00Z.", words)
        self.assertIn("both are wording only", words)
        self.assertNotIn("stale", words)

    def test_conditions_and_the_agent_that_recorded_it_are_shown(self):
        words = self.said("accepted_with_conditions", "Ada", "2026-03-03", "fine", ["watch <refunds>"], "claude-code")
        self.assertIn("Accepted with conditions by Ada on 2026-03-03, recorded from inside claude-code.", words)
        self.assertIn("watch <refunds>", words)

    def test_a_decision_about_other_evidence_is_called_stale(self):
        self.assertIn("It is stale", self.said("accepted", "Ada", "2026-03-03", "fine", [], "", evidence="sha256:other"))


class Cases(PageTestCase):
    """The index and the details from which the script draws cases."""

    def test_cases_stand_in_the_order_of_their_groups(self):
        plans = {
            0: (["good"] * 3, ["good"] * 3), 1: (["lost"] * 3, ["good"] * 3), 2: (["good"] * 3, ["stingy"] * 3), 3: (["good"] * 3, ["hasty"] * 3),
            4: (["good"] * 3, ["good", "stingy", "stingy"]), 6: (["good"] * 3, ["error"] * 3), 7: (["lost", "good", "good"], ["lost", "lost", "good"]),
            8: (["lost"] * 3, ["lost", "lost", "good"]), 9: (["hasty"] * 3, ["hasty"] * 3), 5: (["lost"] * 3, ["good"] * 3),
        }  # fmt: skip
        _, page = self.page(self.review(cases=10, changed=plans))
        order = [row[1] for row in page.data("index")["cases"]]
        self.assertEqual(order, ["hard_regressed", "hard", "regressed", "newly_flaky", "weakened", "not_comparable", "improved", "improved", "strengthened", "unchanged"])
        collapsed = [group[0] for group in page.data("index")["groups"] if group[4]]
        self.assertEqual(collapsed, ["unchanged", "passed"])

    def test_a_critical_case_that_fails_is_a_hard_one(self):
        plans = {number: (["good"], ["good"]) for number in range(6)}
        plans[5] = (["good"], ["stingy"])  # the fixture's sixth case is critical
        _, page = self.page(self.review(cases=6, repetitions=1, changed=plans))
        first = page.data("index")["cases"][0]
        self.assertEqual((first[1], first[2]), ("hard_regressed", ["critical", "regressed"]))

    def test_repeats_are_one_row_with_a_letter_a_trial(self):
        plans = {0: (["good", "stingy", "error"], ["good", "good", "good"])}
        review = self.review(cases=1, changed=plans)
        self.rewrite("candidate.evaluated.jsonl", lambda record: {**record, "status": "not_run", "outcome": "error"} if record["trial"] == 3 else record)
        [row] = self.page(review)[1].data("index")["cases"]
        self.assertEqual(row[3], ["pfe", "ppn"])

    def test_a_trial_without_a_line_was_not_run_and_one_without_a_result_not_evaluated(self):
        review = self.review(cases=1, changed={0: (["good"] * 3, ["good"] * 3)})
        for name, lines in (("candidate.jsonl", 2), ("candidate.evaluated.jsonl", 1)):
            path = os.path.join(self.folder, name)
            with open(path, encoding="utf-8") as stream:
                kept = stream.readlines()[:lines]
            with open(path, "w", encoding="utf-8") as stream:
                stream.writelines(kept)
        [row] = self.page(review)[1].data("index")["cases"]
        self.assertEqual(row[3], ["ppp", "pun"])

    def test_the_detail_of_a_case_has_the_texts_as_they_were(self):
        review = self.review(cases=1, changed={0: (["good"], ["good"])}, repetitions=1)
        exact = '{"id": 12345678901234567890, "share": 1.0, "tiny": 1e-07, "text": "é 😀 \\\\ \\" \\u0007"}'
        self.rewrite("candidate.jsonl", lambda record: {**record, "output": "MARK"})
        path = os.path.join(self.folder, "candidate.jsonl")
        with open(path, encoding="utf-8") as stream:
            text = stream.read().replace('"MARK"', exact)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        detail = self.page(review)[1].data("case-0")
        output = detail["trials"]["candidate"]["1"]["output"]
        shown = detail["texts"][output][0] if isinstance(output, int) else output[0]
        self.assertEqual(shown, exact.replace(": ", ":").replace(", ", ","))

    def test_texts_and_steps_that_come_again_are_written_once(self):
        review = self.review(cases=1, changed={0: (["good"] * 5, ["good"] * 5)}, repetitions=5)
        text, page = self.page(review)
        detail = page.data("case-0")
        self.assertEqual(len(detail["steps"]), 7)
        self.assertEqual({tuple(trial["steps"]) for role in detail["trials"].values() for trial in role.values()}, {(0, 1, 2, 3, 4, 5, 6)})
        self.assertEqual(text.count("is on its way to your card"), 1)

    def test_the_reason_in_a_row_is_the_hard_failure_before_all_others(self):
        review = self.review(cases=1, changed={0: (["good"], ["stingy"])}, repetitions=1)

        def spoil(record):
            record["evaluations"][0].update(status="fail", reason="nobody was asked")
            record["evaluations"][4].update(status="fail", reason="impolite")
            return record

        self.rewrite("candidate.evaluated.jsonl", spoil)
        index = self.page(review)[1].data("index")
        row = index["cases"][0]
        self.assertEqual((index["evaluators"][row[9]][0], row[10]), ("asked_first", "nobody was asked"))
        self.assertEqual([index["evaluators"][number][0] for number in row[7][1]], ["asked_first", "right_amount", "closes_politely"])

    def test_a_gain_shows_what_failed_before(self):
        review = self.review(cases=1, changed={0: (["lost"], ["good"])}, repetitions=1)
        row = self.page(review)[1].data("index")["cases"][0]
        self.assertRegex(row[10], r"^€ [0-9.]+ is not named in the answer$")
        self.assertRegex(kaizen.review_markdown(review), r"before: right\\_amount: € [0-9.]+ is not named")

    def test_evidence_points_into_the_output_only_if_the_output_was_looked_at(self):
        pointers = [{"start": 0, "end": 4}, {"start": 2, "end": 9, "in": "input/message transformed"}, {"step": 3}, {"pointer": "/a/0", "in": "output.json"}, {"odd": True}]
        self.assertEqual(
            kaizen.evidence_data(pointers, "Done: all"),
            [{"start": 0, "end": 4, "text": "Done"}, "characters 2 to 9 of input/message transformed", {"step": 3}, "/a/0 of output.json", '{"odd":true}'],
        )
        self.assertEqual(len(kaizen.evidence_data([{"step": 1}] * 30, None)), 21)

    def test_the_title_of_a_case_is_the_most_telling_line_of_its_input(self):
        table = [
            ("\n  Where is\tmy order?\nplease", "Where is my order?"),
            ({"customer": "C-1", "message": "Hello there"}, "Hello there"),
            ({"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "Hi!"}]}, "Hi!"),
            ({"a": 1}, '{"a":1}'),
            ([1, 2], "[1,2]"),
            (None, ""),
            ("x" * 500, "x" * 140),
        ]
        for value, title in table:
            with self.subTest(value=str(value)[:40]):
                self.assertEqual(kaizen.case_title(value), title)

    def test_tool_calls_stand_for_steps_and_none_recorded_is_not_an_empty_list(self):
        limits = kaizen.text_limits([], [])
        pool = kaizen.TextPool()
        self.assertEqual(kaizen.steps_data({}, limits, pool), {})
        self.assertEqual(kaizen.steps_data({"steps": []}, limits, pool), {"steps": []})
        self.assertEqual(kaizen.steps_data({"tool_calls": [{"name": "find", "args": {"b": 1, "a": 2}}]}, limits, pool), {"steps": [0]})
        self.assertEqual(pool.steps, [{"kind": "tool", "name": "find", "args": ['{"a":2,"b":1}', 0, "", 1]}])

    def test_files_that_are_no_good_do_not_stop_the_page(self):
        review = self.review(cases=2, repetitions=1)
        with open(os.path.join(self.folder, "candidate.jsonl"), "ab") as stream:
            stream.write(b'{"case_id": "refund-001-late", "trial": 1, "outp')
        with open(os.path.join(self.folder, "candidate.evaluated.jsonl"), "ab") as stream:
            stream.write(b'[]\n{"case_id": 7}\n{"case_id": "refund-001-late", "trial": 1, "outcome": "odd", "evaluations": [3]}\nnot json\n')
        os.remove(os.path.join(self.folder, "baseline.evaluated.jsonl"))
        _, page = self.page(review)
        self.assertIn("candidate.jsonl: 1 line could not be read.", page.text())
        letters = {row[0]: row[3] for row in page.data("index")["cases"]}
        self.assertEqual(letters["refund-001-late"], ["u", "u"])

    def test_the_same_input_gives_the_same_bytes_wherever_it_stands(self):
        pages = set()
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                review = review_fixture.make_review(folder, cases=30)
                pages.add(review_fixture.write_page(folder, review) + kaizen.review_markdown(review))
        self.assertEqual(len(pages), 1)


class HostileTexts(PageTestCase):
    """Texts that try to be markup stay texts, wherever they come from."""

    def poisoned(self, text):
        """(page text, elements) of a review in which *text* stands wherever somebody else writes."""
        review = self.review(cases=6, changed={number: (["good"], ["stingy" if number % 2 else "hasty"]) for number in range(6)}, repetitions=1)
        ids = {case_id: f"{text} {number}" for number, case_id in enumerate(review.cases)}

        def spoil(record):
            record["case_id"] = ids[record["case_id"]]
            if "output" in record:
                record["output"] = text
                record["steps"] = [{"kind": text, "name": text, "args": {text: text}, "status": text, "result": text, "role": text, "text": text, "agent": text}]
                record["error"] = {"class": text, "type": text, "message": text, "stderr_tail": text}
                record["finish_reason"] = text
            for evaluation in record.get("evaluations", ()):
                evaluation.update(reason=text, value=text, type=text, evidence=[{"pointer": text}, {"start": 0, "end": 9}, text])
                evaluation["id"] += text
            if "usage" in record:
                record["usage"] = {text: text}
            return record

        for stage in ("baseline", "candidate"):
            self.rewrite(f"{stage}.jsonl", spoil)
            self.rewrite(f"{stage}.evaluated.jsonl", spoil)
        documents = [{**case.document, "id": ids[case.id], "input": {"message": text}, "context": text, "expected": text, "tags": [text], "split": text, "notes": text, "cluster": text, "owner": text} for case in review.cases.values()]
        decision = kaizen.Decision("accepted", text, text, text, text, [text], text, "")
        made = review_fixture.review_of(self.folder, documents, 1, name=text, decision=decision, decide_command=text, holdout=frozenset())
        made.comparison["notes"].append(text)
        made.comparison["reasons"].append({"code": text, "rule": 9, "text": text, "cases": list(ids.values())})
        made.stages["candidate"].meta.update(command=["python", text], commit={"hash": text, "branch": text}, selection={"tags": [text]}, engine=text)
        return made, self.page(made)

    def test_the_elements_are_the_same_as_for_harmless_texts(self):
        _, (_, harmless) = self.poisoned("a harmless text")
        shape = [(tag, sorted(attrs)) for tag, attrs in harmless.found]
        for text in HOSTILE:
            with self.subTest(text):
                _, (raw, page) = self.poisoned(text)
                self.assertEqual([(tag, sorted(attrs)) for tag, attrs in page.found], shape)
                self.assertEqual([block[:3] for block in page.blocks], [block[:3] for block in harmless.blocks])
                for _, attrs in page.found:
                    self.assertFalse([name for name in attrs if name.startswith("on")])
                    self.assertFalse(attrs.get("href", "").lower().startswith("javascript"))
                for markup in ("<script>document", "<img src=x", "<svg onload", "<b>"):
                    self.assertNotIn(markup, raw)

    def test_a_reader_gets_each_text_exactly_as_it_was(self):
        for text in HOSTILE:
            with self.subTest(text):
                _, (_, page) = self.poisoned(text)
                self.assertIn(f"{text} 1", [data for data in page.words if data.startswith(text)])
                self.assertEqual(page.data("index")["cases"][0][4], text)
                detail = page.data("case-0")
                output = detail["trials"]["candidate"]["1"]["output"]
                self.assertEqual(detail["texts"][output] if isinstance(output, int) else output, text)

    def test_in_the_comment_no_text_is_markup_a_mention_or_a_reference(self):
        more = ["@ada and @org/team", "fixes #12, GH-34, org/repo#5", "see https://example.com/issues/1 or www.example.com", "a | b | c", "`code` ``` *b* _i_ ~s~ [l](http://e.com) ![i](u)", "# title", "- item", "1. one", "<!-- x -->"]
        for text in [*HOSTILE, *more]:
            with self.subTest(text):
                review, _ = self.poisoned(text)
                comment = kaizen.review_markdown(review)
                outside = re.sub("(?m)^#{2,3} ", "", without_code(comment)).replace("&#8203;", "\u200b")
                self.assertNotRegex(outside, r"[@#](?!\u200b)|://(?!\u200b)|www\.(?!\u200b)|(?i:gh-)(?=\d)")
                self.assertNotRegex(outside, r"<(?!/?details>|/?summary>)")
                tables = [line for line in comment.split("\n") if line.startswith("|")]
                self.assertEqual({len(re.findall(r"(?<!\\)\|", line)) for line in tables}, {4})


def without_code(comment):
    """A comment without its code blocks and code spans, in which a forge looks for nothing."""
    comment = re.sub(r"(?ms)^(`{3,})\n.*?^\1$", "", comment)
    return re.sub(r"(?<!\\)(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", comment)


class LongTexts(PageTestCase):
    """Long texts are cut, and the page says what is missing and where it stands."""

    def test_an_output_of_two_million_characters_makes_a_page_below_a_megabyte(self):
        documents = [{"id": "long", "input": "x", "expected": "NEEDLE"}, {"id": "short", "input": "x", "expected": "NEEDLE"}]
        outputs = {"long": "<&é> " * 400000 + "NEEDLE", "short": "NEEDLE"}
        found = [{"id": "needle", "type": "contains", "severity": "gate", "status": "pass", "score": 1.0, "value": None, "reason": "'NEEDLE' found", "evidence": []}]
        for stage in ("baseline", "candidate"):
            with open(os.path.join(self.folder, f"{stage}.jsonl"), "w", encoding="utf-8") as stream:
                stream.writelines(json.dumps({"case_id": name, "trial": 1, "status": "completed", "output": output}) + "\n" for name, output in outputs.items())
            with open(os.path.join(self.folder, f"{stage}.evaluated.jsonl"), "w", encoding="utf-8") as stream:
                stream.writelines(json.dumps({"case_id": name, "trial": 1, "status": "completed", "outcome": "pass", "score": 1.0, "evaluations": found}) + "\n" for name in outputs)
        text, page = self.page(review_fixture.review_of(self.folder, documents, 1))
        self.assertLess(len(text.encode("utf-8")), 1_000_000)
        detail = page.data("case-0")
        start, left_out, digest, kind = detail["texts"][detail["trials"]["candidate"]["1"]["output"]]
        self.assertTrue(outputs["long"].startswith(start) and len(start) >= 4000)
        self.assertEqual((len(start) + left_out, kind), (2_000_006, 0))
        self.assertEqual(digest, hashlib.sha256(outputs["long"].encode()).hexdigest()[:8])
        self.assertEqual((page.data("index")["files"]["candidate"], detail["trials"]["candidate"]["1"]["line"]), ("candidate.jsonl", 1))

    def test_a_cut_parts_no_character_from_its_marks(self):
        for text, limit, cut in (("abcdef", 3, 3), ("ae\u0301x", 2, 1), ("a👍\ufe0fx", 2, 1), ("👨\u200d👩x", 2, 2), ("👨\u200d👩x", 1, 1), ("\u0301\u0301\u0301", 2, 2), ("abc", 9, 3)):
            with self.subTest(ascii(text)):
                point = kaizen.cut_point(text, limit)
                self.assertLessEqual(point, limit)
                if text != "👨\u200d👩x":
                    self.assertEqual(point, cut)

    def test_limits_are_wide_on_small_pages_and_narrow_on_large_ones(self):
        few, many = [2_000_000] * 4, [100_000] * 10_000
        self.assertEqual(kaizen.text_limits(few, few).text, 20_000)
        self.assertEqual(kaizen.text_limits(many, many[:10]).text, 4_000)
        self.assertEqual(kaizen.text_limits(many, many).text, 1_000)

    def test_long_trajectories_are_cut_with_a_count(self):
        limits = kaizen.text_limits([], [])
        steps = [{"kind": "tool", "name": "look", "args": {"n": number}, "result": "r" * 9000} for number in range(300)]
        pool = kaizen.TextPool()
        data = kaizen.steps_data({"steps": steps}, limits, pool)
        self.assertEqual((len(data["steps"]), data["more"]), (limits.steps, 300 - limits.steps))
        kept = sum(len(text[0] if isinstance(text, list) else text) for text in pool.texts)
        self.assertLess(kept, limits.trial + 200 * limits.steps)

    def test_the_end_of_standard_error_is_kept_not_its_start(self):
        self.assertEqual(kaizen.page_text_end("noise " * 100 + "gave up", 7), ["gave up", 600, "", 2])

    def test_on_a_page_that_gets_too_large_only_changed_and_failed_cases_keep_their_texts(self):
        plans = {0: (["good"], ["good"]), 1: (["lost"], ["lost"]), 2: (["good"], ["stingy"]), 3: (["good"], ["good"])}
        with mock.patch.object(kaizen, "BIG_PAGE", 1000):
            _, page = self.page(self.review(cases=4, repetitions=1, changed=plans))
        kept = {row[0]: page.data(f"case-{number}") is not None for number, row in enumerate(page.data("index")["cases"])}
        self.assertEqual([kept[name] for name in sorted(kept)], [False, True, True, False])
        self.assertIn("larger than 20 MB: 2 unchanged cases that passed", page.text())

    def test_memory_does_not_grow_with_what_the_stages_hold(self):
        """Both stages hold 40 MB; the largest line has 200 kB."""
        review = self.review(cases=100, repetitions=2, changed={number: (["good"] * 2, ["good"] * 2) for number in range(100)})
        for stage in ("baseline", "candidate"):
            self.rewrite(f"{stage}.jsonl", lambda record: {**record, "output": f"{record['case_id']} " + "x" * 100_000, "metadata": {"log": "y" * 100_000}})
        tracemalloc.start()
        try:
            kaizen.write_review_page(os.path.join(self.folder, "review.html"), review)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        self.assertLess(peak, 12_000_000)


class Holdout(PageTestCase):
    """Of the holdout only counts and rates are shown (formats.md 1.7)."""

    CANARIES = ("canary-id", "canary input", "canary-tag", "canary expected", "canary output", "canary reason", "canary-evaluator", "canary error", "canary-step", "canary-cluster")

    def review_with_canaries(self):
        """A review whose last two cases are holdout and full of canaries; they regressed."""
        plans = {number: (["good"], ["good"]) for number in range(6)}
        plans[1], plans[4], plans[5] = (["good"], ["stingy"]), (["good"], ["hasty"]), (["good"], ["hasty"])
        review = self.review(cases=6, repetitions=1, changed=plans, holdout=2)
        names = {case_id: f"canary-id-{number}" for number, case_id in enumerate(sorted(review.holdout))}

        def spoil(record):
            if record["case_id"] not in names:
                return record
            record["case_id"] = names[record["case_id"]]
            if "output" in record:
                record.update(output="canary output", error={"message": "canary error"}, steps=[{"kind": "tool", "name": "canary-step"}])
            for evaluation in record.get("evaluations", ()):
                evaluation["reason"] = "canary reason"
            if "evaluations" in record:
                record["evaluations"].append({**record["evaluations"][0], "id": "canary-evaluator"})
            return record

        for stage in ("baseline", "candidate"):
            self.rewrite(f"{stage}.jsonl", spoil)
            self.rewrite(f"{stage}.evaluated.jsonl", spoil)
        documents = [
            {**case.document, "id": names[case.id], "input": "canary input", "expected": "canary expected", "tags": ["canary-tag"], "cluster": "canary-cluster"} if case.id in names else case.document
            for case in review.cases.values()
        ]
        return review_fixture.review_of(self.folder, documents, 1)

    def test_neither_page_nor_comment_holds_anything_of_a_holdout_case(self):
        review = self.review_with_canaries()
        text, page = self.page(review)
        for canary in self.CANARIES:
            self.assertNotIn(canary, text)
            self.assertNotIn(canary, kaizen.review_markdown(review))
        self.assertEqual(len(page.data("index")["cases"]), 4)

    def test_they_are_counted_and_that_is_said(self):
        review = self.review_with_canaries()
        words = self.page(review)[1].text()
        self.assertIn("Of 6 cases 3 regressed", words)
        self.assertIn("2 holdout cases are counted in these numbers and not shown.", words)
        self.assertIn("2 cases not shown", words)  # of the reason hard_failure, whose cases are both holdout
        self.assertIn("2 holdout cases are counted in these numbers and not shown.", kaizen.review_markdown(review))

    def test_an_opening_shows_them_and_is_said_ever_after(self):
        review = self.review_with_canaries()
        text, page = self.page(review._replace(holdout=frozenset(), holdout_opened=1))
        for canary in self.CANARIES:
            self.assertIn(canary, text)
        self.assertIn("The holdout has been opened once so far.", page.text())
        self.assertIn("The holdout has been opened 3 times so far.", self.page(review._replace(holdout_opened=3))[1].text())


class Comment(PageTestCase):
    """review.md."""

    def test_it_begins_with_the_sentence_and_puts_regressions_first(self):
        comment = kaizen.review_markdown(self.review(cases=40))
        self.assertTrue(comment.startswith("## Rejected: a hard evaluator fails in 2 cases of the candidate.\n"))
        places = [comment.index(part) for part in ("What is not known", "| Pass rate |", "### Hard regressions: 2", "### Regressions: 1", "Improved: 5", "### Decision", "kaizen decide")]
        self.assertEqual(places, sorted(places))
        self.assertIn("- `refund-021-changed-mind`: 3 of 3 passed → 0 of 3 passed", comment)

    def test_a_list_stops_at_fifty_and_counts_the_rest(self):
        changed = {number: (["good"], ["stingy"]) for number in range(80)}
        comment = kaizen.review_markdown(self.review(cases=80, repetitions=1, changed={**changed, 5: (["good"], ["good"]), 22: (["good"], ["good"]), 39: (["good"], ["good"]), 56: (["good"], ["good"]), 73: (["good"], ["good"])}))
        self.assertEqual(comment.count("- `refund-"), 50)
        self.assertIn("- and 25 more", comment)

    def test_it_fits_a_comment_whatever_the_texts_are(self):
        changed = {number: ([("good", "lost", "good", "good")[number % 4]], [("stingy", "good", "hasty", "error")[number % 4]]) for number in range(300)}
        review = self.review(cases=300, repetitions=1, changed=changed)
        for stage in ("baseline", "candidate"):
            self.rewrite(f"{stage}.evaluated.jsonl", lambda record: {**record, "evaluations": [{**each, "reason": "*_[`" * 500} for each in record["evaluations"]]})
        comment = kaizen.review_markdown(review)
        self.assertLessEqual(len(comment), 60_000)
        self.assertIn("### Regressions", comment)
        self.assertIn("kaizen decide", comment)

    def test_one_stage_alone_has_one_column(self):
        comment = kaizen.review_markdown(self.review(cases=20, has_baseline=False))
        self.assertIn("| | candidate |\n|---|---|\n", comment)
        self.assertNotIn("Change of the pass rate", comment)


if __name__ == "__main__":
    unittest.main()
