"""Opening a campaign: what forbids it, what it writes, what a crash leaves, what is inherited, and what the seal is worth."""

import json
import os
import signal
import unittest
from unittest import mock

import support
from opening_fixture import Openings, holdout_cases, parcel_case, read_json, read_lines, write, write_lines

import kaizen

KILLED_BY = ("replace", "mkdir", "unlink")
WRITING_GIT = ("hash-object", "update-index", "write-tree", "commit-tree", "update-ref")


class Opening(Openings):
    """What a good opening does."""

    def test_cases_are_split_and_sealed_and_contract_and_dataset_are_one_commit(self):
        before = read_lines(self.items)
        head = self.git("rev-parse", "HEAD")
        campaign = self.open("--min-effect", "0.02", "--guard", "cost_usd=0.1", "--hard-gate", "safe", "--budget-usd", "12")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.git("rev-parse", "HEAD~1"), head)
        self.assertEqual(self.git("diff", "--name-only", "HEAD~1").split(), ["kaizen/systems/demo/campaigns/c1.json", "kaizen/systems/demo/items.jsonl"])
        kept, sealed = read_lines(self.items), self.sealed_cases()
        self.assertEqual((len(kept), len(sealed)), (15, 15))
        plain = [{**case, "split": "development"} for case in before if case["id"] in {each["id"] for each in kept}]
        self.assertEqual(kept, plain)
        self.assertEqual(sorted(each["id"] for each in (*kept, *sealed)), sorted(each["id"] for each in before))
        opened, contract = campaign.events[0]["body"], campaign.contract
        self.assertEqual(opened["commit"], self.git("rev-parse", "HEAD"))
        self.assertEqual(self.git("rev-parse", "refs/kaizen/c1/opened"), opened["commit"])
        self.assertEqual(opened["contract_sha256"], kaizen.sha256_hex(self.contract_file().read_bytes()))
        self.assertEqual(contract["guards"], [{"metric": "cost_usd", "margin": 0.1}, {"metric": "safe", "hard": True}])
        self.assertEqual((contract["budget"]["usd"], contract["min_effect"], contract["base_commit"]), (12, 0.02, head))
        self.assertEqual(contract["looks"], {"number": 5, "alpha": 0.05, "trials": 4})
        system = kaizen.load_system(self.workspace, "demo")
        self.assertEqual(contract["hashes"]["dataset"], kaizen.load_items(self.workspace, system).fingerprint)
        self.assertEqual(contract["locked"], kaizen.locked_hashes(self.workspace, system))
        self.assertEqual(os.stat(self.sealed).st_mode & 0o777, 0o700)

    def test_each_label_and_each_cluster_is_on_its_side(self):
        cases = [parcel_case(number, cluster=f"user {number // 2}", tags=["rare"] if number < 8 else ["usual"]) for number in range(60)]
        self.put(cases)
        self.open("--split", "2:1")
        held = self.sealed_cases()
        self.assertEqual(len(held), 20)
        clusters = [case["cluster"] for case in held]
        self.assertTrue(all(clusters.count(name) == 2 for name in clusters))
        self.assertIn(sum("rare" in case["tags"] for case in held), (2, 4))

    def test_cases_that_were_split_before_are_moved_and_the_others_stay_byte_for_byte(self):
        lines = [json.dumps(parcel_case(number, split="holdout" if number % 2 else "challenge"), indent=None) + " " for number in range(30)]
        write(self.items, "\r\n".join(lines) + "\r\n")
        self.commit("split")
        self.open()
        self.assertEqual(self.items.read_bytes(), "".join(f"{line}\r\n" for line in lines[::2]).encode())
        self.assertEqual([case["id"] for case in self.sealed_cases()], [f"p{number}" for number in range(1, 30, 2)])
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_a_holdout_from_outside_leaves_the_dataset_alone(self):
        before = self.items.read_bytes()
        self.open("--holdout", self.outside(holdout_cases()))
        self.assertEqual(self.items.read_bytes(), before)
        self.assertEqual(self.git("diff", "--name-only", "HEAD~1"), "kaizen/systems/demo/campaigns/c1.json")
        self.assertEqual(len(self.sealed_cases()), 14)

    def test_the_cases_of_an_improvement_are_moved_out_of_its_own_file(self):
        folder = support.make_improvement(self.repo / "improvements/parcels", [parcel_case(number) for number in range(60, 84)], {"evaluators": [{"id": "says", "type": "contains", "values": ["Traced"]}]})
        write(self.repo / "kaizen/systems/parcels/system.md", "---\nimprovement: improvements/parcels\nrunner:\n  - python3\n  - agent.py\nmutable:\n  - agent.py\n---\n")
        self.commit("improvement")
        done = support.run_cli("campaign", "open", "--system", "parcels", "--sealed", self.sealed)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual((len(read_lines(folder / "test_cases.jsonl")), len(self.sealed_cases())), (12, 12))

    def test_a_workspace_below_the_root_of_a_linked_work_tree(self):
        self.git("mv", "kaizen", "agent.py", self.make_folder("sub"))
        text = (self.repo / "sub/kaizen/systems/demo/items.jsonl").read_text()
        self.commit("moved")
        self.git("worktree", "add", "-q", self.folder / "tree", "-b", "side")
        with support.surroundings(self.folder / "tree/sub", {}, {}):
            self.refused("sealed_inside", *self.options(sealed=self.repo / "sub/inside"))
            done = support.run_cli(*self.options())
            self.assertEqual(done.status, 0, done.stderr)
            campaign = kaizen.load_campaign(kaizen.find_workspace(), "c1")
            write("agent.py", "# " + self.sealed_cases()[0]["input"])
            self.commit("cheat", cwd=self.folder / "tree")
            found = kaizen.scan_diff(campaign, kaizen.read_checkout("."), campaign.events[0]["body"]["commit"])
        self.assertEqual((campaign.events[0]["body"]["root"], found.holdout_hits, found.locked), ("sub", 1, []))
        self.assertEqual(self.git("status", "--porcelain", cwd=self.folder / "tree"), "")
        self.assertEqual((self.repo / "sub/kaizen/systems/demo/items.jsonl").read_text(), text, "another branch")

    def make_folder(self, name):
        (self.repo / name).mkdir()
        return name

    def test_hooks_do_not_run_and_nothing_else_is_touched(self):
        for name in ("pre-commit", "post-commit", "reference-transaction", "commit-msg"):
            os.symlink(self.trap(), self.repo / ".git/hooks" / name)
        write(self.repo / "ignored.txt", "mine")
        write(self.repo / ".git/info/exclude", "ignored.txt\n")
        self.open()
        self.assertFalse(self.is_sprung())
        self.assertEqual((self.repo / "ignored.txt").read_text(), "mine")

    def test_a_dry_run_shows_the_contract_and_writes_nothing(self):
        before = self.whole()
        done = support.run_cli(*self.options("--dry-run", "--target", "0.9"))
        self.assertEqual((done.status, self.whole()), (0, before))
        for words in ("c1 of demo can be opened; nothing was written", "target 0.9", "15 development cases", "5 looks at 15 sealed cases", "at most 0.05", "honour"):
            self.assertIn(words, done.stdout)

    def test_nothing_of_the_holdout_is_printed_or_written_inside_the_repository(self):
        for case in (parcel_case(number) for number in range(200, 214)):
            self.assertNotIn(case["id"], self.git("grep", case["id"], check=False))
        secret = holdout_cases(range(200, 214), metadata={"who": "kanarienvogel"}, notes="kanarienvogel")
        path = self.outside(secret)
        printed = ""
        for more in (["--dry-run"], ["--dry-run", "--json"], ["--json"], []):
            done = support.run_cli(*self.options("--holdout", path, *more))
            printed += done.stdout + done.stderr
        files = b"".join(content for name, content in self.whole()[0].items() if isinstance(content, bytes) and name.startswith("repo/"))
        canary = read_json(self.sealed / "sealed.json")["canary"]
        for word in ("kanarienvogel", canary, *[text for case in secret for text in (case["input"], case["expected"], case["id"] + '"')]):
            self.assertNotIn(word, printed)
            self.assertNotIn(word.encode(), files)

    def test_a_broken_holdout_file_is_named_by_its_line_and_not_quoted(self):
        good = [json.dumps(case) for case in holdout_cases()]
        for broken in ('{"id": "kanarienvogel", "input": 1, "critical": "kanarienvogel"}', "kanarienvogel", good[0], '{"id": "x", "id": "kanarienvogel"}'):
            path = write(self.folder / "outside.jsonl", "\n".join([*good, broken]))
            for more in ([], ["--json"]):
                done = support.run_cli(*self.options("--holdout", path, *more))
                self.assertEqual(done.status, 2, done.stdout)
                self.assertIn("outside.jsonl:15", done.stdout + done.stderr)
                for word in ("kanarienvogel", "p100", "Traced"):
                    self.assertNotIn(word, done.stdout + done.stderr)


