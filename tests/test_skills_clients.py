"""The installer against stand-ins for both clients, which answer as the real ones were seen to (tests/peers/test_clients.py)."""

import contextlib
import io
import json
import os
import sys
import unittest
from unittest import mock

import support
from support import kaizen, read_json, write

# Programs whose state is a JSON file; each of their answers is one that the real client gave. Most tests let them be played in
# this process, which is twenty times as fast.
CLAUDE = r"""#!{python} -IS
import json, os, sys
with open({state!r}) as stream:
    state = json.load(stream)
words = sys.argv[1:]
state.setdefault("asked", []).append(words)
def save():
    with open({state!r}, "w") as stream:
        json.dump(state, stream)
def version_of(path):
    with open(path) as stream:
        return json.load(stream)["version"]
def fail(text):
    save(); sys.stderr.write("✘ " + text + "\n"); sys.exit(1)
save()
if "RUST_BACKTRACE" in os.environ or sys.stdin.read():
    fail("the environment or the input is not as it should be")
if state.get("broken") and state["broken"] in " ".join(words):
    if state.get("says") is not None:
        print(state["says"]); sys.exit(0)
    fail(state["broken"] + " does not work")
known = [word for word in words if not word.startswith("--")]
if known == ["plugin", "marketplace", "list"]:
    print(json.dumps(state["markets"]))
elif known[:3] == ["plugin", "marketplace", "add"]:
    state["markets"] = [m for m in state["markets"] if m["name"] != "kaizen"] + [
        {{"name": "kaizen", "source": "directory", "path": known[3], "installLocation": known[3]}}]
elif known[:3] == ["plugin", "marketplace", "remove"]:
    state["markets"] = [m for m in state["markets"] if m["name"] != "kaizen"]
elif known == ["plugin", "list"]:
    rows = [{{"id": "other@builtin", "version": "1", "scope": "user", "enabled": True}}, *state.get("others", [])]
    if state.get("version"):
        place = next(m["path"] for m in state["markets"] if m["name"] == "kaizen")
        rows.append({{"id": "kaizen@kaizen", "version": state["version"], "scope": "user", "enabled": state.get("enabled", True),
                     "readFromFolder": place + "/plugins/kaizen", "installPath": "/nowhere", "errors": state.get("errors", [])}})
    print(json.dumps(rows))
elif known[:2] in (["plugin", "install"], ["plugin", "update"]):
    if known[1] == "update" and not state.get("version"):
        fail("not installed")
    if known[1] == "install":
        state["enabled"] = True
    place = next(m["path"] for m in state["markets"] if m["name"] == "kaizen")
    state["version"] = version_of(place + "/plugins/kaizen/.claude-plugin/plugin.json")
elif known[:2] == ["plugin", "uninstall"]:
    state["version"] = ""
else:
    fail("unknown: " + " ".join(words))
save()
"""
CODEX = r"""#!{python} -IS
import json, os, shutil, sys
with open({state!r}) as stream:
    state = json.load(stream)
words = sys.argv[1:]
state.setdefault("asked", []).append(words)
def save():
    with open({state!r}, "w") as stream:
        json.dump(state, stream)
def version_of(path):
    with open(path) as stream:
        return json.load(stream)["version"]
def fail(text, code=1):
    save(); sys.stderr.write("WARNING: proceeding\nError: " + text + "\n"); sys.exit(code)
save()
if "RUST_BACKTRACE" in os.environ or sys.stdin.read():
    fail("the environment or the input is not as it should be")
if state.get("broken") and state["broken"] in " ".join(words):
    fail(state["broken"] + " does not work")
home, known = os.environ["CODEX_HOME"], [word for word in words if word not in ("--json", "-m")]
cache = home + "/plugins/cache/kaizen/kaizen"
if words == ["plugin", "--help"]:
    sys.exit(2 if state.get("old") else 0)
elif known[:3] == ["plugin", "marketplace", "add"]:
    if state.get("market") not in (None, known[3]) and os.path.isdir(state["market"]):
        fail("marketplace is already added from a different source; remove it before adding this source")
    state["market"] = known[3]
    print(json.dumps({{"marketplaceName": "kaizen", "installedRoot": known[3], "alreadyAdded": False}}))
elif known[:3] == ["plugin", "marketplace", "remove"]:
    if not state.get("market"):
        fail("not configured")
    state["market"] = None
elif known[:3] == ["plugin", "list", "kaizen"]:
    rows = [{{"pluginId": name, "version": "1", "installed": True, "enabled": True}} for name in state.get("others", [])]
    if state.get("version"):
        rows.append({{"pluginId": "kaizen@kaizen", "version": state["version"], "installed": True, "enabled": state.get("enabled", True)}})
    print(json.dumps({{"installed": rows, "available": []}}))
elif known[:2] == ["plugin", "add"]:
    source = state["market"] + "/plugins/kaizen"
    state["version"] = version_of(source + "/.codex-plugin/plugin.json")
    state["enabled"] = True
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(source, cache + "/" + state["version"])
    for name in state.get("loses", []):
        os.unlink(cache + "/" + state["version"] + "/" + name)
    print(json.dumps({{"pluginId": "kaizen@kaizen", "version": state["version"], "installedPath": cache + "/" + state["version"]}}))
elif known[:2] == ["plugin", "remove"]:
    shutil.rmtree(cache, ignore_errors=True)
    state["version"] = ""
else:
    fail("unexpected argument", 2)
save()
"""


