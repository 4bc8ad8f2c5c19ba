"""Fixes of findings: one for each cause, with a command that changes the right object."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from adapter.config.process.output import Screen
from adapter.pipeline.cluster.objects import ApiService, read
from adapter.tools.client.hpacommands import grant_controller, one_hpa
from adapter.tools.doctor.daemonsets import read_daemonset
from adapter.tools.doctor.facts import Fact, Facts, UnreadError
from adapter.tools.doctor.model import Finding
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.valuelesspods import WithoutValue, read_without_value
from tests.adapter.tools.doctor.clean import (
    apiservice,
    clean,
    exporter,
    external,
    hpa,
    metric,
    own_workload,
    review,
    scaledobject,
)
from tests.adapter.tools.doctor.faults.cluster import unavailable
from tests.adapter.tools.doctor.faults.exporters import replace_b
from tests.adapter.tools.doctor.faults.hpas import refused, scaled_by

SLOW: dict[str, Any] = {"container": {"env": []}}
UNKNOWN = "tls: failed to verify certificate: x509: certificate signed by unknown authority"


def findings(facts: Facts, identity: str) -> tuple[Finding, ...]:
    """What one check finds."""
    (result,) = run(facts, (identity,))
    return result.findings


def test_slow_exporters_of_one_daemonset_are_one_finding_with_their_number() -> None:
    facts = clean()
    others = [pod for pod in facts.pods.read() if pod.pod.ref.namespace != "gpu-operator"]
    facts.pods = Fact([*others, *(exporter(f"gpu-{n}", **SLOW) for n in "abc")])
    (finding,) = findings(facts, "GMA107")
    assert finding.subject == "daemonset/dcgm-exporter in gpu-operator (3 pods)"
    assert finding.command == (
        "kubectl -n gpu-operator set env daemonset/dcgm-exporter DCGM_EXPORTER_INTERVAL=10000"
    )


def test_slow_exporters_without_a_workload_are_one_finding() -> None:
    facts = clean()
    others = [pod for pod in facts.pods.read() if pod.pod.ref.namespace != "gpu-operator"]
    facts.pods = Fact([*others, *(exporter(f"gpu-{n}", owners=[], **SLOW) for n in "abc")])
    (finding,) = findings(facts, "GMA107")
    assert finding.subject == "pods without a workload in gpu-operator (3 pods)"


def test_exporters_with_different_intervals_are_different_findings() -> None:
    facts = clean()
    replace_b(facts, **SLOW)
    (finding,) = findings(facts, "GMA107")
    assert finding.subject.endswith("(pod dcgm-exporter-gpu-b)")


def test_several_hpas_of_one_target_are_one_finding_with_the_commands_of_explain() -> None:
    facts = clean()
    hpas = [
        hpa(metric("gpu_memory_used_bytes", "20Gi"), name="c"),
        hpa(metric(), name="b"),
        hpa(metric("gpu_utilization", "70"), name="a"),
    ]
    facts.hpas = Fact(hpas)
    (finding,) = findings(facts, "GMA423")
    assert finding.subject == "hpa chat/a"
    assert finding.message.startswith("hpa b and hpa c scale Deployment llm too")
    assert finding.action == one_hpa([rival.manifest for rival in hpas])
    patch, delete = finding.command.split(" && ")
    words = shlex.split(patch)
    assert words[:6] == ["kubectl", "-n", "chat", "patch", "hpa", "a"]
    added = [row["value"]["pods"]["metric"]["name"] for row in json.loads(words[-1])]
    assert added == ["gpu_memory_used_bytes"]
    assert delete == "kubectl -n chat delete hpa b c"


def test_an_hpa_that_kserve_makes_is_switched_off_in_its_inferenceservice() -> None:
    """Deleting it, or moving its metrics, is undone by KServe (kserve issue 2131)."""
    facts = clean()
    owner = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "llm"}
    made = hpa(metric(), name="llm-predictor")
    made.manifest["metadata"]["ownerReferences"] = [owner | {"controller": True, "uid": "u"}]
    facts.hpas = Fact([made, hpa(metric("gpu_utilization", "70"), name="own")])
    (finding,) = findings(facts, "GMA423")
    assert (
        "annotate InferenceService llm with serving.kserve.io/autoscalerClass: external"
        in finding.fix
    )


def test_an_hpa_beside_a_scaledobject_is_not_deleted_before_its_metrics_are_moved() -> None:
    facts = clean()
    facts.scaledobjects = Fact([scaledobject()])
    (finding,) = findings(facts, "GMA423")
    assert finding.fix == (
        "add a trigger for gpu_utilization to the ScaledObject, then delete hpa llm"
    )
    assert finding.command == "kubectl -n chat edit scaledobjects.keda.sh llm"


def with_bundle(facts: Facts, name: str, bundle: str) -> None:
    """Give an APIService a caBundle."""

    def changed(each: ApiService) -> ApiService:
        service = each.spec.service
        assert service is not None
        spec = {
            "group": each.spec.group,
            "version": each.spec.version,
            "caBundle": bundle,
            "service": {"namespace": service.namespace, "name": service.name},
        }
        rows = [{"type": c.type, "status": c.status} for c in each.status.conditions]
        rows = [
            row | {"reason": c.reason, "message": c.message}
            for row, c in zip(rows, each.status.conditions, strict=True)
        ]
        meta = {"name": each.metadata.name}
        return read({"metadata": meta, "spec": spec, "status": {"conditions": rows}}, ApiService)

    facts.apiservices = Fact(
        [changed(old) if old.metadata.name == name else old for old in facts.apiservices.read()]
    )


def test_a_wrong_cabundle_is_copied_from_the_apiservice_that_is_available() -> None:
    facts = clean()
    unavailable(facts, "FailedDiscoveryCheck", UNKNOWN)
    with_bundle(facts, "v1beta1.custom.metrics.k8s.io", "R09PRA==")
    with_bundle(facts, "v1beta2.custom.metrics.k8s.io", "QkFE")
    (finding,) = findings(facts, "GMA007")
    assert "copy that of v1beta1.custom.metrics.k8s.io, which works" in finding.fix
    assert finding.command == (
        "kubectl patch apiservice v1beta2.custom.metrics.k8s.io --type=merge -p "
        r'"{\"spec\":{\"caBundle\":\"$(kubectl get apiservice v1beta1.custom.metrics.k8s.io '
        r"""-o jsonpath='{.spec.caBundle}')\"}}" """.rstrip()
    )


def test_a_wrong_cabundle_is_copied_from_the_secret_of_the_certificate() -> None:
    facts = clean()
    volume = {"name": "certificate", "secret": {"secretName": "gma-tls"}}
    facts.release = Fact(own_workload(volumes=[volume]))
    unavailable(facts, "FailedDiscoveryCheck", UNKNOWN)
    (finding,) = findings(facts, "GMA007")
    assert "copy the CA from Secret gpu-metrics/gma-tls" in finding.fix
    assert r"$(kubectl -n gpu-metrics get secret gma-tls -o jsonpath='{.data.ca\.crt}')" in (
        finding.command
    )


def test_an_expired_certificate_is_renewed() -> None:
    facts = clean()
    unavailable(facts, "FailedDiscoveryCheck", "x509: certificate has expired or is not yet valid")
    with_bundle(facts, "v1beta1.custom.metrics.k8s.io", "R09PRA==")
    (finding,) = findings(facts, "GMA007")
    assert finding.fix.startswith("renew the certificate")


def forbidden_hpa(name: str) -> Any:
    """An HPA whose controller may not read its metric."""
    message = (
        "the HPA was unable to compute the replica count: pods.custom.metrics.k8s.io is forbidden: "
        'User "system:serviceaccount:kube-system:horizontal-pod-autoscaler" cannot get resource '
        '"pods/gpu_utilization" in API group "custom.metrics.k8s.io" in the namespace "chat"'
    )
    row = {"type": "ScalingActive", "status": "False", "reason": "FailedGetPodsMetric"}
    return hpa(name=name, status={"conditions": [row | {"message": message}]})


def test_hpas_that_lack_one_right_are_one_finding_that_leads_to_the_grant() -> None:
    facts = clean()
    facts.hpas = Fact([forbidden_hpa(name) for name in ("a", "b", "c")])
    facts.hpa_rights = Fact([review("hpa", "pods.custom.metrics.k8s.io", allowed=False)])
    (finding,) = findings(facts, "GMA410")
    assert finding.named == "hpa chat/a and 2 hpas more"
    assert "horizontal-pod-autoscaler may not get pods/gpu_utilization" in finding.message
    # A second paste of the same command would fail.
    assert (finding.fix, finding.command) == ("grant the right with the command of GMA009", "")


def test_a_right_that_was_granted_since_the_last_sync_needs_no_command() -> None:
    facts = clean()
    facts.hpas = Fact([forbidden_hpa("a")])
    (finding,) = findings(facts, "GMA410")
    assert finding.fix.startswith("nothing, if it has the right by now")
    assert finding.command == ""


def test_a_right_that_was_not_reviewed_is_granted() -> None:
    facts = clean()
    facts.hpas = Fact([forbidden_hpa("a")])
    facts.hpa_rights = Fact(unread=UnreadError("bob may not create subjectaccessreviews"))
    (finding,) = findings(facts, "GMA410")
    assert finding.command == grant_controller()


def test_pods_without_an_exporter_lead_to_the_check_of_nodes() -> None:
    facts = clean()
    why = WithoutValue("chat/llm-1", "no_exporter_on_node", "no exporter", "kubectl get pods", "x")
    facts.without_value = Fact([why])
    (finding,) = findings(facts, "GMA706")
    assert finding.fix == "GMA101 says why, and has the command"


def test_a_server_that_cannot_be_scraped_leads_to_the_checks_of_servers() -> None:
    facts = clean()
    hint = "gpu-metrics-adapter doctor"
    facts.without_value = Fact([WithoutValue("chat/llm-1", "server_unscrapable", "no", hint, "x")])
    (finding,) = findings(facts, "GMA706")
    assert finding.fix == "GMA502 or GMA505 says why, and has the command"
    # `explain pod` would lead back to doctor.
    assert finding.command == "gpu-metrics-adapter doctor --explain server_unscrapable"


def test_pods_that_do_not_have_the_interval_of_their_template_are_replaced() -> None:
    facts = clean()
    replace_b(facts, container={"env": []})
    (before,) = findings(facts, "GMA107")
    assert "30 s, the default (no interval is set)" in before.message
    assert " set env daemonset/dcgm-exporter DCGM_EXPORTER_INTERVAL=10000" in before.command
    row = {"name": "main", "env": [{"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}]}
    template = {"spec": {"containers": [row]}}
    meta = {"name": "dcgm-exporter", "namespace": "gpu-operator"}
    facts.daemonsets = Fact([read_daemonset({"metadata": meta, "spec": {"template": template}})])
    (after,) = findings(facts, "GMA107")
    assert "its template says 10 s, which these pods do not have yet" in after.message
    assert after.command == "kubectl -n gpu-operator rollout restart daemonset/dcgm-exporter"


def test_a_target_that_runs_away_is_fixed_before_the_values_come_back() -> None:
    facts = clean()
    facts.hpas = Fact([hpa(metric(average="700m"))])
    assert DoctorReport(run(facts), "server").advice == ""
    facts.hpa_rights = Fact([review("system:serviceaccount:kube-system:hpa", "x", allowed=False)])
    report = DoctorReport(run(facts), "server")
    assert report.advice.startswith("Correct GMA404 before: HPAs get values again when GMA009 is")
    lines = report.lines(Screen())
    heads = [at for at, line in enumerate(lines) if " GMA" in line or line.startswith("Correct")]
    assert [lines[at].split()[1] for at in heads[:3]] == ["GMA009", "GMA404", "GMA404"]
    assert report.json()["advice"] == report.advice


def test_the_second_command_of_a_hint_is_part_of_the_fix() -> None:
    facts = clean()
    logs, restart = "kubectl -n gpu logs dcgm-1", "kubectl -n gpu delete pod dcgm-1"
    why = {"reason": "exporter_down", "message": "it is down", "hint": logs, "then": restart}
    meta = {"namespace": "chat", "name": "llm-1"}
    facts.without_value = Fact([read_without_value({"metadata": meta, "reason": why})])
    (finding,) = findings(facts, "GMA706")
    assert finding.command == logs
    assert finding.fix.endswith(f"; if it shows no cause, run `{restart}`")


def test_the_title_of_a_failed_check_says_that_it_is_what_was_expected() -> None:
    facts = clean()
    unavailable(facts, "FailedDiscoveryCheck", "context deadline exceeded")
    lines = DoctorReport(run(facts, ("GMA001", "GMA008")), "server", verbose=True).lines(Screen())
    heads = [line for line in lines if re.match(r". GMA\d{3} ", line)]
    assert heads == [
        "\N{MULTIPLICATION SIGN} GMA008 expected: the API server reaches the metrics APIs",
        "√ GMA001 Kubernetes is 1.27 or newer",
    ]


def test_the_service_of_an_adapter_outside_of_the_cluster_is_the_projects_own() -> None:
    facts = clean()
    facts.release = Fact(None)
    rows = [
        apiservice(f"{name}.custom.metrics.k8s.io", "lab/gpu") for name in ("v1beta1", "v1beta2")
    ]
    facts.apiservices = Fact(rows)
    assert len(findings(facts, "GMA005")) == 2
    facts.apiservices = Fact([*rows, apiservice("v1alpha1.view.gpu-metrics-adapter.io", "lab/gpu")])
    assert findings(facts, "GMA005") == ()
    facts.apiservices = Fact([apiservice(rows[0].metadata.name, "lab/gpu-metrics-adapter")])
    assert findings(facts, "GMA005") == ()


def test_an_answer_of_a_proxy_is_not_a_firewall() -> None:
    facts = clean()
    unavailable(facts, "FailedDiscoveryCheck", "bad status from https://10.0.0.1:443: 403")
    (finding,) = findings(facts, "GMA008")
    assert "without an HTTP proxy" in finding.fix
    assert "firewall" not in finding.fix


def test_a_target_at_zero_is_a_finding_only_if_a_program_put_it_there() -> None:
    facts = clean()
    scaled_by(facts, "kubectl-client-side-apply")
    assert findings(facts, "GMA408") == ()
    scaled_by(facts, "night-saver")
    (finding,) = findings(facts, "GMA408")
    assert "is at 0 replicas for 60m, by night-saver; an HPA wakes no target" in finding.message
    assert finding.command == "kubectl -n chat scale deployment/llm --replicas=1"
    scaled_by(facts, "rollouts-controller")
    (finding,) = findings(facts, "GMA408")
    assert "let the HPA scale the Rollout" in finding.fix
    assert "edit hpa llm" in finding.command


def test_without_a_server_of_the_api_no_name_of_a_metric_is_called_wrong() -> None:
    """Which metrics a server would have is not known; a likely misspelling still is one."""
    facts = clean()
    facts.apiservices = Fact([apiservice("v1.autoscaling")])
    facts.hpas = Fact([hpa(external("queue_length"), status=refused("queue_length"))])
    assert findings(facts, "GMA401") == ()
    (missing,) = findings(facts, "GMA444")
    assert "nothing serves external.metrics.k8s.io" in missing.message
    facts.hpas = Fact([hpa(external("gpu_utilisation"), status=refused("gpu_utilisation"))])
    assert len(findings(facts, "GMA401")) == 1
