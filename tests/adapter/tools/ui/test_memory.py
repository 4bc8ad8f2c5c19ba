"""What a look frees goes back to the system."""

from __future__ import annotations

import os
from pathlib import Path

from adapter.tools.ui.memory import release
from tests.needs import GLIBC, needs

_BLOCK = 64 << 10


@needs(GLIBC)
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
