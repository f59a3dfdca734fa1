"""`kaizen import`: what each format becomes, what is told of it, and files that mean harm."""

import json
import os
import sys
import unittest

from support import TESTS, TemporaryFolder, make_improvement, read_json, read_lines, run_cli, write, write_lines

import kaizen


class Importing(TemporaryFolder):
    def run_import(self, kind, path, *options, into="it", status=0):
        """The answer of `kaizen import` as data; fails unless it ends with *status*."""
        done = run_cli("import", kind, path, "--into", into, "--json", *options)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def imported(self, kind, path, *options, into="it"):
        """(cases by id, evaluators of evaluation.json, answer) after an import that validates."""
        answer = self.run_import(kind, path, *options, into=into)
        done = run_cli("validate", into)
        self.assertEqual(done.status, 0, done.stdout + done.stderr)
        folder = self.folder / "improvements" / into
        cases = {case["id"]: case for case in read_lines(folder / "test_cases.jsonl")}
        return cases, read_json(folder / "evaluation.json")["evaluators"], answer

    def refused(self, kind, path, *options, into="it", status=2):
        """The message of an import that ends with *status* and writes nothing."""
        before = sorted(os.walk(self.folder))
        answer = self.run_import(kind, path, *options, into=into, status=status)
        self.assertEqual(sorted(os.walk(self.folder)), before)
        return answer["message"]

    def promptfoo(self, text, name="promptfooconfig.yaml"):
        """(cases in order, shared evaluators, answer) of a configuration."""
        cases, shared, answer = self.imported("promptfoo", write(name, text))
        return list(cases.values()), shared, answer

    def entry(self, assertion, output_vars="{q: '?'}"):
        """The one entry that an assertion in flow style becomes, without its id."""
        kaizen_entries, _, _ = self.entries(f"tests:\n- vars: {output_vars}\n  assert:\n  - {assertion}\n")
        self.assertEqual(len(kaizen_entries), 1, kaizen_entries)
        return kaizen_entries[0]

    def entries(self, text):
        """(entries without ids of the first case, kinds of notes, gathered) of a configuration, without writing it."""
        gathered = kaizen.Gathered()
        kaizen.import_promptfoo(str(write("c.yaml", text)), gathered)
        made = [{key: value for key, value in entry.items() if key != "id"} for entry in gathered.cases[0].get("evaluators", ())]
        return made, {note.subject: (note.kind, note.text) for note in gathered.notes}, gathered


