"""Asking git without running what a repository configures, or obeying what a hook set.

Hooks, pagers, file-system monitors, credential helpers, editors, signing programs, background
upkeep and prompts are off, nothing is fetched but from a folder, and optional locks are not
taken. Of the caller's GIT_ variables only those stay that say who commits and where git's own
configuration and the limits of its search are. Content filters and external diffs are switched
off by `filters_off` and by the words of the commands that would use them.
"""

import os

from kaizen.foundation.process import Ended, run_program

GIT_SECONDS = 5.0
GIT_SETTINGS = (
    "core.fsmonitor=false core.hooksPath=/dev/null core.alternateRefsCommand=: core.editor=: core.askPass= credential.helper= "
    "commit.gpgSign=false gc.auto=0 maintenance.auto=false submodule.recurse=false fetch.fsckObjects=true protocol.version=2 "
    # One thread: what a look costs is then what it takes, and it leaves the other cores to the run.
    "core.preloadIndex=false index.threads=1 core.splitIndex=false"
)
GIT = ["git", "--no-pager", "--no-optional-locks", *[word for each in GIT_SETTINGS.split() for word in ("-c", each)]]
GIT_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_CONFIG_COUNT": "0",
    # A hash means the object that has it: no other stands in for it, and no other parents.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
# The others point a git that is called from a hook at another repository, or choose programs.
GIT_KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CEILING_", "GIT_DISCOVERY_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NO")


def ask_git(
    arguments: list[str],
    folder: str,
    settings: dict[str, str] | None = None,
    *,
    stdin: bytes = b"",
    seconds: float = GIT_SECONDS,
    limit: int = 1 << 20,
) -> Ended:
    """What `git *arguments*` in *folder* answered, at most *limit* bytes of it; *settings* add to the environment. Raises CannotStart."""
    names = [(name, os.fsdecode(name)) for name in os.environb]
    environment = {raw: os.environb[raw] for raw, name in names if not name.startswith("GIT_") or name.startswith(GIT_KEPT)}
    environment.update((name.encode(), os.fsencode(value)) for name, value in {**GIT_ENVIRONMENT, **(settings or {})}.items())
    return run_program(
        [*GIT, *arguments], stdin, cwd=folder, environment=environment, timeout_seconds=seconds, stdout_limit=limit
    )


def filters_off(folder: str) -> dict[str, str]:
    """Environment that empties every content filter that the configuration seen from *folder* names; they are commands of its choice.

    Raises CannotStart.
    """
    configured = ask_git(["config", "--null", "--name-only", "--get-regexp", r"^filter\."], folder)
    names = [os.fsdecode(name) for name in configured.stdout.split(b"\0") if name]
    settings = {"GIT_CONFIG_COUNT": str(len(names))}
    for index, name in enumerate(names):
        settings[f"GIT_CONFIG_KEY_{index}"] = name
        settings[f"GIT_CONFIG_VALUE_{index}"] = "false" if name.endswith(".required") else ""
    return settings
