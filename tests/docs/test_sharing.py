"""The numbers of docs/sharing.md are those of the adapter's own code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapter.pipeline.attribution.census import LEFT_OUT
from adapter.pipeline.attribution.policy import SharingPolicy
from adapter.pipeline.attribution.reading import Attribution, Reading
from adapter.pipeline.attribution.sharing import Evidence
from tests.adapter.world import World, own_page
from tests.docs.sharingcases import CASES

PAGE = (Path(__file__).parents[2] / "docs" / "sharing.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """First cell -> the others, of the first table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells[2:]}


SHOWN = rows("What value a pod gets")


def test_every_example_is_shown() -> None:
    assert list(SHOWN) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_an_example_is_what_comes_out(name: str) -> None:
    assert SHOWN[name][1:] == [CASES[name].answer(policy) for policy in SharingPolicy]


def test_every_policy_is_advised_on() -> None:
    advised = [re.findall(r"`(\w+)`", cells[0])[0] for cells in rows("Which policy").values()]
    assert advised == list(SharingPolicy)


def test_every_evidence_and_way_is_named() -> None:
    section = PAGE.partition("\n## How a node shares its GPUs\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert {*Evidence, *Attribution, LEFT_OUT} <= named


def of_page(name: str) -> dict[str, bool]:
    """Which metrics the node of a page has a value of."""
    world = World()
    world.scrape(own_page(name), 100.0, node="n")
    named = ("gpu_utilization", "DCGM_FI_DEV_GPU_UTIL", "gpu_memory_utilization")
    lacking = ("gpu_sm_activity", "gpu_tensor_activity", "gpu_power_watts")
    return {
        metric: isinstance(world.node("n", metric, 100.0), Reading) for metric in (*named, *lacking)
    }


def test_a_vgpu_guest_lacks_what_the_page_says() -> None:
    served = of_page("dcgm/4.6-vgpu-guest.prom")
    section = PAGE.partition("\n## vGPU\n")[2].partition("\n## ")[0]
    absent = {metric for metric, has in served.items() if not has}
    assert absent == {"gpu_sm_activity", "gpu_tensor_activity", "gpu_power_watts"}
    assert all(f"`{metric}`" in section for metric in absent)


def test_mig_instances_have_utilisation_and_not_the_boards_counter() -> None:
    served = of_page("dcgm/3.1-mig-attributed.prom")
    assert (served["gpu_utilization"], served["DCGM_FI_DEV_GPU_UTIL"]) == (True, False)
