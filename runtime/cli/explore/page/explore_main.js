/* explore_main.js -- starts the page: pickers, tabs, keyboard, splitters,
 * printing. */

function showImages() {
  const tabs = doc.images.map((image, i) => tab(`image-${i}`, image.label,
    state.view === "code" && state.image === i, () => chooseImage(i),
    `${image.target}, ${(image.options ?? []).join(" ")}`));
  if (doc.differences.length > 0)
    tabs.push(tab("image-differences", "Differences", state.view === "differences",
      () => chooseView("differences")));
  put(byId("images"), tabs);
}

function tab(id, text, chosen, onclick, title) {
  return element("button", { type: "button", role: "tab", id, "aria-selected": String(chosen),
    tabindex: chosen ? 0 : -1, onclick, title: title ? cut(title, 300) : null }, cut(text, 40));
}

function chooseImage(index) {
  state.image = index;
  state.view = "code";
  const image = currentImage();
  if (image && !kernelOf(image, state.kernel) && image.kernels.length > 0)
    state.kernel = image.kernels[0].name;
  showAll();
  writeState();
}

function chooseView(view) {
  state.view = view;
  showAll();
  writeState();
}

function chooseKernel(name) {
  state.kernel = name;
  showAll();
  showKernel();
  writeState();
}

/* Scrolls source and PTX to the kernel. */
function showKernel() {
  const kernel = currentKernel();
  if (!kernel || state.place >= 0) return;
  if (kernel.ptx_lines) panes.ptx.list.show(kernel.ptx_lines[0] - 1);
  const roots = (kernel.sass?.chain ?? currentImage().ptx_chain ?? []).map(rootOf)
    .filter((place) => place >= 0 && fileOf(place) === state.file);
  if (roots.length > 0)
    panes.source.list.show(lineOf(roots.reduce((a, b) => Math.min(a, b))) - 1);
}

function showPickers() {
  put(byId("program"), cut((doc.program ?? "").split("/").at(-1), 40));
  byId("program").title = cut(`${doc.program}, kiln ${doc.kiln}`, 300);
  put(byId("kernel"), kernelNames.map((name) =>
    element("option", { value: name, title: cut(name, 300) }, cut(signatureOf(name), 60))));
  byId("kernel").value = state.kernel;
  put(byId("file"), doc.files.map((file, i) =>
    element("option", { value: i, title: cut(file.name, 300) }, cut(shortName(i), 60))));
  byId("file").value = String(state.file);
  byId("query").value = state.query;
  showMetrics();
}

function showAll() {
  applyTheme(state.theme);
  showImages();
  showPickers();
  const code = state.view === "code";
  byId("code").hidden = byId("card").hidden = byId("details").hidden = !code;
  byId("differences").hidden = code;
  search(state.query);
  if (!code) return showDifferences();
  showCard();
  showPanes();
  showDetails();
}

/* ---- Keyboard ------------------------------------------------------------ */

const KEYS = [
  ["/", "search", () => { byId("query").focus(); byId("query").select(); }],
  ["n", "next hit", () => nextHit(1)],
  ["N", "hit before", () => nextHit(-1)],
  ["1", "source column", () => panes.source.list.box.focus()],
  ["2", "PTX column", () => panes.ptx.list.box.focus()],
  ["3", "SASS column", () => panes.sass.list.box.focus()],
  ["j", "next row of the column (also ↓)", () => moveCursor(1)],
  ["k", "row before (also ↑)", () => moveCursor(-1)],
  ["]", "next image", () => stepImage(1)],
  ["[", "image before", () => stepImage(-1)],
  ["d", "differences", () => doc.differences.length > 0 &&
    chooseView(state.view === "code" ? "differences" : "code")],
  ["l", "loops", () => showPanel("loops")],
  ["c", "control flow", () => showPanel("flow")],
  ["f", "findings", () => showPanel("findings")],
  ["p", "open or close the details", () => {
    state.details = !state.details;
    showDetails();
    writeState();
  }],
  ["i", "select outermost or innermost lines", () => {
    state.innermost = !state.innermost;
    writeState();
  }],
  ["t", "light or dark", switchTheme],
  ["?", "this help", () => toggleKeys()],
  ["Escape", "clear the selection", () => select(-1)],
];

