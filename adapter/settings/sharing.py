"""Devices that several pods share."""

from __future__ import annotations

from typing import Literal

from adapter.settings.types import LabelSelector, Section
from adapter.sharingpolicy import Policy


class SharingRule(Section):
    """A policy for some pods."""

    policy: Policy
    """``copy``, ``equal``, ``memory`` or ``exact``, as above."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of the pods, by name or shell pattern (``team-*``); empty means all."""
    nodes: LabelSelector = ""
    """Label selector over the pods' nodes; empty means all."""


class SharingSettings(Section):
    """What a pod is given of a device that it shares with other pods: by time-slicing, MPS, a
    resource claim or virtual GPUs."""

    policy: Policy = Policy.COPY
    """``copy``: every pod gets the device's value, marked ``copied``; never too low, so safe
    for scaling up. ``equal``: divided by the running pods known to share the device, marked
    ``split``. ``memory``: divided by the memory that each pod uses or, where that is not known
    of all of them, has asked for (``nvidia.com/gpumem``, ``volcano.sh/vgpu-memory``); left out
    where neither is known. ``exact``: left out unless accounted per process or container. Such
    values are served as they are under every policy, those of a pod's containers on one device
    (HAMi) added up, and what cannot be divided (temperatures, clocks, codes, counts) is copied
    under the dividing policies."""
    rules: tuple[SharingRule, ...] = ()
    """Policies of certain namespaces or node pools; the first rule that applies is taken."""
    mig_normalization: Literal["off", "profile"] = "off"
    """``profile``: ``gpu_utilization`` of a MIG instance is put in relation to what one compute
    instance of its profile can reach by DCGM's engine counter, which is 50 % for 2g and 33 %
    for 3g profiles. An instance that exceeds that has several compute instances, and other
    profiles have no known limit: both are left as they are."""
