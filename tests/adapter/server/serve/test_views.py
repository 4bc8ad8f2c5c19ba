"""What `serve` shows in the view API: a GPU, its pod, the workload above and its HPA."""

from __future__ import annotations

from typing import Any

import httpx
import yaml

from tests.adapter.server.serve.conftest import Running
from tests.adapter.serving import POD, eventually, ready

NAME = "p0"
GROUP = "/apis/view.gpu-metrics-adapter.io/v1alpha1"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "scale", "namespace": "ns"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llm"},
        "maxReplicas": 8,
        "metrics": [
            {
                "type": "Pods",
                "pods": {"metric": {"name": "gpu_utilization"}, "target": {"averageValue": 60}},
            }
        ],
    },
}


def _owned(pod: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llm", "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


def _rows(client: httpx.Client, path: str) -> dict[str, dict[str, Any]]:
    """Name -> column -> cell."""
    answer = client.get(f"{GROUP}/{path}", headers=TABLE)
    assert answer.status_code == 200, answer.text
    table = answer.json()
    columns = [column["name"] for column in table["columnDefinitions"]]
    rows = (dict(zip(columns, row["cells"], strict=True)) for row in table["rows"] or ())
    return {row["Name"]: row for row in rows}


def test_gpus_pods_and_workloads_are_shown_with_the_hpa(running: Running) -> None:
    client = running.client
    file = running.lab.folder / "pods.yaml"
    file.write_text(yaml.safe_dump_all([_owned(POD), HPA]))
    eventually(lambda: ready(client))
    eventually(lambda: "statefulset.llm" in _rows(client, "namespaces/ns/gpuworkloads"))
    eventually(lambda: _rows(client, "gpus")["n1.gpu0"]["Util"] == "80%")
    assert _rows(client, "gpus")["n1.gpu0"]["Pods"] == f"ns/{NAME}"
    pod = _rows(client, "namespaces/ns/gpupods")[NAME]
    assert (pod["Util"], pod["How"], pod["Why-Not"]) == ("80%", "exact", "<none>")
    workload = _rows(client, "gpuworkloads")["statefulset.llm"]
    assert (workload["HPA"], workload["Target"]) == ("scale", "gpu_utilization ?/60")
    gpupod = client.get(f"{GROUP}/namespaces/ns/gpupods/{NAME}").json()
    assert gpupod["hpas"][0]["name"] == "scale"


def test_what_the_hpa_was_is_kept_from_the_first_minute(running: Running) -> None:
    client = running.client
    file = running.lab.folder / "pods.yaml"
    status = {"currentReplicas": 1, "desiredReplicas": 1}
    file.write_text(yaml.safe_dump_all([_owned(POD), HPA | {"status": status}]))
    eventually(lambda: ready(client))
    path = f"{GROUP}/namespaces/ns/gpuhistories/horizontalpodautoscaler.scale"
    eventually(lambda: client.get(path).json().get("current"), seconds=90)
    history = client.get(path).json()
    assert (history["metric"], history["target"][-1]) == ("gpu_utilization", 60)
    assert history["value"][-1] is None  # the controller has none: not 0
