"""Find pods that match an exporter's rule, and their page; `selection` chooses among them.

The pages of scraped pods are trusted for their own node, so labels alone do not decide which pods
are scraped: see :mod:`adapter.pipeline.sources.scrape.selection`. If tenants may create pods
freely, configure rules with the exporters' namespace, which replace these.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.pipeline.cluster.optin import PREFIX, words_under
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.sources.scrape.pageaccess import DEFAULT, PageAccess
from adapter.pipeline.sources.scrape.pageaddress import Unscrapable, names_address, page_address
from adapter.pipeline.sources.scrape.selection import (
    ANOTHER,
    NO_HOST_PATH,
    ExporterPod,
    ExporterSelection,
)
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.pipeline.sources.scrape.target import STATIC, Scheme, ScrapeTarget
from apiservice.labels.selector import EVERYTHING, Selector, parse
from apiservice.runtime.log import LateLog

log = LateLog(__name__)


@dataclass(frozen=True, slots=True)
class DiscoveryRule:
    """Pods that match are exporters."""

    name: str
    """Name in logs and metrics."""
    selector: Selector = EVERYTHING
    """Matched against the pod's labels."""
    port: int | str = "metrics"
    """Container port, by number or by name."""
    fallback: int | None = None
    """Port to use if the pod declares none of that name."""
    path: str = "/metrics"
    scheme: Scheme = "http"
    access: PageAccess = DEFAULT
    namespace: str | None = None
    """Only pods of this namespace; None means any."""
    container: str | None = None
    """Only pods with a container of this name; for charts whose labels name the release."""
    declared: bool = False
    """Only pods that declare the port; for labels that programs without a page have too."""
    family: str = ""
    """For a built-in rule: the kind of devices that the pages describe.

    Of the pods of one family on a node, one is scraped. Each rule of the settings is its own
    family.
    """

    def matches(self, pod: Pod) -> bool:
        """Return whether the rule matches the pod, reachable or not."""
        if self.namespace is not None and pod.ref.namespace != self.namespace:
            return False
        if self.container is not None and self.container not in pod.containers:
            return False
        if self.declared and all(self.port not in (port.name, port.port) for port in pod.ports):
            return False
        return self.selector.matches(pod.labels)


def _chart(name: str, labels: str, port: str, number: int, family: str) -> DiscoveryRule:
    return DiscoveryRule(name, parse(labels), port, number, family=family)


_NAME = "app.kubernetes.io/name"

DISCOVERY_RULES: tuple[DiscoveryRule, ...] = (
    # NVIDIA/dcgm-exporter deployment/templates
    _chart("dcgm-exporter", f"{_NAME}=dcgm-exporter", "metrics", 9400, "nvidia"),
    # NVIDIA/gpu-operator assets/state-dcgm-exporter
    _chart("gpu-operator", "app=nvidia-dcgm-exporter", "metrics", 9400, "nvidia"),
    # Google Kubernetes Engine's managed DCGM. NVIDIA's chart may run beside it, with other fields.
    _chart("gke-dcgm", f"{_NAME}=gke-managed-dcgm-exporter", "metrics", 9400, "gke"),
    # ROCm/gpu-operator internal/metricsexporter
    _chart(
        "amd-gpu-operator", f"{_NAME}=metrics-exporter,daemonset-name", "exporter-port", 5000, "amd"
    ),
    # ROCm/device-metrics-exporter helm-charts: the label names the release, the port has no name
    DiscoveryRule(
        "amd-exporter",
        port="",
        fallback=5000,
        container="amdgpu-metrics-exporter-container",
        family="amd",
    ),
    # intel/xpumanager deployment/kubernetes/daemonset
    _chart("intel-xpumanager", "app=intel-xpumanager", "metrics", 29999, "intel"),
    # intel/xpumanager charts/xpumd, charts/xpu-exporter
    _chart("intel-xpumd", f"{_NAME} in (xpumd,xpu-exporter)", "http", 8080, "intel"),
    # Project-HAMi/HAMi charts/hami: the vgpu-monitor container
    _chart("hami", "app.kubernetes.io/component=hami-device-plugin", "metrics", 9394, "hami"),
    # Project-HAMi/volcano-vgpu-device-plugin deployments/: the monitor is an optional container
    DiscoveryRule(
        "volcano-vgpu",
        parse("name=volcano-device-plugin"),
        fallback=9394,
        container="monitor",
        family="hami",
    ),
    # docs.habana.ai, "Prometheus Metric Exporter"; opea-project/GenAIInfra telemetry
    _chart(
        "gaudi",
        f"{_NAME} in (metric-exporter-ds,habana-metric-exporter-ds)",
        "metrics",
        41611,
        "habana",
    ),
    # Ascend/mind-cluster component/npu-exporter/build
    _chart("ascend-npu-exporter", "app=npu-exporter", "http", 8082, "huawei"),
    # GKE's TPU device plugin, as llm-d/llm-d guides/recipes/observability/tpu selects it
    _chart("gke-tpu-plugin", "k8s-app=tpu-device-plugin", "metrics", 2112, "google"),
    # GoogleCloudPlatform/container-engine-accelerators cmd/nvidia_gpu/device-plugin.yaml; other
    # device plugins have the label, and no page
    DiscoveryRule(
        "gke-gpu-plugin",
        parse("k8s-app=nvidia-gpu-device-plugin"),
        fallback=2112,
        family="gke-plugin",
        declared=True,
    ),
)
"""Rules in order; the first that matches a pod applies. Rules of the settings come first."""

