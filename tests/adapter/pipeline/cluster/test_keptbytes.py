"""No object of a tenant takes more than a bound, however large the API server lets it be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adapter.pipeline.cluster import hpamanifest, services
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.keptbytes import MOST, OversizedError
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.services import Services
from apiservice.kube.reflector import EventType

LARGE = {f"label-{number:05}": "v" * 60 for number in range(800)}
"""Labels of 60 kB: valid, and a tenth of what one object may have."""
META = {"name": "a", "namespace": "tenant"}
TARGET = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}


def pod(meta: dict[str, Any], *containers: dict[str, Any]) -> bytes:
    spec = {"containers": containers or [{"name": "main"}]}
    return msgspec.json.encode({"metadata": META | meta, "spec": spec})


def hpa(*metrics: dict[str, Any]) -> bytes:
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": metrics}
    return msgspec.json.encode({"metadata": META, "spec": spec})


def service(meta: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"metadata": META | meta, "spec": {}})


def pods_metric(number: int, selector: dict[str, str]) -> dict[str, Any]:
    metric = {"name": f"m{number}" + "n" * 200, "selector": {"matchLabels": selector}}
    target = {"type": "AverageValue", "averageValue": "1"}
    return {"type": "Pods", "pods": {"metric": metric, "target": target}}


OVERSIZED = {
    "a pod by its labels": (PodDecoder().decode, pod({"labels": LARGE})),
    "a pod by annotations that are read": (
        PodDecoder().decode,
        pod({"annotations": {f"prometheus.io/{key}": text for key, text in LARGE.items()}}),
    ),
    "a pod by its containers": (
        PodDecoder().decode,
        pod({}, *({"name": f"c{number:04}" + "n" * 50} for number in range(900))),
    ),
    "a pod by the resources of a container": (
        PodDecoder().decode,
        pod({}, {"name": "c", "resources": {"limits": {f"a.b/{key}": 1 for key in LARGE} | LARGE}}),
    ),
    "an HPA by its selectors": (
        hpamanifest.decode,
        hpa(*(pods_metric(number, {"key": "v" * 900}) for number in range(60))),
    ),
    "a Service by its labels": (services.decode, service({"labels": LARGE})),
}


@pytest.mark.parametrize(("decode", "raw"), OVERSIZED.values(), ids=OVERSIZED)
def test_an_object_of_which_too_much_would_be_kept_is_left_out(decode: Any, raw: bytes) -> None:
    with pytest.raises(OversizedError, match=f"more than {MOST}: remove labels"):
        decode(raw)


def test_a_large_object_of_which_little_is_kept_stays() -> None:
    """A manifest of 250 kB in ``last-applied-configuration`` is usual; nobody keeps it."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 250_000}
    kept = PodDecoder().decode(pod({"annotations": annotations, "labels": {"app": "llm"}}))
    assert dict(kept.labels) == {"app": "llm"}


def test_what_can_no_longer_be_read_is_removed_from_each_collection() -> None:
    index, hpas, table = PodIndex(), Hpas(), Services()
    index.apply(EventType.ADDED, PodDecoder().decode(pod({})))
    hpas.apply(EventType.ADDED, hpamanifest.decode(hpa()))
    table.apply(EventType.ADDED, services.decode(service({})))
    for collection in (index, hpas, table):
        collection.lose("tenant", "other")
        assert len(collection) == 1
        collection.lose("tenant", "a")
        assert len(collection) == 0
