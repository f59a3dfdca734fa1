"""What tests share: running Kaizen in this process or as a program, throw-away folders, golden files.

Importing it makes sure that kaizen.py is what src/ gives, so that no test can pass or
fail on yesterday's program. Tests then `import kaizen` and use its flat names.
"""

import atexit
import contextlib
import difflib
import gc
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
DATA = TESTS / "data"
BUNDLE = ROOT / "kaizen.py"
INSTALLED = TESTS / "installed.py"

for _folder in (ROOT, ROOT / "scripts"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

import sections


def checked_build() -> "subprocess.CompletedProcess[str]":
    """How `scripts/build.py --check` ended; ends the tests at once if kaizen.py is not what src/ gives.

    It builds in memory: seconds once per process, and no cache that could be wrong. In a process of its own, whose
    hundreds of megabytes would otherwise be copied at every fork.
    """
    done = subprocess.run([sys.executable, str(ROOT / "scripts/build.py"), "--check"], capture_output=True, text=True, check=False)
    if done.returncode == 0 or done.returncode == 1 and "build: kaizen.py is" not in done.stderr:  # a copy may be stale
        return done
    message = f"{done.stderr[:4000]}\nkaizen.py is stale: run python scripts/build.py"
    if "pytest" in sys.modules:  # which keeps to itself what a test prints
        raise RuntimeError(message)
    print(message, file=sys.stderr, flush=True)
    os._exit(1)  # unittest takes SystemExit for a test that cannot be imported, and goes on


CHECKED = checked_build()

import kaizen

# All of it at once: a test that replaces a name must not meet a section that is read later and takes the stand-in for the real one.
_compiler = sections.Compiler(kaizen)
kaizen.load_section(*kaizen.SECTIONS)
_compiler.keep()
os.fsync = lambda descriptor: None  # a process that is killed loses nothing that the system has: no test is about the disk
gc.freeze()  # the program stays: no collection need look through all of it again

# --- Running Kaizen -------------------------------------------------------------------


class Completed(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


def run_cli(
    *argv: object, cwd: "str | Path | None" = None, stdin: "str | bytes" = "", env: "Mapping[str, str | None] | None" = None
) -> Completed:
    """Runs `kaizen argv…` in this process; everything it could have changed around it is put back.

    *env* adds to the environment, None takes a variable away.
    """
    data = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
    streams = {"stdin": text_stream(data), "stdout": text_stream(), "stderr": text_stream()}
    with surroundings(cwd, env or {}, streams):
        try:
            status = exit_status(kaizen.main([str(argument) for argument in argv]))
        except SystemExit as error:
            status = exit_status(error.code)
    return Completed(status, written(streams["stdout"]), written(streams["stderr"]))


def text_stream(data: bytes = b"") -> io.TextIOWrapper:
    """A text stream as sys.stdout is one: UTF-8, with a `buffer` for bytes."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="\n")


def written(stream: io.TextIOWrapper) -> str:
    """What was written to a stream of `text_stream`, even if it has been closed since."""
    if stream.closed:
        return ""
    stream.flush()
    data: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return data.decode("utf-8", "surrogateescape")


def exit_status(code: object) -> int:
    """The status of a process that ends with sys.exit(code); a text goes to standard error."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


@contextlib.contextmanager
def surroundings(cwd: "str | Path | None", env: "Mapping[str, str | None]", streams: Mapping[str, Any]) -> Iterator[None]:
    """Changes folder, environment and standard streams, and puts them and the signal handlers back."""
    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGPIPE", "SIGCHLD") if hasattr(signal, name)]
    handlers = {number: signal.getsignal(number) for number in signals}
    environment, folder = dict(os.environ), os.getcwd()
    before = {name: getattr(sys, name) for name in streams}
    try:
        for name, stream in streams.items():
            setattr(sys, name, stream)
        for name, value in env.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if cwd is not None:
            os.chdir(cwd)
        yield
    finally:
        for name, stream in before.items():
            setattr(sys, name, stream)
        os.chdir(folder)
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def run_process(
    *argv: object,
    cwd: "str | Path | None" = None,
    stdin: "str | bytes" = "",
    env: "Mapping[str, str] | None" = None,
    program: "str | Path | None" = None,
    timeout: float = 120,
) -> Completed:
    """Runs `kaizen argv…`, or the file *program*, as a process in a clean environment, to which *env* adds."""
    data = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, str(program or INSTALLED), *map(str, argv)],
        cwd=cwd, env=clean_environment(env), input=data, capture_output=True, timeout=timeout, check=False,
    )
    return Completed(done.returncode, *[raw.decode("utf-8", "surrogateescape") for raw in (done.stdout, done.stderr)])


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """Ends *process* if it still runs, waits for it, and closes its pipes."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def clean_environment(env: "Mapping[str, str] | None" = None) -> dict[str, str]:
    """The environment of a program under test: nothing of the caller's but what a system needs, and *env*.

    `python`, `python3` and `kaizen` are the running interpreter and this checkout's kaizen.py, as installed.
    """
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR", "SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    path = os.pathsep.join([str(tools()), os.environ.get("PATH", os.defpath)])
    return {"PATH": path, "LANG": "C.UTF-8", "PYTHONWARNINGS": "error", **kept, **(env or {})}


TOOLS: list[Path] = []


def tools() -> Path:
    """A folder with the programs `python`, `python3` and `kaizen`, made once per process."""
    if not TOOLS:
        folder = Path(tempfile.mkdtemp(prefix="kaizen-tools-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        python = shlex.quote(sys.executable)
        for name, command in (("python", python), ("python3", python), ("kaizen", f"{python} {shlex.quote(str(INSTALLED))}")):
            (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (folder / name).chmod(0o755)
        TOOLS.append(folder)
    return TOOLS[0]


# --- Test cases -----------------------------------------------------------------------


class StrictTestCase(unittest.TestCase):
    """A test in which warnings are errors, also those that Python raises where nobody can catch them."""

    def run(self, result: "unittest.TestResult | None" = None) -> "unittest.TestResult | None":
        lost: list[str] = []
        hook = sys.unraisablehook
        sys.unraisablehook = lambda each: lost.append(f"{each.exc_value!r} in {each.object!r}")
        self.addCleanup(self.check_nothing_lost, lost)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return super().run(result)
        finally:
            sys.unraisablehook = hook

    def check_nothing_lost(self, lost: list[str]) -> None:
        """Fails for a file or process that nobody closed: its ResourceWarning comes from the garbage collector."""
        if lost:
            self.fail("\n".join(lost))


class TemporaryFolder(StrictTestCase):
    """A test that works in an empty folder, `self.folder`, which is removed afterwards."""

    def setUp(self) -> None:
        super().setUp()
        before = os.getcwd()
        self.folder = Path(tempfile.mkdtemp(prefix="kaizen-test-")).resolve()
        self.addCleanup(remove_tree, self.folder)
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)


def remove_tree(folder: Path) -> None:
    """Removes a folder, also one that a test has made read-only."""
    for path, folders, _ in os.walk(folder):
        for each in (path, *[os.path.join(path, name) for name in folders]):
            if not os.path.islink(each):
                os.chmod(each, 0o700)
    shutil.rmtree(folder)


# --- Files ----------------------------------------------------------------------------


def write(path: "str | Path", content: "str | bytes") -> Path:
    """Writes a file exactly as given (UTF-8, no change of line ends), and the folders above it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
    return path


