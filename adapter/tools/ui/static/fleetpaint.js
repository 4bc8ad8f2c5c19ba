// Draws the part of the map in sight.

import { middle } from "./format.js";
import { dark, fit, font, ink, ramp, step } from "./ink.js";

/**
 * @typedef {object} Look
 * @property {(number|null)[]} util
 * @property {(string|null)[]} pods
 * @property {string[]} kind class of each GPU
 * @property {(string|null)[]} sharing
 * @property {(string|null)[]} unhealthy
 * @property {Set<number>} dim
 */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {import("./fleetlayout.js").Layout} layout
 * @param {Look} look
 * @param {{width: number, height: number, top: number}} view
 */
export function paint(canvas, layout, look, view) {
  const context = fit(canvas, view.width, view.height);
  const colours = ramp(dark());
  const inks = { ink: ink("--ink"), soft: ink("--soft"), edge: ink("--edge-strong"), none: ink("--tile-none"), hatch: ink("--hatch"), bad: ink("--bad"), warning: ink("--warning"), surface: ink("--surface"), font: font() };
  context.save();
  context.translate(0, -view.top);
  const seen = layout.bands.filter((band) => band.y < view.top + view.height && band.y + band.height > view.top);
  for (const band of seen) titles(context, layout, band, view, inks);
  const tiles = seen.flatMap((band) => band.blocks.flatMap((block) => block.tiles))
    .filter((tile) => tile.y < view.top + view.height && tile.y + layout.size > view.top);
  fills(context, layout.size, tiles, look, colours, inks);
  marks(context, layout.size, tiles, look, colours, inks);
  context.restore();
}

/**
 * Draw the rings of the tile of the keyboard, and of the tile that is explained.
 * @param {HTMLCanvasElement} canvas @param {number} size of tiles
 * @param {{current?: import("./fleetlayout.js").Tile, open?: import("./fleetlayout.js").Tile}} tiles
 * @param {{width: number, height: number, top: number}} view
 */
export function rings(canvas, size, { current, open }, view) {
  const context = fit(canvas, view.width, view.height);
  context.translate(0, -view.top);
  if (open) edge(context, open.x - 1.5, open.y - 1.5, size + 3, ink("--ink"), 2.5, size);
  if (current) edge(context, current.x - 1.5, current.y - 1.5, size + 3, ink("--accent"), 2.5, size);
}

function titles(context, layout, band, view, inks) {
  context.textBaseline = "alphabetic";
  context.fillStyle = inks.ink;
  context.font = `600 13px ${inks.font}`;
  const nodes = `${band.count.toLocaleString("en-US")} on ${band.blocks.length === 1 ? "1 node" : `${band.blocks.length.toLocaleString("en-US")} nodes`}`;
  const title = cut(context, band.name || "no node pool", Math.max(60, Math.min(band.width, view.width - band.x) - 110));
  context.fillText(title, band.x, band.y + 18);
  const end = band.x + context.measureText(title).width + 10;
  context.fillStyle = inks.soft;
  context.font = `12px ${inks.font}`;
  context.fillText(nodes, end, band.y + 18);
  if (!layout.labels) return;
  for (const block of band.blocks) {
    if (block.y > view.top + view.height || block.y + 18 < view.top) continue;
    context.fillText(cut(context, block.name, block.width), block.x, block.y + 12);
  }
}

/** Shorten a text to a width; names of nodes differ at the end. */
function cut(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [1, Math.min(Array.from(text).length, 80)];
  while (low < high) {
    const half = Math.ceil((low + high) / 2);
    if (context.measureText(middle(text, half)).width <= width) low = half;
    else high = half - 1;
  }
  return middle(text, low);
}

/** Fill the tiles, one colour after another. */
function fills(context, size, tiles, look, colours, inks) {
  /** @type {Map<string, any[]>} */
  const groups = new Map();
  for (const tile of tiles) {
    const kind = look.kind[tile.index];
    const colour = kind === "unmeasured" || kind === undefined ? "none" : kind === "free" || kind === "blocked" ? "free" : colours[step(look.util[tile.index] ?? 0)].fill;
    const alpha = look.dim.has(tile.index) ? 0.18 : 1;
    const key = `${alpha} ${colour}`;
    const some = groups.get(key);
    if (some) some.push(tile);
    else groups.set(key, [tile]);
  }
  const hatch = hatching(context, inks, size);
  const round = size >= 20 ? 4 : size >= 10 ? 2 : 0;
  for (const [key, some] of groups) {
    const [alpha, colour] = [Number(key.slice(0, key.indexOf(" "))), key.slice(key.indexOf(" ") + 1)];
    context.globalAlpha = alpha;
    context.beginPath();
    for (const tile of some) {
      if (round) context.roundRect(tile.x, tile.y, size, size, round);
      else context.rect(tile.x, tile.y, size, size);
    }
    context.fillStyle = { none: inks.none, free: inks.surface }[colour] ?? colour;
    context.fill();
    if (colour === "none" && size >= 10) {
      context.fillStyle = hatch;
      context.fill();
    }
  }
  context.globalAlpha = 1;
}

