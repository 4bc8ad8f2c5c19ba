"""`top` in a real pseudo-terminal: it lives, follows keys and sizes, and restores the terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from adapter.tools.client.errors import VIEW
from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.tools.explain.cluster import NO_PODS_NAMED, World, gpu_metric
from tests.adapter.tools.top.cluster import GPU_ROWS, HPAS, gpu, serve
from tests.adapter.tools.top.terminal import Terminal, terminal

TOP = "from adapter.__main__ import main; main()"
BREAKS = """
from adapter.tools.top.frame import Painter
paint, times = Painter.paint, []
def breaks(self, *given):
    times.append(1)
    if len(times) > 3:
        raise RuntimeError("broken on purpose")
    return paint(self, *given)
Painter.paint = breaks
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, list[str]]]:
    """A server, and the arguments of `top` for it."""
    with api_server(tmp_path) as (server, file):
        World().pod("llm-x2k", why=NO_PODS_NAMED).hpa(gpu_metric(), desired=3).serve(server)
        serve(server)
        yield server, ["--kubeconfig", str(file), "--interval", "1"]


def test_it_lives_and_follows_the_keys(lab: tuple[ApiServer, list[str]]) -> None:
    server, arguments = lab
    with terminal(TOP, "top", *arguments) as shown:
        before = shown.mode
        picture = shown.see("Nodes with idle GPUs")
        assert len(picture) == 30
        assert picture[1].startswith("1 of 3 HPAs is stuck, 1 HPA is overloaded")
        shown.press("1")
        shown.see("> n1.gpu0")
        assert shown.mode != before
        serve(server, gpus=[*GPU_ROWS, gpu("n7.gpu0", "99%")])
        assert shown.see("> n7.gpu0")
        shown.press("p\x1b[B")
        shown.see("> chat        llm-a11")
        shown.press("/x2k")
        picture = shown.see("/x2k_")
        assert next(line for line in picture if line.startswith("> ")).split()[2] == "llm-x2k"
        shown.press("\r\r")
        shown.see("fix: kubectl patch clusterpolicies.nvidia.com")
        shown.press("q")
        shown.see("> chat        llm-x2k")
        shown.press("q")
        shown.see("of 5   ")
        shown.press("q")
        assert shown.end() == 0
        assert shown.restored
        assert shown.mode == before


def see_start(shown: Terminal) -> None:
    shown.see("HPAs that need attention")


@pytest.mark.parametrize(
    ("end", "status"),
    [("\x03", 130), ("q", 0), ("\x04", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_the_terminal_is_restored_however_it_ends(
    end: str | signal.Signals, status: int, lab: tuple[ApiServer, list[str]]
) -> None:
    with terminal(TOP, "top", *lab[1]) as shown:
        before = shown.mode
        see_start(shown)
        if isinstance(end, str):
            shown.press(end)
        else:
            os.kill(shown.process.pid, end)
        assert shown.end() == status
        assert shown.restored
        assert shown.mode == before
        assert b"Traceback" not in shown.written


def test_the_terminal_is_restored_after_an_error(lab: tuple[ApiServer, list[str]]) -> None:
    with terminal(BREAKS + TOP, "top", *lab[1]) as shown:
        before = shown.mode
        see_start(shown)
        shown.press("jjjj")
        assert shown.end() == 1
        assert shown.restored
        assert shown.mode == before
        assert bytes(shown.written).rfind(b"broken on purpose") > bytes(shown.written).rfind(
            b"1049l"
        )


def test_ctrl_z_gives_the_terminal_back_until_it_continues(
    lab: tuple[ApiServer, list[str]],
) -> None:
    with terminal(TOP, "top", *lab[1]) as shown:
        before = shown.mode
        see_start(shown)
        shown.press("\x1a")
        program = psutil.Process(shown.process.pid)
        # What it wrote before it stopped may not have been read yet.
        shown.wait(lambda _: program.status() == psutil.STATUS_STOPPED and shown.restored)
        assert shown.mode == before
        drawn = len(shown.written)
        os.kill(shown.process.pid, signal.SIGCONT)
        shown.wait(lambda _: b"1049h" in shown.written[drawn:])
        shown.press("1")
        shown.see("> n1.gpu0")
        shown.press("q")
        assert shown.end() == 0
        assert shown.restored


def test_it_follows_the_size_of_the_terminal(lab: tuple[ApiServer, list[str]]) -> None:
    with terminal(TOP, "top", "gpus", *lab[1], size=(80, 24)) as shown:
        assert len(shown.see("> n1.gpu0")) == 24
        for columns, lines in ((40, 10), (20, 5), (3, 2), (1, 1), (200, 60), (80, 24)):
            shown.resize(columns, lines)
            picture = shown.wait(lambda found, lines=lines: len(found) == lines)  # type: ignore[misc] # mypy does not know defaults of lambdas
            assert max(map(len, picture)) <= columns
        shown.see("> n1.gpu0")
        shown.press("q")
        assert shown.end() == 0


def test_without_colours_and_unicode_it_is_plain_ascii(lab: tuple[ApiServer, list[str]]) -> None:
    with terminal(TOP, "top", "gpus", *lab[1], NO_COLOR="1", PYTHONIOENCODING="ascii") as shown:
        shown.see("#######. 92%")
        shown.press("q")
        assert shown.end() == 0
        written = bytes(shown.written)
        assert written.isascii()
        assert not any(b"\x1b[3%d" % colour in written for colour in range(8))


def test_a_list_that_fails_later_keeps_its_rows_and_says_why(
    lab: tuple[ApiServer, list[str]],
) -> None:
    server, arguments = lab
    with terminal(TOP, "top", "hpas", "-A", *arguments) as shown:
        shown.see("stuck at 3")
        path = f"{HPAS}/horizontalpodautoscalers"
        denied = forbidden("jane", "list", "horizontalpodautoscalers", "autoscaling", "")
        server.answers[path] = denied
        picture = shown.see("! jane may not list horizontalpodautoscalers")
        assert any("stuck at 3" in line for line in picture)
        shown.press("e")
        shown.see("kubectl create clusterrole")
        shown.press("q a")
        shown.see("namespace chat")
        shown.press("\x04")
        assert shown.end() == 0


def test_a_cluster_that_cannot_be_read_is_one_line_on_the_users_own_screen(
    lab: tuple[ApiServer, list[str]],
) -> None:
    server, arguments = lab
    server.tables.clear()
    server.answers.clear()
    with terminal(TOP, "top", *arguments) as shown:
        assert shown.end() == 2
        shown.see(f"the cluster does not serve {VIEW.split('/')[2]}")
        assert b"\x1b[?1049h" not in shown.written


def test_a_dumb_terminal_gets_one_plain_table(lab: tuple[ApiServer, list[str]]) -> None:
    with terminal(TOP, "top", "gpus", *lab[1], TERM="dumb") as shown:
        assert shown.end() == 0
        shown.see("n2.gpu10")
        assert b"\x1b" not in shown.written
