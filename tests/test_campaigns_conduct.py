"""Keep and discard: who becomes the leader, what is committed, and that nobody's files are lost."""

import os
import unittest
from pathlib import Path
from unittest import mock

from campaign_lab import CampaignLab
from lab_fixture import SYSTEM
from support import kaizen, write

LESSONS = "kaizen/systems/demo/lessons.md"


class Keep(CampaignLab):
    def setUp(self):
        super().setUp()
        self.history.begin()

    def test_a_keepable_variant_becomes_the_leader_with_its_fresh_trials(self):
        commit = self.variant("v001")
        runs = self.measured("v001", commit)
        told = self.say("keep", "v001", "--lesson", "kindness helps")
        self.assertEqual((told["keep"]["how"], told["keep"]["best_run"], told["keep"]["runs"]), ("kept", runs["candidate"], [runs["candidate"]]))
        state = self.state
        self.assertEqual((state.leader, state.stored), (("v001", commit, self.git("rev-parse", "HEAD")), [runs["candidate"]]))
        self.assertEqual(self.git("rev-parse", "refs/kaizen/c1/v001"), commit)
        self.assertIn("not confirmed", told["message"])

    def test_keep_commits_the_one_line_of_system_md_and_the_lesson_and_leaves_the_tree_clean(self):
        before = (self.repo / "kaizen/systems/demo/system.md").read_bytes()
        runs = self.measured("v001", self.variant("v001"))
        self.say("keep", "v001", "--lesson", "kindness helps")
        after = (self.repo / "kaizen/systems/demo/system.md").read_bytes()
        self.assertEqual(after.replace(b"best_run: %s\n" % runs["candidate"].encode(), b""), before)
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.git("show", "--name-only", "--format=", "HEAD").split(), [LESSONS, "kaizen/systems/demo/system.md"])
        self.assertEqual((self.repo / LESSONS).read_text(), "# Lessons\n\n- c1 v001 (kept): kindness helps\n")

    def test_only_a_keepable_verdict_on_fresh_trials_of_the_leader_of_now_allows_it(self):
        self.history.screen("v001", commit=self.variant("v001"))
        self.refused("not_replicated", "keep", "v001")
        self.measured("v002", self.variant("v002"), "not_replicated", 0.2)
        self.refused("not_keepable", "keep", "v002")
        self.measured("v003", self.variant("v003"), "guard_failed")
        self.refused("not_keepable", "keep", "v003")
        self.measured("v004", self.variant("v004"), guards=[{"metric": "cost", "outcome": "undecided"}])
        self.refused("guard_failed", "keep", "v004")
        self.measured("v005", self.variant("v005"))
        self.measured("v006", self.variant("v006"))
        self.say("keep", "v006")
        self.refused("other_leader", "keep", "v005")
        self.refused("decided", "keep", "v006")
        self.say("keep", "v9", status=2, reason="no_variant")

    def test_text_of_development_items_needs_a_person(self):
        self.measured("v001", self.variant("v001"), memorised=3)
        self.say("keep", "v001", status=3, reason="memorised")
        self.say("keep", "v001", "--accept-memorised", "ada")
        self.assertEqual(self.state.accepted, [{"what": "memorised v001", "by": "ada"}])
        self.assertEqual(self.state.variants["v001"].keep["accepted_memorised"], "ada")

    def test_simplify_keeps_what_is_smaller_and_no_worse(self):
        self.measured("v001", self.variant("v001"), "not_replicated", 0.1)
        self.refused("not_simplified", "keep", "v001", "--simplify")
        self.measured("v002", self.variant("v002"), "not_replicated", 0.1, can_simplify=True)
        self.assertEqual(self.say("keep", "v002", "--simplify")["reason"], "simplified")
        self.assertEqual(self.state.variants["v002"].verdict, "simplified")

    def test_head_must_contain_the_variant_and_the_tree_be_clean(self):
        self.measured("v001", self.variant("v001"))
        self.git("switch", "-q", "--detach", self.base)
        self.refused("other_commit", "keep", "v001")
        self.git("switch", "-q", "main")
        write(self.repo / "stray.txt", "")
        self.refused("dirty_tree", "keep", "v001")

    def test_answers_that_were_changed_are_no_evidence(self):
        runs = self.measured("v001", self.variant("v001"))
        path = self.run_folder(runs["candidate"]) / "items.jsonl"
        path.write_text(path.read_text().replace('"score":1', '"score":0', 1))
        self.refused("integrity", "keep", "v001")
        self.assertEqual(self.state.leader.variant, "baseline")
        self.assertTrue(self.state.integrity)

    def test_a_keep_that_was_killed_before_it_was_recorded_is_done_again(self):
        self.measured("v001", self.variant("v001"))
        with mock.patch.object(kaizen, "record", side_effect=KeyboardInterrupt):
            self.say("keep", "v001", "--lesson", "it helps", status=130)
        head = self.git("rev-parse", "HEAD")
        self.assertEqual(self.state.leader.variant, "baseline")
        self.say("keep", "v001", "--lesson", "it helps")
        self.assertEqual((self.state.leader.variant, self.state.leader.head), ("v001", head))

    def test_a_read_only_git_folder_is_refused_with_its_reason(self):
        self.measured("v001", self.variant("v001"))
        error = kaizen.GitError("cannot be written here", "kaizen lab open", "git_read_only")
        with mock.patch.object(kaizen, "git_write_obstacle", return_value=error):
            self.refused("git_read_only", "keep", "v001")
            self.refused("git_read_only", "discard", "v001", "--lesson", "no")

    def test_it_works_in_the_nested_clone_of_lab_open(self):
        clone = Path(self.say("lab", "open", "--campaign", "c1")["path"]).resolve()
        for key, value in (("user.name", "dev"), ("user.email", "dev@example.invalid")):
            self.git("config", key, value, cwd=clone)
        write(clone / "src/prompt.txt", "be nested\n")
        commit = self.commit("v001", cwd=clone)
        self.measured("v001", commit)
        os.chdir(clone)
        self.say("keep", "v001")
        self.assertEqual((self.state.leader.commit, self.git("status", "--porcelain", cwd=clone)), (commit, ""))
        self.assertEqual(self.git("rev-parse", "HEAD"), self.base)
        write(clone / "src/prompt.txt", "be odd\n")
        self.measured("v002", self.commit("v002", cwd=clone), "not_replicated", 0.1)
        self.say("discard", "v002", "--lesson", "odd is no better")
        self.assertEqual((clone / "src/prompt.txt").read_text(), "be nested\n")
        told = self.say("lab", "land")
        self.assertEqual((told["confirmed"], "not confirmed" in told["message"] + str(told["notes"])), (False, True))

    def test_the_line_of_the_best_run_is_put_in_with_the_line_ends_of_the_file(self):
        text = SYSTEM.format(python='"python"', further="").replace("\n", "\r\n").encode()
        made = kaizen.with_best_run(text, "r0007")
        self.assertEqual(made.replace(b"best_run: r0007\r\n", b""), text)
        self.assertEqual(kaizen.with_best_run(made, "r0008"), made.replace(b"r0007", b"r0008"))

    def test_lessons_stay_below_200_lines_and_what_people_wrote_stays(self):
        text = "# Ours\nread this\n" + "".join(f"- lesson {number}\n" for number in range(300))
        lines = kaizen.with_lessons(text, ["- new"]).splitlines()
        self.assertEqual((len(lines), lines[:3], lines[-1]), (200, ["# Ours", "read this", "- lesson 103"], "- new"))


