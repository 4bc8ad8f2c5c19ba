"""Pages behind TLS and credentials, against real servers: reached if the settings say how, and a
reason that names the setting if not."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from pydantic import ValidationError

from adapter.config.settings import Settings
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import ContainerPort, Pod, PodRef
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from adapter.server.serve.build import scrape_options
from tests.adapter.pipeline.sources.conftest import (
    Recorder,
    Reply,
    Request,
    Web,
    answer,
    running,
    settled,
)
from tests.adapter.world import make_pod

PAGE = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="p",namespace="n"} 87\n'
FAST = ScrapeOptions(interval=0.02, timeout=5.0, max_backoff=0.04)
DCGM = {"app.kubernetes.io/name": "dcgm-exporter"}
PREFIX = "gpu-metrics-adapter.io/"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    return tmp_path / "ca.crt"


@asynccontextmanager
async def behind_tls(web: Web, authority: trustme.CA, name: str) -> AsyncIterator[int]:
    """The same pages on a port with TLS, under a certificate for ``name``."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def guarded(user: str, password: str) -> Reply:
    """A page behind basic authentication, as dcgm-exporter's ``basicAuth`` guards it."""
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    denied = answer(b"Unauthorized\n", "401 Unauthorized", headers="WWW-Authenticate: Basic\r\n")

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        good = request.headers.get("authorization") == expected
        await (answer(PAGE) if good else denied)(request, writer)

    return reply


def exporter(port: int, /, **annotations: str) -> Pod:
    words = {PREFIX + name.replace("_", "-"): text for name, text in annotations.items()}
    return make_pod(
        "dcgm",
        namespace="gpu",
        gpus={},
        node="gpu-7",
        ip="127.0.0.1",
        labels=DCGM,
        annotations=words,
        ports=(ContainerPort("metrics", port),),
    )


def source(scrape: Mapping[str, Any], sink: Recorder, *pods: Pod) -> ScrapeSource:
    """The source that the settings describe, at the pace of a test."""
    settings = Settings.model_validate({"source": {"scrape": scrape}})
    options = replace(scrape_options(settings), interval=0.02, timeout=5.0, max_backoff=0.04)
    index = PodIndex()
    index.replace(pods)
    return ScrapeSource(options, sink, index)


def rule(port: int, **more: object) -> dict[str, object]:
    entry = {"name": "mine", "selector": "app.kubernetes.io/name=dcgm-exporter", "port": port}
    return {"exporters": [{**entry, "namespace": "gpu", **more}]}


async def failure(made: ScrapeSource) -> tuple[str, str]:
    """The reason and the text of the first failure."""
    async with running(made.run):
        await settled(lambda: any(state.failures for state in made.states.values()))
        (state,) = made.states.values()
    return state.reason, state.last_error


async def sent(made: ScrapeSource, web: Web, sink: Recorder) -> str | None:
    """The Authorization header with which a page was read."""
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 0)
    return web.requests[-1].headers.get("authorization")


async def test_a_rule_reaches_pages_with_its_own_ca_and_server_name(
    web: Web, sink: Recorder, authority: trustme.CA, ca: Path
) -> None:
    web.replies["/metrics"] = answer(PAGE)
    async with behind_tls(web, authority, "dcgm.gpu.svc") as port:
        tls = {"ca_file": str(ca), "server_name": "dcgm.gpu.svc"}
        made = source(rule(port, scheme="https", tls_config=tls), sink, exporter(port))
        assert await sent(made, web, sink) is None
        for wrong in ({"ca_file": str(ca)}, {"server_name": "dcgm.gpu.svc"}, {}):
            made = source(rule(port, scheme="https", tls_config=wrong), sink, exporter(port))
            reason, text = await failure(made)
            assert reason == "tls"
            assert "set tls_config with ca_file and server_name in a rule of source.scrape" in text


