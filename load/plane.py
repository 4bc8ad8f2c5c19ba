"""A real API server with the fleet's pods in it, for the scenarios that need one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from load.fleet import NAMESPACE, Slot, manifest, nodes, slots, status
from load.pki import Pki
from load.process import Observed
from tests.e2e.controlplane import ControlPlane

_WRITERS = 8


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver. The controllers are stopped: nothing here is theirs to do."""
    with ControlPlane(folder / "plane", controllers=("serviceaccount-controller",)) as plane:
        plane.manager.stop()
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        plane.admin.create(namespace)
        yield plane


def populate(plane: ControlPlane, have: int, want: int) -> None:
    """Create the fleet's pods ``have`` to ``want``, running and ready, and their nodes."""
    with ThreadPoolExecutor(_WRITERS) as writers:
        # Consumed for its exceptions.
        names = nodes(want)[len(nodes(have)) :]
        list(writers.map(lambda name: _node(plane, name), names))
        list(writers.map(lambda slot: _pod(plane, slot), islice(slots(want), have, None)))


def _node(plane: ControlPlane, name: str) -> None:
    plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


def _pod(plane: ControlPlane, slot: Slot) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    plane.admin.request("POST", path, manifest(slot))
    plane.admin.patch(f"{path}/{slot.name}/status", {"status": status(slot)})


def pki_of(plane: ControlPlane) -> Pki:
    """The plane's own certificates: its front proxy's client pair, and a serving pair."""
    serving = plane.ca.issue("metrics-adapter", server=True)
    proxy = plane.proxy_client
    return Pki(plane.ca.cert, serving.cert, serving.key, proxy.cert, proxy.key)


def processes(plane: ControlPlane) -> list[Observed]:
    """kube-apiserver and etcd."""
    return [
        Observed("kube-apiserver", plane.apiserver.pid),
        Observed("etcd", plane.etcd.pid),
    ]


def requests(plane: ControlPlane) -> dict[str, float]:
    """Requests that the API server has answered: resource -> count, its own included."""
    counted: dict[str, float] = {}
    text = plane.admin.request("GET", "/metrics")
    for family in text_string_to_metric_families(_lines_of(text, "apiserver_request_total")):
        for sample in family.samples:
            resource = sample.labels.get("resource") or "(other)"
            counted[resource] = counted.get(resource, 0.0) + sample.value
    return counted


def _lines_of(text: str, metric: str) -> str:
    """The page's lines about one metric: the whole page is long to parse."""
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith(metric))
