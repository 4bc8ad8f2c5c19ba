"""Managers: what reverts a change of an object, from the object's metadata alone.

A manager writes an object again from a source of its own. A change of the object does not last:
the source has to change. The facts:

- Argo CD marks objects with the annotation ``argocd.argoproj.io/tracking-id:
  APP:GROUP/KIND:NAMESPACE/NAME`` or, before 3.0, with a label whose default name is Helm's
  ``app.kubernetes.io/instance`` (argo-cd ``docs/user-guide/resource_tracking.md``). The annotation
  names its object, because operators copy annotations to objects that Argo CD does not manage.
- Flux labels objects with ``kustomize.toolkit.fluxcd.io/name`` and ``/namespace``, or the same of
  ``helm.toolkit.fluxcd.io`` (kustomize-controller, helm-controller: ``CHANGELOG.md`` 0.9.0).
- Config Sync annotates ``configmanagement.gke.io/managed: enabled`` (GoogleContainerTools/
  kpt-config-sync), Fleet and the add-ons of k3s ``objectset.rio.cattle.io/id`` (rancher/wrangler).
- Helm sets the label ``app.kubernetes.io/managed-by: Helm`` and the annotations
  ``meta.helm.sh/release-name`` and ``release-namespace`` (helm ``pkg/action/validate.go``). ``helm
  template`` sets the label alone, if the chart does.
- Operators set a controller reference (apimachinery ``metav1.OwnerReference``): the GPU operators
  of NVIDIA (``controllers/object_controls.go``) and AMD, Intel's device plugin operator, KEDA.
- OLM labels the Deployments of operators with ``olm.owner`` (operator-lifecycle-manager
  ``pkg/lib/ownerutil``).
- The addon manager writes objects with ``addonmanager.kubernetes.io/mode: Reconcile`` again
  (kubernetes ``cluster/addons/addon-manager/README.md``); clouds mark add-ons in their own ways.
- The name of a server-side apply remains in ``managedFields``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

Metadata = Mapping[str, Any]


class Way(StrEnum):
    """Where a change lasts."""

    GIT = "git"
    """In a repository, from which a controller writes the object again."""
    VALUES = "values"
    """In the values of a Helm release: the next upgrade writes the object again."""
    OWNER = "owner"
    """In another object of the cluster, whose controller writes the object."""
    UNKNOWN = "unknown"
    """Not known: the caller may not read the object."""
    NOWHERE = "nowhere"
    """Nowhere: the provider of the cluster writes the object."""


class Manager(NamedTuple):
    """What writes an object again."""

    tool: str
    """``Argo CD``, ``Helm``, ``NVIDIA GPU Operator``."""
    way: Way
    kind: str = ""
    """Of what is changed instead: ``Application``, ``release``, ``ClusterPolicy``."""
    name: str = ""
    """Its name; empty if the object does not say it."""
    namespace: str = ""
    """Its namespace; empty for one without, or if the object does not say it."""
    api_version: str = ""
    """Of an owner: ``nvidia.com/v1``."""
    chart: str = ""
    """Name of the Helm chart that the object comes from; empty if it does not say."""
    version: str = ""
    """Of the chart."""

    @property
    def source(self) -> str:
        """What is changed instead, in words: ``Helm release dcgm in namespace gpu``."""
        if self.way in (Way.NOWHERE, Way.UNKNOWN):
            return self.tool
        words = f"{self.kind} {self.name}".strip()
        if self.way is not Way.OWNER:
            words = f"{self.tool} {words}".strip()
        return f"{words} in namespace {self.namespace}" if self.namespace else words


def manager_of(metadata: Metadata, namespace: str = "") -> Manager | None:
    """Return what writes an object again; None if its metadata names nothing.

    A controller that owns the object comes first: it reverts what anybody else writes. Then git,
    because Argo CD and Flux render Helm charts; then the cluster's provider; then Helm.

    Args:
        metadata: ``metadata`` of the object as JSON.
        namespace: of the object, if its metadata may not have it.
    """
    place = str(metadata.get("namespace") or namespace)
    return next(filter(None, (rule(metadata, place) for rule in _RULES)), None)


def field_managers(metadata: Metadata) -> frozenset[str]:
    """Return the names under which clients wrote the object's fields."""
    rows = metadata.get("managedFields") or ()
    return frozenset(str(row.get("manager")) for row in rows if isinstance(row, Mapping))


