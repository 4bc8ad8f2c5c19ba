"""The GPUs of the fleet: the panels of NVIDIA's dashboard 12239, and the requests of pods."""

from __future__ import annotations

from typing import Final

from charts.generate.dashboard.exporter import asked, devices, held
from charts.generate.dashboard.panel import Panel, Query, Row, stat

_GPU: Final = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}}"
_TEMP: Final = devices("DCGM_FI_DEV_GPU_TEMP")

FLEET: Final = Row(
    "Fleet: the GPUs",
    (
        stat(
            "GPUs",
            "Devices that exporters report on the chosen nodes. A board with MIG instances counts "
            "once.",
            "none",
            f"count(count by (Hostname, UUID) ({_TEMP}))",
            "GPUs",
        ),
        stat(
            "Requested by pods",
            "GPUs, MIG instances and replicas in the requests of pods, from kube-state-metrics.",
            "none",
            f"sum({asked()})",
            "requested",
        ),
        stat(
            "Mean utilization",
            "Share of time in which devices were busy, as a mean over the devices that pods hold.",
            "percent",
            f"avg({held('DCGM_FI_DEV_GPU_UTIL')})",
            "busy",
            low=0,
            high=100,
        ),
        stat(
            "Memory used",
            "Used share of the total framebuffer.",
            "percentunit",
            f"sum({devices('DCGM_FI_DEV_FB_USED')}) / (sum({devices('DCGM_FI_DEV_FB_USED')}) "
            f"+ sum({devices('DCGM_FI_DEV_FB_FREE')}))",
            "used",
            low=0,
            high=1,
            warn=0.95,
        ),
        stat(
            "Power",
            "Sum over all boards. The MIG instances of a board repeat its power and count once.",
            "watt",
            f"sum(max by (Hostname, UUID) ({devices('DCGM_FI_DEV_POWER_USAGE')}))",
            "power",
        ),
        stat(
            "Hottest",
            "The highest temperature of a GPU.",
            "celsius",
            f"max({_TEMP})",
            "hottest",
            warn=85,
        ),
        Panel(
            "GPU utilization",
            "Share of time in which any kernel ran. Boards with MIG instances have no value: see "
            "activity.",
            "percent",
            (Query(devices("DCGM_FI_DEV_GPU_UTIL"), _GPU),),
            low=0,
            high=100,
        ),
        Panel(
            "Framebuffer memory used",
            "Inference servers reserve it at startup, so it seldom shows the load.",
            "mbytes",
            (Query(devices("DCGM_FI_DEV_FB_USED"), _GPU),),
            low=0,
        ),
        Panel(
            "Power usage",
            "Power draw of a board. Compare it when the utilization looks wrong.",
            "watt",
            (Query(devices("DCGM_FI_DEV_POWER_USAGE"), _GPU),),
            low=0,
        ),
        Panel(
            "Temperature",
            "Above about 85 °C the clocks drop.",
            "celsius",
            (Query(_TEMP, _GPU),),
            warn=85,
        ),
        Panel(
            "SM clocks",
            "A busy GPU with a low clock is throttled: check power and temperature.",
            "hertz",
            (Query(f"{devices('DCGM_FI_DEV_SM_CLOCK')} * 1e6", _GPU),),
            low=0,
        ),
        Panel(
            "Activity: engine, SM, tensor, memory",
            "Shares of time from DCGM's profiling fields, also for MIG instances. A utilization of "
            "100 % with little SM activity means that the GPU waits.",
            "percentunit",
            tuple(
                Query(f"avg by (Hostname) ({devices(f'DCGM_FI_PROF_{field}')})", legend)
                for field, legend in (
                    ("GR_ENGINE_ACTIVE", "{{Hostname}} engine"),
                    ("SM_ACTIVE", "{{Hostname}} SM"),
                    ("PIPE_TENSOR_ACTIVE", "{{Hostname}} tensor"),
                    ("DRAM_ACTIVE", "{{Hostname}} memory"),
                )
            ),
            low=0,
            high=1,
        ),
    ),
    collapsed=True,
)
