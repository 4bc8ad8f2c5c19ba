"""The connections that a network with NetworkPolicies allows.

From the API reference ``networking.k8s.io/v1``: a pod that no policy selects is open. For a
selected pod, only connections that a rule of one of its policies allows are possible. An empty
list of peers or ports means all of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.e2e.cluster import Object

_NAME = "kubernetes.io/metadata.name"


class End(NamedTuple):
    """One end of a connection: a pod, or another address."""

    address: str
    namespace: str = ""
    """Empty if it is not a pod. For a policy, a pod on the host network is not a pod."""
    labels: Mapping[str, str] = {}
    named: Mapping[str, int] = {}
    """Names of its container ports."""


def lets_through(
    policies: Iterable[Object], source: End, to: End, port: int, protocol: str = "TCP"
) -> bool:
    """Whether egress at the source and ingress at the destination allow a connection."""
    rows = [row for row in policies if row["kind"] == "NetworkPolicy"]
    out = _open(rows, "Egress", source, to, to, (port, protocol))
    return out and _open(rows, "Ingress", to, source, to, (port, protocol))


def _open(
    rows: list[Object], direction: str, subject: End, peer: End, to: End, way: tuple[int, str]
) -> bool:
    mine = [row for row in rows if _selected(row, subject) and direction in _types(row)]
    field = "to" if direction == "Egress" else "from"
    return not mine or any(
        _peers(rule.get(field), peer, row["metadata"]["namespace"])
        and _ports(rule.get("ports"), to, way)
        for row in mine
        for rule in row["spec"].get(direction.lower()) or ()
    )


def _types(row: Object) -> list[str]:
    types: list[str] = row["spec"]["policyTypes"]
    return types


def _selected(row: Object, end: End) -> bool:
    inside = end.namespace == row["metadata"]["namespace"]
    return inside and _matches(row["spec"]["podSelector"], end.labels)


def _peers(peers: list[Object] | None, end: End, home: str) -> bool:
    return not peers or any(_peer(peer, end, home) for peer in peers)


def _peer(peer: Object, end: End, home: str) -> bool:
    if "ipBlock" in peer:
        block = peer["ipBlock"]
        return _within(end, block["cidr"]) and not any(
            _within(end, cidr) for cidr in block.get("except", ())
        )
    if not end.namespace:
        return False
    spaces = peer.get("namespaceSelector")
    selected = end.namespace == home if spaces is None else _matches(spaces, {_NAME: end.namespace})
    return selected and _matches(peer.get("podSelector", {}), end.labels)


def _within(end: End, cidr: str) -> bool:
    return ipaddress.ip_address(end.address) in ipaddress.ip_network(cidr)


def _ports(ports: list[Object] | None, to: End, way: tuple[int, str]) -> bool:
    return not ports or any(
        (to.named.get(row["port"], row["port"]), row.get("protocol", "TCP")) == way for row in ports
    )


def _matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    exact = selector.get("matchLabels", {}).items() <= labels.items()
    return exact and all(_holds(row, labels) for row in selector.get("matchExpressions", ()))


def _holds(row: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if row["operator"] != "In":
        raise NotImplementedError(row["operator"])
    return labels.get(row["key"]) in row["values"]
