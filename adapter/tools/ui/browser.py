"""Opening the page in a browser, where one can be seen."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Mapping


def has_display(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Return whether a browser of this machine would be seen by the user.

    Without a display, the library starts a browser of the terminal, which the page needs not.
    """
    if environ.get("SSH_CONNECTION"):
        return False
    if platform in ("darwin", "win32", "cygwin"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def open_browser(url: str) -> None:
    """Open an address; the printed address remains for a machine where this does not work."""
    threading.Thread(target=_open, args=(url,), daemon=True, name="browser").start()


def _open(url: str) -> None:
    try:
        webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return
