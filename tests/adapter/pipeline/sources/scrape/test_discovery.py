"""Discovery of exporters among pods."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adapter.pipeline.cluster.pod import ContainerPort, Pod, PodRef
from adapter.pipeline.sources.scrape.discovery import (
    DISCOVERY_RULES,
    DiscoveryRule,
    ScrapeTargets,
    _page,
)
from adapter.pipeline.sources.scrape.pageaddress import Unscrapable
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from apiservice.labels.selector import parse
from tests.adapter.world import make_pod


def discover(pod: Pod, rules: Sequence[DiscoveryRule]) -> ScrapeTarget | Unscrapable | None:
    rule = next((rule for rule in rules if rule.matches(pod)), None)
    return None if rule is None else _page(pod, rule)


def pod(
    labels: dict[str, str],
    *,
    name: str = "exporter",
    ports: tuple[ContainerPort, ...] = (),
    phase: str = "Running",
    ip: str = "10.0.0.7",
    deleting: bool = False,
    containers: tuple[str, ...] = ("main",),
    uid: str = "u",
) -> Pod:
    return make_pod(
        name,
        namespace="gpu",
        gpus={},
        uid=uid,
        node="gpu-1",
        ip=ip,
        phase=phase,
        deleting=deleting,
        labels=labels,
        containers=containers,
        ports=ports,
    )


DCGM = {"app.kubernetes.io/name": "dcgm-exporter", "app.kubernetes.io/instance": "x"}
METRICS = (ContainerPort("metrics", 9400),)

CHARTS = [
    (pod(DCGM, ports=METRICS), "dcgm-exporter", "http://10.0.0.7:9400/metrics"),
    (
        pod(DCGM, ports=(ContainerPort("metrics", 9500),)),
        "dcgm-exporter",
        "http://10.0.0.7:9500/metrics",
    ),
    (pod(DCGM), "dcgm-exporter", "http://10.0.0.7:9400/metrics"),
    (
        pod({"app": "nvidia-dcgm-exporter"}, ports=METRICS),
        "gpu-operator",
        "http://10.0.0.7:9400/metrics",
    ),
    (
        pod({"app.kubernetes.io/name": "gke-managed-dcgm-exporter"}, ports=METRICS),
        "gke-dcgm",
        "http://10.0.0.7:9400/metrics",
    ),
    (
        pod({"app.kubernetes.io/name": "metrics-exporter", "daemonset-name": "test"}),
        "amd-gpu-operator",
        "http://10.0.0.7:5000/metrics",
    ),
    (
        pod(
            {"app": "rel-amdgpu-metrics-exporter"},
            containers=("amdgpu-metrics-exporter-container",),
            ports=(ContainerPort("", 5001),),
        ),
        "amd-exporter",
        "http://10.0.0.7:5001/metrics",
    ),
    (pod({"app": "intel-xpumanager"}), "intel-xpumanager", "http://10.0.0.7:29999/metrics"),
    (pod({"app.kubernetes.io/name": "xpumd"}), "intel-xpumd", "http://10.0.0.7:8080/metrics"),
    (
        pod({"app.kubernetes.io/component": "hami-device-plugin"}),
        "hami",
        "http://10.0.0.7:9394/metrics",
    ),
]


@pytest.mark.parametrize(("exporter", "rule", "url"), CHARTS)
def test_the_pods_of_the_usual_charts_are_found(exporter: Pod, rule: str, url: str) -> None:
    target = ScrapeTarget(url, "gpu-1", PodRef("gpu", "exporter"), "u", rule)
    assert discover(exporter, DISCOVERY_RULES) == target


NO_TARGETS = [
    pytest.param(pod({"app": "inference"}), id="another pod"),
    pytest.param(pod({"app.kubernetes.io/name": "metrics-exporter"}), id="a common name alone"),
    pytest.param(pod(DCGM, phase="Pending"), id="not started"),
    pytest.param(pod(DCGM, phase="Succeeded"), id="finished"),
    pytest.param(pod(DCGM, ip=""), id="without address"),
    pytest.param(pod(DCGM, deleting=True), id="on its way out"),
]


@pytest.mark.parametrize("other", NO_TARGETS)
def test_other_pods_and_unreachable_exporters_are_not_targets(other: Pod) -> None:
    assert discover(other, DISCOVERY_RULES) is None


def test_an_ipv6_address_is_bracketed() -> None:
    target = discover(pod(DCGM, ip="fd00::7"), DISCOVERY_RULES)
    assert isinstance(target, ScrapeTarget)
    assert target.url == "http://[fd00::7]:9400/metrics"


def test_user_rules_take_precedence_and_may_set_everything() -> None:
    mine = DiscoveryRule(
        "mine", parse("app=own"), 8443, path="/gpu", scheme="https", namespace="gpu"
    )
    target = discover(pod({"app": "own", **DCGM}), (mine, *DISCOVERY_RULES))
    assert isinstance(target, ScrapeTarget)
    assert (target.url, target.rule) == ("https://10.0.0.7:8443/gpu", "mine")


def test_a_rule_may_be_pinned_to_a_namespace() -> None:
    pinned = DiscoveryRule("mine", parse("app=own"), 1, namespace="elsewhere")
    assert discover(pod({"app": "own"}), (pinned,)) is None


def test_a_missing_port_name_is_reported_with_the_fix() -> None:
    unscrapable = discover(pod({"app": "own"}), (DiscoveryRule("mine", parse("app=own"), "web"),))
    assert isinstance(unscrapable, Unscrapable)
    assert unscrapable.reason == "no_port"
    assert "rule mine: no container port is named 'web': set its number" in unscrapable.message


def test_a_built_in_rule_always_knows_a_port_and_its_family() -> None:
    assert [rule.name for rule in DISCOVERY_RULES if rule.fallback is None or not rule.family] == []


class Log:
    """Records changes of targets."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.targets = ScrapeTargets(DISCOVERY_RULES, self._added, self._removed)
        self.targets.decide()

    def _added(self, target: ScrapeTarget) -> None:
        self.entries.append(f"+{target.uid}")

    def _removed(self, target: ScrapeTarget) -> None:
        self.entries.append(f"-{target.uid}")


