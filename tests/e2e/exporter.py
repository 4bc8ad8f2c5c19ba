"""A dcgm-exporter of a simulated node: real HTTP, and a page that a test controls."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.e2e.badpages import BadPage, misbehave
from tests.e2e.kubelet import RunningPod
from tests.e2e.process import free_port

GPUS_PER_NODE = 8
MEMORY = 81920
"""MiB of every GPU."""


class Health(Enum):
    """The behaviour of the exporter at a scrape."""

    WELL = "the page"
    BROKEN = "500"
    EMPTY = "an empty page"
    GARBAGE = "text that is not a page"
    SENTINEL = "the page, with the values by which DCGM says that it has none"


class Load:
    """Work shared by the pods of one ``app`` in a namespace. Each GPU is busy with its part."""

    def __init__(self) -> None:
        self._demand: dict[str, float] = {}
        self._expected: dict[str, int] = {}
        self._pinned: dict[tuple[str, str], float] = {}
        self.used: Callable[[RunningPod], int] = lambda _: MEMORY // 4
        """MiB of its GPU's memory that a pod uses."""

    def pin(self, namespace: str, app: str, percent: float) -> None:
        """Utilisation of each pod with this ``app`` label, independent of the other pods."""
        self._pinned[namespace, app] = percent

    def set(self, namespace: str, demand: float, *, expected: int = 0) -> None:
        """Set the demand in percent of one GPU: 280 keeps four pods at 70.

        Until ``expected`` pods run, each has its final share. Otherwise, the first pod would
        briefly be busier, and an HPA would see it.
        """
        self._demand[namespace] = demand
        self._expected[namespace] = expected

    def percent(self, pod: RunningPod, pods: list[RunningPod]) -> float:
        """Return the utilisation of a pod's GPUs, 0 to 100; 0 without an ``app``."""
        if not _app(pod)[1]:
            return 0.0
        pinned = self._pinned.get(_app(pod))
        if pinned is not None:
            return pinned
        sharing = sum(_app(other) == _app(pod) and other.gpus > 0 for other in pods)
        if sharing >= self._expected.get(pod.namespace, 0):
            self._expected[pod.namespace] = 0
        among = max(sharing, self._expected[pod.namespace], 1)
        return min(100.0, self._demand.get(pod.namespace, 0.0) / among)


def _app(pod: RunningPod) -> tuple[str, str]:
    return pod.namespace, dict(pod.labels).get("app", "")


class Exporter:
    """Serves ``/metrics`` of one node on loopback.

    Args:
        port: 0 takes a free one.
    """

    def __init__(
        self,
        node: str,
        load: Load,
        pods: Callable[[], list[RunningPod]],
        *,
        gpus: int = GPUS_PER_NODE,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.node = node
        self.host = host
        self.port = port or free_port()
        self.health = Health.WELL
        self.bad: BadPage | None = None
        """How its page fails; None if it works."""
        self._load, self._pods = load, pods
        self._server: ThreadingHTTPServer | None = None
        self._slots: list[str | None] = [None] * gpus
        self._slots_lock = threading.Lock()

    def start(self) -> None:
        """Listen. It may be called again after ``stop``."""
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if exporter._server is None:
                    # The kept connections of a dead exporter are dead too.
                    self.close_connection = True
                    return
                if exporter.health is Health.BROKEN:
                    self.send_error(500)
                    return
                # This order prevents that a bad page is sent as a good one.
                bad = exporter.bad
                body = exporter.page().encode()
                if bad is not None:
                    misbehave(bad, self, body, lambda: exporter.bad is bad and exporter.listens)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                with contextlib.suppress(OSError):  # the client has disconnected
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                pass

        server = ThreadingHTTPServer((self.host, self.port), Handler)
        server.daemon_threads = True
        # The argument is the poll interval, which is how long stop() may take.
        target, name = server.serve_forever, f"exporter {self.node}"
        self._server = server
        threading.Thread(target=target, args=(0.05,), name=name, daemon=True).start()

    @property
    def listens(self) -> bool:
        """Whether it is started and not stopped."""
        return self._server is not None

    def stop(self) -> None:
        """Stop: connections are refused from now on."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.shutdown()
        server.server_close()

    def page(self) -> str:
        """Return the page in the format of dcgm-exporter 3.3: free GPUs have no pod labels."""
        if self.health is Health.EMPTY:
            return ""
        if self.health is Health.GARBAGE:
            return "<html><body>proxy error</body></html>\n\x00\x01 not a metric {{{\n"
        everybody = self._pods()
        holders = self._holders([pod for pod in everybody if pod.node == self.node])
        lines = []
        for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"):
            lines += [f"# HELP {name} simulated", f"# TYPE {name} gauge"]
            for index in range(len(holders)):
                pod = holders[index]
                value = self._value(name, pod, everybody)
                lines.append(f"{name}{{{self._labels(index, pod)}}} {value}")
        return "\n".join(lines) + "\n"

    def _holders(self, pods: list[RunningPod]) -> list[RunningPod | None]:
        """Assign GPUs to every pod, which keeps them while it runs."""
        by_uid = {pod.uid: pod for pod in pods}
        with self._slots_lock:
            self._slots = [uid if uid in by_uid else None for uid in self._slots]
            for pod in pods:
                for _ in range(pod.gpus - self._slots.count(pod.uid)):
                    if None in self._slots:
                        self._slots[self._slots.index(None)] = pod.uid
            return [by_uid[uid] if uid else None for uid in self._slots]

    def _labels(self, index: int, pod: RunningPod | None) -> str:
        labels = {
            "gpu": str(index),
            "UUID": f"GPU-{self.node}-{index}",
            "pci_bus_id": f"00000000:0{index}:00.0",
            "device": f"nvidia{index}",
            "modelName": "NVIDIA A100-SXM4-80GB",
            "Hostname": self.node,
        }
        if pod is not None:
            labels |= {"container": "main", "namespace": pod.namespace, "pod": pod.name}
        return ",".join(f'{key}="{value}"' for key, value in labels.items())

    def _value(self, name: str, pod: RunningPod | None, everybody: list[RunningPod]) -> str:
        if self.health is Health.SENTINEL:
            return "9223372036854775794"
        if name == "DCGM_FI_DEV_GPU_UTIL":
            return f"{self._load.percent(pod, everybody) if pod else 0.0:.0f}"
        used = self._load.used(pod) if pod else MEMORY // 4
        return str(used if name == "DCGM_FI_DEV_FB_USED" else MEMORY - used)