class Refusals(Openings):
    """Each with its reason; nothing is left behind."""

    def test_the_place_of_the_holdout(self):
        write(self.folder / "used/note.txt", "mine")
        write(self.folder / "file", "mine")
        os.symlink(self.repo, self.folder / "link")
        os.symlink(self.folder / "elsewhere", self.folder / "dangling")
        table = {
            "sealed_inside": [self.repo / "sealed", self.repo, self.folder, self.folder / "link/below", self.repo / "kaizen/.kaizen/sealed", self.repo / ".git/sealed"],
            "sealed_not_empty": [self.folder / "used", self.folder / "file"],
            "sealed_link": [self.folder / "link", self.folder / "dangling"],
        }
        for reason, places in table.items():
            for place in places:
                self.refuse(reason, sealed=place)
        done = support.run_cli(*self.options(sealed="ssh://elsewhere/sealed"))
        self.assertEqual(done.status, 2)
        self.assertIn("another machine", done.stderr)

    def test_the_tree_the_system_and_git(self):
        write(self.repo / "stray.txt", "1")
        self.refuse("dirty_tree")
        (self.repo / "stray.txt").unlink()
        write(self.repo / ".gitattributes", "*.jsonl filter=lfs\n")
        self.commit("attributes")
        self.refuse("dataset_filtered")
        (self.repo / ".gitattributes").unlink()
        self.write_system()
        self.commit("nothing may change")
        self.refuse("nothing_mutable")
        self.write_system(MUTABLE_AND_RUBRIC)
        write(self.repo / "rubric.txt", "be kind")
        write(self.repo / ".gitignore", "rubric.txt\n")
        self.commit("a rubric that git ignores")
        self.assertIn("rubric.txt", self.refuse("locked_untracked")["message"])

    def test_where_git_cannot_be_written_one_sentence_says_what_to_do(self):
        error = kaizen.GitError(".git: cannot be written here", "", "git_read_only")
        with mock.patch.object(kaizen, "git_write_obstacle", return_value=error):
            document = self.refuse("git_read_only")
        self.assertIn("outside the sandbox", document["next"])

    def test_which_cases(self):
        fresh = self.outside(holdout_cases())
        self.refuse("holdout_inside", "--holdout", write_lines(self.repo / "kaizen/.kaizen/h.jsonl", holdout_cases()))
        (self.repo / "kaizen/.kaizen/h.jsonl").unlink()
        shared = self.outside([*holdout_cases(), parcel_case(3, id="other", input=parcel_case(3)["input"].upper() + "  ")], "shared.jsonl")
        self.assertIn("1 case", self.refuse("holdout_in_development", "--holdout", shared)["message"])
        self.refuse("too_few_cases", "--holdout", self.outside(holdout_cases(range(100, 104)), "few.jsonl"))
        self.refuse("too_few_clusters", "--holdout", self.outside(holdout_cases(cluster="one"), "one.jsonl"))
        self.refuse("too_few_cases", "--split", "9:1")
        self.put([parcel_case(number, split="development") for number in range(30)])
        self.refuse("no_holdout")
        self.put([parcel_case(number, split="holdout" if number < 12 else "development") for number in range(30)])
        self.refuse("two_holdouts", "--holdout", fresh)

    def test_copies_of_the_holdout_in_the_tree_and_in_included_files(self):
        write_lines(self.repo / "backup.jsonl", [parcel_case(number) for number in range(30)])
        self.commit("backup")
        self.assertIn("15 cases", self.refuse("holdout_in_tree")["message"])
        (self.repo / "backup.jsonl").unlink()
        evaluation = {"evaluators": [{"id": "says", "type": "contains", "values": ["Traced"]}], "include": ["../../datasets/regression.jsonl"]}
        cases = [parcel_case(number, split="holdout" if number < 12 else "development") for number in range(24)]
        support.make_improvement(self.repo / "improvements/parcels", cases, evaluation)
        write(self.repo / "kaizen/systems/parcels/system.md", "---\nimprovement: improvements/parcels\nrunner:\n  - python3\nmutable:\n  - agent.py\n---\n")
        for further, reason in (([parcel_case(3)], "holdout_in_development"), ([parcel_case(50, split="holdout")], "holdout_in_include")):
            write_lines(self.repo / "datasets/regression.jsonl", further)
            self.commit("included")
            self.refused(reason, "campaign", "open", "--system", "parcels", "--sealed", str(self.sealed))

    def test_a_second_campaign_of_the_system(self):
        self.open()
        self.refuse("campaign_open", sealed=self.folder / "other")

    def test_wrong_options(self):
        table = [["--guard", "cost"], ["--guard", "cost=-1"], ["--guard", "a=1", "--hard-gate", "a"], ["--looks", "0"], ["--alpha", "0"], ["--split", "1"]]
        for more in [*table, ["--min-effect", "nan"], ["--budget-usd", "-1"]]:
            done = support.run_cli(*self.options(*more))
            self.assertEqual(done.status, 2, f"{more} {done.stdout}")
            self.assertIn(more[0], done.stderr if more[0] != "--guard" else done.stderr + "--guard")


