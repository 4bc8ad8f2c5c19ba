"""What NVML says of processes that share a GPU: run it on a machine with one, beside nothing else.

    python load/sharedgpu.py FOLDER        # needs PyTorch and nvidia-ml-py; about seven minutes

Processes work in known ways, in phases. Each second it writes what NVML reports for the device and
for each process, to ``FOLDER/sharedgpu.csv``, and at the end a table per phase. dcgm-exporter reads
the same calls: ``nvmlDeviceGetUtilizationRates`` and ``nvmlDeviceGetProcessUtilization``.
`docs/sharing.md` says what follows for the adapter.
"""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, NamedTuple

PHASES: Final[tuple[tuple[str, int, dict[str, str]], ...]] = (
    # name, seconds, what each process does
    ("no process", 15, {}),
    ("contexts only", 25, {"a": "idle", "b": "idle"}),
    ("one saturates, one idles", 40, {"a": "compute", "b": "idle"}),
    ("two saturate", 40, {"a": "compute", "b": "compute"}),
    ("three saturate", 40, {"a": "compute", "b": "compute", "c": "compute"}),
    ("one bound by memory, one idles", 40, {"a": "memory", "b": "idle"}),
    ("compute beside memory", 40, {"a": "compute", "b": "memory"}),
    ("one alternates 3 s, one idles", 40, {"a": "alternate", "b": "idle"}),
    ("one saturates, one alternates", 40, {"a": "compute", "b": "alternate"}),
    ("bursts of 20 ms in 200 ms", 40, {"a": "burst", "b": "idle"}),
    ("all over", 20, {}),
)


class Row(NamedTuple):
    """One second of a phase."""

    phase: str
    second: float
    gpu: int
    memory: int
    watts: float
    sm_mhz: int
    memory_mhz: int
    celsius: int
    used_mib: float
    processes: str
    """``name=sm/memory@age`` of each process with a sample: percent, seconds since the sample."""
    held: str
    """``name=MiB`` of each process that holds memory."""
    active: str
    """GPM's graphics activity, SM activity and DRAM bandwidth in percent, where the card has it."""


def work(kind: str) -> None:
    """Work in one way until the process is ended."""
    import torch  # noqa: PLC0415 - only the processes that work need it

    buffer = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    big = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    print("ready", flush=True)
    began = time.monotonic()
    while True:
        now = time.monotonic() - began
        if kind == "idle" or (kind == "alternate" and int(now / 3) % 2):
            time.sleep(0.05)
        elif kind == "memory":
            buffer[: 2 << 30].copy_(big)
            torch.cuda.synchronize()
        elif kind == "burst":
            until = time.monotonic() + 0.02
            while time.monotonic() < until:
                torch.mm(a, a)
                torch.cuda.synchronize()
            time.sleep(0.18)
        else:
            for _ in range(8):
                torch.mm(a, a)
            torch.cuda.synchronize()


