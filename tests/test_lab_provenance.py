"""Where a checkout stands and what differs from its commit, in every situation git can be in."""

import os
import unittest
from unittest import mock

from repositories import Repository, tree_of
from support import kaizen, write


class Checkouts(Repository):
    """`read_checkout` and `checkout_obstacle`."""

    def read(self, folder=None):
        return kaizen.read_checkout(str(folder or self.repo))

    def refusal(self, folder=None):
        with self.assertRaises(kaizen.GitError) as caught:
            self.read(folder)
        return caught.exception.reason

    def obstacle(self):
        checkout = self.read()
        error = kaizen.checkout_obstacle(checkout)
        self.assertEqual(checkout.reason, error and error.reason)
        self.assertTrue(error is None or error.hint)
        return error and error.reason

    def test_a_plain_checkout_names_its_commit_and_branch(self):
        (self.repo / "deep/er").mkdir(parents=True)
        expected = (str(self.repo), str(self.repo / ".git"), str(self.repo / ".git"), self.git("rev-parse", "HEAD"), "main")
        for folder in ("", "deep/er"):
            self.assertEqual(self.read(self.repo / folder), (*expected, False, False, None, None))
        self.assertIsNone(self.obstacle())

    def test_a_detached_head_has_no_branch_and_is_no_obstacle(self):
        self.git("checkout", "-q", "--detach")
        self.assertEqual(self.read()[4:6], (None, True))
        self.assertIsNone(self.obstacle())

    def test_a_repository_without_commits_is_refused(self):
        new = self.folder / "new"
        self.git("init", "-q", "-b", "main", new, cwd=self.folder)
        checkout = self.read(new)
        self.assertEqual((checkout.head, checkout.branch, checkout.reason), (None, "main", "no_commit"))
        self.assertEqual(kaizen.checkout_obstacle(checkout).reason, "no_commit")

    def test_a_bare_repository_and_the_git_folder_have_no_tree(self):
        self.git("clone", "-q", "--bare", self.repo, self.folder / "bare")
        self.assertEqual(self.refusal(self.folder / "bare"), "bare_repository")
        self.assertEqual(self.refusal(self.repo / ".git"), "no_work_tree")

    def test_a_repository_whose_tree_is_elsewhere_is_refused_outside_it(self):
        (self.folder / "elsewhere").mkdir()
        self.git("config", "core.worktree", self.folder / "elsewhere")
        self.assertEqual(self.refusal(), "no_work_tree")

    def test_a_shallow_clone_is_known_and_what_it_lacks_is_said(self):
        first = self.git("rev-parse", "HEAD")
        write(self.repo / "b", "b")
        self.commit()
        self.git("clone", "-q", "--depth", "1", f"file://{self.repo}", self.folder / "shallow")
        checkout = self.read(self.folder / "shallow")
        self.assertTrue(checkout.is_shallow)
        self.assertIsNone(checkout.reason)
        with self.assertRaises(kaizen.GitError) as caught:
            kaizen.changed_paths(checkout, first)
        self.assertEqual(caught.exception.reason, "unknown_commit")
        self.assertIn("git fetch --unshallow", caught.exception.hint)

    def test_a_linked_work_tree_shares_the_git_folder_of_its_repository(self):
        self.git("worktree", "add", "-q", "-b", "side", self.folder / "side")
        checkout = self.read(self.folder / "side")
        self.assertEqual((checkout.root, checkout.branch), (str(self.folder / "side"), "side"))
        self.assertEqual((checkout.git_dir, checkout.common_dir), (str(self.repo / ".git/worktrees/side"), str(self.repo / ".git")))

    def conflict(self):
        self.git("checkout", "-qb", "other")
        write(self.repo / "agent.py", "print('other')\n")
        self.commit("other")
        self.git("checkout", "-q", "main")
        write(self.repo / "agent.py", "print('main')\n")
        self.commit("main")

    def test_what_is_going_on_is_named(self):
        self.conflict()
        for words, reason in (("merge other", "merge"), ("rebase other", "rebase"), ("cherry-pick other", "cherry_pick"), ("revert HEAD~1", "revert")):
            self.git(*words.split(), check=False)
            self.assertEqual(self.obstacle(), f"{reason}_in_progress")
            self.git(words.split()[0], "--abort")
            self.assertIsNone(self.obstacle())

    def test_a_bisect_and_an_am_are_going_on_too(self):
        self.conflict()
        self.git("bisect", "start")
        self.assertEqual(self.obstacle(), "bisect_in_progress")
        self.git("bisect", "reset")
        write(self.folder / "patch", self.git("format-patch", "--stdout", "main~1..other") + "\n")
        self.git("am", self.folder / "patch", check=False)
        self.assertEqual(self.obstacle(), "rebase_in_progress")

    def test_a_merge_in_another_work_tree_is_no_obstacle_here(self):
        self.conflict()
        self.git("worktree", "add", "-q", "-b", "side", self.folder / "side", "main")
        self.git("merge", "other", cwd=self.folder / "side", check=False)
        self.assertIsNone(self.obstacle())
        self.assertEqual(self.read(self.folder / "side").in_progress, "merge")

    def test_a_hook_calls_it_for_the_repository_of_the_folder(self):
        other = self.folder / "other"
        self.git("init", "-q", other, cwd=self.folder)
        expected = self.read()
        hook = {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / ".git/index"), "GIT_WORK_TREE": str(other), "GIT_PREFIX": ""}
        with mock.patch.dict(os.environ, hook):
            checkout = self.read()
            self.assertEqual(checkout, expected)
            self.assertEqual(kaizen.dirty_paths(checkout), [])

    def test_a_real_hook_can_call_it(self):
        code = "import kaizen, sys; c = kaizen.read_checkout('.'); print(c.head, kaizen.dirty_paths(c))"
        write(self.repo / "hook.py", f"import sys; sys.path.insert(0, {str(kaizen.__file__.rpartition('/')[0])!r})\n{code}\n")
        head = self.commit()
        write(self.repo / ".git/hooks/pre-commit", '#!/bin/sh\npython hook.py > "$HOME/said"\n').chmod(0o755)
        write(self.repo / "agent.py", "print(2)\n")
        self.git("commit", "-qam", "two")
        said = (self.folder / "home/said").read_text()
        self.assertIn(head, said)
        self.assertIn("agent.py", said)

    def test_a_path_with_a_line_end_is_a_path(self):
        odd = self.folder / "a\nb"
        self.git("clone", "-q", self.repo, odd)
        self.assertEqual(self.read(odd).root, str(odd))
        self.assertEqual(self.read(odd).git_dir, str(odd / ".git"))


