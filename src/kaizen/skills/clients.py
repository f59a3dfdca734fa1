"""Claude Code and Codex, driven by their own commands to take and give back the plugin.

Their settings and caches are never written, only read. A client answers by exit code and JSON; what it tells
people is not read, but for one sentence of Codex, and the first line of an error, to pass it on.
A plugin that its user has disabled stays disabled: both clients would switch it on again
when told to install it, so the state is read first.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.files import copy_file, make_folder, read_bytes, shown_path
from kaizen.foundation.git import ask_git
from kaizen.foundation.jsonio import JsonError, JsonObject, parse_json, sha256_hex
from kaizen.foundation.process import EXITED, CannotStart, Ended, find_program, run_program
from kaizen.foundation.text import counted, listed, visible
from kaizen.skills.bundle import PLUGIN_FOLDER, differing_files, folder_digests

MARKETPLACE = "kaizen"
PLUGIN = f"{MARKETPLACE}@{MARKETPLACE}"
INSTALLED, REFRESHED, DISABLED, REMOVED = "installed", "refreshed", "disabled", "removed"
NOT_INSTALLED, NOT_FOUND, FAILED, CURRENT, DIFFERENT = "not_installed", "not_found", "failed", "current", "different"
LEFT_ALONE = "disabled by you; left alone"
PARSED_LIMIT = 1 << 22  # bytes of an answer


class ClientError(Exception):
    """A client could not do what it was asked; the text is the first line of its error."""


class Plugin(NamedTuple):
    """The plugin as a client has it: version, whether it is on, the folder its sessions read, the client's own complaint ('')."""

    version: str
    is_enabled: bool
    folder: str
    problem: str


class ClientOutcome(NamedTuple):
    """What became of one client: its status, a sentence, the version it has now ('' for none)."""

    status: str
    text: str
    version: str = ""


class Caller:
    """One client's program, asked within a common time limit."""

    def __init__(self, program: str, seconds: float) -> None:
        self.program = program
        self.deadline = monotonic_seconds() + seconds

    def ended(self, *words: str) -> Ended:
        """How the program ended when called with *words*, nothing on its standard input. Raises ClientError."""
        environment = {name: value for name, value in os.environb.items() if name != b"RUST_BACKTRACE"}
        left = self.deadline - monotonic_seconds()
        try:
            ended = run_program([self.program, *words], environment=environment, timeout_seconds=max(left, 0.1), stdout_limit=PARSED_LIMIT)
        except CannotStart as error:
            raise ClientError(f"{shown_path(self.program)} cannot be started: {error}") from None
        if ended.end != EXITED:
            raise ClientError(f"`{' '.join(words[:3])}` did not end in time" if ended.end == "timeout" else f"it was ended: {ended.end}")
        return ended

    def done(self, *words: str) -> bytes:
        """What it printed when it was called with *words* and succeeded. Raises ClientError."""
        ended = self.ended(*words)
        if ended.exit_code:
            raise ClientError(first_line(ended))
        return ended.stdout

    def parsed(self, kind: type, *words: str) -> Any:
        """Its answer to *words*, strict JSON of *kind*. Raises ClientError."""
        try:
            value = parse_json(self.done(*words).decode("utf-8"))
        except (JsonError, UnicodeDecodeError):
            value = None
        if not isinstance(value, kind):
            raise ClientError(f"`{' '.join(words[:3])}` did not answer in the JSON that it should")
        return value


def first_line(ended: Ended) -> str:
    """The first line of what a client that failed said, without the mark in front of it."""
    lines = (ended.stderr.strip() or ended.stdout.strip()).decode("utf-8", "replace").splitlines()
    told = next((line for line in lines if line.strip() and not line.startswith("WARNING")), "")
    return visible(told.strip().lstrip("✘✗×⨯ ").removeprefix("Error: ") or f"exit code {ended.exit_code}, without a word", 300)


def rows_where(rows: Any, **fields: object) -> list[JsonObject]:
    """Those objects of the list *rows* whose *fields* have these values."""
    known = rows if isinstance(rows, list) else []
    return [row for row in known if isinstance(row, dict) and all(row.get(key) == value for key, value in fields.items())]


def text_at(row: JsonObject, *keys: str) -> str:
    """The text at the place *keys* of *row*; '' when there is none."""
    value: Any = row
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def is_same_folder(one: str, other: str) -> bool:
    """True when both paths, links resolved, are one."""
    return bool(one) and os.path.realpath(one) == os.path.realpath(other)


# --- Claude Code -------------------------------------------------------------------------


def claude_plugin(caller: Caller) -> Plugin | None:
    """The plugin as the user of Claude Code has it; None when not at all. Raises ClientError."""
    rows = rows_where(caller.parsed(list, "plugin", "list", "--json"), id=PLUGIN, scope="user")
    if not rows:
        return None
    errors = [each for each in rows[0].get("errors") or [] if isinstance(each, str)]
    folder = text_at(rows[0], "readFromFolder")
    if not folder:  # older ones do not say that they read a folder in place
        markets = rows_where(claude_markets(caller), source="directory")
        folder = os.path.join(text_at(markets[0], "path"), PLUGIN_FOLDER) if markets else text_at(rows[0], "installPath")
    return Plugin(text_at(rows[0], "version"), rows[0].get("enabled") is not False, folder, visible(errors[0], 300) if errors else "")