function hatching(context, inks, size) {
  const space = size >= 16 ? 6 : 4;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = space;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.strokeStyle = inks.hatch;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const from of [-space, 0, space]) {
    pen.moveTo(from - 1, space + 1);
    pen.lineTo(from + space + 1, -1);
  }
  pen.stroke();
  return context.createPattern(canvas, "repeat");
}

/** Draw edges, rings, signs and numbers. */
function marks(context, size, tiles, look, colours, inks) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `600 ${size >= 44 ? 14 : 12}px ${inks.font}`;
  for (const tile of tiles) {
    const { x, y, index } = tile;
    const kind = look.kind[index];
    const util = look.util[index] ?? null;
    const filled = kind === "busy" || kind === "idle" || kind === "unheld";
    const text = filled ? colours[step(util ?? 0)].text : inks.ink;
    context.globalAlpha = look.dim.has(index) ? 0.25 : 1;
    if (kind === "blocked" || (!filled && kind !== "free" && size < 10)) slash(context, x, y, size, inks);
    if (kind === "free" || (size >= 10 && (!filled || (util ?? 0) < 25))) edge(context, x + 0.5, y + 0.5, size - 1, inks.edge, 1, size);
    if (shared(look, index)) ring(context, x, y, size, text);
    if (filled && util !== null && size >= 30) {
      context.fillStyle = text;
      context.fillText(String(Math.round(util)), x + size / 2, y + size / 2 + 1);
    }
    if (kind === "idle") dot(context, x, y, size, inks);
    if (kind === "unheld") corner(context, x, y, size, inks);
    if (look.unhealthy[index]) cross(context, x, y, size, inks);
  }
  context.globalAlpha = 1;
}

/** Whether several pods have the device. @param {Look} look @param {number} index */
export function shared(look, index) {
  return / \+\d+$/.test(look.pods[index] ?? "") || ["time-slicing", "mps"].includes(String(look.sharing[index] ?? "").toLowerCase());
}

function edge(context, x, y, size, colour, width, tile) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.roundRect(x, y, size, size, tile >= 20 ? 4 : 2);
  context.stroke();
}

/** The hatch of a tile that is too small for a pattern, and the line through one that no pod can get. */
function slash(context, x, y, size, inks) {
  context.strokeStyle = inks.ink;
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  context.beginPath();
  context.moveTo(x + 1, y + size - 1);
  context.lineTo(x + size - 1, y + 1);
  context.stroke();
}

function ring(context, x, y, size, colour) {
  const inset = size >= 24 ? 4 : size >= 13 ? 2.5 : 1.5;
  context.strokeStyle = colour;
  context.lineWidth = size >= 24 ? 1.8 : 1;
  context.beginPath();
  if (size >= 10) context.roundRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset, size >= 20 ? 3 : 1);
  else context.rect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
  context.stroke();
}

/** A dot within an edge: held and idle. */
function dot(context, x, y, size, inks) {
  const radius = size >= 44 ? 3.5 : size >= 30 ? 2.6 : size >= 16 ? 3 : size >= 10 ? 2.2 : 1.6;
  const inset = size >= 44 ? 9 : size >= 30 ? 6.5 : size / 2;
  const wide = size >= 24 ? 2 : size >= 10 ? 1.4 : 1;
  edge(context, x + wide / 2, y + wide / 2, size - wide, inks.warning, wide, size);
  context.fillStyle = inks.warning;
  context.beginPath();
  context.arc(size >= 30 ? x + size - inset : x + inset, y + inset, radius, 0, 7);
  context.fill();
}

/** The upper left corner: busy without a pod. */
function corner(context, x, y, size, inks) {
  triangle(context, [x + 1, y + 1, 1], size, inks.warning, inks.surface);
}

/** The lower right corner: an error of the GPU. */
function cross(context, x, y, size, inks) {
  triangle(context, [x + size - 1, y + size - 1, -1], size, inks.bad, inks.surface);
}

/** A corner of a tile, with an edge that keeps its colour apart from the tile's. */
function triangle(context, [x, y, turn], size, colour, around) {
  const part = Math.max(4.5, size * 0.38) * turn;
  context.fillStyle = colour;
  context.strokeStyle = around;
  context.lineWidth = size >= 24 ? 1.5 : 1;
  context.beginPath();
  context.moveTo(x, y + part);
  context.lineTo(x, y);
  context.lineTo(x + part, y);
  context.closePath();
  context.fill();
  if (size >= 10) context.stroke();
}
