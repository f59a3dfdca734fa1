// The review: a table of cases from #index, details from #case-N, parsed when a case is opened.
(() => {
  const { make, addText, textElement, readJson } = page;
  const index = readJson("index");
  const byId = (id) => document.getElementById(id);
  const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  const CRITICAL = 2;
  const FIRST_ROWS = 100, MORE_ROWS = 300, PRINTED_ROWS = 1000, PRINTED_DETAILS = 40;
  const OUTCOMES = { p: "pass", f: "fail", e: "error", n: "not run", u: "not evaluated" };
  const STATUSES = { ...OUTCOMES, "-": "not asked" };

  const groups = new Map(index.groups.map(([key, title, tone, text, closed]) => [key, { key, title, tone, text, closed }]));
  const evaluators = index.evaluators.map(([id, type, severity]) => ({ id, type, severity, binding: severity === "hard" || severity === "gate" }));
  const cases = index.cases.map(([id, group, flags, letters, split, tags, applied, failed, title, decider, why], position) => (
    { position, id, group, flags, letters, split, tags, applied, failed, title, decider, why }));
  const candidate = index.roles.length - 1; // its place in letters and failed; the baseline, if any, is 0
  const LOST = new Set(["hard_regressed", "hard", "regressed", "newly_flaky", "weakened", "failed", "flaky"]);

  // --- Texts: [text, characters left out, digest, kind], or the text alone; kind 1 is compact JSON, 2 the end of a text.

  const unpack = (value) => (typeof value === "string" ? { text: value, left: 0, digest: "", kind: 0 }
    : { text: value[0], left: value[1], digest: value[2], kind: value[3] });
  const sameText = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  // Where the bracket at `start` closes, if within `limit` characters; else -1.
  function closing(text, start, limit) {
    let depth = 0, quoted = false;
    for (let at = start; at < Math.min(text.length, start + limit); at++) {
      const c = text[at];
      if (quoted) { if (c === "\\") at++; else if (c === '"') quoted = false; }
      else if (c === '"') quoted = true;
      else if (c === "{" || c === "[") depth++;
      else if ((c === "}" || c === "]") && --depth === 0) return at;
    }
    return -1;
  }

  // Compact JSON with line breaks and blanks; place(n) is where character n of the compact text stands. Cut texts do too.
  function pretty(compact) {
    const parts = [], places = new Uint32Array(compact.length + 1);
    let length = 0, depth = 0, quoted = false, inlineUntil = -1;
    const put = (text) => { parts.push(text); length += text.length; };
    const newline = () => put("\n" + "  ".repeat(Math.max(0, depth)));
    for (let at = 0; at < compact.length; at++) {
      const c = compact[at], inline = at <= inlineUntil;
      if (!quoted && (c === "}" || c === "]") && !inline) { depth--; newline(); }
      places[at] = length;
      put(c);
      if (quoted) {
        if (c === "\\" && at + 1 < compact.length) { at++; places[at] = length; put(compact[at]); } else if (c === '"') quoted = false;
      } else if (c === '"') quoted = true;
      else if (c === ":") put(" ");
      else if (c === ",") { if (inline) put(" "); else newline(); }
      else if ((c === "{" || c === "[") && !inline) {
        const end = closing(compact, at, 72);
        if (end > 0) inlineUntil = end; else { depth++; newline(); }
      }
    }
    places[compact.length] = length;
    return { text: parts.join(""), place: (n) => places[Math.max(0, Math.min(n, compact.length))] };
  }

  // A text as shown, and the function from code points (as Python counts) of the recorded text to places in the shown one.
  function shown(value) {
    const { text, left, kind } = unpack(value);
    const form = kind === 1 ? pretty(text) : { text, place: (n) => n };
    const units = (n) => {
      if (!/[\ud800-\udbff]/.test(text)) return n;
      let at = 0;
      for (let count = 0; count < n && at < text.length; count++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
      return at;
    };
    return { text: form.text, left, kind, place: (n) => form.place(units(n)) };
  }

  function cutNote(left, kind, file, line) {
    if (!left) return null;
    const where = file ? ` The whole text stands in ${file}${line ? `, line ${line}` : ""}.` : "";
    return textElement("p", { class: "cut" }, `${plural(left, "character")} ${kind === 2 ? "before this" : "more"} left out here.${where}`);
  }

  // Appends text with marks: [start, end, tag, key]; pieces may overlap and are nested.
  function paint(parent, text, marks) {
    const edges = [...new Set([0, text.length, ...marks.flatMap(([start, end]) => [start, end])])].filter((edge) => edge <= text.length).sort((a, b) => a - b);
    for (let n = 0; n + 1 < edges.length; n++) {
      let spot = parent;
      for (const [start, end, tag, key] of marks) {
        if (start <= edges[n] && end >= edges[n + 1] && start < end) {
          const wrap = make(tag, key ? { "data-mark": key } : null);
          spot.append(wrap);
          spot = wrap;
        }
      }
      addText(spot, text.slice(edges[n], edges[n + 1]));
    }
    return parent;
  }

  // --- Differences: Myers' greedy algorithm (E. Myers 1986, An O(ND) difference algorithm), with a bound on the work.

  // {gone, added}: which items of a are not in b and of b not in a; null when more than `limit` edits would be needed.
  function edits(a, b, limit) {
    let start = 0, endA = a.length, endB = b.length;
    while (start < endA && start < endB && a[start] === b[start]) start++;
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
    const n = endA - start, m = endB - start, most = Math.min(limit, n + m), base = most + 1;
    const reach = new Int32Array(2 * most + 3), trace = [];
    const gone = new Uint8Array(a.length), added = new Uint8Array(b.length);
    for (let d = 0; d <= most; d++) {
      trace.push(reach.slice(base - d - 1, base + d + 2));
      for (let k = -d; k <= d; k += 2) {
        const down = k === -d || (k !== d && reach[base + k - 1] < reach[base + k + 1]);
        let x = down ? reach[base + k + 1] : reach[base + k - 1] + 1;
        while (x < n && x - k < m && a[start + x] === b[start + x - k]) x++;
        reach[base + k] = x;
        if (x >= n && x - k >= m) return walkBack(trace, d, k, n, m, start, gone, added);
      }
    }
    return null;
  }

  function walkBack(trace, edit, diagonal, n, m, start, gone, added) {
    let x = n, k = diagonal;
    for (let d = edit; d > 0; d--) {
      const before = trace[d], at = (diag) => before[diag + d + 1];
      const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
      const previous = down ? k + 1 : k - 1, from = at(previous);
      if (down) added[start + from - previous] = 1; else gone[start + from] = 1;
      x = from;
      k = previous;
    }
    return { gone, added };
  }

  const words = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) || [];
  const lines = (text) => text.match(/[^\n]*\n|[^\n]+$/g) || [];

  // What stayed between two larger changes (a blank, a lone word) reads better as part of them.
  function joinChanges(a, b, { gone, added }) {
    const runs = []; // [kept characters, changed characters after them, places of the kept items]
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      const run = { kept: 0, changed: 0, items: [] };
      while (i < a.length && j < b.length && !gone[i] && !added[j]) { run.kept += a[i].length; run.items.push([i++, j++]); }
      let left = 0, right = 0;
      while (i < a.length && gone[i]) left += a[i++].length;
      while (j < b.length && added[j]) right += b[j++].length;
      run.changed = Math.max(left, right);
      runs.push(run);
    }
    for (let n = 1; n < runs.length; n++) {
      const { kept, changed, items } = runs[n];
      if (kept <= Math.min(runs[n - 1].changed, changed, 24)) for (const [x, y] of items) gone[x] = added[y] = 1;
    }
  }

  const ranges = (items, flags, tag) => {
    const found = [];
    let at = 0;
    items.forEach((item, n) => {
      const last = found[found.length - 1];
      if (flags[n]) { if (last && last[1] === at) last[1] += item.length; else found.push([at, at + item.length, tag]); }
      at += item.length;
    });
    return found;
  };

  // {left, right, parts} of two texts by words, or by lines where they are long; null when marking would help nobody.
  function difference(a, b) {
    for (const [split, limit] of [[words, 800], [lines, 600]]) {
      const left = split(a), right = split(b);
      if (left.length + right.length > 24000) continue;
      const change = edits(left, right, limit);
      if (!change) continue;
      const kept = left.reduce((sum, item, n) => sum + (change.gone[n] ? 0 : item.trim().length), 0);
      if (kept < 0.12 * Math.max(a.length, b.length)) return null;
      if (split === words) joinChanges(left, right, change);
      return { left: ranges(left, change.gone, "del"), right: ranges(right, change.added, "ins"), parts: merged(left, right, change) };
    }
    return null;
  }

  // One text that holds both: [text, tag or ""].
  function merged(a, b, { gone, added }) {
    const parts = [];
    const put = (text, tag) => { const last = parts[parts.length - 1]; if (last && last[1] === tag) last[0] += text; else parts.push([text, tag]); };
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && gone[i]) put(a[i++], "del");
      else if (j < b.length && added[j]) put(b[j++], "ins");
      else { put(a[i], ""); i++; j++; }
    }
    return parts;
  }

  // --- Steps: pairs of the two trajectories, in order.

  const stepKey = (step) => JSON.stringify([step.kind, step.name, step.role, step.args, step.text]);
  const stepKind = (step) => JSON.stringify([step.kind, step.name, step.role]);

  // [[place in a or null, place in b or null, same]]: the pairing with most equal steps, then most of one kind and name.
  function alignSteps(a, b) {
    const keysA = a.map(stepKey), keysB = b.map(stepKey), kindsA = a.map(stepKind), kindsB = b.map(stepKind);
    const value = (i, j) => (keysA[i] === keysB[j] ? 1001 : kindsA[i] === kindsB[j] ? 1000 * 0.4 : 0);
    const best = Array.from({ length: a.length + 1 }, () => new Float64Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        const pair = value(i, j);
        best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], pair ? pair + best[i + 1][j + 1] : 0);
      }
    }
    const rows = [];
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      const pair = i < a.length && j < b.length ? value(i, j) : 0;
      if (pair && best[i][j] === pair + best[i + 1][j + 1]) rows.push([i, j, keysA[i++] === keysB[j++]]);
      else if (j >= b.length || (i < a.length && best[i][j] === best[i + 1][j])) rows.push([i++, null, false]);
      else rows.push([null, j++, false]);
    }
    return rows;
  }

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

  // --- Pieces of a case.

  const dot = (letter) => make("span", { class: `dot ${letter === "-" ? "n" : letter}` });
  const sign = (tone) => make("span", { class: `sign sign-${tone}`, "aria-hidden": "true" });

  function outcomeText(letters) {
    const count = (letter) => [...letters].filter((each) => each === letter).length;
    const extra = [["e", "error"], ["n", "not run"], ["u", "not evaluated"]].filter(([letter]) => count(letter))
      .map(([letter, word]) => `${count(letter)} ${word}${letter === "e" && count(letter) > 1 ? "s" : ""}`);
    return [`${count("p")} of ${letters.length} passed`, ...extra].join(", ");
  }

  function dotStrip(letters, role) {
    const text = outcomeText(letters);
    return [
      make("span", { class: "dots", role: "img", "aria-label": `${role}: ${text}` }, [...letters].slice(0, 60).map(dot)),
      textElement("span", { class: "share", "aria-hidden": "true" }, text.replace(" passed", "")),
    ];
  }

  function chips(item) {
    if (candidate === 0) return [];
    const [before, after] = item.failed;
    const binding = (number) => evaluators[number].binding;
    const fresh = after.filter((number) => !before.includes(number) && binding(number)).map((number) => ["f", number, "fails now"]);
    const fixed = before.filter((number) => !after.includes(number) && binding(number)).map((number) => ["p", number, "passes now"]);
    return [...fresh, ...fixed].slice(0, 4).map(([letter, number, words]) => make("span", { class: "chip" }, dot(letter), textElement("span", null, evaluators[number].id), make("span", { class: "unseen" }, words)));
  }

  function caseRow(item) {
    const labels = item.flags & CRITICAL ? ["critical"] : [];
    const marks = chips(item);
    const decider = item.decider >= 0 ? evaluators[item.decider].id : "";
    const named = item.failed.some((numbers, side) => numbers.includes(item.decider) && candidate && !item.failed[1 - side].includes(item.decider));
    const why = decider && !(marks.length && named) ? `${decider}: ${item.why}` : item.why;
    return make("tr", { class: "row", role: "row", "data-position": item.position },
      make("th", { scope: "row", role: "rowheader" },
        textElement("button", { type: "button", class: "open", "aria-expanded": "false" }, item.id), " ",
        labels.map((label) => make("span", { class: "tag" }, label)),
        textElement("span", { class: "title" }, item.title)),
      index.roles.map((role, side) => make("td", { role: "cell" }, make("span", { class: "side-name" }, title(role)), dotStrip(item.letters[side], role))),
      make("td", { role: "cell" }, marks.length ? make("span", { class: "chips" }, marks) : null, why ? textElement("span", { class: "why" }, why) : null));
  }

  const textBox = (content, label, kind) => make("pre", { class: `text ${kind || ""}`, tabindex: "0", role: "region", "aria-label": label }, content);

  function valueBlock(title, value, file) {
    if (value === undefined) return null;
    const form = shown(value);
    const box = textBox(null, title, form.kind === 1 ? "" : "prose");
    addText(box, form.text);
    return make("div", { class: "pane" }, make("p", { class: "pane-name" }, title), box, cutNote(form.left, form.kind, file));
  }

  const title = (word) => word[0].toUpperCase() + word.slice(1);
  const sideNames = (role, trial) => `${title(role)}, trial ${trial}`;

  // --- Sections of an open case; `sides` is [{role, trial, data}] with data undefined for a trial that is not there.

  function errorSection(sides) {
    const found = sides.filter(({ data }) => data && (data.error || data.tries));
    if (!found.length) return null;
    return make("section", null, make("h4", null, "Errors"), make("div", { class: "pair two" }, found.map(({ role, trial, data }) => {
      const error = data.error || {};
      const head = [error.class && unpack(error.class).text, error.type && unpack(error.type).text, error.exit_code && `exit ${error.exit_code}`].filter(Boolean);
      const stderr = error.stderr && shown(error.stderr);
      return make("div", { class: "pane" }, make("p", { class: "pane-name" }, sideNames(role, trial)),
        head.length ? textElement("p", null, [...new Set(head)].join(" · ")) : null,
        error.message ? textElement("p", { class: "small" }, unpack(error.message).text) : null,
        stderr ? [make("p", { class: "pane-name" }, "end of standard error"), addText(textBox(null, `standard error, ${role}`), stderr.text), cutNote(stderr.left, 2)] : null,
        data.tries ? make("p", { class: "small" }, `after ${plural(data.tries.length, "earlier attempt")}`) : null);
    })));
  }

  function askedSection(detail) {
    const blocks = [valueBlock("Input", detail.input), valueBlock("Context", detail.context), valueBlock("Expected", detail.expected)].filter(Boolean);
    return make("section", null, make("h4", null, detail.expected === undefined ? "What was asked" : "What was asked, and what is expected"),
      make("div", { class: `pair ${blocks.length > 1 ? "two" : ""}` }, blocks));
  }

  function pointerList(check, side, panel) {
    const found = (check[5] || []).map((pointer, n) => {
      if (typeof pointer === "string") return textElement("span", null, pointer);
      if (pointer.step !== undefined) return make("button", { type: "button", onclick: () => lightStep(panel, side.role, pointer.step) }, `step ${pointer.step + 1}`);
      const label = `characters ${pointer.start}–${pointer.end}`;
      const words = pointer.text ? `“${pointer.text}”` : label;
      return textElement("button", { type: "button", title: label, onclick: () => lightMark(panel, side.role, `${check[0]}-${n}`) }, words);
    });
    return found.length ? make("div", { class: "pointers" }, found) : null;
  }

  function light(target) {
    if (!target) return;
    for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
    target.classList.add("lit");
    target.scrollIntoView({ block: "center" });
  }
  const lightStep = (panel, role, step) => light(panel.querySelector(`.step[data-step="${role}-${step}"]`));
  const lightMark = (panel, role, key) => light(panel.querySelector(`mark[data-mark="${role}-${key}"]`));

  function checkCell(detail, side, number, panel) {
    const check = side.data && side.data.checks.find((each) => each[0] === number);
    if (!check) return make("td", { role: "cell" }, make("span", { class: "missing" }, side.data ? "not part of this trial" : "no such trial"));
    const trials = Object.values(detail.trials[side.role] || {});
    const passed = trials.filter((trial) => trial.checks.some((each) => each[0] === number && each[1] === "p")).length;
    const score = check[2] !== null && check[2] !== 0 && check[2] !== 1 ? `score ${check[2]}` : "";
    const extra = [score, check[3] !== null ? `value ${check[3]}` : "", passed && passed < trials.length ? `passes in ${passed} of ${trials.length} trials` : ""].filter(Boolean);
    return make("td", { role: "cell" }, make("span", { class: "side-name" }, title(side.role)),
      make("span", { class: "status" }, dot(check[1]), STATUSES[check[1]]), textElement("span", { class: "reason" }, unpack(check[4]).text),
      extra.length ? textElement("small", null, ` ${extra.join(", ")}`) : null, pointerList(check, side, panel));
  }

  function checkSection(detail, sides, panel) {
    const numbers = [...new Set(sides.flatMap(({ data }) => (data ? data.checks.map((check) => check[0]) : [])))];
    if (!numbers.length) return make("section", null, make("h4", null, "Evaluators"), make("p", { class: "missing" }, "No evaluator has looked at this trial."));
    return make("section", null, make("h4", null, "Evaluators"), make("table", { class: "checks", role: "table" },
      make("caption", { class: "unseen" }, "What each evaluator said"),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, make("th", { scope: "col", role: "columnheader" }, "Evaluator"), sides.map(({ role, trial }) => make("th", { scope: "col", role: "columnheader" }, sideNames(role, trial))))),
      make("tbody", { role: "rowgroup" }, numbers.map((number) => make("tr", { role: "row" },
        make("th", { scope: "row", role: "rowheader" }, textElement("span", null, evaluators[number].id), textElement("small", null, `${evaluators[number].type}, ${evaluators[number].severity}`)),
        sides.map((side) => checkCell(detail, side, number, panel)))))));
  }

  function evidenceMarks(side, form) {
    return side.data.checks.flatMap((check) => (check[5] || []).map((pointer, n) => [pointer, n])
      .filter(([pointer]) => typeof pointer === "object" && pointer.start !== undefined && pointer.end > pointer.start)
      .map(([pointer, n]) => [form.place(pointer.start), form.place(pointer.end), "mark", `${side.role}-${check[0]}-${n}`]));
  }

  function outputPane(side, form, marks, title) {
    const box = textBox(null, `output, ${title}`, form.kind === 1 ? "" : "prose");
    paint(box, form.text, [...marks, ...evidenceMarks(side, form)]);
    if (!form.text) box.append(make("span", { class: "missing" }, "an empty text"));
    return make("div", { class: "pane" }, make("p", { class: "pane-name" }, title), box, cutNote(form.left, form.kind, index.files[side.role], side.data.line));
  }

  function missingPane(side, what) {
    return make("div", { class: "pane" }, make("p", { class: "pane-name" }, sideNames(side.role, side.trial)), make("p", { class: "missing" }, side.data ? what : "This trial was not run."));
  }

  function outputSection(sides) {
    const forms = sides.map(({ data }) => (data && data.output !== undefined ? shown(data.output) : null));
    const heading = make("h4", null, "Output");
    const section = make("section", null, heading);
    if (forms.length === 2 && forms[0] && forms[1]) {
      if (sameText(sides[0].data.output, sides[1].data.output)) {
        heading.append(make("small", null, "the same on both sides"));
        section.append(outputPane(sides[1], forms[1], [], `trial ${sides[1].trial}`));
        return section;
      }
      const change = difference(forms[0].text, forms[1].text);
      const pair = make("div", { class: "pair two" });
      const besides = () => pair.replaceChildren(...sides.map((side, n) => outputPane(side, forms[n], change ? (n ? change.right : change.left) : [], sideNames(side.role, side.trial))));
      const inOne = () => pair.replaceChildren(make("div", { class: "pane" }, make("p", { class: "pane-name" }, "struck out: only before; underlined: only now"),
        textBox(change.parts.map(([text, tag]) => (tag ? textElement(tag, null, text) : addText(document.createDocumentFragment(), text))), "both outputs in one text", forms[1].kind === 1 ? "" : "prose")));
      if (change) heading.append(make("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: (event) => {
        const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
        event.currentTarget.setAttribute("aria-pressed", String(on));
        pair.classList.toggle("two", !on);
        if (on) inOne(); else besides();
      } }, "Show in one text"));
      else heading.append(make("small", null, "too different to mark word by word"));
      besides();
      section.append(pair);
      return section;
    }
    section.append(make("div", { class: `pair ${sides.length > 1 ? "two" : ""}` }, sides.map((side, n) => (forms[n] ? outputPane(side, forms[n], [], sideNames(side.role, side.trial)) : missingPane(side, "There is no output.")))));
    return section;
  }

  function stepText(value, kind) {
    const form = shown(value);
    return [addText(make(kind === "said" ? "p" : "pre", { class: kind }), form.text), cutNote(form.left, form.kind)];
  }

  function stepBlock(step, place, role) {
    const status = step.status && step.status !== "ok" ? make("span", { class: "chip" }, dot(step.status === "error" ? "e" : "n"), textElement("span", null, step.status)) : null;
    return make("div", { class: "step", "data-step": `${role}-${place}` },
      make("div", { class: "step-head" }, make("span", { class: "step-number" }, String(place + 1)),
        textElement("span", { class: "step-name" }, step.name || step.role || step.kind || "step"), textElement("span", { class: "step-kind" }, [step.kind, step.agent].filter(Boolean).join(" · ")), status),
      make("div", { class: "step-body" }, step.args !== undefined ? stepText(step.args, "args") : null, step.text !== undefined ? stepText(step.text, "said") : null,
        step.result !== undefined ? stepText(step.result, "result") : null, step.truncated ? textElement("p", { class: "small" }, `cut short by the runner: ${step.truncated.join(", ")}`) : null));
  }

  function stepCell(step, place, role) {
    return make("td", { role: "cell" }, make("span", { class: "side-name" }, title(role)), step ? stepBlock(step, place, role) : make("span", { class: "gap" }, "nothing here"));
  }

  function moreSteps(sides) {
    const notes = sides.filter(({ data }) => data && data.more).map(({ role, data }) => `${plural(data.more, "further step")} of the ${role} in ${index.files[role]}, line ${data.line}.`);
    return notes.length ? textElement("p", { class: "cut" }, notes.join(" ")) : null;
  }

  function stepSection(sides) {
    const lists = sides.map(({ data }) => (data ? data.steps : undefined));
    const heading = make("h4", null, "Trajectory");
    const section = make("section", null, heading);
    if (lists.every((steps) => steps === undefined)) {
      section.append(make("p", { class: "missing" }, "No steps were recorded."));
      return section;
    }
    if (lists.length < 2 || lists.some((steps) => steps === undefined)) {
      const table = (side, steps) => make("table", { class: "steps", role: "table" }, make("caption", { class: "unseen" }, `Steps of the ${side.role}`), make("tbody", { role: "rowgroup" }, steps.map((step, n) => make("tr", { role: "row" }, stepCell(step, n, side.role)))));
      section.append(make("div", { class: `pair ${sides.length > 1 ? "two" : ""}` }, sides.map((side, n) => (lists[n] ? make("div", { class: "pane" }, make("p", { class: "pane-name" }, sideNames(side.role, side.trial)), table(side, lists[n])) : missingPane(side, "No steps were recorded.")))), moreSteps(sides));
      return section;
    }
    const rows = alignSteps(lists[0], lists[1]);
    const first = rows.findIndex(([, , same]) => !same);
    heading.append(make("small", null, first < 0 ? "the same steps on both sides" : `the same up to here: ${plural(first, "step")}`));
    const body = make("tbody", { role: "rowgroup" });
    rows.forEach(([left, right, same], n) => {
      if (n === first) body.append(make("tr", { class: "first-label", role: "row" }, make("td", { colspan: "2", role: "cell" }, "First difference")));
      body.append(make("tr", { role: "row", class: `${same ? "" : "differs"} ${n === first ? "first" : ""}` },
        stepCell(lists[0][left], left, sides[0].role), stepCell(lists[1][right], right, sides[1].role)));
    });
    section.append(make("table", { class: "steps", role: "table" }, make("caption", { class: "unseen" }, "Steps of both sides, aligned"),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, sides.map(({ role, trial }) => make("th", { scope: "col", role: "columnheader" }, sideNames(role, trial))))), body), moreSteps(sides) || "");
    return section;
  }

  function measureSection(sides) {
    const rows = sides.filter(({ data }) => data).map(({ role, trial, data }) => {
      const facts = [OUTCOMES[data.outcome] || data.outcome,
        data.score !== undefined ? `score ${data.score}` : "score not measured",
        data.duration_ms !== undefined ? `${data.duration_ms.toLocaleString("en")} ms` : "duration not measured",
        data.cost_usd !== undefined ? `$${data.cost_usd}` : "cost not measured",
        ...(data.usage || []).map(([key, value]) => `${key} ${value}`), data.finish ? `finished: ${data.finish}` : "", data.line ? `${index.files[role]}, line ${data.line}` : ""].filter(Boolean);
      return make("p", { class: "small" }, `${sideNames(role, trial)}: `, addText(make("span"), facts.join(" · ")));
    });
    return make("section", { class: "measures" }, make("h4", { class: "unseen" }, "Measurements"), rows);
  }

  // --- The open case.

  const trialsOf = (detail) => [...new Set(index.roles.flatMap((role) => Object.keys(detail.trials[role] || {})).map(Number))].sort((a, b) => a - b);

  // The trial that shows most: one that got worse, else one that differs, else the first.
  function tellingTrial(detail, trials) {
    const outcome = (role, trial) => ((detail.trials[role] || {})[trial] || {}).outcome;
    const worse = trials.find((trial) => outcome("candidate", trial) === "f" && outcome("baseline", trial) !== "f");
    return worse || trials.find((trial) => outcome("candidate", trial) !== outcome("baseline", trial) && candidate) || trials[0] || 1;
  }

  function trialPicker(detail, trials, chosen, choose) {
    if (trials.length < 2) return null;
    return make("div", { class: "trials", role: "group", "aria-label": "Trial" }, "Trial", trials.map((trial) => {
      const letters = index.roles.map((role) => ((detail.trials[role] || {})[trial] || { outcome: "n" }).outcome);
      const words = index.roles.map((role, n) => `${role} ${OUTCOMES[letters[n]]}`).join(", ");
      return make("button", { type: "button", "aria-pressed": String(trial === chosen), "aria-label": `Trial ${trial}: ${words}`, title: words, onclick: () => choose(trial) },
        String(trial), letters.map((letter, n) => [n ? make("span", { "aria-hidden": "true" }, "→") : null, dot(letter)]).flat());
    }));
  }

  function fillPanel(panel, item, wanted) {
    const source = byId(`case-${item.position}`);
    if (!source && document.readyState === "loading") {
      panel.replaceChildren(make("p", { class: "missing" }, "The page is still being read …"));
      document.addEventListener("DOMContentLoaded", () => fillPanel(panel, item, wanted), { once: true });
      return;
    }
    if (!source) {
      panel.replaceChildren(textElement("p", { class: "missing" }, `Nothing changed here and every trial passed. The texts of this case are left out because the page would be larger than 20 MB; they stand in ${Object.values(index.files).join(" and ")}.`));
      return;
    }
    const detail = caseDetail(source);
    const trials = trialsOf(detail);
    const show = (trial, focus) => {
      const sides = index.roles.map((role) => ({ role, trial, data: (detail.trials[role] || {})[trial] }));
      const facts = [...(item.split ? [["split", item.split]] : []), ...item.tags.map((tag) => ["tag", tag]), ...detail.facts.map(([label, value]) => [label, unpack(value).text])];
      panel.dataset.trial = trial;
      panel.replaceChildren(
        make("div", { class: "panel-head" }, make("p", { class: "facts" }, facts.map(([label, value]) => textElement("span", { class: "tag" }, `${label}: ${value}`))), trialPicker(detail, trials, trial, (next) => { show(next, true); address.write(); })),
        ...[errorSection(sides), askedSection(detail), checkSection(detail, sides, panel), outputSection(sides), stepSection(sides), measureSection(sides)].filter(Boolean));
      if (focus) panel.querySelector('.trials [aria-pressed="true"]').focus();
    };
    panel.step = (by) => { const next = trials[trials.indexOf(Number(panel.dataset.trial)) + by]; if (next) { show(next); address.write(); } };
    show(trials.includes(wanted) ? wanted : tellingTrial(detail, trials));
  }

  // --- The list: groups of rows, drawn in pieces.

  const opened = new Map(); // position -> trial asked for, of the cases that are open
  const toggled = new Map(); // group key -> open or closed by hand
  let shownGroups = [], current = null, printing = false;

  const rowOf = (position) => document.querySelector(`.row[data-position="${position}"]`);

  function isOpenGroup(group) {
    if (printing) return true;
    if (toggled.has(group.key)) return toggled.get(group.key);
    return !group.closed || filters.active();
  }

  function drawRows(view, upTo) {
    const fresh = view.items.slice(view.drawn, upTo);
    view.body.append(...fresh.flatMap((item) => (opened.has(item.position) ? [caseRow(item), detailRow(item)] : [caseRow(item)])));
    for (const item of fresh) if (opened.has(item.position)) rowOf(item.position)?.querySelector(".open").setAttribute("aria-expanded", "true");
    view.drawn = Math.min(view.items.length, Math.max(view.drawn, upTo));
    const left = view.items.length - view.drawn;
    view.more.replaceChildren(...(left ? [
      make("button", { type: "button", onclick: () => { const next = view.items[view.drawn]; drawRows(view, view.drawn + MORE_ROWS); focusCase(next.position); } }, `Show ${Math.min(left, MORE_ROWS)} more`),
      `${left.toLocaleString("en")} not shown yet`] : []));
    view.more.hidden = !left;
  }

  function groupView(group, items) {
    const open = isOpenGroup(group);
    const view = { group, items, open, drawn: 0, body: make("tbody", { role: "rowgroup" }), more: make("p", { class: "more" }) };
    const heading = ["Case", ...index.roles.map(title), candidate ? "What changed" : "What decided"];
    const widths = ["", ...index.roles.map(() => "col-side"), "col-why"];
    const table = make("table", { class: "rows", role: "table" },
      make("caption", { class: "unseen" }, `${group.title}: ${plural(items.length, "case")}`),
      make("colgroup", null, widths.map((kind) => make("col", { class: kind }))),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, heading.map((text) => make("th", { scope: "col", role: "columnheader" }, text)))), view.body);
    const content = make("div", { id: `group-${group.key}`, hidden: !open }, table, view.more);
    const turn = (event) => {
      view.open = !view.open;
      toggled.set(group.key, view.open);
      content.hidden = !view.open;
      event.currentTarget.setAttribute("aria-expanded", String(view.open));
      if (view.open && !view.drawn) drawRows(view, FIRST_ROWS);
    };
    view.section = make("section", { class: `group tone-${group.tone}`, "aria-labelledby": `title-${group.key}` },
      make("div", { class: "group-head" },
        make("h3", { id: `title-${group.key}` }, make("button", { type: "button", "aria-expanded": String(open), "aria-controls": `group-${group.key}`, onclick: turn },
          make("span", { class: "turn", "aria-hidden": "true" }), sign(group.tone), group.title, " ", make("span", { class: "number" }, items.length.toLocaleString("en")))),
        make("p", null, group.text)), content);
    if (open) drawRows(view, printing ? PRINTED_ROWS : FIRST_ROWS);
    return view;
  }

  function drawList() {
    const matching = cases.filter(filters.accepts());
    const byGroup = new Map([...groups.keys()].map((key) => [key, []]));
    for (const item of matching) byGroup.get(item.group).push(item);
    shownGroups = [...byGroup].filter(([, items]) => items.length).map(([key, items]) => groupView(groups.get(key), items));
    const nothing = make("p", { class: "empty" }, cases.length ? "No case fits these filters." : "There is no case to show.");
    byId("cases").replaceChildren(...(shownGroups.length ? shownGroups.map((view) => view.section) : [nothing]));
    byId("count").textContent = matching.length === cases.length ? plural(cases.length, "case") : `${matching.length.toLocaleString("en")} of ${plural(cases.length, "case")}`;
    byId("clear").hidden = !filters.active();
  }

  function detailRow(item) {
    const panel = make("div", { class: "panel" });
    const row = make("tr", { class: "detail", id: `detail-${item.position}`, role: "row" }, make("td", { colspan: index.roles.length + 2, role: "cell" }, panel));
    fillPanel(panel, item, opened.get(item.position));
    return row;
  }

  function openCase(position, trial) {
    opened.set(position, trial);
    const row = reveal(position);
    if (!row) return;
    byId(`detail-${position}`)?.remove();
    row.after(detailRow(cases[position]));
    row.querySelector(".open").setAttribute("aria-expanded", "true");
    row.querySelector(".open").setAttribute("aria-controls", `detail-${position}`);
  }

  function closeCase(position) {
    opened.delete(position);
    byId(`detail-${position}`)?.remove();
    rowOf(position)?.querySelector(".open").setAttribute("aria-expanded", "false");
  }

  // The row of a case, drawn and in an open group; null when the filters leave it out.
  function reveal(position) {
    const view = shownGroups.find(({ group }) => group.key === cases[position].group);
    const place = view ? view.items.indexOf(cases[position]) : -1;
    if (place < 0) return null;
    if (!view.open) view.section.querySelector("h3 button").click();
    if (place >= view.drawn) drawRows(view, place + 50);
    return rowOf(position);
  }

  function focusCase(position) {
    const row = reveal(position);
    if (!row) return;
    current = position;
    row.querySelector(".open").focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function toggleCase(position) {
    current = position;
    if (opened.has(position)) closeCase(position); else openCase(position);
    address.write();
  }

  // --- Filters, and the address that keeps them.

  const filters = {
    changes: new Set(), split: "", tag: "", evaluator: "", how: "failed", query: "",
    active() { return this.changes.size > 0 || [this.split, this.tag, this.evaluator, this.query].some(Boolean); },
    clear() { Object.assign(this, { changes: new Set(), split: "", tag: "", evaluator: "", how: "failed", query: "" }); },
    // A function that tells whether a case fits.
    accepts() {
      const number = evaluators.findIndex(({ id }) => id === this.evaluator);
      const failed = (item, side) => item.failed[side].includes(number);
      const asked = {
        failed: (item) => failed(item, candidate), before: (item) => failed(item, 0), any: (item) => item.applied.includes(number),
        new: (item) => failed(item, candidate) && !(candidate && failed(item, 0)),
      }[this.how];
      const holds = this.query ? textSearch(this.query) : null;
      return (item) => (!this.changes.size || this.changes.has(item.group)) && (!this.split || item.split === this.split)
        && (!this.tag || item.tags.includes(this.tag)) && (!this.evaluator || asked(item)) && (!holds || holds(item));
    },
  };

  // Searches id, title, reason and tags, then the texts of the case: first as JSON text, which is fast, then for certain.
  function textSearch(query) {
    const lower = query.toLowerCase();
    const inside = (value) => (typeof value === "string" ? value.toLowerCase().includes(lower) : value !== null && typeof value === "object" && Object.values(value).some(inside));
    const json = JSON.stringify(query).slice(1, -1).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
    const pattern = new RegExp(json.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
    return (item) => {
      if (inside([item.id, item.title, item.why, item.tags])) return true;
      const source = byId(`case-${item.position}`);
      return Boolean(source) && pattern.test(source.textContent) && inside(JSON.parse(source.textContent));
    };
  }

  const address = {
    write() {
      const parts = new URLSearchParams();
      if (filters.changes.size) parts.set("change", [...filters.changes].join(","));
      for (const [key, value] of [["split", filters.split], ["tag", filters.tag], ["evaluator", filters.evaluator], ["q", filters.query]]) if (value) parts.set(key, value);
      if (filters.evaluator && filters.how !== "failed") parts.set("how", filters.how);
      const last = [...opened.keys()].pop();
      if (last !== undefined) {
        parts.set("case", cases[last].id);
        const panel = byId(`detail-${last}`)?.querySelector(".panel");
        if (panel?.querySelector(".trials")) parts.set("trial", panel.dataset.trial);
      }
      const hash = parts.toString();
      if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    },
    read() {
      const parts = new URLSearchParams(location.hash.slice(1));
      const known = (key, list) => (list.includes(parts.get(key)) ? parts.get(key) : "");
      filters.clear();
      for (const key of (parts.get("change") || "").split(",")) if (groups.has(key)) filters.changes.add(key);
      filters.split = known("split", splits);
      filters.tag = known("tag", tags);
      filters.evaluator = known("evaluator", evaluators.map(({ id }) => id));
      filters.how = known("how", ["new", "before", "any"]) || "failed";
      filters.query = parts.get("q") || "";
      const wanted = parts.has("case") ? cases.find(({ id }) => id === parts.get("case")) : undefined;
      opened.clear();
      // A case that is asked for by name is shown, whatever the filters in the address say.
      if (wanted && !filters.accepts()(wanted)) filters.clear();
      return { wanted, trial: Number(parts.get("trial")) || undefined };
    },
  };

  const distinct = (values) => [...new Set(values)].filter(Boolean).sort((a, b) => (a < b ? -1 : 1));
  const splits = distinct(cases.map(({ split }) => split));
  const tags = distinct(cases.flatMap((item) => item.tags));

  function fillSelect(id, all, values) {
    const select = byId(id);
    select.replaceChildren(make("option", { value: "" }, all), ...values.map((value) => textElement("option", { value }, value)));
    select.closest(".field").hidden = !values.length;
    select.addEventListener("change", () => { filters[id] = select.value; refilter(); });
  }

  function showFilters() {
    for (const id of ["split", "tag", "evaluator", "how"]) byId(id).value = filters[id];
    byId("how").disabled = !filters.evaluator;
    if (byId("query").value !== filters.query) byId("query").value = filters.query;
    for (const button of byId("changes").children) button.setAttribute("aria-pressed", String(filters.changes.has(button.dataset.change)));
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
    byId("changes").append(...[...groups.values()].filter(({ key }) => counts.has(key)).map(({ key, title, tone }) => make("button",
      { type: "button", class: `tone-${tone}`, "data-change": key, "aria-pressed": "false", onclick: () => { if (!filters.changes.delete(key)) filters.changes.add(key); refilter(); } },
      sign(tone), `${title} ${counts.get(key).toLocaleString("en")}`)));
    fillSelect("split", "all", splits);
    fillSelect("tag", "all", tags);
    fillSelect("evaluator", "any", evaluators.map(({ id }) => id));
    byId("how").closest(".field").hidden = !evaluators.length;
    if (!candidate) for (const value of ["new", "before"]) byId("how").querySelector(`[value="${value}"]`).remove();
    byId("how").addEventListener("change", () => { filters.how = byId("how").value; refilter(); });
    let timer = 0;
    byId("query").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => { filters.query = byId("query").value.trim(); refilter(); }, 150);
    });
    byId("clear").addEventListener("click", () => { filters.clear(); refilter(); byId("query").focus(); });
  }

  // --- Mouse and keys.

  byId("cases").addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row && !getSelection().toString()) toggleCase(Number(row.dataset.position));
  });
  byId("cases").addEventListener("focusin", (event) => {
    const row = event.target.closest(".row") || event.target.closest(".detail")?.previousElementSibling;
    if (row) current = Number(row.dataset.position);
  });

  const visibleOrder = () => shownGroups.filter((view) => view.open).flatMap((view) => view.items);

  function move(by, wanted) {
    const order = wanted ? shownGroups.flatMap((view) => view.items).filter(wanted) : visibleOrder();
    if (!order.length) return;
    const here = order.findIndex(({ position }) => position === current);
    let next = here + by;
    if (here < 0) next = current === null ? (by > 0 ? 0 : order.length - 1) : order.findIndex(({ position }) => position > current) + (by > 0 ? 0 : -1);
    if (wanted) next = (next + order.length) % order.length;
    focusCase(order[Math.max(0, Math.min(next, order.length - 1))].position);
  }

  const isLost = (item) => LOST.has(item.group);
  const panelOf = (position) => (position === null ? null : byId(`detail-${position}`)?.querySelector(".panel"));
  const openHelp = () => byId("help").showModal();
  const keys = {
    j: () => move(1), k: () => move(-1), n: () => move(1, isLost), p: () => move(-1, isLost),
    o: () => { if (current !== null) toggleCase(current); },
    "[": () => panelOf(current)?.step(-1), "]": () => panelOf(current)?.step(1),
    "/": () => { byId("query").focus(); byId("query").select(); }, "?": openHelp,
  };

  function escape() {
    if (document.activeElement === byId("query")) { byId("query").blur(); if (current !== null) focusCase(current); } else if (current !== null && opened.has(current)) {
      closeCase(current);
      address.write();
      focusCase(current);
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    if (event.key === "Escape") { escape(); return; }
    if (event.target.closest("input:not([type=radio]):not([type=checkbox]), select, textarea") || !byId("keys-on").checked) return;
    // Enter on a button is the button's; elsewhere it opens the case that was looked at last.
    if (event.key === "Enter" && current !== null && !event.target.closest("button, a, summary, label")) { event.preventDefault(); toggleCase(current); } else if (Object.hasOwn(keys, event.key)) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  byId("open-help").addEventListener("click", openHelp);
  byId("close-help").addEventListener("click", () => byId("help").close());

  // --- On paper everything is open, up to a bound.

  addEventListener("beforeprint", () => {
    printing = true;
    const before = new Map(opened);
    for (const item of cases.filter((each) => !groups.get(each.group).closed).slice(0, PRINTED_DETAILS)) if (!opened.has(item.position)) opened.set(item.position, undefined);
    drawList();
    addEventListener("afterprint", () => { printing = false; opened.clear(); for (const [key, value] of before) opened.set(key, value); drawList(); }, { once: true });
  });

  function start() {
    const { wanted, trial } = address.read();
    if (wanted) opened.set(wanted.position, trial);
    showFilters();
    drawList();
    if (wanted) {
      reveal(wanted.position);
      current = wanted.position;
      rowOf(wanted.position)?.scrollIntoView({ block: "start" });
      rowOf(wanted.position)?.querySelector(".open").focus({ preventScroll: true });
    }
  }
  prepareFilters();
  start();
  document.addEventListener("DOMContentLoaded", () => { if (filters.query) drawList(); }, { once: true });
  addEventListener("hashchange", start);
})();
