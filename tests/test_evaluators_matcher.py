"""The step matcher: each key, arguments and results, shell words, ancestors, and what a recording leaves open."""

import unittest

import support
from support import kaizen


def decisions(document, steps):
    """What the matcher *document* says of each of *steps*."""
    return kaizen.compile_matcher(document).decisions(kaizen.Trail(steps))


def decide(document, step):
    """What the matcher *document* says of the one *step*."""
    return decisions(document, [step])[0]


def call(name="pay", **args):
    """A tool call with *args*."""
    return {"kind": "tool", "name": name, "args": args, "status": "ok"}


class Keys(support.StrictTestCase):
    """Every key by itself, and all of them together."""

    def test_an_empty_matcher_means_every_step(self):
        self.assertEqual(decisions({}, [call(), {"kind": "message"}, {}]), [True, True, True])

    def test_all_keys_given_must_hold(self):
        step = {"kind": "tool", "name": "pay", "args": {"n": 1}, "status": "ok", "agent": "billing", "turn": 2, "text": "paid it"}
        whole = {"kind": "tool", "name": "pay", "args": {"n": 1}, "status": "ok", "agent": "billing", "turn": 2, "text": "paid"}
        self.assertTrue(decide(whole, step))
        for key, other in (("kind", "skill"), ("name", "pa"), ("args", {"n": 2}), ("status", "error"), ("agent", "x"), ("turn", 1), ("text", "X")):
            with self.subTest(key=key):
                self.assertFalse(decide({**whole, key: other}, step))

    def test_names_are_globs_and_case_sensitive(self):
        # (name in the matcher, names that match, names that do not)
        table = [
            ("lookup", ["lookup"], ["Lookup", "lookup2", "mcp__a__lookup", "", None, 3]),
            (["lookup", "mcp__*__lookup"], ["lookup", "mcp__shop__lookup"], ["mcp__shop__lookups", "LOOKUP"]),
            ("*", ["", "anything"], [None]),
            ("get_?", ["get_a"], ["get_", "get_ab"]),
        ]
        for wanted, good, bad in table:
            for names, expected in ((good, True), (bad, False)):
                for name in names:
                    with self.subTest(wanted=wanted, name=name):
                        self.assertIs(decide({"name": wanted}, {"kind": "tool", "name": name}), expected)
        self.assertFalse(decide({"name": "lookup"}, {"kind": "tool"}))

    def test_kind_role_status_and_agent_take_one_text_or_a_list(self):
        steps = [{"kind": "tool", "status": "error", "agent": "a"}, {"kind": "message", "role": "user", "agent": "b"}]
        self.assertEqual(decisions({"kind": ["tool", "skill"]}, steps), [True, False])
        self.assertEqual(decisions({"role": ["user", "assistant"]}, steps), [False, True])
        self.assertEqual(decisions({"status": ["error", "denied"]}, steps)[0], True)
        self.assertEqual(decisions({"agent": ["b", "c"]}, steps), [False, True])

    def test_text_is_a_part_of_the_text_or_a_predicate(self):
        steps = [{"text": "Shall I go?"}, {"text": ""}, {"text": None}, {}]
        self.assertEqual(decisions({"text": "go"}, steps), [True, False, False, False])
        self.assertEqual(decisions({"text": "Go"}, steps), [False, False, False, False])
        self.assertEqual(decisions({"text": {"$regex": "\\?$"}}, steps), [True, False, False, False])
        self.assertEqual(decisions({"text": {"$eq": ""}}, steps), [False, True, False, False])
        self.assertEqual(decisions({"text": {"$exists": False}}, steps), [False, False, True, True])

    def test_turn_is_a_number_or_a_range(self):
        steps = [{"turn": turn} for turn in (0, 1, 2, 3)]
        self.assertEqual(decisions({"turn": 2}, steps), [False, False, True, False])
        self.assertEqual(decisions({"turn": {"min": 1, "max": 2}}, steps), [False, True, True, False])
        self.assertEqual(decisions({"turn": {"max": 0}}, steps), [True, False, False, False])
        self.assertEqual(decisions({"turn": {"min": 3}}, steps), [False, False, False, True])

    def test_any_is_a_list_of_matchers_beside_the_other_keys(self):
        document = {"kind": "tool", "$any": [{"name": "a"}, {"args": {"n": 1}}]}
        steps = [call("a"), call("b", n=1), call("b", n=2), {"kind": "skill", "name": "a"}]
        self.assertEqual(decisions(document, steps), [True, True, False, False])

    def test_under_means_an_ancestor_at_any_height(self):
        steps = [
            {"kind": "skill", "name": "deploy", "id": "s1"},
            {"kind": "span", "id": 7, "parent": "s1"},
            {"kind": "tool", "name": "rm", "id": "t1", "parent": 7},
            {"kind": "tool", "name": "rm", "id": "t2"},
            {"kind": "skill", "name": "deploy", "id": "s2", "parent": "s2"},  # its own parent: no endless search
        ]
        self.assertEqual(decisions({"under": {"kind": "skill", "name": "deploy"}}, steps), [False, True, True, False, False])
        self.assertEqual(decisions({"name": "rm", "under": {"kind": "span", "under": {"name": "deploy"}}}, steps)[2], True)

    def test_parents_in_a_ring_end(self):
        ring = [{"id": 1, "parent": 2}, {"id": 2, "parent": 1}]
        self.assertEqual(decisions({"under": {"name": "x"}}, ring), [False, False])

    def test_a_single_step_is_asked_by_itself(self):
        matcher = kaizen.compile_matcher({"name": "pay", "status": "ok"})
        self.assertTrue(matcher.matches(call("pay")))
        self.assertFalse(matcher.matches(call("get")))
        with self.assertRaisesRegex(kaizen.NotMeasurable, "no status"):
            matcher.matches({"name": "pay"})


