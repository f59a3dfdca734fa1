"""Sections of kaizen.py as code that is kept between processes, as Python keeps that of modules.

kaizen.py compiles its sections whenever it starts and keeps nothing. Tests start it a thousand times; what
`support` compiles first is kept in tests/__pycache__ for the other processes, by Python and by the bundle's state.
"""

import contextlib
import marshal
import os
import sys
from types import CodeType
from typing import Any

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__pycache__", f"sections-{sys.version_info[1]}-{sys.flags.optimize}.marshal")


class Compiler:
    """Stands in for `compile` in kaizen.py; the line on which a section begins tells which one it is."""

    def __init__(self, kaizen: Any) -> None:
        state = os.stat(kaizen.__file__)
        self.stamp = [sys.version, kaizen.__file__, state.st_size, state.st_mtime_ns]
        self.codes: dict[int, bytes] = {}
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError), open(KEPT, "rb") as stream:
            stamp, codes = marshal.load(stream)
            self.codes = codes if stamp == self.stamp else {}
        self.has_new = False
        kaizen.compile = self.compile

    def compile(self, text: str, path: str, mode: str, dont_inherit: bool) -> CodeType:
        """The code of a section."""
        line = len(text) - len(text.lstrip("\n"))
        if line not in self.codes:
            self.codes[line] = marshal.dumps(compile(text, path, mode, dont_inherit=dont_inherit))
            self.has_new = True
        code: CodeType = marshal.loads(self.codes[line])
        return code

    def keep(self) -> None:
        """Writes what was compiled, for other processes; nothing where that cannot be done."""
        if self.has_new:
            with contextlib.suppress(OSError):
                os.makedirs(os.path.dirname(KEPT), exist_ok=True)
                beside = f"{KEPT}.{os.getpid()}"
                with open(beside, "wb") as stream:
                    marshal.dump([self.stamp, self.codes], stream)
                os.replace(beside, KEPT)
