"""Read src/kaizen/ and take its modules apart; what may stand where is said here.

`HOUSE` is the list of choices that a change to the project may touch: the entry point, the
doors, the modules that may load at start-up, the mirrors. `read_package` gives the
modules in bundle order. The rules that hold them to this are in rules.py.
"""

import ast
import io
import symtable
import tokenize
from pathlib import Path
from typing import NamedTuple

PACKAGE = "kaizen"

# Oldest Python that may run kaizen.py, and the oldest syntax it may contain. The
# whole file is compiled before its first line runs, so the friendly "needs 3.10"
# message can only reach users of 3.8 and 3.9 if the file parses there.
MINIMUM_PYTHON = (3, 10)
MINIMUM_SYNTAX = (3, 8)

ASSET_FUNCTION = "asset_text"
LOADER = (Path(__file__).parent / "loader.py").read_text(encoding="utf-8")  # stands at the head of the bundle
PROVIDED = (ASSET_FUNCTION, "load_section", "places")  # from PACKAGE.embed in the sources, by the build in the bundle
ASSET_KINDS = frozenset(".css .html .js .json .jsonl .md .py .sh .svg .txt".split())
SOURCE_ONLY = ("embed", "__main__")  # read by nobody but a run from src/; never shipped


class Door(NamedTuple):
    """An effect on the world outside, and the only modules that may have it.

    names    dotted modules, functions or builtins; an ending "*" stands for any rest
    modules  dotted modules; an ending "." stands for a folder
    """

    names: tuple[str, ...]
    modules: tuple[str, ...] = ()


class House(NamedTuple):
    """The choices of one package; tests build a toy with choices of its own.

    entry    (module, function) that the bundle runs as a script
    doors    {what it does: Door}; printed at the head of the bundle
    startup  standard-library modules that may be imported at the top of a module
    mirrors  skill folders that carry a copy of the bundle as scripts/kaizen.py
    registries  {decorator @name(entry, …, sentence, …, group=…): (the table that it fills, the group of an entry that names none)};
             who imports the table gets all modules that use the decorator, `places` tells where an entry is
    """

    entry: tuple[str, str]
    doors: dict[str, Door]
    startup: frozenset[str]
    mirrors: tuple[str, ...] = ()
    registries: dict[str, tuple[str, str]] = {}  # noqa: RUF012 (never changed)


def words(text: str) -> tuple[str, ...]:
    """The blank-separated words of *text*."""
    return tuple(text.split())


HOUSE = House(
    entry=("cli.main", "main"),
    doors={
        "starts or signals processes": Door(
            words(
                "subprocess multiprocessing pty os.system os.popen os.exec* os.spawn* os.posix_spawn* os.fork* os.kill* "
                "asyncio.create_subprocess_* concurrent.futures.ProcessPoolExecutor"
            ),
            ("foundation.process",),
        ),
        "sets signals and timers": Door(("signal",), ("foundation.process", "evaluators.", "cli.")),
        "starts threads": Door(words("threading _thread concurrent.futures"), ("foundation.process", "foundation.progress", "runs.")),
        "opens files": Door(
            words("open os.open io.open io.open_code io.FileIO codecs.open .read_text .read_bytes .write_text .write_bytes"),
            ("foundation.files",),
        ),
        "writes to the terminal": Door(
            words("print sys.stdout.write sys.stderr.write sys.stdout.buffer"), ("commands.", "cli.", "foundation.progress")
        ),
        "listens on a port": Door(words("http.server socketserver wsgiref xmlrpc.server asyncio.start_*")),
        "opens connections": Door(
            words("socket ssl http.client urllib.request ftplib imaplib poplib smtplib xmlrpc.client asyncio.open_*")
        ),
        "runs SQL": Door(words("sqlite3 dbm")),
        "loads or evaluates code": Door(
            words("eval exec compile __import__ importlib pkgutil runpy ctypes pickle marshal shelve code codeop zipimport")
        ),
    },
    # What argparse, hashlib, json, re and typing load anyway costs nothing more; contextlib
    # (1.5 ms on 3.13) is here because a decorator cannot wait for its function.
    startup=frozenset(
        words(
            "abc argparse codecs collections contextlib enum errno functools hashlib io itertools json "
            "keyword math operator os re stat sys time types typing"
        )
    ),
    mirrors=(".agents/skills/improve-agent", "plugins/kaizen/skills/autoresearch", "plugins/kaizen/skills/guide"),
    registries={"evaluator": ("EVALUATORS", ""), "command": ("COMMANDS", "main job")},
)