function toggleKeys() {
  const box = byId("keys");
  if (box.open) return box.close();
  put(box, element("h2", {}, "Keyboard"),
    element("dl", {}, KEYS.map(([key, what]) =>
      [element("dt", {}, element("kbd", {}, key === "Escape" ? "Esc" : key)),
        element("dd", {}, what)])),
    element("p", { class: "muted" }, "Hover over a row to see what belongs to it; click to select. ",
      "Colours mark lines with code of their own."),
    element("button", { type: "button", onclick: () => box.close() }, "Close"));
  box.showModal();
}

function stepImage(step) {
  if (doc.images.length > 0)
    chooseImage((state.image + step + doc.images.length) % doc.images.length);
}

/* Moves the cursor of the active column, and selects its row. */
function moveCursor(step) {
  const { name, list } = panes[active.name];
  active.row = clamp(active.row + step, 0, list.n - 1);
  list.show(active.row);
  select(placeOfRow(name, active.row), name,
    name === "source" ? -1 : chainOf(name, active.row));
}

function onKey(event) {
  const typing = event.target.matches?.("input, select, textarea");
  if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
  const arrows = { ArrowDown: "j", ArrowUp: "k" };
  const inList = event.target.closest?.(".list");
  const key = inList ? arrows[event.key] ?? event.key : event.key;
  if (byId("keys").open) {
    if (key === "Escape" || key === "?") byId("keys").close();
    return;
  }
  const action = KEYS.find(([name]) => name === key);
  if (!action) return;
  event.preventDefault();
  action[2]();
}

/* Left and right move between the tabs of a list of tabs. */
function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const tabs = [...event.currentTarget.querySelectorAll("[role=tab]")];
  const at = tabs.indexOf(document.activeElement);
  if (!step || at < 0) return;
  const id = tabs[(at + step + tabs.length) % tabs.length].id;
  byId(id).click();
  byId(id).focus();
}

/* ---- Splitters and printing ---------------------------------------------- */

function moveSplit(split, dx, dy) {
  if (split.classList.contains("flat")) {
    const box = byId("details");
    box.classList.add("sized");
    box.style.height = `${clamp(box.offsetHeight - dy, 60, innerHeight * 0.7)}px`;
    return;
  }
  const columns = [...document.querySelectorAll("#code > .pane")];
  const widths = columns.map((column) => column.offsetWidth);
  const left = split.previousElementSibling === columns[0] ? 0 : 1;
  const move = clamp(dx, 120 - widths[left], widths[left + 1] - 120);
  widths[left] += move;
  widths[left + 1] -= move;
  columns.forEach((column, i) => { column.style.flex = `${widths[i]} 1 0`; });
}

function makeSplits() {
  for (const split of document.querySelectorAll(".split")) {
    split.addEventListener("pointerdown", (event) => split.setPointerCapture(event.pointerId));
    split.addEventListener("pointermove", (event) => {
      if (split.hasPointerCapture(event.pointerId)) moveSplit(split, event.movementX, event.movementY);
    });
    split.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-20, 0], ArrowRight: [20, 0], ArrowUp: [0, -20], ArrowDown: [0, 20] }[event.key];
      if (step) moveSplit(split, ...step);
    });
  }
}

function printing(on) {
  for (const { list } of Object.values(panes)) {
    list.printing = on;
    list.refresh();
  }
}

function start() {
  makePanes();
  makePanels();
  makeSearch();
  makeSplits();
  readState();
  makeMetrics();
  showAll();
  activate("source");
  if (state.place >= 0) select(state.place);
  else showKernel();
  byId("kernel").addEventListener("change", (event) => chooseKernel(event.target.value));
  byId("file").addEventListener("change", (event) => {
    state.file = Number(event.target.value);
    showSource();
    search(state.query);
    highlight();
  });
  byId("theme").addEventListener("click", switchTheme);
  byId("help").addEventListener("click", toggleKeys);
  byId("images").addEventListener("keydown", onTabKey);
  byId("panels").addEventListener("keydown", onTabKey);
  document.addEventListener("keydown", onKey);
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) === lastFragment) return;
    readState();
    showAll();
    if (state.place >= 0) select(state.place);
  });
  systemTheme.addEventListener("change", () => {
    applyTheme(state.theme);
    highlight();
  });
}

start();
