"""Build the view API: which resources ``serve`` shows with kubectl, and under which group."""

from __future__ import annotations

from typing import Final

from adapter.cluster.lookup import ObjectLookup
from adapter.serve.pipeline import PipelineSwitcher
from adapter.settings.view import ViewSettings
from adapter.view.devices import Devices
from adapter.view.gpupods import GPUPODS, GpuPods
from adapter.view.gpus import GPUS, Gpus
from apiservice.view.resource import ServedResource, ViewGroup

GROUP: Final = "view.gpu-metrics-adapter.io"
VERSION: Final = "v1alpha1"


def view_group(
    settings: ViewSettings, pipelines: PipelineSwitcher, objects: ObjectLookup
) -> ViewGroup | None:
    """Return the resources of the view API, or None if it is off."""
    if not settings.enabled:
        return None
    pods, devices = objects.pod_index, Devices()
    return ViewGroup(
        GROUP,
        VERSION,
        (
            ServedResource(GPUS, Gpus(pipelines, pods, devices)),
            ServedResource(GPUPODS, GpuPods(pipelines, pods, devices)),
        ),
    )
