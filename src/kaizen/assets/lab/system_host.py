"""One half of a typed system in a process of its own: described, run or graded, a JSON object a line each way.

    python -c TEXT describe|run|grade SYSTEM_PY FOLDER…     the folders are what modules are found in

The first line that comes back says whether the definition could be loaded; `describe` says nothing
more. Then each line in, {"request": …, "arguments": […], "context": …, "seed": …}, is answered by
{"request": …, "value": …} or {"request": …, "fault": …}. What the system prints goes to standard error.
"""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import IO, Any

SCHEMAS = ("input", "output", "reference", "metrics")
MISSING = object()


class Fault(Exception):
    """What is wrong: the path of the field, and words without any value; the original is its cause."""


def told(error: BaseException) -> str:
    """The kind of *error*, and the module that one about an import misses; nothing else of its text."""
    name = getattr(error, "name", None) if isinstance(error, ImportError) else None
    return type(error).__name__ + (f" for module {name}" if isinstance(name, str) else "")


def load(path: str) -> Any:
    """The SYSTEM of the program *path*."""
    try:
        spec = importlib.util.spec_from_file_location("system", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["system"] = module
        spec.loader.exec_module(module)
    except BaseException as error:
        import traceback

        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        line = frames[-1].lineno if frames else getattr(error, "lineno", None)
        where = f" at line {line}" if line else ""
        raise Fault("", f"cannot be loaded: {told(error)} raised{where}") from error
    return own(module, "SYSTEM")


def own(module: ModuleType, name: str) -> Any:
    """The top-level *name* of *module*."""
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise Fault("", f"defines no {name}") from error


def field(system: Any, name: str, default: Any = MISSING) -> Any:
    """The field *name* of a dict, or the attribute of any other object."""
    try:
        return system[name] if isinstance(system, dict) else getattr(system, name)
    except (KeyError, AttributeError) as error:
        if default is not MISSING:
            return default
        raise Fault("/" + name, "is missing") from error


def as_json(value: Any, path: str) -> str:
    """*value* as one line of strict JSON."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Fault(path, "cannot be written as JSON") from error


def described(system: Any) -> str:
    """Everything but the code, as JSON; neither runner nor grader is called, nor a module imported for them."""
    parts: dict[str, Any] = {name: field(system, name) for name in ("id", *SCHEMAS, "metric")}
    for name, value in parts.items():
        as_json(value, "/" + name)
    for name in ("runner", "grader"):
        half = field(system, name)
        module, colon, attribute = half.partition(":") if isinstance(half, str) else ("", "", "")
        if not callable(half) and not (colon and module and attribute):
            raise Fault("/" + name, 'must be a function, a class, or "module:name"')
    return as_json(parts, "")


def half_of(system: Any, mode: str) -> Callable[..., Any]:
    """The function that runs, or that grades; of a class one instance is made, which has `run` or `grade` or is called."""
    name = {"run": "runner", "grade": "grader"}[mode]
    half = field(system, name)
    try:
        if isinstance(half, str):
            module, _, attribute = half.partition(":")
            half = getattr(importlib.import_module(module), attribute)
        half = half() if isinstance(half, type) else half
    except BaseException as error:
        raise Fault("/" + name, f"cannot be made ready: {told(error)} raised") from error
    half = getattr(half, mode, half)
    if not callable(half):
        raise Fault("/" + name, f"has no method `{mode}` and cannot be called")
    return half  # type: ignore[no-any-return]


def extras(function: Callable[..., Any]) -> list[str]:
    """Which of `context` and `seed` the *function* has parameters for."""
    import inspect  # which takes as long to load as all the rest

    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in ("context", "seed") if name in names]


def answered(function: Callable[..., Any], known: list[str], request: dict[str, Any]) -> str:
    """The answer to one request, as a line."""
    try:
        try:
            value = function(*request["arguments"], **{name: request.get(name) for name in known})
            if hasattr(value, "__await__"):
                import asyncio

                value = asyncio.run(awaited(value))
        except Exception as error:
            raise Fault("", f"raised {told(error)}") from error
        return json.dumps({"request": request["request"]})[:-1] + ', "value": ' + as_json(value, "") + "}"
    except Fault as fault:
        return faulty(fault, request["request"])


async def awaited(value: Any) -> Any:
    """What the awaitable *value* gives."""
    return await value


def faulty(fault: Fault, request: Any) -> str:
    """*fault* as a line; with KAIZEN_DEBUG=1 its cause goes to standard error."""
    if os.environ.get("KAIZEN_DEBUG") == "1":
        import traceback

        traceback.print_exception(type(fault), fault, fault.__traceback__)
    path, words = fault.args
    return json.dumps({"request": request, "fault": words, "path": path})


def serve(mode: str, path: str, say: Callable[[str], None], requests: "IO[bytes]") -> None:
    """Loads the definition, says how that went, and answers until the requests end."""
    try:
        system = load(path)
        if mode == "describe":
            say('{"request": 0, "value": ' + described(system) + "}")
            return
        function = half_of(system, mode)
        known = extras(function)
    except Fault as fault:
        say(faulty(fault, 0))
        return
    say('{"request": 0, "value": null}')
    for line in requests:
        say(answered(function, known, json.loads(line)))


def main() -> None:
    """Takes the streams for itself, so that nothing else reads or writes them by accident."""
    mode, path, *folders = sys.argv[1:]
    sys.path[:] = [*folders, *(each for each in sys.path if each)]
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what was printed is told even of one that is killed

    def say(line: str) -> None:
        answers.write(line + "\n")
        answers.flush()

    serve(mode, path, say, requests)
    sys.stdout.flush()
    os._exit(0)  # threads that the system left behind hold up nothing


main()
