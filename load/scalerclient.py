"""Asks KEDA's external scaler as KEDA's operator does, in a process of its own.

Speaks with its driver as :mod:`load.client` does: a :class:`~load.plan.Calls` in, ``ready``,
a line, an :class:`~load.plan.Outcome` out.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time

import grpc
import msgspec
import uvloop

from adapter.answers.keda import externalscaler_pb2 as messages
from load.fleet import NAMESPACE, workload_name
from load.plan import Calls, Outcome

SCALER = "/externalscaler.ExternalScaler/GetMetrics"
_CHECK_EVERY = 64


class ScalerAnswerError(RuntimeError):
    """An answer held no value."""


class Load:
    """The calls of one plan over one connection."""

    def __init__(self, calls: Calls, channel: grpc.aio.Channel) -> None:
        self._calls = calls
        self._requests = itertools.cycle([request(index) for index in range(calls.objects)])
        self._ask = channel.unary_unary(
            SCALER,
            request_serializer=messages.GetMetricsRequest.SerializeToString,
            response_deserializer=messages.GetMetricsResponse.FromString,
        )
        self._latencies: list[int] = []

    async def drive(self, seconds: float) -> Outcome:
        """Ask for ``seconds``.

        Raises:
            ScalerAnswerError: see there.
        """
        self._latencies = []
        begin, cpu = time.perf_counter(), time.process_time()
        pace = self._ask_at_pace if self._calls.rate else self._ask_repeatedly
        async with asyncio.TaskGroup() as group:
            for index in range(self._calls.in_flight):
                group.create_task(pace(index, begin, begin + seconds))
        return Outcome(
            elapsed=time.perf_counter() - begin,
            cpu=time.process_time() - cpu,
            body=messages.GetMetricsResponse().ByteSize(),
            latencies=self._latencies,
        )

    async def _ask_repeatedly(self, at: int, begin: float, until: float) -> None:
        while time.perf_counter() < until:
            await self._ask_once()

    async def _ask_at_pace(self, at: int, begin: float, until: float) -> None:
        step = self._calls.in_flight / self._calls.rate
        due = begin + at / self._calls.rate
        while due < until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self._ask_once()
            due += step

    async def _ask_once(self) -> None:
        sent = time.perf_counter()
        answer = await self._ask(next(self._requests))
        self._latencies.append(int((time.perf_counter() - sent) * 1e6))
        if len(self._latencies) % _CHECK_EVERY == 1:
            (value,) = answer.metricValues
            if not value.metricValueFloat > 0:
                raise ScalerAnswerError(f"no value in an answer: {answer}")


def request(at: int) -> messages.GetMetricsRequest:
    """The question of one ScaledObject, about the pods of its own workload."""
    metadata = {
        "scalerAddress": "gpu-metrics-adapter.gpu-metrics.svc:6000",
        "metric": "gpu_utilization",
        "target": "70",
        "podSelector": f"workload={workload_name(at)}",
    }
    return messages.GetMetricsRequest(
        metricName="gpu_utilization",
        scaledObjectRef=messages.ScaledObjectRef(
            name=f"object-{at}", namespace=NAMESPACE, scalerMetadata=metadata
        ),
    )


async def _main(calls: Calls) -> Outcome:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{calls.port}") as channel:
        load = Load(calls, channel)
        await load.drive(calls.warm_up)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        # Blocking is right: nothing else is to run until the word to go comes.
        sys.stdin.buffer.readline()
        return await load.drive(calls.seconds)


def main() -> None:
    """Serve one plan."""
    calls = msgspec.json.decode(sys.stdin.buffer.readline(), type=Calls)
    outcome = uvloop.run(_main(calls))
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")


if __name__ == "__main__":
    main()
