"""The runner protocol: what is asked, and what counts as an answer."""

import json
import unittest

import support
from support import kaizen


def case(**document):
    document = {"id": "refund-1", "input": {"message": "hello"}, **document}
    return kaizen.Case(document["id"], document, "test_cases.jsonl", 1, "sha256:0")


class Requests(support.StrictTestCase):
    """Nothing about a case is sent but its id, input and context."""

    def test_the_request_is_that_of_the_protocol(self):
        secret = {"expected": "KEY", "split": "holdout", "tags": ["KEY"], "evaluators": ["KEY"], "notes": "KEY", "metadata": {"a": "KEY"}}
        request = kaizen.TrialRequest(case(context=["more"], **secret), "candidate", 2, 5, 1, 4242)
        line = kaizen.request_line(request)
        self.assertEqual(
            json.loads(line),
            {
                "protocol": "1.2",
                "case": {"id": "refund-1", "input": {"message": "hello"}, "context": ["more"]},
                "run": {"stage": "candidate", "trial": 2, "repetitions": 5, "attempt": 1, "seed": 4242},
            },
        )
        self.assertTrue(line.endswith(b"\n") and line.count(b"\n") == 1)

    def test_an_absent_context_is_null(self):
        request = kaizen.request_document(kaizen.TrialRequest(case(), "baseline", 1, 1, 1, 0))
        self.assertIsNone(request["case"]["context"])


