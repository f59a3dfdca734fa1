"""campaigns/arms.py: exports of commits that write nothing into the repository, and what judges in them."""

import os
import shutil

import measuring_fixture
import repositories
from repositories import tree_of
from support import kaizen, write


class Exporting(repositories.Repository):
    """A commit written into a folder of its own."""

    def setUp(self):
        super().setUp()
        write(self.repo / "agent.py", "print(1)\n")
        write(self.repo / "src/deep/prompt.txt", "be kind\n")
        os.symlink("agent.py", self.repo / "link")
        (self.repo / "agent.py").chmod(0o755)
        self.first = self.commit("first")
        write(self.repo / "agent.py", "print(2)\n")
        self.commit("second")
        self.checkout = kaizen.read_checkout(str(self.repo))

    def export(self, commit=None, folder="made", **options):
        place = self.folder / folder
        place.mkdir()
        return kaizen.Export(self.checkout, commit or self.first, str(place), **options)

    def test_the_files_of_the_commit_are_there_with_links_and_modes(self):
        made = self.export()
        self.assertEqual(tree_of(made.tree), {"agent.py": b"print(1)\n", "src/deep/prompt.txt": b"be kind\n", "link": "agent.py"})
        self.assertTrue(os.access(os.path.join(made.tree, "agent.py"), os.X_OK))
        self.assertIsNone(made.changed(is_last=True))

    def test_nothing_is_written_into_the_git_folder_which_may_be_read_only(self):
        before = {path: (status.st_mtime_ns, status.st_size) for path, status in self.git_files()}
        for folder, _, _ in os.walk(self.repo / ".git"):
            os.chmod(folder, 0o555)
        try:
            made = self.export()
            self.assertIsNone(made.changed(is_last=True))
        finally:
            for folder, _, _ in os.walk(self.repo / ".git"):
                os.chmod(folder, 0o755)
        self.assertEqual({path: (status.st_mtime_ns, status.st_size) for path, status in self.git_files()}, before)
        self.assertEqual(self.git("status", "--porcelain"), "")

    def git_files(self):
        places = [os.path.join(place, name) for place, _, names in os.walk(self.repo / ".git") for name in names]
        return [(path, os.stat(path)) for path in sorted(places)]

    def test_a_linked_worktree_and_a_nested_clone_can_export_too(self):
        self.git("worktree", "add", "-q", "-b", "other", self.folder / "other", self.first)
        self.git("clone", "-q", "--no-hardlinks", self.repo, self.folder / "clone")
        for number, place in enumerate(("other", "clone")):
            self.checkout = kaizen.read_checkout(str(self.folder / place))
            made = self.export(folder=f"made{number}")
            self.assertEqual((tree_of(made.tree)["agent.py"], made.changed(is_last=True)), (b"print(1)\n", None))

    def test_what_the_variant_changes_of_its_own_files_is_seen_at_the_end(self):
        for number, change in enumerate((
            lambda tree: write(tree / "agent.py", "print(9)\n"),
            lambda tree: os.remove(tree / "src/deep/prompt.txt"),
            lambda tree: (os.remove(tree / "link"), os.symlink("src", tree / "link")),
        )):
            made = self.export(folder=f"made{number}")
            change(self.folder / f"made{number}/tree")
            self.assertIsNone(made.poll())
            self.assertIn("no longer as it was exported", made.changed(is_last=True) or "")

    def test_a_change_with_the_old_size_and_time_is_seen(self):
        made = self.export()
        path = os.path.join(made.tree, "agent.py")
        status = os.stat(path)
        write(path, "print(7)\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertIn("agent.py", made.changed(is_last=True) or "")

    def test_files_that_are_new_are_the_variants_own_affair(self):
        made = self.export()
        write(os.path.join(made.tree, "cache.bin"), "x")
        self.assertIsNone(made.changed(is_last=True))

    def test_a_sparse_checkout_is_exported_whole(self):
        self.git("config", "core.sparseCheckout", "true")
        write(self.repo / ".git/info/sparse-checkout", "/src/\n")
        self.git("read-tree", "-mu", "HEAD")
        self.assertFalse((self.repo / "agent.py").exists())
        self.assertIn("agent.py", tree_of(self.export().tree))

    def test_filters_of_the_repository_are_not_run(self):
        trap = self.trap()
        write(self.repo / ".gitattributes", "*.py filter=evil\n")
        commit = self.commit("attributes")
        self.git("config", "filter.evil.smudge", trap)
        self.git("config", "filter.evil.clean", trap)
        self.checkout = kaizen.read_checkout(str(self.repo))
        made = self.export(commit)
        self.assertIsNone(made.changed(is_last=True))
        self.assertFalse(self.is_sprung())

    def test_submodules_are_refused_by_name(self):
        self.git("clone", "-q", self.repo, self.folder / "inner")
        self.git("submodule", "add", "-q", self.folder / "inner", "lib")
        commit = self.commit("submodule")
        with self.assertRaises(kaizen.GitError) as caught:
            self.export(commit)
        self.assertEqual(caught.exception.reason, "has_submodules")
        self.assertIn("lib", caught.exception.message)

    def test_a_commit_that_is_not_there_is_refused(self):
        with self.assertRaises(kaizen.GitError) as caught:
            self.export("0" * 40)
        self.assertEqual(caught.exception.reason, "unknown_commit")


class Judging(measuring_fixture.CampaignLab):
    """What an arm is judged by, and what is linked into its tree."""

    def exported(self, system, commit="HEAD"):
        workspace = kaizen.find_workspace()
        return kaizen.exported(workspace, kaizen.read_checkout(str(self.repo)), commit, system, self.folders)

    def system(self, **fields):
        return kaizen.load_system(kaizen.find_workspace(), "demo")._replace(**fields)

    def test_links_lead_to_what_git_ignores_and_the_folder_is_removed_after_an_error(self):
        write(self.repo / ".gitignore", "node_modules\n")
        self.commit("ignore")
        write(self.repo / "node_modules/left-pad/index.js", "1\n")
        with kaizen.WorkFolders() as self.folders:
            with self.assertRaises(ValueError), self.exported(self.system(links=("node_modules",))) as (root, _):
                self.assertEqual((kaizen.read_bytes(os.path.join(root, "node_modules/left-pad/index.js"))), b"1\n")
                raise ValueError
            self.assertFalse(os.path.exists(root))
            self.assertTrue((self.repo / "node_modules/left-pad/index.js").exists(), "a link is removed, not followed")
            for name in ("missing", "agent.json"):
                with self.assertRaises(kaizen.RefusedError) as caught, self.exported(self.system(links=(name,))):
                    pass
                self.assertEqual(caught.exception.reason, "missing_link")
        self.assertEqual(self.left_behind(), [])

    def test_links_are_read_from_system_md_and_cannot_lead_out(self):
        self.write_system("links:\n  - node_modules\n")
        self.assertEqual(self.system().links, ("node_modules",))
        for bad in ("../x", "/etc", "kaizen/systems", ".git"):
            self.write_system(f"links:\n  - {bad}\n")
            with self.assertRaises(kaizen.BreachesError):
                self.system()

    def judge(self, others=None):
        place = str(self.folder / "judge")
        shutil.rmtree(place, ignore_errors=True)
        checkout = kaizen.read_checkout(str(self.repo))
        return kaizen.judge_of(kaizen.find_workspace(), checkout, self.campaign, place, others or {})

    def test_what_judges_comes_from_the_opening_and_not_from_the_tree(self):
        original = kaizen.read_bytes(str(self.repo / "kaizen/systems/demo/eval.py"))
        write(self.repo / "kaizen/systems/demo/eval.py", "raise SystemExit('cheat')\n")
        self.write_system("minimum: -5\n")
        self.variant("cheat", 1)
        judge, system = self.judge()
        self.assertEqual(kaizen.read_bytes(judge.path("kaizen/systems/demo/eval.py")), original)
        self.assertEqual(system.metric.minimum, 0)
        self.assertEqual(system.mutable, ("agent.json", "src/**"))
        self.assertFalse(os.path.exists(judge.path("agent.json")), "nothing of a variant lies beside what judges")

    def test_other_bytes_than_those_that_were_locked_are_refused(self):
        campaign = self.campaign
        path = "kaizen/systems/demo/eval.py"
        changed = {**campaign.contract, "locked": {**campaign.contract["locked"], path: "0" * 64}}
        with self.assertRaises(kaizen.RefusedError) as caught:
            kaizen.judge_of(
                kaizen.find_workspace(), kaizen.read_checkout(str(self.repo)), campaign._replace(contract=changed), str(self.folder / "j"), {}
            )
        self.assertEqual(caught.exception.reason, "locked_changed")

    def test_a_file_that_git_keeps_otherwise_is_taken_from_the_tree_by_its_hash(self):
        """As git-lfs does: the commit holds a pointer, the tree what was locked."""
        campaign, path = self.campaign, "kaizen/systems/demo/eval.py"
        write(self.repo / path, "# what was locked\n")
        digest = kaizen.content_sha256(str(self.repo / path))
        changed = campaign._replace(contract={**campaign.contract, "locked": {path: digest}})
        write(self.folder / "x", "")
        kaizen.replace_from_tree(str(self.repo / path), str(self.folder / "x"), digest, path)
        self.assertEqual(kaizen.content_sha256(str(self.folder / "x")), digest)
        self.assertEqual(changed.contract["locked"], {path: digest})
