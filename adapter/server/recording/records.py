"""The lines of a recording: one JSON object each, with the kind in ``k``.

The docstring of the package describes them for other readers.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import PodFields
from adapter.server.recording.events import Stretch
from adapter.server.recording.layout import Written

VERSION: Final = 1
MOST_PARTS: Final = 1 << 18
"""Commas of a line. One takes up to 80 bytes of memory, and a sample has two."""


class RecordLine(msgspec.Struct, tag_field="k", omit_defaults=True):
    """Any line."""


class BegunRecord(RecordLine, tag="recording"):
    """The first line of a recorder."""

    version: int
    time: float
    """Epoch seconds, as in every line."""
    program: str
    settings: dict[str, Any] = {}


class LabelsRecord(RecordLine, tag="labels"):
    """A label set, which later lines name by number."""

    id: int
    labels: dict[str, str]


class LayoutRecord(RecordLine, tag="layout"):
    """The series of an exporter's pages."""

    id: int
    origin: str
    names: list[str]
    """Of each series."""
    labels: list[int]
    """The label set of each series."""
    node: str | None = None
    pod: tuple[str, str] | None = None
    serves: bool = False


class PageRecord(RecordLine, tag="page"):
    """The values of one page."""

    layout: int
    time: float
    values: list[Written]
    """In the order of the layout."""
    at: list[float] | float | None = None
    """When they were measured, if not at ``time``."""
    rejects: dict[str, int] = {}


class PodRecord(RecordLine, tag="pod"):
    """A pod, reduced to what values depend on."""

    time: float
    pod: PodFields
    gone: bool = False

    @property
    def key(self) -> str:
        """What identifies it."""
        return self.pod.uid


class NodeRecord(RecordLine, tag="node"):
    """A node."""

    time: float
    node: Node
    gone: bool = False

    @property
    def key(self) -> str:
        """What identifies it."""
        return self.node.name


class HpaRecord(RecordLine, tag="hpa"):
    """An HPA with its status."""

    time: float
    hpa: ShownHpa
    gone: bool = False

    @property
    def key(self) -> str:
        """What identifies it."""
        return f"{self.hpa.namespace}/{self.hpa.name}"

    until: float | None = None
    """If given, the status was written between ``time`` and this."""


class MissedRecord(RecordLine, tag="missed"):
    """A time for which something is missing."""

    time: float
    stretch: Stretch


ObjectRecord = PodRecord | NodeRecord | HpaRecord
AnyRecord = BegunRecord | LabelsRecord | LayoutRecord | PageRecord | ObjectRecord | MissedRecord
encoder: Final = msgspec.json.Encoder()
decoder: Final = msgspec.json.Decoder(AnyRecord)