class Answers(support.StrictTestCase):
    """One JSON object: all of standard output, or its last line."""

    def read(self, stdout):
        return kaizen.read_answer(stdout if isinstance(stdout, bytes) else stdout.encode("utf-8"))

    def fields(self, stdout):
        fields, error = self.read(stdout)
        self.assertIsNone(error)
        return fields

    def refused(self, stdout, error_type, pattern):
        with self.assertRaisesRegex(kaizen.ProtocolError, pattern) as caught:
            self.read(stdout)
        self.assertEqual(caught.exception.error_type, error_type)

    def test_an_object_alone_is_the_answer(self):
        for stdout in ('{"output": 1}', '\n\n {"output": 1}\r\n\n', '{\n  "output": 1\n}\n', '\ufeff{"output": 1}'):
            with self.subTest(stdout):
                self.assertEqual(self.fields(stdout), {"output": 1})

    def test_the_last_line_is_the_answer_and_earlier_ones_are_kept_as_log(self):
        fields = self.fields('loading {model: small}\n{"not": "the answer"}\n\n{"output": "ready"}\n\n')
        self.assertEqual(fields, {"output": "ready", "log": 'loading {model: small}\n{"not": "the answer"}'})

    def test_an_output_of_null_is_an_output(self):
        self.assertEqual(self.fields('{"output": null}'), {"output": None})

    def test_log_in_another_encoding_does_not_spoil_the_answer(self):
        self.assertEqual(self.fields(b'caf\xe9\n{"output": 1}')["log"], "caf\ufffd")

    def test_a_long_log_is_cut_to_its_end_and_says_so(self):
        fields = self.fields("é" * 40_000 + '\n{"output": 1}')
        self.assertLess(len(fields["log"].encode("utf-8")), kaizen.STDERR_LIMIT + 100)
        self.assertTrue(fields["log"].startswith(f"[{80_000 - kaizen.STDERR_LIMIT:,} bytes of standard output before this were cut]\né"))

    def test_what_is_no_answer_is_refused_with_the_reason(self):
        for stdout, error_type, pattern in (
            ("", "no_answer", "nothing was printed"),
            (" \n\t\n", "no_answer", "nothing was printed"),
            ("done", "not_json", "^standard output is not one JSON object: not JSON"),
            ('{"output": 1}\nclosed 1 handle {}', "not_json", "^the last line on standard output is not one JSON object"),
            ('{\n"output": NaN\n}', "not_json", "^standard output .*NaN is not a JSON number"),
            ('{"output": NaN}', "not_json", "NaN is not a JSON number"),
            ('{"output": 1e999}', "not_json", "too large"),
            ('{"output": 1, "output": 2}', "not_json", "'output' occurs twice"),
            ('{"output": ' + "[" * 900 + "]" * 900 + "}", "not_json", "nested"),
            ('{"output": ' + "9" * 5000 + "}", "not_json", "too many digits"),
            (b'{"output": "caf\xe9"}', "not_utf8", r"not UTF-8 \(byte 15 of standard output\)"),
            (b'log\n{"output": "caf\xe9"}', "not_utf8", r"not UTF-8 \(byte 19 of standard output\)"),
            ("[1]", "not_an_object", "is a JSON array"),
            ('"text"', "not_an_object", "is a JSON string"),
            ("{}", "no_output", "neither 'output' nor 'error'$"),
            ('{"ouput": 1}', "no_output", "neither 'output' nor 'error'; it has 'ouput'"),
            ('{"error": null}', "no_output", "neither"),
        ):
            with self.subTest(stdout[:40]):
                self.refused(stdout, error_type, pattern)

    def test_half_a_surrogate_pair_is_replaced_and_noted(self):
        fields = self.fields('{"output": "done \\ud83d", "metadata": {"\\udc00": "\\\\ud83d \\ud83d\\ude00"}}')
        self.assertEqual((fields["output"], fields["metadata"]), ("done \ufffd", {"\ufffd": "\\ud83d \U0001f600"}))
        self.assertEqual(fields["notes"], ["half of a surrogate pair in the answer was replaced by U+FFFD"])
        self.assertNotIn("notes", self.fields('{"output": "\\\\ud83d"}'))

    def test_every_field_is_kept_as_given(self):
        answer = {
            "output": [1, {"a": None}],
            "steps": [
                {"kind": "tool", "name": "pay", "args": {"id": 7}, "status": "denied", "result": None, "id": 3, "batch": "b", "extra": {}},
                {"kind": "message", "role": "user", "text": "yes", "truncated": ["text"], "duration_ms": 1.5, "turn": 1, "started_at": 17},
            ],
            "agents": ["a", "b"], "usage": {"input_tokens": 10, "details": {"cached": 1}}, "cost": {"total_usd": 0.0},
            "state": {"before": {}, "after": []}, "files": {"a/b.txt": {"change": "added", "bytes": 3, "text": "abc"}},
            "evidence": {"passages": []}, "finish_reason": "stop", "metadata": {"model": "m"},
        }
        self.assertEqual(self.fields(json.dumps(answer)), answer)

    def test_null_fields_count_as_absent(self):
        self.assertEqual(self.fields('{"output": 1, "steps": null, "error": null, "cost": null, "usage": null}'), {"output": 1})
        self.assertEqual(self.fields('{"output": 1, "cost": {"total_usd": null}}')["cost"], {"total_usd": None})

    def test_tool_calls_are_shorthand_for_steps(self):
        self.assertEqual(
            self.fields('{"output": 1, "tool_calls": [{"name": "pay", "args": {"id": 7}}]}'),
            {"output": 1, "steps": [{"kind": "tool", "name": "pay", "args": {"id": 7}}]},
        )
        both = self.fields('{"output": 1, "steps": [], "tool_calls": [{"name": "pay"}]}')
        self.assertEqual((both["steps"], both["tool_calls"]), ([], [{"name": "pay"}]))

    def test_a_wrong_shape_is_named_with_its_place(self):
        for answer, pattern in (
            ({"steps": {}}, r"^answer#/steps must be a list of objects, \[…\], not an object$"),
            ({"steps": ["x"]}, r"^answer#/steps/0 must be an object"),
            ({"steps": [{"name": "x"}]}, r"^answer#/steps/0 has no 'kind'"),
            (
                {"steps": [{"kind": "tool"}, {"kind": "tool", "status": "fine"}]},
                r"^answer#/steps/1/status must be one of ok, error, denied or timeout, not 'fine'",
            ),
            ({"steps": [{"kind": "tool", "turn": -1}]}, r"^answer#/steps/0/turn must be a whole number"),
            ({"tool_calls": [{"args": {}}]}, r"^answer#/tool_calls/0 has no 'name'"),
            ({"agents": "a"}, r"^answer#/agents must be a list"),
            ({"usage": {"input_tokens": "10"}}, r"^answer#/usage/input_tokens must be a number"),
            ({"usage": {"input_tokens": True}}, r"^answer#/usage/input_tokens must be a number, 0 or more, not true"),
            ({"cost": {"total_usd": -1}}, r"^answer#/cost/total_usd must be a number, 0 or more, not -1"),
            ({"cost": 3}, r"^answer#/cost must be an object"),
            ({"files": {"a~/b": {"bytes": 1}}}, r"^answer#/files/a~0~1b has no 'change'"),
            ({"files": {"a": {"change": "new"}}}, r"^answer#/files/a/change must be one of added"),
            ({"files": {"a": 1}}, r"^answer#/files/a must be an object"),
            ({"finish_reason": 1}, r"^answer#/finish_reason must be a text"),
            ({"metadata": []}, r"^answer#/metadata must be an object"),
            ({"error": "boom"}, r"^answer#/error must be an object"),
            ({"error": {"type": "x"}}, r"^answer#/error has no 'message'"),
            ({"error": {"message": "x", "class": "runner"}}, r"^answer#/error/class must be one of agent or environment, not 'runner'"),
        ):
            with self.subTest(answer):
                self.refused(json.dumps({"output": 1, **answer}), "wrong_shape", pattern)

    def test_an_error_takes_the_place_of_the_output(self):
        fields, error = self.read('{"error": {"type": "quota", "message": "used up", "class": "environment"}, "steps": []}')
        self.assertEqual((fields, error), ({"steps": []}, {"type": "quota", "message": "used up", "class": "environment"}))
        self.assertEqual(kaizen.reported_error(error, "agent"), {"class": "environment", "type": "quota", "message": "used up"})
        self.assertEqual(kaizen.reported_error({"message": "m"}, "agent"), {"class": "agent", "type": "reported", "message": "m"})

    def test_claims_to_have_passed_are_set_aside(self):
        fields = self.fields('{"output": 1, "passed": true, "score": 1, "metadata": {"claimed": {"by": "me"}, "model": "m"}}')
        self.assertEqual(fields, {"output": 1, "metadata": {"claimed": {"by": "me", "passed": True, "score": 1}, "model": "m"}})

    def test_an_unknown_field_is_left_out_and_noted_with_the_nearest(self):
        fields = self.fields('{"output": 1, "step": [], "request": 3, "protocol": "1.2"}')
        self.assertEqual(fields, {"output": 1, "notes": ["field 'step' is not in the protocol and was left out (did you mean 'steps'?)"]})

    def test_an_excerpt_shows_both_ends(self):
        self.assertEqual(kaizen.cut_middle(b" short ", "/x"), ("short", []))
        shown = kaizen.cut_middle(b"a" * 5000 + b"\xff" + b"b" * 5000, "/x")
        self.assertEqual(shown, (f"{'a' * 240} … (9,521 characters left out) … {'b' * 240}", []))


class Seeds(support.StrictTestCase):
    """A seed depends on improvement seed, case and trial alone."""

    def test_each_trial_has_its_own(self):
        seeds = {kaizen.trial_seed(seed, name, trial) for seed in (1, 2) for name in ("a", "b") for trial in (1, 2)}
        self.assertEqual(len(seeds), 8)
        self.assertTrue(all(0 <= seed < 2**31 for seed in seeds))

    def test_it_never_changes(self):
        # SHA-256 of "4242\nrefund-001\n1" by sha256sum begins with this; its first 31 bits are the seed.
        self.assertEqual(kaizen.trial_seed(4242, "refund-001", 1), SHA_PREFIX >> 1)


SHA_PREFIX = 0x29c4fc3d


if __name__ == "__main__":
    unittest.main()
