"""The failure to inject, as the command line names it."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import click

from adapter.client.options import DURATION
from adapter.replay.inputoptions import INSTANT

ADAPTER: Final = "adapter"
EXPORTER: Final = "exporter"
SERVER: Final = "server"
_KINDS: Final = (EXPORTER, SERVER, ADAPTER)
_WRITTEN: Final = re.compile(r"([a-z]+):([^@]+)(?:@(.+))?")
_FORM: Final = "write exporter, server or adapter, and a time, such as exporter:10m"


class Failure(NamedTuple):
    """What fails, and for how long."""

    kind: str
    seconds: float
    start: float | None = None
    """Epoch seconds; None for the time at which the demand rises most."""


class FailureType(click.ParamType[Failure]):
    """``exporter:10m``, ``adapter:1h@2026-09-21T14:00Z``."""

    name = "failure"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Failure:
        """Return the failure."""
        found = _WRITTEN.fullmatch(str(value))
        if found is None or found[1] not in _KINDS:
            self.fail(f"{value!r}: {_FORM}", param, ctx)
        seconds = DURATION.convert(found[2], param, ctx)
        if not seconds:
            self.fail(f"{value!r} takes no time: {_FORM}", param, ctx)
        start = None if found[3] is None else INSTANT.convert(found[3], param, ctx)
        return Failure(found[1], seconds, start)
