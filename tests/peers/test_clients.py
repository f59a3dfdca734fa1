"""The plugin in the real clients: Claude Code and Codex take it, show it, follow it, and give it back.

Both come from npm (clients.py), with a home that is thrown away, in folders with a blank in their names.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import clients
from model_stub import ModelStub
from support import ROOT, StrictTestCase, kaizen, write

PARTS = (".claude-plugin", ".agents", "plugins", "scripts", "src", "kaizen.py", "README.md", "LICENSE", "CHANGELOG.md", "tests/transcripts/version.txt")
SKILLS = ("plugins/kaizen/skills/guide", "plugins/kaizen/skills/autoresearch", ".agents/skills/improve-agent")
PLUGIN = "kaizen@kaizen"


def copy_of_checkout(target):
    """What the clients see of the checkout, in the new folder *target*, as a repository with one commit."""
    for name in PARTS:
        source, place = ROOT / name, target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, place)
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.test"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=target, check=True, capture_output=True)


class Clients(StrictTestCase):
    """A throw-away home, a copy of the checkout, and both clients on PATH."""

    def setUp(self):
        super().setUp()
        self.place = clients.outside_temp(self) / "First Last"
        self.place.mkdir()
        self.home = self.place / "home"
        bin = self.place / "bin"
        bin.mkdir()
        for name, program in (("claude", clients.claude()), ("codex", clients.codex())):
            os.symlink(program, bin / name)
        self.environment = clients.surroundings(self.home, {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "TMPDIR": "/tmp"})
        self.checkout = self.place / "check out"
        copy_of_checkout(self.checkout)
        self.project = self.place / "their project"
        self.project.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)

    def run_it(self, *words, cwd=None, status=0):
        """What a program printed on standard output."""
        done = subprocess.run(
            [str(word) for word in words], cwd=cwd or self.project, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=180, check=False,
        )  # fmt: skip
        if status is not None:
            self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def kaizen(self, *words, status=0, checkout=None):
        """{client or copy: (status, version)} and the whole answer of `kaizen skills …`."""
        answer = json.loads(self.run_it(sys.executable, (checkout or self.checkout) / "kaizen.py", "skills", *words, "--json", status=status))
        rows = answer.get("clients") or answer.get("copies") or []
        return {row["name"]: row["status"] for row in rows}, answer

    def claude_row(self):
        """The plugin as `claude plugin list` has it, None for none."""
        rows = json.loads(self.run_it("claude", "plugin", "list", "--json"))
        return next((row for row in rows if row["id"] == PLUGIN), None)

    def codex_row(self):
        """The plugin as `codex plugin list` has it, None for none."""
        rows = json.loads(self.run_it("codex", "plugin", "list", "-m", "kaizen", "--json"))["installed"]
        return next((row for row in rows if row["pluginId"] == PLUGIN), None)

    def codex_copy(self):
        """The folder of Codex's copy."""
        (folder,) = (self.home / ".codex/plugins/cache/kaizen/kaizen").iterdir()
        return folder

    def seen_by_claude(self):
        """(names of the skills, {plugin: folder}) that a session of Claude Code starts with."""
        lines = self.run_it("claude", "-p", "hi", "--output-format", "stream-json", "--verbose", status=1).splitlines()
        (start,) = [event for event in map(json.loads, lines) if (event.get("type"), event.get("subtype")) == ("system", "init")]
        return start["skills"], {plugin["name"]: plugin["path"] for plugin in start["plugins"]}

    def seen_by_codex(self):
        """The names of the skills that a session of Codex is told of."""
        told = json.loads(self.run_it("codex", "debug", "prompt-input", "hi"))
        texts = [part.get("text", "") for item in told for part in item.get("content") or []]
        (text,) = [text for text in texts if "<skills_instructions>" in text]
        return re.findall(r"^- ([\w:-]+): ", text, re.MULTILINE)

    def raise_version(self, version):
        """The checkout's next release."""
        self.run_it(sys.executable, self.checkout / "scripts/release.py", version)
        self.run_it(sys.executable, self.checkout / "scripts/build.py")


