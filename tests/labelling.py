"""Experts and a judge whose kappas are known exactly, and improvements in which they judged."""

import random

from support import make_improvement, write_lines

RATERS = ["ada", "bo", "cleo", "dan", "eve"]
LABELS = ("pass", "fail")


def designed(repeats=5, judge_levels=(0,), seed=20260101):
    """[(label of the judge, labels of five experts)] of 50 x *repeats* cases in which every pair errs independently, exactly.

    The six columns of an orthogonal array of strength 2 over five levels say who errs: an expert at level 0, so that each is right
    in 4 of 5; the judge at *judge_levels*. Half of the cases are truly a pass. So kappa of two who are right in shares a and b
    is (2a - 1)(2b - 1): 0.36 for two experts.
    """
    rows = []
    for x in range(5):
        for y in range(5):
            levels = [x, *[(y + k * x) % 5 for k in range(5)]]
            for truth in (0, 1):
                errs = [levels[0] in judge_levels, *[level == 0 for level in levels[1:]]]
                said = [LABELS[truth ^ wrong] for wrong in errs]
                rows += [(said[0], said[1:])] * repeats
    random.Random(seed).shuffle(rows)
    return rows


def drawn(cases, accuracies, seed, labels=LABELS):
    """[(label of the first, labels of the others)]: each is right with its accuracy, else says one of the other labels."""
    rng, rows = random.Random(seed), []
    for _ in range(cases):
        truth = rng.choice(labels)
        said = [truth if rng.random() < accuracy else rng.choice([each for each in labels if each != truth]) for accuracy in accuracies]
        rows.append((said[0], said[1:]))
    return rows


def case_ids(rows):
    return [f"c{number:05d}" for number in range(len(rows))]


def label_lines(rows, raters=RATERS, **fields):
    """Lines of labels.jsonl; None is no line."""
    return [
        {"case_id": case_id, "rater": rater, **fields, "label": label}
        for case_id, (_, labels) in zip(case_ids(rows), rows, strict=True)
        for rater, label in zip(raters, labels, strict=False)
        if label is not None
    ]


def make_judged(rows, name="tone", labels=None, kind="contains", evaluators=(), stages=("candidate",), case_fields=lambda number: {}, **blocks):
    """An improvement whose evaluator *name* says of each case what the judge of *rows* says ('error' for None)."""
    cases = [{"id": case_id, "input": f"question {number}", **case_fields(number)} for number, case_id in enumerate(case_ids(rows))]
    answers = [{"case_id": case_id, "output": said or "nothing"} if said else {"case_id": case_id, "status": "error", "error": {"class": "agent", "type": "x", "message": "m"}} for case_id, (said, _) in zip(case_ids(rows), rows, strict=True)]
    entry = {"id": name, "type": kind, "values": ["pass"]}
    folder = make_improvement("change", cases, {"version": 1, "evaluators": [entry, *evaluators], **blocks}, **dict.fromkeys(stages, answers))
    if labels is not None:
        write_lines(folder / "labels.jsonl", labels)
    return folder
