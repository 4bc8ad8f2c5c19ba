// What the search and the filters let through.

import { objects } from "./parts.js";

/** @param {string} text @returns {string[]} */
const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** @param {string} q @returns {(...texts: any[]) => boolean} */
export function search(q) {
  const wanted = words(q ?? "");
  if (!wanted.length) return () => true;
  return (...texts) => {
    const all = texts.filter(Boolean).join("\n").toLowerCase();
    return wanted.every((word) => all.includes(word));
  };
}

/** First pod of the text of a GPU's pods, such as "chat/llm-1 +2". @param {string|null} text */
export function firstPod(text) {
  const found = /^([^/\s]+)\/(\S+?)(?: \+(\d+))?$/.exec(text ?? "");
  return found ? { namespace: found[1], name: found[2], more: found[3] !== undefined } : null;
}

/** Pods of a part, narrowed. @param {any} part @param {Object<string, string>} filters @returns {any[]} */
export function pods(part, filters) {
  const fits = search(filters.q);
  return objects(part).filter((pod) =>
    (!filters.namespace || pod.namespace === filters.namespace) && (!filters.pool || pod.pool === filters.pool)
    && (!filters.model || pod.model === filters.model) && fits(pod.namespace, pod.name, pod.node, pod.whyNot));
}

/** HPAs, narrowed by namespace and search; they belong to no node pool. @param {any[]|undefined} part @param {Object<string, string>} filters @returns {any[]} */
export function hpas(part, filters) {
  const fits = search(filters.q);
  return (part ?? []).filter((hpa) => (!filters.namespace || hpa.namespace === filters.namespace)
    && fits(hpa.namespace, hpa.name, hpa.target, hpa.decision, ...hpa.metrics.map((/** @type {any} */ m) => m.name)));
}

/**
 * Indexes of the GPUs that the filters let through, and whether the search finds each.
 * @param {any} gpus @param {any} load @param {Object<string, string>} filters
 */
export function gpus(gpus, load, filters) {
  /** @type {number[]} */
  const kept = [];
  /** @type {Set<number>} */
  const dim = new Set();
  if (!gpus) return { kept, dim };
  const at = Object.fromEntries(gpus.columns.map((/** @type {string} */ column, /** @type {number} */ i) => [column, i]));
  const fits = search(filters.q);
  gpus.rows.forEach((/** @type {any[]} */ row, /** @type {number} */ i) => {
    if (filters.pool && row[at.pool] !== filters.pool) return;
    if (filters.model && row[at.model] !== filters.model) return;
    const text = load?.pods?.[i] ?? null;
    if (filters.namespace) {
      const pod = firstPod(text);
      // A device of several pods names only the first: it stays, since another may be of this namespace.
      if (pod?.namespace !== filters.namespace && !pod?.more) return;
    }
    kept.push(i);
    const used = !filters.use || load?.class?.[i] === filters.use;
    if (!used || (filters.q && !fits(row[at.name], row[at.node], row[at.uuid], row[at.model], text))) dim.add(i);
  });
  return { kept, dim };
}

/** Entries of the timeline, narrowed. @param {any[]|undefined} part @param {Object<string, string>} filters @param {number} since @returns {any[]} */
export function events(part, filters, since) {
  const fits = search(filters.q);
  return (part ?? []).filter((event) => event.time >= since
    && (!filters.namespace || !event.about?.namespace || event.about.namespace === filters.namespace)
    && fits(event.about?.namespace, event.about?.name, event.text, event.reason));
}

/** Idle devices, narrowed. @param {any[]|undefined} devices @param {any} gpus @param {Object<string, string>} filters @returns {any[]} */
export function idle(devices, gpus, filters) {
  const fits = search(filters.q);
  /** @type {Map<string, any>} */
  const known = new Map();
  if (filters.pool || filters.model) for (const gpu of objects(gpus)) known.set(gpu.name, gpu);
  return (devices ?? []).filter((device) => {
    const gpu = known.get(device.gpu);
    return (!filters.namespace || device.namespace === filters.namespace) && (!filters.pool || gpu?.pool === filters.pool)
      && (!filters.model || (gpu?.model ?? device.model) === filters.model)
      && fits(device.namespace, device.gpu, device.node, device.workload, device.team, device.model, ...(device.pods ?? []));
  });
}
