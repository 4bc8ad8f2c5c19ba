"""The resource ``gpunodes``: the nodes with GPUs, and whether a pod can start there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from adapter.answers.view.devices import Devices
from adapter.answers.view.fragments import Json
from adapter.answers.view.schema import array, integer, struct, text
from adapter.answers.view.snapshots import CurrentValues, PerSnapshot, check
from adapter.answers.view.standings import NodeStanding, NodeStandings, in_words
from adapter.pipeline.cluster.gpuresources import MIG_PREFIX
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.nodelabels import has_gpus, pool
from apiservice.runtime.steps import Steps, parts
from apiservice.view.resource import Column, Key, RawCell, ViewProvider, ViewResource

_STEP: Final = 256
"""Nodes, or devices, that one step looks at."""

GPUNODES: Final = ViewResource(
    plural="gpunodes",
    singular="gpunode",
    kind="GpuNode",
    short_names=(),
    namespaced=False,
    columns=(
        Column("Pool", "Node pool, by the labels of the node."),
        Column("GPUs", "GPUs of the node, by its labels or its status.", "integer"),
        Column("Reported", "GPUs or MIG instances that an exporter reports.", "integer"),
        Column("Allocatable", "Units of GPU resources that the node offers to pods.", "integer"),
        Column("Requested", "Units of GPU resources that its pods have requested.", "integer"),
        Column("Left", "Units that a pod can still get; 0 if no pod can start there.", "integer"),
        Column("Blocked", "Why no GPU pod can start there, besides that its GPUs are in use."),
        Column("Silent", "GPUs that no exporter reports.", "integer"),
        Column(
            "Withheld",
            "Units that the node has and does not offer: its device plugin takes them for "
            "unhealthy, or is gone.",
            wide=True,
        ),
        Column("Model", "Model of the GPUs, by the labels of the node.", wide=True),
    ),
    schema=struct(
        "A node that has GPUs by its status, by its labels, or by an exporter. Absent fields are "
        "not known.",
        pool=text("Node pool, by the labels of the node."),
        model=text("Model of the GPUs, by the labels of the node."),
        gpus=integer("GPUs of the node, by its labels or its status."),
        reported=integer("GPUs or MIG instances that an exporter reports."),
        allocatable=integer("Units of GPU resources that the node offers to pods."),
        requested=integer("Units of GPU resources that its pods have requested."),
        left=integer("Units that a pod can still get; 0 if no pod can start there."),
        silent=integer("GPUs that no exporter reports."),
        withheld=text("Units that the node has and does not offer, such as 1 of 8 nvidia.com/gpu."),
        blocked=array(
            "Why no GPU pod can start there, besides that its GPUs are in use.",
            struct(
                "A reason.",
                kind=text("What it is: condition, taint, not-offered or full."),
                text=text("The reason in words."),
            ),
        ),
    ),
    categories=("gpu-metrics",),
)


class GpuNodes(ViewProvider):
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        values: the current values.
        pods: the known pods.
        devices: the names of the devices.
        standings: the nodes.
    """

    def __init__(
        self, values: CurrentValues, pods: PodIndex, devices: Devices, standings: NodeStandings
    ) -> None:
        self._values = values
        self._pods = pods
        self._devices = devices
        self._standings = standings
        self._reported = PerSnapshot[str, int]()

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        yield from self.prepare((), 0.0)
        names = {name for name in self._reported.of(self._values.snapshot) if name}
        for some in parts(tuple(self._standings.nodes), _STEP):
            names.update(node.name for node in some if node.gpus or has_gpus(node.labels))
            yield
        return [Key("", name) for name in sorted(names)]

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        check(self._pods)
        snapshot = self._values.snapshot
        yield from self._devices.refresh(snapshot)
        self._standings.refresh()
        reported = self._reported.of(snapshot)
        if not reported:
            counts: Counter[str] = Counter()
            for some in parts(tuple(self._devices.keys), _STEP):
                devices = (self._devices.get(key.name) for key in some)
                counts.update(device.node for device in devices if device is not None)
                yield
            reported.update(counts or {"": 0})

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        node = self._standings.nodes.get(key.name)
        return node.labels if node is not None else {}

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """See the port."""
        fields = self._fields(key.name)
        if fields is None:
            return None
        standing = self._standing(key.name)
        names = ("pool", "gpus", "reported", "allocatable", "requested", "left")
        return (
            *(fields.get(name) for name in names),
            (in_words(standing.closed) if standing is not None else "") or None,
            *(fields.get(name) for name in ("silent", "withheld", "model")),
        )

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        fields = self._fields(key.name)
        if fields is None:
            return None
        standing = self._standing(key.name)
        rows = standing.closed if standing is not None else ()
        blocked = [{"kind": row.kind.value, "text": row.text} for row in rows]
        return {
            "metadata": {"name": key.name, "labels": dict(self.labels(key))},
            **{name: value for name, value in fields.items() if value is not None},
            **({"blocked": blocked} if blocked else {}),
        }

    def silent(self, name: str) -> int:
        """Return the GPUs of a node that no exporter reports, after :meth:`prepare`."""
        fields = self._fields(name)
        return 0 if fields is None else int(fields["silent"] or 0)

    def _standing(self, name: str) -> NodeStanding | None:
        return self._standings.of(name)

    def _fields(self, name: str) -> dict[str, int | str | None] | None:
        """Return what is known of a node; None if it has no GPU, or is gone."""
        snapshot, labels = self._values.snapshot, self.labels(Key("", name))
        reported = self._reported.of(snapshot).get(name, 0)
        standing, facts = self._standing(name), snapshot.cluster.facts(name)
        if not (reported or facts.capacity or has_gpus(labels)):
            return None
        offers = standing is not None and (standing.state.has or standing.state.offers)
        instances = sum(n for key, n in facts.counts.items() if key.startswith(MIG_PREFIX))
        gpus = instances or facts.devices
        # Shares of one GPU may be in the capacity, and labels count a board beside its instances.
        exact = facts.counts and not facts.mig_strategy
        expected = (gpus or 0) if exact or not reported else 0
        return {
            "pool": pool(labels),
            "model": facts.model or None,
            "gpus": gpus,
            "reported": reported,
            "allocatable": sum(standing.state.offers.values()) if standing and offers else None,
            "requested": standing.requested if standing and offers else None,
            "left": standing.left if standing is not None else None,
            "silent": max(0, expected - reported),
            "withheld": (standing.withheld or None) if standing is not None else None,
        }
