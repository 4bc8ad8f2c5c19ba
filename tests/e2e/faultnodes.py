"""Additional nodes with an exporter each, which a test may break."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.e2e.cluster import PODS
from tests.e2e.exporter import Exporter
from tests.e2e.stage import Stage, exporter_pod


@contextmanager
def faulty_nodes(stage: Stage, names: Sequence[str]) -> Iterator[dict[str, Exporter]]:
    """Node name -> its exporter. Everything is removed afterwards."""
    with ExitStack() as stack:
        exporters = {}
        for name in names:
            exporter = exporters[name] = Exporter(name, stage.load, stage.pods)
            exporter.start()
            stack.callback(exporter.stop)
            meta = {"name": name, "labels": {"gpu": "true"}}
            stage.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": meta})
            stack.callback(stage.admin.delete, f"/api/v1/nodes/{name}")
            pod = exporter_pod(exporter)
            stage.admin.create(pod)
            where = PODS.format(ns=pod["metadata"]["namespace"])
            stack.callback(stage.admin.delete, f"{where}/{pod['metadata']['name']}")
        yield exporters
