"""Which pods only hold room for others: own placeholders, and those of overprovisioning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.config.settings.nodepool import PlaceholderSettings
from adapter.nodepool.act.methods.placeholder import manifest as placeholder_manifest
from adapter.pipeline.cluster.gpuresources import STANDARD
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.placeholder import HEADROOM, working_pods
from tests.adapter.nodepool.orders import LIFELINE, order
from tests.adapter.world import make_pod

PAUSE = "registry.k8s.io/pause:3.10"


def pod(
    *images: str, priority: int | None = None, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [
            {"name": f"c{number}", "image": image} for number, image in enumerate(images)
        ]
    }
    if priority is not None:
        spec["priority"] = priority
    return {"metadata": {"name": "p", "labels": labels or {}}, "spec": spec}


def read(manifest: dict[str, Any]) -> bool:
    return PodDecoder(STANDARD).decode(json.dumps(manifest).encode()).placeholder


@pytest.mark.parametrize(
    "image",
    [
        PAUSE,
        "k8s.gcr.io/pause",
        "gcr.io/google_containers/pause-amd64:3.1",
        "rancher/mirrored-pause:3.7",
        "mcr.microsoft.com/oss/kubernetes/pause:3.6",
        "registry.example:5000/k8s/pause@sha256:0123",
        "pause",
    ],
)
def test_a_pod_that_only_pauses_is_a_placeholder(image: str) -> None:
    assert read(pod(image))
    assert not read(pod(image, "vllm/vllm-openai:v1")), "another container works"


@pytest.mark.parametrize("image", ["acme/pauser:1", "acme/pause-server:1", "pause/app:1", "x"])
def test_another_image_is_none(image: str) -> None:
    assert not read(pod(image))


def test_a_label_is_not_enough_without_a_priority_below_0() -> None:
    own, name = {HEADROOM: "0a1b"}, {"app.kubernetes.io/name": "cluster-overprovisioner"}
    for labels in (own, name):
        assert not read(pod("acme/sleep:1", labels=labels))
        assert not read(pod("acme/sleep:1", priority=0, labels=labels))
        assert read(pod("acme/sleep:1", priority=-10, labels=labels))
    assert not read(pod("acme/batch:1", priority=-10)), "a batch job may have such a priority"
    assert not read({"metadata": {"name": "p"}, "spec": {}})


def test_the_placeholders_of_nodepool_are_placeholders() -> None:
    settings = PlaceholderSettings()
    made = placeholder_manifest(order(), LIFELINE, settings.image, settings.priority_class)
    template = made["spec"]["template"]
    assert read({"metadata": {"name": "p", **template["metadata"]}, "spec": template["spec"]})
    other = placeholder_manifest(order(), LIFELINE, "acme/idle:1", settings.priority_class)
    template = other["spec"]["template"]
    spec = {**template["spec"], "priority": -10}  # as admission resolves the class
    assert read({"metadata": {"name": "p", **template["metadata"]}, "spec": spec})


def test_placeholders_are_left_out_beside_others_only() -> None:
    works, holds = make_pod("a"), make_pod("b", placeholder=True)
    assert working_pods([works, holds]) == [works]
    assert working_pods([holds]) == [holds]
    assert working_pods([works]) == [works]
    assert working_pods([]) == []
