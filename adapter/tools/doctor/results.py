"""What a check found, and the order in which findings are read.

What keeps values from HPAs or pods from running stands first, then what follows from it, then what
nothing shows at present.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from adapter.tools.doctor.model import CheckSection, DoctorCheck, Finding, FindingEffect, Severity


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
    inside: bool = False
    """Whether only a run in the cluster could check it."""

    @property
    def unchecked(self) -> bool:
        """Whether it, or a part of it, could not check."""
        return bool(self.why) and self.outcome is not Outcome.SKIPPED

    @property
    def failed(self) -> bool:
        """Whether it, or a part of it, could not check what this run should see."""
        return self.unchecked and not self.inside

    @property
    def severity(self) -> Severity | None:
        """The severity of its worst finding."""
        if not self.findings:
            return None
        severities = {finding.severity or self.check.severity for finding in self.findings}
        return Severity.ERROR if Severity.ERROR in severities else Severity.WARNING


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The findings of one check that mean the same."""

    effect: FindingEffect
    result: Result


def order_results(results: Iterable[Result]) -> list[ResultPart]:
    """Return what was found, the causes first.

    What users see of a cause leads to the cause, if that concerns the same objects.
    """
    sections = list(CheckSection)
    parts = [part for result in results for part in _parts(result)]
    parts.sort(
        key=lambda part: (
            part.effect,
            part.result.severity is not Severity.ERROR,
            sections.index(part.result.check.section),
            part.result.check.id,
        )
    )
    causes: dict[str, str] = {}
    fixes: dict[str, str] = {}
    for part in parts:
        if part.effect is FindingEffect.CAUSE:
            for finding in part.result.findings:
                for name in finding.objects:
                    causes.setdefault(name, part.result.check.id)
                fixes.setdefault(finding.command or finding.fix, part.result.check.id)
    return [
        _lead_to_causes(part, causes, fixes) if part.effect is FindingEffect.RESULT else part
        for part in parts
    ]


def _parts(result: Result) -> Iterator[ResultPart]:
    by_effect: dict[FindingEffect, list[Finding]] = {}
    for finding in result.findings:
        by_effect.setdefault(result.check.effect_of(finding), []).append(finding)
    why, command = result.why, result.command
    for effect, findings in sorted(by_effect.items()):
        yield ResultPart(
            effect, replace(result, findings=tuple(findings), why=why, command=command)
        )
        why = command = ""


def _lead_to_causes(
    part: ResultPart, check_by_object: Mapping[str, str], fixes: Mapping[str, str]
) -> ResultPart:
    """Return the findings with the check that says why in the place of a fix: of a cause of the
    same objects, or of a cause with the same fix.

    Args:
        part: what is seen of causes.
        check_by_object: object -> the check that found a cause of it.
        fixes: the command of a cause, or its fix in words -> its check.
    """
    findings = []
    for row in part.result.findings:
        causes = {check_by_object[name] for name in row.objects if name in check_by_object}
        if not check_by_object.keys() >= set(row.objects):
            causes = {fixes[text] for text in (row.command or row.fix,) if text in fixes}
        if causes:
            advice = f"as above: fix {' and '.join(sorted(causes))} first"
            findings.append(row._replace(advice=advice, action=""))
        else:
            findings.append(row)
    return ResultPart(part.effect, replace(part.result, findings=tuple(findings)))
