"""The cases: shapes of manifests from public repositories, and the ids of what is wrong with them.

The shapes, with other names and numbers, are those of kubernetes/examples (AI/vllm-deployment/hpa),
vllm-project/production-stack (tutorials 10 and 19), llm-d (workload-autoscaling), kserve (KEDA with
LLM metrics), kaito-project/keda-kaito-scaler, NVIDIA (nim-deploy, "Horizontal Autoscaling of NVIDIA
NIM", Triton on Kubernetes), SUSE Private AI (Object metric of a namespace), AWS data-on-eks,
GoogleCloudPlatform/ai-on-gke, kubernetes-sigs/lws (``config/samples/hpaexample.yaml``), Alibaba
Cloud ACK, TorchServe (pytorch/serve#3286), KEDA (#1940, #5781, #6141), grafana/tempo#7376,
EclipseFdn/open-vsx#10893 and kubernetes#87797.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.adapter.tools.doctor.seen.objects import (
    NS,
    SCALER,
    Manifest,
    about,
    average,
    claim,
    external,
    hpa,
    pods,
    query,
    resource,
    scaled,
    trigger,
    value,
    workload,
)


class Seen(NamedTuple):
    """Manifests of one case, and the checks that find something."""

    manifests: tuple[Manifest, ...]
    found: frozenset[str] = frozenset()


def seen(*manifests: Manifest, found: str = "") -> Seen:
    return Seen(manifests, frozenset(found.split()))


ONE_NODE: Final = {"accessModes": ["ReadWriteOnce"]}
UTIL: Final = pods("gpu_utilization", average("70"))
WAITING: Final = "inference_requests_waiting"
AVG: Final = 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="serving",pod=~"llm-.*"})'

LWS: Final = "LeaderWorkerSet"
GOOD: Final[dict[str, Seen]] = {
    "at zero, the queue of a gateway": seen(
        workload(),
        hpa(external("gateway_requests_waiting", average("8"), app="gateway"), minReplicas=0),
    ),
    "a LeaderWorkerSet, the mean of each group": seen(
        hpa(pods("gpu_utilization", average("70"), aggregate="mean"), kind=LWS)
    ),
    "a LeaderWorkerSet, the queue of its leaders": seen(hpa(pods(WAITING, average("8")), kind=LWS)),
    "a LeaderWorkerSet, the mean over all of its pods": seen(
        hpa(about(LWS, "llm", "gpu_utilization", value("70")), kind=LWS)
    ),
    "a scaling group of Grove, the sum of its pods": seen(
        hpa(
            external("gpu_utilization", average("280"), workload="llm"),
            kind="PodCliqueScalingGroup",
        )
    ),
    "pods metric, utilization": seen(workload(), hpa(UTIL)),
    "pods metric, the exporter's name": seen(hpa(pods("DCGM_FI_DEV_GPU_UTIL", average(80)))),
    "pods metric, lower case": seen(hpa(pods("dcgm_fi_dev_gpu_util", average("20")))),
    "pods metric, a ratio": seen(hpa(pods("DCGM_FI_PROF_GR_ENGINE_ACTIVE", average("700m")))),
    "pods metric, a share of the cache": seen(
        workload(), hpa(pods("vllm:kv_cache_usage_perc", average("0.5")))
    ),
    "pods metric, a queue": seen(workload(), hpa(pods("vllm:num_requests_waiting", average("5")))),
    "pods metric, used memory": seen(hpa(pods("gpu_memory_used_bytes", average("60Gi")))),
    "pods metric, watts": seen(hpa(pods("gpu_power_watts", average("350")))),
    "pods metric, selected by model": seen(
        hpa(pods("gpu_utilization", average("70"), model="NVIDIA-H100"))
    ),
    "beside cpu": seen(workload(), hpa(resource("cpu"), UTIL)),
    "external, a series per pod": seen(
        workload(), hpa(external("gpu_utilization", average("70"), app="llm"))
    ),
    "external, without a selector": seen(hpa(external("gpu_utilization", average("70")))),
    "external, the mean": seen(
        workload(), hpa(external("gpu_utilization", value("70"), app="llm", aggregate="mean"))
    ),
    "external, the maximum": seen(
        hpa(external("gpu_utilization", value("80"), workload="llm", aggregate="max"))
    ),
    "external, the queue of a gateway": seen(
        workload(),
        hpa(external("inference_gateway_requests_waiting", average("4"), app="llm-epp")),
    ),
    "external, the queue of a gateway as a whole": seen(
        workload(), hpa(external("inference_gateway_requests_waiting", value("10"), app="llm-epp"))
    ),
    "external, the GPUs of another workload": seen(
        workload(), hpa(external("gpu_utilization", value("300"), app="another"))
    ),
    "external, the desired replicas of another autoscaler": seen(
        workload(), hpa(external("wva_desired_replicas", average("1"), variant_name="llm"))
    ),
    "object, the queue of a service": seen(
        workload(), hpa(about("Service", "llm", WAITING, average("4")))
    ),
    "object, the saturation of a picker": seen(
        workload(), hpa(about("Service", "epp", "llm_d_epp_flow_control_pool_saturation", value(1)))
    ),
    "object, the mean of a deployment": seen(
        workload(), hpa(about("Deployment", "llm", "gpu_utilization", value("70")))
    ),
    "object, of an ingress": seen(
        workload(), hpa(about("Ingress", "main", "requests_per_second", value("2k")))
    ),
    "metrics of other programs": seen(
        workload(),
        hpa(pods("http_requests_per_second", average("50")), external("sqs_depth", average(30))),
    ),
    "gke, the name of Cloud Monitoring": seen(
        workload(), hpa(external("kubernetes.io|container|accelerator|duty_cycle", average(60)))
    ),
    "keda, the adapter": seen(workload(), scaled(trigger("gpu_utilization", "70"))),
    "keda, labels of the pods": seen(
        workload(), scaled(trigger("gpu_utilization", "70", podSelector="app=llm"))
    ),
    "keda, the mean": seen(
        workload(),
        scaled(trigger("gpu_utilization", "70", aggregate="mean", row={"metricType": "Value"})),
    ),
    "keda, from zero by a gateway": seen(
        workload(),
        scaled(
            trigger("inference_gateway_requests_waiting", "4", podSelector="app=epp"),
            trigger("inference_requests_running", "24"),
            minReplicaCount=0,
        ),
    ),
    "keda, from zero by a queue": seen(
        workload(),
        scaled(
            {"type": "aws-sqs-queue", "metadata": {"queueURL": "https://q", "queueLength": "5"}},
            trigger("gpu_utilization", "70"),
            minReplicaCount=0,
        ),
    ),
    "keda, another scaler": seen(
        workload(),
        scaled(
            {
                "type": "external",
                "metadata": {"scalerName": "other", "scalerAddress": "other-scaler.kaito:10450"},
            }
        ),
    ),
    "keda, a sum in PromQL": seen(
        workload(), scaled(query('sum(vllm:num_requests_waiting{job="llm"})', "5"))
    ),
    "keda, a mean in PromQL": seen(
        workload(), scaled(query(AVG, "70", row={"metricType": "Value"}))
    ),
    "keda, a PromQL of more than one series": seen(
        workload(), scaled(query("sum(tgi_queue_size) / count(up)", "5"))
    ),
    "keda, takes over an HPA": seen(
        workload(),
        hpa(UTIL),
        scaled(
            trigger("gpu_utilization", "70"),
            meta={"annotations": {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}},
            advanced={"horizontalPodAutoscalerConfig": {"name": "llm"}},
        ),
    ),
    "a claim that many nodes read": seen(
        workload(claim="model"), claim("model", "ReadWriteMany"), hpa(UTIL)
    ),
    "a claim of one replica": seen(
        workload(claim="model", replicas=1), claim("model", "ReadWriteOnce")
    ),
    "claims of each pod": seen(
        workload(
            kind="StatefulSet",
            volumeClaimTemplates=[
                {"metadata": {"name": "m"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
            ],
        ),
        hpa(UTIL, kind="StatefulSet"),
    ),
    "a share of what is requested": seen(
        workload(), hpa(pods("gpu_utilization_of_request", average("110")))
    ),
    "a startup probe": seen(
        workload(probe=False, container={"startupProbe": {"httpGet": {"path": "/", "port": 1}}}),
        hpa(UTIL),
    ),
    "a web server beside": seen(
        workload("web", "nginx:1", probe=False, gpu=False, replicas=3),
        hpa(resource("cpu"), name="web", target="web"),
    ),
}

BAD: Final[dict[str, Seen]] = {
    "pods metric, of whole devices on MIG instances": seen(
        workload(resource="nvidia.com/mig-1g.10gb"),
        hpa(pods("DCGM_FI_DEV_GPU_UTIL", average(80))),
        found="GMA203",
    ),
    "keda, of whole devices on MIG instances": seen(
        workload(resource="nvidia.com/mig-1g.10gb"),
        scaled(trigger("DCGM_FI_DEV_GPU_UTIL", "80")),
        found="GMA203",
    ),
    "pods metric of type Value": seen(
        workload(),
        hpa(pods("gpu_utilization", {"type": "Value", "averageValue": "70"})),
        found="GMA402",
    ),
    "a ratio with a percentage": seen(
        hpa(pods("DCGM_FI_PROF_GR_ENGINE_ACTIVE", average("50"))), found="GMA403"
    ),
    "a share of the cache with a percentage": seen(
        hpa(external("vllm:gpu_cache_usage_perc", average("80"))), found="GMA403"
    ),
    "a percentage with a ratio": seen(hpa(pods("gpu_utilization", average("0.5"))), found="GMA404"),
    "object, a percentage with a ratio": seen(
        hpa(about("Deployment", "llm", "gpu_utilization", value("0.5"))), found="GMA404"
    ),
    "keda, a percentage with a ratio": seen(
        scaled(trigger("gpu_utilization", "0.7")), found="GMA404"
    ),
    "keda, a ratio with a percentage in PromQL": seen(
        scaled(query("avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE)", "50", row={"metricType": "Value"})),
        found="GMA403",
    ),
    "a latency and nothing else": seen(
        hpa(pods("inference_time_to_first_token_seconds_p90", average("500m"))), found="GMA457"
    ),
    "keda, a latency and nothing else": seen(
        scaled(trigger("inference_request_seconds_p95", "20")), found="GMA457"
    ),
    "a LeaderWorkerSet, the devices of its leaders": seen(hpa(UTIL, kind=LWS), found="GMA456"),
    "a role's scaler, the devices of its leaders": seen(
        hpa(UTIL, kind="DisaggregatedSetRoleScaler"), found="GMA456"
    ),
    "a scaling group of Grove, each pod a replica": seen(
        hpa(UTIL, kind="PodCliqueScalingGroup"), found="GMA456"
    ),
    "a scaling group of Grove, Value of a mean": seen(
        hpa(
            about("PodCliqueScalingGroup", "llm", "gpu_utilization", value("70")),
            kind="PodCliqueScalingGroup",
        ),
        found="GMA456",
    ),
    "external, Value of a sum": seen(
        workload(), hpa(external("gpu_utilization", value("70"), app="llm")), found="GMA412"
    ),
    "external, Value of the namespace's sum": seen(
        hpa(external("vllm:num_requests_waiting", value("10"))), found="GMA412"
    ),
    "external, AverageValue of a mean": seen(
        hpa(external("gpu_utilization", average("70"), app="llm", aggregate="mean")),
        found="GMA412",
    ),
    "object, AverageValue of a namespace's mean": seen(
        workload(),
        hpa(about("Namespace", NS, "gpu_utilization", average("70"))),
        found="GMA412",
    ),
    "object, Value of a queue": seen(
        workload(), hpa(about("Deployment", "llm", WAITING, value("10"))), found="GMA412"
    ),
    "keda, Value of a sum": seen(
        scaled(trigger("gpu_utilization", "70", row={"metricType": "Value"})), found="GMA412"
    ),
    "keda, AverageValue of a mean in PromQL": seen(scaled(query(AVG, "70")), found="GMA412"),
    "keda, Value of a sum in PromQL": seen(
        scaled(query("sum(vllm:num_requests_waiting)", "10", row={"metricType": "Value"})),
        found="GMA412",
    ),
    "free memory": seen(hpa(pods("DCGM_FI_DEV_FB_FREE", average("4000"))), found="GMA413"),
    "free memory of the namespace": seen(
        hpa(external("dcgm_fi_dev_fb_free", value("4000"))), found="GMA413"
    ),
    "free memory in PromQL": seen(
        scaled(query("avg(DCGM_FI_DEV_FB_FREE)", "4000")), found="GMA413"
    ),
    "headroom by keda": seen(scaled(trigger("gpu_memory_headroom_bytes", "8Gi")), found="GMA413"),
    "a temperature": seen(hpa(pods("DCGM_FI_DEV_GPU_TEMP", average("75"))), found="GMA413"),
    "an error code": seen(hpa(pods("DCGM_FI_DEV_XID_ERRORS", average("1"))), found="GMA413"),
    "a label of the exporter": seen(
        hpa(pods("gpu_utilization", average("70"), modelName="NVIDIA-A10G")), found="GMA414"
    ),
    "external, a label of the exporter": seen(
        hpa(external("gpu_utilization", average("70"), Hostname="gpu-1")), found="GMA414"
    ),
    "a value that a label never has": seen(
        hpa(pods("gpu_utilization", average("70"), sharing="mps")), found="GMA414"
    ),
    "a promise that cannot be meant": seen(
        hpa(pods("inference_slo_ratio", average("500m"), ttft_p90="soon")), found="GMA414"
    ),
    "a promise of a quantile that nobody has": seen(
        hpa(pods("inference_slo_ratio", average("500m"), ttft_p42="1s")), found="GMA414"
    ),
    "a promise": seen(workload(), hpa(pods("inference_slo_ratio", average("500m"), ttft_p90="1s"))),
    "a promise of an external metric": seen(
        workload(),
        hpa(external("inference_slo_ratio", average("500m"), app="llm", itl_p90="50ms")),
    ),
    "a ratio in percent": seen(
        hpa(pods("inference_slo_ratio", average("70"), ttft_p90="1s")), found="GMA403"
    ),
    "a misspelt metric": seen(hpa(pods("gpu_utilisation", average("70"))), found="GMA401"),
    "gke, managed Prometheus": seen(
        workload(),
        hpa(pods("prometheus.googleapis.com|vllm:num_requests_running|gauge", average(10))),
        found="GMA401",
    ),
    "a maximum that is the minimum": seen(
        workload(), hpa(UTIL, minReplicas=4, maxReplicas=4), found="GMA405"
    ),
    "at zero, an External metric of its own pods": seen(
        workload(),
        hpa(external("gpu_utilization", average("70"), app="llm"), minReplicas=0),
        found="GMA408",
    ),
    "at zero, an Object metric of itself": seen(
        workload(),
        hpa(about("Deployment", "llm", "gpu_utilization", value("70")), minReplicas=0),
        found="GMA408",
    ),
    "keda, never wakes": seen(
        workload(), scaled(trigger("gpu_utilization", "70"), minReplicaCount=0), found="GMA408"
    ),
    "two HPAs": seen(workload(), hpa(UTIL), hpa(resource("cpu"), name="llm-cpu"), found="GMA423"),
    "an HPA and a ScaledObject": seen(
        workload(), hpa(UTIL), scaled(trigger(WAITING, "4"), name="llm-keda"), found="GMA423"
    ),
    "two ScaledObjects": seen(
        workload(),
        scaled(trigger("gpu_utilization", "70")),
        scaled(trigger(WAITING, "4"), name="llm-queue"),
        found="GMA423",
    ),
    "a workload without a GPU": seen(workload(gpu=False), hpa(UTIL), found="GMA424"),
    "keda, a misspelt key": seen(
        scaled(trigger("gpu_utilization", "70", podselector="app=llm")), found="GMA426"
    ),
    "keda, the port of the metrics API": seen(
        scaled(trigger("gpu_utilization", "70", scalerAddress=SCALER.replace("6000", "443"))),
        found="GMA428",
    ),
    "keda, a scheme": seen(
        scaled(trigger("gpu_utilization", "70", scalerAddress=f"https://{SCALER}")),
        found="GMA428",
    ),
    "keda, no port": seen(
        scaled(trigger("gpu_utilization", "70", scalerAddress=SCALER.partition(":")[0])),
        found="GMA428",
    ),
    "keda, no answer is 0": seen(
        scaled(query("sum(DCGM_FI_DEV_GPU_UTIL)", "70", ignoreNullValues="true")), found="GMA429"
    ),
    "replicas beside an HPA": seen(workload(replicas=2), hpa(UTIL), found="GMA451"),
    "replicas beside a ScaledObject": seen(
        workload(replicas=1), scaled(trigger("gpu_utilization", "70")), found="GMA451"
    ),
    "a claim of one node": seen(
        workload(claim="model"), claim("model", "ReadWriteOnce"), hpa(UTIL), found="GMA452"
    ),
    "a claim of one pod": seen(
        workload(claim="model"),
        claim("model", "ReadWriteOncePod"),
        scaled(trigger(WAITING, "4")),
        found="GMA452",
    ),
    "a server without a probe": seen(workload(probe=False), hpa(UTIL), found="GMA453"),
    "NIM without a probe": seen(
        workload("nim", "nvcr.io/nim/meta/llama:1", probe=False),
        hpa(pods("gpu_cache_usage_perc", average("0.5")), name="nim", target="nim"),
        found="GMA453",
    ),
    "a GPU as a resource": seen(workload(), hpa(resource("nvidia.com/gpu")), found="GMA454"),
    "a GPU as the resource of a container": seen(
        workload(resource="amd.com/gpu"),
        hpa(resource("amd.com/gpu", "ContainerResource", container="server")),
        found="GMA454",
    ),
    "everything at once": seen(
        workload(probe=False, replicas=2, claim="model"),
        claim("model", "ReadWriteOnce"),
        hpa(external("gpu_utilization", value("70"), app="llm"), resource("nvidia.com/gpu")),
        scaled(query(AVG, "70", ignoreNullValues="true"), name="more"),
        found="GMA412 GMA423 GMA429 GMA451 GMA452 GMA453 GMA454",
    ),
}

ODD: Final[dict[str, tuple[object, ...]]] = {
    "a trigger that is a text": ({**scaled(), "spec": {"triggers": ["cpu"]}},),
    "triggers that are a mapping": ({**scaled(), "spec": {"triggers": {"type": "external"}}},),
    "metadata that is a list": (scaled({"type": "external", "metadata": ["a"]}),),
    "numbers in metadata": (scaled(trigger("gpu_utilization", 70, activation=0)),),  # type: ignore[arg-type]  # as YAML without quotes reads it
    "an address that is a number": (scaled(trigger("gpu_utilization", "70", scalerAddress=6000)),),
    "an address of IPv6": (
        scaled(trigger("gpu_utilization", "70", scalerAddress="gpu-metrics-adapter[::1]")),
    ),
    "a target that is a list": (hpa({"type": "Pods", "pods": {"metric": [], "target": []}}),),
    "a metric that is null": (hpa(None),),  # type: ignore[arg-type]  # as an empty line of a list
    "a selector that is a text": (
        hpa(
            {
                "type": "External",
                "external": {"metric": {"name": "gpu_utilization", "selector": "a=b"}},
            }
        ),
    ),
    "an expression without values": (
        hpa(
            {
                "type": "External",
                "external": {
                    "metric": {
                        "name": "gpu_utilization",
                        "selector": {"matchExpressions": [{"key": "app"}]},
                    },
                    "target": value("70"),
                },
            }
        ),
    ),
    "a target without a number": (hpa(external("gpu_utilization", {"type": "Value"})),),
    "a target of 0": (hpa(external("gpu_utilization", value("0"))),),
    "a negative target": (hpa(pods("gpu_utilization", average("-5"))),),
    "a huge target": (hpa(pods("gpu_memory_used_bytes", average("900E"))),),
    "AverageValue with value": (
        hpa(external("gpu_utilization", {"type": "AverageValue", "value": "70"})),
    ),
    "replicas that are null": (workload(replicas=None), hpa(UTIL)),
    "a maximum that is a text": (workload(), hpa(UTIL, maxReplicas="8")),
    "a claim without a spec": ({"kind": "PersistentVolumeClaim", "metadata": {"name": "a"}},),
    "an old version": ({**hpa(UTIL), "apiVersion": "autoscaling/v2beta2"},),
    "a chart's template": ({"kind": "{{ .Values.kind }}", "metadata": {"name": "{{ x }}"}},),
    "a PromQL that is not closed": (scaled(query("avg(DCGM_FI_DEV_GPU_UTIL{", "70")),),
    "a PromQL of a number": (scaled(query("1", "70")),),
    "a threshold that is a word": (scaled(query(AVG, "many")),),
    "an applied manifest that is not JSON": (
        {
            **workload(),
            "metadata": {
                "name": "llm",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{"},
            },
        },
        hpa(UTIL),
    ),
}
