"""`kaizen decide`: a person's decision about exactly the evidence that was reviewed."""

import os
from argparse import Namespace

from kaizen.cases.decision import DECIDED, Decision, write_decision
from kaizen.commands.context import assess_reviewed, load_project, refuse_stale
from kaizen.commands.reporting import headline
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import RefusedError, UsageError
from kaizen.foundation.text import visible

# Environment variables that coding agents set for the programs they start.
CODING_AGENTS = (
    ("CLAUDECODE", "claude-code"),
    ("CODEX_SANDBOX", "codex"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "codex"),
    ("CURSOR_AGENT", "cursor"),
    ("GEMINI_CLI", "gemini-cli"),
    ("OPENCODE", "opencode"),
)


@command(
    "decide",
    "Records a person's decision about the evidence that was reviewed last.",
    [
        IMPROVEMENT,
        Argument("--status", "S", f"the decision: {', '.join(DECIDED)}", {"choices": DECIDED, "required": True}),
        Argument("--by", "NAME", "who decides", {"required": True}),
        Argument("--because", "TEXT", "why", {"required": True}),
        Argument("--condition", "TEXT", "a condition (repeatable), with accepted_with_conditions", {"action": "append", "default": []}),
    ],
    'kaizen decide refund --status accepted --by "Ada" --because "both regressions are wording only"',
)
def command_decide(args: Namespace) -> Answer:
    """Writes decision.yaml."""
    if not args.by.strip() or not args.because.strip():
        raise UsageError("--by and --because must not be empty", "say who decides, and why")
    if (args.status == "accepted_with_conditions") != bool(args.condition):
        raise UsageError("--condition goes with --status accepted_with_conditions, and that with at least one --condition")
    project = load_project(args.improvement)
    improvement = project.improvement
    reviewed = improvement.path("comparison.json")
    if not os.path.exists(reviewed):
        raise RefusedError(
            f"{improvement.shown()}: nothing has been reviewed yet", f"run: {improvement.review_command()}", "not_reviewed"
        )
    document, assessment = assess_reviewed(project)
    refuse_stale(assessment, improvement, "decide")
    evidence = assessment.comparison["evidence"]
    if document.get("evidence") != evidence:
        hint = f"run: {improvement.review_command()}, look at the page, then decide"
        raise RefusedError(f"{improvement.shown()}: the evidence has changed since it was reviewed", hint, "stale_review")
    decision = Decision(
        args.status, evidence, args.by, utc_now(), args.because, args.condition, calling_agent(), improvement.path("decision.yaml")
    )
    write_decision(decision)
    lines = [f"{args.status} by {visible(args.by)}, about {evidence[:19]}…", f"  the recommendation is {headline(assessment.comparison)}"]
    lines += [f"  recorded from inside a coding agent: {decision.via}"] if decision.via else []
    following = f"kaizen promote {improvement.argument()}" if args.status != "rejected" else ""
    data = {"status": args.status, "evidence": evidence, "via": decision.via, "recommendation": assessment.comparison["recommendation"]}
    return Answer(0, "decided", lines[0], lines, data, following)


def calling_agent() -> str:
    """The coding agent from inside which this program was started, '' when none is known."""
    return next((name for variable, name in CODING_AGENTS if os.environ.get(variable)), "")
