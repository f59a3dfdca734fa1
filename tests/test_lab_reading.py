"""Reading runs: log and its ranks, show, compare, status, create view. Figures: numpy 2.4.6 and scipy 1.17.1."""

import json
import shutil
import subprocess
import time
import unittest

from lab_fixture import Lab
from support import read_json, run_cli, write, write_lines

import kaizen

HOSTILE = "\x1b[2J‮evil\nsecond line"
BEFORE, AFTER = [0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1], [1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1]


class Reading(Lab):
    """A workspace whose store is filled by hand; the system demo is on disk."""

    def setUp(self):
        super().setUp()
        self.workspace = kaizen.find_workspace(".")

    def many_items(self):
        """The dataset at hand gets the items i1 to i12."""
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", [{"id": f"i{n}", "input": n, "expected": n} for n in range(1, 13)])

    def record(self, scores=(1, 0), state="completed", variant="v", names=None, lines=None, **fields):
        """The id of a run of demo that gave *scores* to the items i1, i2, …; None for one that never came."""
        ids = names or [f"i{number}" for number in range(1, len(scores) + 1)]
        hashes = {"dataset": "sha256:" + "d" * 64, "eval": "sha256:" + "e" * 64, "system": "sha256:" + "c" * 64, "locked": {"eval.py": "a" * 64}}
        metric = {"name": "accuracy", "aggregation": "mean", "direction": "higher"}
        given = {
            "system": "demo", "variant": variant, "title": "", "description": "", "hypothesis": "", "diagnostic": False, "limited": False,
            "max_items": None, "commit": {"hash": self.git("rev-parse", "HEAD"), "branch": "main", "is_detached": False}, "tree": f"tree-{variant}",
            "hashes": {**hashes, **fields.pop("hashes", {})}, "population": {"dataset_size": len(ids), "selected_item_ids": ids}, "passes": 1,
            "mark": "m", "seed": 1, "created_at": "2026-12-01T00:00:00Z", "metric": metric, "verdict": "unjudged", "separation": "own_process", **fields,
        }  # fmt: skip
        run = self.store.create(given)
        if lines is None:
            lines = [answer(name, score) for name, score in zip(ids, scores, strict=True) if score is not None]
        with self.store.writing(run) as writer:
            writer.event("planned")
            for each in lines:
                writer.item(each)
            if state in ("planned", "running"):
                writer.update(state=state)
                return run
            found = given["metric"]
            summary = kaizen.aggregated(lines, kaizen.Metric(found["name"], found["aggregation"], found.get("percentile"), True, 0, 1, 0), len(ids))
            given_result = fields.get("result", summary)
            counts = {"ok": len(lines), "fail_error": 0, "infra_error": 0, "timeout": 0, "missing": len(ids) - len(lines)}
            writer.finish(state, reason=None, message="", counts=counts, result=given_result, cost_usd=None, seconds=1.0, metrics=fields.get("metrics", {}), items=writer.sealed_items())
        return run

    def ask(self, *argv, status=0):
        """The document of --json."""
        done = run_cli(*argv, "--json")
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def text(self, *argv, status=0):
        done = run_cli(*argv)
        self.assertEqual((done.status, done.stderr), (status, ""), done.stdout)
        return done.stdout


def answer(item, score, status="ok", **fields):
    """A line of items.jsonl."""
    line = {"item": item, "trial": 1, "pass": 1, "attempt": 1, "status": status, "score": score, "metrics": {}, "cost_usd": None, "latency_ms": None}
    return {**line, **fields}


