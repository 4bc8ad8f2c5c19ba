"""Everything that the HPA controller looks at, read with the caller's rights."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from adapter.answers.causes import Cause
from adapter.answers.causes.metricsapis import EXTERNAL, OF_TYPES
from adapter.answers.keda.manifest import SCALEDOBJECTS, SeenTrigger, read_scaledobject
from adapter.answers.keda.trouble import ScaledFacts, causes_of_scaled
from adapter.hpa import HpaSpec, ManifestError, MetricKind, Missing, PodState, from_manifest
from adapter.pipeline.cluster.changes import ChangedObject
from adapter.pipeline.cluster.metricsapi import CUSTOM, NEWEST
from adapter.tools.client.access import Api, Json
from adapter.tools.client.changedobjects import read_changed
from adapter.tools.client.errors import ClientError, MissingRight
from adapter.tools.client.hpacommands import scaled_object
from adapter.tools.client.naming import read_named
from adapter.tools.explain import metricvalues
from adapter.tools.explain.causefacts import Around, read_causes
from adapter.tools.explain.events import NO_EVENTS, RecentEvents, events_of
from adapter.tools.explain.gpupod import NO_GPU_PODS, PodViews, gpu_pods
from adapter.tools.explain.headroom import NO_HEADROOM, HeldHeadroom, headroom_of
from adapter.tools.explain.metricvalues import ReadValues
from adapter.tools.explain.past import NO_PAST, ReadPast, past_of
from adapter.tools.explain.scaledfacts import read_facts
from adapter.tools.explain.scaletarget import HPAS, Scale, ScaleError, read_scale, same_target
from apiservice.labels.selector import SelectorError, parse
from apiservice.wire import instant

_RIVALS: Final = 50
"""Other HPAs of the namespace whose selectors are read."""


@dataclass(frozen=True, slots=True)
class HpaFacts:
    """One HPA and what its decision depends on."""

    hpa: Json
    spec: HpaSpec | None
    """None if ``spec_error`` says what cannot be read."""
    now: float
    scale: Scale | None = None
    """None if ``no_scale`` says why the controller cannot read it."""
    no_scale: ScaleError | None = None
    spec_error: str = ""
    pods: Sequence[Json] = ()
    gpu: PodViews = NO_GPU_PODS
    values: Sequence[ReadValues] = ()
    """One for each metric of the spec."""
    events: RecentEvents = NO_EVENTS
    known: Sequence[str] = ()
    """Metrics of the custom metrics API; read only if one of the HPA is not found."""
    rival_hpas: Sequence[Json] = ()
    """Other HPAs that control some of the pods, by name."""
    denied: MissingRight | None = None
    """What the HPA controller may not read, as the HPA's status says."""
    headroom: HeldHeadroom = NO_HEADROOM
    past: ReadPast = NO_PAST
    target: ChangedObject | None = None
    """The scale target with what manages it; read only if its size is 0."""
    triggers: Sequence[SeenTrigger] = ()
    """Of the ScaledObject that owns the HPA; none if the caller may not read it."""
    targets: Sequence[str] = ()
    """Workloads of the target's kind in the namespace, if the target does not exist."""
    causes: Sequence[Cause] = ()
    """Why pods that the HPA wants do not exist, or do not serve."""
    unread: Sequence[str] = ()
    """What could not be read for the causes."""

    @property
    def scale_error(self) -> str:
        """Why the controller cannot read the scale; empty if it can."""
        return "" if self.no_scale is None else str(self.no_scale)

    @property
    def rivals(self) -> Sequence[str]:
        """Names of the other HPAs that control some of the pods."""
        return [str(row["metadata"]["name"]) for row in self.rival_hpas]

    @property
    def scaled_object(self) -> str:
        """The ScaledObject that owns the HPA; empty without one."""
        return scaled_object(self.hpa)

    @property
    def namespace(self) -> str:
        """The HPA's namespace."""
        return str(self.hpa["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """The HPA's name."""
        return str(self.hpa["metadata"]["name"])


async def gather(api: Api, name: str) -> HpaFacts:
    """Read an HPA and everything that its decision depends on; raises ClientError."""
    hpa = await read_named(api, "HPA", HPAS, "horizontalpodautoscalers", name)
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **hpa}
    namespace = str(hpa["metadata"]["namespace"])
    facts, past = await asyncio.gather(
        _facts(api, hpa, name), past_of(api, namespace, name, time.time())
    )
    return replace(facts, past=past)


async def _facts(api: Api, hpa: Json, name: str) -> HpaFacts:
    events = await events_of(api, "HorizontalPodAutoscaler", name)
    try:
        spec, spec_error = from_manifest(hpa), ""
    except ManifestError as error:
        spec, spec_error = None, str(error)
    now = time.time()
    try:
        scale = await read_scale(api, hpa)
    except ScaleError as error:
        read = await read_causes(api, Around(hpa, now, events=events.rows))
        return HpaFacts(
            hpa,
            spec,
            now,
            no_scale=error,
            spec_error=spec_error,
            events=events,
            targets=await _workloads(api, hpa),
            causes=read.causes,
            unread=read.unread,
        )
    if spec is None:
        return HpaFacts(hpa, None, now, scale, spec_error=spec_error, events=events)
    return await _facts_with_pods(api, hpa, spec, scale, events)


_TARGETS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}


