"""The report of a replay as one HTML file: plots, the table, what it rests on, and the manifest.

The file contains no script and refers to nothing outside of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from adapter.figures import number
from adapter.tools.replay.nodereport import NODE_HEADER, node_basis, node_rows
from adapter.tools.replay.options import FORECAST
from adapter.tools.replay.plots import Line, Mark, over_time, scatter
from adapter.tools.replay.queuereport import QUEUE_HEADER, QUEUE_TITLE, queue_basis, queue_rows
from adapter.tools.replay.report import FAILED, HEADER, ReplayReport, ReportRow
from adapter.tools.replay.simulation import Moment
from adapter.tools.replay.study import VariantRun

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2024; --dim: #60646c; --line: #d9d9e0; --paper: #fff;
  --recorded: #60646c; --now: #0d74ce; --other: #ab4aba; --limit: #ce2c31; --good: #218358;
  --failed: #ad5700; }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --dim: #b0b4ba; --line: #363a3f;
  --paper: #111113; --recorded: #b0b4ba; --now: #70b8ff; --other: #d19dff; --limit: #ff9592;
  --good: #3dd68c; --failed: #ffa057; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--dim); } svg .name { fill: var(--ink); }
.grid { stroke: var(--line); } path { fill: none; stroke-width: 1.5; }
.recorded { stroke: var(--recorded); color: var(--recorded); } .now { stroke: var(--now); color: var(--now); }
.other { stroke: var(--other); color: var(--other); } .limit { stroke: var(--limit); color: var(--limit); stroke-dasharray: 6 4; }
.chosen { stroke: var(--good); color: var(--good); }
.failed { stroke: var(--failed); color: var(--failed); stroke-dasharray: 8 3; }
.target { stroke: var(--dim); color: var(--dim); stroke-dasharray: 2 3; }
circle { fill: currentColor; stroke: none; }
.legend span { margin-right: 1.2rem; white-space: nowrap; } .legend span::before { content: "\\25A0\\00A0"; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--dim); font-weight: 600; } th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
td:last-child { white-space: normal; min-width: 9rem; }
tr.best td { font-weight: 600; } pre { overflow-x: auto; padding: 1rem; border: 1px solid var(--line); border-radius: 6px; }
"""  # noqa: E501 - a style sheet
_LINES: Final = 3
"""Lines of a plot; more are hard to distinguish."""
_AROUND: Final = 1800.0
"""Seconds before and after a failure that its plot shows, at least."""


def webpage(report: ReplayReport) -> str:
    """Return the whole file."""
    first, *more = report.head()
    title = escape(first)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Replay: {title}</title>\n<style>{_STYLE}</style>\n"
        f"<h1>{title}</h1>\n<p>{escape('; '.join(more))}</p>\n"
        f"{''.join(_sections(report))}</html>\n"
    )


def _sections(report: ReplayReport) -> Iterator[str]:
    recommended = report.judgement.recommended
    if recommended is not None:
        yield f"<p><strong>Recommended: {escape(recommended.variant.text)}.</strong></p>\n"
    elif report.judgement.doubts:
        yield "<h2>No recommendation</h2>\n" + _list(report.judgement.doubts)
    yield "<h2>Settings compared</h2>\n" + _table(HEADER, report.rows())
    yield from _plots(report)
    yield "<h2>What this rests on</h2>\n" + _list(report.basis())
    yield from _nodes(report)
    yield from _queue(report)
    if recommended is not None:
        manifest = escape(report.yaml(recommended.variant.spec))
        yield f"<h2>Manifest to apply, or to commit</h2>\n<pre>{manifest}</pre>\n"


def _nodes(report: ReplayReport) -> Iterator[str]:
    """Yield the node pool: its table, a plot, and what it rests on."""
    nodes = report.study.nodes
    if nodes is None:
        return
    rows = [ReportRow(cells) for cells in node_rows(nodes, report.gpu_hour)]
    yield "<h2>Nodes, with the present settings</h2>\n" + _table(NODE_HEADER, rows)
    marks = [
        Mark(
            run.tried.text,
            "now" if run.tried.kind == FORECAST else "other",
            run.gpu_seconds / 3600,
            run.waits.seconds / 60,
        )
        for run in nodes.runs
    ]
    title = "Cost of nodes, and waiting for them"
    plot = scatter(title, marks, "GPU-hours of nodes", "minutes that pods waited")
    yield _figure(title, plot, ()) + _list(node_basis(nodes))