MUTABLE_AND_RUBRIC = "mutable:\n  - agent.py\nlocked:\n  - rubric.txt\n"


class SealLevels(Openings):
    """What may be said of how well the holdout is kept."""

    def level(self, *more):
        done = support.run_cli(*self.options("--dry-run", "--json", *more))
        self.assertEqual(done.status, 0, done.stderr)
        holdout = json.loads(done.stdout)["contract"]["holdout"]
        return holdout["level"], holdout["level_reason"]

    def test_a_statement_is_a_statement_and_another_user_is_looked_at(self):
        path = self.outside(holdout_cases())
        self.assertEqual(self.level("--holdout", path)[0], "honour")
        self.assertEqual(self.level("--holdout", path, "--guarded", "a hook denies it"), ("guarded", "stated, not verified: a hook denies it"))
        request = kaizen.OpeningRequest("demo", str(self.sealed), kaizen.ContractTerms())
        workspace = self.workspace
        for user, owner, level in ((1001, 1000, "other_user"), (1000, 1000, "honour"), (0, 1000, "honour"), (1000, 0, "honour")):
            with mock.patch.object(os, "geteuid", return_value=user), mock.patch.object(os, "stat", return_value=mock.Mock(st_uid=owner)):
                found = kaizen.seal_level(workspace, request, kaizen.HistoryHits(0, 1, ""), [])
            self.assertEqual(found.level, level, f"{user} {owner}")

    def test_what_git_holds_is_on_honour_whatever_it_was_called_and_wherever_it_is(self):
        path = self.outside(holdout_cases())
        head = self.git("rev-parse", "HEAD")
        old = write_lines(self.repo / "data/früher.jsonl", [{"id": "x", "input": case["input"]} for case in holdout_cases()[:3]])
        self.commit("by mistake")
        self.git("mv", "data/früher.jsonl", "data/later.jsonl")
        self.commit("renamed")
        self.git("rm", "-q", "data/later.jsonl")
        self.commit("taken away")
        self.assertFalse(old.exists())
        self.assertEqual(self.level("--holdout", path, "--guarded", "a hook"), ("honour", "3 of 14 cases stand in the history of the repository or in copies of earlier runs, where the agent can read them"))
        self.git("branch", "keep")
        self.git("reset", "-q", "--hard", head)
        self.assertEqual(self.level("--holdout", path)[1][:7], "3 of 14", "on another branch")
        self.git("branch", "-qD", "keep")
        self.assertEqual(self.level("--holdout", path)[1][:7], "3 of 14", "in the reflog")
        self.git("reflog", "expire", "--expire=now", "--all")
        self.assertNotIn("3 of 14", self.level("--holdout", path)[1])

    def test_what_an_earlier_run_has_copied_is_on_honour(self):
        write_lines(self.repo / "kaizen/.kaizen/runs/r0001/locked/kaizen/systems/demo/items.jsonl", holdout_cases()[:4])
        self.assertEqual(self.level("--holdout", self.outside(holdout_cases()), "--guarded", "a hook")[1][:7], "4 of 14")

    def test_a_version_that_a_merge_has_dropped_is_found(self):
        path = self.outside(holdout_cases())
        self.git("checkout", "-qb", "side")
        write_lines(self.items, [*read_lines(self.items), *holdout_cases()[:2]])
        self.commit("side")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "-s", "ours", "side", "-m", "dropped")
        self.git("branch", "-qD", "side")
        self.git("reflog", "expire", "--expire=now", "--all")
        self.assertEqual(self.level("--holdout", path)[1][:7], "2 of 14")

    def test_a_shallow_clone_is_no_proof(self):
        path = self.outside(holdout_cases())
        write(self.repo / "agent.py", "print(2)\n")
        self.commit()
        self.git("clone", "-q", "--depth", "1", self.repo.as_uri(), self.folder / "shallow", cwd=self.folder)
        with support.surroundings(self.folder / "shallow", {}, {}):
            level, reason = self.level("--holdout", path, "--guarded", "a hook")
        self.assertEqual(level, "honour")
        self.assertIn("shallow", reason)

    def test_cases_drawn_from_a_committed_dataset_are_on_honour(self):
        self.assertEqual(self.level("--guarded", "a hook")[1][:8], "15 of 15")

    def test_examples_in_a_prompt_are_never_drawn(self):
        write(self.repo / "prompts/examples.txt", "\n".join(parcel_case(number)["input"] for number in range(5)))
        self.commit("examples")
        self.open()
        self.assertTrue({f"p{number}" for number in range(5)} <= {case["id"] for case in read_lines(self.items)})


