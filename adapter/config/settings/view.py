"""Settings: the view API, by which kubectl shows GPUs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.config.settings.types import Section


class ViewSettings(Section):
    """The view API ``view.gpu-metrics-adapter.io``, read by ``kubectl get gpus``, ``gpunodes``,
    ``gpupods``, ``gpuworkloads`` and ``gpuhistories``."""

    enabled: bool = True
    """Serve the API, and watch HPAs to show them with their workloads. The chart sets this key."""
    history_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 30)] = 8 << 20
    """Bytes for the history of HPAs and workloads: a point a minute for a day. The oldest hours go
    first. A change needs a restart."""
