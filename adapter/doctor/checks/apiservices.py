"""Checks of the metrics APIs' registrations: present, the adapter's, and available."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from adapter.doctor.facts import Facts
from adapter.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check
from adapter.doctor.objects import ApiService, SeenCondition

CUSTOM: Final = "custom.metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
NAME: Final = "gpu-metrics-adapter"
_CERTIFICATE: Final = re.compile(r"x509|certificate|tls:", re.IGNORECASE)
_ENDPOINTS: Final = ("MissingEndpoints", "ServiceNotFound", "ServicePortError", "EndpointsNotFound")


@check("GMA004", CheckSection.CLUSTER, "the adapter's APIServices are registered")
def unregistered(facts: Facts) -> Iterator[Finding]:
    """The API server forwards requests for `custom.metrics.k8s.io` only if an APIService for the
    version exists. The HPA controller asks for `v1beta2`, and for `v1beta1` if that is missing.

    Install the chart with `apiServices.create=true`, its default, or create the APIService.
    """
    release = facts.release.read()
    if release is None:
        raise NotApplicableError("the adapter is not installed")
    names = {each.metadata.name for each in facts.apiservices.read()}
    for version in ("v1beta2", "v1beta1"):
        name = f"{version}.{CUSTOM}"
        if name not in names:
            meta = release.workload.metadata
            chart = meta.labels.get("app.kubernetes.io/instance", meta.name)
            yield Finding(
                f"apiservice {name}",
                "does not exist, so HPAs get no custom metrics of this version",
                "install the chart with apiServices.create=true",
                f"helm -n {meta.namespace} get values {chart} --all | grep -A 2 apiServices",
                Severity.ERROR if version == "v1beta2" else Severity.WARNING,
            )


@check("GMA005", CheckSection.CLUSTER, "no other program serves the custom metrics API")
def taken(facts: Facts) -> Iterator[Finding]:
    """A cluster has one server for each version of `custom.metrics.k8s.io`. If prometheus-adapter
    or another program has it, HPAs do not get values from this adapter, and the chart refuses to
    be installed.

    Move the other program's metrics first: `docs/migrate-from-prometheus-adapter.md`.
    """
    for each in facts.apiservices.read():
        if each.spec.group != CUSTOM or each.spec.service is None or _is_ours(facts, each):
            continue
        service = each.spec.service
        yield Finding(
            f"apiservice {each.metadata.name}",
            f"belongs to Service {service.namespace}/{service.name}, so HPAs ask that program",
            "remove that program, or install the chart with apiServices.create=false",
            f"kubectl get apiservice {each.metadata.name} -o yaml",
            Severity.ERROR if facts.release.value is not None else Severity.WARNING,
        )


def _is_ours(facts: Facts, each: ApiService) -> bool:
    release, service = facts.release.value, each.spec.service
    if release is None or service is None:
        return each.metadata.labels.get("app.kubernetes.io/name") == NAME
    meta = release.workload.metadata
    return (service.namespace, service.name) == (meta.namespace, meta.name)


def _unavailable(facts: Facts) -> Iterator[tuple[ApiService, SeenCondition]]:
    for each in facts.apiservices.read():
        if each.spec.group not in (CUSTOM, EXTERNAL, f"view.{NAME}.io"):
            continue
        for condition in each.status.conditions:
            if condition.type == "Available" and condition.status == "False":
                yield each, condition


def _of_service(each: ApiService, what: str) -> str:
    service = each.spec.service
    if service is None:
        return f"kubectl get apiservice {each.metadata.name} -o yaml"
    return f"kubectl -n {service.namespace} {what.format(service.name)}"


@check("GMA006", CheckSection.CLUSTER, "the metrics APIs have endpoints")
def no_endpoints(facts: Facts) -> Iterator[Finding]:
    """An APIService names a Service without a ready pod, or one that does not exist. While it is
    unavailable, HPAs keep their replica counts, and namespaces cannot be deleted.

    See why the pods are not ready. If the program was removed, delete the APIService.
    """
    for each, condition in _unavailable(facts):
        if condition.reason in _ENDPOINTS:
            yield Finding(
                f"apiservice {each.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                "make the pods of its Service ready, or delete the APIService if it is not used",
                _of_service(each, "get service,endpointslices,pods"),
            )


@check("GMA007", CheckSection.CLUSTER, "the API server accepts the metrics APIs' certificates")
def bad_certificate(facts: Facts) -> Iterator[Finding]:
    """The API server does not accept the serving certificate of a metrics API: the `caBundle` of
    the APIService is not the CA that signed it, the certificate has expired, or it is for another
    name.

    With the chart's own certificate, run its CronJob once. Otherwise correct `caBundle`.
    """
    for each, condition in _unavailable(facts):
        if condition.reason not in _ENDPOINTS and _CERTIFICATE.search(condition.message):
            yield Finding(
                f"apiservice {each.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                "renew the certificate: run the chart's certificates CronJob, or correct caBundle",
                _of_service(each, "get cronjobs,jobs,secrets"),
            )


@check("GMA008", CheckSection.CLUSTER, "the API server reaches the metrics APIs")
def unreachable(facts: Facts) -> Iterator[Finding]:
    """The API server gets no answer from a metrics API, although its pods are ready. The usual
    cause is a firewall or NetworkPolicy between the control plane and the pods: the chart's pods
    listen on port 8443 by default.

    Admit the control plane to this port.
    """
    for each, condition in _unavailable(facts):
        certificate = _CERTIFICATE.search(condition.message)
        if condition.reason not in _ENDPOINTS and not certificate:
            yield Finding(
                f"apiservice {each.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                "admit the API server to the pods: check firewall and NetworkPolicies",
                _of_service(each, "get networkpolicies,endpointslices"),
            )
