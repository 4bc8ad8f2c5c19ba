"""A cluster with prometheus-adapter, as its Helm chart installs it."""

from __future__ import annotations

from typing import Any

from tests.adapter.clientapi import ApiServer

RULES = """\
rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources: {template: <<.Resource>>}
  name: {matches: ^(.*)_total$, as: "${1}_per_second"}
  metricsQuery: sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)
externalRules:
- seriesQuery: 'queue_depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
"""
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DEPLOYMENTS = "/apis/apps/v1/deployments"
CONFIGMAP = "/api/v1/namespaces/monitoring/configmaps/prometheus-adapter"
SERVICE = "/api/v1/namespaces/monitoring/services/prometheus-adapter"
LABELS = {"app.kubernetes.io/name": "prometheus-adapter"}


def deployment(*more: str, **container: Any) -> dict[str, Any]:
    """The Deployment, with these further arguments."""
    arguments = [
        "/adapter",
        "--secure-port=6443",
        "--prometheus-url=http://prometheus.monitoring.svc:9090",
        "--metrics-relist-interval=1m",
        "--config=/etc/adapter/config.yaml",
        *more,
    ]
    image = "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0"
    mounts = [{"name": "config", "mountPath": "/etc/adapter/", "readOnly": True}]
    adapter = {"name": "a", "image": image, "args": arguments, "volumeMounts": mounts, **container}
    volumes = [{"name": "config", "configMap": {"name": "prometheus-adapter"}}]
    meta = {
        "name": "prometheus-adapter",
        "namespace": "monitoring",
        "annotations": {"meta.helm.sh/release-name": "pa"},
    }
    spec = {"containers": [adapter], "volumes": volumes}
    return {"metadata": meta, "spec": {"template": {"metadata": {"labels": LABELS}, "spec": spec}}}


def apiservice(
    name: str, service: str = "prometheus-adapter", namespace: str = "monitoring"
) -> dict[str, Any]:
    """An APIService as the chart of prometheus-adapter has it."""
    version, _, group = name.partition(".")
    spec = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": service, "namespace": namespace, "port": 443},
    }
    meta = {"name": name, "resourceVersion": "7", "uid": "u", "labels": LABELS}
    return {"metadata": meta, "spec": spec, "status": {"conditions": []}}


def hpa(name: str, *metrics: dict[str, Any], namespace: str = "shop") -> dict[str, Any]:
    """An HPA on a Deployment of its name."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "maxReplicas": 5, "metrics": list(metrics)}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def pods_metric(name: str) -> dict[str, Any]:
    """A metric of type Pods."""
    target = {"type": "AverageValue", "averageValue": "10"}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def external_metric(name: str) -> dict[str, Any]:
    """A metric of type External."""
    target = {"type": "Value", "value": "10"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def object_metric(name: str, service: str) -> dict[str, Any]:
    """A metric of a Service."""
    about = {"kind": "Service", "name": service, "apiVersion": "v1"}
    target = {"type": "Value", "value": "10"}
    row = {"describedObject": about, "metric": {"name": name}, "target": target}
    return {"type": "Object", "object": row}


def furnish(server: ApiServer) -> None:
    """Set the answers of a cluster."""
    server.answers |= {
        DEPLOYMENTS: [deployment()],
        CONFIGMAP: {"metadata": {"name": "prometheus-adapter"}, "data": {"config.yaml": RULES}},
        SERVICE: {"spec": {"selector": LABELS}},
        APISERVICES: [
            apiservice("v1beta1.custom.metrics.k8s.io"),
            apiservice("v1beta1.external.metrics.k8s.io"),
            apiservice("v1beta1.metrics.k8s.io", "metrics-server", "kube-system"),
        ],
        "/apis/autoscaling/v2/horizontalpodautoscalers": [
            hpa("web", pods_metric("http_requests_per_second")),
            hpa("api", pods_metric("http_requests_per_second"), external_metric("queue_depth")),
        ],
        "/apis/apps/v1/namespaces/shop/deployments/web/scale": {"status": {"selector": "app=web"}},
        "/apis/apps/v1/namespaces/shop/deployments/api/scale": {"status": {"selector": "app=web"}},
    }
