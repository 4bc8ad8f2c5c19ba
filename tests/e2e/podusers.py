"""Whether a test can switch users on this machine."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def many() -> bool:
    """Whether files and processes can be given to any user: root outside a user namespace."""
    rows = Path("/proc/self/uid_map").read_text().split()
    return int(rows[2]) > 65535 and _capable()


def _capable() -> bool:
    rows = Path("/proc/self/status").read_text().splitlines()
    (effective,) = (row.split()[1] for row in rows if row.startswith("CapEff:"))
    chown, setuid, setgid = 0, 7, 6
    return all(int(effective, 16) >> bit & 1 for bit in (chown, setuid, setgid))
