"""Determine the node of a sample's device from the source, the labels and the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Protocol

from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.state import Identity
from adapter.pipeline.exposition.podlabels import address
from adapter.pipeline.exposition.samples import ScrapeResult


class KnownCluster(Protocol):
    """The known pods and nodes."""

    def pod(self, ref: PodRef) -> Pod | None:
        """Return the pod of that name, or None."""

    def has_node(self, name: str) -> bool:
        """Return whether a node of that name is part of the cluster."""

    def node_at(self, address: str) -> str:
        """Return the node of the pods with this IP address; empty if there are none."""

    def pod_at(self, address: str) -> PodRef | None:
        """Return the only pod with this IP address; None if no pod has it, or several."""


class Location:
    """The nodes of one scrape result's devices.

    A source that scrapes exporters itself knows the node. For samples from Prometheus, the node
    follows from the exporter's own pod, from the address in ``instance`` if a pod has it, and
    from ``node`` or ``Hostname`` if this is a node of the cluster. ``Hostname`` may also be
    ``localhost`` or the name of a container (dcgm-exporter#572).
    """

    def __init__(
        self, result: ScrapeResult, exporter: PodRef | None, cluster: KnownCluster
    ) -> None:
        self._certain = result.node
        self._cluster = cluster
        pod = cluster.pod(exporter) if exporter is not None and not result.node else None
        self._exporters = pod.node if pod is not None else ""
        self._has_node, self._node_at = cluster.has_node, cluster.node_at
        if not result.node:  # many samples name the same few nodes and addresses
            self._has_node, self._node_at = cache(cluster.has_node), cache(cluster.node_at)

    def node(self, identity: Identity) -> str | None:
        """Return the node, or None if it is not certain.

        If two sources of it disagree, return the one on which the assigned pod does not run, so
        that the assignment becomes a mismatch.
        """
        if self._certain:
            return self._certain
        nodes = [node for node in self._possible_nodes(identity) if node]
        if len(nodes) > 1 and identity.assignment is not None:
            pod = self._cluster.pod(identity.assignment.pod)
            here = pod.node if pod is not None else ""
            return next((node for node in nodes if here and node != here), nodes[0])
        return nodes[0] if nodes else None

    def _possible_nodes(self, identity: Identity) -> Iterator[str]:
        yield self._exporters
        if scraped := address(identity.labels):
            yield self._node_at(scraped)
        if identity.host and self._has_node(identity.host):
            yield identity.host
