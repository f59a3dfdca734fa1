"""Plain runners: text in, text out."""

import json
import os
import sys
import unittest
from pathlib import Path

from support import kaizen, read_json, read_lines, write_lines
from test_runs_bridge import StageRun


class PlainRun(StageRun):
    """Cases with inputs of every kind and a runner in shell."""

    def inputs(self, *values):
        write_lines("imp/test_cases.jsonl", [{"id": f"c{number}", "input": value} for number, value in enumerate(values, 1)])

    def run_plain(self, *command, options=(), status=0):
        done = self.run_stage("--plain", "--overwrite", *options, command=command, status=status)
        self.records = {record["case_id"]: record for record in read_lines("imp/s.jsonl")}
        self.outputs = [record.get("output") for record in self.records.values()]
        return done


class StandardInput(PlainRun):
    """The input is what the runner reads, to the byte."""

    def test_a_text_goes_in_as_it_is_and_other_json_compact(self):
        texts = ["", "two\nlines\n", "-n", "größe 🙂\u2028", ' "quoted" ', "\ttab", "$HOME `id`"]
        self.inputs(*texts, {"b": [1, 2.5, None], "a": "ö"}, [], 7, True, None)
        self.run_plain("sh", "-c", "cat; echo '|'")
        wanted = [*texts, '{"b":[1,2.5,null],"a":"ö"}', "[]", "7", "true", "null"]
        self.assertEqual(self.outputs, [f"{text}|" for text in wanted])
        self.assertEqual(read_json("imp/s.meta.json")["mode"], "plain")

    def test_the_environment_names_the_trial(self):
        self.inputs("x")
        self.run_plain("sh", "-c", "echo $KAIZEN_CASE_ID $KAIZEN_TRIAL $KAIZEN_STAGE; ls -A $KAIZEN_WORKDIR")
        self.assertEqual(self.outputs, ["c1 1 s"])


class Output(PlainRun):
    """All of standard output, without one line end at its end."""

    def test_one_line_end_is_taken_away(self):
        printed = ["", "\n", "x", "x\n", "x\n\n", "x\r\n", "x\r", " x \n", '{"output": 1}\n']
        self.inputs(*printed)
        self.run_plain("cat")
        self.assertEqual(self.outputs, ["", "", "x", "x", "x\n", "x", "x\r", " x ", '{"output": 1}'])
        self.assertEqual(kaizen.plain_output(b"\r\n"), "")

    def test_what_is_not_utf8_is_a_protocol_error(self):
        self.inputs("x")
        self.run_plain("printf", "ab\\377", status=4)
        error = self.records["c1"]["error"]
        self.assertEqual((error["class"], error["type"]), ("protocol", "not_utf8"))
        self.assertEqual(error["message"], "the output is not UTF-8 (byte 2 of standard output)")

    def test_a_bad_exit_is_an_error_also_after_output(self):
        self.inputs("x")
        self.run_plain("sh", "-c", "echo fine; exit 3", status=4)
        error = self.records["c1"]["error"]
        self.assertEqual((error["class"], error["type"], error["stdout_excerpt"]), ("runner", "exit", "fine"))

    def test_too_much_and_too_late_are_as_ever(self):
        self.inputs("x")
        self.run_plain("sh", "-c", "head -c 9000000 /dev/zero", status=4)
        self.assertEqual(self.records["c1"]["error"]["type"], "too_much_output")
        self.run_plain("sleep", "9", options=("--timeout", "0.1"), status=4)
        self.assertEqual(self.records["c1"]["status"], "timeout")


class Arguments(PlainRun):
    """{input} and {input_file}: each stays one argument, without a shell."""

    SHOW = (sys.executable, "-I", "-S", "-c", "import sys, json; print(json.dumps([sys.argv[1:], sys.stdin.read()]))")

    def test_the_input_is_one_argument_and_standard_input_is_empty(self):
        texts = ["a b", "-x", "$HOME; rm *", "it's \"q\"", "line\nend", "{input_file}", "ö 🙂", ""]
        self.inputs(*texts, {"a": 1})
        self.run_plain(*self.SHOW, "--prompt={input}.", "{input}", "{inputs}", "{}")
        wanted = [[[f"--prompt={text}.", text, "{inputs}", "{}"], ""] for text in [*texts, '{"a":1}']]
        self.assertEqual([json.loads(output) for output in self.outputs], wanted)
        self.assertEqual(read_json("imp/s.meta.json")["command"][-4:], ["--prompt={input}.", "{input}", "{inputs}", "{}"])

    def test_the_file_holds_the_input_and_is_gone_afterwards(self):
        self.inputs("-n two\nlines\n", {"a": 1})
        self.run_plain("sh", "-c", 'echo "$1"; ls -A "$KAIZEN_WORKDIR"; cat "$1"; wc -c', "sh", "{input_file}")
        for output, text in zip(self.outputs, ("-n two\nlines\n", '{"a":1}'), strict=True):
            path, _, rest = output.partition("\n")
            self.assertEqual(rest.split(), [*text.split(), "0"] if text.endswith("\n") else [f"{text}0"])
            self.assertFalse(os.path.exists(path) or os.path.exists(os.path.dirname(path)))

    def test_an_input_that_no_argument_can_hold_is_an_error_of_its_trial(self):
        self.inputs("a\0b", "x" * 3_000_000, "fine")
        self.run_plain("echo", "{input}", status=4)
        for name in ("c1", "c2"):
            error = self.records[name]["error"]
            self.assertEqual((error["class"], error["type"]), ("environment", "cannot_start"))
            self.assertIn("{input_file} takes any", error["message"])
        self.assertEqual(self.records["c3"]["output"], "fine")
        self.run_plain("sh", "-c", 'wc -c < "$1"', "sh", "{input_file}")
        self.assertEqual([int(output) for output in self.outputs], [3, 3_000_000, 4])

    def test_the_program_itself_is_never_taken_from_an_input(self):
        self.inputs("ls")
        done = self.run_stage("--plain", command=["{input}"], status=2)
        self.assertIn("there is no program '{input}'", done.stderr)
        self.assertFalse(Path("imp/s.jsonl").exists())

    def test_a_context_that_is_not_sent_is_noted(self):
        write_lines("imp/test_cases.jsonl", [{"id": "a", "input": "x", "context": {"k": 1}}, {"id": "b", "input": "y", "context": None}])
        done = self.run_plain("cat")
        self.assertIn("note: 1 case has a context, which --plain does not send", done.stderr)


if __name__ == "__main__":
    unittest.main()
