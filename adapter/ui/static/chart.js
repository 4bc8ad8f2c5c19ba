// The chart of an HPA: its value against the target, and its replicas below.

import { fill, h } from "./dom.js";
import { font, ink } from "./ink.js";
import { number } from "./format.js";

const HEIGHTS = [150, 110];

/** Two charts with one cursor. */
export class Chart {
  constructor() {
    this.plots = /** @type {any[]} */ ([]);
    this.holders = [h("div.chart"), h("div.chart")];
    this.words = h("p.hidden");
    this.name = h("span", {}, "value");
    this.note = h("p.soft", {});
    this.element = h("div", {}, h("div.keys", { "aria-hidden": "true" }, this.name, h("span.goal", {}, "target")), this.holders[0],
      h("div.keys", { "aria-hidden": "true" }, h("span.size", {}, "replicas"), h("span.want", {}, "desired")), this.holders[1], this.note, this.words);
    this.shape = "";
    /** @type {[number, number]} */
    this.range = [0, 1];
    new ResizeObserver(() => this.plots.forEach((plot, i) => plot.setSize({ width: this.width(), height: HEIGHTS[i] }))).observe(this.element);
  }

  width() {
    return Math.max(200, this.element.clientWidth);
  }

  /** @param {import("./history.js").Series} series @param {any} metric @param {[number, number]} span @param {string} note */
  show(series, metric, span, note) {
    const known = series.value.filter((value) => value !== null && value !== undefined);
    this.name.textContent = metric?.name ?? "value";
    this.note.textContent = series.time.length ? note : `${note} Nothing has been seen in this time yet.`.trim();
    this.words.textContent = known.length
      ? `${metric?.name ?? "value"} between ${number(Math.min(...known))} and ${number(Math.max(...known))}, now ${number(series.value.at(-1))} of ${number(series.goal.at(-1))}; ${series.current.at(-1) ?? "unknown"} replicas.`
      : "No value has been seen in this time.";
    this.range = span;
    const shape = [document.documentElement.dataset.theme, matchMedia("(prefers-color-scheme: dark)").matches].join();
    if (shape !== this.shape || !this.plots.length) this.build(shape);
    this.plots[0].setData([series.time, series.value, series.goal]);
    this.plots[1].setData([series.time, series.current, series.desired]);
  }

  build(shape) {
    this.shape = shape;
    this.close();
    const line = { points: { show: false }, spanGaps: false };
    const stepped = { ...line, paths: /** @type {any} */ (window).uPlot.paths.stepped({ align: 1 }) };
    this.plots = [
      this.plot(0, [{ ...line, stroke: ink("--accent"), width: 2 }, { ...line, stroke: ink("--warning"), width: 1.5, dash: [6, 4] }]),
      this.plot(1, [{ ...stepped, stroke: ink("--ink"), width: 2 }, { ...stepped, stroke: ink("--soft"), width: 1.5, dash: [2, 3] }]),
    ];
  }

  plot(place, series) {
    const axis = { stroke: ink("--soft"), font: `11px ${font()}`, grid: { stroke: ink("--edge"), width: 1 }, ticks: { show: false } };
    fill(this.holders[place]);
    return new /** @type {any} */ (window).uPlot({
      width: this.width(),
      height: HEIGHTS[place],
      legend: { show: false },
      cursor: { sync: { key: "hpa" }, drag: { x: false, y: false } },
      scales: {
        x: { range: () => this.range },
        y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, most > 0 ? most * 1.1 : 1] },
      },
      axes: [{ ...axis, values: "{HH}:{mm}", size: 24, space: 70 }, { ...axis, size: 44, space: 24, incrs: place ? [1, 2, 5, 10, 20, 50, 100, 500] : undefined, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(number) }],
      series: [{}, ...series],
    }, [[], [], []], this.holders[place]);
  }

  close() {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }
}
