"""Container Insights against a server with the documented answers of Log Analytics.

Shapes: Azure Monitor, "Azure Monitor Log Analytics API response format" and "API errors".
"""

from __future__ import annotations

import asyncio
import datetime
import gzip
import itertools
import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.sources.azure.insights import kusto
from adapter.pipeline.sources.azure.options import AzureLogsOptions
from adapter.pipeline.sources.azure.source import AzureLogsSource
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.port import import_library
from adapter.pipeline.sources.login.tokens import CachedToken, Token
from apiservice.kube.reflector import EventType
from apiservice.labels import selector
from tests.adapter.pipeline.sources.conftest import (
    Recorder,
    Reply,
    Request,
    Web,
    answer,
    running,
    settled,
)
from tests.adapter.world import World, make_pod
from tests.apiservice.pki import Authority, server_context

WORKSPACE = "b438b4f6-912a-46d5-9cb1-b44069212ab4"
PATH = f"/v1/workspaces/{WORKSPACE}/query"
COLUMNS = {
    "Name": "string",
    "Computer": "string",
    "container": "string",
    "gpu": "string",
    "model": "string",
    "TimeGenerated": "datetime",
    "Val": "real",
}
GIB = 1 << 30


def utc(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def row(
    name: str, value: object, container: str = "uid-0/server", *, at: float | None = None
) -> list[Any]:
    when = utc(time.time() - 90 if at is None else at)
    return [name, "aks-gpu-000", container, "GPU-a", "Tesla-V100", when, value]


def table(*rows: Sequence[Any], columns: dict[str, str] = COLUMNS, **more: Any) -> bytes:
    named = [{"name": name, "type": kind} for name, kind in columns.items()]
    primary = {"name": "PrimaryResult", "columns": named, "rows": list(rows)}
    return json.dumps({"tables": [primary], **more}).encode()


def failure(code: str, message: str, inner: dict[str, Any] | None = None) -> bytes:
    error: dict[str, Any] = {"code": code, "message": message}
    if inner:
        error["innererror"] = inner
    return json.dumps({"error": error}).encode()


def said(body: bytes, status: str = "200 OK", headers: str = "") -> Reply:
    return answer(body, status, headers=f"Content-Type: application/json\r\n{headers}")


@pytest.fixture
async def workspace(web: Web, tmp_path: Path) -> AsyncIterator[AzureLogsOptions]:
    """Where the server is, over TLS."""
    authority = Authority("ca", time.time(), old=True)
    context = server_context(authority.server("127.0.0.1"), tmp_path)
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pem)
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    yield AzureLogsOptions(
        WORKSPACE,
        lookback=360.0,
        endpoint=f"https://127.0.0.1:{port}",
        interval=0.02,
        timeout=10.0,
        ca_file=ca,
    )
    server.close()


@pytest.fixture
def index() -> PodIndex:
    made = PodIndex()
    made.replace([make_pod("inf-0", uid="uid-0", node="aks-gpu-000")])
    return made


def tokens() -> CachedToken:
    return CachedToken("test", lambda: Token("secret-token", time.time() + 3600))


async def test_usage_becomes_values_of_the_pod_with_the_uid(
    web: Web, workspace: AzureLogsOptions, index: PodIndex
) -> None:
    measured = round(time.time()) - 90.0
    web.replies[PATH] = said(
        table(
            row("containerGpuDutyCycle", 72, at=measured),
            row("containerGpumemoryUsedBytes", 8 * GIB, at=measured),
            row("containerGpumemoryTotalBytes", 16 * GIB, at=measured),
        )
    )
    world = World(*index.each(), options=TelemetryOptions(age_limit=360.0))
    store = world.store
    source = AzureLogsSource(workspace, store, index, tokens())
    async with running(source.run):
        await settled(lambda: store.version > 0)
        assert source.problem(time.time()) is None
        now = time.time()
    pod = index.get("ml", "inf-0")
    assert pod is not None
    values = {}
    for metric in (
        "gpu_utilization",
        "gpu_memory_used_bytes",
        "gpu_memory_utilization",
        "containerGpuDutyCycle",
        "gpu_count",
    ):
        read = store.snapshot.pod(pod, metric, selector.parse(""), now)
        assert isinstance(read, Reading), (metric, read)
        values[metric] = (read.value, read.time)
    assert values == {
        "gpu_utilization": (72.0, measured),
        "gpu_memory_used_bytes": (8.0 * GIB, measured),
        "gpu_memory_utilization": (50.0, measured),
        "containerGpuDutyCycle": (72.0, measured),
        "gpu_count": (1.0, measured),
    }


