"""Work trees for variants, and the clone for where the repository can't be committed to."""

import json
import os
import shutil
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from repositories import Repository, tree_of
from support import kaizen, run_cli, run_process, write


class Workspaces(Repository):
    """A repository with a workspace."""

    def setUp(self):
        super().setUp()
        kaizen.init_workspace(str(self.repo))
        self.base = self.commit("workspace")
        self.place = self.folder / "repo.kaizen-worktrees"

    def checkout(self, folder=None):
        return kaizen.read_checkout(str(folder or self.repo))

    def cli(self, *words, status=0, cwd=None):
        done = run_cli(*words, "--json", cwd=cwd or self.repo)
        self.assertEqual(done.status, status, done)
        return json.loads(done.stdout)

    def refs(self):
        return set(self.git("for-each-ref", "--format=%(refname)").split())


class Trees(Workspaces):
    """`worktree add`, `list`, `gc`."""

    def add(self, **options):
        return kaizen.add_worktree(self.checkout(), "c", **options)

    def refusal(self, **options):
        with self.assertRaises(kaizen.KaizenError) as caught:
            self.add(**options)
        return caught.exception.reason

    def test_a_tree_stands_outside_the_repository_on_its_own_branch(self):
        found = self.cli("worktree", "add", "--campaign", "c")
        self.assertEqual((found["path"], found["branch"], found["commit"]), (str(self.place / "c/v001"), "kaizen/c/v001", self.base))
        self.assertEqual(tree_of(self.place / "c/v001")["agent.py"], b"print(1)\n")
        self.assertEqual(kaizen.dirty_paths(self.checkout()), [])
        self.assertEqual(kaizen.find_workspace(str(self.place / "c/v001")).store_folder, str(self.repo / "kaizen/.kaizen"))

    def test_numbers_are_never_given_twice_also_when_many_ask_at_once(self):
        with ThreadPoolExecutor(4) as pool:
            trees = list(pool.map(lambda _: self.add(slots=9), range(4)))
        self.assertEqual(sorted(tree.variant for tree in trees), ["v001", "v002", "v003", "v004"])
        for tree in trees:
            self.assertEqual(kaizen.collect_worktree(self.checkout(), tree), "")
        self.assertEqual(self.add().variant, "v005", "branches and kept commits hold their number")

    def test_slots_are_counted_by_campaign(self):
        self.add(slots=2)
        self.add(slots=2)
        self.assertEqual(self.refusal(slots=2), "no_slot")
        self.assertEqual(kaizen.add_worktree(self.checkout(), "other", slots=2).variant, "v001")
        self.assertEqual(self.cli("worktree", "add", "--campaign", "c", "--slots", "2", status=5)["reason"], "no_slot")

    def test_slots_are_three_or_one_when_a_metric_is_time_or_cost(self):
        for metrics, slots in (
            ([], 3), (["accuracy"], 3), (["estimate", "costume", "timeliness"], 3),
            (["latency_ms"], 1), (["accuracy", "cost_usd"], 1), (["time"], 1), (["wall.seconds"], 1), (["Duration"], 1),
        ):  # fmt: skip
            self.assertEqual(kaizen.default_slots(metrics), slots, metrics)

    def test_names_that_are_taken_or_no_names_are_refused(self):
        self.add(variant="shorter")
        self.assertEqual(self.refusal(variant="shorter"), "variant_exists")
        self.git("branch", "kaizen/c/longer")
        self.assertEqual(self.refusal(variant="longer"), "variant_exists")
        self.assertFalse((self.place / "c/longer").exists())
        for name in ("-x", "a/b", "..", "a b", "ä", "x" * 65, "a\n"):
            self.assertEqual(self.refusal(variant=name), "usage", name)

    def test_a_branch_in_the_way_is_named(self):
        self.git("branch", "kaizen")
        self.assertEqual(self.refusal(), "branch_in_the_way")

    def test_places_that_do_not_serve_are_refused(self):
        self.assertEqual(self.refusal(place=str(self.repo / "trees")), "place_in_repository")
        self.assertEqual(self.refusal(place=str(self.repo)), "place_in_repository")
        self.assertEqual(self.refusal(place=str(self.folder / "a\nb")), "place_unusable")
        self.assertEqual(self.refusal(base="nobody"), "unknown_commit")
        named = self.add(place=str(self.folder / "trees"))
        self.assertEqual(named.path, str(self.folder / "trees/c/v001"))

    def test_it_begins_with_the_commit_that_is_named(self):
        write(self.repo / "agent.py", "print(2)\n")
        self.commit()
        self.assertEqual(self.add(base=self.base).head, self.base)

    def test_a_tree_added_from_a_tree_stands_beside_it(self):
        first = self.add()
        second = kaizen.add_worktree(self.checkout(first.path), "c")
        self.assertEqual(second.path, str(self.place / "c/v002"))

    def test_the_list_says_what_is_not_committed_and_leaves_other_trees_out(self):
        tree = self.add()
        self.add()
        self.git("worktree", "add", "-q", "-b", "mine", self.folder / "mine")
        write(tree.path + "/new", "")
        rows = self.cli("worktree", "list")["worktrees"]
        self.assertEqual([(row["variant"], row["dirty"]) for row in rows], [("v001", 1), ("v002", 0)])
        self.git("checkout", "-q", "-b", "kaizen/c/v009")
        self.assertEqual(len(self.cli("worktree", "list")["worktrees"]), 2, "the main tree is nobody's to collect")

    def test_gc_removes_clean_trees_and_keeps_branch_and_commit(self):
        tree = self.add()
        write(tree.path + "/agent.py", "print(2)\n")
        head = self.commit(cwd=tree.path)
        found = self.cli("worktree", "gc", "c/v001")
        self.assertEqual(found["removed"], ["c/v001"])
        self.assertFalse(os.path.lexists(tree.path))
        self.assertFalse(self.place.joinpath("c").exists())
        self.assertEqual(self.git("rev-parse", "refs/kaizen/c/v001", "kaizen/c/v001").split(), [head, head])

    def test_gc_leaves_what_holds_work(self):
        names = ("edited", "new", "hidden", "locked", "merging", "clean", "gone")
        trees = {name: self.add(variant=name, slots=9) for name in names}
        write(trees["edited"].path + "/agent.py", "print(2)\n")
        write(trees["new"].path + "/new", "")
        self.git("update-index", "--assume-unchanged", "agent.py", cwd=trees["hidden"].path)
        write(trees["hidden"].path + "/agent.py", "print(2)\n")
        self.git("worktree", "lock", "--reason", "in use", trees["locked"].path)
        write(self.folder / "repo/.git/worktrees/merging/MERGE_HEAD", self.base + "\n")
        shutil.rmtree(trees["gone"].path)
        before = {name: tree_of(trees[name].path) for name in names[:5]}
        found = self.cli("worktree", "gc", "--all")
        self.assertEqual(found["removed"], ["c/clean", "c/gone"])
        self.assertEqual({name: tree_of(trees[name].path) for name in names[:5]}, before)
        self.assertIn("in use", found["kept"]["c/locked"])
        self.assertIn("a merge is in progress", found["kept"]["c/merging"])
        self.assertEqual(self.cli("worktree", "gc", "c/new", status=1)["reason"], "kept")

    def test_gc_does_not_take_the_ground_from_under_its_caller(self):
        tree = self.add()
        self.assertEqual(self.cli("worktree", "gc", "c/v001", status=1, cwd=tree.path)["kept"], {"c/v001": "it is the folder you are in"})

    def test_gc_wants_to_be_told_what(self):
        self.add()
        self.assertEqual(self.cli("worktree", "gc", status=2)["reason"], "usage")
        self.assertEqual(self.cli("worktree", "gc", "c/v002", status=2)["next"], "did you mean 'c/v001'?")

    def test_what_a_ref_kept_before_stays_kept(self):
        checkout = self.checkout()
        side = self.git("commit-tree", "-m", "side", "HEAD^{tree}")
        kaizen.keep_commit(checkout, "c", "v", side)
        kaizen.keep_commit(checkout, "c", "v", self.base)
        kaizen.keep_commit(checkout, "c", "v", self.base)
        self.assertEqual({ref for ref in self.refs() if "kaizen" in ref}, {"refs/kaizen/c/v", f"refs/kaizen/c/v.{side[:12]}"})

    def test_no_hook_filter_or_monitor_runs_and_what_that_leaves_out_is_said(self):
        trap = self.trap()
        write(self.repo / ".gitattributes", "*.bin filter=lfs\n")
        write(self.repo / "a.bin", "pointer\n")
        self.commit()
        for key in ("core.fsmonitor", "filter.lfs.smudge", "filter.lfs.process", "filter.lfs.clean"):
            self.git("config", key, trap)
        for name in ("post-checkout", "reference-transaction"):
            shutil.copy(trap, self.repo / ".git/hooks" / name)
        found = self.cli("worktree", "add", "--campaign", "c")
        self.assertEqual(found["notes"], ["1 file as committed, since content filters (git-lfs) are not run"])
        self.cli("worktree", "list")
        self.cli("worktree", "gc", "c/v001")
        self.assertFalse(self.is_sprung())

    def test_submodules_that_a_tree_lacks_are_said(self):
        library = self.folder / "library"
        self.git("init", "-q", library, cwd=self.folder)
        write(library / "a", "a")
        self.commit(cwd=library)
        self.git("submodule", "--quiet", "add", library, "sub")
        self.commit()
        self.assertEqual(self.cli("worktree", "add")["notes"], ["1 submodule not filled in: git submodule update --init"])

    def test_a_repository_that_cannot_be_written_points_to_lab_open(self):
        with mock.patch.object(kaizen, "git_write_obstacle", return_value=kaizen.GitError("no", "kaizen lab open", "git_read_only")):
            self.assertEqual(self.refusal(), "git_read_only")
        self.assertFalse(self.place.exists())


