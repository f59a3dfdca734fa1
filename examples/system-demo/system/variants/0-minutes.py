import json
import re
import sys


def minutes(text):
    found = re.search(r"(\d+) minutes", text)
    return int(found[1]) if found else None


print(json.dumps([minutes(text) for text in json.load(sys.stdin)]))
