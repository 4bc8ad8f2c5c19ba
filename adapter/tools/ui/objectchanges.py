"""What happened to pods, HPAs and the lists themselves between two looks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from adapter.answers.judgement.counts import class_of
from adapter.answers.judgement.states import ScalingState
from adapter.figures import count
from adapter.tools.client.tables import ObjectTable
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.hpas import HpaSummary
from adapter.tools.ui.entries import About, EntryLevel, TimelineEntry
from adapter.tools.ui.panels import PanelState
from adapter.tools.ui.trouble import cause, panel_names

_SINGLE: Final = 3
"""Pods of one node that changed for one reason, and are listed each; more are counted."""

PodKey = tuple[str, str]


class PodFact(msgspec.Struct, frozen=True, gc=False):
    """What a change of a pod is recognised by."""

    why: str
    """Empty if the pod has a value."""
    node: str


def pod_facts(table: ObjectTable) -> dict[PodKey, PodFact]:
    """Return the pods of ``gpupods``."""
    by = Columns(table)
    cells = zip(by.rows, by.texts("Why-Not"), by.texts("Node"), strict=True)
    return {(row.namespace, row.name): PodFact(why or "", node or "") for row, why, node in cells}


def pod_changes(
    before: Mapping[PodKey, PodFact], after: Mapping[PodKey, PodFact], now: float
) -> Iterator[TimelineEntry]:
    """Yield which pods lost or got their value."""
    changed: dict[tuple[str, str], list[PodKey]] = defaultdict(list)
    for key, new in after.items():
        old = before.get(key)
        if old is not None and bool(old.why) != bool(new.why):
            changed[new.node, new.why].append(key)
    for (node, why), keys in sorted(changed.items()):
        level, verb = ("warning", "lost") if why else ("good", "got")
        if len(keys) <= _SINGLE:
            for namespace, name in sorted(keys):
                text = f"pod {namespace}/{name} {verb} its value"
                about = About("pod", namespace, name)
                yield TimelineEntry(now, "pod", "warning" if why else "good", text, about, why)
            continue
        text = f"{count(len(keys), 'pod')} of node {node} {verb} their value"
        where = About("node", "", node) if node else None
        yield TimelineEntry(
            now, "pod", "warning" if level == "warning" else "good", text, where, why
        )


def hpa_changes(
    before: Mapping[PodKey, HpaSummary], after: Mapping[PodKey, HpaSummary], now: float
) -> Iterator[TimelineEntry]:
    """Yield which HPAs scale, cannot decide any more, or decide again."""
    for key, new in after.items():
        old = before.get(key)
        if old is None:
            continue
        about, name = About("hpa", *key), "/".join(key)
        if old.desired is not None and new.desired is not None and old.desired != new.desired:
            text = f"{name} scales {old.desired} → {new.desired}"
            yield TimelineEntry(now, "scale", "info", text, about, new.text)
        if old.state is not new.state and "bad" in (old.level, new.level):
            level: EntryLevel = "info" if new.level == "off" else new.level
            text = f"{name} {class_of(new.state).one}"
            yield TimelineEntry(now, "hpa", level, text, about, new.text)
        elif old.state is not new.state is ScalingState.OVERLOADED:
            yield TimelineEntry(now, "hpa", "warning", f"{name} is overloaded", about, new.text)


def panel_changes(
    before: Mapping[str, PanelState], after: Mapping[str, PanelState], now: float
) -> Iterator[TimelineEntry]:
    """Yield which lists cannot be read any more, or can be read again."""
    lost: dict[str, list[str]] = defaultdict(list)
    back: list[str] = []
    for name, new in after.items():
        old = before.get(name)
        if old is None or new.status == "waiting" or (old.status, new.status) == ("waiting", "ok"):
            continue
        if new.status not in (old.status, "ok"):
            lost[cause(new)].append(name)
        elif old.status not in ("ok", "waiting") and new.status == "ok":
            back.append(name)
    for why, names in lost.items():
        yield TimelineEntry(now, "panel", "bad", f"{panel_names(names)} cannot be read", None, why)
    if back:
        yield TimelineEntry(now, "panel", "good", f"{panel_names(back)} can be read again")
