"""The yardstick: a handler on the same gRPC server that looks at nothing it is asked."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import grpc
import uvloop
from grpc_health.v1 import health

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda.server import build
from adapter.answers.keda.service import NAME
from adapter.config.settings.keda import KedaSettings

_VALUE = messages.MetricValue(metricName="gpu_utilization", metricValue=70, metricValueFloat=70.5)


async def _get_metrics(request: Any, context: Any) -> messages.GetMetricsResponse:
    return messages.GetMetricsResponse(metricValues=[_VALUE])


async def _serve(port: int) -> None:
    handler = grpc.unary_unary_rpc_method_handler(
        _get_metrics,
        request_deserializer=messages.GetMetricsRequest.FromString,
        response_serializer=messages.GetMetricsResponse.SerializeToString,
    )
    generic = grpc.method_handlers_generic_handler(NAME, {"GetMetrics": handler})
    server = build(generic, health.aio.HealthServicer(), KedaSettings())
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await asyncio.Event().wait()


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
