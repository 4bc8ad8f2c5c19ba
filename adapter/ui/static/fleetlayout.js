// Where each tile of the map is: pools as bands, nodes as blocks, GPUs as tiles. No drawing here.

/**
 * @typedef {{index: number, x: number, y: number}} Tile
 * @typedef {{name: string, x: number, y: number, width: number, tiles: Tile[]}} Block
 * @typedef {{name: string, y: number, height: number, count: number, blocks: Block[]}} Band
 * @typedef {{size: number, gap: number, height: number, bands: Band[], order: Tile[], labels: boolean}} Layout
 */

const SIZES = [52, 44, 36, 30, 24, 20, 16, 13, 10, 8, 6];
const MARGIN = 16;
const TITLE = 28;
const LABEL = 18;

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
  /** @type {Layout} */
  const found = { size, gap, height: 0, bands: [], order: [], labels };
  let y = 4;
  for (const [name, nodes] of pools) {
    const band = { name, y, height: 0, count: 0, blocks: /** @type {Block[]} */ ([]) };
    let [x, top, tallest] = [MARGIN, y + TITLE, 0];
    for (const [node, some] of nodes) {
      const columns = across(some.length, Math.max(1, Math.floor((width - 2 * MARGIN + gap) / (size + gap))));
      const wide = Math.max(columns * (size + gap) - gap, labels ? Math.min(76, width - 2 * MARGIN) : 0);
      const high = Math.ceil(some.length / columns) * (size + gap) - gap + (labels ? LABEL : 0);
      if (x > MARGIN && x + wide > width - MARGIN) [x, top, tallest] = [MARGIN, top + tallest + space, 0];
      const start = top + (labels ? LABEL : 0);
      const block = { name: node, x, y: top, width: wide, tiles: some.map((tile, i) => ({
        index: tile.index, x: x + (i % columns) * (size + gap), y: start + Math.floor(i / columns) * (size + gap),
      })) };
      band.blocks.push(block);
      for (const tile of block.tiles) found.order.push(tile);
      band.count += some.length;
      x += wide + space;
      tallest = Math.max(tallest, high);
    }
    y = top + tallest + (size >= 16 ? 16 : 10);
    band.height = y - band.y;
    found.bands.push(band);
  }
  found.height = y;
  return found;
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
  const band = layout.bands.find((one) => y >= one.y && y < one.y + one.height);
  for (const block of band?.blocks ?? []) {
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
