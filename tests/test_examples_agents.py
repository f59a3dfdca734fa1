"""The runners for agents: streams that the real clients wrote become answers, and services on this machine are asked as real ones are.

tests/data/clients holds what Claude Code 2.1.332 and Codex 0.171.0 wrote, driven by a scripted model; paths and times are
taken out. The real clients run in tests/peers/test_runners.py.
"""

import contextlib
import email.utils
import http.server
import io
import json
import os
import sys
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import support
from support import DATA, ROOT, make_improvement, read_lines, run_cli, write, write_lines

RUNNERS = ROOT / "examples" / "runners"
sys.path.insert(0, str(RUNNERS))

import claude_code
import codex_exec
import http_agent
import openai_compatible

THREAD = "01a22f7e-3286-7ac0-b9a7-6e19a09280b4"
KEY = "sk-test-0123456789abcdef0123456789"
ZEROS = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0}


def recorded(name):
    return read_lines(DATA / "clients" / f"{name}.jsonl")


def outline(steps):
    """Of each step what a rule would look at."""
    return [(step["kind"], step.get("name") or step.get("role"), step.get("status"), step.get("parent")) for step in steps]


def result_event(**fields):
    return {"type": "result", "subtype": "success", "is_error": False, "result": "Hi.", "stop_reason": "end_turn", **fields}


def used_by(model, **fields):
    return {"modelUsage": {model: {"inputTokens": 10, "outputTokens": 2, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 1, "costBasis": "list", **fields}}}


class ClaudeCode(support.StrictTestCase):
    """The stream of `claude -p --output-format stream-json`."""

    def answer(self, *events, code=0, is_over=False):
        return claude_code.answer_of(list(events), code, is_over, "Hello")

    def test_a_recorded_session_becomes_steps_usage_and_price(self):
        answer = self.answer(*recorded("claude-code"))
        outer = "call_2ffae548_1_0"
        self.assertEqual(outline(answer["steps"]), [
            ("message", "user", None, None), ("message", "assistant", None, None),
            ("tool", "Read", "ok", None), ("tool", "Bash", "error", None), ("tool", "Bash", "denied", None),
            ("tool", "Agent", "ok", None), ("tool", "Read", "ok", None), ("tool", "Bash", "ok", outer), ("message", "assistant", None, outer),
            ("message", "assistant", None, None), ("message", "assistant", None, None),
        ])  # fmt: skip
        calls = [step for step in answer["steps"] if step["kind"] == "tool"]
        self.assertEqual([call["batch"][-1] for call in calls[:5]], ["0", "0", "0", "1", "1"])
        self.assertEqual((calls[0]["args"], calls[0]["result"]), ({"file_path": "/srv/shop/a.txt"}, "1\talpha\n2\t"))
        self.assertEqual((calls[4]["result"], calls[4]["truncated"]), ([{"type": "image"}], ["result"]), "an image's bytes are left out, and it says so")
        self.assertEqual((calls[5]["agent"], answer["output"], answer["finish_reason"]), ("general-purpose", "It says alpha.", "stop"))
        # Six replies of 1000 tokens, 200 more from the cache, and 50 out: 3 $, 0.30 $ and 15 $ a million.
        self.assertEqual(answer["usage"], {"input_tokens": 7200, "output_tokens": 300, "cached_input_tokens": 1200})
        self.assertAlmostEqual(answer["cost"]["total_usd"], 6 * (1000 * 3 + 200 * 0.3 + 50 * 15) / 1e6)
        self.assertEqual((answer["metadata"]["model"], answer["metadata"]["version"]), ("claude-sonnet-4-5", "2.1.332"))

    def test_a_made_up_price_is_no_price(self):
        answer = self.answer(result_event(total_cost_usd=0.5, **used_by("home-made", costBasis="unknown")))
        self.assertEqual((answer["usage"]["input_tokens"], answer["output"]), (16, "Hi."))
        self.assertNotIn("cost", answer)

    def test_a_free_model_costs_nothing_and_a_silent_one_is_not_known(self):
        self.assertEqual(self.answer(result_event(total_cost_usd=0, **used_by("free")))["cost"], {"total_usd": 0})
        silent = self.answer(result_event(total_cost_usd=0, usage=ZEROS, modelUsage={}))
        self.assertEqual({"usage", "cost"} & set(silent), set())

    def test_a_service_that_fails_is_the_environment(self):
        said = {"id": "m", "content": [{"type": "text", "text": "API Error: 429"}]}
        events = [
            {"type": "system", "subtype": "api_retry", "error": "rate_limit", "error_status": 429},
            {"type": "assistant", "message": said, "error": "rate_limit", "is_api_error_message": True, "api_error_status": 429},
            result_event(is_error=True, result="API Error: 429", total_cost_usd=0, usage=ZEROS, modelUsage={}),
        ]
        answer = self.answer(*events, code=1)
        self.assertEqual(answer["error"], {"type": "rate_limit", "message": "API Error: 429", "class": "environment"})
        self.assertEqual((outline(answer["steps"]), answer["metadata"]), ([("message", "user", None, None)], {"api_retries": 1}))
        self.assertEqual({"usage", "cost", "output"} & set(answer), set())

    def test_a_limit_that_was_reached_is_an_answer(self):
        text = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Half of it."}]}}
        reached = result_event(subtype="error_max_turns", is_error=True, result=None, errors=["Reached maximum number of turns (1)"])
        for events, output in (([text, reached], "Half of it."), ([reached], "")):
            answer = self.answer(*events, code=1)
            self.assertEqual((answer["output"], answer["finish_reason"], "error" in answer), (output, "max_steps", False))

    def test_what_fails_inside_is_the_agents(self):
        answer = self.answer(result_event(subtype="error_during_execution", is_error=True, result=None, errors=["broken"]), code=1)
        self.assertEqual(answer["error"], {"type": "error_during_execution", "message": "broken"})

    def test_structured_output_is_the_output(self):
        self.assertEqual(self.answer(result_event(structured_output={"total": 3}))["output"], {"total": 3})

    def test_a_time_out_says_what_it_was_waiting_for(self):
        retry = {"type": "system", "subtype": "api_retry", "error": "overloaded", "error_status": 529}
        for events, kind, words in (([retry], "environment", "overloaded (529)"), ([retry, recorded("claude-code")[1]], "agent", "not finished")):
            error = self.answer(*events, code=-15, is_over=True)["error"]
            self.assertEqual((error["type"], error["class"]), ("timeout", kind))
            self.assertIn(words, error["message"])

    def test_a_call_without_a_result_has_no_status(self):
        steps = self.answer(recorded("claude-code")[2], is_over=True)["steps"]
        self.assertEqual(outline(steps)[1:], [("tool", "Read", None, None)])


