"""A container's 0 on a device whose work nobody explains: HAMi, dcgm-exporter, and both together.

The shapes are those of HAMi's monitor (``cmd/vGPUmonitor/metrics.go``, both generations of names)
and of dcgm-exporter's per-process accounting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.devices.options import TelemetryOptions
from tests.adapter.prometheusscrape import TARGET, behind
from tests.adapter.world import World, make_pod, row, said
from tests.examples import bounded

FALSE = "zero_on_busy_device"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
USED = "DCGM_FI_DEV_FB_USED"
GIB = 1024.0**3
Load = Mapping[str, float]
"""Pod -> its utilization."""


def hami(host: float | None, pods: Load, *, old: bool = False) -> str:
    """The monitor's page about one device."""
    name = "HostCoreUtilization" if old else "hami_host_gpu_utilization_ratio"
    own = (
        "Device_utilization_desc_of_container" if old else "hami_container_device_utilization_ratio"
    )
    uuid, at = ("deviceuuid", "vdeviceid") if old else ("device_uuid", "vdevice_index")
    named = (
        'podnamespace="ml",podname="{}",ctrname="c"'
        if old
        else 'namespace="ml",pod="{}",container="c"'
    )
    lines = [] if host is None else [f'{name}{{{uuid}="GPU-0",zone="vGPU"}} {host}\n']
    for pod, value in pods.items():
        lines.append(f'{own}{{{named.format(pod)},{at}="0",{uuid}="GPU-0",zone="vGPU"}} {value}\n')
    return "".join(lines)


def accounted(whole: float, pods: Load) -> str:
    """dcgm-exporter's page with per-process accounting."""
    own = (row(UTIL, value, pod, more=f'vgpu="{i}"') for i, (pod, value) in enumerate(pods.items()))
    return row(UTIL, whole) + "".join(own)


def world(*pods: str, policy: str = "exact", checks: bool = True) -> World:
    return World(
        *(make_pod(name, node="n", uid=f"uid-{name}") for name in pods or "ab"),
        sharing=SharingOptions(SharingPolicy(policy)),
        options=TelemetryOptions(cross_checks=checks),
    )


class Case(NamedTuple):
    whole: float
    pods: Load
    says: Mapping[str, float | str]


CASES = {
    "nobody explains a busy device": Case(100, {"a": 0, "b": 0}, {"a": FALSE, "b": FALSE}),
    "what little other processes do proves nothing": Case(5, {"a": 0, "b": 0}, {"a": 0.0}),
    "a little more does": Case(6, {"a": 0, "b": 0}, {"a": FALSE, "b": FALSE}),
    "a fifth of the device is unexplained": Case(99, {"a": 80, "b": 0}, {"a": 80.0, "b": 0.0}),
    "more than a fifth": Case(99, {"a": 78, "b": 0}, {"a": 78.0, "b": FALSE}),
    "one of two is not watched": Case(99, {"a": 20, "b": 0}, {"a": 20.0, "b": FALSE}),
    "an idle container beside a busy one": Case(96, {"a": 95, "b": 0}, {"a": 95.0, "b": 0.0}),
    "an idle device": Case(0, {"a": 0, "b": 0}, {"a": 0.0, "b": 0.0}),
    "containers above their device": Case(60, {"a": 62, "b": 0}, {"a": 62.0, "b": 0.0}),
    "the only container": Case(70, {"a": 0}, {"a": FALSE}),
}
PAGES: Mapping[str, Callable[[float, Load], str]] = {
    "HAMi 2.9": hami,
    "HAMi before 2.9": lambda whole, pods: hami(whole, pods, old=True),
    "dcgm-exporter": accounted,
}


