"""The explanation of a workload: the HPAs that scale it, or else why its pods have no value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.answers.causes import Cause, CauseCode
from adapter.config.process.output import Screen
from adapter.figures import count
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.client.lastingfixes import put_lasting_fixes
from adapter.tools.explain.causefacts import NO_CAUSES, Around, ReadCauses, read_causes
from adapter.tools.explain.gpupod import why_of
from adapter.tools.explain.hpafacts import gather
from adapter.tools.explain.hpajudge import judge
from adapter.tools.explain.hpareport import HpaReport
from adapter.tools.explain.hpatext import cause_lines, fixes
from adapter.tools.explain.scaledreport import ScaledReport, scaled_of_target
from adapter.tools.explain.scaletarget import HPAS, ScaleError, read_scale
from apiservice.runtime.nearest import nearest

_SHORT: Final = {
    "deploy": "deployment",
    "sts": "statefulset",
    "rs": "replicaset",
    "rc": "replicationcontroller",
    "ds": "daemonset",
    "lws": "leaderworkerset",
    "isvc": "inferenceservice",
}
"""Short names of kinds, as kubectl takes them."""
_APPS: Final = ("Deployment", "StatefulSet", "ReplicaSet")
"""Kinds of apps/v1 that may have neither an HPA nor a GPU pod yet."""
_OF_HPAS: Final = (
    CauseCode.CONTROLLER_STOPPED,
    CauseCode.FOREIGN_PODS,
    CauseCode.REPLICAS_RESET,
    CauseCode.WRONG_NAMESPACE,
)
"""Causes that only an HPA has."""
_HPAS_READ: Final = 5
"""HPAs of one workload that are explained; more than one is a fault that each of them names."""


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    namespace: str
    kind: str
    name: str
    shown: Json | None = None
    """The ``gpuworkload``; None if no pod of it holds a GPU or serves models."""
    hpas: Sequence[HpaReport] = ()
    scaled: Sequence[ScaledReport] = ()
    """Without an HPA: the ScaledObjects that should have made one."""
    causes: Sequence[Cause] = ()
    """Without an HPA: why pods do not exist, or do not serve."""
    unseen: bool = False
    """The view API could not be asked, so nothing is known of values."""
    remarks: Sequence[str] = ()

    @property
    def status(self) -> int:
        """See the port: that of the worst HPA, and 1 for a cause or a pod without a value."""
        reports: Sequence[ScaledReport | HpaReport] = (*self.scaled, *self.hpas)
        statuses = {report.status for report in reports}
        if 1 in statuses or self._unmeasured or self.causes:
            return 1
        return 2 if self.unseen and not statuses else max(statuses, default=0)

    @property
    def _unmeasured(self) -> int:
        body = self.shown or {}
        return int(body.get("pods") or 0) - int(body.get("measured") or 0)

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        lines = [f"{self.kind} {self.namespace}/{self.name}   {self._verdict(screen)}"]
        if not self.hpas:
            lines += screen.wrap("no HPA scales it", "  ")
            lines += cause_lines(self.causes, screen)
            lines += self._reasons(screen)
        for remark in self.remarks:
            lines += screen.wrap(f"note: {remark}", "  ", "      ")
        parts: Sequence[ScaledReport | HpaReport] = (*self.scaled, *self.hpas)
        for report in parts:
            lines += ["", *report.lines(screen)]
        return lines

    def _verdict(self, screen: Screen) -> str:
        if self.unseen:
            return screen.style("GPUs and values of its pods could not be looked at", "yellow")
        if self.shown is None:
            return screen.style("no pod holds a GPU or serves models", "yellow")
        pods = int(self.shown.get("pods") or 0)
        text = f"{pods - self._unmeasured} of {count(pods, 'GPU pod')} measured"
        return screen.style(text, "red" if self._unmeasured else "green")

    def _reasons(self, screen: Screen) -> Iterator[str]:
        for row in (self.shown or {}).get("reasons") or ():
            why = why_of(row)
            if why is None:
                continue
            text = f"{screen.mark('bad')} {count(int(row.get('pods') or 0), 'pod')}: {why.text}"
            yield from screen.wrap(text, "  ", "      ")
            yield from fixes(why.hint, why.then)

    def json(self) -> Json:
        """See the port."""
        return {
            "namespace": self.namespace,
            "kind": self.kind,
            "name": self.name,
            "gpuworkload": self.shown,
            "hpas": [report.json() for report in self.hpas],
            "scaledObjects": [report.json() for report in self.scaled],
            "causes": [cause.json() for cause in self.causes],
            "remarks": list(self.remarks),
        }


async def explain_workload(api: Api, word: str) -> WorkloadReport:
    """Read a workload with its HPAs; raises ClientError.

    Args:
        word: ``deployment/llm``, or a name that one workload has.
    """
    rows, hpas = await asyncio.gather(_read_shown_workloads(api), _hpas(api))
    problem = rows if isinstance(rows, ClientError) else None
    shown = {} if isinstance(rows, ClientError) else rows
    scaled: dict[tuple[str, str], list[str]] = {}
    for row in hpas:
        target = row["spec"]["scaleTargetRef"]
        key = (str(target.get("kind")), str(target.get("name")))
        scaled.setdefault(key, []).append(str(row["metadata"]["name"]))
    workloads = sorted({*shown, *scaled})
    try:
        kind, name = _find_workload(api, word, workloads, problem)
    except ClientError:
        if (workload := await _of_apps(api, word)) is None:
            raise
        kind, name = workload
    names = sorted(scaled.get((kind, name), ()))
    reports = [judge(await gather(api, hpa)) for hpa in names[:_HPAS_READ]]
    body = shown.get((kind, name))
    await put_lasting_fixes(api, [body])
    read = NO_CAUSES if names else await _causes(api, kind, name, body or {})
    waiting = [] if names else await scaled_of_target(api, kind, name)
    remarks = [*read.unread]
    if problem is not None:
        remarks.append(f"values of pods are not shown: {problem.brief}")
    if more := names[_HPAS_READ:]:
        remarks.append(f"other HPAs of it are not explained here: {', '.join(more)}")
    causes = [cause for cause in read.causes if cause.code not in _OF_HPAS]
    return WorkloadReport(
        api.namespace,
        kind,
        name,
        body,
        reports,
        waiting,
        causes,
        unseen=problem is not None,
        remarks=remarks,
    )


async def _of_apps(api: Api, word: str) -> tuple[str, str] | None:
    """Return kind and name of a workload of Kubernetes that exists; None for another word."""
    spelt, slash, name = word.partition("/")
    kind = next((app for app in _APPS if _is_named_by(app, spelt)), "")
    if not slash or not kind:
        return None
    try:
        await read_scale(api, _stand_in_hpa(api, kind, name, "apps/v1"))
    except ScaleError:
        return None
    return kind, name


async def _causes(api: Api, kind: str, name: str, gpuworkload: Json) -> ReadCauses:
    """Return the causes of a workload that no HPA scales; none if its kind has no scale."""
    shown_version = str((gpuworkload.get("workload") or {}).get("apiVersion") or "")
    version = shown_version or ("apps/v1" if kind in _APPS else "")
    if not version:
        return NO_CAUSES
    manifest = _stand_in_hpa(api, kind, name, version)
    try:
        scale = await read_scale(api, manifest)
    except ScaleError:
        return NO_CAUSES
    pods = await api.list(f"/api/v1/namespaces/{api.namespace}/pods", labels=scale.selector)
    around = Around(manifest, time.time(), scale.replicas, scale.selector, pods)
    return await read_causes(api, around)


def _stand_in_hpa(api: Api, kind: str, name: str, version: str) -> Json:
    """Return what stands for the HPA of a workload without one."""
    target = {"apiVersion": version, "kind": kind, "name": name}
    return {
        "metadata": {"namespace": api.namespace, "name": ""},
        "spec": {"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 0},
        "status": {"conditions": [{}]},
    }


async def _hpas(api: Api) -> list[Json]:
    return await api.list(f"{HPAS}/namespaces/{api.namespace}/horizontalpodautoscalers")


async def _read_shown_workloads(api: Api) -> dict[tuple[str, str], Json] | ClientError:
    """Return the workloads that the view API shows, or why it shows none."""
    try:
        rows = await api.list(f"{VIEW}/namespaces/{api.namespace}/gpuworkloads")
    except ClientError as error:
        return error
    return {
        (str(of.get("kind")), str(of.get("name"))): row
        for row in rows
        if (of := row.get("workload") or {})
    }


def _find_workload(
    api: Api, word: str, workloads: Sequence[tuple[str, str]], problem: ClientError | None
) -> tuple[str, str]:
    """Return kind and name of the workload that a word names; raises ClientError."""
    kind, slash, name = word.partition("/")
    if not slash:
        kind, name = "", word
    matches = [
        pair for pair in workloads if pair[1] == name and (not kind or _is_named_by(pair[0], kind))
    ]
    if not matches and not slash:
        # The name of the view API's object: deployment.llm
        matches = [pair for pair in workloads if f"{pair[0].lower()}.{pair[1]}" == word.lower()]
    if len(matches) == 1:
        return matches[0]
    spelt = [f"{pair[0].lower()}/{pair[1]}" for pair in matches or workloads]
    place = f"namespace {api.namespace}"
    if matches:
        raise ClientError(f"{word!r} is {len(matches)} workloads in {place}: {', '.join(spelt)}")
    near = nearest(word, spelt, parts=True)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(spelt[:5])}"
    if not workloads:
        hint = "name the namespace with -n" if problem is None else problem.brief
    raise ClientError(
        f"no workload {word!r} in {place} that an HPA scales or whose pods hold GPUs: {hint}", 404
    )


def _is_named_by(kind: str, word: str) -> bool:
    """Return whether a word names a kind: ``deployments.apps``, ``deploy``."""
    plain = word.lower().partition(".")[0]
    return kind.lower() in (plain, plain.removesuffix("s"), _SHORT.get(plain))
