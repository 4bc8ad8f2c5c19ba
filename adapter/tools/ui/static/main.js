// The page: parts from the stream, the address, and the panels that show them.

import { listen, range, showConnection, showFilters, showPlace } from "./controls.js";
import { h, say } from "./dom.js";
import * as filter from "./filter.js";
import { Fleet } from "./fleet.js";
import { count, money, NONE } from "./format.js";
import { gpuTable, rows } from "./gputable.js";
import { Help } from "./help.js";
import { History } from "./history.js";
import { HpaList, keyOf } from "./hpalist.js";
import { idleTable } from "./idlelist.js";
import { listenToKeys } from "./keys.js";
import { Names } from "./names.js";
import { empty, notices, place, segments, status, tally } from "./panel.js";
import { objects, Parts } from "./parts.js";
import { poolTable } from "./pooltable.js";
import { blindTable, podTable, reasons, words, workloadTable } from "./podlist.js";
import { changes, choose, refresh, route } from "./route.js";
import { Side } from "./side.js";
import { Stream } from "./stream.js";
import { Timeline } from "./timeline.js";
import { showVerdict } from "./verdict.js";

const get = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const LARGE = 1500;

const parts = new Parts();
const now = parts.now;
/** The time of the trends: not before anything is known, which is before the page was started if the adapter has kept a past. */
const time = () => /** @type {[number, number]} */ ([Math.max(range(now.about, now.past).since, Math.min(now.past?.since ?? Infinity, now.about?.started ?? 0)), Date.now() / 1000]);
const history = new History(() => parts.touch("history"));
const hpaList = new HpaList(history, time);
const fleet = new Fleet();
const gpuList = gpuTable();
const poolList = poolTable();
const timeline = new Timeline();
const podList = podTable();
const blindList = blindTable();
const workloadList = workloadTable();
const idleList = idleTable(() => now.idle?.currency ?? now.about?.currency ?? "");

/** The names of the parts as they are now. */
let known = { of: /** @type {any[]} */ ([]), names: new Names({}) };
function names() {
  const of = [now.pods, now.hpas, now.gpus, now.load, now.workloads];
  if (of.some((part, i) => part !== known.of[i])) known = { of, names: new Names(now) };
  return known.names;
}

const side = new Side(get("side"), {
  names,
  hpa: (namespace, name) => (now.hpas ?? []).find((/** @type {any} */ hpa) => hpa.namespace === namespace && hpa.name === name),
  history,
  span: time,
  stored: () => range(now.about, now.past).stored,
  source: () => (now.about?.prometheus ? "Prometheus" : "the adapter"),
});

function showNotices() {
  const interval = now.about?.interval ?? 5;
  say(get("hpas-past"), now.past?.message ?? "");
  for (const [id, lists] of /** @type {[string, string[]][]} */ ([["hpas", ["hpas"]], ["fleet", ["gpus", "gpunodes", "gpupools"]], ["timeline", ["events"]], ["pods", ["gpupods", "gpuworkloads"]], ["idle", []]])) {
    notices(get(`${id}-notices`), now.panels, lists, interval);
  }
}

/** How many rows are left; a list that was not read has none to count. */
const sum = (part, some) => (part ? some.length.toLocaleString("en-US") : NONE);

/** What stands in a panel without rows. */
function nothing(list, all, title, text, ...commands) {
  if (all) return empty("Nothing fits the filters.", "Clear them to see the rest.");
  const state = status(now.panels, list);
  if (state === "waiting") return empty("Reading the cluster …", "The first look can take some seconds.");
  if (state !== "ok") return empty("No data.", "The note above says why.");
  return empty(title, text, ...commands);
}

function showHpas() {
  const { filters } = route();
  const all = now.hpas ?? [];
  const shown = filter.hpas(now.hpas, filters);
  tally("hpas", shown.length, now.hpas ? all.length : null, all.every((one) => one.kind === "HPA") ? "HPA" : "autoscaler", filters.pool || filters.model ? " · an HPA belongs to no node pool or model: not filtered by them" : "");
  place(get("hpas-body"), hpaList.table.element, shown.length ? null : nothing("hpas", all.length, "No HPA exists.",
    "An HPA appears here with its state and its values. The metrics that it can use:", "kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2"));
  if (!shown.length) return;
  hpaList.show(shown);
}

function showPools() {
  const { filters } = route();
  const all = objects(now.pools);
  const shown = all.filter((pool) => (!filters.pool || pool.name === filters.pool) && filter.search(filters.q)(pool.name));
  tally("fleet", shown.length, now.pools ? all.length : null, "pool");
  place(get("fleet-body"), poolList.element, shown.length ? null : nothing("gpupools", all.length, "No node has a GPU.", "A pool appears here with its first GPU node."));
  if (shown.length) poolList.show(shown);
}

