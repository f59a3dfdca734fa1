#!/usr/bin/env python3
"""Run everything that decides whether a change is good, and count it.

    python scripts/check.py            the build, linters, all tests on every Python here, peer tests
    python scripts/check.py --quick    the build, and the tests on this Python
    python scripts/check.py --ci       the same as without, installing what is missing (Chromium, bubblewrap, npm)

Linters and what the peer tests need are installed into .ci/venv, from the versions in
.ci/requirements.txt and tests/peers/requirements.txt. The tests themselves need nothing
but Python. Each build, lint and type check counts as one; tests are counted as unittest
counts them, on each Python.

The last line is `N passed, N failed, N skipped`. Exit status: 0 nothing failed, 1 something did.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".ci" / "venv"
REQUIREMENTS = (ROOT / ".ci" / "requirements.txt", ROOT / "tests" / "peers" / "requirements.txt")
MINORS = (10, 11, 12, 13)  # of Python 3
UNITTEST = ("-m", "unittest", "discover", "-s")
PROBE = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
# program: Debian's packages
PROGRAMS = {"chromium": ["chromium", "fonts-liberation"], "bwrap": ["bubblewrap"], "node": ["nodejs"], "npm": ["npm"]}
TEST_SECONDS = 1800  # a suite that takes longer hangs
INSTALL_SECONDS = 900


class Tally(NamedTuple):
    """How many checks passed, failed, and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: "Tally") -> "Tally":
        return Tally(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Python(NamedTuple):
    """An interpreter that runs, and its version as (3, minor, micro)."""

    path: str
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return ".".join(map(str, self.version))


class Ran(NamedTuple):
    """How a program ended and what it printed; the status is None when its time ran out."""

    status: int | None
    output: str
    seconds: float


def run(command: list[str], seconds: float, env: dict[str, str] | None = None) -> Ran:
    """Runs a program in the root folder, both streams together, no input."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return Ran(None, (error.stdout or b"").decode("utf-8", "replace") + f"\nnot done after {seconds:.0f} s", seconds)
    except OSError as error:
        return Ran(127, str(error), 0.0)
    return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), time.monotonic() - start)


def heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


def report(name: str, tally: Tally, ran: Ran, lines: int = 60) -> Tally:
    """Prints one line about a check, and the end of its output if it failed; returns *tally*."""
    shown = [f"{'FAILED' if tally.failed else 'ok':<7}{name}: {tally} ({ran.seconds:.1f} s)"]
    if tally.failed:
        shown += [f"    {line}" for line in ran.output.splitlines()[-lines:]]
    print("\n".join(shown) + "\n", end="", flush=True)  # in one write: suites run beside each other
    return tally


def check_command(name: str, command: list[str]) -> Tally:
    """One check that passes when the program exits 0."""
    ran = run(command, INSTALL_SECONDS)
    return report(name, Tally(passed=1) if ran.status == 0 else Tally(failed=1), ran)


# --- Pythons ---------------------------------------------------------------------------


def candidates() -> Iterator[str]:
    """Paths where a Python may be: the running one, those on PATH, pyenv's; newest of a kind first."""
    yield sys.executable
    for minor in MINORS:
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            yield os.path.join(folder, f"python3.{minor}")
    roots = [os.environ.get("PYENV_ROOT", ""), os.path.expanduser("~/.pyenv")]
    pyenv = shutil.which("pyenv")
    if pyenv:
        roots.insert(0, run([pyenv, "root"], 20).output.strip())
    for root in filter(os.path.isdir, roots):
        versions = [path for path in (Path(root) / "versions").glob("3.*") if re.fullmatch(r"3\.\d+\.\d+", path.name)]
        for path in sorted(versions, key=lambda path: [int(part) for part in path.name.split(".")], reverse=True):
            yield str(path / "bin" / "python")


def find_pythons() -> list[Python]:
    """The first Python of each supported version that really runs (a pyenv shim may not), oldest first."""
    found: dict[int, Python] = {}
    asked: set[str] = set()
    for path in candidates():
        wanted = re.search(r"(?:python|/)3\.(\d+)", path)
        known = wanted is not None and int(wanted[1]) in found and path != sys.executable
        if path in asked or known or not os.access(path, os.X_OK):
            continue
        asked.add(path)
        ran = run([path, "-c", PROBE], 20)
        match = re.fullmatch(r"3\.(\d+)\.(\d+)", ran.output.strip()) if ran.status == 0 else None
        if match and int(match[1]) in MINORS:
            found.setdefault(int(match[1]), Python(path, (3, int(match[1]), int(match[2]))))
    return [found[minor] for minor in sorted(found)]


def clean_environment() -> dict[str, str]:
    """The caller's environment without what steers Python or Kaizen; warnings are errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYENV_VERSION", "KAIZEN_"))}
    return {**kept, "PYTHONWARNINGS": "error"}


# --- Tests -----------------------------------------------------------------------------


def count_tests(ran: Ran) -> Tally:
    """What unittest's last lines say; a run without them, or without any test, is one failure.

    >>> count_tests(Ran(1, "Ran 7 tests in 0.1s\\n\\nFAILED (failures=1, errors=1, skipped=2)", 0.1))
    Tally(passed=3, failed=2, skipped=2)
    """
    counts = re.findall(r"^Ran (\d+) tests? in ", ran.output, re.MULTILINE)
    verdict = re.findall(r"^(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?\s*$", ran.output, re.MULTILINE)
    if ran.status is None or not counts or not verdict or int(counts[-1]) == 0:
        return Tally(failed=1)
    number = {key: int(value) for key, value in re.findall(r"([a-z ]+)=(\d+)", verdict[-1][1].replace(", ", ","))}
    failed = sum(number.get(key, 0) for key in ("failures", "errors", "unexpected successes"))
    if ran.status != 0 and not failed:
        failed = 1
    skipped = number.get("skipped", 0)
    return Tally(max(0, int(counts[-1]) - failed - skipped), failed, skipped)


def check_tests(python: Python) -> Tally:
    """README's test command on one Python."""
    ran = run([python.path, *UNITTEST, "tests"], TEST_SECONDS, clean_environment())
    return report(f"tests on Python {python}", count_tests(ran), ran)


def check_peers(installed: bool) -> Tally:
    """The tests that compare with programs nobody here wrote. A skipped one has not compared: it failed."""
    if not installed:
        return report("peer tests", Tally(failed=1), Ran(1, "not run: .ci/venv is incomplete", 0.0))
    ran = run([venv_program("python"), *UNITTEST, "tests/peers"], TEST_SECONDS, clean_environment())
    tally = count_tests(ran)
    return report("peer tests", Tally(tally.passed, tally.failed + tally.skipped), ran)


# --- What is installed -----------------------------------------------------------------


def venv_program(name: str) -> str:
    """Path of a program in .ci/venv."""
    return str(VENV / ("Scripts" if os.name == "nt" else "bin") / name)


def install_venv(pythons: list[Python]) -> bool:
    """Makes .ci/venv hold what the requirements name; False if that failed.

    Built again only when a requirement has changed. Python 3.11 or newer, which the
    linters need; another one if the first cannot make a venv (Debian ships one that cannot).
    """
    digest = hashlib.sha256(b"\n".join(path.read_bytes() for path in REQUIREMENTS)).hexdigest()
    stamp = VENV / "requirements.sha256"
    if stamp.is_file() and stamp.read_text() == digest and run([venv_program("python"), "-c", ""], 20).status == 0:
        print("ok     .ci/venv is up to date")
        return True
    ran = Ran(1, "no Python of 3.11 or newer", 0.0)
    for python in sorted(pythons, key=lambda python: (python.path != sys.executable, python.version)):
        if python.version < (3, 11):
            continue
        ran = run([python.path, "-m", "venv", "--clear", str(VENV)], INSTALL_SECONDS)
        if ran.status == 0:
            names = [argument for path in REQUIREMENTS for argument in ("-r", str(path))]
            pip = [venv_program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "8"]
            ran = retry([*pip, *names])
        if ran.status == 0:
            stamp.write_text(digest)
            print(f"ok     .ci/venv made with Python {python} ({ran.seconds:.1f} s)")
            return True
    print("FAILED .ci/venv", *ran.output.splitlines()[-20:], sep="\n    ")
    return False


def retry(command: list[str], times: int = 3) -> Ran:
    """Runs a program that depends on a network until it exits 0, at most *times* times."""
    ran = run(command, INSTALL_SECONDS)
    for attempt in range(1, times):
        if ran.status == 0:
            break
        time.sleep(5 * attempt)
        ran = run(command, INSTALL_SECONDS)
    return ran


def install_packages() -> None:
    """Installs those of Debian's packages that are not there: what the peer tests open pages and make sandboxes with."""
    missing = [package for program, packages in PROGRAMS.items() if not shutil.which(program) for package in packages]
    if not missing:
        return
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        ran = retry([*apt, *arguments])
        if ran.status != 0:
            print(f"FAILED apt-get {' '.join(arguments)}", *ran.output.splitlines()[-10:], sep="\n    ")


def check_lint(installed: bool) -> Tally:
    """ruff and mypy --strict on src/ and scripts/, and mypy on the bundle: as a user's checker sees it, and with its sections as code."""
    unfolded = str(ROOT / ".ci" / "unfolded.py")  # what the sections of kaizen.py hold, which no checker looks into
    checks = {
        "ruff check": [venv_program("ruff"), "check", "--quiet", "."],
        "mypy --strict src/ and scripts/": [venv_program("mypy"), "--no-error-summary"],
        "mypy --strict kaizen.py": [venv_program("mypy"), "--no-error-summary", "kaizen.py"],
        "kaizen.py with its sections as plain code": [sys.executable, "scripts/build.py", "--unfold", unfolded],
        "mypy --strict of that": [venv_program("mypy"), "--no-error-summary", unfolded],
    }
    if not installed:
        return report("linters", Tally(failed=len(checks)), Ran(1, "not run: .ci/venv is incomplete", 0.0))
    total = Tally()
    for name, command in checks.items():
        total = total.plus(check_command(name, command))
    return total


def check_all(pythons: list[Python], ci: bool) -> Tally:
    """Linters, the tests on every Python, and the peer tests."""
    heading("linters")
    installed = install_venv(pythons)
    total = check_lint(installed)
    heading("tests: python -m unittest discover -s tests")
    print("Pythons:", ", ".join(f"{python} ({python.path})" for python in pythons))
    missing = [f"3.{minor}" for minor in MINORS if minor not in [python.version[1] for python in pythons]]
    if missing:
        print("not on this machine:", ", ".join(missing))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # a suite keeps one processor busy
        for tally in pool.map(check_tests, pythons):
            total = total.plus(tally)
    heading("peer tests: python -m unittest discover -s tests/peers")
    if ci:
        install_packages()
    for program, packages in PROGRAMS.items():
        if not shutil.which(program):
            print(f"{program} is not on PATH: tests that need it will fail (apt-get install {packages[0]})")
    return total.plus(check_peers(installed))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_true", help="only the build, and the tests on this Python")
    mode.add_argument("--ci", action="store_true", help="install Chromium, bubblewrap and npm if they are missing")
    args = parser.parse_args(argv)
    start = time.monotonic()
    heading("build")
    total = check_command("kaizen.py and its copies are current", [sys.executable, "scripts/build.py", "--check"])
    total = total.plus(check_command("every place names one version", [sys.executable, "scripts/release.py", "--check"]))
    if args.quick:
        heading("tests: python -m unittest discover -s tests")
        version = sys.version_info
        total = total.plus(check_tests(Python(sys.executable, (version[0], version[1], version[2]))))
    else:
        total = total.plus(check_all(find_pythons(), args.ci))
    print(f"\n{time.monotonic() - start:.0f} s")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
