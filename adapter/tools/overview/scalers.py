"""Reads the HPAs and the ScaledObjects of a cluster, or of a namespace, with the user's rights."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from adapter.answers.keda.manifest import SCALEDOBJECTS, SeenScaledObject, read_scaledobject
from adapter.figures import count
from adapter.pipeline.cluster.hpamanifest import HpaManifest, reduce
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError

_HPAS: Final = "/apis/autoscaling/v2"
_ODD: Final = (ValueError, TypeError, LookupError, AttributeError)
_PATIENCE: Final = 10.0
"""Seconds for the list of ScaledObjects."""
_SLICE: Final = 0.005
"""Seconds for which HPAs are looked at before other tasks continue."""


class ReadScalers(NamedTuple):
    """What was read."""

    hpas: Sequence[ShownHpa]
    scaled: Sequence[SeenScaledObject] = ()
    odd: int = 0
    """HPAs whose form is not known."""
    unread: str = ""
    """Why ScaledObjects could not be read; empty if they could, or the cluster has no KEDA."""

    @property
    def left_out(self) -> str:
        """What the list lacks; empty if it is complete."""
        parts = [f"{count(self.odd, 'HPA')} of an unknown form not shown"] if self.odd else []
        if self.unread:
            parts.append(f"ScaledObjects without an HPA are not shown: {self.unread}")
        return "; ".join(parts)


def read_hpa(hpa: Json) -> ShownHpa:
    """Return what is kept of an ``autoscaling/v2`` HPA.

    Raises:
        ValueError: the object is not an HPA.
    """
    try:
        return reduce(msgspec.convert(hpa, HpaManifest))
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


async def read_scalers(api: Api, within: str = "", *, labels: str = "") -> ReadScalers:
    """Return the HPAs and ScaledObjects.

    Args:
        api: the cluster.
        within: ``/namespaces/NAME``; empty for the whole cluster.
        labels: a label selector. KEDA gives an HPA the labels of its ScaledObject (keda
            ``controllers/keda/hpa.go``).

    Raises:
        ClientError: the HPAs cannot be read.
    """
    path = f"{SCALEDOBJECTS}{within}/scaledobjects"
    # Not `gather`: a failure of one list would hide that the reader was cancelled meanwhile.
    scaling = asyncio.create_task(_read_scaledobjects(api, path, labels))
    try:
        hpas, odd = await _hpas(api, within, labels)
        scaled, unread = await scaling
    finally:
        scaling.cancel()
        await asyncio.gather(scaling, return_exceptions=True)  # its connection is closed then
    return ReadScalers(hpas, scaled, odd, unread)


async def _hpas(api: Api, within: str, labels: str) -> tuple[list[ShownHpa], int]:
    hpas: list[ShownHpa] = []
    odd = 0
    # Page by page: the garbage collector would visit each object of a long list.
    path = f"{_HPAS}{within}/horizontalpodautoscalers"
    async for rows in api.pages(path, labels=labels):
        odd += await _add(rows, hpas)
    hpas.sort(key=lambda hpa: hpa.key)
    return hpas, odd


async def _read_scaledobjects(
    api: Api, path: str, labels: str
) -> tuple[list[SeenScaledObject], str]:
    """Return the ScaledObjects, and why they could not be read. They hold up no HPA."""
    scaled: list[SeenScaledObject] = []
    try:
        async with asyncio.timeout(_PATIENCE):
            async for rows in api.pages(path, labels=labels):
                scaled += map(read_scaledobject, rows)
    except ClientError as error:
        return [], await _why_unread(api, error)
    except TimeoutError:
        return [], f"no answer within {_PATIENCE:g} s"
    return scaled, ""


async def _why_unread(api: Api, error: ClientError) -> str:
    """Return why ScaledObjects could not be read. Without KEDA, the API server forbids or does not
    find them."""
    if error.status == 403:
        try:
            await api.get(SCALEDOBJECTS)
        except ClientError as other:
            return "" if other.status == 404 else str(error)
    return "" if error.status == 404 else str(error)


async def _add(rows: Sequence[Any], hpas: list[ShownHpa]) -> int:
    """Add what is kept of HPAs; return the number of those with an unknown form."""
    odd = 0
    began = time.perf_counter()
    for row in rows:
        try:
            hpas.append(read_hpa(row))
        except _ODD:
            odd += 1
        if time.perf_counter() - began > _SLICE:
            await asyncio.sleep(0)
            began = time.perf_counter()
    return odd
