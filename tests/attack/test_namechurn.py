"""Ever new names leave nothing in what answers: views, rules, delegates, KEDA, users and rights.

In a round every user, group, token, certificate, namespace, pod, metric, label, selector and
trigger is new, and the objects of the round before are gone. The parts are those that ``serve``
builds, without its listener. Counted are objects, not bytes or time: from the second round on there
are no more of them. Caches that are bounded in bytes get small bounds, so that they are full by
then; those of the standard library are bounded in entries, and are emptied before the count.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import grpc
import httpx
import msgspec
import pytest
import yaml
from prometheus_client import CollectorRegistry

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda import triggers
from adapter.answers.keda.scaledobjects import ScaledObject, ScaledObjects
from adapter.answers.keda.scaler import Options, Scaler
from adapter.answers.keda.server import KedaServer
from adapter.answers.keda.service import NAME as SCALER
from adapter.answers.rules import wideanswers
from adapter.config.settings import Settings
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster import gpuresources, hpamanifest, sharedvalues
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.cluster.workload import DEPLOYMENTS, Workload
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.serve.pipeline import PipelineSwitcher
from adapter.server.serve.providers import build_providers, build_view, view_groups
from apiservice.app import create_app
from apiservice.auth.authentication import Authentication
from apiservice.auth.authorization import Authorization
from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.auth.tokens import ReviewedTokens
from apiservice.delegate.delegation import Delegation
from apiservice.documents.health import HealthRegistry
from apiservice.http.peer import SCOPE_KEY, Peer
from apiservice.identity import AccessDecision, Attributes, User
from apiservice.kube.reflector import EventType
from apiservice.labels import selector
from apiservice.runtime.bytecache import ByteCache
from tests.adapter.answers.rules.engine import Engine, vector
from tests.adapter.world import make_pod
from tests.apiservice.delegate.server import OtherServer, custom_list
from tests.apiservice.tls.serving import PROXY_CA

ROUNDS: Final = 20
SETTLED: Final = 2
"""Rounds after which every container has had its largest size."""
NAMES: Final = 6
"""New names of each kind in a round."""
AGE: Final = 2
"""Seconds after which what is silent is forgotten."""
CACHE: Final = 1 << 13
"""Bytes of a cache: less than a round needs."""
MOST: Final = (ROUNDS - SETTLED - 1) * NAMES * 3 // 2
"""Further objects, such as those of some connections: less than two for each new name. A container
that keeps a name keeps several for each."""
SERVED: Final = {
    *("value", "selected", "external", "rule", "outside", "delegated", "token", "keda"),
    *("gpupods", "gpuworkloads", "gpus", "gpupod"),
}
CUSTOM: Final = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
VIEW: Final = "/apis/view.gpu-metrics-adapter.io/v1alpha1"
RULES: Final[dict[str, list[dict[str, Any]]]] = {
    "rules": [
        {
            "seriesQuery": '{__name__=~"^of_rules.*"}',
            "resources": {"template": "<<.Resource>>"},
            "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
        }
    ],
    "externalRules": [
        {
            "seriesQuery": '{__name__=~"^outside.*"}',
            "resources": {"namespaced": False},
            "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})",
        }
    ],
}


class Cluster:
    """Reviews tokens and rights; the users whose number is odd may do nothing."""

    async def review_token(self, token: str) -> User | None:
        return None if token.endswith("1") else User(f"of-{token}")

    async def review_access(self, user: User, attributes: Attributes) -> AccessDecision:
        return AccessDecision(not user.name.endswith("x"), f"about {attributes.name}")


class Whole:
    """What ``serve`` builds, and what stands around it."""

    def __init__(self, engine: Engine, other: OtherServer) -> None:
        self.engine, self.other = engine, other
        self.objects = ObjectLookup(PodIndex(), Services(), Nodes(), Hpas())
        self.targets = ScaledObjects()
        self.trust = ClientAuth()
        self.statuses = Counter[tuple[str, int]]()
        self.peer: Peer | None = None
        self.origin = ""

    async def open(self, folder: Path, stack: AsyncExitStack) -> None:
        """Build it; the stack closes it."""
        rules = folder / "rules.yaml"
        rules.write_text(yaml.safe_dump(RULES))
        settings = Settings.model_validate(
            {
                "server": {"cert_dir": str(folder)},
                "external": {"enabled": True},
                "rules": {"file": str(rules), "cache": "10ms", "interval": "100ms"},
                "values": {"window": "1s", "collect_interval": "1s", "age_limit": f"{AGE}s"},
                "source": {"prometheus": {"url": self.engine.url}},
            }
        )
        self.trust.set_proxy(ProxySettings(PROXY_CA.pem, ()))
        self.pipelines = PipelineSwitcher(Catalog(), self.objects)
        self.pipelines.use(settings)
        providers = build_providers(settings, self.pipelines, self.objects, None)
        assert providers.rules is not None
        self.rules = providers.rules
        stack.push_async_callback(self.rules.store.close)
        keeping = asyncio.create_task(self.rules.wide.run())
        stack.callback(keeping.cancel)
        self.delegate = self.other.delegate(stack)
        cluster = Cluster()
        self.authentication = Authentication(self.trust, ReviewedTokens(cluster))
        view = build_view(settings, self.pipelines, self.objects, None, providers.ratios)
        app = create_app(
            custom=providers.custom,
            external=providers.external,
            authenticator=self.authentication,
            authorizer=Authorization(cluster),
            health=HealthRegistry(),
            registry=CollectorRegistry(),
            release="0",
            views=view_groups(view, self.rules),
            delegation=Delegation([self.delegate]),
        )

        async def connected(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, SCOPE_KEY: self.peer}, receive, send)

        self.client = await stack.enter_async_context(
            httpx.AsyncClient(transport=httpx.ASGITransport(connected), base_url="https://a")
        )
        scaler = Scaler(
            self.pipelines, self.pipelines, self.objects, self.targets, Options(lambda: 10.0, 60.0)
        )
        chosen = settings.keda.model_copy(update={"host": "127.0.0.1", "port": 0})
        keda = KedaServer(scaler, chosen, None, lambda: True, drain=0.0, grace=5.0)
        await keda.start()
        stack.push_async_callback(keda.stop)
        self.channel = await stack.enter_async_context(
            grpc.aio.insecure_channel(f"127.0.0.1:{keda.port}")
        )

    def change(self, serial: int, event: EventType) -> None:
        """Create or delete the objects of a number."""
        space, name = f"ns-{serial}", f"p-{serial}"
        pod = make_pod(name, namespace=space, node="n0", uid=f"u{serial}", labels={"l": name})
        self.objects.pod_index.apply(event, pod)
        self.targets.apply(event, ScaledObject(space, name, Workload(DEPLOYMENTS, name)))
        metric = {"name": f"m-{serial}", "selector": {"matchLabels": {f"s-{serial}": name}}}
        source = {"metric": metric, "target": {"type": "AverageValue", "averageValue": serial}}
        spec = {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"},
            "metrics": [{"type": "Pods", "pods": source}],
        }
        hpa = {"metadata": {"name": name, "namespace": space}, "spec": spec}
        assert self.objects.hpas is not None
        self.objects.hpas.apply(event, hpamanifest.decode(msgspec.json.encode(hpa)))

    async def appear(self, serials: range) -> None:
        """Bring the pages, the store's series and the delegate's metrics of these numbers."""
        page = "".join(
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="{n}",UUID="GPU-{n}",container="server",'
            f'namespace="ns-{n}",pod="p-{n}"}} 50\n'
            for n in serials
        )
        store, now = self.pipelines.current.store, time.time()
        read = parse(page.encode(), time=now, wanted=store.demand.of(""))
        store.forget(self.origin)
        self.origin = f"http://exporter-{serials.start}-{len(serials)}"
        store.ingest(ScrapeResult(self.origin, "n0", read.samples, now, read.rejects))
        for rules, prefix in (("rules", "of_rules"), ("externalRules", "outside")):
            series = [
                {"__name__": f"{prefix}_{n}", f"label_{n}": "x", "namespace": "n", "pod": "p"}
                for n in serials
            ]
            self.engine.series[str(RULES[rules][0]["seriesQuery"])] = series
        self.engine.answer = lambda _: (
            200,
            vector(
                *(({"namespace": f"ns-{n}", "pod": f"p-{n}"}, "7") for n in serials),
                time=time.time(),
            ),
        )
        await self.rules.discover()
        self.other.pages = {
            f"{CUSTOM}/namespaces/ns-{n}/pods/*/delegated_{n}": custom_list(
                "v1beta2", f"delegated_{n}", **{f"p-{n}": "1"}
            )
            for n in serials
        }
        self.other.lists(*(f"pods/delegated_{n}" for n in serials))
        await self.delegate.refresh()
        self.other.asked.clear()
        self.engine.asked.clear()
        self.engine.selectors.clear()

    async def settle(self) -> None:
        """Wait until all that ages has been forgotten."""
        await self.appear(range(0))
        await asyncio.sleep(self.pipelines.current.patience + 0.5)
        await self.appear(range(0))
        await self.ask(0)
        # The loop keeps cancelled timers until they are a hundred, and half of all.
        for _ in range(1000):
            asyncio.get_running_loop().call_later(3600, gc.collect).cancel()
        await asyncio.sleep(0)

    async def ask(self, n: int) -> None:
        """Ask for everything that has this number, as its own users."""
        self.peer = Peer(PROXY_CA.issue(f"proxy-{n}").der)
        space, pods, chosen = f"ns-{n}", f"{CUSTOM}/namespaces/ns-{n}/pods", f"l=p-{n},x!=y{n}"
        await self._get("value", n, f"{pods}/*/DCGM_FI_DEV_GPU_UTIL", labelSelector=chosen)
        await self._get("selected", n, f"{pods}/*/gpu_utilization", metricLabelSelector=f"k!=v{n}")
        await self._get("unknown", n, f"{pods}/*/unknown_{n}")
        await self._get("external", n, f"{EXTERNAL}/namespaces/{space}/gpu_utilization")
        await self._get("missing", n, f"{EXTERNAL}/namespaces/{space}/unknown_{n}")
        await self._get("rule", n, f"{pods}/*/of_rules_{n}", metricLabelSelector=f"k!=v{n}")
        await self._get("outside", n, f"{EXTERNAL}/namespaces/{space}/outside_{n}")
        await self._get("delegated", n, f"{pods}/*/delegated_{n}", metricLabelSelector=f"q!={n}")
        for kind in ("gpupods", "gpuworkloads"):
            await self._get(kind, n, f"{VIEW}/namespaces/{space}/{kind}", labelSelector=chosen)
        await self._get("gpus", n, f"{VIEW}/gpus", fieldSelector=f"metadata.name!=n{n}")
        await self._get("gpupod", n, f"{VIEW}/namespaces/{space}/gpupods/p-{n}")
        headers = {"X-Remote-User": f"user-{n}-x", "Accept": f"application/json;q=0.{n + 1}"}
        await self._get("forbidden", n, f"{pods}/*/gpu_utilization", headers)
        self.peer = None
        token = {"Authorization": f"Bearer token-{n}"}
        await self._get("token", n, f"{pods}/*/gpu_utilization", token)
        await self._call(n)

    async def _get(
        self, what: str, n: int, path: str, headers: Mapping[str, str] | None = None, **query: str
    ) -> None:
        sent = headers or {"X-Remote-User": f"user-{n}", "X-Remote-Group": f"group-{n}"}
        answer = await self.client.get(path, params=query, headers=sent)
        self.statuses[what, answer.status_code] += 1

    async def _call(self, n: int) -> None:
        for selected in ({"podSelector": f"l=p-{n}"}, {"podSelector": f"none-{n}=x"}):
            sent = {"metric": "gpu_utilization", "target": f"{n + 1}", **selected}
            ref = messages.ScaledObjectRef(name=f"p-{n}", namespace=f"ns-{n}", scalerMetadata=sent)
            method = self.channel.unary_unary(
                f"/{SCALER}/GetMetrics",
                messages.GetMetricsRequest.SerializeToString,
                messages.GetMetricsResponse.FromString,
            )
            try:
                await method(messages.GetMetricsRequest(scaledObjectRef=ref))
            except grpc.aio.AioRpcError as error:
                self.statuses["keda", error.code().value[0]] += 1
            else:
                self.statuses["keda", 0] += 1


def weigh() -> Counter[str]:
    """Objects by their type, without what caches of the standard library remember."""
    gc.unfreeze()  # the caches of what is imported
    for candidate in gc.get_objects():
        if isinstance(candidate, functools._lru_cache_wrapper):
            candidate.cache_clear()
    gc.collect()
    kinds = map(type, gc.get_objects())
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.close()


@pytest.fixture
async def whole(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Whole]:
    made = ByteCache.__init__

    def small(self: Any, limit: int, *more: Any, **options: Any) -> None:
        made(self, min(limit, CACHE), *more, **options)

    monkeypatch.setattr(ByteCache, "__init__", small)
    monkeypatch.setattr(selector, "_cache", ByteCache(CACHE))
    monkeypatch.setattr(sharedvalues, "_LIMIT", CACHE)
    monkeypatch.setattr(gpuresources, "_REMEMBERED", NAMES)
    monkeypatch.setattr(wideanswers, "_SHORTEST_IDLE", AGE / 2)
    monkeypatch.setattr(wideanswers, "_PLANS", NAMES)
    monkeypatch.setattr(triggers.Triggers.__init__, "__defaults__", (CACHE,))
    async with AsyncExitStack() as stack:
        other = OtherServer()
        await other.start(tmp_path, stack)
        process = Whole(engine, other)
        await process.open(tmp_path, stack)
        objects = process.objects
        objects.nodes.replace([Node("n0", {})])
        assert objects.hpas is not None
        for table in (objects.pod_index, objects.services, objects.hpas, process.targets):
            table.replace([])
        yield process
    gc.collect()


async def test_rounds_of_new_names_leave_nothing_in_what_answers(whole: Whole) -> None:
    counts: dict[int, Counter[str]] = {}
    for number in range(ROUNDS):
        serials = range(number * NAMES, (number + 1) * NAMES)
        for n in serials:
            whole.change(n, EventType.ADDED)
        await whole.appear(serials)
        for n in serials:
            await whole.ask(n)
            if number:
                whole.change(n - NAMES, EventType.DELETED)
        if number in (SETTLED, ROUNDS - 1):
            await whole.settle()
            counts[number] = weigh()
    assert {what for what, status in whole.statuses if status in (0, 200)} == SERVED
    more = counts[ROUNDS - 1] - counts[SETTLED]
    assert sum(more.values()) < MOST, more.most_common(20)
