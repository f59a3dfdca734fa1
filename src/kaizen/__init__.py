"""Kaizen: prove that a change to an AI agent is an improvement, before you ship it.

Write cases, run any program before and after a change, evaluate, read one page that
says what improved and what regressed, record a decision, and keep the fixed cases as
permanent tests. Files on disk are the interface: JSON, JSONL, Markdown, HTML.

    python kaizen.py demo        see it work, with nothing installed
    python kaizen.py --help      the main flow
"""

# Bundle order, which is also the architecture: a module imports only from modules
# above it. "folder.*" stands for the folder's other modules, from A to Z.
LAYERS = {
    "foundation": [
        "foundation.errors",
        "foundation.clock",
        "foundation.text",
        "foundation.files",
        "foundation.identity",
        "foundation.jsonio",
        "foundation.locks",
        "foundation.journals",
        "foundation.shapes",
        "foundation.frontmatter",
        "foundation.schema_formats",
        "foundation.schema_builder",
        "foundation.schema_keywords",
        "foundation.schema",
        "foundation.secret_shapes",
        "foundation.redact",
        "foundation.process",
        "foundation.progress",
    ],
    "stats": [
        "stats.intervals",
        "stats.aggregates",
        "stats.lattice",
        "stats.exact_tests",
        "stats.sampler",
        "stats.agreement",
        "stats.multiple",
        "stats.planning",
        "stats.sequential",
        "stats.looks",
    ],
    "cases": [
        "cases.improvement",
        "cases.case",
        "cases.dataset",
        "cases.evaluation_file",
        "cases.decision",
        "cases.scaffold",
    ],
    "runs": [
        "runs.observation",
        "runs.cuts",
        "runs.protocol",
        "runs.commit",
        "runs.plan",
        "runs.journal",
        "runs.replay",
        "runs.workers",
        "runs.bridge",
    ],
    "evaluators": [
        "evaluators.paths",
        "evaluators.decimals",
        "evaluators.outcomes",
        "evaluators.registry",
        "evaluators.regex_timer",
        "evaluators.predicates",
        "evaluators.transforms",
        "evaluators.shell_words",
        "evaluators.trail",
        "evaluators.arguments",
        "evaluators.matcher",
        "evaluators.consent",
        "evaluators.spoken",
        "evaluators.envelope",
        "evaluators.*",
        "evaluators.suite",
        "evaluators.stage_results",
    ],
    "policy": [
        "policy.comparison",
        "policy.acceptance",
        "policy.reliability",
        "policy.reliability_words",
        "policy.plan",
        "policy.noise",
        "policy.replay",
        "policy.recommendation",
    ],
    "exporters": [
        "exporters.*",
    ],
    "web": [
        "web.page",
        "web.evidence",
        "web.case_data",
        "web.review_words",
        "web.review_html",
        "web.review_markdown",
        "web.reliability_section",
        "web.review",
    ],
    "commands": [
        "commands.table",
        "commands.context",
        "commands.openings",
        "commands.reporting",
        "commands.run",
        "commands.*",
    ],
    "cli": [
        "cli.parser",
        "cli.main",
    ],
}
