"""Several pods with labels of exporters, and which of them are scraped."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from adapter.pipeline.cluster.pod import Owner, Pod, PodRef
from adapter.pipeline.sources.scrape.discovery import (
    DISCOVERY_RULES,
    DiscoveryRule,
    ScrapeTargets,
    select_exporters,
)
from adapter.pipeline.sources.scrape.selection import LINGER, RETRY, ExporterSelection, _Node
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from apiservice.labels.selector import parse
from tests.adapter.world import make_pod

DCGM = {"app.kubernetes.io/name": "dcgm-exporter"}
OPERATOR = {"app": "nvidia-dcgm-exporter"}
GKE = {"app.kubernetes.io/name": "gke-managed-dcgm-exporter"}
AMD = {"app.kubernetes.io/name": "metrics-exporter", "daemonset-name": "amd"}
HAMI = {"app.kubernetes.io/component": "hami-device-plugin"}
OWN = {"app": "own"}
DAEMONSET = Owner("apps/v1", "DaemonSet", "dcgm-exporter")


def exporter(
    name: str,
    labels: dict[str, str] = DCGM,
    *,
    namespace: str = "gpu-operator",
    node: str = "n1",
    born: float = 100.0,
    mounts: bool = False,
    owner: Owner | None = None,
) -> Pod:
    return make_pod(
        name,
        namespace=namespace,
        gpus={},
        uid=f"uid-{name}",
        node=node,
        ip=f"ip-{namespace}-{name}",
        labels=labels,
        owner=owner,
        born=born,
        host_paths=mounts,
    )


class Cluster:
    """Created and deleted pods, and which of them are scraped."""

    def __init__(self, *pods: Pod, rules: tuple[DiscoveryRule, ...] = DISCOVERY_RULES) -> None:
        self.pods: dict[PodRef, Pod] = {}
        self.scraped: set[str] = set()
        self.changes: list[str] = []
        self.now = 1000.0
        self.targets = ScrapeTargets(
            rules, self._added, self._removed, ServerPages(), lambda: self.now
        )
        self.put(*pods)
        self.targets.decide()

    def put(self, *pods: Pod) -> None:
        for pod in pods:
            self.targets.pod_changed(self.pods.get(pod.ref), pod)
            self.pods[pod.ref] = pod

    def delete(self, pod: Pod) -> None:
        self.targets.pod_changed(self.pods.pop(pod.ref), None)

    def _added(self, target: ScrapeTarget) -> None:
        assert target.pod is not None
        self.scraped.add(target.pod.name)
        self.changes.append(f"+{target.pod.name}")

    def _removed(self, target: ScrapeTarget) -> None:
        assert target.pod is not None
        self.scraped.remove(target.pod.name)
        self.changes.append(f"-{target.pod.name}")


REAL = exporter("real", mounts=True, owner=DAEMONSET)
FORGED = exporter("forged", namespace="tenant", born=200.0)


@pytest.mark.parametrize("labels", [DCGM, OPERATOR, GKE, AMD, HAMI])
@pytest.mark.parametrize("first", [True, False])
def test_a_pod_with_only_labels_is_left_out_beside_an_exporter(
    labels: dict[str, str], first: bool
) -> None:
    """With any rule, and even if it is older and belongs to a DaemonSet."""
    forged = FORGED.replace(labels=labels, born=1.0, owner=DAEMONSET)
    cluster = Cluster()
    cluster.put(*((forged, REAL) if first else (REAL, forged)))
    assert cluster.scraped == {"real"}
    assert cluster.targets.unscrapable == {"no_host_path": 1}


def test_a_pod_with_only_labels_is_left_out_on_nodes_without_an_exporter() -> None:
    assert Cluster(REAL, FORGED.replace(node="n2")).scraped == {"real"}


def test_a_pod_with_only_labels_is_not_scraped_while_the_exporter_restarts() -> None:
    waiting = FORGED.replace(born=1.0)
    cluster = Cluster(REAL, waiting)
    cluster.put(REAL.replace(deleting=True))
    assert cluster.scraped == set()
    cluster.delete(REAL)
    cluster.now += LINGER - 1
    cluster.put(waiting.replace(labels={**DCGM, "touched": "yes"}))
    assert cluster.scraped == set()
    new = REAL.replace(ref=PodRef("gpu-operator", "new"), uid="new", born=900.0)
    cluster.put(new.replace(phase="Pending", ip=""), new)
    cluster.now += 2 * LINGER
    cluster.put(exporter("unrelated", {"app": "web"}, namespace="other"))
    assert cluster.scraped == {"new"}
    assert cluster.changes == ["+real", "-real", "+new"]


def test_a_pending_exporter_is_sufficient_proof() -> None:
    cluster = Cluster(REAL.replace(phase="Pending", ip=""), FORGED)
    assert cluster.scraped == set()


def test_exporters_without_a_mount_are_scraped_if_none_has_a_mount() -> None:
    cluster = Cluster(REAL)
    cluster.delete(REAL)
    cluster.put(exporter("new"))
    assert cluster.scraped == set()
    assert cluster.targets.unscrapable == {"no_host_path": 1}
    cluster.now += LINGER
    cluster.put(exporter("unrelated", {"app": "web"}, namespace="other"))
    assert cluster.scraped == {"new"}


@pytest.mark.parametrize("mounts", [True, False])
def test_a_daemonset_pod_precedes_the_oldest_pod_of_one_kind_on_a_node(mounts: bool) -> None:
    older = exporter("older", namespace="a", born=50.0, mounts=mounts)
    daemon = exporter("daemon", OPERATOR, namespace="b", mounts=mounts, owner=DAEMONSET)
    younger = exporter("younger", namespace="c", born=200.0, mounts=mounts)
    unknown = exporter("unknown", namespace="d", born=0.0, mounts=mounts)
    cluster = Cluster(unknown, younger, older, daemon)
    assert cluster.scraped == {"daemon"}
    assert cluster.targets.unscrapable == {"another_exporter_on_node": 3}
    for gone, next_one in ((daemon, "older"), (older, "younger"), (younger, "unknown")):
        cluster.put(gone.replace(phase="Failed"))
        assert cluster.scraped == {next_one}


OPERATORS = exporter("operators", OPERATOR, born=200.0, mounts=True, owner=DAEMONSET)
CHARTS = exporter("charts", namespace="monitoring", mounts=True, owner=DAEMONSET)


def test_an_exporter_that_names_pods_precedes_one_that_names_none() -> None:
    cluster = Cluster(OPERATORS, CHARTS)
    assert cluster.scraped == {"charts"}
    assert cluster.targets.is_contested(CHARTS.ref)
    cluster.targets.note_page(CHARTS.ref, names_pods=False)
    assert cluster.scraped == {"operators"}
    cluster.targets.note_page(OPERATORS.ref, names_pods=True)
    cluster.now += 2 * RETRY
    cluster.put(OPERATORS.replace(ready=False))
    assert cluster.scraped == {"operators"}


def test_exporters_that_all_name_no_pod_do_not_take_turns() -> None:
    cluster = Cluster(OPERATORS, CHARTS)
    for pod in (CHARTS, OPERATORS, CHARTS, CHARTS):
        cluster.targets.note_page(pod.ref, names_pods=False)
    assert cluster.changes == ["+charts", "-charts", "+operators", "-operators", "+charts"]
    cluster.now += RETRY
    cluster.targets.note_page(CHARTS.ref, names_pods=False)
    assert cluster.scraped == {"operators"}


def test_a_new_pod_of_an_exporter_is_tried_again() -> None:
    cluster = Cluster(OPERATORS, CHARTS)
    cluster.targets.note_page(CHARTS.ref, names_pods=False)
    cluster.put(CHARTS.replace(uid="next"))
    assert cluster.scraped == {"charts"}


def test_what_a_page_without_proof_names_gives_it_no_precedence() -> None:
    old = exporter("old", owner=DAEMONSET, born=1.0)
    forged = FORGED.replace(owner=DAEMONSET)
    cluster = Cluster(old, forged)
    assert cluster.scraped == {"old"}
    cluster.targets.note_page(old.ref, names_pods=False)
    cluster.targets.note_page(forged.ref, names_pods=True)
    assert cluster.scraped == {"old"}


def test_a_pod_without_proof_is_not_accepted_by_another_rule() -> None:
    cluster = Cluster(exporter("real", owner=DAEMONSET), FORGED.replace(labels=AMD, born=1.0))
    assert cluster.scraped == {"real"}


def test_a_rolling_update_switches_to_the_new_pod() -> None:
    cluster = Cluster(REAL)
    new = REAL.replace(ref=PodRef("gpu-operator", "new"), uid="new", ip="new", born=300.0)
    cluster.put(new)
    assert cluster.scraped == {"real"}
    cluster.put(REAL.replace(deleting=True))
    assert cluster.scraped == {"new"}
    cluster.delete(REAL)
    assert cluster.scraped == {"new"}


def test_exporters_of_several_kinds_work_side_by_side() -> None:
    kinds = {"dcgm": DCGM, "gke": GKE, "amd": AMD, "hami": HAMI}
    pods = [exporter(name, labels, mounts=True) for name, labels in kinds.items()]
    cluster = Cluster(*pods)
    assert cluster.scraped == set(kinds)
    assert cluster.targets.unscrapable == {}


def test_every_node_has_its_own_exporter() -> None:
    pods = [exporter(f"e{n}", node=f"n{n}", mounts=n % 2 == 0) for n in range(4)]
    assert Cluster(pods[1], pods[3]).scraped == {"e1", "e3"}
    assert Cluster(*pods).scraped == {"e0", "e2"}


def test_all_pods_of_a_rule_with_a_namespace_are_scraped() -> None:
    pinned = DiscoveryRule("mine", parse("app=own"), 1, namespace="gpu-operator")
    mine = [exporter(f"own-{n}", OWN) for n in range(2)]
    cluster = Cluster(*mine, FORGED, rules=(pinned, *DISCOVERY_RULES))
    assert cluster.scraped == {"own-0", "own-1"}
    assert cluster.targets.unscrapable == {"no_host_path": 1}


def test_each_configured_rule_is_a_separate_kind() -> None:
    rules = (
        DiscoveryRule("a", parse("app=a"), 1),
        DiscoveryRule("b", parse("app=b"), 1),
        *DISCOVERY_RULES,
    )
    cluster = Cluster(exporter("a", {"app": "a"}), exporter("b", {"app": "b"}), REAL, rules=rules)
    assert cluster.scraped == {"a", "b", "real"}


@pytest.mark.parametrize("mounts", [True, False])
def test_one_pod_of_a_rule_without_a_namespace_is_scraped(mounts: bool) -> None:
    mine = exporter("mine", OWN, mounts=mounts)
    forged = exporter("forged", OWN, namespace="tenant", born=1.0 if mounts else 200.0)
    cluster = Cluster(
        forged, mine, rules=(DiscoveryRule("mine", parse("app=own"), 1), *DISCOVERY_RULES)
    )
    assert cluster.scraped == {"mine"}


def test_a_pod_page_does_not_compete_with_exporters() -> None:
    server = exporter("vllm", {"gpu-metrics-adapter.io/scrape": "true"}, namespace="tenant")
    labels = {**server.labels, "gpu-metrics-adapter.io/port": "8000"}
    assert Cluster(REAL, server.replace(labels=labels)).scraped == {"real", "vllm"}


def test_an_exporter_that_is_left_out_is_logged_once_with_both_pods_and_a_hint() -> None:
    with capture_logs() as logs:
        cluster = Cluster(REAL, FORGED.replace(host_paths=True))
        cluster.put(FORGED.replace(host_paths=True, labels={**DCGM, "touched": "yes"}))
    left_out = [entry for entry in logs if entry["event"] == "exporter left out"]
    assert len(left_out) == 1
    assert left_out[0]["reason"] == "another_exporter_on_node"
    assert (left_out[0]["namespace"], left_out[0]["pod"]) == ("tenant", "forged")
    assert left_out[0]["scraped"] == "gpu-operator/real"
    assert "source.scrape.exporters" in left_out[0]["hint"]
    assert cluster.targets.unscrapable == {"another_exporter_on_node": 1}


def test_a_pod_that_is_reported_twice_is_one_proof() -> None:
    """A source that is started again reads all pods again."""
    cluster = Cluster(REAL, FORGED)
    cluster.targets.pod_changed(None, REAL)
    cluster.delete(REAL)
    cluster.now += LINGER
    cluster.put(exporter("unrelated", {"app": "web"}, namespace="other"))
    assert cluster.scraped == {"forged"}


def test_the_cost_of_a_change_depends_on_its_node_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [exporter(f"e{n}", node=f"n{n}", mounts=True) for n in range(1000)]
    cluster = Cluster(*pods)
    looked = []
    best = ExporterSelection._best

    def counting(rivals: ExporterSelection, node: _Node) -> dict[PodRef, ScrapeTarget]:
        looked.append(node)
        return best(rivals, node)

    monkeypatch.setattr(ExporterSelection, "_best", counting)
    cluster.put(pods[7].replace(deleting=True))
    cluster.delete(pods[7])
    cluster.put(FORGED.replace(node="n9"))
    assert len(looked) == 3


def test_a_new_process_would_scrape_the_same() -> None:
    """doctor reads the pages of these pods, and not those that a tenant's labels add."""
    real = exporter("real", node="n1", mounts=True)
    forged = exporter("forged", node="n1")
    targets = select_exporters([forged, real], DISCOVERY_RULES)
    assert list(targets) == [real.ref]
