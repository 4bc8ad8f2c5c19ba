"""Settings: the log."""

from __future__ import annotations

from typing import Literal

from adapter.config.settings.types import Section


class LogSettings(Section):
    """The log on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest severity that is written."""
    format: Literal["auto", "console", "json"] = "auto"
    """``auto`` writes console text on a terminal and JSON elsewhere."""
