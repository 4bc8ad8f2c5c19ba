"""GKE: what its device plugin tells Cloud Monitoring about containers, a value a minute.

The names are ``kubernetes.io/container/accelerator/…`` as Cloud Monitoring's PromQL spells
them ("Mapping Cloud Monitoring metrics to PromQL"). Units, and that ``accelerator_id`` is
the device's UUID: GoogleCloudPlatform/container-engine-accelerators,
``pkg/gpu/nvidia/metrics/metrics.go``. Time-shared devices have no rows.
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
