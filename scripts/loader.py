"""Sections: most of this file is text until a command needs it, since compiling all of it
would take longer than most commands do. `section` notes a part, `load_section` reads
it, with what it needs, into this namespace. Nothing else is ever compiled or executed.
"""

import sys
from _thread import RLock
from typing import Any

SECTIONS: dict[str, tuple[int, str, str]] = {}  # those not yet read: (line where it begins, its text, names of those it needs)
LOADING = RLock()
ENTRY: dict[str, str] = {}  # the function that runs the program: its section
PLACES: dict[str, dict[str, tuple[str, str, str]]] = {}  # table that decorators fill: what `places` gives


def section(name: str, text: str, needs: str = "") -> None:
    """Notes the section *name*, whose text begins on the line of the call."""
    SECTIONS[name] = (sys._getframe(1).f_lineno, text, needs)


def load_section(*names: str) -> None:
    """Makes what sections define, and all that they need, part of this namespace: each once, in the order of the file.

    The lines before a section are blank when it is compiled, so that a traceback shows lines of this file.
    """
    with LOADING:
        wanted, pending = set(), list(names)
        while pending:
            name = pending.pop()
            if name in SECTIONS and name not in wanted:
                wanted.add(name)
                pending += SECTIONS[name][2].split()
        for name in [name for name in SECTIONS if name in wanted]:
            line, text, _ = SECTIONS.pop(name)
            exec(compile("\n" * (line - 1) + text, __file__, "exec", dont_inherit=True), globals())


def places(table: str) -> dict[str, tuple[str, str, str]]:
    """{entry of a table that decorators fill: (its section, its group, its sentence)}, in the order of the file."""
    return PLACES[table]


def __getattr__(name: str) -> Any:
    """What `import kaizen` gives as kaizen.NAME: every section is read for it, but only its own for the program's entry."""
    if not (name.startswith("__") and name.endswith("__")):
        load_section(*([ENTRY[name]] if name in ENTRY else SECTIONS))
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every name of the program, for `dir(kaizen)`: all sections are read."""
    load_section(*SECTIONS)
    return sorted(globals())
