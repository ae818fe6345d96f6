/* explore_list.js -- a list that holds only the visible rows as elements.
 *
 * Problem: a kernel may have 20,000 instructions, a source 100,000 lines, and
 * a page with that many elements is slow.
 * Idea: all rows have the same height, so the position of a row follows from
 * its index. An empty element is as high as all rows together; rows near the
 * visible part are placed on it and removed when they leave.
 * Cost: a scroll step makes the rows that become visible, at most about 100. */

const OVERSCAN = 12; /* rows kept above and below the visible part */
const MOST_PRINTED = 4000;

class RowList {
  /* box: the scrolling element. make(index): makes the element of a row. */
  constructor(box, label) {
    this.box = box;
    this.sheet = element("div", { class: "sheet" });
    this.rows = new Map();
    this.n = 0;
    this.make = null;
    this.mark = () => {};
    this.ruler = element("canvas", { class: "ruler", "aria-hidden": "true" });
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", label);
    box.tabIndex = 0;
    box.append(this.sheet);
    box.parentElement.append(this.ruler);
    box.addEventListener("scroll", () => this.render(), { passive: true });
    new ResizeObserver(() => { this.render(); this.drawRuler(); }).observe(box);
    this.ruler.addEventListener("click", (event) => {
      const share = event.offsetY / Math.max(1, this.ruler.clientHeight);
      this.show(Math.floor(share * this.n), "centre");
    });
  }

  height() {
    this.rowHeight ??= parseFloat(
      getComputedStyle(document.documentElement).getPropertyValue("--row"));
    return this.rowHeight;
  }

  /* Sets the contents. columns: characters of the widest row. */
  set(n, columns, make) {
    this.n = n;
    this.make = make;
    this.sheet.style.height = `${n * this.height()}px`;
    this.sheet.style.minWidth = `calc(${Math.min(columns, MOST_SHOWN)}ch + var(--gutter))`;
    this.refresh();
  }

  /* Makes all visible rows again. */
  refresh() {
    for (const node of this.rows.values()) node.remove();
    this.rows.clear();
    this.render();
  }

  range() {
    const h = this.height();
    if (this.printing) return [0, Math.min(this.n, MOST_PRINTED)];
    const first = Math.floor(this.box.scrollTop / h) - OVERSCAN;
    const last = Math.ceil((this.box.scrollTop + this.box.clientHeight) / h);
    return [Math.max(0, first), Math.min(this.n, last + OVERSCAN)];
  }

  render() {
    if (!this.make) return;
    const [first, last] = this.range();
    const fresh = [];
    for (const [i, node] of this.rows) {
      if (i >= first && i < last) continue;
      node.remove();
      this.rows.delete(i);
    }
    for (let i = first; i < last; i++) {
      if (this.rows.has(i)) continue;
      const node = this.make(i);
      node.classList.add("row");
      node.dataset.i = i;
      node.setAttribute("role", "option");
      node.setAttribute("aria-posinset", i + 1);
      node.setAttribute("aria-setsize", this.n);
      node.style.top = `${i * this.height()}px`;
      this.rows.set(i, node);
      fresh.push(node);
      this.mark(node, i);
    }
    this.sheet.append(...fresh);
  }

  /* Applies mark() to the rows again, after the highlight has changed. */
  remark() {
    for (const [i, node] of this.rows) this.mark(node, i);
    this.drawRuler();
  }

  /* Scrolls to a row. how: "near" moves only if the row is not visible. */
  show(i, how = "near") {
    if (i < 0 || i >= this.n) return;
    const h = this.height();
    const top = i * h, view = this.box.clientHeight;
    const visible = top >= this.box.scrollTop + h &&
      top + 2 * h <= this.box.scrollTop + view;
    if (how === "near" && visible) return;
    this.box.scrollTop = top - view * 0.35;
    this.render();
  }

  rowOf(event) {
    const row = event.target.closest?.(".row");
    return row && this.box.contains(row) ? Number(row.dataset.i) : -1;
  }

  /* Draws where the highlighted rows are, beside the scroll bar. */
  drawRuler(groups = this.groups) {
    this.groups = groups;
    const height = this.ruler.clientHeight, width = this.ruler.clientWidth;
    this.ruler.width = width;
    this.ruler.height = height;
    const pen = this.ruler.getContext("2d");
    if (!pen || this.n === 0 || !groups) return;
    const style = getComputedStyle(document.documentElement);
    if (this.n * this.height() <= this.box.clientHeight) return; /* all is visible */
    const scale = height / this.n;
    for (const { rows, colour } of groups) {
      pen.fillStyle = style.getPropertyValue(colour);
      for (const row of rows)
        pen.fillRect(1, Math.floor(row * scale), width - 2, Math.max(2, Math.ceil(scale)));
    }
  }
}
