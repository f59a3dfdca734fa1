"""The real clients, Claude Code and Codex, from npm: installed once into .ci/clients, run with a home that is thrown away.

    claude(), codex()          path of the executable; the first call of a day installs the latest of both (about 10 s, 800 MB)
    version(program)           what it says of itself
    surroundings(home, more)   a whole environment: nothing of the caller's but PATH, no login, no traffic but what a test allows
    outside_temp(test)         an empty folder that is not below the system's folder for temporary files, removed after *test*:
                               Codex's sandbox lets everything below /tmp be written, which hides what it refuses elsewhere
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".ci" / "clients"
PACKAGES = ("@anthropic-ai/claude-code@latest", "@openai/codex@latest")  # without a tag, npm takes an old one for an old Node
STAMP = FOLDER / "installed"
A_DAY, INSTALL_SECONDS = 86400, 300
WHOLE = 1 << 20  # a program smaller than this is the stand-in that an install script would have replaced


def claude() -> str:
    """Path of Claude Code's program."""
    program = executable("claude")
    if program.stat().st_size >= WHOLE:
        return str(program)
    native = [path for path in FOLDER.glob("node_modules/@anthropic-ai/claude-code-*/claude*") if path.stat().st_size >= WHOLE]
    if not native:
        raise RuntimeError("npm installed Claude Code without its program for this machine")
    return str(native[0])


def codex() -> str:
    """Path of Codex's program."""
    return str(executable("codex"))


def executable(name: str) -> Path:
    """Path of a program that npm installed; installs both, if that was longer than a day ago."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes that begin at once
        if not STAMP.exists() or time.time() - STAMP.stat().st_mtime > A_DAY:
            install()
    return FOLDER / "node_modules" / ".bin" / name


def install() -> None:
    """Lets npm install the latest of both. An update that cannot be had keeps what is there."""
    (FOLDER / "package.json").write_text('{"private": true}\n')
    words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER), *PACKAGES]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if done.returncode and not STAMP.exists():
        raise RuntimeError(f"npm could not install the clients:\n{done.stderr[-2000:]}")
    STAMP.touch()


def version(program: str) -> str:
    """The version that a client prints, such as `2.1.332`."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    return next(word for word in said.split() if word[0].isdigit())


def surroundings(home: Path, more: "dict[str, str] | None" = None) -> "dict[str, str]":
    """The environment of a client whose home is *home* (made if need be), with *more* added."""
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "NO_COLOR": "1"}
    places = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "CODEX_HOME": str(home / ".codex")}
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **places, **quiet, **(more or {})}


def outside_temp(test) -> Path:
    """An empty folder in /var/tmp, removed after *test*. A CODEX_HOME below TMPDIR gets no sandbox at all, so let TMPDIR be elsewhere."""
    folder = Path(tempfile.mkdtemp(prefix="kaizen-peer-", dir="/var/tmp")).resolve()
    test.addCleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder
