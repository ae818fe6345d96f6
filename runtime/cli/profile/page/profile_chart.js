/* profile_chart.js -- draws the visible part of the timeline on a canvas.
 *
 * Problem: a row may have a million spans, and a frame has some milliseconds.
 *
 * Idea: spans that are wider than a pixel are drawn one by one. Where spans are
 * narrower, one bar stands for all that begin in the same pixel, and is as high
 * as the pixel is busy. The next pixel's first span is found by binary search.
 *
 * Cost: O(width * log n) per lane, for any number of spans. */
"use strict";

const LABELS = 220, GAP = 8, GROUP = 20, AXIS = 22;
let LANE = 18; // higher if there are few
/* Spans of at least this many pixels are drawn one by one. */
const WIDE = 1.5;
const HUES = { 1: 145, 2: 175, 3: 300, 4: 215, 5: 45, 6: 0, 7: 260 };

/* What is visible and selected. Times are nanoseconds. */
const view = { from: 0, to: 1, top: 0, row: null, span: -1, mark: null,
  wanted: null, dark: false };
let profile = null;
const colours = new Map();

function hueOf(name, kind) {
  return kind === KERNEL ? (name * 137.5 + 200) % 360 : HUES[kind];
}

/* Returns the colour of a text on a span. In the dark theme, yellow, green and
 * cyan are too light for a light text. */
function textColour(draw, name, kind) {
  const hue = hueOf(name, kind);
  return view.dark && hue > 20 && hue < 200 ? draw.back : draw.text;
}

/* Returns the colour of a span. Kernels differ by name, other kinds by kind. */
function colour(name, kind, faint = false) {
  const key = (kind === KERNEL ? name + KINDS.length : kind) * 4 +
    (faint ? 1 : 0) + (view.dark ? 2 : 0);
  let text = colours.get(key);
  if (text === undefined) {
    const hue = hueOf(name, kind);
    const light = view.dark ? (faint ? 22 : 46) : (faint ? 90 : 68);
    text = `hsl(${hue} ${faint ? 12 : kind === KERNEL ? 62 : 45}% ${light}%)`;
    colours.set(key, text);
  }
  return text;
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

/* Makes the canvas as large as its element, in device pixels. */
function fitCanvas(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) ||
      canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/* Places the rows below each other, with a title above each group. */
function placeRows() {
  const lanes = profile.rows.reduce((n, row) => n + row.lanes.length, 0);
  const space = byId("chart").clientHeight - AXIS - profile.rows.length * (GAP + GROUP);
  let y = AXIS, group = null;
  LANE = clamp(Math.floor(space / Math.max(lanes, 1)), 18, 28);
  for (const row of profile.rows) {
    row.head = row.about.group !== group;
    group = row.about.group;
    y += row.head ? GROUP : 0;
    row.y = y;
    row.height = row.lanes.length * LANE;
    y += row.height + GAP;
  }
  profile.height = y;
}

function chartWidth() {
  return Math.max(byId("chart").clientWidth - LABELS, 50);
}

function xOf(time) {
  return LABELS + (time - view.from) / (view.to - view.from) * chartWidth();
}

function timeOf(x) {
  return view.from + (x - LABELS) / chartWidth() * (view.to - view.from);
}

/* Returns a step of 1, 2 or 5 times a power of ten, for about n lines. */
function tickStep(length, n) {
  const rough = length / n, power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

/* Formats the time of a line in the unit that fits the distance of lines. */
function tickText(time, step) {
  const [unit, size] = step < 1e3 ? ["ns", 1] : step < 1e6 ? ["µs", 1e3]
    : step < 1e9 ? ["ms", 1e6] : ["s", 1e9];
  return `${count(Math.round(time / size) + 0)} ${unit}`;
}

function drawAxis(draw, height) {
  const { context } = draw;
  const step = tickStep(view.to - view.from, chartWidth() / 110);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
    const x = Math.round(xOf(k * step)) + 0.5;
    context.fillStyle = draw.line;
    context.fillRect(x, 0, 1, height);
    context.fillStyle = draw.muted;
    const text = tickText(k * step, step);
    if (x + 4 + context.measureText(text).width <= LABELS + chartWidth())
      context.fillText(text, x + 4, AXIS / 2);
  }
}

function drawText(context, text, x, y, width) {
  const most = Math.floor((width - 6) / 6.2);
  if (most < 3) return;
  const shown = visible(text.length > most ? text.slice(0, most - 1) + "…" : text);
  context.fillText(shown, x + 3, y, width - 4);
}

/* Draws one span that is wider than a pixel. */
function drawWide(draw, row, i, x, right, y) {
  const { context } = draw;
  const spans = row.spans, name = spans.name[i];
  const left = Math.max(x, LABELS), width = Math.max(right - left, 1);
  const faint = view.wanted !== null && !view.wanted[name];
  context.fillStyle = colour(name, spans.kind[i], faint);
  context.fillRect(left, y + 1, Math.max(width - 0.5, 1), LANE - 2);
  if (row === view.row && i === view.span) {
    context.strokeStyle = draw.accent;
    context.lineWidth = 2;
    context.strokeRect(left, y + 1, width - 0.5, LANE - 2);
  }
  if (width > 26) {
    context.fillStyle = faint ? draw.muted : textColour(draw, name, spans.kind[i]);
    drawText(context, profile.names[name], left, y + LANE / 2 + 0.5, width);
  }
}

/* Draws the narrow spans that begin in the pixel of span `i`, which is narrow.
 * Spans of a lane do not overlap, so only the last one of the pixel can be wide.
 * @return the first span that is still to be drawn */
function drawNarrow(draw, row, lane, i, perPixel, y) {
  const { context } = draw;
  const pixel = Math.floor(xOf(lane.begin[i]));
  let next = Math.max(i + 1, firstAbove(lane.begin, timeOf(pixel + 1), i, lane.n));
  if (next > i + 1 && lane.end[next - 1] - lane.begin[next - 1] >= WIDE * perPixel) next--;
  const busy = Math.min(1, (lane.sum[next] - lane.sum[i]) / perPixel);
  const height = Math.max(3, (LANE - 2) * busy);
  let k = lane.index[i];
  if (view.wanted !== null) {
    /* A match must not disappear among others. */
    for (let j = i; j < next && j < i + 256; j++) {
      if (view.wanted[row.spans.name[lane.index[j]]]) { k = lane.index[j]; break; }
    }
  }
  const faint = view.wanted !== null && !view.wanted[row.spans.name[k]];
  context.fillStyle = colour(row.spans.name[k], row.spans.kind[k], faint);
  context.fillRect(Math.max(pixel, LABELS), y + LANE - 1 - height, 1, height);
  return next;
}

function drawLane(draw, row, lane, y) {
  const perPixel = (view.to - view.from) / chartWidth();
  let i = firstAbove(lane.end, view.from, 0, lane.n);
  while (i < lane.n && lane.begin[i] < view.to) {
    const k = lane.index[i];
    const x = xOf(lane.begin[i]), right = xOf(row.spans.end[k]);
    if (right - x >= WIDE) {
      drawWide(draw, row, k, x, Math.min(right, LABELS + chartWidth()), y);
      i++;
    } else {
      i = drawNarrow(draw, row, lane, i, perPixel, y);
    }
  }
}

function drawLabels(draw, row, y) {
  const { context } = draw;
  context.fillStyle = draw.panel;
  context.fillRect(0, y - (row.head ? GROUP : 0), LABELS,
    row.height + (row.head ? GROUP : 0) + GAP);
  if (row.head) {
    context.fillStyle = draw.text;
    context.font = "600 11px system-ui, sans-serif";
    drawText(context, row.about.group, 8, y - GROUP / 2, LABELS - 10);
  }
  context.fillStyle = draw.muted;
  context.font = "11px system-ui, sans-serif";
  drawText(context, row.about.title, 14, y + LANE / 2, LABELS - 18);
}

/* Draws a line from the selected call to its work, or from work to its call. */
function drawLinks(draw) {
  const { context } = draw;
  if (view.row === null || !view.links) return;
  context.strokeStyle = draw.accent;
  context.lineWidth = 1.2;
  for (const [row, i] of view.links) {
    context.beginPath();
    context.moveTo(xOf(view.row.spans.begin[view.span]), view.row.y - view.top + LANE / 2);
    context.lineTo(xOf(row.spans.begin[i]), row.y - view.top + LANE / 2);
    context.stroke();
  }
}

function drawMark(draw, height) {
  if (view.mark === null) return;
  const from = xOf(Math.min(...view.mark)), to = xOf(Math.max(...view.mark));
  draw.context.fillStyle = draw.accent;
  draw.context.globalAlpha = 0.15;
  draw.context.fillRect(from, 0, to - from, height);
  draw.context.globalAlpha = 1;
}

function drawChart() {
  const { context, width, height } = fitCanvas(byId("chart"));
  const draw = { context, text: cssColour("--text"), muted: cssColour("--muted"),
    line: cssColour("--line"), panel: cssColour("--panel"),
    back: cssColour("--back"), accent: cssColour("--accent") };
  drawAxis(draw, height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, width, height - AXIS);
  context.clip();
  for (const row of profile.rows) {
    const y = row.y - view.top;
    if (y + row.height < 0 || y - GROUP > height) continue;
    context.font = "11px system-ui, sans-serif";
    row.lanes.forEach((lane, k) => {
      if (y + k * LANE < height) drawLane(draw, row, lane, y + k * LANE);
    });
  }
  drawLinks(draw);
  for (const row of profile.rows) drawLabels(draw, row, row.y - view.top);
  context.restore();
  drawMark(draw, height);
}

/* Returns how busy the rows are at most within a pixel of the strip. */
function busiest(rows, from, perPixel) {
  let busy = 0;
  for (const { lanes: [lane] } of rows) {
    const i = firstAbove(lane.end, from, 0, lane.n);
    if (i === lane.n || lane.begin[i] > from + perPixel) continue;
    const next = firstAbove(lane.begin, from + perPixel, i, lane.n);
    const long = lane.end[i] > from + perPixel;
    busy = Math.max(busy, long ? 1 : (lane.sum[next] - lane.sum[i]) / perPixel);
  }
  return Math.min(busy, 1);
}

/* The strip without the frame, drawn once per width and theme. */
const strip = { key: "", canvas: document.createElement("canvas") };

function drawStrip(width, height) {
  const ratio = window.devicePixelRatio || 1;
  const key = `${width} ${height} ${ratio} ${view.dark}`;
  if (strip.key === key) return;
  strip.key = key;
  strip.canvas.width = width * ratio;
  strip.canvas.height = height * ratio;
  const context = strip.canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const host of [true, false]) {
    const rows = profile.rows.filter((row) => row.about.host === host);
    const base = host ? height : height / 2;
    context.fillStyle = colour(0, host ? 4 : 1);
    for (let x = 0; x < width; x++) {
      const busy = busiest(rows, x * profile.length / width, profile.length / width);
      const size = busy > 0 ? Math.max(1, busy * (height / 2 - 3)) : 0;
      context.fillRect(x, base - size, 1, size);
    }
  }
}

/* Draws the whole profile in a strip: how busy devices and host are per pixel,
 * and which part is visible. */
function drawOverview() {
  const { context, width, height } = fitCanvas(byId("overview"));
  drawStrip(width, height);
  context.drawImage(strip.canvas, 0, 0, width, height);
  const from = view.from / profile.length * width;
  const to = Math.max(view.to / profile.length * width, from + 2);
  context.strokeStyle = cssColour("--accent");
  context.lineWidth = 2;
  context.strokeRect(from + 1, 1, Math.max(to - from - 2, 1), height - 2);
}
