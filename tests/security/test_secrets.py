"""Secrets do not appear in logs, answers or errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.adapter.commandline import invoke
from tests.adapter.pageserver import PageServer
from tests.adapter.serving import Exporter, Lab, Serving

PASSWORD = "s3cr3t-password"
BEARER = "s3cr3t-bearer"
KEY = "s3cr3t-api-key"
PARAMETER = "s3cr3t-parameter"
CALLER = "s3cr3t-caller"
ENCODED = "Z3B1OnMzY3IzdC1wYXNzd29yZA=="
"""``gpu:`` and the password, as basic authentication sends them."""
SECRETS = (PASSWORD, BEARER, KEY, PARAMETER, CALLER, ENCODED)


class Engine:
    """Refuses every request, and repeats the received credentials in its answer."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
                credentials = " ".join(
                    (
                        self.headers.get("Authorization", ""),
                        self.headers.get("X-Api-Key", ""),
                        f"{self.path}?{body}"[:60],
                    )
                )
                engine.shown.append(credentials)
                content = json.dumps(
                    {"status": "error", "errorType": "denied", "error": f"refused: {credentials}"}
                ).encode()
                self.send_response(401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = PageServer(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.close()


def login(folder: Path, way: str) -> dict[str, Any]:
    """Settings of one kind of login, with its files."""
    if way == "bearer_token_file":
        (folder / "token").write_text(f"{BEARER}\n")
        return {"bearer_token_file": str(folder / "token")}
    if way == "password_file":
        (folder / "password").write_text(f"{PASSWORD}\n")
        return {"username": "gpu", "password_file": str(folder / "password")}
    return {"username": "gpu", "password": PASSWORD}


WAYS = ("bearer_token_file", "password_file", "password")


def asked(serving: Serving) -> list[str]:
    """Answers to callers that send a secret."""
    paths = (
        "/metrics",
        "/readyz?verbose",
        "/readyz/source",
        "/apis",
        "/apis/custom.metrics.k8s.io",
    )
    with serving.client() as known, serving.client(None) as unknown:
        for client in (known, unknown):
            client.headers["Authorization"] = f"Bearer {CALLER}"
        return [
            *(known.get(path).text for path in paths),
            unknown.get("/apis/custom.metrics.k8s.io/v1beta2").text,
        ]


def test_an_engine_that_repeats_credentials_does_not_leak_them(
    tmp_path: Path, engine: Engine
) -> None:
    """Its error reaches the log and the readiness page without the credentials."""
    exporter = Exporter()
    lab = Lab(tmp_path, exporter)
    prometheus = {
        "url": engine.url,
        "interval": 0.2,
        "headers": {"X-Api-Key": KEY},
        "params": {"key": PARAMETER},
    }
    lab.config["log"] = {"format": "json", "level": "debug"}
    lab.config["source"] = {"kind": "prometheus", "prometheus": prometheus}
    seen = []
    lab.config["source"]["prometheus"] = prometheus | login(tmp_path, WAYS[0])
    with lab.serving() as serving:
        serving.wait_for("query failed")
        seen += asked(serving)
        for way in WAYS[1:]:
            since = len(serving.log)
            lab.config["source"]["prometheus"] = prometheus | login(tmp_path, way)
            lab.write()
            serving.wait_for("settings reloaded", since=since)
            serving.wait_for("query failed", since=since)
            seen += asked(serving)
    exporter.close()
    shown = "".join(engine.shown)
    assert all(secret in shown for secret in (KEY, PARAMETER, BEARER, ENCODED))
    assert "(withheld)" in json.dumps(serving.log)
    everything = json.dumps(serving.log) + "".join(seen)
    assert [secret for secret in SECRETS if secret in everything] == []


FAILURE = """
import sys, structlog
from adapter.config.process.logs import configure
from adapter.config.settings.log import LogSettings

def fail(token):
    raise ValueError("it failed")

for layout in ("console", "json"):
    configure(LogSettings(format=layout))
    try:
        fail(sys.argv[1])
    except ValueError as error:
        structlog.get_logger("test").error("call failed", exc_info=error)
"""


def test_a_traceback_in_the_log_shows_no_variables_in_either_format() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FAILURE, CALLER],
        capture_output=True,
        text=True,
        check=True,
    )
    console, _, last = ended.stderr.rstrip().rpartition("\n")
    assert "ValueError: it failed" in console
    assert "ValueError: it failed" in json.loads(last)["exception"]
    assert CALLER not in ended.stderr


def test_an_invalid_setting_beside_a_secret_does_not_show_it(tmp_path: Path) -> None:
    """The error of a configuration repeats the wrong value only."""
    exporter = Exporter()
    lab = Lab(tmp_path, exporter)
    lab.config["source"] = {
        "kind": "prometheus",
        "prometheus": {
            "url": "http://gpu:s3cr3t-password@127.0.0.1:1",
            "password": [PASSWORD],
            "headers": {"X-Api-Key": [KEY]},
            "intervall": 1,
        },
    }
    ended = invoke("serve", "--config", str(lab.write()), GMA_SOURCE__PROMETHEUS__USERNAME="gpu")
    exporter.close()
    assert ended.code == 2
    assert "intervall" in ended.output
    assert [secret for secret in SECRETS if secret in ended.output] == []
