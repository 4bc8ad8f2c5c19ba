"""Watch which Service serves the cluster's external metrics API.

The APIService ``v1beta1.external.metrics.k8s.io`` exists once in a cluster, and KEDA registers it
where KEDA is installed. If it names another Service, no HPA reads this adapter's external metrics.
No metric of a cluster shows which Service an APIService names, so the alert needs this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec
import structlog

from adapter.config.settings.external import ExternalSettings

log = structlog.get_logger(__name__)

PATH = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
_EVERY = 10.0
"""Seconds between two reads."""


class _Service(msgspec.Struct):
    namespace: str
    name: str


class _Spec(msgspec.Struct):
    service: _Service | None = None


class _APIService(msgspec.Struct):
    spec: _Spec


class APIServiceOwner:
    """Reads which Service the APIService names, and logs every change.

    Args:
        ask: returns the APIService's JSON; raises ClusterAnswerError.
        ours: ``NAMESPACE/NAME`` of the Service that it should name.
    """

    def __init__(self, ask: Callable[[], Awaitable[bytes]], ours: str) -> None:
        self._ask = ask
        self._ours = ours
        self._said = ""
        self.foreign: bool | None = None
        """Whether it names another Service; None if that is not known, or there is no
        APIService."""

    async def run(self) -> None:
        """Read repeatedly until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY)

    async def look(self) -> None:
        """Read once."""
        from apiservice.kube.client import ClusterAnswerError  # noqa: PLC0415 - 35 MB

        try:
            spec = msgspec.json.decode(await self._ask(), type=_APIService).spec
        except (ClusterAnswerError, msgspec.MsgspecError) as error:
            self.foreign = None
            absent = getattr(error, "status", 0) == HTTPStatus.NOT_FOUND
            what = "nobody" if absent else f"unknown: {error}"
        else:
            what = f"{spec.service.namespace}/{spec.service.name}" if spec.service else "itself"
            self.foreign = what != self._ours
        if what != self._said:
            self._said = what
            self._say(what)

    def _say(self, what: str) -> None:
        if self.foreign is False:
            log.info("the API server requests external metrics from this adapter", service=what)
        elif self.foreign:
            log.warning(
                "the API server requests external metrics from another Service",
                service=what,
                ours=self._ours,
                hint="remove that APIService, or set external.enabled to false",
            )
        elif what == "nobody":
            log.warning(
                "no APIService for external metrics",
                hint="create APIService v1beta1.external.metrics.k8s.io",
            )
        else:
            log.info("cannot determine the Service of external metrics", reason=what)


def external_owner(settings: ExternalSettings, client: Any) -> APIServiceOwner | None:
    """Return the watcher, or None if external metrics are off or ``client`` is None."""
    if not settings.enabled or not settings.service or client is None:
        return None
    from apiservice.kube.client import call  # noqa: PLC0415 - 35 MB

    return APIServiceOwner(partial(call, client, "GET", PATH), settings.service)
