import json
import re
import sys

UNITS = {"h": 60, "m": 1}
WORDS = {"half an": 0.5, "a quarter of an": 0.25, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8}
WORDS.update({"ten": 10, "twenty": 20, "thirty": 30, "forty": 40})
NUMBER = r"(\d+|\b(?:" + "|".join(WORDS) + r"))"


def minutes(text):
    found = re.findall(NUMBER + r" ?(h|m)(?:ours?|rs?|inutes?|in|)\b", text.lower())
    return round(sum(float(WORDS.get(number, number)) * UNITS[unit] for number, unit in found)) if found else None


print(json.dumps([minutes(text) for text in json.load(sys.stdin)]))
