// A page of what a run of SYSTEM answered, for people to read:
//
//     node kaizen/systems/SYSTEM/trace.js kaizen/.kaizen/runs/RUN/items.jsonl > page.html
//
// Change `view` so that what matters is seen first. Whatever an answer says passes `esc`: it must not become part of the page.
"use strict";

const esc = (value) => String(typeof value === "string" ? value : JSON.stringify(value, null, 1))
  .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const part = (title, value) => (value === undefined || value === null || value === "" ? "" : `<h3>${title}</h3><pre>${esc(value)}</pre>`);

/** The HTML of one answer: a line of items.jsonl, or an observation with its steps. */
function view(answer) {
  const name = answer.item ?? answer.case_id ?? "?";
  const score = answer.score === undefined || answer.score === null ? "" : `, score ${esc(answer.score)}`;
  const steps = (answer.steps ?? []).map((step, number) => part(`${number + 1}. ${esc(step.name ?? step.role ?? step.kind)}`, step.text ?? { args: step.args, result: step.result }));
  return `<article><h2>${esc(name)}: ${esc(answer.status ?? "")}${score}</h2>${steps.join("")}`
    + `${part("output", answer.output)}${part("feedback", answer.feedback)}${part("metrics", answer.metrics)}</article>`;
}

if (typeof module !== "undefined") {
  module.exports = { view };
  if (require.main === module) {
    const lines = require("fs").readFileSync(process.argv[2], "utf8").split("\n").filter((line) => line.trim());
    console.log(`<!doctype html><meta charset="utf-8"><title>SYSTEM</title>${lines.map((line) => view(JSON.parse(line))).join("\n")}`);
  }
}
