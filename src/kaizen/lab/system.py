"""A system: what is improved, how it is scored, which files may change and which may not.

`kaizen/systems/<id>/system.md` opens with lines between two `---`, in the small YAML of
foundation/frontmatter.py; below them stands text for people and agents. Paths and globs are
relative to the folder that holds `kaizen/`.

    metric: accuracy            name of what `score` measures
    aggregation: mean           how a run's items become one number
    direction: higher           higher or lower is better
    minimum: 0                  range of a score; none: no bound
    maximum: 1
    worst: 0                    score of an item on which the system failed (default: the bad end of the range)
    dataset: kaizen/systems/refunds/items.jsonl
    eval:                       command of the eval (default: eval.py of the folder)
      - node
      - kaizen/systems/refunds/eval.mjs
    mutable:                    globs of what a variant may change
      - src/**
    locked:                     globs of what decides the score, besides the system's own folder
      - rubrics/**
    links:                      what git ignores and the system needs (node_modules), linked into the trees of a campaign
      - node_modules
    best_run: r0007             written by `kaizen keep` alone
"""

import os
import re
import sys
from typing import NamedTuple

from kaizen.cases.dataset import CASES_FILE, included_path, is_inside
from kaizen.cases.evaluation_file import load_evaluation
from kaizen.cases.improvement import Improvement
from kaizen.foundation.errors import Breaches, InputError
from kaizen.foundation.files import list_folder, read_text, shown_path
from kaizen.foundation.frontmatter import parse_block_yaml
from kaizen.foundation.globs import glob_test
from kaizen.foundation.jsonio import JsonObject, float_or_none
from kaizen.foundation.shapes import ANY_TEXT, TEXT, Kind, Report, check_fields, check_no_others, list_of, one_of
from kaizen.foundation.text import did_you_mean, quoted
from kaizen.lab.workspace import WORKSPACE_FOLDER, Workspace
from kaizen.runs.commit import OWN_FILES

SYSTEMS_FOLDER = "systems"
SYSTEM_FILE, SYSTEM_PROGRAM, EVAL_PROGRAM = "system.md", "system.py", "eval.py"
SYSTEM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
AGGREGATIONS = ("mean", "median", "percentile", "precision", "recall", "f0.5", "f1", "f2")
COUNT_AGGREGATIONS = AGGREGATIONS[3:]  # of {tp, fp, fn} instead of numbers
BOUND = Kind(lambda value: value == "none" or isinstance(value, str) and as_number(value) is not None, "a number, or none")
COMMAND = Kind(lambda value: value not in ("", []), "a command: one word, or a list of words")
SYSTEM_FIELDS = {
    "id": TEXT,
    "metric": TEXT,
    "aggregation": one_of(*AGGREGATIONS),
    "percentile": Kind(lambda value: isinstance(value, str) and 0 < (as_number(value) or 0) <= 100, "a number above 0, at most 100"),
    "direction": one_of("higher", "lower"),
    "minimum": BOUND,
    "maximum": BOUND,
    "worst": BOUND,
    "best_run": ANY_TEXT,
    "dataset": TEXT,
    "eval": COMMAND,
    "improvement": TEXT,
    "runner": COMMAND,
    "mutable": list_of(TEXT, "globs"),
    "locked": list_of(TEXT, "globs"),
    "links": list_of(TEXT, "paths"),
}
PATHS_HINT = "paths are relative to the folder that holds kaizen/"
EVAL_KIND, IMPROVEMENT_KIND, TYPED_KIND = "eval", "improvement", "typed"
# Notes in a system's folder that decide nothing.
UNLOCKED = (SYSTEM_FILE, "lessons.md", "campaigns/**", "guide/**", "README.md", "trace.js", "dataset-item.js")


class Metric(NamedTuple):
    """What a run's items add up to: name, aggregation, its percentile, whether higher is better, range, and the worst score.

    A bound is None where there is none; `worst` is None for aggregations of counts.
    """

    name: str
    aggregation: str
    percentile: float | None
    is_higher_better: bool
    minimum: float | None
    maximum: float | None
    worst: float | None

    def holds(self, score: float) -> bool:
        """True when *score* lies in the range."""
        return (self.minimum is None or score >= self.minimum) and (self.maximum is None or score <= self.maximum)

    def document(self) -> JsonObject:
        """The metric as run.json names it."""
        direction = "higher" if self.is_higher_better else "lower"
        found: JsonObject = {"name": self.name, "aggregation": self.aggregation, "direction": direction}
        return {**found, "percentile": self.percentile} if self.percentile is not None else found


class System(NamedTuple):
    """A loaded system; `folder` is absolute, `kind` is eval, improvement or typed; paths and globs are relative to the root."""

    id: str
    folder: str
    kind: str
    metric: Metric
    best_run: str
    dataset: str
    command: tuple[str, ...]
    improvement: str
    runner: tuple[str, ...]
    mutable: tuple[str, ...]
    locked: tuple[str, ...]
    text: str
    links: tuple[str, ...] = ()