def write_lines(path: "str | Path", records: Iterable[Any]) -> Path:
    """Writes a .jsonl file: one line a record, a str as it stands, anything else as JSON."""
    lines = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records]
    return write(path, "".join(f"{line}\n" for line in lines))


def read_lines(path: "str | Path") -> list[Any]:
    """The records of a .jsonl file."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line.strip()]


def read_json(path: "str | Path") -> Any:
    """The value in a .json file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def make_improvement(name: "str | Path", cases: Iterable[Any], evaluation: Any, **stages: Iterable[Any]) -> Path:
    """Writes improvements/<name>/ (or the folder *name*, if it is a path) and returns it.

    cases       records of test_cases.jsonl; a str is written as it stands
    evaluation  the value of evaluation.json, or just its list of evaluators
    stages      observations by stage; trial 1 and status completed unless they say otherwise
    """
    folder = Path(name) if len(Path(name).parts) > 1 else Path("improvements") / name
    write_lines(folder / "test_cases.jsonl", cases)
    document = {"version": 1, "evaluators": evaluation} if isinstance(evaluation, list) else evaluation
    write(folder / "evaluation.json", json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    for stage, observations in stages.items():
        filled = [each if isinstance(each, str) else {"trial": 1, "status": "completed", **each} for each in observations]
        write_lines(folder / f"{stage}.jsonl", filled)
    return folder


def golden(name: str, text: str) -> None:
    """Fails with a diff unless *text* is that of tests/golden/<name>; KAIZEN_UPDATE_GOLDEN=1 writes it."""
    compare_with_file(TESTS / "golden" / name, text)


def compare_with_file(path: Path, text: str) -> None:
    """Fails with a diff unless *text* is what *path* holds; KAIZEN_UPDATE_GOLDEN=1 writes it."""
    if os.environ.get("KAIZEN_UPDATE_GOLDEN") == "1":
        write(path, text)
        return
    expected = path.read_bytes().decode("utf-8") if path.is_file() else ""
    if text != expected:
        shown = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        raise AssertionError(f"{difference(expected, text, shown)}\nKAIZEN_UPDATE_GOLDEN=1 writes it; review the difference like code")


def difference(expected: str, found: str, name: str, limit: int = 200) -> str:
    """A unified diff of at most *limit* lines of 300 characters."""
    pairs = [text.splitlines() for text in (expected, found)]
    lines = list(difflib.unified_diff(*pairs, f"{name} as expected", "as found", lineterm=""))
    shown = [line[:300] for line in lines[:limit]] or ["(only line ends or the last newline differ)"]
    return "\n".join([*shown, f"… {len(lines) - limit} more lines"] if len(lines) > limit else shown)
