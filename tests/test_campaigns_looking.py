"""campaigns/looking.py: a look says yes, no or void, spends what it costs whatever happens, and tells nothing else."""

import json
import os
from unittest import mock

import measuring_fixture
from measuring_fixture import CANARY, HELD, Killed, QuickEval, killed_at
from support import kaizen, run_cli, write

FORMS = ((), ("--json",))


class Looking(measuring_fixture.CampaignLab):
    """A begun campaign; `self.keep` makes a leader."""

    is_begun = True

    def look(self):
        """The answer of `kaizen look`, which must have said nothing else."""
        done = run_cli("look")
        self.assertEqual((done.status, done.stderr), (0, ""), done.stdout)
        answer = json.loads(done.stdout.splitlines()[0])["answer"]
        self.assertEqual(done.stdout, f'{{"answer":"{answer}"}}\nnext: kaizen next\n')
        return answer

    def ledger(self, kind="look"):
        return [event["body"] for event in kaizen.read_chain(self.campaign.file("holdout.jsonl")) if event["type"] == kind]

    def failing(self, error):
        """From now on the eval raises *error* in the second pass of the leader."""
        given = QuickEval.answer

        def answer(quick, asked, session):
            if (session.variant, asked[0].pass_number) == ("v1", 2):
                raise error
            return given(quick, asked, session)

        return mock.patch.object(QuickEval, "answer", answer)


class Answers(Looking):
    """What is answered, and in which form."""

    def test_the_output_is_the_same_bytes_but_for_yes_no_or_void(self):
        said = {}
        for answer, rate, fails in (("yes", 1.0, set()), ("no", 0.5, set()), ("void", 1.0, {("v1", 3)})):
            self.git("checkout", "-q", "main")
            self.keep("v1", rate, form=answer)
            restore = self.snapshot() if answer == "yes" else restore  # noqa: F821
            for form in FORMS:
                QuickEval.fails = fails
                done = run_cli("look", *form)
                self.assertEqual((done.status, done.stderr), (0, ""))
                self.assertIn(f'"{answer}"', done.stdout)
                said.setdefault(form, set()).add(done.stdout.replace(f'"{answer}"', '"…"'))
                if answer == "yes":
                    restore()
        self.assertEqual({form: len(texts) for form, texts in said.items()}, dict.fromkeys(FORMS, 1), said)
        self.assertEqual([body["answer"] for body in self.ledger()], ["no", "no", "void", "void"])

    def test_the_answer_is_that_of_the_larger_p_on_clusters_at_the_level_of_the_look(self):
        self.keep("v1", 1.0)
        self.assertEqual(self.look(), "yes")
        body = self.bodies("look")[0]
        self.assertEqual({key: body[key] for key in ("look", "yes_before", "level", "leader", "reference")}, {"look": 1, "yes_before": 0, "level": 0.005, "leader": "v1", "reference": "baseline"})
        store = kaizen.FolderStore(kaizen.find_workspace()._replace(store_folder=str(self.sealed / "looks/1")))
        runs = {store.read(run)["variant"]: run for run in store.ids()}
        sides = [kaizen.arm_scores(store, runs[name]) for name in ("v1", "baseline")]
        self.assertEqual({len(scores) for each in sides for scores in each.values()}, {4})
        self.assertEqual((len(sides[0]), all(name.startswith(CANARY) for name in sides[0])), (HELD, True))
        variance, passes = kaizen.run_terms(kaizen.campaign_state(self.campaign), [kaizen.noise_floor(side) for side in sides])
        found = kaizen.look_p_value(*sides, {}, variance, (4, 4), passes)
        self.assertEqual(found.p, max(found.p_sign_flip, found.p_student))
        self.assertLessEqual(found.p, 0.005)
        self.assertFalse(set(body) & {"p", "gain", "n", "cost_usd", "seconds"})

    def test_levels_follow_the_number_of_the_look_and_the_yes_before_it(self):
        for name in ("v1", "v2", "v3"):
            self.keep(name, 1.0, made=name)
            with mock.patch.object(kaizen, "look_p_value", lambda *args: mock.Mock(p=0.0005)):
                self.assertEqual(self.look(), "yes")
        # alpha(t, j) = 0.05 / 5 · 2^-(j+1) / C(t-1, j)
        self.assertEqual([body["level"] for body in self.ledger()], [0.005, 0.0025, 0.00125])

    def test_a_p_that_cannot_be_had_is_void(self):
        self.keep("v1", 1.0)
        with mock.patch.object(kaizen, "look_p_value", lambda *args: mock.Mock(p=None)):
            self.assertEqual(self.look(), "void")


