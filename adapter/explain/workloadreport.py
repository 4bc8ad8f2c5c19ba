"""The explanation of a workload: the HPAs that scale it, or else why its pods have no value."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.client.access import Api, Json
from adapter.client.errors import VIEW, ClientError
from adapter.client.lastingfixes import put_lasting_fixes
from adapter.client.output import Screen
from adapter.explain.gpupod import why_of
from adapter.explain.hpafacts import HPAS, gather
from adapter.explain.hpajudge import judge
from adapter.explain.hpareport import HpaReport
from adapter.explain.hpatext import fixes
from adapter.figures import count
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
_HPAS_READ: Final = 5
"""HPAs of one workload that are explained; more than one is a fault that each of them names."""


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """Implements :class:`adapter.client.command.ToolReport`."""

    namespace: str
    kind: str
    name: str
    shown: Json | None = None
    """The ``gpuworkload``; None if no pod of it holds a GPU or serves models."""
    hpas: Sequence[HpaReport] = ()
    remarks: Sequence[str] = ()

    @property
    def status(self) -> int:
        """See the port: that of the worst HPA, and 1 if a pod has no value."""
        found = {report.status for report in self.hpas}
        return 1 if 1 in found or self._unmeasured else max(found, default=0)

    @property
    def _unmeasured(self) -> int:
        body = self.shown or {}
        return int(body.get("pods") or 0) - int(body.get("measured") or 0)

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        lines = [f"{self.kind} {self.namespace}/{self.name}   {self._verdict(screen)}"]
        if not self.hpas:
            lines += screen.wrap("no HPA scales it", "  ")
            lines += self._reasons(screen)
        for remark in self.remarks:
            lines += screen.wrap(f"note: {remark}", "  ", "      ")
        for report in self.hpas:
            lines += ["", *report.lines(screen)]
        return lines

    def _verdict(self, screen: Screen) -> str:
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
            "remarks": list(self.remarks),
        }


async def explain_workload(api: Api, word: str) -> WorkloadReport:
    """Read a workload with its HPAs; raises ClientError.

    Args:
        word: ``deployment/llm``, or a name that one workload has.
    """
    rows, hpas = await asyncio.gather(_shown(api), _hpas(api))
    problem = rows if isinstance(rows, ClientError) else None
    shown = {} if isinstance(rows, ClientError) else rows
    scaled: dict[tuple[str, str], list[str]] = {}
    for row in hpas:
        target = row["spec"]["scaleTargetRef"]
        key = (str(target.get("kind")), str(target.get("name")))
        scaled.setdefault(key, []).append(str(row["metadata"]["name"]))
    kind, name = _one(api, word, sorted({*shown, *scaled}), problem)
    own = shown.get((kind, name))
    if own is not None:
        await put_lasting_fixes(api, [own])
    names = sorted(scaled.get((kind, name), ()))
    reports = [judge(await gather(api, hpa)) for hpa in names[:_HPAS_READ]]
    remarks = [] if problem is None else [f"values of pods are not shown: {problem.brief}"]
    if more := names[_HPAS_READ:]:
        remarks.append(f"other HPAs of it are not explained here: {', '.join(more)}")
    return WorkloadReport(api.namespace, kind, name, own, reports, remarks)


async def _hpas(api: Api) -> list[Json]:
    return await api.list(f"{HPAS}/namespaces/{api.namespace}/horizontalpodautoscalers")


async def _shown(api: Api) -> dict[tuple[str, str], Json] | ClientError:
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


def _one(
    api: Api, word: str, known: Sequence[tuple[str, str]], problem: ClientError | None
) -> tuple[str, str]:
    """Return kind and name of the workload that a word names; raises ClientError."""
    kind, slash, name = word.partition("/")
    if not slash:
        kind, name = "", word
    found = [each for each in known if each[1] == name and (not kind or _is(each[0], kind))]
    if not found and not slash:
        # The name of the view API's object: deployment.llm
        found = [each for each in known if f"{each[0].lower()}.{each[1]}" == word.lower()]
    if len(found) == 1:
        return found[0]
    spelt = [f"{each[0].lower()}/{each[1]}" for each in found or known]
    place = f"namespace {api.namespace}"
    if found:
        raise ClientError(f"{word!r} is {len(found)} workloads in {place}: {', '.join(spelt)}")
    near = nearest(word, spelt, parts=True)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(spelt[:5])}"
    if not known:
        hint = "name the namespace with -n" if problem is None else problem.brief
    raise ClientError(
        f"no workload {word!r} in {place} that an HPA scales or whose pods hold GPUs: {hint}", 404
    )


def _is(kind: str, word: str) -> bool:
    """Return whether a word names a kind: ``deployments.apps``, ``deploy``."""
    plain = word.lower().partition(".")[0]
    return kind.lower() in (plain, plain.removesuffix("s"), _SHORT.get(plain))
