"""What a Prometheus has of a recorded cluster: exporters and kube-state-metrics, scraped."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from adapter.hpa.quantity import parse
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.recording.events import Event, HpaSeen, PageRead, PodSeen
from tests.adapter.pipeline.sources.prometheus.engines import engine
from tests.adapter.prometheusscrape import relabelled
from tests.needs import PROMTOOL

Labels = frozenset[tuple[str, str]]
_KSM = {"job": "kube-state-metrics", "instance": "10.0.0.9:8080"}


@dataclass
class StoredCluster:
    """Scrapes a cluster whose state the events of a recording change.

    Args:
        exporters: seconds between two scrapes of the exporters.
        states: of kube-state-metrics.
        phase: seconds after the recording's beginning at which all scrapes begin.
        lost: whether a scrape at a time failed, by job.
        without: series that the store does not have.
    """

    exporters: float = 15.0
    states: float = 30.0
    phase: float = 14.0
    lost: Callable[[float, str], bool] = lambda time, job: False
    without: tuple[str, ...] = ()
    renamed: Callable[[float, str], str] = lambda time, name: name
    pods: dict[str, Pod] = field(default_factory=dict)
    page: ScrapeResult | None = None
    servers: dict[str, ScrapeResult] = field(default_factory=dict)
    """Pod -> the last page of its server."""
    hpa: ShownHpa | None = None
    series: dict[tuple[str, Labels], list[tuple[float, float]]] = field(default_factory=dict)

    def scrape(self, events: Iterable[Event]) -> StoredCluster:
        """Scrape the whole recording."""
        next_page = next_state = 0.0
        for event in events:
            if not next_page:
                next_page = next_state = event.time + self.phase
            while event.time > min(next_page, next_state):
                if next_page <= next_state:
                    self._page(next_page)
                    next_page += self.exporters
                else:
                    self._state(next_state)
                    next_state += self.states
            self._take(event)
        return self

    def _take(self, event: Event) -> None:
        match event:
            case PodSeen():
                self.pods[event.pod.uid] = event.pod
                if event.gone:
                    del self.pods[event.pod.uid]
            case PageRead() if event.result.pod is not None:
                self.servers[event.result.pod[1]] = event.result
            case PageRead():
                self.page = event.result
            case HpaSeen():
                self.hpa = event.hpa

    def _page(self, time: float) -> None:
        if self.lost(time, "dcgm"):
            return
        names = {pod.ref.name for pod in self.pods.values()}
        for sample in self.page.samples if self.page is not None else ():
            if sample.labels.get("pod") in names:
                labels = relabelled(
                    sample.labels,
                    {"namespace": "gpu", "pod": "dcgm-x", "instance": "10.0.0.7:9400"},
                    honor=False,
                )
                self._add(time, self.renamed(time, sample.name), labels, sample.value)
        for name in names.intersection(self.servers):
            own = {"namespace": "ml", "pod": name, "instance": f"{name}:8000", "job": "vllm"}
            for sample in self.servers[name].samples:
                self._add(time, sample.name, {**sample.labels, **own}, sample.value)

    def _state(self, time: float) -> None:
        if self.lost(time, "ksm"):
            return
        for pod in self.pods.values():
            self._pod(time, pod)
        if self.hpa is not None and self.hpa.current is not None:
            self._hpa(time, self.hpa)

    def _pod(self, time: float, pod: Pod) -> None:
        own = {"namespace": pod.ref.namespace, "pod": pod.ref.name, "uid": pod.uid}
        assert pod.owner is not None
        info = {"created_by_kind": pod.owner.kind, "created_by_name": pod.owner.name}
        self._add(time, "kube_pod_info", {**own, **info, "node": pod.node, **_KSM}, 1)
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            labels = {**own, "phase": phase, **_KSM}
            self._add(time, "kube_pod_status_phase", labels, pod.phase == phase)
        for condition in ("true", "false", "unknown"):
            labels = {**own, "condition": condition, **_KSM}
            value = condition == ("true" if pod.ready else "false")
            self._add(time, "kube_pod_status_ready", labels, value)
        self._add(time, "kube_pod_created", {**own, **_KSM}, pod.born)
        owner = {
            "namespace": pod.ref.namespace,
            "replicaset": pod.owner.name,
            "owner_kind": "Deployment",
            "owner_name": pod.owner.name.rpartition("-")[0],
            "owner_is_controller": "true",
        }
        self._add(time, "kube_replicaset_owner", {**owner, **_KSM}, 1)
        for resource, count in pod.gpus.items():
            written = resource.replace(".", "_").replace("/", "_").replace("-", "_")
            more = {"resource": written, "unit": "integer", "node": pod.node}
            labels = {**own, **more, "container": pod.containers[0], **_KSM}
            self._add(time, "kube_pod_container_resource_requests", labels, count)

    def _hpa(self, time: float, hpa: ShownHpa) -> None:
        name = "kube_horizontalpodautoscaler"
        own = {"namespace": hpa.namespace, "horizontalpodautoscaler": hpa.name, **_KSM}
        self._add(time, f"{name}_status_current_replicas", own, hpa.current or 0)
        self._add(time, f"{name}_status_desired_replicas", own, hpa.desired or 0)
        self._add(time, f"{name}_spec_min_replicas", own, hpa.low)
        self._add(time, f"{name}_spec_max_replicas", own, hpa.high)
        for metric in hpa.metrics:
            labels = {**own, "metric_name": metric.name, "metric_target_type": "average"}
            self._add(time, f"{name}_status_target_metric", labels, float(parse(metric.current)))

    def _add(self, time: float, name: str, labels: Mapping[str, str], value: float) -> None:
        if name not in self.without:
            key = name, frozenset((key, text) for key, text in labels.items() if text)
            self.series.setdefault(key, []).append((time, float(value)))

    def lines(self) -> Iterator[str]:
        """Yield the lines of an OpenMetrics file."""
        for (name, labels), points in sorted(self.series.items(), key=lambda each: each[0][0]):
            inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels))
            yield from (f"{name}{{{inside}}} {value!r} {time:.3f}" for time, value in points)
        yield "# EOF"

    @contextmanager
    def prometheus(self, folder: Path) -> Iterator[str]:
        """Run a Prometheus that has these samples; yields its URL."""
        folder.mkdir(parents=True, exist_ok=True)
        text = folder / "samples.txt"
        text.write_text("\n".join(self.lines()) + "\n")
        subprocess.run(
            [PROMTOOL.path(), "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"],
            check=True,
            capture_output=True,
        )
        with engine("prometheus", folder, "{}", "--storage.tsdb.retention.time=100y") as url:
            yield url