def _queue(report: ReplayReport) -> Iterator[str]:
    """Yield the queue of the servers."""
    queue = report.study.queue
    if queue is not None:
        rows = [ReportRow(cells) for cells in queue_rows(queue)]
        yield f"<h2>{QUEUE_TITLE}</h2>\n" + _table(QUEUE_HEADER, rows) + _list(queue_basis(queue))


def _table(header: Sequence[str], table_rows: Sequence[ReportRow]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    rows = []
    for cells, best in table_rows:
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr{' class=best' if best else ''}>{row}</tr>")
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>\n'


def _plots(report: ReplayReport) -> Iterator[str]:
    study = report.study
    shown = _shown_runs(report)
    replicas = [
        Line("recorded", "recorded", [(m.time, float(m.replicas)) for m in study.recorded_moments]),
        *(
            Line(run.variant.text, style, [(m.time, float(m.replicas)) for m in run.moments])
            for run, style in shown
        ),
    ]
    yield _figure("Replicas", over_time("Replicas over time", replicas), replicas)
    target = study.metric.target.milli / 1000
    levels = (
        ("the HPA's target", "target", target),
        ("the limit", "limit", study.limit / 1000),
    )
    loads = [
        Line("recorded", "recorded", _loads(study.recorded_moments)),
        *(Line(run.variant.text, style, _loads(run.moments)) for run, style in shown),
    ]
    limit = number(study.limit / 1000)
    note = f"{study.metric.name}; dotted: the target, {number(target)}; dashed: the limit, {limit}"
    yield _figure("Load of a pod", over_time("Load of a pod over time", loads, levels), loads, note)
    yield from _failure(report)
    if study.gpus:
        marks = [
            Mark(text, style, outcome.gpu_seconds / 3600, outcome.over / 60)
            for text, style, outcome in (
                ("recorded", "recorded", study.recorded),
                *((run.variant.text, _style(run, report), run.outcome) for run in study.runs),
            )
        ]
        plot = scatter("Cost and time over the limit", marks, "GPU-hours", "minutes over the limit")
        yield _figure("Cost and time over the limit", plot, ())


def _failure(report: ReplayReport) -> Iterator[str]:
    """Yield the plot of the replicas around the failure, with the present settings."""
    now, outage = report.study.runs[0], report.study.outage
    if outage is None or now.failed is None:
        return
    around = max(_AROUND, outage.end - outage.start)

    def line(name: str, style: str, moments: Sequence[Moment]) -> Line:
        near = (m for m in moments if outage.start - around <= m.time <= outage.end + around)
        return Line(name, style, [(m.time, float(m.replicas)) for m in near])

    lines = [
        line("now", "now", now.moments),
        line(f"now, {FAILED}", "failed", now.failed.moments),
    ]
    start, end = (f"{datetime.fromtimestamp(at, UTC):%F %T}" for at in (outage.start, outage.end))
    note = f"the failure is from {start} to {end} UTC, until the HPA sees values again"
    yield _figure("Replicas around the failure", over_time("Replicas", lines), lines, note)


def _loads(moments: Sequence[Moment]) -> list[tuple[float, float | None]]:
    return [(m.time, None if m.load is None else m.load / 1000) for m in moments]


def _shown_runs(report: ReplayReport) -> list[tuple[VariantRun, str]]:
    """Return the runs of the plots over time: the present settings, and the best others."""
    best = report.judgement.recommended or report.judgement.best
    others = [run for run in report.study.runs[1:] if run is best or best is None]
    runs = [report.study.runs[0], *others[: _LINES - 2]]
    return [(run, _style(run, report)) for run in runs]


def _style(run: VariantRun, report: ReplayReport) -> str:
    """Return the style of a run, which is the same in every plot."""
    if run is report.study.runs[0]:
        return "now"
    return "chosen" if run is report.judgement.recommended else "other"


def _figure(title: str, plot: str, lines: Sequence[Line], note: str = "") -> str:
    if not plot:
        return f"<h2>{title}</h2>\n<p>Too little data for a plot.</p>\n"
    legend = "".join(f'<span class="{line.style}">{escape(line.name)}</span>' for line in lines)
    texts = f'<p class="legend">{legend}</p>' if legend else ""
    texts += f"<p>{escape(note)}</p>" if note else ""
    return f"<h2>{title}</h2>\n{plot}\n{texts}\n"


def _list(texts: Sequence[str] | Iterator[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>\n"
