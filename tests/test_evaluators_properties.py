"""What holds for every registered type, whoever adds one: evaluators.md, properties to test."""

import json
import math
import time
import unittest

from support import StrictTestCase

import kaizen
from bench_leaves import measured_leaves


def nested(depth):
    """A value of so many levels."""
    value = "x"
    for _ in range(depth):
        value = {"a": [value]}
    return value


# Evidence that runners really send, from nothing at all to what no check expects.
HOSTILE = {
    "no output": {},
    "null": {"output": None},
    "empty text": {"output": ""},
    "no steps": {"output": "x", "steps": []},
    "steps that say nothing": {"output": "x", "steps": [{}, {"kind": "tool"}, {"kind": "message"}, {"kind": "tool", "name": None, "args": None, "result": None}]},
    "steps of odd types": {"output": "x", "steps": [{"kind": 7, "name": ["a"], "args": "not json", "status": {}, "text": 3, "turn": "one", "parent": []}]},
    "many calls": {"output": "A-7", "steps": [{"kind": "tool", "name": f"t{n % 3}", "args": {"n": n % 5}, "status": ["ok", "error"][n % 2], "result": n} for n in range(600)]},
    "calls nested deeply": {"output": "x", "steps": [{"kind": "tool", "name": "a", "args": nested(90), "result": nested(90), "status": "ok"}] * 4},
    "calls nested in texts": {"output": "x", "steps": [{"kind": "tool", "name": "a", "args": "[" * 20_000, "result": '{"a": NaN}', "status": "ok"}] * 4},
    "half a surrogate in a step": {"output": "x", "steps": [{"kind": "tool", "name": "\ud83d", "args": {"\ud83d": "\ud83d"}, "result": "\ud83d", "status": "error"}]},
    "all of it cut short": {"output": "x", "steps": [{"kind": kind, "role": "assistant", "name": "a", "text": "A-1", "args": {"x": 1}, "result": "A-", "truncated": ["args", "result", "text"]} for kind in ("tool", "message", "tool", "approval", "error")]},
    "calls without steps": {"output": "x", "tool_calls": [{"name": "a", "args": "{"}] * 5},
    "fields of odd types": {"output": 7, "usage": "many", "cost": [], "state": "x", "files": [], "evidence": None, "execution": "fast"},
    "files of odd entries": {"output": "x", "files": {"a": {"change": 7, "sha256": [], "text": 3, "added_lines": "x"}, "../b": {"change": "added"}, "": {}}},
    "states of odd types": {"output": "x", "state": {"before": [1, None, {"a": 1.5}], "after": {"a": nested(60), "": [[]]}}},
    "odd lists of what was masked": {"output": "x", "redacted": [7, {"pointer": 7, "family": None, "count": -1}, {"pointer": "/output"}]},
    "arguments of odd types": {"output": "x", "steps": [{"kind": "command", "args": "'\"$(`"}, {"kind": "tool", "args": {"cmd": [7], "command": {"a": "rm"}, "cwd": 3}}]},
    "true": {"output": True},
    "a list": {"output": [1, "1", None, {}]},
    "a huge output": {"output": "word 12,5 " * 30_000},
    "numbers like NaN": {"output": "NaN Infinity -Infinity 1e999 0x1F"},
    "json with NaN": {"output": '{"confidence": NaN}'},
    "json with a key twice": {"output": '{"a": 1, "a": 2}'},
    "nested deeply": {"output": nested(90)},
    "nested in a text": {"output": "[" * 20_000},
    "replacement characters": {"output": "caf\ufffd \u202e\x00\x1b[31m"},
    "half a surrogate": {"output": "done \ud83d"},
}


def result_lines(kind):
    """(name, observation, case, outcome) of the example entry, and of its negation, on every hostile observation."""
    example = kind.example
    case = {"id": "c1", "input": "?", **example.get("case", {})}
    for negate in (False, True):
        entry = kaizen.prepare_entry({**example["entry"], "negate": negate != bool(example["entry"].get("negate"))})
        for name, fields in {**HOSTILE, "its example": example["observation"]}.items():
            observation = {"case_id": "c1", "trial": 1, "status": "completed", **fields}
            yield name, negate, entry.evaluate(observation, case, {})


