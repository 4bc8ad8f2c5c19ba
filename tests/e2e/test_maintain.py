"""The serving certificate over the years, and what an uninstall leaves: the chart's own Jobs."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import random
import ssl
import time
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from adapter.tools.maintain.objects import ISSUED, PUBLISHED, RENEW
from tests.e2e.apiservice import CHARTED, NAMESPACE, SERVICE, ensure_namespace, wait_available
from tests.e2e.auditlog import asked, granted
from tests.e2e.chart import FOLDER, one, render
from tests.e2e.cluster import Object, RefusedError
from tests.e2e.installation import (
    Complete,
    an_hour_passes,
    annotate,
    apiservices,
    audited,
    everywhere,
    refusals,
    workload,
)
from tests.e2e.process import wait_until
from tests.e2e.site import IMAGE, Site
from tests.e2e.traffic import Answer, Asker, Traffic

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SERVE = f"app.kubernetes.io/name={SERVICE}"
HOST = f"{SERVICE}.{NAMESPACE}.svc"
INTO = (SERVICE, FOLDER, f"--namespace={NAMESPACE}")
QUICK: dict[str, Any] = {
    "image": {"repository": IMAGE},
    "config": {"source": {"scrape": {"interval": "1s"}}},
    # Only when the tests say so.
    "certificate": {"selfSigned": {"schedule": "0 0 29 2 *"}},
}
ACCOUNTS = f"system:serviceaccount:{NAMESPACE}"
UNREGISTER = "app.kubernetes.io/component=unregister"
NAMES = tuple(f"{version}.{group}" for group, version, _ in CHARTED)
CERTIFICATE = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SERVICE}-certificate"
AUTHORITY = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SERVICE}-ca"
CRONJOB = f"cronjob/{SERVICE}-certificates"
_numbers = itertools.count(1)


def path_of(name: str) -> str:
    return f"/apis/apiregistration.k8s.io/v1/apiservices/{name}"


def data(site: Site, path: str) -> dict[str, bytes]:
    rows = site.admin.get(path).get("data") or {}
    return {key: base64.b64decode(text) for key, text in rows.items()}


def bundles(site: Site) -> list[bytes]:
    """Whom the API server trusts, APIService by APIService."""
    specs = [site.admin.get(path_of(name))["spec"] for name in NAMES]
    return [base64.b64decode(spec.get("caBundle", "")) for spec in specs]


def kept(site: Site) -> tuple[dict[str, bytes], dict[str, bytes], list[bytes]]:
    """All that a rotation writes."""
    return data(site, CERTIFICATE), data(site, AUTHORITY), bundles(site)


def maintain(site: Site, outcome: str = "succeeded") -> str:
    """Run the CronJob's Job now; returns what it logged. It is the chart's, to the letter."""
    name = f"now-{next(_numbers)}"
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
    site.kubectl("create", "job", f"--from={CRONJOB}", name, f"--namespace={NAMESPACE}")
    done = site.admin.wait(path, lambda job: bool(attempts(job)), f"{name} has run")
    logs = [pod.log.read_text() for pod in site.pods() if pod.labels.get("job-name") == name]
    assert attempts(done) == outcome, logs
    return "".join(logs)


def attempts(job: Object) -> str:
    """How a pod of a Job has ended; empty while none has."""
    status = job.get("status", {})
    return next((word for word in ("succeeded", "failed") if status.get(word)), "")


def wait_jobs(site: Site) -> None:
    """Wait until every Job that is still there is done."""
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    site.admin.wait(path, lambda jobs: all(map(ended, jobs["items"])), "every Job is done")


def ended(job: Object) -> bool:
    rows = job.get("status", {}).get("conditions") or ()
    return any(row["type"] in ("Complete", "Failed") and row["status"] == "True" for row in rows)


def shown(address: str, bundle: bytes) -> bytes:
    """The certificate that a pod shows to who trusts this bundle alone, in DER."""
    context = ssl.create_default_context(cadata=bundle.decode())
    with (
        httpx.Client(verify=context, trust_env=False, timeout=120) as client,
        client.stream(
            "GET",
            f"https://{address}:6443/livez",
            extensions={"sni_hostname": HOST},
            headers={"Host": HOST},
        ) as response,
    ):
        certificate: bytes = (
            response.extensions["network_stream"].get_extra_info("ssl_object").getpeercert(True)
        )
        assert response.status_code == 200
    return certificate


def served(site: Site) -> list[bytes]:
    """What each pod shows."""
    return [shown(pod.address, bundles(site)[0]) for pod in site.pods(SERVE)]


def wait_served(site: Site) -> None:
    """Wait until every pod serves what the Secret holds now."""
    wanted = ssl.PEM_cert_to_DER_cert(data(site, CERTIFICATE)["tls.crt"].decode())

    def look() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return set(served(site)) == {wanted}
        return False

    wait_until(look, "every pod serves the new certificate")


class Handshakes:
    """A new connection to a pod each time, by what the API server trusts at that moment."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def ask(self) -> Answer:
        """See :class:`tests.e2e.traffic.Asker`."""
        begun = time.monotonic()
        try:
            bundle = random.choice(bundles(self._site))
            shown(random.choice(self._site.pods(SERVE)).address, bundle)
        except (RefusedError, httpx.TransportError) as error:
            return Answer(begun, f"{type(error).__name__}: {error}"[:300])
        return Answer(begun)

    def close(self) -> None:
        """See :class:`tests.e2e.traffic.Asker`."""


