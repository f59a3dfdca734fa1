"""One configuration in promptfoo and in Kaizen: what each says of every assertion, as a table."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import read_lines, run_cli, write

import kaizen

DATA = Path(__file__).resolve().parent / "data" / "promptfoo"
TABLE = DATA / "agreement.md"
NOT_RUN = "dropped"

# (test, assertion counted from 1): why the two differ. Nothing else may.
DIFFERENCES = {
    ("pattern that is wrong", 1): "Python has no look-behind of open length: dropped and told",
    ("pattern that is wrong", 2): "code of a configuration is never run",
    ("pattern that is wrong", 4): "promptfoo passes whatever has weight 0; here it fails, and gates nothing",
    ("xml", 5): "well-formed markup is HTML here whatever its elements are called",
    ("similar texts", 5): "GLEU is not measured: dropped and told",
    ("empty output", 1): "an output of blanks is no refusal",
}


def config_with_metrics():
    """The configuration with a metric for each assertion, 'TEST 03', under which both report it."""
    config = kaizen.read_yaml((DATA / "promptfooconfig.yaml").read_text(encoding="utf-8"), "config")
    for test in config["tests"]:
        for number, check in enumerate(test["assert"], 1):
            check["metric"] = f"{test['description']} {number:02}"
    return config


def told_assertion(check):
    """An assertion as the table shows it: its type and its value, cut."""
    value = check.get("value", len(check["assert"]) if "assert" in check else "")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    options = "".join(f", {key} {check[key]}" for key in ("threshold", "weight") if key in check)
    text = re.sub(r"\s+", " ", text).replace("|", "\\|")
    return f"{check['type']}{': ' if text else ''}{text[:40]}{'…' if len(text) > 40 else ''}{options}"


def kaizen_statuses(config, folder):
    """{metric: status} of Kaizen's import of *config*, evaluated over the outputs that it holds; works in *folder*."""
    path = write(folder / "promptfooconfig.json", json.dumps(config))
    done = run_cli("import", "promptfoo", path, "--into", "peer", "--stage", "baseline", cwd=folder)
    assert done.status == 0, done.stderr
    improvement = folder / "improvements" / "peer"
    for command in (
        ("validate", "peer"), ("run", "peer", "--stage", "baseline", "--replay", improvement / "baseline.recorded.jsonl"), ("evaluate", "peer")
    ):  # fmt: skip
        done = run_cli(*command, cwd=folder)
        assert done.status == 0, (command, done.stdout, done.stderr)
    cases = {case["id"]: case for case in read_lines(improvement / "test_cases.jsonl")}
    statuses = {}
    for result in read_lines(improvement / "baseline.evaluated.jsonl"):
        metrics = {entry["id"]: entry["metric"] for entry in cases[result["case_id"]].get("evaluators", ())}
        statuses.update({metrics[each["id"]]: each["status"] for each in result["evaluations"] if each["id"] in metrics})
    return statuses


def agreement_table(config, theirs, ours):
    """(the table as Markdown, the pairs that differ) of the statuses that promptfoo and Kaizen give each metric."""
    rows, differing = [], set()
    for test in config["tests"]:
        for number, check in enumerate(test["assert"], 1):
            key, metric = (test["description"], number), check["metric"]
            mine = ours.get(metric, NOT_RUN)
            if theirs[metric] != mine:
                differing.add(key)
            note = DIFFERENCES.get(key, "")
            rows.append(f"| {test['description']} | `{told_assertion(check)}` | {theirs[metric]} | {mine} | {note} |")
    head = [
        "# promptfoo and Kaizen on the same outputs",
        "",
        "Made by tests/peers/test_promptfoo_peer.py from promptfooconfig.yaml in this folder: what each says of each assertion.",
        f"{len(rows)} assertions, {len(rows) - len(differing)} agree, {len(differing)} differ for the reason that stands beside them.",
        "",
        "| test | assertion | promptfoo | Kaizen | why they differ |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n", differing


def checked_in_statuses():
    """{(test, number of the assertion): (promptfoo's status, Kaizen's)} of the checked-in table."""
    found, number, last = {}, 0, ""
    for line in TABLE.read_text(encoding="utf-8").split("\n"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 7 and cells[1] not in ("test", "---"):
            number = number + 1 if cells[1] == last else 1
            last = cells[1]
            found[(last, number)] = (cells[3], cells[4])
    return found


