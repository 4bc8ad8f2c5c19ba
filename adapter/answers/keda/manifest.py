"""ScaledObjects from their manifests, also from those that are not valid.

:mod:`adapter.answers.keda.scaledobjects` keeps all of a cluster, reduced to their targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from adapter.answers.keda.manifesttypes import wrong_fields
from adapter.pipeline.cluster.changes import ChangedObject, edit, set_fields
from adapter.pipeline.cluster.fieldtypes import TypeFault
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.managers import Manager, manager_of
from apiservice.labels.selector import Selector, SelectorError, parse
from apiservice.wire import instant

SCALEDOBJECTS: Final = "/apis/keda.sh/v1alpha1"
_ADAPTER: Final = "gpu-metrics-adapter"
_EXTERNAL: Final = ("external", "external-push")
TRANSFER: Final = "scaledobject.keda.sh/transfer-hpa-ownership"
"""With it, KEDA takes over the HPA that ``horizontalPodAutoscalerConfig.name`` names (KEDA's page
"Scaling Deployments, StatefulSets & Custom Resources", "Transfer ownership of an existing HPA").
"""
PAUSED: Final = ("autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas")


class KedaCondition(NamedTuple):
    """One of ``status.conditions``: Ready, Active, Fallback, Paused."""

    type: str
    status: str
    reason: str
    message: str


class SeenTrigger(NamedTuple):
    """One of ``spec.triggers``."""

    place: int
    """From 0."""
    type: str
    metadata: Mapping[str, str]
    metric_type: str
    """``AverageValue``, KEDA's default, or what the trigger says."""

    @property
    def path(self) -> str:
        """Its place in the manifest."""
        return f"spec.triggers[{self.place}]"

    @property
    def query(self) -> str:
        """The PromQL of a trigger that asks a Prometheus; empty for others."""
        return self.metadata.get("query", "") if self.type == "prometheus" else ""

    @property
    def pods(self) -> Selector | None:
        """Its podSelector; None if it is not valid."""
        try:
            return parse(self.metadata.get("podSelector", ""))
        except SelectorError:
            return None

    @property
    def refuses_metric_type(self) -> bool:
        """Whether KEDA refuses ``metricType``: ``GetMetricTargetType`` of kedacore/keda
        ``pkg/scalers/scaler.go``, which all scalers of external metrics call."""
        of_external = self.type in _EXTERNAL or bool(self.query)
        return of_external and self.metric_type not in ("AverageValue", "Value")

    @property
    def ours(self) -> bool:
        """Whether its scaler is the adapter, by the usual name of its Service."""
        return self.type in _EXTERNAL and _ADAPTER in self.metadata.get("scalerAddress", "")


class SeenScaledObject(NamedTuple):
    """A ScaledObject of KEDA."""

    namespace: str
    name: str
    kind: str
    target: str
    triggers: tuple[SeenTrigger, ...] = ()
    origin: str = ""
    """The file; empty for one of the cluster."""
    high: int | None = None
    """``maxReplicaCount``; None if it is not a number."""
    takes_over: str = ""
    """The HPA that it takes over; empty if it makes its own."""
    conditions: tuple[KedaCondition, ...] = ()
    low: int = 0
    """``minReplicaCount``; KEDA's default is 0."""
    paused: bool = False
    manager: Manager | None = None
    """What writes it again."""
    created: float | None = None
    """Epoch seconds; None if not known."""
    hpa: str = ""
    """The HPA that it makes, or takes over."""
    faults: tuple[TypeFault, ...] = ()
    """Fields of a file that the API server refuses; it has accepted those of a cluster."""

    @property
    def subject(self) -> str:
        """How a finding names it."""
        where = f" in {self.origin}" if self.origin else ""
        return f"scaledobject {self.namespace}/{self.name}{where}"

    @property
    def edit(self) -> str | Fix:
        """How a person corrects it so that it lasts; empty for one of a file."""
        return "" if self.origin else make_lasting(self.object, edit(self.object, "correct it"))

    @property
    def resume(self) -> str | Fix:
        """How a person ends its pause so that it lasts."""
        what = f"remove the annotation {' or '.join(PAUSED)}"
        return "" if self.origin else make_lasting(self.object, edit(self.object, what))

    def patch(self, path: str, value: object) -> str | Fix:
        """Return how one field is set: ``spec.triggers[0].metricType``; empty for one of a file."""
        return self.patch_fields({path: value})

    def patch_fields(self, fields: Mapping[str, object]) -> str | Fix:
        """Return how fields are set, path -> value; empty for one of a file."""
        return "" if self.origin else make_lasting(self.object, set_fields(self.object, fields))

    @property
    def object(self) -> ChangedObject:
        """It, as an object to change."""
        return ChangedObject(
            "ScaledObject", self.namespace, self.name, self.manager, group="keda.sh"
        )

    @property
    def ours(self) -> tuple[SeenTrigger, ...]:
        """The triggers that ask the adapter."""
        return tuple(trigger for trigger in self.triggers if trigger.ours)


def read_scaledobject(manifest: Mapping[str, Any], origin: str = "") -> SeenScaledObject:
    """Read a ScaledObject; a target's missing kind is a Deployment."""
    meta, spec = _mapping(manifest.get("metadata")), _mapping(manifest.get("spec"))
    target, notes = _mapping(spec.get("scaleTargetRef")), _mapping(meta.get("annotations"))
    config = _mapping(_mapping(spec.get("advanced")).get("horizontalPodAutoscalerConfig"))
    status = _mapping(manifest.get("status"))
    high, low = _number(spec.get("maxReplicaCount"), 100), _number(spec.get("minReplicaCount"), 0)
    idle = _number(spec.get("idleReplicaCount"), 0 if low is None else low)
    return SeenScaledObject(
        str(meta.get("namespace") or "default"),
        str(meta.get("name") or ""),
        str(target.get("kind") or "Deployment"),
        str(target.get("name") or ""),
        tuple(_triggers(spec.get("triggers"))),
        origin,
        high,
        str(config.get("name") or "") if str(notes.get(TRANSFER)).lower() == "true" else "",
        _conditions(status.get("conditions")),
        low=min(low, idle) if low is not None and idle is not None else 1,
        paused=any(str(notes.get(key) or "false").lower() != "false" for key in PAUSED),
        manager=manager_of(meta),
        created=instant.read(meta.get("creationTimestamp")),
        hpa=str(status.get("hpaName") or config.get("name") or f"keda-hpa-{meta.get('name')}"),
        faults=tuple(wrong_fields(manifest)) if origin else (),
    )


def _number(value: Any, default: int) -> int | None:
    """Return a number of replicas; None if it is not a number."""
    if value is None:
        return default
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _conditions(rows: Any) -> tuple[KedaCondition, ...]:
    """Return the first condition of each type, of which KEDA writes one."""
    read: dict[str, KedaCondition] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping):
            condition = KedaCondition(*(str(row.get(key) or "") for key in KedaCondition._fields))
            read.setdefault(condition.type, condition)
    return tuple(read.values())


def _triggers(rows: Any) -> Iterator[SeenTrigger]:
    for place, row in enumerate(rows if isinstance(rows, list) else ()):
        trigger = _mapping(row)
        metadata = _mapping(trigger.get("metadata"))
        yield SeenTrigger(
            place,
            str(trigger.get("type") or ""),
            {str(key): _text(value) for key, value in metadata.items()},
            str(trigger.get("metricType") or "AverageValue"),
        )


def _text(value: Any) -> str:
    """Return a value as KEDA reads it: YAML's true is ``true`` in the JSON of the API server."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