class PromptfooAssertions(Importing):
    def test_assertions_with_an_exact_counterpart(self):
        table = {
            "{type: contains, value: 7}": {"type": "contains", "values": ["7"]},
            "{type: not-contains, value: a}": {"type": "contains", "values": ["a"], "negate": True},
            "{type: contains-any, value: 'a, \"b, c\",d'}": {"type": "contains", "values": ["a", "b, c", "d"], "mode": "any"},
            "{type: icontains-all, value: [a, B]}": {"type": "contains", "values": ["a", "B"], "ignore_case": True},
            "{type: starts-with, value: Dear}": {"type": "contains", "values": ["Dear"], "at": "start"},
            "{type: equals, value: true}": {"type": "equals", "select": "output.text", "value": "true"},
            "{type: equals, value: {a: 1}}": {"type": "equals", "select": "output.json", "value": {"a": 1}},
            "{type: word-count, value: {max: 5}}": {"type": "length", "unit": "words", "max": 5},
            "{type: word-count, value: '5'}": {"type": "length", "unit": "words", "exact": 5},
            "{type: is-json}": {"type": "json", "extract": "whole"},
            "{type: latency, threshold: 500}": {"type": "budget", "max": {"latency_ms": 500}},
            "{type: cost, threshold: 0.01}": {"type": "budget", "max": {"cost_usd": 0.01}},
            "{type: contains, value: 'to {{city}}'}": {"type": "contains", "values": ["to Lisbon"]},
            "{type: contains, value: a, metric: tone, weight: 2}": {"type": "contains", "values": ["a"], "metric": "tone", "weight": 2},
            "{type: finish-reason, value: STOP}": {"type": "equals", "select": "finish_reason", "value": "stop", "normalize": ["lower"]},
        }
        for assertion, expected in table.items():
            with self.subTest(assertion):
                self.assertEqual(self.entry(assertion, "{city: Lisbon}"), expected)

    def test_trajectory_assertions_become_questions_about_steps(self):
        table = {
            "{type: 'trajectory:tool-used', value: find}": {"type": "steps", "match": {"kind": "tool", "name": "find"}},
            "{type: 'not-trajectory:tool-used', value: [a, b]}": {"type": "steps", "match": {"kind": "tool", "name": ["a", "b"]}, "max": 0},
            "{type: 'trajectory:tool-used', value: {name: a, max: 2}}": {
                "type": "steps", "match": {"kind": "tool", "name": "a"}, "min": 1, "max": 2,
            },
            "{type: 'trajectory:step-count', value: {type: search, max: 3}}": {
                "type": "steps", "match": {"kind": "retrieval"}, "min": 0, "max": 3,
            },
            "{type: 'trajectory:tool-sequence', value: {mode: exact, steps: [a, b]}}": {
                "type": "sequence", "steps": [{"kind": "tool", "name": "a"}, {"kind": "tool", "name": "b"}], "mode": "exact",
                "within": {"kind": "tool"}, "attempts": "all",
            },
            "{type: 'trajectory:tool-args-match', value: {name: a, args: {id: 7}, ignore: [at]}}": {
                "type": "steps", "match": {"kind": "tool", "name": "a"}, "which": "any",
                "must": {"args": {"id": 7}, "args_mode": "contains", "args_ignore": ["/at"]},
            },
            "{type: tool-call-f1, value: 'a, b', threshold: 0.8}": {
                "type": "sequence", "steps": [{"kind": "tool", "name": "a"}, {"kind": "tool", "name": "b"}], "mode": "any_order",
                "within": {"kind": "tool"}, "attempts": "all", "score": "f1", "threshold": 0.8,
            },
            "{type: skill-used, value: {pattern: 'pdf*', max: 1}}": {
                "type": "steps", "match": {"kind": "skill", "name": "pdf*"}, "min": 0, "max": 1,
            },
            "{type: trace-span-count, value: {pattern: 'db.*', min: 1}}": {
                "type": "steps", "match": {"kind": "span", "name": "db.*"}, "min": 1,
            },
        }  # fmt: skip
        for assertion, expected in table.items():
            with self.subTest(assertion):
                self.assertEqual(self.entry(assertion), expected)

    def test_what_is_dropped_says_why_and_is_kept_in_the_notes_of_the_case(self):
        table = {
            "{type: javascript, value: 'output.length > 3'}": "never run",
            "{type: equals, value: 'file://check.py:get'}": "never run",
            "{type: contains, value: 'file://value.js'}": "never run",
            "{type: contains, value: 'package:x:y'}": "never run",
            "{type: webhook, value: 'https://x.invalid'}": "never run",
            "{type: contains, value: a, transform: output.trim()}": "never run",
            "{type: contains, value: ''}": "no text",
            "{type: contains-any, value: [a, '']}": "empty text",
            "{type: contains, value: '{{q | upper}}'}": "template language",
            "{type: regex, value: '(?<=a+)b'}": "look-behind",
            "{type: regex, value: '[unclosed'}": "not a regular expression",
            "{type: regex, value: '\\p{L}'}": "\\p",
            "{type: is-json, value: {properties: {a: {type: nothing}}}}": "nothing",
            "{type: latency}": "no threshold",
            "{type: meteor, value: a}": "lexical",
            "{type: select-best, value: a}": "compares the outputs",
            "{type: 'promptfoo:redteam:pii'}": "red-team",
            "{type: no-such-thing, value: a}": "no assertion that is known",
            "{type: equals, value: {$file: /etc/passwd}}": "$file",
            "{type: equals, value: {a: {$case: /expected}}}": "$case",
            "{type: 'trajectory:tool-args-match', value: {name: a, args: {id: {$regex: x}}}}": "'$'",
        }
        for assertion, reason in table.items():
            with self.subTest(assertion):
                made, notes, gathered = self.entries(f"tests:\n- vars: {{q: '?'}}\n  assert:\n  - {assertion}\n")
                self.assertEqual(made, [])
                self.assertEqual(len(gathered.cases[0]["notes"]["dropped"]), 1)
                self.assertIn(reason, next(text for kind, text in notes.values() if kind == "dropped"))

    def test_a_pattern_of_javascript_finds_the_same_in_python(self):
        # (pattern, a text it finds something in, one it does not), as node says
        for pattern, found, missed in (
            (r"^a$", "a", "a\n"),
            (r"a.b", "a\tb", "a\rb"),
            (r"(?<y>\d{4})-\k<y>", "2024-2024", "2024-2025"),
            (r"\d", "3", "٣"),
            (r"[[]x", "[x", "x"),
            (r"[^]b", "\nb", "b"),
            (r"a[]|c", "c", "a"),
            (r"\/\-\_", "/-_", "/-"),
            (r"\Z", "Z", "a"),
            (r"[a&&b]", "&", "c"),
        ):
            with self.subTest(pattern):
                entry = self.entry(json.dumps({"type": "regex", "value": pattern}))
                check = kaizen.prepare_entry({"id": "e", **entry})
                for text, status in ((found, "pass"), (missed, "fail")):
                    self.assertEqual(check.evaluate({"status": "completed", "output": text}, {}, {}).status, status, text)

    def test_weight_0_keeps_its_status_and_gates_nothing(self):
        made, notes, _ = self.entries("tests:\n- vars: {q: a}\n  assert: [{type: contains, value: a, weight: 0}]\n")
        self.assertEqual(made, [{"type": "contains", "values": ["a"], "weight": 0, "severity": "info"}])
        self.assertEqual(notes["weight 0"][0], "approximated")

    def test_a_threshold_of_a_test_becomes_a_number_of_checks_and_is_told(self):
        made, notes, _ = self.entries(
            "tests:\n- vars: {q: a}\n  threshold: 0.5\n  assert:\n"
            "  - {type: contains, value: a}\n  - {type: contains, value: b}\n  - {type: contains, value: c}\n"
        )
        self.assertEqual([(entry["type"], entry["n"], len(entry["of"])) for entry in made], [("at_least", 2, 3)])
        self.assertEqual(notes["test threshold -> at_least"][0], "approximated")

    def test_an_assert_set_is_all_of_its_checks(self):
        made, _, _ = self.entries(
            "tests:\n- vars: {q: a}\n  assert:\n  - type: assert-set\n    metric: m\n    assert: [{type: contains, value: a}, {type: regex, value: b}]\n"
        )
        contains, matches = {"type": "contains", "values": ["a"]}, {"type": "matches", "pattern": "b", "flags": "a"}
        self.assertEqual(made, [{"type": "all", "of": [contains, matches], "metric": "m"}])


