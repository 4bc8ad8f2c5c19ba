"""Installations beside others who serve the same API."""

from __future__ import annotations

import pytest

from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, helm
from tests.e2e.chartvalues import (
    EXTERNAL_METRICS,
)
from tests.e2e.cluster import Object, collection
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_a_foreign_apiservice_is_not_taken_over(stage: Stage) -> None:
    """The stage's adapter has them: an installation elsewhere fails and says whose they are."""
    cluster = (f"--kubeconfig={stage.plane.kubeconfig}", "--dry-run=server")
    done = helm("install", "second", FOLDER, "--namespace=elsewhere", *cluster, values={})
    assert done.returncode != 0
    assert (
        f"APIService v1beta1.custom.metrics.k8s.io belongs to Service {NAMESPACE}/{SERVICE} "
        "and is not taken over"
    ) in done.stderr
    # Not even when asked to adopt what is there.
    adopt = (*cluster, "--take-ownership")
    done = helm("install", "second", FOLDER, "--namespace=elsewhere", *adopt, values={})
    assert "is not taken over" in done.stderr
    # Neither is that of external metrics, with any owner.
    theirs: Object = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": "keda", "name": "keda-operator-metrics-apiserver"},
            "insecureSkipTLSVerify": True,
        },
    }
    stage.admin.create(theirs)
    try:
        to = (f"--namespace={NAMESPACE}", *adopt)
        done = helm("install", SERVICE, FOLDER, *to, values=EXTERNAL_METRICS)
        assert done.returncode != 0
        assert (
            "APIService v1beta1.external.metrics.k8s.io belongs to Service "
            "keda/keda-operator-metrics-apiserver and is not taken over"
        ) in done.stderr
    finally:
        stage.admin.delete(f"{collection(theirs)}/{theirs['metadata']['name']}")
    # Its own are its own.
    done = helm("install", SERVICE, FOLDER, f"--namespace={NAMESPACE}", *adopt, values={})
    assert done.returncode == 0, done.stderr
    assert "kubectl get apiservices v1beta1.custom.metrics.k8s.io" in done.stdout
    # And who registers nothing is in nobody's way.
    alone = {"apiServices": {"create": False}}
    done = helm("install", "second", FOLDER, "--namespace=elsewhere", *cluster, values=alone)
    assert done.returncode == 0, done.stderr