class Arguments(support.StrictTestCase):
    """Arguments and results: names, pointers, modes, defaults, what is ignored."""

    def test_contains_asks_for_at_least_these_at_every_depth(self):
        step = call(order="A-7", customer={"name": "Ann", "phones": [{"no": "+49", "kind": "home"}]}, n=1)
        # (args, does it match?)
        table = [
            ({}, True),
            ({"order": "A-7"}, True),
            ({"customer": {"name": "Ann"}}, True),
            ({"customer": {"phones": [{"no": "+49"}]}}, True),
            ({"customer": {"phones": []}}, False),
            ({"customer": {"name": "Bob"}}, False),
            ({"n": 1.0}, True),
            ({"n": True}, False),
            ({"n": "1"}, False),
            ({"missing": None}, False),
            ({"missing": {"$exists": False}}, True),
            ({"order": {"$glob": "A-*"}, "n": {"$ge": 1}}, True),
            ({"/customer/name": "Ann"}, True),
            ({"/customer/phones/0/no": {"$regex": "^\\+"}}, True),
            ({"/customer/phones/1/no": {"$exists": False}}, True),
            ({"/customer/phones/*/kind": ["home"]}, True),
            ({"/customer/phones/*/kind": {"$count": {"of": "work", "max": 0}}}, True),
            ({"customer/name": "Ann"}, False),  # a name, not a pointer
            ({"/n": 1}, True),
        ]
        for args, expected in table:
            with self.subTest(args=args):
                self.assertIs(decide({"args": args}, step), expected)

    def test_json_held_in_text_is_parsed_where_a_pointer_goes_in(self):
        step = {"kind": "tool", "name": "pay", "args": '{"order": "A-7", "lines": "[{\\"sku\\": 5}]"}', "result": '{"ok": true, "id": "R-1"}'}
        self.assertTrue(decide({"args": {"order": "A-7"}}, step))
        self.assertTrue(decide({"args": {"/lines/0/sku": 5}}, step))
        self.assertTrue(decide({"args": {"lines": '[{"sku": 5}]'}}, step), "a value at the end of a pointer stays as it is")
        self.assertFalse(decide({"args": {"lines": [{"sku": 5}]}}, step))
        self.assertTrue(decide({"result": {"ok": True, "/id": {"$glob": "R-*"}}}, step))
        self.assertFalse(decide({"result": {"ok": 1}}, step))

    def test_a_text_that_is_not_json_has_no_fields(self):
        step = {"kind": "tool", "name": "run", "args": "ls -la", "result": "NaN"}
        self.assertFalse(decide({"args": {"ls": {"$exists": True}}}, step))
        self.assertTrue(decide({"args": {"$regex": "^ls"}}, step))
        self.assertTrue(decide({"args": "ls -la"}, step))
        self.assertFalse(decide({"result": {"x": 1}}, step))

    def test_a_result_may_be_asked_as_a_whole(self):
        self.assertTrue(decide({"result": {"$regex": "not found"}}, {"result": "order not found"}))
        self.assertTrue(decide({"result": "[1]"}, {"result": "[1]"}))
        self.assertTrue(decide({"result": [{"a": 1}]}, {"result": [{"a": 1, "b": 2}]}))
        self.assertTrue(decide({"result": None}, {"result": None}))
        self.assertFalse(decide({"result": None}, {}))
        self.assertTrue(decide({"result": {"$exists": False}}, {}))
        self.assertTrue(decide({"result": {"": {"$regex": "^\\{"}}}, {"result": '{"a": 1}'}))

    def test_absent_arguments_are_no_arguments(self):
        for step in ({"name": "list"}, {"name": "list", "args": None}, {"name": "list", "args": {}}):
            with self.subTest(step=step):
                self.assertTrue(decide({"args": {}, "args_mode": "exact"}, step))
                self.assertFalse(decide({"args": {"n": 1}}, step))

    def test_the_modes_of_arguments(self):
        step = call(a=1, b={"c": 2, "d": 3})
        # (args, contains, exact, keys)
        table = [
            ({"a": 1, "b": {"c": 2, "d": 3}}, True, True, True),
            ({"a": 1, "b": {"c": 2}}, True, False, True),
            ({"a": 1}, True, False, False),
            ({"a": 9, "b": None}, False, False, True),
            ({"a": 1, "b": {"c": 2, "d": 3}, "e": {"$exists": False}}, True, True, False),
            ({"a": {"$gt": 0}, "b": {"c": {"$gt": 0}, "d": 3}}, True, True, True),
            ({"a": {"$gt": 0}, "b": {"$exists": True}}, True, True, True),
            ({}, True, False, False),
        ]
        for args, *expected in table:
            for mode, answer in zip(("contains", "exact", "keys"), expected, strict=True):
                with self.subTest(args=args, mode=mode):
                    self.assertIs(decide({"args": args, "args_mode": mode}, step), answer)
            self.assertTrue(decide({"args": args, "args_mode": "ignore"}, step))
        self.assertTrue(decide({"args": {"/a": 1, "b": {"c": 2, "d": 3}}, "args_mode": "exact"}, step))

    def test_defaults_are_filled_in_on_both_sides(self):
        matcher = {"args": {"q": "visa"}, "args_defaults": {"limit": 10}}
        # (recorded arguments, contains, exact)
        table = [
            ({"q": "visa"}, True, True),
            ({"q": "visa", "limit": 10}, True, True),
            ({"q": "visa", "limit": 20}, False, False),
            ({"q": "visa", "page": 2}, True, False),
        ]
        for args, contains, exact in table:
            with self.subTest(args=args):
                self.assertIs(decide(matcher, call(**args)), contains)
                self.assertIs(decide({**matcher, "args_mode": "exact"}, call(**args)), exact)
        self.assertTrue(decide({"args": {"limit": {"$gt": 5}}, "args_defaults": {"limit": 10}}, call()))
        self.assertTrue(decide({"args": {"/limit": 10}, "args_defaults": {"limit": 10}, "args_mode": "exact"}, call()))

    def test_what_is_ignored_is_left_out_on_both_sides(self):
        matcher = {
            "args": {"q": "visa", "request": "r-1", "items": [{"sku": 1, "note": "x"}]},
            "args_mode": "exact",
            "args_ignore": ["request", "/items/*/note", "/meta/trace"],
        }
        self.assertTrue(decide(matcher, call(q="visa", items=[{"sku": 1}])))
        self.assertTrue(decide(matcher, call(q="visa", request="r-2", items=[{"sku": 1, "note": "y"}])))
        self.assertFalse(decide(matcher, call(q="visa", items=[{"sku": 2}])))
        self.assertFalse(decide(matcher, call(q="visa", items=[{"sku": 1}], other=1)))
        self.assertTrue(decide({"args": {"meta": {"a": 1}}, "args_mode": "exact", "args_ignore": ["/meta/trace"]}, call(meta={"a": 1, "trace": 2})))
        self.assertTrue(decide({"args": {"/meta/trace": 9}, "args_ignore": ["/meta"]}, call()))

    def test_ignoring_changes_no_recorded_step(self):
        step = call(q="visa", request="r", items=[{"sku": 1, "note": "y"}])
        decide({"args": {}, "args_ignore": ["request", "/items/*/note"], "args_defaults": {"z": 1}}, step)
        self.assertEqual(step["args"], {"q": "visa", "request": "r", "items": [{"sku": 1, "note": "y"}]})


