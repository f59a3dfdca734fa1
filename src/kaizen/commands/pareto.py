"""`kaizen pareto`: which variants are worth their money, and the cheapest that will do."""

import os
from argparse import Namespace

from kaizen.cases.improvement import RUN_PREFIX, STAGE_NAME, Improvement
from kaizen.commands.context import Project, load_project, tallied_stage
from kaizen.commands.table import OR_RUNS, Answer, Argument, command
from kaizen.evaluators.stage_results import RESULTS, RESULTS_META, has_results, stage_state
from kaizen.foundation.errors import InputError, UsageError
from kaizen.foundation.files import shown_path, write_file
from kaizen.foundation.jsonio import JsonObject, encode_readable
from kaizen.foundation.text import counted, dollars, duration, quoted, visible
from kaizen.policy.comparison import StageTally, tally_stage
from kaizen.policy.objectives import Measured, pareto_document
from kaizen.web.pareto_page import pareto_page
from kaizen.web.review_words import interval_text, rate_percent

PARETO_FILES = {"json": "pareto.json", "html": "pareto.html"}
VARIANT = Argument(
    "--variant",
    "NAME=FILE",
    "a variant's results, the stage that has them, or run:ID (repeatable; without any: every stage)",
    {"action": "append", "default": []},
)


@command(
    "pareto",
    "Weighs variants by quality, cost and latency, constraints first, and names the cheapest that will do.",
    [OR_RUNS, VARIANT, Argument("--baseline", "S", "stage that stands for before (baseline)", {"default": "baseline"})],
    "kaizen pareto refund\nkaizen pareto refund --variant small=prompt-b --variant large=../other/candidate.evaluated.jsonl --json",
    group="further questions",
)
def command_pareto(args: Namespace) -> Answer:
    """Writes pareto.json and pareto.html; exits 0 when some variant is feasible, 3 when none could be compared, else 1."""
    project = weighed_project(args)
    improvement = project.improvement
    named = named_variants(args.variant, improvement)
    baseline = measured_stage(project, args.baseline, args.baseline) if os.path.exists(improvement.stage_file(args.baseline)) else None
    variants = [measured_variant(project, name, value) for name, value in named.items()]
    document = pareto_document(project.evaluation, project.dataset.cases, baseline, variants)
    write_file(improvement.path(PARETO_FILES["json"]), encode_readable(document) + "\n")
    write_file(improvement.path(PARETO_FILES["html"]), pareto_page(improvement.name, document))
    files = {kind: improvement.shown(name) for kind, name in PARETO_FILES.items()}
    best = document["cheapest_feasible"]
    statuses = {entry["status"] for entry in document["variants"]}
    code = 0 if best is not None else 3 if "not_comparable" in statuses else 1
    reason = "cheapest_feasible" if best is not None else "not_comparable" if code == 3 else "none_feasible"
    lines = [*variant_lines(document), *[f"  note: {note}" for note in document["notes"]], f"open {files['html']}"]
    return Answer(code, reason, pareto_message(document), lines, {**document, "files": files})


def weighed_project(args: Namespace) -> Project:
    """The improvement that *args* name, or the evidence of the first run among the variants; `run:` is taken off all names of runs."""
    runs = [value for value in (*(option.partition("=")[2] for option in args.variant), args.baseline) if value.startswith(RUN_PREFIX)]
    if args.improvement is not None and runs:
        raise UsageError(f"{RUN_PREFIX}ID takes the place of IMPROVEMENT; both were given", "leave out the improvement")
    if args.improvement is None and not runs:
        raise UsageError("IMPROVEMENT is missing", "name an improvement, or runs: --variant NAME=run:ID")
    for run in runs:
        from kaizen.lab.engine_eval import run_evidence

        run_evidence(run)
    args.variant = [option.replace(f"={RUN_PREFIX}", "=", 1) for option in args.variant]
    args.baseline = args.baseline.removeprefix(RUN_PREFIX)
    return load_project(runs[0] if runs else args.improvement)


