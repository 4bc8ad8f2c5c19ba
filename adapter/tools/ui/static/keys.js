// The keys of the whole page, and the search.

import { choose, open, route } from "./route.js";

const get = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));

/**
 * @param {import("./help.js").Help} help
 * @param {(q: string) => import("./route.js").Thing|null} first the first thing that a search finds
 */
export function listenToKeys(help, first) {
  let typed = 0;
  const search = get("search");
  search.addEventListener("input", () => {
    // The letter is painted first.
    clearTimeout(typed);
    typed = setTimeout(() => choose("q", search.value.trim()), 80);
  });
  search.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") {
      search.value = "";
      choose("q", "");
    } else if (event.key === "Enter") {
      const found = search.value.trim() ? first(search.value) : null;
      if (found) open(found);
    }
  });
  addEventListener("keydown", (event) => {
    const typing = /** @type {Element} */ (event.target).closest?.("input, select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || help.dialog.open) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "?") help.open();
    else if (event.key === "Escape" && route().thing) open(null);
  });
}