async def _workloads(api: Api, hpa: Json) -> list[str]:
    """Return the workloads of the target's kind, by name; none if the caller may not list them."""
    resource = _TARGETS.get(str(hpa["spec"]["scaleTargetRef"].get("kind")))
    if resource is None:
        return []
    try:
        rows = await api.list(f"/apis/apps/v1/namespaces/{hpa['metadata']['namespace']}/{resource}")
    except ClientError:  # the error of the target itself is shown
        return []
    return sorted(str(row["metadata"]["name"]) for row in rows)


async def _facts_with_pods(
    api: Api, hpa: Json, spec: HpaSpec, scale: Scale, events: RecentEvents
) -> HpaFacts:
    """Read pods and values; without a selector or replicas, the controller reads neither."""
    namespace, selector = str(hpa["metadata"]["namespace"]), scale.selector
    target = await _target(api, hpa) if not scale.replicas else None
    if not selector:
        return HpaFacts(hpa, spec, time.time(), scale, events=events, target=target)
    pods = await api.list(f"/api/v1/namespaces/{namespace}/pods", labels=selector)
    gpu, rivals, headroom, scaled, values = await asyncio.gather(
        _gpu(api, spec, namespace, selector),
        _rivals(api, hpa, pods),
        headroom_of(api, hpa),
        _read_scaled_object(api, hpa),
        asyncio.gather(
            *(metricvalues.read(api, metric, selector, pods, namespace) for metric in spec.metrics)
        ),
    )
    now = time.time()
    problems = {
        OF_TYPES[metric.kind.value].group: answer.problem
        for metric, answer in zip(spec.metrics, values, strict=True)
        if answer.problem is not None
    }
    around = Around(hpa, now, scale.replicas, selector, pods, events.rows, problems)
    read = await read_causes(api, around)
    return HpaFacts(
        hpa,
        spec,
        now,
        scale,
        pods=pods,
        gpu=gpu,
        values=values,
        events=events,
        known=await _read_known_metrics(api, spec, values),
        rival_hpas=rivals,
        headroom=headroom,
        target=target,
        triggers=() if scaled is None else read_scaledobject(scaled).triggers,
        causes=[*await _of_keda(api, hpa, scaled, problems, now), *read.causes],
        unread=read.unread,
    )


async def _target(api: Api, hpa: Json) -> ChangedObject | None:
    """Return the target with what manages it; None if the caller may not read it."""
    reference = hpa["spec"]["scaleTargetRef"]
    namespace, name = str(hpa["metadata"]["namespace"]), str(reference["name"])
    try:
        return await read_changed(api, str(reference["kind"]), namespace, name)
    except ClientError:
        return None


