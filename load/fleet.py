"""Simulated GPU nodes: one process that plays every node's exporter, and their pods.

``GET /node-00017/metrics`` is that node's page; its values change every second. Beside it,
for the benchmark alone: ``/control/util/node-00017/85`` fixes a page's GPU_UTIL from that
moment and answers the time, ``/control/count`` answers how many pages were asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import uvloop

from load.page import GPUS_PER_NODE, Device, Page

NAMESPACE = "bench"
SERVICE_SIZE = 100
"""Pods that one selector matches."""
WORKLOAD_SIZE = 2
"""Pods of one workload. Each ScaledObject asks about a workload of its own."""


class Slot(NamedTuple):
    """A pod and the GPU it holds."""

    name: str
    app: str
    workload: str
    node: str
    device: Device


def node_name(index: int) -> str:
    """The name of node ``index``."""
    return f"node-{index:05d}"


def workload_name(index: int) -> str:
    """The name of workload ``index``."""
    return f"w-{index:05d}"


def slots(pods: int) -> Iterator[Slot]:
    """``pods`` one-GPU pods, eight to a node, a hundred to a service, two to a workload."""
    return map(slot, range(pods))


def slot(index: int) -> Slot:
    """The ``index``-th of them."""
    app = f"svc-{index // SERVICE_SIZE:03d}"
    name = f"{app}-{index:05d}"
    uuid = f"GPU-{index:08x}-f55a-92a8-aa39-322198e72ed6"
    node = node_name(index // GPUS_PER_NODE)
    return Slot(name, app, workload_name(index // WORKLOAD_SIZE), node, Device(index, uuid, name))


def nodes(pods: int) -> list[str]:
    """The nodes that ``pods`` pods need."""
    return [node_name(index) for index in range(-(-pods // GPUS_PER_NODE))]


def manifest(slot: Slot) -> dict[str, Any]:
    """The pod as it would be created; ``status`` is apart (:func:`status`)."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": slot.name,
            "namespace": NAMESPACE,
            "labels": {
                "app": slot.app,
                "workload": slot.workload,
                "pod-template-hash": "7d9f8b6c5d",
            },
        },
        "spec": {
            "nodeName": slot.node,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/inference:1",
                    "resources": {
                        "limits": {"nvidia.com/gpu": "1", "memory": "64Gi", "cpu": "8"},
                        "requests": {"nvidia.com/gpu": "1", "memory": "64Gi", "cpu": "8"},
                    },
                }
            ],
        },
    }


def status(slot: Slot) -> dict[str, Any]:
    """What the kubelet would say: running and ready."""
    ip = f"10.{slot.device.number >> 16}.{slot.device.number >> 8 & 255}.{slot.device.number & 255}"
    return {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "PodScheduled")],
    }


def pod_list(pods: int) -> dict[str, Any]:
    """All pods as ``kubectl get pods -o json`` would print them."""
    items = []
    for slot in slots(pods):
        pod = manifest(slot) | {"status": status(slot)}
        pod["metadata"]["uid"] = f"00000000-0000-4000-8000-{slot.device.number:012d}"
        items.append(pod)
    return {"apiVersion": "v1", "kind": "List", "items": items}


def pages(pods: int) -> dict[str, Page]:
    """Node name -> its exporter's page."""
    devices: dict[str, list[Device]] = {name: [] for name in nodes(pods)}
    for slot in slots(pods):
        devices[slot.node].append(slot.device)
    return {name: Page(name, NAMESPACE, node_devices) for name, node_devices in devices.items()}


class Fleet:
    """What the exporters share: their pages, and how often they were asked."""

    def __init__(self, exporter_pages: dict[str, Page]) -> None:
        self._pages = exporter_pages
        self._asked = 0

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and body for a path."""
        match path.strip("/").split("/"):
            case [node, "metrics"] if node in self._pages:
                self._asked += 1
                return 200, self._pages[node].render(int(time.time()))
            case ["control", "count"]:
                return 200, json.dumps({"pages": self._asked}).encode()
            case ["control", "util", node, value] if node in self._pages:
                self._pages[node].forced = int(value)
                return 200, json.dumps({"at": time.time()}).encode()
        return 404, b"no such exporter\n"


class Connection(asyncio.Protocol):
    """HTTP/1.1, GET only, keep-alive: no more than an exporter needs."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to answer."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer every complete request head."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0 and self._transport is not None:
            line = self._buffer[: self._buffer.find(b"\r\n")].decode("latin-1")
            self._buffer = self._buffer[end + 4 :]
            code, body = self._fleet.answer(line.split(" ")[1])
            head = f"HTTP/1.1 {code} {'OK' if code == 200 else 'Not Found'}\r\n"
            head += (
                f"Content-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            self._transport.write(head.encode() + body)


async def _serve(pods: int, ready: Path) -> None:
    fleet = Fleet(pages(pods))
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(fleet), "127.0.0.1", 0, backlog=4096
    )
    part = ready.with_suffix(".part")
    part.write_text(str(server.sockets[0].getsockname()[1]))
    part.rename(ready)
    await server.serve_forever()


def main() -> None:
    """Serve until ended; the port is written to ``--ready``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--ready", type=Path, required=True, help="file to write the port to")
    arguments = parser.parse_args()
    uvloop.run(_serve(arguments.pods, arguments.ready))


if __name__ == "__main__":
    main()