class Agreement(Importing):
    """Kaizen's side of the table that tests/peers/test_promptfoo_peer.py makes with promptfoo itself."""

    def test_the_checked_in_table_is_what_kaizen_says(self):
        sys.path.insert(0, str(TESTS / "peers"))
        self.addCleanup(sys.path.remove, str(TESTS / "peers"))
        import promptfoo_agreement

        config = promptfoo_agreement.config_with_metrics()
        ours = promptfoo_agreement.kaizen_statuses(config, self.folder)
        table = promptfoo_agreement.checked_in_statuses()
        for test in config["tests"]:
            for number, check in enumerate(test["assert"], 1):
                key = (test["description"], number)
                with self.subTest(key):
                    self.assertEqual(ours.get(check["metric"], "dropped"), table[key][1])
                    self.assertEqual(table[key][0] != table[key][1], key in promptfoo_agreement.DIFFERENCES)


class PromptfooConfigurations(Importing):
    def test_assertions_of_all_tests_go_into_evaluation_json(self):
        cases, shared, _ = self.promptfoo(
            "defaultTest:\n  vars: {lang: en}\n  assert: [{type: contains, value: thanks}]\n"
            "tests:\n- vars: {q: one}\n- description: the second\n  vars: {q: two, lang: fr}\n  assert: [{type: starts-with, value: B}]\n"
        )
        self.assertEqual(shared, [{"id": "contains", "type": "contains", "values": ["thanks"]}])
        self.assertEqual([case["input"] for case in cases], [{"lang": "en", "q": "one"}, {"lang": "fr", "q": "two"}])
        self.assertEqual(cases[1]["evaluators"], [{"id": "starts-with", "type": "contains", "values": ["B"], "at": "start"}])
        self.assertRegex(cases[1]["id"], r"\Athe-second-[0-9a-f]{8}\Z")

    def test_scenarios_run_each_test_with_each_set_of_variables(self):
        cases, _, _ = self.promptfoo(
            "scenarios:\n- config:\n  - vars: {lang: en}\n  - vars: {lang: fr}\n"
            "  tests:\n  - vars: {q: a}\n    assert: [{type: contains, value: '{{lang}}'}]\n  - vars: {q: b}\n"
        )
        self.assertEqual(
            [(case["input"]["lang"], case["input"]["q"]) for case in cases], [("en", "a"), ("en", "b"), ("fr", "a"), ("fr", "b")]
        )
        self.assertEqual(cases[2]["evaluators"][0]["values"], ["fr"])

    def test_lists_of_texts_in_vars_multiply_and_other_lists_do_not(self):
        cases, _, _ = self.promptfoo("tests:\n- vars: {a: [x, y], b: [p, q], c: [{k: 1}]}\n")
        self.assertEqual(len(cases), 4)
        self.assertEqual(cases[0]["input"], {"a": "x", "b": "p", "c": [{"k": 1}]})
        whole = self.entries("tests:\n- vars: {a: [x, y]}\n  options: {disableVarExpansion: true}\n")[2].cases[0]
        self.assertEqual(whole["input"], {"a": ["x", "y"]})

    def test_without_variables_each_prompt_is_a_case(self):
        cases, _, answer = self.promptfoo("prompts: [Say hello, Say goodbye]\nproviders: [openai:gpt]\ntests:\n- assert: [{type: is-json}]\n")
        self.assertEqual([case["input"] for case in cases], ["Say hello", "Say goodbye"])
        self.assertEqual({note["what"] for note in answer["dropped"]}, {"prompts", "providers"})
        self.assertIn("    Say hello", (self.folder / "improvements/it/issue.md").read_text())

    def test_templates_of_assertions_are_put_in(self):
        made, _, _ = self.entries(
            "assertionTemplates:\n  polite: {type: icontains, value: please}\n"
            "tests:\n- vars: {q: a}\n  assert:\n  - $ref: '#/assertionTemplates/polite'\n"
        )
        self.assertEqual(made[0]["values"], ["please"])

    def test_variables_are_kept_as_they_stand(self):
        cases, _, answer = self.promptfoo("tests:\n- vars: {q: '{{env.SECRET}} $HOME %PATH%  '}\n")
        self.assertEqual(cases[0]["input"], {"q": "{{env.SECRET}} $HOME %PATH%  "})
        self.assertIn("vars with {{…}}", [note["what"] for note in answer["approximated"]])

    def test_data_files_are_read_and_code_files_are_not(self):
        write("cases/one.csv", "q,__expected\nhello,contains: h\n")
        write("cases/two.yaml", "- vars: {q: 'file://texts/long.txt'}\n")
        write("cases/three.jsonl", '{"vars": {"q": "three"}}\n')
        write("texts/long.txt", "a long text")
        write("vars.json", '{"q": "from json"}')
        write("evil.py", "raise SystemExit('executed')")
        write("evil.js", "process.exit(9)")
        cases, _, answer = self.promptfoo(
            "tests:\n- file://cases/*.csv\n- cases/two.yaml\n- file://cases/three.jsonl\n- vars: file://vars.json\n"
            "- file://evil.py:make\n- vars: {q: 'file://evil.js'}\n- path: file://evil.js\n- https://x.invalid/tests.csv\n"
        )
        self.assertEqual([case["input"]["q"] for case in cases], ["hello", "a long text", "three", "from json"])
        self.assertEqual(sum(note["count"] for note in answer["dropped"]), 4, answer["dropped"])

    def test_recorded_outputs_become_a_stage_that_is_replayed(self):
        cases, _, answer = self.imported(
            "promptfoo", write("c.yaml", "tests:\n- vars: {q: a}\n  providerOutput: yes it is\n  assert: [{type: contains, value: 'yes'}]\n"),
            "--stage", "baseline",
        )  # fmt: skip
        self.assertIn("--replay", answer["next"])
        done = run_cli("run", "it", "--stage", "baseline", "--replay", "improvements/it/baseline.recorded.jsonl")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(run_cli("evaluate", "it").status, 0)
        self.assertEqual(read_lines("improvements/it/baseline.evaluated.jsonl")[0]["outcome"], "pass")

    def test_secrets_in_recorded_outputs_are_masked_before_they_are_written(self):
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
        write("c.yaml", f"prompts: [use {secret}]\ntests:\n- vars: {{q: a}}\n  providerOutput: the token is {secret}\n")
        self.run_import("promptfoo", "c.yaml", "--stage", "s")
        text = (self.folder / "improvements/it/s.recorded.jsonl").read_text()
        self.assertNotIn(secret, text + (self.folder / "improvements/it/issue.md").read_text())
        self.assertEqual([hit["pointer"] for hit in json.loads(text)["redacted"]], ["/output"])

    def test_json_configurations_are_read_like_yaml(self):
        cases, shared, _ = self.promptfoo('{"tests": [{"vars": {"q": "a"}, "assert": [{"type": "is-json"}]}]}', "promptfooconfig.json")
        self.assertEqual((len(cases), shared[0]["type"]), (1, "json"))


