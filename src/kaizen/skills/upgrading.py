"""After an upgrade, installed skills are refreshed once, by a command of a person.

`skills install` leaves a note beside the kaizen.py that it installed from: the version it was. When
a newer kaizen.py in the same checkout finds an older note, it lets the clients that have the
plugin take the new one, within a few seconds and after the command's own answer, and
writes down that it tried. It never does so for a program: not in CI, not inside a coding agent or
its sandbox, not without a terminal. A failure is one line that says what to type.
"""

import os
import sys

from kaizen.foundation.errors import KaizenError
from kaizen.foundation.files import discard_unfinished
from kaizen.foundation.identity import UPGRADE_NOTE, VERSION
from kaizen.foundation.jsonio import read_json_object, write_json
from kaizen.skills.bundle import bundle_root
from kaizen.skills.clients import DISABLED, FAILED, NOT_FOUND, NOT_INSTALLED, Caller, Client, ClientOutcome, each_client

UPGRADE_SECONDS = 20.0  # for each client, two of which take 8 s as a rule
# Set where no person waits: CI services, coding agents, their sandboxes.
UNATTENDED = ("CI", "CLAUDECODE", "CODEX_THREAD_ID", "CODEX_CI", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "KAIZEN_NO_REFRESH")


def note_installed(root: str) -> None:
    """Writes down that the skills of this version were installed from *root*; a checkout that cannot be written has no note."""
    try:
        write_json(os.path.join(root, UPGRADE_NOTE), {"version": VERSION})
    except KaizenError:
        pass


def forget_installed(root: str) -> None:
    """Removes the note, if there is one."""
    discard_unfinished(os.path.join(root, UPGRADE_NOTE))


def refresh_client(client: Client, caller: Caller, root: str) -> ClientOutcome:
    """Lets *client* take the plugin of *root* if it has one already. Raises ClientError."""
    plugin = client.plugin(caller)
    if plugin is None:
        return ClientOutcome(NOT_INSTALLED, "not installed; left alone")
    return client.install(caller, root)


def refresh_clients(root: str) -> dict[str, ClientOutcome]:
    """{client: what became of it}, of those that have the plugin already; the others stay as they are."""
    return each_client(lambda client, caller: refresh_client(client, caller, root), UPGRADE_SECONDS)


def refresh_after_upgrade() -> str:
    """Refreshes once after an upgrade; what to tell the person, '' for nothing. Never raises for what a client or the disk says."""
    root = bundle_root() if os.path.basename(sys.argv[0]) == "kaizen.py" else None
    path = os.path.join(root or "", UPGRADE_NOTE)
    if not root or not os.path.isfile(path) or any(os.environ.get(name) for name in UNATTENDED) or not sys.stderr.isatty():
        return ""
    try:
        before = read_json_object(path).get("version")
        if before == VERSION:
            return ""
        note_installed(root)  # first, so that it is tried once, whatever happens
        outcomes = refresh_clients(root)
    except KaizenError:
        return ""
    failed = [f"{client}: {each.text}" for client, each in outcomes.items() if each.status == FAILED]
    if failed:
        return f"the skills in your coding agents are still those of {before}: {'; '.join(failed)}. Try: kaizen skills refresh"
    if all(each.status in (NOT_INSTALLED, NOT_FOUND, DISABLED) for each in outcomes.values()):
        return ""
    return f"the skills in your coding agents are now {VERSION}; start a new session there"
