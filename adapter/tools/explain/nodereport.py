"""The explanation of a node: its GPUs, who has them, and the pods without a value."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from adapter.answers.causes import Cause, CauseCode, gpunodes, nodestates
from adapter.config.process.output import Screen, table
from adapter.figures import age, count
from adapter.pipeline.attribution.reasons import doctor
from adapter.pipeline.cluster.gpuresources import STANDARD, ResourceUnit, unit_of
from adapter.pipeline.cluster.nodestarts import BlockKind
from adapter.pipeline.cluster.objects import ResourceSlice, SeenNode, read
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.client.lastingfixes import put_lasting_fixes
from adapter.tools.client.naming import read_named_in_cluster
from adapter.tools.explain.causefacts import SLICES
from adapter.tools.explain.gpupod import PodView, Why, why_of_several
from adapter.tools.explain.hpatext import cause_lines, fixes
from adapter.tools.explain.nodekeepers import read_keepers
from adapter.tools.explain.words import NONE, milli, to_milli
from apiservice.wire import instant

_PODS = 50
"""Pods without a value that are listed."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    name: str
    allocatable: dict[str, str]
    """GPU resources of the node, by name."""
    gpus: Sequence[Json]
    pods: Sequence[PodView]
    now: float
    remarks: Sequence[str] = ()
    causes: Sequence[Cause] = ()
    """Why it does not offer all of its GPUs."""
    keepers: Sequence[Cause] = ()
    """What keeps it from being emptied."""
    leaves: str = ""
    """Why it is to be emptied; empty if nobody wants to."""

    @property
    def unmeasured(self) -> list[PodView]:
        """The node's GPU pods without a value."""
        return [pod for pod in self.pods if not pod.body.get("measured")]

    @property
    def status(self) -> int:
        """See the port: 1 if GPUs are not offered, a pod is not measured, no exporter is, or the
        node is to be emptied and cannot be."""
        silent = self.allocatable and not self.gpus
        stays = self.keepers and self.leaves
        return 1 if self.causes or self.unmeasured or silent or stays else 0

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        has = ", ".join(f"{name} {amount}" for name, amount in sorted(self.allocatable.items()))
        measured = len(self.pods) - len(self.unmeasured)
        verdict = f"{measured} of {count(len(self.pods), 'GPU pod')} measured"
        style = screen.style(verdict, "red" if self.status else "green")
        lines = [f"node {self.name}   {has or 'no GPU resource'}   {style}"]
        lines += self._problems(screen)
        lines += table([self._gpu(gpu) for gpu in self.gpus], _GPU if self.gpus else (), "  ")
        lines += self._keeper_lines(screen)
        for remark in self.remarks:
            lines += screen.wrap(f"note: {remark}", "  ", "      ")
        return lines

    def _keeper_lines(self, screen: Screen) -> list[str]:
        """Return what keeps the node, which matters as soon as somebody wants to remove it."""
        if not self.keepers:
            return []
        mark = screen.mark("bad" if self.leaves else "warning")
        head = self.leaves or "nobody has begun to remove the node; these would keep it"
        lines = screen.wrap(f"{mark} removal: {head}", "  ", "    ")
        for keeper in self.keepers:
            lines += screen.wrap(keeper.text, "      ", "        ")
            lines += fixes(keeper.fix, keeper.command)
        return lines

    def _problems(self, screen: Screen) -> list[str]:
        lines = cause_lines(self.causes, screen)
        # The reason of a pod explains it better.
        if self.allocatable and not self.gpus and not any(pod.reason for pod in self.unmeasured):
            text = "no exporter reports a GPU of this node"
            lines += screen.wrap(f"{screen.mark('bad')} {text}", "  ", "    ")
            lines += fixes(doctor("GMA101"))
        for why, pods in _by_reason(self.unmeasured):
            names = ", ".join(_full_name(pod) for pod in pods[:4]) + (
                ", …" if len(pods) > 4 else ""
            )
            reason = why.text if why is not None else "no reason is known"
            text = f"{screen.mark('bad')} {count(len(pods), 'pod')} ({names}): {reason}"
            lines += screen.wrap(text, "  ", "      ")
            if why is not None:
                lines += fixes(why.hint, why.then)
        return lines

    def _gpu(self, gpu: Json) -> tuple[str, ...]:
        holders = [f"{row['namespace']}/{row['name']}" for row in gpu.get("pods") or ()]
        more = f" +{len(holders) - 1}" if len(holders) > 1 else ""
        moment = instant.read(gpu.get("sampleTime"))
        return (
            str(gpu.get("index") or gpu["metadata"]["name"]),
            str(gpu.get("model") or NONE),
            _value(gpu, "gpu_utilization", "%"),
            _value(gpu, "gpu_memory_used_bytes", ""),
            f"{holders[0]}{more}" if holders else NONE,
            str((gpu.get("sharing") or {}).get("strategy") or NONE),
            NONE if moment is None else age(self.now - moment),
        )

    def json(self) -> Json:
        """See the port."""
        return {
            "name": self.name,
            "allocatable": self.allocatable,
            "gpus": list(self.gpus),
            "pods": [pod.body for pod in self.pods],
            "unmeasured": [_full_name(pod) for pod in self.unmeasured],
            "causes": [cause.json() for cause in self.causes],
            "keepers": [cause.json() for cause in self.keepers],
            **({"leaves": self.leaves} if self.leaves else {}),
            "remarks": list(self.remarks),
        }


