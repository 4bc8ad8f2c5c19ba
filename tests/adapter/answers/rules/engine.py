"""A store on loopback that answers as a test decides, and counts what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl

from tests.adapter.pageserver import PageServer

Row = tuple[Mapping[str, str], str]


def vector(*rows: Row, time: float = 1_700_000_000.0, **more: object) -> bytes:
    """Return an answer with these label sets and numbers."""
    result = [{"metric": dict(labels), "value": [time, value]} for labels, value in rows]
    data = {"resultType": "vector", "result": result}
    return json.dumps({"status": "success", "data": data, **more}).encode()


class Engine:
    """Answers ``/api/v1/query`` with ``answer`` and ``/api/v1/series`` with ``series``."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """Queries, in order."""
        self.selectors: list[str] = []
        self.answer: Callable[[str], tuple[int, bytes]] = lambda query: (200, vector())
        self.series: dict[str, Sequence[Mapping[str, str]]] = {}
        self.series_status = 200
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                form = dict(
                    parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode())
                )
                status, body = (
                    engine.listed(form["match[]"])
                    if self.path.endswith("/series")
                    else engine.queried(form["query"])
                )
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self._server = PageServer(Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def queried(self, query: str) -> tuple[int, bytes]:
        self.asked.append(query)
        return self.answer(query)

    def listed(self, selector: str) -> tuple[int, bytes]:
        self.selectors.append(selector)
        rows = list(self.series.get(selector, ()))
        return self.series_status, json.dumps({"status": "success", "data": rows}).encode()

    def close(self) -> None:
        self._server.close()


@contextmanager
def running() -> Iterator[Engine]:
    engine = Engine()
    try:
        yield engine
    finally:
        engine.close()
