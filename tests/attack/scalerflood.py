"""Floods KEDA's port for some seconds, and prints how many calls ended with which status."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any

import grpc

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda.service import NAME

CHANNELS = 4
STREAMS = 6000
_ASK = {"metric": "DCGM_FI_DEV_GPU_UTIL", "target": "70", "podSelector": "app=inf"}


def _request(**metadata: str) -> bytes:
    ref = messages.ScaledObjectRef(name="so", namespace="ns", scalerMetadata=_ASK | metadata)
    return messages.GetMetricsRequest(scaledObjectRef=ref).SerializeToString()


def _named(name: str) -> bytes:
    ref = messages.ScaledObjectRef(name=name, namespace="ns", scalerMetadata=_ASK)
    return messages.GetMetricsRequest(scaledObjectRef=ref).SerializeToString()


def _padded(size: int) -> bytes:
    """A question with a field of so many bytes that nobody reads."""
    length = bytes((size & 127 | 128, size >> 7 & 127 | 128, size >> 14))
    return _request() + b"\x9a\x06" + length + bytes(size)


def _selectors(size: int) -> Iterator[bytes]:
    """Selectors of about so many bytes, in up to 60 requirements where that is enough."""
    parts = 60 if size <= 1000 else size // 12
    width = max(1, size // parts - 14)
    for at in count():
        text = ",".join(f"k{at}-{i:x}!={'v' * min(width, 63)}" for i in range(parts))
        yield _request(metricSelector=text)


def _requests(kind: str) -> Iterator[bytes]:
    sized = {f"selectors-of-{size}-bytes": size for size in (1000, 8000, 15000)}
    if kind in sized:
        return _selectors(sized[kind])
    return {
        "messages-of-200000-bytes": lambda: (
            _request(scalerAddress=f"{i:0200000}") for i in count()
        ),
        "names-of-15000-bytes": lambda: (_named(f"{i:015000}") for i in count()),
        "messages-of-60000-bytes": lambda: (_padded(60_000) for _ in count()),
        "one-question-2000-at-once": lambda: (_request() for _ in count()),
        "made-up-metrics": lambda: (_request(metric=f"gpu_utilisation_{i}") for i in count()),
        "devices-of-nobody": lambda: (
            _request(podSelector="app=nobody", metricSelector=f"model=m{i}") for i in count()
        ),
        "no-protobuf": lambda: (b"\xff\xff\xff" for _ in count()),
    }[kind]()


async def _calls(channels: list[grpc.aio.Channel], kind: str, seconds: float) -> Counter[str]:
    requests, statuses = _requests(kind), Counter[str]()
    deadline = time.monotonic() + seconds

    async def one(at: int) -> None:
        ask: Any = channels[at % CHANNELS].unary_unary(f"/{NAME}/GetMetrics")
        while time.monotonic() < deadline:
            statuses[await _status(lambda: ask(next(requests), timeout=seconds))] += 1

    in_flight = 2000 if "2000-at-once" in kind else 32
    await asyncio.gather(*(one(at) for at in range(in_flight)))
    return statuses


async def _streams(channels: list[grpc.aio.Channel], seconds: float) -> Counter[str]:
    """Open streams and hold them, each with a selector of its own."""
    requests = _selectors(1000)
    statuses = Counter[str]()

    async def one(at: int) -> None:
        request = messages.GetMetricsRequest.FromString(next(requests)).scaledObjectRef
        ask: Any = channels[at % CHANNELS].unary_stream(f"/{NAME}/StreamIsActive")
        stream = ask(request.SerializeToString(), timeout=seconds)

        async def read() -> None:
            while await stream.read() is not grpc.aio.EOF:
                pass

        statuses[await _status(read)] += 1

    await asyncio.gather(*(one(at) for at in range(STREAMS)))
    return statuses


async def _status(call: Callable[[], Awaitable[object]]) -> str:
    try:
        await call()
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def _main(port: int, kind: str, seconds: float) -> None:
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) for _ in range(CHANNELS)]
    statuses = await (
        _streams(channels, seconds) if kind == "streams" else _calls(channels, kind, seconds)
    )
    print(dict(statuses))
    for channel in channels:
        await channel.close()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
