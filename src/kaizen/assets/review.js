// The review: a table of cases from #index, details from #case-N, parsed when a case is opened.
const index = readJson("index");
const byId = (id) => document.getElementById(id);
const grouped = (number) => number.toLocaleString("en");
const plural = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
const title = (word) => word[0].toUpperCase() + word.slice(1);
const ROWS = 100, PRINTED_ROWS = 1000, PRINTED_DETAILS = 40;
const OUTCOMES = { p: "pass", f: "fail", e: "error", n: "not run", u: "not evaluated", "-": "not applicable" };
const LOST = ["hard_regressed", "hard", "regressed", "newly_flaky", "weakened", "failed", "flaky"];

const groups = new Map(index.groups.map(([key, name, tone, text, closed]) => [key, { key, name, tone, text, closed }]));
const evaluators = index.evaluators.map(([id, type, severity]) => ({ id, type, severity }));
const cases = index.cases.map(([id, group, labels, letters, split, tags, applied, failed, heading, decider, why], position) => (
  { position, id, group, labels, letters, split, tags, applied, failed, heading, decider, why }));
const roles = index.roles;
const last = roles.length - 1; // the candidate's place in letters and failed; before it the baseline's, if there is one

// --- Texts: [text, characters left out, digest, kind], or the text alone; kind 1 is compact JSON, 2 the end of a text.

const plain = (value) => (typeof value === "string" ? value : value[0]);

