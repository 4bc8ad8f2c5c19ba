"""``serve`` with ``source: prometheus`` at four sizes: CPU, memory and delay of the event loop."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import yaml
from prometheus_client.parser import text_string_to_metric_families

from adapter.pipeline.catalog import Catalog
from adapter.server.serve.build import query_groups
from load.drive import idle_shares
from load.fleet import NAMESPACE, nodes
from load.page import FIELDS, UTIL
from load.peer import scrape_config
from load.pki import issue
from load.process import PYTHON, Child, Observed, run_child, wait_until
from load.report import figure
from load.servers import GROUP, Exporters, Server, fleet, free_port, is_listening, serve
from load.table import Goal, Run, Table
from tests.e2e import programs

CASES = (
    (100, "VictoriaMetrics"),
    (1_000, "VictoriaMetrics"),
    (10_000, "VictoriaMetrics"),
    (10_000, "stand-in"),
    (40_000, "stand-in"),
)
"""GPU pods, and the store."""
ROUND = 15.0
"""Seconds between two rounds of queries: the default."""
TIMEOUT = 60.0
"""Seconds for a query: the store shares the machine with the exporters and serve."""
_WARM_UP = 4
"""Rounds before the measurement: the answers then hold as many samples as they ever do."""
_CPU_GOAL = 0.6
_KEPT = 0.9
_LAG = "gma_event_loop_lag_seconds"


class Cost(NamedTuple):
    """One size's figures; bytes, and shares of one core."""

    pods: int
    name: str
    """The store."""
    series: int
    served: int
    """Pods with a value."""
    share: float
    store: float
    rss: int
    peak: int
    """Of the measured rounds."""
    lags: Mapping[float, float]
    """Upper bound in seconds -> measurements of the delay up to it; the measured rounds only."""
    failures: float
    """Queries without a usable answer in the measured rounds."""
    kept: float
    """Rounds that ended in the measured time, as a share of those that were due."""


def stores(run: Run) -> Table:
    """Each size in processes of its own: exporters, VictoriaMetrics, ``serve``."""
    cases = CASES[:1] if run.quick else CASES
    return table([_cost(run, pods, name) for pods, name in cases])


def stored_series() -> tuple[str, ...]:
    """The series of the page that the catalogue reads."""
    series = Catalog().series
    return tuple(field.name for field in FIELDS if field.name in series)


def _cost(run: Run, pods: int, name: str) -> Cost:
    names = stored_series()
    opened = victoriametrics if name == "VictoriaMetrics" else standin
    groups = len(query_groups(Catalog(), {}, exact=False))
    warm_up, rounds = (1, 1) if run.quick else (_WARM_UP, 6)
    with (
        fleet(pods, run.folder) as exporters,
        opened(exporters, run.folder) as (store, url),
    ):
        source = {
            "kind": "prometheus",
            "prometheus": {"url": url, "interval": ROUND, "timeout": TIMEOUT},
        }
        with serve(issue(run.folder), exporters, run.folder, changes={"source": source}) as server:
            time.sleep(warm_up * ROUND)
            _forget_peak(server.child)
            before = _scrape_server(server)
            shares = idle_shares([server.child, store], rounds * ROUND)
            usage, after = server.child.usage(), _scrape_server(server)
            served = _count_served(server)
    return Cost(
        pods,
        name,
        pods * len(names),
        served,
        shares[server.child.name],
        shares[store.name],
        usage.rss,
        usage.peak,
        {bound: count - before.lags.get(bound, 0) for bound, count in after.lags.items()},
        after.failures - before.failures,
        (after.answers - before.answers) / groups / rounds,
    )


@contextmanager
def standin(exporters: Exporters, folder: Path) -> Iterator[tuple[Observed, str]]:
    """The stand-in of ``load/storeserver.py``."""
    ready = folder / f"store-{exporters.pods}.port"
    command = [PYTHON, "-m", "load.storeserver"]
    command += ["--pods", str(exporters.pods), "--ready", str(ready)]
    with run_child("store", command, folder) as child:
        wait_until(child, "ready", ready.exists)
        yield child, f"http://127.0.0.1:{ready.read_text()}"


