"""Results as text: what was found, with its fix, and what could not be checked."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from adapter.config.process.output import Mark, Screen
from adapter.tools.doctor.model import DoctorCheck, Finding, Severity
from adapter.tools.doctor.results import Outcome, Result
from adapter.tools.overview.groups import CauseGroup, CauseRow, by_cause

_SHOWN: Final = 5
"""Findings of one check that are printed; JSON has all."""
_INDENT: Final = "    "
_PREFIXES: Final[Mapping[Outcome, str]] = {
    Outcome.FOUND: "expected: ",
    Outcome.UNKNOWN: "not checked: ",
}
"""A title says what is true of a cluster without the fault."""
_WORDS: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"(?:\\.|[^"\\])*")+""")


class Printed:
    """Results as lines. A command that several of them name is printed once."""

    def __init__(self, screen: Screen, results: Iterable[Result]) -> None:
        self.screen = screen
        self._seen: dict[str, str] = {}
        self._gaps: dict[tuple[str, str], list[Result]] = {}
        for result in results:
            if result.unchecked:
                self._gaps.setdefault(_gap(result), []).append(result)

    def check(self, result: Result) -> Iterator[str]:
        """Yield what a check found."""
        check, screen = result.check, self.screen
        prefix = _PREFIXES.get(result.outcome, "")
        yield from screen.wrap(f"{screen.mark(_mark(result))} {check.id} {prefix}{check.title}")
        if result.why and len(self._gaps[_gap(result)]) == 1:
            yield from screen.wrap(f"could not check: {result.why}", _INDENT)
            yield from self._next_step(check.id, result.command)
        rows = [CauseRow(row.named.rpartition(" ")[2], row.message) for row in result.findings]
        groups = [part for group in by_cause(rows) for part in _parts(group)]
        for group in groups[:_SHOWN]:
            yield from _findings(group, [result.findings[index] for index in group.rows], screen)
        rest = sum(group.count for group in groups[_SHOWN:])
        if rest > 0:
            yield f"{_INDENT}and {rest} more: see -o json"

    def gaps(self) -> Iterator[str]:
        """Yield what could not be checked, and why, each reason once."""
        unknown = {
            gap: rows for gap, rows in self._gaps.items() if len(rows) > 1 or not rows[0].findings
        }
        if unknown:
            yield self.screen.style("could not check", "bold")
        for (why, command), rows in unknown.items():
            if len(rows) == 1:
                yield from self.check(rows[0])
                continue
            ids = [row.check.id for row in rows]
            yield f"{self.screen.mark('warning')} {len(ids)} checks, for one reason"
            yield from self.screen.wrap(", ".join(ids), _INDENT)
            yield from self.screen.wrap(f"could not check: {why}", _INDENT)
            yield from self._next_step(ids[0], command)

    def unread(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield the files and objects that no check could look at."""
        if lines:
            yield self.screen.style("could not read", "bold")
        for line in lines[:_SHOWN]:
            yield from self.screen.wrap(f"{self.screen.mark('warning')} {line}")
        if len(lines) > _SHOWN:
            yield f"{_INDENT}and {len(lines) - _SHOWN} more: see -o json"

    def _next_step(self, identity: str, following: str) -> Iterator[str]:
        if not following:
            return
        first = self._seen.setdefault(following, identity)
        if first == identity:
            yield from command(following, _INDENT + "  ", self.screen.width)
        else:
            yield f"{_INDENT}  the same command as for {first}"


def _gap(result: Result) -> tuple[str, str]:
    return result.why, result.command


def _parts(group: CauseGroup) -> list[CauseGroup]:
    """Return a group that a list shows as one, or each of its rows."""
    return [group] if group.shown else [replace(group, rows=(index,)) for index in group.rows]


def _findings(group: CauseGroup, findings: Sequence[Finding], screen: Screen) -> Iterator[str]:
    """Yield one finding, or several with one cause, with the first one's fix."""
    first = findings[0]
    text, about = f"{first.named}: {first.message}", "fix"
    if group.count > 1:
        kinds = {row.subject.partition(" ")[0] for row in findings}
        kind = kinds.pop() if len(kinds) == 1 else "object"
        noun = f"{'HPA' if kind == 'hpa' else kind}s"
        text = f"{group.count} {noun} ({group.describe_names()}): {group.text}"
        if any((row.fix, row.command) != (first.fix, first.command) for row in findings):
            about = f"fix of {first.subject}"
    yield from screen.wrap(text, _INDENT)
    yield from screen.wrap(f"{about}: {first.fix}", _INDENT + "  ")
    if first.command:
        yield from command(first.command, _INDENT + "  ", screen.width)


def _mark(result: Result) -> Mark:
    if result.severity is Severity.ERROR:
        return "bad"
    return "good" if result.outcome is Outcome.FINE else "warning"


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


def explanation(check: DoctorCheck, screen: Screen) -> list[str]:
    """Return the documentation of a check."""
    lines = [screen.style(f"{check.id} ({check.section}, {check.severity})", "bold")]
    lines += screen.wrap(f"Checks that {check.title}.", "", "")
    for paragraph in check.text.split("\n\n"):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), screen.width)]
    return [*lines, "", f"See {check.docs}"]
