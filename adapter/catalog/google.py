"""GKE: what its device plugin reports to Cloud Monitoring about containers, one value per minute.

The names are ``kubernetes.io/container/accelerator/…`` in the spelling of Cloud Monitoring's PromQL
("Mapping Cloud Monitoring metrics to PromQL"). The units, and the fact that ``accelerator_id`` is
the UUID of the device, are from GoogleCloudPlatform/container-engine-accelerators,
``pkg/gpu/nvidia/metrics/metrics.go``. Time-shared devices have no samples.
"""

from __future__ import annotations

from typing import Final

from adapter.catalog.field import Field, Mig
from adapter.catalog.metric import Combine, Kind, Unit
from adapter.catalog.units import MAX_BYTES

GROUP: Final = "google"
UTIL: Final = "kubernetes_io:container_accelerator_duty_cycle"
USED: Final = "kubernetes_io:container_accelerator_memory_used"
TOTAL: Final = "kubernetes_io:container_accelerator_memory_total"


def _bytes(name: str) -> Field:
    return Field(
        name,
        Unit.BYTES,
        MAX_BYTES,
        mig=Mig.INVALID,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        group=GROUP,
    )


FIELDS: Final[tuple[Field, ...]] = (
    Field(UTIL, Unit.PERCENT, 100.0, kind=Kind.MEAN, mig=Mig.INVALID, group=GROUP),
    _bytes(USED),
    _bytes(TOTAL),
)
