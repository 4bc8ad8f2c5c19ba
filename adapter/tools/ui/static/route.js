// The address after the hash: what is open, and the filters. A link to it shows the same.

/**
 * @typedef {{kind: "pod"|"hpa"|"node"|"gpu", namespace: string, name: string}} Thing
 */

const FILTERS = ["namespace", "pool", "model", "q", "range", "pods", "map", "use"];
/** Filters that change one panel only. @type {Object<string, string>} */
const VIEWS = { pods: "view", map: "map", use: "map" };
const SPACED = new Set(["pod", "hpa"]);

/** @returns {{thing: Thing|null, filters: Object<string, string>}} */
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const given = new URLSearchParams(query);
  /** @type {Object<string, string>} */
  const filters = {};
  for (const key of FILTERS) if (given.get(key)) filters[key] = /** @type {string} */ (given.get(key));
  return { thing: parse(path.split("/").map(plain)), filters };
}

/**
 * What differs between two addresses: the thing, the view of a panel, or the filters.
 * @param {{thing: Thing|null, filters: Object<string, string>}} before
 * @param {{thing: Thing|null, filters: Object<string, string>}} after
 * @returns {string[]}
 */
export function changes(before, after) {
  const names = new Set(FILTERS.filter((key) => before.filters[key] !== after.filters[key]).map((key) => VIEWS[key] ?? "filters"));
  if (!same(before.thing, after.thing)) names.add("thing");
  return [...names];
}

/**
 * Give a link the filters of now: its row may be older than they are.
 * @param {Event} event on the link, before the browser follows it
 */
export function refresh(event) {
  const anchor = /** @type {Element} */ (event.target).closest?.('a[href^="#/"]');
  const [path] = anchor?.getAttribute("href")?.replace(/^#\//, "").split("?") ?? [];
  const thing = path && parse(path.split("/").map(plain));
  if (thing) anchor?.setAttribute("href", link(thing));
}

function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string[]} words @returns {Thing|null} */
function parse([kind, ...rest]) {
  if (SPACED.has(kind) && rest.length === 2 && rest.every(Boolean)) return { kind: /** @type {any} */ (kind), namespace: rest[0], name: rest[1] };
  if ((kind === "node" || kind === "gpu") && rest.length === 1 && rest[0]) return { kind, namespace: "", name: rest[0] };
  return null;
}

/** Return the address of a thing with the current filters. @param {Thing|null} thing @param {Object<string, string>} [filters] @returns {string} */
export function link(thing, filters = route().filters) {
  const path = thing ? [thing.kind, ...(thing.namespace ? [thing.namespace] : []), thing.name].map(encodeURIComponent).join("/") : "";
  const query = new URLSearchParams(FILTERS.filter((key) => filters[key]).map((key) => [key, filters[key]])).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Return the part of the server's address that names a thing. @param {Thing} thing @returns {string} */
export function path(thing) {
  return [thing.kind, ...(thing.namespace ? [thing.namespace] : []), thing.name].map(encodeURIComponent).join("/");
}

/** Open a thing, or nothing. @param {Thing|null} thing */
export function open(thing) {
  location.hash = link(thing);
}

/** Change one filter in the address, without a step in the history. @param {string} key @param {string} value */
export function choose(key, value) {
  const now = route();
  history.replaceState(null, "", link(now.thing, { ...now.filters, [key]: value }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** @param {Thing|null} one @param {Thing|null} other @returns {boolean} */
export function same(one, other) {
  return one?.kind === other?.kind && one?.namespace === other?.namespace && one?.name === other?.name;
}
