"""openai_judge.py through the real `openai` package, against a server here that speaks the API."""

import http.server
import json
import os
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import openai

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import TemporaryFolder, make_improvement, read_json, read_lines

SCRIPT = ROOT / ".agents/skills/improve-agent/scripts/openai_judge.py"
KEY = "sk-test-0123456789abcdefABCDEF0123456789"
QUESTION = {"protocol": "1.1", "rubric": {"id": "tone", "text": "Is it kind?", "sha256": "0"}, "data": {"input": "hi", "output": "{\"score\": 1}"}, "scale": [0, 1]}


def completion(content, finish="stop", refusal=None):
    """What the API answers."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "stub-1-2026-01-01",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    }  # fmt: skip


def judged(score, reason="kind enough", abstain=False):
    return completion(json.dumps({"reason": reason, "score": score, "abstain": abstain}))


class Service(http.server.BaseHTTPRequestHandler):
    """Answers with what `server.script` has next: (status, document), a document, or a number of seconds to be silent."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        script = self.server.script
        answer = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(answer, float):
            time.sleep(answer)
            answer = judged(1)
        status, document = answer if isinstance(answer, tuple) else (200, answer)
        raw = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
        except OSError:
            pass

    def log_message(self, *args):
        pass


class OpenAIJudge(TemporaryFolder):
    """Each test has a server of its own."""

    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        self.server.asked, self.server.script = [], [judged(0.7)]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONWARNINGS": "default"}

    def command(self, *options):
        return [sys.executable, str(SCRIPT), "--model", "stub", "--base-url", self.url, "--retries", "0", *options]

    def judge(self, *options, questions=(QUESTION,), status=0, env=None):
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        done = subprocess.run(self.command(*options), input=lines, capture_output=True, text=True, env=env or self.environment, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn(KEY, done.stdout + done.stderr)
        return done

    def test_it_asks_for_structured_output_and_keeps_rubric_and_data_apart(self):
        answer = json.loads(self.judge("--temperature", "0", "--usd-per-million-input", "2", "--usd-per-million-output", "10").stdout)
        self.assertEqual(answer, {
            "score": 0.7, "reason": "kind enough", "judge": {"name": "openai_judge", "version": "1", "model": "stub-1-2026-01-01"},
            "usage": {"input_tokens": 1000, "output_tokens": 100}, "cost": {"total_usd": 0.003},
        })  # fmt: skip
        path, authorization, body = self.server.asked[0]
        self.assertEqual((path, authorization, body["model"], body["temperature"]), ("/v1/chat/completions", f"Bearer {KEY}", "stub", 0))
        schema = body["response_format"]["json_schema"]
        self.assertEqual((body["response_format"]["type"], schema["strict"], schema["schema"]["additionalProperties"]), ("json_schema", True, False))
        system, user = body["messages"]
        self.assertTrue(system["role"] == "system" and system["content"].endswith("Is it kind?"))
        self.assertNotIn("hi", system["content"].split("The rubric:")[1])
        self.assertEqual(json.loads(user["content"]), QUESTION["data"])

    def test_what_is_not_given_is_not_sent(self):
        self.judge()
        self.assertEqual(sorted(self.server.asked[0][2]), ["messages", "model", "response_format"])

    def test_many_questions_are_answered_a_line_each_and_a_failure_does_not_end_it(self):
        self.server.script = [judged(1), (500, {"error": {"message": f"bad key {KEY}"}}), judged(0, abstain=True)]
        done = self.judge(questions=[{**QUESTION, "request": number} for number in (1, 2, 3)])
        first, second, third = map(json.loads, done.stdout.splitlines())
        self.assertEqual((first["request"], first["score"], second["request"], third["abstain"]), (1, 1, 2, True))
        self.assertIn("the service did not answer", second["error"]["message"])

    def test_a_single_question_that_is_not_answered_exits_3_or_4(self):
        for script, status, words in (
            ((401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}), 3, "did not answer"), ((200, "no json"), 4, "no chat completion"), (completion("{}"), 4, "does not fit"),
            (completion("PASS"), 4, "not JSON"), (completion(None, refusal="no"), 4, "refused"), (completion('{"reason": "', "length"), 4, "ended early"), (judged(1.5), 4, "from 0 to 1"),
            (completion('{"reason": "x", "score": NaN, "abstain": false}'), 4, "from 0 to 1"), ({**judged(1), "choices": []}, 4, "no chat completion"), ({"choices": [{"message": None}]}, 4, "no chat completion"), ({"x": 1}, 4, "no chat completion"), ([], 4, "no chat completion"),
        ):  # fmt: skip
            with self.subTest(words):
                self.server.script = [script]
                done = self.judge(status=status)
                self.assertEqual(done.stdout, "")
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_a_passing_failure_is_tried_again(self):
        self.server.script = [(503, {}), judged(0.5)]
        self.assertEqual(json.loads(self.judge("--retries", "1").stdout)["score"], 0.5)
        self.assertEqual(len(self.server.asked), 2)

    def test_a_service_that_is_silent_is_given_up(self):
        self.server.script = [3.0]
        self.assertIn("did not answer", self.judge("--timeout", "0.3", status=3).stderr)

    def test_wrong_usage_exits_2(self):
        bare = {name: value for name, value in self.environment.items() if name != "OPENAI_API_KEY"}
        self.assertIn("OPENAI_API_KEY", self.judge(status=2, env=bare).stderr)
        self.assertIn("no question", self.judge(status=2, questions=()).stderr)
        self.assertIn("protocol 1.1", self.judge(status=2, questions=({"x": 1},)).stderr)
        self.judge("--no-key", env=bare)
        self.judge("--api-key-env", "OTHER", env={**bare, "OTHER": KEY})
        self.assertEqual([each[1] for each in self.server.asked], ["Bearer none", f"Bearer {KEY}"])
        done = subprocess.run([sys.executable, "-S", "-I", str(SCRIPT), "--model", "m"], input="", capture_output=True, text=True, env=self.environment, check=False)
        self.assertEqual((done.returncode, "pip install openai" in done.stderr), (2, True))
        done = subprocess.run([sys.executable, "-S", "-I", str(SCRIPT), "--help"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "--base-url" in done.stdout), (0, True))

    def test_kaizen_evaluates_with_it(self):
        entry = {"id": "tone", "type": "judge", "rubric": "Is it kind?", "threshold": 0.6}
        cases = [{"id": f"c{number}", "input": number} for number in range(4)]
        place = make_improvement("kind", cases, [entry], baseline=[{"case_id": case["id"], "output": "Hello."} for case in cases])
        argv = [sys.executable, str(ROOT / "kaizen.py"), "evaluate", "kind", "--persistent", "--jobs", "2", "--", *self.command()]
        done = subprocess.run(argv, capture_output=True, text=True, env=self.environment, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([line["outcome"] for line in read_lines(place / "baseline.evaluated.jsonl")], ["pass"] * 4)
        who = read_json(place / "baseline.evaluated.meta.json")["judges"]["tone"]["judges"]
        self.assertEqual(who, [{"name": "openai_judge", "version": "1", "model": "stub-1-2026-01-01", "answers": 4}])
        for path in place.iterdir():
            self.assertNotIn(KEY, path.read_text())

    def test_the_package_is_the_one_that_is_pinned(self):
        pinned = (ROOT / "tests/peers/requirements.txt").read_text()
        self.assertIn(f"openai=={openai.__version__}\n", pinned)


if __name__ == "__main__":
    unittest.main()