class Looks(Repository):
    """What the tests of `dirty_paths` share."""

    def dirt(self, folder=None):
        return [tuple(each) for each in kaizen.dirty_paths(kaizen.read_checkout(str(folder or self.repo)))]


class Dirt(Looks):
    """`dirty_paths`: what differs from HEAD."""

    def test_each_way_to_differ_has_its_kind(self):
        write(self.repo / "b", "b")
        write(self.repo / "c", "c")
        self.commit()
        self.assertEqual(self.dirt(), [])
        write(self.repo / "agent.py", "print(2)\n")
        write(self.repo / "b", "bb")
        self.git("add", "b")
        (self.repo / "c").unlink()
        write(self.repo / "new/file", "")
        expected = [("agent.py", "unstaged"), ("b", "staged"), ("c", "unstaged"), ("new/", "untracked")]
        self.assertEqual(self.dirt(), expected)
        error = kaizen.dirty_obstacle(kaizen.dirty_paths(kaizen.read_checkout(str(self.repo))))
        self.assertEqual(error.reason, "dirty_tree")
        self.assertIn("4 paths: agent.py (unstaged), b (staged)", error.message)
        self.assertIsNone(kaizen.dirty_obstacle([]))

    def test_a_rename_in_the_index_is_both_its_paths(self):
        self.git("mv", "agent.py", "Agent.py")
        self.assertEqual(self.dirt(), [("Agent.py", "staged"), ("agent.py", "staged")])

    def test_a_rename_that_only_changes_case_is_seen_also_before_it_is_staged(self):
        os.rename(self.repo / "agent.py", self.repo / "AGENT.PY")
        self.assertEqual(self.dirt(), [("AGENT.PY", "untracked"), ("agent.py", "unstaged")])

    def test_ignored_files_are_exempt(self):
        write(self.repo / ".gitignore", "*.log\n")
        self.commit()
        write(self.repo / "a.log", "x")
        self.assertEqual(self.dirt(), [])

    def test_settings_of_the_user_hide_nothing(self):
        for key, value in (("status.showUntrackedFiles", "no"), ("status.renames", "copies"), ("core.quotePath", "true"), ("diff.ignoreSubmodules", "all")):
            self.git("config", key, value)
        write(self.repo / "new", "")
        self.assertEqual(self.dirt(), [("new", "untracked")])

    def test_a_change_that_git_was_told_to_overlook_is_hidden_dirt(self):
        for name in ("b", "c", "-d\n", "unchanged"):
            write(self.repo / name, "x")
        self.commit()
        index = (self.repo / ".git/index").read_bytes()
        self.git("update-index", "--assume-unchanged", "agent.py", "unchanged")
        self.git("update-index", "--skip-worktree", "b", "--", "-d\n")
        self.git("update-index", "--assume-unchanged", "c")
        self.git("update-index", "--skip-worktree", "c")
        for name in ("agent.py", "b", "c", "-d\n"):
            write(self.repo / name, "other")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.dirt(), [(name, "hidden") for name in ("-d\n", "agent.py", "b", "c")])
        (self.repo / "b").unlink()
        self.assertIn(("b", "hidden"), self.dirt())
        self.assertNotEqual(index, (self.repo / ".git/index").read_bytes())
        self.assertEqual(self.git("ls-files", "-v", "unchanged")[0], "h", "the bits themselves stay")

    def test_a_hidden_edit_within_the_second_of_its_checkout_is_found_however_late_one_looks(self):
        self.git("config", "core.trustctime", "false")
        os.utime(self.repo / "agent.py", (10**9, 10**9))
        self.git("update-index", "--refresh")
        self.git("update-index", "--assume-unchanged", "agent.py")
        write(self.repo / "agent.py", "print(2)\n")
        for path in ("agent.py", ".git/index"):
            os.utime(self.repo / path, (10**9, 10**9))
        self.assertEqual(self.dirt(), [("agent.py", "hidden")])

    def test_a_split_index_is_looked_through_too(self):
        self.git("config", "core.splitIndex", "true")
        self.git("update-index", "--split-index", "--assume-unchanged", "agent.py")
        write(self.repo / "agent.py", "other")
        before = tree_of(self.repo / ".git")
        self.assertEqual(self.dirt(), [("agent.py", "hidden")])
        self.assertEqual(tree_of(self.repo / ".git"), before)

    def test_what_a_sparse_checkout_leaves_out_is_no_dirt_but_what_differs_is(self):
        write(self.repo / "in/a", "a")
        write(self.repo / "out/b", "b")
        self.commit()
        self.git("sparse-checkout", "set", "in")
        self.assertFalse((self.repo / "out").exists())
        self.assertEqual(self.dirt(), [])
        write(self.repo / "out/b", "other")
        self.assertEqual([path for path, _ in self.dirt()], ["out/b"])

    def test_file_names_of_any_bytes_come_back_as_they_are(self):
        names = [b"-rf", b"a\nb", b"caf\xe9", b'q"uote', b" blank ", b"tab\t", "ä\u202e".encode()]
        for name in names:
            write(os.path.join(str(self.repo), os.fsdecode(name)), "x")
        self.assertEqual(sorted(os.fsencode(path) for path, _ in self.dirt()), sorted(names))
        error = kaizen.dirty_obstacle(kaizen.dirty_paths(kaizen.read_checkout(str(self.repo))))
        self.assertTrue(error.message.isprintable(), error.message)
        base = self.git("rev-parse", "HEAD")
        self.commit()
        self.assertEqual(self.dirt(), [])
        checkout = kaizen.read_checkout(str(self.repo))
        self.assertEqual(sorted(map(os.fsencode, kaizen.changed_paths(checkout, base))), sorted(names))

    def test_links_are_what_they_say_not_what_they_lead_to(self):
        (self.repo / "link").symlink_to("agent.py")
        (self.repo / "out").symlink_to(self.folder)
        self.commit()
        self.assertEqual(self.dirt(), [])
        (self.repo / "link").unlink()
        write(self.repo / "link", "agent.py")
        self.assertEqual(self.dirt(), [("link", "unstaged")])

    def test_line_ends_that_git_translates_are_no_dirt(self):
        write(self.repo / "text.txt", "a\nb\n")
        self.commit()
        self.git("config", "core.autocrlf", "true")
        (self.repo / "text.txt").unlink()
        self.git("checkout", "-q", "text.txt")
        self.assertEqual((self.repo / "text.txt").read_bytes(), b"a\r\nb\r\n")
        self.assertEqual(self.dirt(), [])
        self.git("update-index", "--assume-unchanged", "text.txt")
        self.assertEqual(self.dirt(), [])
        write(self.repo / "text.txt", "a\r\nc\r\n")
        self.assertEqual(self.dirt(), [("text.txt", "hidden")])

    def test_a_file_with_a_content_filter_is_clean_until_it_is_written(self):
        self.git("config", "filter.a.clean", "sed s/big/small/")
        self.git("config", "filter.a.smudge", "sed s/small/big/")
        write(self.repo / ".gitattributes", "*.bin filter=a\n")
        write(self.repo / "x.bin", "big\n")
        self.commit()
        for name in ("x.bin", ".gitattributes", "agent.py"):
            os.utime(self.repo / name, (1, 1))
        self.git("add", "-A")
        self.git("update-index", "--refresh")
        self.assertEqual(self.dirt(), [])
        write(self.repo / "x.bin", "big\n")
        self.assertEqual(self.dirt(), [("x.bin", "unstaged")])

    def test_looking_writes_nothing(self):
        os.utime(self.repo / "agent.py", (1, 1))
        before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in (self.repo / ".git").rglob("*")}
        self.dirt()
        self.assertEqual({path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in (self.repo / ".git").rglob("*")}, before)


