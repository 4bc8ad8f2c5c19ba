"""Fixes of findings by what manages the object: an operator, Helm, git, KEDA, or nobody."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from adapter.answers.keda.manifest import read_scaledobject
from adapter.pipeline.cluster.objects import ClusterPolicy, SeenEvent, read
from adapter.tools.doctor.daemonsets import read_daemonset
from adapter.tools.doctor.facts import Fact, Facts, UnreadError
from adapter.tools.doctor.model import Finding
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.scalers import read_hpa
from adapter.tools.doctor.valuelesspods import WithoutValue
from apiservice.wire import instant
from tests.adapter.tools.doctor.clean import clean, hpa, metric, node, own_workload
from tests.adapter.tools.doctor.faults.exporters import only_on_a, replace_b
from tests.adapter.tools.doctor.test_daemonsets import tainted

Json = dict[str, Any]
SLOW: Json = {"container": {"env": []}}
OWNER = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cp", "controller": True}
FLUX = {"helm.toolkit.fluxcd.io/name": "gpu", "helm.toolkit.fluxcd.io/namespace": "infra"}
RELEASED = {"meta.helm.sh/release-name": "gma", "meta.helm.sh/release-namespace": "gpu-metrics"}
ENV = [{"name": "A", "value": "1"}]


def one(facts: Facts, identity: str) -> Finding:
    """The finding of a check."""
    (result,) = run(facts, (identity,))
    (finding,) = result.findings
    return finding


def daemonset(**meta: Any) -> Json:
    pod = {"containers": [{"name": "exporter", "env": ENV}]}
    named = {"namespace": "gpu-operator", "name": "dcgm-exporter"}
    return {"metadata": named | meta, "spec": {"template": {"spec": pod}}}


def with_daemonset(facts: Facts, **meta: Any) -> Facts:
    facts.daemonsets = Fact([read_daemonset(daemonset(**meta))])
    replace_b(facts, **SLOW)
    return facts


def test_the_gpu_operators_exporter_is_changed_in_its_cluster_policy() -> None:
    facts = with_daemonset(clean(), name="nvidia-dcgm-exporter", ownerReferences=[OWNER])
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nvidia-dcgm-exporter"}
    replace_b(facts, owners=[owner | {"controller": True, "uid": "u"}], **SLOW)
    spec = {"dcgmExporter": {"env": ENV}}
    facts.policies = Fact([read({"metadata": {"name": "cp"}, "spec": spec}, ClusterPolicy)])
    finding = one(facts, "GMA107")
    assert finding.command == (
        "kubectl patch clusterpolicies.nvidia.com cp --type=merge -p "
        """'{"spec":{"dcgmExporter":{"env":[{"name":"A","value":"1"},"""
        """{"name":"DCGM_EXPORTER_INTERVAL","value":"10000"}]}}}'"""
    )
    assert finding.fix.endswith("(ClusterPolicy cp manages it)")


def test_an_exporter_in_git_has_words_and_no_command() -> None:
    finding = one(with_daemonset(clean(), labels=FLUX), "GMA107")
    assert finding.command == ""
    assert "change it in git (Flux HelmRelease gpu in namespace infra)" in finding.fix


def test_an_exporter_whose_daemonset_may_not_be_read_has_no_command_that_is_reverted() -> None:
    facts = with_daemonset(clean())
    facts.daemonsets = Fact(unread=UnreadError("ann may not list daemonsets"))
    finding = one(facts, "GMA107")
    assert finding.command == ""
    assert "`kubectl -n gpu-operator get daemonset dcgm-exporter -o yaml`" in finding.fix


def test_tolerations_of_an_exporter_in_git_are_added_there() -> None:
    facts = clean()
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    facts.nodes = Fact([node("gpu-a"), node("gpu-b"), tainted("gpu-c", taint)])
    manifest = daemonset(labels=FLUX)
    manifest["spec"]["template"]["metadata"] = {
        "labels": {"app.kubernetes.io/name": "dcgm-exporter"}
    }
    facts.daemonsets = Fact([read_daemonset(manifest)])
    finding = one(facts, "GMA101")
    assert finding.command == ""
    assert "change it in git (Flux HelmRelease gpu in namespace infra): add the toleration" in (
        finding.fix
    )


