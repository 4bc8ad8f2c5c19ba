"""What the verdict adds about lists that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adapter.fleet.verdict import ClusterVerdict, VerdictLevel
from adapter.ui.panels import EVENTS, GPUS, HPAS, PODS, WORKLOADS, PanelState

_NAMES: Final = {
    GPUS: "GPUs",
    PODS: "GPU pods",
    WORKLOADS: "workloads",
    HPAS: "HPAs",
    EVENTS: "events",
}
_COUNTED: Final = (HPAS, PODS, GPUS)
"""Panels without which the verdict says less."""


def with_trouble(verdict: ClusterVerdict, panels: Sequence[PanelState]) -> ClusterVerdict:
    """Return a verdict that names the lists that cannot be read, and which are not good then."""
    wrong = [panel for panel in panels if panel.status not in ("ok", "waiting")]
    if not wrong:
        return verdict
    if len(wrong) == len(panels):
        lead = wrong[0]
        old = "" if lead.updated is None else " The page shows what was read before."
        return replace(
            verdict, level="bad", text=f"The cluster cannot be read: {lead.message}.{old}"
        )
    names = [_NAMES[panel.panel] for panel in wrong if panel.panel in _COUNTED]
    if not names:
        return verdict
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    level: VerdictLevel = "bad" if verdict.level == "bad" else "warning"
    text = f"{listed[0].upper()}{listed[1:]} cannot be read."
    said = verdict.text if verdict.level not in ("waiting", "empty") else ""
    return replace(verdict, level=level, text=f"{said} {text}".strip())
