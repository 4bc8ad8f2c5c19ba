"""What the GPU nodes of a pool have room for: the largest pod, fragments, and MIG layouts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.answers.view.gpuclass import GpuClass, block_withheld_devices
from adapter.answers.view.gpus import DeviceUse
from adapter.answers.view.standings import NodeStanding
from adapter.pipeline.cluster.nodestarts import units_left

_SLICES: Final = re.compile(r"(?:\d+c\.)?(\d)g\.")
"""The compute slices of a MIG profile: 3 of ``3g.40gb`` (NVIDIA MIG user guide, "MIG device
names")."""
_WHOLE: Final = 7
"""Compute slices of a board; NVIDIA's A30 has four (the same guide, "Supported MIG profiles")."""
_SMALL: Final = ("A30", 4)


class LargestPod(NamedTuple):
    """The largest pod that fits on one node."""

    resource: str
    units: int
    node: str
    cpu: int | None
    """Thousandths of a core that are left there; None if not known."""
    memory: int | None
    """Bytes that are left there; None if not known."""


class MigLayout(NamedTuple):
    """Boards that are divided alike."""

    layout: str
    """``1x3g.40gb 4x1g.10gb``."""
    boards: int
    unused: int | None
    """Compute slices of each board that no instance has; None if not known."""


@dataclass(slots=True)
class PoolCapacity:
    """The nodes of one pool."""

    nodes: int = 0
    closed: int = 0
    """Nodes on which no GPU pod can start, besides those whose GPUs are in use."""
    classes: Counter[GpuClass] = field(default_factory=Counter)
    allocatable: Counter[str] = field(default_factory=Counter)
    """GPU resource -> units."""
    requested: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    """GPU resource -> units that pods can still get, of nodes on which one can start."""
    largest: dict[str, LargestPod] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """GPU resource -> units of the largest node."""
    boards: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Layout and model -> boards."""

    @property
    def gpus(self) -> int:
        """Devices of the pool: those in a class."""
        return self.classes.total()

    def fragmentation(self, resource: str) -> float | None:
        """Return the part of the largest possible pod, in percent, that does not fit because what
        is left is on several nodes; None if nothing is left."""
        left = min(self.left[resource], self.sizes.get(resource, 0))
        if not left:
            return None
        return 100 * (1 - self.largest[resource].units / left)

    @property
    def fragmented(self) -> float | None:
        """The fragmentation of the resource of which most is left."""
        most = max(self.left, key=lambda name: (self.left[name], name), default=None)
        return None if most is None else self.fragmentation(most)

    def layouts(self) -> list[MigLayout]:
        """Return how boards are divided, the most frequent layout first."""
        return [
            MigLayout(layout, boards, _unused_slices(layout, model))
            for (layout, model), boards in self.boards.most_common()
        ]

    def add(
        self, name: str, standing: NodeStanding | None, uses: Sequence[DeviceUse], silent: int
    ) -> None:
        """Add a node.

        Args:
            name: of the node.
            standing: what it offers; None if it is not known.
            uses: of the devices that exporters report.
            silent: devices that no exporter reports: nobody knows what they do.
        """
        self.nodes += 1
        classes = [use.of for use in uses]
        if standing is not None:
            if standing.withheld and not standing.blocks:
                classes = block_withheld_devices(classes, standing.left)
            self._add_units(name, standing)
        self.classes.update(classes)
        if silent:
            self.classes["unmeasured"] += silent
        profiles: dict[tuple[str, str], Counter[str]] = {}
        for use in uses:
            if use.board and use.profile:
                profiles.setdefault((use.board, use.model), Counter())[use.profile] += 1
        for (_, model), counts in profiles.items():
            self.boards[_layout(counts), model] += 1

    def _add_units(self, name: str, standing: NodeStanding) -> None:
        state, used = standing.state, standing.used
        self.closed += bool(standing.closed)
        for resource, offers in state.offers.items():
            self.allocatable[resource] += offers
            self.requested[resource] += used.gpus.get(resource, 0)
            self.sizes[resource] = max(self.sizes.get(resource, 0), offers)
        if standing.blocks:
            return
        cpu = None if state.cpu is None else max(0, state.cpu - used.cpu)
        memory = None if state.memory is None else max(0, state.memory - used.memory)
        for resource, units in units_left(state, used).items():
            if not units:
                continue
            self.left[resource] += units
            room = LargestPod(resource, units, name, cpu, memory)
            largest = self.largest.get(resource)
            if largest is None or _size(room) > _size(largest):
                self.largest[resource] = room


def _size(room: LargestPod) -> tuple[int, int, int]:
    return room.units, room.cpu or 0, room.memory or 0


def _layout(counts: Mapping[str, int]) -> str:
    return " ".join(f"{count}x{profile}" for profile, count in sorted(counts.items(), reverse=True))


def _unused_slices(layout: str, model: str) -> int | None:
    """Return the compute slices of a board that no instance has; None for other partitions."""
    taken = 0
    for part in layout.split():
        count, _, profile = part.partition("x")
        match = _SLICES.match(profile)
        if match is None:
            return None
        taken += int(count) * int(match[1])
    small, slices = _SMALL
    most = slices if small in model.split() or f"{small}-" in model else _WHOLE
    return max(0, most - taken)
