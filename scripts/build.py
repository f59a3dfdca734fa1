#!/usr/bin/env python3
"""Assemble the package src/kaizen/ into the single file kaizen.py.

    python scripts/build.py              write kaizen.py and its copies in the skill folders
    python scripts/build.py --check      exit 1 if one of them is not what src/ gives
    python scripts/build.py --where 812  which source line is line 812 of kaizen.py?
    python scripts/build.py --map        layers, modules, sizes, imports, long functions
    python scripts/build.py --unfold F   write the same program to F with every section as plain code

What comes out is readable Python in one namespace, in the order of LAYERS (in
src/kaizen/__init__.py). A module is a section: a banner, and its text inside an r-string,
which loader.py at the head of the file compiles when a command needs it, together with
the sections that it imports from. Code is copied line by line; only four things change:

1. the docstring of a module becomes the comment under its section banner;
2. imports between modules are dropped, for the names are in the one namespace; one inside
   a function becomes `load_section("that.module")`: the module is read when the function runs;
3. NAME = asset_text("review.css") becomes NAME = r-string with the text in it, above the section;
4. unfolded, imports of the standard library move to one sorted block at the top.

The rules that make this sound are in rules.py, the choices they hold to in sources.py;
a breach is reported as path:line: message and nothing is written. The output depends
on the bytes of src/ alone: no date, no host, no git state, whichever Python (3.10 or
newer) builds it.

Exit status: 0 done, 1 kaizen.py or a copy is stale (--check), 2 a rule is broken.
"""

import argparse
import ast
import difflib
import gc
import hashlib
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from rules import MAX_FUNCTION_LINES, check_package
from sources import (
    ASSET_KINDS,
    HOUSE,
    LOADER,
    MINIMUM_PYTHON,
    MINIMUM_SYNTAX,
    PACKAGE,
    SOURCE_ONLY,
    Asset,
    Door,
    House,
    Import,
    Module,
    Package,
    Problems,
    is_header,
    is_internal,
    last_line,
    read_package,
    read_text,
)

ROOT = Path(__file__).resolve().parent.parent
QUOTES = "'" * 3  # around the text of a section
RULE = "# " + "=" * 77
WIDTH = 99
FOLDED = """\
# Each module is a section: its own text, line by line, in a string that load_section() below
# compiles when a command needs it, after the sections that it names. Tracebacks show the lines
# of this file.""".split("\n")

Origin = tuple[str, int] | None  # (path, line) of a line of the bundle; None: written here
Pairs = list[tuple[str, Origin]]


class Bundle(NamedTuple):
    """The text of kaizen.py; origins[i] tells where its line i + 1 comes from."""

    text: str
    origins: list[Origin]


# --- Writing ---------------------------------------------------------------------------


