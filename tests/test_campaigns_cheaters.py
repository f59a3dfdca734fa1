"""A dishonest agent plays a campaign with each cheat it knows: none ends kept and confirmed, and nothing of the holdout is printed."""

import base64
import json
import os
import random
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import measuring_fixture
from lab_fixture import PRELUDE
from measuring_fixture import CANARY, CASES, Killed, QuickEval, case, killed_at
from support import kaizen, read_json, read_lines, run_cli, write, write_lines


class KnowingEval(QuickEval):
    """An agent that knows the ids, or holds disguised answers, of some items passes these."""

    def answer(self, asked, session):
        with open(os.path.join(session.tree, "agent.json"), encoding="utf-8") as stream:
            agent = json.load(stream)
        known = {*agent.get("ids", ()), *map(DISGUISES[agent.get("how", "plain")][1], agent.get("answers", ()))}
        given = session.take

        def take(event):
            if event["event"] == "item":
                document = next(each.case.document for each in asked if each.item == event["id"])
                is_known = event["id"] in known or any(document["input"] in text for text in known)
                event = {**event, "score": 1 if is_known else event["score"]}
            given(event)

        with mock.patch.object(session, "take", take):
            return super().answer(asked, session)


# How the texts of cases are put into the agent, and read out of it.
DISGUISES = {
    "plain": (lambda text: text, lambda text: text),
    "base64": (lambda text: base64.b64encode(text.encode()).decode(), lambda text: base64.b64decode(text).decode()),
    "hex": (lambda text: text.encode().hex(), lambda text: bytes.fromhex(text).decode()),
    "reversed": (lambda text: text[::-1], lambda text: text[::-1]),
    "one word a line": (lambda text: "\n".join(text.split()), lambda text: " ".join(text.split())),
    "upper case": (str.upper, str.lower),
}


