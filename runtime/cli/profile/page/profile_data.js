/* profile_data.js -- decodes the spans and puts them into lanes.
 *
 * A row is a stream or a host thread. Spans of a row may overlap or nest, so each
 * row has lanes, in which spans do not overlap. A lane keeps its spans in typed
 * arrays, sorted by begin, and the sums of the lengths before each span. With the
 * sums, the busy part of any interval is found without visiting its spans. */
"use strict";

const KINDS = ["kernel", "copy", "fill", "host function", "call", "wait",
  "overhead", "span"];
const KERNEL = 0, COPY = 1, FILL = 2;
const MOST_LANES = 12;

/* Reads numbers of seven bits per byte. They stay exact up to 2^53. */
class Reader {
  constructor(base64) {
    const text = atob(base64);
    this.bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    this.at = 0;
  }
  number() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte >= 0x80);
    return value;
  }
  signed() {
    const value = this.number();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

/* Decodes the spans of a row into arrays. */
function decodeRow(row) {
  const { n } = row;
  const reader = new Reader(row.data);
  const spans = {
    begin: new Float64Array(n), end: new Float64Array(n),
    name: new Uint32Array(n), kind: new Uint8Array(n),
    detail: new Uint32Array(n), correlation: new Uint32Array(n),
    bytes: new Float64Array(n),
  };
  let begin = 0, correlation = 0;
  for (let i = 0; i < n; i++) {
    begin += reader.number();
    spans.begin[i] = begin;
    spans.end[i] = begin + reader.number();
    const code = reader.number();
    spans.name[i] = Math.floor(code / KINDS.length);
    spans.kind[i] = code % KINDS.length;
    spans.detail[i] = reader.number();
    correlation += reader.signed();
    spans.correlation[i] = correlation;
    if (spans.kind[i] === COPY || spans.kind[i] === FILL)
      spans.bytes[i] = reader.number();
  }
  row.data = "";
  return spans;
}

/* Chooses a lane for each span: the first whose last span has ended. Nested spans
 * so get deeper lanes. @return lanes as arrays of indices into the spans */
function chooseLanes(spans, n) {
  const ends = [], members = [];
  for (let i = 0; i < n; i++) {
    let lane = 0;
    while (lane < ends.length && ends[lane] > spans.begin[i]) lane++;
    if (lane === MOST_LANES) lane--;
    if (lane === ends.length) members.push([]);
    ends[lane] = Math.max(ends[lane] ?? 0, spans.end[i]);
    members[lane].push(i);
  }
  return members.map((list) => Uint32Array.from(list));
}

function makeLane(spans, index) {
  const n = index.length;
  const lane = { index, n, begin: new Float64Array(n), end: new Float64Array(n),
    sum: new Float64Array(n + 1) };
  let end = 0;
  for (let i = 0; i < n; i++) {
    lane.begin[i] = spans.begin[index[i]];
    end = lane.end[i] = Math.max(end, spans.end[index[i]]);
    lane.sum[i + 1] = lane.sum[i] + spans.end[index[i]] - spans.begin[index[i]];
  }
  return lane;
}

/* Returns the first index in [from, n) whose value is greater than `value`, or n
 * if there is none. The values ascend. */
function firstAbove(values, value, from, n) {
  let low = from, high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/* Reads the document of the page. */
function readProfile() {
  const profile = JSON.parse(byId("data").textContent);
  byId("data").textContent = "";
  profile.total = 0;
  for (const row of profile.rows) {
    row.spans = decodeRow(row);
    row.lanes = chooseLanes(row.spans, row.n)
      .map((index) => makeLane(row.spans, index));
    profile.total += row.about.spans;
  }
  profile.rows = profile.rows.filter((row) => row.n > 0);
  profile.length = Math.max(profile.length, 1);
  return profile;
}

/* Formats a time in nanoseconds. */
function duration(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${count(Math.round(ns))} ns`;
  if (size < 1e6) return `${(ns / 1e3).toFixed(2)} µs`;
  if (size < 1e9) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e9).toFixed(3)} s`;
}