class Log(Reading):
    """The list, and the ranks."""

    def ranks(self, *argv):
        """[(id, rank, what keeps it from one)] in the order listed."""
        return [(row["id"], row["rank"], row["unranked"]) for row in self.ask("log", "--rank", *argv)["runs"]]

    def test_an_empty_store_lists_nothing(self):
        self.assertEqual(self.text("log"), "0 runs\n")
        self.assertEqual(self.ask("log", "--rank")["runs"], [])

    def test_runs_are_listed_newest_last_and_ranked_best_first_with_equal_ranks_for_equal_numbers(self):
        for scores in ((1, 0), (1, 1), (0, 0), (0, 1)):
            self.record(scores)
        self.assertEqual([row["id"] for row in self.ask("log")["runs"]], ["r0001", "r0002", "r0003", "r0004"])
        self.assertEqual(self.ranks(), [("r0002", 1, None), ("r0001", 2, None), ("r0004", 2, None), ("r0003", 4, None)])

    def test_what_is_limited_failed_unfinished_diagnostic_or_tainted_is_shown_and_never_ranked(self):
        self.record((1, 0))
        self.record((1, 1), limited=True)
        self.record((1, 1), diagnostic=True)
        for state in ("crashed", "timed_out", "incomplete", "tainted", "interrupted", "running"):
            self.record((1, 1), state)
        expected = [("r0001", 1, None), ("r0002", None, "limited"), ("r0003", None, "diagnostic")]
        states = ["crashed", "timed_out", "incomplete", "tainted", "interrupted", "interrupted"]  # nobody holds the last one
        self.assertEqual(self.ranks(), expected + [(f"r{number:04d}", None, state) for number, state in enumerate(states, 4)])
        text = self.text("log", "--rank")
        for word in ("limited", "diagnostic", "crashed", "timed out", "incomplete", "tainted", "interrupted"):
            self.assertIn(word, text)

    def test_a_run_that_is_held_is_running(self):
        self.record((1, 1), "running")
        with self.store.writing("r0001"):
            self.assertEqual(self.ranks(), [("r0001", None, "running")])

    def test_runs_scored_on_other_items_or_by_another_eval_have_no_rank_beside_the_newest(self):
        self.record((1, 1), hashes={"dataset": "sha256:other"})
        self.record((1, 1), hashes={"eval": "sha256:other"})
        self.record((1, 1), hashes={"system": "sha256:other"})
        self.record((0, 1))
        self.assertEqual(self.ranks(), [("r0004", 1, None), ("r0001", None, "other_dataset"), ("r0002", None, "other_eval"), ("r0003", None, "other_metric")])
        self.assertIn("scored by another eval", self.text("log", "--rank"))
        self.assertEqual(self.ranks("--metric", "accuracy", "--aggregation", "median")[1], ("r0004", 2, None), "a chosen aggregation is one for all")

    def test_what_is_unavailable_is_said_with_its_reason_and_is_not_zero(self):
        self.record((1, None), result={"status": "unavailable", "reason": "values_missing", "n": 1, "planned": 2})
        self.record((0, 0))
        self.assertEqual(self.ranks(), [("r0002", 1, None), ("r0001", None, "values_missing")])
        lines = self.text("log").splitlines()
        self.assertIn("accuracy unavailable: some items have no value", lines[0])
        self.assertIn("accuracy 0 ", lines[1])

    def test_lower_may_be_better(self):
        metric = {"name": "errors", "aggregation": "mean", "direction": "lower"}
        self.record((1, 1), metric=metric)
        self.record((0, 1), metric=metric)
        self.assertEqual(self.ranks()[0], ("r0002", 1, None))
        self.assertEqual(self.ranks("--direction", "higher")[0], ("r0001", 1, None))

    def test_the_metric_and_its_aggregation_are_chosen_on_the_command_line(self):
        times = [[120.0, 80.0, 200.0, 150.0], [90.0, 60.0, 300.0, 110.0]]
        for run in times:
            self.record((1,) * 4, lines=[answer(f"i{n}", 1, latency_ms=ms, metrics={"steps": ms / 10}) for n, ms in enumerate(run, 1)])
        chosen = ("--metric", "latency_ms", "--aggregation")
        found = {row["id"]: row["result"]["value"] for row in self.ask("log", *chosen, "percentile", "--percentile", "95")["runs"]}
        self.assertAlmostEqual(found["r0001"], 192.5)  # numpy.percentile(…, 95)
        self.assertAlmostEqual(found["r0002"], 271.5)
        self.assertEqual([row[:2] for row in self.ranks(*chosen, "percentile", "--percentile", "95")], [("r0001", 1), ("r0002", 2)])
        self.assertEqual([row[:2] for row in self.ranks(*chosen, "median")], [("r0002", 1), ("r0001", 2)])
        self.assertEqual([row[:2] for row in self.ranks("--metric", "steps")], [("r0002", 1), ("r0001", 2)], "means 13.75 and 14")
        self.assertEqual(self.ranks("--metric", "elegance"), [("r0001", None, "no_values"), ("r0002", None, "no_values")])

    def test_counts_are_added_up_and_ranked(self):
        for each in ([3, 1, 0], [2, 0, 2]):
            counts = dict(zip(("tp", "fp", "fn"), each, strict=True))
            self.record((1,), lines=[answer("i1", 1, metrics={"labels": counts})])
        chosen = ("--metric", "labels", "--aggregation")
        self.assertEqual([row[:2] for row in self.ranks(*chosen, "recall")], [("r0001", 1), ("r0002", 2)])
        self.assertEqual([row[:2] for row in self.ranks(*chosen, "precision")], [("r0002", 1), ("r0001", 2)])
        self.assertEqual([row[2] for row in self.ranks(*chosen, "mean")], ["not_numbers", "not_numbers"])
        self.assertEqual([row[2] for row in self.ranks("--aggregation", "f1")], ["no_values", "no_values"])

    def test_a_metric_that_the_eval_told_of_the_whole_run_is_taken_as_it_is(self):
        self.record((1, 0), metrics={"bleu": 31.5})
        self.record((1, 0), metrics={"bleu": None})
        found = [row["result"] for row in self.ask("log", "--metric", "bleu")["runs"]]
        self.assertEqual((found[0]["value"], found[1]["status"], found[1]["reason"]), (31.5, "unavailable", "not_finite"))

    def test_the_last_answer_to_an_item_counts_and_what_is_no_measurement_does_not(self):
        lines = [answer("i1", None, "timeout"), answer("i2", 1), answer("i1", 1, attempt=2), answer("i3", None, "infra_error")]
        self.record((1, 1, 1), "incomplete", lines=lines)
        found = self.ask("log", "--aggregation", "median")["runs"][0]["result"]
        self.assertEqual((found["value"], found["n"], found["planned"]), (1.0, 2, 3))

    def test_filters_limits_and_wrong_questions(self):
        self.record((1, 0), variant="a")
        self.record((1, 1), variant="b")
        self.record((0, 0), variant="b")
        self.assertEqual([row["id"] for row in self.ask("log", "--variant", "b")["runs"]], ["r0002", "r0003"])
        self.assertEqual([row["id"] for row in self.ask("log", "--limit", "1")["runs"]], ["r0003"])
        self.assertEqual([row["id"] for row in self.ask("log", "--rank", "--limit", "1")["runs"]], ["r0002"])
        self.assertIn("the newest 1 shown", self.text("log", "--limit", "1"))
        self.assertEqual(self.ask("log", "--system", "dem", status=2)["reason"], "no_system")
        for argv in (["--percentile", "95"], ["--aggregation", "percentile"], ["--aggregation", "percentile", "--percentile", "0"], ["--aggregation", "sum"], ["--limit", "-1"]):
            self.assertEqual(run_cli("log", *argv).status, 2, argv)

    def test_runs_of_several_systems_are_listed_and_not_ranked(self):
        self.record((1, 0))
        self.record((1, 0), system="other")
        self.assertEqual(len(self.ask("log")["runs"]), 2)
        self.assertIn("--system", self.ask("log", "--rank", status=2)["next"])

    def test_the_best_run_is_marked(self):
        self.record((1, 0))
        self.write_system("best_run: r0001\n")
        self.assertIn("best run", self.text("log"))
        self.assertTrue(self.ask("show", "r0001")["is_best"])

    def test_a_run_that_cannot_be_read_hides_no_other(self):
        self.record((1, 0))
        self.record((1, 1))
        write(self.run_folder("r0001") / "run.json", "{")
        self.assertEqual(self.ranks(), [("r0002", 1, None), ("r0001", None, "unreadable")])
        self.assertIn("cannot be read", self.text("log"))

    def test_files_that_no_run_writes_are_named_and_no_defect(self):
        """Every command that reads a run, over a field that is missing or of another kind."""
        for scores in ((1, 0), (1, 1)):
            self.record(scores)
        folder = self.run_folder("r0002")
        document, lines = read_json(folder / "run.json"), (folder / "items.jsonl").read_text()
        commands = (
            ["log"], ["log", "--rank"], ["log", "--metric", "latency_ms"], ["log", "--metric", "x", "--aggregation", "f1"], ["show", "r0002"],
            ["compare", "r0001", "r0002"], ["status"], ["resume", "r0002"], ["resume", "r0002", "--restart"],
        )  # fmt: skip

        def look(what):
            found = [run_cli(*argv) for argv in commands]
            self.assertEqual([(argv, done.stderr) for argv, done in zip(commands, found, strict=True) if done.status == 70], [], what)
            self.assertNotIn("Traceback", "".join(done.stdout + done.stderr for done in found), what)
            return found

        for odd in ({}, {**document, "id": "r0001"}, {"state": "completed"}):
            write(folder / "run.json", json.dumps(odd))
            self.assertIn("r0002", look(odd)[0].stdout)
        for name in kaizen.REQUIRED_RUN_FIELDS + ("result", "counts", "items"):
            for value in (5, "x", ["a"], {}):
                write(folder / "run.json", json.dumps({**document, "state": "crashed", name: value}))
                done = run_cli("show", "r0002")
                self.assertNotEqual(done.status, 70, (name, value, done.stderr))
        write(folder / "run.json", json.dumps({**document, "commit": 5}))
        look("commit")
        unsealed = {**{key: value for key, value in document.items() if key != "items"}, "state": "crashed"}
        write(folder / "run.json", json.dumps(unsealed))
        line = json.loads(lines.splitlines()[0])
        for odd in ({}, *({**line, name: value} for name in line for value in (None, "x", ["a"], {"a": 1}))):
            write(folder / "items.jsonl", lines + json.dumps(odd) + "\n")
            for argv in (["show", "r0002"], ["log", "--metric", "latency_ms"]):
                done = run_cli(*argv)
                self.assertNotEqual(done.status, 70, (odd, done.stderr))
        write(folder / "items.jsonl", lines + "{}\n")
        look("line")

    def test_answers_that_were_changed_after_the_end_are_refused_and_hide_no_other_run(self):
        for scores in ((1, 0), (1, 1)):
            self.record(scores)
        path = self.run_folder("r0002") / "items.jsonl"
        write(path, path.read_text().replace('"score":1', '"score":0'))
        for argv in (["show", "r0002"], ["compare", "r0001", "r0002"]):
            self.assertEqual(self.ask(*argv, status=5)["reason"], "journal_changed")
        rows = self.ask("log", "--metric", "latency_ms")["runs"]
        self.assertEqual([row["state"] for row in rows], ["completed", "unreadable"])

    def test_no_text_of_a_run_reaches_the_terminal_as_it_is(self):
        line = answer("i1" + HOSTILE, 0, output=HOSTILE, feedback={"why": HOSTILE}, reason=HOSTILE)
        metric = {"name": "m" + HOSTILE, "aggregation": "mean", "direction": "higher"}
        texts = {"title": HOSTILE, "description": HOSTILE, "hypothesis": HOSTILE}
        for _ in range(2):
            self.record((0,), names=["i1" + HOSTILE], lines=[line], variant="v" + HOSTILE, metric=metric, metrics={HOSTILE: 1.0}, **texts)
        for argv in (["log"], ["log", "--rank"], ["show", "r0001"], ["compare", "r0001", "r0002"], ["status"]):
            found = run_cli(*argv)
            self.assertNotIn("\x1b", found.stdout + found.stderr, argv)
            self.assertNotIn("‮", found.stdout + found.stderr, argv)
            self.assertNotIn("\nsecond line", found.stdout, argv)

    def test_two_thousand_runs_are_listed_in_half_a_second(self):
        run = self.run_folder(self.record((1,) * 50))
        document = json.loads((run / "run.json").read_text())
        for number in range(2, 2001):
            folder = run.with_name(f"r{number:04d}")
            folder.mkdir()
            (folder / "run.json").write_text(json.dumps({**document, "id": folder.name}))
        began = time.process_time()
        done = run_cli("log", "--json")
        seconds = time.process_time() - began
        self.assertEqual(json.loads(done.stdout)["count"], 2000)
        self.assertLess(seconds, 0.5)


