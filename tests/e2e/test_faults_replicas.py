"""One of the two replicas of an installation fails, under a steady load of HPA-like requests."""

from __future__ import annotations

import base64
import signal
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import Any, NamedTuple

import pytest

from adapter.tools.maintain.objects import ISSUED, PUBLISHED
from tests.e2e import chart
from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace
from tests.e2e.cluster import DEPLOYMENTS, PODS, RefusedError
from tests.e2e.installation import Complete, an_hour_passes, everywhere, workload
from tests.e2e.podrunner import PodRunner
from tests.e2e.process import wait_until
from tests.e2e.site import IMAGE, Site
from tests.e2e.stage import autoscaler
from tests.e2e.traffic import Answer, Traffic, controller, hpa
from tests.e2e.truth import Truth

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SPACE = "replicas"
SERVE = f"app.kubernetes.io/name={SERVICE}"
LIMIT = 30
QUICK: dict[str, Any] = {
    "image": {"repository": IMAGE},
    "config": {
        "source": {"scrape": {"interval": "1s"}},
        "values": {"window": "5s", "collect_interval": "1s", "age_limit": f"{LIMIT}s"},
    },
    # Only when the tests say so.
    "certificate": {"selfSigned": {"schedule": "0 0 29 2 *"}},
}
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


class Seen(NamedTuple):
    """What came of it."""

    during: dict[str, list[Answer]]
    """Fault -> the answers to requests from when it began until both replicas were ready."""
    wrong: dict[str, int]
    replicas: int
    generation: int


@pytest.fixture(scope="module")
def seen(running_site: Site) -> Iterator[Seen]:
    site, truth, namespace = running_site, Truth(LIMIT), f"--namespace={NAMESPACE}"
    with ExitStack() as stack:
        stack.callback(setattr, site.load, "used", site.load.used)
        site.load.used = truth.used
        stack.callback(site.clear)
        into = (SERVICE, chart.FOLDER, namespace, "--create-namespace", "--wait")
        site.helm("install", *into, values=QUICK)
        ensure_namespace(site.admin, SPACE)
        site.load.set(SPACE, 120, expected=2)
        workload(site, SPACE, 2)
        everywhere(site, SPACE, 2)
        site.admin.create(autoscaler(SPACE))
        clients = {f"client {n}": controller(site.plane, SPACE, truth) for n in range(2)}
        during: dict[str, list[Answer]] = {}
        with Traffic(clients) as traffic:
            traffic.wait_pods(2)
            for name, act in ACTS.items():
                begun = time.monotonic()
                act(site, traffic)
                wait_until(lambda: len(ready(site)) == 2, f"{name}: two replicas are ready", 300)
                ended = time.monotonic()
                traffic.wait_pods(2)
                traffic.wait_more()
                rows = [row for client in traffic.clients.values() for row in client.answers]
                during[name] = [row for row in rows if begun <= row.begun <= ended]
        target = site.admin.get(f"{DEPLOYMENTS.format(ns=SPACE)}/inference")
        spec, meta = target["spec"], target["metadata"]
        yield Seen(during, dict(traffic.wrong()), spec["replicas"], meta["generation"])


def ready(site: Site) -> list[PodRunner]:
    """The replicas that answer, oldest first."""
    return [pod for pod in site.pods(SERVE) if pod.life.ready and not pod.ending]


def evict(site: Site, traffic: Traffic) -> None:
    """As ``kubectl drain`` does; the PodDisruptionBudget has a word in it."""
    gone = ready(site)[0]
    meta = {"name": gone.name, "namespace": NAMESPACE}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    path = f"{PODS.format(ns=NAMESPACE)}/{gone.name}/eviction"

    def evicted() -> bool:
        try:
            site.admin.request("POST", path, body)
        except RefusedError as error:
            # Not counted yet: `kubectl drain` asks again too.
            if error.code != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False
        return True

    wait_until(evicted, "the eviction is allowed", every=1)
    wait_until(lambda: gone.ended, "the evicted pod is gone")


def kill(site: Site, traffic: Traffic) -> None:
    """As the kernel does when memory runs out."""
    victim = ready(site)[0]
    before = victim.life.restarts
    victim.kill(signal.SIGKILL)
    wait_until(lambda: victim.life.restarts > before, "its container was started again")
    wait_until(lambda: victim.life.ready, "it is ready again", 300)


