"""Provenance: what counts as an id, an amount, a quote, and where it has to stand."""

import json
import random
import unittest
import unittest.mock

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import DATA, StrictTestCase

import kaizen

ALL_KINDS = ("ids", "numbers", "amounts", "dates", "urls", "emails", "quotes")


def found_in(text, *kinds):
    """[(kind, text)] of what a text states."""
    return [(hit.kind, text[hit.start : hit.end]) for hit in kaizen.find_occurrences(text, frozenset(kinds or ALL_KINDS))]


def agree(kind, stated, source):
    """Whether a text of this kind is found in a source."""
    entry = entry_of("provenance", kinds=[kind], sources=["input"])
    outcome = outcome_of(entry, stated, {"id": "c1", "input": source})
    if outcome.value["occurrences"] == 0:
        raise AssertionError(f"nothing is stated in {stated!r}")
    return outcome.status == "pass"


def tool(result, name="find", **fields):
    """A tool call that went well, with its result."""
    return {"kind": "tool", "name": name, "status": "ok", "result": result, **fields}


def said(role, text):
    """A message."""
    return {"kind": "message", "role": role, "text": text}


def provenance(steps=None, output=None, case=None, **settings):
    """The outcome of `provenance` of ids, unless *settings* say otherwise."""
    settings = settings if "kinds" in settings or "patterns" in settings else {"kinds": ["ids"], **settings}
    fields = {} if steps is None else {"steps": steps}
    return outcome_of(entry_of("provenance", **settings), output, case, **fields)


class Occurrences(StrictTestCase):
    """What a text states, labelled by hand."""

    def test_ids(self):
        table = [
            ("Order A-7 and ORD-1234, ref. hb-12.", ["A-7", "ORD-1234", "hb-12"]),
            ("Ticket #4711 is open, card 12345678.", ["#4711", "12345678"]),
            ("id 3f1c2a50-1111-4222-8333-444455556666", ["3f1c2a50-1111-4222-8333-444455556666"]),
            ("the 3rd of 12 at 10am, 5kg, 24h, a 5-star hotel, a 10-year-old", []),
            ("$1250000 or 12,345,678.90 and USD12", []),
            ("on 2026-03-05 at 2026-03-05T10:00:00Z", []),
            ("see https://shop.example/a/ORD-17 or write to k20@shop.example", []),
            ("nothing here, 7, x", []),
        ]
        for text, expected in table:
            with self.subTest(text):
                self.assertEqual([shown for kind, shown in found_in(text) if kind == "ids"], expected)

    def test_numbers_and_amounts(self):
        table = [
            ("2 nights at $625 make $1,250.00 in all", [("numbers", "2"), ("amounts", "$625"), ("amounts", "$1,250.00")]),
            ("12,50 € or EUR 30 or 5 dollars", [("amounts", "12,50"), ("amounts", "30"), ("amounts", "5")]),
            ("1. First\n2. Second, 25 %", [("numbers", "25")]),
            ("Order A-7 of 5 March 2026, v1.2.3", []),
            ("write to b2@shop.example, see https://shop.example/7", []),
        ]
        for text, expected in table:
            with self.subTest(text):
                self.assertEqual(found_in(text, "numbers", "amounts"), expected)
        self.assertEqual(found_in("2 for $5", "amounts"), [("amounts", "$5")])
        self.assertEqual(found_in("2 for $5", "numbers"), [("numbers", "2"), ("amounts", "$5")])

    def test_dates(self):
        for text in ("5 March 2026", "March 5th", "2026-03-05", "05.03.2026", "3/25/2026", "5th of March, 2026", "2026-03-05T10:00:00Z"):
            self.assertEqual([shown for _, shown in found_in(f"on {text} or so", "dates")], [text])
        for text in ("31.02.2026", "version 1.2.3", "10.0.0.1", "24/7", "may be"):
            self.assertEqual(found_in(text, "dates"), [], text)

    def test_urls_and_emails(self):
        text = "See [this](https://shop.example/a?b=1), www.shop.example/help. Mail bob.x+y@shop.example."
        self.assertEqual(found_in(text, "urls", "emails"), [
            ("urls", "https://shop.example/a?b=1"), ("urls", "www.shop.example/help"), ("emails", "bob.x+y@shop.example"),
        ])  # fmt: skip
        self.assertEqual(found_in("https://en.example/wiki/A_(b)", "urls"), [("urls", "https://en.example/wiki/A_(b)")])

    def test_quotes_have_three_words_and_an_ellipsis_splits_them(self):
        table = [
            ('It says "returns take five days".', ["returns take five days"]),
            ("It says “returns take five days.”", ["returns take five days"]),
            ("„Rückgabe nach fünf Tagen“ und «trois mots ici»", ["Rückgabe nach fünf Tagen", "trois mots ici"]),
            ('"five days" and "no"', []),
            ('"returns take five … days but only once"', ["returns take five", "days but only once"]),
            ('"returns take five [...] days"', ["returns take five"]),
            ('5" and 7" of one two three', ["and 7"][:0]),
        ]
        for text, expected in table:
            with self.subTest(text):
                self.assertEqual([shown for _, shown in found_in(text, "quotes")], expected)