async def _read_scaled_object(api: Api, hpa: Json) -> Json | None:
    """Return the ScaledObject that owns an HPA; None without one, or if it may not be read."""
    if not (name := scaled_object(hpa)):
        return None
    path = f"{SCALEDOBJECTS}/namespaces/{quote(hpa['metadata']['namespace'])}/scaledobjects"
    try:
        return await api.get(f"{path}/{quote(name)}")
    except ClientError:  # the caller may read the HPA alone
        return None


async def _of_keda(
    api: Api,
    hpa: Json,
    manifest: Json | None,
    problems: Mapping[str, ClientError],
    now: float,
) -> list[Cause]:
    """Return why the triggers of an HPA's ScaledObject give no value. What is around it is read
    only if one of them gives none."""
    if manifest is None:
        return []
    scaled, problem = read_scaledobject(manifest), problems.get(EXTERNAL.group)
    facts = ScaledFacts(now, scaled, hpa)
    if problem is not None:
        facts, _ = await read_facts(api, scaled, manifest, problem.answer or problem.brief)
    return causes_of_scaled(facts._replace(hpa=hpa))


async def _read_known_metrics(api: Api, spec: HpaSpec, values: Sequence[ReadValues]) -> list[str]:
    """Return the metrics of pods, if one that the HPA names is not found."""
    lost = [
        metric.kind is MetricKind.PODS and isinstance(answer.values, Missing)
        for metric, answer in zip(spec.metrics, values, strict=True)
    ]
    if not any(lost):
        return []
    try:
        served = await api.get(f"{CUSTOM}/{NEWEST}")
    except ClientError:  # the metric's own failure says so already
        return []
    names = [str(row.get("name") or "") for row in served.get("resources") or ()]
    return sorted(name.removeprefix("pods/") for name in names if name.startswith("pods/"))


async def _gpu(api: Api, spec: HpaSpec, namespace: str, selector: str) -> PodViews:
    """Read the view API only for metrics of pods: it has no others."""
    if not any(metric.kind is MetricKind.PODS for metric in spec.metrics):
        return NO_GPU_PODS
    return await gpu_pods(api, namespace, selector)


async def _rivals(api: Api, hpa: Json, pods: Sequence[Json]) -> list[Json]:
    """Return the other HPAs that control some of the pods, as the controller finds them."""
    namespace, name = hpa["metadata"]["namespace"], hpa["metadata"]["name"]
    if not pods:
        return []
    try:
        rows = await api.list(f"{HPAS}/namespaces/{namespace}/horizontalpodautoscalers")
    except ClientError:  # the caller may read this HPA alone
        return []
    others = [row for row in rows if row["metadata"]["name"] != name][:_RIVALS]
    controls = await asyncio.gather(*(_controls(api, row, hpa, pods) for row in others))
    rivals = [row for row, rival in zip(others, controls, strict=True) if rival]
    return sorted(rivals, key=lambda row: str(row["metadata"]["name"]))


async def _controls(api: Api, other: Json, hpa: Json, pods: Sequence[Json]) -> bool:
    if same_target(other, hpa):
        return True
    try:
        selector = parse((await read_scale(api, other)).selector)
    except (ScaleError, ClientError, SelectorError):
        return False
    return not selector.empty and any(
        selector.matches(pod["metadata"].get("labels") or {}) for pod in pods
    )


def pod_state(pod: Json) -> PodState:
    """Return a pod as the HPA controller groups it."""
    meta, status = pod["metadata"], pod.get("status") or {}
    conditions: list[Json] = status.get("conditions") or []
    ready: Json = next((row for row in conditions if row.get("type") == "Ready"), {})
    return PodState(
        str(meta["name"]),
        str(status.get("phase") or ""),
        ready.get("status") == "True",
        "deletionTimestamp" in meta,
        instant.read(status.get("startTime")),
        instant.read(ready.get("lastTransitionTime")),
    )


def of_pods(kind: MetricKind) -> bool:
    """Return whether a metric has one value for each pod."""
    return kind is MetricKind.PODS or kind.of_resources
