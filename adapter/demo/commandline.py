"""The command that runs the adapter, as the user can type it into a second terminal."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

NAME: Final = "gpu-metrics-adapter"


def adapter_command() -> str:
    """Return the command's name, or its path if the shell does not find the name.

    A virtual environment that is not activated has the command beside its interpreter. A checkout
    that is not installed has only the module.
    """
    if shutil.which(NAME):
        return NAME
    beside = Path(sys.executable).with_name(NAME)
    if shutil.which(str(beside)):
        return shlex.quote(str(beside))
    return f"{shlex.quote(sys.executable)} -m adapter"
