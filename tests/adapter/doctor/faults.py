"""One fault or more for each check: what is changed in the facts of a clean cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from adapter.doctor.facts import Clocks, Fact, Facts, SeenScaledObject
from adapter.doctor.page import ExporterPage
from tests.adapter.doctor.clean import (
    LABELS,
    NOW,
    apiservice,
    certificate,
    external,
    hpa,
    lease,
    metric,
    node,
    pod,
    review,
    workload,
)

Fault = Callable[[Facts], None]
FAULTS: dict[str, list[Fault]] = {}


def fault(identity: str) -> Callable[[Fault], Fault]:
    """Register a fault of a check."""

    def register(change: Fault) -> Fault:
        FAULTS.setdefault(identity, []).append(change)
        return change

    return register


@fault("GMA001")
def old(facts: Facts) -> None:
    facts.version = Fact((1, 26))


@fault("GMA002")
def no_configmap(facts: Facts) -> None:
    facts.authentication = Fact({})


@fault("GMA003")
def ca_ends(facts: Facts) -> None:
    facts.authentication = Fact({"requestheader-client-ca-file": certificate(10)})


@fault("GMA003")
def ca_ended(facts: Facts) -> None:
    facts.authentication = Fact({"requestheader-client-ca-file": certificate(-1)})


@fault("GMA003")
def ca_garbled(facts: Facts) -> None:
    facts.authentication = Fact({"requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----"})


@fault("GMA004")
def unregistered(facts: Facts) -> None:
    facts.apiservices = Fact([apiservice("v1beta1.custom.metrics.k8s.io")])


@fault("GMA005")
def anothers(facts: Facts) -> None:
    names = [f"{version}.custom.metrics.k8s.io" for version in ("v1beta1", "v1beta2")]
    facts.apiservices = Fact([apiservice(name, "monitoring/prometheus-adapter") for name in names])


def unavailable(facts: Facts, reason: str, message: str) -> None:
    facts.apiservices = Fact(
        [
            apiservice("v1beta1.custom.metrics.k8s.io"),
            apiservice("v1beta2.custom.metrics.k8s.io", reason=reason, message=message),
        ]
    )


@fault("GMA006")
def endpoints(facts: Facts) -> None:
    unavailable(facts, "MissingEndpoints", "endpoints for service/gma have no addresses")


@fault("GMA007")
def certificates(facts: Facts) -> None:
    text = "Get https://10.0.0.1:8443: x509: certificate signed by unknown authority"
    unavailable(facts, "FailedDiscoveryCheck", text)


@fault("GMA008")
def network(facts: Facts) -> None:
    unavailable(facts, "FailedDiscoveryCheck", "context deadline exceeded")


@fault("GMA009")
def hpa_may_not(facts: Facts) -> None:
    facts.hpa_rights = Fact([review("hpa", "pods.custom.metrics.k8s.io", allowed=False)])


@fault("GMA010")
def adapter_may_not(facts: Facts) -> None:
    facts.own_rights = Fact([review("gma", "nodes", allowed=False)])


@fault("GMA011")
def ahead(facts: Facts) -> None:
    facts.clocks = Fact(Clocks(-90.0, NOW.timestamp()))


@fault("GMA011")
def node_ahead(facts: Facts) -> None:
    facts.leases = Fact([lease("gpu-a", NOW + timedelta(seconds=60))])


@fault("GMA012")
def no_device_plugin(facts: Facts) -> None:
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", gpus=0)])


@fault("GMA013")
def down(facts: Facts) -> None:
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", ready=False)])


@fault("GMA401")
def misspelt(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_utilisation"))])


@fault("GMA402")
def share_of_request(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(target={"type": "Utilization", "averageUtilization": 70}))])


@fault("GMA402")
def plain_value(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(target={"type": "Value", "value": "70"}))])


@fault("GMA403")
def above(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(average="150"))])


@fault("GMA403")
def percent_of_ratio(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "70"))])


@fault("GMA404")
def ratio_of_percent(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(average="700m"))])


@fault("GMA404")
def bytes_without_suffix(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_memory_used_bytes", "20"))])


@fault("GMA404")
def bytes_for_mebibytes(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("DCGM_FI_DEV_FB_USED", "20Gi"))])


@fault("GMA405")
def pinned(facts: Facts) -> None:
    facts.hpas = Fact([hpa(minReplicas=3, maxReplicas=3)])


@fault("GMA406")
def no_way_in(facts: Facts) -> None:
    facts.hpas = Fact([hpa(behavior={"scaleDown": {"selectPolicy": "Disabled"}})])


@fault("GMA407")
def no_way_out(facts: Facts) -> None:
    facts.hpas = Fact([hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}})])


@fault("GMA408")
def to_zero(facts: Facts) -> None:
    facts.hpas = Fact([hpa(minReplicas=0)])


@fault("GMA409")
def rejected(facts: Facts) -> None:
    facts.offline = True
    facts.hpas = Fact([hpa(minReplicas=9, origin="hpa.yaml")])


@fault("GMA410")
def without_metric(facts: Facts) -> None:
    row = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetPodsMetric",
        "message": "no metrics returned",
    }
    facts.hpas = Fact([hpa(status={"conditions": [row]})])


@fault("GMA411")
def maximum(facts: Facts) -> None:
    row = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
    facts.hpas = Fact([hpa(status={"conditions": [row]})])


@fault("GMA421")
def gone(facts: Facts) -> None:
    facts.workloads = Fact([workload("llama")])


@fault("GMA422")
def selects_nothing(facts: Facts) -> None:
    facts.hpas = Fact([hpa(external("gpu_utilization", app="other"))])


@fault("GMA422")
def without_pods(facts: Facts) -> None:
    facts.pods = Fact([each for each in facts.pods.read() if each.pod.ref.namespace != "chat"])


@fault("GMA423")
def twice(facts: Facts) -> None:
    facts.hpas = Fact([hpa(), hpa(name="other")])


@fault("GMA423")
def keda_too(facts: Facts) -> None:
    facts.scaledobjects = Fact([SeenScaledObject("chat", "llm", "Deployment", "llm")])


@fault("GMA424")
def on_cpu(facts: Facts) -> None:
    facts.workloads = Fact([workload(gpus=0)])


@fault("GMA425")
def saturated(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(average="90"))])
    page = ExporterPage("chat/llm-1", "gpu-a", "inference", "8000/metrics")
    fields = frozenset({"vllm:num_requests_waiting"})
    facts.server_pages = Fact({"chat/llm-1": _with(page, fields)})
    facts.pods = Fact([*facts.pods.read(), pod("llm-3", labels=LABELS)])


def _with(page: ExporterPage, fields: frozenset[str]) -> ExporterPage:
    return ExporterPage(page.pod, page.node, page.rule, page.url, fields=fields)
