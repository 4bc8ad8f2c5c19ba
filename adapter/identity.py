"""What a label set says apart from numbers: the one place where a row's scope decides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.batch import Batch
from adapter.claim import claim, served, target
from adapter.cluster.pod import PodRef
from adapter.device import device, host, part, seen_by
from adapter.exporter import Identity
from adapter.field import Spelling

NO_DEVICE: Final = "no_device"
NO_POD: Final = "server_without_pod"
NOT_AN_EXPORTER: Final = "device_row_of_a_server"


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
        return Identity(labels, None, None, None, "", replica=False)
    node = None if batch.learnt else batch.node
    return Identity(
        labels,
        device(labels, batch.origin, node=node, exporter=exporter),
        claim(labels, exporter),
        target(labels),
        host(labels, exporter),
        bool(labels.get("vgpu")),
    )


def nameless(spelling: Spelling, batch: Batch) -> str:
    """Why a row of this series has no identity, in a word to count it under."""
    if spelling.server or (spelling.field.seen and not batch.serves):
        return NO_POD
    if spelling.field.seen:
        return NO_DEVICE
    return NOT_AN_EXPORTER if batch.serves else NO_DEVICE


def _of_server(labels: Mapping[str, str], spelling: Spelling, batch: Batch) -> Identity:
    claimed = served(labels, batch.pod if batch.serves else None)
    if claimed is None:
        return Identity(labels, None, None, None, "", replica=False)
    field = spelling.field
    aside = {*field.parts, *(label for label, _ in field.where)}
    return Identity(labels, part(labels, claimed.pod, aside), claimed, None, "", replica=False)


def _seen(labels: Mapping[str, str], batch: Batch) -> Identity:
    claimed = served(labels, batch.pod if batch.serves else None)
    at = device(labels, batch.origin)
    if claimed is None or at is None:
        return Identity(labels, None, None, None, "", replica=False)
    own, claimed = seen_by(claimed.pod, at), claimed._replace(sees=True)
    return Identity(labels, own, claimed, None, "", replica=False)
