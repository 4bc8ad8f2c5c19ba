// The names on the page, to link them and to find what belongs together.

import { firstPod } from "./filter.js";
import { objects } from "./parts.js";

/** @typedef {import("./route.js").Thing} Thing */

/**
 * What explains a GPU: itself, or the node of one that no exporter reports.
 * @param {{name: string, node: string, unreported: boolean|null}} gpu @returns {Thing}
 */
export function thingOf({ name, node, unreported }) {
  return unreported ? { kind: "node", namespace: "", name: node } : { kind: "gpu", namespace: "", name };
}

/** An index of the names of the parts. */
export class Names {
  /** @param {Object<string, any>} parts */
  constructor(parts) {
    this.pods = objects(parts.pods);
    this.hpas = parts.hpas ?? [];
    this.gpus = objects(parts.gpus);
    this.load = parts.load;
    /** Whether all parts with names have arrived. */
    this.whole = Boolean(parts.pods && parts.gpus && parts.load && parts.hpas);
    this.workloads = objects(parts.workloads);
    this.podSet = new Set(this.pods.map((pod) => `${pod.namespace}/${pod.name}`));
    this.hpaSet = new Set(this.hpas.map((/** @type {any} */ hpa) => `${hpa.namespace}/${hpa.name}`));
    this.gpuSet = new Set(this.gpus.map((gpu) => gpu.name));
    this.nodeSet = new Set([...this.gpus, ...this.pods].map((one) => one.node).filter(Boolean));
  }

  /** Return what a word names. @param {string} word @param {Thing} from what is explained @returns {Thing|null} */
  find(word, from) {
    const path = word.includes("/") ? word : `${from.namespace}/${word}`;
    const [namespace, name] = path.split("/");
    const thing = this.podSet.has(path) ? { kind: "pod", namespace, name }
      : this.gpuSet.has(word) ? { kind: "gpu", namespace: "", name: word }
        : this.nodeSet.has(word) ? { kind: "node", namespace: "", name: word }
          : this.hpaSet.has(path) ? { kind: "hpa", namespace, name } : null;
    if (!thing || (thing.kind === from.kind && thing.name === from.name && thing.namespace === from.namespace)) return null;
    return /** @type {Thing} */ (thing);
  }

  /** Things that belong to one: the node and GPUs of a pod, the pods of a node. @param {Thing} thing @param {string[]} lines @returns {Thing[]} */
  related(thing, lines) {
    /** @type {Map<string, Thing>} */
    const found = new Map();
    const add = (/** @type {string} */ kind, /** @type {string} */ namespace, /** @type {string} */ name) => {
      if (name && found.size < 40) found.set(`${kind} ${namespace}/${name}`, { kind: /** @type {any} */ (kind), namespace, name });
    };
    if (thing.kind === "pod") this.pods.filter((pod) => pod.namespace === thing.namespace && pod.name === thing.name).forEach((pod) => add("node", "", pod.node));
    this.gpus.forEach((gpu, i) => {
      if (thing.kind === "hpa") return;
      const pod = thing.kind === "node" ? null : firstPod(this.load?.pods?.[i]);
      const holds = pod && pod.namespace === thing.namespace && pod.name === thing.name;
      if (thing.kind === "pod" && holds) add("gpu", "", gpu.name);
      if (thing.kind === "node" && gpu.node === thing.name && !gpu.unreported) add("gpu", "", gpu.name);
      if (thing.kind === "gpu" && gpu.name === thing.name) {
        add("node", "", gpu.node);
        if (pod) add("pod", pod.namespace, pod.name);
      }
    });
    if (thing.kind === "node") this.pods.filter((pod) => pod.node === thing.name).forEach((pod) => add("pod", pod.namespace, pod.name));
    for (const word of lines.join(" ").match(/[\w][\w./-]*/g) ?? []) {
      const other = this.find(word.replace(/[._-]+$/, ""), thing);
      if (other) add(other.kind, other.namespace, other.name);
    }
    found.delete(`${thing.kind} ${thing.namespace}/${thing.name}`);
    return [...found.values()];
  }

  /** First thing whose name contains the words. @param {(...texts: any[]) => boolean} fits @returns {Thing|null} */
  first(fits) {
    const hpa = this.hpas.find((/** @type {any} */ one) => fits(one.namespace, one.name));
    if (hpa) return { kind: "hpa", namespace: hpa.namespace, name: hpa.name };
    const pod = this.pods.find((one) => fits(one.namespace, one.name));
    if (pod) return { kind: "pod", namespace: pod.namespace, name: pod.name };
    const gpu = this.gpus.find((one) => fits(one.name, one.uuid));
    if (gpu) return thingOf(gpu);
    const node = [...this.nodeSet].find((one) => fits(one));
    return node ? { kind: "node", namespace: "", name: node } : null;
  }
}
