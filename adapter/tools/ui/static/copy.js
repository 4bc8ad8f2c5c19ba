// Commands that can be copied.

import { fill, h, line } from "./dom.js";

/** Make a button that copies a text. @param {string} text @param {string} [label] */
export function copyButton(text, label = "Copy the command") {
  const word = h("span", {}, "Copy");
  const said = h("span.hidden", { role: "status" });
  const button = h("button.button.small", { type: "button", title: label, "aria-label": `${label}: ${text}` }, line("copy"), word, said);
  button.addEventListener("click", async () => {
    const done = await copy(text);
    fill(word, done ? "Copied" : "Select it");
    fill(said, done ? "Copied" : "The browser did not copy. Select the text.");
    setTimeout(() => fill(word, "Copy"), 2000);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A command with its button. @param {string} text */
export function command(text) {
  return h("div.command", {}, h("code", {}, text), copyButton(text));
}