class Agreement(StrictTestCase):
    """Which forms agree, labelled by hand."""

    def test_forms_that_agree_and_forms_that_do_not(self):
        table = [
            ("ids", "Order K-20", "the order k20", True),
            ("ids", "Order K-20", {"orders": {"K-20": {}}}, True),
            ("ids", "Order K-20", "K-200", False),
            ("ids", "Order K-20", "https://shop.example/orders/K-20/items", True),
            ("ids", "#4711", "order 4711", True),
            ("ids", "Order K-20", '{"text": "order_K-20"}', True),
            ("amounts", "$1,250.00", {"total": 1250}, True),
            ("amounts", "$1,250.00", "1250", True),
            ("amounts", "12,50 €", {"total": 12.5}, True),
            ("amounts", "1.250,00 €", {"total": 1250}, True),
            ("amounts", "$12.51", {"total": 12.5}, False),
            ("numbers", "0.1", "1/10 is .1", True),
            ("numbers", "-5", "5", True),
            ("numbers", "17", "A-17", True),  # a source is read generously
            ("dates", "5 March 2026", "2026-03-05T10:00:00Z", True),
            ("dates", "March 5th", "2026-03-05", True),
            ("dates", "5 March 2026", "on March 5", True),
            ("dates", "5 March 2026", "2025-03-05", False),
            ("dates", "6 March 2026", "2026-03-05", False),
            ("dates", "25.03.2026", "3/25/2026", True),
            ("urls", "https://Shop.example/A/", "http://www.shop.example/A", True),
            ("urls", "https://shop.example/a", "https://shop.example/b", False),
            ("urls", "https://shop.example/a", "https://shop.example/a/b", False),
            ("emails", "Bob@Shop.example", "bob@shop.example", True),
            ("emails", "bob@shop.example", "rob@shop.example", False),
            ("quotes", "“returns take  five days,”", "Our returns take\nfive days. Always.", True),
            ("quotes", "“it’s free of charge”", "it's free of charge", True),
            ("quotes", '"Returns take five days"', "returns take five days", False),  # as written
            ("quotes", '"take five day"', "returns take five days", False),
            ("quotes", '"five days returns"', "returns take five days", False),
            ("quotes", '"the ﬁne print says"', "the fine print says", True),
        ]
        for kind, stated, source, expected in table:
            with self.subTest(kind=kind, stated=stated, source=source):
                self.assertEqual(agree(kind, stated, source), expected)

    def test_a_phrase_search_agrees_with_a_search_one_by_one(self):
        source = random.Random(11)
        for _ in range(200):
            tokens = tuple(source.choice("ab") for _ in range(source.randint(0, 20)))
            phrases = {tuple(source.choice("ab") for _ in range(source.randint(1, 5))) for _ in range(6)}
            expected = {phrase for phrase in phrases if any(tokens[at : at + len(phrase)] == phrase for at in range(len(tokens)))}
            search = kaizen.PhraseSearch(phrases)
            cut = source.randint(0, len(tokens))
            found = search.scan(tokens)
            self.assertEqual((set(found), len(found)), (expected, len(expected)))
            self.assertEqual(search.scan(tokens[:cut]), [])  # each is told once


