"""Bounds that apply to every vendor's devices."""

from __future__ import annotations

from typing import Final

MIB: Final = 1048576
MAX_MIB: Final = 16.0 * 1024 * 1024
"""16 TiB of device memory: far above any device, and far below DCGM's blank value 2147483632 and
AMD's 4294967295."""
MAX_BYTES: Final = MAX_MIB * MIB
MAX_WATTS: Final = 10_000.0
MAX_CELSIUS: Final = 200.0
MAX_MEGAHERTZ: Final = 100_000.0
