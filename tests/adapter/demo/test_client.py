"""The demo's reader asks as kube-controller-manager does, and believes nothing odd."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from adapter.demo.certificates import make_front_proxy
from adapter.demo.client import Answer, MetricsClient, decode
from adapter.hpa import Missing

ITEM = (
    b'{"describedObject":{"kind":"Pod","namespace":"ns","name":"%s","apiVersion":"v1"},'
    b'"metric":{"name":"m","selector":null},"timestamp":"2026-01-02T03:04:0%dZ",'
    b'"windowSeconds":30,"value":"%s"}'
)


def listed(*items: bytes) -> bytes:
    return b'{"kind":"MetricValueList","metadata":{},"items":[' + b",".join(items) + b"]}"


@pytest.mark.parametrize(
    ("status", "body", "answer"),
    [
        (
            200,
            listed(ITEM % (b"a", 5, b"87500m"), ITEM % (b"b", 4, b"12")),
            {"a": 87_500, "b": 12_000},
        ),
        (200, listed(ITEM % (b"a", 5, b"1k")), {"a": 1_000_000}),
        (200, listed(), {}),
        (
            404,
            b'{"kind":"Status","code":404,"message":"the server could not find the metric"}',
            Missing("the server could not find the metric"),
        ),
        (503, b"{}", Missing("HTTP 503")),
    ],
)
def test_what_an_answer_means(status: int, body: bytes, answer: Answer) -> None:
    assert decode(status, body) == answer


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", listed(ITEM % (b"a", 5, b"lots"))])
def test_a_body_that_is_not_a_metric_list_is_a_missing_value(body: bytes) -> None:
    values = decode(200, body)
    assert isinstance(values, Missing)
    assert "the body is not usable: " in values.message


class Recorder:
    """An HTTPS server that keeps what it was asked, and by whom."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.clients: list[str] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head.decode())
                peer = writer.get_extra_info("peercert")["subject"]
                self.clients.append(dict(pair for row in peer for pair in row)["commonName"])
                body = listed(ITEM % (b"a", 5, b"50"))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Recorder, MetricsClient]]:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    proxy = make_front_proxy(tmp_path, time.time())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=proxy.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    ca.issue_cert("127.0.0.1").configure_cert(context)
    recorder = Recorder()
    server = await asyncio.start_server(recorder.answer, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    client = MetricsClient(f"https://127.0.0.1:{port}", proxy, tmp_path / "ca.crt")
    yield recorder, client
    await client.close()
    server.close()


async def test_a_request_is_the_front_proxys_for_the_hpa_controller(
    served: tuple[Recorder, MetricsClient],
) -> None:
    recorder, client = served
    answer = await client.pods("inference", "gpu_utilization", "app=chat")
    assert answer == {"a": 50_000}
    line, *headers = recorder.requests[0].strip().split("\r\n")
    assert line == (
        "GET /apis/custom.metrics.k8s.io/v1beta2/namespaces/inference/pods/%2A/gpu_utilization"
        "?labelSelector=app%3Dchat HTTP/1.1"
    )
    rows = [header.split(": ", 1) for header in headers]
    assert [value for name, value in rows if name.lower() == "accept"] == [
        "application/vnd.kubernetes.protobuf, */*"
    ]
    assert [value for name, value in rows if name.lower() == "x-remote-user"] == [
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    ]
    assert [value for name, value in rows if name.lower() == "x-remote-group"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
        "system:authenticated",
    ]
    assert recorder.clients == ["front-proxy-client"]
    assert (client.tally.requests, client.tally.answered) == (1, 1)


async def test_a_server_that_is_not_there_is_a_missing_value(tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    proxy = make_front_proxy(tmp_path, 1_700_000_000.0)
    client = MetricsClient("https://127.0.0.1:1", proxy, tmp_path / "ca.crt")
    answer = await client.pods("inference", "gpu_utilization", "app=chat")
    await client.close()
    assert isinstance(answer, Missing)
    assert (client.tally.requests, client.tally.answered) == (1, 0)


async def test_before_there_is_a_certificate_the_server_is_not_ready(tmp_path: Path) -> None:
    proxy = make_front_proxy(tmp_path, 1_700_000_000.0)
    client = MetricsClient("https://127.0.0.1:1", proxy, tmp_path / "none.crt")
    assert await client.ready() == "no serving certificate yet"