_OPERATORS: Final = {
    ("nvidia.com", "ClusterPolicy"): "NVIDIA GPU Operator",
    ("nvidia.com", "NVIDIADriver"): "NVIDIA GPU Operator",
    ("amd.com", "DeviceConfig"): "AMD GPU Operator",
    ("deviceplugin.intel.com", "GpuDevicePlugin"): "Intel Device Plugins Operator",
    ("keda.sh", "ScaledObject"): "KEDA",
    ("operators.coreos.com", "ClusterServiceVersion"): "OLM",
}
"""Group and kind of an owner -> the operator that writes its objects."""
_NAMESPACED: Final = frozenset(
    {("amd.com", "DeviceConfig"), ("keda.sh", "ScaledObject")}
    | {("operators.coreos.com", "ClusterServiceVersion")}
)
"""Of the owners above, those in the namespace of their objects."""


def _owner(metadata: Metadata, namespace: str) -> Manager | None:
    for row in metadata.get("ownerReferences") or ():
        version, kind, name = (str(row.get(key) or "") for key in ("apiVersion", "kind", "name"))
        group = version.rpartition("/")[0]
        operator = _OPERATORS.get((group, kind))
        # OLM and some operators set references without controller: true.
        if not operator and not row.get("controller"):
            continue
        inside = namespace if not operator or (group, kind) in _NAMESPACED else ""
        return Manager(operator or kind, Way.OWNER, kind, name, inside, version)
    return None


def kserve_of(metadata: Metadata, namespace: str) -> Manager | None:
    """Return the InferenceService that a label names; None without it.

    KServe gives the label to a ScaledObject that it writes, and KEDA copies it to the HPA. A person
    may give it to an HPA too, so :func:`manager_of` does not look at it.
    """
    name = _label(metadata, "serving.kserve.io/inferenceservice")
    version = "serving.kserve.io/v1beta1"
    kind = "InferenceService"
    return Manager("KServe", Way.OWNER, kind, name, namespace, version) if name else None


def _operator_label(metadata: Metadata, namespace: str) -> Manager | None:
    """The labels that the NVIDIA GPU Operator gives its DaemonSets and their pods.

    The operator's chart sets them (NVIDIA/gpu-operator ``templates/clusterpolicy.yaml``:
    ``operand-labels``). A ClusterPolicy is the only one of its cluster and has no fixed name.
    """
    if _label(metadata, "app.kubernetes.io/managed-by") != "gpu-operator":
        return None
    tool = "NVIDIA GPU Operator"
    return Manager(tool, Way.OWNER, "ClusterPolicy", api_version="nvidia.com/v1")


def _argo(metadata: Metadata, namespace: str) -> Manager | None:
    chart = _chart(metadata)
    tracking = _annotation(metadata, "argocd.argoproj.io/tracking-id")
    app, _, rest = tracking.partition(":")
    tracked = rest.rpartition(":")[2]  # NAMESPACE/NAME of the object; a copied one names another
    if app and tracked.rpartition("/")[2] == metadata.get("name"):
        place, _, app = app.rpartition("_")  # NAMESPACE_APP outside of Argo CD's namespace
        return Manager("Argo CD", Way.GIT, "Application", app, place, **chart)
    app = _label(metadata, "argocd.argoproj.io/instance")
    if not app and any(name.startswith("argocd") for name in field_managers(metadata)):
        app = _label(metadata, "app.kubernetes.io/instance")
        if not app:
            return Manager("Argo CD", Way.GIT, "Application", **chart)
    return Manager("Argo CD", Way.GIT, "Application", app, **chart) if app else None


def _flux(metadata: Metadata, namespace: str) -> Manager | None:
    for kind, prefix in (("HelmRelease", "helm"), ("Kustomization", "kustomize")):
        group = f"{prefix}.toolkit.fluxcd.io"
        if name := _label(metadata, f"{group}/name"):
            place = _label(metadata, f"{group}/namespace")
            return Manager("Flux", Way.GIT, kind, name, place, **_chart(metadata))
    for kind, writer in (("Kustomization", "kustomize"), ("HelmRelease", "helm")):
        if f"{writer}-controller" in field_managers(metadata):
            return Manager("Flux", Way.GIT, kind, **_chart(metadata))
    return None