@pytest.mark.parametrize("vendor", PAGES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_zero_is_served_if_the_device_does_not_contradict_it(vendor: str, case: Case) -> None:
    lab = world(*case.pods)
    lab.scrape(PAGES[vendor](case.whole, case.pods), 100.0, node="n")
    says = case.says
    assert {name: lab.value(name, "gpu_utilization", 100.0) for name in says} == says
    assert lab.count(FALSE) == (FALSE in says.values())


@pytest.mark.parametrize("honor", [False, True], ids=["honorLabels false", "honorLabels true"])
@pytest.mark.parametrize("old", [False, True], ids=["HAMi 2.9", "HAMi before 2.9"])
def test_a_store_gives_the_same_values(honor: bool, old: bool) -> None:
    """The scrape puts the monitor's own pod on the sample of the device."""
    for load, says in (({"a": 20, "b": 0}, [20.0, FALSE]), ({"a": 95, "b": 0}, [95.0, 0.0])):
        lab = world()
        monitor = make_pod(TARGET["pod"], namespace=TARGET["namespace"], gpus={}, node="n")
        lab.put(monitor.replace(ip="10.0.0.7"))
        pages = [(hami(99, load, old=old), time) for time in (100.0, 115.0)]
        behind(lab, pages, honor=honor)
        assert [lab.value(name, "gpu_utilization", 115.0) for name in "ab"] == says


@pytest.mark.parametrize(
    ("policy", "says"), [("copy", 100.0), ("equal", 50.0), ("exact", FALSE), ("memory", FALSE)]
)
def test_the_devices_value_or_none_replaces_a_false_zero(policy: str, says: float | str) -> None:
    lab = world(policy=policy)
    lab.scrape(hami(100, {"a": 0, "b": 0}), 100.0, node="n")
    assert lab.value("a", "gpu_utilization", 100.0) == says


@pytest.mark.parametrize("vendor", PAGES)
def test_a_pause_of_the_device_does_not_make_zeros_true(vendor: str) -> None:
    lab = world()
    for number, whole in enumerate((90, 0, 80, 0, 90, 0)):
        lab.scrape(PAGES[vendor](whole, {"a": 0, "b": 0}), 100.0 + 5 * number, node="n")
        assert lab.value("a", "gpu_utilization", 100.0 + 5 * number) == FALSE


@pytest.mark.parametrize("vendor", PAGES)
def test_accounting_that_lags_does_not_make_zeros_false(vendor: str) -> None:
    """The device and its containers are not measured at the same instant."""
    lab = world()
    for number, (whole, busy) in enumerate(((95, 60), (90, 95), (40, 90), (95, 40), (92, 92))):
        lab.scrape(PAGES[vendor](whole, {"a": busy, "b": 0}), 100.0 + 5 * number, node="n")
    assert lab.value("b", "gpu_utilization", 120.0) == 0.0


def test_a_new_container_does_not_have_to_explain_what_was_before_it() -> None:
    lab = world()
    for number in range(5):
        lab.scrape(hami(90, {"a": 90}), 100.0 + 5 * number, node="n")
    lab.scrape(hami(0, {"b": 0}), 125.0, node="n")
    assert lab.value("b", "gpu_utilization", 125.0) == 0.0


def test_a_container_does_not_explain_what_came_after_it() -> None:
    lab = world("a", "b")
    for number in range(5):
        lab.scrape(hami(90, {"a": 90}), 100.0 + 5 * number, node="n")
    lab.scrape(hami(90, {"b": 0}), 125.0, node="n")
    assert lab.value("b", "gpu_utilization", 125.0) == FALSE


def test_what_is_repeated_for_each_container_of_a_pod_explains_once() -> None:
    """dcgm-exporter accounts the pod's processes, not those of a container."""
    lab = World(
        make_pod("a", node="n", uid="uid-a", containers=("x", "y")),
        make_pod("b", node="n", uid="uid-b"),
    )
    own = "".join(row(UTIL, 40, "a", container=name, more='vgpu="0"') for name in "xy")
    page = row(UTIL, 80) + own + row(UTIL, 0, "b", more='vgpu="1"')
    lab.scrape(page, 100.0, node="n")
    assert lab.value("b", "gpu_utilization", 100.0) == FALSE


def test_a_container_that_is_missing_on_one_page_still_explains_the_pages_before() -> None:
    lab = world()
    for number in range(5):
        lab.scrape(hami(90, {"a": 90, "b": 0}), 100.0 + 5 * number, node="n")
    lab.scrape(hami(90, {"b": 0}), 125.0, node="n")
    assert lab.value("b", "gpu_utilization", 125.0) == 0.0


def test_a_page_without_the_devices_sample_does_not_make_earlier_zeros_true() -> None:
    lab = world()
    lab.scrape(hami(90, {"a": 0, "b": 0}), 100.0, node="n")
    lab.scrape(hami(None, {"a": 0, "b": 0}), 105.0, node="n")
    assert lab.value("a", "gpu_utilization", 105.0) == FALSE


@pytest.mark.parametrize(
    ("host", "said_of_b"), [(31.0, 0.0), (61.0, FALSE)], ids=["explained", "unexplained"]
)
def test_used_memory_of_zero_is_checked_too(host: float, said_of_b: float | str) -> None:
    at = 'device_uuid="GPU-0"'
    page = f"hami_host_gpu_memory_used_bytes{{{at}}} {host * GIB}\n" + "".join(
        f'hami_vgpu_memory_used_bytes{{{at},namespace="ml",pod="{pod}",container="c"}} {used}\n'
        for pod, used in (("a", 30 * GIB), ("b", 0))
    )
    lab = world()
    lab.scrape(page, 100.0, node="n")
    assert lab.value("b", "gpu_memory_used_bytes", 100.0) == said_of_b


@pytest.mark.parametrize("host", [None, 0], ids=["no sample of the device", "the device's too"])
@pytest.mark.parametrize("later", ["hami", "dcgm"], ids=lambda name: f"{name} answers last")
def test_another_exporter_of_the_device_contradicts_a_zero(host: float | None, later: str) -> None:
    """dcgm-exporter does not know HAMi's pods."""
    lab = world()
    pages = {"hami": hami(host, {"a": 0, "b": 0}), "dcgm": row(UTIL, 97)}
    order: Sequence[str] = sorted(pages, key=lambda name: name == later)
    for number, name in enumerate(order):
        lab.scrape(pages[name], 100.0 + number, node="n", origin=f"http://{name}")
    assert {lab.value(pod, "gpu_utilization", 101.0) for pod in "ab"} == {FALSE}


def test_the_value_of_an_exporter_that_names_the_pod_replaces_a_false_zero() -> None:
    lab = world("a")
    lab.scrape(hami(None, {"a": 0}), 100.0, node="n", origin="http://hami")
    assert lab.value("a", "gpu_utilization", 100.0) == 0.0
    lab.scrape(row(UTIL, 97, "a"), 101.0, node="n", origin="http://dcgm")
    assert lab.value("a", "gpu_utilization", 101.0) == 97.0


def test_another_exporter_confirms_a_zero_beside_a_busy_container() -> None:
    lab = world()
    lab.scrape(hami(None, {"a": 95, "b": 0}), 100.0, node="n", origin="http://hami")
    lab.scrape(row(UTIL, 97), 101.0, node="n", origin="http://dcgm")
    assert [lab.value(pod, "gpu_utilization", 101.0) for pod in "ab"] == [95.0, 0.0]


def test_what_another_exporter_said_before_the_container_started_proves_nothing() -> None:
    lab = world()
    lab.scrape(row(UTIL, 97), 60.0, node="n", origin="http://dcgm")
    lab.scrape(hami(None, {"a": 0, "b": 0}), 100.0, node="n", origin="http://hami")
    assert lab.value("a", "gpu_utilization", 100.0) == 0.0


@pytest.mark.parametrize(("host", "says"), [(90, FALSE), (30, 0.0)])
def test_a_device_at_zero_is_doubted_if_another_exporter_says_it_is_busy(
    host: float, says: float | str
) -> None:
    lab = world("a")
    lab.scrape(row(UTIL, 0, "a"), 100.0, node="n", origin="http://dcgm")
    lab.scrape(hami(host, {}), 101.0, node="n", origin="http://hami")
    assert lab.value("a", "gpu_utilization", 101.0) == says


@pytest.mark.parametrize("other", [False, True], ids=["one exporter", "two exporters"])
def test_the_checks_can_be_switched_off(other: bool) -> None:
    lab = world(checks=False)
    lab.scrape(hami(None if other else 90, {"a": 0, "b": 0}), 100.0, node="n")
    if other:
        lab.scrape(row(UTIL, 97), 101.0, node="n", origin="http://dcgm")
    assert lab.value("a", "gpu_utilization", 101.0) == 0.0


@bounded(60)
@given(
    st.sampled_from(sorted(PAGES)),
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100)),
        min_size=1,
        max_size=6,
    ),
)
def test_no_zero_is_served_beside_a_large_remainder(
    vendor: str, pages: list[tuple[int, int, int]]
) -> None:
    """The law of the guard, over any window of pages."""
    lab = world()
    for number, (whole, a, b) in enumerate(pages):
        lab.scrape(PAGES[vendor](whole, {"a": a, "b": b}), 100.0 + 5 * number, node="n")
    now = 100.0 + 5 * (len(pages) - 1)
    mean = sum(whole for whole, _, _ in pages) / len(pages)
    left = mean - sum(a + b for _, a, b in pages) / len(pages)
    for name, values in (("a", [a for _, a, _ in pages]), ("b", [b for _, _, b in pages])):
        answer = said(lab.read(name, "gpu_utilization", now))
        if any(values):
            assert answer == pytest.approx(sum(values) / len(values))
        else:
            assert answer == (FALSE if left > max(5.0, 0.2 * mean) else 0.0)
