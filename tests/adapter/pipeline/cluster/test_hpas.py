"""The collection of HPAs: lookups by what an HPA scales."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count

import msgspec
from structlog.testing import capture_logs

from adapter.pipeline.cluster.hpamanifest import decode
from adapter.pipeline.cluster.hpas import Hpas, ShownHpa
from adapter.pipeline.cluster.watch import watch_hpas
from adapter.pipeline.cluster.workload import Workload
from apiservice.kube.clusterclient import ClusterAccess, ClusterClient
from apiservice.kube.reflector import EventType, ReflectorOptions
from apiservice.provider import GroupResource

DEPLOYMENTS = GroupResource("deployments", "apps")


def _hpa(name: str, target: str = "llm", namespace: str = "ml") -> ShownHpa:
    return decode(
        msgspec.json.encode(
            {
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "maxReplicas": 3,
                    "scaleTargetRef": {
                        "kind": "Deployment",
                        "name": target,
                        "apiVersion": "apps/v1",
                    },
                },
            }
        )
    )


def _names(table: Hpas, target: str = "llm", namespace: str = "ml") -> list[str]:
    return [hpa.name for hpa in table.of(namespace, [Workload(DEPLOYMENTS, target)]).first]


def test_hpas_are_found_by_what_they_scale_in_their_namespace() -> None:
    table = Hpas()
    table.replace([_hpa("b"), _hpa("a"), _hpa("c", "other"), _hpa("d", namespace="else")])
    assert _names(table) == ["a", "b"]
    assert _names(table, "other") == ["c"]
    assert _names(table, namespace="else") == ["d"]
    assert _names(table, "nothing") == []


def test_changes_of_an_hpa_move_it_to_its_new_target() -> None:
    table = Hpas()
    table.replace([_hpa("a")])
    table.apply(EventType.MODIFIED, _hpa("a", "other"))
    assert (_names(table), _names(table, "other")) == ([], ["a"])
    table.apply(EventType.ADDED, _hpa("b"))
    table.apply(EventType.DELETED, _hpa("a", "other"))
    assert (_names(table), _names(table, "other")) == (["b"], [])
    table.replace([])
    assert _names(table) == []


def test_of_very_many_hpas_on_one_workload_the_first_are_returned_and_all_counted() -> None:
    table = Hpas()
    table.replace([_hpa(f"h{i:04}") for i in range(1000)])
    assert _names(table) == [f"h{i:04}" for i in range(16)]
    hpas = table.of("ml", [Workload(DEPLOYMENTS, "llm")])
    assert (hpas.total, hpas.more) == (1000, 984)
    table.apply(EventType.DELETED, _hpa("h0003"))
    table.apply(EventType.ADDED, _hpa("a"))
    assert _names(table)[:5] == ["a", "h0000", "h0001", "h0002", "h0004"]


async def test_a_missing_right_is_warned_about_once_with_the_fix() -> None:
    refused, times = asyncio.Event(), count(1)

    async def forbid(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"reason":"Forbidden","message":"horizontalpodautoscalers is forbidden"}'
        head = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()
        if next(times) == 4:
            refused.set()

    table = Hpas()
    server = await asyncio.start_server(forbid, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with capture_logs() as logs:
        async with ClusterClient(ClusterAccess(host=f"http://127.0.0.1:{port}")) as client:
            task = asyncio.create_task(
                watch_hpas(client, table, ReflectorOptions(backoff_min=0.001)).run()
            )
            await asyncio.wait_for(refused.wait(), 60)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    server.close()
    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    assert len(warnings) == 1
    assert "horizontalpodautoscalers is forbidden" in warnings[0]["error"]
    assert "grant list and watch on it" in warnings[0]["error"]
    assert _names(table) == []