class Problems(list[str]):
    """Breaches found so far; `add` formats one as path:line: message."""

    def add(self, path: str, line: int, message: str) -> None:
        self.append(f"{path}:{line}: {message}")


class Asset(NamedTuple):
    """NAME = asset_text("file"), on lines first..last."""

    first: int
    last: int
    name: str
    file: str


class Import(NamedTuple):
    """One name that an import at the top of a module binds.

    source  dotted module; for one of the package without "kaizen."
    name    what is taken from it, or "" for `import source`
    bound   the name that the module knows it by
    """

    line: int
    source: str
    name: str
    bound: str

    @property
    def text(self) -> str:
        """The statement that does this alone."""
        plain = f"from {self.source} import {self.name}" if self.name else f"import {self.source}"
        usual = self.name or self.source.split(".")[0]
        return plain if self.bound == usual else f"{plain} as {self.bound}"


class Module:
    """One file of the package, taken apart.

    name       dotted, without the package: "stats.intervals"
    layer      its key in LAYERS
    path       as shown in messages: "src/kaizen/stats/intervals.py"
    lines      without line ends; lines[0] is line 1
    docstring  as written, without the quotes
    header     the import statements (and `if TYPE_CHECKING:`) that open the module
    body       the statements after them
    body_start first line after the docstring and the header
    stdlib     [Import] of the standard library
    typing     the same, for imports under `if TYPE_CHECKING:`
    internal   [Import] within the package
    inner      the same, for imports inside functions
    shipped    lines as the bundle has them: with load_section(…) for the imports of `inner`
    assets     [Asset]
    defined    {top-level name: line}
    decorators [(name, call)] of the decorators of the form @name(…) at the top level
    """

    def __init__(self, name: str, layer: str, path: str, text: str):
        self.name, self.layer, self.path = name, layer, path
        self.lines = text.split("\n")[:-1]
        self.tree = ast.parse(text, path, feature_version=MINIMUM_SYNTAX)
        self.table = symtable.symtable(text, path, "exec")
        self.docstring = (ast.get_docstring(self.tree, clean=False) or "").rstrip()
        self.stdlib: list[Import] = []
        self.typing: list[Import] = []
        self.internal: list[Import] = []
        self.inner: list[Import] = []
        self.shipped = list(self.lines)
        self.assets: list[Asset] = []
        self.defined: dict[str, int] = {}
        self.body = list(self.tree.body)
        self.body_start = self.header_start = 1
        if self.docstring:
            self.body_start = self.header_start = last_line(self.body.pop(0)) + 1
        self.header: list[ast.stmt] = []
        while self.body and is_header(self.body[0]):
            self.header.append(self.body.pop(0))
            self.body_start = last_line(self.header[-1]) + 1
        calls = [each for node in self.body for each in getattr(node, "decorator_list", []) if isinstance(each, ast.Call)]
        self.decorators = [(each.func.id, each) for each in calls if isinstance(each.func, ast.Name)]

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.docstring.split("\n")[0]

    @property
    def shown(self) -> str:
        """Path as printed in the bundle, relative to src/kaizen/."""
        return self.name.replace(".", "/") + ".py"


class Package(NamedTuple):
    """The modules in bundle order, and the lines of the package's docstring with its quotes."""

    modules: list[Module]
    docstring_lines: list[str]


# --- Reading -----------------------------------------------------------------------


def read_package(root: Path, problems: Problems) -> Package:
    """The package under *root*; breaches of form go to *problems*."""
    shown = f"src/{PACKAGE}/__init__.py"
    text = read_text(root / shown, shown, problems)
    tree = ast.parse(text, shown)
    layers: dict[str, list[str]] = {}
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and getattr(target, "id", "") == "LAYERS" and statement.value:
            layers = ast.literal_eval(statement.value)
        elif statement is not tree.body[0] or ast.get_docstring(tree) is None:
            problems.add(shown, statement.lineno, "holds a docstring and LAYERS, nothing else")
    if not layers or ast.get_docstring(tree) is None:
        problems.add(shown, 1, "needs a docstring and LAYERS = {'layer': ['module', ...], ...}")
        return Package([], [])

    source = root / "src" / PACKAGE
    found = [read_module(root, name, layer, problems) for layer, name in expand(layers, source, shown, problems)]
    modules = [module for module in found if module]
    check_folders(root, source, {module.name for module in modules}, problems)
    first = tree.body[0]
    return Package(modules, text.split("\n")[first.lineno - 1 : last_line(first)])


