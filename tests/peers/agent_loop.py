"""A scripted model that follows a skill inside the real clients: it finds the engine from the skill's text, and improves a small system.

    lab = Lab(test)                              a repository with the system of examples/system-demo and the skill, outside the temp folder
    ended = lab.drive("codex", researcher(…))    the client's whole session: Ended(code, steps, denied, text, asked)

Codex runs in its sandbox `workspace-write`: no commit in the repository's `.git`, no socket; the model's traffic is the client's own and
takes place outside. Claude Code runs without anybody who could be asked: edits of files are accepted, and the one rule allows
calls of the engine. In both the script works in the clone of `kaizen lab open`.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "examples" / "runners"))

import claude_code
import codex_exec
from clients import claude, codex, outside_temp, surroundings
from model_stub import Call, Conversation, ModelStub, Reply, Script

SYSTEM = ROOT / "examples" / "system-demo" / "system"
SKILL = ROOT / ".agents" / "skills" / "improve-agent"
SECONDS = 100  # for a whole session; it takes about ten
WHERE = {"claude": r"Base directory for this skill: (.+)", "codex": r"</name>\s*<path>(.+)/SKILL\.md</path>"}
GIT = ("git", "-c", "user.name=dev", "-c", "user.email=dev@example.invalid")


class Ended(NamedTuple):
    """How a session ended, in the words of the runners in examples/."""

    code: int
    steps: list[dict[str, Any]]
    text: str
    said: str  # on standard error
    asked: int  # requests to the model

    @property
    def denied(self) -> list[dict[str, Any]]:
        """The steps that the client did not allow."""
        return [step for step in self.steps if step.get("status") == "denied"]


class Lab:
    """A repository with a system to improve, in a home of its own; removed after *test*."""

    def __init__(self, test, skill: Path = SKILL) -> None:
        folder = outside_temp(test)
        self.home, self.repo, self.skill = folder / "home", folder / "repo", skill.name
        (self.repo / "kaizen" / "systems").mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "dev")
        self.git("config", "user.email", "dev@example.invalid")
        for place in (".agents", ".claude"):
            shutil.copytree(skill, self.repo / place / "skills" / skill.name)
        self.engine("init")
        shutil.copytree(SYSTEM / "minutes", self.repo / "kaizen/systems/minutes")
        shutil.copy(SYSTEM / "eval.py", self.repo / "kaizen/systems/minutes/eval.py")
        shutil.copy(variant(0), self.repo / "agent.py")
        self.git("add", "-A")
        self.git("commit", "-qm", "minutes")
        self.base = self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        """What git printed, without the last line end."""
        return subprocess.run([*GIT, *words], cwd=self.repo, capture_output=True, text=True, check=True, timeout=60).stdout.rstrip("\n")

    def engine(self, *words: str) -> str:
        """What the engine of the skill printed, called outside of any sandbox."""
        command = [sys.executable, str(self.repo / ".agents/skills" / self.skill / "scripts/kaizen.py"), *words]
        env = surroundings(self.home)
        return subprocess.run(command, cwd=self.repo, env=env, capture_output=True, text=True, check=True, timeout=60).stdout

    def drive(self, client: str, script: Script, *, sandbox: str = "workspace-write", mode: str = "acceptEdits", rule: bool = True) -> Ended:
        """The session of *client* that begins with the skill's name and is played by *script*."""
        engine = self.repo / ".claude/skills" / self.skill / "scripts/kaizen.py"
        rules = ["--allowedTools", f"Bash(python3 {engine} *)"] if rule else []
        words = {
            "claude": [claude(), *claude_code.COMMAND[1:], "--permission-mode", mode, *rules],
            "codex": [codex(), "exec", "--json", "-s", sandbox, "-"],
        }[client]
        prompt = f"{'/' if client == 'claude' else '$'}{self.skill} Make the answers about minutes better."
        with ModelStub(script) as stub:
            env = surroundings(self.home, stub.environment(self.home))
            done = subprocess.run(words, cwd=self.repo, env=env, input=prompt, capture_output=True, text=True, timeout=SECONDS, check=False)
            stub.check()
        events = [json.loads(line) for line in done.stdout.splitlines()]
        if client == "claude":
            answer = claude_code.answer_of(events, done.returncode, False, prompt)
        else:
            codex_exec.HOME = str(self.home / ".codex")
            answer = codex_exec.answer_of(events, done.returncode, False, prompt)
        return Ended(done.returncode, answer["steps"], str(answer.get("output", answer.get("error"))), done.stderr, len(stub.asked))


def variant(number: int) -> Path:
    """The agent.py of an idea of the example, in the order in which they come there; 0 is what it begins with."""
    return next(SYSTEM.glob(f"variants/{number}-*.py"))


def engine_of(conversation: Conversation) -> str:
    """Path of the engine, as the skill's text lets a model find it."""
    pattern = WHERE[conversation.client]
    for text in conversation.texts:
        if found := re.search(pattern, text):
            return f"{found[1]}/scripts/kaizen.py"
    raise AssertionError("the model was not told where the skill lies")


class Hands:
    """What a model does in either client, for `yield from`: it calls the engine, changes folder, writes a file."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation, self.engine, self.folder = conversation, engine_of(conversation), ""

    def kaizen(self, *words: str) -> Generator[Reply, list[str], dict[str, Any]]:
        """The document of a command, one call each."""
        printed = yield from self.conversation.run(shlex.join(["python3", self.engine, *words, "--json"]), self.folder)
        return json.loads(printed.removeprefix("Exit code ").lstrip("0123456789\n"))

    def go_to(self, folder: str) -> Generator[Reply, list[str], None]:
        """Further calls take place in *folder*."""
        self.folder = folder
        if self.conversation.client == "claude":
            yield self.conversation.shell(f"cd {shlex.quote(folder)}")

    def write(self, path: str, text: str) -> Generator[Reply, list[str], None]:
        """Writes a file that is there."""
        if self.conversation.client == "claude":
            yield Call("Read", {"file_path": path})
            yield Call("Write", {"file_path": path, "content": text})
        else:
            yield self.conversation.shell(f"cat > {shlex.quote(path)} <<'END_OF_FILE'\n{text}END_OF_FILE")


def researcher(root: Path, ideas: "list[tuple[str, Path, str]]") -> Script:
    """A model that tries *ideas* (name, new agent.py, hypothesis) one by one, keeps what chance seldom gives, and lands the best."""

    def script(conversation: Conversation) -> Generator[Reply, list[str], None]:
        hands = Hands(conversation)
        yield from hands.kaizen("status")
        opened = yield from hands.kaizen("lab", "open")
        clone = str(root / opened["path"])
        yield from hands.go_to(clone)
        best, leader = (yield from hands.kaizen("run", "--system", "minutes", "--variant", "first"))["run"], variant(0)
        for name, source, hypothesis in ideas:
            yield from hands.write(f"{clone}/agent.py", source.read_text(encoding="utf-8"))
            yield from hands.kaizen("lab", "commit", "--title", name)
            new = (yield from hands.kaizen("run", "--system", "minutes", "--variant", name, "--hypothesis", hypothesis))["run"]
            if (yield from hands.kaizen("compare", best["id"], new["id"]))["p"]["better"] <= 0.05:
                best, leader = new, source
            else:
                yield from hands.write(f"{clone}/agent.py", leader.read_text(encoding="utf-8"))
                yield from hands.kaizen("lab", "commit", "--title", f"back from {name}")
        landed = yield from hands.kaizen("lab", "land")
        yield f"{best['id']} leads with {best['result']['value']:.3f}; landed as {landed['branch'] or landed['patch']}."

    return script
