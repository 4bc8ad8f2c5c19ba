"""Which HPAs of a cluster use which metric of the custom and external metrics APIs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from adapter.client.access import Api, Json
from adapter.hpa import ManifestError, MetricKind, MetricSpec, from_manifest

HPAS: Final = "/apis/autoscaling/v2/horizontalpodautoscalers"
GROUPS: Final = {
    MetricKind.PODS: "custom.metrics.k8s.io",
    MetricKind.OBJECT: "custom.metrics.k8s.io",
    MetricKind.EXTERNAL: "external.metrics.k8s.io",
    MetricKind.RESOURCE: "metrics.k8s.io",
    MetricKind.CONTAINER: "metrics.k8s.io",
}


class HpaUse(NamedTuple):
    """One metric of one HPA."""

    hpa: Json
    namespace: str
    name: str
    """Of the HPA."""
    metric: MetricSpec

    @property
    def key(self) -> str:
        """``namespace/name`` of the HPA."""
        return f"{self.namespace}/{self.name}"

    @property
    def group(self) -> str:
        """The API group that answers."""
        return GROUPS[self.metric.kind]


class MetricUse(NamedTuple):
    """A metric, and the HPAs that use it."""

    kind: str
    metric: str
    group: str
    hpas: Sequence[str]


class HpaUses(NamedTuple):
    """The metrics of all HPAs."""

    uses: Sequence[HpaUse]
    unreadable: Sequence[str]
    """HPAs whose spec cannot be read, with the reason."""


async def read_uses(api: Api) -> HpaUses:
    """Return the metrics of every HPA; raises ClientError."""
    uses: list[HpaUse] = []
    unreadable: list[str] = []
    for row in await api.list(HPAS):
        meta = row["metadata"]
        namespace, name = str(meta["namespace"]), str(meta["name"])
        whole = {**row, "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
        try:
            spec = from_manifest(whole)
        except ManifestError as error:
            unreadable.append(f"{namespace}/{name}: {error}")
            continue
        uses += [HpaUse(whole, namespace, name, metric) for metric in spec.metrics]
    return HpaUses(uses, unreadable)


def by_metric(uses: Iterable[HpaUse]) -> list[MetricUse]:
    """Return one row for each metric, by API and name."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for use in uses:
        key = (use.group, use.metric.name, str(use.metric.kind))
        found.setdefault(key, {})[use.key] = None
    return [
        MetricUse(kind, metric, group, sorted(hpas))
        for (group, metric, kind), hpas in sorted(found.items())
    ]
