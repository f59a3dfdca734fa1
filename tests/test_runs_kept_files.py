"""Workspace and kept files: what a trial begins with, what is measured and kept of it."""

import hashlib
import os
import time
import unittest
from pathlib import Path
from unittest import mock

from support import StrictTestCase, kaizen, read_json, read_lines, write
from test_runs_bridge import PYTHON, StageRun

KEY = "ghp_" + ("a1B2c3D4e5" * 4)[:36]


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Patterns(StrictTestCase):
    """What `--keep` matches."""

    def test_each_pattern_matches_what_it_says(self):
        for glob, yes, no in (
            ("*.py", ["a.py"], ["a/b.py", "a.pyc", ".py/x"]),
            ("**/*.py", ["a.py", "a/b.py", "a/b/c.py"], ["a.py/x"]),
            ("out/**", ["out/a", "out/a/b"], ["out", "outer/a"]),
            ("out/", ["out/a", "out/a/b"], ["a"]),
            ("./a?c", ["abc"], ["ac", "a/c"]),
            ("out", ["out", "out/a", "out/a/b"], ["outer", "x/out"]),
            ("**/out", ["out/a", "x/y/out", "x/out/a"], ["outer"]),
            ("a.b+[1]", ["a.b+[1]"], ["axb1", "a.b1"]),
            ("**", ["a", "a/b\nc"], []),
        ):
            is_kept = kaizen.keep_test((glob,))
            for path in yes:
                self.assertTrue(is_kept(path), (glob, path))
            for path in no:
                self.assertFalse(is_kept(path), (glob, path))

    def test_one_that_leaves_the_folder_is_refused(self):
        for glob in ("/etc/passwd", "../x", "a/../../x", ""):
            with self.assertRaisesRegex(kaizen.UsageError, "stays in it"):
                kaizen.keep_test((glob,))


class MaskedCopies(StrictTestCase):
    """What is written for a file that is read in blocks."""

    def copied(self, data, size, exact=()):
        masker = kaizen.CopyMasker(exact)
        blocks = [data[start : start + size] for start in range(0, len(data), size)]
        return b"".join(masker(block) for block in [*blocks, b""]), masker

    def test_a_secret_is_found_wherever_a_block_ends(self):
        key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow\n" * 30 + "-----END RSA PRIVATE KEY-----"
        text = f"caf\u00e9 {KEY}\n" + key + "\nhunter-two-x end\n"
        masked = "caf\u00e9 ***REDACTED:github_token***\n***REDACTED:private_key***\n***REDACTED:environment*** end\n"
        with mock.patch.object(kaizen, "MASKED_PART", 40):
            for size in (1, 7, 64, 1000):
                self.assertEqual(self.copied(text.encode(), size, ["hunter-two-x"])[0].decode(), masked)

    def test_a_line_without_end_is_cut_between_its_words(self):
        with mock.patch.multiple(kaizen, MASKED_PART=64, LONGEST_PART=256):
            data = ("word," * 40 + KEY + ",") * 20
            self.assertEqual(self.copied(data.encode(), 50)[0].decode(), data.replace(KEY, "***REDACTED:github_token***"))

    def test_any_other_bytes_stay_as_they_are(self):
        for data in (b"", b"\r\n\xff\xfe\0" * 99, bytes(range(256)) * 40, "\u2028\n".encode() * 100):
            with mock.patch.object(kaizen, "MASKED_PART", 100):
                self.assertEqual(self.copied(data, 33)[0], data)

    def test_time_grows_with_the_length_alone(self):
        started = time.monotonic()
        self.copied(b"x" * (40 << 20), 1 << 20)
        self.assertLess(time.monotonic() - started, 5)


class Differences(StrictTestCase):
    """Lines added and removed, as `diff` counts them."""

    def test_the_shortest_edit_is_counted(self):
        # The example of the paper: ABCABBA to CBABAC takes five edits, three of them removals.
        self.assertEqual(kaizen.changed_lines(list("ABCABBA"), list("CBABAC")), (2, 3))
        self.assertEqual(kaizen.changed_lines([], ["a"] * 9000), (9000, 0))
        self.assertEqual(kaizen.changed_lines(["a"], ["a"]), (0, 0))
        self.assertEqual(kaizen.changed_lines(["x", *"abcdef"], [*"abcdef", "y"]), (1, 1))

    def test_what_would_take_too_long_is_not_counted(self):
        self.assertIsNone(kaizen.changed_lines([f"a{n}" for n in range(2000)], [f"b{n}" for n in range(2000)]))


