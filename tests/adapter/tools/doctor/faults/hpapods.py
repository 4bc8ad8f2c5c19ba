"""Faults of the pods that HPAs want (GMA431 to GMA444): the situations of the causes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from adapter.answers.causes import CauseCode
from adapter.pipeline.cluster.workloadobjects import SeenWorkload, read_workload
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.scalers import read_hpa
from tests.adapter.answers.causes.scene import NS, Scene
from tests.adapter.answers.causes.situations import FOUND
from tests.adapter.tools.doctor.clean import apiservice, clean
from tests.adapter.tools.doctor.faults.register import fault

CHECKS: Final = {
    CauseCode.QUOTA: "GMA431",
    CauseCode.POD_SECURITY: "GMA432",
    CauseCode.ADMISSION: "GMA432",
    CauseCode.CRASH_LOOP: "GMA433",
    CauseCode.OUT_OF_MEMORY: "GMA434",
    CauseCode.IMAGE_PULL: "GMA435",
    CauseCode.CONTAINER_CONFIG: "GMA436",
    CauseCode.NEVER_READY: "GMA437",
    CauseCode.TAINT: "GMA438",
    CauseCode.UNSCHEDULABLE: "GMA438",
    CauseCode.SCHEDULING_GATE: "GMA438",
    CauseCode.ROLLOUT: "GMA439",
    CauseCode.DEVICE_UNHEALTHY: "GMA440",
    CauseCode.DEVICE_TAINT: "GMA440",
    CauseCode.FOREIGN_PODS: "GMA441",
    CauseCode.REPLICAS_RESET: "GMA442",
    CauseCode.CONTROLLER_STOPPED: "GMA443",
    CauseCode.METRICS_API_MISSING: "GMA444",
    CauseCode.METRICS_API_DOWN: "GMA444",
    CauseCode.METRICS_API_TAKEN: "GMA444",
    CauseCode.GPUS_UNAVAILABLE: "GMA012",
    CauseCode.WRONG_NAMESPACE: "GMA421",
}
"""Code -> the check that finds it."""
UNSEEN: Final = frozenset(
    {
        "an-adapter-that-does-not-answer",
        "custom-metrics-of-another-program",
        "external-metrics-of-keda-that-the-adapter-does-not-ask-for",
        "external-metrics-of-the-adapter-that-another-program-serves",
    }
)
"""Situations that only an HPA's own reads show; GMA006 to GMA008 find the adapter's."""


def facts_of(scene: Scene) -> Facts:
    """The facts of a clean cluster, and those of a situation in the place of its workloads."""
    facts, around = clean(), scene.cluster()
    facts.now = around.now
    inner = [row for row in around.workloads if row.kind == "ReplicaSet"]
    facts.workloads = Fact([row for row in around.workloads if row not in inner] + _moved(scene))
    facts.replicasets = Fact(inner)
    facts.pods = Fact(around.pods)
    facts.events = Fact(around.events)
    facts.node_claims = Fact(around.claims)
    facts.slices = Fact(around.slices)
    facts.hpas = Fact([read_hpa(scene.hpa)])
    facts.controller_seen = Fact(around.controller_seen)
    if around.nodes is not None:
        facts.nodes = Fact(around.nodes)
    if around.apiservices is not None:
        facts.apiservices = Fact(list(around.apiservices.values()))
    return facts


def _moved(scene: Scene) -> list[SeenWorkload]:
    rows = scene.cluster().elsewhere
    return [
        read_workload(key.kind, {"metadata": {"name": key.name, "namespace": key.namespace}})
        for key in rows
        if key.namespace != NS
    ]


def _change(scene: Scene, name: str) -> Callable[[Facts], None]:
    def change(facts: Facts) -> None:
        for key, value in vars(facts_of(scene)).items():
            setattr(facts, key, value)

    change.__name__ = name.replace("-", "_")
    return change


for _name, (_code, _scene, _) in FOUND.items():
    if _name not in UNSEEN:
        fault(CHECKS[_code])(_change(_scene, _name))


@fault("GMA444")
def nothing_serves_custom_metrics(facts: Facts) -> None:
    facts.release = Fact(None)
    facts.apiservices = Fact([apiservice("v1.autoscaling")])
