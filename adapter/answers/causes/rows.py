"""A pod's container with its status, as the rules about containers look at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adapter.pipeline.cluster.podobjects import ContainerStatus, Ended, SeenPod
from apiservice.wire import instant


class ContainerRow(NamedTuple):
    """One container, an init container too."""

    pod: SeenPod
    status: ContainerStatus

    @property
    def ended(self) -> Ended | None:
        """How the container ended last; None if it never did."""
        return self.status.state.terminated or self.status.last_state.terminated

    @property
    def waits(self) -> str:
        """The reason for which the container waits; empty if it does not."""
        return self.status.state.waiting.reason if self.status.state.waiting is not None else ""

    @property
    def init(self) -> bool:
        """Whether it is an init container, and not a sidecar."""
        rows = self.pod.spec.init_containers
        return any(row.name == self.status.name and row.restart_policy != "Always" for row in rows)


def rows_of(pods: Sequence[SeenPod]) -> Iterator[ContainerRow]:
    """Yield the containers of pods."""
    for pod in pods:
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            yield ContainerRow(pod, status)


def pods_of(rows: Sequence[ContainerRow]) -> list[SeenPod]:
    """Return the pods of containers, each once."""
    return list({row.pod.key: row.pod for row in rows}.values())


def since_of(rows: Sequence[ContainerRow]) -> float | None:
    """Return since when the oldest pod of containers has existed on its node, in epoch seconds."""
    starts = (instant.read(row.pod.status.start_time) for row in rows)
    return min((start for start in starts if start is not None), default=None)
