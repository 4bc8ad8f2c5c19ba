"""How each list of the page is read: tables, events, and HPAs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal
from urllib.parse import quote

from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import GRANTED, ClientError
from adapter.tools.explain.headroom import HeldHeadroom, all_headroom
from adapter.tools.overview.scalers import read_scalers
from adapter.tools.overview.viewlists import read_view_list

Status = Literal["waiting", "ok", "forbidden", "missing", "failed"]

GPUS: Final = "gpus"
NODES: Final = "gpunodes"
POOLS: Final = "gpupools"
HEADROOM: Final = "headroom"
PODS: Final = "gpupods"
WORKLOADS: Final = "gpuworkloads"
HPAS: Final = "hpas"
EVENTS: Final = "events"
_EVENTS_OF: Final = (
    "involvedObject.kind=HorizontalPodAutoscaler",
    "reason=FailedScheduling",
    "reason=TriggeredScaleUp",
)


@dataclass(frozen=True, slots=True)
class PanelState:
    """How the last reading of a list ended."""

    panel: str
    status: Status = "waiting"
    message: str = ""
    """One line; empty if the list could be read completely."""
    command: str = ""
    """Grants a missing right."""
    updated: float | None = None
    """Epoch seconds of the data."""
    took: float | None = None
    """Seconds that the last reading took."""

    def json(self) -> Json:
        """The row of the page."""
        return {
            "panel": self.panel,
            "status": self.status,
            "message": self.message,
            "command": self.command,
            "updated": self.updated,
            "took": None if self.took is None else round(self.took, 3),
        }


def failed_state(before: PanelState, error: ClientError, took: float) -> PanelState:
    """Return the state after a failure; the data stay, with their age."""
    text = str(error)
    status: Status = "failed"
    if error.status == 403:
        status = "forbidden"
    elif "does not serve" in text:
        status = "missing"
    message, _, command = text.partition(GRANTED)
    return PanelState(
        before.panel, status, message, command.partition("`")[0], before.updated, took
    )


def namespace_path(namespace: str) -> str:
    """Return the part of a path that names a namespace; empty for all of them."""
    return f"/namespaces/{quote(namespace, safe='')}" if namespace else ""


Reader = Callable[[Api], Awaitable[Any]]


def readers(namespace: str) -> dict[str, Reader]:
    """Return how each list is read, by panel.

    Args:
        namespace: the only one that is read; empty: all.
    """
    place = namespace_path(namespace)

    async def events(api: Api) -> list[Json]:
        rows = []
        for fields in _EVENTS_OF:
            rows += await api.list(f"/api/v1{place}/events", fields=fields)
        return rows

    async def headroom(api: Api) -> HeldHeadroom:
        held = await all_headroom(api)
        # Most users have no right in the adapter's namespace: the table says so.
        if held.problem is not None and held.problem.status != HTTPStatus.FORBIDDEN:
            raise held.problem
        return held

    return {
        GPUS: lambda api: read_view_list(api, "gpus"),
        NODES: lambda api: read_view_list(api, "gpunodes"),
        POOLS: lambda api: read_view_list(api, "gpupools"),
        HEADROOM: headroom,
        PODS: lambda api: read_view_list(api, "gpupods", place),
        WORKLOADS: lambda api: read_view_list(api, "gpuworkloads", place),
        HPAS: lambda api: read_scalers(api, place),
        EVENTS: events,
    }
