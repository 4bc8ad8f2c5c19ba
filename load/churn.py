"""Resident memory of ``serve`` while everything that it could remember comes and goes.

Every few seconds a tenth of the pods and a twentieth of the devices are replaced by new ones with
new names, and the pages of inference servers change their label values. Meanwhile a client asks
as a new user, with selectors that nobody used before. Nothing accumulates in the simulated
cluster, so nothing may accumulate in the process.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import httpx
import yaml

from load.page import GPUS_PER_NODE, Device, Page
from load.pki import FRONT_PROXY, Pki, issue
from load.process import PYTHON, Child, run_child, wait_until
from load.servers import free_port, is_listening
from load.table import Goal, Run, Table

_METRICS: Final = ("DCGM_FI_DEV_GPU_UTIL", "gpu_memory_utilization", "gpu_power_watts")
_GROUP: Final = "/apis/custom.metrics.k8s.io/v1beta2"


class Size(NamedTuple):
    """A cluster, and how fast it changes."""

    name: str
    """Of the plot."""
    minutes: float
    nodes: int
    servers: int
    """Inference servers that opted in to be scraped."""
    namespaces: int
    step: float
    """Seconds between two changes of the cluster, and between two looks at the memory."""
    share: float
    """Of the GPU pods and of the servers that are replaced in a step. Of the devices, half as
    many."""


CHURN: Final = Size("churn", minutes=20, nodes=25, servers=50, namespaces=10, step=5, share=0.1)
SOAK: Final = Size(
    "soak", minutes=120, nodes=1_000, servers=200, namespaces=50, step=30, share=0.03
)


class Sample(NamedTuple):
    """The process at one moment."""

    minute: float
    rss: int
    """Resident bytes."""


class Cluster:
    """Nodes with GPUs, pods on them, and inference servers; all names change over time."""

    def __init__(self, port: int, size: Size) -> None:
        self._port = port
        self._size = size
        self._serial = itertools.count()
        self._random = random.Random(11)
        self._holders = [self._gpu_pod(number) for number in range(size.nodes * GPUS_PER_NODE)]
        self._uuids = [f"GPU-{next(self._serial)}" for _ in self._holders]
        self._servers = [self._server(number) for number in range(size.servers)]
        self._pages: dict[int, Page] = {}
        """Slot -> the part of its node's page, until its pod or device is replaced."""
        self.replaced = 0
        """Pods and devices that were replaced so far."""

    def _gpu_pod(self, slot: int) -> dict[str, Any]:
        serial = next(self._serial)
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        return self._pod(f"gpu-{serial}", serial, slot // GPUS_PER_NODE, resources=limits)

    def _server(self, slot: int) -> dict[str, Any]:
        serial = next(self._serial)
        annotations = {
            "gpu-metrics-adapter.io/scrape": "true",
            "gpu-metrics-adapter.io/port": str(self._port),
            "gpu-metrics-adapter.io/path": f"/server/{slot}",
        }
        node = slot % self._size.nodes
        return self._pod(f"llm-{serial}", serial, node, annotations=annotations)

    def step(self) -> None:
        """Replace some of the pods and devices."""
        share = self._size.share
        for slot in self._pick_places(self._holders, share):
            self._holders[slot] = self._gpu_pod(slot)
            self._pages.pop(slot, None)
        for slot in self._pick_places(self._uuids, share / 2):
            self._uuids[slot] = f"GPU-{next(self._serial)}"
            self._pages.pop(slot, None)
        for slot in self._pick_places(self._servers, share):
            self._servers[slot] = self._server(slot)

    def _pick_places(self, things: Sequence[object], share: float) -> list[int]:
        places = self._random.sample(range(len(things)), int(len(things) * share))
        self.replaced += len(places)
        return places

    def manifests(self) -> bytes:
        """The pods as ``kubectl get pods`` lists them."""
        return json.dumps({"kind": "PodList", "items": self._holders + self._servers}).encode()

    def page(self, path: str) -> bytes:
        """The page of ``/node/N`` or ``/server/N``."""
        _, kind, number = path.split("/")
        if kind == "server":
            return self._server_page(int(number))
        first = int(number) * GPUS_PER_NODE
        tick = next(self._serial)
        slots = range(first, first + GPUS_PER_NODE)
        return b"".join(self._part(slot, number).render(tick) for slot in slots)

    def _part(self, slot: int, node: str) -> Page:
        part = self._pages.get(slot)
        if part is None:
            meta = self._holders[slot]["metadata"]
            device = Device(slot, self._uuids[slot], meta["name"])
            part = self._pages[slot] = Page(f"node-{node}", meta["namespace"], [device])
        return part

    def _server_page(self, number: int) -> bytes:
        serial = next(self._serial)
        return "".join(
            f'vllm:num_requests_waiting{{model_name="m-{serial}",engine="{engine}",'
            f'adapter="lora-{serial}"}} {number}\n'
            for engine in range(2)
        ).encode()

    def _pod(self, name: str, serial: int, node: int, **more: Any) -> dict[str, Any]:
        resources = {"resources": more["resources"]} if "resources" in more else {}
        return {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": f"team-{serial % self._size.namespaces}",
                "uid": f"uid-{serial}",
                "labels": {"app": f"app-{serial % 20}", "pod-template-hash": f"h{serial}"},
                "annotations": more.get("annotations", {}),
            },
            "spec": {"nodeName": f"node-{node}", "containers": [{"name": "main"} | resources]},
            "status": {
                "phase": "Running",
                "podIP": "127.0.0.1",
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def churn(run: Run) -> Table:
    """A small cluster of which a tenth changes at once, and a plot."""
    return _run(run, CHURN)


def soak(run: Run) -> Table:
    """A large cluster in which hundreds of objects change in a minute, and a plot."""
    return _run(run, SOAK._replace(minutes=float(os.environ.get("SOAK_MINUTES", SOAK.minutes))))


def _run(run: Run, size: Size) -> Table:
    if run.quick:
        size = size._replace(minutes=0.5, nodes=min(size.nodes, CHURN.nodes))
    samples, requests, replaced = _measure(run.folder, size)
    if not run.quick:
        draw(samples, Path(__file__).with_name(f"{size.name}.png"))
    return table(size, samples, requests, replaced)


def _measure(folder: Path, size: Size) -> tuple[list[Sample], int, int]:
    pki = issue(folder)
    with _exporters(size) as (cluster, port):
        pods = folder / "pods.json"
        pods.write_bytes(cluster.manifests())
        with _adapter(folder, pki, pods, port, size) as (child, listener):
            stop, counted = threading.Event(), [0]
            work = (pki, listener, stop, counted, size)
            users = threading.Thread(target=_ask, args=work, daemon=True)
            users.start()
            samples: list[Sample] = []
            begun = time.monotonic()
            while (spent := time.monotonic() - begun) < size.minutes * 60:
                samples.append(Sample(spent / 60, child.usage().rss))
                time.sleep(size.step)
                child.check()
                if not users.is_alive():
                    raise RuntimeError("the client ended: see its traceback above")
                cluster.step()
                fresh = pods.with_suffix(".new")
                fresh.write_bytes(cluster.manifests())
                fresh.replace(pods)
            stop.set()
            users.join(60)
    return samples, counted[0], cluster.replaced


@contextmanager
def _exporters(size: Size) -> Iterator[tuple[Cluster, int]]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = cluster.page(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A scrape that is given up on is the client's affair."""

    server = Server(("127.0.0.1", 0), Handler)
    cluster = Cluster(server.server_port, size)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield cluster, server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _adapter(
    folder: Path, pki: Pki, pods: Path, port: int, size: Size
) -> Iterator[tuple[Child, int]]:
    listener = free_port()
    targets = [
        {"url": f"http://127.0.0.1:{port}/node/{node}", "node": f"node-{node}"}
        for node in range(size.nodes)
    ]
    config = {
        "server": {
            "host": "127.0.0.1",
            "port": listener,
            "cert_file": str(pki.cert),
            "key_file": str(pki.key),
        },
        "authentication": {
            "configmap": False,
            "requestheader_ca_file": str(pki.ca),
            "requestheader_allowed_names": [FRONT_PROXY],
        },
        "keda": {"enabled": False},
        "cluster": {"pods_file": str(pods)},
        "source": {"scrape": {"discover": False, "targets": targets}},
    }
    file = folder / "serve.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [PYTHON, "-m", "adapter", "serve", "--config", str(file)]
    with run_child("adapter", command, folder) as child:
        wait_until(child, "port", lambda: is_listening(listener))
        yield child, listener


def _ask(pki: Pki, port: int, stop: threading.Event, counted: list[int], size: Size) -> None:
    """Ask as a new user with a new selector each time, at most 50 times a second.

    The run is about memory: a machine that is busy with other work may answer late.
    """
    with httpx.Client(
        base_url=f"https://localhost:{port}", verify=pki.client_context(), timeout=300
    ) as client:
        while not stop.wait(0.02):
            number = counted[0]
            team = number % size.namespaces
            answer = client.get(
                f"{_GROUP}/namespaces/team-{team}/pods/*/{_METRICS[number % len(_METRICS)]}",
                params={
                    "labelSelector": f"app=app-{number % 20},pod-template-hash!=h{number}",
                    "metricLabelSelector": f"model!=m{number}",
                },
                headers={
                    "X-Remote-User": f"user-{number}",
                    "X-Remote-Group": "system:masters",
                    "X-Remote-Extra-Scopes": f"s{number}",
                    "Audit-ID": f"audit-{number}",
                },
            )
            if answer.status_code not in (200, 404):  # a pod may be too new to have a value
                raise RuntimeError(f"status {answer.status_code}: {answer.text[:300]}")
            counted[0] += 1


def growth(samples: list[Sample]) -> float:
    """By which share the memory grew from the end of the first quarter to the end.

    The quarter is of an hour if the run is longer than an hour.
    """
    length = max(1, len(samples) // 10)
    early_end = min(samples[-1].minute / 4, 15.0)
    quarter = max(length, sum(1 for sample in samples if sample.minute <= early_end))
    early = median(sample.rss for sample in samples[quarter - length : quarter])
    late = median(sample.rss for sample in samples[-length:])
    return late / early - 1


def table(size: Size, samples: list[Sample], requests: int, replaced: int) -> Table:
    """A row for each quarter of the time."""
    end = samples[-1].minute
    rows = []
    for quarter in range(5):
        nearest = min(samples, key=lambda sample: abs(sample.minute - end * quarter / 4))
        rows.append((f"{nearest.minute:.1f}", f"{nearest.rss / 1e6:.0f}"))
    grown = growth(samples)
    return Table(
        ("minute", "RSS MB"),
        tuple(rows),
        (
            Goal(
                "growth of at most 5 % after the first quarter",
                f"{grown:+.1%}, peak {max(sample.rss for sample in samples) / 1e6:.0f} MB",
                grown <= 0.05,
            ),
        ),
        (
            f"{size.nodes * GPUS_PER_NODE:,} GPU pods and {size.servers} inference servers.",
            f"{replaced:,} pods and devices were replaced.",
            f"{requests:,} requests, each from a new user with new selectors.",
        ),
    )


def draw(samples: list[Sample], path: Path) -> None:
    """Write the memory over time as a PNG."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - its import takes half a second

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([sample.minute for sample in samples], [sample.rss / 1e6 for sample in samples])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minutes of churn")
    axes.set_ylabel("resident memory of serve, MB")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
