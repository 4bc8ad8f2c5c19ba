"""``generate``: every manifest passes the checks of ``doctor``, and asks for metrics that exist."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import yaml

from adapter.answers.keda.trigger import compile_trigger
from adapter.hpa import MetricKind, from_manifest
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.optin import PREFIX
from adapter.tools.doctor import manifestfiles
from adapter.tools.generate.manifests import API_VERSIONS
from adapter.tools.generate.presets import PRESETS
from tests.adapter.commandline import invoke

METRICS = Catalog().metrics


def generated(*arguments: str) -> str:
    ended = invoke("generate", *arguments)
    assert ended.code == 0, ended.output
    return ended.output


def manifest(*arguments: str) -> dict[str, Any]:
    (document,) = yaml.safe_load_all(generated(*arguments))
    assert isinstance(document, dict)
    return document


def _combinations() -> Iterator[tuple[str, ...]]:
    """Every value of each option, beside every kind of server."""
    for server, kind in product(PRESETS, API_VERSIONS):
        yield ("hpa", "--for", server, "--workload", "llm", "--kind", kind)
    more: dict[str, list[tuple[str, ...]]] = {
        "hpa": [("-n", "chat"), ("--min", "2", "--max", "16"), ("--target", "60")],
        "scaledobject": [("-n", "chat"), ("--target", "12"), ("--pods", "app=a,tier!=b")],
    }
    more["hpa"].append(("--gateway", "llm-epp"))
    more["hpa"].append(("--min", "0", "--gateway", "llm-epp"))
    more["scaledobject"].append(("--kind", "LeaderWorkerSet"))
    more["scaledobject"].append(("--min", "0", "--gateway", "app=llm-epp"))
    for (command, rows), server in product(more.items(), PRESETS):
        for row in rows:
            yield (command, "--for", server, "--workload", "llm", *row)

    for command in more:
        for server in ("vllm", "sglang", "nim", "dynamo"):
            row = ("--ttft", "1s", "--itl", "50ms", "--target", "0.7")
            yield (command, "--for", server, "--workload", "llm", *row)
    yield ("hpa", "--for", "vllm", "--workload", "llm", "--kind", "LeaderWorkerSet", "--e2e", "9s")


COMBINATIONS = {" ".join(words): words for words in _combinations()}


@pytest.mark.parametrize("arguments", COMBINATIONS.values(), ids=COMBINATIONS)
def test_every_manifest_passes_doctor(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = generated(*arguments)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    ended = invoke("doctor", "-f", "-")
    assert ended.code == 0, ended.output
    assert "0 errors, 0 warnings" in ended.output
    document = yaml.safe_load(text)
    if document["kind"] == "HorizontalPodAutoscaler":
        assert len(from_manifest(document).metrics) == len(document["spec"]["metrics"])
    for trigger in document["spec"].get("triggers", ()):
        compiled = compile_trigger(trigger["metadata"], METRICS)
        assert compiled.pods is not None
    assert all(len(line) <= 100 for line in text.splitlines())


def test_doctor_finds_what_is_wrong_in_a_manifest_on_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = generated("hpa", "--for", "vllm", "--workload", "llm")
    wrong = text.replace("inference_requests_running", "inference_request_running")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(wrong.encode())))
    ended = invoke("doctor", "-f", "-")
    assert ended.code == 1
    assert "did you mean inference_requests_running?" in " ".join(ended.output.split())


def test_doctor_finds_a_trigger_with_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    text = generated("scaledobject", "--for", "vllm", "--workload", "llm")
    wrong = text.replace('podSelector: "app', 'podSelektor: "app', 1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(wrong.encode())))
    ended = invoke("doctor", "-f", "-")
    assert ended.code == 1
    output = " ".join(ended.output.split())
    assert "scaledobject default/llm in -: spec.triggers[0].metadata: podSelektor" in output
    assert "podSelektor" in output


def test_doctor_leaves_out_a_standard_input_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manifestfiles, "MOST_BYTES", 10)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: " + b"b" * 20)))
    ended = invoke("doctor", "-f", "-")
    assert ended.code == 2
    assert "larger than 10 bytes" in ended.output


def test_the_target_is_of_the_metric_that_follows_the_load() -> None:
    rows = manifest("hpa", "--for", "vllm", "--workload", "llm", "--target", "48")["spec"][
        "metrics"
    ]
    targets = {row["pods"]["metric"]["name"]: row["pods"]["target"] for row in rows}
    assert targets["inference_requests_running"] == {"type": "AverageValue", "averageValue": "48"}
    assert targets["inference_requests_waiting"]["averageValue"] == "4"


@pytest.mark.parametrize("server", PRESETS)
def test_the_queue_is_never_alone_and_the_page_is_named(server: str) -> None:
    text = generated("hpa", "--for", server, "--workload", "llm")
    names = [row["pods"]["metric"]["name"] for row in yaml.safe_load(text)["spec"]["metrics"]]
    assert names[0] in ("inference_requests_running", "gpu_utilization")
    kind = PRESETS[server].server
    assert (f'{PREFIX}port: "{kind.port}"' in text) if kind else (PREFIX not in text)
    assert (kind is not None and kind.path != "/metrics") is (f"{PREFIX}path" in text)


def test_a_workload_at_zero_is_started_by_the_gateway_first() -> None:
    document = manifest(
        *("scaledobject", "--for", "vllm", "--workload", "llm", "--min", "0"),
        *("--gateway", "app=llm-epp", "--scaler-address", "gma.gpu.svc:6000"),
    )
    first, *others = document["spec"]["triggers"]
    assert (first["type"], first["metadata"]["podSelector"]) == ("external-push", "app=llm-epp")
    assert first["metadata"]["metric"] == "inference_gateway_requests_waiting"
    assert {trigger["metadata"]["podSelector"] for trigger in others} == {"app=llm"}
    assert {trigger["metadata"]["scalerAddress"] for trigger in document["spec"]["triggers"]} == {
        "gma.gpu.svc:6000"
    }


def test_a_group_of_pods_counts_with_all_its_pods() -> None:
    """The HPA controller selects only the leaders of a LeaderWorkerSet."""
    lws = ("--for", "gpu", "--workload", "llm", "--kind", "LeaderWorkerSet")
    (metric,) = manifest("hpa", *lws)["spec"]["metrics"]
    assert metric["object"]["describedObject"] == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "name": "llm",
    }
    assert metric["object"]["target"] == {"type": "Value", "value": "70"}
    (trigger,) = manifest("scaledobject", *lws)["spec"]["triggers"]
    assert (trigger["metricType"], trigger["metadata"]["aggregate"]) == ("Value", "mean")
    rows = manifest("hpa", "--for", "vllm", *lws[2:])["spec"]["metrics"]
    assert {row["type"] for row in rows} == {"Pods"}, "the leader answers for its group"


def test_an_hpa_at_zero_is_started_by_the_gateway_and_says_what_it_needs() -> None:
    text = generated(*HPA, "--min", "0", "--gateway", "llm-epp")
    spec = from_manifest(yaml.safe_load(text))
    assert (spec.min_replicas, spec.metrics[-1].kind) == (0, MetricKind.OBJECT)
    assert "Kubernetes 1.37" in text
    assert "HPAScaleToZero" not in generated(*HPA)


HPA = ("hpa", "--for", "vllm", "--workload", "llm")
OBJECT = ("scaledobject", "--for", "vllm", "--workload", "llm")
WRONG = {
    "an unknown server": (("hpa", "--for", "vlm", "--workload", "a"), "did you mean vllm?"),
    "no server like it": (("hpa", "--for", "xyz", "--workload", "a"), "is not one of"),
    "no workload": (("hpa", "--for", "vllm"), "--workload"),
    "a name that is none": (("hpa", "--for", "vllm", "--workload", "a b: c"), "lower-case"),
    "a kind in other letters": ((*HPA, "--kind", "statefullset"), "did you mean StatefulSet?"),
    "a kind that is none": ((*HPA, "--kind", "a b", "--api-version", "v1"), "write a kind"),
    "an API version": ((*HPA, "--kind", "Foo", "--api-version", "1 2"), "write GROUP/VERSION"),
    "a target of 0": ((*HPA, "--target", "0"), "above 0"),
    "a negative target": ((*HPA, "--target", "-5"), "above 0"),
    "a target that is a word": ((*HPA, "--target", "many"), "above 0"),
    "a ratio for a percentage": (
        ("hpa", "--for", "gpu", "--workload", "a", "--target", "0.7"),
        "gpu_utilization is in percent",
    ),
    "no room": ((*HPA, "--min", "3", "--max", "3"), "nothing scales"),
    "an HPA at 0 without a gateway": ((*HPA, "--min", "0"), "--min 0 needs --gateway"),
    "zero without a gateway": ((*OBJECT, "--min", "0"), "--min 0 needs --gateway"),
    "a selector": ((*OBJECT, "--pods", "app=a,,"), "--pods"),
    "an address": ((*OBJECT, "--scaler-address", "a b"), "write HOST:PORT"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_one_line_that_names_the_fix(arguments: tuple[str, ...], said: str) -> None:
    ended = invoke("generate", *arguments)
    assert ended.code == 2
    assert said in " ".join(ended.output.split())
    assert "Traceback" not in ended.output


def test_another_kind_needs_its_version_only() -> None:
    dynamo = "DynamoGraphDeploymentScalingAdapter"
    document = manifest(*HPA, "--kind", dynamo, "--api-version", "nvidia.com/v1alpha1")
    assert document["spec"]["scaleTargetRef"]["kind"] == dynamo
    assert manifest(*HPA, "--kind", "deployment")["spec"]["scaleTargetRef"]["kind"] == "Deployment"


@pytest.mark.parametrize("name", ["123", "1e3", "true", "null", "on", "y", "0x1f"])
def test_a_name_that_yaml_reads_as_something_else_stays_a_name(name: str) -> None:
    done = invoke("generate", "hpa", "--for", "vllm", "--workload", name, "-n", name)
    assert f'  name: "{name}"\n' in done.output
    manifest = yaml.safe_load(done.output)
    assert manifest["metadata"] == {"name": name, "namespace": name}
    assert manifest["spec"]["scaleTargetRef"]["name"] == name


def test_a_promise_replaces_the_metrics_of_the_server() -> None:
    row = ("--for", "vllm", "--workload", "llm", "--ttft", "1s", "--itl", "50ms")
    (metric,) = manifest("hpa", *row)["spec"]["metrics"]
    assert metric["pods"] == {
        "metric": {
            "name": "inference_slo_ratio",
            "selector": {"matchLabels": {"ttft_p90": "1s", "itl_p90": "50ms"}},
        },
        "target": {"type": "AverageValue", "averageValue": "0.5"},
    }
    (trigger,) = manifest("scaledobject", *row)["spec"]["triggers"]
    compiled = compile_trigger(trigger["metadata"], METRICS)
    assert (compiled.metric, compiled.target) == ("inference_slo_ratio", 0.5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--for", "vllm", "--ttft", "soon"), "--ttft: 'soon' is not a duration"),
        (("--for", "vllm", "--itl", "50"), "--itl: '50' has no unit: write 50s or 50ms"),
        (("--for", "tei", "--ttft", "1s"), "--ttft: tei has no histogram of it; use --e2e"),
        (("--for", "gpu", "--e2e", "1s"), "--e2e: gpu has no histogram of it; leave it out"),
        (("--for", "vllm", "--ttft", "1s", "--target", "70"), "--target 70"),
    ],
)
def test_a_promise_that_cannot_be_kept_or_meant_is_refused(
    arguments: tuple[str, ...], error: str
) -> None:
    ended = invoke("generate", "hpa", "--workload", "llm", *arguments)
    assert ended.code == 2
    assert error in ended.output
