"""A Pods metric with ``aggregate``: the value of a group of pods, for its leader.

The labels and the annotation are those that the controller of LeaderWorkerSets writes
(kubernetes-sigs/lws ``api/leaderworkerset/v1/leaderworkerset_types.go``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from adapter.pipeline.cluster.pod import Owner, Pod
from apiservice.errors import BadQuery, MetricNotFound
from apiservice.labels.selector import parse as selector
from apiservice.provider import GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod

NOW: Final = 1_700_000_000.0
LWS: Final = "leaderworkerset.sigs.k8s.io"
LEADERS: Final = f"{LWS}/name=llm,{LWS}/worker-index=0"
"""What the scale subresource of LeaderWorkerSet llm has as its selector."""
UTIL: Final = "gpu_utilization"


def member(group: int, worker: int, size: object = 3, **parts: Any) -> Pod:
    """A pod of LeaderWorkerSet llm."""
    leader = f"llm-{group}"
    labels = {
        f"{LWS}/name": "llm",
        f"{LWS}/group-index": str(group),
        f"{LWS}/worker-index": str(worker),
        f"{LWS}/group-key": f"key-{group}",
    }
    name = leader if worker == 0 else f"{leader}-{worker}"
    return make_pod(
        name,
        node="n1",
        uid=name,
        labels=labels,
        annotations={f"{LWS}/size": str(size)},
        owner=Owner("apps/v1", "StatefulSet", leader if worker else "llm"),
        **parts,
    )


def world(busy: Mapping[str, float], *pods: Pod) -> World:
    """Pods, and a page with the use of the GPU of some."""
    made = World(*pods)
    page = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{number}",UUID="GPU-{number}",container="server",'
        f'namespace="ml",pod="{name}"}} {value}\n'
        for number, (name, value) in enumerate(busy.items())
    )
    made.scrape(page, NOW, origin="http://n1:9400/metrics", node="n1")
    return made


def ask(of: World, how: str, pods: str = LEADERS, metric: str = UTIL) -> dict[str, int]:
    """What the HPA controller gets: pod -> thousandths."""
    query = ObjectQuery(
        GroupResource("pods", ""), "ml", None, metric, selector(pods), selector(how)
    )
    items = at_once(of.custom.values(query, NOW)).items
    return {item.described.name: item.milli for item in items}


GROUPS = [member(group, worker) for group in (0, 1) for worker in (0, 1, 2)]
BUSY = {"llm-0": 2, "llm-0-1": 95, "llm-0-2": 95, "llm-1": 0, "llm-1-1": 50, "llm-1-2": 40}


def test_a_leader_has_its_own_value_unless_the_hpa_asks_for_the_group() -> None:
    of = world(BUSY, *GROUPS)
    assert ask(of, "") == {"llm-0": 2_000, "llm-1": 0}
    assert ask(of, "aggregate=mean") == {"llm-0": 64_000, "llm-1": 30_000}


@pytest.mark.parametrize(
    ("how", "value"), [("max", 95_000), ("min", 2_000), ("sum", 192_000), ("p95", 95_000)]
)
def test_the_label_says_how_the_pods_of_a_group_are_combined(how: str, value: int) -> None:
    assert ask(world(BUSY, *GROUPS), f"aggregate={how}")["llm-0"] == value


def test_the_group_of_a_worker_is_that_of_its_leader() -> None:
    of = world(BUSY, *GROUPS)
    assert ask(of, "aggregate=mean", f"{LWS}/worker-index=2")["llm-0-2"] == 64_000


@pytest.mark.parametrize("lacking", ["llm-0", "llm-0-1", "llm-0-2"])
def test_a_group_with_a_pod_without_a_value_has_none(lacking: str) -> None:
    busy = {name: value for name, value in BUSY.items() if name != lacking}
    of = world(busy, *GROUPS)
    assert ask(of, "aggregate=mean") == {"llm-1": 30_000}
    assert of.custom.absent["group_incomplete"] == 1


@pytest.mark.parametrize("state", [{"ready": False}, {"phase": "Pending"}, {"deleting": True}])
def test_a_worker_that_does_not_serve_leaves_its_group_without_a_value(
    state: dict[str, Any],
) -> None:
    pods = [member(0, 2, **state) if pod.name == "llm-0-2" else pod for pod in GROUPS]
    assert ask(world(BUSY, *pods), "aggregate=mean") == {"llm-1": 30_000}


def test_a_group_whose_workers_do_not_exist_yet_is_not_its_leader_alone() -> None:
    """`startupPolicy: LeaderReady` creates the workers after the leader is ready."""
    pods = [pod for pod in GROUPS if pod.name not in ("llm-0-1", "llm-0-2")]
    of = world(BUSY, *pods)
    assert ask(of, "aggregate=mean") == {"llm-1": 30_000}
    query = ObjectQuery(
        *(GroupResource("pods", ""), "ml", "llm-0", UTIL), selector(""), selector("aggregate=mean")
    )
    with pytest.raises(MetricNotFound, match=r"1 of 3 pods exist \(group_incomplete\)"):
        at_once(of.custom.values(query, NOW))


def test_a_leader_without_a_gpu_has_the_value_of_its_workers() -> None:
    pods = [member(0, 0, gpus={}), member(0, 1), member(0, 2)]
    of = world({"llm-0-1": 90, "llm-0-2": 70}, *pods)
    assert ask(of, "") == {}
    assert ask(of, "aggregate=mean") == {"llm-0": 80_000}


def test_the_page_of_a_server_speaks_for_its_group() -> None:
    """The leader answers for its group: workers of another template are not awaited."""
    of = World(*GROUPS)
    page = "vllm:num_requests_waiting 6\n"
    for leader in ("llm-0", "llm-1"):
        of.scrape(page, NOW, origin=f"http://{leader}:8000", pod=("ml", leader), serves=True)
    waiting = "inference_requests_waiting"
    assert ask(of, "aggregate=mean", metric=waiting) == {"llm-0": 6_000, "llm-1": 6_000}
    query = ObjectQuery(
        GroupResource.parse("leaderworkersets.leaderworkerset.x-k8s.io"),
        *("ml", "llm", waiting, selector(""), selector("")),
    )
    (total,) = at_once(of.custom.values(query, NOW)).items
    assert total.milli == 12_000, "the sum over the leaders, without workers that have no page"


def test_a_pod_that_is_a_replica_of_its_own_keeps_its_value() -> None:
    alone = make_pod("a", node="n1", labels={"app": "llm"})
    of = world({"a": 60}, alone)
    assert ask(of, "aggregate=mean", "app=llm") == {"a": 60_000}


def test_devices_are_selected_beside_the_form() -> None:
    of = world(BUSY, *GROUPS)
    assert ask(of, "aggregate=mean,container=server")["llm-0"] == 64_000
    assert ask(of, "aggregate=mean,container=other") == {}


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(BadQuery, match="aggregate must be one of"):
        ask(world(BUSY, *GROUPS), "aggregate=average")


@pytest.mark.parametrize("size", ["999999999", "9" * 5000, "-1", "1e9", "", "\u0663"])
def test_a_size_that_a_tenant_states_affects_its_own_group_alone(size: str) -> None:
    """The annotations of a pod are its creator's."""
    own = [member(0, 0, size), *GROUPS[1:]]
    theirs = [member(group, 0, size, namespace="tenant") for group in (0, 1)]
    values = ask(world({pod.ref.name: 40.0 for pod in GROUPS}, *own, *theirs), "aggregate=mean")
    assert values["llm-1"] == 40_000
    assert ("llm-0" in values) == (size != "999999999")


@pytest.mark.parametrize(
    "how",
    ["aggregate in (mean,max)", "aggregate!=mean", "!aggregate", "aggregate", "aggregate=MEAN",
     "aggregate=", "aggregate notin (mean)", "aggregate=mean,aggregate=max"],
)  # fmt: skip
def test_another_form_of_aggregate_is_refused_regardless_of_the_pods(how: str) -> None:
    with pytest.raises(BadQuery):
        ask(world({}, *GROUPS), how)
