"""Points in time as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def read(stamp: str | None) -> float | None:
    """RFC 3339 text in epoch seconds; None where it is missing or none."""
    try:
        found = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def write(epoch: float) -> str:
    """Epoch seconds as RFC 3339, to the second."""
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
