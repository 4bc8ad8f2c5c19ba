"""Faults of exporters (GMA101 to GMA109)."""

from __future__ import annotations

from typing import Any

from adapter.pipeline.cluster.objects import ClusterPolicy, read
from adapter.tools.doctor.daemonsets import read_daemonset
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.page import Trouble
from tests.adapter.tools.doctor.clean import (
    exporter,
    page,
)
from tests.adapter.tools.doctor.faults.register import EXPORTER_B, KEY_B, fault, trouble


@fault("GMA101")
def only_on_a(facts: Facts) -> None:
    facts.pods = Fact([pod for pod in facts.pods.read() if pod.pod.ref.name != EXPORTER_B])


def replace_b(facts: Facts, **more: Any) -> None:
    only_on_a(facts)
    facts.pods = Fact([*facts.pods.read(), exporter("gpu-b", **more)])


@fault("GMA102")
def crashing(facts: Facts) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    replace_b(facts, status={"containerStatuses": [waiting]})


@fault("GMA102")
def pending(facts: Facts) -> None:
    replace_b(facts, status={"phase": "Pending"})


@fault("GMA103")
def refusing(facts: Facts) -> None:
    trouble(facts, Trouble.REFUSED, "connection refused")


@fault("GMA103")
def hanging(facts: Facts) -> None:
    trouble(facts, Trouble.TIMEOUT, "no answer in time")


@fault("GMA104")
def html(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    facts.pages = Fact(pages | {KEY_B: page("gpu-b", text="<!DOCTYPE html><p>Sign in</p>")})


@fault("GMA104")
def empty(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    facts.pages = Fact(pages | {KEY_B: page("gpu-b", text="\n")})


@fault("GMA104")
def broken(facts: Facts) -> None:
    trouble(facts, Trouble.STATUS, "HTTP status 500")


@fault("GMA105")
def tls(facts: Facts) -> None:
    trouble(facts, Trouble.HTTPS, "it expects TLS")


OPERATORS = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "name": "nvidia-dcgm-exporter",
    "controller": True,
    "uid": "uid-nvidia-dcgm-exporter",
}


@fault("GMA106")
def second(facts: Facts) -> None:
    facts.pods = Fact(
        [*facts.pods.read(), exporter("gpu-b", name="operators-exporter", owners=[OPERATORS])]
    )


@fault("GMA107")
def default_interval(facts: Facts) -> None:
    """The exporter of the NVIDIA GPU operator, with the variables of its own manifest."""
    name = "nvidia-dcgm-exporter"
    by = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "controller": True}
    replace_b(facts, container={"env": []}, owners=[by | {"uid": "u"}])
    above = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy"}
    facts.daemonsets = Fact(
        [
            read_daemonset(
                {
                    "metadata": {
                        "namespace": "gpu-operator",
                        "name": name,
                        "ownerReferences": [above | {"controller": True}],
                    },
                    "spec": {"template": {"spec": {"containers": [{"name": name}]}}},
                }
            )
        ]
    )
    facts.policies = Fact([read({"metadata": {"name": "cluster-policy"}}, ClusterPolicy)])


@fault("GMA107")
def slow_by_flag(facts: Facts) -> None:
    replace_b(facts, container={"args": ["-f", "a.csv", "--collect-interval=60000"]})


@fault("GMA108")
def old_with_labels(facts: Facts) -> None:
    on = {"name": "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "value": "true"}
    image = "nvcr.io/nvidia/k8s/dcgm-exporter:4.2.3-4.1.3-ubuntu22.04"
    env = [{"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}, on]
    replace_b(facts, image=image, container={"env": env})


@fault("GMA108")
def old_with_virtual_gpus(facts: Facts) -> None:
    on = {"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}
    replace_b(facts, container={"env": [on]})


@fault("GMA109")
def without_mount(facts: Facts) -> None:
    mount = {"name": "resources", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}}
    replace_b(facts, spec={"volumes": [mount]})
