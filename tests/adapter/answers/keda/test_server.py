"""The listener as KEDA meets it: a real client over loopback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda.server import KedaServer
from adapter.answers.keda.service import NAME, _ref
from apiservice.http.server import ListenError
from tests.adapter.answers.keda.client import Client, Readiness, connected, listening
from tests.adapter.answers.keda.cluster import STALE, Cluster

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Scene(NamedTuple):
    """A listener that runs, and a client of it."""

    cluster: Cluster
    server: KedaServer
    client: Client
    ready: Readiness


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    cluster, ready = Cluster(), Readiness()
    async with listening(cluster, ready=ready) as server, connected(server) as client:
        running = asyncio.create_task(server.run())
        yield Scene(cluster, server, client, ready)
        running.cancel()


def health_stub(channel: grpc.aio.Channel) -> Any:
    """Its methods have no types."""
    return health_pb2_grpc.HealthStub(channel)


def reflection_stub(channel: grpc.aio.Channel) -> Any:
    untyped: Any = channel
    return reflection_pb2_grpc.ServerReflectionStub(untyped)


async def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_the_spec_has_name_and_target_without_any_data(scene: Scene) -> None:
    scene.cluster.index.synced = False
    spec = await scene.client.spec(metric="DCGM_FI_DEV_GPU_UTIL", target="0.5")
    assert spec == messages.GetMetricSpecResponse(
        metricSpecs=[
            messages.MetricSpec(
                metricName="dcgm_fi_dev_gpu_util", targetSize=1, targetSizeFloat=0.5
            )
        ]
    )


async def test_metrics_are_one_value_under_the_name_that_was_asked_for(scene: Scene) -> None:
    scene.cluster.put("a", 87.5)
    scene.cluster.put("b", 10.0)
    assert await scene.client.metrics("GPU_UTILIZATION") == messages.GetMetricsResponse(
        metricValues=[
            messages.MetricValue(
                metricName="GPU_UTILIZATION", metricValue=98, metricValueFloat=97.5
            )
        ]
    )


async def test_zero_is_zero_in_both_forms(scene: Scene) -> None:
    scene.cluster.put("a", 0.0)
    (value,) = (await scene.client.metrics()).metricValues
    assert (value.metricValue, value.metricValueFloat) == (0, 0.0)
    assert await scene.client.active() is False


REFUSALS: dict[str, tuple[dict[str, str], grpc.StatusCode, str]] = {
    "an unknown key": (
        {"podselector": "a=b"},
        grpc.StatusCode.INVALID_ARGUMENT,
        "podselector: no such key; did you mean podSelector?",
    ),
    "a bad number": (
        {"target": "high"},
        grpc.StatusCode.INVALID_ARGUMENT,
        'target: \'high\' is not a number; write e.g. "70", "0.5" or "2Gi"',
    ),
    "a bad selector": (
        {"podSelector": "a b"},
        grpc.StatusCode.INVALID_ARGUMENT,
        "podSelector: is not a label selector: found 'b' at character 2, expected: ",
    ),
    "an unknown metric": (
        {"metric": "gpu_utilisation"},
        grpc.StatusCode.INVALID_ARGUMENT,
        "metric: no metric is named 'gpu_utilisation'; did you mean gpu_utilization?",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_wrong_metadata_is_an_invalid_argument_of_every_method(
    name: str, scene: Scene
) -> None:
    metadata, code, words = REFUSALS[name]
    client = scene.client
    calls = [client.spec, client.metrics, client.active]
    for answer in [await refused(call(**metadata)) for call in calls]:
        assert answer[0] is code
        assert answer[1].startswith(words)
    for stream in (client.stream_active(None, **metadata), client.stream_spec(**metadata)):
        assert (await refused(stream.read()))[0] is code


async def test_another_metric_than_the_triggers_is_refused(scene: Scene) -> None:
    answer = await refused(scene.client.metrics("gpu_power_watts"))
    expected = "metric: the trigger's is gpu_utilization, and gpu_power_watts was asked for"
    assert answer == (grpc.StatusCode.INVALID_ARGUMENT, expected)


async def test_missing_readings_are_a_failed_precondition_that_says_which_and_why(
    scene: Scene,
) -> None:
    scene.cluster.put("a", STALE)
    words = "gpu_utilization: 1 of 1 pods have no value: a (stale)"
    expected = (grpc.StatusCode.FAILED_PRECONDITION, words)
    assert await refused(scene.client.metrics()) == expected
    assert await refused(scene.client.active()) == expected


async def test_of_two_triggers_only_the_failing_one_is_logged_and_only_when_it_changes(
    scene: Scene,
) -> None:
    scene.cluster.put("a", STALE)
    with capture_logs() as logs:
        for _ in range(3):
            await refused(scene.client.metrics())
            await scene.client.metrics(podSelector="app=nobody")
        scene.cluster.readings["a"] = 5.0
        await scene.client.metrics()
    named = {"namespace": "ml", "name": "so", "metric": "gpu_utilization"}
    reason = "gpu_utilization: 1 of 1 pods have no value: a (stale)"
    assert logs == [
        {"event": "trigger has no value", "log_level": "warning", "reason": reason} | named,
        {"event": "trigger has a value again", "log_level": "info"} | named,
    ]


async def test_a_replica_that_knows_no_pods_yet_is_unavailable(scene: Scene) -> None:
    scene.cluster.index.synced = False
    code, words = await refused(scene.client.metrics())
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "the pods have not been listed yet" in words


async def test_a_bug_is_internal_and_reveals_nothing_more(scene: Scene) -> None:
    scene.cluster.put("a", 1.0)
    scene.cluster.readings.clear()
    answer = await refused(scene.client.metrics())
    assert answer == (grpc.StatusCode.INTERNAL, "internal error: KeyError")


async def test_a_stream_sends_the_state_at_once_and_then_its_changes(scene: Scene) -> None:
    scene.cluster.put("a", 0.0)
    stream = scene.client.stream_active()
    states = [(await stream.read()).result]
    for value in (10.0, 0.0, 5.0):
        scene.cluster.readings["a"] = value
        states.append((await stream.read()).result)
    assert states == [False, True, False, True]


async def test_a_stream_does_not_repeat_itself(scene: Scene) -> None:
    scene.cluster.put("a", 10.0)
    stream = scene.client.stream_active()
    assert (await stream.read()).result is True
    scene.cluster.readings["a"] = 20.0
    await beats(scene, 3)
    scene.cluster.readings["a"] = 0.0
    assert (await stream.read()).result is False


async def test_a_stream_says_nothing_while_nothing_is_known(scene: Scene) -> None:
    scene.cluster.put("a", STALE)
    stream = scene.client.stream_active()
    first = asyncio.create_task(stream.read())
    await beats(scene, 3)
    assert not first.done()
    scene.cluster.readings["a"] = 4.0
    assert (await first).result is True
    scene.cluster.readings["a"] = STALE
    second = asyncio.create_task(stream.read())
    await beats(scene, 3)
    assert not second.done()
    scene.cluster.readings["a"] = 0.0
    assert (await second).result is False


async def beats(scene: Scene, count: int) -> None:
    """Wait until the scaler was asked so often: streams look once a beat."""
    asked = len(scene.cluster.asked)
    while len(scene.cluster.asked) < asked + count:
        scene.cluster.readings.version += 1
        await asyncio.sleep(0.005)


async def test_a_stream_of_specs_sends_one_at_once_and_stays_open(scene: Scene) -> None:
    stream = scene.client.stream_spec(target="33")
    spec = await stream.read()
    assert spec.metricSpecs[0].targetSizeFloat == 33.0
    assert scene.server.stats.streams["StreamMetricSpec"] == 1
    await scene.server.stop()
    assert await stream.read() is grpc.aio.EOF
    assert await stream.code() is grpc.StatusCode.OK


async def test_draining_says_not_serving_and_then_ends_streams_with_ok(scene: Scene) -> None:
    scene.cluster.put("a", 1.0)
    watch = health_stub(scene.client.channel).Watch(
        health_pb2.HealthCheckRequest(service=NAME), timeout=30
    )
    assert (await watch.read()).status == SERVING
    stream = scene.client.stream_active()
    assert (await stream.read()).result is True
    draining = asyncio.create_task(scene.server.drain())
    assert (await watch.read()).status == NOT_SERVING
    watch.cancel()
    assert await stream.read() is grpc.aio.EOF
    assert await stream.code() is grpc.StatusCode.OK
    await draining
    code, _ = await refused(scene.client.spec())
    assert code is grpc.StatusCode.UNAVAILABLE


async def test_health_follows_readiness(scene: Scene) -> None:
    stub = health_stub(scene.client.channel)
    for service in ("", NAME):
        request = health_pb2.HealthCheckRequest(service=service)
        assert (await stub.Check(request)).status == SERVING
    watch = stub.Watch(health_pb2.HealthCheckRequest(service=NAME))
    assert (await watch.read()).status == SERVING
    scene.ready.ready = False
    assert (await watch.read()).status == NOT_SERVING
    scene.ready.ready = True
    assert (await watch.read()).status == SERVING
    watch.cancel()


async def test_reflection_names_the_services_and_describes_the_scaler(scene: Scene) -> None:
    stub = reflection_stub(scene.client.channel)
    calls = stub.ServerReflectionInfo()
    await calls.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    listed = (await calls.read()).list_services_response.service
    await calls.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=NAME))
    (described,) = (await calls.read()).file_descriptor_response.file_descriptor_proto
    await calls.done_writing()
    assert {service.name for service in listed} == {
        NAME,
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert described == messages.DESCRIPTOR.serialized_pb


async def test_an_old_connection_gets_a_goaway_and_its_streams_end_with_ok() -> None:
    cluster = Cluster()
    cluster.put("a", 1.0)
    async with (
        listening(cluster, max_connection_age=0.3) as server,
        connected(server) as client,
    ):
        stream = client.stream_active()
        assert (await stream.read()).result is True
        state = grpc.ChannelConnectivity.READY
        await client.channel.wait_for_state_change(state)
        assert await client.value() == 1.0, "over a new connection"
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK


async def test_calls_beyond_the_limit_are_refused() -> None:
    cluster = Cluster()
    cluster.put("a", 1.0)
    async with listening(cluster, max_calls=1) as server, connected(server) as client:
        stream = client.stream_active()
        await stream.read()
        code, _ = await refused(client.spec())
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_streams_beyond_their_share_are_refused_and_polls_find_room() -> None:
    cluster = Cluster()
    cluster.put("a", 1.0)
    async with listening(cluster, max_calls=5) as server, connected(server) as client:
        streams = [client.stream_active() for _ in range(4)]
        for stream in streams:
            await stream.read()
        answer = await refused(client.stream_active().read())
        expected = "4 streams are open, which is the limit"
        assert answer == (grpc.StatusCode.RESOURCE_EXHAUSTED, expected)
        assert await client.value() == 1.0
        assert server.stats.calls["StreamIsActive", "RESOURCE_EXHAUSTED"] == 1
        assert server.stats.streams["StreamIsActive"] == 4


@pytest.mark.parametrize("method", ["GetMetricSpec", "GetMetrics", "IsActive"])
async def test_a_message_that_is_not_protobuf_is_rejected_and_not_logged(
    method: str, scene: Scene
) -> None:
    call: Any = scene.client.channel.unary_unary(f"/{NAME}/{method}")
    with capture_logs() as logs:
        code, words = await refused(call(b"\xff\xff\xff"))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert words.endswith("3 bytes that are not of externalscaler.proto")
    assert logs == []
    assert scene.server.stats.calls[method, "INVALID_ARGUMENT"] == 1


async def test_a_stream_without_a_protobuf_is_refused(scene: Scene) -> None:
    call: Any = scene.client.channel.unary_stream(f"/{NAME}/StreamIsActive")
    code, _ = await refused(call(b"\xff\xff\xff").read())
    assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_what_grpc_itself_would_log_is_counted_and_not_printed(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    call: Any = scene.client.channel.unary_unary("/grpc.health.v1.Health/Check")
    await refused(call(b"\xff\xff\xff"))
    assert scene.server.stats.library_errors() == 1
    assert not logging.getLogger("grpc").propagate
    assert "Traceback" not in capfd.readouterr().err


def test_nothing_of_a_message_is_kept_but_what_is_read() -> None:
    known = messages.ScaledObjectRef(name="so", namespace="ml", scalerMetadata={"metric": "m"})
    padding = b"\x9a\x06\xe8\x07" + bytes(1000)  # field 99, of 1000 bytes
    message = messages.ScaledObjectRef.FromString(known.SerializeToString() + padding)
    ref = _ref(message)
    assert type(ref.metadata) is dict, "a map of the message would keep the message"
    assert (ref.namespace, ref.name, ref.metadata) == ("ml", "so", {"metric": "m"})


async def test_a_message_that_is_far_too_long_is_refused_before_it_is_read(scene: Scene) -> None:
    code, words = await refused(scene.client.spec(scalerAddress="x" * 100_000))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in words
    assert scene.server.stats.calls == {}


async def test_connections_beyond_the_limit_are_closed_and_later_ones_find_room() -> None:
    async with listening(Cluster(), max_connections=2) as server, connected(server) as first:
        await first.spec()
        async with connected(server) as second:
            await second.spec()
            async with connected(server) as third:
                code, _ = await refused(third.spec())
                assert code is grpc.StatusCode.UNAVAILABLE
            await first.spec()
        async with asyncio.timeout(30):
            while not await _served(server):  # noqa: ASYNC110 - it knows no events
                await asyncio.sleep(0.05)


async def test_a_connection_that_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapter.answers.keda.server._HANDSHAKE", 0.2)
    async with listening(Cluster()) as server, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("localhost", server.port)
        while await reader.read(1000):
            pass
        writer.close()


async def test_a_connection_without_a_call_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapter.answers.keda.server._IDLE", 0.2)
    async with listening(Cluster()) as server, connected(server) as client:
        await client.spec()
        async with asyncio.timeout(60):
            await client.channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        assert (await client.spec()) is not None, "over a new connection"


async def test_a_call_with_long_headers_is_rejected(scene: Scene) -> None:
    call: Any = scene.client.channel.unary_unary(f"/{NAME}/GetMetricSpec")
    code, _ = await refused(call(b"", metadata=[("x-long", "x" * 20_000)]))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert scene.server.stats.calls == {}
    await scene.client.spec()


async def _served(server: KedaServer) -> bool:
    async with connected(server) as client:
        try:
            await client.spec()
        except grpc.aio.AioRpcError:
            return False
        return True


async def test_made_up_triggers_do_not_fill_the_log(scene: Scene) -> None:
    with capture_logs() as logs:
        for number in range(100):
            await refused(scene.client.metrics(target=f"x{number}"))
    assert len(logs) < 125, "one line each until a minute has its number of them"
    assert any("further ones are not logged" in entry["event"] for entry in logs)


async def test_a_stream_ends_with_its_clients_deadline_and_is_forgotten(scene: Scene) -> None:
    scene.cluster.put("a", 1.0)
    stream = scene.client.stream_active(timeout=0.2)
    await stream.read()
    assert (await refused(stream.read()))[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    while scene.server.stats.streams["StreamIsActive"]:  # noqa: ASYNC110 - it knows no events
        await asyncio.sleep(0.005)
    assert scene.server.stats.calls["StreamIsActive", "CANCELLED"] == 1


async def test_calls_are_counted_by_method_and_status(scene: Scene) -> None:
    scene.cluster.put("a", STALE)
    await scene.client.spec()
    await refused(scene.client.metrics())
    await refused(scene.client.active(target="x"))
    assert scene.server.stats.calls == {
        ("GetMetricSpec", "OK"): 1,
        ("GetMetrics", "FAILED_PRECONDITION"): 1,
        ("IsActive", "INVALID_ARGUMENT"): 1,
    }


async def test_a_port_in_use_is_named_with_the_fix(scene: Scene) -> None:
    with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{scene.server.port} for KE"):
        async with listening(Cluster(), port=scene.server.port):
            """Not reached."""


async def test_it_listens_on_ipv6_too() -> None:
    async with listening(Cluster(), host="::1") as server:
        assert server.port > 0
