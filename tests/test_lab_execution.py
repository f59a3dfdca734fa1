"""Runs of the lab: how they end, what is kept of them, and that a crash or an edit fools nobody."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import support
from lab_fixture import GOOD, ITEMS, Lab
from support import read_json, write

import kaizen

BAD_THEN = "import pathlib; seen = pathlib.Path(os.environ['HOME'], 'seen'); first = not seen.exists(); seen.touch()\n"


def is_running(pid):
    """True for a process that has not ended, whether or not anybody has reaped it (a container's init may never)."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] not in ("", "Z")


class Ends(Lab):
    """The six ends of a run."""

    def test_a_run_in_which_all_is_answered_is_completed_and_names_its_source(self):
        head = self.git("rev-parse", "HEAD")
        found = self.run_demo("--title", "a title", "--hypothesis", "if")
        self.assertEqual((found["state"], found["verdict"], found["commit"]["hash"]), ("completed", "unjudged", head))
        self.assertEqual(found["tree"], self.git("rev-parse", "HEAD^{tree}"))
        self.assertEqual(found["result"], {"status": "available", "value": 1.0, "n": 4, "planned": 4})
        self.assertEqual(found["counts"], {"ok": 4, "fail_error": 0, "infra_error": 0, "timeout": 0, "missing": 0})
        self.assertEqual(found["population"], {"dataset_size": 4, "selected_item_ids": ["i1", "i2", "i3", "i4"]})
        self.assertEqual((found["title"], found["hypothesis"], found["limited"]), ("a title", "if", False))
        self.assertEqual([event["type"] for event in self.store.events("r0001")], ["planned", "started", "ended"])
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_an_exit_code_a_signal_or_an_end_without_the_word_is_a_crash_and_no_result_is_lost(self):
        table = {
            "exit_code": "ok(items[0])\nsys.exit(3)\n",
            "signal": "ok(items[0])\nos.kill(os.getpid(), 9)\n",
            "no_end": "for item in items:\n    ok(item)\n",
        }
        for run, (reason, text) in enumerate(table.items(), 1):
            self.eval(text)
            found = self.run_demo(status=4)
            self.assertEqual((found["state"], found["reason"]), ("crashed", reason))
            self.assertEqual(len(self.lines(f"r{run:04d}")), 4 if reason == "no_end" else 1)

    def test_a_crash_names_the_file_that_has_what_was_printed(self):
        self.eval("print('why', file=sys.stderr)\nsys.exit(1)\n")
        done = support.run_cli("run", "--system", "demo", "--variant", "v")
        name = done.stdout.partition("what the eval printed: ")[2].split()[0]
        self.assertEqual(Path(name).read_text(), "why\n")

    def test_an_item_not_asked_for_or_twice_is_a_crash(self):
        table = {
            "unasked_item": "say('item', id='other', status='ok', score=1)\ntime = __import__('time').sleep(60)\n",
            "repeated_item": "ok(items[0])\nok(items[0], 0)\n__import__('time').sleep(60)\n",
        }
        for reason, text in table.items():
            self.eval(text)
            began = time.monotonic()
            found = self.run_demo(status=4)
            self.assertEqual((found["state"], found["reason"]), ("crashed", reason))
            self.assertLess(time.monotonic() - began, 30)
        self.assertEqual([line["score"] for line in self.lines("r0002")], [1], "the first answer stands")

    def test_what_is_no_event_is_a_crash_that_says_where_and_never_quotes_it(self):
        self.eval("raw('secret text')\nsay('end')\n")
        found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["reason"]), ("crashed", "protocol"))
        self.assertIn("event 1", found["message"])
        self.assertNotIn("secret", found["message"])

    def test_each_way_to_break_the_protocol_is_found(self):
        workspace = kaizen.find_workspace()
        system, store = kaizen.load_system(workspace, "demo"), self.store
        case = kaizen.load_items(workspace, system).cases["i1"]
        run = store.create({"system": "demo", "variant": "v", "hashes": {"locked": {}}})
        item = {"event": "item", "id": "i1", "status": "ok", "score": 1}
        table = (
            "[1]",
            '{"event": "itme"}',
            '{"no": 1}',
            '{"event": ["end"]}',
            json.dumps({**item, "score": "1"}),
            json.dumps({**item, "score": None}),
            json.dumps({**item, "score": True}),
            json.dumps({**item, "metrics": {"a": "secret text"}}),
            json.dumps({**item, "metrics": {"a": {"tp": 1, "fp": -1, "fn": 0}}}),
            json.dumps({**item, "status": "secret"}),
            json.dumps({**item, "trial": 0}),
            json.dumps({**item, "cost_usd": -1}),
            json.dumps({**item, "latency_ms": "fast"}),
            '{"event": "end"}\n{"event": "end"}',
            "[" * 100_000,
            '{"event": "item", "id": "i1", "id": "i1", "status": "ok", "score": 1}',
            "\n".join(json.dumps({"event": "metric", "name": str(number), "value": 1}) for number in range(101)),
        )
        with store.writing(run) as writer:
            limits = kaizen.Limits(60, None, 60)
            session = kaizen.RunSession(workspace, system, writer, mock.Mock(), mock.Mock(), limits, {}, [])
            for text in table:
                session.begin([kaizen.AskedItem("i1", 1, 1, 0, 1, case)])
                lines = kaizen.EventLines(session)
                for start in range(0, len(text), 7919):  # in blocks that end anywhere
                    lines.write(text[start : start + 7919].encode())
                lines.close()
                self.assertIsNotNone(lines.fault, text[:80])
                self.assertEqual(lines.fault.reason, "protocol", text[:80])
                self.assertNotIn("secret text", lines.fault.message)
            session.close()
        self.assertEqual(self.lines(), [])

    def test_an_event_without_end_is_cut_short(self):
        self.eval("data = b'x' * (1 << 20)\nfor _ in range(40):\n    os.write(out, data)\n")
        found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["reason"]), ("crashed", "event_too_large"))

    def test_silence_ends_the_group_as_timed_out_and_events_keep_it_going(self):
        self.eval("import time\nok(items[0])\ntime.sleep(60)\n", silence_seconds=0.3)
        began = time.monotonic()
        found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["reason"], found["counts"]["ok"]), ("timed_out", "silence", 1))
        self.assertLess(time.monotonic() - began, 30)

    def test_a_run_may_not_take_longer_than_its_time_out_however_much_is_heard(self):
        self.eval("import time\nfor _ in range(200):\n    say('log', message='x')\n    time.sleep(0.02)\n", run_timeout_seconds=0.3)
        found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["reason"]), ("timed_out", "run_timeout"))

    def test_a_program_that_cannot_be_started_is_a_crash_with_its_name(self):
        self.write_system()
        path = self.repo / "kaizen/systems/demo/system.md"
        write(path, path.read_text().replace(json.dumps(sys.executable), "no-such-program"))
        self.commit()
        found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["reason"]), ("crashed", "cannot_start"))
        self.assertIn("no-such-program", found["message"])

    def test_a_signal_makes_it_interrupted_and_resume_completes_it(self):
        self.eval(f"{BAD_THEN}import time, signal\nok(items[0])\nif first:\n    os.kill({os.getpid()}, signal.SIGTERM)\n    time.sleep(60)\n"
                  "for item in items[1:]:\n    ok(item)\nsay('end')\n")
        found = self.run_demo(status=130)
        self.assertEqual((found["state"], found["reason"], found["next"]), ("interrupted", "stopped", "kaizen resume r0001"))
        found = self.resume()
        self.assertEqual((found["state"], found["counts"]["ok"], len(self.lines())), ("completed", 4, 4))


