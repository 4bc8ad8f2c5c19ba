"""The register of faults: what is changed in the facts of a cluster without findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.page import Trouble

Fault = Callable[[Facts], None]
FAULTS: dict[str, list[Fault]] = {}


def fault(identity: str) -> Callable[[Fault], Fault]:
    """Register a fault of a check."""

    def register(change: Fault) -> Fault:
        FAULTS.setdefault(identity, []).append(change)
        return change

    return register


EXPORTER_B = "dcgm-exporter-gpu-b"
KEY_B = f"gpu-operator/{EXPORTER_B}"


def trouble(facts: Facts, kind: Trouble, detail: str) -> None:
    pages = dict(facts.pages.read())
    pages[KEY_B] = replace(pages[KEY_B], trouble=kind, detail=detail, devices=(), samples=0)
    facts.pages = Fact(pages)
