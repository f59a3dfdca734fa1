"""A small history made by the real commands: an anchor, a promoted version, a second cohort with a rejected and a pending one.

    kaizen-history/   1 anchor v1 · 2 record v2 · 3 promotion of 2 · 4 anchor v2 · 5 record v3 (rejected) · 6 record v4 (pending)
    improvements/     refund (cases a, b, c, secret) and tone (cases a, b, d, e)
"""

import atexit
import json
import shutil
import tempfile
from pathlib import Path

from support import make_improvement, remove_tree, run_cli
from test_policy_recommendation import CHECK

BEFORE = {"a": "nnn", "b": "yyy", "c": "nyn", "secret": "nnn"}
AFTER = {"a": "yyy", "b": "yyy", "c": "nyn", "secret": "yyy"}
TONE_BEFORE = {"a": "yyy", "b": "yyy", "d": "nnn", "e": "nny"}
TONE_LOSS = {"a": "yyy", "b": "nnn", "d": "yyy", "e": "yyy"}
TONE_GAIN = {"a": "yyy", "b": "yyy", "d": "yyy", "e": "nny"}
ACCEPT = ("--status", "accepted", "--by", "Ada", "--because", "reads well")
MADE: list[Path] = []


def outcomes(plan, big=""):
    """Observations: 'y' answers what is expected, 'n' does not, 'e' is an error; *big* is a case that answers at length."""
    rows = []
    for trial in range(max(map(len, plan.values()))):
        for name, marks in plan.items():
            row = {"case_id": name, "trial": trial + 1, "output": {"y": "yes", "n": "no", "e": None}[marks[trial]], "metadata": {"note": "x" * (70_000 if name == big else 1)}}
            if marks[trial] == "e":
                row.update(status="error", error={"class": "agent", "type": "broken", "message": "no answer"})
            rows.append(row)
    return rows


def improvement(name, before, after, *, evaluation=None, big="", **fields):
    """Writes improvements/*name* with one case a letter; a case called 'secret' is of the holdout."""
    cases = [{"id": each, "input": each, "expected": "yes", "split": "holdout" if each == "secret" else "development", **fields} for each in before]
    return make_improvement(name, cases, evaluation or [CHECK], baseline=outcomes(before, big), candidate=outcomes(after, big))


def kaizen_json(*argv):
    """The answer of a command as --json prints it, with its exit status."""
    done = run_cli(*argv, "--json")
    try:
        return {**json.loads(done.stdout), "status": done.status}
    except ValueError:
        raise AssertionError(done.stdout + done.stderr) from None


def must(*argv):
    """Runs a command that must succeed."""
    answer = kaizen_json(*argv)
    if answer["status"]:
        raise AssertionError(f"{argv}: {answer}")
    return answer


def make_history(folder):
    """Makes the history of the head of this module in *folder*."""

    def go(*argv):
        done = run_cli(*argv, cwd=folder)
        if done.status:
            raise AssertionError(f"{argv}: {done.stdout}{done.stderr}")

    def write(name, *plans, **options):
        made = improvement(folder / "improvements" / name, *plans, **options)
        for kept in ("decision.yaml", "baseline.evaluated.jsonl", "baseline.evaluated.meta.json", "candidate.evaluated.jsonl", "candidate.evaluated.meta.json"):
            (made / kept).unlink(missing_ok=True)

    write("refund", BEFORE, AFTER, big="b")
    go("history", "init", "refund", "--label", "as it was", "--agent-version", "v1")
    go("review", "refund")
    go("decide", "refund", *ACCEPT)
    go("history", "record", "refund", "--label", "asks first", "--agent-version", "v2")
    go("history", "promote", "2")
    write("tone", TONE_BEFORE, TONE_LOSS)
    go("history", "init", "tone", "--label", "v2 on tone", "--agent-version", "v2")
    go("review", "tone")
    go("decide", "tone", "--status", "rejected", "--by", "Ada", "--because", "loses b")
    go("history", "record", "tone", "--label", "polite", "--agent-version", "v3")
    write("tone", TONE_BEFORE, TONE_GAIN)
    go("review", "tone")
    go("history", "record", "tone", "--label", "friendlier", "--agent-version", "v4")


def copy_history(folder):
    """Copies the history and its improvements, made once per process, into *folder*."""
    if not MADE:
        MADE.append(Path(tempfile.mkdtemp(prefix="kaizen-history-")).resolve())
        atexit.register(remove_tree, MADE[0])
        make_history(MADE[0])
    shutil.copytree(MADE[0], folder, dirs_exist_ok=True)