// Where the bracket at `start` closes, if within 72 characters; else -1.
function closing(text, start) {
  let depth = 0, quoted = false;
  for (let at = start; at < Math.min(text.length, start + 72); at++) {
    const c = text[at];
    if (quoted) {
      if (c === "\\") at++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if ("{[".includes(c)) depth++;
    else if ("}]".includes(c) && --depth === 0) return at;
  }
  return -1;
}

// Compact JSON with line breaks and blanks, also when it was cut; place(n): where its character n stands then.
function pretty(compact) {
  const parts = [], places = new Uint32Array(compact.length + 1);
  let length = 0, depth = 0, quoted = false, inlineUntil = -1;
  const put = (text) => { parts.push(text); length += text.length; };
  const newline = () => put("\n" + "  ".repeat(Math.max(0, depth)));
  for (let at = 0; at < compact.length; at++) {
    const c = compact[at], inline = at <= inlineUntil;
    if (!quoted && !inline && "}]".includes(c)) { depth--; newline(); }
    places[at] = length;
    put(c);
    if (quoted) {
      if (c === "\\" && at + 1 < compact.length) { places[++at] = length; put(compact[at]); } else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ":") put(" ");
    else if (c === ",") { if (inline) put(" "); else newline(); }
    else if (!inline && "{[".includes(c)) {
      inlineUntil = closing(compact, at);
      if (inlineUntil < 0) { depth++; newline(); }
    }
  }
  places[compact.length] = length;
  return { text: parts.join(""), place: (n) => places[Math.max(0, Math.min(n, compact.length))] };
}

// A text as shown; place(n): where code point n (as Python counts) of the recorded text stands in it.
function shown(value) {
  const [text, left, , kind] = typeof value === "string" ? [value, 0, "", 0] : value;
  const form = kind === 1 ? pretty(text) : { text, place: (n) => n };
  const units = (n) => {
    if (!/[\ud800-\udbff]/.test(text)) return n;
    let at = 0;
    for (let count = 0; count < n && at < text.length; count++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
    return at;
  };
  return { text: form.text, left, kind, place: (n) => form.place(units(n)) };
}

function cutNote({ left, kind }, role, at) {
  if (!left) return null;
  const where = role ? ` The whole text stands in ${index.files[role]}${at ? `, line ${at}` : ""}.` : "";
  return par("cut", `${plural(left, "character")} ${kind === 2 ? "before this" : "more"}, left out here.${where}`);
}

// Appends text with marks [start, end, tag, key], which may overlap and are then nested.
function paint(parent, text, marks) {
  const edges = [...new Set([0, text.length, ...marks.flatMap(([start, end]) => [start, end])])].filter((edge) => edge <= text.length).sort((a, b) => a - b);
  edges.slice(0, -1).forEach((edge, n) => {
    let spot = parent;
    for (const [start, end, tag, key] of marks) {
      if (start <= edge && end >= edges[n + 1]) spot = spot.appendChild(make(tag, key ? { "data-mark": key } : null));
    }
    addText(spot, text.slice(edge, edges[n + 1]));
  });
  return parent;
}

// --- Differences: E. Myers (1986), An O(ND) difference algorithm and its variations, with a bound on the work.

// Which items of a are not in b (gone) and of b not in a (added); null when that takes more than `limit` edits.
function edits(a, b, limit) {
  const most = Math.min(limit, a.length + b.length), base = most + 1;
  const reach = new Int32Array(2 * most + 3), trace = [];
  for (let d = 0; d <= most; d++) {
    trace.push(reach.slice(base - d - 1, base + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[base + k - 1] < reach[base + k + 1]);
      let x = down ? reach[base + k + 1] : reach[base + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach[base + k] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(trace, k, new Uint8Array(a.length), new Uint8Array(b.length));
    }
  }
  return null;
}

function walkBack(trace, k, gone, added) {
  for (let d = trace.length - 1; d > 0; d--) {
    const at = (diagonal) => trace[d][diagonal + d + 1];
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    k += down ? 1 : -1;
    if (down) added[at(k) - k] = 1;
    else gone[at(k)] = 1;
  }
  return { gone, added };
}

// What stayed between two larger changes reads better as part of them.
function joinChanges(a, b, { gone, added }) {
  let i = 0, j = 0, before = 0;
  while (i < a.length || j < b.length) {
    const kept = [];
    let size = 0, left = 0, right = 0;
    while (i < a.length && j < b.length && !gone[i] && !added[j]) { size += a[i].length; kept.push([i++, j++]); }
    while (gone[i]) left += a[i++].length;
    while (added[j]) right += b[j++].length;
    const after = Math.max(left, right);
    if (size <= Math.min(before, after, 24)) for (const [x, y] of kept) gone[x] = added[y] = 1;
    before = after;
  }
}

function ranges(items, flags, tag) {
  const found = [];
  let at = 0;
  items.forEach((item, n) => {
    const previous = found[found.length - 1];
    if (flags[n] && previous && previous[1] === at) previous[1] += item.length;
    else if (flags[n]) found.push([at, at + item.length, tag]);
    at += item.length;
  });
  return found;
}

const WORDS = /[\p{L}\p{N}_]+(?:[.,]\p{N}+)*|\s+|[^\p{L}\p{N}_\s]/gu, LINES = /[^\n]*\n|[^\n]+$/g;

// Marks for both texts, by words or, where they are long, by lines; null when marking would help nobody.
function difference(a, b) {
  for (const [pattern, limit] of [[WORDS, 800], [LINES, 600]]) {
    const left = a.match(pattern) || [], right = b.match(pattern) || [];
    const change = left.length + right.length > 24000 ? null : edits(left, right, limit);
    if (!change) continue;
    const kept = left.reduce((sum, item, n) => sum + (change.gone[n] ? 0 : item.trim().length), 0);
    if (kept < 0.12 * Math.max(a.length, b.length)) return null;
    if (pattern === WORDS) joinChanges(left, right, change);
    return [ranges(left, change.gone, "del"), ranges(right, change.added, "ins")];
  }
  return null;
}

// [[place in a or null, place in b or null, same]] of two trajectories: most equal steps, then most of one kind and name.
function alignSteps(a, b) {
  const kind = (step) => JSON.stringify([step.kind, step.name, step.role]);
  const key = (step) => kind(step) + JSON.stringify([step.args, step.text]);
  const [keysA, keysB, kindsA, kindsB] = [a.map(key), b.map(key), a.map(kind), b.map(kind)];
  const value = (i, j) => (keysA[i] === keysB[j] ? 5 : kindsA[i] === kindsB[j] ? 2 : 0);
  const best = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const pair = value(i, j);
      best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], pair && pair + best[i + 1][j + 1]);
    }
  }
  const rows = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const pair = i < a.length && j < b.length ? value(i, j) : 0;
    if (pair && best[i][j] === pair + best[i + 1][j + 1]) rows.push([i, j, keysA[i++] === keysB[j++]]);
    else if (j >= b.length || (i < a.length && best[i][j] === best[i + 1][j])) rows.push([i++, null, false]);
    else rows.push([null, j++, false]);
  }
  return rows;
}

// --- Rows.

const dot = (letter) => span(`dot ${letter === "-" ? "n" : letter}`);
const sign = (tone) => make("span", { class: `sign sign-${tone}`, "aria-hidden": "true" });

function outcomeText(letters) {
  const count = (letter) => letters.split(letter).length - 1;
  const extra = ["e", "n", "u"].filter(count).map((letter) => (letter === "e" ? plural(count("e"), "error") : `${count(letter)} ${OUTCOMES[letter]}`));
  return [`${count("p")} of ${letters.length} passed`, ...extra].join(", ");
}