class PromptfooTables(Importing):
    def test_a_cell_without_a_threshold_gets_promptfoos_and_a_warning(self):
        path = write("t.csv", "q,__expected,__expected2\na,latency:,cost(0.5):\nb,latency(300):,\n")
        cases, _, answer = self.imported("promptfoo-csv", path)
        first, second = cases.values()
        self.assertEqual([entry["max"] for entry in first["evaluators"]], [{"latency_ms": 0.75}, {"cost_usd": 0.5}])
        self.assertEqual([entry["max"] for entry in second["evaluators"]], [{"latency_ms": 300}])
        told = [note for note in answer["approximated"] if note["what"] == "threshold of latency"]
        self.assertEqual([(note["count"], note["places"]) for note in told], [(1, ["t.csv:2 __expected"])])
        self.assertIn("0.75", told[0]["text"])

    def test_columns_that_are_settings(self):
        path = write(
            "t.csv",
            "q,__expected,__expected2,__description,__metric,__metadata:team,__metadata:tags[],__config:__expected2:threshold,__prefix\n"
            'a,"contains-all: x, ""y, z""",latency:,named,tone,billing,"p, q",90,Be nice:\n',
        )
        cases, _, answer = self.imported("promptfoo-csv", path)
        (case,) = cases.values()
        self.assertEqual(case["input"], {"q": "a"})
        self.assertEqual(case["metadata"], {"team": "billing", "tags": ["p", "q"]})
        self.assertEqual({"description": "named"}, case["notes"])
        shared = read_json("improvements/it/evaluation.json")["evaluators"]
        self.assertEqual([entry["metric"] for entry in shared], ["tone", "tone"])
        self.assertEqual(shared[0]["values"], ["x", "y, z"])
        self.assertEqual(shared[1]["max"], {"latency_ms": 90})
        self.assertIn("column __prefix", [note["what"] for note in answer["dropped"]])

    def test_a_cell_that_names_no_assertion_is_the_expected_text(self):
        cases, shared, _ = self.imported("promptfoo-csv", write("t.csv", "q,__expected\na,note: this is text\n"))
        self.assertEqual(shared[0]["value"], "note: this is text")

    def test_code_in_a_cell_is_dropped(self):
        path = write("t.csv", "q,__expected,__expected2,__expected3\na,javascript: output.length,eval: x,python: y\n")
        self.assertEqual(sum(note["count"] for note in self.imported("promptfoo-csv", path)[2]["dropped"]), 3)


