"""A recording has the settings that values depend on, and no address or secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.config.settings import Settings
from adapter.server.recording.events import RecordingError
from adapter.server.recording.settings import dump_settings, restore_settings

STORE = {"url": "https://secret-host.example", "username": "me", "password": "secret-word"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"values": {"window": "10s", "age_limit": "40s"}, "sharing": {"policy": "equal"}},
        {"source": {"kind": "prometheus", "prometheus": {**STORE, "scrape_interval": "30s"}}},
        {"source": {"kind": "azure_logs", "azure_logs": {"workspace_id": "secret-id"}}},
        {"source": {"kind": "scrape", "scrape": {"interval": "2s"}}},
    ],
)
def test_settings_are_restored(given: dict[str, Any]) -> None:
    settings = Settings.model_validate(given)
    parts = json.loads(json.dumps(dump_settings(settings)))
    assert "secret" not in json.dumps(parts)
    again = restore_settings(parts)
    assert (again.values, again.sharing, again.metrics) == (
        settings.values,
        settings.sharing,
        settings.metrics,
    )
    assert again.source.kind == settings.source.kind
    assert again.source.scrape.interval == settings.source.scrape.interval
    assert again.source.prometheus.scrape_interval == settings.source.prometheus.scrape_interval


def test_a_setting_of_another_version_is_named() -> None:
    with pytest.raises(RecordingError, match=r"setting values\.wind is not valid here"):
        restore_settings({"values": {"wind": 3}})
