"""Settings: the view API, by which kubectl shows GPUs."""

from __future__ import annotations

from adapter.config.settings.types import Section


class ViewSettings(Section):
    """The view API ``view.gpu-metrics-adapter.io``, read by ``kubectl get gpus``, ``gpunodes``,
    ``gpupods`` and ``gpuworkloads``."""

    enabled: bool = True
    """Serve the API, and watch HorizontalPodAutoscalers to show them with their workloads. The
    chart sets this key."""
