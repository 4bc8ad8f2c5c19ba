"""Cases made after public reports, through the real `serve`, asked over HTTPS as an HPA asks.

They lie outside of the clone, and are read where they lie. Each names the report that it is made
after. The same kinds are in the tests of the project, with pages of its own.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.adapter.pageserver import PageServer
from tests.adapter.serving import Exporter, Lab
from tests.needs import WILD, folder, needs

pytestmark = needs(WILD)
ABSENT = "ABSENT"
VALUES = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/%2A/{}"
_PORT = "gpu-metrics-adapter.io/port"


def _cases() -> list[Path]:
    wild = folder("wild")
    every = sorted(path.parent for path in wild.glob("*/expected.json")) if wild else []
    return every or [Path("none")]  # one test that is skipped, if there are none


@contextmanager
def _serving(page: str) -> Iterator[int]:
    """Serve a page or an answer, with the present time where it has a placeholder."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now = time.time()
            text = page.replace("{{NOW_S}}", f"{now:.3f}").replace("{{NOW_MS}}", f"{now:.0f}000")
            self.send_response(200)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = PageServer(Handler)
    try:
        yield server.server_port
    finally:
        server.close()


def _local_ports(pods: Mapping[str, Any]) -> list[int]:
    """The ports of the pods that this machine plays, in the order of their pages."""
    ports = []
    for pod in pods["items"]:
        if pod.get("status", {}).get("podIP") != "127.0.0.1":
            continue
        asked = pod["metadata"].get("annotations", {}).get(_PORT)
        containers = pod["spec"]["containers"]
        named = [
            port["containerPort"] for container in containers for port in container.get("ports", ())
        ]
        ports.append(int(asked or named[0]))
    return ports


@pytest.fixture
def client(case: Path, tmp_path: Path) -> Iterator[httpx.Client]:
    settings = json.loads((case / "expected.json").read_text())["settings"]
    pods = (case / "pods.json").read_text()
    pages = [path.read_text() for path in sorted(case.glob("page*_0_*"))]
    with ExitStack() as stack:
        exporter = Exporter()
        stack.callback(exporter.close)
        lab = Lab(tmp_path, exporter)
        if settings["mode"] == "prometheus":
            port = stack.enter_context(_serving(pages[0]))
            store = {"url": f"http://127.0.0.1:{port}", "interval": 1}
            lab.config["source"] = {"kind": "prometheus", "prometheus": store}
        else:
            for page, old in zip(pages, _local_ports(json.loads(pods)), strict=False):
                port = stack.enter_context(_serving(page))
                pods = re.sub(rf"\b{old}\b", str(port), pods)
            lab.config["source"] = {"scrape": {"interval": 0.5, "targets": []}}
        lab.config["sharing"] = {"policy": settings["sharing"]}
        (tmp_path / "pods.yaml").write_text(pods)
        serving = stack.enter_context(lab.serving())
        yield stack.enter_context(serving.client())


def _served(client: httpx.Client, metric: str, pod: str) -> float | str:
    namespace, _, name = pod.partition("/")
    answer = client.get(VALUES.format(namespace, metric))
    items = answer.json().get("items", ()) if answer.status_code == 200 else ()
    values = [item["value"] for item in items if item["describedObject"]["name"] == name]
    return _number(values[0]) if values else ABSENT


def _number(quantity: str) -> float:
    if quantity.endswith("m"):
        return float(quantity[:-1]) / 1000
    thousands = "kMGTPE".find(quantity[-1]) + 1
    return float(quantity[:-1]) * 1000**thousands if thousands else float(quantity)


def _right(expected: Mapping[str, Any], found: float | str) -> bool:
    accepted = expected.get("accept") or [ABSENT if expected.get("absent") else expected["value"]]
    return any(
        found == one if isinstance(one, str) or isinstance(found, str) else
        abs(found - one) <= max(expected.get("tol", 0.01), 1e-9 * abs(one))
        for one in accepted
    )  # fmt: skip


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case.name)
def test_a_report_gives_its_value_or_none(case: Path, client: httpx.Client) -> None:
    expected = json.loads((case / "expected.json").read_text())["expect"]
    deadline = time.monotonic() + 12
    ready = 0.0
    while True:
        values = [_served(client, row["metric"], row["pod"]) for row in expected]
        right = all(map(_right, expected, values))
        ready = ready or (client.get("/readyz").status_code == 200) * time.monotonic()
        # What is absent must stay so once all was read.
        if (right and ready and time.monotonic() > ready + 2) or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    wrong = [
        (row["metric"], row["pod"], value, row["why"])
        for row, value in zip(expected, values, strict=True)
        if not _right(row, value)
    ]
    assert wrong == []
