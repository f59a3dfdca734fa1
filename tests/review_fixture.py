"""Made-up reviews of a support agent: stage files, results and a comparison, in any size.

The same arguments give the same files. Results are written here and not by the evaluators,
so that the page can be tested with every outcome there is.
"""

import json
import os
import random
from types import SimpleNamespace

from support import kaizen

ACCEPTANCE = {
    "maximum_regressions": 0, "maximum_weakened": None, "minimum_improvements": 1, "minimum_pass_rate": None, "minimum_delta": 0,
    "maximum_not_comparable": 0, "maximum_cost_ratio": None, "maximum_latency_ratio": None, "minimum_pass_k": None, "metrics": {},
}  # fmt: skip
EVALUATORS = [
    ("asked_first", "confirmation", "hard"),
    ("right_amount", "number", "gate"),
    ("names_the_order", "contains", "gate"),
    ("within_budget", "budget", "score"),
    ("closes_politely", "contains", "info"),
]
ITEMS = ["rain jacket", "trail shoes", "desk lamp", "kettle", "bike light", "wool blanket", "headphones", "coffee grinder", "backpack", "tent"]
TROUBLES = [
    ("late", "delivery", "My {item} was promised for Tuesday and still is not here. I would like my money back."),
    ("broken", "damage", "The {item} arrived with a crack right through it. Can you refund order {order}?"),
    ("wrong-size", "exchange", "I ordered a {item} and you sent the wrong one. Please refund {amount} or send the right one."),
    ("double-charge", "billing", "You charged me twice for the {item}: {amount} on Monday and {amount} again on Wednesday."),
    ("changed-mind", "return", "I changed my mind about the {item}, it is still in the box. How do I get my money back?"),
    ("gift", "return", "The {item} was a gift and my brother already has one. Order {order}. What can we do?"),
    ("cancel", "billing", "Please cancel order {order} before it ships, I pressed the button by mistake."),
    ("partial", "damage", "One of the two {item}s is fine, the other one does not work. I only want half refunded."),
]
SPLITS = ["development", "development", "development", "regression", "challenge"]


def money(number):
    """'€ 84.90' of a number of cents."""
    return f"€ {number // 100}.{number % 100:02d}"


class Story:
    """One case: its document, and what an agent that behaves in a given way does with it."""

    def __init__(self, number, chance):
        self.slug, self.tag, text = TROUBLES[number % len(TROUBLES)]
        self.item = ITEMS[chance.randrange(len(ITEMS))]
        self.order = f"K-{20000 + number * 37}"
        self.cents = chance.randrange(1900, 18900, 10)
        self.case_id = f"refund-{number + 1:03d}-{self.slug}"
        message = text.format(item=self.item, order=self.order, amount=money(self.cents))
        self.document = {
            "id": self.case_id,
            "input": {"message": message, "customer": {"id": f"C-{4000 + number}", "language": "en"}},
            "expected": {"amount": self.cents / 100, "calls": [{"name": "issue_refund", "args": {"order": self.order, "amount": self.cents / 100}}]},
            "split": SPLITS[number % len(SPLITS)],
            "tags": [self.tag, "vip"] if number % 11 == 3 else [self.tag],
            "source": {"kind": ("production", "expert", "synthetic")[number % 3]},
        }
        if number % 17 == 5:
            self.document["critical"] = True
        self.message = message

    def trial(self, behaviour):
        """(steps, output) of an agent that is 'good', 'hasty' (asks nobody), 'lost' (finds no order) or 'stingy' (wrong amount)."""
        call = {"kind": "tool", "status": "ok"}
        looked = [
            {"kind": "message", "role": "user", "text": self.message},
            {**call, "name": "find_order", "args": {"customer": self.document["input"]["customer"]["id"]}, "result": {"order": self.order, "total": self.cents / 100}},
            {**call, "name": "read_policy", "args": {"topic": self.tag}, "result": "Refund in full within 30 days; ask the customer before any money moves."},
        ]
        if behaviour == "lost":
            output = "I am sorry, I cannot find an order under this account. Could you send me the order number?"
            return [looked[0], {**looked[1], "status": "error", "result": "timeout after 10 s"}, said(output)], output
        amount = self.cents if behaviour != "stingy" else self.cents // 2
        asked = [said(f"I can refund {money(amount)} for the {self.item} (order {self.order}) to your card. Shall I go ahead?"), {"kind": "message", "role": "user", "text": "Yes, please go ahead."}]
        refund = {**call, "name": "issue_refund", "args": {"order": self.order, "amount": amount / 100}, "result": {"refund": f"R-{self.order[2:]}", "state": "booked"}}
        output = (
            f"Done: {money(amount)} for the {self.item} is on its way to your card and should arrive within five working days.\n\n"
            f"Your order: {self.order}\nYour refund: R-{self.order[2:]}\n\nI am sorry for the trouble, and thank you for telling us."
        )
        if behaviour == "hasty":
            output = f"I have refunded {money(amount)} for the {self.item} to your card. It should arrive within five working days.\n\nYour order: {self.order}\n\nIs there anything else I can do for you?"
            return [*looked[:2], refund, said(output)], output
        return [*looked, *asked, refund, said(output)], output


