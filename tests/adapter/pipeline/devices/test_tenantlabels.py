"""The owner of a pod cannot change the values of another pod with its own labels.

dcgm-exporter copies pod labels to its samples (--kubernetes-enable-pod-labels).
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.podspellings import POD, SPELLINGS
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from tests.adapter.world import CATALOG, World, make_pod, reading, row, said

UTIL = "DCGM_FI_DEV_GPU_UTIL"
T = 1_700_000_000.0
EXPORTER = {"pod": "dcgm-x", "namespace": "gpu", "instance": "10.0.0.7:9400", "job": "dcgm"}
FORGED: dict[str, dict[str, str]] = {
    "exported": {"exported_pod": "victim", "exported_namespace": "ml"},
    "exported twice": {
        "exported_pod": "x",
        "exported_exported_pod": "victim",
        "exported_exported_namespace": "ml",
    },
    "old namespace": {"pod_name": "victim", "pod_namespace": "ml"},
    "Cloud Monitoring": {"pod_name": "victim", "namespace_name": "ml"},
    **{
        f"{spelling.pod} {namespace}": {spelling.pod: "victim", namespace: "ml"}
        for spelling in SPELLINGS
        for namespace in spelling.namespaces
        if spelling is not POD and "." not in spelling.pod  # not a name in the text format
    },
}


def tenant(labels: Mapping[str, str], name: str = "tenant") -> World:
    """A world in which a tenant's pod has these labels."""
    pod = make_pod(name, namespace="other", node="n1", uid="t").replace(labels=dict(labels))
    return World(make_pod("victim", node="n1"), pod, make_pod("dcgm-x", namespace="gpu", gpus={}))


def page(labels: Mapping[str, str], name: str = "tenant") -> str:
    """The victim's sample, and the tenant's with its own labels before those of the exporter."""
    forged = "".join(f',{key}="{value}"' for key, value in labels.items())
    own = f'container="server",namespace="other",pod="{name}"'
    return row(UTIL, 90, "victim") + f'{UTIL}{{gpu="1",UUID="GPU-1"{forged},{own}}} 2\n'


def through_prometheus(world: World, text: str, *, honor: bool) -> None:
    """Ingest a page as Prometheus stores it."""
    rows = []
    for name, labels, value, time in parse(text.encode(), time=T, wanted=CATALOG.series).samples:
        kept = dict(labels)
        if not honor:
            for key in (*EXPORTER, "container"):
                if key in kept:
                    renamed = f"exported_{key}"
                    while kept.get(renamed):
                        renamed = f"exported_{renamed}"
                    kept[renamed] = kept.pop(key)
        rows.append(Sample(name, {**EXPORTER, **kept}, value, time))
    world.store.ingest(ScrapeResult("10.0.0.7:9400", None, rows, T))


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("way", ["scraped", "honorLabels true", "honorLabels false"])
def test_another_spelling_of_the_pod_label_changes_no_other_value(
    way: str, forged: dict[str, str]
) -> None:
    world = tenant(forged)
    if way == "scraped":
        world.scrape(page(forged), T, node="n1", pod=("gpu", "dcgm-x"))
    else:
        through_prometheus(world, page(forged), honor=way == "honorLabels true")
    assert world.value("victim", "gpu_utilization", T) == 90.0
    own = said(world.read("tenant", "gpu_utilization", T, namespace="other"))
    assert own in (2.0, "pod_not_named", "self_attribution")


def test_a_sample_that_names_two_gpu_pods_describes_only_the_device_and_is_counted() -> None:
    forged = FORGED["old namespace"]
    world = tenant(forged)
    world.scrape(page(forged), T, node="n1", pod=("gpu", "dcgm-x"))
    assert world.count("several_pods") == 1
    assert reading(world.node("n1", "gpu_count", T)).value == 2.0


def test_a_namespace_label_alone_does_not_move_a_sample_to_a_namesake() -> None:
    forged = {"exported_namespace": "ml"}
    world = tenant(forged, name="victim")
    through_prometheus(world, page(forged, name="victim"), honor=True)
    assert world.value("victim", "gpu_utilization", T) == 90.0


SHARED = {"nvidia.com/gpu.shared": 1}
EQUAL = SharingOptions(policy=SharingPolicy.EQUAL)


