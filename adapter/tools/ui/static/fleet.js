// The map of GPUs on a canvas. For a screen reader it is a list box with one option at a time.

import { fill, h } from "./dom.js";
import { NONE, span } from "./format.js";
import { at, layout, step } from "./fleetlayout.js";
import { paint, rings, shared } from "./fleetpaint.js";
import { dark } from "./ink.js";
import { Legend } from "./legend.js";
import { thingOf } from "./names.js";
import { open } from "./route.js";
import { GPU_CLASSES, UNKNOWN } from "./states.js";

const KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);

/** The map. */
export class Fleet {
  constructor() {
    this.canvas = h("canvas", { "aria-hidden": "true" });
    // The rings of the keyboard and of the open GPU: a key draws them, and not all tiles.
    this.rings = h("canvas.rings", { "aria-hidden": "true" });
    this.option = h("div.hidden", { role: "option", id: "tile", "aria-selected": "false" }, "No GPU is chosen.");
    this.scroll = h("div.map-scroll", { tabindex: 0, role: "listbox", "aria-label": "Map of GPUs. Arrow keys move, Enter explains.", "aria-activedescendant": "tile" },
      h("div.map-view", {}, this.canvas, this.rings), this.option);
    this.tip = h("div.map-tip", { "aria-hidden": "true", hidden: true });
    this.legend = new Legend();
    this.element = h("div", {}, h("div.map", {}, this.scroll, this.tip), this.legend.element);
    /** @type {any} */ this.gpus = null;
    /** @type {any} */ this.load = null;
    /** @type {import("./fleetlayout.js").Layout|null} */ this.layout = null;
    this.kept = /** @type {number[]} */ ([]);
    this.dim = /** @type {Set<number>} */ (new Set());
    this.position = 0;
    this.opened = "";
    this.frame = 0;
    this.ringFrame = 0;
    this.width = 0;
    this.shape = "";
    this.theme = false;
    this.listen();
  }

