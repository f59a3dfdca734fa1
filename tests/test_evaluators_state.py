"""state: what the agent did to the world, and what it must leave as it was."""

import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase

import kaizen

BEFORE = {"orders": {"A-7": {"status": "paid", "total": 12.5}, "B-1": {"status": "open", "total": 3}}, "refunds": [], "log": [{"id": 1, "t": "a"}]}
AFTER = {
    "orders": {"A-7": {"status": "refunded", "total": 12.5}, "B-1": {"status": "open", "total": 3}},
    "refunds": [{"order": "A-7"}],
    "log": [{"id": 1, "t": "a"}],
}


def looked(settings, after=AFTER, before=BEFORE, output="done"):
    return outcome_of(entry_of("state", **settings), output, state={"before": before, "after": after})


class State(StrictTestCase):
    """Rules, allowed and forbidden changes, conditions."""

    def test_each_parameter_answers(self):
        for settings, status, reason in (
            ({"expect": [{"path": "/orders/A-7/status", "value": "refunded"}]}, "pass", ""),
            ({"expect": [{"path": "/orders/B-1/status", "value": "refunded"}]}, "fail", '/orders/B-1/status: expected "refunded", found "open"'),
            ({"expect": [{"path": "/orders/*/total"}]}, "pass", ""),
            ({"expect": [{"path": "/orders/*/status"}]}, "fail", '/orders/A-7/status: expected "paid", found "refunded"'),
            ({"expect": [{"path": "", "value": AFTER}]}, "pass", ""),
            ({"expect": [{"path": "/refunds", "op": "set", "value": [{"order": "A-7"}]}, {"path": "/gone", "op": "absent"}]}, "pass", ""),
            ({"allow_changes": ["/orders/*/status", "/refunds"]}, "pass", ""),
            ({"allow_changes": "/refunds"}, "fail", '/orders/A-7/status "paid" → "refunded"'),
            ({"allow_changes": ["/orders/A-7"]}, "fail", '/refunds/0 nothing → {"order":"A-7"}'),
            ({"allow_changes": ["/orders", "/refunds/*"]}, "pass", ""),
            ({"allow_changes": ["/orders", "/refunds/0/order"]}, "fail", "/refunds/0"),
            ({"forbid_changes": ["/orders/B-1", "/orders/*/total"]}, "pass", ""),
            ({"forbid_changes": "/orders/A-7"}, "fail", "which '/orders/A-7' must not"),
            ({"forbid_changes": ""}, "fail", "which the state must not"),
            ({"forbid_changes": "/refunds/*/order"}, "fail", "/refunds/0"),
            ({"forbid_changes": "/refunds/*/note"}, "pass", ""),
        ):
            with self.subTest(settings=settings):
                outcome = looked(settings)
                self.assertEqual(outcome.status, status, outcome.reason)
                self.assertIn(reason, outcome.reason)

    def test_evidence_points_into_the_snapshots(self):
        self.assertEqual(looked({"forbid_changes": ""}).evidence, ({"pointer": "/state/after/orders/A-7/status"}, {"pointer": "/state/after/refunds/0"}))
        self.assertEqual(looked({"forbid_changes": ""}, {**BEFORE, "log": []}).evidence, ({"pointer": "/state/before/log/0"},))
        self.assertEqual(looked({"expect": [{"path": "/log/0/id", "value": 2}]}).evidence, ({"pointer": "/state/after/log/0/id"},))

    def test_nothing_may_change_when_the_entries_pass(self):
        refuses = {"must_not_change_if": [{"type": "contains", "values": "cannot"}]}
        self.assertEqual(looked(refuses, output="I cannot do that").status, "fail")
        self.assertEqual(looked(refuses, BEFORE, output="I cannot do that").status, "pass")
        self.assertEqual(looked(refuses).status, "not_applicable")
        self.assertEqual(looked({**refuses, "forbid_changes": "/log"}).status, "pass")
        unknown = {"must_not_change_if": [{"type": "steps", "match": {"name": "refuse"}}]}
        self.assertEqual(looked(unknown).status, "error")
        self.assertEqual(looked(unknown, BEFORE).status, "pass")  # nothing changed, whatever the answer
        self.assertEqual(looked({"must_not_change_if": [*unknown["must_not_change_if"], *refuses["must_not_change_if"]]}).status, "not_applicable")

    def test_elements_of_lists_are_paired_as_is_said(self):
        before, after = {"log": [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}]}, {"log": [{"id": 2, "t": "b"}, {"id": 1, "t": "c"}]}
        self.assertEqual(looked({"forbid_changes": "/log/*/id"}, after, before).status, "fail")
        keyed = {"lists": {"key": "/id"}}
        self.assertEqual(looked({"forbid_changes": "/log/*/id", **keyed}, after, before).status, "pass")
        self.assertEqual(looked({"allow_changes": "/log/*/t", **keyed}, after, before).status, "pass")
        self.assertEqual(looked({"forbid_changes": "/log/*/id", **keyed}, {"log": [{"id": 2, "t": "b"}]}, before).status, "fail")
        for mode, status in (("multiset", "pass"), ("set", "pass"), ("ordered", "fail")):
            self.assertEqual(looked({"forbid_changes": "", "lists": mode}, {"l": [1, 2]}, {"l": [2, 1]}).status, status)
        self.assertEqual(looked({"forbid_changes": "", "lists": "set"}, {"l": [1, 1]}, {"l": [1]}).status, "pass")
        self.assertEqual(looked({"forbid_changes": "", "lists": "multiset"}, {"l": [1, 1]}, {"l": [1]}).status, "fail")

    def test_json_types_stay_apart(self):
        for one, other, status in ((1, 1.0, "pass"), (1, "1", "fail"), (1, True, "fail"), (None, 0, "fail"), ({}, [], "fail"), (None, None, "pass")):
            self.assertEqual(looked({"forbid_changes": ""}, {"v": one}, {"v": other}).status, status, (one, other))
        self.assertEqual(looked({"forbid_changes": "/v"}, {}, {"v": None}).status, "fail")

    def test_a_state_that_was_not_reported_is_not_known(self):
        allowed, expected = entry_of("state", allow_changes="/a"), entry_of("state", expect=[{"path": "/a", "value": 1}])
        for state in (None, [], {}, {"before": {}}, {"after": None, "before": {}}):
            for entry in (allowed, expected):
                self.assertEqual(status_of(entry, "done", state=state), "error", state)
        self.assertEqual(status_of(expected, "done", state={"after": {"a": 1}}), "pass")
        self.assertEqual(status_of(allowed, "done", state={"after": {"a": 1}}), "error")
        both = entry_of("state", expect=[{"path": "/a", "value": 1}], allow_changes="/a")
        self.assertEqual(status_of(both, "done", state={"after": {"a": 2}}), "fail")  # what is wrong decides
        self.assertEqual(looked({"expect": [{"path": "/new"}]}).status, "error")

    def test_mistakes_are_refused_at_their_place(self):
        for settings, pointer in (
            ({}, ""), ({"expect": []}, "/expect"), ({"expect": [{"path": "a"}]}, "/expect/0/path"), ({"expect": [{"op": "equals"}]}, "/expect/0"),
            ({"expect": [{"path": "/a", "op": "ignore"}]}, ""), ({"allow_changes": ["/a", "b"]}, "/allow_changes/1"), ({"allow_changes": ""}, "/allow_changes"),
            ({"forbid_changes": []}, "/forbid_changes"), ({"must_not_change_if": [{"type": "nonsense"}]}, "/must_not_change_if/0/type"),
            ({"forbid_changes": "", "lists": "any"}, "/lists"),
        ):  # fmt: skip
            self.assertEqual(refusal_of(entry_of("state", **settings))[0], pointer, settings)

    def test_large_states_take_time_by_their_size_alone(self):
        before = {"rows": [{"id": number, "v": "x" * 40} for number in range(60_000)]}
        after = {"rows": [{**row, "v": "y"} for row in reversed(before["rows"])]}
        outcome = looked({"allow_changes": "/rows/*/v", "lists": {"key": "/id"}}, after, before)
        self.assertEqual((outcome.status, outcome.value), ("pass", {"changes": 60_000}))

    def test_entries_inside_count_in_the_fingerprint(self):
        entry = kaizen.prepare_entry(entry_of("state", must_not_change_if=[{"type": "contains", "values": "no"}]))
        self.assertEqual(set(entry.versions), {"state", "contains"})


if __name__ == "__main__":
    unittest.main()
