/* explore_panes.js -- the three columns: source, PTX and SASS.
 *
 * state.place is the selected source line and hover.place the line under the
 * pointer. A row of any column is highlighted if the place is in its chain. */

const panes = {};
const hover = { place: -1, chain: -1 };

function makePanes() {
  for (const [name, label] of [["source", "source lines"],
    ["ptx", "lines of PTX"], ["sass", "instructions"]]) {
    const pane = byId("pane-" + name);
    const list = new RowList(pane.querySelector(".list"), label);
    panes[name] = { name, pane, list, heads: pane.querySelector(".heads"),
      note: pane.querySelector(".note") };
    list.mark = (node, row) => markRow(name, node, row);
    list.box.addEventListener("mousemove", (event) =>
      hoverRow(name, list.rowOf(event)));
    list.box.addEventListener("mouseleave", () => hoverRow(name, -1));
    list.box.addEventListener("click", (event) => clickRow(name, event));
    list.box.addEventListener("focus", () => activate(name));
  }
}

/* ---- Which rows belong to a place ---------------------------------------- */

function chainOf(name, row) {
  if (name === "ptx") return currentImage()?.ptx_chain?.[row] ?? -1;
  return currentKernel()?.sass?.chain?.[row] ?? -1;
}

/* The place that a row selects: the outermost line, or with state.innermost
 * the line of the inlined function. */
function placeOfRow(name, row) {
  if (row < 0) return -1;
  if (name === "source") return placeAt(state.file, row + 1);
  const chain = chainOf(name, row);
  return state.innermost ? leafOf(chain) : rootOf(chain);
}

function rowsOf(name, place) {
  if (place < 0) return [];
  if (name === "source")
    return fileOf(place) === state.file ? [lineOf(place) - 1] : [];
  if (name === "ptx")
    return currentImage() ? ptxIndex(currentImage()).get(place) ?? [] : [];
  return currentKernel() ? sassIndex(currentKernel()).get(place) ?? [] : [];
}

function holds(name, row, place) {
  if (place < 0) return false;
  if (name === "source") return placeAt(state.file, row + 1) === place;
  return placesOf(chainOf(name, row)).includes(place);
}

/* ---- Highlighting -------------------------------------------------------- */

function markRow(name, node, row) {
  const on = holds(name, row, state.place);
  node.classList.toggle("on", on);
  node.classList.toggle("hover", holds(name, row, hover.place));
  node.classList.toggle("inlined", name === "source" &&
    placesOf(hover.chain).includes(placeAt(state.file, row + 1)));
  node.classList.toggle("cursor", active.name === name && active.row === row);
  node.setAttribute("aria-selected", on);
  markHits(name, node, row);
}

function highlight() {
  for (const { name, list } of Object.values(panes)) {
    list.groups = [
      { rows: hitsIn(name), colour: "--hit" },
      { rows: rowsOf(name, hover.place), colour: "--ruler-hover" },
      { rows: rowsOf(name, state.place), colour: "--accent" }];
    list.remark();
  }
}

function hoverRow(name, row) {
  const place = placeOfRow(name, row);
  const chain = row < 0 || name === "source" ? -1 : chainOf(name, row);
  if (hover.place === place && hover.chain === chain) return;
  hover.place = place;
  hover.chain = chain;
  highlight();
}

const active = { name: "source", row: -1 };

function activate(name) {
  active.name = name;
  for (const { name: other, pane } of Object.values(panes))
    pane.classList.toggle("active", other === name);
}

/* Selects a place, and scrolls to it in all columns but `from`. */
function select(place, from = null, chain = -1) {
  state.place = place;
  state.chain = chain;
  if (place >= 0 && fileOf(place) !== state.file) {
    state.file = fileOf(place);
    showSource();
  }
  for (const { name, list } of Object.values(panes)) {
    const rows = rowsOf(name, place);
    if (name !== from && rows.length > 0) showGroup(list, rows);
  }
  highlight();
  showDetails();
  writeState();
}

/* Scrolls to the first row of a group unless a row of it is visible. */
function showGroup(list, rows) {
  const h = list.height();
  const first = list.box.scrollTop / h;
  const last = first + list.box.clientHeight / h - 2;
  if (!rows.some((row) => row >= first && row <= last)) list.show(rows[0]);
}

function clickRow(name, event) {
  const list = panes[name].list, row = list.rowOf(event);
  if (row < 0) return;
  activate(name);
  active.row = row;
  const target = event.target.closest(".target");
  if (target) return jump(Number(target.dataset.to));
  select(placeOfRow(name, row), name,
    name === "source" ? -1 : chainOf(name, row));
}

/* Moves to an instruction. */
function jump(row) {
  activate("sass");
  active.row = row;
  panes.sass.list.show(row);
  highlight();
}

