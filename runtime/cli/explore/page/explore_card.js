/* explore_card.js -- the header card: resources of the kernel, and the three
 * curves of the occupancy sheet. */

const CURVES = [
  ["by_threads", "threads per block", "threads"],
  ["by_registers", "registers per thread", "registers"],
  ["by_shared", "shared memory per block", "shared"],
];

function fact(label, value, unit, options = {}) {
  return element("div", { class: "fact " + (options.class ?? ""), title: options.title },
    element("dt", {}, label),
    element("dd", {}, value, unit ? span("unit", " " + unit) : null));
}

/* The source lines that cause spills, as buttons. */
function spillButtons(kernel) {
  return (kernel.spills ?? []).slice(0, 4).map(([chain, stores, loads]) =>
    element("button", { type: "button", class: "line", onclick: () => select(rootOf(chain), null, chain),
      title: `${count(stores)} bytes stored, ${count(loads)} bytes loaded` },
      placeName(rootOf(chain))));
}

function spillFact(kernel) {
  const { spill_stores: stores = 0, spill_loads: loads = 0 } = kernel.resources ?? {};
  const spilled = stores + loads > 0;
  return fact("spills", spilled
    ? [`${count(stores)} / ${count(loads)}`, " ", spillButtons(kernel)] : "none",
    spilled ? "B" : null, { class: spilled ? "bad wide" : "",
      title: "bytes stored and loaded per thread because registers did not suffice" });
}

function resourceFacts(image, kernel) {
  const r = kernel.resources ?? {};
  const peak = kernel.sass?.live ? mostLive(kernel) : null;
  return element("dl", { class: "facts" },
    fact("registers", count(r.registers), peak ? `peak live ${peak}` : "",
      { title: "registers per thread; the largest number that is live at once" }),
    spillFact(kernel),
    fact("stack", count(r.stack), "B"),
    fact("shared", count(r.shared_static), "B",
      { title: "static shared memory per block" }),
    r.constant > 0 ? fact("constant", count(r.constant), "B") : null,
    fact("code", r.code_bytes > 0 ? bytes(r.code_bytes) : "–", null),
    r.max_threads > 0 ? fact("launch bound", count(r.max_threads), "threads") : null,
    fact("compiled", count(image.compile_ms), "ms",
      { title: `NVRTC ${versionText(image.nvrtc)}` }),
    launchFacts(kernel));
}

/* The time of each launch of --run on a GPU. */
function launchFacts(kernel) {
  return (doc.heat?.launches ?? [])
    .filter((launch) => launch.kernel === kernel.name && launch.device === "GPU")
    .map((launch) => fact("time", count(launch.ms * 1000), "µs",
      { title: `grid ${launch.grid.join(" × ")}, block ${launch.block.join(" × ")}, median of 15` }));
}

function versionText(version) {
  return version > 0 ? `${Math.floor(version / 1000)}.${Math.floor(version % 1000 / 10)}` : "?";
}

/* Draws one curve: warps per SM over one resource, with the kernel's value. */
function curve(points, title, now, most, format = count) {
  const W = 216, H = 92, L = 26, R = 8, T = 16, B = 16;
  const last = points.at(-1)?.[0] ?? 1;
  const x = (value) => L + value / last * (W - L - R);
  const y = (warps) => H - B - warps / most * (H - T - B);
  let path = "";
  points.forEach(([value, warps], i) => {
    path += i === 0 ? `M${x(value)} ${y(warps)}` : `H${x(value)}V${y(warps)}`;
  });
  const warps = points.filter(([value]) => value <= now).at(-1)?.[1];
  return graphic("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, class: "curve",
    role: "img", "aria-label": `warps per SM by ${title}: now ${format(now)}` },
    graphic("text", { x: L, y: 10, class: "title" }, title),
    graphic("path", { d: `M${L} ${T}V${H - B}H${W - R}`, class: "axis" }),
    [0, most].map((warps) => graphic("text",
      { x: L - 4, y: y(warps) + 3, "text-anchor": "end" }, String(warps))),
    graphic("text", { x: W - R, y: H - 4, "text-anchor": "end" }, format(last)),
    graphic("path", { d: path + `V${H - B}H${L}Z`, class: "area" }),
    graphic("path", { d: path, class: "steps" }),
    now <= last && warps !== undefined ? [
      graphic("path", { d: `M${x(now)} ${T}V${H - B}`, class: "now" }),
      graphic("circle", { cx: x(now), cy: y(warps), r: 3.5, class: "now" }),
      graphic("text", { x: clamp(x(now), L + 10, W - R - 24), y: H - 4,
        "text-anchor": "middle", class: "now" }, format(now))] : null);
}

function occupancyFacts(kernel) {
  const o = kernel.occupancy;
  if (!o) return null;
  const most = Math.max(1, ...CURVES.flatMap(([key]) => (o[key] ?? []).map((p) => p[1])),
    o.warps, o.most_warps ?? 0);
  const now = { threads: o.threads, registers: kernel.resources?.registers ?? 0,
    shared: o.shared ?? kernel.resources?.shared_static ?? 0 };
  return [
    element("dl", { class: "facts" },
      fact("occupancy", count(o.percent), "%", { class: "large",
        title: "resident warps, in percent of the most that an SM holds" }),
      fact("per SM", `${count(o.blocks)} × ${count(o.threads)}`, "threads",
        { title: "resident blocks and their threads" }),
      fact("warps", `${count(o.warps)} of ${count(most)}`, null),
      fact("limit", o.limit, null, { title: "the resource that binds first" })),
    element("div", { class: "curves" }, CURVES.map(([key, title, which]) =>
      (o[key] ?? []).length > 1
        ? curve(o[key], title, now[which], most, which === "shared" ? bytes : count)
        : null))];
}

function showCard() {
  const image = currentImage(), kernel = currentKernel();
  if (!kernel)
    return put(byId("card"), element("p", { class: "empty" },
      image ? "This image does not contain the kernel." : "There is no image."));
  put(byId("card"), resourceFacts(image, kernel), occupancyFacts(kernel));
}
