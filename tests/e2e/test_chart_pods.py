"""The pods: how they end, when they are replaced, what they may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from adapter.config.process.reload import RESTART
from adapter.config.settings import Settings
from tests.e2e.apiservice import SERVICE
from tests.e2e.chart import FOLDER, helm, pod_of, pods, render
from tests.e2e.chartvalues import every_value_set

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
def test_the_grace_period_is_longer_than_the_shutdown_of_the_adapter(
    server: Mapping[str, Any], seconds: int
) -> None:
    """The grace of the pod is that of `server.drain` and `server.grace`, and ten seconds."""
    pod = pod_of({"config": {"server": server}})
    assert pod["spec"]["terminationGracePeriodSeconds"] == seconds
    settings = Settings.model_validate({"server": server}).server
    assert seconds >= settings.drain + settings.grace + 10


def test_only_changes_that_need_a_restart_replace_the_pods() -> None:
    """Changes of source, values or log do not replace the pods, which reload them."""
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
        "delegation": {"token_file": "/token"},
        "keda": {"port": 7000},
        "view": {},
        "rules": {"cache": 1},
        "accounting": {"by": "pod"},
        "recording": {"max_bytes": 1 << 21},
        "ahead": {"enabled": True},
        "memory": {"interval": 60},
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


def test_the_chart_runs_the_image() -> None:
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
    assert "XDG_STATE_HOME=/tmp\n" in text, "a certificate of its own is kept there"
    assert "/tmp" in [row["mountPath"] for row in container["volumeMounts"]]


def test_openshift_chooses_the_pods_user() -> None:
    """Its SCC `restricted-v2` refuses any user, group or fsGroup that is not the namespace's."""
    command = ("template", SERVICE, FOLDER, "--api-versions=security.openshift.io/v1")
    done = helm(*command, values={"nodepool": {"enabled": True}})
    rows = list(pods([row for row in yaml.safe_load_all(done.stdout) if row is not None]))
    assert len(rows) == 4
    for row in rows:
        assert row["spec"]["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }


class Strict(yaml.SafeLoader):
    """Refuses a key that is there twice, as strict YAML parsers do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


@every_value_set
def test_no_mapping_has_a_key_twice(values: Mapping[str, Any]) -> None:
    done = helm("template", SERVICE, FOLDER, values=values)
    assert list(yaml.load_all(done.stdout, Strict))


def test_labels_of_pods_do_not_replace_those_of_jobs() -> None:
    made = render({"podLabels": {"app.kubernetes.io/component": "mine"}})
    labels = [pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods(made)]
    assert sorted(labels) == ["certificates", "certificates", "mine"]
