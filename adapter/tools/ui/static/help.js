// The keys and the signs of the page, in a dialog that `?` opens.

import { fill, h, line, sign } from "./dom.js";
import { GPU_CLASSES, HPA_STATES } from "./states.js";

const KEYS = [
  ["/", "search names"],
  ["?", "this help"],
  ["Esc", "close what is open"],
  ["Tab", "go to the next control"],
  ["Enter", "open what is chosen; fold or unfold a group"],
  ["← → ↑ ↓", "move on the map of GPUs, or along a chart"],
  ["Home, End", "go to the first or the last one"],
];

/** The dialog. */
export class Help {
  /** @param {HTMLDialogElement} dialog @param {HTMLElement} button opens it */
  constructor(dialog, button) {
    this.dialog = dialog;
    const close = h("button.button.icon", { type: "button", "aria-label": "Close", title: "Close (Esc)", click: () => dialog.close() }, line("close"));
    fill(dialog, h("div.head", {}, h("h2", { id: "help-title" }, "Keys and signs"), close),
      h("h3", {}, "Keys"), h("dl.help", {}, KEYS.map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)])),
      h("h3", {}, "State of an HPA"), states(HPA_STATES), h("h3", {}, "Use of a GPU"), states(GPU_CLASSES));
    button.addEventListener("click", () => this.open());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }

  open() {
    if (!this.dialog.open) this.dialog.showModal();
  }
}

/** @param {Object<string, import("./states.js").State>} table */
function states(table) {
  return h("dl.help.states", {}, Object.values(table).map(({ word, sign: name, level, about }) => [
    h("dt.state", { class: `state ${level}` }, sign(name, level), h("b", {}, word)), h("dd", {}, about)]));
}
