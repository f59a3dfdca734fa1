"""`scripts/release.py` gives every place that names the version the same one."""

import contextlib
import io
import shutil
import unittest

import support
from support import ROOT, kaizen, read_json

import release


class Release(support.TemporaryFolder):
    """A copy of the places."""

    def setUp(self):
        super().setUp()
        for path, _ in release.places(ROOT):
            target = self.folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    def release(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = release.main(list(words), self.folder)
        return status, said.getvalue()

    def test_this_checkout_names_one_version(self):
        self.assertEqual(release.differing(ROOT, kaizen.VERSION), [])

    def test_a_new_version_is_written_everywhere_and_nowhere_else(self):
        before = {path: path.read_text() for path in self.folder.rglob("*") if path.is_file()}
        self.assertEqual(self.release("12.3.4rc1")[0], 0)
        for client in ("claude", "codex"):
            self.assertEqual(read_json(self.folder / f"plugins/kaizen/.{client}-plugin/plugin.json")["version"], "12.3.4rc1")
        for path, text in before.items():
            self.assertEqual(path.read_text().replace("12.3.4rc1", kaizen.VERSION), text)
            self.assertIn("12.3.4rc1", path.read_text())
        self.assertEqual(self.release("--check"), (0, ""))
        self.assertEqual(self.release(), (0, ""))

    def test_a_place_that_differs_or_names_none_is_found(self):
        skill = self.folder / "plugins/kaizen/skills/guide/SKILL.md"
        skill.write_text(skill.read_text().replace(f'version: "{kaizen.VERSION}"', 'version: "0.0.1"'))
        log = self.folder / "CHANGELOG.md"
        log.write_text("# Changelog\n")
        status, said = self.release("--check")
        self.assertEqual(status, 1)
        self.assertEqual(len(said.splitlines()), 2, said)
        self.assertIn("skills/guide/SKILL.md names 0.0.1, not", said)
        self.assertIn("CHANGELOG.md names no version, not", said)

    def test_what_is_no_version_is_refused(self):
        for word in ("1", "1.2", "v1.2.3", "1.2.3-dev", "1.2.3\n", ""):
            self.assertEqual(self.release(word)[0], 2 if word else 0, word)


if __name__ == "__main__":
    unittest.main()
