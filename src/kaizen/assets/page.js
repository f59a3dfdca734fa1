"use strict";
// What all pages of Kaizen share. Text is data: it reaches the page as text nodes, never as markup.

// C0 and C1 controls but tab and line feed, and the marks that reorder or hide text; the joiner inside an emoji stays.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|(?<!\p{Extended_Pictographic}\ufe0f?)\u200d/gu;

// An element with attributes (on…: a listener; true: present; null or false: absent) and children.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child || child === 0));
  return element;
}

// Appends text to parent with each hidden character shown as an escape.
function addText(parent, text) {
  let last = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > last) parent.append(text.slice(last, match.index));
    const code = match[0].charCodeAt(0).toString(16);
    const shown = code.length < 3 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
    parent.append(make("span", { class: "ctl", title: "a character that is not visible" }, shown));
    last = match.index + 1;
  }
  if (last < text.length) parent.append(text.slice(last));
  return parent;
}

const textElement = (tag, attributes, text) => addText(make(tag, attributes), text);
const span = (kind, ...children) => make("span", { class: kind }, children);
const par = (kind, text) => textElement("p", { class: kind }, text);
const button = (attributes, ...children) => make("button", { type: "button", ...attributes }, children);

// Tables: the roles say again what the elements say, for browsers that forget it where narrow screens stack the cells.
const line = (attributes, ...cells) => make("tr", { role: "row", ...attributes }, cells);
const cell = (attributes, ...children) => make("td", { role: "cell", ...attributes }, children);
const rowHead = (...children) => make("th", { scope: "row", role: "rowheader" }, children);
const column = (text) => textElement("th", { scope: "col", role: "columnheader" }, text);
const table = (kind, caption, columns, rows) => make("table", { class: kind, role: "table" },
  textElement("caption", { class: "unseen" }, caption),
  columns.length ? make("thead", { role: "rowgroup" }, line(null, columns.map(column))) : null,
  make("tbody", { role: "rowgroup" }, rows));
const readJson = (id) => JSON.parse(document.getElementById(id).textContent);

function copyFrom(control) {
  const source = document.getElementById(control.dataset.copy);
  const done = (word) => { control.textContent = word; setTimeout(() => { control.textContent = "Copy"; }, 2000); };
  const select = () => { getSelection().selectAllChildren(source); done("Selected"); };
  if (navigator.clipboard) navigator.clipboard.writeText(source.textContent).then(() => done("Copied"), select);
  else select();
}

for (const each of document.querySelectorAll("button[data-copy]")) {
  each.hidden = false;
  each.addEventListener("click", () => copyFrom(each));
}
