/* profile_main.js -- connects the timeline with mouse, keyboard and the address
 * of the page. */
"use strict";

let pending = 0, settled = 0;

/* Draws with the next frame, and updates totals and address when the view has
 * been still for a moment. */
function changed() {
  if (pending === 0) {
    pending = requestAnimationFrame(() => {
      pending = 0;
      drawChart();
      drawOverview();
    });
  }
  clearTimeout(settled);
  settled = setTimeout(() => {
    showTotals();
    saveState();
  }, 120);
}

/* ---- View ------------------------------------------------------------------ */

function setView(from, to) {
  const length = clamp(to - from, Math.min(20, profile.length), profile.length * 1.02);
  view.from = clamp(from, -0.01 * profile.length, profile.length * 1.01 - length);
  view.to = view.from + length;
  changed();
}

function zoom(factor, x = LABELS + chartWidth() / 2) {
  const at = timeOf(x);
  setView(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function pan(part) {
  const shift = part * (view.to - view.from);
  setView(view.from + shift, view.to + shift);
}

function scrollRows(pixels) {
  const most = Math.max(0, profile.height - byId("chart").clientHeight);
  view.top = clamp(view.top + pixels, 0, most);
  changed();
}

function showAll() {
  setView(-0.01 * profile.length, 1.01 * profile.length);
}

/* Selects a span; `move` brings it into view. */
function select(row, i, move) {
  view.row = row;
  view.span = i;
  view.links = row === null ? [] : linked(row, i);
  if (row !== null && move) {
    const begin = row.spans.begin[i], end = row.spans.end[i];
    const length = view.to - view.from;
    if (begin < view.from || end > view.to || (end - begin) < length / 2000) {
      const wide = clamp(length, (end - begin) * 1.5, Math.max((end - begin) * 60, 200));
      setView((begin + end - wide) / 2, (begin + end + wide) / 2);
    }
    if (row.y - view.top < AXIS || row.y + LANE - view.top > byId("chart").clientHeight)
      scrollRows(row.y - view.top - 60);
  }
  showDetail();
  changed();
}

/* Returns the span at a place of the canvas, as [row, index], or null. */
function spanAt(x, y) {
  if (x < LABELS || y < AXIS) return null;
  const perPixel = (view.to - view.from) / chartWidth();
  for (const row of profile.rows) {
    const lane = row.lanes[Math.floor((y + view.top - row.y) / LANE)];
    if (y + view.top < row.y || lane === undefined) continue;
    const i = firstAbove(lane.end, timeOf(x) - 2 * perPixel, 0, lane.n);
    if (i < lane.n && lane.begin[i] <= timeOf(x) + 2 * perPixel)
      return [row, lane.index[i]];
  }
  return null;
}

/* ---- Mouse ------------------------------------------------------------------ */

function listenToChart() {
  const chart = byId("chart");
  let drag = null;
  chart.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
      pan((event.deltaX || event.deltaY) / 1000);
    else if (event.offsetX < LABELS) scrollRows(event.deltaY);
    else zoom(1.0018 ** event.deltaY, event.offsetX);
  }, { passive: false });
  chart.addEventListener("pointerdown", (event) => {
    chart.setPointerCapture(event.pointerId);
    chart.classList.add("drag");
    drag = { x: event.offsetX, y: event.offsetY, moved: false, mark: event.shiftKey };
    if (event.shiftKey) view.mark = [timeOf(event.offsetX), timeOf(event.offsetX)];
  });
  chart.addEventListener("pointermove", (event) => {
    if (drag === null) return;
    if (Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) > 3) drag.moved = true;
    if (drag.mark) {
      view.mark[1] = timeOf(event.offsetX);
      changed();
    } else if (drag.moved) {
      pan((drag.x - event.offsetX) / chartWidth());
      scrollRows(drag.y - event.offsetY);
      drag.x = event.offsetX;
      drag.y = event.offsetY;
    }
  });
  chart.addEventListener("pointerup", (event) => {
    chart.classList.remove("drag");
    if (drag !== null && !drag.moved) {
      const found = spanAt(event.offsetX, event.offsetY);
      view.mark = null;
      select(found === null ? null : found[0], found === null ? -1 : found[1], false);
    }
    drag = null;
  });
}

function listenToOverview() {
  const overview = byId("overview");
  const move = (event) => {
    if (event.buttons === 0) return;
    const at = event.offsetX / overview.clientWidth * profile.length;
    const half = (view.to - view.from) / 2;
    setView(at - half, at + half);
  };
  overview.addEventListener("pointerdown", move);
  overview.addEventListener("pointermove", move);
}

/* ---- Keyboard ---------------------------------------------------------------- */