class EveryType(StrictTestCase):
    """Over the whole registry."""

    def types(self):
        for name, kind in kaizen.EVALUATORS.items():
            with self.subTest(type=name):
                yield kind

    def test_the_example_in_the_catalogue_is_true(self):
        for kind in self.types():
            example = kind.example
            self.assertLessEqual(set(example), {"entry", "observation", "case", "outcome"})
            self.assertEqual(example["entry"]["type"], kind.name)
            observation = {"case_id": "c1", "trial": 1, "status": "completed", **example["observation"]}
            found = kaizen.prepare_entry(example["entry"]).evaluate(observation, {"id": "c1", "input": "?", **example.get("case", {})}, {})
            self.assertEqual(found.status, example["outcome"], found.reason)

    def test_every_type_is_described(self):
        for kind in self.types():
            self.assertRegex(kind.summary, r"^[A-Z].*\.$")
            self.assertTrue(kind.prepare.__doc__)
            self.assertGreaterEqual(kind.version, 1)
            for parameter in kind.parameters:
                self.assertTrue(parameter.text)
                self.assertNotIn(parameter.name, kaizen.ENVELOPE_NAMES)

    def test_whatever_the_evidence_the_outcome_is_sound(self):
        for kind in self.types():
            for name, _, outcome in result_lines(kind):
                with self.subTest(evidence=name):
                    self.assertIn(outcome.status, ("pass", "fail", "error", "not_applicable"))
                    if outcome.score is not None:
                        self.assertTrue(math.isfinite(outcome.score) and 0 <= outcome.score <= 1)
                    self.assertEqual(outcome.score is None, outcome.status in ("error", "not_applicable"))
                    self.assertTrue(outcome.reason)
                    self.assertNotIn("\n", outcome.reason)
                    self.assertLess(len(outcome.reason), 2000)
                    self.assertIsInstance(outcome.evidence, tuple)
                    line = json.dumps([outcome.reason, outcome.value, outcome.evidence], allow_nan=False)
                    self.assertLess(len(line), 20_000)

    def test_ten_megabytes_of_output_are_looked_at_in_seconds(self):
        output = "word 12,5 " * 1_000_000
        for kind in self.types():
            case = {"id": "c1", "input": "?", **kind.example.get("case", {})}
            began = time.process_time()
            observation = {"case_id": "c1", "trial": 1, "status": "completed", **kind.example["observation"], "output": output}
            outcome = kaizen.prepare_entry(kind.example["entry"]).evaluate(observation, case, {})
            self.assertLess(time.process_time() - began, 30)
            self.assertLess(len(json.dumps([outcome.reason, outcome.value, outcome.evidence])), 20_000)

    def test_without_output_and_steps_nothing_passes(self):
        for kind in self.types():
            for name, _, outcome in result_lines(kind):
                if name in ("no output", "null"):
                    with self.subTest(evidence=name):
                        self.assertNotEqual(outcome.status, "pass")

    def test_negation_is_an_involution_on_definite_results(self):
        for kind in self.types():
            found = {}
            for name, negate, outcome in result_lines(kind):
                found.setdefault(name, {})[negate] = outcome
            for name, pair in found.items():
                with self.subTest(evidence=name):
                    plain, negated = pair[False], pair[True]
                    if plain.status in ("error", "not_applicable"):
                        self.assertEqual(negated.status, plain.status)
                    elif plain.status != negated.status:
                        self.assertEqual(negated.score, kaizen.exact_complement(plain.score))
                    else:  # nothing to look at, which is never negated
                        self.assertEqual((plain.status, plain.score, negated.score), ("fail", 0.0, 0.0))

    def test_time_grows_no_faster_than_what_is_looked_at(self):
        """From 5 kB to 40 kB a quadratic type would take 64 times as long, 8 times its size."""
        suspects = [leaf.name for leaf in measured_leaves((5_000, 40_000), 0.002) if leaf.growth > 3]
        for leaf in measured_leaves((5_000, 40_000), 0.02) if suspects else ():
            if leaf.name in suspects:
                with self.subTest(type=leaf.name):
                    self.assertLess(leaf.growth, 4)

    def test_key_order_does_not_change_the_fingerprint(self):
        def reversed_keys(value):
            if isinstance(value, dict):
                return {key: reversed_keys(item) for key, item in reversed(value.items())}
            return [reversed_keys(item) for item in value] if isinstance(value, list) else value

        for kind in self.types():
            documents = [kaizen.prepare_entry(entry).document for entry in (kind.example["entry"], reversed_keys(kind.example["entry"]))]
            self.assertEqual(kaizen.fingerprint(documents[0]), kaizen.fingerprint(documents[1]))

    def test_a_misspelt_parameter_is_refused_with_the_nearest_name(self):
        for kind in self.types():
            for name in kind.example["entry"].keys() - {"id", "type"}:
                entry = {key: value for key, value in kind.example["entry"].items() if key != name}
                misspelt = name + "x"
                with self.assertRaises(kaizen.ConfigurationError) as caught:
                    kaizen.prepare_entry({**entry, misspelt: kind.example["entry"][name]})
                self.assertEqual(caught.exception.pointer, f"/{misspelt}")
                self.assertEqual(caught.exception.hint, f"did you mean '{name}'?")

    def test_wrong_kinds_are_refused_and_never_crash(self):
        values = (None, True, 7, 1.5, "", "x", [], [7], ["x"], {}, {"x": 1}, nested(50))
        for kind in self.types():
            for parameter in kind.parameters:
                for value in values:
                    with self.subTest(parameter=parameter.name, value=str(value)[:40]):
                        try:
                            kaizen.prepare_entry({**kind.example["entry"], parameter.name: value})
                        except kaizen.ConfigurationError as error:
                            self.assertTrue(error.message)
                            self.assertNotIn("\n", error.message)


if __name__ == "__main__":
    unittest.main()
