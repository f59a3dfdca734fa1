"""The commands of a history: what they show, what they hide, what they refuse; old histories stay readable."""

import json
import os
import random
import re
import shutil
import unittest

import support
from history_fixture import ACCEPT, AFTER, BEFORE, copy_history, improvement, kaizen_json, must
from support import DATA, kaizen, run_cli, write
from test_policy_recommendation import CHECK

FOLDER = "kaizen-history"
HOSTILE = ("../../../etc/passwd", "<script>alert(1)</script>", "a\x1b[31mred\x07", "\u202etxt.exe", "con", ".", "..", "a/b\\c", "'; rm -rf ~ #", "ä" * 100)


class Reading(support.TemporaryFolder):
    """list, show, diff, and the rows behind them."""

    def setUp(self):
        super().setUp()
        copy_history(self.folder)

    def test_list_tells_versions_rates_decisions_and_the_champion(self):
        done = run_cli("history", "list")
        rows = done.stdout.splitlines()
        self.assertEqual(len(rows), 6)
        for row, words in zip(
            rows,
            (
                "anchor, v1, c-[0-9a-f]{10}, 33.33 %",
                "record, v2, c-[0-9a-f]{10}, 83.33 %, eligible, decision accepted, champion",
                "anchor, v2, c-[0-9a-f]{10}, 58.33 %",
                "record, v3, c-[0-9a-f]{10}, 75 %, rejected, decision rejected",
                "record, v4, c-[0-9a-f]{10}, 83.33 %, eligible, decision pending",
                "5 runs; champion: 0002-asks-first-[0-9a-f]{8}, agent version 'v2'",
            ),
            strict=True,
        ):
            self.assertRegex(row, words + "$")

    def test_a_run_is_named_by_id_number_beginning_label_or_champion(self):
        for name in ("2", "0002", "asks first", "champion"):
            self.assertEqual(must("history", "show", name)["run"]["seq"], 2, name)
        self.assertEqual(kaizen_json("history", "show", "000")["reason"], "ambiguous_run")
        for name in ("99", "nobody", "", "²"):
            self.assertEqual(kaizen_json("history", "show", name)["reason"], "no_run", name)

    def test_show_tells_who_decided_and_what_it_was_compared_with(self):
        text = run_cli("history", "show", "2").stdout
        for words in ("label 'asks first'", "improvement 'refund'", "accepted by 'Ada'", "because 'reads well'", "compared with 0001-", "every hash verifies"):
            self.assertIn(words, text)

    def test_show_exits_1_when_a_file_is_not_what_was_recorded(self):
        path = next((self.folder / FOLDER / "objects").rglob("*.gz"))
        path.unlink()
        done = run_cli("history", "show", "2")
        self.assertEqual(done.status, 1)
        self.assertIn("is missing", done.stdout)
        shutil.rmtree(next((self.folder / FOLDER / "runs").glob("0002-*")))
        self.assertIn("cannot be trusted", run_cli("history", "list").stdout)
        self.assertEqual(run_cli("history", "show", "2").status, 1)
        self.assertEqual(kaizen_json("history", "promote", "2")["reason"], "hash_mismatch")
        self.assertEqual(kaizen_json("history", "record", "tone", "--agent-version", "v9")["reason"], "hash_mismatch")

    def test_diff_of_one_cohort_goes_case_by_case(self):
        answer = must("history", "diff", "1", "2")
        self.assertEqual(answer["cases"], {"gained": {"ids": ["a"], "holdout": 1}, "lost": {"ids": [], "holdout": 0}, "unmeasured": {"ids": [], "holdout": 0}})
        answer = must("history", "diff", "6", "5")
        self.assertEqual((answer["cases"]["gained"]["ids"], answer["cases"]["lost"]["ids"]), (["e"], ["b"]))

    def test_runs_of_two_cohorts_are_not_subtracted(self):
        answer = must("history", "diff", "2", "6")
        self.assertEqual(answer["reason"], "other_cohort")
        self.assertEqual(answer["cohorts"]["cases"], {"added": ["d", "e"], "removed": ["c"], "changed": []})
        self.assertEqual((answer["cohorts"]["holdout_cases"], answer["cohorts"]["evaluators"]), (1, {"added": [], "removed": [], "changed": []}))
        self.assertNotIn("cases", answer)

    def test_nothing_shows_a_holdout_case(self):
        for argv in (("list",), ("show", "1"), ("show", "2"), ("diff", "1", "2"), ("diff", "2", "6"), ("validate",)):
            for options in ((), ("--json",)):
                done = run_cli("history", *argv, *options)
                self.assertNotIn("secret", done.stdout + done.stderr, argv)
        write("p.json", json.dumps({"evaluators": [{"id": "right", "type": "equals", "value": "no"}]}))
        for options in ((), ("--json",)):
            self.assertNotIn("secret", run_cli("replay-decision", "--evaluation", "p.json", *options).stdout)

    def test_the_outcomes_of_each_case_can_be_streamed(self):
        history = kaizen.load_history(FOLDER)
        run = history.champion()
        found = {each.id: each for each in kaizen.run_outcomes(history, run)}
        self.assertEqual(found["a"], kaizen.CaseOutcome("a", False, "improved", (0, 3), (3, 3)))
        self.assertEqual(found["c"], kaizen.CaseOutcome("c", False, "unchanged", (1, 3), (1, 3)))
        self.assertTrue(found["secret"].is_holdout)
        alone = list(kaizen.run_outcomes(history, kaizen.find_run(history, "1")))
        self.assertEqual(alone[0], kaizen.CaseOutcome("a", False, None, None, (0, 3)))

    def test_it_is_found_from_a_folder_below_and_by_name(self):
        os.chdir("improvements/refund")
        self.assertEqual(must("history", "list")["champion"][:4], "0002")
        os.chdir("/")
        self.assertEqual(must("history", "list", "--history", str(self.folder / FOLDER))["champion"][:4], "0002")
        self.assertEqual(kaizen_json("history", "list", "--history", str(self.folder))["status"], 2)

    def test_where_there_is_none_it_is_said_how_to_begin(self):
        (self.folder / "empty").mkdir()
        shutil.rmtree(FOLDER)
        for command in (("list",), ("show", "1"), ("promote", "1"), ("diff", "1", "2"), ("validate",), ("anchor",)):
            answer = kaizen_json("history", *command)
            self.assertEqual((answer["status"], answer["reason"]), (2, "no_history"))
            self.assertIn("kaizen history init", answer["next"])


