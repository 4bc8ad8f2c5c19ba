"""The scale target of an HPA: its size and its pods' selector, as the HPA controller reads them."""

from __future__ import annotations

from typing import Final, NamedTuple

from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.client.servedkinds import HOME, group_of, served_kind

HPAS: Final = "/apis/autoscaling/v2"


class Scale(NamedTuple):
    """The scale subresource of a workload."""

    replicas: int
    status_replicas: int
    selector: str


class ScaleError(Exception):
    """The HPA controller cannot read the scale either; the text says why."""

    def __init__(self, text: str, fix: str = "", version: str = "") -> None:
        super().__init__(text)
        self.fix = fix
        """What to do, in words; empty if the target only needs another name."""
        self.version = version
        """The ``apiVersion`` that the reference should have; empty if it is not known."""


async def read_scale(api: Api, hpa: Json) -> Scale:
    """Return the scale of an HPA's target.

    Raises:
        ScaleError: the target does not exist, or has no scale.
        ClientError: the caller cannot read it.
    """
    reference = hpa["spec"]["scaleTargetRef"]
    version, kind = str(reference.get("apiVersion") or "v1"), str(reference["kind"])
    group = group_of(version)
    served = await served_kind(api, group, kind)
    if served is None:
        raise _unknown_kind_error(group, kind)
    if not served.scales:
        raise ScaleError(
            f"{kind} has no scale subresource", _unscalable_kind_fix(group, kind, served.plural)
        )
    namespace, name = str(hpa["metadata"]["namespace"]), str(reference["name"])
    try:
        scale = await api.get(f"{served.path(namespace, name)}/scale")
    except ClientError as error:
        if error.status == 404:
            full = f"{served.plural}.{group}" if group else served.plural
            raise ScaleError(f'{full} "{name}" not found') from None
        raise
    spec, status = scale.get("spec") or {}, scale.get("status") or {}
    return Scale(
        int(spec.get("replicas") or 0),
        int(status.get("replicas") or 0),
        str(status.get("selector") or ""),
    )


def _unknown_kind_error(group: str, kind: str) -> ScaleError:
    """The words of the controller's RESTMapper, and the group that has the kind."""
    text = f'no matches for kind "{kind}" in group "{group}"'
    home = HOME.get(kind)
    if home is not None:
        version = f"{home}/v1" if home else "v1"
        return ScaleError(text, f"set spec.scaleTargetRef.apiVersion to {version}", version)
    return ScaleError(
        text, f"correct spec.scaleTargetRef, or install what defines the kind {kind} of {group}"
    )


def _unscalable_kind_fix(group: str, kind: str, plural: str) -> str:
    """Return what to do about a kind that nothing can scale."""
    if kind == "DaemonSet":
        return "delete the HPA: a DaemonSet has one pod a node, for any load"
    if kind in HOME:
        return f"scale the Deployment or StatefulSet that has the pods, not a {kind}"
    return (
        "name an object with a scale subresource in spec.scaleTargetRef, or add subresources.scale "
        f"to CustomResourceDefinition {plural}.{group}"
    )


def same_target(hpa: Json, other: Json) -> bool:
    """Return whether two HPAs name one target: the version of the group does not matter."""
    return _identity(hpa) == _identity(other)


def _identity(hpa: Json) -> tuple[str, str, str]:
    reference = hpa["spec"]["scaleTargetRef"]
    group = group_of(str(reference.get("apiVersion") or "v1"))
    return group, str(reference.get("kind")), str(reference.get("name"))
