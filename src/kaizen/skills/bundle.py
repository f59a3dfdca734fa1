"""The skills as they lie in a checkout, and whether a copy of them has the same content.

    .claude-plugin/marketplace.json  .agents/plugins/marketplace.json     what the clients read
    plugins/kaizen/skills/<name>/    .agents/skills/improve-agent/        the skills
"""

import os

from kaizen.foundation.errors import InputError
from kaizen.foundation.files import list_folder, read_bytes, shown_path
from kaizen.foundation.identity import own_path
from kaizen.foundation.jsonio import sha256_hex

MARKETPLACE_FILE = os.path.join(".claude-plugin", "marketplace.json")
PLUGIN_FOLDER = os.path.join("plugins", "kaizen")
PORTABLE_SKILL = os.path.join(".agents", "skills", "improve-agent")
SKILL_FILE = "SKILL.md"


def bundle_root() -> str | None:
    """The checkout whose kaizen.py is running; None for a copy of the program that stands alone, in a skill or a cache."""
    folder = os.path.dirname(os.path.realpath(own_path()))
    return folder if os.path.isfile(os.path.join(folder, MARKETPLACE_FILE)) else None


def needed_root() -> str:
    """The checkout. Raises InputError (`not_a_checkout`)."""
    root = bundle_root()
    if root is None:
        place = shown_path(own_path())
        message = f"{place}: is a copy of the program without the skills beside it, so there is nothing here to install"
        raise InputError(message, "run the kaizen.py at the top of a checkout of Kaizen", "not_a_checkout")
    return root


def skill_folders(root: str) -> dict[str, str]:
    """{name: absolute folder} of the skills in the checkout *root*."""
    folder = os.path.join(root, PLUGIN_FOLDER, "skills")
    found = {name: os.path.join(folder, name) for name in list_folder(folder)}
    found[os.path.basename(PORTABLE_SKILL)] = os.path.join(root, PORTABLE_SKILL)
    return {name: path for name, path in found.items() if os.path.isfile(os.path.join(path, SKILL_FILE))}


def folder_digests(folder: str) -> dict[str, str]:
    """{path relative to *folder*: SHA-256} of its regular files, without what Python keeps beside a program."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found[os.path.relpath(path, folder)] = sha256_hex(read_bytes(path))
    return found


def differing_files(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The paths that only one of two folders has, or that differ between them, sorted."""
    return sorted({path for path, _ in one.items() ^ other.items()})
