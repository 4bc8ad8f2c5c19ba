// One table for each kind of state: its words, its sign and its level. The level has a colour, the sign a shape.

/**
 * @typedef {object} State
 * @property {string} word
 * @property {string} sign a name of SIGNS in dom.js
 * @property {"good"|"warning"|"bad"|"off"} level
 * @property {string} about the word in a sentence
 */

/** Classes of GPUs, as adapter/tools/overview/gpuclasses.py has them: each GPU is in one. @type {Object<string, State>} */
export const GPU_CLASSES = {
  unmeasured: { word: "not measured", sign: "bad", level: "bad", about: "nothing says whether it works" },
  idle: { word: "held and idle", sign: "warning", level: "warning", about: "a pod holds it, and it has been idle for the time of --idle-after, 10 minutes by default" },
  unheld: { word: "busy without a pod", sign: "warning", level: "warning", about: "it works, and no pod holds it" },
  busy: { word: "held and busy", sign: "good", level: "good", about: "a pod holds it, and it has not been idle for the time of --idle-after" },
  blocked: { word: "blocked", sign: "warning", level: "warning", about: "no pod holds it, it does nothing, and no pod can start on its node" },
  free: { word: "free", sign: "off", level: "off", about: "no pod holds it, it does nothing, and a pod can get it" },
};

/**
 * States of HPAs, as adapter/answers/judgement/states.py has them, the worst first.
 * `count` is the name of the sum of the verdict: both directions of scaling are one.
 * @type {Object<string, State & {count: string}>}
 */
export const HPA_STATES = {
  stuck: { word: "stuck", count: "stuck", sign: "bad", level: "bad", about: "it has no value, no target or no right, and keeps its size" },
  stale: { word: "stale", count: "stale", sign: "stopped", level: "bad", about: "what should scale it, the HPA controller or KEDA, has not looked at it for minutes" },
  behind: { word: "behind", count: "behind", sign: "less", level: "bad", about: "replicas that it wants do not exist, or are not ready" },
  overloaded: { word: "overloaded", count: "overloaded", sign: "over", level: "warning", about: "a target is exceeded, and something keeps it from scaling out" },
  impaired: { word: "impaired", count: "impaired", sign: "warning", level: "warning", about: "it decides, but a flaw of its manifest or surroundings spoils what it does" },
  incomplete: { word: "incomplete", count: "incomplete", sign: "part", level: "warning", about: "it decides, though a metric or a pod has no value" },
  waiting: { word: "waiting", count: "waiting", sign: "clock", level: "warning", about: "the HPA controller or KEDA has not looked at it yet, or a pod waits for a node" },
  "scales out": { word: "scales out", count: "scaling", sign: "up", level: "good", about: "its size grows" },
  "scales in": { word: "scales in", count: "scaling", sign: "down", level: "good", about: "its size shrinks" },
  held: { word: "held", count: "held", sign: "hold", level: "good", about: "its metrics ask for fewer replicas, and a window, a rate or a bound keeps them" },
  healthy: { word: "healthy", count: "healthy", sign: "good", level: "good", about: "every metric has a value within its target, and every replica exists" },
  "at zero": { word: "at zero", count: "atZero", sign: "zero", level: "off", about: "it has 0 replicas, and a metric wakes it" },
  paused: { word: "paused", count: "paused", sign: "pause", level: "off", about: "nothing scales it until somebody ends the pause: it has 0 replicas, or its ScaledObject is paused" },
};

/** @type {State} */
export const UNKNOWN = { word: "unknown", sign: "info", level: "off", about: "" };

const LEADS = [...Object.keys(HPA_STATES), "keeps"];

/** Why an HPA does what it does: its text without the state and the size, which stand beside it. @param {string} text */
export function reason(text) {
  const lead = LEADS.find((word) => text.startsWith(word));
  return lead ? text.slice(lead.length).replace(/^(?: at)?(?: [\d…]+(?: → [\d…]+)?)?(?: replicas)?[:;,]? ?/, "") : text;
}
