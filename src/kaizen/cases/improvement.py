"""The improvement folder: where its files lie, and how it is found."""

import os
import re

from kaizen.foundation.errors import InputError, UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import read_json_lines
from kaizen.foundation.text import did_you_mean, quoted

STAGE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
RESERVED_STAGES = ("test_cases", "labels", "optimizer-log")
IMPROVEMENTS_FOLDER = "improvements"
RUN_PREFIX = "run:"  # before the id of a run, in place of an improvement


class Improvement:
    """One improvement folder; `folder` is its absolute path, `name` the folder's own name."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.name = os.path.basename(self.folder)

    def path(self, *parts: str) -> str:
        """Absolute path of a file of the improvement."""
        return os.path.join(self.folder, *parts)

    def stage_file(self, stage: str, suffix: str = ".jsonl") -> str:
        """Path of `<stage>.jsonl` or of its neighbour with another suffix, such as '.meta.json'."""
        return self.path(stage + suffix)

    def shown(self, *parts: str) -> str:
        """The folder, or a file of it, as printed in messages."""
        return shown_path(self.path(*parts))

    def argument(self) -> str:
        """The folder as a command that is printed for a shell names it."""
        from shlex import quote

        return quote(self.shown())

    def review_command(self, baseline: str = "") -> str:
        """The command that reviews it; *baseline* is a stage that is known to be compared with."""
        return f"kaizen review {self.argument()}"

    def outer_folder(self) -> str:
        """The folder two levels above, where `datasets/` and `kaizen-history/` stand."""
        return os.path.dirname(os.path.dirname(self.folder))

    def stages(self) -> list[str]:
        """Names of the stages that have observations, sorted, baseline and candidate first."""
        names = [name[: -len(".jsonl")] for name in os.listdir(self.folder) if name.endswith(".jsonl")]
        known = [name for name in names if STAGE_NAME.match(name) and name not in RESERVED_STAGES and self.is_stage(name)]
        return sorted(known, key=lambda name: (name != "baseline", name != "candidate", name))

    def is_stage(self, name: str) -> bool:
        """True when the file *name*.jsonl holds observations: it has a meta file, or its first line has a case and a status."""
        if os.path.exists(self.stage_file(name, ".meta.json")):
            return True
        try:
            first = next(read_json_lines(self.stage_file(name)), None)
        except InputError:
            return True  # broken, which whoever reads it says
        return first is None or "status" in first.value


def find_improvement(argument: str) -> Improvement:
    """The improvement that *argument* names: a path, or a bare name under improvements/. Raises InputError."""
    places = [argument]
    if not os.path.dirname(argument):
        places.append(os.path.join(IMPROVEMENTS_FOLDER, argument))
    for place in places:
        if os.path.isfile(os.path.join(place, "test_cases.jsonl")) or os.path.isfile(os.path.join(place, "evaluation.json")):
            return Improvement(place)
    folder = next((place for place in reversed(places) if os.path.isdir(place)), None)
    if folder is not None:
        raise InputError(
            f"{shown_path(folder)}: holds neither test_cases.jsonl nor evaluation.json, so it is no improvement",
            f"start one with: kaizen init {quoted(os.path.basename(os.path.abspath(folder)))}",
            "no_improvement",
        )
    try:
        known = sorted(name for name in os.listdir(IMPROVEMENTS_FOLDER) if os.path.isdir(os.path.join(IMPROVEMENTS_FOLDER, name)))
    except OSError:
        known = []
    hint = did_you_mean(os.path.basename(argument), known) or f"start one with: kaizen init {os.path.basename(argument) or 'NAME'}"
    raise InputError(f"{quoted(argument)}: there is no such improvement", hint, "no_improvement")


def check_stage_name(name: str) -> str:
    """*name*, when it can name a stage. Raises UsageError."""
    if not STAGE_NAME.match(name) or name in RESERVED_STAGES:
        raise UsageError(
            f"{quoted(name)} cannot name a stage",
            f"use 1 to 64 letters, digits, '-', '_', and none of {', '.join(RESERVED_STAGES)}",
        )
    return name
