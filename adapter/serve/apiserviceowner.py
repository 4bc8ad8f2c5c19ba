"""Which Service serves the cluster's external metrics API.

The APIService ``v1beta1.external.metrics.k8s.io`` exists once in a cluster, and KEDA takes it where
it is installed. If it points elsewhere, no HPA asks this adapter for external metrics. No metric
of a cluster says which Service an APIService names, so the alert about it needs this look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import msgspec
import structlog

from adapter.settings.external import ExternalSettings

log = structlog.get_logger(__name__)

PATH = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
_EVERY = 10.0
"""Seconds between looks."""


class AskError(Exception):
    """The API server did not say."""

    def __init__(self, message: str, *, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent
        """There is no such APIService."""


Ask = Callable[[], Awaitable[bytes]]
"""The APIService's JSON; raises AskError."""


class _Service(msgspec.Struct):
    namespace: str
    name: str


class _Spec(msgspec.Struct):
    service: _Service | None = None


class _APIService(msgspec.Struct):
    spec: _Spec


class APIServiceOwner:
    """Looks whom the API server asks for external metrics, and says so when that changes.

    Args:
        ask: reads the APIService.
        ours: ``NAMESPACE/NAME`` of the Service that it should point to.
    """

    def __init__(self, ask: Ask, ours: str) -> None:
        self._ask = ask
        self._ours = ours
        self._said = ""
        self.foreign: bool | None = None
        """Whether it points elsewhere; None while that is not known, and where there is none."""

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY)

    async def look(self) -> None:
        """Look once."""
        try:
            spec = msgspec.json.decode(await self._ask(), type=_APIService).spec
        except AskError as error:
            self.foreign = None
            what = "nobody" if error.absent else f"unknown: {error}"
        except msgspec.MsgspecError as error:
            self.foreign = None
            what = f"unknown: {error}"
        else:
            what = f"{spec.service.namespace}/{spec.service.name}" if spec.service else "itself"
            self.foreign = what != self._ours
        if what != self._said:
            self._said = what
            self._say(what)

    def _say(self, what: str) -> None:
        if self.foreign is False:
            log.info("the API server asks us for external metrics", service=what)
        elif self.foreign:
            log.warning(
                "the API server asks somebody else for external metrics",
                service=what,
                ours=self._ours,
                hint="remove that APIService, or set external.enabled to false",
            )
        elif what == "nobody":
            log.warning(
                "the API server asks nobody for external metrics",
                hint="create APIService v1beta1.external.metrics.k8s.io",
            )
        else:
            log.info("not known whom the API server asks for external metrics", why=what)


def external_owner(settings: ExternalSettings, client: Any) -> APIServiceOwner | None:
    """Who looks, if anybody is to; ``client`` is None without a cluster."""
    if not settings.enabled or not settings.service or client is None:
        return None

    async def ask() -> bytes:
        from apiservice.kube.client import ClusterAnswerError, call  # noqa: PLC0415 - 35 MB

        try:
            return await call(client, "GET", PATH)
        except ClusterAnswerError as error:
            raise AskError(str(error), absent=error.status == HTTPStatus.NOT_FOUND) from None

    return APIServiceOwner(ask, settings.service)
