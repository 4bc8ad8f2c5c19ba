"""One story for each alert: all is well for an hour, then two hours are not, then all is again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HEALTHY, BAD, AFTER = 60, 120, 240
"""Minutes."""
WELL_AT, FIRES_AT, OVER_AT = 59, 170, 410

JOB = 'job="gma"'
ONE = f'{JOB},instance="10.0.0.1:6443",pod="gma-1"'
TWO = f'{JOB},instance="10.0.0.2:6443",pod="gma-2"'
POOL_ONE = 'job="pool",instance="10.0.0.3:8081",pod="pool-1"'
POOL_TWO = 'job="pool",instance="10.0.0.4:8081",pod="pool-2"'


def level(well: float | None, bad: float | None) -> str:
    """A gauge's samples, one a minute; None means that there is no sample."""
    return " ".join((_flat(well, HEALTHY), _flat(bad, BAD), _flat(well, AFTER)))


def rate(well: float, bad: float) -> str:
    """A counter's samples: so much more each minute."""
    middle = well * HEALTHY
    end = middle + bad * BAD
    return " ".join(
        (
            f"0+{well:g}x{HEALTHY - 1}",
            f"{middle:g}+{bad:g}x{BAD - 1}",
            f"{end:g}+{well:g}x{AFTER - 1}",
        )
    )


def _flat(value: float | None, minutes: int) -> str:
    return f"_x{minutes}" if value is None else f"{value:g}+0x{minutes - 1}"


