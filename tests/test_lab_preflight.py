"""What forbids a run, in its order; where the store of a tree is; and what a system's description must say."""

import json
import unittest

import support
from lab_fixture import GOOD, Lab
from support import write

import kaizen


class Refusals(Lab):
    """Each with its reason code and exit 5, and nothing recorded."""

    def tearDown(self):
        self.assertEqual(self.store.ids(), [])
        super().tearDown()

    def test_a_change_that_is_not_committed(self):
        table = {
            "staged": lambda: (write("new.py", "1\n"), self.git("add", "new.py")),
            "unstaged": lambda: write("agent.py", "print(2)\n"),
            "untracked": lambda: write("stray.txt", "1\n"),
            "hidden": lambda: (self.git("update-index", "--assume-unchanged", "agent.py"), write("agent.py", "print(3)\n")),
        }
        for kind, change in table.items():
            change()
            self.assertIn(f"({kind})", self.refused("dirty_tree")["message"])
            self.git("update-index", "--no-assume-unchanged", "agent.py")
            self.git("reset", "-q")
            self.git("checkout", "-q", "--", ".")
            for name in ("new.py", "stray.txt"):
                (self.repo / name).unlink(missing_ok=True)

    def test_a_submodule_that_is_not_at_its_commit(self):
        other = self.folder / "other"
        other.mkdir()
        self.git("init", "-q", cwd=other)
        write(other / "lib.py", "1\n")
        self.commit("lib", cwd=other)
        self.git("submodule", "add", "-q", other, "lib")
        self.commit("with lib")
        write("lib/lib.py", "2\n")
        self.assertIn("lib", self.refused("dirty_tree")["message"])

    def test_a_rebase_that_is_going_on(self):
        self.git("checkout", "-qb", "side")
        write("agent.py", "print('side')\n")
        self.commit()
        self.git("checkout", "-q", "main")
        write("agent.py", "print('main')\n")
        self.commit()
        self.git("rebase", "side", check=False)
        self.refused("rebase_in_progress")

    def test_pause_and_stop_come_before_a_dirty_tree_and_the_lock_before_them(self):
        write("stray.txt", "1\n")
        write("kaizen/.kaizen/STOP", "")
        self.refused("stopped")
        write("kaizen/.kaizen/PAUSE", "")
        self.assertIn("PAUSE", self.refused("paused")["next"])
        with kaizen.FileLock(str(self.repo / "kaizen/.kaizen/lock"), "this tree"):
            self.refused("lock_held")

    def test_a_folder_without_repository_or_commit(self):
        outside = self.folder / "outside"
        support.shutil.copytree(self.repo, outside, ignore=support.shutil.ignore_patterns(".git"))
        with support.surroundings(outside, {}, {}):
            self.refused("not_a_repository")
            self.git("init", "-q", cwd=outside)
            self.refused("no_commit")


class Trees(Lab):
    """Trees that are unusual and all right."""

    def test_a_detached_head_a_shallow_clone_and_a_hook_are_no_obstacle(self):
        self.git("checkout", "-q", "--detach")
        self.assertEqual(self.run_demo()["commit"]["is_detached"], True)
        self.git("clone", "-q", "--depth", "1", f"file://{self.repo}", self.folder / "shallow")
        with support.surroundings(self.folder / "shallow", {"GIT_DIR": str(self.repo / ".git"), "GIT_INDEX_FILE": "/nowhere"}, {}):
            self.assertEqual(self.run_demo()["state"], "completed")
        self.assertTrue((self.folder / "shallow/kaizen/.kaizen/runs/r0001/run.json").exists())

    def test_the_store_of_a_worktree_is_that_of_the_main_tree(self):
        self.git("worktree", "add", "-q", "--detach", self.folder / "elsewhere")
        found = kaizen.find_workspace(str(self.folder / "elsewhere/kaizen/systems"))
        self.assertEqual((found.root, found.store_folder), (str(self.folder / "elsewhere"), str(self.repo / "kaizen/.kaizen")))

    def test_the_store_of_a_submodule_is_its_own_also_from_its_worktrees(self):
        outer = self.folder / "outer"
        outer.mkdir()
        self.git("init", "-q", cwd=outer)
        self.git("submodule", "add", "-q", self.repo, "inner", cwd=outer)
        self.git("worktree", "add", "-q", "--detach", self.folder / "elsewhere", cwd=outer / "inner")
        for tree in (outer / "inner", self.folder / "elsewhere"):
            self.assertEqual(kaizen.find_workspace(str(tree)).store_folder, str(outer / "inner/kaizen/.kaizen"))

    def test_all_trees_of_a_bare_repository_have_one_store(self):
        self.git("clone", "-q", "--bare", self.repo, self.folder / "bare.git")
        stores = set()
        for name in ("one", "two"):
            self.git("worktree", "add", "-q", "--detach", self.folder / name, cwd=self.folder / "bare.git")
            stores.add(kaizen.find_workspace(str(self.folder / name)).store_folder)
        self.assertEqual(len(stores), 1)


