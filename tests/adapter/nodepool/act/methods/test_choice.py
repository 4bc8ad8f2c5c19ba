"""The choice of the provisioning method, with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.nodepool.act.methods import capacitybuffer
from adapter.nodepool.act.methods.choice import choose
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.servedapis import ServedApis, discover
from apiservice.kube.client import ClusterAnswerError
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import found
from tests.adapter.nodepool.orders import PROBE_JOB


def groups(**versions: list[str]) -> dict[str, Any]:
    return {
        "groups": [
            {
                "name": name.replace("_", "."),
                "versions": [{"groupVersion": f"{name}/{v}", "version": v} for v in found_versions],
            }
            for name, found_versions in versions.items()
        ]
    }


def api(scaling: dict[str, list[str]], **others: list[str]) -> FakeApi:
    """Answers of discovery: version of autoscaling.x-k8s.io -> its resources."""
    fake = FakeApi()
    fake.objects["/apis"] = groups(**others)
    if scaling:
        fake.objects["/apis"]["groups"].append(
            {
                "name": "autoscaling.x-k8s.io",
                "versions": [{"groupVersion": v, "version": v} for v in scaling],
            }
        )
    for version, names in scaling.items():
        fake.objects[f"/apis/autoscaling.x-k8s.io/{version}"] = {
            "resources": [{"name": name} for name in names]
        }
    return fake


SERVED = {
    "nothing": ({}, {}, ServedApis()),
    "karpenter": (
        {"v1beta1": ["capacitybuffers", "capacitybuffers/status"]},
        {"karpenter_sh": ["v1"]},
        ServedApis(buffers="v1beta1", karpenter=True),
    ),
    "cluster-autoscaler 1.34": (
        {"v1alpha1": ["capacitybuffers"], "v1": ["provisioningrequests"]},
        {},
        ServedApis(buffers="v1alpha1"),
    ),
    "cluster-autoscaler 1.35": (
        {"v1alpha1": ["capacitybuffers"], "v1beta1": ["capacitybuffers", "provisioningrequests"]},
        {},
        ServedApis(buffers="v1beta1"),
    ),
    "provisioning requests alone": (
        {"v1": ["provisioningrequests"], "v1beta1": ["provisioningrequests"]},
        {},
        ServedApis(),
    ),
    "a later version alone": (
        {"v1": ["capacitybuffers", "provisioningrequests"]},
        {},
        ServedApis(newer="v1"),
    ),
    "metrics and claims": (
        {},
        {"custom_metrics_k8s_io": ["v1beta1"], "resource_k8s_io": ["v1beta2", "v1"]},
        ServedApis(custom_metrics="v1beta1", claims="v1"),
    ),
}


@pytest.mark.parametrize(("scaling", "others", "served"), SERVED.values(), ids=SERVED)
async def test_discovery_distinguishes_versions_and_resources(
    scaling: dict[str, list[str]], others: dict[str, list[str]], served: ServedApis
) -> None:
    fake = api(scaling, **others)
    assert await discover(fake) == served


async def test_an_api_server_that_does_not_answer_is_reported() -> None:
    fake = api({"v1beta1": []})
    fake.fail("GET", "/apis/autoscaling", 503)
    with pytest.raises(ClusterAnswerError, match="503"):
        await discover(fake)


def probe(**status: Any) -> HeadroomObject:
    _, buffer = capacitybuffer.probe("gpu-metrics", "v1beta1", PROBE_JOB, "pause")
    return found(ProvisioningMethod.BUFFER, buffer, status)


TAKEN_UP = probe(conditions=[{"type": "ReadyForProvisioning", "status": "True"}])
NEVER = probe()
BAD = probe(
    conditions=[{"type": "ReadyForProvisioning", "status": "False", "reason": "NoTemplate"}]
)
YES, NO = ServedApis(buffers="v1beta1"), ServedApis()
LATER = ServedApis(newer="v1")

CHOICES: dict[str, tuple[Any, ProvisioningMethod | None, str]] = {
    "not served": (
        ("auto", NO, [], None, 30),
        ProvisioningMethod.PLACEHOLDER,
        "serves no CapacityBuffer",
    ),
    "accepted": (
        ("auto", YES, [TAKEN_UP], 1, 30),
        ProvisioningMethod.BUFFER,
        "a controller accepted",
    ),
    "not yet": (("auto", YES, [NEVER], 1, 30), None, "waiting for a controller"),
    "never": (
        ("auto", YES, [NEVER], 31, 30),
        ProvisioningMethod.PLACEHOLDER,
        "its status is empty",
    ),
    "refused": (("auto", YES, [BAD], 31, 30), ProvisioningMethod.PLACEHOLDER, "NoTemplate"),
    "later after all": (("auto", YES, [TAKEN_UP], 9999, 30), ProvisioningMethod.BUFFER, "accepted"),
    "a dry run": (
        ("auto", YES, [], None, 30),
        ProvisioningMethod.BUFFER,
        "not probed in a dry run",
    ),
    "set, and served": (
        ("buffer", YES, [], None, 30),
        ProvisioningMethod.BUFFER,
        "nodepool.provisioning_method is buffer",
    ),
    "set, and not served": (("buffer", NO, [], None, 30), None, "install its CRD"),
    "served in a later version": (
        ("auto", LATER, [], None, 30),
        ProvisioningMethod.PLACEHOLDER,
        "serves CapacityBuffer only as v1, and this controller knows v1beta1 and v1alpha1: install",
    ),
    "set, and served in a later version": (("buffer", LATER, [], None, 30), None, "only as v1"),
    "placeholders set": (
        ("placeholder", YES, [TAKEN_UP], None, 30),
        ProvisioningMethod.PLACEHOLDER,
        "nodepool.provisioning_method is placeholder",
    ),
}


@pytest.mark.parametrize(("given", "method", "words"), CHOICES.values(), ids=CHOICES)
def test_the_method_is_chosen_with_a_reason(
    given: Any, method: ProvisioningMethod | None, words: str
) -> None:
    choice = choose(*given)
    assert choice.method is method
    assert words in choice.reason
