"""Faults on the pages of exporters (GMA121 to GMA129)."""

from __future__ import annotations

from dataclasses import replace

from adapter.tools.doctor.facts import Fact, Facts
from tests.adapter.tools.doctor.clean import (
    hpa,
    metric,
    page,
)
from tests.adapter.tools.doctor.faults.register import KEY_B, fault


@fault("GMA121")
def mapping_off(facts: Facts) -> None:
    facts.pages = Fact(dict(facts.pages.read()) | {KEY_B: page("gpu-b")})


def on_b(facts: Facts, text: str) -> None:
    facts.pages = Fact(dict(facts.pages.read()) | {KEY_B: page("gpu-b", text=text)})


LABELS_B = 'gpu="0",UUID="GPU-b",namespace="chat",pod="llm-2"'


@fault("GMA122")
def utilization_off(facts: Facts) -> None:
    on_b(facts, f"DCGM_FI_DEV_FB_USED{{{LABELS_B}}} 5\n")


@fault("GMA123")
def instances_without_engine(facts: Facts) -> None:
    mig = LABELS_B + ',GPU_I_PROFILE="1g.5gb",GPU_I_ID="3"'
    on_b(facts, f"DCGM_FI_DEV_FB_USED{{{mig}}} 5\n")


@fault("GMA124")
def profiling_off(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_sm_activity"))])


@fault("GMA125")
def lingering(facts: Facts) -> None:
    gone_labels = LABELS_B.replace("llm-2", "llm-0")
    rows = [f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 5\n" for labels in (LABELS_B, gone_labels)]
    on_b(facts, "".join(rows))


@fault("GMA126")
def sentinels(facts: Facts) -> None:
    on_b(facts, f"DCGM_FI_DEV_GPU_UTIL{{{LABELS_B}}} 9223372036854775794\n")


@fault("GMA127")
def xid(facts: Facts) -> None:
    good = f"DCGM_FI_DEV_GPU_UTIL{{{LABELS_B}}} 5\n"
    on_b(facts, good + f"DCGM_FI_DEV_XID_ERRORS{{{LABELS_B}}} 79\n")


@fault("GMA128")
def near_the_limit(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    pages[KEY_B] = replace(pages[KEY_B], size=15 << 20)
    facts.pages = Fact(pages)


@fault("GMA128")
def many_samples(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    pages[KEY_B] = replace(pages[KEY_B], samples=60_000)
    facts.pages = Fact(pages)


@fault("GMA129")
def malformed(facts: Facts) -> None:
    good = f"DCGM_FI_DEV_GPU_UTIL{{{LABELS_B}}} 5\n"
    on_b(facts, good + f"DCGM_FI_DEV_FB_USED{{{LABELS_B} 5\n")