_GPU = ("GPU", "MODEL", "UTIL", "MEM", "PODS", "SHARING", "AGE")


def _full_name(pod: PodView) -> str:
    return f"{pod.body['metadata'].get('namespace', '')}/{pod.name}"


def _value(gpu: Json, metric: str, suffix: str) -> str:
    for row in gpu.get("values") or ():
        if row.get("metric") == metric and (value := to_milli(row.get("value"))) is not None:
            return f"{milli(value, str(row.get('unit') or ''))}{suffix}"
    return NONE


def _by_reason(pods: Sequence[PodView]) -> list[tuple[Why | None, list[PodView]]]:
    by_reason: dict[str, list[PodView]] = {}
    for pod in pods[:_PODS]:
        why = pod.reason
        by_reason.setdefault(why.reason if why is not None else "", []).append(pod)
    return [
        (why_of_several([(_full_name(pod), pod.reason) for pod in its]), its)
        for _, its in sorted(by_reason.items())
    ]


async def explain_node(api: Api, name: str) -> NodeReport:
    """Read a node, its GPUs and its GPU pods; raises ClientError."""
    manifest = await read_named_in_cluster(api, "node", "/api/v1/nodes", name)
    gpus = await api.list(f"{VIEW}/gpus", fields=f"node={name}")
    remarks = []
    try:
        rows = await api.list(f"{VIEW}/gpupods", fields=f"node={name}")
    except ClientError as error:
        if error.status != 403:
            raise
        remarks.append(f"only pods of namespace {api.namespace} are shown: {error.brief}")
        path = f"{VIEW}/namespaces/{api.namespace}/gpupods"
        rows = await api.list(path, fields=f"node={name}")
    amounts = (manifest.get("status") or {}).get("allocatable") or {}
    # The adapter lists the resources of its own settings in the requests of the pods.
    requested = {name for row in rows for name in row.get("requests") or ()}
    shown = {
        key: str(amount)
        for key, amount in amounts.items()
        if amount != "0" and unit_of(key) is not ResourceUnit.PART
        if STANDARD.is_gpu(key) or key in requested
    }
    await put_lasting_fixes(api, rows)
    now, node = time.time(), read(manifest, SeenNode)
    claimed = gpunodes.dra_nodes(await _slices(api, name))
    causes = [
        *nodestates.causes(node, now, STANDARD, claimed),
        *await _read_blocking_causes(api, name, remarks),
    ]
    leaves, keepers, unread = await read_keepers(api, node, now)
    remarks += unread
    views = list(map(PodView, rows))
    return NodeReport(name, shown, gpus, views, now, remarks, causes, keepers, leaves)


_FIXES: Final[Mapping[str, str]] = {
    BlockKind.TAINT: "add a toleration to the pods that may run there, or remove the taint from "
    "the node, in the configuration of its node pool",
    BlockKind.FULL: "lower the requests of the pods, move others away, or add larger nodes",
}
"""What to do about a node that pods keep each other from, or a taint."""


async def _read_blocking_causes(api: Api, name: str, remarks: list[str]) -> list[Cause]:
    """Return why no GPU pod can start on the node, as far as the node's object alone does not say
    it; ``remarks`` gets what could not be read."""
    try:
        gpunode = await api.get(f"{VIEW}/gpunodes/{quote(name, safe='')}")
    except ClientError as error:
        if error.status != 404:  # a node without GPUs
            remarks.append(f"whether pods can start on the node is not known: {error.brief}")
        return []
    rows = [(str(row.get("kind")), str(row.get("text"))) for row in gpunode.get("blocked") or ()]
    command = f"kubectl describe node {shlex.quote(name)}"
    return [
        Cause(
            CauseCode.UNSCHEDULABLE, f"node {name}", f"no GPU pod can start: {text}", fix, command
        )
        for kind, text in rows
        if (fix := _FIXES.get(kind, ""))
    ]


async def _slices(api: Api, name: str) -> list[ResourceSlice]:
    """Return the devices that DRA drivers publish of the node; none if they cannot be read."""
    try:
        rows = await api.list(SLICES, fields=f"spec.nodeName={name}")
    except ClientError:
        return []
    return [read(row, ResourceSlice) for row in rows]
