// The bar: connection, pause, theme, filters, time range.

import { fill, h, line, say, sign } from "./dom.js";
import { count, inOrder, span } from "./format.js";
import { column } from "./parts.js";
import { choose, link, route } from "./route.js";
import { freshness, listed, segments } from "./panel.js";

const get = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const RANGES = [["5", "5 min"], ["30", "30 min"], ["60", "1 h"], ["all", "All seen"]];
const LONGER = [["p360", "6 h"], ["p1440", "24 h"]];
const THEMES = { auto: ["light", "Theme: as the system"], light: ["dark", "Theme: light"], dark: ["auto", "Theme: dark"] };

const USUAL = "30";

/** Chosen range: seconds to look back, and minutes to ask Prometheus or the adapter for. @param {any} about @param {any} past @returns {{since: number, stored: number}} */
export function range(about, past) {
  const chosen = route().filters.range ?? USUAL;
  const now = Date.now() / 1000;
  if (chosen === "all") return { since: Math.min(past?.since ?? Infinity, about?.started ?? now - 1800), stored: 0 };
  if (chosen.startsWith("p")) {
    const minutes = Number(chosen.slice(1)) || 360;
    return { since: now - minutes * 60, stored: about?.prometheus || past?.since ? minutes : 0 };
  }
  return { since: now - (Number(chosen) || Number(USUAL)) * 60, stored: 0 };
}

/** Show where the page looks. @param {any} about */
export function showPlace(about) {
  if (!about) return;
  const where = [about.context, about.namespace ? `namespace ${about.namespace}` : "all namespaces", about.user ? `as ${about.user}` : ""].filter(Boolean);
  const place = get("place");
  say(place, `${about.demo ? "demo · " : ""}${where.join(" · ")}`);
  place.title = `${about.server ?? ""} version ${about.version ?? ""}`.trim();
}

/** What there is to choose, and the parts that it is of. */
let choices = { of: /** @type {any[]} */ ([]), seen: /** @type {any} */ ({}) };

/** @param {Object<string, any>} parts */
function choicesOf(parts) {
  const of = [parts.pods, parts.hpas, parts.gpus];
  if (of.every((part, i) => part === choices.of[i]) && choices.of.length) return choices.seen;
  const seen = { namespace: new Set(), pool: new Set(), model: new Set() };
  for (const [key, set] of Object.entries(seen)) {
    for (const value of column(parts.pods, key)) set.add(value);
    if (key !== "namespace") for (const value of column(parts.gpus, key)) set.add(value);
  }
  for (const hpa of parts.hpas ?? []) seen.namespace.add(hpa.namespace);
  choices = { of, seen };
  return seen;
}

/** Show the chosen filters, and what there is to choose. @param {Object<string, any>} parts */
export function showFilters(parts) {
  const { filters } = route();
  const seen = choicesOf(parts);
  for (const key of /** @type {const} */ (["namespace", "pool", "model"])) options(get(`filter-${key}`), seen[key], filters[key] ?? "");
  const set = ["namespace", "pool", "model", "q"].filter((key) => filters[key]);
  get("filter-clear").hidden = !set.length;
  say(get("filters-set"), set.length ? `(${set.length} set)` : "");
  segments(get("range"), /** @type {any} */ (parts.about?.prometheus || parts.past?.since ? [...RANGES, ...LONGER] : RANGES), filters.range ?? USUAL, (value) => choose("range", value === USUAL ? "" : value));
}

function options(select, values, chosen) {
  const all = [...new Set([...values, chosen].filter(Boolean))].sort(inOrder);
  const version = JSON.stringify(all);
  if (select.dataset.version !== version) {
    select.dataset.version = version;
    fill(select, h("option", { value: "" }, "All"), all.map((value) => h("option", { value }, value)));
  }
  if (select.value !== chosen) select.value = chosen;
}

/** Connect the controls. @param {import("./parts.js").Parts} parts @param {() => void} onTheme @param {() => void} onResume */
export function listen(parts, onTheme, onResume) {
  for (const key of ["namespace", "pool", "model"]) get(`filter-${key}`).addEventListener("change", (/** @type {any} */ event) => choose(key, event.target.value));
  get("filter-clear").addEventListener("click", () => {
    const { thing, filters } = route();
    history.replaceState(null, "", link(thing, { ...filters, namespace: "", pool: "", model: "", q: "" }));
    dispatchEvent(new HashChangeEvent("hashchange"));
    get("filter-namespace").focus();
  });
  get("pause").addEventListener("click", () => {
    parts.pause(!parts.paused);
    if (!parts.paused) onResume();
    showPause(parts.paused);
  });
  showPause(false);
  get("theme").addEventListener("click", () => {
    const root = document.documentElement;
    [root.dataset.theme] = THEMES[root.dataset.theme ?? "auto"];
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // The choice lasts for this visit.
    }
    showTheme();
    onTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onTheme);
  showTheme();
  // The filters fold on a narrow page only: a wide one has nothing to unfold them with.
  const narrow = matchMedia("(max-width: 899px)");
  const fold = () => {
    get("filters").open = !narrow.matches;
  };
  narrow.addEventListener("change", fold);
  fold();
}

function showPause(paused) {
  get("pause").setAttribute("aria-pressed", String(paused));
  get("pause").setAttribute("aria-label", "Pause");
  get("pause").title = paused ? "Go on with live data" : "Hold the page as it is";
  fill(get("pause"), line(paused ? "play" : "pause"), h("span.text", {}, paused ? "Resume" : "Pause"));
}

function showTheme() {
  const [, label] = THEMES[document.documentElement.dataset.theme ?? "auto"];
  set(get("theme"), label);
  fill(get("theme"), line("theme"));
}

function set(button, label) {
  button.title = label;
  button.setAttribute("aria-label", `${label}. Change it`);
}

/** Say whether the data are live. @param {import("./stream.js").Stream} stream @param {import("./parts.js").Parts} parts */
export function showConnection(stream, parts) {
  const fresh = freshness(parts.now.panels, parts.now.about?.interval ?? 5);
  const age = fresh.age === null ? "" : `data ${span(fresh.age)} old`;
  const [level, words, rest] = stream.state === "refused" ? ["bad", "Server started again", "open the address that it printed"]
    : stream.state === "lost" ? ["bad", "Connection lost", age || "the server does not answer"]
      : stream.state === "connecting" ? ["info", "Connecting", ""]
        : parts.paused ? ["warning", "Paused", [age, parts.held ? `${count(parts.held, "update")} held` : ""].filter(Boolean).join(", ")]
          : fresh.old.length ? [fresh.all ? "bad" : "warning", fresh.all ? "Not live" : `Old: ${listed(fresh.old)}`, age]
            : fresh.slow.length ? ["warning", `Read seldom: ${listed(fresh.slow)}`, age]
              : ["good", "Live", age];
  get("connection").className = `connection ${level}`;
  get("connection").dataset.stream = stream.state;
  const mark = get("connection-sign");
  if (mark.dataset.level !== level) {
    mark.dataset.level = level;
    fill(mark, sign(level));
  }
  say(get("connection-state"), words);
  say(get("connection-age"), rest ? `· ${rest}` : "");
}
