"""Settings keys that no longer exist; a configuration with one of them is rejected by name."""

from __future__ import annotations

from typing import Final

REMOVED: Final = frozenset(
    (
        "server.keep_alive",
        "server.header_timeout",
        "server.write_timeout",
        "source.prometheus.retries",
        "source.prometheus.auth.aws.service",
    )
)
"""Each of them is a constant now."""