class CodexExec(support.TemporaryFolder):
    """The stream of `codex exec --json`, and the session's file beside it."""

    def answer(self, *events, code=0, is_over=False):
        with mock.patch.object(codex_exec, "HOME", str(self.folder)):
            return codex_exec.answer_of(list(events), code, is_over, "Hello")

    def item(self, **fields):
        return {"type": "item.completed", "item": {"id": "item_1", **fields}}

    def test_a_recorded_session_becomes_steps_and_usage_without_a_price(self):
        write_lines(f"sessions/2026/12/01/rollout-2026-12-01T02-45-29-{THREAD}.jsonl", recorded("codex-session"))
        answer = self.answer(*recorded("codex-exec"))
        self.assertEqual([(step["kind"], step.get("status"), step.get("text") or step["args"]["command"]) for step in answer["steps"]], [
            ("message", None, "Hello"), ("message", None, "Let me look."), ("command", "ok", "cat a.txt"), ("command", "error", "cat missing.txt"),
            ("command", "error", "touch /etc/kaizen-probe"), ("message", None, "It says alpha."),
        ], "the command that the sandbox refused is known from the session's file only")  # fmt: skip
        self.assertEqual(answer["steps"][4]["result"], "touch: cannot touch '/etc/kaizen-probe': Read-only file system\n")
        self.assertEqual((answer["output"], answer["usage"]), ("It says alpha.", {"input_tokens": 3000, "output_tokens": 150, "cached_input_tokens": 600}))
        self.assertNotIn("cost", answer)

    def test_without_the_sessions_file_it_says_what_is_missing(self):
        answer = self.answer(*recorded("codex-exec"))
        self.assertEqual(len(answer["steps"]), 5)
        self.assertIn("commands that the sandbox refused may be missing", answer["metadata"]["warnings"][-1])

    def test_items_of_every_kind(self):
        done = {"type": "turn.completed"}
        for fields, step in (
            ({"type": "command_execution", "command": "ls -l", "exit_code": None, "status": "declined"}, ("command", "shell", "denied", {"command": "ls -l"})),
            ({"type": "file_change", "changes": [{"path": "a", "kind": "add"}], "status": "completed"}, ("tool", "apply_patch", "ok", {"changes": [{"path": "a", "kind": "add"}]})),
            ({"type": "mcp_tool_call", "server": "shop", "tool": "find", "arguments": {"id": 7}, "error": {"message": "gone"}, "status": "failed"}, ("tool", "shop.find", "error", {"id": 7})),
            ({"type": "web_search", "query": "price of tea"}, ("retrieval", "web_search", None, {"query": "price of tea"})),
            ({"type": "collab_tool_call", "tool": "spawn_agent", "prompt": "count", "status": "completed"}, ("tool", "spawn_agent", "ok", {"prompt": "count"})),
        ):
            found = self.answer(self.item(**fields), done)["steps"][1]
            self.assertEqual((found["kind"], found["name"], found.get("status"), found["args"]), step)
        for kind in ("reasoning", "todo_list", "error"):
            self.assertEqual(len(self.answer(self.item(type=kind, text="x", message="x"), done)["steps"]), 1, kind)

    def test_what_no_turn_told_is_not_summed(self):
        self.assertNotIn("usage", self.answer({"type": "turn.completed"}))
        first, second = {"input_tokens": 5, "output_tokens": 1, "cached_input_tokens": 2}, {"input_tokens": 7, "output_tokens": 1}
        events = [{"type": "turn.completed", "usage": used} for used in (first, second)]
        self.assertEqual(self.answer(*events)["usage"], {"input_tokens": 12, "output_tokens": 2})

    def test_a_turn_that_failed(self):
        for message, kind in (("exceeded retry limit, last status: 429 Too Many Requests", "environment"), ("Codex ran out of room in the model's context window.", "agent")):
            events = [{"type": "error", "message": message}, {"type": "turn.failed", "error": {"message": message}}]
            self.assertEqual(self.answer(*events, code=1)["error"], {"type": "turn_failed", "message": message, "class": kind})

    def test_a_connection_that_was_made_again_is_no_failure(self):
        answer = self.answer({"type": "error", "message": "Reconnecting... 1/5"}, self.item(type="agent_message", text="Hi."), {"type": "turn.completed"})
        self.assertEqual((answer["output"], "error" in answer), ("Hi.", False))

    def test_a_time_out_keeps_what_was_done(self):
        begun = {"type": "item.started", "item": {"id": "item_1", "type": "command_execution", "command": "/bin/bash -lc 'sleep 60'", "exit_code": None, "status": "in_progress"}}
        answer = self.answer(begun, code=-15, is_over=True)
        self.assertEqual((answer["error"]["type"], answer["error"]["class"]), ("timeout", "agent"))
        self.assertEqual((answer["steps"][1]["args"], "status" in answer["steps"][1]), ({"command": "sleep 60"}, False))


