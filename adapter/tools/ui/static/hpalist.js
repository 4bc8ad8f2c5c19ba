// The list of HPAs: the state and why, the value against its target, the replicas. HPAs with one cause are one row
// that unfolds.

import { h, line, sign } from "./dom.js";
import { leading, recent } from "./history.js";
import { count, NONE } from "./format.js";
import { link } from "./route.js";
import { spark } from "./spark.js";
import { HPA_STATES, reason, UNKNOWN } from "./states.js";
import { missing, SortedTable, two } from "./table.js";

/** HPAs of one cause from which they are one row, as adapter/tools/overview/groups.py has it. */
const LEAST = 3;
/** Names that the row of a group mentions. */
const FIRST = 3;
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
    /** Groups whose HPAs are listed. @type {Set<string>} */
    this.unfolded = new Set();
    this.table = new SortedTable({
      label: "HPAs and their states",
      class: "folds",
      key: rowKey,
      sort: "decision",
      unfold: (row) => (row.members && this.unfolded.has(row.group) ? row.members : []),
      rowClass: (row) => (row.members ? "group" : row.member ? "member" : ""),
      version: (row) => (row.members ? [row.group, row.members.length, row.first, this.unfolded.has(row.group)] : row),
      onSeen: (rows) => this.trends(rows),
      columns: [
        { key: "name", label: "HPA", value: (row) => keyOf(one(row)), cell: (row) => (row.members ? this.groupCell(row) : nameCell(row)) },
        { key: "decision", label: "State", class: "col-state", value: place, cell: stateCell },
        { key: "value", label: "Value and target", class: "col-trend", down: true, value: (row) => pressure(one(row)), cell: (row) => (row.members ? namesCell(row) : valueCell(row)), span: (row) => (row.members ? 2 : 1) },
        { key: "size", label: "Replicas", class: "col-size", down: true, value: (row) => one(row).current, cell: sizeCell },
      ],
    });
  }

  /** @param {any[]} hpas */
  show(hpas) {
    this.table.show(grouped(hpas));
  }

  /** The name of a group: how many HPAs it has. @param {any} group */
  groupCell(group) {
    const open = this.unfolded.has(group.group);
    const unfold = () => {
      if (!this.unfolded.delete(group.group)) this.unfolded.add(group.group);
      this.table.show(this.table.rows);
    };
    return two(h("button.unfold", { type: "button", "aria-expanded": String(open), "aria-label": `${count(group.members.length, group.members[0].kind)}: ${group.group}`, click: unfold },
      line("next"), count(group.members.length, group.members[0].kind)), null);
  }

  /** Draw the trends again, because points arrived or the theme changed. */
  again() {
    this.trends(this.table.seen);
  }

  /** @param {any[]} rows in sight */
  trends(rows) {
    const span = this.span();
    // Sizes are read before anything is drawn: each read after a change lays out the page.
    const found = rows.filter((row) => !row.members && row.kind === "HPA").map((hpa) => {
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

/** The HPA that stands for a row: of a group, the first one. @param {any} row */
const one = (row) => (row.members ? row.members[0] : row);

/** @param {any} row @returns {string} */
const rowKey = (row) => (row.members ? `group ${row.group}` : keyOf(row));

/**
 * Put HPAs with one cause together, unless there are so few that a group takes as much room.
 * @param {any[]} hpas @returns {any[]} HPAs, and groups with their `members`
 */
function grouped(hpas) {
  /** @type {Map<string, any[]>} */
  const groups = new Map();
  for (const hpa of hpas) {
    if (!hpa.group) continue;
    const members = groups.get(hpa.group);
    if (members) members.push({ ...hpa, member: true });
    else groups.set(hpa.group, [{ ...hpa, member: true }]);
  }
  const shown = [...groups].filter(([, members]) => members.length >= LEAST);
  const rows = shown.map(([group, members]) => {
    members.sort((a, b) => (order(a) < order(b) ? -1 : 1));
    return { group, members, first: keyOf(members[0]), level: members[0].level, decision: members[0].decision, text: group };
  });
  const taken = new Set(shown.map(([group]) => group));
  return [...rows, ...hpas.filter((hpa) => !taken.has(hpa.group))];
}

const order = (hpa) => `${state(hpa)} ${keyOf(hpa)}`;

const state = (hpa) => `${ORDER[hpa.level] ?? 4} ${hpa.decision.startsWith("scales") ? 0 : 1}`;

/** Among rows of one state, groups are first, the largest first. @param {any} row */
const place = (row) => (row.members ? `${state(row)} ${String(1e6 - row.members.length)}` : `${state(row)} ~${keyOf(row)}`);

/** How far the value is above its target. */
function pressure(hpa) {
  const metric = leading(hpa);
  return metric && metric.value !== null && metric.value !== undefined && metric.goal ? metric.value / metric.goal : null;
}

/** The first names of a group, in the room of the value and the size. */
function namesCell(group) {
  const rest = group.members.length - FIRST;
  return h("p.hpa-why", {}, h("bdi", {}, group.members.slice(0, FIRST).map(keyOf).join(", ")), rest > 0 ? ` and ${rest.toLocaleString("en-US")} more` : null);
}

function nameCell(hpa) {
  if (hpa.kind !== "HPA") {
    const name = hpa.name.slice(hpa.name.indexOf("/") + 1);
    return two(h("b", { title: keyOf(hpa) }, h("bdi", {}, name)), [h("bdi", {}, hpa.namespace), ` · ${hpa.kind}`]);
  }
  const address = link({ kind: "hpa", namespace: hpa.namespace, name: hpa.name });
  return two(h("a", { href: address, title: keyOf(hpa) }, h("bdi", {}, hpa.name)), [h("bdi", {}, hpa.namespace), " · ", h("bdi", { title: hpa.target }, targetText(hpa))]);
}

/** The kind alone, if the target has the name of the HPA. */
function targetText(hpa) {
  const [kind, name] = (hpa.target ?? "").split("/");
  return name === hpa.name ? kind : hpa.target ?? NONE;
}

function stateCell(hpa) {
  const why = reason(hpa.text);
  const state = HPA_STATES[hpa.decision] ?? { ...UNKNOWN, sign: hpa.level, word: hpa.decision };
  return h(`div.state.${hpa.level}`, { title: state.about || null }, sign(state.sign, hpa.level), h("div.hpa-what", {},
    h("b", {}, state.word, h("span.hidden", {}, ` (${LEVELS[hpa.level] ?? ""})`)),
    why ? h("span.hpa-why", { title: hpa.text }, why, hpa.advice ? `; ${hpa.advice}` : null) : null));
}

function valueCell(hpa) {
  const metric = leading(hpa);
  if (!metric) return missing(hpa.kind === "HPA" ? "the HPA has no metric" : "no HPA reads a metric");
  return h("div.trend", {}, h("canvas", { "aria-hidden": "true" }), h("span", {},
    h("b", { title: metric.name }, metric.valueText || missing(`no value of ${metric.name}`)),
    `of ${metric.goalText || NONE}`));
}

function sizeCell(hpa) {
  if (hpa.kind !== "HPA") return missing("no HPA knows the size");
  const moving = hpa.desired !== null && hpa.desired !== undefined && hpa.desired !== hpa.current;
  return h("div.trend", {}, h("canvas", { "aria-hidden": "true" }), h("span", {},
    h("b", {}, hpa.current ?? missing("the HPA does not know the size"), moving ? ` → ${hpa.desired}` : null),
    `${hpa.min ?? 1}–${hpa.max}`));
}
