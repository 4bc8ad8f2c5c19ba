// The newest version of each part that the server sent.

/**
 * @typedef {{columns: string[], rows: any[][], revision?: number}} Table
 */

/** Milliseconds for which readers are called in one frame. */
const SLICE = 8;

/** Holds the parts, and calls its readers once for all that changed. */
export class Parts {
  constructor() {
    /** @type {Object<string, any>} */
    this.now = {};
    /** @type {Object<string, any>} */
    this.waiting = {};
    this.paused = false;
    /** Number of updates that wait while the page is paused. */
    this.held = 0;
    /** @type {[string[], () => void][]} */
    this.readers = [];
    /** Readers that are called in this frame or in the next ones. @type {Set<() => void>} */
    this.due = new Set();
    /** Called alone, in a frame before the others. @type {(() => void)|null} */
    this.first = null;
    this.frame = 0;
  }

  /** Call a reader after any of the parts changed. @param {string[]} names @param {() => void} reader */
  read(names, reader) {
    this.readers.push([names, reader]);
  }

  /** Take a part from the server. @param {string} name @param {any} value */
  take(name, value) {
    if (this.paused) {
      this.waiting[name] = value;
      this.held += 1;
      this.touch("held");
      return;
    }
    this.now[name] = value;
    this.touch(name);
  }

  /** @param {boolean} paused */
  pause(paused) {
    this.paused = paused;
    if (!paused) {
      const waiting = this.waiting;
      this.waiting = {};
      this.held = 0;
      for (const [name, value] of Object.entries(waiting)) this.take(name, value);
    }
    this.touch("held");
  }

  /** Say that something changed. @param {...string} names */
  touch(...names) {
    for (const [wanted, reader] of this.readers) if (wanted.some((name) => names.includes(name))) this.due.add(reader);
    this.frame ||= requestAnimationFrame(() => this.tell());
  }

  /** Call the readers that are due. What takes long continues in the next frame, so that keys and clicks are painted between. */
  tell() {
    const until = performance.now() + SLICE;
    this.frame = 0;
    for (const reader of this.readers.map(([, one]) => one)) {
      if (!this.due.delete(reader)) continue;
      reader();
      if (reader === this.first || performance.now() >= until) break;
    }
    if (this.due.size) this.frame ||= requestAnimationFrame(() => this.tell());
    document.documentElement.dataset.due = String(this.due.size);
  }
}

/** @type {WeakMap<Table, any[]>} */
const made = new WeakMap();

/**
 * Rows of a table as objects with the columns as keys.
 * @param {Table|undefined} table @returns {any[]}
 */
export function objects(table) {
  if (!table) return [];
  let found = made.get(table);
  if (!found) {
    const { columns } = table;
    found = table.rows.map((row) => {
      /** @type {Object<string, any>} */
      const one = {};
      for (let i = 0; i < columns.length; i += 1) one[columns[i]] = row[i];
      return one;
    });
    made.set(table, found);
  }
  return found;
}

/** The cells of one column. @param {Table|undefined} table @param {string} name @returns {any[]} */
export function column(table, name) {
  const at = table ? table.columns.indexOf(name) : -1;
  return table && at >= 0 ? table.rows.map((row) => row[at]) : [];
}
