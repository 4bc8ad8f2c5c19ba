"""Timestamps in the format of the Kubernetes API, and as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def read(stamp: object) -> float | None:
    """Return an RFC 3339 text, or a time that YAML parsed, as epoch seconds.

    None if it is missing or not valid.
    """
    if isinstance(stamp, str):
        try:
            stamp = datetime.fromisoformat(stamp)
        except ValueError:
            return None
    if not isinstance(stamp, datetime):
        return None
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=4096)
def write(epoch: float) -> str:
    """Return epoch seconds as ``metav1.Time``: UTC, whole seconds."""
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def minute(epoch: float) -> str:
    """Return epoch seconds for messages: ``2026-01-31 12:00 UTC``."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M UTC")