@unittest.skipIf(sys.platform == "win32", "programs are started on Linux and macOS only")
class BothClients(support.TemporaryFolder):
    """Through `kaizen run`, with a program in the client's place that writes what was recorded."""

    def client(self, name, script):
        write(f"bin/{name}", f"#!/bin/sh\n{script}\n").chmod(0o755)

    def run_stage(self, runner, *options, status=0, **env):
        make_improvement("imp/imp", [{"id": "a", "input": "-n What does a.txt say?"}, {"id": "b", "input": {"file": "größe"}, "context": "It is small."}], [
            {"id": "says", "type": "contains", "values": ["alpha"]},
        ])  # fmt: skip
        env = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CODEX_HOME": str(self.folder), "SEEN": str(self.folder / "seen"), **env}
        command = [sys.executable, RUNNERS / f"{runner}.py", "--model", "x y"]
        done = run_cli("run", "imp/imp", "--stage", "s", "--overwrite", "--progress", "none", *options, "--", *command, env=env)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return read_lines("imp/imp/s.jsonl")

    def test_prompt_arguments_folder_and_answer(self):
        for runner, name, stream in (("claude_code", "claude", "claude-code"), ("codex_exec", "codex", "codex-exec")):
            self.client(name, f'for word; do echo "$word" >> "$SEEN"; done; cat >> "$SEEN"; ls -A >> "$SEEN"; cat {DATA}/clients/{stream}.jsonl; echo noise >&2')
            for options in ((), ("--persistent",)):
                first, second = self.run_stage(runner, *options)
                self.assertEqual((first["output"], first["usage"]["output_tokens"] > 0, second["steps"][0]["text"]), ("It says alpha.", True, '{"file": "größe"}\n\nIt is small.'))
            seen = Path("seen").read_text(encoding="utf-8")
            self.assertEqual(seen.count("-n What does a.txt say?"), 2, "the prompt comes once for each trial, on standard input")
            self.assertEqual(seen.count("--model\nx y\n"), 4, "and the words after the file's name as arguments")
            Path("seen").unlink()

    def test_a_client_that_hangs_is_ended_with_what_it_did(self):
        self.client("codex", f"head -n 5 {DATA}/clients/codex-exec.jsonl; exec sleep 30")
        before = time.monotonic()
        observation = self.run_stage("codex_exec", "--id", "a", status=4, AGENT_SECONDS="0.3")[0]
        self.assertLess(time.monotonic() - before, 5)
        self.assertEqual((observation["status"], observation["error"]["type"], len(observation["steps"])), ("error", "timeout", 3))

    def test_a_client_that_refuses_its_arguments_is_the_runners_error(self):
        for runner, name in (("claude_code", "claude"), ("codex_exec", "codex")):
            self.client(name, "echo 'unknown option' >&2; exit 2")
            error = self.run_stage(runner, "--id", "a", status=4)[0]["error"]
            self.assertEqual((error["class"], error["type"]), ("runner", "exit"))
            self.assertIn("unknown option", error["stderr_tail"])

    def test_without_a_client_it_says_so(self):
        error = self.run_stage("claude_code", "--id", "a", status=4, PATH=os.defpath)[0]["error"]
        self.assertIn("claude is not on PATH", error["stderr_tail"])


