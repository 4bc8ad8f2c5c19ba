"""The size of `/metrics` does not depend on requests, and on the cluster within a bound only."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from adapter.answers.api.provider import GpuMetricsProvider
from adapter.answers.keda.selfmetrics import KedaStats
from adapter.config.process.reload import ConfigWatch
from adapter.config.settings import Settings
from adapter.config.settings.accounting import AccountingSettings
from adapter.nodepool.run.selfmetrics import FAMILIES as NODEPOOL
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import PODS, ObjectLookup
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.serve.coverage import Coverage
from adapter.server.serve.lifetimes import certificate_lifetimes
from adapter.server.serve.pipeline import PipelineSwitcher
from adapter.server.serve.security import build_security
from adapter.server.serve.selfmetrics import FAMILIES, MetricSources, register
from apiservice.errors import ApiError
from apiservice.http.options import ServingOptions
from apiservice.http.server import Server
from apiservice.labels.selector import EVERYTHING
from apiservice.provider import ObjectQuery
from apiservice.runtime.steps import at_once
from apiservice.selfmetrics.families import OTHER, Family, FamilyType
from apiservice.selfmetrics.looplag import LoopLag
from tests.adapter.world import make_pod, row
from tests.apiservice.world import make_world
from tests.examples import bounded

T0 = 1_767_225_600.0
ROOT = Path(__file__).parents[4]


class Fleet:
    """The parts of `serve` with many one-GPU pods, eight per node."""

    def __init__(self, pods: int, folder: Path) -> None:
        self.registry = CollectorRegistry()
        index, nodes = PodIndex(), Nodes()
        objects = ObjectLookup(index, Services(), nodes)
        chosen = Settings.model_validate({"server": {"cert_dir": str(folder)}})
        telemetry = PipelineSwitcher(Catalog(), objects)
        telemetry.use(chosen)
        self.provider = GpuMetricsProvider(telemetry, telemetry, objects)
        self.keda = KedaStats()
        self.store = telemetry.current.store
        self.coverage = Coverage(telemetry, index, self.store.attributions, lambda: T0)
        self.server, security = (
            Server(None, ServingOptions(), None),
            build_security(chosen, None, T0),
        )
        parts = MetricSources(
            telemetry,
            self.provider,
            objects,
            self.server,
            security,
            certificate_lifetimes(security, self.server, None),
            ConfigWatch(None, chosen, lambda: chosen, telemetry.use),
            self.coverage,
            LoopLag(),
            keda=self.keda,
        )
        register(self.registry, parts, lambda: T0)
        index.replace([make_pod(f"p{n}", node=f"n{n // 8}", uid=f"u{n}") for n in range(pods)])
        nodes.replace([Node(f"n{n}", {}) for n in range(-(-pods // 8))])
        for first in range(0, pods, 8):
            page = "".join(
                row("DCGM_FI_DEV_GPU_UTIL", 50, f"p{n}", uuid=f"GPU-{n}")
                for n in range(first, min(first + 8, pods))
            )
            read = parse(page.encode(), time=T0, wanted=telemetry.catalog.series)
            node = f"n{first // 8}"
            self.store.ingest(ScrapeResult(f"http://{node}", node, read.samples, T0, read.rejects))

    def series(self) -> set[str]:
        """The series of a scrape without values, except those of the process."""
        lines = generate_latest(self.registry).decode().splitlines()
        named = (line.rpartition(" ")[0] for line in lines if not line.startswith("#"))
        return {name for name in named if name.startswith("gma_")}


async def test_two_thousand_pods_have_as_many_series_as_ten(tmp_path: Path) -> None:
    seen = {}
    for pods in (10, 2_000):
        fleet = Fleet(pods, tmp_path)
        await fleet.coverage.look()
        assert fleet.coverage.last is not None
        assert fleet.coverage.last.measured == pods
        assert fleet.coverage.attributed == {
            "exact": pods,
            "derived": 0,
            "copied": 0,
            "split": 0,
            "left_out": 0,
        }
        series = fleet.series()
        accounts = {name for name in series if name.startswith("gma_gpu_seconds_total")}
        assert len(accounts) == 3 * (min(pods, AccountingSettings().accounts) + 1)
        seen[pods] = series - accounts
    assert seen[10] == seen[2_000]
    assert 150 < len(seen[10]) < 600


TEXT = st.text(max_size=20)
GROUPS = ("", "/apis", "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods", "/healthz")


async def test_requests_and_answers_create_no_further_series(tmp_path: Path) -> None:
    fleet = Fleet(3, tmp_path)
    await fleet.coverage.look()
    fleet.store.rejects.count("first of another kind")
    fleet.provider.absent["first of another kind"] += 1
    before = fleet.series()

    @given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=5))
    @bounded(20)
    def any_requests(rows: list[tuple[str, str, str]]) -> None:
        for reason, metric, pod in rows:
            fleet.store.rejects.count(reason)
            fleet.provider.absent[reason] += 1
            fleet.keda.streams[reason] += 1
            query = ObjectQuery(PODS, "ml", pod, metric, EVERYTHING, EVERYTHING)
            with suppress(ApiError):
                at_once(fleet.provider.values(query, T0))
        assert {name for name in fleet.series() - before if f'"{OTHER}"' not in name} == set()

    any_requests()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "DELETE", "BREW"]),
            st.text("abc/*._-%7€", max_size=30),
            st.text("abc:", min_size=1, max_size=8),
        ),
        min_size=1,
        max_size=5,
    )
)
@bounded(10)
async def test_no_path_method_or_user_becomes_a_label(asked: list[tuple[str, str, str]]) -> None:
    async for world in make_world():
        for method, path, user in asked:
            for group in GROUPS:
                url = f"https://adapter{group}/{path}"
                await world.client.request(method, url, headers={"x-user": user})
        lines = (await world.get("/metrics")).text
    routes = set(re.findall(r'route="([^"]*)"', lines))
    assert routes <= {
        *("custom", "external", "index", "discovery", "openapi", "version", "metrics", "health"),
        *("other", "view"),
    }
    assert set(re.findall(r'version="([^"]*)"', lines)) <= {"", "v1beta1", "v1beta2"}
    codes = set(re.findall(r'code="([^"]*)"', lines))
    assert codes <= {"200", "301", "307", "400", "401", "403", "404", "405", "406", "500", "503"}


@pytest.mark.parametrize("family", [*FAMILIES, *NODEPOOL], ids=lambda family: family.name)
def test_metric_names_follow_the_prometheus_conventions(family: Family) -> None:
    """https://prometheus.io/docs/practices/naming/."""
    assert re.fullmatch(r"gma_[a-z]+(_[a-z]+)*", family.name)
    assert family.name.endswith("_total") == (family.kind is FamilyType.COUNTER)
    assert not re.search(r"_(ms|millis\w*|minutes|hours|days|mib|gib|percent)(_|$)", family.name)
    if family.kind is FamilyType.HISTOGRAM:
        assert family.name.endswith("_seconds")
    assert not {"pod", "node", "device", "gpu", "uuid", "url", "user"} & set(family.labels)
    assert family.text.endswith(".")


def test_metric_names_are_unique() -> None:
    for families in (FAMILIES, NODEPOOL):
        names = Counter(family.name for family in families)
        assert [name for name, count in names.items() if count > 1] == []


@given(st.dictionaries(TEXT, st.integers(0, 1000)), st.lists(TEXT, min_size=1, unique=True))
def test_a_label_with_known_values_has_only_those_and_other(
    counts: dict[str, int], known: list[str]
) -> None:
    family = Family("a_total", FamilyType.COUNTER, "Text.", ("reason",), tuple(known))
    rows = [sample for sample in family.by(counts).samples if sample.name == "a_total"]
    shown = [sample.labels["reason"] for sample in rows]
    assert len(shown) == len(set(shown))
    assert set(known) <= set(shown) <= {*known, OTHER}
    assert sum(sample.value for sample in rows) == sum(counts.values())
