"""What a look frees goes back to the system."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from adapter.ui.memory import release

_BLOCK = 64 << 10


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is of glibc")
def test_gaps_between_blocks_in_use_are_returned() -> None:
    blocks = [bytearray(b"x" * _BLOCK) for _ in range(1_000)]
    kept = blocks[::20]
    del blocks
    before = _resident()
    release()
    assert before - _resident() > 500 * _BLOCK
    assert all(block[-1] == ord("x") for block in kept)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
