// An eval in Node: asks the system for an answer to each item, scores it, reports it on descriptor N.
//
//     eval.mjs --out-fd N --request FILE
import { readFileSync, writeSync } from "node:fs";
import { spawnSync } from "node:child_process";

const COMMAND = ["node", "agent.mjs"]; // the system, started in the variant's tree
const words = process.argv.slice(2);
const argument = (name) => words[words.indexOf(name) + 1];
const out = Number(argument("--out-fd"));
const request = JSON.parse(readFileSync(argument("--request"), "utf8"));
const report = (event, fields = {}) => writeSync(out, JSON.stringify({ event, ...fields }) + "\n");

const cases = new Map();
for (const line of readFileSync(request.dataset, "utf8").split("\n")) {
  if (line.trim()) {
    const one = JSON.parse(line);
    cases.set(one.id, one);
  }
}

function answer(one, seed) {
  const began = performance.now();
  const done = spawnSync(COMMAND[0], COMMAND.slice(1), {
    input: JSON.stringify({ input: one.input, seed }),
    encoding: "utf8",
    timeout: request.item_timeout_seconds * 1000,
  });
  if (done.error) return { status: done.error.code === "ETIMEDOUT" ? "timeout" : "infra_error" };
  const latency_ms = performance.now() - began;
  try {
    const { output } = JSON.parse(done.stdout);
    if (done.status === 0 && output !== undefined) {
      return { status: "ok", score: output === one.expected ? 1 : 0, output, latency_ms };
    }
  } catch {}
  return { status: "fail_error", latency_ms, feedback: done.stderr.slice(-2000) };
}

// Node closes descriptor N in the programs it starts, so the system cannot report about itself.
report("start", { total: request.items.length, separation: "own_process" });
for (const item of request.items) {
  report("item", { id: item.id, trial: item.trial, ...answer(cases.get(item.id), item.seed) });
}
report("end");
