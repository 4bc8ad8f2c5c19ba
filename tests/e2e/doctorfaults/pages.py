"""Faults on the pages of exporters (GMA121 to GMA129)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.adapter.world import own_page
from tests.e2e.cluster import PODS, condition
from tests.e2e.doctorfaults.register import (
    CHAT,
    MAIN_HPA,
    UNATTRIBUTED,
    WHOLE,
    fault,
    holder,
    metric_of,
    real,
    third,
    without,
)
from tests.e2e.pagestand import made
from tests.e2e.site import Site


@fault("GMA121", "GMA706")
def a_mapping_that_is_off(site: Site) -> Iterator[None]:
    with third(site, real(WHOLE)), made(site, holder("unnamed")):
        path = f"{PODS.format(ns=CHAT)}/unnamed"
        site.admin.wait(path, lambda obj: obj["status"].get("phase") == "Running", "it runs")
        yield


@fault("GMA122")
def utilization_that_is_not_collected(site: Site) -> Iterator[None]:
    page = without(without(real(WHOLE), "GPU_UTIL"), "ENGINE_ACTIVE")
    with third(site, page):
        yield


@fault("GMA123")
def instances_without_engine_activity(site: Site) -> Iterator[None]:
    with third(site, without(real(UNATTRIBUTED), "ENGINE_ACTIVE")):
        yield


@fault("GMA124", "GMA410")
def a_field_that_no_exporter_writes(site: Site) -> Iterator[None]:
    with metric_of(site, MAIN_HPA, "gpu_sm_activity"):
        site.admin.wait(
            MAIN_HPA,
            lambda obj: condition(obj, "ScalingActive") == ("False", "FailedGetPodsMetric"),
            "the HPA has noticed",
        )
        yield
    site.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingActive")[0] == "True", "the HPA is well"
    )


@fault("GMA125")
def a_page_that_names_pods_of_elsewhere(site: Site) -> Iterator[None]:
    with third(site, own_page(WHOLE).encode()):
        yield


@fault("GMA126")
def values_by_which_dcgm_says_that_it_has_none(site: Site) -> Iterator[None]:
    page = re.sub(rb"(GPU_UTIL\{[^}]*\}) \d+", rb"\1 9223372036854775794", real(WHOLE))
    with third(site, without(page, "ENGINE_ACTIVE")):
        yield


@fault("GMA127")
def a_device_with_an_xid_error(site: Site) -> Iterator[None]:
    labels = 'gpu="0",UUID="GPU-21bade02-6a6a-4768-b2ed-66ffdcc99396"'
    with third(site, real(WHOLE) + f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} 79\n".encode()):
        yield


@fault("GMA128")
def a_page_near_the_limit(site: Site) -> Iterator[None]:
    filler = b"# " + b"x" * 8000 + b"\n"
    with third(site, real(UNATTRIBUTED) + filler * 1800):
        yield


@fault("GMA129")
def a_page_with_lines_that_are_cut(site: Site) -> Iterator[None]:
    page = real(WHOLE)
    lost = [line[: len(line) // 2] for line in page.splitlines() if line.startswith(b"DCGM")]
    with third(site, page + b"\n".join(lost) + b"\n"):
        yield
