"""Write the manifest of an HPA or a ScaledObject, with the reason of each choice as a comment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.metric import Scope
from adapter.pipeline.catalog.serverkind import GATEWAY_WAITING
from adapter.pipeline.catalog.targetfit import Selects
from adapter.pipeline.cluster.optin import PREFIX
from adapter.pipeline.cluster.podgroups import selects_of
from adapter.tools.generate.presets import PROMISED, Preset, ScaledMetric

API_VERSIONS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Rollout": "argoproj.io/v1alpha1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}
"""Kind of a workload with a scale subresource -> its usual API version."""
_METRICS: Final = built_in().metrics
_HELD: Final = 600
"""Seconds that a replica is kept: several times the minutes that a new one needs."""
_COOLDOWN: Final = 900
_GATEWAY: Final = ScaledMetric(
    GATEWAY_WAITING,
    "4",
    "the requests at the gateway, before a server has them; also while there is no server",
    "the requests that may wait for as long as you accept",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked for.

    Args:
        gateway: the Service of a gateway, for an HPA, or the label selector of its pods, for a
            ScaledObject. Empty if there is none.
        pods: label selector of the workload's pods, for a ScaledObject.
    """

    preset: Preset
    workload: str
    kind: str
    api_version: str
    low: int
    high: int
    namespace: str = ""
    target: str = ""
    gateway: str = ""
    pods: str = ""
    address: str = ""
    promise: Mapping[str, str] = field(default_factory=dict)
    """Labels of a latency promise, which replaces the metrics of the preset; empty without one."""

    def of_group(self, metric: ScaledMetric) -> bool:
        """Return whether the metric of each pod of a group counts.

        The HPA controller selects only the leaders of a LeaderWorkerSet, and divides by the number
        of groups. The metrics of servers are right so, because a leader answers for its group.
        """
        leaders = selects_of(self.kind, None) is Selects.LEADERS
        return leaders and _METRICS[metric.name].scope is Scope.DEVICE

    @property
    def metrics(self) -> tuple[ScaledMetric, ...]:
        """The metrics of the workload's own pods, with the wanted target."""
        first, *others = (PROMISED,) if self.promise else self.preset.metrics
        if self.target:
            chosen = ScaledMetric(first.name, self.target, first.reason, "the target that you gave")
            return (chosen, *others)
        return (first, *others)


def hpa(wanted: Wanted) -> str:
    """Return an HPA as YAML."""
    return "\n".join((*_hpa(wanted), ""))


def scaledobject(wanted: Wanted) -> str:
    """Return a ScaledObject as YAML."""
    return "\n".join((*_scaledobject(wanted), ""))


def _hpa(wanted: Wanted) -> Iterator[str]:
    yield from _head(wanted, "autoscaling/v2", "HorizontalPodAutoscaler")
    if wanted.low == 0:
        yield "  # Needs Kubernetes 1.37, or the feature gate HPAScaleToZero. The gateway's metric"
        yield "  # starts the first replica: at 0 the metrics of the pods have no value."
    yield f"  minReplicas: {wanted.low}"
    yield f"  maxReplicas: {wanted.high}   # the replicas that you can afford"
    yield "  metrics:             # the largest number of replicas that a metric asks for applies"
    for metric in wanted.metrics:
        if wanted.of_group(metric):
            yield "  # the mean over the pods of all groups; a Pods metric is that of the leaders"
            workload = (
                f"apiVersion: {wanted.api_version}, kind: {wanted.kind}, name: {wanted.workload}"
            )
            yield from _object(metric, workload, f'{{type: Value, value: "{metric.target}"}}')
            continue
        yield f"  # {metric.reason}"
        yield "  - type: Pods"
        yield "    pods:"
        if wanted.promise:
            labels = ", ".join(f"{key}: {value}" for key, value in wanted.promise.items())
            yield "      metric:"
            yield f"        name: {metric.name}"
            yield f"        selector: {{matchLabels: {{{labels}}}}}"
        else:
            yield f"      metric: {{name: {metric.name}}}"
        yield f"      # {metric.number}"
        yield f"      target: {_average(metric)}"
    if wanted.gateway:
        yield f"  # {_GATEWAY.reason}"
        service = f"apiVersion: v1, kind: Service, name: {wanted.gateway}"
        yield from _object(_GATEWAY, service, _average(_GATEWAY))
    yield "  behavior:"
    yield from _behavior("    ")


