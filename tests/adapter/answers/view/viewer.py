"""The view API over a test's world: tables as kubectl prints them, and objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapter.answers.history.ring import HistoryRing
from adapter.answers.view.devices import Devices
from adapter.answers.view.gpuhistories import GPUHISTORIES, GpuHistories
from adapter.answers.view.gpunodes import GPUNODES, GpuNodes
from adapter.answers.view.gpupods import GPUPODS, GpuPods
from adapter.answers.view.gpupools import GPUPOOLS, GpuPools
from adapter.answers.view.gpus import GPUS, Gpus
from adapter.answers.view.gpuworkloads import GPUWORKLOADS, GpuWorkloads
from adapter.answers.view.standings import NodeStandings
from adapter.pipeline.cluster.hpas import Hpas, ShownHpa
from apiservice.runtime.steps import at_once
from apiservice.view.cells import RowWriter
from apiservice.view.resource import Cell, Key, ViewProvider, ViewResource
from tests.adapter.world import World

Json = dict[str, Any]


def prepare(provider: ViewProvider, keys: Sequence[Key], now: float) -> None:
    """Prepare keys; these providers answer from memory."""
    for awaited in provider.prepare(keys, now):
        assert awaited is None


class Shelf:
    """One resource of the view API."""

    def __init__(self, resource: ViewResource, provider: ViewProvider) -> None:
        self.resource = resource
        self.provider = provider

    def listed(self, namespace: str | None = None) -> Sequence[Key]:
        return at_once(self.provider.keys(namespace))

    def names(self, namespace: str | None = None) -> list[str]:
        return [key.name for key in self.listed(namespace)]

    def cells(self, name: str, now: float, namespace: str = "ml") -> Sequence[Cell]:
        """The texts of an object, one for each column."""
        key = self._key(name, namespace)
        prepare(self.provider, [key], now)
        cells = self.provider.cells(key, now)
        assert cells is not None, f"no object {name}"
        assert len(cells) == len(self.resource.columns)
        return RowWriter(self.resource.columns).texts(cells)

    def row(self, name: str, now: float, namespace: str = "ml") -> dict[str, Cell]:
        """The cells of an object that are not empty, by column."""
        columns = zip(self.resource.columns, self.cells(name, now, namespace), strict=True)
        return {column.name: cell for column, cell in columns if cell is not None}

    def get(self, name: str, now: float, namespace: str = "ml") -> Json:
        view_object = self.find(name, now, namespace)
        assert view_object is not None, f"no object {name}"
        return view_object

    def find(self, name: str, now: float, namespace: str = "ml") -> Json | None:
        key = self._key(name, namespace)
        prepare(self.provider, [key], now)
        return self.provider.object(key, now)

    def fields(self, name: str, namespace: str = "ml") -> dict[str, str]:
        return dict(self.provider.fields(self._key(name, namespace)))

    def every(self, now: float) -> list[Json]:
        """All objects."""
        keys = self.listed()
        prepare(self.provider, keys, now)
        objects = [self.provider.object(key, now) for key in keys]
        assert None not in objects
        return [view_object for view_object in objects if view_object is not None]

    def _key(self, name: str, namespace: str) -> Key:
        return Key(namespace if self.resource.namespaced else "", name)


class Viewer:
    """The resources over a world."""

    def __init__(self, world: World, *hpas: ShownHpa) -> None:
        devices = Devices()
        self.hpas = Hpas()
        self.hpas.replace(hpas)
        standings = NodeStandings(world.index, world.nodes)
        gpus = Gpus(world.store, world.index, devices, standings)
        nodes = GpuNodes(world.store, world.index, devices, standings)
        self.gpus, self.nodes = Shelf(GPUS, gpus), Shelf(GPUNODES, nodes)
        ratios = world.custom._ratios
        self.pods = Shelf(GPUPODS, GpuPods(world.store, world.index, devices, self.hpas, ratios))
        self.of_workloads = GpuWorkloads(world.store, world.index, self.hpas)
        self.workloads = Shelf(GPUWORKLOADS, self.of_workloads)
        self.ring = HistoryRing()
        self.of_pools = GpuPools(gpus, nodes, standings, self.ring)
        self.pools = Shelf(GPUPOOLS, self.of_pools)
        self.of_histories = GpuHistories(self.ring, world.index, self.hpas, self.of_workloads)
        self.histories = Shelf(GPUHISTORIES, self.of_histories)


def numbers(found: Json, what: str = "metrics") -> dict[str, float]:
    """Metric -> number of an object."""
    return {value["metric"]: value["number"] for value in found.get(what, ())}


def reasons(found: Json, what: str = "absent") -> dict[str, str]:
    """Metric -> reason of an object's missing values."""
    return {
        metric: missing["reason"]
        for missing in found.get(what, ())
        for metric in missing["metrics"]
    }