class Show(Reading):
    """One run."""

    def test_the_worst_answers_come_first(self):
        self.many_items()
        lines = [answer("i1", 1), answer("i2", 0.5), answer("i3", 0, "fail_error", reason="out_of_range"), answer("i4", None, "timeout"), answer("i5", 0.2)]
        self.record((1,) * 6, "incomplete", lines=lines)
        found = self.ask("show", "r0001", "--failures", "9")
        self.assertEqual([line["item"] for line in found["failures"]], ["i3", "i4", "i6", "i5", "i2"])
        self.assertEqual(found["failures"][2]["status"], "missing")
        few = self.ask("show", "r0001", "--failures", "2")
        self.assertEqual((len(few["failures"]), few["failures_in_all"]), (2, 5))
        self.assertIn("i3  fail error (out_of_range)  score 0", self.text("show", "r0001"))

    def test_what_went_into_a_run_is_shown_and_what_is_not_known_is_said_so(self):
        self.record((1, 1), variant="v7", title="a title", hypothesis="if so", metrics={"bleu": 31.5}, separation="in_process")
        text = self.text("show", "r0001")
        for part in ("r0001: a title, completed", "variant v7", "if so", "accuracy 1 (mean of 2 of 2 items)", "bleu 31.5", "cost          not known", "could patch it", "every answer is as good as can be"):
            self.assertIn(part, text)
        self.assertIn(self.git("rev-parse", "HEAD")[:12], text)

    def test_a_run_that_was_broken_off_shows_what_there_is(self):
        self.record((1, 0, None), "running")
        found = self.ask("show", "r0001")
        self.assertEqual((found["run"]["state"], found["unranked"]), ("interrupted", "interrupted"))
        self.assertIn("accuracy 0.5 (mean of 2 of 3 items); not ranked: interrupted", self.text("show", "r0001"))

    def test_a_system_that_is_gone_hides_no_run(self):
        self.record((1, 0))
        shutil.rmtree(self.repo / "kaizen/systems/demo")
        self.assertEqual([line["item"] for line in self.ask("show", "r0001")["failures"]], ["i2", "i1"])
        self.assertEqual(self.ask("log", "--rank")["runs"][0]["rank"], 1)

    def test_counts_without_a_mistake_are_no_failure(self):
        metric = {"name": "labels", "aggregation": "f1", "direction": "higher"}
        lines = [answer(f"i{n}", None, metrics={"labels": dict(zip(("tp", "fp", "fn"), each, strict=True))}) for n, each in enumerate(([1, 0, 0], [0, 1, 0], [0, 2, 1]), 1)]
        self.record((1,) * 3, lines=lines, metric=metric)
        self.assertEqual([line["item"] for line in self.ask("show", "r0001")["failures"]], ["i3", "i2"])

    def test_long_outputs_are_cut(self):
        self.record((0,), lines=[answer("i1", 0, output="x" * 100_000)])
        self.assertLess(len(self.text("show", "r0001")), 3000)
        self.assertLess(len(self.ask("show", "r0001")["failures"][0]["output"]), 1100)

    def test_an_item_that_went_into_the_holdout_since_is_not_named_any_more(self):
        for scores in ((0, 1, 0, 1), (1, 0, 1, 1)):
            lines = [answer(f"i{n}", score, output=f"i{n}", feedback=f"i{n}", trace_id=f"i{n}") for n, score in enumerate(scores, 1)]
            self.record(scores, lines=lines)
        items = [{"id": f"i{n}", "input": n, "expected": n, **({"split": "holdout"} if n < 3 else {})} for n in range(1, 5)]
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", items)
        shown, compared = self.ask("show", "r0001"), self.ask("compare", "r0001", "r0002")
        self.assertEqual([line["item"] for line in shown["failures"]], [None, "i3"])
        self.assertEqual(compared["moved"], {"gained": {"count": 2, "items": ["i3"], "unnamed": 1}, "lost": {"count": 1, "items": [], "unnamed": 1}})
        for argv in (["show", "r0001"], ["compare", "r0001", "r0002"], ["log", "--rank"], ["status"]):
            self.assertNotRegex(self.text(*argv), r"\bi[12]\b")
            self.assertNotRegex(run_cli(*argv, "--json").stdout, r"\bi[12]\b")

    def test_a_run_that_is_not_there(self):
        self.record()
        self.assertEqual(self.ask("show", "r0009", status=2)["reason"], "no_run")


