// The verdict: one sentence, and the four sums behind it.

import { fill, h, say, sign } from "./dom.js";
import { money, NONE } from "./format.js";
import { GPU_CLASSES, HPA_STATES } from "./states.js";

/** Show the verdict. @param {any} verdict @param {any} about @param {any} idle */
export function showVerdict(verdict, about, idle) {
  if (!verdict) return;
  const section = /** @type {HTMLElement} */ (document.getElementById("verdict"));
  const level = { empty: "info", waiting: "info" }[verdict.level] ?? verdict.level;
  section.className = `verdict ${level}`;
  const mark = /** @type {HTMLElement} */ (document.getElementById("verdict-sign"));
  if (mark.dataset.level !== level) {
    mark.dataset.level = level;
    fill(mark, sign(level), h("span.hidden", {}, `${{ good: "Good", warning: "Warning", bad: "Problem", info: "Note" }[level]}: `));
  }
  say(/** @type {HTMLElement} */ (document.getElementById("verdict-text")), verdict.text);
  const detail = /** @type {HTMLElement} */ (document.getElementById("verdict-detail"));
  say(detail, verdict.detail ?? "");
  detail.hidden = !verdict.detail;
  document.title = title(verdict);
  const element = /** @type {HTMLElement} */ (document.getElementById("figures"));
  const version = JSON.stringify([verdict, about?.currency, about?.pricesOf, idle?.left]);
  if (element.dataset.version === version) return;
  element.dataset.version = version;
  fill(element, hpas(verdict.hpas), pods(verdict.pods), gpus(verdict.gpus), price(verdict.idle, about, idle, verdict.gpus?.free));
}

const whole = (/** @type {number} */ number) => number.toLocaleString("en-US");

function title(verdict) {
  const parts = [
    verdict.hpas?.stuck ? `${verdict.hpas.stuck} stuck` : "",
    verdict.pods?.unmeasured ? `${verdict.pods.unmeasured} without value` : "",
  ].filter(Boolean);
  return `${parts.length ? `${parts.join(", ")} · ` : ""}gpu-metrics-adapter`;
}

function hpas(some) {
  if (!some) return figure("HPAs", null);
  const states = new Map(Object.values(HPA_STATES).map((state) => [state.count, state]));
  return figure(some.noun === "HPA" ? "HPAs" : "Autoscalers", whole(some.total), share([...states].map(([key, { level }]) => [some[key], level])),
    [...states].map(([key, { word, level, about }]) => part(some[key], key === "scaling" ? key : word, level, about)));
}

function pods(some) {
  if (!some) return figure("GPU pods", null);
  return figure("GPU pods", whole(some.total), share([[some.unmeasured, "bad"], [some.waiting, "warning"], [some.measured, "good"]]), [
    part(some.unmeasured, "without a value", "bad"),
    part(some.waiting, "waiting for a node", "warning"),
    part(some.measured, "measured", "good"),
  ]);
}

function gpus(some) {
  if (!some) return figure("GPUs", null);
  const classes = Object.entries(GPU_CLASSES);
  return figure("GPUs", whole(some.total), share(classes.map(([key, { level }]) => [some[key], level])),
    classes.map(([key, { word, level, about }]) => part(some[key], word, level, about)));
}

function price(some, about, idle, free) {
  const currency = about?.currency ?? "";
  if (!some) return figure("Idle GPUs cost", null);
  const value = some.pricePerHour === null || some.pricePerHour === undefined
    ? NONE
    : [`${money(some.pricePerHour, currency)} `, h("small", {}, "an hour")];
  const rest = [
    some.costSoFar === null || some.costSoFar === undefined ? null : h("span", {}, h("b", {}, money(some.costSoFar, currency)), " so far"),
    some.withoutPrice ? h("span", {}, h("b", {}, some.withoutPrice), " without a price") : null,
    idle?.left ? h("span", {}, h("b", {}, idle.left), " not looked at") : null,
    about?.pricesOf && value !== NONE ? h("span", {}, about.pricesOf) : null,
    value === NONE && !some.withoutPrice ? h("span", {}, "nothing to price") : null,
    free && value !== NONE ? h("span", {}, "without free GPUs") : null,
  ];
  return figure("Idle GPUs cost", value, null, rest);
}

function part(number, words, level, about = "") {
  if (!number) return null;
  return h(`span.${level}`, { title: about || null }, h("b", {}, whole(number)), ` ${words}`);
}

function figure(label, value, ...rest) {
  if (value === null) {
    return h("li.figure", {}, h("div.label", {}, label), h("div.value", {}, h("span.missing", {}, NONE)), h("div.rest", {}, "could not be read"));
  }
  const [bar, parts] = rest;
  return h("li.figure", {}, h("div.label", {}, label), h("div.value", {}, value), bar, h("div.rest", {}, parts));
}

/** A bar of shares; the words below it say the same. @param {[number, string][]} parts */
function share(parts) {
  const known = parts.filter(([number]) => number > 0);
  const bar = h("div.share", { "aria-hidden": "true" });
  for (const [number, level] of known) {
    const piece = h(`i.${level}`);
    piece.style.flexGrow = String(number);
    bar.append(piece);
  }
  return bar;
}