def installed(site: Site, more: Mapping[str, Any] | None = None) -> None:
    site.helm("install", *INTO, "--create-namespace", "--wait", values=QUICK | dict(more or {}))
    wait_available(site.admin)


def test_certificate_and_ca_are_replaced_without_a_failed_request(site: Site) -> None:
    """Each step is a Job of the chart's, with its rights alone."""
    since = audited(site)
    installed(site)
    ensure_namespace(site.admin, "used")
    workload(site, "used", 2)
    site.load.set("used", 100, expected=2)
    pods = everywhere(site, "used", 2)
    first, authority, (bundle, *others) = kept(site)
    assert [bundle] * len(others) == others
    assert bundle == authority["ca.crt"] == first["ca.crt"]
    controller = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    groups = ("system:serviceaccounts", "system:authenticated")
    clients: dict[str, Asker] = {
        "hpa": Complete(site.plane.client(controller, *groups), "used", pods),
        "another": Complete(site.plane.client(controller, *groups), "used", pods),
        "new connections": Handshakes(site),
    }
    with Traffic(clients) as traffic:
        traffic.wait_more(5)
        assert maintain(site) == "", "all is well"

        annotate(site, CERTIFICATE, RENEW, "now")
        assert "certificate issued" in maintain(site)
        second = data(site, CERTIFICATE)
        assert second["tls.crt"] != first["tls.crt"]
        assert set(bundles(site)) == {bundle}
        wait_served(site)
        traffic.wait_more(5)

        annotate(site, AUTHORITY, RENEW, "now")
        assert "the new CA must reach every API server" in maintain(site)
        both = data(site, AUTHORITY)["ca.crt"]
        assert both.endswith(bundle)
        assert set(bundles(site)) == {both}
        assert data(site, CERTIFICATE)["tls.crt"] == second["tls.crt"]
        traffic.wait_more(10)

        an_hour_passes(site, AUTHORITY, PUBLISHED)
        assert "the new certificate must reach every pod" in maintain(site)
        wait_served(site)
        assert set(bundles(site)) == {both}
        traffic.wait_more(10)

        an_hour_passes(site, CERTIFICATE, ISSUED)
        assert "CAs trusted" in maintain(site)
        new = both.removesuffix(bundle)
        assert set(bundles(site)) == {new}
        assert data(site, CERTIFICATE)["ca.crt"] == new
        traffic.wait_more(10)
        assert maintain(site) == ""
    assert not traffic.failed()
    assert refusals(site, since) == []
    name = f"{SERVICE}-certificates"
    roles = [one(render(), kind, name) for kind in ("Role", "ClusterRole")]
    rights = {row.right for row in asked(site.plane.audit, f"{ACCOUNTS}:{name}")}
    assert rights == granted(roles), "it has what it uses, and nothing more"


