"""The schemas: every key of an object has a description, and every described key can be there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from adapter.answers.view.gpuhistories import GPUHISTORIES
from adapter.answers.view.gpunodes import GPUNODES
from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpupools import GPUPOOLS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.answers.view.historyhours import HISTORYHOURS
from adapter.pipeline.cluster.hpas import ShownCondition, ShownHpa, ShownMetric
from adapter.pipeline.cluster.pod import Owner
from adapter.pipeline.cluster.workload import Workload
from adapter.pipeline.devices.options import TelemetryOptions
from apiservice.provider import GroupResource
from apiservice.view.resource import ViewResource
from tests.adapter.answers.promises.test_ratios import learned
from tests.adapter.answers.view.viewer import Json, Viewer
from tests.adapter.pages.test_pages import SCENES
from tests.adapter.world import World, make_pod, row

ADDED = {"metadata"}
"""What the API adds to each schema."""


def _worlds() -> Iterator[tuple[World, float]]:
    for scene in SCENES.values():
        yield scene.build(), scene.now
    claims = World(
        make_pod("dra-0", node="n1", gpus={}, claims=True, born=1.0, unhealthy=("gpu-0 of claim",))
    )
    claims.scrape(row("DCGM_FI_DEV_GPU_UTIL", 80, "dra-0"), 100.0, node="n1")
    yield claims, 100.0
    owner = Owner("batch/v1", "Job", "two")
    paid = {"node.kubernetes.io/instance-type": "p5.48xlarge", "karpenter.sh/capacity-type": "spot"}
    two = World(
        make_pod("two-0", node="n1", gpus={"nvidia.com/gpu": 2}, owner=owner), nodes={"n1": paid}
    )
    two.scrape(row("DCGM_FI_DEV_GPU_UTIL", 80, "two-0"), 100.0, node="n1")
    yield two, 100.0
    stale = World(make_pod("vllm-0", node="n1", gpus={}))
    for waiting, engine in ((100.0, 0), (170.0, 1)):
        page = f'vllm:num_requests_waiting{{model_name="m",engine="{engine}"}} 3\n'
        origin = f"http://vllm/{engine}"
        stale.scrape(page, waiting, origin=origin, pod=("ml", "vllm-0"), serves=True)
    yield stale, 171.0
    idle = World(make_pod("idle-0", node="n1"), make_pod("hold", node="n1", placeholder=True))
    for time in range(100, 200, 5):
        busy = row("DCGM_FI_DEV_GPU_UTIL", 0, "idle-0") + row(
            "DCGM_FI_DEV_POWER_USAGE", 60, "idle-0"
        )
        idle.scrape(busy, float(time), node="n1")
    yield idle, 196.0
    doubted = World(make_pod("p", node="n1"), options=TelemetryOptions(collect_interval=1.0))
    page = row("DCGM_FI_DEV_GPU_UTIL", 0) + row("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.9)
    for time in range(100, 140, 5):
        doubted.scrape(page, float(time), node="n1")
    yield doubted, 136.0
    owner = Owner("apps/v1", "DaemonSet", "dcgm")
    exporter = make_pod("dcgm-1", namespace="gpu", node="n1", gpus={}, owner=owner)
    down = World(make_pod("p", node="n1"), exporter)
    others = row("DCGM_FI_DEV_GPU_UTIL", 5, "other")
    down.scrape(others, 100.0, node="n1", pod=exporter.ref)
    yield down, 900.0
    nameless = World(make_pod("p", node="n1"), exporter)
    nameless.scrape(row("DCGM_FI_DEV_GPU_UTIL", 5), 100.0, node="n1", pod=exporter.ref)
    yield nameless, 100.0
    promised = learned("p")
    yield promised, promised.now


def _hpas() -> Iterator[ShownHpa]:
    metric = ShownMetric("Pods", "gpu_utilization", "60", "87500m")
    condition = ShownCondition("AbleToScale", "True", "Ready", "recommended size matches")
    scaled = Workload(GroupResource("jobs", "batch"), "two")
    for name in ("two", *(f"two-{i}" for i in range(16))):
        yield ShownHpa("ml", name, scaled, 1, 8, 2, 3, (metric,), (condition,))


@pytest.fixture(scope="module")
def views() -> list[tuple[Viewer, float]]:
    return [(Viewer(world, *_hpas()), now) for world, now in _worlds()]


@pytest.fixture(params=["gpus", "pods", "workloads"])
def found(
    request: pytest.FixtureRequest, views: list[tuple[Viewer, float]]
) -> tuple[ViewResource, list[Json]]:
    """A resource, and objects of it from every scene."""
    shelves = [(getattr(viewer, request.param), now) for viewer, now in views]
    objects = [view_object for shelf, now in shelves for view_object in shelf.every(now)]
    return shelves[0][0].resource, objects


def test_every_key_is_described_and_every_described_key_can_be_there(
    found: tuple[ViewResource, list[Json]],
) -> None:
    resource, objects = found
    described = set(_described(resource.schema))
    produced = {path for view_object in objects for path in _produced(view_object, resource.schema)}
    assert produced - described == set()
    assert described - produced == set()


def test_every_part_of_a_schema_has_a_description(found: tuple[ViewResource, list[Json]]) -> None:
    resource, _ = found
    parts = list(_parts(resource.schema))
    assert all(part["description"].endswith((".", ",")) for part in parts), parts
    assert all(column.description.endswith(".") for column in resource.columns)


def _described(schema: Json, at: str = "") -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        yield f"{at}{name}"
        yield from _described(part.get("items", part), f"{at}{name}.")


def _produced(value: Any, schema: Json, at: str = "") -> Iterator[str]:
    """Yield the paths of a value's keys, and check that each has the type of its schema."""
    for name, part in value.items():
        if not at and name in ADDED:
            continue
        yield f"{at}{name}"
        described = schema.get("properties", {}).get(name)
        if described is None:
            continue
        _check(part, described, f"{at}{name}")
        parts = part if isinstance(part, list) else [part]
        inner = described.get("items", described)
        for inner_part in parts:
            if isinstance(inner_part, dict) and "additionalProperties" not in inner:
                yield from _produced(inner_part, inner, f"{at}{name}.")


def _check(value: Any, schema: Json, at: str) -> None:
    types: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "object": dict,
        "array": list,
    }
    assert isinstance(value, types[schema["type"]]), f"{at} is {value!r}"
    if schema["type"] in ("integer", "number"):
        assert not isinstance(value, bool), at
    assert value not in ("", [], {}), f"{at} is empty instead of absent"


def _parts(schema: Json) -> Iterator[Json]:
    yield schema
    for part in (*schema.get("properties", {}).values(), schema.get("items")):
        if part is not None:
            yield from _parts(part)


IN_SWAGGER: Final = {
    "type",
    "format",
    "description",
    "properties",
    "items",
    "additionalProperties",
}


def _keys(schema: Json) -> Iterator[str]:
    yield from schema
    for inner in (schema.get("properties") or {}).values():
        yield from _keys(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _keys(schema[key])


@pytest.mark.parametrize(
    "resource",
    [GPUS, GPUNODES, GPUPOOLS, GPUPODS, GPUWORKLOADS, GPUHISTORIES, HISTORYHOURS],
    ids=lambda resource: resource.plural,
)
def test_a_schema_has_only_what_openapi_2_has(resource: ViewResource) -> None:
    """kube-apiserver refuses its whole document otherwise, and no `kubectl apply` validates."""
    assert set(_keys(resource.schema)) <= IN_SWAGGER