class ShellWords(support.StrictTestCase):
    """Command lines as programs and arguments."""

    def test_a_command_line_is_read_as_programs_and_arguments(self):
        # (command line, [(program, arguments)])
        table = [
            ("git push", [("git", ["push"])]),
            ("cd app && FOO=1 /usr/bin/git push --force 'origin main' | tee log", [("cd", ["app"]), ("git", ["push", "--force", "origin main"]), ("tee", ["log"])]),
            ("a; b\nc & d || e", [("a", []), ("b", []), ("c", []), ("d", []), ("e", [])]),
            ('echo "a b"c \\"d\\"', [("echo", ["a bc", '"d"'])]),
            ('echo "say \\"hi\\" $HOME" \'$x "y"\'', [("echo", ['say "hi" $HOME', '$x "y"'])]),
            ("echo ''", [("echo", [""])]),
            ("a \\\n  b", [("a", ["b"])]),
            ("echo $(rm -rf x) `ls`", [("echo", ["$"]), ("rm", ["-rf", "x"]), ("ls", [])]),
            ("(cd a; ls)", [("cd", ["a"]), ("ls", [])]),
            ("make >out.txt 2>&1", [("make", [">", "out.txt", "2", ">&", "1"])]),
            ("# a note\nls # all\necho a#b", [("ls", []), ("echo", ["a#b"])]),
            ('rm "never closed', [("rm", ["never closed"])]),
            ("rm 'never closed", [("rm", ["never closed"])]),
            ("X=1", []),
            ("", []),
            ("&& | ;", []),
            ("bash -c 'rm -rf /'", [("bash", ["-c", "rm -rf /"])]),  # what runs inside is one argument
        ]
        for text, expected in table:
            with self.subTest(text=text):
                found = kaizen.shell_commands(text)
                self.assertEqual([(command["program"], command["arguments"]) for command in found], expected)

    def test_a_rule_can_name_the_program_and_its_arguments(self):
        pushes = {"args": {"/command/*": {"$count": {"of": {"program": "git", "arguments": {"$count": {"of": {"$glob": "-f*"}, "min": 1}}}, "min": 1}}}}
        step = {"kind": "tool", "name": "Bash", "args": {"command": "cd app && git push -f"}}
        self.assertTrue(decide(pushes, step))
        self.assertFalse(decide(pushes, {"kind": "tool", "name": "Bash", "args": {"command": "git push; rm -f x"}}))
        self.assertTrue(decide({"args": {"/command/*/program": {"$count": {"of": "git", "min": 1}}}}, step))
        self.assertTrue(decide({"args": {"/command/1/arguments/0": "push"}}, step))
        self.assertTrue(decide({"args": {"/command/2/0/program": "git"}}, {"kind": "tool", "args": {"command": ["bash", "-lc", "git status"]}}))

    def test_only_commands_are_read_as_commands(self):
        self.assertTrue(decide({"args": {"/line/0/program": "git"}}, {"kind": "command", "args": {"line": "git push"}}))
        self.assertTrue(decide({"args": {"/0/program": "git"}}, {"kind": "command", "args": "git push"}))
        self.assertFalse(decide({"args": {"/items/0": {"$exists": True}}}, {"kind": "tool", "args": {"items": "not a list"}}))
        self.assertFalse(decide({"result": {"/command/0": {"$exists": True}}}, {"kind": "command", "result": {"command": "git push"}}))

    def test_hostile_lines_take_linear_time(self):
        for piece in ('"', "'", "\\", "<", "a", '"a', "&", "#", "$(", "a=1 "):
            with self.subTest(piece=piece):
                kaizen.shell_commands(piece * 100_000)