class Coding(StageRun):
    """A coding agent in a work folder."""

    EDIT = """#!/bin/sh
cd "$KAIZEN_WORKDIR"
printf 'one\\nzwei\\nthree\\nfour\\n' > src/app.txt
printf 'new\\n' > src/new.txt
rm src/old.txt
printf '{"output": "done", "files": {"src/app.txt": {"change": "unchanged"}, "invented": {"change": "added"}}}\\n'
"""

    def setUp(self):
        super().setUp()
        self.make_cases(2)
        write("work/src/app.txt", "one\ntwo\nthree\n")
        write("work/src/old.txt", "gone\n")
        write("work/src/same.txt", "same\n")
        write("work/other.bin", b"\0\1")
        write("work/tool", "#!/bin/sh\n").chmod(0o755)
        self.runner(self.EDIT)

    def kept(self, stage="s"):
        root = Path(f"imp/{stage}.files")
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())

    def files(self, index=0, stage="s"):
        return read_lines(f"imp/{stage}.jsonl")[index]["files"]


class KeptFiles(Coding):
    """What is measured and kept."""

    def test_files_are_measured_and_not_claimed(self):
        self.run_stage("--workspace", "work", "--keep", "src/**", "--id", "c1")
        self.assertEqual(
            self.files(),
            {
                "src/app.txt": {
                    "change": "modified", "sha256": sha256("one\nzwei\nthree\nfour\n"), "bytes": 20,
                    "added_lines": 2, "removed_lines": 1, "text": "one\nzwei\nthree\nfour\n",
                },
                "src/new.txt": {"change": "added", "sha256": sha256("new\n"), "bytes": 4, "added_lines": 1, "removed_lines": 0, "text": "new\n"},
                "src/old.txt": {"change": "deleted", "added_lines": 0, "removed_lines": 1},
                "src/same.txt": {"change": "unchanged", "sha256": sha256("same\n"), "bytes": 5, "added_lines": 0, "removed_lines": 0, "text": "same\n"},
            },
        )  # fmt: skip

    def test_they_are_kept_by_case_and_trial(self):
        self.run_stage("--workspace", "work", "--keep", "src/*.txt", "--repetitions", "2")
        slugs = [kaizen.slug(name) for name in ("c1", "c2")]
        names = ("app.txt", "new.txt", "same.txt")
        self.assertEqual(self.kept(), sorted(f"{slug}/{trial}/src/{name}" for slug in slugs for trial in (1, 2) for name in names))
        self.assertEqual(Path(f"imp/s.files/{slugs[0]}/2/src/new.txt").read_text(), "new\n")

    def test_every_trial_begins_with_the_workspace_as_it_was_at_the_start(self):
        self.runner(
            '#!/bin/sh\ncat "$KAIZEN_WORKDIR/src/app.txt" | tr "\\n" . > seen\necho x > "$KAIZEN_WORKDIR/src/app.txt"\n'
            'echo changed > work/src/app.txt\n[ -x "$KAIZEN_WORKDIR/tool" ] || exit 1\nprintf \'{"output": "%s"}\' "$(cat seen)"\n'
        )
        self.run_stage("--workspace", "work", "--keep", "src/app.txt")
        self.assertEqual([each["output"] for each in read_lines("imp/s.jsonl")], ["one.two.three."] * 2)
        self.assertEqual([self.files(index)["src/app.txt"]["change"] for index in (0, 1)], ["modified"] * 2)

    def test_without_keep_nothing_is_measured(self):
        self.run_stage("--workspace", "work")
        self.assertEqual(sorted(self.files()), ["invented", "src/app.txt"])
        self.assertFalse(Path("imp/s.files").exists())

    def test_without_a_workspace_everything_is_new(self):
        self.runner('#!/bin/sh\necho a > "$KAIZEN_WORKDIR/a.txt"\necho \'{"output": 1}\'\n')
        self.run_stage("--keep", "**", "--id", "c1")
        self.assertEqual({name: each["change"] for name, each in self.files().items()}, {"a.txt": "added"})

    def test_the_meta_file_says_what_was_copied(self):
        self.run_stage("--workspace", "work", "--keep", "src/**")
        meta = read_json("imp/s.meta.json")
        self.assertEqual({key: meta["workspace"][key] for key in ("path", "files", "bytes")}, {"path": "../work", "files": 5, "bytes": 36})
        self.assertEqual(meta["keep"], ["src/**"])

    def test_a_trial_that_ended_badly_is_measured_as_well(self):
        self.runner(self.EDIT + "exit 3\n")
        self.run_stage("--workspace", "work", "--keep", "**/new.txt", "--id", "c1", status=4)
        self.assertEqual(self.files()["src/new.txt"]["change"], "added")

    def test_a_plain_runner_has_them_too(self):
        self.run_stage("--plain", "--workspace", "work", "--keep", "**/new.txt", "--id", "c1")
        self.assertEqual(list(self.files()), ["src/new.txt"])

    def test_a_persistent_runner_cannot(self):
        done = self.run_stage("--persistent", "--workspace", "work", "--keep", "*", status=2)
        self.assertIn("--workspace and --keep cannot go with --persistent", done.stderr)

    def test_binary_and_large_files_have_no_text_and_no_lines(self):
        self.runner('#!/bin/sh\ncd "$KAIZEN_WORKDIR"\nprintf "\\0" > nul\nprintf "\\377" > latin\nhead -c 70000 /dev/zero | tr "\\0" a > long\necho \'{"output": 1}\'\n')
        self.run_stage("--keep", "*", "--id", "c1")
        self.assertEqual([list(self.files()[name]) for name in ("nul", "latin")], [["change", "sha256", "bytes"]] * 2)
        self.assertEqual({key: value for key, value in self.files()["long"].items() if key != "sha256"},
                         {"change": "added", "bytes": 70000, "added_lines": 1, "removed_lines": 0})  # fmt: skip

    def test_a_secret_in_a_text_is_masked_in_the_observation(self):
        secret = "ghp_" + ("a1B2c3D4e5" * 4)[:36]
        self.runner(f'#!/bin/sh\necho "{secret}" > "$KAIZEN_WORKDIR/a"\necho \'{{"output": 1}}\'\n')
        self.run_stage("--keep", "*", "--id", "c1")
        self.assertNotIn(secret, Path("imp/s.jsonl").read_text())
        self.assertEqual(self.files()["a"]["sha256"], sha256(f"{secret}\n"))

    def leaves(self, *options, **contents):
        """The record of a trial that leaves files with these *contents*."""
        for name, content in contents.items():
            write(f"work/{name}", content)
        self.runner('#!/bin/sh\necho \'{"output": 1}\'\n')
        self.run_stage("--workspace", "work", "--keep", "**", "--id", "c1", *options)
        return read_lines("imp/s.jsonl")[0]

    def copy(self, name):
        return Path(f"imp/s.files/{kaizen.slug('c1')}/1/{name}")

    def test_kept_copies_are_masked_and_measured_as_they_were(self):
        record = self.leaves(small=f"key {KEY}\n", large=f"key {KEY}\n" + "x\n" * 40_000)
        self.assertEqual(self.copy("small").read_text(), "key ***REDACTED:github_token***\n")
        self.assertEqual(self.copy("large").read_text(), "key ***REDACTED:github_token***\n" + "x\n" * 40_000)
        self.assertEqual({name: record["files"][name]["masked"] for name in ("small", "large")}, {"small": 1, "large": 1})
        self.assertEqual(record["files"]["small"]["sha256"], sha256(f"key {KEY}\n"))
        self.assertEqual(record["redacted"], [
            {"pointer": "/files/large", "family": "github_token", "count": 1},
            {"pointer": "/files/small/text", "family": "github_token", "count": 1},
        ])
        self.assertNotIn("masked", record["files"]["tool"])

    def test_a_binary_file_with_a_secret_is_measured_and_not_kept(self):
        record = self.leaves(database=f"\0 {KEY} ".encode())
        self.assertFalse(self.copy("database").exists())
        self.assertEqual(record["files"]["database"]["bytes"], len(KEY) + 3)
        self.assertEqual(record["redacted"], [{"pointer": "/files/database", "family": "github_token", "count": 1}])
        self.assertEqual(record["notes"], ["measured but not kept, with secrets that cannot be masked: database"])

    def test_a_file_with_a_secret_in_its_name_is_not_kept(self):
        record = self.leaves(**{KEY: "x"})
        self.assertIn("***REDACTED:github_token***", record["files"])
        self.assertEqual(record["notes"], ["measured but not kept, with secrets that cannot be masked: ***REDACTED:github_token***"])
        self.assertFalse([path for path in Path("imp").rglob("*") if KEY in path.name or path.is_file() and KEY in path.read_text("latin-1")])

    def test_a_file_that_was_made_unreadable_is_measured_all_the_same(self):
        self.runner('#!/bin/sh\ncd "$KAIZEN_WORKDIR"\necho x > hidden\nchmod 000 hidden\nmkdir d\necho x > d/f\nchmod 000 d\necho \'{"output": 1}\'\n')
        real, modes = os.chmod, []
        with mock.patch.object(os, "chmod", lambda path, mode, **rest: (modes.append((os.path.basename(path), mode)), real(path, mode, **rest))):
            self.run_stage("--keep", "**", "--id", "c1")
        self.assertEqual(set(self.files()), {"hidden", "d/f"})
        self.assertIn(("hidden", 0o400), modes)

    def test_they_are_kept_as_they_are_when_that_is_asked_for(self):
        record = self.leaves("--keep-unmasked", small=f"key {KEY}\n", **{KEY: "x"})
        self.assertEqual(self.copy("small").read_text(), f"key {KEY}\n")
        self.assertTrue(self.copy(KEY).exists())
        self.assertEqual(record["files"]["small"]["text"], "key ***REDACTED:github_token***\n")
        self.assertIs(read_json("imp/s.meta.json")["keep_unmasked"], True)
        done = self.run_stage("--workspace", "work", "--keep", "**", "--resume", status=5)
        self.assertIn("masking of kept files", done.stderr)

    def test_it_needs_files_to_keep(self):
        done = self.run_stage("--keep-unmasked", status=2)
        self.assertIn("there is nothing to keep", done.stderr)

    def test_names_of_any_bytes_can_be_kept(self):
        self.runner('#!/bin/sh\ncd "$KAIZEN_WORKDIR"\ntouch "$(printf "a\\377b")" "new\nline"\necho \'{"output": 1}\'\n')
        self.run_stage("--keep", "*", "--id", "c1")
        self.assertEqual(sorted(self.files()), ["a\ufffdb", "new\nline"])


