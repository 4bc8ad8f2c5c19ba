"""The loop: it plans, freezes, reports changes, and writes only if allowed."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import structlog.testing
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from adapter.config.settings.nodepool import LimitSettings, NodepoolSettings
from adapter.nodepool.act.methods import placeholder
from adapter.nodepool.learn.idle import GpuPod, IdlePod
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model import names
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.reason import Reason
from adapter.nodepool.model.shape import Shape, key
from adapter.nodepool.plan.order import Plan
from adapter.nodepool.plan.poolchoice import PoolNote
from adapter.nodepool.run.changes import ChangeSignal, WatchedTable, living_gpu_pod
from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.reports import Reports, render
from adapter.nodepool.run.selfmetrics import NodepoolMetrics
from adapter.nodepool.run.watches import Watches
from adapter.nodepool.seen import headroom
from adapter.nodepool.seen.cluster import ClusterTables
from apiservice.kube.reflector import EventType
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import (
    HOME,
    STATUS,
    T0,
    autoscaler_status,
    cluster,
    deployment,
    found,
    hpa,
    node,
    pod,
    priority_class,
)
from tests.adapter.nodepool.orders import LIFELINE, SHAPE, order

VALUES = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/team/pods/%2A/gpu_utilization"


class World:
    """Two pods with demand for six, an HPA that adds two immediately, and a controller."""

    def __init__(
        self, *, api: FakeApi | None = None, listing: bool = False, **settings: Any
    ) -> None:
        self.api = api or FakeApi()
        self.api.objects["/apis"] = {"groups": []}
        self.load(145)
        self.problem = ""
        self.table = io.StringIO()
        self.cluster: ClusterTables = cluster(
            nodes=[node("n1"), node("n2")],
            pods=[pod("a", on="n1"), pod("b", on="n1")],
            deployments=[deployment(2)],
            autoscalers=[hpa()],
            classes=[priority_class()],
        )
        self.listed = asyncio.Event()
        changes = ChangeSignal()
        self.pods = WatchedTable(self.cluster.pods, changes, living_gpu_pod)
        self.controller = NodepoolController(
            # Without a history a share would be added to every order.
            NodepoolSettings(
                namespace="gpu-metrics",
                limits=LimitSettings(**{"share": 0} | settings.pop("limits", {})),
                **settings,
            ),
            HOME,
            self.cluster,
            self.api,
            lambda: True,
            lambda _: self.problem,
            lambda _: None,
            Ledger(),
            Reports(self.table),
            clock=lambda: T0,
            changes=changes,
            listed=self.listed.wait,
        )
        if not listing:
            self.listed.set()

    def replicas(self) -> list[int]:
        """Applied placeholders as a watch would deliver them."""
        rows = [
            found(ProvisioningMethod.PLACEHOLDER, obj)
            for path, obj in self.api.objects.items()
            if "/deployments/" in path
        ]
        self.cluster.placeholders.replace(rows)
        return [row.replicas for row in rows]

    def load(self, percent: int) -> None:
        rows = [{"describedObject": {"name": name}, "value": str(percent)} for name in "ab"]
        self.api.objects[VALUES] = {"items": rows}

    async def round(self, seconds: float = 60) -> Plan | None:
        with structlog.testing.capture_logs() as self.logs:
            return await self.controller.round(T0 + seconds)


async def test_a_dry_run_plans_and_writes_nothing() -> None:
    world = World()
    decided = await world.round()
    assert decided is not None
    assert [row.replicas for row in decided.orders] == [2]
    assert world.api.sent == []
    assert "dry run: nothing is written" in world.table.getvalue()


async def test_a_dry_run_continues_from_its_last_plan() -> None:
    world = World(limits={"hold_seconds": 600})
    await world.round(60)
    world.load(30)
    decided = await world.round(75)
    assert decided is not None
    assert [(row.was, row.replicas) for row in decided.orders] == [(2, 2)]


async def test_a_plan_is_printed_only_when_its_numbers_change() -> None:
    world = World()
    for seconds in (60, 75, 90):
        await world.round(seconds)
    assert world.table.getvalue().count("NAMESPACE") == 1


async def test_applying_creates_placeholders() -> None:
    world = World(apply=True)
    await world.round()
    kinds = [path.split("/")[-2] for path in world.api.paths("PATCH")]
    assert kinds == ["jobs", "deployments"]
    assert [row.failure for row in world.controller.state.outcomes] == [""]


async def test_nothing_is_planned_without_complete_collections() -> None:
    world = World(apply=True)
    world.problem = "GET /api/v1/pods: connection refused"
    assert await world.round() is None
    assert world.api.sent == []
    assert world.controller.state.frozen == world.problem
    assert [row["event"] for row in world.logs if row["log_level"] == "warning"] == [
        "planning is paused, headroom is kept"
    ]
    world.problem = ""
    assert await world.round() is not None
    assert world.controller.state.frozen == ""


async def test_an_unavailable_metrics_api_changes_no_headroom() -> None:
    world = World()
    await world.round(60)
    del world.api.objects[VALUES]
    decided = await world.round(75)
    assert decided is not None
    assert [(row.was, row.replicas) for row in decided.orders] == [(2, 2)]
    assert world.controller.values.failures["404"] > 0


async def test_the_kill_switch_works_without_a_restart() -> None:
    world = World()
    await world.round(60)
    world.controller.use(NodepoolSettings(stop=True))
    decided = await world.round(75)
    assert decided is not None
    assert [row.replicas for row in decided.orders] == [0]


async def test_its_metrics_show_the_plan_and_the_reasons() -> None:
    world = World(apply=True)
    await world.round()
    registry = CollectorRegistry()
    watches = Watches(None, world.cluster, HOME, jobs_too=True, priority_class="low")
    registry.register(NodepoolMetrics(world.controller, watches, None, clock=lambda: T0))
    lines = generate_latest(registry).decode().splitlines()
    labels = 'namespace="team",pool="gput4",workload="Deployment/inference"'
    for line in (
        f"gma_nodepool_headroom_pods{{{labels}}} 2.0",
        f"gma_nodepool_headroom_ready_pods{{{labels}}} 2.0",
        "gma_nodepool_headroom_gpus 2.0",
        'gma_nodepool_orders_by_reason{reason="need"} 1.0',
        'gma_nodepool_applied_total{kind="Deployment"} 1.0',
        'gma_nodepool_provisioning_method{method="Placeholder"} 1.0',
        'gma_nodepool_watch_synced{collection="pods"} 0.0',
        "gma_nodepool_leading 1.0",
    ):
        assert line in lines
    assert not any("n1" in line for line in lines)


async def test_orders_with_the_same_labels_are_one_series() -> None:
    """Shapes without a workload, while their headroom is deleted."""
    world = World()
    await world.round()
    old = order(1, workloads=())
    world.controller.state.plan = Plan((old, replace(old, replicas=2)), ())
    registry = CollectorRegistry()
    watches = Watches(None, world.cluster, HOME, jobs_too=True, priority_class="low")
    registry.register(NodepoolMetrics(world.controller, watches, None, clock=lambda: T0))
    lines = generate_latest(registry).decode().splitlines()
    (line,) = [row for row in lines if row.startswith("gma_nodepool_headroom_pods{")]
    assert line == 'gma_nodepool_headroom_pods{namespace="team",pool="gput4",workload=""} 3.0'


def test_a_change_that_needs_a_restart_is_logged() -> None:
    world = World()
    settings = world.controller.settings
    new = settings.model_copy(update={"stop": True, "provisioning_method": "buffer"})
    with structlog.testing.capture_logs() as logs:
        world.controller.use(new)
    settings = world.controller.settings
    assert (settings.stop, settings.provisioning_method) == (True, "auto")
    assert [row["log_level"] for row in logs] == ["warning"]


def test_the_table_names_orders_pools_and_idle_gpus() -> None:
    decided = Plan(
        (order(2, 1, ready=1, nodes=1),), (PoolNote("gput4", Reason("trap", "mixed MIG")),)
    )
    idle = IdlePod(GpuPod("team", "a", "u", "gput4", 2, 0.0), T0, 3.0, 6.0)
    lines = render(decided, "CapacityBuffer (accepted)", [idle])
    method, head, row, note, last = lines
    assert method == "provisioning method: CapacityBuffer (accepted)"
    assert re.split(r"  +", head)[-4:] == ["HEADROOM", "READY", "NEW NODES", "WHY"]
    assert re.split(r"  +", row) == [
        *("team", "Deployment/inference", "gput4", "1 nvidia.com/gpu"),
        *("2", "1", "2", "1", "1", "4 pods are needed now"),
    ]
    assert note == "pool gput4: mixed MIG"
    assert last == (
        "idle: team/a holds 2 GPUs and has not used them since 2026-01-01T00:00:00Z: "
        "3.0 GPU-hours, cost 6.00"
    )


async def test_notes_of_pools_and_a_broken_status_are_logged_once() -> None:
    world = World(apply=True)
    labels = {"agentpool": "mig", "kubernetes.azure.com/accelerator": "nvidia"}
    mixed = node("m", {"cpu": "8", "nvidia.com/mig-1g.5gb": "7"}, labels=labels)
    world.cluster.nodes.replace([*world.cluster.nodes, mixed])
    world.cluster.status.replace([autoscaler_status("autoscalerStatus: [")])
    for seconds, count in ((60, 1), (75, 0)):
        await world.round(seconds)
        events = [row["event"] for row in world.logs if row["log_level"] == "warning"]
        assert events.count("node pool") == count
        assert events.count("autoscaler") == count


async def test_a_back_off_and_its_end_are_logged_with_the_reason() -> None:
    world = World(apply=True)
    world.cluster.status.replace([autoscaler_status()])
    decided = await world.round(60)
    assert decided is not None
    assert [row.replicas for row in decided.orders] == [0]
    rows = [row for row in world.logs if row["event"] == "autoscaler"]
    assert [(row["about"], row["problem"]) for row in rows] == [
        (
            "aks-gput4-12345678-vmss",
            "backs off: QUOTA_EXCEEDED: Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 2.0",
        )
    ]
    world.cluster.status.replace([autoscaler_status(STATUS.replace("Backoff", "NoActivity"))])
    await world.round(75)
    assert [row["problem"] for row in world.logs if row["event"] == "autoscaler"] == ["resolved"]


async def test_a_warning_about_placeholders_that_wait_is_logged_once() -> None:
    world = World(apply=True)
    world.cluster.status.replace([autoscaler_status()])
    for seconds, count in ((60, 1), (75, 0)):
        await world.round(seconds)
        rows = [row for row in world.logs if row["event"] == "provisioning method"]
        assert [row["log_level"] for row in rows] == ["warning"] * count
    reason = world.controller.state.method_reason
    assert "the API server serves no CapacityBuffer; the cluster-autoscaler adds no node" in reason
    assert "--bypassed-scheduler-names" in reason


async def test_without_a_cluster_autoscaler_there_is_no_warning_about_placeholders() -> None:
    world = World(apply=True)
    await world.round()
    assert world.controller.state.method_reason == "the API server serves no CapacityBuffer"


def test_an_empty_plan_is_explained() -> None:
    assert "no HPA scales a workload with GPU pods" in render(Plan((), ()), "none yet")[1]


def with_buffers(world: World) -> World:
    """Let the API server serve CapacityBuffers."""
    versions = [{"groupVersion": "v1beta1", "version": "v1beta1"}]
    groups = [{"name": "autoscaling.x-k8s.io", "versions": versions}]
    world.api.objects["/apis"] = {"groups": groups}
    resources = {"resources": [{"name": "capacitybuffers"}]}
    world.api.objects["/apis/autoscaling.x-k8s.io/v1beta1"] = resources
    return world


def probe_writes(world: World) -> int:
    paths = world.api.paths("PATCH")
    return sum(path.endswith(names.PROBE) and "/batch/" not in path for path in paths)


async def test_no_probe_is_written_if_no_buffers_are_served() -> None:
    world = World(apply=True)
    await world.round()
    assert probe_writes(world) == 0


@pytest.mark.parametrize(("method", "writes"), [("auto", 2), ("buffer", 2), ("placeholder", 0)])
async def test_the_probe_is_written_if_buffers_may_be_used(method: str, writes: int) -> None:
    """Karpenter keeps the nodes of the last buffer: with each of them, a probe outlives it."""
    world = with_buffers(World(apply=True, provisioning_method=method))
    await world.round()
    assert probe_writes(world) == writes


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("auto", "no probe of CapacityBuffers: "),
        ("buffer", "Karpenter may keep the nodes of deleted headroom, without a probe: "),
    ],
)
@pytest.mark.parametrize("refused", ["jobs/gpu-headroom-probe", "capacitybuffers"])
async def test_a_refused_probe_is_reported_and_not_tried_each_round(
    method: str, words: str, refused: str
) -> None:
    world = with_buffers(World(apply=True, provisioning_method=method))
    world.api.fail("PATCH", refused, 403, "forbidden")
    kind = "Job" if refused.startswith("jobs") else "CapacityBuffer"
    for seconds in (0, 15, 30):
        await world.round(seconds)
        reason = world.controller.state.method_reason
        assert words in reason
        assert "grant it to this ServiceAccount" in reason
    once = world.controller.writer.failed[kind, "forbidden"]
    assert once
    await world.round(301)
    assert world.controller.writer.failed[kind, "forbidden"] == 2 * once


async def test_a_round_that_fails_unexpectedly_is_counted_and_the_next_one_plans() -> None:
    world = World(interval=1)
    seen: list[None] = []
    second = asyncio.Event()
    """Set at the start of the third round: the second one has ended."""

    def watched(_: float) -> str:
        seen.append(None)
        if len(seen) == 1:
            raise ZeroDivisionError("bug")
        if len(seen) == 3:
            second.set()
        return ""

    world.controller._watched = watched
    with structlog.testing.capture_logs() as logs:
        leading = asyncio.create_task(world.controller.lead())
        await asyncio.wait_for(second.wait(), 30)
        leading.cancel()
    assert (world.controller.state.broken, world.controller.state.rounds > 0) == (1, True)
    assert [row["error"] for row in logs if row["event"] == "round failed"] == ["bug"]


def forged(shape: Shape, namespace: str = "mallory", **notes: str) -> headroom.HeadroomObject:
    """A tenant's object with the same content as an object of the controller."""
    obj = placeholder.manifest(order(2**31 - 1), LIFELINE, "pause", "low")
    own = names.headroom_key(namespace, key(shape))
    name = {"name": names.headroom_name(own), "namespace": namespace}
    obj["metadata"] |= name | {"labels": {names.HEADROOM: own, names.SERVES: namespace}}
    obj["metadata"]["annotations"] |= {names.SHAPE: headroom.shape_text(shape)} | notes
    return found(ProvisioningMethod.PLACEHOLDER, obj)


