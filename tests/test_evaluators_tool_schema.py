"""Tool_schema: whether each call is one that its tool accepts."""

import json
import random
import unittest
import unittest.mock

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import DATA, StrictTestCase

import kaizen

SCHEMA = {
    "type": "object",
    "required": ["order"],
    "properties": {"order": {"type": "string", "pattern": "^[A-Z]-[0-9]+$"}, "amount": {"type": "number", "minimum": 0}},
    "additionalProperties": False,
}
# The same tool in the forms that model APIs and tool servers use.
FORMS = [
    {"refund": SCHEMA},
    {"refund": {"args": SCHEMA}},
    [{"type": "function", "function": {"name": "refund", "description": "…", "parameters": SCHEMA, "strict": True}}],
    [{"type": "function", "name": "refund", "parameters": SCHEMA}],
    [{"name": "refund", "description": "…", "input_schema": SCHEMA}],
    [{"name": "refund", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": False}}],
]


def call(args, name="refund", **fields):
    """A tool call."""
    return {"kind": "tool", "name": name, "args": args, **fields}


def checked(steps, tools=FORMS[0], **settings):
    """The outcome of `tool_schema`."""
    return outcome_of(entry_of("tool_schema", tools=tools, **settings), steps=steps)


class Arguments(StrictTestCase):
    """What a tool accepts."""

    def test_calls_labelled_by_hand(self):
        table = [
            ({"order": "A-7"}, "pass"),
            ('{"order": "A-7", "amount": 12.5}', "pass"),
            ({"order": "A-7", "amount": "12.5"}, "fail"),
            ({"order": "A-7", "amount": True}, "fail"),
            ({"order": "seven"}, "fail"),
            ({"order": "A-7", "note": "x"}, "fail"),
            ({}, "fail"),
            (None, "fail"),
            ("", "fail"),
            ('{"order": "A-7"', "fail"),
            ('{"order": "A-7", "amount": NaN}', "fail"),
            ('{"order": "A-7", "order": "A-8"}', "fail"),
            ('"A-7"', "fail"),
            (["A-7"], "fail"),
        ]
        for tools in FORMS:
            for args, status in table:
                with self.subTest(args=args, tools=str(tools)[:40]):
                    self.assertEqual(checked([call(args)], tools).status, status)
                    steps = [call(args)]
                    self.assertEqual(outcome_of(entry_of("tool_schema"), steps=steps, evidence={"tools": tools}).status, status)

    def test_malformed_arguments_fail_without_a_schema_too(self):
        self.assertEqual(checked([call("{oops")], {"refund": {}}).status, "fail")
        self.assertEqual(checked([call({"anything": 1})], {"refund": {}}).status, "pass")
        self.assertEqual(checked([call("{oops")], [{"name": "refund"}]).status, "fail")

    def test_a_call_that_failed_is_checked_as_well(self):
        self.assertEqual(checked([call({}, status="error")]).status, "fail")

    def test_the_reason_names_call_and_step_and_the_evidence_the_place(self):
        steps = [{"kind": "message", "role": "user", "text": "Hi"}, call({"order": "A-7"}), call({"order": "A-7", "amount": -1})]
        outcome = checked(steps)
        self.assertTrue(outcome.reason.startswith('call 1 (step 2) refund {"order":"A-7","amount":-1}: args /amount'), outcome.reason)
        self.assertEqual(outcome.evidence, ({"step": 2, "pointer": "/args/amount"},))
        self.assertEqual((outcome.score, outcome.value), (0.5, {"calls": 2, "invalid": 1, "unknown": 0}))

    def test_unknown_tools_fail_or_are_told(self):
        steps = [call({"order": "A-7"}), call({"x": 1}, "lookup")]
        self.assertEqual(checked(steps).status, "fail")
        told = checked(steps, unknown_tool="info")
        self.assertEqual(told.status, "pass")
        self.assertEqual(told.reason, '1 call as the tools accept them; of unknown tools: call 1 (step 1) lookup {"x":1}')

    def test_the_order_of_calls_does_not_change_the_verdict(self):
        source = random.Random(9)
        steps = [call({"order": source.choice(["A-7", "x"])}) for _ in range(9)]
        first = checked(steps)
        source.shuffle(steps)
        self.assertEqual((checked(steps).score, checked(steps).value), (first.score, first.value))

    def test_the_calls_of_field_case_24_fit_the_schemas_of_their_tools(self):
        tools = {
            "search": {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}},
            "book": {"type": "object", "required": ["seat"], "properties": {"seat": {"type": "string", "pattern": "^[0-9]+[A-F]$"}}},
        }
        for line in (DATA / "field_cases" / "24-repeated-tool-calls" / "calls.jsonl").read_text(encoding="utf-8").splitlines():
            calls = [{"name": each["name"], "args": each["arguments"]} for each in json.loads(line)["actual"]]
            outcome = outcome_of(entry_of("tool_schema", tools=tools), tool_calls=calls)
            self.assertEqual(outcome.status, "pass" if calls else "not_applicable")


class Results(StrictTestCase):
    """What a tool gives back, where a schema says so."""

    def test_results_labelled_by_hand(self):
        tools = {"refund": {"result": {"type": "object", "required": ["id"]}}}
        table = [
            ({"result": {"id": 1}}, "pass"),
            ({"result": '{"id": 1}'}, "pass"),
            ({"result": {}}, "fail"),
            ({"result": "done"}, "fail"),
            ({"status": "ok"}, "error"),
            ({"status": "error", "result": "no such order"}, "pass"),  # a failure need not look like a result
            ({"result": {"id": 1}, "truncated": ["result"]}, "error"),
        ]
        for fields, status in table:
            with self.subTest(fields):
                self.assertEqual(checked([call({}, **fields)], tools).status, status)

    def test_a_text_may_be_meant_as_it_is(self):
        tools = {"refund": {"result": {"type": "string"}}}
        self.assertEqual(checked([call({}, result="4711")], tools).status, "pass")
        self.assertEqual(checked([call({}, result=4711)], tools).status, "fail")


class Evidence(StrictTestCase):
    """What is missing, cut or of no use."""

    def test_missing_evidence(self):
        self.assertEqual(status_of(entry_of("tool_schema", tools=FORMS[0])), "error")
        self.assertEqual(checked([]).status, "not_applicable")
        for evidence in (None, [], {"tools": []}, {"tools": "refund"}, {"tools": [{"name": ""}]}, {"tools": {"refund": {"typ": "object"}}}):
            with self.subTest(evidence):
                self.assertEqual(outcome_of(entry_of("tool_schema"), steps=[call({"order": "A-7"})], evidence=evidence).status, "error")

    def test_arguments_that_were_cut_short_are_an_error_unless_another_call_fails(self):
        cut = call('{"order": "A-', truncated=["args"])
        self.assertEqual(checked([cut]).status, "error")
        self.assertEqual(checked([cut, call({})]).status, "fail")

    def test_evidence_of_each_observation_counts(self):
        entry = entry_of("tool_schema")
        loose = {"tools": {"refund": {}}}
        self.assertEqual(status_of(entry, steps=[call({})], evidence=loose), "pass")
        self.assertEqual(status_of(entry, steps=[call({})], evidence={"tools": FORMS[0]}), "fail")


class Hostile(StrictTestCase):
    """Wrong entries, patterns that never end, deep values."""

    def test_refusals(self):
        for tools, pointer in [
            ([], "/tools"),
            ({}, "/tools"),
            ("refund", "/tools"),
            ({"refund": {"typ": "object"}}, "/tools/refund/typ"),
            ({"refund": {"args": {"type": "objekt"}}}, "/tools/refund/args/type"),
            ({"refund": 7}, "/tools/refund"),
            (["refund"], "/tools/0"),
            ([{"type": "function", "function": {"parameters": {}}}], "/tools/0"),
            ([{"name": "a"}, {"name": "a"}], "/tools/1"),
            ([{"function": {"name": "a", "parameters": {"pattern": "("}}}], "/tools/0/function/parameters/pattern"),
        ]:
            with self.subTest(tools=tools):
                self.assertEqual(refusal_of(entry_of("tool_schema", tools=tools))[0], pointer)

    @unittest.mock.patch.object(kaizen, "PATTERN_SECONDS", 0.03)
    def test_a_pattern_that_never_ends_is_an_error(self):
        tools = {"refund": {"properties": {"order": {"pattern": "^(a+)+$"}}}}
        outcome = checked([call({"order": "a" * 40 + "!"})], tools)
        self.assertEqual(outcome.status, "error")
        self.assertIn("stopped after", outcome.reason)

    def test_deep_arguments_and_ten_thousand_calls_are_no_trouble(self):
        deep = "x"
        for _ in range(150):
            deep = {"a": [deep]}
        self.assertIn(checked([call(deep)], {"refund": {"type": "object"}}).status, ("pass", "error"))
        outcome = checked([call({"order": "A-7"}), call({"order": 7})] * 5_000)
        self.assertEqual(outcome.value["invalid"], 5_000)
        self.assertLess(len(outcome.reason), 2000)


if __name__ == "__main__":
    unittest.main()
