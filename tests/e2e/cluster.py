"""A small client of the API server."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx

from tests.e2e.certificates import KeyPair
from tests.e2e.process import FailedError, wait_until

Object = dict[str, Any]

_RESOURCES = {
    "APIService": "apiservices",
    "Certificate": "certificates",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "CronJob": "cronjobs",
    "CustomResourceDefinition": "customresourcedefinitions",
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "Event": "events",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "Issuer": "issuers",
    "Job": "jobs",
    "Lease": "leases",
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies",
    "Node": "nodes",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PodTemplate": "podtemplates",
    "PriorityClass": "priorityclasses",
    "PrometheusRule": "prometheusrules",
    "ResourceQuota": "resourcequotas",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ScaledObject": "scaledobjects",
    "Secret": "secrets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ServiceMonitor": "servicemonitors",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
HPAS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
PODS = "/api/v1/namespaces/{ns}/pods"


class RefusedError(AssertionError):
    """The API server answered with a Status error."""

    def __init__(self, response: httpx.Response) -> None:
        self.code = response.status_code
        self.text = response.text
        request = response.request
        super().__init__(f"{request.method} {request.url.path}: {self.code} {self.text[:1000]}")


class Cluster:
    """Sends requests as one user. Thread-safe."""

    def __init__(
        self,
        url: str,
        ca: str,
        *,
        pair: KeyPair | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        context = ssl.create_default_context(cafile=ca)
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        self.url = url
        self.client = httpx.Client(
            base_url=url,
            verify=context,
            headers=dict(headers or {}) | ({"Authorization": f"Bearer {token}"} if token else {}),
            timeout=120,  # a busy machine answers late: only a hang fails
            trust_env=False,
            limits=httpx.Limits(max_connections=100),
        )
        # A test may drop it: an open connection would fail the test that runs when it is collected.
        weakref.finalize(self, self.client.close)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request and return the answer's JSON, or its text.

        Raises:
            RefusedError: the status is 400 or more.
        """
        content = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if body is not None else {}
        response = self.client.request(method, path, content=content, headers=kind | headers)
        if response.status_code >= 400:
            raise RefusedError(response)
        # The root of OpenAPI v3 is JSON that calls itself text/plain.
        if response.content.startswith(b"{"):
            return response.json()
        return response.text

    def get(self, path: str) -> Any:
        """GET."""
        return self.request("GET", path)

    def create(self, obj: Object) -> Object:
        """POST an object to the path of its kind, version and namespace."""
        created: Object = self.request("POST", collection(obj), obj)
        return created

    def delete(self, path: str, grace: int = 0) -> None:
        """DELETE. A missing object is not an error."""
        with contextlib.suppress(RefusedError):
            self.request(
                "DELETE",
                path,
                {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace},
            )

    def patch(self, path: str, body: Object) -> Object:
        """PATCH, as a JSON merge patch."""
        patched: Object = self.request(
            "PATCH", path, body, **{"Content-Type": "application/merge-patch+json"}
        )
        return patched

    def token(self, namespace: str, account: str, *audiences: str) -> str:
        """Request a token of a ServiceAccount (TokenRequest API), by default for the API
        server."""
        spec = {"audiences": list(audiences)} if audiences else {}
        answer = self.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        return str(answer["status"]["token"])

    def wait(
        self, path: str, check: Callable[[Object], bool], what: str, seconds: float = 120.0
    ) -> Object:
        """Poll an object until ``check`` is true, and return it."""

        last: list[Object | str] = [""]

        def look() -> Object | None:
            try:
                obj: Object = self.get(path)
            except (RefusedError, httpx.TransportError) as error:
                last[0] = str(error)
                return None
            last[0] = obj.get("status", obj)
            return obj if check(obj) else None

        try:
            return wait_until(look, what, seconds, every=0.2)
        except FailedError as error:
            raise FailedError(f"{error}; last seen: {json.dumps(last[0])[:3000]}") from None


def collection(obj: Object) -> str:
    """Return the path that an object is created at."""
    version = obj["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = obj["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{_RESOURCES[obj['kind']]}"


def condition(obj: Object, kind: str) -> tuple[str, str]:
    """Return (status, reason) of a condition, or two empty strings."""
    for row in obj.get("status", {}).get("conditions") or ():
        if row["type"] == kind:
            return row["status"], row.get("reason", "")
    return "", ""


class Watch:
    """The live state of a collection. A thread lists and watches it."""

    def __init__(
        self, cluster: Cluster, path: str, on_change: Callable[[str, Object], None]
    ) -> None:
        self._cluster = cluster
        self._path = path
        self._on_change = on_change
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the watch and wait for its thread."""
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        version = ""
        while not self._ended.is_set():
            try:
                if not version:
                    version = self._list()
                version = self._follow(version)
            except (httpx.HTTPError, RefusedError, ssl.SSLError):
                version = ""
                self._ended.wait(0.2)

    def _list(self) -> str:
        answer = self._cluster.get(self._path)
        for item in answer["items"]:
            self._on_change("ADDED", item)
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> str:
        # A short server-side timeout is what makes stop() quick: an idle watch has no lines.
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "2"}
        with self._cluster.client.stream("GET", self._path, params=query) as response:
            if response.status_code != 200:
                response.read()
                raise RefusedError(response)
            for event in _lines(response):
                if event["type"] == "ERROR":
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                self._on_change(event["type"], event["object"])
                if self._ended.is_set():
                    break
        return version


def _lines(response: httpx.Response) -> Iterator[Object]:
    for line in response.iter_lines():
        if line:
            yield json.loads(line)
