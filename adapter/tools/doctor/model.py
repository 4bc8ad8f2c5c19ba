"""A check, what it finds, and the register of all checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from adapter.pipeline.cluster.fixes import Fix

if TYPE_CHECKING:
    from adapter.tools.doctor.facts import Facts


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Values are missing or wrong, or an HPA cannot work."""
    WARNING = "warning"
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

    @property
    def docs(self) -> str:
        """The check's place in the documentation."""
        return f"docs/checks.md#{self.id.lower()}"


_CHECKS: Final[dict[str, DoctorCheck]] = {}


def check(
    identity: str, section: CheckSection, title: str, severity: Severity = Severity.ERROR
) -> Callable[[Function], Function]:
    """Register a check; the function's docstring is the text of its documentation."""

    def register(function: Function) -> Function:
        if identity in _CHECKS:
            raise ValueError(f"two checks have the id {identity}")
        text = inspect.cleandoc(function.__doc__ or "")
        _CHECKS[identity] = DoctorCheck(identity, section, title, severity, text, function)
        return function

    return register


def registered() -> Iterator[DoctorCheck]:
    """Yield the registered checks by section and id."""
    order = list(CheckSection)
    yield from sorted(_CHECKS.values(), key=lambda each: (order.index(each.section), each.id))
