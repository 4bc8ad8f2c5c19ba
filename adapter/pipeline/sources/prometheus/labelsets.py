"""The label sets of a store's answers, so that equal texts are parsed once and share one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern
from typing import Final

import msgspec

from adapter.pipeline.devices.device import cluster
from adapter.pipeline.sources.prometheus.answer import LabelSet, QueryAnswer

_ORIGIN_LABELS = ("instance", "Hostname", "hostname", "node")
"""Labels that distinguish exporters, best first. ``instance`` is the scrape target's address."""
NO_ORIGIN = "prometheus"
"""The origin of samples that name none."""
_NAME: Final = b'"__name__"'
_NAMED: Final = _NAME + b':"'
_BEFORE_NAME: Final = (b"{", b",")
"""What precedes the name. Behind another byte, ``_NAMED`` is the end of another label's name."""

_labels = msgspec.json.Decoder(dict[str, str])


class SeriesMemo:
    """The label sets of this round and of the last one, and the last answers."""

    def __init__(self) -> None:
        self._old: dict[int, LabelSet] = {}
        self._new: dict[int, LabelSet] = {}
        self._names: dict[bytes, str] = {}
        self._answers: dict[str, QueryAnswer] = {}
        self.round = 0
        """Number of the round."""

    def __len__(self) -> int:
        return len(self._old.keys() | self._new.keys())

    def turn(self) -> None:
        """End a round: drop the label sets that it did not contain."""
        self._old, self._new = self._new, {}
        self._names = {}
        self.round += 1
        last = self.round - 1
        self._answers = {group: its for group, its in self._answers.items() if its.round == last}

    def accepted_answer(self, group: str) -> QueryAnswer | None:
        """Return the answer to a group that was handed over in the last round, if there is one."""
        answer = self._answers.get(group)
        return answer if answer is not None and answer.round == self.round - 1 else None

    def accept(self, group: str, answer: QueryAnswer) -> None:
        """Note that an answer is handed over."""
        self._answers[group] = answer

    def keep(self, sets: Iterable[LabelSet]) -> None:
        """Note that the round contains known label sets."""
        new, now = self._new, self.round
        for labels in sets:
            if labels.round != now:
                labels.round = now
                new[labels.key] = labels

    def series(self, raw: bytes) -> tuple[LabelSet, str]:
        """Return the label set and the name of a ``metric`` object; raises msgspec.DecodeError.

        Engines write the name as one member of the object. The rest of the text is the key, so that
        the series of one device share it.
        """
        start = raw.find(_NAMED)
        end = raw.find(b'"', start + len(_NAMED))
        text = raw[start + len(_NAMED) : end]
        rest = raw[:start] + raw[end + 1 :]
        key = hash(rest)  # of SipHash with a secret of the process: nobody can write another text
        name, label_set = self._names.get(text), self._new.get(key)
        if name is not None and label_set is not None and start >= 0:
            return label_set, name  # most series: both texts were checked when they were kept
        usual = start > 0 and raw[start - 1 : start] in _BEFORE_NAME
        if not usual or b"\\" in text or _NAME in rest:
            return self._decode_series(raw)
        if name is None:
            name = self._names[text] = text.decode()
        return self._find(key, raw), name

    def _decode_series(self, raw: bytes) -> tuple[LabelSet, str]:
        """Find a series whose text is not written as engines usually do."""
        labels = _labels.decode(raw)
        name = labels.pop("__name__", "")
        text = msgspec.json.encode(labels, order="sorted")
        return self._find(hash(text), text), name

    def _find(self, key: int, raw: bytes) -> LabelSet:
        label_set = self._new.get(key)
        if label_set is None:
            label_set = self._old.get(key)
            if label_set is None:
                labels = _labels.decode(raw)
                labels.pop("__name__", None)
                # Most values are those of other label sets too, which saves half of the memory.
                labels = dict(zip(labels, map(intern, labels.values()), strict=True))
                label_set = LabelSet(key, labels, origin_of(labels))
            label_set.round = self.round
            self._new[label_set.key] = label_set
        return label_set


def origin_of(labels: Mapping[str, str]) -> str:
    """Return the exporter of a series, by its labels."""
    of = cluster(labels)
    return f"{of}/{_address(labels)}" if of else _address(labels)


def _address(labels: Mapping[str, str]) -> str:
    address = next((labels[key] for key in _ORIGIN_LABELS if labels.get(key)), NO_ORIGIN)
    _, colon, port = address.rpartition(":")
    if colon and not port.isdigit():
        # Google's managed Prometheus: "<pod>:<port name>", which may exist in several namespaces.
        return f"{labels.get('namespace', '')}/{address}"
    return address
