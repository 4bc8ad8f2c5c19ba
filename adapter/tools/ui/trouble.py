"""What the verdict adds about lists that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from adapter.tools.overview.verdict import ClusterVerdict, VerdictLevel
from adapter.tools.ui.panels import (
    EVENTS,
    GPUS,
    HEADROOM,
    HPAS,
    NODES,
    PODS,
    POOLS,
    WORKLOADS,
    PanelState,
)

_NAMES: Final = {
    GPUS: "GPUs",
    NODES: "GPU nodes",
    POOLS: "pools",
    HEADROOM: "headroom",
    PODS: "GPU pods",
    WORKLOADS: "workloads",
    HPAS: "HPAs",
    EVENTS: "events",
}
_COUNTED: Final = (HPAS, PODS, GPUS, NODES)
"""Panels without which the verdict says less."""
_REQUEST: Final = re.compile(r"(?:GET|POST) /\S*: ")


class SharedCause(NamedTuple):
    """The one cause for which no list can be read."""

    cause: str
    detail: str
    """The server, and the next step."""


def outage(panels: Sequence[PanelState]) -> SharedCause | None:
    """Return why no list can be read, if the cause is the same for all lists."""
    causes = {cause(panel) for panel in panels}
    if len(panels) < 2 or len(causes) != 1 or any(panel.status != "failed" for panel in panels):
        return None
    short, _, detail = causes.pop().partition("; ")
    return SharedCause(short, detail)


def cause(panel: PanelState) -> str:
    """Return why a list cannot be read, without the request."""
    return _REQUEST.sub("", panel.message, count=1)


def panel_rows(panels: Sequence[PanelState]) -> list[dict[str, Any]]:
    """Return the part ``panels``. What the verdict says about all lists is not repeated."""
    rows = [panel.json() for panel in panels]
    if outage(panels) is not None:
        rows = [row | {"message": "not available, see above"} for row in rows]
    return rows


def panel_names(panels: Sequence[str]) -> str:
    """Return the names of lists as a text: GPUs, HPAs and events."""
    names = [_NAMES[panel] for panel in panels]
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else [*names])


def with_trouble(verdict: ClusterVerdict, panels: Sequence[PanelState]) -> ClusterVerdict:
    """Return a verdict that names the lists that cannot be read, and which are not good then."""
    wrong = [panel for panel in panels if panel.status not in ("ok", "waiting")]
    if not wrong:
        return verdict
    if len(wrong) == len(panels):
        lead, whole = wrong[0], outage(panels)
        why = lead.message if whole is None else whole.cause
        old = "" if lead.updated is None else " The page shows what was read before."
        return replace(verdict, level="bad", text=f"The cluster cannot be read: {why}.{old}")
    names = panel_names([panel.panel for panel in wrong if panel.panel in _COUNTED])
    if not names:
        return verdict
    level: VerdictLevel = "bad" if verdict.level == "bad" else "warning"
    text = f"{names[0].upper()}{names[1:]} cannot be read."
    verdict_text = verdict.text if verdict.level not in ("waiting", "empty") else ""
    return replace(verdict, level=level, text=f"{verdict_text} {text}".strip())
