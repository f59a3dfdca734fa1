"""`kaizen gate`: the recommendation as an exit code, for CI."""

from argparse import Namespace

from kaizen.commands.context import Assessment, Project, assess, compared_project, decision_of
from kaizen.commands.reporting import BASELINE, CANDIDATE, headline, recommendation_lines, review_data, shown_reasons
from kaizen.commands.table import OR_RUNS, Answer, Argument, command
from kaizen.exporters.junit import junit_text
from kaizen.foundation.errors import EXIT_DONE, EXIT_HUMAN, EXIT_NO
from kaizen.foundation.files import write_file
from kaizen.foundation.jsonio import JsonObject
from kaizen.web.review import review_markdown

GATE_EXITS = {"eligible": EXIT_DONE, "rejected": EXIT_NO, "manual_review": EXIT_HUMAN}
JUNIT = Argument("--junit", "FILE", "write a JUnit XML report to FILE")
SUMMARY = Argument("--summary", "FILE", "write a Markdown summary to FILE, as for a pull request")


@command(
    "gate",
    "Prints the recommendation and exits 0 (eligible), 1 (rejected) or 3 (a person must decide), for CI.",
    [OR_RUNS, BASELINE, CANDIDATE, JUNIT, SUMMARY],
    "kaizen gate refund --junit report.xml --summary summary.md",
)
def command_gate(args: Namespace) -> Answer:
    """The recommendation of two stages."""
    project, baseline, (candidate,) = compared_project(args.improvement, args.baseline, [args.candidate])
    assessment = assess(project, baseline, candidate)
    write_gate_files(project, assessment, args.junit, args.summary)
    return gate_answer(project, assessment)


def write_gate_files(project: Project, assessment: Assessment, junit: str | None, summary: str | None) -> None:
    """Writes the JUnit report and the Markdown summary where asked for."""
    if junit:
        write_file(junit, junit_text(project.improvement.name, assessment.comparison, project.dataset.holdout))
    if summary:
        review = review_data(project, assessment, decision_of(project.improvement), False)
        write_file(summary, review_markdown(review))


def gate_answer(project: Project, assessment: Assessment) -> Answer:
    """The answer of gate: recommendation, reasons, rates."""
    comparison = assessment.comparison
    hidden = project.dataset.holdout
    data: JsonObject = {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "metrics", "evidence", "notes")}
    data["reasons"] = shown_reasons(comparison, hidden)
    following = "" if comparison["recommendation"] == "eligible" else project.improvement.review_command(comparison["baseline"]["stage"])
    code = GATE_EXITS[comparison["recommendation"]]
    return Answer(code, comparison["recommendation"], headline(comparison), recommendation_lines(comparison, hidden), data, following)
