"""The report as text: sections, one line a check, findings with their fix."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from adapter.client.output import Mark, Screen
from adapter.doctor.model import DoctorCheck, Severity
from adapter.figures import count

if TYPE_CHECKING:
    from adapter.doctor.runner import DoctorReport, Result

_SHOWN: Final = 5
"""Findings of one check that are printed; JSON has all."""
_INDENT: Final = "    "
_PREFIXES: Final[Mapping[str, str]] = {"found": "expected: ", "could not check": "not checked: "}
"""A title says what is true of a cluster without the fault."""
_WORDS: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"(?:\\.|[^"\\])*")+""")


def report(report: DoctorReport, screen: Screen) -> list[str]:
    """Return the lines of a report."""
    lines = screen.wrap(report.advice) if report.advice else []
    section = None
    seen: dict[str, str] = {}
    shared = _shared(report.results)
    for result in report.results:
        if result.outcome == "does not apply":
            continue
        if _cause(result) in shared and not result.findings:
            continue
        if result.check.section is not section:
            section = result.check.section
            lines += ([""] if lines else []) + [screen.style(section.value, "bold")]
        lines += _check(result, screen, shared, seen)
    return [*lines, *_unchecked(shared, screen, seen), "", *_summary(report, screen)]


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
        yield from ("", screen.style("could not check", "bold"))
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
    for finding in result.findings[:_SHOWN]:
        yield from screen.wrap(f"{finding.subject}: {finding.message}", _INDENT)
        yield from screen.wrap(f"fix: {finding.fix}", _INDENT + "  ")
        if finding.command:
            yield from command(finding.command, _INDENT + "  ", screen.width)
    rest = len(result.findings) - _SHOWN
    if rest > 0:
        yield f"{_INDENT}and {rest} more: see -o json"


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


def explanation(check: DoctorCheck, screen: Screen) -> list[str]:
    """Return the documentation of a check."""
    lines = [screen.style(f"{check.id} ({check.section}, {check.severity})", "bold")]
    lines += screen.wrap(f"Checks that {check.title}.", "", "")
    for paragraph in check.text.split("\n\n"):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), screen.width)]
    return [*lines, "", f"See {check.docs}"]
