/* explore_details.js -- the panel below the columns: the selected line, loops,
 * control flow, findings, spills, and the compiler's log. */

const PANELS = [
  ["line", "Line", linePanel],
  ["loops", "Loops", loopsPanel],
  ["flow", "Control flow", () => graph(currentKernel())],
  ["findings", "Findings", findingsPanel],
  ["spills", "Spills", spillsPanel],
  ["log", "Compiler", logPanel],
];

function makePanels() {
  put(byId("panels"), PANELS.map(([name, title]) =>
    element("button", { type: "button", role: "tab", id: "tab-" + name,
      "aria-controls": "panel", onclick: () => showPanel(name) }, title)));
}

function showPanel(name) {
  state.panel = name;
  state.details = true;
  showDetails();
  writeState();
}

function panelCount(name) {
  const kernel = currentKernel();
  if (name === "loops") return kernel?.loops?.length ?? 0;
  if (name === "findings") return heat.findings.size;
  if (name === "spills") return kernel?.spills?.length ?? 0;
  if (name === "flow") return kernel?.blocks?.length ?? 0;
  return 0;
}

function showDetails() {
  byId("details").classList.toggle("closed", !state.details);
  byId("details").dataset.panel = state.panel;
  for (const [name, title, make] of PANELS) {
    const tab = byId("tab-" + name), n = panelCount(name);
    tab.setAttribute("aria-selected", name === state.panel);
    put(tab, title, n > 0 ? span("badge", String(n)) : null);
    if (name === state.panel && state.details) {
      byId("panel").setAttribute("aria-labelledby", "tab-" + name);
      put(byId("panel"), make());
    }
  }
}

/* ---- The selected line --------------------------------------------------- */

function placeButton(place, title = placeName(place)) {
  return element("button", { type: "button", class: "line",
    onclick: () => select(place), title: fileName(fileOf(place)) }, title);
}

/* An inline chain, from the user's line to the innermost function. */
function chainNodes(chain) {
  const places = [...placesOf(chain)].reverse();
  return places.flatMap((place, i) =>
    [i > 0 ? span("arrow", " → ") : null, placeButton(place)]);
}

/* Counts the opcodes of some instructions, most frequent first. */
function mixOf(kernel, rows) {
  const mix = new Map();
  for (const row of rows) {
    const opcode = opcodeOf(kernel.sass.text[row]).split(".")[0];
    mix.set(opcode, (mix.get(opcode) ?? 0) + 1);
  }
  return [...mix].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

function mixChips(mix, most = 14) {
  const shown = mix.slice(0, most).map(([opcode, n]) =>
    span("chip", opcode, span("number", count(n))));
  return span("mix", shown,
    mix.length > most ? span("muted", ` and ${mix.length - most} more`) : null);
}

function chainsOf(kernel, rows) {
  const chains = new Map();
  for (const row of rows) {
    const chain = kernel.sass.chain[row];
    chains.set(chain, (chains.get(chain) ?? 0) + 1);
  }
  return [...chains].sort((a, b) => b[1] - a[1]).slice(0, 40);
}

function linePanel() {
  const place = state.place;
  if (place < 0)
    return element("p", { class: "empty" },
      "Click a line of any column. Its PTX and SASS are highlighted, and this panel shows what it costs.");
  const kernel = currentKernel();
  const rows = kernel?.sass ? sassIndex(kernel).get(place) ?? [] : [];
  const parts = [element("p", { class: "headline" }, element("strong", {}, placeName(place)),
    " ", element("code", {}, coloured("c", cut(placeText(place), 160))))];
  parts.push(element("p", {}, plural(rows.length, "instruction"), " and ",
    plural(rowsOf("ptx", place).length, "line"), " of PTX", rows.length > 0
      ? [": ", mixChips(mixOf(kernel, rows))] : "."));
  if (state.chain >= 0 && placesOf(state.chain).length > 1)
    parts.push(element("p", {}, span("muted", "selected instruction: "), chainNodes(state.chain)));
  parts.push(findingList(heat.findings.get(place) ?? []), heatList(place));
  const chains = kernel?.sass ? chainsOf(kernel, rows) : [];
  if (chains.some(([chain]) => placesOf(chain).length > 1))
    parts.push(table([">instructions", "inlined through"],
      chains.map(([chain, n]) => [count(n), chainNodes(chain)]), "inline chains"));
  return parts;
}

function heatList(place) {
  const values = heatRows().get(place);
  if (!values) return null;
  return element("p", {}, span("muted", "run: "), heat.columns.map((name, i) =>
    values[i] == null || values[i] < 0 ? null : span("chip", name === "us" ? "µs" : name,
      span("number", count(values[i])))));
}

/* ---- The other panels ---------------------------------------------------- */

function loopsPanel() {
  const kernel = currentKernel();
  if (!kernel?.loops?.length)
    return element("p", { class: "empty" },
      kernel?.sass ? "This kernel has no loop." : "Loops need machine code.");
  const sass = kernel.sass;
  return table(["loop", ">depth", ">instructions", ">slots per iteration", "line", "mix"],
    kernel.loops.map((loop) => ({
      onclick: () => jump(loop.first),
      cells: [`${hex(sass.addr0 + loop.first * sass.step)}–${hex(sass.addr0 + loop.last * sass.step)}`,
        count(loop.depth), count(loop.instructions), count(loop.slots),
        placeName(rootOf(loop.line)),
        mixChips(Object.entries(loop.mix ?? {}).sort((a, b) => b[1] - a[1]), 10)],
    })), "loops");
}

function findingList(texts) {
  return texts.map((text) => element("pre", { class: "finding" }, cut(text)));
}

/* "transpose, grid 4 × 4 × 1, block 32 × 8 × 1: CPU device" per launch. */
function launchList() {
  return (doc.heat?.launches ?? []).map((launch) => element("p", { class: "muted" },
    `${cut(signatureOf(launch.kernel), 80)}, grid ${launch.grid.join(" × ")}, ` +
    `block ${launch.block.join(" × ")}: ${launch.device}`));
}

function findingsPanel() {
  if (heat.findings.size === 0)
    return [element("p", { class: "empty" }, doc.heat
      ? "The checks of the CPU device found nothing in this run."
      : "No run: add --run and a launch, such as --run --grid 4 --block 256 --arg f32[1000]=ramp."),
    launchList()];
  return [...heat.findings].sort((a, b) => a[0] - b[0]).map(([place, texts]) =>
    element("article", {}, element("p", {}, placeButton(place), " ",
      element("code", {}, cut(placeText(place), 160))), findingList(texts)))
    .concat(launchList());
}

function spillsPanel() {
  const spills = currentKernel()?.spills ?? [];
  if (spills.length === 0)
    return element("p", { class: "empty" }, "The kernel spills no registers.");
  return table(["line", ">bytes stored", ">bytes loaded", "source"],
    spills.map(([chain, stores, loads]) => ({
      onclick: () => select(rootOf(chain), null, chain),
      cells: [placeName(rootOf(chain)), count(stores), count(loads),
        element("code", {}, cut(placeText(rootOf(chain)), 120))],
    })), "spills");
}

function logPanel() {
  const image = currentImage();
  if (!image) return null;
  return [element("p", {}, `NVRTC ${versionText(image.nvrtc)}, ${image.target}, options: `,
    element("code", {}, (image.options ?? []).join(" ") || "none")),
  image.log ? element("pre", {}, cut(image.log, 20000))
    : element("p", { class: "empty" }, "The compiler had nothing to say.")];
}
