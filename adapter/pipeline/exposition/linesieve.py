"""Keep of a large page the lines that may be samples of wanted series.

A server with many data-parallel ranks, or a service mesh that merges its own series into a pod's
page (Istio's ``prometheus.io`` merging), writes pages of which a hundredth is read. So such a page
passes through here in parts, and only what is kept counts against the limits of one page.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from apiservice.runtime.steps import Steps, parts

_LINES: Final = 512
"""Lines that one step looks at: about 0.2 ms."""
_PIECE: Final = 1 << 16
"""Bytes that are split at once."""
_MAX_LINE: Final = 1 << 14
"""Bytes of a line; longer ones are dropped, as the parser would."""
_MAX_NAMES: Final = 4096
_MAX_NAME: Final = 512
_EOF: Final = b"# EOF"


class LineSieve:
    """What is kept of one page.

    Args:
        wanted: the series that are read.
        lines: lines of the page that are looked at, at most.
    """

    def __init__(self, wanted: Container[str], lines: int) -> None:
        self._wanted = wanted
        self._left = lines
        self._kept: list[bytes] = []
        self._rest = b""
        """The beginning of a line that is not complete yet."""
        self._skips = False
        """Whether that line is too long, so that its end is dropped too."""
        self._names: dict[bytes, bool] = {}
        self.size = 0
        """Bytes that are kept."""

    @property
    def exhausted(self) -> bool:
        """Whether the page has more lines than are looked at."""
        return self._left < 0

    def feed(self, part: bytes) -> Steps[None]:
        """Take the next part of the page, in steps."""
        for start in range(0, len(part), _PIECE):
            lines = (self._rest + part[start : start + _PIECE]).split(b"\n")
            self._rest = lines.pop()
            if self._skips and lines:
                del lines[0]
                self._skips = False
            self._left -= len(lines)
            for some in parts(lines, _LINES):
                for line in some:
                    if self._is_wanted(line):
                        self._kept.append(line)
                        self.size += len(line) + 1
                yield
                if self.exhausted:
                    return
            if len(self._rest) > _MAX_LINE or self._skips:
                self._rest, self._skips = b"", True

    def page(self) -> bytes:
        """Return what was kept, with a last line that is cut if the page's is."""
        end = self._rest if self._is_wanted(self._rest) else b""
        return b"".join((*(line + b"\n" for line in self._kept), end))

    def _is_wanted(self, line: bytes) -> bool:
        if line[:1] in (b"#", b""):
            return line.strip() == _EOF
        written, brace, _ = line.partition(b"{")
        if not brace:
            return self._names_wanted(line)
        wanted = self._names.get(written)
        if wanted is None:
            wanted = self._names_wanted(written)
            if len(self._names) < _MAX_NAMES and len(written) <= _MAX_NAME:
                self._names[written] = wanted
        return wanted

    def _names_wanted(self, written: bytes) -> bool:
        name = written[:_MAX_NAME].split(None, 1)[:1]
        return bool(name) and name[0].decode("latin-1") in self._wanted
