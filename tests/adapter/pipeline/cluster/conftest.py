"""Pods made to measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from adapter.pipeline.cluster.pod import Owner, Pod
from tests.adapter import world

MakePod = Callable[..., Pod]


@pytest.fixture
def make_pod() -> MakePod:
    """A running pod on node ``n1`` unless said otherwise."""

    def make(
        name: str,
        namespace: str = "default",
        *,
        labels: Mapping[str, str] | None = None,
        owner: Owner | None = None,
        node: str = "n1",
        ip: str = "10.0.0.1",
        uid: str = "u",
    ) -> Pod:
        return world.make_pod(
            name,
            namespace=namespace,
            gpus={},
            uid=uid,
            node=node,
            ip=ip,
            labels=labels,
            owner=owner,
            containers=("main",),
        )

    return make
