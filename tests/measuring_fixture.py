"""A campaign of the system `demo` whose agent is one number: how much of each item passes; and fast evals."""

import json
import os
import shutil
import tempfile
import unittest
from pathlib import Path

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

    @staticmethod
    def forget_campaign():
        if CampaignLab.made_campaign is not None:
            shutil.rmtree(CampaignLab.made_campaign)
            CampaignLab.made_campaign = None

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
        else:
            self.copy_repository(CampaignLab.made_campaign / "repo")
        made = CampaignLab.made_campaign
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

    def left_behind(self):
        """Work folders of this process that were not removed."""
        return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("kaizen-work-")]
