"""The resource ``gpuhistories``: what HPAs and workloads were, a point a minute.

An object that is asked for by its name has the last 24 hours, and one of a list the last hour.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from adapter.answers.history.hours import Column
from adapter.answers.history.ring import HOURS, MINUTE, HistoryRing, NotedPast, subject
from adapter.answers.view.fragments import Json
from adapter.answers.view.gpuworkloads import GpuWorkloads
from adapter.answers.view.schema import Schema, array, integer, struct, text, time
from adapter.answers.view.snapshots import check
from adapter.figures import age
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from apiservice.runtime.steps import Steps, parts
from apiservice.view.resource import Column as TableColumn
from apiservice.view.resource import Key, RawCell, ViewResource
from apiservice.wire import instant

LISTED: Final = 60
"""Minutes of an object of a list."""
WHOLE: Final = HOURS * 60
"""Minutes of an object that is asked for by its name."""
HPA: Final = "horizontalpodautoscaler"
"""Before the name of an HPA, as the kind is before the name of a workload."""
_STEP: Final = 16
"""Objects whose points one step reads."""
_KEYS: Final = 256
"""HPAs whose names one step takes."""
_MOST: Final = 512
"""Objects that are kept between ``prepare`` and the answers: several pages of several requests."""


def points(of: str) -> Schema:
    """Return the schema of a column of numbers."""
    number = {"type": "number", "format": "double"}
    return array(f"{of}, for each minute; null where it is not known.", number)


def time_fields(past: NotedPast | None = None) -> Json:
    """Return the fields that say when points were noted; without any, their schemas."""
    if past is None:
        return {
            "start": time("When the first point was noted; each next one is a minute later."),
            "intervalSeconds": integer("Time between two points: 60."),
        }
    return {"start": instant.write(past.start), "intervalSeconds": int(MINUTE)}


GPUHISTORIES: Final = ViewResource(
    plural="gpuhistories",
    singular="gpuhistory",
    kind="GpuHistory",
    short_names=(),
    namespaced=True,
    columns=(
        TableColumn("Metric", "Metric of the values: the first one of an HPA."),
        TableColumn("Points", "Minutes of the last hour that are known.", "integer"),
        TableColumn("Least", "Lowest value of the last hour.", "number"),
        TableColumn("Most", "Highest value of the last hour.", "number"),
        TableColumn("Last", "Newest value of the last hour.", "number"),
        TableColumn("Replicas", "Lowest and highest number of replicas in the last hour."),
        TableColumn("State", "Newest state of the HPA."),
        TableColumn(
            "Since",
            "Time for which points are kept now.",
            numbers=("Since-Seconds",),
            write=age,
        ),
    ),
    schema=struct(
        "What an HPA or a workload was, a point a minute: the last hour in a list, and 24 hours "
        "for an object that is asked for by its name. A minute that is missing is null, never 0.",
        of=text("Kind of what the points are about: HorizontalPodAutoscaler, or of the workload."),
        metric=text("Metric of value and target: the first one of the HPA."),
        **time_fields(),
        value=points("Value that the HPA used, with three digits"),
        target=points("Target of the HPA"),
        current=points("Replicas that the HPA controller last saw"),
        desired=points("Replicas that the HPA controller last wanted"),
        state=array(
            "State of the HPA, for each minute; null where it is not known.",
            {"type": "string"},
        ),
        utilization=points("Mean utilization of the workload's pods, with two digits"),
        pods=points("Pods of the workload"),
        measured=points("Pods of the workload that have a value"),
    ),
    fields=("of",),
    categories=(),
)


class _Named(NamedTuple):
    """What an object is about."""

    kind: str
    """Kind of the subject: ``hpa`` or ``workload``."""
    name: str
    of: str
    """Kind of the Kubernetes object."""
    born: float
    """Epoch seconds of its creation; 0 if it is not known."""


class GpuHistories:
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        ring: the points.
        pods: the known pods.
        hpas: the known HPAs.
        workloads: the workloads above the pods.
    """

    def __init__(
        self, ring: HistoryRing, pods: PodIndex, hpas: Hpas, workloads: GpuWorkloads
    ) -> None:
        self._ring = ring
        self._pods = pods
        self._hpas = hpas
        self._workloads = workloads
        self._kept: OrderedDict[tuple[Key, int], NotedPast | None] = OrderedDict()

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        check(self._pods)
        keys = list((yield from self._workloads.keys(namespace)))
        for some in parts(tuple(self._hpas), _KEYS):
            keys += [
                Key(hpa.namespace, f"{HPA}.{hpa.name}")
                for hpa in some
                if namespace in (None, hpa.namespace)
            ]
            yield
        return sorted(keys)

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        yield from self._workloads.refresh(sorted({key.namespace for key in keys}))
        for some in parts(keys, _STEP):
            for key in some:
                self._kept[key, self._ring.last] = self._read(key, LISTED)
            yield
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        return self._workloads.labels(key)

    def fields(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        about = self._find_subject(key)
        return {} if about is None else {"of": about.of}

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """See the port."""
        if self._find_subject(key) is None:
            return None
        past, since = self._hour(key), self._ring.since
        if past is None:
            return (None, 0, *[None] * (len(GPUHISTORIES.columns) - 2))
        first, size = _leading_columns(past)
        values = [value for value in first if value is not None]
        sizes = [value for value in size if value is not None]
        states = [state for state in past.states() if state] if "state" in past.columns else ()
        return (
            past.metric or ("gpu_utilization" if "utilization" in past.columns else None),
            len(sizes),
            min(values, default=None),
            max(values, default=None),
            values[-1] if values else None,
            f"{min(sizes):g}..{max(sizes):g}" if sizes else None,
            states[-1] if states else None,
            None if since is None else int(now - since),
        )

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        return self._build_object(key, self._hour(key))

    def whole(self, key: Key, now: float) -> Json | None:
        """Return an object with all of its points; None if it does not exist."""
        return self._build_object(key, self._read(key, WHOLE))

    def _hour(self, key: Key) -> NotedPast | None:
        cache_key = (key, self._ring.last)
        return self._kept[cache_key] if cache_key in self._kept else self._read(key, LISTED)

    def _find_subject(self, key: Key) -> _Named | None:
        if key.name.startswith(f"{HPA}."):
            name = key.name.removeprefix(f"{HPA}.")
            hpa = self._hpas.find((key.namespace, name))
            if hpa is None:
                return None
            return _Named("hpa", name, "HorizontalPodAutoscaler", hpa.created or 0.0)
        kind = self._workloads.fields(key).get("kind")
        return None if kind is None else _Named("workload", key.name, kind, 0.0)

    def _read(self, key: Key, minutes: int) -> NotedPast | None:
        """Return points; those of an earlier object of the same name are left out."""
        about = self._find_subject(key)
        if about is None:
            return None
        past = self._ring.read(subject(about.kind, about.name, key.namespace), minutes)
        if past is None or past.start >= about.born:
            return past
        gone = int((about.born - past.start) // MINUTE)
        columns = {name: column[gone:] for name, column in past.columns.items()}
        return past._replace(start=past.start + gone * MINUTE, columns=columns)

    def _build_object(self, key: Key, past: NotedPast | None) -> Json | None:
        about = self._find_subject(key)
        if about is None:
            return None
        metadata = {"namespace": key.namespace, "name": key.name, "labels": dict(self.labels(key))}
        body: Json = {"metadata": metadata, "of": about.of}
        if past is None:
            return body
        if past.metric:
            body["metric"] = past.metric
        columns: Json = dict(past.columns)
        if "state" in columns:
            columns["state"] = past.states()
        return {**body, **time_fields(past), **columns}


def _leading_columns(past: NotedPast) -> tuple[Column, Column]:
    """Return the values, and the replicas or pods."""
    names = ("value", "current") if "value" in past.columns else ("utilization", "pods")
    values, size = (past.columns[name] for name in names)
    return values, size