async def test_the_query_is_the_documented_one(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(table(row("containerGpuDutyCycle", 72)))
    async with running(AzureLogsSource(workspace, sink, index, tokens()).run):
        await sink.until(lambda: len(sink.results) > 0)
    request = web.requests[0]
    assert request.line == f"POST {PATH} HTTP/1.1"
    assert request.headers["authorization"] == "Bearer secret-token"
    asked = json.loads(request.body)
    assert asked["timespan"] == "PT360.0S"
    assert asked["query"] == kusto()
    assert asked["query"].startswith(
        "InsightsMetrics | where Namespace == 'container.azm.ms/gpu' and Name in "
        "('containerGpuDutyCycle', 'containerGpumemoryUsedBytes', 'containerGpumemoryTotalBytes')"
    )
    result = sink.results[0]
    assert (result.origin, result.node) == ("azure_logs/aks-gpu-000", "aks-gpu-000")


def test_a_cluster_name_is_quoted_safely() -> None:
    assert "=~ 'it\\'s \\\\'" in kusto("it's \\")  # prose: ignore


async def test_rows_that_name_no_known_pod_are_counted_by_reason(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(
        table(
            row("containerGpuDutyCycle", 72),
            row("containerGpuDutyCycle", 10, "uid-of-another-cluster/server"),
            row("containerGpuDutyCycle", 10, "no-slash"),
            row("containerGpuDutyCycle", None),
            row("containerGpuDutyCycle", "NaN"),
            row("containerGpuRequests", 1),
        )
    )
    async with running(AzureLogsSource(workspace, sink, index, tokens()).run):
        await sink.until(lambda: len(sink.results) > 0)
    assert dict(sink.results[0].rejects) == {
        "unknown_uid": 1,
        "unnamed_sample": 1,
        "bad_value": 2,
        "bad_sample": 1,
    }
    assert [sample.value for sample in sink.results[0].samples] == [72.0]


async def test_an_empty_table_is_reported_as_missing_ingestion(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(table())
    source = AzureLogsSource(workspace, sink, index, tokens())
    async with running(source.run):
        await settled(lambda: source.settled)
        problem = source.problem(time.time()) or ""
    assert WORKSPACE in problem
    assert "from Kubernetes 1.25 on" in problem


async def test_rows_of_other_clusters_only_are_a_problem_with_its_reason(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(table(row("containerGpuDutyCycle", 1, "elsewhere/server")))
    source = AzureLogsSource(workspace, sink, index, tokens())
    async with running(source.run):
        await settled(lambda: source.settled)
        assert "1 records, none about a pod of this cluster (unknown_uid 1)" in (
            source.problem(time.time()) or ""
        )
    assert [(result.samples, result.rejects) for result in sink.results[:1]] == [
        ([], {"unknown_uid": 1})
    ]


SEMANTIC = failure(
    "BadArgumentError",
    "The request had some invalid properties",
    {
        "code": "SemanticError",
        "message": "A semantic error occurred.",
        "innererror": {"code": "SEM0100", "message": "'where' operator: no column 'Nmae'"},
    },
)
DENIED = failure("InsufficientAccessError", "The provided credentials have insufficient access")
ABSENT = failure("WorkspaceNotFoundError", "The workspace could not be found")
BUSY = failure("ThrottledError", "Rate limit is exceeded")
BAD = [
    pytest.param("400 Bad Request", SEMANTIC, "query", "no column 'Nmae'", id="semantic error"),
    pytest.param("403 Forbidden", DENIED, "denied", "Log Analytics Reader", id="no role"),
    pytest.param("401 Unauthorized", DENIED, "denied", "insufficient access", id="bad token"),
    pytest.param("404 Not Found", ABSENT, "status", "check workspace_id", id="no workspace"),
    pytest.param("429 Too Many Requests", BUSY, "unavailable", "Rate limit", id="throttled"),
    pytest.param("503 Unavailable", BUSY, "unavailable", "503", id="away"),
    pytest.param("502 Bad Gateway", b"", "not_json", "check the endpoint", id="a proxy's error"),
    pytest.param(
        "200 OK", b"<html>Sign in</html>", "not_json", "check the endpoint", id="not JSON"
    ),
    pytest.param("200 OK", b'{"tables":[]}', "columns", "no table", id="no table"),
    pytest.param(
        "200 OK", table(columns={"Nmae": "string"}), "columns", "Nmae", id="another query's columns"
    ),
]


@pytest.mark.parametrize(("status", "body", "reason", "text"), BAD)
async def test_a_refusal_is_reported_with_the_message_of_azure(
    web: Web,
    workspace: AzureLogsOptions,
    index: PodIndex,
    sink: Recorder,
    status: str,
    body: bytes,
    reason: str,
    text: str,
) -> None:
    web.replies[PATH] = said(body, status)
    source = AzureLogsSource(workspace, sink, index, tokens())
    async with running(source.run):
        await settled(lambda: bool(source.failures))
        problem = source.problem(time.time()) or ""
    assert set(source.failures) == {reason}
    assert text in problem
    assert "secret-token" not in problem
    assert sink.results == []


async def test_a_refused_token_is_exchanged_within_the_round(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    async def only_t2(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.headers["authorization"] == "Bearer t2":
            await said(table(row("containerGpuDutyCycle", 72)))(request, writer)
        else:
            await said(DENIED, "401 Unauthorized")(request, writer)

    web.replies[PATH] = only_t2
    serials = itertools.count(1)
    exchanged = CachedToken("test", lambda: Token(f"t{next(serials)}", time.time() + 3600))
    source = AzureLogsSource(workspace, sink, index, exchanged)
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
    assert not source.failures
    assert [sent.headers["authorization"] for sent in web.requests[:2]] == [
        "Bearer t1",
        "Bearer t2",
    ]


async def test_a_redirect_does_not_leak_the_token(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(DENIED, "307 Elsewhere", "Location: /elsewhere\r\n")
    source = AzureLogsSource(workspace, sink, index, tokens())
    async with running(source.run):
        await settled(lambda: bool(source.failures))
        assert "correct the endpoint" in (source.problem(time.time()) or "")
    assert set(source.failures) == {"redirect"}
    assert {request.line for request in web.requests} == {f"POST {PATH} HTTP/1.1"}


async def test_retry_after_is_obeyed(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(BUSY, "429 Too Many Requests", "Retry-After: 500\r\n")
    source = AzureLogsSource(workspace, sink, index, tokens())
    async with running(source.run):
        await settled(lambda: source.settled)
        await asyncio.sleep(0.1)
    assert source.queries == 1


async def test_a_finished_wait_does_not_return_if_the_clock_is_set_back(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(BUSY, "429 Too Many Requests", "Retry-After: 0\r\n")
    ahead = [3600.0]
    source = AzureLogsSource(workspace, sink, index, tokens(), clock=lambda: time.time() + ahead[0])
    async with running(source.run):
        await settled(lambda: source.settled)
        web.replies[PATH] = said(table(row("containerGpuDutyCycle", 72)))
        await sink.until(lambda: len(sink.results) > 0)
        ahead[0] = 0.0
        before = source.queries
        await settled(lambda: source.queries > before + 2)
    assert source.failures == {"unavailable": 1}


async def test_an_answer_is_bounded_after_decompression(
    web: Web,
    workspace: AzureLogsOptions,
    index: PodIndex,
    sink: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapter.pipeline.sources.azure.source._MOST_BYTES", 1 << 20)
    bomb, small = gzip.compress(b" " * (2 << 20)), table(row("containerGpuDutyCycle", 72))
    web.replies[PATH] = said(bomb, headers="Content-Encoding: gzip\r\n")
    source = AzureLogsSource(workspace, sink, index, tokens())
    async with running(source.run):
        await settled(lambda: bool(source.failures))
        assert "over 1048576 bytes" in (source.problem(time.time()) or "")
        assert sink.results == []
        web.replies[PATH] = said(gzip.compress(small), headers="Content-Encoding: gzip\r\n")
        await sink.until(lambda: len(sink.results) > 0)


async def test_a_partial_answer_drops_no_exporter(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    web.replies[PATH] = said(table(row("containerGpuDutyCycle", 72)))
    source = AzureLogsSource(workspace, sink, index, tokens())
    loss = {"code": "PartialError", "message": "There were some errors when processing the query."}
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        web.replies[PATH] = said(table(error=loss))
        await settled(lambda: source.partial)
        assert sink.forgotten == []
        web.replies[PATH] = said(table())
        await sink.until(lambda: sink.forgotten == ["azure_logs/aks-gpu-000"])


async def test_nothing_is_queried_without_a_token(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    def refuse() -> Token:
        raise OSError("no identity has been assigned")

    source = AzureLogsSource(workspace, sink, index, CachedToken("Azure identity", refuse))
    async with running(source.run):
        await settled(lambda: bool(source.failures))
        assert "no identity has been assigned" in (source.problem(time.time()) or "")
    assert set(source.failures) == {"credential"}
    assert web.requests == []


async def test_a_pod_that_is_listed_later_is_found_by_its_uid(
    web: Web, workspace: AzureLogsOptions, index: PodIndex, sink: Recorder
) -> None:
    late: Pod = make_pod("inf-1", uid="uid-1", node="aks-gpu-001")
    web.replies[PATH] = said(table(row("containerGpuDutyCycle", 5, "uid-1/server")))
    source = AzureLogsSource(workspace, sink, index, tokens())
    async with running(source.run):
        await settled(lambda: source.settled)
        assert not any(result.samples for result in sink.results)
        index.apply(EventType.ADDED, late)
        await sink.until(lambda: bool(sink.results[-1].samples))
    assert sink.results[-1].samples[0].labels["pod"] == "inf-1"


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(CredentialError, match=r"pip install 'azure-identity>=\S+' 'azure-mon"):
        import_library("no_such_library_of_azures", "azure")
