/* profile_panels.js -- the details of a span, the totals of the visible part, and
 * the search. */
"use strict";

/* Finds the spans that share the number of the selected one: the call that issued
 * work, or the work of a call. */
function linked(row, i) {
  const number = row.spans.correlation[i], found = [];
  if (number === 0) return found;
  for (const other of profile.rows) {
    if (other.about.process !== row.about.process) continue;
    for (let k = 0; k < other.n && found.length < 50; k++) {
      if (other.spans.correlation[k] === number && (other !== row || k !== i) &&
          (other.about.host !== row.about.host || other.spans.kind[k] === 4))
        found.push([other, k]);
    }
  }
  return found;
}

function facts(row, i) {
  const { spans } = row, length = spans.end[i] - spans.begin[i];
  const list = [["kind", KINDS[spans.kind[i]]], ["where", `${row.about.title}, ${row.about.group}`],
    ["begin", duration(spans.begin[i])], ["length", duration(length)]];
  if (spans.bytes[i] > 0)
    list.push(["rate", `${(spans.bytes[i] / Math.max(length, 1)).toFixed(2)} GB/s, ${bytes(spans.bytes[i])}`]);
  if (spans.detail[i] > 0) list.push(["details", cut(profile.details[spans.detail[i]])]);
  return list;
}

function linkTo([row, i]) {
  const { spans } = row, current = view.row.spans;
  const delay = spans.begin[i] - current.begin[view.span];
  return element("div", {},
    element("button", { type: "button", class: "link", onclick: () => select(row, i, true) },
      `${cut(profile.names[spans.name[i]], 200)}, ${row.about.title}`),
    span("muted", ` ${duration(Math.abs(delay))} ${delay < 0 ? "earlier" : "later"}, ${duration(spans.end[i] - spans.begin[i])} long`));
}

function showDetail() {
  const { row, span: i } = view;
  if (row === null) {
    put(byId("detail"), element("p", { class: "note" },
      "Click a span to see what it is. Shift and drag to measure a time. ? lists the keys."));
    return;
  }
  const swatch = span("swatch");
  swatch.style.background = colour(row.spans.name[i], row.spans.kind[i]);
  const list = facts(row, i).map(([head, text]) => [element("dt", {}, head), element("dd", {}, text)]);
  if (view.links.length > 0)
    list.push([element("dt", {}, row.about.host ? "its work" : "issued by"),
      element("dd", {}, view.links.map(linkTo))]);
  put(byId("detail"), element("h2", {}, swatch, cut(profile.names[row.spans.name[i]])),
    element("dl", {}, list));
}

/* Adds the spans of a row within a time to the totals, cut at its ends. */
function addTotals(totals, row, from, to) {
  const { begin, end, name, kind } = row.spans;
  for (let i = 0; i < row.n && begin[i] < to; i++) {
    if (end[i] <= from && end[i] !== begin[i]) continue;
    if (end[i] < from) continue;
    const key = name[i] * KINDS.length + kind[i];
    let one = totals.get(key);
    if (one === undefined)
      totals.set(key, one = { name: name[i], kind: kind[i], calls: 0, time: 0, most: 0 });
    const length = Math.min(end[i], to) - Math.max(begin[i], from);
    one.calls++;
    one.time += length;
    one.most = Math.max(one.most, length);
  }
}

/* Shows the totals of the marked time, or else of the visible time. */
function showTotals() {
  const [from, to] = view.mark === null ? [view.from, view.to]
    : [Math.min(...view.mark), Math.max(...view.mark)];
  const totals = new Map();
  for (const row of profile.rows) addTotals(totals, row, from, to);
  const list = [...totals.values()].sort((a, b) =>
    (a.kind > 2) - (b.kind > 2) || b.time - a.time);
  const rows = list.slice(0, 200).map((one) => ({
    onclick: () => searchFor(profile.names[one.name]),
    cells: [cut(profile.names[one.name], 160), KINDS[one.kind], count(one.calls),
      duration(one.time), duration(one.time / one.calls), duration(one.most),
      `${(100 * one.time / (to - from)).toFixed(1)} %`],
  }));
  put(byId("totals"),
    element("h2", {}, `${view.mark === null ? "Visible" : "Marked"}: ${duration(to - from)}`),
    table(["name", "kind", ">calls", ">total", ">mean", ">most", ">of the time"],
      rows, "Totals"));
}

/* ---- Search --------------------------------------------------------------- */

function searchFor(text) {
  byId("query").value = text;
  search();
}

function search() {
  const text = byId("query").value.trim().toLowerCase();
  view.wanted = null;
  let n = 0;
  if (text !== "") {
    view.wanted = profile.names.map((name) => name.toLowerCase().includes(text));
    for (const row of profile.rows) {
      for (let i = 0; i < row.n; i++) n += view.wanted[row.spans.name[i]] ? 1 : 0;
    }
  }
  byId("hits").textContent = text === "" ? "" : plural(n, "span");
  changed();
}

/* Selects the next or previous span that matches, by begin. */
function step(forward) {
  if (view.wanted === null) return;
  const now = view.row === null ? view.from : view.row.spans.begin[view.span];
  let best = null;
  for (const row of profile.rows) {
    const { begin, name } = row.spans;
    for (let i = 0; i < row.n; i++) {
      if (!view.wanted[name[i]] || (forward ? begin[i] <= now : begin[i] >= now)) continue;
      const before = best === null ? null : best[0].spans.begin[best[1]];
      if (best === null || (forward ? begin[i] < before : begin[i] > before)) best = [row, i];
    }
  }
  if (best !== null) select(best[0], best[1], true);
}
