"""Faults of HPAs and their targets (GMA401 to GMA455)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.adapter.world import own_page
from tests.e2e.cluster import HPAS, condition
from tests.e2e.doctorfaults.register import (
    CHAT,
    MAIN_HPA,
    VLLM,
    fault,
    hpa_with,
    metric_of,
    pods_metric,
    scaler,
    server,
    zero,
)
from tests.e2e.pagestand import made, stand
from tests.e2e.site import Site

IDLE_HPA = f"{HPAS.format(ns=CHAT)}/idle"


@fault("GMA401")
def a_metric_that_does_not_exist(site: Site) -> Iterator[None]:
    with metric_of(site, IDLE_HPA, "gpu_utilisation"):
        yield


@fault("GMA402")
def a_type_of_target_that_pods_do_not_have(site: Site) -> Iterator[None]:
    metrics = pods_metric("gpu_utilization", kind="Value")
    with hpa_with(site, IDLE_HPA, metrics=metrics):
        yield


@fault("GMA403")
def a_target_above_the_maximum(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, metrics=pods_metric("gpu_utilization", "150")):
        yield


@fault("GMA404")
def a_target_in_the_wrong_unit(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, metrics=pods_metric("gpu_utilization", "700m")):
        yield


@fault("GMA405")
def no_room_to_scale(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, minReplicas=6):
        yield


@fault("GMA406")
def a_behavior_that_never_scales_in(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, behavior={"scaleDown": {"selectPolicy": "Disabled"}}):
        yield


@fault("GMA407")
def a_behavior_that_never_scales_out(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, behavior={"scaleUp": {"selectPolicy": "Disabled"}}):
        yield


@fault("GMA411")
def an_hpa_at_its_maximum(site: Site) -> Iterator[None]:
    with hpa_with(site, MAIN_HPA, maxReplicas=2):
        site.load.set(CHAT, 200)
        site.admin.wait(
            MAIN_HPA,
            lambda obj: condition(obj, "ScalingLimited") == ("True", "TooManyReplicas"),
            "it wants more",
        )
        yield
    site.load.set(CHAT, 60)
    site.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingLimited")[0] == "False", "it wants no more"
    )


@fault("GMA412", also=("GMA444",))
def an_averagevalue_of_a_mean(site: Site) -> Iterator[None]:
    metric = {"name": "gpu_utilization", "selector": {"matchLabels": {"aggregate": "mean"}}}
    target = {"type": "AverageValue", "averageValue": "70"}
    rows = [{"type": "External", "external": {"metric": metric, "target": target}}]
    with hpa_with(site, IDLE_HPA, metrics=rows):
        yield


@fault("GMA457")
def a_latency_and_nothing_else(site: Site) -> Iterator[None]:
    name = "inference_time_to_first_token_seconds_p90"
    with hpa_with(site, IDLE_HPA, metrics=pods_metric(name, "500m")):
        yield


@fault("GMA413")
def a_metric_that_falls_under_load(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, metrics=pods_metric("DCGM_FI_DEV_FB_FREE", "4000")):
        yield


@fault("GMA414")
def a_selector_with_a_label_of_the_exporter(site: Site) -> Iterator[None]:
    rows = pods_metric("gpu_utilization")
    rows[0]["pods"]["metric"]["selector"] = {"matchLabels": {"modelName": "NVIDIA-A100"}}
    with hpa_with(site, IDLE_HPA, metrics=rows):
        yield


@fault("GMA454", also=("GMA444",))
def a_gpu_as_a_resource(site: Site) -> Iterator[None]:
    target = {"type": "Utilization", "averageUtilization": 80}
    row = {"type": "Resource", "resource": {"name": "nvidia.com/gpu", "target": target}}
    with hpa_with(site, IDLE_HPA, metrics=[row]):
        yield


@fault("GMA455")
def a_target_without_a_scale(site: Site) -> Iterator[None]:
    labels = {"app": "agent"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "a", "image": "none"}]},
    }
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": CHAT, "name": "agent"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    with made(site, agent, scaler("agent", kind="DaemonSet")):
        site.admin.wait(
            f"{HPAS.format(ns=CHAT)}/agent",
            lambda obj: condition(obj, "AbleToScale") == ("False", "FailedGetScale"),
            "the controller has looked for its scale",
        )
        yield


@fault("GMA421")
def a_target_that_does_not_exist(site: Site) -> Iterator[None]:
    with made(site, scaler("lost", name="inferense")):
        yield


@fault("GMA422", also=("GMA444",))
def a_selector_that_matches_nothing(site: Site) -> Iterator[None]:
    metric = {"name": "gpu_utilization", "selector": {"matchLabels": {"app": "nobody"}}}
    target = {"type": "AverageValue", "averageValue": "70"}
    rows = [{"type": "External", "external": {"metric": metric, "target": target}}]
    with hpa_with(site, IDLE_HPA, metrics=rows):
        yield


@fault("GMA423", also=("GMA410",))
def two_hpas_for_one_workload(site: Site) -> Iterator[None]:
    with made(site, scaler("second", name="idle")):
        yield


@fault("GMA424")
def a_workload_without_gpus(site: Site) -> Iterator[None]:
    cpu = zero("cpu")
    cpu["spec"]["template"]["spec"]["containers"][0].pop("resources")
    with made(site, cpu, scaler("cpu")):
        yield


@fault("GMA425")
def a_server_that_scales_on_saturated_utilization(site: Site) -> Iterator[None]:
    page = own_page(VLLM).encode()
    with (
        hpa_with(site, IDLE_HPA, metrics=pods_metric("gpu_utilization", "90")),
        stand(site, server(scrape="true"), 8000, page),
    ):
        yield
