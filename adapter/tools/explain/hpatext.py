"""The explanation of an HPA as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adapter.answers.causes import Cause
from adapter.answers.judgement.states import HpaJudgement, ScalingState
from adapter.config.process.output import Colour, Mark, Screen, table
from adapter.figures import count
from adapter.tools.client.access import Json
from adapter.tools.explain.words import NONE

if TYPE_CHECKING:
    from adapter.tools.explain.hpareport import HpaReport, MetricLines, PodLine

_COLOURS: dict[str, Colour] = {"good": "green", "warning": "yellow", "bad": "red"}
_MARKS: dict[str, Mark] = {"counted": "good", "missing": "bad"}


def lines(report: HpaReport, screen: Screen) -> list[str]:
    """Return the whole explanation."""
    size = "size not known" if report.replicas is None else count(report.replicas, "replica")
    state = report.judgement
    colour = _COLOURS.get("" if state is None else state.level)
    verdict = screen.style(report.verdict, colour) if colour else report.verdict
    head = f"HPA {report.namespace}/{report.name} → {report.target}"
    found = [f"{head}   {size}, {report.low}..{report.high}   {verdict}"]
    if state is not None:
        found += screen.wrap(f"state: {_state(state)}", "  ", "      ")
    if report.why:
        found += screen.wrap(report.why, "  ")
    for metric in report.metrics:
        found += _metric(metric, screen)
    found += [""] if report.metrics else []
    for block in report.blocks:
        found += screen.wrap(f"{screen.mark('bad')} blocks: {block.text}", "  ", "      ")
        found += fixes(block.fix, block.then)
    for wait in report.waits:
        found += screen.wrap(f"{screen.mark('warning')} waits: {wait.text}", "  ", "      ")
        found += fixes(wait.fix)
    for row in report.headroom:
        found += screen.wrap(f"headroom: {row.text}", "  ", "      ")
    found += _controller(report, screen)
    for remark in report.remarks:
        found += screen.wrap(f"note: {remark}", "  ", "      ")
    return found + events(report.events, screen, brief=True)


def _state(found: HpaJudgement) -> str:
    if found.state is ScalingState.STUCK:
        return f"stuck: {found.by}"  # what blocks is below in full
    named = found.text.startswith(found.state.value)
    return found.text if named else f"{found.state.value}: {found.text}"


def _metric(metric: MetricLines, screen: Screen) -> list[str]:
    asks = "no proposal" if metric.asks is None else f"asks for {metric.asks}"
    parts = [metric.name, metric.value, metric.target, asks]
    found = ["", *screen.wrap("   ".join(part for part in parts if part), "  ", "      ")]
    if metric.error:
        found += screen.wrap(metric.error, "    ")
    found += _pods(metric.pods, screen)
    if metric.more:
        found.append(f"    and {count(metric.more, 'pod')} more with a value")
    if metric.more_left_out:
        found.append(f"    and {count(metric.more_left_out, 'pod')} more that {_lack(metric)}")
    if metric.arithmetic:
        found += screen.wrap(f"arithmetic: {metric.arithmetic}", "    ")
    return found


def _lack(metric: MetricLines) -> str:
    return "does not count" if metric.more_left_out == 1 else "do not count"


def _pods(pods: Sequence[PodLine], screen: Screen) -> list[str]:
    """Return a table of pods, whose last column is wrapped."""
    rows = [(screen.mark(_MARKS.get(p.state, "warning")), p.name, p.value or NONE) for p in pods]
    found = []
    for pod, line in zip(pods, table([(*row, "|") for row in rows], indent="    "), strict=True):
        start = line.removesuffix("|")
        notes = _notes(pod)
        if not notes:
            found.append(start.rstrip())
            continue
        column = len(start) if len(start) < screen.width // 2 else 8
        wrapped = screen.wrap(notes, " " * len(start), " " * column)
        found += [start + wrapped[0][len(start) :], *wrapped[1:]]
    return found


def _notes(pod: PodLine) -> str:
    about = ", ".join(part for part in (pod.node, *pod.how) if part)
    # The line about what blocks has the whole reason.
    reason = pod.why.reason if pod.why is not None else ""
    return "; ".join(part for part in (about, reason, pod.note) if part)


def fixes(fix: str, then: str = "") -> list[str]:
    """Return the fix, and what to do if it shows no cause."""
    # A command stays on one line, so that it can be pasted.
    found = [f"      fix: {fix}"] if fix else []
    return [*found, f"      then, if that shows no cause: {then}"] if then else found


def cause_lines(causes: Sequence[Cause], screen: Screen) -> list[str]:
    """Return each cause with its fix."""
    found = []
    for cause in causes:
        text = f"{screen.mark('bad')} {cause.text}; {cause.fix}"
        found += [*screen.wrap(text, "  ", "      "), *fixes(cause.command)]
    return found


def _controller(report: HpaReport, screen: Screen) -> list[str]:
    """Return what the controller's own status says; the words of the API are kept."""
    if not report.status_conditions:
        return []
    desired = "" if report.status_desired is None else f"desired {report.status_desired}; "
    rows = [f"{row['type']} {row['status']} {row['reason']}" for row in report.status_conditions]
    return screen.wrap(f"status: {desired}{', '.join(rows)}", "  ", "      ")


def events(rows: Sequence[Json], screen: Screen, *, brief: bool = False) -> list[str]:
    """Return the last events; nothing without any.

    Args:
        brief: one line each.
    """
    found = ["  last events:"] if rows else []
    for row in rows:
        when = "time unknown" if row["age"] is None else f"{row['age']} ago"
        text = f"  {when}   {row['reason']}   {row['message']}"
        lines = screen.wrap(text, "  ", "        ")
        if brief and len(lines) > 1:
            first = lines[0]
            if len(first) > screen.width - 2:
                first = first.rpartition(" ")[0]
            lines = [f"{first} …"]
        found += lines
    return found
