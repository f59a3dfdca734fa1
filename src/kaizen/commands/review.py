"""`kaizen review`: comparison.json, review.html, review.md, and the pending decision."""

from argparse import Namespace

from kaizen.commands.context import assess, compared_project
from kaizen.commands.openings import record_opening
from kaizen.commands.reporting import (
    BASELINE,
    CANDIDATE,
    decide_command,
    headline,
    recommendation_lines,
    shown_reasons,
    write_review,
)
from kaizen.commands.table import OR_RUNS, Answer, Argument, command
from kaizen.foundation.jsonio import JsonObject


@command(
    "review",
    "Compares baseline and candidate and writes review.html, review.md and comparison.json; exits 0 whatever the recommendation.",
    [
        OR_RUNS,
        BASELINE,
        CANDIDATE,
        Argument("--open-holdout", "", "show the holdout cases; the opening is recorded and shown from then on"),
    ],
    "kaizen review refund\nkaizen review --baseline run:r0001 --candidate run:r0002",
)
def command_review(args: Namespace) -> Answer:
    """Writes the review of two stages."""
    project, baseline, (candidate,) = compared_project(args.improvement, args.baseline, [args.candidate])
    assessment = assess(project, baseline, candidate)
    if args.open_holdout:
        record_opening(project.improvement, "review")
    paths = write_review(project, assessment, args.open_holdout)
    comparison = assessment.comparison
    hidden = frozenset() if args.open_holdout else project.dataset.holdout
    lines = [*recommendation_lines(comparison, hidden), f"page: {paths['html']}"]
    data: JsonObject = {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "metrics", "evidence", "notes")}
    data["reasons"] = shown_reasons(comparison, hidden)
    following = f"open {paths['html']}, then: {decide_command(project.improvement)}"
    return Answer(0, comparison["recommendation"], headline(comparison), lines, {**data, "files": paths}, following)
