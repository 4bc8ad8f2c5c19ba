// What happened, newest first, with the reason.

import { fill, h, sign } from "./dom.js";
import { clock, span } from "./format.js";
import { words } from "./podlist.js";
import { link } from "./route.js";
import { reason } from "./states.js";

const MOST = 200;

/** The list of the timeline. */
export class Timeline {
  constructor() {
    this.list = h("ol", {});
    this.element = h("div.events", { tabindex: 0, role: "group", "aria-label": "Timeline" }, this.list);
    /** @type {Set<string>} */
    this.known = new Set();
    this.version = "";
  }

  /** @param {any[]} events newest first */
  show(events) {
    const version = JSON.stringify([events.length, events[0], events.at(-1), location.hash.split("?")[1]]);
    if (version === this.version) return;
    this.version = version;
    const shown = events.slice(0, MOST);
    const keys = new Set(shown.map(keyOf));
    const first = !this.known.size;
    fill(this.list, shown.map((event) => entry(event, !first && !this.known.has(keyOf(event)))));
    if (events.length > MOST) this.list.append(h("li.event", {}, h("span"), h("span"), h("p.soft", {}, `${events.length - MOST} older entries: narrow the time or the filters.`)));
    this.known = keys;
  }
}

const keyOf = (event) => `${event.time} ${event.kind} ${event.about?.namespace}/${event.about?.name} ${event.text}`;

/** The text with its name as a link; the name comes first if the text does not contain it. */
function named(text, about, name) {
  if (!name) return text;
  const shown = [about.shown, name, about.name].find((one) => one && text.includes(one)) ?? "";
  const address = link({ kind: about.kind, namespace: about.namespace ?? "", name: about.name });
  const anchor = h("a", { href: address }, h("bdi", {}, shown || name));
  if (!shown) return [anchor, " ", text];
  const at = text.indexOf(shown);
  return [text.slice(0, at), anchor, text.slice(at + shown.length)];
}

function entry(event, fresh) {
  const { about } = event;
  const name = about?.name ? [about.namespace ? `${about.namespace}/` : "", about.name].join("") : "";
  const time = new Date(event.time * 1000);
  return h(`li.event${fresh ? ".fresh" : ""}`, {},
    h("time", { datetime: time.toISOString(), title: `${time.toString()}, ${span(Date.now() / 1000 - event.time)} ago` }, clock(event.time)),
    sign(event.level),
    h("div", {},
      h("p", {}, h("span.hidden", {}, { bad: "Problem: ", warning: "Warning: ", good: "Good: " }[event.level] ?? ""),
        named(event.text, about, name)),
      event.reason ? h("p.reason", {}, event.kind === "pod" ? words(event.reason) : reason(event.reason)) : null));
}
