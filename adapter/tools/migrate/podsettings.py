"""The pods of prometheus-adapter as settings of this adapter: arguments, files and fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from adapter.tools.client.access import Json
from adapter.tools.migrate.arguments import CA_FILE, OWN_ACCOUNT, Taken, translate_flags
from adapter.tools.migrate.peerpods import PeerPods, is_below, part, rows

REPLICAS: Final = 2
"""Replicas of this chart."""
RESERVED: Final = frozenset({"config", "certificate", "prometheus-adapter-rules", "tmp"})
"""Volumes of this chart's pods."""
_RIGHTS: Final = (
    "the account of this adapter needs the rights at Prometheus that prometheus-adapter's account "
    "has"
)
_SAME: Final = ("nodeSelector", "tolerations", "priorityClassName", "dnsConfig")
"""Fields of a pod that are values of this chart too."""
_DNS_POLICIES: Final = ("", "ClusterFirst", "ClusterFirstWithHostNet")
"""Those that this chart sets itself."""
_PROXIES: Final = frozenset({"http_proxy", "https_proxy"})
_OF_GO: Final = frozenset({"GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "GOTRACEBACK"})
"""Variables of the runtime of Go."""
_SPREAD: Final = "not needed: this chart spreads its pods over nodes and zones"


def translate_pods(pods: PeerPods) -> list[Taken]:
    """Return what becomes of everything in a Deployment that this adapter may need too."""
    flags = [_with_mount(row, pods) for row in translate_flags(pods.flags)]
    env = [_with_mount(row, pods) for row in _environment(pods, flags)]
    return [*flags, *env, *_mounts(pods, [*flags, *env]), *_fields(pods)]


def _with_mount(row: Taken, pods: PeerPods) -> Taken:
    """Return what becomes of an argument, with the volume that has its file."""
    if not row.file:
        return row
    mount = pods.mount_of(row.file)
    if mount is None:
        return _of_own_account(row)
    name = str(mount.get("name"))
    volume = _without_defaults(pods.volumes.get(name) or {})
    objects = _objects(volume)
    if objects is None:
        return row._replace(effect=f"{row.effect}: mount the same file into the pods", todo=True)
    copied = f"copy {', '.join(objects)} to the namespace of this adapter"
    name = f"{name}-of-prometheus-adapter" if name in RESERVED else name
    return row._replace(
        effect=f"{row.effect}: {copied if objects else _RIGHTS}",
        todo=True,
        values={
            "extraVolumes": [{**volume, "name": name}],
            "extraVolumeMounts": [{**mount, "name": name}],
        },
    )


def _of_own_account(row: Taken) -> Taken:
    path = row.file if row.file.startswith("/var/") else f"/var{row.file}"
    if not is_below(path, OWN_ACCOUNT):
        return row._replace(effect=f"{row.effect}: mount the same file into the pods", todo=True)
    if path == f"{OWN_ACCOUNT}/token":
        return row._replace(effect=f"{row.effect}: {_RIGHTS}", todo=True)
    return row


def _without_defaults(volume: Json) -> Json:
    """Return a volume without the mode that the API server sets if none is given."""
    return {
        key: {name: field for name, field in value.items() if (name, field) != ("defaultMode", 420)}
        if isinstance(value, dict)
        else value
        for key, value in volume.items()
    }


def _objects(volume: Json) -> list[str] | None:
    """Return the objects of its namespace that a volume needs; None if it cannot move."""
    sources = rows(part(volume, "projected"), "sources") if "projected" in volume else [volume]
    objects = []
    for source in sources:
        if part(source, "configMap").get("name"):
            objects.append(f"ConfigMap {source['configMap']['name']}")
        elif name := part(source, "secret").get("secretName") or part(source, "secret").get("name"):
            objects.append(f"Secret {name}")
        elif not source.keys() & {"serviceAccountToken", "clusterTrustBundle"}:
            return None
    return objects


def _environment(pods: PeerPods, flags: list[Taken]) -> Iterator[Taken]:
    has_ca = any("source.prometheus.ca_file" in row.settings for row in flags)
    for name, value in pods.env.items():
        argument = f"env {name}"
        if name in pods.used:
            continue
        if name == "SSL_CERT_FILE" and value and not has_ca:
            yield CA_FILE(argument, value)
        elif name.lower() in _PROXIES:
            yield Taken(argument, "no counterpart: Prometheus is asked without a proxy", todo=True)
        elif name.lower() == "no_proxy" or name in _OF_GO or name == "SSL_CERT_FILE":
            yield Taken(argument, "not needed")
        else:
            yield Taken(argument, "not known to this command", todo=True)
    if pods.container.get("envFrom"):
        yield Taken("envFrom", "not known to this command", todo=True)


def _mounts(pods: PeerPods, taken: list[Taken]) -> Iterator[Taken]:
    """Yield the volumes that no argument names, such as the system's CAs."""
    paths = [value for _, value in pods.flags] + [row.file for row in taken if row.file]
    for mount in pods.mounts:
        folder = str(mount["mountPath"])
        volume = pods.volumes.get(str(mount.get("name"))) or {}
        if "emptyDir" in volume or any(is_below(path, folder) for path in paths if path):
            continue
        effect = "if it has the CA of Prometheus, set source.prometheus.ca_file, extraVolumes and "
        yield Taken(f"volumeMounts {folder}", f"{effect}extraVolumeMounts", todo=True)


def _fields(pods: PeerPods) -> Iterator[Taken]:
    """Yield what becomes of the fields of the Deployment and its pods."""
    spec = pods.spec
    if pods.replicas > REPLICAS:
        yield _same("replicas", pods.replicas)
    if spec.get("hostNetwork"):
        effect = "hostNetwork: the nodes' firewall must admit kube-apiserver to hostNetwork.port"
        values = {"hostNetwork": {"enabled": True}}
        yield Taken("hostNetwork", effect, todo=True, values=values)
    if (spec.get("dnsPolicy") or "") not in _DNS_POLICIES:
        yield _same("dnsPolicy", spec["dnsPolicy"])
    yield from (_same(name, spec[name]) for name in _SAME if spec.get(name))
    if spec.get("hostAliases"):
        yield Taken("hostAliases", "no counterpart: this chart adds no names of hosts", todo=True)
    if rows(spec, "initContainers"):
        yield Taken("initContainers", "initContainers, if Prometheus needs them", todo=True)
    if len(rows(spec, "containers")) > 1:
        yield Taken("containers", "sidecars, if Prometheus needs them", todo=True)
    yield from _placement(spec)


def _placement(spec: Json) -> Iterator[Taken]:
    """Yield what becomes of the fields that name labels of pods."""
    affinity = part(spec, "affinity")
    if part(affinity, "nodeAffinity"):
        yield _same("affinity", {"nodeAffinity": affinity["nodeAffinity"]})
    if part(affinity, "podAffinity"):
        yield Taken("podAffinity", "affinity, with the labels of the pods of this chart", todo=True)
    if part(affinity, "podAntiAffinity"):
        yield Taken("podAntiAffinity", _SPREAD)
    if spec.get("topologySpreadConstraints"):
        yield Taken("topologySpreadConstraints", _SPREAD)


def _same(name: str, value: Any) -> Taken:
    return Taken(name, name, values={name: value})
