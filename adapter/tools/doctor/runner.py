"""Run the checks on facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

import adapter.tools.doctor.checks  # noqa: F401 - registers the checks
from adapter.tools.doctor.facts import Facts, UnreadError
from adapter.tools.doctor.model import (
    CheckSection,
    DoctorCheck,
    Finding,
    NotApplicableError,
    registered_checks,
)
from adapter.tools.doctor.results import Outcome, Result


def run(facts: Facts, only: Collection[str] = ()) -> list[Result]:
    """Run every check, or those with these ids."""
    return [_result(check, facts) for check in registered_checks() if not only or check.id in only]


_OF_NAMESPACES: Final = (CheckSection.SHARING, CheckSection.HPAS, CheckSection.SERVERS)
"""Sections about objects of users. The others concern every namespace."""
_SUBJECT: Final = re.compile(r"\S+ (?P<namespace>[a-z0-9.-]+)/")


def within(results: Iterable[Result], namespace: str) -> tuple[list[Result], int]:
    """Return the results without findings about objects of users in other namespaces, and how
    many findings that are."""
    narrowed, others = [], 0
    for result in results:
        findings = tuple(row for row in result.findings if _concerns(row, result.check, namespace))
        others += len(result.findings) - len(findings)
        outcome = result.outcome
        if result.findings and not findings:
            outcome = Outcome.UNKNOWN if result.why else Outcome.FINE
        narrowed.append(replace(result, findings=findings, outcome=outcome))
    return narrowed, others


def _concerns(finding: Finding, check: DoctorCheck, namespace: str) -> bool:
    if check.section not in _OF_NAMESPACES:
        return True
    of = [_SUBJECT.match(name) for name in finding.objects]
    return any(name is None or name["namespace"] == namespace for name in of)


def _result(check: DoctorCheck, facts: Facts) -> Result:
    findings: dict[Finding, None] = {}
    try:
        for finding in check.find(facts):
            findings[finding] = None
    except NotApplicableError as error:
        return Result(check, Outcome.SKIPPED, why=str(error))
    except UnreadError as error:
        if findings and error.expected:
            return Result(check, Outcome.FOUND, tuple(findings))
        if findings:
            return Result(
                check, Outcome.FOUND, tuple(findings), str(error), error.command, error.inside
            )
        outcome = Outcome.SKIPPED if error.expected else Outcome.UNKNOWN
        return Result(check, outcome, (), str(error), error.command, error.inside)
    except Exception as error:  # an error in one check must not hide the others
        why = f"the check itself failed, please report it: {type(error).__name__}: {error}"
        outcome = Outcome.FOUND if findings else Outcome.UNKNOWN
        return Result(check, outcome, tuple(findings), why)
    return Result(check, Outcome.FOUND if findings else Outcome.FINE, tuple(findings))
