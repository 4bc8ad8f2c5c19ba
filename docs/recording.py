"""Record the demo in a terminal, and write it as an animated SVG: docs/demo.svg.

The demo runs in a pseudo-terminal with its normal settings. The recording keeps pictures at equal
distances and the first lines of the summary. A line that occurs in several pictures is written
once. The animation is CSS alone, so that it also plays where the file is shown as an image.

python -m docs.recording
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI as THEME
from rich.text import Text

ROOT: Final = Path(__file__).parents[1]
RECORDING: Final = ROOT / "docs" / "demo.svg"
COLUMNS, ROWS = 100, 32
_PICTURES: Final = 24
_SHOWN: Final = 1.2
"""Seconds that a picture is shown."""
_HELD: Final = 9.6
"""Seconds that the summary is shown."""
_LIMIT: Final = 180.0
"""Seconds that the demo may take."""
_HOME, _LEAVE = "\x1b[H", "\x1b[?1049l"
_CONTROL = re.compile(r"\x1b\[\?[0-9;]*[hl]|\x1b\[[0-9;]*[A-HJKSTf]")
_WIDTH, _HEIGHT, _SIZE, _EDGE = 8.4, 17.0, 14, 12.0
"""Of a character and the frame, in pixels."""


class Chunk(NamedTuple):
    """What the terminal got at one time."""

    at: float
    data: bytes


def main() -> None:
    """Record, and write the file."""
    frames = pictures(record([sys.executable, "-P", "-m", "adapter", "demo"]))
    RECORDING.write_text(svg(frames), encoding="utf-8")


def record(command: Sequence[str]) -> list[Chunk]:
    """Run a command in a terminal of its own, and return what it writes."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    venv = str(Path(sys.executable).parent)
    environ = os.environ | {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "PATH": f"{venv}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environ.pop(name, None)
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=slave, stdout=slave, stderr=slave, env=environ, cwd=ROOT
    )
    os.close(slave)
    chunks, begin = [], time.monotonic()
    with contextlib.suppress(OSError):  # the terminal is closed with the process
        while data := os.read(master, 1 << 16):
            chunks.append(Chunk(time.monotonic() - begin, data))
            if chunks[-1].at > _LIMIT:
                process.terminate()
    os.close(master)
    if process.wait(30):
        sys.exit(f"the demo ended with status {process.returncode}")
    return chunks


def pictures(chunks: Sequence[Chunk]) -> list[list[Text]]:
    """Return the pictures to show, the summary last, as lines of styled text."""
    written = b"".join(chunk.data for chunk in chunks).decode()
    live, _, summary = written.rpartition(_LEAVE)
    frames = [lines(text) for text in live.split(_HOME)[1:]]
    whole = [frame for frame in frames if len(frame) >= ROWS - 1]
    last = len(whole) - 1
    chosen = [whole[round(index * last / (_PICTURES - 1))] for index in range(_PICTURES)]
    return [*chosen, [Text(), *lines(summary)]]


def lines(written: str) -> list[Text]:
    """Return what a terminal shows of a picture, without the commands to the terminal."""
    text = _CONTROL.sub("", written).replace("\r", "")
    return [Text.from_ansi(line) for line in text.split("\n")][:ROWS]


def svg(frames: Sequence[Sequence[Text]]) -> str:
    """Return the pictures as an animation."""
    ids: dict[str, str] = {}
    shown = []
    for number, frame in enumerate(frames):
        rows = []
        for row, line in enumerate(frame):
            content = _line(line)
            if content:
                name = ids.setdefault(content, f"l{len(ids)}")
                rows.append(f'<use href="#{name}" y="{_y(row)}"/>')
        last = number == len(frames) - 1
        style = f"animation-delay:{number * _SHOWN:.1f}s"
        kind = "f last" if last else "f"
        shown.append(f'<g class="{kind}" style="{style}">{"".join(rows)}</g>')
    total = (len(frames) - 1) * _SHOWN + _HELD
    width, height = COLUMNS * _WIDTH + 2 * _EDGE, ROWS * _HEIGHT + 2 * _EDGE
    part, held = 100 * _SHOWN / total, 100 * _HELD / total
    style = (
        "text{white-space:pre;dominant-baseline:text-before-edge;"
        f"font:{_SIZE}px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}}"
        f".f{{visibility:hidden;animation:s {total:.1f}s steps(1) infinite}}"
        f".last{{animation-name:h}}"
        f"@keyframes s{{0%{{visibility:visible}}{part:.3f}%{{visibility:hidden}}}}"
        f"@keyframes h{{0%{{visibility:visible}}{held:.3f}%{{visibility:hidden}}}}"
        "@media(prefers-reduced-motion:reduce){.f{animation:none}.last{visibility:visible}}"
    )
    lines_ = "".join(f'<g id="{name}">{content}</g>' for content, name in ids.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">'
        "<title>The demo of gpu-metrics-adapter in a terminal</title>"
        f"<style>{style}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{THEME.background_color.hex}"/>'
        f'<defs>{lines_}</defs><g transform="translate({_EDGE:g} {_EDGE:g})" '
        f'fill="{THEME.foreground_color.hex}">{"".join(shown)}</g></svg>\n'
    )


def _y(row: int) -> str:
    return f"{row * _HEIGHT:g}"


def _line(line: Text) -> str:
    """Return a line as elements; each run of one style has its width in any font."""
    parts, column = [], 0
    plain = line.plain
    ends = sorted({0, len(plain), *(end for span in line.spans for end in (span.start, span.end))})
    for start, end in pairwise(ends):
        run, cells = plain[start:end], cell_len(plain[start:end])
        style = Style.combine(
            [
                Style(),
                *(
                    span.style
                    for span in line.spans
                    if span.start <= start < span.end and isinstance(span.style, Style)
                ),
            ]
        )
        parts.append(_run(run, column, cells, style))
        column += cells
    return "".join(parts)


def _run(run: str, column: int, cells: int, style: Style) -> str:
    x, width = f"{column * _WIDTH:g}", f"{cells * _WIDTH:g}"
    behind = ""
    if style.bgcolor and not style.bgcolor.is_default:
        color = style.bgcolor.get_truecolor(THEME, foreground=False).hex
        behind = f'<rect x="{x}" width="{width}" height="{_HEIGHT:g}" fill="{color}"/>'
    if not run.strip():
        return behind
    marks = ""
    if style.color and not style.color.is_default:
        marks += f' fill="{style.color.get_truecolor(THEME).hex}"'
    if style.bold:
        marks += ' font-weight="700"'
    if style.dim:
        marks += ' opacity=".65"'
    return f'{behind}<text x="{x}" textLength="{width}"{marks}>{escape(run, quote=False)}</text>'


if __name__ == "__main__":
    main()