/* ---- Rows ---------------------------------------------------------------- */

/* The class with the colour of a place, or "". */
function colourClass(place) {
  const kernel = currentKernel(), image = currentImage();
  const colours = kernel?.sass ? colourOf(kernel)
    : image ? colourOfImage(image) : new Map();
  const colour = colours.get(place);
  return colour === undefined ? "" : `k${colour}`;
}

function sourceRow(row) {
  const place = placeAt(state.file, row + 1);
  const rows = rowsOf(currentKernel()?.sass ? "sass" : "ptx", place);
  const node = element("div", { class: colourClass(place) },
    span("number", String(row + 1)),
    span("instructions", rows.length > 0 ? String(rows.length) : ""));
  if (state.metric >= 0 && heat.columns.length > 0) node.append(heatCell(place));
  node.append(findingMark(place),
    span("text", colouredSource(doc.files[state.file], row)));
  return node;
}

function ptxRow(row) {
  const text = ptxLines(currentImage())[row];
  const quiet = /^\s*\.(loc|file)\b/.test(text);
  return element("div", { class: colourClass(rootOf(chainOf("ptx", row))) },
    span("number", String(row + 1)),
    span("text", quiet ? span("s-quiet", cut(text)) : coloured("ptx", text)));
}

function sassRow(row) {
  const kernel = currentKernel(), sass = kernel.sass;
  const node = element("div", { class: colourClass(rootOf(sass.chain?.[row] ?? -1)) },
    ...gutter(kernel, row),
    span("text", coloured("sass", sass.text[row])));
  const to = sass.targets?.[row];
  if (to !== undefined)
    node.append(element("span", { class: "target", "data-to": to,
      title: "scroll to the target" }, to <= row ? "↑ " : "↓ ",
      hex(sass.addr0 + to * sass.step)));
  if (sass.labels?.[row]) node.append(span("label", cut(sass.labels[row], 60)));
  for (const loop of loopsByRow(kernel).get(row) ?? []) {
    if (loop.first === row) {
      node.classList.add("head");
      node.append(span("chip", loopText(loop)));
    }
    if (loop.last === row) node.classList.add("tail");
  }
  return node;
}

function loopText(loop) {
  return `loop, ${plural(loop.instructions, "instruction")}, ` +
    `${count(loop.slots)} slots`;
}

/* ---- Filling the columns ------------------------------------------------- */

function widest(lines) {
  return lines.reduce((most, line) => Math.max(most, line.length), 20);
}

function showSource() {
  const file = doc.files[state.file];
  const lines = file ? fileLines(file) : [];
  const { pane, list } = panes.source;
  byId("file").value = String(state.file);
  pane.classList.toggle("heated", state.metric >= 0 && heat.columns.length > 0);
  put(panes.source.heads, span("number", "line"),
    element("span", { class: "instructions", title: "instructions of the line, inlined code included" }, "ins"),
    state.metric >= 0 && heat.columns.length > 0
      ? element("span", { class: "heat", title: METRICS[heat.columns[state.metric]] ?? "" },
        heat.columns[state.metric]) : null,
    span("mark", ""), span("text", file?.text == null
      ? "the text of this file is not in the page" : ""));
  list.set(lines.length, widest(lines), sourceRow);
}

function showPtx() {
  const image = currentImage();
  const lines = image ? ptxLines(image) : [];
  put(panes.ptx.heads, span("number", "line"), span("text", ""));
  put(panes.ptx.note, image?.ptx ? plural(lines.length, "line")
    : "this image has no PTX");
  panes.ptx.list.set(image?.ptx ? lines.length : 0, widest(lines), ptxRow);
}

function showSass() {
  const kernel = currentKernel(), image = currentImage();
  const sass = kernel?.sass;
  byId("pane-sass").classList.toggle("empty", !sass);
  const missing = byId("pane-sass").querySelector(".missing");
  missing.hidden = Boolean(sass?.live);
  if (!sass) {
    put(panes.sass.heads);
    put(panes.sass.note, "not shown");
    put(missing, element("p", {}, image?.sass_note ??
      "This image has no machine code for the kernel."),
      image?.sass_next ? element("p", {}, "Next: ", element("code", {}, image.sass_next)) : null);
    panes.sass.list.set(0, 0, sassRow);
    return;
  }
  put(panes.sass.heads, gutterHeads(kernel), span("text", "instruction"));
  put(panes.sass.note, plural(sass.text.length, "instruction"));
  put(missing, sass.live ? null : element("p", {}, image.live_note ?? ""));
  panes.sass.list.set(sass.text.length, widest(sass.text) + 40, sassRow);
}

function showPanes() {
  showSource();
  showPtx();
  showSass();
  highlight();
}
