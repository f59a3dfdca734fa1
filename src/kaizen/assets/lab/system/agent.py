"""Stands for the system that is improved: reads {"input": …, "seed": …} and prints its answer as JSON."""

import json
import sys

request = json.load(sys.stdin)
print(json.dumps({"output": request["input"].title()}))
