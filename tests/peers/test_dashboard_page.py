"""The dashboard in a real browser: 500 runs × 2,000 cases, keys, hostile texts, narrow and wide, paper, without JavaScript.

Needs what test_review_page.py needs; without it the tests are skipped.
"""

import base64
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import test_review_page
from dashboard_fixture import ACCEPTED, PENDING, REJECTED, anchor, compared, large_plans, write_history
from support import run_cli

SECONDS = 2.0  # within which the page of 500 runs × 2,000 cases opens, and answers a scroll
HOSTILE = "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">\u202e"
BEFORE, AFTER = {"a": (0, 3), "b": (3, 3), HOSTILE: (1, 3)}, {"a": (3, 3), "b": (3, 3), HOSTILE: (2, 3)}
WORSE = {"a": (3, 3), "b": (0, 3), HOSTILE: (0, 0)}
SMALL = (
    anchor("v1", BEFORE, label=HOSTILE, cost=0.01, time=900),
    compared("v2", WORSE, BEFORE, decision={**REJECTED, "rationale": HOSTILE}, cost=0.011, time=950),
    compared("v3", AFTER, BEFORE, promote=True, decision=ACCEPTED, cost=0.012, time=800),
    anchor("v3", {"x": (1, 1)}, label="new cases"),
    compared(HOSTILE, {"x": (0, 1)}, {"x": (1, 1)}, decision=PENDING),
)