class OpenQuestions(support.StrictTestCase):
    """What the recording does not say is None, and never a match or a miss."""

    def test_what_is_not_found_in_a_field_that_was_cut_short_is_open(self):
        cut = {"kind": "tool", "name": "read", "args": {"path": "a.py", "n": 3}, "result": "first lines", "truncated": ["args", "result"]}
        # (matcher, answer)
        table = [
            ({"result": {"$regex": "first"}}, True),
            ({"result": {"$regex": "last"}}, None),
            ({"result": {"$not": {"$regex": "last"}}}, None),
            ({"args": {"path": "a.py"}}, True),
            ({"args": {"path": "b.py"}}, None),
            ({"args": {"n": 3}}, True),
            ({"args": {"n": 4}}, False),
            ({"args": {"more": 1}}, None),
            ({"args": {"path": "a.py"}, "args_mode": "exact"}, False),  # n is there and was not asked for
            ({"args": {"path": "a.py", "n": 3, "more": 1}, "args_mode": "exact"}, None),
            ({"name": "write", "result": {"$regex": "last"}}, False),  # what is known decides
            ({"$any": [{"name": "write"}, {"result": {"$regex": "last"}}]}, None),
            ({"$any": [{"name": "read"}, {"result": {"$regex": "last"}}]}, True),
        ]
        for document, expected in table:
            with self.subTest(document=document):
                self.assertIs(decide(document, cut), expected)

    def test_arguments_cut_in_the_middle_of_their_json_are_open(self):
        step = {"kind": "tool", "name": "write", "args": '{"path": "a.py", "text": "abc', "truncated": ["args"]}
        self.assertIsNone(decide({"args": {"path": "a.py"}}, step))
        self.assertIsNone(decide({"args": {}, "args_mode": "exact"}, step))
        self.assertIs(decide({"args": {"path": "a.py"}}, {**step, "truncated": []}), False)

    def test_a_text_that_was_cut_short_is_open(self):
        step = {"kind": "message", "text": "Yes, pl", "truncated": ["text"]}
        self.assertTrue(decide({"text": "Yes"}, step))
        self.assertIsNone(decide({"text": "please"}, step))

    def test_a_status_or_turn_that_was_not_recorded_is_open(self):
        self.assertIsNone(decide({"name": "pay", "status": "ok"}, {"name": "pay"}))
        self.assertIs(decide({"name": "get", "status": "ok"}, {"name": "pay"}), False)
        self.assertIsNone(decide({"turn": 1}, {"name": "pay"}))

    def test_an_agent_is_open_only_while_no_step_names_one(self):
        self.assertEqual(decisions({"agent": "a"}, [{"name": "x"}, {"name": "y"}]), [None, None])
        self.assertEqual(decisions({"agent": "a"}, [{"name": "x"}, {"name": "y", "agent": "a"}]), [False, True])

    def test_a_parent_that_was_not_recorded_is_open(self):
        self.assertIsNone(decide({"under": {"name": "deploy"}}, {"name": "rm", "parent": "gone"}))
        self.assertIs(decide({"under": {"name": "deploy"}}, {"name": "rm"}), False)

    def test_why_it_is_open_is_said(self):
        # (matcher, step, words)
        table = [
            ({"args": {"a": 1}}, {"name": "pay", "args": {}, "truncated": ["args"]}, "its args was cut short"),
            ({"status": "ok", "turn": 1}, {"name": "pay"}, "no status and turn"),
            ({"under": {"name": "x"}}, {"name": "pay", "parent": 1}, "its parent is not recorded"),
            ({"$any": [{"status": "ok"}]}, {"name": "pay"}, "no status"),
        ]
        for document, step, words in table:
            with self.subTest(document=document):
                reason = kaizen.compile_matcher(document).unknown(kaizen.Trail([step]), 0)
                self.assertIn(words, reason)
                self.assertIn("step 0 pay", reason)


