// The chart of an HPA: its value against the target, and its replicas below. The line above it has the values at the
// pointer, or the newest ones.

import { fill, h, say } from "./dom.js";
import { font, ink } from "./ink.js";
import { amount, clock, count } from "./format.js";

const HEIGHTS = [130, 124];
const MINUTE = 60;
const DAY = 86_400;
/** Seconds between two marks of the time; the marks of each differ in their text. */
const STEPS = [5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY];
const MOVES = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12, Home: -Infinity, End: Infinity };

/** Two charts with one cursor. */
export class Chart {
  constructor() {
    this.plots = /** @type {any[]} */ ([]);
    this.holders = [h("div.chart"), h("div.chart")];
    this.words = h("p.hidden");
    this.at = h("p.chart-at", { "aria-hidden": "true" });
    this.name = h("span", {}, "value");
    this.note = h("p.soft", {});
    this.lines = h("div.chart-lines", { tabindex: 0, role: "slider", "aria-label": "Values over time. Arrow keys move.", "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0 },
      h("div.keys", { "aria-hidden": "true" }, this.name, h("span.goal", {}, "target")), this.holders[0],
      h("div.keys", { "aria-hidden": "true" }, h("span.size", {}, "replicas"), h("span.want", {}, "desired")), this.holders[1]);
    this.lines.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.press(event));
    this.lines.addEventListener("blur", () => this.point(null));
    this.element = h("div", {}, this.at, this.lines, this.note, this.words);
    this.shape = "";
    /** @type {import("./history.js").Series} */
    this.series = { time: [], value: [], goal: [], current: [], desired: [] };
    /** @type {any} */
    this.metric = null;
    /** Where the pointer or the keyboard is; null for the newest values. @type {number|null} */
    this.place = null;
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
    const name = metric?.name ?? "value";
    this.series = series;
    this.metric = metric;
    this.name.textContent = name;
    this.note.textContent = series.time.length ? note : `${note} Nothing has been seen in this time yet.`.trim();
    const text = (/** @type {any} */ value) => amount(value, name);
    this.words.textContent = known.length
      ? `${name} between ${text(Math.min(...known))} and ${text(Math.max(...known))}, now ${text(series.value.at(-1))} of ${text(series.goal.at(-1))}; ${series.current.at(-1) ?? "unknown"} replicas.`
      : "No value has been seen in this time.";
    this.range = span;
    const shape = [document.documentElement.dataset.theme, matchMedia("(prefers-color-scheme: dark)").matches].join();
    if (shape !== this.shape || !this.plots.length) this.build(shape);
    this.plots[0].setData([series.time, series.value, series.goal]);
    this.plots[1].setData([series.time, series.current, series.desired]);
    this.say();
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
    // One axis of time is enough for two charts that share it.
    const time = place ? { size: 24, values: marks } : { size: 6, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(() => "") };
    const name = () => (place ? "" : this.metric?.name ?? "");
    fill(this.holders[place]);
    return new /** @type {any} */ (window).uPlot({
      width: this.width(),
      height: HEIGHTS[place],
      legend: { show: false },
      cursor: { sync: { key: "hpa" }, drag: { x: false, y: false } },
      hooks: { setCursor: [(/** @type {any} */ plot) => this.point(plot.cursor.left >= 0 ? plot.cursor.idx : null)] },
      scales: {
        x: { range: () => this.range },
        y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, most > 0 ? most * 1.1 : 1] },
      },
      axes: [{ ...axis, ...time, incrs: STEPS, space: 70 }, { ...axis, size: 52, space: 24, incrs: place ? [1, 2, 5, 10, 20, 50, 100, 500] : undefined, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map((value) => amount(value, name())) }],
      series: [{}, ...series],
    }, [[], [], []], this.holders[place]);
  }

  /** @param {number|null|undefined} place */
  point(place) {
    this.place = place ?? null;
    this.say();
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const move = MOVES[event.key];
    const last = this.series.time.length - 1;
    if (move === undefined || last < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(last, (this.place ?? last) + move));
    const [plot] = this.plots;
    plot.setCursor({ left: plot.valToPos(this.series.time[place], "x"), top: 4 });
    this.point(place);
  }

  /** Say the values at the pointer, or the newest ones. */
  say() {
    const { time, value, goal, current, desired } = this.series;
    const last = time.length - 1;
    const at = this.place !== null && this.place <= last ? this.place : last;
    const name = this.metric?.name ?? "value";
    const size = current[at] ?? null;
    const wanted = desired[at] ?? null;
    const text = at < 0 ? "" : [
      clock(time[at]),
      value[at] === null || value[at] === undefined ? `no value of ${name}` : `${name} ${amount(value[at], name)} of ${amount(goal[at], name)}`,
      `${size === null ? "size not known" : count(size, "replica")}${wanted !== null && wanted !== size ? `, ${wanted} desired` : ""}`,
    ].join(" · ");
    say(this.at, text);
    this.lines.setAttribute("aria-valuemax", String(Math.max(0, last)));
    this.lines.setAttribute("aria-valuenow", String(Math.max(0, at)));
    this.lines.setAttribute("aria-valuetext", text || "nothing yet");
  }

  close() {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }
}

/** Texts of the marks of the time: with seconds where minutes would repeat, and the day at midnight. */
function marks(/** @type {any} */ _, /** @type {number[]} */ all, /** @type {number} */ __, /** @type {number} */ ___, /** @type {number} */ step) {
  return all.map((seconds) => {
    const time = new Date(seconds * 1000);
    const day = time.getHours() === 0 && time.getMinutes() === 0 && time.getSeconds() === 0;
    if (step >= DAY || (day && step >= 3600)) return time.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    return clock(seconds).slice(0, step < MINUTE ? 8 : 5);
  });
}
