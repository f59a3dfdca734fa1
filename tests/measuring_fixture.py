"""A campaign of the system `demo` whose agent is one number: how much of each item passes; and fast evals."""

import contextlib
import json
import os
import random
import re
import shutil
import tempfile
import unittest
from pathlib import Path
from typing import ClassVar
from unittest import mock

import lab_fixture
from lab_fixture import PRELUDE
from support import kaizen, run_cli, write, write_lines

CANARY = "kanarienvogel"
# An item passes when its seed's draw is below what the agent says: the same draws for every variant.
SEEDED = """\
import random
rate = json.load(open("agent.json"))["rate"]
for item in items:
    case = cases[item["id"]]
    better = rate if isinstance(rate, (int, float)) else rate.get((case.get("tags") or [""])[0], rate[""])
    ok(item, int(random.Random(f"{item['seed']}{item['id']}").random() < better), cost_usd=0.001, latency_ms=1.0, metrics={"safe": 1})
say('end')
"""
CASES = """\
cases = {case["id"]: case for case in map(json.loads, open(request["dataset"]))}
print("cases", " ".join(str(case["input"]) for case in cases.values()))
"""
DEVELOPMENT, HELD = 30, 30


def case(number):
    """A case: of the first third of a side the tag is `dates`; those of the holdout hold the canary."""
    is_held = number > DEVELOPMENT
    word = f"{CANARY} of case {number}" if is_held else f"question {number}"
    own = {"tags": ["dates"]} if (number - 1) % DEVELOPMENT < 10 else {"tags": ["plain"]}
    split = "holdout" if is_held else "development"
    return {"id": f"{CANARY}{number}" if is_held else f"d{number}", "input": f"{word}, please", "expected": word, "split": split, **own}


class CampaignLab(lab_fixture.Lab):
    """A test in a repository whose campaign c1 is open, made once; `self.sealed` is its sealed place."""

    made_campaign: "Path | None" = None
    is_begun = False  # with baseline and noise floor, from answers in this process

    @staticmethod
    def forget_campaign():
        if CampaignLab.made_campaign is not None:
            shutil.rmtree(CampaignLab.made_campaign)
            CampaignLab.made_campaign = None

    def setUp(self):
        self.fix_draws()
        super().setUp()
        self.commits.clear()
        (self.folder / "tmp").mkdir()
        patch = mock.patch.object(tempfile, "tempdir", str(self.folder / "tmp"))
        patch.start()
        self.addCleanup(patch.stop)
        if self.is_begun:
            QuickEval.fails, QuickEval.asked, QuickEval.polls = set(), [], False
            self.quick()
            self.quick_exports()

    def fix_draws(self):
        """From now on a measurement's seed hangs on which commit of the test it measures, not on its hash: a test always draws the same.

        The hash is another every time, by salt, time and Python: tests would hang on luck.
        """
        self.commits = {}
        measure_seed = kaizen.measure_seed

        def number(found):
            return str(self.commits.setdefault(found[0], len(self.commits)))

        def fixed(campaign, measure):
            return measure_seed(campaign, measure._replace(key=re.sub("[0-9a-f]{40}", number, measure.key)))

        patch = mock.patch.object(kaizen, "measure_seed", fixed)
        patch.start()
        self.addCleanup(patch.stop)

    def make_repository(self):
        if CampaignLab.made_campaign is None:
            made = Path(os.path.realpath(tempfile.mkdtemp(prefix="kaizen-campaign-")))
            super().make_repository()
            os.chdir(self.repo)
            self.prepare()
            self.open_campaign(made / "sealed")
            shutil.copytree(self.repo, made / "repo", symlinks=True)
            shutil.copytree(made / "sealed", made / "sealed-as-made", symlinks=True)
            CampaignLab.made_campaign = made
            unittest.addModuleCleanup(CampaignLab.forget_campaign)
            shutil.rmtree(self.repo)
        made = CampaignLab.made_campaign
        if self.is_begun and not (made / "begun").exists():
            self.copy_repository(made / "repo")
            os.chdir(self.repo)
            with mock.patch.dict(kaizen.ITEM_EVALUATORS, {"eval": QuickEval}), mock.patch.object(os, "fsync"):
                self.begin()
            os.chdir(self.folder)
            self.repo.rename(made / "begun")
        self.copy_repository(made / ("begun" if self.is_begun else "repo"))
        self.sealed = made / "sealed"
        shutil.rmtree(self.sealed)
        shutil.copytree(made / "sealed-as-made", self.sealed, symlinks=True)

    def prepare(self):
        """Commits the system: an eval, the agent, and cases of both sides."""
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", map(case, range(1, DEVELOPMENT + HELD + 1)))
        write(self.repo / "kaizen/systems/demo/eval.py", PRELUDE + CASES + SEEDED)
        self.write_system("mutable:\n  - agent.json\n  - src/**\n")
        self.write_agent(0.5)
        self.commit("system")

    def open_campaign(self, sealed, *options):
        done = run_cli("campaign", "open", "--system", "demo", "--sealed", str(sealed), "--json", *options)
        self.assertEqual(done.status, 0, done.stdout + done.stderr)

    # --- Acting --------------------------------------------------------------------------

    def write_agent(self, rate, **more):
        write(self.repo / "agent.json", json.dumps({"rate": rate, **more}))

    def variant(self, name, rate, **more):
        """Commits an agent of this *rate*; the hash."""
        self.write_agent(rate, name=name, **more)
        return self.commit(name)

    def kaizen(self, *argv, status=0):
        """The document of a command that must end with *status*."""
        done = run_cli(*argv, "--json")
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def begin(self, noise=True):
        """Baseline and noise floor."""
        self.kaizen("run", "--system", "demo", "--variant", "baseline")
        if noise:
            self.kaizen("noise", "--system", "demo", "--passes", "2")

    def screen(self, name, *options, status=0):
        return self.kaizen("run", "--system", "demo", "--variant", name, "--hypothesis", "if so, then better", *options, status=status)

    # --- Looking -------------------------------------------------------------------------

    @property
    def campaign(self):
        return kaizen.load_campaign(kaizen.find_workspace(str(self.repo)), "c1")

    def bodies(self, kind):
        return [event["body"] for event in self.campaign.events if event["type"] == kind]

    def keep(self, name="v1", rate=0.95, **more):
        """Commits a variant and makes it the leader by a word in the journal; the hash."""
        commit = self.variant(name, rate, **more)
        body = {"variant": name, "commit": commit, "idea": "", "how": "kept", "runs": self.bodies("noise")[0]["runs"], "gain": 0.1, "se": 0.05}
        kaizen.record(self.campaign, "keep", **body, accepted_memorised=None, lesson="", best_run="", head=commit, ref=None)
        return commit

    def left_behind(self):
        """Work folders of this process that were not removed."""
        return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("kaizen-work-")]

    def amend(self, **terms):
        """From now on the campaign has these terms, as if it had opened with them."""
        given = kaizen.load_campaign

        def amended(workspace, name):
            campaign = given(workspace, name)
            return campaign._replace(contract={**campaign.contract, **terms})

        patch = mock.patch.object(kaizen, "load_campaign", amended)
        patch.start()
        self.addCleanup(patch.stop)

    def quick(self):
        """From now on items are answered in this process, as the eval would."""
        patch = mock.patch.dict(kaizen.ITEM_EVALUATORS, {"eval": QuickEval})
        patch.start()
        self.addCleanup(patch.stop)

    def quick_exports(self):
        """From now on the trees of commits are copies that were made once, and git is not asked for them."""
        made = {}

        @contextlib.contextmanager
        def exported(workspace, checkout, commit, system, folders):
            if commit not in made:
                made[commit] = folders.make() + commit
                kaizen.Export(checkout, commit, made[commit])
                kept = str(self.folder / f"export-{commit}")
                shutil.copytree(made[commit], kept)
                made[commit] = kept
            yield os.path.join(made[commit], "tree"), kaizen.Watch()

        judges, judge_of = {}, kaizen.judge_of

        def judge(workspace, checkout, campaign, folder, others):
            if others or checkout.root != str(self.repo):
                return judge_of(workspace, checkout, campaign, folder, others)
            if not judges:
                judges[0] = judge_of(workspace, checkout, campaign, str(self.folder / "judge-of-all"), others)
            return judges[0]

        patch = mock.patch.multiple(kaizen, exported=exported, judge_of=judge)
        patch.start()
        self.addCleanup(patch.stop)

    def snapshot(self):
        """What puts store and sealed place back to what they are now."""
        store, kept = self.repo / "kaizen/.kaizen", self.folder / "snapshot"
        shutil.copytree(store, kept / "store")
        shutil.copytree(self.sealed, kept / "sealed")

        def restore():
            for place, name in ((store, "store"), (self.sealed, "sealed")):
                shutil.rmtree(place)
                shutil.copytree(kept / name, place)

        return restore