  listen() {
    const scroll = this.scroll;
    new ResizeObserver(() => this.resize()).observe(this.element);
    scroll.addEventListener("scroll", () => this.draw(), { passive: true });
    scroll.addEventListener("focus", () => this.move(this.position));
    scroll.addEventListener("blur", () => this.leave());
    scroll.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.press(event));
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (/** @type {PointerEvent} */ event) => {
      const tile = this.under(event);
      if (!tile || !this.layout) return;
      this.position = this.layout.order.indexOf(tile);
      this.explain(tile.index);
    });
  }

  /** @param {any} gpus @param {any} load @param {{kept: number[], dim: Set<number>}} narrowed */
  show(gpus, load, narrowed) {
    const shape = JSON.stringify([gpus.revision, narrowed.kept.length, narrowed.kept.reduce((sum, index, i) => sum + index * (i + 1), 0)]);
    const theme = dark();
    const same = this.gpus === gpus && this.load === load && this.shape === shape && this.theme === theme && !this.dim.size && !narrowed.dim.size;
    this.dim = narrowed.dim;
    this.load = load;
    this.theme = theme;
    if (same) {
      this.legend.show(this.kept, load, theme);
      return this.drawRings();
    }
    if (this.gpus !== gpus || shape !== this.shape) {
      this.gpus = gpus;
      this.kept = narrowed.kept;
      this.shape = shape;
      this.column = Object.fromEntries(gpus.columns.map((/** @type {string} */ name, /** @type {number} */ i) => [name, i]));
      this.arrange();
    }
    this.draw();
    this.legend.show(this.kept, load, this.theme);
  }

  resize() {
    const width = this.element.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.arrange();
    this.draw();
  }

  arrange() {
    if (!this.gpus || !this.width) return;
    const tiles = this.kept.map((index) => ({ index, pool: this.cell(index, "pool") ?? "", node: this.cell(index, "node") ?? "" }));
    const most = parseFloat(getComputedStyle(this.scroll).maxHeight) || 520;
    this.layout = layout(tiles, this.width, Math.min(most, this.width < 440 ? 420 : most));
    this.position = Math.min(this.position, Math.max(0, tiles.length - 1));
    this.scroll.style.height = `${Math.min(this.layout.height, most)}px`;
    this.canvas.parentElement.style.marginBottom = `${Math.max(0, this.layout.height - Math.min(this.layout.height, most))}px`;
  }

  /** @param {number} index @param {string} name @returns {any} */
  cell(index, name) {
    return this.gpus.rows[index][this.column[name]];
  }

  draw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.layout) return;
      const height = parseFloat(this.scroll.style.height);
      this.canvas.style.height = `${height}px`;
      const load = this.load ?? {};
      paint(this.canvas, this.layout, {
        util: load.util ?? [], pods: load.pods ?? [], kind: load.class ?? [], unhealthy: load.unhealthy ?? [],
        sharing: this.sharing(), dim: this.dim,
      }, { width: this.width, height, top: this.scroll.scrollTop });
    });
    this.drawRings();
  }

  drawRings() {
    this.ringFrame ||= requestAnimationFrame(() => {
      this.ringFrame = 0;
      if (!this.layout) return;
      const height = parseFloat(this.scroll.style.height);
      this.rings.style.height = `${height}px`;
      const current = this.scroll.matches(":focus-visible") ? this.layout.order[this.position] : undefined;
      const open = this.opened ? this.layout.order.find((tile) => this.cell(tile.index, "name") === this.opened) : undefined;
      rings(this.rings, this.layout.size, { current, open }, { width: this.width, height, top: this.scroll.scrollTop });
    });
  }

  sharing() {
    if (this.sharedOf !== this.gpus) {
      this.sharedOf = this.gpus;
      this.sharings = this.gpus.rows.map((/** @type {any[]} */ row) => row[this.column.sharing]);
    }
    return this.sharings;
  }

  /** @param {PointerEvent} event */
  under(event) {
    return this.layout && at(this.layout, event.offsetX, event.offsetY + this.scroll.scrollTop);
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const tile = this.under(event);
    if (!tile) return this.leave();
    this.showTip(tile);
  }

  /** @param {import("./fleetlayout.js").Tile} tile */
  showTip(tile) {
    const { name, lines } = this.words(tile.index);
    fill(this.tip, h("b", {}, h("bdi", {}, name)), lines.map((text) => h("div", {}, text)));
    this.tip.hidden = false;
    const left = Math.max(4, Math.min(tile.x, this.width - this.tip.offsetWidth - 4));
    const below = tile.y - this.scroll.scrollTop + (this.layout?.size ?? 0) + 8;
    const above = tile.y - this.scroll.scrollTop - this.tip.offsetHeight - 8;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${above > 0 ? above : below}px`;
  }

  leave() {
    this.tip.hidden = true;
    this.drawRings();
  }

  /** What a tile shows, in words. @param {number} index */
  words(index) {
    const load = this.load ?? {};
    const util = load.utilText?.[index] ?? null;
    const idle = load.idleSince?.[index];
    const { word, about } = GPU_CLASSES[load.class?.[index]] ?? UNKNOWN;
    const unreported = this.cell(index, "unreported");
    const lines = [
      util ? `${word}, ${util} utilization` : `${word}: ${unreported ? "no exporter reports it" : about}`,
      [this.cell(index, "model"), this.cell(index, "profile")].filter(Boolean).join(" "),
      `node ${this.cell(index, "node") ?? NONE}`,
      load.blocked?.[index] ? `no pod can start: ${load.blocked[index]}` : "",
      load.pods?.[index] ? `held by ${load.pods[index]}` : unreported ? "" : "held by no pod",
      shared({ sharing: this.sharing(), pods: load.pods ?? [] }, index) ? `shared${this.cell(index, "sharing") ? `: ${this.cell(index, "sharing")}` : ""}` : "",
      load.mem?.[index] ? `memory ${load.mem[index]}` : "",
      idle ? `idle for ${span(Date.now() / 1000 - idle)}` : "",
      load.unhealthy?.[index] ? `not healthy: ${load.unhealthy[index]}` : "",
    ].filter(Boolean);
    return { name: this.cell(index, "name"), lines };
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (!this.layout?.order.length || event.ctrlKey || event.altKey || event.metaKey) return;
    if (KEYS.has(event.key)) {
      event.preventDefault();
      this.move(step(this.layout, this.position, event.key));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.explain(this.layout.order[this.position].index);
    } else if (event.key === "Escape") this.leave();
  }

  /** @param {number} position */
  move(position) {
    const tile = this.layout?.order[position];
    if (!tile || !this.layout) return;
    this.position = position;
    const { name, lines } = this.words(tile.index);
    this.option.textContent = [name, ...lines].join(", ");
    this.option.setAttribute("aria-posinset", String(position + 1));
    this.option.setAttribute("aria-setsize", String(this.layout.order.length));
    const [top, height] = [this.scroll.scrollTop, this.scroll.clientHeight];
    if (tile.y < top + 30) this.scroll.scrollTop = Math.max(0, tile.y - 50);
    else if (tile.y + this.layout.size > top + height) this.scroll.scrollTop = tile.y + this.layout.size + 12 - height;
    if (this.scroll.matches(":focus-visible")) this.showTip(tile);
    this.drawRings();
  }

  /** @param {number} index */
  explain(index) {
    this.tip.hidden = true;
    const [name, node, unreported] = ["name", "node", "unreported"].map((column) => this.cell(index, column));
    open(thingOf({ name, node, unreported }));
  }
}
