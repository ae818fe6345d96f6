/* explore_differences.js -- the view that compares two compiles line by line.
 *
 * The document has one entry per pair of images and kernel, with rows
 * [chain of A, instructions A, instructions B, slots A, slots B, chain of B].
 * The row that is selected shows the instructions of both sides, aligned by opcode. */

const difference = { pair: 0, row: -1 };

/* Entries of the document for the chosen kernel. */
function pairs() {
  return doc.differences.filter((entry) => entry.kernel === state.kernel);
}

function imageName(index) {
  const image = doc.images[index];
  return image ? image.label : "?";
}

function delta(a, b) {
  const value = b - a;
  if (Math.abs(value) < 1e-9) return span("muted", "0");
  return span(value > 0 ? "worse" : "better", (value > 0 ? "+" : "−") + count(Math.abs(value)));
}

function deltaBar(a, b, most) {
  const bar = element("i", { class: b > a ? "worse" : "better" });
  bar.style.width = `${Math.abs(b - a) / Math.max(1, most) * 100}%`;
  return span("delta", bar);
}

function resourceRows(entry) {
  const a = kernelOf(doc.images[entry.a], entry.kernel)?.resources ?? {};
  const b = kernelOf(doc.images[entry.b], entry.kernel_b)?.resources ?? {};
  return ["registers", "spill_stores", "spill_loads", "stack", "shared_static",
    "constant", "code_bytes"].filter((key) => (a[key] ?? 0) !== (b[key] ?? 0) || key === "registers")
    .map((key) => [key.replace("_", " "), count(a[key] ?? 0), count(b[key] ?? 0),
      delta(a[key] ?? 0, b[key] ?? 0)]);
}

function totals(entry) {
  const sum = (i) => entry.rows.reduce((total, row) => total + Math.max(0, row[i]), 0);
  return [["instructions", 1, 2], ["issue slots", 3, 4]].map(([name, a, b]) =>
    [name, count(sum(a)), count(sum(b)), delta(sum(a), sum(b))]);
}

/* Aligns two lists of opcodes by their longest common subsequence. Cost: the
 * product of the lengths, so long lists are shown without alignment. */
function align(a, b) {
  if (a.length * b.length > 1e6)
    return Array.from({ length: Math.max(a.length, b.length) }, (_, i) => [a[i], b[i]]);
  const best = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i][j] = opcodeOf(a[i]) === opcodeOf(b[j]) ? best[i + 1][j + 1] + 1
        : Math.max(best[i + 1][j], best[i][j + 1]);
  const rows = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && opcodeOf(a[i]) === opcodeOf(b[j]))
      rows.push([a[i++], b[j++]]);
    else if (j >= b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1]))
      rows.push([a[i++], undefined]);
    else rows.push([undefined, b[j++]]);
  }
  return rows;
}

/* Instructions of a line in one image: those whose outermost line it is. */
function textsOf(image, name, place) {
  const sass = kernelOf(doc.images[image], name)?.sass;
  return sass ? sass.text.filter((_, row) => rootOf(sass.chain[row]) === place) : [];
}

function sideBySide(entry, place) {
  const row = entry.rows.find(([chain]) => rootOf(chain) === place);
  const rows = align(textsOf(entry.a, entry.kernel, place),
    textsOf(entry.b, entry.kernel_b, row ? rootOf(row[5]) : place));
  const cell = (text) => text === undefined ? ""
    : element("code", { title: cut(text, 200) }, coloured("sass", text));
  return table([imageName(entry.a), imageName(entry.b)], rows.slice(0, 2000).map(([a, b]) => ({
    class: a === undefined ? "only-b" : b === undefined ? "only-a" : "",
    cells: [cell(a), cell(b)],
  })), "instructions of the line");
}

function differenceRows(entry) {
  const most = Math.max(...entry.rows.map((row) => Math.abs(row[2] - row[1])), 1);
  const rows = entry.rows.map((row) => ({ row, place: rootOf(row[0]) }))
    .sort((a, b) => Math.abs(b.row[2] - b.row[1]) - Math.abs(a.row[2] - a.row[1]) ||
      Math.abs(b.row[4] - b.row[3]) - Math.abs(a.row[4] - a.row[3]) || a.place - b.place);
  return rows.slice(0, 1000).map(({ row, place }) => ({
    class: difference.row === place ? "chosen" : "",
    onclick: () => { difference.row = place; state.place = place; showDifferences(); writeState(); },
    cells: [placeName(place), count(row[1]), count(row[2]), delta(row[1], row[2]),
      deltaBar(row[1], row[2], most), count(row[3]), count(row[4]), delta(row[3], row[4]),
      element("code", {}, coloured("c", cut(place >= 0 ? placeText(place) : "", 100)))],
  }));
}

function pairPick(list) {
  return element("select", { "aria-label": "images to compare", id: "pair", onchange: (event) => {
    difference.pair = Number(event.target.value);
    showDifferences();
    writeState();
  } }, list.map((entry, i) => element("option", { value: i, selected: i === difference.pair },
    `${imageName(entry.a)} and ${imageName(entry.b)}`)));
}

function optionLine(index) {
  const image = doc.images[index];
  return element("p", { class: "muted" }, element("strong", {}, imageName(index)),
    ` ${cut((image.program ?? "").split("/").at(-1), 60)}, NVRTC ${versionText(image.nvrtc)} `,
    element("code", {}, cut((image.options ?? []).join(" "), 300) || "no options"));
}

function showDifferences() {
  const list = pairs();
  difference.pair = clamp(difference.pair, 0, Math.max(0, list.length - 1));
  const entry = list[difference.pair];
  if (!entry)
    return put(byId("differences"), element("p", { class: "empty" },
      "There is nothing to compare: explore two architectures (--arch sm_80,sm_90), or two compiles (--compare)."));
  const place = difference.row >= 0 ? difference.row : state.place;
  put(byId("differences"),
    element("section", { class: "lines" },
      element("div", { class: "bar" }, element("h2", {}, "Differences"), pairPick(list)),
      optionLine(entry.a), optionLine(entry.b),
      table(["whole kernel", ">A", ">B", ">B − A"], [...resourceRows(entry), ...totals(entry)],
        "resources"),
      table(["line", ">ins A", ">B", ">B − A", "", ">slots A", ">B", ">B − A", "source"],
        differenceRows(entry), "lines")),
    element("section", { class: "beside" },
      element("div", { class: "bar" }, element("h2", {}, place >= 0 ? placeName(place) : "Instructions")),
      place >= 0 ? sideBySide(entry, place)
        : element("p", { class: "empty" }, "Click a line to see its instructions side by side.")));
}