class RecordedSteps(support.StrictTestCase):
    """Which steps an observation holds."""

    def test_steps_are_taken_as_recorded_and_tool_calls_are_shorthand(self):
        step = {"kind": "message", "role": "user", "text": "Hi"}
        tool = {"kind": "tool", "name": "a", "args": {}}
        # (observation, steps)
        table = [
            ({"steps": [step]}, [step]),
            ({"steps": []}, []),
            ({"tool_calls": []}, []),
            ({"tool_calls": [{"name": "a", "args": {}}]}, [tool]),
            ({"steps": [], "tool_calls": [{"name": "a", "args": {}}]}, [tool]),
            ({"steps": [step], "tool_calls": []}, [step]),
            ({"steps": [step, tool], "tool_calls": [{"name": "a", "args": {}}]}, [step, tool]),
        ]
        for observation, expected in table:
            with self.subTest(observation=observation):
                self.assertEqual(kaizen.recorded_steps(observation), expected)

    def test_no_record_is_not_an_empty_record(self):
        message = {"kind": "message", "role": "user", "text": "Hi"}
        # (observation, words)
        table = [
            ({}, "no steps were recorded"),
            ({"steps": None}, "no steps were recorded"),
            ({"output": "x"}, "no steps were recorded"),
            ({"steps": ["x"]}, "step 0 is a string"),
            ({"tool_calls": [{"name": "a"}, 3]}, "step 1 is a number"),
            ({"steps": [message], "tool_calls": [{"name": "a"}]}, "their place among the steps is not known"),
        ]
        for observation, words in table:
            with self.subTest(observation=observation), self.assertRaisesRegex(kaizen.NotMeasurable, words):
                kaizen.recorded_steps(observation)

    def test_odd_values_in_steps_end_in_answers(self):
        odd = [{"kind": 3, "name": [], "args": [1], "status": {}, "role": 1, "text": 5, "turn": "x", "id": {"a": 1}, "parent": [1], "truncated": "args", "batch": {}}]
        for document in ({"kind": "tool"}, {"name": "*"}, {"args": {"a": 1}}, {"role": "user"}, {"text": "x"}, {"under": {}}, {"result": {"a": 1}}):
            with self.subTest(document=document):
                self.assertIn(decisions(document, odd * 2)[0], (False, None))
        trail = kaizen.Trail(odd * 2)
        self.assertFalse(trail.has_failed(0))
        self.assertFalse(trail.comes_before(0, 1), "equal batches were issued together, whatever they are")


