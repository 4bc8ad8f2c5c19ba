"""All kinds of device sharing: the sharers, the evidence, and the allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.attribution.policy import PolicyRule, SharingOptions, SharingPolicy
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod
from apiservice.labels.selector import EVERYTHING, parse
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod, own_page, reading, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED = "DCGM_FI_DEV_FB_USED"
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
MIG = 'GPU_I_PROFILE="{}",GPU_I_ID="{}"'.format
GPU = {"nvidia.com/gpu": 1}
SLICED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}


def on_node(name: str, gpus: Mapping[str, int] = GPU, **more: object) -> Pod:
    return make_pod(name, gpus=gpus, node="n", uid=f"uid-{name}", **more)  # type: ignore[arg-type]  # fields by name


def world(
    *pods: Pod, labels: Mapping[str, str] | None = None, sharing: SharingOptions | None = None
) -> World:
    made = World(*pods, sharing=sharing)
    if labels is not None:
        made.nodes.replace([Node("n", labels)])
    return made


class Sliced(NamedTuple):
    """A sample names one of two pods of a node with one device."""

    labels: Mapping[str, str]
    gpus: Mapping[str, int]
    evidence: str


SLICES = {
    "replicas on the node's label": Sliced(SLICED, GPU, "node_replicas"),
    "time-slicing on the node's label": Sliced(
        {"nvidia.com/gpu.sharing-strategy": "time-slicing"}, GPU, "node_strategy"
    ),
    "MPS on the node's label": Sliced(
        {"nvidia.com/gpu.sharing-strategy": "mps"}, GPU, "node_strategy"
    ),
    "GKE's time-sharing": Sliced(
        {"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}, GPU, "node_strategy"
    ),
    "GKE's clients per GPU": Sliced(
        {"cloud.google.com/gke-max-shared-clients-per-gpu": "3"}, GPU, "node_replicas"
    ),
    "a shared product": Sliced({"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, GPU, "node_product"),
    "a renamed resource in the pods' specs": Sliced({}, {"nvidia.com/gpu.shared": 1}, "pod_spec"),
}


@pytest.mark.parametrize("case", SLICES.values(), ids=SLICES)
def test_a_time_sliced_device_is_known_by(case: Sliced) -> None:
    lab = world(on_node("p", case.gpus), on_node("q", case.gpus), labels=case.labels)
    lab.scrape(row(UTIL, 71, "q"), 100.0, node="n")
    for name in "pq":
        answer = reading(lab.read(name, UTIL, 100.0, "sharing=shared,attribution=copied"))
        (device,) = answer.devices
        assert (answer.value, device.evidence, device.sharers) == (71.0, case.evidence, 2)


def test_node_labels_can_rule_out_sharing() -> None:
    labels = {"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}
    lab = world(on_node("p"), on_node("q"), labels=labels)
    lab.scrape(row(UTIL, 71, "q"), 100.0, node="n")
    assert lab.value("q", UTIL, 100.0, "sharing=exclusive,attribution=exact") == 71.0
    assert lab.value("p", UTIL, 100.0) == "device_named_for_other_pod"


def flapping(*pods: Pod, sharing: SharingOptions | None = None) -> World:
    lab = world(*pods, sharing=sharing)
    for i, name in enumerate("pqpq"):
        lab.scrape(row(UTIL, 10 * (i + 1), name), 100.0 + 5 * i, node="n")
    return lab


def test_samples_that_alternate_between_living_pods_show_a_shared_device() -> None:
    lab = flapping(on_node("p"), on_node("q"))
    for name in "pq":
        answer = reading(lab.read(name, UTIL, 115.0))
        assert (answer.value, answer.time) == (25.0, 115.0)
        assert answer.devices[0].evidence == "flapping_samples"
    assert lab.store.sharing_nodes["flapping_samples"] == 1


def test_an_unnamed_pod_shares_the_only_device_of_its_node() -> None:
    lab = flapping(on_node("p"), on_node("q"), on_node("r"))
    assert lab.value("r", UTIL, 115.0) == 25.0


def test_once_named_a_pod_shares_the_device_as_long_as_it_lives() -> None:
    lab = world(on_node("p"), on_node("q"), labels={"nvidia.com/gpu.replicas": "2"})
    both = row(UTIL, 30, "p") + row(UTIL, 90, uuid="GPU-1")
    lab.scrape(both, 100.0, node="n")
    for i in range(60):
        lab.scrape(row(UTIL, 50, "q") + row(UTIL, 90, uuid="GPU-1"), 105.0 + 5 * i, node="n")
    assert lab.value("p", UTIL, 400.0) == 50.0


def test_the_device_of_an_unnamed_pod_is_not_guessed_among_several() -> None:
    lab = world(on_node("p"), on_node("q"), labels={"nvidia.com/gpu.replicas": "2"})
    lab.scrape(row(UTIL, 30, "p") + row(UTIL, 90, uuid="GPU-1"), 100.0, node="n")
    assert lab.value("p", UTIL, 100.0) == 30.0
    assert lab.value("q", UTIL, 100.0) == "shared_device_unknown"


def test_a_device_hidden_from_the_exporter_also_prevents_a_guess() -> None:
    labels = {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.count": "2"}
    lab = world(on_node("p"), on_node("q"), labels=labels)
    lab.scrape(row(UTIL, 30, "p"), 100.0, node="n")
    assert lab.value("q", UTIL, 100.0) == "shared_device_unknown"


def test_a_device_of_a_finished_pod_belongs_to_the_next_pod_alone() -> None:
    lab = world(on_node("p"), on_node("q"))
    lab.scrape(row(UTIL, 30, "p"), 100.0, node="n")
    lab.put(on_node("p", phase="Succeeded"))
    lab.scrape(row(UTIL, 70, "q"), 105.0, node="n")
    assert lab.value("q", UTIL, 105.0, "sharing=exclusive") == 70.0


def test_a_device_of_a_terminating_pod_belongs_to_the_next_pod_alone() -> None:
    lab = world(on_node("p", deleting=True), on_node("q"))
    lab.scrape(row(UTIL, 30, "p"), 100.0, node="n")
    lab.scrape(row(UTIL, 70, "q"), 105.0, node="n")
    assert lab.value("q", UTIL, 105.0, "sharing=exclusive") == 70.0


def test_two_exporters_that_name_different_pods_disagree_and_do_not_share() -> None:
    lab = world(on_node("p"), on_node("q"))
    lab.scrape(row(UTIL, 30, "p"), 100.0, node="n", origin="a")
    lab.scrape(row(UTIL, 70, "q"), 103.0, node="n", origin="b")
    assert lab.value("p", UTIL, 103.0) == "conflict"
    assert lab.value("q", UTIL, 103.0, "sharing=exclusive") == 70.0


def test_two_pages_of_a_flapping_device_serve_both_pods() -> None:
    names = ("tagger-84c5b7d9f-6kzrp", "tagger-84c5b7d9f-tq9wm")
    lab = World(*(make_pod(n, namespace="nlp", node="slice-1", uid=n) for n in names))
    for i, page in enumerate(("4.5-time-sliced", "4.5-time-sliced-next")):
        lab.scrape(own_page(f"dcgm/{page}.prom"), 100.0 + 5 * i, node="slice-1")
    answers = [reading(lab.read(n, UTIL, 105.0, namespace="nlp")) for n in names]
    assert [answer.value for answer in answers] == [68.0, 68.0]


def test_a_change_of_sharers_invalidates_answers() -> None:
    lab = world(
        on_node("p"), on_node("q"), labels=SLICED, sharing=SharingOptions(SharingPolicy.EQUAL)
    )
    lab.scrape(row(UTIL, 60, "p"), 100.0, node="n")
    assert lab.value("p", UTIL, 100.0) == 30.0
    lab.put(on_node("r"))
    assert lab.value("p", UTIL, 100.0) == 20.0
    lab.put(on_node("r", phase="Succeeded"))
    assert lab.value("p", UTIL, 100.0) == 30.0
    lab.remove("q")
    assert lab.value("p", UTIL, 100.0) == 60.0
    assert lab.read("p", UTIL, 100.0) is lab.read("p", UTIL, 100.0)


def vgpu(series: str, value: object, pod: str, replica: int) -> str:
    return row(series, value, pod, more=f'vgpu="{replica}"')


COPIES = vgpu(UTIL, 80, "p", 0) + vgpu(UTIL, 80, "q", 1)
HEAT = vgpu(TEMPERATURE, 60, "p", 0) + vgpu(TEMPERATURE, 60, "q", 1)
PROCESSES = (
    row(UTIL, 90) + vgpu(UTIL, 62, "p", 0) + vgpu(UTIL, 31, "q", 1)
    + vgpu(USED, 3000, "p", 0) + vgpu(USED, 1000, "q", 1)
    + vgpu(ENGINE, 0.8, "p", 0) + vgpu(ENGINE, 0.8, "q", 1)
)  # fmt: skip
ASKED = {"p": {**GPU, "nvidia.com/gpumem": 3000}, "q": {**GPU, "nvidia.com/gpumem": 1000}}


class Part(NamedTuple):
    page: str
    policy: SharingPolicy
    metric: str
    says: Sequence[float | str]
    """The values of p and q."""
    attribution: str
    gpus: Mapping[str, Mapping[str, int]] = {"p": GPU, "q": GPU}


PARTS = {
    "copies under copy": Part(COPIES, SharingPolicy.COPY, UTIL, (80, 80), "copied"),
    "copies under equal": Part(COPIES, SharingPolicy.EQUAL, UTIL, (40, 40), "split"),
    "copies under memory, by what was asked for": Part(
        COPIES, SharingPolicy.MEMORY, UTIL, (60, 20), "split", ASKED
    ),
    "copies under memory, nothing known": Part(
        COPIES, SharingPolicy.MEMORY, UTIL, ("no_memory_weight",) * 2, "split"
    ),
    "copies under memory, known of one only": Part(
        COPIES,
        SharingPolicy.MEMORY,
        UTIL,
        ("no_memory_weight",) * 2,
        "split",
        {"p": ASKED["p"], "q": GPU},
    ),
    "copies under exact": Part(COPIES, SharingPolicy.EXACT, UTIL, ("not_exact",) * 2, "copied"),
    "a temperature is never divided": Part(
        HEAT, SharingPolicy.EQUAL, TEMPERATURE, (60, 60), "copied"
    ),
    "a count is never divided": Part(COPIES, SharingPolicy.EQUAL, "gpu_count", (1, 1), "copied"),
    "processes under copy": Part(PROCESSES, SharingPolicy.COPY, UTIL, (62, 31), "exact"),
    "processes under equal": Part(PROCESSES, SharingPolicy.EQUAL, UTIL, (62, 31), "exact"),
    "processes under exact": Part(PROCESSES, SharingPolicy.EXACT, USED, (3000, 1000), "exact"),
    "what is not accounted, under exact": Part(
        PROCESSES, SharingPolicy.EXACT, ENGINE, ("not_exact",) * 2, "copied"
    ),
    "what is not accounted, by the memory that is": Part(
        PROCESSES, SharingPolicy.MEMORY, ENGINE, (0.6, 0.2), "split"
    ),
}


@pytest.mark.parametrize("case", PARTS.values(), ids=PARTS)
def test_the_allocation_of_two_sharers(case: Part) -> None:
    pods = [on_node(name, case.gpus[name]) for name in "pq"]
    lab = world(*pods, sharing=SharingOptions(case.policy))
    lab.scrape(case.page, 100.0, node="n")
    where = f"attribution={case.attribution}"
    assert [lab.value(name, case.metric, 100.0, where) for name in "pq"] == list(case.says)


def test_zeros_of_processes_on_a_busy_device_are_missing_under_every_policy() -> None:
    page = row(UTIL, 97) + vgpu(UTIL, 0, "p", 0) + vgpu(UTIL, 0, "q", 1)
    for policy in SharingPolicy:
        lab = world(on_node("p"), on_node("q"), sharing=SharingOptions(policy))
        lab.scrape(page, 100.0, node="n")
        assert lab.value("p", UTIL, 100.0) == "zero_on_busy_device"


@given(
    st.floats(0, 100),
    st.lists(st.integers(1, 80_000), min_size=1, max_size=9),
    st.sampled_from([SharingPolicy.EQUAL, SharingPolicy.MEMORY]),
)
def test_splits_sum_to_the_devices_value(
    value: float, memory: list[int], policy: SharingPolicy
) -> None:
    names = [f"p{i}" for i in range(len(memory))]
    requests = [{**GPU, "nvidia.com/gpumem": amount} for amount in memory]
    pods = [on_node(name, gpus) for name, gpus in zip(names, requests, strict=True)]
    lab = world(*pods, labels=SLICED, sharing=SharingOptions(policy))
    lab.scrape(row(UTIL, f"{value:f}", names[0]), 100.0, node="n")
    parts = [reading(lab.read(name, UTIL, 100.0)).value for name in names]
    assert sum(parts) == pytest.approx(float(f"{value:f}"))


def test_several_pods_of_one_resource_claim_share_and_containers_of_one_pod_do_not() -> None:
    claim = 'dra_claim_name="c",dra_device_name="gpu-0"'
    both = row(UTIL, 50, "p", more=claim) + row(UTIL, 50, "q", more=claim)
    lab = world(on_node("p", {}, claims=True), on_node("q", {}, claims=True))
    lab.scrape(both, 100.0, node="n")
    assert [lab.value(n, UTIL, 100.0, "attribution=copied") for n in "pq"] == [50, 50]
    one = row(UTIL, 50, "p", container="a", more=claim) + row(
        UTIL, 50, "p", container="b", more=claim
    )
    lab = world(on_node("p", {}, claims=True))
    lab.scrape(one, 100.0, node="n")
    assert lab.value("p", UTIL, 100.0, "sharing=exclusive,attribution=exact") == 50


def test_a_sample_per_job_of_one_pod_is_one_unshared_device() -> None:
    lab = world(on_node("p"))
    page = "".join(row(USED, 7, "p", more=f'hpc_job="{job}"') for job in (1, 2))
    lab.scrape(page, 100.0, node="n")
    assert lab.value("p", USED, 100.0, "sharing=exclusive") == 7.0


def test_a_shared_instance_is_shared_by_the_pods_that_request_its_profile() -> None:
    gpus = {"nvidia.com/mig-1g.5gb.shared": 1}
    pods = [on_node("p", gpus), on_node("q", gpus), on_node("r", {"nvidia.com/mig-2g.10gb": 1})]
    lab = world(*pods, sharing=SharingOptions(SharingPolicy.EQUAL))
    page = row(ENGINE, 0.6, "p", more=MIG("1g.5gb", 7))
    page += row(ENGINE, 0.4, "r", more=MIG("2g.10gb", 3))
    lab.scrape(page, 100.0, node="n")
    answers = [lab.value(name, "gpu_utilization", 100.0) for name in "pqr"]
    assert answers == [30.0, 30.0, 40.0]
    assert lab.value("r", "gpu_utilization", 100.0, "sharing=exclusive") == 40.0


SPELLINGS = {
    "the same name": ("1g.5gb", "1g.5gb", True),
    "memory rounded down: dcgm-exporter#544": ("1g.11gb", "1g.12gb", True),
    "all slices: dcgm-exporter#713": ("7g.79gb", "7g.80gb", True),
    "with an attribute": ("1g.11gb+me", "1g.12gb.me", True),
    "part of the compute slices": ("1c.3g.47gb", "1c.3g.48gb", True),
    "another attribute is another profile": ("1g.11gb", "1g.12gb.me", False),
    "other slices are another profile": ("1g.11gb", "2g.12gb", False),
    "twice the memory is another profile": ("1g.20gb", "1g.10gb", False),
    "a name without slices": ("odd", "1g.12gb", False),
}


@pytest.mark.parametrize(("label", "asked", "same"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_shared_instance_is_known_by_its_slices_if_the_memory_is_rounded(
    label: str, asked: str, same: bool
) -> None:
    gpus = {f"nvidia.com/mig-{asked}.shared": 1}
    lab = world(on_node("p", gpus), on_node("q", gpus), sharing=SharingOptions(SharingPolicy.EQUAL))
    lab.scrape(row(ENGINE, 0.6, "p", more=MIG(label, 7)), 100.0, node="n")
    expected = [30.0, 30.0] if same else [60.0, "pod_not_named"]
    answers = [lab.value(name, "gpu_utilization", 100.0) for name in "pq"]
    assert answers == expected if same else answers[0] == 60.0


def test_an_instance_whose_profile_may_be_one_of_two_is_not_guessed() -> None:
    gpus = {"nvidia.com/mig-1g.10gb.shared": 1}
    labels = {"nvidia.com/mig-1g.12gb.count": "7"}
    lab = world(
        on_node("p", gpus),
        on_node("q", gpus),
        labels=labels,
        sharing=SharingOptions(SharingPolicy.EQUAL),
    )
    lab.scrape(row(ENGINE, 0.6, "p", more=MIG("1g.11gb", 7)), 100.0, node="n")
    assert lab.value("p", "gpu_utilization", 100.0) == 60.0


def test_a_requested_part_is_known_by_slices_too() -> None:
    labels = {"nvidia.com/mig-1g.12gb.count": "7", "nvidia.com/mig-1g.12gb.replicas": "4"}
    gpus = {"nvidia.com/mig-1g.12gb": 1}
    lab = world(
        on_node("p", gpus),
        on_node("q", gpus),
        labels=labels,
        sharing=SharingOptions(SharingPolicy.EQUAL),
    )
    page = "".join(row(ENGINE, 0.2, name, more=MIG("1g.11gb", 7)) for name in "pq")
    lab.scrape(page, 100.0, node="n")
    assert lab.value("p", "gpu_utilization", 100.0) == 10.0
    assert lab.value("p", "gpu_utilization_of_request", 100.0) == 40.0


def test_instances_with_the_single_strategy_are_requested_as_whole_gpus() -> None:
    labels = {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.replicas": "2"}
    lab = world(on_node("p"), on_node("q"), labels=labels)
    lab.scrape(row(ENGINE, 0.6, "p", more=MIG("7g.40gb", 0)), 100.0, node="n")
    assert [lab.value(n, "gpu_utilization", 100.0) for n in "pq"] == [60.0, 60.0]


NORMAL = {
    "a 2g profile reaches half": ("2g.10gb", 0.25, 50.0),
    "a 3g profile reaches a third": ("3g.20gb", 0.3333, 99.99),
    "rounding above a third": ("3g.20gb", 0.336, 100.0),
    "more than one compute instance can": ("2g.10gb", 0.8, 80.0),
    "a 1g profile reaches all": ("1g.5gb", 0.4, 40.0),
    "a profile of unknown limit": ("4g.20gb", 0.4, 40.0),
}


@pytest.mark.parametrize(("profile", "engine", "percent"), NORMAL.values(), ids=NORMAL)
def test_normalised_by_profile(profile: str, engine: float, percent: float) -> None:
    lab = world(on_node("p"), sharing=SharingOptions(normalized=True))
    lab.scrape(row(ENGINE, engine, "p", more=MIG(profile, 1)), 100.0, node="n")
    assert lab.value("p", "gpu_utilization", 100.0) == percent
    assert lab.value("p", ENGINE, 100.0) == engine
    plain = world(on_node("p"))
    plain.scrape(row(ENGINE, engine, "p", more=MIG(profile, 1)), 100.0, node="n")
    assert plain.value("p", "gpu_utilization", 100.0) == pytest.approx(engine * 100)


RULES = {
    "by namespace": (PolicyRule(SharingPolicy.EQUAL, namespaces=("m*",)), 40.0),
    "of another namespace": (PolicyRule(SharingPolicy.EQUAL, namespaces=("dev",)), 80.0),
    "by node": (PolicyRule(SharingPolicy.EQUAL, nodes=parse("pool=dev")), 40.0),
    "of other nodes": (PolicyRule(SharingPolicy.EQUAL, nodes=parse("pool=prod")), 80.0),
}


@pytest.mark.parametrize(("rule", "value"), RULES.values(), ids=RULES)
def test_the_first_rule_that_applies(rule: PolicyRule, value: float) -> None:
    options = SharingOptions(rules=(rule, PolicyRule(SharingPolicy.COPY)))
    lab = world(on_node("p"), on_node("q"), labels={"pool": "dev"}, sharing=options)
    lab.scrape(COPIES, 100.0, node="n")
    assert lab.value("p", UTIL, 100.0) == value


def test_the_explanation_shows_policy_evidence_and_sharers() -> None:
    lab = world(on_node("p"), on_node("q"), sharing=SharingOptions(SharingPolicy.EQUAL))
    lab.scrape(COPIES, 100.0, node="n")
    pod = lab.pods[on_node("p").ref]
    outcome = lab.store.snapshot.pod(pod, UTIL, EVERYTHING, 100.0)
    (device,) = reading(outcome).devices
    shown = (device.attribution, device.policy, device.evidence, device.sharers)
    assert shown == ("split", "equal", "rows", 2)
    assert at_once(lab.store.attributions())["split"] == 2


def test_the_model_comes_from_the_node_label_if_the_page_has_none() -> None:
    lab = world(on_node("p"), labels={"nvidia.com/gpu.product": "Tesla-T4-SHARED"})
    page = f'{UTIL}{{gpu="0",UUID="GPU-0",pod="p",namespace="ml",container="c"}} 5\n'
    lab.scrape(page, 100.0, node="n")
    assert lab.value("p", UTIL, 100.0, "model=Tesla-T4") == 5.0
    lab.scrape(row(UTIL, 5, "p"), 105.0, node="n")
    assert lab.value("p", UTIL, 105.0, "model=NVIDIA-H100") == 5.0


def test_a_server_on_a_time_sliced_device_shares_it_although_only_its_own_page_names_it() -> None:
    lab = world(on_node("p"), on_node("q"), labels=SLICED)
    lab.scrape(
        'vllm:num_requests_waiting{model_name="m"} 3\n',
        100.0,
        origin="q",
        pod=("ml", "q"),
        serves=True,
    )
    lab.scrape(row(UTIL, 40, "p"), 100.0, node="n")
    assert lab.value("q", "inference_requests_waiting", 100.0) == 3.0
    assert lab.value("q", UTIL, 100.0) == 40.0
    lab.scrape(row(UTIL, 60, "p"), 105.0, node="n")
    assert lab.value("q", UTIL, 105.0) == 50.0