def system_ids(workspace: Workspace) -> list[str]:
    """The ids of the systems of *workspace*, sorted."""
    folder = workspace.path(WORKSPACE_FOLDER, SYSTEMS_FOLDER)
    names = list_folder(folder) if os.path.isdir(folder) else []
    return [name for name in names if SYSTEM_ID.match(name) and os.path.isfile(os.path.join(folder, name, SYSTEM_FILE))]


def load_system(workspace: Workspace, name: str) -> System:
    """The system *name*, checked. Raises InputError (`no_system`), or BreachesError with every breach."""
    folder = workspace.path(WORKSPACE_FOLDER, SYSTEMS_FOLDER, name)
    if not SYSTEM_ID.match(name) or not os.path.isfile(os.path.join(folder, SYSTEM_FILE)):
        known = system_ids(workspace)
        hint = did_you_mean(name, known) if known else f"make it with: kaizen create system {name if SYSTEM_ID.match(name) else 'ID'}"
        raise InputError(f"there is no system {quoted(name)}", hint, "no_system")
    path = os.path.join(folder, SYSTEM_FILE)
    shown = shown_path(path)
    values, text = front_matter(read_text(path), shown)
    breaches = Breaches()

    def report(pointer: str, message: str, hint: str) -> None:
        breaches.add(shown, None, pointer, message, hint)

    values = {key: [] if key in ("mutable", "locked", "links") and value == "" else value for key, value in values.items()}
    check_fields(values, SYSTEM_FIELDS, "", report)
    check_no_others(values, SYSTEM_FIELDS, "", report)
    if values.get("id", name) != name:
        message = f"is {quoted(str(values['id']))}, and the folder is called {quoted(name)}"
        report("/id", message, "the id is the name of the folder; leave it out")
    breaches.raise_if_any()
    system = system_of(name, folder, values, text, report)
    check_globs(system, report)
    check_places(workspace, system, report)
    breaches.raise_if_any()
    return system


def front_matter(text: str, shown: str) -> tuple[JsonObject, str]:
    """(the values between the two `---` that open *text*, what stands below). Raises BreachesError."""
    lines = text.split("\n")
    end = lines.index("---", 1) if lines[0] == "---" and "---" in lines[1:] else 0
    if not end:
        breaches = Breaches()
        breaches.add(shown, 1, "", "does not open with its fields between two lines '---'", "see what `kaizen create system` writes")
        breaches.raise_if_any()
    return parse_block_yaml("\n".join(["", *lines[1:end]]), shown), "\n".join(lines[end + 1 :]).strip("\n")


def as_number(text: str) -> float | None:
    """*text* as a finite number; None when it is none."""
    try:
        return float_or_none(float(text)) if re.fullmatch(r"[-+.0-9eE]+", text) else None
    except ValueError:
        return None


def command_words(value: object) -> tuple[str, ...]:
    """The words of a command that is one word or a list of them; none for ''."""
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def system_of(name: str, folder: str, values: JsonObject, text: str, report: Report) -> System:
    """The system that *values* describe, with the defaults of its kind."""
    command, improvement = command_words(values.get("eval", "")), values.get("improvement", "")
    kind = IMPROVEMENT_KIND if improvement else EVAL_KIND
    if not command and not improvement:
        if os.path.isfile(os.path.join(folder, EVAL_PROGRAM)):
            command = (sys.executable, f"{WORKSPACE_FOLDER}/{SYSTEMS_FOLDER}/{name}/{EVAL_PROGRAM}")
        elif os.path.isfile(os.path.join(folder, SYSTEM_PROGRAM)):
            kind = TYPED_KIND
        else:
            message = "names no eval: there is neither `eval`, eval.py, system.py nor `improvement`"
            report("", message, f"write {EVAL_PROGRAM}, or name the command in `eval`")
    if command and improvement:
        report("/eval", "`eval` and `improvement` exclude each other", "leave out one of them")
    runner = command_words(values.get("runner", ""))
    if bool(runner) != bool(improvement):
        report("/runner", "`runner` and `improvement` need each other", "an improvement is run by the command in `runner`")
    if kind == EVAL_KIND and not values.get("dataset"):
        report("", "has no `dataset`", "name the JSONL file that holds the items")
    default = "pass_rate" if kind == IMPROVEMENT_KIND else "score"
    return System(
        name,
        folder,
        kind,
        metric_of(values, default, report),
        values.get("best_run", ""),
        values.get("dataset", ""),
        command,
        improvement,
        runner,
        tuple(values.get("mutable", ())),
        tuple(values.get("locked", ())),
        text,
        tuple(map(os.path.normpath, values.get("links", ()))),
    )


