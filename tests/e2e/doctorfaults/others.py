"""Faults of prometheus-adapter's rules, and of other metrics servers behind the adapter."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.apiservice import NAMESPACE
from tests.e2e.cluster import Object
from tests.e2e.doctorfaults.installation import RELEASE
from tests.e2e.doctorfaults.register import configured, fault
from tests.e2e.pagestand import made, patched
from tests.e2e.site import Site

STORE = "source: {scrape: {interval: 1s}, prometheus: {url: 'http://prometheus.monitoring.svc'}}\n"
SCRAPE = "source: {scrape: {interval: 1s}}\n"
BROKEN = """
rules:
- seriesQuery: requests{namespace!="",pod!=""}
  resources: {template: <<.Resource>>}
  metricsQuery: sum(<<.Serie>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""


@fault("GMA721")
def a_rule_with_an_unknown_field(site: Site) -> Iterator[None]:
    """The Deployment mounts the ConfigMap; it is paused, so that its pods stay."""
    meta = {"name": "rules", "namespace": NAMESPACE}
    rules = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    spec = site.admin.get(RELEASE)["spec"]["template"]["spec"]
    (serve,) = spec["containers"]
    mount = {"name": "rules", "mountPath": "/etc/rules"}
    volume = {"name": "rules", "configMap": {"name": "rules"}}

    def pod(containers: list[Object], volumes: list[Object]) -> Object:
        return {"template": {"spec": {"containers": containers, "volumes": volumes}}}

    mounted = pod(
        [serve | {"volumeMounts": [*serve["volumeMounts"], mount]}], [*spec["volumes"], volume]
    )
    change = {"spec": {"paused": True, **mounted}}
    back = {"spec": {"paused": False, **pod(spec["containers"], spec["volumes"])}}
    with (
        made(site, rules | {"data": {"config.yaml": BROKEN}}),
        patched(site, RELEASE, change, back),
        configured(site, f"{STORE}rules: {{file: /etc/rules/config.yaml}}\n"),
    ):
        yield


@fault("GMA014")
def resource_metrics_that_belong_to_metrics_server(site: Site) -> Iterator[None]:
    theirs: Object = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": "kube-system", "name": "metrics-server"},
            "insecureSkipTLSVerify": True,
        },
    }
    rules = "rules: {file: /nowhere/config.yaml, resource_metrics: true}\n"
    with made(site, theirs), configured(site, STORE + rules):
        yield


@fault("GMA724")
def an_account_of_delegates_without_rights(site: Site) -> Iterator[None]:
    delegate = "{name: old, service: {namespace: monitoring, name: prometheus-adapter}}"
    account = f"service_account: {NAMESPACE}/nobody"
    with configured(site, f"{SCRAPE}delegation: {{{account}, delegates: [{delegate}]}}\n"):
        yield