CLAIMS = replace(SHAPE, claims=("a",), claim_devices=2)
BAD = {
    "replicas": forged(SHAPE),
    "negative claim_devices": forged(replace(SHAPE, claims=("a",), claim_devices=-(2**40))),
    "no requests": forged(replace(SHAPE, requests=())),
    "affinity": forged(replace(SHAPE, node_affinity="{")),
    "affinity without a key": forged(
        replace(SHAPE, node_affinity='{"nodeSelectorTerms":[{"matchExpressions":[{}]}]}')
    ),
    "pods": forged(SHAPE, **{names.PODS: "-1"}),
    "claims": forged(CLAIMS, "mallory"),
    "claims where they may be": forged(CLAIMS, "dra"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_a_forged_headroom_object_does_not_change_other_headroom(
    bad: headroom.HeadroomObject,
) -> None:
    """It does not change other plans, and uses the budget only up to the limit of the pool."""
    orders, spent = [], []
    for rows in ((), (bad,)):
        world = World(apply=True, limits={"gpu_hours_per_day": 1000, "max_gpus_per_pool": 8})
        world.cluster.placeholders.replace(rows)
        await world.round(60)
        decided = await world.round(75)
        assert decided is not None
        orders.append([row for row in decided.orders if row.namespace == "team"])
        spent.append(sum(world.controller.ledger.gpu_hours.values()))
    assert orders[0] == orders[1]
    assert 0 <= spent[1] - spent[0] <= 8 * 15 / 3600


async def test_an_ignored_object_is_logged_once_and_counted() -> None:
    world = World()
    world.cluster.placeholders.replace([BAD["no requests"]])
    rows = []
    for seconds in (60, 75):
        await world.round(seconds)
        rows += [row for row in world.logs if row["event"] == "headroom object ignored"]
    assert [(row["namespace"], row["problem"]) for row in rows] == [
        ("mallory", "no pod has exactly this shape")
    ]
    assert world.controller.state.left_out["headroom_foreign"] == 1


async def test_of_many_ignored_objects_the_log_names_20() -> None:
    world = World()
    shape = replace(SHAPE, requests=())
    world.cluster.placeholders.replace([forged(shape, f"m{number}") for number in range(25)])
    await world.round(60)
    named = [row for row in world.logs if row["event"] == "headroom object ignored"]
    (rest,) = [row for row in world.logs if row["event"] == "more headroom objects ignored"]
    assert (len(named), rest["count"]) == (20, 5)
    assert world.controller.state.left_out["headroom_foreign"] == 25


async def test_created_pods_start_a_round_immediately() -> None:
    """The buffer is lowered within a second, not at the next full round."""
    world = World(apply=True, interval=300)
    leading = asyncio.create_task(world.controller.lead())
    try:
        await until(lambda: world.replicas() == [2])
        asked = len(world.api.asked)
        world.cluster.deployments.replace([deployment(6)])
        pods = [pod("a", on="n1"), pod("b", on="n1"), *(pod(name) for name in "cdef")]
        for created in pods[2:]:
            world.pods.apply(EventType.ADDED, created)
        await until(lambda: world.replicas() == [])
        assert VALUES not in "".join(world.api.asked[asked:]), "metrics are for full rounds"
    finally:
        leading.cancel()


async def test_the_kill_switch_does_not_wait_for_the_next_round() -> None:
    world = World(apply=True, interval=300)
    leading = asyncio.create_task(world.controller.lead())
    try:
        await until(lambda: world.replicas() == [2])
        asked = len(world.api.asked)
        world.controller.use(NodepoolSettings(stop=True))
        await until(lambda: world.replicas() == [])
        assert VALUES not in "".join(world.api.asked[asked:]), "nothing is planned any more"
    finally:
        leading.cancel()


async def test_the_first_round_waits_for_the_first_lists() -> None:
    """Without them, it would log a warning and waste a whole interval."""
    world = World(interval=300, listing=True)
    world.problem = "pods have not been listed yet"
    with structlog.testing.capture_logs() as logs:
        leading = asyncio.create_task(world.controller.lead())
        try:
            await asyncio.sleep(0)
            assert world.controller.state.plan is None
            world.problem = ""
            world.listed.set()
            await until(lambda: world.controller.state.plan is not None)
        finally:
            leading.cancel()
    assert [row["event"] for row in logs if row["log_level"] == "warning"] == []


async def test_values_of_an_hpa_that_has_changed_are_not_used() -> None:
    world = World()
    await world.round(60)
    metrics = [
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": name},
                "target": {"type": "AverageValue", "averageValue": "1"},
            },
        }
        for name in ("a", "b")
    ]
    world.cluster.autoscalers.replace([hpa(metrics)])
    decided = await world.controller.round(T0 + 61, again=True)
    assert decided is not None
    (only,) = decided.orders
    assert (only.replicas, [reason.code for reason in only.reasons]) == (2, ["frozen"])


async def test_after_a_freeze_no_old_values_are_used() -> None:
    world = World()
    await world.round(60)
    world.problem = "GET /api/v1/pods: connection refused"
    await world.round(75)
    world.problem = ""
    asked = len(world.api.asked)
    await world.controller.round(T0 + 500, again=True)
    assert any(path.startswith(VALUES) for path in world.api.asked[asked:])


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not done():  # noqa: ASYNC110 - the fake API has no event for it
            await asyncio.sleep(0.01)
