"""Which labels of a sample name a pod, in every spelling."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapter.pipeline.exposition.podlabels import (
    NamedPod,
    address,
    names_another,
    possible_pods,
    server,
    shows_workload,
    target,
    workload,
)
from adapter.pipeline.exposition.podspellings import SPELLINGS, PodSpelling

EXPORTER = {"pod": "dcgm-exporter-x", "namespace": "monitoring", "container": "exporter"}
WORK = {"pod": "llm-0", "namespace": "ml", "container": "server"}
EXPORTED = {f"exported_{key}": value for key, value in WORK.items()}
LEGACY = {"pod_name": "llm-0", "pod_namespace": "ml", "container_name": "server"}
TARGET = {"pod": "vllm-0", "namespace": "ml", "container": "server", "job": "ml/vllm"}
GOOGLE = {"instance": "vllm-0:metrics", "namespace": "ml", "job": "vllm", "cluster": "c"}
VLLM = ("ml", "vllm-0")

SERVED: dict[str, tuple[dict[str, str], tuple[str, str] | None]] = {
    "target labels": (TARGET | {"instance": "10.0.0.5:8000"}, VLLM),
    "the target's job is named after the pod": (
        TARGET | {"instance": "10.0.0.5:8000", "job": "vllm", "service": "vllm"},
        VLLM,
    ),
    "a query of the user's": ({"exported_pod": "vllm-0", "exported_namespace": "ml"}, VLLM),
    "a collector with honor_labels": (
        {"pod": "vllm-0", "namespace": "ml", "instance": "10.0.0.9:8889"},
        VLLM,
    ),
    "the page's own namespace is not the pod's": (TARGET | {"exported_namespace": "prod"}, VLLM),
    "Google's instance": (GOOGLE, VLLM),
    "Google's instance, port by number": (GOOGLE | {"instance": "vllm-0:8000"}, VLLM),
    "a pod without a namespace": ({"k8s_pod_name": "vllm-0", "instance": "10.0.0.5:8000"}, None),
    "another namespace does not go with it": (
        {"k8s.pod.name": "vllm-0", "kubernetes_namespace": "ml"},
        None,
    ),
    "an address is not a pod": ({"instance": "10.0.0.5:8000", "namespace": "ml"}, None),
    "nor an IPv6 address": ({"instance": "[fd00::7]:8000", "namespace": "ml"}, None),
    "nothing": ({"engine": "0"}, None),
}


@pytest.mark.parametrize(("labels", "expected"), SERVED.values(), ids=SERVED)
def test_the_scrape_target_of_a_server_is_the_workload(
    labels: dict[str, str], expected: tuple[str, str] | None
) -> None:
    pod = server(labels)
    assert (pod and pod.key) == expected
    assert not names_another(labels)


@pytest.mark.parametrize(
    "labels",
    [
        TARGET | EXPORTED,
        GOOGLE | EXPORTED,
        TARGET | LEGACY,
        {"kubernetes_pod_name": "a", "kubernetes_namespace": "ml"} | WORK,
        {"k8s_pod_name": "a", "k8s_namespace_name": "ml"} | WORK,
        {"k8s.pod.name": "llm-0", "k8s.namespace.name": "other"} | WORK,
        {"kubernetes_namespace": "other"} | WORK,
        {"kubernetes_pod_name": "a", "exported_kubernetes_pod_name": "b"},
    ],
    ids=str,
)
def test_a_servers_sample_that_names_two_pods_is_noticed(labels: dict[str, str]) -> None:
    assert names_another(labels)


def test_the_page_of_a_pod_may_name_its_own_pod_only() -> None:
    assert not names_another(TARGET, VLLM)
    assert not names_another({"pod": "llm-0"}, VLLM)
    assert names_another(WORK, VLLM)
    assert names_another({"k8s_pod_name": "vllm-0", "k8s_namespace_name": "other"}, VLLM)


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.pod)
def test_each_spelling_carries_its_container_and_uid(spelling: PodSpelling) -> None:
    for namespace in spelling.namespaces:
        labels = {spelling.pod: "p", namespace: "n", spelling.uid: "u"}
        labels[spelling.containers[0]] = "c"
        pod = server(labels)
        assert pod is not None
        assert pod[:4] == ("n", "p", "c", "u")


@pytest.mark.parametrize(
    ("labels", "first", "others"),
    [
        # Target labels pod and namespace; the page's own are pod_name and namespace.
        (
            {
                "pod": "exporter",
                "namespace": "gpu",
                "pod_name": "llm-0",
                "exported_namespace": "ml",
            },
            ("ml", "exporter"),
            [("ml", "llm-0")],
        ),
        # Target labels pod_name and namespace; the page's own are pod and namespace.
        (
            {
                "pod": "llm-0",
                "namespace": "gpu",
                "pod_name": "exporter",
                "exported_namespace": "ml",
            },
            ("ml", "llm-0"),
            [("ml", "exporter")],
        ),
        # Target labels of OpenTelemetry.
        (
            {"pod": "llm-0", "namespace": "ml", "k8s_pod_name": "e", "k8s_namespace_name": "gpu"},
            ("ml", "llm-0"),
            [("ml", "e"), ("gpu", "e")],
        ),
        # A target label beside the workload, without a namespace that goes with it.
        ({"pod_name": "exporter"}, None, []),
        ({"podname": "exporter", "pod": "llm-0"}, None, []),
    ],
)
def test_labels_that_may_name_two_pods_leave_the_choice_to_the_cluster(
    labels: dict[str, str], first: tuple[str, str] | None, others: list[tuple[str, str]]
) -> None:
    named_pod, more = workload(labels, direct=False)
    assert (named_pod and named_pod.key) == first
    assert [pod.key for pod in more] == others


def test_the_exporter_pod_is_recognised_beside_a_workload() -> None:
    def scraped(labels: Mapping[str, str]) -> NamedPod | None:
        return target(labels, workload(labels, direct=False)[0])

    exporter = scraped(EXPORTER | EXPORTED)
    assert exporter is not None
    assert exporter.key == ("monitoring", "dcgm-exporter-x")
    assert scraped(EXPORTER) is None
    assert scraped(WORK | {"pod_name": "dcgm-exporter-x"}) is None
    assert scraped(WORK | {"podname": "dcgm-exporter-x"}) is None


def test_a_target_label_alone_does_not_show_a_workload() -> None:
    assert shows_workload(LEGACY)
    assert shows_workload(EXPORTER | {"pod_uid": "u"})
    assert not shows_workload(EXPORTER | {"pod_name": "dcgm-exporter-x"})


def test_label_names_are_decoded_to_a_bounded_depth() -> None:
    def deep(times: int) -> dict[str, str]:
        return {"exported_" * times + "pod": "p", "namespace": "ml"}

    assert possible_pods(deep(7), direct=False) == {("ml", "p")}
    assert possible_pods(deep(8), direct=False) == frozenset()


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ("10.0.0.5:8000", "10.0.0.5"),
        ("[fd00::7]:8000", "fd00::7"),
        ("10.0.0.5", "10.0.0.5"),
        ("vllm-0:8000", ""),
        ("", ""),
    ],
)
def test_the_address_of_a_target_is_read(instance: str, expected: str) -> None:
    assert address({"instance": instance}) == expected
