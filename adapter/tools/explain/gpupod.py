"""One ``gpupod`` of the view API: values, reasons and devices of a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.figures import age
from adapter.pipeline.attribution.reasons import message_for_example
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.client.lastingfixes import put_lasting_fixes
from adapter.tools.explain.words import one_line
from apiservice.wire import instant

_LONGEST: Final = 600
"""Characters of a text of the view API."""


class Why(NamedTuple):
    """A reason for a missing value."""

    reason: str
    message: str
    hint: str
    docs: str
    then: str = ""
    """A command for the case that the hint shows no cause."""

    @property
    def text(self) -> str:
        """The reason in one line, with its code."""
        words = self.reason.replace("_", " ")
        if not self.message or self.message == words:
            return self.reason
        return f"{self.reason}: {self.message.removeprefix(f'{words}: ')}"

    @property
    def fix(self) -> str:
        """The hint, or where to read about the reason."""
        return self.hint or (f"see {self.docs}" if self.docs else "")

    def json(self) -> Json:
        """The fields that are known."""
        return {key: value for key, value in self._asdict().items() if value}


def why_of_several(rows: Sequence[tuple[str, Why | None]]) -> Why | None:
    """Return why several pods have no value for one reason: one pod is only an example.

    Args:
        rows: name of each pod, and why it has no value; at least one.
    """
    name, first = rows[0]
    if first is None or all(why is not None and why.message == first.message for _, why in rows):
        return first
    return first._replace(message=message_for_example(first.reason, first.message, name))


def why_of(row: Mapping[str, object]) -> Why | None:
    """Return the reason that an object's fields name; None if there is none."""
    if not row.get("reason"):
        return None
    return Why(*(one_line(row.get(key) or "", _LONGEST) for key in Why._fields))


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod as the view API shows it."""

    body: Json

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.body["metadata"]["name"])

    @property
    def node(self) -> str:
        """The pod's node; empty if it has none."""
        return str(self.body.get("node") or "")

    def value(self, metric: str, promise: str = "") -> Json | None:
        """Return the value of a metric; None if there is none.

        Args:
            promise: of the value, in words; empty for any.
        """
        for row in self.body.get("metrics") or ():
            matches = row.get("metric") == metric and promise in ("", row.get("promise"))
            if matches and "absent" not in row:
                return dict(row)
        return None

    def why(self, metric: str) -> Why | None:
        """Return why a metric has no value: its own reason, or else the pod's."""
        for row in self.body.get("absent") or ():
            if metric in (row.get("metrics") or ()):
                return self._with_hint(why_of(row))
        return self.reason

    @property
    def reason(self) -> Why | None:
        """Why the pod is not measured; None if it is."""
        return why_of(self.body.get("reason") or {})

    @property
    def absent(self) -> set[str]:
        """The metrics without a value."""
        rows = self.body.get("absent") or ()
        return {str(name) for row in rows for name in row.get("metrics") or ()}

    def _with_hint(self, why: Why | None) -> Why | None:
        """The pod's own reason has the hint, if it is the same reason."""
        own = self.reason
        if why is not None and not why.hint and own is not None and own.reason == why.reason:
            return own
        return why

    def devices(self, metric: str = "") -> list[Json]:
        """Return the devices with a part in a metric, or all of them."""
        rows = [dict(row) for row in self.body.get("devices") or ()]
        if not metric:
            return rows
        return [
            row
            for row in rows
            if any(metric in (value.get("metrics") or ()) for value in row.get("values") or ())
        ]

    def how(self, metric: str, now: float, promise: str = "") -> list[str]:
        """Return where a value comes from: devices, attribution, age and window."""
        value = self.value(metric, promise) or {}
        devices = self.devices(metric)
        names = [str(row.get("gpu") or row.get("device")) for row in devices]
        parts = ["+".join(names[:2]) + (f" +{len(names) - 2}" if len(names) > 2 else "")]
        parts.append("+".join(sorted({str(row.get("attribution") or "") for row in devices})))
        moment = instant.read(value.get("time"))
        parts.append("of unknown age" if value and moment is None else "")
        parts.append("" if moment is None else f"{age(now - moment)} old")
        if value.get("precision"):
            parts.append(one_line(value["precision"], _LONGEST))
        elif value.get("windowSeconds"):
            parts.append(f"mean of {value['windowSeconds']} s")
        if value.get("partial"):
            parts.append("partial")
        return [part for part in parts if part]


class PodViews(NamedTuple):
    """The pods that the view API shows, or why it shows none."""

    pods: Mapping[str, PodView]
    problem: ClientError | None = None


NO_GPU_PODS: Final = PodViews({})


async def gpu_pods(api: Api, namespace: str, selector: str) -> PodViews:
    """Return the pods of a selector, by name; a failure is kept for a remark."""
    try:
        rows = await api.list(f"{VIEW}/namespaces/{namespace}/gpupods", labels=selector)
    except ClientError as error:
        return PodViews({}, error)
    await put_lasting_fixes(api, rows)
    return PodViews(_by_name(rows))


def _by_name(rows: Iterable[Json]) -> dict[str, PodView]:
    return {pod.name: pod for pod in map(PodView, rows)}