class Watch:
    """Reads NVML.

    Args:
        nvml: the module ``pynvml``, initialized.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.device = nvml.nvmlDeviceGetHandleByIndex(0)
        self._seen = 0
        self._gpm: Any = None

    def about(self) -> str:
        """Return the card and the driver."""
        nvml = self._nvml
        return f"{nvml.nvmlDeviceGetName(self.device)}, driver {nvml.nvmlSystemGetDriverVersion()}"

    def row(self, phase: str, second: float, names: dict[int, str]) -> Row:
        """Read everything once."""
        nvml, device = self._nvml, self.device
        rates = nvml.nvmlDeviceGetUtilizationRates(device)
        return Row(
            phase,
            round(second, 1),
            rates.gpu,
            rates.memory,
            nvml.nvmlDeviceGetPowerUsage(device) / 1000,
            nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
            nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
            nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
            nvml.nvmlDeviceGetMemoryInfo(device).used / (1 << 20),
            " ".join(self._utilization(names)),
            " ".join(
                f"{names.get(p.pid, p.pid)}={(p.usedGpuMemory or 0) / (1 << 20):.0f}"
                for p in nvml.nvmlDeviceGetComputeRunningProcesses(device)
            ),
            self._activity(),
        )

    def _utilization(self, names: dict[int, str]) -> list[str]:
        """The newest sample of each process since the last call, as dcgm-exporter asks for it."""
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(self.device, self._seen)
        except self._nvml.NVMLError as error:
            return [type(error).__name__]
        newest: dict[int, Any] = {}
        for sample in samples:
            if sample.timeStamp >= getattr(newest.get(sample.pid), "timeStamp", 0):
                newest[sample.pid] = sample
        self._seen = max([self._seen, *(sample.timeStamp for sample in samples)])
        now = time.time()
        return [
            f"{names.get(pid, pid)}={s.smUtil}/{s.memUtil}@{now - s.timeStamp / 1e6:.1f}"
            for pid, s in sorted(newest.items())
        ]

    def _activity(self) -> str:
        """What GPM measured since the last call; empty where the card has no GPM."""
        nvml = self._nvml
        try:
            sample = nvml.nvmlGpmSampleAlloc()
            nvml.nvmlGpmSampleGet(self.device, sample)
            before, self._gpm = self._gpm, sample
            if before is None:
                return ""
            get = nvml.c_nvmlGpmMetricsGet_t()
            get.version = nvml.NVML_GPM_METRICS_GET_VERSION
            wanted = (
                nvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
                nvml.NVML_GPM_METRIC_SM_UTIL,
                nvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
            )
            get.numMetrics = len(wanted)
            get.sample1, get.sample2 = before, sample
            for place, metric in enumerate(wanted):
                get.metrics[place].metricId = metric
            nvml.nvmlGpmMetricsGet(get)
            values = "/".join(f"{get.metrics[n].value:.1f}" for n in range(len(wanted)))
            nvml.nvmlGpmSampleFree(before)
        except (nvml.NVMLError, AttributeError) as error:
            return type(error).__name__
        return values


def phase(watch: Watch, name: str, seconds: int, doing: dict[str, str]) -> list[Row]:
    """Run the processes of a phase, and watch them."""
    running = {
        subprocess.Popen(
            [sys.executable, __file__, "--work", kind], stdout=subprocess.PIPE, text=True
        ): process
        for process, kind in doing.items()
    }
    try:
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        names = {process.pid: f"{label}:{doing[label]}" for process, label in running.items()}
        began = time.monotonic()
        rows = []
        while (elapsed := time.monotonic() - began) < seconds:
            rows.append(watch.row(name, elapsed, names))
            time.sleep(max(0.0, len(rows) - (time.monotonic() - began)))
        return rows
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def table(rows: list[Row]) -> str:
    """Return the middle, least and most of each figure, a line per phase."""
    lines = []
    for name in dict.fromkeys(row.phase for row in rows):
        phase_rows = [row for row in rows if row.phase == name][3:]  # without the first seconds
        figures = {
            title: [float(getattr(row, title)) for row in phase_rows]
            for title in ("gpu", "memory", "watts", "sm_mhz", "memory_mhz", "celsius", "used_mib")
        }
        text = ", ".join(
            f"{title} {statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
            for title, values in figures.items()
        )
        lines.append(f"{name}: {text}")
        sums, process = [], defaultdict(list)
        for row in phase_rows:
            parts = [part.partition("=") for part in row.processes.split() if "=" in part]
            sums.append(sum(int(value.partition("/")[0]) for _, _, value in parts))
            for label, _, value in parts:
                process[label].append(value)
        middle, most = statistics.median(sums or [0]), max(sums or [0])
        lines.append(f"  sum of processes {middle}, at most {most}")
        for label, values in sorted(process.items()):
            sm = [int(value.partition("/")[0]) for value in values]
            age = [float(value.partition("@")[2]) for value in values]
            lines.append(
                f"  {label}: {len(values)} samples in {len(phase_rows)} s, "
                f"SM {statistics.median(sm):.0f} ({min(sm)} to {max(sm)}), "
                f"zeros {sm.count(0)}, age {statistics.median(age):.1f} s"
            )
        lines.append(f"  GPM (graphics/SM/DRAM): {' '.join(row.active for row in phase_rows[::6])}")
    return "\n".join(lines)


def main() -> None:
    """Watch all phases."""
    import pynvml  # noqa: PLC0415 - a machine without a GPU has no use for it

    folder = Path(sys.argv[1])
    pynvml.nvmlInit()
    watch = Watch(pynvml)
    print(watch.about(), time.strftime("%Y-%m-%d"), flush=True)
    rows: list[Row] = []
    try:
        for name, seconds, doing in PHASES:
            rows += phase(watch, name, seconds, doing)
    finally:
        write(folder / "sharedgpu.csv", rows)


def write(path: Path, rows: list[Row]) -> None:
    """Write all rows, and print their table."""
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(Row._fields)
        writer.writerows(rows)
    print(table(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        main()