class Links(Coding):
    """No link leads out of the work folder."""

    def test_links_in_the_workspace_are_copied_as_links(self):
        write("secret.txt", "secret")
        os.symlink(self.folder / "secret.txt", "work/link")
        os.symlink("src", "work/inner")
        self.runner('#!/bin/sh\ncd "$KAIZEN_WORKDIR"\nprintf \'{"output": "%s %s"}\' "$(readlink link)" "$(readlink inner)"\n')
        self.run_stage("--workspace", "work", "--keep", "**", "--id", "c1")
        record = read_lines("imp/s.jsonl")[0]
        self.assertEqual(record["output"], f"{self.folder}/secret.txt src")
        self.assertEqual(sorted(record["files"]), ["other.bin", "src/app.txt", "src/old.txt", "src/same.txt", "tool"])
        self.assertEqual(record["notes"], ["2 links, special files and folders nested too deeply not kept; links are not followed"])
        self.assertNotIn("secret", "".join(path.read_text(errors="replace") for path in Path("imp/s.files").rglob("*") if path.is_file()))

    def test_a_link_that_the_agent_makes_is_not_followed(self):
        write("outside/secret.txt", "secret")
        self.runner(f'#!/bin/sh\ncd "$KAIZEN_WORKDIR"\nln -s {self.folder}/outside dir\nln -s {self.folder}/outside/secret.txt file\nrm src/app.txt\n'
                    f'ln -s {self.folder}/outside/secret.txt src/app.txt\nmkfifo pipe\necho \'{{"output": 1}}\'\n')  # fmt: skip
        self.run_stage("--workspace", "work", "--keep", "**", "--id", "c1")
        files = self.files()
        self.assertEqual(files["src/app.txt"], {"change": "deleted", "added_lines": 0, "removed_lines": 3})
        self.assertNotIn("dir/secret.txt", files)
        self.assertNotIn("file", files)
        self.assertNotIn("pipe", files)

    def test_a_stage_folder_that_leads_elsewhere_is_not_written_through(self):
        Path("elsewhere").mkdir()
        os.symlink(self.folder / "elsewhere", "imp/s.files")
        self.run_stage("--workspace", "work", "--keep", "**")
        self.assertEqual(list(Path("elsewhere").iterdir()), [])
        self.assertTrue(Path("imp/s.files").is_dir() and not Path("imp/s.files").is_symlink())