class Discard(CampaignLab):
    def setUp(self):
        super().setUp()
        self.history.begin()
        self.commit_of = self.variant("v001")
        self.history.screen("v001", "no_signal", 0.2, commit=self.commit_of)

    def discard(self, *more, **how):
        return self.say("discard", "v001", "--lesson", "it did nothing", *more, **how)

    def test_it_moves_the_branch_to_the_leader_and_keeps_the_commit(self):
        self.git("branch", "other")
        refs = self.git("for-each-ref", "refs/heads/other")
        told = self.discard()
        self.assertEqual((told["discard"]["verdict"], told["discard"]["moved"]), ("no_signal", True))
        self.assertEqual((self.git("rev-parse", "HEAD"), self.git("branch", "--show-current")), (self.base, "main"))
        self.assertEqual(self.git("rev-parse", "refs/kaizen/c1/v001"), self.commit_of)
        self.assertEqual((self.git("for-each-ref", "refs/heads/other"), self.git("status", "--porcelain")), (refs, ""))
        self.assertEqual((self.repo / "src/prompt.txt").read_text(), "be kind\n")
        self.assertFalse((self.repo / LESSONS).exists())
        self.assertEqual(self.state.lessons, [{"variant": "v001", "verdict": "no_signal", "lesson": "it did nothing"}])

    def test_a_detached_head_goes_back_too(self):
        self.git("switch", "-q", "--detach")
        self.discard()
        self.assertEqual((self.git("rev-parse", "HEAD"), self.git("branch", "--show-current")), (self.base, ""))
        self.assertEqual(self.git("rev-parse", "main"), self.commit_of)

    def test_a_dirty_tree_is_refused_and_stays_as_it_is(self):
        write(self.repo / "src/prompt.txt", "be half done\n")
        self.refused("dirty_tree", "discard", "v001", "--lesson", "no")
        self.assertEqual((self.repo / "src/prompt.txt").read_text(), "be half done\n")
        self.assertEqual(self.state.variants["v001"].decision, "")

    def test_an_ignored_file_in_the_way_is_never_overwritten(self):
        write(self.repo / "key.secret", "kept by git\n")
        self.git("add", "-f", "key.secret")
        self.base = self.commit("leader with a forced file")
        self.git("rm", "-q", "key.secret")
        commit = self.commit("v002")
        self.history.say("keep", variant="v000", commit=self.base, how="kept", runs=["r0001"], gain=0.1, se=0.1, lesson="", best_run="r0001")
        self.history.screen("v002", "worse", -2, commit=commit)
        write(self.repo / "key.secret", "mine\n")
        self.refused("would_overwrite", "discard", "v002", "--lesson", "no")
        self.assertEqual((self.repo / "key.secret").read_text(), "mine\n")
        self.assertEqual((self.git("rev-parse", "HEAD"), self.state.variants["v002"].decision), (commit, ""))

    def test_other_ignored_files_stay(self):
        write(self.repo / "notes.secret", "mine\n")
        self.discard()
        self.assertEqual((self.repo / "notes.secret").read_text(), "mine\n")

    def test_what_was_committed_on_top_is_kept_as_well(self):
        later = self.variant("later")
        self.discard()
        self.assertEqual((self.git("rev-parse", "HEAD"), self.git("rev-parse", "refs/kaizen/c1/v001")), (self.base, later))

    def test_a_branch_that_stands_elsewhere_is_left_alone(self):
        self.git("switch", "-q", "--detach", self.base)
        elsewhere = self.variant("elsewhere")
        told = self.discard()
        self.assertEqual((self.git("rev-parse", "HEAD"), told["discard"]["moved"]), (elsewhere, False))
        self.assertIn("left where it is", told["notes"][0])

    def test_each_variant_is_decided_about_once_and_with_a_lesson(self):
        self.say("discard", "v001", "--lesson", " ", status=2)
        self.discard()
        self.refused("decided", "discard", "v001", "--lesson", "again")
        self.say("discard", "v7", "--lesson", "what", status=2, reason="no_variant")

    def test_the_leader_cannot_be_discarded_until_it_is_parked(self):
        self.measured("v002", self.variant("v002"))
        self.say("keep", "v002")
        self.refused("decided", "discard", "v002", "--lesson", "no")
        self.reload()
        self.history.say("overfit_suspected", gain=0.2)
        self.assertTrue(self.say("discard", "v002", "--lesson", "twice no on the holdout")["discard"]["moved"])
        self.assertEqual(self.git("rev-parse", "HEAD"), self.base)

    def test_lessons_of_discards_are_committed_with_the_next_keep(self):
        self.discard()
        self.measured("v002", self.variant("v002"))
        self.say("keep", "v002", "--lesson", "this did")
        self.assertEqual(
            (self.repo / LESSONS).read_text(), "# Lessons\n\n- c1 v001 (no signal): it did nothing\n- c1 v002 (kept): this did\n"
        )

    def test_a_note_is_recorded_and_one_about_nobody_refused(self):
        self.say("note", "the judge reads the first line", "--variant", "v001")
        self.assertEqual(self.state.notes, [{"text": "the judge reads the first line", "variant": "v001"}])
        self.say("note", "x", "--variant", "v9", status=2)

    def test_nothing_is_written_into_a_closed_campaign(self):
        self.history.say("closed", reason="asked")
        for words in (["discard", "v001", "--lesson", "x"], ["keep", "v001"], ["note", "x"]):
            self.refused("campaign_closed", *words, "--campaign", "c1")


if __name__ == "__main__":
    unittest.main()
