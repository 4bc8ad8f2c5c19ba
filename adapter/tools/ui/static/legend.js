// The legend of the map: what a tile means, and how many GPUs are in each class. A class is a button that shows only
// its GPUs.

import { fill, h } from "./dom.js";
import { paint } from "./fleetpaint.js";
import { dark, fit, ramp } from "./ink.js";
import { choose, route } from "./route.js";
import { GPU_CLASSES } from "./states.js";

/** Utilization of the sample of a class. */
const UTILIZATION = { busy: 60, idle: 0, unheld: 60 };
const SCALE = [120, 12];

/** The legend. */
export class Legend {
  constructor() {
    this.element = h("div.legend");
    this.version = "";
  }

  /** @param {number[]} kept the GPUs that the filters let through @param {any} load @param {boolean} theme whether it is dark */
  show(kept, load, theme) {
    const counted = new Map(Object.keys(GPU_CLASSES).map((key) => [key, 0]));
    for (const index of kept) {
      const key = load?.class?.[index] ?? "unmeasured";
      counted.set(key, (counted.get(key) ?? 0) + 1);
    }
    const { use } = route().filters;
    const version = JSON.stringify([theme, use, [...counted]]);
    if (version === this.version) return;
    this.version = version;
    const focused = this.element.contains(document.activeElement) && /** @type {HTMLElement} */ (document.activeElement).dataset.use;
    const classes = Object.entries(GPU_CLASSES).reverse().map(([key, { word, about }]) => h("li", {},
      h("button", { type: "button", title: `${about}. Click to show only these.`, "aria-pressed": String(use === key), "data-use": key, click: () => choose("use", use === key ? "" : key) },
        sample(UTILIZATION[key], { kind: [key] }), h("b", {}, (counted.get(key) ?? 0).toLocaleString("en-US")), ` ${word}`)));
    const marks = [["shared by pods", { pods: ["a/b +1"] }], ["not healthy", { unhealthy: ["why"] }]].map(([label, look]) => h("li", {}, sample(60, look), label));
    fill(this.element, h("ul", { "aria-label": "GPUs by use" }, classes), h("ul", { "aria-label": "Signs of the map" }, h("li", {}, "0 %", scale(), "100 % utilization"), marks));
    if (focused) this.element.querySelector(`[data-use="${focused}"]`)?.focus();
  }
}

/** The colours from 0 to 100 %. */
function scale() {
  const bar = h("canvas", { "aria-hidden": "true" });
  [bar.style.width, bar.style.height] = SCALE.map((size) => `${size}px`);
  const pen = fit(bar, SCALE[0], SCALE[1]);
  ramp(dark()).forEach(({ fill: colour }, i, all) => {
    pen.fillStyle = colour;
    pen.fillRect((i * SCALE[0]) / all.length, 0, SCALE[0] / all.length + 1, SCALE[1]);
  });
  return bar;
}

/** One tile. @param {number|undefined} utilization @param {any} look */
function sample(utilization, look) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  canvas.style.width = canvas.style.height = "20px";
  const tile = { index: 0, x: 2, y: 2 };
  const block = { name: "", x: 0, y: 0, width: 20, tiles: [tile] };
  const shape = { size: 16, gap: 0, height: 20, labels: false, order: [tile], bands: [{ name: " ", x: 0, y: -40, width: 20, height: 80, count: 1, blocks: [block] }] };
  paint(canvas, shape, { util: [utilization ?? null], pods: [], kind: ["busy"], unhealthy: [], sharing: [], dim: new Set(), ...look }, { width: 20, height: 20, top: 0 });
  return canvas;
}