def claude_markets(caller: Caller) -> list[JsonObject]:
    """The entries called kaizen of its marketplaces. Raises ClientError."""
    return rows_where(caller.parsed(list, "plugin", "marketplace", "list", "--json"), name=MARKETPLACE)


def install_claude(caller: Caller, root: str) -> ClientOutcome:
    """Makes Claude Code load the plugin of the checkout *root*. Raises ClientError."""
    markets = claude_markets(caller)
    moved = ""
    if not any(row.get("source") == "directory" and is_same_folder(text_at(row, "path"), root) for row in markets):
        caller.done("plugin", "marketplace", "add", root)
        moved = next((text_at(row, "path") or text_at(row, "url") or "another source" for row in markets), "")
    before = claude_plugin(caller)
    caller.done("plugin", "update" if before else "install", PLUGIN)
    after = claude_plugin(caller)
    if after is None:
        raise ClientError("the plugin is not listed after it was installed")
    if after.problem:
        raise ClientError(after.problem)
    if not after.is_enabled:
        return ClientOutcome(DISABLED, f"{LEFT_ALONE}; to have it: claude plugin enable {PLUGIN}", after.version)
    return placed(before, after, moved)


def placed(before: Plugin | None, after: Plugin, moved: str, other: int = 0) -> ClientOutcome:
    """The outcome of an installation: what is there now, what was *before*, and how many files were *other* ones."""
    notes = [f"was {before.version}"] if before and before.version != after.version else []
    notes += [f"{counted(other, 'file')} replaced"] if before and other else []
    notes += [f"was taken from {visible(moved)}"] if moved else []
    told = f"{REFRESHED if before else INSTALLED} {visible(after.version)}{f' ({listed(notes)})' if notes else ''}"
    return ClientOutcome(REFRESHED if before else INSTALLED, told, after.version)


def remove_claude(caller: Caller) -> ClientOutcome:
    """Takes the plugin from Claude Code, and its marketplace when nothing else comes from there. Raises ClientError."""
    was_there = claude_plugin(caller) is not None
    if was_there:
        caller.done("plugin", "uninstall", PLUGIN)
    rows = caller.parsed(list, "plugin", "list", "--json")
    others = [text_at(row, "id") for row in rows if isinstance(row, dict) and text_at(row, "id").endswith(f"@{MARKETPLACE}")]
    markets = claude_markets(caller)
    if markets and not others:
        caller.done("plugin", "marketplace", "remove", MARKETPLACE)
    return removed_outcome(was_there or bool(markets), others)


def removed_outcome(was_there: bool, others: list[str]) -> ClientOutcome:
    """The outcome of a removal; *others* are plugins that keep the marketplace."""
    kept = f"; its marketplace stays: {listed(map(visible, others))} comes from there" if others else ""
    return ClientOutcome(REMOVED, f"removed{kept}") if was_there else ClientOutcome(NOT_INSTALLED, f"not installed{kept}")


# --- Codex -------------------------------------------------------------------------------


def codex_plugin(caller: Caller) -> Plugin | None:
    """The plugin as Codex has it; None when not at all. Raises ClientError."""
    rows = rows_where(codex_list(caller), pluginId=PLUGIN)
    if not rows or rows[0].get("installed") is False:
        return None
    version = text_at(rows[0], "version") or "local"
    home = os.environ.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")
    folder = os.path.join(home, "plugins", "cache", MARKETPLACE, MARKETPLACE, version)
    return Plugin(version, rows[0].get("enabled") is not False, folder, "")


def codex_list(caller: Caller) -> Any:
    """Its plugins from the marketplace kaizen. Raises ClientError."""
    return caller.parsed(dict, "plugin", "list", "-m", MARKETPLACE, "--json").get("installed")


def refuse_old_codex(caller: Caller) -> None:
    """Raises ClientError for a Codex that knows no plugins."""
    if caller.ended("plugin", "--help").exit_code:
        raise ClientError("this Codex knows no plugins; upgrade it (0.142.3 or newer)")


def install_codex(caller: Caller, root: str) -> ClientOutcome:
    """Makes Codex copy the plugin of the checkout *root*, and compares what it copied. Raises ClientError."""
    refuse_old_codex(caller)
    add = ("plugin", "marketplace", "add", root, "--json")
    added, moved = caller.ended(*add), ""
    if added.exit_code and b"different source" in added.stderr:
        caller.done("plugin", "marketplace", "remove", MARKETPLACE)
        added, moved = caller.ended(*add), "another checkout"
    if added.exit_code:
        raise ClientError(first_line(added))
    before = codex_plugin(caller)
    if before and not before.is_enabled:
        how = f'enabled = true under [plugins."{PLUGIN}"] in its config.toml'
        return ClientOutcome(DISABLED, f"{LEFT_ALONE}; to have it: {how}", before.version)
    source = folder_digests(os.path.join(root, PLUGIN_FOLDER))
    stale = differing_files(folder_digests(before.folder), source) if before else []
    kept = keep_edits(root, before, stale) if before else ""
    answer = caller.parsed(dict, "plugin", "add", PLUGIN, "--json")
    after = codex_plugin(caller)
    if after is None:
        raise ClientError("the plugin is not listed after it was installed")
    folder = text_at(answer, "installedPath") or after.folder
    other = differing_files(folder_digests(folder), source)
    if other:
        told = f"its copy differs from the checkout in {listed(map(visible, other), 3)}"
        raise ClientError(f"{told}; remove {shown_path(folder)} and try again")
    outcome = placed(before, after, moved, len(stale))
    told = f"{outcome.text}; what it had and this checkout does not know is kept in {shown_path(kept)}"
    return outcome._replace(text=told) if kept else outcome


