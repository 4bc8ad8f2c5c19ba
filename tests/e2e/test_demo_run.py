"""The whole demo, with the real ``serve`` in a process of its own."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from adapter.demo.options import DemoOptions
from adapter.demo.run import run
from tests.needs import CURL, LINUX, needs

ROOT = Path(__file__).parents[2]
SCRIPT = (
    "import sys; from adapter.demo.options import DemoOptions; from adapter.demo.run import run; "
    "sys.exit(run(DemoOptions(seconds=50, speed=20, plain=True)))"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def played(options: DemoOptions) -> tuple[int, str]:
    file = io.StringIO()
    code = run(options, Console(file=file, width=100))
    return code, file.getvalue()


def test_it_plays_reads_real_values_sums_up_and_leaves_nothing(temporary: Path) -> None:
    code, text = played(DemoOptions(seconds=8, speed=30))
    assert code == 0
    assert "HPA embed: 2 -> 3" in text or "HPA embed: 2 -> 4" in text
    assert "three signals. 90% of the requests of chat are promised" in " ".join(text.split())
    reads = re.search(
        r"made (\d+) requests over HTTPS, (\d+) of them returned", " ".join(text.split())
    )
    assert reads
    assert int(reads[2]) > 0
    assert re.search(r"on its queue: HPA chat: \d -> \d+: inference_requests_", text)
    both = re.search(r"syncs above the target and its tolerance +\d+% +\d+%", text)
    assert both, "the HPAs of both clusters read values"
    assert list(temporary.iterdir()) == []


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    yield process
    if process.poll() is None:
        process.terminate()
        process.communicate(timeout=30)
    if process.stdout:
        process.stdout.close()


def read_until(process: subprocess.Popen[str], part: str) -> str:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if part in line:
            return text
    pytest.fail(f"the demo ended before it wrote {part!r}:\n{text}")


@needs(CURL)
def test_the_printed_curl_command_answers(demo: subprocess.Popen[str]) -> None:
    text = read_until(demo, "HPA embed: 2 -> ")
    command = re.search(r"^curl -K .*$", text, re.MULTILINE)
    assert command
    answer = subprocess.run(
        ["bash", "-c", command[0]], capture_output=True, check=True, timeout=20
    ).stdout
    content = json.loads(answer)
    assert content["kind"] == "MetricValueList"
    assert {item["describedObject"]["name"].split("-")[0] for item in content["items"]} == {
        "chat",
        "embed",
    }


def test_a_signal_ends_it_with_the_summary_and_without_a_trace(
    demo: subprocess.Popen[str], temporary: Path
) -> None:
    read_until(demo, "00:00  embed")
    children = psutil.Process(demo.pid).children(recursive=True)
    assert children
    demo.send_signal(signal.SIGINT)
    rest, _ = demo.communicate(timeout=30)
    assert demo.returncode == 0
    assert "requests served" in rest
    assert "Traceback" not in rest
    assert not any(child.is_running() for child in children)
    assert list(temporary.iterdir()) == []


def works(process: psutil.Process) -> bool:
    """It has not ended; who inherits an orphan may be slow to collect what is left of it."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@needs(LINUX)
def test_a_killed_demo_takes_its_serve_along(demo: subprocess.Popen[str]) -> None:
    read_until(demo, "00:00  embed")
    children = psutil.Process(demo.pid).children(recursive=True)
    assert children
    demo.kill()
    deadline = time.monotonic() + 30
    while any(map(works, children)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_signal_during_the_start_is_clean_too(
    demo: subprocess.Popen[str], temporary: Path
) -> None:
    read_until(demo, "starting serve")
    demo.send_signal(signal.SIGTERM)
    rest, _ = demo.communicate(timeout=30)
    assert demo.returncode == 0
    assert "Traceback" not in rest
    assert list(temporary.iterdir()) == []


def test_a_serve_that_does_not_start_is_an_error_with_its_log(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = (sys.executable, "-c", "import sys; print('no such key [x]'); sys.exit(3)")
    code, _ = played(DemoOptions(seconds=5, command=broken))
    assert code == 1
    assert capsys.readouterr().err == (
        "demo: serve ended with exit code 3; its log ends with:\n    no such key [x]\n"
    )
    assert list(temporary.iterdir()) == []


def test_a_taken_port_is_an_error_with_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _ = played(DemoOptions(seconds=5, port=port))
    assert code == 1
    assert capsys.readouterr().err == (
        f"demo: port {port} of 127.0.0.1 cannot be used (Address already in use): "
        "give another with --port, or leave it out for a free one\n"
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seconds": 0.0}, "--seconds 0: give a number above 0"),
        ({"seconds": float("nan")}, "--seconds nan: give a number above 0"),
        ({"seconds": float("inf")}, "--seconds inf: give a number above 0"),
        ({"speed": float("nan")}, "--speed nan: give a number from 1 to 60"),
        ({"speed": 0.5}, "--speed 0.5: give a number from 1 to 60"),
        ({"speed": 100.0}, "--speed 100: give a number from 1 to 60"),
        ({"port": 70000}, "--port 70000: give a number from 0 to 65535"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        DemoOptions(**wrong)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("seconds", "speed", "effective"),
    [(60, None, 15), (90, None, 10), (10, None, 30), (3600, None, 1), (10, 4.0, 4)],
)
def test_the_story_fits_the_time_unless_a_speed_is_given(
    seconds: float, speed: float | None, effective: float
) -> None:
    assert DemoOptions(seconds=seconds, speed=speed).effective_speed == effective


def test_with_a_page_the_story_is_played_again_and_again() -> None:
    options = DemoOptions(ui=True)
    assert (options.effective_seconds, options.effective_speed) == (3600, 7.5)
    assert DemoOptions(ui=True, seconds=30).effective_speed == 30


def test_the_page_of_ui_shows_the_demo(temporary: Path) -> None:
    code, text = played(DemoOptions(seconds=3, speed=30, ui=True, browser=False))
    assert code == 0
    assert re.search(r"^The page: http://127\.0\.0\.1:\d+/\?token=\S+$", text, re.MULTILINE)
    assert list(temporary.iterdir()) == []
