"""External metrics: one series per pod, selected by labels. A sum is complete or absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from adapter.answers.api.aggregate import Aggregate
from adapter.answers.api.external import GpuExternalMetrics, by_lower_case
from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.attribution.serieslabels import DEVICE_LABELS, POD_LABELS
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import DeviceData, DeviceValue, Kind, Metric, Statistic, Unit
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import NAMESPACES, ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.devices.options import TelemetryOptions
from apiservice.errors import BadQuery, MetricNotFound, Unavailable
from apiservice.labels.selector import EVERYTHING
from apiservice.labels.selector import parse as selector
from apiservice.provider import ExternalQuery, ExternalValue, GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod

NOW = 1_700_000_000.0


def pod(name: str, **changes: object) -> Pod:
    made = make_pod(
        name,
        namespace="ns",
        uid=f"uid-{name}",
        node="n1",
        ip="10.0.0.1",
        labels={"app": "inf", "pod-template-hash": "5d9"},
        owner=Owner("apps/v1", "ReplicaSet", "front-5d9"),
        containers=("c",),
    )
    return made.replace(**changes)


A, B = pod("a"), pod("b", node="n2")
TWO = pod("two", labels={"app": "train", "model": "mine"}, owner=None, gpus={"nvidia.com/gpu": 2})
WEB = pod("web", gpus={}, labels={"app": "web"})


def row(name: str, device: str, value: float, model: str = "T4") -> str:
    return (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{device}",modelName="{model}",container="c",'
        f'namespace="ns",pod="{name}"}} {value}\n'
    )


PAGE = row("a", "GPU-a", 90) + row("b", "GPU-b", 30, "L4")
BOTH = row("two", "GPU-1", 10) + row("two", "GPU-2", 50, "L4")


class Lab(World):
    """A world with a provider of external metrics."""

    def page(self, text: str, time: float = NOW) -> None:
        self.scrape(text, time, origin="http://n1:9400/metrics")

    def ask(
        self, where: str = "", metric: str = "gpu_utilization", now: float = NOW
    ) -> list[ExternalValue]:
        query = ExternalQuery("ns", metric, selector(where))
        return list(at_once(self.external.values(query, now)).items)

    def values(self, where: str = "", metric: str = "gpu_utilization") -> Mapping[str, int]:
        return {item.labels["pod"]: item.milli for item in self.ask(where, metric)}

    def one(self, where: str, metric: str = "gpu_utilization") -> int:
        (item,) = self.ask(where, metric)
        return item.milli


@pytest.fixture
def lab() -> Lab:
    made = Lab(A, B, TWO, WEB)
    made.page(PAGE + BOTH)
    return made


def test_a_series_has_the_value_and_the_labels_of_a_pod(lab: Lab) -> None:
    (item,) = lab.ask("pod=a")
    assert item == ExternalValue(
        metric="gpu_utilization",
        labels={
            "app": "inf",
            "pod-template-hash": "5d9",
            "pod": "a",
            "node": "n1",
            "workload": "front",
            "workload_kind": "Deployment",
            "device": "GPU-a",
            "model": "T4",
            "sharing": "exclusive",
            "attribution": "exact",
            "container": "c",
        },
        milli=90_000,
        timestamp=int(NOW),
        window=30,
    )


SELECTED = {
    "everything": ("", {"a": 90_000, "b": 30_000, "two": 30_000}),
    "a pod's own label": ("app=inf", {"a": 90_000, "b": 30_000}),
    "its name": ("pod in (a,b)", {"a": 90_000, "b": 30_000}),
    "its node": ("node=n2", {"b": 30_000}),
    "its workload": ("workload=front", {"a": 90_000, "b": 30_000}),
    "its workload's kind": ("workload_kind!=Deployment", {"two": 30_000}),
    "the model of its GPU": ("app=inf,model=L4", {"b": 30_000}),
    "one of its devices": ("device=GPU-2", {"two": 50_000}),
    "a model that one of its devices is": ("pod=two,model=T4", {"two": 10_000}),
    "the pod's own label of a device label's name": ("model=mine", {}),
    "nothing": ("app=nobody", {}),
}


@pytest.mark.parametrize(("where", "expected"), SELECTED.values(), ids=SELECTED.keys())
def test_labels_select_series(lab: Lab, where: str, expected: Mapping[str, int]) -> None:
    assert lab.values(where) == expected


@pytest.mark.parametrize("where", ["", "app=inf", "app=train"])
def test_a_series_has_the_same_value_as_the_pods_metric(lab: Lab, where: str) -> None:
    """AverageValue over the series then scales like a Pods metric."""
    query = ObjectQuery(
        GroupResource("pods", ""), "ns", None, "gpu_utilization", selector(where), EVERYTHING
    )
    custom = {
        item.described.name: item.milli for item in at_once(lab.custom.values(query, NOW)).items
    }
    assert lab.values(where) == custom


def test_labels_that_a_pods_devices_do_not_share_are_left_out(lab: Lab) -> None:
    (item,) = lab.ask("pod=two")
    assert "device" not in item.labels
    assert "model" not in item.labels, "neither a device's, nor the pod's own of that name"
    assert item.labels["sharing"] == "exclusive"


def test_a_label_of_a_pod_never_replaces_a_label_of_the_adapter(lab: Lab) -> None:
    posing = dict.fromkeys((*DEVICE_LABELS, *POD_LABELS, "aggregate"), "posing")
    lab.index.replace([pod("a", node="", owner=None, labels=posing)])
    (item,) = lab.ask()
    assert "posing" not in item.labels.values()
    assert lab.ask("workload=posing") == []


def test_every_label_of_a_reading_selects(lab: Lab) -> None:
    reading = lab.store.snapshot.pod(A, "gpu_utilization", EVERYTHING, NOW)
    assert isinstance(reading, Reading)
    assert reading.devices[0].labels.keys() <= DEVICE_LABELS


AGGREGATES = {
    "sum": 120_000,
    "mean": 60_000,
    "max": 90_000,
    "min": 30_000,
    "p95": 90_000,
}


@pytest.mark.parametrize(("how", "expected"), AGGREGATES.items())
def test_an_aggregate_is_one_series(lab: Lab, how: str, expected: int) -> None:
    (item,) = lab.ask(f"app=inf,aggregate={how}")
    assert (item.milli, item.labels) == (expected, {"aggregate": how})
    assert item.window == 30
    assert lab.ask(f"app=nobody,aggregate={how}") == []


def test_a_placeholder_dilutes_no_mean_and_adds_no_series(lab: Lab) -> None:
    lab.put(pod("hold", placeholder=True))
    lab.page(PAGE + BOTH + row("hold", "GPU-h", 0))
    assert lab.one("app=inf,aggregate=mean") == 60_000
    assert set(lab.values("app=inf")) == {"a", "b"}
    assert lab.values("pod=hold") == {"hold": 0}, "it is answered for who asks for it alone"
    query = ObjectQuery(NAMESPACES, None, "ns", "gpu_utilization", EVERYTHING, EVERYTHING)
    (mean,) = at_once(lab.custom.values(query, NOW)).items
    assert mean.milli == 50_000, "(90 + 30 + 30) / 3"


@pytest.mark.parametrize("where", ["aggregate=median", "aggregate", "aggregate!=sum", "!aggregate"])
def test_an_unknown_aggregate_is_refused_by_name(lab: Lab, where: str) -> None:
    with pytest.raises(BadQuery, match="aggregate must be one of sum, mean, max, min, p95"):
        lab.ask(where)


def test_two_conflicting_parameters_are_refused(lab: Lab) -> None:
    with pytest.raises(BadQuery, match="aggregate is given more than once"):
        lab.ask("aggregate=sum,aggregate=mean")


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 1.0), (19, 19.0), (20, 19.0), (21, 20.0), (100, 95.0)]
)
def test_p95_is_a_value_that_was_measured(count: int, expected: float) -> None:
    assert Aggregate.P95.of([float(n) for n in range(count, 0, -1)]) == expected


def test_a_sum_is_complete_or_an_error_that_names_the_pod(lab: Lab) -> None:
    """A pod without a reading would count as 0 in the HPA's sum."""
    lab.index.replace([A, B, pod("late")])
    for where in ("", "app=inf", "aggregate=sum"):
        with pytest.raises(
            Unavailable, match=r"1 of 3 pods have no value: late \(device_named_for_other_pod\)"
        ):
            lab.ask(where)
    assert lab.one("aggregate=mean") == 60_000, "half of the pods speak for a mean"
    assert lab.one("pod in (a,late),aggregate=max") == 90_000
    lab.index.replace([A, pod("late"), pod("later")])
    with pytest.raises(Unavailable, match=r"2 of 3 pods have no value"):
        lab.ask("aggregate=mean")
    assert lab.custom.absent["device_named_for_other_pod"] > 0, "each is counted"


