"""The past of an HPA from a Prometheus that scrapes kube-state-metrics."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import time
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import msgspec

from adapter.client.errors import ClientError
from apiservice.kube.failures import transport_failure
from apiservice.runtime.servertrust import certificate_fix, client_context

Json = dict[str, Any]

_HPA: Final = "kube_horizontalpodautoscaler"
_QUERIES: Final = {
    "value": f"{_HPA}_status_target_metric",
    "goal": f"{_HPA}_spec_target_metric",
    "current": f"{_HPA}_status_current_replicas",
    "desired": f"{_HPA}_status_desired_replicas",
}
_POINTS: Final = 480
_STEP: Final = 15
_LONGEST: Final = 20.0
_system_trust: Final = functools.cache(client_context)
_MOST: Final = 8 << 20
"""Bytes of one answer."""

_Points = dict[float, float]


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, rename={"kind": "resultType"}):
    result: list[_Series]
    kind: str = ""


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


_decode = msgspec.json.Decoder(_Answer).decode


async def read_range(url: str, namespace: str, name: str, seconds: int) -> Json:
    """Return ``time``, ``value``, ``goal``, ``current`` and ``desired`` of an HPA.

    The value is that of the metric that comes first by name.

    Raises:
        ClientError: Prometheus did not answer, or knows nothing of the HPA.
    """
    step = max(_STEP, math.ceil(seconds / _POINTS))
    end = int(time.time())
    named = f"{{namespace={json.dumps(namespace)},horizontalpodautoscaler={json.dumps(name)}}}"
    window = {"start": str(end - seconds), "end": str(end), "step": str(step)}
    timeout = aiohttp.ClientTimeout(total=_LONGEST)
    connector = aiohttp.TCPConnector(ssl=_system_trust())
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        found = await asyncio.gather(
            *(
                _query(session, url, {**window, "query": f"{metric}{named}"})
                for metric in _QUERIES.values()
            )
        )
    columns = dict(zip(_QUERIES, (_first(url, series) for series in found), strict=True))
    times = sorted({at for points in columns.values() for at in points})
    if not times:
        raise ClientError(
            f"Prometheus at {url} has no {_HPA} series of {namespace}/{name}: check that it "
            "scrapes kube-state-metrics",
            404,
        )
    rows: Mapping[str, list[float | None]] = {
        key: [points.get(at) for at in times] for key, points in columns.items()
    }
    return {"time": times, **rows}


async def _query(session: aiohttp.ClientSession, url: str, query: Json) -> list[_Series]:
    where = f"{url.rstrip('/')}/api/v1/query_range"
    try:
        async with session.get(where, params=query, allow_redirects=False) as response:
            status, body = response.status, await response.content.read(_MOST + 1)
            while len(body) <= _MOST and (more := await response.content.read(1 << 16)):
                body += more
        if len(body) > _MOST:
            raise ClientError(
                f"the answer of Prometheus at {url} is longer than {_MOST >> 20} MiB: ask for a "
                "shorter time"
            )
    except TimeoutError:
        raise ClientError(
            f"Prometheus at {url} did not answer in {_LONGEST:g} s: ask for a shorter time, or "
            "check that this machine reaches it",
            504,
        ) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = " ".join(transport_failure(error).split())[:200]
        hint = certificate_fix(why, "SSL_CERT_FILE") or "check --prometheus"
        raise ClientError(f"Prometheus at {url} cannot be read: {why}; {hint}") from None
    try:
        answer = _decode(body)
    except msgspec.MsgspecError as error:
        raise _garbled(url, f"status {status}, {error}") from None
    if answer.status != "success" or answer.data is None:
        why = " ".join((answer.error or answer.status).split())[:200]
        raise ClientError(f"Prometheus at {url} rejects the query: {why}; see its log")
    return answer.data.result


def _first(url: str, series: list[_Series]) -> _Points:
    """Return the points of the metric that comes first by name."""
    if not series:
        return {}
    chosen = min(series, key=lambda each: sorted(each.metric.items()))
    points = {}
    for at, text in chosen.values:
        try:
            number = float(text)
        except ValueError:
            raise _garbled(url, f"a value is {text[:40]!r}") from None
        if math.isfinite(number):
            points[at] = number
    return points


def _garbled(url: str, why: str) -> ClientError:
    why = " ".join(why.split())[:200]
    return ClientError(
        f"the answer of {url} is not one of Prometheus' query API ({why}): check that "
        "--prometheus names a Prometheus, with the prefix of its paths if it has one"
    )
