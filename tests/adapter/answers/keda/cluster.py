"""Pods, what is known of them, and a scaler that is asked about them."""

from __future__ import annotations

from typing import cast

from adapter.answers.keda.scaledobjects import ScaledObjects
from adapter.answers.keda.scaler import Options, Scaler, ScalerValues
from adapter.answers.keda.trigger import Ref
from adapter.answers.keda.triggers import TriggerAnswer
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.unnamedpods import NOT_NAMED
from adapter.pipeline.attribution.values import STALE
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.devices.options import TelemetryOptions
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import Selector
from apiservice.runtime.steps import at_once
from tests.adapter.world import make_pod

PATIENCE = 65.0
STALE_AFTER = 300.0
JUST_NOW = 0.5
"""Epoch seconds at which pods become ready, unless a test says otherwise: tests ask at about 0."""
METRIC = "gpu_utilization"
__all__ = ["METRIC", "NOT_NAMED", "PATIENCE", "STALE", "STALE_AFTER", "Cluster", "named", "trigger"]


class Feed:
    """The origin of the pods, silent for ``silence`` seconds."""

    last_error = "the watch was cut"
    rejected = 0

    def __init__(self) -> None:
        self.silence = 0.0

    def age(self, now: float) -> float:
        return self.silence


class Readings(dict[str, float | str]):
    """Counts its changes."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0

    def __setitem__(self, name: str, reading: float | str) -> None:
        super().__setitem__(name, reading)
        self.version += 1


class Cluster:
    """One namespace ``ml``, and of a snapshot what is asked without a promise."""

    def __init__(self, *, watched: bool = False, hold: float = 0.0) -> None:
        self.index = PodIndex()
        self.feed = Feed()
        self.index.fed_by(self.feed)
        self.index.synced = True
        self.readings: Readings = Readings()
        """Pod -> its value, or why there is none."""
        self.asked: list[tuple[str, str]] = []
        self.targets = ScaledObjects() if watched else None
        self.catalog = Catalog()
        self.scaler = Scaler(
            self.catalog,
            cast("ScalerValues", self),
            ObjectLookup(self.index, Services(), Nodes()),
            self.targets,
            Options(lambda: PATIENCE, STALE_AFTER, hold),
        )

    def put(self, name: str, reading: float | str = NOT_NAMED, **how: object) -> None:
        """A pod ``app=inf`` of Deployment ``inf``, and what is known of it."""
        made: dict[str, object] = {"uid": f"uid-{name}", "ready_since": JUST_NOW, **how}
        base = make_pod(name, **made)  # type: ignore[arg-type]  # the caller's
        labels = {"app": "inf", "pod-template-hash": "abc"}
        owner = Owner("apps/v1", "ReplicaSet", "inf-abc")
        self.index.apply(EventType.MODIFIED, base.replace(labels=labels, owner=owner))
        self.readings[name] = reading

    def remove(self, name: str) -> None:
        pod = self.index.get("ml", name)
        assert pod is not None
        self.index.apply(EventType.DELETED, pod)

    @property
    def snapshot(self) -> Cluster:
        return self

    @property
    def options(self) -> TelemetryOptions:
        return TelemetryOptions()

    @property
    def version(self) -> int:
        return self.readings.version

    def pod(self, pod: Pod, metric: str, selector: Selector, now: float) -> Reading | Absence:
        self.asked.append((metric, str(selector)))
        known = self.readings[pod.ref.name]
        if isinstance(known, str):
            return Absence(known)
        return Reading(known, now, 30, now + PATIENCE, (), partial=False)

    def answer(self, ref: Ref, now: float, *, newest: bool = False) -> TriggerAnswer:
        return at_once(self.scaler.answer_trigger(ref, now, newest=newest))

    def value(self, now: float = 0.0, **metadata: str) -> float:
        return self.answer(trigger(**metadata), now).number.exact

    def active(self, now: float = 0.0, **metadata: str) -> bool:
        return self.answer(trigger(**metadata), now).active


def trigger(**metadata: str) -> Ref:
    """A trigger on ``app=inf`` with a target of 70; an empty value leaves a key out."""
    whole = {"metric": METRIC, "target": "70", "podSelector": "app=inf", **metadata}
    return Ref("ml", "so", {key: value for key, value in whole.items() if value})


def named(ref: Ref, key: str, text: str) -> Ref:
    """The same trigger of another ScaledObject: ``key`` is ``name`` or ``namespace``."""
    return ref._replace(name=text) if key == "name" else ref._replace(namespace=text)