def said(text):
    """A message of the agent."""
    return {"kind": "message", "role": "assistant", "text": text}


def evaluations(story, behaviour, steps, output, cost):
    """What the five evaluators say of a trial."""
    amount = money(story.cents)
    start = output.find(amount)
    found = [{"start": start, "end": start + len(amount)}] if start >= 0 else []
    names = output.find(story.order)
    refund = next((number for number, step in enumerate(steps) if step.get("name") == "issue_refund"), None)
    asked = ("not_applicable", None, "there was no refund to ask about", []) if refund is None else ("pass", 1.0, "the customer said yes to this refund in the message before it", [{"step": refund - 1}])
    if behaviour == "hasty":
        asked = ("fail", 0.0, "the refund was booked before the customer was asked", [{"step": refund}])
    rows = [
        asked,
        ("pass", 1.0, f"{amount} is named", found) if found else ("fail", 0.0, f"{amount} is not named in the answer", []),
        ("pass", 1.0, "the order number is named", [{"start": names, "end": names + len(story.order)}]) if names >= 0 else ("fail", 0.0, f"'{story.order}' is not in the answer", []),
        ("pass", 1.0, f"{len(steps)} steps, at most 12", []),
        ("pass", 1.0, "'thank you' found", []) if "thank you" in output else ("fail", 0.0, "'thank you' is not in the answer", []),
    ]
    return [
        {"id": name, "type": kind, "severity": severity, "status": status, "score": score, "value": len(steps) if name == "within_budget" else None, "reason": reason, "evidence": evidence}
        for (name, kind, severity), (status, score, reason, evidence) in zip(EVALUATORS, rows, strict=True)
    ]


def errored(message):
    """What the five evaluators say of a trial without usable evidence."""
    return [
        {"id": name, "type": kind, "severity": severity, "status": "error", "score": None, "value": None, "reason": f"runner error: {message}", "evidence": []}
        for name, kind, severity in EVALUATORS
    ]


def records(story, trial, behaviour, chance):
    """(observation, result) of one trial; behaviour 'error' is a time-out."""
    head = {"case_id": story.case_id, "trial": trial}
    duration = chance.randrange(900, 4200)
    cost = round(chance.uniform(0.0008, 0.0034), 6)
    execution = {"duration_ms": duration, "exit_code": 0, "attempts": [], "started_at": "2026-03-02T09:15:00.000Z", "worker": 1}
    if behaviour == "error":
        error = {"class": "timeout", "type": "timeout", "message": "no answer within 30 s", "stderr_tail": "INFO  connecting to tools\nWARN  read_policy: retry 3 of 3\nERROR gave up after 30.0 s\n"}
        observation = {**head, "input_fingerprint": "", "status": "timeout", "output": None, "execution": {**execution, "exit_code": None}, "error": error}
        found, outcome, score = errored(error["message"]), "error", None
    else:
        steps, output = story.trial(behaviour)
        observation = {**head, "input_fingerprint": "", "status": "completed", "output": output, "steps": steps, "usage": {"input_tokens": 900 + duration % 300, "output_tokens": 120 + duration % 90}, "cost": {"total_usd": cost}, "finish_reason": "stop", "execution": execution}
        found = evaluations(story, behaviour, steps, output, cost)
        binding = [entry["status"] for entry in found if entry["severity"] in ("hard", "gate")]
        outcome = "fail" if "fail" in binding else "pass"
        scores = [entry["score"] for entry in found if entry["score"] is not None]
        score = sum(scores) / len(scores)
    result = {**head, "status": observation["status"], "outcome": outcome, "score": score, "coverage": None if score is None else 1.0, "evaluations": found, "duration_ms": duration, "cost_usd": cost if score is not None else None, "usage": observation.get("usage")}
    return observation, result


def behaviours(chance, repetitions):
    """(behaviour of each baseline trial, of each candidate trial) of a case: mostly good, with every kind of change."""
    draw = chance.random()
    good = ["good"] * repetitions
    if draw < 0.05:
        return good, ["hasty"] * repetitions
    if draw < 0.08:
        return good, [chance.choice(["good", "stingy"]) for _ in range(repetitions - 1)] + ["stingy"]
    if draw < 0.26:
        return ["lost"] * repetitions, good
    if draw < 0.30:
        return ["stingy"] * repetitions, ["good"] + ["stingy"] * (repetitions - 1)
    if draw < 0.33:
        return good, (["error"] * repetitions)[: max(1, repetitions)]
    if draw < 0.40:
        return ["lost"] * repetitions, ["lost"] * repetitions
    return good, good