@dataclass(frozen=True)
class Case:
    """What is scraped, and the resulting alert."""

    alert: str
    series: Mapping[str, str]
    summary: str
    """As it reaches people."""
    severity: str = "warning"
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the alert, beside its severity."""


GMA = {"job": "gma"}
POOL = {"job": "pool"}
LLM = 'namespace="ml",horizontalpodautoscaler="llm",instance="ksm"'
SHOP = 'namespace="web",horizontalpodautoscaler="shop",instance="ksm"'
FIXED = 'namespace="ml",horizontalpodautoscaler="fixed",instance="ksm"'
NEAR = 'namespace="ml",horizontalpodautoscaler="near",instance="ksm"'
_HPA = "kube_horizontalpodautoscaler"


def hpa(about: str, metric: str = "gpu_utilization", low: int = 1, high: int = 8) -> dict[str, str]:
    """What kube-state-metrics always says of an HPA."""
    return {
        f"{_HPA}_spec_min_replicas{{{about}}}": level(low, low),
        f"{_HPA}_spec_max_replicas{{{about}}}": level(high, high),
        f'{_HPA}_spec_target_metric{{{about},metric_name="{metric}"}}': level(70, 70),
    }


def values(about: str, samples: str, metric: str = "gpu_utilization") -> dict[str, str]:
    """The values that an HPA last used."""
    return {f'{_HPA}_status_target_metric{{{about},metric_name="{metric}"}}': samples}


def waiting(pod: str, bad: float, resource: str = "nvidia_com_gpu") -> dict[str, str]:
    """A pod that is not scheduled while something is wrong."""
    about = f'namespace="ml",pod="{pod}",instance="ksm"'
    return {
        f'kube_pod_status_scheduled{{{about},condition="false"}}': level(0, bad),
        f'kube_pod_container_resource_requests{{{about},resource="{resource}"}}': level(1, 1),
    }


CASES = [
    Case(
        "GpuMetricsAdapterAbsent",
        {f'gma_build_info{{component="serve",{ONE}}}': level(1, None)},
        "Prometheus sees no gpu-metrics-adapter.",
        "critical",
        {"component": "serve"},
    ),
    Case(
        "GpuMetricsAdapterNoReadyReplica",
        {
            'kube_deployment_status_replicas_ready{namespace="gpu-metrics",'
            'deployment="gpu-metrics-adapter"}': level(2, 0),
            'kube_deployment_status_replicas_ready{namespace="other",deployment="any"}': level(
                0, 0
            ),
        },
        "No pod of gpu-metrics-adapter is ready.",
        "critical",
        {"namespace": "gpu-metrics", "deployment": "gpu-metrics-adapter"},
    ),
    Case(
        "GpuMetricsAdapterAPIServiceUnavailable",
        {
            'aggregator_unavailable_apiservice{name="v1beta2.custom.metrics.k8s.io",'
            'job="apiserver",instance="a"}': level(0, 1),
            'aggregator_unavailable_apiservice{name="v1.somebody.else",job="apiserver",'
            'instance="a"}': level(1, 1),
        },
        "The API server cannot reach v1beta2.custom.metrics.k8s.io.",
        "critical",
        {"job": "apiserver", "name": "v1beta2.custom.metrics.k8s.io"},
    ),
    Case(
        "GpuMetricsAdapterNoValues",
        {f"gma_gpu_pods{{{ONE}}}": level(8, 8), f"gma_gpu_pods_measured{{{ONE}}}": level(8, 0)},
        "8 pods hold GPUs and none has a value.",
        "critical",
        GMA,
    ),
    Case(
        "GpuMetricsAdapterPodsWithoutValue",
        {
            f"gma_gpu_pods{{{ONE}}}": level(100, 100),
            f'gma_gpu_pods_unmeasured{{reason="pod_not_named",{ONE}}}': level(2, 30),
            f'gma_gpu_pods_unmeasured{{reason="no_value",{ONE}}}': level(5, 5),
        },
        "30% of the pods with GPUs have no value: pod_not_named.",
        labels={**GMA, "reason": "pod_not_named"},
    ),
    Case(
        "GpuMetricsAdapterValuesStale",
        {
            f'gma_gpu_pods_unmeasured{{reason="stale",{ONE}}}': level(0, 3),
            f'gma_gpu_pods_unmeasured{{reason="pod_not_named",{ONE}}}': level(3, 3),
        },
        "The values of 3 pods are too old to be served.",
        labels={**GMA, "reason": "stale"},
    ),
    Case(
        "GpuMetricsAdapterDevicesIdle",
        {
            f'gma_idle_devices{{held="true",at_least="24h",{ONE}}}': level(0, 4),
            f'gma_idle_devices{{held="true",at_least="1h",{ONE}}}': level(9, 9),
            f'gma_idle_devices{{held="false",at_least="24h",{ONE}}}': level(9, 9),
        },
        "4 GPUs that pods hold have been idle for a day.",
        labels={**GMA, "held": "true", "at_least": "24h"},
    ),
    Case(
        "GpuMetricsAdapterSourceDown",
        {
            f'gma_source_up{{kind="scrape",{ONE}}}': level(1, 0),
            f'gma_source_up{{kind="scrape",{TWO}}}': level(1, 0),
        },
        "The source scrape delivers no fresh data to any replica.",
        "critical",
        {**GMA, "kind": "scrape"},
    ),
    Case(
        "GpuMetricsAdapterScrapesFailing",
        {
            f"gma_scrape_targets{{{ONE}}}": level(40, 40),
            f"gma_scrape_targets_failing{{{ONE}}}": level(1, 10),
        },
        "25% of the exporters cannot be scraped.",
        labels=GMA,
    ),
    Case(
        "GpuMetricsAdapterScrapesOverdue",
        {f"gma_scrape_targets_overdue{{{ONE}}}": level(0, 3)},
        "3 exporters or pods are not scraped on time.",
        labels=GMA,
    ),
    Case(
        "GpuMetricsAdapterQueriesFailing",
        {
            f"gma_queries_total{{{ONE}}}": rate(60, 60),
            f'gma_query_failures_total{{reason="timeout",{ONE}}}': rate(0, 15),
            f'gma_query_failures_total{{reason="denied",{ONE}}}': rate(6, 15),
        },
        "50% of the queries to the store fail.",
        labels=GMA,
    ),
    Case(
        "GpuMetricsAdapterRejectsRising",
        {
            f'gma_rejects_total{{reason="wrong_node",{ONE}}}': rate(0, 120),
            f'gma_rejects_total{{reason="self_attribution",{ONE}}}': rate(600, 600),
        },
        "2 samples per second are left out: wrong_node.",
        labels={**GMA, "reason": "wrong_node"},
    ),
    Case(
        "GpuMetricsAdapterCertificateExpiring",
        # At the time of the check 170 minutes are over: 3 days and 10 minutes are left of them.
        {
            f'gma_certificate_expiry_timestamp_seconds{{{ONE},certificate="serving"}}': level(
                90 * 86400, 3 * 86400 + 180 * 60
            )
        },
        "The certificate serving expires in 3d 0h 10m 0s.",
        "critical",
        {**GMA, "certificate": "serving", "instance": "10.0.0.1:6443", "pod": "gma-1"},
    ),
    Case(
        "GpuMetricsAdapterSecurityFileRefused",
        {
            f'gma_security_file_ok{{file="serving-certificate",{ONE}}}': level(1, 1),
            f'gma_security_file_ok{{file="ca-files",{ONE}}}': level(1, 0),
        },
        "A changed ca-files is rejected.",
        labels={**GMA, "file": "ca-files"},
    ),
    Case(
        "GpuMetricsAdapterConfigRefused",
        {f"gma_config_ok{{{ONE}}}": level(1, 0), f"gma_config_ok{{{TWO}}}": level(1, 1)},
        "A changed configuration is rejected; the previous one stays active.",
        labels=GMA,
    ),
    Case(
        "GpuMetricsAdapterRulesRefused",
        {
            f"gma_rules_broken{{{ONE}}}": level(0, 1),
            f"gma_rules_broken{{{TWO}}}": level(0, 0),
            f"gma_rules_file_ok{{{ONE}}}": level(1, 1),
        },
        "The rules of rules.file are not all in use.",
        labels=GMA,
    ),
    Case(
        "GpuMetricsAdapterRuleQueriesFailing",
        {
            f"gma_rule_queries_total{{{ONE}}}": rate(60, 60),
            f'gma_rule_query_failures_total{{reason="timeout",{ONE}}}': rate(0, 15),
            f'gma_rule_query_failures_total{{reason="busy",{ONE}}}': rate(6, 15),
        },
        "50% of the queries of rules fail.",
        labels=GMA,
    ),
    Case(
        "GpuMetricsAdapterReviewsFailing",
        {
            f'gma_reviews_total{{kind="access",outcome="error",{ONE}}}': rate(0, 4),
            f'gma_reviews_total{{kind="access",outcome="no",{ONE}}}': rate(4, 4),
            f'gma_reviews_total{{kind="token",outcome="error",{ONE}}}': rate(0, 0),
        },
        "The API server does not answer reviews of kind access.",
        "critical",
        {**GMA, "kind": "access", "outcome": "error"},
    ),
    Case(
        "GpuMetricsAdapterRequestErrors",
        {
            f'gma_http_requests_total{{route="custom",version="v1beta2",code="200",{ONE}}}': rate(
                60, 30
            ),
            f'gma_http_requests_total{{route="custom",version="v1beta2",code="404",{ONE}}}': rate(
                60, 60
            ),
            f'gma_http_requests_total{{route="custom",version="v1beta2",code="500",{ONE}}}': rate(
                0, 30
            ),
            f'gma_http_requests_total{{route="health",version="",code="500",{ONE}}}': rate(60, 60),
        },
        "25% of the requests for custom metrics fail.",
        "critical",
        {**GMA, "route": "custom"},
    ),
    Case(
        "GpuMetricsAdapterRequestsSlow",
        {
            f'gma_http_request_duration_seconds_bucket{{route="custom",version="v1beta2",le="{le}",'
            f"{ONE}}}": rate(well, bad)
            for le, well, bad in (
                ("0.1", 100, 0),
                ("1.0", 100, 0),
                ("2.5", 100, 100),
                ("+Inf", 100, 100),
            )
        },
        "One in a hundred requests for custom metrics takes more than 2.485s.",
        labels={**GMA, "route": "custom"},
    ),
    Case(
        "GpuMetricsAdapterWatchStale",
        {
            f'gma_watch_age_seconds{{collection="pods",{ONE}}}': level(20, 600),
            f'gma_watch_age_seconds{{collection="nodes",{ONE}}}': level(70, 70),
            f'gma_watch_synced{{collection="pods",{ONE}}}': level(1, 1),
        },
        "The watch of pods is stale.",
        labels={**GMA, "collection": "pods"},
    ),
    Case(
        "GpuMetricsAdapterWatchStale",
        {f'gma_watch_synced{{collection="services",{ONE}}}': level(1, 0)},
        "The watch of services is stale.",
        labels={**GMA, "collection": "services"},
    ),
    Case(
        "GpuMetricsAdapterExternalMetricsForeign",
        {f"gma_external_other_adapter{{{ONE}}}": level(0, 1)},
        "Another Service serves external metrics.",
        labels=GMA,
    ),
    Case(
        "GpuMetricsAdapterDelegateFailing",
        {
            f'gma_delegate_requests_total{{delegate="old",outcome="ok",{ONE}}}': rate(60, 40),
            f'gma_delegate_requests_total{{delegate="old",outcome="timeout",{ONE}}}': rate(0, 5),
            f'gma_delegate_discovery_failures_total{{delegate="old",{ONE}}}': rate(0, 0),
        },
        "The delegate old fails.",
        labels={**GMA, "delegate": "old"},
    ),
    Case(
        "GpuMetricsAdapterKedaErrors",
        {
            f'gma_keda_calls_total{{method="GetMetrics",code="OK",{ONE}}}': rate(60, 40),
            f'gma_keda_calls_total{{method="GetMetrics",code="FAILED_PRECONDITION",{ONE}}}': rate(
                1, 20
            ),
            f'gma_keda_calls_total{{method="StreamIsActive",code="CANCELLED",{ONE}}}': rate(20, 40),
        },
        "20% of KEDA's calls fail with FAILED_PRECONDITION.",
        labels={**GMA, "code": "FAILED_PRECONDITION"},
    ),
    Case(
        "GpuMetricsAdapterBackgroundTaskFailing",
        {
            f'gma_background_failures_total{{task="source",{ONE}}}': rate(0, 1),
            f'gma_background_failures_total{{task="cluster",{ONE}}}': rate(0, 0),
        },
        "Background task source failed with an unexpected error.",
        labels={**GMA, "task": "source"},
    ),
    Case(
        "GpuNodepoolAbsent",
        {f'gma_build_info{{component="nodepool",{POOL_ONE}}}': level(1, None)},
        "Prometheus sees no nodepool controller.",
        labels={"component": "nodepool"},
    ),
    Case(
        "GpuNodepoolNoLeader",
        {
            f"gma_nodepool_apply{{{POOL_ONE}}}": level(1, 1),
            f"gma_nodepool_apply{{{POOL_TWO}}}": level(1, 1),
            f"gma_nodepool_leading{{{POOL_ONE}}}": level(1, 0),
            f"gma_nodepool_leading{{{POOL_TWO}}}": level(0, 0),
        },
        "No replica of nodepool leads.",
        labels=POOL,
    ),
    Case(
        "GpuNodepoolTwoLeaders",
        {
            f"gma_nodepool_apply{{{POOL_ONE}}}": level(1, 1),
            f"gma_nodepool_apply{{{POOL_TWO}}}": level(1, 1),
            f"gma_nodepool_leading{{{POOL_ONE}}}": level(1, 1),
            f"gma_nodepool_leading{{{POOL_TWO}}}": level(0, 1),
        },
        "2 replicas of nodepool lead at once.",
        "critical",
        POOL,
    ),
    Case(
        "GpuNodepoolFrozen",
        {
            f"gma_nodepool_leading{{{POOL_ONE}}}": level(1, 1),
            f"gma_nodepool_frozen{{{POOL_ONE}}}": level(0, 1),
        },
        "nodepool does not plan.",
        labels=POOL,
    ),
    Case(
        "GpuNodepoolFrozen",
        # Planned a minute ago until minute 60, then no more for two hours.
        {
            f"gma_nodepool_last_plan_timestamp_seconds{{{POOL_ONE}}}": (
                f"0+60x{HEALTHY - 1} 3600+0x{BAD - 1} {(HEALTHY + BAD) * 60}+60x{AFTER - 1}"
            )
        },
        "nodepool does not plan.",
        labels=POOL,
    ),
    Case(
        "GpuNodepoolWritesRefused",
        {
            f'gma_nodepool_orders_refused{{reason="forbidden",{POOL_ONE}}}': level(0, 2),
            f'gma_nodepool_orders_refused{{reason="method",{POOL_ONE}}}': level(1, 1),
        },
        "2 orders of headroom are not carried out: forbidden.",
        labels={**POOL, "reason": "forbidden"},
    ),
    Case(
        "GpuNodepoolHeadroomShort",
        {f"gma_nodepool_headroom_short{{{POOL_ONE}}}": level(0, 1)},
        "The autoscaler cannot fill 1 orders of headroom.",
        labels=POOL,
    ),
    Case(
        "GpuNodepoolPoolBackoff",
        {
            f'gma_nodepool_pool_backoff{{pool="gput4",{POOL_ONE}}}': level(0, 1),
            f'gma_nodepool_pool_backoff{{pool="gpua100",{POOL_ONE}}}': level(0, 0),
        },
        "The autoscaler has backed off from node pool gput4.",
        labels={**POOL, "pool": "gput4"},
    ),
    Case(
        "GpuNodepoolBudgetExhausted",
        {
            f'gma_nodepool_orders_by_reason{{reason="budget",{POOL_ONE}}}': level(0, 1),
            f'gma_nodepool_orders_by_reason{{reason="need",{POOL_ONE}}}': level(3, 3),
        },
        "The daily budget limits 1 orders of headroom.",
        "info",
        {**POOL, "reason": "budget"},
    ),
    Case(
        "GpuHpaOverloaded",
        {
            **hpa(LLM),
            **values(LLM, level(70, 98)),
            # An HPA on cpu, one that scales out, and one within the tolerance.
            **hpa(SHOP, "cpu"),
            **values(SHOP, level(98, 98), "cpu"),
            **hpa(FIXED),
            **values(FIXED, level(98, 98)),
            f"{_HPA}_status_desired_replicas{{{FIXED}}}": level(4, 4),
            f"{_HPA}_status_current_replicas{{{FIXED}}}": level(2, 2),
            **hpa(NEAR),
            **values(NEAR, level(76, 76)),
        },
        "HPA ml/llm is overloaded: a metric is at 140% of its target.",
        labels={"namespace": "ml", "horizontalpodautoscaler": "llm"},
    ),
    Case(
        "GpuHpaBehind",
        {
            **hpa(LLM),
            f"{_HPA}_status_desired_replicas{{{LLM}}}": level(4, 4),
            f"{_HPA}_status_current_replicas{{{LLM}}}": level(4, 4),
            f'{_HPA}_info{{{LLM},scaletargetref_kind="Deployment",scaletargetref_name="llm-d"}}': (
                level(1, 1)
            ),
            'kube_deployment_status_replicas_ready{namespace="ml",deployment="llm-d"}': level(4, 3),
            # All replicas of a StatefulSet exist.
            **hpa(FIXED),
            f"{_HPA}_status_desired_replicas{{{FIXED}}}": level(2, 2),
            f"{_HPA}_status_current_replicas{{{FIXED}}}": level(2, 2),
            f'{_HPA}_info{{{FIXED},scaletargetref_kind="StatefulSet",scaletargetref_name="s"}}': (
                level(1, 1)
            ),
        },
        "HPA ml/llm is behind, for fewer replicas are ready than the 4 that it wants.",
        labels={"namespace": "ml", "horizontalpodautoscaler": "llm"},
    ),
    Case(
        "GpuHpaStuck",
        {
            # KEDA puts the number of the trigger before the name of its metric.
            **hpa(LLM, "s0-gpu_utilization"),
            f'{_HPA}_status_condition{{{LLM},condition="ScalingActive",status="false"}}': level(
                0, 1
            ),
            f"{_HPA}_status_current_replicas{{{LLM}}}": level(2, 2),
            # Scaled to zero, and an HPA on cpu.
            **hpa(FIXED),
            f'{_HPA}_status_condition{{{FIXED},condition="ScalingActive",status="false"}}': level(
                1, 1
            ),
            f"{_HPA}_status_current_replicas{{{FIXED}}}": level(0, 0),
            **hpa(SHOP, "cpu"),
            f'{_HPA}_status_condition{{{SHOP},condition="ScalingActive",status="false"}}': level(
                1, 1
            ),
            f"{_HPA}_status_current_replicas{{{SHOP}}}": level(1, 1),
        },
        "HPA ml/llm is stuck.",
        labels={"namespace": "ml", "horizontalpodautoscaler": "llm"},
    ),
    Case(
        "GpuPodsPending",
        {
            **waiting("llm-1", 1),
            **waiting("llm-2", 1, "gpu_intel_com_i915"),
            **waiting("llm-3", 0),
            # Headroom waits on purpose, and this pod waits for something else.
            **waiting("gpu-headroom-0123456789-x", 1),
            **waiting("shop-1", 1, "cpu"),
        },
        "2 pods in namespace ml wait for a GPU.",
        labels={"namespace": "ml"},
    ),
    Case(
        "GpuNodepoolHistoryNotKept",
        {f"gma_nodepool_history_ok{{{POOL_ONE}}}": level(1, 0)},
        "nodepool cannot store what it has learned.",
        labels=POOL,
    ),
]
