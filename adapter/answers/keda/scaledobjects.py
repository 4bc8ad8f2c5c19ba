"""The scale targets of ScaledObjects, for triggers without a podSelector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.workload import DEPLOYMENTS, REPLICASETS, ROLLOUTS, Workload, plural
from apiservice.provider import GroupResource

PATH: Final = "/apis/keda.sh/v1alpha1/scaledobjects"

NAMED_BY_PODS: Final = frozenset(
    {DEPLOYMENTS, REPLICASETS, ROLLOUTS, GroupResource("statefulsets", "apps")}
)
"""Kinds whose pods always name their owner: if no pod does, the workload has none."""


@dataclass(frozen=True, slots=True)
class ScaledObject:
    """A ScaledObject, reduced to its target."""

    namespace: str
    name: str
    target: Workload

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)


class ScaledObjects(Table[tuple[str, str], ScaledObject]):
    """The cluster's ScaledObjects."""

    def get(self, namespace: str, name: str) -> ScaledObject | None:
        """The ScaledObject of that name."""
        return self.find((namespace, name))


class _Meta(msgspec.Struct):
    name: str
    namespace: str = "default"


class _Target(msgspec.Struct, rename="camel"):
    name: str
    kind: str = ""
    api_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    scale_target_ref: _Target


class _Manifest(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


_manifest = msgspec.json.Decoder(_Manifest)


def decode(raw: msgspec.Raw | bytes) -> ScaledObject:
    """Decode a ScaledObject from its JSON; a target's missing keys have a Deployment's values.

    Raises:
        msgspec.DecodeError: it is not a ScaledObject.
    """
    manifest = _manifest.decode(raw)
    meta, target = manifest.metadata, manifest.spec.scale_target_ref
    group, _, _ = (target.api_version or "apps/v1").rpartition("/")
    resource = GroupResource(plural(target.kind or "Deployment"), group)
    return ScaledObject(meta.namespace, meta.name, Workload(resource, target.name))


def watch(client: Any, table: ScaledObjects) -> Any:
    """Return a reflector of all ScaledObjects into ``table``, to be run by the caller."""
    from apiservice.kube.reflector import Reflector  # noqa: PLC0415 - 35 MB

    reflector = Reflector(client, PATH, decode, table)
    table.fed_by(reflector)
    return reflector