class Sources(StrictTestCase):
    """Where an occurrence may stand, and when."""

    def test_an_output_may_state_what_any_default_source_holds(self):
        steps = [said("user", "It is A-1."), tool({"ref": "A-2"}), said("assistant", "A-3")]
        table = [("A-1", "pass"), ("A-2", "pass"), ("A-3", "fail"), ("A-4", "pass"), ("A-5", "pass"), ("A-6", "fail")]
        for stated, status in table:
            with self.subTest(stated):
                case = {"id": "c1", "input": "about A-4", "context": {"x": ["A-5"]}}
                self.assertEqual(provenance(steps, f"See {stated}.", case).status, status)

    def test_messages_and_arguments_may_state_what_stood_before(self):
        result = tool({"ref": "A-2"})
        call = {"kind": "tool", "name": "get", "args": {"order": "A-2"}}
        table = [
            ("messages", [result, said("assistant", "A-2")], "pass"),
            ("messages", [said("assistant", "A-2"), result], "fail"),
            ("messages", [said("assistant", "A-2"), said("user", "A-2"), said("assistant", "A-2")], "fail"),
            ("tool_args", [result, call], "pass"),
            ("tool_args", [call, result], "fail"),
            ("tool_args", [{**call, "result": "A-2"}], "fail"),  # its own result
            ("tool_args", [{**result, "batch": 1}, {**call, "batch": 1}], "fail"),  # issued together
            ("tool_args", [said("user", "A-2"), call], "pass"),
            ("tool_args", [said("assistant", "A-2"), call], "fail"),
        ]
        for scope, steps, status in table:
            with self.subTest(scope=scope, steps=steps):
                self.assertEqual(provenance(steps, scope=scope).status, status)

    def test_an_argument_that_is_called_id_holds_one(self):
        def checked(**args):
            return provenance([said("user", "order 17 please"), {"kind": "tool", "name": "get", "args": args}], scope="tool_args")

        self.assertEqual(checked(order_id=17).status, "pass")
        self.assertEqual(checked(orderId="17").status, "pass")
        self.assertEqual(checked(order_id=18).status, "fail")
        self.assertEqual(checked(ids=["17", "18"]).status, "fail")
        self.assertEqual(checked(days=18, paid=1, hidden="x").value["occurrences"], 0)

    def test_what_the_agent_makes_up_by_right_is_left_out(self):
        steps = [{"kind": "tool", "name": "pay", "args": {"request_id": "r-9f3", "lines": [{"id": "n-1"}]}}]
        self.assertEqual(provenance(steps, scope="tool_args").status, "fail")
        self.assertEqual(provenance(steps, scope="tool_args", generated=["request_id", "/lines/*/id"]).status, "pass")
        self.assertEqual(provenance([], "Call A-9 or A-8", allow=["A-9"]).value, {"occurrences": 2, "unfounded": 1})
        self.assertEqual(provenance([], "Call 112", kinds="numbers", allow=[112]).status, "pass")

    def test_a_case_may_allow_nothing(self):
        for allowed, status in (([], "fail"), (["A-9"], "pass")):
            case = {"id": "c1", "input": "?", "expected": {"allowed": allowed}}
            self.assertEqual(provenance([], "Call A-9", case, allow={"$case": "/expected/allowed"}).status, status)

    def test_sources_may_be_any_path(self):
        entry = entry_of("provenance", patterns=[r"\[(hb-\d+)\]"], sources=["evidence/passages/*/id"])
        evidence = {"passages": [{"id": "hb-12", "text": "hb-13"}, {"id": "hb-1"}]}
        self.assertEqual(status_of(entry, "as said in [hb-12]", evidence=evidence), "pass")
        outcome = outcome_of(entry, "as said in [hb-12] and [hb-13]", evidence=evidence)
        self.assertEqual((outcome.status, outcome.score, outcome.evidence), ("fail", 0.5, ({"start": 24, "end": 29},)))
        self.assertEqual(outcome.reason, "1 of 2 occurrences stands in no earlier source: text 'hb-13'")

    def test_more_sources_never_make_an_outcome_worse(self):
        steps = [said("user", "A-1"), tool("A-2"), said("assistant", "A-3")]
        sources = ["messages.user", "steps/*/result", "messages.assistant", "input"]
        scores = [provenance(steps, "A-1 A-2 A-3 A-4", {"id": "c1", "input": "A-4"}, sources=sources[:many]).score for many in range(1, 5)]
        self.assertEqual(scores, [0.25, 0.5, 0.75, 1.0])

    def test_an_output_that_is_no_text_is_looked_at_leaf_by_leaf(self):
        outcome = provenance([tool("A-2")], {"order": "A-2", "lines": ["\nA-9"]})
        self.assertEqual((outcome.value, outcome.evidence), ({"occurrences": 2, "unfounded": 1}, ({"pointer": "/lines/0"},)))

    def test_a_text_without_any_occurrence_passes_and_no_output_is_missing(self):
        self.assertEqual(provenance([], "Hello.").status, "pass")
        self.assertEqual(provenance([], None).status, "error")
        self.assertEqual(provenance(None, "Hello.", scope="messages").status, "error")


