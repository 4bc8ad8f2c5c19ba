// A table that can be sorted, and that holds only the rows in sight.

import { fill, h, sign } from "./dom.js";
import { NONE, orderKey } from "./format.js";

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} label
 * @property {string} [class]
 * @property {(row: any) => any} [value] what is sorted; a column without it cannot be sorted
 * @property {boolean} [down] sorts downwards first
 * @property {(row: any) => Node|string|null} cell
 * @property {(row: any) => number} [span] columns that the cell takes; 1 without it
 */

const SPARE = 8;

/** A sortable table. Rows have one height, `--row` of its style. */
export class SortedTable {
  /**
   * @param {object} options
   * @param {string} options.label name for screen readers
   * @param {Column[]} options.columns
   * @param {(row: any) => string} options.key
   * @param {(row: any) => string} [options.address] where a row leads
   * @param {(row: any) => any} [options.version] what the row shows; a row is built again if it changed
   * @param {string} [options.sort] key of the first order; the order of the rows without it
   * @param {string} [options.class]
   * @param {(row: any) => any[]} [options.unfold] the rows below a row, which keep their place there
   * @param {(row: any) => string} [options.rowClass]
   * @param {(rows: any[]) => void} [options.onSeen] called with the rows in sight
   */
  constructor(options) {
    this.options = options;
    /** @type {any[]} */
    this.rows = [];
    /** @type {any[]} */
    this.sorted = [];
    /** The rows in sight. @type {any[]} */
    this.seen = [];
    this.sort = options.sort ?? "";
    this.down = false;
    /** @type {Map<string, {tr: HTMLElement, version: string}>} */
    this.built = new Map();
    this.selected = "";
    this.height = 0;
    /** Where the table is scrolled to. */
    this.top = 0;
    /** Height of what is in sight. */
    this.room = 0;
    this.before = pad();
    this.after = pad();
    this.heads = options.columns.map((column) => this.head(column));
    this.body = h("tbody", { role: "rowgroup" }, this.before, this.after);
    this.table = h(`table.rows${options.class ? `.${options.class}` : ""}`, { role: "table", "aria-label": options.label },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row", "aria-rowindex": 1 }, this.heads)), this.body);
    this.element = h("div.scroll", { tabindex: 0, role: "group", "aria-label": options.label }, this.table);
    let asked = 0;
    const look = () => {
      asked ||= requestAnimationFrame(() => {
        asked = 0;
        this.paint();
      });
    };
    // Both are read here, where the page is laid out: a read between changes lays it out once more.
    const measure = () => {
      [this.top, this.room] = [this.element.scrollTop, this.element.clientHeight];
      look();
    };
    this.element.addEventListener("scroll", measure, { passive: true });
    new ResizeObserver(() => {
      this.height = 0;
      measure();
    }).observe(this.element);
    this.body.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const target = /** @type {Element} */ (event.target);
      if (target.closest("a, button") || getSelection()?.toString()) return;
      /** @type {any} */ (target.closest("tr")?.querySelector("a, button.unfold"))?.click();
    });
  }

  /** @param {Column} column */
  head(column) {
    const inside = column.value
      ? h("button", { type: "button", click: () => this.order(column) }, column.label, h("span.arrow", { "aria-hidden": "true" }))
      : h("span", {}, column.label);
    return h("th", { class: column.class ?? null, scope: "col", role: "columnheader", "data-key": column.key }, inside);
  }

  /** @param {Column} column */
  order(column) {
    if (this.sort !== column.key) [this.sort, this.down] = [column.key, Boolean(column.down)];
    else if (this.down === Boolean(column.down)) this.down = !this.down;
    else this.sort = this.options.sort ?? "";
    this.show(this.rows);
  }

  /** Show these rows. @param {any[]} rows */
  show(rows) {
    this.rows = rows;
    const column = this.options.columns.find((one) => one.key === this.sort);
    const inOrder = (/** @type {any[]} */ some) => (column?.value ? inSort(some, column.value, this.down) : some);
    const { unfold } = this.options;
    this.sorted = unfold ? inOrder(rows).flatMap((row) => [row, ...inOrder(unfold(row))]) : inOrder(rows);
    this.heads.forEach((head, i) => {
      if (this.options.columns[i] === column) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.table.setAttribute("aria-rowcount", String(this.sorted.length + 1));
    this.paint();
  }

  /** Mark a row as the one that is open. @param {string} key */
  select(key) {
    this.selected = key;
    for (const [name, { tr }] of this.built) tr.classList.toggle("open", name === key);
  }

  paint() {
    this.height ||= parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 44;
    const first = Math.max(0, Math.min(Math.floor(this.top / this.height), this.sorted.length) - SPARE);
    const last = Math.min(this.sorted.length, Math.ceil((this.top + (this.room || 600)) / this.height) + SPARE);
    const seen = this.sorted.slice(first, last);
    const keys = new Set(seen.map(this.options.key));
    for (const [key, { tr }] of this.built) {
      if (keys.has(key)) continue;
      tr.remove();
      this.built.delete(key);
    }
    /** @type {Element} */
    let place = this.before;
    seen.forEach((row, i) => {
      const tr = this.row(row, first + i);
      if (place.nextElementSibling !== tr) place.after(tr);
      place = tr;
    });
    stretch(this.before, first * this.height);
    stretch(this.after, (this.sorted.length - last) * this.height);
    this.seen = seen;
    this.options.onSeen?.(seen);
  }

  /** @param {any} row @param {number} index */
  row(row, index) {
    const key = this.options.key(row);
    const version = JSON.stringify(this.options.version ? this.options.version(row) : row);
    let known = this.built.get(key);
    if (!known) {
      known = { tr: h("tr", { role: "row" }), version: "" };
      known.tr.classList.toggle("open", key === this.selected);
      this.built.set(key, known);
    }
    const { tr } = known;
    tr.setAttribute("aria-rowindex", String(index + 2));
    if (known.version !== version) {
      known.version = version;
      const focused = tr.contains(document.activeElement);
      fill(tr, this.cells(row));
      tr.className = this.options.rowClass?.(row) ?? "";
      tr.classList.toggle("open", key === this.selected);
      if (focused) tr.querySelector("a, button")?.focus();
    }
    return tr;
  }

  /** @param {any} row */
  cells(row) {
    let taken = 0;
    return this.options.columns.map((column, i) => {
      if (i < taken) return null;
      const span = column.span?.(row) ?? 1;
      taken = i + span;
      return h("td", { class: column.class ?? null, role: "cell", colspan: span > 1 ? span : null }, column.cell(row) ?? missing());
    });
  }
}

/** A value that is missing, with its reason for screen readers and as a tooltip. @param {string} [why] */
export function missing(why = "no value") {
  return h("span.missing", { title: why }, h("span", { "aria-hidden": "true" }, NONE), h("span.hidden", {}, why));
}

/** Two lines in one cell. @param {any} first @param {any} second */
export function two(first, second) {
  return h("span.two", {}, h("span", {}, first), second ? h("span", {}, second) : null);
}

/** Why a device is not healthy. @param {string} why */
export function sick(why) {
  return h("span.state.bad", { title: `not healthy: ${why}` }, sign("bad"), h("span.cut", {}, why));
}

function pad() {
  return h("tr.pad", { "aria-hidden": "true", role: "presentation" }, h("td", { role: "presentation" }));
}

function stretch(row, height) {
  row.hidden = height <= 0;
  row.firstChild.style.height = `${height}px`;
}

/** @param {any[]} rows @param {(row: any) => any} value @param {boolean} down @returns {any[]} */
function inSort(rows, value, down) {
  const turn = down ? -1 : 1;
  const keyed = rows.map((row) => {
    const key = value(row) ?? null;
    return { row, key: key === null || typeof key === "number" ? key : orderKey(String(key)) };
  });
  keyed.sort(({ key: one }, { key: other }) => {
    // What is missing comes last in both directions.
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    return one === other ? 0 : one < other ? -turn : turn;
  });
  return keyed.map(({ row }) => row);
}