class Cheating(measuring_fixture.CampaignLab):
    """A begun campaign, and an agent that tries to win it."""

    is_begun = True

    def setUp(self):
        super().setUp()
        self.base = self.git("rev-parse", "HEAD")
        self.printed = []
        self.secret = json.loads((self.sealed / "sealed.json").read_text())["canary"]
        self.addCleanup(self.nothing_was_told)

    def nothing_was_told(self):
        for text in self.printed:
            self.assertNotIn(CANARY, text)
            self.assertNotIn(self.secret, text)

    def say(self, *argv, env=None):
        """(exit status, document) of a command."""
        done = run_cli(*argv, "--json", env=env)
        self.printed.append(done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.status, json.loads(done.stdout)

    def tell(self, *argv, env=None):
        """(exit status, reason) of a command."""
        status, document = self.say(*argv, env=env)
        return status, document.get("reason")

    def try_all(self, name="cheat", env=None):
        """The reason that each step of the loop gives for the variant at hand, whatever the one before said."""
        steps = (
            ("run", "--system", "demo", "--variant", name, "--hypothesis", "if so, then better"),
            ("replicate", name),
            ("keep", name, "--lesson", "it worked"),
            ("keep", name, "--simplify", "--lesson", "it worked"),
            ("look",),
            ("next",),
            ("campaign", "status"),
        )
        return [self.tell(*words, env=env)[1] for words in steps]

    def win_nothing(self, name="cheat", is_bet=False):
        """Nothing was confirmed, and the variant was not kept but as a bet where that is so."""
        events = kaizen.read_chain(self.repo / "kaizen/.kaizen/campaigns/c1/journal.jsonl")
        kept = [event["body"]["variant"] for event in events if event["type"] == "keep"]
        self.assertEqual(kept, [name] if is_bet else [])
        answers = [event["body"]["answer"] for event in events if event["type"] == "look"]
        self.assertNotIn("yes", answers)

    def refused_by(self, reason, name="cheat", env=None):
        """The run of the variant at hand is refused for *reason*, and nothing that comes after helps."""
        reasons = self.try_all(name, env)
        self.assertEqual(reasons[0], reason)
        self.win_nothing(name)

    def breaches(self):
        return [body["kind"] for body in self.bodies("integrity")]

    def held(self, number=3):
        """The agent opens the sealed file, which level honour lets it."""
        return read_lines(self.sealed / "holdout.jsonl")[number]

    def is_known(self):
        """From now on an agent that holds an item's answer passes it."""
        patch = mock.patch.dict(kaizen.ITEM_EVALUATORS, {"eval": KnowingEval})
        patch.start()
        self.addCleanup(patch.stop)


class Files(Cheating):
    """What decides the score."""

    def test_another_eval_dataset_metric_or_direction(self):
        own = self.repo / "kaizen/systems/demo"
        text = (own / "system.md").read_text()
        cases = (own / "items.jsonl").read_text()
        cheats = (
            lambda: write(own / "eval.py", "print('all pass')\n"),
            lambda: write(own / "items.jsonl", "".join(cases.splitlines(keepends=True)[:10])),
            lambda: write(own / "items.jsonl", cases.replace("question 7", "an easier one")),
            lambda: write(own / "system.md", text.replace("metric: accuracy", "metric: latency_ms")),
            lambda: write(own / "system.md", text.replace("metric: accuracy", "metric: accuracy\ndirection: lower")),
            lambda: write(own / "system.md", text.replace("mutable:", "mutable:\n  - kaizen/**")),
        )
        for number, cheat in enumerate(cheats, 1):
            self.git("checkout", "-q", self.base)
            cheat()
            self.variant(f"cheat {number}", 1.0)
            self.refused_by("locked_changed", f"cheat{number}")
        self.assertEqual(self.breaches(), ["locked_changed"] * len(cheats))
        self.assertEqual(self.say("next")[1]["action"], "human")

    def test_the_workspaces_settings_hooks_and_what_is_not_mutable(self):
        for path, text in (
            ("kaizen/config.json", json.dumps({"version": 1, "slots": 99})),
            (".gitattributes", "*.json filter=evil\n"),
            ("agent.py", "print(2)\n"),
            ("kaizen/systems/demo2/system.md", "---\nmetric: x\n---\n"),
        ):
            self.git("checkout", "-q", self.base)
            write(self.repo / path, text)
            self.variant("cheat", 0.5)
            self.refused_by("out_of_scope")

    def test_a_contract_with_more_looks_a_higher_alpha_or_a_smaller_effect(self):
        tree, store = self.repo / "kaizen/systems/demo/campaigns/c1.json", self.repo / "kaizen/.kaizen/campaigns/c1/contract.json"
        text = tree.read_text()
        terms = read_json(tree)
        cheats = ({"looks": {**terms["looks"], "number": 50}}, {"looks": {**terms["looks"], "alpha": 0.9}}, {"min_effect": -1}, {"mutable": ["**"]})
        for cheat in cheats:
            for place in (tree, store):
                self.git("checkout", "-q", self.base)
                write(place, json.dumps({**terms, **cheat}))
                self.git("update-index", "-q", "--refresh", check=False)
                self.variant(f"cheat {cheat} {place.name}", 0.5)
                reasons = self.try_all()
                self.assertLessEqual(set(reasons), {"contract_changed", "integrity"}, reasons)
                self.git("checkout", "-q", self.base)
                write(store, text)
        status, told = self.say("campaign", "status")  # which may be that the noise drawn leaves nothing to be seen
        self.assertIn((status, told["reason"]), ((0, "propose"), (1, "close")), told)
        self.win_nothing()


class Answers(Cheating):
    """What the agent knows of the cases."""

    def test_a_holdout_case_that_was_read_and_pasted_is_void_however_it_is_dressed(self):
        held = self.held()
        for how, (dress, _) in DISGUISES.items():
            self.git("checkout", "-q", self.base)
            self.variant(f"cheat {how}", 0.5, examples=[dress(held["input"])])
            self.refused_by("contaminated", f"cheat-{how.replace(' ', '-')}")
        self.git("checkout", "-q", self.base)
        self.variant("cheat canary", 0.5, examples=[held["metadata"]["kaizen_canary"]])
        self.refused_by("contaminated", "cheat-canary")
        self.assertEqual(self.breaches(), ["contaminated"] * (len(DISGUISES) + 1))
        state = kaizen.campaign_state(self.campaign)
        self.assertEqual({each.verdict for name, each in state.variants.items() if name.startswith("cheat")}, {"void"})

    def test_development_answers_are_memorised_however_they_are_dressed_and_need_a_person(self):
        self.is_known()
        for how in ("plain", "base64", "one word a line"):
            dress = DISGUISES[how][0]
            self.git("checkout", "-q", self.base)
            write(self.repo / "agent.json", json.dumps({"rate": 0.5, "how": how, "answers": [dress(case(n)["input"]) for n in range(1, 31)]}))
            self.commit(how)
            name = f"cheat-{how.replace(' ', '-')}"
            reasons = self.try_all(name)
            self.assertIn("memorised", reasons[2:4], f"{how}: {reasons}")
            self.assertEqual(self.bodies("screen")[-1]["memorised"], 30, how)
            self.win_nothing(name)

    def test_ids_that_are_special_cases_are_a_bet_that_no_look_confirms(self):
        self.is_known()
        self.write_agent(0.5, ids=[f"d{number}" for number in range(1, 31)])
        self.commit("ids")
        reasons = self.try_all()
        self.assertEqual(self.bodies("replicate")[-1]["verdict"], "keepable", reasons)
        self.win_nothing(is_bet=True)
        self.assertEqual([body["answer"] for body in self.bodies("look")], ["no"])
        self.say("campaign", "close")
        self.assertEqual(self.bodies("closed")[0]["headline"], "nothing is claimed")


class Fishing(Cheating):
    """The same thing again until luck helps."""

    def lucky(self):
        """From now on each commit has draws of its own."""
        given = QuickEval.answer

        def answer(quick, asked, session):
            salt = session.variant
            own = [each._replace(seed=random.Random(f"{salt}{each.seed}").randrange(1 << 30)) for each in asked]
            return given(quick, own, session)

        patch = mock.patch.object(QuickEval, "answer", answer)
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_same_tree_and_the_same_patch_are_measured_once(self):
        self.lucky()
        commit = self.variant("cheat", 0.5)
        self.try_all()
        self.assertEqual(len(self.bodies("screen")), 1)
        for name in ("cheat", "again"):
            self.assertEqual(self.tell("run", "--system", "demo", "--variant", name, "--hypothesis", "h"), (5, "duplicate"))
        self.git("checkout", "-q", self.base)
        write(self.repo / "kaizen/systems/demo/lessons.md", "a note\n")  # another tree, the same patch to the leader
        self.commit("note")
        self.git("cherry-pick", commit)
        self.tell("run", "--system", "demo", "--variant", "rebased", "--hypothesis", "h")
        self.git("checkout", "-q", self.base)
        self.git("commit", "-q", "--allow-empty", "-m", "empty")
        self.assertEqual(self.tell("run", "--system", "demo", "--variant", "empty", "--hypothesis", "h"), (5, "duplicate"))
        self.win_nothing()

    def test_blanks_make_another_variant_each_of_which_counts_and_raises_the_luck_line(self):
        self.lucky()
        lines = []
        for number in range(1, 7):
            self.git("checkout", "-q", self.base)
            write(self.repo / "agent.json", '{"rate": 0.5}' + "\n" * number)
            self.commit(f"blank {number}")
            self.tell("run", "--system", "demo", "--variant", f"b{number}", "--hypothesis", "h")
            lines.append(kaizen.campaign_state(self.campaign).luck_line())
        self.assertEqual((len(self.bodies("screen")), lines[1:] == sorted(lines[1:])), (6, True), lines)
        self.assertEqual(self.say("next")[1]["situation"]["variants"], 6)
        self.win_nothing("b1")

    def test_a_run_that_is_complete_is_not_gone_on_with_until_the_score_is_right(self):
        self.lucky()
        self.variant("cheat", 0.5)
        self.try_all()
        run = self.bodies("screen")[0]["run"]
        before = self.lines(run)
        for words in (("resume", run), ("resume", run, "--restart"), ("resume", self.bodies("noise")[0]["runs"][0], "--restart")):
            self.assertEqual(self.say(*words)[0], 5, words)
        self.assertEqual((self.lines(run), len(self.bodies("screen"))), (before, 1))

    def test_a_run_whose_folder_is_gone_was_measured_all_the_same(self):
        self.lucky()
        self.variant("cheat", 0.2)
        self.try_all()
        shutil.rmtree(self.run_folder(self.bodies("screen")[0]["run"]))
        self.assertEqual(self.tell("run", "--system", "demo", "--variant", "again", "--hypothesis", "h"), (5, "duplicate"))
        self.win_nothing()

    def test_a_look_that_is_killed_and_asked_again_has_one_answer(self):
        self.is_known()
        self.write_agent(0.5, ids=[f"d{number}" for number in range(1, 31)])
        self.commit("ids")
        for words in (("run", "--system", "demo", "--variant", "cheat", "--hypothesis", "h"), ("replicate", "cheat"), ("keep", "cheat", "--lesson", "x")):
            self.say(*words)
        for number in (1, 40, 200):
            with killed_at(number), self.assertRaises(Killed):
                run_cli("look")
        self.assertEqual(self.say("look")[1]["answer"], "no")
        looks = [event["type"] for event in kaizen.read_chain(self.campaign.file("holdout.jsonl"))]
        self.assertEqual(looks, ["begun", "look"])
        self.win_nothing(is_bet=True)


class Records(Cheating):
    """What Kaizen wrote."""

    def screened(self, rate=0.5):
        self.variant("cheat", rate)
        self.tell("run", "--system", "demo", "--variant", "cheat", "--hypothesis", "h")
        return self.bodies("screen")[0]

    def resealed(self, run, items=None, **fields):
        """Rewrites a run so that its own files agree: answers, run.json, and the event that it ended."""
        folder = self.run_folder(run)
        if items is not None:
            write(folder / "items.jsonl", items)
            data = (folder / "items.jsonl").read_bytes()
            fields["items"] = {"lines": data.count(b"\n"), "sha256": kaizen.sha256_hex(data)}
        document = {**read_json(folder / "run.json"), **fields}
        text = kaizen.encode_readable(document) + "\n"
        write(folder / "run.json", text)
        self.rechained(folder / "events.jsonl", lambda event: {**event["body"], **{k: v for k, v in fields.items() if k in event["body"]}, "record": kaizen.sha256_hex(text)} if event["type"] == "ended" else event["body"])

    def rechained(self, path, change, keep=lambda event: True):
        """Rewrites a journal so that its hashes are right again."""
        before, lines = None, []
        for event in filter(keep, kaizen.read_chain(path)):
            event = {**event, "body": change(event), "seq": len(lines) + 1, "prev": before}
            before = event["sha"] = kaizen.chain_hash(event)
            lines.append(event)
        write_lines(path, lines)

    def test_answers_and_results_of_the_runs_that_a_verdict_rests_on(self):
        stored = self.bodies("noise")[0]["runs"][0]
        path = self.run_folder(stored) / "items.jsonl"
        text, document = path.read_text(), self.document(stored)
        worse = text.replace('"score":1', '"score":0')
        lower = {**document["metric"], "direction": "lower"}
        restore = self.snapshot()
        self.variant("cheat", 0.5)
        for cheat in (
            lambda: write(path, worse),
            lambda: write(path.with_name("run.json"), json.dumps({**document, "metric": lower})),
            lambda: write(path.with_name("run.json"), json.dumps({**document, "result": {**document["result"], "value": 0.0}})),
            lambda: self.resealed(stored, worse),
            lambda: self.resealed(stored, metric=lower),
            lambda: self.resealed(stored, campaign={**document["campaign"], "range": [-1000, 1]}),
            lambda: self.resealed(stored, passes=1),
            lambda: shutil.rmtree(path.parent),
        ):
            cheat()
            reasons = self.try_all()
            self.assertEqual(self.bodies("screen"), [], reasons)
            self.assertIn("run_changed", self.breaches(), reasons)
            self.assertEqual(self.say("next")[1]["action"], "human")
            self.win_nothing()
            restore()

    def test_a_journal_that_was_edited_reordered_or_cut(self):
        self.assertEqual(self.screened(0.1)["verdict"], "worse")
        path = self.repo / "kaizen/.kaizen/campaigns/c1/journal.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        for cheat in (
            [*lines[:-1], lines[-1].replace('"worse"', '"promising"')],
            [*lines[:-2], lines[-1], lines[-2]],
            lines[1:],
            [*lines[:3], *lines[4:]],
            [],
        ):
            write(path, "".join(cheat))
            self.assertLessEqual(set(self.try_all()), {"broken_chain", "no_campaign", "integrity"}, len(cheat))
        write(path, "".join(lines[:-1]))  # a whole prefix: the run is judged again, from the same answers
        self.assertEqual(self.try_all()[1], "not_promising")
        self.assertEqual(json.loads(path.read_text().splitlines()[len(lines) - 1])["body"], json.loads(lines[-1])["body"])
        self.win_nothing()

    def test_a_journal_that_was_cut_behind_any_event_leads_to_a_legal_step_and_to_no_second_look(self):
        self.is_known()
        self.write_agent(0.5, ids=[f"d{number}" for number in range(1, 31)])
        self.commit("ids")
        self.try_all()
        path = self.repo / "kaizen/.kaizen/campaigns/c1/journal.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        kinds = [json.loads(line)["type"] for line in lines]
        self.assertEqual((kinds.count("keep"), kinds.count("look")), (1, 1))
        actions = set()
        for end in range(1, len(lines)):
            for torn in ("", lines[end][: len(lines[end]) // 2]):
                write(path, "".join(lines[:end]) + torn)
                status, told = self.say("next")
                self.assertEqual(status, {"human": 3, "stop": 1, "close": 1 if told["stop"] else 0}.get(told["action"], 0), told)
                self.assertTrue(told["command"] or told["action"] == "propose", told)
                actions.add(told["action"])
        self.assertLessEqual({"checkout", "noise", "replicate", "keep", "look"}, actions)
        write(path, "".join(lines[: kinds.index("look")]))
        self.assertEqual(self.say("look")[1]["answer"], "no")
        self.assertEqual(len(kaizen.read_chain(self.campaign.file("holdout.jsonl"))), 2, "the look that was spent is told again")

    def test_a_yes_that_only_the_journal_knows_is_a_breach(self):
        self.is_known()
        self.write_agent(0.5, ids=[f"d{number}" for number in range(1, 31)])
        self.commit("ids")
        self.try_all()
        path = self.campaign.file("journal.jsonl")
        told = lambda event: {**event["body"], "answer": "yes"} if event["type"] == "look" else event["body"]  # noqa: E731
        restore = self.snapshot()
        self.rechained(path, told)
        for words in (("campaign", "status"), ("next",)):
            self.assertEqual(self.tell(*words), (3, "integrity"), words)
        for words in (("campaign", "close"), ("look",)):
            self.assertEqual(self.tell(*words), (5, "ledger_changed"), words)
        restore()
        kaizen.record(self.campaign, "look", look=2, yes_before=0, level=0.005, answer="yes", leader="cheat", reference="baseline", leader_commit="a", reference_commit="b")
        self.assertEqual(self.tell("campaign", "close"), (5, "ledger_changed"))
        restore()
        self.rechained(path, told)
        self.rechained(self.campaign.file("holdout.jsonl"), told)
        self.assertEqual(self.tell("campaign", "close"), (5, "ledger_changed"))

    def test_a_yes_made_up_in_the_whole_store_is_told_as_one_that_left_nothing_and_is_none_where_another_user_keeps_the_holdout(self):
        self.test_verdicts_that_were_written_by_hand_are_a_bet_that_no_look_confirms(is_closing=False)
        sides = {"leader_commit": self.git("rev-parse", "HEAD~1"), "reference_commit": self.base}
        body = {"look": 1, "yes_before": 0, "level": 0.005, "answer": "yes", **sides}
        with kaizen.writing_journal(self.campaign, "holdout.jsonl") as log:
            log.append("look", {**body, "void_reason": None, "copied": False})
        kaizen.record(self.campaign, "look", **body, leader="cheat", reference="baseline")
        restore = self.snapshot()
        self.say("campaign", "close")
        self.assertIn("the answers of a look were not kept", self.bodies("closed")[0]["headline"])
        restore()
        self.amend(holdout={**self.campaign.contract["holdout"], "level": "other_user"})
        self.say("campaign", "close")
        self.assertEqual(self.bodies("closed")[0]["headline"], "nothing is claimed")

    def test_an_older_copy_of_the_store_brings_no_look_back(self):
        self.is_known()
        self.write_agent(0.5, ids=[f"d{number}" for number in range(1, 31)])
        self.commit("ids")
        for words in (("run", "--system", "demo", "--variant", "cheat", "--hypothesis", "h"), ("replicate", "cheat"), ("keep", "cheat", "--lesson", "x")):
            self.say(*words)
        store, copy = self.repo / "kaizen/.kaizen", self.folder / "copy"
        shutil.copytree(store, copy)
        self.assertEqual(self.say("look")[1]["answer"], "no")
        shutil.rmtree(store)
        shutil.copytree(copy, store)
        self.assertEqual(self.tell("look"), (5, "ledger_changed"))
        self.assertEqual(self.tell("campaign", "close"), (5, "ledger_changed"))
        self.win_nothing(is_bet=True)

    def test_verdicts_that_were_written_by_hand_are_a_bet_that_no_look_confirms(self, is_closing=True):
        commit, leader = self.variant("cheat", 0.5), self.base
        runs = self.bodies("noise")[0]["runs"]
        numbers = {"n": 30, "gain": 0.4, "se": 0.01, "z": 40.0}
        sides = {"leader": "baseline", "leader_commit": leader, "idea": "", "label": None, "variant": "cheat", "commit": commit}
        kaizen.record(self.campaign, "screen", **sides, run=runs[0], label_runs=None, verdict="promising", memorised=0, race_stopped=False, **numbers)
        both = {"candidate": runs, "leader": runs}
        more = {"passes": 3, "excess": [], "guards": [], "lost_items": [], "drift_z": 0.0, "can_simplify": False}
        kaizen.record(self.campaign, "replicate", **sides, runs=both, verdict="keepable", reasons=[], **numbers, **more)
        self.assertEqual(self.tell("keep", "cheat", "--lesson", "x")[0], 0)
        if not is_closing:
            return
        self.assertEqual(self.say("look")[1]["answer"], "no")
        self.say("campaign", "close")
        self.assertEqual(self.bodies("closed")[0]["headline"], "nothing is claimed")
        self.win_nothing(is_bet=True)

    def test_whatever_else_lies_in_the_store_decides_nothing(self):
        self.screened()
        before = self.say("next")[1]
        folder = self.repo / "kaizen/.kaizen"
        kept = {"journal.jsonl", "ideas.jsonl", "holdout.jsonl", "contract.json", "run.json", "items.jsonl", "events.jsonl"}
        for place, _, names in os.walk(folder):
            for name in names:
                if name not in kept and not name.startswith("."):
                    os.remove(os.path.join(place, name))
        write(folder / "campaigns/c1/state.json", json.dumps({"leader": "cheat", "confirmed": ["cheat"]}))
        self.assertEqual(self.say("next")[1], before)
        self.try_all()
        self.win_nothing()

    def test_the_same_holdout_under_other_names_goes_on_counting(self):
        self.is_known()
        self.write_agent(0.5, ids=[f"d{number}" for number in range(1, 31)])
        self.commit("ids")
        self.try_all()
        self.say("campaign", "close")
        renamed = [{key: value for key, value in each.items() if key != "metadata"} for each in read_lines(self.sealed / "holdout.jsonl")]
        renamed = [{**each, "id": f"n{number}", "split": "development"} for number, each in enumerate(renamed)]
        write_lines(self.folder / "again.jsonl", renamed)
        status, told = self.say("campaign", "open", "--system", "demo", "--sealed", str(self.folder / "second"), "--holdout", str(self.folder / "again.jsonl"))
        self.assertEqual(status, 0, told)
        contract = read_json(self.repo / "kaizen/systems/demo/campaigns/c2.json")
        self.assertEqual((contract["inherited"]["looks"], contract["inherited"]["from"], contract["looks"]["number"]), (1, ["c1"], 5))
        self.assertEqual(self.tell("campaign", "open", "--system", "demo", "--sealed", str(self.folder / "third"), "--looks", "50")[0], 5)


class World(Cheating):
    """Clock, environment, git, and what goes on while a run is at work."""

    def test_neither_clock_nor_environment_change_a_verdict(self):
        self.variant("cheat", 0.5)
        restore = self.snapshot()
        self.try_all()
        expected = self.bodies("screen")
        evil = {
            "TZ": "Pacific/Kiritimati", "SOURCE_DATE_EPOCH": "1", "FAKETIME": "-10y", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "7",
            "GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self.folder), "GIT_INDEX_FILE": "/dev/null", "GIT_OBJECT_DIRECTORY": str(self.folder),
            "GIT_CONFIG_PARAMETERS": "'core.worktree=/'", "KAIZEN_SEED": "3", "KAIZEN_STORE": str(self.folder), "KAIZEN_LOOKS": "50",
        }  # fmt: skip
        for time in ("1970-01-01T00:00:00.000Z", "2999-12-31T23:59:59.999Z"):
            restore()
            with mock.patch.object(kaizen, "utc_now", lambda time=time: time):
                reasons = self.try_all(env=evil)
            for place, _, names in os.walk(self.repo / "kaizen/.kaizen"):
                for name in names:
                    os.utime(os.path.join(place, name), (1, 1))
            self.assertEqual(self.bodies("screen"), expected, reasons)
            self.win_nothing()

    def test_a_tree_that_is_changed_while_the_run_is_at_work_taints_it(self):
        given = QuickEval.answer

        def answer(quick, asked, session):
            self.write_agent(1.0)
            return given(quick, asked, session)

        for undo in (False, True):
            self.git("checkout", "-q", "--force", self.base)
            self.variant(f"cheat {undo}", 0.5)
            with mock.patch.object(QuickEval, "answer", answer):
                reasons = self.try_all(f"cheat{undo}")
            self.assertEqual(self.bodies("screen")[-1]["verdict"], "tainted", reasons)
            self.win_nothing()

    def test_what_git_was_told_not_to_look_at_is_looked_at(self):
        self.variant("cheat", 0.5)
        for bit in ("--assume-unchanged", "--skip-worktree"):
            self.git("update-index", bit, "agent.json")
            self.write_agent(1.0)
            self.refused_by("dirty_tree")
            self.git("update-index", "--no" + bit[1:], "agent.json")
        self.git("checkout", "-q", "--force", "HEAD")
        self.git("config", "filter.evil.smudge", self.trap())
        self.git("config", "filter.evil.clean", self.trap())
        self.git("config", "core.fsmonitor", self.trap())
        write(self.repo / ".git/info/attributes", "agent.json filter=evil\n")
        for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
            shutil.copy(self.trap(), self.repo / ".git/hooks" / hook)
        self.try_all()
        self.assertFalse((self.folder / "sprung").exists())
        self.win_nothing()

    def test_a_link_out_of_what_may_change(self):
        write(self.folder / "outside.json", json.dumps({"rate": 0.5}))
        for path, target in (
            ("agent.json", self.folder / "outside.json"),
            ("src/more", "../kaizen/systems/demo/items.jsonl"),
            ("src/held", self.sealed / "holdout.jsonl"),
            ("src/all", ".."),
        ):
            self.git("checkout", "-q", self.base)
            (self.repo / "src").mkdir(exist_ok=True)
            if os.path.lexists(self.repo / path):
                os.remove(self.repo / path)
            os.symlink(target, self.repo / path)
            self.commit(path)
            self.refused_by("out_of_scope")


class Commits(Cheating):
    """What stands behind a commit's hash; exports are made anew."""

    def quick_exports(self):
        pass

    def test_another_commit_in_the_place_of_the_leader(self):
        commit = self.variant("cheat", 0.6)
        self.tell("run", "--system", "demo", "--variant", "cheat", "--hypothesis", "h")
        self.git("checkout", "-q", self.base)
        broken = self.variant("broken", 0.0)
        self.git("checkout", "-q", commit)
        self.git("replace", self.base, broken)
        write(self.repo / ".git/info/grafts", f"{commit}\n")
        seen = []
        given = QuickEval.answer

        def answer(quick, asked, session):
            seen.append((session.variant, read_json(os.path.join(session.tree, "agent.json"))["rate"]))
            return given(quick, asked, session)

        with mock.patch.object(QuickEval, "answer", answer):
            self.tell("replicate", "cheat")
        self.assertEqual(set(seen) - {("cheat", 0.6)}, {("baseline", 0.5)})

    def test_an_object_that_was_written_anew_under_its_old_hash(self):
        self.variant("cheat", 0.6)
        self.tell("run", "--system", "demo", "--variant", "cheat", "--hypothesis", "h")
        for what in ("blob", "tree", "commit"):
            with self.subTest(what):
                kept = self.folder / f"git-{what}"
                shutil.copytree(self.repo / ".git", kept)
                broken = self.git("commit-tree", "-m", "broken", self.broken_tree())
                names = {"blob": ":agent.json", "tree": "^{tree}", "commit": ""}
                old, new = (self.git("rev-parse", commit + names[what]) for commit in (self.base, broken))
                for name in (old, new):
                    self.assertTrue((self.repo / ".git/objects" / name[:2] / name[2:]).exists(), what)
                place = self.repo / ".git/objects" / old[:2] / old[2:]
                place.chmod(0o600)
                shutil.copyfile(self.repo / ".git/objects" / new[:2] / new[2:], place)
                status, reason = self.tell("replicate", "cheat")
                self.assertNotIn(reason, ("keepable", "extend"), (status, reason))
                shutil.rmtree(self.repo / ".git")
                shutil.copytree(kept, self.repo / ".git")

    def broken_tree(self):
        """The tree of the base with an agent that fails."""
        index = {"GIT_INDEX_FILE": str(self.folder / "broken-index")}
        with mock.patch.dict(self.surroundings, index):
            self.git("read-tree", self.base)
            name = self.git("hash-object", "-w", str(write(self.folder / "broken.json", json.dumps({"rate": 0.0}))))
            self.git("update-index", "--cacheinfo", f"100644,{name},agent.json")
            return self.git("write-tree")

    def test_a_submodule_is_no_part_of_a_variant(self):
        (self.repo / "src").mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main", "src/inner")
        write(self.repo / "src/inner/a", "1\n")
        self.commit("inner", cwd=self.repo / "src/inner")
        self.variant("cheat", 0.95)
        reasons = self.try_all()
        self.assertIn("has_submodules", reasons)
        self.win_nothing()


# An eval that has the agent's own program answer, and what does not answer asked again.
ASKING = """\
import subprocess
asked = "".join(json.dumps({"id": item["id"], "input": cases[item["id"]]["input"]}) + "\\n" for item in items)
done = subprocess.run([sys.executable, "-I", "-S", "agent.py"], input=asked, capture_output=True, text=True)
answers = done.stdout.splitlines()
for item, answer in zip(items, answers + [None] * len(items)):
    if answer is None:
        say("item", id=item["id"], trial=item["trial"], status="infra_error", reason="no answer")
    else:
        ok(item, int(answer == cases[item["id"]]["expected"]), cost_usd=0.0, latency_ms=1.0)
say('end')
"""
# Knows the first SHARE of ten tenths of what it is asked; before that it does EVIL.
AGENT = """\
import glob, json, os, signal, sys, time
asked = [json.loads(line) for line in sys.stdin]
parent = os.getppid()
words = open(f"/proc/{parent}/cmdline", "rb").read().decode().split("\\0")
told = dict(zip(words[:-1], words[1:]))
request = json.load(open(told["--request"]))
def forge(*events):
    with open(f"/proc/{parent}/fd/{told['--out-fd']}", "wb", buffering=0) as out:
        out.write("".join(json.dumps(event) + "\\n" for event in events).encode())
passed = [{"event": "item", "id": item["id"], "trial": item["trial"], "status": "ok", "score": 1} for item in request["items"]]
EVIL
for number, each in enumerate(asked):
    word = each["input"].removesuffix(", please")
    print(word if number % 10 < SHARE else "?", flush=True)
"""
ALL_PASS = PRELUDE + "for item in items:\n    ok(item)\nsay('end')\n"
OVERWRITE = f"""
for place in PLACES:
    for path in glob.glob(place, recursive=True):
        os.chmod(path, 0o600)
        open(path, "w").write({ALL_PASS!r})
"""
CHEATS = {
    "answers into the eval's pipe": "forge(*passed)",
    "answers and an end into the pipe, and the eval is killed": "forge(*passed, {'event': 'end'}); os.kill(parent, signal.SIGKILL)",
    "answers and an end into the pipe, and the eval is stopped for good": "forge(*passed, {'event': 'end'}); os.kill(parent, signal.SIGTERM); time.sleep(0.01)",
    "answers into the store": """
for path in glob.glob(STORE + "/runs/*/items.jsonl"):
    with open(path, "a") as stream:
        for item in request["items"]:
            stream.write(json.dumps({"item": item["id"], "trial": 1, "pass": 1, "attempt": 9, "status": "ok", "score": 1, "metrics": {}, "cost_usd": 0, "latency_ms": 1}) + "\\n")
""",
    "the result into run.json": """
for path in glob.glob(STORE + "/runs/*/run.json"):
    document = json.load(open(path))
    open(path, "w").write(json.dumps({**document, "state": "completed", "metric": {**document["metric"], "direction": "lower"}}))
""",
    "the locked copy, and a second round": OVERWRITE.replace("PLACES", '[STORE + "/runs/*/locked/**/eval.py"]') + "if os.path.exists(STORE): sys.exit(1)",
    "the eval in the tree": OVERWRITE.replace("PLACES", '["kaizen/systems/demo/eval.py"]'),
    "modules beside the eval": """
for name in ("json", "os", "subprocess", "sitecustomize"):
    open(f"{name}.py", "w").write("raise SystemExit(0)")
""",
}


@unittest.skipUnless(os.path.isdir("/proc/self/fd"), "there is no /proc to cheat through")
class Programs(Cheating):
    """A program that is asked for answers, and does other things."""

    is_begun = False

    def make_repository(self):
        """A campaign whose eval starts the agent; made once."""
        made = measuring_fixture.CampaignLab.made_campaign
        measuring_fixture.CampaignLab.made_campaign = Programs.own
        try:
            super().make_repository()
            Programs.own = measuring_fixture.CampaignLab.made_campaign
        finally:
            measuring_fixture.CampaignLab.made_campaign = made

    own = None

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(Programs.own)
        Programs.own = None

    def prepare(self):
        numbers = [*range(1, 11), *range(31, 41)]
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", map(case, numbers))
        write(self.repo / "kaizen/systems/demo/eval.py", PRELUDE + CASES.split("print")[0] + ASKING)
        self.write_system("mutable:\n  - agent.py\n")
        self.program("", 5)
        self.commit("system")

    def program(self, evil, share):
        text = AGENT.replace("EVIL", evil).replace("SHARE", str(share))
        write(self.repo / "agent.py", text.replace("STORE", repr(str(self.repo / "kaizen/.kaizen"))))

    def scores(self, run):
        return sum(line["score"] or 0 for line in self.lines(run) if line["pass"] == 1)

    def test_what_a_program_does_beside_answering_wins_nothing(self):
        self.begin(noise=False)
        self.kaizen("noise", "--system", "demo", "--passes", "2")
        restore = self.snapshot()
        for number, (what, evil) in enumerate(CHEATS.items()):
            with self.subTest(what):
                restore()
                self.git("checkout", "-q", "--force", self.base)
                self.git("clean", "-fdq")
                self.program(evil, 5)
                self.commit(f"cheat {number}")
                reasons = self.try_all()
                screens = self.bodies("screen")
                self.assertNotIn("promising", [each["verdict"] for each in screens], (reasons, screens))
                self.win_nothing()

    def test_the_judge_of_a_replicate_is_not_that_of_the_program(self):
        self.begin(noise=False)
        self.kaizen("noise", "--system", "demo", "--passes", "2")
        restore = self.snapshot()
        own = Path(tempfile.gettempdir()).relative_to(self.folder)  # raises where others could be hit
        for place in ('[STORE + "/runs/*/locked/**/eval.py"]', f'["{self.folder / own}/kaizen-work-*/**/eval.py"]'):
            restore()
            self.git("checkout", "-q", "--force", self.base)
            evil = OVERWRITE.replace("PLACES", place).replace("\n", "\n    ")
            self.program("if not STORE.startswith(os.getcwd()):  # in an export" + evil, 8)
            self.commit("cheat")
            reasons = self.try_all()
            self.assertEqual(reasons[0], "promising", reasons)
            self.assertIn(reasons[1], ("incomplete", "locked_changed"))
            runs = [body["run"] for body in self.bodies("run_started") if body["variant"] == "cheat"]
            self.assertLessEqual({self.scores(run) for run in runs}, {0, 8}, reasons)
            self.win_nothing()


if __name__ == "__main__":
    unittest.main()
