"""The report as text: sections, what was found with its fix, and how much is fine."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.config.process.output import Mark, Screen
from adapter.figures import count
from adapter.tools.doctor.model import CheckSection, DoctorCheck, Finding, Severity
from adapter.tools.overview.groups import CauseGroup, CauseRow, by_cause

if TYPE_CHECKING:
    from adapter.tools.doctor.runner import DoctorReport, Result

_SHOWN: Final = 5
"""Findings of one check that are printed; JSON has all."""
_INDENT: Final = "    "
_PREFIXES: Final[Mapping[str, str]] = {"found": "expected: ", "could not check": "not checked: "}
"""A title says what is true of a cluster without the fault."""
_WORDS: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"(?:\\.|[^"\\])*")+""")


def report(report: DoctorReport, screen: Screen) -> list[str]:
    """Return the lines of a report, in as much detail as the report asks for."""
    shared = _shared(report.results)
    seen: dict[str, str] = {}
    blocks = [screen.wrap(report.advice)] if report.advice else []
    well: list[str] = []
    for section in CheckSection:
        results = [
            each
            for each in report.results
            if each.check.section is section
            and each.outcome != "does not apply"
            and (each.findings or _cause(each) not in shared)
        ]
        told = [each for each in results if report.verbose or each.outcome != "fine"]
        fine = count(len(results) - len(told), "other check" if told else "check")
        summary = f"{fine} fine" if len(told) < len(results) and not report.quiet else ""
        if told:
            block = [screen.style(section.value, "bold")]
            for each in told:
                block += _check(each, screen, shared, seen)
            blocks.append(block + ([f"{screen.mark('good')} {summary}"] if summary else []))
        elif summary:
            well.append(f"{screen.mark('good')} {section.value}: {summary}")
    blocks += [well, list(_unchecked(shared, screen, seen))]
    if not report.quiet:
        blocks.append(list(_summary(report, screen)))
    lines = [line for block in filter(None, blocks) for line in ("", *block)]
    return lines[1:]


def _cause(result: Result) -> tuple[str, str]:
    return result.why, result.command


def _shared(results: Sequence[Result]) -> dict[tuple[str, str], list[str]]:
    """Return the causes for which several checks could not check, with the ids of the checks."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.why and result.outcome != "does not apply":
            found.setdefault(_cause(result), []).append(result.check.id)
    return {cause: ids for cause, ids in found.items() if len(ids) > 1}


def _unchecked(
    shared: Mapping[tuple[str, str], Sequence[str]], screen: Screen, seen: dict[str, str]
) -> Iterator[str]:
    if shared:
        yield screen.style("could not check", "bold")
    for (why, following), ids in shared.items():
        yield f"{screen.mark('warning')} {len(ids)} checks, for one reason"
        yield from screen.wrap(", ".join(ids), _INDENT)
        yield from screen.wrap(f"could not check: {why}", _INDENT)
        yield from _next_step(ids[0], following, screen, seen)


def _check(
    result: Result, screen: Screen, shared: Collection[tuple[str, str]], seen: dict[str, str]
) -> Iterator[str]:
    check = result.check
    said = _PREFIXES.get(result.outcome, "")
    yield from screen.wrap(f"{screen.mark(_mark(result))} {check.id} {said}{check.title}")
    if result.why and _cause(result) not in shared:
        yield from screen.wrap(f"could not check: {result.why}", _INDENT)
        yield from _next_step(check.id, result.command, screen, seen)
    rows = [CauseRow(each.subject.rpartition(" ")[2], each.message) for each in result.findings]
    groups = [part for group in by_cause(rows) for part in _parts(group)]
    for group in groups[:_SHOWN]:
        yield from _findings(group, [result.findings[at] for at in group.rows], screen)
    rest = sum(group.count for group in groups[_SHOWN:])
    if rest > 0:
        yield f"{_INDENT}and {rest} more: see -o json"


def _parts(group: CauseGroup) -> list[CauseGroup]:
    """Return a group that a list shows as one, or each of its rows."""
    return [group] if group.shown else [replace(group, rows=(at,)) for at in group.rows]


def _findings(group: CauseGroup, findings: Sequence[Finding], screen: Screen) -> Iterator[str]:
    """Yield one finding, or several with one cause, with the first one's fix."""
    first = findings[0]
    text, about = f"{first.subject}: {first.message}", "fix"
    if group.count > 1:
        kinds = {each.subject.partition(" ")[0] for each in findings}
        kind = kinds.pop() if len(kinds) == 1 else "object"
        noun = f"{'HPA' if kind == 'hpa' else kind}s"
        text = f"{group.count} {noun} ({group.named()}): {group.text}"
        if any((each.fix, each.command) != (first.fix, first.command) for each in findings):
            about = f"fix of {first.subject}"
    yield from screen.wrap(text, _INDENT)
    yield from screen.wrap(f"{about}: {first.fix}", _INDENT + "  ")
    if first.command:
        yield from command(first.command, _INDENT + "  ", screen.width)


def _next_step(
    identity: str, following: str, screen: Screen, seen: dict[str, str]
) -> Iterator[str]:
    if not following:
        return
    first = seen.setdefault(following, identity)
    if first == identity:
        yield from command(following, _INDENT + "  ", screen.width)
    else:
        yield f"{_INDENT}  the same command as for {first}"


def _mark(result: Result) -> Mark:
    if result.severity is Severity.ERROR:
        return "bad"
    return "good" if result.outcome == "fine" else "warning"


def command(text: str, indent: str, width: int) -> Iterator[str]:
    """Yield a command that can be pasted: broken at blanks outside quotes, with backslashes."""
    words = _WORDS.findall(text)
    line = indent + "$"
    for word in words:
        if len(line) + len(word) + 3 > width and line.strip() != "$":
            yield line + " \\"
            line = indent + "   "
        line += f" {word}"
    yield line


def _summary(report: DoctorReport, screen: Screen) -> Iterator[str]:
    counts = report.counts()
    for note in report.notes:
        yield from screen.wrap(f"note: {note}")
    parts = [
        f"{counts['fine']} checks fine",
        count(counts["errors"], "error"),
        count(counts["warnings"], "warning"),
    ]
    if counts["unknown"]:
        parts.append(f"{counts['unknown']} could not be checked")
    if counts["skipped"]:
        parts.append(f"{counts['skipped']} do not apply")
    yield from screen.wrap(f"{', '.join(parts)}; {report.source}")
    first = next((each.check.id for each in report.results if each.findings), "")
    if first:
        yield f"More about a check: gpu-metrics-adapter doctor --explain {first}"
    if not report.verbose and counts["fine"]:
        yield "Each check: gpu-metrics-adapter doctor -v"


def explanation(check: DoctorCheck, screen: Screen) -> list[str]:
    """Return the documentation of a check."""
    lines = [screen.style(f"{check.id} ({check.section}, {check.severity})", "bold")]
    lines += screen.wrap(f"Checks that {check.title}.", "", "")
    for paragraph in check.text.split("\n\n"):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), screen.width)]
    return [*lines, "", f"See {check.docs}"]
