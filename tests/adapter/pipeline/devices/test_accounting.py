"""Per-process accounting: the same page gives the same values from a scrape and from stores.

The pages are those of dcgm-exporter 4.5.3-4.8.2 with ``--kubernetes-virtual-gpus``. Utilisation and
used memory have a sample of the device and one per pod; every other field has only one per pod.
Only accounted samples have ``pod_uid``; only those of a replica have ``vgpu``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.cluster.pod import Pod
from tests.adapter.prometheusscrape import TARGET, Prometheus, behind
from tests.adapter.world import World, make_pod, said
from tests.examples import bounded

UTIL = "DCGM_FI_DEV_GPU_UTIL"
USED = "DCGM_FI_DEV_FB_USED"
FREE = "DCGM_FI_DEV_FB_FREE"
WAYS = ("direct", "honorLabels false", "honorLabels true")
METRICS = ("gpu_utilization", "gpu_memory_used_bytes", "gpu_memory_utilization", "gpu_count")
NODE = "gpu-node-1"
EXPORTER = make_pod(
    TARGET["pod"], namespace=TARGET["namespace"], gpus={}, node=NODE, uid="e"
).replace(
    ip="10.0.0.7",
)
SLICED = {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4"}


class Holder(NamedTuple):
    """A pod's entry in the kubelet's list of devices."""

    name: str
    util: int
    used: int
    vgpu: str = ""
    """The replica; empty for a whole device."""
    uid: str = ""


class Gpu(NamedTuple):
    """A device and the pods that have it."""

    number: int
    util: int
    used: int
    holders: tuple[Holder, ...]


def page(*gpus: Gpu) -> str:
    lines = []
    for gpu in gpus:
        n = gpu.number
        device = f'gpu="{n}",UUID="GPU-{n}",device="nvidia{n}",modelName="A100"'
        lines += [f"{UTIL}{{{device}}} {gpu.util}", f"{USED}{{{device}}} {gpu.used}"]
        for pod in gpu.holders:
            more = f',container="srv",namespace="ml",pod="{pod.name}"'
            vgpu = f',vgpu="{pod.vgpu}"' if pod.vgpu else ""
            labels = f'{device}{more},pod_uid="{pod.uid}"{vgpu}'
            lines += [f"{UTIL}{{{labels}}} {pod.util}", f"{USED}{{{labels}}} {pod.used}"]
            lines.append(f"{FREE}{{{device}{more}{vgpu}}} {80000 - gpu.used}")
        if not gpu.holders:
            lines.append(f"{FREE}{{{device}}} {80000 - gpu.used}")
    return "\n".join(lines) + "\n"


def pod(name: str, uid: str = "") -> Pod:
    return make_pod(name, node=NODE, uid=uid or f"uid-{name}")


def world(
    way: str,
    pages: Sequence[tuple[str, float]],
    pods: Sequence[Pod],
    policy: str = "copy",
    labels: Mapping[str, str] = SLICED,
) -> World:
    sharing = SharingOptions(SharingPolicy(policy))
    made = World(EXPORTER, *pods, nodes={NODE: labels}, sharing=sharing)
    if way != "direct":
        return behind(made, pages, honor=way.endswith("true"))
    for text, time in pages:
        made.scrape(text, time, node=NODE, pod=EXPORTER.ref)
    return made


PODS = ("ab", "cd")
SHARED = Gpu(0, 77, 30000, (Holder("a", 55, 20000, "0"), Holder("b", 22, 9000, "1")))
BLIND = Gpu(0, 90, 30000, (Holder("a", 0, 0, "0"), Holder("b", 0, 0, "1")))
SOLE = Gpu(0, 90, 30000, (Holder("a", 88, 29000, uid="uid-a"),))
BLIND_SOLE = Gpu(0, 90, 30000, (Holder("a", 0, 0),))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", [policy.value for policy in SharingPolicy])
def test_per_process_values_are_exact_under_every_policy(way: str, policy: str) -> None:
    lab = world(way, [(page(SHARED), 100.0)], [pod("a"), pod("b")], policy)
    for name, util, used in (("a", 55.0, 20000), ("b", 22.0, 9000)):
        assert lab.value(name, "gpu_utilization", 100.0, "attribution=exact") == util
        assert lab.value(name, "gpu_memory_used_bytes", 100.0) == used * 1024**2
        assert lab.value(name, "gpu_memory_utilization", 100.0) == "no_value"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", [policy.value for policy in SharingPolicy])
def test_zeros_of_an_exporter_that_sees_no_process_are_missing(way: str, policy: str) -> None:
    lab = world(way, [(page(BLIND), 100.0)], [pod("a"), pod("b")], policy)
    for name in "ab":
        assert lab.value(name, "gpu_utilization", 100.0) == "zero_on_busy_device"
        assert lab.value(name, "gpu_memory_used_bytes", 100.0) == "zero_on_busy_device"
    assert lab.count("zero_on_busy_device") == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", [policy.value for policy in SharingPolicy])
@pytest.mark.parametrize("gpu", [SOLE, BLIND_SOLE], ids=["seeing", "blind"])
def test_samples_of_a_whole_device_belong_to_its_only_pod(way: str, policy: str, gpu: Gpu) -> None:
    lab = world(way, [(page(gpu), 100.0)], [pod("a")], policy, labels={})
    where = "attribution=exact,sharing=exclusive"
    assert lab.value("a", "gpu_utilization", 100.0, where) == 90.0
    assert lab.value("a", "gpu_memory_used_bytes", 100.0, where) == 30000 * 1024**2
    assert lab.value("a", "gpu_memory_utilization", 100.0, where) == 37.5


@pytest.mark.parametrize("way", WAYS)
def test_memory_alone_shows_that_no_process_is_seen(way: str) -> None:
    gpu = Gpu(0, 3, 30000, (Holder("a", 0, 0, "0"), Holder("b", 0, 0, "1")))
    lab = world(way, [(page(gpu), 100.0)], [pod("a"), pod("b")])
    assert lab.value("a", "gpu_memory_used_bytes", 100.0) == "zero_on_busy_device"
    assert lab.value("a", "gpu_utilization", 100.0) == "zero_on_busy_device"


@pytest.mark.parametrize("way", WAYS)
def test_an_idle_pod_of_an_idle_device_is_at_zero(way: str) -> None:
    gpu = Gpu(0, 0, 600, (Holder("a", 0, 0, "0"), Holder("b", 0, 0, "1")))
    lab = world(way, [(page(gpu), 100.0)], [pod("a"), pod("b")])
    assert lab.value("a", "gpu_utilization", 100.0) == 0.0
    assert lab.value("a", "gpu_memory_used_bytes", 100.0) == 0.0


@pytest.mark.parametrize("way", WAYS)
def test_visible_memory_is_served_if_only_utilisation_is_not_visible(way: str) -> None:
    gpu = Gpu(0, 90, 30000, (Holder("a", 0, 20000, "0"), Holder("b", 0, 9000, "1")))
    lab = world(way, [(page(gpu), 100.0)], [pod("a"), pod("b")])
    assert lab.value("a", "gpu_utilization", 100.0) == "zero_on_busy_device"
    assert lab.value("a", "gpu_memory_used_bytes", 100.0) == 20000 * 1024**2


@pytest.mark.parametrize("way", WAYS)
def test_the_node_has_the_value_of_the_device(way: str) -> None:
    lab = world(way, [(page(SHARED, Gpu(1, 20, 0, ())), 100.0)], [pod("a"), pod("b")])
    assert said(lab.node(NODE, "gpu_utilization", 100.0)) == 48.5


@pytest.mark.parametrize("honor", [False, True])
def test_an_unknown_exporter_pod_is_recognised_from_assigned_samples(
    honor: bool,
) -> None:
    target = {**TARGET, "service": "s", "job": "j", "pod": "unheard-of"}
    made = World(pod("a"), pod("b"))
    engine = Prometheus(made.catalog, honor=honor)
    engine.scrape(page(BLIND), 100.0, target)
    engine.answer(made, 100.0)
    assert made.value("a", "gpu_utilization", 100.0) == "zero_on_busy_device"


def test_the_exporters_successor_at_its_address_is_also_the_scrape_target() -> None:
    """With the host network, the address does not change when the exporter's pod is replaced."""
    made = World(EXPORTER, pod("a"), pod("b"), nodes={NODE: SLICED})
    successor = make_pod("successor", namespace=TARGET["namespace"], gpus={}, node=NODE, uid="f")
    engine = Prometheus(made.catalog, honor=False)
    engine.scrape(page(SHARED), 100.0)
    engine.answer(made, 100.0)
    made.put(successor)
    engine.scrape(page(BLIND), 115.0, {**TARGET, "pod": successor.ref.name})
    engine.answer(made, 115.0)
    engine.scrape(page(BLIND), 130.0, {**TARGET, "pod": successor.ref.name})
    engine.answer(made, 130.0)
    assert made.count("zero_on_busy_device") == 4
    assert made.store.snapshot.nodes() == [NODE]