NOT_WAITED_FOR = {
    "is pending": pod("new", phase="Pending", ready=False),
    "is not ready": pod("new", ready=False),
    "has finished": pod("new", phase="Succeeded"),
    "holds no GPU": pod("new", gpus={}),
    "is being deleted": pod("new", deleting=True),
}


@pytest.mark.parametrize("other", NOT_WAITED_FOR.values(), ids=NOT_WAITED_FOR.keys())
def test_a_sum_does_not_wait_for_a_pod_that(lab: Lab, other: Pod) -> None:
    lab.index.replace([A, B, other])
    assert lab.values() == {"a": 90_000, "b": 30_000}


def test_a_terminating_pod_does_not_count_in_a_sum(lab: Lab) -> None:
    """It does not count as a replica any more: its value would scale the others."""
    lab.index.replace([A, B.replace(deleting=True)])
    assert lab.values("app=inf") == {"a": 90_000}
    assert lab.one("app=inf,aggregate=sum") == 90_000


def test_stale_readings_are_an_error_and_never_zero(lab: Lab) -> None:
    with pytest.raises(Unavailable, match=r"a \(stale\), b \(stale\), two \(stale\)"):
        lab.ask(now=NOW + 1000)


def test_an_answer_expires_with_its_oldest_reading(lab: Lab) -> None:
    answer = at_once(lab.external.values(ExternalQuery("ns", "gpu_utilization", EVERYTHING), NOW))
    assert answer.expires == NOW + TelemetryOptions().oldest


