"""The explanation of a pod: the value of each metric, its devices, and why a value is missing."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from adapter.answers.causes import Cause
from adapter.config.process.output import Screen, table
from adapter.pipeline.attribution.reasons import REASONS
from adapter.pipeline.attribution.unnamedpods import CLAIM_NOT_NAMED
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.client.lastingfixes import put_lasting_fixes
from adapter.tools.client.naming import read_named
from adapter.tools.explain.causefacts import read_pod_causes
from adapter.tools.explain.events import events_of
from adapter.tools.explain.gpupod import PodView, Why, why_of
from adapter.tools.explain.hpatext import cause_lines, events, fixes
from adapter.tools.explain.words import milli, to_milli

_OF_SERVER: Final = "server_"
"""How the reasons begin that concern the page of the pod's server."""


@dataclass(frozen=True, slots=True)
class PodReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    pod: Json
    view: PodView | None
    """None if the view API does not show the pod: it holds no GPU, and no server is scraped."""
    now: float
    events: Sequence[Json] = ()
    remarks: Sequence[str] = ()
    causes: Sequence[Cause] = ()
    """Why it has no node, does not run, or does not serve."""

    @property
    def status(self) -> int:
        """See the port: 1 if the pod does not serve, is not measured, or lacks an HPA's metric."""
        return 0 if self.measured and not self.missed and not self.causes else 1

    @property
    def measured(self) -> bool:
        """Whether the pod has its main value."""
        return self.view is not None and bool(self.view.body.get("measured"))

    @property
    def missed(self) -> dict[str, list[str]]:
        """The metrics without a value that HPAs read, each with the HPAs."""
        missed: dict[str, list[str]] = {}
        for row in self.view.body.get("hpas") or () if self.view is not None else ():
            if row.get("type") == "Pods" and self.view and row.get("metric") in self.view.absent:
                missed.setdefault(str(row["metric"]), []).append(str(row.get("name")))
        return missed

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        meta, phase = self.pod["metadata"], (self.pod.get("status") or {}).get("phase", "")
        verdict = "MEASURED" if self.measured else "NOT MEASURED"
        if self.measured and self.causes:
            verdict = "MEASURED, BUT DOES NOT SERVE"
        elif self.measured and self.status:
            verdict = "MEASURED, BUT AN HPA LACKS A METRIC"
        style = screen.style(verdict, "red" if self.status else "green")
        node = (self.pod.get("spec") or {}).get("nodeName")
        place = f" on {node}" if node else ""
        lines = [f"pod {meta['namespace']}/{meta['name']}{place}   {phase}   {style}"]
        lines += cause_lines(self.causes, screen)
        if self.view is None:
            lines += _why_unlisted(self.pod, screen)
        else:
            lines += _why(self.view.reason, "", screen)
            lines += _missed_metrics(self.view, self.missed, screen)
            lines += _values(self.view, self.now, screen)
            lines += _devices(self.view, screen)
            lines += _server_page(self.view, self.missed, screen)
            lines += _unread_metrics(self.view, self.missed, screen)
        for remark in self.remarks:
            lines += screen.wrap(f"note: {remark}", "  ", "      ")
        return lines + events(self.events, screen)

    def json(self) -> Json:
        """See the port: the object of the view API is the explanation."""
        meta = self.pod["metadata"]
        fields: Json = {"namespace": meta["namespace"], "name": meta["name"]}
        fields["measured"] = self.measured
        fields["missedByHpas"] = self.missed
        if self.view is not None:
            fields["gpupod"] = self.view.body
        fields["causes"] = [cause.json() for cause in self.causes]
        return fields | {"remarks": list(self.remarks), "events": list(self.events)}


def _why(why: Why | None, about: str, screen: Screen) -> list[str]:
    if why is None:
        return []
    lines = screen.wrap(f"{screen.mark('bad')} {about}{why.text}", "  ", "      ")
    return [*lines, *fixes(why.hint, why.then), *([f"      see {why.docs}"] if why.docs else [])]


def _values(view: PodView, now: float, screen: Screen) -> list[str]:
    rows = []
    for row in view.body.get("metrics") or ():
        name, value = str(row.get("metric")), to_milli(row.get("value"))
        if value is None:
            continue
        unit = str(row.get("unit") or "")
        text = milli(value, unit)
        suffix = "%" if unit == "percent" else unit.removesuffix("s") if text == "1" else unit
        text = text if unit in ("bytes", "") else f"{text} {suffix}"
        rows.append(
            (
                screen.mark("good"),
                name,
                text,
                ", ".join(view.how(name, now, str(row.get("promise") or ""))),
            )
        )
    return ["  metrics:", *table(rows, indent="    ")] if rows else []