def bundle(root: Path, house: House, problems: Problems, *, folded: bool = True) -> Bundle:
    """What src/ under *root* gives; worth something only if *problems* stays empty. Unfolded, all is plain code.

    Nothing is collected meanwhile: among a million nodes, looking for cycles takes as long as the work.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return assemble(root, house, problems, folded)
    finally:
        if collects:
            gc.enable()


def assemble(root: Path, house: House, problems: Problems, folded: bool) -> Bundle:
    """The bundle, proved if there are no *problems*."""
    package = read_package(root, problems)
    check_package(package, house, problems)
    modules = package.modules
    start = head(package, house, folded, problems)
    pairs: Pairs = [*start]
    for module in modules:
        pairs += section(module, root, problems, needs(module, modules, house) if folded else None)
    refuse_spare_assets(modules, root, problems)
    entry = f'__getattr__("{house.entry[1]}")' if folded else house.entry[1]
    tail = ["", "", 'if __name__ == "__main__":', f"    raise SystemExit({entry}())"]
    pairs += [(line, None) for line in tail]
    made = Bundle("\n".join(line for line, _ in pairs) + "\n", [origin for _, origin in pairs])
    if not problems:
        verify(made, modules, root, len(ast.parse("\n".join(line for line, _ in start)).body), folded)
    return made


def head(package: Package, house: House, folded: bool, problems: Problems) -> Pairs:
    """Lines above the first section: docstring, notice, contents, doors, two guards, loader or imports."""
    version = ".".join(map(str, MINIMUM_PYTHON))
    lines = [
        "#!/usr/bin/env python3",
        *package.docstring_lines,
        "",
        "# GENERATED FILE: do not edit. It is src/kaizen/ put into one file, line by line, by",
        "# scripts/build.py; to change it, edit src/kaizen/ and run `python scripts/build.py`.",
        "# `python scripts/build.py --check` proves that this file is what the sources give, and",
        "# `python scripts/build.py --where N` names the source of line N.",
        *(FOLDED if folded else []),
        "#",
        "# Contents, lowest layer first; a module uses only what stands above it. Search for",
        "# '# region <path>' to jump to one (editors fold these regions).",
        *contents(package.modules),
        "#",
        "# What reaches outside the process, and the only place where it may (checked at build):",
        *[f"#   {effect + ':':<30} {doors_line(door)}" for effect, door in house.doors.items()],
        "",
        "import os",
        "import sys",
        "",
        f"if sys.version_info < {MINIMUM_PYTHON}:",
        f'    raise SystemExit("kaizen needs Python {version} or newer; this is " + sys.version.split()[0])',
        'if __name__ == "__main__" and sys.path[:1] == [os.path.dirname(os.path.realpath(__file__))]:',
        "    del sys.path[0]  # a json.py beside this file must not be taken for Python's own",
        "",
    ]
    pairs: Pairs = [(line, None) for line in [*lines, *([] if folded else import_block(package.modules))]]
    return pairs + loader_lines() + [(line, None) for line in ["", "", *places(package.modules, house, problems)]]


def loader_lines() -> Pairs:
    """loader.py, its docstring as a comment."""
    tree = ast.parse(LOADER)
    code = LOADER.split("\n")[last_line(tree.body[0]) : -1]
    comment = (ast.get_docstring(tree) or "").split("\n")
    pairs: Pairs = [(f"# {line}".rstrip(), ("scripts/loader.py", 1)) for line in comment]
    return pairs + [(line, ("scripts/loader.py", number)) for number, line in enumerate(code, last_line(tree.body[0]) + 1)]


def places(modules: list[Module], house: House, problems: Problems) -> list[str]:
    """The statements that tell the loader where the program begins, and where the entries of each table are."""
    lines = [f"ENTRY[{quote(house.entry[1])}] = {quote(house.entry[0])}"]
    for filler, (table, default) in house.registries.items():
        lines.append(f"PLACES[{quote(table)}] = {{")
        for module, call in [(each, call) for each in modules for name, call in each.decorators if name == filler]:
            name, *texts = [text_of(module, argument) for argument in call.args]
            groups = [text_of(module, keyword.value) for keyword in call.keywords if keyword.arg == "group"]
            if not name:
                problems.add(module.path, call.lineno, f"@{filler} begins with a text, or a constant of this module that is one")
            place = (module.name, [*groups, default][0], next(filter(None, texts), ""))
            lines.append(f"    {quote(name)}: ({', '.join(map(quote, place))}),")
        lines.append("}")
    return lines


def text_of(module: Module, node: ast.expr) -> str:
    """The text that an expression is: a literal, or a constant that the module assigns one to; "" for anything else."""
    if isinstance(node, ast.Name):
        assigned = [each.value for each in module.body if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == node.id]
        node = assigned[0] if len(assigned) == 1 else node
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def quote(text: str) -> str:
    """*text* as a Python literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def needs(module: Module, modules: list[Module], house: House) -> list[str]:
    """Names of the sections that *module* cannot do without, in bundle order.

    Those that it imports from at the top; and where it imports a table that decorators fill, all that use the decorator.
    """
    wanted = {entry.source for entry in module.internal}
    fills = {decorator for decorator, (table, _) in house.registries.items() if table in {entry.name for entry in module.internal}}
    return [
        each.name
        for each in modules
        if each is not module and (each.name in wanted or fills & {decorator for decorator, _ in each.decorators})
    ]


def doors_line(door: Door) -> str:
    """A door as paths: ("foundation.process", "cli.") gives 'foundation/process.py, cli/'."""
    paths = [module.replace(".", "/") + ("" if module.endswith(".") else ".py") for module in door.modules]
    if "exec" in door.names:
        paths.append("load_section() below, which reads the sections of this file")
    return ", ".join(paths) or "nowhere"


