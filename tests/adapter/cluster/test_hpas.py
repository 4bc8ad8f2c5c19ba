"""The collection of HPAs: what is kept of a manifest, and lookups by what an HPA scales."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count

import msgspec
from kubernetes.aio.client import ApiClient, Configuration
from structlog.testing import capture_logs

from adapter.cluster.hpas import Hpas, ShownHpa, ShownMetric, decode
from adapter.cluster.manifest import PodDecoder
from adapter.cluster.podsfile import parse
from adapter.cluster.watch import watch_hpas
from adapter.cluster.workload import Workload
from apiservice.kube.reflector import EventType, ReflectorOptions
from apiservice.provider import GroupResource

DEPLOYMENTS = GroupResource("deployments", "apps")
TEXT = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 8
  metrics:
  - {type: Pods, pods: {metric: {name: gpu_utilization}, target: {averageValue: 60}}}
  - {type: Object, object: {metric: {name: a}, describedObject: {}, target: {value: 5k}}}
  - {type: External, external: {metric: {name: b}, target: {averageValue: "1500m"}}}
  - {type: Resource, resource: {name: cpu, target: {averageUtilization: 70}}}
  - {type: ContainerResource, containerResource: {name: memory, target: {averageValue: 1Gi}}}
status:
  currentReplicas: 2
  desiredReplicas: 3
  currentMetrics:
  - {type: Resource, resource: {name: cpu, current: {averageUtilization: 12, averageValue: 5m}}}
  - {type: ""}
"""


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


def test_every_type_of_metric_is_read_with_target_and_current_value() -> None:
    (hpa,) = parse(TEXT.encode(), PodDecoder()).hpas
    assert (hpa.low, hpa.high, hpa.current, hpa.desired) == (1, 8, 2, 3)
    assert hpa.metrics == (
        ShownMetric("Pods", "gpu_utilization", "60", ""),
        ShownMetric("Object", "a", "5k", ""),
        ShownMetric("External", "b", "1500m", ""),
        ShownMetric("Resource", "cpu", "70%", "12%"),
        ShownMetric("ContainerResource", "memory", "1Gi", ""),
    )
    assert [metric.custom for metric in hpa.metrics] == [True, True, True, False, False]


def test_an_hpa_without_status_has_no_replicas_yet() -> None:
    hpa = _hpa("new")
    assert (hpa.current, hpa.desired, hpa.metrics, hpa.conditions) == (None, None, (), ())


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


def test_a_long_message_of_a_condition_is_cut() -> None:
    found = decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "a"},
                "spec": {"maxReplicas": 1, "scaleTargetRef": {"kind": "A", "name": "b"}},
                "status": {"conditions": [{"type": "ScalingActive", "message": "x" * 40_000}]},
            }
        )
    )
    assert len(found.conditions[0].message) == 1024


def test_an_hpa_with_very_many_metrics_keeps_64() -> None:
    metric = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"averageValue": "1"}}}
    condition = {"type": "ScalingActive", "status": "True"}
    found = decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "a"},
                "spec": {
                    "maxReplicas": 1,
                    "scaleTargetRef": {"kind": "A", "name": "b"},
                    "metrics": [metric] * 5000,
                },
                "status": {"conditions": [condition] * 5000},
            }
        )
    )
    assert (len(found.metrics), len(found.conditions)) == (64, 64)


def _external(*names: str, current: tuple[str, ...]) -> ShownHpa:
    """An HPA with external metrics, and the current values of its status, in order."""

    def source(name: str, key: str, value: str) -> dict[str, object]:
        metric = {"metric": {"name": name}, key: {"value": value}}
        return {"type": "External", "external": metric}

    return decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "a"},
                "spec": {
                    "maxReplicas": 1,
                    "scaleTargetRef": {"kind": "A", "name": "b"},
                    "metrics": [source(name, "target", "1") for name in names],
                },
                "status": {
                    "currentMetrics": [
                        source(name, "current", value)
                        for name, _, value in (text.partition("=") for text in current)
                    ]
                },
            }
        )
    )


def test_metrics_of_one_name_have_their_own_current_values() -> None:
    found = _external("q", "q", "r", current=("q=1", "q=2", "r=3"))
    assert [metric.current for metric in found.metrics] == ["1", "2", "3"]
    changed = _external("new", "r", "q", current=("q=1", "q=2", "r=3"))
    assert [metric.current for metric in changed.metrics] == ["", "3", ""]


def test_a_long_name_of_a_metric_is_cut() -> None:
    assert len(_external("q" * 100_000, current=()).metrics[0].name) == 253


def test_of_very_many_hpas_on_one_workload_the_first_are_returned_and_all_counted() -> None:
    table = Hpas()
    table.replace([_hpa(f"h{i:04}") for i in range(1000)])
    assert _names(table) == [f"h{i:04}" for i in range(16)]
    found = table.of("ml", [Workload(DEPLOYMENTS, "llm")])
    assert (found.total, found.more) == (1000, 984)
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
        async with ApiClient(Configuration(host=f"http://127.0.0.1:{port}")) as client:
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
