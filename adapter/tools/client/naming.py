"""Objects by name, with the nearest names if there is none."""

from __future__ import annotations

from urllib.parse import quote

from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from apiservice.runtime.nearest import nearest


async def read_named(api: Api, kind: str, prefix: str, plural: str, name: str) -> Json:
    """Return the object of a name in the caller's namespace.

    Args:
        kind: what messages call it: ``HPA``.
        prefix: path of the API: ``/apis/autoscaling/v2``.
        plural: as in the path.

    Raises:
        ClientError: it does not exist; the message names the nearest names, or the namespaces
            in which it exists.
    """
    collection = f"{prefix}/namespaces/{quote(api.namespace, safe='')}/{plural}"
    try:
        return await api.get(f"{collection}/{quote(name, safe='')}")
    except ClientError as error:
        if error.status != 404 or error.reason != "NotFound":
            raise
    here = [_name(row) for row in await api.list(collection)]
    text = f"no {kind} {name!r} in namespace {api.namespace}"
    raise ClientError(f"{text}: {await _advice(api, kind, f'{prefix}/{plural}', name, here)}", 404)


async def read_named_in_cluster(api: Api, kind: str, collection: str, name: str) -> Json:
    """Return a cluster-scoped object of a name; raises ClientError as :func:`read_named`."""
    try:
        return await api.get(f"{collection}/{quote(name, safe='')}")
    except ClientError as error:
        if error.status != 404 or error.reason != "NotFound":
            raise
    names = [_name(row) for row in await api.list(collection)]
    raise ClientError(f"no {kind} {name!r} in the cluster: {_did_you_mean(kind, name, names)}", 404)


async def check_namespace(api: Api) -> None:
    """Check that the namespace that is looked at exists. A caller who may not see it cannot know.

    Raises:
        ClientError: it does not exist; the message names the nearest names.
    """
    collection, name = "/api/v1/namespaces", api.namespace
    try:
        await api.get(f"{collection}/{quote(name, safe='')}")
    except ClientError as error:
        if error.reason != "NotFound" or "requested resource" in error.answer:
            return
    else:
        return
    try:
        names = [_name(row) for row in await api.list(collection)]
    except ClientError:
        names = []
    advice = _did_you_mean("namespace", name, names) if names else "see kubectl get namespaces"
    raise ClientError(f"namespace {name!r} does not exist: {advice}; server: {api.origin}", 404)


async def _advice(api: Api, kind: str, everywhere: str, name: str, here: list[str]) -> str:
    try:
        rows = await api.list(everywhere, fields=f"metadata.name={name}")
    except ClientError:  # the caller may not list other namespaces
        rows = []
    # Not every resource supports the field selector of the name: compare as well.
    others = sorted({row["metadata"]["namespace"] for row in rows if _name(row) == name})
    if others:
        return f"it exists in namespace {', '.join(others[:3])}; add -n {others[0]}"
    if not here:
        return f"the namespace has no {kind}, or it does not exist"
    return _did_you_mean(kind, name, here)


def _did_you_mean(kind: str, name: str, names: list[str]) -> str:
    if near := nearest(name, names, parts=True):
        return f"did you mean {' or '.join(near)}?"
    if not names:
        return f"there is no {kind} at all"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"known names are {', '.join(sorted(names)[:5])}{more}"


def _name(row: Json) -> str:
    return str((row.get("metadata") or {}).get("name") or "")
