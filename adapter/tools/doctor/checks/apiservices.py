"""Checks of the metrics APIs' registrations: present, the adapter's, and available."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from adapter.answers.causes.metricsapis import STATUSES, by_adapter
from adapter.answers.causes.signs import sign_of
from adapter.pipeline.cluster.objects import ApiService, SeenCondition
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)
from adapter.tools.doctor.release import helm_release

CUSTOM: Final = "custom.metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
RESOURCE: Final = "metrics.k8s.io"
NAME: Final = "gpu-metrics-adapter"
_CERTIFICATE: Final = re.compile(r"x509|certificate|tls:", re.IGNORECASE)
_UNKNOWN: Final = "signed by unknown authority"
"""What Go's TLS client says of a certificate that another CA signed."""
_VOLUME: Final = "certificate"
"""Volume of the chart's Deployment that has the serving certificate."""
TWO_WAYS: Final = (
    "make that program a delegate (docs/delegation.md), or take its rules over "
    "(docs/migrate-from-prometheus-adapter.md)"
)
_ENDPOINTS: Final = ("MissingEndpoints", "ServiceNotFound", "ServicePortError", "EndpointsNotFound")


@check("GMA004", CheckSection.CLUSTER, "the adapter's APIServices are registered")
def unregistered_apis(facts: Facts) -> Iterator[Finding]:
    """The HPA controller asks for `custom.metrics.k8s.io/v1beta2`, and for `v1beta1` if that is
    missing.

    Install the chart with `apiServices.create=true`, its default, or create the APIService.
    """
    release = facts.release.read()
    if release is None:
        raise NotApplicableError("the adapter is not installed")
    names = {apiservice.metadata.name for apiservice in facts.apiservices.read()}
    for version in ("v1beta2", "v1beta1"):
        name = f"{version}.{CUSTOM}"
        if name not in names:
            home, chart = helm_release(release.workload)
            yield Finding(
                f"apiservice {name}",
                "does not exist, so HPAs get no custom metrics of this version",
                "install the chart with apiServices.create=true",
                f"helm -n {home} get values {chart} --all | grep -A 2 apiServices",
                Severity.ERROR if version == "v1beta2" else Severity.WARNING,
            )


@check("GMA005", CheckSection.CLUSTER, "no other program serves the custom metrics API")
def taken_custom_api(facts: Facts) -> Iterator[Finding]:
    """A cluster has one server of `custom.metrics.k8s.io`. If another program has it, the chart
    refuses to be installed.

    Let the adapter ask the other program for its metrics (`docs/delegation.md`), or take over
    prometheus-adapter's rules and remove it (`docs/migrate-from-prometheus-adapter.md`).
    """
    for apiservice in facts.apiservices.read():
        if (
            apiservice.spec.group != CUSTOM
            or apiservice.spec.service is None
            or is_ours(facts, apiservice)
        ):
            continue
        service = apiservice.spec.service
        delegated = is_delegate(facts, apiservice)
        yield Finding(
            f"apiservice {apiservice.metadata.name}",
            f"belongs to Service {service.namespace}/{service.name}, so HPAs ask that program",
            "it is a delegate: point the APIService to the adapter (docs/delegation.md)"
            if delegated
            else TWO_WAYS,
            f"kubectl get apiservice {apiservice.metadata.name} -o yaml",
            Severity.WARNING if delegated or facts.release.value is None else Severity.ERROR,
        )


def is_delegate(facts: Facts, apiservice: ApiService) -> bool:
    """Return whether the adapter asks the program that an APIService names."""
    service = apiservice.spec.service
    key = (service.namespace, service.name) if service else ("", "")
    rows = (row.service for row in facts.settings.delegation.delegates)
    return any((row.namespace, row.name) == key for row in rows)


def is_ours(facts: Facts, apiservice: ApiService) -> bool:
    """Return whether an APIService names the adapter's Service."""
    release, service = facts.release.value, apiservice.spec.service
    if release is None or service is None:
        # Outside of the cluster, or from other manifests: no Deployment says whose Service it is.
        return by_adapter(apiservice, facts.apiservices.value or ())
    meta = release.workload.metadata
    return (service.namespace, service.name) == (meta.namespace, meta.name)


def _unavailable_apis(facts: Facts) -> Iterator[tuple[ApiService, SeenCondition]]:
    for apiservice in facts.apiservices.read():
        if apiservice.spec.group not in (CUSTOM, EXTERNAL, RESOURCE, f"view.{NAME}.io"):
            continue
        if apiservice.spec.group == RESOURCE and not is_ours(facts, apiservice):
            continue  # metrics-server has checks of its own
        for condition in apiservice.status.conditions:
            if condition.type == "Available" and condition.status == "False":
                yield apiservice, condition


