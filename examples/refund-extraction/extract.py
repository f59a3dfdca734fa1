"""Extracts order, amount and reason from a customer's message: a script in place of a model.

    python extract.py examples/refund-extraction/prompts/extraction.txt

It speaks the runner protocol, a request a line. The order is the first order number of the message, the amount the first
amount. Beyond that it follows, to the letter, the lines `When a message says "…", FIELD is "…".` of
the prompt; the last one that applies counts. No other word of the prompt reaches it.
"""

import json
import re
import sys

RULE = re.compile(r'^(?:- )?When a message says "([^"]+)", (\w+) is "([^"]*)"\.', re.MULTILINE)
USD_PER_TOKEN = 0.000001  # made up; a token is taken to be four characters


def words_of(text):
    return set(re.findall(r"\w+", text.lower()))


def value(text):
    """A number where the text of a rule is one."""
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text


def extract(message, prompt):
    """The fields of *message* as *prompt* has them."""
    order, amount = re.search(r"\b[A-Z]-\d+\b", message), re.search(r"\d+\.\d\d", message)
    found = {"order": order and order.group(), "amount": amount and float(amount.group()), "reason": "other"}
    for rule in RULE.finditer(prompt):
        said, field, wanted = rule.groups()
        if words_of(said) <= words_of(message):
            found[field] = value(wanted)
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        prompt = file.read()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        message = request["case"]["input"]["message"]
        output = extract(message, prompt)
        tokens = (len(prompt) + len(message) + len(json.dumps(output))) // 4
        cost = {"total_usd": round(tokens * USD_PER_TOKEN, 9)}
        print(json.dumps({"request": request.get("request"), "output": output, "cost": cost}), flush=True)


if __name__ == "__main__":
    main()