def test_an_hpa_of_keda_is_changed_in_its_scaled_object() -> None:
    facts = clean()
    manifest = hpa(metric(), minReplicas=2, maxReplicas=2).manifest
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "s"}
    meta = {**manifest["metadata"], "ownerReferences": [owner | {"controller": True}]}
    facts.hpas = Fact([read_hpa({**manifest, "metadata": meta})])
    finding = one(facts, "GMA405")
    assert finding.command == (
        "kubectl -n chat patch scaledobjects.keda.sh s --type=merge -p "
        """'{"spec":{"maxReplicaCount":3}}'"""
    )
    # KEDA copies the labels of the ScaledObject, which say that it is in git.
    meta["labels"] = {"argocd.argoproj.io/instance": "chat"}
    facts.hpas = Fact([read_hpa({**manifest, "metadata": meta})])
    finding = one(facts, "GMA405")
    assert finding.command == ""
    assert "Argo CD Application chat" in finding.fix
    assert "set spec.maxReplicaCount to 3 in ScaledObject s" in finding.fix


def test_a_scaled_object_in_git_is_not_edited_by_kubectl() -> None:
    facts = clean()
    trigger = {"scalerAddress": "gpu-metrics-adapter:9090", "metric": "gpu_utilisation"}
    facts.scaledobjects = Fact(
        [
            read_scaledobject(
                {
                    "metadata": {"namespace": "chat", "name": "llm", "labels": FLUX},
                    "spec": {
                        "scaleTargetRef": {"name": "other"},
                        "triggers": [{"type": "external", "metadata": trigger}],
                    },
                }
            )
        ]
    )
    finding = one(facts, "GMA426")
    assert finding.command == ""
    assert "Flux HelmRelease gpu in namespace infra" in finding.fix


def test_our_own_release_is_changed_by_its_values() -> None:
    facts = clean()
    facts.release = Fact(own_workload(replicas=1, annotations=RELEASED))
    assert one(facts, "GMA705").command == (
        "helm upgrade gma charts/gpu-metrics-adapter -n gpu-metrics --reuse-values --set replicas=2"
    )


@pytest.mark.parametrize("reason", ["exporter_names_no_pod", "server_not_scraped"])
def test_a_pod_without_a_value_has_the_fix_that_lasts(reason: str) -> None:
    facts = clean()
    facts.daemonsets = Fact([read_daemonset(daemonset(labels=FLUX))])
    changes = "DaemonSet/gpu-operator/dcgm-exporter"
    facts.without_value = Fact([WithoutValue("chat/llm-1", reason, "no", "words", "", changes)])
    finding = one(facts, "GMA706")
    assert finding.command == ""
    assert "change it in git (Flux HelmRelease gpu in namespace infra)" in finding.fix


def test_a_report_prints_what_manages_the_object_and_no_command() -> None:
    facts = with_daemonset(clean(), labels=FLUX)
    report = DoctorReport(run(facts, ("GMA107",)), "server https://api:6443")
    row = report.json()["checks"][0]["findings"][0]
    assert "command" not in row
    assert "Flux HelmRelease gpu" in row["fix"]
    assert "kubectl" not in shlex.join(row.values())


def test_an_exporter_without_memory_names_its_limit_and_where_it_is_raised() -> None:
    """NVIDIA/dcgm-exporter issue 609: the container ends at the chart's limit, again and again."""
    ended = {"reason": "OOMKilled", "exitCode": 137}
    row = {
        "name": "main",
        "restartCount": 14,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    facts = clean()
    release = {"meta.helm.sh/release-name": "dcgm", "meta.helm.sh/release-namespace": "monitoring"}
    marks = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": release}
    facts.daemonsets = Fact([read_daemonset(daemonset(**marks))])
    limited = {"resources": {"limits": {"memory": "128Mi"}}}
    replace_b(facts, container=limited, status={"containerStatuses": [row]})
    finding = one(facts, "GMA102")
    assert "memory limit of 128Mi (OOMKilled): 14 restarts" in finding.message
    assert "raise limits.memory of container main" in finding.fix
    assert "dcgm" in finding.fix
    assert "128Mi" not in finding.command


def test_an_exporter_that_the_api_server_refuses_says_why() -> None:
    """2i2c-org/infrastructure pull request 5296: GKE wants a quota for system-node-critical."""
    facts, manifest = clean(), daemonset()
    marks = {"labels": {"app.kubernetes.io/name": "dcgm-exporter"}}
    manifest["spec"]["template"]["metadata"] = marks
    facts.daemonsets = Fact([read_daemonset(manifest)])
    only_on_a(facts)
    message = (
        'Error creating: pods "dcgm-exporter-" is forbidden: insufficient quota to match these '
        "scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]"
    )
    about = {"kind": "DaemonSet", "namespace": "gpu-operator", "name": "dcgm-exporter"}
    event = {
        "involvedObject": about,
        "reason": "FailedCreate",
        "message": message,
        "type": "Warning",
        "count": 9,
        "lastTimestamp": instant.write(facts.now - 30),
    }
    facts.events = Fact([read(event, SeenEvent)])
    finding = one(facts, "GMA101")
    assert "insufficient quota to match these scopes" in finding.message
    assert "create a ResourceQuota with this scope" in finding.fix
