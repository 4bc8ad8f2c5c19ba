"""A simulated API server with the lists that ``ui`` reads, for clusters of any size.

``python -m load.uicluster --gpus 10000 --folder DIR`` listens on loopback with TLS, writes a
kubeconfig to ``DIR/kubeconfig`` once it answers, and gives each reading of a list other values.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import ssl
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from adapter.answers.view.gpunodes import GPUNODES
from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.tools.client.errors import VIEW
from load.page import GPUS_PER_NODE
from load.pki import issue
from tests.adapter.tools.ui.cluster import HPAS, columns, gpu, hpa, node, pod, stuck, workload

Json = dict[str, Any]
Pages = Sequence[bytes]

PAGE: Final = 500
VERSIONS: Final = 6
"""Versions of each list; readings take them in turn."""
MODELS: Final = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L4")
_STUCK: Final = 40
"""One of so many HPAs is stuck, all for one cause."""
_ZONES: Final = ("eu-1a", "eu-1b", "eu-1c")


class SimulatedCluster:
    """The pages of each list, made once.

    Args:
        gpus: number of GPUs; each belongs to a pod, and each fifth pod has an HPA.
    """

    def __init__(self, gpus: int) -> None:
        self._chance = random.Random(5)
        self._turns: dict[str, Iterator[int]] = {}
        self._lists: dict[str, list[Pages]] = {}
        numbers = range(gpus)
        services = range(max(1, gpus // 5))
        for version in range(VERSIONS):
            self._take(f"{VIEW}/gpus", [self._gpu(n) for n in numbers], columns(GPUS), version)
            self._take(
                f"{VIEW}/gpupods", [self._pod(n) for n in numbers], columns(GPUPODS), version
            )
            machines = [node(f"node-{n:04}") for n in range(-(-gpus // GPUS_PER_NODE))]
            self._take(f"{VIEW}/gpunodes", machines, columns(GPUNODES), version)
            rows = [self._workload(n) for n in services]
            self._take(f"{VIEW}/gpuworkloads", rows, columns(GPUWORKLOADS), version)
            self._take(HPAS, [self._hpa(n) for n in services], None, version)

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        """Return a page of a list, or an empty list of events."""
        versions = self._lists.get(path)
        if versions is None:
            return _EMPTY if path.endswith("/events") else None
        token = query.get("continue", [""])[0]
        version, _, page = token.partition(":")
        turn = int(version) if token else next(self._turns[path]) % VERSIONS
        return versions[turn][int(page or 0)]

    def _take(self, path: str, rows: list[Json], names: Sequence[str] | None, version: int) -> None:
        self._turns.setdefault(path, itertools.count())
        starts = range(0, len(rows), PAGE)
        pages = []
        for number, start in enumerate(starts):
            token = f"{version}:{number + 1}" if start + PAGE < len(rows) else ""
            pages.append(_page(rows[start : start + PAGE], names, token))
        self._lists.setdefault(path, []).append(pages)

    def _gpu(self, number: int) -> Json:
        node, place = divmod(number, GPUS_PER_NODE)
        pool = node % 6
        model = MODELS[pool % 3]
        labels = {
            "karpenter.sh/nodepool": f"pool-{'abcdef'[pool]}",
            "topology.kubernetes.io/zone": _ZONES[node % 3],
            "node.kubernetes.io/instance-type": f"gpu-{pool}",
            "vendor": "nvidia",
        }
        blind = number % 50 == 7
        idle = number % 40 == 3
        share = self._chance.random()
        cells: Json = {
            "Model": model,
            "Util": None if blind else "0%" if idle else f"{self._chance.randrange(1, 101)}%",
            "Mem": None if blind else f"{80 * share:.1f}/80Gi",
            "Pods": _pod_name(number),
            "Age": None if blind else f"{self._chance.randrange(1, 9)}s",
            "Power": f"{self._chance.randrange(90, 690)}W",
            "Temp": f"{self._chance.randrange(30, 80)}C",
            "Idle-Since": "2h5m" if idle else None,
        }
        name = f"node-{node:04}.gpu{place}"
        return gpu(name, f"node-{node:04}", str(place), labels=labels, **cells)

    def _pod(self, number: int) -> Json:
        namespace, _, name = _pod_name(number).partition("/")
        node, place = divmod(number, GPUS_PER_NODE)
        blind = number % 50 == 7
        return pod(
            name,
            namespace,
            Util=None if blind else f"{self._chance.randrange(0, 101)}%",
            Mem=None if blind else f"{self._chance.randrange(1, 80)}Gi",
            Age=None if blind else f"{self._chance.randrange(1, 9)}s",
            Why_Not="exporter_names_no_pod" if blind else None,
            Node=f"node-{node:04}",
            Device_IDs=f"GPU-node-{node:04}.gpu{place}",
        )

    def _workload(self, number: int) -> Json:
        util = f"{self._chance.randrange(1, 101)}%"
        return workload(f"deployment.svc-{number}", f"team-{number % 40}", Util=util)

    def _hpa(self, number: int) -> Json:
        manifest = hpa(f"svc-{number}", f"team-{number % 40}")
        now = {"averageValue": str(self._chance.randrange(20, 95))}
        manifest["status"]["currentMetrics"][0]["pods"]["current"] = now
        if number % _STUCK == 0:
            manifest["status"]["conditions"] = stuck(
                f"2 of 5 pods have no value: svc-{number}-1 (exporter_down), "
                f"svc-{number}-4 (exporter_down)"
            )
        return manifest


def _pod_name(number: int) -> str:
    return f"team-{number // 5 % 40}/svc-{number // 5}-{number % 5}"


def _page(rows: Sequence[Json], names: Sequence[str] | None, token: str) -> bytes:
    metadata = {"continue": token} if token else {}
    if names is None:
        return json.dumps({"kind": "List", "metadata": metadata, "items": rows}).encode()
    definitions = [{"name": name, "type": "string", "priority": 0} for name in names]
    table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return json.dumps({**table, "columnDefinitions": definitions, "rows": rows}).encode()


_EMPTY: Final = _page([], None, "")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that breaks off a connection is not a failure."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, cluster: SimulatedCluster, *given: Any) -> None:
        self._cluster = cluster
        super().__init__(*given)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        body = self._cluster.answer(unquote(parts.path), parse_qs(parts.query))
        self._send(404 if body is None else 200, body or _MISSING)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._send(201, b'{"status":{"userInfo":{"username":"bench"}}}')

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


_MISSING: Final = b'{"kind":"Status","status":"Failure","reason":"NotFound","code":404}'


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    server = _Server(("127.0.0.1", 0), partial(_Handler, SimulatedCluster(arguments.gpus)))
    pki = issue(arguments.folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.cert, pki.key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = {"server": f"https://localhost:{server.server_port}"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [
            {"name": "bench", "cluster": {**address, "certificate-authority": str(pki.ca)}}
        ],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    written = arguments.folder / "kubeconfig.new"
    written.write_text(yaml.safe_dump(content))
    written.rename(arguments.folder / "kubeconfig")
    thread.join()


if __name__ == "__main__":
    main()