_PROBLEMS: Final = {
    ANOTHER: "another exporter of its kind is scraped on this node",
    NO_HOST_PATH: "it does not mount a directory of its node, unlike the cluster's exporters",
}


def select_exporters(
    pods: Iterable[Pod], rules: Sequence[DiscoveryRule]
) -> Mapping[PodRef, ScrapeTarget]:
    """Return the exporters among these pods that are scraped, as a new process would choose."""
    exporters: dict[PodRef, ScrapeTarget] = {}

    def add(target: ScrapeTarget) -> None:
        if target.pod is not None:
            exporters[target.pod] = target

    selection = ExporterSelection(add, lambda _: None, lambda *_: None)
    for pod in pods:
        rule = next((rule for rule in rules if rule.matches(pod)), None)
        page = _page(pod, rule) if rule else None
        if rule and isinstance(page, ScrapeTarget):
            selection.change(pod.ref, _exporter_pod(pod, rule, page))
    selection.decide()
    return exporters


def _page(pod: Pod, rule: DiscoveryRule) -> ScrapeTarget | Unscrapable | None:
    if pod.phase != "Running" or pod.deleting or not pod.ip:
        return None
    ports = (port.port for port in pod.ports if port.name == rule.port)
    port = rule.port if isinstance(rule.port, int) else next(ports, rule.fallback)
    missing = Unscrapable(
        "no_port",
        f"rule {rule.name}: no container port is named {rule.port!r}: set its number in "
        "source.scrape.exporters, or name the port in the pod",
    )
    words, access = words_under(pod, PREFIX), rule.access
    if rule.namespace is None and names_address(words):
        # Anyone who may create pods may write such a pod, and choose what receives the request.
        access = access.without_credentials()
    address = page_address(
        pod,
        words,
        scheme=rule.scheme,
        port=missing if port is None else port,
        path=rule.path,
        access=access,
    )
    if isinstance(address, Unscrapable):
        return address
    return ScrapeTarget(
        address.url,
        node=pod.node,
        pod=pod.ref,
        uid=pod.uid,
        rule=rule.name,
        access=address.access,
    )


def _exporter_pod(pod: Pod, rule: DiscoveryRule, target: ScrapeTarget | None) -> ExporterPod | None:
    if pod.finished:
        return None
    return ExporterPod(
        pod=pod.ref,
        uid=pod.uid,
        node=pod.node,
        rule=rule.name,
        family=rule.family,
        pinned=rule.namespace is not None,
        mounts=pod.host_paths,
        daemon=pod.owner is not None and pod.owner.kind == "DaemonSet",
        born=pod.born,
        target=target,
    )