class DashboardTestCase(test_review_page.BrowserTestCase):
    """A browser, and histories whose page it opens."""

    def made(self, plans=SMALL):
        """Writes the history of *plans* and its page; returns the page's address."""
        folder = Path(self.folder, "kaizen-history")
        write_history(folder, plans)
        done = run_cli("dashboard", "--history", str(folder))
        self.assertEqual(done.status, 0, done.stderr)
        return (folder / "dashboard.html").as_uri()

    def show(self, plans=SMALL):
        self.address = self.made(plans)
        self.driver.get(self.address)

    def frames(self):
        """Waits until what was asked for has been drawn."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def told(self):
        return self.one(".map-told").text


class Page(DashboardTestCase):
    """A small history."""

    def test_no_error_no_request_and_nothing_runs(self):
        self.show()
        self.one("#map-frame").click()
        console, asked = self.logs()
        self.assertEqual((console, self.driver.title), ([], "kaizen-history: dashboard"))
        self.assertEqual({address for address in asked if not address.startswith("about:")}, {self.address})
        self.assertEqual(self.all("img"), [])

    def test_the_map_goes_by_keys_and_says_what_is_there(self):
        self.show()
        self.js("document.getElementById('map-frame').focus()")
        self.press(test_review_page.Keys.ARROW_DOWN)
        self.assertTrue(self.told().startswith("x: 0 of 1 trials passed, regressed."), self.told())
        self.press(test_review_page.Keys.ARROW_LEFT, test_review_page.Keys.ARROW_LEFT)
        self.assertIn("x: no case of cohort A. Run 3, version v3", self.told())
        self.press(test_review_page.Keys.HOME, test_review_page.Keys.ARROW_DOWN)
        self.assertIn("Run 1, version v1", self.told())
        self.assertNotIn("\u202e", self.told())
        self.press(test_review_page.Keys.PAGE_DOWN, test_review_page.Keys.END)
        self.assertIn("Run 6", self.told())

    def test_cases_are_found_and_ordered(self):
        self.show()
        self.assertEqual(self.one(".map-count").text, "4 of 4 cases, 5 runs")
        self.one("#map-find").send_keys("B")
        self.assertEqual(self.one(".map-count").text, "1 of 4 cases, 5 runs")
        self.js("document.getElementById('map-frame').focus()")
        self.press(test_review_page.Keys.ARROW_DOWN, test_review_page.Keys.HOME, test_review_page.Keys.ARROW_RIGHT)
        self.assertTrue(self.told().startswith("b: 0 of 3 trials passed, regressed."), self.told())
        self.one("#map-find").send_keys("nothing")
        self.assertEqual(self.told(), "No case has this in its id.")

    def test_the_marks_of_the_map_differ_in_shape(self):
        self.show()
        self.one("#theme-light").click()
        self.frames()
        shapes = self.js(
            "return [...document.querySelectorAll('.map-legend canvas')].map((each) => { const d = each.getContext('2d').getImageData(0, 0, each.width, each.height).data; "
            "let text = ''; for (let i = 3; i < d.length; i += 4) text += d[i] > 100 && d[i - 1] + d[i - 2] + d[i - 3] < 420 ? 1 : 0; return text; })"
        )
        self.assertEqual(len(set(shapes)), 6)

    def test_marks_of_the_picture_differ_in_shape(self):
        self.show()
        shapes = {each.get_attribute("class"): each.get_attribute("d") for each in self.all(".panel .mark")}
        self.assertEqual(len(set(shapes.values())), len(shapes))
        self.assertEqual(len(shapes), 3)

    def test_it_can_be_read_without_javascript(self):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        self.addCleanup(self.driver.execute_cdp_cmd, "Emulation.setScriptExecutionDisabled", {"value": False})
        self.show()
        words = self.one("main").text.replace("\u00a0", " ")
        for part in ("Rejected, decision open:", "Did anything regress?", "Regressed: x.", "The map needs JavaScript", "95 % interval", "0.012 USD", "Rejected by Ada"):
            self.assertIn(part, words)

    def test_no_screen_is_too_narrow(self):
        address = self.made()
        for width in (360, 800, 1600):
            with self.subTest(width=width):
                self.screen(width, 900)
                self.driver.get(address)
                self.assertLessEqual(self.js("return document.documentElement.scrollWidth"), width)
                self.assertTrue(self.js("const plot = document.getElementById('plot'); return plot.scrollWidth <= plot.clientWidth"))
                self.assertEqual(self.js("return [...document.querySelectorAll('table, tr, td, th')].filter((each) => !each.getAttribute('role')).length"), 0)

    def test_the_map_follows_light_and_dark(self):
        self.show()
        pixel = "const c = document.querySelector('.map-frame canvas'); return [...c.getContext('2d').getImageData(2, 2, 1, 1).data].join()"
        found = []
        for theme in ("light", "dark"):
            self.js("document.getElementById(arguments[0]).click()", f"theme-{theme}")
            self.frames()
            found.append(self.js(pixel))
        self.assertNotEqual(*found)

    def test_it_prints(self):
        self.show()
        paper = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        self.assertGreater(len(base64.b64decode(paper["data"])), 10_000)


class Size(DashboardTestCase):
    """500 runs × 2,000 cases."""

    def test_it_opens_and_scrolls_in_time(self):
        address = self.made(large_plans())
        size = Path(self.folder, "kaizen-history", "dashboard.html").stat().st_size
        times = []
        for _ in range(3):  # the best of three: other work on the machine is not what is measured
            started = time.monotonic()
            self.driver.get(address)
            self.frames()
            opened = time.monotonic() - started
            started = time.monotonic()
            self.js("const f = document.getElementById('map-frame'); f.scrollTop = f.scrollHeight / 2; f.scrollLeft = f.scrollWidth / 2")
            self.frames()
            scrolled = time.monotonic() - started
            started = time.monotonic()
            self.js("document.querySelector('.runs + details').open = true; scrollTo(0, document.documentElement.scrollHeight)")
            self.frames()
            times.append((opened, scrolled, time.monotonic() - started))
        best = [min(each) for each in zip(*times, strict=True)]
        if os.environ.get("KAIZEN_SHOW_TIMES"):
            print(f"500 runs x 2,000 cases: {size:,} bytes, opened, map scrolled, all runs opened after {[round(each, 2) for each in best]} s")
        self.assertLess(max(best), SECONDS)
        self.assertLess(size, 6_000_000)
        # 2,000 + 19 × 5 ids, of which those whose number leaves 7 when divided by 50 are of the holdout: 42 up to 2,057.
        self.assertEqual(self.one(".map-count").text, "2,053 of 2,053 cases, 500 runs")


if __name__ == "__main__":
    test_review_page.unittest.main()
