"""The explanation of a pod: the value of each metric, its devices, and why a value is missing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from adapter.client.access import Api, Json
from adapter.client.errors import VIEW, ClientError
from adapter.client.naming import named
from adapter.client.output import Screen, table
from adapter.explain.events import events_of
from adapter.explain.gpupod import PodView, Why, why_of
from adapter.explain.hpatext import events
from adapter.explain.words import milli, to_milli


@dataclass(frozen=True, slots=True)
class PodReport:
    """Implements :class:`adapter.client.command.ToolReport`."""

    pod: Json
    view: PodView | None
    """None if the view API does not show the pod: it holds no GPU, and no server is scraped."""
    now: float
    events: Sequence[Json] = ()
    remarks: Sequence[str] = ()

    @property
    def status(self) -> int:
        """See the port: 1 if the pod is not measured."""
        return 0 if self.view is not None and self.view.body.get("measured") else 1

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        meta, phase = self.pod["metadata"], (self.pod.get("status") or {}).get("phase", "")
        verdict = "MEASURED" if not self.status else "NOT MEASURED"
        style = screen.style(verdict, "red" if self.status else "green")
        node = (self.pod.get("spec") or {}).get("nodeName")
        place = f" on {node}" if node else ""
        found = [f"pod {meta['namespace']}/{meta['name']}{place}   {phase}   {style}"]
        if self.view is None:
            text = "it holds no GPU, no inference server of it is scraped, or it has finished"
            found += screen.wrap(f"{screen.mark('bad')} {text}", "  ", "    ")
        else:
            found += _why(self.view.reason, "", screen)
            found += _values(self.view, self.now, screen)
            found += _devices(self.view, screen)
            found += _absent(self.view, screen)
        for remark in self.remarks:
            found += screen.wrap(f"note: {remark}", "  ", "      ")
        return found + events(self.events, screen)

    def json(self) -> Json:
        """See the port: the object of the view API is the explanation."""
        meta = self.pod["metadata"]
        found: Json = {"namespace": meta["namespace"], "name": meta["name"]}
        found["measured"] = not self.status
        if self.view is not None:
            found["gpupod"] = self.view.body
        return found | {"remarks": list(self.remarks), "events": list(self.events)}


def _why(why: Why | None, about: str, screen: Screen) -> list[str]:
    if why is None:
        return []
    found = screen.wrap(f"{screen.mark('bad')} {about}{why.text}", "  ", "      ")
    if why.hint:
        found.append(f"      fix: {why.hint}")
    return found + ([f"      see {why.docs}"] if why.docs else [])


def _values(view: PodView, now: float, screen: Screen) -> list[str]:
    rows = []
    for row in view.body.get("metrics") or ():
        name, value = str(row.get("metric")), to_milli(row.get("value"))
        if value is None:
            continue
        unit = str(row.get("unit") or "")
        text = milli(value, unit)
        text = text if unit in ("bytes", "") else f"{text} {'%' if unit == 'percent' else unit}"
        rows.append((screen.mark("good"), name, text, ", ".join(view.how(name, now))))
    return ["  metrics:", *table(rows, indent="    ")] if rows else []


def _devices(view: PodView, screen: Screen) -> list[str]:
    found = []
    for row in view.devices():
        sharing = row.get("sharing") or {}
        parts = [str(row.get(key) or "") for key in ("gpu", "device", "model", "attribution")]
        if sharing:
            parts.append(f"shared by {sharing.get('sharers', '?')}, policy {sharing.get('policy')}")
        parts.append(f"evidence {row['evidence']}" if row.get("evidence") else "")
        found += screen.wrap("   ".join(part for part in parts if part), "    ", "        ")
        for left in row.get("leftOut") or ():
            names = ", ".join(left.get("metrics") or ())
            found += [f"  {line}" for line in _why(why_of(left), f"without {names}: ", screen)]
    return ["  devices:", *found] if found else []


def _absent(view: PodView, screen: Screen) -> list[str]:
    found = []
    own = view.reason
    for row in view.body.get("absent") or ():
        why = why_of(row)
        if why is None or (own is not None and why.reason == own.reason):
            continue
        names = [str(name) for name in row.get("metrics") or ()]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        text = f"{screen.mark('warning')} {', '.join(names[:4])}{more}: {why.text}"
        found += screen.wrap(text, "    ", "        ")
    return ["  without a value:", *found] if found else []


async def explain_pod(api: Api, name: str) -> PodReport:
    """Read a pod and what the view API shows of it; raises ClientError."""
    pod = await named(api, "pod", "/api/v1", "pods", name)
    namespace = str(pod["metadata"]["namespace"])
    path = f"{VIEW}/namespaces/{quote(namespace)}/gpupods/{quote(name, safe='')}"
    view: PodView | None = None
    try:
        view = PodView(await api.get(path))
    except ClientError as error:
        if error.status != 404 or "does not serve" in str(error):
            raise
    recent = await events_of(api, "Pod", name, namespace)
    now = time.time()
    remarks = []
    if recent.problem is not None:
        remarks.append(f"events are not shown: {recent.problem.brief}")
    if view is not None:
        asked = [f"{row.get('name')} ({row.get('metric')})" for row in view.body.get("hpas") or ()]
        if asked:
            remarks.append(f"HPAs that read it: {', '.join(asked)}")
    return PodReport(pod, view, now, recent.last(now), remarks)
