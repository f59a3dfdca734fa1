// A page of the items of SYSTEM, for people to read; items of the holdout are counted and not shown:
//
//     node kaizen/systems/SYSTEM/dataset-item.js kaizen/systems/SYSTEM/items.jsonl > page.html
//
// Change `view` so that what matters is seen first. Whatever an item says passes `esc`: it must not become part of the page.
"use strict";

const esc = (value) => String(typeof value === "string" ? value : JSON.stringify(value, null, 1))
  .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const part = (title, value) => (value === undefined || value === null || value === "" ? "" : `<h3>${title}</h3><pre>${esc(value)}</pre>`);

/** The HTML of one item. */
function view(item) {
  const tags = (item.tags ?? []).map((tag) => ` <em>${esc(tag)}</em>`).join("");
  return `<article><h2>${esc(item.id)}${tags}</h2>${part("input", item.input)}${part("context", item.context)}${part("expected", item.expected)}${part("notes", item.notes)}</article>`;
}

if (typeof module !== "undefined") {
  module.exports = { view };
  if (require.main === module) {
    const lines = require("fs").readFileSync(process.argv[2], "utf8").split("\n").filter((line) => line.trim());
    const items = lines.map((line) => JSON.parse(line)), open = items.filter((item) => item.split !== "holdout");
    console.log(`<!doctype html><meta charset="utf-8"><title>SYSTEM</title>${open.map(view).join("\n")}`);
    if (open.length < items.length) console.log(`<p>${items.length - open.length} of the holdout are not shown</p>`);
  }
}
