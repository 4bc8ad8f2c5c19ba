"""Faults of the adapter itself (GMA701 to GMA714)."""

from __future__ import annotations

from typing import Any

from adapter.tools.doctor.facts import Fact, Facts, SelfPage
from adapter.tools.doctor.valuelesspods import WithoutValue
from tests.adapter.tools.doctor.clean import (
    NOW,
    own_pod,
    own_workload,
    self_page,
)
from tests.adapter.tools.doctor.faults.register import fault


@fault("GMA701")
def bad_settings(facts: Facts) -> None:
    facts.release = Fact(own_workload("source: {knd: scrape}\n"))


@fault("GMA701")
def not_yaml(facts: Facts) -> None:
    facts.release = Fact(own_workload("source: {\n"))


def one_own(facts: Facts, **status: Any) -> None:
    replica = own_pod("gma-1", status=status)
    facts.release = Fact(own_workload(pods=[replica]))


@fault("GMA702")
def unready(facts: Facts) -> None:
    condition = {"type": "Ready", "status": "False", "message": "containers with unready status"}
    one_own(facts, conditions=[condition])


@fault("GMA702")
def no_pod(facts: Facts) -> None:
    facts.release = Fact(own_workload(pods=[]))


@fault("GMA703")
def killed(facts: Facts) -> None:
    ended = {"terminated": {"reason": "OOMKilled"}}
    one_own(facts, containerStatuses=[{"name": "serve", "restartCount": 1, "lastState": ended}])


@fault("GMA703")
def restarting(facts: Facts) -> None:
    one_own(facts, containerStatuses=[{"name": "serve", "restartCount": 9}])


@fault("GMA704")
def other_image(facts: Facts) -> None:
    facts.release = Fact(own_workload(image="registry/gpu-metrics-adapter:0.9.0"))


@fault("GMA705")
def one_replica(facts: Facts) -> None:
    facts.release = Fact(own_workload(replicas=1))


@fault("GMA706")
def no_value(facts: Facts) -> None:
    facts.measured = Fact({"chat": frozenset({"llm-1"})})


@fault("GMA706")
def no_value_in_the_view(facts: Facts) -> None:
    hint = "kubectl -n gpu-operator describe pod dcgm-exporter-gpu-b"
    why = ("exporter_down", "the exporter of the node does not answer", hint)
    facts.release, facts.measured = Fact(None), Fact({})
    facts.without_value = Fact([WithoutValue("chat/llm-2", *why)])


@fault("GMA711")
def apart(facts: Facts) -> None:
    facts.self_pages = Fact([self_page("gma-1"), self_page("gma-2", gma_exporters=1)])


@fault("GMA712")
def much_memory(facts: Facts) -> None:
    facts.self_pages = Fact([self_page("gma-1", process_resident_memory_bytes=1000 << 20)])


@fault("GMA713")
def certificate_ends(facts: Facts) -> None:
    key = ("gma_certificate_expiry_timestamp_seconds", (("certificate", "front-proxy"),))
    soon = SelfPage("gma-1", {**self_page("gma-1").samples, key: NOW.timestamp() + 86400})
    facts.self_pages = Fact([soon])


@fault("GMA714")
def many_rejects(facts: Facts) -> None:
    page = self_page("gma-1")
    key = ("gma_rejects_total", (("reason", "no_gpu_in_spec"),))
    facts.self_pages = Fact([SelfPage("gma-1", {**page.samples, key: 900.0})])
