"""The explanation of a ScaledObject of KEDA: why it has no HPA, and else that of its HPA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from adapter.answers.causes import Cause
from adapter.answers.keda.manifest import SCALEDOBJECTS, read_scaledobject
from adapter.answers.keda.trouble import causes_of_scaled
from adapter.config.process.output import Screen
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.client.naming import read_named
from adapter.tools.explain.hpafacts import gather
from adapter.tools.explain.hpajudge import judge
from adapter.tools.explain.hpareport import HpaReport
from adapter.tools.explain.hpatext import cause_lines, events
from adapter.tools.explain.scaledfacts import read_facts, scaledobjects_path

_KIND: Final = "ScaledObject"


@dataclass(frozen=True, slots=True)
class ScaledReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    namespace: str
    name: str
    target: str
    """``Deployment llm``."""
    causes: Sequence[Cause]
    hpa: HpaReport | None = None
    """None if it has made none."""
    events: Sequence[Json] = field(default=())

    @property
    def status(self) -> int:
        """See the port: 1 if something blocks."""
        return 1 if self.causes else self.hpa.status if self.hpa is not None else 0

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        state = screen.style("NO HPA", "red") if self.hpa is None else f"HPA {self.hpa.name}"
        lines = [f"ScaledObject {self.namespace}/{self.name} → {self.target}   {state}"]
        lines += cause_lines(self.causes, screen)
        lines += events(self.events, screen, brief=True)
        return lines if self.hpa is None else [*lines, "", *self.hpa.lines(screen)]

    def json(self) -> Json:
        """See the port."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "target": self.target,
            "causes": [cause.json() for cause in self.causes],
            "events": list(self.events),
            "hpa": None if self.hpa is None else self.hpa.json(),
        }


async def explain_scaled(api: Api, name: str) -> ScaledReport:
    """Explain a ScaledObject by its name; raises ClientError."""
    try:
        manifest = await read_named(api, _KIND, SCALEDOBJECTS, "scaledobjects", name)
    except ClientError as error:
        if error.status == HTTPStatus.NOT_FOUND and not await _has_keda(api):
            raise ClientError(
                f"no ScaledObject {name!r}: the cluster has no ScaledObjects, because KEDA is not "
                f"installed; install KEDA, or name another context; server: {api.origin}",
                error.status,
            ) from None
        raise
    return await report_of(api, manifest)


async def _has_keda(api: Api) -> bool:
    """Return whether the cluster serves KEDA's API, or is none that could say so."""
    try:
        answer = await api.get("/apis")
    except ClientError:
        return True
    group = SCALEDOBJECTS.split("/")[2]
    groups = answer.get("groups")
    return not isinstance(groups, list) or any(
        isinstance(row, dict) and row.get("name") == group for row in groups
    )


async def scaled_of_hpa(api: Api, name: str) -> ScaledReport | None:
    """Explain the ScaledObject that a name of no HPA stands for; None if there is none.

    It is the ScaledObject's own name, that of the HPA which it should make, or of its target.
    """
    try:
        rows = await api.list(scaledobjects_path(api))
    except ClientError:  # the cluster has no KEDA, or the caller may not read its objects
        return None
    names = [(scaled.name, scaled.hpa, scaled.target) for scaled in map(read_scaledobject, rows)]
    for place in range(3):
        for row, its_names in zip(rows, names, strict=True):
            if its_names[place] == name:
                return await report_of(api, row)
    return None


async def scaled_of_target(api: Api, kind: str, name: str) -> list[ScaledReport]:
    """Explain the ScaledObjects of a workload that have no HPA; none without KEDA."""
    try:
        rows = await api.list(scaledobjects_path(api))
    except ClientError:
        return []
    of_target = [row for row in rows if (read_scaledobject(row).kind, _target(row)) == (kind, name)]
    return [await report_of(api, row) for row in of_target[:2]]


def _target(row: Json) -> str:
    return read_scaledobject(row).target


async def report_of(api: Api, manifest: Json) -> ScaledReport:
    """Explain a ScaledObject, and its HPA if there is one; raises ClientError."""
    scaled = read_scaledobject(manifest)
    facts, last = await read_facts(api, scaled, manifest)
    hpa = judge(await gather(api, scaled.hpa)) if facts.hpa is not None else None
    causes = causes_of_scaled(facts)
    return ScaledReport(
        scaled.namespace, scaled.name, f"{scaled.kind} {scaled.target}", causes, hpa, last
    )
