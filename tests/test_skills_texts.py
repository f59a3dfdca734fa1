"""The skills as they are shipped: self-contained folders, in the form that both clients take, whose every command exists."""

import json
import os
import re
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

from support import ROOT, StrictTestCase, TemporaryFolder, clean_environment, kaizen, read_json

SKILLS = kaizen.skill_folders(str(ROOT))
PLUGIN = ROOT / "plugins/kaizen"
TEXTS = [path for folder in SKILLS.values() for path in sorted(Path(folder).rglob("*.md"))]
# What stands for a value in the texts, and a value of its kind.
VALUES = {"X": "0.5", "N": "7", "POINTS": "3", "STEP": "G14", "STATUS": "accepted", "S": "s"}


def front_matter(path):
    """(keys and values between the two lines `---`, the text below) of a SKILL.md, of which only the simplest form is used."""
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    found = {}
    for line in head.splitlines():
        key, value = line.split(": ", 1) if ": " in line else (line.rstrip(":"), "")
        found[key] = value
    return found, body


def engine_calls(text):
    """The words of each call of the engine in *text*: in backticks, or on a line of its own."""
    inline = re.findall(r"`(kaizen [^`]+)`", text)
    return [*inline, *[line.strip() for line in text.splitlines() if re.match(r" {4,}kaizen ", line)]]


def literal_calls(text):
    """The calls that spell the engine's path out."""
    return [call.strip("`'") for call in re.findall(r'(?:^ {4}|`)(python3 "[^`\n]*)', text, re.MULTILINE)]


