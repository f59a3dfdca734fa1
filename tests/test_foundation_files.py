"""Files: whole or not at all, nothing through links that leave, errors that name the file."""

import os
import unittest

import support
from support import kaizen, write

try:
    import resource
except ImportError:  # Windows
    resource = None


class WholeFiles(support.TemporaryFolder):
    """A reader sees the old content or the new, never a part."""

    def test_the_new_content_takes_the_place_of_the_old(self):
        write("a.txt", "old")
        with kaizen.replacing("a.txt") as stream:
            stream.write(b"new")
            self.assertEqual((self.folder / "a.txt").read_text(), "old")
        self.assertEqual((self.folder / "a.txt").read_text(), "new")
        self.assertEqual(os.listdir(), ["a.txt"])

    def test_an_error_on_the_way_leaves_the_old_content_and_nothing_else(self):
        write("a.txt", "old")
        with self.assertRaises(KeyError), kaizen.replacing("a.txt") as stream:
            stream.write(b"half")
            raise KeyError
        self.assertEqual((self.folder / "a.txt").read_text(), "old")
        self.assertEqual(os.listdir(), ["a.txt"])

    @unittest.skipUnless(resource, "file-size limits are of Unix")
    def test_a_full_disk_leaves_the_old_content_and_names_the_file(self):
        write("a.txt", "old")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        with self.assertRaisesRegex(kaizen.InputError, r"^a\.txt: cannot be written: File too large") as caught:
            kaizen.write_file("a.txt", "x" * 5000)
        self.assertEqual(caught.exception.reason, "cannot_write")
        self.assertEqual((self.folder / "a.txt").read_text(), "old")
        self.assertEqual(os.listdir(), ["a.txt"])

    def test_a_file_that_is_there_is_not_created_again(self):
        self.assertTrue(kaizen.create_file("a.txt", "first"))
        self.assertFalse(kaizen.create_file("a.txt", "second"))
        self.assertEqual((self.folder / "a.txt").read_text(), "first")

    def test_a_link_that_leaves_its_folder_is_not_written_through(self):
        write("outside/a.txt", "theirs")
        (self.folder / "inside").mkdir()
        (self.folder / "inside/a.txt").symlink_to("../outside/a.txt")
        for action in (lambda: kaizen.write_file("inside/a.txt", "mine"), lambda: kaizen.open_for_appending("inside/a.txt")):
            with self.assertRaisesRegex(kaizen.RefusedError, "symbolic link that leaves its folder"):
                action()
        self.assertEqual((self.folder / "outside/a.txt").read_text(), "theirs")

    def test_a_link_inside_its_folder_is_followed_when_appending(self):
        write("real.txt", "")
        (self.folder / "a.txt").symlink_to("real.txt")
        os.close(kaizen.open_for_appending("a.txt"))


class Reading(support.TemporaryFolder):
    """Text as it was meant, or an error that says what to do."""

    def test_a_missing_file_is_named(self):
        with self.assertRaisesRegex(kaizen.InputError, r"^no\.txt: does not exist$") as caught:
            kaizen.read_bytes("no.txt", "make one")
        self.assertEqual((caught.exception.hint, caught.exception.reason), ("make one", "missing_file"))

    def test_a_mark_and_windows_line_ends_are_dropped(self):
        write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
        self.assertEqual(kaizen.read_text("a.txt"), "one\ntwo\n")

    def test_bytes_that_are_no_utf8_are_refused_with_their_place(self):
        write("a.txt", b"caf\xe9")
        with self.assertRaisesRegex(kaizen.InputError, r"a\.txt: is not UTF-8 \(byte 3\)"):
            kaizen.read_text("a.txt")

    def test_paths_in_messages_are_short_and_safe(self):
        self.assertEqual(kaizen.shown_path(str(self.folder / "sub/x\n\x1b[2J")), "sub/x\\n\\x1b[2J")
        self.assertEqual(kaizen.shown_path("/elsewhere/x"), "/elsewhere/x")


class Removing(support.TemporaryFolder):
    """A folder is removed however it was left behind."""

    def test_a_folder_deeper_than_the_stack_and_any_path_is_removed(self):
        os.makedirs("deep")
        os.chdir("deep")
        for _ in range(3000):
            os.mkdir("down-here")
            os.chdir("down-here")
        os.chdir(self.folder)
        kaizen.remove_tree(str(self.folder / "deep"))
        self.assertFalse((self.folder / "deep").exists())

    def test_links_are_removed_and_not_followed(self):
        support.write("kept/file", "x")
        support.write("gone/a/b/file", "x")
        support.write("gone/.moved-0/file", "x")
        os.symlink(self.folder / "kept", "gone/a/link")
        os.chmod("gone/a/b", 0o500)
        kaizen.remove_tree(str(self.folder / "gone"))
        self.assertFalse((self.folder / "gone").exists())
        self.assertTrue((self.folder / "kept/file").exists())


if __name__ == "__main__":
    unittest.main()
