"""The amalgamator: what it copies, what it refuses, and that the bundle behaves.

Most tests build a toy package (tests/data/toy) which has the shape of the real one and
a house of its own; the last class looks at the real one.
"""

import contextlib
import hashlib
import importlib.util
import io
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOY = ROOT / "tests/data/toy"
sys.path.insert(0, str(ROOT / "scripts"))

import build
import rules
import sources
from sources import Door, House

TOY_HOUSE = House(
    entry=("cli.main", "main"),
    doors={
        "starts processes": Door(("subprocess", "os.system", "os.exec*", "os.kill"), ("foundation.process",)),
        "listens on a port": Door(("http.server", "socketserver"), ("web.service",)),
        "opens files": Door(("open", "os.open", ".read_text", ".write_text"), ("foundation.", "commands.")),
        "loads or evaluates code": Door(("importlib", "pickle", "eval", "exec", "compile")),
        "writes to the terminal": Door(("print", "sys.stdout.write"), ("commands.", "cli.")),
    },
    startup=frozenset("argparse collections hashlib html json math os pathlib re string sys typing urllib".split()),
    mirrors=("skills/first", "skills/second"),
    registries={"evaluator": ("EVALUATORS", ""), "command": ("COMMANDS", "")},
)


def run(*argv, cwd=None, **environment):
    """Run a Python command in a clean environment; returns the completed process."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "KAIZEN"))}
    env.update(environment)
    command = [sys.executable, *map(str, argv)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)


class Tree(unittest.TestCase):
    """Base: a throw-away copy of the toy, and the build run on it."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="kaizen-build-")).resolve()
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(TOY / "src", self.root / "src", ignore=shutil.ignore_patterns("__pycache__"))
        self.bundle = self.root / "kaizen.py"

    def source(self, name):
        return self.root / "src/kaizen" / name

    def write(self, name, text):
        self.source(name).parent.mkdir(parents=True, exist_ok=True)
        self.source(name).write_text(textwrap.dedent(text), encoding="utf-8", newline="\n")

    def append(self, name, text):
        with self.source(name).open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(textwrap.dedent(text))

    def replace(self, name, old, new):
        text = self.source(name).read_text(encoding="utf-8")
        self.assertIn(old, text)
        self.source(name).write_text(text.replace(old, new), encoding="utf-8", newline="\n")

    def add_import(self, statement):
        """Put a statement above the first import of stats/intervals.py (line 7)."""
        self.replace("stats/intervals.py", "from math import sqrt", f"{statement}\nfrom math import sqrt")

    def add_function(self, *body):
        """Append a function with these lines to stats/intervals.py (its first line is 42)."""
        self.append("stats/intervals.py", "\n\ndef added():\n" + "".join(f"    {line}\n" for line in body))

    def build(self, *argv):
        """(exit status, stdout, stderr) of build.py on this tree."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = build.main(["--root", str(self.root), *argv], TOY_HOUSE)
        return status, out.getvalue(), err.getvalue()

    def assert_builds(self):
        status, _, err = self.build()
        self.assertEqual(status, 0, err)

    def assert_refused(self, fragment):
        status, _, err = self.build()
        self.assertEqual(status, 2, err)
        self.assertIn(fragment, err)
        self.assertFalse(self.bundle.exists(), "a refused build must write nothing")


class Building(Tree):
    """What is copied, and how a line finds its way back."""

    def test_committed_bundle_of_the_toy_is_current(self):
        self.assert_builds()
        if os.environ.get("KAIZEN_UPDATE_GOLDEN") == "1":
            shutil.copyfile(self.bundle, TOY / "kaizen.py")
        self.assertEqual((TOY / "kaizen.py").read_text(encoding="utf-8"), self.bundle.read_text(encoding="utf-8"))

    def test_building_twice_gives_the_same_bytes(self):
        self.build()
        first = self.bundle.read_bytes()
        self.bundle.unlink()
        self.build()
        self.assertEqual(self.bundle.read_bytes(), first)
        self.assertIn("kaizen.py unchanged", self.build()[1])

    def test_check_names_the_source_line_of_a_hand_edit(self):
        self.build()
        self.bundle.write_text(self.bundle.read_text().replace("if trials == 0:", "if trials < 1:"))
        status, _, err = self.build("--check")
        self.assertEqual(status, 1)
        self.assertIn("first difference at kaizen.py:", err)
        self.assertIn("(src/kaizen/stats/intervals.py:33)", err)
        self.assertIn("-    if trials < 1:", err)
        self.assertIn("+    if trials == 0:", err)

    def test_check_notices_an_edit_of_src(self):
        self.build()
        self.replace("stats/intervals.py", "if trials == 0:", "if trials < 1:")
        self.assertEqual(self.build("--check")[0], 1)

    def test_check_notices_that_the_bundle_is_missing_or_cut_short(self):
        status, _, err = self.build("--check")
        self.assertEqual(status, 1)
        self.assertIn("kaizen.py is missing", err)
        self.build()
        self.bundle.write_bytes(self.bundle.read_bytes()[:-1])
        self.assertEqual(self.build("--check")[0], 1)

    def test_check_passes_on_what_was_built_and_writes_nothing(self):
        self.build()
        before = self.bundle.stat().st_mtime_ns
        self.assertEqual(self.build("--check"), (0, "", ""))
        self.assertEqual(self.bundle.stat().st_mtime_ns, before)

    def test_where_maps_code_and_assets_back(self):
        self.build()
        lines = self.bundle.read_text().splitlines()
        number = lines.index("    rate = passed / trials") + 1
        self.assertEqual(self.build("--where", str(number))[1], "src/kaizen/stats/intervals.py:35\n")
        number = lines.index("<h1>Review</h1>") + 1
        self.assertEqual(self.build("--where", str(number))[1], "src/kaizen/assets/review.html:10\n")
        self.assertIn("build.py itself", self.build("--where", "1")[1])

    def test_every_line_of_code_is_copied_verbatim(self):
        text, origins = build.bundle(self.root, TOY_HOUSE, sources.Problems())
        for line, origin in zip(text.splitlines(), origins, strict=True):
            if origin and origin[0].startswith("src/") and origin[1] > 1 and not line.endswith('"""'):
                source = (self.root / origin[0]).read_text(encoding="utf-8").splitlines()
                self.assertEqual(line, source[origin[1] - 1])

    def test_map_lists_layers_sizes_imports_and_long_functions(self):
        self.add_function(*["x = 1"] * rules.MAX_FUNCTION_LINES)
        self.write(
            "commands/late.py",
            """\
            \"\"\"A module that imports when it runs.\"\"\"

            from kaizen.commands.table import COMMANDS


            def late() -> object:
                from kaizen.stats.intervals import wilson_interval

                return COMMANDS, wilson_interval
            """,
        )
        status, out, _ = self.build("--map")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"domain +policy.comparison +\d+ lines +<- stats.intervals\n")
        self.assertRegex(out, r"cli +commands.late +\d+ lines +<- commands.table, \(stats.intervals\)\n")
        self.assertRegex(out, r"\d+ modules, \d+ lines\n")
        self.assertIn("over 60 lines: src/kaizen/stats/intervals.py:42 added (61)", out)

    def test_a_new_file_in_a_starred_folder_is_picked_up(self):
        self.write(
            "evaluators/size.py",
            """\
            \"\"\"Evaluators that look at the size of an output.\"\"\"

            from kaizen.evaluators.registry import Verdict, evaluator


            @evaluator("at_most")
            def evaluate_at_most(output: str, settings: dict) -> Verdict:
                return Verdict(len(output) <= settings["characters"], "counted")
            """,
        )
        self.assert_builds()
        self.assertIn("# region evaluators/size.py", self.bundle.read_text())

    def test_two_submodules_of_one_package_do_not_clash(self):
        self.add_import("import urllib.error")
        self.add_function("return urllib.error")
        self.replace("policy/comparison.py", "from typing", "import urllib.parse\nfrom typing")
        self.append("policy/comparison.py", "\n\ndef b():\n    return urllib.parse\n")
        self.assert_builds()

    def test_an_asset_in_a_subfolder_is_embedded_byte_for_byte(self):
        agent = 'import re\n\nprint(re.sub(r"\\d", "\\\\", """\n"quoted" \\\n"""))  # ends in a backslash: \\\n'
        self.write("assets/demo/agent.py", agent)
        self.append("web/review.py", '\nDEMO_AGENT = asset_text("demo/agent.py")\n')
        self.assert_builds()
        code = "import sys, kaizen; sys.stdout.write(kaizen.DEMO_AGENT)"
        self.assertEqual(run("-c", code, cwd=self.root).stdout, agent)

    def test_the_head_lists_every_door(self):
        self.build()
        text = self.bundle.read_text()
        self.assertRegex(text, r"#   listens on a port: +web/service.py\n")
        self.assertRegex(text, r"#   loads or evaluates code: +load_section\(\) below, which reads the sections of this file\n")

    def test_every_python_here_builds_the_same_bytes(self):
        """Another interpreter's parser, symbol tables and sorting change nothing."""
        program = f"import sys; sys.path[:0] = [{str(ROOT / 'scripts')!r}, {str(ROOT / 'tests')!r}]\n"
        program += f"import build, test_build\nsys.exit(build.main(['--root', {str(self.root)!r}], test_build.TOY_HOUSE))"
        for seed in ("1", "2"):
            done = run("-c", program, PYTHONHASHSEED=seed)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.bundle.read_bytes(), (TOY / "kaizen.py").read_bytes())