class Bounds(Coding):
    """Sizes are bounded, and what was left out is said."""

    def test_a_workspace_that_is_too_large_is_refused(self):
        with mock.patch.object(kaizen, "WORKSPACE_LIMIT", 30):
            self.assertIn("work: holds more than", self.run_stage("--workspace", "work", status=2).stderr)
        with mock.patch.object(kaizen, "FILE_COUNT_LIMIT", 3):
            self.assertIn("work: holds more than 3 files", self.run_stage("--workspace", "work", status=2).stderr)
        self.assertFalse(Path("imp/s.jsonl").exists())

    def test_one_that_holds_the_answers_is_refused(self):
        for folder in (".", "imp"):
            self.assertIn("holds the improvement with its expected answers", self.run_stage("--workspace", folder, status=2).stderr)

    def test_one_that_is_no_folder_is_refused(self):
        self.assertIn("--workspace 'nowhere' is no folder", self.run_stage("--workspace", "nowhere", status=2).stderr)

    def test_what_is_too_much_to_keep_is_measured_and_said(self):
        with mock.patch.object(kaizen, "KEPT_LIMIT", 22):
            self.run_stage("--workspace", "work", "--keep", "src/**", "--id", "c1")
        record = read_lines("imp/s.jsonl")[0]
        self.assertEqual(len(record["files"]), 4)
        self.assertIn("measured but not kept, beyond 0 MiB of one trial: src/app.txt", record["notes"])
        self.assertEqual([name.rpartition("/")[2] for name in self.kept()], ["new.txt", "same.txt"])

    def test_texts_are_bounded_together_and_changed_files_come_first(self):
        with mock.patch.object(kaizen, "ALL_TEXT_LIMIT", 5):
            self.run_stage("--workspace", "work", "--keep", "src/**", "--id", "c1")
        self.assertEqual([name for name, each in self.files().items() if "text" in each], ["src/new.txt"])


    def test_folders_nested_without_end_stop_nobody(self):
        code = 'import os\nos.chdir(os.environ["KAIZEN_WORKDIR"])\nfor _ in range(3000):\n    os.mkdir("aa")\n    os.chdir("aa")\nopen("f", "w")\nprint(1)'
        self.run_stage("--plain", "--keep", "**", "--id", "c1", command=[*PYTHON, "-c", code])
        record = read_lines("imp/s.jsonl")[0]
        self.assertEqual((record["output"], record["files"]), ("1", {}))
        self.assertEqual(record["notes"], ["1 link, special file or folder nested too deeply not kept; links are not followed"])


