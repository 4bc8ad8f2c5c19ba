"""The probe: a CapacityBuffer with 0 replicas shows whether a controller implements buffers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.nodepool.act.lifeline import LifelineError, Lifelines
from adapter.nodepool.act.methods import capacitybuffer
from adapter.nodepool.act.methods.choice import MethodChoice, choose
from adapter.nodepool.act.serverside import WriteError, WriteFailure, Writer
from adapter.nodepool.model import names
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.served import ServedApis

_AGAIN: Final = 300.0
"""Seconds after which a refused or deleted probe is written again."""


class Probe:
    """The leader writes the probe once and keeps it, so that a controller may accept it later."""

    def __init__(
        self, writer: Writer, lifelines: Lifelines, settings: NodepoolSettings, namespace: str
    ) -> None:
        self._writer = writer
        self._lifelines = lifelines
        self._settings = settings
        self._namespace = namespace
        self._written: float | None = None
        self._refused: tuple[float, str] | None = None
        """Time and reason of the last refused write."""

    def forget(self) -> None:
        """Write it again: another replica may have been the leader meanwhile."""
        self._written = self._refused = None

    async def method(
        self, served: ServedApis, buffers: Iterable[HeadroomObject], now: float
    ) -> MethodChoice:
        """Return the provisioning method. Write a probe first if one is needed and allowed."""
        # Only the probe is evidence: tenants may write the status of their own buffers.
        probe = (self._namespace, names.PROBE)
        settings, waited = self._settings, None
        rows = [row for row in buffers if row.key == probe and not row.problem]
        if settings.apply and settings.provisioning_method == "auto" and served.buffers:
            problem = await self._keep(served, rows, now)
            if self._written is None:
                return MethodChoice(None, f"no probe of CapacityBuffers: {problem}")
            waited = now - self._written
        return choose(settings.provisioning_method, served, rows, waited, settings.probe_wait)

    async def _keep(self, served: ServedApis, buffers: list[HeadroomObject], now: float) -> str:
        """Write the probe. Return why that failed; empty if it exists."""
        if self._written is not None and not buffers and now - self._written > _AGAIN:
            self._written = None
        try:
            lifeline = await self._lifelines.keep(self._namespace, now)
            if self._written is not None:
                return ""
            if self._refused is not None and now - self._refused[0] < _AGAIN:
                return self._refused[1]
            for each in capacitybuffer.probe(
                self._namespace, served.buffers, lifeline, self._settings.placeholder.image
            ):
                await self._writer.apply(each)
        except WriteError as error:
            if error.failure not in (WriteFailure.UNREACHABLE, WriteFailure.NOT_LEADING):
                self._refused = now, str(error)
            return str(error)
        except LifelineError as error:
            return str(error)
        self._written, self._refused = now, None
        return ""
