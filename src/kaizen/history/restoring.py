"""An archived run put back as an improvement folder, to be evaluated again."""

import os
import re

from kaizen.cases.dataset import CASES_FILE, EVALUATION_FILE, is_inside
from kaizen.cases.improvement import Improvement
from kaizen.foundation.files import make_folder, replacing
from kaizen.foundation.jsonio import JsonObject, write_json
from kaizen.foundation.text import quoted
from kaizen.history.archive import ArchiveError, object_blocks, object_json
from kaizen.history.reading import CASES_ARCHIVED, History, HistoryRun

REFERENCE = "$file/"  # before the name of a file that evaluation.json or a case refers to
PLAIN_NAME = r"[A-Za-z0-9_][\w.-]{0,200}"


def restore_run(history: History, run: HistoryRun, folder: str, policy: JsonObject) -> Improvement:
    """The improvement that *run* archived, written into the empty *folder*, with the blocks of *policy* (None: without it).

    All its cases are its own then, also those that came from included files. Raises ArchiveError when a file is not what
    was recorded or its name leads elsewhere.
    """
    for entry in run.manifest["files"]:
        path = restored_path(folder, entry["name"])
        make_folder(os.path.dirname(path))
        if not is_inside(folder, path):
            raise ArchiveError(f"{run.id}: {quoted(entry['name'])} leads out of the folder; not restored", "", "link_leaves_folder")
        if entry["name"] == EVALUATION_FILE:
            document = {**object_json(history.folder, entry), **policy, "include": None, "optimization": None}
            write_json(path, {key: value for key, value in document.items() if value is not None})
            continue
        with replacing(path) as stream:
            for block in object_blocks(history.folder, entry):
                stream.write(block)
    return Improvement(folder)


def restored_path(folder: str, name: str) -> str:
    """Where the archived file *name* goes in *folder*. Raises ArchiveError for a name that no recording gives."""
    if name.startswith(REFERENCE):
        return os.path.normpath(os.path.join(folder, *name[len(REFERENCE) :].split("/")))
    if not re.fullmatch(PLAIN_NAME, name, re.ASCII):
        raise ArchiveError(f"{quoted(name)}: is no name of an archived file", "", "invalid_file")
    return os.path.join(folder, CASES_FILE if name == CASES_ARCHIVED else name)
