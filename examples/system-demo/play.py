"""A scripted agent improves a system over five variants: python play.py FOLDER

It makes a git repository in FOLDER, which must not be there, and does everything by git and by the `kaizen` on PATH.
Each variant begins at the leader; it becomes the leader when `kaizen compare` finds that chance alone seldom makes a
gain like that (p at most 0.05). Two runs at the end tell whether the gain holds for messages that came later.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYSTEM = HERE / "system"
IDEAS = {
    "hours": "if hours count as well, then more messages are right, because many speak of hours",
    "any-number": "if any number is taken for minutes, then more are right, because the unit is often left out",
    "short-units": "if h, hrs, m and min count, then more are right, because people write short",
    "number-words": "if numbers written as words count, then more are right, because people write 'half an hour'",
    "clock": "if 1:30 hours and 1.5 hours count, then more are right, because people write both",
}


def call(*words):
    """What the command printed; an end other than 0 ends this."""
    names = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", "agent"), ("EMAIL", "agent@example.invalid"))
    }
    fixed = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **names}
    done = subprocess.run(words, env={**os.environ, **fixed}, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return done.stdout


def commit(message):
    call("git", "add", "-A")
    call("git", "commit", "-q", "-m", message)


def run(system, variant, hypothesis=""):
    """The id of a new run of the commit at hand."""
    found = json.loads(call("kaizen", "run", "--system", system, "--variant", variant, "--hypothesis", hypothesis, "--json"))
    document = found["run"]
    print(f"{document['id']}  {system} {variant}: {document['result']['value']:.3f}")
    return document["id"]


def begin(folder):
    """The repository with the first version of the system, and two sets of messages."""
    folder.mkdir()
    os.chdir(folder)
    call("git", "init", "-q", "-b", "main")
    call("kaizen", "init")
    for system in ("minutes", "minutes-later"):
        shutil.copytree(SYSTEM / system, f"kaizen/systems/{system}")
        shutil.copy(SYSTEM / "eval.py", f"kaizen/systems/{system}/eval.py")
    shutil.copy(SYSTEM / "variants/0-minutes.py", "agent.py")
    commit("minutes")


def improve():
    """The branch that leads after all ideas."""
    branch, best = "main", run("minutes", "first")
    for number, (idea, hypothesis) in enumerate(IDEAS.items(), 1):
        call("git", "switch", "-q", "-c", idea)
        shutil.copy(SYSTEM / f"variants/{number}-{idea}.py", "agent.py")
        commit(idea)
        new = run("minutes", idea, hypothesis)
        found = json.loads(call("kaizen", "compare", best, new, "--json"))
        if found["p"]["better"] <= 0.05:
            branch, best = idea, new
            print(f"      kept: {found['better']} better, {found['worse']} worse")
        else:
            call("git", "switch", "-q", branch)
            print(f"      dropped: {found['better']} better, {found['worse']} worse")
    return branch


def main():
    begin(Path(sys.argv[1]))
    leader = improve()
    for branch in ("main", leader):
        call("git", "switch", "-q", branch)
        run("minutes-later", branch)


main()
