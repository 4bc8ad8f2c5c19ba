"""Pods made to measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from adapter.cluster.pod import Owner, Pod, PodRef

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
        return Pod(
            ref=PodRef(namespace, name),
            uid=uid,
            node=node,
            ip=ip,
            phase="Running",
            ready=True,
            deleting=False,
            labels=labels or {},
            annotations={},
            owner=owner,
            containers=("main",),
            gpus={},
            claims=False,
            ports=(),
        )

    return make
