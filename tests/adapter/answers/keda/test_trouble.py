"""Causes of ScaledObjects: each situation of a public report has its cause and its fix."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from adapter.answers.causes import CauseCode
from adapter.answers.keda.manifest import read_scaledobject
from adapter.answers.keda.trouble import ScaledFacts, SeenScaler, causes_of_scaled, host_of
from adapter.pipeline.cluster.objects import SeenEvent, read

Json = dict[str, Any]
NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
NOT: Final = "ScaledObject doesn't have correct {} specification"  # prose: ignore
RIGHT: Final = "gpu-metrics-adapter.gpu-metrics:6000"
READY: Final = {"type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": ""}
HPA: Final[Json] = {"spec": {"metrics": [{"type": "External", "external": {}}]}}
CPU: Final[Json] = {"spec": {"metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]}}
GOOD: Final = SeenScaler((6000,), 1)


def ago(seconds: float) -> str:
    """A time before now, in RFC 3339."""
    return datetime.fromtimestamp(NOW - seconds, UTC).isoformat()


def failed(message: str, reason: str = "ScaledObjectCheckFailed") -> Json:
    """What KEDA writes about a ScaledObject that is not valid."""
    return {"type": "Ready", "status": "False", "reason": reason, "message": message}


def scaled(*conditions: Json, address: str = RIGHT, seconds: float = 3600, **more: Any) -> Any:
    """A ScaledObject with one trigger for the adapter."""
    metadata = {more.pop("key", "scalerAddress"): address}
    trigger = {"type": more.pop("type", "external"), "metadata": metadata}
    meta = {"name": "llm", "namespace": "chat", "creationTimestamp": ago(seconds), **more}
    spec = {"scaleTargetRef": {"name": "llm"}, "triggers": [trigger]}
    status = {"conditions": list(conditions)} if conditions else {}
    return read_scaledobject({"metadata": meta, "spec": spec, "status": status})


def fails(message: str, seconds: float = 20) -> SeenEvent:
    """An event about a scaler."""
    row = {"reason": "KEDAScalerFailed", "message": message, "type": "Warning"}
    return read({**row, "lastTimestamp": ago(seconds)}, SeenEvent)


def facts(of: Any, hpa: Json | None = None, **more: Any) -> ScaledFacts:
    """What is around a ScaledObject."""
    return ScaledFacts(NOW, of, hpa, **more)


def said(text: str, **more: Any) -> ScaledFacts:
    """A ScaledObject whose scaler fails with a message."""
    return facts(scaled(READY), HPA, events=[fails(text)], services={RIGHT: GOOD}, **more)


def at(address: str, service: SeenScaler) -> ScaledFacts:
    """A ScaledObject with an address, and the Service of it."""
    return facts(scaled(READY, address=address), HPA, services={address: service})


FOUND: Final[dict[str, tuple[ScaledFacts, tuple[str, ...]]]] = {
    "paused": (
        facts(scaled(READY, annotations={"autoscaling.keda.sh/paused": "true"})),
        ("is paused by an annotation", "edit scaledobjects.keda.sh llm"),
    ),
    "no operator": (
        facts(scaled()),
        ("KEDA's operator has not looked at it for 60m", "keda-operator runs"),
    ),
    "no target": (
        facts(scaled(failed(NOT.format("scaleTargetRef"))), target=False),
        ("there is no Deployment llm in the namespace", "create the workload"),
    ),
    "not valid": (
        facts(scaled(failed(NOT.format("triggers")))),
        ("is not ready, and has made no HPA", "correct spec.triggers"),
    ),
    "two on one target by its webhook": (
        facts(scaled(failed("the workload 'llm' is already managed by the hpa 'llm'"))),
        ("keep one ScaledObject or HPA for each workload",),
    ),
    "two on one target": (
        facts(scaled(READY), HPA, rivals=["ScaledObject other"]),
        ("ScaledObject other scales Deployment llm too", "get scaledobjects,hpa"),
    ),
    "a fallback": (
        facts(
            scaled(READY, {"type": "Fallback", "status": "True", "reason": "FallbackExists"}),
            HPA,
            events=[fails("dial tcp 10.0.0.9:6000: connect: connection refused")],
        ),
        ("uses its fallback", "connection refused", f"scalerAddress is {RIGHT}"),
    ),
    "an address without a namespace": (
        at("gpu-metrics-adapter:6000", SeenScaler()),
        ("it names no namespace: KEDA looks for Service gpu-metrics-adapter in its own",),
    ),
    "an address of no service": (
        at("gpu-metrics-adapter.wrong:6000", SeenScaler()),
        ("there is no Service wrong/gpu-metrics-adapter",),
    ),
    "a wrong port": (
        at("gpu-metrics-adapter.gpu-metrics:443", SeenScaler((443, 6000), 1)),
        ("is 6000 (it has 443, 6000)", f'scalerAddress to "{RIGHT}"', "patch scaledobj"),
    ),
    "a scaler that is off": (
        at(RIGHT, SeenScaler((443,), 1)),
        ("turn on keda.enabled of the adapter",),
    ),
    "no pods behind the service": (
        at(RIGHT, SeenScaler((6000,), 0)),
        ("no pod of Service gpu-metrics/gpu-metrics-adapter is ready",),
    ),
    "no such host": (
        said("produced zero addresses"),
        ("correct the host of the address", "scalerAddress is"),
    ),
    "encryption on one side": (
        said("tls: first record does not look like a TLS handshake"),
        ('set enableTLS to "false"', f"scalerAddress is {RIGHT}"),
    ),
    "encryption on the other side": (
        said("error reading server preface: EOF"),
        ('set enableTLS to "true"',),
    ),
    "a store that does not exist": (
        facts(
            scaled(READY, type="prometheus", key="serverAddress", address="http://prom.x:9090"),
            HPA,
            events=[fails("dial tcp: lookup prom.x: no such host")],
        ),
        ("serverAddress is http://prom.x:9090",),
    ),
    "a certificate of another CA": (said("x509: certificate signed by unknown"), ("caCert",)),
    "a network policy": (
        facts(
            scaled(READY),
            HPA,
            events=[fails("rpc error: code = DeadlineExceeded desc = context deadline exceeded")],
            services={RIGHT: SeenScaler((6000,), 1, ("deny-all",))},
        ),
        ("admit the pods of KEDA to the scaler's port", "NetworkPolicy deny-all may do so"),
    ),
    "a metrics server without its operator": (
        facts(scaled(READY), HPA, problem="dial tcp: lookup keda-operator.keda: refused"),
        ("does not reach keda-operator",),
    ),
    "the default metric": (
        facts(scaled(READY), CPU),
        ("80 % of CPU", "kubectl -n chat delete hpa keda-hpa-llm"),
    ),
    "an HPA that somebody deleted": (
        facts(scaled(READY)),
        ("its HPA keda-hpa-llm does not exist",),
    ),
}
NONE: Final[dict[str, ScaledFacts]] = {
    "all is well": facts(scaled(READY), HPA, services={RIGHT: GOOD}),
    "a new one": facts(scaled(seconds=5), HPA),
    "a new one, whose HPA does not exist yet": facts(scaled(READY, seconds=5)),
    "an old failure": facts(scaled(READY), HPA, events=[fails("connection refused", 7200)]),
    "a trigger of cpu": facts(scaled(READY, type="cpu"), CPU),
    "an address outside the cluster": at("10.0.0.9:6000", GOOD),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_situation_has_its_cause(name: str) -> None:
    around, words = FOUND[name]
    (cause,) = causes_of_scaled(around)
    assert cause.code is CauseCode.SCALED_OBJECT
    assert cause.subject == "scaledobject chat/llm"
    text = f"{cause.text}; {cause.fix}; {cause.command}"
    assert [part for part in words if part not in text] == [], text
    assert shlex.split(cause.command)[0] == "kubectl"
    assert not cause.text.endswith(".")


@pytest.mark.parametrize("name", NONE)
def test_a_healthy_situation_has_no_cause(name: str) -> None:
    assert causes_of_scaled(NONE[name]) == []


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("a.b:6000", ("a", "b", 6000)),
        ("a.b.svc.cluster.local:6000", ("a", "b", 6000)),
        ("a:6000", ("a", "", 6000)),
        ("a.b", ("a", "b", None)),
        ("scaler.example.com:443", ("", "", None)),
        ("http://a.b:6000", ("", "", None)),
        ("https://outside.example", ("", "", None)),
        ("a.b:\u00b2", ("", "", None)),
    ],
)
def test_an_address_names_a_service(address: str, found: tuple[str, str, int | None]) -> None:
    assert host_of(address) == found


def test_a_scaledobject_of_megabytes_has_few_causes_in_short_texts() -> None:
    """It may have as many triggers and rivals as fit in an object of the API server."""
    many = 5_000
    manifest = {
        "metadata": {"name": "llm", "namespace": "chat", "creationTimestamp": ago(3600)},
        "spec": {
            "scaleTargetRef": {"name": "llm"},
            "triggers": [
                {"type": "external", "metadata": {"scalerAddress": f"127.0.0.1:{number}"}}
                for number in range(many)
            ],
        },
        "status": {"conditions": [failed("it is wrong")] * many},
    }
    rivals = [f"HPA h{number}" for number in range(many)]
    causes = causes_of_scaled(facts(read_scaledobject(manifest), rivals=rivals))
    assert sum(len(cause.text) + len(cause.fix) for cause in causes) < 10_000
    assert causes[-1].text.endswith(f"; {many + 2 - len(causes)} more causes")
