/* explore_graph.js -- the control-flow graph of a kernel, drawn as SVG.
 *
 * Problem: place the basic blocks so that control flows downwards.
 * Idea: the layered method of Sugiyama, Tagawa and Toda (1981), in its plainest
 * form. A block's layer is the longest path to it without back edges (edges to
 * a block that stands before). Inside a layer, blocks are ordered by the mean
 * position of their predecessors, a few sweeps down and up. Back edges run
 * beside the blocks.
 * Invariant: the blocks of the document are in the order of their addresses,
 * and entry is block 0.
 * Cost: edges times sweeps. */

const BLOCK_W = 128, BLOCK_H = 30, GAP_X = 22, GAP_Y = 30, SWEEPS = 6;

function layersOf(blocks) {
  const layer = new Array(blocks.length).fill(0);
  blocks.forEach(([, , successors], b) => {
    for (const s of successors)
      if (s > b) layer[s] = Math.max(layer[s], layer[b] + 1);
  });
  const layers = [];
  layer.forEach((l, b) => (layers[l] ??= []).push(b));
  return layers.filter(Boolean);
}

function orderLayers(layers, blocks) {
  const from = blocks.map(() => []), to = blocks.map(() => []);
  blocks.forEach(([, , successors], b) => {
    for (const s of successors) if (s > b) { from[s].push(b); to[b].push(s); }
  });
  const position = [];
  const settle = (layer) => layer.forEach((b, i) => {
    position[b] = i - (layer.length - 1) / 2;
  });
  const mean = (list, b) => list.length === 0 ? position[b]
    : list.reduce((sum, other) => sum + position[other], 0) / list.length;
  layers.forEach(settle);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 === 0 ? from : to;
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const key = new Map(layer.map((b) => [b, mean(near[b], b)]));
      layer.sort((a, b) => key.get(a) - key.get(b) || a - b);
      settle(layer);
    }
  }
  return position;
}

/* Whether nothing but the block itself leads to it, such as the endless branch
 * after the code. */
function isUnreachable(blocks, b) {
  return b > 0 && !blocks.some(([, , successors], other) =>
    other !== b && successors.includes(b));
}

function placeBlocks(blocks) {
  const layers = layersOf(blocks).map((layer) =>
    layer.filter((b) => !isUnreachable(blocks, b))).filter((layer) => layer.length > 0);
  const position = orderLayers(layers, blocks);
  const widest = Math.max(...layers.map((layer) => layer.length));
  const margin = 40;
  const centre = margin + widest * (BLOCK_W + GAP_X) / 2;
  const at = [];
  layers.forEach((layer, l) => layer.forEach((b) => {
    at[b] = { x: centre + position[b] * (BLOCK_W + GAP_X) - BLOCK_W / 2,
      y: 8 + l * (BLOCK_H + GAP_Y), layer: l };
  }));
  return { at, width: 2 * centre, height: 16 + layers.length * (BLOCK_H + GAP_Y) };
}

function edgePath(a, b, back, lane) {
  const x0 = a.x + BLOCK_W / 2, y0 = a.y + BLOCK_H;
  const x1 = b.x + BLOCK_W / 2, y1 = b.y;
  if (!back && b.layer - a.layer === 1) {
    const middle = (y0 + y1) / 2;
    return `M${x0} ${y0}C${x0} ${middle} ${x1} ${middle} ${x1} ${y1 - 4}`;
  }
  /* A back edge passes right of the blocks, a long edge left of them. */
  if (back) {
    const side = Math.max(a.x, b.x) + BLOCK_W + 8 + lane * 5;
    return `M${x0 + 20} ${y0}C${x0 + 20} ${y0 + 16} ${side} ${y0 + 16} ` +
      `${side} ${y0 - 8}V${y1 + 6}` +
      `C${side} ${y1 - 18} ${x1 + 20} ${y1 - 18} ${x1 + 20} ${y1 - 4}`;
  }
  const side = Math.min(a.x, b.x) - 8 - lane * 5;
  return `M${x0 - 20} ${y0}C${x0 - 20} ${y0 + 14} ${side} ${y0 + 2} ` +
    `${side} ${y0 + 18}V${y1 - 18}` +
    `C${side} ${y1 - 4} ${x1 - 20} ${y1 - 20} ${x1 - 20} ${y1 - 4}`;
}

function edges(blocks, at) {
  const lanes = new Map();
  const nodes = [];
  blocks.forEach(([, , successors], b) => successors.forEach((s) => {
    if (!at[s] || !at[b]) return;
    const back = s <= b;
    const long = back || at[s].layer - at[b].layer > 1;
    const key = `${back}`;
    const lane = long ? (lanes.get(key) ?? 0) % 6 : 0;
    if (long) lanes.set(key, lane + 1);
    nodes.push(graphic("path", { d: edgePath(at[b], at[s], back, lane),
      class: back ? "edge back" : "edge", "marker-end": "url(#arrow)" }));
  }));
  return nodes;
}

function blockNode(kernel, b, { x, y }) {
  const [first, n] = kernel.blocks[b];
  const sass = kernel.sass;
  const inLoop = loopsByRow(kernel).get(first)?.length ?? 0;
  return graphic("g", { class: `block l${Math.min(inLoop, 4)}`, tabindex: 0, role: "button",
    "data-first": first, "aria-label": `block ${b}, ${plural(n, "instruction")}`,
    onclick: () => jump(first),
    onkeydown: (event) => { if (event.key === "Enter") jump(first); } },
    graphic("rect", { x, y, width: BLOCK_W, height: BLOCK_H, rx: 3 }),
    graphic("text", { x: x + 7, y: y + 12, class: "name" },
      `${hex(sass.addr0 + first * sass.step)}`),
    graphic("text", { x: x + BLOCK_W - 7, y: y + 12, "text-anchor": "end" },
      plural(n, "instr").replace("instrs", "instr")),
    graphic("text", { x: x + 7, y: y + 24, class: "op" },
      cut(opcodeOf(sass.text[first + n - 1] ?? ""), 18)));
}

/* Returns the graph, or a text if there is none. */
function graph(kernel) {
  if (!kernel?.blocks?.length)
    return element("p", { class: "empty" },
      "There is no machine code to draw: see the note above the SASS column.");
  const { at, width, height } = placeBlocks(kernel.blocks);
  return graphic("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height,
    role: "group", "aria-label": "control-flow graph" },
    graphic("defs", {}, graphic("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 5, refY: 4,
      markerWidth: 7, markerHeight: 7, orient: "auto" },
      graphic("path", { d: "M0 0L8 4L0 8Z" }))),
    edges(kernel.blocks, at),
    kernel.blocks.map((_, b) => at[b] ? blockNode(kernel, b, at[b]) : null));
}
