"""Which HPAs of a cluster use which metric of the custom and external metrics APIs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from adapter.hpa import ManifestError, MetricKind, MetricSpec, from_manifest
from adapter.pipeline.attribution.serieslabels import DEVICE_LABELS
from adapter.tools.client.access import Api, Json
from apiservice.labels.manifest import selector_text
from apiservice.labels.selector import parse

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


def describe_metric(metric: MetricSpec) -> str:
    """Return what else an HPA says of a metric than its name: the object, and the selector."""
    described = metric.described
    object_name = "" if described is None else f"{described.kind} {described.name}"
    return " ".join(filter(None, (object_name, metric_selector(metric))))


def metric_selector(metric: MetricSpec) -> str:
    """Return the selector of a metric; empty without one, or if it is not valid."""
    try:
        return selector_text(metric.selector)
    except (KeyError, ValueError):
        return ""


def lost_keys(uses: Iterable[HpaUse], metrics: Collection[str]) -> list[LostKeys]:
    """Return the keys of metric selectors that built-in metrics do not know.

    A rule knows every label of its series. A built-in metric of pods knows those of the device; an
    external one also the pods' own labels, so that only the user can say what is lost there.

    Args:
        uses: the metrics of HPAs.
        metrics: names of the catalogue.
    """
    lost = []
    for use in uses:
        keys = {
            term.key for term in parse(metric_selector(use.metric)).requirements
        } - DEVICE_LABELS
        if keys and use.metric.name in metrics and use.group == GROUPS[MetricKind.PODS]:
            lost.append(LostKeys(use.metric.name, use.key, sorted(keys)))
    return lost


class LostKeys(NamedTuple):
    """Keys of one metric's selector that only a rule serves."""

    metric: str
    hpa: str
    keys: Sequence[str]


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
    by_key: dict[tuple[str, str, str], dict[str, None]] = {}
    for use in uses:
        key = (use.group, use.metric.name, str(use.metric.kind))
        by_key.setdefault(key, {})[use.key] = None
    return [
        MetricUse(kind, metric, group, sorted(hpas))
        for (group, metric, kind), hpas in sorted(by_key.items())
    ]
