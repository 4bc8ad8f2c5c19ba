"""Which device a row is about.

(UUID, GPU_I_ID) for dcgm-exporter; where a page lacks one of them, what stands in for it
(gpu-telemetry, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_UUID = ("UUID", "uuid", "gpu_uuid", "device_uuid", "deviceuuid")
_INDEX = ("gpu", "gpu_id", "minor_number", "deviceidx")
_MODEL = ("modelName", "card_series", "dev_name")
_HOST = ("node", "kubernetes_node", "Hostname", "hostname")
_NULL = "<<<NULL>>>"
"""What DCGM writes for a string that it does not have."""


class Device(NamedTuple):
    """A whole device or a MIG instance."""

    id: str
    """UUID, UUID/GPU_I_ID, or node/index where the page has no UUID."""
    board: str
    """The whole device's identity; ``id`` itself unless this is a MIG instance."""
    model: str
    """Empty if the page does not say."""
    mig_profile: str
    """Such as ``1g.5gb``; empty on whole devices and where the page does not say."""

    @property
    def mig(self) -> bool:
        """It is a MIG instance."""
        return self.id != self.board


def device(labels: Mapping[str, str], origin: str) -> Device | None:
    """The device that a row's labels name; None if they name none.

    Args:
        labels: of the row.
        origin: what tells this exporter's device 0 from another's, if its rows do not.
    """
    board = _uuid(labels) or _indexed(labels, origin)
    if board is None:
        return None
    profile = _first(labels, ("GPU_I_PROFILE", "dra_mig_profile"))
    instance = _first(labels, ("GPU_I_ID", "dra_mig_device_uuid"))
    compute = _first(labels, ("GPU_CI_ID",))
    parts = [part for part in (board, instance, compute if instance else "") if part]
    return Device("/".join(parts), board, _first(labels, _MODEL), profile if instance else "")


def host(labels: Mapping[str, str]) -> str:
    """The node by the row's own words: may be ``localhost`` or a pod's name (#572)."""
    return _first(labels, _HOST)


def _uuid(labels: Mapping[str, str]) -> str | None:
    uuid = _first(labels, _UUID)
    return uuid if uuid.strip("0-") else None


def _indexed(labels: Mapping[str, str], origin: str) -> str | None:
    index = _first(labels, _INDEX)
    if not index:
        return None
    partition = labels.get("gpu_partition_id", "")
    suffix = f".{partition}" if partition not in ("", "NA") else ""
    return f"{host(labels) or origin}/{index}{suffix}"


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        value = labels.get(name)
        if value and value != _NULL:
            return value
    return ""
