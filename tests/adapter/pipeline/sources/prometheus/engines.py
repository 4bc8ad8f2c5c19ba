"""Engines with the query API of Prometheus, as processes that scrape pages served here."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urljoin

import yaml

from tests.adapter.pageserver import PageServer
from tests.needs import PROMETHEUS, VICTORIAMETRICS

_ATTEMPTS = 5
PROTOBUF = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)
ENGINES = {program.name: program for program in (PROMETHEUS, VICTORIAMETRICS)}
_PREFIXES = {"prometheus": "/prom", "victoria-metrics": "/prometheus"}


class _PortTakenError(Exception):
    """Another process took the port between the choice and the start."""


@dataclass
class Pages:
    """Path -> page, served on loopback; a path without a page is 404."""

    texts: dict[str, str] = field(default_factory=dict)
    messages: dict[str, bytes] = field(default_factory=dict)
    """Path -> page in protobuf."""
    port: int = 0


@contextmanager
def serving(pages: Pages) -> Iterator[Pages]:
    """Serve the pages within the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text, message = pages.texts.get(self.path), pages.messages.get(self.path)
            body = (text or "").encode() if message is None else message
            self.send_response(404 if text is None and message is None else 200)
            kind = "text/plain; version=0.0.4" if message is None else PROTOBUF
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = PageServer(Handler)
    pages.port = server.server_port
    try:
        yield pages
    finally:
        server.close()


def scrape_config(port: int, jobs: Sequence[Mapping[str, object]]) -> str:
    """A configuration that both engines read; a job's ``labels`` are its target's."""
    made = []
    for job in jobs:
        rest = {key: value for key, value in job.items() if key != "labels"}
        target = {"targets": [f"127.0.0.1:{port}"], "labels": job.get("labels", {})}
        made.append({**rest, "static_configs": [target]})
    # VictoriaMetrics scrapes a target at most once a second.
    timing = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    return yaml.safe_dump({"global": timing, "scrape_configs": made})


@contextmanager
def engine(name: str, folder: Path, config: str, *more: str) -> Iterator[str]:
    """Run an engine, with more arguments; yields the base URL of its query API."""
    program = ENGINES[name].path()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scrape.yml"
    file.write_text(config)
    process, url = _started(program, name, file, folder, more)
    ended = threading.Event()
    flusher = threading.Thread(target=_flush, args=(urljoin(url, "/internal/force_flush"), ended))
    if name == "victoria-metrics":
        flusher.start()
    try:
        yield url
    finally:
        ended.set()
        if flusher.ident is not None:
            flusher.join()
        process.terminate()
        process.wait(120)


def _flush(url: str, ended: threading.Event) -> None:
    """Make visible what VictoriaMetrics scraped, which by itself takes it up to 10 seconds."""
    while not ended.wait(0.5):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()


def _started(
    program: str, name: str, file: Path, folder: Path, more: Sequence[str]
) -> tuple[subprocess.Popen[bytes], str]:
    """The running engine and its URL; a port that another process took meanwhile is replaced."""
    log = folder / "stderr"
    for _ in range(_ATTEMPTS):
        port = _free_port()
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [program, *_arguments(name, file, folder, port), *more],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        url = f"http://127.0.0.1:{port}{_PREFIXES[name]}"
        try:
            _wait_ready(url, process, log)
        except _PortTakenError:
            continue
        except BaseException:
            process.kill()
            process.wait(120)
            raise
        return process, url
    raise AssertionError(f"{name} found no free port in {_ATTEMPTS} attempts")


def _arguments(name: str, file: Path, folder: Path, port: int) -> list[str]:
    if name == "prometheus":
        return [
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.route-prefix=/prom",
            "--log.level=error",
        ]
    return [
        f"-promscrape.config={file}",
        f"-storageDataPath={folder / 'data'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-search.latencyOffset=0s",
        "-loggerLevel=ERROR",
    ]


def series(url: str, query: str) -> int:
    """The number of series of a query; -1 without an answer."""
    asked = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{asked}", timeout=5) as answer:
            return len(json.load(answer)["data"]["result"])
    except (urllib.error.URLError, OSError):
        return -1


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 180
    while series(url, "up") < 0:
        if process.poll() is not None:
            if "address already in use" in log.read_text():
                raise _PortTakenError
            raise AssertionError(log.read_text())
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
