"""How doctor asks a Prometheus that needs credentials."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from adapter.config.settings import Settings
from adapter.tools.doctor.facts import UnreadError
from adapter.tools.doctor.fetch import Fetched, Place, direct_fetcher
from adapter.tools.doctor.store import ask
from tests.adapter.pageserver import PageServer

EMPTY = b'{"status":"success","data":{"resultType":"vector","result":[]}}'


class Forwarding:
    """The API server's proxy, which must not be asked."""

    async def fetch(self, place: Place, most: int) -> Fetched:
        raise AssertionError(place)


def settings(url: str, **more: Any) -> Settings:
    prometheus = {"url": url, **more}
    return Settings.model_validate({"source": {"kind": "prometheus", "prometheus": prometheus}})


@pytest.fixture
def guarded() -> Iterator[str]:
    """The URL of a Prometheus that wants a token."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            right = self.headers["Authorization"] == "Bearer token-of-a-file"
            self.send_response(200 if right else 401)
            self.end_headers()
            self.wfile.write(EMPTY if right else b"no")

        def log_message(self, *_: object) -> None:
            return

    server = PageServer(Handler)
    yield f"http://127.0.0.1:{server.server_port}"
    server.close()


async def test_a_token_that_can_be_read_is_sent(guarded: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token-of-a-file")
    async with direct_fetcher() as near:
        with_token = settings(guarded, bearer_token_file=tmp_path / "token")
        assert (await ask(with_token, near)).problem == ""
        assert "401" in (await ask(settings(guarded), near)).problem


async def test_a_token_of_another_machine_is_not_a_finding(guarded: str, tmp_path: Path) -> None:
    async with direct_fetcher() as near:
        with pytest.raises(UnreadError, match=r"not on this machine \(bearer_token_file: "):
            await ask(settings(guarded, bearer_token_file=tmp_path / "none"), near)


async def test_credentials_are_not_sent_through_the_api_server() -> None:
    asked = settings(
        "https://prometheus.monitoring.svc:9090", headers={"Authorization": "Bearer x"}
    )
    with pytest.raises(UnreadError, match="the API server does not forward"):
        await ask(asked, Forwarding())