def expand(layers: dict[str, list[str]], source: Path, shown: str, problems: Problems) -> list[tuple[str, str]]:
    """[(layer, module)]; "folder.*" stands for the folder's other modules, A to Z."""
    explicit = [name for members in layers.values() for name in members if not name.endswith(".*")]
    if len(set(explicit)) != len(explicit):
        problems.add(shown, 1, "LAYERS names a module twice")
    found = []
    for layer, members in layers.items():
        for name in members:
            if not name.endswith(".*"):
                found.append((layer, name))
                continue
            folder = name[:-2]
            stems = sorted(path.stem for path in (source / folder.replace(".", "/")).glob("*.py"))
            names = [f"{folder}.{stem}" for stem in stems if stem != "__init__"]
            found += [(layer, each) for each in names if each not in explicit]
    return found


def read_text(path: Path, shown: str, problems: Problems) -> str:
    """Text of a UTF-8 file with LF line ends and a final newline; breaches are reported."""
    raw = path.read_bytes()
    for byte, what in ((b"\r", "has a CR; use LF line ends"), (b"\0", "has a NUL byte"), (b"\f", "has a form feed")):
        if byte in raw:
            problems.add(shown, raw[: raw.index(byte)].count(b"\n") + 1, what)
    if raw.startswith(b"\xef\xbb\xbf"):
        problems.add(shown, 1, "starts with a byte order mark")
    if raw and not raw.endswith(b"\n"):
        problems.add(shown, raw.count(b"\n") + 1, "does not end in a newline")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.add(shown, raw[: error.start].count(b"\n") + 1, "is not UTF-8")
        return ""


def read_module(root: Path, name: str, layer: str, problems: Problems) -> Module | None:
    """Read and take apart src/kaizen/<name>.py; None if it cannot be parsed at all."""
    path = root / "src" / PACKAGE / (name.replace(".", "/") + ".py")
    shown = path.relative_to(root).as_posix()
    if not path.is_file():
        problems.add(shown, 1, "is named in LAYERS but does not exist")
        return None
    text = read_text(path, shown, problems)
    try:
        module = Module(name, layer, shown, text)
    except SyntaxError as error:
        problems.add(shown, error.lineno or 1, f"syntax error: {error.msg}")
        return None
    except ValueError as error:  # a NUL byte, on Python before 3.12
        problems.add(shown, 1, f"syntax error: {error}")
        return None
    refuse_lost_text(module, problems)
    for statement in module.header:
        if isinstance(statement, ast.If):
            for inner in statement.body:
                take_import(module, inner, module.typing, problems)
        else:
            take_import(module, statement, module.stdlib, problems)
    take_inner(module, problems)
    for statement in module.body:
        if ASSET_FUNCTION in text:
            take_assets(module, statement, problems)
        for bound, line in bound_names(statement):
            module.defined.setdefault(bound, line)
    return module


def check_folders(root: Path, source: Path, listed: set[str], problems: Problems) -> None:
    """Every file belongs to LAYERS; a folder has an __init__.py, which holds a docstring only."""
    bare: set[Path] = set()
    for path in sorted(source.rglob("*.py")):
        shown = path.relative_to(root).as_posix()
        parts = path.relative_to(source).with_suffix("").parts
        if parts[0] == "assets":
            continue
        if path.name == "__init__.py":
            code = [node for node in ast.parse(path.read_bytes()).body if not isinstance(node, ast.Expr)]
            if code and path.parent != source:
                problems.add(shown, code[0].lineno, "the __init__.py of a folder holds a docstring only")
            continue
        if ".".join(parts) not in listed and ".".join(parts) not in SOURCE_ONLY:
            problems.add(shown, 1, "is not in LAYERS")
        init = path.parent / "__init__.py"
        if not init.is_file() and path.parent not in bare:
            bare.add(path.parent)
            problems.add(init.relative_to(root).as_posix(), 1, "does not exist; a folder says in one docstring what it is for")


# --- Taking apart ------------------------------------------------------------------


def is_header(statement: ast.stmt) -> bool:
    """True for an import and for `if TYPE_CHECKING:` with imports, which may open a module."""
    if isinstance(statement, ast.If):
        guarded = isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"
        return guarded and not statement.orelse and all(map(is_header, statement.body))
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def last_line(node: ast.stmt) -> int:
    """Number of the last line of a statement."""
    return node.end_lineno or node.lineno


