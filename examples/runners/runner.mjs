// A runner in Node: put your agent in place of `agent`. Once for each trial, or with --persistent for many.
//
//     kaizen run NAME --stage baseline -- node examples/runners/runner.mjs

import { createInterface } from "node:readline";

console.log = console.error; // whatever the agent logs is for people

async function agent(input, context, run) {
  return { output: `You said: ${input}` };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { request, case: { input, context }, run } = JSON.parse(line);
  let found;
  try {
    found = await agent(input, context, run);
  } catch (error) {
    found = { error: { type: String(error?.name ?? "Error"), message: String(error?.message ?? error) } };
  }
  process.stdout.write(JSON.stringify({ request, ...found }) + "\n");
}