function dotStrip(letters, role) {
  const text = outcomeText(letters);
  return [make("span", { class: "dots", role: "img", "aria-label": `${role}: ${text}` }, [...letters].slice(0, 60).map(dot)),
    make("span", { class: "share", "aria-hidden": "true" }, text.replace(" passed", ""))];
}

// Binding evaluators that fail only now, or only before: [letter, number, words].
function turned(item) {
  const only = (side) => item.failed[side].filter((number) => !item.failed[1 - side].includes(number) && ["hard", "gate"].includes(evaluators[number].severity));
  return last ? [...only(1).map((number) => ["f", number, "fails now"]), ...only(0).map((number) => ["p", number, "passes now"])].slice(0, 4) : [];
}

function caseRow(item) {
  const marks = turned(item);
  const isNamed = item.decider < 0 || marks.some(([, number]) => number === item.decider);
  return line({ class: "row", "data-position": item.position },
    rowHead(button({ class: "open", "aria-expanded": "false" }, addText(span(), item.id)),
      item.labels.map((label) => [" ", span("tag", label)]), textElement("span", { class: "title" }, item.heading)),
    roles.map((role, side) => cell(null, span("side-name", title(role)), dotStrip(item.letters[side], role))),
    cell(null,
      marks.length > 0 && span("chips", marks.map(([letter, number, words]) => span("chip", dot(letter), addText(span(), evaluators[number].id), span("unseen", words)))),
      item.why && textElement("span", { class: "why" }, `${groups.get(item.group).tone === "good" ? "before: " : ""}${isNamed ? "" : `${evaluators[item.decider].id}: `}${item.why}`)));
}

// --- Sections of an open case; `sides` is [{role, trial, data}], data undefined for a trial that is not there.

// The detail of a case; texts and steps that stand in it by number are put in their places.
function caseDetail(source) {
  const detail = JSON.parse(source.textContent);
  const text = (value) => (typeof value === "number" ? detail.texts[value] : value);
  for (const step of detail.steps) for (const key of ["args", "text", "result"]) step[key] = text(step[key]);
  for (const trial of Object.values(detail.trials).flatMap(Object.values)) {
    trial.output = text(trial.output);
    trial.steps = trial.steps && trial.steps.map((number) => detail.steps[number]);
    for (const check of trial.checks) check[4] = text(check[4]);
  }
  return detail;
}

const sideName = ({ role, trial }) => `${title(role)}, trial ${trial}`;
const section = (name, note, ...children) => make("section", null, make("h4", null, name, note && make("small", null, note)), children);
const missing = (words) => par("missing", words);
const pane = (name, ...children) => make("div", { class: "pane" }, par("pane-name", name), children);
const pair = (panes) => make("div", { class: panes.length > 1 ? "pair two" : "pair" }, panes);

function textBox(form, label, marks) {
  const box = make("pre", { class: form.kind === 0 ? "text prose" : "text", tabindex: "0", role: "region", "aria-label": label });
  return form.text ? paint(box, form.text, marks || []) : make("div", null, missing("an empty text"));
}

function errorSection(sides) {
  const found = sides.filter(({ data }) => data && (data.error || data.tries));
  return found.length > 0 && section("Errors", null, pair(found.map((side) => {
    const { error = {}, tries } = side.data, stderr = error.stderr && shown(error.stderr);
    const head = ["class", "type"].filter((key) => error[key]).map((key) => plain(error[key]));
    if (error.exit_code) head.push(`exit ${error.exit_code}`);
    return pane(sideName(side), textElement("p", null, [...new Set(head)].join(" · ")), error.message && par("said", plain(error.message)),
      stderr && [par("pane-name", "End of standard error"), textBox(stderr, `standard error, ${side.role}`), cutNote(stderr)],
      tries && par("small", `After ${plural(tries.length, "earlier attempt")}.`));
  })));
}

function askedSection(detail) {
  const blocks = ["input", "expected", "context"].filter((key) => detail[key] !== undefined).map((key) => {
    const form = shown(detail[key]);
    return pane(title(key), textBox(form, key), cutNote(form));
  });
  return section(detail.expected === undefined ? "What was asked" : "What was asked, and what is expected", null, pair(blocks));
}

function light(target) {
  if (!target) return;
  document.querySelector(".lit")?.classList.remove("lit");
  target.classList.add("lit");
  target.scrollIntoView({ block: "center" });
}