class Recording(support.TemporaryFolder):
    """What init and record archive and refuse."""

    def test_a_cohort_has_one_anchor_and_a_run_is_recorded_once(self):
        improvement("refund", BEFORE, AFTER)
        must("history", "init", "refund", "--agent-version", "v1")
        self.assertEqual(kaizen_json("history", "init", "refund", "--agent-version", "v1")["reason"], "cohort_exists")
        must("history", "record", "refund", "--agent-version", "v2")
        self.assertEqual(kaizen_json("history", "record", "refund", "--agent-version", "v2")["reason"], "already_recorded")
        must("review", "refund")
        must("decide", "refund", *ACCEPT)
        must("history", "record", "refund", "--agent-version", "v2")
        rows = must("history", "list")["runs"]
        self.assertEqual([row["superseded_by"] and row["superseded_by"][:4] for row in rows], [None, "0003", None])
        self.assertEqual([row["decision"] and row["decision"]["status"] for row in rows], [None, None, "accepted"])

    def test_stale_evidence_is_not_recorded(self):
        place = improvement("refund", BEFORE, AFTER)
        must("evaluate", "refund")
        write(place / "baseline.jsonl", (place / "baseline.jsonl").read_text().replace('"no"', '"maybe"', 1))
        for command in ("init", "record"):
            answer = kaizen_json("history", command, "refund", "--agent-version", "v1")
            self.assertEqual((answer["status"], answer["reason"]), (5, "stale_results"))
        self.assertFalse(os.path.exists(FOLDER))

    def test_everything_a_run_rests_on_is_archived(self):
        write("improvements/refund/rules/words.json", '"yes"')
        evaluation = {"version": 1, "include": ["../../datasets/regression.jsonl"], "evaluators": [{"id": "right", "type": "equals", "value": {"$file": "rules/words.json"}}]}
        write("datasets/regression.jsonl", '{"id": "old", "input": 1, "split": "regression"}\n')
        place = improvement("refund", {"a": "n"}, {"a": "y"}, evaluation=evaluation)
        write(place / "issue.md", "what went wrong\n")
        must("review", "refund")
        must("history", "record", "refund", "--agent-version", "v2")
        history = kaizen.load_history(FOLDER)
        run = history.runs[must("history", "show", "1")["run"]["id"]]
        names = {entry["name"] for entry in run.manifest["files"]}
        stages = {f"{stage}{suffix}" for stage in ("baseline", "candidate") for suffix in (".jsonl", ".evaluated.jsonl", ".evaluated.meta.json")}
        others = {"cases.jsonl", "outcomes.json", "comparison.json", "evaluation.json", "issue.md", "decision.yaml", "$file/rules/words.json"}
        self.assertEqual(names, stages | others)
        for name in ("baseline.jsonl", "candidate.evaluated.jsonl", "evaluation.json", "decision.yaml", "issue.md"):
            self.assertEqual(kaizen.object_bytes(history.folder, run.file(name)), (place / name).read_bytes(), name)
        self.assertEqual(kaizen.object_bytes(history.folder, run.file("cases.jsonl")).count(b"\n"), 2)
        # Put back, it gives the same comparison, also where the included file is gone.
        shutil.rmtree("improvements")
        shutil.rmtree("datasets")
        write("same.json", "{}")
        answer = must("replay-decision", "--policy", "same.json")
        self.assertEqual((answer["reason"], answer["runs"][0]["before"], answer["runs"][0]["flips"]), ("stays", answer["runs"][0]["after"], False))

    def test_hostile_labels_and_versions_are_neither_paths_nor_escapes(self):
        improvement("refund", {"a": "n"}, {"a": "y"})
        for label in HOSTILE:
            must("history", "record", "refund", "--label", label, "--agent-version", label)
        self.assertEqual(sorted(os.listdir(self.folder)), ["improvements", FOLDER])
        for name in os.listdir(f"{FOLDER}/runs"):
            self.assertRegex(name, r"^\d{4}-[a-z0-9-]{1,60}$")
        for command in (("list",), *(("show", str(number)) for number in range(1, len(HOSTILE) + 1))):
            self.assertNotRegex(run_cli("history", *command).stdout, "[\x00-\x09\x0b-\x1f\x7f\u202e]")
        must("history", "validate")

    def test_labels_and_versions_have_a_length(self):
        improvement("refund", {"a": "n"}, {"a": "y"})
        for options in (("--agent-version", " "), ("--agent-version", "x" * 201), ("--agent-version", "v", "--label", "x" * 201)):
            self.assertEqual(kaizen_json("history", "record", "refund", *options)["status"], 2)
        self.assertFalse(os.path.exists(FOLDER))

    def test_a_history_elsewhere_is_made_and_found_by_its_option(self):
        improvement("refund", {"a": "n"}, {"a": "y"})
        must("history", "init", "refund", "--agent-version", "v1", "--history", "kept/here")
        self.assertEqual(must("history", "list", "--history", "kept/here")["entries"], 1)
        self.assertFalse(os.path.exists(FOLDER))

    def test_a_folder_that_holds_something_else_is_not_made_a_history(self):
        improvement("refund", {"a": "n"}, {"a": "y"})
        write(".notes.1.tmp", "mine")
        answer = kaizen_json("history", "init", "refund", "--agent-version", "v1", "--history", ".")
        self.assertEqual((answer["status"], answer["reason"]), (5, "no_history"))
        self.assertEqual(sorted(os.listdir()), [".notes.1.tmp", "improvements"])

    def test_the_two_words_are_one_command(self):
        self.assertIn("needs a command behind it", run_cli("history").stderr)
        self.assertIn("did you mean 'record'?", run_cli("history", "recrod").stderr)
        for argv in (("history", "--help"), ("help", "history")):
            done = run_cli(*argv)
            self.assertEqual((done.status, done.stdout.count("kaizen history ")), (0, 9), done.stdout)
        self.assertIn("example:\n  kaizen history promote 2", run_cli("help", "history", "promote").stdout)
        self.assertIn("unknown option '--label'", run_cli("history", "promote", "2", "--label", "x").stderr)


