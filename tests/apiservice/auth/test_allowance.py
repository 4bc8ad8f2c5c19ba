"""The rate of reviews that one sender may cause."""

from __future__ import annotations

import pytest

from apiservice.auth import allowance
from apiservice.auth.allowance import Allowance


def test_the_oldest_sender_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "_SENDERS", 3)
    made = Allowance(1.0, 2, lambda: 0.0)
    assert [made.take("a") for _ in range(3)] == [True, True, False]
    assert made.take("b")
    assert not made.take("a")
    assert all(made.take(sender) for sender in ("c", "d", "e"))
    assert len(made._left) == 3
    assert made.take("a"), "forgotten"
    assert made.refused == 2