class Refusals(Looking):
    """What is refused spends nothing."""

    def test_without_a_leader_beyond_the_reference_there_is_nothing_to_claim(self):
        self.refused("nothing_to_claim", "look")
        self.assertEqual(self.ledger("begun"), [])

    def test_the_last_look_is_kept_for_the_close(self):
        self.keep("v1", 0.5)
        for _ in range(4):
            self.assertEqual(self.look(), "no")
        self.refused("look_reserved", "look")
        workspace = kaizen.find_workspace()
        self.assertEqual(kaizen.take_look(workspace, self.campaign, is_closing=True), "no")
        self.refused("no_looks_left", "look")
        with self.assertRaises(kaizen.RefusedError) as caught:
            kaizen.take_look(workspace, self.campaign, is_closing=True)
        self.assertEqual(caught.exception.reason, "no_looks_left")
        self.assertEqual(len(self.ledger()), 5)

    def test_where_the_holdout_cannot_be_reached_no_look_is_spent(self):
        self.keep("v1", 1.0)
        self.sealed.rename(self.folder / "away")
        self.sealed.parent.mkdir(exist_ok=True)
        self.refused("sealed_missing", "look")
        (self.folder / "away").rename(self.sealed)
        self.assertEqual(self.ledger("begun"), [])

    def test_a_pause_in_the_middle_is_gone_on_with(self):
        self.keep("v1", 1.0)
        pause = self.repo / "kaizen/.kaizen/PAUSE"
        given = QuickEval.answer

        def answer(quick, asked, session):
            write(pause, "")
            return given(quick, asked, session)

        with mock.patch.object(QuickEval, "answer", answer):
            document = self.refused("paused", "look")
        self.assertNotIn("1", document["message"])
        os.remove(pause)
        QuickEval.asked.clear()
        self.assertEqual(self.look(), "yes")
        self.assertEqual(len(QuickEval.asked), 7, "what was answered is not asked again")
        self.assertEqual((len(self.ledger("begun")), len(self.ledger())), (1, 1))


class Voids(Looking):
    """Whatever goes wrong is void, spent, and told to nobody."""

    def void(self, reason):
        self.assertEqual(self.look(), "void")
        body = self.ledger()[-1]
        self.assertEqual((body["answer"], body["void_reason"]), ("void", reason))
        self.assertEqual(self.bodies("look")[-1]["answer"], "void")

    def test_errors_with_text_of_the_holdout_do_not_come_through(self):
        self.keep("v1", 1.0)
        for error in (ValueError(f"{CANARY} in an error"), kaizen.InputError(f"{CANARY} in a message"), RecursionError(CANARY)):
            with self.failing(error):
                self.void(type(error).__name__)
        text = "".join(path.read_text(errors="replace") for path in (self.repo / "kaizen/.kaizen").rglob("*") if path.is_file())
        self.assertNotIn(CANARY, text)

    def test_an_arm_that_crashed_or_lacks_answers(self):
        self.keep("v1", 1.0)
        QuickEval.fails = {("baseline", 4)}
        self.void("crashed")

    def test_a_holdout_that_was_changed(self):
        self.keep("v1", 1.0)
        path = self.sealed / "holdout.jsonl"
        write(path, path.read_text().replace("please", "thanks", 1))
        self.void("sealed_changed")
        self.assertEqual([body["kind"] for body in self.bodies("integrity")], ["sealed_changed"])

    def test_a_leader_that_holds_text_of_the_holdout(self):
        held = json.loads((self.sealed / "holdout.jsonl").read_text().splitlines()[3])
        self.keep("v1", 1.0, examples=[f"when it says {held['input']} then {held['expected']}, and so on and on"])
        self.void("contaminated")
        self.assertEqual(self.bodies("integrity")[0]["verdict"], "void")