class Form(StrictTestCase):
    """Manifests, folders and front matter."""

    def test_there_are_three_skills_each_with_its_engine_references_and_the_version(self):
        self.assertEqual(sorted(SKILLS), ["autoresearch", "guide", "improve-agent"])
        for name, folder in SKILLS.items():
            files = set(kaizen.folder_digests(folder))
            self.assertLessEqual({"SKILL.md", "scripts/kaizen.py", "references/clients.md", "agents/openai.yaml"}, files, name)
            self.assertEqual({path for path in files if path.count("/") > 1}, set(), "references are one level deep")

    def test_front_matter_keeps_to_what_both_clients_and_the_validator_take(self):
        for name, folder in SKILLS.items():
            found, body = front_matter(Path(folder) / "SKILL.md")
            self.assertEqual(list(found), ["name", "description", "license", "metadata", "  version"], name)
            self.assertEqual((found["name"], found["  version"]), (name, f'"{kaizen.VERSION}"'))
            self.assertLessEqual(len(found["description"]), 1024)
            self.assertNotRegex(found["description"], r"[<>]|: | #|^[\"'\[{&*!|>%@`]")
            self.assertLess(len(body.splitlines()), 300)

    def test_texts_use_nothing_that_one_client_replaces_or_runs(self):
        for path in TEXTS:
            self.assertNotRegex(path.read_text(encoding="utf-8"), r"\$\{|\$ARGUMENTS|\$\d|!`|\[TODO|CLAUDE_", path)

    def test_every_reference_is_named_in_the_skill_and_exists(self):
        for name, folder in SKILLS.items():
            named = set(re.findall(r"\]\((references/[\w.-]+)\)", (Path(folder) / "SKILL.md").read_text(encoding="utf-8")))
            there = {f"references/{path.name}" for path in (Path(folder) / "references").iterdir()}
            self.assertEqual(named, there, name)

    def test_what_codex_shows_is_of_the_length_that_it_takes(self):
        for name, folder in SKILLS.items():
            text = (Path(folder) / "agents/openai.yaml").read_text(encoding="utf-8")
            (short,) = re.findall(r'^  short_description: "(.*)"$', text, re.MULTILINE)
            self.assertTrue(25 <= len(short) <= 64, (name, len(short)))
            self.assertIn(f"allow_implicit_invocation: {'false' if name == 'autoresearch' else 'true'}", text)

    def test_manifests_agree_and_declare_no_hooks(self):
        claude, codex = (read_json(PLUGIN / f".{client}-plugin/plugin.json") for client in ("claude", "codex"))
        for key in ("name", "version", "description", "license"):
            self.assertEqual(claude[key], codex[key])
        self.assertEqual((claude["version"], codex["hooks"], codex["skills"]), (kaizen.VERSION, {}, "./skills/"))
        self.assertTrue(all(len(prompt) <= 128 for prompt in codex["interface"]["defaultPrompt"]))
        self.assertFalse((PLUGIN / "hooks").exists())
        for place in (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"):
            (entry,) = read_json(ROOT / place)["plugins"]
            source = entry["source"] if isinstance(entry["source"], str) else entry["source"]["path"]
            self.assertEqual((entry["name"], ROOT / source, "version" in entry), (claude["name"], PLUGIN, False))

    def test_nothing_is_left_over_and_nothing_is_a_link(self):
        for top in (PLUGIN, ROOT / ".agents", ROOT / ".claude-plugin"):
            for folder, folders, names in os.walk(top):
                for name in [*folders, *names]:
                    path = Path(folder) / name
                    self.assertFalse(path.is_symlink(), path)
                    if path.is_file():
                        self.assertIn(path.suffix, (".md", ".py", ".json", ".yaml"), path)
        tracked = subprocess.run(["git", "ls-files", "plugins", ".agents"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
        self.assertNotRegex(tracked, r"__pycache__|\.pyc|\.tmp")

    def test_each_engine_is_the_bundle(self):
        bundle = (ROOT / "kaizen.py").read_bytes()
        for name, folder in SKILLS.items():
            engine = Path(folder) / "scripts/kaizen.py"
            self.assertTrue(engine.read_bytes() == bundle, f"{name}: run python scripts/build.py")
            self.assertTrue(os.access(engine, os.X_OK))


class Calls(TemporaryFolder):
    """Every command in the texts is one that the engine has, in the words that it takes."""

    def test_every_call_is_understood(self):
        seen = 0
        steps = "\n".join(f"`{step.command.format(id='ID', system='', guide='')}`" for step in kaizen.GUIDE_STEPS)
        for path, text in [*((path, path.read_text(encoding="utf-8")) for path in TEXTS), (ROOT / "steps", steps)]:
            for call in engine_calls(text):
                words = [VALUES.get(word, word) for word in shlex.split(call)[1:]]
                name = " ".join(words[:2]) if kaizen.subcommands(words[0]) and words[0] not in kaizen.COMMANDS else words[0]
                if "COMMAND" in words[:1]:
                    continue
                with self.subTest(path=path.relative_to(ROOT).as_posix(), call=call):
                    seen += 1
                    self.assertIn(name, kaizen.COMMANDS)
                    if words != name.split() and "--help" not in words:
                        self.check_words(words)
        self.assertGreater(seen, 50)

    def check_words(self, words):
        """Fails unless the parser takes *words*; a call that is only mentioned may leave out what is required."""
        try:
            kaizen.parse_command_line(words)
        except kaizen.UsageError as error:
            self.assertRegex(error.message, "the following arguments are required", words)

    def test_every_spelt_out_command_starts_in_a_folder_with_a_blank_in_its_name(self):
        home = self.folder / "First Last"
        for name, folder in SKILLS.items():
            target = home / name
            target.parent.mkdir(exist_ok=True)
            kaizen.install_copy(folder, str(target))
        calls = {call for path in TEXTS for call in literal_calls(path.read_text(encoding="utf-8"))}
        self.assertEqual(len([call for call in calls if "/full/path/to/" in call]), len(calls))
        self.assertEqual({call.split("/")[4] for call in calls}, set(SKILLS))
        for name in SKILLS:
            (call,) = {re.sub(r'(scripts/kaizen\.py").*', r"\1", call) for call in calls if f"/{name}/" in call}
            line = call.replace("/full/path/to", str(home))
            done = subprocess.run(["sh", "-c", f"{line} --version"], env=clean_environment(), capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout[:7]), (0, "kaizen "), line + done.stderr)

    def test_what_doctor_tells_to_grant_is_the_call_as_it_is_written(self):
        told = json.dumps(kaizen.grants([]), ensure_ascii=False)
        self.assertIn(json.dumps(f'Bash(python3 "{ROOT}/kaizen.py" *)')[1:-1], told)


if __name__ == "__main__":
    sys.exit(unittest.main())
