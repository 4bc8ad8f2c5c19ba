"""What a pod of the site is: as its spec has it, or what is tested there would not be the chart."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.e2e import podusers
from tests.e2e.cluster import PODS, Object
from tests.e2e.podrunner import PodRunner
from tests.e2e.process import wait_until
from tests.e2e.site import IMAGE, Site

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

REPORT = """
import json, os, pathlib, signal, sys
def refused(act):
    try: act()
    except OSError as error: return error.strerror
status = dict(row.split(":", 1) for row in open("/proc/self/status").read().splitlines())
tmp = pathlib.Path("/tmp/mine")
tmp.write_text("x")
print(json.dumps({
    "ids": [os.getpid(), os.getuid(), os.getgid()],
    "capabilities": status["CapBnd"].strip(" \\t0"),
    "privileges": status["NoNewPrivs"].strip(),
    "root": refused(lambda: open("/mine", "w")),
    "others": [name for name in os.listdir("/proc") if name.isdigit()],
    "secret": oct(os.stat("/etc/secret/key").st_mode)[-3:] + open("/etc/secret/key").read(),
    "secrets": refused(lambda: open("/etc/secret/new", "w")),
    "token": open("/var/run/secrets/kubernetes.io/serviceaccount/token").read(),
    "environment": [os.environ["NAME"], os.environ["TWICE"], *sys.argv[1:]],
}), flush=True)
signal.pause()
"""
WAIT = """
import signal
def end(*_):
    print("ended", flush=True)
    raise SystemExit(3)
signal.signal(signal.SIGTERM, end)
print("begun", flush=True)
while True:
    signal.pause()
"""
SERVE = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000)"


def pod(name: str, script: str, **more: Any) -> Object:
    """A pod of our image that runs a script instead, as the chart's own pods run."""
    locked = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    container = {
        "name": "main",
        "image": f"{IMAGE}:test",
        "command": ["python", "-c", script],
        "securityContext": locked,
        **more.pop("container", {}),
    }
    users = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
    meta = {"name": name, "namespace": "default", "labels": {"app": name}}
    spec = {"securityContext": users, "containers": [container], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def running(site: Site, name: str, ready: bool = True) -> PodRunner:
    """The pod of this name, once it runs."""

    def look() -> PodRunner | None:
        runners = [runner for runner in site.pods() if runner.name == name and runner.life.running]
        return runners[0] if runners and runners[0].life.ready == ready else None

    return wait_until(look, f"{name} runs")


def test_a_pod_has_the_user_and_the_files_of_its_spec(site: Site) -> None:
    meta = {"name": "mine", "namespace": "default"}
    site.admin.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"key": "s"}}
    )
    volumes = [
        {"name": "secret", "secret": {"secretName": "mine", "defaultMode": 0o440}},
        {"name": "tmp", "emptyDir": {}},
    ]
    container = {
        "args": ["$(NAME)", "$(NOBODY)"],
        "env": [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "TWICE", "value": "$(NAME)$(NAME)"},
        ],
        "volumeMounts": [
            {"name": "secret", "mountPath": "/etc/secret", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    site.admin.create(pod("report", REPORT, container=container, volumes=volumes))
    runner = running(site, "report")
    seen = json.loads(wait_until(runner.log.read_text, "it has reported"))
    token = seen.pop("token")
    assert seen == {
        "ids": [1, 65532, 65532],
        "capabilities": "" if podusers.many() else seen["capabilities"],
        "privileges": "1",
        "root": "Read-only file system",
        "others": ["1"],
        "secret": "440s",
        "secrets": "Read-only file system",
        "environment": ["report", "reportreport", "report", "$(NOBODY)"],
    }
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    asked = review | {"spec": {"token": token}}
    user = site.admin.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", asked)
    assert user["status"]["user"]["username"] == "system:serviceaccount:default:default"


def test_a_pod_is_restarted_and_stopped_gracefully(site: Site) -> None:
    """SIGTERM first; what is killed comes back."""
    site.admin.create(pod("twice", WAIT))
    runner = running(site, "twice")
    wait_until(runner.log.read_text, "it has begun")
    runner.kill(signal.SIGKILL)
    wait_until(lambda: runner.log.read_text() == "begun\nbegun\n", "it has begun twice")
    status = site.admin.wait(
        f"{PODS.format(ns='default')}/twice",
        lambda obj: obj["status"]["containerStatuses"][0]["restartCount"] == 1,
        "it was started again once",
    )
    assert status["status"]["phase"] == "Running"
    site.kubectl("delete", "pod", "twice", "--grace-period=120", "--timeout=120s")
    assert runner.log.read_text() == "begun\nbegun\nended\n"


def test_a_job_ends_with_its_pods(site: Site) -> None:
    rows = {"well": ("print('done')", "succeeded"), "badly": ("raise SystemExit(4)", "failed")}
    for name, (script, _) in rows.items():
        spec = pod(name, script, restartPolicy="Never")["spec"]
        meta = {"name": name, "namespace": "default"}
        template = {"backoffLimit": 0, "template": {"spec": spec}}
        site.admin.create(
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": template}
        )
    for name, (_, field) in rows.items():
        wait_job(site, name, field)


def wait_job(site: Site, name: str, field: str) -> None:
    """Wait until this field of the Job's status is 1."""
    path = f"/apis/batch/v1/namespaces/default/jobs/{name}"
    site.admin.wait(path, lambda obj: obj["status"].get(field) == 1, f"{name}: {field}")


def test_only_a_ready_pod_is_an_endpoint(site: Site) -> None:
    """Its probe asks it at its own address, and goes on doing so."""
    probe = {
        "httpGet": {"path": "/ready", "port": "http"},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    container = {
        "workingDir": "/srv",
        "ports": [{"name": "http", "containerPort": 8000}],
        "readinessProbe": probe,
        "volumeMounts": [{"name": "files", "mountPath": "/srv", "readOnly": True}],
    }
    meta = {"name": "pages", "namespace": "default"}
    pages: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    site.admin.create(pages)
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}
    site.admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service})
    volumes = [{"name": "files", "configMap": {"name": "pages"}}]
    site.admin.create(pod("web", SERVE, container=container, volumes=volumes))
    runner = running(site, "web", ready=False)
    assert endpoints(site) <= {(runner.address, False)}
    path = "/api/v1/namespaces/default/configmaps/pages"
    site.admin.patch(path, {"data": {"ready": "yes"}})
    wait_until(lambda: endpoints(site) == {(runner.address, True)}, "it is an endpoint")
    site.admin.patch(path, {"data": {"ready": None}})
    wait_until(lambda: endpoints(site) == {(runner.address, False)}, "it is none any more")


def endpoints(site: Site) -> set[tuple[str, bool]]:
    """Addresses of the Service, and whether they are ready."""
    rows = site.admin.get(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        "?labelSelector=kubernetes.io/service-name%3Dpages"
    )["items"]
    return {
        (row["addresses"][0], row["conditions"]["ready"])
        for endpoint_slice in rows
        for row in endpoint_slice["endpoints"] or ()
    }