def _why_unlisted(pod: Json, screen: Screen) -> list[str]:
    """Return why the view API does not show a pod, as far as its manifest shows it."""
    text, fix = "it holds no GPU, no inference server of it is scraped, or it has finished", ""
    if (pod.get("spec") or {}).get("resourceClaims"):
        cause = REASONS[CLAIM_NOT_NAMED]
        text, fix = f"{CLAIM_NOT_NAMED}: {cause.cause}", cause.fix
    lines = screen.wrap(f"{screen.mark('bad')} {text}", "  ", "    ")
    return lines + fixes(fix) if fix else lines


def _devices(view: PodView, screen: Screen) -> list[str]:
    lines = []
    absent = view.absent
    for row in view.devices():
        sharing = row.get("sharing") or {}
        parts = [str(row.get(key) or "") for key in ("gpu", "device", "model", "attribution")]
        if sharing:
            parts.append(f"shared by {sharing.get('sharers', '?')}, policy {sharing.get('policy')}")
        parts.append(f"evidence {row['evidence']}" if row.get("evidence") else "")
        lines += screen.wrap("   ".join(part for part in parts if part), "    ", "        ")
        for left in row.get("leftOut") or ():
            # A metric without any value is in a line of its own.
            missing = [name for name in left.get("metrics") or () if name not in absent]
            about = f"without {', '.join(missing)}: "
            lines += [f"  {line}" for line in _why(why_of(left), about, screen)] if missing else []
    for device in view.body.get("unhealthyDevices") or ():
        text = f"{screen.mark('bad')} the kubelet reports {device} unhealthy"
        lines += screen.wrap(text, "    ", "        ")
    return ["  devices:", *lines] if lines else []


def _missed_metrics(
    view: PodView, missed: Mapping[str, Sequence[str]], screen: Screen
) -> list[str]:
    """Return why HPAs get no value of a metric, unless the pod's own reason says it."""
    lines = []
    pod_why = view.reason
    for metric, hpas in sorted(missed.items()):
        why = view.why(metric)
        names = ", ".join(hpas)
        about = f"HPA {names} reads {metric}, which has no value"
        if why is None or (pod_why is not None and why.reason == pod_why.reason):
            lines += screen.wrap(f"{screen.mark('bad')} {about}", "  ", "      ")
        else:
            lines += _why(why, f"{about}: ", screen)
    return lines


def _server_page(view: PodView, missed: Collection[str], screen: Screen) -> list[str]:
    """Return why the pod's server page gives no values, unless another line says it."""
    pod_why = view.reason
    shown = {pod_why.reason} if pod_why is not None else set()
    shown |= {why.reason for why in map(view.why, missed) if why is not None}
    lines = []
    for row in view.body.get("absent") or ():
        why = why_of(row)
        if why is not None and why.reason.startswith(_OF_SERVER) and why.reason not in shown:
            lines += _why(why, "its server page: ", screen)
    return lines


def _unread_metrics(view: PodView, missed: Collection[str], screen: Screen) -> list[str]:
    """Return, in one quiet line, the metrics without a value that no HPA reads."""
    pod_why, parts = view.reason, []
    for row in view.body.get("absent") or ():
        why = why_of(row)
        names = [str(name) for name in row.get("metrics") or () if name not in missed]
        if why is None or not names or (pod_why is not None and why.reason == pod_why.reason):
            continue
        if why.reason.startswith(_OF_SERVER):
            continue
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        parts.append(f"{', '.join(names[:4])}{more} ({why.reason})")
    if not parts:
        return []
    lines = screen.wrap(
        f"without a value, and no HPA reads them: {'; '.join(parts)}", "  ", "      "
    )
    return [screen.style(line, "dim") for line in lines]


async def explain_pod(api: Api, name: str) -> PodReport:
    """Read a pod and what the view API shows of it; raises ClientError."""
    pod = await read_named(api, "pod", "/api/v1", "pods", name)
    namespace = str(pod["metadata"]["namespace"])
    path = f"{VIEW}/namespaces/{quote(namespace)}/gpupods/{quote(name, safe='')}"
    view: PodView | None = None
    try:
        body = await api.get(path)
        await put_lasting_fixes(api, [body])
        view = PodView(body)
    except ClientError as error:
        if error.status != 404 or "does not serve" in str(error):
            raise
    recent = await events_of(api, "Pod", name, namespace)
    now = time.time()
    remarks = []
    if recent.problem is not None:
        remarks.append(f"events are not shown: {recent.problem.brief}")
    if view is not None:
        rows = view.body.get("hpas") or ()
        hpas = [
            f"{row.get('name')} ({row.get('metric')})"
            for row in rows
            # The others are named with the reason.
            if row.get("type") != "Pods" or row.get("metric") not in view.absent
        ]
        if hpas:
            remarks.append(f"HPAs that read it: {', '.join(hpas)}")
    read = await read_pod_causes(api, pod, recent.rows, now)
    return PodReport(pod, view, now, recent.last(now), [*remarks, *read.unread], causes=read.causes)
