"""The picture fits its terminal and says what matters; the lines say the same."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from adapter.demo.captions import PINNED
from adapter.demo.panels import ASCII, UNICODE
from adapter.demo.screen import event_line, nodepool_line, signal_lines, status_line
from adapter.demo.state import DemoState, clock
from adapter.demo.summary import outcomes, summary
from adapter.demo.view import View
from adapter.demo.world import DemoEvent


def drawn(state: DemoState, width: int, height: int, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, height=height, force_terminal=True, color_system=None)
    console.print(View(state))
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (100, 32), (110, 38), (140, 45), (220, 60)])
async def test_the_picture_fills_its_terminal_and_no_more(
    state: DemoState, size: tuple[int, int]
) -> None:
    width, height = size
    lines = drawn(state, width, height)
    assert len(lines) == height
    assert max(len(line) for line in lines) <= width


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_the_picture_says_what_matters(state: DemoState, size: tuple[int, int]) -> None:
    text = "\n".join(drawn(state, *size))
    for part in (
        "01:30 of 15:00, 15x",
        "chat: HPA 2 to 12, gpu_utilization 70, on nvidia.com/gpu",
        "98 is over the target of 70",
        "no value: keeps 2 (ScalingActive=False, FailedGetPodsMetric)",
        "without a GPU",
        "h100-2",
        "booting, 15 s left",
        "mig-1 exporter dead",
        "booting, ready in 90 s",
        "nodepool: 2 pods of headroom, 0 ready: the minimum headroom is 2 pods",
        "without chat ●●●●○○  1 node, 1 booting; waited for a GPU: 105 pod-seconds",
        "same  scaled on its queue: ●●●",
        "second terminal: export KUBECONFIG=/tmp/gma-demo-x/kubeconfig; "
        + ("gpu-metrics-adapter top" if size[0] > 100 else "kubectl get gpus"),
    ):
        assert part in text


async def test_a_terminal_without_block_characters_gets_ascii(state: DemoState) -> None:
    assert "\n".join(drawn(state, 80, 24, "ascii")).isascii()


async def test_the_summary_counts_what_happened(state: DemoState) -> None:
    file = io.StringIO()
    Console(file=file, width=120, color_system=None).print(summary(state))
    text = " ".join(file.getvalue().split())
    assert (
        "01:30 simulated (after a warm-up of 00:30, which totals include), 15x real time, seed 7"
    ) in text
    assert "replicas, minimum to maximum 2 to 6 2 to 2" in text
    assert re.search(
        r"seed 7 1\. The same requests, three signals\. 90% of the requests of chat are promised a "
        r"first token within 2\.5 s\. Scaled on a promise, [\d.]+% had it, for \d+ GPU-minutes; on "
        r"its queue, [\d.]+% had it, for \d+ GPU-minutes; on GPU utilization, [\d.]+% had it, .* "
        r"2\. Replicas ahead of demand: chat on its queue and on what 2 earlier days make its HPA "
        r"expect: [\d.]+% had it, for \d+ GPU-minutes\. 3\. The exporter of mig-1 .* 4\. Pods of "
        r"chat waited for a GPU 105 pod-seconds with nodepool and 105 without",
        text,
    ), "the outcomes come first"
    assert text.endswith("Next, on your own cluster: gpu-metrics-adapter doctor")
    assert (
        "The exporter of mig-1 was dead from 00:00 to 01:30: embed had no value at 5 of 5 syncs "
        "(ScalingActive=False) and was scaled in 0 times in these. A made-up 0 would have scaled "
        "in 2 -> 1."
    ) in text
    assert "The HPAs made 8 requests over HTTPS, 4 of them returned values: median 2.0 ms, " in text
    assert "99 % within 5.0 ms." in text
    for row in (
        "chat with nodepool without",
        "pod-seconds of waiting for a GPU 105 105",
        "longest wait of a pod 60 s 60 s",
        "burst at 01:00: 9 pods Running after not yet not yet",
        "GPU-hours of the nodes, counted from the order 0.22 (+30%) 0.17",
        "syncs above the target and its tolerance 100% 100%",
    ):
        assert row in text
    assert (
        "nodepool learned from 2 earlier days of the same load, simulated before this run with the "
        "seeds 9, 8. gpu_utilization of chat asked for up to 12, 14 pods there."
    ) in text


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_current_caption_is_shown_to_its_last_word(
    state: DemoState, size: tuple[int, int]
) -> None:
    text = (
        "no value: keeps 5 (ScalingActive=False, FailedGetPodsMetric). Missing means hold; "
        "a made-up 0 would scale in 5 -> 1"
    )
    state.events.append(DemoEvent(60.0, "HPA embed", text, caption=True))
    state.events.extend(DemoEvent(80.0 + i, "node a", "ready") for i in range(9))
    assert text in " ".join(" ".join(drawn(state, *size)).split())
    state.world.now += PINNED
    assert text not in " ".join(" ".join(drawn(state, *size)).split()), "it makes room later"


async def test_the_summary_of_a_run_without_an_outage_says_so(state: DemoState) -> None:
    state.outages.clear()
    assert outcomes(state)[2] == "No exporter died in the part of the story that was played."


async def test_lines_stand_for_themselves(state: DemoState) -> None:
    assert event_line(DemoEvent(61.0, "node a", "ready")) == "01:01  node a: ready"
    assert nodepool_line(state) == (
        "01:30  nodepool: 2 pods of headroom; waited for a GPU so far: 105 pod-seconds with it, "
        "105 without"
    )
    lines = list(signal_lines(state))
    assert len(lines) == 3
    assert re.fullmatch(
        r"01:00  chat, same requests, scaled on its queue: \d+ wait, 12 wanted, 4 ready", lines[2]
    )
    assert status_line(state, state.autoscalers[1]) == (
        f"01:30  embed: 9.5 req/s, queue {state.world.services['embed'].queue}, 2 wanted, 2 ready, "
        "0 loading, 0 without a GPU; gpu_utilization none, target 60"
    )


@pytest.mark.parametrize(
    ("values", "top", "width", "graph"),
    [
        ([], 1.0, 5, ""),
        ([0, 50, 100], 100, 5, "▁▅█"),
        ([0, 50, 100], 100, 2, "▅█"),
        ([None, 150, -1], 100, 5, "·█▁"),
    ],
)
def test_a_graph_shows_the_latest_values(
    values: list[float | None], top: float, width: int, graph: str
) -> None:
    assert UNICODE.spark(values, top, width) == graph


@pytest.mark.parametrize(
    ("share", "bar"), [(0.0, "...."), (0.02, "#..."), (0.5, "##.."), (1.0, "####")]
)
def test_a_bar_shows_anything_above_nothing(share: float, bar: str) -> None:
    assert ASCII.bar(share, 4) == bar


@pytest.mark.parametrize(("seconds", "text"), [(-30, "00:00"), (61.9, "01:01"), (3600, "60:00")])
def test_the_clock_counts_minutes(seconds: float, text: str) -> None:
    assert clock(seconds) == text
