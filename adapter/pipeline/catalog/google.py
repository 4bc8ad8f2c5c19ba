"""GKE: what its device plugin reports to Cloud Monitoring about containers, one value per minute.

The names are ``kubernetes.io/container/accelerator/…`` in the spelling of Cloud Monitoring's PromQL
("Mapping Cloud Monitoring metrics to PromQL"). The units, and the fact that ``accelerator_id`` is
the UUID of the device, are from GoogleCloudPlatform/container-engine-accelerators,
``pkg/gpu/nvidia/metrics/metrics.go``. Time-shared devices have no samples.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog import nvidia
from adapter.pipeline.catalog.contradictions import Whole
from adapter.pipeline.catalog.quantities import whole_devices

GROUP: Final = "google"
UTIL: Final = "kubernetes_io:container_accelerator_duty_cycle"
USED: Final = "kubernetes_io:container_accelerator_memory_used"
TOTAL: Final = "kubernetes_io:container_accelerator_memory_total"

FIELDS: Final = whole_devices(UTIL, USED, TOTAL, group=GROUP)
WHOLES: Final = (Whole(UTIL, nvidia.UTIL, spare=nvidia.BUSY, elsewhere=True),)
