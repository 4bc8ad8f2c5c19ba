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
    registered,
)
from adapter.tools.doctor.results import Outcome, Result


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
        outcome = result.outcome
        if result.findings and not kept:
            outcome = Outcome.UNKNOWN if result.why else Outcome.FINE
        found.append(replace(result, findings=kept, outcome=outcome))
    return found, others


def _concerns(finding: Finding, check: DoctorCheck, namespace: str) -> bool:
    if check.section not in _OF_NAMESPACES:
        return True
    of = [_SUBJECT.match(name) for name in finding.objects]
    return any(name is None or name["namespace"] == namespace for name in of)


def _result(check: DoctorCheck, facts: Facts) -> Result:
    seen: dict[Finding, None] = {}
    try:
        for finding in check.find(facts):
            seen[finding] = None
    except NotApplicableError as error:
        return Result(check, Outcome.SKIPPED, why=str(error))
    except UnreadError as error:
        if seen and error.expected:
            return Result(check, Outcome.FOUND, tuple(seen))
        if seen:
            return Result(
                check, Outcome.FOUND, tuple(seen), str(error), error.command, error.inside
            )
        outcome = Outcome.SKIPPED if error.expected else Outcome.UNKNOWN
        return Result(check, outcome, (), str(error), error.command, error.inside)
    except Exception as error:  # an error in one check must not hide the others
        why = f"the check itself failed, please report it: {type(error).__name__}: {error}"
        return Result(check, Outcome.UNKNOWN, why=why)
    return Result(check, Outcome.FOUND if seen else Outcome.FINE, tuple(seen))
