/* explore_gutter.js -- the columns left of a SASS instruction: loops, address,
 * live registers, and the fields of the control word.
 *
 * The scheduler of the GPU obeys what the assembler wrote into each
 * instruction: how many cycles to stall, which of six barriers it sets when its
 * result is written or its operands are read, and which barriers it waits
 * for. */

const DEEPEST_LOOP = 5;
const BARRIERS = 6;

/* Heads of the columns, with their explanation. The widths are in CSS. */
const GUTTER_HEADS = [
  ["loops", "", "loops: one line per nesting depth"],
  ["address", "addr", "address in the kernel, hexadecimal"],
  ["live", "live R", "general registers that are live at this instruction"],
  ["few", "P", "live predicate registers"],
  ["few", "U", "live uniform registers"],
  ["few", "st", "stall: cycles before the next instruction may issue"],
  ["mark", "y", "yield: the scheduler may switch to another warp"],
  ["mark", "W", "barrier that this instruction sets until its result is written"],
  ["mark", "R", "barrier that this instruction sets until its operands are read"],
  ["waits", "wait", "barriers that this instruction waits for"],
  ["reuse", "reuse", "operands that stay in the register cache for the next instruction"],
];

function loopMarks(kernel, row) {
  const loops = loopsByRow(kernel).get(row) ?? [];
  const marks = [];
  for (let depth = 0; depth < DEEPEST_LOOP; depth++) {
    const loop = loops[depth];
    const edge = !loop ? "" : loop.first === row ? " first"
      : loop.last === row ? " last" : "";
    marks.push(span(loop ? `loop d${depth}${edge}` : "loop none"));
  }
  return span("loops", marks);
}

function barrier(index) {
  return span("mark" + (index >= 0 ? ` b${index}` : " off"),
    index >= 0 ? String(index) : "·");
}

function waits(mask) {
  if (!(mask > 0)) return span("waits off", "······");
  const marks = [];
  for (let i = 0; i < BARRIERS; i++)
    marks.push(mask >> i & 1 ? span(`b${i}`, String(i)) : span("off", "·"));
  return span("waits", marks);
}

function reuse(mask) {
  let text = "";
  for (let i = 0; i < 4; i++) text += mask >> i & 1 ? "abcd"[i] : "·";
  return span("reuse" + (mask > 0 ? "" : " off"), text);
}

function liveBar(live, most) {
  if (!live) return span("live off", "");
  const bar = element("i");
  bar.style.width = `${clamp(live[0] / Math.max(1, most) * 100, 0, 100)}%`;
  if (live[0] >= most * 0.9) bar.className = "high";
  return span("live", bar, span("number", String(live[0])));
}

function few(value) {
  return span("few" + (value > 0 ? "" : " off"), value > 0 ? String(value) : "·");
}

/* The largest number of live general registers in the kernel. */
const mostLive = once((kernel) =>
  (kernel.sass?.live ?? []).reduce((most, live) => Math.max(most, live?.[0] ?? 0), 1));

function control([stall, yields, writes, reads, mask, kept]) {
  return [few(stall),
    span("mark" + (yields ? " yield" : " off"), yields ? "y" : "·"),
    barrier(writes), barrier(reads), waits(mask), reuse(kept)];
}

/* Returns the cells of the gutter for one instruction. */
function gutter(kernel, row) {
  const sass = kernel.sass;
  const live = sass.live?.[row], ctl = sass.ctl?.[row];
  const cells = [loopMarks(kernel, row),
    span("address", hex(sass.addr0 + row * sass.step))];
  if (sass.live) cells.push(liveBar(live, mostLive(kernel)), few(live?.[1] ?? 0),
    few(live?.[2] ?? 0));
  if (sass.ctl)
    cells.push(...control(ctl ?? [0, 0, -1, -1, 0, 0]));
  return cells;
}

/* Returns the column heads that fit gutter(). */
function gutterHeads(kernel) {
  return GUTTER_HEADS.filter((_, i) => i < 2 ||
    (i < 5 ? kernel.sass.live : kernel.sass.ctl))
    .map(([kind, text, title]) => element("span", { class: kind, title }, text));
}
