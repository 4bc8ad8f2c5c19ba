"""Faults of the cluster and its metrics APIs (GMA001 to GMA013)."""

from __future__ import annotations

from datetime import timedelta

from adapter.tools.doctor.facts import Clocks, Fact, Facts
from tests.adapter.tools.doctor.clean import (
    NOW,
    apiservice,
    certificate,
    lease,
    node,
    review,
)
from tests.adapter.tools.doctor.faults.register import fault


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