function showGpus() {
  const { filters } = route();
  segments(get("fleet-tools"), [["", "Map"], ["table", "Table"], ["pools", "Capacity"]], filters.map ?? "", (value) => choose("map", value));
  if (filters.map === "pools") return showPools();
  const { gpus, load } = now;
  // A row of the load belongs to a row of the GPUs of one revision.
  if (gpus && load && load.of !== gpus.revision) return;
  const narrowed = filter.gpus(gpus, load, filters);
  const all = gpus?.rows.length ?? 0;
  const asTable = filters.map === "table";
  tally("fleet", narrowed.kept.length, gpus ? all : null, "GPU", filters.q || filters.use ? ` · ${narrowed.kept.length - narrowed.dim.size} found` : "");
  get("main").classList.toggle("large", all > LARGE);
  place(get("fleet-body"), asTable ? gpuList.element : fleet.element, narrowed.kept.length ? null : nothing("gpus", all, "No GPU is reported.",
    "Either the cluster has no GPU node now, or no exporter reports one. The checks say which, with the fix:", "gpu-metrics-adapter doctor"));
  if (!narrowed.kept.length) return;
  if (asTable) gpuList.show(rows(gpus, load, narrowed.kept.filter((i) => !narrowed.dim.has(i))));
  else fleet.show(gpus, load, narrowed);
}

function showTimeline() {
  const { filters } = route();
  const shown = filter.events(now.timeline, filters, range(now.about, now.past).since);
  const all = (now.timeline ?? []).length;
  tally("timeline", shown.length, now.timeline ? all : null, "event");
  place(get("timeline-body"), timeline.element, shown.length ? null : all
    ? empty("Nothing happened in this time.", `${count(all, "older or other event")} do not fit the time or the filters.`)
    : empty("Nothing has happened yet.", "Scale events, lost exporters and new nodes appear here."));
  if (shown.length) timeline.show(shown);
}

function showPods() {
  const { filters } = route();
  const all = objects(now.pods);
  const fitting = filter.pods(now.pods, filters);
  const without = fitting.filter((pod) => pod.whyNot);
  const fits = filter.search(filters.q);
  const workloads = objects(now.workloads).filter((one) => (!filters.namespace || one.namespace === filters.namespace) && fits(one.namespace, one.name, one.hpa));
  const view = filters.pods ?? (without.length ? "none" : "all");
  segments(get("pods-tools"), [["none", `No value ${sum(now.pods, without)}`], ["all", `All ${sum(now.pods, fitting)}`], ["workloads", `Workloads ${sum(now.workloads, workloads)}`]], view, (value) => choose("pods", value));
  const why = reasons(without).map(([reason, number]) => `${words(reason)} × ${number.toLocaleString("en-US")}`);
  const some = `${why.slice(0, 3).join(", ")}${why.length > 3 ? ` and ${why.length - 3} more` : ""}`;
  say(get("pods-count"), !now.pods ? "not known" : view === "none" ? some : count(all.length, "pod"));
  const table = { workloads: workloadList, none: blindList }[view] ?? podList;
  const shown = view === "workloads" ? workloads : view === "none" ? without : fitting;
  const list = view === "workloads" ? "gpuworkloads" : "gpupods";
  place(get("pods-body"), table.element, shown.length ? null : view === "none" && fitting.length
    ? empty("Every pod has a value.", "A pod without one appears here with the reason.")
    : nothing(list, all.length, "No pod has a GPU.", "A pod that requests a GPU appears here."));
  if (!shown.length) return;
  table.show(shown);
}

function showIdle() {
  const { filters } = route();
  const { idle } = now;
  const all = idle?.devices ?? [];
  const unread = now.verdict?.pods?.unmeasured ?? 0;
  const shown = filter.idle(all, now.gpus, filters);
  const price = idle?.pricePerHour === null || idle?.pricePerHour === undefined ? "" : ` · ${money(idle.pricePerHour, idle.currency)} an hour`;
  tally("idle", shown.length, idle ? all.length : null, "idle GPU", `${price}${idle?.left ? ` · ${idle.left} more not looked at` : ""}${unread ? ` · ${count(unread, "pod")} without a value` : ""}`);
  if (!get("idle-tools").firstChild) get("idle-tools").append(h("a.button.small", { href: "/api/idle.csv", download: "idle.csv" }, "Download CSV"));
  get("idle-tools").hidden = !all.length;
  place(get("idle-body"), idleList.element, shown.length ? null : noIdle(idle, all.length));
  if (shown.length) idleList.show(shown);
}