def test_applying_the_manifests_again_keeps_the_certificate(site: Site) -> None:
    """Helm's upgrade and rollback, and `helm template` handed to `kubectl apply`."""
    installed(site)
    before = kept(site)
    more = {"podDisruptionBudget": {"maxUnavailable": 2}}
    site.helm("upgrade", *INTO, values=QUICK | more)
    wait_jobs(site)
    assert kept(site) == before
    site.helm("rollback", SERVICE, f"--namespace={NAMESPACE}")
    wait_jobs(site)
    assert kept(site) == before
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": render(QUICK)})
    for how in ((), ("--server-side", "--force-conflicts")):
        site.kubectl("apply", "--filename=-", *how, content=manifests)
        wait_jobs(site)
        assert kept(site) == before


def test_applied_manifests_make_a_working_installation(site: Site) -> None:
    """As Argo CD, Flux's kustomizations and people do: no Helm in sight, and no hook."""
    ensure_namespace(site.admin, NAMESPACE)
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": render(QUICK)})
    site.kubectl("apply", "--filename=-", content=manifests)
    wait_available(site.admin)
    before = kept(site)
    assert all(before[2])
    site.kubectl("apply", "--filename=-", content=manifests)
    assert kept(site) == before
    site.kubectl("delete", "--filename=-", content=manifests)
    assert not apiservices(site).keys() & set(NAMES)


def test_objects_of_other_owners_are_neither_written_nor_deleted(site: Site) -> None:
    """After a takeover, the CronJob reports it, an uninstall stops, and the named fix works."""
    external = "v1beta1.external.metrics.k8s.io"
    installed(site, {"externalMetrics": {"enabled": True}})
    service = {"service": {"namespace": "keda", "name": "keda"}, "caBundle": None}
    site.admin.patch(path_of(external), {"spec": service})
    try:
        theirs = site.admin.get(path_of(external))["spec"]
        annotate(site, AUTHORITY, RENEW, "now")
        assert f"{external} (keda/keda) belongs to somebody else" in maintain(site, "failed")
        assert len(set(bundles(site))) == 1
        assert site.admin.get(path_of(external))["spec"] == theirs
        leave(site, external)
        assert site.admin.get(path_of(external))["spec"] == theirs
    finally:
        site.admin.delete(path_of(external))


def leave(site: Site, external: str) -> None:
    uninstall = ("uninstall", SERVICE, f"--namespace={NAMESPACE}")
    refused = site.helm(*uninstall, check=False)
    assert refused.returncode != 0
    assert apiservices(site).keys() >= {external, *NAMES}, "nothing was deleted"
    hook = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{SERVICE}-unregister"
    assert site.admin.get(hook)["status"].get("failed"), "it is kept, for its log"
    (log, *_) = [pod.log.read_text() for pod in site.pods("app.kubernetes.io/component=unregister")]
    assert f"{external} belongs to keda/keda now" in log
    site.helm("rollback", SERVICE, "1", f"--namespace={NAMESPACE}")
    lost = site.helm("upgrade", *INTO, values=QUICK, check=False)
    assert f"{external} belongs to Service keda/keda now, and Helm would delete it" in lost.stderr
    site.kubectl("annotate", "apiservice", external, "helm.sh/resource-policy=keep")
    site.helm("upgrade", *INTO, values=QUICK)
    site.helm(*uninstall)
    assert not apiservices(site).keys() & set(NAMES)
