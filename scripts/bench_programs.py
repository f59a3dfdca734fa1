"""The programs that scripts/bench.py runs: agents, and the straight floors that Kaizen is measured against."""

AGENT = 'import json,sys\nr=json.load(sys.stdin)\nprint(json.dumps({"output":"answer to "+r["case"]["id"]}))\n'

# The same work as `kaizen evaluate` with its three checks, and nothing else.
EVALUATE_FLOOR = """
import json, re, sys
cases = {}
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        case = json.loads(line)
        cases[case["id"]] = case
pattern = re.compile(r"total: \\\\d+")
with open(sys.argv[2], encoding="utf-8") as lines, open(sys.argv[3], "w", encoding="utf-8") as out:
    for line in lines:
        record = json.loads(line)
        case = cases[record["case_id"]]
        text = json.dumps(record["output"], ensure_ascii=False, separators=(",", ":"))
        value = record["output"]
        checks = [
            ("word", case["expected"]["word"] in text),
            ("total", bool(pattern.search(text))),
            ("shape", isinstance(value, dict) and isinstance(value.get("answer"), str) and isinstance(value.get("n"), int)),
        ]
        outcome = "pass" if all(ok for _, ok in checks) else "fail"
        result = {"case_id": record["case_id"], "trial": record["trial"], "status": record["status"], "outcome": outcome,
                  "evaluations": [{"id": name, "status": "pass" if ok else "fail", "score": float(ok)} for name, ok in checks]}
        out.write(json.dumps(result, ensure_ascii=False, separators=(",", ":")) + "\\n")
"""

# Answers about 200 bytes for each request, a line each.
PERSISTENT_AGENT = """
import json, sys
for line in sys.stdin.buffer:
    request = json.loads(line)
    number = int(request["case"]["input"].split()[1])
    word = "nothing" if number % 10 == 0 else f"word{number}"
    output = {"answer": f"the answer holds {word}, total: {number} " + "and some more text " * 6, "n": number}
    sys.stdout.write(json.dumps({"request": request["request"], "output": output}) + "\\n")
    sys.stdout.flush()
"""

# Asks that agent with 8 requests in flight and writes an observation a case, and nothing else.
ASK_FLOOR = """
import json, subprocess, sys, time
agent = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
answers = open(agent.stdout.fileno(), "rb", closefd=False)
flying = {}
def take(out):
    answer = json.loads(answers.readline())
    case, began = flying.pop(answer["request"])
    out.write(json.dumps({"case_id": case["id"], "trial": 1, "status": "completed", "output": answer["output"],
                          "execution": {"duration_ms": (time.monotonic() - began) * 1000}}, ensure_ascii=False) + "\\n")
    out.flush()
with open(sys.argv[1], encoding="utf-8") as lines, open(sys.argv[2], "w", encoding="utf-8") as out:
    for number, line in enumerate(lines, 1):
        if len(flying) == 8:
            take(out)
        case = json.loads(line)
        flying[number] = case, time.monotonic()
        request = {"protocol": "1.2", "case": {"id": case["id"], "input": case["input"], "context": None}, "run": {}, "request": number}
        agent.stdin.write(json.dumps(request, ensure_ascii=False).encode() + b"\\n")
    while flying:
        take(out)
agent.stdin.close()
agent.wait()
"""

# 20,000 cases × 5 trials on both sides: what the statistics take, in processor seconds, best of five.
STATISTICS = """
import json, random, sys, time, tracemalloc
sys.path.insert(0, sys.argv[1])
import kaizen
from fractions import Fraction
rng = random.Random(1)
moves = []
for _ in range(20_000):
    share = rng.random()
    moves.append(sum(rng.random() < share for _ in range(5)) - sum(rng.random() < share for _ in range(5)))

def best(work):
    times = []
    for _ in range(5):
        kaizen.student_point.cache_clear()
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)

def exact():
    counts = {}
    for move in moves:
        counts[move] = counts.get(move, 0) + 1
    counts = {Fraction(move, 5): times for move, times in counts.items()}
    return kaizen.paired_mean(counts), kaizen.sign_flip(counts)

groups = {(move,): moves.count(move) for move in set(moves)}
table = [[360 if i == j else 10 for j in range(5)] for i in range(5)]
found = {"exact": best(exact), "moves": moves}
tracemalloc.start()
exact()
found["peak_mib"] = tracemalloc.get_traced_memory()[1] / 2**20
tracemalloc.stop()
began = time.process_time()
kaizen.resampled(groups, lambda drawn: sum(key[0] * count for key, count in drawn) / 100_000, 1)
found["sampler"] = time.process_time() - began
began = time.process_time()
kaizen.kappa_resamples(table, 1)
found["kappa"] = time.process_time() - began
print(json.dumps(found))
"""

