"""Nothing that is printed or made to be read shows anything of a holdout case: every command, with canaries in every field.

A new command must be added here, to what is tried or to what is said to touch no case.
"""

import json
import os
import sys
import unittest
from pathlib import Path

import support
from support import kaizen, make_improvement, run_cli, write

CANARY = "kanarienvogel"
WORKING_FILES = (".jsonl", ".lock", ".meta.json")  # formats.md 1.7: cases, observations, results, logs
WORKING_NAMES = ("comparison.json", "evaluation.json")
TOUCH_NO_CASE = (
    *("demo", "evaluators", "init", "create system", "worktree add", "worktree list", "worktree gc", "lab open", "lab commit", "lab land"),
    *("doctor", "guide confirm", "skills install", "skills refresh", "skills status", "skills uninstall"),
)
# test_lab_execution: holdout cases are never asked and only counted; test_lab_reading: nor shown when they were open once
# test_campaigns_ideas, …_conduct, …_next_step, …_closing
OF_THE_LOOP = ("idea add", "idea list", "keep", "discard", "note", "next", "campaign status", "campaign list", "campaign close")
# Played by a whole campaign with canaries in its holdout (test_campaigns_*).
OF_CAMPAIGNS = (
    "campaign open",
    "campaign report",
    "replicate",
    "look",
)
OF_THE_LAB = ("resume", "log", "show", "compare", "status", "create view")

RUNNER = f"""
import json, sys
request = json.load(sys.stdin)
name = request["case"]["id"]
held = name.startswith("{CANARY}")
if held and request["run"]["trial"] == 2:
    sys.exit("{CANARY} in an error")
step = {{"kind": "tool", "name": "{CANARY}_tool" if held else "find", "args": {{"q": name}}, "result": name}}
print(json.dumps({{"output": "{CANARY} said" if held else "yes", "steps": [step]}}))
"""
OPTIMIZER = 'import sys; sys.stdin.read(); print(\'{"candidates": [{"components": {"prompt": "be kind"}}]}\')'


def hidden_case(number):
    """A holdout case with the canary in every field that holds text."""
    word = f"{CANARY}-{number}"
    return {
        "id": word,
        "input": {"question": word},
        "context": [word],
        "expected": {"answer": word},
        "split": "holdout",
        "tags": [word],
        "cluster": word,
        "serial_group": word,
        "evaluators": [{"id": f"{word}-check", "type": "contains", "values": [word]}],
        "source": {"kind": "production", "trace_id": word, "url": f"https://example.test/{word}"},
        "metadata": {word: word},
        "notes": word,
        "owner": word,
        "critical": True,
    }


def first_of_each(commands):
    """The first call of each command."""
    return list({argv[0]: argv for argv in reversed(commands)}.values())[::-1]


