"""Aggregated discovery: all groups in one document, as ``apidiscovery.k8s.io`` v2 and v2beta1.

kube-aggregator requests it once a minute and trusts it as it is, so it lists everything that the
documents of the group-versions list. Without it, the aggregator reads those one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from apiservice.wire.accept import Form, accepted_forms

Json = dict[str, Any]
GROUP: Final = "apidiscovery.k8s.io"
LIST: Final = "APIGroupDiscoveryList"
_FORMS: Final = tuple(Form(LIST, version, GROUP) for version in ("v2", "v2beta1"))
_NO_KIND: Final = {"group": "", "version": "", "kind": ""}


def wants_aggregated(accept: bytes) -> Form | None:
    """Return the version of aggregated discovery that a client prefers over plain JSON."""
    forms = accepted_forms(accept)
    first = next((form for form in forms if form in (*_FORMS, Form())), None)
    return first if first in _FORMS else None


def media_type(form: Form) -> str:
    """Return the Content-Type by which the aggregator recognizes the document."""
    return f"application/json;g={form.group};v={form.version};as={form.kind}"


def aggregated_document(
    form: Form, groups: Iterable[tuple[str, Iterable[tuple[str, list[Json]]]]]
) -> Json:
    """Return the document.

    Args:
        form: its version.
        groups: each group's name and versions, each with the resources of its APIResourceList.
    """
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": _resources(group, version, resources),
                    "freshness": "Current",
                }
                for version, resources in versions
            ],
        }
        for group, versions in groups
    ]
    return {"kind": form.kind, "apiVersion": form.api_version, "metadata": {}, "items": items}


def _resources(group: str, version: str, resources: list[Json]) -> list[Json]:
    """Return the entries; a metric such as ``pods/gpu_utilization`` is a subresource of pods."""
    entries: dict[str, Json] = {}
    for resource in resources:
        name, _, below = resource["name"].partition("/")
        kind = {"group": group, "version": version, "kind": resource["kind"]}
        if not below:
            entries[name] = _entry(resource, name) | _own(resource, kind)
            continue
        # An entry without a kind is not a resource of its own.
        entry = entries.setdefault(name, _entry(resource, name))
        entry.setdefault("subresources", []).append(
            {"subresource": below, "responseKind": kind, "verbs": resource["verbs"]}
        )
    return list(entries.values())


def _entry(resource: Json, name: str) -> Json:
    return {
        "resource": name,
        "responseKind": _NO_KIND,
        "scope": "Namespaced" if resource["namespaced"] else "Cluster",
        "singularResource": "",
        "verbs": [],
    }


def _own(resource: Json, kind: Json) -> Json:
    return {
        "responseKind": kind,
        "singularResource": resource["singularName"],
        "verbs": resource["verbs"],
        "shortNames": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
    }
