"""Starts an agent and notes what lies in the folder of its prompt: python spying_agent.py NOTES AGENT… PROMPT"""

import os
import subprocess
import sys

notes, *agent = sys.argv[1:]
folder = os.path.dirname(agent[-1])
for place, _, names in os.walk(folder):
    for name in names:
        if name.endswith((".jsonl", ".json")):
            with open(os.path.join(place, name), encoding="utf-8") as file, open(notes, "a", encoding="utf-8") as out:
                out.write(f"{name}\n{file.read()}\n")
sys.exit(subprocess.run([sys.executable, *agent], check=False).returncode)
