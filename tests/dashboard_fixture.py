"""Histories written file by file, without running anything: of any size, with any text in them, every hash right.

    plan = [anchor("v1", {"a": (0, 3)}), compared("v2", {"a": (3, 3)}, {"a": (0, 3)}, promote=True)]
    write_history(folder, plan)
"""

import json
import os
import random
from fractions import Fraction
from pathlib import Path

from support import kaizen

PENDING = {"status": "pending", "decided_by": "", "decided_at": "", "rationale": "", "conditions": [], "via": ""}
ACCEPTED = {**PENDING, "status": "accepted", "decided_by": "Ada", "decided_at": "2026-02-01T10:00:00.000Z", "rationale": "reads well"}
REJECTED = {**ACCEPTED, "status": "rejected", "rationale": "loses one"}


def anchor(version, cells, **fields):
    """A run that was measured alone; *cells* are (passed, valid) by case."""
    return {"kind": "anchor", "version": version, "cells": cells, **fields}


def compared(version, cells, before, **fields):
    """A candidate with *cells*, compared with the cells *before*."""
    return {"kind": "record", "version": version, "cells": cells, "before": before, **fields}


def rates_of(cells, cost=None, time=None):
    """What comparison.json says of a stage; the interval is made up, it is only shown."""
    measured = [Fraction(passed, valid) for passed, valid in cells.values() if valid]
    rate = sum(measured) / len(measured) if measured else None
    passed, valid = (sum(each[place] for each in cells.values()) for place in (0, 1))
    return {
        "passed": passed, "failed": valid - passed, "errors": 0, "planned": valid, "not_run": 0, "cases": len(cells), "cases_measured": len(measured),
        "rate": None if rate is None else {"numerator": rate.numerator, "denominator": rate.denominator, "value": float(rate)},
        "low": None if rate is None else max(0.0, float(rate) - 0.05), "high": None if rate is None else min(1.0, float(rate) + 0.05),
        "n_eff": float(valid), "mean_score": None, "scored": 0, "mean_cost_usd": cost, "priced": valid, "median_duration_ms": time, "timed": valid,
    }  # fmt: skip


def change_of(before, after):
    """The change of a case by formats.md 1.5."""
    if not before[1] or not after[1]:
        return "not_comparable"
    old, new = Fraction(*before), Fraction(*after)
    if old == 1 and new == 0:
        return "regressed"
    if old <= Fraction(1, 2) < new:
        return "improved"
    return "weakened" if new < old else "strengthened" if new > old else "unchanged"


def run_parts(number, plan):
    """(fields of the manifest, files by name) of the run that *plan* tells of."""
    cells, before, holdout = plan["cells"], plan.get("before"), plan.get("holdout", ())
    changes = {name: change_of(before[name], cell) if before else None for name, cell in cells.items()}
    rows = [[name, int(name in holdout), changes[name], *(before[name] if before else (None, None)), *cell] for name, cell in cells.items()]
    cases = "".join(json.dumps({"id": name, "input": name, "split": "holdout" if name in holdout else "development"}) + "\n" for name in cells)
    kinds = ("improved", "strengthened", "unchanged", "weakened", "regressed", "not_comparable")
    counts = {"cases": len(cells), **({kind: sum(1 for each in changes.values() if each == kind) for kind in kinds} if before else {})}
    evidence = f"sha256:{number:064x}"
    rates = {"candidate": rates_of(cells, plan.get("cost"), plan.get("time"))}
    delta, recommendation, reasons = None, None, []
    stages = {"candidate": {"stage": "candidate", "observations_sha256": digest_of(cells), "results_sha256": digest_of(cells), "repetitions": 1}}
    if before:
        rates["baseline"] = rates_of(before)
        stages["baseline"] = {**stages["candidate"], "stage": "baseline", "observations_sha256": digest_of(before)}
        moved = Fraction(*(rates["candidate"]["rate"][key] for key in ("numerator", "denominator")))
        moved -= Fraction(*(rates["baseline"]["rate"][key] for key in ("numerator", "denominator")))
        delta = {"numerator": moved.numerator, "denominator": moved.denominator, "value": float(moved)}
        recommendation = "rejected" if counts["regressed"] else "eligible"
        reasons = [{"code": "regressions", "rule": 3, "text": f"{counts['regressed']} regressions (at most 0)"}] if counts["regressed"] else []
    decision = {**plan["decision"], "evidence": evidence} if plan.get("decision") else None
    cohort = {"dataset_fingerprint": kaizen.fingerprint([cases]), "evaluator_fingerprint": "sha256:" + "0" * 64, "evaluators": {}, "cases": len(cells), "holdout": len(holdout)}
    fields = {
        "agent_version": plan["version"], "improvement": {"name": plan.get("improvement", "refund"), "path": f"improvements/{plan.get('improvement', 'refund')}"},
        "cohort": cohort, "stages": stages, "evidence": evidence if before else None, "recommendation": plan.get("recommendation", recommendation), "reasons": plan.get("reasons", reasons),
        "counts": plan.get("counts", counts), "rates": rates, "delta": delta, "delta_reason": None, "metrics": [], "decision": decision,
    }  # fmt: skip
    files = {"cases.jsonl": cases, "outcomes.json": json.dumps({"version": 1, "cases": rows}, separators=(",", ":")), **plan.get("files", {})}
    return fields, files


