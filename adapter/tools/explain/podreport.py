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
from adapter.pipeline.attribution.unnamed import CLAIM_NOT_NAMED
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.client.lastingfixes import put_lasting_fixes
from adapter.tools.client.naming import named
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
        found: dict[str, list[str]] = {}
        for row in self.view.body.get("hpas") or () if self.view is not None else ():
            if row.get("type") == "Pods" and self.view and row.get("metric") in self.view.absent:
                found.setdefault(str(row["metric"]), []).append(str(row.get("name")))
        return found

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
        found = [f"pod {meta['namespace']}/{meta['name']}{place}   {phase}   {style}"]
        found += cause_lines(self.causes, screen)
        if self.view is None:
            found += _unlisted(self.pod, screen)
        else:
            found += _why(self.view.reason, "", screen)
            found += _missed(self.view, self.missed, screen)
            found += _values(self.view, self.now, screen)
            found += _devices(self.view, screen)
            found += _server_page(self.view, self.missed, screen)
            found += _unread(self.view, self.missed, screen)
        for remark in self.remarks:
            found += screen.wrap(f"note: {remark}", "  ", "      ")
        return found + events(self.events, screen)

    def json(self) -> Json:
        """See the port: the object of the view API is the explanation."""
        meta = self.pod["metadata"]
        found: Json = {"namespace": meta["namespace"], "name": meta["name"]}
        found["measured"] = self.measured
        found["missedByHpas"] = self.missed
        if self.view is not None:
            found["gpupod"] = self.view.body
        found["causes"] = [cause.json() for cause in self.causes]
        return found | {"remarks": list(self.remarks), "events": list(self.events)}


def _why(why: Why | None, about: str, screen: Screen) -> list[str]:
    if why is None:
        return []
    found = screen.wrap(f"{screen.mark('bad')} {about}{why.text}", "  ", "      ")
    return [*found, *fixes(why.hint, why.then), *([f"      see {why.docs}"] if why.docs else [])]


def _values(view: PodView, now: float, screen: Screen) -> list[str]:
    rows = []
    for row in view.body.get("metrics") or ():
        name, value = str(row.get("metric")), to_milli(row.get("value"))
        if value is None:
            continue
        unit = str(row.get("unit") or "")
        text = milli(value, unit)
        said = "%" if unit == "percent" else unit.removesuffix("s") if text == "1" else unit
        text = text if unit in ("bytes", "") else f"{text} {said}"
        rows.append(
            (
                screen.mark("good"),
                name,
                text,
                ", ".join(view.how(name, now, str(row.get("promise") or ""))),
            )
        )
    return ["  metrics:", *table(rows, indent="    ")] if rows else []


def _unlisted(pod: Json, screen: Screen) -> list[str]:
    """Return why the view API does not show a pod, as far as its manifest shows it."""
    text, fix = "it holds no GPU, no inference server of it is scraped, or it has finished", ""
    if (pod.get("spec") or {}).get("resourceClaims"):
        cause = REASONS[CLAIM_NOT_NAMED]
        text, fix = f"{CLAIM_NOT_NAMED}: {cause.cause}", cause.fix
    found = screen.wrap(f"{screen.mark('bad')} {text}", "  ", "    ")
    return found + fixes(fix) if fix else found


def _devices(view: PodView, screen: Screen) -> list[str]:
    found = []
    absent = view.absent
    for row in view.devices():
        sharing = row.get("sharing") or {}
        parts = [str(row.get(key) or "") for key in ("gpu", "device", "model", "attribution")]
        if sharing:
            parts.append(f"shared by {sharing.get('sharers', '?')}, policy {sharing.get('policy')}")
        parts.append(f"evidence {row['evidence']}" if row.get("evidence") else "")
        found += screen.wrap("   ".join(part for part in parts if part), "    ", "        ")
        for left in row.get("leftOut") or ():
            # A metric without any value is in a line of its own.
            kept = [name for name in left.get("metrics") or () if name not in absent]
            about = f"without {', '.join(kept)}: "
            found += [f"  {line}" for line in _why(why_of(left), about, screen)] if kept else []
    for device in view.body.get("unhealthyDevices") or ():
        text = f"{screen.mark('bad')} the kubelet reports {device} unhealthy"
        found += screen.wrap(text, "    ", "        ")
    return ["  devices:", *found] if found else []


def _missed(view: PodView, missed: Mapping[str, Sequence[str]], screen: Screen) -> list[str]:
    """Return why HPAs get no value of a metric, unless the pod's own reason says it."""
    found = []
    own = view.reason
    for metric, hpas in sorted(missed.items()):
        why = view.why(metric)
        names = ", ".join(hpas)
        about = f"HPA {names} reads {metric}, which has no value"
        if why is None or (own is not None and why.reason == own.reason):
            found += screen.wrap(f"{screen.mark('bad')} {about}", "  ", "      ")
        else:
            found += _why(why, f"{about}: ", screen)
    return found


def _server_page(view: PodView, missed: Collection[str], screen: Screen) -> list[str]:
    """Return why the pod's server page gives no values, unless another line says it."""
    own = view.reason
    shown = {own.reason} if own is not None else set()
    shown |= {why.reason for why in map(view.why, missed) if why is not None}
    found = []
    for row in view.body.get("absent") or ():
        why = why_of(row)
        if why is not None and why.reason.startswith(_OF_SERVER) and why.reason not in shown:
            found += _why(why, "its server page: ", screen)
    return found


def _unread(view: PodView, missed: Collection[str], screen: Screen) -> list[str]:
    """Return, in one quiet line, the metrics without a value that no HPA reads."""
    own, found = view.reason, []
    for row in view.body.get("absent") or ():
        why = why_of(row)
        names = [str(name) for name in row.get("metrics") or () if name not in missed]
        if why is None or not names or (own is not None and why.reason == own.reason):
            continue
        if why.reason.startswith(_OF_SERVER):
            continue
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        found.append(f"{', '.join(names[:4])}{more} ({why.reason})")
    if not found:
        return []
    lines = screen.wrap(
        f"without a value, and no HPA reads them: {'; '.join(found)}", "  ", "      "
    )
    return [screen.style(line, "dim") for line in lines]


async def explain_pod(api: Api, name: str) -> PodReport:
    """Read a pod and what the view API shows of it; raises ClientError."""
    pod = await named(api, "pod", "/api/v1", "pods", name)
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
        asked = [
            f"{row.get('name')} ({row.get('metric')})"
            for row in rows
            # The others are named with the reason.
            if row.get("type") != "Pods" or row.get("metric") not in view.absent
        ]
        if asked:
            remarks.append(f"HPAs that read it: {', '.join(asked)}")
    read = await read_pod_causes(api, pod, recent.rows, now)
    return PodReport(pod, view, now, recent.last(now), [*remarks, *read.unread], causes=read.causes)
