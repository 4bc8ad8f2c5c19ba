"""Reload of the configuration file (a mounted ConfigMap): what a running process can change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

from adapter.config.process import logs
from adapter.config.process.config import ConfigError
from adapter.config.settings import Settings
from apiservice.runtime.filestamp import Changes

log = structlog.get_logger(__name__)

RESTART = (
    *("server", "authentication", "authorization", "cluster", "external", "delegation", "keda"),
    *("view", "rules", "accounting", "recording", "ahead", "memory"),
)
"""Sections that are read at the start only."""


class ConfigWatch:
    """Loads the settings again when their file has changed. A bad file keeps the active settings.

    A change is loaded once the file has looked the same in two checks, because a file may still be
    being written at the first.
    """

    def __init__(
        self,
        file: Path | None,
        settings: Settings,
        load: Callable[[], Settings],
        use: Callable[[Settings], None],
    ) -> None:
        self._changes = Changes([file]) if file else None
        self._first = True
        """The file may have changed since the settings were loaded."""
        self._load = load
        self._use = use
        self._started = settings
        self._settings = settings
        self.problem = ""
        """Why the current file is not in use. Empty if it is in use."""
        self.reloads = 0
        """Changes that took effect."""

    def check(self) -> None:
        """Apply a change, if there is one. Called every few seconds."""
        if self._changes is None or not self._changes.take():
            return
        first, self._first = self._first, False
        try:
            settings = self._load()
            if first and settings == self._settings:
                return
            self._use(settings)
        except ConfigError as error:
            self.problem = "; ".join(error.problems)
            log.error(
                "settings rejected; the previous settings stay active", problems=error.problems
            )
            return
        self.problem = ""
        self.reloads += 1
        if settings.log != self._settings.log:
            logs.configure(settings.log)
        self._settings = settings
        log.info("settings reloaded", needs_restart=self.needs_restart)

    @property
    def needs_restart(self) -> list[str]:
        """Sections that differ from the active settings."""
        return [
            name
            for name in RESTART
            if getattr(self._settings, name) != getattr(self._started, name)
        ]
