"""The whole flow: both versions run, evaluated, judged and reviewed. Exits as `kaizen gate` does.

    python examples/langgraph-multi-agent/flow.py                                    no key, no network
    python examples/langgraph-multi-agent/flow.py --mode openai --judge openai       needs a key, langchain-openai and openai
"""

import argparse
import os
import subprocess
import sys

HERE = os.path.relpath(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
JUDGES = {
    "keyword": ("examples/judges/keyword_judge.py",),
    "openai": (".agents/skills/improve-agent/scripts/openai_judge.py", "--model"),
}


def kaizen(kaizen_file, *words, ends=(0,)):
    """Runs a command of Kaizen; what it ends with, which has to be one of *ends*."""
    print("$ kaizen", *words, flush=True)
    status = subprocess.run([sys.executable, kaizen_file, *words], check=False).returncode
    if status not in ends:
        sys.exit(status)
    return status


def main():
    parser = argparse.ArgumentParser(description="Runs, judges and reviews both versions of the help desk.")
    parser.add_argument("--mode", choices=("mock", "openai"), default="mock", help="what stands behind the graph")
    parser.add_argument("--judge", choices=tuple(JUDGES), default="keyword", help="who judges the wording")
    parser.add_argument("--model", default="gpt-4.1-mini", help="of agent and judge, in mode openai")
    parser.add_argument("--kaizen", default=os.path.join(ROOT, "kaizen.py"), help="the file kaizen.py")
    options = parser.parse_args()
    judge, *named = JUDGES[options.judge]
    model = ["--mode", options.mode, *(["--model", options.model] if options.mode == "openai" else [])]
    for stage in ("baseline", "candidate"):
        agent = [sys.executable, os.path.join(HERE, "agent.py"), "--prompts", os.path.join(HERE, "prompts", stage), *model]
        kaizen(options.kaizen, "run", HERE, "--stage", stage, "--overwrite", "--persistent", "--", *agent)
    asked = [sys.executable, os.path.join(ROOT, judge), *named, *([options.model] if named else [])]
    kaizen(options.kaizen, "evaluate", HERE, "--rejudge", "--persistent", "--", *asked)  # another judge has to be asked anew
    kaizen(options.kaizen, "review", HERE)
    return kaizen(options.kaizen, "gate", HERE, ends=(0, 1, 3))


if __name__ == "__main__":
    sys.exit(main())
