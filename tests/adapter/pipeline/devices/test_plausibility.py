"""Fields of one device that cannot be true together, and combinations that only look wrong.

Numbers are those of the threads named in the cases, or of idle and busy devices as the
pages of ``tests/adapter/pages`` show them.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from adapter.pipeline.devices.options import TelemetryOptions
from tests.adapter.world import World, make_pod, reading, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
COPY = "DCGM_FI_DEV_MEM_COPY_UTIL"
POWER = "DCGM_FI_DEV_POWER_USAGE"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
SM = "DCGM_FI_PROF_SM_ACTIVE"
OCCUPANCY = "DCGM_FI_PROF_SM_OCCUPANCY"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"

ZERO = "util_zero_while_active"
IDLE = "util_high_at_idle_power"
STUCK = "profiling_stuck_at_zero"

Fields = dict[str, float]
AT_REST: Fields = {UTIL: 0, COPY: 0, POWER: 67.75, ENGINE: 0.0, SM: 0.0, TENSOR: 0.0, DRAM: 0.0}
"""An unassigned H100 (``own/dcgm/4.7-eight-boards.prom``)."""


def page(fields: Fields, pod: str = "p", uuid: str = "GPU-0", more: str = "") -> str:
    return "".join(row(name, value, pod, uuid=uuid, more=more) for name, value in fields.items())


def idle_peers(*watts: float) -> str:
    """Unassigned, idle devices."""
    return "".join(
        page(AT_REST | {POWER: power}, pod="", uuid=f"GPU-idle-{number}")
        for number, power in enumerate(watts)
    )


def played(
    fields: Fields,
    peers: str = "",
    *,
    seconds: int = 60,
    options: TelemetryOptions | None = None,
) -> tuple[World, float]:
    """A world with ``peers`` and the same page every 5 s, and its time."""
    world = World(make_pod("p"), options=options)
    for time in range(0, 100, 5):
        world.scrape(peers, float(time))
    for time in range(100, 101 + seconds, 5):
        world.scrape(page(fields), float(time))
    return world, 100.0 + seconds


class Case(NamedTuple):
    fields: Fields
    peers: str
    expected: dict[str, float | str]


CASES = {
    "util 0 while the engine is busy": Case(
        {UTIL: 0, ENGINE: 0.98, SM: 0.91, POWER: 572.0},
        "",
        {"gpu_utilization": ZERO, UTIL: ZERO, "gpu_sm_activity": 91.0, "gpu_power_watts": 572.0},
    ),
    "util 0 is true beside a trace of activity": Case(
        {UTIL: 0, ENGINE: 0.02, SM: 0.01}, "", {"gpu_utilization": 0.0}
    ),
    "an idle device's zeros are true": Case(
        AT_REST, idle_peers(67, 68, 67), {"gpu_utilization": 0.0, "gpu_sm_activity": 0.0}
    ),
    "GR_ENGINE low beside a high util is a T4 at work": Case(
        {UTIL: 91, ENGINE: 0.156, POWER: 31.0}, "", {"gpu_utilization": 91.0, ENGINE: 0.156}
    ),
    "counters at 0 under load: dcgm-exporter#662, DCGM#303": Case(
        {UTIL: 100, ENGINE: 0.0, SM: 0.0, TENSOR: 0.0, POWER: 230.0},
        "",
        {"gpu_utilization": 100.0, ENGINE: STUCK, "gpu_sm_activity": STUCK,
         "gpu_tensor_activity": STUCK},
    ),
    "one engine counter at 0 while another moves": Case(
        {UTIL: 99, ENGINE: 0.0, SM: 0.7, TENSOR: 0.0},
        "",
        {ENGINE: STUCK, "gpu_sm_activity": 70.0, "gpu_tensor_activity": 0.0},
    ),
    "a tensor pipe at rest under a busy engine is true": Case(
        {UTIL: 99, ENGINE: 0.99, TENSOR: 0.0, DRAM: 0.0}, "",
        {"gpu_tensor_activity": 0.0, "gpu_memory_bandwidth_utilization": 0.0},
    ),
    "DRAM at 0 while the memory controller is busy": Case(
        {UTIL: 40, COPY: 35, ENGINE: 0.4, DRAM: 0.0}, "",
        {"gpu_memory_bandwidth_utilization": STUCK, "gpu_utilization": 40.0},
    ),
    "copies need no kernel": Case(
        {UTIL: 0, COPY: 35, ENGINE: 0.0, DRAM: 0.2}, "", {"gpu_utilization": 0.0, ENGINE: 0.0}
    ),
    "util 100 at what idle devices draw: dcgm-exporter#301, #341": Case(
        {UTIL: 100, COPY: 0, POWER: 67.0},
        idle_peers(67, 70, 74),
        {"gpu_utilization": IDLE, UTIL: IDLE, "gpu_power_watts": 67.0},
    ),
    "util 100 at idle power, and the counters agree with the power": Case(
        AT_REST | {UTIL: 100}, idle_peers(67, 70, 74),
        {"gpu_utilization": IDLE, ENGINE: 0.0, "gpu_sm_activity": 0.0},
    ),
    "a process that spins draws more than an idle one: GLM-130B#32": Case(
        {UTIL: 100, COPY: 0, POWER: 66.0}, idle_peers(53, 53, 53), {"gpu_utilization": 100.0}
    ),
    "a spinning kernel shows in the counters": Case(
        {UTIL: 100, POWER: 67.0, ENGINE: 1.0, SM: 0.0076}, idle_peers(67, 70, 74),
        {"gpu_utilization": 100.0},
    ),
    "a busy memory controller says busy": Case(
        {UTIL: 100, COPY: 12, POWER: 67.0}, idle_peers(67, 70, 74), {"gpu_utilization": 100.0}
    ),
    "two idle devices are too few to know a model by": Case(
        {UTIL: 100, COPY: 0, POWER: 67.0}, idle_peers(67, 70), {"gpu_utilization": 100.0}
    ),
    "without its power nothing is held against util": Case(
        {UTIL: 100, COPY: 0}, idle_peers(67, 70, 74), {"gpu_utilization": 100.0}
    ),
    "no GPU_UTIL: the engine stands in, unless it is stuck": Case(
        {ENGINE: 0.0, POWER: 600.0}, idle_peers(67, 70, 74), {"gpu_utilization": STUCK}
    ),
    "no GPU_UTIL: an engine that moves is believed beside one that is stuck": Case(
        {ENGINE: 0.3, SM: 0.0, POWER: 600.0}, idle_peers(67, 70, 74),
        {"gpu_utilization": 30.0, ENGINE: 0.3, "gpu_sm_activity": STUCK},
    ),
    "a context alone triples no power": Case(
        {ENGINE: 0.0, POWER: 120.0}, idle_peers(67, 70, 74), {"gpu_utilization": 0.0}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_fields_are_cross_checked(case: Case) -> None:
    world, now = played(case.fields, case.peers)
    assert {metric: world.value("p", metric, now) for metric in case.expected} == case.expected


def test_a_false_zero_is_doubted_on_the_first_page() -> None:
    world, now = played({UTIL: 0, ENGINE: 0.9}, seconds=0)
    assert world.value("p", "gpu_utilization", now) == ZERO


@pytest.mark.parametrize(
    ("fields", "metric", "said"),
    [
        ({UTIL: 100, ENGINE: 0.0}, ENGINE, 0.0),
        ({UTIL: 100, COPY: 0, POWER: 67.0}, "gpu_utilization", 100.0),
    ],
)
def test_other_doubts_wait_until_two_readings_of_the_exporter_agree(
    fields: Fields, metric: str, said: float
) -> None:
    world, now = played(fields, idle_peers(67, 70, 74), seconds=30)
    assert world.value("p", metric, now) == said
    world.scrape(page(fields), now + 5)
    assert isinstance(world.value("p", metric, now + 5), str)


def test_a_doubt_ends_with_its_cause() -> None:
    world, now = played({UTIL: 100, ENGINE: 0.0})
    assert world.value("p", ENGINE, now) == STUCK
    world.scrape(page({UTIL: 100, ENGINE: 0.9}), now + 5)
    assert isinstance(world.value("p", ENGINE, now + 5), float)


def test_a_doubt_outlives_the_pod_that_it_started_with() -> None:
    world, now = played({UTIL: 100, ENGINE: 0.0})
    world.put(make_pod("q"))
    world.scrape(page({UTIL: 100, ENGINE: 0.0}, pod="q"), now + 5)
    assert world.value("q", ENGINE, now + 5) == STUCK


def test_a_doubt_is_counted_with_its_device_and_series() -> None:
    world, _ = played({UTIL: 0, ENGINE: 0.9}, seconds=5)
    assert world.count(ZERO) == 2
    (reject,) = [reject for reject in world.store.rejects.recent if reject.reason == ZERO]
    assert (reject.device, reject.series) == ("GPU-0", UTIL)


def test_the_checks_can_be_switched_off() -> None:
    world, now = played({UTIL: 0, ENGINE: 0.9}, options=TelemetryOptions(cross_checks=False))
    assert world.value("p", "gpu_utilization", now) == 0.0


def test_a_doubted_device_is_still_one_of_the_pods_devices() -> None:
    world, now = played({UTIL: 0, ENGINE: 0.9})
    assert world.value("p", "gpu_count", now) == 1.0


def test_a_pod_keeps_its_value_if_half_of_its_devices_are_doubted() -> None:
    world = World(make_pod("p", gpus={"nvidia.com/gpu": 2}))
    world.scrape(page({UTIL: 0, ENGINE: 0.9}) + page({UTIL: 60, ENGINE: 0.5}, uuid="GPU-1"), 100)
    answer = reading(world.read("p", "gpu_utilization", 100))
    assert (answer.value, answer.partial) == (60.0, True)


def test_a_pods_own_zero_is_accepted_on_a_device_that_is_busy_with_other_pods() -> None:
    """With per-process accounting, utilisation belongs to the pod and counters to the device."""
    world = World(make_pod("p"), make_pod("q"))
    own = page({UTIL: 0, ENGINE: 0.9}, more='vgpu="1"')
    other = page({UTIL: 80, ENGINE: 0.9}, pod="q", more='vgpu="2"')
    world.scrape(page({UTIL: 80, ENGINE: 0.9}, pod="") + own + other, 100)
    assert world.value("p", "gpu_utilization", 100) == 0.0


def test_idle_power_is_learned_per_exporter() -> None:
    """An exporter's page may be forged; another exporter's devices keep their values."""
    world = World(make_pod("p"))
    for time in range(0, 100, 5):
        world.scrape(idle_peers(700, 700, 700), float(time), origin="http://forged", node="n2")
    for time in range(100, 165, 5):
        world.scrape(page({UTIL: 100, COPY: 0, POWER: 650.0}), float(time), node="n1")
    assert world.value("p", "gpu_utilization", 160.0) == 100.0


MIG = 'GPU_I_PROFILE="3g.40gb",GPU_I_ID="{}"'


def mig(first: float, second: float, watts: float) -> str:
    """Two instances of one board."""
    return page({ENGINE: first, POWER: watts}, more=MIG.format(1)) + page(
        {ENGINE: second, POWER: watts}, pod="q", more=MIG.format(2)
    )


@pytest.mark.parametrize(
    ("second", "watts", "said"),
    [
        pytest.param(0.0, 400.0, STUCK, id="a board at work whose instances all rest"),
        pytest.param(0.8, 400.0, 0.0, id="the other instance draws the power"),
        pytest.param(0.0, 90.0, 0.0, id="a board at rest"),
    ],
)
def test_a_mig_instances_zero_is_checked_against_the_boards_power(
    second: float, watts: float, said: float | str
) -> None:
    world = World(make_pod("p"), make_pod("q"))
    for time in range(100, 200, 5):
        world.scrape(idle_peers(67, 70, 74), float(time))
        world.scrape(mig(0.0, second, watts), float(time))
    assert world.value("p", "gpu_utilization", 195.0) == said