// Buttons that lead to the evidence of a check: a step, or characters of the output.
function pointers(check, role, panel) {
  const found = (check[5] || []).map((pointer, n) => {
    if (typeof pointer === "string") return addText(span(), pointer);
    const [words, target] = pointer.step !== undefined ? [`step ${pointer.step}`, `[data-step="${role}-${pointer.step}"]`]
      : [pointer.text ? `“${pointer.text}”` : `characters ${pointer.start} to ${pointer.end}`, `[data-mark="${role}-${check[0]}-${n}"]`];
    return button({ onclick: () => light(panel.querySelector(target)) }, addText(span(), words));
  });
  return found.length > 0 && make("div", { class: "pointers" }, found);
}

function checkCell(detail, { role, data }, number, panel) {
  const check = data && data.checks.find((each) => each[0] === number);
  if (!check) return cell(null, missing(data ? "not part of this trial" : "no such trial"));
  const trials = Object.values(detail.trials[role]);
  const passed = trials.filter((trial) => trial.checks.some((each) => each[0] === number && each[1] === "p")).length;
  const extra = [![null, 0, 1].includes(check[2]) && `score ${check[2]}`, check[3] !== null && !/^[{[]/.test(check[3]) && `value ${check[3]}`,
    passed > 0 && passed < trials.length && `passes in ${passed} of ${trials.length} trials`].filter(Boolean).join(", ");
  return cell(null, span("side-name", title(role)), span("status", dot(check[1]), OUTCOMES[check[1]]),
    textElement("span", { class: "reason" }, plain(check[4])), extra && textElement("small", null, extra), pointers(check, role, panel));
}

function checkSection(detail, sides, panel) {
  const numbers = [...new Set(sides.flatMap(({ data }) => (data ? data.checks.map((check) => check[0]) : [])))];
  return section("Evaluators", null, numbers.length ? table("checks", "What each evaluator said", ["Evaluator", ...sides.map(sideName)], numbers.map((number) => {
    const { id, type, severity } = evaluators[number];
    return line(null, rowHead(addText(span(), id), textElement("small", null, `${type}, ${severity}`)), sides.map((side) => checkCell(detail, side, number, panel)));
  })) : missing("No evaluator has looked at this trial."));
}

function outputPane(side, form, marks, name) {
  const places = side.data.checks.flatMap((check) => (check[5] || []).map((pointer, n) => [
    form.place(pointer.start), form.place(pointer.end), "mark", `${side.role}-${check[0]}-${n}`]).filter(([start, end]) => start < end));
  return pane(name, textBox(form, `output, ${name}`, [...marks, ...places]), cutNote(form, side.role, side.data.line));
}

const absentPane = (side, words) => pane(sideName(side), missing(side.data ? words : "This trial was not run."));

function outputSection(sides) {
  const forms = sides.map(({ data }) => data && data.output !== undefined && shown(data.output));
  const both = forms.length > 1 && forms.every(Boolean);
  if (both && JSON.stringify(sides[0].data.output) === JSON.stringify(sides[1].data.output)) {
    return section("Output", "the same on both sides", outputPane(sides[1], forms[1], [], `Both, trial ${sides[1].trial}`));
  }
  const marks = both && difference(forms[0].text, forms[1].text);
  return section("Output", both && (marks ? "struck out: only before; underlined: only now" : "too different to mark words"),
    pair(sides.map((side, n) => (forms[n] ? outputPane(side, forms[n], marks ? marks[n] : [], sideName(side)) : absentPane(side, "There is no output.")))));
}

function stepCell(step, place, role) {
  const name = span("side-name", title(role));
  if (!step) return cell(null, name, span("gap", "nothing here"));
  const part = (key, tag) => {
    if (step[key] === undefined) return null;
    const form = shown(step[key]);
    return [textElement(tag, { class: key }, form.text), cutNote(form)];
  };
  const odd = step.status && step.status !== "ok";
  return cell(null, name, make("div", { class: "step", "data-step": `${role}-${place}` },
    make("div", { class: "step-head" }, span("step-number", String(place)), textElement("span", { class: "step-name" }, step.name || step.role || step.kind || "step"),
      textElement("span", { class: "step-kind" }, [step.kind, step.agent].filter(Boolean).join(" · ")),
      odd && span("chip", dot("e"), addText(span(), step.status))),
    make("div", { class: "step-body" }, part("args", "pre"), part("text", "p"), part("result", "pre"),
      step.truncated && par("small", `cut short by the runner: ${step.truncated.join(", ")}`))));
}

function stepSection(sides) {
  const lists = sides.map(({ data }) => data && data.steps);
  const more = sides.filter(({ data }) => data && data.more).map(({ role, data }) => par("cut", `${plural(data.more, "further step")} of the ${role}: ${index.files[role]}, line ${data.line}.`));
  if (!lists.some(Boolean)) return section("Trajectory", null, missing("No steps were recorded."));
  if (!last || !lists.every(Boolean)) {
    return section("Trajectory", null, pair(sides.map((side, n) => (lists[n] ? pane(sideName(side), table("steps", `Steps of the ${side.role}`, [], lists[n].map((step, at) => line(null, stepCell(step, at, side.role)))))
      : absentPane(side, "No steps were recorded.")))), more);
  }
  const aligned = alignSteps(...lists);
  const first = aligned.findIndex(([, , same]) => !same);
  const rows = aligned.map(([left, right, same], n) => [
    n === first && line({ class: "first-label" }, cell({ colspan: "2" }, "First difference")),
    line({ class: `${same ? "" : "differs"} ${n === first ? "first" : ""}` }, stepCell(lists[0][left], left, roles[0]), stepCell(lists[1][right], right, roles[1]))]);
  return section("Trajectory", first < 0 ? "the same steps on both sides" : `the same before step ${first}`,
    table("steps", "Steps of both sides, aligned", sides.map(sideName), rows), more);
}

function measures(sides) {
  return sides.filter(({ data }) => data).map((side) => {
    const { outcome, score, duration_ms: time, cost_usd: cost, usage = [], finish, line: at } = side.data;
    const facts = [OUTCOMES[outcome], score === undefined ? "score not measured" : `score ${score}`, time === undefined ? "duration not measured" : `${grouped(time)} ms`,
      cost === undefined ? "cost not measured" : `$${cost}`, ...usage.map((each) => each.join(" ")), finish && `finished: ${finish}`, at && `${index.files[side.role]}, line ${at}`];
    return par("small measure", `${sideName(side)}: ${facts.filter(Boolean).join(" · ")}`);
  });
}

// --- The open case.

const trialOf = (detail, role, trial) => (detail.trials[role] || {})[trial];
const outcomeOf = (detail, role, trial) => (trialOf(detail, role, trial) || { outcome: "n" }).outcome;

function trialPicker(detail, trials, chosen, choose) {
  return trials.length > 1 && make("div", { class: "trials", role: "group", "aria-label": "Trial" }, "Trial", trials.map((trial) => {
    const letters = roles.map((role) => outcomeOf(detail, role, trial));
    const words = roles.map((role, n) => `${role} ${OUTCOMES[letters[n]]}`).join(", ");
    return button({ "aria-pressed": String(trial === chosen), "aria-label": `Trial ${trial}: ${words}`, onclick: () => choose(trial) },
      String(trial), letters.map((letter, n) => [n > 0 && make("span", { "aria-hidden": "true" }, "→"), dot(letter)]));
  }));
}

function fillPanel(panel, item, wanted) {
  const source = byId(`case-${item.position}`);
  if (!source) {
    const isLoading = document.readyState === "loading";
    panel.replaceChildren(missing(isLoading ? "The page is still being read …"
      : `The texts of this case are left out, because the page would be larger than 20 MB. They stand in ${Object.values(index.files).join(" and ")}.`));
    if (isLoading) document.addEventListener("DOMContentLoaded", () => fillPanel(panel, item, wanted), { once: true });
    return;
  }
  const detail = caseDetail(source);
  const trials = [...new Set(roles.flatMap((role) => Object.keys(detail.trials[role] || {})).map(Number))].sort((a, b) => a - b);
  const facts = [item.split && `split: ${item.split}`, ...item.tags.map((tag) => `tag: ${tag}`), ...detail.facts.map(([label, value]) => `${label}: ${plain(value)}`)].filter(Boolean);
  const show = (trial, focus) => {
    const sides = roles.map((role) => ({ role, trial, data: trialOf(detail, role, trial) }));
    panel.dataset.trial = trial;
    panel.replaceChildren(
      make("div", { class: "panel-head" }, make("p", { class: "facts" }, facts.map((fact) => textElement("span", { class: "tag" }, fact))),
        trialPicker(detail, trials, trial, (next) => { show(next, true); address.write(); })),
      ...[errorSection(sides), askedSection(detail), checkSection(detail, sides, panel), outputSection(sides), stepSection(sides), ...measures(sides)].filter(Boolean));
    if (focus) panel.querySelector('.trials [aria-pressed="true"]').focus();
  };
  panel.turn = (by) => {
    const next = trials[trials.indexOf(Number(panel.dataset.trial)) + by];
    if (next) { show(next); address.write(); }
  };
  // The trial that shows most: one that got worse, else one that differs, else the first.
  const differs = (trial) => outcomeOf(detail, "candidate", trial) !== outcomeOf(detail, "baseline", trial);
  const worse = trials.find((trial) => outcomeOf(detail, "candidate", trial) === "f" && differs(trial));
  show(trials.includes(wanted) ? wanted : worse || trials.find(differs) || trials[0] || 1);
}

// --- The list: groups of rows, drawn in pieces.

const opened = new Map(); // position -> trial asked for, of the cases that are open
const toggled = new Map(); // group key -> opened or closed by hand
let views = [], current = null, isPrinting = false;

const rowOf = (position) => document.querySelector(`.row[data-position="${position}"]`);
const panelOf = (position) => byId(`detail-${position}`)?.querySelector(".panel");

function detailRow(item) {
  const panel = make("div", { class: "panel" });
  fillPanel(panel, item, opened.get(item.position));
  return line({ class: "detail", id: `detail-${item.position}` }, cell({ colspan: roles.length + 2 }, panel));
}

function drawRows(view, upTo) {
  for (const item of view.items.slice(view.drawn, upTo)) {
    view.body.append(caseRow(item));
    if (opened.has(item.position)) openCase(item.position, opened.get(item.position), view.body.lastChild);
  }
  view.drawn = Math.max(view.drawn, Math.min(view.items.length, upTo));
  const left = view.items.length - view.drawn;
  view.more.hidden = !left;
  view.more.replaceChildren(button({ onclick: () => {
    const next = view.items[view.drawn];
    drawRows(view, view.drawn + ROWS);
    focusCase(next.position);
  } }, `Show ${Math.min(left, ROWS)} more`), `${grouped(left)} not shown`);
}

function groupView(group, items) {
  const isOpen = isPrinting || (toggled.has(group.key) ? toggled.get(group.key) : !group.closed || filters.active());
  const rows = table("rows", `${group.name}: ${plural(items.length, "case")}`, ["Case", ...roles.map(title), last ? "What changed" : "What decided"], []);
  rows.firstChild.after(make("colgroup", null, ["", ...roles.map(() => "col-side"), "col-why"].map((kind) => make("col", { class: kind }))));
  const view = { group, items, isOpen, drawn: 0, body: rows.lastChild, more: make("p", { class: "more" }) };
  const content = make("div", { id: `group-${group.key}`, hidden: !isOpen }, rows, view.more);
  const turn = (event) => {
    view.isOpen = !view.isOpen;
    toggled.set(group.key, view.isOpen);
    content.hidden = !view.isOpen;
    event.currentTarget.setAttribute("aria-expanded", String(view.isOpen));
    if (view.isOpen && !view.drawn) drawRows(view, ROWS);
  };
  view.section = make("section", { class: `group tone-${group.tone}`, "aria-labelledby": `title-${group.key}` },
    make("div", { class: "group-head" },
      make("h3", { id: `title-${group.key}` }, button({ "aria-expanded": String(isOpen), "aria-controls": content.id, onclick: turn },
        make("span", { class: "turn", "aria-hidden": "true" }), sign(group.tone), group.name, " ", span("number", grouped(items.length)))),
      make("p", null, group.text)), content);
  if (isOpen) drawRows(view, isPrinting ? PRINTED_ROWS : ROWS);
  return view;
}

function drawList() {
  const matching = cases.filter(filters.accepts());
  const byGroup = new Map([...groups.keys()].map((key) => [key, []]));
  for (const item of matching) byGroup.get(item.group).push(item);
  views = [...byGroup].filter(([, items]) => items.length).map(([key, items]) => groupView(groups.get(key), items));
  const nothing = par("empty", cases.length ? "No case fits these filters." : "No case to show.");
  byId("cases").replaceChildren(...(views.length ? views.map((view) => view.section) : [nothing]));
  byId("count").textContent = matching.length === cases.length ? plural(cases.length, "case") : `${grouped(matching.length)} of ${plural(cases.length, "case")}`;
  byId("clear").hidden = !filters.active();
}

// The row of a case, drawn and in an open group; null when the filters leave it out.
function reveal(position) {
  const view = views.find(({ group }) => group.key === cases[position].group);
  const place = view ? view.items.indexOf(cases[position]) : -1;
  if (place < 0) return null;
  if (!view.isOpen) view.section.querySelector("h3 button").click();
  if (place >= view.drawn) drawRows(view, place + 50);
  return rowOf(position);
}

function openCase(position, trial, row) {
  opened.set(position, trial);
  byId(`detail-${position}`)?.remove();
  row.after(detailRow(cases[position]));
  row.querySelector(".open").setAttribute("aria-expanded", "true");
}

function toggleCase(position) {
  current = position;
  if (!opened.has(position)) openCase(position, undefined, rowOf(position));
  else {
    opened.delete(position);
    byId(`detail-${position}`).remove();
    rowOf(position).querySelector(".open").setAttribute("aria-expanded", "false");
  }
  address.write();
}

function focusCase(position, block) {
  const row = reveal(position);
  if (!row) return;
  current = position;
  row.querySelector(".open").focus({ preventScroll: true });
  row.scrollIntoView({ block: block || "nearest" });
}

// --- Filters, and the address that keeps them.

const filters = {
  clear() { Object.assign(this, { changes: new Set(), split: "", tag: "", evaluator: "", how: "failed", query: "" }); },
  active() { return this.changes.size > 0 || [this.split, this.tag, this.evaluator, this.query].some(Boolean); },
  // A function that says if a case fits.
  accepts() {
    const number = evaluators.findIndex(({ id }) => id === this.evaluator);
    const failed = (item, side) => item.failed[side].includes(number);
    const asked = {
      failed: (item) => failed(item, last), before: (item) => failed(item, 0), any: (item) => item.applied.includes(number),
      new: (item) => failed(item, last) && !failed(item, 0),
    }[this.how];
    const holds = this.query && textSearch(this.query);
    return (item) => (!this.changes.size || this.changes.has(item.group)) && (!this.split || item.split === this.split)
      && (!this.tag || item.tags.includes(this.tag)) && (!this.evaluator || asked(item)) && (!holds || holds(item));
  },
};

// Searches what stands in the row, then the texts of the case: first as JSON text, which is fast, then for certain.
function textSearch(query) {
  const lower = query.toLowerCase();
  const inside = (value) => (typeof value === "string" ? value.toLowerCase().includes(lower) : value !== null && typeof value === "object" && Object.values(value).some(inside));
  const json = JSON.stringify(query).slice(1, -1).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  const pattern = new RegExp(json.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
  return (item) => {
    if (inside([item.id, item.heading, item.why, item.tags])) return true;
    const source = byId(`case-${item.position}`);
    return source !== null && pattern.test(source.textContent) && inside(JSON.parse(source.textContent));
  };
}

const distinct = (values) => [...new Set(values)].filter(Boolean).sort();
const choices = { split: distinct(cases.map(({ split }) => split)), tag: distinct(cases.flatMap(({ tags }) => tags)), evaluator: evaluators.map(({ id }) => id) };

const address = {
  write() {
    const [open] = [...opened.keys()].slice(-1), panel = open === undefined ? null : panelOf(open);
    const parts = { change: [...filters.changes].join(","), split: filters.split, tag: filters.tag, evaluator: filters.evaluator,
      how: filters.evaluator && filters.how !== "failed" ? filters.how : "", q: filters.query,
      case: open === undefined ? "" : cases[open].id, trial: panel?.querySelector(".trials") ? panel.dataset.trial : "" };
    const hash = new URLSearchParams(Object.entries(parts).filter(([, value]) => value)).toString();
    if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  },
  // Sets the filters; returns the case that is named, if any, and the trial.
  read() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const known = (key, list) => (list.includes(parts.get(key)) ? parts.get(key) : "");
    filters.clear();
    for (const key of (parts.get("change") || "").split(",")) if (groups.has(key)) filters.changes.add(key);
    for (const [key, list] of Object.entries(choices)) filters[key] = known(key, list);
    filters.how = known("how", ["new", "before", "any"]) || "failed";
    filters.query = parts.get("q") || "";
    const wanted = parts.has("case") && cases.find(({ id }) => id === parts.get("case"));
    // A case asked for by name is shown, whatever the filters say.
    if (wanted && !filters.accepts()(wanted)) filters.clear();
    return [wanted, Number(parts.get("trial")) || undefined];
  },
};

function showFilters() {
  for (const id of [...Object.keys(choices), "how"]) byId(id).value = filters[id];
  byId("how").disabled = !filters.evaluator;
  if (byId("query").value !== filters.query) byId("query").value = filters.query;
  for (const each of byId("changes").children) each.setAttribute("aria-pressed", String(filters.changes.has(each.dataset.change)));
}

function refilter() {
  toggled.clear();
  showFilters();
  drawList();
  address.write();
}

function prepareFilters() {
  byId("filters").hidden = false;
  const counts = new Map();
  for (const { group } of cases) counts.set(group, (counts.get(group) || 0) + 1);
  byId("changes").append(...[...groups.values()].filter(({ key }) => counts.has(key)).map(({ key, name, tone }) => button({ class: `tone-${tone}`, "data-change": key, onclick: () => { if (!filters.changes.delete(key)) filters.changes.add(key); refilter(); } },
    sign(tone), `${name} ${grouped(counts.get(key))}`)));
  for (const [id, values] of Object.entries({ ...choices, how: null })) {
    const select = byId(id);
    if (values) select.append(make("option", { value: "" }, "all"), ...values.map((value) => textElement("option", { value }, value)));
    select.closest(".field").hidden = !(values || choices.evaluator).length;
    select.addEventListener("change", () => { filters[id] = select.value; refilter(); });
  }
  if (!last) for (const value of ["new", "before"]) byId("how").querySelector(`[value="${value}"]`).remove();
  let timer = 0;
  byId("query").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { filters.query = byId("query").value.trim(); refilter(); }, 150);
  });
  byId("clear").addEventListener("click", () => { filters.clear(); refilter(); byId("query").focus(); });
}