# The bootstrap that a user would write: 10,000 resamples of 20,000 cases in batches, and scipy's where there is one.
VECTORISED = """
import json, sys, time
import numpy as np
values = np.array(json.load(sys.stdin)) / 5
rng = np.random.default_rng(1)
began = time.process_time()
means = np.concatenate([values[rng.integers(0, len(values), (100, len(values)))].mean(axis=1) for _ in range(100)])
np.quantile(means, [0.025, 0.975]), (means > 0).mean()
found = {"numpy": time.process_time() - began}
try:
    import scipy.stats
    began = time.process_time()
    scipy.stats.bootstrap((values,), np.mean, n_resamples=10_000, batch=100, method="percentile", rng=rng)
    found["scipy"] = time.process_time() - began
except ImportError:
    pass
print(json.dumps(found))
"""

# Starts what is to be measured from a small process, since the peak memory of a process begins with that of its parent.
RELAY = """
import os, sys, time
nowhere = os.open(os.devnull, os.O_RDWR)
opened = [(os.POSIX_SPAWN_DUP2, nowhere, each) for each in (0, 1, 2)]
began = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=opened)
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""

# Reads the recorded answers by position and writes them one by one, and nothing else.
REPLAY_FLOOR = """
import array, json, sys
offsets = array.array("q")
with open(sys.argv[1], "rb") as lines, open(sys.argv[2], "w", encoding="utf-8") as out:
    place = 0
    for line in lines:
        json.loads(line)
        offsets.append(place)
        place += len(line)
    for offset in offsets:
        lines.seek(offset)
        out.write(json.dumps(json.loads(lines.readline()), ensure_ascii=False, separators=(",", ":")) + "\\n")
"""

# Works 4 ms of processor time for each request, and in the end adds what it has used to the file that it is given.
BUSY_AGENT = """
import json, sys, time
for line in sys.stdin.buffer:
    request = json.loads(line)
    until = time.process_time() + 0.004
    while time.process_time() < until:
        pass
    sys.stdout.write(json.dumps({"request": request["request"], "output": "x"}) + "\\n")
    sys.stdout.flush()
with open(sys.argv[1], "a") as used:
    used.write(f"{time.process_time()}\\n")
"""

# The redactor over evidence and over a kept file. Arguments: where kaizen.py lies.
REDACTION = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import kaizen

words = "The customer asked on 2026-01-02 for a refund of order A-4711; the agent looked it up, and gave 12.50 back to the card. "
texts = [words * 34 for _ in range(2000)]
secret = [*texts[:-1], texts[-1] + " ghp_" + "a1B2c3D4e5" * 4]

def spent(function):
    best = 9.0
    for _ in range(3):
        started = time.process_time()
        function()
        best = min(best, time.process_time() - started)
    return best

def copy():
    masker = kaizen.CopyMasker(())
    data = "\\n".join(texts).encode()
    for start in range(0, len(data), 1 << 20):
        masker(data[start : start + (1 << 20)])
    masker(b"")

kaizen.redact_evidence(secret)
print(json.dumps({
    "evidence": spent(lambda: kaizen.redact_evidence(texts)), "with a secret": spent(lambda: kaizen.redact_evidence(secret)),
    "kept file": spent(copy), "floor": spent(lambda: kaizen.encode_compact(texts).encode()),
}))
"""