class Clones(Workspaces):
    """`lab open`, `lab land`."""

    def opened(self):
        self.clone = self.repo / self.cli("lab", "open")["path"]
        write(self.clone / "agent.py", "print(2)\n")
        return self.commit("better", cwd=self.clone)

    def test_the_clone_is_below_the_store_and_invisible_to_git(self):
        head = self.opened()
        self.assertEqual(self.clone, self.repo / "kaizen/.kaizen/work/lab")
        self.assertEqual(kaizen.dirty_paths(self.checkout()), [])
        self.assertNotEqual(head, self.base)
        self.assertEqual(self.git("rev-parse", "HEAD"), self.base)
        self.assertEqual(kaizen.find_workspace(str(self.clone)).store_folder, str(self.repo / "kaizen/.kaizen"))

    def test_opening_again_changes_nothing(self):
        head = self.opened()
        again = self.cli("lab", "open")
        self.assertEqual((again["reason"], again["opened"]), ("already_open", self.base))
        self.assertEqual(self.git("rev-parse", "HEAD", cwd=self.clone), head)
        self.assertEqual(self.cli("lab", "open", cwd=self.clone, status=2)["reason"], "usage")

    def test_a_maker_that_was_killed_leaves_nothing_that_stops_the_next(self):
        write(self.repo / "kaizen/.kaizen/work/lab.unfinished/.git/HEAD", "half")
        self.opened()
        self.assertEqual(sorted(os.listdir(self.repo / "kaizen/.kaizen/work")), ["lab"])

    def test_settings_that_shape_files_and_commits_come_along_and_programs_do_not(self):
        trap = self.trap()
        for key, value in (("user.name", "Ä B"), ("core.autocrlf", "input"), ("core.fsmonitor", trap), ("core.hooksPath", self.folder)):
            self.git("config", key, value)
        write(self.folder / "post-checkout", trap.read_text()).chmod(0o755)
        self.opened()
        said = [self.git("config", "--local", "--get", key, cwd=self.clone, check=False) for key in ("user.name", "core.autocrlf", "core.fsmonitor")]
        self.assertEqual(said, ["Ä B", "input", ""])
        self.assertEqual(os.listdir(self.clone / ".git/hooks") if (self.clone / ".git/hooks").exists() else [], [])

    def test_it_opens_from_detached_shallow_and_linked_checkouts_and_other_commits(self):
        write(self.repo / "agent.py", "print(7)\n")
        newer = self.commit()
        self.git("clone", "-q", "--depth", "1", f"file://{self.repo}", self.folder / "shallow")
        self.git("worktree", "add", "-q", "--detach", self.folder / "linked", self.base)
        for folder, base, expected in ((self.repo, "HEAD~1", self.base), (self.folder / "shallow", "HEAD", newer), (self.folder / "linked", "HEAD", self.base)):
            checkout = self.checkout(folder)
            clone = kaizen.open_clone(checkout, str(self.folder / f"store-{folder.name}"), "c", base)
            self.assertEqual(self.git("rev-parse", "HEAD", cwd=clone.path), expected)
            self.assertEqual(kaizen.dirty_paths(self.checkout(clone.path)), [])

    def test_lab_commit_commits_all_that_differs_without_hooks(self):
        self.opened()
        write(self.clone / "agent.py", "print(3)\n")
        write(self.clone / "new.txt", "")
        write(self.clone / ".git/hooks/pre-commit", f"#!/bin/sh\ntouch '{self.folder}/sprung'\n").chmod(0o755)
        done = self.cli("lab", "commit", "--title", "  two\nlines ", cwd=self.clone)
        self.assertEqual((done["reason"], done["paths"], done["branch"]), ("committed", ["agent.py", "new.txt"], "kaizen-lab"))
        self.assertEqual(self.git("log", "-1", "--format=%H %s", cwd=self.clone), f"{done['commit']} two lines")
        self.assertEqual((kaizen.dirty_paths(self.checkout(self.clone)), self.is_sprung()), ([], False))
        self.assertEqual(self.cli("lab", "commit", "--title", "again", cwd=self.clone, status=5)["reason"], "nothing_to_commit")

    def test_lab_commit_works_in_a_work_tree_that_kaizen_made_and_nowhere_else(self):
        tree = self.repo / self.cli("worktree", "add")["path"]
        write(tree / "agent.py", "print(2)\n")
        self.assertEqual(self.cli("lab", "commit", "--title", "idea", cwd=tree)["paths"], ["agent.py"])
        write(self.repo / "agent.py", "print(2)\n")
        refused = self.cli("lab", "commit", "--title", "idea", status=5)
        self.assertEqual((refused["reason"], self.git("rev-parse", "HEAD")), ("not_a_lab_tree", self.base))
        self.assertIn("kaizen lab open", refused["next"])
        self.git("switch", "-qc", "kaizen/c1/v1")
        self.assertEqual(self.cli("lab", "commit", "--title", "idea", status=5)["reason"], "not_a_lab_tree", "a branch of that name makes no tree Kaizen's")
        self.assertEqual(self.cli("lab", "commit", "--title", " ", status=2)["reason"], "usage")

    def test_landing_as_a_branch_brings_the_commit_and_touches_no_tree(self):
        head = self.opened()
        before, refs = tree_of(self.repo), self.refs()
        found = self.cli("lab", "land")
        self.assertEqual((found["commit"], found["branch"]), (head, f"kaizen/lab/{head[:12]}"))
        self.assertEqual(self.git("rev-parse", found["branch"]), head)
        self.assertEqual(tree_of(self.repo), before)
        self.assertEqual(self.refs() - refs, {f"refs/heads/{found['branch']}"})
        self.assertEqual(self.cli("lab", "land", cwd=self.clone)["branch"], found["branch"], "landing twice, also from inside, is no harm")

    def test_a_branch_that_is_elsewhere_is_left_there(self):
        self.opened()
        self.assertEqual(self.cli("lab", "land", "--branch", "main", status=5)["reason"], "branch_exists")
        for name in ("-x", "a..b", "a b", "x.lock", "@{"):
            self.assertEqual(self.cli("lab", "land", f"--branch={name}", status=5)["reason"], "bad_branch_name")
        self.assertEqual(self.git("rev-parse", "main"), self.base)

    def test_landing_as_a_patch_gives_what_git_apply_takes(self):
        self.opened()
        write(self.clone / "b\tin.dat", b"\0\xff" * 99)
        write(self.clone / "caf\udce9", "x\r\n")
        (self.clone / "link").symlink_to("agent.py")
        self.commit("more", cwd=self.clone)
        self.git("config", "diff.noprefix", "true", cwd=self.clone)
        self.git("config", "diff.external", self.trap(), cwd=self.clone)
        write(self.clone / "agent.py", "print(3)\n")
        found = self.cli("lab", "land", "--patch", self.folder / "x.patch")
        self.assertEqual((found["applies"], found["uncommitted"]), (True, 1))
        self.assertFalse(self.is_sprung())
        self.git("apply", self.folder / "x.patch")
        committed = {**tree_of(self.clone), "agent.py": b"print(2)\n"}
        landed = {path: content for path, content in tree_of(self.repo).items() if not path.startswith("kaizen/.kaizen")}
        self.assertEqual(landed, committed)
        self.assertEqual(self.cli("lab", "land", "--patch", self.folder / "x.patch", status=2)["reason"], "file_exists")
        self.assertFalse(self.cli("lab", "land", "--patch", self.folder / "y.patch")["applies"])

    def test_where_no_branch_can_be_made_landing_is_a_patch(self):
        self.opened()
        with mock.patch.object(kaizen, "git_write_obstacle", return_value=kaizen.GitError("no", "", "git_read_only")):
            found = self.cli("lab", "land")
            self.assertEqual((found["branch"], found["patch"], found["applies"]), (None, "kaizen/.kaizen/work/lab.patch", True))
            self.assertEqual(self.cli("lab", "land", "--branch", "x", status=5)["reason"], "git_read_only")

    def test_what_cannot_be_landed_is_said(self):
        self.assertEqual(self.cli("lab", "land", status=5)["reason"], "no_clone")
        self.cli("lab", "open")
        self.assertEqual(self.cli("lab", "land", status=5)["reason"], "nothing_to_land")
        self.opened()
        self.assertEqual(self.cli("lab", "land", "nobody", status=5)["reason"], "unknown_commit")
        self.git("checkout", "-q", "--orphan", "other", cwd=self.clone)
        self.commit("unrelated", cwd=self.clone)
        self.assertEqual(self.cli("lab", "land", status=5)["reason"], "unrelated_commit")

    def test_work_trees_of_the_clone_stand_in_the_store_and_land_too(self):
        self.opened()
        tree = self.clone / self.cli("worktree", "add", cwd=self.clone)["path"]
        self.assertEqual(tree.resolve(), self.repo / "kaizen/.kaizen/work/lab.kaizen-worktrees/lab/v001")
        write(tree / "agent.py", "print(4)\n")
        head = self.commit(cwd=tree)
        self.assertEqual(self.cli("lab", "land", "--branch", "landed", cwd=tree)["commit"], head)
        self.assertEqual(self.git("rev-parse", "landed"), head)

    def test_configuration_of_the_clone_starts_nothing_in_the_repository_or_here(self):
        self.opened()
        trap = str(self.trap())
        for folder in (self.repo, self.clone):
            for key in ("core.fsmonitor", "core.alternateRefsCommand", "uploadpack.packObjectsHook", "core.sshCommand", "url.ext::sh.insteadOf"):
                value = "/" if key.startswith("url") else trap
                self.git("config", key, value, cwd=folder)
            for name in ("reference-transaction", "post-checkout", "pre-auto-gc", "post-merge"):
                write(folder / ".git/hooks" / name, f"#!/bin/sh\n{trap}\n").chmod(0o755)
        self.git("config", "--unset", "url.ext::sh.insteadOf")
        self.git("config", "--unset", "url.ext::sh.insteadOf", cwd=self.clone)
        self.cli("lab", "land")
        self.assertFalse(self.is_sprung())


