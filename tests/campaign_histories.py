"""Histories of campaigns made up for tests: a contract, and journals of any length, by hand or at random."""

import contextlib
import json
import os

from support import kaizen, write

CONTRACT = {
    "version": 1, "campaign": "c1", "system": "demo", "epoch": 1,
    "metric": {"name": "accuracy", "aggregation": "mean", "direction": "higher", "minimum": 0, "maximum": 1},
    "min_effect": 0.02, "target": None, "guards": [], "mutable": ["src/**"], "locked": {},
    "hashes": {"dataset": "d", "eval": "e", "system": "s"}, "dataset": {"path": "kaizen/systems/demo/items.jsonl", "items": 60, "clusters": 60},
    "base_commit": "0" * 40, "holdout": {"cases": 100, "clusters": 100, "seal": {"salt": "", "sha256": []}, "level": "honour", "level_reason": ""},
    "looks": {"number": 5, "alpha": 0.05, "trials": 4}, "replicate": {"passes": 3, "extended": 6}, "label_trials": 3,
    "seed": 1, "slots": 1, "budget": {"variants": 40, "evaluations": None, "usd": None, "hours": None},
    "stop": {"plateau": 12, "categories": 3, "saturation": 0.95}, "accepts_unresolvable": "",
}  # fmt: skip


class History:
    """A campaign in the folder *store* that is written event by event."""

    def __init__(self, store, base="0" * 40, **contract):
        self.folder = os.path.join(store, "campaigns", "c1")
        os.makedirs(self.folder, exist_ok=True)
        self.contract = {**CONTRACT, "base_commit": base, **contract}
        text = json.dumps(self.contract)
        write(os.path.join(self.folder, "contract.json"), text)
        self.campaign = kaizen.Campaign("c1", "demo", self.contract, self.folder, [])
        self.runs = 0
        self.logs = None  # {journal: its log} while nobody else writes: see `alone`
        self.say(
            "campaign_opened", contract_sha256=kaizen.sha256_hex(text.encode()), commit=base, sealed="/sealed", holdout_key="k",
            inherited={"looks": 0, "yes": 0, "from": []}, level="honour", history_hits=0,
        )  # fmt: skip

    @property
    def state(self):
        return kaizen.campaign_state(self.campaign)

    @contextlib.contextmanager
    def alone(self):
        """While the block runs the journals stay open: they are not read again for each event."""
        self.logs = {}
        try:
            yield
        finally:
            for log in self.logs.values():
                log.close()
            self.logs = None

    def say(self, kind, /, **body):
        if self.logs is None:
            return kaizen.record(self.campaign, kind, **body)
        self.campaign.events.append(self.append("journal.jsonl", kind, **body))
        return self.campaign.events[-1]

    def append(self, name, kind, /, **body):
        if self.logs is None:
            with kaizen.writing_journal(self.campaign, name) as log:
                return log.append(kind, body)
        if name not in self.logs:
            self.logs[name] = kaizen.ChainLog(self.campaign.file(name))
        return self.logs[name].append(kind, body)

    def run(self, purpose, variant, state="completed", commit="", idea="", reason=None, cost=0.5, ends=True):
        """A run that began, and ended unless told otherwise; its id."""
        self.runs += 1
        run = f"r{self.runs:04d}"
        self.say("run_started", run=run, purpose=purpose, variant=variant, idea=idea, commit=commit, tree="t", patch_id=None)
        if ends:
            items = {"lines": 60, "sha256": "x"}
            self.say(
                "run_ended", run=run, purpose=purpose, variant=variant, state=state, reason=reason, items=items, evaluations=60,
                cost_usd=cost, seconds=36.0,
            )  # fmt: skip
        return run

    def begin(self, **noise):
        """Diagnostic, baseline and noise."""
        self.run("diagnostic", "baseline")
        run = self.run("baseline", "baseline")
        self.say("baseline", run=run, commit=self.contract["base_commit"])
        runs = [self.run("noise", "baseline") for _ in range(3)]
        found = {"flip_rate": 0.2, "se_pass": 0.04, "run_variance": 0.0, "mde": {"1": 0.14, "3": 0.08, "6": 0.06}, "is_resolvable": True}
        self.say("noise", runs=runs, passes=3, items=60, **{**found, "accepted": None, **noise})

    def idea(self, number, category="prompt", hypothesis="", label=None):
        name = f"i{number}"
        self.append(
            "ideas.jsonl", "idea", id=name, title=f"idea {number}", hypothesis=hypothesis or f"if number {number} then better",
            category=category, component="prompt", label=label, predict=0.03, source="", similar_to=[],
        )  # fmt: skip
        return name

    def screen(self, variant, verdict="promising", z=1.2, idea="", commit="", state="completed", reason=None, **more):
        run = self.run("screen", variant, state, commit or variant, idea, reason)
        state = self.state
        body = {"gain": 0.04 * z, "se": 0.04, "z": z, "n": 60, "label": None, "label_runs": None, "label_z": None, "memorised": 0}
        self.say("screen", variant=variant, run=run, idea=idea, leader=state.leader.variant, verdict=verdict, race_stopped=False, **{**body, **more})
        return run

    def replicate(self, variant, verdict="keepable", z=1.5, commit="", **more):
        runs = {"candidate": self.run("replicate", variant, commit=commit), "leader": self.run("replicate", "leader")}
        body = {
            "passes": 3, "n": 60, "gain": 0.03 * z, "se": 0.03, "z": z, "p": 0.07, "interval": [0.0, 0.1], "guards": [], "lost_items": [],
            "drift_z": 0.3, "can_simplify": False, "label_z": None, "label_gain": None, "rest_z": None,
        }  # fmt: skip
        self.say("replicate", variant=variant, commit=commit or variant, leader=self.state.leader.variant, runs=runs, verdict=verdict, **{**body, **more})
        return runs

    def keep(self, variant, commit="", gain=0.045, se=0.03, how="kept", lesson="", runs=("r0001",)):
        self.say(
            "keep", variant=variant, commit=commit or variant, idea="", how=how, runs=list(runs), gain=gain, se=se, accepted_memorised=None,
            lesson=lesson, best_run=runs[0],
        )  # fmt: skip

    def discard(self, variant, lesson="it did nothing"):
        state = self.state
        self.say("discard", variant=variant, commit=variant, verdict=state.variant(variant).verdict, lesson=lesson, ref=f"refs/kaizen/c1/{variant}")

    def look(self, answer):
        """One look, in the ledger and in the journal."""
        state = self.state
        count = state.look_count
        body = {
            "look": count.done + 1, "yes_before": count.yes, "level": count.next_level, "answer": answer,
            "leader_commit": state.leader.commit, "reference_commit": state.reference.commit,
        }  # fmt: skip
        self.append("holdout.jsonl", "look", **body, void_reason=None)
        self.say("look", **body, leader=state.leader.variant, reference=state.reference.variant)