class Replay(support.TemporaryFolder):
    """Which past promotions another evaluator or policy would flip."""

    def setUp(self):
        super().setUp()
        copy_history(self.folder)

    def test_a_stricter_policy(self):
        write("strict.json", json.dumps({"acceptance": {"minimum_pass_rate": 0.9}}))
        before = {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        answer = must("replay-decision", "--policy", "strict.json")
        self.assertEqual(answer["message"], "1 of 1 promotion would flip under strict.json; 2 of 3 runs in all")
        self.assertEqual([name[:4] for name in answer["flipped_promotions"]], ["0002"])
        self.assertEqual([row["flips"] for row in answer["runs"]], [True, False, True])
        self.assertEqual(answer["runs"][0]["after"]["reasons"][0]["code"], "below_minimum_pass_rate")
        self.assertEqual({str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}, before)

    def test_a_weaker_policy_and_other_evaluators(self):
        write("weak.json", json.dumps({"acceptance": {"maximum_regressions": 5}}))
        answer = must("replay-decision", "--policy", "weak.json")
        self.assertEqual([(row["before"]["recommendation"], row["after"]["recommendation"]) for row in answer["runs"]][1], ("rejected", "eligible"))
        self.assertEqual(answer["flipped_promotions"], [])
        write("other.json", json.dumps({"evaluators": [{**CHECK, "negate": True}]}))
        answer = must("replay-decision", "--evaluation", "other.json")
        self.assertEqual([row["after"]["recommendation"] for row in answer["runs"]], ["rejected"] * 3)

    def test_the_same_policy_flips_nothing(self):
        write("same.json", "{}")
        answer = must("replay-decision", "--policy", "same.json")
        self.assertEqual((answer["reason"], [row["cases"] for row in answer["runs"]]), ("stays", [[], [], []]))

    def test_a_run_whose_archive_is_broken_is_named_and_the_others_replayed(self):
        entry = kaizen.find_run(kaizen.load_history(FOLDER), "2").file("candidate.jsonl")
        os.unlink(f"{FOLDER}/{kaizen.entry_object(entry)}")
        write("same.json", "{}")
        answer = kaizen_json("replay-decision", "--policy", "same.json")
        self.assertEqual((answer["status"], [row["reason"] for row in answer["not_replayed"]]), (4, ["hash_mismatch"]))
        self.assertEqual(len(answer["runs"]), 2)

    def test_a_policy_that_is_wrong_is_told_with_its_place(self):
        write("bad.json", '{\n  "acceptance": {"minimum_pas_rate": 1}\n}')
        done = run_cli("replay-decision", "--policy", "bad.json")
        self.assertEqual(done.status, 2)
        self.assertIn("bad.json:2#/acceptance/minimum_pas_rate", done.stderr)
        write("bad.json", '{"evaluators": [],\n "acceptanc": {}}')
        done = run_cli("replay-decision", "--evaluation", "bad.json")
        self.assertEqual(done.status, 2)
        self.assertIn("bad.json:2#/acceptanc", done.stderr)
        for argv in ((), ("--policy", "a", "--evaluation", "b"), ("refund", "--policy", "bad.json", "--history", FOLDER)):
            self.assertEqual(run_cli("replay-decision", *argv).status, 2)

    def test_an_archived_name_that_leads_elsewhere_is_not_written(self):
        for name in ("../x", "/tmp/x", "a/b", ".hidden", "", "x\x00y"):
            with self.assertRaises(kaizen.ArchiveError):
                kaizen.restored_path(str(self.folder), name)
        history = kaizen.load_history(FOLDER)
        run = kaizen.find_run(history, "2")
        entry = {**run.file("candidate.jsonl"), "name": "$file/../../outside.json"}
        hostile = run._replace(manifest={**run.manifest, "files": [entry]})
        (self.folder / "deep/er").mkdir(parents=True)
        with self.assertRaises(kaizen.ArchiveError):
            kaizen.restore_run(history, hostile, str(self.folder / "deep/er"), {})
        self.assertFalse((self.folder / "outside.json").exists())


class Versions(support.TemporaryFolder):
    """tests/data/v1 is what this version wrote, frozen; it is never written again."""

    def setUp(self):
        super().setUp()
        shutil.copytree(DATA / "v1", self.folder, dirs_exist_ok=True)

    def test_a_history_of_version_1_stays_readable(self):
        answer = must("history", "validate", "--anchor", (DATA / "v1/anchor.txt").read_text().strip())
        self.assertEqual((answer["entries"], answer["runs"]), (6, 5))
        rows = must("history", "list")["runs"]
        self.assertEqual([(row["kind"], row["agent_version"], row["recommendation"]) for row in rows][:2], [("anchor", "v1", None), ("record", "v2", "eligible")])
        self.assertEqual([row["is_champion"] for row in rows], [False, True, False, False, False])
        self.assertEqual(must("history", "diff", "1", "2")["cases"]["gained"], {"ids": ["a"], "holdout": 1})
        write("same.json", "{}")
        self.assertEqual([row["flips"] for row in must("replay-decision", "--policy", "same.json")["runs"]], [False] * 3)

    def test_a_history_of_version_1_can_be_continued(self):
        improvement("next", {"a": "n"}, {"a": "y"})
        must("history", "init", "next", "--agent-version", "v2")
        must("history", "validate", "--anchor", (DATA / "v1/anchor.txt").read_text().strip())

    def test_a_newer_ledger_is_refused_by_name(self):
        path = self.folder / FOLDER / "ledger.jsonl"
        lines = path.read_text().splitlines()
        newer = {**json.loads(lines[-1]), "version": 2, "colour": "blue"}
        write(path, "\n".join([*lines[:-1], json.dumps(newer)]) + "\n")
        for command in (("list",), ("record", "x", "--agent-version", "v"), ("anchor",)):
            if command[0] == "record":
                improvement("x", {"a": "n"}, {"a": "y"})
            answer = kaizen_json("history", *command)
            self.assertEqual((answer["status"], answer["reason"]), (5, "newer_version"), answer)
            self.assertIn("schema version 2, which is newer than the 1", answer["message"])
        self.assertIn("newer_version", {each["code"] for each in kaizen_json("history", "validate")["problems"]})

    def test_a_newer_manifest_is_refused_by_name(self):
        entries = kaizen.ledger_entries(FOLDER)
        path = f"{FOLDER}/runs/{entries[0]['run']}/manifest.json"
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        write(path, text.replace('"version": 1', '"version": 7', 1))
        with open(path, "rb") as stream:
            digest = kaizen.sha256_hex(stream.read())
        sealed = [kaizen.sealed_entry([], entries[0]["at"], "anchor", entries[0]["run"], manifest=digest)]
        kaizen.write_ledger(FOLDER, sealed)
        for command in ("list", "validate"):
            answer = kaizen_json("history", command)
            self.assertEqual((answer["status"], answer["reason"]), (5, "newer_version"))
            self.assertRegex(answer["message"], re.escape(path) + ": has schema version 7")


class Forgeries(support.TemporaryFolder):
    """A manifest or a ledger of another shape whose hashes fit: an error in one line, never a defect."""

    ODD = (None, 7, -1.5, "x", [], {}, [None], {"x": 1}, True, [[1]], "\x1b[31m")

    def paths(self, value, place=()):
        """The place of every value in *value*."""
        yield place
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            yield from self.paths(item, (*place, key))

    def changed(self, document, place, odd):
        """A copy of *document* with *odd* at *place*; with ... the place is removed."""
        copy = json.loads(json.dumps(document))
        inner = copy
        for key in place[:-1]:
            inner = inner[key]
        if odd is ...:
            del inner[place[-1]]
        else:
            inner[place[-1]] = odd
        return copy

    def check_commands(self, what):
        for argv in (("list",), ("show", "2"), ("diff", "2", "4"), ("validate",), ("promote", "6")):
            done = run_cli("history", *argv)
            self.assertIn(done.status, (0, 1, 2, 5), f"{what} {argv}: {done.stderr}")
            self.assertNotIn("\x1b", done.stdout + done.stderr, what)

    def test_forged_manifests(self):
        copy_history(self.folder)
        entries = kaizen.ledger_entries(FOLDER)
        path = kaizen.manifest_path(FOLDER, entries[1]["run"])
        manifest = kaizen.read_json_object(path)
        chance = random.Random(3)
        places = [place for place in self.paths(manifest) if place and place[0] != "files"] + [("files",), ("files", 0), ("files", 0, "sha256"), ("files", 2, "name")]
        for place in chance.sample(places, 40):
            odd = chance.choice((..., *self.ODD))
            text = json.dumps(self.changed(manifest, place, odd))
            write(path, text)
            forged = []
            for entry in entries:
                fields = {key: value for key, value in entry.items() if key in ("manifest", "decision", "replaces")}
                if entry["seq"] == 2:
                    fields["manifest"] = kaizen.sha256_hex(text)
                forged.append(kaizen.sealed_entry(forged, entry["at"], entry["kind"], entry["run"], **fields))
            kaizen.write_ledger(FOLDER, forged)
            self.check_commands(f"{place} = {odd!r}")

    def test_forged_texts_show_no_control_characters(self):
        copy_history(self.folder)
        entries = kaizen.ledger_entries(FOLDER)
        shutil.rmtree("improvements")  # so that the archived decision counts
        forged, stated = [], {**entries[2]["decision"]["stated"], "status": "ac\x1b[1m", "decided_by": "\x1b[31mEve", "decided_at": "\x1b[5m"}
        for entry in entries:
            fields = {key: value for key, value in entry.items() if key in ("manifest", "decision", "replaces")}
            if entry["kind"] == "promotion":
                fields["decision"] = {**fields["decision"], "stated": stated}
            else:
                path = kaizen.manifest_path(FOLDER, entry["run"])
                manifest = kaizen.read_json_object(path)
                manifest.update(label="\x1b[2J", agent_version="\x1b[H", improvement={"name": "x\x1b[31m'; rm -rf ~"}, recorded_at="\x1b[7m")
                manifest["decision"] = stated
                manifest["reasons"] = [{"code": "c", "rule": 3, "text": "\x1b[31mworse"}]
                text = json.dumps(manifest)
                write(path, text)
                fields["manifest"] = kaizen.sha256_hex(text)
            forged.append(kaizen.sealed_entry(forged, "\x1b[31mnow", entry["kind"], entry["run"], **fields))
        kaizen.write_ledger(FOLDER, forged)
        write("p.json", '{"acceptance": {"minimum_pass_rate": 0.99}}')
        for argv in (("list",), *(("show", name) for name in "1256"), ("diff", "1", "2"), ("diff", "2", "5"), ("validate",), ("promote", "5"), ("promote", "6")):
            done = run_cli("history", *argv)
            self.assertIn(done.status, (0, 1, 5), done.stderr)
            self.assertNotIn("\x1b", done.stdout + done.stderr, argv)
        done = run_cli("replay-decision", "--policy", "p.json")
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertIn("\\x1b[31mnow", run_cli("history", "show", "2").stdout)

    def test_a_history_that_lost_its_ledger_is_named_and_no_other_is_used(self):
        copy_history(self.folder)
        shutil.copytree(FOLDER, f"improvements/{FOLDER}")
        os.remove(f"improvements/{FOLDER}/ledger.jsonl")
        os.chdir("improvements")
        answer = kaizen_json("history", "validate")
        self.assertEqual((answer["status"], answer["reason"], answer["problems"][0]["path"]), (1, "ledger_removed", f"{FOLDER}/ledger.jsonl"))
        for argv in (("history", "list"), ("history", "anchor"), ("history", "promote", "6"), ("history", "record", "tone", "--agent-version", "v9"), ("replay-decision", "--policy", "p.json")):
            answer = kaizen_json(*argv)
            self.assertEqual((answer["status"], answer["reason"]), (5, "ledger_removed"), argv)
        self.assertEqual(kaizen_json("dashboard")["reason"], "ledger_removed")

    def test_a_folder_that_is_no_history_gets_no_dashboard(self):
        write("other/notes.txt", "mine")
        self.assertEqual(kaizen_json("dashboard", "--history", "other")["status"], 2)
        self.assertEqual(os.listdir("other"), ["notes.txt"])

    def test_a_baseline_that_is_named_must_be_there(self):
        copy_history(self.folder)
        answer = kaizen_json("history", "record", "tone", "--baseline", "basline", "--agent-version", "v9")
        self.assertEqual((answer["status"], answer["reason"]), (2, "missing_stage"))
        self.assertEqual(len(kaizen.ledger_entries(FOLDER)), 6)

    def test_forged_promotions_and_entries(self):
        copy_history(self.folder)
        entries = kaizen.ledger_entries(FOLDER)
        places = [(number, *place) for number in (0, 2) for place in self.paths(entries[number]) if place and place != ("hash",)]
        chance = random.Random(4)
        for number, *place in chance.sample(places, 25):
            odd = chance.choice((..., *self.ODD))
            forged = [dict(entry) for entry in entries]
            forged[number] = self.changed(forged[number], place, odd)
            for index, entry in enumerate(forged):
                entry["prev"] = forged[index - 1]["hash"] if index and place != ["prev"] else entry.get("prev")
                entry["hash"] = kaizen.entry_hash(entry)
            kaizen.write_ledger(FOLDER, forged) if number else write(f"{FOLDER}/ledger.jsonl", kaizen.ledger_bytes(forged))
            self.check_commands(f"{number} {place} = {odd!r}")

    def test_forged_archives(self):
        copy_history(self.folder)
        entries = kaizen.ledger_entries(FOLDER)
        path = kaizen.manifest_path(FOLDER, entries[1]["run"])
        manifest = kaizen.read_json_object(path)
        write("p.json", "{}")
        for name in ("outcomes.json", "comparison.json", "cases.jsonl", "evaluation.json", "candidate.evaluated.meta.json"):
            for content in (b"", b"[]", b"{}", b"\xff", b'{"cases": [[1]]}\n', b'{"cases": [["a", 0, "improved", 1, 2, 3, 2]]}\n', b'{"cases": [["zz", 0, "improved", 0, 2, 1, 2]]}\n', b'{"baseline": {"stage": 1}}'):
                files = [entry for entry in manifest["files"] if entry["name"] != name]
                files.append(kaizen.store_object(FOLDER, kaizen.measured_source(kaizen.Source(name, content=content))))
                text = json.dumps({**manifest, "files": files})
                write(path, text)
                forged = [kaizen.sealed_entry([], entries[0]["at"], "anchor", entries[0]["run"], manifest=entries[0]["manifest"])]
                forged.append(kaizen.sealed_entry(forged, entries[1]["at"], "record", entries[1]["run"], manifest=kaizen.sha256_hex(text)))
                kaizen.write_ledger(FOLDER, forged)
                for argv in (("history", "diff", "1", "2"), ("history", "list"), ("replay-decision", "--policy", "p.json"), ("dashboard",)):
                    done = run_cli(*argv)
                    self.assertIn(done.status, (0, 1, 2, 4, 5), f"{name} {content!r} {argv}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
