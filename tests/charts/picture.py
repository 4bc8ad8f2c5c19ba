"""Take the pictures of the dashboards: a real Prometheus, a real `serve`, and simulated load.

The queries are those of the dashboards, and Prometheus answers them. Three minutes of load on
simulated GPUs are scraped once a second.

python -m tests.charts.picture            the pictures of the guide
python -m tests.charts.picture FOLDER     every panel of every dashboard, into this folder
"""

from __future__ import annotations

import base64
import json
import math
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from charts.generate.dashboard import BOARDS, dashboard
from tests.browser.page import start
from tests.charts import clusterpages
from tests.charts.clusterpages import Scaled
from tests.charts.conftest import Monitored, monitoring
from tests.charts.drawing import Samples, height, page
from tests.charts.test_dashboard import CHOICES, asked
from tests.needs import PROMETHEUS, use

DOCS: Final = Path(__file__).parents[2] / "docs"
GUIDE: Final = ("use", "hpas", "servers", "adapter")
"""The dashboards with a picture. That of nodes has none: the page of nodepool stands still here."""
_SECONDS: Final = 180
_TARGET, _MOST, _FREE = 70.0, 8, 6
"""Of the HPA, and the GPUs that there are before a node is added."""


class Load:
    """A workload whose HPA follows its load, second by second."""

    def __init__(self) -> None:
        self._there = self._wished = 2
        self._answered = self._slow = 0

    def pages(self, second: int) -> dict[str, str]:
        """What exporters, kube-state-metrics and servers show in this second."""
        demand = 330 + 260 * math.sin(second / 28) + 12 * math.sin(second / 4)
        free = _FREE if second < 110 else _MOST
        self._there = min(self._wished, free)
        busy = min(demand / self._there, 100.0)
        if second % 10 == 0:
            asked_for = math.ceil(self._there * (demand / self._there) / _TARGET)
            self._wished = max(2, min(asked_for, _MOST, self._there + 2))
        pods = [f"llm-7d9f8b6c5d-{name}" for name in "abcdefgh"[: self._wished]]
        placed = pods[: self._there]
        queue = max(demand / self._there - 90, 0)
        self._answered += 8
        self._slow += min(round(queue / 2), 8)
        shown = {
            "vllm:num_requests_waiting": round(queue),
            "vllm:num_requests_running": round(busy / 3),
            "vllm:kv_cache_usage_perc": round(busy / 110, 3),
        }
        return {
            "/gpu-a": clusterpages.exporter("gpu-a", tuple(placed[::2]), busy / 80),
            "/gpu-b": clusterpages.exporter("gpu-b", tuple(placed[1::2]), busy / 80),
            "/ksm": clusterpages.kube_state_metrics(
                [
                    Scaled("ml", "llm", _MOST, self._there, self._wished, round(busy, 1)),
                    Scaled("ml", "rag", 3, 3, 3, 92),
                    Scaled("ml", "embed", 4, 2, 2, 66),
                    Scaled("web", "shop", 3, 1, 1),
                ],
                {pod: pod not in placed for pod in pods},
            ),
            "/others": clusterpages.others(
                dict.fromkeys(placed, shown), self._answered, self._slow
            ),
        }


def main() -> None:
    """Play the load, and draw."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else None
    use(PROMETHEUS)
    with tempfile.TemporaryDirectory() as place, monitoring(Path(place)) as monitored:
        load, begun = Load(), time.time()
        for second in range(_SECONDS):
            monitored.pages.update(load.pages(second))
            monitored.ask()
            time.sleep(max(begun + second + 1 - time.time(), 0))
        for name in GUIDE if folder is None else BOARDS:
            model = dashboard(name)
            opened = folder is not None
            text = page(model, lambda expr: series(monitored, expr, begun), opened=opened)
            file = (folder or DOCS) / f"dashboard-{name}.png"
            shoot(text, height(model, opened=opened), file)


def series(
    monitored: Monitored, expr: str, begun: float
) -> Sequence[tuple[Mapping[str, str], Samples]]:
    """Answer a query over the whole time, every two seconds."""
    query = {
        "query": asked(expr, CHOICES["everything"])
        .replace("[1m]", "[20s]")
        .replace("[5m]", "[1m]"),
        "start": str(begun + 25),
        "end": str(begun + _SECONDS - 1),
        "step": "2",
    }
    url = f"{monitored.url}/api/v1/query_range?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        rows: list[Any] = json.load(answer)["data"]["result"]
    return [
        (row["metric"], [(at, float(text)) for at, text in row["values"] if text != "NaN"])
        for row in rows
    ]


def shoot(text: str, high: int, file: Path) -> None:
    """Write the picture of a page."""
    browser = start()
    try:
        encoded = base64.b64encode(text.encode()).decode()
        browser.get(f"data:text/html;base64,{encoded}")
        size = {"width": 1410, "height": high, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        file.write_bytes(base64.b64decode(shot["data"]))
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
