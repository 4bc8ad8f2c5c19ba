// What each pool of GPU nodes does, and the largest pod that still fits.

import { h } from "./dom.js";
import { count } from "./format.js";
import { missing, SortedTable, two } from "./table.js";

/** Make the table. */
export function poolTable() {
  const number = (/** @type {string} */ key, /** @type {string} */ label, /** @type {string} */ word) => ({ key, label, class: "num col-count", down: true, value: (/** @type {any} */ pool) => pool[key], cell: (/** @type {any} */ pool) => two(String(pool[key]), word) });
  return new SortedTable({
    label: "Capacity of the node pools",
    class: "folds.pools",
    key: (pool) => pool.name,
    columns: [
      { key: "name", label: "Pool", value: (pool) => pool.name, cell: (pool) => two(h("bdi", { title: pool.name }, pool.name), about(pool)) },
      number("busy", "Busy", "busy"),
      number("idle", "Idle", "idle"),
      number("free", "Free", "free"),
      { key: "largest", label: "Largest pod that fits", value: (pool) => pool.largest ?? "", cell: largest },
      { key: "headroom", label: "Headroom", class: "drop", down: true, value: (pool) => pool.headroom, cell: headroom },
      { key: "layouts", label: "MIG layouts", class: "drop wide", value: (pool) => pool.layouts ?? "", cell: (pool) => h("span.cut", { title: pool.layouts }, pool.layouts ?? "") },
    ],
  });
}

/** How large the pool is, and what is neither held nor free. */
function about(pool) {
  const rest = [[pool.blocked, "blocked"], [pool.unheld, "busy without a pod"], [pool.unmeasured, "not measured"]]
    .filter(([number]) => number).map(([number, word]) => `${number} ${word}`);
  const nodes = `${count(pool.nodes, "node")}${pool.closed ? ` (${pool.closed} closed)` : ""}`;
  const text = [`${count(pool.gpus, "GPU")} on ${nodes}`, ...rest].join(", ");
  return h("span.cut", { title: text }, text);
}

/** The amounts without the vendors' domains, which the title has. @param {string} text */
const short = (text) => text.replace(/[a-z0-9.-]+\//g, "");

/** What nodepool keeps free, and the forecast behind it. */
function headroom(pool) {
  if (pool.headroom === null) return missing(pool.headroomWhy);
  return two(count(pool.headroom, "pod"), pool.headroomWhy && h("span.cut", { title: pool.headroomWhy }, pool.headroomWhy));
}

function largest(pool) {
  if (!pool.largest) return missing("no GPU is left for a pod");
  const parts = [pool.left === pool.largest ? "" : `of ${short(pool.left)} left`, pool.fragmentedNumber ? `${pool.fragmented} fragmented` : ""].filter(Boolean).join(", ");
  return two(h("span.cut", { title: pool.largest }, short(pool.largest)), parts && h("span.cut", { title: parts }, parts));
}
