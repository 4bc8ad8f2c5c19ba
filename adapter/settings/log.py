"""What is logged."""

from __future__ import annotations

from typing import Literal

from adapter.settings.types import Section


class LogSettings(Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity written."""
    format: Literal["auto", "console", "json"] = "auto"
    """``auto`` is console on a terminal and JSON elsewhere."""