class Items(Lab):
    """What an item's answer counts as."""

    def test_nan_infinite_and_out_of_range_scores_are_failures_with_a_reason_and_never_zero(self):
        self.eval(
            "for item, score in zip(items, ['NaN', '-Infinity', '1e999', '1.5']):\n"
            "    raw('{\"event\": \"item\", \"id\": \"%s\", \"status\": \"ok\", \"score\": %s}' % (item['id'], score))\nsay('end')\n",
            "minimum: 0.25\n",
        )
        found = self.run_demo()
        self.assertEqual([line["reason"] for line in self.lines()], ["not_finite"] * 3 + ["out_of_range"])
        self.assertEqual({(line["status"], line["score"]) for line in self.lines()}, {("fail_error", 0.25)}, "the declared worst")
        self.assertEqual((found["result"]["value"], found["counts"]["fail_error"]), (0.25, 4))

    def test_nan_beside_the_score_makes_the_item_a_failure_and_is_not_kept(self):
        self.eval("for item in items:\n    ok(item, metrics={'a': float('nan'), 'b': 2}, output=[float('inf')], latency_ms=3)\nsay('end')\n")
        self.run_demo()
        line = self.lines()[0]
        self.assertEqual((line["status"], line["reason"], line["metrics"], line["latency_ms"]), ("fail_error", "not_finite", {"b": 2}, 3))
        self.assertNotIn("output", line)

    def test_numbers_beyond_every_float_and_half_characters_are_no_defect_and_can_be_read_again(self):
        self.eval(
            "for item in items[1:]:\n    ok(item, metrics={'a': 10**400, 'b': 2}, latency_ms=10**400, cost_usd=1e308)\n"
            "ok(items[0], output='\\ud800', feedback={'\\udfff': 1}, trace_id='\\udc00', cost_usd=1e308)\n"
            "say('metric', name='\\ud800', value=10**400)\nsay('log', message='\\ud800')\nsay('end')\n"
        )
        found = self.run_demo("--title", "t\udcff", "--description", "\udcff", "--hypothesis", "\udcff")
        self.assertEqual((found["counts"]["ok"], found["counts"]["fail_error"], found["cost_usd"]), (1, 3, None))
        self.assertEqual((found["metrics"], found["title"]), ({"\ufffd": None}, "t\ufffd"))
        self.assertEqual((self.lines()[0]["metrics"], self.lines()[3]["output"]), ({"b": 2}, "\ufffd"))
        for argv in (["show", "r0001"], ["log"], ["log", "--metric", "latency_ms"], ["log", "--metric", "cost_usd", "--rank"]):
            done = support.run_cli(*argv)
            self.assertEqual((done.status, done.stderr), (0, ""), argv)

    def test_a_failure_of_the_system_scores_the_worst_value_of_the_direction(self):
        text = "for item in items:\n    say('item', id=item['id'], status='fail_error')\nsay('end')\n"
        table = {"": 0, "direction: lower\n": 1, "direction: lower\nmaximum: none\nworst: 300\n": 300}
        for further, worst in table.items():
            self.eval(text, further)
            self.assertEqual(self.run_demo()["result"]["value"], worst)

    def test_infrastructure_errors_and_time_outs_are_asked_for_again_twice_and_only_they(self):
        text = (
            "import pathlib\nlog = pathlib.Path(os.environ['HOME'], 'asked')\n"
            "times = len(log.read_text().splitlines()) if log.exists() else 0\n"
            "with log.open('a') as stream:\n    print(*[item['id'] for item in items], file=stream)\n"
            "for item in items:\n"
            "    if item['id'] == 'i1' or item['id'] == 'i2' and times < 2:\n"
            "        say('item', id=item['id'], status='infra_error' if item['id'] == 'i1' else 'timeout')\n"
            "    else:\n        ok(item)\nsay('end')\n"
        )
        self.eval(text)
        found = self.run_demo()
        self.assertEqual(found["cost_usd"], None)
        asked = (Path(os.environ["HOME"]) / "asked").read_text().splitlines()
        self.assertEqual(asked, ["i1 i2 i3 i4", "i1 i2", "i1 i2"])
        self.assertEqual((found["state"], found["counts"]["ok"], found["counts"]["infra_error"]), ("completed", 3, 1))
        self.assertEqual(found["result"], {"status": "available", "value": 1.0, "n": 3, "planned": 4})
        self.assertEqual([line["attempt"] for line in self.lines() if line["item"] == "i1"], [1, 2, 3])

    def test_more_missing_than_one_or_two_per_cent_make_it_incomplete(self):
        items = [{"id": f"n{number}", "input": 1} for number in range(200)]
        for missing, state in ((4, "completed"), (5, "incomplete")):
            self.eval(f"for item in items[{missing}:]:\n    ok(item)\nsay('end')\n", items=items)
            found = self.run_demo(status=0 if state == "completed" else 4)
            self.assertEqual((found["state"], found["counts"]["missing"]), (state, missing))
        self.eval("for item in items[1:]:\n    ok(item)\nsay('end')\n", items=items[:4])
        self.assertEqual(self.run_demo()["state"], "completed", "one may always be missing")

    def test_a_run_that_measured_nothing_is_not_completed_and_has_no_result(self):
        self.eval("say('end')\n", items=[{"id": "only", "input": 1}])
        found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["result"]["status"], found["reason"]), ("incomplete", "unavailable", "too_many_missing"))

    def test_an_incomplete_run_asks_again_for_what_is_missing(self):
        self.eval(f"{BAD_THEN}for item in items[2 if first else 0:]:\n    ok(item)\nsay('end')\n")
        self.assertEqual(self.run_demo(status=4)["state"], "incomplete")
        self.assertEqual(self.resume()["state"], "completed")
        self.assertEqual(sorted(line["item"] for line in self.lines()), ["i1", "i2", "i3", "i4"])

    def test_counts_of_a_classification_add_up_and_an_item_without_them_is_a_crash(self):
        counts = [(1, 0, 0), (0, 1, 0), (2, 0, 1), (0, 0, 0)]
        self.eval(
            f"for item, (tp, fp, fn) in zip(items, {counts}):\n"
            "    say('item', id=item['id'], status='ok', metrics={'accuracy': {'tp': tp, 'fp': fp, 'fn': fn}})\nsay('end')\n",
            "aggregation: precision\n",
        )
        self.assertEqual(self.run_demo()["result"]["value"], 0.75)  # 3 of 4 alarms were right
        self.eval(GOOD)
        self.assertEqual(self.run_demo(status=4)["reason"], "protocol")

    def test_only_the_first_items_are_asked_with_max_items_and_seeds_are_those_of_the_full_run(self):
        self.eval("for item in items:\n    ok(item, output=item['seed'])\nsay('end')\n")
        self.run_demo()
        found = self.run_demo("--max-items", "2", "--diagnostic")
        self.assertEqual((found["limited"], found["diagnostic"], found["population"]["selected_item_ids"]), (True, True, ["i1", "i2"]))
        seeds = [line["output"] for line in self.lines()]
        self.assertEqual([line["output"] for line in self.lines("r0002")], seeds[:2])
        self.assertEqual(len(set(seeds)), 4)
        for text in ("0", "2147483648", "-1", "1.5", "²"):
            self.assertEqual(support.run_cli("run", "--system", "demo", "--variant", "v", f"--max-items={text}").status, 2, text)
        self.assertEqual(self.run_demo("--max-items", str(2**31 - 1))["limited"], False)

    def test_holdout_cases_are_never_asked_and_only_counted(self):
        items = [{"id": "open", "input": 1, "split": "development"}, {"id": "canary-7", "input": "canary-7", "split": "holdout"}]
        self.eval(GOOD, items=items)
        done = support.run_cli("run", "--system", "demo", "--variant", "v")
        self.assertIn("1 item of the holdout left out", done.stdout)
        self.assertNotIn("canary", done.stdout + done.stderr)
        self.eval("sys.exit(1)\n")
        for argv in (("run", "--system", "demo", "--variant", "v"), ("resume", "r0002"), ("resume", "r0002", "--restart", "--json")):
            done = support.run_cli(*argv)
            self.assertEqual(done.status, 4)
            self.assertNotIn("canary", done.stdout + done.stderr)
        for path in self.run_folder().rglob("*"):
            if path.is_file() and "locked" not in path.parts:
                self.assertNotIn(b"canary", path.read_bytes(), path)