class Mirrors(Tree):
    """Skill folders carry a copy of the bundle."""

    def setUp(self):
        super().setUp()
        self.skill = self.root / "skills/first"
        self.skill.mkdir(parents=True)
        (self.skill / "SKILL.md").write_text("---\nname: first\n---\n")
        self.copy = self.skill / "scripts/kaizen.py"

    def test_a_skill_folder_gets_a_real_copy_and_a_missing_one_is_not_made(self):
        self.assert_builds()
        self.assertEqual(self.copy.read_bytes(), self.bundle.read_bytes())
        self.assertFalse(self.copy.is_symlink())
        self.assertFalse((self.root / "skills/second").exists())

    def test_a_folder_without_skill_is_left_alone(self):
        (self.root / "skills/second").mkdir()
        self.assert_builds()
        self.assertEqual(list((self.root / "skills/second").iterdir()), [])

    def test_check_finds_a_hand_edited_copy(self):
        self.build()
        self.copy.write_text(self.copy.read_text().replace("if trials == 0:", "if trials < 1:"))
        status, _, err = self.build("--check")
        self.assertEqual(status, 1)
        self.assertIn("first difference at skills/first/scripts/kaizen.py:", err)
        self.assertIn("(src/kaizen/stats/intervals.py:33)", err)
        self.assertNotIn("difference at kaizen.py", err)

    def test_check_finds_a_missing_copy(self):
        self.build()
        self.copy.unlink()
        self.assertEqual(self.build("--check")[0], 1)

    def test_a_link_is_not_a_copy(self):
        self.build()
        self.copy.unlink()
        self.copy.symlink_to(self.bundle)
        status, _, err = self.build("--check")
        self.assertEqual(status, 1)
        self.assertIn("skills/first/scripts/kaizen.py is missing, empty or a link", err)
        self.assert_builds()
        self.assertFalse(self.copy.is_symlink())
        self.assertEqual(self.build("--check")[0], 0)


