"""The runners for Claude Code and Codex with the real clients, their model played by a script on this machine."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from clients import claude, codex, outside_temp, surroundings, version
from model_stub import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS, Call, ModelStub, Refusal, printed
from support import ROOT, TemporaryFolder, make_improvement, read_json, read_lines, run_process, write

RUNNERS = ROOT / "examples" / "runners"
SECONDS = 60  # a client takes half a second
CASES = [
    {"id": "works", "input": "Raise the number in count.txt by one.", "expected": {"count": "42"}},
    {"id": "does-not", "input": "Raise the number in count.txt by two.", "expected": {"count": "43"}},
]
EVALUATORS = [
    {"id": "says", "type": "contains", "values": ["raised"]},
    {"id": "count", "type": "equals", "select": "files/count.txt/text", "value": {"$case": "/expected/count"}},
]


def agent(conversation):
    """Reads the number, tries something that nobody allowed, and writes the number raised by one, whatever was asked."""
    read = yield ["I look first.", conversation.shell("cat count.txt")]
    number = int(printed(read[0]))
    yield conversation.shell("touch /etc/kaizen-peer-probe")
    if conversation.client == "claude":
        place = next(text.split("directory: ", 1)[1].split("\n")[0] for text in conversation.texts if "working directory: " in text)
        yield [Call("Read", {"file_path": f"{place}/count.txt"})]
        yield Call("Write", {"file_path": f"{place}/count.txt", "content": str(number + 1)})
    else:
        yield conversation.shell(f"printf {number + 1} > count.txt")
    yield "I have raised it."


class RealClients(TemporaryFolder):
    """Two cases through `kaizen run` and `kaizen evaluate`."""

    def setUp(self):
        super().setUp()
        self.home = outside_temp(self)
        write("agent/count.txt", "41")
        make_improvement("imp/imp", CASES, EVALUATORS)

    def ran(self, script, runner, *words, status=0, options=(), variables=None):
        """The observations of a run of *runner* with the model that *script* plays."""
        path = os.pathsep.join([str(Path(program).parent) for program in (claude(), codex())] + [os.environ["PATH"]])
        with ModelStub(script) as stub:
            env = surroundings(self.home, {**stub.environment(self.home), "PATH": path, **(variables or {})})
            argv = ["run", "imp/imp", "--stage", "s", "--overwrite", "--progress", "none", "--timeout", SECONDS, *options]
            argv += ["--workspace", "agent", "--keep", "*.txt", "--", "python3", RUNNERS / runner, *words]
            done = run_process(*argv, env=env, timeout=3 * SECONDS)
            stub.check()
            self.assertEqual(done.status, status, done.stdout + done.stderr)
        return read_lines("imp/imp/s.jsonl")

    def check(self, observations):
        """What holds for both clients."""
        evaluated = run_process("evaluate", "imp/imp")
        self.assertEqual(evaluated.status, 0, evaluated.stderr)
        outcomes = [(each["case_id"], each["outcome"]) for each in read_lines("imp/imp/s.evaluated.jsonl")]
        self.assertEqual(outcomes, [("works", "pass"), ("does-not", "fail")])
        self.assertEqual(read_json("imp/imp/s.meta.json")["command"][1:2], [str(RUNNERS / self.runner)])
        for observation in observations:
            self.assertEqual((observation["status"], observation["output"], observation["finish_reason"]), ("completed", "I have raised it.", "stop"))
            self.assertEqual((observation["files"]["count.txt"]["change"], observation["files"]["count.txt"]["text"]), ("modified", "42"))
            self.assertNotIn("notes", observation)

    def test_claude_code(self):
        self.runner = "claude_code.py"
        observations = self.ran(agent, self.runner, "--allowedTools", "Bash(cat *)", "Write", "--max-turns", "9")
        self.check(observations)
        replies = 5
        for observation in observations:
            steps = [(step["kind"], step.get("name"), step.get("status")) for step in observation["steps"]]
            talk = ("message", None, None)
            self.assertEqual(steps, [talk, talk, ("tool", "Bash", "ok"), ("tool", "Bash", "denied"), ("tool", "Read", "ok"), ("tool", "Write", "ok"), talk])
            usage = {"input_tokens": replies * (INPUT_TOKENS + CACHED_TOKENS), "output_tokens": replies * OUTPUT_TOKENS, "cached_input_tokens": replies * CACHED_TOKENS}
            self.assertEqual(observation["usage"], usage)
            # The list price of this model: 3 $ a million in, a tenth of it from the cache, 15 $ out.
            self.assertAlmostEqual(observation["cost"]["total_usd"], replies * (INPUT_TOKENS * 3 + CACHED_TOKENS * 0.3 + OUTPUT_TOKENS * 15) / 1e6)
            self.assertEqual(observation["metadata"]["version"], version(claude()))

    def test_codex(self):
        self.runner = "codex_exec.py"
        observations = self.ran(agent, self.runner, "-s", "workspace-write")
        self.check(observations)
        for observation in observations:
            steps = [(step["kind"], step.get("args", {}).get("command"), step.get("status")) for step in observation["steps"]]
            talk = ("message", None, None)
            refused = ("command", "touch /etc/kaizen-peer-probe", "error")
            self.assertEqual(steps, [talk, talk, ("command", "cat count.txt", "ok"), refused, ("command", "printf 42 > count.txt", "ok"), talk])
            usage = {"input_tokens": 4 * INPUT_TOKENS, "output_tokens": 4 * OUTPUT_TOKENS, "cached_input_tokens": 4 * CACHED_TOKENS}
            self.assertEqual((observation["usage"], "cost" in observation), (usage, False))

    def test_a_service_that_refuses_is_the_environment(self):
        def refuse(conversation):
            yield Refusal(429, "rate_limit_error", "slow down")

        for runner, kind in (("claude_code.py", "rate_limit"), ("codex_exec.py", "turn_failed")):
            observation = self.ran(refuse, runner, status=4, options=("--id", "works"), variables={"CLAUDE_CODE_MAX_RETRIES": "0"})[0]
            self.assertEqual((observation["status"], observation["error"]["class"], observation["error"]["type"]), ("error", "environment", kind))
            self.assertIn("429", observation["error"]["message"])
            self.assertEqual({"usage", "cost", "output"} & set(observation), set())

    def test_a_client_that_takes_too_long_is_ended_with_what_it_did(self):
        def slow(conversation):
            yield ["I wait.", conversation.shell("python3 -c 'import time; time.sleep(40)'")]
            yield "Done."

        for runner, words in (("claude_code.py", ("--allowedTools", "Bash(python3 *)")), ("codex_exec.py", ())):
            observation = self.ran(slow, runner, *words, status=4, options=("--id", "works"), variables={"AGENT_SECONDS": "6"})[0]
            self.assertEqual((observation["status"], observation["error"]["class"], observation["error"]["type"]), ("error", "agent", "timeout"))
            self.assertEqual([step.get("text") for step in observation["steps"]][1:2], ["I wait."])
            self.assertNotEqual(observation["steps"][2].get("status"), "ok")

    def test_check_finds_nothing_wrong(self):
        for runner, words in (("claude_code.py", ("--allowedTools", "Bash(cat *)", "Write")), ("codex_exec.py", ("-s", "workspace-write"))):
            path = os.pathsep.join([str(Path(program).parent) for program in (claude(), codex())] + [os.environ["PATH"]])
            with ModelStub(agent) as stub:
                env = surroundings(self.home, {**stub.environment(self.home), "PATH": path})
                done = run_process("run", "imp/imp", "--check", "--workspace", "agent", "--", "python3", RUNNERS / runner, *words, env=env)
                stub.check()
            self.assertEqual(done.status, 0, done.stdout + done.stderr)
            self.assertIn("the answer can be used", done.stdout)


if __name__ == "__main__":
    unittest.main()