class Surroundings(Lab):
    """What an eval gets, and what it may do to us."""

    def test_the_eval_is_the_committed_copy_in_the_variants_tree_without_gits_variables(self):
        self.eval("ok(items[0], output=[__file__, os.getcwd(), sorted(k for k in os.environ if k[:4] == 'GIT_' and k[4:10] not in ('AUTHOR', 'COMMIT', 'CEILIN', 'CONFIG')), os.environ['KAIZEN_RUN']])\n" + GOOD.replace("items", "items[1:]"))
        with mock.patch.dict(os.environ, {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "x", "GIT_WORK_TREE": "/"}):
            self.run_demo()
        file, folder, variables, run = self.lines()[0]["output"]
        self.assertEqual(file, str(self.run_folder() / "locked/kaizen/systems/demo/eval.py"))
        self.assertEqual((folder, variables, run), (str(self.repo), [], "r0001"))

    def test_huge_output_is_kept_up_to_a_limit_and_stops_nothing(self):
        self.eval("for _ in range(20):\n    os.write(1, b'x' * (1 << 20))\n    os.write(2, b'y' * (1 << 20))\n" + GOOD)
        self.run_demo()
        for name in ("out.log", "err.log"):
            data = (self.run_folder() / name).read_bytes()
            self.assertEqual(data[8 << 20 :], b"\n[kaizen: 12,582,912 bytes more left out]\n")

    @unittest.skipUnless(os.path.isdir("/proc"), "only /proc tells of a process that left the group")
    def test_grandchildren_that_outlive_the_eval_neither_hold_the_run_up_nor_live_on(self):
        self.eval(
            "import subprocess\n"
            "kept = [subprocess.Popen(['sleep', '60'], pass_fds=[out], start_new_session=new) for new in (False, True)]\n"
            "for item in items:\n    ok(item, output=[each.pid for each in kept])\nsay('end')\n"
        )
        began = time.monotonic()
        self.run_demo()
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual([pid for pid in self.lines()[0]["output"] if is_running(pid)], [])

    def test_secrets_are_masked_before_anything_is_written(self):
        key = "AKIA" + "IOSFODNN7EXAMPLB"
        self.eval(f"ok(items[0], output={{'text': {key!r}}}, feedback={key!r})\nprint({key!r})\nsay('log', message={key!r})\n" + GOOD.replace("items", "items[1:]"))
        self.run_demo()
        for path in self.run_folder().rglob("*"):
            if path.is_file() and "locked" not in path.parts:
                self.assertNotIn(key.encode(), path.read_bytes(), path)
        self.assertEqual([hit["pointer"] for hit in self.lines()[0]["redacted"]], ["/output/text", "/feedback"])

    def test_hostile_texts_reach_no_terminal(self):
        bell = "\x1b]0;x\x07\u202e"
        self.eval(f"say('log', message={bell!r})\nsay('metric', name={bell!r}, value=1)\nfor item in items:\n    ok(item, output={bell!r})\nsay('end')\n")
        done = support.run_cli("run", "--system", "demo", "--variant", "v", "--title", bell, "--description", bell)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertFalse(set(done.stdout + done.stderr) & {"\x1b", "\x07", "\u202e"})
        self.assertNotIn(b"\x1b", (self.run_folder() / "out.log").read_bytes())
        self.assertEqual(support.run_cli("run", "--system", "demo", "--variant", bell).status, 2)
        hostile = support.run_cli("resume", bell)
        self.assertEqual(hostile.status, 2)
        self.assertNotIn("\x1b", hostile.stderr)

    def test_an_eval_in_another_language_is_as_good(self):
        text = (
            '#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in --out-fd) fd=$2;; --request) request=$2;; esac; shift 2; done\n'
            'exec 3>/dev/fd/$fd\n'
            'for id in i1 i2 i3 i4; do echo "{\\"event\\": \\"item\\", \\"id\\": \\"$id\\", \\"status\\": \\"ok\\", \\"score\\": 0.5}" >&3; done\n'
            'printf \'{"event": "end"}\' >&3\n'
        )
        write(self.repo / "kaizen/systems/demo/eval.sh", text)
        write(self.repo / "kaizen/systems/demo/system.md", "---\ndataset: kaizen/systems/demo/items.jsonl\neval:\n  - sh\n  - kaizen/systems/demo/eval.sh\n---\n")
        self.commit()
        self.assertEqual(self.run_demo()["result"]["value"], 0.5)


