/* explore_heat.js -- the counters of a run beside the source: one column of
 * values with bars, and the findings of the checks at their lines. */

/* What the columns mean. Lanes are better when large, the others when small. */
const METRICS = {
  executions: "instructions that warps executed",
  lanes: "active lanes per instruction, of 32",
  divergence: "branches at which the lanes of a warp diverged",
  sectors: "32-byte sectors per request to global memory",
  conflicts: "extra passes per request to shared memory: bank conflicts",
  us: "microseconds",
};

function heatRows() {
  return state.counted === "inner" ? heat.inner : heat.outer;
}

/* The largest value of each column. */
const mostHeat = once((rows) => heat.columns.map((_, i) =>
  [...rows.values()].reduce((most, values) => Math.max(most, values[i] ?? 0), 1e-9)));

function heatCell(place) {
  const value = heatRows().get(place)?.[state.metric];
  if (value == null || value < 0) return span("heat");
  const bar = element("i");
  const share = value / mostHeat(heatRows())[state.metric];
  bar.style.width = `${clamp(share * 100, 0, 100)}%`;
  if (heatIsBad(heat.columns[state.metric], value, share)) bar.className = "high";
  return span("heat", bar, span("number", shortCount(value)));
}

function heatIsBad(metric, value, share) {
  if (metric === "lanes") return value < 16;
  if (metric === "sectors") return value > 8;
  if (metric === "conflicts" || metric === "divergence") return value > 0;
  return share > 0.5;
}

/* 1234567 becomes "1.23 M". */
function shortCount(value) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]])
    if (value >= size)
      return `${(value / (size === 1e4 ? 1e3 : size)).toPrecision(3)} ${unit}`;
  return count(value);
}

function findingMark(place) {
  const findings = heat.findings.get(place);
  if (!findings) return span("mark");
  return element("span", { class: "mark finding", title: cut(findings.join("\n\n")),
    role: "img", "aria-label": "finding" }, "▲");
}

/* Where the counters of inlined code are shown. */
const COUNTED = [
  ["outer", "at calls", "inlined code counts at the line of the kernel that calls it"],
  ["inner", "in place", "inlined code counts at its own line"],
];

/* Whether the run executed inlined code. Without it there is nothing to choose. */
const ranInlined = [...heat.inner].some(
  ([place, [executions]]) => heat.outer.get(place)?.[0] !== executions);

function showCounted() {
  const pick = byId("counted");
  pick.hidden = !ranInlined || state.metric < 0;
  put(pick, COUNTED.map(([value, text, title]) => element("option", { value, title }, text)));
  pick.value = state.counted;
}

function showMetrics() {
  const pick = byId("metric");
  pick.hidden = heat.columns.length === 0;
  put(pick, heat.columns.map((name, i) =>
    element("option", { value: i }, name === "us" ? "µs" : name)),
    element("option", { value: -1 }, "no counters"));
  pick.value = String(state.metric);
  showCounted();
}

function makeMetrics() {
  const change = (name, read) => byId(name).addEventListener("change", (event) => {
    state[name] = read(event.target.value);
    showMetrics();
    showSource();
    highlight();
    showDetails();
    writeState();
  });
  change("metric", Number);
  change("counted", String);
}
