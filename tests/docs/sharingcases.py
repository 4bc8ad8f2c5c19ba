"""The examples of docs/sharing.md: a node's labels, its pods and its exporter's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapter.pipeline.attribution.policy import SharingOptions, SharingPolicy
from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.cluster.pod import Pod
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
NODE = "gpu-1"
NOW = 100.0
GPU: Mapping[str, int] = {"nvidia.com/gpu": 1}
HAMI: Mapping[str, int] = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50}
SLICED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}


class Case(NamedTuple):
    """One node, and what is asked about its pods."""

    labels: Mapping[str, str]
    pods: Sequence[str]
    page: str
    gpus: Sequence[Mapping[str, int]] = (GPU,)
    """What each pod asks for; one stands for all."""
    claims: bool = False

    def answer(self, policy: SharingPolicy) -> str:
        """What the pods are given under a policy: values and how, or why there is none."""
        shown = [self._shown(policy, name) for name in self.pods]
        ways = {how for _, how in shown}
        if len(ways) > 1:
            return ", ".join(f"{value} {how}".strip() for value, how in shown)
        values = [value for value, _ in shown]
        how = ways.pop()
        return f"{', '.join(values)} {how}" if how else ", ".join(dict.fromkeys(values))

    def _shown(self, policy: SharingPolicy, name: str) -> tuple[str, str]:
        sharing = SharingOptions(policy)
        world = World(*map(self._pod, self.pods), sharing=sharing, nodes={NODE: self.labels})
        world.scrape(self.page, NOW, node=NODE)
        answer = world.read(name, "gpu_utilization", NOW)
        if not isinstance(answer, Reading):
            return f"`{answer.reason}`", ""
        (device,) = answer.devices
        return f"{answer.value:g}", device.attribution.value

    def _pod(self, name: str) -> Pod:
        asked = dict(zip(self.pods, self.gpus, strict=True)) if len(self.gpus) > 1 else {}
        gpus = asked.get(name, self.gpus[0])
        return make_pod(name, gpus=gpus, node=NODE, uid=f"uid-{name}", claims=self.claims)


def _mig(profile: str, instance: int) -> str:
    return f'GPU_I_PROFILE="{profile}",GPU_I_ID="{instance}"'


def _hami(pod: str, percent: float) -> str:
    labels = f'namespace="ml",pod="{pod}",container="server",device_uuid="GPU-0"'
    return f"hami_container_device_utilization_ratio{{{labels}}} {percent}\n"


def _of_vgpu(pod: str, number: int, percent: float, uid: str = "") -> str:
    more = f'vgpu="{number}"' + (f',pod_uid="{uid}"' if uid else "")
    return row(UTIL, percent, pod, more=more)


def _volcano(memory: int) -> Mapping[str, int]:
    return {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": memory}


CASES: Mapping[str, Case] = {
    "whole GPU": Case({}, ("a",), row(UTIL, 90, "a")),
    "MIG": Case(
        {"nvidia.com/mig.strategy": "mixed"},
        ("a", "b"),
        row(ENGINE, 0.9, "a", more=_mig("1g.10gb", 7))
        + row(ENGINE, 0.3, "b", more=_mig("1g.10gb", 8)),
        ({"nvidia.com/mig-1g.10gb": 1},),
    ),
    "time-slicing or MPS": Case(SLICED, ("a", "b", "c"), row(UTIL, 90, "b")),
    "time-slicing, two GPUs on the node": Case(
        SLICED | {"nvidia.com/gpu.count": "2"},
        ("a", "b", "c"),
        row(UTIL, 90, "a") + row(UTIL, 30, "b", uuid="GPU-1"),
    ),
    "time-slicing, exporter with a sample per pod": Case(
        SLICED,
        ("a", "b", "c"),
        "".join(_of_vgpu(pod, number, 90) for number, pod in enumerate("abc")),
    ),
    "time-slicing, exporter that accounts per process": Case(
        SLICED,
        ("a", "b"),
        row(UTIL, 93) + _of_vgpu("a", 0, 62, "uid-a") + _of_vgpu("b", 1, 31, "uid-b"),
    ),
    "the same, where the exporter cannot see processes": Case(
        SLICED, ("a", "b"), row(UTIL, 93) + _of_vgpu("a", 0, 0) + _of_vgpu("b", 1, 0)
    ),
    "one DRA claim, used by two pods": Case(
        {},
        ("a", "b"),
        row(UTIL, 90, "a", more='dra_claim_name="c"')
        + row(UTIL, 90, "b", more='dra_claim_name="c"'),
        ({},),
        claims=True,
    ),
    "HAMi": Case(
        {},
        ("a", "b"),
        _hami("a", 60) + _hami("b", 30),
        (HAMI,),
    ),
    "HAMi, dcgm-exporter alone": Case(
        {},
        ("a", "b"),
        row(UTIL, 90, "b"),
        (HAMI,),
    ),
    "Volcano's vGPU, dcgm-exporter with a sample per pod": Case(
        {},
        ("a", "b"),
        _of_vgpu("a", 0, 90) + _of_vgpu("b", 1, 90),
        (_volcano(20000), _volcano(10000)),
    ),
}
"""First cell of the page's table -> the example."""
