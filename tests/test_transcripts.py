"""Each file of tests/transcripts/ is a console session that still goes as it is written.

To add one: a file <name>.txt in the form of sessions.py, and a folder <name>/ if it needs
files to begin with. KAIZEN_UPDATE_GOLDEN=1 writes what the commands print now where it
differs; read the difference before you commit it.
"""

import os
import shutil
import unittest

from sessions import matches, read_session, replay
from support import TESTS, StrictTestCase, TemporaryFolder, difference, write

TRANSCRIPTS = TESTS / "transcripts"


class Transcripts(TemporaryFolder):
    """Sessions of real processes, each in a folder of its own."""

    def replay_file(self, path):
        if path.with_suffix("").is_dir():
            shutil.copytree(path.with_suffix(""), self.folder, dirs_exist_ok=True)
        expected = path.read_text(encoding="utf-8")
        self.assertTrue(read_session(expected)[1], "no command in this transcript")
        found = replay(expected, self.folder)
        if found != expected and os.environ.get("KAIZEN_UPDATE_GOLDEN") == "1":
            write(path, found)
        elif found != expected:
            self.fail(f"\n{difference(expected, found, f'tests/transcripts/{path.name}')}")


def add_transcripts():
    """One test a file, so that a failure carries its name."""
    for path in sorted(TRANSCRIPTS.glob("*.txt")):
        setattr(Transcripts, f"test_{path.stem.replace('-', '_')}", lambda self, path=path: self.replay_file(path))


add_transcripts()


class Sessions(StrictTestCase):
    """How a session is read and compared."""

    def test_a_session_is_taken_apart(self):
        text = "Prose.\n\n$ one <<E\n> in\n>\n> E\nout\n\nlast\n[exit 3]\n\n# Why.\n$ two\n"
        lead, steps = read_session(text)
        self.assertEqual(lead, ["Prose.", ""])
        self.assertEqual([step.command for step in steps], ["one <<E\nin\n\nE", "two"])
        self.assertEqual((steps[0].expected, steps[0].status, steps[0].tail), (["out", "", "last"], 3, ["", "# Why."]))
        self.assertEqual((steps[1].expected, steps[1].status, steps[1].tail), ([], 0, [""]))

    def test_wildcards_stand_for_text_in_a_line_and_for_lines(self):
        table = [
            (["a […] c"], ["a b c"], True),
            (["a […] c"], ["a b", "c"], False),
            (["a", "[…]", "z"], ["a", "b", "", "z"], True),
            (["a", "[…]", "z"], ["a", "z"], True),
            (["[…]"], [], True),
            (["a.c"], ["abc"], False),
            ([], ["unexpected"], False),
            (["expected"], [], False),
        ]
        for expected, found, same in table:
            with self.subTest(expected=expected, found=found):
                self.assertEqual(matches(expected, found), same)


class Replaying(TemporaryFolder):
    """What running a session gives."""

    def test_a_session_that_goes_as_written_comes_back_unchanged(self):
        text = "Doc.\n\n$ mkdir sub\n$ cd sub\n$ cat > a <<'E'\n> $HOME\n> E\n$ cat a; exit 4\n$HOME\n[exit 4]\n"
        text += "\n$ python -c 'print(1)'\n[…]\n"
        self.assertEqual(replay(text, self.folder), text)
        self.assertEqual((self.folder / "sub/a").read_text(), "$HOME\n")

    def test_only_what_differs_is_replaced(self):
        text = "$ echo a\n[…]\n\n$ echo b >&2; false\nc\n[exit 2]\n\n# End.\n"
        self.assertEqual(replay(text, self.folder), text.replace("c\n[exit 2]", "b\n[exit 1]"))

    def test_kaizen_is_the_program_of_this_checkout(self):
        self.assertIn("kaizen 0.", replay("$ kaizen --version\n", self.folder))


if __name__ == "__main__":
    unittest.main()
