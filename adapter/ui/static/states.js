// One table for each kind of state: its words, its sign and its level. The level has a colour, the sign a shape.

/**
 * @typedef {object} State
 * @property {string} word
 * @property {string} sign a name of SIGNS in dom.js
 * @property {"good"|"warning"|"bad"|"off"} level
 * @property {string} about the word in a sentence
 */

/** Classes of GPUs, as adapter/overview/gpuclasses.py has them: each GPU is in one. @type {Object<string, State>} */
export const GPU_CLASSES = {
  unmeasured: { word: "not measured", sign: "bad", level: "bad", about: "nothing says whether it works" },
  idle: { word: "held and idle", sign: "warning", level: "warning", about: "a pod holds it, and it has done nothing for the time of --idle-after" },
  unheld: { word: "busy without a pod", sign: "warning", level: "warning", about: "it works, and no pod holds it" },
  busy: { word: "held and busy", sign: "good", level: "good", about: "a pod holds it, and it works" },
  free: { word: "free", sign: "off", level: "off", about: "no pod holds it, and it does nothing" },
};

/** @type {State} */
export const UNKNOWN = { word: "unknown", sign: "info", level: "off", about: "" };
