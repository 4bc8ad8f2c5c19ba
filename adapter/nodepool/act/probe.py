"""The probe: a CapacityBuffer with 0 replicas shows whether a controller implements buffers.

It also makes Karpenter 1.14 remove the nodes of headroom that was deleted. Karpenter keeps a node
until a provisioning pass has found no virtual pod on it (``HasBufferPods`` in
``pkg/controllers/disruption/emptiness.go``). In 1.14, the deletion of a CapacityBuffer starts no
pass: ``pkg/controllers/capacitybuffer/controller.go`` only drops its virtual pods. Each existing
buffer starts one every 30 s. So the probe outlives the headroom, under a Job of its own. From 1.15
on, the deletion starts a pass (``TriggerReconcile``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.nodepool.act.lifeline import RENEW, LifelineError, Lifelines
from adapter.nodepool.act.methods import capacitybuffer
from adapter.nodepool.act.methods.choice import MethodChoice, choose
from adapter.nodepool.act.serverside import WriteError, WriteFailure, Writer
from adapter.nodepool.model import names
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.servedapis import ServedApis

_AGAIN: Final = 300.0
"""Seconds after which a refused or deleted probe is written again."""
_AFTER: Final = 90.0
"""Minimum seconds from the end of the lifeline to that of the probe: Karpenter's 30 s, the 10 s for
which it collects pods, the time to the deletion, and one interval of the controller."""


def job_seconds(lifeline: float) -> float:
    """Return the seconds of the probe's Job, so that it ends after each lifeline.

    Args:
        lifeline: seconds of the lifeline.
    """
    return (lifeline + _AFTER) / RENEW


class Probe:
    """The leader writes the probe once and keeps it, so that a controller may accept it later."""

    def __init__(self, writer: Writer, settings: NodepoolSettings, namespace: str) -> None:
        self._writer = writer
        self._jobs = Lifelines(
            writer, job_seconds(settings.lifeline), settings.placeholder.image, names.PROBE
        )
        self._settings = settings
        self._namespace = namespace
        self._written: float | None = None
        self._refused: tuple[float, str] | None = None
        """Time and reason of the last refused write."""

    def forget(self) -> None:
        """Write it again: another replica may have been the leader meanwhile."""
        self._written = self._refused = None
        self._jobs.forget()

    async def method(
        self, served: ServedApis, buffers: Iterable[HeadroomObject], now: float
    ) -> MethodChoice:
        """Return the provisioning method. Write a probe first if one is needed and allowed."""
        # Only the probe is evidence: tenants may write the status of their own buffers.
        probe = (self._namespace, names.PROBE)
        settings, waited, problem = self._settings, None, ""
        setting = settings.provisioning_method
        rows = [row for row in buffers if row.key == probe and not row.problem]
        if settings.apply and setting != "placeholder" and served.buffers:
            problem = await self._keep(served, rows, now)
            if self._written is not None:
                waited, problem = now - self._written, ""
            elif setting == "auto":
                return MethodChoice(None, f"no probe of CapacityBuffers: {problem}")
        choice = choose(setting, served, rows, waited, settings.probe_wait)
        if not problem:
            return choice
        warning = f"Karpenter may keep the nodes of deleted headroom, without a probe: {problem}"
        return MethodChoice(choice.method, f"{choice.reason}; {warning}")

    async def _keep(self, served: ServedApis, buffers: list[HeadroomObject], now: float) -> str:
        """Write the probe. Return why that failed; empty if it exists."""
        if self._written is not None and not buffers and now - self._written > _AGAIN:
            self._written = None
        if self._refused is not None and now - self._refused[0] < _AGAIN:
            return self._refused[1]
        try:
            lifeline = await self._jobs.keep(self._namespace, now)
            if self._written is not None:
                return ""
            for manifest in capacitybuffer.probe(
                self._namespace, served.buffers, lifeline, self._settings.placeholder.image
            ):
                await self._writer.apply(manifest)
        except WriteError as error:
            if error.failure not in (WriteFailure.UNREACHABLE, WriteFailure.NOT_LEADING):
                self._refused = now, str(error)
            return str(error)
        except LifelineError as error:
            return str(error)
        self._written, self._refused = now, None
        return ""
