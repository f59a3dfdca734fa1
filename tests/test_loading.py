"""Sections of kaizen.py: read when needed, once, with all that they need; and nothing but them is ever compiled."""

import ast
import contextlib
import inspect
import re
import shutil
import sys
import threading
import types
import unittest
from unittest import mock

import lab_fixture
import support
import test_holdout_stays_hidden as holdout
from support import BUNDLE, kaizen, run_cli, run_process

SECTIONS = dict(re.findall(r"^section\(\"([a-z_.]+)\", r'''$(.*?)^'''", BUNDLE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
PROGRESS = r"(?m)^\w+ [\w-]+: \d+ of \d+, .* left.*\n"
UNLIKE = r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{12,}\b|[\d.,]+(?: ms| s| min|/s)\b"  # from run to run


def fresh_program():
    """kaizen.py as a module of its own in which no section has been read yet."""
    module = types.ModuleType("fresh_kaizen")
    module.__file__ = str(BUNDLE)
    exec(fresh_program.code, vars(module))
    module.compile = kaizen.compile
    return module


fresh_program.code = compile(BUNDLE.read_text(encoding="utf-8"), str(BUNDLE), "exec", dont_inherit=True)


def run_fresh(*argv, **options):
    """`run_cli` in a program that reads just what the command needs."""
    with mock.patch.object(kaizen, "main", fresh_program().main):
        return run_cli(*argv, **options)


def unread(module):
    """The sections that have not been read."""
    return set(module.SECTIONS)


class Sections(unittest.TestCase):
    def test_there_is_a_section_for_each_module(self):
        folder = support.ROOT / "src/kaizen"
        modules = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")}
        self.assertEqual(set(SECTIONS), {name for name in modules if "__" not in name and not name.startswith("assets.")} - {"embed"})
        self.assertEqual(unread(fresh_program()), set(SECTIONS))
        self.assertEqual(unread(kaizen), set())

    def test_the_version_takes_next_to_nothing(self):
        module = fresh_program()
        with contextlib.redirect_stdout(support.text_stream()):
            module.main(["--version"])
        read = set(SECTIONS) - unread(module)
        self.assertLess(len(read), 25)
        self.assertEqual({name for name in read if name.startswith(("runs.", "evaluators.", "lab.", "web."))}, set())

    def test_a_command_reads_what_it_uses(self):
        for command, unused in (("evaluators", "web."), ("validate", "web."), ("evaluate", "web."), ("evaluate", "lab."), ("status", "evaluators.")):
            module = fresh_program()
            module.load_section("cli.main", module.places("COMMANDS")[command][0])
            self.assertEqual([name for name in SECTIONS if name.startswith(unused) and name not in unread(module)], [], command)

    def test_an_evaluator_type_is_read_when_it_is_named(self):
        module = fresh_program()
        module.load_section("evaluators.suite")
        self.assertNotIn("similarity", module.EVALUATORS)
        self.assertEqual(module.evaluator_named("similarity").name, "similarity")
        self.assertIn("evaluators.provenance", unread(module))

    def test_a_name_that_is_asked_for_from_outside_brings_everything(self):
        for ask in (lambda module: module.EVALUATORS, lambda module: module.COMMANDS, dir):
            module = fresh_program()
            ask(module)
            self.assertEqual(unread(module), set())
        module = fresh_program()
        self.assertEqual({name for name in set(dir(kaizen)) - set(dir(module)) if not name.startswith("__")}, set())
        self.assertEqual(sorted(module.EVALUATORS), sorted(kaizen.EVALUATORS))

    def test_the_entry_of_an_installed_program_brings_only_its_own(self):
        module = fresh_program()
        self.assertTrue(callable(module.main))
        self.assertGreater(len(unread(module)), 200)

    def test_a_name_that_is_not_there_is_an_attribute_error(self):
        module = fresh_program()
        with self.assertRaisesRegex(AttributeError, "module 'fresh_kaizen' has no attribute '__path__'"):
            module.__path__  # noqa: B018
        self.assertEqual(unread(module), set(SECTIONS), "nothing is read for what Python asks of a module")
        with self.assertRaisesRegex(AttributeError, "has no attribute 'no_such_name'"):
            module.no_such_name  # noqa: B018

    def test_a_name_can_be_replaced_before_its_section_is_read(self):
        module = fresh_program()
        with mock.patch.object(module, "did_you_mean", lambda word, known: "replaced"):
            self.assertEqual(module.did_you_mean("a", []), "replaced")
        self.assertEqual(module.did_you_mean("evaluat", ["evaluate"]), "did you mean 'evaluate'?")

    def test_two_threads_read_a_section_once_and_neither_sees_half_of_it(self):
        module = fresh_program()
        compiled, found, gate = [], [], threading.Barrier(4)
        slow = module.compile
        module.compile = lambda text, *more, **options: compiled.append(text) or slow(text, *more, **options)

        def use():
            gate.wait()
            module.load_section("evaluators.text", "foundation.schema")
            found.append(module.compile_schema({"type": "integer"})(1) == [] and module.EVALUATORS["contains"].name)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, ["contains"] * 4)
        self.assertEqual(len(compiled), len(set(compiled)))


class Places(unittest.TestCase):
    """The tables that the build writes say what the decorators say."""

    def test_of_commands(self):
        self.assertEqual(list(kaizen.places("COMMANDS")), list(kaizen.COMMANDS))
        for name, (section, group, sentence) in kaizen.places("COMMANDS").items():
            entry = kaizen.COMMANDS[name]
            self.assertEqual((group, sentence), (entry.group, entry.summary), name)
            self.assertIn(f"def {entry.run.__name__}(", SECTIONS[section])

    def test_of_evaluators(self):
        self.assertEqual(kaizen.evaluator_names(), sorted(kaizen.EVALUATORS))
        for name, (section, _, _) in kaizen.places("EVALUATORS").items():
            self.assertIn(f"def {kaizen.EVALUATORS[name].prepare.__name__}(", SECTIONS[section])


class Lines(unittest.TestCase):
    """What is compiled stands where it says that it stands."""

    def test_every_function_has_its_line_of_the_file(self):
        lines = BUNDLE.read_text(encoding="utf-8").split("\n")
        functions = [each for each in vars(kaizen).values() if isinstance(each, types.FunctionType) and each.__module__ == "kaizen"]
        classes = [each for each in vars(kaizen).values() if isinstance(each, type) and each.__module__ == "kaizen"]
        functions += [each for kind in classes for each in vars(kind).values() if isinstance(each, types.FunctionType)]
        self.assertGreater(len(functions), 3000)
        for each in functions:
            code = inspect.unwrap(each).__code__
            if code.co_filename == str(BUNDLE) and not each.__name__.startswith("<"):
                begins = rf"\s*(@[\s\S]*?\n\s*)?(async )?def {re.escape(each.__name__)}\("
                self.assertIsNotNone(re.match(begins, "\n".join(lines[code.co_firstlineno - 1 :][:60])), each)
        self.assertIn("def wilson_interval", inspect.getsource(kaizen.wilson_interval))

    def test_a_traceback_of_the_script_shows_its_lines(self):
        folder = support.Path(support.tempfile.mkdtemp(prefix="kaizen-loading-"))
        self.addCleanup(shutil.rmtree, folder)
        text = re.sub(r"(?m)^def command_evaluators\(.*\n", r"\g<0>    1 / 0  # here\n", BUNDLE.read_text(encoding="utf-8"))
        support.write(folder / "kaizen.py", text)
        done = run_process("evaluators", program=folder / "kaizen.py", env={"KAIZEN_DEBUG": "1"})
        number = text.split("\n").index("    1 / 0  # here") + 1
        self.assertRegex(done.stderr, rf'File ".*kaizen\.py", line {number}, in command_evaluators\n    1 / 0  # here\n')
        done = run_process("evaluators", program=folder / "kaizen.py")
        self.assertIn(f"(kaizen.py:{number} in command_evaluators)", done.stderr)


class NothingElse(unittest.TestCase):
    """What is compiled and executed is the file's own text."""

    def test_compile_and_exec_stand_once_each_in_the_loader(self):
        found = []
        for name, text in {"": BUNDLE.read_text(encoding="utf-8"), **SECTIONS}.items():
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Name) and node.id in ("eval", "exec", "compile", "__import__", "__builtins__"):
                    found.append((name, node.id))
        self.assertEqual(sorted(found), [("", "compile"), ("", "exec")])

    def test_a_section_is_a_constant_of_the_file(self):
        top = ast.parse(BUNDLE.read_text(encoding="utf-8")).body
        calls = [node.value for node in top if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
        noted = [call for call in calls if ast.unparse(call.func) == "section"]
        self.assertEqual([call.args[0].value for call in noted], list(SECTIONS))
        self.assertTrue(all(isinstance(argument, ast.Constant) for call in noted for argument in call.args))


class SameBytes(holdout.Holdout):
    """A command says the same with only its own sections as with all of them."""

    def run_command(self, *argv, forms=()):
        words = [*argv[0].split(), *argv[1:]]
        kept = self.folder.parent / f"{self.folder.name}-kept"
        shutil.copytree(self.folder, kept, symlinks=True)
        whole = run_cli(*words)
        here = self.tree()
        shutil.rmtree(self.folder)
        kept.rename(self.folder)
        support.os.chdir(self.folder)
        alone = run_fresh(*words)
        masked = [[re.sub(UNLIKE, "…", re.sub(PROGRESS, "", text)) for text in (done.stdout, done.stderr)] for done in (whole, alone)]
        self.assertEqual((alone.status, masked[1]), (whole.status, masked[0]), argv)
        self.assertEqual(self.tree(), here, argv)

    def tree(self):
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*"))

    def agent(self):
        return ["--", "sh", "-c", "cat > read.txt; echo '{\"output\": \"yes\"}'"]

    def commands(self):
        """One call of each command, and those that the others rest on."""
        known = super().commands()
        needed = [argv for argv in known if argv[0] in ("run", "history record", "export")]
        others = [("demo",), ("init", "new"), ("evaluators",), ("evaluators", "json"), ("evaluators", "jsn"), ("create system", "x")]
        return [argv for argv in known if argv in needed or argv in holdout.first_of_each(known)] + others

    def test_no_command_prints_or_writes_for_readers_anything_of_the_holdout(self):
        """Here: every command."""
        for argv in self.commands():
            with self.subTest(argv):
                self.run_command(*argv)

    test_nothing_leaks_through_errors_about_broken_files = None
    test_every_command_is_looked_at = None

    def test_help(self):
        for argv in ((), ("--help",), ("help", "lab"), ("lab", "--help"), ("lab",), ("lab", "opn"), ("evaluat",), ("--versio",), ("help", "evaluate")):
            with self.subTest(argv):
                self.assertEqual(run_fresh(*argv), run_cli(*argv))

    def test_help_of_every_command(self):
        for name in kaizen.COMMANDS:
            with self.subTest(name):
                self.assertEqual(run_fresh(*name.split(), "--help"), run_cli(*name.split(), "--help"))


class SameBytesOfTheLab(lab_fixture.Lab):
    def test_every_command(self):
        self.run_demo()
        for argv in (("status",), ("log",), ("show", "r0001"), ("show", "r0002"), ("resume", "r0001"), ("compare", "r0001", "r0001"), ("worktree", "list"), ("create", "view", "v")):
            with self.subTest(argv):
                before = {path for path in self.repo.rglob("*") if ".git" not in path.parts}
                whole = run_cli(*argv)
                for path in {path for path in self.repo.rglob("*") if ".git" not in path.parts} - before:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                self.assertEqual(run_fresh(*argv), whole)


if __name__ == "__main__":
    sys.exit(unittest.main())