class Tables(Importing):
    def test_csv_columns_are_mapped_to_fields(self):
        path = write("q.csv", '\ufeffnr,question,answer,labels,area\r\n7,"Where, and\r\nwhen?",here,"a, b",x\r\n8,Who?,=1+1,,y\r\n')
        cases, shared, answer = self.imported(
            "csv", path, "--map", "id=nr", "input.text=question", "--map", "expected=answer", "tags=labels", "--source", "expert"
        )
        self.assertEqual(list(cases), ["7", "8"])
        self.assertEqual(cases["7"]["input"], {"text": "Where, and\nwhen?"})
        self.assertEqual((cases["7"]["tags"], cases["8"]["expected"]), (["a", "b"], "=1+1"))
        self.assertNotIn("tags", cases["8"])
        self.assertEqual(cases["8"]["source"], {"kind": "expert"})
        self.assertEqual(shared, [{"id": "expected", "type": "equals", "select": "output.text", "value": {"$case": "/expected"}}])
        self.assertEqual([(note["what"], note["count"]) for note in answer["dropped"]], [("column area", 2)])

    def test_json_lines_with_the_names_of_fields_need_no_map(self):
        rows = [{"id": "a", "input": {"m": 1}, "expected": {"n": 2}, "split": "holdout"}, {"id": "b", "input": "x"}]
        cases, shared, answer = self.imported("jsonl", write_lines("rows.jsonl", rows))
        self.assertEqual(shared, [])
        self.assertEqual(cases["a"]["evaluators"][0]["select"], "output.json")
        self.assertEqual(answer["cases"]["holdout"], 1)

    def test_json_lines_are_mapped_with_pointers(self):
        rows = [{"data": {"q": "x", "answers": ["one", "two"]}, "uid": "u1"}]
        cases, _, _ = self.imported("jsonl", write_lines("rows.jsonl", rows), "--map", "id=uid", "input=/data/q", "expected=/data/answers/1")
        self.assertEqual((cases["u1"]["input"], cases["u1"]["expected"]), ("x", "two"))

    def test_a_map_that_cannot_be_used_is_refused(self):
        path = write("q.csv", "question,answer\na,b\n")
        for pairs, part in (
            ([], "no column is called 'input'"),
            (["input=questoin"], "no column 'questoin'"),
            (["inptu=question"], "no field 'inptu'"),
            (["input"], "no FIELD=COLUMN"),
            (["input=question", "input.a=answer"], "given twice"),
            (["evaluators=answer", "input=question"], "no field 'evaluators'"),
        ):
            with self.subTest(pairs):
                self.assertIn(part, self.refused("csv", path, *(["--map", *pairs] if pairs else [])))

    def test_a_table_that_is_broken_is_refused_with_its_line(self):
        for content, part in (
            (b"input,a\nx,y\nz\n", ":3: has 1 cells"),
            (b'input,a\nx,y\n"z,1\nw,2\n', ":3: is no CSV"),
            (b"input,a\nx,\0\n", ":2: holds a NUL"),
            (b"input,input\nx,y\n", ":1: column 'input' comes twice"),
            (b"input,\nx,y\n", ":1: a column has no name"),
            (b"input\nx\xe9\n", "is not UTF-8"),
            (b"input\n", "holds no test"),
            (b"", "holds no test"),
            (b"id,input\na,x\na,y\n", ":3#/id: id 'a' comes twice"),
            (b"id,input,split\na,x,test\n", ":2#/split"),
            ("id,input\n" + "a" * 300 + ",x\n", ":2#/id"),
            (b"id,input\n\x1b[2Ja,x\n", ":2#/id"),
        ):
            with self.subTest(content[:20]):
                self.assertIn(part, self.refused("csv", write("q.csv", content)))

    def test_ids_that_are_paths_stay_ids(self):
        cases, _, answer = self.imported("csv", write("q.csv", "id,input\n../../etc/passwd,x\n/root/a,y\n"))
        self.assertEqual(list(cases), ["../../etc/passwd", "/root/a"])
        self.assertEqual(sorted(os.listdir("improvements/it")), ["evaluation.json", "issue.md", "test_cases.jsonl"])

    def test_a_cell_may_be_large(self):
        cases, _, _ = self.imported("csv", write("q.csv", "input\n" + "x" * 300_000 + "\n"))
        self.assertEqual(len(next(iter(cases.values()))["input"]), 300_000)