class Tainted(Lab):
    """A tree that changes while it is measured."""

    def test_an_edit_during_the_run_taints_it_and_only_a_restart_goes_on(self):
        self.eval(f"{BAD_THEN}if first:\n    open('agent.py', 'a').write('# more\\n')\n" + GOOD)
        found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["reason"], found["next"]), ("tainted", "tree_changed", "kaizen resume r0001 --restart"))
        self.assertIn("agent.py", found["message"])
        self.refused("tainted", "resume", "r0001")
        self.refused("dirty_tree", "resume", "r0001", "--restart")
        self.git("checkout", "--", "agent.py")
        old = (self.run_folder() / "items.jsonl").read_bytes()
        found = self.resume("r0001", "--restart")
        self.assertEqual((found["state"], found["attempt"], found["counts"]["ok"]), ("completed", 2, 4))
        self.assertEqual((self.run_folder() / "attempt-1/items.jsonl").read_bytes(), old, "nothing is deleted")
        self.assertEqual(read_json(self.run_folder() / "attempt-1/run.json")["state"], "tainted")

    def test_a_locked_file_a_commit_and_a_branch_taint_it_too(self):
        table = {
            "eval.py": "open('kaizen/systems/demo/eval.py', 'a').write('#')\n",
            "HEAD moved": "import subprocess\nsubprocess.run(['git', 'commit', '-q', '--allow-empty', '-m', 'x'], check=True)\n",
            "untracked": "open('new.txt', 'w').close()\n",
        }
        for words, text in table.items():
            self.eval(text + GOOD)
            found = self.run_demo(status=4)
            self.assertEqual(found["state"], "tainted", words)
            self.assertIn(words, found["message"])
            self.git("checkout", "-q", "--", ".")
            (self.repo / "new.txt").unlink(missing_ok=True)

    def test_an_eval_that_changes_the_locked_copy_or_writes_answers_itself_taints_it(self):
        forged = {"item": "i1", "trial": 1, "pass": 1, "attempt": 1, "status": "ok", "score": 1, "metrics": {}, "cost_usd": None, "latency_ms": None}
        table = {
            "the locked copy of": "open(__file__, 'a').write('# more')\n",
            "somebody else": f"with open(os.path.join(os.path.dirname(words['--request']), '../items.jsonl'), 'a') as stream:\n    print({json.dumps(json.dumps(forged))}, file=stream)\n",
        }
        for run, (words, text) in enumerate(table.items(), 1):
            self.eval(GOOD.replace("ok(item)", "ok(item, 0)").replace("say('end')", text + "say('end')"))
            found = self.run_demo(status=4)
            self.assertEqual((found["state"], found["result"]["value"]), ("tainted", 0), words)
            self.assertIn(words, found["message"])
            self.refused("tainted", "resume", f"r{run:04d}")

    def test_the_group_is_ended_as_soon_as_the_watcher_sees_it(self):
        self.eval("import time\nok(items[0])\nopen('agent.py', 'a').write('#')\ntime.sleep(60)\n")
        began = time.monotonic()
        with mock.patch.object(kaizen, "WATCH_SECONDS", 0.05), mock.patch.object(kaizen, "WATCH_SHARE", 1):
            found = self.run_demo(status=4)
        self.assertEqual((found["state"], found["counts"]["ok"]), ("tainted", 1))
        self.assertLess(time.monotonic() - began, 30)

    def test_ignored_files_may_come_and_go(self):
        write(self.repo / ".gitignore", "*.tmp\n")
        self.eval("open('x.tmp', 'w').close()\n" + GOOD)
        self.assertEqual(self.run_demo()["state"], "completed")


