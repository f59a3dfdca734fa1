"""What Kaizen finds around it, what that forbids, and what to ask the user for.

Permissions do not tell of a sandbox, so what has to be written is tried: an empty folder is made and
removed. Which client drives is read from the variables that it sets; whether somebody is there
to be asked cannot be seen, so what to grant is told for both.
"""

import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from kaizen.foundation.errors import KaizenError
from kaizen.foundation.files import shown_path
from kaizen.foundation.identity import VERSION, own_digest, own_path
from kaizen.foundation.process import find_program
from kaizen.foundation.text import counted, listed, visible
from kaizen.lab.git import git_ended, git_version
from kaizen.lab.provenance import checkout_obstacle, git_write_obstacle, read_checkout
from kaizen.lab.system import system_ids
from kaizen.lab.workspace import find_workspace
from kaizen.skills.clients import CLIENTS, Caller, ClientError

GOOD, LIMITED, BLOCKED, UNKNOWN = "good", "limited", "blocked", "unknown"
VERSION_SECONDS = 10.0
CLAUDE_CODE, CODEX = "claude-code", "codex"


class Surrounding(NamedTuple):
    """One thing that was looked at: its state, what was found, what to do ('' for nothing)."""

    id: str
    state: str
    found: str
    todo: str = ""


def is_writable(folder: str) -> bool:
    """True when a folder could be made in *folder*; it is removed again."""
    import tempfile

    try:
        os.rmdir(tempfile.mkdtemp(prefix=".kaizen-probe-", dir=folder))
    except OSError:
        return False
    return True


def check_python() -> Surrounding:
    """The interpreter; that it runs this is all it needs."""
    return Surrounding("python", GOOD, f"{sys.version.split()[0]}, {shown_path(sys.executable)}")


def check_engine() -> Surrounding:
    """The program itself."""
    return Surrounding("kaizen", GOOD, f"{VERSION}, sha256 {own_digest()}, {shown_path(own_path())}")


def check_git() -> Surrounding:
    """Git, the repository around the current folder, and whether commits can be made in it."""
    told = f"git {'.'.join(map(str, git_version()))}"
    checkout = read_checkout(".")
    shown = shown_path(checkout.root)
    obstacle = git_write_obstacle(checkout)
    if obstacle:
        todo = "kaizen lab open, then work, commit and run in the clone that it makes"
        return Surrounding("git", LIMITED, f"{told}; {obstacle.message}", todo)
    problem = checkout_obstacle(checkout)
    if problem:
        return Surrounding("git", BLOCKED, f"{told}; {problem.message}", problem.hint)
    if git_ended(".", "var", "GIT_COMMITTER_IDENT").exit_code:
        todo = "git config user.name NAME, git config user.email ADDRESS"
        return Surrounding("git", LIMITED, f"{told}; it does not know who commits", todo)
    branch = visible(checkout.branch or "a detached HEAD", 60)
    return Surrounding("git", GOOD, f"{told}; repository {shown}, on {branch}, can be committed to")


def check_workspace() -> Surrounding:
    """The workspace of the lab, its systems, and whether its store can be written."""
    workspace = find_workspace()
    systems = system_ids(workspace)
    store = workspace.store_folder
    place = store if os.path.isdir(store) else workspace.path("kaizen")
    told = f"{shown_path(workspace.path('kaizen'))} with {counted(len(systems), 'system')}{': ' if systems else ''}{listed(systems, 5)}"
    if not is_writable(place):
        todo = "grant writing to the workspace (see: grants)"
        return Surrounding("workspace", BLOCKED, f"{told}; {shown_path(place)} cannot be written", todo)
    return Surrounding("workspace", GOOD, told)


def check_scratch() -> Surrounding:
    """The folder for temporary files, which every run needs."""
    import tempfile

    try:
        return Surrounding("scratch", GOOD, shown_path(tempfile.gettempdir()))
    except OSError:
        return Surrounding("scratch", BLOCKED, "no folder for temporary files can be written", "grant writing (see: grants), or set TMPDIR")


