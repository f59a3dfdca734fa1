"""The review page in a real browser: keys, filters, address, hostile texts, size, paper.

Needs Debian's `chromium` and `chromium-driver` and, from PyPI, `selenium` (requirements.txt);
without them the tests are skipped. CHROMIUM and CHROMEDRIVER name other programs.
"""

import base64
import json
import os
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import review_fixture
from support import DATA, kaizen

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
CHROMEDRIVER = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1280,1000"
).split()
HOSTILE = [json.loads(line)["output"] for line in (DATA / "hostile_outputs.jsonl").read_text(encoding="utf-8").splitlines()]
SECONDS = 2.0  # within which 10,000 cases with 5 trials open, and each filter answers


@unittest.skipUnless(webdriver and CHROMIUM and CHROMEDRIVER, "needs selenium, chromium and chromium-driver")
class BrowserTestCase(unittest.TestCase):
    """A browser with an empty profile, and a folder for pages."""

    @classmethod
    def setUpClass(cls):
        cls.profile = tempfile.mkdtemp(prefix="kaizen-chromium-")
        cls.addClassCleanup(shutil.rmtree, cls.profile, True)
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={cls.profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
        cls.addClassCleanup(cls.driver.quit)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kaizen-page-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.screen(1280, 1000)
        self.logs()

    def tearDown(self):
        self.driver.get("about:blank")

    def screen(self, width, height, **media):
        """Sets the size of the window, and features such as prefers_color_scheme='dark'."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def logs(self):
        """(messages on the console, addresses that were asked for) since the last call."""
        console = [entry["message"] for entry in self.driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return console, asked

    def open(self, review, hash_text=""):
        """Writes the page of *review* and opens it."""
        path = Path(self.folder, "review.html")
        kaizen.write_review_page(str(path), review)
        self.address = path.as_uri()
        self.driver.get("about:blank")
        self.driver.get(self.address + hash_text)

    def review(self, **arguments):
        return review_fixture.make_review(self.folder, **arguments)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        """The text of each element as a reader sees it."""
        return self.js("return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", selector)

    def press(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self):
        """The text of the element that has the focus."""
        return self.js("return document.activeElement.innerText")

    def hash(self):
        return self.js("return decodeURIComponent(location.hash.slice(1))")

    def wait_for(self, script, *arguments, seconds=5):
        """Waits until *script* gives something true, and returns it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.js(script, *arguments)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not within {seconds} s: {script}")

    def choose(self, select, value):
        self.js("const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))", select, value)


PLANS = {
    0: (["good"] * 3, ["good"] * 3), 1: (["lost"] * 3, ["good"] * 3), 2: (["good"] * 3, ["stingy"] * 3), 3: (["good"] * 3, ["hasty"] * 3),
    4: (["good"] * 3, ["good", "stingy", "stingy"]), 5: (["good"] * 3, ["good"] * 3), 6: (["good"] * 3, ["error"] * 3), 7: (["good"] * 3, ["stingy"] * 3),
}  # fmt: skip
HARD, FIRST, SECOND, FLAKY, ERRORS, BETTER = "refund-004-double-charge", "refund-003-wrong-size", "refund-008-partial", "refund-005-changed-mind", "refund-007-cancel", "refund-002-broken"


class Opening(BrowserTestCase):
    """Opening the page, and what it asks for."""

    def test_no_error_and_no_request(self):
        self.open(self.review(cases=40))
        self.one(".row .open").click()
        console, asked = self.logs()
        self.assertEqual(console, [])
        self.assertEqual({address for address in asked if not address.startswith("about:")}, {self.address})

    def test_the_policy_stops_what_would_slip_through(self):
        self.open(self.review(cases=2))
        self.js("const s = document.createElement('script'); s.textContent = 'document.title = \"ran\"'; document.body.append(s)")
        self.js("const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)")
        self.assertNotEqual(self.driver.title, "ran")
        self.assertIn("Content Security Policy", " ".join(self.logs()[0]))

    def test_groups_stand_in_order_and_what_did_not_change_is_collapsed(self):
        self.open(self.review(cases=8, changed=PLANS))
        self.assertEqual([" ".join(text.split()) for text in self.texts(".group h3")], ["Hard regressions 1", "Regressions 2", "Newly flaky 1", "Not comparable 1", "Improved 1", "Unchanged 2"])
        self.assertEqual([each.get_attribute("aria-expanded") for each in self.all(".group h3 button")], ["true"] * 5 + ["false"])
        self.assertEqual(self.texts(".row .open"), [HARD, FIRST, SECOND, FLAKY, ERRORS, BETTER])
        self.all(".group h3 button")[5].click()
        self.assertEqual(len(self.all(".row")), 8)

    def test_repeats_are_dots_with_words_and_shapes_of_their_own(self):
        self.open(self.review(cases=8, changed=PLANS))
        labels = [each.get_attribute("aria-label") for each in self.all(".row .dots")]
        self.assertIn("candidate: 1 of 3 passed", labels)
        self.assertIn("candidate: 0 of 3 passed, 3 errors", labels)
        shapes = self.js("return ['p', 'f', 'e', 'n', 'u'].map((kind) => { const d = document.createElement('span'); d.className = 'dot ' + kind; document.body.append(d); const s = getComputedStyle(d); return [s.clipPath, s.borderRadius, s.borderWidth, s.backgroundImage].join(' ') })")
        self.assertEqual(len(set(shapes)), 5)

    def test_it_can_be_read_without_javascript(self):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        self.addCleanup(self.driver.execute_cdp_cmd, "Emulation.setScriptExecutionDisabled", {"value": False})
        self.open(self.review(cases=8, changed=PLANS))
        words = self.one("main").text.replace("\u00a0", " ")
        for part in ("Rejected: a hard evaluator fails in 1 case of the candidate.", "What is not known", "95 % interval", "kaizen decide", FIRST, SECOND, "is not named in the answer"):
            self.assertIn(part, words)
        self.assertFalse(self.one("#filters").is_displayed())

    def test_no_screen_is_too_narrow_and_a_table_stays_a_table(self):
        review = self.review(cases=8, changed=PLANS)
        for width in (360, 800, 1600):
            with self.subTest(width=width):
                self.screen(width, 900)
                self.open(review, f"#case={HARD}")
                self.assertLessEqual(self.js("return document.documentElement.scrollWidth"), width)
                roles = self.js("return [...document.querySelectorAll('table, tr, td, th')].filter((each) => !each.closest('dialog') && !each.getAttribute('role')).length")
                self.assertEqual(roles, 0)

    def test_light_and_dark_follow_the_system_or_the_switch(self):
        self.screen(1280, 900, prefers_color_scheme="dark")
        self.open(self.review(cases=2))
        ground = "return getComputedStyle(document.body).backgroundColor"
        dark = self.js(ground)
        self.one("#theme-light").click()
        light = self.js(ground)
        self.assertNotEqual(dark, light)
        self.screen(1280, 900, prefers_color_scheme="light")
        self.one("#theme-auto").click()
        self.assertEqual(self.js(ground), light)
        self.one("#theme-dark").click()
        self.assertEqual(self.js(ground), dark)

    def test_on_paper_everything_is_open(self):
        self.open(self.review(cases=8, changed=PLANS))
        self.js("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual((len(self.all(".row")), len(self.all(".panel"))), (8, 6))
        self.js("dispatchEvent(new Event('afterprint'))")
        self.assertEqual((len(self.all(".row")), len(self.all(".panel"))), (6, 0))
        pdf = base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
        self.assertGreater(pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/") + pdf.count(b"/Type /Page "), 3)

    def test_the_command_is_copied_or_selected(self):
        self.open(self.review(cases=2))
        self.one("[data-copy]").click()
        self.wait_for("return /Copied|Selected/.test(document.querySelector('[data-copy]').textContent)")


class KeysAndAddress(BrowserTestCase):
    """The keyboard, the filters, and the address that keeps them."""

    def test_j_and_k_walk_the_rows(self):
        self.open(self.review(cases=8, changed=PLANS))
        seen = []
        for key in "jjjkk":
            self.press(key)
            seen.append(self.focused())
        self.assertEqual(seen, [HARD, FIRST, SECOND, FIRST, HARD])
        self.press("k")
        self.assertEqual(self.focused(), HARD)
        self.press(*"jjjjjjjj")
        self.assertEqual(self.focused(), BETTER)

    def test_n_goes_to_the_next_regression_and_around(self):
        self.open(self.review(cases=8, changed=PLANS))
        seen = []
        for key in "nnnnnp":
            self.press(key)
            seen.append(self.focused())
        self.assertEqual(seen, [HARD, FIRST, SECOND, FLAKY, HARD, FLAKY])
        self.press("j", "j", "n")
        self.assertEqual(self.focused(), HARD)

    def test_enter_o_and_escape_open_and_close(self):
        self.open(self.review(cases=8, changed=PLANS))
        self.press("j", Keys.ENTER)
        self.assertEqual(len(self.all(".panel")), 1)
        self.assertEqual(self.one(".row .open").get_attribute("aria-expanded"), "true")
        self.press(Keys.ESCAPE)
        self.assertEqual((len(self.all(".panel")), self.focused()), (0, HARD))
        self.press("o")
        self.assertEqual(len(self.all(".panel")), 1)
        self.press("o")
        self.assertEqual(len(self.all(".panel")), 0)

    def test_brackets_turn_the_trials(self):
        self.open(self.review(cases=8, changed=PLANS), f"#case={FLAKY}")
        chosen = "return document.querySelector('.trials [aria-pressed=true]').innerText.trim()[0]"
        self.assertEqual(self.js(chosen), "2")  # the first that got worse
        self.press("]")
        self.assertEqual(self.js(chosen), "3")
        self.assertIn("trial=3", self.hash())
        self.press("[", "[")
        self.assertEqual(self.js(chosen), "1")
        self.assertIn("fail", self.all(".trials button")[1].get_attribute("aria-label"))

    def test_slash_searches_and_letters_typed_there_are_letters(self):
        self.open(self.review(cases=8, changed=PLANS))
        self.press("j", "/")
        self.assertEqual(self.js("return document.activeElement.id"), "query")
        self.press("jo")
        self.assertEqual(self.one("#query").get_attribute("value"), "jo")
        self.press(Keys.ESCAPE)
        self.assertNotEqual(self.js("return document.activeElement.id"), "query")

    def test_a_question_mark_shows_the_keys_and_they_can_be_turned_off(self):
        self.open(self.review(cases=8, changed=PLANS))
        self.press("?")
        self.assertTrue(self.one("#help").is_displayed())
        self.one("#keys-on").click()
        self.press(Keys.ESCAPE)
        self.assertFalse(self.one("#help").is_displayed())
        self.press("j")
        self.assertNotEqual(self.focused(), HARD)

    def test_filters_narrow_the_list_and_stand_in_the_address(self):
        self.open(self.review(cases=40))
        self.one("[data-change=improved]").click()
        self.choose("tag", "billing")
        self.choose("evaluator", "right_amount")
        self.choose("how", "before")
        count = self.one("#count").text
        shown = self.texts(".row .open")
        self.assertEqual(self.hash(), "change=improved&tag=billing&evaluator=right_amount&how=before")
        self.assertRegex(count, r"^1 of 40 cases$")
        self.driver.get("about:blank")
        self.driver.get(self.address + "#change=improved&tag=billing&evaluator=right_amount&how=before")
        self.assertEqual((self.one("#count").text, self.texts(".row .open")), (count, shown))
        self.assertEqual(self.one("[data-change=improved]").get_attribute("aria-pressed"), "true")
        self.assertEqual([self.js("return document.getElementById(arguments[0]).value", name) for name in ("tag", "evaluator", "how")], ["billing", "right_amount", "before"])
        self.one("#clear").click()
        self.assertEqual((self.one("#count").text, self.hash()), ("40 cases", ""))

    def test_the_search_finds_texts_of_closed_cases_whatever_they_hold(self):
        review = self.review(cases=8, changed=PLANS)
        path = Path(self.folder, "candidate.jsonl")
        path.write_text(path.read_text(encoding="utf-8").replace("within five working days", 'within <FIVE> & \\"a\\\\b\\" days', 1), encoding="utf-8")
        self.open(review)
        for query, found in (('<five> & "A\\b"', 1), ("outcome", 0), ("is not named", 4), ("refund-00", 8), (".*", 0)):
            with self.subTest(query):
                self.js("const q = document.getElementById('query'); q.value = arguments[0]; q.dispatchEvent(new Event('input'))", query)
                expected = "8 cases" if found == 8 else f"{found} of 8 cases"
                self.wait_for("return document.getElementById('count').textContent === arguments[0]", expected)
        self.assertEqual(self.hash(), "q=.*")

    def test_a_link_to_a_case_opens_it_even_in_a_collapsed_group_or_behind_a_filter(self):
        review = self.review(cases=8, changed=PLANS)
        self.open(review, "#case=refund-001-late")
        self.assertEqual((self.focused(), len(self.all(".panel"))), ("refund-001-late", 1))
        self.open(review, f"#change=improved&case={HARD}&trial=3")
        self.assertEqual((self.focused(), self.js("return document.querySelector('.panel').dataset.trial")), (HARD, "3"))
        self.js("location.hash = arguments[0]", f"case={FIRST}")
        self.wait_for("return document.activeElement.innerText === arguments[0]", FIRST)
        self.open(review, "#case=nobody&split=none&tag=%3Cb%3E&how=x&change=,x")
        self.assertEqual(self.one("#count").text, "8 cases")

    def test_a_link_reaches_a_row_that_is_not_drawn_yet(self):
        review = self.review(cases=600, repetitions=1, changed={number: (["good"], ["good"]) for number in range(600)})
        self.open(review, "#case=refund-555-wrong-size")
        self.assertEqual(self.focused(), "refund-555-wrong-size")
        self.assertLess(len(self.all(".row")), 650)


class OpenCase(BrowserTestCase):
    """What opens below a row."""

    def case(self, before, after, results=None, hash_text="#case=refund-001-late", **fields):
        """Opens the page of one case whose observations have the fields *before* and *after*."""
        review = self.review(cases=1, repetitions=1, changed={0: (["good"], ["stingy"])})
        for stage, extra in (("baseline", before), ("candidate", after)):
            path = Path(self.folder, f"{stage}.jsonl")
            path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **extra}) + "\n", encoding="utf-8")
            if results:
                path = Path(self.folder, f"{stage}.evaluated.jsonl")
                path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **results}) + "\n", encoding="utf-8")
        self.open(review._replace(**fields), hash_text)

    def outputs(self):
        return self.texts(".panel .text[aria-label^='output']")

    def test_evaluators_with_reason_and_evidence_side_by_side(self):
        self.open(self.review(cases=8, changed=PLANS), f"#case={HARD}")
        rows = self.texts(".checks tbody tr")
        self.assertEqual(len(rows), 5)
        self.assertIn("the refund was booked before the customer was asked", rows[0])
        self.assertIn("the customer said yes", rows[0])
        self.assertEqual(self.texts(".checks thead th"), ["Evaluator", "Baseline, trial 1", "Candidate, trial 1"])

    def test_the_first_difference_of_the_trajectories_is_marked(self):
        self.open(self.review(cases=8, changed=PLANS), f"#case={HARD}")
        rows = self.js("return [...document.querySelectorAll('.steps tbody tr')].map((row) => [row.className.trim(), ...[...row.cells].map((cell) => (cell.querySelector('.step-name') || {}).innerText || '')])")
        self.assertEqual(rows, [
            ["", "user", "user"], ["", "find_order", "find_order"], ["first-label", ""], ["differs first", "read_policy", ""], ["differs", "assistant", ""],
            ["differs", "user", ""], ["", "issue_refund", "issue_refund"], ["differs", "assistant", "assistant"],
        ])  # fmt: skip
        self.assertIn("First difference", self.one(".first-label").text)

    def test_equal_trajectories_and_missing_ones_are_said_to_be_that(self):
        self.case({"steps": [{"kind": "tool", "name": "a"}]}, {"steps": [{"kind": "tool", "name": "a"}]})
        self.assertIn("the same steps on both sides", self.one(".panel").text)
        self.case({"steps": None}, {"steps": None})
        self.assertIn("No steps were recorded.", self.one(".panel").text)

    def test_an_evidence_link_lights_the_characters_also_behind_an_emoji(self):
        evaluations = [{"id": "says", "type": "contains", "severity": "gate", "status": "pass", "score": 1, "value": None, "reason": "found", "evidence": [{"start": 3, "end": 9}, {"step": 0}]}]
        self.case({"output": "😀🎉 refund it"}, {"output": "😀🎉 refund it now"}, {"evaluations": evaluations})
        buttons = self.all(".checks td:last-child .pointers button")
        buttons[0].click()
        self.assertEqual(self.texts("mark.lit"), ["refund"])
        buttons[1].click()
        self.assertEqual(len(self.all(".step.lit")), 1)

    def test_an_evidence_link_finds_its_place_in_indented_json(self):
        output = {"order": "K-1", "lines": [{"sku": "a" * 60, "n": 1}, {"sku": "needle", "n": 12345678901234567890}], "share": 1.0}
        text = json.dumps(output, separators=(",", ":"))
        start = text.index('"needle"')
        evaluations = [{"id": "says", "type": "contains", "severity": "gate", "status": "pass", "score": 1, "value": None, "reason": "found", "evidence": [{"start": start, "end": start + 8}]}]
        self.case({"output": output}, {"output": {**output, "share": 2.5}}, {"evaluations": evaluations})
        self.one(".checks td:last-child .pointers button").click()
        self.assertEqual("".join(self.texts("mark.lit")), '"needle"')
        shown = self.outputs()[0]
        self.assertIn("12345678901234567890", shown)
        self.assertIn('"share": 1.0', shown)
        self.assertEqual(json.loads(shown), output)

    def test_the_diff_marks_words_and_both_texts_stay_whole(self):
        before, after = "I can refund 20 euros.\n\nShall I go ahead?", "I have refunded 20 euros.\n\nAnything else?"
        self.case({"output": before}, {"output": after})
        self.assertEqual(self.outputs(), [before, after])
        self.assertIn("can", "".join(self.texts(".text del")))
        self.assertNotIn("20", "".join(self.texts(".text del") + self.texts(".text ins")))

    def test_a_diff_of_any_two_texts_keeps_what_is_common_outside_the_marks(self):
        chance = __import__("random").Random(3)
        for number in range(12):
            words = [chance.choice("alpha beta gamma delta , . \n".split(" ")) for _ in range(60)]
            other = [word for word in words if chance.random() > 0.2]
            other.insert(chance.randrange(len(other)), "epsilon zeta")
            before, after = " ".join(words), " ".join(other)
            with self.subTest(number):
                self.case({"output": before}, {"output": after})
                kept = self.js("return [...document.querySelectorAll(\".panel .text[aria-label^='output']\")].map((box) => { const copy = box.cloneNode(true); for (const each of copy.querySelectorAll('del, ins')) each.remove(); return copy.textContent })")
                if self.all(".text del, .text ins"):
                    self.assertEqual(kept[0], kept[1])
                self.assertEqual(self.js("return [...document.querySelectorAll(\".panel .text[aria-label^='output']\")].map((box) => box.textContent)"), [before, after])

    def test_long_and_unlike_texts_open_at_once(self):
        chance = __import__("random").Random(5)
        texts = [" ".join(str(chance.randrange(10**6)) for _ in range(9000))[:20000] for _ in range(2)]
        self.case({"output": texts[0]}, {"output": texts[1]}, hash_text="")
        start = time.monotonic()
        self.one(".row .open").click()
        self.assertEqual(self.outputs(), texts)
        self.assertLess(time.monotonic() - start, 1.5)

    def test_what_was_cut_is_said_with_the_file_that_has_it(self):
        self.case({"output": "x" * 25_000}, {"output": "x" * 25_000 + "y"})
        notes = self.texts(".cut")
        self.assertIn("5,001 characters more, left out here. The whole text stands in candidate.jsonl, line 1.", notes)
        self.assertNotIn("the same on both sides", self.one(".panel").text)  # what is cut differs

    def test_errors_show_the_end_of_standard_error(self):
        self.open(self.review(cases=8, changed=PLANS), f"#case={ERRORS}")
        words = self.one(".panel").text
        for part in ("timeout", "no answer within 30 s", "ERROR gave up after 30.0 s", "There is no output."):
            self.assertIn(part, words)

    def test_hidden_characters_are_shown_and_joined_emoji_are_left_alone(self):
        self.case({"output": "a"}, {"output": "pay\u202e001\u202c \u200b\x1b[31m \u2028 👩\u200d💻"})
        self.assertEqual(self.outputs()[1], "pay\\u202e001\\u202c \\u200b\\x1b[31m \\u2028 👩\u200d💻")

    def test_holdout_cases_are_nowhere(self):
        review = self.review(cases=8, changed=PLANS, holdout=2)
        self.open(review)
        self.assertEqual(self.one("#count").text, "6 cases")
        self.assertNotIn(SECOND, self.driver.page_source)