class Recording(StrictTestCase):
    """What the recording leaves open is an error only where it decides."""

    def test_cut_and_missing_sources(self):
        cut = tool("A-2 and", truncated=["result"])
        table = [
            (provenance([cut], "A-2"), "pass"),
            (provenance([cut], "A-3"), "error"),
            (provenance([said("assistant", "A-3"), cut], scope="messages"), "fail"),  # cut only later
            (provenance([cut, said("assistant", "A-3")], scope="messages"), "error"),
            (provenance(None, "A-3"), "error"),
            (provenance(None, "A-3", {"id": "c1", "input": "A-3"}), "pass"),
            (provenance(None, "A-3", sources=["evidence/passages"]), "error"),
            (provenance([tool("x")], "A-3", sources=["context", "steps/*/result"]), "fail"),  # a case without context has none
            (provenance([{**said("assistant", "see A-1"), "truncated": ["text"]}], scope="messages"), "error"),  # perhaps A-17
        ]
        for number, (outcome, status) in enumerate(table):
            with self.subTest(number):
                self.assertEqual(outcome.status, status)

    def test_the_reason_names_what_was_cut(self):
        outcome = provenance([tool("A-2", truncated=["result"])], "A-3")
        self.assertEqual(outcome.reason, "whether id 'A-3' stands in an earlier source is not known: step 0 was cut short")


