"""The player: what it writes for ``serve``, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.demo.certificates import FrontProxy
from adapter.demo.client import MetricsClient
from adapter.demo.player import Player
from adapter.demo.state import DemoState


async def test_the_objects_for_serve_change_seldom_enough_to_be_read(
    state: DemoState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("adapter.demo.player.time.monotonic", lambda: now)
    written = []
    monkeypatch.setattr("adapter.demo.manifests.write", lambda path, rows: written.append(rows))
    player = Player(state, MetricsClient("", FrontProxy(*[tmp_path] * 3), tmp_path), tmp_path)
    try:
        await player.publish()
        for _ in range(8):  # syncs of the HPAs at the highest speeds, a quarter of a second apart
            now += 0.25
            for scaler in state.autoscalers:
                scaler.syncs.append(scaler.syncs[-1])
            await player.publish()
        assert len(written) == 2, "the status alone is written every two seconds"
        state.world.scale("embed", 5)
        now += 0.1
        await player.publish()
        assert len(written) == 3, "a pod that comes or goes is written at once"
    finally:
        await state.exporters.close()
        await state.servers.close()
