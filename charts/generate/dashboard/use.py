"""Are GPUs used, and what does idle cost?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from charts.generate.dashboard.exporter import by_pod, devices, gpu_requests, held_devices
from charts.generate.dashboard.panel import (
    Board,
    Column,
    Query,
    Row,
    bars,
    graph,
    number,
    spread,
    table,
)
from charts.generate.dashboard.vendors import amd, intel, mig

_POD: Final = "{{namespace}}/{{pod}}"
_GPU: Final = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}}"
_TEMP: Final = devices("DCGM_FI_DEV_GPU_TEMP")
_USED, _FREE = devices("DCGM_FI_DEV_FB_USED"), devices("DCGM_FI_DEV_FB_FREE")
_IDLE: Final = 'max by (at_least) (gma_idle_devices{held="true"})'
_ACCOUNT: Final = "namespace, workload, holder, team, model, instance_type, capacity, state"
_WORKLOAD: Final = "namespace, workload"


def use() -> Board:
    """Return the dashboard."""
    return Board(
        "gpu-use",
        "GPU use and cost",
        "Are GPUs used, and what does idle cost?",
        (_now(), _cost(), _workloads(), _devices(), mig(), amd(), intel()),
    )


def _gpus(states: str = ".+") -> str:
    """GPUs that the chosen workloads held in some states, as a mean of 5 minutes.

    Each replica of the adapter counts all pods, so a mean of the replicas comes first.
    """
    chosen = f'namespace=~"$namespace", workload=~"(.+/)?($workload)(-.*)?", state=~"{states}"'
    return f"avg by ({_ACCOUNT}) (rate(gma_gpu_seconds_total{{{chosen}}}[5m]))"


def _price(gpus: str, by: str) -> str:
    """The cost of GPUs for a day, with the price of an hour that OpenCost has for their nodes."""
    price = "max by (instance_type) (node_gpu_hourly_cost)"
    return f"sum by ({by}) ({gpus} * on (instance_type) group_left () {price}) * 24"


def _now() -> Row:
    return Row(
        "Now",
        (
            number(
                "GPUs",
                "Devices that exporters report on the chosen nodes. A board with MIG instances "
                "counts once.",
                f"count(count by (Hostname, UUID) ({_TEMP}))",
            ),
            number(
                "Requested by pods",
                "GPUs, MIG instances and replicas in the requests of pods, from "
                "kube-state-metrics.",
                f"sum({gpu_requests()})",
            ),
            number(
                "Mean utilization",
                "Share of time in which devices were busy, as a mean over the devices that pods "
                "hold.",
                f"avg({held_devices('DCGM_FI_DEV_GPU_UTIL')})",
                unit="percent",
            ),
            number(
                "Memory used",
                "Used share of the total framebuffer.",
                f"sum({_USED}) / (sum({_USED}) + sum({_FREE}))",
                red_from=0.95,
                unit="percentunit",
            ),
            number(
                "Power",
                "Sum over all boards. The MIG instances of a board repeat its power and count "
                "once.",
                f"sum(max by (Hostname, UUID) ({devices('DCGM_FI_DEV_POWER_USAGE')}))",
                unit="watt",
            ),
            number(
                "Hottest",
                "The highest temperature of a GPU.",
                f"max({_TEMP})",
                red_from=85,
                unit="celsius",
            ),
        ),
    )


def _cost() -> Row:
    return Row(
        "What idle GPUs cost",
        (
            number(
                "Idle cost per day",
                "GPUs that pods hold and do not use, at the price of OpenCost "
                "(node_gpu_hourly_cost), in its currency. Without OpenCost there is no price and "
                "no data.",
                f"sum({_price(_gpus('idle'), 'namespace')})",
            ),
            number(
                "Cost per day",
                "All GPUs that pods hold, at the same prices.",
                f"sum({_price(_gpus(), 'namespace')})",
            ),
            number(
                "GPUs idle for a day",
                "Pods hold these GPUs, and no field has shown work. `gpu-metrics-adapter idle -A` "
                "lists them.",
                'max(gma_idle_devices{held="true", at_least="24h"})',
                red_from=1,
            ),
            bars(
                "Idle GPUs that pods hold",
                "Devices on which no field has shown work for at least this long.",
                Query(_IDLE, "{{at_least}}"),
            )
            .span(12)
            .height(4),
            table(
                "Workloads by idle GPUs",
                "Means of 5 minutes, in whole GPUs. A GPU that is used half of the time is half "
                "idle. `other` are the smallest workloads.",
                {"namespace": "Namespace", "workload": "Workload"},
                Column("Idle GPUs", "none", f"sum by ({_WORKLOAD}) ({_gpus('idle')})"),
                Column("GPUs", "none", f"sum by ({_WORKLOAD}) ({_gpus()})"),
                Column(
                    "Used",
                    "percentunit",
                    f"sum by ({_WORKLOAD}) ({_gpus('used')}) "
                    f"/ (sum by ({_WORKLOAD}) ({_gpus('used|idle')}) > 0)",
                ),
                Column("Idle cost per day", "none", _price(_gpus("idle"), _WORKLOAD)),
            ).span(24),
            graph(
                "GPUs that pods hold, by use",
                "used is multiplied by the utilization. unknown: there is no utilization, and "
                "docs/reasons.md explains why.",
                Query(f"sum by (state) ({_gpus()})", "{{state}}"),
                stacked=True,
            ),
            graph(
                "Cost of idle GPUs per day",
                "At the rate of the last 5 minutes.",
                Query(_price(_gpus("idle"), "namespace"), "{{namespace}}"),
                stacked=True,
            ),
            graph(
                "Pods below 10 % utilization",
                "These pods hold devices that others could use.",
                Query(
                    f"sum by (namespace) ({by_pod('avg', 'DCGM_FI_DEV_GPU_UTIL')} < bool 10)",
                    "{{namespace}}",
                ),
            ),
        ),
    )


def _workloads() -> Row:
    utilization = by_pod("avg", "DCGM_FI_DEV_GPU_UTIL")
    requests = gpu_requests('pod=~"($workload)(-.*)?"')
    return Row(
        "Workloads: how pods use their GPUs",
        (
            graph(
                "Utilization by pod",
                "Mean over the pod's devices, as the exporter reports it. An HPA gets the mean "
                "over 30 s, and no value for a pod that is not ready.",
                Query(utilization, _POD),
                unit="percent",
            ).max(100),
            graph(
                "Mean utilization by namespace",
                "The value that an HPA over all chosen pods would see.",
                Query(f"avg by (namespace) ({utilization})", "{{namespace}}"),
                unit="percent",
            ).max(100),
            graph(
                "Memory used by pod",
                "Framebuffer, as a sum over the pod's devices.",
                Query(by_pod("sum", "DCGM_FI_DEV_FB_USED"), _POD),
                unit="mbytes",
            ),
            graph(
                "Tensor activity by pod",
                "Share of time in which tensor cores worked. A low value in inference indicates "
                "small batches or a wrong data type.",
                Query(by_pod("avg", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), _POD),
                unit="percentunit",
            )
            .max(1)
            .span(12),
            graph(
                "Requested GPUs",
                "Requests of pods by resource: whole GPUs, MIG profiles, shared replicas.",
                Query(f"sum by (namespace, resource) ({requests})", "{{namespace}} {{resource}}"),
                stacked=True,
            ).span(12),
        ),
    )


def _column(title: str, unit: str, expr: str) -> Column:
    return Column(title, unit, f"max by (Hostname, gpu, modelName) ({expr})")


def _activity() -> Iterator[Query]:
    for field, what in (
        ("GR_ENGINE_ACTIVE", "engine"),
        ("SM_ACTIVE", "SM"),
        ("PIPE_TENSOR_ACTIVE", "tensor"),
        ("DRAM_ACTIVE", "memory"),
    ):
        series = devices(f"DCGM_FI_PROF_{field}")
        yield Query(f"avg by (Hostname) ({series})", f"{{{{Hostname}}}} {what}")


def _devices() -> Row:
    utilization = devices("DCGM_FI_DEV_GPU_UTIL")
    power, clock = devices("DCGM_FI_DEV_POWER_USAGE"), devices("DCGM_FI_DEV_SM_CLOCK")
    return Row(
        "NVIDIA GPUs",
        (
            spread(
                "Utilization of all GPUs",
                "How many GPUs were about as busy as that: the share of time in which any kernel "
                "ran. Boards with MIG instances have no value: see activity.",
                "percent",
                Query(utilization, _GPU),
            ).span(10),
            table(
                "GPUs now",
                "The board of MIG instances has one row.",
                {"Hostname": "Node", "gpu": "GPU", "modelName": "Model"},
                _column("Utilization", "percent", utilization),
                _column("Memory used", "mbytes", _USED),
                _column("Power", "watt", power),
                _column("Temperature", "celsius", _TEMP),
                _column("SM clock", "hertz", f"{clock} * 1e6"),
            ).span(14),
            graph(
                "Framebuffer memory used",
                "Inference servers reserve it at startup, so it seldom shows the load.",
                Query(_USED, _GPU),
                unit="mbytes",
            ),
            graph(
                "Power usage",
                "Power draw of a board. Compare it when the utilization looks wrong.",
                Query(power, _GPU),
                unit="watt",
            ),
            graph(
                "Temperature",
                "Above about 85 °C the clocks drop.",
                Query(_TEMP, _GPU),
                unit="celsius",
            ),
            graph(
                "SM clocks",
                "A busy GPU with a low clock is throttled: check power and temperature.",
                Query(f"{clock} * 1e6", _GPU),
                unit="hertz",
            ).span(12),
            graph(
                "Activity: engine, SM, tensor, memory",
                "Shares of time from DCGM's profiling fields, also for MIG instances. A "
                "utilization of 100 % with little SM activity means that the GPU waits.",
                *_activity(),
                unit="percentunit",
            )
            .max(1)
            .span(12),
        ),
        collapsed=True,
    )
