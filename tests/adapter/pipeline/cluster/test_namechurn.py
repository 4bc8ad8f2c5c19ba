"""Pods, HPAs, Services and nodes with ever new names leave nothing in what keeps them.

In a round every name, namespace, label, metric, selector and target is new, and the objects of the
round before are deleted. Counted are objects and bytes, not time or resident memory: after some
rounds there are no more of them. The caches that are bounded in bytes get small bounds here, so
that they are full by then; those that are bounded in entries are emptied before the count.
"""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import msgspec
import pytest

from adapter.pipeline.cluster import gpuresources, hpamanifest, services, sharedvalues
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.cluster.workload import Workload
from apiservice.kube.reflector import EventType
from apiservice.labels import selector
from apiservice.provider import GroupResource
from apiservice.runtime.bytecache import ByteCache

ROUNDS = 20
SETTLED = 8
"""Rounds after which every container has had its largest size."""
PODS = 40
"""In a round, in two namespaces; as many HPAs and Services."""
_CACHE = 1 << 13
"""Bytes of a cache: less than the names of a round."""
DEPLOYMENTS = GroupResource("deployments", "apps")


class Kept:
    """What ``serve`` keeps of a cluster."""

    def __init__(self) -> None:
        self.pods, self.nodes, self.services, self.hpas = PodIndex(), Nodes(), Services(), Hpas()
        self.lookup = ObjectLookup(self.pods, self.services, self.nodes)
        self._decoder = PodDecoder()

    def take(self, event: EventType, serial: int) -> None:
        """Take one event about each object of a pod's number."""
        space, name = f"ns-{serial // 20}", f"p-{serial}"
        meta: dict[str, Any] = {"name": name, "namespace": space, "labels": {f"l-{serial}": name}}
        pod = {"metadata": meta, "spec": {"nodeName": f"node-{serial // 8}", "containers": []}}
        pod["spec"]["containers"].append(
            {"name": f"c-{serial}", "resources": {"limits": {f"v.io/{serial}": 1}}}
        )
        self.pods.apply(event, self._decoder.decode(msgspec.json.encode(pod)))
        metric = {"name": f"m-{serial}", "selector": {"matchLabels": {f"s-{serial}": name}}}
        target = {"type": "AverageValue", "averageValue": f"{serial}"}
        spec = {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"},
            "metrics": [{"type": "Pods", "pods": {"metric": metric, "target": target}}],
        }
        hpa = msgspec.json.encode({"metadata": meta, "spec": spec})
        self.hpas.apply(event, hpamanifest.decode(hpa))
        service = {"metadata": meta, "spec": {"selector": {f"l-{serial}": name}}}
        self.services.apply(event, services.decode(msgspec.json.encode(service)))
        self.nodes.apply(event, Node(f"node-{serial}", {f"n-{serial}": name}))

    def ask(self, serial: int) -> None:
        """Ask for what an HPA asks, with a selector and a name of its own."""
        space, name = f"ns-{serial // 20}", f"p-{serial}"
        assert self.pods.select(space, selector.parse(f"l-{serial}={name}")), "the pod is found"
        assert self.hpas.of(space, [Workload(DEPLOYMENTS, name)]).first, "so is the HPA"
        self.pods.owned_by(space, DEPLOYMENTS, name)


def _weigh() -> tuple[int, int]:
    gpuresources.unit_of.cache_clear()
    gpuresources.is_known_other.cache_clear()
    gc.collect()
    return len(gc.get_objects()), tracemalloc.get_traced_memory()[0]


def test_rounds_of_new_names_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector, "_cache", ByteCache(_CACHE))
    monkeypatch.setattr(sharedvalues, "_LIMIT", _CACHE)
    monkeypatch.setattr(gpuresources, "_REMEMBERED", PODS)
    kept, weights = Kept(), list[tuple[int, int]]()
    tracemalloc.start(1)
    try:
        for number in range(ROUNDS):
            for serial in range(number * PODS, (number + 1) * PODS):
                kept.take(EventType.ADDED, serial)
                kept.ask(serial)
                if number:
                    kept.take(EventType.DELETED, serial - PODS)
            weights.append(_weigh())
    finally:
        tracemalloc.stop()
    assert (len(kept.pods), len(kept.hpas), len(kept.services)) == (PODS, PODS, PODS)
    (objects, size), (objects_later, size_later) = weights[SETTLED - 1], weights[-1]
    rounds = ROUNDS - SETTLED
    assert objects_later - objects < rounds * PODS // 4, "less than a quarter of an object each"
    assert size_later - size < rounds * PODS * 100, "less than a hundred bytes each"


def test_made_up_resources_of_a_tenant_do_not_fill_the_memory_of_names_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpuresources, "_REMEMBERED", 8)
    resources = gpuresources.GpuResources()
    assert not any(resources.is_gpu(f"v.io/{serial}") for serial in range(8))
    assert resources.is_gpu("nvidia.com/gpu")
    assert resources._known == {"nvidia.com/gpu": True}
