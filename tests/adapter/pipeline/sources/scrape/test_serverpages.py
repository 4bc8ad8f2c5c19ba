"""The pods with a server page, and its address."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from adapter.pipeline.cluster.optin import has_opted_in
from adapter.pipeline.cluster.pod import ContainerPort, Pod, PodRef
from adapter.pipeline.sources.scrape.discovery import DISCOVERY_RULES, ScrapeTargets
from adapter.pipeline.sources.scrape.pageaddress import Unscrapable
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from apiservice.labels.selector import parse
from tests.adapter.world import make_pod

POD = make_pod(
    "vllm-0",
    gpus={},
    uid="u",
    node="gpu-1",
    ip="10.0.0.5",
    labels={"app": "vllm"},
    ports=(ContainerPort("http", 8000),),
)
TWO = (ContainerPort("grpc", 8001), ContainerPort("metrics", 8002))
OURS = "gpu-metrics-adapter.io/"


def asks(**words: str) -> dict[str, str]:
    return {OURS + key: value for key, value in ({"scrape": "true"} | words).items()}


def annotated(annotations: Mapping[str, str], ports: tuple[ContainerPort, ...] = POD.ports) -> Pod:
    return POD.replace(annotations=annotations, ports=ports)


FOUND: dict[str, tuple[ServerPages, Pod, str]] = {
    "its only port": (ServerPages(), annotated(asks()), "http://10.0.0.5:8000/metrics"),
    "a label asks as well": (
        ServerPages(),
        POD.replace(labels=asks(port="9000")),
        "http://10.0.0.5:9000/metrics",
    ),
    "an annotation overrides the label": (
        ServerPages(),
        POD.replace(labels=asks(port="9000"), annotations={OURS + "port": "9001"}),
        "http://10.0.0.5:9001/metrics",
    ),
    "a port by number": (
        ServerPages(),
        annotated(asks(port="9000")),
        "http://10.0.0.5:9000/metrics",
    ),
    "a port by name": (
        ServerPages(),
        annotated(asks(port="metrics"), TWO),
        "http://10.0.0.5:8002/metrics",
    ),
    "path and scheme": (
        ServerPages(),
        annotated(asks(path="/v1/metrics", scheme="HTTPS")),
        "https://10.0.0.5:8000/v1/metrics",
    ),
    "an IPv6 address": (
        ServerPages(),
        annotated(asks()).replace(ip="fd00::7"),
        "http://[fd00::7]:8000/metrics",
    ),
    "the port that the settings name": (
        ServerPages(port_names=("metrics",)),
        annotated(asks(), TWO),
        "http://10.0.0.5:8002/metrics",
    ),
    "a port name alone chooses": (
        ServerPages(port_names=("http",)),
        POD,
        "http://10.0.0.5:8000/metrics",
    ),
    "a selector chooses": (
        ServerPages(selector=parse("app=vllm"), port=8080, path="/m"),
        POD,
        "http://10.0.0.5:8080/m",
    ),
    "Prometheus' words where they are followed": (
        ServerPages(well_known=True),
        annotated({"prometheus.io/scrape": "true", "prometheus.io/port": "8005"}),
        "http://10.0.0.5:8005/metrics",
    ),
    "our words before Prometheus'": (
        ServerPages(well_known=True),
        annotated(
            {"prometheus.io/scrape": "true", "prometheus.io/port": "8005"} | asks(port="8006")
        ),
        "http://10.0.0.5:8006/metrics",
    ),
    "before it is ready, where that is asked for": (
        ServerPages(unready=True),
        annotated(asks()).replace(ready=False),
        "http://10.0.0.5:8000/metrics",
    ),
    "in a namespace that is named": (
        ServerPages(namespaces=frozenset({"ml"})),
        annotated(asks()),
        "http://10.0.0.5:8000/metrics",
    ),
}


@pytest.mark.parametrize(("pages", "pod", "url"), FOUND.values(), ids=FOUND)
def test_a_pod_that_opts_in_or_is_selected_is_scraped(
    pages: ServerPages, pod: Pod, url: str
) -> None:
    assert pages.of(pod) == ScrapeTarget(url, "gpu-1", pod.ref, "u", "inference", serves=True)


NOT_ASKED: dict[str, tuple[ServerPages, Pod]] = {
    "it does not ask": (ServerPages(), POD),
    "Prometheus annotations are not followed by default": (
        ServerPages(),
        annotated({"prometheus.io/scrape": "true"}),
    ),
    "it says no": (
        ServerPages(selector=parse("app=vllm")),
        annotated({OURS + "scrape": "false"}),
    ),
    "another app": (ServerPages(selector=parse("app=other")), POD),
    "another port name": (ServerPages(port_names=("web",)), POD),
    "another namespace": (ServerPages(namespaces=frozenset({"x"})), annotated(asks())),
    "still loading its model": (ServerPages(), annotated(asks()).replace(ready=False)),
    "finished": (ServerPages(), annotated(asks()).replace(phase="Succeeded")),
    "on its way out": (ServerPages(), annotated(asks()).replace(deleting=True)),
    "without address": (ServerPages(), annotated(asks()).replace(ip="")),
}


@pytest.mark.parametrize(("pages", "pod"), NOT_ASKED.values(), ids=NOT_ASKED)
def test_other_pods_are_not_scraped(pages: ServerPages, pod: Pod) -> None:
    assert pages.of(pod) is None


PORTS = {
    "a list": ("8000,8001", [8000, 8001]),
    "a range": ("8000-8003", [8000, 8001, 8002, 8003]),
    "both, and a name": ("8000-8001, metrics", [8000, 8001, 8002]),
}


@pytest.mark.parametrize(("said", "ports"), PORTS.values(), ids=PORTS)
def test_each_port_that_a_pod_names_has_a_page(said: str, ports: list[int]) -> None:
    pages = ServerPages().all_of(annotated(asks(port=said), TWO))
    assert not isinstance(pages, Unscrapable)
    assert [page.url for page in pages] == [f"http://10.0.0.5:{port}/metrics" for port in ports]


def test_ports_that_a_pod_no_longer_names_are_not_scraped() -> None:
    now: set[str] = set()
    targets = ScrapeTargets(
        DISCOVERY_RULES, lambda t: now.add(t.url), lambda t: now.remove(t.url), ServerPages()
    )
    four, two = (annotated(asks(port=ports)) for ports in ("8000-8003", "8003-8004"))
    targets.pod_changed(None, four)
    targets.pod_changed(four, two)
    assert now == {f"http://10.0.0.5:{port}/metrics" for port in (8003, 8004)}
    targets.pod_changed(two, None)
    assert not now


UNSCRAPABLE = [
    (asks(port="8000,"), "bad_port"),
    (asks(port="8001-8000"), "bad_port"),
    (asks(port="1-65535"), "bad_port"),
    (asks(port=",".join(["8000"] * 5000)), "bad_port"),
    (asks(port="abc"), "bad_port"),
    (asks(port="0"), "bad_port"),
    (asks(port="65536"), "bad_port"),
    (asks(port="-1"), "bad_port"),
    (asks(port="8000@evil"), "bad_port"),
    (asks(port="٣"), "bad_port"),
    (asks(port="9" * 5000), "bad_port"),
    (asks(port="000001234567"), "bad_port"),
    (asks(path="metrics"), "bad_path"),
    (asks(path="@evil/metrics"), "bad_path"),
    (asks(path="/a b"), "bad_path"),
    (asks(path="/" + "a" * 2000), "bad_path"),
    (asks(scheme="file"), "bad_scheme"),
]


@pytest.mark.parametrize(("annotations", "reason"), UNSCRAPABLE)
def test_an_invalid_annotation_is_refused_with_a_reason(
    annotations: dict[str, str], reason: str
) -> None:
    unscrapable = ServerPages().of(annotated(annotations))
    assert isinstance(unscrapable, Unscrapable)
    assert unscrapable.reason == reason


@pytest.mark.parametrize("ports", [(), TWO])
def test_a_pod_with_no_or_several_ports_must_name_one(ports: tuple[ContainerPort, ...]) -> None:
    unscrapable = ServerPages().of(annotated(asks(), ports))
    assert isinstance(unscrapable, Unscrapable)
    assert unscrapable.reason == "no_port"
    assert "gpu-metrics-adapter.io/port" in unscrapable.message


def test_an_unscrapable_pod_is_logged_and_counted_once() -> None:
    targets = ScrapeTargets(DISCOVERY_RULES, lambda _: None, lambda _: None, ServerPages())
    wrong = annotated(asks(port="abc"))
    with capture_logs() as logs:
        targets.pod_changed(None, wrong)
        targets.pod_changed(wrong, wrong.replace(labels={"touched": "yes"}))
    assert targets.unscrapable == {"bad_port": 1}
    assert [entry["pod"] for entry in logs] == ["vllm-0"]
    assert "'abc'" in logs[0]["problem"]


def test_a_fixed_annotation_creates_a_target() -> None:
    seen: list[ScrapeTarget] = []
    targets = ScrapeTargets(DISCOVERY_RULES, seen.append, lambda _: None, ServerPages())
    wrong, corrected = annotated(asks(port="abc")), annotated(asks(port="8000"))
    targets.pod_changed(None, wrong)
    targets.pod_changed(wrong, corrected)
    assert [target.url for target in seen] == ["http://10.0.0.5:8000/metrics"]


def test_an_exporter_cannot_opt_in_as_a_server() -> None:
    seen: list[ScrapeTarget] = []
    targets = ScrapeTargets(DISCOVERY_RULES, seen.append, lambda _: None, ServerPages())
    targets.decide()
    exporter = annotated(asks()).replace(labels={"app": "nvidia-dcgm-exporter"})
    targets.pod_changed(None, exporter)
    assert [(target.rule, target.serves) for target in seen] == [("gpu-operator", False)]


def test_every_vendors_exporter_is_found_beside_the_servers() -> None:
    fleet = {
        "dcgm-exporter": {"app.kubernetes.io/name": "dcgm-exporter"},
        "gpu-operator": {"app": "nvidia-dcgm-exporter"},
        "amd-gpu-operator": {
            "app.kubernetes.io/name": "metrics-exporter",
            "daemonset-name": "amd",
        },
        "intel-xpumanager": {"app": "intel-xpumanager"},
        "hami": {"app.kubernetes.io/component": "hami-device-plugin"},
        "inference": asks(),
    }
    seen: list[ScrapeTarget] = []
    targets = ScrapeTargets(DISCOVERY_RULES, seen.append, lambda _: None, ServerPages())
    targets.decide()
    for number, labels in enumerate(fleet.values()):
        pod = POD.replace(ref=PodRef("x", f"p{number}"), node=f"n{number}", labels=labels)
        targets.pod_changed(None, pod.replace(ip=f"10.0.0.{number}"))
    assert [target.rule for target in seen] == list(fleet)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [(asks(), True), (asks(scrape="TRUE"), True), (asks(scrape="no"), False), ({}, False)],
)
def test_only_true_opts_in(annotations: dict[str, str], *, expected: bool) -> None:
    assert has_opted_in(annotated(annotations)) is expected