class Refusals(Tree):
    """Each rule, broken once. The message names the file and the line."""

    def test_two_meanings_of_a_name(self):
        self.append("stats/intervals.py", "\n\ndef read_jsonl():\n    pass\n")
        self.assert_refused(
            "src/kaizen/stats/intervals.py:42: read_jsonl has another meaning at src/kaizen/foundation/jsonl.py:10"
        )

    def test_definition_that_meets_an_import(self):
        self.append("stats/intervals.py", "\n\ndef escape():\n    pass\n")
        self.assert_refused("escape has another meaning")

    def test_hiding_a_builtin(self):
        self.append("stats/intervals.py", "\n\ndef filter():\n    pass\n")
        self.assert_refused("filter would hide the builtin")

    def test_forgotten_import(self):
        self.add_function("return json.loads('1')")
        self.assert_refused("src/kaizen/stats/intervals.py:43: json is not defined or imported")

    def test_unused_import(self):
        self.add_import("import os")
        self.assert_refused("src/kaizen/stats/intervals.py:7: os is imported but not used")

    def test_import_of_a_higher_module(self):
        self.add_import("from kaizen.policy.comparison import compare")
        self.assert_refused("comes later in LAYERS; dependencies point downwards")

    def test_import_of_what_is_not_there(self):
        self.replace("policy/comparison.py", "import Interval, wilson_interval", "import Interval, wilson")
        self.assert_refused("kaizen.stats.intervals does not define wilson")

    def test_import_of_a_name_that_is_itself_imported_there(self):
        self.replace("policy/comparison.py", "import Interval, wilson_interval", "import Interval, sqrt, wilson_interval")
        self.assert_refused("kaizen.stats.intervals does not define sqrt")

    def test_forms_of_import_that_the_bundle_cannot_have(self):
        table = [
            ("from kaizen.foundation.errors import DataError as E", "without 'as'"),
            ("import kaizen.foundation.errors", "write 'from kaizen.foundation.errors import NAME'"),
            ("from kaizen import foundation", "import names, not the module foundation"),
            ("from ..foundation.errors import DataError", "relative import"),
            ("from os import *", "star import"),
            ("from __future__ import annotations", "no __future__ imports"),
            ("import os as system", "import os under its own name"),
            ("import os; import sys", "one statement a line"),
            ("# why", "a comment among the imports would be lost"),
        ]
        before = self.source("stats/intervals.py").read_text(encoding="utf-8")
        for statement, message in table:
            with self.subTest(statement):
                self.write("stats/intervals.py", before.replace("from math", f"{statement}\nfrom math", 1))
                self.assert_refused(message)

    def test_third_party_import(self):
        self.add_import("import numpy")
        self.assert_refused("numpy is not in the standard library")

    def test_module_that_a_later_python_lacks(self):
        self.add_function("import imp", "return imp")
        self.assert_refused("imp is not in the standard library of 3.10 to 3.13")

    def test_module_that_the_oldest_python_lacks(self):
        self.add_import("import tomllib")
        self.assert_refused("tomllib is not in the standard library of 3.10 to 3.13")

    def test_costly_import_at_the_top(self):
        self.add_import("import asyncio")
        self.assert_refused("src/kaizen/stats/intervals.py:7: asyncio costs time at every start; import it inside the function")

    def test_costly_module_by_from_import(self):
        self.add_import("from tempfile import mkdtemp")
        self.assert_refused("tempfile costs time at every start")

    def test_costly_import_in_a_condition_at_the_top(self):
        self.append("stats/intervals.py", "\nif Z_95:\n    import tempfile\n")
        self.assert_refused("tempfile costs time at every start")

    def test_costly_import_inside_a_function_is_fine(self):
        self.add_function("import tempfile", "return tempfile")
        self.assert_builds()

    def test_import_of_the_package_inside_a_function_reads_the_section_when_the_function_runs(self):
        self.add_function("from kaizen.foundation.errors import (", "    DataError,", ")", "return DataError('late').exit_status")
        self.assert_builds()
        self.assertIn('def added():\n    load_section("foundation.errors")\n\n\n    return DataError(', self.bundle.read_text())
        code = "import kaizen; kaizen.load_section('stats.intervals'); print('foundation.errors' in kaizen.SECTIONS, kaizen.added())"
        self.assertEqual(run("-c", code, cwd=self.root).stdout, "True 2\n")
        self.assertEqual(self.build("--where", str(self.bundle.read_text().split("\n").index("def added():") + 2))[1], "src/kaizen/stats/intervals.py:43\n")

    def test_forms_of_import_inside_a_function_that_the_bundle_cannot_have(self):
        table = [
            ("from kaizen.foundation.errors import DataError as E", "without 'as'"),
            ("from kaizen.policy.comparison import compare", "comes later in LAYERS"),
            ("from kaizen.foundation.errors import NoSuchError", "does not define NoSuchError"),
            ("from kaizen.foundation.nowhere import DataError", "kaizen.foundation.nowhere is not in LAYERS"),
            ("from kaizen.embed import asset_text", "kaizen.embed is not in LAYERS"),
            ("from kaizen import foundation", "import names, not the module foundation"),
            ("import kaizen.foundation.errors", "import package names at the top of the module, or inside a function"),
            ("if True: from kaizen.foundation.errors import DataError", "stands on lines of its own"),
            ("from kaizen.foundation.errors import DataError; x = 1", "stands on lines of its own"),
        ]
        before = self.source("stats/intervals.py").read_text(encoding="utf-8")
        for statement, message in table:
            with self.subTest(statement):
                self.write("stats/intervals.py", before)
                self.add_function(statement, "return DataError")
                self.assert_refused(message)

    def test_import_of_the_package_in_a_condition_at_the_top(self):
        self.append("stats/intervals.py", "\nif Z_95:\n    from kaizen.foundation.errors import DataError\n")
        self.assert_refused("import package names at the top of the module, or inside a function")

    def test_quotes_that_would_end_a_section(self):
        self.append("stats/intervals.py", "\nTHREE = \"it is ''' here\"\n")
        self.assert_refused("src/kaizen/stats/intervals.py:41: holds ''', which would end the text of its section")

    def test_name_of_the_loader(self):
        self.append("stats/intervals.py", "\n\ndef load_section():\n    pass\n")
        self.assert_refused("load_section has another meaning at scripts/loader.py:")

    def test_decorator_that_may_fill_a_table_nobody_knows_of(self):
        self.append("evaluators/registry.py", "\n\ndef exporter(function):\n    return function\n")
        self.replace("evaluators/text.py", "import Settings", "import exporter, Settings")
        self.append("evaluators/text.py", "\n\n@exporter\ndef export_text():\n    pass\n")
        self.assert_refused("@exporter may fill a table, which has to be whole when it is read")

    def test_entry_of_a_table_without_a_name_that_can_be_read(self):
        self.replace("evaluators/text.py", '@evaluator("contains")', '@evaluator("con" + "tains")')
        self.assert_refused("@evaluator begins with a text, or a constant of this module that is one")

    def test_change_of_what_another_module_defines(self):
        self.replace("evaluators/text.py", "import Settings", "import EVALUATORS, Settings")
        self.append("evaluators/text.py", '\nEVALUATORS["none"] = len\n')
        self.assert_refused("changes EVALUATORS, which may be read without this module")

    def test_dataclasses(self):
        self.add_import("from dataclasses import dataclass")
        self.assert_refused("use typing.NamedTuple")

    def test_effect_outside_its_door(self):
        table = [
            ("print(1)", "src/kaizen/stats/intervals.py:43: print writes to the terminal; that is for commands., cli. alone"),
            ("import subprocess", "subprocess starts processes; that is for foundation.process alone"),
            ("from subprocess import run", "subprocess.run starts processes"),
            ("from os import execv", "os.execv starts processes"),
            ("import os; os.system('ls')", "os.system starts processes"),
            ("import os; os.execve('ls')", "os.execve starts processes"),
            ("import os; os.open('x', 0)", "os.open opens files; that is for foundation., commands. alone"),
            ("from pathlib import Path; Path('x').write_text('')", ".write_text opens files"),
            ("open('x')", "open opens files"),
            ("from pickle import loads", "pickle.loads loads or evaluates code; that is for nobody"),
            ("eval('1')", "eval loads or evaluates code"),
            ("from http import server", "http.server listens on a port; that is for web.service alone"),
            ("import sys; sys.stdout.write('x')", "sys.stdout.write writes to the terminal"),
            ("import os as harmless; harmless.system('ls')", "import os under its own name"),
        ]
        before = self.source("stats/intervals.py").read_text(encoding="utf-8")
        for statement, message in table:
            with self.subTest(statement):
                self.write("stats/intervals.py", f"{before}\n\ndef added():\n    {statement}\n")
                self.assert_refused(message)

    def test_namesakes_of_effects_are_fine(self):
        self.add_import("import re")
        self.add_function("return re.compile('x'), added.exec, added.open")
        self.assert_builds()

    def test_file_attribute(self):
        self.add_function("return __file__")
        self.assert_refused("__file__ differs in the bundle; only foundation.identity may use it")

    def test_global_of_another_module(self):
        self.append("cli/main.py", "\n\ndef forget():\n    global COMMANDS\n    COMMANDS = {}\n")
        self.assert_refused("'global COMMANDS' rebinds a name that this module does not define")

    def test_work_at_import(self):
        self.append("stats/intervals.py", "\nprint('loaded')\n")
        self.assert_refused("a bare expression runs at import")

    def test_import_below_the_first_statement(self):
        self.append("stats/intervals.py", "\nimport os\n")
        self.assert_refused("imports go above the first statement")

    def test_syntax_newer_than_the_guard_can_read(self):
        table = [
            ("match 1:\n        case 1:\n            return 1", "syntax error"),
            ("try:\n        pass\n    except* ValueError:\n        pass", "syntax error"),
            ("with (added() as a, added() as b):\n        return a, b", "src/kaizen/stats/intervals.py:4"),
        ]
        before = self.source("stats/intervals.py").read_text(encoding="utf-8")
        for statement, message in table:
            with self.subTest(statement):
                self.write("stats/intervals.py", f"{before}\n\ndef added():\n    {statement}\n")
                self.assert_refused(message)

    def test_newer_builtin(self):
        self.add_function("raise ExceptionGroup('x', [])")
        self.assert_refused("ExceptionGroup is not defined")

    def test_module_that_no_layer_names(self):
        self.write("stats/extra.py", '"""Extra."""\n')
        self.assert_refused("src/kaizen/stats/extra.py:1: is not in LAYERS")

    def test_layer_that_names_no_module(self):
        self.source("stats/intervals.py").unlink()
        self.assert_refused("is named in LAYERS but does not exist")

    def test_module_named_twice(self):
        self.replace("__init__.py", '"stats.intervals",', '"stats.intervals", "stats.intervals",')
        self.assert_refused("LAYERS names a module twice")

    def test_folder_without_a_docstring_of_its_own(self):
        self.source("stats/__init__.py").unlink()
        self.assert_refused("src/kaizen/stats/__init__.py:1: does not exist; a folder says in one docstring")

    def test_code_in_the_init_of_a_folder(self):
        self.append("stats/__init__.py", "X = 1\n")
        self.assert_refused("src/kaizen/stats/__init__.py:2: the __init__.py of a folder holds a docstring only")

    def test_module_without_docstring_or_with_a_long_first_line(self):
        self.write("stats/intervals.py", "X = 1\n")
        self.assert_refused("has no docstring")
        self.write("stats/intervals.py", f'"""{"x" * (rules.MAX_SUMMARY + 1)}"""\n')
        self.assert_refused("first docstring line is over 88 characters")

    def test_missing_entry_point(self):
        self.replace("cli/main.py", "def main(", "def start(")
        self.assert_refused("no main() in kaizen.cli.main")

    def test_assets_that_cannot_be_embedded(self):
        table = [
            ("review.js", "// \"\"\" '''\n", "cannot stand in a raw string"),
            ("review.js", "no newline at the end", "does not end in a newline"),
            ("review.js", "a\r\nb\n", "review.js:1: has a CR"),
            ("spare.js", "//\n", "src/kaizen/assets/spare.js:1: no module embeds this asset"),
        ]
        for name, text, message in table:
            with self.subTest(message):
                self.source(f"assets/{name}").write_bytes(text.encode())
                self.assert_refused(message)

    def test_assets_that_are_not_text_of_a_known_kind_or_not_there(self):
        for name, message in (("logo.png", "is not text of a known kind"), ("gone.css", "gone.css does not exist")):
            with self.subTest(name):
                self.append("web/review.py", f'\nREVIEW_{name[:4].upper()} = asset_text("{name}")\n')
                self.assert_refused(message)

    def test_asset_used_inside_a_function(self):
        self.append("web/review.py", '\n\ndef css():\n    return asset_text("review.css")\n')
        self.assert_refused("at the top level")

    def test_bytes_that_a_source_file_may_not_have(self):
        path = self.source("stats/intervals.py")
        before = path.read_bytes()
        table = [
            (before.replace(b"\n", b"\r\n"), "has a CR"),
            (b"\xef\xbb\xbf" + before, "starts with a byte order mark"),
            (before + b"# \xff\n", "is not UTF-8"),
            (before + b"\f\n", "has a form feed"),
        ]
        for data, message in table:
            with self.subTest(message):
                path.write_bytes(data)
                self.assert_refused(message)

    def test_long_module(self):
        self.append("stats/intervals.py", "\n" * rules.MAX_MODULE_LINES + "\nX = 1\n")
        self.assert_refused("src/kaizen/stats/intervals.py:500: has 541 lines, over 500; split it")

    def test_long_function(self):
        self.add_function(*["x = 1"] * (rules.MAX_FUNCTION_LINES - 1))
        self.assert_builds()
        self.bundle.unlink()
        with self.source("stats/intervals.py").open("a") as stream:
            stream.write("    x = 1\n")
        self.assert_refused("src/kaizen/stats/intervals.py:42: added has 61 lines, over 60; split it")


