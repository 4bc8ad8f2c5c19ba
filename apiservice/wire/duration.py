"""Durations in the format of Go, which ``metav1.Duration`` has in JSON: ``5m0s``, ``1.5s``."""

from __future__ import annotations


def write(milli: int) -> str:
    """Return milliseconds as text."""
    if not milli:
        return "0s"
    if milli < 1000:
        return f"{milli}ms"
    minutes, rest = divmod(milli, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds
