"""What a label set says apart from numbers: the one place where a row's scope decides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.catalog.field import Spelling
from adapter.cluster.pod import PodRef
from adapter.devices.assignment import Claim, claim, hands_on, named, served, target
from adapter.devices.device import cluster, device, host, part, seen_by
from adapter.devices.state import Identity
from adapter.exposition.samples import Batch

NO_DEVICE: Final = "no_device"
NO_POD: Final = "server_without_pod"
NOT_AN_EXPORTER: Final = "device_row_of_a_server"
NOT_A_SERVER: Final = "server_row_of_an_exporter"
ANOTHER_POD: Final = "server_names_another_pod"


def identify(
    labels: Mapping[str, str], spelling: Spelling, batch: Batch, exporter: PodRef | None
) -> Identity:
    """What a row's labels say. Its ``device`` is None where they do not say enough.

    Args:
        labels: of the row.
        spelling: of the row's series, which tells whether it is about a device or a server.
        batch: that the row is of.
        exporter: the exporter's own pod, where known.
    """
    if spelling.server:
        return _of_server(labels, spelling, batch)
    if spelling.field.seen:
        return _seen(labels, batch)
    if batch.serves:
        return _flawed(labels, NOT_AN_EXPORTER)
    at = device(labels, batch.origin, node=batch.node, exporter=exporter)
    if at is None:
        return _flawed(labels, NO_DEVICE)
    return Identity(
        labels,
        at,
        claim(labels, exporter, direct=batch.direct),
        None if batch.direct else target(labels),
        host(labels, exporter),
        bool(labels.get("vgpu")),
        named=named(labels, direct=batch.direct),
        cluster=_cluster(labels, batch),
    )


def _of_server(labels: Mapping[str, str], spelling: Spelling, batch: Batch) -> Identity:
    claimed = _server(labels, batch)
    if isinstance(claimed, str):
        return _flawed(labels, claimed)
    field = spelling.field
    aside = {*field.parts, *(label for label, _ in field.where)}
    at = part(labels, claimed.pod, field.told_by, aside)
    of = _cluster(labels, batch)
    return Identity(labels, at, claimed, None, "", replica=False, cluster=of)


def _seen(labels: Mapping[str, str], batch: Batch) -> Identity:
    claimed = _server(labels, batch)
    if isinstance(claimed, str):
        return _flawed(labels, claimed)
    at = device(labels, batch.origin)
    if at is None:
        return _flawed(labels, NO_DEVICE)
    own, claimed = seen_by(claimed.pod, at), claimed._replace(sees=True)
    of = _cluster(labels, batch)
    return Identity(labels, own, claimed, None, "", replica=False, cluster=of)


def _server(labels: Mapping[str, str], batch: Batch) -> Claim | str:
    """The pod that a server's row is about, or why the row is left out.

    Only the pod that serves the page is believed about itself: its name comes from where the
    page was fetched, or from the labels that a store adds to what it scrapes.
    """
    if batch.serves:
        claimed = served(labels, batch.pod)
    elif batch.direct:
        return NOT_A_SERVER
    elif hands_on(labels):
        return ANOTHER_POD
    else:
        claimed = served(labels, None)
    return NO_POD if claimed is None else claimed


def _cluster(labels: Mapping[str, str], batch: Batch) -> str:
    """An exporter does not know its cluster, so only a store says it."""
    return "" if batch.direct else cluster(labels)


def _flawed(labels: Mapping[str, str], reason: str) -> Identity:
    return Identity(labels, None, None, None, "", replica=False, flaw=reason)
