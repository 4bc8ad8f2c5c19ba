"""The settings that values depend on: written into a recording, and read from it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from adapter.config.settings import Settings
from adapter.server.recording.events import RecordingError

_PARTS: Final[Mapping[str, Any]] = {
    "values": True,
    "sharing": True,
    "metrics": True,
    "source": {
        "kind": True,
        "scrape": {"interval": True},
        "prometheus": {"scrape_interval": True},
        "azure_logs": {"interval": True, "delay": True},
    },
}
"""None of them is a secret or an address."""


def dump_settings(settings: Settings) -> dict[str, Any]:
    """Return the part of the settings that a replay needs."""
    return settings.model_dump(mode="json", include=_PARTS, exclude_defaults=True)


def restore_settings(parts: Mapping[str, Any]) -> Settings:
    """Return the settings of a recording, with defaults for all others.

    Raises:
        RecordingError: this version does not know one of them.
    """
    parts = {key: value for key, value in parts.items() if key in _PARTS}
    source = dict(parts.get("source") or {})
    kind = source.get("kind")
    # A store's address and login are not in the recording, and a replay asks no store.
    needed = {"prometheus": {"url": "http://localhost"}, "azure_logs": {"workspace_id": "-"}}
    if kind in needed:
        source[kind] = {**needed[kind], **(source.get(kind) or {})}
        parts = {**parts, "source": source}
    try:
        return Settings.model_validate(parts)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise RecordingError(
            f"the recording's setting {key} is not valid here: {first['msg']}; use the version "
            "that recorded it"
        ) from None