class Resuming(Lab):
    """Going on, and only with what is the same."""

    def test_a_crashed_run_goes_on_where_it_was_and_equals_one_that_was_not_broken_off(self):
        self.eval(f"{BAD_THEN}for item in items:\n    ok(item, item['seed'] / 2**31)\n    if first and item['id'] == 'i2':\n        sys.exit(1)\nsay('end')\n")
        self.run_demo(status=4)
        found = self.resume()
        whole = self.run_demo()
        self.assertEqual((found["result"], found["counts"]), (whole["result"], whole["counts"]))
        self.assertEqual(self.lines(), self.lines("r0002"))

    def test_the_cost_of_every_answer_counts_and_is_unknown_when_one_has_none(self):
        text = "for item in items:\n    {}say('item', id=item['id'], status='infra_error' if item['id'] == 'i1' else 'ok', score=1, cost_usd=0.25)\nsay('end')\n"
        self.eval(text.format(""))
        self.assertEqual(self.run_demo()["cost_usd"], 1.5)  # four, and one twice again
        self.eval(text.format("ok(item) if item['id'] == 'i2' else "))
        self.assertEqual(self.run_demo()["cost_usd"], None)

    def test_an_edit_between_the_preflight_and_the_first_look_taints_it(self):
        real = kaizen.load_items

        def slow(*args):
            write(self.repo / "agent.py", "print(3)\n")
            return real(*args)

        with mock.patch.object(kaizen, "load_items", slow):
            self.assertEqual(self.run_demo(status=4)["state"], "tainted")
        self.assertEqual(self.lines(), [])

    def test_a_killed_engine_leaves_an_interrupted_run_and_no_eval_behind_when_it_goes_on(self):
        self.eval(f"{BAD_THEN}import time\nok(items[0], output=os.getpid())\nif first:\n    time.sleep(60)\nfor item in items[1:]:\n    ok(item)\nsay('end')\n")
        words = [sys.executable, str(support.INSTALLED), "run", "--system", "demo", "--variant", "v"]
        engine = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(support.end_process, engine)
        path = self.run_folder() / "items.jsonl"
        deadline = time.monotonic() + 60
        while not (path.exists() and path.read_bytes().endswith(b"\n")) and time.monotonic() < deadline:
            time.sleep(0.02)
        engine.kill()
        engine.wait()
        self.assertEqual(self.store.read("r0001")["state"], "interrupted")
        eval_pid = self.lines()[0]["output"]
        self.assertTrue(is_running(eval_pid))
        found = self.resume()
        self.assertEqual((found["state"], [line["item"] for line in self.lines()]), ("completed", ["i1", "i2", "i3", "i4"]))
        self.assertFalse(is_running(eval_pid))

    def test_a_completed_run_is_never_asked_again(self):
        self.run_demo()
        for options in ([], ["--restart"]):
            self.refused("completed", "resume", "r0001", *options)

    def test_another_commit_is_refused_and_named(self):
        self.eval("ok(items[0])\nsys.exit(1)\n")
        head = self.git("rev-parse", "HEAD")
        self.run_demo(status=4)
        write(self.repo / "agent.py", "print(2)\n")
        self.commit()
        for options in ([], ["--restart"]):
            self.assertIn(head[:12], self.refused("other_commit", "resume", "r0001", *options)["next"])

    def test_locked_files_that_git_ignores_must_be_the_same(self):
        write(self.repo / ".gitignore", "secret.txt\n")
        write(self.repo / "kaizen/systems/demo/secret.txt", "1\n")
        self.eval("sys.exit(1)\n")
        self.run_demo(status=4)
        write(self.repo / "kaizen/systems/demo/secret.txt", "2\n")
        self.refused("locked_changed", "resume", "r0001")

    def test_an_unknown_or_hostile_run_is_an_error_with_what_to_do(self):
        self.run_demo()
        for name in ("r0002", "../r0001", "r0001/../r0001", "", "lock"):
            done = support.run_cli("resume", name)
            self.assertEqual(done.status, 2, name)
            self.assertIn("hint:", done.stderr)


