"""An API server on loopback that answers what a test sets, and a kubeconfig for it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

Json = dict[str, Any]


class ApiServer(ThreadingHTTPServer):
    """Answers by path; a path without an answer is 404 as the API server writes it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Any] = {}
        """Path without query -> object, list of objects, or (status, body)."""
        self.tables: dict[str, tuple[Sequence[str], list[Json]]] = {}
        """Path -> columns, and rows as :func:`table_row` returns them."""
        self.redirects: dict[str, str] = {}
        """Path -> Location of a 302."""
        self.asked: list[str] = []
        """``METHOD path?query`` of each request, decoded."""
        self.headers: list[Message] = []
        """Of each request."""
        self.always: tuple[int, Any] | None = None
        """Status and body of every answer."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves before the answer is not an error of the server."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(
        self, path: str, query: Mapping[str, list[str]], accept: str = ""
    ) -> tuple[int, Any]:
        """Return status and body."""
        answer = self.answers.get(path)
        if "as=Table" in accept and path in self.tables and not isinstance(answer, tuple):
            return 200, _table(*self.tables[path], query)
        if isinstance(answer, tuple):
            status, body = answer
            return status, body
        if answer is not None:
            return 200, _page(answer, query) if isinstance(answer, list) else answer
        parent, _, name = path.rpartition("/")
        if isinstance(rows := self.answers.get(parent), list):
            for row in rows:
                if row["metadata"]["name"] == name:
                    return 200, row
            text = f'{parent.rpartition("/")[2]} "{name}" not found'
            return 404, status_of(404, text, "NotFound")
        return 404, status_of(404, "the server could not find the requested resource", "NotFound")


def table_row(
    name: str, cells: Sequence[Any], namespace: str = "", labels: Mapping[str, str] | None = None
) -> Json:
    """A row of a table; None is a missing value. The name is the first cell."""
    meta = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    shown = ["<none>" if cell is None else cell for cell in (name, *cells)]
    return {"cells": shown, "object": {"kind": "PartialObjectMetadata", "metadata": meta}}


def _table(columns: Sequence[str], rows: list[Json], query: Mapping[str, list[str]]) -> Json:
    page = _page([{"metadata": row["object"]["metadata"], "row": row} for row in rows], query)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": page["metadata"],
        "columnDefinitions": [{"name": name, "type": "string", "priority": 0} for name in columns],
        "rows": [item["row"] for item in page["items"]],
    }


def _page(rows: list[Json], query: Mapping[str, list[str]]) -> Json:
    """A page of a list; fields and labels select as far as the tools use them."""
    for term in query.get("fieldSelector", [""])[0].split(","):
        key, _, value = term.partition("=")
        if key.startswith(("metadata.", "involvedObject.")):
            rows = [row for row in rows if _at(row, key) == value]
        elif key:
            rows = [row for row in rows if str(_at(row, key)).lower() == value.lower()]
    for term in query.get("labelSelector", [""])[0].split(","):
        key, _, value = term.partition("=")
        if key:
            rows = [r for r in rows if (r["metadata"].get("labels") or {}).get(key) == value]
    start = int(query.get("continue", ["0"])[0])
    limit = int(query.get("limit", [str(len(rows) + 1)])[0])
    meta = {"continue": str(start + limit)} if start + limit < len(rows) else {}
    return {"kind": "List", "metadata": meta, "items": rows[start : start + limit]}


def _at(row: Any, key: str) -> Any:
    for part in key.split("."):
        row = row.get(part) if isinstance(row, dict) else None
    return row


def status_of(code: int, message: str, reason: str = "") -> Json:
    """Return a Status as the API server writes it."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def forbidden(user: str, verb: str, resource: str, group: str, namespace: str) -> tuple[int, Json]:
    """Return RBAC's 403."""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    text = (
        f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" '
        f'in API group "{group}" {where}'
    )
    return 403, status_of(403, text, "Forbidden")


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def answer(self) -> None:
        """Read the request and answer it."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.server.headers.append(self.headers)
        self.server.asked.append(f"{self.command} {unquote(self.path)}")
        accept = self.headers.get("Accept") or ""
        code, body = self.server.always or self.server.answer(
            unquote(parts.path), parse_qs(parts.query), accept
        )
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if parts.path in self.server.redirects:
            code = 302
        self.send_response(code)
        if code == 302:
            self.send_header("Location", self.server.redirects[parts.path])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer  # noqa: N815 - the library's names

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def api_server(folder: Path, namespace: str = "chat") -> Iterator[tuple[ApiServer, Path]]:
    """A server, and a kubeconfig whose context names a namespace, while the block runs."""
    server = ApiServer()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": namespace}}
        ],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server, file
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
