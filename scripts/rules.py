"""The rules that make one file out of many modules sound, and the house they keep.

The bundle has one namespace and one order. That is only safe if the modules could
not tell the difference, so most rules close one way in which they could: a name with
two meanings, an import that points upwards, a forgotten import that another section
would silently supply, a use of __file__, and so on. The others keep effects behind
their doors, start-up cheap, and modules and functions small.

`check_package` appends every breach to *problems* as "path:line: message"; nothing is
repaired here.
"""

import ast
import builtins
import symtable
import sys
from typing import TypeGuard

from sources import (
    LOADER,
    PACKAGE,
    PROVIDED,
    SOURCE_ONLY,
    House,
    Import,
    Module,
    Package,
    Problems,
    bound_names,
    is_header,
    is_internal,
    last_line,
)

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_SUMMARY = 88  # characters in the first line of a module's docstring

TRIPLE = "'" * 3  # the quotes around the text of a section in the bundle

# Never: @dataclass costs 1 ms a class at every start, NamedTuple 0.1 ms.
NEVER_STDLIB = {"dataclasses": "use typing.NamedTuple; a dataclass costs 1 ms at every start"}
# In the standard library of 3.10, gone by 3.13.
REMOVED_STDLIB = frozenset(
    "aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap "
    "msilib nis nntplib ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib".split()
)
# Newer than 3.10: only inside a function whose caller has looked at the version.
NEWER_STDLIB = frozenset(["tomllib"])
# Builtins that 3.10 does not have.
NEWER_BUILTINS = frozenset(["BaseExceptionGroup", "ExceptionGroup", "PythonFinalizationError", "EncodingWarning"])
# Module attributes whose value would differ between src/ and the bundle.
MODULE_ATTRIBUTES = frozenset(["__doc__", "__file__", "__name__", "__package__", "__path__", "__spec__"])
MODULE_ATTRIBUTES_ALLOWED_IN = "foundation.identity"
# Modules that anyone may import, but not all of whose functions anyone may use.
PARTLY_BEHIND_DOORS = frozenset(["asyncio", "codecs", "io", "os", "sys"])


def check_package(package: Package, house: House, problems: Problems) -> None:
    """Hold each module, and then all of them together, to the rules."""
    for module in package.modules:
        check_form(module, problems)
        check_imports(module, house, problems)
        check_nodes(module, house, problems)
        check_names(module, house, problems)
        check_effects(module, house, problems)
    check_references(package.modules, problems)
    check_meanings(package.modules, problems)
    name, function = house.entry
    if not any(module.name == name and function in module.defined for module in package.modules):
        problems.add(f"src/{PACKAGE}", 1, f"no {function}() in {PACKAGE}.{name}")


# --- One module --------------------------------------------------------------------


def check_form(module: Module, problems: Problems) -> None:
    """Docstring, length, and what may stand at the top level."""
    if not module.docstring:
        problems.add(module.path, 1, "has no docstring; say in one line what the module is for")
    if len(module.summary) > MAX_SUMMARY:
        problems.add(module.path, 1, f"first docstring line is over {MAX_SUMMARY} characters")
    if len(module.lines) > MAX_MODULE_LINES:
        message = f"has {len(module.lines)} lines, over {MAX_MODULE_LINES}; split it"
        problems.add(module.path, MAX_MODULE_LINES, message)
    for number, line in enumerate(module.lines, 1):
        if TRIPLE in line:
            problems.add(module.path, number, f"holds {TRIPLE}, which would end the text of its section; use three double quotes")
    for statement in module.body:
        if is_header(statement):
            problems.add(module.path, statement.lineno, "imports go above the first statement")
        elif isinstance(statement, ast.Expr):
            problems.add(module.path, statement.lineno, "a bare expression runs at import; put it in a function")


def check_imports(module: Module, house: House, problems: Problems) -> None:
    """The imports that open a module: standard library, of the start-up set, through their doors."""
    for entry in module.stdlib:
        check_startup(module, entry.line, entry.source, house, problems)
        check_door(module, entry.line, f"{entry.source}.{entry.name}" if entry.name else entry.source, house, problems)
    for entry in module.stdlib + module.typing:
        check_stdlib(module, entry.line, entry.source, problems)
        if entry.text.startswith("import ") and " as " in entry.text and "." not in entry.source:
            problems.add(module.path, entry.line, f"import {entry.source} under its own name, so that a search finds it")


def check_stdlib(module: Module, line: int, source: str, problems: Problems) -> None:
    """Refuse what is not in the standard library of every supported Python."""
    top = source.split(".")[0]
    if top not in sys.stdlib_module_names or top in REMOVED_STDLIB or top in NEWER_STDLIB:
        problems.add(module.path, line, f"{source} is not in the standard library of 3.10 to 3.13")
    elif top in NEVER_STDLIB:
        problems.add(module.path, line, f"{source}: {NEVER_STDLIB[top]}")


