"""HPAs that the API server accepts or refuses, each with the words about the key that is wrong.

``tests/e2e/test_hpa_validity.py`` asks the real API server about each of them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Judged(NamedTuple):
    """A manifest, and what is said of it."""

    manifest: dict[str, Any]
    words: str = ""
    """A part of the message; empty if it is valid."""
    stored: bool = False
    """Whether the API server accepts it although the controller cannot use it."""


def metric(
    kind: str = "Pods", target: dict[str, Any] | None = None, name: str = "m", **more: Any
) -> dict[str, Any]:
    """A metric of type Pods, Object or External."""
    source = {"metric": {"name": name}, "target": target or {"type": "AverageValue"}}
    if kind == "Object":
        source["describedObject"] = {"apiVersion": "v1", "kind": "Service", "name": "llm"}
    return {"type": kind, kind.lower(): source | more}


def resource(name: str = "cpu", container: str = "", **target: Any) -> dict[str, Any]:
    """A Resource metric, or a ContainerResource metric of a container."""
    source = {"name": name, "target": {"type": "Utilization"} | target}
    if not container:
        return {"type": "Resource", "resource": source}
    return {"type": "ContainerResource", "containerResource": source | {"container": container}}


def judged(words: str = "", *metrics: Any, stored: bool = False, **spec: Any) -> Judged:
    """An HPA with these metrics and fields; None removes one."""
    whole = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
        "maxReplicas": 3,
        "metrics": list(metrics),
    } | spec
    kept = {key: value for key, value in whole.items() if value is not None}
    return Judged({**OF, "metadata": {"name": "llm"}, "spec": kept}, words, stored)


def named(words: str, **meta: Any) -> Judged:
    """An HPA with these fields of its metadata."""
    return judged(words)._replace(manifest=judged().manifest | {"metadata": {"name": "llm"} | meta})


def target(**row: Any) -> dict[str, Any]:
    """A target; its type is AverageValue."""
    return {"type": "AverageValue"} | row


def on(**reference: Any) -> dict[str, Any]:
    """A scale target with fields replaced, or removed by None."""
    row = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"} | reference
    return {key: value for key, value in row.items() if value is not None}


OF: Final = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
GOOD: Final = target(averageValue="70")
UTILIZATION: Final = {"type": "Utilization", "averageUtilization": 80}
A_SELECTOR: Final = {"name": "m", "selector": {"matchLabels": {"modelName": "NVIDIA A100"}}}
JUDGED: Final[dict[str, Judged]] = {
    "without metrics": judged(metrics=None),
    "an empty list of metrics": judged(),
    "metrics that are a mapping": judged("spec.metrics is not a list", metrics={}),
    "a metric": judged("", metric(target=GOOD)),
    "a target of pods with another type": judged("", metric(target=GOOD | {"type": "Utilization"})),
    "a target of pods with a value too": judged("", metric(target=GOOD | {"value": "1"})),
    "a share of pods": judged(
        "metrics[0].pods.target.averageValue is missing: give a quantity above 0, and type "
        "AverageValue",
        metric(target=UTILIZATION),
    ),
    "a value of pods": judged(
        "pods.target.averageValue is missing", metric(target={"type": "Value", "value": "1"})
    ),
    "a share of an external metric": judged(
        "external.target.averageValue is missing", metric("External", UTILIZATION)
    ),
    "an external metric without a number": judged(
        "external.target.value is missing", metric("External", {"type": "Value"})
    ),
    "an external average of type Utilization": judged(
        "", metric("External", GOOD | {"type": "Utilization"})
    ),
    "an object's share": judged(
        "object.target.type is Utilization: use AverageValue, or Value",
        metric("Object", {"type": "Utilization", "value": "1"}),
        stored=True,
    ),
    "an object's value in another field": judged(
        "object.target.value is missing",
        metric("Object", {"type": "Value", "averageValue": "1"}),
        stored=True,
    ),
    "a target without a type": judged("target.type is None", metric(target={"averageValue": "70"})),
    "a value of 0 beside": judged("target.value is 0", metric(target=GOOD | {"value": "0"})),
    "a share of 0 beside": judged(
        "averageUtilization is 0", metric(target=GOOD | {"averageUtilization": 0})
    ),
    "a percentage": judged("averageValue is '80%'", metric(target=target(averageValue="80%"))),
    "a slash in a name": judged(
        "name is 'kubernetes.io/duty_cycle': the API server allows no '/' in it; metrics of "
        "Google Cloud Monitoring have | for it",
        metric("External", GOOD, "kubernetes.io/duty_cycle"),
    ),
    "a percent sign in a name": judged("allows no '%' in it", metric(target=GOOD, name="a%")),
    "two dots as a name": judged("allows no '..' in it", metric(target=GOOD, name="..")),
    "two sources": judged(
        "spec.metrics[1] has pods and resource: keep one",
        metric(target=GOOD),
        metric(target=GOOD) | {"resource": {"name": "cpu", "target": UTILIZATION}},
    ),
    "a source of another type": judged(
        "spec.metrics[0].pods is missing", metric("External", GOOD) | {"type": "Pods"}
    ),
    "a selector that is none": judged("", metric(target=GOOD, metric=A_SELECTOR)),
    "a number as a label": judged(
        "selector.matchLabels.gen is 3, which is not a string: put it in quotes",
        metric(target=GOOD, metric={"name": "m", "selector": {"matchLabels": {"gen": 3}}}),
    ),
    "a null in a selector": judged(
        "", metric(target=GOOD, metric={"name": "m", "selector": {"matchLabels": {"gen": None}}})
    ),
    "a null as a label": named("", labels={"app.kubernetes.io/version": None}),
    "an expression that is a text": judged(
        "matchExpressions[0] is not an expression",
        metric(target=GOOD, metric={"name": "m", "selector": {"matchExpressions": ["a"]}}),
    ),
    "a resource": judged("", resource(averageUtilization=80)),
    "a resource that nobody measures": judged("", resource("gpu", averageUtilization=80)),
    "a resource by an old name of the field": judged(
        "resource.target.averageUtilization is missing", resource(targetAverageUtilization=70)
    ),
    "a resource with a share of 0": judged(
        "averageUtilization is 0", resource(averageUtilization=0)
    ),
    "a resource with an amount of 0": judged(
        "averageValue is 0: give a quantity above 0", resource(averageValue="0")
    ),
    "a resource with two targets": judged(
        "sets averageUtilization and averageValue: keep one",
        resource(averageUtilization=80, averageValue="1"),
    ),
    "a container's resource": judged("", resource("memory", "server", averageUtilization=80)),
    "a container's device": judged("", resource("nvidia.com/gpu", "server", averageValue="1")),
    "a container's resource that no container has": judged(
        "containerResource.name is 'gpu': containers have no such resource",
        resource("gpu", "server", averageUtilization=80),
    ),
    "a container's name with capitals": judged(
        "container is 'Server'", resource("cpu", "Server", averageUtilization=80)
    ),
    "no scale target": judged("spec.scaleTargetRef is missing", scaleTargetRef=None),
    "a target without a name": judged(
        "scaleTargetRef.name is missing", scaleTargetRef=on(name=None)
    ),
    "a target without a kind": judged("scaleTargetRef.kind is missing", scaleTargetRef=on(kind="")),
    "a target with a slash": judged("allows no '/'", scaleTargetRef=on(name="apps/llm")),
    "a target without a version": judged(
        "apiVersion is '': give the API group of Deployment too, as in apps/v1",
        scaleTargetRef=on(apiVersion=None),
    ),
    "a target without a group": judged("apiVersion is 'v1'", scaleTargetRef=on(apiVersion="v1")),
    "a target of the core API": judged(
        "", scaleTargetRef=on(apiVersion="v1", kind="ReplicationController")
    ),
    "a version of three parts": judged(
        "apiVersion is 'a/b/c'", scaleTargetRef=on(apiVersion="a/b/c")
    ),
    "more than the maximum": judged("is less than spec.minReplicas 9", minReplicas=9),
    "a name with an underscore": named("metadata.name is 'my_hpa'", name="my_hpa"),
    "a label with a space": named(
        "metadata.labels.model is 'Llama 3'", labels={"model": "Llama 3"}
    ),
    "a label that is a number": named("metadata.labels.gen is 3", labels={"gen": 3}),
    "a policy of nothing": judged(
        "scaleUp.policies is empty", behavior={"scaleUp": {"policies": []}}
    ),
}
