"""The GPUs of the fleet: what NVIDIA's own dashboard (12239) shows, and who holds them."""

from __future__ import annotations

from typing import Final

from docs.dashboard.exporter import asked, devices, held
from docs.dashboard.panel import Panel, Query, Row, stat

_GPU: Final = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}}"
_TEMP: Final = devices("DCGM_FI_DEV_GPU_TEMP")

FLEET: Final = Row(
    "Fleet: the GPUs",
    (
        stat(
            "GPUs",
            "Devices that exporters speak of on the chosen nodes; a board cut into MIG instances "
            "is one.",
            "none",
            f"count(count by (Hostname, UUID) ({_TEMP}))",
            "GPUs",
        ),
        stat(
            "Asked for by pods",
            "GPUs, MIG instances and replicas in the requests of pods, by kube-state-metrics.",
            "none",
            f"sum({asked()})",
            "asked for",
        ),
        stat(
            "Mean utilisation",
            "Share of time that devices were busy, over the devices that pods hold.",
            "percent",
            f"avg({held('DCGM_FI_DEV_GPU_UTIL')})",
            "busy",
            low=0,
            high=100,
        ),
        stat(
            "Memory used",
            "Framebuffer used of all that there is.",
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
            "Of all boards together; a board's MIG instances repeat its power and count once.",
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
            "GPU utilisation",
            "Share of time in which the GPU did anything. Boards cut into MIG instances have "
            "none: see activity.",
            "percent",
            (Query(devices("DCGM_FI_DEV_GPU_UTIL"), _GPU),),
            low=0,
            high=100,
        ),
        Panel(
            "Framebuffer memory used",
            "Inference servers reserve it at their start, so it seldom tells load.",
            "mbytes",
            (Query(devices("DCGM_FI_DEV_FB_USED"), _GPU),),
            low=0,
        ),
        Panel(
            "Power usage",
            "What a board draws: the witness when utilisation looks wrong.",
            "watt",
            (Query(devices("DCGM_FI_DEV_POWER_USAGE"), _GPU),),
            low=0,
        ),
        Panel(
            "Temperature",
            "Clocks fall from about 85 °C on.",
            "celsius",
            (Query(_TEMP, _GPU),),
            warn=85,
        ),
        Panel(
            "SM clocks",
            "A busy GPU with a low clock is throttled: look at power and temperature.",
            "hertz",
            (Query(f"{devices('DCGM_FI_DEV_SM_CLOCK')} * 1e6", _GPU),),
            low=0,
        ),
        Panel(
            "Activity: engine, SM, tensor, memory",
            "Shares of time by DCGM's profiling fields, also of MIG instances. Utilisation of "
            "100 % with little SM activity is a GPU that waits.",
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
)
