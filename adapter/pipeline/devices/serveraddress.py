"""The address of a server: which of a pod's servers a page is of, and which one a sample names.

A pod may run a server at each of several ports, such as vLLM's data-parallel ranks, and each calls
its engine ``0`` (aibrix#1858, gateway-api-inference-extension#1663). So the port is a part of the
identity of a server. Routers repeat the samples of their servers and name the server by its
address: vLLM production-stack in ``server`` (``services/metrics_service/__init__.py``), LightLLM's
``pd_master`` in ``pd_node``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

INSTANCES: Final = ("exported_instance", "instance")
"""Labels with the address that a scrape read; the first is kept through a federation."""
_PORT_NAME: Final = "endpoint"
"""The label with the name of the port, which the Prometheus operator adds."""
MERGED: Final = frozenset(("15020",))
"""Ports of agents that serve the pages of a pod's other ports once more: Istio's agent."""

_ADDRESS: Final = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://(?:[^/@]*@)?)?(\[[^\]]*\]|[^/:\[\]]*)(?::([a-z0-9-]+))?(?:[/?#].*)?",
    re.IGNORECASE,
)
"""``host``, ``host:port`` or a URL; the port may be a name, as in Google's ``<pod>:metrics``."""
_NAMES_A_SERVER: Final = re.compile(
    r"(?:https?|grpcs?)://[^/].*"
    r"|[a-z][a-z0-9+.-]*://[^/?#]+:\d{1,5}(?:[/?#].*)?"
    r"|(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\]):\d{1,5}",
    re.IGNORECASE,
)
"""A URL of a protocol that servers answer, or of any one with a port, or an IP address with a port.
KServe's ``s3://bucket/model`` and ``hf://org/model`` are places of a model. A host name with a port
may be anything else, except in the labels below."""
_OF_A_SERVER: Final = frozenset(
    ("server", "worker", "worker_addr", "backend", "upstream", "address", "host", "instance")
)
"""Labels whose value is a server: there, a host name with a port is one too."""


_OF_EVERY_HOST: Final = frozenset(("127.0.0.1", "0.0.0.0", "localhost", "::1", "::"))  # noqa: S104 - compared, never bound
"""Hosts that a server gives for itself: what it listens on, or its loopback address. With another
port, they are another server of the pod."""


class ServerAddress(NamedTuple):
    """Where a server page was read. A part that is not known is empty."""

    host: str
    port: str
    """A number, or the name of a port."""


NOWHERE: Final = ServerAddress("", "")


def address(text: str) -> ServerAddress:
    """Return the host and port of an address or URL; both are empty for other text."""
    parts = _ADDRESS.fullmatch(text)
    if parts is None:
        return NOWHERE
    return ServerAddress(parts[1].strip("[]"), parts[2] or "")


def scraped_address(labels: Mapping[str, str]) -> ServerAddress:
    """Return the address that a store's scrape read, by the labels that it added."""
    scraped = address(next(filter(None, map(labels.get, INSTANCES)), ""))
    return scraped if scraped.port else scraped._replace(port=labels.get(_PORT_NAME, ""))


def names_another_server(
    labels: Mapping[str, str], own_address: ServerAddress, aside: Collection[str]
) -> bool:
    """Return whether a label of a sample is the address of another server than the page's own.

    Args:
        own_address: where the page was read.
        aside: labels that are something else, such as the name of a model.
    """
    return any(
        (_NAMES_A_SERVER.fullmatch(value) or (name in _OF_A_SERVER and address(value).port))
        and not _is_same_server(address(value), own_address)
        for name, value in labels.items()
        if name not in aside and not name.startswith("__")
    )


def _is_same_server(named_address: ServerAddress, own_address: ServerAddress) -> bool:
    """Return whether a server calls itself by an address, perhaps by one that it listens on."""
    return named_address == own_address or (
        named_address.host.lower() in _OF_EVERY_HOST
        and named_address.port in ("", own_address.port or named_address.port)
    )
