"""What it costs to say where a campaign of 500 variants stands."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_lab import EVAL

ROOT = Path(__file__).resolve().parent.parent
SAYS = (("next",), ("campaign", "status"), ("status",))


def long_campaign(folder: Path, kaizen: list[str], variants: int) -> None:
    """Opens a campaign in the repository *folder*, measures baseline and noise, and adds *variants* that were tried and given up."""

    def call(*command: str) -> None:
        subprocess.run(command, cwd=folder, capture_output=True, check=True)

    system = folder / "kaizen/systems/bench"
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.invalid"]
    for command in ([*git, "init", "-q"], [*kaizen, "init"], [*kaizen, "create", "system", "bench"]):
        call(*command)
    for name, value in (("user.name", "bench"), ("user.email", "bench@example.invalid")):
        call("git", "config", name, value)
    (system / "eval.py").write_text(EVAL, encoding="utf-8")
    cases = [{"id": f"i{n}", "input": f"question {n}", "tags": [f"label {n % 7}"]} for n in range(200)]
    (system / "items.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    call(*git, "add", "-A")
    call(*git, "commit", "-qm", "bench")
    budget = ["--budget-variants", str(2 * variants)]
    call(*kaizen, "campaign", "open", "--system", "bench", "--sealed", str(folder.parent / "sealed"), *budget)
    call(*kaizen, "run", "--system", "bench", "--variant", "baseline")
    call(*kaizen, "noise", "--system", "bench", "--passes", "2")
    add_variants(folder / "kaizen/.kaizen/campaigns/c1", variants)


def add_variants(folder: Path, variants: int) -> None:
    """Writes the events of *variants* that were screened and discarded, and an idea for each, into the journals in *folder*."""
    sys.path.insert(0, str(ROOT))
    bundle: Any = importlib.import_module("kaizen")  # the bundle, not src/
    journal, ideas = (bundle.ChainLog(str(folder / name)) for name in ("journal.jsonl", "ideas.jsonl"))
    for number in range(variants):
        name, run, idea = f"v{number:03d}", f"r{number + 100:04d}", f"i{number + 1}"
        words = {"title": f"idea {number}", "hypothesis": f"if rule {number} holds then it passes", "category": f"kind {number % 9}"}
        ideas.append("idea", {"id": idea, **words, "component": "", "label": None, "predict": 0.02, "source": "", "similar_to": []})
        own, mark = {"run": run, "purpose": "screen", "variant": name}, f"{number:040x}"
        journal.append("run_started", {**own, "idea": idea, "commit": mark, "tree": mark, "patch_id": mark})
        told = {"state": "completed", "reason": None, "items": {"lines": 100, "sha256": "0" * 64}, "terms": "sha256:" + "0" * 64}
        journal.append("run_ended", {**own, **told, "evaluations": 100, "cost_usd": None, "seconds": 1.0})
        numbers = {"n": 100, "gain": 0.004, "se": 0.04, "z": 0.1, "label": None, "memorised": 0}
        sides = {"variant": name, "run": run, "idea": idea, "leader": "baseline", "commit": mark}
        journal.append("screen", {**sides, **numbers, "verdict": "no_signal", "race_stopped": False})
        lesson = f"rule {number} moved nothing"
        journal.append("discard", {"variant": name, "commit": "", "verdict": "no_signal", "lesson": lesson, "ref": None})
    journal.close()
    ideas.close()


def campaign_seconds(folder: Path, kaizen: list[str], cpu_of: Callable[[list[str]], float], variants: int = 500) -> dict[str, float]:
    """{command: processor seconds} of what says where a campaign of *variants* stands, as *cpu_of* measures a command."""
    long_campaign(folder, kaizen, variants)
    return {" ".join(words): cpu_of([*kaizen, *words, "--json"]) for words in SAYS}
