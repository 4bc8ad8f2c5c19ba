"""States of the page: all parts, as the server sends them, for clusters of several kinds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

from adapter.answers.judgement.counts import HpaCounts
from adapter.answers.judgement.states import ScalingState
from adapter.answers.view.gpuclass import gpu_class
from adapter.tools.idle.prices import load
from adapter.tools.overview.groups import CauseRow, by_cause

Json = Any
State = dict[str, Json]
"""The parts by name."""

START: Final = 1_800_000_000.0
LISTS: Final = (
    "gpus",
    "gpunodes",
    "gpupools",
    "headroom",
    "gpupods",
    "gpuworkloads",
    "hpas",
    "events",
)
GPU_COLUMNS: Final = (
    *("name", "node", "pool", "zone", "gpu", "model", "profile", "vendor", "sharing", "uuid"),
    "unreported",
)
POD_COLUMNS: Final = (
    *("namespace", "name", "node", "util", "mem", "waiting", "firstToken", "how"),
    *("whyNot", "utilNumber", "waitingNumber", "firstTokenNumber", "pool", "model", "unhealthy"),
)
WORKLOAD_COLUMNS: Final = (
    *("namespace", "name", "pods", "measured", "util", "max", "hpa", "target", "wants", "idle"),
    *("utilNumber", "maxNumber", "measuredNumber", "wantsNumber"),
)
H100: Final = "NVIDIA H100 80GB HBM3"
A100: Final = "NVIDIA A100-SXM4-80GB"
L4: Final = "NVIDIA L4"


def empty(now: float = START) -> State:
    """A cluster without GPUs, pods and HPAs."""
    return _state(now, [], [], [], [], "No GPU, no GPU pod and no HPA on GPU metrics.", "empty")


def one(now: float = START) -> State:
    """One pod on one GPU, with one HPA."""
    gpus = [_gpu("n1", 0, "default", L4, 63.0, pods="chat/llm-7f9", mem=0.7)]
    pods = [_pod("chat", "llm-7f9", "n1", 63.0, "default", L4)]
    hpas = [
        _hpa("chat", "llm", 1, 1, 4, "good", "healthy", "keeps 1: gpu_utilization 63 of 70", 63, 70)
    ]
    return _state(now, gpus, pods, hpas, [], "Nothing is wrong: 1 HPA, 1 pod, 1 GPU.", "good")


def demo(now: float = START) -> State:
    """A small cluster with something of everything."""
    gpus, pods = [], []
    holders = {0: "chat/llm-7f9", 1: "chat/llm-a11", 2: "chat/llm-k3d", 3: "chat/embed-0 +1"}
    loads: dict[int, float] = {0: 92, 1: 88, 2: 74, 3: 41, 4: 3, 5: 0, 6: 55, 7: 61}
    for i in range(8):
        gpus.append(
            _gpu(
                f"gpu-h100-{i // 4 + 1}", i % 4, "h100-serving", H100, loads[i],
                pods=holders.get(i, f"train/job-{i}" if i > 5 else f"lab/notebook-{i}"),
                mem=0.9 if i < 4 else 0.3, sharing="time-slicing" if i == 3 else None,
                idle=now - 14_400 if i in (4, 5) else None,
            )
        )  # fmt: skip
    for i in range(4):
        blind = i == 3
        gpus.append(
            _gpu(
                "gpu-a100-1", i, "a100-batch", A100, None if blind else (12.0, 97.0, 100.0)[i],
                pods=f"batch/render-{i}", mem=None if blind else 0.5,
                sick="XID error 79" if i == 2 else None,
            )
        )  # fmt: skip
    for i in range(7):
        gpus.append(
            _gpu(
                "gpu-mig-1", i, "mig-lab", A100, (20.0, 45.0, 0.0, 70.0, 33.0, None, 8.0)[i],
                pods=f"lab/mig-{i}", mem=0.4, profile="1g.10gb",
                idle=now - 5000 if i == 2 else None,
            )
        )  # fmt: skip
    for i, util in enumerate((0.0, 0.0, 35.0, 0.0)):
        gpus.append(_gpu("gpu-l4-1", i, "l4-spare", L4, util, idle=None if util else now - 3000))
    for name, node, util in (
        *(("llm-7f9", "gpu-h100-1", 92), ("llm-a11", "gpu-h100-1", 88)),
        *(("llm-k3d", "gpu-h100-1", 74), ("embed-0", "gpu-h100-1", 41)),
        ("embed-1", "gpu-h100-1", 41),
    ):
        pods.append(_pod("chat", name, node, util, "h100-serving", H100, waiting=util // 9))
    pods += [_pod("lab", f"notebook-{i}", "gpu-h100-2", 0, "h100-serving", H100) for i in (4, 5)]
    pods += [_pod("train", f"job-{i}", "gpu-h100-2", 58, "h100-serving", H100) for i in (6, 7)]
    pods += [_pod("batch", f"render-{i}", "gpu-a100-1", 90, "a100-batch", A100) for i in range(3)]
    pods.append(
        _pod(
            "batch", "render-3", "gpu-a100-1", None, "a100-batch", A100, why="exporter_names_no_pod"
        )
    )
    pods.append(
        _pod("chat", "llm-x2k", "gpu-a100-1", None, "a100-batch", A100, why="exporter_down")
    )
    pods.append(_pod("chat", "llm-p0d", None, None, None, None, why="pod_not_scheduled"))
    pods += [_pod("lab", f"mig-{i}", "gpu-mig-1", 30, "mig-lab", A100) for i in range(7)]
    hpas = [
        _hpa("chat", "llm", 4, 1, 8, "bad", "stuck", "keeps 4: 1 of 4 pods has no gpu_utilization (exporter_down), which blocks scaling out", 85, 70),
        _hpa("batch", "render", 4, 1, 4, "warning", "overloaded", "overloaded at 4, held by maxReplicas 4: gpu_utilization 90 of 60", 90, 60),
        _hpa("chat", "embed", 2, 1, 6, "good", "scales out", "scales out to 3: inference_requests_waiting 14 of 8", 14, 8, metric="inference_requests_waiting", desired=3),
        _hpa("train", "job", 2, 1, 4, "good", "healthy", "keeps 2: gpu_utilization 58 of 60", 58, 60),
        _hpa("lab", "mig", 7, 1, 7, "good", "healthy", "keeps 7: gpu_memory_used_bytes 4Gi of 8Gi", 4, 8, metric="gpu_memory_used_bytes", suffix="Gi"),
        _hpa("lab", "notebook", 0, 0, 4, "off", "paused", "paused at 0 replicas: the HPA wakes no target that somebody else scaled to 0", None, 50),
    ]  # fmt: skip
    timeline = _timeline(
        now,
        [
            (14, "hpa", "bad", "hpa", "chat", "llm", "is stuck: a pod has no value", "exporter_down"),
            (21, "exporter", "bad", "node", "", "gpu-a100-1", "lost its exporter", "connection refused"),
            (47, "scale", "info", "hpa", "chat", "embed", "scaled 1 → 2", "inference_requests_waiting above target"),
            (130, "node", "good", "node", "", "gpu-a100-1", "joined node pool a100-batch", "TriggeredScaleUp: 0 → 1"),
            (170, "pod", "warning", "pod", "chat", "llm-p0d", "waits for a node", "FailedScheduling: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu"),
            (300, "scale", "info", "hpa", "chat", "llm", "scaled 3 → 4", "gpu_utilization above target"),
            (420, "gpu", "bad", "gpu", "", "gpu-a100-1.gpu2", "is not healthy: XID error 79", "The GPU has fallen off the bus"),
            (600, "exporter", "good", "node", "", "gpu-h100-2", "has its exporter back", None),
        ],
    )  # fmt: skip
    state = _state(
        now, gpus, pods, hpas, timeline,
        "1 of 6 HPAs is stuck, 1 HPA is overloaded, 2 pods have no value, 1 pod waits for a node, 3 GPUs are idle.",
        "bad",
    )  # fmt: skip
    state["workloads"] = _table(
        WORKLOAD_COLUMNS,
        [
            ("batch", "deployment.render", "4", "3", "90%", "100%", "render", "gpu_utilization 90/60", "6", None, 90, 100, 3, 6),
            ("chat", "deployment.embed", "2", "2", "41%", "41%", "embed", "inference_requests_waiting 14/8", "3", None, 41, 41.4, 2, 3),
            ("chat", "deployment.llm", "5", "3", "85%", "92%", "llm", "gpu_utilization 85/70", "5", None, 85, 92, 3, 5),
            ("lab", "statefulset.notebook", "2", "2", "0%", "0%", "notebook", None, None, "4h", 0, 0, 2, None),
            ("train", "job.job", "2", "2", "58%", "61%", "job", "gpu_utilization 58/60", "2", None, 58, 61, 2, 2),
        ],
    )  # fmt: skip
    return state


def large(now: float = START, nodes: int = 1250) -> State:
    """10,000 GPUs on 1,250 nodes in 6 node pools, and 2,000 HPAs."""
    chance = random.Random(7)
    gpus, pods = [], []
    models = (H100, A100, L4)
    for n in range(nodes):
        pool, model = f"pool-{'abcdef'[n * 6 // nodes]}", models[(n * 6 // nodes) % 3]
        for g in range(8):
            util = None if chance.random() < 0.02 else min(100.0, chance.gammavariate(4, 14))
            idle = util is not None and chance.random() < 0.03
            name = f"svc-{n % 300}-{n}-{g}"
            gpus.append(
                _gpu(f"{pool}-node-{n:04}", g, pool, model, 0.0 if idle else util,
                     pods=f"team-{n % 40}/{name}", mem=chance.random(),
                     idle=now - 7200 if idle else None,
                     sharing="time-slicing" if chance.random() < 0.04 else None)
            )  # fmt: skip
            pods.append(
                _pod(f"team-{n % 40}", name, f"{pool}-node-{n:04}", util, pool, model,
                     why=None if util is not None else "exporter_names_no_pod")
            )  # fmt: skip
    hpas = []
    for i in range(2000):
        level, decision = (
            (("bad", "stuck"), ("warning", "overloaded"))[i % 2]
            if i % 40 < 2
            else ("good", "healthy")
        )
        value = chance.uniform(20, 90)
        why = f"gpu_utilization {value:.0f} of 60"
        if decision == "stuck":
            why = f"FailedGetPodsMetric: {i % 3 + 1} of 4 pods have no value: svc-{i}-0 (exporter_down)"
        hpas.append(_hpa(f"team-{i % 40}", f"svc-{i}", 4, 1, 8, level, decision, f"{decision} 4: {why}", round(value, 1), 60))  # fmt: skip
    timeline = _timeline(
        now,
        [(5 * i, "scale", "info", "hpa", f"team-{i % 40}", f"svc-{i}", f"scaled {i % 7 + 1} → {i % 7 + 2}", "gpu_utilization above target") for i in range(500)],
    )  # fmt: skip
    return _state(
        now, gpus, pods, hpas, timeline,
        f"50 of 2,000 HPAs are stuck, 50 HPAs are overloaded, {sum(gpu['util'] is None for gpu in gpus)} pods have no "
        f"value, {sum(gpu['idleSince'] is not None for gpu in gpus)} GPUs are idle.", "bad",
    )  # fmt: skip


def broken(now: float = START) -> State:
    """Every list failed, or may not be read; what was seen before is old."""
    state = demo(now)
    grant = "kubectl create clusterrolebinding see-gpus --clusterrole=gpu-metrics-adapter-view --user=ana"
    state["panels"] = [
        _panel("gpus", "forbidden", now, "User ana may not list gpus of view.gpu-metrics-adapter.io", grant, 0),
        _panel("gpupods", "failed", now, "GET /apis/view.gpu-metrics-adapter.io/v1alpha1/gpupods: 503 the server is currently unable to handle the request", None, 300),
        _panel("gpuworkloads", "missing", now, "The cluster does not serve gpuworkloads: is view.enabled set in the chart?", "helm upgrade gpu-metrics-adapter --reuse-values --set view.enabled=true", 0),
        _panel("hpas", "forbidden", now, "User ana may not list horizontalpodautoscalers in all namespaces", "kubectl create clusterrolebinding see-hpas --clusterrole=view --user=ana", 0),
        _panel("events", "failed", now, "the API server did not answer within 10 s", None, 95),
    ]  # fmt: skip
    for name in ("gpus", "load", "workloads", "hpas", "idle"):
        del state[name]
    state["verdict"] = {
        "level": "bad",
        "text": "GPUs and HPAs cannot be read: rights are missing; the pods are 5 min old.",
        "hpas": None,
        "pods": state["verdict"]["pods"],
        "gpus": None,
        "idle": None,
    }
    return state


def hostile(now: float = START) -> State:
    """Names of full length, with markup, other directions of writing and emoji."""
    long = "x" * 60 + "end"
    names = (
        *(
            "<img src=x onerror=alert(1)>",
            "'\"><script>alert(2)</script>",
            "\u202egnirts\u202c-rtl",
        ),
        *("שלום-עולם", "🚀🔥-pod-👩‍💻", long),
    )
    gpus = [
        _gpu(f"{name}-node", i, names[i % 2] if i % 2 else long, f"Model {name}", 10.0 * i,
             pods=f"{names[5]}/{name}", sharing=name)
        for i, name in enumerate(names)
    ]  # fmt: skip
    pods = [
        _pod(name, name, f"{name}-node", None if i % 2 else 9.0 * i, long, f"Model {name}", why=f"<b>{name}</b>" if i % 2 else None)
        for i, name in enumerate(names)
    ]  # fmt: skip
    hpas = [
        _hpa(name, name, i, 0, 99, "bad", "stuck", f"stuck: {name} " * 4, None, 60, metric=name)
        for i, name in enumerate(names)
    ]
    timeline = _timeline(now, [(i, "hpa", "bad", "hpa", name, name, f"is stuck: {name}", name) for i, name in enumerate(names)])  # fmt: skip
    state = _state(now, gpus, pods, hpas, timeline, f"6 of 6 HPAs are stuck: {names[0]}, {long}", "bad")  # fmt: skip
    state["about"] |= {"context": names[0], "user": long}
    return state


def fresh(now: float) -> State:
    """The demo in a page that was just started, with the hour that the adapter has noted."""
    state = demo(now)
    state["about"] |= {"started": now - 2}
    state["past"] = {"since": now - 3600, "message": ""}
    columns = (
        *("namespace", "name", "nodes", "gpus", "busy", "idle", "free", "blocked", "unheld"),
        *("unmeasured", "largest", "fragmented", "closed", "left", "layouts", "fragmentedNumber"),
        *("headroom", "headroomWhy"),
    )
    gpu, mig = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
    why = (
        "Deployment/llm has 4 pods of 8: load for at most 5.8 pods is expected within 2 min with "
        "80 % (+2 at this time on most of 4 earlier days; forecasts held in 41 of 50 checks)"
    )
    state["pools"] = {
        "columns": columns,
        "rows": [
            ("", "h100-serving", 2, 8, 6, 2, 0, 0, 0, 0, None, None, 0, None, None, None, 2, why),
            ("", "a100-batch", 1, 4, 3, 0, 0, 0, 0, 1, None, None, 1, None, None, None, 0, None),
            ("", "mig-lab", 1, 7, 5, 1, 1, 0, 0, 0, f"1 {mig}", "0%", 0, f"1 {mig}", "7x1g.10gb (1)", 0.0, 0, None),
            ("", "l4-spare", 2, 4, 0, 0, 3, 0, 1, 0, f"2 {gpu}", "33%", 0, f"3 {gpu}", None, 33.3, 0, None),
        ],
    }  # fmt: skip
    return state


ALL: Final[dict[str, Callable[[float], State]]] = {
    "empty": empty,
    "one": one,
    "demo": demo,
    "fresh": fresh,
    "large": large,
    "broken": broken,
    "hostile": hostile,
}


def history(state: State, now: float, points: int = 120) -> dict[str, Json]:
    """What the server would have seen of each HPA: every 5 s, or each minute of the past."""
    histories = {}
    step = 60 if "past" in state else 5
    for hpa in state.get("hpas", []):
        if not hpa["metrics"]:  # a ScaledObject that has made no HPA has no past
            continue
        metric = hpa["metrics"][0]
        end, goal = metric["value"], metric["goal"]
        time = [now - step * (points - 1 - i) for i in range(points)]
        wave = [
            1 + 0.25 * math.sin(i / 9 + len(hpa["name"])) * (1 - i / points) for i in range(points)
        ]
        value = [None if end is None or 40 < i < 48 else round(end * wave[i] * (0.55 + 0.45 * i / points), 1) for i in range(points)]  # fmt: skip
        current = [max(1, (hpa["current"] or 1) - (2 if i < 50 else 1 if i < 90 else 0)) for i in range(points)]  # fmt: skip
        histories[f"{hpa['namespace']}/{hpa['name']}"] = {
            "time": time,
            "value": value,
            "goal": [goal] * points,
            "current": current,
            "desired": [*current[4:], *[hpa["desired"]] * 4],
        }
    return histories


EXPLANATION: Final = (
    "HPA chat/llm -> Deployment llm   4 replicas, 1..8   KEEPS 4",
    "  pods metric gpu_utilization asks for 4, the current size",
    "",
    "  pods metric gpu_utilization   mean 84.667 of 3 pods   target 70 a pod   asks for 4",
    "    +   llm-7f9   92   gpu-h100-1.gpu0, exact, 2s old, mean of 30 s",
    "    +   llm-a11   88   gpu-h100-1.gpu1, exact, 2s old, mean of 30 s",
    "    +   llm-k3d   74   gpu-h100-1.gpu2, exact, 4s old, mean of 30 s",
    "    x   llm-x2k   -    gpu-a100-1; exporter_names_no_pod: the exporter on node gpu-a100-1 answers, but names no pod",
    "    arithmetic: 84.667 / 70 = 1.21; with 1 pod without a value as 0 on the way up, the ratio is 0.907;",
    "      with that the direction would turn, so nothing changes",
    "",
    "  x blocks: 1 pod without gpu_utilization (llm-x2k): exporter_names_no_pod: the exporter on node gpu-a100-1",
    "      (gpu-operator/dcgm-x2k) answers, but names no pod; counted as its target on the way down and",
    "      as 0 on the way up",
    "      fix: kubectl patch clusterpolicies.nvidia.com cluster-policy --type=merge -p '{}'",
    "  status: desired 4; AbleToScale True ReadyForNewScale, ScalingActive True ValidMetricFound,",
    "      ScalingLimited False DesiredWithinRange",
    "  last events:",
    "    2m ago   SuccessfulRescale   New size: 4; reason: pods metric gpu_utilization above target",
)  # fmt: skip


def explanation(kind: str, namespace: str, name: str) -> Json:
    """The answer to a click."""
    place = f" -n {namespace}" if namespace else ""
    return {
        "kind": kind, "namespace": namespace, "name": name, "status": 1 if kind == "hpa" else 0,
        "lines": list(EXPLANATION) if kind == "hpa" else [f"{kind} {name}", "  +   gpu_utilization   92 %"],
        "json": {},
        "command": f"gpu-metrics-adapter explain {kind} {name}{place}",
    }  # fmt: skip


def _state(
    now: float, gpus: list[Json], pods: list[Json], hpas: list[Json], timeline: list[Json],
    text: str, level: str,
) -> State:  # fmt: skip
    idle = [gpu for gpu in gpus if gpu["class"] == "idle"]
    devices = [_idle_device(gpu, now) for gpu in idle[:100]]
    prices = [device["pricePerHour"] for device in devices if "pricePerHour" in device]
    costs = [device["costSoFar"] for device in devices if "costSoFar" in device]
    price, cost = (sum(prices), sum(costs)) if prices else (None, None)
    missing = sum("pricePerHour" not in device for device in devices)
    without = [pod for pod in pods if pod["whyNot"]]
    waiting = sum(pod["node"] is None for pod in pods)
    levels = [hpa["decision"] for hpa in hpas]
    troubled = [hpa for hpa in hpas if hpa["level"] != "good"]
    rows = [CauseRow(f"{hpa['namespace']}/{hpa['name']}", hpa["text"]) for hpa in troubled]
    for group in by_cause(rows):
        for place in group.rows if group.shown else ():
            troubled[place]["group"] = group.text
    return {
        "about": {
            "server": "https://10.0.0.1:6443", "context": "prod-eu-1", "user": "ana", "version": "0.9.0",
            "namespace": "", "interval": 5, "started": now - 3600, "prometheus": False, "demo": False,
            "currency": "USD", "pricesOf": f"list prices of {load(None).dated}",
        },
        "panels": [_panel(name, "ok", now, None, None, 2) for name in LISTS],
        "verdict": {
            "level": level,
            "text": text,
            "hpas": HpaCounts(map(ScalingState, levels)).json(),
            "pods": {
                "total": len(pods), "measured": len(pods) - len(without),
                "unmeasured": len(without) - waiting, "waiting": waiting,
            },
            "gpus": {"total": len(gpus)} | {
                name: sum(gpu["class"] == name for gpu in gpus)
                for name in ("free", "unheld", "busy", "idle", "unmeasured")
            },
            "idle": {"pricePerHour": price, "costSoFar": cost, "withoutPrice": missing},
        },
        "gpus": {
            "revision": 1,
            **_table(GPU_COLUMNS, [[gpu[column] for column in GPU_COLUMNS] for gpu in gpus]),
        },
        "load": {"of": 1} | {
            key: [gpu[key] for gpu in gpus]
            for key in ("class", "util", "utilText", "mem", "memShare", "pods", "unhealthy", "idleSince")
        },
        "pods": _table(POD_COLUMNS, [[pod[column] for column in POD_COLUMNS] for pod in pods]),
        "workloads": _table(WORKLOAD_COLUMNS, []),
        "hpas": hpas,
        "timeline": timeline,
        "idle": {
            "devices": devices, "held": len(gpus), "pricePerHour": price, "costSoFar": cost,
            "currency": "USD", "withoutPrice": missing, "left": max(0, len(idle) - 100),
        },
    }  # fmt: skip


def _table(columns: tuple[str, ...], rows: Iterable[Iterable[Json]]) -> Json:
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def _panel(name: str, status: str, now: float, message: str | None, command: str | None, age: float) -> Json:  # fmt: skip
    return {
        "panel": name,
        "status": status,
        "message": message,
        "command": command,
        "updated": now - age if age else None,
        "took": 0.2,
    }


def _gpu(
    node: str, index: int, pool: str, model: str, util: float | None, *, pods: str | None = None,
    mem: float | None = None, sharing: str | None = None, profile: str | None = None,
    idle: float | None = None, sick: str | None = None,
) -> Json:  # fmt: skip
    text = None if util is None else f"{util:.0f}%"
    return {
        "class": gpu_class(util, pods, None if idle is None else 7200.0, None),
        "name": f"{node}.{'mig' if profile else 'gpu'}{index}", "node": node, "pool": pool,
        "zone": "eu-1a", "gpu": str(index), "model": model, "profile": profile, "vendor": "nvidia",
        "sharing": sharing, "uuid": f"GPU-{node}-{index}", "unreported": None, "util": util,
        "utilText": text,
        "mem": None if mem is None else f"{mem * 80:.1f}/80Gi", "memShare": mem, "pods": pods,
        "unhealthy": sick, "idleSince": idle,
    }  # fmt: skip


def _pod(
    namespace: str, name: str, node: str | None, util: float | None, pool: str | None,
    model: str | None, *, why: str | None = None, waiting: int | None = None,
) -> Json:  # fmt: skip
    known = util is not None
    return {
        "namespace": namespace, "name": name, "node": node,
        "util": f"{util:.0f}%" if util is not None else None, "mem": "31Gi" if known else None,
        "waiting": None if waiting is None else str(waiting), "how": "exact" if known else None,
        "whyNot": why, "utilNumber": util, "waitingNumber": waiting, "pool": pool, "model": model,
        "firstToken": None if waiting is None else "0.42s",
        "firstTokenNumber": None if waiting is None else 0.42,
        "unhealthy": "XID error 79" if name == "render-2" else None,
    }  # fmt: skip


def _hpa(
    namespace: str, name: str, current: int, low: int, high: int, level: str, decision: str,
    text: str, value: float | None, goal: float, *, metric: str = "gpu_utilization",
    suffix: str = "", desired: int | None = None,
) -> Json:  # fmt: skip
    return {
        "namespace": namespace, "name": name, "kind": "HPA", "target": f"Deployment/{name}", "min": low,
        "max": high, "current": current, "desired": current if desired is None else desired,
        "level": level, "decision": decision, "text": text, "since": None, "group": None,
        "metrics": [{
            "name": metric, "value": value, "valueText": None if value is None else f"{value}{suffix}",
            "goal": goal, "goalText": f"{goal}{suffix}", "type": "Pods",
        }],
    }  # fmt: skip


def _timeline(now: float, entries: list[tuple[Any, ...]]) -> list[Json]:
    return [
        {
            "time": now - ago,
            "kind": kind,
            "level": level,
            "text": text,
            "reason": reason,
            "about": {"kind": about, "namespace": namespace, "name": name},
        }
        for ago, kind, level, about, namespace, name, text, reason in entries
    ]


def _idle_device(gpu: Json, now: float) -> Json:
    namespace, _, pod = gpu["pods"].partition("/")
    hours = (now - gpu["idleSince"]) / 3600
    price = {H100: 3.9, A100: 2.2}.get(gpu["model"])
    row = {
        "gpu": gpu["name"], "uuid": gpu["uuid"], "model": gpu["model"], "node": gpu["node"],
        "namespace": namespace, "pods": [pod.split(" ")[0]], "workload": f"StatefulSet/{pod.split('-')[0]}",
        "team": f"{namespace}-team", "idleSeconds": int(hours * 3600),
        "memoryUsedBytes": (gpu["memShare"] or 0) * 80 * 2**30, "memoryTotalBytes": 80 * 2**30,
        "hint": "scale it to 0 at night",
    }  # fmt: skip
    if price is not None:
        row |= {"pricePerHour": price, "costSoFar": round(price * hours, 2)}
    return row
