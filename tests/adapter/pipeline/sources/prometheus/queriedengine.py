"""An engine with the query API, and what a source reads from it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

from adapter.pipeline.sources.prometheus.groupstate import GroupState
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from tests.adapter.pipeline.sources.conftest import (
    Reply,
    Request,
    Web,
    answer,
)

PATH = "/prefix/api/v1/query"
GROUPS = {"usage": ("UTIL",), "memory": ("USED", "FREE")}


def matrix(*series: dict[str, Any], **more: Any) -> bytes:
    data = {"resultType": "matrix", "result": list(series)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def now_series(name: str, value: str = "1", instance: str = "gpu-1:9400") -> dict[str, Any]:
    labels = {"__name__": name, "instance": instance, "gpu": "0"}
    return {"metric": labels, "values": [[time.time(), value]]}


def by_query(replies: Mapping[str, Reply]) -> Reply:
    """Chooses by a word in the query."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        query = asked(request)
        await next(chosen for word, chosen in replies.items() if word in query)(request, writer)

    return reply


def asked(request: Request) -> str:
    return parse_qs(request.body.decode())["query"][0]


def live(name: str, *, more: Mapping[str, Any] | None = None) -> Reply:
    """A series with a new sample each time."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(matrix(now_series(name), **(more or {})))(request, writer)

    return reply


def options(web: Web, **more: Any) -> PrometheusOptions:
    made = PrometheusOptions(
        web.url("/prefix/"), interval=0.02, timeout=5.0, retries=0, lookback=60.0
    )
    return replace(made, **more)


def state(source: PrometheusSource, name: str) -> GroupState:
    return next(group_state for group_state in source.groups if group_state.group.name == name)
