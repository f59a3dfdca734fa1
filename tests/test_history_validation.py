"""Validation: whatever is done to a history, the file it was done to is named."""

import gzip
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import support
from history_fixture import ACCEPT, copy_history, improvement, kaizen_json, must
from support import DATA, kaizen, run_cli, write

FOLDER = "kaizen-history"


def problems(anchor=None):
    """Everything that validation finds, as (path, code)."""
    try:
        return [(each.path, each.code) for each in kaizen.history_problems(FOLDER, anchor)[1]]
    except kaizen.KaizenError as error:
        return [(error.message.split(":")[0], error.reason)]


class Copied(support.TemporaryFolder):
    """A copy of the history of the fixture."""

    def setUp(self):
        super().setUp()
        copy_history(self.folder)
        self.place = self.folder / FOLDER

    def files(self):
        return sorted(path for path in self.place.rglob("*") if path.is_file())

    def assert_found(self, path, what):
        found = problems()
        self.assertIn(os.path.relpath(path), [name for name, _ in found], f"{what}: {found}")


class Tampering(Copied):
    """Every file, and 200 places chosen at random."""

    def test_an_untouched_history_is_valid_and_has_all_kinds_of_files(self):
        self.assertEqual(problems(), [])
        names = [path.name for path in self.files()]
        self.assertTrue(any(name.endswith(".gz") for name in names))
        self.assertTrue({".gitattributes", "ledger.jsonl", "champion.json", "manifest.json"} <= set(names))

    def test_the_hashes_are_those_that_anybody_can_compute(self):
        """Without any of Kaizen: json, hashlib and gzip."""

        def sha256(data):
            return hashlib.sha256(data).hexdigest()

        before = None
        for line in (self.place / "ledger.jsonl").read_bytes().splitlines():
            entry = json.loads(line)
            sealed = entry.pop("hash")
            self.assertEqual(entry["prev"], before)
            before = "sha256:" + sha256(json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
            self.assertEqual(sealed, before)
            files = [entry["decision"]["file"]] if entry["kind"] == "promotion" else None
            if files is None:
                data = (self.place / "runs" / entry["run"] / "manifest.json").read_bytes()
                self.assertEqual(sha256(data), entry["manifest"])
                files = json.loads(data)["files"]
            for each in files:
                path = self.place / "objects" / each["sha256"][:2] / (each["sha256"] + (".gz" if each["encoding"] else ""))
                stored = path.read_bytes()
                content = gzip.decompress(stored) if each["encoding"] else stored
                self.assertEqual((sha256(stored), len(stored)), (each["stored_sha256"], each["stored_bytes"]))
                self.assertEqual((sha256(content), len(content)), (each["sha256"], each["bytes"]))

    def test_every_file_changed_cut_emptied_removed_doubled(self):
        for path in self.files():
            data = path.read_bytes()
            for what, changed in (
                ("first byte", bytes([data[0] ^ 1]) + data[1:]),
                ("last byte", data[:-1] + bytes([data[-1] ^ 4])),
                ("cut by one", data[:-1]),
                ("cut in half", data[: len(data) // 2]),
                ("emptied", b""),
                ("a byte more", data + b"\n"),
                ("doubled", data + data),
            ):
                path.write_bytes(changed)
                self.assert_found(path, f"{path.name} {what}")
            path.unlink()
            self.assert_found(path, f"{path.name} removed")
            path.write_bytes(data)
            copy = path.with_name(path.name + ".copy")
            copy.write_bytes(data)
            self.assert_found(copy, f"{path.name} doubled")
            copy.unlink()
        self.assertEqual(problems(), [])

    def test_200_random_places(self):
        chance = random.Random(20260101)
        files = self.files()
        for number in range(200):
            path = chance.choice(files)
            data = path.read_bytes()
            start = chance.randrange(len(data))
            end = min(len(data), start + chance.randrange(1, 40))
            kind = chance.choice(("flip", "delete", "duplicate", "truncate"))
            changed = {
                "flip": data[:start] + bytes([data[start] ^ (1 << chance.randrange(8))]) + data[start + 1 :],
                "delete": data[:start] + data[end:],
                "duplicate": data[:end] + data[start:end] + data[end:],
                "truncate": data[:start],
            }[kind]
            path.write_bytes(changed)
            self.assert_found(path, f"{number}: {kind} at {start} of {path.name}")
            path.write_bytes(data)
        self.assertEqual(problems(), [])

    def test_lines_of_the_ledger_removed_doubled_exchanged(self):
        path = self.place / "ledger.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        self.assertEqual(len(lines), 6)
        for index in range(6):
            path.write_bytes(b"".join(lines[:index] + lines[index + 1 :]))
            self.assertTrue(problems(), f"line {index + 1} removed")
            path.write_bytes(b"".join([*lines[: index + 1], *lines[index:]]))
            self.assertIn((os.path.relpath(path), "ledger_added"), problems(), f"line {index + 1} doubled")
            for other in range(index):
                exchanged = list(lines)
                exchanged[index], exchanged[other] = lines[other], lines[index]
                path.write_bytes(b"".join(exchanged))
                self.assertIn((os.path.relpath(path), "ledger_order"), problems(), f"lines {index + 1} and {other + 1} exchanged")

    def test_a_file_packed_again_with_the_same_content_is_another_file(self):
        path = next(path for path in self.files() if path.suffix == ".gz")
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 1, mtime=7))
        self.assert_found(path, "packed again")

    def test_a_file_that_unpacks_to_more_than_was_recorded_is_not_unpacked(self):
        path = next(path for path in self.files() if path.suffix == ".gz")
        path.write_bytes(gzip.compress(b"x" * 30_000_000, 9, mtime=0))
        self.assert_found(path, "a bomb")

    def test_links_are_named_and_not_followed(self):
        outside = self.folder / "outside"
        shutil.copytree(self.place / "objects", outside)
        path = next(path for path in self.files() if path.parent.parent.name == "objects")
        target = outside / path.parent.name / path.name
        path.unlink()
        path.symlink_to(target)
        self.assert_found(path, "a link to the same bytes")
        run = kaizen.load_history(FOLDER)
        self.assertTrue(any(kaizen.run_problems(run, each) for each in run.runs.values()))
        shutil.rmtree(self.place / "objects")
        (self.place / "objects").symlink_to(outside)
        self.assertTrue(any(name == f"{FOLDER}/objects" for name, _ in problems()))
        self.assertEqual(kaizen_json("history", "record", "tone", "--agent-version", "v9")["reason"], "link_leaves_folder")

    def test_a_history_that_is_itself_a_link_elsewhere_is_not_used(self):
        shutil.move(FOLDER, self.folder / "elsewhere")
        (self.folder / "here").mkdir()
        (self.folder / "here" / FOLDER).symlink_to(self.folder / "elsewhere")
        os.chdir("here")
        self.assertEqual(kaizen_json("history", "list")["reason"], "link_leaves_folder")

    def test_the_dashboard_and_a_lock_are_no_part_of_it(self):
        write(self.place / "dashboard.html", "<p>")
        write(self.place / "history.lock", "")
        self.assertEqual(problems(), [])

    def test_a_forged_promotion_with_hashes_that_fit_is_named(self):
        entries = kaizen.ledger_entries(FOLDER)
        decision = entries[2]["decision"]
        for run in (entries[4]["run"], entries[5]["run"], entries[0]["run"]):
            forged = kaizen.sealed_entry(entries, "2026-01-01T00:00:00.000Z", "promotion", run, decision=decision, replaces=None)
            kaizen.write_ledger(FOLDER, [*entries, forged])
            self.assertEqual([code for _, code in problems()], ["forged_promotion"])


class Endings(Copied):
    """What shows that the last entries are gone."""

    def test_field_case_52_the_newest_entries_are_gone(self):
        before = must("history", "anchor")["anchor"]
        data = (self.place / "ledger.jsonl").read_bytes().splitlines(keepends=True)
        (self.place / "ledger.jsonl").write_bytes(b"".join(data[:-2]))
        found = problems()
        self.assertIn((f"{FOLDER}/champion.json", "champion_mismatch"), found)
        self.assertEqual(len([name for name, _ in found if name.endswith("manifest.json")]), 2)
        answer = kaizen_json("history", "validate")
        self.assertEqual(answer["status"], 1)
        self.assertIn("it knows 6 entries, the ledger has 4; the last ones are gone", answer["problems"][0]["message"])
        for run in ("0005", "0006"):
            shutil.rmtree(next((self.place / "runs").glob(f"{run}-*")))
        kept = {kaizen.entry_object(entry) for run in kaizen.load_history(FOLDER).runs.values() for entry in kaizen.archived_entries(run)}
        for path in (self.place / "objects").rglob("*"):
            if path.is_file() and f"objects/{path.parent.name}/{path.name}" not in kept:
                path.unlink()
        self.assertEqual(problems(), [(f"{FOLDER}/champion.json", "champion_mismatch")])
        self.assertEqual(kaizen_json("history", "record", "tone", "--agent-version", "v9")["reason"], "champion_mismatch")
        # Somebody who writes champion.json anew as well leaves a history that only an anchor kept elsewhere can tell from a whole one.
        entries = kaizen.ledger_entries(FOLDER)
        kaizen.write_ledger(FOLDER, entries)
        self.assertEqual(problems(), [])
        self.assertEqual(problems(before), [(f"{FOLDER}/ledger.jsonl", "anchor_mismatch")])

    def test_an_anchor_proves_that_the_history_still_extends_it(self):
        anchor = must("history", "anchor")["anchor"]
        self.assertRegex(anchor, r"^6-[0-9a-f]{24}$")
        must("decide", "tone", *ACCEPT)
        must("history", "promote", "6")
        self.assertIn(f"extends {anchor}", must("history", "validate", "--anchor", anchor)["message"])

    def test_a_ledger_written_anew_from_the_beginning_is_noticed_by_the_anchor(self):
        anchor = must("history", "anchor")["anchor"]
        rewritten = []
        for entry in kaizen.ledger_entries(FOLDER):
            fields = {key: value for key, value in entry.items() if key in ("manifest", "decision", "replaces")}
            rewritten.append(kaizen.sealed_entry(rewritten, "2020-01-01T00:00:00.000Z", entry["kind"], entry["run"], **fields))
        kaizen.write_ledger(FOLDER, rewritten)
        self.assertEqual(problems(), [])
        self.assertEqual(problems(anchor), [(f"{FOLDER}/ledger.jsonl", "anchor_mismatch")])
        self.assertEqual(run_cli("history", "validate", "--anchor", anchor).status, 1)

    def test_what_is_no_anchor_is_refused(self):
        for text in ("", " ", "6", "6-abc", "0-" + "0" * 24, "x", "6-" + "g" * 24):
            self.assertEqual(run_cli("history", "validate", "--anchor", text).status, 2, text)


class LineEnds(Copied):
    """Field case 42: a checkout that changes line ends."""

    def test_only_line_ends_are_told_and_no_new_hash_is_offered(self):
        for path in self.files():
            if path.suffix != ".gz":
                path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        answer = kaizen_json("history", "validate")
        self.assertEqual((answer["status"], {each["code"] for each in answer["problems"]}), (1, {"line_ends"}))
        for each in answer["problems"]:
            self.assertIn("only its line ends differ", each["message"])
            self.assertIn("git checkout", each["hint"])
        self.assertEqual(kaizen_json("history", "list")["reason"], "line_ends")

    def test_the_files_of_the_case(self):
        source = DATA / "field_cases/42-checkout-changes-line-ends"
        right = json.loads((source / "right.json").read_text())
        for name, code in (("crlf", "line_ends"), ("tampered", "hash_mismatch")):
            item = kaizen.measured_source(kaizen.Source("evidence.jsonl", str(source / "lf/evidence.jsonl")))
            self.assertEqual(item.sha256, right["lf"])
            entry = kaizen.store_object(name, item)
            self.assertEqual(kaizen.object_bytes(name, entry), (source / "lf/evidence.jsonl").read_bytes())
            data = (source / name / "evidence.jsonl").read_bytes()
            self.assertEqual(hashlib.sha256(data).hexdigest(), right[name])
            Path(name, kaizen.entry_object(entry)).write_bytes(data)
            with self.assertRaises(kaizen.ArchiveError) as caught:
                kaizen.object_bytes(name, entry)
            self.assertEqual(caught.exception.reason, code)

    def test_git_is_told_not_to_convert(self):
        self.assertIn("* -text", (self.place / ".gitattributes").read_text().splitlines())


@unittest.skipUnless(shutil.which("git"), "needs git")
class Merges(Copied):
    """Two branches that both recorded."""

    def git(self, *argv, ok=True):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=true", "-c", "merge.conflictStyle=merge")
        done = subprocess.run(["git", *identity, *argv], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertTrue(done.returncode == 0 or not ok, done.stdout + done.stderr)
        return done

    def branches(self):
        """Two branches, each with a record of its own behind the same entry 6; the first is checked out."""
        self.git("init", "-q", "-b", "one")
        self.git("add", ".")
        self.git("commit", "-qm", "start")
        self.git("checkout", "-qb", "two")
        for branch in ("two", "one"):
            self.git("checkout", "-q", branch)
            improvement(f"on-{branch}", {branch: "n"}, {branch: "y"})
            must("history", "init", f"on-{branch}", "--agent-version", "v2")
            self.git("add", ".")
            self.git("commit", "-qm", branch)

    def test_a_checkout_with_conversion_on_is_valid(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "start")
        shutil.rmtree(FOLDER)
        self.git("checkout", "--", FOLDER)
        self.assertEqual(problems(), [])

    def test_a_conflict_is_refused_with_what_to_do_and_nothing_is_lost(self):
        self.branches()
        self.assertNotEqual(self.git("merge", "-q", "two", ok=False).returncode, 0)
        for command in (("list",), ("record", "tone", "--agent-version", "v5"), ("promote", "6"), ("anchor",)):
            answer = kaizen_json("history", *command)
            self.assertEqual((answer["status"], answer["reason"]), (5, "conflict_markers"))
            self.assertIn("git checkout HEAD -- kaizen-history", answer["next"])
        self.assertIn((f"{FOLDER}/ledger.jsonl", "conflict_markers"), problems())
        self.assertIn((f"{FOLDER}/champion.json", "conflict_markers"), problems())
        # Taking one side's ledger leaves the other side's run: named, and in the way of the next recording until it is taken care of.
        self.git("checkout", "--ours", f"{FOLDER}/ledger.jsonl", f"{FOLDER}/champion.json")
        strangers = [name for name, code in problems() if code == "added" and "/runs/" in name]
        self.assertEqual(len(strangers), 1)
        answer = kaizen_json("history", "init", "on-two", "--agent-version", "v2")
        self.assertEqual((answer["status"], answer["reason"]), (5, "unknown_runs"))
        # What the refusal says to do.
        command = re.search(r"rm -r .*? && git add -A kaizen-history", answer["next"])[0]
        subprocess.run(["sh", "-c", command], cwd=self.folder, check=True)
        self.git("commit", "-qm", "merged")
        self.assertEqual(problems(), [])
        must("history", "init", "on-two", "--agent-version", "v2")
        self.assertEqual((must("history", "validate")["entries"], len(problems())), (8, 0))

    def test_a_merge_that_keeps_both_lines_is_forked(self):
        self.branches()
        write(".git/info/attributes", "ledger.jsonl merge=union\n")
        self.git("merge", "-q", "two", ok=False)
        self.git("checkout", "--ours", f"{FOLDER}/champion.json")
        self.assertEqual((self.place / "ledger.jsonl").read_text().count("\n"), 8)
        answer = kaizen_json("history", "list")
        self.assertEqual((answer["status"], answer["reason"]), (5, "forked"))
        self.assertIn("two different entries 7", answer["message"])
        self.assertIn((f"{FOLDER}/ledger.jsonl", "forked"), problems())


if __name__ == "__main__":
    unittest.main()
