import json
import re
import sys

UNITS = {"h": 60, "m": 1}


def minutes(text):
    found = re.findall(r"(\d+) ?(h|m)(?:ours?|rs?|inutes?|in|)\b", text)
    return sum(int(number) * UNITS[unit] for number, unit in found) if found else None


print(json.dumps([minutes(text) for text in json.load(sys.stdin)]))