def make_review(folder, cases=40, repetitions=3, seed=7, holdout=0, has_baseline=True, changed=None, **parts):
    """A ReviewData whose files are written into *folder*.

    *changed* maps a case's number to (baseline behaviours, candidate behaviours); *parts* replace fields of the ReviewData.
    """
    chance = random.Random(seed)
    stories = [Story(number, chance) for number in range(cases)]
    for story in stories[len(stories) - holdout :]:
        story.document["split"] = "holdout"
    plans = [(changed or {}).get(number) or behaviours(chance, repetitions) for number in range(cases)]
    for role, side in (("baseline", 0), ("candidate", 1)):
        if role == "candidate" or has_baseline:
            write_stage(folder, role, stories, [plan[side] for plan in plans], repetitions, random.Random(seed + side))
    return review_of(folder, [story.document for story in stories], repetitions, has_baseline, **parts)


def write_stage(folder, stage, stories, plan, repetitions, chance):
    """The observations and results of one stage, in the order (trial, case)."""
    with open(os.path.join(folder, f"{stage}.jsonl"), "w", encoding="utf-8") as observed, open(os.path.join(folder, f"{stage}.evaluated.jsonl"), "w", encoding="utf-8") as results:
        for trial in range(1, repetitions + 1):
            for story, behaviour in zip(stories, plan, strict=True):
                observation, result = records(story, trial, behaviour[trial - 1], chance)
                observed.write(json.dumps(observation, ensure_ascii=False, separators=(",", ":")) + "\n")
                results.write(json.dumps(result, ensure_ascii=False, separators=(",", ":")) + "\n")


def stage_meta(stage, repetitions):
    """A meta file as `run` writes it, as far as the page shows it."""
    return {
        "version": 1, "stage": stage, "command": ["python", "agents/support.py", "--prompt", f"prompts/{stage}.txt"], "mode": "process",
        "repetitions": repetitions, "selection": None, "commit": {"hash": "8f1d2c" + "0" * 33 + "7", "branch": "refund-confirmation", "dirty": stage == "candidate", "reason": None},
        "started_at": "2026-03-02T09:15:00.000Z", "finished_at": "2026-03-02T09:21:42.000Z", "engine": "0.1.0", "complete": True,
    }  # fmt: skip


def review_of(folder, documents, repetitions, has_baseline=True, **parts):
    """The ReviewData of stage files that stand in *folder* already; *documents* are the cases."""
    cases = {document["id"]: kaizen.Case(document["id"], document, os.path.join(folder, "test_cases.jsonl"), number, "") for number, document in enumerate(documents, 1)}
    roles = ["baseline", "candidate"] if has_baseline else ["candidate"]
    tallies = {role: kaizen.tally_stage(role, os.path.join(folder, f"{role}.evaluated.jsonl"), repetitions, set(cases)) for role in roles}
    metas = {role: {"observations_sha256": str(number) * 64, "results_sha256": str(number + 2) * 64, "evaluated_at": "2026-03-02T09:22:00.000Z"} for number, role in enumerate(roles)}
    prints = ("sha256:" + "d" * 64, "sha256:" + "e" * 64)
    evaluation = SimpleNamespace(acceptance=ACCEPTANCE, reliability=None)
    both = tallies.get("baseline", tallies["candidate"])
    stages = {"baseline": (both, metas[roles[0]]), "candidate": (tallies["candidate"], metas["candidate"])}
    comparison = kaizen.comparison_document(evaluation, cases, stages, prints, [])
    if not has_baseline:
        comparison = alone(comparison)
    fields = {
        "comparison": comparison,
        "name": "refund-confirmation",
        "shown_folder": "improvements/refund-confirmation",
        "stages": {role: kaizen.StageView(role, role, os.path.join(folder, f"{role}.jsonl"), os.path.join(folder, f"{role}.evaluated.jsonl"), stage_meta(role, repetitions), metas[role]) for role in roles},
        "cases": cases,
        "holdout": frozenset(document["id"] for document in documents if document.get("split") == "holdout"),
        "holdout_opened": 0,
        "decision": None,
        "decide_command": "kaizen decide improvements/refund-confirmation --status accepted --by NAME --because TEXT",
    }
    return kaizen.ReviewData(**{**fields, **parts})


def alone(comparison):
    """*comparison* as it is when there is no baseline: no changes, no recommendation."""
    for row in comparison["cases"]:
        row.update(change=None, newly_flaky=False, reason=None)
        del row["baseline"]
    del comparison["rates"]["baseline"], comparison["baseline"]
    notes = ["There is no baseline, so nothing can be said about a change."]
    return {**comparison, "recommendation": None, "reasons": [], "notes": notes, "delta": None, "delta_reason": "no_baseline", "splits": {}}


def write_page(folder, review):
    """The text of the review page of *review*, written into *folder*."""
    path = os.path.join(folder, "review.html")
    kaizen.write_review_page(path, review)
    with open(path, encoding="utf-8", newline="") as stream:
        return stream.read()