def _scaledobject(wanted: Wanted) -> Iterator[str]:
    yield from _head(wanted, "keda.sh/v1alpha1", "ScaledObject")
    yield f"  minReplicaCount: {wanted.low}"
    yield f"  maxReplicaCount: {wanted.high}   # the replicas that you can afford"
    if wanted.low == 0:
        yield "  # how long an idle workload stays up: longer than a start takes"
        yield f"  cooldownPeriod: {_COOLDOWN}"
    yield "  # While no value is known, keep the replicas, and have one. KEDA counts several"
    yield "  # failures a minute, also while the first pod loads its model."
    yield "  fallback: {failureThreshold: 30, replicas: 1, behavior: currentReplicasIfHigher}"
    yield "  triggers:   # podSelector: the labels of the pods; if it matches none, the value is 0"
    if wanted.gateway:
        yield from _trigger("external-push", _GATEWAY, wanted.gateway, wanted.address)
    for metric in wanted.metrics:
        mean = wanted.of_group(metric)
        yield from _trigger("external", metric, wanted.pods, wanted.address, mean=mean)
        if wanted.promise:
            promise = ",".join(f"{key}={value}" for key, value in wanted.promise.items())
            yield f"      metricSelector: {promise}"
    yield "  advanced:"
    yield "    horizontalPodAutoscalerConfig:"
    yield "      behavior:"
    yield from _behavior("        ")


def _head(wanted: Wanted, api_version: str, kind: str) -> Iterator[str]:
    where = f"{wanted.namespace}/{wanted.workload}" if wanted.namespace else wanted.workload
    yield f"# Scales {wanted.kind} {where}: {wanted.preset.title}."
    yield from _opt_in(wanted)
    yield f"apiVersion: {api_version}"
    yield f"kind: {kind}"
    yield "metadata:"
    yield f"  name: {_scalar(wanted.workload)}"
    if wanted.namespace:
        yield f"  namespace: {_scalar(wanted.namespace)}"
    yield "spec:"
    yield "  scaleTargetRef:"
    yield f"    apiVersion: {wanted.api_version}"
    yield f"    kind: {wanted.kind}"
    yield f"    name: {_scalar(wanted.workload)}"


def _opt_in(wanted: Wanted) -> Iterator[str]:
    """Say what the pod template needs, so that the adapter reads the page of the server."""
    server = wanted.preset.server
    if server is None:
        return
    words = {"scrape": "true", "port": str(server.port)}
    if server.path != "/metrics":
        words["path"] = server.path
    yield "# The pod template needs these annotations; the port is the default one:"
    for key, value in words.items():
        yield f"#   {PREFIX}{key}: {json.dumps(value)}"


def _average(metric: ScaledMetric) -> str:
    return f'{{type: AverageValue, averageValue: "{metric.target}"}}'


def _object(metric: ScaledMetric, described: str, target: str) -> Iterator[str]:
    yield "  - type: Object"
    yield "    object:"
    yield f"      describedObject: {{{described}}}"
    yield f"      metric: {{name: {metric.name}}}"
    yield f"      # {metric.number}"
    yield f"      target: {target}"


def _trigger(
    kind: str, metric: ScaledMetric, pods: str, address: str, *, mean: bool = False
) -> Iterator[str]:
    yield f"  # {metric.reason}"
    yield f"  - type: {kind}"
    if mean:
        yield "    # the mean over the pods of all groups, because a replica is a group of pods"
        yield "    metricType: Value"
    yield "    metadata:"
    yield f"      scalerAddress: {address}"
    yield f"      metric: {metric.name}"
    yield f"      # {metric.number}"
    yield f'      target: "{metric.target}"'
    yield f"      podSelector: {json.dumps(pods)}"
    if mean:
        yield "      aggregate: mean"


def _behavior(indent: str) -> Iterator[str]:
    for row in (
        "scaleUp:",
        "  # At once, because a replica needs minutes: node, image and model. At most double, or",
        "  # two more, in a minute, so that a short peak does not order many GPUs.",
        "  stabilizationWindowSeconds: 0",
        "  selectPolicy: Max",
        "  policies:",
        "  - {type: Percent, value: 100, periodSeconds: 60}",
        "  - {type: Pods, value: 2, periodSeconds: 60}",
        "scaleDown:",
        "  # Slowly, because a removed replica takes minutes to come back.",
        f"  stabilizationWindowSeconds: {_HELD}",
        "  policies:",
        "  - {type: Pods, value: 1, periodSeconds: 120}",
    ):
        yield indent + row


def _scalar(name: str) -> str:
    """Return a name as YAML text: 123, 1e3, true and y are names, too, in every version of YAML."""
    import yaml  # noqa: PLC0415 - every command imports this module

    plain = name[0].isalpha() and len(name) > 1 and yaml.safe_load(name) == name
    return name if plain else f'"{name}"'