class Compare(Reading):
    """Two runs, item by item."""

    def test_the_figures_are_those_of_scipy(self):
        self.many_items()
        self.record(BEFORE)
        self.record(AFTER)
        found = self.ask("compare", "r0001", "r0002")
        self.assertEqual((found["n"], found["better"], found["worse"], found["trials"]), (12, 5, 1, {"a": 1, "b": 1}))
        self.assertAlmostEqual(found["gain"], 0.3333333333333333)
        self.assertAlmostEqual(found["se"], 0.18802535827258873)
        self.assertAlmostEqual(found["p"]["two_sided"], 0.21875)
        self.assertAlmostEqual(found["p"]["better"], 0.109375)
        self.assertLess(found["interval"][0], 0)
        self.assertEqual(found["moved"]["lost"], {"count": 1, "items": ["i6"], "unnamed": 0})
        self.assertIn("0.3333 better than r0001 on 12 shared items (1 answer each)", found["message"])
        self.assertIn("chance alone could do that", found["message"])
        self.assertIn("5 better, 1 worse, 6 equal", self.text("compare", "r0001", "r0002"))

    def test_a_gain_is_what_is_better_also_where_lower_is_and_beyond_one(self):
        metric = {"name": "ms", "aggregation": "mean", "direction": "lower"}
        self.record((120, 80, 200, 150, 90, 60, 300, 110), metric=metric)
        self.record((100, 85, 150, 120, 70, 65, 210, 100), metric=metric)
        found = self.ask("compare", "r0001", "r0002")
        self.assertAlmostEqual(found["gain"], 26.25)
        self.assertAlmostEqual(found["se"], 11.130315744462443)
        self.assertAlmostEqual(found["p"]["two_sided"], 0.0390625)
        self.assertTrue(found["interval"][0] < 26.25 < found["interval"][1] < 240)
        self.assertIn("26.25 better", found["message"])
        back = self.ask("compare", "r0002", "r0001")
        self.assertAlmostEqual(back["gain"], -26.25)
        self.assertIn("26.25 worse", back["message"])

    def test_runs_that_were_not_scored_alike_are_not_comparable_and_the_hash_is_named(self):
        self.record((1, 0))
        self.record((1, 1), hashes={"dataset": "sha256:" + "f" * 64})
        self.record((1, 1), hashes={"eval": "sha256:" + "9" * 64, "locked": {"eval.py": "b" * 64}})
        self.record((1, 1), hashes={"system": "sha256:" + "8" * 64})
        self.record((1, 1), system="other")
        for run, reason in ((2, "other_dataset"), (3, "other_eval"), (4, "other_metric"), (5, "other_system"), (1, "same_run")):
            found = self.ask("compare", "r0001", f"r{run:04d}", status=5)
            self.assertEqual((found["reason"], found["comparable"], "gain" in found), (reason, False, False))
        self.assertIn("dddddddddddd and ffffffffffff", self.text("compare", "r0001", "r0002", status=5))
        self.assertIn("locked files that differ: eval.py", self.text("compare", "r0001", "r0003", status=5))

    def test_a_run_that_measured_no_one_commit_or_has_no_end_is_not_comparable(self):
        self.record((1, 0))
        for number, state in enumerate(("tainted", "crashed", "timed_out", "interrupted"), 2):
            self.record((1, 1), state)
            self.assertEqual(self.ask("compare", "r0001", f"r{number:04d}", status=5)["reason"], state)

    def test_what_one_run_alone_has_measured_is_left_out_and_said(self):
        self.record((1, 0, 1, 0))
        self.record((1, 1, None, None), "incomplete")
        found = self.ask("compare", "r0001", "r0002")
        self.assertEqual((found["n"], found["unpaired"]), (2, {"a": 2, "b": 0}))
        self.assertIn("2 items measured by one run only", " ".join(found["notes"]))
        self.assertIn("what is missing may be what went badly", " ".join(found["notes"]))

    def test_nothing_in_common_is_no_figure_and_no_defect(self):
        self.record((1, None), "incomplete")
        self.record((None, 1), "incomplete")
        found = self.ask("compare", "r0001", "r0002")
        self.assertEqual((found["n"], found["gain"], found["se"], found["interval"], found["p"]), (0, None, None, None, None))
        self.record((0, None), "incomplete")
        one = self.ask("compare", "r0001", "r0003")
        self.assertEqual((one["n"], one["gain"], one["interval"]), (1, -1.0, None))
        self.assertIn("one alone says nothing about chance", one["message"])

    def test_answers_of_several_passes_are_averaged_and_clusters_are_the_unit(self):
        items = [{"id": f"i{n}", "input": n, "expected": n, "cluster": "a" if n < 3 else "b"} for n in range(1, 5)]
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", items)
        dataset = kaizen.load_items(self.workspace, kaizen.load_system(self.workspace, "demo")).fingerprint
        for scores in ((0, 0, 0, 0), (1, 1, 1, 0)):
            lines = [answer(f"i{n}", score if number == 1 else 0, **{"pass": number}) for number in (1, 2) for n, score in enumerate(scores, 1)]
            self.record(scores, lines=lines, passes=2, hashes={"dataset": dataset})
        found = self.ask("compare", "r0001", "r0002")
        self.assertEqual((found["unit"], found["n"], found["items"], found["trials"]), ("cluster", 2, 4, {"a": 2, "b": 2}))
        self.assertAlmostEqual(found["gain"], (0.5 + 0.25) / 2)

    def test_cost_and_time_are_ratios_where_both_runs_know_them(self):
        self.record((1, 1), lines=[answer("i1", 1, cost_usd=0.02, latency_ms=100), answer("i2", 1, cost_usd=0.02)])
        self.record((1, 1), lines=[answer("i1", 1, cost_usd=0.03, latency_ms=50), answer("i2", 1, cost_usd=0.01, latency_ms=9)])
        found = self.ask("compare", "r0001", "r0002")
        self.assertAlmostEqual(found["cost_usd"]["ratio"], 1.0)
        self.assertEqual((found["latency_ms"]["ratio"], found["latency_ms"]["n"]), (0.5, 1))
        self.record((1, 1), lines=[answer("i1", 1, cost_usd=0.0), answer("i2", 1, cost_usd=0.0)])
        self.assertIsNone(self.ask("compare", "r0003", "r0001")["cost_usd"]["ratio"])

    def test_the_same_files_measured_twice_show_noise(self):
        self.record((1, 0, 1), variant="same")
        self.record((1, 1, 1), variant="same")
        self.assertIn("any difference is noise", self.text("compare", "r0001", "r0002"))

    def test_counts_are_compared_by_the_items_without_a_mistake(self):
        metric = {"name": "labels", "aggregation": "recall", "direction": "higher"}
        for fn in ((1, 1, 0), (0, 1, 0)):
            lines = [answer(f"i{n}", None, metrics={"labels": {"tp": 1, "fp": 5, "fn": each}}) for n, each in enumerate(fn, 1)]
            self.record((1, 1, 1), lines=lines, metric=metric)
        found = self.ask("compare", "r0001", "r0002")
        self.assertEqual((found["paired_on"], found["better"]), ("items without a mistake", 1))
        self.assertEqual((found["results"]["a"]["value"], found["results"]["b"]["value"]), (0.6, 0.75))