class Below:
    """Values are negative."""

    fields = ("DCGM_FI_DEV_GPU_UTIL",)

    def is_exported(self, device: DeviceData) -> bool:
        return device.reports(self.fields[0])

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        sample = device.value_of(self.fields[0], what)
        return sample and sample._replace(value=-5.0)


def test_a_negative_value_is_zero() -> None:
    """The HPA treats a negative sum as an overflow and scales to the maximum."""
    metric = Metric("below", Unit.CELSIUS, Kind.LAST, (Below(),))
    lab = Lab(A, catalog=Catalog(metrics=[metric]))
    lab.page(PAGE)
    assert lab.one("pod=a", "below") == 0


class Beyond(Below):
    """Values do not fit a quantity."""

    def read(self, device: DeviceData, what: Statistic) -> DeviceValue | None:
        sample = device.value_of(self.fields[0], what)
        return sample and sample._replace(value=1e16)


def test_a_value_that_does_not_fit_a_quantity_is_an_error() -> None:
    catalog = Catalog(metrics=[Metric("beyond", Unit.CELSIUS, Kind.LAST, (Beyond(),))])
    lab = Lab(A, catalog=catalog)
    lab.page(PAGE)
    with pytest.raises(Unavailable, match=r"beyond: 1e\+16 is not a quantity"):
        lab.ask("pod=a", "beyond")


def test_every_metric_is_listed_once_in_lower_case(lab: Lab) -> None:
    names = lab.external.metrics()
    assert len(set(names)) == len(names) > 0
    assert all(name == name.lower() for name in names)
    assert {name.lower() for name in Catalog().metrics} == set(names)


def test_a_metric_name_is_matched_regardless_of_case(lab: Lab) -> None:
    assert lab.one("pod=a", "dcgm_fi_dev_gpu_util") == 90_000
    assert lab.one("pod=a", "DCGM_FI_DEV_GPU_UTIL") == 90_000


def test_if_two_names_differ_only_in_case_the_lower_case_name_wins() -> None:
    upper = Metric("Queue", Unit.PERCENT, Kind.LAST, ())
    lower = Metric("queue", Unit.RATIO, Kind.LAST, ())
    assert by_lower_case({"Queue": upper, "queue": lower}) == {"queue": lower}


def test_an_unknown_metric_is_not_found(lab: Lab) -> None:
    with pytest.raises(MetricNotFound, match="could not find the metric nothing"):
        lab.ask(metric="nothing")


def test_requests_are_rejected_before_pods_are_listed(lab: Lab) -> None:
    empty = ObjectLookup(PodIndex(), Services(), Nodes())
    external = GpuExternalMetrics(Catalog(), lab.store, empty, Counter())
    with pytest.raises(Unavailable, match="the pods have not been listed yet"):
        at_once(external.values(ExternalQuery("ns", "gpu_utilization", EVERYTHING), NOW))


def test_a_change_of_pods_or_values_invalidates_every_answer(lab: Lab) -> None:
    versions = [lab.external.version]
    lab.page(PAGE, NOW + 1)
    versions.append(lab.external.version)
    lab.index.replace([A])
    versions.append(lab.external.version)
    assert versions == sorted(set(versions))
