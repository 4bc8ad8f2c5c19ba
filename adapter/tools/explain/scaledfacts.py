"""Reads what is around a ScaledObject of KEDA, with the caller's rights.

What may not be read is left out: the other causes are still found. An HPA counts as missing only
if the API server says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

from adapter.answers.keda.manifest import SCALEDOBJECTS, SeenScaledObject, read_scaledobject
from adapter.answers.keda.trouble import ScaledFacts, SeenScaler, addresses_of, host_of
from adapter.pipeline.cluster.objects import SeenEvent, read
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.client.hpacommands import scaled_object
from adapter.tools.explain.events import events_of
from adapter.tools.explain.scaletarget import HPAS, ScaleError, read_scale

_KIND: Final = "ScaledObject"
_SCALERS: Final = 16
"""Services of scalers that are read."""


def scaledobjects_path(api: Api) -> str:
    """Return the path of the ScaledObjects of the caller's namespace."""
    return f"{SCALEDOBJECTS}/namespaces/{quote(api.namespace, safe='')}/scaledobjects"


async def read_facts(
    api: Api, scaled: SeenScaledObject, manifest: Json, problem: str = ""
) -> tuple[ScaledFacts, list[Json]]:
    """Return what is around a ScaledObject, and its last events.

    Args:
        manifest: the ScaledObject's.
        problem: what the external metrics API answered instead of values.
    """
    now = time.time()
    events, hpas, others, target, services = await asyncio.gather(
        events_of(api, _KIND, scaled.name),
        _list(api, f"{HPAS}/namespaces/{quote(api.namespace, safe='')}/horizontalpodautoscalers"),
        _list(api, scaledobjects_path(api)),
        _target_exists(api, scaled, manifest),
        services_at(api, addresses_of(scaled)),
    )
    hpa = await _hpa(api, scaled.hpa, hpas)
    facts = ScaledFacts(
        now,
        scaled,
        hpa,
        target,
        _rivals(scaled, others or (), hpas or ()),
        [read(row, SeenEvent) for row in events.rows],
        services,
        problem,
    )
    return facts, events.last(now)


async def _list(api: Api, path: str) -> list[Json] | None:
    """Return a list; None if the caller may not read it."""
    try:
        return await api.list(path)
    except ClientError:
        return None


async def _hpa(api: Api, name: str, hpas: Sequence[Json] | None) -> Json | None:
    """Return the HPA of a name; None if it does not exist.

    Args:
        hpas: those of the namespace; None if they may not be listed.

    Raises:
        ClientError: whether it exists cannot be read.
    """
    if hpas is not None:
        return next((row for row in hpas if row["metadata"]["name"] == name), None)
    within = f"{HPAS}/namespaces/{quote(api.namespace, safe='')}/horizontalpodautoscalers"
    try:
        return await api.get(f"{within}/{quote(name, safe='')}")
    except ClientError as error:
        if error.status == 404:
            return None
        raise


def _rivals(
    scaled: SeenScaledObject, others: Sequence[Json], hpas: Sequence[Json]
) -> tuple[str, ...]:
    target = (scaled.kind, scaled.target)
    seen_others = [row for row in map(read_scaledobject, others) if row.name != scaled.name]
    rows = [f"ScaledObject {row.name}" for row in seen_others if (row.kind, row.target) == target]
    for hpa in hpas:
        reference, name = hpa["spec"]["scaleTargetRef"], str(hpa["metadata"]["name"])
        same = (reference.get("kind"), reference.get("name")) == target
        if same and not scaled_object(hpa) and name not in (scaled.hpa, scaled.takes_over):
            rows.append(f"HPA {name}")
    return tuple(sorted(rows))


async def _target_exists(api: Api, scaled: SeenScaledObject, manifest: Json) -> bool | None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment"}
    reference |= (manifest.get("spec") or {}).get("scaleTargetRef") or {}
    stand = {"metadata": {"namespace": api.namespace}, "spec": {"scaleTargetRef": reference}}
    try:
        await read_scale(api, stand)
    except ScaleError:
        return False
    except ClientError:
        return None
    return True


async def services_at(api: Api, addresses: Sequence[str]) -> Mapping[str, SeenScaler]:
    """Return what is known of the Services that addresses of triggers name; of the first ones only,
    because a ScaledObject may have thousands of triggers."""
    first = [address for address in dict.fromkeys(addresses) if host_of(address)[0]][:_SCALERS]
    scalers = await asyncio.gather(*map(partial(_service, api), first))
    return {address: row for address, row in zip(first, scalers, strict=True) if row is not None}


async def _service(api: Api, address: str) -> SeenScaler | None:
    """Return what is known of the Service of an address; None if the caller may not read it."""
    name, namespace, _ = host_of(address)
    if not namespace:
        return SeenScaler()
    within = f"namespaces/{quote(namespace, safe='')}"
    try:
        service = await api.get(f"/api/v1/{within}/services/{quote(name, safe='')}")
    except ClientError as error:
        return SeenScaler() if error.status == 404 else None
    ports = tuple(int(row["port"]) for row in (service.get("spec") or {}).get("ports") or ())
    slices, policies = await asyncio.gather(
        _list_endpoint_slices(api, f"/apis/discovery.k8s.io/v1/{within}/endpointslices", name),
        _list(api, f"/apis/networking.k8s.io/v1/{within}/networkpolicies"),
    )
    return SeenScaler(
        ports,
        None if slices is None else sum(map(_count_ready_endpoints, slices)),
        tuple(
            str(row["metadata"]["name"])
            for row in policies or ()
            if "Ingress" in ((row.get("spec") or {}).get("policyTypes") or ("Ingress",))
        ),
    )


async def _list_endpoint_slices(api: Api, path: str, service: str) -> list[Json] | None:
    try:
        return await api.list(path, labels=f"kubernetes.io/service-name={service}")
    except ClientError:
        return None


def _count_ready_endpoints(row: Json) -> int:
    rows = row.get("endpoints") or ()
    return sum(
        (endpoint.get("conditions") or {}).get("ready", True) is not False for endpoint in rows
    )