async def test_a_token_goes_to_a_self_signed_proxy_if_its_rule_says_so(
    web: Web, sink: Recorder, authority: trustme.CA, tmp_path: Path
) -> None:
    """kube-rbac-proxy of AMD's GPU operator."""
    token = tmp_path / "token"
    token.write_text("secret\n")
    web.replies["/metrics"] = answer(PAGE)
    more = {
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "authorization": {"credentials_file": str(token)},
    }
    async with behind_tls(web, authority, "another.name") as port:
        made = source(rule(port, **more), sink, exporter(port))
        assert await sent(made, web, sink) == "Bearer secret"


async def test_basic_authentication_is_sent_and_follows_its_file(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("old\n")
    web.replies["/metrics"] = guarded("scraper", "new")
    basic = {"username": "scraper", "password_file": str(password)}
    made = source(rule(web.port, basic_auth=basic), sink, exporter(web.port))
    async with running(made.run):
        await settled(lambda: made.failures["denied"] > 0)
        (state,) = made.states.values()
        assert (
            "401: the server does not accept the credentials; correct them in" in state.last_error
        )
        password.write_text("new\n")
        await sink.until(lambda: len(sink.results) > 0)


async def test_a_target_has_its_own_credentials_and_others_do_not_get_them(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    for name in ("own", "general"):
        (tmp_path / name).write_text(name)
    for path in ("/a", "/b", "/c"):
        web.replies[path] = answer(PAGE)
    scrape = {
        "bearer_token_file": str(tmp_path / "general"),
        "targets": [
            {
                "url": web.url("/a"),
                "authorization": {"credentials_file": str(tmp_path / "own")},
            },
            {"url": web.url("/b")},
            {"url": web.url("/c"), "pod": "n/p"},
        ],
    }
    async with running(source(scrape, sink).run):
        await sink.until(lambda: len({result.origin for result in sink.results}) == 3)
    got = {one.line.split(" ")[1]: one.headers.get("authorization") for one in web.requests}
    assert got == {"/a": "Bearer own", "/b": "Bearer general", "/c": None}


async def test_the_pod_of_an_exporter_says_where_its_page_is(
    web: Web, sink: Recorder, authority: trustme.CA, ca: Path
) -> None:
    web.replies["/gpu"] = answer(PAGE)
    async with behind_tls(web, authority, "dcgm.gpu.svc") as port:
        words = {"scheme": "https", "port": str(port), "path": "/gpu"}
        pod = exporter(1, server_name="dcgm.gpu.svc", **words)
        assert await sent(source({"ca_file": str(ca)}, sink, pod), web, sink) is None
        pod = exporter(1, insecure_skip_verify="true", **words)
        sink.results.clear()
        assert await sent(source({}, sink, pod), web, sink) is None


@pytest.mark.parametrize(("namespace", "expected"), [("gpu", "Bearer secret"), (None, None)])
@pytest.mark.parametrize("word", ["path", "scheme", "port", "insecure_skip_verify"])
async def test_no_pod_draws_credentials_to_an_address_of_its_choice(
    web: Web, sink: Recorder, tmp_path: Path, namespace: str | None, expected: str | None, word: str
) -> None:
    """Only where the settings say that tenants create no pods."""
    token = tmp_path / "token"
    token.write_text("secret")
    web.replies["/metrics"] = answer(PAGE)
    words = {
        "path": "/metrics",
        "scheme": "http",
        "port": str(web.port),
        "insecure_skip_verify": "true",
    }
    pod = exporter(web.port, **{word: words[word]})
    scrape = {**rule(web.port, namespace=namespace), "bearer_token_file": str(token)}
    assert await sent(source(scrape, sink, pod), web, sink) == expected
    sink.results.clear()
    plain = source({"bearer_token_file": str(token)}, sink, exporter(web.port))
    assert await sent(plain, web, sink) == "Bearer secret"


@pytest.mark.parametrize(
    ("word", "text", "reason"),
    [
        ("scheme", "ftp", "bad_scheme"),
        ("path", "metrics", "bad_path"),
        ("port", "nothing", "bad_port"),
        ("server_name", "a b", "bad_server_name"),
    ],
)
async def test_a_bad_annotation_of_an_exporter_is_refused_with_its_reason(
    sink: Recorder, word: str, text: str, reason: str
) -> None:
    made = source({}, sink, exporter(1, **{word: text}))
    async with running(made.run):
        await settled(lambda: made.unscrapable[reason] == 1)
        assert not made.states


GO = answer(b"Client sent an HTTP request to an HTTPS server.\n", "400 Bad Request")
NGINX = answer(
    b"<html><title>400 The plain HTTP request was sent to HTTPS port</title>", "400 Bad Request"
)
ELSEWHERE = "Location: http://10.9.8.7/metrics\r\n"


async def alert(_: Request, writer: asyncio.StreamWriter) -> None:
    """A TLS alert: the answer of a server that did not understand."""
    writer.write(b"\x15\x03\x01\x00\x02\x02\x46")
    await writer.drain()


async def puzzled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server of plain HTTP that does not understand a TLS handshake."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    writer.close()


@pytest.mark.parametrize(
    ("reply", "reason", "text"),
    [
        (GO, "speaks_tls", "the server speaks TLS; set scheme: https in a rule of source.scrape"),
        (NGINX, "speaks_tls", "the server speaks TLS; set scheme: https in"),
        (alert, "speaks_tls", "the server speaks TLS; set scheme: https in"),
        (answer(b"no", "400 Bad Request"), "status", "HTTP status 400"),
        (
            answer(b"", "401 Unauthorized"),
            "denied",
            "401: the page needs credentials; set authorization or basic_auth in a rule of",
        ),
        (answer(b"", "403 Forbidden"), "denied", "403: the page needs credentials"),
        (answer(b"", "404 Not Found"), "no_page", "404: it has no page at /metrics; set path in"),
        (
            answer(b"", "307 Temporary Redirect", headers="Location: /metrics/\r\n"),
            "redirect",
            "307 redirects to /metrics/, and redirects are not followed; set path: /metrics/ in",
        ),
        (
            answer(b"", "301 Moved", headers="Location: https://127.0.0.1:9/metrics\r\n"),
            "redirect",
            "set scheme: https, port: 9 in",
        ),
        (
            answer(b"", "302 Found", headers=ELSEWHERE),
            "redirect",
            "redirects to http://10.9.8.7/metrics, and redirects are not followed; correct the",
        ),
        (answer(b"", "302 Found"), "redirect", "redirects to another page"),
    ],
)
async def test_a_refusal_names_what_the_server_answers_and_the_setting(
    web: Web, sink: Recorder, reply: Reply, reason: str, text: str
) -> None:
    web.replies["/metrics"] = reply
    made = source({}, sink, exporter(web.port))
    assert (await failure(made))[0] == reason
    (state,) = made.states.values()
    assert text in state.last_error
    assert made.on_node("gpu-7")[0].refused is (reason != "status")
    assert sink.results == []


async def test_a_server_that_hangs_up_does_not_speak_tls(web: Web, sink: Recorder) -> None:
    async def hang_up(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.close()

    web.replies["/metrics"] = hang_up
    reason, text = await failure(source({}, sink, exporter(web.port)))
    assert (reason, text) == ("connect", "the server closed the connection")


async def test_little_is_read_of_an_answer_that_is_not_the_page(web: Web, sink: Recorder) -> None:
    async def endless(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"no" * 50_000)
            await writer.drain()

    web.replies["/metrics"] = endless
    assert (await failure(source({}, sink, exporter(web.port))))[0] == "status"


async def test_a_user_that_may_not_read_the_page_is_not_a_missing_one(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    web.replies["/metrics"] = answer(b"Forbidden (user=x)", "403 Forbidden")
    reason, text = await failure(
        source(
            rule(web.port, authorization={"credentials_file": str(token)}),
            sink,
            exporter(web.port),
        )
    )
    assert reason == "denied"
    assert "allow their user to get the non-resource URL /metrics" in text
    assert "secret" not in text
    reason, text = await failure(
        source({"bearer_token_file": str(token)}, sink, exporter(web.port, path="/metrics"))
    )
    assert "the pod's annotations choose its address; name the pod's namespace" in text


@pytest.mark.parametrize(
    ("words", "trusting"),
    [
        ({"insecure_skip_verify": "true"}, False),
        ({"server_name": "llm.ml.svc"}, True),
        ({}, False),
        ({"server_name": "llm.ml.svc"}, False),
        ({}, True),
    ],
)
async def test_a_server_page_is_reached_behind_tls(
    web: Web,
    sink: Recorder,
    authority: trustme.CA,
    ca: Path,
    words: dict[str, str],
    *,
    trusting: bool,
) -> None:
    web.replies["/metrics"] = answer(b'vllm:num_requests_waiting{engine="0"} 3\n')
    notes = {PREFIX + name.replace("_", "-"): text for name, text in words.items()}
    notes |= {PREFIX + "scrape": "true", PREFIX + "scheme": "https"}
    async with behind_tls(web, authority, "llm.ml.svc") as port:
        pod = make_pod(
            "llm", ip="127.0.0.1", annotations=notes, ports=(ContainerPort("http", port),)
        )
        tls = {"ca_file": str(ca)} if trusting else {}
        made = source({"inference": {"tls_config": tls}}, sink, pod)
        if words and (trusting or "insecure_skip_verify" in words):
            assert await sent(made, web, sink) is None
        else:
            reason, text = await failure(made)
            assert reason == "tls"
            assert "set server-name in the pod's gpu-metrics-adapter.io annotations" in text


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_no_setting_sends_credentials_to_a_server_page(
    web: Web, sink: Recorder, status: str
) -> None:
    web.replies["/metrics"] = answer(b"", status)
    target = ScrapeTarget(web.url(), pod=PodRef("n", "p"), rule="inference", serves=True)
    made = ScrapeSource(replace(FAST, targets=(target,)), sink)
    reason, text = await failure(made)
    assert reason == "denied"
    assert "sends none to a server page" in text
    assert made.of_pod(PodRef("n", "p"))[0].refused


async def test_a_scheme_that_is_wrong_is_named_in_both_directions(
    web: Web, sink: Recorder, authority: trustme.CA
) -> None:
    plain = await asyncio.start_server(puzzled, "127.0.0.1", 0)
    port = plain.sockets[0].getsockname()[1]
    reason, text = await failure(source(rule(port, scheme="https"), sink, exporter(port)))
    plain.close()
    assert (reason, "set scheme: http in" in text) == ("speaks_http", True), text
    async with behind_tls(web, authority, "127.0.0.1") as port:
        reason, text = await failure(source({}, sink, exporter(port)))
    assert (reason, "set scheme: https in" in text) == ("speaks_tls", True), text


def test_a_file_that_cannot_be_used_is_refused_with_the_settings(
    sink: Recorder, tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "nowhere")
    for more, setting in (
        ({"tls_config": {"ca_file": nowhere}}, "CA file"),
        ({"authorization": {"credentials_file": nowhere}}, "authorization.credentials_file"),
        ({"basic_auth": {"username": "u", "password_file": nowhere}}, "basic_auth.password_file"),
    ):
        with pytest.raises(CredentialError, match=setting):
            source(rule(1, **more), sink)


@pytest.mark.parametrize(
    ("scrape", "said"),
    [
        (
            rule(1, namespace=None, authorization={"credentials_file": "/t"}),
            "authorization needs namespace",
        ),
        (
            rule(1, namespace=None, basic_auth={"username": "u", "password_file": "/t"}),
            "basic_auth needs namespace",
        ),
        (
            rule(
                1,
                authorization={"credentials_file": "/t"},
                basic_auth={"username": "u", "password_file": "/t"},
            ),
            "exclude each other",
        ),
        (
            {
                "targets": [
                    {"url": "http://a/", "pod": "n/p", "authorization": {"credentials_file": "/t"}}
                ]
            },
            "no credentials are sent to the page of a pod",
        ),
    ],
)
def test_settings_that_would_give_credentials_away_are_refused(
    scrape: dict[str, object], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"source": {"scrape": scrape}})