class Bundle(Clients):
    """What is shipped passes the validators of others."""

    def test_claude_code_validates_marketplace_and_plugin_strictly(self):
        self.run_it("claude", "plugin", "validate", "--strict", self.checkout)
        found = json.loads(self.run_it("claude", "plugin", "validate", "--strict", "--json", self.checkout / "plugins/kaizen"))
        self.assertEqual((found["success"], found["provides"]["skills"]), (True, ["kaizen:autoresearch", "kaizen:guide"]))
        self.assertEqual((found["manifest"]["errors"], found["manifest"]["warnings"]), ([], []))

    def test_the_reference_validator_accepts_each_skill(self):
        validator = Path(sys.executable).with_name("agentskills")
        for skill in SKILLS:
            with self.subTest(skill):
                self.run_it(validator, "validate", self.checkout / skill)


class LifeCycle(Clients):
    """`kaizen skills` and what the clients' own commands say after it."""

    def test_the_whole_life_of_the_plugin(self):
        self.assertEqual(self.kaizen("status", status=1)[0], {"claude": "not_installed", "codex": "not_installed"})
        self.assertEqual(self.kaizen("refresh", status=1)[0], {"claude": "not_installed", "codex": "not_installed"})
        self.assertEqual((self.claude_row(), self.codex_row()), (None, None))

        # first, again
        self.assertEqual(self.kaizen("install")[0], {"claude": "installed", "codex": "installed"})
        for row in (self.claude_row(), self.codex_row()):
            self.assertEqual((row["version"], row["enabled"]), (kaizen.VERSION, True))
        self.assertEqual(self.kaizen("install")[0], {"claude": "refreshed", "codex": "refreshed"})
        self.assertEqual(self.kaizen("status")[0], {"claude": "current", "codex": "current"})

        # sessions see it, and Claude Code reads the checkout itself
        skills, plugins = self.seen_by_claude()
        self.assertLess({"kaizen:guide", "kaizen:autoresearch"}, set(skills))
        self.assertEqual(Path(plugins["kaizen"]), self.checkout / "plugins/kaizen")
        self.assertIn("kaizen:guide", self.seen_by_codex())
        self.assertNotIn("kaizen:autoresearch", self.seen_by_codex(), "only when it is named")

        # disabled by the user: stays so
        self.run_it("claude", "plugin", "disable", PLUGIN)
        config = self.home / ".codex/config.toml"
        on, off = (f'[plugins."{PLUGIN}"]\nenabled = {word}' for word in ("true", "false"))
        self.assertIn(on, config.read_text())
        write(config, config.read_text().replace(on, off))
        for words in (["install"], ["refresh"], ["status"]):
            self.assertEqual(self.kaizen(*words)[0], {"claude": "disabled", "codex": "disabled"})
        self.assertEqual([self.claude_row()["enabled"], self.codex_row()["enabled"]], [False, False])
        self.assertNotIn("kaizen:guide", [*self.seen_by_claude()[0], *self.seen_by_codex()])
        self.run_it("claude", "plugin", "enable", PLUGIN)
        write(config, config.read_text().replace(off, on))

        # a new release
        self.raise_version("9.8.7")
        self.assertEqual(self.kaizen("status", status=1)[0]["codex"], "different")
        found, answer = self.kaizen("refresh")
        self.assertEqual(found, {"claude": "refreshed", "codex": "refreshed"})
        self.assertEqual({row["version"] for row in answer["clients"]}, {"9.8.7"})
        self.assertEqual([self.claude_row()["version"], self.codex_row()["version"]], ["9.8.7", "9.8.7"])
        self.assertEqual(self.codex_copy().name, "9.8.7")

        # the checkout moves: away, and then beside one that stays
        moved = self.place / "moved"
        self.checkout.rename(moved)
        self.assertEqual(self.kaizen("install", checkout=moved)[0], {"claude": "refreshed", "codex": "refreshed"})
        self.assertEqual(Path(self.seen_by_claude()[1]["kaizen"]), moved / "plugins/kaizen")
        second = self.place / "second"
        shutil.copytree(moved, second)
        _, answer = self.kaizen("install", checkout=second)
        self.assertIn("was taken from", answer["message"])
        self.assertEqual(Path(self.seen_by_claude()[1]["kaizen"]), second / "plugins/kaizen")
        self.assertEqual(self.codex_row()["marketplaceSource"]["source"], str(second))
        self.assertEqual(self.kaizen("status", checkout=second)[0], {"claude": "current", "codex": "current"})

        # away, and again
        self.assertEqual(self.kaizen("uninstall", checkout=second)[0], {"claude": "removed", "codex": "removed"})
        self.assertEqual((self.claude_row(), self.codex_row()), (None, None))
        self.assertEqual(json.loads(self.run_it("claude", "plugin", "marketplace", "list", "--json")), [])
        self.assertEqual(json.loads(self.run_it("codex", "plugin", "marketplace", "list", "--json")).get("marketplaces", []), [])
        self.assertEqual(self.kaizen("uninstall", checkout=second)[0], {"claude": "not_installed", "codex": "not_installed"})

    def test_new_content_under_an_old_version_arrives_and_edits_are_kept(self):
        self.kaizen("install")
        edited = self.codex_copy() / "skills/guide/SKILL.md"
        write(edited, edited.read_text() + "\nmy own words\n")
        self.assertEqual(self.kaizen("status", status=1)[0]["codex"], "different")
        _, answer = self.kaizen("install")
        self.assertIn("what it had and this checkout does not know is kept in", answer["message"])
        kept = list((self.home / ".codex/kaizen-replaced").rglob("SKILL.md"))
        self.assertEqual([path.read_text().endswith("my own words\n") for path in kept], [True])
        source = self.checkout / "plugins/kaizen/skills/guide/SKILL.md"
        self.assertEqual((self.codex_copy() / "skills/guide/SKILL.md").read_bytes(), source.read_bytes())

        write(source, source.read_text() + "\nnew words of ours\n")
        _, answer = self.kaizen("install")
        self.assertIn("1 file replaced", answer["message"])
        self.assertNotIn("is kept in", answer["message"], "what git knows is ours")
        self.assertEqual((self.codex_copy() / "skills/guide/SKILL.md").read_bytes(), source.read_bytes())
        _, answer = self.kaizen("install")
        self.assertNotIn("replaced", answer["message"])
        self.assertEqual(len(list((self.home / ".codex/plugins/cache/kaizen/kaizen").iterdir())), 1)
        self.assertEqual(len(list((self.home / ".codex/kaizen-replaced").iterdir())), 1)

    def test_copies_in_a_repository_are_seen_under_their_short_names(self):
        found, _ = self.kaizen("install", "--project")
        self.assertEqual(set(found.values()), {"installed"})
        names = {"guide", "autoresearch", "improve-agent"}
        self.assertLess(names, set(self.seen_by_claude()[0]))
        self.assertLess(names - {"autoresearch"}, set(self.seen_by_codex()))
        validator = Path(sys.executable).with_name("agentskills")
        for skill in sorted(self.project.glob(".*/skills/*")):
            self.run_it(validator, "validate", skill)
        self.kaizen("uninstall", "--project")
        self.assertEqual(list(self.project.glob(".*/skills/*")), [])


