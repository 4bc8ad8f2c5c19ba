"""The real `serve` as a process, an exporter for it to scrape, and a front proxy's client."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import trustme
import yaml

from tests.adapter.commandline import clean_environ
from tests.adapter.pageserver import PageServer

PAGE = (
    'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-1",modelName="T4",container="c",'
    'namespace="ns",pod="p0"}} {value}\n'
)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p0", "namespace": "ns", "uid": "u0", "labels": {"app": "inf"}},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    },
}
PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/%2A/DCGM_FI_DEV_GPU_UTIL"
USER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"


class Exporter:
    """A page that tests set at will; ``status`` other than 200 fails the scrape."""

    def __init__(self) -> None:
        self.page = PAGE.format(value=80).encode()
        self.status = 200
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(exporter.status)
                self.send_header("Content-Length", str(len(exporter.page)))
                self.end_headers()
                self.wfile.write(exporter.page)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = PageServer(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/metrics"

    def close(self) -> None:
        self._server.close()


@dataclass
class Lab:
    """A folder with certificates, pods and a configuration."""

    folder: Path
    exporter: Exporter
    config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        authority = trustme.CA()
        client = authority.issue_cert(common_name="front-proxy-client")
        authority.cert_pem.write_to_path(str(self.folder / "proxy-ca.crt"))
        client.private_key_pem.write_to_path(str(self.folder / "proxy.key"))
        client.cert_chain_pems[0].write_to_path(str(self.folder / "proxy.crt"))
        (self.folder / "pods.yaml").write_text(yaml.safe_dump(POD))
        self.config = {
            "server": {
                "host": "127.0.0.1",
                "port": 0,
                "cert_dir": str(self.folder / "certs"),
                "drain": 0,
                "probe_port": 0,
            },
            "authentication": {
                "requestheader_ca_file": str(self.folder / "proxy-ca.crt"),
                "requestheader_allowed_names": ["front-proxy-client"],
            },
            "authorization": {"allow_users": [USER]},
            "cluster": {"pods_file": str(self.folder / "pods.yaml")},
            "source": {
                "scrape": {
                    "interval": 0.2,
                    "targets": [{"url": self.exporter.url, "node": "n1"}],
                }
            },
            "keda": {"host": "127.0.0.1", "port": 0},
            "log": {"format": "json"},
        }

    @property
    def file(self) -> Path:
        return self.folder / "config.yaml"

    def write(self) -> Path:
        self.file.write_text(yaml.safe_dump(self.config))
        return self.file

    @contextmanager
    def serving(self, *arguments: str, **environ: str) -> Iterator[Serving]:
        """`serve` on this configuration; ended, and its log read, on leaving."""
        process = start("serve", "--config", str(self.write()), *arguments, **environ)
        serving = Serving(process, self.folder)
        try:
            serving.wait_for("listening")
            yield serving
        finally:
            if process.poll() is None:
                process.terminate()
            serving.finish()


class Serving:
    """A running `serve`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.log: list[dict[str, Any]] = []
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._arrived:
                entry = json.loads(line) if line.startswith("{") else {"event": line.rstrip()}
                self.log.append(entry)
                self._arrived.notify_all()
        with self._arrived:
            self.log.append({"event": "end of log"})
            self._arrived.notify_all()

    def wait_for(self, event: str, seconds: float = 120, *, since: int = 0) -> dict[str, Any]:
        """The first log entry of that event, of those from ``since`` on."""

        def found() -> dict[str, Any] | None:
            return next((entry for entry in self.log[since:] if entry["event"] == event), None)

        with self._arrived:
            self._arrived.wait_for(
                lambda: found() or self.log[-1:] == [{"event": "end of log"}], seconds
            )
            entry = found()
        assert entry is not None, f"never logged {event!r}: {self.log}"
        return entry

    def finish(self, seconds: float = 120) -> int:
        """Wait for the end; the exit code."""
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def client(self, user: str | None = USER) -> httpx.Client:
        """As kube-apiserver's proxy connects for ``user``; None sends no certificate."""
        port = self.wait_for("listening")["port"]
        context = ssl.create_default_context(cafile=self.folder / "certs" / "ca.crt")
        headers: Mapping[str, str] = {}
        if user is not None:
            context.load_cert_chain(self.folder / "proxy.crt", self.folder / "proxy.key")
            headers = {"X-Remote-User": user, "X-Remote-Group": "system:authenticated"}
        return httpx.Client(
            base_url=f"https://localhost:{port}",
            verify=context,
            headers=headers,
            trust_env=False,
            timeout=60,
        )


def eventually(probe: Callable[[], bool], seconds: float = 90) -> None:
    """Wait until the probe holds; other processes decide when."""
    deadline = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < deadline, f"never: {probe}"
        time.sleep(0.05)


def values(client: httpx.Client) -> list[str]:
    """The values served of the exporter's page; none before the pods have been listed."""
    answer = client.get(PODS)
    if answer.status_code == 503:
        return []
    return [item["value"] for item in answer.raise_for_status().json()["items"]]


def ready(client: httpx.Client) -> bool:
    return client.get("/readyz").status_code == 200


def start(*arguments: str, **environ: str) -> subprocess.Popen[str]:
    """The command line as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "adapter", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**clean_environ(), **environ},
    )


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command line, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "adapter", *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**clean_environ(), **environ},
    )
