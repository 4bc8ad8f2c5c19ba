"""Build the view API: which resources ``serve`` shows with kubectl, and under which group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapter.cluster.lookup import ObjectLookup
from adapter.rules.service import RuleService
from adapter.view.devices import Devices
from adapter.view.gpupods import GPUPODS, GpuPods
from adapter.view.gpus import GPUS, Gpus
from adapter.view.gpuworkloads import GPUWORKLOADS, GpuWorkloads
from adapter.view.snapshots import CurrentValues
from apiservice.view.resource import ServedResource, ViewGroup

GROUP: Final = "view.gpu-metrics-adapter.io"
VERSION: Final = "v1alpha1"


def view_groups(
    values: CurrentValues, objects: ObjectLookup, rules: RuleService | None
) -> Sequence[ViewGroup]:
    """Return the groups of read-only resources: the view API, and ``metrics.k8s.io``."""
    groups = (view_group(values, objects), None if rules is None else rules.resource_group)
    return [group for group in groups if group is not None]


def view_group(values: CurrentValues, objects: ObjectLookup) -> ViewGroup | None:
    """Return the resources of the view API; None if it is off, so that HPAs are not read."""
    if objects.hpas is None:
        return None
    pods, hpas, devices = objects.pod_index, objects.hpas, Devices()
    return ViewGroup(
        GROUP,
        VERSION,
        (
            ServedResource(GPUS, Gpus(values, pods, devices)),
            ServedResource(GPUPODS, GpuPods(values, pods, devices, hpas)),
            ServedResource(GPUWORKLOADS, GpuWorkloads(values, pods, hpas)),
        ),
    )