def played(caller, *words):
    """What `Caller.ended` would give, with the stand-in run in this process."""
    with open(caller.program, encoding="utf-8") as stream:
        text = stream.read()
    out, err, code = io.StringIO(), io.StringIO(), 0
    environment = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    streams = (mock.patch.object(sys, "stdin", io.StringIO()), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err))
    around = (mock.patch.object(sys, "argv", ["client", *words]), mock.patch.dict(os.environ, environment, clear=True))
    with contextlib.ExitStack() as stack:
        for each in (*streams, *around):
            stack.enter_context(each)
        try:
            exec(compile(text, caller.program, "exec"), {})
        except SystemExit as error:
            code = error.code or 0
    return kaizen.Ended("exited", code, out.getvalue().encode(), err.getvalue().encode(), 0, 0.0)


class StandIns(support.TemporaryFolder):
    """A checkout in small, a home, and both clients on PATH."""

    has_processes = False

    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.states = {name: self.folder / f"{name}.json" for name in ("claude", "codex")}
        for name, text, state in (("claude", CLAUDE, {"markets": []}), ("codex", CODEX, {})):
            write(self.states[name], json.dumps(state))
            write(self.bin / name, text.format(python=sys.executable, state=str(self.states[name]))).chmod(0o755)
        codex_home = self.folder / "home/.codex"
        codex_home.mkdir(parents=True)
        environment = {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "CODEX_HOME": str(codex_home), "RUST_BACKTRACE": "1"}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        if not self.has_processes:
            player = mock.patch.object(kaizen.Caller, "ended", played)
            player.start()
            self.addCleanup(player.stop)
        self.root = self.make_checkout("first")

    def make_checkout(self, name, version="0.1.0"):
        """A folder with a plugin of one skill; its real path."""
        root = self.folder / name
        for client in ("claude", "codex"):
            write(root / f"plugins/kaizen/.{client}-plugin/plugin.json", json.dumps({"name": "kaizen", "version": version}))
        write(root / "plugins/kaizen/skills/guide/SKILL.md", "guide\n")
        return str(root)

    def set(self, client, **values):
        """Changes what the stand-in of *client* knows."""
        write(self.states[client], json.dumps({**read_json(self.states[client]), **values}))

    def asked(self, client):
        """The calls that the stand-in got, as lines."""
        return [" ".join(words) for words in read_json(self.states[client]).get("asked", [])]

    def install(self, root=None):
        return kaizen.each_client(lambda client, caller: client.install(caller, root or self.root), 30)

    def states_of(self, outcomes):
        return {name: each.status for name, each in outcomes.items()}

    def texts_of(self, outcomes):
        return {name: each.text for name, each in outcomes.items()}