const KEYS = [
  ["w", "+"], "zoom in", () => zoom(0.7),
  ["s", "-"], "zoom out", () => zoom(1 / 0.7),
  ["a", "ArrowLeft"], "earlier", () => pan(-0.2),
  ["d", "ArrowRight"], "later", () => pan(0.2),
  ["ArrowUp"], "rows above", () => scrollRows(-60),
  ["ArrowDown"], "rows below", () => scrollRows(60),
  ["0", "Home"], "everything", showAll,
  ["f"], "zoom to the selected span or the marked time", () => zoomToSelection(),
  ["/"], "search", () => byId("query").focus(),
  ["n"], "next match", () => step(true),
  ["p"], "previous match", () => step(false),
  ["Escape"], "no selection, no search", () => { view.mark = null; searchFor(""); select(null, -1, false); },
  ["t"], "light or dark", () => switchTheme(),
  ["?"], "this list", () => byId("keys").showModal(),
];

function zoomToSelection() {
  if (view.mark !== null) {
    setView(Math.min(...view.mark), Math.max(...view.mark));
  } else if (view.row !== null) {
    const begin = view.row.spans.begin[view.span], end = view.row.spans.end[view.span];
    const edge = Math.max((end - begin) * 0.1, 5);
    setView(begin - edge, end + edge);
  }
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === byId("query")) {
      if (event.key === "Enter") step(!event.shiftKey);
      else if (event.key === "Escape") byId("query").blur();
      return;
    }
    if (byId("keys").open) return;
    for (let i = 0; i < KEYS.length; i += 3) {
      if (!KEYS[i].includes(event.key)) continue;
      event.preventDefault();
      KEYS[i + 2]();
    }
  });
  const rows = [];
  for (let i = 0; i < KEYS.length; i += 3)
    rows.push([KEYS[i].map((key) => element("kbd", {}, `${key} `)), KEYS[i + 1]]);
  put(byId("keys"), element("h2", {}, "Keyboard"), table(["key", "effect"], rows, "Keys"),
    element("p", { class: "note" }, "The wheel zooms; over the titles it scrolls; with Shift it pans. Dragging pans. Shift and dragging marks a time."),
    element("button", { type: "button", onclick: () => byId("keys").close() }, "close"));
}

/* ---- Theme and state ----------------------------------------------------------- */

/* "light", "dark", or "" for the theme of the system. */
let theme = "";

function showTheme() {
  applyTheme(theme);
  view.dark = isDark();
}

function switchTheme() {
  theme = isDark() ? "light" : "dark";
  showTheme();
  showDetail();
  changed();
}

/* Draws the chart for paper, which is light, or again for the screen. */
function printing(on) {
  byId("timeline").style.setProperty("--height", `${byId("timeline").offsetHeight}px`);
  applyTheme(on ? "light" : theme);
  view.dark = isDark();
  drawChart();
  drawOverview();
}

function saveState() {
  const state = new URLSearchParams();
  state.set("t", `${Math.round(view.from)},${Math.round(view.to)}`);
  if (byId("query").value !== "") state.set("q", byId("query").value);
  if (view.row !== null) state.set("s", `${profile.rows.indexOf(view.row)},${view.span}`);
  history.replaceState(null, "", `#${state}`);
}

function loadState() {
  const state = new URLSearchParams(location.hash.slice(1));
  const [from, to] = (state.get("t") ?? "").split(",").map(Number);
  const [row, i] = (state.get("s") ?? "").split(",").map(Number);
  if (to > from) setView(from, to);
  if (state.has("q")) searchFor(state.get("q"));
  if (profile.rows[row]?.n > i) select(profile.rows[row], i, false);
}

function showHead() {
  const [first] = profile.processes;
  const all = profile.processes.length;
  byId("program").textContent = visible(first?.program ?? "profile");
  byId("facts").textContent = `${duration(profile.length)}, ${plural(profile.total, "activity")
    .replace(/activitys$/, "activities")}, ${plural(all, "process").replace(/processs$/, "processes")}, ` +
    (first?.source ?? "");
  const notes = profile.notes.map(visible);
  for (const process of profile.processes) {
    if (process.lost > 0) notes.push(`process ${process.pid} lost ${count(process.lost)} records`);
    if (!process.exited) notes.push(`process ${process.pid} did not end by exit()`);
  }
  const [host, device] = profile.merged;
  if (host > 0)
    notes.push(`calls closer than ${duration(host)} are shown as one span, which counts once in the totals below`);
  if (device > 0)
    notes.push(`work closer than ${duration(device)} is shown as one span`);
  byId("notes").hidden = notes.length === 0;
  byId("notes").textContent = notes.join("; ");
}

function start() {
  profile = readProfile();
  showTheme();
  placeRows();
  showHead();
  showAll();
  listenToChart();
  listenToOverview();
  listenToKeys();
  byId("search").addEventListener("submit", (event) => event.preventDefault());
  byId("query").addEventListener("input", search);
  byId("in").addEventListener("click", () => zoom(0.7));
  byId("out").addEventListener("click", () => zoom(1 / 0.7));
  byId("all").addEventListener("click", showAll);
  byId("theme").addEventListener("click", switchTheme);
  byId("help").addEventListener("click", () => byId("keys").showModal());
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  systemTheme.addEventListener("change", () => {
    showTheme();
    changed();
  });
  new ResizeObserver(() => {
    placeRows();
    scrollRows(0);
  }).observe(byId("chart"));
  showDetail();
  loadState();
}

start();
