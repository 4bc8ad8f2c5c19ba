"""The pods: how they end, when they are replaced, what they may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from adapter.reload import RESTART
from adapter.settings import Settings
from tests.e2e.chart import FOLDER, pod_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("server", "seconds"),
    [
        ({}, 35),
        ({"drain": 0, "grace": 1}, 11),
        ({"drain": "7", "grace": 2.5}, 20),
        # Text with units is rounded up by a whole second.
        ({"drain": "1m30s", "grace": "500ms"}, 102),
    ],
    ids=str,
)
def test_kubernetes_waits_longer_than_the_adapter_takes(
    server: Mapping[str, Any], seconds: int
) -> None:
    """The grace of the pod is that of `server.drain` and `server.grace`, and ten seconds."""
    pod = pod_of({"config": {"server": server}})
    assert pod["spec"]["terminationGracePeriodSeconds"] == seconds
    settings = Settings.model_validate({"server": server}).server
    assert seconds >= settings.drain + settings.grace + 10


def test_pods_are_replaced_for_what_they_cannot_take_up() -> None:
    """A change of source, values or log leaves the pods running: they take it up themselves."""
    changed = {
        "server": {"drain": 1},
        "authentication": {"cache": 1},
        "authorization": {"cache": 1},
        "cluster": {"services": False},
        "source": {"scrape": {"interval": 1}},
        "values": {"window": 1},
        "sharing": {"policy": "equal"},
        "metrics": [{"name": "queue"}],
        "external": {},
        "keda": {"port": 7000},
        "nodepool": {"interval": 30},
        "log": {"level": "debug"},
    }
    assert changed.keys() == Settings.model_fields.keys()
    before = pod_of({})["metadata"]
    replaced = [
        name
        for name, row in changed.items()
        if pod_of({"config": {name: row}})["metadata"] != before
    ]
    assert replaced == list(RESTART)


def test_the_image_is_what_the_chart_runs() -> None:
    """User, entry point and port of the Dockerfile are those that the Deployment counts on."""
    text = (FOLDER.parents[1] / "Dockerfile").read_text()
    pod = pod_of({})["spec"]
    user, group = pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
    (container,) = pod["containers"]
    assert f"\nUSER {user}:{group}\n" in text
    for port in container["ports"]:
        assert f"\nEXPOSE {port['containerPort']}\n" in text
    assert '\nENTRYPOINT ["gpu-metrics-adapter"]\n' in text
    assert "command" not in container
    kept = Settings().server.cert_dir
    assert any(kept.is_relative_to(row["mountPath"]) for row in container["volumeMounts"])
