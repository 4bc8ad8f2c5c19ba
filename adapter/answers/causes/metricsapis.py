"""The metrics APIs that an HPA asks: not registered, or registered and without an answer.

The API server answers 404 for an API that nobody registered, and 503 for one whose server it does
not reach. Conditions of an APIService: ``MissingEndpoints``, ``ServiceNotFound``,
``FailedDiscoveryCheck`` (``kube-aggregator/pkg/controllers/status``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import ClusterFacts, ScalerFacts
from adapter.answers.causes.signs import Sign, sign_of
from adapter.pipeline.catalog import built_in
from adapter.pipeline.cluster.metricsapi import VIEW_GROUP
from adapter.pipeline.cluster.objects import ApiService

_SHORT: Final = 200
_ADAPTER: Final = "gpu-metrics-adapter"
_KEDA: Final = "keda"
_METRICS: Final = built_in().metrics


class MetricsGroup(NamedTuple):
    """One API group of metrics."""

    group: str
    apiservice: str
    what: str
    """What it serves."""
    install: str
    """What registers it."""
    command: str


RESOURCE: Final = MetricsGroup(
    "metrics.k8s.io",
    "v1beta1.metrics.k8s.io",
    "cpu and memory",
    "install metrics-server",
    "kubectl apply -f "
    "https://github.com/kubernetes-sigs/metrics-server/releases/latest/download/components.yaml",
)
EXTERNAL: Final = MetricsGroup(
    "external.metrics.k8s.io",
    "v1beta1.external.metrics.k8s.io",
    "External metrics",
    "turn on externalMetrics.enabled of the chart of gpu-metrics-adapter, or install KEDA",
    "helm -n gpu-metrics upgrade gpu-metrics-adapter "
    "oci://ghcr.io/gpu-metrics-adapter/charts/gpu-metrics-adapter --reuse-values "
    "--set externalMetrics.enabled=true",
)
CUSTOM: Final = MetricsGroup(
    "custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
    "Pods and Object metrics",
    "install gpu-metrics-adapter with apiServices.create=true",
    "gpu-metrics-adapter doctor",
)
OF_TYPES: Final = {
    "Resource": RESOURCE,
    "ContainerResource": RESOURCE,
    "External": EXTERNAL,
    "Pods": CUSTOM,
    "Object": CUSTOM,
}
"""Type of a metric -> the group that the HPA controller asks."""


def causes(facts: ClusterFacts, hpa: ScalerFacts) -> Iterator[Cause]:
    """Yield the metrics APIs of an HPA that do not answer."""
    groups = dict.fromkeys(OF_TYPES[kind] for kind, _ in hpa.metrics if kind in OF_TYPES)
    for group in groups:
        names = [name for kind, name in hpa.metrics if OF_TYPES.get(kind) == group]
        cause = of_group(facts, group, names)
        if cause is None and group is not RESOURCE:
            cause = _taken_api(facts, hpa, group, names)
        if cause is not None:
            yield cause


def _taken_api(
    facts: ClusterFacts, hpa: ScalerFacts, group: MetricsGroup, names: list[str]
) -> Cause | None:
    """Return that another program serves the group than the one that has the metrics.

    A cluster has one server of external metrics (kedacore/keda issues 470 and 4415). KEDA's has
    the metrics of ScaledObjects only, not those that other HPAs ask for.
    """
    of_keda = hpa.manager is not None and hpa.manager.kind == "ScaledObject"
    apiservices = facts.apiservices or {}
    apiservice = next(
        (row for name, row in apiservices.items() if _is_version_of(name, group)), None
    )
    service = apiservice.spec.service if apiservice is not None else None
    if apiservice is None or service is None or (group is CUSTOM and of_keda):
        return None
    words = {service.name, service.namespace, *apiservice.metadata.labels.values()}
    by_us = by_adapter(apiservice, apiservices.values())
    by_keda = group is EXTERNAL and any(_KEDA in word for word in words)
    if by_keda and not by_us and not of_keda:
        return _of_keda(apiservice, names)
    refused = group.group in facts.refused
    # KEDA's metrics are of no other program; those of the catalogue may be rules of another one.
    lacks = (refused or not by_us) if of_keda else refused and any(n in _METRICS for n in names)
    if (by_keda and of_keda) or not lacks or (by_us and not of_keda):
        return None
    owner = "KEDA" if of_keda else _ADAPTER
    servers = " and ".join(
        [*([] if by_us else [service.name]), *(["KEDA's metrics server"] if of_keda else [])]
    )
    return Cause(
        CauseCode.METRICS_API_TAKEN,
        f"apiservice {apiservice.metadata.name}",
        f"Service {service.namespace}/{service.name} serves {group.group}, not {owner}, and has no "
        f"{', '.join(names[:3])}: a cluster has one server for this API",
        f"let gpu-metrics-adapter serve {group.group} and ask {servers} for what it does not have "
        "(delegation.delegates: docs/delegation.md)"
        + (", or point this APIService to KEDA's metrics server" if of_keda else ""),
        f"kubectl get apiservice {apiservice.metadata.name} -o yaml",
    )


def by_adapter(row: ApiService, others: Iterable[ApiService]) -> bool:
    """Return whether the adapter serves an API: by the name of its Service, by the chart's labels,
    or because the same Service serves the view API, also for a program outside of the cluster.

    Args:
        others: the APIServices that were read.
    """
    service = row.spec.service
    if service is None:
        return False
    place = (service.namespace, service.name)
    words = (service.name, *row.metadata.labels.values())
    return any(_ADAPTER in word for word in words) or any(
        other.spec.service is not None
        and (other.spec.service.namespace, other.spec.service.name) == place
        and other.metadata.name.partition(".")[2] == VIEW_GROUP
        for other in others
    )


def _of_keda(apiservice: ApiService, names: list[str]) -> Cause:
    """Return that KEDA serves external metrics, and not those of an HPA that it has not made."""
    service = apiservice.spec.service
    server = "" if service is None else f"Service {service.namespace}/{service.name}"
    return Cause(
        CauseCode.METRICS_API_TAKEN,
        f"apiservice {apiservice.metadata.name}",
        f"KEDA serves {EXTERNAL.group} ({server}), and has metrics of ScaledObjects only, so "
        f"{', '.join(names[:3])} has no value: a cluster has one server for this API",
        "ask for the metric of the adapter with type Pods or Object (custom.metrics.k8s.io), or "
        "replace the HPA by a ScaledObject with a trigger for it (docs/keda.md); leave the "
        "APIService to KEDA, whose ScaledObjects need it",
        f"kubectl get apiservice {apiservice.metadata.name} -o yaml",
    )


def of_group(facts: ClusterFacts, group: MetricsGroup, names: list[str]) -> Cause | None:
    """Return why a group does not answer; None if nothing says so.

    Args:
        names: the metrics that are asked.
    """
    message = (facts.unanswered or {}).get(group.group)
    apiservices = facts.apiservices
    apiservice = apiservices.get(group.apiservice) if apiservices is not None else None
    shown = ", ".join(names[:3])
    if apiservices is not None and apiservice is None and _is_missing(group, apiservices):
        return Cause(
            CauseCode.METRICS_API_MISSING,
            group.group,
            f"nothing serves {group.group}, which has {group.what}, so {shown} has no value",
            group.install,
            group.command,
        )
    condition = apiservice.status.of("Available") if apiservice is not None else None
    if condition is not None and condition.status == "False":
        words = f"{condition.reason}: {condition.message}"
    elif message is not None:
        words = message
    else:
        return None
    since = condition.since if condition is not None else None
    return Cause(
        CauseCode.METRICS_API_DOWN,
        f"apiservice {group.apiservice}",
        f"{_server(apiservice, group)} does not answer{facts.ago(since)}, so {shown} has no value: "
        f"{' '.join(words.split())[:_SHORT]}",
        f"{_advice(group, words)}; it is registered, so it need not be installed again",
        _look(apiservice, group),
        since=since,
    )


def _is_missing(group: MetricsGroup, names: Iterable[str]) -> bool:
    """Any version will do for the HPA controller."""
    return not any(_is_version_of(name, group) for name in names)


STATUSES: Final = (
    Sign(
        (": 401", "status 401"),
        "see the server's log: it does not accept the API server's certificate. It must read the "
        "CA in ConfigMap kube-system/extension-apiserver-authentication",
    ),
    Sign(
        (": 403", "status 403"),
        "let kube-apiserver reach the Service without an HTTP proxy: add .svc and the addresses of "
        "the Services to NO_PROXY in its manifest; without a proxy, see why the server refuses it",
    ),
    Sign(
        (": 404", "status 404"),
        "correct the Service of the APIService: the program behind it does not serve this API",
    ),
)
"""Answers in the place of an API's discovery (kubernetes-sigs/prometheus-adapter issue 227)."""
_DOWN: Final = (
    *STATUSES,
    Sign(
        ("x509", "certificate", "tls:"),
        "renew the certificate of the server, or caBundle of the APIService",
    ),
    Sign(
        ("missingendpoints", "no addresses", "endpoints"),
        "see why no pod of its Service is ready",
    ),
    Sign(
        ("servicenotfound", "not present"),
        "create its Service, or delete the APIService if its program is gone",
    ),
    Sign(
        ("deadline exceeded", "timeout", "timed out", "refused", "no route"),
        "see whether its pods hang, and admit the control plane to their port: a firewall or a "
        "NetworkPolicy may drop its packets",
    ),
)
"""What an APIService says, and what to do."""
_KUBELETS: Final = (
    "; metrics-server stays unready if it does not trust the kubelets' certificates "
    "(--kubelet-insecure-tls, or rotate them)"
)


def _advice(group: MetricsGroup, words: str) -> str:
    sign = sign_of(_DOWN, words)
    fix = sign.fix if sign is not None else "see its pods, and their log"
    return fix + (_KUBELETS if group is RESOURCE and sign is _DOWN[1] else "")


def _is_version_of(name: str, group: MetricsGroup) -> bool:
    """Return whether an APIService registers a version of a group."""
    return name.partition(".")[2] == group.group


def _server(apiservice: ApiService | None, group: MetricsGroup) -> str:
    service = apiservice.spec.service if apiservice is not None else None
    if service is None:
        return f"the server of {group.group}"
    return f"Service {service.namespace}/{service.name}, which serves {group.group},"


def _look(apiservice: ApiService | None, group: MetricsGroup) -> str:
    service = apiservice.spec.service if apiservice is not None else None
    if service is None:
        return f"kubectl get apiservice {group.apiservice} -o yaml"
    return f"kubectl -n {service.namespace} get pods,endpointslices -o wide"
