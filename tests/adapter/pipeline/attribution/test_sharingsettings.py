"""The settings ``sharing:`` and the allocation that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from adapter.config.settings import Settings
from adapter.pipeline.attribution.policy import PolicyRule, SharingOptions, SharingPolicy
from adapter.server.serve.build import sharing_options
from apiservice.labels.selector import EVERYTHING, parse
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"


def options(text: str) -> SharingOptions:
    made = Settings.model_validate({"sharing": yaml.safe_load(text)})
    return sharing_options(made)


MEANT: Mapping[str, tuple[str, SharingOptions]] = {
    "nothing": ("{}", SharingOptions(SharingPolicy.COPY, (), normalized=False)),
    "a policy": ("{policy: equal}", SharingOptions(SharingPolicy.EQUAL)),
    "normalisation": ("{mig_normalization: profile}", SharingOptions(normalized=True)),
    "rules in their order": (
        """
        rules:
        - {policy: exact, namespaces: [prod, 'team-*']}
        - {policy: memory, nodes: 'pool in (a, b)'}
        """,
        SharingOptions(
            rules=(
                PolicyRule(SharingPolicy.EXACT, ("prod", "team-*"), EVERYTHING),
                PolicyRule(SharingPolicy.MEMORY, (), parse("pool in (a, b)")),
            )
        ),
    ),
}


@pytest.mark.parametrize("name", MEANT)
def test_the_settings_are_applied_as_written(name: str) -> None:
    text, meant = MEANT[name]
    assert options(text) == meant


REFUSED = {
    "a policy that is none": ("{policy: half}", "'copy', 'equal', 'memory' or 'exact'"),
    "a rule without a policy": ("{rules: [{namespaces: [a]}]}", r"rules\.0\.policy"),
    "not a selector": ("{rules: [{policy: copy, nodes: 'a in'}]}", "is not a label selector"),
    "an unknown key": ("{rules: [{policy: copy, namespace: [a]}]}", r"rules\.0\.namespace\b"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_setting_is_refused_by_its_key(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(ValidationError, match=message):
        options(text)


@pytest.mark.parametrize(
    ("sharing", "labels", "value"),
    [
        ("{policy: equal}", {}, 40.0),
        ("{policy: equal, rules: [{policy: copy, namespaces: ['m*']}]}", {}, 80.0),
        ("{rules: [{policy: equal, nodes: pool=dev}]}", {"pool": "dev"}, 40.0),
        ("{rules: [{policy: equal, nodes: pool=dev}]}", {"pool": "prod"}, 80.0),
        ("{policy: exact}", {}, "not_exact"),
    ],
)
def test_a_shared_device_is_allocated_according_to_the_settings(
    sharing: str, labels: dict[str, Any], value: float | str
) -> None:
    made = sharing_options(Settings.model_validate({"sharing": yaml.safe_load(sharing)}))
    pods = [make_pod(name, node="n", uid=name) for name in "pq"]
    lab = World(*pods, sharing=made, nodes={"n": labels})
    page = row(UTIL, 80, "p", more='vgpu="0"') + row(UTIL, 80, "q", more='vgpu="1"')
    lab.scrape(page, 100.0, node="n")
    assert lab.value("p", UTIL, 100.0) == value