def _config_sync(metadata: Metadata, namespace: str) -> Manager | None:
    if _annotation(metadata, "configmanagement.gke.io/managed") != "enabled":
        return None
    path = _annotation(metadata, "configmanagement.gke.io/source-path")
    return Manager("Config Sync", Way.GIT, "file" if path else "", path)


def _rancher(metadata: Metadata, namespace: str) -> Manager | None:
    name = _annotation(metadata, "objectset.rio.cattle.io/owner-name")
    by = _annotation(metadata, "objectset.rio.cattle.io/owner-gvk")
    if by.endswith("Kind=Addon"):
        # k3s and RKE2 write the manifests of a directory of their servers.
        return Manager("k3s", Way.GIT, "AddOn", name, "kube-system")
    bundle = _annotation(metadata, "objectset.rio.cattle.io/id")
    if not by and bundle:
        return Manager("Fleet", Way.GIT, "Bundle", bundle, **_chart(metadata))
    return None


_CLOUDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("addonmanager.kubernetes.io/mode", "Reconcile", "the cluster's addon manager"),
    ("kubernetes.azure.com/managedby", "aks", "AKS"),
)
"""A label, its value, and who writes objects with it again."""
_CLOUD_NAMESPACES: Final = {
    "gmp-system": "GKE (managed Prometheus)",
    "gke-managed-system": "GKE",
    "gke-gmp-system": "GKE (managed Prometheus)",
}
"""Namespaces of which a cloud writes every object (Google's documentation of GKE)."""
_CLOUD_WRITERS: Final = {"eks": "EKS", "before-first-apply-eks": "EKS"}
"""Names under which a cloud applies its add-ons (EKS: field management of add-ons)."""


def _provider(metadata: Metadata, namespace: str) -> Manager | None:
    for label, value, who in _CLOUDS:
        if _label(metadata, label) == value:
            return Manager(who, Way.NOWHERE)
    if who := _CLOUD_NAMESPACES.get(namespace, ""):
        return Manager(who, Way.NOWHERE)
    writers = field_managers(metadata) & _CLOUD_WRITERS.keys()
    return Manager(_CLOUD_WRITERS[min(writers)], Way.NOWHERE) if writers else None


def _olm(metadata: Metadata, namespace: str) -> Manager | None:
    if _label(metadata, "olm.owner.kind") != "ClusterServiceVersion":
        return None
    name, place = _label(metadata, "olm.owner"), _label(metadata, "olm.owner.namespace")
    version = "operators.coreos.com/v1alpha1"
    return Manager("OLM", Way.OWNER, "ClusterServiceVersion", name, place, version)


def _helm(metadata: Metadata, namespace: str) -> Manager | None:
    release = _annotation(metadata, "meta.helm.sh/release-name")
    if not release:
        return None
    place = _annotation(metadata, "meta.helm.sh/release-namespace") or namespace
    return Manager("Helm", Way.VALUES, "release", release, place, **_chart(metadata))


_RULES: Final[tuple[Callable[[Metadata, str], Manager | None], ...]] = (
    _owner,
    _argo,
    _flux,
    _config_sync,
    _rancher,
    _olm,
    _provider,
    _operator_label,
    _helm,
)
"""By precedence: see :func:`manager_of`."""


def _chart(metadata: Metadata) -> dict[str, str]:
    """Return name and version of ``helm.sh/chart: dcgm-exporter-4.5.0``; empty without them.

    A version has no ``+`` in the label; Helm's convention writes ``_`` in its place.
    """
    name, has_version, version = _split(_label(metadata, "helm.sh/chart"))
    return {"chart": name, "version": version.replace("_", "+")} if has_version else {}


def _split(chart: str) -> tuple[str, bool, str]:
    words = chart.split("-")
    for index, word in enumerate(words[1:], 1):
        if word.removeprefix("v")[:1].isdigit() and "." in word:
            return "-".join(words[:index]), True, "-".join(words[index:])
    return chart, False, ""


def _label(metadata: Metadata, key: str) -> str:
    return str((metadata.get("labels") or {}).get(key) or "")


def _annotation(metadata: Metadata, key: str) -> str:
    return str((metadata.get("annotations") or {}).get(key) or "")
