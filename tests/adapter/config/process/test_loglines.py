"""Log lines whose reader is slow, gone or out of room."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.config.process.logs import LogLines


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        os.close(end)


def fill(writer: int) -> int:
    """Until nothing more fits; returns the bytes that do."""
    os.set_blocking(writer, False)
    written = 0
    try:
        while True:
            written += os.write(writer, b"x" * 512)
    except BlockingIOError:
        os.set_blocking(writer, True)
        return written


def line(text: str) -> logging.LogRecord:
    return logging.LogRecord("test", logging.INFO, "", 0, text, (), None)


def read(reader: int, size: int) -> bytes:
    output = b""
    while len(output) < size:
        output += os.read(reader, size - len(output))
    return output


def test_lines_are_written_in_order(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    handler = LogLines(writer)
    for number in range(3):
        handler.emit(line(f"line {number} ü"))
    handler.flush()
    assert os.read(reader, 1000).decode() == "line 0 ü\nline 1 ü\nline 2 ü\n"


def test_a_reader_that_stopped_is_not_waited_for_and_gets_the_count_of_missed_lines(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    full = fill(writer)
    handler = LogLines(writer, waiting=2)
    handler.emit(line("line 0"))
    while handler.waiting:
        time.sleep(0.001)
    for number in range(1, 100):
        handler.emit(line(f"line {number}"))
    assert (handler.waiting, handler.lost) == (2, 97)
    read(reader, full)
    text = "line 0\nline 1\nline 2\nlog lines dropped because the reader was too slow: 97\n"
    assert read(reader, len(text)).decode() == text


def test_a_full_disk_raises_no_error() -> None:
    with Path("/dev/full").open("wb", buffering=0) as disk:
        handler = LogLines(disk.fileno())
        for _ in range(3):
            handler.emit(line("lost"))
        handler.flush()
        assert handler.lost == 3


def test_a_process_ends_when_its_log_has_no_reader(pipe: tuple[int, int]) -> None:
    _, writer = pipe
    fill(writer)
    program = (
        "from adapter.config.process.logs import configure\n"
        "from adapter.config.settings.log import LogSettings\n"
        "import structlog\n"
        "configure(LogSettings(format='json'))\n"
        "for _ in range(10): structlog.get_logger('x').warning('said')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], stderr=writer, timeout=180, check=False)
    assert done.returncode == 0


def test_a_process_says_all_that_it_has_to_before_it_ends() -> None:
    program = (
        "from adapter.config.process.logs import configure\n"
        "from adapter.config.settings.log import LogSettings\n"
        "import structlog\n"
        "configure(LogSettings(format='json'))\n"
        "for n in range(500): structlog.get_logger('x').warning('said', number=n)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=180, check=True
    )
    assert [json.loads(row)["number"] for row in done.stderr.splitlines()] == list(range(500))


def test_a_finalizer_may_log_at_any_point_of_another_line() -> None:
    """The collector is played by a trace: it logs at each call that is made for one line."""
    program = (
        "import logging, sys\n"
        "from adapter.config.process.logs import LogLines\n"
        "def say(text):\n"
        "    handler.handle(logging.LogRecord('x', logging.INFO, '', 0, text, (), None))\n"
        "handler = LogLines(2)\n"
        "sys.settrace(lambda *_: say('found'))\n"
        "say('said')\n"
        "sys.settrace(None)\n"
        "print('went on')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=180, check=True
    )
    assert done.stdout == b"went on\n"


def test_a_log_that_is_configured_again_keeps_its_thread() -> None:
    program = (
        "import threading\n"
        "from adapter.config.process.logs import configure\n"
        "from adapter.config.settings.log import LogSettings\n"
        "import structlog\n"
        "for form in ('json', 'console', 'json'):\n"
        "    configure(LogSettings(format=form))\n"
        "    structlog.get_logger('x').warning('said')\n"
        "print(sum(thread.name == 'log' for thread in threading.enumerate()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=180, check=True
    )
    assert done.stdout == b"1\n"
    first, second, third = done.stderr.splitlines()
    assert json.loads(first)["event"] == json.loads(third)["event"] == "said"
    assert b"said" in second
    assert not second.startswith(b"{")