def check_startup(module: Module, line: int, source: str, house: House, problems: Problems) -> None:
    """Refuse a module at the top level that not every start needs."""
    if source.split(".")[0] not in house.startup:
        problems.add(module.path, line, f"{source} costs time at every start; import it inside the function that needs it")


def check_door(module: Module, line: int, name: str, house: House, problems: Problems) -> None:
    """Refuse an effect outside its door; *name* is a dotted name or a builtin."""
    for effect, door in house.doors.items():
        if any(reaches(name, each) for each in door.names) and not behind(module.name, door.modules):
            allowed = f"{', '.join(door.modules)} alone" if door.modules else "nobody"
            problems.add(module.path, line, f"{name} {effect}; that is for {allowed}")


def reaches(name: str, door: str) -> bool:
    """True if the dotted *name* is what *door* names, or a part of it.

    >>> reaches("os.execve", "os.exec*"), reaches("http.server.X", "http.server"), reaches("openly", "open")
    (True, True, False)
    """
    return name.startswith(door[:-1]) if door.endswith("*") else name == door or name.startswith(door + ".")


def behind(name: str, modules: tuple[str, ...]) -> bool:
    """True if *modules* holds the module *name* or, with an ending dot, its folder."""
    return any(name == each or each.endswith(".") and name.startswith(each) for each in modules)


def check_nodes(module: Module, house: House, problems: Problems) -> None:
    """What can stand anywhere: nested imports, effects by attribute, long functions, new syntax."""
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in module.body]
    methods = {name for door in house.doors.values() for name in door.names if name.startswith(".")}
    while pending:
        node, inside = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = True
            length = last_line(node) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                problems.add(module.path, node.lineno, f"{node.name} has {length} lines, over {MAX_FUNCTION_LINES}; split it")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            check_nested_import(module, node, inside, house, problems)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            if module.lines[node.lineno - 1][node.col_offset :].partition("with")[2].lstrip().startswith("("):
                problems.add(module.path, node.lineno, "with and a parenthesis: Python 3.8 cannot read it, nor the version guard")
        elif isinstance(node, ast.Attribute):
            name = f".{node.attr}" if f".{node.attr}" in methods else dotted(node)
            if name.startswith(".") or name.split(".")[0] in PARTLY_BEHIND_DOORS:
                check_door(module, node.lineno, name, house, problems)
        for field in node._fields:
            value = getattr(node, field, None)
            pending += [(child, inside) for child in (value if isinstance(value, list) else [value]) if is_branch(child)]


def is_branch(value: object) -> TypeGuard[ast.AST]:
    """True for a node that may have others below it."""
    return isinstance(value, ast.AST) and bool(value._fields) and not isinstance(value, (ast.Name, ast.Constant))


def dotted(node: ast.Attribute) -> str:
    """'os.path.join' for that attribute; '' if it does not begin with a plain name."""
    parts: list[str] = []
    value: ast.expr = node
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    return ".".join([value.id, *reversed(parts)]) if isinstance(value, ast.Name) else ""


def check_nested_import(module: Module, node: ast.Import | ast.ImportFrom, inside: bool, house: House, problems: Problems) -> None:
    """Imports below the top may only bring in the standard library; outside functions, only the start-up set."""
    if is_internal(node) and inside:
        return  # see check_references
    for alias in node.names:
        source, name = alias.name, alias.name
        if isinstance(node, ast.ImportFrom):
            source = PACKAGE if node.level else node.module or ""
            name = f"{source}.{alias.name}"
        if source.split(".")[0] == PACKAGE:
            problems.add(module.path, node.lineno, "import package names at the top of the module, or inside a function")
            continue
        if not (inside and source in NEWER_STDLIB):
            check_stdlib(module, node.lineno, source, problems)
        check_door(module, node.lineno, name, house, problems)
        if not inside:
            check_startup(module, node.lineno, source, house, problems)
        if isinstance(node, ast.Import) and alias.asname and source in PARTLY_BEHIND_DOORS:
            problems.add(module.path, node.lineno, f"import {source} under its own name, so that a search finds it")


def check_names(module: Module, house: House, problems: Problems) -> None:
    """Each module is complete by itself.

    In one namespace a forgotten import goes unnoticed, because some other section
    supplies the name; so undefined names are refused here, and unused imports too.
    """
    imported = {entry.bound: entry.line for entry in module.stdlib + module.internal}
    known = set(module.defined) | set(imported) | (set(dir(builtins)) - NEWER_BUILTINS)
    known |= {entry.bound for entry in module.typing}
    used, rebound = global_names(module.table)
    bound, read = comprehension_names(module.tree)
    used = used - (bound - known) | read & known
    behind_doors = {name for door in house.doors.values() for name in door.names}
    for name in sorted(used):
        if name in MODULE_ATTRIBUTES:
            if module.name != MODULE_ATTRIBUTES_ALLOWED_IN:
                message = f"{name} differs in the bundle; only {MODULE_ATTRIBUTES_ALLOWED_IN} may use it"
                problems.add(module.path, first_use(module, name), message)
        elif name not in known:
            problems.add(module.path, first_use(module, name), f"{name} is not defined or imported in this module")
        elif name in behind_doors and hasattr(builtins, name):
            check_door(module, first_use(module, name), name, house, problems)
    for name in sorted(set(imported) - used - names_at_top(module)):
        problems.add(module.path, imported[name], f"{name} is imported but not used")
    for name in sorted(rebound - set(module.defined)):
        message = f"'global {name}' rebinds a name that this module does not define"
        problems.add(module.path, first_use(module, name), message)