def keep_edits(root: str, before: Plugin, stale: list[str]) -> str:
    """Keeps those of the *stale* files of Codex's copy that its user changed; the folder they lie in, '' when there are none.

    The copy is about to be replaced. A file that the checkout's history knows, byte for byte, is an older one of ours.
    """
    present = [path for path in stale if os.path.isfile(os.path.join(before.folder, path))]
    edited = [path for path in present if not is_known_to_git(root, os.path.join(before.folder, path))]
    if not edited:
        return ""
    home = before.folder.rsplit(os.path.join("", "plugins", "cache", ""), 1)[0]
    mark = sha256_hex("".join(sha256_hex(read_bytes(os.path.join(before.folder, path))) for path in edited))
    kept = os.path.join(home, "kaizen-replaced", f"{before.version}-{mark[:12]}")
    for path in edited:
        target = os.path.join(kept, path)
        make_folder(os.path.dirname(target))
        if not os.path.lexists(target):
            copy_file(os.path.join(before.folder, path), target)
    return kept


def is_known_to_git(root: str, path: str) -> bool:
    """True when the repository at *root* holds the content of the file *path*."""
    try:
        name = ask_git(["hash-object", "--no-filters", "--", path], root).stdout.decode("ascii", "replace").strip()
        return bool(name) and ask_git(["cat-file", "-e", name], root).exit_code == 0
    except CannotStart:
        return False


def remove_codex(caller: Caller) -> ClientOutcome:
    """Takes the plugin from Codex, and its marketplace when nothing else comes from there. Raises ClientError."""
    refuse_old_codex(caller)
    was_there = codex_plugin(caller) is not None
    caller.done("plugin", "remove", PLUGIN)  # first: removing the marketplace leaves the plugin behind
    others = [text_at(row, "pluginId") for row in codex_list(caller) or [] if isinstance(row, dict) and row.get("pluginId") != PLUGIN]
    if not others:
        was_there = caller.ended("plugin", "marketplace", "remove", MARKETPLACE).exit_code == 0 or was_there  # 1: there is none
    return removed_outcome(was_there, others)


# --- Either ------------------------------------------------------------------------------


class Client(NamedTuple):
    """A coding agent: its program, how it is called, and what is done with it."""

    program: str
    title: str
    plugin: Callable[[Caller], Plugin | None]
    install: Callable[[Caller, str], ClientOutcome]
    remove: Callable[[Caller], ClientOutcome]


CLIENTS = (
    Client("claude", "Claude Code", claude_plugin, install_claude, remove_claude),
    Client("codex", "Codex", codex_plugin, install_codex, remove_codex),
)


def each_client(act: Callable[[Client, Caller], ClientOutcome], seconds: float) -> dict[str, ClientOutcome]:
    """{client: what *act* made of it}, each on its own and within *seconds*; one that fails hinders no other."""
    found = {}
    for client in CLIENTS:
        program = find_program(client.program, os.getcwd())
        try:
            found[client.program] = act(client, Caller(program, seconds)) if program else ClientOutcome(NOT_FOUND, "not found on PATH")
        except ClientError as error:
            found[client.program] = ClientOutcome(FAILED, f"failed: {error}")
    return found


def plugin_outcome(client: Client, caller: Caller, root: str | None, version: str) -> ClientOutcome:
    """What *client* has, compared with the checkout *root* by content, or by *version* where there is none. Raises ClientError."""
    if client.program == "codex":
        refuse_old_codex(caller)
    plugin = client.plugin(caller)
    if plugin is None:
        return ClientOutcome(NOT_INSTALLED, "not installed")
    shown = visible(plugin.version)
    if plugin.problem:
        return ClientOutcome(FAILED, f"failed: {plugin.problem}", plugin.version)
    if not plugin.is_enabled:
        return ClientOutcome(DISABLED, f"{shown}, disabled by you", plugin.version)
    same = plugin.version == version
    if root and os.path.isdir(plugin.folder):
        same = not differing_files(folder_digests(plugin.folder), folder_digests(os.path.join(root, PLUGIN_FOLDER)))
    if same:
        return ClientOutcome(CURRENT, f"{shown}, up to date", plugin.version)
    return ClientOutcome(DIFFERENT, f"{shown}, not what this program ({version}) brings", plugin.version)