READ_ONLY_GIT = """
for word; do case $word in -*|*=*) ;; *) break;; esac; done
top=$($real rev-parse --show-toplevel 2>/dev/null)
case "$top" in */kaizen/.kaizen/work/*) exec $real "$@";; esac
case " $* " in
  *" worktree add "*|*" fetch "*|*" update-ref "*|*" commit "*|*" add "*|*" switch "*|*" branch "*)
    echo "fatal: Unable to create '.git/x.lock': Read-only file system" >&2; exit 128;;
esac
exec $real "$@"
"""


class ReadOnly(Workspaces):
    """The whole loop with a git folder that nobody may write: the mode bits are taken away, and git refuses for root.

    tests/peers/test_lab_sandbox.py does the same in a sandbox without network.
    """

    def test_open_edit_commit_land_works_without_writing_to_the_git_folder(self):
        self.fake_git(READ_ONLY_GIT)
        for path in sorted((self.repo / ".git").rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        os.chmod(self.repo / ".git", 0o555)
        before = {path: path.stat()[:9] for path in (self.repo / ".git").rglob("*") if not path.is_dir()}
        obstacle = kaizen.GitError("no", "kaizen lab open", "git_read_only")
        with mock.patch.object(kaizen, "git_write_obstacle", side_effect=lambda checkout: obstacle if checkout.root == str(self.repo) else None):
            self.assertEqual(self.cli("worktree", "add", status=5)["reason"], "git_read_only")
            clone = self.repo / self.cli("lab", "open")["path"]
            write(clone / "agent.py", "print(2)\n")
            self.git("commit", "-qam", "better", cwd=clone)
            self.assertEqual(self.cli("worktree", "add", cwd=clone)["variant"], "v001")
            found = self.cli("lab", "land", cwd=clone)
        self.assertTrue(found["applies"])
        links = {path: path.stat().st_nlink for path in before}  # a local clone links objects, which changes their count
        after = {path: path.stat()[:9] for path in before}
        for path, facts in before.items():
            self.assertEqual((facts[:3], facts[4:7]), (after[path][:3], after[path][4:7]), (path, links[path]))


class Commands(Workspaces):
    """What a person sees."""

    def test_the_whole_way_in_words(self):
        def say(*words, cwd=self.repo, status=0):
            done = run_process(*words, cwd=cwd, env=self.surroundings)
            self.assertEqual(done.status, status, done)
            return done.stdout + done.stderr

        self.assertIn("made kaizen/.kaizen/work/lab, on branch kaizen-lab", say("lab", "open"))
        self.assertIn(f"lab/v001: work tree {self.place}/lab/v001", say("worktree", "add"))
        self.assertIn("lab/v001  ", say("worktree", "list"))
        self.assertIn("removed lab/v001", say("worktree", "gc", "lab/v001"))
        self.assertIn("nothing_to_land", say("lab", "land", "--json", status=5))
        self.assertIn("kaizen lab open", say("lab", "--help"))


if __name__ == "__main__":
    unittest.main()
