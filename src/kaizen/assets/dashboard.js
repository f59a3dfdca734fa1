
// The dashboard: the picture begins at its newest end, and the map of cases × runs is drawn where it is looked at.
// The script runs while the data still arrives, so the map waits for the end of the document.
const CELL = 18, HEAD = 52, STATES = { p: "passed", s: "some passed", f: "failed", e: "not measured" };
const LOOKS = ["regressed", "weakened", "f", "s", "e", "p"];

const picture = document.getElementById("plot");
if (picture) picture.scrollLeft = picture.scrollWidth;
document.addEventListener("DOMContentLoaded", () => {
  const data = readJson("map-data");
  if (data.cases.length) drawMap(data);
});

const shownText = (text) => addText(make("span"), text).textContent;

// Looks up the state of a case in a run. Each list of cases that runs share gets one index, and each run is unpacked when it is first seen.
function cellReader(data) {
  const numbers = new Map(data.states.map(([character], number) => [character, number]));
  const places = [], unpacked = [];
  const spread = (spans) => {
    const found = new Int32Array(data.cases.length).fill(-1);
    let place = 0;
    for (let at = 0; at < spans.length; at += 2) for (let step = 0; step < spans[at + 1]; step++) found[spans[at] + step] = place++;
    return found;
  };
  return (run, item) => {
    const [list, cells] = data.columns[data.runs[run][0]];
    places[list] ||= spread(data.lists[list]);
    unpacked[run] ||= Uint32Array.from(cells, (character) => numbers.get(character));
    const place = places[list][item];
    return place < 0 ? null : data.states[unpacked[run][place]];
  };
}

const letterOf = ([, , passed, valid]) => (!valid ? "e" : passed === valid ? "p" : passed ? "s" : "f");

function lookOf(state) {
  const at = LOOKS.indexOf(state[1]);
  return at < 0 ? LOOKS.indexOf(letterOf(state)) : at;
}

// Draws one cell: the shape says how the trials came out, a frame that the case regressed, a bar below that it improved.
function paintCell(pen, x, y, letter, change, colours) {
  const middle = CELL / 2;
  pen.save();
  pen.translate(x, y);
  pen.lineWidth = 2;
  if (letter === "f") {
    pen.fillStyle = colours.badSoft;
    pen.fillRect(1, 1, CELL - 2, CELL - 2);
    pen.strokeStyle = colours.bad;
    pen.stroke(new Path2D(`M5 5L${CELL - 5} ${CELL - 5}M${CELL - 5} 5L5 ${CELL - 5}`));
  } else if (letter === "s") {
    pen.fillStyle = colours.warnSoft;
    pen.fillRect(1, 1, CELL - 2, CELL - 2);
    pen.fillStyle = colours.warn;
    pen.fillRect(4, 4, middle - 4, CELL - 8);
    pen.strokeStyle = colours.warn;
    pen.strokeRect(4, 4, CELL - 8, CELL - 8);
  } else if (letter === "e") {
    pen.strokeStyle = colours.odd;
    pen.stroke(new Path2D(`M${middle} 4L${CELL - 4} ${CELL - 4}L4 ${CELL - 4}z`));
  } else {
    pen.fillStyle = colours.good;
    pen.beginPath();
    pen.arc(middle, middle, 3, 0, 7);
    pen.fill();
  }
  if (change === "regressed") { pen.strokeStyle = colours.bad; pen.strokeRect(1, 1, CELL - 2, CELL - 2); }
  if (change === "improved") { pen.fillStyle = colours.good; pen.fillRect(3, CELL - 3, CELL - 6, 2); }
  pen.restore();
}

