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
HOST: Final = "gpu-metrics-adapter.gpu-metrics"
STORE: Final = "serverAddress"
RIGHT: Final = "gpu-metrics-adapter.gpu-metrics:6000"
READY: Final = {"type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": ""}
HPA: Final[Json] = {"spec": {"metrics": [{"type": "External", "external": {}}]}}
CPU: Final[Json] = {"spec": {"metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]}}
FORBIDDEN: Final = 'deployments.apps "llm" is forbidden: User "keda" cannot update "scale"'
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
    spec = {"scaleTargetRef": {"name": "llm"}, "triggers": [trigger], "minReplicaCount": 1}
    status = {"conditions": list(conditions)} if conditions else {}
    return read_scaledobject({"metadata": meta, "spec": spec, "status": status})


def fails(message: str, seconds: float = 20, reason: str = "KEDAScalerFailed") -> SeenEvent:
    """An event about a scaler, or about the target."""
    row = {"reason": reason, "message": message, "type": "Warning"}
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


def stored(address: str, service: SeenScaler | None) -> ScaledFacts:
    """A ScaledObject that asks a Prometheus, of which KEDA says less than it knows."""
    message = f'error parsing prometheus: Get "{address}/api/v1/query?query=sum%28a'
    of = scaled(failed(message, "TriggerError"), address=address, type="prometheus", key=STORE)
    return facts(of, services={} if service is None else {address: service})


FOUND: Final[dict[str, tuple[ScaledFacts, tuple[str, ...]]]] = {
    "a target of 0": (  # kedacore/keda issue 5857
        facts(
            scaled(
                failed(
                    'HorizontalPodAutoscaler.autoscaling "keda-hpa-llm" is invalid: spec.metrics[0]'
                    '.external.target.averageValue: Invalid value: "0": must be positive'
                )
            )
        ),
        ("must be positive", "give each trigger a target above 0"),
    ),
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
    "a target that KEDA may not scale": (
        facts(
            scaled(failed(f"error activating ScaleTarget: {FORBIDDEN}", "ErrorScalingTarget")),
            HPA,
        ),
        (
            f"is not ready: ErrorScalingTarget: error activating ScaleTarget: {FORBIDDEN}",
            "let keda-operator change the size of the target",
            "describe scaledobject llm",
        ),
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
    "a wrong port, of a service without that of KEDA": (
        at("gpu-metrics-adapter.gpu-metrics:443", SeenScaler((443,), 1)),
        ("which names port 443, and KEDA's port is 6000", f'scalerAddress to "{RIGHT}"'),
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
    "a proxy before the scaler": (
        said("transport: failed to do connect handshake, response: HTTP/1.1 403 Forbidden"),
        ("an HTTP proxy of keda-operator answers", "NO_PROXY"),
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
    "a store of no service, in a message that is cut off": (
        stored("http://prom.mon.svc:9090", SeenScaler()),
        ("there is no Service mon/prom", "http://SERVICE.NAMESPACE.svc:PORT"),
    ),
    "a store at a wrong port, in a message that is cut off": (
        stored("http://prom.mon.svc.cluster.local/prom", SeenScaler((9090,), 1)),
        ("Service mon/prom has no such port (it has 9090)", "correct the port"),
    ),
    "a store that does not run, in a message that is cut off": (
        stored("http://prom.mon.svc:9090", SeenScaler((9090,), 0)),
        ("no pod of Service mon/prom is ready",),
    ),
    "a store outside, in a message that is cut off": (
        stored("https://prom.example.com", None),
        ("is not ready", "see what answers at spec.triggers[0].metadata.serverAddress, https://p"),
    ),
    "a wrong port, of which KEDA complains too": (
        facts(
            scaled(failed("rpc error: desc = error reading"), address=f"{HOST}:443"),
            events=[fails("unexpected HTTP status code received")],
            services={f"{HOST}:443": SeenScaler((443, 6000), 1)},
        ),
        ("is 6000 (it has 443, 6000)", "patch scaledobj"),
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


ADDRESSES: Final = frozenset(
    name
    for name in FOUND
    if name.startswith(("an address ", "a wrong port", "a store at", "a store of", "no pods"))
    or name in ("a scaler that is off", "a store that does not run, in a message that is cut off")
)
"""Situations in which the address of a trigger is at fault."""


@pytest.mark.parametrize("name", FOUND)
def test_a_situation_has_its_cause(name: str) -> None:
    around, words = FOUND[name]
    (cause,) = causes_of_scaled(around)
    assert cause.code is (
        CauseCode.SCALER_ADDRESS if name in ADDRESSES else CauseCode.SCALED_OBJECT
    )
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
        ("scaler.example.com:443", ("", "", 443)),
        ("http://a.b:6000", ("a", "b", 6000)),
        ("https://a.b.svc/prom", ("a", "b", 443)),
        ("https://outside.example.com", ("", "", 443)),
        ("a.b:\u00b2", ("a", "b", None)),
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
    assert len(causes) == 8
    assert causes[-1].text.endswith(f"; {many + 1 - len(causes)} more causes")


def test_an_api_server_that_is_slow_to_scale_the_target_is_not_a_scaler_that_is_silent() -> None:
    """From 2.21 on, KEDA's event has the error."""
    text = "Failed to scale Deployment chat/llm from 0 to 1: context deadline exceeded"
    slow = fails(text, reason="KEDAScaleTargetActivationFailed")
    assert causes_of_scaled(facts(scaled(READY), HPA, events=[slow], services={RIGHT: GOOD})) == []
    late = "error activating ScaleTarget: context deadline exceeded"
    unready = scaled(failed(late, "ErrorScalingTarget"))
    (cause,) = causes_of_scaled(facts(unready, HPA, events=[slow], services={RIGHT: GOOD}))
    assert "rights to update the subresource scale" in cause.fix
    assert "scalerAddress" not in cause.text
