"""Requests to the engine: form, credentials, certificates and addresses."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import trustme

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.port import Basic, Bearer, BearerFile
from adapter.pipeline.sources.login.tokens import CachedToken, Token
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.queryapi import pause_limit
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from tests.adapter.pipeline.sources.conftest import (
    Recorder,
    Reply,
    Request,
    Web,
    answer,
    running,
    settled,
)
from tests.adapter.pipeline.sources.prometheus.queriedengine import (
    GROUPS,
    PATH,
    live,
    options,
    state,
)


def refusing(*refused: str) -> Reply:
    """An engine that accepts every credential except these."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.headers["authorization"] in refused:
            await answer(b"no", "401 Unauthorized")(request, writer)
        else:
            await live("UTIL")(request, writer)

    return reply


def numbered() -> Bearer:
    serials = itertools.count(1)
    return Bearer(CachedToken("cloud", lambda: Token(f"t{next(serials)}", time.time() + 3600)))


async def test_a_refused_token_is_replaced_within_the_round(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = refusing("Bearer t1")
    source = PrometheusSource(options(web, login=numbered()), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
    assert not source.failures
    shown = [request.headers["authorization"] for request in web.requests]
    assert (shown[0], set(shown[1:])) == ("Bearer t1", {"Bearer t2"})


async def test_an_engine_that_refuses_every_token_causes_one_more_token_request(
    web: Web, sink: Recorder
) -> None:
    web.replies[PATH] = refusing("Bearer t1", "Bearer t2")
    source = PrometheusSource(options(web, login=numbered()), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures >= 3)
    shown = [request.headers["authorization"] for request in web.requests]
    assert (shown[0], set(shown[1:])) == ("Bearer t1", {"Bearer t2"})


async def test_a_redirect_does_not_leak_the_token(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = answer(b"", "307 Elsewhere", headers="Location: /elsewhere\r\n")
    source = PrometheusSource(options(web, login=numbered()), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: source.failures["redirect"] >= 2)
    assert {request.line.split(" ")[1] for request in web.requests} == {PATH}


async def test_a_get_carries_the_query_and_the_users_parameters_in_its_url(
    web: Web, sink: Recorder
) -> None:
    web.replies[PATH] = live("UTIL")
    made = options(web, method="GET", params={"dedup": "true", "extra_label": "env=a b"})
    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
    method, url, _ = web.requests[0].line.split(" ")
    assert method == "GET"
    assert parse_qs(url.partition("?")[2]) == {
        "query": ["UTIL[60000ms]"],
        "timeout": ["5s"],
        "dedup": ["true"],
        "extra_label": ["env=a b"],
    }


async def test_a_post_carries_the_users_parameters_in_its_form(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = live("UTIL")
    made = options(web, params={"nocache": "1", "partial_response": "false"})
    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
    form = parse_qs(web.requests[0].body.decode())
    assert (form["nocache"], form["partial_response"]) == (["1"], ["false"])


async def test_an_unavailable_server_is_a_problem_with_its_address(sink: Recorder) -> None:
    made = PrometheusOptions("http://127.0.0.1:1", lookback=90.0, interval=0.01, retries=0)
    source = PrometheusSource(made, sink, GROUPS)
    async with running(source.run):
        await settled(lambda: source.failures["connect"] >= 2)
    assert "http://127.0.0.1:1/api/v1/query" in (source.problem(time.time()) or "")


async def test_a_server_without_http_is_reported_without_the_parameters(
    web: Web, sink: Recorder
) -> None:
    async def greet(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-server\r\n\r\n")
        await writer.drain()

    web.replies[PATH] = greet
    source = PrometheusSource(
        options(web, method="GET", params={"key": "s3cr3t-key"}), sink, {"usage": ("UTIL",)}
    )
    async with running(source.run):
        await settled(lambda: source.failures["protocol"] >= 2)
    problem = source.problem(time.time()) or ""
    assert "ClientResponseError" in problem
    assert "s3cr3t" not in problem


async def test_an_error_with_status_200_does_not_repeat_credentials(
    web: Web, sink: Recorder
) -> None:
    error = {"status": "error", "errorType": "auth", "error": "no such key s3cr3t-key"}
    web.replies[PATH] = answer(json.dumps(error).encode())
    source = PrometheusSource(
        options(web, headers={"X-Api-Key": "s3cr3t-key"}), sink, {"usage": ("UTIL",)}
    )
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures >= 1)
    assert state(source, "usage").last_error == "auth: no such key (withheld)"


async def test_every_query_has_credentials_and_headers(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    web.replies[PATH] = live("UTIL")
    password = tmp_path / "password"
    password.write_text("one\n")
    login = Basic("u", "", password)
    made = options(web, login=login, headers={"X-Scope-OrgID": "team-a"})

    def basic(secret: str) -> str:
        return "Basic " + base64.b64encode(f"u:{secret}".encode()).decode()

    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
        password.write_text("second\n")
        await settled(lambda: web.requests[-1].headers["authorization"] == basic("second"))
    assert web.requests[0].headers["authorization"] == basic("one")
    assert web.requests[0].headers["x-scope-orgid"] == "team-a"


async def test_a_bearer_token_is_read_again_and_reported_when_missing(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    web.replies[PATH] = live("UTIL")
    token = tmp_path / "token"
    token.write_text("abc")
    source = PrometheusSource(options(web, login=BearerFile(token)), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        token.unlink()
        await settled(lambda: source.failures["credential"] > 0)
        assert str(token) in state(source, "usage").last_error
    assert web.requests[0].headers["authorization"] == "Bearer abc"


async def test_a_client_certificate_is_sent_and_the_ca_is_checked(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    web.replies[PATH] = live("UTIL")
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/prefix"
    ca, cert = tmp_path / "ca.crt", tmp_path / "client.pem"
    authority.cert_pem.write_to_path(str(ca))
    authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(str(cert))

    bare = PrometheusSource(options(web, url=url, ca_file=ca), sink, {"usage": ("UTIL",)})
    async with running(bare.run):
        await settled(lambda: state(bare, "usage").failures > 0)
    assert web.requests == []
    made = options(web, url=url, ca_file=ca, cert_file=cert)
    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
    server.close()


def test_an_unusable_client_certificate_is_named(web: Web, sink: Recorder, tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match=r"client\.pem"):
        PrometheusSource(options(web, cert_file=tmp_path / "client.pem"), sink, GROUPS)


async def test_the_time_that_reading_takes_is_not_the_engines() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    async with asyncio.timeout(600.0) as limit:
        due = limit.when()
        assert due is not None
        async for _ in pause_limit(parts(), limit):
            assert limit.when() is None
            await asyncio.sleep(0.01)
        left = limit.when()
        assert left is not None
        assert left > due
