"""What happened to nodes, exporters and GPUs between two looks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from adapter.figures import count
from adapter.tools.ui.entries import About, EntryKind, EntryLevel, TimelineEntry
from adapter.tools.ui.gpurows import DeviceParts

MOST: Final = 20
"""Entries about single GPUs of one look; the others are counted."""


class DeviceFact(msgspec.Struct, frozen=True, gc=False):
    """What a change of a device is recognised by."""

    node: str
    exporter: str
    measured: bool
    unhealthy: str


class NodesSeen(NamedTuple):
    """The nodes with GPUs, by their own list, which is read at another time than the devices."""

    there: Set[str] | None = None
    """None if the list cannot be read."""
    unreported: Set[str] = frozenset()
    """Those of which no exporter reports a GPU."""
    lost: Set[str] = frozenset()
    """Those that were there when their exporter stopped to report them."""


Devices = Mapping[str, DeviceFact]


def device_facts(parts: DeviceParts) -> Devices:
    """Return the devices by name."""
    load = parts.load
    states = (load["util"], load["unhealthy"])
    columns = zip(parts.static["rows"], parts.exporters, *states, strict=True)
    return {
        str(row[0]): DeviceFact(
            str(row[1] or ""), str(exporter or ""), util is not None, str(sick or "")
        )
        for row, exporter, util, sick in columns
    }


def device_changes(
    before: Devices, after: Devices, now: float, nodes: NodesSeen
) -> Iterator[TimelineEntry]:
    """Yield what happened, nodes first. What explains other changes stands for them."""
    old, new = _by_node(before), _by_node(after)
    yield from _nodes(old, new, now, nodes)
    explained: set[str] = set()
    for node in old.keys() & new.keys():
        for entry, names in _exporters(node, old[node], new[node], now):
            explained |= names
            yield entry
    same = old.keys() & new.keys()
    singles = list(_devices(before, after, frozenset(same), explained, now))
    yield from islice(singles, MOST)
    if len(singles) > MOST:
        yield TimelineEntry(now, "gpu", "warning", f"{len(singles) - MOST} more GPUs changed")


def _by_node(devices: Devices) -> dict[str, dict[str, DeviceFact]]:
    by_node: dict[str, dict[str, DeviceFact]] = defaultdict(dict)
    for name, fact in devices.items():
        by_node[fact.node][name] = fact
    return by_node


def _nodes(
    old: Mapping[str, Devices], new: Mapping[str, Devices], now: float, nodes: NodesSeen
) -> Iterator[TimelineEntry]:
    for node in sorted(new.keys() - old.keys()):
        gpus = count(len(new[node]), "GPU")
        text = f"node {node} joined: {gpus}"
        if node in nodes.lost:
            text = f"exporter of node {node} reports its {gpus} again"
        yield TimelineEntry(now, "node", "good", text, About("node", "", node))
    for node in sorted(old.keys() - new.keys()):
        gpus = count(len(old[node]), "GPU")
        text = f"exporter of node {node} no longer reports its {gpus}"
        if nodes.there is not None and node not in nodes.there:
            text = f"node {node} is gone: its {gpus} are no longer reported"
        elif node in nodes.unreported:
            text = f"exporter of node {node} fails: its {gpus} are no longer reported"
        yield TimelineEntry(now, "node", "warning", text, About("node", "", node))


def _exporters(
    node: str, old: Devices, new: Devices, now: float
) -> Iterator[tuple[TimelineEntry, set[str]]]:
    """Yield the exporters whose devices all lost or got their values, with these devices."""
    for exporter in sorted({fact.exporter for fact in old.values()}):
        names = {name for name, fact in old.items() if fact.exporter == exporter}
        had = any(old[name].measured for name in names)
        has = any(new[name].measured for name in names if name in new)
        if had == has or not exporter or (len(names) < 2 and names <= new.keys() and had):
            # One device without a value says nothing about its exporter.
            continue
        level: EntryLevel = "good" if has else "bad"
        change = "has values again of" if has else "has no values any more of"
        text = f"exporter of node {node} {change} {count(len(names), 'GPU')}"
        yield TimelineEntry(now, "exporter", level, text, About("node", "", node), exporter), names


def _devices(
    before: Devices, after: Devices, nodes: frozenset[str], explained: set[str], now: float
) -> Iterator[TimelineEntry]:
    for name in sorted((before.keys() | after.keys()) - explained):
        old, new = before.get(name), after.get(name)
        if (new or old or _NONE).node in nodes and (change := _device(old, new)) is not None:
            kind: EntryKind = "gpu"
            shown = name_device(name, (new or old or _NONE).node)
            about = About("gpu", "", name, shown)
            yield TimelineEntry(now, kind, change[0], f"GPU {shown} {change[1]}", about)


def name_device(name: str, node: str) -> str:
    """Return how a text names a device: ``n1.gpu3``, or ``gpu-3f9a1b2c… on node n1``.

    A device whose exporter gives no number, or names no node, has its id as name.
    """
    if node and name.startswith(f"{node}."):
        return name
    short = name if len(name) <= _SHORT else f"{name[:_SHORT]}…"
    return f"{short} on node {node}" if node else short


_SHORT: Final = 12
"""Characters of an id that tell devices apart: ``gpu-3f9a1b2c``."""
_NONE: Final = DeviceFact("", "", False, "")


def _device(old: DeviceFact | None, new: DeviceFact | None) -> tuple[EntryLevel, str] | None:
    if new is None:
        return "bad", "is no longer reported"
    if old is None:
        return "good", "is reported"
    if new.unhealthy and new.unhealthy != old.unhealthy:
        return "bad", f"is not healthy: {new.unhealthy}"
    if old.unhealthy and not new.unhealthy:
        return "good", "is healthy again"
    if old.measured != new.measured:
        return ("good", "has a utilization again") if new.measured else ("warning", _LOST)
    return None


_LOST: Final = "has no utilization any more"
