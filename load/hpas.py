"""How the HPA controller asks, at its defaults."""

from __future__ import annotations

from load.drive import plan
from load.plan import Plan
from load.servers import Server, target

SYNC = 15.0
"""Seconds between two requests of an HPA (--horizontal-pod-autoscaler-sync-period)."""
WORKERS = 5
"""HPAs that it evaluates at once (--concurrent-horizontal-pod-autoscaler-syncs)."""


def as_hpas(server: Server, services: int, syncs: int) -> Plan:
    """A plan of one HPA for each service, whose requests are evenly spaced in each sync period.

    When an HPA asks again, all pages of its pods have changed: no answer is a repeated one.
    """
    return plan(
        server.pki,
        server.port,
        target(),
        targets=[target(service) for service in range(services)],
        every=SYNC,
        connections=WORKERS if services % WORKERS == 0 else 1,
        seconds=syncs * SYNC,
        warm_up=0,
    )