function mapColours(place) {
  const probe = make("span", { hidden: true });
  place.append(probe);
  const found = {};
  for (const name of ["ink", "soft", "line", "edge", "card", "sunk", "accent", "good", "bad", "bad-soft", "warn", "warn-soft", "odd"]) {
    probe.style.color = `var(--${name})`;
    found[name.replace("-s", "S")] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

function drawMap(data) {
  const place = document.getElementById("map"), stateOf = cellReader(data), runs = data.runs;
  const names = data.cases.map((name) => name.toLowerCase());
  const canvas = make("canvas", { "aria-hidden": "true" }), inner = make("div", null, canvas);
  const told = make("p", { class: "map-told", "aria-live": "polite" }), count = par("map-count", "");
  const frame = make("div", { class: "map-frame", id: "map-frame", tabindex: "0", role: "application", "aria-label": "Cases and runs. The arrow keys, Home, End, Page Up and Page Down go from cell to cell." }, inner);
  const find = make("input", { type: "search", id: "map-find", autocomplete: "off" });
  const order = make("select", { id: "map-order" }, make("option", { value: "looks" }, "What needs a look first"), make("option", { value: "given" }, "As recorded"));
  const field = (text, control) => make("label", { class: "field" }, span("", text), control);
  const samples = [["p", "", "passed"], ["s", "", "some trials passed"], ["f", "", "failed"], ["e", "", "not measured"], ["f", "regressed", "regressed against the run's baseline"], ["p", "improved", "improved"]];
  const legend = samples.map(([, , text]) => make("li", null, make("canvas", { width: 2 * CELL, height: 2 * CELL, "aria-hidden": "true" }), text));
  place.append(make("div", { class: "map-tools" }, field("Find a case", find), field("Order", order), count), frame, told,
    make("ul", { class: "legend map-legend" }, legend, make("li", null, "empty: not a case of that run's cohort")));
  place.hidden = false;

  let colours, rows = [], side = 0, chosen = null, waiting = false;
  const looks = new Uint8Array(data.cases.length).fill(LOOKS.length);
  const looked = new Uint32Array(data.cases.length);
  for (let item = 0; item < data.cases.length; item++) {
    for (let run = runs.length - 1; run >= 0; run--) {
      const state = stateOf(run, item);
      if (state) { looks[item] = lookOf(state); looked[item] = runs.length - run; break; }
    }
  }

  function arrange() {
    const wanted = find.value.trim().toLowerCase();
    rows = [...data.cases.keys()].filter((item) => !wanted || names[item].includes(wanted));
    if (order.value === "looks") rows.sort((one, other) => looked[one] - looked[other] || looks[one] - looks[other] || one - other);
    count.textContent = `${rows.length.toLocaleString("en")} of ${data.cases.length.toLocaleString("en")} cases, ${runs.length.toLocaleString("en")} runs`;
    chosen = null;
    told.textContent = rows.length ? "Choose a cell to see the case, the run and what came out." : "No case has this in its id.";
    measure();
  }

  function measure() {
    side = Math.round(Math.min(260, frame.clientWidth * 0.4));
    inner.style.width = `${side + runs.length * CELL + 4}px`;
    inner.style.height = `${HEAD + rows.length * CELL + 4}px`;
    paint();
  }

  function paint() {
    waiting = false;
    const width = frame.clientWidth, height = Math.min(frame.clientHeight, HEAD + rows.length * CELL + 4), sharp = window.devicePixelRatio || 1;
    canvas.width = width * sharp;
    canvas.height = height * sharp;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d"), left = frame.scrollLeft, top = frame.scrollTop;
    const firstRun = Math.floor(left / CELL), endRun = Math.min(runs.length, Math.ceil((left + width - side) / CELL));
    const firstRow = Math.floor(top / CELL), endRow = Math.min(rows.length, Math.ceil((top + height - HEAD) / CELL));
    const font = getComputedStyle(frame).fontFamily;
    pen.scale(sharp, sharp);
    pen.textBaseline = "middle";
    const x = (run) => side + run * CELL - left, y = (row) => HEAD + row * CELL - top;
    for (let run = firstRun; run < endRun; run++) {
      const isOdd = bandOf[run] % 2;
      pen.fillStyle = isOdd ? colours.sunk : colours.card;
      pen.fillRect(x(run), 0, CELL, height);
      for (let row = firstRow; row < endRow; row++) {
        const state = stateOf(run, rows[row]);
        if (state) paintCell(pen, x(run), y(row), letterOf(state), state[1], colours);
      }
    }
    pen.fillStyle = colours.card;
    pen.fillRect(0, 0, width, HEAD);
    for (let run = firstRun; run < endRun; run++) {
      if (run && bandOf[run] !== bandOf[run - 1]) { pen.fillStyle = colours.edge; pen.fillRect(x(run), 0, 1, height); }
      pen.fillStyle = colours.ink;
      pen.font = `600 12px ${font}`;
      if (run === firstRun || bandOf[run] !== bandOf[run - 1]) pen.fillText(runs[run][4], Math.max(x(run) + 3, side + 3), 9);
      pen.save();
      pen.translate(x(run) + CELL / 2, HEAD - 4);
      pen.rotate(-Math.PI / 2);
      pen.font = `11px ${font}`;
      pen.fillText(String(runs[run][1]), 0, 0);
      pen.restore();
    }
    pen.fillStyle = colours.card;
    pen.fillRect(0, 0, side, height);
    pen.font = `12px ${font}`;
    pen.fillStyle = colours.soft;
    pen.fillText("Case / run", 8, HEAD - 12);
    pen.save();
    pen.beginPath();
    pen.rect(0, HEAD, side - 6, height);
    pen.clip();
    pen.fillStyle = colours.ink;
    for (let row = firstRow; row < endRow; row++) pen.fillText(shownText(data.cases[rows[row]].slice(0, 60)), 8, y(row) + CELL / 2);
    pen.restore();
    pen.strokeStyle = colours.line;
    pen.strokeRect(side - 0.5, -1, width, height + 2);
    if (chosen && y(chosen.row) >= HEAD - 1 && x(chosen.run) >= side - 1) {
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 3;
      pen.strokeRect(x(chosen.run) - 0.5, y(chosen.row) - 0.5, CELL + 1, CELL + 1);
    }
  }
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } };

  function tell(row, run) {
    const item = rows[row], [, number, version, label, letter, , decided] = runs[run], state = stateOf(run, item);
    const result = state ? (state[3] ? `${state[2]} of ${state[3]} trials passed` : STATES.e) : `no case of cohort ${letter}`;
    const change = state && state[1] ? `, ${state[1].replace("_", " ")}` : "";
    told.replaceChildren(textElement("b", null, data.cases[item]), `: ${result}${change}. `,
      textElement("span", null, `Run ${number}, version ${version}, “${label}”, cohort ${letter}, decision: ${decided}.`));
  }

  function choose(row, run) {
    chosen = { row: Math.max(0, Math.min(rows.length - 1, row)), run: Math.max(0, Math.min(runs.length - 1, run)) };
    const x = chosen.run * CELL, y = chosen.row * CELL;
    frame.scrollLeft = Math.min(x, Math.max(frame.scrollLeft, x + CELL + side - frame.clientWidth + 4));
    frame.scrollTop = Math.min(y, Math.max(frame.scrollTop, y + CELL + HEAD - frame.clientHeight + 4));
    tell(chosen.row, chosen.run);
    soon();
  }

  function cellAt(event) {
    const box = frame.getBoundingClientRect(), x = event.clientX - box.left - frame.clientLeft - side, y = event.clientY - box.top - frame.clientTop - HEAD;
    const run = Math.floor((x + frame.scrollLeft) / CELL), row = Math.floor((y + frame.scrollTop) / CELL);
    return x >= 0 && y >= 0 && run < runs.length && row < rows.length ? [row, run] : null;
  }

  const page = () => Math.max(1, Math.floor((frame.clientHeight - HEAD) / CELL) - 1);
  const moves = { ArrowUp: () => [-1, 0], ArrowDown: () => [1, 0], ArrowLeft: () => [0, -1], ArrowRight: () => [0, 1], PageUp: () => [-page(), 0], PageDown: () => [page(), 0], Home: () => [0, -runs.length], End: () => [0, runs.length] };
  frame.addEventListener("keydown", (event) => {
    if (!moves[event.key] || !rows.length || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (!chosen) return choose(0, runs.length - 1);
    const [down, right] = moves[event.key]();
    const isWhole = event.ctrlKey && (event.key === "Home" || event.key === "End");
    choose(chosen.row + (isWhole ? Math.sign(right) * rows.length : down), chosen.run + right);
  });
  frame.addEventListener("click", (event) => { const cell = cellAt(event); if (cell) choose(...cell); });
  frame.addEventListener("pointermove", (event) => { const cell = chosen ? null : cellAt(event); if (cell) tell(...cell); });
  frame.addEventListener("scroll", soon, { passive: true });
  find.addEventListener("input", () => { frame.scrollTop = 0; arrange(); });
  order.addEventListener("change", () => { frame.scrollTop = 0; arrange(); });
  window.addEventListener("resize", measure);

  const bandOf = [];
  for (let run = 0; run < runs.length; run++) bandOf.push(run ? bandOf[run - 1] + (runs[run][4] === runs[run - 1][4] ? 0 : 1) : 0);
  function colour() {
    colours = mapColours(place);
    legend.forEach((each, number) => {
      const pen = each.firstChild.getContext("2d");
      pen.setTransform(2, 0, 0, 2, 0, 0);
      pen.clearRect(0, 0, CELL, CELL);
      paintCell(pen, 0, 0, samples[number][0], samples[number][1], colours);
    });
    soon();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", colour);
  for (const each of document.querySelectorAll("input[name=theme]")) each.addEventListener("change", colour);
  colour();
  arrange();
  frame.scrollLeft = frame.scrollWidth;
}
