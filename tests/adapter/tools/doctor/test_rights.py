"""The hint for the HPA controller's right grants it, regardless of the rules of its own role."""

from __future__ import annotations

import asyncio
from pathlib import Path

from adapter.tools.client.access import cluster
from adapter.tools.doctor.facts import Review
from adapter.tools.doctor.rights import hpa_reviews
from tests.adapter.clientapi import api_server

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def test_the_hint_creates_a_role_with_the_rule_and_binds_it(tmp_path: Path) -> None:
    async def look() -> list[Review]:
        async with cluster(kubeconfig) as api:
            return list(await hpa_reviews(api))

    with api_server(tmp_path) as (server, kubeconfig):
        server.answers[REVIEWS] = {"status": {"allowed": False}}
        (review,) = asyncio.run(look())
    assert review.command == (
        "kubectl create clusterrole hpa-reads-custom-metrics --verb=get,list "
        "--resource='*.custom.metrics.k8s.io' --dry-run=client -o yaml | kubectl apply -f - && "
        "kubectl create clusterrolebinding hpa-reads-custom-metrics "
        "--clusterrole=hpa-reads-custom-metrics "
        "--serviceaccount=kube-system:horizontal-pod-autoscaler --dry-run=client -o yaml "
        "| kubectl apply -f -"
    )
