"""The context of pods: their nodes' labels, the pods there, and which devices are shared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from adapter.pipeline.attribution.holdings import Holders, Holding
from adapter.pipeline.attribution.policy import SharingOptions
from adapter.pipeline.attribution.sharing import NodeSharing, asks_shared, node_sharing
from adapter.pipeline.attribution.split import Accounting, NodeContext
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.nodelabels import NodeFacts, facts
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import mismatch
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.devices.state import ExporterState

_USED: Final = "gpu_memory_used_bytes"
_NO_FACTS: Final = NodeFacts()
_NOBODY: Final = NodeSharing()
_NODE: Final = attrgetter("node")


class Pods(Protocol):
    """The known pods."""

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return the pod of that name, or None."""

    def on_node(self, node: str) -> Sequence[Pod]:
        """Return the pods bound to a node, including finished ones."""

    def at_address(self, address: str) -> Sequence[Pod]:
        """Return the pods that have an IP address, except finished ones."""

    def changes(self, node: str) -> int:
        """Return a number that grows with every change of a pod with a GPU on the node."""


class NodeTable(Protocol):
    """The known nodes."""

    def get(self, name: str) -> Node | None:
        """Return the node of that name, or None if it is gone or nodes are not watched."""


class Stamp(NamedTuple):
    """What an answer about a shared device depends on besides the exporter."""

    changes: int
    facts: NodeFacts


class ClusterContext:
    """The cluster's pods and nodes, as attribution uses them. Lives as long as the store."""

    def __init__(
        self, catalog: Catalog, pods: Pods, nodes: NodeTable | None, options: SharingOptions
    ) -> None:
        self.pods = pods
        self.options = options
        self.accounting = Accounting(
            catalog.exact,
            catalog.metrics.get(_USED),
        )
        self._nodes = nodes
        self._facts: dict[str, tuple[Node, NodeFacts]] = {}

    def pod(self, ref: PodRef) -> Pod | None:
        """Return the pod of that name, or None."""
        return self.pods.get(*ref)

    def has_node(self, name: str) -> bool:
        """Return whether a node of that name exists: it is known, or a pod runs on it.

        A pod that does not run is not evidence: its author may have written any node name.
        """
        if self._nodes is not None and self._nodes.get(name) is not None:
            return True
        return any(pod.phase == "Running" for pod in self.pods.on_node(name))

    def node_at(self, address: str) -> str:
        """Return the node of the pods with an address; empty if there is none, or several."""
        nodes = {pod.node for pod in self.pods.at_address(address) if pod.node}
        return nodes.pop() if len(nodes) == 1 else ""

    def pod_at(self, address: str) -> PodRef | None:
        """Return the only pod with an address; None if no pod has it, or several."""
        pods = self.pods.at_address(address)
        return pods[0].ref if len(pods) == 1 else None

    def labels(self, node: str) -> Mapping[str, str]:
        """Return the node's labels; empty if they are not known."""
        known_node = self._nodes.get(node) if self._nodes is not None and node else None
        return known_node.labels if known_node is not None else {}

    def facts(self, node: str) -> NodeFacts:
        """Return what the node's labels state; the same object until they change."""
        known_node = self._nodes.get(node) if self._nodes is not None and node else None
        if known_node is None:
            self._facts.pop(node, None)
            return _NO_FACTS
        cached = self._facts.get(node)
        if cached is None or cached[0] is not known_node:
            labeled = facts(known_node.labels, known_node.gpus)
            if cached is not None and cached[1] == labeled:
                labeled = cached[1]
            cached = self._facts[node] = (known_node, labeled)
        return cached[1]

    def forget(self, node: str) -> None:
        """Drop what is cached about a node, because no exporter reports its devices any more."""
        self._facts.pop(node, None)

    def stamp(self, node: str) -> Stamp:
        """Return a stamp that changes with a pod or a label of the node."""
        return Stamp(self.pods.changes(node), self.facts(node))

    def believes(self, series: DeviceSeries) -> bool:
        """Return whether the pod of the device series exists and may hold its device."""
        return self.believed_pod(series) is not None

    def believed_pod(self, series: DeviceSeries) -> Pod | None:
        """Return the pod of the device series if it exists and may hold its device."""
        assignment = series.assignment
        if assignment is None:
            return None
        pod = self.pods.get(*assignment.pod)
        return None if mismatch(assignment, pod, series.node) is not None else pod

    def node_of(self, series: DeviceSeries) -> str:
        """Return a device's node: the certain one, its pod's, or the one that the sample names."""
        if series.node:
            return series.node
        pod = self.pods.get(*series.assignment.pod) if series.assignment is not None else None
        return pod.node if pod is not None and pod.may_hold_gpu and pod.node else series.host