def freeze(site: Site, traffic: Traffic) -> None:
    """As on a node that does nothing any more: for others once its probes have failed."""
    names = everywhere(site, SPACE, 2)
    victim = ready(site)[0]
    victim.kill(signal.SIGSTOP)
    wait_until(lambda: not victim.life.ready, "its readiness probe fails")
    wait_until(lambda: len(addresses(site)) == 1, "its address is withdrawn")
    with Traffic({f"late {n}": Complete(hpa(site.plane), SPACE, names) for n in range(3)}) as late:
        clients = late.clients.values()
        # One may have been sent to it still.
        wait_until(
            lambda: sum(len(client.answers) for client in clients) > 15, "others are answered"
        )
        victim.kill(signal.SIGCONT)
    assert not late.failed()
    wait_until(lambda: victim.life.ready, "it is ready again", 300)


def addresses(site: Site) -> list[str]:
    """Where the API server sends requests."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    which = f"?labelSelector=kubernetes.io%2Fservice-name%3D{SERVICE}"
    return [
        address
        for row in site.admin.get(path + which)["items"]
        for endpoint in row["endpoints"] or ()
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    ]


def roll(site: Site, traffic: Traffic) -> None:
    """As ``helm upgrade`` does: every replica is replaced, one after another."""
    before = {pod.name for pod in ready(site)}
    where = f"--namespace={NAMESPACE}"
    site.kubectl("rollout", "restart", f"deployment/{SERVICE}", where)
    site.kubectl("rollout", "status", f"deployment/{SERVICE}", where, "--timeout=300s")
    wait_until(lambda: not before & {pod.name for pod in site.pods(SERVE)}, "the former are gone")
    traffic.wait_more()


def renew(site: Site, traffic: Traffic) -> None:
    """As an operator does who does not wait for the CronJob's own time."""
    _rotate(site, "certificate")
    traffic.wait_more()


def replace(site: Site, traffic: Traffic) -> None:
    """The CA, in the three runs that it takes, an hour after each other."""
    _rotate(site, "ca")
    notes = ((f"{SERVICE}-ca", PUBLISHED), (f"{SERVICE}-certificate", ISSUED))
    for number, (secret, note) in enumerate(notes):
        traffic.wait_more(10)
        an_hour_passes(site, f"{SECRETS}/{secret}", note)
        _run(site, f"ca-{number}")
    traffic.wait_more(10)


def _rotate(site: Site, what: str) -> None:
    """Ask for another, run the job, and wait until both replicas serve what it made."""
    where = f"--namespace={NAMESPACE}"
    annotation = "gpu-metrics-adapter.io/renew=now"
    site.kubectl("annotate", "secret", f"{SERVICE}-{what}", annotation, where)
    _run(site, what)


def _run(site: Site, name: str) -> None:
    job, where = f"now-{name}", f"--namespace={NAMESPACE}"
    site.kubectl("create", "job", f"--from=cronjob/{SERVICE}-certificates", job, where)
    site.kubectl("wait", "--for=condition=complete", f"job/{job}", where, "--timeout=300s")
    secret = site.admin.get(f"{SECRETS}/{SERVICE}-certificate")
    wanted = base64.b64decode(secret["data"]["tls.crt"]).decode()

    def look() -> bool:
        shown = [served(pod) for pod in ready(site)]
        return len(shown) == 2 and all(pem and pem in wanted for pem in shown)

    wait_until(look, f"{name}: both serve it", 300)


def served(pod: PodRunner) -> str:
    """The certificate that a replica shows; nothing while it shows none."""
    with suppress(OSError):
        return ssl.get_server_certificate((pod.address, 6443), timeout=30)
    return ""


ACTS = {
    "is-evicted": evict,
    "is-rolled": roll,
    "is-killed": kill,
    "stands-still": freeze,
    "gets-another-certificate": renew,
    "gets-another-ca": replace,
}
FAILS = {"is-killed": "503"}
"""Acceptable answers to requests that the API server sends before the address is withdrawn."""


@pytest.mark.parametrize("fault", ACTS)
def test_a_replica(seen: Seen, fault: str) -> None:
    """The other answers, with every pod's value, or both do."""
    answers = seen.during[fault]
    assert answers
    failures = {answer.failure for answer in answers if answer.failure}
    allowed = FAILS.get(fault)
    assert [text for text in failures if allowed is None or not text.startswith(allowed)] == []
    assert [answer for answer in answers if not answer.failure and len(answer.pods) != 2] == []


def test_no_client_got_a_wrong_value_and_nothing_was_scaled(seen: Seen) -> None:
    assert not seen.wrong
    assert (seen.replicas, seen.generation) == (2, 1)
