"""The page of ``ui`` on the demo's cluster, as a child process."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Final

from adapter.demo.child import Child, DemoError
from adapter.demo.options import DemoOptions

_ADDRESS: Final = re.compile(r"^\s*(http://\S+)\s*$", re.MULTILINE)
_START_LIMIT: Final = 30.0
"""Real seconds that the page may take to listen."""
_IDLE: Final = 120.0
"""Simulated seconds after which a GPU counts as idle; the page counts in real seconds."""
_INTERVAL: Final = 1.0
"""Real seconds between two looks at the cluster: the demo runs several times as fast."""


def page(options: DemoOptions, folder: Path, kubeconfig: Path) -> Child:
    """Return the page; it is not started."""
    flags = ["--kubeconfig", str(kubeconfig), "--interval", f"{_INTERVAL:g}", "--demo"]
    flags += ["--idle-after", f"{_IDLE / options.effective_speed:.1f}s"]
    if not options.browser:
        flags.append("--no-browser")
    return Child(folder, options.command, ("ui", *flags))


async def address(child: Child, ended: asyncio.Task[None]) -> str:
    """Wait until the page listens, and return its address.

    Raises:
        DemoError: the process ended, or does not listen in time.
    """
    deadline = time.monotonic() + _START_LIMIT
    while (match := _ADDRESS.search(child.output())) is None:
        if ended.done():
            ended.result()
        if time.monotonic() > deadline:
            raise DemoError(
                f"the page does not listen after {_START_LIMIT:g} s; its log ends with:\n"
                f"{child.tail()}"
            )
        await asyncio.wait({ended}, timeout=0.1)
    return match[1]
