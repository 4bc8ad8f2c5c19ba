"""How fast an exporter's page is read, beside prometheus_client's own parser.

Run ``python load/parse.py``: one 8-GPU dcgm-exporter page with every label it writes, pod
labels included, 25 fields. *Cold* is the first page of an exporter, *warm* every later one.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from adapter.exposition import LabelMemo, parse

FIELDS = (
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_MEM_COPY_UTIL",
    "DCGM_FI_DEV_ENC_UTIL",
    "DCGM_FI_DEV_DEC_UTIL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
)
ROUNDS = 200
PEER_ROUNDS = 30


class Figure(NamedTuple):
    """One parser's speed on one page."""

    name: str
    micros: float
    megabytes_per_second: float


def page(gpus: int = 8, *, bare: bool = False) -> bytes:
    """An exporter's page; ``bare`` leaves out what a 3.x exporter did not write yet."""
    lines: list[str] = []
    for position, field in enumerate(FIELDS):
        lines.append(f"# HELP {field} What this field says about the device (in its unit).")
        lines.append(f"# TYPE {field} gauge")
        for gpu in range(gpus):
            extra = "" if bare else f'pci_bus_id="00000000:{gpu + 10}:00.0",'
            host = "" if bare else 'Hostname="gpu-node-17",DCGM_FI_DRIVER_VERSION="580.82.07",'
            number = f"{0.1 * gpu:.6f}" if "PROF" in field else str(position + gpu)
            lines.append(
                f'{field}{{gpu="{gpu}",UUID="GPU-ee71aa82-daa8-8d70-fbe8-cd5089760{gpu:03}",{extra}'
                f'device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",{host}'
                f'container="server",namespace="ml",pod="llm-7d9c5b8f6-x{gpu:04}"}} {number}'
            )
    return "\n".join([*lines, ""]).encode()


def timed(work: Callable[[], object], rounds: int) -> float:
    """The median CPU seconds of one call."""
    samples = []
    for _ in range(rounds):
        begin = time.thread_time()
        work()
        samples.append(time.thread_time() - begin)
    return statistics.median(samples)


def measure(body: bytes) -> list[Figure]:
    text = body.decode()
    memo = LabelMemo()
    runs: list[tuple[str, Callable[[], object], int]] = [
        (
            "prometheus_client",
            lambda: [list(f.samples) for f in text_string_to_metric_families(text)],
            PEER_ROUNDS,
        ),
        ("cold", lambda: parse(body, time=1.0), ROUNDS),
        ("warm", lambda: parse(body, time=1.0, memo=memo), ROUNDS),
    ]
    figures = []
    for name, work, rounds in runs:
        seconds = timed(work, rounds)
        figures.append(Figure(name, seconds * 1e6, len(body) / seconds / 1e6))
    return figures


def main() -> None:
    for title, body in (("all labels", page()), ("3.x labels", page(bare=True))):
        rows = len(parse(body, time=1.0).rows)
        print(f"{title}: {len(body) / 1000:.1f} kB, {rows} rows")
        peer, *ours = measure(body)
        for figure in (peer, *ours):
            ratio = figure.megabytes_per_second / peer.megabytes_per_second
            print(
                f"  {figure.name:<18} {figure.micros:9.0f} us"
                f" {figure.megabytes_per_second:9.2f} MB/s {ratio:7.1f} x"
            )


if __name__ == "__main__":
    main()
