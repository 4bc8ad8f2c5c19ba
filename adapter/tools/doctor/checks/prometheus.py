"""Checks of Prometheus as the source of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from adapter.answers.causes.gpunodes import gpus_of
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.devices.device import host
from adapter.pipeline.exposition.podlabels import is_renamed, workload
from adapter.tools.doctor.facts import Facts, StoreAnswer
from adapter.tools.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check

_SEE: Final = "kubectl get servicemonitors,podmonitors,scrapeconfigs -A"


def _store(facts: Facts) -> StoreAnswer:
    if facts.settings.source.kind != "prometheus":
        raise NotApplicableError("source.kind is not prometheus")
    return facts.store.read()


def _answering_store(facts: Facts) -> StoreAnswer:
    store = _store(facts)
    if store.problem:
        raise NotApplicableError("Prometheus does not answer")
    return store


@check("GMA301", CheckSection.PROMETHEUS, "Prometheus answers")
def unreachable_store(facts: Facts) -> Iterator[Finding]:
    """The Prometheus of `source.prometheus.url` does not answer queries: the address is wrong, it
    needs credentials, or something else answers there.

    Correct the address. It ends before `/api/v1`.
    """
    store = _store(facts)
    if store.problem:
        yield Finding(
            f"prometheus {store.url}",
            store.problem,
            "correct source.prometheus.url and its credentials in the settings",
            "kubectl get services -A | grep -i -e prometheus -e thanos -e mimir -e vmselect",
        )


@check("GMA302", CheckSection.PROMETHEUS, "Prometheus has the exporters' series")
def no_series(facts: Facts) -> Iterator[Finding]:
    """Prometheus has no GPU utilization from the last five minutes: it does not scrape the
    exporters, a relabeling drops the series, or `source.prometheus.matchers` excludes them.

    Create a ServiceMonitor or PodMonitor for the exporters.
    """
    store = _answering_store(facts)
    if not store.names:
        yield Finding(
            f"prometheus {store.url}",
            "has no series of GPU utilization, such as DCGM_FI_DEV_GPU_UTIL",
            "have Prometheus scrape the exporters, and check source.prometheus.matchers",
            _SEE,
        )


@check("GMA303", CheckSection.PROMETHEUS, "Prometheus scrapes every GPU node")
def partial_scrapes(facts: Facts) -> Iterator[Finding]:
    """Prometheus has series of fewer exporters than the cluster has GPU nodes.

    See the targets of Prometheus: some exporters are not selected, or their scrapes fail.
    """
    store = _answering_store(facts)
    instances, nodes = _exporters(facts, store)
    if instances and instances < nodes:
        yield Finding(
            f"prometheus {store.url}",
            f"has series of {instances} exporters, and {nodes} nodes offer GPUs",
            "see which exporters Prometheus does not scrape",
            _SEE,
        )


@check(
    "GMA304", CheckSection.PROMETHEUS, "Prometheus scrapes as often as configured", Severity.WARNING
)
def seldom_scrapes(facts: Facts) -> Iterator[Finding]:
    """Prometheus scrapes an exporter less often than `source.prometheus.scrape_interval` says, so
    values are too old between two scrapes.

    Scrape exporters every 15 s, or set `source.prometheus.scrape_interval` to the real interval.
    """
    store = _answering_store(facts)
    expected = facts.settings.source.prometheus.scrape_interval
    slow = {name: seconds for name, seconds in store.intervals.items() if seconds > 1.5 * expected}
    if slow:
        name, seconds = max(slow.items(), key=lambda row: row[1])
        yield Finding(
            f"prometheus {store.url}",
            f"scrapes {name} every {seconds:.0f} s, and the settings say {expected:g} s",
            f"set source.prometheus.scrape_interval to {seconds:.0f}s, or scrape more often",
            _SEE,
        )


@check("GMA305", CheckSection.PROMETHEUS, "series in Prometheus name pods")
def dropped_labels(facts: Facts) -> Iterator[Finding]:
    """No series in Prometheus names a pod other than the exporter itself: a relabeling drops the
    labels, or overwrites them with those of the scrape target.

    Remove `labeldrop` rules for `pod`, `namespace`, `container` and `exported_…`, and set
    `honorLabels: true`, or keep the `exported_…` labels.
    """
    store = _answering_store(facts)
    running = [pod for pod in facts.gpu_pods if pod.runs and pod.pod.ready]
    instances, nodes = _exporters(facts, store)
    if instances < nodes:
        # No series can name the pods of a node whose exporter Prometheus does not scrape.
        pods = {pod.key: pod for pod in facts.pods.read()}
        scraped = {_node(labels, pods) for labels in store.series}
        running = [pod for pod in running if pod.pod.node in scraped]
    holders = {pod.key for pod in running}
    if not holders or not store.series:
        return
    if not any(_pods(labels) & holders for labels in store.series):
        yield Finding(
            f"prometheus {store.url}",
            f"no series names a pod that holds a GPU, and {len(holders)} pods hold one",
            "remove relabelings that drop pod, namespace or exported_… labels",
            _SEE,
        )


def _exporters(facts: Facts, store: StoreAnswer) -> tuple[int, int]:
    """Return how many exporters have series, and how many nodes offer GPUs."""
    resources = facts.gpu_resources
    nodes = sum(1 for node in facts.nodes.read() if gpus_of(node, resources))
    return len({labels.get("instance", "") for labels in store.series}), nodes


def _node(labels: Mapping[str, str], pods: Mapping[str, SeenPod]) -> str:
    """Return the node of the exporter's pod, or the node that the series names."""
    exporter = pods.get(f"{labels.get('namespace', '')}/{labels.get('pod', '')}")
    return exporter.pod.node if exporter else host(labels)


def _pods(labels: Mapping[str, str]) -> set[str]:
    """Return the pods that a series may be about."""
    first, others = workload(labels, direct=False)
    pods = others if first is None else (first, *others)
    return {f"{pod.namespace}/{pod.name}" for pod in pods}


@check(
    "GMA306", CheckSection.PROMETHEUS, "labels of pods and targets do not collide", Severity.WARNING
)
def collision(facts: Facts) -> Iterator[Finding]:
    """With `honorLabels: true`, Prometheus adds the labels of the exporter's own pod to the series
    of idle GPUs. The adapter leaves them out; dashboards do not.

    Set `honorLabels: false` (the adapter reads `exported_pod`), or drop the target's `pod` label.
    """
    store = _answering_store(facts)
    pods = {pod.key: pod for pod in facts.pods.read()}
    own_series = [
        labels
        for labels in store.series
        if not is_renamed(labels)
        and (pod := pods.get(f"{labels.get('namespace', '')}/{labels.get('pod', '')}"))
        and not pod.pod.may_hold_gpu
        and "exporter" in pod.pod.ref.name
    ]
    others = [labels for labels in store.series if not is_renamed(labels)]
    named_series = [labels for labels in others if labels not in own_series and labels.get("pod")]
    if own_series and named_series:
        yield Finding(
            f"prometheus {store.url}",
            f"{len(own_series)} GPU series name the exporter's own pod {own_series[0]['pod']}",
            "set honorLabels: false in the ServiceMonitor of the exporter",
            _SEE,
        )
