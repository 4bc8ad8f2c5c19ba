"""The resource ``gpupools``: what each pool of GPU nodes does, and what still fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from adapter.answers.history.hours import MINUTES
from adapter.answers.history.ring import HOURS, HistoryRing, subject
from adapter.answers.view.fragments import Json, round_number
from adapter.answers.view.gpuhistories import points, time_fields
from adapter.answers.view.gpunodes import GpuNodes
from adapter.answers.view.gpus import DeviceUse, Gpus
from adapter.answers.view.poolcapacity import PoolCapacity
from adapter.answers.view.schema import array, integer, mapping, number, struct, text
from adapter.answers.view.standings import NodeStandings
from adapter.figures import percent
from adapter.pipeline.cluster.nodelabels import pool
from apiservice.runtime.steps import Steps, parts
from apiservice.view.resource import Column, Key, RawCell, ViewProvider, ViewResource

NO_POOL: Final = "no-pool"
"""The name for nodes whose labels name no pool."""
_KEPT: Final = 15.0
"""Seconds for which the pools are not computed again."""
_STEP: Final = 64
"""Nodes of one step."""
_UNITS: Final = integer("Units of the resource.")

GPUPOOLS: Final = ViewResource(
    plural="gpupools",
    singular="gpupool",
    kind="GpuPool",
    short_names=(),
    namespaced=False,
    columns=(
        Column("Nodes", "Nodes with GPUs.", "integer"),
        Column("GPUs", "GPUs and MIG instances.", "integer"),
        Column("Busy", "Held by a pod, and they work.", "integer"),
        Column("Idle", "Held by a pod, and they have done nothing for 10 minutes.", "integer"),
        Column("Free", "Held by no pod, and a pod can get them.", "integer"),
        Column("Blocked", "Held by no pod, and no pod can start on their node.", "integer"),
        Column("No-Pod", "They work, and no pod is known to hold them.", "integer"),
        Column("No-Value", "Nobody knows whether they work.", "integer"),
        Column("Largest", "The largest pod that fits on one node."),
        Column(
            "Fragmented",
            "Part of the largest possible pod that does not fit, because what is left is on "
            "several nodes.",
            numbers=("Fragmented-Percent",),
            write=percent,
        ),
        Column("Closed", "Nodes on which no GPU pod can start.", "integer", wide=True),
        Column("Left", "Units that pods can still get.", wide=True),
        Column("Layouts", "How boards are divided into MIG instances.", wide=True),
    ),
    schema=struct(
        "The GPU nodes of one pool. Node selectors and affinities of pods do not count.",
        nodes=integer("Nodes with GPUs."),
        closed=integer("Nodes on which no GPU pod can start, besides those that are in use."),
        gpus=integer("GPUs and MIG instances."),
        classes=mapping(
            "Devices by use: busy and idle (held by a pod), free and blocked (held by none; a pod "
            "can get it or not), unheld (it works without a known pod), unmeasured.",
            integer("Devices."),
        ),
        resources=array(
            "What the nodes offer.",
            struct(
                "A GPU resource.",
                name=text("Name of the resource, such as nvidia.com/gpu."),
                allocatable=_UNITS,
                requested=_UNITS,
                left=integer("Units that pods can still get, of nodes on which one can start."),
                fragmented=number(
                    "Part of the largest possible pod that does not fit, in percent, because what "
                    "is left is on several nodes. Absent if nothing is left."
                ),
                largest=struct(
                    "The largest pod that fits on one node.",
                    units=_UNITS,
                    node=text("The node."),
                    cpu=number("Cores that are left there."),
                    memory=integer("Bytes of memory that are left there."),
                ),
            ),
        ),
        layouts=array(
            "How boards are divided into MIG instances or partitions.",
            struct(
                "Boards that are divided alike.",
                layout=text("Number and profile of the instances: 1x3g.40gb 4x1g.10gb."),
                boards=integer("Boards."),
                unusedSlices=integer(
                    "Compute slices of each board that no instance has. New instances have these "
                    "at most: memory and placement may allow fewer."
                ),
            ),
        ),
        **time_fields(),
        **{name: points(f"GPUs that are {name}") for name in ("busy", "idle", "free")},
    ),
    categories=("gpu-metrics",),
)


class GpuPools(ViewProvider):
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        gpus: the devices.
        nodes: the nodes.
        standings: what the nodes offer.
        ring: the past of the pools.
    """

    def __init__(
        self, gpus: Gpus, nodes: GpuNodes, standings: NodeStandings, ring: HistoryRing
    ) -> None:
        self._gpus = gpus
        self._nodes = nodes
        self._standings = standings
        self._ring = ring
        self._found: dict[str, PoolCapacity] = {}
        self._at = float("-inf")

    def pools(self, now: float) -> Steps[Mapping[str, PoolCapacity]]:
        """Return name -> capacity, in steps; computed again once it is 15 s old."""
        if 0 <= now - self._at < _KEPT:
            return self._found
        uses: dict[str, list[DeviceUse]] = {}
        for use in (yield from self._gpus.uses(now)):
            uses.setdefault(use.node, []).append(use)
        pools: dict[str, PoolCapacity] = {}
        for keys in parts((yield from self._nodes.keys(None)), _STEP):
            for key in keys:
                name = pool(self._nodes.labels(key)) or NO_POOL
                pools.setdefault(name, PoolCapacity()).add(
                    key.name,
                    self._standings.of(key.name),
                    uses.get(key.name, ()),
                    self._nodes.silent(key.name),
                )
            yield
        self._found, self._at = dict(sorted(pools.items())), now
        return self._found

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        nodes = yield from self._nodes.keys(None)
        return [Key("", name) for name in sorted({self._pool_of(key) for key in nodes})]

    def _pool_of(self, key: Key) -> str:
        return pool(self._nodes.labels(key)) or NO_POOL

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        yield from self.pools(now)

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """See the port."""
        capacity = self._found.get(key.name)
        if capacity is None:
            return None
        of = capacity.classes
        layouts = (f"{row.layout} ({row.boards})" for row in capacity.layouts())
        return (
            capacity.nodes,
            capacity.gpus,
            *(of[name] for name in ("busy", "idle", "free", "blocked", "unheld", "unmeasured")),
            ", ".join(f"{row.units} {name}" for name, row in sorted(capacity.largest.items()))
            or None,
            capacity.fragmented,
            capacity.closed,
            ", ".join(f"{units} {name}" for name, units in sorted(capacity.left.items())) or None,
            ", ".join(layouts) or None,
        )

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        return self._build_object(key, MINUTES)

    def whole(self, key: Key, now: float) -> Json | None:
        """Return a pool with its whole past; None if it does not exist."""
        return self._build_object(key, HOURS * MINUTES)

    def _build_object(self, key: Key, minutes: int) -> Json | None:
        capacity = self._found.get(key.name)
        if capacity is None:
            return None
        past = self._ring.read(subject("pool", key.name), minutes)
        return {
            "metadata": {"name": key.name},
            "nodes": capacity.nodes,
            "closed": capacity.closed,
            "gpus": capacity.gpus,
            "classes": {name: count for name, count in sorted(capacity.classes.items()) if count},
            "resources": [_resource(capacity, name) for name in sorted(capacity.allocatable)],
            "layouts": [
                {"layout": row.layout, "boards": row.boards}
                | ({} if row.unused is None else {"unusedSlices": row.unused})
                for row in capacity.layouts()
            ],
            **({} if past is None else time_fields(past)),
            **({} if past is None else {k: v for k, v in past.columns.items() if k != "gpus"}),
        }


def _resource(capacity: PoolCapacity, name: str) -> Json:
    row: Json = {
        "name": name,
        "allocatable": capacity.allocatable[name],
        "requested": capacity.requested[name],
        "left": capacity.left[name],
    }
    if (part := capacity.fragmentation(name)) is not None:
        row["fragmented"] = round_number(part)
    if (room := capacity.largest.get(name)) is not None:
        row["largest"] = {"units": room.units, "node": room.node}
        if room.cpu is not None:
            row["largest"]["cpu"] = room.cpu / 1000
        if room.memory is not None:
            row["largest"]["memory"] = room.memory
    return row
