"""Values that several triggers share."""

from __future__ import annotations

from dataclasses import replace

from adapter.catalog import Catalog
from adapter.cluster.pod import Pod
from adapter.keda.podvalues import Found, PodValues
from apiservice.selector import EVERYTHING, Selector, parse
from tests.adapter.keda.cluster import METRIC, PATIENCE, STALE, Cluster

CPU_POD = "front"


class Asked:
    """Two GPU pods and one without, and a memory of what is known of them."""

    def __init__(self, limit: int = 100) -> None:
        self.cluster = Cluster()
        self.cluster.put("a", 30.0)
        self.cluster.put("b", 20.0)
        self.cluster.put(CPU_POD, 1.0, gpus={})
        self.values = PodValues(self.cluster, limit)

    def pod(self, name: str) -> Pod:
        found = self.cluster.index.get("ml", name)
        assert found is not None
        return found

    def __call__(
        self, *pods: Pod, version: int = 1, now: float = 0.0, devices: Selector = EVERYTHING
    ) -> Found:
        row = self.values.row(pods)
        return self.values.of(row, Catalog().metrics[METRIC], devices, version, now)

    @property
    def times(self) -> int:
        return len(self.cluster.asked)


def test_values_come_in_the_order_of_the_pods_with_the_end_of_the_first() -> None:
    asked = Asked()
    assert asked(asked.pod("b"), now=5.0) == ((20.0,), [], 5.0 + PATIENCE)
    found = asked(asked.pod("b"), asked.pod("a"), now=9.0)
    assert found == ((20.0, 30.0), [], 5.0 + PATIENCE)
    assert asked.times == 2


def test_pods_without_a_value_are_told_with_the_reason_and_those_that_end_are_not() -> None:
    asked = Asked()
    asked.cluster.readings["b"] = STALE
    ending = replace(asked.pod("a"), deleting=True)
    found = asked(asked.pod("a"), ending, asked.pod("b"), asked.pod(CPU_POD))
    assert found.values == (30.0,)
    assert [(pod.ref.name, value.reason) for pod, value in found.others] == [  # type: ignore[union-attr]  # absences
        ("b", "stale"),
        (CPU_POD, "no_gpu"),
    ]
    assert asked.times == 2, "of pods that end or hold no GPU nothing is asked"


def test_a_pod_that_was_replaced_is_asked_about_anew() -> None:
    asked = Asked()
    first = asked.pod("a")
    assert asked(first).values == (30.0,)
    asked.cluster.readings["a"] = 70.0
    assert asked(replace(first, uid="another")).values == (70.0,)


def test_a_value_ends_with_its_age_and_with_a_new_version() -> None:
    asked = Asked()
    pod = asked.pod("a")
    assert asked(pod, now=0.0).values == (30.0,)
    asked.cluster.readings["a"] = 40.0
    assert asked(pod, now=PATIENCE - 0.1).values == (30.0,)
    assert asked(pod, now=PATIENCE).values == (40.0,)
    asked.cluster.readings["a"] = 50.0
    assert asked(pod, now=PATIENCE, version=2).values == (50.0,)


def test_what_is_remembered_is_bounded() -> None:
    asked = Asked(limit=3)
    pod = asked.pod("a")
    for name in ("T4", "A100", "H100", "H200"):
        asked(pod, devices=parse(f"model={name}"))
    asked(pod, devices=parse("model=T4"))
    assert asked.times == 5, "forgotten, and asked for again"
