"""Intel Gaudi: the Prometheus metric exporter of Habana.

Names are from docs.habana.ai ("Prometheus Metric Exporter", port 41611) and from the exporter's
``exporter.go``, which writes ``Serial``, ``UUID``, ``device``, ``id``, ``pod_namespace`` and
``pod_name`` with every sample, empty for a device without a pod. It gets the pod from the kubelet.

Power is in milliwatts. ``accelerator_power_usage_watts`` of the same page is not read: it repeats
the milliwatts under a name that says watts.

The driver computes the utilization from the power: 0 is the power of an idle card, 100 the limit
(``hl_device_utilization`` in Linux, ``drivers/accel/habanalabs/common/device.c``). So a card at
:data:`WORKING_WATTS` has no utilization of 0.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog.contradictions import WORKING_WATTS, Contradiction
from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.metric import LoadDirection, Unit
from adapter.pipeline.catalog.quantities import MAX_WATTS, celsius, whole_devices

GROUP: Final = "gaudi"
UTIL: Final = "habanalabs_utilization"
USED: Final = "habanalabs_memory_used_bytes"
TOTAL: Final = "habanalabs_memory_total_bytes"
MILLIWATTS: Final = "habanalabs_power_mW"
CHIP_TEMPERATURE: Final = "habanalabs_temperature_onchip"
BOARD_TEMPERATURE: Final = "habanalabs_temperature_onboard"


FIELDS: Final[tuple[Field, ...]] = (
    *whole_devices(UTIL, USED, TOTAL, group=GROUP),
    Field(
        MILLIWATTS,
        Unit.MILLIWATTS,
        1000.0 * MAX_WATTS,
        mig=Mig.BOARD,
        group=GROUP,
        positive=True,
        load=LoadDirection.RISES,
    ),
    celsius(CHIP_TEMPERATURE, group=GROUP),
    celsius(BOARD_TEMPERATURE, group=GROUP),
)

CONTRADICTIONS: Final[tuple[Contradiction, ...]] = (
    Contradiction(UTIL, MILLIWATTS, least=1000.0 * WORKING_WATTS, at_once=True),
)
