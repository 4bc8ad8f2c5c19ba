// Elements. Texts from the cluster enter the page as text nodes and attributes only.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element.
 * @param {string} tag name, with an optional class: "p.note"
 * @param {Object<string, any>} [attributes] attributes; a function is a listener; null leaves it out
 * @param {...(Node|string|number|null|undefined|false)} children texts become text nodes
 * @returns {any} an HTMLElement
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  set(element, attributes);
  add(element, children);
  return element;
}

/** Set attributes and listeners. @param {Element} element @param {Object<string, any>} attributes */
export function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(key);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
}

/** Replace the children of an element. @param {Element} element @param {...any} children */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/** Set a text, without a change of the document if it is the same. @param {Element} element @param {string} text */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

const [CIRCLE, TRIANGLE, OCTAGON] = ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M8 1.8 15 14H1z", "M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2z"];
/**
 * Signs: outline and mark. Their shapes differ, so that they can be read without their colour.
 * @type {Object<string, string[]>}
 */
const SIGNS = {
  good: [CIRCLE, "M5 8.2l2.1 2.1L11 6.2"],
  up: [CIRCLE, "M8 11.2V5M5.4 7.4 8 4.8l2.6 2.6"],
  down: [CIRCLE, "M8 4.8V11M5.4 8.6 8 11.2l2.6-2.6"],
  hold: [CIRCLE, "M5 6.3h6M5 9.7h6"],
  clock: [CIRCLE, "M8 4.4V8l2.6 1.6"],
  off: [CIRCLE, "M5 8h6"],
  pause: [CIRCLE, "M6.3 5.4v5.2M9.7 5.4v5.2"],
  zero: [CIRCLE, "M8 5.4c-1.1 0-1.8 1.1-1.8 2.6s.7 2.6 1.8 2.6 1.8-1.1 1.8-2.6S9.1 5.4 8 5.4z"],
  info: [CIRCLE, "M8 7.4v3.8M8 4.6v.6"],
  warning: [TRIANGLE, "M8 6.3v3.4M8 11.7v.6"],
  over: [TRIANGLE, "M8 12V7.2M6 9l2-2 2 2"],
  part: [TRIANGLE, "M5.4 11.4h.1M8 11.4h.1M10.6 11.4h.1"],
  bad: [OCTAGON, "M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6"],
  stopped: [OCTAGON, "M8 4.4V8l2.6 1.6"],
  less: [OCTAGON, "M5 8h6"],
};
const LEVELS = new Set(["good", "warning", "bad", "off"]);
const LINES = {
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  pause: "M5.5 3v10M10.5 3v10",
  play: "M5 3l8 5-8 5z",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14",
  theme: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  next: "M6 3l5 5-5 5",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3.2H9.8",
};

/**
 * Make the sign of a state; its words stand beside it.
 * @param {string} name of the shape @param {string} [level] of the colour @returns {SVGElement}
 */
export function sign(name, level = name) {
  const [outline, mark] = SIGNS[name] ?? SIGNS.info;
  return drawing(`sign ${LEVELS.has(level) ? level : "info"}`, [[outline, "outline"], [mark, "mark"]]);
}

/** Make a small drawing for a button. @param {keyof typeof LINES} name @returns {SVGElement} */
export function line(name) {
  return drawing("line", [[LINES[name], "mark"]]);
}

function drawing(name, paths) {
  const svg = document.createElementNS(SVG, "svg");
  set(svg, { class: name, viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" });
  for (const [d, part] of paths) {
    const path = document.createElementNS(SVG, "path");
    set(path, { d, class: part });
    svg.append(path);
  }
  return svg;
}