class Installing(StandIns):
    """The branches of the algorithm."""

    def test_first_and_again(self):
        self.assertEqual(self.texts_of(self.install()), {"claude": "installed 0.1.0", "codex": "installed 0.1.0"})
        self.assertEqual(self.texts_of(self.install()), {"claude": "refreshed 0.1.0", "codex": "refreshed 0.1.0"})
        self.assertIn("plugin update kaizen@kaizen", self.asked("claude"))
        self.assertEqual(self.asked("claude").count(f"plugin marketplace add {self.root}"), 1)

    def test_claude_gets_no_json_option_where_old_versions_refuse_it(self):
        self.install()
        changing = [line for line in self.asked("claude") if " list" not in line]
        self.assertEqual([line for line in changing if "--json" in line], [])

    def test_what_the_user_disabled_stays_disabled(self):
        self.install()
        for client in ("claude", "codex"):
            self.set(client, enabled=False, asked=[])
        outcomes = self.install()
        self.assertEqual(self.states_of(outcomes), {"claude": "disabled", "codex": "disabled"})
        self.assertTrue(all(text.startswith("disabled by you; left alone; to have it: ") for text in self.texts_of(outcomes).values()))
        self.assertNotIn("plugin install kaizen@kaizen", self.asked("claude"))
        self.assertNotIn("plugin add kaizen@kaizen --json", self.asked("codex"))

    def test_a_checkout_that_moved_is_followed_whether_the_old_one_is_there_or_not(self):
        self.install()
        second = self.make_checkout("second", "0.2.0")
        outcomes = self.install(second)
        self.assertEqual(outcomes["claude"].text, f"refreshed 0.2.0 (was 0.1.0 and was taken from {self.root})")
        self.assertIn("refreshed 0.2.0 (was 0.1.0, 2 files replaced and was taken from another checkout)", outcomes["codex"].text)
        self.assertIn("plugin marketplace remove kaizen", self.asked("codex"))
        third = self.folder / "third"
        os.rename(second, third)
        self.assertEqual(self.states_of(self.install(str(third))), {"claude": "refreshed", "codex": "refreshed"})

    def test_a_marketplace_from_elsewhere_is_pointed_here_and_it_is_said(self):
        self.set("claude", markets=[{"name": "kaizen", "source": "git", "url": "https://example.test/k.git"}])
        self.assertEqual(self.install()["claude"].text, "installed 0.1.0 (was taken from https://example.test/k.git)")

    def test_one_client_missing_or_broken_hinders_no_other(self):
        (self.bin / "claude").unlink()
        with mock.patch.dict(os.environ, {"PATH": str(self.bin)}):
            self.assertEqual(self.states_of(self.install()), {"claude": "not_found", "codex": "installed"})
        self.set("codex", broken="plugin add")
        self.assertEqual(self.install()["codex"].text, "failed: plugin add does not work")

    def test_a_client_that_answers_no_strict_json_has_failed(self):
        for says in ("", "{", '[{"name": "a", "name": "b"}]', "[NaN]", '{"not": "a list"}'):
            self.set("claude", broken="marketplace list", says=says)
            self.assertEqual(self.install()["claude"].text, "failed: `plugin marketplace list` did not answer in the JSON that it should", says)

    def test_a_plugin_that_the_client_cannot_load_has_failed_in_its_words(self):
        self.set("claude", errors=["Marketplace kaizen failed to load: cache-miss"])
        self.assertEqual(self.install()["claude"].text, "failed: Marketplace kaizen failed to load: cache-miss")

    def test_an_old_codex_is_told_apart(self):
        self.set("codex", old=True)
        self.assertEqual(self.install()["codex"].text, "failed: this Codex knows no plugins; upgrade it (0.142.3 or newer)")

    def test_a_copy_that_is_not_whole_has_failed_with_the_file(self):
        self.set("codex", loses=["skills/guide/SKILL.md"])
        self.assertIn("its copy differs from the checkout in skills/guide/SKILL.md; remove ", self.install()["codex"].text)

    def test_a_changed_file_in_codex_copy_is_kept_before_it_is_replaced(self):
        self.install()
        copied = self.folder / "home/.codex/plugins/cache/kaizen/kaizen/0.1.0/skills/guide/SKILL.md"
        write(copied, "mine\n")
        text = self.install()["codex"].text
        self.assertIn("refreshed 0.1.0 (1 file replaced); what it had and this checkout does not know is kept in home/.codex/kaizen-replaced/0.1.0-", text)
        self.assertEqual(copied.read_text(), "guide\n")
        self.assertEqual((self.folder / text.rpartition(" ")[2] / "skills/guide/SKILL.md").read_text(), "mine\n")
        self.assertEqual(self.install()["codex"].text, "refreshed 0.1.0")


