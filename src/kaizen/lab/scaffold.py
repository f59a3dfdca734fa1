"""A new system folder: its description, an eval that runs at once, items, a stand-in."""

import os

from kaizen.embed import asset_text
from kaizen.foundation.errors import RefusedError, UsageError
from kaizen.foundation.files import list_folder, make_folder, shown_path, write_file
from kaizen.foundation.text import quoted
from kaizen.lab.system import SYSTEM_ID, SYSTEMS_FOLDER
from kaizen.lab.workspace import WORKSPACE_FOLDER, Workspace

SYSTEM_MD = asset_text("lab/system/system.md")
SYSTEM_EVAL = asset_text("lab/system/eval.py")
SYSTEM_ITEMS = asset_text("lab/system/items.jsonl")
SYSTEM_AGENT = asset_text("lab/system/agent.py")
SYSTEM_TEMPLATES = {"system.md": SYSTEM_MD, "eval.py": SYSTEM_EVAL, "items.jsonl": SYSTEM_ITEMS, "agent.py": SYSTEM_AGENT}


def scaffold_system(workspace: Workspace, name: str) -> list[str]:
    """The files of the new system *name*. Raises UsageError for a name that is no id, RefusedError when something is there already."""
    if not SYSTEM_ID.match(name):
        hint = "use 1 to 64 letters, digits, '_' or '-', with a letter or digit in front"
        raise UsageError(f"{quoted(name)} cannot name a system", hint)
    folder = workspace.path(WORKSPACE_FOLDER, SYSTEMS_FOLDER, name)
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not list_folder(folder)):
        raise RefusedError(f"{shown_path(folder)}: is there already; nothing was changed", "choose another id", "existing_folder")
    make_folder(folder)
    for file, text in SYSTEM_TEMPLATES.items():
        write_file(os.path.join(folder, file), text.replace("SYSTEM/", f"{name}/").replace("# SYSTEM\n", f"# {name}\n"))
    return [os.path.join(folder, file) for file in SYSTEM_TEMPLATES]
