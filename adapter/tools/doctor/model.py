"""A check, what it finds, and the register of all checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from adapter.figures import count
from adapter.pipeline.cluster.fixes import Fix

if TYPE_CHECKING:
    from adapter.tools.doctor.facts import Facts


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Values are missing or wrong, or an HPA cannot work."""
    WARNING = "warning"
    """It works, and will surprise somebody."""


class FindingEffect(IntEnum):
    """What a finding means for HPAs now; in the order in which findings are read."""

    CAUSE = 0
    """It keeps values from HPAs, pods from running, or HPAs from deciding."""
    RESULT = 1
    """What somebody sees of a cause: an HPA without values, an API without endpoints."""
    RUNAWAY = 2
    """It takes an HPA to its maximum as soon as the HPA gets values."""
    FAULT = 3
    """It is wrong, and nothing shows it at present."""
    RISK = 4
    """It works, and will surprise somebody."""


class CheckSection(StrEnum):
    """What a group of checks is about; in the order in which they are printed."""

    CLUSTER = "cluster"
    EXPORTERS = "exporters"
    SHARING = "sharing"
    PROMETHEUS = "prometheus"
    HPAS = "hpas"
    SERVERS = "inference servers"
    NODEPOOL = "nodepool"
    OURS = "adapter"


class Finding(NamedTuple):
    """One thing that is wrong."""

    subject: str
    """The object, as a user names it: ``node gpu-a``, ``hpa chat/llm``."""
    message: str
    """What is wrong with it, and what follows from that."""
    advice: str
    """What to do, in words."""
    action: str | Fix = ""
    """A command that does it, or that shows more; or the change of an object, as it lasts."""
    severity: Severity | None = None
    """None means the severity of the check."""
    effect: FindingEffect | None = None
    """None means the effect of the check."""
    concerns: tuple[str, ...] = ()
    """Further objects that have the same fault."""

    @property
    def objects(self) -> tuple[str, ...]:
        """All objects that it concerns."""
        return self.subject, *self.concerns

    @property
    def named(self) -> str:
        """The object, and how many more there are."""
        more = len(self.concerns)
        if not more:
            return self.subject
        return f"{self.subject} and {count(more, self.subject.partition(' ')[0])} more"

    @property
    def command(self) -> str:
        """The command; empty if none does it."""
        return self.action.command if isinstance(self.action, Fix) else self.action

    @property
    def fix(self) -> str:
        """What to do, with what manages the object that has to change."""
        return self.action.advice(self.advice) if isinstance(self.action, Fix) else self.advice


class NotApplicableError(Exception):
    """The check has nothing to look at; the text says why."""


Function = Callable[["Facts"], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """A check, with the text of its documentation."""

    id: str
    section: CheckSection
    title: str
    """What is true of a cluster in which the check finds nothing."""
    severity: Severity
    text: str
    """Paragraphs: what the check looks at, what follows from a finding, and what to do."""
    find: Function
    effect: FindingEffect | None = None
    """None: an error is a cause, a warning a risk."""

    def effect_of(self, finding: Finding) -> FindingEffect:
        """Return what one of its findings means."""
        if finding.effect is not None:
            return finding.effect
        if self.effect is not None and finding.severity is None:
            return self.effect
        severe = (finding.severity or self.severity) is Severity.ERROR
        return FindingEffect.CAUSE if severe else FindingEffect.RISK

    @property
    def docs(self) -> str:
        """The check's place in the documentation."""
        return f"docs/checks.md#{self.id.lower()}"


_CHECKS: Final[dict[str, DoctorCheck]] = {}


def check(
    identity: str,
    section: CheckSection,
    title: str,
    severity: Severity = Severity.ERROR,
    effect: FindingEffect | None = None,
) -> Callable[[Function], Function]:
    """Register a check; the function's docstring is the text of its documentation."""

    def register(function: Function) -> Function:
        if identity in _CHECKS:
            raise ValueError(f"two checks have the id {identity}")
        text = inspect.cleandoc(function.__doc__ or "")
        _CHECKS[identity] = DoctorCheck(identity, section, title, severity, text, function, effect)
        return function

    return register


def registered_checks() -> Iterator[DoctorCheck]:
    """Yield the registered checks by section and id."""
    order = list(CheckSection)
    yield from sorted(_CHECKS.values(), key=lambda row: (order.index(row.section), row.id))