def check_network() -> Surrounding:
    """Whether a sandbox says that there is no network; nothing is asked of any host."""
    if os.environ.get("CODEX_SANDBOX_NETWORK_DISABLED"):
        todo = "an agent or judge that calls a model cannot run here: grant the network (see: grants), or let the user run it"
        return Surrounding("network", LIMITED, "Codex's sandbox allows no connections, also not to this machine", todo)
    return Surrounding("network", UNKNOWN, "not tried: Kaizen itself needs none")


def check_driver(agent: str) -> Surrounding:
    """Which coding agent started this, as it says by its variables."""
    if not agent:
        return Surrounding("driver", GOOD, "no coding agent that makes itself known")
    if agent == CODEX:
        told = "Codex: a call comes back after 30 s and is polled; a process that nobody waits for is ended"
    elif agent == CLAUDE_CODE:
        told = "Claude Code: a call ends after 2 minutes, at most 10 when asked for; headless, what no rule allows is denied"
    else:
        told = agent
    return Surrounding("driver", LIMITED, told, "long runs: kaizen run, then kaizen next or kaizen resume RUN, as often as needed")


def check_clients() -> list[Surrounding]:
    """The clients on PATH with their versions."""
    found = []
    for client in CLIENTS:
        program = find_program(client.program, os.getcwd())
        if not program:
            found.append(Surrounding(client.program, UNKNOWN, f"{client.title} is not on PATH"))
            continue
        try:
            told = Caller(program, VERSION_SECONDS).done("--version").decode("utf-8", "replace").strip()
            found.append(Surrounding(client.program, GOOD, f"{visible(told, 60)}, {shown_path(program)}", ""))
        except ClientError as error:
            found.append(Surrounding(client.program, LIMITED, f"{shown_path(program)}: {error}", "see whether it starts by hand"))
    return found


def surroundings(agent: str) -> list[Surrounding]:
    """All checks, in the order in which they matter; *agent* is the coding agent that drives, '' for none."""
    lookers: list[tuple[str, Callable[[], Surrounding]]] = [
        ("python", check_python),
        ("kaizen", check_engine),
        ("git", check_git),
        ("workspace", check_workspace),
        ("scratch", check_scratch),
        ("network", check_network),
    ]
    return [*[looked(name, look) for name, look in lookers], check_driver(agent), *check_clients()]


def looked(name: str, look: Callable[[], Surrounding]) -> Surrounding:
    """What *look* found; an error of it as a check that is not good."""
    try:
        return look()
    except KaizenError as error:
        state = LIMITED if error.reason == "no_workspace" else BLOCKED
        return Surrounding(name, state, error.message, error.hint)


def grants(checks: list[Surrounding]) -> dict[str, list[str]]:
    """{client: what its user can grant}, with the paths of this program and repository in it."""
    import shlex

    engine = f'python3 "{os.path.realpath(own_path())}"'
    root = next((read_root() for check in checks if check.id == "git" and check.state != BLOCKED), os.getcwd())
    rules = [f"Bash({engine} *)"]
    writable = f'sandbox_workspace_write.writable_roots=["{root}/.git"]'
    return {
        "claude": [
            f"interactive: answer its questions; or start it with --allowedTools {shlex.join(rules)}",
            f"headless: claude -p … --permission-mode acceptEdits --allowedTools {shlex.join(rules)}",
            "that rule lets `kaizen run` start the project's own programs without a question",
            "kaizen lab open and kaizen lab commit stand in for git; on the own branch also: 'Bash(git add *)' 'Bash(git commit *)'",
        ],
        "codex": [
            "interactive: workspace-write is enough; kaizen lab open and kaizen lab commit stand in for git",
            "headless: codex exec --sandbox workspace-write …, from the top of the repository",
            f"commits in the repository itself: -c {shlex.quote(writable)}",
            "network: -c sandbox_workspace_write.network_access=true",
        ],
    }


def read_root() -> str:
    """The top of the repository around the current folder; the folder itself when there is none."""
    try:
        return read_checkout(".").root
    except KaizenError:
        return os.getcwd()