class Systems(Lab):
    """system.md, and what `create system` makes."""

    def description(self, *fields):
        write(self.repo / "kaizen/systems/demo/system.md", "\n".join(["---", *fields, "---", "# text", ""]))

    def load(self):
        return kaizen.load_system(kaizen.find_workspace(), "demo")

    def test_each_mistake_is_named_and_all_at_once(self):
        data = "dataset: kaizen/systems/demo/items.jsonl"
        table = (
            ([data, "agregation: mean"], "did you mean 'aggregation'?"),
            ([data, "aggregation: average"], "/aggregation"),
            ([data, "direction: up"], "/direction"),
            ([data, "minimum: low"], "/minimum"),
            ([data, "minimum: 1", "maximum: 0"], "/minimum"),
            ([data, "worst: 2"], "/worst"),
            ([data, "minimum: none"], "/worst"),
            ([data, "aggregation: percentile"], "/percentile"),
            ([data, "percentile: 95"], "/percentile"),
            ([data, "aggregation: percentile", "percentile: 101"], "/percentile"),
            ([data, "mutable:", "  - /etc/passwd"], "/mutable/0"),
            ([data, "locked:", "  - ../x"], "/locked/0"),
            ([data, "id: other"], "/id"),
            ([data, "improvement: improvements/x"], "/runner"),
            ([data, "runner: ./agent"], "/runner"),
            (["dataset: ../outside.jsonl"], "/dataset"),
            (["dataset: missing.jsonl"], "does not exist"),
            (["metric: a"], "dataset"),
            ([data, "metric: a: b"], "system.md:3"),
        )
        for fields, words in table:
            self.description(*fields)
            with self.assertRaises(kaizen.BreachesError, msg=fields) as caught:
                self.load()
            texts = [breach.text() for breach in caught.exception.breaches]
            self.assertTrue(any(words in text for text in texts), (fields, texts))
        self.description(data, "direction: up", "aggregation: average")
        with self.assertRaises(kaizen.BreachesError) as caught:
            self.load()
        self.assertEqual(len(caught.exception.breaches), 2)

    def test_a_description_without_front_matter_is_refused(self):
        for text in ("", "# demo\n", "---\nmetric: a\n", "----\nmetric: a\n---\n"):
            write(self.repo / "kaizen/systems/demo/system.md", text)
            with self.assertRaises(kaizen.BreachesError, msg=text):
                self.load()

    def test_what_decides_the_score_is_locked_but_for_notes_and_what_may_change(self):
        folder = self.repo / "kaizen/systems/demo"
        for name in ("rubric.md", "lessons.md", "campaigns/c.json", "prompt.txt", "__pycache__/x.pyc", "lib/help.py"):
            write(folder / name, "x\n")
        write(self.repo / "rubrics/tone.md", "x\n")
        self.write_system("mutable:\n  - kaizen/systems/demo/prompt.txt\n  - rubrics/**\nlocked:\n  - rubrics/**\n")
        workspace = kaizen.find_workspace()
        found = kaizen.locked_files(workspace, self.load())
        own = [f"kaizen/systems/demo/{name}" for name in ("eval.py", "items.jsonl", "lib/help.py", "rubric.md")]
        self.assertEqual(found, [*own, "rubrics/tone.md"])

    def test_the_files_that_the_command_names_are_locked_wherever_they_lie_and_whatever_is_mutable(self):
        system = kaizen.load_system(kaizen.find_workspace(), "demo")._replace(
            folder=str(self.repo / "kaizen/systems/demo"), command=("python", "-I", "./agent.py", "/bin/sh"), mutable=("agent.py",)
        )
        found = kaizen.locked_files(kaizen.find_workspace(), system)
        self.assertEqual([path for path in found if "/" not in path], ["agent.py"])

    def test_what_decides_the_score_is_no_symbolic_link(self):
        outside = write(self.folder / "outside.py", "")
        for link, target in (("helper.py", outside), ("helpers", self.folder), ("gone", "nowhere")):
            (self.repo / "kaizen/systems/demo" / link).symlink_to(target)
            self.commit()
            done = support.run_cli("run", "--system", "demo", "--variant", "v", "--json")
            self.assertEqual((done.status, json.loads(done.stdout)["reason"]), (2, "locked_link"))
            self.assertIn(link, done.stderr)
            (self.repo / "kaizen/systems/demo" / link).unlink()
        self.assertEqual(self.store.ids(), [])

    def test_a_best_run_that_cannot_be_read_stops_no_run(self):
        self.run_demo()
        write(self.run_folder() / "items.jsonl", "nothing\n")
        self.eval(GOOD, "best_run: r0001\n")
        self.assertEqual(self.run_demo()["id"], "r0002")

    def test_a_system_that_was_just_made_runs(self):
        done = support.run_cli("create", "system", "fresh", "--json")
        self.assertEqual(done.status, 0, done.stderr)
        self.commit()
        done = support.run_cli("run", "--system", "fresh", "--variant", "first", "--json")
        document = json.loads(done.stdout)["run"]
        self.assertEqual((document["state"], document["separation"], document["counts"]["ok"]), ("completed", "own_process", 3))
        self.assertEqual(document["result"]["value"], 0.0)
        path = self.repo / "kaizen/systems/fresh/agent.py"
        write(path, path.read_text().replace(".title()", ".upper()"))
        self.commit()
        done = support.run_cli("run", "--system", "fresh", "--variant", "second", "--json")
        self.assertEqual(json.loads(done.stdout)["run"]["result"]["value"], 1.0)

    def test_the_template_tells_the_ways_in_which_a_system_fails_apart(self):
        support.run_cli("create", "system", "fresh")
        write(self.repo / "kaizen/config.json", '{"version": 1, "item_timeout_seconds": 0.5}')
        write(
            self.repo / "kaizen/systems/fresh/agent.py",
            "import json, sys, time\nasked = json.load(sys.stdin)['input']\n"
            "if asked == 'hello':\n    sys.exit(1)\nif asked == 'is this on?':\n    print('no JSON')\nelse:\n    time.sleep(9)\n",
        )
        self.commit()
        done = support.run_cli("run", "--system", "fresh", "--variant", "first", "--json")
        document = json.loads(done.stdout)["run"]
        self.assertEqual((document["counts"]["fail_error"], document["counts"]["timeout"]), (2, 1), document)

    def test_an_id_that_is_a_path_or_taken_makes_nothing(self):
        for name in ("../x", "", "a/b", "-x", "é", "x" * 65):
            self.assertEqual(support.run_cli("create", "system", name).status, 2, name)
        self.refused("existing_folder", "create", "system", "demo")

    def test_silence_may_last_five_times_as_long_as_the_slowest_item_of_the_best_run(self):
        self.eval("for item in items:\n    ok(item, latency_ms=30000)\nsay('end')\n")
        self.run_demo()
        workspace = kaizen.find_workspace()
        system = self.load()
        self.assertEqual(kaizen.run_limits(workspace, system, self.store).silence_seconds, 60)
        self.assertEqual(kaizen.run_limits(workspace, system._replace(best_run="r0001"), self.store).silence_seconds, 150)


if __name__ == "__main__":
    unittest.main()