class LaterRuns(Coding):
    """The folder belongs to the lines: it is replaced, added to and cleared with them."""

    KEEP = ("--workspace", "work", "--keep", "src/new.txt")

    def test_an_overwrite_replaces_the_folder_at_its_end(self):
        self.run_stage(*self.KEEP)
        self.runner(self.EDIT.replace("new\\n", "newer\\n") + "[ -d $OLDPWD/imp/s.files ] || exit 1\n")
        self.run_stage(*self.KEEP, "--overwrite", "--id", "c1")
        self.assertEqual([Path("imp/s.files", name).read_text() for name in self.kept()], ["newer\n"])
        self.assertEqual([path.name for path in Path("imp").iterdir() if "unfinished" in path.name], [])

    def test_an_overwrite_without_kept_files_leaves_none(self):
        self.run_stage(*self.KEEP)
        self.run_stage("--overwrite")
        self.assertFalse(Path("imp/s.files").exists())

    def test_an_overwrite_that_fails_leaves_the_old_ones(self):
        self.run_stage(*self.KEEP)
        before = self.kept()
        self.runner(self.EDIT.replace("printf '{", "rm -rf $OLDPWD/imp/s.unfinished.files\ntouch $OLDPWD/imp/s.unfinished.files\nprintf '{"))
        self.run_stage(*self.KEEP, "--overwrite", status=2)
        self.assertEqual(self.kept(), before)

    def test_killed_between_the_last_steps_of_an_overwrite_the_folder_follows(self):
        self.run_stage(*self.KEEP)
        self.runner(self.EDIT.replace("new\\n", "newer\\n"))
        move = kaizen.move_file
        with mock.patch.object(kaizen, "move_file", lambda path, target: path.endswith("jsonl.unfinished") and move(path, target)), \
                mock.patch.object(kaizen, "discard_folder", lambda path: None):  # fmt: skip
            self.run_stage(*self.KEEP, "--overwrite")
        self.run_stage(*self.KEEP, "--resume")
        self.assertEqual({Path("imp/s.files", name).read_text() for name in self.kept()}, {"newer\n"})

    def test_only_errors_clears_and_renews_the_folder_of_the_trial(self):
        self.runner(self.EDIT + "[ $KAIZEN_CASE_ID != c2 ] || [ -e $OLDPWD/go ] || { echo x > $KAIZEN_WORKDIR/src/new.txt; exit 3; }\n")
        self.run_stage(*self.KEEP, status=4)
        place = Path("imp/s.files", kaizen.slug("c2"), "1/src/new.txt")
        self.assertEqual(place.read_text(), "x\n")
        write("go", "")
        self.run_stage(*self.KEEP, "--only", "errors")
        self.assertEqual(place.read_text(), "new\n")
        self.assertEqual(len(self.kept()), 2)

    def test_resuming_adds_to_the_folder_and_needs_the_same_files(self):
        self.run_stage(*self.KEEP, "--id", "c1")
        self.run_stage(*self.KEEP, "--resume")
        self.assertEqual(len(self.kept()), 2)
        done = self.run_stage("--workspace", "work", "--resume", "--repetitions", "2", status=5)
        self.assertIn('patterns of files to keep (["src/new.txt"] then, none now)', done.stderr)
        write("work/src/app.txt", "another\n")
        self.assertIn("workspace (", self.run_stage(*self.KEEP, "--resume", "--repetitions", "2", status=5).stderr)

    def test_files_of_a_case_whose_input_changed_go_with_its_line(self):
        self.run_stage(*self.KEEP)
        write("imp/test_cases.jsonl", '{"id": "c1", "input": 1}\n')
        self.run_stage(*self.KEEP, "--resume")
        self.assertEqual([name.split("/")[0] for name in self.kept()], [kaizen.slug("c1")])

    def test_a_folder_without_its_stage_is_removed_and_said(self):
        self.run_stage(*self.KEEP)
        Path("imp/s.jsonl").unlink()
        done = self.run_stage("--id", "c1")
        self.assertIn("imp/s.files: removed, it was kept of trials that no line tells of", done.stderr)
        self.assertFalse(Path("imp/s.files").exists())

    def test_only_the_last_attempt_is_kept(self):
        self.runner(self.EDIT.replace("src/new.txt", "src/new-$(cat $OLDPWD/tries 2>/dev/null).txt") + "[ -e $OLDPWD/tries ] || { echo 2 > $OLDPWD/tries; exit 75; }\n")
        self.run_stage("--workspace", "work", "--keep", "src/new-*", "--id", "c1", "--retries", "1")
        self.assertEqual([name.rpartition("/")[2] for name in self.kept()], ["new-2.txt"])

    def test_a_full_disk_ends_the_run_and_names_the_file(self):
        real = kaizen.copy_file

        def full(source, target, change=None):
            if ".files" in target:
                kaizen.refuse_writing(target, OSError(28, "No space left on device"))
            return real(source, target)

        with mock.patch.object(kaizen, "copy_file", full):
            done = self.run_stage(*self.KEEP, status=2)
        self.assertIn("imp/s.files: cannot be written: No space left on device", done.stderr)
        self.assertNotIn(kaizen.slug("c1"), done.stderr)  # of a holdout case it would give the id away


if __name__ == "__main__":
    unittest.main()
