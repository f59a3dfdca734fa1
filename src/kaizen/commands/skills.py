"""`kaizen skills install`, `status`, `uninstall`, `refresh`: in clients and repositories."""

import os
from argparse import Namespace

from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import InputError, KaizenError
from kaizen.foundation.identity import VERSION
from kaizen.foundation.text import visible
from kaizen.lab.git import git_answer
from kaizen.skills.bundle import bundle_root, folder_digests, needed_root, skill_folders
from kaizen.skills.clients import (
    CLIENTS,
    CURRENT,
    DIFFERENT,
    DISABLED,
    FAILED,
    INSTALLED,
    NOT_FOUND,
    NOT_INSTALLED,
    REFRESHED,
    ClientOutcome,
    each_client,
    plugin_outcome,
)
from kaizen.skills.project_copies import (
    EDITED,
    FOREIGN,
    copied_skills,
    copy_folders,
    copy_outcome,
    failed_copy,
    install_copy,
    remove_copy,
)
from kaizen.skills.upgrading import forget_installed, note_installed, refresh_clients

CLIENT_SECONDS = 120.0  # for each client; both together take 8 s as a rule
TITLES = {client.program: client.title for client in CLIENTS}
PROJECT = Argument("--project", "", "copies in the current repository (.agents/skills, .claude/skills) instead of the clients")
NEW_SESSION = "start a new session in the client: those that run do not see it (Claude Code also takes /reload-plugins)"
NOT_AS_WANTED = (FAILED, EDITED, FOREIGN)


def skills_answer(outcomes: dict[str, ClientOutcome], is_good: bool, reason: str, following: str = "") -> Answer:
    """A line for each client or copy; exit code 0 or 1."""
    lines = [f"{TITLES.get(name, name)}: {each.text}" for name, each in outcomes.items()]
    key = "clients" if all(name in TITLES for name in outcomes) else "copies"
    rows = [{"name": name, "status": each.status, "version": each.version or None, "text": each.text} for name, each in outcomes.items()]
    return Answer(0 if is_good else 1, reason, "; ".join(lines), lines, {key: rows, "engine": VERSION}, following)


def project_root() -> str:
    """The top of the repository around the current folder. Raises GitError."""
    return git_answer(".", "rev-parse", "--show-toplevel")[:-1]


def copy_label(project: str, folder: str) -> str:
    """What a copy is called: its place in the repository."""
    return visible(os.path.relpath(folder, project))


def changed_copies(project: str, root: str, *, is_refresh: bool) -> dict[str, ClientOutcome]:
    """{copy: what became of it}: all skills of *root* copied into *project*, or with *is_refresh* those that are there."""
    origins, outcomes = skill_folders(root), {}
    for name, folder in copy_folders(project, origins):
        if is_refresh and not os.path.lexists(folder):
            continue
        try:
            outcomes[copy_label(project, folder)] = install_copy(origins[name], folder)
        except KaizenError as error:
            outcomes[copy_label(project, folder)] = failed_copy(error)
    return outcomes


def install_answer(outcomes: dict[str, ClientOutcome], following: str) -> Answer:
    """The answer of `install` and `refresh`: good when something is there and nothing failed."""
    statuses = {each.status for each in outcomes.values()}
    is_good = bool(statuses - {NOT_FOUND}) and not statuses & {*NOT_AS_WANTED}
    has_new = statuses & {INSTALLED, REFRESHED}
    reason = "installed" if is_good else "no_client" if statuses <= {NOT_FOUND} else "failed"
    if reason == "no_client":
        following = "install Claude Code or Codex, or copy the skills into a repository: kaizen skills install --project"
    return skills_answer(outcomes, is_good, reason, following if has_new or not is_good else "")