def named_variants(given: list[str], improvement: Improvement) -> dict[str, str]:
    """{name: file or stage} of the options *given*; every stage of *improvement* when there are none. Raises UsageError."""
    named: dict[str, str] = {}
    for option in given:
        name, separator, value = option.partition("=")
        if not separator or not name.strip() or not value:
            raise UsageError(f"--variant {quoted(option)} is not NAME=FILE", "write: --variant small=prompt-b")
        if name in named:
            raise UsageError(f"two variants are named {quoted(name)}", "give each a name of its own")
        named[name] = value
    if not given:
        named = {stage: stage for stage in improvement.stages()}
    if not named:
        raise InputError(f"{improvement.shown()}: no stage has been run yet", "name the results with --variant NAME=FILE", "missing_stage")
    return named


def measured_stage(project: Project, name: str, stage: str) -> Measured:
    """The variant *name*, measured as *stage* of the improvement."""
    tally, state = tallied_stage(project, stage)
    return Measured(name, tally, state.meta, state.problems)


def measured_variant(project: Project, name: str, value: str) -> Measured:
    """The variant *name*, whose results are the stage or the file *value*. Raises InputError."""
    improvement = project.improvement
    if STAGE_NAME.match(value) and not os.path.isfile(value):
        return measured_stage(project, name, value)
    if not value.endswith(RESULTS):
        hint = f"name a stage, or the results that evaluate wrote: NAME{RESULTS}"
        raise UsageError(f"--variant {quoted(name)}: {quoted(value)} is no results file", hint)
    folder, stage = Improvement(os.path.dirname(value) or "."), os.path.basename(value).removesuffix(RESULTS)
    if not has_results(folder, stage):
        raise InputError(f"{shown_path(value)}: does not exist", f"run: kaizen evaluate {improvement.argument()}", "missing_stage")
    if not os.path.exists(folder.stage_file(stage, RESULTS_META)):
        problem = ("unknown_origin", f"{shown_path(value)} has no {stage}{RESULTS_META} beside it, which says what it was made from")
        return Measured(name, StageTally(stage, 1, {}, []), {}, [problem])
    state = stage_state(folder, stage, project.dataset, project.suite)
    repetitions = int(state.meta.get("repetitions", 1))
    if any(code == "invalid_evidence" for code, _ in state.problems):
        return Measured(name, StageTally(stage, repetitions, {}, []), state.meta, state.problems)
    tally = tally_stage(stage, value, repetitions, set(project.dataset.cases), project.derived.metrics_of())
    return Measured(name, tally, state.meta, state.problems)


# --- Words -----------------------------------------------------------------------------


def pareto_message(document: JsonObject) -> str:
    """One sentence: the cheapest feasible variant, or that there is none."""
    entries = {entry["name"]: entry for entry in document["variants"]}
    best = document["cheapest_feasible"]
    if best is None:
        return f"none of {counted(len(entries), 'variant')} is known to meet every constraint"
    shown = entries[best]
    return f"cheapest feasible: {visible(best)} ({dollars(shown['mean_cost_usd'])} a case, pass rate {rate_percent(shown['quality'])})"


def variant_lines(document: JsonObject) -> list[str]:
    """A line a variant: status, quality with interval, cost, latency; below it why it is out."""
    order = ("front", "dominated", "infeasible", "not_comparable")
    entries = sorted(document["variants"], key=lambda entry: order.index(entry["status"]))
    width = max((len(visible(entry["name"], 30)) for entry in entries), default=0)
    lines = [pareto_message(document)]
    for entry in entries:
        numbers = [f"pass rate {rate_percent(entry['quality'])}"]
        if entry["interval"]:
            numbers[0] += f" ({interval_text({'low': entry['interval'][0], 'high': entry['interval'][1]})})"
        numbers.append("unpriced" if entry["mean_cost_usd"] is None else f"{dollars(entry['mean_cost_usd'])} a case")
        if "latency" in document["axes"]:
            latency = entry["latency_p95_ms"]
            numbers.append("p95 not measured" if latency is None else f"p95 {duration(latency / 1000)}")
        lines.append(f"  {visible(entry['name'], 30):<{width}}  {entry['status'].replace('_', ' '):<14}  {', '.join(numbers)}")
        lines += [f"  {'':<{width}}    {visible(reason['text'], 300)} ({reason['code']})" for reason in entry["reasons"]]
    return lines
