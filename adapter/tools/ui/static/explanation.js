// The lines of an explanation, exactly as the command prints them, with links and copy buttons.

import { h } from "./dom.js";
import { copyButton } from "./copy.js";
import { link } from "./route.js";

const FIX = /^(\s*)fix: (.*)$/;
const COMMAND = /^(kubectl|helm|gpu-metrics-adapter|az|gcloud|aws|eksctl)\s/;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}._-]*(?:\/[\p{L}\p{N}][\p{L}\p{N}._-]*)?/gu;

/**
 * @param {string[]} lines
 * @param {(word: string) => import("./route.js").Thing|null} find the thing that a word names
 */
export function showLines(lines, find) {
  return h("div.lines", {}, lines.map((text, i) => one(text, i, find)));
}

function one(text, i, find) {
  const fix = FIX.exec(text);
  if (fix) return h("div.fix", {}, h("span", {}, linked(text.trimStart(), find)), copyable(fix[2]));
  const plain = text.trim();
  if (COMMAND.test(plain)) return h("div.fix", {}, h("span", {}, plain), copyable(plain));
  const level = /^\s*[x×]\s/.test(text) ? "bad" : /^\s*[!‼]\s/.test(text) ? "warning" : /^\s*note\b/.test(text) ? "note" : i === 0 ? "first" : "plain";
  const line = h(`div.${level}`, {}, linked(text, find));
  line.style.setProperty("--in", String(text.length - text.trimStart().length));
  return line;
}

/** The command within a fix: what is in backquotes, else all of it. */
function copyable(fix) {
  const quoted = /`([^`]+)`/.exec(fix);
  const text = quoted ? quoted[1] : fix;
  return copyButton(text, COMMAND.test(text) ? "Copy the command" : "Copy the fix");
}

/** Split a line into texts and links, without a change of its text. */
function linked(text, find) {
  /** @type {(string|Node)[]} */
  const found = [];
  let end = 0;
  for (const match of text.matchAll(WORD)) {
    const word = match[0].replace(/[._-]+$/, "");
    const thing = find(word);
    if (!thing) continue;
    found.push(text.slice(end, match.index), h("a", { href: link(thing) }, word));
    end = match.index + word.length;
  }
  return [...found, text.slice(end)];
}