class Service(http.server.BaseHTTPRequestHandler):
    """Answers with what `server.script` has next: a document, or (status, headers, text)."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), body))
        said = self.server.script.pop(0) if self.server.script else {}
        status, headers, text = said if isinstance(said, tuple) else (200, {}, json.dumps(said))
        raw = text.encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args):
        pass


class Served(support.TemporaryFolder):
    """A test with a service on this machine, and a clock that only notes for how long it was asked to sleep."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=cls.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.url = f"http://127.0.0.1:{cls.server.server_port}"

    def setUp(self):
        super().setUp()
        self.server.asked, self.server.script, self.slept = [], [], []
        variables = {"OPENAI_BASE_URL": f"{self.url}/v1/", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "m", "AGENT_AUTHORIZATION": f"Bearer {KEY}", "no_proxy": "*"}
        for patch in (mock.patch.dict(os.environ, variables), mock.patch.object(time, "sleep", self.slept.append)):
            patch.start()
            self.addCleanup(patch.stop)

    def quietly(self, function, *arguments):
        """What *function* gives; nothing that it or the error stream says may hold the key."""
        with contextlib.redirect_stderr(io.StringIO()) as told:
            found = function(*arguments)
        self.assertNotIn(KEY, told.getvalue() + json.dumps(found))
        return found


def completion(content=None, calls=(), finish="stop", **usage):
    """A reply of the chat-completions API."""
    called = [{"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": text}} for place, (name, text) in enumerate(calls)]
    message = {"role": "assistant", "content": content, **({"tool_calls": called} if called else {})}
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": "tool_calls" if calls else finish}], **({"usage": usage} if usage else {})}


