// The side panel: the explanation of what was clicked. On narrow screens it is a modal dialog.

import { Chart } from "./chart.js";
import { command } from "./copy.js";
import { fill, h, line, sign } from "./dom.js";
import { showLines } from "./explanation.js";
import { leading, recent } from "./history.js";
import { span } from "./format.js";
import { notice } from "./panel.js";
import { link, open, path, same } from "./route.js";

const KINDS = { pod: "Pod", hpa: "HPA", node: "Node", gpu: "GPU" };
const STATES = { 0: ["good", "Nothing blocks"], 1: ["bad", "Something blocks"], 2: ["warning", "It could not look at everything"] };
const NARROW = "(max-width: 899px)";

/** The panel. */
export class Side {
  /**
   * @param {HTMLDialogElement} dialog
   * @param {object} sources
   * @param {() => import("./names.js").Names} sources.names
   * @param {(namespace: string, name: string) => any} sources.hpa
   * @param {import("./history.js").History} sources.history
   * @param {() => [number, number]} sources.span
   * @param {() => number} sources.stored minutes to ask for; 0 for what the page has
   * @param {() => string} sources.source whom to ask: Prometheus, or the adapter
   */
  constructor(dialog, sources) {
    this.dialog = dialog;
    this.sources = sources;
    /** @type {import("./route.js").Thing|null} */
    this.thing = null;
    /** @type {any} */
    this.answer = null;
    this.time = 0;
    this.asked = 0;
    this.title = h("h2", { id: "side-title", tabindex: -1 });
    this.kind = h("p.kind");
    this.state = h("p.state");
    this.age = h("span.soft");
    this.trend = h("section", { hidden: true, "aria-label": "Trend" });
    this.why = h("section", { "aria-label": "Explanation" });
    this.about = h("section", { hidden: true, "aria-label": "Related" });
    this.again = h("section", { "aria-label": "Command" });
    const reload = h("button.button.icon", { type: "button", "aria-label": "Look again", title: "Look again", click: () => this.look() }, line("again"));
    const close = h("button.button.icon", { type: "button", "aria-label": "Close", title: "Close (Esc)", click: () => open(null) }, line("close"));
    fill(dialog, h("div.head", {}, h("div", {}, this.kind, this.title, this.state), reload, close), this.why, this.trend, this.about, this.again);
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      open(null);
    });
    dialog.addEventListener("click", (event) => event.target === dialog && matchMedia(NARROW).matches && open(null));
    matchMedia(NARROW).addEventListener("change", () => {
      if (!this.thing) return;
      dialog.close();
      this.present();
    });
  }

  present() {
    if (matchMedia(NARROW).matches) this.dialog.showModal();
    else this.dialog.show();
  }

  /** @param {import("./route.js").Thing|null} thing */
  show(thing) {
    if (same(thing, this.thing)) return;
    const before = this.thing;
    this.thing = thing;
    this.answer = null;
    if (!thing) return this.hide();
    if (!before) this.opener = /** @type {HTMLElement|null} */ (document.activeElement);
    fill(this.kind, KINDS[thing.kind], thing.namespace ? [" in ", h("bdi", {}, thing.namespace)] : null);
    fill(this.title, h("bdi", {}, thing.name));
    fill(this.state, h("span.soft", {}, "Looking …"));
    fill(this.why, h("p.soft", {}, "Reading what the cluster says about it."));
    this.trend.hidden = thing.kind !== "hpa";
    this.chart?.close();
    this.chart = null;
    this.about.hidden = true;
    fill(this.again);
    if (!this.dialog.open) this.present();
    this.dialog.scrollTop = 0;
    this.title.focus({ preventScroll: true });
    this.draw();
    this.look();
  }

  hide() {
    this.chart?.close();
    this.chart = null;
    const inside = this.dialog.contains(document.activeElement);
    this.dialog.close();
    if (!inside) return;
    if (this.opener?.isConnected && this.opener !== document.body) this.opener.focus();
    else document.getElementById("main")?.focus({ preventScroll: true });
  }

  /** Ask again, if the last answer is old. @param {number} seconds */
  refresh(seconds) {
    if (this.thing && !document.hidden && Date.now() / 1000 - this.asked >= seconds) this.look();
  }

  async look() {
    const thing = this.thing;
    if (!thing) return;
    this.asked = Date.now() / 1000;
    let answer;
    try {
      const response = await fetch(`/api/explain/${path(thing)}`, { cache: "no-store" });
      answer = await response.json();
    } catch {
      answer = { error: "The server of this page does not answer. Is gpu-metrics-adapter ui still running?" };
    }
    if (!same(thing, this.thing)) return;
    if (answer.error && this.answer) {
      this.fault = answer.error;
    } else {
      this.answer = answer;
      this.fault = "";
      this.time = Date.now() / 1000;
    }
    this.explain();
  }

  explain() {
    const { answer, thing } = this;
    if (!thing) return;
    const [level, words] = answer.error ? ["bad", "No explanation"] : STATES[answer.status] ?? STATES[0];
    this.state.className = `state ${level}`;
    fill(this.state, sign(level), h("b", {}, words), this.age);
    this.tick();
    if (answer.error) {
      fill(this.why, notice("bad", h("p", {}, answer.error)));
      return;
    }
    const version = JSON.stringify([answer.lines, this.fault]);
    if (this.why.dataset.version === version && this.why.querySelector(".lines")) return;
    this.why.dataset.version = version;
    const names = this.sources.names();
    this.whole = names.whole;
    fill(this.why, this.fault ? notice("warning", h("p", {}, `The last look failed: ${this.fault}`)) : null,
      showLines(answer.lines, (word) => names.find(word, thing)));
    const related = names.related(thing, answer.lines);
    this.about.hidden = !related.length;
    fill(this.about, h("h3", {}, "Related"), h("ul.related", {}, related.map((one) => h("li", {}, h("a", { href: link(one) },
      h("span.soft", {}, KINDS[one.kind]), h("bdi", {}, one.namespace && one.namespace !== thing.namespace ? `${one.namespace}/${one.name}` : one.name))))));
    fill(this.again, h("h3", {}, "The same in a terminal"), command(answer.command));
  }

  /** Link the names again, if the page did not have all of them. */
  relink() {
    if (!this.answer || this.whole !== false || !this.sources.names().whole) return;
    delete this.why.dataset.version;
    this.explain();
  }

  /** Say how old the explanation is. */
  tick() {
    const age = Date.now() / 1000 - this.time;
    if (this.answer && !this.answer.error) fill(this.age, `· looked ${age < 2 ? "just now" : `${span(age)} ago`}`);
  }

  /** Draw the trend of an HPA. */
  draw() {
    const { thing } = this;
    if (thing?.kind !== "hpa") return;
    if (!this.chart) {
      this.chart = new Chart();
      fill(this.trend, this.chart.element);
    }
    const hpa = this.sources.hpa(thing.namespace, thing.name);
    const minutes = this.sources.stored();
    const time = this.sources.span();
    if (minutes) {
      this.range(thing, minutes, hpa);
      return;
    }
    const series = this.sources.history.get(`${thing.namespace}/${thing.name}`);
    this.chart.show(recent(series ?? { time: [], value: [], goal: [], current: [], desired: [] }, time[0]), hpa && leading(hpa), time, "As this page has seen it, and the adapter before.");
  }

  /** Draw what is stored of some hours. */
  async range(thing, minutes, hpa) {
    const key = `${path(thing)} ${minutes}`;
    if (this.ranged === key && Date.now() / 1000 - this.rangedAt < 30) return;
    [this.ranged, this.rangedAt] = [key, Date.now() / 1000];
    const empty = { time: [], value: [], goal: [], current: [], desired: [] };
    let [series, note] = [/** @type {any} */ (empty), `From ${this.sources.source()}.`];
    try {
      const response = await fetch(`/api/range?${new URLSearchParams({ hpa: `${thing.namespace}/${thing.name}`, minutes: String(minutes) })}`, { cache: "no-store" });
      const answer = await response.json();
      if (answer.error) note = `${this.sources.source()}: ${answer.error}`;
      else series = { ...empty, ...(answer[`${thing.namespace}/${thing.name}`] ?? answer) };
    } catch {
      note = "The server of this page did not answer.";
    }
    const now = Date.now() / 1000;
    if (same(thing, this.thing)) this.chart?.show(series, hpa && leading(hpa), [now - minutes * 60, now], note);
  }
}