def contents(modules: list[Module]) -> list[str]:
    """One comment line a module. No line numbers: two branches that edit different
    modules must not both change this block."""
    lines: list[str] = []
    layer = ""
    for module in modules:
        if module.layer != layer:
            layer = module.layer
            lines += ["#", f"#   {layer}"]
        lines.append(f"#     {module.shown:<28} {module.summary}")
    return lines


def import_block(modules: list[Module]) -> list[str]:
    """Standard-library imports of all modules, merged; those for type checkers apart."""
    done = {"import os", "import sys"}  # by `head`
    real = {entry.text: entry for module in modules for entry in module.stdlib if entry.text not in done}
    typing = {entry.text: entry for module in modules for entry in module.typing if entry.text not in done | set(real)}
    lines = merged(list(real.values()))
    if typing:
        lines += ["", "if TYPE_CHECKING:", *[f"    {line}" for line in merged(list(typing.values()))]]
    return lines


def merged(entries: list[Import]) -> list[str]:
    """Imports as sorted lines: plain ones, then one from-import a module."""
    names_from: dict[str, list[str]] = {}
    for entry in entries:
        if entry.name:
            names_from.setdefault(entry.source, []).append(entry.text.partition(" import ")[2])
    lines = sorted(entry.text for entry in entries if not entry.name)
    for source, names in sorted(names_from.items()):
        names.sort(key=lambda name: (not name.isupper(), name.islower(), name))  # as isort does
        line = f"from {source} import {', '.join(names)}"
        lines += [line] if len(line) <= WIDTH else [f"from {source} import (", *[f"    {name}," for name in names], ")"]
    return lines


def section(module: Module, root: Path, problems: Problems, needed: list[str] | None) -> Pairs:
    """The lines of one module, under its banner; inside a call of the loader's `section` with what is *needed*, if that is not None."""
    pairs: Pairs = [("", None), (f"# region {module.shown}", None), (RULE, None)]
    pairs += [(f"# {line}".rstrip(), (module.path, 1)) for line in module.docstring.split("\n")]
    pairs.append((RULE, None))
    if needed is None:
        return [*pairs, *body_lines(module, asset_pairs(module, root, problems)), ("", None), ("# endregion", None)]
    for lines in asset_pairs(module, root, problems).values():
        pairs += lines
    pairs.append((f"section({quote(module.name)}, r{QUOTES}", None))
    for statement in module.header:
        if not is_internal(statement):
            pairs += [(module.lines[number - 1], (module.path, number)) for number in range(statement.lineno, last_line(statement) + 1)]
    pairs += body_lines(module, {asset.first: [] for asset in module.assets})
    names = textwrap.wrap(" ".join(needed), WIDTH - 4)
    close = [f"{QUOTES}{', (' if names else ')'}", *[f"    {quote(line + ' ')}" for line in names], *(["))"] if names else [])]
    return [*pairs, *[(line, None) for line in close], ("# endregion", None)]


def body_lines(module: Module, instead: dict[int, Pairs]) -> Pairs:
    """The lines behind the header of a module; *instead* of the assets, by their first line, what is given for them."""
    pairs: Pairs = []
    ends = {asset.first: asset.last for asset in module.assets}
    number = module.body_start
    while number <= len(module.lines):
        pairs += instead[number] if number in ends else [(module.shipped[number - 1], (module.path, number))]
        number = ends.get(number, number) + 1
    return pairs


def asset_pairs(module: Module, root: Path, problems: Problems) -> dict[int, Pairs]:
    """{first line in the module: the lines of the assignment with its text} for each asset."""
    return {asset.first: asset_lines(module, asset, root, problems) for asset in module.assets}