class OtherTools(Importing):
    def test_samples_of_openai_evals(self):
        rows = [
            {"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}], "ideal": "4"},
            {"input": "Capital of France?", "ideal": ["Paris", "paris"], "level": 2},
        ]
        path = write_lines("samples.jsonl", rows)
        cases, shared, _ = self.imported("openai-evals", path, "--eval", "includes")
        self.assertEqual(shared, [{"id": "ideal", "type": "contains", "values": {"$case": "/expected"}, "mode": "any"}])
        first, second = cases.values()
        self.assertEqual((first["input"], first["expected"]), (rows[0]["input"], ["4"]))
        self.assertEqual((second["expected"], second["metadata"]), (["Paris", "paris"], {"level": 2}))

    def test_json_match_compares_values_and_not_texts(self):
        path = write_lines("samples.jsonl", [{"input": "?", "ideal": '{"b": 1, "a": [2]}'}])
        cases, shared, _ = self.imported("openai-evals", path, "--eval", "json_match")
        self.assertEqual(next(iter(cases.values()))["expected"], [{"b": 1, "a": [2]}])
        self.assertEqual(shared[0]["select"], "output.json")

    def test_a_line_that_is_no_sample_is_refused(self):
        self.assertIn(":1: a sample has no 'input'", self.refused("openai-evals", write_lines("s.jsonl", [{"prompt": "x"}])))

    def test_a_log_of_inspect_with_its_answers(self):
        call = {"id": "c1", "function": "find", "arguments": {"q": 1}, "type": "function"}
        messages = [
            {"role": "user", "content": "2+2?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "four", "tool_call_id": "c1"},
        ]
        sample = {"id": 1, "epoch": 1, "input": "2+2?", "target": "4", "messages": messages, "output": {"completion": "It is 4"},
                  "model_usage": {"m": {"input_tokens": 3, "output_tokens": 2}}}  # fmt: skip
        choice = {"id": "x", "epoch": 1, "input": "Which?", "choices": ["p", "q"], "target": ["A"], "output": {"completion": "ANSWER: A"}}
        log = {
            "version": 2, "eval": {"task": "t", "scorers": [{"name": "includes"}, {"name": "my/own"}]},
            "samples": [sample, {**sample, "epoch": 2, "output": {"completion": "five"}}, choice, {**choice, "id": "y", "error": {"message": "no"}}],
        }  # fmt: skip
        cases, shared, answer = self.imported("inspect", write("log.json", json.dumps(log)), "--stage", "baseline")
        self.assertEqual(list(cases), ["1", "x", "y"])
        self.assertEqual(cases["x"]["input"], {"question": "Which?", "choices": ["p", "q"]})
        self.assertEqual([entry["id"] for entry in shared], ["includes"])
        self.assertIn("scorer own", [note["what"] for note in answer["dropped"]])
        done = run_cli(*answer["next"].split()[1:])
        self.assertEqual(done.status, 4, done.stderr)  # one answer is an error, and two cases were run once
        observations = read_lines("improvements/it/baseline.jsonl")
        self.assertEqual(observations[0]["steps"][0]["result"], "four")
        self.assertEqual([each["status"] for each in observations if each["case_id"] == "y"], ["error", "not_run"])

    def test_a_packed_log_and_a_log_without_samples_are_refused(self):
        self.assertIn("packed log", self.refused("inspect", write("log.eval", b"PK")))
        self.assertIn("no list of samples", self.refused("inspect", write("log.json", '{"eval": {}}')))


class Destinations(Importing):
    def setUp(self):
        super().setUp()
        self.path = write_lines("rows.jsonl", [{"id": "a", "input": "x", "expected": "y"}, {"id": "b", "input": "z", "expected": "w"}])

    def test_a_dry_run_tells_the_same_and_writes_nothing(self):
        dry = self.run_import("jsonl", self.path, "--dry-run")
        self.assertFalse(os.path.exists("improvements"))
        real = self.run_import("jsonl", self.path)
        for key in ("cases", "mapped", "approximated", "dropped", "entries"):
            self.assertEqual(dry[key], real[key])

    def test_a_new_improvement_may_not_be_there_in_part(self):
        write("improvements/it/notes.txt", "mine")
        self.assertIn("is there already", self.refused("jsonl", self.path, status=5))

    def test_cases_are_added_to_an_improvement_that_is_there(self):
        entry = {"id": "expected", "type": "contains", "values": ["q"]}
        folder = make_improvement("it", [{"id": "old", "input": "q"}], [entry])
        before = (folder / "evaluation.json").read_bytes()
        cases, _, answer = self.imported("jsonl", self.path)
        self.assertEqual(list(cases), ["old", "a", "b"])
        self.assertEqual([each["id"] for each in cases["a"]["evaluators"]], ["expected-2"])
        self.assertEqual((folder / "evaluation.json").read_bytes(), before)
        again = self.run_import("jsonl", self.path)
        self.assertEqual(again["cases"], {"read": 2, "added": 0, "already_there": 2, "holdout": 0})
        self.assertEqual(again["files"], [])

    def test_another_case_with_the_same_id_is_refused_and_named(self):
        make_improvement("it", [{"id": "a", "input": "other"}, {"id": "b", "input": "z", "split": "holdout"}], [])
        message = self.refused("jsonl", self.path, status=5)
        self.assertIn("those ids: a and a holdout case", message)

    def test_names_that_are_paths_are_refused(self):
        for name in ("../out", "/tmp/out", "a/b", "", ".", ".."):
            with self.subTest(name):
                self.refused("jsonl", self.path, into=name)

    def test_a_link_in_place_of_the_cases_is_not_written_through(self):
        folder = make_improvement("it", [{"id": "old", "input": "q"}], [])
        write("elsewhere/cases.jsonl", '{"id": "old", "input": "q"}\n')
        (folder / "test_cases.jsonl").unlink()
        (folder / "test_cases.jsonl").symlink_to(self.folder / "elsewhere/cases.jsonl")
        self.refused("jsonl", self.path, status=5)

    def test_recorded_answers_are_not_written_over(self):
        path = write("c.yaml", "tests:\n- vars: {q: a}\n  providerOutput: x\n")
        self.run_import("promptfoo", path, "--stage", "baseline")
        self.assertIn("is there already", self.refused("promptfoo", path, "--stage", "baseline", status=5))
        self.assertIn("records no answers", self.refused("jsonl", self.path, "--stage", "s", into="other"))

    def test_options_of_other_formats_are_refused(self):
        self.assertIn("--eval has no meaning", self.refused("jsonl", self.path, "--eval", "match"))
        self.assertIn("--map has no meaning", self.refused("promptfoo", self.path, "--map", "input=x"))


class Hostile(Importing):
    def test_files_outside_the_folder_are_not_read(self):
        write("secret.txt", "hidden")
        write("project/in.txt", "inside")
        (self.folder / "project/link.txt").symlink_to(self.folder / "secret.txt")
        (self.folder / "project/up").symlink_to(self.folder)
        for reference in (
            "file://../secret.txt", f"file://{self.folder}/secret.txt", "file:///etc/passwd", "file://link.txt", "file://up/secret.txt",
            "file://a/../../secret.txt", "file://file:///etc/passwd",
        ):  # fmt: skip
            for text in (
                f"tests:\n- vars: {{q: '{reference}'}}\n",
                f"tests: '{reference.replace('.txt', '.csv')}'\n" if "link" not in reference else f"defaultTest: '{reference}'\n",
                f"tests:\n- vars: {{q: a}}\n  assert: [{{type: is-json, value: '{reference}'}}]\n",
            ):
                with self.subTest(text):
                    message = self.refused("promptfoo", write("project/c.yaml", text), status=5)
                    self.assertIn("lies outside the folder", message)
                    self.assertNotIn("hidden", message)

    def test_a_configuration_that_names_itself_ends(self):
        path = write("c.yaml", "tests: file://c.yaml\n")
        cases, _, _ = self.imported("promptfoo", path)
        self.assertEqual(len(cases), 1)
        text = "assertionTemplates:\n  a: {type: contains, config: {$ref: '#/assertionTemplates/a'}}\ntests: [{vars: {q: a}}]\n"
        self.assertIn("without end", self.refused("promptfoo", write("d.yaml", text), into="other"))

    def test_lists_that_multiply_are_bounded(self):
        letters = ", ".join("abcdefghij")
        text = "tests:\n- vars:\n" + "".join(f"    v{n}: [{letters}]\n" for n in range(9))
        self.assertIn("100,000", self.refused("promptfoo", write("c.yaml", text)))

    def test_a_configuration_that_is_no_map_is_refused(self):
        for text, part in (
            ("- a\n", "holds no map"), ("", "holds no map"), ("tests: [a: 1]\n", ":1:"), ("tests: [7]\n", "a test is a map"),
            ("a: 1\n---\nb: 2\n", ":2:"), ("tests: !!js/function 'x'\n", ":1:"), (b"\xff\xfet\0", "is not UTF-8"),
            ("tests:\n- vars: {q: file://none.txt}\n", "does not exist"), ("tests: file://none*.csv\n", "no file is called like"),
        ):  # fmt: skip
            with self.subTest(text):
                self.assertIn(part, self.refused("promptfoo", write("c.yaml", text)))

    def test_control_characters_of_a_file_are_made_visible(self):
        path = write("c.yaml", 'tests:\n- vars: {q: a}\n  assert: [{type: "\\e[2Jx", value: a}]\n"\\e[31m": 1\n')
        done = run_cli("import", "promptfoo", path, "--into", "it", "--dry-run")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout)

    def test_a_file_that_is_too_large_or_no_file_is_refused(self):
        path = self.folder / "big.yaml"
        with open(path, "wb") as stream:
            stream.truncate(65 << 20)
        self.assertIn("larger than 64 MiB", self.refused("promptfoo", path))
        self.assertIn("no file", self.refused("promptfoo", self.folder))
        os.mkfifo("pipe.yaml")
        self.assertIn("no file", self.refused("promptfoo", "pipe.yaml"))


if __name__ == "__main__":
    unittest.main()