@pytest.mark.parametrize(
    "own",
    [
        {"GPU_I_ID": "7"},
        {"GPU-I-ID": "7", "GPU_I_PROFILE": "1g.5gb"},
        {"dra_mig_device_uuid": "MIG-x"},
        {"gpu_partition_id": "3", "gpu_compute_partition_type": "cpx"},
        {"node": "n2", "Hostname": "n2"},
        {"uuid": "GPU-9"},
        {"UUID": "GPU-0"},
    ],
    ids=str,
)
def test_a_label_that_names_another_device_does_not_move_a_sharers_value(
    own: dict[str, str],
) -> None:
    pod = make_pod("tenant", gpus=SHARED, node="n1", uid="t")
    world = World(
        make_pod("victim", gpus=SHARED, node="n1"), pod.replace(labels=own), sharing=EQUAL
    )
    more = "".join(f',{key.replace("-", "_")}="{value}"' for key, value in own.items())
    world.scrape(
        row(UTIL, 60, "victim", more='vgpu="0"') + row(UTIL, 60, "tenant", more=f'vgpu="1"{more}'),
        T,
        node="n1",
    )
    assert world.value("victim", "gpu_utilization", T) == 30.0
    assert world.value("tenant", "gpu_utilization", T) == 30.0


def test_a_pod_label_named_uuid_does_not_take_another_pods_device() -> None:
    # With --use-old-namespace the exporter's own label is uuid.
    pod = make_pod("tenant", node="n1", uid="t").replace(labels={"UUID": "GPU-0"})
    world = World(make_pod("victim", node="n1"), pod)
    line = 'dcgm_gpu_utilization{{gpu="{n}",uuid="GPU-{n}",{more}'
    line += 'pod_name="{p}",pod_namespace="ml"}} {v}\n'
    text = line.format(n=0, more="", p="victim", v=90)
    text += line.format(n=1, more='UUID="GPU-0",', p="tenant", v=2)
    world.scrape(text, T, node="n1")
    assert world.value("victim", "gpu_utilization", T) == 90.0
    assert world.value("tenant", "gpu_utilization", T) == 2.0
    assert world.count("pod_label") == 1


def test_the_only_identity_in_a_sample_comes_from_the_exporter() -> None:
    pod = make_pod("p", node="n1").replace(labels={"UUID": "GPU-0"})
    world = World(pod)
    world.scrape(f'{UTIL}{{UUID="GPU-0",pod="p",namespace="ml"}} 5\n', T, node="n1")
    assert world.value("p", "gpu_utilization", T, "device=GPU-0") == 5.0


@pytest.mark.parametrize("honor", [True, False], ids=["honorLabels true", "honorLabels false"])
def test_a_namesake_in_the_exporters_namespace_takes_no_value(honor: bool) -> None:
    namesake = make_pod("victim", namespace=EXPORTER["namespace"], node="n9", uid="z")
    world = World(
        make_pod("victim", node="n1"), namesake, make_pod("dcgm-x", namespace="gpu", gpus={})
    )
    through_prometheus(world, row(UTIL, 90, "victim"), honor=honor)
    assert world.value("victim", "gpu_utilization", T) == 90.0


def test_a_target_without_a_namespace_does_not_determine_the_pod() -> None:
    """A scrape that adds ``namespace`` but not ``pod``: the tenant's sample names two pods."""
    forged = FORGED["exported"]
    own = {"pod": "tenant", "namespace": "gpu", "exported_exported_namespace": "other"}
    world = tenant(forged)
    world.scrape(row(UTIL, 90, "victim"), T, node="n1")
    labels = {"UUID": "GPU-1", "instance": "10.0.0.7:9400", **forged, **own}
    world.store.ingest(ScrapeResult("10.0.0.7:9400", None, [Sample(UTIL, labels, 2.0, T)], T))
    assert world.count("several_pods") == 1
    assert world.value("victim", "gpu_utilization", T) == 90.0


@pytest.mark.parametrize("way", ["scraped", "honorLabels true", "honorLabels false"])
def test_labels_of_pods_do_not_create_clusters(way: str) -> None:
    two = {"nvidia.com/gpu.shared": 2}
    others = {"a": ("GPU-0", "x"), "b": ("GPU-1", "y")}
    world = World(
        make_pod("victim", gpus=two, node="n1"),
        make_pod("dcgm-x", namespace="gpu", gpus={}, node="n1"),
        *(
            make_pod(name, gpus=two, node="n1", uid=name).replace(labels={"cluster-name": of})
            for name, (_, of) in others.items()
        ),
    )
    first = row(UTIL, 60, "victim", uuid="GPU-0") + row(UTIL, 40, "victim", uuid="GPU-1")
    then = "".join(
        row(UTIL, 50, name, uuid=uuid, more=f'cluster_name="{of}"')
        for name, (uuid, of) in others.items()
    )
    for text in (first, then):
        if way == "scraped":
            world.scrape(text, T, node="n1", pod=("gpu", "dcgm-x"))
        else:
            through_prometheus(world, text, honor=way == "honorLabels true")
    assert isinstance(world.value("victim", "gpu_utilization", T), float)