def test_copies_of_an_older_exporter_are_not_accounted() -> None:
    lines = "".join(
        f'{UTIL}{{gpu="0",UUID="GPU-0",namespace="ml",pod="{name}",vgpu="{i}"}} 71\n'
        for i, name in enumerate("ab")
    )
    for way in WAYS:
        lab = world(way, [(lines, 100.0)], [pod("a"), pod("b")], "equal")
        assert lab.value("a", "gpu_utilization", 100.0, "attribution=split") == 35.5


@pytest.mark.parametrize("way", WAYS)
def test_an_exporter_that_stops_accounting_gives_copies_again(way: str) -> None:
    copies = "".join(
        f'{UTIL}{{gpu="0",UUID="GPU-0",device="nvidia0",modelName="A100",container="srv",'
        f'namespace="ml",pod="{name}",vgpu="{i}"}} 80\n'
        for i, name in enumerate("ab")
    )
    pages = [(page(SHARED), 100.0), *((copies, 115.0 + 15 * i) for i in range(10))]
    lab = world(way, pages, [pod("a"), pod("b")], "equal")
    assert lab.value("a", "gpu_utilization", pages[-1][1], "attribution=split") == 40.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gpu", [BLIND, BLIND_SOLE], ids=["shared", "sole"])
@pytest.mark.parametrize("missing", [(UTIL,), (UTIL, USED)], ids=["utilisation", "all rows"])
def test_zeros_without_a_sample_of_the_device_are_missing(
    way: str, gpu: Gpu, missing: tuple[str, ...]
) -> None:
    whole = page(gpu)
    lines = whole.splitlines(keepends=True)
    part = "".join(line for line in lines if "pod=" in line or not line.startswith(missing))
    lab = world(way, [(whole, 100.0), (part, 115.0)], [pod("a"), pod("b")], labels={})
    expected = 90.0 if gpu is BLIND_SOLE else "zero_on_busy_device"
    assert lab.value("a", "gpu_utilization", 115.0) == expected
    assert lab.count("per_process_blind") > 0


