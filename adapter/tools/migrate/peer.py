"""prometheus-adapter in a cluster: its Deployment, configuration and APIServices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.migrate.configfile import Configuration, configuration_of_data
from adapter.tools.migrate.peerpods import PeerPods, read_pods

NAMES: Final = (
    "v1beta1.custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
    "v1beta1.external.metrics.k8s.io",
    "v1beta1.metrics.k8s.io",
)
_LABEL: Final = "app.kubernetes.io/name"


class SeenApi(NamedTuple):
    """An APIService of the metrics APIs."""

    name: str
    service: tuple[str, str]
    """Namespace and name; empty for one of the API server itself."""
    manifest: Json

    @property
    def group(self) -> str:
        """The API group."""
        return self.name.partition(".")[2]

    @property
    def owner(self) -> str:
        """``namespace/name`` of the Service."""
        return "/".join(self.service)


class PeerAdapter(NamedTuple):
    """An installation of prometheus-adapter."""

    namespace: str
    name: str
    release: str
    """The Helm release; empty if Helm did not install it."""
    pods: PeerPods
    configuration: Configuration
    apis: Sequence[SeenApi]
    """All that the cluster has, also of other servers."""
    service: tuple[str, str]
    """Its Service; empty if it is not known."""
    others: Sequence[str] = ()
    """Other Deployments of prometheus-adapter."""

    def serves(self, group: str) -> bool:
        """Return whether the cluster asks it for an API."""
        return any(api.group == group and api.service == self.service for api in self.own)

    def versions(self, group: str) -> Sequence[str]:
        """Return the versions of an API that the cluster asks it for, the newest first."""
        versions = (api.name.partition(".")[0] for api in self.own if api.group == group)
        return sorted(versions, reverse=True)

    @property
    def own(self) -> Sequence[SeenApi]:
        """The APIServices that point to it."""
        return [api for api in self.apis if self.service and api.service == self.service]


async def find_peer(api: Api, namespace: str = "") -> PeerAdapter:
    """Return the installation of prometheus-adapter; raises ClientError if there is none."""
    where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    deployments = await api.list(f"/apis/apps/v1{where}/deployments")
    rows = [(row, pods) for row in deployments if (pods := read_pods(row)) is not None]
    if not rows:
        place = f"namespace {namespace}" if namespace else "the cluster"
        raise ClientError(
            f"{place} has no Deployment of prometheus-adapter; name its configuration with -f FILE"
        )
    apis = [
        seen_api for name in NAMES if (seen_api := await _read_apiservice(api, name)) is not None
    ]
    rows.sort(key=lambda row: _place(row[0]))
    chosen, service = await _find_deployment(api, [row for row, _ in rows], apis)
    pods = next(pods for row, pods in rows if row is chosen)
    (space, name) = _place(chosen)
    configmap, key = pods.configmap()
    path = f"/api/v1/namespaces/{quote(space, safe='')}/configmaps/{quote(configmap, safe='')}"
    data: Any = (await api.get(path)).get("data") or {}
    texts = {str(k): str(v) for k, v in data.items()}
    annotations = chosen["metadata"].get("annotations") or {}
    return PeerAdapter(
        space,
        name,
        str(annotations.get("meta.helm.sh/release-name") or ""),
        pods,
        configuration_of_data(texts, f"ConfigMap {space}/{configmap}", key),
        apis,
        service,
        ["/".join(_place(row)) for row, _ in rows if row is not chosen],
    )


def _place(row: Json) -> tuple[str, str]:
    meta = row["metadata"]
    return str(meta.get("namespace") or "default"), str(meta["name"])


async def _read_apiservice(api: Api, name: str) -> SeenApi | None:
    try:
        row = await api.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")
    except ClientError as error:
        if error.status == 404 and error.reason == "NotFound":
            return None
        raise
    service = (row.get("spec") or {}).get("service") or {}
    place = (str(service["namespace"]), str(service["name"])) if service else ()
    return SeenApi(name, place, row)  # type: ignore[arg-type]  # empty without a Service


async def _find_deployment(
    api: Api, rows: Sequence[Json], apis: Sequence[SeenApi]
) -> tuple[Json, tuple[str, str]]:
    """Return the Deployment behind an APIService, and its Service; else the first Deployment."""
    for service in dict.fromkeys(seen_api.service for seen_api in apis if seen_api.service):
        namespace, name = (quote(part, safe="") for part in service)
        try:
            manifest = await api.get(f"/api/v1/namespaces/{namespace}/services/{name}")
        except ClientError as error:
            if error.status == 404:
                continue
            raise
        selector: Any = (manifest.get("spec") or {}).get("selector") or {}
        for row in rows:
            labels = (row["spec"]["template"].get("metadata") or {}).get("labels") or {}
            same_name = _place(row) == service and not selector
            chosen = bool(selector) and selector.items() <= labels.items()
            if _place(row)[0] == service[0] and (same_name or chosen):
                return row, service
    return rows[0], ()  # type: ignore[return-value]  # empty: not known
