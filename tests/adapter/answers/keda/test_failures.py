"""Which failing triggers are remembered, so that the log names each one once."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from adapter.answers.keda import failures
from adapter.answers.keda.failures import Failures
from adapter.answers.keda.trigger import Ref


def test_the_oldest_failing_trigger_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_REMEMBERED", 3)
    made = Failures()

    def named(*numbers: int) -> list[str]:
        with capture_logs() as logs:
            for number in numbers:
                made.begin(Ref("ml", f"so-{number}", {"metric": "m"}), "no value", 100.0)
        return [line["name"] for line in logs]

    assert named(0, 1, 2) == ["so-0", "so-1", "so-2"]
    assert named(0, 1, 2) == []
    assert named(3) == ["so-3"]
    assert len(made._failing) == 3
    assert named(1, 2, 3) == []
    assert named(0) == ["so-0"]
