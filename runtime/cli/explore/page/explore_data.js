/* explore_data.js -- access to the document that `kiln explore` wrote.
 *
 * Problem: each instruction names an inline chain, and the page asks the other
 * way round: which rows of PTX and SASS belong to a source line?
 * Idea: a place is a number made of file and line. For each chain, the list of
 * its places is computed once, innermost first; the last one is the user's
 * outermost line (the root). An index maps each place to its rows.
 * Invariant: a row is listed once under each place of its chain.
 * Cost: linear in rows times the depth of the chains, once per kernel. */

const doc = JSON.parse(byId("data").textContent);
doc.images ??= [];
doc.differences ??= [];

const LINES_PER_FILE = 0x2000000; /* more lines than a file can have */
const DEEPEST_CHAIN = 64;

function placeAt(file, line) {
  return file * LINES_PER_FILE + line;
}

function fileOf(place) {
  return Math.floor(place / LINES_PER_FILE);
}

function lineOf(place) {
  return place % LINES_PER_FILE;
}

const chainPlaces = doc.chains.map((_, first) => {
  const places = [];
  for (let c = first; c >= 0 && doc.chains[c] && places.length < DEEPEST_CHAIN;
       c = doc.chains[c][2])
    places.push(placeAt(doc.chains[c][0], doc.chains[c][1]));
  return places;
});

/* Returns the places of a chain, innermost first. -1 is the empty chain. */
function placesOf(chain) {
  return chainPlaces[chain] ?? [];
}

/* The user's outermost line of a chain, or -1. */
function rootOf(chain) {
  return placesOf(chain).at(-1) ?? -1;
}

/* The innermost line of a chain, or -1. */
function leafOf(chain) {
  return placesOf(chain)[0] ?? -1;
}

function indexByPlace(chains) {
  const index = new Map();
  chains.forEach((chain, row) => {
    for (const place of new Set(placesOf(chain))) {
      if (!index.has(place)) index.set(place, []);
      index.get(place).push(row);
    }
  });
  return index;
}

/* Computes a value per object when it is first asked for. */
function once(make) {
  const known = new WeakMap();
  return (object) => {
    if (!known.has(object)) known.set(object, make(object));
    return known.get(object);
  };
}

const fileLines = once((file) => (file.text ?? "").split(/\r?\n/));
const ptxLines = once((image) => (image.ptx ?? "").split("\n"));
const ptxIndex = once((image) => indexByPlace(image.ptx_chain ?? []));
const sassIndex = once((kernel) => indexByPlace(kernel.sass?.chain ?? []));

/* Which loops contain each instruction, outermost first. */
const loopsByRow = once((kernel) => {
  const rows = new Map();
  const loops = (kernel.loops ?? []).map((loop, i) => ({ ...loop, index: i }));
  loops.sort((a, b) => a.depth - b.depth || a.first - b.first);
  for (const loop of loops)
    for (let row = loop.first; row <= loop.last; row++)
      rows.set(row, [...(rows.get(row) ?? []), loop]);
  return rows;
});

/* Each line with code of its own gets one of the colours in turn, so that
 * neighbours differ. */
const COLOURS = 12;
const colourOf = once((kernel) => {
  const roots = new Set((kernel.sass?.chain ?? []).map(rootOf));
  roots.delete(-1);
  const order = [...roots].sort((a, b) => a - b);
  return new Map(order.map((place, i) => [place, (i * 5) % COLOURS]));
});

/* Without SASS the colours come from the PTX. */
const colourOfImage = once((image) => {
  const order = [...new Set((image.ptx_chain ?? []).map(rootOf))]
    .filter((place) => place >= 0).sort((a, b) => a - b);
  return new Map(order.map((place, i) => [place, (i * 5) % COLOURS]));
});

const kernelNames = [...new Set(
  doc.images.flatMap((image) => image.kernels.map((kernel) => kernel.name)))];

/* Returns the kernel of this name in an image, or null. */
function kernelOf(image, name) {
  return image?.kernels.find((kernel) => kernel.name === name) ?? null;
}

function signatureOf(name) {
  for (const image of doc.images) {
    const kernel = kernelOf(image, name);
    if (kernel) return kernel.signature || kernel.name;
  }
  return name;
}

function fileName(file) {
  return doc.files[file]?.name ?? "?";
}

/* The folder that all files share, which the compiler put before each name. */
const commonFolder = (() => {
  const names = doc.files.map((file) => file.name);
  let folder = names[0]?.slice(0, names[0].lastIndexOf("/") + 1) ?? "";
  while (folder !== "" && !names.every((name) => name.startsWith(folder)))
    folder = folder.slice(0, folder.slice(0, -1).lastIndexOf("/") + 1);
  return folder;
})();

function shortName(file) {
  return fileName(file).slice(commonFolder.length) || "?";
}

/* "scan.cu:12"; the folder is left out. */
function placeName(place) {
  if (place < 0) return "no line";
  return `${fileName(fileOf(place)).split("/").at(-1)}:${lineOf(place)}`;
}

function placeText(place) {
  const file = doc.files[fileOf(place)];
  return file ? (fileLines(file)[lineOf(place) - 1] ?? "").trim() : "";
}

/* Counters of the run: Maps from place to the row's values. An instruction of an
 * inlined function counts in `inner` where it stands, and in `outer` at the
 * user's outermost line. */
const heat = (() => {
  const columns = doc.heat?.columns ?? [];
  const byPlace = (rows) => new Map((rows ?? []).map(
    ([file, line, ...values]) => [placeAt(file, line), values]));
  const inner = byPlace(doc.heat?.rows), outer = byPlace(doc.heat?.outer_rows);
  const findings = new Map();
  for (const [file, line, text] of doc.heat?.findings ?? []) {
    const place = placeAt(file, line);
    findings.set(place, [...(findings.get(place) ?? []), text]);
  }
  return { columns, inner, outer, findings };
})();