// --- Mouse, keys, paper.

byId("cases").addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (row && !getSelection().toString()) toggleCase(Number(row.dataset.position));
});
byId("cases").addEventListener("focusin", (event) => {
  const row = event.target.closest(".row") || event.target.closest(".detail")?.previousElementSibling;
  if (row) current = Number(row.dataset.position);
});

// Moves to the next case, or around to the next that lost.
function move(by, onlyLost) {
  const places = views.filter((view) => (onlyLost ? LOST.includes(view.group.key) : view.isOpen)).flatMap((view) => view.items.map(({ position }) => position));
  const here = current ?? -1, next = by > 0 ? places.find((place) => place > here) : places.findLast((place) => place < here);
  if (places.length) focusCase(next ?? places.at((by > 0) === Boolean(onlyLost) ? 0 : -1));
}

const openHelp = () => byId("help").showModal();
const keys = {
  j: () => move(1), k: () => move(-1), n: () => move(1, true), p: () => move(-1, true),
  o: () => { if (current !== null && reveal(current)) toggleCase(current); },
  "[": () => panelOf(current)?.turn(-1), "]": () => panelOf(current)?.turn(1),
  "/": () => { byId("query").focus(); byId("query").select(); }, "?": openHelp,
  Escape: () => {
    const wasSearching = document.activeElement === byId("query");
    if (wasSearching) byId("query").blur();
    else if (opened.has(current) && reveal(current)) toggleCase(current);
    if (current !== null) focusCase(current);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const isTyping = event.target.closest("input:not([type=radio], [type=checkbox]), select, textarea");
  if (event.key !== "Escape" && (isTyping || !byId("keys-on").checked)) return;
  // Enter on a button is its own; elsewhere it opens the current case.
  const key = event.key === "Enter" && !event.target.closest("button, a, label") ? "o" : event.key;
  if (!Object.hasOwn(keys, key)) return;
  event.preventDefault();
  keys[key]();
});
byId("open-help").addEventListener("click", openHelp);
byId("close-help").addEventListener("click", () => byId("help").close());

// On paper everything is open, up to a bound.
addEventListener("beforeprint", () => {
  isPrinting = true;
  const before = [...opened];
  for (const { position } of cases.filter(({ group }) => !groups.get(group).closed).slice(0, PRINTED_DETAILS)) if (!opened.has(position)) opened.set(position);
  drawList();
  addEventListener("afterprint", () => {
    isPrinting = false;
    opened.clear();
    for (const [position, trial] of before) opened.set(position, trial);
    drawList();
  }, { once: true });
});

function start() {
  const [wanted, trial] = address.read();
  opened.clear();
  if (wanted) opened.set(wanted.position, trial);
  showFilters();
  drawList();
  if (wanted) focusCase(wanted.position, "start");
}
prepareFilters();
start();
addEventListener("hashchange", start);
document.addEventListener("DOMContentLoaded", () => { if (filters.query) drawList(); }, { once: true });
