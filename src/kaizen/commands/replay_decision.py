"""`kaizen replay-decision`: kept evidence under a changed evaluator or policy."""

import os
from argparse import Namespace

from kaizen.commands.context import assess, load_project
from kaizen.commands.history import HISTORY, required_history
from kaizen.commands.history_replay import replay_history
from kaizen.commands.replaying import project_under, replayed_comparison
from kaizen.commands.reporting import BASELINE, CANDIDATE, headline, rate_text
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.standing import not_gating_notes
from kaizen.foundation.errors import UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.text import counted, listed, visible
from kaizen.history.reading import load_history
from kaizen.policy.replay import flips_document

SHOWN_MOVES = 10


@command(
    "replay-decision",
    "Evaluates kept observations under another evaluation file, runs nothing, writes nothing, and says what flips.",
    [
        IMPROVEMENT._replace(options={"nargs": "?"}, text=f"{IMPROVEMENT.text}; without one: every comparison of the history"),
        Argument(
            "--policy",
            "FILE",
            "the evaluation file to try, in the form of evaluation.json; of a history only acceptance, metrics and reliability",
        ),
        Argument("--evaluation", "FILE", "the same, and its evaluators count for a history too"),
        BASELINE,
        CANDIDATE,
        HISTORY,
    ],
    "kaizen replay-decision refund --policy stricter.json\nkaizen replay-decision --evaluation stricter.json",
    group="surer",
)
def command_replay_decision(args: Namespace) -> Answer:
    """Exits 0 whether anything flips or not."""
    if (args.policy is None) == (args.evaluation is None):
        raise UsageError("one of --policy and --evaluation is needed", "see: kaizen replay-decision --help")
    path = os.path.abspath(args.policy or args.evaluation)
    if args.improvement is None:
        return replay_history(load_history(required_history(args.history)), path, args.policy is None)
    if args.history is not None:
        raise UsageError("--history goes without an improvement", "see: kaizen replay-decision --help")
    project = load_project(args.improvement)
    before = assess(project, args.baseline, args.candidate)
    other = project_under(project.improvement, path)
    after = replayed_comparison(other, before.comparison)
    found = flips_document(before.comparison, after, project.dataset.holdout)
    now, then = before.comparison["recommendation"], after["recommendation"]
    policy = shown_path(path)
    message = f"{now} becomes {then}" if found["flips"] else f"{now} stays {then}"
    lines = [f"{message} under {policy}", f"  now   {headline(before.comparison)}", f"  then  {headline(after)}"]
    for role in ("baseline", "candidate"):
        shown = [rate_text(comparison["rates"][role]) for comparison in (before.comparison, after)]
        lines += [f"  {role}: {shown[0]}", *([f"  {' ' * len(role)}  {shown[1]}"] if shown[0] != shown[1] else [])]
    lines += [f"  also then: {entry['text']}" for entry in after["reasons"][1:]]
    moves = [f"{visible(entry['id'])} ({entry['before']} to {entry['after']})" for entry in found["cases"]]
    moves += [counted(found["holdout_cases"], "holdout case")] if found["holdout_cases"] else []
    lines.append(f"  cases that change: {listed(moves, SHOWN_MOVES) or 'none'}")
    lines += [f"  note: {note}" for note in not_gating_notes({"not_gating": other.suite.not_gating})]
    return Answer(0, "flips" if found["flips"] else "stays", message, lines, {"policy": policy, **found})
