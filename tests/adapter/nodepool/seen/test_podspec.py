"""Shapes: the scheduler's view of a pod's spec, and the pause pod for it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.model.shape import Shape, gpus, key
from adapter.nodepool.seen.podspec import pod_spec, shape_of
from adapter.pipeline.cluster.taints import Toleration

GIB = 1000 << 30

COUNTED: dict[str, tuple[str, dict[str, int]]] = {
    "containers are added up": (
        """
        containers:
        - {name: a, resources: {requests: {cpu: "1", memory: 1Gi}}}
        - {name: b, resources: {requests: {cpu: 500m}}}
        """,
        {"cpu": 1500, "memory": GIB},
    ),
    "a limit stands for a missing request": (
        """
        containers:
        - {name: a, resources: {requests: {cpu: "1"}, limits: {cpu: "2", nvidia.com/gpu: 2}}}
        """,
        {"cpu": 1000, "nvidia.com/gpu": 2000},
    ),
    "an init container counts where it needs more": (
        """
        initContainers:
        - {name: load, resources: {requests: {cpu: "8", memory: 1Gi}}}
        - {name: warm, resources: {requests: {cpu: "2", memory: 2Gi}}}
        containers:
        - {name: a, resources: {requests: {cpu: "1", memory: 4Gi}}}
        """,
        {"cpu": 8000, "memory": 4 * GIB},
    ),
    "a sidecar runs beside the containers": (
        """
        initContainers:
        - {name: proxy, restartPolicy: Always, resources: {requests: {cpu: "1"}}}
        containers:
        - {name: a, resources: {requests: {cpu: "2"}}}
        """,
        {"cpu": 3000},
    ),
    "and beside the init containers after it, not before": (
        """
        initContainers:
        - {name: before, resources: {requests: {cpu: "5"}}}
        - {name: proxy, restartPolicy: Always, resources: {requests: {cpu: "1"}}}
        - {name: after, resources: {requests: {cpu: "4500m"}}}
        containers:
        - {name: a, resources: {requests: {cpu: "2"}}}
        """,
        {"cpu": 5500},
    ),
    "overhead comes on top": (
        """
        overhead: {cpu: 250m, memory: 1Gi}
        containers:
        - {name: a, resources: {requests: {cpu: "1"}}}
        """,
        {"cpu": 1250, "memory": GIB},
    ),
    "requests of the whole pod replace its containers'": (
        """
        resources: {requests: {cpu: "4"}, limits: {memory: 8Gi}}
        containers:
        - {name: a, resources: {requests: {cpu: "1", memory: 1Gi}, limits: {nvidia.com/gpu: 1}}}
        """,
        {"cpu": 4000, "memory": GIB, "nvidia.com/gpu": 1000},
    ),
    "a limit of the whole pod stands where no container asks": (
        """
        resources: {limits: {memory: 8Gi}}
        containers:
        - {name: a}
        """,
        {"memory": 8 * GIB},
    ),
    "a request of 0 is none": (
        """
        containers:
        - {name: a, resources: {requests: {cpu: "1", nvidia.com/gpu: 0}}}
        """,
        {"cpu": 1000},
    ),
}


@pytest.mark.parametrize(("text", "counted"), COUNTED.values(), ids=COUNTED)
def test_requests_are_calculated_as_the_scheduler_does(text: str, counted: dict[str, int]) -> None:
    assert dict(shape_of(yaml.safe_load(text)).requests) == {**counted, "pods": 1000}


def test_an_invalid_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="'two' is not a quantity"):
        shape_of({"containers": [{"resources": {"requests": {"cpu": "two"}}}]})


POD = """
nodeSelector: {agentpool: gput4, zone: a}
tolerations:
- {key: sku, operator: Equal, value: gpu, effect: NoSchedule}
- {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
runtimeClassName: nvidia
priority: 100
resourceClaims:
- {name: gpu, resourceClaimTemplateName: one-gpu}
- {name: shared, resourceClaimName: theirs}
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 1, preference: {matchExpressions: [{key: x, operator: Exists}]}}
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: zone, operator: In, values: [b, a]}
        - {key: gen, operator: Gt, values: ["3"]}
containers:
- name: model
  image: vllm
  resources: {requests: {cpu: "3", memory: 12Gi}, limits: {nvidia.com/gpu: "1"}}