def digest_of(cells):
    """A digest that stands for the observations of *cells*."""
    return kaizen.sha256_hex(json.dumps(cells).encode())


def write_history(folder, plans):
    """Writes the history of *plans* as *folder*; returns the ids of the runs."""
    folder, entries, names = Path(folder), [], []
    folder.mkdir(parents=True)
    (folder / ".gitattributes").write_text(kaizen.ATTRIBUTES)
    kept = {}

    def store(name, text):
        key = kaizen.sha256_hex(text.encode())
        if key not in kept:
            kept[key] = kaizen.store_object(str(folder), kaizen.measured_source(kaizen.Source(name, content=text.encode())))
        return {**kept[key], "name": name}

    for plan in plans:
        number = len(entries) + 1
        at = f"2026-{1 + number // 28 % 12:02d}-{1 + number % 28:02d}T10:00:00.000Z"
        fields, files = run_parts(number, plan)
        run_id = f"{number:04d}-{kaizen.slug(plan.get('label', plan['version']))}"
        head = {"version": 1, "id": run_id, "kind": plan["kind"], "label": plan.get("label", plan["version"]), "recorded_at": at, "engine": "0"}
        text = json.dumps({**head, **fields, "files": [store(name, text) for name, text in files.items()]}, indent=1) + "\n"
        os.makedirs(folder / "runs" / run_id)
        (folder / "runs" / run_id / "manifest.json").write_text(text)
        entries.append(kaizen.sealed_entry(entries, at, plan["kind"], run_id, manifest=kaizen.sha256_hex(text.encode())))
        names.append(run_id)
        if plan.get("promote"):
            stated = {**ACCEPTED, "evidence": fields["evidence"]}
            former = next((entry["run"] for entry in reversed(entries) if entry["kind"] == "promotion"), None)
            decision = {"file": store("decision.yaml", "status: accepted\n"), "stated": stated}
            entries.append(kaizen.sealed_entry(entries, at, "promotion", run_id, decision=decision, replaces=former))
    kaizen.write_ledger(str(folder), entries)
    return names


def large_plans(runs=500, cases=2000, cohorts=20, trials=3, seed=1, evidence=0):
    """*runs* runs in *cohorts* cohorts that share most of their *cases* cases; each fourth candidate is promoted, the last is pending."""
    chance = random.Random(seed)
    plans, version = [], 0
    for cohort in range(cohorts):
        names = [f"case-{number + cohort * 5:05d}-of-some-length" for number in range(cases)]
        holdout = frozenset(name for number, name in enumerate(names) if (number + cohort * 5) % 50 == 7)
        skill = {name: chance.random() ** 0.3 for name in names}

        def measured(skill=skill):
            return {name: (sum(chance.random() < value for _ in range(trials)), trials) for name, value in skill.items()}

        champion = measured()
        shared = {"holdout": holdout, "improvement": f"step-{cohort:02d}"}
        plans.append(anchor(f"v{version}", champion, label=f"anchor of {cohort}", cost=0.002, time=900, **shared))
        for number in range(runs // cohorts - 1):
            version += 1
            skill.update({name: min(1.0, skill[name] + 0.02) for name in names[number::40]})
            cells = measured()
            more = {"files": {"candidate.jsonl": "".join(chance.choice("0123456789abcdef") * 8 for _ in range(evidence // 8))}} if evidence else {}
            is_good = number % 4 == 3
            plan = compared(f"v{version}", cells, champion, label=f"try {version}", cost=0.002 + 0.00001 * chance.random(), time=900 + 100 * chance.random(), **shared, **more)
            plan.update({"promote": True, "recommendation": "eligible", "reasons": [], "decision": ACCEPTED} if is_good else {"decision": REJECTED})
            plans.append(plan)
            champion = cells if is_good else champion
    plans[-1].update(decision=PENDING, promote=False)
    return plans
