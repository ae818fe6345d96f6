/* explore_state.js -- what the page shows, and its form in the URL fragment.
 *
 * The fragment makes a view a link: #image=1&line=0:42&panel=loops. Members
 * with their default value are left out. */

const state = {
  view: "code",
  image: 0,
  kernel: kernelNames[0] ?? "",
  file: 0,
  place: -1,
  chain: -1,
  innermost: false,
  metric: heat.columns.length > 0 ? 0 : -1,
  counted: "outer",
  panel: "line",
  details: true,
  query: "",
  theme: "",
};

function currentImage() {
  return doc.images[state.image];
}

function currentKernel() {
  return kernelOf(currentImage(), state.kernel);
}

function fragment() {
  const words = new URLSearchParams();
  if (state.view !== "code") words.set("view", state.view);
  if (state.image > 0) words.set("image", state.image);
  if (kernelNames.indexOf(state.kernel) > 0)
    words.set("kernel", kernelNames.indexOf(state.kernel));
  if (state.place >= 0)
    words.set("line", `${fileOf(state.place)}:${lineOf(state.place)}`);
  else if (state.file > 0) words.set("file", state.file);
  if (state.innermost) words.set("inner", 1);
  if (state.metric > 0 || (state.metric < 0 && heat.columns.length > 0))
    words.set("metric", state.metric);
  if (state.counted !== "outer") words.set("counted", state.counted);
  if (state.panel !== "line") words.set("panel", state.panel);
  if (!state.details) words.set("details", 0);
  if (difference.pair > 0) words.set("pair", difference.pair);
  if (state.query !== "") words.set("q", state.query);
  if (state.theme !== "") words.set("theme", state.theme);
  return words.toString();
}

let lastFragment = null;
let writing = null;

/* Writes the fragment soon. Browsers limit how often a page may change its URL:
 * Chromium to 200 times in 30 seconds. */
function writeState() {
  writing ??= setTimeout(() => {
    writing = null;
    writeFragment();
  }, 250);
}

function writeFragment() {
  lastFragment = fragment();
  try {
    history.replaceState(null, "", "#" + lastFragment);
  } catch {
    /* Some browsers refuse this for local files. The page works without. */
  }
}

/* Reads the fragment; values that do not fit the document are ignored. */
function readState() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name, most, otherwise) => {
    const value = Number(words.get(name) ?? NaN);
    return Number.isInteger(value) && value >= 0 && value <= most ? value : otherwise;
  };
  state.image = number("image", doc.images.length - 1, 0);
  state.kernel = kernelNames[number("kernel", kernelNames.length - 1, 0)] ?? "";
  state.file = number("file", doc.files.length - 1, firstFile());
  state.place = -1;
  const [file, line] = (words.get("line") ?? "").split(":").map(Number);
  if (doc.files[file] && Number.isInteger(line) && line > 0) {
    state.place = placeAt(file, line);
    state.file = file;
  }
  state.innermost = words.get("inner") === "1";
  state.metric = words.get("metric") === "-1" ? -1
    : number("metric", heat.columns.length - 1, heat.columns.length > 0 ? 0 : -1);
  state.counted = words.get("counted") === "inner" ? "inner" : "outer";
  state.panel = PANELS.some(([name]) => name === words.get("panel")) ? words.get("panel") : "line";
  state.details = words.get("details") !== "0";
  state.view = words.get("view") === "differences" ? "differences" : "code";
  state.query = words.get("q") ?? "";
  state.theme = ["light", "dark"].includes(words.get("theme")) ? words.get("theme") : "";
  difference.pair = number("pair", 1e6, 0);
}

/* The file that most instructions of the kernel come from. */
function firstFile() {
  const counts = new Map();
  const kernel = doc.images[0] && kernelOf(doc.images[0], state.kernel);
  for (const chain of kernel?.sass?.chain ?? doc.images[0]?.ptx_chain ?? []) {
    const root = rootOf(chain);
    if (root >= 0) counts.set(fileOf(root), (counts.get(fileOf(root)) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

function switchTheme() {
  state.theme = isDark() ? "light" : "dark";
  applyTheme(state.theme);
  highlight();
  writeState();
}