def metric_of(values: JsonObject, default: str, report: Report) -> Metric:
    """The metric that *values* describe; called *default* when they do not name it."""
    aggregation, is_higher = values.get("aggregation", "mean"), values.get("direction", "higher") == "higher"
    minimum, maximum = as_number(values.get("minimum", "0")), as_number(values.get("maximum", "1"))
    worst = as_number(values["worst"]) if "worst" in values else minimum if is_higher else maximum
    if minimum is not None and maximum is not None and minimum >= maximum:
        report("/minimum", "is not below `maximum`", "a range needs two different ends")
    if aggregation in COUNT_AGGREGATIONS:
        minimum, maximum, worst = None, None, None
    elif worst is None:
        message = "the score of an item on which the system fails is not known"
        report("/worst", message, "write `worst`: the bad end of the range has no bound")
    elif (minimum is not None and worst < minimum) or (maximum is not None and worst > maximum):
        report("/worst", "lies outside the range of a score", "write a number from `minimum` to `maximum`")
    percentile = as_number(values["percentile"]) if "percentile" in values else None
    if (aggregation == "percentile") != (percentile is not None):
        report("/percentile", "`percentile` and the aggregation percentile need each other", "write both, such as percentile: 95")
    return Metric(values.get("metric", default), aggregation, percentile, is_higher, minimum, maximum, worst)


def check_globs(system: System, report: Report) -> None:
    """Reports each glob of *system* that cannot be one."""
    for key, globs in (("mutable", system.mutable), ("locked", system.locked)):
        for index, glob in enumerate(globs):
            try:
                glob_test([glob])
            except ValueError as error:
                report(f"/{key}/{index}", str(error), PATHS_HINT)


def check_places(workspace: Workspace, system: System, report: Report) -> None:
    """Reports dataset and improvement that do not lie inside the folder that holds `kaizen/`, or are not there."""
    for key, name, test in (("dataset", system.dataset, os.path.isfile), ("improvement", system.improvement, os.path.isdir)):
        path = workspace.path(name)
        if name and (os.path.isabs(name) or not is_inside(workspace.root, path)):
            report(f"/{key}", f"{quoted(name)} leads out of {shown_path(workspace.root)}", PATHS_HINT)
        elif name and not test(path):
            report(f"/{key}", f"{quoted(name)} does not exist", PATHS_HINT)
    for index, name in enumerate(system.links):
        if os.path.isabs(name) or name.split(os.sep)[0] in ("..", ".", ".git", WORKSPACE_FOLDER):
            report(f"/links/{index}", f"{quoted(name)} is no path of a dependency in {shown_path(workspace.root)}", PATHS_HINT)


def locked_files(workspace: Workspace, system: System) -> list[str]:
    """What decides the score of *system*, sorted paths relative to the root, as they are in the tree.

    The system's own folder without its notes and without what it calls mutable, the dataset, the improvement's folder, and
    what `locked` means, and the files that words of `eval` name; a file that both these and `mutable` mean is locked. Of the
    improvement its records are left out. Raises InputError (`locked_link`) for a symbolic link among them.
    """
    own = os.path.relpath(system.folder, workspace.root)
    is_note = glob_test(f"{own}/{glob}" for glob in UNLOCKED)
    is_mutable, is_locked = glob_test(system.mutable), glob_test(system.locked)
    found = {path for path in files_below(workspace.root, own) if not is_note(path) and not is_mutable(path)}
    if system.improvement:
        is_record = glob_test(OWN_FILES)
        for path in files_below(workspace.root, system.improvement):
            name = os.path.relpath(path, system.improvement)
            if name == CASES_FILE or not is_record(name):
                found.add(path)
        found.update(included_files(workspace, Improvement(workspace.path(system.improvement))))
    if system.dataset:
        found.add(os.path.normpath(system.dataset))
    if system.locked:
        found.update(path for path in files_below(workspace.root, "") if is_locked(path))
    found.update(path for path in map(os.path.normpath, system.command) if not os.path.isabs(path) and os.path.isfile(workspace.path(path)))
    for path in sorted(found):
        if os.path.islink(workspace.path(path)):
            place = shown_path(workspace.path(path))
            message = f"{place}: decides the score, and is a symbolic link: what it leads to could change unnoticed"
            raise InputError(message, "put the file itself there, or name it under `mutable`", "locked_link")
    return sorted(found)


def included_files(workspace: Workspace, improvement: Improvement) -> list[str]:
    """The files of cases that *improvement* includes, relative to the root; what is wrong with it is told when its cases are read."""
    evaluation = load_evaluation(improvement, Breaches())
    paths = [os.path.relpath(included_path(improvement, name), workspace.root) for name in (evaluation.include if evaluation else [])]
    return [path for path in paths if not path.startswith("..")]


def files_below(root: str, folder: str) -> list[str]:
    """The files and symbolic links below *folder* of *root*, relative to *root*; nothing of git's, of the store, or of Python's cache."""
    found = []
    for place, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = [name for name in folders if name not in (".git", ".kaizen", "__pycache__", "node_modules")]
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) or os.path.islink(path):
                found.append(os.path.relpath(path, root))
        found += [os.path.relpath(path, root) for path in (os.path.join(place, name) for name in folders) if os.path.islink(path)]
    return found
