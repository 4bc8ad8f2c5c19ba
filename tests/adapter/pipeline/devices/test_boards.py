"""A partition has the values that its exporter writes for the board's first partition only."""

from __future__ import annotations

import pytest

from adapter.pipeline.catalog.field import Field, Mig
from adapter.pipeline.catalog.vendors import FIELDS
from adapter.pipeline.devices.device import device
from tests.adapter.pipeline.devices.test_ring import EPOCH, NODE, Both
from tests.adapter.world import World, make_pod, reading

CPX = {"amd.com/gpu": 1}
OF_FIRST = [field for field in FIELDS if field.mig is Mig.FIRST]


def partition(number: int, pod: str = "", serial: str = "S1") -> str:
    """The labels of a partition, with a UUID of its own."""
    return (
        f'gpu_id="{number}",gpu_uuid="{serial}-{number}",gpu_partition_id="{number}",'
        f'gpu_compute_partition_type="cpx",serial_number="{serial}",hostname="n",'
        f'pod="{pod}",namespace="{"ml" if pod else ""}",container="{"server" if pod else ""}"'
    )


def line(name: str, value: float, labels: str) -> str:
    return f"{name}{{{labels}}} {value}\n"


def cluster(*pages: str) -> World:
    """Pods ``a`` to ``c`` on a node, whose exporter's pages were read every 5 s."""
    world = World(*(make_pod(name, node="n", gpus=CPX) for name in "abc"))
    for number, page in enumerate(pages):
        world.scrape(page, 100.0 + 5 * number, node="n")
    return world


@pytest.mark.parametrize("field", OF_FIRST, ids=lambda field: field.name)
@pytest.mark.parametrize("written", [True, False], ids=["0", "no sample"])
def test_every_partition_has_the_value_of_its_board(field: Field, *, written: bool) -> None:
    page = line(field.name, 60, partition(0, "a"))
    page += line("gpu_used_vram", 512, partition(1, "b"))
    if written:
        page += line(field.name, 0, partition(1, "b"))
    world = cluster(page)
    assert [world.value(pod, field.name, 101.0) for pod in "ab"] == [60.0, 60.0]


def test_a_board_without_a_value_lends_none() -> None:
    page = "".join(line("gpu_package_power", 0, partition(n, pod)) for n, pod in enumerate("ab"))
    assert cluster(page).value("b", "gpu_power_watts", 101.0) == "zero_of_unsupported_field"


def test_a_value_is_of_its_own_board() -> None:
    page = line("gpu_package_power", 600, partition(0, "a", "S1"))
    page += line("gpu_package_power", 0, partition(1, "b", "S2"))
    assert cluster(page).value("b", "gpu_power_watts", 101.0) == "zero_of_unsupported_field"


def test_a_board_counts_once() -> None:
    page = "".join(
        line("gpu_package_power", watts if number == 0 else 0, partition(number, "", serial))
        for serial, watts in (("S1", 600), ("S2", 300))
        for number in range(3)
    )
    world = cluster(page)
    answer = reading(world.node("n", "gpu_power_watts", 101.0))
    assert (answer.value, len(answer.devices)) == (450.0, 2)


def test_a_pod_with_two_partitions_has_their_board_once() -> None:
    page = line("gpu_package_power", 600, partition(0))
    page += "".join(line("gpu_package_power", 0, partition(number, "a")) for number in (1, 2))
    assert cluster(page).value("a", "gpu_power_watts", 101.0) == 600.0


def test_pages_with_other_numbers_give_the_state_that_reading_their_samples_gives() -> None:
    """A plan of the page before gives each sample to its own device only."""
    both = Both(*(make_pod(name, node=NODE, gpus=CPX) for name in "ab"))
    for number, watts in enumerate([(600, 0), (610, 0), (620, 300), (0, 310), (640, 0), (650, 0)]):
        page = "".join(
            line("gpu_package_power", power, partition(place, pod))
            for place, (pod, power) in enumerate(zip("ab", watts, strict=True))
        )
        both.take(page.encode(), EPOCH + 5 * number)
        fast, full = both.states()
        assert fast == full


LABELS = {"gpu_uuid": "u-3", "gpu_partition_id": "3", "gpu_compute_partition_type": "cpx"}


@pytest.mark.parametrize(
    ("serial", "board"),
    [("692503008214", "692503008214"), ("", "u-3"), ("N/A", "u-3"), ("0000", "u-3")],
)
def test_the_serial_number_is_the_board_of_a_partition(serial: str, board: str) -> None:
    gpu = device({**LABELS, "serial_number": serial}, "origin")
    assert gpu is not None
    assert (gpu.id, gpu.board) == ("u-3/3", board)


def test_the_serial_number_of_a_whole_device_is_not_its_identity() -> None:
    spx = {**LABELS, "gpu_compute_partition_type": "spx", "serial_number": "692503008214"}
    gpu = device(spx, "origin")
    assert gpu is not None
    assert (gpu.id, gpu.board) == ("u-3", "u-3")
