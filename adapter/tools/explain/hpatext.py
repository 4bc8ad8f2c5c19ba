"""Parts of an explanation as text: metrics with their pods, causes, fixes, events."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.answers.causes import Cause
from adapter.config.process.output import Mark, Screen, table
from adapter.figures import count
from adapter.tools.client.access import Json
from adapter.tools.explain.hpaparts import MetricLines, PodLine
from adapter.tools.explain.words import NONE

_MARKS: dict[str, Mark] = {"counted": "good", "missing": "bad"}


def metric_lines(metric: MetricLines, screen: Screen) -> list[str]:
    """Return one metric: what it asks for, its pods, and the arithmetic."""
    asks = "no proposal" if metric.asks is None else f"asks for {metric.asks}"
    parts = [metric.name, metric.value, metric.target, asks]
    lines = ["", *screen.wrap("   ".join(part for part in parts if part), "  ", "      ")]
    if metric.error:
        lines += screen.wrap(metric.error, "    ")
    lines += _pods(metric.pods, screen)
    if metric.more:
        lines.append(f"    and {count(metric.more, 'pod')} more with a value")
    if metric.more_left_out:
        lines.append(f"    and {count(metric.more_left_out, 'pod')} more that {_lack(metric)}")
    if metric.arithmetic:
        lines += screen.wrap(f"arithmetic: {metric.arithmetic}", "    ")
    return lines


def _lack(metric: MetricLines) -> str:
    return "does not count" if metric.more_left_out == 1 else "do not count"


def _pods(pods: Sequence[PodLine], screen: Screen) -> list[str]:
    """Return a table of pods, whose last column is wrapped."""
    rows = [(screen.mark(_MARKS.get(p.state, "warning")), p.name, p.value or NONE) for p in pods]
    lines = []
    for pod, line in zip(pods, table([(*row, "|") for row in rows], indent="    "), strict=True):
        start = line.removesuffix("|")
        notes = _notes(pod)
        if not notes:
            lines.append(start.rstrip())
            continue
        column = len(start) if len(start) < screen.width // 2 else 8
        wrapped = screen.wrap(notes, " " * len(start), " " * column)
        lines += [start + wrapped[0][len(start) :], *wrapped[1:]]
    return lines


def _notes(pod: PodLine) -> str:
    about = ", ".join(part for part in (pod.node, *pod.how) if part)
    # The line about what blocks has the whole reason.
    reason = pod.why.reason if pod.why is not None else ""
    return "; ".join(part for part in (about, reason, pod.note) if part)


def fixes(fix: str, then: str = "") -> list[str]:
    """Return the fix, and what to do if it shows no cause."""
    # A command stays on one line, so that it can be pasted.
    lines = [f"      fix: {fix}"] if fix else []
    return [*lines, f"      then, if that shows no cause: {then}"] if then else lines


def cause_lines(causes: Sequence[Cause], screen: Screen) -> list[str]:
    """Return each cause with its fix."""
    lines = []
    for cause in causes:
        text = f"{screen.mark('bad')} {cause.text}; {cause.fix}"
        lines += [*screen.wrap(text, "  ", "      "), *fixes(cause.command)]
    return lines


def events(rows: Sequence[Json], screen: Screen, *, brief: bool = False) -> list[str]:
    """Return the last events; nothing without any.

    Args:
        brief: one line each.
    """
    lines = ["  last events:"] if rows else []
    for row in rows:
        when = "time unknown" if row["age"] is None else f"{row['age']} ago"
        text = f"  {when}   {row['reason']}   {row['message']}"
        wrapped = screen.wrap(text, "  ", "        ")
        if brief and len(wrapped) > 1:
            first = wrapped[0]
            if len(first) > screen.width - 2:
                first = first.rpartition(" ")[0]
            wrapped = [f"{first} …"]
        lines += wrapped
    return lines