class Kills(Openings):
    """kill -9 at every step: what is left is finished or taken back, and no case is ever lost."""

    def test_a_kill_before_any_write_loses_no_case_and_the_next_opening_settles_it(self):
        ids = {case["id"] for case in read_lines(self.items)}
        request = kaizen.OpeningRequest("demo", str(self.sealed), kaizen.ContractTerms())
        kaizen.make_folder(kaizen.campaigns_folder(self.workspace))
        clean, head = self.whole(), self.git("rev-parse", "HEAD")
        opening = kaizen.prepare_opening(self.workspace, request)
        outcomes = []
        for step in range(1, 60):
            if self.survives(opening, step):
                break
            there = read_lines(self.items) + (self.sealed_cases() if (self.sealed / "holdout.jsonl").exists() else [])
            self.assertEqual({case["id"] for case in there}, ids, f"step {step}")
            finished = kaizen.settle_openings(self.workspace)
            if self.git("rev-parse", "HEAD") == head:
                self.assertEqual((finished, self.whole()), ([], clean), f"step {step}")
                outcomes.append("taken back")
                continue
            self.check_opened(f"step {step}")
            outcomes.append("finished")
            self.undo(head)
            self.assertEqual(self.whole(), clean)
        self.assertGreater(len(outcomes), 20)
        self.assertEqual(outcomes, sorted(outcomes, reverse=True), "first taken back, then finished")
        self.assertLess(outcomes.count("taken back"), len(outcomes))
        self.check_opened("no kill")

    def check_opened(self, when):
        campaign = kaizen.load_campaign(self.workspace, "c1")
        self.assertEqual(len(kaizen.open_sealed(campaign)), 15, when)
        self.assertEqual(self.git("status", "--porcelain"), "", when)
        self.assertEqual(campaign.events[0]["body"]["commit"], self.git("rev-parse", "HEAD"), when)
        self.assertNotIn("opening.json", os.listdir(campaign.folder), when)

    def survives(self, opening, step):
        """True when there are fewer than *step* writes; else the process that opened was killed before that one."""
        child = os.fork()
        if not child:
            try:
                self.die_at(opening, step)
            finally:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        self.assertIn(status, (0, signal.SIGKILL), f"step {step}")
        return status == 0

    def die_at(self, opening, step):
        """In the child: the opening, with a kill before its write number *step*."""
        left = [step]

        def counted(function):
            def call(*args, **more):
                if function is not ask or args[1] in WRITING_GIT:
                    left[0] -= 1
                    if not left[0]:
                        os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **more)

            return call

        ask = kaizen.git_ended
        patches = [mock.patch.object(os, name, counted(getattr(os, name))) for name in KILLED_BY]
        for patch in (*patches, mock.patch.object(kaizen, "git_ended", counted(ask))):
            patch.start()
        folder = os.path.join(kaizen.campaigns_folder(opening.workspace), "c1")
        kaizen.plan_opening(opening, folder)
        kaizen.seal_opening(opening)
        kaizen.commit_opening(opening)
        kaizen.finish_opening(opening.workspace, folder)
        os._exit(0)

    def undo(self, head):
        """The repository as it was before the opening."""
        self.git("reset", "-q", "--hard", head)
        self.git("update-ref", "-d", "refs/kaizen/c1/opened")
        for place in (self.sealed, self.repo / "kaizen/.kaizen/campaigns/c1", self.contract_file().parent):
            support.shutil.rmtree(place, ignore_errors=True)

    def test_the_same_command_says_that_it_has_finished_what_was_cut_short(self):
        with mock.patch.object(kaizen, "bring_tree", side_effect=KeyboardInterrupt):
            support.run_cli(*self.options())
        self.assertNotEqual(self.git("status", "--porcelain"), "")
        self.open("--looks", "3")
        self.assertEqual(self.said["reason"], "finished")
        self.assertEqual(self.said["contract"]["looks"]["number"], 5)
        self.check_opened("finished")

    def test_a_disk_that_says_no_leaves_nothing(self):
        with mock.patch.object(kaizen, "seal_opening", side_effect=kaizen.InputError("sealed: cannot be written")):
            self.assertEqual(support.run_cli(*self.options()).status, 2)
        self.assertEqual(os.listdir(self.repo / "kaizen/.kaizen/campaigns"), [])

    def test_a_campaign_whose_journal_is_gone_is_not_swept_away(self):
        campaign = self.open()
        os.unlink(campaign.file("journal.jsonl"))
        kaizen.settle_openings(self.workspace)
        self.assertTrue(os.path.exists(campaign.file("contract.json")))


