import json
import re
import sys

UNITS = {"hours": 60, "minutes": 1}


def minutes(text):
    found = re.findall(r"(\d+) (hours|minutes)", text)
    return sum(int(number) * UNITS[unit] for number, unit in found) if found else None


print(json.dumps([minutes(text) for text in json.load(sys.stdin)]))
