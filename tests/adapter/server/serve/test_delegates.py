"""Delegates in the settings, and what is made of them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from adapter.config.settings import Settings
from adapter.server.serve.check import start_problems
from adapter.server.serve.delegatemetrics import FAMILIES, delegate_families
from adapter.server.serve.delegates import DelegateError, build_delegation, delegate_options
from apiservice.wire.metricvalues import CUSTOM_GROUP, EXTERNAL_GROUP

SERVICE = {"namespace": "monitoring", "name": "prometheus-adapter"}


def settings(*delegates: dict[str, Any], **more: Any) -> Settings:
    """Settings with these delegates."""
    rows = [{"name": f"d{index}", "service": SERVICE} | row for index, row in enumerate(delegates)]
    delegation = {"delegates": rows, "token_file": "/token"} | more
    return Settings.model_validate({"delegation": delegation})


def test_the_service_is_the_address_and_the_name_of_the_certificate() -> None:
    (delegate,) = settings({}).delegation.delegates
    options = delegate_options(delegate)
    assert options.url == "https://prometheus-adapter.monitoring.svc:443"
    assert options.server_name == "prometheus-adapter.monitoring.svc"
    assert options.groups == {CUSTOM_GROUP}


def test_address_and_name_can_differ_from_the_service() -> None:
    (delegate,) = settings({"address": "[::1]:6443", "server_name": "x"}).delegation.delegates
    options = delegate_options(delegate)
    assert (options.url, options.server_name) == ("https://[::1]:6443", "x")


@pytest.mark.parametrize(
    ("delegates", "more", "text"),
    [
        ([{}], {"own_service": "monitoring/prometheus-adapter"}, "is the adapter's own Service"),
        ([{"name": "a"}, {"name": "a"}], {}, "delegates.1.name: a is used twice"),
        ([{}], {"service_account": "a/b"}, "service_account and token_file exclude each other"),
        ([{"groups": []}], {}, "groups must not be empty"),
        ([{"ca": "x", "insecure_skip_tls_verify": True}], {}, "exclude each other"),
        ([{"address": "https://x"}], {}, "must be HOST:PORT"),
        ([{"service": {"namespace": "a/b", "name": "c"}}], {}, "must be a name of lower-case"),
        ([{"timeout": "2m"}], {}, "less than or equal to 50"),
    ],
)
def test_a_mistake_is_rejected_with_the_fix(
    delegates: list[dict[str, Any]], more: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValidationError, match=text):
        settings(*delegates, **more)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"ca": "no PEM"}, "delegation.delegates.0.ca: "),
        ({"ca_file": "/missing.crt"}, "delegation.delegates.0.ca_file: /missing.crt: .*No such"),
    ],
)
def test_check_names_the_key_of_a_bad_ca(row: dict[str, Any], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        raise AssertionError("\n".join(start_problems(settings(row))))


async def test_an_account_needs_a_cluster() -> None:
    chosen = settings({}, token_file=None, service_account="a/b")
    async with AsyncExitStack() as stack:
        with pytest.raises(DelegateError, match=r"set delegation\.token_file"):
            build_delegation(chosen, None, stack)


async def test_the_start_asks_for_an_account() -> None:
    chosen = settings({}, token_file=None)
    async with AsyncExitStack() as stack:
        with pytest.raises(DelegateError, match=r"delegation\.service_account: set it or token"):
            build_delegation(chosen, None, stack)


def test_check_names_an_api_that_is_off() -> None:
    wrong = settings({"groups": ["external"]})
    assert next(start_problems(wrong)).startswith("delegation.delegates.0.groups: external needs")


def test_check_asks_for_an_account() -> None:
    assert "delegation.service_account: set it" in next(
        start_problems(settings({}, token_file=None))
    )


async def test_without_delegates_nothing_is_built() -> None:
    async with AsyncExitStack() as stack:
        assert build_delegation(Settings(), None, stack) is None


async def test_metrics_of_a_delegate_that_is_not_reached(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    row = {"address": "127.0.0.1:1", "groups": ["custom", "external"]}
    made = Settings.model_validate(
        {
            "external": {"enabled": True},
            "delegation": {
                "delegates": [row | {"name": "old", "service": SERVICE}],
                "token_file": str(token),
            },
        }
    )
    async with AsyncExitStack() as stack:
        delegation = build_delegation(made, None, stack)
        assert delegation is not None
        await delegation.delegates[0].refresh()
        assert delegation.delegates[0].options.groups == {CUSTOM_GROUP, EXTERNAL_GROUP}
        values = {
            (sample.name, *sample.labels.values()): sample.value
            for family in delegate_families(delegation)
            for sample in family.samples
        }
    assert values["gma_delegate_discovery_failures_total", "old"] == 1
    assert values["gma_delegate_discovery_problem", "old", "unreachable"] == 1
    assert values["gma_delegate_requests_total", "old", "ok"] == 0
    assert values["gma_delegate_loops_total",] == 0
    assert not any(name.startswith("gma_delegate_metrics") for name, *_ in values)
    assert values["gma_delegate_requests_refused_total", "old", "full"] == 0
    assert len(FAMILIES) == 10
