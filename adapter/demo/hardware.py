"""Simulated hardware: node pools, nodes, and the GPUs or MIG instances on them.

Times are seconds of the simulation.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DemoPool:
    """A kind of node."""

    name: str
    resource: str
    """The extended resource that its devices are requested as."""
    model: str
    gpus: int
    """Physical GPUs on a node."""
    memory_mib: int
    """Framebuffer of one device (of one instance under MIG)."""
    instance_type: str = "simulated"
    """The cloud's name of the machine."""
    mig_profile: str = ""
    instances: int = 1
    """MIG instances on each GPU; 1 without MIG."""
    first_instance: int = 7
    """GPU_I_ID of the first instance: 7 of a fully split A100 or H100, 1 of one split in half."""
    first: int = 1
    """Nodes at the start, and the minimum."""
    most: int = 1
    boot_seconds: float = 90.0
    names_pods: bool = True
    """Whether its exporters name the pod of each device."""
    idle_seconds: float = 150.0
    """Seconds after which an empty added node is removed."""


@dataclass(slots=True, eq=False)
class DemoDevice:
    """A GPU, or one MIG instance of it."""

    uuid: str
    gpu: int
    instance: int | None
    pod: str | None = None
    recent: list[float] = field(default_factory=list)
    """Busy shares of the last seconds, newest last."""
    energy: float = 0.0
    """Joules since boot."""

    @property
    def busy(self) -> float:
        """Busy share over the exporter's collect interval, 0 to 1."""
        return sum(self.recent) / len(self.recent) if self.recent else 0.0

    def record(self, share: float, keep: int) -> None:
        """Add the last second's busy share, and drop those older than ``keep`` seconds."""
        self.recent.append(share)
        del self.recent[:-keep]


@dataclass(slots=True, eq=False)
class DemoNode:
    """A machine with GPUs."""

    name: str
    pool: DemoPool
    ordered_at: float
    ready_at: float
    devices: tuple[DemoDevice, ...]
    joined: bool = False
    """The node has been ready: its exporter's pod exists."""
    empty_since: float | None = None

    def ready(self, now: float) -> bool:
        """Whether it has booted."""
        return now >= self.ready_at


def make_node(name: str, pool: DemoPool, ordered_at: float, ready_at: float) -> DemoNode:
    """Return a node with its devices; the same name gives the same UUIDs."""
    devices = tuple(
        DemoDevice(
            uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}.{gpu}')}",
            gpu=gpu,
            instance=pool.first_instance + slot if pool.mig_profile else None,
        )
        for gpu in range(pool.gpus)
        for slot in range(pool.instances)
    )
    return DemoNode(name, pool, ordered_at, ready_at, devices)