class Kills(Looking):
    """Who kills a look gets no other one."""

    def test_a_look_that_is_killed_at_any_write_gives_the_same_answer_and_is_spent_once(self):
        self.keep("v1", {"": 0.6, "dates": 1.0})
        workspace = kaizen.find_workspace()
        restore = self.snapshot()

        def again():
            answer = kaizen.take_look(workspace, self.campaign)
            return answer, kaizen.canonical_json(self.bodies("look"))

        with killed_at(0) as count:
            expected = again()
        for number in [*range(1, 8), *range(9, count[0], 53), *range(count[0] - 5, count[0] + 1)]:
            restore()
            with killed_at(number), self.assertRaises(Killed):
                again()
            self.assertEqual(again(), expected, f"write {number}")
            self.assertEqual((len(self.ledger("begun")), len(self.ledger())), (1, 1), f"write {number}")
            runs = self.sealed / "looks/1/runs"
            self.assertEqual(sorted(os.listdir(runs)), ["r0001", "r0002"], f"write {number}: no other draw")
            self.assertEqual({len((runs / run / "items.jsonl").read_text().splitlines()) for run in os.listdir(runs)}, {4 * HELD})

    def test_without_room_in_the_sealed_place_the_evidence_is_deleted_and_a_killed_look_is_void(self):
        self.keep("v1", 1.0)
        with mock.patch.object(kaizen, "can_write_sealed", lambda campaign: False):
            self.assertEqual(self.look(), "yes")
            self.assertEqual((self.ledger("begun")[0]["kept"], (self.sealed / "looks").exists(), self.left_behind()), (False, False, []))
            self.keep("v2", 1.0, other=1)
            with killed_at(40), self.assertRaises(Killed):
                kaizen.take_look(kaizen.find_workspace(), self.campaign)
            self.assertEqual(self.look(), "void")
            self.assertEqual(self.ledger()[-1]["void_reason"], "broken_off")
        self.assertEqual([body["look"] for body in self.ledger()], [1, 2])

    def test_a_look_that_was_begun_keeps_its_commits_when_the_leader_changes(self):
        first = self.keep("v1", 1.0)
        with killed_at(60), self.assertRaises(Killed):
            kaizen.take_look(kaizen.find_workspace(), self.campaign)
        self.keep("v2", 0.1)
        self.assertEqual(self.look(), "yes")
        self.assertEqual(self.bodies("look")[0]["leader_commit"], first)

    def test_a_ledger_that_was_cut_is_no_way_to_another_look(self):
        self.keep("v1", 0.5)
        self.assertEqual(self.look(), "no")
        path = self.campaign.file("holdout.jsonl")
        text = kaizen.read_bytes(path)
        os.remove(path)
        self.refused("ledger_changed", "look")
        write(path, text)
        with mock.patch.object(kaizen, "can_write_sealed", lambda campaign: False):
            with killed_at(60), self.assertRaises(Killed):
                kaizen.take_look(kaizen.find_workspace(), self.campaign)
            write(path, text)  # the line that says a look was begun has no copy here
            self.refused("ledger_changed", "look")
        self.assertEqual({body["kind"] for body in self.bodies("integrity")}, {"ledger_changed"})


class Canary(measuring_fixture.CampaignLab):
    """A whole campaign with evals that print all they see."""

    def test_nothing_of_the_holdout_is_printed_or_lies_outside_the_sealed_place(self):
        printed = []

        def say(*words):
            for form in FORMS:
                done = run_cli(*words, *form)
                self.assertNotEqual(done.status, 70, done.stderr)
                printed.append(done.stdout + done.stderr)

        self.begin()
        say("noise", "--system", "demo")
        say("plan", "--system", "demo", "--effect", "0.1")
        self.variant("v1", 1.0)
        say("run", "--system", "demo", "--variant", "v1", "--hypothesis", "h", "--label", "dates")
        say("replicate", "v1")
        kaizen.record(self.campaign, "keep", variant="v1", commit=self.git("rev-parse", "HEAD"), idea="", how="kept", runs=["r0006"], gain=0.5, se=0.1, lesson="")
        say("look")
        self.assertEqual([body["answer"] for body in self.bodies("look")], ["yes"])
        self.variant("v2", 0.9, crash=True)
        for words in (("log",), ("status",), ("campaign", "status"), ("next",), ("show", "r0003"), ("look",), ("resume", "r0003")):
            say(*words)
        self.assertFalse([text for text in printed if CANARY in text])
        for place, folders, names in os.walk(self.repo):
            if place == str(self.repo):
                folders.remove(".git")  # git keeps what was committed before the opening
            for name in names:
                with open(os.path.join(place, name), "rb") as stream:
                    self.assertNotIn(CANARY.encode(), stream.read(), os.path.join(place, name))
        logs = (self.sealed / "looks/1/runs/r0001/out.log").read_text()
        self.assertIn(CANARY, logs, "what the eval prints about the holdout goes to the sealed place")
        self.assertEqual(self.left_behind(), [])