def asset_lines(module: Module, asset: Asset, root: Path, problems: Problems) -> Pairs:
    """The assignment with the text of the asset in place of the call."""
    shown = f"src/{PACKAGE}/assets/{asset.file}"
    path = root / shown
    if path.suffix not in ASSET_KINDS:
        problems.add(module.path, asset.first, f"{shown} is not text of a known kind ({' '.join(sorted(ASSET_KINDS))})")
        return []
    if not path.is_file() or ".." in path.parts:
        problems.add(module.path, asset.first, f"{shown} does not exist")
        return []
    text = read_text(path, shown, problems)
    literal = raw_string(text)
    if not literal:
        problems.add(shown, 1, "holds both kinds of triple quotes: cannot stand in a raw string; remove one kind")
        return []
    lines = f"{asset.name} = {literal}".split("\n")
    pairs: Pairs = [(line, (shown, index)) for index, line in enumerate(lines[:-1], 1)]
    return [*pairs, (lines[-1], (module.path, asset.last))]  # the closing quotes


def raw_string(text: str) -> str:
    """A triple-quoted raw string literal of *text*, or "" if there is none."""
    for quotes in ('"""', "'''"):
        literal = f"r{quotes}{text}{quotes}"
        if quotes not in text and text.endswith("\n") and "\0" not in text and ast.literal_eval(literal) == text:
            return literal
    return ""


def refuse_spare_assets(modules: list[Module], root: Path, problems: Problems) -> None:
    """An asset that no module embeds is dead weight, or a misspelt name."""
    folder = root / "src" / PACKAGE / "assets"
    embedded = {asset.file for module in modules for asset in module.assets}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in embedded and "__pycache__" not in name:
            problems.add(path.relative_to(root).as_posix(), 1, "no module embeds this asset")


def verify(made: Bundle, modules: list[Module], root: Path, above: int, folded: bool) -> None:
    """Prove that the bundle holds the statements of the modules, in order, behind its first *above* statements.

    Each statement stands on lines of its own that are those of its source, so equal lines are
    equal statements, and each line of a section is the line of the file that it is compiled as.
    An asset is a call there and must be a string of the file's text here.
    Raises AssertionError: a failure is a bug in this script.
    """
    lines = made.text.split("\n")
    found: list[tuple[ast.stmt, list[str]]] = []
    for node in ast.parse(made.text, "kaizen.py", feature_version=MINIMUM_SYNTAX).body[above:-1]:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call):
            text = ast.literal_eval(call.args[1])
            inside = text.split("\n")
            if inside[1:-1] != lines[node.lineno : node.lineno + len(inside) - 2]:
                raise AssertionError(f"the section of kaizen.py:{node.lineno} does not begin on that line")
            body = ast.parse(text, "kaizen.py", feature_version=MINIMUM_SYNTAX).body
            found += [(each, inside) for each in body if not is_header(each)]
        else:
            found.append((node, lines))
    wanted = [(module, node) for module in modules for node in in_order(module, folded)]
    if len(found) != len(wanted):
        raise AssertionError(f"the bundle has {len(found)} statements, src/ has {len(wanted)}")
    for (here, around), (module, there) in zip(found, wanted, strict=True):
        asset = next((asset for asset in module.assets if asset.first == there.lineno), None)
        if asset:
            value = here.value if isinstance(here, ast.Assign) else None
            text = (root / "src" / PACKAGE / "assets" / asset.file).read_text(encoding="utf-8")
            same = isinstance(value, ast.Constant) and value.value == text
        else:
            same = source_lines(here, around) == source_lines(there, module.shipped)
        if not same:
            raise AssertionError(f"changed on the way: {module.path}:{there.lineno}")


def in_order(module: Module, folded: bool) -> list[ast.stmt]:
    """The statements of a module as they come in the bundle: folded, its assets stand above the section."""
    starts = {asset.first for asset in module.assets} if folded else set()
    return sorted(module.body, key=lambda node: node.lineno not in starts)