class KilledAtEveryWrite(Lab):
    """SIGKILL before, and in the middle of, each write: the same result after resume."""

    def answers(self):
        """An evaluator without a process; i2 fails in the infrastructure twice."""

        class Answers(kaizen.ItemEvaluator):
            separation = "in_process"

            def answer(self, asked, session):
                for each in asked:
                    is_broken = each.item == "i2" and each.attempt < 3
                    status = {"status": "infra_error"} if is_broken else {"status": "ok", "score": each.seed / 2**31}
                    session.take({"event": "item", "id": each.item, "trial": each.trial, **status})
                return session.poll() or kaizen.ENDED_WELL

        return Answers()

    def begin(self):
        return kaizen.start_run(kaizen.find_workspace(), kaizen.RunOptions("demo", "v"))

    def killed_child(self, number, is_torn):
        """Forks; the child begins a run and dies before its *number*-th effect on the disk, or amid its *number*-th write.

        True when it lived to the end.
        """
        pid = os.fork()
        if pid:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        left = [number]

        def deadly(name):
            real = getattr(os, name)

            def call(*args, **kwargs):
                left[0] -= name == "write" or not is_torn
                if left[0] == 0:
                    if is_torn:
                        real(args[0], bytes(args[1])[: len(args[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        try:
            for name in ("write", "replace", "fsync", "mkdir", "makedirs"):
                setattr(os, name, deadly(name))
            self.begin()
            os._exit(0)
        finally:
            os._exit(1)

    def test_kill_at_every_write(self):
        self.eval(GOOD, items=ITEMS[:2])
        checkout = kaizen.read_checkout(str(self.repo))
        quiet = mock.Mock(**{"changed.return_value": None, "poll.return_value": None, "before": set()})
        replaced = {
            "checked_tree": lambda workspace: checkout,
            "tree_hash": lambda checkout: "0" * 40,
            "TreeWatch": lambda *args: quiet,
            "kill_marked": lambda mark: None,
            "ITEM_EVALUATORS": {"eval": lambda workspace, system: self.answers()},
        }
        with mock.patch.multiple(kaizen, **replaced):
            whole = self.begin().document
            expected = (whole["state"], whole["result"], whole["counts"], kaizen.final_answers(self.store.items("r0001")))
            self.assertEqual(whole["state"], "completed")
            points = 0
            for is_torn in (False, True):
                number, is_whole = 0, False
                while not is_whole:
                    number += 1
                    before = self.store.ids()
                    is_whole = self.killed_child(number, is_torn)
                    new = [run for run in self.store.ids() if run not in before]
                    self.assertLessEqual(len(new), 1)
                    found = self.store.read(new[0]) if new else self.begin().document
                    if found["state"] != "completed":
                        self.assertEqual(found["state"], "interrupted", f"write {number}")
                        found = kaizen.resume_run(kaizen.find_workspace(), new[0], False).document
                    if is_whole:
                        break
                    answers = kaizen.final_answers(self.store.items(found["id"]))
                    self.assertEqual((found["state"], found["result"], found["counts"], answers), expected, f"write {number}")
                    self.store.events(found["id"])
                    points += 1
        self.assertGreater(points, 30)


class Together(Lab):
    """More than one at a time."""

    def test_two_runs_of_one_tree_at_once_are_refused_and_another_tree_has_a_slot(self):
        self.git("worktree", "add", "-q", "-b", "other", self.folder / "other")
        workspace = kaizen.find_workspace()
        system = kaizen.load_system(workspace, "demo")
        with kaizen.held_locks(workspace, system):
            self.refused("lock_held")
            with support.surroundings(self.folder / "other", {}, {}):
                self.assertEqual(self.run_demo()["id"], "r0001")
        self.assertEqual(self.run_demo()["id"], "r0002", "one store for all trees")

    def test_slots_are_counted_over_all_trees(self):
        self.eval(GOOD, slots=1)
        self.git("worktree", "add", "-q", "-b", "other", self.folder / "other")
        workspace = kaizen.find_workspace()
        with kaizen.held_locks(workspace, kaizen.load_system(workspace, "demo")), support.surroundings(self.folder / "other", {}, {}):
            self.refused("no_free_slot")

    def test_the_lock_of_a_dead_process_is_taken_over(self):
        dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True).stdout
        for name in ("lock", "slot-1"):
            write(self.repo / "kaizen/.kaizen" / name, json.dumps({"pid": int(dead), "started_at": "2026-01-01T00:00:00.000Z"}) + "\n")
        self.assertEqual(self.run_demo()["state"], "completed")

    def is_running(self):
        """True once run.json, which comes a moment after its folder, says so."""
        return (self.run_folder() / "run.json").is_file() and self.document()["state"] == "running"

    def test_of_two_that_begin_at_once_one_runs_and_the_other_is_refused(self):
        self.eval("import pathlib, time\ngo = pathlib.Path(os.environ['HOME'], 'go')\nok(items[0])\n"
                  "while not go.exists():\n    time.sleep(0.01)\n" + GOOD.replace("items", "items[1:]"))
        words = [sys.executable, str(support.INSTALLED), "run", "--system", "demo", "--variant", "v", "--json"]
        first = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(support.end_process, first)
        deadline = time.monotonic() + 60
        while not self.is_running() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.refused("lock_held")
        self.refused("lock_held", "resume", "r0001")
        (Path(os.environ["HOME"]) / "go").touch()
        self.assertEqual((json.loads(first.communicate(timeout=60)[0])["reason"], first.returncode), ("completed", 0))
        self.assertEqual(self.store.ids(), ["r0001"])

    def test_a_run_whose_folder_was_removed_by_its_eval_is_refused_with_what_happened(self):
        self.eval("import shutil\nok(items[0])\nshutil.rmtree('kaizen/.kaizen/runs/r0001')\n" + GOOD.replace("items", "items[1:]"))
        self.assertIn("removed the folder of r0001 while the run was at work", self.refused("run_removed")["message"])
        self.assertEqual(self.store.ids(), [])

    def test_a_run_starts_git_twelve_times_and_no_more(self):
        with mock.patch.object(kaizen, "ask_git", wraps=kaizen.ask_git) as asked:
            self.run_demo()
        self.assertLessEqual(asked.call_count, 12)

    def test_a_broken_chain_of_events_stops_resume_and_nothing_is_written_on_top(self):
        self.eval("ok(items[0])\nsys.exit(1)\n")
        self.run_demo(status=4)
        path = self.run_folder() / "events.jsonl"
        data = path.read_bytes().replace(b"exit_code", b"exit_cote")
        path.write_bytes(data)
        self.assertIn("events.jsonl:3", self.refused("broken_chain", "resume", "r0001")["message"])
        self.assertEqual(path.read_bytes(), data)

    def test_a_run_that_another_process_is_at_cannot_be_resumed(self):
        self.run_demo()
        path = self.run_folder() / "run.json"
        write(path, json.dumps({**read_json(path), "state": "running"}))
        with self.store.writing("r0001"):
            self.assertEqual(self.store.read("r0001")["state"], "running")
            self.refused("lock_held", "resume", "r0001")
        self.assertEqual(self.store.read("r0001")["state"], "interrupted")


class CommandLine(Lab):
    """What `run` says when it is called in a wrong way."""

    def test_options_of_improvements_and_of_systems_do_not_mix(self):
        table = (
            (["run", "--system", "demo"], "--variant"),
            (["run", "--variant", "v"], "--system"),
            (["run", "refund", "--system", "demo", "--variant", "v"], "refund"),
            (["run", "--system", "demo", "--variant", "v", "--repetitions", "3"], "--repetitions"),
            (["run", "--system", "demo", "--variant", "v", "--", "x"], "COMMAND"),
            (["run"], "--system"),
            (["run", "--system", "dmo", "--variant", "v"], "demo"),
        )
        for argv, words in table:
            done = support.run_cli(*argv)
            self.assertEqual(done.status, 2, argv)
            self.assertIn(words, done.stderr)
        self.assertEqual(self.store.ids(), [])


if __name__ == "__main__":
    unittest.main()
