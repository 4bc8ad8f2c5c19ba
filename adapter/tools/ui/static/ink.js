// Colours for canvases, from the style sheet and the ramp of the load.

/** Stops of the ramp, from dark to bright, of equal steps in lightness. */
const RAMP = [[38, 27, 58], [53, 38, 84], [64, 58, 117], [61, 82, 150], [54, 107, 160], [52, 135, 166], [53, 161, 171], [67, 187, 173], [108, 211, 173], [173, 227, 192], [214, 243, 224]];
export const STEPS = 32;

const system = matchMedia("(prefers-color-scheme: dark)");

/** @type {HTMLElement|null} */
let probe = null;
/** Colours by theme and name: asking the style sheet lays out the page. @type {Map<string, string>} */
const known = new Map();

/** The colour of a property of the style sheet, as a canvas takes it. @param {string} name @returns {string} */
export function ink(name) {
  const key = `${dark()} ${name}`;
  let colour = known.get(key);
  if (colour === undefined) {
    if (!probe) {
      probe = document.createElement("span");
      probe.className = "hidden";
      document.body.append(probe);
    }
    probe.style.color = `var(${name})`;
    colour = getComputedStyle(probe).color;
    known.set(key, colour);
  }
  return colour;
}

/** The font of the page. @returns {string} */
export function font() {
  let family = known.get("font");
  if (family === undefined) known.set("font", (family = getComputedStyle(document.body).fontFamily));
  return family;
}

/** Whether the page is dark now. */
export function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && system.matches);
}

/**
 * Colours of the load for a theme: more load stands out more from the ground.
 * @param {boolean} isDark
 * @returns {{fill: string, text: string}[]} STEPS colours, from 0 to 100 %
 */
export function ramp(isDark) {
  return (ramps[Number(isDark)] ??= colours(isDark));
}

/** @type {{fill: string, text: string}[][]} */
const ramps = [];

/** @param {boolean} isDark */
function colours(isDark) {
  return Array.from({ length: STEPS }, (_, i) => {
    const share = i / (STEPS - 1);
    const at = isDark ? 0.14 + 0.86 * share : 1 - 0.92 * share;
    const place = at * (RAMP.length - 1);
    const low = Math.min(RAMP.length - 2, Math.floor(place));
    const mixed = RAMP[low].map((part, k) => Math.round(part + (RAMP[low + 1][k] - part) * (place - low)));
    return { fill: `rgb(${mixed.join(" ")})`, text: luminance(mixed) > 0.179 ? "#06090c" : "#ffffff" };
  });
}

/** @param {number} percent @returns {number} */
export const step = (percent) => Math.max(0, Math.min(STEPS - 1, Math.round((percent / 100) * (STEPS - 1))));

function luminance(rgb) {
  const [r, g, b] = rgb.map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Fit a canvas to its size on the page. @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function fit(canvas, width, height) {
  const scale = Math.min(3, devicePixelRatio || 1);
  const [w, t] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== t) canvas.height = t;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