@st.composite
def scrapes(draw: st.DrawFn) -> list[list[Gpu]]:
    """Pages of one node. A device never changes between sliced and whole, and pods never move."""
    sliced = draw(st.lists(st.booleans(), min_size=1, max_size=2))
    uids = draw(st.booleans())
    made = []
    for _ in range(draw(st.integers(1, 3))):
        gpus = []
        for i, shared in enumerate(sliced):
            names = draw(
                st.lists(st.sampled_from(PODS[i]), max_size=2 if shared else 1, unique=True)
            )
            holders = tuple(
                Holder(
                    name,
                    draw(st.sampled_from((0, 0, 7, 40))),
                    draw(st.sampled_from((0, 0, 500, 9000))),
                    str(PODS[i].index(name)) if shared else "",
                    f"uid-{name}" if uids else "",
                )
                for name in names
            )
            util, used = draw(st.sampled_from((0, 4, 97))), draw(st.sampled_from((0, 900, 30000)))
            gpus.append(Gpu(i, util, used, holders))
        made.append(gpus)
    return made


ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


@st.composite
def unaccounted(draw: st.DrawFn) -> list[tuple[str, list[str]]]:
    """Pages of an older exporter: one sample per device, or a copy of it per replica."""
    copies = draw(st.booleans())
    made = []
    for _ in range(draw(st.integers(1, 3))):
        lines, named = [], []
        for i in range(draw(st.integers(1, 2))):
            util, used = draw(st.sampled_from((0, 3, 97))), draw(st.sampled_from((0, 30000)))
            held = draw(
                st.lists(st.sampled_from(PODS[i]), unique=True, max_size=2 if copies else 1)
            )
            named += held
            for name in held or [""]:
                own = f',container="srv",namespace="ml",pod="{name}"' if name else ""
                vgpu = f',vgpu="{PODS[i].index(name)}"' if name and copies else ""
                values = {UTIL: util, USED: used, FREE: 80000 - used, ENGINE: util / 100}
                labels = f'gpu="{i}",UUID="GPU-{i}"{own}{vgpu}'
                lines += [f"{series}{{{labels}}} {value}" for series, value in values.items()]
        made.append(("\n".join(lines) + "\n", named))
    return made


def everything(lab: World, living: Sequence[str], now: float) -> dict[str, float | str]:
    answers = {f"node {metric}": said(lab.node(NODE, metric, now)) for metric in METRICS}
    for name in living:
        for metric in (*METRICS, ENGINE):
            answers[f"{name} {metric}"] = said(lab.read(name, metric, now))
    return answers


def answers(
    pages: Sequence[tuple[str, float]],
    living: Sequence[str],
    policy: SharingPolicy,
    labels: Mapping[str, str],
) -> list[dict[str, float | str]]:
    """The values of the pods in each way: scraped directly, and from Prometheus."""
    now = pages[-1][1]
    return [
        everything(world(way, pages, [pod(n) for n in living], policy.value, labels), living, now)
        for way in WAYS
    ]


@bounded(30)
@given(scrapes(), st.sampled_from(list(SharingPolicy)), st.sampled_from(({}, SLICED)))
def test_accounted_pages_give_the_same_values_directly_and_behind_prometheus(
    made: list[list[Gpu]], policy: SharingPolicy, labels: Mapping[str, str]
) -> None:
    pages = [(page(*gpus), 100.0 + 15 * i) for i, gpus in enumerate(made)]
    living = [holder.name for gpu in made[-1] for holder in gpu.holders]
    direct, *behind_it = answers(pages, living, policy, labels)
    assert behind_it == [direct, direct]


@bounded(30)
@given(unaccounted(), st.sampled_from(list(SharingPolicy)), st.sampled_from(({}, SLICED)))
def test_other_pages_give_the_same_values_directly_and_behind_prometheus(
    made: list[tuple[str, list[str]]], policy: SharingPolicy, labels: Mapping[str, str]
) -> None:
    pages = [(text, 100.0 + 15 * i) for i, (text, _) in enumerate(made)]
    direct, *behind_it = answers(pages, made[-1][1], policy, labels)
    assert behind_it == [direct, direct]
