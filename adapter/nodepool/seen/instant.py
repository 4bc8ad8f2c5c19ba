"""Timestamps in the format of the API."""

from __future__ import annotations

from datetime import UTC, datetime


def read(stamp: str | None) -> float | None:
    """Return an RFC 3339 text as epoch seconds; None if it is missing or invalid."""
    try:
        found = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def write(epoch: float) -> str:
    """Return epoch seconds as RFC 3339, in whole seconds."""
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
