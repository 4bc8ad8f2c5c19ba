// The list of HPAs: the decision in words, the value against its target, the replicas.

import { h, sign } from "./dom.js";
import { leading, recent } from "./history.js";
import { NONE } from "./format.js";
import { link } from "./route.js";
import { spark } from "./spark.js";
import { missing, SortedTable, two } from "./table.js";

const ORDER = { bad: 0, warning: 1, good: 2, off: 3 };
export const LEVELS = { good: "good", warning: "warning", bad: "problem", off: "off" };

/** @param {any} hpa @returns {string} */
export const keyOf = (hpa) => `${hpa.namespace}/${hpa.name}`;

/** The panel's table. */
export class HpaList {
  /** @param {import("./history.js").History} history @param {() => [number, number]} span */
  constructor(history, span) {
    this.history = history;
    this.span = span;
    this.table = new SortedTable({
      label: "HPAs with their decisions",
      class: "folds",
      key: keyOf,
      sort: "decision",
      onSeen: (rows) => this.trends(rows),
      columns: [
        { key: "name", label: "HPA", value: keyOf, cell: nameCell },
        { key: "decision", label: "Decision", class: "col-state", value: order, cell: decisionCell },
        { key: "value", label: "Value and target", class: "col-trend", down: true, value: pressure, cell: valueCell },
        { key: "size", label: "Replicas", class: "col-size", down: true, value: (hpa) => hpa.current, cell: sizeCell },
      ],
    });
  }

  /** @param {any[]} hpas */
  show(hpas) {
    this.table.show(hpas);
  }

  /** Draw the trends again, because points arrived or the theme changed. */
  again() {
    this.trends(this.table.seen);
  }

  /** @param {any[]} rows in sight */
  trends(rows) {
    const span = this.span();
    // Sizes are read before anything is drawn: each read after a change lays out the page.
    const found = rows.map((hpa) => {
      const key = keyOf(hpa);
      const all = this.history.get(key);
      const canvases = all ? [...(this.table.built.get(key)?.tr.querySelectorAll("canvas") ?? [])] : [];
      return { all, canvases, sizes: canvases.map((each) => /** @type {[number, number]} */ ([each.clientWidth, each.clientHeight])) };
    });
    for (const { all, canvases: [value, size], sizes } of found) {
      if (!all || !value || !size) continue;
      const series = recent(all, span[0]);
      spark(value, series.time, [
        { values: series.value, colour: "--accent", area: true },
        { values: series.goal, colour: "--warning", dash: [4, 3] },
      ], span, sizes[0]);
      spark(size, series.time, [
        { values: series.desired, colour: "--soft", dash: [2, 2], step: true },
        { values: series.current, colour: "--ink", step: true },
      ], span, sizes[1]);
    }
  }
}

const order = (hpa) => `${ORDER[hpa.level] ?? 4} ${hpa.decision.startsWith("scales") ? 0 : 1} ${keyOf(hpa)}`;

/** How far the value is above its target. */
function pressure(hpa) {
  const metric = leading(hpa);
  return metric && metric.value !== null && metric.value !== undefined && metric.goal ? metric.value / metric.goal : null;
}

function nameCell(hpa) {
  const address = link({ kind: "hpa", namespace: hpa.namespace, name: hpa.name });
  return two(h("a", { href: address, title: keyOf(hpa) }, h("bdi", {}, hpa.name)), [h("bdi", {}, hpa.namespace), " · ", h("bdi", { title: hpa.target }, targetText(hpa))]);
}

/** The kind alone, if the target has the name of the HPA. */
function targetText(hpa) {
  const [kind, name] = (hpa.target ?? "").split("/");
  return name === hpa.name ? kind : hpa.target ?? NONE;
}

function decisionCell(hpa) {
  return h(`div.state.${hpa.level}`, {}, sign(hpa.level), h("div.hpa-what", {},
    h("b", {}, hpa.decision, h("span.hidden", {}, ` (${LEVELS[hpa.level] ?? ""})`)),
    h("span.hpa-why", { title: hpa.text }, hpa.text)));
}

function valueCell(hpa) {
  const metric = leading(hpa);
  if (!metric) return missing("the HPA has no metric");
  return h("div.trend", {}, h("canvas", { "aria-hidden": "true" }), h("span", {},
    h("b", { title: metric.name }, metric.valueText || missing(`no value of ${metric.name}`)),
    `of ${metric.goalText || NONE}`));
}

function sizeCell(hpa) {
  const moving = hpa.desired !== null && hpa.desired !== undefined && hpa.desired !== hpa.current;
  return h("div.trend", {}, h("canvas", { "aria-hidden": "true" }), h("span", {},
    h("b", {}, hpa.current ?? missing("the HPA does not know the size"), moving ? ` → ${hpa.desired}` : null),
    `${hpa.min ?? 1}–${hpa.max}`));
}