class Inheritance(Openings):
    """Looks are counted by what was asked, not by what it is called."""

    def spent(self, answers, **open_options):
        """A closed campaign c1 whose holdout was looked at."""
        campaign = self.open("--holdout", self.outside(holdout_cases()), *[word for pair in open_options.items() for word in (f"--{pair[0]}", pair[1])])
        for answer in answers:
            kaizen.append_look(campaign, answer, 0.005, "a", "b")
        self.close(campaign)
        return campaign

    def test_renamed_cases_with_other_labels_and_splits_go_on_counting(self):
        self.spent(["no", "yes"])
        again = [{**case, "id": f"new{number}", "split": "challenge", "tags": [], "expected": "other", "input": case["input"].upper()} for number, case in enumerate(holdout_cases())]
        campaign = self.open("--holdout", self.outside(again, "again.jsonl"), sealed=self.folder / "second")
        self.assertEqual(campaign.contract["inherited"], {"looks": 2, "yes": 1, "from": ["c1"]})
        self.assertEqual(kaizen.looks_so_far(campaign), (2, 1))
        body = kaizen.append_look(campaign, "no", 0.001, "a", "b")
        self.assertEqual((body["look"], body["yes_before"]), (3, 1))
        self.close(campaign)
        third = self.open("--holdout", self.outside(holdout_cases()[:12], "third.jsonl"), sealed=self.folder / "third")
        self.assertEqual(third.contract["inherited"], {"looks": 3, "yes": 1, "from": ["c1", "c2"]})

    def test_other_cases_begin_anew(self):
        self.spent(["no", "yes"])
        campaign = self.open("--holdout", self.outside(holdout_cases(range(300, 315)), "fresh.jsonl"), sealed=self.folder / "second")
        self.assertEqual(campaign.contract["inherited"], {"looks": 0, "yes": 0, "from": []})

    def test_neither_looks_nor_alpha_grow_and_spent_is_spent(self):
        self.spent(["no", "no"], looks="3", alpha="0.02")
        again = ("--holdout", self.outside(holdout_cases()))
        for more in (["--looks", "4"], ["--alpha", "0.05"]):
            self.refuse("looks_promised", *again, *more, sealed=self.folder / "second")
        self.refuse("holdout_spent", *again, "--looks", "2", sealed=self.folder / "second")
        campaign = self.open(*again, sealed=self.folder / "second")
        self.assertEqual(campaign.contract["looks"], {"number": 3, "alpha": 0.02, "trials": 4})
        kaizen.append_look(campaign, "void", 0.001, "a", "b", "too many missing")
        with self.assertRaises(kaizen.RefusedError) as caught:
            kaizen.append_look(campaign, "no", 0.001, "a", "b")
        self.assertEqual(caught.exception.reason, "no_looks_left")

    def test_development_cases_never_become_a_holdout(self):
        campaign = self.open()
        self.close(campaign)
        write_lines(self.items, [{key: value for key, value in case.items() if key != "split"} for case in read_lines(self.items)] + holdout_cases(range(300, 315)))
        self.commit("no split any more")
        self.assertIn("of c1", self.refuse("holdout_was_development", sealed=self.folder / "second")["message"])

    def test_a_holdout_in_use_and_a_ledger_that_is_lost(self):
        path = self.outside(holdout_cases())
        campaign = self.open("--holdout", path)
        support.shutil.copytree(self.repo / "kaizen/systems/demo", self.repo / "kaizen/systems/two", ignore=support.shutil.ignore_patterns("campaigns"))
        self.commit("a second system")
        self.refused("holdout_in_use", "campaign", "open", "--system", "two", "--sealed", str(self.folder / "two"), "--holdout", str(path))
        kaizen.append_look(campaign, "yes", 0.005, "a", "b")
        self.close(campaign)
        support.shutil.rmtree(self.repo / "kaizen/.kaizen/campaigns")
        self.refused("ledger_missing", *self.options("--holdout", path, sealed=self.folder / "second"))
        second = self.open("--holdout", self.sealed / "holdout.jsonl", sealed=self.folder / "second")
        self.assertEqual((second.id, second.contract["inherited"]["looks"], second.contract["inherited"]["yes"]), ("c2", 1, 1))


if __name__ == "__main__":
    unittest.main()
