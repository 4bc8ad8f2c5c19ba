"""The label sets of a store's answers, so that equal texts are parsed once and share one object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from adapter.devices.device import cluster

_ORIGIN_LABELS = ("instance", "Hostname", "hostname", "node")
"""Labels that distinguish exporters, best first. ``instance`` is the scrape target's address."""
NO_ORIGIN = "prometheus"
"""The origin of samples that name none."""
_NAME: Final = b'"__name__"'
_NAMED: Final = _NAME + b':"'

_labels = msgspec.json.Decoder(dict[str, str])


@dataclass(slots=True, eq=False)
class LabelSet:
    """The labels of the series of one device, without their names."""

    key: bytes
    """The text of the labels."""
    labels: Mapping[str, str]
    origin: str
    seen: dict[str, float] = field(default_factory=dict)
    """Series name -> epoch seconds, by the engine's clock, of the newest sample handed over."""
    round: int = -1
    """The round in which these were handed over."""
    time: float = -math.inf
    """The time of the last sample that was read, by the local clock.

    The samples of one scrape share the object, which saves memory.
    """

    def accept(self, name: str, time: float, of: int) -> None:
        """Note that a series was handed over in a round."""
        if self.round != of:
            self.seen, self.round = {}, of
        self.seen[name] = time


class SeriesMemo:
    """The label sets of this round and of the last one."""

    def __init__(self) -> None:
        self._old: dict[bytes, LabelSet] = {}
        self._new: dict[bytes, LabelSet] = {}
        self._names: dict[bytes, str] = {}
        self.round = 0
        """Number of the round."""

    def __len__(self) -> int:
        return len(self._old.keys() | self._new.keys())

    def turn(self) -> None:
        """End a round: drop the label sets that it did not contain."""
        self._old, self._new = self._new, {}
        self._names = {}
        self.round += 1

    def series(self, raw: bytes) -> tuple[LabelSet, str]:
        """Return the label set and the name of a ``metric`` object; raises msgspec.DecodeError.

        Engines write the name as one member of the object. The rest of the text is the key, so that
        the series of one device share it.
        """
        start = raw.find(_NAMED)
        end = raw.find(b'"', start + len(_NAMED))
        text = raw[start + len(_NAMED) : end]
        rest = raw[:start] + raw[end + 1 :]
        name, known = self._names.get(text), self._new.get(rest)
        if name is not None and known is not None and start >= 0:
            return known, name  # most series: both texts were checked when they were kept
        # A text cannot contain the bytes of _NAMED, because its quotes are escaped.
        if start < 0 or b"\\" in text or _NAME in rest:
            return self._spelled(raw)
        if name is None:
            name = self._names[text] = text.decode()
        return self._find(rest, raw), name

    def _spelled(self, raw: bytes) -> tuple[LabelSet, str]:
        """Find a series whose text is not written as engines usually do."""
        labels = _labels.decode(raw)
        name = labels.pop("__name__", "")
        rest = msgspec.json.encode(labels, order="sorted")
        return self._find(rest, rest), name

    def _find(self, rest: bytes, raw: bytes) -> LabelSet:
        known = self._new.get(rest)
        if known is None:
            known = self._old.get(rest)
            if known is None:
                labels = _labels.decode(raw)
                labels.pop("__name__", None)
                known = LabelSet(rest, labels, _origin(labels))
            self._new[known.key] = known
        return known


def _origin(labels: Mapping[str, str]) -> str:
    of = cluster(labels)
    return f"{of}/{_address(labels)}" if of else _address(labels)


def _address(labels: Mapping[str, str]) -> str:
    found = next((labels[key] for key in _ORIGIN_LABELS if labels.get(key)), NO_ORIGIN)
    _, colon, port = found.rpartition(":")
    if colon and not port.isdigit():
        # Google's managed Prometheus: "<pod>:<port name>", which may exist in several namespaces.
        return f"{labels.get('namespace', '')}/{found}"
    return found
