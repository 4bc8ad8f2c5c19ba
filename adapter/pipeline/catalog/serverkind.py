"""The type that declares a kind of inference server or gateway: one declaration states everything.

The fields, the formulas of the neutral metrics, the presets of ``generate``, the texts of
``doctor`` and the tables of ``docs/inference.md`` follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.metric import Combine, Formula, LoadDirection, Scope, Unit
from adapter.pipeline.catalog.servermeasures import Measure

WAITING: Final = "inference_requests_waiting"
RUNNING: Final = "inference_requests_running"
CACHE: Final = "inference_kv_cache_utilization"
GATEWAY_WAITING: Final = "inference_gateway_requests_waiting"
GATEWAY_RUNNING: Final = "inference_gateway_requests_running"
MAX_REQUESTS: Final = 1e9
ON_RAY: Final = ("ReplicaId", "WorkerId")
"""What Ray adds: replicas of one pod."""
ONE_MODEL: Final = frozenset[str]()
"""The parts of a page that describes one model."""


class Scaling(Enum):
    """What follows the load of a server, so that replicas can follow it too."""

    BATCH = "requests in the batch"
    SLOTS = "requests in slots, of which a server has few"
    DEVICE = "the utilization of the GPU: the server reports no running requests"


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A program that serves a page about its requests.

    Args:
        title: the program's name in texts.
        image: pattern of the image, without its tag, and with the repository before it.
        port: the default port of the page.
        path: the default path of the page.
        tag: a part of the image's tag; empty if the image alone is enough.
        note: what a user must know or set before the page can be read; empty if nothing.
        fields: what is read of the page.
        formulas: name of a neutral metric -> ways to compute it from the fields.
        measures: what it counts about its requests, which is read on demand.
        names: how names of series begin by which a page of the program is recognized.
        engines: kinds whose series the page consists of, if it has none of its own.
        scaling: what replicas follow; None for a gateway, which is not scaled so.
        reserves: the option with the part of a GPU's memory that it takes when it starts, however
            much its requests need; empty if it takes what they need, or if that is not known.
    """

    title: str
    image: re.Pattern[str]
    port: int
    path: str = "/metrics"
    tag: str = ""
    note: str = ""
    fields: tuple[Field, ...] = ()
    formulas: Mapping[str, tuple[Formula, ...]] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    names: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    scaling: Scaling | None = Scaling.BATCH
    reserves: str = ""

    @property
    def gateway(self) -> bool:
        """Whether it is a program in front of servers."""
        return self.scaling is None

    @property
    def queue(self) -> str:
        """The metric of its queue."""
        return GATEWAY_WAITING if self.gateway else WAITING


def image_pattern(names: str) -> re.Pattern[str]:
    """Return the pattern of images whose last part begins with one of the names.

    Args:
        names: alternatives of a regular expression.
    """
    return re.compile(rf"(?:^|/)(?:{names})[^/]*$")


def requests(
    name: str, part_labels: frozenset[str], *spellings: str, series: str = "", kind: str = ""
) -> Field:
    """Return the field of a number of requests.

    Args:
        name: the usual name.
        part_labels: labels that identify the parts of the server.
        spellings: other names on pages.
        series: the name on pages, if several fields share it and ``request_type`` differs.
        kind: the value of ``request_type``.
    """
    return Field(
        name,
        Unit.REQUESTS,
        MAX_REQUESTS,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        renamed=tuple((spelling, 1.0, Unit.REQUESTS) for spelling in spellings),
        group="servers",
        scope=Scope.SERVER,
        divisible=False,
        series=series,
        where=(("request_type", kind),) if kind else (),
        part_labels=part_labels,
        load=LoadDirection.RISES,
    )


def cache(name: str, part_labels: frozenset[str], *spellings: str, series: str = "") -> Field:
    """Return the field of the used share of a KV cache, 0 to 1; see :func:`requests`."""
    return Field(
        name,
        Unit.RATIO,
        1.0,
        renamed=tuple((spelling, 1.0, Unit.RATIO) for spelling in spellings),
        group="servers",
        scope=Scope.SERVER,
        divisible=False,
        series=series,
        where=(("kv_cache_block_type", "fraction"),) if series else (),
        part_labels=part_labels,
        load=LoadDirection.RISES,
    )


def mark(series: str, part_labels: frozenset[str]) -> Field:
    """Return a field that only shows what kind of page it is on; it has no metric."""
    return Field(
        f"{series} on the page",
        Unit.NUMBER,
        float("inf"),
        group="servers",
        scope=Scope.SERVER,
        divisible=False,
        series=series,
        part_labels=part_labels,
        load=LoadDirection.STEADY,
    )