class Refusals(support.StrictTestCase):
    """What cannot be a matcher is refused with its place and what to do."""

    def test_each_refusal_names_the_place_and_what_to_do(self):
        # (document, pointer, words in the message or hint)
        table = [
            ("pay", "/m", '{"name": …}'),
            (["pay"], "/m", "an array"),
            (None, "/m", "null"),
            ({"nmae": "pay"}, "/m/nmae", "did you mean 'name'?"),
            ({"arguments": {}}, "/m/arguments", "did you mean 'args'?"),
            ({"any": []}, "/m/any", "did you mean '$any'?"),
            ({"kind": "tools"}, "/m/kind", "did you mean 'tool'?"),
            ({"kind": 1}, "/m/kind", "a text"),
            ({"status": "okay"}, "/m/status", "did you mean 'ok'?"),
            ({"status": ["ok", "failed"]}, "/m/status", "unknown status 'failed'"),
            ({"name": ""}, "/m/name", "not empty"),
            ({"name": []}, "/m/name", "empty"),
            ({"name": ["a", 1]}, "/m/name", "a text"),
            ({"role": ""}, "/m/role", "not empty"),
            ({"text": ""}, "/m/text", "not empty"),
            ({"text": 3}, "/m/text", "predicate"),
            ({"text": {"$regex": ""}}, "/m/text/$regex", "empty"),
            ({"turn": "1"}, "/m/turn", "a number"),
            ({"turn": True}, "/m/turn", "a number"),
            ({"turn": {"from": 1}}, "/m/turn", "min"),
            ({"turn": {"min": 3, "max": 1}}, "/m/turn/min", "greater than max"),
            ({"turn": {}}, "/m/turn", "neither min nor max"),
            ({"args": {"a": {"$gtt": 1}}}, "/m/args/a/$gtt", "did you mean"),
            ({"args": {"/a/b": {"$in": []}}}, "/m/args/~1a~1b/$in", "empty"),
            ({"args": {}, "args_mode": "same"}, "/m/args_mode", "unknown"),
            ({"args": {}, "args_mode": ["exact"]}, "/m/args_mode", "unknown"),
            ({"args_mode": "exact"}, "/m/args_mode", 'add "args"'),
            ({"args_ignore": ["a"]}, "/m/args_ignore", 'add "args"'),
            ({"args": {}, "args_ignore": "a"}, "/m/args_ignore", "a list"),
            ({"args": {}, "args_ignore": [1]}, "/m/args_ignore/0", "a text"),
            ({"args": {}, "args_ignore": []}, "/m/args_ignore", "empty"),
            ({"args": {}, "args_ignore": [""]}, "/m/args_ignore", "ignore"),
            ({"args": {}, "args_defaults": [1]}, "/m/args_defaults", "an object"),
            ({"args": {"/a/b": 1}, "args_mode": "exact"}, "/m/args", "without pointers"),
            ({"args": {"/a/b": 1}, "args_mode": "keys"}, "/m/args", "without pointers"),
            ({"args": [1], "args_mode": "keys"}, "/m/args", "named"),
            ({"under": {"nam": "x"}}, "/m/under/nam", "did you mean 'name'?"),
            ({"under": "deploy"}, "/m/under", "object"),
            ({"$any": {"name": "x"}}, "/m/$any", "a list"),
            ({"$any": []}, "/m/$any", "empty"),
            ({"$any": [{"name": "x"}, {"foo": 1}]}, "/m/$any/1/foo", "unknown"),
        ]
        for document, pointer, words in table:
            with self.subTest(document=document):
                with self.assertRaises(kaizen.ConfigurationError) as caught:
                    kaizen.compile_matcher(document, "/m")
                self.assertEqual(caught.exception.pointer, pointer)
                self.assertIn(words, f"{caught.exception.message} {caught.exception.hint}")


class Speed(support.StrictTestCase):
    """What is compiled once is asked often."""

    def test_twenty_matchers_on_two_hundred_steps_are_fast(self):
        import time

        steps = [call(f"tool_{index % 10}", order=f"A-{index}", note="x" * 200) for index in range(200)]
        matchers = [
            kaizen.compile_matcher({"kind": "tool", "name": [f"tool_{n % 10}", "mcp__*"], "args": {"order": {"$regex": "^A-\\d+$"}}}) for n in range(20)
        ]
        trail = kaizen.Trail(steps)
        started = time.perf_counter()
        for matcher in matchers:
            self.assertEqual(sum(answer is True for answer in matcher.decisions(trail)), 20)
        self.assertLess(time.perf_counter() - started, 1)  # 5 ms here


if __name__ == "__main__":
    unittest.main()
