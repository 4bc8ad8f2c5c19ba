"""Run the checks on facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import adapter.tools.doctor.checks  # noqa: F401 - registers the checks
from adapter.config.process.output import Screen
from adapter.tools.client.command import BLOCKED, FINE, UNSEEN
from adapter.tools.doctor import text
from adapter.tools.doctor.facts import Facts, UnreadError
from adapter.tools.doctor.model import (
    CheckSection,
    DoctorCheck,
    Finding,
    NotApplicableError,
    Severity,
    registered,
)


class Outcome(StrEnum):
    """How a check ended."""

    FINE = "fine"
    FOUND = "found"
    UNKNOWN = "could not check"
    SKIPPED = "does not apply"


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found."""

    check: DoctorCheck
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    why: str = ""
    """Why it does not apply, or could not check; with findings, why it could not check the rest."""
    command: str = ""
    """The next step if it could not check."""

    @property
    def severity(self) -> Severity | None:
        """The severity of its worst finding."""
        if not self.findings:
            return None
        found = {finding.severity or self.check.severity for finding in self.findings}
        return Severity.ERROR if Severity.ERROR in found else Severity.WARNING


def run(facts: Facts, only: Collection[str] = ()) -> list[Result]:
    """Run every check, or those with these ids."""
    return [_result(each, facts) for each in registered() if not only or each.id in only]


_OF_NAMESPACES: Final = (CheckSection.SHARING, CheckSection.HPAS, CheckSection.SERVERS)
"""Sections about objects of users. The others concern every namespace."""
_SUBJECT: Final = re.compile(r"\S+ (?P<namespace>[a-z0-9.-]+)/")


def within(results: Iterable[Result], namespace: str) -> tuple[list[Result], int]:
    """Return the results without findings about objects of users in other namespaces, and how
    many findings that are."""
    found, others = [], 0
    for result in results:
        kept = tuple(each for each in result.findings if _concerns(each, result.check, namespace))
        others += len(result.findings) - len(kept)
        emptied = bool(result.findings) and not kept
        outcome = Outcome.FINE if emptied and not result.why else result.outcome
        found.append(replace(result, findings=kept, outcome=outcome))
    return found, others


def _concerns(finding: Finding, check: DoctorCheck, namespace: str) -> bool:
    of = _SUBJECT.match(finding.subject)
    return check.section not in _OF_NAMESPACES or of is None or of["namespace"] == namespace


def _result(check: DoctorCheck, facts: Facts) -> Result:
    seen: dict[Finding, None] = {}
    try:
        for finding in check.find(facts):
            seen[finding] = None
    except NotApplicableError as error:
        return Result(check, Outcome.SKIPPED, why=str(error))
    except UnreadError as error:
        if seen:
            return Result(check, Outcome.FOUND, tuple(seen), str(error), error.command)
        outcome = Outcome.SKIPPED if error.expected else Outcome.UNKNOWN
        return Result(check, outcome, why=str(error), command=error.command)
    except Exception as error:  # an error in one check must not hide the others
        why = f"the check itself failed, please report it: {type(error).__name__}: {error}"
        return Result(check, Outcome.UNKNOWN, why=why)
    return Result(check, Outcome.FOUND if seen else Outcome.FINE, tuple(seen))


@dataclass(frozen=True)
class DoctorReport:
    """The results of all checks; see :class:`adapter.tools.client.command.Report`."""

    results: list[Result]
    source: str
    """What was read: a server, or files."""
    notes: tuple[str, ...] = ()
    """Limits that were reached, and parts that could not be read."""
    verbose: bool = False
    """The text has a line for each check."""
    quiet: bool = False
    """The text has only what was found, and what could not be checked."""

    @property
    def status(self) -> int:
        """1 if there is an error, 2 if nothing could be checked, else 0."""
        if any(each.severity is Severity.ERROR for each in self.results):
            return BLOCKED
        checked = {Outcome.FINE, Outcome.FOUND}
        return FINE if any(each.outcome in checked for each in self.results) else UNSEEN

    @property
    def advice(self) -> str:
        """Which findings to fix before the others; empty if the order does not matter."""
        found = [each.check.id for each in self.results if each.severity is not None]
        first = [each for each in found if each in _RUNAWAY]
        silent = [each for each in found if each in _SILENT]
        if not first or not silent:
            return ""
        return (
            f"Fix {' and '.join(first)} first: HPAs get values again when {', '.join(silent)} "
            f"{'is' if len(silent) == 1 else 'are'} fixed, and these then go to their maximum."
        )

    def lines(self, screen: Screen) -> list[str]:
        """The report as text."""
        return text.report(self, screen)

    def json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "source": self.source,
            "status": self.status,
            "summary": self.counts(),
            **({"advice": self.advice} if self.advice else {}),
            "checks": [_row(each) for each in self.results],
            "notes": list(self.notes),
        }

    def counts(self) -> dict[str, int]:
        """How many checks ended how."""
        return {
            "errors": sum(each.severity is Severity.ERROR for each in self.results),
            "warnings": sum(each.severity is Severity.WARNING for each in self.results),
            "fine": _count(self.results, Outcome.FINE),
            "unknown": _count(self.results, Outcome.UNKNOWN),
            "skipped": _count(self.results, Outcome.SKIPPED),
        }


_RUNAWAY: Final = frozenset({"GMA404", "GMA412", "GMA413"})
"""Checks whose fault makes an HPA scale to its maximum once it gets values."""
_SILENT: Final = frozenset(
    (
        *("GMA002", "GMA004", "GMA005", "GMA006", "GMA007", "GMA008", "GMA009", "GMA010"),
        *("GMA101", "GMA102", "GMA103", "GMA104", "GMA105", "GMA121", "GMA301", "GMA706"),
    )
)
"""Checks whose fault keeps values from HPAs."""
_STATUS: Final = {
    Outcome.FINE: "fine",
    Outcome.UNKNOWN: "unknown",
    Outcome.SKIPPED: "skipped",
}


def _count(results: Iterable[Result], outcome: Outcome) -> int:
    return sum(each.outcome is outcome for each in results)


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
                "object": each.subject,
                "severity": (each.severity or check.severity).value,
                "message": each.message,
                "fix": each.fix,
                **({"command": each.command} if each.command else {}),
            }
            for each in result.findings
        ]
    return row
