"""Find idle devices in the objects of the view API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from adapter.answers.view.gpuclass import GpuClass, gpu_class
from adapter.answers.view.podvalues import UTILIZATION
from adapter.figures import count
from adapter.pipeline.attribution.unnamedpods import NOT_NAMED
from adapter.pipeline.cluster.changes import scale
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.tools.client.access import Api
from adapter.tools.client.changedobjects import read_changed
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.idle.prices import PriceList
from adapter.tools.idle.report import IdleDevice
from apiservice.wire import instant

Json = dict[str, Any]
_USED: Final = "gpu_memory_used_bytes"
_TOTAL: Final = "gpu_memory_total_bytes"
_SCALED: Final = ("Deployment", "StatefulSet")
MOST: Final = 20
"""Workloads of which is read what manages them."""


Holder = tuple[Json, Json]
"""A pod, and its part of a device."""


class HeldDevices(NamedTuple):
    """The devices that pods hold, and what is known of them."""

    idle: list[IdleDevice]
    """The longest idle first."""
    held: int
    """All of them: idle, busy and not measured."""
    unmeasured: Mapping[str, int]
    """Reason -> devices of which nobody knows whether they work."""
    unsized: int
    """Pods that hold devices that nobody reports, and it is not known how many."""


async def read_pods(api: Api, namespace: str) -> list[Json]:
    """Return the ``gpupods`` of a namespace, or of all namespaces if it is empty; raises
    ClientError."""
    within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    try:
        return await api.list(f"{VIEW}{within}/gpupods")
    except ClientError as error:
        if error.status == 403 and not namespace:
            raise ClientError(f"{error}; or look at one namespace with -n") from None
        raise


def idle_devices(
    pods: Iterable[Json],
    prices: PriceList,
    team_label: str,
    now: float,
    minimum: float,
    *,
    whole: bool = True,
) -> HeldDevices:
    """Return the devices that pods hold, with those that are idle.

    Args:
        pods: ``gpupods``.
        prices: prices by model.
        team_label: label of pods that names the team; a pod without it belongs to the team of its
            namespace's name.
        now: epoch seconds.
        minimum: seconds for which a device must be idle.
        whole: these are all pods of their workloads. Otherwise no hint says to scale one.
    """
    # The GPUs of a placeholder are free: a pod that needs them preempts it.
    having = [pod for pod in pods if not pod.get("placeholder")]
    holders: dict[str, list[Holder]] = {}
    unmeasured: Counter[str] = Counter()
    uses: dict[PodName, set[GpuClass]] = {}
    members: dict[WorkloadName, list[Json]] = {}
    for pod in having:
        members.setdefault(_workload(pod), []).append(pod)
        for device in pod.get("devices") or ():
            holders.setdefault(str(device.get("device", "")), []).append((pod, device))
        if more := _count_unreported(pod):
            unmeasured[_absence(pod) or NOT_NAMED] += more
        uses[_name(pod)] = {"unmeasured"} if more else set()
    held = len(holders) + unmeasured.total()
    idle: list[tuple[list[Holder], float]] = []
    for some in holders.values():
        since = _since(some)
        of = _class(some, since, now, minimum)
        for pod, _ in some:
            uses[_name(pod)].add(of)
        if of == "idle" and since is not None:
            idle.append((some, since))
        elif of == "unmeasured":
            unmeasured[_reason(some)] += 1
    devices = []
    for some, since in idle:
        pod, _ = some[0]
        others = _describe_others(members[_workload(pod)], uses) if whole else _UNKNOWN
        devices.append(_idle_device(some, since, prices, team_label, others))
    devices.sort(key=lambda device: (device.since, device.namespace, device.pods))
    return HeldDevices(devices, held, unmeasured, sum(map(_is_unsized, having)))


def _count_unreported(pod: Json) -> int:
    """Return the devices of a pod that no exporter reports."""
    return int(pod.get("unreportedDevices", 0))


def _is_unsized(pod: Json) -> bool:
    """Return whether a pod holds devices that nobody reports, and nobody knows how many."""
    counted = pod.get("devices") or _count_unreported(pod)
    return not counted and bool(pod.get("node") and _absence(pod))


PodName = tuple[str, str]
"""Namespace and name."""
WorkloadName = tuple[str, str, str]
"""Namespace, kind and name."""
_UNKNOWN: Final = "unknown"
"""The other pods of a workload were not looked at."""


def _name(pod: Json) -> PodName:
    return str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"])


def _workload(pod: Json) -> WorkloadName:
    above = pod.get("workload") or {}
    return str(pod["metadata"]["namespace"]), str(above.get("kind")), str(above.get("name"))


def _describe_others(pods: Sequence[Json], uses: Mapping[PodName, set[GpuClass]]) -> str:
    """Return what the pods of a workload do; empty if all of them are idle."""
    states = Counter(_state(pod, uses[_name(pod)]) for pod in pods)
    idle = states.pop("idle", 0)
    if not states:
        return ""
    head = f"{idle} of {count(len(pods), 'pod')} {'is' if idle == 1 else 'are'} idle"
    rest = (f"{n} {'is' if n == 1 else 'are'} {state}" for state, n in sorted(states.items()))
    return ", ".join((head, *rest))


def _state(pod: Json, use: set[GpuClass]) -> str:
    """Return what a pod does with all of its devices."""
    if "busy" in use:
        return "busy"
    if use == {"idle"}:
        return "idle"
    return "not measured" if pod.get("node") or use else "without a node"


def _class(holders: Sequence[Holder], since: float | None, now: float, minimum: float) -> GpuClass:
    """Return what a held device does."""
    values = (_number(device, UTILIZATION) for _, device in holders)
    util = next((value for value in values if value is not None), None)
    ago = None if since is None else now - since
    return gpu_class(util, str(holders[0][0]["metadata"]["name"]), ago, None, minimum)


def _reason(holders: Sequence[Holder]) -> str:
    """Return why a held device is not measured."""
    for pod, device in holders:
        if reason := _absence(pod) or _utilization_reason(device.get("leftOut")):
            return reason
    return NOT_NAMED


def _absence(pod: Json) -> str:
    """Return why a pod that holds a device has no utilization; empty if it has one, or if it holds
    none."""
    return _utilization_reason(pod.get("absent"))


def _utilization_reason(rows: Iterable[Json] | None) -> str:
    """Return the reason without a utilization among the reasons of missing values."""
    reasons = (
        str(row["reason"]) for row in rows or () if UTILIZATION in (row.get("metrics") or ())
    )
    return next(reasons, "")


async def with_lasting_hints(api: Api, devices: Iterable[IdleDevice]) -> list[IdleDevice]:
    """Return the devices with the command, or the words, that scale their workloads for good. What
    manages a workload is read for the first ones only, and only if the caller may.
    """
    hints: dict[tuple[str, str], str] = {}
    hinted = []
    for device in devices:
        key = (device.namespace, device.workload)
        kind, _, name = device.workload.partition("/")
        if device.scaled and key not in hints and len(hints) < MOST:
            hints[key] = device.hint
            with suppress(ClientError):
                of = await read_changed(api, kind, device.namespace, name)
                fix = make_lasting(of, scale(of, 0))
                words = f"`{fix.command}`" if fix.command else fix.text
                hints[key] = f"scale it in if nobody uses it: {words}"
        hinted.append(replace(device, hint=hints.get(key, device.hint)))
    return hinted


def _since(holders: list[Holder]) -> float | None:
    """Return the epoch seconds since which a device is idle for its pods; None if it works."""
    times = []
    for pod, device in holders:
        idle = instant.read(device.get("idleSince"))
        if idle is None:
            return None
        # A pod with several devices may be busy on another one.
        created = instant.read(pod["metadata"].get(_CREATED))
        times.append(idle if created is None else max(idle, created))
    return min(times)


_CREATED: Final = "creationTimestamp"


def _idle_device(
    holders: list[Holder], since: float, prices: PriceList, team_label: str, others: str
) -> IdleDevice:
    """Return an idle device.

    Args:
        others: what the pods of its workload do; empty if all of them are idle.
    """
    pod, device = holders[0]
    meta = pod["metadata"]
    workload = pod.get("workload") or {}
    model, profile = str(device.get("model", "")), str(device.get("migProfile", ""))
    return IdleDevice(
        gpu=str(device.get("gpu") or device.get("device", "")),
        uuid=str(device.get("device", "")),
        model=model,
        mig_profile=profile,
        node=str(device.get("node") or pod.get("node", "")),
        namespace=str(meta["namespace"]),
        pods=tuple(str(sharer["metadata"]["name"]) for sharer, _ in holders),
        workload=f"{workload['kind']}/{workload['name']}" if workload else "",
        team=str((meta.get("labels") or {}).get(team_label) or meta["namespace"]),
        since=since,
        used=_number(device, _USED),
        total=_number(device, _TOTAL),
        price=prices.of(
            model, profile, str(device.get("instanceType", "")), str(device.get("capacityType", ""))
        ),
        hint=_hint(str(meta["namespace"]), str(meta["name"]), workload, others),
        scaled=str(workload.get("kind", "")) in _SCALED and not others,
    )


def _hint(namespace: str, pod: str, workload: Json, others: str) -> str:
    """Return a suggestion; nothing is ever deleted, and no pod is stopped that may work."""
    kind = str(workload.get("kind", ""))
    if kind in _SCALED and not others:
        return f"scale {kind} {workload['name']} in namespace {namespace} to 0 if nobody uses it"
    owner = f"{kind} {workload.get('name')}" if kind else f"pod {pod}"
    ask = f"ask the owner of {owner} in namespace {namespace} whether it is still used"
    return f"{others}: {ask}" if kind and others and others != _UNKNOWN else ask


def _number(device: Json, metric: str) -> float | None:
    for value in _values(device):
        if metric in (value.get("metrics") or ()):
            return float(value["number"])
    return None


def _values(device: Json) -> Iterator[Json]:
    yield from (value for value in device.get("values") or () if isinstance(value, dict))
