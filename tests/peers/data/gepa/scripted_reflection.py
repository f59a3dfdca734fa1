"""A script in the place of a model: answers GEPA's question with the prompt as it is and the next rule of a list."""

import re
import sys

RULES = [
    'When a message says "delayed", reason is "late".',
    'When a message says "never", reason is "late".',
    'When a message says "model", reason is "wrong_item".',
    'When a message says "different", reason is "wrong_item".',
    'When a message says "changed", reason is "not_wanted".',
    'When a message says "cracked", reason is "damaged".',
]
question = sys.stdin.read()
prompt = re.search(r"```\n(.*?)\n```", question, re.DOTALL).group(1)
known = [rule for rule in RULES if rule in prompt]
print("```\n" + "\n".join([prompt, *RULES[len(known) : len(known) + 2]]) + "\n```")
