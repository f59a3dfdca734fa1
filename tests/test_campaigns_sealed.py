"""The sealed place: it is what was sealed or it is refused; the ledger of looks has two copies that must agree."""

import os
import unittest
from unittest import mock

import support
from opening_fixture import Opened, holdout_cases, read_json, read_lines, write, write_lines

import kaizen


class SealedPlaces(Opened):
    """One campaign with fourteen sealed cases."""

    def refused_for(self, reason, function, *args):
        with self.assertRaises(kaizen.RefusedError) as caught:
            function(*args)
        self.assertEqual(caught.exception.reason, reason)
        for word in ("parcel", "p100", "Traced"):
            self.assertNotIn(word, caught.exception.message + caught.exception.hint)
        return caught.exception

    def look(self, answer="no", **more):
        return kaizen.append_look(self.campaign, answer, 0.005, "leader", "reference", **more)

    @property
    def store_ledger(self):
        return self.repo / "kaizen/.kaizen/campaigns/c1/holdout.jsonl"

    @property
    def sealed_ledger(self):
        return self.sealed / "looks.jsonl"


class Cases(SealedPlaces):
    """Reading the holdout."""

    def test_the_cases_come_back_as_they_were_with_their_split_and_without_canary(self):
        found = kaizen.open_sealed(self.campaign)
        self.assertEqual([case.document for case in found.values()], [{**case, "split": "holdout"} for case in holdout_cases()])
        canary = kaizen.sealed_canary(self.campaign)
        self.assertTrue(all(case["metadata"] == {"kaizen_canary": canary} for case in self.sealed_cases()))

    def test_a_case_changed_added_removed_or_repeated_is_found(self):
        good = self.sealed_cases()
        table = {
            "expected": [{**good[0], "expected": "Traced"}, *good[1:]],
            "tags": [{**good[0], "tags": ["lost", "x"]}, *good[1:]],
            "one more": [*good, {**good[0], "id": "more", "input": "other"}],
            "one less": good[1:],
            "twice": [*good[1:], {**good[1], "id": "again"}],
            "no id": [{**good[0], "id": ""}, *good[1:]],
            "none": [],
        }
        for what, cases in table.items():
            write_lines(self.sealed / "holdout.jsonl", cases)
            error = self.refused_for("sealed_changed", kaizen.open_sealed, self.campaign)
            self.assertIn("c1", error.message, what)
        write(self.sealed / "holdout.jsonl", "{broken\n")
        self.refused_for("sealed_changed", kaizen.open_sealed, self.campaign)

    def test_another_order_other_ids_and_splits_are_the_same_cases(self):
        write_lines(self.sealed / "holdout.jsonl", [{**case, "id": f"new {case['id']}", "split": "challenge"} for case in reversed(self.sealed_cases())])
        self.assertEqual(len(kaizen.open_sealed(self.campaign)), 14)

    def test_a_place_that_is_gone_another_campaigns_or_not_readable(self):
        mark = read_json(self.sealed / "sealed.json")
        write(self.sealed / "sealed.json", kaizen.encode_compact({**mark, "campaign": "c2"}))
        self.refused_for("sealed_changed", kaizen.open_sealed, self.campaign)
        with mock.patch.object(os, "listdir", side_effect=PermissionError):
            self.refused_for("sealed_unreadable", kaizen.open_sealed, self.campaign)
        support.shutil.rmtree(self.sealed)
        self.refused_for("sealed_missing", kaizen.open_sealed, self.campaign)

    def test_a_seal_tells_nothing_of_a_case_and_two_campaigns_share_no_hash(self):
        text = self.contract_file().read_text()
        for case in holdout_cases():
            for word in (case["id"] + '"', case["input"], case["expected"]):
                self.assertNotIn(word, text)
        self.assertNotIn(kaizen.sealed_canary(self.campaign), text)
        other = kaizen.new_seal(list(kaizen.open_sealed(self.campaign).values()), "another salt")
        seal = self.campaign.contract["holdout"]["seal"]
        self.assertFalse({*seal["sha256"], *seal["questions"]} & {*other["sha256"], *other["questions"]})


