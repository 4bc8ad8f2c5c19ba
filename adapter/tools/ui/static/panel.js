// What a panel says about its data: waiting, without rights, failed, old.

import { command } from "./copy.js";
import { fill, h, say, sign } from "./dom.js";
import { count, span } from "./format.js";

const WORDS = {
  forbidden: ["warning", "Your user may not read this."],
  missing: ["warning", "The cluster does not serve this."],
  failed: ["bad", "The last read failed."],
};
const NAMES = { gpus: "GPUs", gpunodes: "GPU nodes", gpupools: "pools", gpupods: "pods", gpuworkloads: "workloads", hpas: "HPAs", events: "events" };

/** How old the data of a list are, in seconds; null if it was never read. @param {any} panel @returns {number|null} */
const age = (panel) => (panel.updated ? Math.max(0, Date.now() / 1000 - panel.updated) : null);

/** Seconds up to which data are live: a few intervals. @param {number} interval */
const live = (interval) => Math.max(30, 6 * interval);

/** Whether a list was read, but is not read again when it should be: one that takes long is read seldom. @param {any} panel @param {number} interval */
const late = (panel, interval) => (age(panel) ?? 0) > Math.max(live(interval), 12 * (panel.took ?? 0));

/**
 * The age of the oldest list that is shown, the names of the lists that are not read any more, and of those that are
 * read so seldom that they are not live.
 * @param {any[]|undefined} panels @param {number} interval @returns {{age: number|null, old: string[], slow: string[], all: boolean}}
 */
export function freshness(panels, interval) {
  const shown = (panels ?? []).filter((panel) => panel.updated);
  const old = shown.filter((panel) => panel.status !== "ok" || late(panel, interval));
  const slow = shown.filter((panel) => !old.includes(panel) && (age(panel) ?? 0) > live(interval));
  const names = (/** @type {any[]} */ some) => some.map((panel) => NAMES[panel.panel] ?? panel.panel);
  return {
    age: shown.length ? Math.max(...shown.map((panel) => /** @type {number} */ (age(panel)))) : null,
    old: names(old),
    slow: names(slow),
    all: old.length > 0 && old.length === shown.length,
  };
}

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** "a", "a and b", "a, b and c". @param {string[]} names */
export const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}` : names[0] ?? "");

/**
 * Show what is wrong with the lists that a panel reads.
 * @param {HTMLElement} element
 * @param {any[]|undefined} panels
 * @param {string[]} lists
 * @param {number} interval
 */
export function notices(element, panels, lists, interval) {
  const found = (panels ?? []).filter((panel) => lists.includes(panel.panel));
  const shown = found.filter((panel) => panel.status in WORDS).map((panel) => trouble(panel, age(panel)));
  const old = found.filter((panel) => panel.status === "ok" && late(panel, interval));
  if (old.length) shown.push(notice("warning", h("p", {}, `The ${listed(old.map((panel) => NAMES[panel.panel]))} shown are ${span(Math.max(...old.map((panel) => /** @type {number} */ (age(panel)))))} old.`)));
  const text = shown.map((one) => one.textContent).join("\n");
  if (element.dataset.text === text) return;
  element.dataset.text = text;
  fill(element, shown);
}

function trouble(panel, old) {
  const [level, words] = WORDS[panel.status];
  return notice(
    level,
    h("p", {}, h("b", {}, `${capital(NAMES[panel.panel] ?? panel.panel)}: `), panel.message || words),
    panel.command ? command(panel.command) : null,
    old === null ? null : h("p.soft", {}, `The ${NAMES[panel.panel] ?? "data"} shown are ${span(old)} old.`),
  );
}

/** @param {string} level @param {...any} children */
export function notice(level, ...children) {
  return h(`div.notice.${level}`, {}, sign(level), h("div", {}, children));
}

/** @param {any[]|undefined} panels @param {string} name @returns {string} the status of a list */
export function status(panels, name) {
  return (panels ?? []).find((panel) => panel.panel === name)?.status ?? "waiting";
}

/** A text for a panel without content, with what to do next. @param {string} title @param {string} text @param {...string} commands */
export function empty(title, text, ...commands) {
  return h("div.empty", {}, h("b", {}, title), h("p", {}, text), commands.map(command));
}

/** Show either the content or an empty state. @param {HTMLElement} body @param {Node} content @param {Node|null} instead */
export function place(body, content, instead) {
  if (!instead) {
    if (body.firstChild !== content) body.replaceChildren(content);
    return;
  }
  if (body.firstChild?.isEqualNode?.(instead)) return;
  body.replaceChildren(instead);
}

/** Buttons of which one is chosen. @param {HTMLElement} element @param {[string, string][]} choices value and label @param {string} chosen @param {(value: string) => void} onChoose */
export function segments(element, choices, chosen, onChoose) {
  const version = JSON.stringify(choices);
  element.classList.add("segments");
  if (element.dataset.choices !== version) {
    element.dataset.choices = version;
    fill(element, choices.map(([value, label]) => h("button", { type: "button", "data-value": value, click: () => onChoose(value) }, label)));
  }
  for (const button of element.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.value === chosen));
}

/**
 * Say "3 of 14" in the title of a panel if the filters leave something out.
 * @param {string} id of the panel @param {number} shown @param {number|null} all null: not known @param {string} noun @param {string} [more]
 */
export function tally(id, shown, all, noun, more = "") {
  const title = /** @type {any} */ (document.getElementById(`${id}-count`));
  if (all === null) return say(title, "not known");
  say(title, `${shown === all ? count(all, noun) : `${shown.toLocaleString("en-US")} of ${count(all, noun)}`}${more}`);
}