def test_targets_follow_pods() -> None:
    log = Log()
    pending, started = pod(DCGM, ip="", uid="1"), pod(DCGM, uid="1")
    log.targets.pod_changed(None, pending)
    log.targets.pod_changed(pending, started)
    log.targets.pod_changed(started, pod(DCGM, uid="1", ports=METRICS))
    log.targets.pod_changed(pod(DCGM, uid="1", ports=METRICS), None)
    assert log.entries == ["+1", "-1"]
    assert len(log.targets) == 0


def test_an_address_passes_from_an_old_pod_to_a_new_one() -> None:
    log = Log()
    old, new = pod(DCGM, name="a", uid="1"), pod(DCGM, name="b", uid="2")
    log.targets.pod_changed(None, old)
    log.targets.pod_changed(None, new)
    log.targets.pod_changed(old, None)  # a late event: the address belongs to the new pod now
    assert log.entries == ["+1", "-1", "+2"]
    assert len(log.targets) == 1


URL = "http://10.0.0.7:9400/metrics"
FIXED = ScrapeTarget(URL, uid="fixed")
EXPORTER = ScrapeTarget(URL, uid="exporter", rule="dcgm-exporter")
OWN_PAGE = ScrapeTarget(URL, uid="page", rule="inference", serves=True)


@pytest.mark.parametrize(
    ("first", "then"), [(FIXED, EXPORTER), (FIXED, OWN_PAGE), (EXPORTER, OWN_PAGE)]
)
def test_a_pod_cannot_silence_an_exporter_by_taking_its_address(
    first: ScrapeTarget, then: ScrapeTarget
) -> None:
    """Pods with the host network have the node's address and name their port themselves."""
    log = Log()
    log.targets.add(first)
    log.targets.add(then)
    assert log.entries == [f"+{first.uid}"]
    log.targets.remove(first)
    assert log.entries[1:] == [f"-{first.uid}", f"+{then.uid}"]
    log.targets.add(first)
    assert log.entries[3:] == [f"-{then.uid}", f"+{first.uid}"]
    assert len(log.targets) == 1


def test_the_older_of_two_pods_at_one_address_is_scraped_again_when_the_newer_is_deleted() -> None:
    log = Log()
    older, newer = EXPORTER._replace(uid="1"), EXPORTER._replace(uid="2")
    log.targets.add(older)
    log.targets.add(newer)
    log.targets.add(newer)
    log.targets.remove(newer)
    log.targets.remove(older)
    log.targets.remove(older)
    assert log.entries == ["+1", "-1", "+2", "-2", "+1", "-1"]
    assert len(log.targets) == 0