class Holdout(support.TemporaryFolder):
    """Two open cases and three of the holdout, run twice on both sides."""

    def setUp(self):
        super().setUp()
        write("agent.py", RUNNER)
        write("optimizer.py", OPTIMIZER)
        write("prompt.txt", "you help")
        cases = [{"id": name, "input": name, "expected": {"answer": "yes"}, "split": "development"} for name in ("one", "two")]
        evaluation = {
            "evaluators": [
                {"id": "says", "type": "contains", "values": {"$case": "/expected/answer"}},
                {"id": "few", "type": "budget", "max": {"steps": 3}},
            ],
            "reliability": {},
            "judge": {"name": "dossiers", "criteria": [{"id": "right", "evaluators": ["says"]}], "verdicts": [{"verdict": "yes", "minimum_score": 1}, {"verdict": "no"}]},
            "optimization": {"components": [{"name": "prompt", "file": "../../prompt.txt"}]},
        }
        self.place = make_improvement("secret", [*cases, *map(hidden_case, range(3))], evaluation)
        labels = [(rater, f"{CANARY}-{number}") for rater in ("ada", "bo") for number in range(3)] + [("ada", "one"), ("bo", "one"), ("bo", "two")]
        lines = [{"case_id": case_id, "rater": rater, "label": "yes" if rater == "ada" else "no", "note": case_id} for rater, case_id in labels]
        support.write_lines(self.place / "labels.jsonl", lines)
        self.printed = []

    def run_command(self, *argv, forms=([], ["--json"])):
        """Runs the command as text and as JSON; what is printed must not hold the canary."""
        for more in forms:
            done = run_cli(*argv[0].split(), *more, *argv[1:])
            self.assertNotEqual(done.status, 70, done.stderr)
            self.assertNotIn(CANARY, done.stdout + done.stderr, f"{argv} {more}")

    def agent(self):
        return ["--", sys.executable, "agent.py"]

    def test_every_command_is_looked_at(self):
        """The commands that follow, and nothing but those."""
        tried = {argv[0] for argv in self.commands()} | {*TOUCH_NO_CASE, *OF_THE_LAB, *OF_CAMPAIGNS, *OF_THE_LOOP}
        self.assertEqual(tried, set(kaizen.COMMANDS), "add the new command to `commands` or to TOUCH_NO_CASE")

    def commands(self):
        """Each command with arguments that make it work, in an order in which it can."""
        twice = ["--repetitions", "2", "--overwrite"]
        return [
            ("validate", "secret"),
            ("run", "secret", "--check", *self.agent()),
            ("run", "secret", "--stage", "baseline", *twice, *self.agent()),
            ("run", "secret", "--stage", "candidate", *twice, *self.agent()),
            ("run", "secret", "--stage", "part", "--shard", "1/1", "--overwrite", *self.agent()),
            ("merge", "secret", "--stage", "part"),
            ("run", "secret", "--stage", "candidate", "--only", "errors", *self.agent()),
            ("run", "secret", "--stage", "more", "--estimate", *self.agent()),
            ("evaluate", "secret"),
            ("import", "jsonl", str(self.place / "test_cases.jsonl"), "--into", "copied", "--dry-run"),
            ("import", "jsonl", str(self.place / "test_cases.jsonl"), "--into", "copied", "--dry-run"),
            ("judge", "secret", "--all"),
            ("judge", "secret", "--case-id", "one"),
            ("label", "secret", "--rater", "ada"),
            ("agreement", "secret"),
            ("agreement", "secret", "--of", "says"),
            ("review", "secret"),
            ("gate", "secret", "--junit", "report.xml", "--summary", "summary.md"),
            ("reliability", "secret"),
            ("plan", "secret"),
            ("noise", "secret", "--passes", "2", *self.agent()),
            ("replay-decision", "secret", "--policy", str(self.place / "evaluation.json")),
            ("pareto", "secret"),
            *[("export", "secret", "--format", kind) for kind in kaizen.EXPORT_FORMATS],
            ("feedback", "secret"),
            ("optimize", "secret", "--", sys.executable, "optimizer.py"),
            ("decide", "secret", "--status", "accepted", "--by", "Ada", "--because", "fine"),
            ("promote", "secret"),
            ("history init", "secret", "--agent-version", "v1"),
            ("history record", "secret", "--agent-version", "v2"),
            ("history record", "secret", "--stage", "part", "--agent-version", "v3"),
            ("history promote", "2"),
            ("history list",),
            ("history show", "2"),
            ("history diff", "1", "2"),
            ("history diff", "2", "3"),
            ("history validate",),
            ("history anchor",),
            ("dashboard",),
            ("replay-decision", "--evaluation", str(self.place / "evaluation.json")),
            ("test", "secret", "--overwrite", *self.agent()),
        ]

    def test_no_command_prints_or_writes_for_readers_anything_of_the_holdout(self):
        for argv in self.commands():
            self.run_command(*argv)
        self.assertGreater((self.folder / "kaizen-history/ledger.jsonl").read_text().count("\n"), 1)
        for path in self.files_to_read():
            self.assertNotIn(CANARY, path.read_text(encoding="utf-8", errors="replace"), str(path))

    def files_to_read(self):
        """Every file that is no working file."""
        for folder, _, names in os.walk("."):
            for name in names:
                if "kaizen-history" in folder and not name.endswith(".html"):
                    continue  # formats.md 1.7: the archive holds what the working files hold
                if not name.endswith(WORKING_FILES) and name not in WORKING_NAMES and name not in ("agent.py",):
                    yield Path(folder) / name

    def test_nothing_leaks_through_errors_about_broken_files(self):
        for argv in self.commands()[2:4]:
            run_cli(*argv)
        run_cli("evaluate", "secret")
        for name in ("test_cases.jsonl", "baseline.jsonl", "candidate.jsonl", "candidate.evaluated.jsonl", "labels.jsonl", "optimizer-log.jsonl"):
            path = self.place / name
            good = path.read_bytes() if path.exists() else b""
            held = [line for line in good.splitlines() if CANARY.encode() in line] or [json.dumps({"event": CANARY}).encode()]
            for broken in (good + held[0][:-9] + b"\n", good + held[0] + b"\n" + held[0] + b"\n", good.replace(b'"split": "holdout"', b'"split": "holdout", "split": "holdout"'), good.replace(CANARY.encode(), CANARY.encode() + b"\xff", 1)):
                path.write_bytes(broken)
                for argv in first_of_each(self.commands()):
                    if argv[0] not in ("run", "noise", "test", "merge", "optimize"):
                        self.run_command(*argv, forms=([],))
            if good:
                path.write_bytes(good)
            else:
                path.unlink()


if __name__ == "__main__":
    unittest.main()
