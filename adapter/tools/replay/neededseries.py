"""Which series of a store a replay needs: the exporters', and those of kube-state-metrics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from adapter.hpa import HpaSpec, MetricKind
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Scope
from adapter.pipeline.catalog.nvidia import PROFILING
from adapter.pipeline.catalog.serverkind import CACHE, RUNNING, WAITING
from adapter.pipeline.catalog.servermeasures import OF_PROMISES
from adapter.pipeline.cluster.gpuresources import NAME_FORMS, GpuResources
from adapter.pipeline.devices import plausibility, remainder
from adapter.tools.replay.sizereading import SIZE_METRICS

INFO: Final = "kube_pod_info"
PHASE: Final = "kube_pod_status_phase"
READY: Final = "kube_pod_status_ready"
CREATED: Final = "kube_pod_created"
DELETED: Final = "kube_pod_deletion_timestamp"
REQUESTS: Final = "kube_pod_container_resource_requests"
OWNERS: Final = "kube_replicaset_owner"
PODS: Final = (INFO, PHASE, READY, CREATED, DELETED)
_HPA: Final = "kube_horizontalpodautoscaler"
CURRENT: Final = f"{_HPA}_status_current_replicas"
DESIRED: Final = f"{_HPA}_status_desired_replicas"
VALUES: Final = f"{_HPA}_status_target_metric"
LOW: Final = f"{_HPA}_spec_min_replicas"
HIGH: Final = f"{_HPA}_spec_max_replicas"
STATUS: Final = (CURRENT, DESIRED, VALUES, LOW, HIGH)
_STATE: Final = (
    "scrape kube-state-metrics with the same Prometheus, with its own labels (honorLabels: true), "
    "or record with `gpu-metrics-adapter serve --record`"
)
_OVER_REPLICASETS: Final = ("Deployment", "Rollout")
_UNSAFE: Final = re.compile("[^a-zA-Z0-9_]")


class NeededSeries(NamedTuple):
    """The exporters' series that the HPA's metrics of pods need."""

    own: tuple[str, ...]
    """Those that the values come from, in all spellings."""
    others: tuple[str, ...]
    """Those that may contradict them."""
    of_gpus: bool
    """They describe GPUs, not servers: a pod has a value if it requests a GPU."""
    servers: tuple[str, ...] = ()
    """Of the pods' servers, beside ``own``: requests that run and that wait, and what promises
    need."""
    sizes: tuple[str, ...] = ()
    """Of the pods' GPUs, beside the others: memory and compute, for the size of a GPU."""


def device_series(
    catalog: Catalog, spec: HpaSpec, *, cross_checks: bool, latencies: bool = False
) -> NeededSeries:
    """Return the series of an HPA.

    Args:
        catalog: with the user's own metrics.
        spec: the HPA.
        cross_checks: also those of fields that may contradict others (``values.cross_checks``).
        latencies: also what the pods' servers count, for latency promises, and what the pods use
            of their GPUs.
    """
    fields: set[str] = set()
    of_gpus = promised = False
    for wanted in spec.metrics:
        metric = catalog.metrics.get(wanted.name)
        if wanted.kind is not MetricKind.PODS or metric is None:
            continue
        promised = promised or metric.promised
        # A promise is about servers: those that show requests which run or wait.
        fields.update(_fields(catalog, (RUNNING, WAITING) if metric.promised else (wanted.name,)))
        of_gpus = of_gpus or metric.scope is Scope.DEVICE
    own = _names(catalog, fields)
    others: set[str] = set()
    if cross_checks and of_gpus:
        more = {name for name in catalog.fields if name.startswith(PROFILING)}
        others = _names(catalog, more.union(plausibility.FIELDS, remainder.FIELDS)) - own
    servers: set[str] = set()
    if of_gpus:
        servers.update(queue_series(catalog))
    if latencies or promised:
        servers |= _names(catalog, _fields(catalog, (RUNNING, WAITING, CACHE, *OF_PROMISES)))
    sizes = _names(catalog, _fields(catalog, SIZE_METRICS)) if latencies else set()
    return NeededSeries(
        tuple(sorted(own)),
        tuple(sorted(others)),
        of_gpus,
        tuple(sorted(servers - own)),
        tuple(sorted(sizes - own - others - servers)),
    )


def queue_series(catalog: Catalog) -> tuple[str, ...]:
    """Return the series of requests that run on servers, and that wait."""
    return tuple(sorted(_names(catalog, _fields(catalog, (RUNNING, WAITING)))))