@contextmanager
def victoriametrics(exporters: Exporters, folder: Path) -> Iterator[tuple[Observed, str]]:
    """A VictoriaMetrics that has scraped every exporter."""
    port = free_port()
    config = folder / "victoriametrics.yaml"
    config.write_text(yaml.safe_dump(scrape_config(exporters, "|".join(stored_series()))))
    command = [
        str(programs.find(programs.VICTORIAMETRICS)),
        f"-promscrape.config={config}",
        f"-storageDataPath={folder / f'victoriametrics-{exporters.pods}'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-search.latencyOffset=0s",
        "-search.maxUniqueTimeseries=2000000",
        "-loggerLevel=ERROR",
    ]
    with run_child("victoriametrics", command, folder) as child:
        wait_until(child, "port", lambda: is_listening(port))
        wanted = exporters.control("count")["pages"] + len(nodes(exporters.pods))
        wait_until(child, "first scrape", lambda: exporters.control("count")["pages"] >= wanted)
        yield child, f"http://127.0.0.1:{port}"


class _Scraped(NamedTuple):
    lags: dict[float, float]
    failures: float
    answers: float
    """Groups that were queried, with or without success."""


def _scrape_server(server: Server) -> _Scraped:
    with server.client() as client:
        text = client.get("/metrics").text
    lags, failures, answers = {}, 0.0, 0.0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"{_LAG}_bucket":
                lags[float(sample.labels["le"])] = sample.value
            elif sample.name == "gma_query_failures_total":
                failures += sample.value
            elif sample.name == "gma_query_duration_seconds_count":
                answers = sample.value
    return _Scraped(lags, failures, answers)


def _count_served(server: Server) -> int:
    with server.client() as client:
        answer = client.get(f"{GROUP}/namespaces/{NAMESPACE}/pods/%2A/{UTIL}", timeout=60)
    answer.raise_for_status()
    return len(answer.json()["items"])


def _forget_peak(child: Child) -> None:
    """Have Linux measure the peak from now on (proc(5), clear_refs)."""
    with suppress(OSError):
        Path(f"/proc/{child.pid}/clear_refs").write_text("5")


def _share_above(lags: Mapping[float, float], seconds: float) -> float:
    """Share of the measurements above a bound; None of them is 0."""
    total = max(lags.values())
    return (total - lags[seconds]) / total if total else 0.0


def table(costs: Sequence[Cost]) -> Table:
    """A row per size; the goals are judged at the largest."""
    largest = costs[-1]
    note = (
        f"serve queries the store every {ROUND:.0f} s, one query for each group of fields. The "
        "answers hold every sample up to the age limit. CPU, peak, delays and failed queries are "
        "those of six rounds in steady state without requests. *Rounds kept* is the share of "
        "rounds that ended when they were due; one more may end in that time. Below 100 %, the "
        "machine had no CPU left, so the CPU is that of fewer rounds with more samples each. "
        "*Delayed* is the share of timers "
        "that the event loop served more than 10 ms late (gma_event_loop_lag_seconds); the "
        "machine's other programs delay them too. The store's CPU includes its scrapes."
    )
    return Table(
        (
            "GPU pods",
            "store",
            "series",
            "pods with a value",
            "CPU of one core",
            "RSS MB",
            "peak MB",
            "delayed > 10 ms",
            "> 25 ms",
            "failed queries",
            "rounds kept",
            "store: CPU of one core",
        ),
        tuple(
            (
                f"{cost.pods:,}",
                cost.name,
                f"{cost.series:,}",
                f"{cost.served:,}",
                f"{cost.share:.1%}",
                figure(cost.rss / 1e6),
                figure(cost.peak / 1e6),
                f"{_share_above(cost.lags, 0.01):.1%}",
                f"{_share_above(cost.lags, 0.025):.1%}",
                f"{cost.failures:.0f}",
                f"{cost.kept:.0%}",
                f"{cost.store:.1%}",
            )
            for cost in costs
        ),
        (
            Goal(
                f"under 60 % of a core at {largest.pods:,} GPU pods, in rounds of {ROUND:.0f} s",
                f"{largest.share:.1%}, {largest.kept:.0%} of the rounds kept",
                largest.share < _CPU_GOAL and largest.kept > _KEPT,
            ),
        ),
        (note,),
    )