class Started(StandIns):
    """The stand-ins as programs: environment, input, time."""

    has_processes = True

    def test_they_get_no_input_and_no_backtraces(self):
        self.assertEqual(self.states_of(self.install()), {"claude": "installed", "codex": "installed"})

    def test_a_client_that_hangs_is_ended_in_time(self):
        for name in ("claude", "codex"):
            write(self.bin / name, "#!/bin/sh\nexec sleep 30\n").chmod(0o755)
        outcomes = kaizen.each_client(lambda client, caller: client.install(caller, self.root), 0.05)
        self.assertEqual(outcomes["claude"].text, "failed: `plugin marketplace list` did not end in time")


class Showing(StandIns):
    """`status`, `refresh`, `uninstall`."""

    def status(self):
        return self.states_of(kaizen.each_client(lambda client, caller: kaizen.plugin_outcome(client, caller, self.root, "0.1.0"), 30))

    def test_status_compares_contents_and_not_only_versions(self):
        self.assertEqual(self.status(), {"claude": "not_installed", "codex": "not_installed"})
        self.install()
        self.assertEqual(self.status(), {"claude": "current", "codex": "current"})
        write(self.folder / "first/plugins/kaizen/skills/guide/SKILL.md", "another guide\n")
        self.assertEqual(self.status(), {"claude": "current", "codex": "different"}, "Claude Code reads the checkout itself")
        self.set("claude", enabled=False)
        self.assertEqual(self.status()["claude"], "disabled")

    def test_an_old_client_that_does_not_say_what_it_reads_is_understood(self):
        self.install()
        program = self.bin / "claude"
        write(program, program.read_text().replace('"readFromFolder"', '"unknown"'))
        self.assertEqual(self.status()["claude"], "current")
        self.set("claude", markets=[{"name": "kaizen", "source": "git", "url": "https://example.test/k.git", "path": ""}])
        self.assertEqual(self.status()["claude"], "current", "by its version")

    def test_refresh_installs_nothing_where_nothing_was(self):
        self.assertEqual(self.states_of(kaizen.refresh_clients(self.root)), {"claude": "not_installed", "codex": "not_installed"})
        self.install()
        self.assertEqual(self.states_of(kaizen.refresh_clients(self.root)), {"claude": "refreshed", "codex": "refreshed"})

    def test_uninstall_takes_plugin_and_marketplace_and_repeats(self):
        remove = lambda: self.texts_of(kaizen.each_client(lambda client, caller: client.remove(caller), 30))  # noqa: E731
        self.install()
        self.assertEqual(remove(), {"claude": "removed", "codex": "removed"})
        self.assertEqual((read_json(self.states["claude"])["markets"], read_json(self.states["codex"])["market"]), ([], None))
        self.assertEqual(remove(), {"claude": "not installed", "codex": "not installed"})

    def test_a_marketplace_that_others_come_from_stays(self):
        self.install()
        self.set("claude", others=[{"id": "second@kaizen", "scope": "user"}])
        self.set("codex", others=["second@kaizen"])
        for outcome in kaizen.each_client(lambda client, caller: client.remove(caller), 30).values():
            self.assertEqual(outcome.text, "removed; its marketplace stays: second@kaizen comes from there")
        self.assertEqual(len(read_json(self.states["claude"])["markets"]), 1)


