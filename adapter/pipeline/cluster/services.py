"""The cluster's Services and the pods they select, for Object metrics on Services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from adapter.pipeline.cluster import keptbytes
from adapter.pipeline.cluster.table import Table
from apiservice.labels.selector import Selector, parse


@dataclass(frozen=True, slots=True)
class Service:
    """A Service, reduced to its selector and labels."""

    namespace: str
    name: str
    selector: Selector | None
    """None if the Service has none: another controller manages its endpoints."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)


class Services(Table[tuple[str, str], Service]):
    """The cluster's Services."""

    def get(self, namespace: str, name: str) -> Service | None:
        """The Service of that name."""
        return self.find((namespace, name))

    def select(self, namespace: str, selector: Selector) -> Sequence[Service]:
        """The Services of a namespace whose labels the selector matches, by name."""
        services = (service for service in self if service.namespace == namespace)
        return sorted(
            (service for service in services if selector.matches(service.labels)),
            key=lambda service: service.name,
        )


class _Meta(msgspec.Struct):
    name: str
    namespace: str = "default"
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct):
    selector: dict[str, str] | None = None


class ServiceManifest(msgspec.Struct):
    """The fields of a ``v1.Service`` that this project reads."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


_manifest = msgspec.json.Decoder(ServiceManifest)


def decode(raw: msgspec.Raw | bytes) -> Service:
    """Decode a Service from its JSON.

    Raises:
        msgspec.DecodeError: it is not a Service.
        OversizedError: so much of it would be kept that it is left out.
        ValueError: its selector is none.
    """
    manifest = _manifest.decode(raw)
    keptbytes.check(raw, manifest, lambda whole: whole)
    return reduce(manifest)


def reduce(manifest: ServiceManifest) -> Service:
    """Return the parts of a manifest that are kept."""
    labels = manifest.spec.selector
    text = ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))
    meta = manifest.metadata
    selector = parse(text) if text else None
    return Service(meta.namespace, meta.name, selector, meta.labels or {})