class NodeContexts:
    """The contexts of nodes and pods at one time."""

    def __init__(
        self,
        cluster: ClusterContext,
        exporters: Mapping[str, ExporterState],
        on_node: Mapping[str, tuple[str, ...]],
        holdings: Holders,
    ) -> None:
        self._cluster = self.cluster = cluster
        self._exporters = exporters
        self._on_node = on_node
        """Node -> the exporters that report its devices."""
        self._holdings = holdings
        self._own: dict[object, object] = {}
        self._fields: dict[str, frozenset[str]] = {}

    def sharing(self, node: str) -> NodeSharing:
        """Return who shares which devices of a node; empty if there is no evidence of sharing."""
        all_series = [
            t
            for o in self._on_node.get(node, ())
            for t in self._all_series(self._exporters[o], node)
        ]
        pods = self._cluster.pods.on_node(node)
        hinted = self._cluster.facts(node).shared or any(map(asks_shared, pods))
        assigned = any(series.assignment is not None for series in all_series)
        if not hinted and assigned and self._is_alone(all_series):
            return _NOBODY
        return self._sharing_on_node(node, self._cluster.stamp(node))

    def reporting_origins(self, node: str) -> tuple[str, ...]:
        """Return the origins of the exporters that report devices of a node."""
        return self._on_node.get(node, ())

    def holdings_of(self, device: str) -> Sequence[Holding]:
        """Return the pods that samples named for a device."""
        return self._holdings.get(device, ())

    def rests_on(self, pod: Pod, origin: str) -> bool:
        """Return whether a pod's answers change only with this exporter's scrape results."""
        return self._on_node.get(pod.node, (origin,)) == (origin,) or not pod.may_hold_gpu

    def may_share(self, pod: Pod) -> bool:
        """Return whether a pod that no sample names may share a device."""
        return bool(pod.node) and pod.may_hold_gpu and pod.node in self._on_node

    def node(self, node: str) -> NodeContext:
        """Return the context of a node, without its shared devices."""
        cluster = self._cluster
        return NodeContext(
            facts=cluster.facts(node),
            accounting=cluster.accounting,
            normalized=cluster.options.normalized,
        )

    def pod(
        self, pod: Pod, all_series: Collection[DeviceSeries]
    ) -> tuple[NodeContext, Stamp | None]:
        """Return a pod's context and its stamp; None if it depends only on the exporter.

        Args:
            pod: the current pod.
            all_series: the device series whose samples name it.
        """
        cluster = self._cluster
        node_facts = cluster.facts(pod.node)
        policy = cluster.options.policy
        if cluster.options.rules:
            policy = cluster.options.of(pod.ref.namespace, cluster.labels(pod.node))
        context = NodeContext(
            node_facts,
            _NOBODY,
            policy,
            cluster.accounting,
            self._holdings,
            normalized=cluster.options.normalized,
        )
        no_node = pod.node and None in map(_NODE, all_series)  # a cheap check for a rare case
        if no_node and any(series.node is None and not series.serves for series in all_series):
            context = context._replace(reported=self._reported_fields(pod.node))
        if not (node_facts.shared or asks_shared(pod)) and self._is_alone(all_series):
            return context, None
        stamp = cluster.stamp(pod.node)
        sharing = (
            self._sharing_on_node(pod.node, stamp)
            if pod.node
            else self._sharing_of_series(all_series)
        )
        return context._replace(sharing=sharing), stamp

    def _reported_fields(self, node: str) -> frozenset[str]:
        """Return the fields that exporters report which are known to be on a node."""
        fields = self._fields.get(node)
        if fields is None:
            placed = (
                series.history.layout.of_field
                for origin in self._on_node.get(node, ())
                for series in self._all_series(self._exporters[origin], node)
                if series.node == node
            )
            fields = self._fields[node] = frozenset().union(*placed)
        return fields

    def _is_alone(self, all_series: Iterable[DeviceSeries]) -> bool:
        """Return whether samples name the pod for devices without evidence that these are
        shared."""
        named = False
        for series in all_series:
            holdings = self._holdings.get(series.device.id)
            if series.shared or series.superseded or (holdings is not None and len(holdings) > 1):
                return False
            named = named or not series.serves
        return named

    def _sharing_on_node(self, node: str, stamp: Stamp) -> NodeSharing:
        origins = self._on_node.get(node, ())
        if not origins:
            return _NOBODY
        key = f"sharing/{node}"
        memory = self._exporters[origins[0]].answers if len(origins) == 1 else self._own
        cached = memory.get(key)
        if isinstance(cached, tuple) and cached[0] == stamp:
            sharing: NodeSharing = cached[1]
            return sharing
        all_series = [t for o in origins for t in self._all_series(self._exporters[o], node)]
        made = node_sharing(
            all_series, self._cluster.pods.on_node(node), stamp.facts, self._holdings
        )
        memory[key] = (stamp, made)
        return made

    def _sharing_of_series(self, all_series: Iterable[DeviceSeries]) -> NodeSharing:
        """Return the sharing of a pod whose node is not known, from its devices' samples only."""
        devices = {(series.origin, series.device.id) for series in all_series if not series.serves}
        its = [t for origin, d in devices for t in self._exporters[origin].devices.get(d, ())]
        assigned = {series.assignment.pod for series in its if series.assignment is not None}
        pods = [pod for ref in assigned if (pod := self._cluster.pods.get(*ref)) is not None]
        return node_sharing(its, pods, _NO_FACTS, {})

    def _all_series(self, exporter: ExporterState, node: str) -> Sequence[DeviceSeries]:
        """Return an exporter's device series on a node; computed once per scrape result."""
        cached = exporter.answers.get("by_node")
        if isinstance(cached, dict):
            of_node: Sequence[DeviceSeries] = cached.get(node, ())
            return of_node
        by_node: dict[str, list[DeviceSeries]] = {}
        for series in exporter.all_series.values():
            if not series.serves:
                by_node.setdefault(self._cluster.node_of(series), []).append(series)
        exporter.answers["by_node"] = by_node
        return by_node.get(node, ())


def nodes_of(exporter: ExporterState, cluster: ClusterContext) -> frozenset[str]:
    """Return the nodes whose devices an exporter reports."""
    return frozenset(
        cluster.node_of(series)
        for series in exporter.outline.all_series.values()
        if not series.serves
    ) - {""}