def source_lines(node: ast.stmt, lines: list[str]) -> list[str]:
    """The lines on which a statement stands, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return lines[min([node.lineno, *[each.lineno for each in decorators]]) - 1 : last_line(node)]


# --- Commands ----------------------------------------------------------------------------


def targets(root: Path, house: House) -> list[Path]:
    """The files to write: kaizen.py, and its copy in each skill folder that is there."""
    skills = [root / mirror for mirror in house.mirrors if (root / mirror / "SKILL.md").is_file()]
    return [root / "kaizen.py", *[skill / "scripts" / "kaizen.py" for skill in skills]]


def current(target: Path) -> bytes:
    """Bytes of a file as it is; nothing for one that is missing or reached through a link."""
    linked = target.is_symlink() or target.parent.is_symlink()
    return target.read_bytes() if target.is_file() and not linked else b""


def replace(target: Path, data: bytes) -> None:
    """Write a real, executable file in place of whatever is there."""
    if target.parent.is_symlink():
        target.parent.unlink()
    target.parent.mkdir(exist_ok=True)
    beside = target.with_name(f".kaizen-{os.getpid()}.tmp")
    beside.write_bytes(data)
    beside.chmod(0o755)
    os.replace(beside, target)


def show_stale(shown: str, found: bytes, made: Bundle) -> None:
    """Say where a file departs from src/, and what to do about it."""
    print(f"build: {shown} is not what src/kaizen/ gives; run: python scripts/build.py", file=sys.stderr)
    if not found:
        print(f"build: {shown} is missing, empty or a link", file=sys.stderr)
        return
    old, new = found.decode("utf-8", "replace").split("\n"), made.text.split("\n")
    number = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new)))
    origin = made.origins[number] if number < len(made.origins) else None
    place = f" ({origin[0]}:{origin[1]})" if origin else ""
    print(f"build: first difference at {shown}:{number + 1}{place}", file=sys.stderr)
    # Around the first difference only: difflib over two whole bundles can take a minute.
    start = max(0, number - 1)
    diff = difflib.unified_diff(
        old[start : number + 20], new[start : number + 20], f"{shown} as it is", "as src/ gives it", lineterm="", n=1
    )
    for line in list(diff)[:40]:
        print(line, file=sys.stderr)


def show_map(root: Path) -> None:
    """Print the architecture: one line a module with what it imports, in brackets inside functions, then the long functions."""
    modules = read_package(root, Problems()).modules
    for module in modules:
        below = sorted({entry.source for entry in module.internal if entry.source not in SOURCE_ONLY})
        below += [f"({source})" for source in sorted({entry.source for entry in module.inner})]
        print(f"{module.layer:<11} {module.name:<26} {len(module.lines):>4} lines  <- {', '.join(below) or '-'}")
    print(f"{len(modules)} modules, {sum(len(module.lines) for module in modules)} lines")
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = last_line(node) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    print(f"over {MAX_FUNCTION_LINES} lines: {module.path}:{node.lineno} {node.name} ({length})")


def check(root: Path, house: House, made: Bundle) -> int:
    """1 if a file is not what src/ gives, with the first difference of each; else 0."""
    data = made.text.encode("utf-8")
    stale = [target for target in targets(root, house) if current(target) != data]
    for target in stale:
        show_stale(target.relative_to(root).as_posix(), current(target), made)
    return int(bool(stale))


def write(root: Path, house: House, made: Bundle) -> None:
    """Write what differs, and say so."""
    data = made.text.encode("utf-8")
    for target in targets(root, house):
        state = "unchanged" if current(target) == data else "written"
        if state == "written":
            replace(target, data)
        print(f"{target.relative_to(root).as_posix()} {state}")
    print(f"{len(made.origins)} lines, sha256 {hashlib.sha256(data).hexdigest()[:12]}")


def main(argv: list[str] | None = None, house: House = HOUSE) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="repository root")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="exit 1 if kaizen.py or a copy is stale; write nothing")
    mode.add_argument("--where", type=int, metavar="LINE", help="source of a line of kaizen.py")
    mode.add_argument("--unfold", type=Path, metavar="FILE", help="write the program with every section as plain code")
    mode.add_argument("--map", action="store_true", help="list layers, modules, sizes, imports, long functions")
    args = parser.parse_args(argv)
    if args.map:
        show_map(args.root)
        return 0

    problems = Problems()
    made = bundle(args.root, house, problems, folded=args.unfold is None)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        print(f"build: {len(problems)} problem(s); nothing written", file=sys.stderr)
        return 2
    if args.where is not None:
        origin = made.origins[args.where - 1] if 0 < args.where <= len(made.origins) else None
        print(f"{origin[0]}:{origin[1]}" if origin else "written by scripts/build.py itself")
        return 0
    if args.unfold:
        args.unfold.write_text(made.text, encoding="utf-8", newline="\n")
        return 0
    if args.check:
        return check(args.root, house, made)
    write(args.root, house, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
