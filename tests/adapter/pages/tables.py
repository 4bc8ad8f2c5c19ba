"""The project's own pages: their worlds and expected values, from the tables beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from adapter.config.settings import Settings
from adapter.pipeline.cluster.uids import PodUids
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.sources.azure import insights
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import decode
from adapter.server.serve.build import sharing_options, telemetry_options
from tests.adapter.pages.scene import Line, Scene
from tests.adapter.world import CATALOG, OWN_PAGES, World, make_pod, own_page

BINARY = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ABOUT = ("shape", "says", "kind", "name", "like")
WORLD = ("read", "ask", "now", "nodes", "pods", "sharing", "settings")
KEYS = frozenset((*ABOUT, *WORLD, "expect", "rejects"))
READS = ("page", "answer", "logs")
"""What an entry of ``read`` may name: a page, or the answer of a Prometheus or of Log Analytics."""
TIME = 100.0


class TableError(Exception):
    """A table cannot be read; the message names the file and what is wrong."""


def own_scenes() -> dict[str, Scene]:
    """Every table of the project's own pages: ``folder/page`` or ``folder/page: name`` -> scene."""
    scenes: dict[str, Scene] = {}
    for path in sorted(OWN_PAGES.rglob("*.yaml")):
        for name, document in _documents(path):
            if name in scenes:
                raise TableError(
                    f"{path.name}: two documents are called {name!r}: give each a name"
                )
            scenes[name] = _scene(path, document)
    return scenes


def _documents(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    named: dict[str, Mapping[str, Any]] = {}
    for own in yaml.safe_load_all(path.read_text()):
        if unknown := set(own) - KEYS:
            raise TableError(f"{path.name}: unknown keys {sorted(unknown)}")
        if "like" in own and own["like"] not in named:
            raise TableError(f"{path.name}: no document before it is called {own['like']!r}")
        document = {**named[own["like"]], **own} if "like" in own else own
        named[document.get("name", "")] = document
        page = str(path.relative_to(OWN_PAGES).with_suffix(""))
        yield (f"{page}: {document['name']}" if "name" in document else page), document


def _scene(path: Path, document: Mapping[str, Any]) -> Scene:
    folder = path.parent.relative_to(OWN_PAGES)
    reads = document["read"]
    files = tuple(str(folder / next(read[key] for key in READS if key in read)) for read in reads)
    last = max(float(read.get("time", TIME)) for read in reads)
    return Scene(
        pages=files,
        build=lambda: _build(document, files),
        now=float(document.get("now", last)),
        says={
            subject: tuple(_line(path, subject, row) for row in rows)
            for subject, rows in document["expect"].items()
        },
        rejects=document.get("rejects", {}),
        kind=document.get("kind", ""),
    )


def _line(path: Path, subject: str, row: Sequence[Any]) -> Line:
    parts = re.fullmatch(r"([^{]+)(?:\{(.*)\})?", str(row[0]))
    if parts is None or len(row) != 3:
        raise TableError(f"{path.name}: {subject}: {row}: needs a metric, a value and a why")
    _, value, why = row
    if isinstance(value, str) and (product := re.fullmatch(r"([\d.]+) ([KMG]iB)", value)):
        value = float(product[1]) * BINARY[product[2]]
    return Line(parts[1], value, str(why), parts[2] or "")


def _build(document: Mapping[str, Any], files: tuple[str, ...]) -> World:
    pods = []
    for where, details in document.get("pods", {}).items():
        namespace, _, name = where.partition("/")
        pods.append(make_pod(name, namespace=namespace, **(details or {})))
    settings = _settings(document)
    world = World(
        *pods,
        nodes=document.get("nodes"),
        options=telemetry_options(settings),
        sharing=sharing_options(settings),
    )
    for metric in CATALOG.on_demand if document.get("ask") else ():
        for namespace in {pod.namespace for pod in pods}:
            world.store.demand.ask(metric, namespace, TIME)
    for read, file in zip(document["read"], files, strict=True):
        time = float(read.get("time", TIME))
        if "answer" in read:
            _ingest_answer(world, file, time)
        elif "logs" in read:
            _ingest_logs(world, file, time)
        else:
            namespace, _, name = read.get("pod", "").partition("/")
            world.scrape(
                own_page(file),
                time,
                node=read.get("node"),
                origin=read.get("origin", "http://exporter"),
                pod=(namespace, name) if name else None,
                serves=read.get("serves", False),
            )
    return world


def _settings(document: Mapping[str, Any]) -> Settings:
    """Return the settings of a table; ``sharing: POLICY`` is short for that policy alone."""
    policy = {"sharing": {"policy": document["sharing"]}} if "sharing" in document else {}
    return Settings.model_validate(policy | document.get("settings", {}))


def _ingest_answer(world: World, file: str, time: float) -> None:
    decoded = decode(own_page(file).encode(), SeriesMemo(), QueryGroup("own", ()))
    for origin, samples in decoded.samples.items():
        world.store.ingest(ScrapeResult(origin, None, samples, time, decoded.rejects))


def _ingest_logs(world: World, file: str, time: float) -> None:
    """Ingest an answer of Log Analytics, its times as Azure's library parses them."""
    (table,) = json.loads(own_page(file))["tables"]
    columns = [column["name"] for column in table["columns"]]
    kinds = [column["type"] for column in table["columns"]]
    records = [
        [
            datetime.fromisoformat(cell) if kind == "datetime" else cell
            for kind, cell in zip(kinds, record, strict=True)
        ]
        for record in table["rows"]
    ]
    usage = insights.read(columns, records, PodUids(world.index), insights.UsageMemo())
    rejects: Mapping[str, int] = usage.rejects
    for node, samples in usage.samples.items():
        world.store.ingest(ScrapeResult(f"azure_logs/{node}", node, samples, time, rejects))
        rejects = {}
