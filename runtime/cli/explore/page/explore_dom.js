/* explore_dom.js -- small helpers that build the page's elements.
 *
 * Texts of the document (source, names, messages) are hostile until proven
 * otherwise. They enter the page only as text nodes and attribute values, never
 * as markup, so nothing needs to be escaped here. */
"use strict";

const SVG = "http://www.w3.org/2000/svg";

/* Texts longer than this are cut where they are shown. */
const MOST_SHOWN = 2000;

function byId(id) {
  return document.getElementById(id);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null));
  return node;
}

/* ---- Light and dark ------------------------------------------------------- */

const systemTheme = matchMedia("(prefers-color-scheme: dark)");

/* Applies "light", "dark" or "", the theme of the system. The style knows only
 * the attribute. On paper the page is always light. */
function applyTheme(theme) {
  document.documentElement.dataset.theme = theme || (systemTheme.matches ? "dark" : "light");
}

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/* ---- Elements -------------------------------------------------------------- */

/* Makes an element. Children are nodes, texts, or arrays of both. */
function element(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/* Makes an element of SVG. */
function graphic(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function span(className, ...children) {
  return element("span", { class: className }, ...children);
}

/* Replaces what an element contains. */
function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child != null));
  return node;
}

/* Characters that would be invisible, or that turn the direction of writing so
 * that a text reads as something else. */
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/* Shows control characters as symbols, and others by their number. */
function visible(text) {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code)
      : code === 0x7f ? "\u2421" : `⟨U+${hex(code).toUpperCase()}⟩`;
  });
}

/* Makes a text fit to be shown: cut if it is too long, nothing hidden. */
function cut(text, most = MOST_SHOWN) {
  return visible(text.length > most ? text.slice(0, most) + "…" : text);
}

/* 12345 becomes "12,345"; 1.25 stays as it is. */
function count(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const rounded = Number.isInteger(value) ? value : Number(value.toFixed(2));
  return rounded.toLocaleString("en-GB");
}

function bytes(value) {
  return value < 10240 ? `${count(value)} B` : `${count(value / 1024)} KiB`;
}

function hex(value, digits = 4) {
  return value.toString(16).padStart(digits, "0");
}

function plural(n, word) {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

function clamp(value, least, most) {
  return Math.min(Math.max(value, least), most);
}

/* Makes a table. A head that starts with ">" aligns its column to the right.
 * A row is an array of cells, or {cells, onclick, class}. */
function table(heads, rows, label) {
  const right = heads.map((head) => head.startsWith(">"));
  const head = heads.map((text, i) =>
    element("th", { scope: "col", class: right[i] ? "right" : null },
      text.replace(/^>/, "")));
  const body = rows.map((row) => {
    const cells = Array.isArray(row) ? row : row.cells;
    return element("tr", row.onclick
      ? { onclick: row.onclick, class: "jump " + (row.class ?? ""), tabindex: 0,
          onkeydown: (event) => { if (event.key === "Enter") row.onclick(event); } }
      : { class: row.class },
      cells.map((cell, i) =>
        element("td", { class: right[i] ? "right" : null }, cell)));
  });
  return element("table", { "aria-label": label },
    element("thead", {}, element("tr", {}, head)),
    element("tbody", {}, body));
}