def random_history(store, random, steps=40, base="0" * 40):
    """A campaign of *steps* legal steps, drawn by *random*; ended anywhere."""
    history = History(store, base)
    with history.alone():
        return live(history, random, steps)


def live(history, random, steps):
    """*history* after *steps* more of them."""
    stages = [lambda: history.run("diagnostic", "baseline"), None]
    if random.random() < 0.1:
        stages[random.randrange(2)]
        return history
    history.begin(**({"is_resolvable": False} if random.random() < 0.05 else {}))
    number = 0
    for _ in range(steps):
        state = history.state
        waiting = state.undecided()
        roll = random.random()
        if state.closed:
            break
        if waiting:
            variant = waiting[0]
            if variant.verdict == "promising" and (variant.replicate is None or variant.replicate["verdict"] == "extend"):
                history.replicate(variant.name, random.choice(["keepable", "not_replicated", "guard_failed", "extend", "incomplete"]))
                if random.random() < 0.05:
                    history.say("drift", z=3.4, variant=variant.name)
            elif variant.verdict == "promising" and random.random() < 0.8:
                history.keep(variant.name)
            else:
                history.discard(variant.name)
        elif state.is_drifted or not state.stored:
            history.begin()
        elif roll < 0.1 and state.keeps and state.look_count.left > 1:
            history.look(random.choice(["yes", "no", "void"]))
        elif roll < 0.13:
            history.say("note", text="a note", variant=None)
        elif roll < 0.14:
            history.say("integrity", kind="locked_changed", message="eval.py was changed")
        elif roll < 0.16 and state.noes >= 2:
            history.say("overfit_suspected", gain=0.2)
        elif roll < 0.17:
            history.say("closed", reason="asked")
        else:
            number += 1
            idea = history.idea(number, random.choice(["prompt", "tools", "retrieval", "model"]))
            if roll < 0.2:
                history.run("screen", f"v{number:03d}", idea=idea, ends=False)
                continue
            verdict = random.choice(["promising", "promising", "worse", "no_signal", "incomplete", "tainted", "crashed", "void"])
            ended = verdict if verdict in ("incomplete", "tainted", "crashed") else "completed"
            history.screen(f"v{number:03d}", verdict, random.uniform(-2, 2), idea, state=ended, reason="exit_code_1" if ended == "crashed" else None)
    return history
