"""The report of all checks, as text and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from adapter.config.process.output import Screen
from adapter.figures import count
from adapter.tools.client.command import BLOCKED, FINE, UNSEEN
from adapter.tools.doctor import text
from adapter.tools.doctor.model import CheckSection, FindingEffect, Severity
from adapter.tools.doctor.results import Outcome, Result, ResultPart, order_results


@dataclass(frozen=True)
class DoctorReport:
    """The results of all checks; see :class:`adapter.tools.client.command.ToolReport`."""

    results: list[Result]
    source: str
    """What was read: a server, or files."""
    notes: tuple[str, ...] = ()
    """Limits that were reached, and parts that could not be read."""
    verbose: bool = False
    """The text has a line for each check."""
    quiet: bool = False
    """The text has only what was found, and what could not be checked."""
    unread: tuple[str, ...] = ()
    """Files and objects that no check could look at, and why."""

    @property
    def status(self) -> int:
        """1 if there is an error; 2 if a check could not be made or none applies, or a manifest
        could not be read; else 0.

        What only a run in the cluster can check does not count elsewhere: it is the same for every
        healthy cluster.
        """
        if any(result.severity is Severity.ERROR for result in self.results):
            return BLOCKED
        looked = any(result.outcome in (Outcome.FINE, Outcome.FOUND) for result in self.results)
        failed = bool(self.unread) or any(result.failed for result in self.results)
        return FINE if looked and not failed else UNSEEN

    @cached_property
    def parts(self) -> list[ResultPart]:
        """What was found, in the order in which it is read."""
        return order_results(self.results)

    @property
    def advice(self) -> str:
        """Which findings to correct before the causes; empty if the order does not matter."""
        first = [p.result.check.id for p in self.parts if p.effect is FindingEffect.RUNAWAY]
        silent = [
            part.result.check.id
            for part in self.parts
            if part.effect is FindingEffect.CAUSE and part.result.check.section not in _OF_PODS
        ]
        if not first or not silent:
            return ""
        return (
            f"Correct {' and '.join(first)} before: HPAs get values again when "
            f"{', '.join(silent)} {'is' if len(silent) == 1 else 'are'} fixed, and these then go "
            "to their maximum."
        )

    def lines(self, screen: Screen) -> list[str]:
        """The report as text."""
        printed = text.Printed(screen, self.results)
        blocks: list[list[str]] = []
        for head, parts in groupby(self.parts, key=self._head):
            block = [screen.style(head, "bold")]
            for part in parts:
                block += printed.check(part.result)
            blocks.append(block)
            if head == _HEADS[FindingEffect.CAUSE]:
                blocks.append(screen.wrap(self.advice) if self.advice else [])
        blocks += [[*printed.gaps(), *printed.unread(self.unread)], *self._fine_checks(printed)]
        if not self.quiet:
            blocks.append(list(self._summary(screen)))
        return [line for block in filter(None, blocks) for line in ("", *block)][1:]

    def _head(self, part: ResultPart) -> str:
        """Return the heading: without a cause, what is seen comes first."""
        if part.effect is FindingEffect.RESULT and self.parts[0].effect is not FindingEffect.CAUSE:
            return "found"
        return _HEADS[part.effect]

    def _fine_checks(self, printed: text.Printed) -> Iterator[list[str]]:
        """Yield the checks that found nothing: each, or how many of each section."""
        counted = []
        for section in CheckSection:
            rows = [row for row in self.results if row.check.section is section]
            fine = [row for row in rows if row.outcome is Outcome.FINE]
            if fine and self.verbose:
                heading = printed.screen.style(section.value, "bold")
                yield [heading, *(line for row in fine for line in printed.check(row))]
            elif fine and not self.quiet:
                others = any(row.outcome in (Outcome.FOUND, Outcome.UNKNOWN) for row in rows)
                words = count(len(fine), "other check" if others else "check")
                counted.append(f"{printed.screen.mark('good')} {section.value}: {words} fine")
        yield counted

    def _summary(self, screen: Screen) -> Iterator[str]:
        counts = self.counts()
        for note in self.notes:
            yield from screen.wrap(f"note: {note}")
        parts = [
            f"{count(counts['fine'], 'check')} fine",
            count(counts["errors"], "error"),
            count(counts["warnings"], "warning"),
        ]
        if counts["unknown"]:
            parts.append(f"{counts['unknown']} could not be checked")
        if counts["unread"]:
            parts.append(f"{counts['unread']} could not be read")
        if counts["partial"]:
            parts.append(f"{counts['partial']} could be checked only in part")
        if counts["skipped"]:
            verb = "does" if counts["skipped"] == 1 else "do"
            parts.append(f"{counts['skipped']} {verb} not apply")
        yield from screen.wrap(f"{', '.join(parts)}; {self.source}")
        if self.parts:
            first = self.parts[0].result.check.id
            yield f"More about a check: gpu-metrics-adapter doctor --explain {first}"
        if not self.verbose and counts["fine"]:
            yield "Each check: gpu-metrics-adapter doctor -v"

    def json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "source": self.source,
            "status": self.status,
            "summary": self.counts(),
            **({"advice": self.advice} if self.advice else {}),
            "checks": [_row(result) for result in self.results],
            "notes": list(self.notes),
            "unread": list(self.unread),
        }

    def counts(self) -> dict[str, int]:
        """How many checks ended how."""
        return {
            "errors": sum(result.severity is Severity.ERROR for result in self.results),
            "warnings": sum(result.severity is Severity.WARNING for result in self.results),
            "fine": _count(self.results, Outcome.FINE),
            "unknown": _count(self.results, Outcome.UNKNOWN),
            "partial": sum(result.unchecked and bool(result.findings) for result in self.results),
            "skipped": _count(self.results, Outcome.SKIPPED),
            "unread": len(self.unread),
        }


_HEADS: Final = {
    FindingEffect.CAUSE: "causes",
    FindingEffect.RESULT: "what follows from them, or from others",
    FindingEffect.RUNAWAY: "also found",
    FindingEffect.FAULT: "also found",
    FindingEffect.RISK: "also found",
}
_OF_PODS: Final = (CheckSection.HPAS, CheckSection.NODEPOOL)
"""Sections whose causes keep pods from running, or HPAs from deciding; the others keep values."""
_STATUS: Final = {
    Outcome.FINE: "fine",
    Outcome.UNKNOWN: "unknown",
    Outcome.SKIPPED: "skipped",
}


def _count(results: Iterable[Result], outcome: Outcome) -> int:
    return sum(result.outcome is outcome for result in results)


def _row(result: Result) -> dict[str, Any]:
    check = result.check
    row: dict[str, Any] = {
        "id": check.id,
        "section": check.section.value,
        "title": check.title,
        "status": _STATUS.get(result.outcome) or str(result.severity),
        "docs": check.docs,
    }
    if result.why:
        row["reason"] = result.why
    if result.command:
        row["command"] = result.command
    if result.findings:
        row["findings"] = [
            {
                "object": finding.named,
                "severity": (finding.severity or check.severity).value,
                "effect": check.effect_of(finding).name.lower(),
                "message": finding.message,
                "fix": finding.fix,
                **({"command": finding.command} if finding.command else {}),
            }
            for finding in result.findings
        ]
    return row