class Status(Reading):
    """What is going on, and whether to go on."""

    def test_a_clean_tree_with_nothing_at_work_is_ready(self):
        self.record()
        found = self.ask("status")
        self.assertEqual((found["reason"], found["should_continue"], found["tree"]["dirty"]), ("ready", True, []))
        self.assertEqual(found["systems"], [{"id": "demo", "best_run": None, "runs": 1, "completed": 1, "last": "r0001", "problem": None}])

    def test_a_live_run_is_named_with_its_process_and_progress(self):
        self.record((1, None, None), "running", pid={"pid": 4711, "started": "2026-12-01T00:00:00Z"})
        with self.store.writing("r0001"):
            found = self.ask("status")
            self.assertEqual((found["reason"], found["next"]), ("live_run", "wait until it has ended"))
            live = found["live"][0]
            self.assertEqual((live["id"], live["answered"], live["planned"], live["pid"]["pid"]), ("r0001", 1, 3, 4711))
            self.assertIn("r0001 (1 of 3, pid 4711)", self.text("status"))

    def test_what_can_be_resumed_is_named_until_its_variant_has_completed(self):
        self.record((1, None), "running", variant="a")
        self.record((1, None), "tainted", variant="b")
        self.record((1, None), "crashed", variant="c")
        self.record((1, 1), variant="c")
        found = self.ask("status")
        self.assertEqual([each["command"] for each in found["resumable"]], ["kaizen resume r0002 --restart", "kaizen resume r0001"])
        self.assertEqual((found["reason"], found["next"]), ("resumable", "kaizen resume r0002 --restart"))
        self.git("commit", "-q", "--allow-empty", "-m", "on")
        found = self.ask("status")
        self.assertEqual((found["reason"], [each["is_here"] for each in found["resumable"]]), ("ready", [False, False]))

    def test_dirty_paths_are_named_with_their_kind(self):
        write(self.repo / "agent.py", "print(2)\n")
        write(self.repo / "new\x1b.txt", "")
        found = self.ask("status")
        self.assertEqual(found["tree"]["dirty"], [{"path": "agent.py", "kind": "unstaged"}, {"path": "new\\x1b.txt", "kind": "untracked"}])
        self.assertEqual((found["reason"], found["code"]), ("dirty_tree", 0))
        self.assertNotIn("\x1b", self.text("status"))

    def test_a_sign_or_a_broken_record_stops(self):
        write(self.repo / "kaizen/.kaizen/STOP", "")
        self.assertEqual((self.ask("status", status=1)["reason"], self.ask("status", status=1)["should_continue"]), ("stopped", False))
        (self.repo / "kaizen/.kaizen/STOP").rename(self.repo / "kaizen/.kaizen/PAUSE")
        self.assertEqual(self.ask("status", status=3)["reason"], "paused")
        events = self.run_folder(self.record()) / "events.jsonl"
        events.write_text(events.read_text().replace("planned", "plannec", 1))
        found = self.ask("status", status=3)
        self.assertEqual(found["reason"], "integrity")
        self.assertIn("events.jsonl:1", found["problems"][0])

    def test_a_live_run_whose_answers_cannot_be_read_needs_a_person(self):
        self.record((1, None), "running")
        with self.store.writing("r0001"):
            write(self.run_folder() / "items.jsonl", '{"no": "answer"}\n')
            found = self.ask("status", status=3)
            self.assertEqual((found["reason"], found["live"][0]["answered"]), ("integrity", None))
            self.assertIn("items.jsonl:1", found["problems"][0])
            self.assertIn("at work: r0001 (? of 2)", self.text("status", status=3))

    def test_a_result_put_into_run_json_by_hand_is_told_by_none_and_stops(self):
        for scores in ((0, 1), (1, 1)):
            self.record(scores)
        path = self.run_folder() / "run.json"
        write(path, path.read_text().replace('"value": 0.5', '"value": 1.5'))
        listed = [(row["id"], row["rank"], row["unranked"]) for row in self.ask("log", "--rank")["runs"]]
        self.assertEqual(listed, [("r0002", 1, None), ("r0001", None, "unreadable")])
        self.assertNotIn("1.5", self.text("log"))
        for words in (["show", "r0001"], ["compare", "r0001", "r0002"], ["gate", "--baseline", "run:r0001", "--candidate", "run:r0002"]):
            found = self.ask(*words, status=5)
            self.assertEqual(found["reason"], "record_changed", words)
            self.assertIn("runs/r0001/run.json", found["message"])
        found = self.ask("status", status=3)
        self.assertEqual(found["reason"], "integrity")
        self.assertIn("run.json: is not what Kaizen wrote: other result than when the run ended", found["problems"][0])

    def test_a_chain_that_is_broken_before_its_end_is_found_by_whoever_makes_something_of_the_run(self):
        for scores in ((0, 1), (1, 1)):
            self.record(scores)
        path = self.run_folder() / "events.jsonl"
        path.write_bytes(path.read_bytes().replace(b"planned", b"plannec", 1))
        for words in (["show", "r0001"], ["compare", "r0001", "r0002"], ["gate", "--baseline", "run:r0001", "--candidate", "run:r0002"]):
            self.assertEqual(self.ask(*words, status=5)["reason"], "broken_chain", words)

    def test_no_repository_and_no_workspace_are_told(self):
        shutil.rmtree(self.repo / ".git")
        self.assertEqual(self.ask("status")["reason"], "not_a_repository")
        shutil.rmtree(self.repo / "kaizen")
        self.assertEqual(self.ask("status", status=2)["reason"], "no_workspace")