class Submodules(Looks):
    """The same with a submodule in it, and what the submodule can be."""

    def setUp(self):
        super().setUp()
        self.library = self.folder / "library"
        self.git("init", "-q", "-b", "main", self.library, cwd=self.folder)
        write(self.library / "lib.py", "1\n")
        self.commit("library", cwd=self.library)
        self.git("submodule", "--quiet", "add", self.library, "sub")
        self.commit("with a submodule")

    def test_a_file_changed_in_it_is_dirt_of_the_whole(self):
        write(self.repo / "sub/lib.py", "2\n")
        write(self.repo / "sub/new", "")
        self.assertEqual(self.dirt(), [("sub/lib.py", "submodule"), ("sub/new", "submodule")])

    def test_another_commit_in_it_is_dirt(self):
        write(self.repo / "sub/lib.py", "2\n")
        self.commit("inside", cwd=self.repo / "sub")
        self.assertEqual(self.dirt(), [("sub", "submodule")])

    def test_ignoring_it_in_the_configuration_hides_nothing(self):
        self.git("config", "submodule.sub.ignore", "all")
        write(self.repo / "sub/lib.py", "2\n")
        self.assertEqual(self.dirt(), [("sub/lib.py", "submodule")])

    def test_a_change_hidden_in_it_is_found(self):
        self.git("update-index", "--assume-unchanged", "lib.py", cwd=self.repo / "sub")
        write(self.repo / "sub/lib.py", "2\n")
        self.assertEqual(self.dirt(), [("sub/lib.py", "submodule")])

    def test_one_that_was_never_filled_is_clean_unless_somebody_put_files_there(self):
        self.git("clone", "-q", self.repo, self.folder / "clone")
        self.assertEqual(self.dirt(self.folder / "clone"), [])
        write(self.folder / "clone/sub/lib.py", "mine\n")
        self.assertEqual(self.dirt(self.folder / "clone"), [("sub/", "submodule")])

    def test_its_own_configuration_starts_nothing(self):
        trap = str(self.trap())
        sub = self.repo / "sub"
        for key in ("core.fsmonitor", "filter.s.clean"):
            self.git("config", key, trap, cwd=sub)
        write(self.repo / ".git/modules/sub/info/attributes", "*.py filter=s\n")
        write(sub / "lib.py", "2\n")
        self.assertEqual(self.dirt(), [("sub/lib.py", "submodule")])
        self.assertFalse(self.is_sprung())