class Upgrading(StandIns):
    """What happens once after an upgrade, and where it does not."""

    def setUp(self):
        super().setUp()
        quiet = dict.fromkeys(kaizen.UNATTENDED, "")
        patches = [
            mock.patch.dict(os.environ, quiet),
            mock.patch.object(kaizen, "bundle_root", lambda: self.root),
            mock.patch.object(sys, "argv", [f"{self.root}/kaizen.py"]),
            mock.patch.object(sys.stderr, "isatty", lambda: True, create=True),
        ]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.note = self.folder / "first/.kaizen-skills.json"

    def after(self, version):
        with mock.patch.object(kaizen, "VERSION", version):
            return kaizen.refresh_after_upgrade()

    def test_nothing_happens_before_anything_was_installed(self):
        self.assertEqual(self.after("0.2.0"), "")
        self.assertFalse(self.note.exists())

    def test_a_newer_program_refreshes_once_and_says_so(self):
        self.install()
        kaizen.note_installed(self.root)
        self.assertEqual(self.after(kaizen.VERSION), "")
        self.root = self.make_checkout("first", "0.2.0")
        self.assertEqual(self.after("0.2.0"), "the skills in your coding agents are now 0.2.0; start a new session there")
        self.assertEqual(read_json(self.states["codex"])["version"], "0.2.0")
        self.set("codex", asked=[])
        self.assertEqual(self.after("0.2.0"), "")
        self.assertEqual(self.asked("codex"), [])

    def test_a_failure_is_one_line_and_is_not_tried_again(self):
        self.install()
        kaizen.note_installed(self.root)
        self.set("codex", broken="plugin add")
        told = self.after("0.2.0")
        self.assertIn("still those of 0.1.0: codex: failed: plugin add does not work. Try: kaizen skills refresh", told)
        self.assertEqual(self.after("0.2.0"), "")

    def test_any_command_tells_it_after_its_own_answer(self):
        with mock.patch.object(kaizen, "UPGRADE_NOTE", "kaizen.py"), mock.patch.object(kaizen, "refresh_after_upgrade", lambda: "refreshed"):
            done = support.run_cli("evaluators", "contains")
        self.assertEqual((done.status, done.stderr), (0, "kaizen: refreshed\n"))

    def test_no_program_is_refreshed_behind_the_back_of_anybody(self):
        self.install()
        kaizen.note_installed(self.root)
        self.set("codex", asked=[])
        for name in kaizen.UNATTENDED:
            with mock.patch.dict(os.environ, {name: "1"}):
                self.assertEqual(self.after("0.2.0"), "")
        with mock.patch.object(sys.stderr, "isatty", lambda: False, create=True):
            self.assertEqual(self.after("0.2.0"), "")
        self.assertEqual(self.asked("codex"), [])


class Commands(StandIns):
    """What is printed, and the exit codes."""

    def skills(self, *words, root="here"):
        with mock.patch.object(kaizen, "bundle_root", lambda: self.root if root == "here" else None):
            return support.run_cli("skills", *words)

    def test_a_line_for_each_client_then_what_to_do(self):
        done = self.skills("install")
        self.assertEqual((done.status, done.stdout.splitlines()[:2]), (0, ["Claude Code: installed 0.1.0", "Codex: installed 0.1.0"]))
        self.assertIn("start a new session", done.stdout.splitlines()[2])
        answer = json.loads(self.skills("status", "--json").stdout)
        self.assertEqual([(row["name"], row["status"]) for row in answer["clients"]], [("claude", "current"), ("codex", "current")])
        self.assertEqual(self.skills("uninstall").status, 0)
        self.assertEqual(self.skills("status").status, 1)
        self.assertEqual(self.skills("refresh").stdout.splitlines()[-1], "next: kaizen skills install")

    def test_exit_codes(self):
        self.set("codex", broken="plugin add")
        self.assertEqual(self.skills("install").status, 1)
        refused = self.skills("install", root=None)
        self.assertEqual((refused.status, "is a copy of the program without the skills beside it" in refused.stderr), (2, True))
        (self.bin / "codex").unlink()
        (self.bin / "claude").unlink()
        with mock.patch.dict(os.environ, {"PATH": str(self.bin)}):
            none = self.skills("install")
        self.assertEqual((none.status, none.stdout.splitlines()[0]), (1, "Claude Code: not found on PATH"))
        self.assertIn("kaizen skills install --project", none.stdout)


if __name__ == "__main__":
    unittest.main()
