"""An optimizer without a model: it turns failed fields into rules of the form `When a message says "…", FIELD is "…".`

    kaizen optimize IMPROVEMENT -- python examples/optimizers/rule_optimizer.py

It speaks protocol 1.0 of docs/optimizing.md and needs nothing but Python. Which field failed it takes from the evaluators'
`evidence` and `reason` (a JSON Pointer such as /reason), what would have been right from the
case's `expected`, and the word from the case's input: one that stands in failed cases with that value and in no open
case with another. That is counting, not understanding: a word that happened to be there is as good to it as one that matters.

The candidates: `every failure`, a rule for each failed field that has such a word; `seen twice`, only words that at least
two failed cases share. Where no reason names a field, the commonest reasons themselves are put under the text,
for a reader that understands them.
"""

import json
import re
import sys
from collections import Counter

POINTER = re.compile(r"(?<![\w/])/[\w~-]+(?:/[\w~-]+)*")
SHORTEST = 3  # letters; shorter words are in every message
REASONS = 5  # at most, in a text without rules


def texts_in(value):
    """All texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def words_of(case):
    return {word for text in texts_in(case["input"]) for word in re.findall(r"\w+", text.lower()) if len(word) >= SHORTEST}


def at(value, pointer):
    """What a JSON Pointer of names leads to; None where there is nothing, or no single value."""
    for name in pointer.split("/")[1:]:
        value = value.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return None if isinstance(value, (list, dict)) else value


def shown(value):
    return value if isinstance(value, str) else json.dumps(value)


def failures_of(feedback):
    """({(pointer, value): ids of the cases in which that field should have had that value}, Counter of all reasons)."""
    cases = {case["id"]: case for case in feedback["cases"]}
    wanted, reasons = {}, Counter()
    for trial in feedback["trials"]:
        for entry in trial["evaluations"]:
            if entry["status"] != "fail":
                continue
            reasons[f"{entry['id']}: {entry['reason']}"] += 1
            places = {place["pointer"] for place in entry["evidence"] if "pointer" in place} | set(POINTER.findall(entry["reason"]))
            for pointer in sorted(places):
                right = at(cases[trial["case_id"]].get("expected"), pointer)
                if right is not None:
                    wanted.setdefault((pointer, right), set()).add(trial["case_id"])
    return wanted, reasons


def rules_of(feedback, wanted, minimum):
    """Rules as text: for each field and value the word that covers most of its failed cases, until none covers *minimum*."""
    words = {case["id"]: words_of(case) for case in feedback["cases"]}
    expected = {case["id"]: case.get("expected") for case in feedback["cases"]}
    rules = []
    for (pointer, right), failed in sorted(wanted.items(), key=lambda item: (item[0][0], -len(item[1]), shown(item[0][1]))):
        misleading = set().union(*(words[name] for name in words if at(expected[name], pointer) != right))
        left = set(failed)
        while left:
            counts = Counter(word for name in left for word in words[name] - misleading)
            best = min(counts, key=lambda word: (-counts[word], -len(word), word), default=None)
            if best is None or counts[best] < minimum:
                break
            rules.append(f'- When a message says "{best}", {pointer[1:]} is "{shown(right)}".')
            left = {name for name in left if best not in words[name]}
    return rules


def candidates_of(request):
    """At most as many candidates as the budget allows, each with its texts and what it rests on."""
    wanted, reasons = failures_of(request["feedback"])
    (first, *_) = request["components"]  # rules go into the first text that is offered

    def candidate(lines, rationale):
        return {"components": {first["name"]: first["text"].rstrip("\n") + "\n\n" + "\n".join(lines) + "\n"}, "rationale": rationale}

    found = []
    for minimum, title in ((1, "every failure"), (2, "seen twice")):
        rules = rules_of(request["feedback"], wanted, minimum)
        if rules:
            found.append(candidate(rules, f"{title}: {len(rules)} rules made by counting words; nothing was tried"))
    if not found and reasons:
        lines = ["Earlier answers went wrong like this:", *(f"- {reason}" for reason, _ in reasons.most_common(REASONS))]
        found.append(candidate(lines, "the commonest reasons as they are; nothing was tried"))
    return found[: request["budget"]["maximum_candidates"]]


if __name__ == "__main__":
    json.dump({"candidates": candidates_of(json.load(sys.stdin))}, sys.stdout)
