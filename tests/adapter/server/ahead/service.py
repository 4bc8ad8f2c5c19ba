"""A workload whose pages a test writes, and what ``serve`` says of its next minutes."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.answers.keda.scaledobjects import ScaledObjects
from adapter.answers.keda.scaler import Options, Scaler
from adapter.answers.keda.trigger import Ref
from adapter.pipeline.cluster.lookup import PODS
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.pipeline.cluster.workload import DEPLOYMENTS
from adapter.pipeline.store.outlook import UNKNOWN
from adapter.server.ahead.learner import Learner
from adapter.server.ahead.workloadload import LoadKey, WorkloadLoad
from apiservice.labels.selector import EVERYTHING, parse
from apiservice.provider import ExternalQuery, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod

RUNNING = "inference_requests_running"
EXPECTED = RUNNING + "_expected"
MONDAY = 20_699.0 * 86400
START = 240.0
"""Seconds from the creation of a pod to Ready."""


def server(name: str, born: float = MONDAY - 3600, namespace: str = "ml", app: str = "chat") -> Pod:
    return make_pod(
        name,
        namespace=namespace,
        uid=f"{namespace}-{name}",
        labels={"app": app, "pod-template-hash": "7c9"},
        annotations={"gpu-metrics-adapter.io/scrape": "true"},
        owner=Owner("apps/v1", "ReplicaSet", f"{app}-7c9"),
        born=born,
        ready_since=born + START,
    )


class Service:
    """A Deployment ``chat`` in ``ml``, and what learns its load."""

    def __init__(self, *names: str, probability: float = 0.7, most: int = 500) -> None:
        self.world = World(*map(server, names or ("a", "b")))
        self.now = MONDAY
        self.learner = Learner(
            self.world.catalog, self.world.store, self.world.index, probability, most
        )
        self.world.store.outlook = self.learner

    def serve(self, *values: float, names: Sequence[str] = ()) -> None:
        """Write a page for each pod, in the order of their names."""
        pods = names or sorted(pod.name for pod in self.world.pods.values())
        for name, value in zip(pods, values, strict=True):
            page = f'vllm:num_requests_running{{model_name="m"}} {value}\n'
            self.world.scrape(
                page, self.now, origin=f"http://{name}", pod=("ml", name), serves=True
            )

    def minute(self, *values: float, ask: bool = True) -> None:
        """Let a minute pass with these values."""
        self.now += 60
        self.serve(*values)
        if ask:
            self.pods()
        at_once(self.learner.round(self.now))

    @property
    def load(self) -> WorkloadLoad:
        return self.learner.loads[LoadKey("ml", DEPLOYMENTS, "chat", RUNNING)]

    def pods(self, metric: str = EXPECTED) -> dict[str, float]:
        """What a Pods metric gives."""
        query = ObjectQuery(PODS, "ml", None, metric, EVERYTHING, EVERYTHING)
        answer = at_once(self.world.custom.values(query, self.now))
        return {item.described.name: item.milli / 1000 for item in answer.items}

    def object(self, metric: str = EXPECTED) -> float:
        """What an Object metric of the Deployment gives."""
        query = ObjectQuery(DEPLOYMENTS, "ml", "chat", metric, EVERYTHING, EVERYTHING)
        (item,) = at_once(self.world.custom.values(query, self.now)).items
        return item.milli / 1000

    def external(self, metric: str = EXPECTED) -> float:
        """What the HPA controller adds up of an External metric."""
        query = ExternalQuery("ml", metric, parse("workload=chat"))
        answer = at_once(self.world.external.values(query, self.now))
        return sum(item.milli for item in answer.items) / 1000

    def keda(self, metric: str = EXPECTED) -> float:
        """What KEDA gets."""
        options = Options(patience=lambda: 60.0, stale_after=300.0)
        world = self.world
        scaler = Scaler(world.catalog, world.store, world.objects, ScaledObjects(), options)
        metadata = {"metric": metric, "target": "24", "podSelector": "app=chat"}
        return at_once(scaler.answer_trigger(Ref("ml", "chat", metadata), self.now)).number.exact

    def why(self, metric: str = EXPECTED) -> str:
        """Why the first pod has no value."""
        answer = self.world.read("a", metric, self.now)
        assert getattr(answer, "reason", "") == UNKNOWN, answer
        return str(getattr(answer, "detail", ""))