class OpenAICompatible(Served):
    """A model with tools behind a chat-completions URL."""

    def ask(self, *script, case=None):
        self.server.script = list(script)
        return self.quietly(openai_compatible.answer, case or {"id": "a", "input": "How much is 2 and 3?", "context": None})

    def test_it_calls_tools_until_the_model_answers(self):
        calls = [("calculate", '{"expression": "2 + 3"}'), ("calculate", '{"expression": "2 +"}'), ("guess", "{}"), ("calculate", "{")]
        answer = self.ask(completion("Let me see.", calls, prompt_tokens=10, completion_tokens=4), completion("5", prompt_tokens=30, completion_tokens=1))
        self.assertEqual((answer["output"], answer["finish_reason"], answer["metadata"]), ("5", "stop", {"model": "m-1"}))
        self.assertEqual([step.get("status") for step in answer["steps"]], [None, None, "ok", "error", "error", "error", None])
        self.assertEqual((answer["steps"][2]["result"], answer["steps"][2]["args"], answer["steps"][2]["batch"]), (5, {"expression": "2 + 3"}, 1))
        self.assertEqual(answer["steps"][5]["args"], "{", "what the model sent, though it is no JSON")
        self.assertEqual(answer["usage"], {"input_tokens": 40, "output_tokens": 5})
        self.assertNotIn("cost", answer)
        (path, headers, first), (_, _, second) = self.server.asked
        self.assertEqual((path, headers["Authorization"], first["model"], [tool["function"]["name"] for tool in first["tools"]]), ("/v1/chat/completions", f"Bearer {KEY}", "m", ["calculate"]))
        self.assertEqual([(message["role"], message.get("tool_call_id")) for message in second["messages"][3:]], [("tool", f"c{place}") for place in range(4)])
        self.assertEqual(second["messages"][3]["content"], "5")

    def test_usage_and_price_only_if_every_reply_told_them(self):
        call = [("calculate", '{"expression": "1"}')]
        both = self.ask(completion(None, call, prompt_tokens=1, completion_tokens=1, cost=0.25), completion("1", prompt_tokens=1, completion_tokens=1, cost=0.5))
        self.assertEqual((both["cost"], both["usage"]), ({"total_usd": 0.75}, {"input_tokens": 2, "output_tokens": 2}))
        one = self.ask(completion(None, call), completion("1", prompt_tokens=1, completion_tokens=1, cost=0.5))
        self.assertEqual({"usage", "cost"} & set(one), set())

    def test_too_many_rounds_are_an_answer(self):
        answer = self.ask(*[completion(None, [("calculate", '{"expression": "1"}')])] * 20)
        self.assertEqual((answer["output"], answer["finish_reason"], len(self.server.asked)), ("", "max_steps", 10))

    def test_a_busy_service_is_waited_for_as_it_asks(self):
        later = email.utils.formatdate(time.time() + 7, usegmt=True)
        answer = self.ask((429, {"Retry-After": "3"}, ""), (503, {"Retry-After": later}, ""), (500, {}, ""), completion("5"))
        self.assertEqual((answer["output"], self.slept[0], 4 < self.slept[1] <= 7, self.slept[2]), ("5", 3.0, True, 2.0))

    def test_what_still_fails_is_the_environment(self):
        for script, kind, waits in (
            ([(500, {}, "broken")] * 9, "http_500", 3),
            ([(429, {"Retry-After": "9999"}, "tomorrow")], "http_429", 0),
            ([(401, {}, f"Incorrect API key provided: {KEY}")], "http_401", 0),
            ([(200, {}, "no JSON")] * 9, "not_json", 3),
            ([(307, {"Location": "http://127.0.0.1:1/"}, "")], "http_307", 0),
            ([{"choices": []}], "not_a_completion", 0),
        ):
            self.slept.clear()
            error = self.ask(*script)["error"]
            self.assertEqual((error["class"], error["type"], len(self.slept)), ("environment", kind, waits))

    def test_a_service_that_is_not_there(self):
        with mock.patch.dict(os.environ, OPENAI_BASE_URL="http://127.0.0.1:1/v1"):
            self.assertEqual(self.ask()["error"]["type"], "connection")

    def test_through_kaizen_in_one_process(self):
        self.server.script = [completion("5"), completion("6")]
        make_improvement("imp/imp", [{"id": "a", "input": "one"}, {"id": "b", "input": {"n": 2}, "context": {"x": 1}}], [{"id": "is", "type": "equals", "value": "5"}])
        done = run_cli("run", "imp/imp", "--stage", "s", "--progress", "none", "--persistent", "--", sys.executable, RUNNERS / "openai_compatible.py")
        self.assertEqual((done.status, [each["output"] for each in read_lines("imp/imp/s.jsonl")]), (0, ["5", "6"]), done.stderr)
        self.assertEqual(self.server.asked[1][2]["messages"][1]["content"], '{"n": 2}\n\n{"x": 1}')