def take_import(module: Module, node: ast.stmt, found: list[Import], problems: Problems) -> None:
    """Add one import at the top to *found* (module.stdlib or .typing) or to module.internal."""
    line = node.lineno
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == PACKAGE:
                problems.add(module.path, line, f"write 'from {alias.name} import NAME'")
            else:
                found.append(Import(line, alias.name, "", alias.asname or alias.name.split(".")[0]))
    elif isinstance(node, ast.ImportFrom):
        source = node.module or ""
        if node.level:
            problems.add(module.path, line, f"relative import; write 'from {PACKAGE}.… import NAME'")
        elif source == "__future__":
            problems.add(module.path, line, "no __future__ imports: the bundle would apply them to every module")
        else:
            for alias in node.names:
                take_name(module, Import(line, source, alias.name, alias.asname or alias.name), found, problems)


def take_name(module: Module, entry: Import, found: list[Import], problems: Problems) -> None:
    """Add one `from source import name` to *found*, or to module.internal."""
    if entry.name == "*":
        problems.add(module.path, entry.line, "star import")
    elif entry.source.split(".")[0] != PACKAGE:
        found.append(entry)
    elif found is module.typing:
        problems.add(module.path, entry.line, "import package names outside TYPE_CHECKING; there are no cycles")
    elif entry.bound != entry.name:
        problems.add(module.path, entry.line, "import package names without 'as'")
    elif entry.source == PACKAGE:
        problems.add(module.path, entry.line, f"import names, not the module {entry.name}")
    else:
        module.internal.append(entry._replace(source=entry.source[len(PACKAGE) + 1 :]))


def is_internal(node: ast.AST) -> bool:
    """True for `from kaizen.… import …`."""
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE


def take_inner(module: Module, problems: Problems) -> None:
    """Add the imports within the package that stand inside functions to module.inner, and what they become to module.shipped."""
    if not any(f"from {PACKAGE}" in line and not line.startswith("from ") for line in module.lines):
        return
    for node in [node for statement in module.body for node in ast.walk(statement)]:
        if not (isinstance(node, ast.ImportFrom) and is_internal(node)):
            continue
        first, last = node.lineno, last_line(node)
        if module.lines[first - 1][: node.col_offset].strip() or ";" in module.lines[last - 1]:
            problems.add(module.path, first, "an import within the package stands on lines of its own")
        before = len(module.internal)
        for alias in node.names:
            take_name(module, Import(first, node.module or "", alias.name, alias.asname or alias.name), [], problems)
        module.inner += module.internal[before:]
        del module.internal[before:]
        target = (node.module or "")[len(PACKAGE) + 1 :]
        module.shipped[first - 1 : last] = [f'{" " * node.col_offset}load_section("{target}")', *[""] * (last - first)]


def refuse_lost_text(module: Module, problems: Problems) -> None:
    """Refuse comments among the imports: they would vanish from the bundle.

    A comment below the last import belongs to the code that follows and is kept.
    """
    lines = module.lines[module.header_start - 1 : module.body_start - 1]
    if not any("#" in line or ";" in line for line in lines):
        return  # tokenising is slow, and hardly ever needed
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
        line = module.header_start + token.start[0] - 1
        if token.type == tokenize.COMMENT:
            problems.add(module.path, line, "a comment among the imports would be lost")
        elif token.string == ";":
            problems.add(module.path, line, "one statement a line")


def take_assets(module: Module, statement: ast.stmt, problems: Problems) -> None:
    """Note NAME = asset_text("file"); any other use of asset_text is refused."""
    calls = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == ASSET_FUNCTION
    ]
    if not calls:
        return
    asset = plain_asset(statement, calls[0])
    if asset:
        module.assets.append(asset)
    else:
        problems.add(module.path, calls[0].lineno, f'only NAME = {ASSET_FUNCTION}("file.ext") at the top level')


def plain_asset(statement: ast.stmt, call: ast.Call) -> Asset | None:
    """The asset that a statement of exactly the form NAME = asset_text("file") embeds."""
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return None
    target, argument = statement.targets[0], call.args[0] if len(call.args) == 1 and not call.keywords else None
    if isinstance(target, ast.Name) and isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return Asset(statement.lineno, last_line(statement), target.id, argument.value)
    return None


def bound_names(statement: ast.stmt) -> list[tuple[str, int]]:
    """[(name, line)] for every name that a top-level statement binds in the module."""
    pending: list[ast.AST] = [statement]
    found: list[tuple[str, int]] = []
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append((node.name, node.lineno))
            continue  # what is inside has a scope of its own
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.append((node.id, node.lineno))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [(alias.asname or alias.name.split(".")[0], node.lineno) for alias in node.names]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.append((node.name, node.lineno))
        pending.extend(ast.iter_child_nodes(node))
    return found