class ScrapeTargets:
    """The current targets: fixed ones, and pods that match a rule.

    If several share one address (pods on their node's network, or a pod whose end is noticed
    late), one is scraped: the fixed one, else an exporter before a server page, which must not
    displace it, else the newest.
    """

    def __init__(
        self,
        rules: Sequence[DiscoveryRule],
        added: Callable[[ScrapeTarget], None],
        removed: Callable[[ScrapeTarget], None],
        servers: ServerPages | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._servers = servers
        self._added, self._removed = added, removed
        self._at: dict[str, list[ScrapeTarget]] = {}
        """Address -> the targets with it; the last one is scraped."""
        self.unscrapable: Counter[str] = Counter()
        """Pods that should be scraped and cannot be, by reason, since the start."""
        self._selection = ExporterSelection(self.add, self.remove, self._leave_out, clock)

    def __len__(self) -> int:
        return len(self._at)

    def decide(self) -> None:
        """Begin to choose among exporters' pods, because all existing pods are now known."""
        self._selection.decide()

    def is_contested(self, pod: PodRef) -> bool:
        """See :meth:`ExporterSelection.is_contested`."""
        return self._selection.is_contested(pod)

    def note_page(self, pod: PodRef, *, names_pods: bool) -> None:
        """See :meth:`ExporterSelection.note_page`."""
        self._selection.note_page(pod, names_pods=names_pods)

    def add(self, target: ScrapeTarget) -> None:
        """Add a target."""
        others = [other for other in self._at.get(target.url, ()) if other != target]
        self._put(target.url, sorted([*others, target], key=_rank))

    def remove(self, target: ScrapeTarget) -> None:
        """Remove a target."""
        others = [other for other in self._at.get(target.url, ()) if other != target]
        self._put(target.url, others)

    def _put(self, url: str, targets: list[ScrapeTarget]) -> None:
        before = self._at.pop(url, [None])[-1]
        after = targets[-1] if targets else None
        if targets:
            self._at[url] = targets
        if before == after:
            return
        if before is not None:
            self._removed(before)
        if after is not None:
            self._added(after)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Process one change of the pod index."""
        before = self._find(old)[1]
        exporter, after = self._find(new)
        pod = new or old
        if pod is not None:
            self._selection.change(pod.ref, exporter)
        self._selection.pass_time()
        pages = () if isinstance(after, Unscrapable) else after
        for page in () if isinstance(before, Unscrapable) else before:
            if page not in pages:
                self.remove(page)
        for page in pages:
            self.add(page)
        if isinstance(after, Unscrapable) and after != before and new is not None:
            self.unscrapable[after.reason] += 1
            log.warning(
                "pod cannot be scraped",
                namespace=new.ref.namespace,
                pod=new.ref.name,
                problem=after.message,
            )

    def _leave_out(self, exporter: ExporterPod, reason: str, instead: PodRef | None) -> None:
        self.unscrapable[reason] += 1
        log.warning(
            "exporter left out",
            reason=reason,
            namespace=exporter.pod.namespace,
            pod=exporter.pod.name,
            node=exporter.node,
            rule=exporter.rule,
            problem=_PROBLEMS[reason],
            scraped="/".join(instead) if instead else "",
            hint="if it is an exporter, name it with its namespace in source.scrape.exporters",
        )

    def _find(
        self, pod: Pod | None
    ) -> tuple[ExporterPod | None, Sequence[ScrapeTarget] | Unscrapable]:
        """Return the exporter pod, or else the pod's server pages."""
        if pod is None:
            return None, ()
        rule = next((rule for rule in self._rules if rule.matches(pod)), None)
        if rule is None:
            return None, self._servers.all_of(pod) if self._servers else ()
        page = _page(pod, rule)
        if isinstance(page, Unscrapable):
            return _exporter_pod(pod, rule, None), page
        return _exporter_pod(pod, rule, page), ()


def _rank(target: ScrapeTarget) -> int:
    if target.rule == STATIC:
        return 2
    return 0 if target.serves else 1