/** What stands in the panel of idle GPUs without rows. */
function noIdle(idle, all) {
  const state = status(now.panels, "gpupods");
  const counted = now.verdict?.gpus?.idle ?? 0;
  if (!all && idle?.error) return empty("The pods that hold idle GPUs cannot be read.", idle.error);
  if (!all && !["ok", "waiting"].includes(state)) return empty("No data.", "Idle GPUs are found from the pods, and these could not be read.");
  if (!all && counted) return empty(`${count(counted, "idle GPU")} not listed yet.`, "The pods that hold them are read less often than the rest.");
  if (!idle || all || state !== "ok") return nothing("gpupods", all, "Nothing is known about idle GPUs yet.", "Idle GPUs are read less often than the rest.");
  const unread = now.verdict?.pods?.unmeasured ?? 0;
  if (unread) return empty("No GPU with a value is idle.", `${count(unread, "pod")} ${unread === 1 ? "has" : "have"} no value: nobody knows whether their GPUs are idle.`);
  return empty("No held GPU is idle.", idle.held ? `Pods hold ${count(idle.held, "GPU")}.` : "A GPU that a pod holds and that does nothing for the time of --idle-after (10 minutes by default) appears here, with its price.");
}

function showFound() {
  const { q } = route().filters;
  const input = get("search");
  if (document.activeElement !== input && input.value !== (q ?? "")) input.value = q ?? "";
  if (!q) return say(get("found"), "");
  const first = names().first(filter.search(q));
  say(get("found"), first ? `Enter opens ${first.kind} ${first.namespace ? `${first.namespace}/` : ""}${first.name}` : "Nothing has this name.");
}

function showSide() {
  side.show(route().thing);
}

/** Mark what is explained, where it is listed. */
function showOpened() {
  const { thing } = route();
  const opened = (/** @type {string} */ kind) => (thing?.kind === kind ? keyOf(thing) : "");
  hpaList.table.select(opened("hpa"));
  for (const table of [podList, blindList]) table.select(opened("pod"));
  fleet.opened = thing?.kind === "gpu" ? thing.name : "";
  gpuList.select(fleet.opened);
  fleet.drawRings();
}

parts.read(["route", "thing", "filters", "view", "map"], showSide); // what a click asks for comes first
parts.first = showSide;
parts.read(["route", "thing"], showOpened);
parts.read(["about"], () => showPlace(now.about));
parts.read(["past"], () => history.forget());
parts.read(["verdict", "about", "idle"], () => showVerdict(now.verdict, now.about, now.idle));
parts.read(["panels", "about", "past", "tick"], showNotices);
parts.read(["hpas", "panels", "route", "filters", "about"], showHpas);
parts.read(["history", "theme"], () => hpaList.again());
parts.read(["gpus", "load", "pools", "panels", "route", "filters", "map", "theme"], showGpus);
parts.read(["timeline", "about", "route", "filters"], showTimeline);
parts.read(["pods", "workloads", "panels", "route", "filters", "view"], showPods);
parts.read(["idle", "verdict", "panels", "route", "filters"], showIdle);
parts.read(["about", "gpus", "pods", "hpas", "past", "route", "filters"], () => showFilters(now));
parts.read(["gpus", "pods", "hpas", "route", "filters"], showFound);
parts.read(["hpas"], () => history.add(now.hpas, (now.panels ?? []).find((/** @type {any} */ one) => one.panel === "hpas")?.updated ?? Date.now() / 1000));
parts.read(["history", "hpas", "route", "thing", "filters", "theme", "about"], () => side.draw());
parts.read(["hpas", "load", "pods", "gpus"], () => side.relink());
parts.read(["hpas", "load"], () => side.refresh(Math.max(10, 2 * (now.about?.interval ?? 5))));
parts.read(["held", "stream", "tick", "panels", "about"], () => showConnection(stream, parts));

const stream = new Stream((name, value) => parts.take(name, value), () => {
  if (stream.state === "live" && stream.lost) history.forget();
  stream.lost = stream.state === "lost" || stream.state === "refused";
  parts.touch("stream");
});

listen(parts, () => parts.touch("theme"), () => history.forget());
let address = route();
addEventListener("hashchange", () => {
  const before = address;
  address = route();
  parts.touch(...changes(before, address));
});
for (const kind of ["pointerdown", "click"]) addEventListener(kind, refresh, true);
get("skip").addEventListener("click", (/** @type {Event} */ event) => {
  event.preventDefault();
  get("main").focus();
});
listenToKeys(new Help(get("help"), get("help-open")), (q) => names().first(filter.search(q)));
setInterval(() => {
  parts.touch("tick");
  side.tick();
}, 1000);
parts.touch("route");