class RealTrace(StrictTestCase):
    """A recorded session in which the answer names a refund that no tool gave."""

    def setUp(self):
        self.steps = []
        for line in (DATA / "traces" / "claude-code-session.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            message = record.get("message")
            if not message or record.get("isSidechain"):
                continue
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part["type"] == "text":
                    self.steps.append(said(message["role"], part["text"]))
                elif part["type"] == "tool_use":
                    self.steps.append({"kind": "tool", "name": part["name"], "args": part["input"], "id": part["id"]})
                elif part["type"] == "tool_result":
                    step = next(step for step in self.steps if step.get("id") == part["tool_use_id"])
                    step.update(result=part["content"][0]["text"], status="error" if part["is_error"] else "ok")

    def checked(self, kind, **settings):
        return outcome_of(entry_of(kind, **settings), self.steps[-1]["text"], {"id": "c1", "input": "?"}, steps=self.steps)

    def test_the_days_were_looked_up_and_the_refund_was_not(self):
        self.assertEqual(self.checked("provenance", kinds=["numbers"]).value, {"occurrences": 2, "unfounded": 0})  # 17 and 12
        outcome = self.checked("provenance", kinds=["ids"])
        self.assertEqual(outcome.reason, "1 of 1 occurrence stands in no earlier source: id 'R-204'")
        self.assertEqual(self.checked("provenance", kinds=["ids"], scope="tool_args").status, "pass")

    def test_the_other_leaves_find_nothing_wrong_with_its_one_call(self):
        schema = {"type": "object", "required": ["order_id"], "properties": {"order_id": {"type": "integer"}}}
        tools = {"mcp__shop__lookup_order": {"args": schema, "result": {"required": ["days_late"]}}}
        self.assertEqual(self.checked("tool_schema", tools=tools).status, "pass")
        self.assertEqual(self.checked("loops").value, {"identical": 1, "cycle_repeats": 0})
        self.assertEqual(self.checked("errors", must_recover=True, must_report=True, no_reuse=True).status, "pass")
        self.assertEqual(self.checked("policy", rules=[{"match": {"name": "mcp__*__lookup_*"}, "effect": "allow"}], default="deny").value["governed"], 1)
        self.assertEqual(self.checked("effects", tools={"mcp__*__refund*": {}}, none=True).status, "pass")


class Hostile(StrictTestCase):
    """Wrong entries, and texts that are long or meant to be slow."""

    def test_refusals(self):
        for settings, pointer in [
            ({}, ""),
            ({"kinds": []}, "/kinds"),
            ({"kinds": ["id"]}, "/kinds/0"),
            ({"kinds": "amount"}, "/kinds/0"),
            ({"patterns": ["a", "("]}, "/patterns/1"),
            ({"patterns": [""]}, "/patterns/0"),
            ({"kinds": ["ids"], "scope": "all"}, "/scope"),
            ({"kinds": ["ids"], "sources": ["evidance/x"]}, "/sources/0"),
            ({"kinds": ["ids"], "sources": []}, "/sources"),
            ({"kinds": ["ids"], "generated": ["x"]}, "/generated"),
        ]:
            with self.subTest(settings):
                self.assertEqual(refusal_of(entry_of("provenance", **settings))[0], pointer)

    @unittest.mock.patch.object(kaizen, "PATTERN_SECONDS", 0.03)
    def test_a_pattern_that_never_ends_is_an_error(self):
        outcome = provenance([], "a" * 40 + "!", patterns=["^(a+)+$"])
        self.assertEqual((outcome.status, "stopped after" in outcome.reason), ("error", True))

    def test_hostile_texts_take_linear_time(self):
        for part in ("word 12,5 ", '"a b c ', "A-7", "1,", "1.", "www.", "a@", "a.", "“", "…", "[..", "march 5 ", "- ", "\ud83d", "$", "#1", "İ 5 may "):
            with self.subTest(part):
                provenance([], part * (30_000 // len(part)), kinds=list(ALL_KINDS))  # hangs if it is not

    def test_many_quotes_in_a_long_source_are_looked_up_in_one_pass(self):
        quotes = " ".join(f'"a b c{number} d"' for number in range(5_000))
        outcome = provenance([], quotes, {"id": "c1", "input": "a b c7 d " * 20_000}, kinds=["quotes"])
        self.assertEqual(outcome.value, {"occurrences": 5_000, "unfounded": 4_999})
        self.assertEqual(len(outcome.evidence), 20)

    def test_deep_and_odd_values_end_in_an_outcome(self):
        deep = "A-1"
        for _ in range(150):
            deep = {"a": [deep]}
        self.assertEqual(provenance([tool(deep)], "A-1").status, "pass")
        self.assertEqual(provenance([tool("A-1 \ud83d \x00")], "A-1 \ud83d").status, "pass")
        self.assertEqual(outcome_of(entry_of("provenance", kinds="ids"), "A-1", steps=7, tool_calls=7).status, "error")
        odd = [{"kind": "tool", "args": "A-2", "result": None}, {"kind": "message", "role": "assistant", "text": 5}, {}]
        self.assertEqual(provenance(odd, scope="tool_args").value, {"occurrences": 1, "unfounded": 1})


if __name__ == "__main__":
    unittest.main()
