"""Name the devices of a snapshot: ``n1.gpu0``, ``n1.gpu0.mig3``, or the device's own id.

Devices rarely come and go while values change all the time. So what an exporter reports is read
once per scrape result, and the sorted list is made again only if one of the devices changed.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from adapter.pipeline.attribution.nodecontext import ClusterContext
from adapter.pipeline.devices.device import Device
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.devices.state import ExporterState
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.runtime.steps import Steps, parts
from apiservice.view.resource import Key

_STEP: Final = 64
"""Devices, or exporters, that one step processes."""
_CACHE: Final = "view/devices"
_FOREIGN: Final = re.compile(r"[^a-z0-9.-]+")
_NUMBERS: Final = re.compile(r"\.(gpu|mig|part|card)(\d+)")
_LONGEST: Final = 253
_AMD_PARTITIONS: Final = ("dpx", "tpx", "qpx", "cpx")


class Seen(NamedTuple):
    """A device as one exporter reports it."""

    id: str
    board: str
    node: str
    """Empty if it is not known."""
    number: str
    """``0``, ``0.mig3``; empty if the page has none."""


class Known(NamedTuple):
    """A device as an object."""

    id: str
    node: str
    number: str
    origins: tuple[str, ...]
    """The exporters that report it."""


class Devices:
    """The devices by the names of their objects."""

    def __init__(self) -> None:
        self._snapshot: weakref.ref[Snapshot] | None = None
        self._seen: dict[str, tuple[Seen, ...]] = {}
        self._known: Mapping[str, Known] = {}
        self._names: Mapping[str, str] = {}
        self.keys: Sequence[Key] = ()
        """All devices, by node, and by number on a node."""

    def get(self, name: str) -> Known | None:
        """Return the device of that name."""
        return self._known.get(name)

    def name_of(self, device: str) -> str:
        """Return the name of the object of a device id; empty if there is none."""
        return self._names.get(device, "")

    def refresh(self, snapshot: Snapshot) -> Steps[None]:
        """Take the devices of a snapshot, in steps."""
        if self._snapshot is not None and self._snapshot() is snapshot:
            return
        before, seen = self._seen, dict[str, tuple[Seen, ...]]()
        changed = False
        for done, (origin, state) in enumerate(snapshot.states.items()):
            known = state.answers.get(_CACHE)
            if not isinstance(known, tuple):
                known = state.answers[_CACHE] = yield from _read(state, snapshot.cluster)
            found = seen[origin] = known
            changed = changed or before.get(origin) != found
            if done % _STEP == 0:
                yield
        if changed or len(seen) != len(before):
            yield from self._name(seen)
        self._seen, self._snapshot = seen, weakref.ref(snapshot)

    def _name(self, seen: Mapping[str, tuple[Seen, ...]]) -> Steps[None]:
        by_name: dict[str, list[Known]] = {}
        for some in parts((yield from _merge(seen)), _STEP):
            for found in some:
                by_name.setdefault(_name(found), []).append(found)
            yield
        known: dict[str, Known] = {}
        for done, (name, named) in enumerate(by_name.items()):
            for one in named:
                known[_unused(name if len(named) == 1 else _own_name(one.id), known)] = one
            if done % _STEP == 0:
                yield
        placed: list[tuple[str, str]] = []
        for batch in parts(tuple(known), _STEP):
            placed += [(in_numbers(name), name) for name in batch]
            yield
        order = [name for _, name in sorted(placed)]
        yield
        names: dict[str, str] = {}
        keys: list[Key] = []
        for batch in parts(order, _STEP):
            keys += [Key("", name) for name in batch]
            names.update((known[name].id, name) for name in batch)
            yield
        self._known, self._names, self.keys = known, names, keys


def place_of(key: Key) -> tuple[str, str]:
    """Return what the list of devices is sorted by."""
    return in_numbers(key.name), key.name


def in_numbers(name: str) -> str:
    """Return a text that sorts as the name with its numbers: ``n1.gpu10`` after ``n1.gpu9``."""
    return _NUMBERS.sub(lambda found: f".{found[1]}{found[2]:0>8}", name)


def device_series(known: Known, snapshot: Snapshot) -> Sequence[DeviceSeries]:
    """Return everything that exporters report about a device; empty if it is gone."""
    states = (snapshot.states.get(origin) for origin in known.origins)
    return [s for state in states if state is not None for s in state.devices.get(known.id, ())]


def _read(state: ExporterState, cluster: ClusterContext) -> Steps[tuple[Seen, ...]]:
    found = []
    for done, (identity, all_series) in enumerate(state.outline.devices.items()):
        its = [series for series in all_series if not (series.serves or series.sees)]
        if its:
            device = its[0].device
            node = next(filter(None, map(cluster.of_series, its)), "")
            found.append(Seen(identity, device.board, node, _number(device, its)))
        if done % _STEP == 0:
            yield
    return tuple(found)


def _merge(seen: Mapping[str, tuple[Seen, ...]]) -> Steps[Sequence[Known]]:
    """Return the devices of all exporters, each once, without boards that have instances."""
    boards = set()
    devices: dict[str, list[tuple[Seen, str]]] = {}
    for origin in sorted(seen):
        for device in seen[origin]:
            devices.setdefault(device.id, []).append((device, origin))
            if device.board != device.id:
                boards.add(device.board)
        yield
    found = []
    for some in parts(tuple(devices), _STEP):
        found += [_merged(device, devices[device]) for device in some if device not in boards]
        yield
    return found


def _number(device: Device, all_series: Iterable[DeviceSeries]) -> str:
    number = next((series.device.number for series in all_series if series.device.number), "")
    if not number or not device.mig:
        return number
    if device.mig_profile in _AMD_PARTITIONS:
        return f"{number}.part{device.id.rpartition('/')[2].lower()}"
    part = device.id.removeprefix(device.board + "/").replace("/", "-").lower()
    return f"{number}.{part}" if part.startswith("mig-") else f"{number}.mig{part}"


def _merged(identity: str, its: Sequence[tuple[Seen, str]]) -> Known:
    """Return what all exporters of a device know; of two nodes, the first in order."""
    if len(its) == 1:
        ((seen, origin),) = its
        return Known(identity, seen.node, seen.number, (origin,))
    origins = tuple(origin for _, origin in its)
    node = min((seen.node for seen, _ in its if seen.node), default="")
    number = min((seen.number for seen, _ in its if seen.number), default="")
    return Known(identity, node, number, origins)


def _name(device: Known) -> str:
    if not device.node or not device.number:
        return _own_name(device.id)
    prefix = "gpu" if device.number[0].isdigit() else ""
    return _valid(f"{device.node}.{prefix}{device.number}")


def _own_name(device: str) -> str:
    return _valid(device) or "gpu"


def _valid(text: str) -> str:
    return _FOREIGN.sub("-", text.lower()).strip("-.")[-_LONGEST:].strip("-.")


def _unused(name: str, known: Mapping[str, Known]) -> str:
    """Return the name, with a number if another device has it."""
    number, found = 2, name
    while found in known:
        found, number = f"{name}-{number}", number + 1
    return found
