"""A bad object of any watched kind affects only itself.

Each value of a good object is replaced in turn by values of other types. The object may be left out
or read. In both cases, reading the cluster must succeed, and an object of one namespace must not
change the order of another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.nodepool.act.methods import capacitybuffer, placeholder
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.plan.order import Order
from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.reports import Reports
from adapter.nodepool.seen import (
    autoscalers,
    claimtemplates,
    headroom,
    jobs,
    karpenter,
    nodes,
    priorityclasses,
    status,
    workloads,
)
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.pods import PodInfoDecoder
from tests.adapter.nodepool import manifests, orders
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import STATUS, T0

Object = dict[str, Any]
Kind = tuple[str, Callable[[bytes], Any], Object]

JUNK: Final[tuple[Any, ...]] = (
    None,
    -1,
    2**63,
    1.5,
    True,
    "",
    "x",
    "-1",
    "1e99999",
    "9" * 400,
    [],
    ["x"],
    {},
    {"a": 1},
)


def recorded(build: Callable[[], Any], patch: pytest.MonkeyPatch) -> Object:
    """The manifest that one of the builders decodes."""
    seen: list[Object] = []
    real = manifests.raw

    def record(obj: Object) -> bytes:
        seen.append(obj)
        return real(obj)

    with patch.context() as context:
        context.setattr(manifests, "raw", record)
        build()
    (manifest,) = seen
    copied: Object = json.loads(json.dumps(manifest))
    return copied


def kinds(patch: pytest.MonkeyPatch) -> dict[str, Kind]:
    """Table, decoder and a good object of every kind, by name."""
    meta = {"name": "t", "namespace": "team"}
    claims = {
        "metadata": meta,
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"count": 2}}]}}},
    }
    built = placeholder.manifest(orders.order(), orders.LIFELINE, "pause", "low")
    buffer = capacitybuffer.manifests(orders.order(), "v1beta1", orders.LIFELINE, "pause", None)[1]

    def of(build: Callable[[], Any]) -> Object:
        return recorded(build, patch)

    classes = "gpu-metrics-adapter-headroom"
    return {
        "Pod": ("pods", PodInfoDecoder(classes).decode, of(lambda: manifests.pod("a", on="n1"))),
        "Node": ("nodes", nodes.decode, of(lambda: manifests.node("n3"))),
        "HorizontalPodAutoscaler": ("autoscalers", autoscalers.decode, of(manifests.hpa)),
        "Deployment": (
            "deployments",
            workloads.decoder("Deployment"),
            of(lambda: manifests.deployment(name="other")),
        ),
        "Job": ("jobs", jobs.decode, of(lambda: manifests.job("j", parallelism=2))),
        "PriorityClass": ("classes", priorityclasses.decode, of(manifests.priority_class)),
        "NodePool": ("node_pools", karpenter.decode_pool, of(manifests.nodepool)),
        "NodeClaim": (
            "node_claims",
            karpenter.decode_claim,
            of(lambda: manifests.nodeclaim("c", "2026-01-01T00:00:30Z")),
        ),
        "ResourceClaimTemplate": ("claim_templates", claimtemplates.decode, claims),
        "ConfigMap": (
            "status",
            status.decode,
            {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": STATUS}},
        ),
        "placeholders": (
            "placeholders",
            headroom.decoder(ProvisioningMethod.PLACEHOLDER, manifests.HOME),
            of(lambda: manifests.found(ProvisioningMethod.PLACEHOLDER, built)),
        ),
        "CapacityBuffer": (
            "buffers",
            headroom.decoder(ProvisioningMethod.BUFFER, manifests.HOME),
            of(lambda: manifests.found(ProvisioningMethod.BUFFER, buffer)),
        ),
    }


NAMESPACED: Final = {
    *("Pod", "HorizontalPodAutoscaler", "Deployment", "Job", "ResourceClaimTemplate"),
    *("placeholders", "CapacityBuffer"),
}


def spoiled(value: Any) -> Iterator[Any]:
    """The value with one thing in it replaced by junk, each in turn."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from (value | {name: junk} for junk in (*JUNK, *spoiled(inner)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for junk in (*JUNK, *spoiled(inner)):
                yield [*value[:index], junk, *value[index + 1 :]]


def world() -> tuple[NodepoolController, ClusterTables]:
    api = FakeApi()
    api.objects["/apis"] = {"groups": []}
    rows = [{"describedObject": {"name": name}, "value": "90"} for name in "ab"]
    api.objects["/apis/custom.metrics.k8s.io/v1beta2/namespaces/team/pods/%2A/gpu_utilization"] = {
        "items": rows
    }
    cluster = manifests.cluster(
        nodes=[manifests.node("n1"), manifests.node("n2")],
        pods=[manifests.pod("a", on="n1"), manifests.pod("b", on="n1")],
        deployments=[manifests.deployment(2)],
        autoscalers=[manifests.hpa()],
        classes=[manifests.priority_class()],
    )
    controller = NodepoolController(
        NodepoolSettings(namespace="gpu-metrics"),
        manifests.HOME,
        cluster,
        api,
        lambda: True,
        lambda _: "",
        lambda _: None,
        Ledger(),
        Reports(None),
        clock=lambda: T0,
    )
    return controller, cluster


async def ordered(table: str = "", bad: Any = None) -> list[Order]:
    """The orders for ``team``, with a bad object beside the good ones."""
    controller, cluster = world()
    if table:
        rows = getattr(cluster, table)
        rows.replace([*rows, bad])
    await controller.round(T0 + 60)
    decided = await controller.round(T0 + 75)
    assert decided is not None
    return [row for row in decided.orders if row.namespace == "team"]


@pytest.mark.parametrize(
    "kind", sorted([*NAMESPACED, "ConfigMap", "Node", "NodeClaim", "NodePool", "PriorityClass"])
)
async def test_a_bad_object_affects_only_itself(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, decode, good = kinds(monkeypatch)[kind]
    decode(json.dumps(good).encode())
    if kind in NAMESPACED:
        good["metadata"]["namespace"] = "mallory"
    undisturbed = await ordered()
    read = set()
    for manifest in spoiled(good):
        try:
            bad = decode(json.dumps(manifest).encode())
        except Exception:  # the reflector leaves out the object after any error
            continue
        if repr(bad) in read:
            continue
        read.add(repr(bad))
        orders_now = await ordered(table, bad)
        if kind in NAMESPACED and getattr(bad, "namespace", "mallory") == "mallory":
            assert orders_now == undisturbed, manifest
    assert read
