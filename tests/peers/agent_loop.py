"""A scripted model that follows a skill inside the real clients: it finds the engine from the skill's text, and improves a small system.

    lab = Lab(test)                              a repository with the system of examples/system-demo and the skill, outside the temp folder
    lab.open_campaign()                          by a person, outside the sandbox
    ended = lab.drive("codex", campaigner(…))    the client's whole session: Ended(code, steps, denied, text, asked)

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
SKILL = ROOT / "plugins" / "kaizen" / "skills" / "autoresearch"
SECONDS = 300  # for a whole session; a campaign takes about forty
MOST_TURNS = 25
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

    def open_campaign(self, *words: str) -> Path:
        """Opens campaign c1; the sealed place."""
        sealed = self.home / "sealed"
        self.engine("campaign", "open", "--system", "minutes", "--sealed", str(sealed), *words)
        self.base = self.git("rev-parse", "HEAD")
        return sealed

    def drive(self, client: str, script: Script, *, sandbox: str = "workspace-write", mode: str = "acceptEdits", rule: bool = True) -> Ended:
        """The session of *client* that begins with the skill's name and is played by *script*."""
        engine = self.repo / ".claude/skills" / self.skill / "scripts/kaizen.py"
        rules = ["--allowedTools", f'Bash(python3 "{engine}" *)'] if rule else []
        words = {
            "claude": [claude(), *claude_code.COMMAND[1:], "--permission-mode", mode, *rules],
            "codex": [codex(), "exec", "--json", "-s", sandbox, "-"],
        }[client]
        prompt = f"{'/' if client == 'claude' else '$'}{self.skill} Make the answers about minutes better."
        with ModelStub(script) as stub:
            env = surroundings(self.home, stub.environment(self.home))
            done = subprocess.run(words, cwd=self.repo, env=env, input=prompt, capture_output=True, text=True, timeout=SECONDS, check=False)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        if client == "claude":
            answer = claude_code.answer_of(events, done.returncode, False, prompt)
        else:
            codex_exec.HOME = str(self.home / ".codex")
            answer = codex_exec.answer_of(events, done.returncode, False, prompt)
        if stub.raised:
            shown = [str(step.get("args", {}).get("command") or step.get("text") or step["name"])[:200] for step in answer["steps"]]
            raise AssertionError("\n".join([*shown, *stub.raised]))
        stub.check()
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

    def say(self, *words: str) -> Generator[Reply, list[str], str]:
        """What a command printed; one call each, the engine's path in double quotes as the skill says."""
        return (yield from self.conversation.run(f'python3 "{self.engine}" {shlex.join(words)}', self.folder))

    def kaizen(self, *words: str) -> Generator[Reply, list[str], dict[str, Any]]:
        """The document of a command."""
        told = yield from self.say(*words, "--json")
        if "{" not in told:
            raise AssertionError(f"{words} printed no document: {told}")
        return json.JSONDecoder().raw_decode(told[told.index("{") :])[0]  # standard error is told with it

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


class Idea(NamedTuple):
    """What is tried: a title, the new agent.py, the hypothesis, the failure label that it repairs."""

    title: str
    source: Path
    hypothesis: str
    label: str


def campaigner(root: Path, ideas: "list[Idea]") -> Script:
    """A model that does what `kaizen next --json` says and nothing else, with *ideas* for its proposals, until it says stop."""

    def script(conversation: Conversation) -> Generator[Reply, list[str], None]:
        hands, left, leader, doing = Hands(conversation), list(ideas), variant(0), None
        doctor = yield from hands.kaizen("doctor")
        yield from hands.kaizen("campaign", "status")
        opened = yield from hands.kaizen("lab", "open", "--campaign", "c1")
        clone = str(root / opened["path"])
        yield from hands.go_to(clone)
        for _ in range(MOST_TURNS):
            step = yield from hands.kaizen("next")
            action, command = step["action"], step["command"]
            if action in ("stop", "human", "guide") or (action == "propose" and step["idea"] is None and not left):
                break
            if action == "propose" and step["idea"] is None:
                doing = left.pop(0)
                words = ["--title", doing.title, "--hypothesis", doing.hypothesis, "--category", "structure", "--label", doing.label, "--predict", "3"]
                yield from hands.kaizen("idea", "add", "--system", "minutes", *words)
            if action == "propose":
                yield from hands.write(f"{clone}/agent.py", doing.source.read_text(encoding="utf-8"))
                yield from hands.kaizen("lab", "commit", "--title", doing.title)
            elif action == "clean":  # what a variant that was given up left behind
                yield from hands.write(f"{clone}/agent.py", leader.read_text(encoding="utf-8"))
            else:
                yield from hands.kaizen(*command[1:])
                leader = doing.source if action == "keep" else leader
                if action == "close":
                    break
        told = yield from hands.say("campaign", "report", "--campaign", "c1")
        landed = yield from hands.kaizen("lab", "land")
        where = f"{doctor['driver']}, limited: {' '.join(doctor['limited'])}"
        yield f"{where}; {action}: {step['why']}; {told.partition(chr(10))[0]}; landed as {landed['branch'] or landed['patch']}"

    return script
