"""Facts about the machine and the programs that a figure depends on."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path

import psutil

_PACKAGES = ("uvicorn", "uvloop", "httptools", "fastapi", "pydantic", "msgspec")


def facts() -> dict[str, str]:
    """Name -> fact; no host names and no paths."""
    memory = psutil.virtual_memory().total / 2**30
    return {
        "processor": f"{_processor()}, {psutil.cpu_count()} cores, {memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if sys.platform == "linux" and cpuinfo.exists():
        match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if match:
            return match[1].strip()
    return platform.processor() or "unknown processor"
