// Small trends: a value against its target, and replicas.

import { fit, ink } from "./ink.js";

/**
 * Draw the lines of a trend. A missing value is a gap.
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} time
 * @param {{values: (number|null)[], colour: string, dash?: number[], step?: boolean, area?: boolean}[]} lines
 * @param {[number, number]} span first and last time
 * @param {[number, number]} size width and height on the page
 */
export function spark(canvas, time, lines, [from, to], [width, height]) {
  if (!width || !height) return;
  const context = fit(canvas, width, height);
  let top = -1;
  for (const line of lines) for (const value of line.values) if (value !== null && value > top) top = value;
  if (top < 0) return;
  top = Math.max(top, 1e-9) * 1.08;
  const x = (/** @type {number} */ t) => 2 + ((t - from) / Math.max(1, to - from)) * (width - 4);
  const y = (/** @type {number} */ v) => height - 2 - (Math.max(0, v) / top) * (height - 4);
  for (const line of lines) {
    context.strokeStyle = context.fillStyle = ink(line.colour);
    context.lineWidth = line.dash ? 1.2 : 1.7;
    context.setLineDash(line.dash ?? []);
    for (const run of runs(line.values)) draw(context, run.map((i) => [x(time[i]), y(/** @type {number} */ (line.values[i]))]), line, height);
  }
}

/** Stretches of known values. @param {(number|null)[]} values @returns {number[][]} */
function runs(values) {
  /** @type {number[][]} */
  const found = [];
  values.forEach((value, i) => {
    if (value === null || value === undefined) return;
    if (i > 0 && values[i - 1] !== null && found.length) /** @type {number[]} */ (found.at(-1)).push(i);
    else found.push([i]);
  });
  return found;
}

function draw(context, points, line, height) {
  if (points.length === 1) {
    context.fillRect(points[0][0] - 1.5, points[0][1] - 1.5, 3, 3);
    return;
  }
  context.beginPath();
  points.forEach(([px, py], i) => {
    if (i === 0) context.moveTo(px, py);
    else if (line.step) {
      context.lineTo(px, points[i - 1][1]);
      context.lineTo(px, py);
    } else context.lineTo(px, py);
  });
  context.stroke();
  if (!line.area) return;
  context.lineTo(points.at(-1)[0], height);
  context.lineTo(points[0][0], height);
  context.globalAlpha = 0.12;
  context.fill();
  context.globalAlpha = 1;
}
