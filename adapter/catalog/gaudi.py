"""Intel Gaudi: the Prometheus metric exporter of Habana.

Names are from docs.habana.ai ("Prometheus Metric Exporter", port 41611) and from the exporter's
``exporter.go``, which writes ``Serial``, ``UUID``, ``device``, ``id``, ``pod_namespace`` and
``pod_name`` with every sample, empty for a device without a pod. It gets the pod from the kubelet.

Power is in milliwatts. ``accelerator_power_usage_watts`` of the same page is not read: it repeats
the milliwatts under a name that says watts.
"""

from __future__ import annotations

from typing import Final

from adapter.catalog.field import Field, Mig
from adapter.catalog.metric import Unit
from adapter.catalog.units import MAX_CELSIUS, MAX_WATTS
from adapter.catalog.wholedevices import whole_devices

GROUP: Final = "gaudi"
UTIL: Final = "habanalabs_utilization"
USED: Final = "habanalabs_memory_used_bytes"
TOTAL: Final = "habanalabs_memory_total_bytes"
MILLIWATTS: Final = "habanalabs_power_mW"
CHIP_TEMPERATURE: Final = "habanalabs_temperature_onchip"
BOARD_TEMPERATURE: Final = "habanalabs_temperature_onboard"


def _temperature(name: str) -> Field:
    return Field(
        name,
        Unit.CELSIUS,
        MAX_CELSIUS,
        mig=Mig.BOARD,
        group=GROUP,
        divisible=False,
        positive=True,
    )


FIELDS: Final[tuple[Field, ...]] = (
    *whole_devices(UTIL, USED, TOTAL, group=GROUP),
    Field(
        MILLIWATTS,
        Unit.MILLIWATTS,
        1000.0 * MAX_WATTS,
        mig=Mig.BOARD,
        group=GROUP,
        positive=True,
    ),
    _temperature(CHIP_TEMPERATURE),
    _temperature(BOARD_TEMPERATURE),
)
