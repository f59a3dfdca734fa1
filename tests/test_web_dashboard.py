"""dashboard.html: the answers, the picture, the map's data, broken and empty histories, hostile texts, the holdout."""

import json
import re
import shutil
import unittest
from html.parser import HTMLParser
from pathlib import Path

import support
from dashboard_fixture import ACCEPTED, PENDING, REJECTED, anchor, compared, write_history
from history_fixture import copy_history, improvement, kaizen_json, must
from support import run_cli

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e\n"
VOID = {"meta", "input", "br", "hr", "img", "link"}
BEFORE, AFTER = {"a": (0, 3), "b": (3, 3), "c": (1, 3)}, {"a": (3, 3), "b": (3, 3), "c": (2, 3)}
WORSE = {"a": (3, 3), "b": (0, 3), "c": (0, 0)}


class Markup(HTMLParser):
    """Collects elements with their attributes and the visible text; complains about what does not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words, self.wrong = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    def text(self):
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())


class DashboardTestCase(support.TemporaryFolder):
    """Makes histories and reads their page."""

    def made(self, *plans, name="kaizen-history"):
        self.runs = write_history(Path(name), plans)
        return self.page(status=0)

    def page(self, status=0):
        """The page as `kaizen dashboard` writes it: its markup in `self.markup`, its text returned."""
        done = run_cli("dashboard")
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        self.raw = Path("kaizen-history/dashboard.html").read_text(encoding="utf-8")
        self.markup = Markup(self.raw)
        self.assertEqual((self.markup.wrong, self.markup.open), ([], []))
        return self.markup.text()

    def map_data(self):
        return json.loads(re.search(r'id="map-data">(.*?)</script>', self.raw, re.S)[1])

    def cells(self):
        """{run number: {case: (change, passed, valid)}} as the script finds it in the data of the map."""
        data = self.map_data()
        states = {character: tuple(rest) for character, *rest in data["states"]}
        found = {}
        for run_id, number, *_ in data["runs"]:
            which, characters = data["columns"][run_id]
            spans = data["lists"][which]
            places = [place for first, length in zip(spans[::2], spans[1::2], strict=False) for place in range(first, first + length)]
            found[number] = {data["cases"][place]: states[character] for place, character in zip(places, characters, strict=True)}
        return found

    def marks(self, panel):
        """The kinds of marks of one picture, from left to right."""
        return re.findall(r'class="mark (\w+)"', self.panel(panel))

    def panel(self, kind):
        """The markup of one picture."""
        return re.search(rf'<svg class="panel {kind}".*?(?=<p class="cap">|<svg class="names")', self.raw, re.S)[0]

    def lines(self, kind):
        return re.findall(rf'<line class="{kind}" x1="([\d.]+)%"[^>]* x2="([\d.]+)%"', self.panel("quality"))


class Answers(DashboardTestCase):
    """The sentence at the top and the four questions."""

    def assert_says(self, text, *parts):
        for part in parts:
            self.assertIn(part, text)

    def test_a_history_made_by_the_commands_says_who_is_champion_and_what_is_open(self):
        copy_history(self.folder)
        text = self.page()
        self.assert_says(
            text,
            "Eligible, decision open: v4 (run 6): pass rate +25 percentage points against v2 (run 4).",
            "Champion: v2 (run 2)",
            "Are we better than before? Better than before v2 (run 2): pass rate +50 percentage points against v1 (run 1).",
            "Did anything regress? No v4 (run 6): no case passes less often.",
            "Has a record been changed? No Every hash verifies: 6 entries, 5 runs.",
            "kaizen decide improvements/tone --status accepted --by NAME --because TEXT",
            "Rejected by Ada because loses b",
            "Accepted by Ada because reads well; promoted",
            "Differs from the cohort before it: cases added: d and e; cases removed: c; holdout cases that differ: 1.",
            "95 % interval 40 % to 97.4 %",
        )

    def test_the_digest_is_the_one_that_the_anchor_command_prints(self):
        copy_history(self.folder)
        self.assertIn(f"anchor digest {must('history', 'anchor')['anchor']}", self.page())

    def test_what_was_decided_since_the_recording_counts(self):
        copy_history(self.folder)
        must("decide", "tone", "--status", "accepted", "--by", "Grace", "--because", "fine")
        text = self.page()
        self.assertIn("Accepted by Grace, and not promoted. kaizen history promote 0006-friendlier-", text)
        must("decide", "tone", "--status", "rejected", "--by", "Grace", "--because", "no")
        self.assertIn("No decision is open.", self.page())

    def test_an_open_decision_of_an_improvement_that_moved_on_or_is_gone_has_no_command(self):
        copy_history(self.folder)
        improvement(Path("improvements/tone"), {"a": "y"}, {"a": "n"})
        must("review", "tone")
        self.assertIn("its improvement has other evidence by now: review and record that.", self.page())
        shutil.rmtree("improvements/tone")
        text = self.page()
        self.assertIn("the folder of its improvement is gone.", text)
        self.assertNotIn("kaizen decide", text)

    def test_a_rejected_candidate_names_its_regressions_first(self):
        text = self.made(anchor("v1", BEFORE), compared("v2", WORSE, BEFORE, decision=PENDING))
        self.assert_says(
            text,
            "Rejected, decision open: v2 (run 2): 1 regressions (at most 0).",
            "Did anything regress? Yes v2 (run 2): 1 case regressed and 1 case could not be compared. Regressed: b.",
            "Are we better than before? Not known No version has been promoted.",
            "it could not be promoted: the recommendation is rejected",
        )
        look = re.search(r'<table class="figures splits look".*?</table>', self.raw, re.S)[0]
        self.assertEqual(re.findall(r"<b>(.*?)</b> <small>(.*?)</small>", look), [("b", "regressed"), ("c", "not comparable")])
        self.assertEqual(Markup(look).text().split("b regressed ")[1], "passed: 3 of 3 failed: 0 of 3 c not comparable some passed: 1 of 3 not measured: not measured")

    def test_a_human_rejection_counts_more_than_an_eligible_recommendation(self):
        text = self.made(anchor("v1", BEFORE), compared("v2", AFTER, BEFORE, decision=REJECTED))
        self.assert_says(text, "Rejected: v2 (run 2) was rejected by Ada", "No decision is open.")

    def test_better_the_same_and_lower_are_three_words(self):
        for after, words in ((AFTER, "Better than before"), (BEFORE, "The same as before"), ({**BEFORE, "c": (0, 3)}, "A lower pass rate than before")):
            with self.subTest(words):
                shutil.rmtree("kaizen-history", ignore_errors=True)
                plan = compared("v2", after, BEFORE, promote=True, decision=ACCEPTED, recommendation="eligible", reasons=[])
                self.assertIn(f"{words}: v2 (run 2): pass rate", self.made(anchor("v1", BEFORE), plan))

    def test_one_anchor_alone_is_measured_and_not_compared(self):
        text = self.made(anchor("v1", BEFORE))
        self.assert_says(text, "Measured, not compared: v1 (run 1) passes 44.44 %; there is no candidate to compare with it.", "No candidate", "No decision is open.")
        self.assertEqual(self.marks("quality"), ["anchor"])

    def test_an_anchor_of_another_version_than_the_champion_is_told(self):
        text = self.made(
            anchor("v1", BEFORE), compared("v2", AFTER, BEFORE, promote=True, decision=ACCEPTED), anchor("v1", {"other": (1, 1)}, label="wrong one")
        )
        self.assert_says(text, "The newest anchor is of version v1, the champion then was v2", "Another version than the champion then, v2.")
        self.assertEqual(self.lines("way"), [("16.667", "50.000")])

    def test_a_record_of_the_same_evidence_replaces_the_earlier_one(self):
        copy_history(self.folder)
        must("history", "record", "tone", "--label", "again", "--agent-version", "v4")
        text = self.page()
        self.assertIn("Recorded again later", text)
        self.assertEqual(text.count("Nobody has decided yet"), 1)

    def test_what_was_not_measured_is_never_a_zero(self):
        text = self.made(anchor("v1", {"a": (0, 0), "b": (0, 0)}))
        self.assertIn("v1 (run 1) passes not measured", text)
        self.assertEqual(self.marks("quality"), [])
        self.assertNotIn('<svg class="panel cost"', self.raw)
        self.assertIn("costs and durations: not measured in any run", text)


class Picture(DashboardTestCase):
    """Quality, cost and duration over time."""

    def test_lines_stay_inside_a_cohort_and_go_through_anchor_and_promoted_runs_only(self):
        other = {"x": (1, 2), "y": (2, 2)}
        self.made(
            anchor("v1", BEFORE, cost=0.01, time=900),
            compared("v2", WORSE, BEFORE, decision=REJECTED, cost=0.02),
            compared("v3", AFTER, BEFORE, promote=True, decision=ACCEPTED, cost=0.03, time=800),
            anchor("v3", other, label="new cases"),
            compared("v4", {"x": (2, 2), "y": (2, 2)}, other, decision=PENDING),
        )
        self.assertEqual(self.marks("quality"), ["anchor", "rejected", "champion", "anchor", "pending"])
        self.assertEqual(self.lines("way"), [("10.000", "50.000")])
        self.assertEqual(self.lines("border"), [("60.000", "60.000")])
        self.assertEqual(len(self.lines("range(?: track)?")), 5)
        self.assertEqual((self.marks("cost"), self.marks("time")), (["anchor", "rejected", "champion"], ["anchor", "champion"]))
        self.assertIn("0.02 USD, not measured", self.markup.text())

    def test_runs_of_a_cohort_that_is_taken_up_again_stand_in_a_band_of_their_own(self):
        self.made(anchor("v1", BEFORE), anchor("v1", {"x": (1, 1)}, label="other"), compared("v2", AFTER, BEFORE, decision=PENDING))
        self.assertEqual([each[0] for each in self.lines("border")], ["33.333", "66.667"])
        self.assertEqual(re.findall(r'class="letter"[^>]*>(\w)<', self.raw), ["A", "B", "A"])

    def test_letters_of_cohorts_differ_beyond_the_alphabet(self):
        rows = [{"problem": "", "cohort": str(number)} for number in range(60)]
        self.assertEqual(len(set(support.kaizen.cohort_letters(rows).values())), 61)


class MapData(DashboardTestCase):
    """Cases × runs."""

    def test_every_cell_can_be_read_back(self):
        self.made(anchor("v1", BEFORE), compared("v2", WORSE, BEFORE), anchor("v2", {"c": (1, 1), "new": (0, 0)}, label="two"))
        self.assertEqual(
            self.cells(),
            {
                1: {"a": (None, 0, 3), "b": (None, 3, 3), "c": (None, 1, 3)},
                2: {"a": ("improved", 3, 3), "b": ("regressed", 0, 3), "c": ("not_comparable", 0, 0)},
                3: {"c": (None, 1, 1), "new": (None, 0, 0)},
            },
        )

    def test_more_states_than_plain_characters_are_kept_apart(self):
        cells = {f"case-{number}": (number, 200) for number in range(150)}
        self.made(anchor("v1", cells))
        self.assertEqual(self.cells()[1], {name: (None, *cell) for name, cell in cells.items()})

    def test_many_runs_fold_away_and_all_are_there(self):
        self.made(anchor("v0", BEFORE), *[compared(f"v{number}", {**AFTER, "c": (number % 4, 3)}, BEFORE, decision=REJECTED, label=str(number)) for number in range(1, 60)])
        self.assertEqual(len(re.findall(r'<tr role="row"><th scope="row" role="rowheader"><svg', self.raw)), 60)
        self.assertIn("<summary>20 older runs</summary>", self.raw)

    def test_many_cases_fold_away_and_the_rest_is_counted(self):
        cells = {f"case-{number:03d}": (0, 1) for number in range(400)}
        text = self.made(anchor("v0", cells))
        self.assertIn("135 more", text)
        self.assertIn("and 250 more, in the map below", text)


class Holdout(DashboardTestCase):
    """Only counts and rates of it."""

    def test_no_id_is_on_the_page_and_it_is_counted(self):
        cells = {"a": (3, 3), "kanarienvogel-1": (0, 3), "kanarienvogel-2": (0, 3)}
        text = self.made(anchor("v1", dict.fromkeys(cells, (3, 3)), holdout={"kanarienvogel-1", "kanarienvogel-2"}), compared("v2", cells, dict.fromkeys(cells, (3, 3)), holdout={"kanarienvogel-1", "kanarienvogel-2"}, decision=PENDING))
        self.assertNotIn("kanarienvogel", self.raw)
        self.assertIn("Regressed: 2 holdout cases.", text)
        self.assertIn("2 holdout cases are counted in the rates, and not shown.", text)
        self.assertEqual(self.cells()[2], {"a": ("unchanged", 3, 3)})

    def test_a_case_that_was_of_the_holdout_once_stays_hidden_everywhere(self):
        cells = {"a": (3, 3), "kanarienvogel": (0, 3)}
        self.made(anchor("v1", cells, holdout={"kanarienvogel"}), anchor("v1", {**cells, "b": (1, 1)}, label="moved into the open"))
        self.assertNotIn("kanarienvogel", self.raw)
        done = run_cli("dashboard", "--json")
        self.assertNotIn("kanarienvogel", done.stdout + done.stderr)


class Texts(DashboardTestCase):
    """Texts that somebody else wrote stay text."""

    def test_hostile_texts_make_no_element_and_no_character_that_hides(self):
        decision = {**ACCEPTED, "decided_by": HOSTILE, "rationale": HOSTILE, "conditions": [HOSTILE], "via": HOSTILE, "decided_at": HOSTILE}
        cells = {HOSTILE: (0, 3), "b": (3, 3)}
        plans = [anchor(HOSTILE, cells, label=HOSTILE, improvement=HOSTILE), compared(HOSTILE + "2", {HOSTILE: (3, 3), "b": (0, 3)}, cells, label=HOSTILE, improvement=HOSTILE, decision=decision, reasons=[{"code": HOSTILE, "rule": 3, "text": HOSTILE}])]
        self.made(*plans)
        self.assertEqual([tag for tag, _ in self.markup.elements if tag == "img"], [])
        self.assertEqual(sum(1 for tag, _ in self.markup.elements if tag == "script"), 2)
        self.assertEqual([name for _, attributes in self.markup.elements for name in attributes if name.startswith("on") or name == "style"], [])
        for character in ("\x1b", "\u202e"):
            self.assertNotIn(character, re.sub(r"<script.*?</script>", "", self.raw, flags=re.S))
        self.assertEqual(self.cells()[2][HOSTILE], ("improved", 3, 3))
        done = run_cli("dashboard")
        self.assertNotIn("\x1b", done.stdout + done.stderr)

    def test_the_command_to_decide_is_quoted_for_a_shell(self):
        copy_history(self.folder)
        shutil.move("improvements/tone", "improvements/to ne; id")
        runs = json.loads(run_cli("history", "list", "--json").stdout)["runs"]
        shutil.rmtree("kaizen-history")
        must("history", "init", "to ne; id", "--agent-version", "v1")
        must("history", "record", "to ne; id", "--agent-version", runs[-1]["agent_version"])
        self.assertIn("kaizen decide 'improvements/to ne; id' --status accepted", self.page())

    def test_nothing_is_asked_of_anybody(self):
        copy_history(self.folder)
        self.page()
        self.assertIn("default-src &#39;none&#39;", self.raw.replace("'", "&#39;"))
        for attribute in ("src", "action", "formaction", "data", "poster"):
            self.assertEqual([value for _, attributes in self.markup.elements for name, value in attributes.items() if name == attribute], [])
        self.assertEqual({attributes["href"] for _, attributes in self.markup.elements if "href" in attributes}, {"#main"})

    def test_the_same_history_gives_the_same_bytes_wherever_it_is_looked_at_from(self):
        copy_history(self.folder)
        self.page()
        first = self.raw
        for argv in (("dashboard",), ("dashboard", "--history", str(Path("kaizen-history").resolve()))):
            run_cli(*argv, cwd=Path("improvements/tone"))
            self.assertEqual(Path("kaizen-history/dashboard.html").read_text(encoding="utf-8"), first)

    def test_the_page_is_no_part_of_the_history(self):
        copy_history(self.folder)
        self.page()
        self.assertEqual(must("history", "validate")["reason"], "valid")


class Broken(DashboardTestCase):
    """A page is written that says what is wrong, exits 1, and answers nothing."""

    def setUp(self):
        super().setUp()
        copy_history(self.folder)
        self.ledger = Path("kaizen-history/ledger.jsonl")

    def assert_broken(self, *parts):
        text = self.page(status=1)
        for part in ("Not what was written:", "Nothing should be decided before the history is repaired", *parts):
            self.assertIn(part, text)
        self.assertNotIn("Better than before", text)
        self.assertNotIn("kaizen decide", text)
        return text

    def manifest(self, number):
        return next(Path("kaizen-history/runs").glob(f"{number:04d}-*/manifest.json"))

    def test_a_changed_archived_file_marks_the_runs_that_have_it(self):
        document = json.loads(self.manifest(5).read_text())
        entry = next(each for each in document["files"] if each["name"] == "outcomes.json")
        path = Path("kaizen-history/objects", entry["sha256"][:2], entry["sha256"])
        path.write_text(path.read_text().replace("regressed", "improved"))
        self.assert_broken(f"{path}: was changed", "Not to be relied on The record says: v2 (run 2)")
        rows = re.findall(r'<tr role="row"><th scope="row".*?</tr>', self.raw, re.S)
        self.assertEqual([re.search(r"<b>(\d)", row)[1] for row in rows if "changed</span>" in row], ["5"])
        self.assertNotIn(5, self.cells())

    def test_a_changed_manifest_leaves_its_run_without_numbers(self):
        path = self.manifest(6)
        path.write_text(path.read_text().replace("friendlier", "fiendlier"))
        text = self.assert_broken("Runs that cannot be trusted", "cannot be trusted")
        self.assertNotIn("fiendlier", text)
        self.assertNotIn("v4", text)

    def test_a_champion_whose_manifest_cannot_be_trusted_is_not_called_better(self):
        self.manifest(2).write_text("{}")
        self.assert_broken("the champion is run 2, whose manifest cannot be trusted")

    def test_a_ledger_that_lost_repeats_or_reorders_lines(self):
        lines = self.ledger.read_bytes().splitlines(True)
        for kept in (lines[1:], lines[:-1], [lines[1], lines[0], *lines[2:]], [*lines, lines[-1]], lines[:2] + [lines[2].replace(b"promotion", b"promotiom")] + lines[3:], [], [*lines, b"<<<<<<< HEAD\n"], [b"\xff\n"]):
            with self.subTest(len(kept)):
                self.ledger.write_bytes(b"".join(kept))
                self.assert_broken()

    def test_a_ledger_that_is_gone(self):
        self.ledger.unlink()
        done = kaizen_json("dashboard", "--history", "kaizen-history")
        self.assertEqual((done["status"], done["reason"]), (1, "ledger_removed"))

    def test_a_manifest_without_the_numbers_of_a_comparison_is_no_crash(self):
        for forged in ({"counts": {}}, {"recommendation": "great"}, {"counts": {"cases": -1}}):
            with self.subTest(forged):
                shutil.rmtree("kaizen-history")
                write_history(Path("kaizen-history"), [anchor("v1", {"x": (1, 1)}), compared("v2", AFTER, BEFORE, decision=PENDING, **forged)])
                self.assertIn("is no manifest of this run", kaizen_json("dashboard")["problems"][0])

    def test_a_run_whose_outcomes_cannot_be_read_has_no_column_and_that_is_said(self):
        forged = ('[[1], 2, ["a", [], {}]]', '[["a", 0, "improved", 0, 2, 3, 2]]', '[["a", 0, "great", 0, 2, 1, 2]]', "[]", '[["a", 0, null, null, null, 1, 2], ["a", 0, null, null, null, 1, 2]]', "null")
        for cases in forged:
            with self.subTest(cases):
                shutil.rmtree("kaizen-history")
                files = {"outcomes.json": f'{{"version": 1, "cases": {cases}}}'}
                _, name = write_history(Path("kaizen-history"), [anchor("v1", {"x": (1, 1)}), compared("v2", AFTER, BEFORE, decision=PENDING, files=files)])
                done = run_cli("dashboard")
                self.assertEqual((done.status, f"left out of the map, its outcomes cannot be read: {name}" in done.stdout), (0, True), done.stderr)
                text = Markup(Path("kaizen-history/dashboard.html").read_text(encoding="utf-8")).text()
                self.assertIn(f"Without a column, because their outcomes cannot be read: {name}.", text)

    def test_the_page_of_a_broken_history_is_the_same_from_everywhere(self):
        self.manifest(6).write_text("{}")
        self.page(status=1)
        first = self.raw
        run_cli("dashboard", cwd=Path("improvements"))
        self.assertEqual(Path("kaizen-history/dashboard.html").read_text(encoding="utf-8"), first)
        self.assertNotIn(str(self.folder), first)

    def test_a_newer_history_is_refused_and_the_old_page_stays(self):
        entry = json.loads(self.ledger.read_text().splitlines()[0])
        self.ledger.write_text(json.dumps({**entry, "version": 2}) + "\n")
        Path("kaizen-history/dashboard.html").write_text("old")
        done = kaizen_json("dashboard")
        self.assertEqual((done["status"], done["reason"]), (5, "newer_version"))
        self.assertEqual(Path("kaizen-history/dashboard.html").read_text(), "old")


class Empty(DashboardTestCase):
    """No history, and one without entries."""

    def test_without_a_history_nothing_is_written(self):
        done = kaizen_json("dashboard")
        self.assertEqual((done["status"], done["reason"]), (2, "no_history"))
        done = kaizen_json("dashboard", "--history", "nowhere")
        self.assertEqual(done["status"], 2)
        self.assertEqual(list(Path().iterdir()), [])

    def test_an_empty_folder_gets_a_page_with_the_first_command(self):
        Path("kaizen-history").mkdir()
        self.assertEqual(kaizen_json("dashboard", "--history", "kaizen-history")["status"], 0)
        text = Markup(Path("kaizen-history/dashboard.html").read_text(encoding="utf-8")).text()
        self.assertIn("Nothing is recorded yet", text)
        self.assertIn("kaizen history init IMPROVEMENT --agent-version V", text)


if __name__ == "__main__":
    unittest.main()
