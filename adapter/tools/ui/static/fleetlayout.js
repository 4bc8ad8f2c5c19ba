// Where each tile of the map is: pools as bands, nodes as blocks, GPUs as tiles. No drawing here.

/**
 * @typedef {{index: number, x: number, y: number}} Tile
 * @typedef {{name: string, x: number, y: number, width: number, tiles: Tile[]}} Block
 * @typedef {{name: string, x: number, y: number, width: number, height: number, count: number, blocks: Block[]}} Band
 * @typedef {{size: number, gap: number, height: number, bands: Band[], order: Tile[], labels: boolean}} Layout
 */

const SIZES = [52, 44, 36, 30, 24, 20, 16, 13, 10, 8, 6];
const MARGIN = 16;
const TITLE = 28;
const LABEL = 18;
/** Width of a letter of a title, about. */
const LETTER = 7.5;

/**
 * Choose the largest tiles that fit.
 * @param {{index: number, pool: string, node: string}[]} tiles in the order of pool and node
 * @param {number} width @param {number} height that should be enough
 * @returns {Layout}
 */
export function layout(tiles, width, height) {
  const pools = group(tiles, (tile) => tile.pool).map(([pool, some]) => [pool, group(some, (tile) => tile.node)]);
  for (const size of SIZES) {
    const found = lay(/** @type {any} */ (pools), width, size);
    if (found.height <= height || size === SIZES[SIZES.length - 1]) return found;
  }
  throw new Error("no size of tiles");
}

/** @param {[string, [string, any[]][]][]} pools @param {number} width @param {number} size @returns {Layout} */
function lay(pools, width, size) {
  const gap = size >= 24 ? 4 : size >= 13 ? 3 : size >= 10 ? 2 : 1;
  const labels = size >= 16;
  const space = size >= 24 ? 16 : size >= 13 ? 10 : size >= 10 ? 6 : 4;
  const room = width - 2 * MARGIN;
  /** @type {Layout} */
  const found = { size, gap, height: 0, bands: [], order: [], labels };
  let [left, top, bottom] = [MARGIN, 4, 4];
  for (const [name, nodes] of pools) {
    const shapes = nodes.map(([node, some]) => shape(node, some, size, gap, room, labels));
    const line = shapes.reduce((sum, one) => sum + one.width + space, -space);
    const count = shapes.reduce((sum, one) => sum + one.some.length, 0);
    const wide = Math.min(room, Math.max(line, LETTER * (name.length + 18)));
    // Small pools stand beside each other; one with several rows of nodes has the width for itself.
    if (left > MARGIN && (line > room || left + wide > width - MARGIN)) [left, top] = [MARGIN, bottom];
    /** @type {Band} */
    const band = { name, x: left, y: top, width: wide, height: 0, count, blocks: [] };
    let [x, y, tallest] = [left, top + TITLE, 0];
    for (const { node, some, columns, width: across, height } of shapes) {
      if (x > left && x + across > width - MARGIN) [x, y, tallest] = [left, y + tallest + space, 0];
      const start = y + (labels ? LABEL : 0);
      const from = x;
      const tiles = some.map((tile, i) => ({ index: tile.index, x: from + (i % columns) * (size + gap), y: start + Math.floor(i / columns) * (size + gap) }));
      band.blocks.push({ name: node, x, y, width: across, tiles });
      for (const tile of tiles) found.order.push(tile);
      x += across + space;
      tallest = Math.max(tallest, height);
    }
    band.height = y + tallest + (size >= 16 ? 16 : 10) - top;
    bottom = Math.max(bottom, top + band.height);
    left += wide + 2 * space;
    found.bands.push(band);
  }
  found.height = bottom;
  return found;
}

/** How many columns and how much room the tiles of a node take. */
function shape(node, some, size, gap, room, labels) {
  const columns = across(some.length, Math.max(1, Math.floor((room + gap) / (size + gap))));
  return {
    node, some, columns,
    width: Math.max(columns * (size + gap) - gap, labels ? Math.min(76, room) : 0),
    height: Math.ceil(some.length / columns) * (size + gap) - gap + (labels ? LABEL : 0),
  };
}

function across(count, most) {
  const wanted = count <= 4 ? count : count <= 8 ? 4 : count <= 16 ? 8 : Math.ceil(Math.sqrt(count * 2));
  return Math.max(1, Math.min(most, wanted));
}

/** @template T @param {T[]} some @param {(one: T) => string} key @returns {[string, T[]][]} */
function group(some, key) {
  /** @type {Map<string, T[]>} */
  const found = new Map();
  for (const one of some) {
    const name = key(one);
    const list = found.get(name);
    if (list) list.push(one);
    else found.set(name, [one]);
  }
  return [...found];
}

/** Return the tile at a place. @param {Layout} layout @param {number} x @param {number} y @returns {Tile|null} */
export function at(layout, x, y) {
  const { size, gap } = layout;
  const bands = layout.bands.filter((one) => y >= one.y && y < one.y + one.height);
  for (const block of bands.flatMap((one) => one.blocks)) {
    if (x < block.x || x > block.x + block.width) continue;
    for (const tile of block.tiles) if (x >= tile.x && x < tile.x + size + gap && y >= tile.y && y < tile.y + size + gap) return tile;
  }
  return null;
}

/**
 * Return the next tile for a key of the keyboard, as a position in the order.
 * @param {Layout} layout @param {number} position @param {string} key @returns {number}
 */
export function step(layout, position, key) {
  const { order } = layout;
  const here = order[position];
  if (key === "Home") return 0;
  if (key === "End") return order.length - 1;
  if (key === "ArrowRight") return Math.min(order.length - 1, position + 1);
  if (key === "ArrowLeft") return Math.max(0, position - 1);
  const down = key === "ArrowDown" || key === "PageDown";
  const far = key.startsWith("Page") ? 200 : 0;
  let [best, distance] = [position, Infinity];
  order.forEach((tile, i) => {
    const dy = (tile.y - here.y) * (down ? 1 : -1);
    if (dy <= far) return;
    const away = dy * 4 + Math.abs(tile.x - here.x);
    if (away < distance) [best, distance] = [i, away];
  });
  return best;
}