class Skill(Clients):
    """A model that is told to use the skill finds the engine from what it is told, and what is granted is enough, and no more."""

    def setUp(self):
        super().setUp()
        self.kaizen("install")
        self.heard = {}

    def engine(self, conversation):
        """The engine's path as the texts that the model got lead to it."""
        told = "\n".join(conversation.texts)
        base = re.search(r"^Base directory for this skill: (.*)$", told, re.MULTILINE) if conversation.client == "claude" else None
        folder = base[1] if base else str(Path(re.search(r"<path>([^<]*SKILL\.md)</path>", told)[1]).parent)
        self.assertIn("from nothing to a number that can be trusted", told.casefold(), "the skill's own text")
        return f'python3 "{folder}/scripts/kaizen.py"'

    def script(self, conversation):
        engine = self.engine(conversation)
        for name, line in (
            ("guide", f"{engine} doctor --guide --json"),
            ("doctor", f"{engine} doctor"),
            ("joined", f"{engine} --version && touch joined"),
            ("redirected", f"{engine} --version > redirected"),
            ("other", "touch other"),
        ):
            (self.heard[name],) = yield conversation.shell(line)
        yield "Done."

    def ask(self, *words):
        """Lets the client run with the model that the script plays; what its commands printed, by name."""
        with ModelStub(self.script) as stub:
            self.environment.update(stub.environment(self.home))
            self.run_it(*words)
            stub.check()
        return self.heard

    def test_claude_code_lets_the_granted_call_through_and_nothing_beside_it(self):
        engine = self.checkout / "plugins/kaizen/skills/guide/scripts/kaizen.py"
        rules = kaizen_rules(self.run_it(sys.executable, engine, "doctor", "--json", status=None))
        heard = self.ask("claude", "-p", "/kaizen:guide", "--allowedTools", *rules)
        self.assertIn('"of": 18', heard["guide"])
        self.assertIn("Claude Code: a call ends after 2 minutes", heard["doctor"])
        self.assertEqual([path.name for path in self.project.iterdir()], [".git"], heard)

    def test_claude_code_denies_all_of_it_headless_without_a_rule(self):
        heard = self.ask("claude", "-p", "/kaizen:guide")
        self.assertNotIn('"of"', heard["guide"])
        self.assertEqual([path.name for path in self.project.iterdir()], [".git"])

    def test_codex_needs_no_rule_in_workspace_write(self):
        heard = self.ask("codex", "exec", "--sandbox", "workspace-write", "Use $kaizen:guide to say which steps are done.")
        self.assertIn('"of": 18', heard["guide"])
        self.assertIn("Codex's sandbox allows no connections", heard["doctor"])


