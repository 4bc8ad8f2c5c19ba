"""Settings: devices that several pods share."""

from __future__ import annotations

from typing import Literal

from adapter.config.settings.types import LabelSelector, Section
from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy


class SharingRule(Section):
    """A policy for some pods."""

    policy: SharingPolicy
    """``copy``, ``equal``, ``memory`` or ``exact``, as for ``sharing.policy``."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of the pods, as names or shell patterns (``team-*``). If empty, every
    namespace."""
    nodes: LabelSelector = ""
    """Label selector for the nodes of the pods. If empty, every node."""


class SharingSettings(Section):
    """The value of a device that pods share by time-slicing, MPS, a resource claim or virtual
    GPUs."""

    policy: SharingPolicy = SharingOptions().policy
    """``copy``: every pod gets the value of the device, which is never too low. ``equal``: the
    value divided by the number of running pods that are known to share the device. ``memory``:
    divided in proportion to the memory that each pod uses, or else requests (``nvidia.com/gpumem``,
    ``volcano.sh/vgpu-memory``). ``exact``: left out unless it is measured per process or container.
    Such values are served unchanged under every policy, and those of a pod's containers on one
    device are added up."""
    rules: tuple[SharingRule, ...] = ()
    """Policies for some namespaces or nodes. The first matching rule applies."""
    mig_normalization: Literal["off", "profile"] = "off"
    """``profile``: relate ``gpu_utilization`` of a MIG instance to what one compute instance of its
    profile can reach on DCGM's engine counter: 50 % for 2g and 33 % for 3g profiles."""