class HttpAgent(Served):
    """An agent behind a URL."""

    def ask(self, *script, send=(), take=(), each=(), url=None):
        self.server.script = list(script)
        options = mock.Mock(url=url or f"{self.url}/chat", **{name: [http_agent.pair(text) for text in texts] for name, texts in (("send", send), ("take", take), ("each", each))})
        request = {"case": {"id": "a", "input": {"text": "hi", "a/b": [1, 2]}, "context": None}, "run": {"seed": 7}}
        return self.quietly(http_agent.answer, request, options)

    def test_without_options_the_case_is_sent_and_the_reply_is_the_output(self):
        self.assertEqual(self.ask({"reply": "hello"}), {"output": {"reply": "hello"}})
        path, headers, body = self.server.asked[0]
        self.assertEqual((path, headers["Authorization"], body["id"], body["input"]["text"]), ("/chat", f"Bearer {KEY}", "a", "hi"))

    def test_pointers_say_what_goes_where(self):
        reply = {"data": [{"text": "hello"}], "trace": [{"tool": "find", "in": {"id": 7}, "out": None}, {"tool": "send"}], "tokens": {"in": 0}}
        answer = self.ask(
            reply, send=["message=/case/input/text", "options/seed=/run/seed", "options/second=/case/input/a~1b/1", "absent=/case/nothing"],
            take=["output=/data/0/text", "steps=/trace", "usage/input_tokens=/tokens/in", "usage/output_tokens=/tokens/out", "cost/total_usd=/price"],
            each=["name=/tool", "args=/in", "result=/out"],
        )  # fmt: skip
        self.assertEqual(self.server.asked[0][2], {"message": "hi", "options": {"seed": 7, "second": 2}})
        steps = [{"kind": "tool", "name": "find", "args": {"id": 7}, "result": None}, {"kind": "tool", "name": "send"}]
        self.assertEqual(answer, {"output": "hello", "steps": steps, "usage": {"input_tokens": 0}}, "0 was told, the rest was not")

    def test_a_reply_without_an_output_is_the_agents_failure(self):
        for script, kind in (([{"answer": "x"}], "no_output"), ([(200, {}, "plain")], "not_json"), ([(500, {}, "broken")], "http_500"), ([(404, {}, "")], "http_404")):
            error = self.ask(*script, take=["output=/reply"])["error"]
            self.assertEqual((error["type"], error.get("class"), self.slept), (kind, None, []))
        self.assertIn("it has answer", self.ask({"answer": "x"}, take=["output=/reply"])["error"]["message"])

    def test_a_busy_or_absent_service_is_the_environment(self):
        self.assertEqual((self.ask((503, {"Retry-After": "2"}, ""), {"a": 1})["output"], self.slept), ({"a": 1}, [2.0]))
        for script, url, kind in (([(429, {}, KEY)] * 4, None, "http_429"), ([], "http://127.0.0.1:1/", "unreachable"), ([(302, {"Location": "/x"}, "")], None, "http_302")):
            error = self.ask(*script, url=url)["error"]
            self.assertEqual((error["type"], error["class"]), (kind, "environment"))

    def test_through_kaizen_in_one_process(self):
        self.server.script = [{"reply": "hello"}, {"reply": "bye"}]
        make_improvement("imp/imp", [{"id": "a", "input": "one"}, {"id": "b", "input": "two"}], [{"id": "is", "type": "equals", "value": "hello"}])
        command = (sys.executable, RUNNERS / "http_agent.py", self.url, "--send", "text=/case/input", "--take", "output=/reply")
        done = run_cli("run", "imp/imp", "--stage", "s", "--progress", "none", "--persistent", "--", *command)
        self.assertEqual((done.status, [each["output"] for each in read_lines("imp/imp/s.jsonl")]), (0, ["hello", "bye"]), done.stderr)
        self.assertEqual([body for _, _, body in self.server.asked], [{"text": "one"}, {"text": "two"}])


if __name__ == "__main__":
    unittest.main()