def kaizen_rules(answer):
    """The rules that `kaizen doctor --json` names for Claude Code."""
    told = json.loads(answer)["grants"]["claude"][1]
    return shlex.split(told.split("--allowedTools ", 1)[1])


class Sandbox(Clients):
    """`kaizen doctor` and the lab in the sandbox that Codex itself makes."""

    def boxed(self, mode, *words, status=0):
        """The JSON that `kaizen *words*` printed in Codex's sandbox of *mode*."""
        box = ["codex", "sandbox", "-c", f"sandbox_mode={mode}", "--", sys.executable, self.checkout / "kaizen.py"]
        return json.loads(self.run_it(*box, *words, "--json", status=status))

    def test_doctor_says_what_the_sandbox_forbids_and_the_way_out_works(self):
        self.run_it(sys.executable, self.checkout / "kaizen.py", "init")
        self.run_it(sys.executable, self.checkout / "kaizen.py", "create", "system", "demo")
        for words in (["config", "user.name", "Ann"], ["config", "user.email", "ann@example.test"], ["add", "-A"], ["commit", "-qm", "demo"]):
            self.run_it("git", *words)
        found = self.boxed("workspace-write", "doctor")
        self.assertEqual((found["driver"], found["blocked"]), ("codex", []))
        self.assertLess({"git", "network"}, set(found["limited"]))
        self.assertIn("kaizen lab open", found["next"])
        clone = self.boxed("workspace-write", "lab", "open")["path"]
        self.assertTrue((self.project / clone / "kaizen/systems/demo/system.md").is_file())

        found = self.boxed("read-only", "doctor", status=1)
        self.assertLessEqual({"workspace", "scratch"}, set(found["blocked"]))
        self.assertIn("--sandbox workspace-write", json.dumps(found["grants"]["codex"]))
        self.assertEqual(self.boxed("read-only", "doctor", "--guide")["of"], 18)


if __name__ == "__main__":
    unittest.main()
