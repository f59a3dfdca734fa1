"""A repository with an open campaign of the system `demo`, for tests; its journal is written by hand."""

import json
import os

import support
from campaign_histories import History
from lab_fixture import Lab
from support import kaizen, write, write_lines

LABELLED = [{"id": f"i{number}", "input": number, "expected": number, "tags": ["dates"] if number < 7 else ["money"]} for number in range(1, 9)]


class CampaignLab(Lab):
    """`self.history` is the campaign c1, opened at the commit `self.base`; `self.variant(name)` commits a variant."""

    def setUp(self):
        super().setUp()
        write_lines(self.repo / "kaizen/systems/demo/items.jsonl", LABELLED)
        write(self.repo / ".gitignore", "*.secret\n")
        write(self.repo / "src/prompt.txt", "be kind\n")
        self.base = self.commit("the system")
        self.history = History(str(self.repo / "kaizen/.kaizen"), self.base)

    def variant(self, name, text=""):
        """Commits a change of the prompt; the hash."""
        write(self.repo / "src/prompt.txt", text or f"be {name}\n")
        return self.commit(name)

    def make_run(self, run, variant, commit, scores=None, state="completed", purpose="replicate"):
        """Puts the run *run* into the store, with the *scores* {item: [score of each pass]}, as the engine would have; its `items`."""
        scores = scores or {item["id"]: [1.0] for item in LABELLED}
        passes = max(map(len, scores.values()))
        document = {
            "version": 1, "id": run, "system": "demo", "variant": variant, "title": "", "description": "", "hypothesis": "", "diagnostic": False,
            "limited": False, "max_items": None, "commit": {"hash": commit, "branch": None, "is_detached": True}, "tree": "t", "patch_id": None,
            "hashes": {"dataset": "d", "eval": "e", "system": "s", "locked": {}},
            "population": {"dataset_size": len(scores), "selected_item_ids": list(scores)}, "passes": passes, "seed": 1,
            "created_at": "2026-01-01T00:00:00.000Z", "metric": {"name": "accuracy", "aggregation": "mean", "direction": "higher"},
            "verdict": "unjudged", "separation": "own_process", "engine": "e", "mark": "m", "attempt": 1, "state": "running", "message": "",
            "campaign": {"id": "c1", "epoch": 1, "purpose": purpose, "measure": purpose, "idea": "", "label": "", "pass_from": 1, "range": [0, 1]},
        }  # fmt: skip
        folder = self.run_folder(run)
        os.makedirs(folder)
        write(folder / "run.json", json.dumps(document))
        with self.store.writing(run) as writer:
            for item, values in scores.items():
                for number, score in enumerate(values, 1):
                    writer.item({"item": item, "trial": 1, "pass": number, "attempt": 1, "status": "ok", "score": score, "metrics": {}, "cost_usd": None, "latency_ms": 1.0})
            items = writer.sealed_items()
            if state != "running":
                result = {"status": "available", "value": 1.0, "n": len(scores), "planned": len(scores)}
                writer.finish(state, items=items, counts={}, result=result, cost_usd=None, metrics={}, seconds=1.0, reason=None, started_at=None)
        return items

    def measured(self, variant, commit, verdict="keepable", z=1.5, scores=None, **more):
        """A variant that was screened and replicated, with its runs in the store."""
        self.reload()
        self.history.screen(variant, commit=commit, **{key: more.pop(key) for key in ("idea", "memorised") if key in more})
        runs = self.history.replicate(variant, verdict, z, commit, **more)
        sealed = {}
        for side, run in runs.items():
            sealed[run] = self.make_run(run, variant, commit if side == "candidate" else self.base, scores)
        for event in self.history.campaign.events:
            if event["type"] == "run_ended" and event["body"]["run"] in sealed:
                run = event["body"]["run"]
                event["body"].update(items=sealed[run], terms=kaizen.terms_of(self.store.read(run)))
        self.rewrite()
        return runs

    def reload(self):
        """Reads what commands have written meanwhile."""
        self.history.campaign.events[:] = kaizen.read_chain(self.history.campaign.file("journal.jsonl"))

    def rewrite(self):
        """Writes the journal anew from the events, which a test has changed."""
        events = self.history.campaign.events[:]
        os.remove(self.history.campaign.file("journal.jsonl"))
        del self.history.campaign.events[:]
        for event in events:
            self.history.say(event["type"], **event["body"])

    def say(self, *words, status=0, reason=None):
        """The document of `kaizen words… --json`, which must end with *status*."""
        done = support.run_cli(*words, "--json")
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        if reason is not None:
            self.assertEqual(document["reason"], reason, document)
        return document

    @property
    def state(self):
        return kaizen.campaign_state(kaizen.load_campaign(kaizen.find_workspace(str(self.repo)), "c1"))
