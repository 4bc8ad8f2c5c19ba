"""The checks of Prometheus, on a real one: each fault is made in how it scrapes.

One engine scrapes every case; a case is the label ``case`` of its targets, which
``source.prometheus.matchers`` selects. What needs minutes of history is written with promtool.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.fetch import direct_fetcher
from adapter.tools.doctor.results import Outcome
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.store import ask
from tests.adapter.pipeline.sources.prometheus.engines import (
    Pages,
    engine,
    scrape_config,
    series,
    serving,
)
from tests.adapter.tools.doctor.clean import HOLDERS, HOME, clean_store, own_workload
from tests.needs import PROMETHEUS, PROMTOOL, needed_by_fixture

CHECKS = {"GMA301", "GMA302", "GMA303", "GMA304", "GMA305", "GMA306"}
FIELDS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")


def page(node: str) -> str:
    """Two devices: a pod holds the first one."""
    held = f'gpu="0",UUID="GPU-{node}",pod="{HOLDERS[node]}",namespace="chat",container="main"'
    free = f'gpu="1",UUID="GPU-{node}-free"'
    return "".join(f"{name}{{{labels}}} 1\n" for name in FIELDS for labels in (held, free))


def jobs(case: str, nodes: Iterable[str] = HOLDERS, **more: Any) -> list[Mapping[str, object]]:
    """The scrape jobs of a case, one for each node, labelled as a ServiceMonitor does."""
    return [
        {
            "job_name": f"{case}-{node}",
            "metrics_path": f"/{node}",
            "labels": {
                "case": case,
                "instance": f"{node}:9400",
                "namespace": "gpu-operator",
                "pod": f"dcgm-exporter-{node}",
                "container": "exporter",
            },
            **more,
        }
        for node in nodes
    ]


def relabel(action: str, regex: str, **more: object) -> dict[str, Any]:
    return {"metric_relabel_configs": [{"action": action, "regex": regex, **more}]}


NO_SERIES = relabel("drop", "DCGM_.*", source_labels=["__name__"])
NO_PODS = relabel("labeldrop", "exported_.*")
JOBS = [
    *jobs("clean"),
    *jobs("no_series", **NO_SERIES),
    *jobs("partial", ["gpu-a"]),
    *jobs("no_pods", **NO_PODS),
    *jobs("collision", honor_labels=True),
]
CASES = {
    "clean": set[str](),
    "no_series": {"GMA302"},
    "of_no_target": {"GMA302"},
    "partial": {"GMA303"},
    "no_pods": {"GMA305"},
    "collision": {"GMA306"},
    "often": set[str](),
    "seldom": {"GMA304"},
    "a_new_target": set[str](),
    "new_pods": set[str](),
}
"""Case -> the ids that are found."""


class History(NamedTuple):
    """Samples of a device before now: seconds ago, and the interval."""

    start: float
    end: float
    interval: float
    device: str = "0"


HISTORIES = {
    "often": [History(600, 0, 15)],
    "seldom": [History(600, 0, 60)],
    # It has four samples: over five minutes, that looks like one every 75 s.
    "a_new_target": [History(45, 0, 15)],
    # A pod follows another one on the only device of its node.
    "new_pods": [History(600, 60, 15, "old"), History(45, 0, 15, "new")],
}


def history(now: float) -> str:
    """The samples of all histories in the OpenMetrics format, by time."""
    rows = [
        (now - history.start + step * history.interval, case, node, history.device)
        for case, histories in HISTORIES.items()
        for history in histories
        for node in HOLDERS
        for step in range(int((history.start - history.end) / history.interval) + 1)
    ]
    lines = []
    for name in FIELDS:
        lines.append(f"# TYPE {name} gauge")
        for moment, case, node, device in sorted(rows):
            pod = HOLDERS[node] if device != "old" else "before"
            labels = (
                f'case="{case}",instance="{node}:9400",job="x",UUID="GPU-{node}",gpu="0",'
                f'exported_pod="{pod}",exported_namespace="chat",pod="dcgm",namespace="gpu"'
            )
            lines.append(f"{name}{{{labels}}} 1 {moment:.3f}")
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
@needed_by_fixture(PROMETHEUS, PROMTOOL)
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that has scraped every case."""
    folder: Path = tmp_path_factory.mktemp("store")
    written = folder / "history.txt"
    written.write_text(history(time.time()))
    command = [PROMTOOL.path(), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run(
        [*command, written, folder / "data"], check=True, capture_output=True, timeout=120
    )
    with serving(Pages({f"/{node}": page(node) for node in HOLDERS})) as pages:
        config = scrape_config(pages.port, JOBS)
        with engine("prometheus", folder, config) as base:
            deadline = time.monotonic() + 60
            while series(base, "scrape_samples_scraped > 0") < len(JOBS):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield base


def asked(url: str, case: str = "clean") -> Facts:
    """The facts of a clean cluster whose adapter reads this Prometheus."""
    facts = clean_store()
    own_pods = [pod for pod in facts.pods.read() if pod.pod.ref.namespace == HOME]
    text = (
        f"source: {{kind: prometheus, prometheus: {{url: '{url}', matchers: 'case=\"{case}\"'}}}}"
    )
    facts.release = Fact(own_workload(text, own_pods))

    async def look() -> None:
        async with direct_fetcher() as near:
            facts.store = Fact(await ask(facts.settings, near))

    asyncio.run(look())
    return facts


def found(facts: Facts) -> dict[str, str]:
    results = run(facts)
    assert [result.check.id for result in results if result.outcome is Outcome.UNKNOWN] == []
    return {result.check.id: result.findings[0].message for result in results if result.findings}


def test_a_fault_is_found_and_nothing_else(url: str, subtests: pytest.Subtests) -> None:
    for case, expected in CASES.items():
        with subtests.test(case=case):
            assert set(found(asked(url, case))) == expected


def test_the_interval_is_the_real_one(url: str) -> None:
    assert found(asked(url, "seldom"))["GMA304"].endswith("every 60 s, and the settings say 15 s")


@pytest.mark.parametrize("path", ["/nowhere", "/prom/api/v1"])
def test_a_url_that_is_wrong(url: str, path: str) -> None:
    message = found(asked(url.removesuffix("/prom") + path))
    assert set(message) == {"GMA301"}
    assert message["GMA301"].startswith("HTTP status 404")
    assert message["GMA301"].endswith("check the URL's path prefix")


def test_an_address_where_nothing_listens() -> None:
    message = found(asked("http://127.0.0.1:1"))
    assert set(message) == {"GMA301"}
    assert "cannot connect to 127.0.0.1:1" in message["GMA301"]


def test_every_check_has_a_fault() -> None:
    assert set().union(*CASES.values()) | {"GMA301"} == CHECKS
