/* explore_search.js -- finds a text in source, PTX and SASS.
 *
 * The search ignores case. All hits are rows; the next hit is looked for in the
 * active column first, then in the columns right of it. */

const found = { query: "", rows: { source: [], ptx: [], sass: [] }, sets: {} };
const COLUMNS = ["source", "ptx", "sass"];

function rowTexts(name) {
  if (name === "source") return doc.files[state.file] ? fileLines(doc.files[state.file]) : [];
  if (name === "ptx") return currentImage()?.ptx ? ptxLines(currentImage()) : [];
  return currentKernel()?.sass?.text ?? [];
}

function search(query) {
  found.query = query;
  const wanted = query.toLowerCase();
  for (const name of COLUMNS) {
    found.rows[name] = [];
    if (wanted === "") continue;
    rowTexts(name).forEach((text, row) => {
      if (text.toLowerCase().includes(wanted)) found.rows[name].push(row);
    });
  }
  for (const name of COLUMNS) {
    found.sets[name] = new Set(found.rows[name]);
  }
  const sizes = COLUMNS.map((name) => found.rows[name].length);
  put(byId("hits"), wanted === "" ? "" :
    `${count(sizes[0])} · ${count(sizes[1])} · ${count(sizes[2])}`);
  byId("hits").title = wanted === "" ? "" :
    `hits in source, PTX and SASS: ${sizes.join(", ")}`;
}

function hitsIn(name) {
  return found.rows[name];
}

function markHits(name, node, row) {
  node.classList.toggle("hit", found.sets[name]?.has(row) ?? false);
}

/* Moves to the next hit (step 1) or the one before (step -1). */
function nextHit(step) {
  const start = COLUMNS.indexOf(active.name);
  const name = [0, 1, 2].map((i) => COLUMNS[(start + i) % 3])
    .find((column) => found.rows[column].length > 0);
  if (!name) return;
  const rows = found.rows[name];
  const from = name === active.name ? active.row : -1;
  let next = step > 0 ? rows.find((row) => row > from)
    : rows.findLast((row) => row < from);
  next ??= step > 0 ? rows[0] : rows.at(-1);
  activate(name);
  active.row = next;
  panes[name].list.show(next);
  highlight();
}

function makeSearch() {
  const field = byId("query");
  field.addEventListener("input", () => {
    state.query = field.value;
    search(field.value);
    highlight();
    writeState();
  });
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    nextHit(1);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.value = "";
    field.dispatchEvent(new Event("input"));
    field.blur();
    event.stopPropagation();
  });
}