class View(Reading):
    """`kaizen create view`."""

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def page(self, *argv):
        return subprocess.run(["node", *argv], capture_output=True, text=True, check=True).stdout

    def test_the_pages_work_as_they_are_made_and_what_items_say_stays_text(self):
        evil = "<script>alert(1)</script>"
        for kind in ("trace", "dataset-item"):
            self.assertEqual(self.ask("create", "view", "demo", "--type", kind)["file"], f"kaizen/systems/demo/{kind}.js")
        self.record((0,), lines=[answer("i1" + evil, 0, output={evil: evil}, feedback=evil, steps=[{"kind": "tool", "name": evil, "args": {evil: 1}}])])
        items = [{"id": evil, "input": {"q": evil}, "expected": evil, "tags": [evil]}, {"id": "canary", "input": "canary", "split": "holdout"}]
        write_lines("items.jsonl", items)
        pages = [self.page("kaizen/systems/demo/trace.js", str(self.run_folder() / "items.jsonl")), self.page("kaizen/systems/demo/dataset-item.js", "items.jsonl")]
        for page in pages:
            self.assertNotIn("<script", page)
            self.assertIn("&#60;script&#62;", page)
        self.assertNotIn("canary", pages[1])
        self.assertIn("1 of the holdout", pages[1])

    def test_it_never_overwrites_and_decides_no_score(self):
        before = kaizen.locked_files(self.workspace, kaizen.load_system(self.workspace, "demo"))
        self.ask("create", "view", "demo", "--type", "trace")
        self.assertEqual(self.ask("create", "view", "demo", "--type", "trace", status=5)["reason"], "existing_file")
        self.assertEqual(kaizen.locked_files(self.workspace, kaizen.load_system(self.workspace, "demo")), before)
        self.assertEqual(self.ask("create", "view", "none", "--type", "trace", status=2)["reason"], "no_system")
        self.assertEqual(run_cli("create", "view", "demo", "--type", "page").status, 2)


if __name__ == "__main__":
    unittest.main()
