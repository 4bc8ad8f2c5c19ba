// The GPUs as a table: the same as the map, to read and to sort.

import { h, sign } from "./dom.js";
import { thingOf } from "./names.js";
import { objects } from "./parts.js";
import { link } from "./route.js";
import { span } from "./format.js";
import { GPU_CLASSES, UNKNOWN } from "./states.js";
import { missing, sick, SortedTable, two } from "./table.js";

const ORDER = Object.keys(GPU_CLASSES);

function useCell(gpu) {
  const state = GPU_CLASSES[gpu.class] ?? UNKNOWN;
  return h(`span.state.${state.level}`, { title: gpu.blocked ?? state.about }, sign(state.sign), h("span.cut", {}, state.word));
}

/** Make the table. */
export function gpuTable() {
  return new SortedTable({
    label: "GPUs",
    class: "folds.pair",
    key: (gpu) => gpu.name,
    columns: [
      { key: "name", label: "GPU", class: "col-name", value: (gpu) => gpu.name, cell: (gpu) => two(
        h("a", { href: link(thingOf(gpu)), title: gpu.name }, h("bdi", {}, gpu.name)),
        gpu.unhealthy ? sick(gpu.unhealthy) : [gpu.model, gpu.profile].filter(Boolean).join(" ")) },
      { key: "use", label: "Use", class: "drop wide", value: (gpu) => ORDER.indexOf(gpu.class), cell: useCell },
      { key: "util", label: "Utilization", class: "num col-util", down: true, value: (gpu) => gpu.util, cell: (gpu) => gpu.utilText ?? missing("no utilization is reported") },
      { key: "mem", label: "Memory", class: "num drop col-mem", down: true, value: (gpu) => gpu.memShare, cell: (gpu) => gpu.mem },
      { key: "node", label: "Node", class: "drop wide", value: (gpu) => gpu.node, cell: (gpu) => two(h("bdi", {}, gpu.node ?? missing()), gpu.pool) },
      { key: "pods", label: "Pods", class: "drop", value: (gpu) => gpu.pods, cell: (gpu) => (gpu.pods ? two(h("bdi", { title: gpu.pods }, gpu.pods), gpu.sharing) : missing(gpu.unreported ? "no exporter reports it" : "no pod")) },
      { key: "idle", label: "Idle", class: "num drop wide", value: (gpu) => gpu.idleSince, cell: (gpu) => (gpu.idleSince ? span(Date.now() / 1000 - gpu.idleSince) : "") },
    ],
  });
}

/** Join the devices with their load. @param {any} gpus @param {any} load @param {number[]} kept */
export function rows(gpus, load, kept) {
  const all = objects(gpus);
  return kept.map((i) => {
    const gpu = all[i];
    const of = (/** @type {string} */ key) => load?.[key]?.[i] ?? null;
    return { ...gpu, class: of("class"), util: of("util"), utilText: of("utilText"), mem: of("mem"), memShare: of("memShare"), pods: of("pods"), idleSince: of("idleSince"), blocked: of("blocked"), unhealthy: of("unhealthy") };
  });
}
