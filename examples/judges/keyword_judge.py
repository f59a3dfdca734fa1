#!/usr/bin/env python3
"""A judge without a model: scores by the words that the rubric lists. Plain Python, nothing to install.

    kaizen evaluate examples/judges -- python examples/judges/keyword_judge.py

A line of the rubric that begins with `+` or `-` names words, divided by `|`, one of which should
stand in the output, or none of which should. The score is the share of lines that hold. A
rubric without such a line cannot be judged this way, and the judge abstains.

The same program answers one question or, with --persistent, many: a JSON object a line each way.
"""

import json
import re
import sys

IDENTITY = {"name": "keyword_judge", "version": "1"}


def rules(text):
    """[(whether a word is wanted, [words])] of the lines that begin with + or -."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"\s*([+-])\s*(\S.*?)\s*", line)
        if match:
            found.append((match[1] == "+", [word.strip().lower() for word in match[2].split("|") if word.strip()]))
    return found


def judge(request):
    """The answer to one question."""
    asked = rules(request["rubric"]["text"])
    if not asked:
        return {"abstain": True, "reason": "the rubric lists no words", "judge": IDENTITY}
    output = request["data"]["output"]
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    text = text.lower()
    missed = [line for line in asked if any(word in text for word in line[1]) != line[0]]
    told = "; ".join(("lacks " if wanted else "has ") + " or ".join(words) for wanted, words in missed)
    score = (len(asked) - len(missed)) / len(asked)
    return {"score": score, "reason": told or "every line of the rubric holds", "judge": IDENTITY}


def main():
    """Answers a question a line."""
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8")
    for line in sys.stdin:
        request = json.loads(line)
        answer = judge(request)
        if "request" in request:
            answer["request"] = request["request"]
        print(json.dumps(answer, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
