"""The labels of a line without those beyond a limit: it holds for the labels that are read.

AMD's device-metrics-exporter 1.4 lists the processes of a device in one label
(``kfd_process_id``), and exporters copy labels and annotations of pods. Nobody reads most of
them. So a label beyond a limit is left out, and the sample is left out only if somebody reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain


class CutLabelError(Exception):
    """A label that was left out was read. ``reason`` is the reject reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CutLabels(dict[str, str]):
    """The labels of a line, without those that are beyond a limit."""

    __slots__ = ("cut",)

    def __init__(self, labels: Mapping[str, str], cut: Mapping[str, str]) -> None:
        super().__init__(labels)
        self.cut = cut
        """Name of a label that was left out -> the reject reason of a sample that needs it."""


class StrictLabels(Mapping[str, str]):
    """A view of labels that raises CutLabelError if a label that was left out is read."""

    __slots__ = ("_labels",)

    def __init__(self, labels: CutLabels) -> None:
        self._labels = labels

    def __getitem__(self, name: str) -> str:
        if name in self._labels.cut:
            raise CutLabelError(self._labels.cut[name])
        return self._labels[name]

    def __iter__(self) -> Iterator[str]:
        return chain(self._labels, self._labels.cut)  # a name is not a value

    def __len__(self) -> int:
        return len(self._labels) + len(self._labels.cut)


def readable_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels without those that were left out, for a search through all values."""
    return labels._labels if isinstance(labels, StrictLabels) else labels


def label_count(labels: Mapping[str, str]) -> int:
    """Return the number of labels on the line."""
    return len(labels) + (len(labels.cut) if isinstance(labels, CutLabels) else 0)


def drop_labels(labels: Mapping[str, str], names: Collection[str]) -> Mapping[str, str]:
    """Return a copy of the labels without some of them."""
    left = {name: value for name, value in labels.items() if name not in names}
    if not isinstance(labels, CutLabels):
        return left
    return CutLabels(left, {name: why for name, why in labels.cut.items() if name not in names})