class Bundle(Tree):
    """The toy's kaizen.py, used in every way that a user may use it."""

    def setUp(self):
        super().setUp()
        shutil.copy(TOY / "kaizen.py", self.root)
        (self.root / "base.jsonl").write_text('{"id": "a", "output": "no"}\n{"id": "b", "output": "yes"}\n')
        (self.root / "cand.jsonl").write_text('{"id": "a", "output": "yes"}\n{"id": "b", "output": "no"}\n')
        self.stages = (self.root / "base.jsonl", self.root / "cand.jsonl", "--contains", "yes")

    def test_as_a_script_and_from_the_sources(self):
        script = run(self.bundle, "compare", *self.stages)
        self.assertEqual(script.returncode, 1)
        self.assertIn("regressed: 1", script.stdout)
        source = run("-m", "kaizen", "compare", *self.stages, cwd=self.root / "src")
        self.assertEqual((source.returncode, source.stdout), (script.returncode, script.stdout))

    def test_page_is_the_same_from_bundle_and_sources(self):
        run(self.bundle, "review", *self.stages, "--output", self.root / "bundle.html")
        run("-m", "kaizen", "review", *self.stages, "--output", self.root / "source.html", cwd=self.root / "src")
        self.assertEqual((self.root / "bundle.html").read_bytes(), (self.root / "source.html").read_bytes())
        self.assertIn(rb"/_(\w)/g", (self.root / "bundle.html").read_bytes())

    def test_loaded_by_path_without_being_registered(self):
        spec = importlib.util.spec_from_file_location("anything", self.bundle)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.assertAlmostEqual(module.wilson_interval(8, 10).low, 0.4902, places=4)
        self.assertIsNone(module.wilson_interval(0, 0))
        self.assertEqual(sorted(module.EVALUATORS), ["contains", "matches"])

    def test_version_shows_the_digest_of_the_file(self):
        digest = hashlib.sha256(self.bundle.read_bytes()).hexdigest()[:12]
        self.assertIn(f"sha256 {digest}", run(self.bundle, "--version").stdout)

    def test_bad_input_is_one_line_and_status_2(self):
        (self.root / "base.jsonl").write_text("{}\n{\n")
        done = run(self.bundle, "compare", "base.jsonl", *self.stages[1:], cwd=self.root)
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.startswith("kaizen: base.jsonl:2: not JSON"), done.stderr)
        self.assertEqual(done.stdout, "")

    def test_internal_error_names_file_line_and_build(self):
        text = self.bundle.read_text()
        self.bundle.write_text(text.replace("    if before == after:", "    if before == after / 0:"))
        done = run(self.bundle, "compare", *self.stages)
        self.assertEqual(done.returncode, 70)
        self.assertRegex(done.stderr, r"internal error: ZeroDivisionError: .* \(kaizen\.py:\d+ in case_outcome\)")
        debug = run(self.bundle, "compare", *self.stages, KAIZEN_DEBUG="1")
        self.assertIn("if before == after / 0:", debug.stderr, "a traceback shows the source line")

    def test_a_module_beside_the_script_is_not_imported(self):
        """The folder of a script comes first on sys.path; kaizen.py takes it off again."""
        for name in ("json", "argparse", "hashlib", "string"):
            (self.root / f"{name}.py").write_text("raise SystemExit('planted')\n")
        self.assertRegex(run(self.bundle, "--version", cwd=self.root).stdout, r"^kaizen \d")

    def test_a_planted_pyc_cannot_replace_the_script(self):
        """`python kaizen.py` runs the bytes you reviewed; `-m kaizen` trusts __pycache__."""
        evil = self.root / "evil.py"
        evil.write_text("print('planted')\n")
        cached = importlib.util.cache_from_source(str(self.bundle))
        os.makedirs(os.path.dirname(cached), exist_ok=True)
        py_compile.compile(str(evil), cfile=cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        self.assertRegex(run(self.bundle, "--version").stdout, r"^kaizen \d")
        self.assertEqual(run("-m", "kaizen", "--version", cwd=self.root).stdout, "planted\n")


class Checkout(unittest.TestCase):
    """The real package: what is committed is what the sources give."""

    def test_kaizen_and_its_copies_are_current(self):
        import support  # here: for other Pythons import this file too and need not build all of Kaizen

        self.assertEqual((support.CHECKED.returncode, support.CHECKED.stderr), (0, ""))

    def test_every_copy_of_the_program_in_a_skill_is_one_that_the_build_writes(self):
        kept = {path.relative_to(ROOT).as_posix() for path in build.targets(ROOT, sources.HOUSE)}
        found = {name for name in tracked_files() if name.rpartition("/")[2] == "kaizen.py"}
        self.assertEqual(found - kept - {"tests/data/toy/kaizen.py"}, set())

    def test_no_compiled_file_is_committed(self):
        """`python -m kaizen` would run a .pyc instead of the source that was reviewed."""
        self.assertEqual([name for name in tracked_files() if name.endswith((".pyc", ".pyo", ".so", ".pyd"))], [])

    def test_a_module_beside_kaizen_is_not_imported(self):
        folder = Path(tempfile.mkdtemp(prefix="kaizen-planted-"))
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(ROOT / "kaizen.py", folder)
        for name in sources.HOUSE.startup - {"sys", "abc", "codecs", "io", "os", "stat"}:  # loaded before any script
            (folder / f"{name}.py").write_text("raise SystemExit('planted')\n")
        done = run("kaizen.py", "--version", cwd=folder)
        self.assertEqual((done.returncode, done.stdout[:7], done.stderr), (0, "kaizen ", ""))

    def test_the_scripts_keep_the_bound_they_set(self):
        """The house's bound on modules holds for what guards the house."""
        paths = [*(ROOT / "scripts").glob("*.py")]
        self.assertEqual([path.name for path in paths if len(path.read_bytes().splitlines()) > rules.MAX_MODULE_LINES], [])


def tracked_files():
    """Names of all files of the checkout that git tracks; of all there are, where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return listed.stdout.split("\0")
    skipped = ("__pycache__", ".ci")
    return [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file() and not set(path.parts) & set(skipped)]


if __name__ == "__main__":
    unittest.main()
