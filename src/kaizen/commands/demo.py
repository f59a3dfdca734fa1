"""`kaizen demo`: the whole job on a bundled support agent, in seconds, with no network."""

import os
import sys
from argparse import Namespace

from kaizen.cases.improvement import Improvement
from kaizen.commands.context import assess, load_project
from kaizen.commands.reporting import headline, rate_text, write_review
from kaizen.commands.table import Answer, command
from kaizen.embed import asset_text
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.files import make_folder, remove_folder, shown_path, write_file
from kaizen.foundation.text import listed
from kaizen.runs.bridge import RunRequest, run_stage

DEMO_AGENT = asset_text("demo/agent.py")
DEMO_CASES = asset_text("demo/test_cases.jsonl")
DEMO_EVALUATION = asset_text("demo/evaluation.json")
DEMO_ISSUE = asset_text("demo/issue.md")
DEMO_FOLDER = "kaizen-demo"
DEMO_MARK = ".made-by-kaizen-demo"
DEMO_NAME = "confirmation-before-action"


@command(
    "demo",
    "Runs a bundled support agent before and after a change and reviews the two; no network, nothing to install.",
    [],
    "kaizen demo",
)
def command_demo(args: Namespace) -> Answer:
    """Makes kaizen-demo/ in the current folder and does the main job in it."""
    folder = os.path.abspath(DEMO_FOLDER)
    improvement = make_demo_folder(folder)
    project = load_project(improvement.folder)
    for stage in ("baseline", "candidate"):
        run_stage(
            RunRequest(
                improvement=improvement,
                stage=stage,
                dataset=project.dataset,
                seed=project.evaluation.seed,
                command=[sys.executable, "agent.py", stage],
                cwd=folder,
                jobs=2,
                timeout_seconds=60,
                progress="none",
            )
        )
    assessment = assess(project, "baseline", "candidate")
    paths = write_review(project, assessment)
    comparison = assessment.comparison
    changed = {change: [row["id"] for row in comparison["cases"] if row["change"] == change] for change in ("improved", "regressed")}
    lines = [
        "A support agent was changed: 'handle partial refunds, and be quicker'. It ran on 8 cases before and after.",
        f"  before     {rate_text(comparison['rates']['baseline'])}",
        f"  after      {rate_text(comparison['rates']['candidate'])}",
        "The average says nothing happened. Case by case:",
        f"  improved   {listed(changed['improved'])}",
        f"  regressed  {listed(changed['regressed'])} (it acted before the customer said yes)",
        f"{headline(comparison)}",
        f"Look at it:  {paths['html']}",
        f"The files:   {shown_path(improvement.folder)}/",
    ]
    data = {
        "recommendation": comparison["recommendation"],
        "counts": comparison["counts"],
        "folder": shown_path(folder),
        "page": paths["html"],
    }
    return Answer(0, "demo", headline(comparison), lines, data, "kaizen init NAME, to do this with your own agent")


def make_demo_folder(folder: str) -> Improvement:
    """The demo's improvement in *folder*, made anew when a demo made it. Raises RefusedError for any other folder."""
    if os.path.lexists(folder):
        if os.path.islink(folder) or not os.path.isfile(os.path.join(folder, DEMO_MARK)):
            raise RefusedError(
                f"{shown_path(folder)}: is there already and no demo made it; nothing was changed",
                "move it away, or run the demo in another folder",
                "existing_folder",
            )
        remove_folder(folder)
    improvement = Improvement(os.path.join(folder, "improvements", DEMO_NAME))
    make_folder(improvement.folder)
    write_file(os.path.join(folder, DEMO_MARK), "kaizen demo makes this folder anew each time.\n")
    write_file(os.path.join(folder, "agent.py"), DEMO_AGENT)
    for name, text in (("test_cases.jsonl", DEMO_CASES), ("evaluation.json", DEMO_EVALUATION), ("issue.md", DEMO_ISSUE)):
        write_file(improvement.path(name), text)
    return improvement