class Killed(BaseException):
    """In place of kill -9."""


class QuickEval(kaizen.ItemEvaluator):
    """Does in this process what SEEDED does in its own. `fails` are (variant, pass) whose rounds crash."""

    separation = "own_process"
    fails: ClassVar[set[tuple[str, int]]] = set()
    asked: ClassVar[list[tuple[str, int]]] = []
    polls = False  # after each answer, as while an eval speaks

    def __init__(self, workspace, system):
        pass

    def answer(self, asked, session):
        QuickEval.asked.append((session.variant, asked[0].pass_number))
        with open(os.path.join(session.tree, "agent.json"), encoding="utf-8") as stream:
            agent = json.load(stream)
        rate = agent["rate"]
        session.take({"event": "start", "total": len(asked)})
        for each in asked:
            tag = (each.case.document.get("tags") or [""])[0]
            better = rate if isinstance(rate, (int, float)) else rate.get(tag, rate[""])
            score = int(random.Random(f"{each.seed}{each.item}").random() < better)
            told = {"metrics": {"safe": 1, **agent.get("metrics", {})}, "cost_usd": agent.get("cost", 0.001), "latency_ms": 1.0}
            session.take({"event": "item", "id": each.item, "trial": each.trial, "status": "ok", "score": score, **told})
            end = session.poll() if self.polls else None
            if end:
                return end
            if (session.variant, each.pass_number) in self.fails:
                return kaizen.RunEnd("crashed", "exit_code", "the eval ended with exit code 1")
        session.take({"event": "end"})
        return kaizen.ENDED_WELL


@contextlib.contextmanager
def killed_at(number):
    """While the block runs, the *number*-th write of a journal or of run.json raises Killed before it happens; tells how many there were."""
    count = [0]

    def deadly(function):
        def call(*args, **options):
            count[0] += 1
            if count[0] == number:
                raise Killed
            return function(*args, **options)

        return call

    places = ((kaizen.ChainLog, "append"), (kaizen.FolderWriter, "item"), (kaizen.FolderWriter, "update"), (kaizen.FolderStore, "create"))
    with contextlib.ExitStack() as patches:
        for owner, name in places:
            patches.enter_context(mock.patch.object(owner, name, deadly(getattr(owner, name))))
        yield count
