"""How fast each evaluator is, and whether its time grows no faster than what it looks at.

The workload of a type is the example of its catalogue entry, made larger: texts repeated line by
line, lists and steps repeated, objects with copies of their members under further names. So a new
type is measured as soon as it is registered.
"""

import gc
import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

kaizen: Any = importlib.import_module("kaizen")  # the bundle, with its flat names

GROWING = ("output", "steps", "tool_calls", "agents", "state", "files", "evidence")
STARTS_PROGRAMS = (*kaizen.PROGRAM_TYPES, "judge")  # their time is that of the program
SIZES = (10_000, 40_000)  # characters of an observation; `similarity` looks at 50,000 at most
MOST_GROWTH = 2.0  # times as much as the observation grew; a quadratic one has 4


class Leaf(NamedTuple):
    """One evaluator: microseconds for an observation of `size` characters, and for one of `first_size`."""

    name: str
    first_size: int
    first: float
    size: int
    microseconds: float
    parsing: float

    @property
    def growth(self) -> float:
        """Growth of the time over growth of the observation; 1 is linear."""
        return (self.microseconds / self.first) / (self.size / self.first_size)


def grown(value: Any, factor: int) -> Any:
    """*value* about *factor* times as large, of the same shape; JSON in a text stays JSON."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = None
        return json.dumps(grown(parsed, factor), ensure_ascii=False) if isinstance(parsed, (dict, list)) else "\n".join([value] * factor)
    if isinstance(value, list):
        return value * factor
    if isinstance(value, dict):
        return {f"{key}~{number}" if number else key: item for number in range(factor) for key, item in value.items()}
    return value


def grown_observation(observation: dict[str, Any], size: int) -> dict[str, Any]:
    """*observation* with its output, steps and other evidence repeated until it has about *size* characters."""
    observation = {"case_id": "c1", "trial": 1, "status": "completed", "output": "Done.", **observation}
    factor = max(1, size // len(json.dumps({key: observation[key] for key in GROWING if key in observation}, ensure_ascii=False)))
    made = {key: grown(value, factor) if key in GROWING else value for key, value in observation.items()}
    if isinstance(observation.get("state"), dict):
        made["state"] = {key: grown(value, factor) for key, value in observation["state"].items()}
    return made


def seconds_of(work: Any, least: float = 0.02, rounds: int = 3) -> float:
    """Processor seconds of one call of *work*, the least of *rounds* means over at least *least* seconds."""
    found = []
    for _ in range(rounds):
        times, began = 0, time.process_time()
        while times == 0 or time.process_time() - began < least:
            work()
            times += 1
        found.append((time.process_time() - began) / times)
    return min(found)


def measured_leaves(sizes: tuple[int, int] = SIZES, least: float = 0.02) -> Iterator[Leaf]:
    """Every registered type that starts no program, in alphabetical order."""
    for name in sorted(set(kaizen.EVALUATORS) - {*STARTS_PROGRAMS}):
        example = kaizen.EVALUATORS[name].example
        entry = kaizen.prepare_entry(example["entry"])
        case = {"id": "c1", "input": "?", **example.get("case", {})}
        found = []
        for size in sizes:
            line = json.dumps(grown_observation(example["observation"], size), ensure_ascii=False)
            observation = json.loads(line)
            gc.collect()
            spent = seconds_of(lambda entry=entry, observation=observation, case=case: entry.evaluate(observation, case, {}), least)
            found.append((len(line), spent * 1e6))
        parsing = seconds_of(lambda line=line: json.loads(line), least) * 1e6
        yield Leaf(name, *found[0], *found[1], parsing)


def similarity_at_its_bound() -> float:
    """Seconds of levenshtein_ratio on two texts of the greatest length that `similarity` looks at."""
    size = kaizen.SIMILARITY_BOUND
    one, other = ("".join(chr(97 + number * step % 25 % 11) for number in range(size)) for step in (7, 12))
    entry = kaizen.prepare_entry({"id": "e", "type": "similarity", "measure": "levenshtein_ratio", "references": other, "threshold": 0.5})
    observation = {"case_id": "c1", "trial": 1, "status": "completed", "output": one}
    return seconds_of(lambda: entry.evaluate(observation, {"id": "c1"}, {}), 0, 1)