class HostileTexts(BrowserTestCase):
    """Outputs, ids, reasons and errors that try to run something."""

    def test_nothing_runs_and_every_text_is_read_as_it_was(self):
        documents, lines, results = [], [], []
        for text in HOSTILE:
            documents.append({"id": text, "input": text, "expected": text, "tags": [text]})
            evaluations = [{"id": text, "type": "judge", "severity": "gate", "status": "fail", "score": 0, "value": None, "reason": text, "evidence": []}]
            steps = [{"kind": "tool", "name": text, "args": {text: text}, "result": text}, {"kind": "message", "role": "assistant", "text": text}]
            lines.append({"case_id": text, "trial": 1, "status": "completed", "output": text, "steps": steps, "error": {"type": text, "message": text, "stderr_tail": text}})
            results.append({"case_id": text, "trial": 1, "status": "completed", "outcome": "fail", "score": 0, "evaluations": evaluations})
        for stage in ("baseline", "candidate"):
            Path(self.folder, f"{stage}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            Path(self.folder, f"{stage}.evaluated.jsonl").write_text("".join(json.dumps(line) + "\n" for line in results), encoding="utf-8")
        self.open(review_fixture.review_of(self.folder, documents, 1))
        title, scripts = self.driver.title, len(self.all("script"))
        self.one(".group h3 button").click()
        self.assertEqual(self.texts(".row .open"), HOSTILE)
        self.assertEqual(self.texts(".row .title"), HOSTILE)
        for number, text in enumerate(HOSTILE):
            with self.subTest(text):
                self.js("document.querySelectorAll('.row .open')[arguments[0]].click()", number)
                panel = f"#detail-{number} "
                self.assertEqual(self.texts(panel + "[aria-label^='output']"), [text])
                self.assertEqual(self.texts(panel + "[aria-label='input']"), [text])
                self.assertEqual(self.texts(panel + ".reason"), [text, text])
                self.assertEqual(self.texts(panel + ".step-name")[0], text)
                self.assertEqual(self.texts(panel + ".step p.text"), [text, text])
                self.assertEqual(self.texts(panel + ".step .result"), [text, text])
                self.assertEqual(json.loads(self.texts(panel + ".step .args")[0]), {text: text})
                self.assertEqual(self.texts(panel + "[aria-label^='standard error']"), [text, text])
        self.choose("tag", HOSTILE[0])
        self.assertEqual(self.texts(".row .open"), HOSTILE[:1])
        self.assertEqual((self.driver.title, len(self.all("script")), self.all("img, svg[onload], iframe")), (title, scripts, []))
        self.assertEqual(self.logs()[0], [])


class LargePage(BrowserTestCase):
    """10,000 cases with 5 trials (design target: opens and filters within 2 s)."""

    def test_it_opens_and_filters_within_two_seconds(self):
        review = self.review(cases=10_000, repetitions=5)
        start = time.monotonic()
        kaizen.write_review_page(str(Path(self.folder, "review.html")), review)
        written = time.monotonic() - start
        size = Path(self.folder, "review.html").stat().st_size
        self.driver.get(Path(self.folder, "review.html").as_uri())
        times = self.js("const [n] = performance.getEntriesByType('navigation'); return {paint: performance.getEntriesByName('first-contentful-paint')[0].startTime, open: n.loadEventEnd}")
        for name, act in (
            ("split", "choose('split', 'challenge')"), ("all", "clear()"), ("evaluator", "choose('evaluator', 'asked_first')"), ("change", "document.querySelector('[data-change=unchanged]').click()"),
            ("all again", "clear()"), ("text", "search('K-2031')"), ("text of many", "search('order')"), ("no text", "search('nowhere to be found')"),
        ):  # fmt: skip
            times[name] = self.driver.execute_async_script(
                """
                const done = arguments[arguments.length - 1], byId = (id) => document.getElementById(id);
                const choose = (id, value) => { byId(id).value = value; byId(id).dispatchEvent(new Event("change")); };
                const clear = () => byId("clear").click();
                const search = (text) => { byId("query").value = text; byId("query").dispatchEvent(new Event("input")); };
                const start = performance.now();
                const drawn = new MutationObserver(() => { drawn.disconnect(); requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))); });
                drawn.observe(byId("cases"), { childList: true });
                ACT;
                """.replace("ACT", act)
            )
        start = time.monotonic()
        self.js("document.querySelector('[data-change=unchanged]'); document.getElementById('clear').click(); document.querySelector('.row .open').click()")
        times["open a case"] = (time.monotonic() - start) * 1000
        shown = ", ".join(f"{name} {value:.0f} ms" for name, value in times.items())
        print(f"\nreview.html, 10,000 cases x 5 trials: written in {written:.1f} s, {size / 1e6:.1f} MB; {shown}")
        for name, value in times.items():
            self.assertLess(value, SECONDS * 1000, name)


if __name__ == "__main__":
    unittest.main()
