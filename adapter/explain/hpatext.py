"""The explanation of an HPA as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.client.access import Json
from adapter.client.output import Mark, Screen, table
from adapter.explain.words import NONE, count

if TYPE_CHECKING:
    from adapter.explain.hpareport import HpaReport, MetricLines, PodLine

_MARKS: dict[str, Mark] = {"counted": "good", "missing": "bad"}


def lines(report: HpaReport, screen: Screen) -> list[str]:
    """Return the whole explanation."""
    size = "size not known" if report.replicas is None else count(report.replicas, "replica")
    verdict = screen.style(report.verdict, "red" if report.blocks else "green")
    head = f"HPA {report.namespace}/{report.name} → {report.target}"
    found = [f"{head}   {size}, {report.low}..{report.high}   {verdict}"]
    if report.why:
        found += screen.wrap(report.why, "  ")
    for metric in report.metrics:
        found += _metric(metric, screen)
    found += [""] if report.metrics else []
    for block in report.blocks:
        found += screen.wrap(f"{screen.mark('bad')} blocks: {block.text}", "  ", "      ")
        found += _fix(block.fix)
    for wait in report.waits:
        found += screen.wrap(f"{screen.mark('warning')} waits: {wait}", "  ", "      ")
    found += _controller(report, screen)
    for remark in report.remarks:
        found += screen.wrap(f"note: {remark}", "  ", "      ")
    return found + events(report.events, screen)


def _metric(metric: MetricLines, screen: Screen) -> list[str]:
    asks = "no proposal" if metric.asks is None else f"asks for {metric.asks}"
    parts = [metric.name, metric.value, metric.target, asks]
    found = ["", "  " + "   ".join(part for part in parts if part)]
    if metric.error:
        found += screen.wrap(metric.error, "    ")
    rows = [_pod(pod, screen) for pod in metric.pods]
    found += table(rows, indent="    ")
    if metric.more:
        found.append(f"    and {count(metric.more, 'pod')} more with a value")
    if metric.arithmetic:
        found += screen.wrap(f"arithmetic: {metric.arithmetic}", "    ")
    return found


def _pod(pod: PodLine, screen: Screen) -> tuple[str, ...]:
    mark = screen.mark(_MARKS.get(pod.state, "warning"))
    about = ", ".join(part for part in (pod.node, *pod.how) if part)
    reason = pod.why.text if pod.why is not None else ""
    notes = "; ".join(part for part in (about, reason, pod.note) if part)
    return mark, pod.name, pod.value or NONE, notes


def _fix(fix: str) -> list[str]:
    # A command stays on one line, so that it can be pasted.
    return [f"      fix: {fix}"] if fix else []


def _controller(report: HpaReport, screen: Screen) -> list[str]:
    """Return what the controller's own status says; the words of the API are kept."""
    if not report.status_conditions:
        return []
    desired = "" if report.status_desired is None else f"desired {report.status_desired}; "
    rows = [f"{row['type']} {row['status']} {row['reason']}" for row in report.status_conditions]
    return screen.wrap(f"status: {desired}{', '.join(rows)}", "  ", "      ")


def events(rows: list[Json] | tuple[Json, ...] | object, screen: Screen) -> list[str]:
    """Return the last events; nothing without any."""
    if not isinstance(rows, (list, tuple)) or not rows:
        return []
    shown = [f"  {row['age']} ago   {row['reason']}   {row['message']}" for row in rows]
    return [
        "  last events:",
        *(line for row in shown for line in screen.wrap(row, "  ", "        ")),
    ]
