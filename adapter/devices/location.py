"""On which node a sample's device is, by everything that may say it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from adapter.cluster.pod import Pod, PodRef
from adapter.devices.state import Identity
from adapter.exposition.samples import ScrapeResult

_UNKNOWN: Final = ""


class KnownCluster(Protocol):
    """The pods and nodes on hand."""

    def pod(self, ref: PodRef) -> Pod | None:
        """The pod of that name, or None."""

    def has_node(self, name: str) -> bool:
        """A node of that name is part of the cluster."""

    def node_at(self, address: str) -> str:
        """The node of the pods that have an IP address; empty where nothing shows it."""


class Location:
    """Where one scrape result's devices are.

    A source that reads exporters itself knows the node. Behind Prometheus these labels say it:
    the exporter's own pod, the address in ``instance`` where a pod has it, and ``node`` or
    ``Hostname`` where that is a node of this cluster. ``Hostname`` may as well be
    ``localhost`` or a container's name (dcgm-exporter#572).

    Args:
        result: whose samples are placed.
        exporter: the exporter's own pod, where it is known.
        cluster: the pods and nodes on hand.
    """

    def __init__(
        self, result: ScrapeResult, exporter: PodRef | None, cluster: KnownCluster
    ) -> None:
        self._certain = result.node
        self._cluster = cluster
        pod = cluster.pod(exporter) if exporter is not None and not result.node else None
        self._exporters = pod.node if pod is not None else _UNKNOWN
        self._nodes: dict[str, bool] = {}
        self._instances: dict[str, str] = {}

    def node(self, identity: Identity) -> str | None:
        """The node; None where nothing says it for certain.

        Of two that disagree, the one where the sample's pod is not: such a sample is not believed.
        """
        if self._certain:
            return self._certain
        said = [node for node in self._said(identity) if node]
        if len(said) > 1 and identity.assignment is not None:
            pod = self._cluster.pod(identity.assignment.pod)
            here = pod.node if pod is not None else _UNKNOWN
            return next((node for node in said if here and node != here), said[0])
        return said[0] if said else None

    def _said(self, identity: Identity) -> Iterator[str]:
        yield self._exporters
        instance = identity.labels.get("instance")
        if instance:
            yield self._scraped(instance)
        if identity.host and self._named(identity.host):
            yield identity.host

    def _scraped(self, instance: str) -> str:
        known = self._instances.get(instance)
        if known is None:
            address = instance.rpartition(":")[0].strip("[]") or instance
            known = self._instances[instance] = self._cluster.node_at(address)
        return known

    def _named(self, host: str) -> bool:
        known = self._nodes.get(host)
        if known is None:
            known = self._nodes[host] = self._cluster.has_node(host)
        return known