def _fields(catalog: Catalog, metrics: Iterable[str]) -> set[str]:
    """Return the fields that metrics are computed from."""
    formulas = (formula for name in metrics for formula in catalog.metrics[name].formulas)
    return {field for formula in formulas for field in formula.fields}


def _names(catalog: Catalog, fields: Collection[str]) -> set[str]:
    return {row.series for row in catalog.spellings.values() if row.field.name in fields}


def selector(
    names: Sequence[str], matchers: Mapping[str, str | Sequence[str]], more: str = ""
) -> str:
    """Return the PromQL selector of these series.

    Args:
        names: series names.
        matchers: label -> value, or regular expressions of which one matches.
        more: further matchers.
    """
    parts = [f'__name__=~"{"|".join(names)}"'] if len(names) != 1 else []
    for label, value in matchers.items():
        operator, text = ("=", value) if isinstance(value, str) else ("=~", "|".join(value))
        parts.append(f'{label}{operator}"{_text(text)}"')
    inside = ",".join((*parts, *((more,) if more else ())))
    name = names[0] if len(names) == 1 else ""
    return f"{name}{{{inside}}}" if inside else name


def _text(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def sanitize_name(resource: str) -> str:
    """Return a resource's name, or the literal part of a pattern, as kube-state-metrics writes it.

    The source is ``sanitizeLabelName`` of its package ``internal/store``.
    """
    return _UNSAFE.sub("_", resource)


class ResourceNames:
    """Finds the names of extended resources from those that kube-state-metrics writes.

    Args:
        resources: those of the settings. Their patterns end with ``*`` or are literal.
    """

    def __init__(self, resources: GpuResources) -> None:
        self._resources = resources
        self._patterns = list(map(_start, resources.patterns))
        self._known = sorted(
            {*self._patterns, *map(_start, NAME_FORMS)},
            key=lambda pattern: (not pattern[1], len(pattern[0])),
            reverse=True,
        )

    @property
    def matchers(self) -> list[str]:
        """Regular expressions of the names that kube-state-metrics writes."""
        return [
            sanitize_name(text) + (".*" if open_ended else "")
            for text, open_ended in self._patterns
        ]

    def find(self, written: str) -> str | None:
        """Return the resource's name; None if it is not one of a GPU."""
        name = self._find_spelling(written)
        return name if name is not None and self._resources.is_gpu(name) else None

    def _find_spelling(self, written: str) -> str | None:
        for text, open_ended in sorted(self._known, key=lambda pattern: pattern[1]):
            start = sanitize_name(text)
            if written == start and text[-1:] not in "-.":
                return text
            if open_ended and written.startswith(start):
                rest = written[len(start) :]
                # nvidia.com/mig-1g.5gb is nvidia_com_mig_1g_5gb.
                if text.endswith("/"):
                    return text + rest  # a product's or partition's name: cpx_nps4, GA102GL_A10
                return text + rest.replace("_", "." if text.endswith("mig-") else "-")
        return None


def _start(pattern: str) -> tuple[str, bool]:
    """Return the literal start of a pattern, and whether more may follow."""
    return pattern.partition("*")[0], "*" in pattern


def describe_missing_series(
    series_names: Collection[str], spec: HpaSpec, names: NeededSeries
) -> str:
    """Return what a store does not have, and the fix; empty if it has all that is needed.

    Args:
        series_names: of the series that it has.
        spec: the HPA.
        names: of the exporters' series.
    """
    if not {DESIRED, CURRENT} <= set(series_names):
        return f"{DESIRED} of HPA {spec.namespace}/{spec.name}: check the name, and {_STATE}"
    above = spec.target.kind if spec.target else ""
    owners = (OWNERS,) if above in _OVER_REPLICASETS else ()
    for name in (INFO, PHASE, READY, CREATED, *owners):
        if name not in series_names:
            return f"{name} of namespace {spec.namespace}: {_STATE}"
    if names.of_gpus and REQUESTS not in series_names:
        return f"{REQUESTS} of a GPU: {_STATE} (a GPU of a resource claim has no such series)"
    if not set(names.own).intersection(series_names):
        some = ", ".join(names.own[:3])
        return (
            f"sample of {some} or their other names: let it scrape the exporters, and check "
            "source.prometheus.matchers in --config"
        )
    return ""