class Ledgers(SealedPlaces):
    """The looks that were spent."""

    def test_each_look_is_a_line_in_both_places_and_counts_on(self):
        self.assertEqual(kaizen.looks_so_far(self.campaign), (0, 0))
        bodies = [self.look("no"), self.look("yes"), self.look("void", void_reason="too_many_missing")]
        self.assertEqual([(body["look"], body["yes_before"]) for body in bodies], [(1, 0), (2, 0), (3, 1)])
        self.assertEqual(kaizen.ledger(self.campaign), bodies)
        self.assertEqual(kaizen.looks_so_far(self.campaign), (3, 1))
        self.assertEqual(self.store_ledger.read_bytes(), self.sealed_ledger.read_bytes())
        self.assertEqual(set(bodies[0]), {"look", "yes_before", "level", "answer", "void_reason", "leader_commit", "reference_commit", "copied"})

    def test_where_the_sealed_place_cannot_be_written_the_copy_is_made_up_for_later(self):
        self.look()
        with mock.patch.object(kaizen, "can_write_sealed", return_value=False):
            self.assertFalse(self.look()["copied"])
        self.assertEqual(len(read_lines(self.sealed_ledger)), 1)
        self.assertEqual(kaizen.looks_so_far(self.campaign), (2, 0))
        self.look()
        self.assertEqual(self.store_ledger.read_bytes(), self.sealed_ledger.read_bytes())

    def test_a_kill_between_the_two_copies_is_no_tampering(self):
        self.look()
        with mock.patch.object(kaizen, "copy_ledger", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            self.look("yes")
        self.assertEqual(kaizen.looks_so_far(self.campaign), (2, 1))
        self.look()
        self.assertEqual(self.store_ledger.read_bytes(), self.sealed_ledger.read_bytes())

    def test_a_ledger_that_was_shortened_lengthened_or_rewritten_is_an_integrity_hit_and_the_longer_one_counts(self):
        for answer in ("no", "yes", "no"):
            self.look(answer)
        for path in (self.store_ledger, self.sealed_ledger):
            good = path.read_bytes()
            path.write_bytes(b"".join(good.splitlines(keepends=True)[:1]))
            found = kaizen.read_ledger(self.campaign)
            self.assertEqual((len(found.looks), bool(found.problem)), (3, True))
            self.refused_for("ledger_changed", self.look)
            path.unlink()
            self.assertTrue(kaizen.read_ledger(self.campaign).problem)
            path.write_bytes(good.replace(b'"yes"', b'"no"'))
            self.refused_for("broken_chain", kaizen.ledger, self.campaign)
            path.write_bytes(good)
        self.store_ledger.unlink()
        log = kaizen.ChainLog(str(self.store_ledger))
        for _ in range(3):
            log.append("look", {"look": 1, "answer": "no", "copied": True})
        log.close()
        self.refused_for("ledger_changed", kaizen.ledger, self.campaign)

    def test_looks_end_with_the_contract_and_with_the_campaign(self):
        for _ in range(5):
            self.look()
        self.refused_for("no_looks_left", self.look)
        self.close(self.campaign)
        self.refused_for("campaign_closed", self.look)

    def test_a_retired_holdout_says_so_in_both_places_once(self):
        self.look()
        self.assertTrue(kaizen.retire(self.campaign, "abc"))
        self.assertTrue(kaizen.retire(self.campaign, "abc"))
        self.assertTrue(kaizen.is_retired(self.campaign))
        self.assertEqual(read_json(self.sealed / "retired.json"), {"campaign": "c1", "commit": "abc"})
        self.assertEqual([line["type"] for line in read_lines(self.sealed_ledger)], ["look", "retired"])
        self.assertEqual(len(kaizen.ledger(self.campaign)), 1)

    def test_from_where_the_sealed_place_cannot_be_read_the_store_is_believed(self):
        self.look("yes")
        with mock.patch.object(kaizen, "may_be_read", return_value=False):
            self.assertEqual(kaizen.looks_so_far(self.campaign), (1, 1))


if __name__ == "__main__":
    unittest.main()