@command(
    "skills install",
    "Puts the skills of this checkout into Claude Code and Codex, by their own commands; or copies them into a repository.",
    [PROJECT],
    "kaizen skills install\nkaizen skills install --project",
    group="skills",
)
def command_skills_install(args: Namespace) -> Answer:
    """Installs what is not there, refreshes what is; repeating it is harmless."""
    root = needed_root()
    if args.project:
        return install_answer(changed_copies(project_root(), root, is_refresh=False), "commit the copies, then start a new session there")
    outcomes = each_client(lambda client, caller: client.install(caller, root), CLIENT_SECONDS)
    if {each.status for each in outcomes.values()} & {INSTALLED, REFRESHED}:
        note_installed(root)
    return install_answer(outcomes, NEW_SESSION)


@command(
    "skills refresh",
    "Brings the skills up to date where they are installed already, within 20 s for each client, and nowhere else.",
    [PROJECT],
    "kaizen skills refresh",
    group="skills",
)
def command_skills_refresh(args: Namespace) -> Answer:
    """Refreshes the clients or the copies that have them."""
    root = needed_root()
    if args.project:
        outcomes = changed_copies(project_root(), root, is_refresh=True)
        if not outcomes:
            message = "there are no copies in this repository"
            return Answer(1, "not_installed", message, data={"copies": []}, next="kaizen skills install --project")
        return install_answer(outcomes, "commit the copies, then start a new session there")
    outcomes = refresh_clients(root)
    if {each.status for each in outcomes.values()} <= {NOT_FOUND, NOT_INSTALLED}:
        return skills_answer(outcomes, False, "not_installed", "kaizen skills install")
    if not any(each.status == FAILED for each in outcomes.values()):
        note_installed(root)
    return install_answer(outcomes, NEW_SESSION)


@command(
    "skills status",
    "Says which clients have the skills, of which version, and whether they are those of this program; changes nothing.",
    [PROJECT],
    "kaizen skills status",
    group="skills",
)
def command_skills_status(args: Namespace) -> Answer:
    """Exit code 0 when all that is installed is up to date, and something is."""
    root = bundle_root()
    if args.project:
        project = project_root()
        origins = skill_folders(root) if root else {}
        names = sorted({*origins, *copied_skills(project)})
        sources = {name: folder_digests(folder) for name, folder in origins.items()}
        folders = copy_folders(project, names)
        outcomes = {copy_label(project, folder): copy_outcome(folder, sources.get(name))[0] for name, folder in folders}
        again = "kaizen skills install --project"
    else:
        outcomes = each_client(lambda client, caller: plugin_outcome(client, caller, root, VERSION), CLIENT_SECONDS)
        again = "kaizen skills refresh"
    statuses = {each.status for each in outcomes.values()}
    is_good = bool(statuses & {CURRENT, DISABLED}) and not statuses & {DIFFERENT, *NOT_AS_WANTED}
    if not statuses & {DIFFERENT, FAILED}:
        again = "" if is_good or statuses & {*NOT_AS_WANTED} else "kaizen skills install" + (" --project" if args.project else "")
    return skills_answer(outcomes, is_good, "current" if is_good else "not_current", again)


@command(
    "skills uninstall",
    "Takes the skills from both clients by their own commands; or removes the copies of a repository that nobody changed.",
    [PROJECT],
    "kaizen skills uninstall",
    group="skills",
)
def command_skills_uninstall(args: Namespace) -> Answer:
    """Removes what is there; exit code 1 when something could not be removed."""
    if args.project:
        project, outcomes = project_root(), {}
        for _, folder in copy_folders(project, copied_skills(project)):
            try:
                outcomes[copy_label(project, folder)] = remove_copy(folder)
            except InputError as error:
                outcomes[copy_label(project, folder)] = failed_copy(error)
        if not outcomes:
            return Answer(0, "not_installed", "there are no copies in this repository", data={"copies": []})
    else:
        outcomes = each_client(lambda client, caller: client.remove(caller), CLIENT_SECONDS)
        root = bundle_root()
        if root and not any(each.status == FAILED for each in outcomes.values()):
            forget_installed(root)
    return skills_answer(outcomes, not any(each.status in NOT_AS_WANTED for each in outcomes.values()), "removed")