def _of_service(apiservice: ApiService, what: str) -> str:
    service = apiservice.spec.service
    if service is None:
        return f"kubectl get apiservice {apiservice.metadata.name} -o yaml"
    return f"kubectl -n {service.namespace} {what.format(service.name)}"


@check(
    "GMA006", CheckSection.CLUSTER, "the metrics APIs have endpoints", effect=FindingEffect.RESULT
)
def no_endpoints(facts: Facts) -> Iterator[Finding]:
    """An APIService names a Service without a ready pod, or one that does not exist. Meanwhile HPAs
    keep their replica counts, and namespaces cannot be deleted.

    See why the pods are not ready. If the program was removed, delete the APIService.
    """
    for apiservice, condition in _unavailable_apis(facts):
        if condition.reason in _ENDPOINTS:
            yield Finding(
                f"apiservice {apiservice.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                "make the pods of its Service ready, or delete the APIService if it is not used",
                _of_service(apiservice, "get service,endpointslices,pods"),
            )


@check("GMA007", CheckSection.CLUSTER, "the API server accepts the metrics APIs' certificates")
def bad_certificate(facts: Facts) -> Iterator[Finding]:
    """`caBundle` of the APIService is not the CA that signed the serving certificate, the
    certificate has expired, or it is for another name.

    The printed command copies `caBundle` from an available APIService of the same Service, or from
    the Secret with the adapter's certificate. If the certificate itself is wrong, run the chart's
    CronJob once.
    """
    for apiservice, condition in _unavailable_apis(facts):
        if condition.reason not in _ENDPOINTS and _CERTIFICATE.search(condition.message):
            yield Finding(
                f"apiservice {apiservice.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                *_certificate_fix(facts, apiservice, condition),
            )


def _certificate_fix(
    facts: Facts, apiservice: ApiService, condition: SeenCondition
) -> tuple[str, str]:
    """Return the fix and its command: a `caBundle` that is another CA's is replaced."""
    if _UNKNOWN in condition.message:
        if source := _available_sibling(facts, apiservice):
            name = source.metadata.name
            return (
                f"its caBundle is of another CA: copy that of {name}, which works",
                _patch_ca(apiservice, f"get apiservice {name}", "{.spec.caBundle}"),
            )
        if (secret := _certificate_secret(facts)) and is_ours(facts, apiservice):
            namespace, name = secret
            return (
                f"its caBundle is of another CA: copy the CA from Secret {namespace}/{name}",
                _patch_ca(apiservice, f"-n {namespace} get secret {name}", r"{.data.ca\.crt}"),
            )
    return (
        "renew the certificate: run the chart's certificates CronJob, or correct caBundle",
        _of_service(apiservice, "get cronjobs,jobs,secrets"),
    )


def _available_sibling(facts: Facts, apiservice: ApiService) -> ApiService | None:
    """Return an available APIService of the same Service with another `caBundle`."""
    for other in facts.apiservices.read():
        same = other.spec.service is not None and other.spec.service == apiservice.spec.service
        up = any(c.type == "Available" and c.status == "True" for c in other.status.conditions)
        if same and up and other.spec.ca_bundle not in ("", apiservice.spec.ca_bundle):
            return other
    return None


def _certificate_secret(facts: Facts) -> tuple[str, str] | None:
    """Return namespace and name of the Secret with the adapter's certificate."""
    release = facts.release.value
    for volume in release.workload.spec.template.spec.volumes if release else ():
        if volume.name == _VOLUME and volume.secret is not None and release is not None:
            return release.workload.metadata.namespace, volume.secret.secret_name
    return None


def _patch_ca(apiservice: ApiService, source: str, path: str) -> str:
    read = f"$(kubectl {source} -o jsonpath='{path}')"
    body = rf'"{{\"spec\":{{\"caBundle\":\"{read}\"}}}}"'
    return f"kubectl patch apiservice {apiservice.metadata.name} --type=merge -p {body}"


@check("GMA008", CheckSection.CLUSTER, "the API server reaches the metrics APIs")
def unreachable_apis(facts: Facts) -> Iterator[Finding]:
    """The API server gets no answer from a metrics API whose pods are ready. The usual cause is a
    firewall or NetworkPolicy. A status (401, 403, 404) is an answer of the server, or of a proxy in
    between.

    Admit the control plane to the port of the pods: 6443 in the chart.
    """
    for apiservice, condition in _unavailable_apis(facts):
        certificate = _CERTIFICATE.search(condition.message)
        if condition.reason not in _ENDPOINTS and not certificate:
            status = sign_of(STATUSES, condition.message)
            yield Finding(
                f"apiservice {apiservice.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                status.fix
                if status is not None
                else "admit the API server to the pods: check firewall and NetworkPolicies",
                _of_service(apiservice, "get networkpolicies,endpointslices"),
            )
