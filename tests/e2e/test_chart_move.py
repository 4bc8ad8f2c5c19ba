"""From the chart that kept its certificate in the manifest to the one that rotates it."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace
from tests.e2e.chart import FOLDER
from tests.e2e.installation import Complete, everywhere, values, workload
from tests.e2e.process import wait_until
from tests.e2e.site import IMAGE, Site
from tests.e2e.traffic import Asker, Traffic

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

HERE = f"--namespace={NAMESPACE}"
QUICK: dict[str, Any] = {
    "image": {"repository": IMAGE},
    "config": {"source": {"scrape": {"interval": "1s"}}},
}
APISERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.custom.metrics.k8s.io"
MADE = """\
{{- $name := include "gpu-metrics-adapter.fullname" . -}}
{{- $data := (lookup "v1" "Secret" .Release.Namespace (printf "%s-tls" $name)).data -}}
{{- if not $data -}}
{{- $host := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $ca := genCA "ca" 365 -}}
{{- $pair := genSignedCert $name nil (list $host) 365 $ca -}}
{{- $data = dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $pair.Cert) -}}
{{- $_ := set $data "tls.key" (b64enc $pair.Key) -}}
{{- end -}}
apiVersion: v1
kind: Secret
metadata: {name: {{ $name }}-tls, namespace: {{ .Release.Namespace }}}
type: kubernetes.io/tls
data: {{ toJson $data }}
{{- range list "v1beta1" "v1beta2" }}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: {{ . }}.custom.metrics.k8s.io}
spec:
  group: custom.metrics.k8s.io
  version: {{ . }}
  groupPriorityMinimum: 100
  versionPriority: 100
  service: {name: {{ $name }}, namespace: {{ $.Release.Namespace }}, port: 443}
  caBundle: {{ get $data "ca.crt" }}
{{- end }}
"""


def test_an_upgrade_of_an_earlier_release_fails_no_request(site: Site, tmp_path: Path) -> None:
    site.helm("install", SERVICE, earlier(tmp_path), HERE, "--create-namespace", values=QUICK)
    ensure_namespace(site.admin, "moved")
    workload(site, "moved", 3)
    site.load.set("moved", 150, expected=3)
    wait_until(lambda: replaced(site, set()), "both replicas are ready", 300)
    names = everywhere(site, "moved", 3)
    first = trusted(site)
    clients: dict[str, Asker] = {
        "client": Complete(site.plane.client("tester", "system:masters"), "moved", names)
    }
    before = {pod.name for pod in serving(site)}
    with Traffic(clients) as traffic:
        traffic.wait_more(10)
        site.helm("upgrade", SERVICE, FOLDER, HERE, values=QUICK)
        wait_until(lambda: replaced(site, before), "pods with a certificate of the rotator's", 300)
        traffic.wait_more(10)
        both = trusted(site)
        site.helm("upgrade", SERVICE, FOLDER, HERE, values=QUICK)
        traffic.wait_more(10)
        assert trusted(site) == both
    assert not traffic.failed()
    assert first in both
    assert both.count("BEGIN") == 2
    # Helm puts back whom that revision trusted; a Job that ran still may have added its own.
    site.helm("rollback", SERVICE, "1", HERE, "--wait")
    assert first in trusted(site)
    wait_until(lambda: len(values(site, "moved")) == 3, "the pods of before answer")


def earlier(folder: Path) -> Path:
    """A copy of the chart with the certificate in its manifest, as 0.1.0 began."""
    made = folder / "earlier"
    shutil.copytree(FOLDER, made)
    templates = made / "templates"
    for name in ("certificate", "hooks"):
        shutil.rmtree(templates / name)
    (templates / "apiservices.yaml").write_text(MADE)
    file = templates / "deployment.yaml"
    secret = '{{ include "gpu-metrics-adapter.certificateSecret" . }}'
    assert secret in file.read_text()
    file.write_text(file.read_text().replace(secret, "{{ $name }}-tls"))
    return made


def serving(site: Site) -> list[Any]:
    return list(site.pods(f"app.kubernetes.io/name={SERVICE}"))


def replaced(site: Site, before: set[str]) -> bool:
    pods = serving(site)
    ready = [pod.name for pod in pods if pod.life.ready]
    return len(pods) == len(ready) == 2 and not before & set(ready)


def trusted(site: Site) -> str:
    """The CAs in PEM that the API server trusts behind an APIService."""
    text = site.admin.get(APISERVICE)["spec"]["caBundle"]
    return base64.b64decode(text).decode().strip()
