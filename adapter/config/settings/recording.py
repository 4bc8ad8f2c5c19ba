"""Settings: the recording that `replay` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from adapter.config.settings.types import Section

_GIGABYTES: Final = 10


class RecordingSettings(Section):
    """A recording for `replay`: see docs/replay.md. A change of this section needs a restart."""

    file: Path | None = None
    """File to append the recording to (``--record``)."""
    max_bytes: Annotated[int, Field(ge=1 << 20)] = _GIGABYTES << 30
    """Size of the file at which the recording ends."""
