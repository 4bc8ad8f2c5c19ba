"""The HPAs to replay: from the cluster, or from a file with their manifests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from adapter.hpa import HpaSpec, ManifestError, from_manifest
from adapter.tools.client.access import Api, Json, cluster
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.client.naming import read_named
from adapter.tools.client.options import identity
from adapter.tools.explain.scaletarget import HPAS
from apiservice.runtime.yamltext import YamlError, documents

_KIND: Final = "HorizontalPodAutoscaler"
_PLURAL: Final = "horizontalpodautoscalers"
_SHOWN: Final = 200
"""Letters of a message about other HPAs."""


def read_hpa(given: Mapping[str, Any]) -> Json:
    """Return the manifest of the HPA that the command line names.

    Raises:
        ClientError: there is none, or it cannot be read.
    """
    namespace, name = _parse_name(given)
    if given["filename"] is None:
        return asyncio.run(_read_from_cluster(given, namespace, name))
    hpas = _list_from_file(given["filename"], namespace)
    matches = [row for row in _filter_namespace(namespace, hpas) if row["metadata"]["name"] == name]
    where = f"{namespace}/{name}" if namespace else name
    if len(matches) > 1:
        raise ClientError(
            f"{given['filename']} has {len(matches)} HPAs {where}: leave one, or name its namespace"
        )
    if matches:
        return matches[0]
    others = ", ".join(f"{row['metadata']['namespace']}/{row['metadata']['name']}" for row in hpas)
    raise ClientError(
        f"{given['filename']} has no HPA {where}: it has {others[:_SHOWN] or 'no HPA'}"
    )


def read_hpas(given: Mapping[str, Any]) -> list[Json]:
    """Return the one that the command line names, or all of the namespace, ordered by name.

    Raises:
        ClientError: there is none, or they cannot be read.
    """
    if given["name"]:
        return [read_hpa(given)]
    namespace = given["namespace"]
    if given["filename"] is None:
        hpas, namespace = asyncio.run(_list_from_cluster(given, namespace))
    else:
        hpas = _filter_namespace(namespace, _list_from_file(given["filename"], namespace))
    if not hpas:
        where = f" in namespace {namespace}" if namespace else ""
        raise ClientError(f"there is no HPA{where}: name a namespace that has some with -n")
    return sorted(hpas, key=lambda row: (row["metadata"]["namespace"], row["metadata"]["name"]))


def spec_of(manifest: Json) -> HpaSpec:
    """Return the settings of an HPA; raises ClientError."""
    try:
        return from_manifest(manifest)
    except ManifestError as error:
        raise ClientError(f"the HPA's manifest cannot be used: {error}") from None


def _parse_name(given: Mapping[str, Any]) -> tuple[str, str]:
    namespace, _, name = given["name"].rpartition("/")
    if namespace and given["namespace"] not in ("", namespace):
        raise ClientError(
            f"{given['name']} and -n {given['namespace']} name two namespaces: remove one"
        )
    if not name:
        raise ClientError(
            f"{given['name']!r} is not the name of an HPA: write ml/llm, or llm -n ml"
        )
    return namespace or given["namespace"], name


@asynccontextmanager
async def _cluster(given: Mapping[str, Any], namespace: str) -> AsyncIterator[Api]:
    """Yield the cluster. An error of access says that a manifest does instead."""
    try:
        whom = identity(given["as_user"], given["as_groups"])
        async with cluster(given["kubeconfig"], given["context"], namespace, whom) as api:
            yield api
    except ClientError as error:
        if error.status == 404:
            raise
        raise ClientError(
            f"{error}; or give the HPA's manifest with --filename",
            error.status,
            error.reason,
            error.answer,
        ) from None


async def _read_from_cluster(given: Mapping[str, Any], namespace: str, name: str) -> Json:
    async with _cluster(given, namespace) as api:
        with odd_answers():
            hpa = await read_named(api, "HPA", HPAS, _PLURAL, name)
    return {"apiVersion": "autoscaling/v2", "kind": _KIND, **hpa}


async def _list_from_cluster(given: Mapping[str, Any], namespace: str) -> tuple[list[Json], str]:
    async with _cluster(given, namespace) as api:
        with odd_answers():
            path = f"{HPAS}/namespaces/{quote(api.namespace, safe='')}/{_PLURAL}"
            rows = await api.list(path)
            return [{"apiVersion": "autoscaling/v2", "kind": _KIND, **row} for row in rows], (
                api.namespace
            )


def _filter_namespace(namespace: str, hpas: list[Json]) -> list[Json]:
    """Return the HPAs of the namespace, or all if it is empty."""
    return [row for row in hpas if namespace in ("", row["metadata"]["namespace"])]


def _objects(document: Any) -> list[Json]:
    """Return the objects of a document; ``kubectl get -o yaml`` writes several as a List."""
    items = document.get("items") if isinstance(document, dict) else None
    return [
        row for row in (items if isinstance(items, list) else [document]) if isinstance(row, dict)
    ]


def _list_from_file(path: Path, namespace: str) -> list[Json]:
    """Return the HPAs of a file; one that names no namespace is of the given one."""
    try:
        every = documents(path.read_bytes())
    except OSError as error:
        raise ClientError(f"{path} cannot be read: {error.strerror}") from None
    except YamlError as error:
        raise ClientError(f"{path} cannot be read as YAML: {error}") from None
    hpas = []
    for row in chain.from_iterable(map(_objects, every)):
        meta = row.get("metadata") if row.get("kind") == _KIND else None
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
            continue
        of = str(meta.get("namespace") or namespace or "default")
        hpas.append({**row, "metadata": {**meta, "namespace": of}})
    return hpas
