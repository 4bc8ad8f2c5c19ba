// Idle GPUs with their owner and price.

import { h } from "./dom.js";
import { money, span } from "./format.js";
import { link } from "./route.js";
import { missing, SortedTable, two } from "./table.js";

const GI = 1024 ** 3;

/** Make the table. @param {() => string} currency */
export function idleTable(currency) {
  return new SortedTable({
    label: "Idle GPUs with their price",
    class: "folds.pair",
    key: (one) => `${one.gpu} ${one.uuid}`,
    columns: [
      { key: "pod", label: "Pod", class: "col-half", value: (one) => `${one.namespace}/${one.pods?.[0]}`, cell: (one) => two(podLink(one), [h("bdi", {}, one.workload ?? one.namespace), one.team ? [" · ", h("bdi", {}, one.team)] : null]) },
      { key: "gpu", label: "GPU", class: "col-half", value: (one) => one.gpu, cell: (one) => two(gpuLink(one), [one.model, one.migProfile].filter(Boolean).join(" ")) },
      { key: "since", label: "Idle", class: "num col-idle", down: true, value: (one) => one.idleSeconds, cell: (one) => span(one.idleSeconds) },
      { key: "mem", label: "Memory", class: "num drop wide col-cost", down: true, value: (one) => one.memoryUsedBytes, cell: memory },
      { key: "price", label: "Per hour", class: "num drop wide col-cost", down: true, value: (one) => one.pricePerHour, cell: (one) => cost(one.pricePerHour, currency()) },
      { key: "cost", label: "So far", class: "num col-cost", down: true, value: (one) => one.costSoFar, cell: (one) => cost(one.costSoFar, currency()) },
    ],
  });
}

function podLink(one) {
  const [name, ...others] = one.pods ?? [];
  if (!name) return missing("no pod");
  return [h("a", { href: link({ kind: "pod", namespace: one.namespace, name }), title: `${one.namespace}/${name}${one.hint ? `\n${one.hint}` : ""}` }, h("bdi", {}, name)), others.length ? h("span.soft", {}, ` +${others.length}`) : null];
}

function gpuLink(one) {
  return h("a", { href: link({ kind: "gpu", namespace: "", name: one.gpu }), title: one.gpu }, h("bdi", {}, one.gpu));
}

function memory(one) {
  if (one.memoryUsedBytes === undefined || one.memoryUsedBytes === null) return missing("no memory is reported");
  const used = (one.memoryUsedBytes / GI).toFixed(1);
  if (!one.memoryTotalBytes) return `${used} Gi`;
  return two(`${used} Gi`, `${Math.round((100 * one.memoryUsedBytes) / one.memoryTotalBytes)} %`);
}

function cost(amount, currency) {
  return amount === null || amount === undefined ? missing("the model has no price") : money(amount, currency);
}
