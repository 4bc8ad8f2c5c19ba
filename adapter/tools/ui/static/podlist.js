// Pods and workloads with their values, and why a value is missing.

import { h, sign } from "./dom.js";
import { middle, NONE } from "./format.js";
import { link } from "./route.js";
import { missing, SortedTable, two } from "./table.js";

/** Letters of a pod's name that are shown: its end tells the pods of a workload apart. */
const NAME = 23;

/** Make the table of pods. */
export function podTable() {
  return new SortedTable({
    label: "Pods",
    class: "folds.pair",
    key: (pod) => `${pod.namespace}/${pod.name}`,
    columns: [
      { key: "name", label: "Pod", class: "col-name", value: (pod) => `${pod.namespace}/${pod.name}`, cell: podName },
      { key: "util", label: "Utilization", class: "num col-util", down: true, value: (pod) => pod.utilNumber, cell: (pod) => pod.util ?? missing(pod.whyNot ?? "no value") },
      { key: "how", label: "Attribution", class: "drop", value: (pod) => pod.whyNot ?? pod.how, cell: (pod) => (pod.whyNot ? whyCell(pod) : h("span.soft", {}, pod.how ?? "")) },
      { key: "mem", label: "Memory", class: "num drop wide", cell: (pod) => pod.mem },
      { key: "waiting", label: "Waiting", class: "num drop wide", down: true, value: (pod) => pod.waitingNumber, cell: (pod) => pod.waiting ?? missing("no queue is reported") },
      { key: "node", label: "Node", class: "drop", value: (pod) => pod.node, cell: nodeCell },
    ],
  });
}

/** Make the table of pods without a value. */
export function blindTable() {
  return new SortedTable({
    label: "Pods without a value",
    class: "folds.pair",
    key: (pod) => `${pod.namespace}/${pod.name}`,
    columns: [
      { key: "name", label: "Pod", class: "col-pod", value: (pod) => `${pod.namespace}/${pod.name}`, cell: podName },
      { key: "why", label: "Why no value", class: "col-why", value: (pod) => pod.whyNot, cell: whyCell },
      { key: "node", label: "Node", class: "drop", value: (pod) => pod.node, cell: nodeCell },
    ],
  });
}

function podName(pod) {
  const address = link({ kind: "pod", namespace: pod.namespace, name: pod.name });
  return two(h("a", { href: address, title: pod.name }, h("bdi", {}, middle(pod.name, NAME))), h("bdi", {}, pod.namespace));
}

function whyCell(pod) {
  const level = pod.node ? "bad" : "warning";
  return h("span.state", {}, sign(level), h("span.cut", { title: pod.whyNot }, words(pod.whyNot)));
}

function nodeCell(pod) {
  return pod.node ? two(h("bdi", { title: pod.node }, pod.node), pod.pool) : missing("waits for a node");
}

/** Make the table of workloads. */
export function workloadTable() {
  return new SortedTable({
    label: "Workloads",
    class: "folds.pair",
    key: (one) => `${one.namespace}/${one.name}`,
    columns: [
      { key: "name", label: "Workload", class: "col-name", value: (one) => `${one.namespace}/${one.name}`, cell: (one) => two(workloadName(one), h("bdi", {}, one.namespace)) },
      { key: "util", label: "Utilization", class: "num col-util", down: true, value: (one) => one.utilNumber, cell: (one) => (one.util ? two(one.util, one.max && one.max !== one.util ? `max ${one.max}` : null) : missing("no pod has a value")) },
      { key: "measured", label: "Measured", class: "num col-mem", value: (one) => one.measuredNumber, cell: (one) => (one.pods ? `${one.measured ?? NONE} of ${one.pods}` : null) },
      { key: "hpa", label: "HPA", class: "drop", value: (one) => one.hpa, cell: (one) => (one.hpa ? two(h("bdi", {}, one.hpa), one.target) : missing("no HPA")) },
      { key: "wants", label: "Wants", class: "num drop col-util", value: (one) => one.wantsNumber, cell: (one) => one.wants },
      { key: "idle", label: "Idle", class: "num drop wide", cell: (one) => one.idle },
    ],
  });
}

function workloadName(one) {
  const name = h("bdi", {}, one.name);
  if (!one.hpa) return h("b", { title: one.name }, name);
  return h("a", { href: link({ kind: "hpa", namespace: one.namespace, name: one.hpa }), title: one.name }, name);
}

/** "exporter_names_no_pod" as words. @param {string} reason */
export const words = (reason) => reason.replaceAll("_", " ");

/** Pods without a value, by reason, the most frequent first. @param {any[]} pods @returns {[string, number][]} */
export function reasons(pods) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const pod of pods) if (pod.whyNot) found.set(pod.whyNot, (found.get(pod.whyNot) ?? 0) + 1);
  return [...found].sort((one, other) => other[1] - one[1]);
}