class Identity(Repository):
    """`tree_hash`, `patch_id`, `changed_paths`."""

    def on(self, branch, **files):
        self.git("checkout", "-q", "-b", branch, self.base)
        for name, content in files.items():
            write(self.repo / name, content)
        self.commit(f"on {branch}")
        return kaizen.read_checkout(str(self.repo))

    def setUp(self):
        super().setUp()
        write(self.repo / "text", "".join(f"line {number}\n" for number in range(40)))
        self.base = self.commit("base")

    def test_equal_trees_have_one_hash_whatever_their_history(self):
        one, two = self.on("one", a="1\n"), self.on("two", a="1\n")
        three = self.on("three", a="2\n")
        self.assertNotEqual(one.head, three.head)
        self.assertEqual(kaizen.tree_hash(one), kaizen.tree_hash(two))
        self.assertNotEqual(kaizen.tree_hash(one), kaizen.tree_hash(three))
        self.assertEqual(kaizen.tree_hash(one), self.git("rev-parse", "one^{tree}"))

    def test_a_patch_keeps_its_id_on_another_base(self):
        lines = (self.repo / "text").read_text()
        one = self.on("one", text=lines.replace("line 30\n", "other\n"))
        first = kaizen.patch_id(one, self.base)
        self.git("checkout", "-q", "main")
        write(self.repo / "text", "in front\n" + lines)
        base = self.commit("moved")
        self.git("cherry-pick", "one")
        self.assertEqual(kaizen.patch_id(kaizen.read_checkout(str(self.repo)), base), first)
        self.assertRegex(first, "^[0-9a-f]{40}$")

    def test_different_binary_files_have_different_ids(self):
        one, two = self.on("one", a=b"\0\1" * 50), self.on("two", a=b"\0\2" * 50)
        self.assertNotEqual(kaizen.patch_id(one, self.base), kaizen.patch_id(two, self.base))

    def test_no_difference_has_no_id(self):
        self.assertEqual(kaizen.patch_id(kaizen.read_checkout(str(self.repo)), self.base), "")

    def test_changed_paths_name_both_ends_of_a_rename(self):
        self.git("checkout", "-q", "-b", "renamed")
        self.git("mv", "text", "texts")
        self.commit()
        self.assertEqual(kaizen.changed_paths(kaizen.read_checkout(str(self.repo)), "main"), ["text", "texts"])

    def test_a_name_that_looks_like_an_option_is_no_commit(self):
        checkout = kaizen.read_checkout(str(self.repo))
        for name in ("--all", "-h", "nobody", ""):
            with self.assertRaises(kaizen.GitError) as caught:
                kaizen.commit_named(checkout, name)
            self.assertEqual(caught.exception.reason, "unknown_commit")
        self.assertEqual(kaizen.commit_named(checkout, "main"), self.base)


class Writability(Repository):
    """`git_write_obstacle`: tried, since permissions do not tell of a sandbox."""

    def test_an_ordinary_repository_can_be_written_and_keeps_no_trace_of_the_try(self):
        before = sorted((self.repo / ".git").rglob("*"))
        self.assertIsNone(kaizen.git_write_obstacle(kaizen.read_checkout(str(self.repo))))
        self.assertEqual(sorted((self.repo / ".git").rglob("*")), before)

    def test_a_git_folder_that_refuses_writes_is_said_to_with_the_way_out(self):
        checkout = kaizen.read_checkout(str(self.repo))
        with mock.patch("os.mkdir", side_effect=OSError(30, "Read-only file system")):
            error = kaizen.git_write_obstacle(checkout)
        self.assertEqual(error.reason, "git_read_only")
        self.assertIn("kaizen lab open", error.hint)


if __name__ == "__main__":
    unittest.main()
