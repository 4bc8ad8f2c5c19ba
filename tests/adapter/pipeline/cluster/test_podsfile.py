"""Pods from a file in place of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.podsfile import PodsFile, PodsFileError, parse
from adapter.pipeline.cluster.services import Services
from apiservice.labels.selector import parse as selector

DOCUMENTS = """
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml, labels: {app: inf}}
spec:
  nodeName: gpu-1
  containers:
  - name: server
    resources: {limits: {nvidia.com/gpu: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: inf, namespace: ml}
spec: {selector: {app: inf}}
---
kind: Node
metadata: {name: gpu-1, labels: {pool: gpu}}
---
kind: ConfigMap
metadata: {name: passed-over}
---
"""
POD_LIST = json.dumps(
    {"kind": "PodList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}
)
LIST = """
kind: List
items:
- kind: Pod
  metadata: {name: a, deletionTimestamp: 2026-01-01T00:00:00Z}
  status: {phase: Failed}
"""


def pods(text: str) -> dict[str, Pod]:
    return {pod.ref.name: pod for pod in parse(text.encode(), PodDecoder()).pods}


def test_documents_of_several_kinds_are_distinguished() -> None:
    content = parse(DOCUMENTS.encode(), PodDecoder())
    assert [pod.gpus for pod in content.pods] == [{"nvidia.com/gpu": 1}]
    assert [service.selector for service in content.services] == [selector("app=inf")]
    assert [node.labels for node in content.nodes] == [{"pool": "gpu"}]


def test_a_manifest_without_status_is_running_and_ready() -> None:
    pod = pods(DOCUMENTS)["a"]
    assert (pod.phase, pod.ready) == ("Running", True)


def test_what_kubectl_prints_is_read_with_its_status() -> None:
    assert sorted(pods(POD_LIST)) == ["a", "b"]
    pod = pods(LIST)["a"]
    assert (pod.phase, pod.ready, pod.deleting) == ("Failed", False, True)


@pytest.mark.parametrize("text", ["---\n", "[]", '{"kind": "PodList", "items": []}'])
def test_an_empty_list_has_no_pods(text: str) -> None:
    assert pods(text) == {}


ENDLESS = "{name: c, resources: {limits: {nvidia.com/gpu: .inf}}}"
BAD = [
    ("kind: Pod\nmetadata: {labels: {}}", "object 1 (Pod None)", "name"),
    ("kind: Pod\nmetadata: {name: x, labels: {on: true}}", "object 1 (Pod x)", "labels"),
    ("kind: Service\nmetadata: {name: s}\nspec: {selector: {a: 'b c'}}", "(Service s)", "'c'"),
    ("", "is empty", "write manifests, or [] for no objects"),
    (" \n", "is empty", ""),
    ("just text", "object 1", "mapping"),
    ("metadata: {name: x}", "object 1", "kind"),
    ("{unclosed", "neither YAML nor JSON", ""),
    ("a: b: c", "neither YAML nor JSON", ""),
    ("[" * 5000, "neither YAML nor JSON", "nested more than 200 deep"),
    ("&a [*a]", "neither YAML nor JSON", "a value contains itself"),
    (
        "{kind: Pod, metadata: {name: x}, spec: {containers: [" + ENDLESS + "]}}",
        "object 1 (Pod x)",
        "infinity",
    ),
]


@pytest.mark.parametrize(("text", "place", "detail"), BAD)
def test_a_bad_file_is_refused_with_the_object_named(text: str, place: str, detail: str) -> None:
    with pytest.raises(PodsFileError) as caught:
        parse(text.encode(), PodDecoder(), "pods.yaml")
    assert "pods.yaml" in str(caught.value)
    assert place in str(caught.value)
    assert detail in str(caught.value)


@pytest.mark.parametrize("stamp", ["2026-01-02T03:04:05Z", '"2026-01-02T03:04:05Z"'])
def test_a_pods_creation_is_read_as_text_and_as_yamls_own_time(stamp: str) -> None:
    text = f"{{kind: Pod, metadata: {{name: x, creationTimestamp: {stamp}}}}}"
    (pod,) = parse(text.encode(), PodDecoder()).pods
    assert pod.born == 1767323045


def test_a_pod_that_does_not_say_when_it_was_created_is_older_than_everything() -> None:
    (pod,) = parse(b"{kind: Pod, metadata: {name: x, creationTimestamp: }}", PodDecoder()).pods
    assert pod.born == 0


def test_bytes_that_are_not_text_are_rejected() -> None:
    with pytest.raises(PodsFileError):
        parse(b"\xff\xfe\x00", PodDecoder())


class World:
    """A file, the collections it feeds, and a clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pods, self.services, self.nodes = PodIndex(), Services(), Nodes()
        self.now = 100.0
        self.file = PodsFile(
            path,
            self.pods,
            PodDecoder(),
            services=self.services,
            nodes=self.nodes,
            poll=0.001,
            clock=lambda: self.now,
        )
        self.changed = asyncio.Event()
        self.pods.listen(lambda _old, _new: self.changed.set())

    def names(self) -> list[str]:
        return [pod.ref.name for pod in self.pods.select(None, selector(""))]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.file.run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "pods.yaml")


async def test_a_file_fills_pods_services_and_nodes(world: World) -> None:
    world.path.write_text(DOCUMENTS)
    assert world.pods.age(100.0) == float("inf")
    await world.file.load()
    assert world.names() == ["a"]
    assert world.services.get("ml", "inf") is not None
    assert [node.name for node in world.nodes.select(selector("pool=gpu"))] == ["gpu-1"]
    assert (world.pods.synced, world.services.problem, world.pods.age(103.0)) == (True, "", 3.0)


async def test_a_missing_file_is_an_error_with_its_name_and_the_setting(world: World) -> None:
    with pytest.raises(PodsFileError, match=r"pods\.yaml.*cluster\.pods_file"):
        await world.file.load()
    assert not world.pods.synced
    assert "pods.yaml" in world.services.problem


async def test_a_file_that_is_still_written_is_not_read(world: World) -> None:
    world.path.write_text(POD_LIST)
    await world.file.load()
    world.path.write_text("[]")
    await world.file.load(at_once=False)
    assert world.names() == ["a", "b"]
    await world.file.load(at_once=False)
    assert world.names() == []


async def test_a_changed_file_is_followed(world: World) -> None:
    world.path.write_text(POD_LIST)
    await world.file.load()
    world.changed.clear()
    async with world.running():
        world.path.write_text(LIST.replace("name: a", "name: other"))
        await asyncio.wait_for(world.changed.wait(), 10)
    assert world.names() == ["other"]


async def test_a_bad_new_file_leaves_the_old_pods_and_ages(world: World) -> None:
    world.path.write_text(POD_LIST)
    await world.file.load()
    world.path.write_text("kind: Pod")
    world.now = 150.0
    for _ in range(2):  # the second look finds the same bad file
        with contextlib.suppress(PodsFileError):
            await world.file.load()
    assert world.names() == ["a", "b"]
    assert "pods.yaml" in world.pods.last_error
    assert world.pods.age(150.0) == 50.0
    world.path.write_text(POD_LIST.replace("b", "c"))
    await world.file.load()
    assert (world.pods.last_error, world.pods.age(150.0)) == ("", 0.0)
