"""KEDA's side: a channel and the five methods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.message import Message

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda.credentials import Credentials
from adapter.answers.keda.server import KedaServer
from adapter.answers.keda.service import NAME
from adapter.config.settings.keda import KedaSettings
from tests.adapter.answers.keda.cluster import Cluster, trigger

LOOPBACK = {"host": "127.0.0.1", "port": 0, "push_interval": 0.01}


class Client:
    """Asks as KEDA's operator does."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def spec(self, **metadata: str) -> Any:
        method = self._unary("GetMetricSpec", messages.GetMetricSpecResponse)
        return await method(reference(**metadata))

    async def metrics(self, name: str = "", **metadata: str) -> Any:
        method = self._unary("GetMetrics", messages.GetMetricsResponse)
        return await method(
            messages.GetMetricsRequest(scaledObjectRef=reference(**metadata), metricName=name)
        )

    async def value(self, **metadata: str) -> float:
        (value,) = (await self.metrics(**metadata)).metricValues
        return float(value.metricValueFloat)

    async def active(self, **metadata: str) -> bool:
        method = self._unary("IsActive", messages.IsActiveResponse)
        return bool((await method(reference(**metadata))).result)

    def stream_active(self, timeout: float | None = None, **metadata: str) -> Any:
        method = self._stream("StreamIsActive", messages.IsActiveResponse)
        return method(reference(**metadata), timeout=timeout)

    def stream_spec(self, **metadata: str) -> Any:
        method = self._stream("StreamMetricSpec", messages.GetMetricSpecResponse)
        return method(reference(**metadata))

    def _unary(self, name: str, answer: type[Message]) -> Any:
        return self.channel.unary_unary(
            f"/{NAME}/{name}", serialize, response_deserializer=answer.FromString
        )

    def _stream(self, name: str, answer: type[Message]) -> Any:
        return self.channel.unary_stream(
            f"/{NAME}/{name}", serialize, response_deserializer=answer.FromString
        )


def serialize(message: Message) -> bytes:
    return message.SerializeToString()


def reference(**metadata: str) -> messages.ScaledObjectRef:
    """The trigger of :func:`tests.adapter.answers.keda.cluster.trigger`, as KEDA sends it."""
    sent = {"scalerAddress": "gpu-metrics-adapter.gpu-metrics.svc:6000"}
    sent |= trigger(**metadata).metadata
    return messages.ScaledObjectRef(name="so", namespace="ml", scalerMetadata=sent)


class Readiness:
    """Of the process around the listener."""

    def __init__(self) -> None:
        self.ready = True

    def __call__(self) -> bool:
        return self.ready


@asynccontextmanager
async def listening(
    cluster: Cluster,
    *,
    credentials: Credentials | None = None,
    ready: Readiness | None = None,
    **options: Any,
) -> AsyncIterator[KedaServer]:
    """A listener on loopback; the caller beats its pulse by running it."""
    chosen = KedaSettings(**{**LOOPBACK, **options})
    server = KedaServer(
        cluster.scaler, chosen, credentials, ready or Readiness(), drain=0.0, grace=5.0
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def connected(
    server: KedaServer, credentials: grpc.ChannelCredentials | None = None
) -> AsyncIterator[Client]:
    """A connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    address = f"localhost:{server.port}"
    channel = (
        grpc.aio.insecure_channel(address, options)
        if credentials is None
        else grpc.aio.secure_channel(address, credentials, options)
    )
    async with channel:
        yield Client(channel)
