"""Copies of the skills in a repository: made, brought up to date, removed, and never over somebody's change."""

import json
import os
import subprocess
import unittest
from unittest import mock

import support
from support import kaizen, read_json, write


class Copies(support.TemporaryFolder):
    """A checkout of one skill, and a folder to copy it to."""

    def setUp(self):
        super().setUp()
        self.origin = self.folder / "first" / "guide"
        write(self.origin / "SKILL.md", "one\n")
        write(self.origin / "references/files.md", "files\n")
        write(self.origin / "scripts/kaizen.py", "engine\n").chmod(0o755)
        write(self.origin / "scripts/__pycache__/kaizen.pyc", "leftover")
        self.copy = self.folder / "project/.agents/skills/guide"

    def install(self):
        return kaizen.install_copy(str(self.origin), str(self.copy))

    def test_a_copy_has_the_files_their_permissions_and_a_note(self):
        self.assertEqual(self.install().text, f"installed {kaizen.VERSION} (3 files)")
        note = read_json(self.copy / "kaizen-copy.json")
        self.assertEqual((note["version"], note["files"]), (kaizen.VERSION, kaizen.folder_digests(str(self.origin))))
        self.assertTrue(os.access(self.copy / "scripts/kaizen.py", os.X_OK))
        self.assertFalse((self.copy / "scripts/__pycache__").exists())
        self.assertEqual(self.install().text, f"{kaizen.VERSION}, up to date")

    def test_new_content_under_the_same_version_arrives_and_what_is_gone_goes(self):
        self.install()
        write(self.origin / "SKILL.md", "two\n")
        (self.origin / "references/files.md").unlink()
        write(self.origin / "references/more.md", "more\n")
        self.assertEqual(self.install().text, f"refreshed {kaizen.VERSION} (3 files)")
        self.assertEqual(sorted(kaizen.folder_digests(str(self.copy))), ["SKILL.md", "kaizen-copy.json", "references/more.md", "scripts/kaizen.py"])
        self.assertEqual((self.copy / "SKILL.md").read_text(), "two\n")

    def test_an_older_version_is_named(self):
        with mock.patch.object(kaizen, "VERSION", "0.0.9"):
            self.install()
        write(self.origin / "SKILL.md", "two\n")
        self.assertEqual(self.install().text, f"refreshed {kaizen.VERSION} (1 file, was 0.0.9)")

    def test_a_changed_copy_is_left_alone_and_the_file_is_named(self):
        for change in (lambda: write(self.copy / "SKILL.md", "mine\n"), lambda: write(self.copy / "notes.md", "mine\n"), (self.copy / "SKILL.md").unlink):
            self.install()
            change()
            before = kaizen.folder_digests(str(self.copy))
            for outcome in (self.install(), kaizen.remove_copy(str(self.copy))):
                self.assertEqual(outcome.status, "changed_by_you")
                self.assertRegex(outcome.text, r"changed by you and left alone \((SKILL|notes)\.md\); remove the folder")
            self.assertEqual(kaizen.folder_digests(str(self.copy)), before)
            support.remove_tree(self.copy)

    def test_a_change_that_is_ours_by_now_is_no_change(self):
        self.install()
        write(self.copy / "SKILL.md", "two\n")
        write(self.origin / "SKILL.md", "two\n")
        self.assertEqual(self.install().status, "refreshed")
        self.assertEqual(self.install().status, "current")

    def test_a_folder_of_somebody_else_is_left_alone(self):
        write(self.copy / "SKILL.md", "theirs\n")
        for outcome in (self.install(), kaizen.remove_copy(str(self.copy))):
            self.assertEqual(outcome.status, "not_ours")
        self.assertEqual((self.copy / "SKILL.md").read_text(), "theirs\n")

    def test_a_broken_note_makes_a_folder_nobodys(self):
        self.install()
        write(self.copy / "kaizen-copy.json", "{")
        write(self.copy / "SKILL.md", "?\n")
        self.assertEqual(self.install().status, "not_ours")

    def test_an_unchanged_copy_is_removed(self):
        self.install()
        self.assertEqual(kaizen.remove_copy(str(self.copy)).status, "removed")
        self.assertFalse(self.copy.exists())
        self.assertEqual(kaizen.remove_copy(str(self.copy)).status, "not_installed")

    def test_the_skill_itself_is_no_copy(self):
        self.assertEqual(kaizen.install_copy(str(self.origin), str(self.origin)).status, "original")


class Commands(support.TemporaryFolder):
    """`--project`, with the real skills."""

    def setUp(self):
        super().setUp()
        self.project = self.folder / "their project"
        self.project.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)
        (self.project / "deep").mkdir()
        patch = mock.patch.object(kaizen, "bundle_root", lambda: str(support.ROOT))
        patch.start()
        self.addCleanup(patch.stop)

    def skills(self, *words, status=0):
        done = support.run_cli("skills", *words, "--project", "--json", cwd=self.project / "deep")
        self.assertEqual(done.status, status, done)
        return {row["name"]: row["status"] for row in json.loads(done.stdout).get("copies", [])}

    def test_copies_go_to_the_top_of_the_repository_for_both_clients(self):
        names = {f"{place}/skills/{name}" for place in (".agents", ".claude") for name in ("autoresearch", "guide", "improve-agent")}
        self.assertEqual(self.skills("refresh", status=1), {})
        self.assertEqual(self.skills("install"), dict.fromkeys(names, "installed"))
        self.assertEqual(self.skills("status"), dict.fromkeys(names, "current"))
        guide = self.project / ".claude/skills/guide/SKILL.md"
        write(guide, "mine\n")
        self.assertEqual(self.skills("install", status=1)[".claude/skills/guide"], "changed_by_you")
        self.assertEqual(self.skills("status", status=1)[".claude/skills/guide"], "changed_by_you")
        self.assertEqual(self.skills("uninstall", status=1)[".claude/skills/guide"], "changed_by_you")
        self.assertEqual([path.parent.parent.parent.name for path in self.project.glob(".*/skills/*/SKILL.md")], [".claude"])

    def test_a_place_that_cannot_be_written_is_a_failure_of_its_own(self):
        write(self.project / ".agents", "a file in the way")
        found = self.skills("install", status=1)
        self.assertEqual((found[".agents/skills/guide"], found[".claude/skills/guide"]), ("failed", "installed"))

    def test_outside_of_a_repository_it_is_refused(self):
        done = support.run_cli("skills", "install", "--project", cwd=self.folder)
        self.assertEqual((done.status, "is not in a git repository" in done.stderr), (5, True))


if __name__ == "__main__":
    unittest.main()
