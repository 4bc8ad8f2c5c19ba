"""A replay of a recording decides what the real controller decided, sync by sync."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import CUSTOM, register_group, unregister_group, wait_available
from tests.e2e.cluster import Object
from tests.e2e.stage import SCRAPE, Stage, autoscaler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SPACE = "replayed"
LOADS = (130, 320, 500, 260, 90, 410, 140)
"""Percent of one GPU: the HPA scales out and in, past its tolerance and within it."""
STEADY = 6.0
"""Seconds for which each load lasts: twice the stabilization window of the HPA."""


@pytest.fixture(scope="module")
def recorded(running_stage: Stage) -> Path:
    """A recording of an HPA under a changing load, by the adapter that the HPA reads."""
    stage = running_stage
    file = stage.folder / "replay.gma"
    adapter = Adapter(
        stage.folder, "recorder", stage.kubeconfig(), SCRAPE, recording={"file": str(file)}
    )
    adapter.start()
    try:
        _register(stage, adapter)
        stage.workload(SPACE, 2, LOADS[0], high=8)
        stage.wait_active(SPACE, "True")
        for load in LOADS:
            stage.load.set(SPACE, load)
            time.sleep(STEADY)  # the recording needs time, not a state
        # Its end is written when the process stops.
        adapter.stop()
    finally:
        adapter.stop()
        _register(stage, stage.adapter)
        stage.clear()
    return file


def _register(stage: Stage, adapter: Adapter) -> None:
    unregister_group(stage.admin, CUSTOM)
    register_group(stage.admin, adapter.port, adapter.ca.read_bytes(), CUSTOM)
    wait_available(stage.admin)


def replay(stage: Stage, file: Path, *arguments: str) -> Object:
    """Run the command on the recording; return its JSON."""
    manifest = stage.folder / "replayed.yaml"
    manifest.write_text(yaml.safe_dump(autoscaler(SPACE, high=8)))
    command = [sys.executable, "-P", "-m", "adapter", "replay", "hpa", f"{SPACE}/inference"]
    command += ["--from", str(file), "-f", str(manifest), "--sync-period", "1s", "-o", "json"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    report: Object = json.loads(done.stdout)
    return report


def test_the_replay_decides_as_the_controller_did(running_stage: Stage, recorded: Path) -> None:
    report = replay(running_stage, recorded)
    agreement = report["agreement"]
    assert agreement["compared"] >= len(LOADS)
    assert agreement["equalValues"] == agreement["compared"]
    # On a loaded machine the controller may skip a sync, which the recording cannot show.
    assert agreement["equal"] >= 0.9 * agreement["compared"], agreement["differences"]
    sizes = running_stage.sizes[SPACE]
    assert report["recorded"]["highestReplicas"] == max(sizes)
    # From Kubernetes 1.37 on, the controller looks at a new HPA at once: before all pods exist.
    assert report["recorded"]["lowestReplicas"] in range(min(sizes) + 1)
    assert report["recordingLosses"] == {"damaged": 0}