def check_effects(module: Module, house: House, problems: Problems) -> None:
    """What a module does to others while it is read: fill a table with a decorator that the house knows, and nothing else."""
    others = {entry.name for entry in module.internal}
    for statement in module.body:
        for decorator in getattr(statement, "decorator_list", []):
            name = getattr(decorator.func if isinstance(decorator, ast.Call) else decorator, "id", "")
            if name in others - set(house.registries):
                message = f"@{name} may fill a table, which has to be whole when it is read: name both in HOUSE.registries"
                problems.add(module.path, statement.lineno, message)
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        changed = {getattr(target.value, "id", "") for target in targets if isinstance(target, (ast.Subscript, ast.Attribute))}
        if changed & others:
            problems.add(module.path, statement.lineno, f"changes {min(changed & others)}, which may be read without this module")


def first_use(module: Module, name: str) -> int:
    """The first line on which *name* stands in the code of a module; 1 if it does not."""
    lines = [node.lineno for node in ast.walk(module.tree) if isinstance(node, ast.Name) and node.id == name]
    return min(lines, default=1)


def names_at_top(module: Module) -> set[str]:
    """The names in statements at the top level; from 3.12 on symtable loses those that only a comprehension there reads."""
    statements = [statement for statement in module.body if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))]
    return {node.id for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Name)}


def global_names(table: symtable.SymbolTable) -> tuple[set[str], set[str]]:
    """(global names that a module reads, global names that its functions assign)."""
    used: set[str] = set()
    rebound: set[str] = set()
    pending = [table]
    while pending:
        scope = pending.pop()
        pending.extend(scope.get_children())
        outermost = scope is table
        for symbol in scope.get_symbols():
            # From 3.12 on, the variables of a comprehension at the top level stand here like names that it assigns.
            is_own = symbol.is_assigned() and not symbol.is_imported()
            if symbol.is_referenced() and (not is_own if outermost else symbol.is_global()):
                used.add(symbol.get_name())
            if not outermost and symbol.is_declared_global() and symbol.is_assigned():
                rebound.add(symbol.get_name())
    return used, rebound


def comprehension_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """(names that comprehensions at the top level bind, other names that they read).

    Python 3.12 puts both into the table of the module (PEP 709): the first look like globals
    there, and the second may look unused.
    """
    bound: set[str] = set()
    read: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
            names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
            own = {each.id for each in names if isinstance(each.ctx, ast.Store)}
            bound |= own
            read |= {each.id for each in names} - own
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
    return bound, read


# --- The modules together ----------------------------------------------------------


def check_references(modules: list[Module], problems: Problems) -> None:
    """Imports within the package point downwards, to names that are there."""
    position = {module.name: index for index, module in enumerate(modules)}
    for index, module in enumerate(modules):
        for line, target, name, _ in module.internal + module.inner:
            if name in PROVIDED and target in SOURCE_ONLY and line <= module.body_start:
                continue
            if target not in position:
                problems.add(module.path, line, f"{PACKAGE}.{target} is not in LAYERS")
            elif position[target] >= index:
                message = f"imports {PACKAGE}.{target}, which comes later in LAYERS; dependencies point downwards"
                problems.add(module.path, line, message)
            elif name not in modules[position[target]].defined:
                problems.add(module.path, line, f"{PACKAGE}.{target} does not define {name}")


def check_meanings(modules: list[Module], problems: Problems) -> None:
    """A top-level name has one meaning in the whole package, and hides no builtin."""
    meanings: dict[str, tuple[str, int, str]] = {}  # name -> (path, line, what)
    for statement in ast.parse(LOADER).body:
        if not is_header(statement):
            meanings |= {name: ("scripts/loader.py", line, "the loader's") for name, line in bound_names(statement)}
    for module in modules:
        entries = [(name, line, f"defined in {module.path}") for name, line in module.defined.items()]
        entries += [(entry.bound, entry.line, meaning(entry)) for entry in module.stdlib + module.typing]
        for name, line, what in entries:
            if hasattr(builtins, name) and not name.startswith("__"):
                problems.add(module.path, line, f"{name} would hide the builtin in every module")
            path, earlier_line, earlier = meanings.setdefault(name, (module.path, line, what))
            if earlier != what:
                message = f"{name} has another meaning at {path}:{earlier_line}; names are unique across the package"
                problems.add(module.path, line, message)


def meaning(entry: Import) -> str:
    """What an import binds: `import urllib.parse` binds urllib, as `import urllib.error` does."""
    plain = not entry.name and entry.bound == entry.source.split(".")[0]
    return f"import {entry.bound}" if plain else entry.text
