"""Without an attack: what the observer sees of an idle ``serve``."""

from __future__ import annotations

from collections.abc import Callable

from tests.attack.siege import VALUE, Siege, tenant_pod


def test_the_observer_sees_the_victims_value_and_every_probe(siege: Callable[..., Siege]) -> None:
    quiet = siege(tenant_pod("nobody-answers", port=9))
    quiet.observe(seconds=3)
    seen = quiet.verdict()
    assert seen.values == {VALUE}
    assert seen.peak > 0
