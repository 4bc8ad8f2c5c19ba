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
            cached = state.answers.get(_CACHE)
            if not isinstance(cached, tuple):
                cached = state.answers[_CACHE] = yield from _read(state, snapshot.cluster)
            devices = seen[origin] = cached
            changed = changed or before.get(origin) != devices
            if done % _STEP == 0:
                yield
        if changed or len(seen) != len(before):
            yield from self._name_devices(seen)
        self._seen, self._snapshot = seen, weakref.ref(snapshot)

    def _name_devices(self, by_origin: Mapping[str, tuple[Seen, ...]]) -> Steps[None]:
        by_name: dict[str, list[Known]] = {}
        for some in parts((yield from _merge_devices(by_origin)), _STEP):
            for device in some:
                by_name.setdefault(_name(device), []).append(device)
            yield
        devices: dict[str, Known] = {}
        for done, (name, same) in enumerate(by_name.items()):
            for device in same:
                preferred = name if len(same) == 1 else _own_name(device.id)
                devices[_unused_name(preferred, devices)] = device
            if done % _STEP == 0:
                yield
        placed: list[tuple[str, str]] = []
        for batch in parts(tuple(devices), _STEP):
            placed += [(in_numbers(name), name) for name in batch]
            yield
        order = [name for _, name in sorted(placed)]
        yield
        names: dict[str, str] = {}
        keys: list[Key] = []
        for batch in parts(order, _STEP):
            keys += [Key("", name) for name in batch]
            names.update((devices[name].id, name) for name in batch)
            yield
        self._known, self._names, self.keys = devices, names, keys


def place_of(key: Key) -> tuple[str, str]:
    """Return what the list of devices is sorted by."""
    return in_numbers(key.name), key.name


def in_numbers(name: str) -> str:
    """Return a text that sorts as the name with its numbers: ``n1.gpu10`` after ``n1.gpu9``."""
    return _NUMBERS.sub(lambda match: f".{match[1]}{match[2]:0>8}", name)


def device_series(device: Known, snapshot: Snapshot) -> Sequence[DeviceSeries]:
    """Return everything that exporters report about a device; empty if it is gone."""
    states = (snapshot.states.get(origin) for origin in device.origins)
    return [s for state in states if state is not None for s in state.devices.get(device.id, ())]


def _read(state: ExporterState, cluster: ClusterContext) -> Steps[tuple[Seen, ...]]:
    devices = []
    for done, (identity, all_series) in enumerate(state.outline.devices.items()):
        its = [series for series in all_series if not (series.serves or series.sees)]
        if its:
            device = its[0].device
            node = next(filter(None, map(cluster.node_of, its)), "")
            devices.append(Seen(identity, device.board, node, _number(device, its)))
        if done % _STEP == 0:
            yield
    return tuple(devices)


def _merge_devices(by_origin: Mapping[str, tuple[Seen, ...]]) -> Steps[Sequence[Known]]:
    """Return the devices of all exporters, each once, without boards that have instances."""
    boards = set()
    devices: dict[str, list[tuple[Seen, str]]] = {}
    for origin in sorted(by_origin):
        for device in by_origin[origin]:
            devices.setdefault(device.id, []).append((device, origin))
            if device.board != device.id:
                boards.add(device.board)
        yield
    merged = []
    for some in parts(tuple(devices), _STEP):
        merged += [
            _merge_reports(device, devices[device]) for device in some if device not in boards
        ]
        yield
    return merged


def _number(device: Device, all_series: Iterable[DeviceSeries]) -> str:
    number = next((series.device.number for series in all_series if series.device.number), "")
    if not number or not device.mig:
        return number
    if device.mig_profile in _AMD_PARTITIONS:
        return f"{number}.part{device.id.rpartition('/')[2].lower()}"
    part = device.id.removeprefix(device.board + "/").replace("/", "-").lower()
    return f"{number}.{part}" if part.startswith("mig-") else f"{number}.mig{part}"


def _merge_reports(identity: str, reports: Sequence[tuple[Seen, str]]) -> Known:
    """Return what all exporters of a device know; of two nodes, the first in order."""
    if len(reports) == 1:
        ((device, origin),) = reports
        return Known(identity, device.node, device.number, (origin,))
    origins = tuple(origin for _, origin in reports)
    node = min((device.node for device, _ in reports if device.node), default="")
    number = min((device.number for device, _ in reports if device.number), default="")
    return Known(identity, node, number, origins)


def _name(device: Known) -> str:
    if not device.node or not device.number:
        return _own_name(device.id)
    prefix = "gpu" if device.number[0].isdigit() else ""
    return _valid_name(f"{device.node}.{prefix}{device.number}")


def _own_name(device: str) -> str:
    return _valid_name(device) or "gpu"


def _valid_name(text: str) -> str:
    return _FOREIGN.sub("-", text.lower()).strip("-.")[-_LONGEST:].strip("-.")


def _unused_name(name: str, devices: Mapping[str, Known]) -> str:
    """Return the name, with a number if another device has it."""
    number, candidate = 2, name
    while candidate in devices:
        candidate, number = f"{name}-{number}", number + 1
    return candidate
