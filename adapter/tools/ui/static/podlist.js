// Pods and workloads with their values, and why a value is missing.

import { h, sign } from "./dom.js";
import { middle, NONE } from "./format.js";
import { link } from "./route.js";
import { missing, sick, SortedTable, two } from "./table.js";

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
      { key: "first", label: "First token", class: "num drop wide", down: true, value: (pod) => pod.firstTokenNumber, cell: (pod) => pod.firstToken ?? missing("nobody asks for it, or too few requests") },
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
  return pod.node ? two(h("bdi", { title: pod.node }, pod.node), pod.unhealthy ? sick(pod.unhealthy) : pod.pool) : missing("waits for a node");
}

/** Make the table of workloads. */
export function workloadTable() {
  return new SortedTable({
    label: "Workloads",
    class: "folds.pair",
    key: (workload) => `${workload.namespace}/${workload.name}`,
    columns: [
      { key: "name", label: "Workload", class: "col-name", value: (workload) => `${workload.namespace}/${workload.name}`, cell: (workload) => two(workloadName(workload), h("bdi", {}, workload.namespace)) },
      { key: "util", label: "Utilization", class: "num col-util", down: true, value: (workload) => workload.utilNumber, cell: utilCell },
      { key: "measured", label: "Measured", class: "num col-mem", value: (workload) => workload.measuredNumber, cell: (workload) => (workload.pods ? `${workload.measured ?? NONE} of ${workload.pods}` : null) },
      { key: "hpa", label: "HPA", class: "drop", value: (workload) => workload.hpa, cell: (workload) => (workload.hpa ? two(h("bdi", {}, workload.hpa), workload.target) : missing("no HPA")) },
      { key: "wants", label: "Wants", class: "num drop col-util", value: (workload) => workload.wantsNumber, cell: (workload) => workload.wants },
      { key: "idle", label: "Idle", class: "num drop wide", cell: (workload) => workload.idle },
    ],
  });
}

/** The mean of the pods, and their highest value where it is a point or more above the mean. */
function utilCell(workload) {
  if (!workload.util) return missing("no pod has a value");
  return two(workload.util, workload.maxNumber - workload.utilNumber >= 1 ? `max ${workload.max}` : null);
}

function workloadName(workload) {
  const name = h("bdi", {}, workload.name);
  if (!workload.hpa) return h("b", { title: workload.name }, name);
  return h("a", { href: link({ kind: "hpa", namespace: workload.namespace, name: workload.hpa }), title: workload.name }, name);
}

/** "exporter_names_no_pod" as words. @param {string} reason */
export const words = (reason) => reason.replaceAll("_", " ");

/** Pods without a value, by reason, the most frequent first. @param {any[]} pods @returns {[string, number][]} */
export function reasons(pods) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const pod of pods) if (pod.whyNot) counts.set(pod.whyNot, (counts.get(pod.whyNot) ?? 0) + 1);
  return [...counts].sort((left, right) => right[1] - left[1]);
}
