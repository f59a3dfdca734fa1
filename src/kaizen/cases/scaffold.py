"""A new improvement folder: an issue to describe, two example cases, one evaluator."""

import os
import re

from kaizen.cases.dataset import CASES_FILE, EVALUATION_FILE
from kaizen.cases.improvement import IMPROVEMENTS_FOLDER, Improvement
from kaizen.embed import asset_text
from kaizen.foundation.errors import RefusedError, UsageError
from kaizen.foundation.files import create_file, make_folder
from kaizen.foundation.text import quoted

INIT_ISSUE = asset_text("init/issue.md")
INIT_CASES = asset_text("init/test_cases.jsonl")
INIT_EVALUATION = asset_text("init/evaluation.json")
IMPROVEMENT_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?\Z")
REGRESSION_DATASET = "datasets/regression.jsonl"


def check_new_improvement(name: str, wording: str = "kaizen init") -> Improvement:
    """The improvement *name* under improvements/, which is not there yet; *wording* is what stands before a name on the command line.

    Raises UsageError for a name that is no plain folder name, RefusedError when something is there already.
    """
    if not IMPROVEMENT_NAME.match(name):
        last = os.path.basename(name.replace("\\", "/").rstrip("/"))
        hint = f"the folder is made under {IMPROVEMENTS_FOLDER}/, so write: {wording} {last}"
        raise UsageError(
            f"{quoted(name)} cannot name an improvement",
            hint if IMPROVEMENT_NAME.match(last) else "use 1 to 64 letters, digits, '-', '_' or '.', with a letter or digit in front",
        )
    improvement = Improvement(os.path.join(IMPROVEMENTS_FOLDER, name))
    folder = improvement.folder
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not os.listdir(folder)):
        raise RefusedError(f"{improvement.shown()}: is there already; nothing was changed", "choose another name", "existing_folder")
    return improvement


def scaffold_improvement(name: str, contents: dict[str, str] | None = None) -> tuple[Improvement, list[str], list[str]]:
    """The new improvement *name* under improvements/, the names of its files, and the datasets that it includes.

    *contents* are its files by name in place of the example. datasets/regression.jsonl is included when it exists.
    Raises what `check_new_improvement` does.
    """
    improvement = check_new_improvement(name)
    if contents is None:
        contents = {"issue.md": INIT_ISSUE.replace("IMPROVEMENT", name), CASES_FILE: INIT_CASES, EVALUATION_FILE: INIT_EVALUATION}
    make_folder(improvement.folder)
    includes = [REGRESSION_DATASET] if os.path.isfile(os.path.join(improvement.outer_folder(), REGRESSION_DATASET)) else []
    line = f'\n  "include": ["../../{REGRESSION_DATASET}"],' if includes else ""
    for file, text in contents.items():
        create_file(improvement.path(file), text.replace('"version": 1,', f'"version": 1,{line}', 1) if file == EVALUATION_FILE else text)
    return improvement, list(contents), includes
