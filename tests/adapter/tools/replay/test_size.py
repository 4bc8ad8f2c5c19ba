"""``replay recommend``: which MIG instance or share of a GPU would have been enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.pipeline.catalog.modelmemory import gigabytes_of
from tests.adapter.commandline import invoke
from tests.adapter.tools.replay.day import PERIOD, Day, SizedDay, manifest, waves, write

GIB = 1024.0
H100 = "NVIDIA H100 80GB HBM3"


def recommended(folder: Path, day: Day, *arguments: str) -> dict[str, Any]:
    """The answer for the HPA of a day."""
    write(folder / "day.gma", day)
    (folder / "hpa.yaml").write_text(yaml.safe_dump(day.hpa))
    files = ("--from", f"{folder}/day.gma", "-f", f"{folder}/hpa.yaml")
    period = ("--sync-period", f"{PERIOD:g}s")
    done = invoke("replay", "recommend", "ml/llm", *files, *period, *arguments, "-o", "json")
    assert done.code == 0, done.output
    item: dict[str, Any] = json.loads(done.output)["items"][0]
    return item


def size_lines(item: dict[str, Any]) -> list[str]:
    return [text for text in item["evidence"] if text.startswith("size")]


def size(item: dict[str, Any]) -> dict[str, Any]:
    """What it says of the only model of GPU."""
    (gpu,) = item["size"]["gpus"]
    assert isinstance(gpu, dict)
    return gpu


def steady(second: float) -> float:
    """Two pods at 60 %."""
    return 120.0


def prices(folder: Path) -> tuple[str, str]:
    file = folder / "prices.yaml"
    file.write_text("currency: EUR\nprices: {H100: 7.0}\n")
    return "--prices", str(file)


def test_low_use_of_whole_gpus_fits_a_mig_instance(tmp_path: Path) -> None:
    item = recommended(tmp_path, SizedDay(steady, syncs=720), *prices(tmp_path))
    gpu = size(item)
    # 9.0 GiB and a fifth of headroom need more than the 10 GB of 1g.10gb.
    assert (gpu["migProfile"], gpu["migInstances"], gpu["podsPerGpu"]) == ("1g.20gb", 4, 7)
    assert gpu["computeSignal"] == "gpu_sm_activity"
    assert gpu["computeP99Percent"] == pytest.approx(6.0, abs=0.2)
    assert (gpu["pricePerHour"], gpu["migPricePerHour"]) == (7.0, pytest.approx(1.0))
    first, second = size_lines(item)
    assert first == (
        "size: at most 9/79.6Gi of memory and 6% of the SMs (p99) over 47h "
        f"({gpu['looks']} looks at 2 pods): a MIG instance 1g.20gb would have been enough, at 1/7 "
        "of the price, by its compute: 1.00 instead of 7.00 EUR an hour (your prices); a GPU has "
        "room for 4 of them"
    )
    assert second.startswith("size: or 7 such pods would have fitted on one GPU by time-slicing")


def test_a_cheaper_model_is_compared_by_its_memory_alone(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    # Of Q9 the memory is not known.
    file.write_text("prices: {H100: 7.0, L40S: 3.0, L4: 2.0, H200: 8.0, Q9: 1.0}\n")
    item = recommended(tmp_path, SizedDay(steady), "--prices", str(file))
    assert (size(item)["otherModel"], size(item)["otherPricePerHour"]) == ("L4", 2.0)
    assert (
        "by memory alone, L4 (24 GB) at 2.00 USD an hour would have been enough: measure how fast "
        "it is" in size_lines(item)[1]
    )
    file.write_text("prices: {H100: 7.0, L4: 7.5}\n")
    item = recommended(tmp_path, SizedDay(steady), "--prices", str(file))
    assert size(item)["otherModel"] is None
    full = SizedDay(steady, memory=lambda second: 30 * GIB + second % 7)
    file.write_text("prices: {H100: 7.0, L40S: 3.0, L4: 2.0}\n")
    (tmp_path / "full").mkdir()
    item = recommended(tmp_path / "full", full, "--prices", str(file))
    assert size(item)["otherModel"] == "L40S"


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [("A100-SXM4-80GB", 80), ("A100 80GB PCIe", 80), ("A100-SXM4-40GB", 40), ("MI300X", None)],
)
def test_the_memory_of_a_model_is_that_of_its_longest_name(
    name: str, gigabytes: int | None
) -> None:
    assert gigabytes_of(name) == gigabytes


def test_prices_of_a_list_have_their_date_and_an_unknown_one_is_said(tmp_path: Path) -> None:
    assert "USD an hour (list prices of" in size_lines(recommended(tmp_path, SizedDay(steady)))[0]
    file = tmp_path / "prices.yaml"
    file.write_text("prices: {L4: 1.0}\n")
    item = recommended(tmp_path, SizedDay(steady), "--prices", str(file))
    assert size(item)["pricePerHour"] is None
    assert "at 1/7 of the compute; the price is not known" in size_lines(item)[0]


def test_compute_decides_where_memory_is_small(tmp_path: Path) -> None:
    day = SizedDay(steady, active=0.6, shown_by="DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    item = recommended(tmp_path, day)
    # 36 % and what a pod can carry without waiting work need three of seven slices.
    assert (size(item)["migProfile"], size(item)["podsPerGpu"]) == ("3g.40gb", 2)
    assert "engines active 36% of the time (p99)" in size_lines(item)[0]


def test_high_memory_keeps_the_gpu(tmp_path: Path) -> None:
    day = SizedDay(steady, memory=lambda second: 60 * GIB + second % 4000)
    item = recommended(tmp_path, day)
    assert (size(item)["migProfile"], size(item)["podsPerGpu"]) == (None, 1)
    (line,) = size_lines(item)
    assert line.endswith("no share of the GPU would have been enough, so keep it")


def test_utilization_alone_recommends_no_smaller_compute(tmp_path: Path) -> None:
    item = recommended(tmp_path, SizedDay(steady, active=None))
    assert size(item)["migProfile"] is None
    (line,) = size_lines(item)
    assert "a kernel running 60% of the time (p99)" in line
    assert "no recommendation: gpu_utilization says that a kernel ran, and not how much" in line
    full = SizedDay(steady, active=None, memory=lambda second: 70 * GIB + second % 4000)
    assert "so keep it" in size_lines(recommended(tmp_path / "..", full))[0]


def test_a_server_that_reserves_memory_does_not_show_its_need(tmp_path: Path) -> None:
    item = recommended(tmp_path, SizedDay(steady, server="vllm:"))
    assert (size(item)["migProfile"], size(item)["podsPerGpu"]) == (None, None)
    lines = size_lines(item)
    assert len(lines) == 1
    assert "no recommendation: vLLM takes memory ahead of need (--gpu-memory-util" in lines[0]
    assert lines[0].endswith("its KV cache was at most 42% full")


def test_memory_that_never_changes_does_not_show_the_need(tmp_path: Path) -> None:
    (line,) = size_lines(recommended(tmp_path, SizedDay(steady, memory=lambda _: 9 * GIB)))
    assert "no recommendation: the memory in use never changed" in line


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {
                "device": {"modelName": H100, "GPU_I_ID": "1", "GPU_I_PROFILE": "3g.40gb"},
                "gpus": {"nvidia.com/mig-3g.40gb": 1},
            },
            "the pods have MIG instances 3g.40gb",
        ),
        ({"gpus": {"nvidia.com/gpu": 2}}, "each pod has up to 2 GPUs"),
        (
            {
                "gpus": {"nvidia.com/gpu.shared": 1},
                "node": {"nvidia.com/gpu.sharing-strategy": "time-slicing"},
            },
            "the GPUs are shared",
        ),
        ({"device": {"modelName": "NVIDIA A10-24Q"}}, "the GPUs are virtual"),
        ({"gpus": {"amd.com/gpu": 1}}, "parts of this GPU, and the memory that they have"),
        ({"syncs": 180}, "these are 11h, and a recommendation needs a day with its peak"),
        ({"load": lambda _: 50.0, "syncs": 290, "period": 300.0}, "290 looks are too few"),
    ],
)
def test_what_gives_no_recommendation(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    item = recommended(tmp_path, SizedDay(**{"load": steady, "start": 1, **changes}))
    (line,) = size_lines(item)
    assert f"no recommendation: {said}" in line
    assert (size(item)["migProfile"], size(item)["podsPerGpu"]) == (None, None)
    assert size(item)["looks"] > 0


def test_a_gpu_without_mig_may_be_shared(tmp_path: Path) -> None:
    day = SizedDay(steady, total=23_034.0, device={"modelName": "NVIDIA L4"})
    item = recommended(tmp_path, day)
    assert (size(item)["migProfile"], size(item)["podsPerGpu"]) == (None, 2)
    assert "2 such pods would have fitted on one GPU" in size_lines(item)[1]


def test_missing_times_are_said(tmp_path: Path) -> None:
    day = SizedDay(steady, syncs=720, silent=(3600.0, 5 * 3600.0))
    item = recommended(tmp_path, day)
    assert size(item)["missingSeconds"] == pytest.approx(4 * 3600, abs=600)
    assert "; 4h are missing)" in size_lines(item)[0]


def test_nothing_known_is_one_line(tmp_path: Path) -> None:
    item = recommended(tmp_path, Day(waves, hpa=manifest("30")))
    (line,) = size_lines(item)
    assert line.startswith("size: not known, because no look at the pods' GPUs has gpu_memory_used")
    assert item["size"]["gpus"] == []