"""


def test_a_template_and_its_admitted_pod_have_one_shape() -> None:
    template = yaml.safe_load(POD)
    admitted = yaml.safe_load(POD)
    seconds = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    admitted["tolerations"] = [
        {"key": "node.kubernetes.io/not-ready", **seconds},
        {"key": "node.kubernetes.io/unreachable", **seconds},
        *reversed(template["tolerations"]),
    ]
    admitted["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    admitted["nodeName"] = "n1"
    assert shape_of(admitted) == shape_of(template)


def test_the_order_in_an_affinity_does_not_matter() -> None:
    one, other = yaml.safe_load(POD), yaml.safe_load(POD)
    required = other["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"][0]["matchExpressions"].reverse()
    required["nodeSelectorTerms"][0]["matchExpressions"][1]["values"] = ["a", "b"]
    assert key(shape_of(one)) == key(shape_of(other))


def test_claims_are_the_resource_claim_templates_of_a_pod() -> None:
    assert shape_of(yaml.safe_load(POD)).claims == ("one-gpu",)


def test_the_size_of_a_claim_is_unknown_from_a_pod_alone() -> None:
    assert gpus(shape_of(yaml.safe_load(POD))) is None


def test_a_pause_pod_does_not_repeat_the_runtime_class_of_an_admitted_pod() -> None:
    spec = {**yaml.safe_load(POD), "overhead": {"cpu": "100m"}}
    assert shape_of(spec).runtime_class == ""


def test_the_pause_pod_of_a_shape() -> None:
    spec = pod_spec(shape_of(yaml.safe_load(POD)))
    assert spec == {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"agentpool": "gput4", "zone": "a"},
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
        ],
        "runtimeClassName": "nvidia",
        "resourceClaims": [{"name": "claim-0", "resourceClaimTemplateName": "one-gpu"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "gen", "operator": "Gt", "values": ["3"]},
                                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                            ]
                        }
                    ]
                }
            }
        },
        "containers": [
            {
                "name": "headroom",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {
                    "requests": {"cpu": "3", "memory": "12288Mi", "nvidia.com/gpu": "1"},
                    "limits": {"nvidia.com/gpu": "1"},
                    "claims": [{"name": "claim-0"}],
                },
            }
        ],
    }


def test_huge_pages_have_a_limit() -> None:
    amounts = {"cpu": "1", "hugepages-2Mi": "5120Mi", "nvidia.com/gpu": "1"}
    spec = {"containers": [{"name": "a", "resources": {"requests": amounts, "limits": amounts}}]}
    (container,) = pod_spec(shape_of(spec))["containers"]
    assert container["resources"]["limits"] == {"hugepages-2Mi": "5120Mi", "nvidia.com/gpu": "1"}


def test_a_key_is_short_and_stable() -> None:
    assert key(shape_of(yaml.safe_load(POD))) == "e16e603de9"


names = st.text("abcz.-/", min_size=1, max_size=6)
amounts = st.integers(1, 10**6) | st.builds(
    int.__mul__, st.integers(1, 64), st.sampled_from((1000, GIB))
)
shapes = st.builds(
    Shape,
    requests=st.dictionaries(
        st.sampled_from(("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")), amounts
    ).map(lambda requests: tuple(sorted((requests | {"pods": 1000}).items()))),
    node_selector=st.dictionaries(names, names).map(lambda labels: tuple(sorted(labels.items()))),
    tolerations=st.sets(
        st.builds(
            Toleration,
            names,
            st.sampled_from(("Equal", "Exists")),
            st.sampled_from(("", "gpu")),
            st.sampled_from(("", "NoSchedule", "NoExecute")),
        )
    ).map(lambda tolerations: tuple(sorted(tolerations))),
    claims=st.lists(names, max_size=2).map(lambda claims: tuple(sorted(claims))),
    claim_devices=st.none(),
    runtime_class=st.sampled_from(("", "nvidia")),
)


@given(shapes)
def test_the_pause_pod_of_a_shape_has_that_shape(shape: Shape) -> None:
    made = shape_of(pod_spec(shape))
    assert key(made) == key(shape)


@given(shapes)
def test_a_pause_pod_does_not_depend_on_the_spelling_of_its_spec(shape: Shape) -> None:
    spec: dict[str, Any] = pod_spec(shape)
    spec["tolerations"] = list(reversed(spec.get("tolerations", [])))
    spec["nodeSelector"] = dict(reversed(spec.get("nodeSelector", {}).items()))
    assert key(shape_of(spec)) == key(shape)
