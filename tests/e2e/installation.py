"""An installation of the chart, its users, and requests to it."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx

from tests.e2e import programs
from tests.e2e.cluster import Cluster, Object, RefusedError
from tests.e2e.process import wait_until
from tests.e2e.site import POOL, Site
from tests.e2e.stage import deployment
from tests.e2e.traffic import Answer, Calls

README = programs.ROOT / "README.md"
METRIC = "gpu_utilization"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def block(language: str, words: str, page: Path = README) -> str:
    """Return the only fenced block of a page that contains these words."""
    blocks = [text for kind, text in _BLOCK.findall(page.read_text()) if kind == language]
    (one,) = (text for text in blocks if words in text)
    return str(one)


def values(site: Site, namespace: str, metric: str = METRIC) -> dict[str, str]:
    """Request values through the API server: pod name -> quantity."""
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/%2A/{metric}"
    try:
        items = site.admin.get(path)["items"]
    except RefusedError as error:
        if error.code in (404, 503):
            return {}
        raise
    except httpx.TransportError:
        return {}
    return {item["describedObject"]["name"]: item["value"] for item in items}


def everywhere(site: Site, namespace: str, count: int) -> frozenset[str]:
    """Wait until every replica has the values of ``count`` pods; return the pods.

    The API server uses any replica, so that one answer does not describe the others.
    """

    def look() -> frozenset[str]:
        first = frozenset(values(site, namespace))
        agreed = len(first) == count and all(
            frozenset(values(site, namespace)) == first for _ in range(20)
        )
        return first if agreed else frozenset()

    return wait_until(look, f"every replica has {count} pods of {namespace}")


def annotate(site: Site, path: str, key: str, text: str) -> None:
    """Set an annotation of the object at a path."""
    site.admin.patch(path, {"metadata": {"annotations": {key: text}}})


def an_hour_passes(site: Site, path: str, key: str) -> None:
    """Make a change that a rotation has noted an hour old."""
    mark, _ = site.admin.get(path)["metadata"]["annotations"][key].split()
    before = datetime.fromtimestamp(int(time.time()) - 3600, UTC).isoformat()
    annotate(site, path, key, f"{mark} {before}")


def workload(site: Site, namespace: str, replicas: int, name: str = "inference") -> None:
    """Create a Deployment whose pods hold a GPU each; the namespace exists."""
    made: Object = deployment(namespace, replicas)
    made["metadata"]["name"] = name
    made["spec"]["template"]["spec"]["nodeSelector"] = {"agentpool": POOL}
    site.admin.create(made)


class Complete:
    """Requests the utilisation of every pod, like the HPA controller.

    Args:
        cluster: the target of the requests; closed with this object.
        pods: pods whose values must be in every answer.
    """

    def __init__(self, cluster: Cluster, namespace: str, pods: frozenset[str]) -> None:
        self._cluster = cluster
        self._path = (
            f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/%2A/{METRIC}"
            "?labelSelector=app%3Dinference"
        )
        self._pods = pods

    def ask(self) -> Answer:
        """See :class:`tests.e2e.traffic.Asker`."""
        begun = time.monotonic()
        try:
            items = self._cluster.get(self._path)["items"]
        except (RefusedError, httpx.TransportError) as error:
            return Answer(begun, f"{type(error).__name__}: {error}"[:300])
        pods = frozenset(item["describedObject"]["name"] for item in items)
        lacking = sorted(self._pods - pods)
        return Answer(begun, f"no value for {lacking}" if lacking else "", pods)

    def close(self) -> None:
        """See :class:`tests.e2e.traffic.Asker`."""
        self._cluster.close()


def audited(site: Site) -> int:
    """Return the current position in the audit log."""
    return site.plane.audit.stat().st_size


def refusals(site: Site, since: int) -> list[str]:
    """Return the rejected requests of the running pods or their accounts.

    Args:
        since: see :func:`audited`. Pods run briefly without permissions during an uninstall.
    """
    lines = site.plane.audit.read_bytes()[since:].splitlines(keepends=True)
    # The last line may be incomplete.
    rows = [json.loads(line) for line in lines if line.endswith(b"\n")]
    refused = {401, 403}
    rejected = [
        f"{row['user']['username']}: {row['verb']} {row['requestURI']}"
        for row in rows
        if row.get("responseStatus", {}).get("code") in refused
    ]
    log_lines = [line for pod in site.pods() for line in pod.log.read_text().splitlines()]
    return rejected + [line for line in log_lines if "forbidden" in line.lower()]


def apiservices(site: Site) -> dict[str, str]:
    """Return the APIServices that point to a Service: name -> ``namespace/name`` of it."""
    rows = site.admin.get("/apis/apiregistration.k8s.io/v1/apiservices")["items"]
    return {
        row["metadata"]["name"]: f"{service['namespace']}/{service['name']}"
        for row in rows
        if (service := row["spec"].get("service"))
    }


def wait_keda(address: str, port: int = 6000, namespace: str = "used") -> None:
    """Wait until a pod of `serve` answers KEDA with the sum over pods of 80 % each."""
    calls = Calls(f"{address}:{port}", namespace, [80.0])

    def right() -> bool:
        answer = calls.ask()
        return bool(answer.pods) and not answer.wrong

    wait_until(right, f"{address} answers KEDA")
    calls.close()
