"""The runner templates: each does what docs/runner-protocol.md says of it."""

import json
import re
import shutil
import sys
import unittest
from pathlib import Path

import support
from support import ROOT, read_lines, run_cli, write, write_lines

FAILING = "raise ValueError('no key')"


@unittest.skipIf(sys.platform == "win32", "programs are started on Linux and macOS only")
class Templates(support.TemporaryFolder):
    """A copy of examples/runners and a few cases."""

    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "examples/runners", self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        self.texts = ["hello", "größe 🙂\u2028x", "-n", "two\nlines"]
        write_lines("imp/test_cases.jsonl", [{"id": f"c{number}", "input": text} for number, text in enumerate(self.texts)])
        write("imp/evaluation.json", json.dumps({"version": 1, "evaluators": [{"id": "a", "type": "contains", "values": ["x"]}]}))

    def run_template(self, *command, options=(), status=0):
        argv = ["run", "imp", "--stage", "s", "--overwrite", "--progress", "none", *options, "--", *command]
        done = run_cli(*argv, env={"LC_ALL": "C"})
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return read_lines("imp/s.jsonl")

    def outputs(self, *command, options=()):
        return [record["output"] for record in self.run_template(*command, options=options)]

    def change(self, name, old, new):
        text = Path(name).read_text(encoding="utf-8")
        self.assertIn(old, text)
        write(name, text.replace(old, new))

    def wanted(self):
        return [f"You said: {text}" for text in self.texts]

    def test_python(self):
        for options in ((), ("--persistent",)):
            self.assertEqual(self.outputs(sys.executable, "-I", "-S", "runner.py", options=options), self.wanted())

    def test_python_with_an_agent_that_prints_and_fails(self):
        self.change("runner.py", "    return {", f"    print('to be read by people')\n    if case['id'] == 'c2': {FAILING}\n    return {{")
        for options in ((), ("--persistent",)):
            records = self.run_template(sys.executable, "-I", "-S", "runner.py", options=options, status=4)
            self.assertEqual([record["status"] for record in records], ["completed", "completed", "error", "completed"])
            error = records[2]["error"]
            self.assertEqual((error["class"], error["type"], error["message"]), ("agent", "ValueError", "no key"))
            self.assertNotIn("log", records[0])

    def test_forking(self):
        command = (sys.executable, "forking_runner.py")
        self.assertEqual(self.outputs(*command, options=("--persistent", "--jobs", "2")), self.wanted())
        self.change("runner.py", "    return {", "    import os\n    case['seen'] = SEEN.append(1) or len(SEEN)\n    return {'evidence': {'pid': os.getpid()}, ")
        self.change("runner.py", "You said: {case['input']}", "{case['seen']}")
        self.change("runner.py", "def agent", "SEEN = []\n\n\ndef agent")
        records = self.run_template(*command, options=("--persistent",))
        self.assertEqual([record["output"] for record in records], ["1"] * 4, "no trial sees another")
        self.assertEqual(len({record["evidence"]["pid"] for record in records}), 4)

    def test_forking_with_a_trial_that_dies_or_hangs(self):
        self.change("runner.py", "    return {", "    import os, time\n    if case['id'] == 'c1': os._exit(9)\n    if case['id'] == 'c2': time.sleep(60)\n    return {")
        records = self.run_template(sys.executable, "forking_runner.py", options=("--persistent", "--timeout", "1"), status=4)
        self.assertEqual([record["status"] for record in records], ["completed", "error", "timeout", "completed"])
        self.assertEqual(records[1]["error"]["message"], "the trial's process ended with 9")

    def test_shell(self):
        for words, options in ((("{input_file}",), ("--plain",)), ((), ("--plain",))):
            self.assertEqual(self.outputs("sh", "runner.sh", *words, options=options), self.wanted())
        self.change("runner.sh", "printf 'You said: '", "false")
        self.assertEqual({record["error"]["type"] for record in self.run_template("sh", "runner.sh", options=("--plain",), status=4)}, {"exit"})

    @unittest.skipUnless(shutil.which("node"), "there is no node here; tests/peers has one")
    def test_node(self):
        for options in ((), ("--persistent",)):
            self.assertEqual(self.outputs("node", "runner.mjs", options=options), self.wanted())
        self.change("runner.mjs", "  return {", "  console.log('for people');\n  if (input === '-n') throw new RangeError('no key');\n  return {")
        records = self.run_template("node", "runner.mjs", options=("--persistent",), status=4)
        self.assertEqual((records[2]["error"]["type"], records[2]["error"]["message"]), ("RangeError", "no key"))
        self.assertNotIn("log", records[0])

    def test_the_page_shows_every_template_and_each_call_is_of_one(self):
        page = (ROOT / "docs/runner-protocol.md").read_text(encoding="utf-8")
        names = {path.name for path in (ROOT / "examples/runners").iterdir() if path.is_file()}
        self.assertEqual(set(re.findall(r"\.\./examples/runners/([\w.]+)\)", page)), names)

    def test_a_template_is_about_twenty_lines(self):
        for name, most in (("runner.py", 20), ("runner.mjs", 20), ("runner.sh", 20), ("forking_runner.py", 16)):
            text = re.sub(r'""".*?"""', "", Path(name).read_text(encoding="utf-8"), flags=re.DOTALL)
            lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//"))]
            self.assertLessEqual(len(lines), most, name)


if __name__ == "__main__":
    unittest.main()
